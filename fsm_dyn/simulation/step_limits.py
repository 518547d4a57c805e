"""Step lengths of scipy's implicit solvers, selected and limited from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHORT: Final = 1e-6  # first step where nothing tells its length, in the mechanism's own unit of time


def limit_step(solver: Any, length: float, clear: float, longest: float) -> float:
    """Let the next step of a solver keep clear of a change point.

    Parameters
    ----------
    solver : scipy.integrate.Radau or BDF
        About to take a step.
    length : float
        The step that it would take otherwise (s).
    clear : float
        The longest one that keeps clear (s).
    longest : float
        The longest step of the run (s).

    Returns
    -------
    float
        ``length`` if it was not allowed, to be asked for again with the step after; 0 otherwise.
    """
    if clear >= length:
        solver.max_step = longest
        return 0.0
    solver.max_step = min(longest, clear)
    if not hasattr(solver, "D"):  # bdf changes its differences with the step and makes it shorter by itself
        solver.h_abs = solver.max_step
        solver.LU_real = solver.LU_complex = None  # factored for another length
    return length


def first_step(
    derivative: Callable[[float, Floats], Floats],
    span: tuple[float, float],
    x: Floats,
    accuracy: tuple[float, Floats],
    order: int,
    unit: float,
) -> float:
    """Return the length of a first step (s).

    That of scipy, but in the mechanism's own unit of time: Hairer, Norsett, Wanner, *Solving Ordinary Differential
    Equations I*, section II.4.

    Parameters
    ----------
    derivative : callable
        x_dot at a time (s) and a state, shape (n,).
    span : (float, float)
        Where the step begins, and where it has to end at the latest (s).
    x : float64 array, shape (n,)
    accuracy : (float, float64 array of shape (n,))
        Relative and absolute tolerance.
    order : int
        Of the estimate of the error.
    unit : float
        The mechanism's own unit of time (s).
    """
    t, longest = span[0], span[1] - span[0]
    scale = accuracy[1] + np.abs(x) * accuracy[0]
    x_dot = derivative(t, x)
    d0, d1 = _mean(x / scale), _mean(x_dot / scale)
    h0 = min(SHORT * unit if d0 < 1e-5 or d1 * unit < 1e-5 else 0.01 * d0 / d1, longest)
    d2 = _mean((derivative(t + h0, x + h0 * x_dot) - x_dot) / scale) / h0
    steepest = max(d1 * unit, d2 * unit * unit)
    h1 = max(SHORT * unit, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** (1 / (order + 1)) * unit
    return min(100 * h0, h1, longest)


def _mean(values: Floats) -> float:
    return float(np.linalg.norm(values) / values.size**0.5)
