import math

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs import functions
from fsm_dyn.programs.functions import (
    absolute,
    atan2,
    compare,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    sign,
    sin,
    sqrt,
    tanh,
    where,
)
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Layout, Program

nan, inf = math.nan, math.inf
UNARY = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "absolute": abs, "sign": lambda x: math.copysign(1, x), "floor": math.floor,
}  # fmt: skip


@pytest.fixture(scope="module")
def run():
    """Return a function that evaluates an expression of a, b by a kernel and checks NumPy against it."""

    def evaluate(build, a, b=0.0):
        graph = ExpressionGraph()
        node = build(graph.symbol("a"), graph.symbol("b"))
        program = Program.from_nodes(Layout(q=("a", "b")), {"value": node})
        (value,) = compile_programs([program])[0](0.0, [a, b], [])
        np.testing.assert_allclose(program.evaluate(0.0, [a, b], [])["value"], value, rtol=4e-16)
        return value

    return evaluate


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("x", [0.3, 0.97])
def test_unary(run, name, x):
    function = getattr(functions, name)
    assert run(lambda a, b: function(a), x) == pytest.approx(UNARY[name](x), rel=3e-16)
    assert math.isnan(run(lambda a, b: function(a), nan))
    constant = function(ExpressionGraph().constant(x)).constant_value
    assert constant == pytest.approx(UNARY[name](x), rel=3e-16)


@pytest.mark.parametrize(
    ("a", "b", "remainder"),
    [(7, 3, 1), (-7, 3, 2), (7, -3, -2), (-7, -3, -1), (6, 3, 0), (0.5, 0.2, 0.1), (1, inf, 1), (1, 0, nan)],
)
def test_mod_has_the_sign_of_the_divisor(run, a, b, remainder):
    assert run(mod, a, b) == pytest.approx(remainder, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"), [(1, 2, 1, 2), (2, 1, 1, 2), (nan, 1, nan, nan), (1, nan, nan, nan), (-inf, 1, -inf, 1)]
)
def test_minimum_and_maximum_propagate_nan(run, a, b, low, high):
    np.testing.assert_equal(run(minimum, a, b), low)
    np.testing.assert_equal(run(maximum, a, b), high)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 1), (1, 1), (nan, 1), (1, nan)])
def test_comparisons(run, a, b):
    expected = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
    for op, truth in expected.items():
        assert run(lambda x, y, op=op: compare(op, x, y), a, b) == float(truth)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 3), (-2, 0), (1, 1)])
def test_logic(run, a, b):
    assert run(logical_and, a, b) == float(bool(a and b))
    assert run(logical_or, a, b) == float(bool(a or b))
    assert run(lambda x, y: logical_not(x), a) == float(not a)
    assert run(lambda x, y: where(x, y, 5.0), a, b) == (b if a else 5.0)
    both = run(lambda x, y: logical_not(logical_and(compare("<", x, 1), compare(">", y, 0))), a, b)
    assert both == float(not (a < 1 and b > 0))


def test_the_branch_not_taken_does_not_matter(run):
    assert run(lambda a, b: where(compare(">", a, 0.0), sqrt(a), 0.0), -1.0) == 0.0


def test_sign_keeps_zero_and_nan(run):
    assert run(lambda a, b: sign(a), 0.0) == 0.0
    assert run(lambda a, b: sign(a), -3.0) == -1.0


def test_powers(run):
    for exponent in (0.5, 1.5, 2.5, -1.5, 3, -2, 17, 1 / 3):
        assert run(lambda a, b, n=exponent: a**n, 1.7) == pytest.approx(1.7**exponent, rel=1e-15)
    assert run(lambda a, b: a**b, 1.7, 2.2) == pytest.approx(1.7**2.2, rel=1e-15)
    assert run(lambda a, b: 2.0**a, 1.7) == pytest.approx(2.0**1.7, rel=1e-15)
    assert math.isnan(run(lambda a, b: a**1.5, -1.0))
    assert run(lambda a, b: atan2(a, b), -1.0, -1.0) == math.atan2(-1.0, -1.0)


def test_local_rules():
    graph = ExpressionGraph()
    x, y = graph.symbol("x"), graph.symbol("y")
    less = compare("<", x, y)
    assert compare(">", y, x) is less
    assert compare("==", x, y) is compare("==", y, x)
    assert where(less, x, x) is x
    assert where(graph.one, x, y) is x
    assert where(0.0, x, y) is y
    assert minimum(x, x) is x
    assert minimum(x, y) is minimum(y, x)
    assert logical_not(logical_not(less)) is less
    assert logical_not(logical_not(x)) is not x
    assert absolute(-x) is absolute(x)
    assert tanh(-x) is -tanh(x)


def test_errors():
    with pytest.raises(InputError, match="numbers only"):
        sin(1.0)
    with pytest.raises(InputError, match="comparison") as caught:
        compare("=<", ExpressionGraph().symbol("x"), 1.0)
    assert "<=" in str(caught.value)
