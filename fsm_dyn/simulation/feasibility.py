"""Forces that the motion leaves open, and whether some of them keep every law.

Where contacts repeat each other (a block on two corners that both stick) the rows have a null space: the forces
``y + N s`` give the same motion for every ``s``.  Which forces act is then not the question, only whether some that
act could keep all inequalities ``g·y >= h``.  That is a linear program in the few unknowns ``s``: the largest margin
``tau`` with ``g·(y + N s) - h >= tau``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.arena import Arena, indices, matrix, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.linear import factor, solve

PIVOT: Final = 1e-12
NEGLIGIBLE: Final = 1e-9
MOST_PIVOTS: Final = 500


@lean
def null_space(
    arena: Arena, factors: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64], rank: int
) -> NDArray[np.float64]:
    """Return a basis (n, n - rank) of the null space from the factors of :func:`~.linear.factor`.

    What is but rounding beside the rest of a basis vector is zero: a law that it concerns cannot be kept by it.
    """
    n = factors.shape[0]
    basis = matrix(arena, n, n - rank)
    for k in range(n - rank):
        basis[columns[rank + k], k] = 1.0
        for back in range(rank):
            i = rank - 1 - back
            value = -factors[rows[i], columns[rank + k]]
            for j in range(i + 1, rank):
                value -= factors[rows[i], columns[j]] * basis[columns[j], k]
            basis[columns[i], k] = value / factors[rows[i], columns[i]]
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(basis[i, k]))
        for i in range(n):
            if abs(basis[i, k]) <= NEGLIGIBLE * largest:
                basis[i, k] = 0.0
    return basis


@lean
def smallest_norm(arena: Arena, y: NDArray[np.float64], basis: NDArray[np.float64], unit: NDArray[np.float64]) -> None:
    """Take out of ``y`` what lies in the null space: of all forces ``unit * y`` of one effect the smallest remain."""
    n, k = basis.shape
    gram, right, shift = matrix(arena, k, k), vector(arena, k), vector(arena, k)
    for a in range(k):
        for i in range(n):
            right[a] += unit[i] * unit[i] * basis[i, a] * y[i]
        for b in range(k):
            for i in range(n):
                gram[a, b] += unit[i] * unit[i] * basis[i, a] * basis[i, b]
    rows, columns, scratch = indices(arena, k), indices(arena, k), vector(arena, k)
    rank = factor(gram, rows, columns, PIVOT)
    solve(gram, rows, columns, rank, right, scratch, shift)
    for i in range(n):
        for a in range(k):
            y[i] -= basis[i, a] * shift[a]


@lean
def _widest_along(
    g: NDArray[np.float64], slack: NDArray[np.float64], cap: float, s: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Do what :func:`widest_margin` does for one unknown: two laws that lean against each other bound the margin.

    Of all ``s`` that give it the smallest is taken.
    """
    tau, fixed = cap, cap
    for i in range(g.shape[0]):
        if abs(g[i]) <= PIVOT:
            fixed = min(fixed, slack[i])
        elif g[i] > 0.0:
            for j in range(g.shape[0]):
                if g[j] < -PIVOT:
                    tau = min(tau, (slack[j] * g[i] - slack[i] * g[j]) / (g[i] - g[j]))
    low, high = -np.inf, np.inf
    for i in range(g.shape[0]):
        if g[i] > PIVOT:
            low = max(low, (tau - slack[i]) / g[i])
        elif g[i] < -PIVOT:
            high = min(high, (tau - slack[i]) / g[i])
    s[0] = min(max(0.0, low), max(low, high))
    return min(tau, fixed), s


@lean
def _depends(g: NDArray[np.float64], i: int) -> bool:
    """Whether an inequality depends on the unknowns."""
    largest = 0.0
    for a in range(g.shape[1]):
        largest = max(largest, abs(g[i, a]))
    return bool(largest > PIVOT)


@lean
def widest_margin(
    arena: Arena, g: NDArray[np.float64], slack: NDArray[np.float64], cap: float
) -> tuple[float, NDArray[np.float64]]:
    """Maximise ``tau <= cap`` with ``slack + g s >= tau``, by the simplex method with Bland's rule.

    Inequalities that do not depend on ``s`` bound ``tau`` but take no part in the choice of ``s``: where such a one is
    the narrowest, the others would have room that is left to chance.

    Parameters
    ----------
    g : (m, k), slack : (m,)
        The inequalities; ``slack`` is their value at ``s = 0``.

    Returns
    -------
    tau : float
    s : (k,)
    """
    m, k = g.shape
    if k == 1:
        return _widest_along(g[:, 0], slack, cap, vector(arena, 1))
    lowest, fixed = cap, cap
    for i in range(m):
        if _depends(g, i):
            lowest = min(lowest, slack[i])
        else:
            fixed = min(fixed, slack[i])
    width = 2 * k + 1 + m + 1  # s+, s-, tau - lowest, one slack variable per row and one for the cap
    table = matrix(arena, m + 2, width + 1)
    basic = indices(arena, m + 1)
    for i in range(m + 1):
        if i < m:
            for a in range(k if _depends(g, i) else 0):
                table[i, a], table[i, k + a] = -g[i, a], g[i, a]
        takes_part = i == m or _depends(g, i)
        table[i, 2 * k] = 1.0 if takes_part else 0.0
        table[i, 2 * k + 1 + i] = 1.0
        table[i, width] = (slack[i] if i < m else cap) - lowest if takes_part else 0.0
        basic[i] = 2 * k + 1 + i
    table[m + 1, 2 * k] = -1.0
    for _ in range(MOST_PIVOTS):
        entering = -1
        for j in range(width):
            if table[m + 1, j] < -PIVOT:
                entering = j
                break
        if entering < 0:
            break
        leaving, least = -1, 0.0
        for i in range(m + 1):
            if table[i, entering] > PIVOT:
                ratio = table[i, width] / table[i, entering]
                if leaving < 0 or ratio < least or (ratio == least and basic[i] < basic[leaving]):
                    leaving, least = i, ratio
        if leaving < 0:
            break
        inverse = 1.0 / table[leaving, entering]
        for j in range(width + 1):
            table[leaving, j] *= inverse
        for i in range(m + 2):
            factor_ = table[i, entering]
            if i != leaving and factor_ != 0.0:
                for j in range(width + 1):
                    table[i, j] -= factor_ * table[leaving, j]
        basic[leaving] = entering
    s = vector(arena, k)
    for i in range(m + 1):
        if basic[i] < k:
            s[basic[i]] += table[i, width]
        elif basic[i] < 2 * k:
            s[basic[i] - k] -= table[i, width]
    return min(lowest + table[m + 1, width], fixed), s
