"""Rows of a run with derived quantities: forces, energies, outputs, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from fsm_dyn.errors import UnknownColumnError, did_you_mean
from fsm_dyn.results.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.results.drive_power import drive_program
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.shares import reported_forces

_RANK: Final = 1e-9  # part of the largest singular value below which a direction is lost


@dataclass(frozen=True, slots=True)
class State:
    """One instant of a run: time (s), mode, coordinates ``q`` (n_q,) and speeds ``u`` (n_u,), SI."""

    t: float
    mode: str
    q: FloatArray
    u: FloatArray


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
    t: FloatArray
    x: FloatArray
    mode: IntArray
    context: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def only(self, rows: IntArray) -> Samples:
        """Return some of the rows, by their numbers."""
        return Samples(self.model, self.t[rows], self.x[rows], self.mode[rows], self.context[rows])

    @property
    def q(self) -> FloatArray:
        """Coordinates, shape (n, n_q), in declared order."""
        return self.x[:, self.model.layout.q_slice]

    @property
    def u(self) -> FloatArray:
        """Generalized speeds, shape (n, n_u), in declared order."""
        return self.x[:, self.model.layout.u_slice]

    @property
    def modes(self) -> tuple[str, ...]:
        """Name of the mode per row."""
        return tuple(self.model.modes[i] for i in self.mode)

    @property
    def labels(self) -> tuple[str, ...]:
        """What the mode of each row is called where people read it; a handover changes the mode, not its label."""
        return tuple(self.model.labels[i] for i in self.mode)

    @cached_property
    def inputs(self) -> Mapping[str, FloatArray]:
        """Inputs by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.w, self.context[:, layout.w_slice].T, strict=True))

    @cached_property
    def memory(self) -> Mapping[str, FloatArray]:
        """Memory by name, each of shape (n,)."""
        layout = self.model.layout
        return dict(zip(layout.memory, self.context[:, layout.memory_slice].T, strict=True))

    @cached_property
    def multiplier_table(self) -> FloatArray:
        """Multipliers of all rows, shape (n, n_rows), in the sense of M u̇ = f + Σ Aᵀ λ; zero where not active.

        Of the forces of redundant rows the smallest that the contact laws admit (:mod:`fsm_dyn.results.shares`).
        """
        return self._forces[0]

    @property
    def admissible(self) -> BoolArray:
        """Whether the forces of redundant contacts keep the contact laws, shape (n,); where none do, the smallest."""
        return self._forces[1]

    @cached_property
    def _forces(self) -> tuple[FloatArray, BoolArray]:
        table = np.zeros((len(self), len(self.model.rows)))
        admissible = np.ones(len(self), dtype=np.bool_)
        if not self.model.rows:
            return table, admissible
        for index in np.flatnonzero(np.bincount(self.mode)).tolist():  # np.unique imports numpy.ma
            chosen = self.mode == index
            out = self.model.full[index].evaluate(self.t[chosen], self.x[chosen], self.context[chosen])
            table[chosen] = out["multipliers"]
            if self.model.indeterminate and self.model.indeterminate[index]:
                table[chosen], admissible[chosen] = self._shared(index, chosen, table[chosen])
        self._fill_change_points(table)
        return table, admissible

    def _fill_change_points(self, table: FloatArray) -> None:
        """Replace forces that no chart gives, in a change point, by the smallest ones of the rows that remain."""
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

    def _shared(self, index: int, chosen: BoolArray, forces: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the forces to be reported at the rows ``chosen``, of one mode, and whether they are admissible."""
        model, t, x, context = self.model, self.t[chosen], self.x[chosen], self.context[chosen]
        return reported_forces(
            model.layout, model.contacts, model.charts[index].states,
            lambda which, only: model.terms.evaluate(t[which], x[which], context[which], only), x, context, forces,
        )  # fmt: skip

    @cached_property
    def multipliers(self) -> Mapping[str, FloatArray]:
        """Multipliers by constraint or contact, each of shape (n, rows of that item): forces (N) or torques (N·m)."""
        owners = [row.owner for row in self.model.rows]
        return {
            owner: self.multiplier_table[:, [i for i, name in enumerate(owners) if name == owner]]
            for owner in dict.fromkeys(owners)
        }

    @cached_property
    def report(self) -> Mapping[str, FloatArray]:
        """What the model's report program gives, evaluated once over all rows."""
        out = self.model.report.evaluate(self.t, self.x, self.context)
        return {name: np.broadcast_to(value, (len(self), *np.shape(value)[1:])) for name, value in out.items()}

    @property
    def kinetic_energy(self) -> FloatArray:
        """Kinetic energy in the Newtonian frame, shape (n,), J."""
        return self.report["kinetic_energy"]

    @property
    def potential_energy(self) -> FloatArray:
        """Energy of gravity and springs, shape (n,), J."""
        return self.report["potential_energy"]

    @cached_property
    def outputs(self) -> Mapping[str, FloatArray]:
        """The model's outputs by name, each of shape (n,)."""
        return {name: self.report["outputs"][:, i] for i, name in enumerate(self.model.outputs)}

    @cached_property
    def row_powers(self) -> FloatArray:
        """Power of every constraint row's force on the motion, λ (A u), shape (n, n_rows), W.

        Of a compliant contact only what its moving surface puts in, -λ b: the rest is stored or lost.
        """
        if not self.model.rows:
            return np.zeros((len(self), 0))
        velocity, remainder = self._row_speeds
        power: FloatArray = self.multiplier_table * velocity
        for _, r in self.model.compliant:
            power[:, r] = -self.multiplier_table[:, r] * remainder[:, r]
        return power

    @cached_property
    def losses(self) -> FloatArray:
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
    def drive_powers(self) -> FloatArray:
        """Power of what moves points and frames by time or inputs, shape (n,), W."""
        automaton = self.model.automaton
        program = None if automaton is None else drive_program(automaton)
        if program is None:
            return np.zeros(len(self))
        drive = program.evaluate(self.t, self.x, self.context)
        u_dot = np.zeros_like(self.u)
        for index in np.flatnonzero(np.bincount(self.mode)).tolist():
            chosen = self.mode == index
            out = self.model.full[index].evaluate(self.t[chosen], self.x[chosen], self.context[chosen])
            u_dot[chosen] = out["x_dot"][..., self.model.layout.u_slice]
        power: FloatArray = drive["rest"] + np.einsum("...r,...r->...", drive["momentum"], u_dot)
        return power

    @cached_property
    def _row_speeds(self) -> tuple[FloatArray, FloatArray]:
        """``A u`` and ``b`` of every row that bears a force, shape (n, n_rows) each; zero for others."""
        rows = np.flatnonzero(self.multiplier_table.any(axis=0)).tolist()
        terms = self.model.terms.evaluate(self.t, self.x, self.context, {"A": rows, "b": rows})
        n_u = len(self.model.layout.u)
        velocity, remainder = np.zeros((2, len(self), len(self.model.rows)))
        # The speeds of the kinematic rows are zero by definition, so their columns add nothing.
        velocity[:, rows] = np.einsum("...rk,...k->...r", terms["A"][..., :n_u], self.u)
        remainder[:, rows] = terms["b"]
        return velocity, remainder

    def columns(self) -> Iterator[tuple[str, FloatArray]]:
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

    def __getitem__(self, name: str) -> FloatArray:
        """Return the column ``name``, shape (n,).

        Raises
        ------
        UnknownColumnError
            If there is no such column; it is an InputError and a KeyError.
        """
        for names, block in ((self.model.layout.q, self.q), (self.model.layout.u, self.u)):
            if name in names:
                return block[:, names.index(name)]
        for table in (self.inputs, self.memory):
            if name in table:
                return table[name]
        found = dict(self.columns())
        if name not in found:
            raise UnknownColumnError(
                f"this run has no column '{name}'",
                found=name,
                allowed=", ".join(found),
                remedy=did_you_mean(name, found),
            )
        return found[name]


SampleBetween: TypeAlias = Callable[[FloatArray, IntArray], Samples]
"""Samples the steps that start at given rows, the second argument, at times within them (s), both of shape (m,)."""


def kernel_context(model: RunModel, held: FloatArray) -> FloatArray:
    """Return the programs' context, shape (n, n_c): the parameters before what was recorded with the rows.

    Parameters
    ----------
    model : RunModel
        Of the run.
    held : ndarray, shape (n, n_held)
        Inputs, discrete variables and slip directions, recorded with the rows.
    """
    parameters = np.broadcast_to(model.parameters, (len(held), len(model.parameters)))
    return np.hstack([parameters, held])
