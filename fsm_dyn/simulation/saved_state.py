"""Saved state of a run, from which it can be continued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Restored

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


Place = tuple[tuple[int, ...], float, Floats, Floats]  # contact states, time (s), state and context


@dataclass(frozen=True)
class KnownCharts:
    """Which charts a run has asked for, beside the first of every mode, and where; and where it did so in vain.

    ``places``: in the order in which they came.  ``in_vain``: contact states, and the pivot there.
    """

    places: tuple[Place, ...] = ()
    in_vain: tuple[tuple[tuple[int, ...], float], ...] = ()


@dataclass  # not frozen: to fill one that is takes six times as long
class SavedState:
    """Where a run can be continued.

    Attributes
    ----------
    words : uint64 array
        What the runtime saved (``runtime/saved_state.h``).
    rows, transitions, passages : int
        How many were recorded before; those after it are made again.
    charts : KnownCharts
        Charts that the run had asked for.
    charted : int
        Number of steps made when a chart was asked for last.
    solver : mapping, optional
        State of an implicit method (:mod:`fsm_dyn.simulation.solver_state`).
    """

    words: Words
    rows: int
    transitions: int
    passages: int
    charts: KnownCharts = field(default_factory=KnownCharts)
    charted: int = -1
    solver: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class FirstRow:
    """The last row recorded before a state was saved: t, x, x_dot, state at mid-step, context after the parameters."""

    values: Floats
    mode: int


def check(result: int) -> None:
    """Raise InputError where a state was not restored.

    Parameters
    ----------
    result : int
        The status returned by the runtime.

    Raises
    ------
    InputError
        It is not that of success.
    """
    if result != Restored.RESTORED:
        raise InputError("the run cannot be continued", found=library.restored_sentence(result), remedy="run it again")
