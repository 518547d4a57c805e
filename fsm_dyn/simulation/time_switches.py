"""Instants at which programs jump because the time passes a bound: ``where(t < 0.5 s, ...)``.

A step ends there, so that none passes over a pulse and each sees one branch alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs import Program
from fsm_dyn.programs import functions as f
from fsm_dyn.programs.expression_graph import Node
from fsm_dyn.programs.graph_traversal import reachable

_CHOICES: Final = frozenset({"lt", "le", "sign", "floor", "min", "max", "abs", "mod"})
_PARTS: Final = 4096  # of a span, in each of which one switch of each choice is found


@lru_cache(maxsize=64)
def switches(program: Program) -> Program | None:
    """Return a program of choices that jump at instants and are constant between them, None where there are none.

    Its output ``switches`` has the choices of `program` between expressions of ``t`` and parameters alone.
    """
    if not any(op in _CHOICES for op, _ in program.instructions):
        return None
    _, symbols, outputs = program.graph()
    nodes = [node for array in outputs.values() for node in array.ravel()]
    clock, constant = symbols["t"], {symbols[name] for name in program.layout.p}
    timed: dict[Node, bool] = {}  # nodes of t and parameters alone: whether t is among them
    found = []
    for node in reachable(nodes):
        if not node.operands:
            if node is clock or node in constant or node.constant_value is not None:
                timed[node] = node is clock
        elif all(operand in timed for operand in node.operands):
            timed[node] = any(timed[operand] for operand in node.operands)
            if node.op in _CHOICES and timed[node]:
                found += _jumps(node)
    if not found:
        return None
    return Program.from_nodes(program.layout, {"switches": np.array(found, dtype=object)})


def _jumps(node: Node) -> list[Node]:
    """Return what jumps where the value or the slope of a choice does."""
    zero = node.graph.zero
    match node.op:
        case "min" | "max":
            return [f.compare("<", *node.operands)]
        case "abs" | "sign":  # of zero, the sign is neither
            return [f.compare("<", node.operands[0], zero), f.compare(">", node.operands[0], zero)]
        case "mod":
            return [f.floor(node.operands[0] / node.operands[1])]
    return [node]


def time_switches(program: Program, parameters: npt.NDArray[np.float64], span: tuple[float, float]) -> list[float]:
    """Return the neighbouring pairs of doubles (s) between which a program switches, in order.

    Parameters
    ----------
    program : Program
        Of one scalar or several.
    parameters : float64 array, shape (n_p,)
    span : (float, float)
        Times between which they are looked for, s. Of each choice one is found in each of 4096 parts.
    """
    jumps = switches(program)
    if jumps is None or not span[0] < span[1] < np.inf:
        return []
    x, c = np.zeros(program.layout.n_x), np.zeros(program.layout.n_c)
    c[: len(parameters)] = parameters

    def at(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return jumps.evaluate(t, x, c)["switches"]

    times = np.linspace(*span, _PARTS + 1)
    values = at(times)
    part, which = np.nonzero(values[1:] != values[:-1])
    low, high, before = times[part], times[part + 1], values[part, which]
    number = np.arange(len(part))
    middle = low + 0.5 * (high - low)
    while ((low < middle) & (middle < high)).any():
        same = at(middle)[number, which] == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
        middle = low + 0.5 * (high - low)
    return sorted({float(t) for t in (*low, *high)})
