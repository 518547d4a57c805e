"""The energy remedy of impacts: how much of the rebound may be kept (docs/theory.md, "Impacts")."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import lean

ROUNDING: Final = 1e-15


@lean
def gains_energy(
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    speed: NDArray[np.float64],
    base_work: float,
    work: NDArray[np.float64],
) -> bool:
    """Whether an impact raises the energy, seen from the moving constraints; arguments as for :func:`kept_part`."""
    gain, size = base_work, abs(base_work)
    for r in range(forces.shape[0]):
        gain += forces[r] * (answers[r] + speed[r] + work[r])
        size += abs(forces[r]) * (abs(answers[r]) + abs(speed[r]) + abs(work[r]))
    return bool(gain > ROUNDING * size)


@lean
def kept_part(
    plastic: NDArray[np.float64],
    plastic_answers: NDArray[np.float64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    speed: NDArray[np.float64],
    base_work: float,
    work: NDArray[np.float64],
) -> float:
    """Return the largest β ≤ 1 at which ``plastic + β (forces - plastic)`` gains no energy.

    The energy gained, seen from the moving constraints, is ``½ Σ Λ (v⁺ + v⁻)`` over all rows: a quadratic in β that
    is not positive at 0.

    Parameters
    ----------
    plastic, plastic_answers, forces, answers : (n,)
        Impulses and speeds after of the two solutions.
    speed : (n,)
        Speeds of the rows before.
    base_work : float, work : (n,)
        Twice the work of the bilateral rows: without contact impulses, and per unit of each.
    """
    if not gains_energy(forces, answers, speed, base_work, work):
        return 1.0
    constant, linear, square = base_work, 0.0, 0.0
    for r in range(plastic.shape[0]):  # gain(β) = Σ (P + βD)(V + βE), P and V of the plastic solution
        step, rise = forces[r] - plastic[r], answers[r] - plastic_answers[r]
        total = plastic_answers[r] + speed[r] + work[r]
        constant += plastic[r] * total
        linear += step * total + plastic[r] * rise
        square += step * rise
    root = linear * linear - 4.0 * square * constant
    if constant >= 0.0 or not root >= 0.0:
        return 0.0
    # the positive root, without taking near equals from each other
    if linear > 0.0:
        beta = -2.0 * constant / (linear + np.sqrt(root))
    elif square > 0.0:
        beta = (-linear + np.sqrt(root)) / (2.0 * square)
    else:
        return 1.0
    return float(min(1.0, max(0.0, beta)))
