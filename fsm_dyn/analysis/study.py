"""Studies: one model run with many values of its parameters, spread over the cores of this machine."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.compilation import Parameters
from fsm_dyn.compilation import compile as compile_mechanism
from fsm_dyn.errors import InputError, RunError, did_you_mean
from fsm_dyn.modes.elimination import Array
from fsm_dyn.processes import in_processes
from fsm_dyn.renamed import RenamedAttribute, renamed_keywords
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.run_inputs import InputValue
from fsm_dyn.simulation_api import simulate
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.values import parameter_values, units

POINTS = 600  # of a curve over time
MOST_RUNS = 10_000
_RANGE = re.compile(r"(?P<first>[-+.\deE]+)\s*\.\.\s*(?P<last>[-+.\deE]+)\s*(?P<unit>[^\d:][^:]*)?(:(?P<count>\d+))?")


@dataclass(frozen=True)
class StudyRun:
    """One run of a study.

    Attributes
    ----------
    values : mapping of str to float
        The parameters varied (SI).
    outcome : str
        How the run ended, ``"failed: ..."`` if it did not start.
    end : float
        When, s.
    mode : str
        In which mode.
    transitions : int
    minimum, maximum, final : mapping of str to float
        Of every quantity over the run.
    curves : mapping of str to ndarray, shape (POINTS,)
        Of every quantity over the study's ``times``; NaN after the end.
    """

    values: Mapping[str, float]
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
    """All runs of a study: what was varied, which quantities were looked at with their units, the rows."""

    model: str
    varied: tuple[str, ...]
    quantities: tuple[str, ...]
    units: Mapping[str, str]
    times: Array
    rows: tuple[StudyRun, ...]

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


@dataclass(frozen=True)
class _Task:
    """What every run of a study shares."""

    text: str
    quantities: tuple[str, ...]
    times: Array
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]


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
        raise InputError("a range is NAME=FIRST..LAST:COUNT", found=text, allowed="let_off=0.5..3mm:6, mu=0.1..0.4:7")
    try:
        ends = float(found["first"]), float(found["last"])
    except ValueError:
        raise InputError("a range runs from one number to another", found=rest) from None
    unit = (found["unit"] or "").strip()
    return name.strip(), [f"{value:.12g} {unit}".strip() for value in np.linspace(*ends, count)]


@renamed_keywords(drive="scenario")
def study(
    graph: ModeGraph,
    vary: Mapping[str, Sequence[float | str]],
    *,
    until: float,
    scenario: str | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    parameters: Parameters | None = None,
    initial: Mapping[str, float | str] | None = None,
    quantities: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Study:
    """Run a model with every combination of some parameters' values.

    Parameters
    ----------
    vary : mapping
        Values of parameters, SI or texts with units.
    until, scenario, inputs, parameters, initial, options
        As for ``fsm_dyn.simulate``; inputs that are Python functions go with one job only.
    quantities : sequence of str, optional
        Outputs, coordinates and speeds to look at; by default the model's outputs, or else its coordinates.
    jobs : int, optional
        Processes; by default one per core, as far as there are runs for them.
    progress : callable, optional
        Called with the number of runs done and of all.

    Raises
    ------
    InputError
        A name or value is impossible.
    RunError
        A process was ended from outside.
    """
    mechanism, layout = graph.automaton.mechanism, graph.automaton.terms.layout
    chosen = tuple(quantities or mechanism.outputs or layout.q)
    known = (*mechanism.outputs, *layout.q, *layout.u)
    for name in chosen:
        if name not in known:
            raise InputError(f"'{name}' is no quantity of '{graph.name}'", remedy=did_you_mean(name, known))
    cases = [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]
    if not 1 <= len(cases) <= MOST_RUNS:
        raise InputError("too many runs", found=str(len(cases)), allowed=f"1 to {MOST_RUNS}")
    numbers = [parameter_values(mechanism, {**(parameters or {}), **case}) for case in cases]  # refuses what is wrong
    shared = {"until": until, "scenario": scenario, "inputs": inputs, "initial": initial, **options}
    task = _Task(mechanism.text, chosen, np.linspace(0.0, until, POINTS), parameters or {}, shared)
    done: list[StudyRun] = []
    first = simulate_case(graph, task, cases[0])  # builds and keeps what the others find ready
    for row in itertools.chain([first], _rows(graph, task, cases[1:], jobs)):
        values = numbers[len(done)]
        done.append(_with_values(row, {name: float(np.ravel(values[name])[0]) for name in vary}))
        if progress is not None:
            progress(len(done), len(cases))
    return Study(
        graph.name,
        tuple(vary),
        chosen,
        {name: unit for name, unit in units(mechanism).items() if name in (*chosen, *vary)},
        task.times,
        tuple(done),
    )


def _rows(graph: ModeGraph, task: _Task, cases: Sequence[Mapping[str, Any]], jobs: int | None) -> Iterator[StudyRun]:
    workers = min(jobs or os.cpu_count() or 1, len(cases))
    if workers < 2:
        yield from (simulate_case(graph, task, case) for case in cases)
    else:
        yield from in_processes("the study", workers, _begin, task, _work, cases)


def _begin(task: _Task) -> tuple[ModeGraph, _Task]:
    return compile_mechanism(load_mechanism("<study>", text=task.text)), task


def _work(shared: tuple[ModeGraph, _Task], case: Mapping[str, Any]) -> StudyRun:
    return simulate_case(*shared, case)


def simulate_case(graph: ModeGraph, task: _Task, case: Mapping[str, Any]) -> StudyRun:
    """Return the row of one run; one that cannot begin has no more than its reason."""
    try:
        run = simulate(graph, parameters={**task.parameters, **case}, on_failure="return", **task.options)
    except (InputError, RunError) as error:
        return StudyRun({}, f"failed: {str(error).splitlines()[0]}")
    return _row(run, task)


def _row(run: Trajectory, task: _Task) -> StudyRun:
    within = task.times <= run.t[-1]
    samples = run.sample(task.times[within])
    curves: dict[str, Array] = {}
    minimum, maximum, final = {}, {}, {}
    for name in task.quantities:
        curve = np.full(len(task.times), np.nan)
        curve[within] = samples[name]
        column = run[name]
        curves[name] = curve
        minimum[name], maximum[name], final[name] = float(column.min()), float(column.max()), float(column[-1])
    return StudyRun(
        {}, run.outcome.name, float(run.t[-1]), run.modes[-1], len(run.transitions), minimum, maximum, final, curves
    )


def _with_values(row: StudyRun, values: Mapping[str, float]) -> StudyRun:
    return StudyRun(values, *(getattr(row, name) for name in StudyRun.__dataclass_fields__ if name != "values"))
