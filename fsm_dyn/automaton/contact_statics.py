"""Forces of many contacts at once for one displacement: a complementarity problem solved by relaxation.

For forces ``λ`` and answers ``w = K λ + d`` every normal obeys ``0 ≤ λ_n ⊥ w_n ≥ 0`` and every tangent
``|λ_t| ≤ bound``, with ``w_t = 0`` unless the bound is reached (docs/theory.md, "Statics").  Projected Gauss-Seidel
sweeps find which contacts carry and which stick; the linear system of that choice then gives the digits.  Redundant
contacts make K singular and do no harm.  Moreau, *Some numerical methods in multibody dynamics*, 1999, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SWEEPS = 400
SETTLED = 1e-13
INFINITE = 1e9  # times the normal force: what a contact of infinite friction may bear


@dataclass(frozen=True)
class Unknowns:
    """Which unknown is what.

    ``kind`` 0: normal, 1: tangent; ``normal`` the place of a tangent's normal force (-1: the bound is a force of its
    own); ``bound`` the coefficient or the force; ``drive`` the sign of a slip that goes on whatever the forces, else 0.
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
    """
    forces = guess.copy()
    diagonal = np.maximum(np.diag(K), 1e-14 * max(float(np.abs(K).max(initial=0.0)), 1e-300))
    for _ in range(SWEEPS):
        change = 0.0
        for i in range(len(unknowns)):
            new = forces[i] - float(K[i] @ forces + d[i]) / diagonal[i]
            new = _admitted(unknowns, i, new, forces)
            change = max(change, abs(new - forces[i]))
            forces[i] = new
        if change <= SETTLED * (1.0 + np.abs(forces).max(initial=0.0)):
            break
    polished = _polished(K, d, unknowns, forces)
    return forces if polished is None else polished


def _admitted(unknowns: Unknowns, i: int, value: float, forces: Array) -> float:
    if unknowns.kind[i] == 0:
        return max(value, 0.0)
    limit = unknowns.limit(i, forces)
    if unknowns.drive[i] != 0.0:
        return -float(unknowns.drive[i]) * limit
    return min(max(value, -limit), limit)


def _polished(K: Array, d: Array, unknowns: Unknowns, forces: Array) -> Array | None:
    """Solve the equations of the choice that the sweeps found; None if the choice does not bear it."""
    n = len(unknowns)
    size = 1.0 + np.abs(forces).max(initial=0.0)
    small = 1e-9 * size
    carry: list[Array] = []
    held: list[int] = []
    offset = np.zeros(n)
    for i in range(n):
        unit = np.zeros(n)
        if unknowns.kind[i] == 0:
            if forces[i] <= 0.0:
                continue
            unit[i] = 1.0
            for t in range(n):  # friction at its limit follows its normal
                if unknowns.normal[t] == i and unknowns.kind[t] == 1 and _slips(unknowns, t, forces, small):
                    unit[t] = unknowns.bound[t] * _direction(unknowns, t, forces)
        elif _slips(unknowns, i, forces, small):
            if unknowns.normal[i] < 0:
                offset[i] = unknowns.bound[i] * _direction(unknowns, i, forces)
            continue
        else:
            unit[i] = 1.0
        carry.append(unit)
        held.append(i)
    if not held:
        return offset
    basis = np.array(carry).T
    start = np.linalg.lstsq(basis, forces - offset, rcond=None)[0]
    remaining = (K @ (basis @ start + offset) + d)[held]
    step = np.linalg.lstsq((K @ basis)[held], -remaining, rcond=1e-12)[0]
    found: Array = basis @ (start + step) + offset
    for i in range(n):
        if unknowns.kind[i] == 0 and found[i] < -small:
            return None
        if unknowns.kind[i] == 1 and abs(found[i]) > unknowns.limit(i, found) + small:
            return None
    left = K @ found + d
    reach = 1e-9 * (1.0 + np.abs(d).max(initial=0.0))
    normals = unknowns.kind == 0
    return found if np.all(left[normals] >= -reach) and np.abs(left[held]).max() <= reach else None


def _slips(unknowns: Unknowns, i: int, forces: Array, small: float) -> bool:
    return bool(unknowns.drive[i] != 0.0 or abs(forces[i]) >= unknowns.limit(i, forces) - small)


def _direction(unknowns: Unknowns, i: int, forces: Array) -> float:
    return float(-unknowns.drive[i]) if unknowns.drive[i] != 0.0 else float(np.sign(forces[i]))
