"""Largest value of a quantity over a run: of its rows, and of the dense output between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsm_dyn.results.arrays import FloatArray, IntArray

INSIDE = 7  # times inside a step, or a bracket of it
ROUNDS = 14  # each makes the brackets four times shorter: 4**-14 of a step, beyond the square root of machine precision
_ROUNDING = 4.0 * np.finfo(np.float64).eps
_FRACTIONS = np.linspace(0.0, 1.0, INSIDE + 2)


def largest(
    t: FloatArray,
    at_rows: FloatArray,
    first: IntArray,
    end: float,
    between: Callable[[FloatArray, IntArray], FloatArray],
    bound: FloatArray | None = None,
) -> tuple[float, float]:
    """Return the supremum of a quantity over some steps of a run, and its time.

    The largest values of a uniform grid in each step are bracketed, and the brackets refined as long as they may hold
    the largest value of all: the quantity is taken to have at most one maximum within two intervals of that grid.

    Parameters
    ----------
    t : ndarray, shape (n,)
        Times of the rows, s.
    at_rows : ndarray, shape (n,)
        The quantity at the rows.
    first : ndarray of int, shape (k,)
        Rows that begin the steps; at least one.  A last row stands for itself.
    end : float
        Time after which the run does not count, s; at or after the last of ``t[first]``.
    between : callable
        Gives the quantity, shape (m,), at times of shape (m,) within the steps that begin at the rows, shape (m,).
    bound : ndarray, shape (k,), optional
        What the quantity does not exceed in each step: steps in which that is below a row's value are passed over.

    Returns
    -------
    value : float
    time : float
        s
    """
    last = np.minimum(first + 1, len(t) - 1)
    cut = t[last] > end
    if bound is not None:
        reached = max(at_rows[first].max(), at_rows[last[~cut]].max(initial=-np.inf))
        kept = ~(bound < reached)
        first, last, cut = first[kept], last[kept], cut[kept]
    lower, upper = t[first], np.where(cut, end, t[last])
    grid = lower[:, None] + (upper - lower)[:, None] * _FRACTIONS
    grid[:, -1] = upper
    values = np.empty_like(grid)
    values[:, 0], values[:, -1] = at_rows[first], at_rows[last]
    if cut.any():
        values[cut, -1] = between(upper[cut], first[cut])
    point = upper == lower
    values[point] = at_rows[first[point], None]
    values[~point, 1:-1] = _evaluated(between, grid[~point, 1:-1], first[~point])
    best, time = _best(values, grid)
    active = ~point
    grid, values, first = grid[active], values[active], first[active]
    for number in range(ROUNDS):
        spread = np.ptp(values, axis=1)
        reachable = (values.max(axis=1) + spread >= best) & (spread > _ROUNDING * abs(best))
        if number > 0:  # largest at the end of a step still: falling from there, and the value at its row is known
            top = values.argmax(axis=1)
            reachable &= (top > 0) & (top <= INSIDE)
        grid, values, first = grid[reachable], values[reachable], first[reachable]
        if not len(first):
            break
        grid, values = _bracketed(grid, values)
        values[:, 1:-1] = _evaluated(between, grid[:, 1:-1], first)
        value, instant = _best(values, grid)
        if value > best:
            best, time = value, instant
    return best, time


def _bracketed(grid: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return new grids from the neighbour before each largest value to the one after; values at their ends are set."""
    rows = np.arange(len(grid))
    top = values.argmax(axis=1)
    low, high = np.maximum(top - 1, 0), np.minimum(top + 1, INSIDE + 1)
    start, stop = grid[rows, low], grid[rows, high]
    finer = start[:, None] + (stop - start)[:, None] * _FRACTIONS
    finer[:, -1] = stop
    found = np.empty_like(values)
    found[:, 0], found[:, -1] = values[rows, low], values[rows, high]
    return finer, found


def _evaluated(between: Callable[[FloatArray, IntArray], FloatArray], times: FloatArray, first: IntArray) -> FloatArray:
    if not times.size:
        return times
    return between(times.ravel(), np.repeat(first, times.shape[1])).reshape(times.shape)


def _best(values: FloatArray, grid: FloatArray) -> tuple[float, float]:
    """Return the largest value and the earliest time of it."""
    best = float(values.max())
    return best, float(grid[values == best].min())
