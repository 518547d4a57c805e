"""Contacts in one instant: which combination of choices agrees with the laws of contact and friction.

Both questions an instant asks have one form.  Contact rows answer forces ``y`` with ``v = base + K y``
(K: the inverse mass seen by the rows, bilateral rows already held); every contact makes one choice, and the
choices turn into as many linear equations as there are rows.  Asked of velocities the answer is an impact
(docs/theory.md, "Impacts"), asked of accelerations it is the next mode ("Resolution").  All combinations are
tried, so that what is chosen, and how many others would have done, is known.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import inner
from fsm_dyn.simulation.linear import factor, solve

# what a contact can choose
OPEN: Final = 0
HOLD: Final = 1  # normal and tangent rows held
FORWARD: Final = 2  # slides with direction +1
BACKWARD: Final = 3  # slides with direction -1
CHOICES: Final = 4

RANK: Final = 1e-11
WORST: Final = 1e30


@inner
def _direction(choice: int) -> float:
    return 1.0 if choice == FORWARD else -1.0


@inner
def _solve_choices(
    choices: NDArray[np.int64],
    normal: NDArray[np.int64],
    tangent: NDArray[np.int64],
    K: NDArray[np.float64],
    base: NDArray[np.float64],
    target: NDArray[np.float64],
    friction: NDArray[np.float64],
    bound: NDArray[np.float64],
    y: NDArray[np.float64],
    v: NDArray[np.float64],
) -> float:
    """Solve for the forces ``y`` and the answers ``v`` of one combination; returns how far it is from solvable."""
    n = K.shape[0]
    matrix = np.zeros((n, n))
    right = np.zeros(n)
    size = 0.0
    for i in range(n):
        size = max(size, abs(K[i, i]))
    for k in range(choices.shape[0]):
        choice, a, b = choices[k], normal[k], tangent[k]
        if a >= 0 and choice == OPEN:
            matrix[a, a] = size
        elif a >= 0:
            for j in range(n):
                matrix[a, j] = K[a, j]
            right[a] = target[a] - base[a]
        if b < 0:
            continue
        if choice == HOLD:
            for j in range(n):
                matrix[b, j] = K[b, j]
            right[b] = target[b] - base[b]
            continue
        matrix[b, b] = size
        if choice >= FORWARD and a >= 0:
            matrix[b, a] = size * _direction(choice) * friction[k]
        elif choice >= FORWARD:
            right[b] = -size * _direction(choice) * bound[k]
    rows = np.empty(n, np.int64)
    columns = np.empty(n, np.int64)
    scratch = np.empty(n)
    rank = factor(matrix, rows, columns, RANK)
    remainder = solve(matrix, rows, columns, rank, right, scratch, y)
    largest = 0.0
    for i in range(n):
        v[i] = base[i]
        for j in range(n):
            v[i] += K[i, j] * y[j]
        largest = max(largest, abs(right[i]))
    return remainder / largest if largest > 0.0 else 0.0


@inner
def _violation(
    choice: int,
    a: int,
    b: int,
    y: NDArray[np.float64],
    v: NDArray[np.float64],
    target: NDArray[np.float64],
    static: float,
    bound: float,
    slipping: bool,
    force_scale: float,
    motion_scale: float,
) -> float:
    """Return by how much one contact's choice breaks the laws, as a fraction of the scales; 0 or less: it holds."""
    worst = -1.0
    if a >= 0 and choice == OPEN:
        return (target[a] - v[a]) / motion_scale
    if a >= 0:
        worst = max(worst, -y[a] / force_scale)
    if b >= 0 and choice == HOLD:
        limit = static * y[a] if a >= 0 else bound
        worst = max(worst, (abs(y[b]) - limit) / force_scale)
    if b >= 0 and choice >= FORWARD and not slipping:
        worst = max(worst, -_direction(choice) * v[b] / motion_scale)
    return worst


@inner
def enumerate_choices(
    normal: NDArray[np.int64],
    tangent: NDArray[np.int64],
    K: NDArray[np.float64],
    base: NDArray[np.float64],
    target: NDArray[np.float64],
    static: NDArray[np.float64],
    kinetic: NDArray[np.float64],
    slipping: NDArray[np.int8],
    allowed: NDArray[np.int8],
    cost: NDArray[np.float64],
    tolerance: float,
    best: NDArray[np.int64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
) -> tuple[int, int, float]:
    """Try every allowed combination of choices and keep the consistent one of least cost.

    Parameters
    ----------
    normal, tangent : int64 arrays, shape (n_contacts,)
        Index of each contact's rows among the n rows at hand, -1 where there is none.
    K : float64 array, shape (n, n)
    base, target : float64 arrays, shape (n,)
        Answers without contact forces, and what a closed normal row or a held row must answer (an open contact
        answers at least that much).
    static, kinetic : float64 arrays, shape (n_contacts,)
        Friction coefficients, or for dry friction on a speed the bounds themselves.
    slipping : int8 array, shape (n_contacts,)
        1 where the slip direction is known from a slip speed that is not zero.
    allowed : int8 array, shape (n_contacts, CHOICES)
    cost : float64 array, shape (n_contacts, CHOICES)
        What decides between several consistent combinations: the smaller sum is taken.
    tolerance : float
        Violation up to which a law counts as kept, as a fraction of the scales at hand.
    best, forces, answers
        Out: the choices taken (n_contacts,), forces (n,) and answers (n,).

    Returns
    -------
    consistent, tried : int
    violation : float
        Of the combination that came closest, if none is consistent.
    """
    count, n = normal.shape[0], K.shape[0]
    choices = np.zeros(count, np.int64)
    y, v = np.zeros(n), np.zeros(n)
    for k in range(count):
        while choices[k] < CHOICES - 1 and allowed[k, choices[k]] == 0:
            choices[k] += 1
    consistent, tried, nearest, least = 0, 0, WORST, WORST
    while True:
        tried += 1
        unsolved = _solve_choices(choices, normal, tangent, K, base, target, kinetic, kinetic, y, v)
        force_scale, motion_scale = 1e-300, 1e-300
        for i in range(n):
            for j in range(n):
                motion_scale = max(motion_scale, abs(K[i, j] * y[j]))
            motion_scale = max(motion_scale, abs(base[i]), abs(target[i]))
            force_scale = max(force_scale, abs(y[i]))
            if K[i, i] > 0.0:
                force_scale = max(force_scale, abs(base[i] - target[i]) / K[i, i])
        worst = unsolved if unsolved > tolerance else -1.0
        total = 0.0
        for k in range(count):
            worst = max(
                worst,
                _violation(
                    choices[k], normal[k], tangent[k], y, v, target, static[k], static[k],
                    slipping[k] == 1, force_scale, motion_scale,
                ),
            )  # fmt: skip
            total += cost[k, choices[k]]
        if not worst <= tolerance:
            if worst < nearest:
                nearest = worst
        else:
            consistent += 1
            if total < least:
                least = total
                for k in range(count):
                    best[k] = choices[k]
                for i in range(n):
                    forces[i], answers[i] = y[i], v[i]
        if not _advance(choices, allowed):
            break
    return consistent, tried, nearest


@inner
def _advance(choices: NDArray[np.int64], allowed: NDArray[np.int8]) -> bool:
    """Step to the next allowed combination; False after the last."""
    for k in range(choices.shape[0]):
        for choice in range(choices[k] + 1, CHOICES):
            if allowed[k, choice] == 1:
                choices[k] = choice
                return True
        choices[k] = 0
        while choices[k] < CHOICES - 1 and allowed[k, choices[k]] == 0:
            choices[k] += 1
    return False
