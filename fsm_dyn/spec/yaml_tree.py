"""Composed model files: scalars, sequences and mappings with places, without meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fsm_dyn.errors import NOWHERE, Location

Plain: TypeAlias = str | int | float | bool | None


class LocatedStr(str):
    """A text with its place; equal to the plain text.  ``written`` is the older spelling of a key that the file has."""

    __slots__ = ("where", "written")
    where: Location
    written: str

    def __new__(cls, text: str, where: Location = NOWHERE, written: str = "") -> LocatedStr:
        """Make a text with a place."""
        word = super().__new__(cls, text)
        word.where = where
        word.written = written or text
        return word


def where_of(text: str) -> Location:
    """Return the place of a `LocatedStr`; of any other text, nowhere."""
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
    """A mapping with its place; the keys know theirs."""

    def __init__(self, entries: dict[LocatedStr, Tree], where: Location, *, flow: bool = False) -> None:
        super().__init__(entries)
        self.where = where
        self.flow = flow


Tree: TypeAlias = Scalar | LocatedList | LocatedMapping


def describe(tree: object) -> str:
    """Return what `tree` is, in a few words, for the "found" line of a message."""
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
