"""User-defined transitions: conditions as scalars that cross zero, resets as new values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from fsm_dyn import expressions
from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.laws import ConditionKind
from fsm_dyn.programs import Node, functions, maximum, minimum
from fsm_dyn.spec.model import Mechanism, TransitionSpec
from fsm_dyn.spec.transition_conditions import is_condition, is_steady, parts_of, without_negations
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.terms import TransitionTerms

Crossing: TypeAlias = Literal["rising", "falling", "both"]

_DECIDED: Final = (
    1e9  # margin of a part of a condition that changes in jumps alone: it decides, or leaves it to the others
)
_WIDE: Final = 4e-12  # by which <= and >= are met early if they are joined with < and >, above what a guard may be off


def transition_terms(
    transition: TransitionSpec, mechanism: Mechanism, algebra: NodeAlgebra, impulse: Sequence[Node]
) -> TransitionTerms:
    """Return a transition's guard and resets as nodes, with its generalized impulses, shape (n,).

    Parameters
    ----------
    transition : TransitionSpec
        The entry of the model.
    mechanism : Mechanism
        The model.
    algebra : NodeAlgebra
        Gives names their meaning.
    impulse : Sequence[Node]
        Generalized impulses, one for each speed.
    """
    guard, crossing, condition = None, transition.crossing, ConditionKind.CROSSES
    if transition.when is not None:
        tree = expressions.parse(transition.when)
        if is_condition(tree, mechanism):
            guard, condition = _ConditionMargin(tree, transition.when, mechanism, algebra).guard()
            crossing = "rising"
        else:
            guard = algebra.scalar(transition.when)
    return TransitionTerms(
        spec=transition,
        guard=guard,
        crossing=crossing,
        condition=condition,
        reset={name: algebra.scalar(text) for name, text in transition.reset.items()},
        set={name: algebra.scalar(text) for name, text in transition.set.items()},
        impulse=tuple(impulse),
    )


class _ConditionMargin:
    """A condition as a scalar that is positive where it holds: the margin of a comparison, the extreme one of several.

    Parameters
    ----------
    tree : expressions.Node
        The condition.
    text : Text
        Its text.
    mechanism : Mechanism
        The model.
    algebra : NodeAlgebra
        Gives names their meaning.
    """

    def __init__(self, tree: expressions.Node, text: Text, mechanism: Mechanism, algebra: NodeAlgebra) -> None:
        self._tree = without_negations(tree)
        self._text, self._mechanism, self._algebra = text, mechanism, algebra
        parts = parts_of(self._tree)
        self._alone = len(parts) == 1 and isinstance(parts[0], expressions.Compare) and parts[0].op not in ("==", "!=")
        self._moving = [part for part in parts if self._alone or not is_steady(part, mechanism)]
        self._wide = bool(self._moving) and all(_is_wide(part) for part in self._moving)

    def guard(self) -> tuple[Node, ConditionKind]:
        """Return the scalar, and whether the condition is met where it is zero."""
        return self._margin(self._tree), ConditionKind.WIDE if self._wide else ConditionKind.STRICT

    def _margin(self, tree: expressions.Node) -> Node:
        match tree:
            case expressions.Boolean(op=op, operands=operands):
                margins = [self._margin(operand) for operand in operands]
                result = margins[0]
                for margin in margins[1:]:
                    result = minimum(result, margin) if op == "and" else maximum(result, margin)
                return result
            case expressions.Compare(op="==" | "!=") if tree in self._moving:
                raise ModelError(
                    "this condition does not begin to hold at a definite instant",
                    self._text.where,
                    found=f"'{self._text.text}'",
                    allowed="a scalar that crosses zero, or < <= > >= joined by and, or, not",
                )
            case expressions.Compare(op=op, left=left, right=right) if tree in self._moving:
                sides = [self._algebra.tree(side, self._text) for side in (left, right)]
                margin = sides[0] - sides[1] if op in (">", ">=") else sides[1] - sides[0]
                return margin + _WIDE if _is_wide(tree) and not self._wide else margin
        return functions.where(self._algebra.tree(tree, self._text), _DECIDED, -_DECIDED)


def _is_wide(part: expressions.Node) -> bool:
    return isinstance(part, expressions.Compare) and part.op in ("<=", ">=")
