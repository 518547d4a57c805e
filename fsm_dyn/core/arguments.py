"""Types of the arguments of public functions, checked at the call by the annotations.

An argument of a wrong type would otherwise fail deep inside, with a message about another name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Set, Sized
from types import SimpleNamespace, UnionType
from typing import Any, Final, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from fsm_dyn.core.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

Test = Callable[[Any], bool]

_NO_SEQUENCES: Final = (str, bytes, bytearray, Mapping)
_WORDS: Final = {
    "NoneType": "None", "str": "a text", "bool": "true or false", "int": "a whole number", "float": "a number",
    "Path": "a path", "PathLike": "a path", "Callable": "a function", "Mapping": "a mapping by name",
    "Sequence": "a sequence", "Iterable": "a sequence", "tuple": "a sequence", "ndarray": "a sequence",
    "LoadedRun": "a Trajectory",
}  # fmt: skip
_REMEDIES: Final = {
    "ModeGraph": "compile the model: fsm_dyn.compile(...)",
    "LoadedRun": "run the graph: fsm_dyn.simulate(...)",
    "Mechanism": "read the model: fsm_dyn.load(...)",
    "RunOptions": "make them: fsm_dyn.RunOptions(...)",
}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function or method refuse arguments excluded by its annotations.

    Annotations with names for type checkers alone are not checked. Raises InputError by the function: the type of an
    argument is wrong.
    """
    signature = inspect.signature(function)
    kinds = {item.kind for item in signature.parameters.values()}
    names = [*signature.parameters] if kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD} else []

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        if len(args) == len(names) and not given:
            bound = dict(zip(names, args, strict=True))
        else:
            try:
                bound = signature.bind(*args, **given).arguments
            except TypeError:
                return function(*args, **given)  # raises the same
        check_arguments(function.__qualname__, bound, types_of(function))
        return function(*args, **given)

    return call


@functools.cache
def types_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of a function's arguments by name, at its first call: its module has all names by then."""
    types: dict[str, Any] = {}
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for item in inspect.signature(function).parameters.values():
        if item.annotation is not item.empty and item.kind != item.VAR_KEYWORD:
            annotated: Any = SimpleNamespace(__annotations__={item.name: item.annotation})
            try:
                types |= get_type_hints(annotated, names)
            except NameError:
                continue
    return types


def check_arguments(function: str, values: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Refuse values of types other than theirs.

    ``function``: takes them, for the message. ``values``: arguments by name. ``types``: their types by name; others
    are not checked. Raises InputError: the type of a value is wrong.
    """
    for name, value in values.items():
        if name not in types or _test_of(types[name])(value):
            continue
        parts = _alternatives(types[name])
        kinds = [getattr(_kind(part), "__name__", str(part)) for part in parts]
        remedy = next((_REMEDIES[kind] for kind in kinds if kind in _REMEDIES), "")
        allowed = " or ".join(dict.fromkeys(_WORDS.get(kind, f"a {kind}") for kind in kinds))
        of_elements = any(get_args(part) and _test_of(_kind(part))(value) for part in parts)
        raise InputError(
            f"{function}: '{name}' has a wrong type, {type(value).__name__}", found=_shown(value), allowed=allowed,
            remedy=remedy or f"give {allowed}" + (", of values of the right type" if of_elements else ""),
        )  # fmt: skip


def _shown(value: Any) -> str:
    return " ".join(repr(value).split())[:80]


def _kind(hint: Any) -> Any:
    """Return the class of a type without its elements' types."""
    return get_origin(hint) or hint


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a union."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(part for each in get_args(hint) for part in _alternatives(each))
    return (hint,)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, _NO_SEQUENCES)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not getattr(value, "ndim", 0)


def _holds_numbers(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind or not _is_sequence(value) or isinstance(value, Set):
        return kind in tuple("biuf")
    return all(_is_number(x) or _holds_numbers(x) for x in value)


#: Classes with values of other classes: numbers of other libraries, sets of names, lists for tuples.
_TESTS: Final[Mapping[str, Test]] = {
    "bool": lambda value: type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1)),
    "int": lambda value: hasattr(value, "__index__") and not getattr(value, "ndim", 0),
    "float": _is_number,
    "Path": lambda value: hasattr(value, "__fspath__"),
    "Sequence": _is_sequence,
    "tuple": _is_sequence,
    "Iterable": lambda value: isinstance(value, Iterable) and not isinstance(value, _NO_SEQUENCES),
    "ndarray": _holds_numbers,
}


@functools.cache
def _test_of(hint: Any) -> Test:
    """Return the test of a type; of one that is no class the function has its own."""
    parts = _alternatives(hint)
    if len(parts) > 1:
        tests = [_test_of(part) for part in parts]
        return lambda value: any(test(value) for test in tests)
    kind, inner = _kind(hint), get_args(hint)
    if not isinstance(kind, type) or kind in (object, Any):
        return lambda value: True
    if getattr(kind, "_is_protocol", False) and kind.__module__.startswith("fsm_dyn"):
        members = [name for name in vars(kind) if not name.startswith("_")]
        return lambda value: all(hasattr(type(value), name) for name in members)
    plain = _TESTS.get(kind.__name__, lambda value: isinstance(value, kind))
    fits = _test_of_elements(kind.__name__, inner)
    return (lambda value: plain(value) and (not isinstance(value, Sized) or fits(value))) if fits else plain


def _test_of_elements(kind: str, inner: tuple[Any, ...]) -> Test | None:
    """Return the test of the elements of a container; None if they are not looked at."""
    if kind not in ("Mapping", "Sequence", "Iterable", "tuple") or not inner or inner[-1] is ...:
        return None
    tests = [_test_of(each) for each in inner]
    if kind == "Mapping":
        return lambda value: all(tests[0](key) and tests[1](item) for key, item in value.items())
    if kind == "tuple":
        return lambda value: len(value) != len(tests) or all(test(x) for test, x in zip(tests, value, strict=True))
    ordered = inner[0] is float  # names may come in any order
    return lambda value: not (ordered and isinstance(value, Set)) and all(map(tests[0], value))
