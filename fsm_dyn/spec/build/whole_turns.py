"""Whole turns of joints in space, which absolute coordinates do not count: what depends on them is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, Final

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Binary, Call, Name, Number, Unary, parse
from fsm_dyn.spec.checks.unit_usage import texts_of
from fsm_dyn.spec.model import Mechanism

_PERIODIC: Final = ("sin", "cos", "tan")
_uncounted: ContextVar[bool] = ContextVar("uncounted", default=False)


@contextmanager
def turns_uncounted() -> Iterator[None]:
    """Accept models whose turns are not counted, for what looks at single instants of a motion found otherwise."""
    token = _uncounted.set(True)
    try:
        yield
    finally:
        _uncounted.reset(token)


def are_turns_uncounted() -> bool:
    """Whether the model that is built serves to look at single instants."""
    return _uncounted.get()


def refuse_whole_turns(mechanism: Mechanism, known: Mapping[str, tuple[str, str]]) -> None:
    """Refuse what depends on the number of turns of a joint in space, which absolute coordinates do not count.

    Raises
    ------
    ModelError
        A contact, load, constraint or condition does.
    """
    angles = {name for name, (value, _) in known.items() if "atan2(" in value}
    if are_turns_uncounted():
        return
    parts = (mechanism.contacts, mechanism.loads, mechanism.constraints, mechanism.transitions, mechanism.memory)
    for text in texts_of(parts) if angles else ():
        counted = sorted(angles & _counted(parse(text)))
        if counted:
            raise ModelError(
                f"the angle {counted[0]!r} is known up to whole turns in absolute coordinates in space",
                text.where,
                found=text.text,
                allowed=f"sin({counted[0]}), cos({counted[0]}), rate({counted[0]})",
                remedy="`joint_coordinates: relative` counts the turns",
            )


def _counted(tree: Any) -> set[str]:
    """Return the names in an expression on whose whole turns its value depends."""
    if isinstance(tree, Name):
        return {tree.id}
    if isinstance(tree, Call) and tree.function in ("rate", *_PERIODIC):
        summed = tree.function == "rate" or _is_sum(tree.arguments[0])
        return set() if summed else _counted(tree.arguments)
    if isinstance(tree, tuple | list):
        return {name for item in tree for name in _counted(item)}
    if is_dataclass(tree):
        return {name for field in fields(tree) for name in _counted(getattr(tree, field.name))}
    return set()


def _is_sum(tree: Any) -> bool:
    """Whether an angle is a sum of names and numbers, so that a whole turn of each is one of the sum."""
    if isinstance(tree, Binary):
        return tree.op in ("+", "-") and _is_sum(tree.left) and _is_sum(tree.right)
    if isinstance(tree, Unary):
        return _is_sum(tree.operand)
    return isinstance(tree, Name | Number)
