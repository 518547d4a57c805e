"""Outlines to draw a body with, one class each."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from fsm_dyn.expressions.text import Text

DrawnPoint: TypeAlias = tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnOutline(ABC):
    """One outline to draw a body with, in its frame, from its centre (m).

    A point is 2 or 3 expressions of parameters.  ``frame`` is the one in whose x-y plane the outline lies, where that
    is not the body's.

    Attributes
    ----------
    kind : str
        The key of the language.
    closed : bool
        Whether its line ends where it begins.
    """

    kind: ClassVar[str]
    closed: ClassVar[bool] = False

    frame: str | None = None

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """The points that it is given by; none where it is about the body's centre."""
        return ()

    @property
    def label(self) -> str:
        """What it writes; empty for lines."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutline(DrawnOutline):
    """A line through ``points``."""

    kind: ClassVar[str] = "line"

    points: tuple[DrawnPoint, ...]

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """Its points."""
        return self.points


@dataclass(frozen=True, slots=True, kw_only=True)
class PolygonOutline(LineOutline):
    """A closed line."""

    kind: ClassVar[str] = "polygon"
    closed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOutline(DrawnOutline):
    """An outline about one point ``at``, the body's centre where none is given."""

    at: DrawnPoint | None = None

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """Its point, where one is given."""
        return () if self.at is None else (self.at,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleOutline(PlacedOutline):
    """A circle of a ``radius`` (m)."""

    kind: ClassVar[str] = "circle"
    closed: ClassVar[bool] = True

    radius: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOutline(PlacedOutline):
    """A ``text`` at a point."""

    kind: ClassVar[str] = "text"

    text: str

    @property
    def label(self) -> str:
        """Its text."""
        return self.text
