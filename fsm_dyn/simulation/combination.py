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
    """Solve one combination with slip directions as they are; what has none yet is held.

    The unknowns are the forces of the rows that are held: an open contact has a force that is given, and the friction
    of one that slides follows from its normal force.
    """
    n = m.K.shape[0]
    given, share, leader = vector(arena, n), vector(arena, n), indices(arena, n)
    held, count = indices(arena, n), 0
    for k in range(choices.shape[0]):
        count = _sort_rows(m, choices, k, given, share, leader, held, count)
    place = indices(arena, n)
    for i in range(count):
        place[held[i]] = i
    system, right = matrix(arena, count, count), vector(arena, count)
    for i in range(count):
        row = held[i]
        right[i] = m.target[row] - m.base[row]
        for j in range(n):
            if leader[j] >= 0:
                system[i, place[leader[j]]] += share[j] * m.K[row, j]
            right[i] -= m.K[row, j] * given[j]
    rows, columns, scratch = indices(arena, count), indices(arena, count), vector(arena, count)
    rank = factor(system, rows, columns, RANK)
    forces = vector(arena, count)
    remainder = solve(system, rows, columns, rank, right, scratch, forces)
    few = null_space(arena, system, rows, columns, rank)
    basis = matrix(arena, n, count - rank)
    for j in range(n):
        y[j] = given[j]
        if leader[j] >= 0:
            y[j] += share[j] * forces[place[leader[j]]]
            for a in range(count - rank):
                basis[j, a] = share[j] * few[place[leader[j]], a]
    if rank < count:
        smallest_norm(arena, y, basis, m.unit)
    for i in range(n):
        v[i] = m.base[i]
        for j in range(n):
            v[i] += m.K[i, j] * y[j]
    return remainder, basis


@lean
def _sort_rows(
    m: Meeting,
    choices: NDArray[np.int64],
    k: int,
    given: NDArray[np.float64],
    share: NDArray[np.float64],
    leader: NDArray[np.int64],
    held: NDArray[np.int64],
    count: int,
) -> int:
    """Say what the forces of a contact are: ``y[j] = given[j] + share[j] y[leader[j]]``, with leader -1 for none.

    A row that is held leads itself; those are appended to ``held``.  Returns how many stand there.
    """
    choice, a, b = choices[k], m.normal[k], m.tangent[k]
    if _turns(m, choices, k) and m.way[k, 0] == 0.0 and m.way[k, 1] == 0.0:
        choice = PARTED_HOLD if is_open(choice) else HOLD
    if a >= 0 and is_open(choice):
        given[a], leader[a] = m.floor[a], -1
    elif a >= 0:
        count = _hold(a, share, leader, held, count)
    if b < 0:
        return count
    across = m.spatial[k]
    if choice == HOLD or choice == PARTED_HOLD:
        for r in range(b, b + 1 + across):
            count = _hold(r, share, leader, held, count)
        return count
    along = direction_of(choice)
    for r in range(1 + across):
        friction = 0.0
        if along != 0.0:
            friction = -m.kinetic[k] * (m.way[k, r] if across == 1 else along * (side_of(choice) if a >= 0 else 1.0))
        if a < 0:
            given[b + r], leader[b + r] = friction, -1
        elif leader[a] < 0:
            given[b + r], leader[b + r] = friction * given[a], -1
        else:
            share[b + r], leader[b + r] = friction, a
    return count


@lean
def _hold(row: int, share: NDArray[np.float64], leader: NDArray[np.int64], held: NDArray[np.int64], count: int) -> int:
    """Append a row to those that are held; return how many these are."""
    share[row], leader[row] = 1.0, row
    held[count] = row
    return count + 1
