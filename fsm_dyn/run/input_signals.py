"""Input signals of a run from numbers, tables, expressions and Python callables, as tables."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.programs.enclosure_code import enclosure_code
from fsm_dyn.programs.program import Program
from fsm_dyn.run.structures import Bundle, Packed
from fsm_dyn.run.tables import guard_enclosures
from fsm_dyn.run.time_switches import SwitchWindows
from fsm_dyn.runtime.abi import JET_NUMBERS, Sizes
from fsm_dyn.runtime.layouts import InputTables

# -- Tables of input signals: polynomial pieces and kernels for the runtime -----------------------

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    """One input as cubic pieces.

    Attributes
    ----------
    start : float64 array, shape (k,)
        Time (s) at which each piece begins; the first also holds before, the last for ever after.
    coefficients : float64 array, shape (k, 4)
        Of ``1, d, d^2, d^3`` with ``d = t - start``.
    hard : bool array, shape (k,)
        Whether value or slope may jump at the start: a step must end there.
    decides : bool
        Whether contact states are decided again at the hard starts.
    """

    start: Floats
    coefficients: Floats
    hard: NDArray[np.bool_]
    decides: bool = True

    def shifted(self, piece: int, origin: float) -> Floats:
        """Return the coefficients of a piece about another origin."""
        result: Floats = self.about(np.array([piece]), np.array([origin]))[0]
        return result

    def about(self, piece: NDArray[np.int64], origin: Floats) -> Floats:
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

    Parameters
    ----------
    points : array-like, shape (k, 2)
        Rows of time (s) and value; two rows at one time are a jump.
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

    Parameters
    ----------
    points : array-like, shape (k, 2)
        Rows of time (s) and value.
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
    """A kernel of some inputs: all values, then all rates, all second and all third rates.

    Attributes
    ----------
    address : int
        Of ``void kernel(double t, const double *x, const double *c, double *out)``.
    inputs : tuple of str
        Which inputs, in the order written.
    keep : object
        Whatever keeps the machine code alive.
    program : Program
        Source of the machine code.
    """

    address: int
    inputs: tuple[str, ...]
    keep: Any
    program: Program


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
        return self._segment(int(np.searchsorted(self.arrays.start, t, side="right")))

    def segment_before(self, t: float) -> int:
        """Return the segment of a run at the breakpoint at ``t`` (s) and not entered the next one."""
        return self._segment(int(np.searchsorted(self.arrays.start, t, side="left")))

    def _segment(self, end: int) -> int:
        """Return the last segment before number ``end`` at whose begin steps end, 0 without one."""
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
    """Inputs of a run whose switches over time are known window by window.

    Attributes
    ----------
    switches : SwitchWindows
    assemble : callable
        Gives the inputs with these breakpoints (s).
    """

    switches: SwitchWindows
    assemble: Callable[[Floats], InputSignals]

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

    Parameters
    ----------
    names : sequence of str
        All inputs in the order of the context.
    n_p : int
        Number of parameters, which precede the inputs in the context.
    sources : mapping
        Tables of some of the inputs; an input without table or kernel is zero.
    kernels : sequence of KernelSource
        Kernels for others.
    breakpoints : sequence of float
        Further times (s) at which steps must end, because a kernel may jump there.

    Raises
    ------
    InputError
        A source names an unknown input.
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
) -> tuple[Floats, Floats, Floats, NDArray[np.int64], NDArray[np.int8]]:
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

    Parameters
    ----------
    function : callable or tuple of callables
        Value as a function of time (s); of a tuple the value, rates follow from the table.
    span : tuple of float
        First and last time of the run (s).
    tolerance : float
        Accuracy of the table, relative to the largest value (or to 1).

    Raises
    ------
    InputError
        The table would be too long.
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
