"""Short names of the modes of a run: the fewest contacts to tell a mode from the other visited ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import FloatArray, IntArray
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.run.words import OPEN, STICK, EntryStates

LONGEST: Final = 32  # characters
NOTHING: Final = "nothing touches"
MOTION: Final = "motion"  # of a model without contacts
_SEPARATOR: Final = ", "
_ONLY: Final = "only "


def short_names(states: EntryStates, t: FloatArray, mode: IntArray) -> dict[int, str]:
    """Return a name for each visited mode, by its number; modes with the same touching contacts share it.

    Parameters
    ----------
    states : EntryStates
    t : ndarray, shape (n,)
        Times of the rows of the run, s.
    mode : ndarray of int, shape (n,)

    Returns
    -------
    dict of int to str
    """
    visited = list(dict.fromkeys(mode.tolist()))
    always = [states.words.entry(e) for e in states.names if all(states.closed(e)[visited])]
    facts = _facts(states, visited)
    dwell = _dwell(t, mode, facts)
    by_facts: dict[tuple[str, ...], str] = {}
    nothing = NOTHING if states.names else MOTION
    sets = list(dict.fromkeys(tuple(facts[number]) for number in visited))
    for own in sets:
        by_facts[own] = (
            _name(own, [other for other in sets if other != own], dwell) if own else _bare(always, sets, nothing)
        )
    _numbered(by_facts)
    return {number: by_facts[tuple(facts[number])] for number in visited}


def _facts(states: EntryStates, visited: Sequence[int]) -> dict[int, list[str]]:
    """Return the touching contacts of each visited mode, as words, without those common to all modes."""
    words = states.words
    found: dict[int, list[str]] = {number: [] for number in visited}
    for entry, own in states.states.items():
        in_modes = {own[number] for number in visited}
        sets = {states.touching(number, entry) for number in visited} - {()}
        single = not _repeats(states, entry) and len(sets) > 1
        if len(in_modes) == 1 and not (single and OPEN not in in_modes):
            continue
        grips = STICK in in_modes and any(state not in (OPEN, STICK) for state in in_modes)
        for number in visited:
            if own[number] == OPEN:
                continue
            touching = states.touching(number, entry)
            text = words.feature(touching[0]) if single and len(touching) == 1 else words.entry(entry)
            verb = " grips" if grips and own[number] == STICK else ""
            fact = f"{text}{verb}"
            if fact not in found[number]:
                found[number].append(fact)
    return found


def _repeats(states: EntryStates, entry: str) -> bool:
    """Whether an entry is between copies of a shape."""
    contact = states.words.spec(states.words.entries[entry][0])
    mechanism = states.words.mechanism
    if mechanism is None or not isinstance(contact, FeatureContact):
        return False
    shapes = [mechanism.shapes.get(feature.shape) for feature in contact.features]
    return any(shape is not None and shape.repeat is not None for shape in shapes)


def _dwell(t: FloatArray, mode: IntArray, facts: Mapping[int, Sequence[str]]) -> dict[str, float]:
    """Return how long each fact was true, s."""
    spent = np.bincount(mode[:-1], weights=np.diff(t)) if len(t) > 1 else np.zeros(1)
    found: dict[str, float] = {}
    for number, own in facts.items():
        for fact in own:
            found[fact] = found.get(fact, 0.0) + (float(spent[number]) if number < len(spent) else 0.0)
    return found


def _bare(always: Sequence[str], sets: Sequence[Sequence[str]], nothing: str) -> str:
    """Return the name of a mode without contacts other than the permanent ones."""
    if not always:
        return nothing
    text = _SEPARATOR.join(always)
    text = text if len(text) <= LONGEST - len(_ONLY) else always[0]
    return _cut((_ONLY if len(sets) > 1 else "") + text, LONGEST)


def _name(own: Sequence[str], others: Sequence[Sequence[str]], dwell: Mapping[str, float]) -> str:
    """Return the fewest facts to tell a set from the others, the rarest first, joined in the order of the set."""
    left = list(others)
    chosen: list[str] = []
    pool = sorted(own, key=lambda fact: (dwell[fact], own.index(fact)))
    while pool:
        fact = min(pool, key=lambda word: (sum(word in other for other in left), pool.index(word)))
        pool.remove(fact)
        text = _SEPARATOR.join(word for word in own if word in (*chosen, fact))
        if chosen and len(text) > LONGEST:
            continue
        chosen.append(fact)
        left = [other for other in left if fact in other]
        if not left:
            break
    text = _SEPARATOR.join(word for word in own if word in chosen)
    if left and len(text) + len(_ONLY) <= LONGEST and all(set(own) < set(other) for other in left):
        text = _ONLY + text
    return _cut(text, LONGEST)


def _numbered(names: dict[tuple[str, ...], str]) -> None:
    """Number equal names."""
    for text in {name for name in names.values() if list(names.values()).count(name) > 1}:
        same = [own for own, name in names.items() if name == text]
        for number, own in enumerate(same[1:], start=2):
            mark = f" · {number}"
            names[own] = _cut(text, LONGEST - len(mark)) + mark


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip(", ") + "…"
