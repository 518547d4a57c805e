"""The variational equation along a run: how neighbouring motions move within the modes.

``Y' = J(t) Y + B(t)`` with the exact Jacobian of the mode, evaluated on the run's own dense output, is solved by
Gauss' method of three stages (order six) on halves of the run's steps; being linear, it needs no iteration
(docs/theory.md, "Sensitivities").  Hairer, Lubich, Wanner, *Geometric Numerical Integration*, II.1.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.flow_switches import FlowSwitch, flow_switches
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

    Steps in which a choice of the state switches are cut there, and the variations jump with the flow.

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

    Raises
    ------
    RunError
        A switch of the flow cannot be differentiated.
    """
    n, Y = raw.x.shape[1], Y.copy()
    switches = flow_switches(setting, raw, first, last) if last > first else []
    for begin in range(first, last, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, last))
        rows = rows[raw.t[rows + 1] > raw.t[rows]]
        own = [item for item in switches if begin <= item.row < begin + CHUNK]
        parts = _parts(rows, own)
        if len(rows):
            jumps = {(item.row, item.fraction): item for item in own}
            for row, end, R, r in zip(parts.row, parts.end, *_propagators(setting, raw, parts), strict=True):
                Y[:n] = R @ Y[:n] + r @ Y[n:]
                if (int(row), float(end)) in jumps:
                    item = jumps[int(row), float(end)]
                    Y[:n] += np.outer(item.jump, item.delay @ Y)
    return Y


class _StepParts(NamedTuple):
    """Parts of steps: the rows that begin the steps, and the fractions of them from which to which each goes."""

    row: npt.NDArray[np.signedinteger[Any]]
    begin: Array
    end: Array


def _parts(rows: npt.NDArray[np.signedinteger[Any]], switches: Sequence[FlowSwitch]) -> _StepParts:
    """Return the halves of steps, cut at switches of the flow."""
    row = np.concatenate([np.repeat(rows, HALVES), np.array([item.row for item in switches], dtype=rows.dtype)])
    end = np.concatenate([np.tile((np.arange(HALVES) + 1.0) / HALVES, len(rows)), [item.fraction for item in switches]])
    order = np.lexsort([end, row])
    row, end = row[order], end[order]
    begin = np.where(np.append(True, row[1:] != row[:-1]), 0.0, np.append(0.0, end[:-1])) if len(row) else end
    return _StepParts(row, begin, end)


def _propagators(setting: AnalysisSetup, raw: RunArrays, parts: _StepParts) -> tuple[Array, Array]:
    """Propagators (m, n_x, n_x) and forcings (m, n_x, n_m) of parts of steps."""
    n, n_m, m = raw.x.shape[1], len(setting.constants), len(parts.row)
    index, length = np.repeat(parts.row, len(NODES)), parts.end - parts.begin
    theta = (parts.begin[:, None] + length[:, None] * NODES).ravel()
    step = raw.t[parts.row + 1] - raw.t[parts.row]
    h = np.repeat(step, len(NODES))
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
    part = step * length
    stages = J.reshape(m, 3, n, 1, n)
    system = -part[:, None, None, None, None] * STAGES[None, :, None, :, None] * stages
    matrix = system.reshape(m, 3 * n, 3 * n) + np.eye(3 * n)
    right = np.concatenate([J, B], axis=2).reshape(m, 3 * n, n + n_m)
    slopes = np.linalg.solve(matrix, right).reshape(m, 3, n, n + n_m)
    total = part[:, None, None] * np.einsum("s,msij->mij", WEIGHTS, slopes)
    return total[:, :, :n] + np.eye(n), total[:, :, n:]
