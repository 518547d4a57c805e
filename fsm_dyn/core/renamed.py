"""Older names of Python's interface, of keys and of options: accepted for one release, with a warning."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class RenamedWarning(FutureWarning):
    """An older name was used; the message has the new one."""


def warn_renamed(what: str, old: str, new: str) -> None:
    """Warn that `what` (such as ``"keyword"``) has a new name; the warning names the line that called the package."""
    level, frame = 2, inspect.currentframe()
    frame = frame and frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fsm_dyn":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{what} '{old}' is called '{new}' now", RenamedWarning, stacklevel=level)


def renamed_keywords(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take older keywords too: ``old="new"``.

    The decorated function raises ``TypeError`` if it is called with the old and the new name of one keyword.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in new_names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    raise TypeError(f"{function.__name__}() takes '{new}' or, its older name, '{old}', not both")
                warn_renamed(f"keyword of {function.__name__}()", old, new)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapped

    return decorate


class RenamedAttribute:
    """Descriptor of the older name of an attribute, property or method."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        warn_renamed(f"attribute of {owner.__name__}", self.old, self.new)
        return getattr(owner if instance is None else instance, self.new)


def renamed_in_module(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module with older names; a new name may be that of another module, with a dot."""

    def getattr_(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = new_names[name]
        warn_renamed(f"name in {module}", name, new)
        home, _, own = new.rpartition(".")
        return getattr(import_module(home or module), own)

    return getattr_
