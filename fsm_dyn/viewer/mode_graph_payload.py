"""Payload of the mode graph: modes, edges with their causes, infeasible modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fsm_dyn.automaton.edges import edges
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.graphics.palette import mode_colours
from fsm_dyn.laws import Event
from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import shared_name

PRUNED_SHOWN: Final = 60


def mode_map(automaton: Automaton, initial: str) -> dict[str, Any]:
    """Return modes with states and colours, edges with causes, infeasible modes with reasons.

    Modes that differ by handovers alone are one, under their common label ``name``.
    """
    labels = {mode.name: automaton.labels.of(mode.states) for mode in automaton.modes}
    colours = mode_colours(list(labels.values()))
    modes = {labels[mode.name]: mode for mode in reversed(automaton.modes)}
    modes |= {labels[mode.name]: mode for mode in automaton.modes if mode.name == initial}
    causes: dict[tuple[str, str], dict[str, str]] = {}
    for edge in edges(automaton):
        pair = labels[edge.source], labels[edge.target]
        if edge.source == edge.target or pair[0] != pair[1]:
            causes.setdefault(pair, {})[edge.cause] = edge.reset
    return {
        "modes": [
            {
                "name": label,
                "states": {
                    contact.name: contact.states[code]
                    for contact, code in zip(automaton.contacts, modes[label].states, strict=True)
                },
                "colour": colour,
                "initial": modes[label].name == initial,
            }
            for label, colour in colours.items()
        ],
        "edges": [{"source": a, "target": b, "causes": found} for (a, b), found in causes.items()],
        "pruned": [{"name": n, "reason": why} for n, why in list(automaton.infeasible.items())[:PRUNED_SHOWN]],
        "pruned_count": len(automaton.infeasible),
        "complete": automaton.fully_enumerated,
    }


def guard_texts(automaton: Automaton, guards: Sequence[Guard]) -> list[dict[str, str]]:
    """Return text and event of every guard of a mode."""
    return [{"text": guard.text, "event": _event_text(automaton, guard)} for guard in guards]


def _event_text(automaton: Automaton, guard: Guard) -> str:
    if guard.event is Event.TRANSITION:
        return automaton.mechanism.transitions[guard.subject].because or guard.text
    contact = automaton.contacts[guard.subject]
    if guard.event is Event.CLOSES:
        return f"{shared_name(automaton.contacts, guard.subject)} {contact.contact_law.verb(guard.event)}"
    sense = "" if contact.in_space or not guard.direction else " (+)" if guard.direction > 0 else " (−)"
    return f"{contact.name} {contact.contact_law.verb(guard.event)}{sense}"
