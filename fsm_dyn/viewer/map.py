"""The mode graph for the page: modes, what leads from one to another, and combinations that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fsm_dyn.automaton.artefact import Automaton
from fsm_dyn.automaton.edges import edges
from fsm_dyn.modes.guards import VERBS, Event, Guard
from fsm_dyn.pictures.palette import mode_colours

PRUNED_SHOWN: Final = 60


def mode_map(automaton: Automaton, initial: str) -> dict[str, Any]:
    """Return modes with states, colours and guards, edges with their causes, pruned combinations with reasons."""
    colours = mode_colours([mode.name for mode in automaton.modes])
    causes: dict[tuple[str, str], dict[str, str]] = {}
    for edge in edges(automaton):
        causes.setdefault((edge.source, edge.target), {})[edge.cause] = edge.reset
    return {
        "modes": [
            {
                "name": mode.name,
                "states": {
                    contact.name: contact.states[code]
                    for contact, code in zip(automaton.contacts, mode.states, strict=True)
                },
                "colour": colours[mode.name],
                "initial": mode.name == initial,
            }
            for mode in automaton.modes
        ],
        "edges": [{"source": a, "target": b, "causes": found} for (a, b), found in causes.items()],
        "pruned": [{"name": n, "reason": why} for n, why in list(automaton.pruned.items())[:PRUNED_SHOWN]],
        "pruned_count": len(automaton.pruned),
        "complete": automaton.complete,
    }


def guard_texts(automaton: Automaton, guards: Sequence[Guard]) -> list[dict[str, str]]:
    """Return what every guard of a mode measures and what it announces."""
    return [{"text": guard.text, "announces": _announced(automaton, guard)} for guard in guards]


def _announced(automaton: Automaton, guard: Guard) -> str:
    if guard.event is Event.TRANSITION:
        return automaton.mechanism.transitions[guard.subject].because or guard.text
    contact = automaton.contacts[guard.subject]
    sense = "" if contact.in_space or not guard.direction else " (+)" if guard.direction > 0 else " (−)"
    return f"{contact.name} {VERBS[guard.event]}{sense}"
