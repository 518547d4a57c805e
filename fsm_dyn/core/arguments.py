"""Types of the arguments of public functions, checked at the call by the annotations.

An argument of a wrong type would otherwise fail deep inside, with a message about another name.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Set, Sized
from typing import Any, Final, ParamSpec, TypeVar

from fsm_dyn.core.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

_ALIASES: Final = {
    "Allowance": "float | Mapping[str, float] | None",
    "FloatArray": "Sequence[float]",
    "InputValue": "float | str | Sequence | Mapping[str, Any] | Callable | Schedule",
    "Parameters": "Mapping[str, Any]",
    "LoadedRun": "Trajectory",
}
_NO_SEQUENCES: Final = (str, bytes, bytearray, Mapping)
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1)),
    "int": lambda value: hasattr(value, "__index__") and not getattr(value, "ndim", 0),
    "float": lambda value: hasattr(value, "__float__") and not getattr(value, "ndim", 0),
    "Path": lambda value: isinstance(value, os.PathLike),
    "PathLike": lambda value: isinstance(value, os.PathLike),
    "Callable": callable,
    "Mapping": lambda value: isinstance(value, Mapping),
    "Sequence": lambda value: isinstance(value, Collection) and not isinstance(value, _NO_SEQUENCES),
    "tuple": lambda value: isinstance(value, Collection) and not isinstance(value, _NO_SEQUENCES),
}
_OWN: Final = ("Mechanism", "ModeGraph", "Model", "RunOptions", "Schedule", "Tolerances", "Trajectory")
_WORDS: Final = {
    "None": "None", "str": "a text", "bool": "true or false", "int": "a whole number", "float": "a number",
    "Path": "a path", "PathLike": "a path", "Callable": "a function", "Mapping": "a mapping by name",
    "Sequence": "a sequence", "tuple": "a sequence",
}  # fmt: skip
_REMEDIES: Final = {
    "ModeGraph": "compile the model: fsm_dyn.compile(...)",
    "Trajectory": "run the graph: fsm_dyn.simulate(...)",
    "Mechanism": "read the model: fsm_dyn.load(...)",
    "RunOptions": "make them: fsm_dyn.RunOptions(...)",
}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function refuse arguments excluded by its annotations.

    Raises InputError by the function: the type of an argument is wrong.
    """
    signature = inspect.signature(function)
    own = {item.name: item.annotation for item in signature.parameters.values() if item.kind != item.VAR_KEYWORD}

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **given).arguments
        except TypeError:
            return function(*args, **given)  # raises the same
        check_arguments(function.__qualname__, bound, own)
        return function(*args, **given)

    return call


def check_arguments(function: str, values: Mapping[str, Any], annotations: Mapping[str, Any]) -> None:
    """Refuse values excluded by annotations.

    ``function``: takes them, for the message. ``values``: arguments by name. ``annotations``: their annotations by
    name, as texts; others are not checked. Raises InputError: the type of a value is wrong.
    """
    for name, value in values.items():
        text = annotations.get(name)
        if not isinstance(text, str) or _fits(value, _parsed(text)):
            continue
        kinds = [_kind(item) for item in _alternatives(_parsed(text))]
        remedy = next((_REMEDIES[kind] for kind in kinds if kind in _REMEDIES), "")
        words = dict.fromkeys(_WORDS.get(kind, f"a {kind}") for kind in kinds)
        allowed = " or ".join(words)
        raise InputError(
            f"{function}: '{name}' has a wrong type, {type(value).__name__}", found=_shown(value), allowed=allowed,
            remedy=remedy or f"give {allowed}" + (", of values of the right type" if _kind_fits(value, kinds) else ""),
        )  # fmt: skip


def _shown(value: Any) -> str:
    return " ".join(repr(value).split())[:80]


@functools.cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


@functools.cache
def _alternatives(node: ast.expr) -> tuple[ast.expr, ...]:
    """Return the parts of a union, aliases written out."""
    if isinstance(node, ast.BinOp):
        return *_alternatives(node.left), *_alternatives(node.right)
    alias = _ALIASES.get(_kind(node), "")
    return _alternatives(_parsed(alias)) if alias else (node,)


@functools.cache
def _kind(node: ast.expr) -> str:
    """Return the bare name of a type."""
    if isinstance(node, ast.Subscript):
        return _kind(node.value)
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def _kind_fits(value: Any, kinds: list[str]) -> bool:
    return any(kind in _CHECKS and _CHECKS[kind](value) for kind in kinds)


def _fits(value: Any, node: ast.expr) -> bool:
    return any(_fits_one(value, item) for item in _alternatives(node))


def _fits_one(value: Any, node: ast.expr) -> bool:
    kind = _kind(node)
    if kind in _OWN:
        return any(base.__name__ == kind for base in type(value).__mro__)
    if kind not in _CHECKS:
        return True  # checked by the function
    if not _CHECKS[kind](value) or not isinstance(node, ast.Subscript) or not isinstance(value, Sized):
        return _CHECKS[kind](value)
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if kind == "Mapping":
        return all(_fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items())  # type: ignore[attr-defined]
    if kind == "Sequence":
        ordered = not isinstance(value, Set) or _kind(inner[0]) != "float"  # names may come in any order
        return ordered and all(_fits(item, inner[0]) for item in value)  # type: ignore[attr-defined]
    if kind == "tuple" and len(value) == len(inner):
        return all(_fits(item, each) for item, each in zip(value, inner, strict=True))  # type: ignore[call-overload]
    return True
