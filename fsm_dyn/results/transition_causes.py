"""Causes of transitions as text: guards that fired, contacts that changed, selection of the candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.laws import FREE, SLIDING, Event, Law
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.runtime.abi import Reason
from fsm_dyn.simulation.candidates import CHOSEN, read_candidates
from fsm_dyn.simulation.run_arrays import TransitionArrays

States: TypeAlias = Sequence[Sequence[int]] | NDArray[np.int8]  # contact states of the modes by number

#: What begins the cause of a transition that no guard caused, by its reason.
REASONS: Final[Mapping[int, str]] = {
    Reason.START: "start",
    Reason.INPUT_JUMP: "input jump",
    Reason.SAMPLE: "sample of a controller",
    Reason.INCONSISTENT_ROWS: "redundant constraints became inconsistent",
    Reason.ZENO: "Zeno time reached",
}


def transition_cause(automaton: Automaton, found: TransitionArrays, states: States, number: int, labels: Labels) -> str:
    """Return the cause of a run's transition ``number``; ``states`` are the contact states of the modes by number.

    First the trigger: the guards that fired, the condition of the model, the start, a jump of an input, or a handover
    from one feature to another.  Then, after a semicolon, the other contacts that changed.
    """
    before = [int(code) for code in states[found.source[number]]]
    after = [int(code) for code in states[found.target[number]]]
    reason = int(found.reason[number])
    handovers = _handovers(automaton, found, labels, before, after, number)
    told: list[int] = []
    parts: list[str] = []
    for k in range(int(found.fired[number])):
        event, subject = Event(int(found.event[number, k])), int(found.contact[number, k])
        pair = next((p for p in handovers if subject in p), None)
        if event is Event.TRANSITION:
            parts.append(_written(automaton, subject))
        elif subject in told:
            continue
        elif pair is not None and event in (Event.LEAVES, Event.CLOSES):
            told += pair
            parts.append(handovers[pair])
        else:
            if event is Event.CLOSES and _beyond(automaton, found, number, subject, after[subject]):
                continue
            told.append(subject)
            parts.append(_moved(automaton, labels, subject, event, before[subject], after[subject]))
    written = int(found.written[number])
    if written >= 0 and _written(automaton, written) not in parts and not (parts and _is_event(automaton, written)):
        parts.append(_written(automaton, written))
    if reason in REASONS:
        parts.insert(0, REASONS[reason])
    along = []
    for pair, words in handovers.items():
        if pair[1] not in told:
            told += pair
            along.append(words)
    along += _changed(automaton, before, after, told)
    return ", ".join(parts) + ("; " + ", ".join(along) if along else "")


def fired(automaton: Automaton, found: TransitionArrays, number: int) -> tuple[tuple[str, float, float], ...]:
    """Return the guards that fired at transition ``number``: event, value and slope just before, of each."""
    guards = []
    for k in range(int(found.fired[number])):
        event, subject = Event(int(found.event[number, k])), int(found.contact[number, k])
        text = guard_name(automaton, event, subject)
        guards.append((text, float(found.value[number, k]), float(found.slope[number, k])))
    return tuple(guards)


def guard_name(automaton: Automaton, event: Event, subject: int) -> str:
    """Return what a guard is called, by its event and the number of its contact or user-defined transition."""
    if event is Event.TRANSITION:
        return automaton.user_transitions[subject].name
    return _announced(automaton.contacts[subject], event)


def selection_log(automaton: Automaton, found: TransitionArrays, number: int) -> tuple[str, ...]:
    """Return how the target of transition ``number`` was selected, then each candidate examined."""
    contacts = [contact.name for contact in automaton.contacts]
    tried = int(found.candidates[number])
    candidates = read_candidates(found.log[number], tried)
    lines = [CHOSEN[int(found.chosen_by[number])], *(candidate.describe(contacts) for candidate in candidates)]
    if tried > len(candidates):
        lines.append(f"and {tried - len(candidates)} more")
    return tuple(lines)


def cause_words(automaton: Automaton) -> dict[str, Any]:
    """Return the words that :func:`transition_cause` and :func:`fired` are made of, for a page that joins them itself.

    Of each contact: ``moved`` by event, state before and state after, ``announced`` by event, ``became`` by state, and
    ``beyond``, the normal row of one whose face ends, else -1.  Of user-defined transitions: ``written`` and ``named``.
    """
    contacts = []
    moved = partial(_moved, automaton, automaton.labels)
    for k, contact in enumerate(automaton.contacts):
        codes, law = range(len(contact.states)), contact.contact_law
        known = [event for event in Event if event is not Event.TRANSITION]
        contacts.append(
            {
                "name": contact.name,
                "moved": {e.value: [[moved(k, e, a, b) for b in codes] for a in codes] for e in known},
                "announced": {e.value: _announced(contact, e) for e in known},
                "became": [f"{contact.name} {_became(law, state)}" for state in contact.states],
                "beyond": contact.normal_row if contact.bounded_face else -1,
            }
        )
    numbers = range(len(automaton.user_transitions))
    return {
        "contacts": contacts,
        "written": [_written(automaton, i) for i in numbers],
        "named": [automaton.user_transitions[i].name for i in numbers],
        "reasons": REASONS,
    }


def _is_event(automaton: Automaton, index: int) -> bool:
    """Whether a user-defined transition has no reason beyond the event of the contact that it waits for."""
    spec = automaton.mechanism.transitions[index]
    return spec.on is not None and not spec.because


def _written(automaton: Automaton, index: int) -> str:
    """Return the reason that the model gives for its user-defined transition, or the condition itself."""
    return automaton.mechanism.transitions[index].because or automaton.user_transitions[index].name


def _moved(automaton: Automaton, labels: Labels, contact: int, event: Event, before: int, after: int) -> str:
    """Return what a contact whose guard fired did; one guard can have several outcomes."""
    law, name = automaton.contacts[contact].contact_law, automaton.contacts[contact].name
    if event is Event.CLOSES and after == FREE and law.has_gap:
        return f"{name} {labels.impact_words(contact)}"
    if event is Event.OPENS and automaton.contacts[contact].bilateral:
        return f"{name} changes to its opposite face"
    if event is Event.OPENS and after != FREE:  # it stays, with others beside it
        return f"the force of {name} fell to zero"
    if event is Event.STICKS and after == before == SLIDING:
        return f"{name} reverses its slip"
    if after not in {code for guard in law.guards if guard.event is event for code in guard.leads_to}:
        # other contacts changed in the same instant, and with them the outcome of this one
        became = f", {_became(law, automaton.contacts[contact].states[after])}" if after != before else ""
        return f"{name}: {law.sign(event)}{became}"
    return f"{name} {law.verb(event)} ({law.sign(event)})"


def _announced(contact: ContactInfo, event: Event) -> str:
    return f"{contact.name} {contact.contact_law.verb(event)}"


def _handovers(
    automaton: Automaton,
    found: TransitionArrays,
    labels: Labels,
    before: Sequence[int],
    after: Sequence[int],
    number: int,
) -> dict[tuple[int, int], str]:
    """Return the handovers between contacts, without an impulse and with a normal force that remains, as text."""
    opened = {
        int(found.contact[number, k])
        for k in range(int(found.fired[number]))
        if int(found.event[number, k]) == Event.OPENS
    }
    told = {}
    for old, new in labels.handed_over(before, after):
        rows = [automaton.contacts[k].normal_row for k in (old, new)]
        if old in opened or found.impulse[number, rows].any():
            continue
        contact, code = automaton.contacts[new], after[new]
        changed = code != before[old]
        told[old, new] = labels.passes_on(old, new) + (
            f" and {_became(contact.contact_law, contact.states[code])}" if changed else ""
        )
    return told


def _beyond(automaton: Automaton, found: TransitionArrays, number: int, contact: int, after: int) -> bool:
    """Whether a gap became zero beyond the end of its face, without an impulse."""
    info = automaton.contacts[contact]
    return info.bounded_face and after == FREE and not found.impulse[number, info.normal_row]


def _changed(automaton: Automaton, before: Sequence[int], after: Sequence[int], told: Sequence[int]) -> list[str]:
    """Return the contacts that changed their state without a guard of their own, as text."""
    return [
        f"{contact.name} {_became(contact.contact_law, contact.states[code])}"
        for i, (contact, old, code) in enumerate(zip(automaton.contacts, before, after, strict=True))
        if code != old and i not in told
    ]


def _became(law: Law, state: str) -> str:
    return law.became.get(state, state)
