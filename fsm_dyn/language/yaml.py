"""YAML text to a tree with places and back: PyYAML's events, the core schema of YAML 1.2, edits of a text."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from fsm_dyn.core import files as schemata
from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.core.records import dataclass

# -- Composed model files: scalars, sequences and mappings with places, without meaning ----------------------

Plain: TypeAlias = str | int | float | bool | None


class LocatedStr(str):
    """A text with its place; equal to the plain text."""

    __slots__ = ("where",)
    where: Location

    def __new__(cls, text: str, where: Location = NOWHERE) -> LocatedStr:
        """Make a text with a place."""
        word = super().__new__(cls, text)
        word.where = where
        return word


def where_of(text: str) -> Location:
    """Return the place of a `LocatedStr`; `NOWHERE` for any other text."""
    return text.where if isinstance(text, LocatedStr) else NOWHERE


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf: its value under YAML 1.2 core rules and the characters it was written with."""

    value: Plain
    text: str
    where: Location = NOWHERE


class LocatedList(list["Tree"]):
    """A sequence with its place."""

    def __init__(self, items: list[Tree], where: Location) -> None:
        super().__init__(items)
        self.where = where


class LocatedMapping(dict[LocatedStr, "Tree"]):
    """A mapping with its place; the keys have places too."""

    def __init__(self, entries: dict[LocatedStr, Tree], where: Location, *, flow: bool = False) -> None:
        super().__init__(entries)
        self.where = where
        self.flow = flow


Tree: TypeAlias = Scalar | LocatedList | LocatedMapping


def describe(tree: object) -> str:
    """Return a short description of `tree`, for the "found" line of a message."""
    match tree:
        case Scalar(value=None):
            return "nothing"
        case Scalar(text=text):
            return text if len(text) <= 60 else text[:57] + "..."
        case LocatedList():
            return f"a list of {len(tree)}"
        case LocatedMapping():
            return "a mapping with " + (", ".join(list(tree)[:4]) or "no keys") + (", ..." if len(tree) > 4 else "")
    return type(tree).__name__


def scalars(tree: Tree) -> Iterator[Scalar]:
    """Yield every leaf of `tree`."""
    pending: list[Tree] = [tree]
    while pending:
        match pending.pop():
            case Scalar() as leaf:
                yield leaf
            case LocatedList() as items:
                pending.extend(items)
            case LocatedMapping() as section:
                pending.extend(section.values())


# -- The core schema of YAML 1.2: meaning of plain scalars ---------------------------------------------------
#
# PyYAML follows YAML 1.1: ``on`` is true, ``1e3`` a text and ``12:30`` the number 750. Here only the forms of section
# 10.3.2 of the YAML 1.2.2 specification have a meaning; everything else is text.

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

#: Integers with more digits stay text: converting them takes quadratic time and no model needs them.
MAX_DIGITS = 300


def resolve(text: str) -> Plain:
    """Return the value of a plain (unquoted) scalar under the core schema."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) > MAX_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


# -- YAML text to a tree with places: PyYAML's events, our own composer --------------------------------------
#
# Composition from events gives control of every bound: size, depth, number of nodes with aliases counted at each use (a
# "billion laughs" file is refused before it grows), no tags, no merge keys, no duplicate keys.

MAX_BYTES = 1_000_000
MAX_DEPTH = 16
MAX_NODES = 60_000
MAX_KEY_LENGTH = 200

# libyaml's parser if PyYAML was built with it: ten times faster, the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: Path) -> str:
    """Return the text of a model file.

    Raises InputError if it cannot be read, is larger than ``MAX_BYTES`` or is not UTF-8.
    """
    data = schemata.read_file(path, MAX_BYTES, "a model")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ModelError(
            "the file is not UTF-8 text",
            Location(str(path), line, column),
            found=f"byte 0x{data[error.start]:02x}",
            remedy="save it as UTF-8",
        ) from None


def compose(text: str, file: str) -> Tree:
    """Read one YAML document.

    ``file``: its name in places. Raises ModelError if it is not YAML, or has refused elements: tags, merge keys,
    duplicate keys, several documents, a value inside itself, too much of anything.
    """
    if len(text) > MAX_BYTES:
        data = text.encode("utf-8", "replace")
        raise schemata.too_large("a model", file, data, len(data), MAX_BYTES)
    try:
        return _Composer(text, file).document()
    except yaml.MarkedYAMLError as error:
        open_quote = error.context == "while scanning a quoted scalar" and error.context_mark is not None
        mark = error.context_mark if open_quote else error.problem_mark or error.context_mark
        where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
        problem = " ".join(part for part in (error.context, error.problem) if part)
        line = text.split("\n")[where.line - 1] if 0 < where.line <= text.count("\n") + 1 else ""
        if "maximum nesting depth" in problem:  # libyaml since 0.2.6 scans so far ahead of the events
            raise _too_deep(where) from None
        if open_quote:
            raise ModelError(
                "not valid YAML: the quote that opens here does not close", where, found=line.strip()
            ) from None
        raise ModelError(
            f"not valid YAML: {problem}", where, remedy=_yaml_remedy(problem, line, where.column)
        ) from None
    except (yaml.YAMLError, UnicodeError):
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        before = text[: found.start() if found else 0]
        raise ModelError(
            "not valid YAML: a character that may not stand in a text file",
            Location(file, before.count("\n") + 1, len(before) - before.rfind("\n")),
            found=repr(found[0]) if found else "",
        ) from None


def _yaml_remedy(problem: str, line: str, column: int) -> str:
    if line[column - 1 : column] == "[" and "expected" in problem:
        return "inside { } and [ ], quote expressions that contain square brackets"
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "indent with spaces, not tabs"
    if "mapping values are not allowed" in problem:
        return "quote texts that contain ': '; check the indentation"
    if "alias" in problem:
        return 'quote the star: from: "*"'
    return "check indentation, brackets and quotes"


def _refuse_rest_of_value(key: LocatedStr) -> None:
    """Refuse a key without a value that is the rest of an expression or number, cut at its comma, in a flow mapping."""
    if "(" in key or ")" in key:
        raise ModelError(
            "an expression is cut in two by its comma",
            key.where,
            found=key,
            remedy='quote expressions that contain commas: "dot(a, b)"',
        )
    if key[:1].isdigit():
        raise ModelError(
            "a number is cut in two by its comma", key.where, found=key, remedy="decimals have a point: 0.15 kg"
        )


def _too_deep(where: Location) -> ModelError:
    return ModelError("nested too deeply", where, allowed=f"{MAX_DEPTH} levels")


class _Composer:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.events = self._events(text)
        self.anchors: dict[str, tuple[Tree, int]] = {}
        self.open_anchors: set[str] = set()
        self.count = 0

    def _events(self, text: str) -> Iterator[Any]:
        loader = _Loader(text)
        try:
            while loader.check_event():
                yield loader.get_event()
        finally:
            loader.dispose()

    def document(self) -> Tree:
        tree: Tree | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if tree is not None:
                    raise ModelError("a second document begins here", self._where(event), allowed="one per file")
                tree = self._node(next(self.events), 0)
        if tree is None:
            raise ModelError(
                "the file is empty", Location(self.file, 1, 1), remedy="`fsm-dyn new NAME` writes a starter file"
            )
        return tree

    def _node(self, event: Any, depth: int) -> Tree:
        where = self._where(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, where)
        self._check(event, depth, where)
        before = self.count
        self._add(1, where)
        anchor: str | None = event.anchor
        if anchor is not None:
            self.open_anchors.add(anchor)
        tree = self._content(event, depth, where)
        if anchor is not None:
            self.open_anchors.discard(anchor)
            self.anchors[anchor] = (tree, self.count - before)
        return tree

    def _content(self, event: Any, depth: int, where: Location) -> Tree:
        if isinstance(event, yaml.ScalarEvent):
            value: Plain = resolve(event.value) if event.implicit[0] else event.value
            return Scalar(value, event.value, where)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Tree] = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            return LocatedList(items, where)
        return self._mapping(event, depth, where)

    def _mapping(self, event: Any, depth: int, where: Location) -> LocatedMapping:
        entries: dict[LocatedStr, Tree] = {}
        while not isinstance(item := next(self.events), yaml.MappingEndEvent):
            key = self._key(self._node(item, depth + 1), self._where(item))
            value = self._node(next(self.events), depth + 1)
            if event.flow_style and isinstance(value, Scalar) and value.value is None:
                _refuse_rest_of_value(key)
            if key in entries:
                first = next(k for k in entries if k == key)
                raise ModelError(f"key {key!r} is defined twice", key.where, found=f"first in line {first.where.line}",
                                 remedy="put both under one key, or rename one")  # fmt: skip
            entries[key] = value
        return LocatedMapping(entries, where, flow=bool(event.flow_style))

    def _key(self, tree: Tree, where: Location) -> LocatedStr:
        if not isinstance(tree, Scalar):
            raise ModelError("a key must be a word", where, found=describe(tree), remedy="check { } and [ ]")
        if len(tree.text) > MAX_KEY_LENGTH:
            raise ModelError("a key is too long", where, found=f"{len(tree.text)} characters")
        if tree.text == "<<":
            raise ModelError("merge keys are not supported", where, remedy="write the keys out, or alias whole values")
        return LocatedStr(tree.text, where)

    def _alias(self, event: Any, where: Location) -> Tree:
        name: str = event.anchor
        if name in self.open_anchors:
            raise ModelError(f"alias *{name} stands inside its own value", where)
        if name not in self.anchors:
            raise ModelError(f"alias *{name} has no anchor before it", where)
        tree, size = self.anchors[name]
        self._add(size, where)
        return tree

    def _check(self, event: Any, depth: int, where: Location) -> None:
        if depth > MAX_DEPTH:
            raise _too_deep(where)
        if event.tag is not None:
            raise ModelError("tags are not allowed", where, found=str(event.tag), remedy="remove the tag")

    def _add(self, size: int, where: Location) -> None:
        self.count += size
        if self.count > MAX_NODES:
            raise ModelError(
                "too many values, those repeated by aliases counted",
                where,
                allowed=f"{MAX_NODES:,}",
                remedy="a model is a file a person can read",
            )

    def _where(self, event: Any) -> Location:
        return Location(self.file, event.start_mark.line + 1, event.start_mark.column + 1)


# -- Entries written into the text of a model file, every other character of it kept -------------------------

_Node: TypeAlias = Any  # a node of PyYAML, whose marks count characters
# Texts valid without quotes inside brackets.
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
    """Return the end of the characters of a node; for PyYAML a block ends at the next token."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        node = _last(node)
    return len(text[: node.end_mark.index].rstrip())


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and isinstance(resolve(text), str):
        return text
    characters = (_ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{"".join(characters)}"'


# -- A mapping from Python as a tree like that of a file; places are paths of keys ---------------------------


def tree_of(value: Any) -> Tree:
    """Return `value` (mappings, lists, texts, numbers, booleans, None) as a tree.

    Raises ModelError if it holds anything else, or is too large, too deep or contains itself.
    """
    return _Builder().build(value, ())


def as_text(value: object) -> str:
    """Return a mapping accepted by `tree_of` as YAML (precisely JSON: every text quoted)."""
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
