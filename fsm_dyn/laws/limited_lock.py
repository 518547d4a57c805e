"""The lock with a limit: a lock that lets go by its own force, as magnets, detents and break-away couplings do.

Engaged, it holds as a lock while its force is within ``±holds_to``; where the force reaches the limit it is released,
until a transition engages it again.  The limit is on forces, and an impact is larger than any: an impact that loads it
releases it, unless it is the impact by which a transition engages it.
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import FREE, HELD, Entry, Event, GuardQuantity, Law, Option, Watched
from fsm_dyn.laws.lock import POSITION, VELOCITY

LIMITED_LOCK: Final = Law(
    name="limited_lock",
    normal="switched",
    force_limit=True,
    states=lambda frictional, infinite: ("released", "engaged"),
    guards=(
        Watched((HELD,), GuardQuantity.HOLDING_LIMIT, Event.OPENS, (FREE,), "holding limit", directions=(-1.0, 1.0)),
    ),
    events=lambda frictional, infinite, limited: ("lets go",),
    verbs={Event.OPENS: "lets go"},
    signs={Event.OPENS: "force limit reached"},
    normal_noun="position of lock",
    bound_noun="holding force",
    entry=Entry(
        "lock", "a lock", "A row that transitions engage and release, or that lets go at a force.",
        needs=(Option("holds_to", "static"),), one_of=(POSITION, VELOCITY),
    ),
)  # fmt: skip
