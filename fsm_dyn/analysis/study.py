"""Studies: one model run with many values, or within its tolerances, its requirements judged in every run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fsm_dyn.analysis.judged_runs import JudgedRun, judged_runs
from fsm_dyn.analysis.ledger import Ledger, study_settings
from fsm_dyn.analysis.study_points import StudyPoints, grid_points, sampled_points
from fsm_dyn.analysis.study_results import ALL, GRID, Study, StudyColumns, StudyRun
from fsm_dyn.analysis.study_runs import StudyTask, study_results
from fsm_dyn.analysis.study_variables import SCENARIO, check_options, check_quantities, variable_units
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean, warn_of_energy
from fsm_dyn.renamed import renamed_keywords
from fsm_dyn.run_inputs import InputValue, default_end, scenario_schedules
from fsm_dyn.spec.checks.requirements import requirement_units
from fsm_dyn.spec.values import Parameters, parameter_values

__all__ = ["ALL", "Study", "StudyRun", "read_range", "study", "tolerance_study"]

POINTS: Final = 600  # of a curve over time
MOST_CURVES: Final = 10_000  # runs up to which curves are kept, and points are checked before the first run
_DECODER = msgspec.msgpack.Decoder(JudgedRun)
_RANGE = re.compile(r"(?P<first>[-+.\deE]+)\s*\.\.\s*(?P<last>[-+.\deE]+)\s*(?P<unit>[^\d:][^:]*)?(:(?P<count>\d+))?")


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
            allowed="let_off=0.5..3mm:6; values one by one, variant=[none, felt]; of a sample h='1 m +- 5 cm'",
        )
    try:
        ends = float(found["first"]), float(found["last"])
    except ValueError:
        raise InputError("a range runs from one number to another", found=rest) from None
    unit = (found["unit"] or "").strip()
    return name.strip(), [f"{value:.12g} {unit}".strip() for value in np.linspace(*ends, count)]


@renamed_keywords(drive="scenario", quantities="outputs")
def study(
    graph: ModeGraph,
    vary: Mapping[str, Any] | None = None,
    *,
    sample: str = GRID,
    n: int = 256,
    seed: int = 0,
    requirements: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    until: float | None = None,
    scenario: str | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    parameters: Parameters | None = None,
    initial: Mapping[str, float | str] | None = None,
    jobs: int | None = None,
    client: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Study:
    """Run a model with every combination of values, or with a sample of its tolerances, and judge its requirements.

    Parameters
    ----------
    graph : ModeGraph
    vary : mapping
        Of a grid, values by name, SI or texts with units: of a parameter, ``initial.NAME`` (a coordinate, speed,
        discrete variable or ``mode``), ``input.NAME`` (all that ``inputs`` of a run may be), ``amplitude.NAME`` (a
        factor on the schedule of an input), ``scenario`` and ``variant`` (names of the model's; None or ``"none"`` is
        the model as it is).  Of a sample, distributions in addition to the tolerances of the model file:
        ``"1 m +- 5 cm"``, ``{"normal": ..., "sigma": ...}``, ``{"uniform": [..., ...]}``,
        ``{"value": ..., "tolerance": [..., ...]}`` or two limits, numbers SI, an ``input`` being constant; of
        ``scenario``, ``variant`` and ``initial.mode`` a list of names, each as likely as the others.
        Each variant is compiled once; nothing else that is varied compiles anything.
    sample : str
        ``"grid"``; or ``"random"``, ``"lhs"`` (a Latin hypercube), ``"sobol"`` (eight scrambled sequences).
    n, seed
        Of a sample: runs, for ``"sobol"`` eight times a power of two; the same seed gives the same points.
    requirements : sequence of str, optional
        Names of those to judge; by default all of the model.
    outputs : sequence of str, optional
        Outputs, coordinates and speeds whose minimum, maximum and final values are kept; by default, of a grid, the
        model's outputs, or else its coordinates, and none of a sample.
    until, scenario, inputs, parameters, initial, options
        As for ``fsm_dyn.simulate``; inputs that are Python functions go with one job only.  ``parameters`` are those
        about which is sampled.
    jobs : int, optional
        Processes, with the same result for any number; by default one per core, as far as there are runs for them.
    client : str or distributed.Client, optional
        A dask cluster for the runs, or the address of its scheduler, in place of processes here.
    ledger : path, optional
        An SQLite file to which results are written as they come; what it contains is not computed again.
    progress : callable, optional
        Called with the number of runs done and of all.

    Returns
    -------
    Study
        Of a grid the runs in the order of ``vary``, with curves; ``to_dataset()`` returns an ``xarray.Dataset``.

    Raises
    ------
    InputError
        A name or value is impossible, there is nothing to vary or to judge, the ledger is of another study, or no
        scheduler answers.
    RunError
        The ledger cannot be written, a process was ended from outside, or the cluster is lost.
    TypeError
        There is no such option.
    """
    check_options(study, options)
    every = {
        "scenario": scenario, "inputs": inputs, "initial": initial, "parameters": parameters, "until": until, **options
    }  # fmt: skip
    shared = {name: value for name, value in every.items() if value is not None}
    if sample == GRID:
        points = grid_points(graph, vary or {}, shared, MOST_CURVES)
    else:
        points = sampled_points(graph, vary or {}, shared, sample, n, seed)
    graphs = [part.graph for part in points.parts]
    judged = _requirements(graphs, requirements)
    if sample != GRID and not judged and not outputs and requirements is None:
        raise InputError("the model has no requirements", remedy="write a section `requirements`, or name outputs")
    chosen = _outputs(graph, graphs, outputs, usual=sample == GRID)
    kept = sample == GRID and points.count <= MOST_CURVES and bool(chosen)
    times = np.linspace(0.0, _end(points, vary or {}, shared), POINTS) if kept else np.empty(0)
    settings = {"requirements": judged, "outputs": chosen, "times": times, "run": shared}
    results = study_results(
        [(part.graph, part.cases) for part in points.parts],
        StudyTask(judged_runs, settings),
        jobs,
        None if ledger is None else _ledger(Path(ledger), points, settings),
        client,
    )
    columns = StudyColumns(points.count, judged, chosen, times)
    numbers = (int(i) for part in points.parts for i in part.numbers)
    for done, (i, run) in enumerate(zip(numbers, results, strict=True), start=1):
        columns.put(i, run)
        if progress is not None:
            progress(done, points.count)
    mechanism = graph.automaton.mechanism
    units = variable_units(mechanism, (*chosen, *points.parameters)) | requirement_units(mechanism)
    found = Study(
        model=graph.name,
        sample=sample,
        parameters=points.parameters,
        times=times,
        nominal=points.nominal,
        units={name: unit for name, unit in units.items() if name in {*points.parameters, *judged, *chosen}},
        distributions=points.distributions,
        compiled=sum(each is not graph for each in graphs),
        replicates=points.replicates,
        **columns.finished(),
    )
    warn_of_energy(graph.name, found.warnings)
    return found


def tolerance_study(graph: ModeGraph, *, n: int, seed: int, sample: str = "random", **options: Any) -> Study:
    """Run a model with parameters sampled within their tolerances, and judge its requirements in every run.

    Parameters
    ----------
    graph : ModeGraph
    n, seed, sample, options
        As for :func:`study`.

    Returns
    -------
    Study

    Raises
    ------
    InputError, RunError, TypeError
        As of :func:`study`.
    """
    return study(graph, sample=sample, n=n, seed=seed, **options)


def _requirements(graphs: Sequence[ModeGraph], chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the requirements that are judged: those chosen, or those of all graphs."""
    known = [graph.automaton.mechanism.requirements for graph in graphs]
    for name in chosen or ():
        if not all(name in each for each in known):
            raise InputError(f"no requirement '{name}'", remedy=did_you_mean(name, list(known[0])))
    return tuple(name for name in known[0] if all(name in each for each in known)) if chosen is None else (*chosen,)


def _outputs(
    graph: ModeGraph, graphs: Sequence[ModeGraph], chosen: Sequence[str] | None, usual: bool
) -> tuple[str, ...]:
    """Return the outputs that are kept: those chosen, else the usual ones if they are wanted."""
    if chosen is None and usual:
        chosen = (*graph.automaton.mechanism.outputs,) or graph.automaton.terms.layout.q
    for each in graphs:
        check_quantities(each, chosen or ())
    return tuple(chosen or ())


def _end(points: StudyPoints, vary: Mapping[str, Any], shared: Mapping[str, Any]) -> float:
    """Return the end of the longest run, as far as it does not depend on what is varied in numbers, s."""
    if "until" in shared:
        return float(shared["until"])
    found = []
    for automaton in (part.graph.automaton for part in points.parts):
        values = parameter_values(automaton.mechanism, shared.get("parameters"))
        for scenario in vary.get(SCENARIO, [shared.get("scenario")]):
            found.append(default_end(automaton, values, scenario_schedules(automaton, scenario) if scenario else {}))
    return max(found)


def _ledger(path: Path, points: StudyPoints, settings: Mapping[str, Any]) -> Ledger[JudgedRun]:
    models = " ".join(part.graph.automaton.mechanism.digest for part in points.parts)
    cases = (case for part in points.parts for case in part.cases)
    names, outputs, times = settings["requirements"], settings["outputs"], settings["times"]
    options = {"requirements": names, "outputs": outputs, "times": len(times), **settings["run"]}
    decode = partial(_decoded, requirements=names, outputs=outputs, points=len(times))
    return Ledger(path, study_settings(models, cases, options), msgspec.msgpack.encode, decode)


def _decoded(data: bytes, requirements: Sequence[str], outputs: Sequence[str], points: int) -> JudgedRun:
    """Return the run of these bytes; raise ValueError where it is none of this study."""
    found = _DECODER.decode(data)
    if not found.verdicts.keys() == found.margins.keys() == {*requirements}:
        raise ValueError("other requirements")
    if found.outputs.keys() != {*outputs} or found.curves.keys() - {*outputs}:
        raise ValueError("other outputs")
    if any(len(curve) != 8 * points for curve in found.curves.values()):
        raise ValueError("a curve of another length")
    return found
