"""Conditions of user-defined transitions: comparisons joined by ``and``, ``or`` and ``not``."""

from __future__ import annotations

from typing import Final

from fsm_dyn.expressions import Boolean, Compare, Name, Node, Unary, free_names
from fsm_dyn.spec.controller_memory import memory_of_controllers
from fsm_dyn.spec.model import Mechanism

_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def is_condition(tree: Node, mechanism: Mechanism) -> bool:
    """Whether an expression is true or false, and no number."""
    boolean = isinstance(tree, Name) and tree.id in mechanism.memory and mechanism.memory[tree.id].is_boolean
    return boolean or isinstance(tree, (Compare, Boolean)) or (isinstance(tree, Unary) and tree.op == "not")


def without_negations(tree: Node, *, negated: bool = False) -> Node:
    """Return a condition with ``not`` before names only, by de Morgan's laws."""
    match tree:
        case Unary(op="not", operand=operand):
            return without_negations(operand, negated=not negated)
        case Boolean(op=op, operands=operands):
            other = "or" if op == "and" else "and"
            return Boolean(other if negated else op, tuple(without_negations(x, negated=negated) for x in operands))
        case Compare(op=op, left=left, right=right):
            return Compare(_NEGATED[op], left, right) if negated else tree
    return Unary("not", tree) if negated else tree


def parts_of(condition: Node) -> list[Node]:
    """Return the comparisons and names that a condition without negations joins."""
    if isinstance(condition, Boolean):
        return [part for operand in condition.operands for part in parts_of(operand)]
    return [condition]


def is_steady(tree: Node, mechanism: Mechanism) -> bool:
    """Whether an expression depends on memory and parameters alone, and so changes in jumps."""
    return free_names(tree) <= {*mechanism.memory, *mechanism.parameters, *memory_of_controllers(mechanism)}
