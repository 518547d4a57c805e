"""Step lengths of scipy's implicit solvers, selected and limited from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import Rank

Floats = NDArray[np.float64]

_NODES: Final = (0.1550510257216822, 0.6449489742783178, 1.0)  # of Radau's method, as parts of a step
_CLOSEST: Final = 1e-5  # what is left of the rows at a node, at least
_ROUNDING: Final = 2.0 * np.finfo(float).eps  # of a step of unit turn, times the cube of what is left of the rows
_SHARE: Final = 3.0  # times rounding: the least absolute tolerance
_ASIDE: Final = 30.0  # times rounding, by which the iteration starts aside
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
    short = clear < length
    solver.max_step = min(longest, clear) if short else longest
    if hasattr(solver, "D"):  # its differences allow no longer step than they were made for
        return 0.0
    if short or solver.h_abs < length:
        solver.h_abs = min(solver.max_step, length)
        solver.LU_real = solver.LU_complex = None  # factored for another length
    return length if short else 0.0


def newton_tolerance(rtol: float) -> float:
    """Return what scipy's solvers ask of their simplified Newton iteration, in units of the tolerance."""
    return float(max(10 * np.finfo(float).eps / rtol, min(0.03, rtol**0.5)))


def rounding_of_step(rank: Floats, h: float) -> float:
    """Return what rounding near a change point may do to the state in a step of Radau's method, in units of the state.

    Rounding enters accelerations divided by the cube of what is left of the rows at the nearest node.

    Parameters
    ----------
    rank : float64 array
        ``RunState.rank``, as the rows were looked at before the step.
    h : float
        Length of the step (s).
    """
    if rank[Rank.LANDS] == 0.0:
        return 0.0
    distance = min(abs(time - node * h) for time in (rank[Rank.AHEAD], rank[Rank.BEHIND]) for node in _NODES)
    left = max(distance * rank[Rank.RATE], _CLOSEST)
    return (
        float(_ROUNDING * h * rank[Rank.RATE] / left / left / left) if np.isfinite(left) else 0.0
    )  # its cube may overflow


def ease_step(solver: Any, by: Floats) -> None:
    """Let the next step of Radau's method converge as far as rounding allows.

    The simplified Newton iteration stops where its moves no longer shrink fast enough. Where they are rounding from the
    second on, it would stop at any length of the step. So its start, the last step continued, is moved aside by more
    than rounding, and what is asked for is no less than rounding. Where rounding is larger than a tenth of the
    tolerance, it takes the place of the tolerance.

    Parameters
    ----------
    solver : scipy.integrate.Radau
        About to take a step, with the tolerances of the run.
    by : float64 array, shape (n,)
        What rounding may do to the state.
    """
    solver.atol = np.maximum(solver.atol, _SHARE * by)
    solver.newton_tol = max(solver.newton_tol, float(np.max(by / (solver.atol + solver.rtol * np.abs(solver.y)))))
    if solver.sol is not None:
        solver.sol = _Aside(solver.sol, _ASIDE * by)


class _Aside:
    """The dense output of a step, moved by a constant."""

    def __init__(self, along: Callable[[Floats], Floats], by: Floats) -> None:
        self.along, self.by = along, by

    def __call__(self, t: Floats) -> Floats:
        """Return the states at times, shape (n, m)."""
        return self.along(t) + self.by[:, None]


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
