import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import atan2, cos, sin
from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.traversal import evaluate, reachable, rebuild, substitute, support


@pytest.fixture
def graph():
    return ExpressionGraph()


def test_substitution_is_simultaneous(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    assert substitute([x + 2 * y, x * x], {x: y, y: x}) == [y + 2 * x, y * y]
    assert substitute([x], {}) == [x]
    assert substitute([], {x: y}) == []


def test_substitution_of_expressions(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    assert substitute([sin(x + y) * 2], {x + y: graph.zero}) == [graph.zero]
    assert substitute([cos(x) - y], {cos(x): graph.one}) == [1 - y]


def test_untouched_parts_stay_the_same_nodes(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    part = sin(y) ** 2
    before = len(graph)
    assert substitute([part + x], {x: graph.zero}) == [part]
    assert len(graph) == before + 1


def test_substitution_into_another_graph(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    other = ExpressionGraph()
    (copy,) = substitute([atan2(x, 2 * y)], {x: other.symbol("z")})
    assert copy is atan2(other.symbol("z"), 2 * other.symbol("y"))


def test_substitution_in_deep_graphs(graph):
    x = node = graph.symbol("x")
    for i in range(20_000):
        node = sin(node) + i * x
    (result,) = substitute([node], {x: graph.symbol("y")})
    assert support([result]) == {graph.symbol("y")}


def test_support(graph):
    x, y, _ = (graph.symbol(name) for name in "xyz")
    assert support([x * y + 1, sin(y)]) == {x, y}
    assert support([graph.one]) == frozenset()


def test_operands_come_first(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    order = reachable([sin(x * y) - x, y / x])
    places = {node: i for i, node in enumerate(order)}
    assert all(places[operand] < places[node] for node in order for operand in node.operands)


def test_every_operation_can_be_rebuilt(graph):
    other = ExpressionGraph()
    for op, operation in OPERATIONS.items():
        symbols = [graph.symbol(f"s{i}") for i in range(operation.arity)]
        copies = [other.symbol(f"s{i}") for i in range(operation.arity)]
        node = rebuild(graph, op, symbols)
        assert node.op == op
        assert substitute([node], dict(zip(symbols, copies, strict=True))) == [rebuild(other, op, copies)]


def test_evaluation_broadcasts(graph):
    x, y = graph.symbol("x"), graph.symbol("y")
    grid, constant = evaluate([x * y + 1, graph.one], {"x": np.arange(3.0)[:, None], "y": np.arange(2.0)})
    np.testing.assert_equal(grid, [[1, 1], [1, 2], [1, 3]])
    assert constant == 1.0
    with pytest.raises(InputError, match="'y'"):
        evaluate([x * y], {"x": 1.0, "yy": 2.0})
