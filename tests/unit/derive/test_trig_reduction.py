"""Local reduction: equal values, never more operations, squares of sines and cosines joined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_dyn.derive.reduction import Reducer, condense, cost
from fsm_dyn.programs.functions import cos, sin, sqrt
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.traversal import evaluate, support

LEAVES = st.sampled_from(["x", "y", "sin(x)", "cos(x)", "sin(y)", "cos(y)", 2.0, -1.0, 0.5])
TREES = st.recursive(LEAVES, lambda inner: st.tuples(st.sampled_from("+-*/"), inner, inner), max_leaves=14)


def build(tree, graph):
    match tree:
        case float():
            return graph.constant(tree)
        case str():
            if "(" not in tree:
                return graph.symbol(tree)
            return {"s": sin, "c": cos}[tree[0]](graph.symbol(tree[4]))
        case "+", a, b:
            return build(a, graph) + build(b, graph)
        case "-", a, b:
            return build(a, graph) - build(b, graph)
        case "*", a, b:
            return build(a, graph) * build(b, graph)
        case _, a, b:
            return build(a, graph) / (build(b, graph) ** 2 + 2.0)


@settings(max_examples=150, deadline=None)
@given(TREES)
def test_values_stay_and_operations_do_not_grow(tree):
    graph = ExpressionGraph()
    node = build(tree, graph)
    reduced = Reducer(graph).reduce(node)
    assert cost([reduced]) <= cost([node])
    values = {"x": np.array([0.3, 1.7, -2.0]), "y": np.array([0.9, -0.4, 2.5])}
    before, after = evaluate([node, reduced], values)
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9 * max(1.0, float(np.max(np.abs(before)))))


@pytest.fixture
def graph():
    return ExpressionGraph()


def test_squares_are_joined(graph):
    a, u, v = (graph.symbol(name) for name in "auv")
    c, s = cos(a), sin(a)
    reducer = Reducer(graph)
    assert reducer.reduce(c * (c * u - s * v) + s * (s * u + c * v)) is u
    assert reducer.reduce(c * c * u + s * s * u + v) is u + v
    assert reducer.reduce((c * c - 1.0) / s) is -s
    assert reducer.reduce(s * (u / s)) is u


def test_unit_sets_are_joined(graph):
    e = [graph.symbol(f"e{i}") for i in range(4)]
    u = graph.symbol("u")
    reducer = Reducer(graph, [e])
    assert reducer.reduce(e[0] * (e[0] * u) + e[1] * (e[1] * u) + u * (e[2] * e[2] + e[3] * e[3])) is u
    assert reducer.is_zero(1.0 - e[0] ** 2 - e[1] ** 2 - e[2] ** 2 - e[3] ** 2)


def test_what_cannot_become_smaller_stays(graph):
    a, b = graph.symbol("a"), graph.symbol("b")
    for node in (a, a * b, cos(a) * b, sqrt(a * a + b), a / (1.0 + b), graph.constant(3.0)):
        assert Reducer(graph).reduce(node) is node


def test_long_sums_are_left_alone(graph):
    total = graph.one
    for i in range(8):
        total = total * (graph.symbol(f"a{i}") + graph.symbol(f"b{i}"))
    assert Reducer(graph).reduce(total + 1.0) is total + 1.0
    assert not Reducer(graph).is_zero(total)


def test_condensing_counts_shared_parts_once(graph):
    a, b, c, d = (graph.symbol(name) for name in "abcd")
    alone = a * b + a * c
    chosen = condense([alone], Reducer(graph))
    assert chosen[alone] is a * (b + c)
    shared = [alone, a * b * d, a * c * d]
    together = condense(shared, Reducer(graph))
    assert together[alone] is alone  # both products are needed anyway
    assert support(together.values()) == support(shared)
