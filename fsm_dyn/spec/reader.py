"""YAML text to a tree with places: PyYAML's events, our own composer.

Composing from events keeps every bound in our hands: size, depth, number of nodes with aliases counted as
often as they are used (so that a "billion laughs" file is refused before it grows), no tags, no merge keys,
no duplicate keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fsm_dyn import schemata
from fsm_dyn.errors import Location, ModelError
from fsm_dyn.spec.scalars import resolve
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Plain, Scalar, Tree, describe

MAX_BYTES = 1_000_000
MAX_DEPTH = 16
MAX_NODES = 60_000
MAX_KEY_LENGTH = 200

# libyaml's parser where PyYAML was built with it: ten times faster, the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_file(path: Path) -> str:
    """Return the text of a model file.

    Raises
    ------
    InputError
        If it cannot be read, is larger than ``MAX_BYTES`` or is not UTF-8.
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

    Parameters
    ----------
    text : str
        The document.
    file : str
        What to call it in places.

    Raises
    ------
    ModelError
        If it is not YAML, or uses what is refused here: tags, merge keys, duplicate keys, several documents,
        a value inside itself, too much of anything.
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
        if "maximum nesting depth" in problem:  # libyaml since 0.2.6 scans that far ahead of the events
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
            if event.flow_style and ("(" in key or ")" in key) and isinstance(value, Scalar) and value.value is None:
                raise ModelError(
                    "an expression is cut in two by its comma",
                    key.where,
                    found=key,
                    remedy='quote expressions that contain commas: "dot(a, b)"',
                )
            if key in entries:
                first = next(k for k in entries if k == key)
                raise ModelError(f"key {key!r} is defined twice", key.where, found=f"first in line {first.where.line}")
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
