"""The mode graph reduced to what a picture shows: boxes with lines of text, arrows with labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

_LONGEST_LABEL = 38


@dataclass(frozen=True)
class Box:
    """A mode: its name, its contact states as lines of text, whether runs start in it."""

    key: str
    title: str
    lines: tuple[str, ...] = ()
    initial: bool = False


@dataclass(frozen=True)
class Arrow:
    """All transitions from one mode to another; a label per transition, in order of priority."""

    source: str
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows of a mode graph, in the graph's order."""

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def diagram(graph: nx.MultiDiGraph[Any], name: str = "") -> Diagram:
    """Reduce a mode graph to a diagram.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Nodes may carry ``label``, ``states`` (contact to state) and ``initial``; edges ``cause`` and ``priority``.
    name : str
        Title; by default the graph's own name.

    Returns
    -------
    Diagram
        With one arrow per ordered pair of modes.
    """
    boxes = tuple(
        Box(
            key=str(node),
            title=str(data.get("label", node)),
            lines=_state_lines(data.get("states", {})),
            initial=bool(data.get("initial", False)),
        )
        for node, data in graph.nodes(data=True)
    )
    labels: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for source, target, data in graph.edges(data=True):
        text = str(data.get("cause") or data.get("kind") or "")
        labels.setdefault((str(source), str(target)), []).append((float(data.get("priority") or 0), text))
    arrows = tuple(
        Arrow(source, target, tuple(dict.fromkeys(text for _, text in sorted(found, key=_priority) if text)))
        for (source, target), found in labels.items()
    )
    return Diagram(name or str(graph.graph.get("name", "")), boxes, arrows)


def shortened(text: str, length: int = _LONGEST_LABEL) -> str:
    """Return the text on one line, cut with an ellipsis where it is too long for a label."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def _state_lines(states: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{contact}: {state}" for contact, state in states.items() if state)


def _priority(item: tuple[float, str]) -> float:
    return item[0]
