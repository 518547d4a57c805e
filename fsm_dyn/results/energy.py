"""Energy balance of a run (docs/theory.md, "The energy balance")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.renamed import RenamedAttribute
from fsm_dyn.results.arrays import FloatArray, IntArray
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.samples import SampleBetween, Samples

# Of Gauss and Legendre.  Five are exact to degree nine: a power is a product of two quartics in time, so what the
# quadrature leaves out is below what the quartics leave out.
POINTS: Final = 5
_STEPS_AT_ONCE = 4096
_DISSIPATIVE = frozenset({"tangent", "tangent2", "friction"})


@dataclass(frozen=True)
class EnergyBalance:
    """Energies at every row of a run and what passed in and out up to there; all arrays of shape (n,), J.

    Attributes
    ----------
    kinetic, potential : ndarray
    work : mapping of str to ndarray
        Work done on the motion by every load without a potential.
    friction : mapping of str to ndarray
        Heat made by every contact with friction or a loss of its own; it never decreases.
    constraints : mapping of str to ndarray
        Work done by every other constraint or contact: zero unless it is moved by an input or by time.
    transitions : ndarray
        Sum of the energy changes at transitions: impacts (negative) and user-defined resets (either sign).
    drive : ndarray
        Work done by what moves points and frames by time or inputs; zero where all rest while all speeds are zero.
    """

    kinetic: FloatArray
    potential: FloatArray
    work: Mapping[str, FloatArray]
    friction: Mapping[str, FloatArray]
    constraints: Mapping[str, FloatArray]
    transitions: FloatArray
    drive: FloatArray
    closure = RenamedAttribute("relative_residual")
    throughput = RenamedAttribute("exchanged")

    @property
    def total(self) -> FloatArray:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> FloatArray:
        """Residual of the energy balance: the error of the integration."""
        total = self.total
        explained = total[0] + self.transitions + self.drive
        for table, sign in ((self.work, 1.0), (self.friction, -1.0), (self.constraints, 1.0)):
            for values in table.values():
                explained = explained + sign * values
        residual: FloatArray = total - explained
        return residual

    @property
    def exchanged(self) -> float:
        """Largest entry of the energy balance, the scale of its residual, J."""
        tables = (self.work, self.friction, self.constraints)
        entries = [self.kinetic, self.potential - self.potential[0], self.transitions, self.drive]
        entries += [values for table in tables for values in table.values()]
        return max(float(np.max(np.abs(values), initial=0.0)) for values in entries)

    @property
    def relative_residual(self) -> float:
        """Largest residual relative to the energy exchanged."""
        scale = self.exchanged
        return float(np.max(np.abs(self.residual))) / scale if scale > 0.0 else 0.0


def energy_balance(
    rows: Samples,
    starts: np.ndarray,
    between: SampleBetween,
    points: int = POINTS,
) -> EnergyBalance:
    """Draw up the energy balance of a run.

    Parameters
    ----------
    rows : Samples
        The recorded rows.
    starts : ndarray of bool, shape (n,)
        Which rows begin an interval of the run; no step leads to them.
    between : SampleBetween
    points : int
        At which powers are evaluated in each step.

    Returns
    -------
    EnergyBalance
        Energies and work, J.
    """
    steps = np.flatnonzero(~starts)
    loads = np.zeros((len(rows), len(rows.model.loads)))
    forces = np.zeros((len(rows), len(rows.model.rows)))
    losses = np.zeros((len(rows), len(rows.model.compliant)))
    drive = np.zeros(len(rows))
    for begin in range(0, len(steps), _STEPS_AT_ONCE):
        chunk = steps[begin : begin + _STEPS_AT_ONCE]
        loads[chunk], forces[chunk], losses[chunk], drive[chunk] = _work_in_steps(rows, chunk, between, points)
    loads, forces, losses, drive = (np.cumsum(table, axis=0) for table in (loads, forces, losses, drive))

    total = rows.kinetic_energy + rows.potential_energy
    jumps = np.zeros(len(rows))
    jumps[1:] = np.where(starts[1:], np.diff(total), 0.0)
    friction, constraints = _by_owner(rows.model, forces, losses)
    return EnergyBalance(
        kinetic=rows.kinetic_energy,
        potential=rows.potential_energy,
        work={name: loads[:, i] for i, name in enumerate(rows.model.loads)},
        friction=friction,
        constraints=constraints,
        transitions=np.cumsum(jumps),
        drive=drive,
    )


def _work_in_steps(
    rows: Samples, ends: IntArray, between: SampleBetween, points: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the work of every load and row, the heat of compliant contacts, and the work of drives.

    In the steps that end at the rows ``ends``.
    """
    h = rows.t[ends] - rows.t[ends - 1]
    places, parts = np.polynomial.legendre.leggauss(points)  # on (-1, 1)
    times = rows.t[ends - 1, None] + h[:, None] * (0.5 * (places + 1.0))
    inner = between(times.ravel(), np.repeat(ends - 1, points))
    weights = h[:, None] * (0.5 * parts)

    def integrate(power: FloatArray) -> FloatArray:
        work: FloatArray = np.einsum("sk,skj->sj", weights, power.reshape(*times.shape, -1))
        return work

    n_loads = len(rows.model.loads)
    powers = inner.report["load_powers"] if n_loads else np.zeros((times.size, 0))
    losses = integrate(inner.losses)
    for i, (contact, r) in enumerate(rows.model.compliant):
        # A surface that lags behind gives what it stored to nobody.  It may arrive within a step, at no event: the
        # difference is exact where a quadrature would step over the kink.
        idle = ~inner.multiplier_table[:, r].reshape(times.shape).any(axis=1)
        stored = rows.report["stored"][:, contact]
        losses[idle, i] = (stored[ends - 1] - stored[ends])[idle]
    return integrate(powers), integrate(inner.row_powers), losses, integrate(inner.drive_powers)[:, 0]


def _by_owner(
    model: RunModel, forces: FloatArray, losses: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Split the work of the rows into dissipation by contact and work of driven constraints by owner."""
    friction: dict[str, FloatArray] = {}
    constraints: dict[str, FloatArray] = {}
    for i, row in enumerate(model.rows):
        table, sign = (friction, -1.0) if row.role in _DISSIPATIVE else (constraints, 1.0)
        table[row.owner] = table.get(row.owner, np.zeros(len(forces))) + sign * forces[:, i]
    for i, (_, r) in enumerate(model.compliant):
        owner = model.rows[r].owner
        friction[owner] = friction.get(owner, np.zeros(len(forces))) + losses[:, i]
    return friction, constraints
