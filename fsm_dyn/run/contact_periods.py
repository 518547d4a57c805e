"""Periods in which compliant contacts are compressed: duration, impulse, largest and mean force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import BoolArray
from fsm_dyn.draw.svg import table
from fsm_dyn.run.energy import POINTS, gauss_points
from fsm_dyn.run.extremes import largest
from fsm_dyn.run.samples import SampleBetween, Samples

_HEADINGS: Final = ("contact", "from, s", "time, s", "impulse", "peak", "at, s", "peak/mean")


@dataclass(frozen=True)
class ContactPeriod:
    """One compression of a compliant contact, from its closing to its opening.

    Attributes
    ----------
    name : str
        Of the contact.
    begin, end : float
        Closing and opening, s; the ends of the run, where it is compressed there.
    whole : bool
        Whether the run has both.
    impulse : float
        Integral of the normal force, N·s.
    peak, peak_time : float
        Largest normal force, N, between the rows too, and its time, s.
    unit : str
        Of the force, N, or N*m along an angle; the impulse is in this times s.
    """

    name: str
    begin: float
    end: float
    whole: bool
    impulse: float
    peak: float
    peak_time: float
    unit: str = "N"

    @property
    def duration(self) -> float:
        """Contact time, s."""
        return self.end - self.begin

    @property
    def mean(self) -> float:
        """Mean normal force, N."""
        return self.impulse / self.duration

    @property
    def peak_over_mean(self) -> float:
        """Ratio of largest and mean force; not a number without a force."""
        return self.peak / self.mean if self.mean else float("nan")


def contact_periods(rows: Samples, starts: BoolArray, between: SampleBetween) -> tuple[ContactPeriod, ...]:
    """Return the compressions of all compliant contacts of a run, in order of time.

    Forces are integrated by Gauss and Legendre within the steps. Rigid contacts have impulses in their place.

    Parameters
    ----------
    rows : Samples
        The recorded rows.
    starts : ndarray of bool, shape (n,)
        Which rows begin an interval of the run; no step leads to them.
    between : SampleBetween
    """
    found = [period for k, row in rows.model.compliant for period in _of_contact(rows, starts, between, k, row)]
    return tuple(sorted(found, key=lambda period: (period.begin, period.name)))


def _of_contact(
    rows: Samples, starts: BoolArray, between: SampleBetween, contact: int, row: int
) -> Iterator[ContactPeriod]:
    t, model = rows.t, rows.model
    closed = np.array([chart.states[contact] != 0 for chart in model.charts])[rows.mode]
    # a step belongs to the mode of its first row
    steps = np.flatnonzero(closed[:-1] & ~starts[1:] & (np.diff(t) > 0.0))
    places, parts = gauss_points(POINTS)
    for part in np.split(steps, np.flatnonzero(t[steps[1:]] > t[steps[:-1] + 1]) + 1):
        if not len(part):
            continue
        h = t[part + 1] - t[part]
        times = t[part, None] + h[:, None] * (0.5 * (places + 1.0))
        inner = between(times.ravel(), np.repeat(part, POINTS)).multiplier_table[:, row]
        peak, when = largest(
            t, rows.multiplier_table[:, row], part, float(t[-1]),
            lambda at, first: between(at, first).multiplier_table[:, row],
        )  # fmt: skip
        begin, end = float(t[part[0]]), float(t[part[-1] + 1])
        impulse = float((0.5 * h[:, None] * parts * inner.reshape(len(part), POINTS)).sum())
        yield ContactPeriod(
            model.contacts[contact].name,
            begin,
            end,
            bool(begin > t[0] and end < t[-1]),
            impulse,
            peak,
            when,
            model.force_units[row] or "N",
        )


def periods_table(periods: Sequence[ContactPeriod]) -> str:
    """Return periods of contact as text, a line for each."""
    rows = [
        (p.name, f"{p.begin:.6f}", f"{p.duration:.6g}", f"{p.impulse:.6g} {p.unit}*s", f"{p.peak:.6g} {p.unit}",
         f"{p.peak_time:.6f}",
         f"{p.peak_over_mean:.4g}")
        for p in periods
    ]  # fmt: skip
    return table(_HEADINGS, rows)
