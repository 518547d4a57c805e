"""Enclosures of programs by interval arithmetic: bounds that hold for every argument in a box.

Bounds are rounded outwards after every operation (Moore, Kearfott and Cloud 2009, chapter 4): by one unit in the last
place where the operation rounds correctly, by :data:`ULPS` where a function of the mathematics library is only close.
Values that do not exist (a root of a negative number, a division by zero) are left out; an interval in which no value
exists is empty, and so is everything computed from it.  Intervals of many boxes are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs.program import Array, Program

ULPS: Final = 4  # units in the last place by which the functions of NumPy and of the runtime are trusted


class Interval(NamedTuple):
    """Intervals ``[low, high]``, one for each box; where ``low > high`` or either is NaN, the interval is empty."""

    low: Array
    high: Array

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Where there is no value."""
        return ~(self.low <= self.high)


def enclose(program: Program, arguments: Interval) -> dict[str, Interval]:
    """Return bounds of all outputs over boxes of arguments.

    Parameters
    ----------
    program : Program
        Of which every operation is in :data:`fsm_dyn.programs.operations.OPERATIONS`.
    arguments : Interval
        Bounds of ``t``, ``x`` and ``c`` in the order of ``program.arguments``, arrays of shape (n_arguments, n_boxes).

    Returns
    -------
    dict of str to Interval
        For each output arrays of shape (n_boxes, *shape of the output).
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


def outward(low: Array, high: Array, ulps: int = 1) -> Interval:
    """Return bounds moved apart; NaN of arithmetic with infinities becomes no bound."""
    for _ in range(ulps):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    if np.isnan(low).any() or np.isnan(high).any():
        return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))
    return Interval(low, high)


def _kept_empty(result: Interval, *operands: Interval) -> Interval:
    """Return an interval that is empty where one of the operands is."""
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


def _products(a: Interval, b: Interval) -> Array:
    """Return the four products of ends; zero times no bound is zero."""
    pairs = [(x, y) for x in a for y in b]
    return np.array([np.where((x == 0.0) | (y == 0.0), 0.0, x * y) for x, y in pairs])


def multiply(a: Interval, b: Interval) -> Interval:
    """Return the product; the square where both operands are one interval object."""
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
    """Return 1/b without the values at zero: half a line where zero is an end, all numbers where it is inside."""
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
    # whole exponents have negative bases too; all that is known of their power then is its size
    whole = (a.low < 0.0) & (np.floor(b.high) >= b.low)
    size = _positive_power(_abs(a), b).high
    low, high = np.where(whole, -size, result.low), np.where(whole, size, result.high)
    return _kept_empty(Interval(low, high), a, b)


def _positive_power(a: Interval, b: Interval) -> Interval:
    """Return ``a**b`` where the base is not negative; zero to a positive power is zero, to the power zero one."""
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
    function: Callable[[Array], Array], ulps: int = ULPS, least: float = -np.inf, most: float = np.inf
) -> Callable[[Interval], Interval]:
    """Return the interval form of a function that does not fall between ``least`` and ``most``, where it is defined."""

    def apply(a: Interval) -> Interval:
        part = _clipped(a, least, most)
        return _kept_empty(outward(function(part.low), function(part.high), ulps), part)

    return apply


_log = _monotone(np.log, least=0.0)


def _exp(a: Interval) -> Interval:
    result = _monotone(np.exp)(a)
    return Interval(np.maximum(result.low, 0.0), result.high)


def root(a: Interval) -> Interval:
    """Return the square root, of the part that is not negative."""
    result = _monotone(np.sqrt, 1, least=0.0)(a)
    return Interval(np.maximum(result.low, 0.0), result.high)


def _cos(a: Interval) -> Interval:
    """Return the cosine: -1 and 1 where an extremum may lie inside, by turns counted with room for rounding."""
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
    """Return the sine, as the cosine of an angle that is a quarter turn smaller."""
    half_pi = Interval(
        np.full_like(a.low, np.nextafter(np.pi / 2, 0.0)), np.full_like(a.low, np.nextafter(np.pi / 2, 2.0))
    )
    return _cos(subtract(a, half_pi))


def _tan(a: Interval) -> Interval:
    """Return the tangent: all numbers where a pole may lie inside, else from end to end."""
    turns_low, turns_high = a.low / np.pi + 0.5, a.high / np.pi + 0.5
    room = 4e-16 * (1.0 + np.maximum(abs(turns_low), abs(turns_high)))
    pole = ~(np.floor(turns_high + room) < np.ceil(turns_low - room)) | ~np.isfinite(turns_high - turns_low)
    result = outward(np.tan(a.low), np.tan(a.high), ULPS)
    return _kept_empty(Interval(np.where(pole, -np.inf, result.low), np.where(pole, np.inf, result.high)), a)


def _acos(a: Interval) -> Interval:
    part = _clipped(a, -1.0, 1.0)
    return _kept_empty(outward(np.arccos(part.high), np.arccos(part.low), ULPS), part)


def _atan2(a: Interval, b: Interval) -> Interval:
    """Return the angle: of the corners of a box that the branch cut does not touch, else a whole turn."""
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
    """Return ``a mod b``, with the sign of ``b``: within one period where the quotient has one whole part."""
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


def _extreme(choose: Callable[[Array, Array], Array]) -> Callable[[Interval, Interval], Interval]:
    return lambda a, b: _kept_empty(Interval(choose(a.low, b.low), choose(a.high, b.high)), a, b)


def _truth(certain: npt.NDArray[np.bool_], possible: npt.NDArray[np.bool_], *operands: Interval) -> Interval:
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
    """Return the branch that is certain, or the hull of both; an empty branch that may be left out counts as absent."""
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
