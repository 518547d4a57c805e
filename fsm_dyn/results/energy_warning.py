"""Whether the energy balance of a run closes: a warning where it does not (docs/theory.md, "The energy balance")."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.results.arrays import FloatArray, IntArray
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
        if not fixed_steps and not _rates_are_contradicted(record, len(rows.model.layout.q)):
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


def _rates_are_contradicted(record: RunRecord, n_q: int) -> bool:
    """Whether the middles of steps contradict their ends and rates, by a part of the largest value of some speed."""
    ends = np.flatnonzero(~record.starts)
    speeds = slice(n_q, None)
    h = (record.t[ends] - record.t[ends - 1])[:, None]
    before, after = record.x[ends - 1, speeds], record.x[ends, speeds]
    rates = record.x_dot[ends - 1, speeds] - record.x_dot[ends, speeds]
    off = np.abs(record.x_mid[ends, speeds] - 0.5 * (before + after) - 0.125 * h * rates).sum(axis=0)
    largest = np.abs(record.x[:, speeds]).max(axis=0, initial=0.0)
    return bool((~(off <= _UNEXPLAINED * largest)).any())
