"""The motion between two recorded rows: one quartic per step (docs/theory.md, "Between the rows")."""

from __future__ import annotations

import numpy as np

from fsm_dyn.results.arrays import FloatArray


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
    cubic = r * r * ((1.0 + 2.0 * s) * x0 + s * step * d0) + s * s * ((1.0 + 2.0 * r) * x1 - r * step * d1)
    middle_of_cubic = 0.5 * (x0 + x1) + 0.125 * step * (d0 - d1)
    return cubic + 16.0 * (s * r) ** 2 * (xm - middle_of_cubic)


def locate(t: FloatArray, times: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """Return for every time the row at or before it, and the row that ends its step.

    At a transition the later of the two rows is taken: a trajectory is continuous from the right.  On the last row
    both indices are that row.
    """
    first = np.searchsorted(t, times, side="right") - 1
    return first, np.minimum(first + 1, len(t) - 1)
