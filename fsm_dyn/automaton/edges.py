"""Edges of the mode graph: target modes of each guard of a mode.

Where a run goes is decided by the resolution at the instant; the edges show what one guard alone leads to, each
with its reset.  Several contacts that change together take an edge of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.laws import Event
from fsm_dyn.modes.guard_list import list_guards
from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import of_one_corner, shared_name


@dataclass(frozen=True)
class Edge:
    """One edge: ``priority`` 0 is a user-defined transition, 1 a contact's event; ``reset`` specifies what jumps."""

    source: str
    target: str
    guard: str
    event: str
    cause: str
    direction: str
    reset: str
    priority: int
    kind: str


def edges(automaton: Automaton) -> Iterator[Edge]:
    """Yield the edges between the modes derived so far; a limit of either sign of a force has one.

    Parameters
    ----------
    automaton : Automaton
        The compiled mechanism.
    """
    yield from dict.fromkeys(_all_edges(automaton))


def _all_edges(automaton: Automaton) -> Iterator[Edge]:
    by_states = {mode.states: mode for mode in automaton.modes}
    for mode in automaton.modes:
        for guard in mode.guards:
            for target, cause, reset, kind in _leads_to(automaton, mode.states, guard):
                found = by_states.get(target)
                if found is None:
                    continue
                written = guard.event is Event.TRANSITION
                event = "transition" if written else automaton.contacts[guard.subject].contact_law.verb(guard.event)
                yield Edge(mode.name, found.name, guard.text, event, cause, "falling", reset, 0 if written else 1, kind)
        yield from _on_events(automaton, mode)


def successors(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the contact states that each guard alone of a mode leads to; neither mode need be derived."""
    yield from (target for target, *_ in _by_guards(automaton, states))


def outgoing(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Yield target states, cause and kind of the edges out of a mode by guards and events; no mode need be derived."""
    yield from _by_guards(automaton, states)
    for index in automaton.outgoing_transitions(automaton.name_of(states)):
        item = automaton.mechanism.transitions[index]
        if item.on is not None:
            cause = item.because or f"{item.on[0]} {item.on[1]}"
            yield _written_target(automaton, states, index), cause, "written"


def _by_guards(automaton: Automaton, states: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str, str]]:
    for guard in list_guards(automaton.system, states, automaton.outgoing_transitions(automaton.name_of(states))):
        for target, cause, _, kind in _leads_to(automaton, states, guard):
            if target != states:
                yield target, cause, kind


def _leads_to(
    automaton: Automaton, states: tuple[int, ...], guard: Guard
) -> Iterator[tuple[tuple[int, ...], str, str, str]]:
    if guard.event is Event.TRANSITION:
        item = automaton.mechanism.transitions[guard.subject]
        if item.range_of:
            return  # the run ends there
        yield _written_target(automaton, states, guard.subject), item.because or guard.text, _reset(item), "written"
        return
    contact = automaton.contacts[guard.subject]
    verb = contact.contact_law.verb(guard.event)
    cause = f"{contact.name} {verb}"

    def to(code: int, subject: int = guard.subject) -> tuple[int, ...]:
        return tuple(code if i == subject else s for i, s in enumerate(states))

    if guard.event is Event.CLOSES:
        jump = "impact" if contact.contact_law.has_gap else ""
        if jump:
            name = shared_name(automaton.contacts, guard.subject)
            yield states, f"{name} {automaton.labels.impact_words(guard.subject)}", jump, "impact"
        for index in of_one_corner(automaton.contacts, guard.subject):
            closing = automaton.contacts[index]
            for code in closing.codes[1:]:
                yield to(code, index), f"{closing.name} {verb}", jump, "contact"
        return
    sense = f" ({'+' if guard.direction > 0 else '-'})" if guard.event is Event.SLIDES else ""
    for code in contact.contact_law.ends_in(contact, states[guard.subject], guard.event):
        yield to(code), cause + sense, "", "contact"
    if guard.event is Event.STICKS:
        yield states, f"{contact.name} reverses its slip", "", "contact"


def _written_target(automaton: Automaton, before: tuple[int, ...], index: int) -> tuple[int, ...]:
    item = automaton.mechanism.transitions[index]
    states = list(before)
    for pattern in automaton.patterns:
        if pattern.name == item.target:
            for contact, code in pattern.states.items():
                states[contact] = code
    for other in automaton.modes:
        if other.name == item.target:
            states = list(other.states)
    return tuple(states)


def _reset(item: object) -> str:
    parts = {**getattr(item, "reset", {}), **getattr(item, "set", {})}
    return ", ".join(f"{name} := {text}" for name, text in parts.items())


def _on_events(automaton: Automaton, mode: DerivedMode) -> Iterator[Edge]:
    by_states = {other.states: other for other in automaton.modes}
    for index in automaton.outgoing_transitions(automaton.name_of(mode.states)):
        item = automaton.mechanism.transitions[index]
        if item.on is None:
            continue
        found = by_states.get(_written_target(automaton, mode.states, index))
        if found is not None:
            cause = f"{item.on[0]} {item.on[1]}"
            yield Edge(
                mode.name, found.name, cause, item.on[1], item.because or cause, "falling", _reset(item), 0, "written"
            )
