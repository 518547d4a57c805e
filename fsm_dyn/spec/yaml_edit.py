"""Entries written into the text of a model file, every other character of it kept."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import yaml

from fsm_dyn.spec.scalars import resolve
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, Scalar, Tree

_Node: TypeAlias = Any  # a node of PyYAML, whose marks count characters
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What may stand without quotes inside brackets.
_PLAIN = re.compile(r"-?[A-Za-z0-9_.(](?:[A-Za-z0-9_.+*/()^<>= -]*[A-Za-z0-9_.)])?")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def on_one_line(tree: Tree) -> str:
    """Return a tree as YAML on one line."""
    match tree:
        case LocatedMapping():
            return "{" + ", ".join(f"{_quoted(key)}: {on_one_line(item)}" for key, item in tree.items()) + "}"
        case LocatedList():
            return "[" + ", ".join(map(on_one_line, tree)) + "]"
        case Scalar(value=str() as text):
            return _quoted(text)
        case Scalar(value=None):
            return "null"
    return tree.text


def with_setting(text: str, key: str, value: Tree) -> str:
    """Return the text of a model with the value of a key of its top level, replaced or added at the end."""
    return _with_entry(text, _root(text), key, on_one_line(value))


def with_entry(text: str, section: str, name: str, value: Tree) -> str:
    """Return the text of a model with an entry of a section, replaced or added at the section's end."""
    root = _root(text)
    found = _value(root, section)
    if found is not None:
        return _with_entry(text, found, name, on_one_line(value))
    entry = f"{_quoted(name)}: {on_one_line(value)}"
    return _inserted(text, root, f"{section}: {{{entry}}}" if root.flow_style else f"{section}:\n  {entry}")


def with_item(text: str, section: str, value: Tree) -> str:
    """Return the text of a model with an item at the end of a list."""
    root = _root(text)
    found = _value(root, section)
    item = on_one_line(value)
    if found is not None:
        return _inserted(text, found, item if found.flow_style else f"- {item}")
    return _inserted(text, root, f"{section}: [{item}]" if root.flow_style else f"{section}:\n  - {item}")


def _root(text: str) -> _Node:
    return yaml.compose(text, Loader=_Loader)


def _value(mapping: _Node, key: str) -> _Node | None:
    return next((value for word, value in mapping.value if word.value == key), None)


def _with_entry(text: str, mapping: _Node, name: str, written: str) -> str:
    before = _value(mapping, name)
    if before is None:
        return _inserted(text, mapping, f"{_quoted(name)}: {written}")
    return text[: before.start_mark.index] + written + text[_end(text, before) :]


def _inserted(text: str, collection: _Node, entry: str) -> str:
    """Return the text with an entry after the last one of a collection."""
    if collection.flow_style:
        end = collection.end_mark.index - 1
        last = _end(text, _last(collection)) if collection.value else end
        comma = not collection.value or "," in re.sub(r"#.*", "", text[last:end])
        return f"{text[:end]}{'' if comma else ', '}{entry}{text[end:]}"
    line_end = text.find("\n", _end(text, collection)) + 1  # behind a comment of the last entry
    head, tail = (text[:line_end], text[line_end:]) if line_end else (text + "\n", "")
    indent = " " * collection.start_mark.column
    return f"{head}{indent}{entry.replace(chr(10), chr(10) + indent)}\n{tail}"


def _last(collection: _Node) -> _Node:
    last = collection.value[-1]
    return last[1] if isinstance(last, tuple) else last


def _end(text: str, node: _Node) -> int:
    """Return where the characters of a node end; PyYAML has a block end where the next token begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        node = _last(node)
    return len(text[: node.end_mark.index].rstrip())


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and isinstance(resolve(text), str):
        return text
    characters = (_ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{"".join(characters)}"'
