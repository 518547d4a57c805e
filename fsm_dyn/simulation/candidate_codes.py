"""Codes of the runtime for candidates of a contact problem (``runtime/codes.h``, ``contacts.h``)."""

from __future__ import annotations

from typing import Final

# choices of a contact
OPEN: Final = 0
HOLD: Final = 1  # normal and tangent rows held
FORWARD: Final = 2  # slides with direction +1
BACKWARD: Final = 3  # slides with direction -1
PARTED_HOLD: Final = 4  # parts under the impulse given (Poisson's expansion), and its friction stops the slip
PARTED_FORWARD: Final = 5
PARTED_BACKWARD: Final = 6
UNDER_FORWARD: Final = 7  # slides, a slot pressed on its other face (normal force negative)
UNDER_BACKWARD: Final = 8
CHOICE_COUNT: Final = 9

# which law a candidate violates
KEPT: Final = 0
TENSION: Final = 1
PENETRATION_RATE: Final = 2
FRICTION_EXCEEDED: Final = 3
SLIP_AGAINST_FRICTION: Final = 4
NO_SOLUTION: Final = 5
MOTION_INDETERMINATE: Final = 6  # the forces are open, and the motion with them
EXCLUDED: Final = 7  # the states whose guard fired together

# how the candidate was selected
NO_CANDIDATES: Final = 0
UNIQUE: Final = 1
LEAST_CHANGE: Final = 2
FIRED_STATE_KEPT: Final = 3  # no other candidate was consistent than a state whose guard had fired
POLICY: Final = 4  # several consistent motions; by the policy of the model, fewest state changes
IMPACT_WITHOUT_COLLISION: Final = (
    5  # no candidate was consistent; by the policy of the model, an impact without collision
)
CONTINUITY: Final = 6  # several consistent motions; only here all sticking contacts within their limits stick
PAST_LIMIT: Final = 7  # several consistent motions; only this one exists just past the limit of friction

# a candidate in the log: which contacts (bits), their choices (decimal digits), violation, law and contact
LOG_WIDTH: Final = 4
LOG_SIZE: Final = 12
