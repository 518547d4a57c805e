"""Landing: putting a configuration on its constraint rows to rounding (docs/theory.md, "Change points").

A stage of a step is off the rows by the error of the stage.  Where rows have nearly lost rank, that error is divided by
what is left of them; on the rows nothing is.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Workspace, indices, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.rank import REDUNDANT, column_scales, fill_scaled, least_move, orthogonalise, rows_held
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms, open_terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LANDED: Final = 1e-13  # a move shorter than this part of the coordinates ends it
MET: Final = 10.0  # times the tolerance of the projection that rows may be missed by, redundant ones included
_MOST_MOVES: Final = 8


@lean
def land(
    work: Workspace, tables: Tables, t: float, x: Floats, c: Floats, mode: int, rank: Floats, farthest: float
) -> bool:
    """Put a configuration on the rows of its mode to rounding, by the smallest moves of the scaled speeds.

    Parameters
    ----------
    x : float64 array
        State; its coordinates in and out.
    rank : float64 array
        ``State.rank``, for the sizes of rows.
    farthest : float
        A move beyond this (in scaled speeds times time) may lead to another branch.

    Returns
    -------
    bool
        False where the rows could not be met, or only by too long a move.
    """
    n_q, n_u, n_rows = tables.sizes[tb.N_Q], tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS]
    sizes = rank[st.RANK_COUNT : st.RANK_COUNT + n_rows]
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    rows = rows_held(work, tables, mode, False)
    m = rows.shape[0]
    scale, right, move = vector(work, n_u), vector(work, m), vector(work, n_u)
    B, order, L = matrix(work, m, n_u), indices(work, m), matrix(work, m, m)
    moved, last = 0.0, np.inf
    for _ in range(_MOST_MOVES):
        call_kernel(tables.terms[0], t, x, c, terms.whole)
        column_scales(terms, scale)
        fill_scaled(terms, rows, scale, sizes, B)
        taken = orthogonalise(B, order, L, REDUNDANT)
        for k in range(m):
            right[k] = 0.0
            if tables.row_positional[rows[k]] == 1:
                right[k] = -terms.residual[rows[k]] / (sizes[rows[k]] if sizes[rows[k]] > 0.0 else 1.0)
        least_move(B, order, L, taken, right, move)
        square = 0.0
        for i in range(n_u):
            square += move[i] * move[i]
            move[i] *= scale[i]
        length = np.sqrt(square)
        moved += length
        if not moved <= farthest:
            return False
        largest = 0.0
        for i in range(n_q):
            step = 0.0
            for j in range(n_u):
                step += terms.W[i, j] * move[j]
            x[i] += step
            largest = max(largest, abs(step) / (1.0 + abs(x[i])))
        if largest <= LANDED or length >= 0.5 * last:  # shorter moves are rounding
            return _residual(terms, rows, tables) <= MET * tables.tolerances[tol.PROJECTION]
        last = length
    return False


@lean
def _residual(terms: Terms, rows: Integers, tables: Tables) -> float:
    """Return the largest residual of the rows, those left out as redundant included."""
    largest = 0.0
    for r in rows:
        if tables.row_positional[r] == 1:
            largest = max(largest, abs(terms.residual[r]))
    return largest
