"""Visits of a run: its phases, or without phases its modes by short names, each with its cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, overload

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.run_diagrams import Stay, VisitDiagram, visit_diagram
from fsm_dyn.draw.svg import PhaseFill, html_table, phase_fills, table
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.requirement import MeasuredQuantity, QuantityComparison
from fsm_dyn.run.judgement import Judge
from fsm_dyn.run.phases import NO_PHASE, PhaseVisit, default_shortest, judged_visits, merged
from fsm_dyn.run.run import Run
from fsm_dyn.run.transitions import REASONS, Transition, counted
from fsm_dyn.run.words import OPEN, STICK, EntryStates, Happening, Sentences, Words
from fsm_dyn.runtime.abi import Reason

# -- Short names of modes: the fewest contacts that distinguish a mode from the other visited ones -----------

LONGEST: Final = 32  # characters
NOTHING: Final = "nothing touches"
MOTION: Final = "motion"  # of a model without contacts
_SEPARATOR: Final = ", "
_ONLY: Final = "only "


def short_names(states: EntryStates, t: Floats, mode: Integers) -> dict[int, str]:
    """Return a name for each visited mode, by its number; modes with the same touching contacts share it.

    ``t``, shape (n,): times of the rows of the run, s; ``mode``, shape (n,).
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


def _dwell(t: Floats, mode: Integers, facts: Mapping[int, Sequence[str]]) -> dict[str, float]:
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
    """Return the fewest facts that distinguish a set from others, rarest first, joined in the order of the set."""
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


# -- Visits --------------------------------------------------------------------------------------------------

MOST_NAMES: Final = 12  # most modes with separate names in a run without phases
START: Final = "start"
_RATE: Final = re.compile(r"rate\((\w+)\)")
UNNAMED: Final = "no phase"
_OTHERS: Final = "nothing else"
_RATTLES: Final = 4  # least impacts of a contact in one visit to make one happening
_COINCIDENT: Final = 1e-9  # of the length of a run: within it a visit begins with a transition
_CAUSES: Final = 1e-3  # s: a transition within this distance of the start of a visit is its cause, if none coincides
_SHARE: Final = 0.05  # of the shorter of the two visits: no farther than this
_NEAR: Final = 1e-4  # of it, at least; to either side of a crossing, to see its direction


@dataclass(frozen=True)
class Visit:
    """A stay of a run in one phase, or in modes of one short name.

    Attributes
    ----------
    name : str
        Of the phase, or short name of the mode.
    begin, end : float
        s
    cause : str
        Cause of its start, as a sentence.
    contact : int
        Number of the contact of its cause; -1 without one.
    text : str
        Meaning of the phase, in the text of its model.
    merged : int
        Number of visits merged into it, shorter ones included.
    """

    name: str
    begin: float
    end: float
    cause: str
    contact: int = -1
    text: str = ""
    merged: int = 1

    @property
    def duration(self) -> float:
        """How long it lasts, s."""
        return self.end - self.begin


class Visits(Sequence[Visit]):
    """The visits of a run in order; they tile it.

    Attributes
    ----------
    are_phases : bool
        Whether the names are those of the model's phases; else short names of modes.
    names : tuple of str
        Of the visits, each once, in the order of the phases, else of the first visit.
    fills : mapping of str to PhaseFill
        By name.
    """

    def __init__(self, visits: Sequence[Visit], fills: Mapping[str, PhaseFill], are_phases: bool) -> None:
        self._visits = tuple(visits)
        self.fills, self.are_phases = fills, are_phases
        present = {visit.name for visit in self._visits}
        self.names = tuple(name for name in fills if name in present)

    def __len__(self) -> int:
        return len(self._visits)

    @overload
    def __getitem__(self, number: int) -> Visit: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Visit, ...]: ...
    def __getitem__(self, number: int | slice) -> Visit | tuple[Visit, ...]:
        return self._visits[number]

    def __iter__(self) -> Iterator[Visit]:
        return iter(self._visits)

    def at(self, time: float) -> Visit:
        """Return the visit at a time, s: the later one between two."""
        return next((visit for visit in reversed(self._visits) if visit.begin <= time), self._visits[0])

    def __str__(self) -> str:
        return table(HEADINGS, self.cells())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self.cells())

    def diagram(self, narrow: bool = False) -> VisitDiagram:
        """Return the graph of the run: its visits, and how often it went from one to another."""
        return visit_diagram([Stay(v.name, v.duration, v.cause) for v in self._visits], self.fills, narrow)

    def cells(self) -> list[tuple[str, ...]]:
        """Return a row of text for each visit: time, name, cause, duration."""
        return [(clock(visit.begin), visit.name, visit.cause, span(visit.duration)) for visit in self._visits]


HEADINGS: Final = ("time, s", "phase", "cause", "duration")


def span(seconds: float) -> str:
    """Return a duration as text, with three digits at most."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (0.9995, 1e3, "ms"), (np.inf, 1.0, "s")):
        if seconds < limit:
            value = seconds * factor
            return f"{value:.2f} {unit}" if unit == "s" and value < 100 else f"{value:.3g} {unit}"
    return f"{seconds:g} s"


def clock(time: float) -> str:
    """Return a time as text, to four digits after the point; to fewer if it is long."""
    text = f"{time:.4f}" if abs(time) < 1.0 else f"{time:.3f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class RunReading:
    """Reads a run: its visits with their causes and happenings."""

    def __init__(self, run: Run) -> None:
        self.run, self.model, self.rows, self.record = run, run.model, run.all, run.record
        self.words = Words(self.rows)
        self.states = EntryStates(self.words)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.run)

    @property
    def transitions(self) -> Sequence[Transition]:
        """Those of the run."""
        return self.record.transitions

    @cached_property
    def sentences(self) -> Sentences:
        """Happenings at each transition."""
        return Sentences(self.words, self.rows, self.transitions)

    @cached_property
    def names(self) -> dict[int, str]:
        """Short names of the visited modes, by their numbers."""
        return short_names(self.states, self.rows.t, self.record.mode)

    @cached_property
    def visits(self) -> Visits:
        """The visits, without short ones."""
        return self._visits(False)

    @cached_property
    def all_visits(self) -> Visits:
        """The visits, short ones included."""
        return self._visits(True)

    def _visits(self, everything: bool) -> Visits:
        t = self.rows.t
        if self.model.phases:
            begin = np.array([0, len(t)])
            found = judged_visits(self._judge, t, self.record.mode, begin, self.model.phases, everything)[0]
            names = [phase.name for phase in self.model.phases]
            colours = {phase.name: phase.colour for phase in self.model.phases}
            texts = [phase.text for phase in self.model.phases]
        else:
            names, found = self._of_modes(everything)
            texts = [""] * len(names)
            colours = {name: "grey" if name in (NOTHING, MOTION, _OTHERS) else "" for name in names}
        if any(visit.phase == NO_PHASE for visit in found):
            colours[UNNAMED] = "grey"
        visits = [
            Visit(
                UNNAMED if item.phase == NO_PHASE else names[item.phase],
                item.begin,
                item.end,
                *self._cause(item, found[number - 1] if number else None),
                text="" if item.phase == NO_PHASE else texts[item.phase],
                merged=item.merged,
            )
            for number, item in enumerate(found)
        ]
        return Visits(visits, phase_fills(colours), bool(self.model.phases))

    def _of_modes(self, everything: bool) -> tuple[list[str], list[PhaseVisit]]:
        """Return the names instead of phases for a model without them, and their visits.

        Among many modes, each has the name of its closed contact with the shortest closed time in the run.
        """
        t, mode = self.rows.t, self.record.mode
        by_mode = self.names
        if len(set(by_mode.values())) > MOST_NAMES:
            by_mode = self._rarest()
        names = list(dict.fromkeys(by_mode.values()))
        number_of = np.zeros(max(by_mode) + 1, dtype=np.int64)
        number_of[list(by_mode)] = [names.index(name) for name in by_mode.values()]
        numbers = number_of[mode]
        moving = np.flatnonzero(t[1:] > t[:-1])
        if not len(moving):
            return names, [PhaseVisit(int(numbers[-1]), float(t[0]), float(t[-1]))]
        changes = np.flatnonzero(np.diff(numbers[moving])) + 1
        first, last = moving[[0, *changes]], moving[[*(changes - 1), -1]]
        found = [
            PhaseVisit(int(numbers[a]), float(t[a]), float(t[b + 1]))
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ]
        usual = default_shortest(t, mode)
        return names, found if everything else merged(found, lambda _: usual, kept=True)

    def _rarest(self) -> dict[int, str]:
        """Return for each visited mode the touching entry with the shortest touching time in the run."""
        t, mode = self.rows.t, self.record.mode
        spent = np.bincount(mode[:-1], weights=np.diff(t), minlength=len(self.model.charts))
        closed = {entry: self.states.closed(entry) for entry in self.states.names}
        dwell = {entry: float(spent[touching].sum()) for entry, touching in closed.items()}
        visited = list(dict.fromkeys(mode.tolist()))
        rare = sorted((e for e in closed if 0.0 < dwell[e] < spent.sum()), key=lambda e: dwell[e])[: MOST_NAMES - 1]
        words = {entry: self.words.entry(entry) for entry in rare}
        return {number: next((words[entry] for entry in rare if closed[entry][number]), _OTHERS) for number in visited}

    # -- Causes ------------------------------------------------------------------------------------------------

    def _cause(self, visit: PhaseVisit, before: PhaseVisit | None) -> tuple[str, int]:
        """Return the cause of a visit as a sentence, and the number of its contact."""
        if before is None:
            return START, -1
        end = self._of_transition(visit.begin, 0.0)
        if end is None:
            window = min(_CAUSES, _SHARE * min(visit.end - visit.begin, before.end - before.begin))
            end = self._of_transition(visit.begin, window)
        if end is None:
            return self._crossing(visit, before), -1
        item = self._told[end]
        jump = self.transitions[item.transitions[0]].cause.startswith(REASONS[Reason.INPUT_JUMP])
        return item.text, item.contacts[0] if item.contacts and not jump else -1

    def _of_transition(self, time: float, window: float) -> int | None:
        """Return the happening of the transition nearest to a time, no farther than a window; None without one."""
        if not len(self._times):
            return None
        near = window + _COINCIDENT * float(self.rows.t[-1] - self.rows.t[0])
        number = int(abs(self._times - time).argmin())
        number = int(np.searchsorted(self._times, self._times[number]))  # the first of several at one time
        if abs(self._times[number] - time) > near:
            return None
        return self._told_of.get(number)

    @cached_property
    def _told(self) -> list[Happening]:
        return self.sentences.happenings()

    @cached_property
    def _told_of(self) -> dict[int, int]:
        """The happening of each transition."""
        return {number: k for k, item in enumerate(self._told) for number in item.transitions}

    @cached_property
    def _times(self) -> Floats:
        return np.array([item.time for item in self.transitions])

    def _crossing(self, visit: PhaseVisit, before: PhaseVisit) -> str:
        """Return the comparison with a change at the start of a visit, as a sentence."""
        phases = self.model.phases
        own = [phases[n] for n in (visit.phase, before.phase) if n != NO_PHASE and n < len(phases)]
        others = [phase for phase in phases if phase not in own]
        compared = dict.fromkeys(
            condition
            for phase in (*own, *others)
            for part in (*phase.when, *phase.until)
            for condition in part
            if isinstance(condition, QuantityComparison)
        )
        if not compared:
            return ""
        t = self.rows.t
        apart = _NEAR * min(visit.end - visit.begin, before.end - before.begin)
        times = np.clip([visit.begin - apart, visit.begin, visit.begin + apart], t[0], t[-1])
        samples = self.run.sample(times)
        best: tuple[float, str] | None = None
        for condition in compared:
            values = self._judge.column(samples, condition.quantity) - float(self._judge.number(condition.bound)[0])
            reach = max(abs(float(values[2] - values[0])), 1e-300)
            if values[0] * values[2] > 0.0 or not np.isfinite(values).all():
                continue
            verb = "rises above" if values[2] > values[0] else "falls below"
            text = f"{self._quantity_words(condition.quantity)} {verb} {condition.bound.text}"
            far = abs(float(values[1])) / reach
            best = (far, text) if best is None or far < best[0] else best
        return best[1] if best else ""

    def _quantity_words(self, quantity: MeasuredQuantity) -> str:
        """Return a quantity as words: "rate of x", "normal force of string"."""
        mechanism = self.words.mechanism
        speed = None if mechanism is None else mechanism.speeds.get(quantity.name)
        rate = None if speed is None else _RATE.fullmatch(speed.text)
        named = quantity.name in self.words.names
        text = f"rate of {self.words.word(rate[1])}" if rate and not named else self.words.word(quantity.name)
        if quantity.part:
            text = f"{quantity.part} force of {text}"
        return f"size of {text}" if quantity.magnitude else text

    # -- Happenings --------------------------------------------------------------------------------------------

    @cached_property
    def happenings(self) -> tuple[Happening, ...]:
        """Happenings, in order: rebounds as one, and rattling contacts once for each visit."""
        found = self._told
        kept: list[Happening] = []
        position = 0
        for visit in self.visits:
            last = visit is self.visits[-1]
            own = []
            while position < len(found) and (last or found[position].time < visit.end):
                own.append(found[position])
                position += 1
            kept += self._without_rattle(own)
        return tuple(kept)

    def _without_rattle(self, own: Sequence[Happening]) -> list[Happening]:
        """Return the happenings of a visit, with those of a rattling contact as one."""
        impacts = Counter(item.contacts[0] for item in own if item.count and item.contacts)
        rattling = {contact for contact, count in impacts.items() if count >= _RATTLES}
        found: list[Happening] = []
        place: dict[int, int] = {}
        for item in own:
            contact = item.contacts[0] if item.contacts else -1
            if contact not in rattling:
                found.append(item)
            elif contact not in place:
                place[contact] = len(found)
                found.append(item)
            else:
                first = found[place[contact]]
                found[place[contact]] = replace(
                    first,
                    count=first.count + item.count,
                    energy_lost=first.energy_lost + item.energy_lost,
                    transitions=(*first.transitions, *item.transitions),
                    end=item.end,
                )
        for contact, number in place.items():
            count = found[number].count
            subject = self.words.sentence(contact).subject
            found[number] = replace(found[number], text=f"{subject}: {count} impacts")
        return found

    # -- One-line summary --------------------------------------------------------------------------------------

    @cached_property
    def headline(self) -> str:
        """Return how many transitions were read as how many visits."""
        names = len(self.visits.names)
        kind = "phase" if self.visits.are_phases else "mode"
        kind = f"{_number(names, kind)}{'' if self.visits.are_phases else ' by short name'}"
        modes = len({self.model.modes[number] for number in set(self.record.mode.tolist())})
        return (
            f"{counted(self.transitions)} of {_number(modes, 'mode')}, {_number(len(self.visits), 'visit')} of {kind}"
        )

    def closed(self, entry: str) -> Booleans:
        """Return at which rows an entry is not open, shape (n,)."""
        return self.states.closed(entry)[self.record.mode]

    def normal_force(self, entry: str) -> Floats:
        """Return the sum of the normal forces of an entry at all rows, of friction alone its size; shape (n,)."""
        total = np.zeros(len(self.rows))
        for number in self.words.entries[entry]:
            contact = self.model.contacts[number]
            row = contact.normal_row if contact.normal_row >= 0 else contact.tangent_row
            if row >= 0:
                values = self.rows.multiplier_table[:, row]
                total += np.where(np.isfinite(values), np.abs(values), 0.0)
        return total


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
