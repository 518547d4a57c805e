"""The mode graph reduced to what a picture shows, with what a run made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import networkx as nx

from fsm_dyn.pictures.diagram import Arrow, Box, Diagram
from fsm_dyn.recording.trajectory import Trajectory


def diagram(graph: nx.MultiDiGraph[Any], name: str = "", trajectory: Trajectory | None = None) -> Diagram:
    """Reduce a mode graph to a diagram.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Nodes may carry ``label``, ``states`` (contact to state) and ``initial``; edges ``cause`` and ``priority``.
    name : str
        Title; by default the graph's own name.
    trajectory : Trajectory, optional
        A run whose visits are told: of every mode how often it was entered and for how long, of every arrow how often
        it was taken.

    Returns
    -------
    Diagram
        With one arrow per ordered pair of modes.
    """
    stays, taken = ({}, Counter()) if trajectory is None else (_stays(trajectory), _taken(trajectory))
    boxes = tuple(
        Box(
            key=str(node),
            title=str(data.get("label", node)),
            lines=(*_state_lines(data.get("states", {})), *stays.get(str(node), ())),
            initial=bool(data.get("initial", False)),
        )
        for node, data in graph.nodes(data=True)
    )
    labels: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for source, target, data in graph.edges(data=True):
        text = str(data.get("cause") or data.get("kind") or "")
        labels.setdefault((str(source), str(target)), []).append((float(data.get("priority") or 0), text))
    arrows = [
        Arrow(*way, (*dict.fromkeys(text for _, text in sorted(found, key=_priority) if text), *_times(taken[way])))
        for way, found in labels.items()
    ]
    keys = {box.key for box in boxes}
    arrows += [Arrow(*way, labels=_times(n)) for way, n in taken.items() if way not in labels and keys.issuperset(way)]
    return Diagram(name or str(graph.graph.get("name", "")), boxes, tuple(arrows))


def _stays(trajectory: Trajectory) -> dict[str, tuple[str]]:
    """Return a line of text for every mode met."""
    lengths: dict[str, list[float]] = {}
    t, names = trajectory.t, trajectory.modes
    for i in range(1, len(t)):
        begins = i == 1 or names[i] != names[i - 1]
        lengths.setdefault(names[i], []).extend([0.0] if begins else [])
        lengths[names[i]][-1] += float(t[i] - t[i - 1])
    return {name: (f"{len(found)}× · {sum(found):.3g} s",) for name, found in lengths.items()}


def _taken(trajectory: Trajectory) -> Counter[tuple[str, str]]:
    return Counter((item.source, item.target) for item in trajectory.transitions)


def _times(count: int) -> tuple[str, ...]:
    return (f"taken {count}×",) if count else ()


def _state_lines(states: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{contact}: {state}" for contact, state in states.items() if state)


def _priority(item: tuple[float, str]) -> float:
    return item[0]
