"""Runs of stiff models: scipy's implicit methods over the same kernels, guards and transitions.

The implicit step is taken in Python; guards are isolated on its dense output by the same root functions, and
all that happens at a transition is done by the compiled loop of :mod:`fsm_dyn.simulation.stepper`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.bundles import Packed
from fsm_dyn.simulation.compiled import entry
from fsm_dyn.simulation.drive import KERNEL, Drive
from fsm_dyn.simulation.evaluation import evaluate_end, normalise_quaternions, project_end
from fsm_dyn.simulation.inputs import DRIVE, update_inputs
from fsm_dyn.simulation.integrators import METHOD
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.location import MISPREDICTED, first_event
from fsm_dyn.simulation.loop import Loop, ModeSource, finish, supply
from fsm_dyn.simulation.raw_run import RawRun
from fsm_dyn.simulation.stepper import advance, choose_chart, conclude

Floats = NDArray[np.float64]

# what ``serve`` is asked to do
_DERIVATIVE: Final = 0  # work.k[:n] = x_dot(t, work.y)
_END: Final = 1  # full kernel at (t, work.x_end)
_MIDDLE: Final = 2  # full kernel at (t, work.x_mid)
_PROJECT: Final = 3  # bring (t, work.x_end) back onto its rows
_SEARCH: Final = 4  # first event in a stretch of the length given
_CONCLUDE: Final = 5  # accept the trial step up to t
_CHART: Final = 6  # choose a better chart if there is one

_SHORTEST: Final = 1e-12  # part of a step below which guards are not bisected further
_STARTED: Final = 5  # steps after an event that bdf leaves to radau
_SMALL_SHIFT: Final = 10.0  # times the tolerance of a step, up to which a projection leaves the solver as it is

_open_tables = st.TABLES.opener()
_open_drive = DRIVE.opener()
_open_method = METHOD.opener()
_open_options = st.OPTIONS.opener()
_open_state = st.STATE.opener()
_open_work = st.WORK.opener()
_open_buffers = st.BUFFERS.opener()


@entry
def serve(
    what: int,
    tables_at: int,
    drive_at: int,
    method_at: int,
    options_at: int,
    state_at: int,
    work_at: int,
    buffers_at: int,
    t: float,
    extent: float,
    lead: int,
) -> tuple[int, float]:
    """Do one compiled part of an implicit step; see the codes above.  Returns a status or guard, and a fraction."""
    tables = _open_tables(tables_at)
    drive = _open_drive(drive_at)
    method = _open_method(method_at)
    state = _open_state(state_at)
    work = _open_work(work_at)
    mode = state.counters[st.MODE]
    segment = state.counters[st.SEGMENT]
    if what == _DERIVATIVE:
        update_inputs(drive, t, segment, work.y, state.c)
        call_kernel(tables.mode_rhs[mode], t, work.y, state.c, work.k)
        return 0, 0.0
    if what == _END:
        normalise_quaternions(tables, work.x_end)
        evaluate_end(tables, drive, method, state, work, t)
        return 0, 0.0
    if what == _MIDDLE:
        normalise_quaternions(tables, work.x_mid)
        update_inputs(drive, t, segment, work.x_mid, state.c)
        call_kernel(tables.mode_full[mode], t, work.x_mid, state.c, work.full_mid)
        return 0, 0.0
    if what == _PROJECT:
        return project_end(tables, drive, method, state, work, t), 0.0
    if what == _SEARCH:
        fraction, guard = first_event(tables, state, work, extent)
        return guard, fraction
    if what == _CHART:
        return choose_chart(tables, state, work), 0.0
    options = _open_options(options_at)
    buffers = _open_buffers(buffers_at)
    return conclude(tables, drive, method, options, state, work, buffers, t, extent, lead), 0.0


class _Stiff:
    """One run by an implicit method."""

    def __init__(
        self,
        loop: Loop,
        options: st.Options,
        drive: Drive,
        method_packed: Packed,
        method: str,
        jacobians: Sequence[int],
    ) -> None:
        from scipy.integrate import BDF, Radau

        self.loop = loop
        self.options = options
        self.options_packed = st.OPTIONS.pack(options)
        self.drive = drive
        self.method_packed = method_packed
        self.solver_class: Any = {"radau": Radau, "bdf": BDF}[method]
        # bdf begins with its first order, which a train of ever lower bounces would never leave
        self.starter: Any = Radau
        self.since = 0  # steps taken since the last event
        self.max_step = float(options.numbers[st.MAX_STEP])
        self.jacobians = tuple(jacobians)
        self.solver: Any = None
        self.first_step: float | None = None

    def addresses(self) -> tuple[int, int, int, int, int, int, int]:
        """Return the addresses of all bundles in the order of the compiled functions."""
        loop = self.loop
        return (
            loop.tables_packed.address,
            self.drive.packed.address,
            self.method_packed.address,
            self.options_packed.address,
            loop.state_packed.address,
            loop.work_packed.address,
            loop.buffers_packed.address,
        )

    def serve(self, what: int, t: float = 0.0, extent: float = 0.0, lead: int = -1) -> tuple[int, float]:
        """Call the compiled part."""
        status, fraction = serve(what, *self.addresses(), t, extent, lead)
        return int(status), float(fraction)

    def derivative(self, t: float, x: Floats) -> Floats:
        """Return x_dot, shape (n,)."""
        work = self.loop.work
        work.y[:] = x
        self.serve(_DERIVATIVE, t)
        return work.k[: len(x)].copy()

    def jacobian(self, t: float, x: Floats) -> Floats:
        """Return the derivative of x_dot with respect to x, shape (n, n), by a kernel or by central differences.

        The steps of the differences follow the size of each state but never exceed 1e-3, so that a coordinate
        that grows without bound (a wheel's angle) does no harm.
        """
        n = len(x)
        result = np.empty((n, n))
        mode = int(self.loop.state.counters[st.MODE])
        if mode < len(self.jacobians) and self.jacobians[mode]:
            self.derivative(t, x)  # for the inputs in the context
            kernel = KERNEL(self.jacobians[mode])
            kernel(t, self.loop.work.y.ctypes.data, self.loop.state.c.ctypes.data, result.ctypes.data)
            return result
        for j in range(n):
            d = min(6e-6 * max(1.0, abs(float(x[j]))), 1e-3)
            ahead, behind = x.copy(), x.copy()
            ahead[j] += d
            behind[j] -= d
            result[:, j] = (self.derivative(t, ahead) - self.derivative(t, behind)) / (ahead[j] - behind[j])
        return result

    def target(self) -> float:
        """Return the next instant at which a step must end exactly (s)."""
        arrays = self.drive.arrays
        after = int(arrays.next_hard[self.loop.state.counters[st.SEGMENT]])
        until = float(self.options.numbers[st.UNTIL])
        return min(until, float(arrays.start[after])) if after < len(arrays.start) else until

    def restart(self, target: float) -> None:
        """Make a solver that begins at the state at hand."""
        state = self.loop.state
        t = float(state.clock[st.TIME])
        kind = self.starter if self.since < _STARTED else self.solver_class
        if kind is not self.starter and self.starter is not self.solver_class:
            self.first_step = None  # the order falls: let the length be found anew
        self.solver = kind(
            self.derivative,
            t,
            state.x.copy(),
            target,
            rtol=max(float(self.options.numbers[st.RTOL]), 100 * np.finfo(float).eps),
            atol=self.options.atol,
            max_step=self.max_step,
            first_step=None if self.first_step is None else min(self.first_step, target - t),
            jac=self.jacobian,
        )

    def step(self) -> int:
        """Take one step, up to the next event at most; return a status."""
        loop, state = self.loop, self.loop.state
        target = self.target()
        t = float(state.clock[st.TIME])
        if not state.clock[st.PIVOT] >= state.clock[st.PIVOT_ALARM]:
            self.solver = None
            status, _ = self.serve(_CHART)
            if status != outcomes.GOING:
                return status
        if target - t <= 16.0 * np.finfo(float).eps * max(abs(t), abs(target)):
            loop.work.x_end[:] = loop.work.x_mid[:] = state.x
            self.serve(_END, target)
            return self.serve(_CONCLUDE, target, target)[0]
        if self.since == _STARTED and self.starter is not self.solver_class:
            self.solver = None
        if self.solver is None or self.solver.t_bound != target:
            self.restart(target)
        self.since += 1
        if int(state.counters[st.STEPS]) > int(self.options.counts[st.MAX_STEPS]):
            return outcomes.TOO_MANY_STEPS
        with np.errstate(all="ignore"):
            try:
                self.solver.step()
            except ValueError:  # scipy refuses a Jacobian that is not finite
                return outcomes.NON_FINITE
        if self.solver.status == "failed":
            return outcomes.STEP_TOO_SMALL if np.all(np.isfinite(self.solver.y)) else outcomes.NON_FINITE
        self.first_step = float(getattr(self.solver, "h_abs", self.solver.step_size))
        return self.accept(t, float(self.solver.t), target)

    def accept(self, t: float, t_end: float, target: float) -> int:
        """Look for an event in the step from ``t`` to ``t_end`` and accept it up to there; return a status."""
        dense = self.solver.dense_output()
        work, state = self.loop.work, self.loop.state
        lead = -1
        if int(self.guard_count()) > 0:
            kept = state.guards.copy(), state.armed.copy()
            t_event, lead = self.search(dense, t, t_end)
            state.guards[:], state.armed[:] = kept
            t_end = t_event if lead >= 0 else t_end
        work.x_end[:] = self.solver.y if t_end == self.solver.t else dense(t_end)
        work.x_mid[:] = dense(0.5 * (t + t_end))
        self.serve(_MIDDLE, 0.5 * (t + t_end))
        if not np.all(np.isfinite(work.x_end)):
            return outcomes.NON_FINITE
        self.serve(_END, t_end)
        moved, _ = self.serve(_PROJECT, t_end)
        if moved > 1:
            return moved
        if lead >= 0:
            self.solver = None
        elif moved:
            self.shift(t_end)
        return self.serve(_CONCLUDE, t_end, target, lead)[0]

    def shift(self, t: float) -> None:
        """Go on from the end of the step as it was projected, without giving up what the solver knows.

        A projection moves less than the error of a step.  Were the solver begun anew, ``bdf`` would never leave its
        first order; its backward differences stay what they are when all values behind it move alike.
        """
        solver, moved_to = self.solver, self.loop.work.x_end.copy()
        scale = self.options.atol + float(self.options.numbers[st.RTOL]) * np.abs(moved_to)
        if not np.all(np.abs(moved_to - solver.y) <= _SMALL_SHIFT * scale):
            self.solver = None
            return
        solver.y = moved_to
        if hasattr(solver, "D"):
            solver.D[0] = moved_to
        else:
            solver.f = self.derivative(t, moved_to)

    def guard_count(self) -> int:
        """Return the number of guards of the present mode."""
        start = self.loop.tables.mode_guard_start
        mode = int(self.loop.state.counters[st.MODE])
        return int(start[mode + 1] - start[mode])

    def guards_at(self, dense: Callable[[float], Floats], t: float) -> None:
        """Evaluate the guards at ``t`` into ``work.full_end``."""
        self.loop.work.x_end[:] = dense(t)
        self.serve(_END, t)

    def search(self, dense: Callable[[float], Floats], t: float, t_end: float) -> tuple[float, int]:
        """Return the instant and the leading guard of the first event on the dense output, -1 if there is none."""
        loop = self.loop
        state, work = loop.state, loop.work
        n_g = self.guard_count()
        most = int(loop.tables.sizes[tb.MAX_GUARDS])
        at = len(state.x) + int(loop.tables.sizes[tb.N_U]) + 1
        shortest = max(_SHORTEST * (t_end - t), 4.0 * float(loop.tables.tolerances[tol.TIME]))
        stretches = [(t, t_end)]
        while stretches:
            a, b = stretches.pop()
            self.guards_at(dense, b)
            work.x_mid[:] = dense(0.5 * (a + b))
            self.serve(_MIDDLE, 0.5 * (a + b))
            lead, fraction = self.serve(_SEARCH, 0.0, b - a)
            if lead == MISPREDICTED and b - a > shortest:
                stretches += [(0.5 * (a + b), b), (a, 0.5 * (a + b))]
                continue
            if lead >= 0:
                t_event = self.locate(dense, a, b, a + fraction * (b - a), at + lead, n_g)
                if t_event is not None:
                    return t_event, lead
                if b - a > shortest:
                    stretches += [(0.5 * (a + b), b), (a, 0.5 * (a + b))]
                    continue
            # nothing happens up to b: the next stretch starts from its guards
            self.guards_at(dense, b)
            state.guards[:n_g] = work.full_end[at : at + n_g]
            state.guards[most : most + n_g] = work.full_end[at + n_g : at + 2 * n_g]
            state.armed[:n_g][state.guards[:n_g] > state.guards[2 * most : 2 * most + n_g]] = st.ARMED
        return t_end, -1

    def locate(
        self, dense: Callable[[float], Floats], a: float, b: float, guess: float, at: int, n_g: int
    ) -> float | None:
        """Return where the guard at ``full_end[at]`` falls through zero in (a, b]; None if it does not."""
        work = self.loop.work
        near = max(float(self.loop.tables.tolerances[tol.TIME]), 4.0 * np.finfo(float).eps * abs(b))
        low, high = a, b
        self.guards_at(dense, b)
        negative = bool(work.full_end[at] <= 0.0)
        t = guess
        for _ in range(100):
            self.guards_at(dense, t)
            value, slope = float(work.full_end[at]), float(work.full_end[at + n_g])
            if value > 0.0:
                low = t
            else:
                high, negative = t, True
            newton = t - value / slope if slope < 0.0 else np.nan
            if abs(newton - t) <= near or (negative and high - low <= near):
                return t
            if low < newton < high:
                t = newton
            elif negative:
                t = 0.5 * (low + high)
            else:
                return None
        return None


def run_stiff(
    loop: Loop,
    options: st.Options,
    method: str,
    method_packed: Packed,
    drive: Drive,
    mode_source: ModeSource | None,
    jacobians: Sequence[int],
    progress: Callable[[float], None] | None,
) -> RawRun:
    """Run a loop that is about to start by ``radau`` or ``bdf``; see :func:`fsm_dyn.simulation.run.run`.

    ``method_packed`` is the adaptive explicit method for which ``loop`` has workspace; it advances to the end of a
    train of impacts.
    """
    stiff = _Stiff(loop, options, drive, method_packed, method, jacobians)
    options.counts[st.CHUNK] = 1
    while True:
        try:
            if loop.state.counters[st.PHASE] == st.RESOLVING:
                stiff.solver, stiff.since = None, 0
                status = int(advance(*stiff.addresses()))
            elif loop.state.counters[st.ROWS] + st.ROWS_PER_TURN > len(loop.buffers.modes):
                status = outcomes.BUFFER_FULL
            else:
                status = stiff.step()
            if progress is not None:
                progress(float(loop.state.clock[st.TIME]))
        except KeyboardInterrupt:
            status = outcomes.INTERRUPTED
        if status > outcomes.LAST_INTERNAL:
            return finish(loop, status)
        refused = supply(loop, status, mode_source)
        if refused is not None:
            return finish(loop, refused)
