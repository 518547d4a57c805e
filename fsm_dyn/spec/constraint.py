"""Constraints, one class each: rows that are always active, on positions, speeds or accelerations."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, Literal

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(ABC):
    """An always active row: ``expression`` is zero.

    ``joint``: the joint that it holds together; such a row is left out where no motion could break it.

    Attributes
    ----------
    kind : str
        What the row is on.
    """

    kind: ClassVar[Literal["velocity", "position"]]

    name: str
    expression: Text
    joint: str = ""
    where: Location = NOWHERE

    @property
    def kinematic(self) -> bool:
        """Whether it completes the definition of the speeds."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionConstraint(Constraint):
    """A row on coordinates."""

    kind: ClassVar[Literal["velocity", "position"]] = "position"


@dataclass(frozen=True, slots=True, kw_only=True)
class VelocityConstraint(Constraint):
    """A row on speeds; a ``kinematic`` one completes their definition."""

    kind: ClassVar[Literal["velocity", "position"]] = "velocity"

    kinematic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccelerationConstraint(VelocityConstraint):
    """The rate of the speed ``expression`` is ``acceleration``, until that is written out when the model is built."""

    acceleration: Text
