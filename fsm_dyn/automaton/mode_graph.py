"""Mode graph: modes with their equations, edges with guards and reset maps."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode, Edge, edges, outgoing
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.labels import told_states
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.automaton.storage import LARGEST_FILE, equations_version, from_bytes, save, to_bytes
from fsm_dyn.core.arguments import check_arguments, typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, Location, did_you_mean
from fsm_dyn.core.files import read_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.graph_layout import MOST, Arrow, Box, Diagram, left_out, mode_graph
from fsm_dyn.draw.svg import element, escaped
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.kernels import ObjectCache

if TYPE_CHECKING:
    import networkx as nx
    from networkx import MultiDiGraph

    from fsm_dyn.automaton.feasibility import GeometricFeasibility
    from fsm_dyn.automaton.geometric_proofs import GeometricProofs


# -- Groups of modes -----------------------------------------------------------------------------------------
#
# The modes of one pattern of the model are drawn as one node that can be opened.

OTHER = "other"  # the group of modes without a pattern


def group_of(automaton: Automaton, states: Sequence[int]) -> str:
    """Return the group of a mode: its pattern in the model, or ``other``."""
    return automaton.name_of(states).pattern or OTHER


def grouped(graph: nx.MultiDiGraph[Any], opened: Collection[str] = ()) -> nx.MultiDiGraph[str]:
    """Return a mode graph with one node for each group of modes.

    ``graph``, networkx.MultiDiGraph: a mode graph whose nodes have ``group``, like :attr:`ModeGraph.nx` and the graphs
    of explorations; ``opened``: groups whose modes stay separate nodes. Result: nodes of groups have ``label`` (with
    the number of modes), ``note`` (number of visited or derived modes), ``found`` and ``initial``;
    networkx.MultiDiGraph.  Edges between groups have ``found``, ``cause`` (of several: their number), ``seen`` and
    ``runs``, summed over the edges in between. Raises InputError: a group to open does not exist.
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
    """Return the attributes of one edge for several."""
    seen = [edge for edge in edges if edge.get("found") == "seen"]
    causes = list(dict.fromkeys(str(edge.get("cause") or "") for edge in (seen or edges)))
    kinds = {str(edge.get("found", "derived")) for edge in edges}
    return {
        "found": "seen" if seen else "declared" if "declared" in kinds else "derived",
        "cause": causes[0] if len(causes) == 1 else f"{len(causes)} causes",
        "seen": sum(int(edge.get("seen", 0)) for edge in seen),
        "runs": sum(int(edge.get("runs", 0)) for edge in seen),
    }


# -- Mode graph: modes with their equations, edges with guards and reset maps --------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class ModeGraph:
    """A compiled mechanism: modes and transitions, as data unchanged by runs.

    Any number of threads may read one; :class:`fsm_dyn.Simulator` has the working memory of runs.

    Attributes
    ----------
    automaton : Automaton
        The modes derived at compilation, with all data of their runs.
    values : mapping
        Values of the parameters by name, SI units.
    parameters : ndarray, shape (n_p,)
        These values in the order of ``automaton.terms.layout.p``; read-only.
    initial : str
        Name of the mode at the start of runs.
    start : InitialState, optional
        Start of runs with these parameters and inputs of zero.
    geometry : GeometricFeasibility, optional
        Mutually exclusive contacts, see :meth:`with_geometry`.
    """

    automaton: Automaton
    values: Mapping[str, ParameterValue]
    parameters: Floats
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

        return graph_html(self.automaton, self.initial)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.automaton.mechanism.name

    @cached_property
    def modes(self) -> Mapping[str, ModeView]:
        """The modes by name, each one object, so its derived properties are formed once."""
        views = {mode.name: ModeView(self.automaton, mode, self.parameters) for mode in self.automaton.modes}
        return MappingProxyType({name: view for name, view in views.items() if name not in self._excluded})

    @property
    def infeasible(self) -> Mapping[str, str]:
        """Infeasible combinations of contact states, with the reason."""
        return {**self.automaton.infeasible, **self._excluded}

    @cached_property
    def _excluded(self) -> Mapping[str, str]:
        """Modes without any configuration, with the reason; a run warns when it enters one."""
        if self.geometry is None:
            return {}
        found = {name: item.reason for name, item in self.geometry.modes.items() if item.verdict == "impossible"}
        return {name: reason for name, reason in found.items() if name != self.initial}

    @property
    def nx(self) -> nx.MultiDiGraph[str]:
        """The automaton as a networkx graph; nodes carry ``mode``, edges ``guard cause reset priority`` and more.

        ``label`` of a node is the label of the mode for the user, shared by modes distinguished only by handovers.
        ``group`` is the mode's pattern in the model.  ``found`` of an edge is ``declared`` for a transition of the
        file, else ``derived``: a guard leads there.
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

    @typed
    def nx_with_successors(self, depth: int = 1) -> MultiDiGraph[str]:
        """Return :attr:`nx` with the targets of the guards of its modes, as known before any run.

        Parameters
        ----------
        depth : int
            Largest number of guards in a chain from a mode of :attr:`nx` to an underived one.

        Returns
        -------
        networkx.MultiDiGraph
            Nodes and edges of :attr:`nx`, and nodes with ``found`` ``derived``, ``label``, ``group`` and ``states`` for
            modes derived by a run on first entry. Modes excluded by the geometry of :meth:`with_geometry` or by
            contradictory constraints are left out.
        """
        # only for those who look at the graph

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
        """Return the verdict on a mode, if there is one, as an attribute of its node."""
        if self.geometry is None or mode not in self.geometry.modes:
            return {}
        return {"verdict": self.geometry.modes[mode].verdict}

    def with_geometry(self, found: GeometricFeasibility) -> ModeGraph:
        """Return the graph without the modes proved impossible by an assessment; they join ``infeasible``.

        Nodes of ``nx`` carry their ``verdict``.  Runs are those of the unchanged graph: a run that reaches an
        impossible mode, within the tolerances of contacts, continues there and warns.

        Parameters
        ----------
        found : GeometricFeasibility
            Its verdicts on contact states.

        Returns
        -------
        ModeGraph
        """
        # a program with an assessment has loaded this
        from fsm_dyn.automaton.feasibility import GeometricFeasibility

        check_arguments("ModeGraph.with_geometry", {"found": found}, {"found": GeometricFeasibility})
        return replace(self, geometry=found)

    @typed
    def assess_geometry(self, progress: Callable[[int, int], None] = lambda done, all_: None) -> GeometricFeasibility:
        """Return verdicts on closed contacts, alone and together, with the parameters of this graph.

        Each verdict is ``impossible`` (proved by interval bounds on the gaps, or on the speeds of held contacts),
        ``possible`` (with a configuration) or ``undecided``; the result also has the number of combinations of contact
        states without anything impossible.  A few contacts take a second, thirty a minute; the assessment is kept in
        the user's cache directory.

        Parameters
        ----------
        progress : Callable[[int, int], None], optional
            Called with the number of questions answered and of all.

        Returns
        -------
        GeometricFeasibility
        """
        # only on demand: a run needs none of it
        from fsm_dyn.automaton.feasibility import GeometricFeasibility, assess_geometry

        begin = self._configuration()
        objects, key = ObjectCache.default(), self._geometry_key(begin)
        kept = objects.load(key)
        if kept is not None:
            with contextlib.suppress(InputError):
                return GeometricFeasibility.from_bytes(kept)
        found = assess_geometry(self.automaton, self.parameters, begin, progress)
        objects.store(key, found.to_bytes())
        return found

    def _configuration(self) -> Floats:
        n_q = len(self.automaton.terms.layout.q)
        return np.zeros(n_q) if self.start is None else self.start.x[:n_q]

    @typed
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
        # only on demand: a run needs none of it
        from fsm_dyn.automaton.feasibility import prove_geometry

        found = self.assess_geometry()
        return prove_geometry(self.automaton, self.parameters, self._configuration(), found, progress)

    @typed
    def check_proofs(
        self, proofs: GeometricProofs, progress: Callable[[int, int], None] = lambda done, all_: None
    ) -> int:
        """Return the number of boxes with verified contradictions, if all proofs hold for this graph.

        The check shares no arithmetic and no search with the construction of proofs: it bounds the gaps by the
        intervals of mpmath, and derives the conditions from contact states independently.

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
        # only on demand: it imports mpmath
        from fsm_dyn.automaton.geometric_proofs import GeometricProofs
        from fsm_dyn.automaton.proof_check import check_proofs

        check_arguments("ModeGraph.check_proofs", {"proofs": proofs}, {"proofs": GeometricProofs})
        return check_proofs(self.automaton, self.parameters, proofs, progress)

    def _geometry_key(self, begin: Floats) -> str:
        """Return the cache key of an assessment: all of its inputs."""
        digest = hashlib.sha256(f"geometry {equations_version()}|{self.automaton.mechanism.digest}|".encode())
        digest.update(self.parameters.tobytes() + begin.tobytes())
        digest.update("|".join(mode.name for mode in self.automaton.modes).encode())
        return digest.hexdigest()

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Modes not connected with the initial mode by any chain of single events."""
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
        """Modes without outgoing edges, in a graph with other modes."""
        successors = self._successors()
        if len(successors) < 2:
            return ()
        return tuple(name for name, targets in successors.items() if targets <= {name})

    @property
    def edge_count(self) -> int:
        """Number of edges: one for each guard of a mode and each of its targets."""
        return sum(1 for _ in self._edges())

    def _edges(self) -> Iterator[Edge]:
        """Yield the edges between listed modes."""
        return (edge for edge in edges(self.automaton) if not self._excluded.keys() & {edge.source, edge.target})

    def _successors(self) -> dict[str, set[str]]:
        """Return the targets of the edges of each mode, in the order of the modes."""
        found: dict[str, set[str]] = {name: set() for name in self.modes}
        for edge in self._edges():
            found.setdefault(edge.source, set()).add(edge.target)
            found.setdefault(edge.target, set())
        return found

    @typed
    def with_modes(self, modes: Iterable[DerivedMode]) -> ModeGraph:
        """Return the graph with further modes; its present ones stay unchanged."""
        automaton = self.automaton
        for mode in modes:
            if automaton.find(mode.states) < 0:
                automaton = automaton.with_mode(mode)
        return self if automaton is self.automaton else replace(self, automaton=automaton)

    @typed
    def save(self, path: str | Path) -> None:
        """Write the automaton to a JSON file at `path`; ``fsm_dyn.open_graph`` reads it, without sympy.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        save(self.automaton, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.modes)


def graph_with_parameters(
    automaton: Automaton, parameters: Parameters | None = None, start: InitialState | None = None
) -> ModeGraph:
    """Return the graph of an automaton with parameter values and the mode it starts in.

    ``parameters``: values instead of those of the model: SI numbers, or text with units; ``start``: with these values,
    if it is known already. Raises InputError: a parameter is unknown, or its value is not allowed.
    """
    values = parameter_values(automaton.mechanism, parameters)
    vector = parameter_vector(values)
    begin = initial_state(automaton, values, vector) if start is None else start
    return ModeGraph(automaton, values, vector, automaton.name_of(begin.states).name, begin)


@typed
def open_graph(path: str | os.PathLike[str], parameters: Parameters | None = None) -> ModeGraph:
    """Read a graph written by ``ModeGraph.save``; sympy is not needed.

    Parameters
    ----------
    path : str or path
        A file written by ``ModeGraph.save``.
    parameters : mapping, optional
        Values instead of those of the file: SI numbers, or text with units.

    Returns
    -------
    ModeGraph
        The same data as when it was saved.

    Raises
    ------
    InputError
        The file is not a saved automaton, or is inconsistent or corrupt.
    """
    data = read_file(path, LARGEST_FILE, "an automaton")
    return graph_with_parameters(from_bytes(data, where=Location(os.fspath(path))), parameters)


def _unpickled(
    data: bytes,
    values: Mapping[str, ParameterValue],
    parameters: Floats,
    initial: str,
    start: InitialState | None,
    geometry: GeometricFeasibility | None,
) -> ModeGraph:
    return ModeGraph(from_bytes(data), values, parameters, initial, start, geometry)


# -- The mode graph as far as it is known before a run -------------------------------------------------------
#
# Derived modes, and the targets of their guards. The list of guards of a mode needs no derivation, so modes to be
# derived by a run on first entry are known by their contact states, with the edges between them.


@dataclass(frozen=True)
class Successors:
    """Underived modes, contact states (codes) by name in the order of discovery, and edges.

    ``edges``: source, target, cause and kind; at least one of the two modes is not derived.
    """

    modes: Mapping[str, tuple[int, ...]]
    edges: tuple[tuple[str, str, str, str], ...]


Outgoing = dict[tuple[int, ...], list[tuple[tuple[int, ...], str, str]]]


def successors_of(
    automaton: Automaton, depth: int = 1, geometry: GeometricFeasibility | None = None, known: Outgoing | None = None
) -> Successors:
    """Return the targets of chains of up to ``depth`` guards from the derived modes.

    ``depth``: guards of a chain; 0: none. ``geometry``: modes excluded by it are left out. ``known``: edges out of
    modes by their states, from earlier calls; added to.
    """
    leading = {} if known is None else known

    def out(states: tuple[int, ...]) -> list[tuple[tuple[int, ...], str, str]]:
        if states not in leading:
            leading[states] = list(outgoing(automaton, states))
        return leading[states]

    names = {mode.states: mode.name for mode in automaton.modes}
    derived, ahead = set(names), list(names)
    found: dict[str, tuple[int, ...]] = {}
    for _ in range(depth):
        following: list[tuple[int, ...]] = []
        for states in ahead:
            for target, *_ in out(states):
                if target not in names and not _excluded(automaton, geometry, target):
                    names[target] = automaton.name_of(target).name
                    found[names[target]] = target
                    following.append(target)
        ahead = following
    edges = dict.fromkeys(
        (names[states], names[target], cause, kind)
        for states in (names if found else ())
        for target, cause, kind in out(states)
        if target in names and not (states in derived and target in derived)
    )
    return Successors(found, tuple(edges))


def _excluded(automaton: Automaton, geometry: GeometricFeasibility | None, states: tuple[int, ...]) -> bool:
    """Whether a mode is known to be impossible: by the geometry, or by contradictory constraints."""
    if automaton.name_of(states).name in automaton.infeasible:
        return True
    names = [contact.name for contact in automaton.contacts]
    return geometry is not None and bool(geometry.excluded(dict(zip(names, states, strict=True))))


# -- Notebook representation of a mode graph: drawing and table of modes -------------------------------------

MOST_ROWS = 40


def diagram_of(automaton: Automaton, initial: str) -> Diagram:
    """Return the boxes and arrows of a mode graph: one box for modes distinguished only by handovers.

    Targets of the guards of derived modes are dashed boxes; all arrows are dashed, as no run has taken them.
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
    """Return the label for the user of each mode derived so far, by its name."""
    return {mode.name: automaton.labels.of(mode.states) for mode in automaton.modes}


def graph_svg(automaton: Automaton, initial: str) -> str:
    """Return the picture of a mode graph; of a large one the part nearest to the initial mode."""
    return mode_graph(diagram_of(automaton, initial))


def graph_html(automaton: Automaton, initial: str) -> str:
    """Return a mode graph for a notebook; all text of the model is escaped."""
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
