"""The mode graph for other programs: GraphML, node-link JSON, the machine of the library ``transitions``, UPPAAL.

All hold the discrete part: modes and edges.  Guards and reset maps are there as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx

from fsm_dyn.plot.drawing.uppaal import to_uppaal


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
