"""Joints as data: what the file says, and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions import Text

JointKind: TypeAlias = Literal[
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
    "universal",
    "ball",
    "planar",
    "weld",
    "pin_slider",
    "gear",
    "rolling",
]


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between two frames, and the names of what stands for it.

    ``at`` holds the point of the parent where it is (in a tree), the points of parent and child that it brings
    together (closing a loop), the place of contact (``rolling``), or nothing (``gear``).  A joint of the tree has made
    the frame ``child``, the point ``origin`` of it and ``coordinates``; one that closes a loop has made ``rows``, the
    names of constraints.  In absolute coordinates a joint of the tree has made all of them, and so has one with
    friction of its reaction.  ``backlash`` (an angle or a length) and ``clearance`` (a length) are the whole play; a
    revolute joint with a clearance is ``planar``.  Their contacts are among those of the mechanism.  ``thread``: lead,
    radius and static friction of a screw with friction.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    at: tuple[str, ...] = ()
    origin: str = ""
    coordinates: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    backlash: Text | None = None
    clearance: Text | None = None
    thread: tuple[Text, Text, Text] | None = None
    where: Location = NOWHERE

    @property
    def closes(self) -> bool:
        """Whether it closes a loop between frames that others have made."""
        return bool(self.rows) and not self.coordinates
