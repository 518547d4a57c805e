"""Frames, one class each: how they are turned against their parents."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame(ABC):
    """A frame that turns against its parent.

    Attributes
    ----------
    kind : str
        The key of the language, ``simple`` for one rotation.
    """

    kind: ClassVar[str]

    name: str
    parent: str
    where: Location = NOWHERE

    @property
    def angles(self) -> tuple[Text, ...]:
        """The expressions of its angles (rad)."""
        return ()

    @property
    def euler_names(self) -> tuple[str, ...]:
        """The four coordinates that it declares, scalar first; none without Euler parameters."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedFrame(Frame):
    """A sequence of rotations: pairs of the letter of an axis and an angle (rad), in the order written."""

    rotations: tuple[tuple[str, Text], ...]

    @property
    def angles(self) -> tuple[Text, ...]:
        """The angles of its rotations."""
        return tuple(angle for _, angle in self.rotations)

    def about_body_axes(self, turns: Sequence[T]) -> Sequence[T]:
        """Return one entry for each rotation, in the order of the equivalent turns about body-fixed axes."""
        return turns


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleFrame(RotatedFrame):
    """One rotation."""

    kind: ClassVar[str] = "simple"

    @property
    def axis(self) -> str:
        """The letter of its axis."""
        return self.rotations[0][0]

    @property
    def angle(self) -> Text:
        """Its angle (rad)."""
        return self.rotations[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFrame(RotatedFrame):
    """A sequence of rotations about body-fixed axes."""

    kind: ClassVar[str] = "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFrame(RotatedFrame):
    """A sequence of rotations about the axes of the parent."""

    kind: ClassVar[str] = "space"

    def about_body_axes(self, turns: Sequence[T]) -> Sequence[T]:
        """Return the entries in the opposite order."""
        return turns[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerFrame(Frame):
    """A frame with Euler parameters: coordinates named by the stem ``euler`` and a number, ``e0 e1 e2 e3``."""

    kind: ClassVar[str] = "euler_parameters"

    euler: str

    @property
    def euler_names(self) -> tuple[str, ...]:
        """Stem and number, from 0 to 3."""
        return tuple(f"{self.euler}{i}" for i in range(4))
