"""Studies: one model run with many values of its parameters, spread over the cores of this machine."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import msgspec
import numpy as np

from fsm_dyn.analysis.judged_runs import RecordedTogether, runs_together
from fsm_dyn.analysis.ledger import Ledger, study_settings
from fsm_dyn.analysis.study_datasets import run_dataset
from fsm_dyn.analysis.study_runs import StudyTask, results_of_graphs
from fsm_dyn.analysis.study_variables import (
    VARIANT,
    Label,
    cases_in_numbers,
    check_quantities,
    check_shared,
    check_variables,
    graphs_by_variant,
    labels,
    run_arguments,
    variable_units,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.renamed import RenamedAttribute, renamed_keywords
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.run_inputs import InputValue
from fsm_dyn.simulator import Simulator
from fsm_dyn.spec.values import Parameters

if TYPE_CHECKING:
    import xarray

    from fsm_dyn.analysis.distributions import Distribution
    from fsm_dyn.analysis.yields import ToleranceStudy

_Columns = dict[str, float]
_DECODER = msgspec.msgpack.Decoder(tuple[str, float, str, int, _Columns, _Columns, _Columns, dict[str, bytes]])

GRID: Final = "grid"
POINTS = 600  # of a curve over time
MOST_CURVES = 10_000  # runs up to which curves are kept, and points are checked before the first run
_RANGE = re.compile(r"(?P<first>[-+.\deE]+)\s*\.\.\s*(?P<last>[-+.\deE]+)\s*(?P<unit>[^\d:][^:]*)?(:(?P<count>\d+))?")


@dataclass(frozen=True)
class StudyRun:
    """One run of a study.

    Attributes
    ----------
    values : mapping of str to float or str
        What was varied: numbers (SI), and texts where a value is none, as of a mode, a scenario or a variant.
    outcome : str
        How the run ended, ``"failed: ..."`` if it did not start.
    end : float
        When, s.
    mode : str
        In which mode.
    transitions : int
    minimum, maximum, final : mapping of str to float
        Of every quantity over the run, between its rows too.
    curves : mapping of str to ndarray, shape (POINTS,)
        Of every quantity over the study's ``times``; NaN after the end. None in a study of more than 10,000 runs.
    """

    values: Mapping[str, Label]
    outcome: str
    end: float = 0.0
    mode: str = ""
    transitions: int = 0
    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    final: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Array] = field(default_factory=dict, repr=False)
    last = RenamedAttribute("final")


@dataclass(frozen=True)
class Study:
    """All runs of a study: what was varied, which quantities were looked at with their units, the rows.

    ``compiled`` : number of variants that were compiled.
    """

    model: str
    varied: tuple[str, ...]
    quantities: tuple[str, ...]
    units: Mapping[str, str]
    times: Array
    rows: tuple[StudyRun, ...]
    compiled: int = 0

    def to_dataset(self) -> xarray.Dataset:
        """Return the rows as an ``xarray.Dataset`` along ``run``, the curves along ``time`` too.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        columns: dict[str, Sequence[Any] | Array] = {"outcome": [row.outcome for row in self.rows]}
        for name in ("end", "mode", "transitions"):
            columns[name] = [getattr(row, name) for row in self.rows]
        for name in self.quantities:
            for part in ("minimum", "maximum", "final"):
                columns[f"{name}_{part}"] = [getattr(row, part).get(name, np.nan) for row in self.rows]
            if len(self.times):
                missing = np.full(len(self.times), np.nan)
                columns[name] = np.array([row.curves.get(name, missing) for row in self.rows])
        parameters = {name: [row.values[name] for row in self.rows] for name in self.varied}
        return run_dataset(self.model, parameters, columns, self.units, {"time": self.times})

    def table(self) -> tuple[list[str], list[list[float | int | str]]]:
        """Return headings and rows, as for a CSV file."""
        headings = [*self.varied, "outcome", "end", "mode", "transitions"]
        for name in self.quantities:
            headings += [f"{name}_min", f"{name}_max", f"{name}_final"]
        lines: list[list[float | int | str]] = []
        for row in self.rows:
            line: list[float | int | str] = [*row.values.values(), row.outcome, row.end, row.mode, row.transitions]
            for name in self.quantities:
                line += [part.get(name, np.nan) for part in (row.minimum, row.maximum, row.final)]
            lines.append(line)
        return headings, lines


def read_range(text: str) -> tuple[str, list[str]]:
    """Return the name and values of a range ``let_off=0.5..3mm:6`` (5 values without a count).

    Raises
    ------
    InputError
        It is no range.
    """
    name, _, rest = text.partition("=")
    found = _RANGE.fullmatch(rest.strip())
    count = int(found["count"] or 5) if found else 0
    if not name.strip() or found is None or count < 2:
        raise InputError(
            "a range is NAME=FIRST..LAST:COUNT",
            found=text,
            allowed="let_off=0.5..3mm:6, mu=0.1..0.4:7; in a grid also values one by one: variant=[none, felt]",
        )
    try:
        ends = float(found["first"]), float(found["last"])
    except ValueError:
        raise InputError("a range runs from one number to another", found=rest) from None
    unit = (found["unit"] or "").strip()
    return name.strip(), [f"{value:.12g} {unit}".strip() for value in np.linspace(*ends, count)]


@overload
def study(
    graph: ModeGraph, vary: Mapping[str, Sequence[Any]], *, until: float, sample: Literal["grid"] = ..., **options: Any
) -> Study: ...
@overload
def study(
    graph: ModeGraph,
    vary: Mapping[str, Distribution] | None = None,
    *,
    sample: Literal["random", "lhs", "sobol"],
    n: int = ...,
    seed: int = ...,
    **options: Any,
) -> ToleranceStudy: ...
@renamed_keywords(drive="scenario")
def study(
    graph: ModeGraph,
    vary: Mapping[str, Any] | None = None,
    *,
    sample: str = GRID,
    n: int = 256,
    seed: int = 0,
    requirements: Sequence[str] | None = None,
    until: float | None = None,
    scenario: str | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    parameters: Parameters | None = None,
    initial: Mapping[str, float | str] | None = None,
    quantities: Sequence[str] | None = None,
    jobs: int | None = None,
    client: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Study | ToleranceStudy:
    """Run a model with every combination of values, or with a sample of its tolerances.

    Parameters
    ----------
    graph : ModeGraph
    vary : mapping
        Of a sample, distributions as for :func:`fsm_dyn.tolerance_study`; by default the tolerances of the model file.
        Of a grid, values by name, SI or texts with units: of a parameter, ``initial.NAME`` (a coordinate, speed,
        discrete variable or ``mode``), ``input.NAME`` (all that ``inputs`` of a run may be), ``amplitude.NAME`` (a
        factor on the schedule of an input), ``scenario`` and ``variant`` (names of the model's; None or ``"none"`` is
        the model as it is).
        Each variant is compiled once; nothing else that is varied compiles anything.
    sample : str
        ``"grid"``, or ``"random"``, ``"lhs"``, ``"sobol"``.
    n, seed, requirements
        Of a sample, as for :func:`fsm_dyn.tolerance_study`.
    until, scenario, inputs, parameters, initial, options
        As for ``fsm_dyn.simulate``; inputs that are Python functions go with one job only.
    quantities : sequence of str, optional
        Outputs, coordinates and speeds to look at; by default the model's outputs, or else its coordinates.
    jobs : int, optional
        Processes; by default one per core, as far as there are runs for them.
    client : str or distributed.Client, optional
        A dask cluster for the runs, or the address of its scheduler, in place of processes here.
    ledger : path, optional
        An SQLite file to which results are written as they come; what it contains is not computed again.
    progress : callable, optional
        Called with the number of runs done and of all.

    Returns
    -------
    Study or ToleranceStudy
        Of a grid a run for each combination, in the order of ``vary``; of a sample the verdicts and margins of all
        runs.  ``to_dataset()`` of both returns an ``xarray.Dataset``.

    Raises
    ------
    InputError
        A name or value is impossible, the ledger is of another study, or no scheduler answers.
    RunError
        The ledger cannot be written, a process was ended from outside, or the cluster is lost.
    """
    shared = {
        "scenario": scenario, "inputs": inputs, "initial": initial, "parameters": parameters, "until": until, **options
    }  # fmt: skip
    if sample != GRID:
        from fsm_dyn.analysis.yields import tolerance_study  # grids do not wait for SciPy's statistics

        return tolerance_study(
            graph, n=n, seed=seed, sample=sample, vary=vary, requirements=requirements, quantities=quantities,
            jobs=jobs, client=client, ledger=ledger, progress=progress,
            **{name: value for name, value in shared.items() if value is not None},
        )  # fmt: skip
    if until is None:
        raise InputError("a study over a grid needs the end of its runs", remedy="until=1.0, in s")
    if requirements is not None:
        raise InputError("requirements are judged of a sample", remedy='sample="random", or "lhs", "sobol"')
    return _over_grid(graph, vary or {}, shared, until, quantities, jobs, client, ledger, progress)


def _over_grid(
    graph: ModeGraph,
    vary: Mapping[str, Sequence[Any]],
    shared: Mapping[str, Any],
    until: float,
    quantities: Sequence[str] | None,
    jobs: int | None,
    client: Any,
    ledger: str | os.PathLike[str] | None,
    progress: Callable[[int, int], None] | None,
) -> Study:
    """Return a run for each combination of values; ``shared`` are options of every run."""
    mechanism = graph.automaton.mechanism
    chosen = tuple(quantities or mechanism.outputs or graph.automaton.terms.layout.q)
    count = math.prod(len(values) for values in vary.values())
    if not vary or not count:
        raise InputError("a study needs a value of everything it varies")
    graphs = graphs_by_variant(graph, vary)
    for each in graphs.values():
        check_quantities(each, chosen)
        check_shared(each, shared, until)
        check_variables(each, vary, shared, until, combined=count <= MOST_CURVES)
    cases = [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]
    numbers = list(itertools.product(*labels(mechanism, vary)))
    points = POINTS if count <= MOST_CURVES else 0
    times = np.linspace(0.0, until, points)
    order = _by_variant(graphs, cases)
    kept: Ledger[StudyRun] | None = None
    if ledger is not None:
        models = " ".join(each.automaton.mechanism.digest for each in graphs.values())
        keyed = {**shared, "parameters": shared["parameters"] or {}, "quantities": chosen}
        settings = study_settings("curves", models, cases, keyed)
        kept = Ledger(Path(ledger), settings, _encoded, partial(_decoded, quantities=chosen, points=points))
    task = StudyTask(simulate_cases, {"quantities": chosen, "times": times, "run": shared})
    parts = [(graphs[variant], [cases[i] for i in numbered]) for variant, numbered in order.items()]
    found: dict[int, StudyRun] = {}
    for i, row in zip(
        itertools.chain.from_iterable(order.values()), results_of_graphs(parts, task, jobs, kept, client), strict=True
    ):
        found[i] = replace(row, values=dict(zip(vary, numbers[i], strict=True)))
        if progress is not None:
            progress(len(found), count)
    return Study(
        graph.name,
        tuple(vary),
        chosen,
        variable_units(mechanism, (*chosen, *vary)),
        times,
        tuple(found[i] for i in range(count)),
        sum(each is not graph for each in graphs.values()),
    )


def _by_variant(
    graphs: Mapping[str | None, ModeGraph], cases: Sequence[Mapping[str, Any]]
) -> dict[str | None, list[int]]:
    """Return the numbers of the cases of each variant."""
    if len(graphs) == 1:
        return {next(iter(graphs)): list(range(len(cases)))}
    found: dict[str | None, list[int]] = {variant: [] for variant in graphs}
    for i, case in enumerate(cases):
        found[case[VARIANT]].append(i)
    return found


def simulate_cases(
    simulator: Simulator, given: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]
) -> list[StudyRun]:
    """Return the rows of some runs; those that differ in numbers alone are made together, to the same bits."""
    found: list[StudyRun | None] = [None] * len(cases)
    numbers = cases_in_numbers(simulator.graph.automaton.mechanism, cases)
    quantities, times = given["quantities"], given["times"]

    def rows(recorded: RecordedTogether) -> Iterator[StudyRun]:
        return (StudyRun({}, *summary) for summary in recorded.summaries(quantities, times))

    for number, row in runs_together(simulator, given, given["run"], numbers, rows):
        found[number] = row
    return [
        simulate_case(simulator, given, case) if row is None else row for row, case in zip(found, cases, strict=True)
    ]


def simulate_case(simulator: Simulator, given: Mapping[str, Any], case: Mapping[str, Any]) -> StudyRun:
    """Return the row of one run; one that cannot begin has no more than its reason."""
    try:
        run = simulator.run(**run_arguments(simulator.graph, given["run"], case), on_failure="return")
    except (InputError, RunError) as error:
        return StudyRun({}, f"failed: {str(error).splitlines()[0]}")
    return _row(run, given["quantities"], given["times"])


def _row(run: Trajectory, quantities: Sequence[str], times: Array) -> StudyRun:
    within = times <= run.t[-1]
    samples = run.sample(times[within])
    curves: dict[str, Array] = {}
    minimum, maximum, final = {}, {}, {}
    for name in quantities:
        if within.size:
            curves[name] = np.full(len(times), np.nan)
            curves[name][within] = samples[name]
        extremes = run.extremes(name)
        minimum[name], maximum[name], final[name] = extremes.minimum, extremes.maximum, float(run[name][-1])
    return StudyRun(
        {}, run.outcome.name, float(run.t[-1]), run.modes[-1], len(run.transitions), minimum, maximum, final, curves
    )


def _encoded(row: StudyRun) -> bytes:
    """Return a row without its values, as bytes."""
    parts = [getattr(row, item.name) for item in fields(row)[1:-1]]
    return msgspec.msgpack.encode([*parts, {name: curve.tobytes() for name, curve in row.curves.items()}])


def _decoded(data: bytes, quantities: Sequence[str], points: int) -> StudyRun:
    """Return the row of these bytes; raise ValueError where it is none of a study of these quantities."""
    outcome, end, mode, transitions, minimum, maximum, final, curves = _DECODER.decode(data)
    if any({*part} - {*quantities} for part in (minimum, maximum, final, curves)):
        raise ValueError("another quantity")
    columns = {name: np.frombuffer(curve) for name, curve in curves.items()}
    if any(len(column) != points for column in columns.values()):
        raise ValueError("a curve of another length")
    return StudyRun({}, outcome, end, mode, transitions, minimum, maximum, final, columns)
