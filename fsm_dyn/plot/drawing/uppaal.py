"""The mode graph for UPPAAL: one template of locations and edges, in the XML of flat systems.

Modes are locations and causes of edges broadcast channels, which an edge sends on.  Clocks and guards of UPPAAL are not
used: time and forces decide which edge a motion takes, so that what is reachable here includes what motions reach.
Guards and resets are there as comments.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any, Final

import networkx as nx

from fsm_dyn.graphics.diagram import Arrow, Box, Diagram
from fsm_dyn.graphics.layered_layout import place
from fsm_dyn.graphics.svg import width_of

DOCTYPE: Final = (
    "<!DOCTYPE nta PUBLIC '-//Uppaal Team//DTD Flat System 1.1//EN' "
    "'http://www.it.uu.se/research/group/darts/uppaal/flat-1_2.dtd'>"
)
TEMPLATE: Final = "Modes"
KEYWORDS: Final = frozenset(
    """
    A E F G IO M R U W X Pmax Pr abs acos acosh after_update and asin asinh assert assign atan atan2 atanh before_update
    bool bounds branchpoint break broadcast case cbrt ceil chan clock commit const continue control control_t copysign
    cos cosh deadlock default do double dynamic else enum erf erfc exists exit exp exp2 expm1 fabs false fdim fint floor
    fma fmax fmin fmod for forall foreach fpclassify gantt guard hybrid hypot if ilogb imitate imply import inf init int
    invariant isfinite isinf isnan isnormal isunordered ldexp lgamma ln loadStrategy location log log10 log1p log2 logb
    maxE maxPr meta minE minPr nextafter not numOf or pow priority probability process progress query random
    random_arcsine random_beta random_gamma random_normal random_poisson random_tri random_weibull rate return round sat
    saveStrategy scalar select signbit simulate simulation sin sinh spawn sqrt state strategy string struct sum sup
    switch sync system tan tanh tgamma trans true trunc typedef under urgent void while xor
    """.split()  # noqa: SIM905 - a list would be four times as long
)

_SIZE, _LEADING = 12.0, 17.0  # of text in UPPAAL's editor, its units


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return an identifier of UPPAAL for each name, all different.

    What is no letter without accent, digit or underscore becomes an underscore; one is put before a digit at the
    beginning and behind a reserved word.  Of several names that would become the same the later ones get ``_2``,
    ``_3`` and so on.

    Parameters
    ----------
    names : iterable of str
    taken : iterable of str
        Identifiers that have another meaning.
    """
    found: dict[str, str] = {}
    used = {*taken}
    for name in dict.fromkeys(names):
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
        stem = f"_{stem}" if stem[0].isdigit() else f"{stem}_" if stem in KEYWORDS else stem
        free, number = stem, 1
        while free in used:
            number += 1
            free = f"{stem}_{number}"
        used.add(free)
        found[name] = free
    return found


def to_uppaal(graph: nx.MultiDiGraph[Any]) -> str:
    """Return the discrete part of a mode graph as a system of UPPAAL (XML, DTD of flat systems 1.1).

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        A mode graph; see :func:`fsm_dyn.plot.drawing.diagram.diagram` for its attributes.  Where no node is ``initial``
        the system begins in the first.

    Returns
    -------
    str
        Names follow :func:`identifiers`; where that changes one, the comment of the location or edge has the original.
    """
    edges = list(dict.fromkeys(_edge(*edge) for edge in graph.edges(data=True)))
    channels = identifiers((cause for _, _, cause, _ in edges), {TEMPLATE})
    locations = identifiers((str(node) for node in graph), {TEMPLATE, *channels.values()})
    ids = {node: f"id{number}" for number, node in enumerate(locations)}
    centres = _centres(graph, locations, edges)
    start = next((str(node) for node, data in graph.nodes(data=True) if data.get("initial")), None)

    root = ET.Element("nta")
    declared = f"broadcast chan {', '.join(channels.values())};" if channels else ""
    ET.SubElement(root, "declaration").text = declared
    template = ET.SubElement(root, "template")
    ET.SubElement(template, "name").text = TEMPLATE
    for node, name in locations.items():
        x, y = centres[node]
        location = ET.SubElement(template, "location", {"id": ids[node]} | _at(x, y))
        ET.SubElement(location, "name", _at(x, y - _LEADING)).text = name
        if name != node:
            _label(location, "comments", node, x, y + _LEADING)
    if ids:
        ET.SubElement(template, "init", ref=ids[start or next(iter(ids))])
    for source, target, cause, comment in edges:
        transition = ET.SubElement(template, "transition")
        ET.SubElement(transition, "source", ref=ids[source])
        ET.SubElement(transition, "target", ref=ids[target])
        x, y = (0.5 * (a + b) for a, b in zip(centres[source], centres[target], strict=True))
        _label(transition, "synchronisation", f"{channels[cause]}!", x, y)
        _label(transition, "comments", comment, x, y + _LEADING)
    ET.SubElement(root, "system").text = f"system {TEMPLATE};"
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{DOCTYPE}\n{ET.tostring(root, encoding="unicode")}\n'


def _edge(source: Any, target: Any, data: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return source, target, cause and comment of an edge."""
    cause = str(data.get("cause") or data.get("guard") or f"to {target}")
    notes = [cause]
    if data.get("guard"):
        notes.append(f"guard: {data['guard']}" + (f", {data['direction']}" if data.get("direction") else ""))
    if data.get("reset"):
        notes.append(f"reset: {data['reset']}")
    return str(source), str(target), cause, "; ".join(notes)


def _centres(
    graph: nx.MultiDiGraph[Any], locations: dict[str, str], edges: Iterable[tuple[str, str, str, str]]
) -> dict[str, tuple[float, float]]:
    """Return where locations are drawn, in the units of UPPAAL's editor, whose second axis points down."""
    initial = {str(node) for node, data in graph.nodes(data=True) if data.get("initial")}
    ways = list(dict.fromkeys((source, target) for source, target, _, _ in edges))
    drawn = Diagram(
        "",
        tuple(Box(node, name, initial=node in initial) for node, name in locations.items()),
        tuple(Arrow(*way) for way in ways),
    )
    sizes = {node: (width_of(name, _SIZE) + 2 * _LEADING, 3 * _LEADING) for node, name in locations.items()}
    longest = dict.fromkeys(ways, 0.0)
    for source, target, cause, _ in edges:
        longest[source, target] = max(longest[source, target], width_of(cause, _SIZE))
    placed = place(drawn, sizes, {way: (width, 2 * _LEADING) for way, width in longest.items()})
    return {node: (float(x), -float(y)) for node, (x, y) in placed.centres.items()}


def _at(x: float, y: float) -> dict[str, str]:
    return {"x": str(round(x)), "y": str(round(y))}


def _label(parent: ET.Element, kind: str, words: str, x: float, y: float) -> None:
    allowed = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", words)  # in XML
    ET.SubElement(parent, "label", {"kind": kind} | _at(x, y)).text = allowed
