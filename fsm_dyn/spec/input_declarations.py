"""Inputs and how they run over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions.text import Text


@dataclass(frozen=True, slots=True)
class Schedule:
    """How an input runs over time unless a run says otherwise.

    ``kind`` is ``"constant"`` (one value), ``"linear"`` or ``"steps"`` (``points`` of time and value), or
    ``"expression"`` (``value`` is an expression of ``t`` and parameters).
    """

    kind: Literal["constant", "linear", "steps", "expression"]
    points: tuple[tuple[Text, Text], ...] = ()
    value: Text | None = None
    where: Location = NOWHERE


@dataclass(frozen=True, slots=True)
class Input:
    """A quantity given from outside, with its unit text and its schedule (default: constant 0)."""

    name: str
    unit: str = ""
    schedule: Schedule | None = None
    where: Location = NOWHERE
