"""Studies: one model run at many points, its requirements judged."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fsm_dyn.analysis.judged_runs import JudgedRun, judged_runs
from fsm_dyn.analysis.study_results import GRID, Study, StudyColumns
from fsm_dyn.analysis.study_runs import Cases, Ledger, StudyTask, study_results, study_settings
from fsm_dyn.analysis.study_variables import (
    LONGEST_CHECKED,
    NO_VARIANT,
    SCENARIO,
    VARIANT,
    WORDS,
    Distribution,
    Label,
    VariedQuantity,
    check_options,
    check_quantities,
    check_shared,
    check_variables,
    chooses_graph,
    graphs_by_variant,
    in_numbers,
    labels,
    variable_units,
    varied_quantities,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError, did_you_mean, warn_of_energy
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.check_references import requirement_units
from fsm_dyn.language.evaluate import Deviation
from fsm_dyn.language.values import parameter_values
from fsm_dyn.run.input_signals import default_end, scenario_schedules

# -- Points of a study: varied values of each of its runs, over a grid or within tolerances ------------------


@dataclass(frozen=True)
class StudyPart:
    """Runs of one graph: their numbers in the study, and the varied values of each."""

    graph: ModeGraph
    numbers: Integers
    cases: Cases


@dataclass(frozen=True)
class StudyPoints:
    """Varied values of each run of a study."""

    # shape (n,): numbers, SI, and texts for other values; nan if a variant has no such parameter
    parameters: Mapping[str, Floats]
    parts: tuple[StudyPart, ...]  # the runs by variant
    nominal: Mapping[str, float]  # of quantities with a nominal value, SI
    distributions: Mapping[str, str] = field(default_factory=dict)  # of a sample, as text, SI
    replicates: int = 1  # independent parts of equal size of a sample, one after the other; 1 if it has none

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(len(part.numbers) for part in self.parts)


def grid_points(
    graph: ModeGraph, vary: Mapping[str, Sequence[Any]], given: Mapping[str, Any], most_checked: int
) -> StudyPoints:
    """Return every combination of values, the last name the fastest.

    ``vary``: values by name, as of :func:`fsm_dyn.study`. ``given``: arguments of ``Simulator.run`` for all runs.
    ``most_checked``: largest number of combinations for a check of each; beyond it each value is checked. Raises
    InputError: there is no combination, or a name or a value is impossible.
    """
    for name, listed in vary.items():
        if not isinstance(listed, Sized):
            raise InputError(f"study: '{name}' has no values", found=repr(listed)[:80], allowed="a sequence of values")
    counts = [len(values) for values in vary.values()]
    if not vary or not all(counts):
        raise InputError("a study needs a value of everything it varies")
    graphs = graphs_by_variant(graph, vary)
    until = float(given.get("until") or LONGEST_CHECKED)
    for each in graphs.values():
        check_shared(each, given, until)
        check_variables(each, vary, given, until, combined=math.prod(counts) <= most_checked)
    mechanism = graph.automaton.mechanism
    places = dict(zip(vary, np.indices(counts).reshape(len(counts), -1), strict=True))
    values = {
        variant: {
            name: in_numbers(each.automaton.mechanism, name, given_values)
            for name, given_values in vary.items()
            if not chooses_graph(mechanism, name)
        }
        for variant, each in graphs.items()
    }
    columns = {name: _column(texts)[places[name]] for name, texts in zip(vary, labels(mechanism, vary), strict=True)}
    nominal = {name: graph.values[name] for name in vary if name in mechanism.parameters}
    return StudyPoints(
        columns,
        _parts(graphs, values, places, math.prod(counts), vary.get(VARIANT)),
        {name: value for name, value in nominal.items() if isinstance(value, float)},
    )


def sampled_points(
    graph: ModeGraph, vary: Mapping[str, Distribution], given: Mapping[str, Any], sample: str, n: int, seed: int
) -> StudyPoints:
    """Return a sample of tolerances and of other distributions, and of scenarios, variants and initial modes.

    ``vary``: distributions as for :func:`fsm_dyn.analysis.study_variables.varied_quantities`, and names of scenarios,
    variants and initial modes, each as likely as the others; ``given``: arguments of ``Simulator.run`` for all runs;
    ``sample``, ``n``, ``seed``: as for :func:`fsm_dyn.analysis.study_variables.sampled_deviations`. Raises InputError:
    there are no distributions, or a name, a distribution or the size of the sample is impossible.
    """
    from fsm_dyn.analysis.study_variables import (  # grids do not wait for SciPy's statistics
        REPLICATES,
        sampled_deviations,
    )

    mechanism = graph.automaton.mechanism
    words = {name: _names(name, vary[name]) for name in vary if name in WORDS and name not in mechanism.parameters}
    graphs = graphs_by_variant(graph, words)
    varied: dict[str | None, dict[str, VariedQuantity]] = {}
    for variant, each in graphs.items():
        check_variables(each, words, given, float(given.get("until") or LONGEST_CHECKED), combined=False)
        others = {name: distribution for name, distribution in vary.items() if name not in words}
        varied[variant] = varied_quantities(each, others, given)
    every = dict.fromkeys(name for quantities in varied.values() for name in quantities)
    values: dict[str | None, dict[str, Any]] = {}
    places: dict[str, Integers] = {}
    for variant, quantities in varied.items():
        deviations = {name: quantities[name].deviation if name in quantities else Deviation() for name in every}
        deviations |= {name: Deviation(0.0, float(len(names))) for name, names in words.items()}
        drawn = sampled_deviations(deviations, sample, n, seed)
        places = {name: np.minimum(drawn[name], len(names) - 1).astype(np.int64) for name, names in words.items()}
        values[variant] = {name: item.nominal + drawn[name] for name, item in quantities.items()}
        values[variant] |= {name: names for name, names in words.items() if not chooses_graph(mechanism, name)}
    parts = _parts(graphs, values, places, n, words.get(VARIANT))
    columns = {name: np.full(n, np.nan) for name in every}
    for part, quantities in zip(parts, varied.values(), strict=True):
        for name in quantities:
            columns[name][part.numbers] = np.asarray(part.cases.values[name])[part.numbers]
    columns |= {name: _column(texts)[places[name]] for name, texts in zip(words, labels(mechanism, words), strict=True)}
    nominal = {name: item.nominal for quantities in reversed(varied.values()) for name, item in quantities.items()}
    described = _described(varied) | {name: _one_of(names) for name, names in words.items()}
    return StudyPoints(columns, parts, nominal, described, REPLICATES if sample == "sobol" else 1)


def _parts(
    graphs: Mapping[str | None, ModeGraph],
    values: Mapping[str | None, Mapping[str, Sequence[Any] | Floats]],
    places: Mapping[str, Integers],
    n: int,
    variants: Sequence[str | None] | None,
) -> tuple[StudyPart, ...]:
    """Return the n runs by variant; a name without ``places`` has a value for each run."""
    parts = []
    for variant, graph in graphs.items():
        numbers = np.arange(n)
        if len(graphs) > 1 and variants is not None:
            numbers = np.flatnonzero(np.array([name == variant for name in variants])[places[VARIANT]])
        which = [places[name][numbers] if name in places else numbers for name in values[variant]]
        cases = Cases(values[variant], np.array(which, dtype=np.int64).reshape(len(which), len(numbers)))
        parts.append(StudyPart(graph, numbers, cases))
    return tuple(parts)


def _column(values: Sequence[Label]) -> Floats:
    """Return an array of numbers, or of objects if some of the values are texts."""
    return np.array(values, dtype=object if any(isinstance(value, str) for value in values) else np.float64)


def _names(name: str, given: Any) -> list[str | None]:
    if isinstance(given, list | tuple) and given and all(item is None or isinstance(item, str) for item in given):
        return [*given]
    raise InputError(f"a sample takes '{name}' from a list of names", found=str(given)[:60], allowed="[FIRST, SECOND]")


def _described(varied: Mapping[str | None, Mapping[str, VariedQuantity]]) -> dict[str, str]:
    """Return the distributions as text; if a name has several, each with its variants."""
    found: dict[str, dict[str, list[str]]] = {}
    for variant, quantities in varied.items():
        for name, item in quantities.items():
            found.setdefault(name, {}).setdefault(item.describe(), []).append(variant or NO_VARIANT)
    return {
        name: next(iter(texts)) if len(texts) == 1
        else "; ".join(f"{text} ({', '.join(variants)})" for text, variants in texts.items())
        for name, texts in found.items()
    }  # fmt: skip


def _one_of(names: Sequence[str | None]) -> str:
    return f"{', '.join(name or NO_VARIANT for name in names)}, each as likely"


# -- Studies -------------------------------------------------------------------------------------------------
#
# One model run with many values, or within its tolerances, its requirements judged in every run.

POINTS: Final = 600  # of a curve over time
MOST_CURVES: Final = 10_000  # largest number of runs with curves, and with a check of all points before the first run
_DECODER = msgspec.msgpack.Decoder(JudgedRun)
_RANGE = re.compile(r"(?P<first>[-+.\deE]+)\s*\.\.\s*(?P<last>[-+.\deE]+)\s*(?P<unit>[^\d:][^:]*)?(:(?P<count>\d+))?")


def read_range(text: str) -> tuple[str, list[str]]:
    """Return the name and values of a range ``let_off=0.5..3mm:6`` (5 values without a count).

    Raises InputError: it is no range.
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


@typed
def study(
    graph: ModeGraph,
    vary: Mapping[str, Any] | None = None,
    *,
    sample: str = GRID,
    n: int = 256,
    seed: int = 0,
    requirements: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
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
        discrete variable or ``mode``), ``input.NAME`` (as in ``inputs`` of a run), ``amplitude.NAME`` (a factor on the
        schedule of an input), ``scenario`` and ``variant`` (names of the model's; None or ``"none"``: the model
        itself).  Of a sample, distributions in addition to the tolerances of the model file: ``"1 m +- 5 cm"``,
        ``{"normal": ..., "sigma": ...}``, ``{"uniform": [..., ...]}``, ``{"value": ..., "tolerance": [..., ...]}`` or
        two limits, numbers SI, an ``input`` being constant; of ``scenario``, ``variant`` and ``initial.mode`` a list of
        names, each as likely as the others. Each variant is compiled once; other varied quantities need no compilation.
    sample : str
        ``"grid"``; or ``"random"``, ``"lhs"`` (a Latin hypercube), ``"sobol"`` (eight scrambled sequences).
    n, seed
        Of a sample: runs, for ``"sobol"`` eight times a power of two; the same seed gives the same points.
    requirements : sequence of str, optional
        Names of the judged ones; by default all of the model.
    outputs : sequence of str, optional
        Outputs, coordinates and speeds for minimum, maximum and final values; by default, of a grid, the model's
        outputs, or else its coordinates, and none of a sample.
    options
        Of runs (:class:`fsm_dyn.RunOptions`); inputs as Python functions need ``jobs=1``. ``parameters`` are the centre
        of a sample.
    jobs : int, optional
        Processes, with the same result for any number; by default one per core, as far as there are runs for them.
    client : str or distributed.Client, optional
        A dask cluster for the runs, or the address of its scheduler, in place of processes here.
    ledger : path, optional
        An SQLite file of results, written as they come; stored results are not computed again.
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
    shared = {name: value for name, value in options.items() if value is not None}
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
    kept_results = None if ledger is None else _ledger(Path(ledger), points, settings)
    parts = [(part.graph, part.cases) for part in points.parts]
    results = study_results(parts, StudyTask(judged_runs, settings), jobs, kept_results, client)
    columns = StudyColumns(points.count, judged, chosen, times)
    numbers = (int(i) for part in points.parts for i in part.numbers)
    for done, (i, run) in enumerate(zip(numbers, results, strict=True), start=1):
        columns.put(i, run)
        if progress is not None:
            progress(done, points.count)
    found = _study(graph, sample, points, times, columns)
    warn_of_energy(graph.name, found.warnings)
    return found


def _study(graph: ModeGraph, sample: str, points: StudyPoints, times: Floats, columns: StudyColumns) -> Study:
    """Return the study of columns that are complete."""
    mechanism, names = graph.automaton.mechanism, {*points.parameters, *columns.margins, *columns.extremes}
    units = variable_units(mechanism, (*columns.extremes, *points.parameters)) | requirement_units(mechanism)
    return Study(
        model=graph.name,
        sample=sample,
        parameters=points.parameters,
        times=times,
        nominal=points.nominal,
        units={name: unit for name, unit in units.items() if name in names},
        distributions=points.distributions,
        compiled=sum(part.graph is not graph for part in points.parts),
        replicates=points.replicates,
        **columns.finished(),
    )


@typed
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
    """Return the judged requirements: those chosen, or those of all graphs."""
    known = [graph.automaton.mechanism.requirements for graph in graphs]
    for name in chosen or ():
        if not all(name in each for each in known):
            raise InputError(f"no requirement '{name}'", remedy=did_you_mean(name, list(known[0])))
    return tuple(name for name in known[0] if all(name in each for each in known)) if chosen is None else (*chosen,)


def _outputs(
    graph: ModeGraph, graphs: Sequence[ModeGraph], chosen: Sequence[str] | None, usual: bool
) -> tuple[str, ...]:
    """Return the outputs of the study: those chosen, else the usual ones if requested."""
    if chosen is None and usual:
        chosen = (*graph.automaton.mechanism.outputs,) or graph.automaton.terms.layout.q
    for each in graphs:
        check_quantities(each, chosen or ())
    return tuple(chosen or ())


def _end(points: StudyPoints, vary: Mapping[str, Any], shared: Mapping[str, Any]) -> float:
    """Return the end of the longest run, s, without the influence of varied numbers."""
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
    """Return the run of these bytes; raise ValueError if it is none of this study."""
    found = _DECODER.decode(data)
    if not found.verdicts.keys() == found.margins.keys() == {*requirements}:
        raise ValueError("other requirements")
    if found.outputs.keys() != {*outputs} or found.curves.keys() - {*outputs}:
        raise ValueError("other outputs")
    if any(len(curve) != 8 * points for curve in found.curves.values()):
        raise ValueError("a curve of another length")
    return found
