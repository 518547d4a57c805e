"""Forward tangent sweep (docs/theory.md, "Straight-line programs"): rates of rows, slopes of guards, Jacobians.

Conventions where a derivative does not exist: ``sign``, ``floor``, comparisons and logic have derivative 0
everywhere; ``abs(x)`` has ``sign(x)``, so 0 at 0; ``where`` takes the derivative of the branch taken;
``min`` and ``max`` take that of the operand that is chosen (at a tie that of the one made first, a constant's before
others); ``mod(a, b)`` has ``a' - floor(a / b) b'``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fsm_dyn.errors import InputError
from fsm_dyn.programs import functions as f
from fsm_dyn.programs.expression_graph import SYMBOL, Node
from fsm_dyn.programs.graph_traversal import reachable, support


def tangent(outputs: Sequence[Node], seeds: Mapping[Node, Node]) -> list[Node]:
    """Return the derivatives of `outputs` along the direction `seeds`, in one sweep over their union.

    Parameters
    ----------
    outputs : sequence of Node
        Expressions ``y_i``.
    seeds : mapping of Node to Node
        For symbols ``s_j`` their derivatives; symbols that are missing are constant.

    Returns
    -------
    list of Node
        ``sum_j (d y_i / d s_j) seeds[s_j]``.  What does not depend on a seed costs nothing.

    Raises
    ------
    InputError
        A key of `seeds` is not a symbol.

    Notes
    -----
    Forward mode as in A. Griewank, A. Walther, *Evaluating Derivatives*, SIAM 2008, section 3.1.
    """
    for symbol in seeds:
        if symbol.op != SYMBOL:
            raise InputError("only symbols can be seeded in a tangent sweep", found=repr(symbol))
    dots: dict[Node, Node] = {symbol: dot for symbol, dot in seeds.items() if not dot.is_zero}
    for node in reachable(outputs):
        operands = node.operands
        if operands and node.op not in _FLAT and any(operand in dots for operand in operands):
            dot = _RULES[node.op](node, *[dots.get(operand) for operand in operands])
            if not dot.is_zero:
                dots[node] = dot
    return [dots.get(node, node.graph.zero) for node in outputs]


def gradient(outputs: Sequence[Node], symbols: Sequence[Node]) -> list[list[Node]]:
    """Return the Jacobian ``[i][j] = d outputs_i / d symbols_j``, one sweep per symbol."""
    met = [support([output]) for output in outputs]
    rows = [[symbol.graph.zero for symbol in symbols] for _ in outputs]
    for j, symbol in enumerate(symbols):
        touched = [i for i, known in enumerate(met) if symbol in known]
        for i, slope in zip(touched, tangent([outputs[i] for i in touched], {symbol: symbol.graph.one}), strict=True):
            rows[i][j] = slope
    return rows


_FLAT = frozenset({"sign", "floor", "lt", "le", "eq", "ne", "and", "or", "not"})


def _zero(node: Node, dot: Node | None) -> Node:
    return node.graph.zero if dot is None else dot


def _add(node: Node, da: Node | None, db: Node | None) -> Node:
    return _zero(node, da) + _zero(node, db)


def _sub(node: Node, da: Node | None, db: Node | None) -> Node:
    return _zero(node, da) - _zero(node, db)


def _mul(node: Node, da: Node | None, db: Node | None) -> Node:
    a, b = node.operands
    if a is b and da is not None:
        return 2.0 * (a * da)
    return _zero(node, da) * b + a * _zero(node, db)


def _div(node: Node, da: Node | None, db: Node | None) -> Node:
    return (_zero(node, da) - node * _zero(node, db)) / node.operands[1]


def _pow(node: Node, da: Node | None, db: Node | None) -> Node:
    a, b = node.operands
    result = node.graph.zero
    if da is not None:
        result = b * a ** (b - 1.0) * da
    return result if db is None else result + f.log(a) * node * db


def _atan2(node: Node, dy: Node | None, dx: Node | None) -> Node:
    y, x = node.operands
    return (x * _zero(node, dy) - y * _zero(node, dx)) / (x * x + y * y)


def _mod(node: Node, da: Node | None, db: Node | None) -> Node:
    a, b = node.operands
    return _zero(node, da) - f.floor(a / b) * _zero(node, db)


def _min(node: Node, da: Node | None, db: Node | None) -> Node:
    a, b = node.operands
    return f.where(f.compare("<=", a, b), _zero(node, da), _zero(node, db))


def _max(node: Node, da: Node | None, db: Node | None) -> Node:
    a, b = node.operands
    return f.where(f.compare(">=", a, b), _zero(node, da), _zero(node, db))


def _where(node: Node, dc: Node | None, da: Node | None, db: Node | None) -> Node:
    return f.where(node.operands[0], _zero(node, da), _zero(node, db))


def _chain(rule: Callable[[Node, Node, Node], Node]) -> Callable[..., Node]:
    """Make a rule for a function of one operand: ``rule(node, operand, dot)``."""

    def apply(node: Node, dot: Node | None) -> Node:
        return rule(node, node.operands[0], _zero(node, dot))

    return apply


_RULES: dict[str, Callable[..., Node]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "atan2": _atan2,
    "mod": _mod,
    "min": _min,
    "max": _max,
    "where": _where,
    "neg": _chain(lambda node, x, dx: -dx),
    "sqrt": _chain(lambda node, x, dx: dx / (2.0 * node)),
    "exp": _chain(lambda node, x, dx: node * dx),
    "log": _chain(lambda node, x, dx: dx / x),
    "sin": _chain(lambda node, x, dx: f.cos(x) * dx),
    "cos": _chain(lambda node, x, dx: -(f.sin(x) * dx)),
    "tan": _chain(lambda node, x, dx: (1.0 + node * node) * dx),
    "asin": _chain(lambda node, x, dx: dx / f.sqrt(1.0 - x * x)),
    "acos": _chain(lambda node, x, dx: -dx / f.sqrt(1.0 - x * x)),
    "atan": _chain(lambda node, x, dx: dx / (1.0 + x * x)),
    "sinh": _chain(lambda node, x, dx: f.cosh(x) * dx),
    "cosh": _chain(lambda node, x, dx: f.sinh(x) * dx),
    "tanh": _chain(lambda node, x, dx: (1.0 - node * node) * dx),
    "abs": _chain(lambda node, x, dx: f.sign(x) * dx),
}
