"""The one-way clutch: a speed that cannot become negative, ``0 ≤ speed ⊥ λ ≥ 0``, as of freewheels and ratchets.

A unilateral contact on the level of speeds: free while the speed is positive, locked while its force keeps it at zero.
Where others would bring the speed below zero at once, an impact without rebound locks it.
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import FREE, HELD, Entry, Event, GuardQuantity, Law, Option, Watched

ONE_WAY: Final = Law(
    name="one_way",
    normal="constraint",
    states=lambda frictional, infinite: ("free", "locked"),
    guards=(
        Watched((FREE,), GuardQuantity.SPEED, Event.CLOSES, (HELD,), "speed"),
        Watched((HELD,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (FREE,), "locking force"),
    ),
    events=lambda frictional, infinite, limited: ("locks", "frees"),
    verbs={Event.CLOSES: "locks", Event.OPENS: "frees"},
    signs={Event.CLOSES: "velocity zero", Event.OPENS: "locking force zero"},
    became={"free": "frees", "locked": "locks"},
    normal_noun="coordinate of one-way clutch",
    entry=Entry(
        "one_way", "a one-way clutch", "A speed that cannot become negative.",
        one_of=(Option("coordinate", "gap"), Option("velocity", "slip")),
    ),
)  # fmt: skip
