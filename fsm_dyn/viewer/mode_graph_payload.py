"""Payload of the mode graph: modes, derived and possible, edges with their causes, infeasible modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fsm_dyn.automaton.edges import edges
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.mode_groups import group_of
from fsm_dyn.automaton.successor_graph import Outgoing, Successors, successors_of
from fsm_dyn.graphics.palette import mode_colours
from fsm_dyn.laws import Event
from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import shared_name

PRUNED_SHOWN: Final = 60
MOST_POSSIBLE: Final = 60  # possible modes above which none is sent: a page would lay out hundreds too slowly
MODES_WITH_POSSIBLE: Final = 40  # derived modes up to which those that are possible are sent, at every new one again


def mode_map(automaton: Automaton, initial: str, known: Outgoing | None = None) -> dict[str, Any]:
    """Return modes with states and colours, edges with causes, infeasible modes with reasons.

    Modes that differ by handovers alone are one, under their common label ``name``; ``full`` is the whole label
    where it is longer.  ``possible`` are modes that are not derived and to which a guard of a derived one leads, while
    there are few of those; ``known`` keeps what was found of their edges from call to call.
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
    found = successors_of(automaton, known=known) if len(modes) <= MODES_WITH_POSSIBLE else Successors({}, ())
    if len(found.modes) > MOST_POSSIBLE:
        found = Successors({}, ())
    names = labels | {name: automaton.labels.of(states) for name, states in found.modes.items()}
    possible = {names[name]: states for name, states in reversed(list(found.modes.items())) if names[name] not in modes}
    for source, target, cause, _ in found.edges:
        if names[source] != names[target]:
            causes.setdefault((names[source], names[target]), {}).setdefault(cause, "")
    return {
        "modes": [
            {
                "name": label,
                "group": group_of(automaton, modes[label].states),
                "states": _state_names(automaton, modes[label].states),
                "colour": colour,
                "initial": modes[label].name == initial,
                **_full_name(automaton, label, modes[label].states),
            }
            for label, colour in colours.items()
        ],
        "possible": [
            {"name": label, "group": group_of(automaton, states), "states": _state_names(automaton, states)}
            for label, states in reversed(list(possible.items()))
        ],
        "edges": [{"source": a, "target": b, "causes": found} for (a, b), found in causes.items()],
        "pruned": [{"name": n, "reason": why} for n, why in list(automaton.infeasible.items())[:PRUNED_SHOWN]],
        "pruned_count": len(automaton.infeasible),
        "complete": automaton.fully_enumerated,
    }


def _full_name(automaton: Automaton, label: str, states: Sequence[int]) -> dict[str, str]:
    """Return the label that names everything closed, where the mode's own is shortened."""
    full = automaton.labels.in_full(states)
    return {} if full == label else {"full": full}


def _state_names(automaton: Automaton, states: Sequence[int]) -> dict[str, str]:
    return {contact.name: contact.states[code] for contact, code in zip(automaton.contacts, states, strict=True)}


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
