"""Traversals of expression graphs: dependence, substitution, evaluation, and forward tangents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.programs import functions as f
from fsm_dyn.programs.graph import CONSTANT, OPERATIONS, SYMBOL, ExpressionGraph, Node

# -- Traversal of expression graphs --------------------------------------------------------------------------
#
# Traversal of expression graphs: reachability, dependence, substitution, evaluation, without recursion.


def reachable(outputs: Iterable[Node], stop: Collection[Node] = ()) -> list[Node]:
    """Return all nodes below and including `outputs`, operands before users.

    ``stop``: nodes at which the traversal stops; the nodes themselves are included.
    """
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node not in stop:
                stack.extend(node.operands)
    return sorted(seen, key=_making)


def _making(node: Node) -> int:
    return node.index


def support(outputs: Iterable[Node]) -> frozenset[Node]:
    """Return the symbols on which any of `outputs` depends."""
    return frozenset(node for node in reachable(outputs) if node.op == SYMBOL)


def rebuild(graph: ExpressionGraph, op: str, operands: Sequence[Node]) -> Node:
    """Return `op(operands)` in `graph` with all rewriting rules applied."""
    arithmetic = _ARITHMETIC.get(op)
    if arithmetic is not None:
        return arithmetic(graph, *operands)
    function = _FUNCTIONS.get(op)
    return graph.apply(op, *operands) if function is None else function(*operands)


_ARITHMETIC: dict[str, Callable[..., Node]] = {
    "neg": ExpressionGraph.negate,
    "add": ExpressionGraph.add,
    "sub": ExpressionGraph.subtract,
    "mul": ExpressionGraph.multiply,
    "div": ExpressionGraph.divide,
    "pow": ExpressionGraph.power,
}
# Functions with rules beyond folding constants.
_FUNCTIONS: dict[str, Callable[..., Node]] = {
    "sin": f.sin,
    "cos": f.cos,
    "tan": f.tan,
    "asin": f.asin,
    "atan": f.atan,
    "sinh": f.sinh,
    "cosh": f.cosh,
    "tanh": f.tanh,
    "abs": f.absolute,
    "sign": f.sign,
    "min": f.minimum,
    "max": f.maximum,
    "and": f.logical_and,
    "or": f.logical_or,
    "not": f.logical_not,
    "where": f.where,
}


def substitute(outputs: Sequence[Node], mapping: Mapping[Node, Node]) -> list[Node]:
    """Return `outputs` with every node of `mapping` replaced, simultaneously.

    ``mapping``: any nodes, not only symbols. The values may belong to another graph: then everything is copied there,
    and unmapped symbols keep their names.
    """
    if not outputs:
        return []
    graph = next((node.graph for node in mapping.values()), outputs[0].graph)
    same = graph is outputs[0].graph
    new: dict[Node, Node] = {}
    for node in reachable(outputs, stop=mapping.keys()):
        replacement = mapping.get(node)
        if replacement is not None:
            new[node] = replacement
        elif node.op == CONSTANT:
            new[node] = graph.constant(node.constant_value or 0.0)
        elif node.op == SYMBOL:
            new[node] = graph.symbol(node.name)
        else:
            operands = tuple([new[operand] for operand in node.operands])
            unchanged = same and operands == node.operands
            new[node] = node if unchanged else rebuild(graph, node.op, operands)
    return [new[node] for node in outputs]


def evaluate(outputs: Sequence[Node], values: Mapping[str, npt.ArrayLike]) -> list[Floats]:
    """Return the values of `outputs` by NumPy, element by element with broadcasting.

    ``values``: one entry per symbol of the outputs. Raises InputError: a symbol has no value.
    """
    results: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in reachable(outputs):
            if node.op == SYMBOL:
                if node.name not in values:
                    raise InputError(f"no value for the symbol '{node.name}'", remedy=did_you_mean(node.name, values))
                results[node] = np.asarray(values[node.name], dtype=np.float64)
            elif node.constant_value is not None:
                results[node] = np.float64(node.constant_value)
            else:
                results[node] = OPERATIONS[node.op].array(*[results[operand] for operand in node.operands])
    return [np.asarray(results[node], dtype=np.float64) for node in outputs]


# -- Forward tangent sweep -----------------------------------------------------------------------------------
#
# Forward tangent sweep (docs/theory.md, "Straight-line programs"): rates of rows, slopes of guards, Jacobians.
#
# Conventions for derivatives that do not exist: ``sign``, ``floor``, comparisons and logic have derivative 0
# everywhere; ``abs(x)`` has ``sign(x)``, so 0 at 0; ``where`` takes the derivative of the branch taken; ``min`` and
# ``max`` take the derivative of the chosen operand (at a tie of the node made first, constants before others);
# ``mod(a, b)`` has ``a' - floor(a / b) b'``.


def tangent(outputs: Sequence[Node], seeds: Mapping[Node, Node]) -> list[Node]:
    """Return the derivatives of `outputs` along the direction `seeds`, in one sweep over their union.

    ``outputs``: expressions ``y_i``. ``seeds``: for symbols ``s_j`` their derivatives; missing symbols are constant.
    Returns ``sum_j (d y_i / d s_j) seeds[s_j]``. Nodes independent of the seeds cost nothing. Raises InputError: a key
    of `seeds` is not a symbol.

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
