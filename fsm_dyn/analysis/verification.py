"""Independent derivations of the equations of a model, compared at random states.

What is compared, and with what:

- the inertia terms of Kane's equations with Lagrange's, from the kinetic energy in coordinates and their rates alone,
  carried over by ``q̇ = W u + X`` (docs/theory.md, "Kinematics"; Parsa, (34)-(38));
- their share in the energy: ``-u·f = ½ uᵀ Ṁ u`` where nothing moves by itself, which is that ``Ṁ - 2C`` is skew;
- the rates of the momenta of all bodies with the loads, along ways in which the whole moves as one rigid body;
- the power of the loads with the change of potential energy and the powers stated for them;
- accelerations and forces of every mode, by embedding in machine code, with those of Lagrange's equations with
  multipliers, solved as one linear system, and with those in a null space of the rows by singular values, the natural
  orthogonal complement (Saha and Angeles, (10)-(11)); what slides does so along its slip, with friction;
- the same accelerations with those of Newton's and Euler's equations of each body, in which all forces and moments on
  the bodies are unknowns (:mod:`fsm_dyn.analysis.newton_euler`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.batch import Batch
from fsm_dyn.analysis.lagrange import bodies_alone, lagrange_terms, rate_name
from fsm_dyn.analysis.mode_routes import LAGRANGE, ModeRoutes
from fsm_dyn.analysis.momentum import Momenta
from fsm_dyn.analysis.newton_euler import BodyEquations, NewtonEuler
from fsm_dyn.analysis.random_states import random_states
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.successor_graph import successors_of
from fsm_dyn.compilation import compile as compile_model
from fsm_dyn.errors import InputError, ModelError
from fsm_dyn.programs import Node, tangent
from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.spec.model import Mechanism

if TYPE_CHECKING:
    from fsm_dyn.symbolic.terms import Terms

Array = npt.NDArray[np.float64]

LIMIT = 1e-8  # relative: conditioning of random configurations, up to 1e6, times rounding
INERTIA = "inertia terms, Kane and Lagrange"
ENERGY = "energy of the inertia terms (Ṁ - 2C is skew)"
POWER = "power of the loads, and the potential and powers stated for them"
MOMENTA = "rates of momenta, and the loads along ways in which all moves as one"


@dataclass(frozen=True)
class Comparison:
    """One comparison: largest difference relative to the largest value; None if it was omitted.

    ``mode`` is the mode at whose states it was made.
    """

    name: str
    difference: float | None
    remark: str = ""
    mode: str = ""
    good = RenamedAttribute("passed")

    @property
    def passed(self) -> bool:
        """Whether both sides agree, or there was nothing to compare."""
        return self.difference is None or self.difference <= LIMIT


@dataclass(frozen=True)
class Verification:
    """All comparisons of a model.

    Attributes
    ----------
    model : str
    modes : dict of str to int
        The modes whose rows held, each with the number of random states.
    comparisons : tuple of Comparison
    complete : bool
        False if the guards of these modes lead to others that were not compared.
    """

    model: str
    modes: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    complete: bool = True
    good = RenamedAttribute("passed")

    @property
    def passed(self) -> bool:
        """Whether everything agrees."""
        return all(comparison.passed for comparison in self.comparisons)

    def __str__(self) -> str:
        """Return the report as text."""
        lines = []
        for mode, states in self.modes.items():
            lines.append(f"{self.model}, mode '{mode}', {states} random states")
            for c in self.comparisons:
                if c.mode != mode:
                    continue
                if c.difference is None:
                    lines.append(f"  not compared: {c.name} ({c.remark})")
                else:
                    word = "agree" if c.passed else "DIFFER"
                    lines.append(f"  {word} to {c.difference:.1e}: {c.name}" + (f" ({c.remark})" if c.remark else ""))
        if not self.complete:
            lines.append(
                "modes that a run derives when it meets them were not compared (successors=True, --successors)"
            )
        differ = f"derivations differ by more than {LIMIT:g}: report this model"
        lines.append("all derivations agree" if self.passed else differ)
        return "\n".join(lines)


def verify(
    model: str | Mechanism, *, states: int = 20, modes: Sequence[str] | None = None, successors: bool = False
) -> Verification:
    """Compare independent derivations of the equations of a model at random states of its modes.

    Parameters
    ----------
    model : str or Mechanism
        A name, a path, or a loaded mechanism.
    states : int
        How many random states of each mode, all of which satisfy its rows.
    modes : sequence of str, optional
        Which modes; all that are derived at compile time without it.
    successors : bool
        Whether modes count to which the guards of these lead, and which a run derives when it meets them.

    Returns
    -------
    Verification
        Its text is a report.  All comparisons are relative, with the limit :data:`LIMIT`.

    Raises
    ------
    InputError
        ``states`` is not positive, or there is no such mode.
    ModelError
        The model cannot be compiled, or in no mode does a random state near the start satisfy the rows.
    """
    if states < 1:
        raise InputError("states must be positive", found=str(states))
    graph = compile_model(model)
    graph = _with_successors(graph) if successors else graph
    names = list(graph.modes) if modes is None else list(modes)
    for name in names:
        if name not in graph.modes:
            raise InputError(f"no mode '{name}'", allowed=", ".join(graph.modes))
    derived = _Derived(graph.automaton.mechanism)
    found = {name: _of_mode(graph, name, derived, states) for name in names}
    if not any(count for count, _ in found.values()):
        raise ModelError("no state near the start satisfies the rows", remedy="check where the motion starts")
    return Verification(
        graph.name,
        {name: count for name, (count, _) in found.items()},
        tuple(comparison for _, comparisons in found.values() for comparison in comparisons),
        successors or graph.automaton.fully_enumerated,
    )


def _with_successors(graph: ModeGraph) -> ModeGraph:
    """Return the graph with the modes that a run derives when a guard of one of its modes leads there."""
    automaton = graph.automaton
    if automaton.fully_enumerated:
        return graph
    begin, derived = initial_state(automaton, graph.values, graph.parameters), []
    for states in successors_of(automaton, 1, graph.geometry).modes.values():
        with contextlib.suppress(ModelError):  # its contacts share forces in more ways than can be listed
            derived.append(automaton.derive(states, 0.0, begin.x, begin.context))
    return graph.with_modes(derived)


def _of_mode(graph: ModeGraph, name: str, derived: _Derived, states: int) -> tuple[int, list[Comparison]]:
    """Return the number of states found in a mode, and the comparisons there."""
    automaton = graph.automaton
    begin = initial_state(automaton, graph.values, graph.parameters)
    view = graph.modes[name]
    codes = next(mode.states for mode in automaton.modes if mode.name == name)
    try:
        points = random_states(automaton, codes, begin.x, begin.context, states)
    except ModelError:
        return 0, [Comparison("everything", None, "no random state satisfies the rows", name)]
    routes = ModeRoutes(automaton, view, codes, begin.context)
    found: dict[str, list[tuple[float, float]]] = {}
    for x in points:
        values = _named(automaton, x, begin.context)
        moved = {**routes.compare(x, derived.bodies_at(values)), **derived.compare(values)}
        if not routes.has_contact_forces:
            moved |= derived.momenta(values, routes.accelerations(x), routes.rows_at(x))
        for what, (left, right) in moved.items():
            size = max(float(np.abs(left).max(initial=0.0)), float(np.abs(right).max(initial=0.0)))
            found.setdefault(what, []).append((float(np.abs(left - right).max(initial=0.0)), size))
    comparisons = [
        Comparison(what, max(d for d, _ in pairs) / max(1e-300, *(size for _, size in pairs)), "", name)
        for what, pairs in found.items()
    ]
    omitted = list(derived.omitted)
    if MOMENTA not in found:
        omitted.append((MOMENTA, "in no way can all move as one, or contacts act"))
    if LAGRANGE not in found:
        omitted.append((LAGRANGE, "friction leaves the motion open at these states"))
    return len(points), [*comparisons, *(Comparison(what, None, remark, name) for what, remark in omitted)]


def _named(automaton: Automaton, x: Array, context: Array) -> dict[str, float]:
    layout = automaton.terms.layout
    values = {**dict(zip(layout.q, x, strict=False)), **dict(zip(layout.u, x[len(layout.q) :], strict=True))}
    values |= dict(zip(layout.c, context, strict=True))
    return {name: float(value) for name, value in values.items()}


class _Derived:
    """What follows from the energies alone; everything is prepared as nodes once and evaluated at each state."""

    def __init__(self, mechanism: Mechanism) -> None:
        # SymPy is imported for derivations only
        from fsm_dyn.symbolic import derive

        self.omitted: list[tuple[str, str]] = []
        full, free = derive(mechanism), derive(replace(mechanism, loads=()))
        self.u, self.n, self.n_q = free.layout.u, len(free.f), len(free.layout.q)
        flow = _flow(free)
        self.kane = Batch([*(node for row in free.M for node in row), *free.f])
        self.rates = Batch([node for row in free.M for node in tangent(list(row), flow)])
        self.kinematics = Batch(
            [*(node for row in free.W for node in row), *free.q_dot, *tangent(list(free.q_dot), flow)]
        )
        potential = tangent([full.potential_energy], _flow(full))
        self.loads = Batch([*full.f, *potential, *full.load_powers.values()])
        self.still = all(node.is_zero for node in free.X)
        if not self.still:
            self.omitted += [(ENERGY, "something moves by itself"), (POWER, "something moves by itself")]
        self.whole = Momenta(full, _flow(full)) if self.still else None
        self.stores = any(contact.contact_law.compliant for contact in mechanism.contacts.values())
        if self.still and self.stores:
            self.omitted.append((POWER, "compliant contacts store energy too"))
        bare = derive(bodies_alone(mechanism))
        self.own = [free.layout.q.index(name) for name in bare.layout.q]  # places along curves carry no mass
        self.bare_rates = [rate_name(name) for name in bare.layout.q]
        self.lagrange = Batch(lagrange_terms(bare))
        self.bodies = NewtonEuler(mechanism)

    def compare(self, values: Mapping[str, float]) -> dict[str, tuple[Array, Array]]:
        """Return both sides of every comparison at a state; sums of powers bring the size of their terms along."""
        found: dict[str, tuple[Array, Array]] = {}
        n, n_u = self.n, len(self.u)
        u = np.array([values[name] for name in self.u])
        kane = self.kane(values)
        M, f = kane[: n * n].reshape(n, n), kane[n * n :]
        found[INERTIA] = (kane, self._from_lagrange(values))
        if self.still:
            M_dot = self.rates(values).reshape(n, n)[:n_u, :n_u]
            size = float(np.abs(u * f[:n_u]).sum() + np.abs(u) @ np.abs(M[:n_u, :n_u]) @ np.abs(u))
            found[ENERGY] = (np.array([-u @ f[:n_u], size]), np.array([0.5 * u @ M_dot @ u, size]))
        if self.still and not self.stores:
            loads = self.loads(values)
            powers = u * (loads[:n_u] - f[:n_u])
            size = float(np.abs(powers).sum())
            found[POWER] = (np.array([powers.sum(), size]), np.array([loads[n + 1 :].sum() - loads[n], size]))
        return found

    def bodies_at(self, values: Mapping[str, float]) -> BodyEquations:
        """Return Newton's and Euler's equations of the bodies at a state."""
        W, q_dot, onward = self._kinematics_at(values)
        return self.bodies.equations(values, W[:, : len(self.u)], q_dot, onward)

    def _kinematics_at(self, values: Mapping[str, float]) -> tuple[Array, Array, Array]:
        """Return W, the rates of the coordinates, and their second rates at u̇ = 0."""
        kinematics, n_q = self.kinematics(values), self.n_q
        return kinematics[: -2 * n_q].reshape(n_q, -1), kinematics[-2 * n_q : -n_q], kinematics[-n_q:]

    def momenta(self, values: Mapping[str, float], u_dot: Array, A: Array) -> dict[str, tuple[Array, Array]]:
        """Return rates of momenta and forces along the ways in which all can move as one, if there are any."""
        if self.whole is None or self.stores:
            return {}
        n_u = len(self.u)
        kane, u = self.kane(values), np.array([values[name] for name in self.u])
        pair = self.whole.compare(values, u_dot, A, self.loads(values)[:n_u] - kane[self.n * self.n :][:n_u])
        if pair is None:
            return {}
        # without loads nothing changes: then relative to the momenta, lost in a second
        size = float(np.abs(kane[: self.n * self.n].reshape(self.n, self.n)[:n_u, :n_u] @ u).max(initial=0.0))
        return {MOMENTA: (np.append(pair[0], size), np.append(pair[1], size))}

    def _from_lagrange(self, values: Mapping[str, float]) -> Array:
        """M and f without loads, from the kinetic energy in coordinates and rates.

        Euler parameters are taken as four free coordinates: W leads along the sphere of unit norm only, and there it
        does not matter how the energy goes on beside it.
        """
        own = self.own
        W, q_dot, onward = (part[own] for part in self._kinematics_at(values))
        terms = self.lagrange({**values, **dict(zip(self.bare_rates, q_dot, strict=True))})
        n_q = len(own)
        M_q, h = terms[: n_q * n_q].reshape(n_q, n_q), terms[n_q * n_q :]
        return np.concatenate([(W.T @ M_q @ W).ravel(), -W.T @ (h + M_q @ onward)])


def _flow(terms: Terms) -> dict[Node, Node]:
    flow = {terms.graph.symbol(q): rate for q, rate in zip(terms.layout.q, terms.q_dot, strict=True)}
    flow[terms.graph.symbol("t")] = terms.graph.one
    return flow
