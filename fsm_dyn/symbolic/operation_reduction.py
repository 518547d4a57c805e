"""Fewer operations for several expressions together, counting what they share."""

from __future__ import annotations

from collections.abc import Iterable

from fsm_dyn.programs import Node
from fsm_dyn.symbolic.trig_reduction import OPERATION, Reducer, cost, is_small

LARGEST_TOTAL = 6000  # weighted operations; beyond, looking at them again and again takes too long
DEEPEST = 300


def condense(outputs: Iterable[Node], reducer: Reducer) -> dict[Node, Node]:
    """Choose a form for each expression so that all of them together take fewer operations.

    The reduction of a single expression cannot know what others compute anyway; here each is replaced only if
    the sum over all, shared parts counted once, becomes smaller.

    Parameters
    ----------
    outputs : iterable of Node
    reducer : Reducer

    Returns
    -------
    dict of Node to Node
        For every output an equal node.
    """
    chosen = {node: node for node in outputs}
    least = cost(chosen.values())
    if least > LARGEST_TOTAL:
        return chosen
    for node in chosen:
        if not node.operands or not is_small(node, DEEPEST):
            continue
        for candidate in reducer.forms(node):
            before = chosen[node]
            chosen[node] = candidate
            total = cost(chosen.values())
            if total + OPERATION <= least:
                least = total
            else:
                chosen[node] = before
    return chosen
