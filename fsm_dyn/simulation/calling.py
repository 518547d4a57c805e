"""Evaluating a mode: by its own kernels, or on line where it has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel, call_kernel_at
from fsm_dyn.simulation.online import online_rhs
from fsm_dyn.simulation.online_forces import online_full
from fsm_dyn.simulation.tables import Tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@lean
def call_rhs(
    tables: Tables, chart: Integers, room: Floats, mode: int, t: float, x: Floats, c: Floats, out: Floats, at: int
) -> None:
    """Write ``x_dot`` of a mode to ``out[at:]``; ``chart`` and workspace ``room`` serve modes without kernels."""
    if tables.mode_rhs[mode] != 0:
        call_kernel_at(tables.mode_rhs[mode], t, x, c, out, at)
    else:
        online_rhs(tables, chart, room, mode, t, x, c, out, at)


@lean
def call_full(
    tables: Tables, chart: Integers, room: Floats, mode: int, t: float, x: Floats, c: Floats, out: Floats
) -> None:
    """Write the full output of a mode: see :class:`~fsm_dyn.simulation.tables.Tables`."""
    if tables.mode_full[mode] != 0:
        call_kernel(tables.mode_full[mode], t, x, c, out)
    else:
        online_full(tables, chart, room, mode, t, x, c, out)
