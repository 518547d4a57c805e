"""A mapping given from Python, as the same tree that files become; places are paths of keys."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from fsm_dyn.errors import Location, ModelError
from fsm_dyn.spec.reader import MAX_DEPTH, MAX_NODES
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree


def tree_of(value: Any) -> Tree:
    """Return `value` (mappings, lists, texts, numbers, booleans, None) as a tree.

    Raises
    ------
    ModelError
        If it holds anything else, or is too large, too deep or contains itself.
    """
    return _Builder().build(value, ())


def as_text(value: object) -> str:
    """Return a mapping that `tree_of` accepts as YAML (JSON, to be exact: every text quoted)."""
    return json.dumps(_data(value), indent=1, ensure_ascii=False)


def _data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return [_data(item) for item in value]


def plain_data(tree: Tree) -> Any:
    """Return a composed file as mappings, lists and leaves without places."""
    match tree:
        case LocatedMapping():
            return {str(key): plain_data(value) for key, value in tree.items()}
        case LocatedList():
            return [plain_data(value) for value in tree]
        case Scalar(value=value, text=text):
            return text if isinstance(value, str) else value


class _Builder:
    def __init__(self) -> None:
        self.count = 0

    def build(self, value: Any, path: tuple[str, ...]) -> Tree:
        where = _place(path)
        self.count += 1
        if len(path) > MAX_DEPTH or self.count > MAX_NODES:
            raise ModelError("the mapping is too large, too deep or contains itself", where)
        if isinstance(value, str) and not _is_encodable(value):
            raise ModelError("a text holds a character that may not stand in a file", where)
        if value is None or isinstance(value, bool | str):
            return Scalar(value, _text(value), where)
        if isinstance(value, numbers.Integral):
            return Scalar(int(value), str(int(value)), where)
        if isinstance(value, numbers.Real):
            return Scalar(float(value), repr(float(value)), where)
        if isinstance(value, Mapping):
            return LocatedMapping(
                {_key(key, path): self.build(item, (*path, str(key))) for key, item in value.items()}, where
            )
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return LocatedList([self.build(item, (*path, str(i))) for i, item in enumerate(value)], where)
        raise ModelError(
            "a value of this type has no meaning in a model",
            where,
            found=type(value).__name__,
            allowed="mappings, lists, texts, numbers, booleans",
        )


def _is_encodable(text: str) -> bool:
    return not any(
        "\ud800" <= character <= "\udfff" or (character < " " and character not in "\t\n\r") for character in text
    )


def _text(value: str | bool | None) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value).lower()


def _key(key: Any, path: tuple[str, ...]) -> LocatedStr:
    if not isinstance(key, str) or not _is_encodable(key):
        remedy = "YAML 1.1 readers make booleans of `on` and `off`: load the file by its path" if key is True else ""
        raise ModelError("a key must be a text", _place(path), found=repr(key)[:60], remedy=remedy)
    return LocatedStr(key, _place((*path, key)))


def _place(path: tuple[str, ...]) -> Location:
    return Location("<mapping> " + ".".join(path) if path else "<mapping>")
