import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import (
    absolute,
    acos,
    asin,
    atan,
    atan2,
    compare,
    cos,
    cosh,
    exp,
    floor,
    log,
    maximum,
    minimum,
    mod,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)
from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.traversal import evaluate, gradient, reachable, support, tangent

# Each with a domain in which it is smooth.
SMOOTH = {
    "sum": lambda a, b: 2 * a - b + 3,
    "product": lambda a, b: a * b * a,
    "quotient": lambda a, b: (a + b) / (a * b - 4),
    "whole power": lambda a, b: a**3 + b**-2,
    "root power": lambda a, b: a**1.5 + b**2.5,
    "odd power": lambda a, b: a**0.3,
    "power": lambda a, b: a**b,
    "sqrt": lambda a, b: sqrt(a * a + b),
    "exp": lambda a, b: exp(-a * b),
    "log": lambda a, b: log(a + 3 * b),
    "sin": lambda a, b: sin(a * b) * cos(a - b),
    "tan": lambda a, b: tan(a * b),
    "asin": lambda a, b: asin(a * b * 0.3) + acos(a - b),
    "atan": lambda a, b: atan(a / b),
    "sinh": lambda a, b: sinh(a) * cosh(b) + tanh(a * b),
    "where": lambda a, b: where(compare("<", a, b), sin(a), b * b),
}
KINKED = {
    "atan2": lambda a, b: atan2(a, b * a - 2),
    "absolute": lambda a, b: absolute(a - 2 * b),
    "minimum": lambda a, b: minimum(a * a, b) + maximum(a, b * b),
    "mod": lambda a, b: mod(5 * a, b),
    "floor": lambda a, b: floor(3 * a) * b + sign(a - b) * a,
}


def build(expression):
    graph = ExpressionGraph()
    a, b = graph.symbol("a"), graph.symbol("b")
    da, db = graph.symbol("da"), graph.symbol("db")
    value = expression(a, b)
    (slope,) = tangent([value], {a: da, b: db})
    return value, slope


def complex_value(node, values):
    """Evaluate with complex numbers, which NumPy's operations take where they are analytic."""
    results = {}
    for below in reachable([node]):
        if below.op == "sym":
            results[below] = values[below.name]
        elif below.constant_value is not None:
            results[below] = below.constant_value
        elif below.op == "where":
            test, first, second = (results[operand] for operand in below.operands)
            results[below] = first if test.real != 0 else second
        elif below.op == "lt":
            results[below] = np.float64(results[below.operands[0]].real < results[below.operands[1]].real)
        elif below.op == "pow":
            results[below] = np.power(*[results[operand] for operand in below.operands])
        else:
            results[below] = OPERATIONS[below.op].array(*[results[operand] for operand in below.operands])
    return results[node]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("a", "b"), [(0.7, 1.1), (1.2, 0.9)])
def test_against_the_complex_step(name, a, b):
    value, slope = build(SMOOTH[name])
    da, db, h = 0.3, -0.8, 1e-30
    expected = complex_value(value, {"a": np.complex128(a + 1j * h * da), "b": np.complex128(b + 1j * h * db)}).imag / h
    found = evaluate([slope], {"a": a, "b": b, "da": da, "db": db})[0]
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", SMOOTH | KINKED)
@pytest.mark.parametrize(("a", "b"), [(0.7, 1.1), (1.2, 0.9)])
def test_against_central_differences(name, a, b):
    value, slope = build((SMOOTH | KINKED)[name])
    da, db, h = 0.3, -0.8, 1e-6
    up, down = (evaluate([value], {"a": a + s * h * da, "b": b + s * h * db})[0] for s in (1, -1))
    found = evaluate([slope], {"a": a, "b": b, "da": da, "db": db})[0]
    assert found == pytest.approx((up - down) / (2 * h), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(random_program, seed):
    program = random_program(seed, size=70, ops=("neg", "add", "sub", "mul", "sin", "cos", "tanh", "atan"))
    graph, symbols, outputs = program.graph()
    rng = np.random.default_rng(seed)
    values = {name: np.complex128(rng.uniform(-1, 1)) for name in symbols}
    seeds = {name: rng.uniform(-1, 1) for name in list(symbols)[::2]}
    nodes = list(outputs["all"])
    slopes = tangent(nodes, {symbols[name]: graph.constant(dot) for name, dot in seeds.items()})
    found = evaluate(slopes, {name: value.real for name, value in values.items()})
    stepped = {name: value + 1j * 1e-30 * seeds.get(name, 0.0) for name, value in values.items()}
    for node, slope in zip(nodes, found, strict=True):
        assert slope == pytest.approx(complex_value(node, stepped).imag / 1e-30, rel=1e-10, abs=1e-12)


def test_conventions_at_kinks():
    graph = ExpressionGraph()
    x = graph.symbol("x")

    def slope(value, at):
        return float(evaluate(tangent([value], {x: graph.one}), {"x": at})[0])

    assert slope(absolute(x), 0.0) == 0.0
    assert slope(sign(x), 0.0) == slope(floor(x), 1.0) == 0.0
    assert slope(compare("<", x, 0.0) * 3, 0.0) == 0.0
    assert slope(maximum(x, 0.0), 0.0) == slope(minimum(0.0, x), 0.0) == 0.0
    assert slope(where(compare(">", x, 0.0), x * x, -x), 0.0) == -1.0
    assert slope(x**1.5, 0.0) == 0.0  # the force of a Hertzian contact that just touches


def test_sparse():
    graph = ExpressionGraph()
    x, y = graph.symbol("x"), graph.symbol("y")
    value = sin(y) * exp(y)
    before = len(graph)
    assert tangent([value, x, value * x], {x: graph.one}) == [graph.zero, graph.one, value]
    assert tangent([x], {}) == [graph.zero]
    assert tangent([x * y], {x: graph.zero, y: graph.zero}) == [graph.zero]
    assert tangent([], {x: graph.one}) == []
    assert len(graph) == before + 2  # value * x and x * y


def test_one_seed_at_a_time_makes_the_jacobian():
    graph = ExpressionGraph()
    x, y = graph.symbol("x"), graph.symbol("y")
    assert gradient([x * y, x + 2 * y], [x, y]) == [[y, x], [graph.one, graph.constant(2)]]


def test_only_symbols_are_seeded():
    graph = ExpressionGraph()
    x = graph.symbol("x")
    with pytest.raises(InputError, match="symbols"):
        tangent([x], {x * x: graph.one})


def test_no_recursion():
    graph = ExpressionGraph()
    x = node = graph.symbol("x")
    for i in range(20_000):
        node = sin(node) + i * x
    (slope,) = tangent([node], {x: graph.one})
    assert x in support([slope])
