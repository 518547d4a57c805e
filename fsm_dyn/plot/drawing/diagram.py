"""Reduction of a mode graph to a diagram, with the visit counts of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import networkx as nx

from fsm_dyn.graphics.diagram import Arrow, Box, Diagram
from fsm_dyn.results.trajectory import Trajectory

_FEW = 6  # contacts that are all named; of more only those that touch


def diagram(graph: nx.MultiDiGraph[Any], name: str = "", trajectory: Trajectory | None = None) -> Diagram:
    """Reduce a mode graph to a diagram.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Nodes may carry ``label``, ``states`` (contact to state), ``note`` (a line of text), ``initial`` and ``found``:
        boxes of modes that were only ``derived`` from guards are dashed; edges ``cause``, ``priority``, ``found`` and,
        of an exploration, ``seen`` and ``runs``: arrows that are ``declared`` or ``derived`` are dashed, unless the
        run took them.
    name : str
        Title; by default the graph's own name.
    trajectory : Trajectory, optional
        Run whose visit counts and dwell times of modes, and counts of arrows, are added.

    Returns
    -------
    Diagram
        With one box for nodes of one label, and one arrow per ordered pair of boxes.
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
