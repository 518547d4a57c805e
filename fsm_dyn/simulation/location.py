"""Finding the instant of the next event within a trial step, on the solution of the method itself."""

from __future__ import annotations

from typing import Final

from fsm_dyn.simulation import roots
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import end_is_finite, evaluate_middle, guard_count, project_end, take
from fsm_dyn.simulation.inputs import DriveArrays
from fsm_dyn.simulation.integrators import MethodArrays
from fsm_dyn.simulation.state import State, Work
from fsm_dyn.simulation.tables import Tables

NO_EVENT: Final = -1
MISPREDICTED: Final = -2  # the interpolant cannot be trusted: the step must be shorter

_EPS: Final = 2.220446049250313e-16
_RETAKES: Final = 60
_REFINEMENTS: Final = 8
_MOST_RETAKES: Final = 40  # in one trial step, after which no other guard is looked for but a shorter step taken


@lean
def clock_resolution(tables: Tables, t: float) -> float:
    """Return how finely an instant near ``t`` is located (s)."""
    return max(tables.tolerances[tol.TIME], 4.0 * _EPS * abs(t))


@lean
def first_event(tables: Tables, state: State, work: Work, h: float) -> tuple[float, int]:
    """Return where in the trial step, as a fraction of ``h``, which guard fires first.

    Instead of a guard ``NO_EVENT``, or ``MISPREDICTED`` where a guard comes so near zero between its known values
    that the estimated error of its interpolant decides.
    """
    mode = state.counters[st.MODE]
    n_g = guard_count(tables, mode)
    most = tables.sizes[tb.MAX_GUARDS]
    at = state.x.shape[0] + tables.sizes[tb.N_U] + 1
    here, slopes = start_of(state.guards), shifted(start_of(state.guards), most)
    tolerances = shifted(slopes, most)
    middle, end = shifted(start_of(work.full_mid), at), shifted(start_of(work.full_end), at)
    best = roots.NONE
    which = NO_EVENT
    for j in range(n_g):
        size, sixth = roots.quintic(
            here[j],
            slopes[j],
            middle[j],
            middle[n_g + j],
            end[j],
            end[n_g + j],
            h,
            work.roots,
        )
        tolerance = tolerances[j] + 16.0 * _EPS * size
        waiting = state.armed[j] == st.WAITING
        if not waiting and roots.surely_positive(work.roots, tolerance, sixth):
            if which == NO_EVENT and _may_dip(state, work, j, most, n_g, at, h, tolerance):
                which = MISPREDICTED
            continue
        root = roots.first_crossing(work.roots, tolerance, waiting)
        if root <= 1.0:
            root = roots.back_to_zero(work.roots, tolerance, root)
        if root < best:
            best = root
            which = j
        elif which == NO_EVENT and root > 1.0 and not waiting:
            which = MISPREDICTED
    return best, which


@lean
def _may_dip(state: State, work: Work, j: int, most: int, n_g: int, at: int, h: float, tolerance: float) -> bool:
    """Whether a guard that turns between two known values may have been below zero at the turn.

    A gap that shrinks and grows again as one passes a corner is nearly two straight lines; no polynomial shows how low
    they meet.  Where it could meet zero at the slopes it is known to have, the step is too long to tell.
    """
    middle, middle_slope = work.full_mid[at + j], work.full_mid[at + n_g + j]
    first = _lowest(state.guards[j], state.guards[most + j], middle, middle_slope, 0.5 * h)
    second = _lowest(middle, middle_slope, work.full_end[at + j], work.full_end[at + n_g + j], 0.5 * h)
    return min(first, second) < -tolerance


@lean
def _lowest(a: float, a_slope: float, b: float, b_slope: float, length: float) -> float:
    """Return how low a guard can be between two values if nowhere steeper than there; 0 where it need not turn.

    It turns if it falls (or stands) and then rises, or if it lost more on the way than either slope explains.
    """
    mean = (b - a) / length
    falls_and_rises = a_slope <= 0.0 < b_slope
    if not falls_and_rises and mean >= min(a_slope, b_slope):
        return 0.0
    steepest = max(abs(mean), max(abs(a_slope), abs(b_slope)))
    return 0.5 * (a + b - steepest * length)


@lean
def _close_in(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    state: State,
    work: Work,
    j: int,
    h: float,
    limit: float,
    negative: bool,
) -> float:
    """Retake the step with other lengths until guard ``j`` is zero at its end.

    Parameters
    ----------
    h, limit : float
        First guess of the length, and the longest one (s).
    negative : bool
        Whether the guard is known to be at or below zero at ``limit``.

    Returns
    -------
    float
        Length of the step to the event, whose end is in the workspace; -1 where the guard does not fall through
        zero after all.
    """
    most = tables.sizes[tb.MAX_GUARDS]
    n_g = guard_count(tables, state.counters[st.MODE])
    at = state.x.shape[0] + tables.sizes[tb.N_U] + 1
    t = state.clock[st.TIME]
    near = clock_resolution(tables, t)
    # a guard that starts a little below zero is zero where it starts; if it sinks from there it has no root to find,
    # and its tolerance is the mark
    shift = 0.0
    if state.armed[j] == st.ARMED and state.guards[j] <= 0.0:
        shift = -state.guards[j] if state.guards[most + j] > 0.0 else state.guards[2 * most + j]
    low = 0.0
    high = limit
    for _ in range(_RETAKES):
        take(tables, drive, method, state, work, h, t + h)
        state.counters[st.RETAKES] += 1
        if not end_is_finite(method, work) or project_end(tables, drive, method, state, work, t + h) > 1:
            return -1.0
        value = work.full_end[at + j] + shift
        slope = work.full_end[at + n_g + j]
        if value > 0.0:
            low = h
        else:
            high = h
            negative = True
        newton = h
        if slope < 0.0:
            newton = h - value / slope
            if abs(newton - h) <= near:
                return h
        if negative and high - low <= near:
            return h if slope <= 0.0 else -1.0
        if slope < 0.0 and low < newton < high:
            h = newton
        elif negative:
            h = 0.5 * (low + high)
        else:
            return -1.0
    return -1.0


@lean
def locate(
    tables: Tables,
    drive: DriveArrays,
    method: MethodArrays,
    state: State,
    work: Work,
    h: float,
    fraction: float,
    j: int,
) -> tuple[float, int]:
    """Locate the first event of a trial step of length ``h`` in which guard ``j`` was seen to fire.

    The shortened step is looked at again for guards that fire earlier, until none does.

    Returns
    -------
    length : float
        From the start of the step to the event (s); the trial step of this length is in the workspace.
    guard : int
        The guard that leads, or ``MISPREDICTED``.
    """
    at = state.x.shape[0] + tables.sizes[tb.N_U] + 1
    near = max(tables.tolerances[tol.COINCIDENCE], clock_resolution(tables, state.clock[st.TIME]))
    most = state.counters[st.RETAKES] + _MOST_RETAKES
    for _ in range(_REFINEMENTS):
        if state.counters[st.RETAKES] > most:
            return h, MISPREDICTED
        negative = work.full_end[at + j] <= 0.0
        length = _close_in(tables, drive, method, state, work, j, fraction * h, h, negative)
        if length < 0.0:
            return h, MISPREDICTED
        evaluate_middle(tables, drive, method, state, work, length)
        if state.armed[j] == st.WAITING and not _rises(tables, state, work, j, length):
            return h, MISPREDICTED
        if length <= near:
            return length, j
        fraction, earlier = first_event(tables, state, work, length)
        if earlier == NO_EVENT or (earlier >= 0 and (1.0 - fraction) * length <= near):
            return length, j
        if earlier == MISPREDICTED:
            return length, MISPREDICTED
        h = length
        j = earlier
    return h, MISPREDICTED


@lean
def _rises(tables: Tables, state: State, work: Work, j: int, h: float) -> bool:
    """Whether guard ``j`` may be above zero within the trial step: one that waits has not fired unless it was."""
    n_g, most = guard_count(tables, state.counters[st.MODE]), tables.sizes[tb.MAX_GUARDS]
    here = start_of(state.guards)
    at = state.x.shape[0] + tables.sizes[tb.N_U] + 1
    middle, end = shifted(start_of(work.full_mid), at), shifted(start_of(work.full_end), at)
    roots.quintic(here[j], here[most + j], middle[j], middle[n_g + j], end[j], end[n_g + j], h, work.roots)
    highest = work.roots[0]
    for i in range(1, 6):
        highest = max(highest, work.roots[i])
    return bool(highest > 0.0)


@lean
def collect_fired(tables: Tables, state: State, work: Work, lead: int) -> None:
    """List the leading guard and all armed ones that reach zero in the same instant in ``state.fired``."""
    mode = state.counters[st.MODE]
    n_g = guard_count(tables, mode)
    most = tables.sizes[tb.MAX_GUARDS]
    first = tables.mode_guard_start[mode]
    at = state.x.shape[0] + tables.sizes[tb.N_U] + 1
    near = tables.tolerances[tol.COINCIDENCE]
    count = 1
    state.fired[0] = first + lead
    for j in range(n_g):
        value = work.full_end[at + j]
        slope = work.full_end[at + n_g + j]
        if j != lead and state.armed[j] == st.ARMED and slope < 0.0 and value <= -slope * near:
            state.fired[count] = first + j
            count += 1
    state.counters[st.FIRED] = count
    for k in range(count):
        j = state.fired[k] - first
        state.guards[3 * most + k] = work.full_end[at + j]
        state.guards[4 * most + k] = work.full_end[at + n_g + j]
