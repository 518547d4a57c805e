"""The variational equation along a run: how neighbouring motions move within the modes.

``Y' = J(t) Y + B(t)`` with the exact Jacobian of the mode, evaluated on the run's own dense output, is solved by
Gauss' method of three stages (order six) on halves of the run's steps; being linear, it needs no iteration
(docs/theory.md, "Sensitivities").  Hairer, Lubich, Wanner, *Geometric Numerical Integration*, II.1.3.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.results.dense import quartic
from fsm_dyn.simulation.run_arrays import RunArrays

HALVES: Final = 2
CHUNK: Final = 1000  # steps evaluated at once
_ROOT: Final = np.sqrt(15.0)
NODES: Final = np.array([0.5 - _ROOT / 10.0, 0.5, 0.5 + _ROOT / 10.0])
WEIGHTS: Final = np.array([5.0, 8.0, 5.0]) / 18.0
STAGES: Final = np.array(
    [
        [5.0 / 36.0, 2.0 / 9.0 - _ROOT / 15.0, 5.0 / 36.0 - _ROOT / 30.0],
        [5.0 / 36.0 + _ROOT / 24.0, 2.0 / 9.0, 5.0 / 36.0 - _ROOT / 24.0],
        [5.0 / 36.0 + _ROOT / 30.0, 2.0 / 9.0 + _ROOT / 15.0, 5.0 / 36.0],
    ]
)


def propagate(setting: AnalysisSetup, raw: RunArrays, first: int, last: int, Y: Array) -> Array:
    """Carry variations from row ``first`` of a run to row ``last``, between which the mode does not change.

    Parameters
    ----------
    raw : RunArrays
        The run.
    last : int
        Row at which the variations are wanted.
    Y : ndarray, shape (n_z, k)
        Variations at the first row: of the state, the memory and the parameters of the setting.

    Returns
    -------
    ndarray, shape (n_z, k)
    """
    n, Y = raw.x.shape[1], Y.copy()
    for begin in range(first, last, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, last))
        rows = rows[raw.t[rows + 1] > raw.t[rows]]
        if len(rows):
            for R, r in zip(*_steps(setting, raw, rows), strict=True):
                Y[:n] = R @ Y[:n] + r @ Y[n:]
    return Y


def _steps(setting: AnalysisSetup, raw: RunArrays, rows: npt.NDArray[np.signedinteger[Any]]) -> tuple[Array, Array]:
    """Propagators (2 m, n_x, n_x) and forcings (2 m, n_x, n_m) of the halves of the steps that begin at ``rows``."""
    n, n_m = raw.x.shape[1], len(setting.constants)
    places = ((np.arange(HALVES)[:, None] + NODES[None, :]) / HALVES).ravel()
    step = raw.t[rows + 1] - raw.t[rows]
    index = np.repeat(rows, len(places))
    theta = np.tile(places, len(rows))
    h = np.repeat(step, len(places))
    times = raw.t[index] + theta * h
    x = quartic(theta, h, raw.x[index], raw.x_dot[index], raw.x_mid[index + 1], raw.x[index + 1], raw.x_dot[index + 1])
    context = setting.context(raw.held[index])
    w = setting.drive.names
    if w:
        n_p = len(setting.vector)
        context[:, n_p : n_p + 3 * len(w)] = setting.drive(times, context[0])
    J, B = np.empty((len(index), n, n)), np.empty((len(index), n, n_m))
    # the row that ends a step carries the mode of the step, in the chart that was used
    for number in np.unique(raw.mode[index + 1]):
        here = raw.mode[index + 1] == number
        values = setting.derivatives(int(number)).flow.evaluate(times[here], x[here], context[here])
        J[here], B[here] = values["by_state"], values["by_parameters"]
    m = len(rows) * HALVES
    part = np.repeat(step, HALVES) / HALVES
    stages = J.reshape(m, 3, n, 1, n)
    system = -part[:, None, None, None, None] * STAGES[None, :, None, :, None] * stages
    matrix = system.reshape(m, 3 * n, 3 * n) + np.eye(3 * n)
    right = np.concatenate([J, B], axis=2).reshape(m, 3 * n, n + n_m)
    slopes = np.linalg.solve(matrix, right).reshape(m, 3, n, n + n_m)
    total = part[:, None, None] * np.einsum("s,msij->mij", WEIGHTS, slopes)
    return total[:, :, :n] + np.eye(n), total[:, :, n:]
