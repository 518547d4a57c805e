"""Errors of the quantities of a run, as far as its tolerances determine them: within them a margin is no verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.results.arrays import FloatArray, IntArray
from fsm_dyn.results.samples import Samples
from fsm_dyn.simulation.numerics import Numerics

_PROBE: Final = 1e3  # how many times its error a state is moved, to find what that changes
_ROUNDING: Final = 8.0 * np.finfo(np.float64).eps


def state_errors(numerics: Numerics, x: FloatArray, n_q: int) -> FloatArray:
    """Return the errors of states (n, n_x): the tolerance of a step, or of gaps and speeds that count as zero; SI.

    Parameters
    ----------
    numerics : Numerics
    x : ndarray, shape (n, n_x)
        Coordinates and speeds, SI.
    n_q : int
        Number of coordinates.
    """
    tolerances = numerics.tolerances
    scales = tolerances.scales
    zero = np.full(x.shape[1], (tolerances.speed or 0.0) * scales.time / scales.length)
    zero[:n_q] = (tolerances.gap or 0.0) / scales.length
    return np.maximum(numerics.rtol * np.abs(x) + numerics.atol, zero * numerics.states)


def derived_errors(
    rows_at: Callable[[IntArray], Samples], rows: IntArray, sizes: FloatArray, quantity: Callable[[Samples], FloatArray]
) -> FloatArray:
    """Return the errors of what the state determines: those of all states, times what they change in it; (n,).

    Parameters
    ----------
    rows_at : callable
        Returns rows of the runs, by their numbers, as samples.
    rows : ndarray of int, shape (n,)
    sizes : ndarray, shape (n, n_x)
        Errors of the states.
    quantity : callable
        Returns the quantity at samples.
    """
    n, n_x = sizes.shape
    samples = rows_at(np.repeat(rows, n_x + 1))
    moved = samples.x.reshape(n, n_x + 1, n_x).copy()
    moved[:, 1:] += _PROBE * sizes[:, None, :] * np.eye(n_x)
    values = quantity(replace(samples, x=moved.reshape(-1, n_x))).reshape(n, n_x + 1)
    error: FloatArray = np.abs(values[:, 1:] - values[:, :1]).sum(axis=1) / _PROBE + _ROUNDING * np.abs(values[:, 0])
    return error
