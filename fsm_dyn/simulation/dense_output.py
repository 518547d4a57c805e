"""Dense output of implicit methods, along which the runtime watches guards as along its own steps.

The step of an implicit method is taken in Python.  What the compiled loop then does with its dense output is what it
does with a tableau: trial steps of any length, their ends projected, guards known by value and slope at start, middle
and end.  A trial step is read off the polynomial instead of being taken.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import HIGHEST_DEGREE, DensePosition, MethodCounts
from fsm_dyn.runtime.layouts import MethodArrays

Floats = NDArray[np.float64]


def dense_method(n: int) -> MethodArrays:
    """Return the arrays of a method that is followed along its dense output, for states of length ``n``."""
    counts = np.array([1, 1, 0, 1], dtype=np.int64)
    return MethodArrays(
        np.zeros(1),
        np.zeros(1),
        np.zeros(6),
        counts,
        np.zeros(DensePosition.COEFFICIENTS + (HIGHEST_DEGREE + 1) * n),
    )


def state_at(method: MethodArrays, n: int, t: float) -> Floats:
    """Return the state at ``t`` on the dense output, shape (n,)."""
    s = (t - method.dense[DensePosition.END]) / method.dense[DensePosition.LENGTH]
    powers = method.dense[DensePosition.COEFFICIENTS :].reshape(-1, n)[: int(method.counts[MethodCounts.DEGREE]) + 1]
    total = powers[-1].copy()
    for coefficient in powers[-2::-1]:
        total = total * s + coefficient
    return total


def follow(method: MethodArrays, solver: Any) -> None:
    """Write the dense output of the last step of scipy's ``Radau`` or ``BDF`` into ``method``.

    Radau: ``y_0 + sum Q_i theta^i`` over the step, expanded about its end.  BDF: Newton's form over backward
    differences ``D``, ``sum D_i prod_{j<i} (s + j) / (j + 1)``; E. Hairer and G. Wanner, *Solving Ordinary Differential
    Equations II*, sections IV.8 and V.1.
    """
    dense = solver.dense_output()
    n = len(solver.y)
    powers = method.dense[DensePosition.COEFFICIENTS :].reshape(-1, n)
    powers[:] = 0.0
    method.dense[DensePosition.END] = solver.t
    if hasattr(dense, "Q"):
        degree, length = dense.Q.shape[1], dense.h
        for i in range(1, degree + 1):
            for d in range(1, i + 1):
                powers[d] += comb(i, d) * dense.Q[:, i - 1]
    else:
        degree, length = dense.order, float(solver.h_abs)
        newton = np.ones(1)  # coefficients of the product, lowest power first
        for i in range(1, degree + 1):
            newton = np.convolve(newton, [(i - 1) / i, 1.0 / i])
            powers[: i + 1] += newton[:, None] * dense.D[i]
    powers[0] = solver.y
    method.dense[DensePosition.LENGTH] = length
    method.counts[MethodCounts.DEGREE] = degree


def shift(method: MethodArrays, by: Floats) -> None:
    """Move the dense output by a constant, shape (n,)."""
    method.dense[DensePosition.COEFFICIENTS : DensePosition.COEFFICIENTS + len(by)] += by
