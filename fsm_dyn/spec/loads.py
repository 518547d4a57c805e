"""Loads, one class each: what they act on, and their vectors and numbers."""

from __future__ import annotations

import re
from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text

PointPair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(ABC):
    """What acts on a mechanism besides its contacts and constraints.

    The impulses of a transition are loads of the classes :class:`ForceLoad`, :class:`TorqueLoad` and
    :class:`LawLoad` whose ``value`` is the time integral.

    Attributes
    ----------
    kind : str
        The key of the language.
    """

    kind: ClassVar[str]

    name: str
    where: Location = NOWHERE

    @property
    def points(self) -> tuple[str, ...]:
        """The points that it acts at."""
        return ()

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Words for what it acts on, of which a name is made."""
        return self.points

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Its stiffness, damping and free length, those that it has, each with a word for messages."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceLoad(Load):
    """A force, the vector ``value`` (N), at the point ``at``."""

    kind: ClassVar[str] = "force"

    value: Text
    at: str

    @property
    def points(self) -> tuple[str, ...]:
        """Its point of application."""
        return (self.at,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueLoad(Load):
    """A torque, the vector ``value`` (N m), on the body ``on``; the opposite acts on the body ``reaction``."""

    kind: ClassVar[str] = "torque"

    value: Text
    on: str
    reaction: str | None = None

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Its bodies."""
        return (self.on,) if self.reaction is None else (self.on, self.reaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityLoad(Load):
    """The acceleration ``value`` (vector, m/s²) of every body; or of the body ``on`` alone, where it may vary."""

    kind: ClassVar[str] = "gravity"

    value: Text
    on: str | None = None

    @property
    def acts_on(self) -> tuple[str, ...]:
        """The one body, if it is one."""
        return () if self.on is None else (self.on,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLoad(Load):
    """A force along the line between two points, or a generalized force on a coordinate.

    ``along`` holds the points, or the expression of coordinates; a positive force makes the distance or coordinate
    larger.
    """

    along: PointPair | Text

    @property
    def between(self) -> PointPair | None:
        """The two points; None on a coordinate."""
        return None if isinstance(self.along, Text) else self.along

    @property
    def coordinate(self) -> Text | None:
        """The expression of coordinates; None between points."""
        return self.along if isinstance(self.along, Text) else None

    @property
    def points(self) -> tuple[str, ...]:
        """The points that it acts between."""
        return self.between or ()

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Its points, or the names in its coordinate."""
        if isinstance(self.along, Text):
            return ("_".join(re.findall("[A-Za-z0-9]+", self.along.text))[:20],)
        return self.along


@dataclass(frozen=True, slots=True, kw_only=True)
class SpringLoad(LineLoad):
    """A linear spring of ``stiffness`` and length ``free`` without force, with a damper parallel to it."""

    kind: ClassVar[str] = "spring"

    stiffness: Text
    free: Text | None = None
    damping: Text | None = None

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Those of its three numbers that are given."""
        words = (("stiffness", self.stiffness), ("free length", self.free), ("damping", self.damping))
        return tuple((word, text) for word, text in words if text is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorsionSpringLoad(SpringLoad):
    """A spring on an angle."""

    kind: ClassVar[str] = "torsion_spring"


@dataclass(frozen=True, slots=True, kw_only=True)
class DamperLoad(LineLoad):
    """A linear damper."""

    kind: ClassVar[str] = "damper"

    damping: Text

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Its damping."""
        return (("damping", self.damping),)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawLoad(LineLoad):
    """A force given by the scalar ``value`` (N, or the generalized force of the coordinate)."""

    kind: ClassVar[str] = "law"

    value: Text
