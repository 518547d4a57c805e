"""Mode graph: modes with their equations, edges with guards and reset maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.automaton.edges import edges
from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode, slip_angle
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.storage import from_bytes, save, to_bytes
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.modes.elimination import Array
from fsm_dyn.programs import Counts
from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.spec.values import ParameterValue

if TYPE_CHECKING:
    import networkx as nx

    from fsm_dyn.automaton.geometric_feasibility import GeometricFeasibility
    from fsm_dyn.symbolic.equation_printing import Equations

SINGULAR = 1e-6  # below this smallest scaled pivot the choice of independent speeds is left for another


class ModeView:
    """One mode: its contact states, its equations as numbers and as formulas.

    Obtained as ``graph.modes[name]``.
    """

    def __init__(self, automaton: Automaton, mode: DerivedMode, parameters: Array) -> None:
        self._automaton = automaton
        self._mode = mode
        self._parameters = parameters

    def __repr__(self) -> str:
        return f"<Mode {self.name}: {self.degrees_of_freedom} independent speeds, {self.states}>"

    @property
    def name(self) -> str:
        """Name of the mode."""
        return self._mode.name

    @cached_property
    def states(self) -> dict[str, str]:
        """Contact states by name."""
        return {c.name: c.states[code] for c, code in zip(self._automaton.contacts, self._mode.states, strict=True)}

    @property
    def independent_speeds(self) -> tuple[str, ...]:
        """Names of the speeds that are integrated; the others follow from them."""
        return tuple(self._automaton.terms.layout.u[i] for i in self._mode.programs.independent)

    @property
    def degrees_of_freedom(self) -> int:
        """Number of independent speeds."""
        return len(self._mode.programs.independent)

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """Rows that others imply in this mode; their multipliers are indeterminate."""
        return tuple(self._automaton.rows[r].name for r in self._mode.programs.redundant)

    @property
    def counts(self) -> Counts:
        """Operation counts of one evaluation of the state's derivative."""
        return self._mode.programs.rhs.counts()

    def derivatives(
        self,
        t: float,
        q: Sequence[float] | Array,
        u: Sequence[float] | Array,
        w: Mapping[str, float] | Sequence[float] | None = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> tuple[Array, Array]:
        """Return ``q_dot`` (n_q,) and ``u_dot`` (n_u,) at a state, SI units.

        Parameters
        ----------
        t : float
            Time, s.
        q, u : array-like, shapes (n_q,), (n_u,)
            Coordinates and speeds; only the independent speeds are read, the others are computed.
        w : mapping or sequence, optional
            Inputs; 0 where not given.
        directions : mapping of contact name to ±1, optional
            Slip directions; taken from the slip speeds where not given.

        Raises
        ------
        InputError
            Wrong length, unknown input or contact, or a sliding contact at rest without a direction.
        """
        values = self._evaluate(t, q, u, w, directions)
        n_q = len(self._automaton.terms.layout.q)
        return values["x_dot"][:n_q], values["x_dot"][n_q:]

    def contact_forces(
        self,
        t: float,
        q: Sequence[float] | Array,
        u: Sequence[float] | Array,
        w: Mapping[str, float] | Sequence[float] | None = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> dict[str, Array]:
        """Return the forces of all contacts and constraints by name, normal before tangent (N or N·m).

        The sign is that of ``M u̇ = f + Σ Aᵀ λ``: a positive normal force pushes apart.
        """
        multipliers = self._evaluate(t, q, u, w, directions)["multipliers"]
        names = [row.name for row in self._automaton.rows]
        return {
            name: np.array([multipliers[i] for i, other in enumerate(names) if other == name])
            for name in dict.fromkeys(names)
        }

    def guards(
        self,
        t: float,
        q: Sequence[float] | Array,
        u: Sequence[float] | Array,
        w: Mapping[str, float] | Sequence[float] | None = None,
        *,
        directions: Mapping[str, float] | None = None,
    ) -> list[tuple[str, float, float]]:
        """Return (text, value, slope) of every guard at a state; a guard fires when it falls through zero."""
        values = self._evaluate(t, q, u, w, directions)
        return [
            (guard.text, float(value), float(slope))
            for guard, value, slope in zip(self._mode.guards, values["guards"], values["slopes"], strict=True)
        ]

    def equations(self, *, expand_symbols: bool = False) -> Equations:
        """Return the mode's equations of motion for reading: sympy expressions and LaTeX, with operation counts.

        Parameters
        ----------
        expand_symbols : bool
            Whether to put intermediate symbols back in; long mechanisms become unreadable so.
        """
        # sympy is needed for reading only, never for running
        from fsm_dyn.symbolic.equation_printing import read_equations

        return read_equations(self._mode.programs.rhs, expand_symbols=expand_symbols)

    def _evaluate(
        self,
        t: float,
        q: Sequence[float] | Array,
        u: Sequence[float] | Array,
        w: Mapping[str, float] | Sequence[float] | None,
        directions: Mapping[str, float] | None,
    ) -> dict[str, Array]:
        layout = self._automaton.terms.layout
        x = np.concatenate([_vector("q", q, layout.q), _vector("u", u, layout.u)])
        c = np.zeros(layout.n_c)
        c[layout.p_slice] = self._parameters
        c[layout.w_slice] = _inputs(w, layout.w)
        c[layout.sigma_slice] = self._directions(t, x, c, directions or {})
        values = self._mode.programs.full.evaluate(t, x, c)
        if not values["pivot"][0] >= SINGULAR:
            # the chart has gone bad here: one that is good here gives the same motion
            values = self._automaton.derive(self._mode.states, t, x, c).programs.full.evaluate(t, x, c)
        return values

    def _directions(self, t: float, x: Array, c: Array, given: Mapping[str, float]) -> Array:
        contacts = self._automaton.contacts
        for name, direction in given.items():
            if name not in self.states:
                raise InputError(f"no contact '{name}'", remedy=did_you_mean(name, self.states))
            if direction not in (1.0, -1.0):
                raise InputError(f"the slip direction of '{name}' is 1 or -1", found=repr(direction))
        sigma = np.zeros(len(contacts))
        sliding = [i for i, code in enumerate(self._mode.states) if code == 2]
        if not sliding:
            return sigma
        terms = self._automaton.terms.evaluate(t, x, c)
        n_q = len(self._automaton.terms.layout.q)
        slips = terms["A"][:, : len(x) - n_q] @ x[n_q:] + terms["b"]
        for i in sliding:
            contact = contacts[i]
            if contact.in_space:
                sigma[i] = float(slip_angle(slips[list(contact.tangent_rows)], 0.0, self._automaton.units.speed))
            else:
                sigma[i] = given.get(contact.name, float(np.sign(slips[contact.tangent_row])))
            if sigma[i] == 0.0:
                raise InputError(
                    f"'{contact.name}' slides but its slip speed is zero",
                    remedy=f"give directions={{'{contact.name}': 1}} or -1",
                )
        return sigma


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
    start : Start, optional
        Where runs begin with these parameters and inputs of zero.
    """

    automaton: Automaton
    values: Mapping[str, ParameterValue]
    parameters: Array
    initial: str = ""
    start: InitialState | None = None

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
        parts = (dict(self.values), self.parameters, self.initial, self.start)
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

    @property
    def modes(self) -> Mapping[str, ModeView]:
        """The modes by name."""
        return {mode.name: ModeView(self.automaton, mode, self.parameters) for mode in self.automaton.modes}

    @property
    def infeasible(self) -> Mapping[str, str]:
        """Combinations of contact states that cannot be, with the reason."""
        return self.automaton.infeasible

    @property
    def nx(self) -> nx.MultiDiGraph[str]:
        """The automaton as a networkx graph; nodes carry ``mode``, edges ``guard cause reset priority`` and more.

        ``label`` of a node is what the mode is called where people read it; modes that only handovers tell apart share
        it.
        """
        # importing networkx takes longer than most runs, and no run needs it
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name)
        labels = {mode.name: self.automaton.labels.of(mode.states) for mode in self.automaton.modes}
        for name, view in self.modes.items():
            graph.add_node(
                name,
                label=labels[name],
                mode=view,
                states=view.states,
                degrees_of_freedom=view.degrees_of_freedom,
                operations=view.counts.total,
                initial=name == self.initial,
            )
        for edge in edges(self.automaton):
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
            )
        return graph

    def assess_geometry(self, progress: Callable[[int, int], None] = lambda done, all_: None) -> GeometricFeasibility:
        """Return which contacts can be closed, and which of them at once, with the parameters of this graph.

        Each verdict is ``impossible`` (proved by interval bounds on the gaps), ``possible`` (with a configuration) or
        ``undecided``; the number of combinations of contact states without anything impossible comes with them.  A few
        contacts take a second, thirty a minute or two.
        """
        # for those who ask: a run needs none of it
        from fsm_dyn.automaton.geometric_feasibility import assess_geometry

        n_q = len(self.automaton.terms.layout.q)
        begin = np.zeros(n_q) if self.start is None else self.start.x[:n_q]
        return assess_geometry(self.automaton, self.parameters, begin, progress)

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
        return sum(1 for _ in edges(self.automaton))

    def _successors(self) -> dict[str, set[str]]:
        """Return the modes to which an edge leads from each mode, in the order of the modes."""
        found: dict[str, set[str]] = {mode.name: set() for mode in self.automaton.modes}
        for edge in edges(self.automaton):
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
        """Write the automaton to a JSON file; ``fsm_dyn.open_graph`` reads it, without sympy."""
        save(self.automaton, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.modes)


def _vector(what: str, values: Sequence[float] | Array, names: Sequence[str]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise InputError(f"'{what}' has the wrong shape", found=str(array.shape), allowed=f"({len(names)},): {names}")
    return array


def _inputs(w: Mapping[str, float] | Sequence[float] | None, names: Sequence[str]) -> Array:
    if w is None:
        return np.zeros(len(names))
    if isinstance(w, Mapping):
        for name in w:
            if name not in names:
                raise InputError(f"no input '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
        return np.array([float(w.get(name, 0.0)) for name in names])
    return _vector("w", w, names)


def _unpickled(
    data: bytes, values: Mapping[str, ParameterValue], parameters: Array, initial: str, start: InitialState | None
) -> ModeGraph:
    return ModeGraph(from_bytes(data), values, parameters, initial, start)
