"""Factors of systems of few and of many equations: the pivots of complete pivoting, and solutions."""

import numpy as np
import pytest

from tests.runtime.internals import Arena, internals


def pivoting_order(matrix):
    """Rows and columns in the order in which complete pivoting takes them, of equal entries the first."""
    left, rows, columns = matrix.copy(), list(range(len(matrix))), list(range(len(matrix)))
    for k in range(len(matrix)):
        block = np.abs(left[np.ix_(rows[k:], columns[k:])])
        i, j = np.unravel_index(block.argmax(), block.shape)
        if block[i, j] <= 1e-10 * np.abs(matrix).max():
            return rows, columns, k
        rows[k], rows[k + i] = rows[k + i], rows[k]
        columns[k], columns[k + j] = columns[k + j], columns[k]
        for row in rows[k + 1 :]:
            quotient = left[row, columns[k]] / left[rows[k], columns[k]]
            left[row, columns[k + 1 :]] -= quotient * left[rows[k], columns[k + 1 :]]
    return rows, columns, len(matrix)


def sparse(n, seed):
    """A system as of a long mechanism: a diagonal of ones, some entries beside it, two rows that are redundant."""
    rng = np.random.default_rng(seed)
    matrix = np.eye(n) + np.where(rng.random((n, n)) < 2.0 / n, rng.uniform(-1, 1, (n, n)), 0.0)
    matrix[n - 1], matrix[n // 2] = matrix[0], 0.5 * matrix[1]
    return matrix, matrix @ rng.uniform(-1, 1, n)


@pytest.mark.parametrize("n", [3, 24, 25, 60])
@pytest.mark.parametrize("seed", range(3))
def test_factors(n, seed):
    runtime, arena = internals(), Arena()
    matrix, right = sparse(n, seed)
    rows, columns, rank = pivoting_order(matrix)
    factored = matrix.copy()
    lu = runtime.factor(arena.struct, factored, 1e-10)
    assert lu.get("rank") == rank
    assert lu.get("rows")[:rank].tolist() == rows[:rank]
    assert lu.get("columns")[:rank].tolist() == columns[:rank]
    plain, listed = np.zeros(n), np.zeros(n)
    remainder = runtime.solve(lu, right, plain)
    lists = runtime.list_factors(arena.struct, lu)
    assert runtime.solve_listed(lu, lists, right, listed) == remainder <= 1e-9
    assert np.array_equal(plain, listed)
    np.testing.assert_allclose(matrix @ plain, right, atol=1e-9)
