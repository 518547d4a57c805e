"""Functions of expression nodes: arguments are nodes and numbers, at least one node; the result is a node.

Angles are in radians.  Even and odd functions move a sign out of their argument.
"""

from __future__ import annotations

from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.programs.graph import TRUTH_VALUED, ExpressionGraph, Node, Scalar

ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "sign"})
EVEN = frozenset({"cos", "cosh", "abs"})


def _graph_of(*operands: Scalar) -> ExpressionGraph:
    for operand in operands:
        if isinstance(operand, Node):
            return operand.graph
    raise InputError("a function of expressions got numbers only", found=repr(operands))


def _unary(op: str, x: Scalar) -> Node:
    graph = _graph_of(x)
    node = graph.constant(x)
    if node.op == "neg":
        if op in ODD:
            return graph.negate(graph.apply(op, node.operands[0]))
        if op in EVEN:
            return graph.apply(op, node.operands[0])
    return graph.apply(op, node)


def _binary(op: str, a: Scalar, b: Scalar) -> Node:
    graph = _graph_of(a, b)
    return graph.apply(op, graph.constant(a), graph.constant(b))


def _symmetric(op: str, a: Scalar, b: Scalar) -> Node:
    graph = _graph_of(a, b)
    first, second = graph.constant(a), graph.constant(b)
    return graph.apply(op, first, second) if first.index <= second.index else graph.apply(op, second, first)


def sin(x: Scalar) -> Node:
    """Sine."""
    return _unary("sin", x)


def cos(x: Scalar) -> Node:
    """Cosine."""
    return _unary("cos", x)


def tan(x: Scalar) -> Node:
    """Tangent."""
    return _unary("tan", x)


def asin(x: Scalar) -> Node:
    """Inverse sine, in [-pi/2, pi/2]."""
    return _unary("asin", x)


def acos(x: Scalar) -> Node:
    """Inverse cosine, in [0, pi]."""
    return _unary("acos", x)


def atan(x: Scalar) -> Node:
    """Inverse tangent, in (-pi/2, pi/2)."""
    return _unary("atan", x)


def atan2(y: Scalar, x: Scalar) -> Node:
    """Angle of the point (x, y), in [-pi, pi]."""
    return _binary("atan2", y, x)


def sinh(x: Scalar) -> Node:
    """Hyperbolic sine."""
    return _unary("sinh", x)


def cosh(x: Scalar) -> Node:
    """Hyperbolic cosine."""
    return _unary("cosh", x)


def tanh(x: Scalar) -> Node:
    """Hyperbolic tangent."""
    return _unary("tanh", x)


def sqrt(x: Scalar) -> Node:
    """Square root; NaN for negative numbers."""
    return _unary("sqrt", x)


def exp(x: Scalar) -> Node:
    """Exponential."""
    return _unary("exp", x)


def log(x: Scalar) -> Node:
    """Natural logarithm."""
    return _unary("log", x)


def absolute(x: Scalar) -> Node:
    """Absolute value."""
    return _unary("abs", x)


def sign(x: Scalar) -> Node:
    """-1, 0 or 1; NaN for NaN."""
    return _unary("sign", x)


def floor(x: Scalar) -> Node:
    """Largest whole number not above `x`."""
    return _unary("floor", x)


def mod(a: Scalar, b: Scalar) -> Node:
    """``a - b floor(a / b)``: the remainder with the sign of `b`, as in Python."""
    return _binary("mod", a, b)


def minimum(a: Scalar, b: Scalar) -> Node:
    """The smaller of two; NaN if either is."""
    return _extremum("min", a, b)


def maximum(a: Scalar, b: Scalar) -> Node:
    """The larger of two; NaN if either is."""
    return _extremum("max", a, b)


def _extremum(op: str, a: Scalar, b: Scalar) -> Node:
    return a if isinstance(a, Node) and a is b else _symmetric(op, a, b)


def where(condition: Scalar, a: Scalar, b: Scalar) -> Node:
    """`a` if `condition` is not 0, else `b`; both are evaluated, one is taken."""
    graph = _graph_of(condition, a, b)
    test, first, second = graph.constant(condition), graph.constant(a), graph.constant(b)
    if first is second:
        return first
    if test.constant_value is not None:
        return first if test.constant_value != 0.0 else second
    return graph.intern("where", (test, first, second))


def compare(op: str, a: Scalar, b: Scalar) -> Node:
    """1.0 if ``a op b`` holds, else 0.0; `op` is one of ``< <= > >= == !=``.

    Raises InputError: `op` is none of these.
    """
    match op:
        case "<":
            return _binary("lt", a, b)
        case "<=":
            return _binary("le", a, b)
        case ">":
            return _binary("lt", b, a)
        case ">=":
            return _binary("le", b, a)
        case "==":
            return _symmetric("eq", a, b)
        case "!=":
            return _symmetric("ne", a, b)
    allowed = ("<", "<=", ">", ">=", "==", "!=")
    raise InputError("unknown comparison", found=repr(op), allowed=" ".join(allowed), remedy=did_you_mean(op, allowed))


def logical_and(a: Scalar, b: Scalar) -> Node:
    """1.0 if neither is 0."""
    return _symmetric("and", a, b)


def logical_or(a: Scalar, b: Scalar) -> Node:
    """1.0 if one is not 0."""
    return _symmetric("or", a, b)


def logical_not(a: Scalar) -> Node:
    """1.0 if `a` is 0."""
    graph = _graph_of(a)
    node = graph.constant(a)
    if node.op == "not" and node.operands[0].op in TRUTH_VALUED:
        return node.operands[0]
    return graph.apply("not", node)
