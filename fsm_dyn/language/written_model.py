"""A model under construction: the tree of a model file and the file's text, side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Self, TypeAlias

from fsm_dyn.core.errors import InputError, Location, ModelError
from fsm_dyn.language.components import Origin
from fsm_dyn.language.mechanism_form import FORMAT
from fsm_dyn.language.yaml import (
    LocatedList,
    LocatedMapping,
    LocatedStr,
    Scalar,
    Tree,
    describe,
    tree_of,
    with_entry,
    with_item,
    with_setting,
)

Value: TypeAlias = str | float | bool | Sequence["Value"] | Mapping[str, "Value"] | None

_REMEDY = "give all coordinates and inputs a unit or none; correct what a file has"
_CALLED = (__name__, "fsm_dyn.language.builder", "fsm_dyn.language.builder_methods")


class WrittenModel:
    """Entries in tree and text, each with the place of its call."""

    def _begin(self, tree: LocatedMapping, text: str, name: str, origin: Origin) -> None:
        self._tree, self._text, self._name, self._origin = tree, text, name, origin
        self._calls: dict[tuple[str, str], Location] = {}

    def _set(self, key: str, value: Value, where: Location) -> None:
        tree = _tree(value, where)
        self._text = with_setting(self._text, key, tree) if self._text else f"{key}: {FORMAT}\n"
        self._tree[LocatedStr(key, where)] = tree

    def _set_all(self, values: Mapping[str, Value]) -> Self:
        where = calling_line()
        for key, value in values.items():
            self._set(key, value, where)
        return self

    def _add(self, section: str, name: str, value: Value, keys: Mapping[str, Value]) -> Self:
        where = calling_line()
        if keys and value is not None:
            raise ModelError(f"{name!r} of {section} has a value and keys", where, found=", ".join(keys))
        tree = _tree(keys if value is None else value, where)
        self._put(section, name, tree, where)
        return self

    def _add_all(self, section: str, values: Mapping[str, Value]) -> Self:
        where = calling_line()
        for name, value in values.items():
            self._put(section, name, _tree(value, where), where)
        return self

    def _put(self, section: str, name: str, value: Tree, where: Location) -> None:
        entries = self._tree.get(LocatedStr(section), LocatedMapping({}, where))
        if not isinstance(entries, LocatedMapping):
            raise ModelError(f"'{section}' is no mapping of names", where, found=describe(entries), remedy=_REMEDY)
        first = self._calls.setdefault((section, name), where)
        if first is not where:
            raise ModelError(f"{name!r} of {section} is declared twice", where, found=f"first at {first}")
        self._text = with_entry(self._text, section, name, value)
        entries[LocatedStr(name, where)] = value
        self._tree.setdefault(LocatedStr(section, where), entries)

    def _declare(self, section: str, name: str, unit: Value, keys: Mapping[str, Value]) -> Self:
        return self._add(section, name, unit, keys) if keys or unit is not None else self._append(section, name)

    def _append(self, section: str, item: Value) -> Self:
        where = calling_line()
        items = self._tree.get(LocatedStr(section), LocatedList([], where))
        if not isinstance(items, LocatedList):
            raise ModelError(f"'{section}' is no list", where, found=describe(items), remedy=_REMEDY)
        value = _tree(item, where)
        self._text = with_item(self._text, section, value)
        items.append(value)
        self._tree.setdefault(LocatedStr(section, where), items)
        return self


def given_keys(keys: Mapping[str, Value]) -> dict[str, Value]:
    """Return the given keys as the language has them: Python reserves ``from``, so a call gives ``from_``."""
    return {
        key[:-1] if key.endswith("_") and iskeyword(key[:-1]) else key: value
        for key, value in keys.items()
        if value is not None
    }


def _tree(value: Value, where: Location) -> Tree:
    """Return a value as a tree whose parts all have one place."""
    try:
        return _placed(tree_of(value), where)
    except InputError as error:
        error.where = where
        raise


def _placed(tree: Tree, where: Location) -> Tree:
    match tree:
        case LocatedMapping():
            entries = {LocatedStr(key, where): _placed(item, where) for key, item in tree.items()}
            return LocatedMapping(entries, where)
        case LocatedList():
            return LocatedList([_placed(item, where) for item in tree], where)
    return Scalar(tree.value, tree.text, where)


def calling_line() -> Location:
    """Return file, line and column of the current call from outside these modules."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in _CALLED and frame.f_back is not None:
        frame = frame.f_back
    line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    return Location(frame.f_code.co_filename, line or frame.f_lineno, (column or 0) + 1)
