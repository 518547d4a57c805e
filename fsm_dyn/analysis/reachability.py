"""What an exploration has found: modes and edges seen, declared and derived, and where runs cannot leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import networkx as nx

from fsm_dyn.automaton.edges import outgoing
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.mode_groups import group_of, grouped

Graph: TypeAlias = "nx.MultiDiGraph[str]"


@dataclass(frozen=True)
class SeenMode:
    """A mode that runs visited: in which round first, its contact states (codes), and in how many runs."""

    name: str
    depth: int
    states: tuple[int, ...] = ()
    runs: int = 0


@dataclass(frozen=True)
class SeenEdge:
    """An edge that ``seen`` runs took, of ``runs`` that were in its source."""

    source: str
    target: str
    cause: str
    seen: int
    runs: int


@dataclass(frozen=True, eq=False)
class Exploration:
    """Modes and edges that runs met.

    Attributes
    ----------
    graph : ModeGraph
        Which was explored.
    modes : mapping of str to SeenMode
        In the order in which they were met.
    edges : tuple of SeenEdge
    instant_cycles : mapping of tuple of str to int
        Modes through which runs came back to the first within one instant, and how often.
    ends : mapping of str to int
        How many runs ended in which mode with which outcome.
    runs, refused : int
        Runs asked for, and those of them that could not begin: speeds drawn that the constraints contradict.
    depth, seed : int
        As given.
    """

    graph: ModeGraph
    modes: Mapping[str, SeenMode]
    edges: tuple[SeenEdge, ...]
    instant_cycles: Mapping[tuple[str, ...], int]
    ends: Mapping[str, int]
    runs: int
    refused: int
    depth: int
    seed: int

    def __repr__(self) -> str:
        return f"<Exploration of {self.graph.name}: {len(self.modes)} modes, {len(self.edges)} edges, {self.runs} runs>"

    @property
    def never_entered(self) -> tuple[str, ...]:
        """Modes of the graph that no run met."""
        return tuple(name for name in self.graph.modes if name not in self.modes)

    @property
    def never_left(self) -> tuple[str, ...]:
        """Modes that runs visited and none left."""
        left = {edge.source for edge in self.edges}
        return tuple(name for name in self.modes if name not in left)

    @property
    def terminal_modes(self) -> tuple[str, ...]:
        """Modes that runs visited and that have no guard that leads to another mode."""
        left = {edge.source for edge in self.edges}
        return tuple(name for name in self.modes if name not in left and not self._derived[name])

    @cached_property
    def _derived(self) -> Mapping[str, tuple[str, ...]]:
        """Modes to which one guard leads from each mode visited; without those that the geometry excludes."""
        automaton, geometry = self.graph.automaton, self.graph.geometry
        names = [contact.name for contact in automaton.contacts]
        found = {}
        for mode in self.modes.values():
            leading = outgoing(automaton, mode.states)
            targets = dict.fromkeys(target for target, *_ in leading if target != mode.states)
            found[mode.name] = tuple(
                automaton.name_of(states).name
                for states in targets
                if geometry is None or not geometry.excluded(dict(zip(names, states, strict=True)))
            )
        return found

    @cached_property
    def nx(self) -> Graph:
        """All that is known of the graph, as networkx.

        Nodes are modes visited or compiled, with ``label``, ``group``, ``found`` (``seen`` or ``declared``), ``depth``
        (-1 if not met), ``runs`` and ``initial``.  Edges have ``found``: ``seen`` (with ``seen`` of ``runs``),
        ``declared`` (a transition of the file) or ``derived`` (one guard alone leads there), and ``cause``.  All
        attributes are texts, numbers and truths, as GraphML and JSON hold them.
        """
        drawn: Graph = nx.MultiDiGraph(name=self.graph.name)
        labels = self.graph.automaton.labels
        for name, mode in self.modes.items():
            drawn.add_node(
                name,
                label=labels.of(mode.states),
                group=group_of(self.graph.automaton, mode.states),
                found="seen",
                depth=mode.depth,
                runs=mode.runs,
                initial=name == self.graph.initial,
            )
        compiled = self.graph.nx
        for name in self.never_entered:
            known = {key: compiled.nodes[name][key] for key in ("label", "group")}
            drawn.add_node(name, **known, found="declared", depth=-1, runs=0, initial=name == self.graph.initial)
        for edge in self.edges:
            drawn.add_edge(edge.source, edge.target, found="seen", cause=edge.cause, seen=edge.seen, runs=edge.runs)
        taken = {(edge.source, edge.target) for edge in self.edges}
        for source, target, data in compiled.edges(data=True):
            if source != target and (source, target) not in taken:
                found = "declared" if data["kind"] == "written" else "derived"
                drawn.add_edge(source, target, found=found, cause=data["cause"], seen=0, runs=self._runs(source))
                taken.add((source, target))
        for source, targets in self._derived.items():
            for target in targets:
                if target in drawn and (source, target) not in taken:
                    drawn.add_edge(source, target, found="derived", cause="", seen=0, runs=self._runs(source))
        return drawn

    @property
    def grouped(self) -> Graph:
        """The graph with one node for all modes of one name of the model, see :func:`fsm_dyn.plot.drawing.grouped`."""
        return grouped(self.nx)

    def _runs(self, mode: str) -> int:
        return self.modes[mode].runs if mode in self.modes else 0

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "model": self.graph.name,
            "runs": self.runs,
            "refused": self.refused,
            "depth": self.depth,
            "seed": self.seed,
            "modes": [
                {"name": mode.name, "depth": mode.depth, "runs": mode.runs, "states": list(mode.states)}
                for mode in self.modes.values()
            ],
            "edges": [{"source": a, "target": b, **data} for a, b, data in self.nx.edges(data=True)],
            "never_entered": self.never_entered,
            "never_left": self.never_left,
            "terminal_modes": self.terminal_modes,
            "instant_cycles": [{"modes": list(modes), "times": n} for modes, n in self.instant_cycles.items()],
            "ends": dict(self.ends),
        }
