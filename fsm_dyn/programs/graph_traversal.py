"""Traversal of expression graphs: reachability, dependence, substitution, evaluation, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.programs import functions as f
from fsm_dyn.programs.expression_graph import CONSTANT, SYMBOL, ExpressionGraph, Node
from fsm_dyn.programs.operations import OPERATIONS


def reachable(outputs: Iterable[Node], stop: Collection[Node] = ()) -> list[Node]:
    """Return all nodes below and including `outputs`, operands before users.

    Parameters
    ----------
    outputs : iterable of Node
    stop : collection of Node
        Nodes whose operands are not followed; the nodes themselves are included.
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


def depends_on(node: Node, symbols: Collection[Node]) -> bool:
    """Whether `node` depends on any of `symbols`."""
    return not support([node]).isdisjoint(symbols)


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
# The functions that have rules beyond folding constants.
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

    Parameters
    ----------
    outputs : sequence of Node
    mapping : mapping of Node to Node
        Any nodes, not only symbols.  The values may live in another graph: then everything is copied there,
        symbols that are not mapped keep their names.
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


def evaluate(outputs: Sequence[Node], values: Mapping[str, npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
    """Return the values of `outputs` by NumPy, element by element with broadcasting.

    Parameters
    ----------
    outputs : sequence of Node
    values : mapping of str to array-like
        One entry per symbol that is met.

    Raises
    ------
    InputError
        A symbol has no value.
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
