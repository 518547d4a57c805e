"""Where a guard falls through zero within one step.

A guard is known by value and slope at the start, the middle and the end of the step, hence as a quintic in
``s = (t - t0) / h``, kept in Bernstein form: its coefficients bound it, their sign changes bound the number of
its roots, and halving an interval is a handful of averages.  All roots are isolated from left to right, so that
two crossings in one step, roots near the start and touching roots are ordinary cases.

Farouki and Rajan (1987), *On the numerical condition of polynomials in Bernstein form*, CAGD 4.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import lean

Floats = NDArray[np.float64]

NONE: Final = 2.0  # returned instead of a root; every root is at most 1

_WIDEST: Final = 7  # coefficients of the largest polynomial, degree 6
_ITEM: Final = _WIDEST + 2  # an interval on the stack: where it begins, its width, its coefficients
_DEPTH: Final = 48  # halvings before a cluster of roots counts as one
WORKSPACE: Final = 3 * _WIDEST + _ITEM * (_DEPTH + 2)

QUINTIC: Final = 0  # where in the workspace the quintic lies
_SHIFTED: Final = _WIDEST
_SEXTIC: Final = 2 * _WIDEST
_STACK: Final = 3 * _WIDEST


@lean
def quintic(
    g0: float, s0: float, gm: float, sm: float, g1: float, s1: float, h: float, work: Floats
) -> tuple[float, float]:
    """Write the Bernstein coefficients of the quintic of one guard into ``work[:6]``.

    Parameters
    ----------
    g0, gm, g1, s0, sm, s1 : float
        Values and slopes (per second) at the start, the middle and the end.
    h : float
        Length of the step (s).

    Returns
    -------
    size : float
        Largest coefficient in absolute value; it bounds the guard on the step.
    sixth : float
        Estimate of the coefficient of ``s^2 (s - 1/2)^2 (1 - s)^2`` that the quintic lacks, from its own quartic
        and quintic coefficients (the symmetric and the skew part of what varies fast).
    """
    b0 = g0
    b1 = g0 + 0.2 * h * s0
    b4 = g1 - 0.2 * h * s1
    b5 = g1
    total = (32.0 * gm - b0 - 5.0 * (b1 + b4) - b5) / 10.0
    difference = (3.2 * h * sm + b0 + 3.0 * (b1 - b4) - b5) / 2.0
    b2 = 0.5 * (total - difference)
    b3 = 0.5 * (total + difference)
    work[0] = b0
    work[1] = b1
    work[2] = b2
    work[3] = b3
    work[4] = b4
    work[5] = b5
    fifth = (b5 - b0) + 5.0 * (b1 - b4) + 10.0 * (b3 - b2)
    fourth = 5.0 * ((b0 + b4) - 4.0 * (b1 + b3) + 6.0 * b2)
    size = max(max(abs(b0), abs(b1)), max(max(abs(b2), abs(b3)), max(abs(b4), abs(b5))))
    # about the middle, so that the two are the skew and the symmetric part
    return size, abs(fifth) + 0.5 * abs(fourth + 2.5 * fifth)


@lean
def _variations(work: Floats, at: int) -> int:
    """Count the sign changes of six coefficients, zero counting as negative."""
    count = 0
    for i in range(5):
        if (work[at + i] > 0.0) != (work[at + i + 1] > 0.0):
            count += 1
    return count


@lean
def _halve(work: Floats, at: int, degree: int, left: int, right: int) -> None:
    """Write the two halves of the polynomial at ``at`` by de Casteljau's scheme; ``right`` may equal ``at``."""
    for i in range(degree + 1):
        work[right + i] = work[at + i]
    work[left] = work[right]
    for level in range(1, degree + 1):
        for i in range(degree + 1 - level):
            work[right + i] = 0.5 * (work[right + i] + work[right + i + 1])
        work[left + level] = work[right]


@lean
def _from_left(work: Floats, at: int, s: float) -> None:
    """Replace the quintic at ``at`` by its restriction to [s, 1]."""
    for level in range(1, 6):
        for i in range(6 - level):
            work[at + i] += s * (work[at + i + 1] - work[at + i])


@lean
def _single_root(work: Floats, at: int) -> float:
    """Return the one root in [0, 1] of the quintic at ``at``, whose ends differ in sign, by guarded Newton steps."""
    b0, b1, b2 = work[at], work[at + 1], work[at + 2]
    b3, b4, b5 = work[at + 3], work[at + 4], work[at + 5]
    a1 = 5.0 * (b1 - b0)
    a2 = 10.0 * (b2 - 2.0 * b1 + b0)
    a3 = 10.0 * (b3 - 3.0 * (b2 - b1) - b0)
    a4 = 5.0 * (b4 - 4.0 * (b3 + b1) + 6.0 * b2 + b0)
    a5 = b5 - b0 - 5.0 * (b4 - b1) + 10.0 * (b3 - b2)
    low = 0.0
    high = 1.0
    falling = b0 > 0.0
    s = b0 / (b0 - b5)
    for _ in range(80):
        value = b0 + s * (a1 + s * (a2 + s * (a3 + s * (a4 + s * a5))))
        slope = a1 + s * (2.0 * a2 + s * (3.0 * a3 + s * (4.0 * a4 + s * 5.0 * a5)))
        if (value > 0.0) == falling:
            low = s
        else:
            high = s
        after = 0.5 * (low + high)
        if slope != 0.0 and low < s - value / slope < high:
            after = s - value / slope
        if abs(after - s) <= 1e-15 or high - low <= 1e-15:
            return after
        s = after
    return s


@lean
def _first_fall(work: Floats, at: int) -> float:
    """Return where the quintic at ``work[at:at + 6]`` first falls through zero on (0, 1], or ``NONE``."""
    top = _STACK
    work[top] = 0.0
    work[top + 1] = 1.0
    for i in range(6):
        work[top + 2 + i] = work[at + i]
    while top >= _STACK:
        start = work[top]
        width = work[top + 1]
        body = top + 2
        changes = _variations(work, body)
        first = work[body] > 0.0
        if changes == 0 or (changes == 1 and not first):
            top -= _ITEM
        elif changes == 1:
            return start + width * _single_root(work, body)
        elif top >= _STACK + _DEPTH * _ITEM:
            if first and not work[body + 5] > 0.0:
                return start + width
            top -= _ITEM
        else:
            # the right half stays below, the left half goes on top and is looked at first
            above = top + _ITEM
            _halve(work, body, 5, above + 2, body)
            work[top] = start + 0.5 * width
            work[top + 1] = 0.5 * width
            work[above] = start
            work[above + 1] = 0.5 * width
            top = above
    return NONE


@lean
def first_crossing(work: Floats, tolerance: float, waiting: bool) -> float:
    """Return where the guard whose quintic lies in ``work[:6]`` fires, in (0, 1], or ``NONE``.

    Parameters
    ----------
    tolerance : float
        How far below zero the guard must go: a touch that stays within has not fired.  The value returned is
        where it passes through ``-tolerance``.
    waiting : bool
        The guard is not armed: it must first rise above ``tolerance``.
    """
    begin = 0.0
    for i in range(6):
        work[_SHIFTED + i] = work[i] + tolerance
    if waiting:
        for i in range(6):
            work[_SHIFTED + i] = tolerance - work[i]
        begin = _first_fall(work, _SHIFTED)
        if begin >= 1.0:
            return NONE
        for i in range(6):
            work[_SHIFTED + i] = work[i] + tolerance
        _from_left(work, _SHIFTED, begin)
    root = _first_fall(work, _SHIFTED)
    if root > 1.0:
        return NONE
    return begin + (1.0 - begin) * root


@lean
def back_to_zero(work: Floats, tolerance: float, root: float) -> float:
    """Return where the guard is zero, given where it passes ``-tolerance``: one Newton step on its quintic.

    Where the guard is so flat that this would be a long way, the place given is returned.
    """
    for i in range(5):
        work[_SHIFTED + i] = 5.0 * (work[i + 1] - work[i])
    for level in range(1, 5):
        for i in range(5 - level):
            work[_SHIFTED + i] += root * (work[_SHIFTED + i + 1] - work[_SHIFTED + i])
    slope = work[_SHIFTED]
    if slope >= 0.0 or tolerance > -1e-3 * root * slope:
        return root
    return root + tolerance / slope


@lean
def surely_positive(work: Floats, tolerance: float, sixth: float) -> bool:
    """Tell whether the guard stays above ``-tolerance`` on the step even if its quintic errs by ``sixth``.

    The error of the quintic is ``sixth s^2 (s - 1/2)^2 (1 - s)^2`` at most: nothing at the ends and the middle,
    where value and slope are known.
    """
    b = _SEXTIC
    work[b] = work[0] + tolerance
    for i in range(1, 6):
        work[b + i] = (i * work[i - 1] + (6 - i) * work[i]) / 6.0 + tolerance
    work[b + 6] = work[5] + tolerance
    # Bernstein form of s^2 (s - 1/2)^2 (1 - s)^2 = (s^4 (1-s)^2 - 2 s^3 (1-s)^3 + s^2 (1-s)^4) / 4
    work[b + 2] -= sixth / 60.0
    work[b + 3] += sixth / 40.0
    work[b + 4] -= sixth / 60.0
    if _all_positive(work, b):
        return True
    top = _STACK
    for i in range(7):
        work[top + i] = work[b + i]
    while top >= _STACK:
        if _all_positive(work, top):
            top -= _ITEM
        elif top >= _STACK + 12 * _ITEM or not (work[top] >= 0.0 and work[top + 6] >= 0.0):
            return False
        else:
            _halve(work, top, 6, top + _ITEM, top)
            top += _ITEM
    return True


@lean
def _all_positive(work: Floats, at: int) -> bool:
    """Tell whether the coefficients bound a sextic away from zero inside (its ends may be zero)."""
    for i in range(1, 6):
        if not work[at + i] > 0.0:
            return False
    return work[at] >= 0.0 and work[at + 6] >= 0.0
