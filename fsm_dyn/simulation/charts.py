"""Changing the choice of independent speeds while the active set stays."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.state import State, Work
from fsm_dyn.simulation.tables import Tables

Floats = NDArray[np.float64]

BETTER: Final = 2.0  # how many times the pivot of the other chart must be larger
GOOD: Final = 0.01  # pivot with which a mode is entered without looking for another chart


@lean
def better_chart(tables: Tables, state: State, work: Work, t: float, x: Floats, pivot: float) -> int:
    """Return the chart of the active set with the largest pivot at ``x``, -1 if none is enough better.

    ``pivot`` is that of the present chart; ``work.full_mid`` is overwritten.
    """
    mode = state.counters[st.MODE]
    at = x.shape[0] + tables.sizes[tb.N_U]
    least = BETTER * pivot if pivot > 0.0 else 0.0
    best = -1
    for other in range(tables.sizes[tb.N_MODES]):
        if other == mode or tables.mode_group[other] != tables.mode_group[mode]:
            continue
        call_kernel(tables.mode_full[other], t, x, state.c, work.full_mid)
        found = work.full_mid[at]
        if found > least:
            least = found
            best = other
    return best


@lean
def entry_chart(tables: Tables, state: State, work: Work, target: int) -> int:
    """Return a chart of the mode ``target`` that is good at the state at hand, ``target`` itself if it is.

    Where none is, -1; or, once one was asked for, the best there is.  ``work.full_mid`` is overwritten.
    """
    at = state.x.shape[0] + tables.sizes[tb.N_U]
    best, largest = target, -1.0
    for k in range(-1, tables.sizes[tb.N_MODES]):
        chart = target if k < 0 else k
        if tables.mode_group[chart] != tables.mode_group[target]:
            continue
        call_kernel(tables.mode_full[chart], state.clock[st.TIME], state.x, state.c, work.full_mid)
        if work.full_mid[at] >= GOOD:
            return chart
        if work.full_mid[at] > largest:
            best, largest = chart, work.full_mid[at]
    return best if state.counters[st.ASKED] == 1 else -1
