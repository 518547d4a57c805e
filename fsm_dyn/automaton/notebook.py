"""Notebook representation of a mode graph: drawing and table of modes."""

from __future__ import annotations

from dataclasses import replace

from fsm_dyn.automaton.edges import edges
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.label_forms import told_states
from fsm_dyn.automaton.successor_graph import successors_of
from fsm_dyn.graphics.diagram import Arrow, Box, Diagram
from fsm_dyn.graphics.mode_graph_svg import MOST, left_out, mode_graph
from fsm_dyn.graphics.svg import element, escaped

MOST_ROWS = 40


def diagram_of(automaton: Automaton, initial: str) -> Diagram:
    """Return the boxes and arrows of a mode graph: one box for modes that only handovers tell apart.

    Modes to which a guard of a derived one leads are dashed boxes; all arrows are dashed, as no run has taken them.
    """
    boxes: dict[str, Box] = {}
    labels = mode_labels(automaton)
    for mode in automaton.modes:
        states = {c.name: c.states[code] for c, code in zip(automaton.contacts, mode.states, strict=True)}
        label = labels[mode.name]
        if label not in boxes:
            boxes[label] = Box(label, label, told_states(states), mode.name == initial)
        elif mode.name == initial:
            boxes[label] = replace(boxes[label], lines=told_states(states), initial=True)
    known = successors_of(automaton)
    for name, codes in known.modes.items():
        labels[name] = label = automaton.labels.of(codes)
        states = {c.name: c.states[code] for c, code in zip(automaton.contacts, codes, strict=True)}
        boxes.setdefault(label, Box(label, label, told_states(states), dashed=True))
    causes: dict[tuple[str, str], dict[str, None]] = {}
    between = [
        *((edge.source, edge.target, edge.cause) for edge in sorted(edges(automaton), key=lambda e: e.priority)),
        *((source, target, cause) for source, target, cause, _ in known.edges),
    ]
    for source, target, cause in between:
        way = labels[source], labels[target]
        if source == target or way[0] != way[1]:
            causes.setdefault(way, {})[cause] = None
    arrows = tuple(Arrow(*way, tuple(found), dashed=True) for way, found in causes.items())
    return Diagram(automaton.mechanism.name, tuple(boxes.values()), arrows)


def mode_labels(automaton: Automaton) -> dict[str, str]:
    """Return what each mode derived so far is called where people read it, by its name."""
    return {mode.name: automaton.labels.of(mode.states) for mode in automaton.modes}


def graph_svg(automaton: Automaton, initial: str) -> str:
    """Return the picture of a mode graph; of a large one the part nearest to where runs start."""
    return mode_graph(diagram_of(automaton, initial))


def graph_html(automaton: Automaton, initial: str) -> str:
    """Return a mode graph as a notebook shows it; whatever the model's text says stays text."""
    diagram = diagram_of(automaton, initial)
    labels, mechanism = mode_labels(automaton), automaton.mechanism
    modes = {labels[mode.name]: mode for mode in reversed(automaton.modes)}
    modes |= {labels[mode.name]: mode for mode in automaton.modes if mode.name == initial}
    counts = [f"{len(modes)} mode{'s' if len(modes) != 1 else ''}{'' if automaton.fully_enumerated else ' so far'}"]
    if left_out(diagram):
        counts.append(f"the {MOST} nearest to the start are drawn")
    if automaton.infeasible:
        counts.append(f"{len(automaton.infeasible)} impossible")
    head = element("b", escaped(mechanism.name)) + " " + escaped(mechanism.summary) + element("br") + ", ".join(counts)
    heads = "".join(element("th", name) for name in ("mode", "contacts", "degrees of freedom", "operations"))
    rows = [element("tr", heads)]
    for box in [box for box in diagram.boxes if box.key in modes][:MOST_ROWS]:
        mode = modes[box.key]
        freedom, operations = len(mode.programs.independent), mode.programs.rhs.counts().total
        cells = (escaped(box.title), escaped(", ".join(box.lines)), str(freedom), str(operations))
        rows.append(element("tr", (element("td", cell) for cell in cells)))
    more = len(modes) - MOST_ROWS
    if more > 0:
        rows.append(element("tr", element("td", f"and {more} more", colspan=4)))
    table = element("details", element("summary", "Modes") + element("table", rows))
    return element("div", [element("p", head), mode_graph(diagram), table])
