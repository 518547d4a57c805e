"""Pictures of a mode graph, and its text for other programs."""

from __future__ import annotations

import html
import importlib.util
import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Outline

from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.files import write_file
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import (
    LABELS,
    Arrow,
    Box,
    Diagram,
    EdgeCurve,
    Placement,
    Size,
    at_most,
    is_dense,
    place,
    place_radially,
    shortened,
    without_causes,
)
from fsm_dyn.draw.svg import FONT, INK, SOFT, mode_colours, width_of
from fsm_dyn.plot import style
from fsm_dyn.run.trajectory import Trajectory

# -- Reduction of a mode graph to a diagram, with the visit counts of a run ----------------------------------

_FEW = 6  # contacts that are all named; of more only those that touch


def diagram(graph: nx.MultiDiGraph[Any], name: str = "", trajectory: Trajectory | None = None) -> Diagram:
    """Reduce a mode graph to a diagram.

    ``graph``, networkx.MultiDiGraph: nodes may carry ``label``, ``states`` (contact to state), ``note`` (a line of
    text), ``initial`` and ``found``: boxes of modes that were only ``derived`` from guards are dashed; edges ``cause``,
    ``priority``, ``found`` and, of an exploration, ``seen`` and ``runs``: arrows that are ``declared`` or ``derived``
    are dashed, unless the run took them. ``name``: title; by default the graph's own name. ``trajectory``: run whose
    visit counts and dwell times of modes, and counts of arrows, are added. Result: with one box for nodes of one label,
    and one arrow per ordered pair of boxes.
    """
    key = _grouped(graph)
    stays, taken = ({}, Counter()) if trajectory is None else (_stays(trajectory, key), _taken(trajectory, key))
    starts = {key[str(node)]: data for node, data in graph.nodes(data=True) if data.get("initial")}
    boxes = tuple(
        Box(
            key=str(node),
            title=str(data.get("label", node)),
            lines=(
                *_state_lines(starts.get(str(node), data).get("states", {})),
                *([str(data["note"])] if data.get("note") else []),
                *stays.get(str(node), ()),
            ),
            initial=str(node) in starts,
            dashed=data.get("found") == "derived",
        )
        for node, data in graph.nodes(data=True)
        if key[str(node)] == str(node)
    )
    labels: dict[tuple[str, str], list[tuple[float, str]]] = {}
    seen: dict[tuple[str, str], bool] = {}
    for source, target, data in graph.edges(data=True):
        way = key[str(source)], key[str(target)]
        if source == target or way[0] != way[1]:
            text = _edge_text(data)
            seen[way] = seen.get(way, False) or data.get("found", "seen") == "seen"
            labels.setdefault(way, []).append((float(data.get("priority") or 0), text))
    arrows = [
        Arrow(
            *way,
            (*dict.fromkeys(text for _, text in sorted(found, key=_priority) if text), *_times(taken[way])),
            dashed=not seen[way] and not taken[way],
        )
        for way, found in labels.items()
    ]
    keys = {box.key for box in boxes}
    arrows += [Arrow(*way, labels=_times(n)) for way, n in taken.items() if way not in labels and keys.issuperset(way)]
    return Diagram(name or str(graph.graph.get("name", "")), boxes, tuple(arrows))


def _edge_text(data: Mapping[str, Any]) -> str:
    """Return the cause of an edge, with the number of runs that took it where it comes from an exploration."""
    text = str(data.get("cause") or data.get("kind") or "")
    return f"{data['seen']} of {data['runs']}: {text}".rstrip(": ") if data.get("found") == "seen" else text


def _grouped(graph: nx.MultiDiGraph[Any]) -> dict[str, str]:
    """Return for every node the first one with its label, in whose box it is drawn."""
    first: dict[str, str] = {}
    return {
        str(node): first.setdefault(str(data.get("label", node)), str(node)) for node, data in graph.nodes(data=True)
    }


def _stays(trajectory: Trajectory, key: Mapping[str, str]) -> dict[str, tuple[str]]:
    """Return a line of text for every mode visited."""
    lengths: dict[str, list[float]] = {}
    t, names = trajectory.t, [key.get(name, name) for name in trajectory.modes]
    for i in range(1, len(t)):
        begins = i == 1 or names[i] != names[i - 1]
        lengths.setdefault(names[i], []).extend([0.0] if begins else [])
        lengths[names[i]][-1] += float(t[i] - t[i - 1])
    return {name: (f"{len(found)}× · {sum(found):.3g} s",) for name, found in lengths.items()}


def _taken(trajectory: Trajectory, key: Mapping[str, str]) -> Counter[tuple[str, str]]:
    return Counter(
        (key.get(item.source, item.source), key.get(item.target, item.target))
        for item in trajectory.transitions
        if not item.is_handover
    )


def _times(count: int) -> tuple[str, ...]:
    return (f"taken {count}×",) if count else ()


def _state_lines(states: Mapping[str, str]) -> tuple[str, ...]:
    told = {name: state for name, state in states.items() if state and (len(states) <= _FEW or state != "open")}
    return tuple(f"{contact}: {state}" for contact, state in told.items()) or (("all open",) if states else ())


def _priority(item: tuple[float, str]) -> float:
    return item[0]


# -- The mode graph for UPPAAL -------------------------------------------------------------------------------
#
# The mode graph for UPPAAL: one template of locations and edges, in the XML of flat systems.
#
# Modes are locations and causes of edges broadcast channels, which an edge sends on. Clocks and guards of UPPAAL are
# not used: time and forces decide which edge a motion takes, so that what is reachable here includes what motions
# reach. Guards and resets are there as comments.

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

    Characters other than letters without accents, digits and underscores become underscores; one is put before a digit
    at the beginning and behind a reserved word.  Of several names that would become the same the later ones get ``_2``,
    ``_3`` and so on. ``taken``: identifiers that have another meaning.
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

    ``graph``, networkx.MultiDiGraph: a mode graph; see :func:`fsm_dyn.plot.drawing.diagram` for its attributes.  Where
    no node is ``initial`` the system begins in the first. Names follow :func:`identifiers`; where that changes one, the
    comment of the location or edge has the original.
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


CLOCK: Final = "dwell"  # of the mode, in microseconds
_MICRO: Final = 1e6
_LONGEST: Final = 2**30 - 1  # UPPAAL has integers of 32 bits, and compares sums of two bounds


def to_timed_uppaal(trajectory: Trajectory) -> str:
    """Return the modes of a run as a timed automaton of UPPAAL, with dwell times as bounds of a clock.

    An edge that the run took is open from its shortest to its longest dwell time in the mode, rounded outwards to
    microseconds, and sets the clock to zero; a location is left by the latest of these. What the automaton can do
    contains the run, and any order of the run's edges within these times. An autonomous model with one start has no
    other run; with inputs, or another start, it implies nothing about those. Returns XML by the DTD of flat systems
    1.1; names as in :func:`to_uppaal`. Raises InputError: a dwell time is beyond the integers of UPPAAL, 1073 s.
    """
    changes = [item for item in trajectory.transitions if not item.is_handover]
    begin, dwell = float(trajectory.t[0]), dict[tuple[str, str, str], tuple[int, int]]()
    modes = dict.fromkeys([trajectory.modes[0], *(end for item in changes for end in (item.source, item.target))])
    for item in changes:
        low, high = math.floor((item.time - begin) * _MICRO), math.ceil((item.time - begin) * _MICRO)
        if high > _LONGEST:
            raise InputError(f"the run is in '{item.source}' for {item.time - begin:.6g} s", allowed="up to 1073 s")
        way = (item.source, item.target, item.cause)
        least, most = dwell.get(way, (low, high))
        dwell[way], begin = (min(least, low), max(most, high)), item.time
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for mode in modes:
        graph.add_node(mode, initial=mode == trajectory.modes[0])
    for source, target, cause in dwell:
        graph.add_edge(source, target, cause=cause)
    root = ET.fromstring(to_uppaal(graph).partition(DOCTYPE)[2])
    template = root.find("template")
    declared = root.find("declaration")
    assert template is not None
    assert declared is not None
    used = {name.text for name in template.iter("name")} | {*re.findall(r"\w+", declared.text or "")}
    clock = next(name for name in (CLOCK, *(f"{CLOCK}_{k}" for k in range(len(used) + 1))) if name not in used)
    declared.text = f"{declared.text or ''}\nclock {clock}; // microseconds in the mode".strip()
    for location, mode in zip(template.findall("location"), modes, strict=True):
        latest = [most for (source, _, _), (_, most) in dwell.items() if source == mode]
        if latest:
            place = location.attrib
            words = f"{clock} <= {max(latest)}"
            label = ET.Element("label", {"kind": "invariant", "x": place["x"], "y": place["y"]})
            label.text = words
            location.insert(1, label)
    ways = [(source, target, data["cause"]) for source, target, data in graph.edges(data=True)]
    for transition, way in zip(template.findall("transition"), ways, strict=True):
        least, most = dwell[way]
        first = transition.find("label")
        assert first is not None
        for kind, words in (("assignment", f"{clock} = 0"), ("guard", f"{clock} >= {least} && {clock} <= {most}")):
            label = ET.Element("label", {"kind": kind, "x": first.attrib["x"], "y": first.attrib["y"]})
            label.text = words
            transition.insert(2, label)
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
    """Return the positions of locations, in the units of UPPAAL's editor, whose second axis points down."""
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


# -- The mode graph for other programs -----------------------------------------------------------------------
#
# The mode graph for other programs: GraphML, node-link JSON, the machine of the library ``transitions``, UPPAAL.
#
# All hold the discrete part: modes and edges. Guards and reset maps are there as text.


def plain(graph: nx.MultiDiGraph[Any]) -> nx.MultiDiGraph[str]:
    """Return a mode graph with attributes that are texts, numbers and truths: contact states become JSON text."""
    found: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=str(graph.graph.get("name", "")))
    for node, data in graph.nodes(data=True):
        found.add_node(str(node), **_plain(data))
    for source, target, key, data in graph.edges(keys=True, data=True):
        found.add_edge(str(source), str(target), key=key, **_plain(data))
    return found


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    texts = {key: json.dumps(value) for key, value in data.items() if isinstance(value, dict)}
    return {key: value for key, value in data.items() if isinstance(value, str | bool | int | float)} | texts


def to_graphml(graph: nx.MultiDiGraph[Any]) -> str:
    """Return a mode graph as GraphML."""
    return "\n".join(nx.generate_graphml(plain(graph))) + "\n"


def from_graphml(text: str) -> nx.MultiDiGraph[str]:
    """Return the mode graph of a GraphML text, with the attributes of :func:`plain`."""
    found = nx.parse_graphml(text, force_multigraph=True)
    return nx.MultiDiGraph(found)


def to_json(graph: nx.MultiDiGraph[Any]) -> str:
    """Return a mode graph as JSON, in the node-link form of networkx."""
    return json.dumps(nx.node_link_data(plain(graph), edges="edges"), indent=1) + "\n"


def from_json(text: str) -> nx.MultiDiGraph[str]:
    """Return the mode graph of a JSON text, with the attributes of :func:`plain`."""
    return nx.MultiDiGraph(nx.node_link_graph(json.loads(text), multigraph=True, directed=True, edges="edges"))


def to_transitions(graph: nx.MultiDiGraph[Any]) -> str:
    """Return the arguments of ``transitions.Machine`` as JSON: modes are its states, causes of edges its triggers.

    ``Machine(**json.loads(text))`` makes the machine.  Edges of one source with one cause, between which the
    resolution of an event decides, are listed in the order of the graph; the library takes the first.
    """
    initial = next((str(node) for node, data in graph.nodes(data=True) if data.get("initial")), None)
    edges = dict.fromkeys(
        (str(data.get("cause") or data.get("guard") or f"to {target}"), str(source), str(target))
        for source, target, data in graph.edges(data=True)
    )
    machine = {
        "name": str(graph.graph.get("name", "")),
        "states": [str(node) for node in graph],
        "initial": initial,
        "transitions": [{"trigger": cause, "source": a, "dest": b} for cause, a, b in edges],
        "auto_transitions": False,
    }
    return json.dumps(machine, indent=1) + "\n"


EXCHANGE: Final[Mapping[str, Callable[[nx.MultiDiGraph[Any]], str]]] = {
    "graphml": to_graphml,
    "json": to_json,
    "transitions": to_transitions,
    "uppaal": to_uppaal,
}


# -- The mode graph as text for other tools: Graphviz DOT and Mermaid ----------------------------------------


def dot_quoted(text: str) -> str:
    """Return ``text`` as a DOT string that shows as written.

    Backslashes are doubled, for Graphviz reads one before a letter as the name of the node or the graph.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'


def to_dot(diagram: Diagram) -> str:
    """Return the diagram in the DOT language, drawn from left to right."""
    colours = mode_colours([box.key for box in diagram.boxes])
    lines = [
        f"digraph {dot_quoted(diagram.name or 'modes')} {{",
        "  rankdir=LR; nodesep=0.6; ranksep=0.9; pad=0.2;",
        f'  node [shape=box, style="rounded,filled", color="{INK}", penwidth=0.8, margin="0.16,0.09",'
        f' fontname="{FONT}", fontsize=11, fontcolor="{INK}"];',
        f'  edge [color="{INK}", penwidth=0.8, arrowsize=0.7, fontname="{FONT}", fontsize=9, fontcolor="{SOFT}"];',
    ]
    for box in diagram.boxes:
        rows = [f"<b>{html.escape(box.title)}</b>"]
        rows += [f'<font point-size="9">{html.escape(line)}</font>' for line in box.lines]
        label = f"<{'<br/>'.join(rows)}>"
        extra = ", penwidth=2.2" if box.initial else ', style="rounded,dashed"' if box.dashed else ""
        lines.append(f'  {dot_quoted(box.key)} [label={label}, fillcolor="{colours[box.key]}"{extra}];')
    for arrow in diagram.arrows:
        label = "\n".join(shortened(text) for text in at_most(arrow.labels, LABELS))
        extra = ", style=dashed" if arrow.dashed else ""
        lines.append(f"  {dot_quoted(arrow.source)} -> {dot_quoted(arrow.target)} [label={dot_quoted(label)}{extra}];")
    return "\n".join([*lines, "}", ""])


def mermaid_quoted(text: str) -> str:
    """Return ``text`` as a quoted Mermaid label that shows as written; characters of their syntax become codes."""
    escaped = "".join(char if char.isalnum() or char in " .,:+-*/=_→" else f"#{ord(char)};" for char in text)
    return f'"{escaped}"'


def to_mermaid(diagram: Diagram) -> str:
    """Return the diagram as a Mermaid flow chart; modes get plain numbers as identifiers."""
    colours = mode_colours([box.key for box in diagram.boxes])
    numbers = {box.key: f"m{i}" for i, box in enumerate(diagram.boxes)}
    lines = ["flowchart LR"]
    for box in diagram.boxes:
        rows = [f"<b>{mermaid_quoted(box.title)[1:-1]}</b>", *(mermaid_quoted(line)[1:-1] for line in box.lines)]
        label = "<br/>".join(rows)
        lines.append(f'  {numbers[box.key]}("{label}")')
    for arrow in diagram.arrows:
        label = "<br/>".join(mermaid_quoted(shortened(text))[1:-1] for text in at_most(arrow.labels, LABELS))
        if arrow.dashed:
            joint = f'-. "{label}" .->' if label else "-.->"
        else:
            joint = f'-- "{label}" -->' if label else "-->"
        lines.append(f"  {numbers[arrow.source]} {joint} {numbers[arrow.target]}")
    for box in diagram.boxes:
        width = "2.5px" if box.initial else "1px"
        fill, dashes = ("#FFFFFF", ",stroke-dasharray:4 3") if box.dashed else (colours[box.key], "")
        style = f"fill:{fill},stroke:{INK},stroke-width:{width},color:{INK}{dashes}"
        lines.append(f"  style {numbers[box.key]} {style}")
    return "\n".join([*lines, ""])


# -- Files of diagrams, in the format of their suffix --------------------------------------------------------

_SUFFIXES = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid",
             ".graphml": "graphml", ".json": "json", ".xml": "uppaal"}  # fmt: skip
FORMATS = (*dict.fromkeys(_SUFFIXES.values()), "transitions")


def has_graphviz() -> bool:
    """Return whether pygraphviz is installed (the extra ``graphviz``)."""
    return importlib.util.find_spec("pygraphviz") is not None


def format_of(path: Path) -> str:
    """Return the format of a file's suffix. Raises InputError if the suffix is none of those known."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"a mode graph cannot be written as '{path.name}'",
            found=suffix or "no suffix",
            allowed=", ".join(_SUFFIXES),
            remedy=did_you_mean(suffix, _SUFFIXES),
        )
    return _SUFFIXES[suffix]


def known_format(kind: str) -> str:
    """Return ``kind`` if it is one of :data:`FORMATS`. Raises InputError if it is not."""
    if kind not in FORMATS:
        raise InputError(
            f"there is no graph format '{kind}'",
            found=kind,
            allowed=", ".join(FORMATS),
            remedy=did_you_mean(kind, FORMATS),
        )
    return kind


def draw(
    graph: nx.MultiDiGraph[Any],
    path: str | Path,
    kind: str | None = None,
    *,
    trajectory: Trajectory | None = None,
    graphviz: bool = False,
) -> Path:
    """Write a mode graph as a picture or as text and return the path.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        See :func:`fsm_dyn.plot.drawing.diagram` for the attributes it reads.
    path : str or Path
    kind : str, optional
        One of :data:`FORMATS`; by default the suffix.
    trajectory : Trajectory, optional
        A run whose visits and transitions are counted in the picture; for UPPAAL the run is written, with a clock.
    graphviz : bool, optional
        Whether to lay the graph out with Graphviz, from the extra of this name.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the format is not known, or Graphviz is asked for and not installed.
    """
    target = Path(path)
    kind = known_format(kind) if kind else format_of(target)
    if kind in EXCHANGE:
        if kind == "uppaal" and trajectory is not None:
            write_file(target, to_timed_uppaal(trajectory))
        else:
            write_file(target, EXCHANGE[kind](graph))
        return target
    reduced = diagram(graph, trajectory=trajectory)
    if kind in ("dot", "mermaid"):
        write_file(target, to_dot(reduced) if kind == "dot" else to_mermaid(reduced))
    elif graphviz:
        _with_graphviz(reduced, target, kind)
    else:
        _with_matplotlib(reduced, target, kind)
    return target


def _with_graphviz(reduced: Diagram, target: Path, kind: str) -> None:
    if not has_graphviz():
        raise InputError("Graphviz is not installed", remedy='pip install "fsm-dyn[graphviz]"')
    # an extra
    import pygraphviz

    layout = pygraphviz.AGraph(string=to_dot(reduced))
    layout.graph_attr["dpi"] = "160" if kind == "png" else "72"
    write_file(target, layout.draw(format=kind, prog="dot"))


def _with_matplotlib(reduced: Diagram, target: Path, kind: str) -> None:
    # Matplotlib takes half a second to import, which DOT, Mermaid and Graphviz need not pay.
    from fsm_dyn.plot import style

    style.save(picture(reduced), target, kind)


# -- Mode graph as a Matplotlib figure, with the layout of :mod:`fsm_dyn.draw.graph_layout` ------------------

_TITLE, _LINE, _LABEL = 10.5, 8.5, 8.0  # font sizes, points
_LINE_SPACING = 1.35
_PADDING = (14.0, 8.0)
_POINTS_PER_INCH = 72.0


def picture(diagram: Diagram) -> Figure:
    """Draw the diagram: boxes in the colours of the modes, one arrow per pair, initial modes with a thick border.

    A diagram of many arrows is drawn around the initial modes, without the causes of arrows.
    """
    dense = is_dense(diagram)
    if dense:
        diagram = without_causes(diagram)
    sizes = {box.key: _box_size(box) for box in diagram.boxes}
    labels = {(arrow.source, arrow.target): _label_size(at_most(arrow.labels, LABELS)) for arrow in diagram.arrows}
    placement = place_radially(diagram, sizes) if dense else place(diagram, sizes, labels)
    low, high = _bounds(placement, sizes, labels)
    width, height = (high - low) / _POINTS_PER_INCH
    colours = palette.mode_colours([box.key for box in diagram.boxes])
    with style.settings():
        canvas = style.new_figure(width, height)
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        for curve in placement.curves:
            _draw_curve(axes, curve)
        for box in diagram.boxes:
            _draw_box(axes, box, placement.centres[box.key], sizes[box.key], colours[box.key])
    return canvas


def _box_size(box: Box) -> Size:
    lines = [style.text_width(line, _LINE) for line in box.lines]
    width = max(style.text_width(box.title, _TITLE, "bold"), *lines, 30.0)
    height = _LINE_SPACING * (_TITLE + _LINE * len(box.lines))
    return width + 2 * _PADDING[0], height + 2 * _PADDING[1]


def _label_size(labels: tuple[str, ...]) -> Size:
    width = max((style.text_width(shortened(text), _LABEL) for text in labels), default=0.0)
    return width, _LINE_SPACING * _LABEL * len(labels)


def _bounds(
    placement: Placement, sizes: dict[str, Size], labels: dict[tuple[str, str], Size]
) -> tuple[np.ndarray, np.ndarray]:
    rectangles = [(*placement.centres[key], *size) for key, size in sizes.items()]
    rectangles += [(*curve.label, *labels[curve.arrow.source, curve.arrow.target]) for curve in placement.curves]
    corners = np.array(rectangles or [(0.0, 0.0, 10.0, 10.0)])
    points = [corners[:, :2] - corners[:, 2:] / 2, corners[:, :2] + corners[:, 2:] / 2]
    fractions = np.linspace(0.0, 1.0, 17)[:, None]
    for curve in placement.curves:
        c = curve.control
        rest = 1.0 - fractions
        points.append(
            rest**3 * c[0] + 3 * rest**2 * fractions * c[1] + 3 * rest * fractions**2 * c[2] + fractions**3 * c[3]
        )
    everything = np.concatenate(points)
    return everything.min(axis=0) - 14.0, everything.max(axis=0) + 14.0


def _draw_box(axes: Axes, box: Box, centre: tuple[float, float], size: Size, colour: str) -> None:
    (x, y), (width, height) = centre, size
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=6",
            facecolor="white" if box.dashed else colour,
            edgecolor=palette.INK,
            lw=2.0 if box.initial else 0.8,
            linestyle="dashed" if box.dashed else "solid",
            zorder=3,
        )
    )
    top = y + height / 2 - _PADDING[1] - _LINE_SPACING * _TITLE / 2
    axes.text(x, top, box.title, ha="center", va="center", fontsize=_TITLE, fontweight="bold", zorder=4)
    top -= _LINE_SPACING * (_TITLE + _LINE) / 2
    for i, line in enumerate(box.lines):
        axes.text(x, top - i * _LINE_SPACING * _LINE, line, ha="center", va="center", fontsize=_LINE, zorder=4)


def _draw_curve(axes: Axes, curve: EdgeCurve) -> None:
    path = Outline(curve.control, [Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4])
    axes.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>,head_length=5,head_width=2.4",
            color=palette.INK,
            lw=0.9,
            zorder=2,
            shrinkB=0,
            linestyle="dashed" if curve.arrow.dashed else "solid",
        )
    )
    text = "\n".join(shortened(label) for label in at_most(curve.arrow.labels, LABELS))
    background = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
    axes.text(
        *curve.label,
        text,
        ha="center",
        va="center",
        fontsize=_LABEL,
        linespacing=1.15,
        color=palette.SOFT,
        zorder=5,
        bbox=background if text else None,
    )
