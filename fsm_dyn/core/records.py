"""Data classes whose methods are made at their first use.

``dataclasses`` writes and compiles six functions for a frozen class, 0.7 ms in all. A start defines 300 classes and
uses a quarter of them, so each method here is made by the standard library when it is first looked up.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):
        """Make a data class, as :func:`dataclasses.dataclass` does, without its methods; no field is an ``InitVar``."""

        def decorated(cls):
            own = set(vars(cls))
            if frozen and own & {"__setattr__", "__delattr__"}:
                raise TypeError(f"the frozen class {cls.__name__} defines how its attributes are set")
            methods = ["__init__", *["__repr__"] * repr, *["__eq__"] * eq]
            pending = {name: _Pending(name, frozen) for name in methods if name == "__init__" or name not in own}
            if eq and ("__hash__" not in own or ("__eq__" in own and cls.__hash__ is None)):
                pending["__hash__"] = _Pending("__hash__", frozen) if frozen else None
            if cls.__doc__ is None:
                cls.__doc__ = ""  # or dataclasses makes one of the signature, which takes longer than all the rest
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            for name, method in pending.items():
                setattr(made, name, method)
                if method is not None:
                    method.owner = made
            if frozen:
                _freeze(made)
                if slots and "__getstate__" not in own:
                    made.__getstate__, made.__setstate__ = _state, _set_state
            return made

        return decorated if cls is None else decorated(cls)


class _Pending:
    """Placeholder of a method in its class, replaced at the first lookup."""

    owner: type[Any]

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Return the method, bound if it is looked up on an instance."""
        method = getattr(_with_method(self.owner, self.name, self.frozen), self.name)
        method.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        if self.name == "__init__":
            types = {item.name: item.type for item in dataclasses.fields(self.owner) if item.init}
            method.__annotations__ = {**types, "return": None}
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


_COPIED: Final = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")


def _with_method(cls: Any, name: str, frozen: bool) -> type[Any]:
    """Return another class with the fields of ``cls`` and, of its methods, one made by the standard library."""
    own = dataclasses.fields(cls)
    body: dict[str, Any] = {
        "__annotations__": {item.name: object for item in own},  # types as text are searched for ClassVar, slowly
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": "",
    }
    for item in own:
        body[item.name] = dataclasses.field(**{word: getattr(item, word) for word in _COPIED})
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    make = dataclasses.dataclass(
        init=name == "__init__", repr=name == "__repr__", eq=name in ("__eq__", "__hash__"), match_args=False,
        frozen=frozen and name in ("__init__", "__hash__"),  # fields are set by object.__setattr__, and hashed
        slots="__slots__" in vars(cls) and not all(item.init for item in own),  # their defaults are set too
    )  # fmt: skip
    return make(type(cls.__name__, (), body))


def _freeze(cls: Any) -> None:
    """Refuse changes of fields, and of all attributes of instances of the class itself."""
    names = frozenset(item.name for item in dataclasses.fields(cls))

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__


# Frozen instances without a dictionary are copied and pickled by their fields.
def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
