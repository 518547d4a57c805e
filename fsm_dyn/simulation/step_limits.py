"""Limiting the steps of scipy's implicit solvers from outside."""

from __future__ import annotations

from typing import Any


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
