"""Carrying out a transition: the resolution, the mode after, and what is recorded of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from fsm_dyn.simulation import outcomes, resolution
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arming import arm, arm_positive
from fsm_dyn.simulation.charts import entry_chart
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import evaluate_here, evaluate_middle, project_end, take, take_over
from fsm_dyn.simulation.inputs import DriveArrays, next_breakpoint, write_inputs
from fsm_dyn.simulation.integrators import ADAPTIVE, MethodArrays
from fsm_dyn.simulation.location import NO_EVENT, clock_resolution, first_event
from fsm_dyn.simulation.next_state import FIRED_KEPT
from fsm_dyn.simulation.projection import project
from fsm_dyn.simulation.records import write_row, write_transition
from fsm_dyn.simulation.state import Buffers, Options, State, Work
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.turning import turn_slips
from fsm_dyn.simulation.zeno import cycle_is_closed

_STANDSTILL: Final = 8  # times in one instant that a state may be kept though its guard fired, as nothing else agrees
_WINDOW: Final = 1e8  # length of the window in which transitions are counted, in units of the time tolerance


@lean
def _resolve(tables: Tables, state: State, work: Work) -> tuple[int, int]:
    """Call the resolution and choose a chart; a train of impacts that cannot end closed goes on stroke by stroke."""
    n_q = tables.sizes[tb.N_Q]
    for j in range(tables.sizes[tb.N_U]):
        work.u_before[j] = state.x[n_q + j]
    work.notes[resolution.INSTANT] = state.counters[st.INSTANT]
    for j in range(state.x.shape[0]):
        work.x_mid[j] = state.x[j]
    for j in range(state.c.shape[0]):
        work.c_after[j] = state.c[j]
    while True:
        status, target = resolution.resolve(
            work,
            tables,
            state.clock[st.TIME],
            state.x,
            state.c,
            state.counters[st.MODE],
            state.counters[st.REASON],
            state.clock[st.REMAINING],
            state.fired,
            state.counters[st.FIRED],
            state.guards,
            clock_resolution(tables, state.clock[st.TIME]),
            state.limits,
            work.wanted,
            work.impulse,
            work.energy,
            work.notes,
            work.log,
            work.implied,
        )
        if status <= outcomes.STOPPED or state.counters[st.REASON] != resolution.ZENO:
            break
        state.counters[st.REASON] = resolution.EVENT
    if status != outcomes.GOING and status != outcomes.STOPPED:
        return status, target
    chart = entry_chart(tables, state, work, target)
    if chart >= 0:
        state.counters[st.ASKED] = 0
        return status, chart
    # the transition is made again once there is a chart that is good where it leads
    state.counters[st.ASKED] = 1
    work.notes[resolution.TARGET] = target
    for j in range(state.x.shape[0]):
        state.x[j], work.x_mid[j] = work.x_mid[j], state.x[j]
    for j in range(state.c.shape[0]):
        state.c[j], work.c_after[j] = work.c_after[j], state.c[j]
    return outcomes.NEED_CHART, target


@lean
def begin(tables: Tables, drive: DriveArrays, state: State, work: Work, buffers: Buffers) -> None:
    """Record the state as given, before anything is resolved."""
    segment = state.counters[st.SEGMENT]
    write_inputs(drive, state.clock[st.TIME], segment, state.x, state.c)
    n_q = tables.sizes[tb.N_Q]
    for j in range(tables.sizes[tb.N_U]):
        work.u_before[j] = state.x[n_q + j]
    evaluate_here(tables, state, work)
    for j in range(tables.sizes[tb.N_U]):
        state.x[n_q + j] = work.u_before[j]
    write_row(tables, state, buffers, state.x)
    state.counters[st.STARTED] = 1


@lean
def _end_train(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    buffers: Buffers,
) -> int:
    """Advance, contacts closed, to the end of a train of impacts; return a status.

    Where something else happens on the way, or it is longer than the steps whose error is known to be small, the closed
    mode begins at once, and what happens is met in steps.
    """
    if not evaluate_here(tables, state, work):
        return outcomes.NON_FINITE
    h, t = state.clock[st.JUMP], state.clock[st.TIME]
    longest = options.numbers[st.FIXED_STEP] if method.counts[ADAPTIVE] == 0 else state.clock[st.STEP]
    if t + h > min(options.numbers[st.UNTIL], next_breakpoint(drive, state.counters[st.SEGMENT])) or h > longest > 0.0:
        return outcomes.GOING
    take(tables, drive, method, state, work, h, t + h)
    status = project_end(tables, drive, method, state, work, t + h)
    if status > 1:
        return status
    evaluate_middle(tables, drive, method, state, work, h)
    arm_positive(tables, state)
    _, event = first_event(tables, state, work, h)
    write_inputs(drive, t, state.counters[st.SEGMENT], state.x, state.c)
    if event != NO_EVENT:
        return outcomes.GOING
    write_row(tables, state, buffers, state.x)
    return arrive(tables, drive, state, work, buffers, t + h)


@lean
def arrive(tables: Tables, drive: DriveArrays, state: State, work: Work, buffers: Buffers, t_end: float) -> int:
    """Make the end of the trial step the state at hand and record it; return a status."""
    moved = t_end > state.clock[st.TIME]
    state.clock[st.TIME] = t_end
    n = state.x.shape[0]
    for j in range(n):
        state.x[j] = work.x_end[j]
    write_inputs(drive, t_end, state.counters[st.SEGMENT], state.x, state.c)
    if not take_over(tables, state, work, n):
        return outcomes.NON_FINITE
    mode = state.counters[st.MODE]
    if tables.mode_flags[mode] & tb.TURNS and turn_slips(work, tables, t_end, state.x, state.c, mode):
        evaluate_here(tables, state, work)
    if moved:
        write_row(tables, state, buffers, work.x_mid)
    return outcomes.GOING


@lean
def _chatters(tables: Tables, options: Options, state: State, work: Work) -> bool:
    """Count the transition that was made; tell whether there are too many in an instant or in a very short time."""
    t = state.clock[st.TIME]
    if t - state.clock[st.EVENT_TIME] > 4.0 * clock_resolution(tables, t):
        state.counters[st.INSTANT] = 0
        state.limits[:] = 0
    _keep_limits(tables, state, work)
    state.counters[st.INSTANT] += 1
    state.clock[st.EVENT_TIME] = t
    if t - state.clock[st.WINDOW] > _WINDOW * tables.tolerances[tol.TIME]:
        state.clock[st.WINDOW] = t
        state.counters[st.WINDOW_COUNT] = 0
    state.counters[st.WINDOW_COUNT] += 1
    most = options.counts[st.MAX_INSTANT]
    return state.counters[st.INSTANT] > most or state.counters[st.WINDOW_COUNT] > 10 * most


@lean
def _keep_limits(tables: Tables, state: State, work: Work) -> None:
    """Keep which friction and which release reached their limits in this instant; an impact makes all that void."""
    n_q, n_contacts = tables.sizes[tb.N_Q], tables.sizes[tb.N_CONTACTS]
    for j in range(tables.sizes[tb.N_U]):
        if state.x[n_q + j] != work.u_before[j]:
            state.limits[:] = 0
            return
    for i in range(state.counters[st.FIRED]):
        guard = state.fired[i]
        k, event = tables.guard_contact[guard], tables.guard_event[guard]
        if event == tb.SLIDES or (event == tb.OPENS and tables.contact_kind[k] == tb.GAP):
            state.limits[k] = event
            state.limits[n_contacts + k] = int(tables.guard_direction[guard])


@lean
def make_transition(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    buffers: Buffers,
) -> int:
    """Carry out the pending transition and arm the guards of the mode after; return a status."""
    if state.counters[st.STARTED] == 0:
        begin(tables, drive, state, work, buffers)
    source = state.counters[st.MODE]
    state.clock[st.PUT_OFF] = 0.0
    status, target = _resolve(tables, state, work)
    if status != outcomes.GOING and status != outcomes.STOPPED:
        return status
    reason = state.counters[st.REASON]
    changed = work.notes[resolution.CHANGED] != 0
    if not changed and state.counters[st.INSTANT] >= _STANDSTILL and work.notes[resolution.CHOSEN_BY] == FIRED_KEPT:
        return outcomes.INCONSISTENT
    if not changed and reason == resolution.CONTRADICTION:
        return outcomes.INCONSISTENT
    state.counters[st.MODE] = target
    state.rank[st.LEFT_AT], state.rank[st.LANDS], state.rank[st.ACTIVE] = -np.inf, 0.0, 0.0
    state.clock[st.PIVOT_ALARM] = tables.tolerances[tol.PIVOT]
    if changed and tables.mode_flags[target] & tb.PROJECTS != 0:
        # what closed within the tolerance is brought to zero now, so that no step begins off its rows
        t = state.clock[st.TIME]
        problem = project(work, tables, t, state.x, state.c, target, state.drift)
        if problem > 1:
            return problem
    if reason == resolution.ZENO and state.clock[st.JUMP] > 0.0 and cycle_is_closed(tables, state, target):
        problem = _end_train(tables, drive, method, options, state, work, buffers)
        if problem != outcomes.GOING:
            return problem
    finite = evaluate_here(tables, state, work)
    if reason == resolution.START and not changed:
        state.counters[st.ROWS] -= 1
    if changed or reason == resolution.START or reason == resolution.INPUT_JUMP:
        write_row(tables, state, buffers, state.x)
    if changed:
        write_transition(tables, state, work, buffers, source)
    if not finite:
        return outcomes.NON_FINITE
    chatters = False
    if reason == resolution.EVENT or reason == resolution.ZENO or reason == resolution.CONTRADICTION:
        chatters = _chatters(tables, options, state, work)
    else:
        state.counters[st.FIRED] = 0
        state.counters[st.HISTORY] = 0
    state.counters[st.PHASE] = st.STEPPING
    if arm(tables, state, work) > 0:
        state.counters[st.PHASE] = st.RESOLVING
        state.counters[st.REASON] = resolution.EVENT
    if status == outcomes.STOPPED:
        return outcomes.STOPPED
    return outcomes.CHATTER if chatters else outcomes.GOING
