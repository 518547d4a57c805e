"""Runs of stiff models: scipy's implicit methods over the same kernels, guards and transitions.

The implicit step is taken in Python.  The compiled loop of :mod:`fsm_dyn.simulation.stepper` follows its dense output
as it follows the steps of an explicit method: guards are watched and located by the same functions and rules, and all
that happens at a transition is done there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime import library
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import Packed
from fsm_dyn.simulation.dense_output import COEFFICIENTS, LENGTH, dense_method, follow, shift, state_at
from fsm_dyn.simulation.drive import KERNEL, Drive
from fsm_dyn.simulation.integrators import METHOD
from fsm_dyn.simulation.loop import Loop, ModeSource, finish, supply
from fsm_dyn.simulation.raw_run import RawRun
from fsm_dyn.simulation.step_limits import limit_step

Floats = NDArray[np.float64]

# what ``implicit_step`` is asked to do
_DERIVATIVE: Final = 0  # work.k[:n] = x_dot(t, work.y)
_FOLLOW: Final = 1  # accept the dense output up to t, to the next event, or as far as it can be trusted
_CHART: Final = 2  # choose a better chart if there is one
_LOOK: Final = 3  # look for change points up to a length ahead; work.y[0] is then the length that keeps clear of them

_STARTED: Final = 5  # steps after an event that bdf leaves to radau
_SMALL_SHIFT: Final = 10.0  # times the tolerance of a step, up to which a projection leaves the solver as it is


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
        self.dense = dense_method(len(loop.state.x))
        self.dense_packed = METHOD.pack(self.dense)
        self.solver_class: Any = {"radau": Radau, "bdf": BDF}[method]
        # bdf begins with its first order, which a train of ever lower bounces would never leave
        self.starter: Any = Radau
        self.since = 0  # steps taken since the last event
        self.unlimited = 0.0  # length of step (s) that the solver would have taken but for a change point, 0: as it did
        self.max_step = float(options.numbers[st.MAX_STEP])
        self.jacobians = tuple(jacobians)
        self.solver: Any = None
        self.first_step: float | None = None
        self.pack()

    def pack(self) -> None:
        """Look up the addresses of all that the run works on; to be called again where memory moved."""
        self.follows = self.loop.run(self.drive.packed, self.dense_packed, self.options_packed)
        self.advances = self.loop.run(self.drive.packed, self.method_packed, self.options_packed)

    def serve(self, what: int, t: float = 0.0, target: float = 0.0) -> int:
        """Call the compiled part."""
        return int(library.implicit_step(self.follows, what, t, target))

    def resolve(self) -> int:
        """Carry out the pending transition; return a status."""
        self.solver, self.since = None, 0
        return int(library.advance(self.advances))

    def is_full(self) -> bool:
        """Whether a step needs more room to record."""
        made, room = self.loop.state.counters, self.loop.buffers
        return bool(made[st.ROWS] + st.ROWS_PER_TURN > len(room.modes) or made[st.PASSED] >= len(room.passages))

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
        """Go on along the last implicit step, or take the next one, up to the next event at most; return a status."""
        state = self.loop.state
        target = self.target()
        t = float(state.clock[st.TIME])
        if not state.clock[st.PIVOT] >= state.clock[st.PIVOT_ALARM]:
            self.solver = None
            status = self.serve(_CHART)
            if status != outcomes.GOING:
                return status
        if target - t <= 16.0 * np.finfo(float).eps * max(abs(t), abs(target)):
            self.dense.dense[:] = 0.0
            self.dense.dense[LENGTH] = 1.0
            self.dense.dense[COEFFICIENTS : COEFFICIENTS + len(state.x)] = state.x
            return self.serve(_FOLLOW, target, target)
        if self.solver is not None and self.solver.t > t:
            return self.go_along(target)
        if self.since == _STARTED and self.starter is not self.solver_class:
            self.solver = None
        if self.solver is None or self.solver.t_bound != target:
            self.restart(target)
        self.since += 1
        length = max(float(self.solver.h_abs), self.unlimited)
        status = self.serve(_LOOK, t, length)
        if status != outcomes.GOING:
            return status
        self.unlimited = limit_step(self.solver, length, float(self.loop.work.y[0]), self.max_step)
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
        follow(self.dense, self.solver)
        return self.go_along(target)

    def go_along(self, target: float) -> int:
        """Accept the dense output of the solver's step as far as no event is in doubt; return a status.

        The compiled loop looks for events as it does with every method.  Where the step is too long to tell whether a
        guard falls through zero in it, only a part is accepted, and the next call goes on from there.
        """
        state, n_q = self.loop.state, int(self.loop.tables.sizes[tb.N_Q])
        status = self.serve(_FOLLOW, float(self.solver.t), target)
        if status != outcomes.GOING or state.counters[st.PHASE] == st.RESOLVING:
            return status
        t = float(state.clock[st.TIME])
        moved = state.x - state_at(self.dense, len(state.x), t)
        if np.any(moved[:n_q]):
            self.shift(t, moved)
        return status

    def shift(self, t: float, moved: Floats) -> None:
        """Go on from the end of the step as it was projected, without giving up what the solver knows.

        A projection moves less than the error of a step.  Were the solver begun anew, ``bdf`` would never leave its
        first order; its backward differences stay what they are when all values behind it move alike.
        """
        solver = self.solver
        scale = self.options.atol + float(self.options.numbers[st.RTOL]) * np.abs(self.loop.state.x)
        if not np.all(np.abs(moved) <= _SMALL_SHIFT * scale):
            self.solver = None
            return
        shift(self.dense, moved)
        solver.y = self.loop.state.x.copy() if t >= solver.t else solver.y + moved
        if hasattr(solver, "D"):
            solver.D[0] = solver.y
        elif t >= solver.t:
            solver.f = self.derivative(t, solver.y)


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
                status = stiff.resolve()
            elif stiff.is_full():
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
        stiff.pack()
