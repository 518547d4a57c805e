"""Search over the tolerances of a model for the worst violation of a requirement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from scipy.optimize import Bounds, differential_evolution, minimize

from fsm_dyn.analysis.judged_runs import JudgedRun, judged_runs
from fsm_dyn.analysis.study_variables import (
    Distribution,
    VariedQuantity,
    check_options,
    run_arguments,
    varied_quantities,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, RunError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.values import parameter_values
from fsm_dyn.run.judgement import Judgement, Verdict
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.runtime.abi import Status

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

    def __call__(self, point: Array) -> float:
        """Return the margin at a point of the box; NO_MARGIN if the run was undecided."""
        return float(self.of_several(point[:, None])[0])

    def of_several(self, points: Array) -> Array:
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


def _minimise(search: _MarginSearch, bounds: Bounds, first: Array, seed: int) -> None:
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
