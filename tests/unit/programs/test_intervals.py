"""Enclosures hold every value that a program takes in a box, and are about as narrow as interval arithmetic allows."""

import mpmath
import numpy as np
import pytest

from fsm_dyn.programs import intervals
from fsm_dyn.programs.functions import compare, sqrt, where
from fsm_dyn.programs.graph import OPERATIONS, TRUTH_VALUED, ExpressionGraph
from fsm_dyn.programs.intervals import Interval, enclose
from fsm_dyn.programs.program import Layout, Program

ONE = Layout(q=("a", "b", "c"))
ENDS = [
    -np.inf,
    -1e300,
    -7.0,
    -np.pi,
    -1.5,
    -1.0,
    -0.5,
    -1e-300,
    0.0,
    5e-324,
    0.3,
    1.0,
    np.pi / 2,
    2.0,
    3 * np.pi,
    1e9,
    np.inf,
]
BY_MPMATH = {
    "sin": mpmath.iv.sin, "cos": mpmath.iv.cos, "exp": mpmath.iv.exp, "log": mpmath.iv.log, "sqrt": mpmath.iv.sqrt,
}  # fmt: skip


def program_of(op):
    graph = ExpressionGraph()
    symbols = [graph.symbol(name) for name in ONE.q][: OPERATIONS[op].arity]
    from fsm_dyn.programs.traversal import rebuild

    return Program.from_nodes(ONE, {"value": rebuild(graph, op, symbols)})


def boxes_of(random, arguments, count):
    """Boxes of all sizes: points, some around zero, some without an end."""
    centre = random.choice([0.0, 1.0, 3.0, 30.0], (arguments, count)) * random.normal(size=(arguments, count))
    width = 10.0 ** random.uniform(-16, 1, (arguments, count)) * random.integers(0, 2, (arguments, count))
    return Interval(centre - width, centre + width)


def points_in(random, boxes, count):
    """Points of boxes with their corners, shape (n_arguments, n_boxes, count)."""
    low, high = np.clip(boxes.low, -1e308, 1e308)[..., None], np.clip(boxes.high, -1e308, 1e308)[..., None]
    share = random.choice([0.0, 1.0, 0.5], (*boxes.low.shape, count)) * random.uniform(0, 1, (*boxes.low.shape, count))
    share = np.where(random.uniform(size=share.shape) < 0.3, np.round(share), share)
    return np.clip(low * (1.0 - share) + high * share, low, high)


@pytest.mark.parametrize("seed", range(40))
def test_values_of_programs_of_all_operations_are_inside(random_program, seed):
    program, random = random_program(seed, size=80), np.random.default_rng(seed)
    boxes = boxes_of(random, len(program.arguments), 60)
    points = points_in(random, boxes, 20)
    n_x = program.layout.n_x
    t, x, c = points[0], np.moveaxis(points[1 : 1 + n_x], 0, -1), np.moveaxis(points[1 + n_x :], 0, -1)
    values = program.evaluate(t, x, c)["all"]  # (n_boxes, count, n)
    found = enclose(program, boxes)["all"]
    real = np.isfinite(values)
    inside = (found.low[:, None] <= values) & (values <= found.high[:, None])
    # an undefined value on the way makes all that follows NaN for NumPy, but not the choice of another branch
    undefined = np.cumsum(~real, axis=-1) > 0
    assert (inside | ~real | undefined).all()
    assert real.mean() > 0.3


@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - TRUTH_VALUED - {"where"}))
def test_of_single_operations_the_bounds_are_reached(op):
    """The range over a box that is sampled densely: the enclosure adds roundings alone."""
    random = np.random.default_rng(7)
    arity = OPERATIONS[op].arity
    centre, width = random.uniform(-2, 2, (arity, 40)), random.uniform(0.01, 0.4, (arity, 40))
    if op == "pow":
        centre[1], width[1] = random.integers(1, 5, 40), 0.0
        centre[1] = centre[1][0]
    boxes = Interval(np.full((4, 40), 0.0), np.full((4, 40), 0.0))
    for i in range(arity):
        boxes.low[1 + i], boxes.high[1 + i] = centre[i] - width[i], centre[i] + width[i]
    found = enclose(program_of(op), boxes)["value"]
    grid = np.linspace(0.0, 1.0, 1201 if arity == 1 else 121)
    share = np.array(np.meshgrid(*[grid] * arity, indexing="ij")).reshape(arity, -1)
    with np.errstate(all="ignore"):
        points = (
            boxes.low[1 : 1 + arity, :, None] * (1 - share[:, None])
            + boxes.high[1 : 1 + arity, :, None] * share[:, None]
        )
        values = OPERATIONS[op].array(*points) if op != "pow" else points[0] ** points[1][0, 0]
    defined = np.isfinite(values).all(axis=1) & (np.abs(values).max(axis=1) < 10.0)
    assert defined.sum() >= 5
    low, high = values[defined].min(axis=1), values[defined].max(axis=1)
    grain = 0.02 if op not in ("mod", "atan2", "floor") else 7.0  # of what the samples miss; of jumps a whole period
    assert (found.low[defined] <= low).all()
    assert (found.high[defined] >= high).all()
    assert (low - found.low[defined] <= grain * (1.0 + high - low)).all()
    assert (found.high[defined] - high <= grain * (1.0 + high - low)).all()


@pytest.mark.parametrize("op", sorted(BY_MPMATH))
def test_against_the_intervals_of_mpmath(op):
    """Another implementation: ours is nowhere wider than its enclosure by more than a few roundings, and meets it."""
    random = np.random.default_rng(3)
    low = random.uniform(0.01, 6.0, 200)
    high = low + random.uniform(0.0, 1.0, 200)
    boxes = Interval(np.zeros((4, 200)), np.zeros((4, 200)))
    boxes.low[1], boxes.high[1] = low, high
    found = enclose(program_of(op), boxes)["value"]
    for i in range(200):
        theirs = BY_MPMATH[op](mpmath.iv.mpf([low[i], high[i]]))
        ours = (found.low[i], found.high[i])
        for mine, other in zip(ours, (float(theirs.a), float(theirs.b)), strict=True):
            assert mine == pytest.approx(other, rel=1e-14, abs=1e-15) or (np.isinf(mine) and np.isinf(other))


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_ends_without_bound_and_of_zero_give_bounds_or_nothing(op):
    arity = OPERATIONS[op].arity
    pairs = [(low, high) for low in ENDS for high in ENDS if low <= high and low < np.inf and high > -np.inf]
    random = np.random.default_rng(1)
    chosen = np.array([[pairs[random.integers(len(pairs))] for _ in range(400)] for _ in range(3)])
    boxes = Interval(np.zeros((4, 400)), np.zeros((4, 400)))
    boxes.low[1:], boxes.high[1:] = chosen[..., 0], chosen[..., 1]
    found = enclose(program_of(op), boxes)["value"]
    with np.errstate(all="ignore"):
        points = points_in(random, boxes, 30)[1 : 1 + arity]
        values = np.broadcast_to(
            np.asarray(OPERATIONS[op].array(*points)) if op != "pow" else np.power(*points), (400, 30)
        )
    inside = (found.low[:, None] <= values) & (values <= found.high[:, None])
    assert (inside | ~np.isfinite(values)).all(), op


def test_what_has_no_value_is_empty():
    graph = ExpressionGraph()
    a, b, _ = (graph.symbol(name) for name in ONE.q)
    program = Program.from_nodes(ONE, {"root": sqrt(a) + b, "other": where(compare("<", a, 0.0), b, sqrt(a))})
    boxes = Interval(np.array([[0.0], [-2.0], [1.0], [0.0]]), np.array([[0.0], [-1.0], [2.0], [0.0]]))
    found = enclose(program, boxes)
    assert found["root"].empty.all()
    assert (found["other"].low[0], found["other"].high[0]) == (1.0, 2.0)


def test_every_operation_has_an_interval_form():
    assert set(intervals._OPERATIONS) == set(OPERATIONS)
