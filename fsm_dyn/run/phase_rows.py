"""Rows of runs with additional ones at the ends of phases, for requirements on phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsm_dyn.core.arrays import FloatArray, IntArray
from fsm_dyn.run.extremes import state_within
from fsm_dyn.run.phase_visits import PhaseVisit
from fsm_dyn.run.rows import Rows
from fsm_dyn.run.samples import RecordedSamples


def with_phase_rows(
    samples: RecordedSamples, visits: Sequence[Sequence[PhaseVisit]]
) -> tuple[RecordedSamples, IntArray]:
    """Return the samples of runs with a row at the start of every visit, and the phase after each row.

    The parts of a cut step have its quartic: their ends, rates and middles are on it.

    Parameters
    ----------
    samples : RecordedSamples
    visits : sequence of sequences of PhaseVisit
        Of each run.

    Returns
    -------
    samples : RecordedSamples
    phase : ndarray of int, shape (n,)
        Number of the phase in the step from each row.
    """
    rows = samples.rows
    times, first = _cuts(rows, visits)
    if len(times):
        rows = _cut(samples, times, first)
    phase = np.empty(len(rows.t), dtype=np.int64)
    for run, own in enumerate(visits):
        part = slice(rows.begin[run], rows.begin[run + 1])
        begins, numbers = (np.array(column) for column in zip(*((v.begin, v.phase) for v in own), strict=True))
        phase[part] = numbers[np.maximum(np.searchsorted(begins, rows.t[part], side="right") - 1, 0)]
    return RecordedSamples(samples.model, rows, samples.inputs, samples.vectors), phase


def _cuts(rows: Rows, visits: Sequence[Sequence[PhaseVisit]]) -> tuple[FloatArray, IntArray]:
    """Return the starts of visits within steps, s, and the first rows of these steps, both of shape (m,)."""
    times, first = [], []
    for run, own in enumerate(visits):
        begin, end = int(rows.begin[run]), int(rows.begin[run + 1])
        for visit in own[1:]:
            row = begin + int(np.searchsorted(rows.t[begin:end], visit.begin, side="right")) - 1
            if rows.t[row] < visit.begin and row + 1 < end:
                times.append(visit.begin)
                first.append(row)
    return np.array(times), np.array(first, dtype=np.int64)


def _cut(samples: RecordedSamples, times: FloatArray, first: IntArray) -> Rows:
    """Return the rows of runs with additional ones at times (m,) within the steps from the rows (m,)."""
    rows = samples.rows
    place = np.insert(np.arange(len(rows.t)), first + 1, first)
    added = np.insert(np.zeros(len(rows.t), dtype=np.bool_), first + 1, True)
    t = np.insert(rows.t, first + 1, times)
    x, x_dot, x_mid, held = (part[place] for part in (rows.x, rows.x_dot, rows.x_mid, rows.held))
    known = (rows.t, rows.x, rows.x_dot, rows.x_mid)
    x[added] = state_within(*known, times, first, slice(None))[0]
    x_dot[added] = _rates(rows, times, first)
    held[added] = samples.between(times, first).context[:, -rows.held.shape[1] :] if held.shape[1] else held[added]
    ends = np.flatnonzero(added | np.concatenate([[False], added[:-1]]))  # last rows of parts of steps
    halfway = 0.5 * (t[ends - 1] + t[ends])
    x_mid[ends] = state_within(*known, halfway, place[ends - 1], slice(None))[0]
    begin = rows.begin + np.searchsorted(first, rows.begin, side="left")
    return Rows(t, x, x_dot, x_mid, rows.mode[place], held, begin=begin)


def _rates(rows: Rows, times: FloatArray, first: IntArray) -> FloatArray:
    """Return the rates of the quartics of steps at times within them, shape (m, n_x)."""
    t, x, x_dot, x_mid = rows.t, rows.x, rows.x_dot, rows.x_mid
    step = (t[first + 1] - t[first])[:, None]
    s = (times - t[first])[:, None] / step
    x0, x1 = x[first], x[first + 1]
    d0, d1 = x_dot[first], x_dot[first + 1]
    cubic = 6.0 * s * (1.0 - s) * (x1 - x0) / step + (1.0 - s) * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1
    middle_of_cubic = 0.5 * (x0 + x1) + 0.125 * step * (d0 - d1)
    return np.asarray(cubic + 32.0 * s * (1.0 - s) * (1.0 - 2.0 * s) * (x_mid[first + 1] - middle_of_cubic) / step)
