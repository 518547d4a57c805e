"""The motion between two recorded rows: one quartic per step (docs/theory.md, "Between the rows")."""

from __future__ import annotations

import numpy as np

from fsm_dyn.results.arrays import FloatArray, IntArray

_ROUNDING = 256.0 * np.finfo(np.float64).eps


def quartic(theta: FloatArray, h: FloatArray, x0: FloatArray, d0: FloatArray, xm: FloatArray, x1: FloatArray,
            d1: FloatArray) -> FloatArray:  # fmt: skip
    """Evaluate the quartic that meets both ends with their slopes and the middle of a step.

    It is the cubic through the ends, plus the one quartic that vanishes there with its slope, scaled to meet the
    middle.

    Parameters
    ----------
    theta : ndarray, shape (n,)
        Fraction of each step, 0 to 1.
    h : ndarray, shape (n,)
        Length of each step, s.
    x0, xm, x1 : ndarray, shape (n, n_x)
        States at the start, the middle and the end.
    d0, d1 : ndarray, shape (n, n_x)
        Rates at the start and the end.

    Returns
    -------
    ndarray, shape (n, n_x)
    """
    s = theta[:, None]
    step = h[:, None]
    r = 1.0 - s
    with np.errstate(invalid="ignore", over="ignore"):  # rates where a run fails may be infinite
        cubic = r * r * ((1.0 + 2.0 * s) * x0 + s * step * d0) + s * s * ((1.0 + 2.0 * r) * x1 - r * step * d1)
        middle_of_cubic = 0.5 * (x0 + x1) + 0.125 * step * (d0 - d1)
        return cubic + 16.0 * (s * r) ** 2 * (xm - middle_of_cubic)


def quartic_bounds(h: FloatArray, x0: FloatArray, d0: FloatArray, xm: FloatArray, x1: FloatArray,
                   d1: FloatArray) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return bounds of the quartics of steps: the least and greatest of their Bernstein coefficients.

    A polynomial on [0, 1] lies within the hull of these (Farouki, "The Bernstein polynomial basis", 2012, section 5).

    Parameters
    ----------
    h, x0, d0, xm, x1, d1 : ndarray, shape (n,)
        As for :func:`quartic`, of one state.

    Returns
    -------
    lower, upper : ndarray, shape (n,)
        Wider than the hull by its rounding.
    """
    second, fourth = x0 + 0.25 * h * d0, x1 - 0.25 * h * d1
    third = (16.0 * xm - x0 - 4.0 * (second + fourth) - x1) / 6.0
    lower, upper = np.minimum(x0, x1), np.maximum(x0, x1)
    for coefficient in (second, third, fourth):
        np.minimum(lower, coefficient, out=lower)
        np.maximum(upper, coefficient, out=upper)
    rounding = _ROUNDING * np.maximum(abs(lower), abs(upper))
    return lower - rounding, upper + rounding


def state_within(t: FloatArray, x: FloatArray, x_dot: FloatArray, x_mid: FloatArray, times: FloatArray,
                 first: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return states within steps of a run.

    Parameters
    ----------
    t, x, x_dot, x_mid : ndarray, shape (n,) and (n, n_x)
        As of :class:`~fsm_dyn.results.record.RunRecord`.
    times : ndarray, shape (m,)
        Times, s.
    first : ndarray of int, shape (m,)
        Rows that begin the steps; the last row of a run stands for itself.
    columns : slice
        Which coordinates and speeds.

    Returns
    -------
    states : ndarray, shape (m, columns)
    theta : ndarray, shape (m,)
        Fractions of the steps.
    """
    last = np.minimum(first + 1, len(t) - 1)
    start = t[first]
    h = t[last] - start
    theta = np.divide(times - start, h, out=np.zeros_like(times), where=h > 0.0)
    # The middle of the last row's (empty) step is not a number, and is multiplied by an exact zero below.
    state, rate, halfway = x[:, columns], x_dot[:, columns], x_mid[:, columns]
    middle = np.where(h[:, None] > 0.0, halfway[last], state[first])
    return quartic(theta, h, state[first], rate[first], middle, state[last], rate[last]), theta


def locate(t: FloatArray, times: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Return for every time the row at or before it, and the row that ends its step.

    At a transition the later of the two rows is taken: a trajectory is continuous from the right.  On the last row
    both indices are that row.
    """
    first = np.searchsorted(t, times, side="right") - 1
    return first, np.minimum(first + 1, len(t) - 1)
