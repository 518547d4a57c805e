"""Implicit methods of SciPy for stiff models, with the kernels, guards and transitions of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.continuation import Saver, restore
from fsm_dyn.run.executable import FirstRow, SavedState
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.integrators import METHOD
from fsm_dyn.run.loop_state import (
    LoopState,
    ModeProvider,
    RunArrays,
    end_window,
    enter_next_window,
    finish,
    has_earned_kernels,
    provide_requested,
)
from fsm_dyn.run.structures import Packed
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
from fsm_dyn.runtime.layouts import MethodArrays, Options

# -- Dense output of implicit methods, along which the runtime watches guards as along its own steps ---------
#
# The step of an implicit method is taken in Python. What the compiled loop then does with its dense output is what it
# does with a tableau: trial steps of any length, their ends projected, guards known by value and slope at start,
# middle and end. A trial step is read off the polynomial instead of being taken.


def dense_method(n: int) -> MethodArrays:
    """Return the arrays of a method followed along its dense output, for states of length ``n``."""
    counts = np.array([1, 1, 0, 1], dtype=np.int64)
    return MethodArrays(
        np.zeros(1),
        np.zeros(1),
        np.zeros(6),
        counts,
        np.zeros(DensePosition.COEFFICIENTS + (HIGHEST_DEGREE + 1) * n),
    )


def state_at(method: MethodArrays, n: int, t: float) -> Floats:
    """Return the state at ``t`` on the dense output, shape (n,)."""
    s = (t - method.dense[DensePosition.END]) / method.dense[DensePosition.LENGTH]
    powers = method.dense[DensePosition.COEFFICIENTS :].reshape(-1, n)[: int(method.counts[MethodCounts.DEGREE]) + 1]
    total = powers[-1].copy()
    for coefficient in powers[-2::-1]:
        total = total * s + coefficient
    return total


def follow(method: MethodArrays, solver: Any) -> None:
    """Write the dense output of the last step of scipy's ``Radau`` or ``BDF`` into ``method``.

    Radau: ``y_0 + sum Q_i theta^i`` over the step, expanded about its end.  BDF: Newton's form over backward
    differences ``D``, ``sum D_i prod_{j<i} (s + j) / (j + 1)``; E. Hairer and G. Wanner, *Solving Ordinary Differential
    Equations II*, sections IV.8 and V.1.
    """
    dense = solver.dense_output()
    n = len(solver.y)
    powers = method.dense[DensePosition.COEFFICIENTS :].reshape(-1, n)
    powers[:] = 0.0
    method.dense[DensePosition.END] = solver.t
    if hasattr(dense, "Q"):
        degree, length = dense.Q.shape[1], dense.h
        for i in range(1, degree + 1):
            for d in range(1, i + 1):
                powers[d] += comb(i, d) * dense.Q[:, i - 1]
    else:
        degree, length = dense.order, float(solver.h_abs)
        newton = np.ones(1)  # coefficients of the product, lowest power first
        for i in range(1, degree + 1):
            newton = np.convolve(newton, [(i - 1) / i, 1.0 / i])
            powers[: i + 1] += newton[:, None] * dense.D[i]
    powers[0] = solver.y
    method.dense[DensePosition.LENGTH] = length
    method.counts[MethodCounts.DEGREE] = degree


def shift(method: MethodArrays, by: Floats) -> None:
    """Move the dense output by a constant, shape (n,)."""
    method.dense[DensePosition.COEFFICIENTS : DensePosition.COEFFICIENTS + len(by)] += by


# -- State of scipy's ``Radau`` and ``BDF`` between two steps, as plain numbers and arrays -------------------
#
# A solver with the same state takes the same steps, whatever object it is: factors are kept as they are, because they
# may be those of another length of step.

_NUMBERS: Final = ("t", "t_old", "h_abs", "h_abs_old", "error_norm_old")  # or None
_OWN: Final = {"radau": ("y", "f", "y_old"), "bdf": ("y",)}  # arrays (n,)
_FACTORS: Final = {"radau": ("LU_real", "LU_complex"), "bdf": ("LU",)}
_SHORTEST_RETRY: Final = 1e-3  # part of a step that is taken instead, if its dense output rounds too much
_COLLOCATION: Final = 3  # polynomials of Radau's dense output


def capture(solver: Any) -> dict[str, Any]:
    """Return the state of a solver as copies: numbers, None and float arrays by name."""
    kind = "bdf" if hasattr(solver, "D") else "radau"
    state: dict[str, Any] = {"kind": kind}
    state |= {name: _number(getattr(solver, name)) for name in _NUMBERS}
    state |= {name: _copy(getattr(solver, name)) for name in _OWN[kind]}
    state["J"] = _copy(solver.J)
    for name in _FACTORS[kind]:
        factors = getattr(solver, name)
        matrix, pivots = (None, None) if factors is None else factors
        state[name] = None if matrix is None else np.stack([matrix.real, matrix.imag]).astype(np.float64)
        state[f"{name}_pivots"] = None if pivots is None else np.asarray(pivots, np.float64)
    if kind == "bdf":
        differences = solver.D.copy()
        differences[solver.order + 3 :] = 0.0  # never filled
        state |= {"D": differences, "order": int(solver.order), "n_equal_steps": int(solver.n_equal_steps)}
    else:
        sol = solver.sol
        state["current_jac"] = bool(solver.current_jac)
        state["Q"] = None if sol is None else sol.Q.copy()
        state["sol_times"] = None if sol is None else np.array([sol.t_old, sol.t], np.float64)
        state["sol_y_old"] = None if sol is None else sol.y_old.copy()
    return state


def restore_solver(solver: Any, state: Mapping[str, Any]) -> None:
    """Give a new solver of the same class a state.

    Raises InputError: a number or array is missing, or has another shape.
    """
    n = len(solver.y)
    kind = "bdf" if hasattr(solver, "D") else "radau"
    for name in _NUMBERS:
        setattr(solver, name, number(state, name))
    for name in _OWN[kind]:
        setattr(solver, name, array(state, name, (n,), optional=name == "y_old"))
    solver.J = array(state, "J", (n, n))
    for name in _FACTORS[kind]:
        setattr(solver, name, _factors(state, name, n))
    if kind == "bdf":
        solver.D = array(state, "D", solver.D.shape)
        solver.order = integer(state, "order", 1, len(solver.D) - 3)
        solver.n_equal_steps = integer(state, "n_equal_steps", 0, 10**9)
        return
    solver.current_jac = bool(state.get("current_jac"))
    solver.sol = None
    coefficients = array(state, "Q", (n, _COLLOCATION), optional=True)
    if coefficients is not None:
        from scipy.integrate._ivp.radau import RadauDenseOutput

        times = array(state, "sol_times", (2,))
        solver.sol = RadauDenseOutput(
            float(times[0]), float(times[1]), array(state, "sol_y_old", (n,)), coefficients
        )  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _copy(value: Any) -> Floats | None:
    return None if value is None else np.array(value, np.float64)


def refused(name: str) -> InputError:
    """Return the error for a damaged state."""
    return InputError("the run cannot be continued", found=f"the solver's '{name}' is damaged", remedy="run it again")


def number(state: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number or None; raise InputError if it is neither."""
    value = state.get(name)
    if value is not None and not (isinstance(value, int | float) and np.isfinite(value)):
        raise refused(name)
    if value is None and name in ("t", "h_abs"):
        raise refused(name)
    return value


def integer(state: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return an integer within bounds; raise InputError where it is none."""
    value = state.get(name)
    if not isinstance(value, int) or not least <= value <= most:
        raise refused(name)
    return value


def array(state: Mapping[str, Any], name: str, shape: tuple[int, ...], *, optional: bool = False) -> Any:
    """Return an array of finite numbers, or None if allowed; raise InputError where it is none."""
    value = state.get(name)
    if value is None and optional:
        return None
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise refused(name) from None
    if found.shape != shape or not np.all(np.isfinite(found)):
        raise refused(name)
    return found


def _factors(state: Mapping[str, Any], name: str, n: int) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    parts = array(state, name, (2, n, n), optional=True)
    if parts is None:
        return None
    pivots = array(state, f"{name}_pivots", (n,))
    if not np.all((pivots >= 0) & (pivots < n) & (pivots == np.floor(pivots))):
        raise refused(name)
    matrix = parts[0] + 1j * parts[1] if name == "LU_complex" else parts[0]
    return np.asfortranarray(matrix), pivots.astype(np.int32)


# -- Step lengths of scipy's implicit solvers, selected and limited from outside -----------------------------

_NODES: Final = (0.1550510257216822, 0.6449489742783178, 1.0)  # of Radau's method, as parts of a step
_CLOSEST: Final = 1e-5  # least remainder of the rows at a node
_ROUNDING: Final = 2.0 * np.finfo(float).eps  # of a step of unit turn, times the cube of the remainder of the rows
_SHARE: Final = 3.0  # times rounding: the least absolute tolerance
_ASIDE: Final = 30.0  # times rounding, by which the iteration starts aside
SHORT: Final = 1e-6  # first step without an estimate of its length, in the mechanism's own unit of time


def limit_step(solver: Any, length: float, clear: float, longest: float) -> float:
    """Let the next step of a solver keep clear of a change point.

    ``solver``, scipy.integrate.Radau or BDF: about to take a step; ``length``: the step without this bound (s);
    ``clear``: the longest clear one (s); ``longest``: the longest step of the run (s). Returns ``length`` if it was not
    allowed, to be asked for again with the step after; 0 otherwise.
    """
    short = clear < length
    solver.max_step = min(longest, clear) if short else longest
    if hasattr(solver, "D"):  # its differences allow no longer step than they were made for
        return 0.0
    if short or solver.h_abs < length:
        solver.h_abs = min(solver.max_step, length)
        solver.LU_real = solver.LU_complex = None  # factored for another length
    return length if short else 0.0


def newton_tolerance(rtol: float) -> float:
    """Return the accuracy of the simplified Newton iteration in scipy's solvers, in units of the tolerance."""
    return float(max(10 * np.finfo(float).eps / rtol, min(0.03, rtol**0.5)))


def rounding_of_step(rank: Floats, h: float) -> float:
    """Return the possible effect of rounding near a change point on a step of Radau's method, in units of the state.

    Rounding enters accelerations divided by the cube of the remainder of the rows at the nearest node. ``rank``,
    float64 array: ``RunState.rank``, as the rows were looked at before the step; ``h``: length of the step (s).
    """
    if rank[Rank.LANDS] == 0.0:
        return 0.0
    distance = min(abs(time - node * h) for time in (rank[Rank.AHEAD], rank[Rank.BEHIND]) for node in _NODES)
    left = max(distance * rank[Rank.RATE], _CLOSEST)
    return (
        float(_ROUNDING * h * rank[Rank.RATE] / left / left / left) if np.isfinite(left) else 0.0
    )  # its cube may overflow


def ease_step(solver: Any, by: Floats) -> None:
    """Let the next step of Radau's method converge as far as rounding allows.

    The simplified Newton iteration stops if its moves no longer shrink fast enough. If they are rounding from the
    second on, it would stop at any length of the step. So its start, the last step continued, is moved aside by more
    than rounding, and the requested accuracy is no less than rounding. If rounding is larger than a tenth of the
    tolerance, it replaces the tolerance. ``solver``, scipy.integrate.Radau: about to take a step, with the tolerances
    of the run; ``by``, float64 array, shape (n,): effect of rounding on the state.
    """
    solver.atol = np.maximum(solver.atol, _SHARE * by)
    solver.newton_tol = max(solver.newton_tol, float(np.max(by / (solver.atol + solver.rtol * np.abs(solver.y)))))
    if solver.sol is not None:
        solver.sol = _Aside(solver.sol, _ASIDE * by)


class _Aside:
    """The dense output of a step, moved by a constant."""

    def __init__(self, along: Callable[[Floats], Floats], by: Floats) -> None:
        self.along, self.by = along, by

    def __call__(self, t: Floats) -> Floats:
        """Return the states at times, shape (n, m)."""
        return self.along(t) + self.by[:, None]


def first_step(
    derivative: Callable[[float, Floats], Floats],
    span: tuple[float, float],
    x: Floats,
    accuracy: tuple[float, Floats],
    order: int,
    unit: float,
) -> float:
    """Return the length of a first step (s).

    As of scipy, but in the mechanism's own unit of time: Hairer, Norsett, Wanner, *Solving Ordinary Differential
    Equations I*, section II.4. ``derivative``: x_dot at a time (s) and a state, shape (n,); ``span``: start of the
    step, and its latest end (s); ``x``, float64 array, shape (n,); ``accuracy``, shape (n,)): relative and absolute
    tolerance; ``order``: of the estimate of the error; ``unit``: the mechanism's own unit of time (s).
    """
    t, longest = span[0], span[1] - span[0]
    scale = accuracy[1] + np.abs(x) * accuracy[0]
    x_dot = derivative(t, x)
    d0, d1 = _mean(x / scale), _mean(x_dot / scale)
    h0 = min(SHORT * unit if d0 < 1e-5 or d1 * unit < 1e-5 else 0.01 * d0 / d1, longest)
    d2 = _mean((derivative(t + h0, x + h0 * x_dot) - x_dot) / scale) / h0
    steepest = max(d1 * unit, d2 * unit * unit)
    h1 = max(SHORT * unit, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** (1 / (order + 1)) * unit
    return min(100 * h0, h1, longest)


def _mean(values: Floats) -> float:
    return float(np.linalg.norm(values) / values.size**0.5)


# -- Implicit methods of scipy for stiff models --------------------------------------------------------------
#
# Implicit methods of scipy for stiff models, with the kernels, guards and transitions of the runtime.
#
# The implicit step is taken in Python. The compiled loop of :mod:`fsm_dyn.run.stepper` follows its dense output as it
# follows the steps of an explicit method: guards are watched and located by the same functions and rules, and all
# that happens at a transition is done there.

# request to ``implicit_step``

_DIFFERENCE: Final = 6e-6  # of a state, by which it is differenced
_FARTHEST: Final = 1e-3  # in the unit of the state: differences go no farther
_STIFF_BEGIN: Final = 1e-3  # of the last step before an event: a shorter estimate is taken
_STARTED: Final = 5  # steps after an event, left by bdf to radau
_SAVED_EVERY: Final = 200  # steps, after an interruption the run is continued from there
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
        self.saver = saver
        self.solver: Any = None
        self.first_step: float | None = None
        self.pack()

    def pack(self) -> None:
        """Look up the addresses of the memory of the run; to be called again after memory has moved."""
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
        """Take the first step of a run from a change point, by the explicit method; return a status.

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
        """Return the derivative of x_dot with respect to x, shape (n, n), by central differences.

        The steps of the differences follow the size of each state but never exceed 1e-3 of its unit, so that a
        coordinate that grows without bound (a wheel's angle) does no harm.
        """
        n = len(x)
        result = np.empty((n, n))
        for j in range(n):
            unit = float(self.loop.tables.state_unit[j])
            d = min(_DIFFERENCE * max(unit, abs(float(x[j]))), _FARTHEST * unit)
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
        """Save the current state if later steps may depend on the end of the run."""
        last = self.until == self.options.numbers[OptionNumbers.UNTIL]
        if last and self.saver is not None and library.end_is_near(self.advances):
            self.save(before_end=True)

    def state(self) -> dict[str, Any]:
        """Return the solver's own state; ``bound``: where the solver ends, None for the run's end."""
        until = self.until
        return {
            "first_step": self.first_step, "since": self.since, "unlimited": self.unlimited,
            "dense": self.dense.dense.copy(), "degree": int(self.dense.counts[MethodCounts.DEGREE]),
            "solver": None if self.solver is None else capture(self.solver),
            "bound": None if self.solver is None or self.solver.t_bound == until else float(self.solver.t_bound),
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any], target: float) -> None:
        """Continue from a :meth:`state`, towards ``target`` (s); the loop's own state is restored after this.

        Raises InputError: it is damaged.
        """
        first, unlimited = number(state, "first_step"), number(state, "unlimited")
        since = integer(state, "since", 0, 10**9)
        degree = integer(state, "degree", 1, HIGHEST_DEGREE)
        dense = array(state, "dense", self.dense.dense.shape)
        bound, solver = number(state, "bound"), state.get("solver")
        if solver is not None and not isinstance(solver, Mapping):
            raise refused("solver")
        if solver is not None:
            kind = self.solver_class if solver.get("kind") == self.solver_class.__name__.lower() else self.starter
            self.solver = self.make(kind, target if bound is None else bound)
            restore_solver(self.solver, solver)
        self.first_step, self.since, self.unlimited = first, since, unlimited or 0.0
        self.dense.dense[:] = dense
        self.dense.counts[MethodCounts.DEGREE] = degree

    def near_end(self, length: float, target: float) -> bool:
        """Whether a step of this length (s) may be shortened by the end of the run, which ``target`` (s) is then."""
        left = target - float(self.loop.state.clock[Clock.TIME])
        return target == self.until and left <= length * (1.0 + 1e-9)

    def first_length(self, kind: Any, until: float) -> float:
        """Return the length of a first step (s) ending at ``until`` (s) at the latest."""
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
        """Return a solver of this class from the current state."""
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
        """Restart at the current state; the state is saved before if the end of the run has an influence."""
        kind = self.starter if self.since < _STARTED else self.solver_class
        given = self.first_step
        if kind is not self.starter and self.starter is not self.solver_class:
            given = None  # the order falls: let the length be found again
        if given is not None and self.since == 0:
            # over many periods of a stiff contact the filtered error of radau is small: the spring would seem to rest
            length = self.first_length(kind, target)
            given = length if length < _STIFF_BEGIN * given else given
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
            if status != Status.CONTINUE or state.counters[Counters.PHASE] == Phase.RESOLVING:
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
        return self.take(target)

    def take(self, target: float) -> int:
        """Take an implicit step and go along it, or a shorter one if rounding would spoil its polynomial."""
        with np.errstate(all="ignore"):
            try:
                self.solver.step()
            except ValueError:  # scipy refuses a Jacobian with entries not finite
                return Status.NON_FINITE
        if self.solver.status == "failed" and not isinstance(self.solver, self.starter):
            # begun with its first order, bdf may need steps below the resolution of time: they are left to radau
            self.since, self.solver, self.first_step = 0, None, None
            return self.step()
        if self.solver.status == "failed" and self.ease_rounding(target):
            with np.errstate(all="ignore"):
                self.solver.step()
        if self.solver.status == "failed":
            return Status.STEP_TOO_SMALL if np.all(np.isfinite(self.solver.y)) else Status.NON_FINITE
        self.first_step = float(getattr(self.solver, "h_abs", self.solver.step_size))
        follow(self.dense, self.solver)
        excess = self.rounding()
        if excess > 1.0:
            self.first_step = max(0.5 / np.sqrt(excess), _SHORTEST_RETRY) * float(self.solver.step_size)
            self.since, self.solver = 0, None
            return self.step()
        return self.go_along(target)

    def rounding(self) -> float:
        """Return the rounding of the dense output as a part of a tenth of the tolerated error at the start of its step.

        The step of a free flight may last as long as the run, and its polynomial reach so far that nothing is left of
        the digits of a place near the start, in which an event may have to be located.
        """
        x = self.loop.state.x
        largest = np.max(np.abs(self.dense.dense[DensePosition.COEFFICIENTS :].reshape(-1, len(x))), axis=0)
        rtol, unit = float(self.options.numbers[OptionNumbers.RTOL]), self.loop.tables.state_unit
        scale = self.options.atol + rtol * np.maximum(np.abs(x), unit)
        return float(np.max(10.0 * np.finfo(float).eps * largest / scale, initial=0.0))

    def ease_rounding(self, target: float) -> bool:
        """Make the solver again with tolerances above the rounding of coordinates; return whether that is a change.

        The rounding of a coordinate moves a stiff force on a light body, and with it the speeds in the time constant
        of the Jacobian. The iteration of a step, long or short, does not converge below that.
        """
        J, y = self.solver.J, np.abs(self.loop.state.x)
        fastest = float(np.max(np.abs(np.linalg.eigvals(J)))) if np.all(np.isfinite(J)) else 0.0  # 1/s
        rtol, atol = self.accuracy()
        by = np.finfo(float).eps * (np.abs(J) @ y) / fastest if fastest > 0.0 else np.zeros(len(y))
        if not np.any(by > 0.1 * newton_tolerance(rtol) * (atol + rtol * y)):
            return False
        self.first_step = None
        self.solver = self.make(self.starter, target)
        self.solver.newton_tol = newton_tolerance(rtol)
        self.solver.max_step = min(self.max_step, 1.0 / fastest)
        ease_step(self.solver, by)
        return True

    def ease(self, unlimited: float) -> None:
        """Give the solver the tolerances of its next step; ``unlimited``: the result of :func:`limit_step` (s)."""
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

        The compiled loop looks for events as it does with every method.  If the step is too long to tell whether a
        guard falls through zero in it, only a part is accepted, and the next call continues from its end.
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
        """Go on from the end of the step as it was projected, with the history of the solver.

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
    progress: Callable[[float], None] | None,
    saver: Saver | None = None,
    resumed: tuple[SavedState, FirstRow] | None = None,
    renewed: bool = False,
) -> RunArrays:
    """Run a new loop by ``radau`` or ``bdf``; see :func:`fsm_dyn.run.loop.run_automaton`.

    ``loop``: tables, state and arena. ``options``, tuple[st.Options, Packed]: of the stepper, as a structure and
    packed. ``method``: ``radau`` or ``bdf``. ``method_packed``: the adaptive explicit method for which `loop` has
    workspace; it advances to the end of a Zeno sequence. ``mode_source``: provides modes missing in the tables.
    ``progress``: called with the time reached, s. ``resumed``: the state from which the run continues, and its first
    row. ``renewed``: whether another method made that state: the solver restarts.
    """
    stiff = _Stiff(loop, options, drive, method_packed, method, saver)
    options[0].counts[OptionCounts.CHUNK] = 1
    options[0].counts[OptionCounts.BEFORE_END] = 0
    if resumed is not None and saver is not None:
        _restore(stiff, resumed, saver, mode_source, renewed)
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
    stiff: _Stiff, resumed: tuple[SavedState, FirstRow], saver: Saver, mode_source: ModeProvider | None, renewed: bool
) -> None:
    """Give a new run a saved state; the solver made there spoils the inputs of the context."""
    loop = stiff.loop

    def handle() -> library.RunStructure:
        stiff.pack()
        return stiff.advances

    restore(loop, handle, *resumed, saver, mode_source, renewed)
    stiff.options.counts[OptionCounts.MAX_STEPS] += loop.state.counters[Counters.STEPS]
    if renewed:
        return
    context = loop.state.c.copy()
    solver = resumed[0].solver
    if solver is None:
        raise InputError("the run cannot be continued", found="no solver's state", remedy="run it again")
    stiff.restore(solver, stiff.target())
    loop.state.c[:] = context
