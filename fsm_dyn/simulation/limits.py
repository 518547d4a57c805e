"""Why a motion cannot go on, where constraint rows lose rank (docs/theory.md, "Change points").

Told from the rows that are small or vanish, each taken free of those before it, ``n (A u + b)``: what they ask of the
speeds, ``n b``, of the accelerations, ``n gamma``, and whether they hold something beside the configuration at hand.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.arena import Workspace, indices, matrix, release, vector
from fsm_dyn.simulation.change_points import assess, combination_of, rows_along, speed_norm
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.rank import REDUNDANT, column_scales, fill_scaled, orthogonalise, rows_held
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import open_terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AT_REST: Final = 1e-9  # scaled speed below which nothing moves
WEAK: Final = 1e-4  # what is left of a row that is stretched to its limit
DRIVEN: Final = 1e-3  # part of the largest speed imposed that such a row must go on asking for
TURNS_UP: Final = 1e-3  # change, per scaled length, of a row that vanishes here and holds something elsewhere
MISSED: Final = 1e-6  # acceleration that a row that vanishes may ask for, relative to its terms
_EXTENT: Final = 1e-6


@lean
def why_not(
    work: Workspace, tables: Tables, t: float, x: Floats, x_dot: Floats, c: Floats, mode: int, rank: Floats, status: int
) -> int:
    """Name the end of a run that failed with ``status``, if it is one of those that belong to a loss of rank.

    Parameters
    ----------
    work, tables, t, x, x_dot, c, mode, rank
        As for :func:`~fsm_dyn.simulation.change_points.assess`.

    Returns
    -------
    int
        ``STRETCHED`` (``rank[AHEAD]`` is then how long the motion could have gone on, s), ``UNDETERMINED``,
        ``NO_BRANCH``, or ``status``.
    """
    if status < outcomes.STEP_TOO_SMALL or tables.mode_flags[mode] & tb.RANKS == 0:
        return status
    asked = (
        status == outcomes.STEP_TOO_SMALL
        or status == outcomes.NON_FINITE
        or status == outcomes.SINGULAR
        or status == outcomes.PROJECTION_FAILED
    )
    if not asked:
        return status
    for i in range(x.shape[0]):
        if not np.isfinite(x[i]):
            return status
        if not np.isfinite(x_dot[i]):
            x_dot[i] = 0.0
    assess(work, tables, t, x, x_dot, c, mode, rank)
    speed = rank[st.SPEED_NORM]
    driven, missed = _asked_for(work, tables, t, x, c, mode, rank)
    if speed <= AT_REST and vanishing(work, tables, t, x, c, mode, rank) > 0:
        return outcomes.UNDETERMINED
    if driven > DRIVEN:
        rank[st.AHEAD] = 0.5 * rank[st.SIGMA] / max(rank[st.RATE], 1e-300)
        return outcomes.STRETCHED
    return outcomes.NO_BRANCH if missed > MISSED else status


@lean
def _asked_for(
    work: Workspace, tables: Tables, t: float, x: Floats, c: Floats, mode: int, rank: Floats
) -> tuple[float, float]:
    """Return what the weak rows ask of the speeds, and the vanished ones of the accelerations, relative; mark them."""
    release(work, (0, 0))
    n_u, n_rows = tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS]
    sizes, weights = rank[st.RANK_COUNT : st.RANK_COUNT + n_rows], rank[st.RANK_COUNT + n_rows :]
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    rows = rows_held(work, tables, mode, False)
    m = rows.shape[0]
    scale = vector(work, n_u)
    column_scales(terms, scale)
    B, order, L = matrix(work, m, n_u), indices(work, m), matrix(work, m, m)
    fill_scaled(terms, rows, scale, sizes, B)
    taken = orthogonalise(B, order, L, WEAK)
    combination = vector(work, m)
    driven, missed, imposed = 0.0, 0.0, 1e-300
    for r in rows:
        imposed = max(imposed, abs(terms.b[r]) / max(sizes[r], 1e-300))
    for k in range(taken, m):
        combination_of(L, taken, k, combination)
        row = rows[order[k]]
        speed, left = terms.b[row] / max(sizes[row], 1e-300), terms.gamma[row] / max(sizes[row], 1e-300)
        terms_of = abs(left)
        for j in range(taken):
            other = rows[order[j]]
            speed -= combination[j] * terms.b[other] / max(sizes[other], 1e-300)
            part = combination[j] * terms.gamma[other] / max(sizes[other], 1e-300)
            left, terms_of = left - part, terms_of + abs(part)
        driven = max(driven, abs(speed) / imposed)
        weak = 0.0
        for i in range(n_u):
            weak += B[order[k], i] ** 2
        if np.sqrt(weak) < REDUNDANT:
            missed = max(missed, abs(left) / max(terms_of, 1e-300) if terms_of > 1e-9 else 0.0)
        if abs(speed) > DRIVEN * imposed or abs(left) > MISSED * terms_of:
            weights[row] = 1.0
            for j in range(taken):
                weights[rows[order[j]]] = max(weights[rows[order[j]]], abs(combination[j]))
    return driven, missed


@lean
def vanishing(work: Workspace, tables: Tables, t: float, x: Floats, c: Floats, mode: int, rank: Floats) -> int:
    """Return how many rows others imply here but not beside it: rows that always repeat others are not counted.

    Beside it is where any motion leads that the rows allow, seen in one direction that has a part of each.
    """
    release(work, (0, 0))
    n_q, n_u, n_rows = tables.sizes[tb.N_Q], tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS]
    sizes, weights = rank[st.RANK_COUNT : st.RANK_COUNT + n_rows], rank[st.RANK_COUNT + n_rows :]
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    rows = rows_held(work, tables, mode, False)
    m = rows.shape[0]
    scale = vector(work, n_u)
    column_scales(terms, scale)
    before, Q = matrix(work, m, n_u), matrix(work, m, n_u)
    fill_scaled(terms, rows, scale, sizes, before)
    fill_scaled(terms, rows, scale, sizes, Q)
    order, L = indices(work, m), matrix(work, m, m)
    taken = orthogonalise(Q, order, L, REDUNDANT)
    if taken == m:
        return 0
    way, x_dot = vector(work, n_u), vector(work, x.shape[0])
    for i in range(n_u):
        way[i] = 1.0 + (0.6180339887498949 * (i + 1)) % 1.0
    _project_out(Q, order, taken, way)
    norm = 0.0
    for i in range(n_u):
        norm += way[i] * way[i]
    if not norm > 1e-12:
        return 0
    for i in range(n_q):
        for j in range(n_u):
            x_dot[i] += terms.W[i, j] * scale[j] * way[j] / np.sqrt(norm)
    after = rows_along(work, tables, terms, t, x, x_dot, c, rows, scale, sizes, _EXTENT, 0.0)
    count, combination, change = 0, vector(work, m), vector(work, n_u)
    for k in range(taken, m):
        combination_of(L, taken, k, combination)
        for i in range(n_u):
            change[i] = (after[order[k], i] - before[order[k], i]) / _EXTENT
            for j in range(taken):
                change[i] -= combination[j] * (after[order[j], i] - before[order[j], i]) / _EXTENT
        _project_out(Q, order, taken, change)
        square = 0.0
        for i in range(n_u):
            square += change[i] * change[i]
        if square > TURNS_UP * TURNS_UP:
            count += 1
            weights[rows[order[k]]] = 1.0
    return count


@lean
def _project_out(Q: Floats, order: Integers, taken: int, vector_: Floats) -> None:
    """Take the parts along the first rows taken out of a vector."""
    for k in range(taken):
        product = 0.0
        for i in range(vector_.shape[0]):
            product += vector_[i] * Q[order[k], i]
        for i in range(vector_.shape[0]):
            vector_[i] -= product * Q[order[k], i]


@lean
def rests_in_change_point(
    work: Workspace, tables: Tables, t: float, x: Floats, c: Floats, mode: int, rank: Floats
) -> bool:
    """Whether the mechanism is at rest where rows vanish that hold something beside it."""
    if rank[st.INDEPENDENT] >= rank[st.ACTIVE] or speed_norm(rank) > AT_REST:
        return False
    return vanishing(work, tables, t, x, c, mode, rank) > 0
