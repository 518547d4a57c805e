"""Mode graph: modes with their equations, edges with guards and reset maps."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.automaton.edges import Edge, edges
from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_groups import group_of
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.automaton.storage import equations_version, from_bytes, save, to_bytes
from fsm_dyn.errors import InputError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.programs.cache import ObjectCache
from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.spec.values import Parameters, ParameterValue, parameter_values

if TYPE_CHECKING:
    import networkx as nx
    from networkx import MultiDiGraph

    from fsm_dyn.automaton.geometric_feasibility import GeometricFeasibility
    from fsm_dyn.automaton.geometric_proofs import GeometricProofs


@dataclass(frozen=True, eq=False, repr=False)
class ModeGraph:
    """A compiled mechanism: modes and transitions, as data that no run changes.

    Any number of threads may read one; :class:`fsm_dyn.Simulator` holds what running it takes.

    Attributes
    ----------
    automaton : Automaton
        The modes derived when the mechanism was compiled, with all that their runs need.
    values : mapping
        Values of the parameters by name, SI units.
    parameters : ndarray, shape (n_p,)
        The same in the order of ``automaton.terms.layout.p``; read-only.
    initial : str
        Name of the mode that runs begin in.
    start : InitialState, optional
        Where runs begin with these parameters and inputs of zero.
    geometry : GeometricFeasibility, optional
        Which contacts exclude each other, see :meth:`with_geometry`.
    """

    automaton: Automaton
    values: Mapping[str, ParameterValue]
    parameters: Array
    initial: str = ""
    start: InitialState | None = None
    geometry: GeometricFeasibility | None = None

    def __post_init__(self) -> None:
        parameters = self.parameters.copy()
        parameters.flags.writeable = False
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __copy__(self) -> ModeGraph:
        return self  # nothing changes a graph

    def __deepcopy__(self, memo: object) -> ModeGraph:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as data: the automaton as its file has it, without machine code."""
        parts = (dict(self.values), self.parameters, self.initial, self.start, self.geometry)
        return _unpickled, (to_bytes(self.automaton), *parts)

    def __repr__(self) -> str:
        return f"<ModeGraph {self.name}: {len(self.automaton.modes)} modes, {self.edge_count} edges>"

    def _repr_html_(self) -> str:
        # for notebooks only
        from fsm_dyn.automaton.notebook import graph_html

        return graph_html(self.automaton, self.initial)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.automaton.mechanism.name

    @cached_property
    def modes(self) -> Mapping[str, ModeView]:
        """The modes by name, each one object, so that what it forms for reading is formed once."""
        views = {mode.name: ModeView(self.automaton, mode, self.parameters) for mode in self.automaton.modes}
        return MappingProxyType({name: view for name, view in views.items() if name not in self._excluded})

    @property
    def infeasible(self) -> Mapping[str, str]:
        """Infeasible combinations of contact states, with the reason."""
        return {**self.automaton.infeasible, **self._excluded}

    @cached_property
    def _excluded(self) -> Mapping[str, str]:
        """Modes that no configuration has, with the reason; a run that visits one warns."""
        if self.geometry is None:
            return {}
        found = {name: item.reason for name, item in self.geometry.modes.items() if item.verdict == "impossible"}
        return {name: reason for name, reason in found.items() if name != self.initial}

    @property
    def nx(self) -> nx.MultiDiGraph[str]:
        """The automaton as a networkx graph; nodes carry ``mode``, edges ``guard cause reset priority`` and more.

        ``label`` of a node is what the mode is called where people read it; modes that only handovers tell apart share
        it.  ``group`` is the pattern of the model that names the mode.  ``found`` of an edge is ``declared`` for a
        transition of the file, else ``derived``: a guard leads there.
        """
        # importing networkx takes longer than most runs, and no run needs it
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name)
        labels = {mode.name: self.automaton.labels.of(mode.states) for mode in self.automaton.modes}
        groups = {mode.name: group_of(self.automaton, mode.states) for mode in self.automaton.modes}
        for name, view in self.modes.items():
            graph.add_node(
                name,
                label=labels[name],
                group=groups[name],
                found="declared",
                mode=view,
                states=view.states,
                degrees_of_freedom=view.degrees_of_freedom,
                operations=view.counts.total,
                initial=name == self.initial,
                **self._assessed(name),
            )
        for edge in edges(self.automaton):
            if edge.source not in graph or edge.target not in graph:
                continue
            graph.add_edge(
                edge.source,
                edge.target,
                guard=edge.guard,
                event=edge.event,
                cause=edge.cause,
                direction=edge.direction,
                reset=edge.reset,
                priority=edge.priority,
                kind=edge.kind,
                found="declared" if edge.kind == "written" else "derived",
            )
        return graph

    def nx_with_successors(self, depth: int = 1) -> MultiDiGraph[str]:
        """Return :attr:`nx` with the modes to which the guards of its modes lead, as known before any run.

        Parameters
        ----------
        depth : int
            Most guards of a chain that leads from a mode of :attr:`nx` to one that is not derived.

        Returns
        -------
        networkx.MultiDiGraph
            Nodes and edges of :attr:`nx`, and nodes with ``found`` ``derived``, ``label``, ``group`` and ``states`` for
            modes that a run derives when it meets them.  Modes that the geometry of :meth:`with_geometry` or
            contradictory constraints exclude are not among them.
        """
        # only for those who look at the graph
        from fsm_dyn.automaton.successor_graph import successors_of

        graph, automaton = self.nx, self.automaton
        found = successors_of(automaton, depth, self.geometry)
        for name, states in found.modes.items():
            graph.add_node(
                name,
                label=automaton.labels.of(states),
                group=group_of(automaton, states),
                found="derived",
                states={c.name: c.states[code] for c, code in zip(automaton.contacts, states, strict=True)},
                initial=False,
            )
        for source, target, cause, kind in found.edges:
            if source in graph and target in graph:
                seen = "declared" if kind == "written" else "derived"
                graph.add_edge(source, target, cause=cause, kind=kind, priority=int(kind != "written"), found=seen)
        return graph

    def _assessed(self, mode: str) -> dict[str, str]:
        """Return the verdict on a mode as an attribute of its node, where there is one."""
        if self.geometry is None or mode not in self.geometry.modes:
            return {}
        return {"verdict": self.geometry.modes[mode].verdict}

    def with_geometry(self, found: GeometricFeasibility) -> ModeGraph:
        """Return the graph without the modes that an assessment proves impossible; they join ``infeasible``.

        Nodes of ``nx`` carry their ``verdict``.  Runs are those of the graph as it was: one that reaches an impossible
        mode, within the tolerances of contacts, continues there and warns.

        Parameters
        ----------
        found : GeometricFeasibility
            Its verdicts on contact states.

        Returns
        -------
        ModeGraph
        """
        return replace(self, geometry=found)

    def assess_geometry(self, progress: Callable[[int, int], None] = lambda done, all_: None) -> GeometricFeasibility:
        """Return which contacts can be closed, and which of them at once, with the parameters of this graph.

        Each verdict is ``impossible`` (proved by interval bounds on the gaps, or on the speeds of contacts that are
        held), ``possible`` (with a configuration) or ``undecided``; the number of combinations of contact states
        without anything impossible comes with them.  A few contacts take a second, thirty a minute; the assessment is
        kept in the user's cache directory.

        Parameters
        ----------
        progress : Callable[[int, int], None], optional
            Called with the number of questions answered and of all.

        Returns
        -------
        GeometricFeasibility
        """
        # for those who ask: a run needs none of it
        from fsm_dyn.automaton.geometric_feasibility import GeometricFeasibility, assess_geometry

        begin = self._configuration()
        objects, key = ObjectCache.default(), self._geometry_key(begin)
        kept = objects.load(key)
        if kept is not None:
            with contextlib.suppress(InputError):
                return GeometricFeasibility.from_bytes(kept)
        found = assess_geometry(self.automaton, self.parameters, begin, progress)
        objects.store(key, found.to_bytes())
        return found

    def _configuration(self) -> Array:
        n_q = len(self.automaton.terms.layout.q)
        return np.zeros(n_q) if self.start is None else self.start.x[:n_q]

    def prove_geometry(self, progress: Callable[[int, int], None] = lambda done, all_: None) -> GeometricProofs:
        """Return a proof of each verdict ``impossible`` of :meth:`assess_geometry`, as data.

        Parameters
        ----------
        progress : Callable[[int, int], None], optional
            Called with the number of proofs made and of all.

        Returns
        -------
        GeometricProofs
            Conditions and subdivisions, to be written by ``save``.
        """
        # for those who ask: a run needs none of it
        from fsm_dyn.automaton.geometric_proving import prove_geometry

        found = self.assess_geometry()
        return prove_geometry(self.automaton, self.parameters, self._configuration(), found, progress)

    def check_proofs(
        self, proofs: GeometricProofs, progress: Callable[[int, int], None] = lambda done, all_: None
    ) -> int:
        """Return the number of boxes in which contradictions were verified, if all proofs hold for this graph.

        The check shares no arithmetic and no search with what makes proofs: it bounds the gaps by the intervals of
        mpmath, and works out by itself which conditions follow from contact states.

        Parameters
        ----------
        proofs : GeometricProofs
            Of this model with these parameters.
        progress : Callable[[int, int], None], optional
            Called with the number of proofs checked and of all.

        Raises
        ------
        InputError
            A proof does not hold, or the proofs are of another model or other parameters.
        """
        # for those who ask: mpmath comes with it
        from fsm_dyn.automaton.proof_check import check_proofs

        return check_proofs(self.automaton, self.parameters, proofs, progress)

    def _geometry_key(self, begin: Array) -> str:
        """Return what an assessment is kept under: all that it depends on."""
        digest = hashlib.sha256(f"geometry {equations_version()}|{self.automaton.mechanism.digest}|".encode())
        digest.update(self.parameters.tobytes() + begin.tobytes())
        digest.update("|".join(mode.name for mode in self.automaton.modes).encode())
        return digest.hexdigest()

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Modes to which no chain of single events leads from the initial mode."""
        if not self.initial:
            return ()
        successors, reached, ahead = self._successors(), {self.initial}, [self.initial]
        while ahead:
            new = successors[ahead.pop()] - reached
            reached |= new
            ahead += new
        return tuple(name for name in successors if name not in reached)

    @property
    def terminal_modes(self) -> tuple[str, ...]:
        """Modes that nothing leads out of, in a graph that has other modes."""
        successors = self._successors()
        if len(successors) < 2:
            return ()
        return tuple(name for name, targets in successors.items() if targets <= {name})

    @property
    def edge_count(self) -> int:
        """Number of edges: pairs of modes, one for each guard that leads from one to the other."""
        return sum(1 for _ in self._edges())

    def _edges(self) -> Iterator[Edge]:
        """Yield the edges between modes that are listed."""
        return (edge for edge in edges(self.automaton) if not self._excluded.keys() & {edge.source, edge.target})

    def _successors(self) -> dict[str, set[str]]:
        """Return the modes to which an edge leads from each mode, in the order of the modes."""
        found: dict[str, set[str]] = {name: set() for name in self.modes}
        for edge in self._edges():
            found.setdefault(edge.source, set()).add(edge.target)
            found.setdefault(edge.target, set())
        return found

    pruned = RenamedAttribute("infeasible")
    dead_ends = RenamedAttribute("terminal_modes")

    def with_modes(self, modes: Iterable[DerivedMode]) -> ModeGraph:
        """Return the graph with further modes; those that it has already stay as they are."""
        automaton = self.automaton
        for mode in modes:
            if automaton.find(mode.states) < 0:
                automaton = automaton.with_mode(mode)
        return self if automaton is self.automaton else replace(self, automaton=automaton)

    def save(self, path: str | Path) -> None:
        """Write the automaton to a JSON file; ``fsm_dyn.open_graph`` reads it, without sympy.

        Parameters
        ----------
        path : str or Path
            File to write.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        save(self.automaton, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.modes)


def graph_with_parameters(automaton: Automaton, parameters: Parameters | None = None) -> ModeGraph:
    """Return the graph of an automaton with parameter values and the mode it starts in.

    Parameters
    ----------
    automaton : Automaton
    parameters : mapping, optional
        Values that replace those of the model: SI numbers, or text with units.

    Raises
    ------
    InputError
        A parameter is unknown, or its value is not allowed.
    """
    values = parameter_values(automaton.mechanism, parameters)
    vector = parameter_vector(values)
    begin = initial_state(automaton, values, vector)
    return ModeGraph(automaton, values, vector, automaton.name_of(begin.states).name, begin)


def _unpickled(
    data: bytes,
    values: Mapping[str, ParameterValue],
    parameters: Array,
    initial: str,
    start: InitialState | None,
    geometry: GeometricFeasibility | None,
) -> ModeGraph:
    return ModeGraph(from_bytes(data), values, parameters, initial, start, geometry)
