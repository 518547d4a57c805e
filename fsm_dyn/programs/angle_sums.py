"""Sines and cosines of sums of angles from those of the angles, if these are computed anyway.

A sine with its cosine costs about as much as twenty products; the addition theorem takes six operations.  In
mechanisms many angles are sums of others (``q1``, ``q1 + q2``, ``q2``), so that this halves the time of a long
planar chain.  It is applied when machine code is made, so programs stay as they are for reading and for checks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsm_dyn.programs.expression_graph import Node
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph_traversal import reachable, rebuild
from fsm_dyn.programs.program import Program


def share_angles(program: Program) -> Program:
    """Return an equal program in which no sine or cosine is called whose angle is a sum of known ones.

    The results differ by a few units of the last place of 1, as the rounding of the sum itself does.
    """
    if not any(op in ("sin", "cos") for op, _ in program.instructions):
        return program
    _, _, outputs = program.graph()
    replaced = _replaced([node for array in outputs.values() for node in array.ravel()])
    shared, start = {}, 0
    for name, array in outputs.items():
        entries = np.empty(array.size, dtype=object)
        entries[:] = replaced[start : start + array.size]
        shared[name] = entries.reshape(array.shape)
        start += array.size
    return Program.from_nodes(program.layout, shared)


def _replaced(outputs: Sequence[Node]) -> list[Node]:
    order = reachable(outputs)
    known = {node.operands[0] for node in order if node.op in ("sin", "cos")}
    new: dict[Node, Node] = {}
    pairs: dict[Node, tuple[Node, Node]] = {}

    def pair(angle: Node) -> tuple[Node, Node]:
        """Return sine and cosine of an angle of the old program."""
        found = pairs.get(angle)
        if found is None:
            if angle.op in ("add", "sub") and all(_is_known(part, known) for part in angle.operands):
                (s1, c1), (s2, c2) = pair(angle.operands[0]), pair(angle.operands[1])
                s2 = -s2 if angle.op == "sub" else s2
                found = (s1 * c2 + c1 * s2, c1 * c2 - s1 * s2)
            elif angle.op == "neg":
                sine, cosine = pair(angle.operands[0])
                found = (-sine, cosine)
            else:
                found = (sin(new[angle]), cos(new[angle]))
            pairs[angle] = found
        return found

    for node in order:
        if node.op in ("sin", "cos"):
            new[node] = pair(node.operands[0])[0 if node.op == "sin" else 1]
        elif node.operands:
            operands = tuple([new[operand] for operand in node.operands])
            new[node] = node if operands == node.operands else rebuild(node.graph, node.op, operands)
        else:
            new[node] = node
    return [new[node] for node in outputs]


def _is_known(angle: Node, known: set[Node]) -> bool:
    return angle.constant_value is not None or angle in known or (angle.op == "neg" and angle.operands[0] in known)
