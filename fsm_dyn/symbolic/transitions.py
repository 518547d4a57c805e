"""User-defined transitions: conditions as scalars that cross zero, resets as new values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from fsm_dyn import expressions
from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, maximum, minimum
from fsm_dyn.spec.model import TransitionSpec
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.terms import TransitionTerms

Crossing: TypeAlias = Literal["rising", "falling", "both"]


def transition_terms(transition: TransitionSpec, algebra: NodeAlgebra, impulse: Sequence[Node]) -> TransitionTerms:
    """Return a transition's guard and resets as nodes, with its generalized impulses, shape (n,).

    Parameters
    ----------
    transition : TransitionSpec
        The entry of the model.
    algebra : NodeAlgebra
        Gives names their meaning.
    impulse : Sequence[Node]
        Generalized impulses, one for each speed.
    """
    guard, crossing = None, transition.crossing
    if transition.when is not None:
        guard, crossing = _guard(transition.when, transition.crossing, algebra)
    return TransitionTerms(
        spec=transition,
        guard=guard,
        crossing=crossing,
        reset={name: algebra.scalar(text) for name, text in transition.reset.items()},
        set={name: algebra.scalar(text) for name, text in transition.set.items()},
        impulse=tuple(impulse),
    )


def _guard(text: Text, crossing: Crossing, algebra: NodeAlgebra) -> tuple[Node, Crossing]:
    """Return the scalar that crosses zero, and in which direction.

    A condition becomes a scalar that is positive where it holds; it fires when it begins to hold.
    """
    tree = expressions.parse(text)
    if isinstance(tree, expressions.Compare) and tree.op == "==":
        return _difference(tree.left, tree.right, text, algebra), "both"
    if isinstance(tree, (expressions.Compare, expressions.Boolean)) or _is_negation(tree):
        return _margin(tree, text, algebra), "rising"
    return algebra.scalar(text), crossing


def _margin(tree: expressions.Node, text: Text, algebra: NodeAlgebra) -> Node:
    """Return a scalar that is positive where the condition holds and negative where it does not."""
    match tree:
        case expressions.Compare(op=">" | ">=", left=left, right=right):
            return _difference(left, right, text, algebra)
        case expressions.Compare(op="<" | "<=", left=left, right=right):
            return _difference(right, left, text, algebra)
        case expressions.Boolean(op=op, operands=operands):
            margins = [_margin(operand, text, algebra) for operand in operands]
            result = margins[0]
            for margin in margins[1:]:
                result = minimum(result, margin) if op == "and" else maximum(result, margin)
            return result
        case expressions.Unary(op="not", operand=operand):
            return -_margin(operand, text, algebra)
    raise ModelError(
        "this condition does not begin to hold at a definite instant",
        text.where,
        found=f"'{text.text}'",
        allowed="a scalar that crosses zero, or < <= > >= joined by and, or, not",
    )


def _difference(left: expressions.Node, right: expressions.Node, text: Text, algebra: NodeAlgebra) -> Node:
    return algebra.tree(left, text) - algebra.tree(right, text)


def _is_negation(tree: expressions.Node) -> bool:
    return isinstance(tree, expressions.Unary) and tree.op == "not"
