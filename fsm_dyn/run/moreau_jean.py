"""Time-stepping run as rows and transitions, in the format of event-driven runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.arrays import Booleans, Codes, Floats, Integers
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.run import outcomes
from fsm_dyn.run import structures as st
from fsm_dyn.run.continuation import Saver
from fsm_dyn.run.executable import FirstRow, SavedState, check
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.loop_state import ModeProvider, RunArrays
from fsm_dyn.run.run_options import TIME_STEPPING, RunOptions, check_step
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    GUARD_WIDTH,
    MAX_FIRED,
    MOST_SWEEPS,
    ContactFlag,
    ContactState,
    EnergyColumn,
    Event,
    Reason,
    RecordColumn,
    Sizes,
    Status,
    TimeSteppingReport,
    TransitionColumn,
)
from fsm_dyn.runtime.layouts import Tables

Parts = tuple[Floats, Floats, Floats, Codes, Floats, Floats, Floats, Floats]

CHUNK = 2000  # steps between heartbeat


# report of the runtime about a run


def run_moreau_jean(
    tables: Tables,
    x0: Floats,
    c0: Floats,
    mode0: int,
    options: RunOptions,
    drive: InputSignals,
    mode_source: ModeProvider,
    saver: Saver | None = None,
    resumed: tuple[SavedState, FirstRow] | None = None,
    bounds: Floats | None = None,
    contact_names: Sequence[str] = (),
) -> RunArrays:
    """Run from time zero with steps of the same length; the run ends with the first outside ``bounds``.

    The mode of a row follows from the impulses of its step; if contact states change, two rows at the end of the step
    hold the speeds without and with the impulses of the contacts, and a transition is recorded.

    ``x0``, shape (n_x,): initial state, SI; ``c0``, shape (n_c,): initial context, SI; ``mode0``: number of the initial
    mode; ``options``: with ``until`` and ``step``; ``mode_source``: provides modes missing in the tables; ``resumed``:
    the state from which the run continues, and its first row; ``bounds``: least and greatest coordinates, SI, shape (2,
    n_q); ``contact_names``: of the contacts, for messages. Warns UserWarning: the contact problems of some steps were
    not solved to their tolerance. Raises InputError: there is no step; it is too long for the compliant contacts of the
    run, or bodies pass through each other in one; or the model has user-defined transitions, sequential impacts or
    Poisson's restitution.
    """
    until, step = options.until or 0.0, options.step or 0.0
    check_step(TIME_STEPPING, options.step)
    _check(tables)
    start = (
        _start(tables, x0, c0, mode0, drive) if resumed is None else _restored(tables, len(x0), drive, resumed, saver)
    )
    status, parts, last = _march(tables, start, until, step, drive, options.progress, saver, bounds)
    report = start.report
    if status == Status.STEP_TOO_LONG:
        longest = _rounded_down(float(report[TimeSteppingReport.LONGEST]))
        if resumed is None:
            longest = _longest_step(tables, x0, c0, mode0, until, step, drive, report[TimeSteppingReport.PASSED] > 0)
        raise _too_long(report, parts[0][-1], step, longest, contact_names)
    if report[TimeSteppingReport.UNSOLVED] > 0 and status != Status.UNSOLVED:
        warnings.warn(_unsolved(report, start.step + len(parts[0]) - 1), stacklevel=4)
    first = resumed[1] if resumed is not None and start.step > 0 else None
    saved = saver.saved_of(status) if saver is not None else None
    return _as_run(tables, mode0, parts, mode_source, status, first, saved, last, start.approaches != 0)


def _check(tables: Tables) -> None:
    """Raise InputError for a model with unsupported transitions or laws."""
    if np.any(tables.transitions[:, TransitionColumn.STOP] == 3):
        raise InputError("method 'moreau_jean' does not support kinks of held rows", remedy="use method='dopri5'")
    if np.any(tables.transitions[:, TransitionColumn.STOP] != 2):
        raise InputError("method 'moreau_jean' does not support user-defined transitions", remedy="use method='dopri5'")
    _check_laws(tables)


def _too_long(report: Floats, time: float, step: float, longest: float, contact_names: Sequence[str]) -> InputError:
    """Return the error for a step (s) too long at a time (s)."""
    contact = int(report[TimeSteppingReport.PASSED]) - 1
    what = (
        "is too long for a compliant contact" if contact < 0 else
        f"is so long that contact {contact_names[contact]!r} is passed through"
    )  # fmt: skip
    return InputError(
        f"the step of method 'moreau_jean' {what} at t = {time:.6g} s",
        found=f"step = {step:.6g} s",
        allowed=f"at most {longest:.3g} s",
        remedy="a shorter step, or method='dopri5' or 'radau'",
    )


def _unsolved(report: Floats, count: int) -> str:
    """Return the warning of unsolved contact problems, given the number of all."""
    return (
        f"{int(report[TimeSteppingReport.UNSOLVED])} of {count} contact problems were not "
        f"solved, the first at t = {report[TimeSteppingReport.FIRST_UNSOLVED]:.6g} s: after {MOST_SWEEPS} sweeps a "
        f"speed still changed by {report[TimeSteppingReport.WORST_UNSOLVED]:.1e} of the largest"
    )


@dataclass
class _Beginning:
    """Start of a run: after step number ``step`` of it, in segment ``segment`` of the inputs.

    ``approaches``: of each contact, 1 if it begins closed with a speed of approach.
    """

    x: Floats
    c: Floats
    codes: Codes
    free_side: Codes
    approaches: Codes
    report: Floats
    segment: int
    step: int = 0


def _start(tables: Tables, x0: Floats, c0: Floats, mode0: int, drive: InputSignals) -> _Beginning:
    """Return the start of a run."""
    c, s = c0.copy(), tables.sizes
    c[int(s[Sizes.N_P]) : int(s[Sizes.N_P] + 3 * s[Sizes.N_W])] = drive(np.zeros(1), c0)[0]
    (sides, approaches), report = _none_of_contacts(s), np.zeros(TimeSteppingReport.COUNT)
    return _Beginning(x0, c, tables.mode_states[mode0], sides, approaches, report, drive.segment_at(0.0))


def _none_of_contacts(sizes: Any) -> Codes:
    """Return zeros for two properties of each contact."""
    return np.zeros((2, int(sizes[Sizes.N_CONTACTS])), np.int8)


def _restored(
    tables: Tables, n_x: int, drive: InputSignals, resumed: tuple[SavedState, FirstRow], saver: Saver | None
) -> _Beginning:
    """Return the start of a continued run; raise InputError if its saved state is refused."""
    s, digest = tables.sizes, saver.digest if saver is not None else 0
    arrays = _arrays(tables, n_x, 1)
    (sides, approaches), report = _none_of_contacts(s), np.zeros(TimeSteppingReport.COUNT)
    run = library.time_stepping(0, report, times=np.zeros(1), free_side=sides, **arrays)
    segments = len(drive.arrays.start)
    result, step = library.restore_steps(st.TABLES.pack(tables).address, run, segments, digest, resumed[0].words)
    check(result)
    return _Beginning(arrays["x"][0], arrays["c"][0], arrays["codes"][0], sides, approaches, report, run.segment, step)


def _arrays(tables: Tables, n_x: int, n: int) -> dict[str, NDArray[Any]]:
    """Return room for this number of rows."""
    s = tables.sizes
    widths = {
        "x": n_x,
        "c": st.context_length(s),
        "free_speeds": s[Sizes.N_U],
        "middle": n_x,
        "impulses": s[Sizes.N_ROWS],
    }
    arrays: dict[str, NDArray[Any]] = {name: np.zeros((n, int(width))) for name, width in widths.items()}
    return arrays | {
        "codes": np.zeros((n, int(s[Sizes.N_CONTACTS])), np.int8),
        "energies": np.zeros((n, EnergyColumn.WIDTH)),
    }


def _march(
    tables: Tables, start: _Beginning, until: float, step: float, drive: InputSignals,
    progress: Callable[[float], None] | None, saver: Saver | None = None, bounds: Floats | None = None,
) -> tuple[int, Parts, int]:  # fmt: skip
    """Take all steps; return how they ended, the rows of all arrays, and the last row at an instant ``k step``.

    There the state is saved: the step after it may be shortened to the end of the run.
    """
    count = max(int(np.ceil(until / step - 1e-9)), start.step)
    grid = step * np.arange(start.step, count + 1)
    times = np.minimum(grid, until)
    count -= start.step
    last = count if times[count] == grid[count] else count - 1
    arrays = _arrays(tables, len(start.x), count + 1)
    arrays["x"][0], arrays["c"][0], arrays["codes"][0] = start.x, start.c, start.codes
    arrays["middle"][0], arrays["free_speeds"][0] = start.x, start.x[int(tables.sizes[Sizes.N_Q]) :]
    packed = st.TABLES.pack(tables)
    _, work_packed = st.new_work(tables, 1, int(tables.sizes[Sizes.N_CONTACTS]))
    row, segment, status = 0, start.segment, int(Status.DONE)
    first = (0.0, arrays["x"][0], arrays["c"][0], arrays["codes"][0], start.free_side, start.approaches)
    if start.step == 0 and not library.moreau_jean_may_start(packed.address, work_packed.address, *first):
        status = Status.PENETRATION
    while status == Status.DONE:
        if row == last and saver is not None:
            run = library.time_stepping(segment, start.report, times=times, free_side=start.free_side, **arrays)
            run.row = row
            words = library.save_steps(packed.address, run, start.step + row, saver.digest)
            saver.keep(SavedState(words, 0, 0, 0))
        if row == count:
            break
        goal = min(row + CHUNK, last if row < last else count)
        part = slice(row, goal + 1)
        status, reached, segment = library.moreau_jean_steps(
            packed.address, drive.packed.address, work_packed.address, segment, start.report, times=times[part],
            free_side=start.free_side, **{name: array[part] for name, array in arrays.items()},
        )  # fmt: skip
        if bounds is not None and (beyond := _first_beyond(arrays["x"][row + 1 : row + reached + 1], bounds)) >= 0:
            status, reached = Status.LEFT_RANGE, beyond + 1
        row += reached
        if progress is not None and status == Status.DONE:
            progress(float(times[row]))
    names = ("x", "c", "codes", "free_speeds", "middle", "impulses", "energies")
    x, c, codes, free, middle, impulses, energies = (arrays[name][: row + 1] for name in names)
    return int(status), (times[: row + 1], x, c, codes, free, middle, impulses, energies), last


def _first_beyond(x: Floats, bounds: Floats) -> int:
    """Return the first row in which a coordinate is out of its bounds, -1 if there is none."""
    q = x[:, : bounds.shape[1]]
    beyond = np.flatnonzero(((q < bounds[0]) | (q > bounds[1])).any(axis=1))
    return int(beyond[0]) if len(beyond) else -1


def _longest_step(
    tables: Tables, x0: Floats, c0: Floats, mode0: int, until: float, step: float, drive: InputSignals,
    passes: bool = False,
) -> float:  # fmt: skip
    """Return a step with which the run is not refused, and at most a tenth shorter than one with which it is.

    Too long a step goes too deep, so its limit is not the one of the motion: lengths are tried out.  If bodies
    pass through each other (``passes``) a longer step may meet them by chance: then the limit met is taken.
    """

    def refused(length: float) -> float:
        start = _start(tables, x0, c0, mode0, drive)
        status, _, _ = _march(tables, start, until, length, drive, None)
        return float(start.report[TimeSteppingReport.LONGEST]) if status == Status.STEP_TOO_LONG else np.inf

    low, high, limit = step, step, refused(step)
    while np.isfinite(limit):
        low, high = _rounded_down(min(limit, 0.9 * low)), low
        limit = refused(low)
    if passes:
        return low
    while high > 1.1 * low:
        between = _rounded_down(np.sqrt(low * high))
        if not low < between < high:
            break
        low, high = (low, between) if np.isfinite(refused(between)) else (between, high)
    return low


def _rounded_down(value: float) -> float:
    """Return the largest number of three digits not above a positive value."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 2)
    return float(f"{np.floor(value / unit * (1.0 + 1e-12)) * unit:.3g}")


def _check_laws(tables: Tables) -> None:
    """Raise InputError if the model's impacts follow another law, and so lead to other motions."""
    if tables.sizes[Sizes.SEQUENTIAL]:
        raise InputError(
            "method 'moreau_jean' takes all impacts of a step at once, and this model's are sequential",
            remedy="use method='dopri5', or impacts: simultaneous",
        )
    if np.any(tables.contact_flags & ContactFlag.POISSON):
        raise InputError(
            "method 'moreau_jean' follows Newton's law of restitution, and this model has contacts with Poisson's",
            remedy="use method='dopri5', or restitution_law: newton",
        )


def _as_run(
    tables: Tables,
    mode0: int,
    parts: Parts,
    mode_source: ModeProvider,
    status: int,
    first: FirstRow | None,
    saved: SavedState | None,
    last: int,
    approaches: Booleans,
) -> RunArrays:
    """Number the modes reached, double the rows at their changes, and record the changes.

    ``first``: the row before the first step, if one led there; ``saved``: the state after row ``last``, if the run can
    be continued; ``approaches``: contacts that begin closed and strike in the first step.
    """
    times, x, c, codes, free, middle, impulses, _ = parts
    tables, modes = _numbers(tables, mode0, codes, times, x, c, mode_source)
    n, n_q, n_p = len(times), int(tables.sizes[Sizes.N_Q]), int(tables.sizes[Sizes.N_P])
    sigma = slice(n_p + 3 * int(tables.sizes[Sizes.N_W]), n_p + 3 * int(tables.sizes[Sizes.N_W]) + codes.shape[1])
    turned = np.any(c[1:, sigma] * c[:-1, sigma] < 0.0, axis=1)
    struck = _struck(tables, codes, impulses, approaches)
    changes = 1 + np.flatnonzero((np.diff(modes) != 0) | turned | struck[1:].any(axis=1))
    source = np.sort(np.concatenate([np.arange(n), changes]))
    after = np.zeros(len(source), bool)
    after[np.searchsorted(source, changes) + 1] = True
    before = np.zeros(len(source), bool)
    before[np.searchsorted(source, changes)] = True
    rows, held, mode = x[source].copy(), c[source][:, n_p:].copy(), modes[source].copy()
    rows[before, n_q:] = free[changes]
    mode[before] = modes[changes - 1]
    held[before, sigma.start - n_p : sigma.stop - n_p] = c[changes - 1, sigma]
    x_dot, x_mid = _within_steps(times[source], rows, middle[source], n_q, after)
    events = [_events(codes[i - 1], codes[i], c[i - 1, sigma], c[i, sigma], struck[i]) for i in changes]
    records = _records(tables, parts, changes, np.flatnonzero(after), modes, events)
    if first is not None and not first.begins:  # the rates of one that begins are those of the step from it
        x_dot[0], x_mid[0] = first.values[1 + x.shape[1] : 1 + 3 * x.shape[1]].reshape(2, -1)
    if saved is not None:
        kept = int(np.searchsorted(source, last, side="right"))
        saved = replace(saved, rows=kept, transitions=int(np.count_nonzero(changes <= last)))
    return RunArrays(
        t=times[source], x=rows, x_dot=x_dot, x_mid=x_mid, mode=mode, held=held, records=records,
        outcome=outcomes.OUTCOMES[status], tables=tables, requested_states=codes[-1].copy(),
        steps=n - 1, rejected=0, retakes=0, drift_energy=0.0, drift_residual=0.0,
        mode_end=int(modes[-1]), c_end=c[-1].copy(), saved=saved, time_stepping=True,
    )  # fmt: skip


def _within_steps(t: Floats, x: Floats, middle: Floats, n_q: int, after: Booleans) -> tuple[Floats, Floats]:
    """Return rates of all rows and the states at the middles of steps.

    A row has the mean rates of the step before it, or of the next one if none does.  The speeds at a middle are the
    mean of those at both ends of its step: forces constant in a step do work at this mean. ``t``, ``x``, shape (n,) and
    (n, n_x): times (s) and states of the rows; ``middle``, shape (n, n_x): states at the middle of the step before a
    row, with the coordinates of the run; ``after``, shape (n,): rows without a step before them, but the first.
    """
    rates, x_mid = np.zeros_like(x), middle.copy()
    leads = ~after
    leads[0] = False
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a divergent run is named by its status
        steps = np.diff(x, axis=0) / np.diff(t)[:, None]
        x_mid[1:, n_q:] = np.where(leads[1:, None], 0.5 * (x[:-1, n_q:] + x[1:, n_q:]), x_mid[1:, n_q:])
    rates[1:] = np.where(leads[1:, None], steps, 0.0)
    begins = np.flatnonzero(~leads)
    begins = begins[begins < len(t) - 1]
    rates[begins] = rates[begins + 1]
    return rates, x_mid


def _numbers(
    tables: Tables, mode0: int, codes: Codes, times: Floats, x: Floats, c: Floats, mode_source: ModeProvider
) -> tuple[Tables, Integers]:
    """Number the contact states of all rows, asking for modes without a number in the order of their coming."""
    known: dict[bytes, int] = {tables.mode_states[mode0].tobytes(): mode0}
    for number, states in enumerate(tables.mode_states):
        known.setdefault(states.tobytes(), number)
    modes = np.zeros(len(codes), np.int64)
    for i, states in enumerate(codes):
        key = states.tobytes()
        if key not in known:
            tables = mode_source.provide_mode(states, float(times[i]), x[i], c[i])
            known[key] = len(tables.mode_states) - 1
        modes[i] = known[key]
    return tables, modes


def _records(
    tables: Tables,
    parts: Parts,
    changes: Integers,
    rows: Integers,
    modes: Integers,
    events: list[list[tuple[int, int, float]]],
) -> Floats:
    """Records of the changes of contact states, as the event-driven loop writes them."""
    times, x, _, _, free, _, impulses, energies = parts
    n_q, n_u, n_rows = (int(tables.sizes[i]) for i in (Sizes.N_Q, Sizes.N_U, Sizes.N_ROWS))
    records = np.zeros((len(changes), st.record_width(tables)))
    records[:, RecordColumn.TIME], records[:, RecordColumn.ROW] = times[changes], rows
    records[:, RecordColumn.SOURCE], records[:, RecordColumn.TARGET] = modes[changes - 1], modes[changes]
    records[:, RecordColumn.REASON], records[:, RecordColumn.WRITTEN] = Reason.EVENT, -1
    records[:, RecordColumn.BETA] = energies[changes, EnergyColumn.REBOUND]
    records[:, RecordColumn.ENERGY_BEFORE], records[:, RecordColumn.ENERGY_AFTER] = energies[changes, :2].T
    for i, happened in enumerate(events):
        records[i, RecordColumn.FIRED] = min(len(happened), MAX_FIRED)
        for k, (event, contact, direction) in enumerate(happened[:MAX_FIRED]):
            at = RecordColumn.GUARDS + k * GUARD_WIDTH
            records[i, at : at + GUARD_WIDTH] = event, contact, direction, np.nan, np.nan
    at = RecordColumn.GUARDS + MAX_FIRED * GUARD_WIDTH
    records[:, at : at + n_rows] = impulses[changes]
    records[:, at + n_rows : at + n_rows + n_u] = free[changes]
    records[:, at + n_rows + n_u : at + n_rows + 2 * n_u] = x[changes, n_q:]
    return records


def _struck(tables: Tables, codes: Codes, impulses: Floats, approaches: Booleans) -> Booleans:
    """Contacts open before and after a step with a push in it, and those that struck where they began closed."""
    normal = tables.contact_rows[:, 0]
    found = np.zeros(codes.shape, bool)
    gaps = (tables.contact_flags & ContactFlag.RIGID) != 0
    pushed = impulses[:, normal] > 0.0
    found[1:] = pushed[1:] & (codes[1:] == ContactState.FREE) & (codes[:-1] == ContactState.FREE)
    found[1:2] |= pushed[1:2] & approaches
    return found & gaps


def _events(
    before: Codes, after: Codes, sigma_before: Floats, sigma_after: Floats, struck: Booleans
) -> list[tuple[int, int, float]]:
    """Changes of the contacts between two steps, as events of guards."""
    found: list[tuple[int, int, float]] = []
    # of many contacts few change
    for k in np.flatnonzero(struck | (before != after) | (sigma_before * sigma_after < 0.0)).tolist():
        old, new = before[k], after[k]
        if struck[k] or (old == ContactState.FREE and new != ContactState.FREE):
            found.append((Event.CLOSES, k, 0.0))
        elif old != ContactState.FREE and new == ContactState.FREE:
            found.append((Event.OPENS, k, 0.0))
        elif old == ContactState.HELD and new == ContactState.SLIDING:
            found.append((Event.SLIDES, k, float(sigma_after[k])))
        elif old == ContactState.SLIDING and (new == ContactState.HELD or sigma_before[k] * sigma_after[k] < 0.0):
            found.append((Event.STICKS, k, 0.0))
    return found
