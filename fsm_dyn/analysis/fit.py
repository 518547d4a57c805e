"""Parameters from a measured motion, by least squares, with intervals and with what the data cannot determine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student

from fsm_dyn.analysis.measured_motion import MeasuredMotion, read_measured
from fsm_dyn.analysis.study_variables import check_options
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.simulator import Simulator
from fsm_dyn.spec.values import parameter_values, units

STEP: Final = 1e-4  # of the differences, relative: with runs at RTOL they are off by some 1e-6
RTOL: Final = 1e-10
ATOL: Final = 1e-12
RANK: Final = 1e-5  # singular values below this part of the largest are those of the differences' error
SHARE: Final = 0.1  # components below this of a direction are not named
WEIGHTINGS: Final = 2  # fits in turn, each weighing the columns by the residuals of the one before
_ROUNDING: Final = 1e-12  # of a column's size, below which its residuals are not noise


@dataclass(frozen=True)
class Fit:
    """Parameters fitted to a measured motion.

    Attributes
    ----------
    values : mapping of str to float
        The parameters that fit best, SI.
    intervals : mapping of str to (float, float)
        95 % intervals from the covariance, SI; infinite where the data cannot determine a parameter.
    covariance : ndarray, shape (n, n)
        Of the values in their order, without the undetermined directions.
    undetermined : tuple of mapping of str to float
        Directions in which relative changes of the parameters do not change the motion measurably, of length 1: by the
        names of those that take part.  A single name is a parameter that the data cannot determine.
    residuals : mapping of str to float
        Root mean square of measured less computed, by column, SI.
    runs : int
    units : mapping of str to str
        Of parameters and columns; empty where the model has none.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    covariance: Array
    undetermined: tuple[Mapping[str, float], ...]
    residuals: Mapping[str, float]
    runs: int
    units: Mapping[str, str]

    def __str__(self) -> str:
        lines = []
        for name, value in self.values.items():
            lower, upper = self.intervals[name]
            known = f"{lower:.6g} to {upper:.6g}" if np.isfinite(lower) else "not determined"
            lines.append(f"{name} = {value:.6g} {self.units.get(name, '')} ({known})")
        for direction in self.undetermined:
            parts = ", ".join(f"{name} {share:+.2f}" for name, share in direction.items())
            lines.append(f"the data cannot determine: {parts}")
        return "\n".join(lines)


def fit(
    graph: ModeGraph,
    measured: str | Path,
    *,
    vary: Sequence[str] | Mapping[str, tuple[float | str, float | str]],
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> Fit:
    """Return the parameters with which runs follow a measured motion best.

    The sum of squares is minimised by the trust region of scipy's ``least_squares``, with central differences of whole
    runs: transitions may change in order and number.  Columns are weighed by their own residuals.  Intervals are those
    of Student's distribution with the covariance of the linearised problem, for noise that is independent from row to
    row.

    Parameters
    ----------
    graph : ModeGraph
    measured : str or Path
        A CSV file, :func:`fsm_dyn.analysis.measured_motion.read_measured`.
    vary : sequence of str, or mapping of str to (low, high)
        Scalar parameters of the model; with bounds, SI or texts with units.
    parameters : mapping, optional
        Values of parameters; for those varied where the search begins, by default the model's.
    options
        As for ``fsm_dyn.Simulator.run``; the end of a run is that of the measurement.

    Raises
    ------
    InputError
        The file or a parameter does not fit, or there are fewer measured values than parameters.
    RunError
        The run at the first values fails or ends before the measurement.
    TypeError
        There is no such option.
    """
    check_options(fit, options)
    search = _ResidualSearch(graph, tuple(vary), dict(parameters or {}), options, measured)
    lower, upper = search.bounds(vary)
    scale = np.where(search.first == 0.0, 1.0, np.abs(search.first))
    if np.any(search.first < lower) or np.any(search.first > upper):
        raise InputError("the search begins outside its bounds", remedy="give values within as `parameters`")
    search.start()
    weights = {name: float(np.nanstd(column)) or 1.0 for name, column in search.motion.columns.items()}
    sizes, point = dict(weights), search.first
    for _ in range(WEIGHTINGS if len(weights) > 1 else 1):
        search.weights = weights
        point, jacobian = search.least((lower, upper), point, scale)
        residuals = search.by_column(point)
        freedom = 1.0 - len(point) / search.count
        weights = {
            name: max(float(np.sqrt(np.mean(r**2) / freedom)), _ROUNDING * sizes[name]) for name, r in residuals.items()
        }
    noise = {name: weights[name] / search.weights[name] for name in weights}
    jacobian = jacobian / np.concatenate([np.full(len(r), noise[name]) for name, r in residuals.items()])[:, None]
    covariance, directions = _covariance(jacobian, scale)
    half = student.ppf(0.975, search.count - len(point)) * np.sqrt(np.diag(covariance))
    named = tuple(
        {name: float(x) for name, x in zip(search.names, direction, strict=True) if abs(x) > SHARE}
        for direction in directions
    )
    lost = {name for direction in named for name in direction}
    half = np.where([name in lost for name in search.names], np.inf, half)
    values = dict(zip(search.names, map(float, point), strict=True))
    intervals = {name: (values[name] - h, values[name] + h) for name, h in zip(values, map(float, half), strict=True)}
    rms = {name: float(np.sqrt(np.mean(r**2))) for name, r in residuals.items()}
    return Fit(values, intervals, covariance, named, rms, search.runs, units(graph.automaton.mechanism))


def _covariance(jacobian: Array, scale: Array) -> tuple[Array, Array]:
    """Return the covariance (n, n) for residuals with unit variance, and undetermined directions (k, n).

    In relative changes of the parameters a direction counts as undetermined if its singular value is that of rounding,
    or if a change by the whole of its parameters stays within the noise.
    """
    _, singular, directions = np.linalg.svd(jacobian * scale, full_matrices=False)
    lost = singular <= max(RANK * singular[0], 1.0)
    spread = directions[~lost].T / singular[~lost]
    largest = directions[np.arange(len(directions)), np.argmax(np.abs(directions), axis=1)]
    return np.outer(scale, scale) * (spread @ spread.T), (directions * np.sign(largest)[:, None])[lost]


class _ResidualSearch:
    """The residuals of runs against a measured motion."""

    def __init__(
        self,
        graph: ModeGraph,
        names: tuple[str, ...],
        parameters: dict[str, Any],
        options: Mapping[str, Any],
        measured: str | Path,
    ) -> None:
        mechanism = graph.automaton.mechanism
        if not names or len(set(names)) < len(names):
            raise InputError("a fit varies parameters, once each", found=", ".join(names) or "none")
        values = parameter_values(mechanism, parameters)
        for name in names:
            if not isinstance(values.get(name), float):
                scalars = [key for key, value in values.items() if isinstance(value, float)]
                raise InputError(f"'{name}' is no scalar parameter of '{graph.name}'", found=name,
                                 allowed=", ".join(scalars))  # fmt: skip
        self.mechanism, self.names, self.parameters = mechanism, names, parameters
        self.motion: MeasuredMotion = read_measured(measured, mechanism)
        self.kept = {name: ~np.isnan(column) for name, column in self.motion.columns.items()}
        self.count = int(sum(kept.sum() for kept in self.kept.values()))
        if self.count <= len(names):
            raise InputError("there are too few measured values", found=str(self.count), allowed=f"> {len(names)}")
        self.simulator = Simulator(graph)
        self.options = {"rtol": RTOL, "atol": ATOL, **options, "until": float(self.motion.t[-1])}
        self.first = np.array([values[name] for name in names], dtype=np.float64)
        self.weights: Mapping[str, float] = {}
        self.runs = 0

    def bounds(self, vary: Sequence[str] | Mapping[str, tuple[float | str, float | str]]) -> tuple[Array, Array]:
        """Return the least and the greatest values, SI; infinite where none are given."""
        ends: list[tuple[float, float]] = []
        for name in self.names:
            pair = vary[name] if isinstance(vary, Mapping) else (-np.inf, np.inf)
            low, high = (end if end in (-np.inf, np.inf) else self._number(name, end) for end in pair)
            if not low < high:
                raise InputError(f"the range of '{name}' is empty", found=f"{low} to {high}", allowed="least first")
            ends.append((float(low), float(high)))
        lower, upper = np.transpose(ends)
        return lower, upper

    def start(self) -> None:
        """Run at the first values, where a failure is an error."""
        run = self.simulator.run(parameters={**self.parameters, **self._named(self.first)}, **self.options)
        if run.t[-1] < self.motion.t[-1]:
            raise RunError(f"the run ends at {run.t[-1]:g} s, before the measurement does ({self.motion.t[-1]:g} s)")

    def least(self, bounds: tuple[Array, Array], first: Array, scale: Array) -> tuple[Array, Array]:
        """Return where the sum of squares is least, and the Jacobian of the residuals there.

        Raises
        ------
        RunError
            Runs with parameters next to those reached fail.
        """
        try:
            found = least_squares(
                self, first, jac="3-point", diff_step=[STEP] * len(first), x_scale=scale, bounds=bounds
            )
        except (ValueError, np.linalg.LinAlgError) as error:
            raise RunError(f"the fit met parameters with which runs fail: {error}; give bounds") from None
        return found.x, np.asarray(found.jac, dtype=np.float64)

    def __call__(self, point: Array) -> Array:
        """Return the weighed residuals; infinite where the run fails or ends early, which the trust region avoids."""
        try:
            found = self.by_column(point)
        except (InputError, RunError):
            return np.full(self.count, np.inf)
        return np.concatenate([residual / self.weights[name] for name, residual in found.items()])

    def by_column(self, point: Array) -> dict[str, Array]:
        """Return measured less computed, by column, SI."""
        self.runs += 1
        run = self.simulator.run(parameters={**self.parameters, **self._named(point)}, **self.options)
        computed = run.sample(self.motion.t)
        return {name: (column - computed[name])[self.kept[name]] for name, column in self.motion.columns.items()}

    def _named(self, point: Array) -> dict[str, float]:
        return dict(zip(self.names, map(float, point), strict=True))

    def _number(self, name: str, value: float | str) -> float:
        found = parameter_values(self.mechanism, {**self.parameters, name: value})[name]
        return float(np.ravel(found)[0])
