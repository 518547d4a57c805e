"""Static forces of many contacts for one displacement: a complementarity problem solved by relaxation.

For forces ``λ`` and answers ``w = K λ + d`` every normal obeys ``0 ≤ λ_n ⊥ w_n ≥ 0`` and every tangent
``|λ_t| ≤ bound``, with ``w_t = 0`` unless the bound is reached (docs/theory.md, "Statics").  Projected Gauss-Seidel
sweeps find which contacts carry and which stick; the linear system of that choice then gives the digits.  Redundant
contacts make K singular and do no harm.  Moreau, *Some numerical methods in multibody dynamics*, 1999, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.modes.least_squares import least_squares, product

Array = npt.NDArray[np.float64]

SWEEPS = 400
SETTLED = 1e-13
PIVOTS = 60
FREE, HELD, SLIPPING = 0, 1, 2
INFINITE = 1e9  # times the normal force: what a contact of infinite friction may bear


@dataclass(frozen=True)
class Unknowns:
    """Which unknown is what.

    ``kind`` 0: normal, 1: tangent; ``normal`` the place of a tangent's normal force (-1: the bound is a force of its
    own); ``bound`` the coefficient or the force; ``drive`` the sign of a slip that continues under any forces, else 0.
    """

    kind: npt.NDArray[np.int64]
    normal: npt.NDArray[np.int64]
    bound: Array
    drive: Array

    def __len__(self) -> int:
        return len(self.kind)

    def limit(self, i: int, forces: Array) -> float:
        """The largest force of tangent ``i``."""
        normal = self.normal[i]
        return float(self.bound[i]) * (max(float(forces[normal]), 0.0) if normal >= 0 else 1.0)


def solve_contacts(K: Array, d: Array, unknowns: Unknowns, guess: Array) -> Array:
    """Return the forces, shape (n,), from a guess of them.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        What each row answers to a unit force along each.
    d : ndarray, shape (n,)
        What each row answers without forces; of normals the gap there would be.
    unknowns : Unknowns
        Kinds and limits of the forces.
    guess : ndarray, shape (n,)
        Forces, N or N m.

    Returns
    -------
    ndarray, shape (n,)
        The forces, N or N m.
    """
    forces = guess.copy()
    diagonal = np.maximum(np.diag(K), 1e-14 * max(float(np.abs(K).max(initial=0.0)), 1e-300))
    for _ in range(SWEEPS):
        change = 0.0
        for i in range(len(unknowns)):
            new = forces[i] - float((K[i] * forces).sum() + d[i]) / diagonal[i]
            new = _admitted(unknowns, i, new, forces)
            change = max(change, abs(new - forces[i]))
            forces[i] = new
        if change <= SETTLED * (1.0 + np.abs(forces).max(initial=0.0)):
            break
    found = _polished(K, d, unknowns, forces)
    if found is None:
        found = _pivoted(K, d, unknowns, forces, diagonal)
    return forces if found is None else found


def _admitted(unknowns: Unknowns, i: int, value: float, forces: Array) -> float:
    if unknowns.kind[i] == 0:
        return max(value, 0.0)
    limit = unknowns.limit(i, forces)
    if unknowns.drive[i] != 0.0:
        return -float(unknowns.drive[i]) * limit
    return min(max(value, -limit), limit)


def _polished(K: Array, d: Array, unknowns: Unknowns, forces: Array) -> Array | None:
    """Solve the equations of the choice that the sweeps found; None if the choice does not bear it."""
    small = 1e-9 * (1.0 + np.abs(forces).max(initial=0.0))
    choice = np.zeros(len(unknowns), dtype=np.int64)
    for i in range(len(unknowns)):
        if unknowns.kind[i] == 0:
            choice[i] = HELD if forces[i] > 0.0 else FREE
        elif unknowns.drive[i] != 0.0 or abs(forces[i]) >= unknowns.limit(i, forces) - small:
            choice[i] = SLIPPING * _direction(unknowns, i, forces[i])
        else:
            choice[i] = HELD
    found = _solution(K, d, unknowns, choice, forces)
    return found if _bears(K, d, unknowns, choice, found) else None


def _pivoted(K: Array, d: Array, unknowns: Unknowns, forces: Array, diagonal: Array) -> Array | None:
    """Change the choice by its own solution until it bears it; None where that does not terminate.

    A normal carries where ``λ - w/K_ii`` is positive, a tangent sticks where that is within its bound: Newton's method
    on the complementarity (Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2003), for forces too stiffly coupled for
    the sweeps.
    """
    seen: set[bytes] = set()
    for _ in range(PIVOTS):
        aim = forces - (product(K, forces) + d) / diagonal
        choice = np.zeros(len(unknowns), dtype=np.int64)
        for i in range(len(unknowns)):
            if unknowns.kind[i] == 0:
                choice[i] = HELD if aim[i] > 0.0 else FREE
            elif unknowns.drive[i] != 0.0 or abs(aim[i]) > unknowns.limit(i, aim):
                choice[i] = SLIPPING * _direction(unknowns, i, aim[i])
            else:
                choice[i] = HELD
        if choice.tobytes() in seen:
            return None
        seen.add(choice.tobytes())
        forces = _solution(K, d, unknowns, choice, forces)
        if _bears(K, d, unknowns, choice, forces):
            return forces
    return None


def _solution(K: Array, d: Array, unknowns: Unknowns, choice: npt.NDArray[np.int64], near: Array) -> Array:
    """Forces under which what is held stands still, those that are free are zero, friction that slips follows."""
    n = len(unknowns)
    carry: list[Array] = []
    offset = np.zeros(n)
    held = [i for i in range(n) if choice[i] == HELD and not _idle(unknowns, choice, i)]
    for i in held:
        unit = np.zeros(n)
        unit[i] = 1.0
        if unknowns.kind[i] == 0:
            for t in np.nonzero((unknowns.normal == i) & (unknowns.kind == 1) & (np.abs(choice) == SLIPPING))[0]:
                unit[t] = unknowns.bound[t] * np.sign(choice[t])
        carry.append(unit)
    for i in range(n):
        if unknowns.kind[i] == 1 and unknowns.normal[i] < 0 and abs(choice[i]) == SLIPPING:
            offset[i] = unknowns.bound[i] * np.sign(choice[i])
    if not held:
        return offset
    basis = np.array(carry).T
    start = least_squares(basis, near - offset, 1e-15)
    remaining = (product(K, product(basis, start) + offset) + d)[held]
    step = least_squares(product(K, basis)[held], -remaining, 1e-12)
    found: Array = product(basis, start + step) + offset
    return found


def _idle(unknowns: Unknowns, choice: npt.NDArray[np.int64], i: int) -> bool:
    """Whether `i` is a tangent of a contact that does not carry."""
    return bool(unknowns.kind[i] == 1 and unknowns.normal[i] >= 0 and choice[unknowns.normal[i]] == FREE)


def _bears(K: Array, d: Array, unknowns: Unknowns, choice: npt.NDArray[np.int64], found: Array) -> bool:
    """Whether forces obey every bound, and the answers to them every gap."""
    small = 1e-9 * (1.0 + np.abs(found).max(initial=0.0))
    left = product(K, found) + d
    reach = 1e-9 * (1.0 + np.abs(d).max(initial=0.0))
    for i in range(len(unknowns)):
        if unknowns.kind[i] == 0 and (found[i] < -small or left[i] < -reach):
            return False
        if unknowns.kind[i] == 1 and abs(found[i]) > unknowns.limit(i, found) + small:
            return False
        if choice[i] == HELD and not _idle(unknowns, choice, i) and abs(left[i]) > reach:
            return False
        if abs(choice[i]) == SLIPPING and unknowns.drive[i] == 0.0 and choice[i] * left[i] > reach:
            return False  # friction would push it on
    return True


def _direction(unknowns: Unknowns, i: int, force: float) -> int:
    """The sense of the force of a tangent that slips."""
    return int(-np.sign(unknowns.drive[i])) if unknowns.drive[i] != 0.0 else int(np.sign(force)) or 1
