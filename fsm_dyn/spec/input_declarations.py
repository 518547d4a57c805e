"""Inputs and how they run over time."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(ABC):
    """How an input runs over time unless a run says otherwise.

    Attributes
    ----------
    kind : str
        The key of the language.
    """

    kind: ClassVar[str]

    where: Location = NOWHERE

    @property
    def times(self) -> tuple[Text, ...]:
        """The times of its table (s); none without a table."""
        return ()

    @property
    def values(self) -> tuple[Text, ...]:
        """The expressions of its values, in the input's unit."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchedule(Schedule):
    """A table; ``points`` are times (s) and values."""

    points: tuple[tuple[Text, Text], ...]

    @property
    def times(self) -> tuple[Text, ...]:
        """The times of its table (s)."""
        return tuple(time for time, _ in self.points)

    @property
    def values(self) -> tuple[Text, ...]:
        """The values of its table."""
        return tuple(value for _, value in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSchedule(TableSchedule):
    """Values between which the input is linear."""

    kind: ClassVar[str] = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSchedule(TableSchedule):
    """Values that the input keeps until the next time."""

    kind: ClassVar[str] = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionSchedule(Schedule):
    """An expression ``value`` of ``t`` and parameters."""

    kind: ClassVar[str] = "expression"

    value: Text

    @property
    def values(self) -> tuple[Text, ...]:
        """Its expression."""
        return (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantSchedule(ExpressionSchedule):
    """One value at all times."""

    kind: ClassVar[str] = "constant"


@dataclass(frozen=True, slots=True)
class Input:
    """A quantity given from outside, with its unit text and its schedule (default: constant 0)."""

    name: str
    unit: str = ""
    schedule: Schedule | None = None
    where: Location = NOWHERE
