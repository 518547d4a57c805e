"""Small dense linear algebra for transitions: elimination with complete pivoting, which shows the rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import lean


@lean
def put(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy a vector into another one of the same length."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@lean
def factor(matrix: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64], tolerance: float) -> int:
    """Factor a square matrix in place, ``matrix[rows][:, columns] = L U``, and return its rank.

    Parameters
    ----------
    matrix : float64 array, shape (n, n)
        Overwritten by L (unit diagonal, below) and U.
    rows, columns : int64 arrays, shape (n,)
        Out: the order in which rows and columns were taken.
    tolerance : float
        A pivot below this fraction of the first is taken as zero.
    """
    n = matrix.shape[0]
    largest, row, column = -1.0, 0, 0
    for i in range(n):
        rows[i] = columns[i] = i
        for j in range(n):
            if abs(matrix[i, j]) > largest:
                largest, row, column = abs(matrix[i, j]), i, j
    first = largest
    for k in range(n):
        if not largest > tolerance * first or largest == 0.0:
            return k
        rows[k], rows[row] = rows[row], rows[k]
        columns[k], columns[column] = columns[column], columns[k]
        r, p = rows[k], columns[k]
        pivot = matrix[r, p]
        largest, row, column = -1.0, k + 1, k + 1  # of what is left, found while it is worked out
        for i in range(k + 1, n):
            at = rows[i]
            quotient = matrix[at, p] / pivot
            matrix[at, p] = quotient
            for j in range(k + 1, n):
                value = matrix[at, columns[j]] - quotient * matrix[r, columns[j]]
                matrix[at, columns[j]] = value
                if abs(value) > largest:
                    largest, row, column = abs(value), i, j
    return n


@lean
def solve(
    matrix: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    rank: int,
    right: NDArray[np.float64],
    scratch: NDArray[np.float64],
    solution: NDArray[np.float64],
) -> float:
    """Solve with the factors of :func:`factor`; unknowns beyond the rank are zero.

    Returns
    -------
    float
        The largest remainder among the equations beyond the rank: zero where they agree with the others.
    """
    n = matrix.shape[0]
    for i in range(n):
        scratch[i] = right[rows[i]]
        for k in range(min(i, rank)):
            scratch[i] -= matrix[rows[i], columns[k]] * scratch[k]
    remainder = 0.0
    for i in range(rank, n):
        remainder = max(remainder, abs(scratch[i]))
        solution[columns[i]] = 0.0
    for back in range(rank):
        i = rank - 1 - back
        value = scratch[i]
        for j in range(i + 1, rank):
            value -= matrix[rows[i], columns[j]] * solution[columns[j]]
        solution[columns[i]] = value / matrix[rows[i], columns[i]]
    return remainder
