"""Independent derivations of the equations of a model, compared at random states.

What is compared, and with what:

- the inertia terms of Kane's equations with Lagrange's, from the kinetic energy in coordinates and their rates alone,
  carried over by ``q̇ = W u + X`` (docs/theory.md, "Kinematics"; Parsa, (34)-(38));
- their share in the energy: ``-u·f = ½ uᵀ Ṁ u`` where nothing moves by itself, which is that ``Ṁ - 2C`` is skew;
- the rates of the momenta of all bodies with the loads, along ways in which the whole moves as one rigid body;
- the power of the loads with the change of potential energy and the powers stated for them;
- accelerations and forces of the mode, by embedding in machine code, with those of Lagrange's equations with
  multipliers, solved as one linear system, and with those in a null space of the rows by singular values, the natural
  orthogonal complement (Saha and Angeles, (10)-(11)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.lagrange import bodies_alone, lagrange_terms, rate_name
from fsm_dyn.analysis.momentum import Momenta
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeView
from fsm_dyn.compilation import compile as compile_model
from fsm_dyn.errors import InputError, ModelError
from fsm_dyn.modes.assembly import PrescribedValues
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.programs import Node, evaluate, support, tangent
from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.spec.model import Mechanism

if TYPE_CHECKING:
    from fsm_dyn.symbolic.terms import Terms

Array = npt.NDArray[np.float64]

LIMIT = 1e-8  # relative: conditioning of random configurations, up to 1e6, times rounding
SEED = 20030818
RANK = 1e-9
VANISHING = 1e-5  # a singular value between this and RANK decides nothing
WORST = 1e8  # condition of a reduced mass matrix beyond which a state is passed over
RIGHT_ANGLE = 0.5 * np.pi
INERTIA = "inertia terms, Kane and Lagrange"
ENERGY = "energy of the inertia terms (Ṁ - 2C is skew)"
POWER = "power of the loads, and the potential and powers stated for them"
MOMENTA = "rates of momenta, and the loads along ways in which all moves as one"
SPREAD = 1.0  # rad, m: how far from the start states are looked for
MOST_TRIALS = 10


@dataclass(frozen=True)
class Comparison:
    """One comparison: largest difference relative to the largest value; None if it was omitted."""

    name: str
    difference: float | None
    remark: str = ""
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
    mode : str
        The mode whose rows held.
    states : int
        Number of random states.
    comparisons : tuple of Comparison
    """

    model: str
    mode: str
    states: int
    comparisons: tuple[Comparison, ...]
    good = RenamedAttribute("passed")

    @property
    def passed(self) -> bool:
        """Whether everything agrees."""
        return all(comparison.passed for comparison in self.comparisons)

    def __str__(self) -> str:
        """Return the report as text."""
        lines = [f"{self.model}, mode '{self.mode}', {self.states} random states"]
        for c in self.comparisons:
            if c.difference is None:
                lines.append(f"  not compared: {c.name} ({c.remark})")
            else:
                word = "agree" if c.passed else "DIFFER"
                lines.append(f"  {word} to {c.difference:.1e}: {c.name}" + (f" ({c.remark})" if c.remark else ""))
        differ = f"derivations differ by more than {LIMIT:g}: report this model"
        lines.append("all derivations agree" if self.passed else differ)
        return "\n".join(lines)


def verify(model: str | Mechanism, *, states: int = 20) -> Verification:
    """Compare independent derivations of the equations of a model at random states.

    Parameters
    ----------
    model : str or Mechanism
        A name, a path, or a loaded mechanism.
    states : int
        How many random states that satisfy the rows of the mode the motion starts in; what slides there is open.

    Returns
    -------
    Verification
        Its text is a report.

    Raises
    ------
    InputError
        ``states`` is not positive.
    ModelError
        The model cannot be compiled, or no random state near the start satisfies its rows.
    """
    if states < 1:
        raise InputError("states must be positive", found=str(states))
    graph = compile_model(model)
    automaton = graph.automaton
    begin = initial_state(automaton, graph.values, graph.parameters)
    # what slides, and what yields, is open: its force is no multiplier of a row alone
    codes = tuple(0 if 0 in contact.codes and (code >= 2 or contact.contact_law.compliant) else code
                  for code, contact in zip(begin.states, automaton.contacts, strict=True))  # fmt: skip
    mode = automaton.derive(codes, 0.0, begin.x, begin.context)
    view = ModeView(automaton, mode, graph.parameters)
    points = _random_states(automaton, codes, begin.x, begin.context, states)
    routes = _Routes(automaton, codes, view, begin.context)
    derived = _Derived(automaton.mechanism)
    found: dict[str, list[tuple[float, float]]] = {}
    for x in points:
        values = _named(automaton, x, begin.context)
        both = {**routes.compare(x), **derived.compare(values)}
        if not routes.frictional:
            both |= derived.momenta(values, routes.accelerations(x), routes.rows_at(x))
        for name, (left, right) in both.items():
            size = max(float(np.abs(left).max(initial=0.0)), float(np.abs(right).max(initial=0.0)))
            found.setdefault(name, []).append((float(np.abs(left - right).max(initial=0.0)), size))
    comparisons = [
        Comparison(name, max(d for d, _ in pairs) / max(1e-300, *(size for _, size in pairs)))
        for name, pairs in found.items()
    ]
    if MOMENTA not in found:
        derived.omitted.append((MOMENTA, "in no way can all move as one, or friction acts"))
    omitted = [Comparison(name, None, remark) for name, remark in (*routes.omitted, *derived.omitted)]
    return Verification(graph.name, mode.name, len(points), (*comparisons, *omitted))


def _named(automaton: Automaton, x: Array, context: Array) -> dict[str, float]:
    layout = automaton.terms.layout
    values = {**dict(zip(layout.q, x, strict=False)), **dict(zip(layout.u, x[len(layout.q) :], strict=True))}
    values |= dict(zip(layout.p, context[layout.p_slice], strict=True))
    return {name: float(value) for name, value in values.items()}


def _random_states(automaton: Automaton, codes: Sequence[int], x: Array, context: Array, count: int) -> list[Array]:
    """Return states near a start, every third of right angles, brought onto the rows, speeds projected on them."""
    layout, random = automaton.terms.layout, np.random.default_rng(SEED)
    n_q, n_u, found = len(layout.q), len(layout.u), []
    rows = list(ActiveSet.of(automaton.system, codes).rows)
    usual = float(np.abs(automaton.terms.evaluate(0.0, x, context)["A"][rows]).max(initial=0.0))
    spread = SPREAD
    for trial in range(MOST_TRIALS * count):
        guess = x[:n_q] + spread * random.uniform(-1.0, 1.0, n_q)
        if trial % 3 == 2:  # where models begin, and where a pivot is most likely to vanish
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
        if all(np.isfinite(value).all() for value in terms.values()) and _regular(terms["M"][:n_u, :n_u], A, usual):
            found.append(state)
        if len(found) == count:
            break
    if not found:
        raise ModelError("no state near the start satisfies the rows", remedy="check where the motion starts")
    return found


def _regular(M: Array, A: Array, usual: float) -> bool:
    """Whether the reduced mass matrix can be solved and no row is about to vanish, as both may at right angles."""
    null = _null_space(A)
    size = np.sqrt(np.abs(np.diag(M))) + 1e-30
    if len(A):
        shares = np.linalg.svd(A / size, compute_uv=False)
        largest = max(usual / float(size.min()), float(shares.max()))
        if np.any((shares > RANK * shares.max()) & (shares < VANISHING * largest)):
            return False
    reduced = null.T @ (M / np.outer(size, size)) @ null if len(A) else M / np.outer(size, size)
    return not reduced.size or bool(np.linalg.cond(reduced) < WORST)


class _Routes:
    """Three ways from M, f and rows to accelerations and forces."""

    def __init__(self, automaton: Automaton, codes: Sequence[int], view: ModeView, context: Array) -> None:
        self.automaton, self.view, self.context = automaton, view, context
        self.layout = automaton.terms.layout
        self.rows = [r for r in ActiveSet.of(automaton.system, codes).rows if automaton.rows[r].role != "kinematic"]
        self.frictional = any(
            code >= 2 or contact.contact_law.friction_only
            for code, contact in zip(codes, automaton.contacts, strict=True)
        )
        self.omitted: list[tuple[str, str]] = []

    def accelerations(self, x: Array) -> Array:
        """Return u̇ of the mode, embedded, in machine code."""
        n_q = len(self.layout.q)
        return self.view.derivatives(0.0, x[:n_q], x[n_q:], list(self.context[self.layout.w_slice]))[1]

    def rows_at(self, x: Array) -> Array:
        """Return A of the rows that hold, for the declared speeds."""
        A: Array = self.automaton.terms.evaluate(0.0, x, self.context)["A"][self.rows][:, : len(self.layout.u)]
        return A

    def compare(self, x: Array) -> dict[str, tuple[Array, Array]]:
        """Return both sides of every comparison at a state."""
        n_q, n = len(self.layout.q), len(self.layout.u)
        if self.frictional:
            self.omitted = [("accelerations", "friction acts in the mode")]
            return {}
        terms = self.automaton.terms.evaluate(0.0, x, self.context)
        M, f = terms["M"][:n, :n], terms["f"][:n]
        A, gamma = terms["A"][self.rows][:, :n], terms["gamma"][self.rows]
        w = list(self.context[self.layout.w_slice])
        _, u_dot = self.view.derivatives(0.0, x[:n_q], x[n_q:], w)
        size, m = np.sqrt(np.abs(np.diag(M))) + 1e-30, len(self.rows)
        scaled = A / size
        whole = np.block([[M / np.outer(size, size), -scaled.T], [scaled, np.zeros((m, m))]])
        solution = np.linalg.lstsq(whole, np.concatenate([f / size, -gamma]), rcond=RANK)[0]
        null = _null_space(A)
        least = -np.linalg.lstsq(A, gamma, rcond=RANK)[0] if m else np.zeros(n)
        complement: npt.NDArray[Any] = least + null @ np.linalg.solve(null.T @ M @ null, null.T @ (f - M @ least))
        usual = float(np.abs(f / (size**2 + 1e-30)).max(initial=0.0))

        def with_size(values: npt.NDArray[Any]) -> Array:
            """Add the scale of accelerations of this model: they may all be zero."""
            return np.append(values, usual)

        found = {
            "accelerations embedded, and with multipliers (Lagrange)": (
                with_size(u_dot),
                with_size(np.asarray(solution[:n] / size, dtype=np.float64)),
            ),
            "accelerations embedded, and in the orthogonal complement of the rows": (
                with_size(u_dot),
                with_size(complement),
            ),
        }
        if m:
            forces = self.view.contact_forces(0.0, x[:n_q], x[n_q:], w)
            counts: dict[str, int] = {}
            values = []
            for row in range(len(self.automaton.rows)):
                name = self.automaton.rows[row].name
                counts[name] = counts.get(name, -1) + 1
                values.append(float(forces[name][counts[name]]))
            own = np.array([values[row] for row in self.rows])
            # a row may carry no load: compared relative to the momenta and forces of this model
            scale = max(float(np.abs(f).max(initial=0.0)), float(np.abs(M @ x[n_q:]).max(initial=0.0)))
            found["forces of the rows, by their effect on the speeds"] = (
                np.append(A.T @ own, scale),
                np.append(A.T @ solution[n:], scale),
            )
        return found


def _null_space(A: Array) -> Array:
    if not len(A):
        return np.eye(A.shape[1])
    _, singular, right = np.linalg.svd(A)
    rank = int((singular > RANK * max(singular.max(initial=0.0), 1e-300)).sum())
    return np.array(right[rank:].T)


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
        self.stores = any(contact.compliance is not None for contact in mechanism.contacts.values())
        if self.still and self.stores:
            self.omitted.append((POWER, "compliant contacts store energy too"))
        bare = derive(bodies_alone(mechanism))
        self.own = [free.layout.q.index(name) for name in bare.layout.q]  # places along curves carry no mass
        self.bare_rates = [rate_name(name) for name in bare.layout.q]
        self.lagrange = Batch(lagrange_terms(bare))

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

    def momenta(self, values: Mapping[str, float], u_dot: Array, A: Array) -> dict[str, tuple[Array, Array]]:
        """Return rates of momenta and forces along the ways in which all can move as one, if there are any."""
        if self.whole is None or self.stores:
            return {}
        n_u = len(self.u)
        loads = self.loads(values)[:n_u] - self.kane(values)[self.n * self.n :][:n_u]
        pair = self.whole.compare(values, u_dot, A, loads)
        return {} if pair is None else {MOMENTA: pair}

    def _from_lagrange(self, values: Mapping[str, float]) -> Array:
        """M and f without loads, from the kinetic energy in coordinates and rates.

        Euler parameters are taken as four free coordinates: W leads along the sphere of unit norm only, and there it
        does not matter how the energy goes on beside it.
        """
        n_q, own = self.n_q, self.own
        kinematics = self.kinematics(values)
        W = kinematics[: -2 * n_q].reshape(n_q, -1)[own]
        q_dot, onward = kinematics[-2 * n_q : -n_q][own], kinematics[-n_q:][own]
        terms = self.lagrange({**values, **dict(zip(self.bare_rates, q_dot, strict=True))})
        n_q = len(own)
        M_q, h = terms[: n_q * n_q].reshape(n_q, n_q), terms[n_q * n_q :]
        return np.concatenate([(W.T @ M_q @ W).ravel(), -W.T @ (h + M_q @ onward)])


class Batch:
    """Nodes with the names of what they depend on."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes, self.names = list(nodes), [symbol.name for symbol in support(nodes)]

    def __call__(self, values: Mapping[str, float]) -> Array:
        """Return their values; what is not given is 0."""
        known = {name: values.get(name, 0.0) for name in self.names}
        return np.array([float(value) for value in evaluate(self.nodes, known)])


def _flow(terms: Terms) -> dict[Node, Node]:
    flow = {terms.graph.symbol(q): rate for q, rate in zip(terms.layout.q, terms.q_dot, strict=True)}
    flow[terms.graph.symbol("t")] = terms.graph.one
    return flow
