"""Implicit methods of scipy for stiff models, with the kernels, guards and transitions of the runtime.

The implicit step is taken in Python.  The compiled loop of :mod:`fsm_dyn.simulation.stepper` follows its dense output
as it follows the steps of an explicit method: guards are watched and located by the same functions and rules, and all
that happens at a transition is done there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    HIGHEST_DEGREE,
    ROWS_PER_TURN,
    Clock,
    Counters,
    DensePosition,
    ImplicitService,
    MethodCounts,
    OptionCounts,
    OptionNumbers,
    Phase,
    Rank,
    Sizes,
    Status,
    ToleranceTable,
)
from fsm_dyn.runtime.layouts import Options
from fsm_dyn.simulation import solver_state
from fsm_dyn.simulation.array_structs import Packed
from fsm_dyn.simulation.dense_output import dense_method, follow, shift, state_at  # fmt: skip
from fsm_dyn.simulation.input_signals import KERNEL, InputSignals
from fsm_dyn.simulation.integrators import METHOD
from fsm_dyn.simulation.loop_state import (
    LoopState,
    ModeProvider,
    end_window,
    enter_next_window,
    finish,
    has_earned_kernels,
    provide_requested,
)
from fsm_dyn.simulation.run_arrays import RunArrays
from fsm_dyn.simulation.saved_state import FirstRow, SavedState
from fsm_dyn.simulation.saving import Saver, restore
from fsm_dyn.simulation.step_limits import ease_step, first_step, limit_step, newton_tolerance, rounding_of_step

Floats = NDArray[np.float64]

# what ``implicit_step`` is asked to do

_SHARE: Final = 6e-6  # of a state, by which it is differenced
_FARTHEST: Final = 1e-3  # in the unit of the state: differences go no farther
_STARTED: Final = 5  # steps after an event that bdf leaves to radau
_SAVED_EVERY: Final = 200  # steps, so that a run which is interrupted within one can be continued
_SMALL_SHIFT: Final = 10.0  # times the tolerance of a step, up to which a projection leaves the solver as it is


class _Stiff:
    """One run by an implicit method."""

    def __init__(
        self,
        loop: LoopState,
        options: tuple[Options, Packed],
        drive: InputSignals,
        method_packed: Packed,
        method: str,
        jacobians: Sequence[int],
        saver: Saver | None = None,
    ) -> None:
        from scipy.integrate import BDF, Radau

        self.loop = loop
        self.options, self.options_packed = options
        self.drive = drive
        self.until = float(
            self.options.numbers[OptionNumbers.UNTIL]
        )  # s, of the run, not of its present switches over time
        self.method_packed = method_packed
        self.dense = dense_method(len(loop.state.x))
        self.dense_packed = METHOD.pack(self.dense)
        self.solver_class: Any = {"radau": Radau, "bdf": BDF}[method]
        # bdf begins with its first order, which a Zeno sequence would never leave
        self.starter: Any = Radau
        self.since = 0  # steps taken since the last event
        self.unlimited = 0.0  # s, step length of the solver without the limit of a change point, 0: not limited
        self.max_step = float(self.options.numbers[OptionNumbers.MAX_STEP])
        self.jacobians = tuple(jacobians)
        self.saver = saver
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

    def leave_change_point(self) -> int:
        """Take the first step of a run that starts in a change point, by the explicit method; return a status.

        The derivative there is a limit, and has no Jacobian.
        """
        self.save_before_end()
        self.solver = None
        status = int(library.advance(self.advances))
        self.loop.state.clock[Clock.STEP] = 0.0
        return status

    def is_full(self) -> bool:
        """Whether a step needs more room to record."""
        made, room = self.loop.state.counters, self.loop.buffers
        return bool(
            made[Counters.ROWS] + ROWS_PER_TURN > len(room.modes) or made[Counters.PASSED] >= len(room.passages)
        )

    def derivative(self, t: float, x: Floats) -> Floats:
        """Return x_dot, shape (n,)."""
        work = self.loop.work
        work.y[:] = x
        self.serve(ImplicitService.DERIVATIVE, t)
        return work.k[: len(x)].copy()

    def jacobian(self, t: float, x: Floats) -> Floats:
        """Return the derivative of x_dot with respect to x, shape (n, n), by a kernel or by central differences.

        The steps of the differences follow the size of each state but never exceed 1e-3 of its unit, so that a
        coordinate that grows without bound (a wheel's angle) does no harm.
        """
        n = len(x)
        result = np.empty((n, n))
        mode = int(self.loop.state.counters[Counters.MODE])
        if mode < len(self.jacobians) and self.jacobians[mode]:
            self.derivative(t, x)  # for the inputs in the context
            kernel = KERNEL(self.jacobians[mode])
            kernel(t, self.loop.work.y.ctypes.data, self.loop.state.c.ctypes.data, result.ctypes.data)
            return result
        for j in range(n):
            unit = float(self.loop.tables.state_unit[j])
            d = min(_SHARE * max(unit, abs(float(x[j]))), _FARTHEST * unit)
            ahead, behind = x.copy(), x.copy()
            ahead[j] += d
            behind[j] -= d
            result[:, j] = (self.derivative(t, ahead) - self.derivative(t, behind)) / (ahead[j] - behind[j])
        return result

    def save(self, *, before_end: bool = False) -> None:
        """Save the current state, if the run may be continued."""
        if self.saver is not None and not self.saver.before_end:
            self.saver.save(self.loop, self.advances, self.state(), before_end=before_end)

    def save_before_end(self) -> None:
        """Save the current state if what follows may depend on where the run ends."""
        last = self.until == self.options.numbers[OptionNumbers.UNTIL]
        if last and self.saver is not None and library.end_is_near(self.advances):
            self.save(before_end=True)

    def state(self) -> dict[str, Any]:
        """Return what is known beside the loop's state; ``bound``: where the solver ends, None for the run's end."""
        until = self.until
        return {
            "first_step": self.first_step, "since": self.since, "unlimited": self.unlimited,
            "dense": self.dense.dense.copy(), "degree": int(self.dense.counts[MethodCounts.DEGREE]),
            "solver": None if self.solver is None else solver_state.capture(self.solver),
            "bound": None if self.solver is None or self.solver.t_bound == until else float(self.solver.t_bound),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any], target: float) -> None:
        """Go on from what :meth:`state` gave, towards ``target`` (s); the loop's own state is restored after this.

        Raises
        ------
        InputError
            It is damaged.
        """
        first, unlimited = solver_state.number(state, "first_step"), solver_state.number(state, "unlimited")
        since = solver_state.integer(state, "since", 0, 10**9)
        degree = solver_state.integer(state, "degree", 1, HIGHEST_DEGREE)
        dense = solver_state.array(state, "dense", self.dense.dense.shape)
        bound, solver = solver_state.number(state, "bound"), state.get("solver")
        if solver is not None and not isinstance(solver, Mapping):
            raise solver_state.refused("solver")
        if solver is not None:
            kind = self.solver_class if solver.get("kind") == self.solver_class.__name__.lower() else self.starter
            self.solver = self.make(kind, target if bound is None else bound)
            solver_state.restore(self.solver, solver)
        self.first_step, self.since, self.unlimited = first, since, unlimited or 0.0
        self.dense.dense[:] = dense
        self.dense.counts[MethodCounts.DEGREE] = degree

    def near_end(self, length: float, target: float) -> bool:
        """Whether a step of this length (s) may be shortened by the end of the run, which ``target`` (s) is then."""
        left = target - float(self.loop.state.clock[Clock.TIME])
        return target == self.until and left <= length * (1.0 + 1e-9)

    def first_length(self, kind: Any, until: float) -> float:
        """Return the length of a first step (s) that ends at ``until`` (s) at the latest."""
        state, loop = self.loop.state, self.loop
        unit = float(loop.tables.tolerances[ToleranceTable.TIME_SCALE])
        order = 1 if kind.__name__ == "BDF" else 3
        span = float(state.clock[Clock.TIME]), until
        return first_step(self.derivative, span, state.x.copy(), self.accuracy(), order, unit)

    def accuracy(self) -> tuple[float, Floats]:
        """Return the relative and the absolute tolerance of a step."""
        return max(float(self.options.numbers[OptionNumbers.RTOL]), 100 * np.finfo(float).eps), self.options.atol

    def first_length_is_free(self, kind: Any, target: float) -> bool:
        """Whether the first step of the solver just made would be the same, did the run end later."""
        if self.near_end(float(self.solver.h_abs), target):
            return False
        return self.first_length(kind, target) == self.first_length(kind, np.inf)

    def target(self) -> float:
        """Return the next instant at which a step must end exactly (s)."""
        until = float(self.options.numbers[OptionNumbers.UNTIL])
        return min(until, float(library.next_jump(self.advances)))

    def make(self, kind: Any, target: float) -> Any:
        """Return a solver of this class that begins at the current state."""
        state = self.loop.state
        t = float(state.clock[Clock.TIME])
        first = self.first_step
        if first is None and target > t:
            first = self.first_length(kind, target)
        rtol, atol = self.accuracy()
        return kind(
            self.derivative,
            t,
            state.x.copy(),
            target,
            rtol=rtol,
            atol=atol,
            max_step=self.max_step,
            first_step=None if first is None else min(first, self.max_step, target - t),
            jac=self.jacobian,
        )

    def restart(self, target: float) -> None:
        """Restart at the current state; if the end of the run influences that, the state is saved before."""
        kind = self.starter if self.since < _STARTED else self.solver_class
        given = self.first_step
        if kind is not self.starter and self.starter is not self.solver_class:
            given = None  # the order falls: let the length be found again
        may_matter = self.saver is not None and target == self.until
        before = (self.loop.state.c.copy(), self.solver, self.first_step)
        self.first_step = given
        self.solver = self.make(kind, target)
        if may_matter and (self.near_end(given, target) if given else not self.first_length_is_free(kind, target)):
            after = (self.loop.state.c.copy(), self.solver, self.first_step)
            self.loop.state.c[:], self.solver, self.first_step = before
            self.save(before_end=True)
            self.loop.state.c[:], self.solver, self.first_step = after

    def step(self) -> int:
        """Go on along the last implicit step, or take the next one, up to the next event at most; return a status."""
        state = self.loop.state
        target = self.target()
        t = float(state.clock[Clock.TIME])
        if not state.clock[Clock.PIVOT] >= state.clock[Clock.PIVOT_ALARM] or has_earned_kernels(self.loop):
            self.solver = None
            status = self.serve(ImplicitService.CHART)
            if status != Status.CONTINUE:
                return status
        if target - t <= 16.0 * np.finfo(float).eps * max(abs(t), abs(target)):
            if target == self.until:
                self.save(before_end=True)
            self.dense.dense[:] = 0.0
            self.dense.dense[DensePosition.LENGTH] = 1.0
            self.dense.dense[DensePosition.COEFFICIENTS : DensePosition.COEFFICIENTS + len(state.x)] = state.x
            return self.serve(ImplicitService.FOLLOW, target, target)
        if self.solver is not None and self.solver.t > t:
            return self.go_along(target)
        if int(state.counters[Counters.STEPS]) > int(self.options.counts[OptionCounts.MAX_STEPS]):
            self.save()
            return Status.TOO_MANY_STEPS
        if int(state.counters[Counters.STEPS]) % _SAVED_EVERY == 0:
            self.save()
        if state.rank[Rank.ACTIVE] > 0.0 and state.rank[Rank.BEHIND] == 0.0:
            return self.leave_change_point()
        if self.since == _STARTED and self.starter is not self.solver_class:
            self.solver = None
        if self.solver is None or self.solver.t_bound != target:
            self.restart(target)
        length = max(float(self.solver.h_abs), self.unlimited)
        if self.near_end(length, target):
            self.save(before_end=True)
        status = self.serve(ImplicitService.LOOK, t, length)
        if status != Status.CONTINUE:
            return status
        if state.rank[Rank.LANDS] != 0.0:
            if not isinstance(self.solver, self.starter):  # left to radau, as the steps after an event
                self.since, self.solver = 0, None
                return self.step()
            self.since = 0
        else:
            self.since += 1
        self.ease(limit_step(self.solver, length, float(self.loop.work.y[0]), self.max_step))
        with np.errstate(all="ignore"):
            try:
                self.solver.step()
            except ValueError:  # scipy refuses a Jacobian that is not finite
                return Status.NON_FINITE
        if self.solver.status == "failed":
            return Status.STEP_TOO_SMALL if np.all(np.isfinite(self.solver.y)) else Status.NON_FINITE
        self.first_step = float(getattr(self.solver, "h_abs", self.solver.step_size))
        follow(self.dense, self.solver)
        return self.go_along(target)

    def ease(self, unlimited: float) -> None:
        """Give the solver the tolerances of its next step; ``unlimited``: what :func:`limit_step` returned (s)."""
        solver, rank = self.solver, self.loop.state.rank
        self.unlimited = unlimited
        solver.rtol, solver.atol = self.accuracy()
        if hasattr(solver, "D"):
            return
        solver.newton_tol = newton_tolerance(solver.rtol)
        rounding = rounding_of_step(rank, float(solver.h_abs))
        if rounding > 0.0:
            unit = self.loop.tables.state_unit
            scale = solver.atol + solver.rtol * np.maximum(np.abs(solver.y), unit)
            rank[Rank.WORST] = max(rank[Rank.WORST], float(np.max(rounding * unit / scale)))
            ease_step(solver, rounding * unit)

    def go_along(self, target: float) -> int:
        """Accept the dense output of the solver's step as far as no event is in doubt; return a status.

        The compiled loop looks for events as it does with every method.  Where the step is too long to tell whether a
        guard falls through zero in it, only a part is accepted, and the next call continues from there.
        """
        state, n_q = self.loop.state, int(self.loop.tables.sizes[Sizes.N_Q])
        status = self.serve(ImplicitService.FOLLOW, float(self.solver.t), target)
        if status != Status.CONTINUE or state.counters[Counters.PHASE] == Phase.RESOLVING:
            return status
        t = float(state.clock[Clock.TIME])
        moved = state.x - state_at(self.dense, len(state.x), t)
        if np.any(moved[:n_q]):
            self.shift(t, moved)
        return status

    def shift(self, t: float, moved: Floats) -> None:
        """Go on from the end of the step as it was projected, without giving up what the solver knows.

        A projection moves less than the error of a step.  Were the solver begun again, ``bdf`` would never leave its
        first order; its backward differences stay what they are when all values behind it move alike.
        """
        solver = self.solver
        scale = self.options.atol + float(self.options.numbers[OptionNumbers.RTOL]) * np.abs(self.loop.state.x)
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
    loop: LoopState,
    options: tuple[Options, Packed],
    method: str,
    method_packed: Packed,
    drive: InputSignals,
    mode_source: ModeProvider | None,
    jacobians: Sequence[int],
    progress: Callable[[float], None] | None,
    saver: Saver | None = None,
    resumed: tuple[SavedState, FirstRow] | None = None,
) -> RunArrays:
    """Run a loop that is about to start by ``radau`` or ``bdf``; see :func:`fsm_dyn.simulation.run_loop.run_automaton`.

    ``method_packed`` is the adaptive explicit method for which ``loop`` has workspace; it advances to the end of a
    Zeno sequence.

    Parameters
    ----------
    loop : LoopState
        Tables, state and arena.
    options : tuple[st.Options, Packed]
        Of the stepper, as a structure and packed.
    method : str
        ``radau`` or ``bdf``.
    method_packed : Packed
        The data of the method.
    drive : InputSignals
        The input signals.
    mode_source : ModeProvider
        Provides modes that the tables lack.
    jacobians : Sequence[int]
        Addresses of the kernels of the Jacobians, by mode.
    progress : Callable[[float], None]
        Called with the time reached, s.
    saver : Saver, optional
        Saves states of the run.
    resumed : tuple[SavedState, FirstRow], optional
        The state from which the run continues, and its first row.

    Returns
    -------
    RunArrays
    """
    stiff = _Stiff(loop, options, drive, method_packed, method, jacobians, saver)
    options[0].counts[OptionCounts.CHUNK] = 1
    options[0].counts[OptionCounts.BEFORE_END] = 0
    if resumed is not None and saver is not None:
        _restore(stiff, resumed, saver, mode_source)
    end_window(options[0], stiff.drive, stiff.until)
    while True:
        try:
            if loop.state.counters[Counters.PHASE] == Phase.RESOLVING:
                stiff.save_before_end()
                status = stiff.resolve()
                stiff.save()
            elif stiff.is_full():
                status = Status.BUFFER_FULL
            else:
                status = stiff.step()
            if progress is not None:
                progress(float(loop.state.clock[Clock.TIME]))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status == Status.DONE and options[0].numbers[OptionNumbers.UNTIL] < stiff.until:
            stiff.drive = enter_next_window(loop, stiff.drive)
            end_window(options[0], stiff.drive, stiff.until)
            status = Status.CONTINUE
        if status > Status.LAST_INTERNAL:
            return finish(loop, status, saver.saved_of(status) if saver is not None else None)
        refused = provide_requested(loop, status, mode_source)
        if refused is not None:
            return finish(loop, refused)
        stiff.pack()


def _restore(
    stiff: _Stiff, resumed: tuple[SavedState, FirstRow], saver: Saver, mode_source: ModeProvider | None
) -> None:
    """Give a run that is about to start a saved state; the solver made there spoils the inputs of the context."""
    loop = stiff.loop

    def handle() -> library.RunStructure:
        stiff.pack()
        return stiff.advances

    restore(loop, handle, *resumed, saver, mode_source)
    stiff.options.counts[OptionCounts.MAX_STEPS] += loop.state.counters[Counters.STEPS]
    context = loop.state.c.copy()
    solver = resumed[0].solver
    if solver is None:
        raise InputError("the run cannot be continued", found="no solver's state", remedy="run it again")
    stiff.restore(solver, stiff.target())
    loop.state.c[:] = context
