"""The lock: a bilateral row that transitions engage and release."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import Entry, Law, Option

POSITION: Final = Option("position", "gap")
VELOCITY: Final = Option("velocity", "slip")

LOCK: Final = Law(
    name="lock",
    normal="switched",
    states=lambda frictional, infinite: ("released", "engaged"),
    normal_noun="position of lock",
    entry=Entry("lock", "a lock", "A row that transitions engage and release.", one_of=(POSITION, VELOCITY)),
)
