"""The loop that runs an automaton: steps, guards, events, transitions.

One call of :func:`advance` runs until the end of the run or until something is wanted that only Python can
give: room to record, a mode or a chart not derived yet, a sign of life.  It may then be called again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fsm_dyn.simulation import outcomes, resolution
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import SOLVED
from fsm_dyn.simulation.arming import rearm
from fsm_dyn.simulation.change_points import is_weak, look_ahead, note_passage
from fsm_dyn.simulation.charts import better_chart
from fsm_dyn.simulation.compiled import lean, routine
from fsm_dyn.simulation.contradiction import CLEAR, LATE, contradiction
from fsm_dyn.simulation.evaluation import (
    end_is_finite,
    evaluate_here,
    evaluate_middle,
    guard_count,
    project_end,
    take,
)
from fsm_dyn.simulation.inputs import DRIVE, DriveArrays, next_breakpoint, write_inputs
from fsm_dyn.simulation.integrators import (
    ADAPTIVE,
    DEGREE,
    METHOD,
    ORDER,
    MethodArrays,
    first_step,
    step_factor,
)
from fsm_dyn.simulation.limits import rests_in_change_point, why_not
from fsm_dyn.simulation.location import MISPREDICTED, collect_fired, first_event, locate
from fsm_dyn.simulation.passing import RETAKE, SHORTEN, judge, keep_clear, shorter
from fsm_dyn.simulation.projection import gate_opened_late
from fsm_dyn.simulation.records import write_passage, write_row
from fsm_dyn.simulation.state import Buffers, Options, State, Work
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.transition import arrive, make_transition
from fsm_dyn.simulation.zeno import LONGEST_CYCLE, add_cycle_guards, remember_event, train_length

_EPS: Final = 2.220446049250313e-16


@lean
def _grid_point(options: Options, state: State) -> float:
    """Return the next point of the grid of fixed steps (s)."""
    return state.clock[st.BEGIN] + (state.counters[st.GRID] + 1) * options.numbers[st.FIXED_STEP]


@lean
def _target(drive: DriveArrays, method: MethodArrays, options: Options, state: State) -> float:
    """Return the next instant at which a step must end exactly (s)."""
    target = min(options.numbers[st.UNTIL], next_breakpoint(drive, state.counters[st.SEGMENT]))
    if method.counts[ADAPTIVE] == 0:
        target = min(target, _grid_point(options, state))
    return target


@lean
def _reach(tables: Tables, drive: DriveArrays, method: MethodArrays, options: Options, state: State, work: Work) -> int:
    """Do what is due where a target was reached; return ``DONE`` at the end of the run."""
    t = state.clock[st.TIME]
    if method.counts[ADAPTIVE] == 0 and t >= _grid_point(options, state):
        state.counters[st.GRID] += 1
    if t >= options.numbers[st.UNTIL]:
        return outcomes.DONE
    if t >= next_breakpoint(drive, state.counters[st.SEGMENT]):
        segment = drive.next_hard[state.counters[st.SEGMENT]]
        state.counters[st.SEGMENT] = segment
        write_inputs(drive, t, segment, state.x, state.c)
        if drive.decides[segment] != 0:
            state.counters[st.PHASE] = st.RESOLVING
            state.counters[st.REASON] = resolution.INPUT_JUMP
            state.counters[st.FIRED] = 0
        elif not evaluate_here(tables, state, work):  # the slopes of the guards follow the inputs
            return outcomes.NON_FINITE
    return outcomes.GOING


@lean
def choose_chart(tables: Tables, state: State, work: Work) -> int:
    """Change the chart where the pivot at the state at hand is too small; return a status."""
    other = better_chart(tables, state, work, state.clock[st.TIME], state.x, state.clock[st.PIVOT])
    if other < 0 and is_weak(state.rank, st.NEAR) and state.clock[st.PIVOT] > 0.0:  # there all charts are as bad
        state.clock[st.PIVOT_ALARM] = 0.1 * state.clock[st.PIVOT]
        return outcomes.GOING
    if other < 0:
        return outcomes.NEED_CHART
    state.counters[st.MODE] = other
    state.clock[st.PIVOT_ALARM] = tables.tolerances[tol.PIVOT]
    if not evaluate_here(tables, state, work):
        return outcomes.SINGULAR
    return outcomes.GOING


@lean
def _first_length(
    tables: Tables, method: MethodArrays, options: Options, state: State, work: Work, room: float
) -> float:
    """Return the length of step to try first (s)."""
    longest = min(room, options.numbers[st.MAX_STEP])
    if method.counts[ADAPTIVE] == 0:
        return longest
    if state.clock[st.STEP] <= 0.0:
        state.clock[st.STEP] = first_step(
            tables.mode_rhs[state.counters[st.MODE]],
            method,
            state.clock[st.TIME],
            state.x,
            state.x_dot,
            state.c,
            work.k,
            work.y,
            options.numbers[st.RTOL],
            options.atol,
            longest,
        )
        state.clock[st.ERROR] = 1e-4
    return min(longest, state.clock[st.STEP])


@lean
def find_step(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    target: float,
) -> tuple[int, float, int]:
    """Find a step that can be accepted, shortening it as often as needed.

    Returns
    -------
    status : int
        ``GOING``, a failure, or ``PAUSED`` where the caller's ``MAX_WORK`` is done: a step of a fixed length that was
        shortened goes on with the length it had come to.
    t_end : float
        Where the step ends (s); its end and middle are in the workspace.
    lead : int
        Guard that fires there, -1 if none.
    """
    t = state.clock[st.TIME]
    adaptive = method.counts[ADAPTIVE] != 0
    order = method.counts[ORDER]
    h = _first_length(tables, method, options, state, work, target - t)
    resumed = state.clock[st.PUT_OFF] > 0.0
    if resumed:
        h = min(h, state.clock[st.PUT_OFF])
        state.clock[st.PUT_OFF] = 0.0
    least = 16.0 * _EPS * max(abs(t), abs(target))
    row = state.counters[st.MODE] if options.mask.shape[0] > 1 else 0
    error = 1.0
    shortened = False
    on_rows = tables.mode_flags[state.counters[st.MODE]] & tb.RANKS != 0
    ranks = on_rows and method.counts[DEGREE] == 0  # an implicit step was looked at before it was taken
    if ranks and not resumed:
        seen = look_ahead(work, tables, t, state.x, state.x_dot, state.c, state.counters[st.MODE], state.rank)
        if seen and rests_in_change_point(work, tables, t, state.x, state.c, state.counters[st.MODE], state.rank):
            return outcomes.UNDETERMINED, t, -1
    wanted = asked = h
    tried, tried_error, forced = 0.0, np.inf, False
    while True:
        passes = False
        if ranks and not forced:
            wanted = h
            h, passes = keep_clear(tables, method, options, state, wanted)
        if state.counters[st.STEPS] + state.counters[st.REJECTED] > options.counts[st.MAX_STEPS]:
            return outcomes.TOO_MANY_STEPS, t, -1
        if shortened and not adaptive and state.counters[st.WORK_DONE] > options.counts[st.MAX_WORK]:
            state.clock[st.PUT_OFF] = wanted if ranks else h
            write_inputs(drive, t, state.counters[st.SEGMENT], state.x, state.c)
            return outcomes.PAUSED, t, -1
        t_end = t + h
        if h >= target - t or target - t_end < least:
            t_end = target
            h = target - t
        take(tables, drive, method, state, work, h, t_end)
        finite = end_is_finite(method, work)
        if not finite and (h <= least or not adaptive):
            return outcomes.NON_FINITE, t, -1
        if adaptive:
            verdict, error = judge(method, options, state, work, h, row, passes, forced, tried, tried_error, finite)
            if verdict == RETAKE:
                h, forced = tried, True
                continue
            if verdict == SHORTEN:
                if h <= least:
                    return outcomes.STEP_TOO_SMALL, t, -1
                tried, tried_error = h, error
                state.counters[st.REJECTED] += 1
                h *= shorter(state, h, error, order, passes)
                shortened = True
                continue
        problem = project_end(tables, drive, method, state, work, t_end)
        if problem > 1:
            return problem, t, -1
        if h > least and _went_too_far(tables, state, work, t_end):
            state.counters[st.REJECTED] += 1
            h *= 0.5
            shortened = True
            continue
        evaluate_middle(tables, drive, method, state, work, h)
        fraction = 1.0
        lead = -1
        if guard_count(tables, state.counters[st.MODE]) > 0:
            fraction, lead = first_event(tables, state, work, h)
        full_h = h
        if lead >= 0:
            h, lead = locate(tables, drive, method, state, work, h, fraction, lead)
            t_end = min(t + h, target)
        if lead == MISPREDICTED and h > least:
            state.counters[st.REJECTED] += 1
            h *= 0.5
            shortened = True
            continue
        if adaptive and ranks and (forced or full_h < wanted):  # a change point alone made it what it is
            state.clock[st.STEP] = asked if forced else wanted
        elif adaptive:
            _next_length(state, full_h, min(error, 1.0), order, shortened)
        if on_rows:
            note_passage(state.rank, t, t_end, error if ranks else 0.0)
        return outcomes.GOING, t_end, max(lead, -1)


@lean
def _went_too_far(tables: Tables, state: State, work: Work, t_end: float) -> bool:
    """Whether rows that repeated each other have contradicted each other for long by the end of the trial step."""
    mode = state.counters[st.MODE]
    if tables.mode_flags[mode] & tb.REPEATS == 0:
        return False
    return contradiction(work, tables, t_end, work.x_end, state.c, mode) > LATE


@lean
def _next_length(state: State, h: float, error: float, order: int, shortened: bool) -> None:
    """Choose the length of the next step after one of length ``h`` whose error is accepted."""
    factor = step_factor(error, state.clock[st.ERROR], order)
    if shortened:
        factor = min(factor, 1.0)
    if shortened or h * factor > state.clock[st.STEP] or h >= state.clock[st.STEP]:
        state.clock[st.STEP] = h * factor
    state.clock[st.ERROR] = error


@lean
def _begin_event(tables: Tables, options: Options, state: State) -> None:
    """Make the resolution of the event that was located the next thing to do."""
    state.counters[st.PHASE] = st.RESOLVING
    state.counters[st.REASON] = resolution.EVENT
    state.clock[st.JUMP] = 0.0
    if not remember_event(tables, state):
        return
    remaining, strokes = train_length(state, tables.tolerances[tol.GAP])
    if remaining >= 0.0:
        state.counters[st.REASON] = resolution.ZENO
        state.clock[st.REMAINING] = remaining
        state.clock[st.JUMP] = remaining if strokes <= LONGEST_CYCLE else 0.0
        state.counters[st.CYCLE] = strokes
        add_cycle_guards(tables, state, strokes)


@lean
def _step(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    buffers: Buffers,
) -> int:
    """Take one step, up to the next event at most; return a status."""
    t = state.clock[st.TIME]
    target = _target(drive, method, options, state)
    if target - t <= 4.0 * _EPS * max(abs(t), abs(target)):
        if target > t:
            state.clock[st.TIME] = target
            write_row(tables, state, buffers, state.x)
        return _reach(tables, drive, method, options, state, work)
    if not state.clock[st.PIVOT] >= state.clock[st.PIVOT_ALARM]:
        status = choose_chart(tables, state, work)
        if status != outcomes.GOING:
            return status
    status, t_end, lead = find_step(tables, drive, method, options, state, work, target)
    if status != outcomes.GOING:
        return status
    status = conclude(tables, drive, method, options, state, work, buffers, t_end, target, lead)
    if state.rank[st.PASSES_AT] < np.inf:
        write_passage(tables, state, buffers)
    return status


@lean
def conclude(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    buffers: Buffers,
    t_end: float,
    target: float,
    lead: int,
) -> int:
    """Make the end of the trial step the state at hand, with the event there if ``lead`` is a guard."""
    if lead >= 0:
        collect_fired(tables, state, work, lead)
    status = arrive(tables, drive, state, work, buffers, t_end)
    if status != outcomes.GOING:
        return status
    state.counters[st.STEPS] += 1
    if lead >= 0:
        _begin_event(tables, options, state)
        return outcomes.GOING
    mode = state.counters[st.MODE]
    watched = tables.mode_flags[mode] & tb.WATCHES_GATES != 0
    if watched and gate_opened_late(work, tables, t_end, state.x, state.c, mode):
        return outcomes.PENETRATION_LATER
    if rearm(tables, state):
        return outcomes.PENETRATION_LATER
    status = outcomes.GOING
    if t_end >= target:
        status = _reach(tables, drive, method, options, state, work)
    repeats = tables.mode_flags[mode] & tb.REPEATS != 0 and state.counters[st.PHASE] == st.STEPPING
    if status == outcomes.GOING and repeats and contradiction(work, tables, t_end, state.x, state.c, mode) > CLEAR:
        state.counters[st.PHASE] = st.RESOLVING
        state.counters[st.REASON] = resolution.CONTRADICTION
        state.counters[st.FIRED] = 0
    return status


_open_tables = st.TABLES.opener()
_open_drive = DRIVE.opener()
_open_method = METHOD.opener()
_open_options = st.OPTIONS.opener()
_open_state = st.STATE.opener()
_open_work = st.WORK.opener()
_open_buffers = st.BUFFERS.opener()


@routine
def advance(
    tables_at: int, drive_at: int, method_at: int, options_at: int, state_at: int, work_at: int, buffers_at: int
) -> int:
    """Run until the end, a failure, or until something is wanted from outside.

    Parameters
    ----------
    tables_at, drive_at, method_at, options_at, state_at, work_at, buffers_at : int
        Addresses of the bundles: the automaton, its inputs over time, the integrator, what the caller asks, where
        the run stands (in and out: entering again continues bit for bit as if never left), workspace, and room
        for what is recorded, counted by ``state.counters``.

    Returns
    -------
    int
        A status of :mod:`fsm_dyn.simulation.outcomes`.
    """
    tables = _open_tables(tables_at)
    drive = _open_drive(drive_at)
    method = _open_method(method_at)
    options = _open_options(options_at)
    state = _open_state(state_at)
    work = _open_work(work_at)
    buffers = _open_buffers(buffers_at)
    for turn in range(options.counts[st.CHUNK]):
        if state.counters[st.WORK_DONE] > options.counts[st.MAX_WORK]:
            return outcomes.PAUSED
        if (
            state.counters[st.ROWS] + st.ROWS_PER_TURN > buffers.rows.shape[0]
            or state.counters[st.TRANSITIONS] >= buffers.transitions.shape[0]
            or state.counters[st.PASSED] >= buffers.passages.shape[0]
        ):
            return outcomes.BUFFER_FULL
        if state.counters[st.PHASE] == st.RESOLVING:
            solved = work.top[SOLVED]
            status = make_transition(tables, drive, method, options, state, work, buffers)
            solved = work.top[SOLVED] - solved
            state.counters[st.WORK_DONE] += st.WORK_OF_TRANSITION + int(st.WORK_OF_CANDIDATE * solved)
            left = options.counts[st.MAX_WORK] - state.counters[st.WORK_DONE]
            if status == outcomes.NEED_MODE and turn > 0 and left < st.WORK_OF_MODE:
                return outcomes.PAUSED
        else:
            status = _step(tables, drive, method, options, state, work, buffers)
        if status != outcomes.GOING:
            mode = state.counters[st.MODE]
            t = state.clock[st.TIME]
            return why_not(work, tables, t, state.x, state.x_dot, state.c, mode, state.rank, status)
    return outcomes.PAUSED
