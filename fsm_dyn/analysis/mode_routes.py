"""Other ways from M, f and rows to accelerations and forces than a mode's own programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.newton_euler import BodyEquations
from fsm_dyn.analysis.random_states import RANK, WORST, null_space
from fsm_dyn.automaton.hybrid_automaton import Automaton, slip_angle
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.modes.embedding import ActiveSet

Array = npt.NDArray[np.float64]
Pair = tuple[Array, Array]

LAGRANGE = "accelerations embedded, and with multipliers (Lagrange)"
COMPLEMENT = "accelerations embedded, and in the orthogonal complement of the rows"
FORCES = "forces of the rows, by their effect on the speeds"
NEWTON_EULER = "accelerations embedded, and by Newton's and Euler's equations of each body"

LOAD_PASSES = 60  # each leaves of an error what friction changes its load by, far less than a half


class ModeRoutes:
    """The equations ``M u̇ = f + G λ``, ``A u̇ + γ = 0`` of a mode in numbers, solved in several ways.

    G is put together here from rows, coefficients of friction and slips; the mode's programs have it as formulas.
    """

    def __init__(self, automaton: Automaton, view: ModeView, codes: Sequence[int], context: Array) -> None:
        self._automaton, self._view, self._context = automaton, view, context
        self._active = ActiveSet.of(automaton.system, codes)
        self.rows = [r for r in self._active.rows if automaton.rows[r].role != "kinematic"]
        self.n_u = len(automaton.terms.layout.u)
        self.has_contact_forces = bool(self._active.sliding or self._active.slipping or self._active.pressed)

    def context_at(self, x: Array) -> Array:
        """Return the context with the slip directions of a state."""
        layout, c = self._automaton.terms.layout, self._context.copy()
        terms = self._automaton.terms.evaluate(0.0, x, c)
        slips = terms["A"][:, : self.n_u] @ x[layout.u_slice] + terms["b"]
        for index in (*(contact for _, contact in self._active.sliding), *self._active.slipping):
            contact, rows = self._automaton.contacts[index], list(self._automaton.contacts[index].tangent_rows)
            turned = float(slip_angle(slips[rows], 0.0, self._automaton.units.speed)) if contact.in_space else 0.0
            c[layout.sigma_slice][index] = turned if contact.in_space else np.sign(slips[rows[0]])
        return c

    def accelerations(self, x: Array) -> Array:
        """Return u̇ of the mode, embedded, in machine code."""
        n_q = len(self._automaton.terms.layout.q)
        return self._view.derivatives(0.0, x[:n_q], x[n_q:], self._inputs)[1]

    def rows_at(self, x: Array) -> Array:
        """Return A of the rows that hold, for the declared speeds."""
        A: Array = self._automaton.terms.evaluate(0.0, x, self._context)["A"][self.rows][:, : self.n_u]
        return A

    def compare(self, x: Array, bodies: BodyEquations | None) -> dict[str, Pair]:
        """Return both sides of every comparison at a state; none where the motion is not determined there."""
        n = self.n_u
        terms = self._automaton.terms.evaluate(0.0, x, self.context_at(x))
        M, A, gamma = terms["M"][:n, :n], terms["A"][self.rows][:, :n], terms["gamma"][self.rows]
        G, known = self._contact_forces(terms, x)
        known = known + self._bearing_friction(terms, x, (M, terms["f"][:n] + known, A, G, gamma))
        f = terms["f"][:n] + known
        if not np.isfinite(G).all() or not np.isfinite(f).all() or not self._determinate(M, A, G):
            return {}  # a contact that slides without slip has no direction
        u_dot = self.accelerations(x)
        solved, forces = _with_multipliers(M, f, A, G, gamma)
        size = np.abs(np.diag(M)) + 1e-30
        # accelerations and forces may all be zero: then as of speeds reached in a second
        usual = max(float(np.abs(f / size).max(initial=0.0)), float(np.abs(x[-n:]).max(initial=0.0)))

        def scaled(values: Array) -> Array:
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

    def _own_forces(self, x: Array) -> Array:
        """Return λ of all rows by the mode's program, zero for kinematic rows, whose speeds are not among the n_u."""
        n_q = len(self._automaton.terms.layout.q)
        forces = self._view.contact_forces(0.0, x[:n_q], x[n_q:], self._inputs)
        counts: dict[str, int] = {}
        values = np.zeros(len(self._automaton.rows))
        for r, row in enumerate(self._automaton.rows):
            counts[row.name] = counts.get(row.name, -1) + 1
            values[r] = 0.0 if row.role == "kinematic" else forces[row.name][counts[row.name]]
        return values

    def _contact_forces(self, terms: dict[str, Array], x: Array) -> Pair:
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
        self, terms: dict[str, Array], x: Array, equations: tuple[Array, Array, Array, Array, Array]
    ) -> Array:
        """Return the generalized forces (n_u,) of friction in bearings, whose loads are sought by repeated solution."""
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

    def _slip_direction(self, contact: int, slips: Array, A: Array) -> Array:
        """Return what a unit force along the slip adds to the generalized forces."""
        rows = list(self._automaton.contacts[contact].tangent_rows)
        with np.errstate(invalid="ignore"):
            unit = slips[rows] / np.linalg.norm(slips[rows])
        found: Array = unit @ A[rows][:, : self.n_u]
        return found

    def _determinate(self, M: Array, A: Array, G: Array) -> bool:
        """Whether accelerations follow, which friction can prevent: Painlevé's paradox, redundant sliding rows."""
        if not self._active.sliding:
            return True
        size = np.sqrt(np.abs(np.diag(M))) + 1e-30
        free, test = null_space(A / size), null_space(G.T / size)
        if free.shape != test.shape:
            return False
        return not free.size or bool(np.linalg.cond(test.T @ (M / np.outer(size, size)) @ free) < WORST)


def _with_multipliers(M: Array, f: Array, A: Array, G: Array, gamma: Array) -> Pair:
    """Solve ``M u̇ = f + G λ``, ``A u̇ = -γ`` as one system in scaled speeds; of least norm where rows are redundant."""
    size, n, m = np.sqrt(np.abs(np.diag(M))) + 1e-30, len(M), len(A)
    whole = np.block([[M / np.outer(size, size), -(G.T / size).T], [A / size, np.zeros((m, m))]])
    solution = np.linalg.lstsq(whole, np.concatenate([f / size, -gamma]), rcond=RANK)[0]
    return np.asarray(solution[:n] / size, dtype=np.float64), np.asarray(solution[n:], dtype=np.float64)


def _in_complement(M: Array, f: Array, A: Array, G: Array, gamma: Array) -> Array:
    free, test = null_space(A), null_space(G.T)
    least = np.zeros(len(M)) - (np.linalg.lstsq(A, gamma, rcond=RANK)[0] if len(A) else 0.0)
    found: Array = least + free @ np.linalg.solve(test.T @ M @ free, test.T @ (f - M @ least))
    return found
