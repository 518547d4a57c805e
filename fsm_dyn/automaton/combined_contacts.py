"""Verdicts on whole combinations: all contacts with a gap at once, closed or open.

Combinations without two contacts that exclude each other are worked off by the number of closed contacts, so that what
excludes one is found in the fewest contacts.  Most are answered by a configuration that is known, from a random sample
or from the search for another one; only where none is found boxes are looked at.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.configuration_search import EXACT, Condition, ConfigurationSearch, missed
from fsm_dyn.programs.program import Array

MOST_COMBINATIONS: Final = 20_000  # of closed and open contacts; of more no verdicts on whole combinations are sought
SAMPLE: Final = 40_000  # random configurations
FEW_BOXES: Final = 200  # of the proof for a combination, before a configuration is searched for in what is left
BOXES: Final = 2_000  # after it
ALL_BOXES: Final = 100_000  # of all proofs together; after them configurations are searched for alone

Closed = tuple[bool, ...]


@dataclass
class Combined:
    """Combinations, a tuple with the state of each contact with a gap: closed or open.

    Attributes
    ----------
    contacts : tuple of int
        Indices of the contacts with a gap.
    possible : mapping
        Combinations, with the number of a configuration.
    configurations : list of ndarray
        Coordinates, SI units.
    undecided : list
    conflicts : list of mapping of int to bool
        Sets of contacts and their states that are impossible, found beyond those given, and the boxes of the proof.
    """

    contacts: tuple[int, ...]
    possible: dict[Closed, int] = field(default_factory=dict)
    configurations: list[Array] = field(default_factory=list)
    undecided: list[Closed] = field(default_factory=list)
    conflicts: list[tuple[Mapping[int, bool], int]] = field(default_factory=list)


def combine(
    search: ConfigurationSearch, excluded: Sequence[Mapping[int, bool]], hard: Sequence[Mapping[int, bool]] = ()
) -> Combined | None:
    """Return verdicts on all combinations; None where there are too many.

    Parameters
    ----------
    search : ConfigurationSearch
        With the configurations known so far.
    excluded : sequence of mapping of int to bool
        Contacts and states that are impossible together.
    hard : sequence of mapping of int to bool
        Contacts and states that stayed undecided: for combinations with them no proof is tried.
    """
    contacts = tuple(i for i in range(len(search.automaton.contacts)) if search.has_gap(i))
    combinations = _consistent(search, contacts, excluded)
    if combinations is None:
        return None
    found = Combined(contacts)
    search.sample(SAMPLE)
    met = _Reached(search, contacts)
    boxes = 0
    for closed in sorted(combinations, key=lambda item: (sum(item), item)):
        if _has_any(closed, contacts, (bad for bad, _ in found.conflicts)):
            continue
        known = met.number(closed)
        if known < 0:
            conditions = [c for i, shut in zip(contacts, closed, strict=True) for c in search.conditions(i, shut)]
            near = search.configuration_near(conditions, met.nearest(closed))
            impossible, count = False, 0
            if near is None and boxes < ALL_BOXES and not _has_any(closed, contacts, hard):
                impossible, count = _decide(search, conditions)
            boxes += count
            if impossible:
                states = dict(zip(contacts, closed, strict=True))
                found.conflicts.append((_smallest(search, states, count), count))
                continue
            known = met.number(closed)
        if known < 0:
            found.undecided.append(closed)
        else:
            found.possible[closed] = known
    used = sorted(set(found.possible.values()))
    found.configurations = [search.known_q[k] for k in used]
    number = {k: i for i, k in enumerate(used)}
    found.possible = {closed: number[k] for closed, k in found.possible.items()}
    return found


def _has_any(closed: Closed, contacts: Sequence[int], parts: Iterable[Mapping[int, bool]]) -> bool:
    """Whether a combination has all states of one of several parts."""
    return any(all(closed[contacts.index(i)] == shut for i, shut in part.items()) for part in parts)


def _consistent(
    search: ConfigurationSearch, contacts: Sequence[int], excluded: Sequence[Mapping[int, bool]]
) -> list[Closed] | None:
    """Return the combinations without anything excluded; None if there are too many."""
    codes = [search.automaton.contacts[i].codes for i in contacts]
    by_last: dict[int, list[Mapping[int, bool]]] = {}
    for item in excluded:
        by_last.setdefault(max(contacts.index(i) for i in item), []).append(item)
    kept: list[Closed] = [()]
    for j in range(len(contacts)):
        kept = [
            longer
            for closed in kept
            for shut in sorted({code > 0 for code in codes[j]})
            for longer in [(*closed, shut)]
            if not any(all(longer[contacts.index(i)] == s for i, s in item.items()) for item in by_last.get(j, ()))
        ]
        if len(kept) > MOST_COMBINATIONS:
            return None
    return kept


class _Reached:
    """Which states each known configuration allows each contact: arrays of shape (n_known, n_contacts)."""

    def __init__(self, search: ConfigurationSearch, contacts: Sequence[int]) -> None:
        self.search, self.contacts = search, contacts
        self.open = self.closed = np.zeros((0, len(contacts)), dtype=bool)

    def _grown(self) -> None:
        new = self.search.known_values[len(self.open) :]
        if len(new):
            self.open = np.concatenate([self.open, self._allowed(new, False)])
            self.closed = np.concatenate([self.closed, self._allowed(new, True)])

    def _allowed(self, values: Array, shut: bool) -> NDArray[np.bool_]:
        columns = []
        for i in self.contacts:
            conditions = self.search.conditions(i, shut)
            short = missed(values[:, [c.value for c in conditions]], np.array([c.sense for c in conditions]))
            columns.append((short <= EXACT).all(axis=1))
        return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0), dtype=bool)

    def number(self, closed: Closed) -> int:
        """Return the number of a configuration with a combination, -1 if none is known."""
        self._grown()
        right = np.where(np.array(closed, dtype=bool), self.closed, self.open).all(axis=1)
        return int(np.argmax(right)) if right.any() else -1

    def nearest(self, closed: Closed) -> Array:
        """Return the known configuration with the most contacts as a combination has them."""
        right = np.where(np.array(closed, dtype=bool), self.closed, self.open).sum(axis=1)
        return self.search.known_q[int(np.argmax(right))] if len(right) else self.search.guess


def _decide(search: ConfigurationSearch, conditions: list[Condition]) -> tuple[bool, int]:
    """Return whether conditions are proved impossible, and the boxes looked at; the search keeps what it finds."""
    everything = [*conditions, *search.limits(conditions)]
    boxes = search.remaining(everything, FEW_BOXES)
    if not boxes.empty and search.configuration(conditions, boxes) is None:
        boxes = search.remaining(everything, BOXES, boxes)
    return boxes.empty, boxes.count


def _smallest(search: ConfigurationSearch, states: Mapping[int, bool], count: int) -> Mapping[int, bool]:
    """Return a part of impossible states that is impossible too, by as short a proof as that of all.

    All open contacts are left out at once, if that can be; else contacts are left out one by one.
    """

    def impossible(fewer: Mapping[int, bool]) -> bool:
        conditions = [c for i, shut in fewer.items() for c in search.conditions(i, shut)]
        if search.known(conditions) is not None:
            return False
        return search.remaining([*conditions, *search.limits(conditions)], max(count, FEW_BOXES)).empty

    closed = {i: shut for i, shut in states.items() if shut}
    kept = closed if len(closed) < len(states) and closed and impossible(closed) else dict(states)
    for contact in list(kept):
        fewer = {i: shut for i, shut in kept.items() if i != contact}
        says_nothing = not search.conditions(contact, kept[contact])
        if says_nothing or (fewer and impossible(fewer)):
            kept = fewer
    return kept


def ways(
    search: ConfigurationSearch,
    contacts: Sequence[int],
    combinations: Iterable[Closed],
    never_held: Sequence[frozenset[int]] = (),
) -> int:
    """Return the number of combinations of all contact states that belong to some of closed and open ones.

    Those in which all contacts of one of the sets ``never_held`` are held are left out.
    """
    infos = search.automaton.contacts
    concerned = sorted(frozenset().union(*never_held))

    def number(i: int, shut: bool | None) -> int:
        return sum(shut is None or (code > 0) == shut for code in infos[i].codes)

    @functools.cache
    def of_concerned(states: tuple[bool | None, ...]) -> int:
        codes = [
            [code for code in infos[i].codes if shut is None or (code > 0) == shut]
            for i, shut in zip(concerned, states, strict=True)
        ]
        held = (frozenset(i for i, code in zip(concerned, item, strict=True) if code == 1) for item in product(*codes))
        return sum(not any(never <= item for never in never_held) for item in held)

    others = [i for i in range(len(infos)) if i not in concerned]
    total = 0
    for closed in combinations:
        state: dict[int, bool | None] = dict(zip(contacts, closed, strict=True))
        each = math.prod(number(i, state.get(i)) for i in others)
        total += each * of_concerned(tuple(state.get(i) for i in concerned))
    return total
