"""Shifts of coordinates without effect: all that follow from differences are found, and none with an effect."""

import numpy as np
import pytest

from fsm_dyn.automaton.configuration_search import free_shifts
from fsm_dyn.automaton.proof_check import _is_still
from fsm_dyn.programs.functions import cos, minimum, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.program import Layout, Program

LAYOUT = Layout(q=("x", "y", "s", "q"), p=("k",))
X, Y, S, Q = 1, 2, 3, 4
CASES = {  # outputs, and how many of the four coordinates can be chosen
    "a difference": (lambda x, y, s, q, k: [x - s, (x - s) * cos(q) + k], 2),  # x or s; y is in none
    "in another frame": (lambda x, y, s, q, k: [(x - s) * cos(q) + y * sin(q), minimum(s - x, k)], 1),
    "two differences": (lambda x, y, s, q, k: [(x - s) * cos(q) + (y - s) * sin(q)], 1),
    "sums of three": (lambda x, y, s, q, k: [x + y - 2.0 * s, sin(x - y) + q], 1),
    "the least of two": (lambda x, y, s, q, k: [minimum(x - y, q), x + s], 1),
    "angles": (lambda x, y, s, q, k: [sin(q - x), cos(x - q) * y * y + s], 1),
    "two places": (lambda x, y, s, q, k: [x - s, x + s, y, q], 0),
    "a factor that is a parameter": (lambda x, y, s, q, k: [k * (x - s), k * (y - q)], 2),
    "squares": (lambda x, y, s, q, k: [x * x - s * s, y - q], 1),
    "a third": (lambda x, y, s, q, k: [3.0 * x - s, y, q], 1),
    "nothing": (lambda x, y, s, q, k: [k], 4),
}


@pytest.fixture(params=CASES)
def case(request):
    graph = ExpressionGraph()
    make, number = CASES[request.param]
    return Program.from_nodes(LAYOUT, {"values": make(*map(graph.symbol, ("x", "y", "s", "q", "k")))}), number


def test_as_many_coordinates_can_be_chosen_as_shifts_are_independent(case):
    program, number = case
    random = np.random.default_rng(3)
    found = free_shifts(program, [X, Y, S, Q])
    assert len(found) == number
    for argument, moved in found.items():
        assert next(iter(moved)) == argument
        assert found.keys() & moved.keys() == {argument}
        assert _is_still(program, moved)
        for _ in range(5):
            x, far = random.normal(size=4), np.zeros(4)
            far[[i - 1 for i in moved]] = random.normal() * np.array([float(rate) for rate in moved.values()])
            before, after = (
                program.evaluate(0.0, place, np.array([0.7, *[0.0] * (LAYOUT.n_c - 1)])) for place in (x, x + far)
            )
            np.testing.assert_allclose(after["values"], before["values"], rtol=1e-12, atol=1e-12)


def test_rows_of_numerical_derivatives_leave_no_more_freedom(case):
    """The directions are complete, by the rank of the derivatives of the outputs at many places."""
    program, number = case
    random, slopes = np.random.default_rng(4), []
    for _ in range(20):
        x, c = random.normal(size=4), np.array([0.7, *[0.0] * (LAYOUT.n_c - 1)])
        moved = [program.evaluate(0.0, x + 1e-6 * step, c)["values"] for step in (*np.eye(4), *-np.eye(4))]
        slopes.append((np.array(moved[:4]) - np.array(moved[4:])).T / 2e-6)
    assert np.linalg.matrix_rank(np.concatenate(slopes), tol=1e-6) == 4 - number


def test_what_may_not_be_shifted_stays(case):
    program, _ = case
    assert free_shifts(program, []) == {}
    for moved in free_shifts(program, [X, S]).values():
        assert moved.keys() <= {X, S}
