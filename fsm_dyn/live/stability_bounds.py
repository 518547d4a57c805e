"""Bounds on parameters of a live run: what the steps of a tick can carry.

A step of length ``h`` multiplies a motion ``exp(l t)`` by the stability function ``R(l h)`` of the method; where
``l h`` is beyond the interval in which ``|R| <= 1``, rounding grows to any size within some ticks.  The eigenvalues
``l`` are those of the modes linearised about the present state, with the couplers closed.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.simulation.integrators import Tableau

Floats = NDArray[np.float64]

_DIFFERENCE: Final = 1e-6  # of a coordinate or speed, relative to the larger of it and 1
_GROWS: Final = 1.01  # times the largest eigenvalue of the values before: less is rounding
_MOST: Final = 10.0  # beyond the interval of every method here
_HALVINGS: Final = 60
RATES: Final = ctypes.CFUNCTYPE(None, ctypes.c_double, *3 * [ctypes.POINTER(ctypes.c_double)])


def stability_interval(method: Tableau) -> float:
    """Return the length of the interval of the negative real axis on which a method is stable."""
    n = len(method.b)
    a = np.zeros((n, n))
    for i, row in enumerate(method.a):
        a[i, : len(row)] = [float(value) for value in row]
    b = np.array([float(value) for value in method.b])

    def factor(z: float) -> float:
        return abs(1.0 - z * float(b @ np.linalg.solve(np.eye(n) + z * a, np.ones(n))))

    inside, outside = 1.0, _MOST
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if factor(middle) <= 1.0 else (inside, middle)
    return inside


class StabilityBounds:
    """Bounds on the parameters of a coupled model.

    Parameters
    ----------
    rates : sequence of int
        Addresses of the kernels of the modes, which give the rates of the state.
    x : ndarray, shape (n_x,)
        State about which the modes are linearised.
    step : float
        Of the integrator, s of model time.
    method : Tableau
    """

    def __init__(self, rates: Sequence[int], x: Floats, step: float, method: Tableau) -> None:
        self._rates, self._x, self._step = [RATES(address) for address in rates], x.copy(), step
        self._interval = stability_interval(method)

    def check(self, context: Floats, changes: Mapping[str, tuple[int, float]]) -> None:
        """Raise InputError where a parameter makes a mode too stiff for the steps of a tick.

        Parameters
        ----------
        context : ndarray, shape (n_c,)
            With the values before, and the couplers closed.
        changes : mapping
            Index in the context and new value of each parameter.
        """
        now = context.copy()
        for name, (index, value) in changes.items():
            before = self._largest(now)
            allowed = [max(self._interval, _GROWS * self._step * most) / self._step for most in before]
            usual, now[index] = float(now[index]), value
            if self._within(now, allowed):
                continue
            raise InputError(
                f"'{name}' is more than the steps of a tick can carry",
                found=f"{value:g}",
                allowed=f"about {self._bound(now, index, usual, value, allowed):.3g} at steps of {self._step:g} s",
                remedy="shorter steps carry more: substeps, or a shorter period",
            )

    def _bound(self, context: Floats, index: int, usual: float, value: float, allowed: Sequence[float]) -> float:
        """Return the value farthest from the usual one, on the way to the new one, that can be carried."""
        here = context.copy()
        logarithmic = usual > 0.0 and value > 0.0
        inside, outside = (math.log(usual), math.log(value)) if logarithmic else (usual, value)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            here[index] = math.exp(middle) if logarithmic else middle
            inside, outside = (middle, outside) if self._within(here, allowed) else (inside, middle)
        return math.exp(inside) if logarithmic else inside

    def _within(self, context: Floats, allowed: Sequence[float]) -> bool:
        """Whether the largest eigenvalue of every mode is allowed, 1/s."""
        return all(most <= limit for most, limit in zip(self._largest(context), allowed, strict=True))

    def _largest(self, context: Floats) -> list[float]:
        """Return the absolute value of the largest eigenvalue of each mode, 1/s; 0 for one that has no rates here."""
        found = []
        for rates in self._rates:
            jacobian = self._jacobian(rates, context)
            found.append(float(np.abs(np.linalg.eigvals(jacobian)).max()) if np.isfinite(jacobian).all() else 0.0)
        return found

    def _jacobian(self, rates: Any, context: Floats) -> Floats:
        """Return the derivatives of the rates of the state by the state."""
        n = len(self._x)
        columns, ends = np.empty((n, n)), np.empty((2, n))
        for i in range(n):
            size = _DIFFERENCE * max(1.0, abs(float(self._x[i])))
            for k, sign in enumerate((1.0, -1.0)):
                x = self._x.copy()
                x[i] += sign * size
                rates(0.0, *(array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (x, context, ends[k])))
            with np.errstate(invalid="ignore", over="ignore"):  # what is not finite marks a mode without rates here
                columns[:, i] = (ends[0] - ends[1]) / (2.0 * size)
        return columns
