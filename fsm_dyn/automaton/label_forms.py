"""Labels of modes within a length: names of contacts by state, then their number, then a mark for what is left out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fsm_dyn.graphics.diagram import elided

LONGEST: Final = 60  # characters of a label
_FEW: Final = 6  # contacts that are all named; of more only those that touch


@dataclass(frozen=True)
class Closed:
    """A part of a label: what is closed, and in which state.

    Attributes
    ----------
    what : str
        A contact's name, or a shape's features on another's.
    state : str
    features : bool
        Whether ``what`` names features of shapes.
    entry : str
        Of features: the entry under ``contacts``.
    corner : bool
        Of features: whether it is a corner on a face.
    flat : bool
        Of features: whether two faces, or an edge and a face, are flat on each other.
    """

    what: str
    state: str
    features: bool = False
    entry: str = ""
    corner: bool = False
    flat: bool = False

    def __str__(self) -> str:
        return f"{self.what}, {self.state}" if self.features else f"{self.what}_{self.state}"


Group = tuple[Closed, ...]  # of one state; features, of one text


def full_label(pattern: str, parts: Sequence[Closed]) -> str:
    """Return the label that names every part."""
    return "; ".join([*([pattern] if pattern else []), *map(str, parts)])


def marked(text: str, full: str, letters: int) -> str:
    """Return a label with a mark, letters that depend on all of the full label."""
    digest = hashlib.blake2s(full.encode()).digest()
    return f"{text} ·{''.join(chr(ord('a') + byte % 26) for byte in digest[:letters])}"


def brief_label(pattern: str, parts: Sequence[Closed], full: str, letters: int = 3) -> str:
    """Return a label of at most :data:`LONGEST` characters.

    The first that is short enough of: the full label; contacts named by state (``a, b slide; c closed``); features as
    ``foot flat, stick`` or ``foot on 2 corners, slide``; numbers in place of the longest names (``3 slide``, or
    ``3 more slide`` where there is room); the pattern without its middle.  A shortened one has a mark, so that
    different modes have different labels.

    Parameters
    ----------
    pattern : str
        Name of the model's pattern that the mode falls under; may be empty.
    parts : sequence of Closed
        What is closed in addition to the pattern, in declared order.
    full : str
        The full label.
    letters : int
        Of the mark; more where two labels of one mechanism would be the same.
    """
    if len(full) <= LONGEST:
        return full
    named = _by_state(parts)
    whole = _joined(pattern, named)
    if len(whole) <= LONGEST:
        return whole
    room = LONGEST - len(marked("", full, letters))
    features = [part for part in parts if part.features]
    named = [*_by_state([part for part in parts if not part.features]), *_by_entry(features)]
    counted: dict[str, int] = {}  # contacts by state
    while named and len(_joined(pattern, named, counted)) > room:
        long = max(named, key=lambda group: (not group[0].features, len(group) > 1, len(_text(group))))
        named.remove(long)
        counted[long[0].state] = counted.get(long[0].state, 0) + len(long)
    text = _joined(pattern, named, counted)
    if len(text) > room:
        text = _joined(elided(pattern, max(room - len(text) + len(pattern), 8)), named, counted)
    with_more = re.sub(r"; (\d+) (?=\w+(; \d+ \w+)*$)", r"; \1 more ", text, count=1)  # than those named
    return marked(with_more if len(with_more) <= room else elided(text, room), full, letters)


def _joined(pattern: str, groups: Sequence[Group], counted: Mapping[str, int] | None = None) -> str:
    numbers = (f"{number} {state}" for state, number in (counted or {}).items())
    return "; ".join([*([pattern] if pattern else []), *map(_text, groups), *numbers])


def _text(group: Group) -> str:
    first = group[0]
    return str(first) if first.features else f"{', '.join(part.what for part in group)} {first.state}"


def _by_state(parts: Sequence[Closed]) -> list[Group]:
    """Return contacts by state, in the order of the first of each; features one by one."""
    groups: dict[tuple[str, str], list[Closed]] = {}
    for part in parts:
        groups.setdefault((part.state, part.what if part.features else ""), []).append(part)
    return [tuple(group) for group in groups.values()]


def _by_entry(parts: Sequence[Closed]) -> list[Group]:
    """Return features in short: ``foot flat``, ``foot on 2 corners``, with the states of those corners."""
    groups: dict[tuple[str, bool, bool], list[Closed]] = {}
    for part in parts:
        groups.setdefault((part.entry, part.flat, part.corner), []).append(part)
    found: list[Group] = []
    for (entry, flat, corner), members in groups.items():
        where = (
            " flat"
            if flat
            else ""
            if not corner
            else " on a corner"
            if len(members) == 1
            else f" on {len(members)} corners"
        )
        states = "/".join(dict.fromkeys(part.state for part in members))
        found.append((Closed(f"{entry}{where}", states, features=True),) * len(members))
    return found


def told_states(states: Mapping[str, str], between: str = ": ") -> tuple[str, ...]:
    """Return contacts with their states as text; of many contacts those that are not open."""
    told = {name: state for name, state in states.items() if len(states) <= _FEW or state != "open"}
    return tuple(f"{name}{between}{state}" for name, state in told.items()) or (("all open",) if states else ())
