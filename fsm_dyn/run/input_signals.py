"""Input signals of a run from numbers, tables, expressions and Python callables, as tables."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.core.arrays import Booleans, Codes, Floats, Integers
from fsm_dyn.core.errors import ExpressionError, InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.dimensions import texts_of, words_of
from fsm_dyn.language.elements import ExpressionSchedule, Schedule, TableSchedule
from fsm_dyn.language.evaluate import ParameterValue, ScalarAlgebra, evaluate_expression, names_in
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.values import ArgumentUnits
from fsm_dyn.programs.enclosure_code import enclosure_code
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import tangent
from fsm_dyn.run.structures import Bundle, Packed, guard_enclosures
from fsm_dyn.run.time_switches import SwitchWindows, choices
from fsm_dyn.runtime.abi import JET_NUMBERS, Sizes
from fsm_dyn.runtime.layouts import InputTables

# -- Tables of input signals: polynomial pieces and kernels for the runtime -----------------------


DRIVE: Final = Bundle(InputTables)


# -- Input signals of a run from numbers, tables, expressions and Python callables ---------------------------

_MOST_PIECES: Final = 100_000
_DEEPEST: Final = 40
_MOST_WINDOWS: Final = 16  # of switches over time in an exported table
# coefficients of the cubic through its values at 0, 1/3, 2/3 and 1
_THROUGH_THIRDS: Final = np.array([[1, 0, 0, 0], [-5.5, 9, -4.5, 1], [9, -22.5, 18, -4.5], [-4.5, 13.5, -13.5, 4.5]])
KERNEL: Final = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class PiecewiseCubic:
    """One input as cubic pieces."""

    # float64 array, shape (k,): time (s) at which each piece begins; the first also holds before, the last for ever
    # after
    start: Floats
    coefficients: Floats  # float64 array, shape (k, 4): of ``1, d, d^2, d^3`` with ``d = t - start``
    hard: Booleans  # shape (k,): whether value or slope may jump at the start: a step must end there
    decides: bool = True  # whether contact states are decided again at the hard starts

    def shifted(self, piece: int, origin: float) -> Floats:
        """Return the coefficients of a piece about another origin."""
        result: Floats = self.about(np.array([piece]), np.array([origin]))[0]
        return result

    def about(self, piece: Integers, origin: Floats) -> Floats:
        """Return the coefficients of pieces about other origins (s), shape (n, 4)."""
        c0, c1, c2, c3 = self.coefficients[piece].T
        begin = self.start[piece]
        d = np.where(np.isfinite(begin), origin - np.where(np.isfinite(begin), begin, 0.0), 0.0)
        moved = np.stack([c0 + d * (c1 + d * (c2 + d * c3)), c1 + d * (2 * c2 + 3 * d * c3), c2 + 3 * d * c3, c3], 1)
        return np.where((d == 0.0)[:, None], self.coefficients[piece], moved)


def constant(value: float) -> PiecewiseCubic:
    """Return a constant input."""
    return PiecewiseCubic(np.zeros(1), np.array([[float(value), 0.0, 0.0, 0.0]]), np.zeros(1, dtype=np.bool_))


def _checked_points(points: ArrayLike, what: str) -> tuple[Floats, Floats]:
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) == 0:
        raise InputError(f"{what}: a table of inputs needs rows of time and value", found=f"shape {table.shape}")
    if not np.all(np.isfinite(table)):
        raise InputError(f"{what}: times and values must be finite")
    if np.any(np.diff(table[:, 0]) < 0.0):
        raise InputError(f"{what}: the times must not go back", remedy="sort the rows by time")
    return table[:, 0], table[:, 1]


def linear(points: ArrayLike) -> PiecewiseCubic:
    """Return an input straight from point to point and constant outside.

    ``points``, shape (k, 2): rows of time (s) and value; two rows at one time are a jump.
    """
    times, values = _checked_points(points, "linear")
    distinct = np.append(np.diff(times) > 0.0, True)
    slopes = np.zeros(len(times))
    inside = np.flatnonzero(distinct[:-1])
    slopes[inside] = (values[inside + 1] - values[inside]) / (times[inside + 1] - times[inside])
    # two rows at one time: the later one begins the next piece
    start, value, slope = times[distinct], values[distinct], slopes[distinct]
    zeros = np.zeros_like(value)
    hard = np.ones(len(start), dtype=np.bool_)
    first = PiecewiseCubic(start, np.column_stack([value, slope, zeros, zeros]), hard)
    return _with_past(first, values[0])


def sampled(points: ArrayLike, decides: bool = False) -> PiecewiseCubic:
    """Return an input known at instants, as a device gives it: straight between them, constant outside.

    A step ends at every sample.  Contact states are decided again there only if ``decides`` is set: a continuous input
    that moves no constraint changes no force abruptly.  Rows of time, value, rate and second rate make cubics between
    which the second rate is continuous; then nothing has to be decided in any case.
    """
    table = np.asarray(points, dtype=np.float64)
    times, values = _checked_points(table[:, :2] if table.ndim == 2 else table, "sampled")
    if np.any(np.diff(times) <= 0.0):
        raise InputError("sampled: every time needs one value", remedy="give a jump with linear or steps")
    if table.shape[1] == 2:
        return replace(linear(points), decides=decides)
    if table.shape[1] != 4 or not np.all(np.isfinite(table)):
        raise InputError("sampled: rows are time and value, or time, value, rate and second rate")
    # constant at the end, with the last rate: the value there is the limit from the left
    third = np.append((table[1:, 3] - table[:-1, 3]) / (6.0 * np.diff(times)), 0.0)
    pieces = PiecewiseCubic(
        times, np.column_stack([values, table[:, 2], 0.5 * table[:, 3], third]), np.ones(len(times), bool)
    )
    return replace(_with_past(pieces, values[0]), decides=False)


def sampled_steps(points: ArrayLike) -> PiecewiseCubic:
    """Return a boolean input known at the ends of ticks, each value from the end of the tick before.

    ``points``, shape (k, 2): rows of time (s) and value.
    """
    times, values = _checked_points(points, "sampled")
    changes = 1 + np.flatnonzero(np.diff(values) != 0.0)
    rows = [(times[0], values[0]), *((times[k - 1], values[k]) for k in changes)]
    return steps(rows)


def steps(points: ArrayLike) -> PiecewiseCubic:
    """Return an input jumping to a value at each time; the first value also holds before."""
    times, values = _checked_points(points, "steps")
    last = np.append(np.diff(times) > 0.0, True)
    start, value = times[last], values[last]
    zeros = np.zeros_like(value)
    hard = np.ones(len(start), dtype=np.bool_)
    return _with_past(PiecewiseCubic(start, np.column_stack([value, zeros, zeros, zeros]), hard), values[0])


def _with_past(pieces: PiecewiseCubic, value: float) -> PiecewiseCubic:
    """Put a constant piece before the first time."""
    return PiecewiseCubic(
        np.concatenate([[-np.inf], pieces.start]),
        np.concatenate([[[value, 0.0, 0.0, 0.0]], pieces.coefficients]),
        np.concatenate([[False], pieces.hard]),
    )


@dataclass(frozen=True)
class KernelSource:
    """A kernel of some inputs: all values, then all rates, all second and all third rates."""

    address: int  # of ``void kernel(double t, const double *x, const double *c, double *out)``
    inputs: tuple[str, ...]  # which inputs, in the order written
    keep: Any  # whatever keeps the machine code alive
    program: Program  # source of the machine code


@dataclass(frozen=True, eq=False)
class InputSignals:
    """All inputs of a run.

    Attributes
    ----------
    names : tuple of str
        Inputs in the order of the context.
    arrays : InputTables
        Tables read by the compiled loop.
    sources : tuple of KernelSource
        The kernels, in the order of the arrays.
    until : float
        Time (s) up to which the arrays have all switches; there those of the next window take over.
    windows : InputWindows, optional
        Gives the arrays of other windows.
    number : int
        Of the window.
    """

    names: tuple[str, ...]
    arrays: InputTables
    sources: tuple[KernelSource, ...] = field(default=(), repr=False)
    until: float = np.inf
    windows: InputWindows | None = field(default=None, repr=False)
    number: int = 0

    @cached_property
    def packed(self) -> Packed:
        """The arrays as the bundle handed to the compiled loop."""
        return DRIVE.pack(self.arrays)

    def segment_at(self, t: float) -> int:
        """Return the segment of a run starting at ``t`` (s): the last breakpoint not after it."""
        if len(self.arrays.start) == 1:
            return 0
        return self._segment(int(np.searchsorted(self.arrays.start, t, side="right")))

    def segment_before(self, t: float) -> int:
        """Return the segment of a run at the breakpoint at ``t`` (s) and not entered the next one."""
        return self._segment(int(np.searchsorted(self.arrays.start, t, side="left")))

    def _segment(self, end: int) -> int:
        """Return the last segment before number ``end`` at whose begin steps end, 0 without one."""
        if end <= 1:
            return 0
        numbers = np.arange(1, end)
        hard = numbers[self.arrays.next_hard[: len(numbers)] == numbers]
        return int(hard[-1]) if len(hard) else 0

    def at(self, t: float) -> InputSignals:
        """Return these inputs with the switches about ``t`` (s)."""
        return self if self.windows is None else self.windows.signals(self.windows.switches.number_at(t))

    def whole(self, end: float) -> InputSignals:
        """Return these inputs with all switches up to ``end`` (s), for one table of them.

        Raises
        ------
        InputError
            There are too many.
        """
        window, pairs = self, []
        while window.windows is not None:
            pairs.append(window.windows.switches.window(window.number)[0].ravel())
            if window.until > end:
                return replace(window.windows.assemble(np.concatenate(pairs)), until=window.until)
            if len(pairs) == _MOST_WINDOWS:
                raise InputError(
                    f"the model switches at more than {len(pairs) * SwitchWindows.LENGTH} instants up to {end:g} s",
                    remedy="a schedule that ends earlier",
                )
            window = window.following()
        return self

    def following(self) -> InputSignals:
        """Return these inputs with the switches after ``until``."""
        return self if self.windows is None else self.windows.signals(self.number + 1)

    def __call__(self, t: ArrayLike, c: Floats | None = None) -> Floats:
        """Evaluate values, rates and second rates, shape (m, 3 n_w), at times of shape (m,); right limits at jumps.

        ``c`` is a context whose parameters compiled expressions read.
        """
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        arrays = self.arrays
        n_w = len(self.names)
        piece = np.clip(np.searchsorted(arrays.start, times, side="right") - 1, 0, None)
        d = (times - arrays.origin[piece])[:, None]
        a = arrays.pieces[piece]
        result = np.empty((len(times), 3 * n_w))
        result[:, :n_w] = a[:, :, 0] + d * (a[:, :, 1] + d * (a[:, :, 2] + d * a[:, :, 3]))
        result[:, n_w : 2 * n_w] = a[:, :, 1] + d * (2.0 * a[:, :, 2] + 3.0 * d * a[:, :, 3])
        result[:, 2 * n_w :] = 2.0 * a[:, :, 2] + 6.0 * d * a[:, :, 3]
        context = np.zeros(1) if c is None else np.ascontiguousarray(c, dtype=np.float64)
        for k, address in enumerate(arrays.kernels):
            numbers = arrays.kernel_inputs[arrays.kernel_start[k] : arrays.kernel_start[k + 1]]
            columns = np.concatenate([numbers, numbers + n_w, numbers + 2 * n_w])
            out = np.empty(4 * len(numbers))
            call = KERNEL(int(address))
            for i, time in enumerate(times):
                call(time, context.ctypes.data, context.ctypes.data, out.ctypes.data)
                result[i, columns] = out[: len(columns)]
        return result


@dataclass(frozen=True, eq=False)
class InputWindows:
    """Inputs of a run whose switches over time are known window by window."""

    switches: SwitchWindows
    assemble: Callable[[Floats], InputSignals]  # gives the inputs with these breakpoints (s)

    def signals(self, number: int) -> InputSignals:
        """Return the inputs with the switches of a window."""
        pairs, until = self.switches.window(number)
        return replace(self.assemble(pairs.ravel()), until=until, windows=self, number=number)


def assemble_inputs(
    names: Sequence[str],
    n_p: int,
    sources: Mapping[str, PiecewiseCubic] | None = None,
    kernels: Sequence[KernelSource] = (),
    breakpoints: Sequence[float] | Floats = (),
) -> InputSignals:
    """Put the inputs of a run together.

    ``names``: all inputs in the order of the context. ``n_p``: number of parameters, which precede the inputs in the
    context. ``sources``: tables of some of the inputs; an input without table or kernel is zero. ``kernels``: kernels
    for others. ``breakpoints``: further times (s) at which steps must end, because a kernel may jump there. Raises
    InputError: a source names an unknown input.
    """
    given = dict(sources or {})
    number = {name: i for i, name in enumerate(names)}
    for name in [*given, *(name for kernel in kernels for name in kernel.inputs)]:
        if name not in number:
            raise InputError(f"there is no input '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
    zero = constant(0.0)
    pieces = [given.get(name, zero) for name in names]
    start, origin, table, next_hard, decides = _merged(pieces, breakpoints)
    varies = len(start) > 1 or bool(kernels) or bool(np.any(table[:, :, 1:]))
    arrays = InputTables(
        counts=np.array([len(names), n_p, 0 if varies else 1], dtype=np.int64),
        start=start,
        origin=origin,
        pieces=table,
        next_hard=next_hard,
        decides=decides,
        kernels=np.array([kernel.address for kernel in kernels], dtype=np.int64),
        kernel_start=np.cumsum([0, *(len(kernel.inputs) for kernel in kernels)], dtype=np.int64),
        kernel_inputs=np.array([number[name] for kernel in kernels for name in kernel.inputs], dtype=np.int64),
        **_enclosures(kernels),
        out=np.zeros(4 * len(names)),
    )
    return InputSignals(tuple(names), arrays, tuple(kernels))


def _enclosures(kernels: Sequence[KernelSource]) -> dict[str, NDArray[Any]]:
    """Return the entries of the tables of enclosures of kernels; none of one with more arguments than the time."""
    codes = [enclosure_code(kernel.program) for kernel in kernels]
    known = [
        code if code is not None and code.arguments[: code.moving].tolist() in ([], [0]) else None for code in codes
    ]
    tables = guard_enclosures(known, [4 * len(kernel.inputs) for kernel in kernels])
    return {
        "enclosure_code": tables.enclosure_code,
        "enclosure_numbers": tables.enclosure_numbers,
        "kernel_enclosure": tables.mode_enclosure,
        "kernel_values": tables.guard_enclosure,
        "jets": np.zeros(JET_NUMBERS * tables.sizes[Sizes.MAX_VALUES]),
    }


def _merged(
    pieces: Sequence[PiecewiseCubic], breakpoints: Sequence[float] | Floats
) -> tuple[Floats, Floats, Floats, Integers, Codes]:
    """Bring the pieces of all inputs to common segments: start, origin, coefficients, next hard segment, decides."""
    switched = np.asarray(breakpoints, dtype=np.float64)
    start = np.sort(np.concatenate([[-np.inf], switched, *(item.start[1:] for item in pieces)]))
    start = start[np.append(True, start[1:] != start[:-1])]  # np.unique imports numpy.ma
    hard = np.isin(start, np.concatenate([switched, *(item.start[item.hard] for item in pieces)]))
    deciding = np.concatenate([switched, *(item.start[item.hard] for item in pieces if item.decides)])
    origin = start.copy()
    origin[0] = start[1] if len(start) > 1 else 0.0
    table = np.zeros((len(start), len(pieces), 4))
    for i, item in enumerate(pieces):
        table[:, i] = item.about(np.clip(np.searchsorted(item.start, start, side="right") - 1, 0, None), origin)
    after = np.append(np.where(hard, np.arange(len(start)), len(start)), len(start))
    next_hard = np.minimum.accumulate(after[::-1])[::-1][1:].astype(np.int64)
    return start, origin, table, next_hard, np.isin(start, deciding).astype(np.int8)


def from_callable(
    function: Callable[[float], float] | tuple[Callable[[float], float], ...],
    span: tuple[float, float],
    tolerance: float = 1e-9,
) -> PiecewiseCubic:
    """Tabulate a Python callable, as the runtime calls no Python while it steps.

    ``function``: value as a function of time (s); of a tuple the value, rates follow from the table. ``span``: first
    and last time of the run (s). ``tolerance``: accuracy of the table, relative to the largest value (or to 1). Raises
    InputError: the table would be too long.
    """
    return tabulate(function[0] if isinstance(function, tuple) else function, span, tolerance)


def tabulate(function: Callable[[float], float], span: tuple[float, float], tolerance: float = 1e-9) -> PiecewiseCubic:
    """Return cubic pieces along a function over a span of time.

    Intervals are halved until a cubic through four points is right at three more.  If this never happens, because the
    function jumps, the pieces become very short and steps end at them.
    """
    t0, t1 = span
    if not t1 > t0:
        return constant(float(function(t0)))
    scale = max(1.0, max(abs(float(function(t))) for t in np.linspace(t0, t1, 33)))
    starts: list[float] = []
    rows: list[Floats] = []
    hard: list[bool] = []
    waiting = [(t0, t1, 0)]
    rough = False
    while waiting:
        a, b, depth = waiting.pop()
        h = b - a
        nodes = np.array([0.0, 1.0, 2.0, 3.0]) / 3.0
        checks = np.array([1.0, 3.0, 5.0]) / 6.0
        values = np.array([float(function(a + h * s)) for s in nodes])
        cubic = (_THROUGH_THIRDS * values).sum(axis=1)
        error = max(abs(float(function(a + h * s)) - float(np.polyval(cubic[::-1], s))) for s in checks)
        # a few halvings in any case: a periodic function can look smooth at seven points
        if (error > 0.7 * tolerance * scale or depth < 4) and depth < _DEEPEST:
            waiting += [(0.5 * (a + b), b, depth + 1), (a, 0.5 * (a + b), depth + 1)]
            continue
        steep = depth >= _DEEPEST
        starts.append(a)
        rows.append(cubic / h ** np.arange(4.0))
        hard.append(bool(starts) and (steep or rough))
        rough = steep
        if len(starts) > _MOST_PIECES:
            raise InputError(
                f"an input needs more than {_MOST_PIECES} cubic pieces for a relative accuracy of {tolerance:g}",
                remedy="give the input as a table or an expression",
            )
    return PiecewiseCubic(np.array(starts), np.array(rows), np.array(hard))


SHORTEST_DEFAULT: Final = 5.0  # s; a run without an end given lasts at least this long
_TABLES: Final = {"linear": linear, "steps": steps}
_TRUTH: Final = "true, false, a condition of t such as `t > 0.1 s`, {'steps': [[time, true or false], ...]}"
JUMP = 1e-9  # a smaller change at a breakpoint counts as continuous

InputValue: TypeAlias = (
    float | str | Sequence[Sequence[float | str]] | Mapping[str, Any] | Callable[[float], float] | Floats | Schedule
)


@dataclass(frozen=True)
class _Context:
    """Data for turning one input into a source."""

    layout: Layout
    parameters: Mapping[str, ParameterValue]
    span: tuple[float, float]
    automaton: Automaton
    units: ArgumentUnits


def resolve_inputs(
    automaton: Automaton,
    parameters: Mapping[str, ParameterValue],
    given: Mapping[str, InputValue],
    span: tuple[float, float],
) -> InputSignals:
    """Return the inputs of a run.

    ``given``: for some inputs a number in SI units, an expression of ``t`` and parameters, with or without units, a
    table of (time, value) rows of either, a mapping with one key of ``linear steps expression constant`` as in a model
    file or ``sampled`` (rows of numbers, as a device gave them), a Python callable of the time, or the schedule of a
    scenario; ``span``: times over which a callable may have to be tabulated, and up to which switches over time are
    looked for, s. Raises InputError: an input is unknown, or its value none of these.
    """
    names = automaton.terms.layout.w
    for name in given:
        if name not in names:
            raise InputError(
                f"no input '{name}' in '{automaton.mechanism.name}'",
                allowed=", ".join(names) or "this model has none",
                remedy=did_you_mean(name, names),
            )
    context = _Context(automaton.terms.layout, parameters, span, automaton, ArgumentUnits(automaton.mechanism))
    pieces: dict[str, PiecewiseCubic] = {}
    kernels: list[KernelSource] = []
    for name in names:
        if name in given and automaton.mechanism.inputs[name].is_boolean:
            source = _from_boolean(name, given[name], context)
        elif name in given:
            source = _from_value(name, given[name], context)
        else:
            schedule = automaton.mechanism.inputs[name].schedule
            source = constant(0.0) if schedule is None else _from_schedule(name, schedule, context)
        if isinstance(source, PiecewiseCubic):
            _check_continuity(automaton, name, source)
            _check_truth(automaton, name, source)
            pieces[name] = source
        else:
            kernels.append(source)
    programs = [automaton.terms, *(kernel.program for kernel in kernels)]
    assemble = functools.partial(assemble_inputs, names, len(context.layout.p), pieces, kernels)
    if not any(map(choices, programs)):
        return assemble()
    switches = SwitchWindows(programs, parameter_vector(parameters), span[1])
    return InputWindows(switches, assemble).signals(0)


def input_parameters(automaton: Automaton, given: Mapping[str, InputValue]) -> frozenset[str] | None:
    """Return the parameters on which the inputs of a run depend, None if these may be any.

    ``given``: as for :func:`resolve_inputs`, numbers, expressions and schedules alone.
    """
    if choices(automaton.terms):
        return None  # instants at which the model itself jumps are in the inputs
    own = (item.schedule for name, item in automaton.mechanism.inputs.items() if name not in given)
    try:
        return schedule_parameters(automaton, [*own, *given.values()])
    except ExpressionError:
        return None  # refused at its evaluation


def schedule_parameters(automaton: Automaton, given: Sequence[object]) -> frozenset[str]:
    """Return the parameters named in schedules, or values of inputs as for :func:`resolve_inputs`.

    Raises ExpressionError: one of them is no expression.
    """
    texts = [
        str(text) for value in given for text in (texts_of(value) if isinstance(value, Schedule) else words_of(value))
    ]
    return frozenset().union(*map(names_in, texts)) & automaton.mechanism.parameters.keys()


def _check_continuity(automaton: Automaton, name: str, source: PiecewiseCubic) -> None:
    """Refuse a jump of the input of a constraint: its force would be infinite."""
    if len(source.start) < 2 or name not in automaton.moving_inputs:
        return
    for piece in range(1, len(source.start)):
        left = source.shifted(piece - 1, float(source.start[piece]))[0]
        right = source.coefficients[piece, 0]
        if abs(right - left) > JUMP:
            raise InputError(
                f"input '{name}' drives a constraint and must be continuous",
                found=f"from {left:g} to {right:g} at {source.start[piece]:g} s",
                allowed="linear tables and expressions; where the slope jumps, the speeds jump with an impulse",
            )


def _check_truth(automaton: Automaton, name: str, source: PiecewiseCubic) -> None:
    """Refuse values of a boolean input that are neither 0 nor 1."""
    if not automaton.mechanism.inputs[name].is_boolean:
        return
    values = source.coefficients[:, 0]
    wrong = values[(values != 0.0) & (values != 1.0)]
    if len(wrong) or source.coefficients[:, 1:].any():
        found = f"{wrong[0]:g}" if len(wrong) else "a ramp"
        raise InputError(f"input '{name}' is boolean", found=found, allowed=_TRUTH)


def scenario_schedules(automaton: Automaton, scenario: str) -> Mapping[str, Schedule]:
    """Return the schedules of one of the model's ``scenarios``. Raises InputError: it has none of that name."""
    scenarios = automaton.mechanism.scenarios
    if scenario not in scenarios:
        raise InputError(
            f"'{automaton.mechanism.name}' has no scenario '{scenario}'",
            allowed=", ".join(scenarios) or "it has none: give `inputs`",
            remedy=did_you_mean(scenario, scenarios),
        )
    return scenarios[scenario]


def input_in_effect(
    automaton: Automaton, name: str, given: Mapping[str, InputValue], scenario: str | None
) -> InputValue:
    """Return the value of an input in a run: as given, of its scenario, or of the model.

    Raises InputError: none of these has a value for it.
    """
    named = scenario_schedules(automaton, scenario) if scenario is not None else {}
    declared = automaton.mechanism.inputs.get(name)
    found = given.get(name, named.get(name, declared.schedule if declared is not None else None))
    if declared is not None and declared.is_boolean:
        raise InputError(f"input '{name}' is boolean, and so has no amplitude", remedy=f"vary `input.{name}` instead")
    if found is None:
        raise InputError(
            f"input '{name}' has no schedule, and so no amplitude",
            allowed="an input with a schedule in the model, the scenario or the arguments of the run",
            remedy=f"give the input `{name}` a value",
        )
    return found


def scaled_input(value: InputValue, factor: float) -> InputValue:
    """Return an input, at every instant a multiple of another one.

    ``value``, as for :func:`resolve_inputs`; ``factor``: 1.
    """
    if isinstance(value, TableSchedule):
        return replace(value, points=tuple((time, _scaled_text(point, factor)) for time, point in value.points))
    if isinstance(value, ExpressionSchedule):
        return replace(value, value=_scaled_text(value.value, factor))
    if isinstance(value, Schedule):
        raise TypeError(f"no multiple of the schedule {value.kind!r}")
    if isinstance(value, str):
        return str(_scaled_text(Text(value), factor))
    if callable(value):
        signal = value
        return lambda time: factor * signal(time)
    if isinstance(value, Mapping):
        return {kind: _scaled_part(kind, content, factor) for kind, content in value.items()}
    if np.ndim(value) == 0:
        return factor * float(value)  # type: ignore[arg-type]
    return _scaled_rows(value, factor)


def _scaled_part(kind: str, content: Any, factor: float) -> Any:
    if kind in ("expression", "constant"):
        return str(_scaled_text(Text(str(content)), factor))
    if kind == "sampled":
        rows = np.array(content, dtype=np.float64)
        rows[:, 1:] *= factor  # values and their rates, after the time
        return rows
    return _scaled_rows(content, factor)


def _scaled_rows(rows: Any, factor: float) -> list[tuple[Any, Any]]:
    return [
        (time, str(_scaled_text(Text(value), factor)) if isinstance(value, str) else factor * float(value))
        for time, value in rows
    ]


def _scaled_text(text: Text, factor: float) -> Text:
    return Text(f"({factor!r})*({text})", text.where)


def default_end(
    automaton: Automaton, parameters: Mapping[str, ParameterValue], scenario: Mapping[str, Schedule]
) -> float:
    """Return the end (s) of a run without one given: the last breakpoint of the schedules, or SHORTEST_DEFAULT."""
    own = {name: item.schedule for name, item in automaton.mechanism.inputs.items()}
    times = [
        evaluate_expression(time, parameters)
        for schedule in {**own, **scenario}.values()
        if schedule is not None
        for time in schedule.times
    ]
    return max([*times, SHORTEST_DEFAULT])


def _from_schedule(name: str, schedule: Schedule, context: _Context) -> PiecewiseCubic | KernelSource:
    match schedule:
        case ExpressionSchedule():
            return _from_text(name, schedule.value, context)
        case TableSchedule():
            rows = (tuple(evaluate_expression(text, context.parameters) for text in point) for point in schedule.points)
            return _table_signal(schedule.kind, tuple(rows))
    raise TypeError(f"no input of the schedule {schedule.kind!r}")


@functools.lru_cache(maxsize=256)
def _table_signal(kind: str, rows: tuple[tuple[float, ...], ...]) -> PiecewiseCubic:
    """Return the input of a schedule, which is often the one of the run before; nothing changes it."""
    return _TABLES[kind](rows)


def _from_boolean(name: str, value: InputValue, context: _Context) -> PiecewiseCubic | KernelSource:
    """Return a boolean input from true, false, 1, 0, a condition of ``t``, a table of these, or rows of ticks."""
    if isinstance(value, Schedule):
        return _from_schedule(name, value, context)
    kind, content = next(iter(value.items())) if isinstance(value, Mapping) and len(value) == 1 else ("", value)
    if kind == "sampled":
        return sampled_steps(np.asarray(content, dtype=np.float64))
    if kind in ("", "steps") and isinstance(content, (Sequence, np.ndarray)) and not isinstance(content, str):
        return steps(_table(name, list(content), context))
    if kind in ("", "expression", "constant") and isinstance(content, (float, int, np.number, np.bool_)):
        return constant(float(content))
    if kind not in ("", "expression", "constant") or not isinstance(content, str):
        raise InputError(f"input '{name}' is boolean", found=str(value)[:60], allowed=_TRUTH)
    if content not in ("0", "1"):
        context.units.check_condition(content, f"input '{name}'")
    return _from_text(name, Text(content), context)


def _from_value(name: str, value: InputValue, context: _Context) -> PiecewiseCubic | KernelSource:
    if isinstance(value, str):
        return _from_argument(name, value, context)
    if isinstance(value, Schedule):
        return _from_schedule(name, value, context)
    if callable(value):
        return from_callable(value, context.span)
    if isinstance(value, Mapping):
        return _from_mapping(name, value, context)
    if isinstance(value, Sequence):
        return linear(_table(name, value, context))
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.asarray(np.nan)
    if array.ndim == 0:
        if not np.isfinite(array):
            raise InputError(f"input '{name}' wants a finite number", found=repr(value)[:60])
        return constant(float(array))
    return linear(array)


def _table(name: str, rows: Sequence[Any], context: _Context) -> list[tuple[float, float]]:
    """Return rows of time and value, numbers in SI units or texts with or without a unit, as numbers."""
    found = []
    for row in rows:
        if isinstance(row, (str, float, int)) or len(row) != 2:
            raise InputError(f"input '{name}': a row of its table is a time and a value", found=repr(row)[:60])
        time, value = row
        if isinstance(time, str):
            context.units.check_time(time, f"a time of input '{name}'")
        if isinstance(value, str) and not context.automaton.mechanism.inputs[name].is_boolean:
            context.units.check(name, value, f"input '{name}'")
        found.append((_number(time, context), _number(value, context)))
    return found


def _number(value: Any, context: _Context) -> float:
    return evaluate_expression(value, context.parameters) if isinstance(value, str) else float(value)


def _from_argument(name: str, text: str, context: _Context) -> PiecewiseCubic | KernelSource:
    context.units.check(name, text, f"input '{name}'", over_time=True)
    return _from_text(name, Text(text), context)


def _from_mapping(name: str, value: Mapping[str, Any], context: _Context) -> PiecewiseCubic | KernelSource:
    kinds = ("linear", "steps", "sampled", "expression", "constant")
    if len(value) != 1 or next(iter(value)) not in kinds:
        raise InputError(f"input '{name}'", found=str(dict(value))[:80], allowed="one key of " + ", ".join(kinds))
    kind, content = next(iter(value.items()))
    if kind in ("expression", "constant"):
        return _from_argument(name, str(content), context)
    if kind == "sampled":
        return sampled(np.asarray(content, dtype=np.float64), decides=name in context.automaton.inputs_with_rates)
    return _TABLES[kind](_table(name, content, context))


def _from_text(name: str, text: Text, context: _Context) -> PiecewiseCubic | KernelSource:
    """An expression of ``t`` and parameters: a constant, or a kernel of its value and three rates."""
    graph = ExpressionGraph()
    symbols: dict[str, Node] = {n: graph.symbol(n) for n in ("t", *context.layout.p)}
    symbols["pi"] = graph.constant(np.pi)
    node = ScalarAlgebra(graph, symbols).scalar(text)
    if node.constant_value is not None:
        return constant(node.constant_value)
    direction = {symbols["t"]: graph.one}
    rate = tangent([node], direction)[0]
    rate2 = tangent([rate], direction)[0]
    rate3 = tangent([rate2], direction)[0]
    program = Program.from_nodes(context.layout, {"input": np.array([node, rate, rate2, rate3], dtype=object)})
    kernels = compile_programs([program])
    return KernelSource(kernels[0].address, (name,), kernels, program)
