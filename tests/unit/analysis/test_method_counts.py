"""Unknowns, operations and state variables of modes, and the drawing of partial velocities."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.method_counts import dense_solution
from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.elimination import solve_symmetric
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.program import Layout, Program


@pytest.fixture(scope="module")
def cart():
    return fsm_dyn.compile("shopping_cart")


@pytest.mark.parametrize("size", [2, 4, 6])
def test_dense_solution_by_counting(size):
    """Against the elimination of a matrix of symbols, a reciprocal for each pivot."""
    graph = ExpressionGraph()
    matrix = [[graph.symbol(f"m{min(i, j)}_{max(i, j)}") for j in range(size)] for i in range(size)]
    right = [graph.symbol(f"r{i}") for i in range(size)]
    names = [*{node.name: None for row in matrix for node in row}, *(node.name for node in right)]
    counted = Program.from_nodes(Layout(p=tuple(names)), {"x": solve_symmetric(matrix, right)[0]}).counts().total
    assert counted - dense_solution(size) == size  # a reciprocal and a product instead of a quotient


def test_unknowns_of_the_cart(cart):
    for mode, unknowns in (("rolling", (10, 6, 4, 2, 2)), ("sticking", (11, 7, 5, 1, 1))):
        found = fsm_dyn.count_methods(cart, mode)
        assert tuple(method.unknowns for method in found.methods) == unknowns
        together = [method.together for method in found.methods[1:]]
        assert together[0] > together[1] > together[2] > together[3]
        assert "Newton and Euler" in str(found)
    with pytest.raises(InputError, match="no mode 'stuck'"):
        fsm_dyn.count_methods(cart, "stuck")


def test_state_variables_of_the_cart(cart):
    """Gillespie's Table 1: two bodies in the plane, six coordinates less two, then two or three motion constraints."""
    rolling, sticking = fsm_dyn.state_variables(cart)
    assert (rolling.bodies, rolling.M, rolling.n, rolling.m, rolling.p) == (2, 2, 4, 2, 2)
    assert (sticking.m, sticking.p) == (3, 1)


@pytest.mark.parametrize(
    ("model", "expected"), [("shopping_cart", 0.0273), ("spherical_wrist", 0.0), ("double_pendulum_with_stop", 0.865)]
)
def test_coupling(model, expected):
    graph = fsm_dyn.compile(model)
    found = graph.modes[graph.initial].kane_equations.coupling()
    assert found.max() == pytest.approx(expected, abs=6e-4)
    assert np.all(found == found.T)


def test_partial_velocities_after_the_rows_lie_along_the_wheel(cart):
    """Arrows at P3: before the rows some have a part along the wheel's axle, afterwards none."""
    q = [0.0, 0.0, 0.35, 0.6]
    axle = np.array([-np.sin(0.95), np.cos(0.95), 0.0])
    for name, tangents in (("rolling", 2), ("sticking", 1)):
        mode = cart.modes[name]
        table, T = np.asarray(mode.partial_velocities(q)["P3"]), np.asarray(mode.orthogonal_complement(q))
        assert np.abs(table @ axle).max() > 0.1
        assert np.abs(T.T @ table @ axle).max() < 1e-15
        before, after = (plot.partial_velocities(mode, q, constrained=c, points=["P3"]) for c in (False, True))
        assert [len(figure.axes[0].get_legend().get_texts()) for figure in (before, after)] == [3, tangents]
    with pytest.raises(InputError, match="no point 'P4'"):
        plot.partial_velocities(cart.modes["rolling"], q, points=["P4"])
