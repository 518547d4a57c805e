"""Happenings of a run as sentences of subject, verb and object; rebounds of one contact as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.transitions import REASONS, Transition, guard_name
from fsm_dyn.run.words import ENGAGED, OPEN, STICK, Words, plain, slides, state_word
from fsm_dyn.runtime.abi import Event, Reason

BURST: Final = 20e-6  # s: of transitions nearer to each other the first is the cause
_INPUT: Final = 1e-6  # of the largest value of an input: smaller jumps do not count
_JUMP: Final = REASONS[Reason.INPUT_JUMP]
_SAMPLE: Final = REASONS[Reason.SAMPLE]
_START: Final = REASONS[Reason.START]
_ZENO: Final = REASONS[Reason.ZENO]


@dataclass(frozen=True)
class Act:
    """Act of one contact at a transition; ``verb`` is empty for an act not reported.

    ``contact`` is its number, ``impact`` whether its normal force had an impulse.
    """

    contact: int
    verb: str
    impact: bool = False


@dataclass(frozen=True)
class Happening:
    """One happening, or successive impacts of one contact.

    Attributes
    ----------
    time : float
        Of the first transition, s.
    text : str
        A sentence: subject, verb, object.
    count : int
        Number of its impacts, or 0.
    energy_lost : float
        By all of them, J.
    contacts : tuple of int
        Numbers of the contacts involved, the subject of the sentence first.
    transitions : tuple of int
        Numbers of its transitions.
    end : float
        Time of the last of them, s.
    """

    time: float
    text: str
    count: int
    energy_lost: float
    contacts: tuple[int, ...]
    transitions: tuple[int, ...]
    end: float


def sentence_of(words: Words, contact: int, verb: str) -> str:
    """Return an act of a contact as a sentence: "bolt meets striker"."""
    sentence = words.sentence(contact)
    if verb == "meets" and sentence.object.endswith("stop"):
        verb = "reaches"
    return f"{sentence.subject} {verb} {sentence.object}"


_GUARD_VERBS: Final[Mapping[Event, str]] = {
    Event.CLOSES: "meets", Event.OPENS: "leaves", Event.SLIDES: "slips on", Event.STICKS: "grips",
    Event.LEAVES: "slides off",
}  # fmt: skip


def guard_sentence(words: Words, automaton: Automaton, event: Event, contact: int, impact: bool = False) -> str:
    """Return the event of a contact's guard as a sentence.

    Parameters
    ----------
    words : Words
    automaton : Automaton
    event : Event
        Of a contact, not of a user-defined transition.
    contact : int
        Its number.
    impact : bool
        Whether it had an impulse.
    """
    law = automaton.contacts[contact].contact_law
    verb = law.verb(event) if event in law.verbs else "strikes" if impact else _GUARD_VERBS[event]
    return sentence_of(words, contact, verb)


class GuardWords:
    """Sentences about transitions of a live run, from the guards that fired.

    Parameters
    ----------
    words : Words
    automaton : Automaton
    """

    def __init__(self, words: Words, automaton: Automaton) -> None:
        self._words, self._automaton = words, automaton
        contacts = range(len(automaton.contacts))
        self._events = {
            guard_name(automaton, event, number): (event, number) for event in _GUARD_VERBS for number in contacts
        }

    def cause(self, item: Transition) -> str:
        """Return the first fired guard of a contact as a sentence; without one the cause of the transition."""
        known = next((self._events[name] for name, *_ in item.fired if name in self._events), None)
        if known is None:
            return item.cause
        event, contact = known
        impulse = item.impulse.get(self._automaton.contacts[contact].name)
        impact = impulse is not None and bool(np.atleast_1d(impulse)[0] != 0.0)
        return guard_sentence(self._words, self._automaton, event, contact, impact)


class Sentences:
    """Sentences about the transitions of a run.

    Parameters
    ----------
    words : Words
    rows : Samples
        Of the run.
    transitions : sequence of Transition
    """

    def __init__(
        self,
        words: Words,
        rows: Samples,
        transitions: Sequence[Transition],
    ) -> None:
        self.words, self.model, self.transitions = words, words.model, transitions
        self._rows = rows
        model = self.model
        self._states = dict(zip(model.modes, (chart.states for chart in model.charts), strict=True))
        self._events: dict[str, tuple[int, Event]] = {}
        if model.automaton is not None:
            for number in range(len(model.contacts)):
                for event in Event:
                    if event is not Event.TRANSITION:
                        name = guard_name(model.automaton, event, number)
                        self._events.setdefault(name, (number, event))
        self.acts = [list(self._acts(item)) for item in transitions]

    # -- Acts of contacts at one transition --------------------------------------------------------------------

    def _acts(self, item: Transition) -> Iterator[Act]:
        """Yield the acts of contacts: those with fired guards first."""
        before, after = self._states[item.source], self._states[item.target]
        fired = dict(self._events[text] for text, *_ in item.fired if text in self._events)
        order = [*fired, *(k for k in range(len(before)) if k not in fired)]
        entries = self.words.entry_of
        # the impulse of a contact taking over from another has the number of the other
        bare = bool(item.impulse) and not any(self._has_impact(item, number) for number in fired)
        for number in order:
            old, new = (state_word(self.model, number, int(codes[number])) for codes in (before, after))
            closes = bare and fired.get(number) is Event.CLOSES
            impact = self._has_impact(item, number) or (closes and old == new == OPEN)
            by_jump = not fired and old == new == OPEN
            if old == new and not (impact and (number in fired or by_jump)):
                continue
            entry = entries[number]
            pairs = [k for k in self.words.entries[entry] if k != number]
            if new != OPEN and old == OPEN and any(before[k] and not after[k] for k in pairs) and not impact:
                yield Act(number, "passes to")
            elif new == OPEN and old != OPEN and any(after[k] and not before[k] for k in pairs):
                continue
            else:
                yield Act(number, self._verb(old, new, fired.get(number), impact), impact)

    def _has_impact(self, item: Transition, number: int) -> bool:
        """Whether the normal force of a contact, or the force of one without, had an impulse."""
        values = item.impulse.get(self.model.contacts[number].name)
        return values is not None and bool(np.atleast_1d(values)[0] != 0.0)

    @staticmethod
    def _verb(old: str, new: str, event: Event | None, impact: bool) -> str:
        if old == OPEN and new == OPEN:
            return "bounces on"
        if ENGAGED in (old, new):
            return "engages" if new == ENGAGED else "releases"
        if old == OPEN:
            return "strikes" if impact else "meets"
        if new == OPEN:
            return "slides off" if event is Event.LEAVES else "leaves"
        if new == STICK:
            return "grips"
        if old == STICK:
            return "slips on"
        return "" if slides(old) and slides(new) and not impact else "strikes" if impact else ""

    def text_of(self, act: Act) -> str:
        """Return an act as a sentence; empty for one not reported."""
        if not act.verb:
            return ""
        if act.verb == "passes to":
            return f"contact passes to {self.words.feature(act.contact)}"
        return sentence_of(self.words, act.contact, act.verb)

    # -- One transition ----------------------------------------------------------------------------------------

    def cause(self, number: int) -> str:
        """Return the cause of a transition as a sentence."""
        item = self.transitions[number]
        trigger = item.cause.split(";")[0]
        first = trigger.split(", ")[0]
        if first == _JUMP:
            return self._jump(item.time)
        if first == _SAMPLE:
            return self._jump(item.time, "controller samples")
        if first == _START:
            return "start"
        told = [text for act in self.acts[number] if (text := self.text_of(act))]
        if not item.fired and first != _ZENO:
            return first if not told else told[0]
        written = [text for text, *_ in item.fired if text not in self._events]
        if written:
            return self._written(written[0], trigger)
        return told[0] if told else plain(first)

    def _written(self, name: str, trigger: str) -> str:
        """Return the reason of a user-defined transition, as its model gives it."""
        automaton = self.model.automaton
        if automaton is not None:
            for spec, own in zip(automaton.mechanism.transitions, automaton.user_transitions, strict=False):
                if own.name == name and spec.because:
                    return spec.because
        return trigger

    def _jump(self, time: float, otherwise: str = "an input jumps") -> str:
        """Return the jumps of inputs at a time: "finger 0 → 10 N"."""
        t = self._rows.t
        ends = int(np.searchsorted(t, time, side="left")), int(np.searchsorted(t, time, side="right")) - 1
        if not 0 <= ends[0] < len(t) or not 0 <= ends[1] < len(t):
            return otherwise
        told = []
        for name, values in self._rows.inputs.items():
            old, new = float(values[ends[0]]), float(values[ends[1]])
            if ends[0] == ends[1]:
                old = float(values[max(ends[0] - 1, 0)])
            if abs(new - old) > _INPUT * max(float(np.abs(values).max()), 1e-300):
                unit = self.model.units.get(name, "")
                told.append(f"{self.words.word(name)} {old:.3g} → {new:.3g} {unit}".strip())
        return ", ".join(told) or otherwise

    # -- All of them -------------------------------------------------------------------------------------------

    def happenings(self, everything: bool = False) -> list[Happening]:
        """Return the happenings, in order; successive impacts of one contact are one.

        Parameters
        ----------
        everything : bool
            One for each transition, reversals of slip included.
        """
        found: list[Happening] = []
        number = 0
        while number < len(self.transitions):
            length = 1 if everything else max(self._series(number), self._burst(number))
            numbers = tuple(range(number, number + length))
            series = not everything and self._series(number) == length > 1
            text = self._bounces(numbers) if series else self.cause(number)
            if text and (everything or length > 1 or self._is_told(number)):
                found.append(self._happening(numbers, text))
            elif self.transitions[number].impulse and found:  # an impact without a sentence: its energy is not lost
                found[-1] = self._happening((*found[-1].transitions, *numbers), found[-1].text)
            number += length
        return found

    def _burst(self, number: int) -> int:
        """Return how many transitions from this one on follow each other at once."""
        end = number
        while end + 1 < len(self.transitions) and self.transitions[end + 1].time - self.transitions[end].time < BURST:
            end += 1
        return end - number + 1

    def _happening(self, numbers: tuple[int, ...], text: str) -> Happening:
        items = [self.transitions[k] for k in numbers]
        contacts = dict.fromkeys(act.contact for k in numbers for act in self.acts[k] if act.verb)
        impacts = sum(any(act.impact for act in self.acts[k]) for k in numbers)
        lost = sum(item.energy_lost for item in items if item.impulse)
        return Happening(items[0].time, text, impacts, lost, tuple(contacts), numbers, items[-1].time)

    def _is_told(self, number: int) -> bool:
        """Whether a transition is more than a reversal of slip."""
        reversals = {name for name, (_, event) in self._events.items() if event is Event.STICKS}
        item = self.transitions[number]
        return any(act.verb for act in self.acts[number]) or not {text for text, *_ in item.fired} <= reversals

    def _series(self, number: int) -> int:
        """Return how many transitions from this one on are impacts of one contact while no other changes."""
        contact = self._only_impact(number)
        if contact is None:
            return 1
        end = number
        while self._rebounds(end, contact) and end + 1 < len(self.transitions):
            if self._only_impact(end + 1) != contact:
                break
            end += 1
        return end - number + 1

    def _only_impact(self, number: int) -> int | None:
        """Return the contact of a transition with one impact and nothing else, or None."""
        acts = [act for act in self.acts[number] if act.verb]
        return acts[0].contact if len(acts) == 1 and acts[0].impact else None

    def _rebounds(self, number: int, contact: int) -> bool:
        """Whether a contact is open after its impact."""
        states = self._states[self.transitions[number].target]
        return state_word(self.model, contact, int(states[contact])) == OPEN

    def _bounces(self, numbers: tuple[int, ...]) -> str:
        """Return impacts of one contact as a sentence."""
        contact = self._only_impact(numbers[0])
        assert contact is not None
        sentence = self.words.sentence(contact)
        rests = not self._rebounds(numbers[-1], contact)
        count = len(numbers) - rests
        times = f" {count}×" if count > 1 else ""
        return f"{sentence.subject} bounces{times} on {sentence.object}" + (", rests" if rests else "")
