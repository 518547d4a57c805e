"""The edges of the mode graph: what each guard of a mode can lead to.

Where a run goes is decided by the resolution at the instant; the edges show what one guard alone leads to, each
with its reset.  Several contacts that change together take an edge of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsm_dyn.automaton.artefact import Automaton, Mode
from fsm_dyn.modes.guards import VERBS, Event, Guard
from fsm_dyn.modes.system import of_one_corner, shared_name

FREE, HELD, SLIDING = 0, 1, 2


@dataclass(frozen=True)
class Edge:
    """One edge: ``priority`` 0 is a written transition, 1 a contact's event; ``reset`` says what jumps."""

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
    """Yield the edges between the modes derived so far."""
    by_states = {mode.states: mode for mode in automaton.modes}
    for mode in automaton.modes:
        for guard in mode.guards:
            for target, cause, reset, kind in _leads_to(automaton, mode, guard):
                found = by_states.get(target)
                if found is None:
                    continue
                yield Edge(
                    mode.name, found.name, guard.text, guard.event.name.lower(), cause, "falling", reset,
                    0 if guard.event is Event.TRANSITION else 1, kind,
                )  # fmt: skip
        yield from _on_events(automaton, mode)


def _leads_to(automaton: Automaton, mode: Mode, guard: Guard) -> Iterator[tuple[tuple[int, ...], str, str, str]]:
    if guard.event is Event.TRANSITION:
        item = automaton.mechanism.transitions[guard.subject]
        yield _written_target(automaton, mode, guard.subject), item.because or guard.text, _reset(item), "written"
        return
    contact = automaton.contacts[guard.subject]
    cause = f"{contact.name} {VERBS[guard.event]}"

    def to(code: int, subject: int = guard.subject) -> tuple[int, ...]:
        return tuple(code if i == subject else s for i, s in enumerate(mode.states))

    if guard.event is Event.CLOSES:
        yield mode.states, f"{shared_name(automaton.contacts, guard.subject)} strikes and rebounds", "impact", "impact"
        for index in of_one_corner(automaton.contacts, guard.subject):
            closing = automaton.contacts[index]
            for code in closing.codes[1:]:
                yield to(code, index), f"{closing.name} {VERBS[guard.event]}", "impact", "contact"
    elif guard.event in (Event.OPENS, Event.LEAVES):
        yield to(FREE), cause, "", "contact"
    elif guard.event is Event.SLIDES:
        yield to(SLIDING), f"{cause} ({'+' if guard.direction > 0 else '-'})", "", "contact"
    else:
        yield to(HELD), cause, "", "contact"
        yield mode.states, f"{contact.name} reverses its slip", "", "contact"


def _written_target(automaton: Automaton, mode: Mode, index: int) -> tuple[int, ...]:
    item = automaton.mechanism.transitions[index]
    states = list(mode.states)
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


def _on_events(automaton: Automaton, mode: Mode) -> Iterator[Edge]:
    by_states = {other.states: other for other in automaton.modes}
    for index in automaton.leaving(automaton.name_of(mode.states)):
        item = automaton.mechanism.transitions[index]
        if item.on is None:
            continue
        found = by_states.get(_written_target(automaton, mode, index))
        if found is not None:
            cause = f"{item.on[0]} {item.on[1]}"
            yield Edge(
                mode.name, found.name, cause, item.on[1], item.because or cause, "falling", _reset(item), 0, "written"
            )
