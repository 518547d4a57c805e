"""Rows of a run with derived quantities: forces, energies, outputs, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Floats, InputFunction, Integers
from fsm_dyn.core.errors import UnknownColumnError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import FOLLOWS, ContactInfo
from fsm_dyn.language.laws import HELD, SLIDING_UNDER
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Layout, Only, Program
from fsm_dyn.programs.traversal import substitute, tangent
from fsm_dyn.run.extremes import state_within
from fsm_dyn.run.loop_state import Rows
from fsm_dyn.run.pins import Pins
from fsm_dyn.run.record import RunModel

DEPENDENT: Final = 1e-9  # largest zero singular value of unit rows
KEPT: Final = 4e-9  # violation of a law, as a fraction of the largest force, counting as none: guards have a fourth
NEARLY: Final = 1e-7  # the same of shares found where hardly any are admissible
PLANES: Final = 60  # tangent planes of a cone, at most
HARDLY: Final = 1e-10  # length of the residual of the least squares problem if no shares are admissible


@dataclass(frozen=True)
class ShareLaw:
    """One law on the forces of a contact: ``normal . λ + load - friction |λ_t| >= 0``.

    ``normal`` (n, n_rows) and ``load`` (n,) are linear; ``tangents`` are the rows of λ_t, none for a law without
    friction.
    """

    normal: Floats
    load: Floats
    tangents: tuple[int, ...] = ()

    def margin(self, forces: Floats) -> Floats:
        """Margin by which the forces (n, n_rows) satisfy the contact law, shape (n,)."""
        friction = np.linalg.norm(forces[:, list(self.tangents)], axis=1) if self.tangents else 0.0
        found: Floats = np.einsum("nr,nr->n", self.normal, forces) + self.load - friction
        return found


@dataclass(frozen=True)
class States:
    """Some instants of one mode."""

    contacts: Sequence[ContactInfo]
    states: Sequence[int]  # contact state codes of the mode
    # ``A`` (n, n_rows, n_speeds), ``M`` (n, n_speeds, n_speeds), ``f`` (n, n_speeds), ``b`` (n, n_rows), ``static``,
    # ``kinetic`` and ``elastic`` (n, n_contacts)
    terms: Mapping[str, Floats]
    u: Floats  # shape (n, n_u)
    sigma: Floats  # shape (n, n_contacts): slip directions

    def unknowns(self, forces: Floats) -> Floats:
        """Return which forces there are, as unit forces on all rows, shape (n, n_rows, n_unknowns).

        The friction of a sliding contact belongs to its normal force.
        """
        n, n_rows = forces.shape
        columns = []
        owned = {r for c in self.contacts for r in (c.normal_row, *c.tangent_rows)}
        for r in set(range(n_rows)) - owned:
            columns.append(_unit(n, n_rows, r))
        for k, (contact, code) in enumerate(zip(self.contacts, self.states, strict=True)):
            if code == 0:
                continue
            if contact.contact_law.rigid or contact.contact_law.switched:
                column = _unit(n, n_rows, contact.normal_row)
                if code > HELD and contact.tangent_rows:
                    side = -1.0 if code == SLIDING_UNDER else 1.0
                    friction = -side * self.terms["kinetic"][:, k, None] * self._direction(k)
                    column[:, list(contact.tangent_rows)] = friction
                columns.append(column)
            if code == HELD:
                columns += [_unit(n, n_rows, r) for r in contact.tangent_rows]
        return np.stack(columns, axis=2) if columns else np.zeros((n, n_rows, 0))

    def _direction(self, k: int) -> Floats:
        """Return the slip direction of a sliding contact, shape (n, tangents)."""
        contact, sigma = self.contacts[k], self.sigma[:, k]
        if not contact.in_space:
            return sigma[:, None]
        rows, n_u = list(contact.tangent_rows), self.u.shape[1]
        slip = np.einsum("nrk,nk->nr", self.terms["A"][:, rows, :n_u], self.u) + self.terms["b"][:, rows]
        kept = np.stack([np.cos(sigma), np.sin(sigma)], axis=1)
        ahead = np.einsum("nr,nr->n", kept, slip) / FOLLOWS
        lead = np.where(ahead > 1.0, 0.0, np.where(ahead > 0.0, (1.0 - ahead) ** 2, 1.0 - 2.0 * ahead))
        slip += FOLLOWS * lead[:, None] * kept
        found: Floats = slip / np.linalg.norm(slip, axis=1)[:, None]
        return found

    def loads(self) -> Floats:
        """Return how large the forces of the loads are in the directions of the rows, shape (n,), N.

        Decisions judge forces against the accelerations without contacts, in the metric of kinetic energy; so here.
        """
        mass = np.einsum("nii->ni", self.terms["M"])
        mass = np.where(mass > 0.0, mass, np.inf)
        free = np.sqrt(np.sum(self.terms["f"] ** 2 / mass, axis=1))
        yields = np.sqrt(np.einsum("nrj,nj->nr", self.terms["A"] ** 2, 1.0 / mass))
        most = yields.max(axis=1, initial=0.0)
        found: Floats = np.where(most > 0.0, free / np.where(most > 0.0, most, 1.0), 0.0)
        return found

    def laws(self, forces: Floats) -> list[ShareLaw]:
        """Return the laws of the contacts, with coefficients and sides as they are in the forces given."""
        n, n_rows = forces.shape
        nothing = np.zeros((n, n_rows))
        found = []
        for k, (contact, code) in enumerate(zip(self.contacts, self.states, strict=True)):
            if code and contact.contact_law.force_limit:
                found.append(ShareLaw(nothing, self.terms["static"][:, k], (contact.normal_row,)))
            if code == 0 or contact.contact_law.switched:
                continue
            normal, load = nothing, np.ones(n)
            if contact.contact_law.rigid:
                side = np.where(forces[:, contact.normal_row] < 0.0, -1.0, 1.0) if code == HELD else 1.0
                side = side if contact.bilateral else 1.0
                side = -1.0 if code == SLIDING_UNDER else side
                normal, load = np.zeros((n, n_rows)), np.zeros(n)
                normal[:, contact.normal_row] = side
                found.append(ShareLaw(normal, load))
            elif contact.contact_law.compliant:
                load = self.terms["elastic"][:, k]
            elif contact.contact_law.loaded:
                load = np.linalg.norm(forces[:, list(contact.load_rows)], axis=1)
            if code == HELD and contact.tangent_rows and not contact.sticks_always:
                limit = self.terms["static"][:, k]
                found.append(ShareLaw(limit[:, None] * normal, limit * load, contact.tangent_rows))
        return found

    def without_effect(self, unknowns: Floats) -> tuple[Floats, Booleans]:
        """Return forces without effect on motion, orthonormal, (n, n_rows, most), and which of the ``most`` count."""
        inertia = np.einsum("nii->ni", self.terms["M"])
        scale = 1.0 / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
        effect = np.einsum("nj,nrj,nru->nju", scale, self.terms["A"], unknowns)
        length = np.linalg.norm(effect, axis=1, keepdims=True)
        unit = np.where(length > 0.0, length, 1.0)
        missing = max(effect.shape[2] - effect.shape[1], 0)
        effect = np.concatenate([effect / unit, np.zeros((len(effect), missing, effect.shape[2]))], axis=1)
        _, values, right = np.linalg.svd(effect)
        counts = values[:, : effect.shape[2]] <= DEPENDENT
        most = int(counts.sum(axis=1).max(initial=0))  # values fall: the relevant ones are the last
        right, counts = right[:, right.shape[1] - most :], counts[:, counts.shape[1] - most :]
        basis = unknowns @ (np.swapaxes(right, 1, 2) / np.swapaxes(unit, 1, 2)) * counts[:, None, :]
        return _orthonormal(basis), counts


def _unit(n: int, n_rows: int, row: int) -> Floats:
    column = np.zeros((n, n_rows))
    column[:, row] = 1.0
    return column


def _orthonormal(basis: Floats) -> Floats:
    """Make the nonzero columns orthonormal, from the last one on."""
    result = basis.copy()
    for j in reversed(range(basis.shape[2])):
        for _ in range(2):  # once more, against rounding
            for other in range(j + 1, basis.shape[2]):
                result[:, :, j] -= (
                    np.einsum("nr,nr->n", result[:, :, j], result[:, :, other])[:, None] * (result[:, :, other])
                )
        length = np.linalg.norm(result[:, :, j], axis=1, keepdims=True)
        result[:, :, j] /= np.where(length > 0.0, length, 1.0)
    return result


def reported_forces(
    layout: Layout,
    contacts: Sequence[ContactInfo],
    states: Sequence[int],
    terms: Callable[[Integers, Only], Mapping[str, Floats]],
    x: Floats,
    context: Floats,
    forces: Floats,
) -> tuple[Floats, Booleans]:
    """Return the forces to be reported at some instants of one mode whose rows are redundant.

    ``layout``: columns of states and contexts; ``contacts``: the contacts of the model, in declared order; ``states``:
    contact state codes of the mode, one per contact; ``terms``: returns unconstrained terms at some of the instants,
    shapes (n, ...): of each output named the rows listed, None for all; ``x``, ``context``, shapes (n, n_x) and (n,
    n_c); ``forces``, shape (n, n_rows): as the programs of the mode give them. Returns ``forces``, shape (n, n_rows):
    of all forces of the same effect the smallest admissible ones; ``admissible``, shape (n,): false if none are: then
    the forces are those given.
    """
    result, admissible = forces.copy(), np.ones(len(forces), dtype=np.bool_)
    closed = [k for k, code in enumerate(states) if code]
    open_rows = {
        r for c, code in zip(contacts, states, strict=True) for r in (c.normal_row, *c.tangent_rows) if not code
    }
    rows = [r for r in range(forces.shape[1]) if r not in open_rows]
    number = {r: i for i, r in enumerate(rows)} | {-1: -1}
    some = [
        msgspec.structs.replace(
            c,
            normal_row=number[c.normal_row],
            tangent_row=number[c.tangent_row],
            load_rows=tuple(number[r] for r in c.load_rows if r in number),
        )
        for c in (contacts[k] for k in closed)
    ]
    bounds: Only = dict.fromkeys(("static", "kinetic", "elastic"), closed)

    def at(which: Integers, only: Only) -> States:
        sigma = context[which][:, layout.sigma_slice][:, closed]
        return States(some, [states[k] for k in closed], terms(which, only), x[which][:, layout.u_slice], sigma)

    largest = np.abs(forces).max(axis=1, initial=0.0)
    where = breaking_laws(at(np.arange(len(forces)), bounds), forces[:, rows], largest)
    if len(where):
        some_states = at(where, {**bounds, "A": rows, "b": rows, "M": None, "f": None})
        size = np.maximum(largest[where], some_states.loads())
        found, admissible[where] = admissible_forces(some_states, forces[where][:, rows], size)
        result[where[:, None], rows] = found
    return result, admissible


def breaking_laws(at: States, forces: Floats, size: Floats) -> Integers:
    """Return the instants at which the forces (n, n_rows) break a law of a contact by more than a part of ``size``."""
    broken = np.zeros(len(forces), dtype=np.bool_)
    for law in at.laws(forces):
        broken |= law.margin(forces) < -KEPT * size
    return np.flatnonzero(broken)


def admissible_forces(at: States, forces: Floats, size: Floats) -> tuple[Floats, Booleans]:
    """Return of all forces of the same effect the smallest admissible, (n, n_rows), and whether there are any, (n,).

    ``forces``, shape (n, n_rows); ``size``, shape (n,): the largest force at play, N.
    """
    result, admissible = forces.copy(), np.ones(len(forces), dtype=np.bool_)
    laws = at.laws(forces)
    where = breaking_laws(at, forces, size)
    basis, counts = at.without_effect(at.unknowns(forces))
    for i in where:
        free = basis[i][:, counts[i]]
        own = [ShareLaw(law.normal[i : i + 1], law.load[i : i + 1], law.tangents) for law in laws]
        found = smallest_admissible(forces[i] / size[i], free, own, size[i])
        admissible[i] = found is not None
        if found is not None:
            result[i] = found * size[i]
    return result, admissible


def smallest_admissible(forces: Floats, free: Floats, laws: Sequence[ShareLaw], size: float) -> Floats | None:
    """Solve ``min |λ|`` over ``λ = forces + free s`` within the contact laws; None without one.

    ``forces``, shape (n_rows,): in units of ``size``; ``free``, shape (n_rows, k): orthonormal; ``laws``: each of one
    instant; ``size``: N.
    """
    if free.shape[1] == 0:
        return None
    least = forces - free @ (free.T @ forces)
    linear, right, cones = [], [], []
    for law in laws:
        normal, load = law.normal[0], float(law.load[0]) / size
        if len(law.tangents) == 1:
            for sign in (-1.0, 1.0):
                row = normal.copy()
                row[law.tangents[0]] += sign
                linear.append(row)
                right.append(-load - KEPT)
            continue
        linear.append(normal)
        right.append(-load - (0.0 if law.tangents else KEPT))
        if law.tangents:
            cones.append((normal, load, list(law.tangents)))
    found = least
    for _ in range(PLANES):
        nearest = _least_distance(np.array(linear), np.array(right), least, free)
        if nearest is None:
            return None
        found = nearest
        worst = 0.0
        for normal, load, tangents in cones:
            friction = float(np.linalg.norm(found[tangents]))
            excess = friction - float(normal @ found) - load
            worst = max(worst, excess)
            if excess > KEPT:
                row = normal.copy()
                row[tangents] -= found[tangents] / friction
                linear.append(row)
                right.append(-load - 0.5 * KEPT)
        if worst <= KEPT:
            break
    if min(float(law.margin(found[None] * size)[0]) for law in laws) < -NEARLY * size:
        return None
    return found


def _least_distance(linear: Floats, right: Floats, least: Floats, free: Floats) -> Floats | None:
    """Return ``least + free s`` with the smallest ``|s|`` for which ``linear . (least + free s) >= right``."""
    # scipy takes a fifth of a second to import, and few runs need it
    from scipy.optimize import nnls

    G, h = linear @ free, right - linear @ least
    if (h <= 0.0).all():
        return least
    k = free.shape[1]
    try:
        weights, length = nnls(np.vstack([G.T, h]), np.append(np.zeros(k), 1.0))
    except RuntimeError:  # it did not terminate
        return None
    if length <= HARDLY:
        return None
    residual = np.append(G.T @ weights, h @ weights - 1.0)
    found: Floats = least - free @ (residual[:k] / residual[k])
    return found


# -- Power of the drives -------------------------------------------------------------------------------------
#
# Power of the drives of points and frames by time or inputs (docs/theory.md, "The energy balance").

_KEPT = 64  # automata whose program is kept


class _Programs:
    """The programs of an automaton as a key: runs of other modes and parameters share them."""

    def __init__(self, automaton: Automaton) -> None:
        self.report, self.terms = automaton.report, automaton.terms

    def __hash__(self) -> int:
        return id(self.report)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Programs) and self.report is other.report and self.terms is other.terms


def drive_program(automaton: Automaton) -> Program | None:
    """Return the power of the drives as a program, None if everything rests while all speeds are zero.

    With ``u_dot = 0`` it is ``rest`` (W), and each acceleration adds its entry of ``momentum``, shape (n_u,), times it:
    the momentum along the speed by the driven motion alone.

    A point whose place depends on time moves while all speeds are zero.  Its drive does the work by which the
    energies change beyond the work of loads and constraint rows,

        P = d(T + V)/dt - sum of the loads' powers - u . (M u_dot - f).
    """
    return _program(_Programs(automaton))


@lru_cache(maxsize=_KEPT)
def _program(programs: _Programs) -> Program | None:
    report, terms = programs.report, programs.terms
    graph = ExpressionGraph()
    symbols, energies = report.nodes(graph)
    _, known = terms.nodes(graph)
    layout = terms.layout
    u = [symbols[name] for name in layout.u]
    kinetic, powers = energies["kinetic_energy"].item(), list(energies["load_powers"])
    potential = energies["potential_energy"].item()
    for stored in energies["stored"]:  # the forces of contacts are rows
        potential = potential - stored
    flow = _flow(graph, symbols, layout.q, list(known["q_dot"]), layout.w)
    still = dict.fromkeys(u, graph.zero)
    (changed,) = tangent([potential], flow)
    at_rest = substitute([kinetic, changed, *powers], still)
    if all(node.is_zero for node in at_rest):
        return None
    (gained,) = tangent([kinetic], flow)
    rest = gained + changed
    for power in powers:
        rest = rest - power
    for speed, force in zip(u, known["f"], strict=False):
        rest = rest + speed * force
    momentum = [tangent([kinetic], {speed: graph.one})[0] for speed in u]
    return Program.from_nodes(layout, {"rest": rest, "momentum": substitute(momentum, still)})


def _flow(
    graph: ExpressionGraph, symbols: dict[str, Node], q: tuple[str, ...], rates: list[Node], inputs: tuple[str, ...]
) -> dict[Node, Node]:
    """Return the rates of coordinates, of time and of inputs, while no speed changes."""
    flow = dict(zip((symbols[name] for name in q), rates, strict=True))
    flow[symbols["t"]] = graph.one
    for name in inputs:
        flow[symbols[name]], flow[symbols[f"{name}.rate"]] = symbols[f"{name}.rate"], symbols[f"{name}.rate2"]
    return flow


# -- Rows of a run with derived quantities: forces, energies, outputs, computed on demand --------------------

_MOTION: Final = {"x_dot": None, "multipliers": None}  # of the programs of modes, without their guards
_RANK: Final = 1e-9  # part of the largest singular value below which a direction is lost


@dataclass(frozen=True, slots=True)
class State:
    """One instant of a run: time (s), mode, coordinates ``q`` (n_q,) and speeds ``u`` (n_u,), SI."""

    t: float
    mode: str
    q: Floats
    u: Floats
    find_next: Callable[[float], tuple[Any, ...]] | None = field(default=None, repr=False, compare=False)

    def next(self, horizon: float = 0.1) -> tuple[Any, ...]:
        """Return the guards of the mode in the order of the times at which they would fire if nothing else changed.

        Parameters
        ----------
        horizon : float
            Time looked ahead, s.

        Returns
        -------
        tuple of fsm_dyn.run.explanation.Prospect
            ``event``, ``guard``, ``margin`` (present value), ``slope`` and ``time`` (s; None beyond the horizon).
            The motion of the mode continues beyond other guards, and inputs keep their present rates.

        Raises
        ------
        InputError
            The horizon is not positive.
        """
        return () if self.find_next is None else self.find_next(horizon)


@dataclass(frozen=True)
class Samples:
    """Rows of a run, recorded or sampled.

    Attributes
    ----------
    model : RunModel
    t : ndarray, shape (n,)
        Times, s.
    x : ndarray, shape (n, n_q + n_u)
        Coordinates and speeds, SI.
    mode : ndarray of int, shape (n,)
        Mode index per row.
    context : ndarray, shape (n, n_c)
        The programs' context per row: parameters, inputs and their rates, slip directions, memory.
    """

    model: RunModel
    t: Floats
    x: Floats
    mode: Integers
    context: Floats

    def __len__(self) -> int:
        return len(self.t)

    def only(self, rows: Integers) -> Samples:
        """Return some of the rows, by their numbers."""
        return Samples(self.model, self.t[rows], self.x[rows], self.mode[rows], self.context[rows])

    @property
    def q(self) -> Floats:
        """Coordinates, shape (n, n_q), in declared order."""
        return self.x[:, self.model.layout.q_slice]

    @property
    def u(self) -> Floats:
        """Generalized speeds, shape (n, n_u), in declared order."""
        return self.x[:, self.model.layout.u_slice]

    @property
    def modes(self) -> tuple[str, ...]:
        """Name of the mode per row."""
        return tuple(map(self.model.modes.__getitem__, self.mode.tolist()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of the mode of each row; a handover changes the mode, not its label."""
        return tuple(map(self.model.labels.__getitem__, self.mode.tolist()))

    @cached_property
    def inputs(self) -> Mapping[str, Floats]:
        """Inputs by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.w, self.context[:, layout.w_slice].T, strict=True))

    @cached_property
    def memory(self) -> Mapping[str, Floats]:
        """Memory by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.memory, self.context[:, layout.memory_slice].T, strict=True))

    @cached_property
    def multiplier_table(self) -> Floats:
        """Multipliers of all rows, shape (n, n_rows), in the sense of M u̇ = f + Σ Aᵀ λ; zero if not active.

        Of the forces of redundant rows the smallest within the contact laws (:mod:`fsm_dyn.run.samples`).
        """
        return self._forces[0]

    @property
    def admissible(self) -> Booleans:
        """Whether the forces of redundant contacts keep the contact laws, shape (n,); if none do, the smallest."""
        return self._forces[1]

    @cached_property
    def _forces(self) -> tuple[Floats, Booleans]:
        admissible = np.ones(len(self), dtype=np.bool_)
        if not self.model.rows:
            return np.zeros((len(self), 0)), admissible
        table = self._motion[1].copy()
        for index in self._modes_met:
            if self.model.indeterminate and self.model.indeterminate[index]:
                chosen = self.mode == index
                table[chosen], admissible[chosen] = self._shared(index, chosen, table[chosen])
        self._fill_change_points(table)
        return table, admissible

    def _fill_change_points(self, table: Floats) -> None:
        """Replace forces without a chart, in a change point, by the smallest ones of the remaining rows."""
        for k in np.flatnonzero(~np.isfinite(table).all(axis=1)):
            at = slice(k, k + 1)
            terms = self.model.terms.evaluate(self.t[at], self.x[at], self.context[at])
            M, A, f, gamma = (terms[name][0] for name in ("M", "A", "f", "gamma"))
            known = np.isfinite(table[k])
            held = A[~known]
            matrix = np.block([[M, -held.T], [held, np.zeros((len(held), len(held)))]])
            right = np.concatenate([f + A[known].T @ table[k, known], -gamma[~known]])
            if np.isfinite(matrix).all() and np.isfinite(right).all():
                table[k, ~known] = np.linalg.lstsq(matrix, right, rcond=_RANK)[0][len(M) :]

    def _shared(self, index: int, chosen: Booleans, forces: Floats) -> tuple[Floats, Booleans]:
        """Return the forces to be reported at the rows ``chosen``, of one mode, and whether they are admissible."""
        model, t, x, context = self.model, self.t[chosen], self.x[chosen], self.context[chosen]
        return reported_forces(
            model.layout, model.contacts, model.charts[index].states,
            lambda which, only: model.terms.evaluate(t[which], x[which], context[which], only), x, context, forces,
        )  # fmt: skip

    @cached_property
    def multipliers(self) -> Mapping[str, Floats]:
        """Multipliers by constraint or contact, each of shape (n, rows of that item): forces (N) or torques (N·m)."""
        owners = [row.owner for row in self.model.rows]
        return {
            owner: self.multiplier_table[:, [i for i, name in enumerate(owners) if name == owner]]
            for owner in dict.fromkeys(owners)
        }

    @cached_property
    def report(self) -> Mapping[str, Floats]:
        """Outputs of the model's report program, evaluated once over all rows."""
        out = self.model.report.evaluate(self.t, self.x, self.context)
        return {name: np.broadcast_to(value, (len(self), *np.shape(value)[1:])) for name, value in out.items()}

    @property
    def kinetic_energy(self) -> Floats:
        """Kinetic energy in the Newtonian frame, shape (n,), J."""
        return self.report["kinetic_energy"]

    @property
    def potential_energy(self) -> Floats:
        """Energy of gravity and springs, shape (n,), J."""
        return self.report["potential_energy"]

    @cached_property
    def outputs(self) -> Mapping[str, Floats]:
        """The model's outputs by name, each of shape (n,)."""
        return {name: self.report["outputs"][:, i] for i, name in enumerate(self.model.outputs)}

    @cached_property
    def row_powers(self) -> Floats:
        """Power of every constraint row's force on the motion, λ (A u), shape (n, n_rows), W.

        Of a compliant contact only the work of its moving surface, -λ b: the rest is stored or lost.
        """
        if not self.model.rows:
            return np.zeros((len(self), 0))
        velocity, remainder = self._row_speeds
        power: Floats = self.multiplier_table * velocity
        for _, r in self.model.compliant:
            power[:, r] = -self.multiplier_table[:, r] * remainder[:, r]
        return power

    @cached_property
    def losses(self) -> Floats:
        """Heat made in every compliant contact, shape (n, n_compliant), W (docs/theory.md, "Compliant contacts")."""
        heat = np.zeros((len(self), len(self.model.compliant)))
        if not self.model.compliant:
            return heat
        velocity, remainder = self._row_speeds
        for i, (contact, r) in enumerate(self.model.compliant):
            beyond = self.multiplier_table[:, r] - self.report["restoring"][:, contact]
            heat[:, i] = -beyond * (velocity[:, r] + remainder[:, r])
        return heat

    @cached_property
    def drive_powers(self) -> Floats:
        """Power of the drives of points and frames by time or inputs, shape (n,), W."""
        automaton = self.model.automaton
        program = None if automaton is None else drive_program(automaton)
        if program is None:
            return np.zeros(len(self))
        drive = program.evaluate(self.t, self.x, self.context)
        power: Floats = drive["rest"] + np.einsum("...r,...r->...", drive["momentum"], self.u_dot)
        return power

    @property
    def u_dot(self) -> Floats:
        """Rates of the generalized speeds in the mode of each row, shape (n, n_u)."""
        return self._motion[0]

    @property
    def _modes_met(self) -> list[int]:
        """Modes of the rows; np.unique would import numpy.ma."""
        return np.flatnonzero(np.bincount(self.mode)).tolist()

    @cached_property
    def _motion(self) -> tuple[Floats, Floats]:
        """Rates of the speeds, (n, n_u), and multipliers as the programs of the modes give them, (n, n_rows)."""
        rates, table = np.zeros_like(self.u), np.zeros((len(self), len(self.model.rows)))
        for index in self._modes_met:
            chosen = self.mode == index
            out = self.model.full[index].evaluate(self.t[chosen], self.x[chosen], self.context[chosen], _MOTION)
            rates[chosen] = out["x_dot"][..., self.model.layout.u_slice]
            table[chosen] = out["multipliers"]
        return rates, table

    @cached_property
    def pins(self) -> Pins:
        """Forces and torques in the connections, by name; derived when they are first asked for."""
        return Pins(self)

    @cached_property
    def _row_speeds(self) -> tuple[Floats, Floats]:
        """``A u`` and ``b`` of every row with a force, shape (n, n_rows) each; zero for others."""
        rows = np.flatnonzero(self.multiplier_table.any(axis=0)).tolist()
        terms = self.model.terms.evaluate(self.t, self.x, self.context, {"A": rows, "b": rows})
        n_u = len(self.model.layout.u)
        velocity, remainder = np.zeros((2, len(self), len(self.model.rows)))
        # The speeds of the kinematic rows are zero by definition, so their columns add nothing.
        velocity[:, rows] = np.einsum("...rk,...k->...r", terms["A"][..., :n_u], self.u)
        remainder[:, rows] = terms["b"]
        return velocity, remainder

    def columns(self) -> Iterator[tuple[str, Floats]]:
        """Yield every column by name: states, inputs, memory, multipliers (``lambda.<name>``), outputs, energies."""
        for names, block in ((self.model.layout.q, self.q), (self.model.layout.u, self.u)):
            for i, name in enumerate(names):
                yield name, block[:, i]
        yield from self.inputs.items()
        yield from self.memory.items()
        for i, label in enumerate(self.model.row_labels()):
            yield f"lambda.{label}", self.multiplier_table[:, i]
        yield from self.outputs.items()
        yield "energy.kinetic", self.kinetic_energy
        yield "energy.potential", self.potential_energy
        for name in self.model.pin_outputs:
            yield name, self.pins.column(name)

    def __getitem__(self, name: str) -> Floats:
        """Return the column ``name``, shape (n,); also one of the connections, ``pin.<name>.force``.

        Raises UnknownColumnError if there is no such column; it is an InputError and a KeyError.
        """
        for names, block in ((self.model.layout.q, self.q), (self.model.layout.u, self.u)):
            if name in names:
                return block[:, names.index(name)]
        for table in (self.inputs, self.memory):
            if name in table:
                return table[name]
        if name.startswith("pin."):
            return self.pins.column(name)
        found = dict(self.columns())
        if name not in found:
            raise UnknownColumnError(
                f"this run has no column '{name}'",
                found=name,
                allowed=", ".join(found),
                remedy=did_you_mean(name, found),
            )
        return found[name]


def stacked(parts: Sequence[Samples]) -> Samples:
    """Return rows read by one model, one part after the other."""
    fields = ("t", "x", "mode", "context")
    return Samples(parts[0].model, *(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


SampleBetween: TypeAlias = Callable[[Floats, Integers], Samples]
"""Samples the steps that start at given rows, the second argument, at times within them (s), both of shape (m,)."""


def kernel_context(model: RunModel, held: Floats) -> Floats:
    """Return the programs' context, shape (n, n_c): the parameters before the recorded part.

    ``held``, shape (n, n_held): inputs, discrete variables and slip directions, recorded with the rows.
    """
    parameters = np.broadcast_to(model.parameters, (len(held), len(model.parameters)))
    return np.hstack([parameters, held])


@dataclass
class RecordedSamples:
    """Samples of recorded runs: of all rows, of some, within the steps."""

    model: RunModel
    rows: Rows
    inputs: InputFunction  # the inputs with their rates at times (m,), shape (m, 3 n_w), of all runs
    vectors: Floats | None = None  # shape (runs, n_p): parameters of each run, SI; by default those of the model

    @cached_property
    def all(self) -> Samples:
        """All rows."""
        rows = self.rows
        return Samples(self.model, rows.t, rows.x, rows.mode, self._context(None, rows.held))

    def at(self, numbers: Integers) -> Samples:
        """Return some rows, by their numbers, shape (m,)."""
        rows = self.rows
        context = self._context(numbers, rows.held[numbers])
        return Samples(self.model, rows.t[numbers], rows.x[numbers], rows.mode[numbers], context)

    def between(self, times: Floats, first: Integers) -> Samples:
        """Return the state at times (m,) within the steps from the rows ``first`` (m,).

        The very last row of a run stands for itself.
        """
        rows = self.rows
        x, theta = state_within(rows.t, rows.x, rows.x_dot, rows.x_mid, times, first, slice(None))
        held = rows.held[first]
        inside = theta > 0.0  # at a row itself its own record is exact, and knows from which side it is meant
        held[inside, : 3 * len(self.model.layout.w)] = self.inputs(times[inside])
        return Samples(self.model, times, x, rows.mode[first], self._context(first, held))

    def _context(self, numbers: Integers | None, held: Floats) -> Floats:
        """Return the context of some rows, or of all."""
        if self.vectors is None:
            return kernel_context(self.model, held)
        run = self.rows.runs_of(np.arange(len(self.rows.t)) if numbers is None else numbers)
        return np.hstack([self.vectors[run], held])
