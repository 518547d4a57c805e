"""Rank of the constraint rows of a mode: their smallest part, and when it vanishes (docs/theory.md, "Change points").

The rows held are scaled on both sides, ``B = D A diag(M)^-1/2`` with D the inverse of the largest size that each row is
known to have had: divided by its own norm, a row that vanishes as a whole would not show.  Pivoted orthogonalisation
splits them, ``B[order] = L Q``.  The rows that come last, taken free of those before, ``N B``, are what may be lost;
``N (dB/dt) Qᵀ`` tells how fast.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.arena import Arena, indices, matrix, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REDUNDANT: Final = 1e-6  # a row of which less than this part is left is implied by the others
SMALL: Final = 0.3  # part of the first row left below which a row may be about to vanish


@lean
def rows_held(arena: Arena, tables: Tables, mode: int, positional: bool) -> Integers:
    """List the constraint rows active in a mode, bilateral ones first; kinematic rows are never among them.

    Parameters
    ----------
    positional : bool
        Whether to list only rows that have a residual on coordinates.
    """
    rows = indices(arena, tables.sizes[tb.N_ROWS])
    count = 0
    for r in range(rows.shape[0]):
        role = tables.row_role[r]
        if role == tb.ALWAYS_POSITION or (role == tb.ALWAYS and not positional):
            rows[count] = r
            count += 1
    for k in range(tables.sizes[tb.N_CONTACTS]):
        code = tables.mode_states[mode, k]
        if code == tb.FREE:
            continue
        normal, tangent = tables.contact_rows[k, 0], tables.contact_rows[k, 1]
        rigid = normal >= 0 and tables.contact_kind[k] != tb.COMPLIANT
        if rigid and (not positional or tables.row_positional[normal] == 1):
            rows[count] = normal
            count += 1
        if tangent >= 0 and code == tb.HELD and not positional:
            for i in range(2 if tables.contact_flags[k] & tb.IN_SPACE else 1):
                rows[count] = tangent + i
                count += 1
    return rows[:count]


@lean
def column_scales(terms: Terms, scale: Floats) -> None:
    """Write ``diag(M)^-1/2``, 1 where a speed has no inertia, shape (n_u,)."""
    for i in range(scale.shape[0]):
        scale[i] = 1.0 / np.sqrt(terms.M[i, i]) if terms.M[i, i] > 0.0 else 1.0


@lean
def row_norm(terms: Terms, row: int, scale: Floats) -> float:
    """Return the norm of a row in scaled speeds."""
    square = 0.0
    for i in range(scale.shape[0]):
        square += (terms.A[row, i] * scale[i]) ** 2
    return float(np.sqrt(square))


@lean
def fill_scaled(terms: Terms, rows: Integers, scale: Floats, sizes: Floats, B: Floats) -> None:
    """Write the rows scaled, ``B`` of shape (m, n_u); ``sizes`` is indexed by row."""
    for k in range(rows.shape[0]):
        factor = 1.0 / sizes[rows[k]] if sizes[rows[k]] > 0.0 else 1.0
        for i in range(scale.shape[0]):
            B[k, i] = terms.A[rows[k], i] * scale[i] * factor


@lean
def independent_rows(arena: Arena, terms: Terms, rows: Integers, n_u: int) -> Integers:
    """Return those of ``rows`` that no others imply, in the same order.

    A configuration that is off its rows by some residual leaves of a redundant row a part of that size; a row of which
    no more is left must not be used, as moving along it would divide the residual by itself.
    """
    m = rows.shape[0]
    scale, sizes = vector(arena, n_u), vector(arena, terms.residual.shape[0])
    column_scales(terms, scale)
    off = 0.0
    for r in rows:
        sizes[r] = row_norm(terms, r, scale)
        off = max(off, abs(terms.residual[r]) / max(sizes[r], 1e-300))
    B, order, L = matrix(arena, m, n_u), indices(arena, m), matrix(arena, m, m)
    fill_scaled(terms, rows, scale, sizes, B)
    taken = orthogonalise(B, order, L, max(REDUNDANT, 10.0 * off))
    kept, count = indices(arena, m), 0
    for k in range(m):
        for i in range(taken):
            if order[i] == k:
                kept[count] = rows[k]
                count += 1
    return kept[:count]


@lean
def orthogonalise(B: Floats, order: Integers, L: Floats, least: float) -> int:
    """Orthogonalise rows with pivoting, in place: ``B_before[order[i]] = sum_j L[i, j] B[order[j]]``.

    Modified Gram-Schmidt, each remainder taken twice.  Rows beyond the rank returned keep what is left of them.

    Parameters
    ----------
    B : float64 array, shape (m, n)
    order : int64 array, shape (m,)
        Out: the order in which the rows were taken.
    L : float64 array, shape (m, m)
        Out: lower triangular.
    least : float
        A remainder below this part of the first ends it.

    Returns
    -------
    int
        Number of rows taken.
    """
    m, n = B.shape
    for i in range(m):
        order[i] = i
        for j in range(m):
            L[i, j] = 0.0
    first = 0.0
    for k in range(m):
        best, size = k, -1.0
        for i in range(k, m):
            square = 0.0
            for j in range(n):
                square += B[order[i], j] * B[order[i], j]
            if square > size * (1.0 + 1e-6):  # ties go by order, whatever the rounding
                best, size = i, square
        size = np.sqrt(max(size, 0.0))
        if k == 0:
            first = size
        if not size > least * first:
            return k
        order[k], order[best] = order[best], order[k]
        for j in range(k):
            L[k, j], L[best, j] = L[best, j], L[k, j]
        _take_row(B, order, L, k)
    return int(m)


@lean
def _take_row(B: Floats, order: Integers, L: Floats, k: int) -> None:
    """Make row ``order[k]`` a unit vector beside those before it, and take its part out of those after it."""
    m, n = B.shape
    row = order[k]
    for j in range(k):  # once more: what rounding left along the rows before
        product = 0.0
        for i in range(n):
            product += B[row, i] * B[order[j], i]
        for i in range(n):
            B[row, i] -= product * B[order[j], i]
        L[k, j] += product
    square = 0.0
    for i in range(n):
        square += B[row, i] * B[row, i]
    L[k, k] = np.sqrt(square)
    if square == 0.0:
        return
    for i in range(n):
        B[row, i] /= L[k, k]
    for p in range(k + 1, m):
        other = order[p]
        product = 0.0
        for i in range(n):
            product += B[other, i] * B[row, i]
        if product != 0.0:
            for i in range(n):
                B[other, i] -= product * B[row, i]
        L[p, k] = product


@lean
def least_move(B: Floats, order: Integers, L: Floats, rank: int, right: Floats, move: Floats) -> None:
    """Write the shortest ``move`` (n,) with ``B_before move = right`` for the rows taken; ``right`` (m,) is lost."""
    n = B.shape[1]
    for i in range(n):
        move[i] = 0.0
    for k in range(rank):
        row = order[k]
        value = right[row]
        for j in range(k):
            value -= L[k, j] * right[order[j]]
        value /= L[k, k]
        right[row] = value
        for i in range(n):
            move[i] += value * B[row, i]
