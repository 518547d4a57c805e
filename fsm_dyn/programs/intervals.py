"""Enclosures of programs by interval arithmetic, and contraction of boxes by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.programs.program import Program

# -- Enclosures of programs by interval arithmetic -----------------------------------------------------------
#
# Enclosures of programs by interval arithmetic: bounds for every argument in a box.
#
# Bounds are rounded outwards after every operation (Moore, Kearfott and Cloud 2009, chapter 4): by one unit in the
# last place if the operation rounds correctly, by :data:`ULPS` for functions of the mathematics library, which are
# only close. Undefined values (a root of a negative number, a division by zero) are left out; an interval without any
# value is empty, and so is everything computed from it. Intervals of many boxes are computed at once.

ULPS: Final = 4  # units in the last place by which the functions of NumPy and of the runtime are trusted


class Interval(NamedTuple):
    """Intervals ``[low, high]``, one for each box; with ``low > high`` or a NaN the interval is empty."""

    low: Floats
    high: Floats

    @property
    def empty(self) -> Booleans:
        """Boxes without a value."""
        return ~(self.low <= self.high)


def enclose(program: Program, arguments: Interval) -> dict[str, Interval]:
    """Return bounds of all outputs over boxes of arguments.

    ``program``: of which every operation is in :data:`fsm_dyn.programs.graph.OPERATIONS`; ``arguments``: bounds of
    ``t``, ``x`` and ``c`` in the order of ``program.arguments``, arrays of shape (n_arguments, n_boxes). Returns for
    each output arrays of shape (n_boxes, *shape of the output).
    """
    boxes = arguments.low.shape[1]
    values = values_of(program, [Interval(low, high) for low, high in zip(*arguments, strict=True)])
    found = {}
    for output in program.results:
        shape = (boxes, *output.shape)
        low, high = (
            np.array([np.broadcast_to(values[i][side], boxes) for i in output.indices])
            .reshape(len(output.indices), boxes)
            .T.reshape(shape)
            for side in (0, 1)
        )
        found[output.name] = Interval(low, high)
    return found


def values_of(program: Program, arguments: Sequence[Interval]) -> list[Interval]:
    """Return bounds of all arguments, constants and operations; bounds of one entry hold for all boxes."""
    values = [*arguments, *(Interval(np.array([value]), np.array([value])) for value in program.constants)]
    with np.errstate(all="ignore"):
        for op, operands in program.instructions:
            values.append(apply(op, *[values[i] for i in operands]))
    return values


def apply(op: str, *operands: Interval) -> Interval:
    """Return bounds of the result of an operation; warnings of NumPy are left to the caller."""
    return _OPERATIONS[op](*operands)


def outward(low: Floats, high: Floats, ulps: int = 1) -> Interval:
    """Return bounds moved apart; NaN of arithmetic with infinities becomes no bound."""
    for _ in range(ulps):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    if np.isnan(low).any() or np.isnan(high).any():
        return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))
    return Interval(low, high)


def _kept_empty(result: Interval, *operands: Interval) -> Interval:
    """Return an interval, made empty in boxes with an empty operand."""
    for operand in operands:
        there = operand.low <= operand.high
        if not there.all():
            result = Interval(np.where(there, result.low, np.nan), np.where(there, result.high, np.nan))
    return result


def _neg(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def add(a: Interval, b: Interval) -> Interval:
    """Return the sum."""
    return _kept_empty(outward(a.low + b.low, a.high + b.high), a, b)


def subtract(a: Interval, b: Interval) -> Interval:
    """Return the difference."""
    return add(a, _neg(b))


def _products(a: Interval, b: Interval) -> Floats:
    """Return the four products of ends; zero times no bound is zero."""
    pairs = [(x, y) for x in a for y in b]
    return np.array([np.where((x == 0.0) | (y == 0.0), 0.0, x * y) for x, y in pairs])


def multiply(a: Interval, b: Interval) -> Interval:
    """Return the product; the square if both operands are one interval object."""
    if a is b:
        return _even_power(a, 2)
    if b.low.size == 1 and b.low[0] > 0.0:
        a, b = b, a
    if a.low.size == 1 and a.low[0] > 0.0 and a.high[0] < np.inf:
        (least,), (most,) = a
        low = b.low * np.where(b.low < 0.0, most, least)
        return _kept_empty(outward(low, b.high * np.where(b.high < 0.0, least, most)), b)
    products = _products(a, b)
    return _kept_empty(outward(products.min(axis=0), products.max(axis=0)), a, b)


def _reciprocal(b: Interval) -> Interval:
    """Return 1/b without the values at zero: half a line if zero is an end, all numbers if it is inside."""
    low, high = 1.0 / b.high, 1.0 / b.low
    low, high = np.where(b.high == 0.0, -np.inf, low), np.where(b.low == 0.0, np.inf, high)
    inside = (b.low < 0.0) & (b.high > 0.0)
    result = outward(np.where(inside, -np.inf, low), np.where(inside, np.inf, high))
    nothing = (b.low == 0.0) & (b.high == 0.0)
    return _kept_empty(Interval(np.where(nothing, np.nan, result.low), result.high), b)


def divide(a: Interval, b: Interval) -> Interval:
    """Return the quotient, by numbers other than zero."""
    if b.low.size == 1 and b.low[0] > 0.0 and b.high[0] < np.inf:
        (least,), (most,) = b
        low = a.low / np.where(a.low < 0.0, least, most)
        return _kept_empty(outward(low, a.high / np.where(a.high < 0.0, most, least)), a)
    return multiply(a, _reciprocal(b))


def _even_power(a: Interval, n: int) -> Interval:
    """Return ``a**n`` for an even n > 0."""
    small = np.where((a.low <= 0.0) & (a.high >= 0.0), 0.0, np.minimum(abs(a.low), abs(a.high)))
    large = np.maximum(abs(a.low), abs(a.high))
    result = outward(small**n, large**n, ULPS)
    return _kept_empty(Interval(np.maximum(result.low, 0.0), result.high), a)


def _pow(a: Interval, b: Interval) -> Interval:
    """Return ``a**b``: by the parity of a constant whole exponent, else through the logarithm of the base."""
    exponent = b.low[0] if len(b.low) and np.all(b.low == b.high) and np.all(b.low == b.low[0]) else np.nan
    if exponent == np.floor(exponent) and 0.0 < abs(exponent) <= 2**31:
        n = int(abs(exponent))
        result = _even_power(a, n) if n % 2 == 0 else _monotone(lambda x: x**n, ULPS)(a)
        return result if exponent > 0.0 else _reciprocal(result)
    result = _positive_power(a, b)
    # whole exponents allow negative bases; only the size of their power is bounded then
    whole = (a.low < 0.0) & (np.floor(b.high) >= b.low)
    size = _positive_power(_abs(a), b).high
    low, high = np.where(whole, -size, result.low), np.where(whole, size, result.high)
    return _kept_empty(Interval(low, high), a, b)


def _positive_power(a: Interval, b: Interval) -> Interval:
    """Return ``a**b`` for nonnegative bases; zero to a positive power is zero, to the power zero one."""
    base = _clipped(a, 0.0, np.inf)
    result = _exp(multiply(b, _log(base)))
    zero = base.low == 0.0
    high = np.where(zero & (b.low <= 0.0) & (b.high >= 0.0), np.fmax(result.high, 1.0), result.high)
    only = zero & (base.high == 0.0)
    high = np.where(only & (b.high > 0.0), np.fmax(high, 0.0), high)
    return _kept_empty(Interval(np.where(zero, 0.0, result.low), np.where(np.isnan(high), np.inf, high)), base, b)


def _clipped(a: Interval, least: float, most: float) -> Interval:
    """Return the part of an interval in which a function is defined."""
    low, high = np.maximum(a.low, least), np.minimum(a.high, most)
    return Interval(np.where(low <= high, low, np.nan), np.where(low <= high, high, np.nan))


def _monotone(
    function: Callable[[Floats], Floats], ulps: int = ULPS, least: float = -np.inf, most: float = np.inf
) -> Callable[[Interval], Interval]:
    """Return the interval form of a function defined and nondecreasing between ``least`` and ``most``."""

    def apply(a: Interval) -> Interval:
        part = _clipped(a, least, most)
        return _kept_empty(outward(function(part.low), function(part.high), ulps), part)

    return apply


_log = _monotone(np.log, least=0.0)


def _exp(a: Interval) -> Interval:
    result = _monotone(np.exp)(a)
    return Interval(np.maximum(result.low, 0.0), result.high)


def root(a: Interval) -> Interval:
    """Return the square root of the nonnegative part."""
    result = _monotone(np.sqrt, 1, least=0.0)(a)
    return Interval(np.maximum(result.low, 0.0), result.high)


def _cos(a: Interval) -> Interval:
    """Return the cosine: -1 and 1 if an extremum may lie inside, by turns counted with room for rounding."""
    turns_low, turns_high = a.low / (2.0 * np.pi), a.high / (2.0 * np.pi)
    room = 4e-16 * (1.0 + np.maximum(abs(turns_low), abs(turns_high)))
    peak = np.floor(turns_high + room) >= np.ceil(turns_low - room)
    trough = np.floor(turns_high + 0.5 + room) >= np.ceil(turns_low + 0.5 - room)
    unknown = ~np.isfinite(turns_high - turns_low) | (room > 0.1)
    ends = np.cos(a.low), np.cos(a.high)
    result = outward(np.minimum(*ends), np.maximum(*ends), ULPS)
    low = np.where(trough | unknown, -1.0, np.maximum(result.low, -1.0))
    high = np.where(peak | unknown, 1.0, np.minimum(result.high, 1.0))
    return _kept_empty(Interval(low, high), a)


def _sin(a: Interval) -> Interval:
    """Return the sine, as the cosine of an angle smaller by a quarter turn."""
    half_pi = Interval(
        np.full_like(a.low, np.nextafter(np.pi / 2, 0.0)), np.full_like(a.low, np.nextafter(np.pi / 2, 2.0))
    )
    return _cos(subtract(a, half_pi))


def _tan(a: Interval) -> Interval:
    """Return the tangent: all numbers if a pole may lie inside, else from end to end."""
    turns_low, turns_high = a.low / np.pi + 0.5, a.high / np.pi + 0.5
    room = 4e-16 * (1.0 + np.maximum(abs(turns_low), abs(turns_high)))
    pole = ~(np.floor(turns_high + room) < np.ceil(turns_low - room)) | ~np.isfinite(turns_high - turns_low)
    result = outward(np.tan(a.low), np.tan(a.high), ULPS)
    return _kept_empty(Interval(np.where(pole, -np.inf, result.low), np.where(pole, np.inf, result.high)), a)


def _acos(a: Interval) -> Interval:
    part = _clipped(a, -1.0, 1.0)
    return _kept_empty(outward(np.arccos(part.high), np.arccos(part.low), ULPS), part)


def _atan2(a: Interval, b: Interval) -> Interval:
    """Return the angle: from the corners of a box clear of the branch cut, else a whole turn."""
    cut = (b.low <= 0.0) & (a.low <= 0.0) & (a.high >= 0.0)
    angles = np.array([np.arctan2(y, x) for y in a for x in b])
    result = outward(angles.min(axis=0), angles.max(axis=0), ULPS)
    pi = np.nextafter(np.pi, 4.0)
    return _kept_empty(Interval(np.where(cut, -pi, result.low), np.where(cut, pi, result.high)), a, b)


def _cosh(a: Interval) -> Interval:
    size = _abs(a)
    return _kept_empty(outward(np.cosh(size.low), np.cosh(size.high), ULPS), a)


def _abs(a: Interval) -> Interval:
    inside = (a.low <= 0.0) & (a.high >= 0.0)
    low = np.where(inside, 0.0, np.minimum(abs(a.low), abs(a.high)))
    return _kept_empty(Interval(low, np.maximum(abs(a.low), abs(a.high))), a)


def _mod(a: Interval, b: Interval) -> Interval:
    """Return ``a mod b``, with the sign of ``b``: within one period if the quotient has one whole part."""
    quotient = divide(a, b)
    first, last = np.floor(quotient.low), np.floor(quotient.high)
    one = first == last
    whole = np.where(one, first, 0.0)
    within = subtract(a, multiply(b, Interval(whole, whole)))
    low, high = np.minimum(b.low, 0.0), np.maximum(b.high, 0.0)
    return _kept_empty(
        Interval(np.where(one, np.maximum(within.low, low), low), np.where(one, np.minimum(within.high, high), high)),
        a,
        b,
    )


def _extreme(choose: Callable[[Floats, Floats], Floats]) -> Callable[[Interval, Interval], Interval]:
    return lambda a, b: _kept_empty(Interval(choose(a.low, b.low), choose(a.high, b.high)), a, b)


def _truth(certain: Booleans, possible: Booleans, *operands: Interval) -> Interval:
    return _kept_empty(Interval(certain.astype(np.float64), possible.astype(np.float64)), *operands)


def _lt(a: Interval, b: Interval) -> Interval:
    return _truth(a.high < b.low, a.low < b.high, a, b)


def _le(a: Interval, b: Interval) -> Interval:
    return _truth(a.high <= b.low, a.low <= b.high, a, b)


def _eq(a: Interval, b: Interval) -> Interval:
    one = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return _truth(one, (a.low <= b.high) & (b.low <= a.high), a, b)


def _not(a: Interval) -> Interval:
    """Return 1 - truth: certainly zero is certainly not true."""
    return _truth((a.low == 0.0) & (a.high == 0.0), (a.low <= 0.0) & (a.high >= 0.0), a)


def _as_truth(a: Interval) -> Interval:
    return _not(_not(a))


def _where(c: Interval, a: Interval, b: Interval) -> Interval:
    """Return the certain branch, or the hull of both; an empty branch of an uncertain condition counts as absent."""
    truth = _as_truth(c)
    first, second = truth.high == 1.0, truth.low == 0.0
    low = np.fmin(np.where(first, a.low, np.nan), np.where(second, b.low, np.nan))
    high = np.fmax(np.where(first, a.high, np.nan), np.where(second, b.high, np.nan))
    return _kept_empty(Interval(low, high), c)


_OPERATIONS: Final[dict[str, Callable[..., Interval]]] = {
    "neg": _neg,
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
    "pow": _pow,
    "sqrt": root,
    "exp": _exp,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "asin": _monotone(np.arcsin, least=-1.0, most=1.0),
    "acos": _acos,
    "atan": _monotone(np.arctan),
    "atan2": _atan2,
    "sinh": _monotone(np.sinh),
    "cosh": _cosh,
    "tanh": _monotone(np.tanh),
    "abs": _abs,
    "sign": _monotone(np.sign, 0),
    "floor": _monotone(np.floor, 0),
    "mod": _mod,
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "lt": _lt,
    "le": _le,
    "eq": _eq,
    "ne": lambda a, b: _not(_eq(a, b)),
    "and": lambda a, b: _extreme(np.minimum)(_as_truth(a), _as_truth(b)),
    "or": lambda a, b: _extreme(np.maximum)(_as_truth(a), _as_truth(b)),
    "not": _not,
    "where": _where,
}


# -- Contraction of boxes by conditions on outputs of a program ----------------------------------------------
#
# The values of all operations are bounded forwards, the outputs intersected with their conditions, and the operations
# inverted one after the other from the last to the first (HC4-revise: Benhamou, Goualard, Granvilliers and Puget
# 1999). No argument satisfying the conditions is lost; a box with a required value without bounds left has none.

NOTHING: Final = Interval(np.array([np.nan]), np.array([np.nan]))


class Contracted(NamedTuple):
    """Smaller boxes: ``arguments`` of shape (n_arguments, n_boxes), and ``kept``, which of them may meet all."""

    arguments: Interval
    kept: Booleans


class Contractor:
    """Contracts boxes by conditions on the outputs of a program.

    ``variables``: numbers of the arguments with different bounds in each box. ``constants``: bounds of all arguments,
    arrays of shape (n_arguments,); those of variables are not read. ``conditions``: for outputs of one axis the
    required interval of each entry, arrays of shape (n_entries,).
    """

    def __init__(
        self, program: Program, variables: Sequence[int], constants: Interval, conditions: Mapping[str, Interval]
    ) -> None:
        self.variables, first = list(variables), program.first_instruction
        moving = set(self.variables)
        self._values = [
            *(Interval(constants.low[[i]], constants.high[[i]]) for i in range(len(program.arguments))),
            *(Interval(np.array([value]), np.array([value])) for value in program.constants),
        ]
        self._steps: list[tuple[int, str, tuple[int, ...]]] = []
        with np.errstate(all="ignore"):
            for k, (op, operands) in enumerate(program.instructions, start=first):
                if moving.isdisjoint(operands):
                    self._values.append(apply(op, *[self._values[i] for i in operands]))
                else:
                    moving.add(k)
                    self._steps.append((k, op, operands))
                    self._values.append(NOTHING)
        self._moving = moving
        self._goals = [
            (index, Interval(np.array([low]), np.array([high])))
            for output in program.results
            if output.name in conditions
            for index, low, high in zip(output.indices, *conditions[output.name], strict=True)
        ]

    def __call__(self, boxes: Interval) -> Contracted:
        """Return smaller boxes; arrays of shape (n_variables, n_boxes)."""
        values = self._values.copy()
        for variable, low, high in zip(self.variables, *boxes, strict=True):
            values[variable] = Interval(low, high)
        with np.errstate(all="ignore"):
            for k, op, operands in self._steps:
                values[k] = apply(op, *[values[i] for i in operands])
            sweep = _BackwardSweep(values, self._moving, boxes.low.shape[1])
            for index, goal in self._goals:
                sweep.meet(index, goal)
            for k, op, operands in reversed(self._steps):
                if k in sweep.met and op in _RULES:
                    _RULES[op](sweep, values[k], operands)
        low, high = ([np.broadcast_to(values[i][side], sweep.kept.shape) for i in self.variables] for side in (0, 1))
        return Contracted(Interval(np.array(low), np.array(high)), sweep.kept)


class _BackwardSweep:
    """The values of one program over some boxes while its operations are inverted."""

    def __init__(self, values: list[Interval], moving: set[int], boxes: int) -> None:
        self.values, self.moving, self.met, self.kept = values, moving, set[int](), np.ones(boxes, bool)

    def meet(self, index: int, other: Interval, where: Booleans | None = None) -> None:
        """Intersect a required value with an interval, only in the boxes ``where``, if given."""
        value = self.values[index]
        low, high = np.maximum(value.low, other.low), np.minimum(value.high, other.high)
        if where is not None:
            low, high = np.where(where, low, value.low), np.where(where, high, value.high)
            self.kept &= ~where | (low <= high)
        else:
            self.kept &= low <= high
        if index in self.moving:
            self.values[index] = Interval(low, high)
            self.met.add(index)


Rule = Callable[[_BackwardSweep, Interval, tuple[int, ...]], None]


def _narrow_neg(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    sweep.meet(operands[0], Interval(-r.high, -r.low))


def _add(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, subtract(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, subtract(r, sweep.values[a]))


def _sub(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, add(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, subtract(sweep.values[a], r))


def _quotient(a: Interval, b: Interval) -> Interval:
    """Return the solutions x of ``b x = a``: all numbers if both may be zero."""
    found = divide(a, b)
    if b.low.size == 1 and b.low[0] > 0.0:
        return found
    free = (a.low <= 0.0) & (a.high >= 0.0) & (b.low <= 0.0) & (b.high >= 0.0)
    return Interval(np.where(free, -np.inf, found.low), np.where(free, np.inf, found.high))


def _mul(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a == b:
        _square(sweep, r, a)
        return
    if a in sweep.moving:
        sweep.meet(a, _quotient(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, _quotient(r, sweep.values[a]))


def _square(sweep: _BackwardSweep, r: Interval, operand: int) -> None:
    size = root(r).high
    sweep.meet(operand, Interval(-size, size))


def _div(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, multiply(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, _quotient(sweep.values[a], r))


def _narrow_pow(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    exponent = sweep.values[operands[1]]
    if np.all((exponent.low == 2.0) & (exponent.high == 2.0)):
        _square(sweep, r, operands[0])


def _sqrt(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    low, high = np.maximum(r.low, 0.0), r.high
    sweep.meet(operands[0], outward(low * low, high * high))


def _narrow_abs(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    sweep.meet(operands[0], Interval(-r.high, r.high))


def _narrow_sin(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Invert the sine within the quarter turns next to zero, in which it rises."""
    a, quarter = sweep.values[operands[0]], np.nextafter(np.pi / 2, 0.0)
    inverse = outward(np.arcsin(np.clip(r.low, -1.0, 1.0)), np.arcsin(np.clip(r.high, -1.0, 1.0)), ULPS)
    sweep.meet(operands[0], inverse, (a.low >= -quarter) & (a.high <= quarter) & (r.low <= 1.0) & (r.high >= -1.0))


def _narrow_cos(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Invert the cosine on either side of zero, within half a turn; on both sides its size bounds the angle."""
    a, half = sweep.values[operands[0]], np.nextafter(np.pi, 0.0)
    inverse = outward(np.arccos(np.clip(r.high, -1.0, 1.0)), np.arccos(np.clip(r.low, -1.0, 1.0)), ULPS)
    inside = (a.low >= -half) & (a.high <= half)
    sweep.meet(operands[0], Interval(-inverse.high, inverse.high), inside)
    sweep.meet(operands[0], inverse, inside & (a.low >= 0.0))
    sweep.meet(operands[0], Interval(-inverse.high, -inverse.low), inside & (a.high <= 0.0))


def _min(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    for operand in operands:
        sweep.meet(operand, Interval(r.low, np.full_like(r.low, np.inf)))


def _max(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    for operand in operands:
        sweep.meet(operand, Interval(np.full_like(r.high, -np.inf), r.high))


def _narrow_where(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Pass the result to the certain branch, if any: the condition is certain if it cannot be zero, or is zero."""
    c, a, b = operands
    truth = sweep.values[c]
    sweep.meet(a, r, (truth.low > 0.0) | (truth.high < 0.0))
    sweep.meet(b, r, (truth.low == 0.0) & (truth.high == 0.0))


_RULES: Final[dict[str, Rule]] = {
    "neg": _narrow_neg,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _narrow_pow,
    "sqrt": _sqrt,
    "abs": _narrow_abs,
    "sin": _narrow_sin,
    "cos": _narrow_cos,
    "min": _min,
    "max": _max,
    "where": _narrow_where,
}
