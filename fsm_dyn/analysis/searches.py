"""Searches over parameters: of a measured motion, with intervals; of the worst violation within tolerances."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import Bounds, differential_evolution, least_squares, minimize
from scipy.stats import t as student

from fsm_dyn.analysis.judged_runs import JudgedRun, judged_runs
from fsm_dyn.analysis.study_variables import (
    Distribution,
    VariedQuantity,
    check_options,
    check_quantities,
    pin_programs_of,
    run_arguments,
    varied_quantities,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, Location, ModelError, RunError, did_you_mean
from fsm_dyn.core.files import read_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import parse_unit
from fsm_dyn.language.values import parameter_values, units
from fsm_dyn.run.judgement import Judgement, Verdict
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.runtime.abi import Status

# -- The worst violation of a requirement within the tolerances ------------------------------------------------


SIGMAS: Final = 3.0  # half the width of the box along a parameter with a normal distribution, standard deviations
_GLOBAL: Final = 0.75  # share of the runs for the search of the whole box
_ENDED: Final = tuple(OUTCOMES[code].name for code in (Status.DONE, Status.STOPPED))
_NO_MARGIN: Final = 1e30  # objective of an undecided run: above every margin, and finite


@dataclass(frozen=True)
class ViolatingRun:
    """A run with a violation of the requirement.

    Attributes
    ----------
    values : mapping of str to float
        The parameters varied, SI.
    run : Trajectory
        ``run.save`` writes it.
    judgement : Judgement
        Margin, deciding time, and the transitions before it (``chain``).
    """

    values: Mapping[str, float]
    run: Trajectory
    judgement: Judgement


@dataclass(frozen=True)
class WorstCase:
    """Result of a search for violations of a requirement. It may refute the requirement; it proves nothing.

    Attributes
    ----------
    requirement : str
    box : mapping of str to (float, float)
        Least and greatest value of each varied parameter, SI.
    runs : int
        Number of runs: decided ones, ``undecided`` ones, and ``failed`` ones without a start or an end.
    undecided, failed : int
    values : mapping of str to float
        The parameters of the smallest margin, SI; empty if no run was decided.
    margin : float
        The smallest margin, in ``unit``; nan if no run was decided.
    unit : str
    violations : tuple of ViolatingRun
        The smallest margin first.
    """

    requirement: str
    box: Mapping[str, tuple[float, float]]
    runs: int
    undecided: int
    failed: int
    values: Mapping[str, float]
    margin: float
    unit: str
    violations: tuple[ViolatingRun, ...]

    def __str__(self) -> str:
        if self.violations:
            verdict = f"refuted in {len(self.violations)} of {self.runs} runs"
        else:
            verdict = f"not refuted in {self.runs} runs"
        apart = f" ({self.undecided} undecided, {self.failed} failed)" if self.undecided or self.failed else ""
        return f"{self.requirement}: {verdict}{apart}"


@typed
def worst_case(
    graph: ModeGraph,
    requirement: str,
    *,
    vary: Mapping[str, Distribution] | None = None,
    runs: int = 256,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> WorstCase:
    """Search a box of parameters for the smallest margin of a requirement.

    The whole box is searched by differential evolution (Storn and Price 1997), from the nominal values and a Sobol'
    sequence, then the vicinity of the smallest margin by the method of Nelder and Mead (1965) within the box.

    Parameters
    ----------
    graph : ModeGraph
    requirement : str
        A name among the model's requirements.
    vary : mapping, optional
        Least and greatest values, SI or texts with units, or distributions, as for
        :func:`fsm_dyn.analysis.study_variables.varied_quantities`, of parameters, initial values, inputs and
        amplitudes; by default the model's tolerances.  Of a normal distribution the box has ``SIGMAS`` standard
        deviations to both sides.
    runs : int
        Largest number of runs; fewer if the search converges.
    seed : int
        The same seed makes the same runs.
    progress : callable, optional
        Called with the number of runs made and ``runs``.
    options
        As for ``fsm_dyn.Simulator.run``; ``parameters`` are the centre of the box.

    Returns
    -------
    WorstCase
        The smallest margin found, its parameters, and the violations.

    Raises
    ------
    InputError
        The requirement or a parameter is unknown, a range is empty, or there are no varied quantities.
    TypeError
        There is no such option.
    """
    check_options(worst_case, options)
    known = list(graph.automaton.mechanism.requirements)
    if requirement not in known:
        raise InputError(
            f"'{graph.name}' has no requirement '{requirement}'",
            found=requirement,
            allowed=", ".join(known) or "none: the model has no section `requirements`",
            remedy=did_you_mean(requirement, known),
        )
    if runs < 1:
        raise InputError("a search needs runs", found=str(runs), allowed="1 or more")
    parameters = dict(options.pop("parameters", None) or {})
    shared = {**options, "parameters": parameters}
    varied = varied_quantities(graph, vary, shared, tolerances=vary is None)
    box = _box(varied)
    search = _MarginSearch(graph, requirement, tuple(box), runs, shared, progress)
    nominal = parameter_values(graph.automaton.mechanism, parameters)
    first = [float(np.ravel(nominal.get(name, varied[name].nominal))[0]) for name in box]
    _minimise(search, Bounds(*np.transpose(list(box.values()))), np.array(first), seed)
    unit = search.unit()
    violations = tuple(sorted(search.violations, key=lambda item: item.judgement.margin))
    return WorstCase(
        requirement, box, search.count, search.undecided, search.failed, search.values, search.margin, unit, violations
    )


def _box(varied: Mapping[str, VariedQuantity]) -> dict[str, tuple[float, float]]:
    """Return the least and greatest values of the varied quantities, SI."""
    box: dict[str, tuple[float, float]] = {}
    for name, item in varied.items():
        half = SIGMAS * item.deviation.sigma
        lower, upper = (-half, half) if half else (item.deviation.lower, item.deviation.upper)
        if lower < upper:
            box[name] = item.nominal + lower, item.nominal + upper
    if not box:
        raise InputError("there is nothing to vary", remedy="name ranges, or write tolerances: `m: 4 kg +- 0.1 kg`")
    return box


class _RunsSpentError(Exception):
    """The search has made the runs it may make."""


class _MarginSearch:
    """The objective of the search: runs and judges the model, and keeps the results."""

    def __init__(
        self,
        graph: ModeGraph,
        requirement: str,
        names: tuple[str, ...],
        runs: int,
        options: Mapping[str, Any],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.simulator, self.requirement, self.names = Simulator(graph), requirement, names
        self.runs, self.limit, self.options, self.progress = runs, runs, options, progress
        self.count = self.undecided = self.failed = 0
        self.judged = {"requirements": (requirement,), "outputs": (), "times": np.empty(0), "run": options}
        self.margin = float("nan")
        self.values: dict[str, float] = {}
        self.violations: list[ViolatingRun] = []

    def __call__(self, point: Floats) -> float:
        """Return the margin at a point of the box; NO_MARGIN if the run was undecided."""
        return float(self.of_several(point[:, None])[0])

    def of_several(self, points: Floats) -> Floats:
        """Return the margins at points, the columns of an array."""
        allowed = points[:, : self.limit - self.count].T
        margins = self._noted([dict(zip(self.names, map(float, point), strict=True)) for point in allowed])
        if len(margins) < points.shape[1]:
            raise _RunsSpentError
        return np.array(margins)

    def _noted(self, cases: list[dict[str, float]]) -> list[float]:
        """Return the margins of some runs; several are made together, and violating ones repeated individually."""
        found: list[float] = []
        runs: Sequence[JudgedRun | None] = [None] * len(cases)
        if len(cases) > 1:
            runs = judged_runs(self.simulator, self.judged, cases)
        for values, judged in zip(cases, runs, strict=True):
            self.count += 1
            if judged is None or judged.verdicts[self.requirement] == "violated":
                found.append(self._margin(values))
            else:
                margin = judged.margins[self.requirement]
                found.append(self._decided(values, judged.verdicts[self.requirement], margin, judged.outcome in _ENDED))
            if self.progress is not None:
                self.progress(self.count, self.runs)
        return found

    def _decided(self, values: dict[str, float], verdict: Verdict, margin: float, ended: bool) -> float:
        """Note a run; return the objective."""
        if verdict == "undecided":
            self.undecided += ended
            self.failed += not ended
            return _NO_MARGIN
        if not margin >= self.margin:
            self.margin, self.values = margin, values
        return float(np.clip(margin, -_NO_MARGIN, _NO_MARGIN))

    def _margin(self, values: dict[str, float]) -> float:
        try:
            arguments = run_arguments(self.simulator.graph, self.options, values)
            run = self.simulator.run(on_failure="return", **arguments)
        except (InputError, RunError):
            self.failed += 1
            return _NO_MARGIN
        judgement = run.judge()[self.requirement]
        if judgement.verdict == "violated":
            self.violations.append(ViolatingRun(values, run, judgement))
        return self._decided(values, judgement.verdict, judgement.margin, run.outcome.name in _ENDED)

    def unit(self) -> str:
        """Return the unit of the margins; empty if no run was decided."""
        if not self.values:
            return ""
        if self.violations:
            return self.violations[0].judgement.unit
        arguments = run_arguments(self.simulator.graph, self.options, self.values)
        return self.simulator.run(on_failure="return", **arguments).judge()[self.requirement].unit


def _minimise(search: _MarginSearch, bounds: Bounds, first: Floats, seed: int) -> None:
    """Search the whole box, then the vicinity of the smallest margin, until the runs are spent."""
    search.limit = max(1, int(_GLOBAL * search.runs))
    start = np.clip(first, bounds.lb, bounds.ub)
    population: Any = search.of_several  # the stubs know no objective of several points
    with suppress(_RunsSpentError):
        differential_evolution(
            population, bounds, rng=np.random.default_rng(seed), x0=start, init="sobol", polish=False, popsize=6,
            vectorized=True, updating="deferred",
        )  # fmt: skip
    search.limit = search.runs
    if not search.values:
        return
    best = np.array(list(search.values.values()))
    with suppress(_RunsSpentError):
        minimize(search, best, method="Nelder-Mead", bounds=bounds)


# -- Parameters from a measured motion -------------------------------------------------------------------------


# -- Measured motions: a CSV file with a time column and columns of the model --------------------------------

TIME: Final = ("t", "time")
LARGEST_FILE = 2**28  # bytes
_HEADING: Final = re.compile(r"\s*([A-Za-z]\w*|pin\.[\w.]+)\s*(?:\[([^\]]*)\])?\s*")


@dataclass(frozen=True)
class MeasuredMotion:
    """Measured motion: ``t`` (n,), s, increasing; ``columns`` by name, (n,) each, SI, nan for an empty cell."""

    t: Floats
    columns: Mapping[str, Floats]


def read_measured(path: str | Path, graph: ModeGraph) -> MeasuredMotion:
    """Read a CSV file whose first line names its columns.

    The time has the name ``t`` or ``time``, the others are coordinates, speeds or outputs of the model, or forces in
    its connections, ``pin.<name>.force_x``; a column ``mode`` is ignored. A unit may follow in brackets, ``x [mm]``;
    without one values are in SI units. ``path``: a table of comma-separated values; ``graph``: gives the known names of
    columns, and their units. Raises InputError: the file cannot be read, or a heading or cell does not fit, with file
    and line.
    """
    file = Path(path)
    data = read_file(file, LARGEST_FILE, "a measured motion")
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        lines = [(reader.line_num, line) for line in reader if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the measured motion cannot be read: {error}", Location(str(file))) from None
    if len(lines) < 2:
        raise InputError("the measured motion has no rows", Location(str(file)), remedy="a line of headings, then rows")
    first, *rows = lines
    top = Location(str(file), first[0], 1)
    headings = [_heading(text, graph, top) for text in first[1]]
    names = [name for name, _ in headings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or names.count("t") != 1 or not set(names) - {"t", "mode"}:
        raise InputError(
            "a measured motion has a time, and columns of the model once each", top,
            found=", ".join(first[1]), allowed="such as t, x [mm]",
        )  # fmt: skip
    table = np.array([_numbers(line, names, Location(str(file), at, 1)) for at, line in rows])
    columns = {name: table[:, k] * factor for k, (name, factor) in enumerate(headings) if name != "mode"}
    t = columns.pop("t")
    late = np.flatnonzero(~(np.diff(t, prepend=-np.inf) > 0.0) | ~(t >= 0.0))
    if len(late):
        raise InputError(
            "the times of a measured motion increase, from 0 on", Location(str(file), rows[late[0]][0], 1),
            found=f"{t[late[0]]:g} s",
        )  # fmt: skip
    return MeasuredMotion(t, columns)


def _heading(text: str, graph: ModeGraph, where: Location) -> tuple[str, float]:
    """Return the name of a column and the factor to SI units."""
    found, mechanism = _HEADING.fullmatch(text), graph.automaton.mechanism
    known = [*mechanism.coordinate_names, *mechanism.speeds, *mechanism.outputs]
    name = "t" if found and found[1] in TIME else found[1] if found else text
    own = {"t": "s", **units(mechanism)}.get(name, "")
    if name.startswith("pin."):
        own = _unit_of_connection(name, graph)
    elif name not in (*known, "t", "mode"):
        raise InputError(
            f"{name!r} is no coordinate, speed or output of the model", where, found=text,
            allowed=", ".join(("t", *known)), remedy=did_you_mean(name, known),
        )  # fmt: skip
    if found is None or found[2] is None:
        return name, 1.0
    try:
        factor, dimension = parse_unit(found[2], where)
    except ModelError as error:
        raise InputError(error.message, where, found=text, remedy=error.remedy) from None
    if own and parse_unit(own, where)[1] != dimension:
        raise InputError(f"the unit of {name!r} does not fit", where, found=found[2], allowed=own)
    return name, factor


def _unit_of_connection(name: str, graph: ModeGraph) -> str:
    """Return the unit of a column of connections; raise InputError if there is none of this name."""
    check_quantities(graph, [name])
    return pin_programs_of(graph).unit(name)


def _numbers(line: list[str], names: list[str], where: Location) -> list[float]:
    if len(line) != len(names):
        raise InputError("a row has another number of cells", where, found=str(len(line)), allowed=str(len(names)))
    values = []
    for name, cell in zip(names, line, strict=True):
        try:
            value = float(cell) if name != "mode" and cell.strip() else np.nan
        except ValueError:
            value = np.inf
        if np.isinf(value):
            raise InputError(f"a cell of {name!r} is no number", where, found=cell[:40])
        values.append(value)
    return values


# -- Parameters from a measured motion -----------------------------------------------------------------------
#
# By least squares, with intervals and with the directions not determined by the data.

STEP: Final = 1e-4  # of the differences, relative: with runs at RTOL they are off by some 1e-6
RTOL: Final = 1e-10
ATOL: Final = 1e-12
RANK: Final = 1e-5  # singular values below this part of the largest are those of the differences' error
SHARE: Final = 0.1  # components below this of a direction are not named
WEIGHTINGS: Final = 2  # fits in turn, each weighing the columns by the residuals of the one before
_ROUNDING: Final = 1e-12  # relative to a column's size; smaller residuals are not noise


@dataclass(frozen=True)
class Fit:
    """Parameters fitted to a measured motion.

    Attributes
    ----------
    values : mapping of str to float
        The best parameters, SI.
    intervals : mapping of str to (float, float)
        95 % intervals from the covariance, SI; infinite for a parameter not determined by the data.
    covariance : ndarray, shape (n, n)
        Of the values in their order, without the undetermined directions.
    undetermined : tuple of mapping of str to float
        Directions of relative changes of the parameters without a measurable change of the motion, of length 1, by the
        names of their parameters. A single name is a parameter not determined by the data.
    residuals : mapping of str to float
        Root mean square of measured less computed, by column, SI.
    runs : int
    units : mapping of str to str
        Of parameters and columns; empty for a model without units.
    """

    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    covariance: Floats
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


@typed
def fit(
    graph: ModeGraph,
    measured: str | Path,
    *,
    vary: Sequence[str] | Mapping[str, tuple[float | str, float | str]],
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> Fit:
    """Return the parameters for the best agreement of runs with a measured motion.

    The sum of squares is minimised by the trust region of scipy's ``least_squares``, with central differences of whole
    runs: transitions may change in order and number.  Columns are weighted by their own residuals. Intervals are from
    Student's distribution with the covariance of the linearised problem, for noise independent from row to row.

    Parameters
    ----------
    graph : ModeGraph
    measured : str or Path
        A CSV file, :func:`fsm_dyn.analysis.searches.read_measured`.
    vary : sequence of str, or mapping of str to (low, high)
        Scalar parameters of the model; with bounds, SI or texts with units.
    parameters : mapping, optional
        Values of parameters; of varied ones the start of the search, by default the model's.
    options
        As for ``fsm_dyn.Simulator.run``; a run ends with the measurement.

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
    of_columns = {name: _unit_of_connection(name, graph) for name in rms if name.startswith("pin.")}
    own = {**units(graph.automaton.mechanism), **of_columns}
    return Fit(values, intervals, covariance, named, rms, search.runs, own)


def _covariance(jacobian: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return the covariance (n, n) for residuals with unit variance, and undetermined directions (k, n).

    In relative changes of the parameters a direction counts as undetermined if its singular value is at the level of
    rounding, or if the effect of a change by 100 % stays within the noise.
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
        self.motion: MeasuredMotion = read_measured(measured, graph)
        self.kept = {name: ~np.isnan(column) for name, column in self.motion.columns.items()}
        self.count = int(sum(kept.sum() for kept in self.kept.values()))
        if self.count <= len(names):
            raise InputError("there are too few measured values", found=str(self.count), allowed=f"> {len(names)}")
        self.simulator = Simulator(graph)
        self.options = {"rtol": RTOL, "atol": ATOL, **options, "until": float(self.motion.t[-1])}
        self.first = np.array([values[name] for name in names], dtype=np.float64)
        self.weights: Mapping[str, float] = {}
        self.runs = 0

    def bounds(self, vary: Sequence[str] | Mapping[str, tuple[float | str, float | str]]) -> tuple[Floats, Floats]:
        """Return the least and the greatest values, SI; infinite by default."""
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
        """Run at the first values; a failure is an error."""
        run = self.simulator.run(parameters={**self.parameters, **self._named(self.first)}, **self.options)
        if run.t[-1] < self.motion.t[-1]:
            raise RunError(f"the run ends at {run.t[-1]:g} s, before the measurement does ({self.motion.t[-1]:g} s)")

    def least(self, bounds: tuple[Floats, Floats], first: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """Return the parameters of the least sum of squares, and the Jacobian of the residuals there.

        Raises RunError: runs with parameters next to those reached fail.
        """
        try:
            found = least_squares(
                self, first, jac="3-point", diff_step=[STEP] * len(first), x_scale=scale, bounds=bounds
            )
        except (ValueError, np.linalg.LinAlgError) as error:
            raise RunError(f"the fit met parameters with which runs fail: {error}; give bounds") from None
        return found.x, np.asarray(found.jac, dtype=np.float64)

    def __call__(self, point: Floats) -> Floats:
        """Return the weighted residuals; infinite for a failed or early ended run, so the trust region avoids it."""
        try:
            found = self.by_column(point)
        except (InputError, RunError):
            return np.full(self.count, np.inf)
        return np.concatenate([residual / self.weights[name] for name, residual in found.items()])

    def by_column(self, point: Floats) -> dict[str, Floats]:
        """Return measured less computed, by column, SI."""
        self.runs += 1
        run = self.simulator.run(parameters={**self.parameters, **self._named(point)}, **self.options)
        computed = run.sample(self.motion.t)
        return {name: (column - computed[name])[self.kept[name]] for name, column in self.motion.columns.items()}

    def _named(self, point: Floats) -> dict[str, float]:
        return dict(zip(self.names, map(float, point), strict=True))

    def _number(self, name: str, value: float | str) -> float:
        found = parameter_values(self.mechanism, {**self.parameters, name: value})[name]
        return float(np.ravel(found)[0])
