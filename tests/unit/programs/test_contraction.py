"""Contraction keeps every argument that meets its conditions, and drops what cannot."""

import numpy as np
import pytest

from fsm_dyn.programs.functions import absolute, cos, sin, sqrt
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.intervals import Contractor, Interval
from fsm_dyn.programs.program import Layout, Program

LINE = Layout(q=("a", "b"))


def contracted(expression, low, high, condition):
    """Contract one box of a and b, with the value of an expression of them within a condition."""
    graph = ExpressionGraph()
    a, b = (graph.symbol(name) for name in LINE.q)
    program = Program.from_nodes(LINE, {"value": [expression(a, b)]})
    constants = Interval(np.zeros(len(program.arguments)), np.zeros(len(program.arguments)))
    contract = Contractor(program, [1, 2], constants, {"value": Interval(*np.array([condition]).T)})
    (found_low, found_high), kept = contract(Interval(np.array([low]).T, np.array([high]).T))
    return found_low[:, 0], found_high[:, 0], bool(kept[0])


@pytest.mark.parametrize("seed", range(40))
def test_no_point_that_meets_the_conditions_is_lost(random_program, seed):
    """Of any program: a point of a box stays if the conditions are intervals around its values."""
    program, random = random_program(seed, size=60), np.random.default_rng(seed)
    n, n_x, boxes = len(program.arguments), program.layout.n_x, 40
    point = random.choice([0.0, 1.0, 3.0], (n, boxes)) * random.normal(size=(n, boxes))
    below, above = (10.0 ** random.uniform(-8, 1, (n, boxes)) for _ in range(2))
    values = program.evaluate(point[0], point[1 : 1 + n_x].T, point[1 + n_x :].T)["all"]
    checked = 0
    for k in range(boxes):
        if not np.isfinite(values[k]).all():
            continue
        room = 1e-9 * (1.0 + np.abs(values[k]))  # of rounding in the evaluation
        goal = {"all": Interval(values[k] - room, values[k] + room)}
        contract = Contractor(program, range(n), Interval(point[:, k], point[:, k]), goal)
        box = Interval((point - below)[:, [k]], (point + above)[:, [k]])
        (low, high), kept = contract(box)
        assert kept[0]
        assert np.all(low[:, 0] <= point[:, k])
        assert np.all(point[:, k] <= high[:, 0])
        checked += 1
    assert checked > 0 or not np.isfinite(values).all(axis=1).any()


@pytest.mark.parametrize(
    ("expression", "condition", "low", "high"),
    [
        (lambda a, b: a - 3.0, (0.0, 0.0), (3.0, -9.0), (3.0, 9.0)),
        (lambda a, b: 2.0 * a + b, (0.0, 0.0), (-4.5, -9.0), (4.5, 9.0)),
        (lambda a, b: a * a, (1.0, 4.0), (-2.0, -9.0), (2.0, 9.0)),
        (lambda a, b: a / 2.0, (1.0, np.inf), (2.0, -9.0), (9.0, 9.0)),
        (lambda a, b: sqrt(a), (2.0, 2.5), (4.0, -9.0), (6.25, 9.0)),
        (lambda a, b: absolute(a), (0.0, 0.5), (-0.5, -9.0), (0.5, 9.0)),
        (lambda a, b: sin(a / 9.0), (0.0, 0.5), (0.0, -9.0), (9.0 * np.pi / 6.0, 9.0)),
        (lambda a, b: cos(a / 9.0), (0.8, 1.0), (-9.0 * np.arccos(0.8), -9.0), (9.0 * np.arccos(0.8), 9.0)),
    ],
)
def test_a_box_becomes_the_hull_of_its_solutions_where_every_argument_enters_once(expression, condition, low, high):
    found_low, found_high, kept = contracted(expression, (-9.0, -9.0), (9.0, 9.0), condition)
    assert kept
    np.testing.assert_allclose(found_low, low, rtol=1e-14, atol=1e-14)  # rounded outwards operation by operation
    np.testing.assert_allclose(found_high, high, rtol=1e-14, atol=1e-14)


def test_a_box_without_a_solution_is_dropped():
    assert not contracted(lambda a, b: a * a + b * b, (-9.0, -9.0), (9.0, 9.0), (-2.0, -1.0))[2]
    assert not contracted(lambda a, b: a - b, (0.0, 5.0), (1.0, 9.0), (0.0, 0.0))[2]
