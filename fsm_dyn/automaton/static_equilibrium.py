"""Static equilibria with unilateral contacts and friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState, check_names, find_initial_state, fixed_codes
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.assembly import PrescribedValues
from fsm_dyn.derive.elimination import least_squares, norm, product
from fsm_dyn.language.laws import FREE, HELD, SLIDING
from fsm_dyn.language.units import ENERGY
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import gradient

# -- Static forces of many contacts for one displacement -----------------------------------------------------
#
# A complementarity problem solved by relaxation. For forces ``λ`` and responses ``w = K λ + d`` every normal obeys ``0
# ≤ λ_n ⊥ w_n ≥ 0`` and every tangent ``|λ_t| ≤ bound``, with ``w_t = 0`` unless the bound is reached (docs/theory.md,
# "Statics"). Projected Gauss-Seidel sweeps find the loaded and the sticking contacts; the linear system of this
# candidate then gives full precision. Redundant contacts make K singular, which is harmless. Moreau, *Some numerical
# methods in multibody dynamics*, 1999, section 5.


SWEEPS = 400
SETTLED = 1e-13
PIVOTS = 60
STATIC_FREE, STATIC_HELD, STATIC_SLIPPING = 0, 1, 2
INFINITE = 1e9  # friction limit of a contact of infinite friction, in normal forces


@dataclass(frozen=True)
class Unknowns:
    """Kinds and bounds of the unknowns.

    ``kind`` 0: normal, 1: tangent; ``normal`` the place of a tangent's normal force (-1: the bound is a force);
    ``bound`` the coefficient or the force; ``drive`` the sign of a slip that continues under any forces, else 0.
    """

    kind: Integers
    normal: Integers
    bound: Floats
    drive: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def limit(self, i: int, forces: Floats) -> float:
        """The largest force of tangent ``i``."""
        normal = self.normal[i]
        return float(self.bound[i]) * (max(float(forces[normal]), 0.0) if normal >= 0 else 1.0)


def solve_contacts(K: Floats, d: Floats, unknowns: Unknowns, guess: Floats) -> Floats:
    """Return the forces, shape (n,), from a guess of them.

    ``K``, shape (n, n): response of each row to a unit force along each. ``d``, shape (n,): response of each row
    without forces; for normals the gap. ``unknowns``: kinds and limits of the forces. ``guess``, shape (n,): forces, N
    or N m. Returns the forces, N or N m; shape (n,).
    """
    forces = guess.copy()
    diagonal = np.maximum(np.diag(K), 1e-14 * max(float(np.abs(K).max(initial=0.0)), 1e-300))
    for _ in range(SWEEPS):
        change = 0.0
        for i in range(len(unknowns)):
            new = forces[i] - float((K[i] * forces).sum() + d[i]) / diagonal[i]
            new = _admitted(unknowns, i, new, forces)
            change = max(change, abs(new - forces[i]))
            forces[i] = new
        if change <= SETTLED * (1.0 + np.abs(forces).max(initial=0.0)):
            break
    found = _polished(K, d, unknowns, forces)
    if found is None:
        found = _pivoted(K, d, unknowns, forces, diagonal)
    return forces if found is None else found


def _admitted(unknowns: Unknowns, i: int, value: float, forces: Floats) -> float:
    if unknowns.kind[i] == 0:
        return max(value, 0.0)
    limit = unknowns.limit(i, forces)
    if unknowns.drive[i] != 0.0:
        return -float(unknowns.drive[i]) * limit
    return min(max(value, -limit), limit)


def _polished(K: Floats, d: Floats, unknowns: Unknowns, forces: Floats) -> Floats | None:
    """Solve the equations of the candidate of the sweeps; None if it is inconsistent."""
    small = 1e-9 * (1.0 + np.abs(forces).max(initial=0.0))
    choice = np.zeros(len(unknowns), dtype=np.int64)
    for i in range(len(unknowns)):
        if unknowns.kind[i] == 0:
            choice[i] = STATIC_HELD if forces[i] > 0.0 else STATIC_FREE
        elif unknowns.drive[i] != 0.0 or abs(forces[i]) >= unknowns.limit(i, forces) - small:
            choice[i] = STATIC_SLIPPING * _direction(unknowns, i, forces[i])
        else:
            choice[i] = STATIC_HELD
    found = _solution(K, d, unknowns, choice, forces)
    return found if _bears(K, d, unknowns, choice, found) else None


def _pivoted(K: Floats, d: Floats, unknowns: Unknowns, forces: Floats, diagonal: Floats) -> Floats | None:
    """Update the candidate by its own solution until it is consistent; None if this does not terminate.

    A normal carries load if ``λ - w/K_ii`` is positive, a tangent sticks if this value is within its bound: Newton's
    method on the complementarity (Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2003), for forces too stiffly
    coupled for the sweeps.
    """
    seen: set[bytes] = set()
    for _ in range(PIVOTS):
        aim = forces - (product(K, forces) + d) / diagonal
        choice = np.zeros(len(unknowns), dtype=np.int64)
        for i in range(len(unknowns)):
            if unknowns.kind[i] == 0:
                choice[i] = STATIC_HELD if aim[i] > 0.0 else STATIC_FREE
            elif unknowns.drive[i] != 0.0 or abs(aim[i]) > unknowns.limit(i, aim):
                choice[i] = STATIC_SLIPPING * _direction(unknowns, i, aim[i])
            else:
                choice[i] = STATIC_HELD
        if choice.tobytes() in seen:
            return None
        seen.add(choice.tobytes())
        forces = _solution(K, d, unknowns, choice, forces)
        if _bears(K, d, unknowns, choice, forces):
            return forces
    return None


def _solution(K: Floats, d: Floats, unknowns: Unknowns, choice: Integers, near: Floats) -> Floats:
    """Forces of a candidate: responses of held rows vanish, free forces are zero, sliding friction is at its bound."""
    n = len(unknowns)
    carry: list[Floats] = []
    offset = np.zeros(n)
    held = [i for i in range(n) if choice[i] == STATIC_HELD and not _idle(unknowns, choice, i)]
    for i in held:
        unit = np.zeros(n)
        unit[i] = 1.0
        if unknowns.kind[i] == 0:
            for t in np.nonzero((unknowns.normal == i) & (unknowns.kind == 1) & (np.abs(choice) == STATIC_SLIPPING))[0]:
                unit[t] = unknowns.bound[t] * np.sign(choice[t])
        carry.append(unit)
    for i in range(n):
        if unknowns.kind[i] == 1 and unknowns.normal[i] < 0 and abs(choice[i]) == STATIC_SLIPPING:
            offset[i] = unknowns.bound[i] * np.sign(choice[i])
    if not held:
        return offset
    basis = np.array(carry).T
    start = least_squares(basis, near - offset, 1e-15)
    remaining = (product(K, product(basis, start) + offset) + d)[held]
    step = least_squares(product(K, basis)[held], -remaining, 1e-12)
    found: Floats = product(basis, start + step) + offset
    return found


def _idle(unknowns: Unknowns, choice: Integers, i: int) -> bool:
    """Whether `i` is a tangent of an unloaded contact."""
    return bool(unknowns.kind[i] == 1 and unknowns.normal[i] >= 0 and choice[unknowns.normal[i]] == STATIC_FREE)


def _bears(K: Floats, d: Floats, unknowns: Unknowns, choice: Integers, found: Floats) -> bool:
    """Whether forces obey every bound, and the answers to them every gap."""
    small = 1e-9 * (1.0 + np.abs(found).max(initial=0.0))
    left = product(K, found) + d
    reach = 1e-9 * (1.0 + np.abs(d).max(initial=0.0))
    for i in range(len(unknowns)):
        if unknowns.kind[i] == 0 and (found[i] < -small or left[i] < -reach):
            return False
        if unknowns.kind[i] == 1 and abs(found[i]) > unknowns.limit(i, found) + small:
            return False
        if choice[i] == STATIC_HELD and not _idle(unknowns, choice, i) and abs(left[i]) > reach:
            return False
        if abs(choice[i]) == STATIC_SLIPPING and unknowns.drive[i] == 0.0 and choice[i] * left[i] > reach:
            return False  # friction would push it on
    return True


def _direction(unknowns: Unknowns, i: int, force: float) -> int:
    """The sense of the force of a sliding tangent."""
    return int(-np.sign(unknowns.drive[i])) if unknowns.drive[i] != 0.0 else int(np.sign(force)) or 1


# -- Static equilibria with unilateral contacts and friction by pseudo-transient continuation ----------------
#
# Each step is one implicit step of a motion without inertia, ``(M/τ - K) v = f + Aᵀ λ`` for the displacement v, with
# the contacts complementary at its end. So the mechanism relaxes, heavily damped, towards a stable rest; from near it
# Newton's method finds the equilibrium of the current contact mode, and whatever it finds must agree with the
# contacts (docs/theory.md, "Statics"). The lengths of the steps follow Kelley and Keyes, *Convergence analysis of
# pseudo-transient continuation*, SIAM J. Numer. Anal. 35 (1998). All of it is done in the mechanism's own units.

NodeArray: TypeAlias = "np.ndarray[Any, Any]"

STEPS = 2000
LONGEST = 0.2  # of one step
FIRST = 1e-3  # the first τ
GROWTH = 4.0
NEWTON_STEPS = 20
YIELDS = 1e-3  # weight of a sticking row relative to a gap
STILL = 1e-12  # a shorter Newton step has converged
TOUCHING = 1e-9
CONE = 1e-9  # of the largest force: forces this little outside their cones are on it
NUDGE = 1e-6  # away from an unstable equilibrium


@dataclass(frozen=True)
class EquilibriumState:
    """A static equilibrium.

    ``q`` (n_q,); ``multipliers`` (n_rows,) in the sense of ``f + Σ Aᵀ λ = 0``, one of several solutions if contacts are
    redundant; contact ``states``; slip directions ``sigma`` (n_contacts,).
    """

    q: Floats
    multipliers: Floats
    states: tuple[int, ...]
    sigma: Floats


def find_equilibrium(
    automaton: Automaton, coordinates: Mapping[str, float], locks: Mapping[int, int], t: float, context: Floats
) -> EquilibriumState:
    """Find a static equilibrium by relaxation from a configuration.

    ``coordinates``: start of the search; the others follow as at any start. ``locks``: states of the locks (the engaged
    ones hold). ``context``, shape (n_c,): parameters and inputs. Raises ModelError: none was found; the message names a
    speed that is not zero.
    """
    return _Settling(automaton, locks, t, context).search(coordinates)


class _Settling:
    def __init__(self, automaton: Automaton, locks: Mapping[int, int], t: float, context: Floats) -> None:
        self.automaton = automaton
        for contact in automaton.contacts:
            if contact.contact_law.loaded:
                raise ModelError(
                    f"'{contact.name}' depends on a reaction, where no rest is searched for yet",
                    automaton.mechanism.contacts[contact.name].where,
                    remedy="give the start itself under `initial`, without `settle`",
                )
            if contact.in_space:
                raise ModelError(
                    f"'{contact.name}' rubs in space, where no rest is searched for yet",
                    automaton.mechanism.contacts[contact.name].where,
                    remedy="give the start itself under `initial`, without `settle`",
                )
        self.layout = automaton.terms.layout
        self.t, self.context = t, context
        self.locks = locks
        self.program = _statics_program(automaton)
        self.own = _OwnUnits(automaton)
        self.held = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "position")]
        self.held += [c.normal_row for i, c in enumerate(automaton.contacts) if c.contact_law.switched and locks.get(i)]

    def search(self, coordinates: Mapping[str, float]) -> EquilibriumState:
        layout, contacts = self.layout, self.automaton.contacts
        states = [self.locks.get(i, SLIDING if c.contact_law.friction_only else FREE) for i, c in enumerate(contacts)]
        q = self.automaton.assemble(states, PrescribedValues(coordinates, {}, self.t, self.context))[: len(layout.q)]
        q = q / self.own.q
        forces = np.zeros(len(self.automaton.rows))
        random = np.random.default_rng(20030818)
        tau, last = FIRST, np.zeros(len(layout.u))
        for _ in range(STEPS):
            step, new_forces, resisted = self._step(q, forces, tau)
            length = float(np.abs(step).max(initial=0.0))
            if not resisted or not length <= LONGEST:
                tau *= 0.25
                if tau < 1e-12:
                    break
                continue
            if length <= LONGEST / 4.0:
                rest = self._newton(self._moved(q, step), new_forces)
                if rest is not None:
                    return rest
            q, forces = self._moved(q, step), new_forces
            if length <= 1e-13:  # balanced, but not at rest: on a ridge
                q = self._moved(q, NUDGE * random.uniform(-1.0, 1.0, len(layout.u)))
            tau *= 0.25 if float((step * last).sum()) < 0.0 else GROWTH  # a reversed step means an overshoot
            last = step
        raise self._given_up(q, forces)

    def _given_up(self, q: Floats, forces: Floats) -> ModelError:
        layout = self.layout
        balance = np.abs(self._balance(self._terms(q, forces), forces)) / self.own.f
        q = q * self.own.q
        return ModelError(
            f"no static equilibrium of '{self.automaton.mechanism.name}' was found:"
            f" '{layout.u[int(np.argmax(balance))]}' still moves",
            self.automaton.mechanism.initial.where,
            found=f"a force of {balance.max():.3g} (N, N*m) out of balance at "
            + ", ".join(f"{name} = {value:.6g}" for name, value in zip(layout.q, q, strict=True)),
            remedy="begin nearer to it (values under initial are where the search starts), or look whether anything"
            " holds it",
        )

    def _moved(self, q: Floats, step: Floats) -> Floats:
        moved: Floats = q + product(
            self._terms(q, np.zeros(len(self.automaton.rows)))["W"][:, : len(self.layout.u)], step
        )
        for first in self.automaton.quaternions:
            moved[first : first + 4] /= norm(moved[first : first + 4])
        return moved

    def _newton(self, q: Floats, forces: Floats) -> EquilibriumState | None:
        """The equilibrium of the current contact mode, if one nearby is stable and consistent with the contacts."""
        n_u, begin = len(self.layout.u), q
        terms = self._terms(q, forces)
        size = float(np.abs(terms["f"][:n_u]).max(initial=0.0))
        active = [*self.held, *self._loaded(terms, forces)]
        for _ in range(NEWTON_STEPS):
            stiffness = -product(terms["force_q"], terms["W"][:, :n_u])
            A, positional = terms["A"][active, :n_u], self._positional(active)
            # if rows are overdetermined, gaps have to close and sticking rows may yield a little
            weight = np.where(positional > 0.0, 1.0, YIELDS)
            matrix = np.block([[stiffness, -A.T], [A * weight[:, None], np.zeros((len(active), len(active)))]])
            right = np.concatenate([self._balance(terms, forces), -terms["residual"][active] * positional])
            solution = least_squares(matrix, right, 1e-11)
            q = self._moved(q, solution[:n_u])
            forces = forces.copy()
            forces[active] += solution[n_u:]
            terms = self._terms(q, forces)
            if not np.abs(q - begin).max(initial=0.0) <= LONGEST:
                return None
            if np.abs(solution[:n_u]).max(initial=0.0) <= STILL:
                break
        else:
            return None
        size = max(
            size, float(np.abs(terms["force_q"]).max(initial=0.0)) * 1e-3, float(np.abs(forces).max(initial=0.0))
        )
        balanced = np.abs(self._balance(terms, forces)).max() <= CONE * size
        return self._rest(q, forces, terms, size) if balanced and self._borne(terms, forces, size) else None

    def _loaded(self, terms: dict[str, Floats], forces: Floats) -> list[int]:
        """Rows of loaded contacts; all sticking ones hold, with or without a friction force."""
        rows = []
        for k, contact in enumerate(self.automaton.contacts):
            idle = contact.contact_law.rigid and forces[contact.normal_row] <= 0.0
            idle |= contact.contact_law.compliant and terms["elastic"][k] <= 0.0
            if contact.contact_law.switched or idle:
                continue
            if contact.contact_law.rigid:
                rows.append(contact.normal_row)
            tangent = contact.tangent_row
            if tangent >= 0 and (contact.sticks_always or abs(terms["b"][tangent]) <= TOUCHING):
                rows.append(tangent)
        return rows

    def _borne(self, terms: dict[str, Floats], forces: Floats, size: float) -> bool:
        """Whether gaps and forces obey the contacts."""
        small = CONE * size
        for k, contact in enumerate(self.automaton.contacts):
            limited = contact.contact_law.force_limit and self.locks.get(k)
            if limited and abs(forces[contact.normal_row]) > terms["static"][k] + small:
                return False
            if contact.contact_law.switched:
                continue
            if contact.contact_law.rigid:
                force, gap = forces[contact.normal_row], terms["residual"][contact.normal_row]
                reached = terms["closes_if"][k] and not _beyond(terms, k)
                if force < -small or (reached and gap < -TOUCHING):
                    return False
            tangent = contact.tangent_row
            if tangent >= 0 and not contact.sticks_always:
                load = terms["elastic"][k] if contact.contact_law.compliant else 1.0
                load = max(forces[contact.normal_row], 0.0) if contact.contact_law.rigid else load
                bound = terms["static"][k] * load
                if abs(forces[tangent]) > bound + small:
                    return False
        return True

    def _terms(self, q: Floats, forces: Floats) -> dict[str, Floats]:
        n_p = len(self.layout.p)
        x = np.concatenate([q * self.own.q, np.zeros(len(self.layout.u))])
        context = np.concatenate([self.context[:n_p], forces * self.own.forces, self.context[n_p:]])
        return self.own.terms(self.program.evaluate(self.t, x, context))

    def _step(self, q: Floats, forces: Floats, tau: float) -> tuple[Floats, Floats, bool]:
        """One implicit step: displacement (n_u,), forces (n_rows,), and whether every displacement is resisted.

        The turn of contact forces with the motion is neglected here: it may reduce the stiffness, and short steps do
        not need it.
        """
        n_u, held = len(self.layout.u), self.held
        bilateral = np.zeros(len(forces))
        bilateral[held] = forces[held]
        terms = self._terms(q, bilateral)
        A = terms["A"][:, :n_u]
        stiffness = -product(terms["force_q"], terms["W"][:, :n_u])
        H = terms["M"][:n_u, :n_u] / tau + stiffness
        unknowns, rows, gaps = self._unknowns(terms)
        if not _positive(H, A[held]):
            return np.zeros(n_u), forces, False
        m = len(held)
        matrix = np.block([[H, -A[held].T], [A[held], np.zeros((m, m))]])
        inverse = least_squares(matrix, np.eye(len(matrix)), 1e-14)
        free = product(inverse, np.concatenate([terms["f"][:n_u], -terms["residual"][held] * self._positional(held)]))
        response = product(inverse, np.vstack([A[rows].T, np.zeros((m, len(rows)))]))
        K = product(A[rows], response[:n_u])
        d = product(A[rows], free[:n_u]) + gaps
        found = solve_contacts(K, d, unknowns, forces[rows]) if len(rows) else np.zeros(0)
        solution = free + product(response, found)
        new = np.zeros(len(forces))
        new[rows] = found
        new[held] = solution[n_u:]
        return solution[:n_u], new, True

    def _positional(self, rows: list[int]) -> Floats:
        return np.array([1.0 if self.automaton.rows[r].positional else 0.0 for r in rows])

    def _unknowns(self, terms: dict[str, Floats]) -> tuple[Unknowns, list[int], Floats]:
        kind: list[int] = []
        normal: list[int] = []
        bound: list[float] = []
        drive: list[float] = []
        rows: list[int] = []
        gaps: list[float] = []
        for k, contact in enumerate(self.automaton.contacts):
            if contact.contact_law.switched:
                continue
            place = -1
            if contact.contact_law.rigid:
                if not terms["closes_if"][k] or _beyond(terms, k):
                    continue
                place = len(rows)
                rows.append(contact.normal_row)
                gaps.append(float(terms["residual"][contact.normal_row]))
                kind, normal, bound, drive = [*kind, 0], [*normal, -1], [*bound, 0.0], [*drive, 0.0]
            if contact.tangent_row >= 0:
                rows.append(contact.tangent_row)
                gaps.append(0.0)
                speed = float(terms["b"][contact.tangent_row])
                moving = abs(speed) > TOUCHING and not contact.sticks_always
                limit = terms["kinetic" if moving else "static"][k]
                limit *= terms["elastic"][k] if contact.contact_law.compliant else 1.0
                kind, normal = [*kind, 1], [*normal, place]
                bound.append(INFINITE if contact.sticks_always else float(limit))
                drive.append(float(np.sign(speed)) if moving else 0.0)
        return Unknowns(np.array(kind, np.int64), np.array(normal, np.int64), np.array(bound), np.array(drive)), rows, \
            np.array(gaps)  # fmt: skip

    def _balance(self, terms: dict[str, Floats], forces: Floats) -> Floats:
        n_u = len(self.layout.u)
        balance: Floats = terms["f"][:n_u] + product(terms["A"][:, :n_u].T, forces)
        return balance

    def _rest(self, q: Floats, forces: Floats, terms: dict[str, Floats], size: float) -> EquilibriumState | None:
        """The equilibrium in its returned form; None if it is unstable."""
        n_u = len(self.layout.u)
        states, sigma, forces = [], np.zeros(len(self.automaton.contacts)), forces.copy()
        active = list(self.held)
        for k, contact in enumerate(self.automaton.contacts):
            if contact.contact_law.switched:
                states.append(self.locks.get(k, 0))
                continue
            slip = float(terms["b"][contact.tangent_row]) if contact.tangent_row >= 0 else 0.0
            if contact.contact_law.compliant:
                if terms["elastic"][k] <= 0.0:
                    states.append(FREE)
                    continue
                forces[contact.normal_row] = terms["elastic"][k]
            if contact.contact_law.rigid:
                near = bool(terms["closes_if"][k]) and abs(terms["residual"][contact.normal_row]) <= TOUCHING
                if not near and forces[contact.normal_row] <= CONE * size:
                    states.append(FREE)
                    continue
                active.append(contact.normal_row)
            if abs(slip) > TOUCHING and not contact.sticks_always:
                states.append(SLIDING)
                sigma[k] = np.sign(slip)
                continue
            states.append(HELD)
            if contact.tangent_row >= 0:
                active.append(contact.tangent_row)
        stiffness = -product(terms["force_q"], terms["W"][:, :n_u])
        if not _positive(stiffness, terms["A"][active, :n_u], strict=False):
            return None
        return EquilibriumState(q * self.own.q, forces * self.own.forces, tuple(states), sigma)


class _OwnUnits:
    """The statics of an automaton in the mechanism's own units: ``q`` times ``q`` are coordinates in SI, and so on."""

    def __init__(self, automaton: Automaton) -> None:
        units, contacts = automaton.units, automaton.contacts
        self.scales, self.q = units.scales, units.q
        self.time = units.scales.time
        self.energy = units.scales.unit(ENERGY)
        self.u = units.u
        self.f = units.u * self.time / self.energy
        self.rows = units.scales.length * units.rows
        self.forces = self.energy / self.rows
        normal = np.array([1.0 / self.forces[c.normal_row] if c.normal_row >= 0 else 1.0 for c in contacts])
        tangent = np.array([1.0 / self.forces[c.tangent_row] if c.tangent_row >= 0 else 1.0 for c in contacts])
        alone = np.array([c.contact_law.friction_only for c in contacts], bool)
        self.elastic, self.friction = normal, np.where(alone, tangent, tangent / normal)

    def terms(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the terms in these units."""
        n_u = len(self.u)
        speeds = self.rows / self.time
        return {
            **values,
            "W": values["W"][:, :n_u] * (self.u * self.time) / self.q[:, None],
            "M": values["M"][:n_u, :n_u] * self.u * self.u[:, None] / self.energy,
            "f": values["f"][:n_u] * self.f,
            "A": values["A"][:, :n_u] * self.u / speeds[:, None],
            "b": values["b"] / speeds,
            "residual": values["residual"] / self.rows,
            "force_q": values["force_q"] * self.f[:, None] * self.q,
            "elastic": values["elastic"] * self.elastic,
            "static": values["static"] * self.friction,
            "kinetic": values["kinetic"] * self.friction,
            **{name: values[name] / self.scales.length for name in ("reach", "aspect") if name in values},
        }


def _beyond(terms: Mapping[str, Floats], k: int) -> bool:
    """Whether a contact is beyond the end of its face, or one of its neighbours is behind the face."""
    return bool("reach" in terms and (terms["reach"][k] < 0.0 or terms["aspect"][k] < -TOUCHING))


def _positive(H: Floats, rows: Floats, *, strict: bool = True) -> bool:
    """Whether every displacement allowed by the rows is resisted."""
    n = len(H)
    null = np.eye(n)
    if len(rows):
        _, sizes, right = np.linalg.svd(rows)
        null = right[int(np.sum(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))) :].T
    if not null.shape[1]:
        return True
    values = np.linalg.eigvalsh(null.T @ (H + H.T) @ null)
    margin = 1e-9 * float(np.abs(H).max(initial=0.0))
    return bool(values.min() > 0.0 if strict else values.min() >= -margin)


def _statics_program(automaton: Automaton) -> Program:
    """The terms at rest with the rows' forces as arguments after the parameters, and the forces' derivative by q."""
    wider, nodes, _, table = statics_nodes(automaton, automaton.terms.layout.q)
    wanted = ("W", "M", "f", "A", "b", "residual", "static", "kinetic", "closes_if", "reach", "aspect", "elastic")
    outputs = {name: nodes[name] for name in wanted if name in nodes}
    return Program.from_nodes(wider, {**outputs, "force_q": table})


def statics_nodes(
    automaton: Automaton, by: Sequence[str]
) -> tuple[Layout, dict[str, NodeArray], list[Node], NodeArray]:
    """Return the terms at rest, the total forces (n_u,), and their derivatives (n_u, n_by) by some arguments.

    ``by``: names of coordinates, parameters and memory. The layout has the rows' forces as arguments after the
    parameters.
    """
    graph, symbols, nodes = automaton.terms.graph()
    layout = automaton.terms.layout
    n_u = len(layout.u)
    names = tuple(f"force.{r}" for r in range(len(automaton.rows)))
    forces = [graph.symbol(name) for name in names]
    f, elastic = list(nodes["f"]), nodes["elastic"]
    for k, contact in enumerate(automaton.contacts):
        if contact.contact_law.compliant:
            within = functions.where(functions.compare(">=", nodes["reach"][k], 0.0), nodes["closes_if"][k], 0.0)
            elastic[k] = elastic[k] * within
            f = [f[i] + elastic[k] * nodes["A"][contact.normal_row, i] for i in range(len(f))]
    nodes = {**nodes, "f": np.array(f, dtype=object), "elastic": elastic}
    total = [sum((nodes["A"][r, i] * force for r, force in enumerate(forces)), start=f[i]) for i in range(n_u)]
    table = np.empty((n_u, len(by)), dtype=object)
    for i, row in enumerate(gradient(total, [symbols[name] for name in by])):
        table[i, :] = row
    wider = Layout(layout.q, layout.u, (*layout.p, *names), layout.w, layout.contacts, layout.memory)
    return wider, nodes, total, table


def equilibrium_initial_state(
    automaton: Automaton,
    values: Mapping[str, float],
    mode: str | None,
    t: float,
    context: Floats,
    *,
    insists: bool = True,
) -> tuple[InitialState, EquilibriumState]:
    """Find the start of a model at rest.

    ``values``: coordinates for the start of the search, and speeds imposed on the mechanism at rest. ``mode``: a mode
    or pattern; its locks hold. ``context``, shape (n_c,): parameters and inputs; slip directions are written into it.
    ``insists``: whether it must come to rest in that mode. Raises InputError: a name is unknown. Raises ModelError:
    there is no equilibrium, or it is in another mode.
    """
    layout = automaton.terms.layout
    check_names(automaton, values)
    fixed = fixed_codes(automaton, mode)
    locks = {i: code for i, code in fixed.items() if automaton.contacts[i].contact_law.switched}
    rest = find_equilibrium(automaton, {name: values[name] for name in layout.q if name in values}, locks, t, context)
    if insists and any(rest.states[i] != code for i, code in fixed.items()):
        raise ModelError(
            f"'{automaton.mechanism.name}' comes to rest in '{automaton.name_of(rest.states).name}'",
            automaton.mechanism.initial.where,
            allowed=f"'{mode}', as initial asks for",
            remedy="leave the mode out, or begin the search nearer to a rest in that mode",
        )
    speeds = {name: values[name] for name in layout.u if name in values}
    if speeds:
        coordinates = dict(zip(layout.q, map(float, rest.q), strict=True))
        return find_initial_state(automaton, {**coordinates, **speeds}, mode, t, context), rest
    context[layout.sigma_slice] = rest.sigma
    return InitialState(np.concatenate([rest.q, np.zeros(len(layout.u))]), rest.states, context), rest
