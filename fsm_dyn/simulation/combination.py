"""One combination of choices solved: its forces and motions, and slip directions in space not known beforehand.

Such a direction is that of the motion it leads to.  The friction that would hold the contact gives the first guess,
which is the answer where a limit has just been reached.  Going on from the friction at hand against the motion it
leaves arrives at once where the tangent plane answers alike in all directions, and Newton's method on the angles
elsewhere (docs/theory.md, "Friction in space").
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.arena import Arena, indices, mark, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.feasibility import null_space, smallest_norm
from fsm_dyn.simulation.linear import factor, solve
from fsm_dyn.simulation.meeting import HOLD, PARTED_HOLD, Meeting, direction_of, is_open, side_of

RANK: Final = 1e-11
ROUNDS: Final = 12  # of going on and of Newton's method, together
SWEEPS: Final = 6
TURNED: Final = 1e-14  # rad: no more than rounding
NUDGE: Final = 1e-7  # rad
FARTHEST: Final = 0.5  # rad


@lean
def solve_choices(
    arena: Arena, m: Meeting, choices: NDArray[np.int64], y: NDArray[np.float64], v: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Solve for the forces ``y`` and motions ``v`` of one combination; slip directions found are left in ``m.way``.

    Returns
    -------
    remainder : float
        How far the rows contradict each other.
    basis : (n, nullity)
        Forces that the equations leave open; ``y`` has none of them.
    """
    turning = 0
    for k in range(choices.shape[0]):
        if _turns(m, choices, k):
            turning += 1
            m.way[k, 0] = m.way[k, 1] = 0.0
    top = mark(arena)
    if turning > 0:
        _find_ways(arena, m, choices, turning, y, v)
        release(arena, top)
    return _solve_along(arena, m, choices, y, v)


@lean
def _turns(m: Meeting, choices: NDArray[np.int64], k: int) -> bool:
    """Whether a contact in space is to slide in a direction not known beforehand."""
    return m.spatial[k] == 1 and m.slipping[k] == 0 and direction_of(choices[k]) != 0.0


@lean
def _find_ways(
    arena: Arena,
    m: Meeting,
    choices: NDArray[np.int64],
    turning: int,
    y: NDArray[np.float64],
    v: NDArray[np.float64],
) -> None:
    """Find the slip directions of the ``turning`` contacts that have none given."""
    who, at = indices(arena, turning), 0
    for k in range(choices.shape[0]):
        if _turns(m, choices, k):
            who[at] = k
            at += 1
    top = mark(arena)
    _solve_along(arena, m, choices, y, v)
    for k in who:
        b = m.tangent[k]
        size = np.hypot(y[b], y[b + 1])
        m.way[k, 0] = -y[b] / size if size > 0.0 else 1.0
        m.way[k, 1] = -y[b + 1] / size if size > 0.0 else 0.0
    release(arena, top)
    turned = 0.0
    for _ in range(ROUNDS):
        for _ in range(SWEEPS):
            turned = 0.0
            for k in who:
                _solve_along(arena, m, choices, y, v)
                release(arena, top)
                turned = max(turned, _go_on(m, k, y, v))
            if turned <= TURNED:
                return
        _newton(arena, m, choices, who, y, v)
        release(arena, top)


@lean
def _go_on(m: Meeting, k: int, y: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    """Turn the slip direction of a contact to where its motion would go; returns how far it turned."""
    a, b = m.normal[k], m.tangent[k]
    bound = m.kinetic[k] * (max(y[a], 0.0) if a >= 0 else 1.0)
    stiff = bound * (max(m.K[b, b], m.K[b + 1, b + 1]) + abs(m.K[b, b + 1]))
    first, second = v[b] + stiff * m.way[k, 0], v[b + 1] + stiff * m.way[k, 1]
    length = np.hypot(first, second)
    if length == 0.0:
        return 0.0
    first, second = first / length, second / length
    turned = np.hypot(first - m.way[k, 0], second - m.way[k, 1])
    m.way[k, 0], m.way[k, 1] = first, second
    return float(turned)


@lean
def _beside(m: Meeting, k: int, v: NDArray[np.float64]) -> float:
    """Motion of a contact beside its slip direction."""
    b = m.tangent[k]
    return float(m.way[k, 0] * v[b + 1] - m.way[k, 1] * v[b])


@lean
def _rotate(m: Meeting, k: int, angle: float) -> None:
    """Rotate the slip direction of a contact."""
    c, s = np.cos(angle), np.sin(angle)
    m.way[k, 0], m.way[k, 1] = c * m.way[k, 0] - s * m.way[k, 1], s * m.way[k, 0] + c * m.way[k, 1]


@lean
def _newton(
    arena: Arena,
    m: Meeting,
    choices: NDArray[np.int64],
    who: NDArray[np.int64],
    y: NDArray[np.float64],
    v: NDArray[np.float64],
) -> None:
    """One step of Newton's method on the angles, towards no motion beside the directions; undone if it leads away."""
    count = who.shape[0]
    slopes, right, step = matrix(arena, count, count), vector(arena, count), vector(arena, count)
    rows, columns, scratch = indices(arena, count), indices(arena, count), vector(arena, count)
    top = mark(arena)
    _solve_along(arena, m, choices, y, v)
    release(arena, top)
    before, after = 0.0, 0.0
    for i in range(count):
        right[i] = -_beside(m, who[i], v)
        before = max(before, abs(right[i]))
    for j in range(count):
        _rotate(m, who[j], NUDGE)
        _solve_along(arena, m, choices, y, v)
        release(arena, top)
        for i in range(count):
            slopes[i, j] = (_beside(m, who[i], v) + right[i]) / NUDGE
        _rotate(m, who[j], -NUDGE)
    rank = factor(slopes, rows, columns, RANK)
    solve(slopes, rows, columns, rank, right, scratch, step)
    for i in range(count):
        step[i] = min(max(step[i], -FARTHEST), FARTHEST)
        _rotate(m, who[i], step[i])
    _solve_along(arena, m, choices, y, v)
    for i in range(count):
        b = m.tangent[who[i]]
        against = m.way[who[i], 0] * v[b] + m.way[who[i], 1] * v[b + 1] < 0.0
        after = max(after, 2.0 * before if against else abs(_beside(m, who[i], v)))
    if not after < before:
        for i in range(count):
            _rotate(m, who[i], -step[i])


@lean
def _solve_along(
    arena: Arena, m: Meeting, choices: NDArray[np.int64], y: NDArray[np.float64], v: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Solve one combination with slip directions as they are; what has none yet is held."""
    n = m.K.shape[0]
    system, right = matrix(arena, n, n), vector(arena, n)
    for k in range(choices.shape[0]):
        choice, a, b = choices[k], m.normal[k], m.tangent[k]
        if _turns(m, choices, k) and m.way[k, 0] == 0.0 and m.way[k, 1] == 0.0:
            choice = PARTED_HOLD if is_open(choice) else HOLD
        if a >= 0 and is_open(choice):
            system[a, a] = 1.0
            right[a] = m.floor[a]
        elif a >= 0:
            for j in range(n):
                system[a, j] = m.K[a, j]
            right[a] = m.target[a] - m.base[a]
        if b < 0:
            continue
        if choice == HOLD or choice == PARTED_HOLD:
            for r in range(b, b + 1 + m.spatial[k]):
                for j in range(n):
                    system[r, j] = m.K[r, j]
                right[r] = m.target[r] - m.base[r]
            continue
        system[b, b] = 1.0
        along = direction_of(choice)
        if m.spatial[k] == 1:
            system[b + 1, b + 1] = 1.0
            for r in range(2 if along != 0.0 else 0):
                if a >= 0:
                    system[b + r, a] = m.way[k, r] * m.kinetic[k]
                else:
                    right[b + r] = -m.way[k, r] * m.kinetic[k]
        elif along != 0.0 and a >= 0:
            system[b, a] = along * side_of(choice) * m.kinetic[k]
        elif along != 0.0:
            right[b] = -along * m.kinetic[k]
    rows, columns, scratch = indices(arena, n), indices(arena, n), vector(arena, n)
    rank = factor(system, rows, columns, RANK)
    remainder = solve(system, rows, columns, rank, right, scratch, y)
    basis = null_space(arena, system, rows, columns, rank)
    if rank < n:
        smallest_norm(arena, y, basis, m.unit)
    for i in range(n):
        v[i] = m.base[i]
        for j in range(n):
            v[i] += m.K[i, j] * y[j]
    return remainder, basis
