"""Elimination on nodes against NumPy: solutions, transposed solutions, rank, the choice of pivots."""

import numpy as np
import pytest

from fsm_dyn.derive.elimination import eliminate, solve_symmetric
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.traversal import evaluate


def nodes_of(graph, values, name="a", constants=False):
    """A matrix of symbols for nonzero numbers, and the values of the symbols."""
    matrix, given = [], {}
    for (i, j), value in np.ndenumerate(values):
        if j == 0:
            matrix.append([])
        if constants or value == 0.0:
            matrix[i].append(graph.constant(float(value)))
        else:
            matrix[i].append(graph.symbol(f"{name}{i}_{j}"))
            given[f"{name}{i}_{j}"] = float(value)
    return matrix, given


def vector_of(graph, values, name="b"):
    symbols = [graph.symbol(f"{name}{i}") for i in range(len(values))]
    return symbols, {f"{name}{i}": float(value) for i, value in enumerate(values)}


def solved(solution, given):
    columns = list(solution)
    return dict(zip(columns, (float(v) for v in evaluate([solution[c] for c in columns], given)), strict=True))


def check_solutions(values, rng, constants=False, samples=None):
    """A_D x = b and A_Dᵀ y = r of the pivots found, against NumPy; returns the factors."""
    graph = ExpressionGraph()
    matrix, given = nodes_of(graph, values, constants=constants)
    m, n = values.shape
    factors = eliminate(matrix, values[None] if samples is None else samples, range(n))
    rows, columns = [row for row, _ in factors.pivots], list(factors.columns)
    assert sorted(rows + list(factors.dropped)) == list(range(m))
    block = values[np.ix_(rows, columns)]
    # a right-hand side in the range: dropped rows are satisfied too
    b = values @ rng.normal(size=n)
    right, of_b = vector_of(graph, b)
    x = solved(factors.solve(right), given | of_b)
    found = np.array([x[column] for column in columns])
    np.testing.assert_allclose(found, np.linalg.solve(block, b[rows]) if rows else [], rtol=1e-8, atol=1e-10)
    full = np.zeros(n)
    full[columns] = found
    np.testing.assert_allclose(values @ full, b, atol=1e-9)
    r = rng.normal(size=len(columns))
    right, of_r = vector_of(graph, r, "r")
    y = np.array(evaluate(factors.solve_transposed(right, graph.zero), given | of_r), dtype=float)
    np.testing.assert_allclose(values[:, columns].T @ y, r, rtol=1e-8, atol=1e-10)
    assert not y[list(factors.dropped)].any()
    return factors


@pytest.mark.parametrize("seed", range(30))
def test_random_matrices(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    n = m + int(rng.integers(0, 4))
    factors = check_solutions(rng.normal(size=(m, n)), rng)
    assert factors.dropped == ()


@pytest.mark.parametrize("constants", [True, False], ids=["constants", "symbols"])
@pytest.mark.parametrize("seed", range(40))
def test_matrices_of_zeros_and_ones(seed, constants):
    """Typical first models: right angles make entries 0 and ±1, and dependent rows."""
    rng = np.random.default_rng(100 + seed)
    m, n = rng.integers(2, 6, 2)
    values = rng.choice([0.0, 0.0, 1.0, -1.0], size=(m, n))
    factors = check_solutions(values, rng, constants)
    assert len(factors.pivots) == np.linalg.matrix_rank(values)
    assert len(factors.dropped) == m - len(factors.pivots)


@pytest.mark.parametrize("seed", range(20))
def test_redundant_rows_are_dropped(seed):
    """Additional combinations of rows: the same number of rows is dropped, no matter which."""
    rng = np.random.default_rng(200 + seed)
    independent = rng.normal(size=(3, 5))
    extra = rng.normal(size=(2, 3)) @ independent
    values = np.vstack([independent, extra])[rng.permutation(5)]
    assert len(check_solutions(values, rng).dropped) == 2


def test_units_do_not_decide():
    """Rows are judged by their own size: one in kilometres, one in micrometres."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=(3, 5)) * np.array([[1e-6], [1.0], [1e6]])
    assert check_solutions(values, rng).dropped == ()


def test_an_entry_small_in_any_sample_is_no_pivot():
    graph = ExpressionGraph()
    matrix, _ = nodes_of(graph, np.array([[1.0, 1.0]]))
    samples = np.array([[[1.0, 0.5]], [[0.001, 0.5]]])
    assert eliminate(matrix, samples, range(2)).pivots == ((0, 1),)


def test_where_no_entry_serves_every_sample_the_present_state_decides():
    graph = ExpressionGraph()
    matrix, _ = nodes_of(graph, np.array([[1.0, 1.0]]))
    samples = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    assert eliminate(matrix, samples, range(2)).pivots == ((0, 1),)


def test_a_partner_influences_the_pivots():
    """The friction rows of a sliding contact are eliminated in the same order: their entry must not vanish."""
    graph = ExpressionGraph()
    matrix, _ = nodes_of(graph, np.array([[1.0, 1.0]]))
    own, partner = np.array([[[1.0, 0.9]]]), np.array([[[0.0, 2.0]]])
    assert eliminate(matrix, own, range(2)).pivots == ((0, 0),)
    assert eliminate(matrix, own, range(2), partner=partner).pivots == ((0, 1),)
    # but it does not decide whether a row is redundant
    values = np.array([[1.0, 1.0], [1.0, 1.0]])
    matrix, _ = nodes_of(graph, values)
    partner = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    assert len(eliminate(matrix, values[None], range(2), partner=partner).dropped) == 1
    # nor, without any pivot, prevent the rows from being active
    nothing = np.zeros((1, 1, 2))
    assert eliminate(matrix[:1], values[None, :1], range(2), partner=nothing).dropped == ()


def test_a_given_order_is_kept():
    rng = np.random.default_rng(8)
    values = rng.normal(size=(3, 4))
    graph = ExpressionGraph()
    matrix, _ = nodes_of(graph, values)
    order = ((2, 0), (0, 3), (1, 1))
    assert eliminate(matrix, values[None], range(4), order).pivots == order
    # a shorter one leaves the other rows out
    factors = eliminate(matrix, values[None], range(4), order[:2])
    assert factors.dropped == (1,)


def test_only_the_columns_allowed_are_pivots():
    values = np.array([[5.0, 1.0, 2.0], [4.0, 1.0, -1.0]])
    matrix, _ = nodes_of(ExpressionGraph(), values)
    assert set(eliminate(matrix, values[None], [1, 2]).columns) == {1, 2}
    assert len(eliminate(matrix, values[None], [1]).pivots) == 1


def test_zeros_stay_zeros():
    """Structural zeros cost nothing: an arrow matrix is eliminated without fill."""
    size = 6
    values = np.eye(size) * 2
    values[0, :] = values[:, 0] = 1.0
    values[0, 0] = 9.0
    matrix, _ = nodes_of(ExpressionGraph(), values)
    factors = eliminate(matrix, values[None], range(size))
    assert len(factors.steps) == size - 1
    assert sum(not node.is_zero for row in factors.rows for node in row) <= 3 * size - 2


def test_no_rows_and_no_columns():
    assert eliminate([], np.zeros((1, 0, 3)), range(3)).pivots == ()
    graph = ExpressionGraph()
    factors = eliminate([[graph.zero]], np.zeros((1, 1, 1)), range(1))
    assert factors.dropped == (0,)
    assert factors.solve([graph.symbol("b")]) == {}


@pytest.mark.parametrize("seed", range(20))
def test_symmetric_solution(seed):
    rng = np.random.default_rng(300 + seed)
    size = int(rng.integers(1, 7))
    root = rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.5) + np.eye(size)
    values = root @ root.T
    graph = ExpressionGraph()
    matrix, given = nodes_of(graph, np.triu(values))
    for i in range(size):
        for j in range(i):
            matrix[i][j] = matrix[j][i]
    b = rng.normal(size=size)
    right, of_b = vector_of(graph, b)
    solution, pivots = solve_symmetric(matrix, right)
    numbers = np.array(evaluate([*solution, *pivots], given | of_b), dtype=float)
    np.testing.assert_allclose(numbers[:size], np.linalg.solve(values, b), rtol=1e-7)
    np.testing.assert_allclose(np.prod(numbers[size:]), np.linalg.det(values), rtol=1e-9)
    assert (numbers[size:] > 0).all()
