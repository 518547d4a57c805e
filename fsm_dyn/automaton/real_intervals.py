"""Interval arithmetic of mpmath, for programs: bounds of each operation, and of its operands given its result.

Bounds are of 64 bits and rounded outwards by mpmath; nothing of :mod:`fsm_dyn.programs.intervals` is used.  An
operation that is not known here has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from mpmath import libmp

PRECISION: Final = 64  # bits
_ROOM: Final = libmp.from_man_exp(1, -56)  # that inverse functions may be off, rad

Bound: TypeAlias = Any  # a number of mpmath.libmp
Bounds: TypeAlias = "tuple[Bound, Bound]"

NUMBERS: Final[Bounds] = (libmp.fninf, libmp.finf)
NOTHING: Final[Bounds] = (libmp.finf, libmp.fninf)
_ZERO: Final[Bounds] = (libmp.fzero, libmp.fzero)
_HALF_TURN: Final = libmp.mpf_pi(PRECISION, libmp.round_floor)
_QUARTER: Final = libmp.mpf_shift(_HALF_TURN, -1)


def bounds(low: float, high: float) -> Bounds:
    """Return an interval of two floats, which it holds exactly."""
    return libmp.from_float(low), libmp.from_float(high)


def floats(a: Bounds) -> tuple[float, float]:
    """Return the ends as floats, for messages."""
    return float(libmp.to_float(a[0])), float(libmp.to_float(a[1]))


def is_empty(a: Bounds) -> bool:
    """Whether there is no number in it."""
    return bool(libmp.mpf_gt(*a))


def common(a: Bounds, b: Bounds) -> Bounds:
    """Return the numbers in both."""
    low = a[0] if libmp.mpf_ge(a[0], b[0]) else b[0]
    high = a[1] if libmp.mpf_le(a[1], b[1]) else b[1]
    return low, high


def holds(a: Bounds, number: Bound) -> bool:
    """Whether a number is in it."""
    return bool(libmp.mpf_le(a[0], number) and libmp.mpf_le(number, a[1]))


def result(op: str, operands: Sequence[Bounds], same: bool) -> Bounds:
    """Return bounds of the result of an operation; ``same``: both operands are one value."""
    if same and op == "mul":
        square: Bounds = libmp.mpi_pow_int(operands[0], 2, PRECISION)
        return square
    known = _RESULTS.get(op)
    return NUMBERS if known is None else known(*operands)


def narrowed(op: str, whole: Bounds, operands: Sequence[Bounds], same: bool) -> list[Bounds]:
    """Return bounds of the operands of an operation with a result in ``whole``; wider than they were at times.

    ``same``: both operands are one value.
    """
    if same and op == "mul":
        return [_root_either_sign(whole)] * 2
    known = _OPERANDS.get(op)
    return list(operands) if known is None else known(whole, *operands)


def _low(a: Bounds, b: Bounds) -> Bound:
    return a[0] if libmp.mpf_le(a[0], b[0]) else b[0]


def _high(a: Bounds, b: Bounds) -> Bound:
    return a[1] if libmp.mpf_ge(a[1], b[1]) else b[1]


def _sum(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_add(a, b, PRECISION)
    return found


def _difference(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_sub(a, b, PRECISION)
    return found


def _product(a: Bounds, b: Bounds) -> Bounds:
    if _ZERO in (a, b):  # all values are finite
        return _ZERO
    found: Bounds = libmp.mpi_mul(a, b, PRECISION)
    return found


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_div(a, b, PRECISION)
    return found


def _solution(a: Bounds, b: Bounds) -> Bounds:
    """Return the numbers x with ``b x = a``."""
    if holds(b, libmp.fzero) and holds(a, libmp.fzero):
        return NUMBERS
    return NOTHING if b == _ZERO else _quotient(a, b)


def _sqrt(a: Bounds) -> Bounds:
    part = common(a, (libmp.fzero, libmp.finf))
    if is_empty(part):
        return NUMBERS  # of a branch that is not taken, else the operand is refused
    found: Bounds = libmp.mpi_sqrt(part, PRECISION)
    return found


def _power(a: Bounds, b: Bounds) -> Bounds:
    if b[0] != b[1] or not libmp.mpf_eq(b[0], libmp.mpf_floor(b[0])) or libmp.mpf_gt(libmp.mpf_abs(b[0]), _SMALL):
        return NUMBERS
    found: Bounds = libmp.mpi_pow_int(a, libmp.to_int(b[0]), PRECISION)
    return found


_SMALL: Final = libmp.from_int(64)


def _root_either_sign(whole: Bounds) -> Bounds:
    part = common(whole, (libmp.fzero, libmp.finf))
    if is_empty(part):
        return NOTHING
    _, high = libmp.mpi_sqrt(part, PRECISION)
    return libmp.mpf_neg(high), high


def _of_power(whole: Bounds, a: Bounds, b: Bounds) -> list[Bounds]:
    return [_root_either_sign(whole) if b == (libmp.from_int(2),) * 2 else a, b]


def _of_sqrt(whole: Bounds, a: Bounds) -> list[Bounds]:
    part = common(whole, (libmp.fzero, libmp.finf))
    return [NOTHING if is_empty(part) else libmp.mpi_pow_int(part, 2, PRECISION)]


def _inverse(function: Callable[..., Bound], least: Bound, most: Bound) -> Bounds:
    """Return bounds of the inverse of a function at two numbers, cut off at -1 and 1."""
    one, minus = libmp.fone, libmp.fnone
    ends = [minus if libmp.mpf_lt(x, minus) else one if libmp.mpf_gt(x, one) else x for x in (least, most)]
    low, high = (function(x, PRECISION, libmp.round_nearest) for x in ends)
    return (
        libmp.mpf_sub(low, _ROOM, PRECISION, libmp.round_floor),
        libmp.mpf_add(high, _ROOM, PRECISION, libmp.round_ceiling),
    )


_UNIT: Final[Bounds] = (libmp.fnone, libmp.fone)


def _of_sin(whole: Bounds, a: Bounds) -> list[Bounds]:
    """Return bounds of an angle by its sine, within the quarter turns next to zero."""
    if is_empty(common(whole, _UNIT)):
        return [NOTHING]
    inside = libmp.mpf_ge(a[0], libmp.mpf_neg(_QUARTER)) and libmp.mpf_le(a[1], _QUARTER)
    return [_inverse(libmp.mpf_asin, *whole) if inside else a]


def _of_cos(whole: Bounds, a: Bounds) -> list[Bounds]:
    """Return bounds of an angle by its cosine, within half a turn on either side of zero."""
    if is_empty(common(whole, _UNIT)):
        return [NOTHING]
    if libmp.mpf_lt(a[0], libmp.mpf_neg(_HALF_TURN)) or libmp.mpf_gt(a[1], _HALF_TURN):
        return [a]
    low, high = _inverse(libmp.mpf_acos, whole[1], whole[0])
    if libmp.mpf_ge(a[0], libmp.fzero):
        return [(low, high)]
    minus = libmp.mpf_neg(high), libmp.mpf_neg(low)
    return [minus if libmp.mpf_le(a[1], libmp.fzero) else (minus[0], high)]


def _where(c: Bounds, a: Bounds, b: Bounds) -> Bounds:
    if c == _ZERO:
        return b
    return (_low(a, b), _high(a, b)) if holds(c, libmp.fzero) else a


def _of_where(whole: Bounds, c: Bounds, a: Bounds, b: Bounds) -> list[Bounds]:
    if c == _ZERO:
        return [c, a, whole]
    return [c, a, b] if holds(c, libmp.fzero) else [c, whole, b]


def _truth(certain: bool, possible: bool) -> Bounds:
    return libmp.from_int(int(certain)), libmp.from_int(int(possible))


_RESULTS: Final[dict[str, Callable[..., Bounds]]] = {
    "neg": libmp.mpi_neg,
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
    "sqrt": _sqrt,
    "sin": lambda a: libmp.mpi_sin(a, PRECISION),
    "cos": lambda a: libmp.mpi_cos(a, PRECISION),
    "exp": lambda a: libmp.mpi_exp(a, PRECISION),
    "atan": lambda a: libmp.mpi_atan(a, PRECISION),
    "abs": lambda a: libmp.mpi_abs(a, PRECISION),
    "min": lambda a, b: (_low(a, b), a[1] if libmp.mpf_le(a[1], b[1]) else b[1]),
    "max": lambda a, b: (a[0] if libmp.mpf_ge(a[0], b[0]) else b[0], _high(a, b)),
    "lt": lambda a, b: _truth(libmp.mpf_lt(a[1], b[0]), libmp.mpf_lt(a[0], b[1])),
    "le": lambda a, b: _truth(libmp.mpf_le(a[1], b[0]), libmp.mpf_le(a[0], b[1])),
    "where": _where,
}

_OPERANDS: Final[dict[str, Callable[..., list[Bounds]]]] = {
    "neg": lambda r, a: [libmp.mpi_neg(r)],
    "add": lambda r, a, b: [_difference(r, b), _difference(r, a)],
    "sub": lambda r, a, b: [_sum(r, b), _difference(a, r)],
    "mul": lambda r, a, b: [_solution(r, b), _solution(r, a)],
    "div": lambda r, a, b: [_product(r, b), _solution(a, r)],
    "pow": _of_power,
    "sqrt": _of_sqrt,
    "sin": _of_sin,
    "cos": _of_cos,
    "abs": lambda r, a: [(libmp.mpf_neg(r[1]), r[1])],
    "min": lambda r, a, b: [(r[0], libmp.finf)] * 2,
    "max": lambda r, a, b: [(libmp.fninf, r[1])] * 2,
    "where": _of_where,
}
