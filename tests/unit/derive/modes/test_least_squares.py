"""Least squares against NumPy's, at any shape and rank."""

import numpy as np
import pytest

from fsm_dyn.derive.elimination import least_squares, norm, product


@pytest.mark.parametrize("seed", range(200))
def test_any_shape_and_rank_as_numpy_solves_it(seed):
    """1e-8: a matrix made of random factors of few columns may be singular to 1e-6 beyond its rank."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 12, 2)
    rank = rng.integers(0, min(m, n) + 1)
    matrix, right = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)), rng.normal(size=m)
    found = least_squares(matrix, right, 1e-10)
    expected = np.linalg.lstsq(matrix, right, rcond=1e-10)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * (1.0 + np.abs(expected).max()))
    inverse = np.linalg.pinv(matrix, rcond=1e-10)
    found = least_squares(matrix, np.eye(m), 1e-10)
    np.testing.assert_allclose(found, inverse, rtol=0, atol=1e-8 * (1.0 + np.abs(inverse).max()) ** 2)


def test_products_and_norms():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 4))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(product(a, b[:, 0]), a @ b[:, 0], rtol=1e-14, atol=1e-14)
    assert norm(np.array([3.0, -4.0])) == 5.0
    assert product(np.zeros((2, 0)), np.zeros(0)).tolist() == [0.0, 0.0]
