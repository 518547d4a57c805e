"""How good the chart of a mode embedded on line is: its pivots, and whether rows left out are still implied."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.online.context import ACTIVE, AT_A, AT_H, AT_M, AT_P, AT_Q, LISTS, RANK, SLIDES, Online
from fsm_dyn.online.embedding import REDUNDANT, force_rows
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import start_of
from fsm_dyn.simulation.compiled import lean

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@lean
def _weighted_norm(w: Floats, chart: Integers, row: int, U: int) -> float:
    """Return the square of a row's norm, speeds in units of the root of their inertia."""
    at_M = chart[AT_M]
    total = 0.0
    for j in range(U):
        inertia = w[at_M + j * (U + 1)]
        total += w[row + j] * w[row + j] / (inertia if inertia > 0.0 else 1.0)
    return total


@lean
def row_pivots(o: Online, least: float) -> float:
    """Return the smallest scaled pivot of the rows, ``least`` at most; 0 where a row left out holds something now."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_M, at_P, at_H = chart[AT_A], chart[AT_M], chart[AT_P], chart[AT_H]
    at_Q = chart[AT_Q]
    U, R, rank = o.sizes[tb.N_U], o.sizes[tb.N_ROWS], chart[RANK]
    columns, width = LISTS + 2 * R, U + 2
    if chart[SLIDES] == 1:
        force_rows(o, at_Q)
    for k in range(rank):
        inertia = w[at_M + chart[columns + k] * (U + 1)]
        size = np.sqrt(inertia) if inertia > 0.0 else 1.0
        norm = np.sqrt(_weighted_norm(w, chart, at_A + chart[LISTS + k] * U, U)) * size
        least = min(least, 1.0 / max(abs(w[at_P + k * width + k]) * norm, 1e-300))
        if chart[SLIDES] == 1:
            total = 0.0
            for j in range(U):
                mass = w[at_M + chart[columns + j] * (U + 1)]
                total += w[at_Q + k * U + j] * w[at_Q + k * U + j] / (mass if mass > 0.0 else 1.0)
            least = min(least, 1.0 / max(abs(w[at_H + k * U + k]) * np.sqrt(total) * size, 1e-300))
    for k in range(rank, chart[ACTIVE]):
        row = at_A + chart[LISTS + k] * U
        rest = 0.0
        for j in range(rank, U):
            left = w[row + chart[columns + j]]
            for m in range(rank):
                left -= w[row + chart[columns + m]] * w[at_P + m * width + j]
            inertia = w[at_M + chart[columns + j] * (U + 1)]
            rest += left * left / (inertia if inertia > 0.0 else 1.0)
        if rest > REDUNDANT * REDUNDANT * _weighted_norm(w, chart, row, U):
            return 0.0
    return least
