import json

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import exp, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Counts, Program


@pytest.fixture
def spring(layout):
    """A program with outputs of several shapes, a constant entry and an unused input."""
    graph = ExpressionGraph()
    q1, q2, m = (graph.symbol(name) for name in ("q1", "q2", "m"))
    force = -(q1 - q2) * m
    return Program.from_nodes(
        layout,
        {"energy": m * q1**2 / 2, "matrix": [[force, 0], [1.5, sin(q2) / 3]], "none": [], "t": [graph.symbol("t")]},
    )


def test_evaluation(spring):
    values = spring.evaluate(2.0, [1.0, 0.25, 0, 0], [4.0, 0, 0, 0, 0, 0, 0, 0])
    assert values["energy"] == 2.0
    np.testing.assert_equal(values["matrix"], [[-3.0, 0.0], [1.5, np.sin(0.25) / 3]])
    assert values["none"].shape == (0,)
    assert values["t"] == [2.0]


def test_evaluation_broadcasts(spring):
    t, x, c = np.zeros((5, 1)), np.ones((3, 4)), np.ones(8)
    shapes = {name: value.shape for name, value in spring.evaluate(t, x, c).items()}
    assert shapes == {"energy": (5, 3), "matrix": (5, 3, 2, 2), "none": (5, 3, 0), "t": (5, 3, 1)}


@pytest.mark.parametrize(("x", "c"), [(np.ones(3), np.ones(8)), (np.ones(4), np.ones(9)), (1.0, np.ones(8))])
def test_wrong_shapes(spring, x, c):
    with pytest.raises(InputError, match="wrong shape"):
        spring.evaluate(0.0, x, c)


def test_outputs(spring, layout):
    assert spring.outputs == {"energy": (), "matrix": (2, 2), "none": (0,), "t": (1,)}
    assert spring.size == 6
    assert spring.slices["matrix"] == slice(1, 5)
    assert spring.arguments == layout.arguments


def test_counts(spring):
    # m q1^2 / 2: 3 products; (q2 - q1) m: 1 sum, 1 product; sin(q2) / 3: 1 sine, 1 quotient
    assert spring.counts() == Counts(multiply=4, add=1, divide=1, trig=1, other=0, total=7)
    assert spring.counts().multiply_divide == 5


def test_dead_code_is_left_out_and_shared_code_made_once(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    exp(q1)
    part = q1 * q2
    program = Program.from_nodes(layout, {"a": sin(part) + part, "b": part * 2})
    assert sorted(op for op, _ in program.instructions) == ["add", "mul", "mul", "sin"]


def test_signs_of_differences_vanish(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    program = Program.from_nodes(layout, {"a": q2 - q1, "b": 1 - q1, "c": q1 - q2 * q2})
    assert sorted(op for op, _ in program.instructions) == ["mul", "sub", "sub", "sub"]
    assert program.evaluate(0, [3.0, 2.0, 0, 0], np.zeros(8)) == {"a": -1.0, "b": -2.0, "c": -1.0}


def test_calls_come_first(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    program = Program.from_nodes(layout, {"a": q1 * q2 * 3, "b": sin(q1 + q2)})
    assert [op for op, _ in program.instructions][:2] == ["add", "sin"]


def test_from_nodes_refuses(layout):
    graph = ExpressionGraph()
    q1 = graph.symbol("q1")
    with pytest.raises(InputError, match="'q3' is not an argument"):
        Program.from_nodes(layout, {"a": graph.symbol("q3") + q1})
    with pytest.raises(InputError, match="'a' is ragged"):
        Program.from_nodes(layout, {"a": [[q1], [q1, q1]]})
    with pytest.raises(InputError, match="neither"):
        Program.from_nodes(layout, {"a": ["q1"]})
    with pytest.raises(InputError, match="neither"):
        Program.from_nodes(layout, {"a": np.inf})


@pytest.mark.parametrize("seed", range(3))
def test_a_part_of_a_program_has_the_same_values_in_the_same_order(random_program, seed):
    program = random_program(seed)
    rng = np.random.default_rng(seed)
    t, x, c = rng.normal(size=20), rng.normal(size=(20, 4)), rng.normal(size=(20, 8))
    everything = program.evaluate(t, x, c)["all"]
    rows = [2, 0]
    part = program.evaluate(t, x, c, {"all": rows})
    assert list(part) == ["all"]
    np.testing.assert_array_equal(part["all"], everything[:, rows])
    np.testing.assert_array_equal(program.evaluate(t, x, c, {"all": None})["all"], everything)
    assert program.evaluate(t, x, c, {}) == {}
    assert program.evaluate(t, x, c, {"all": []})["all"].shape == (20, 0)


def test_a_program_of_nothing(layout):
    program = Program.from_nodes(layout, {})
    assert program.evaluate(0, np.zeros(4), np.zeros(8)) == {}
    assert compile_programs([program])[0](0, np.zeros(4), np.zeros(8)).shape == (0,)
    assert compile_programs([]).addresses.shape == (0,)


@pytest.mark.parametrize("seed", range(6))
def test_round_trip(random_program, seed):
    program = random_program(seed)
    read = Program.from_data(json.loads(json.dumps(program.to_data())))
    assert read == program
    assert read.digest == program.digest


@pytest.mark.parametrize("seed", range(6))
def test_back_to_nodes(random_program, seed):
    program = random_program(seed)
    graph, symbols, outputs = program.graph()
    assert list(symbols) == list(program.arguments)
    again = Program.from_nodes(program.layout, outputs)
    rng = np.random.default_rng(seed)
    t, x, c = rng.normal(size=20), rng.normal(size=(20, 4)), rng.normal(size=(20, 8))
    np.testing.assert_array_equal(again.evaluate(t, x, c)["all"], program.evaluate(t, x, c)["all"])
    _, second = program.nodes(graph)
    assert list(second["all"]) == list(outputs["all"])


def test_the_digest_tells_programs_apart(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    programs = [
        Program.from_nodes(layout, outputs)
        for outputs in (
            {"a": q1},
            {"b": q1},
            {"a": q2},
            {"a": [q1]},
            {"a": q1 + 1},
            {"a": q1 + 1.0000000000000002},
            {"a": 1.0},
        )
    ]
    assert len({program.digest for program in programs}) == len(programs)


def test_programs_are_frozen(spring):
    with pytest.raises(AttributeError):
        spring.constants = ()
