"""Evaluating a mode: one trial step with all it needs at its end, and the state at hand."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.dense_output import dense_state
from fsm_dyn.simulation.inputs import DriveArrays, update_inputs
from fsm_dyn.simulation.integrators import DEGREE, STAGES, MethodArrays, middle_state, runge_kutta_step
from fsm_dyn.simulation.kernels import call_kernel, call_kernel_at
from fsm_dyn.simulation.landing import land
from fsm_dyn.simulation.projection import project
from fsm_dyn.simulation.state import State, Work
from fsm_dyn.simulation.tables import Tables

Floats = NDArray[np.float64]

MOVED: Final = 1  # what ``project`` returns when it changed the state


@lean
def guard_count(tables: Tables, mode: int) -> int:
    """Return the number of guards of a mode."""
    return tables.mode_guard_start[mode + 1] - tables.mode_guard_start[mode]


@lean
def normalise_quaternions(tables: Tables, x: Floats) -> None:
    """Scale every set of four Euler parameters to unit norm."""
    for k in range(tables.quaternions.shape[0]):
        i = tables.quaternions[k]
        norm = np.sqrt(x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2] + x[i + 3] * x[i + 3])
        for j in range(i, i + 4):
            x[j] /= norm


@lean
def evaluate_end(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, t_end: float
) -> None:
    """Run the full kernel at the end of the trial step: derivative, dependent speeds, guards."""
    mode = state.counters[st.MODE]
    n = state.x.shape[0]
    update_inputs(drive, t_end, state.counters[st.SEGMENT], work.x_end, state.c)
    call_kernel(tables.mode_full[mode], t_end, work.x_end, state.c, work.full_end)
    rates, found = shifted(start_of(work.k), method.counts[STAGES] * n), start_of(work.full_end)
    for j in range(n):
        rates[j] = found[j]
    n_q = tables.sizes[tb.N_Q]
    speeds, found = shifted(start_of(work.x_end), n_q), shifted(found, n)
    for j in range(tables.sizes[tb.N_U]):
        speeds[j] = found[j]


@lean
def take(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, h: float, t_end: float
) -> None:
    """Take a trial step of length ``h`` from the state at hand; nothing of the state changes but its inputs."""
    mode = state.counters[st.MODE]
    state.counters[st.WORK_DONE] += 1
    for j in range(state.x.shape[0]):
        work.k[j] = state.x_dot[j]
    if state.rank[st.LANDS] != 0.0 or method.counts[DEGREE] > 0:
        if not _take_otherwise(tables, drive, method, state, work, h, t_end):
            return
    else:
        runge_kutta_step(
            tables.mode_rhs[mode],
            drive,
            method,
            state.clock[st.TIME],
            h,
            state.x,
            state.c,
            work.k,
            work.y,
            work.x_end,
            state.counters[st.SEGMENT],
        )
        normalise_quaternions(tables, work.x_end)
    evaluate_end(tables, drive, method, state, work, t_end)


@lean
def _take_otherwise(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, h: float, t_end: float
) -> bool:
    """Take a trial step along a dense output, or on the rows of the mode; return whether its end was reached."""
    if method.counts[DEGREE] > 0:
        dense_state(method, t_end, work.x_end)
        normalise_quaternions(tables, work.x_end)
        if state.rank[st.LANDS] != 0.0:
            mode = state.counters[st.MODE]
            update_inputs(drive, t_end, state.counters[st.SEGMENT], work.x_end, state.c)
            land(work, tables, t_end, work.x_end, state.c, mode, state.rank, np.inf)
        return True
    if landed_step(tables, drive, method, state, work, h, t_end):
        return True
    for j in range(state.x.shape[0]):
        work.x_end[j] = np.nan
    return False


@lean
def landed_step(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, h: float, t_end: float
) -> bool:
    """Take a step as :func:`runge_kutta_step` does, every stage and its end put on the rows of the mode.

    Returns
    -------
    bool
        False where a stage is so far from the rows that it may come to lie on another branch.
    """
    mode, segment, t = state.counters[st.MODE], state.counters[st.SEGMENT], state.clock[st.TIME]
    n, stages = state.x.shape[0], method.counts[STAGES]
    for i in range(1, stages + 1):
        out = work.y if i < stages else work.x_end
        for j in range(n):
            total = 0.0
            for m in range(i):
                weight = method.a[i * stages + m] if i < stages else method.weights[m]
                total += weight * work.k[m * n + j]
            out[j] = state.x[j] + h * total
        at = t + method.nodes[i] * h if i < stages else t_end
        normalise_quaternions(tables, out)
        update_inputs(drive, at, segment, out, state.c)
        distance = min(abs(t + state.rank[st.AHEAD] - at), abs(t + state.rank[st.BEHIND] - at))
        if not land(work, tables, at, out, state.c, mode, state.rank, 0.5 * distance * state.rank[st.SPEED_NORM]):
            return False
        normalise_quaternions(tables, out)
        if i < stages:
            call_kernel_at(tables.mode_rhs[mode], at, out, state.c, work.k, i * n)
    return True


@lean
def project_end(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, t_end: float
) -> int:
    """Bring the end of the trial step back onto the rows of its mode; return 0, ``MOVED`` or a failure."""
    mode = state.counters[st.MODE]
    if tables.mode_flags[mode] & tb.PROJECTS == 0:
        return 0
    status = project(work, tables, t_end, work.x_end, state.c, mode, state.drift)
    if status == MOVED:
        evaluate_end(tables, drive, method, state, work, t_end)
    return status


@lean
def evaluate_middle(
    tables: Tables, drive: DriveArrays, method: MethodArrays, state: State, work: Work, h: float
) -> None:
    """Write the state at the middle of the trial step and, if there are guards, run the full kernel there."""
    mode = state.counters[st.MODE]
    if method.counts[DEGREE] > 0:
        dense_state(method, state.clock[st.TIME] + 0.5 * h, work.x_mid)
    else:
        middle_state(method, h, state.x, work.k, work.x_mid)
    if guard_count(tables, mode) > 0:
        t_mid = state.clock[st.TIME] + 0.5 * h
        update_inputs(drive, t_mid, state.counters[st.SEGMENT], work.x_mid, state.c)
        if state.rank[st.LANDS] != 0.0:
            land(work, tables, t_mid, work.x_mid, state.c, mode, state.rank, np.inf)
        call_kernel(tables.mode_full[mode], t_mid, work.x_mid, state.c, work.full_mid)


@lean
def evaluate_here(tables: Tables, state: State, work: Work) -> bool:
    """Run the full kernel at the state at hand; return whether all it gave is finite."""
    mode = state.counters[st.MODE]
    n = state.x.shape[0]
    call_kernel(tables.mode_full[mode], state.clock[st.TIME], state.x, state.c, work.full_end)
    return take_over(tables, state, work, n)


@lean
def take_over(tables: Tables, state: State, work: Work, n: int) -> bool:
    """Copy derivative, dependent speeds, pivot and guards from ``work.full_end`` into the state."""
    mode = state.counters[st.MODE]
    n_q, n_u = tables.sizes[tb.N_Q], tables.sizes[tb.N_U]
    finite = True
    for j in range(n):
        state.x_dot[j] = work.full_end[j]
        finite = finite and np.isfinite(work.full_end[j])
    for j in range(n_u):
        state.x[n_q + j] = work.full_end[n + j]
    for j in range(n):
        finite = finite and np.isfinite(state.x[j])
    state.clock[st.PIVOT] = work.full_end[n + n_u]
    # errors of integration in independent speeds are divided by the pivot in the dependent ones
    kept = state.clock[st.PIVOT] / tables.tolerances[tol.HYSTERESIS]
    if kept > state.clock[st.PIVOT_ALARM]:
        state.clock[st.PIVOT_ALARM] = kept
    n_g = guard_count(tables, mode)
    values = shifted(start_of(work.full_end), n + n_u + 1)
    slopes, slopes_here = shifted(values, n_g), shifted(start_of(state.guards), tables.sizes[tb.MAX_GUARDS])
    for j in range(n_g):
        state.guards[j] = values[j]
        slopes_here[j] = slopes[j]
    return finite


@lean
def end_is_finite(method: MethodArrays, work: Work) -> bool:
    """Tell whether the end of the trial step and its derivative are finite."""
    n = work.x_end.shape[0]
    rates = shifted(start_of(work.k), method.counts[STAGES] * n)
    total = 0.0
    for j in range(n):
        total += work.x_end[j] * 0.0 + rates[j] * 0.0
    return total == 0.0
