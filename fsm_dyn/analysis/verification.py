"""Independent derivations of the equations of a model, compared at random states."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.analysis.newton_euler import (
    Batch,
    BodyEquations,
    Momenta,
    NewtonEuler,
    bodies_alone,
    lagrange_terms,
    rate_name,
)
from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.hybrid_automaton import Automaton, slip_angle
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph, successors_of
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.assembly import PrescribedValues
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.language.builder import Model
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import tangent

if TYPE_CHECKING:
    from fsm_dyn.derive.terms import Terms


# -- Random states on the constraint rows of a mode, for comparisons of derivations --------------------------


SEED = 20030818
RANK = 1e-9
VANISHING = 1e-5  # singular values between this and RANK are undecided
WORST = 1e8  # condition of a reduced mass matrix; a state beyond it is skipped
RIGHT_ANGLE = 0.5 * np.pi
SPREAD = 1.0  # rad, m: range of random states about the start
MOST_TRIALS = 10


def random_states(automaton: Automaton, codes: Sequence[int], x: Floats, context: Floats, count: int) -> list[Floats]:
    """Return states near a start, every third of right angles, brought onto the rows, speeds projected on them.

    ``codes``: contact states of the mode; ``x``, shape (n_x,): the centre of the random states; ``context``, shape
    (n_c,): parameters, inputs, discrete variables and slip directions, SI. Raises ModelError: none of the states drawn
    satisfies the constraints.
    """
    layout, random = automaton.terms.layout, np.random.default_rng(SEED)
    n_q, n_u, found = len(layout.q), len(layout.u), []
    rows = list(ActiveSet.of(automaton.system, codes).rows)
    usual = float(np.abs(automaton.terms.evaluate(0.0, x, context)["A"][rows]).max(initial=0.0))
    spread = SPREAD
    for trial in range(MOST_TRIALS * count):
        guess = x[:n_q] + spread * random.uniform(-1.0, 1.0, n_q)
        if trial % 3 == 2:  # start of models, with the most likely vanishing pivots
            guess = np.round(guess / RIGHT_ANGLE) * RIGHT_ANGLE
        given = PrescribedValues({}, {}, 0.0, context, dict(zip(layout.q, guess, strict=True)))
        try:
            state = automaton.assemble(codes, given)
        except ModelError:
            spread *= 0.7  # out of reach: look nearer
            continue
        terms = automaton.terms.evaluate(0.0, state, context)
        A, b = terms["A"][rows][:, :n_u], terms["b"][rows]
        u = random.uniform(-1.0, 1.0, n_u)
        state[n_q:] = u - np.linalg.pinv(A, rcond=RANK) @ (A @ u + b)
        if all(np.isfinite(value).all() for value in terms.values()) and is_regular(terms["M"][:n_u, :n_u], A, usual):
            found.append(state)
        if len(found) == count:
            break
    if not found:
        raise ModelError("no state near the start satisfies the rows", remedy="check where the motion starts")
    return found


def is_regular(M: Floats, A: Floats, usual: float) -> bool:
    """Whether the reduced mass matrix can be solved and no row is about to vanish, as both may at right angles."""
    null = null_space(A)
    size = np.sqrt(np.abs(np.diag(M))) + 1e-30
    if len(A):
        shares = np.linalg.svd(A / size, compute_uv=False)
        largest = max(usual / float(size.min()), float(shares.max()))
        if np.any((shares > RANK * shares.max()) & (shares < VANISHING * largest)):
            return False
    reduced = null.T @ (M / np.outer(size, size)) @ null if len(A) else M / np.outer(size, size)
    return not reduced.size or bool(np.linalg.cond(reduced) < WORST)


def null_space(A: Floats) -> Floats:
    """Return an orthonormal basis (n, n - rank) of the null space of A (m, n)."""
    if not len(A):
        return np.eye(A.shape[1])
    _, singular, right = np.linalg.svd(A)
    rank = int((singular > RANK * max(singular.max(initial=0.0), 1e-300)).sum())
    return np.array(right[rank:].T)


# -- Other ways from M, f and rows to accelerations and forces than a mode's own programs --------------------

Pair = tuple[Floats, Floats]

LAGRANGE = "accelerations embedded, and with multipliers (Lagrange)"
COMPLEMENT = "accelerations embedded, and in the orthogonal complement of the rows"
FORCES = "forces of the rows, by their effect on the speeds"
NEWTON_EULER = "accelerations embedded, and by Newton's and Euler's equations of each body"

LOAD_PASSES = 60  # each reduces an error by the feedback of friction on its load, far below a half


class ModeRoutes:
    """The equations ``M u̇ = f + G λ``, ``A u̇ + γ = 0`` of a mode in numbers, solved in several ways.

    G is put together here from rows, coefficients of friction and slips; the mode's programs have it as formulas.
    """

    def __init__(self, automaton: Automaton, view: ModeView, codes: Sequence[int], context: Floats) -> None:
        self._automaton, self._view, self._context = automaton, view, context
        self._active = ActiveSet.of(automaton.system, codes)
        self.rows = [r for r in self._active.rows if automaton.rows[r].role != "kinematic"]
        self.n_u = len(automaton.terms.layout.u)
        self.has_contact_forces = bool(self._active.sliding or self._active.slipping or self._active.pressed)

    def context_at(self, x: Floats) -> Floats:
        """Return the context with the slip directions of a state."""
        layout, c = self._automaton.terms.layout, self._context.copy()
        terms = self._automaton.terms.evaluate(0.0, x, c)
        slips = terms["A"][:, : self.n_u] @ x[layout.u_slice] + terms["b"]
        for index in (*(contact for _, contact in self._active.sliding), *self._active.slipping):
            contact, rows = self._automaton.contacts[index], list(self._automaton.contacts[index].tangent_rows)
            turned = float(slip_angle(slips[rows], 0.0, self._automaton.units.speed)) if contact.in_space else 0.0
            c[layout.sigma_slice][index] = turned if contact.in_space else np.sign(slips[rows[0]])
        return c

    def accelerations(self, x: Floats) -> Floats:
        """Return u̇ of the mode, embedded, in machine code."""
        n_q = len(self._automaton.terms.layout.q)
        return self._view.derivatives(0.0, x[:n_q], x[n_q:], self._inputs)[1]

    def rows_at(self, x: Floats) -> Floats:
        """Return A of the active rows, for the declared speeds."""
        A: Floats = self._automaton.terms.evaluate(0.0, x, self._context)["A"][self.rows][:, : self.n_u]
        return A

    def compare(self, x: Floats, bodies: BodyEquations | None) -> dict[str, Pair]:
        """Return both sides of every comparison at a state; none if the motion is not determined there."""
        n = self.n_u
        terms = self._automaton.terms.evaluate(0.0, x, self.context_at(x))
        M, A, gamma = terms["M"][:n, :n], terms["A"][self.rows][:, :n], terms["gamma"][self.rows]
        G, known = self._contact_forces(terms, x)
        known = known + self._bearing_friction(terms, x, (M, terms["f"][:n] + known, A, G, gamma))
        f = terms["f"][:n] + known
        if not np.isfinite(G).all() or not np.isfinite(f).all() or not self._determinate(M, A, G):
            return {}  # a sliding contact without slip has no direction
        u_dot = self.accelerations(x)
        solved, forces = _with_multipliers(M, f, A, G, gamma)
        size = np.abs(np.diag(M)) + 1e-30
        # accelerations and forces may all be zero: then as of speeds reached in a second
        usual = max(float(np.abs(f / size).max(initial=0.0)), float(np.abs(x[-n:]).max(initial=0.0)))

        def scaled(values: Floats) -> Floats:
            return np.append(values, usual)

        found = {
            LAGRANGE: (scaled(u_dot), scaled(solved)),
            COMPLEMENT: (scaled(u_dot), scaled(_in_complement(M, f, A, G, gamma))),
        }
        if bodies is not None:
            found[NEWTON_EULER] = (
                scaled(u_dot), scaled(_with_multipliers(bodies.mass, bodies.force + known, A, G, gamma)[0])
            )  # fmt: skip
        if self.rows:
            # a row may carry no load: compared relative to the momenta and forces of this model
            least = max(float(np.abs(f).max(initial=0.0)), float(np.abs(M @ x[-n:]).max(initial=0.0)))
            effect = terms["A"][:, :n].T @ self._own_forces(x)
            found[FORCES] = (np.append(effect, least), np.append(G @ forces + known, least))
        return found

    @property
    def _inputs(self) -> list[float]:
        return list(self._context[self._automaton.terms.layout.w_slice])

    def _own_forces(self, x: Floats) -> Floats:
        """Return λ of all rows by the mode's program, zero for kinematic rows: their speeds are not in the n_u."""
        n_q = len(self._automaton.terms.layout.q)
        forces = self._view.contact_forces(0.0, x[:n_q], x[n_q:], self._inputs)
        counts: dict[str, int] = {}
        values = np.zeros(len(self._automaton.rows))
        for r, row in enumerate(self._automaton.rows):
            counts[row.name] = counts.get(row.name, -1) + 1
            values[r] = 0.0 if row.role == "kinematic" else forces[row.name][counts[row.name]]
        return values

    def _contact_forces(self, terms: dict[str, Floats], x: Floats) -> Pair:
        """Return G (n_u, m), and the generalized forces (n_u,) of compliant contacts and friction of known bound."""
        n, A, active = self.n_u, terms["A"], self._active
        slips = A[:, :n] @ x[-n:] + terms["b"]
        G, known = A[self.rows][:, :n].T.copy(), np.zeros(n)
        for row, contact in active.sliding:
            ratio = terms["kinetic"][contact] * (1.0 if contact in active.under else -1.0)
            G[:, self.rows.index(row)] += ratio * self._slip_direction(contact, slips, A)
        for contact in active.pressed:
            known += terms["elastic"][contact] * A[self._automaton.contacts[contact].normal_row, :n]
        for contact in active.slipping:
            compliant = self._automaton.contacts[contact].contact_law.compliant
            if self._automaton.contacts[contact].contact_law.loaded:
                continue
            bound = terms["kinetic"][contact] * (terms["elastic"][contact] if compliant else 1.0)
            known -= bound * self._slip_direction(contact, slips, A)
        return G, known

    def _bearing_friction(
        self, terms: dict[str, Floats], x: Floats, equations: tuple[Floats, Floats, Floats, Floats, Floats]
    ) -> Floats:
        """Return the generalized forces (n_u,) of friction in bearings, with loads by repeated solution."""
        (M, f, A, G, gamma), friction = equations, np.zeros(self.n_u)
        slips = terms["A"][:, : self.n_u] @ x[-self.n_u :] + terms["b"]
        bearings = [i for i in self._active.slipping if self._automaton.contacts[i].contact_law.loaded]
        directions = {i: terms["kinetic"][i] * self._slip_direction(i, slips, terms["A"]) for i in bearings}
        for _ in range(LOAD_PASSES if bearings else 0):
            forces = _with_multipliers(M, f + friction, A, G, gamma)[1]
            places = {i: [self.rows.index(row) for row in self._automaton.contacts[i].load_rows] for i in bearings}
            friction = -sum(
                (directions[i] * np.linalg.norm(forces[places[i]]) for i in bearings), start=np.zeros(self.n_u)
            )
        return friction

    def _slip_direction(self, contact: int, slips: Floats, A: Floats) -> Floats:
        """Return the contribution of a unit force along the slip to the generalized forces."""
        rows = list(self._automaton.contacts[contact].tangent_rows)
        with np.errstate(invalid="ignore"):
            unit = slips[rows] / np.linalg.norm(slips[rows])
        found: Floats = unit @ A[rows][:, : self.n_u]
        return found

    def _determinate(self, M: Floats, A: Floats, G: Floats) -> bool:
        """Whether accelerations are determined; friction can prevent it: Painlevé's paradox, redundant sliding rows."""
        if not self._active.sliding:
            return True
        size = np.sqrt(np.abs(np.diag(M))) + 1e-30
        free, test = null_space(A / size), null_space(G.T / size)
        if free.shape != test.shape:
            return False
        return not free.size or bool(np.linalg.cond(test.T @ (M / np.outer(size, size)) @ free) < WORST)


def _with_multipliers(M: Floats, f: Floats, A: Floats, G: Floats, gamma: Floats) -> Pair:
    """Solve ``M u̇ = f + G λ``, ``A u̇ = -γ`` as one system in scaled speeds; of least norm if rows are redundant."""
    size, n, m = np.sqrt(np.abs(np.diag(M))) + 1e-30, len(M), len(A)
    whole = np.block([[M / np.outer(size, size), -(G.T / size).T], [A / size, np.zeros((m, m))]])
    solution = np.linalg.lstsq(whole, np.concatenate([f / size, -gamma]), rcond=RANK)[0]
    return np.asarray(solution[:n] / size, dtype=np.float64), np.asarray(solution[n:], dtype=np.float64)


def _in_complement(M: Floats, f: Floats, A: Floats, G: Floats, gamma: Floats) -> Floats:
    free, test = null_space(A), null_space(G.T)
    least = np.zeros(len(M)) - (np.linalg.lstsq(A, gamma, rcond=RANK)[0] if len(A) else 0.0)
    found: Floats = least + free @ np.linalg.solve(test.T @ M @ free, test.T @ (f - M @ least))
    return found


# -- Independent derivations of the equations of a model, compared at random states --------------------------
#
# The comparisons:
#
# - the inertia terms of Kane's equations with Lagrange's, from the kinetic energy in coordinates and their rates alone,
#   carried over by ``q̇ = W u + X`` (docs/theory.md, "Kinematics"; Parsa, (34)-(38));
# - their share in the energy: ``-u·f = ½ uᵀ Ṁ u`` without prescribed motion, equivalent to a skew ``Ṁ - 2C``;
# - the rates of the momenta of all bodies with the loads, along motions of the whole as one rigid body;
# - the power of the loads with the change of potential energy and the powers stated for them;
# - accelerations and forces of every mode, by embedding in machine code, with those of Lagrange's equations with
#   multipliers, solved as one linear system, and with those in a null space of the rows by singular values, the natural
#   orthogonal complement (Saha and Angeles, (10)-(11)); sliding contacts slide along their slip, with friction;
# - the same accelerations with those of Newton's and Euler's equations of each body, with all forces and moments on the
#   bodies as unknowns (:mod:`fsm_dyn.analysis.newton_euler`).

LIMIT = 1e-8  # relative: conditioning of random configurations, up to 1e6, times rounding
INERTIA = "inertia terms, Kane and Lagrange"
ENERGY = "energy of the inertia terms (Ṁ - 2C is skew)"
POWER = "power of the loads, and the potential and powers stated for them"
MOMENTA = "rates of momenta, and the loads along ways in which all moves as one"


@dataclass(frozen=True)
class Comparison:
    """One comparison: largest difference relative to the largest value; None if it was omitted.

    ``mode`` is the mode of the compared states.
    """

    name: str
    difference: float | None
    remark: str = ""
    mode: str = ""

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
        The compared modes, each with the number of random states.
    comparisons : tuple of Comparison
    complete : bool
        False if guards of these modes lead to modes not compared.
    """

    model: str
    modes: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    complete: bool = True

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


@typed
def verify(
    model: str | os.PathLike[str] | Mapping[str, object] | Model | Mechanism,
    *,
    states: int = 20,
    modes: Sequence[str] | None = None,
    successors: bool = False,
) -> Verification:
    """Compare independent derivations of the equations of a model at random states of its modes.

    Parameters
    ----------
    model : str or Mechanism
        A name, a path, or a loaded mechanism.
    states : int
        Number of random states of each mode, all on its rows.
    modes : sequence of str, optional
        Compared modes; by default all modes derived at compile time.
    successors : bool
        Whether to include the targets of their guards, derived in a run on first entry.

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
    """Return the graph with the targets of the guards of its modes, derived in a run on first entry."""
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


def _named(automaton: Automaton, x: Floats, context: Floats) -> dict[str, float]:
    layout = automaton.terms.layout
    values = {**dict(zip(layout.q, x, strict=False)), **dict(zip(layout.u, x[len(layout.q) :], strict=True))}
    values |= dict(zip(layout.c, context, strict=True))
    return {name: float(value) for name, value in values.items()}


class _Derived:
    """Terms derived from the energies alone, prepared as nodes once and evaluated at each state."""

    def __init__(self, mechanism: Mechanism) -> None:
        # SymPy is imported for derivations only
        from fsm_dyn.derive.derivation import derive

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

    def compare(self, values: Mapping[str, float]) -> dict[str, tuple[Floats, Floats]]:
        """Return both sides of every comparison at a state; sums of powers bring the size of their terms along."""
        found: dict[str, tuple[Floats, Floats]] = {}
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

    def _kinematics_at(self, values: Mapping[str, float]) -> tuple[Floats, Floats, Floats]:
        """Return W, the rates of the coordinates, and their second rates at u̇ = 0."""
        kinematics, n_q = self.kinematics(values), self.n_q
        return kinematics[: -2 * n_q].reshape(n_q, -1), kinematics[-2 * n_q : -n_q], kinematics[-n_q:]

    def momenta(self, values: Mapping[str, float], u_dot: Floats, A: Floats) -> dict[str, tuple[Floats, Floats]]:
        """Return rates of momenta and forces along the motions as one rigid body, if there are any."""
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

    def _from_lagrange(self, values: Mapping[str, float]) -> Floats:
        """M and f without loads, from the kinetic energy in coordinates and rates.

        Euler parameters are taken as four free coordinates: W is tangent to the sphere of unit norm, so the energy off
        the sphere does not matter.
        """
        own = self.own
        W, q_dot, onward = (part[own] for part in self._kinematics_at(values))
        terms = self.lagrange({**values, **dict(zip(self.bare_rates, q_dot, strict=True))})
        n_q = len(own)
        M_q, h = terms[: n_q * n_q].reshape(n_q, n_q), terms[n_q * n_q :]
        return np.concatenate([(W.T @ M_q @ W).ravel(), -W.T @ (h + M_q @ onward)])


def derived_terms(mechanism: Mechanism) -> _Derived:
    """Return the terms of a mechanism by independent derivations, for comparisons at states."""
    return _Derived(mechanism)


def _flow(terms: Terms) -> dict[Node, Node]:
    flow = {terms.graph.symbol(q): rate for q, rate in zip(terms.layout.q, terms.q_dot, strict=True)}
    flow[terms.graph.symbol("t")] = terms.graph.one
    return flow
