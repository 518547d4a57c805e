"""Joints, one class each: what the file says, and what was made of it."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint(ABC):
    """A joint between two frames, and the names of what stands for it.

    ``at`` holds the point of the parent where it is (in a tree), the points of parent and child that it brings
    together (closing a loop), the place of contact (:class:`RollingJoint`), or nothing (:class:`GearJoint`).  A joint
    of the tree has made the frame ``child``, the point ``origin`` of it and ``coordinates``; one that closes a loop has
    made ``rows``, the names of constraints.  In absolute coordinates a joint of the tree has made all of them, and so
    has one with friction of its reaction.

    Attributes
    ----------
    kind : str
        The key of the language.
    hinged : bool
        Whether the child's origin stays at the parent's point.
    hidden : tuple of (str, Text)
        Those of its coordinates that friction or a clearance adds, each with its value in terms of the others.
    displacement : Text, optional
        The vector by which they move the child.
    """

    kind: ClassVar[str]
    hinged: ClassVar[bool] = False

    name: str
    parent: str
    child: str
    at: tuple[str, ...] = ()
    origin: str = ""
    coordinates: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    hidden: tuple[tuple[str, Text], ...] = ()
    displacement: Text | None = None
    where: Location = NOWHERE

    @property
    def is_freed(self) -> bool:
        """Whether its child has absolute coordinates."""
        return f"{self.child}_x" in self.coordinates and bool(self.origin) and self.name != self.child

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """Its play and the radius of its thread, those that it has, each with a word for messages."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedJoint(Joint):
    """A joint whose one motion may have a ``backlash``: the whole play, an angle or a length.

    The contacts of a play are among those of the mechanism.
    """

    backlash: Text | None = None

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """The backlash, where there is one."""
        return () if self.backlash is None else (("backlash", self.backlash),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevoluteJoint(RangedJoint):
    """A hinge about an axis."""

    kind: ClassVar[str] = "revolute"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseRevoluteJoint(RangedJoint):
    """A hinge with a ``clearance``, the whole play in the hole (m): it is planar."""

    kind: ClassVar[str] = "planar"

    clearance: Text

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """Backlash and clearance."""
        return (*RangedJoint.positive_numbers.__get__(self), ("clearance", self.clearance))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrismaticJoint(RangedJoint):
    """A guide along an axis."""

    kind: ClassVar[str] = "prismatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelicalJoint(RangedJoint):
    """A screw; ``thread``: lead (m), radius (m) and static friction of one with friction."""

    kind: ClassVar[str] = "helical"

    thread: tuple[Text, Text, Text] | None = None

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """The backlash and the radius of the thread."""
        radius = () if self.thread is None else (("radius of the thread", self.thread[1]),)
        return (*RangedJoint.positive_numbers.__get__(self), *radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class CylindricalJoint(Joint):
    """A guide along an axis and a hinge about it."""

    kind: ClassVar[str] = "cylindrical"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniversalJoint(Joint):
    """Two hinges at right angles."""

    kind: ClassVar[str] = "universal"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BallJoint(Joint):
    """A ball in its socket."""

    kind: ClassVar[str] = "ball"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarJoint(Joint):
    """A body that slides and turns on a plane."""

    kind: ClassVar[str] = "planar"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeldJoint(Joint):
    """No motion at all."""

    kind: ClassVar[str] = "weld"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSliderJoint(Joint):
    """A pin of the child in a slot of the parent."""

    kind: ClassVar[str] = "pin_slider"


@dataclass(frozen=True, slots=True, kw_only=True)
class GearJoint(RangedJoint):
    """Two bodies whose turns against a carrier keep a ratio."""

    kind: ClassVar[str] = "gear"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingJoint(Joint):
    """No slip at a point."""

    kind: ClassVar[str] = "rolling"
