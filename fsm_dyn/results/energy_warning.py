"""Whether the energy balance of a run closes: a warning where it does not (docs/theory.md, "The energy balance")."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.results.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.results.energy import EnergyBalance, energy_balance
from fsm_dyn.results.record import RunRecord
from fsm_dyn.results.samples import SampleBetween, Samples

LIMIT: Final = 0.01  # share of the energy exchanged that may remain unexplained
_UNEXPLAINED: Final = 0.01  # part of a speed that its rates may leave unexplained, summed over the steps of a run
_ROUNDING: Final = 1e-10  # part of the energies that their rounding adds up to
_TINIEST: Final = 1e-30  # J


def energy_warnings(rows: Samples, record: RunRecord, between: SampleBetween, fixed_steps: bool) -> tuple[str, ...]:
    """Return a sentence if the energy balance of a run does not close, none if it does.

    The balance itself takes longer than most runs.  With an error control it can be open only where the states of a
    step contradict their rates, which the recorded rows show; with fixed steps nothing watches the error, and the
    balance is drawn up with one point per step first.

    Parameters
    ----------
    rows, record, between
        The run: its recorded rows, all that was recorded, and samples within its steps.
    fixed_steps : bool
        Whether the run had no error control.

    Returns
    -------
    tuple of str
    """
    if len(rows) < 2 or not _is_finite(record):
        return ()

    def without_shares(times: FloatArray, first: IntArray) -> Samples:
        found = between(times, first)  # how redundant forces are shared changes no work
        return replace(found, model=replace(found.model, indeterminate=()))

    with np.errstate(all="ignore"):  # energies may overflow where states do not: such a balance is not open
        if not fixed_steps:
            first, speeds = np.array([0, len(record.t)]), slice(len(rows.model.layout.q), None)
            parts = (part[:, speeds] for part in (record.x, record.x_dot, record.x_mid))
            if not rates_are_contradicted(first, record.t, *parts)[0]:
                return ()
        balance = energy_balance(rows, record.starts, without_shares, points=1 if fixed_steps else 5)
        if fixed_steps and _is_open(balance):
            balance = energy_balance(rows, record.starts, without_shares)
        return (_sentence(balance, rows.t),) if _is_open(balance) else ()


def _is_finite(record: RunRecord) -> bool:
    """Whether all states and rates are finite: a run that ends where they are not has no balance."""
    tables = (record.x, record.x_dot, record.x_mid[~record.starts])
    return all(bool(np.isfinite(table).all()) for table in tables)


def _is_open(balance: EnergyBalance) -> bool:
    """Whether more is unexplained than the limit, and than the rounding of the energies."""
    least = LIMIT * balance.exchanged + _ROUNDING * float(np.abs(balance.total).max()) + _TINIEST
    return float(np.abs(balance.residual).max()) > least


def _sentence(balance: EnergyBalance, t: FloatArray) -> str:
    step = int(np.argmax(np.abs(np.diff(balance.residual))))
    return (
        f"the energy balance does not close: {balance.relative_residual:.1%} of the energy exchanged is unexplained, "
        f"most of it between t = {t[step]:.6g} s and {t[step + 1]:.6g} s; shorten the steps or reduce the tolerances "
        "until it closes"
    )


def rates_are_contradicted(
    first_row: IntArray, t: FloatArray, u: FloatArray, u_dot: FloatArray, u_mid: FloatArray
) -> BoolArray:
    """Return in which runs the middles of steps contradict their ends and rates, by a part of a speed's largest value.

    Parameters
    ----------
    first_row : ndarray of int, shape (runs + 1,)
        Where each run begins among the rows, and the end.
    t : ndarray, shape (n,)
        s
    u, u_dot, u_mid : ndarray, shape (n, n_u)
        Speeds, their rates, and the speeds in the middle of the step that ends at a row.

    Returns
    -------
    ndarray of bool, shape (runs,)
    """
    h = np.zeros((len(t), 1))
    h[1:, 0] = t[1:] - t[:-1]
    is_step = h[:, 0] > 0.0
    is_step[first_row[:-1]] = False
    off = np.zeros_like(u)
    off[1:] = np.abs(u_mid[1:] - 0.5 * (u[:-1] + u[1:]) - 0.125 * h[1:] * (u_dot[:-1] - u_dot[1:]))
    off[~is_step] = 0.0
    off = np.add.reduceat(off, first_row[:-1], axis=0)
    largest = np.maximum.reduceat(np.abs(u), first_row[:-1], axis=0)
    contradicted: BoolArray = np.asarray((~(off <= _UNEXPLAINED * largest)).any(axis=1), np.bool_)
    return contradicted
