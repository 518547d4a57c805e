"""Contacts by complementarity: for connected sets of contacts too large to try every combination.

In the plane Coulomb's law is a linear complementarity problem ``w = P z + q, w >= 0, z >= 0, w·z = 0`` (Pfeiffer and
Glocker 1996, ch. 5; Lemke 1965 for the method).  A contact whose slip direction is known has one pair
``(λ_n, a_n)``; one at rest along its tangent has three,

    z = (λ_n, λ_t + μ λ_n, a_t⁻),   w = (a_n, a_t⁺, μ λ_n - λ_t),   a_t = a_t⁺ - a_t⁻ .

Static friction above kinetic is no such problem: the static coefficient is tried, and the kinetic one for the
contacts that slide nevertheless.  What is found is only a proposal: it is judged like any other combination.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.arena import Arena, copied, indices, mark, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.linear import put
from fsm_dyn.simulation.meeting import BACKWARD, FORWARD, HOLD, OPEN, Meeting

ZERO: Final = 1e-11
NEVER_SLIDES: Final = 1e6  # stands in for infinite friction


@lean
def solve_lcp(arena: Arena, P: NDArray[np.float64], q: NDArray[np.float64], z: NDArray[np.float64]) -> bool:
    """Find ``z >= 0`` with ``w = P z + q >= 0`` and ``w·z = 0`` by Lemke's method; False where it ends in a ray."""
    n = q.shape[0]
    width = 2 * n + 2
    for i in range(n):
        z[i] = 0.0
    lowest = 0
    for i in range(n):
        if q[i] < q[lowest]:
            lowest = i
    if n == 0 or q[lowest] >= 0.0:
        return True
    table, basic = matrix(arena, n, width), indices(arena, n)
    for i in range(n):
        basic[i] = i
        table[i, i] = 1.0
        for j in range(n):
            table[i, n + j] = -P[i, j]
        table[i, 2 * n], table[i, 2 * n + 1] = -1.0, q[i]
    row, entering = lowest, 2 * n
    for _ in range(60 * n + 60):
        pivot = table[row, entering]
        for j in range(width):
            table[row, j] /= pivot
        for i in range(n):
            times = table[i, entering]
            if i != row and times != 0.0:
                for j in range(width):
                    table[i, j] -= times * table[row, j]
        left = basic[row]
        basic[row] = entering
        if left == 2 * n:
            break
        entering = left + n if left < n else left - n
        row = _leaving(table, basic, entering, n)
        if row < 0:
            return False
    for i in range(n):
        if basic[i] == 2 * n:
            return False
        if basic[i] >= n:
            z[basic[i] - n] = table[i, 2 * n + 1]
    return True


@lean
def _leaving(table: NDArray[np.float64], basic: NDArray[np.int64], entering: int, n: int) -> int:
    """The row of least ratio; ties are broken lexicographically (which prevents cycling), the artificial one first."""
    best = -1
    for i in range(n):
        if table[i, entering] <= ZERO:
            continue
        if best < 0:
            best = i
            continue
        for column in range(-1, n):
            at = 2 * n + 1 if column < 0 else column
            mine, other = table[i, at] / table[i, entering], table[best, at] / table[best, entering]
            if abs(mine - other) > 1e-13 * (1.0 + abs(other)):
                if mine < other:
                    best = i
                break
            if column < 0 and basic[i] == 2 * n:
                best = i
                break
            if column < 0 and basic[best] == 2 * n:
                break
    return best


@lean
def propose(arena: Arena, m: Meeting, best: NDArray[np.int64], tolerance: float) -> bool:
    """Find a combination of choices by complementarity; False where the method finds none.

    Where contacts are redundant the method ends in one of many vertices, and contacts of which one force is at its
    limit there count as open or sliding though nothing moves: those at rest whose motion is within ``tolerance`` of the
    scale stay closed and stick, in what is proposed.
    """
    count = m.normal.shape[0]
    ratio = vector(arena, count)
    for k in range(count):
        ratio[k] = m.static[k] if m.allowed[k, HOLD] == 1 and m.slipping[k] == 0 else m.kinetic[k]
        if m.infinite[k] == 1:
            ratio[k] = NEVER_SLIDES
    for _ in range(count + 1):
        top = mark(arena)
        found = _propose_with(arena, m, ratio, best, tolerance)
        release(arena, top)
        if not found:
            return False
        again = False
        for k in range(count):
            if best[k] >= FORWARD and m.slipping[k] == 0 and ratio[k] > m.kinetic[k] and m.infinite[k] == 0:
                ratio[k] = m.kinetic[k]
                again = True
        if not again:
            break
    return True


@lean
def _propose_with(
    arena: Arena, m: Meeting, ratio: NDArray[np.float64], best: NDArray[np.int64], tolerance: float
) -> bool:
    """One complementarity problem, with these coefficients of friction, and the choices its solution means."""
    count, n = m.normal.shape[0], m.K.shape[0]
    size = 0
    first = indices(arena, count)
    for k in range(count):
        first[k] = size
        size += (m.normal[k] >= 0) + (2 if m.tangent[k] >= 0 and m.slipping[k] == 0 else 0)
    # y = forces_of z + given;  w = moves_of (K y + base - target) + own z + offset
    forces_of, given = matrix(arena, n, size), vector(arena, n)
    for k in range(count):
        a, b, at = m.normal[k], m.tangent[k], first[k]
        at_slip = at + (1 if a >= 0 else 0)
        if a >= 0:
            forces_of[a, at] = 1.0
        if b < 0:
            continue
        along = 0.0
        if m.slipping[k] == 1:
            along = 1.0 if m.allowed[k, FORWARD] == 1 else -1.0
        else:
            forces_of[b, at_slip] = 1.0
            along = 1.0
        if a >= 0:
            forces_of[b, at] = -along * ratio[k]
        else:
            given[b] = -along * ratio[k]
    motion_of, motion = matrix(arena, n, size), vector(arena, n)
    for i in range(n):
        motion[i] = m.base[i] - m.target[i]
        for j in range(n):
            motion[i] += m.K[i, j] * given[j]
            for s in range(size):
                motion_of[i, s] += m.K[i, j] * forces_of[j, s]
    P, q, z = matrix(arena, size, size), vector(arena, size), vector(arena, size)
    for k in range(count):
        a, b, at = m.normal[k], m.tangent[k], first[k]
        if a >= 0:
            put(P[at], motion_of[a])
            q[at] = motion[a]
            at += 1
        if b < 0 or m.slipping[k] == 1:
            continue
        put(P[at], motion_of[b])
        q[at] = motion[b]
        P[at, at + 1] += 1.0
        P[at + 1, at] = -1.0
        if a >= 0:
            P[at + 1, at - 1] = 2.0 * ratio[k]
        else:
            q[at + 1] = 2.0 * ratio[k]
    if not solve_lcp(arena, P, q, z):
        return False
    w, scale = copied(arena, q), m.scale[0]
    for i in range(size):
        scale = max(scale, abs(q[i]))
    for i in range(size):
        for j in range(size):
            w[i] += P[i, j] * z[j]
    for k in range(count):
        a, b, at = m.normal[k], m.tangent[k], first[k]
        best[k] = HOLD
        if a >= 0:
            stays = w[at] <= tolerance * scale and m.cost[k, OPEN] > 0.0
            if z[at] <= w[at] and not stays:
                best[k] = OPEN
            at += 1
        if b < 0 or best[k] == OPEN:
            continue
        if m.slipping[k] == 1:
            best[k] = FORWARD if m.allowed[k, FORWARD] == 1 else BACKWARD
        elif w[at] > z[at] and w[at] > tolerance * scale:
            best[k] = FORWARD
        elif z[at + 1] > w[at + 1] and z[at + 1] > tolerance * scale:
            best[k] = BACKWARD
    return True
