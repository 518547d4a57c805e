"""Groups of modes: those that one pattern of the model names, drawn as one node that can be opened."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import networkx as nx

OTHER = "other"  # the group of modes that no pattern names


def group_of(automaton: Automaton, states: Sequence[int]) -> str:
    """Return the group of a mode: the pattern of the model that names it, or ``other``."""
    return automaton.name_of(states).pattern or OTHER


def grouped(graph: nx.MultiDiGraph[Any], opened: Collection[str] = ()) -> nx.MultiDiGraph[str]:
    """Return a mode graph with one node for each group of modes.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        A mode graph whose nodes have ``group``, as those of :attr:`ModeGraph.nx` and of explorations.
    opened : collection of str
        Groups whose modes stay separate nodes.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes of groups have ``label`` (with the number of modes), ``note`` (how many of them runs met or have been
        derived), ``found`` and ``initial``.  Edges between groups have ``found``, ``cause`` (of several: their number),
        ``seen`` and ``runs``, summed over the edges in between.

    Raises
    ------
    InputError
        A group to open does not exist.
    """
    # importing networkx takes longer than most runs, and no run needs it
    import networkx as nx

    members: dict[str, list[str]] = {}
    for node, data in graph.nodes(data=True):
        members.setdefault(str(data.get("group", OTHER)), []).append(str(node))
    for name in opened:
        if name not in members:
            raise InputError(f"no group '{name}'", allowed=", ".join(members), remedy=did_you_mean(name, members))
    single = {node for name in opened for node in members[name]}
    place = {node: node if name in opened else name for name, nodes in members.items() for node in nodes}
    drawn: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=str(graph.graph.get("name", "")))
    for name, nodes in members.items():
        if name in opened:
            drawn.add_nodes_from((node, graph.nodes[node]) for node in nodes)
        else:
            drawn.add_node(name, **_as_one(name, [graph.nodes[node] for node in nodes]))
    between: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for source, target, data in graph.edges(data=True):
        way = place[str(source)], place[str(target)]
        if way[0] != way[1] or str(source) in single:
            between.setdefault(way, []).append(data)
    for way, items in between.items():
        if single.issuperset(way):
            drawn.add_edges_from((*way, data) for data in items)
        else:
            drawn.add_edge(*way, **_in_sum(items))
    return drawn


def _as_one(group: str, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the attributes of a group's node."""
    kinds = [str(node.get("found", "declared")) for node in nodes]
    met, known = kinds.count("seen"), len(kinds) - kinds.count("derived")
    what = f"{met} met by runs" if met else f"{known} derived" if known else "none derived"
    return {
        "label": f"{group} ({len(nodes)})",
        "note": what,
        "group": group,
        "found": "seen" if met else "declared" if known else "derived",
        "initial": any(bool(node.get("initial")) for node in nodes),
    }


def _in_sum(edges: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the attributes of the edge that stands for several."""
    seen = [edge for edge in edges if edge.get("found") == "seen"]
    causes = list(dict.fromkeys(str(edge.get("cause") or "") for edge in (seen or edges)))
    kinds = {str(edge.get("found", "derived")) for edge in edges}
    return {
        "found": "seen" if seen else "declared" if "declared" in kinds else "derived",
        "cause": causes[0] if len(causes) == 1 else f"{len(causes)} causes",
        "seen": sum(int(edge.get("seen", 0)) for edge in seen),
        "runs": sum(int(edge.get("runs", 0)) for edge in seen),
    }
