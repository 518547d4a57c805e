"""Products and least squares whose rounding does not depend on the processor.

A library of linear algebra sums in another order, and with or without fused operations, on every kind of processor
(OpenBLAS has kernels for each).  What a run begins with is part of its bytes: these sums are NumPy's elementwise ones,
in one order.  They are for matrices of some tens of rows; nothing here is called in a loop of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fsm_dyn.modes.elimination import Array

DEPENDENT = 1e-9  # part of the largest entry below which nothing is left of a column


def product(a: Array, b: Array) -> Array:
    """Return ``a @ b`` for shapes (m, n) with (n,) or (n, p)."""
    terms = a * b if b.ndim == 1 else a[:, :, None] * b[None]
    summed: Array = terms.sum(axis=1)
    return summed


def norm(vector: Array) -> float:
    """Return the Euclidean norm of a vector, shape (n,)."""
    return math.sqrt(float((vector * vector).sum()))


def dependent_columns(matrix: Array, free: Sequence[int], least: float = DEPENDENT) -> list[int]:
    """Choose, from the columns ``free``, as few as give the rows their rank; later ones are preferred.

    Parameters
    ----------
    matrix : ndarray, shape (m, n)
    free : sequence of int
    least : float
        Part of the largest entry that must be left of a column that is chosen.
    """
    scale = float(np.abs(matrix).max()) if matrix.size else 0.0
    chosen: list[int] = []
    basis = np.zeros((matrix.shape[0], 0))
    for column in reversed(free):
        vector = matrix[:, column].copy()
        for _ in range(2):
            vector = vector - product(basis, product(basis.T, vector))
        size = norm(vector)
        if size > least * max(scale, 1e-300):
            basis = np.column_stack([basis, vector / size])
            chosen.append(column)
    return sorted(chosen)


def least_squares(matrix: Array, right: Array, rcond: float) -> Array:
    """Return the solution of least norm of ``matrix @ x = right`` in the sense of least squares.

    By Householder's reflections with interchanges of columns, and once more from the other side where rank is missing:
    Golub and Van Loan, *Matrix Computations*, 4th edition, 5.5.2 and algorithm 5.4.1 (the complete orthogonal
    decomposition).

    Parameters
    ----------
    matrix : ndarray, shape (m, n)
    right : ndarray, shape (m,) or (m, p)
    rcond : float
        Columns whose remainder is below this part of the largest do not count for the rank.

    Returns
    -------
    ndarray, shape (n,) or (n, p)
    """
    n = matrix.shape[1]
    columns = right[:, None] if right.ndim == 1 else right
    reduced, turned, order = _triangular(matrix, columns, rcond)
    rank = len(reduced)
    if rank < n:  # R has full row rank: R^T P = Q S, and x = Q S^-T P^T y is the shortest solution
        square, kept, inner = _triangular(reduced.T, np.eye(n), 0.0)
        inside = product(kept.T, _back(square.T[::-1, ::-1], turned[inner][::-1])[::-1])
    else:
        inside = _back(reduced, turned)
    found = np.empty((n, columns.shape[1]))
    found[order] = inside
    return found[:, 0] if right.ndim == 1 else found


def _triangular(matrix: Array, right: Array, rcond: float) -> tuple[Array, Array, list[int]]:
    """Return R, shape (rank, n), the turned right-hand side, and which column of ``matrix`` each one of R is."""
    work, right = matrix.astype(np.float64), right.astype(np.float64)
    m, n = work.shape
    order = list(range(n))
    largest = 0.0
    for k in range(min(m, n)):
        sizes = (work[k:, k:] ** 2).sum(axis=0)
        best = k + int(np.argmax(sizes))
        size = math.sqrt(float(sizes[best - k]))
        largest = max(largest, size)
        if not size > rcond * largest:
            return work[:k], right[:k], order
        work[:, [k, best]] = work[:, [best, k]]
        order[k], order[best] = order[best], order[k]
        mirror = work[k:, k].copy()
        mirror[0] += math.copysign(size, float(mirror[0]))
        scale = 2.0 / float((mirror * mirror).sum())
        for block in (work[k:, k:], right[k:]):
            block -= mirror[:, None] * (scale * (mirror[:, None] * block).sum(axis=0))
        work[k + 1 :, k] = 0.0
    return work[: min(m, n)], right[: min(m, n)], order


def _back(upper: Array, right: Array) -> Array:
    """Solve with an upper triangular matrix."""
    found = right.copy()
    for k in reversed(range(len(upper))):
        found[k] = (found[k] - (upper[k, k + 1 :, None] * found[k + 1 :]).sum(axis=0)) / upper[k, k]
    return found
