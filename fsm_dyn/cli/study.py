"""The commands ``study``, ``fit`` and ``verify``."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fsm_dyn.cli.console import (
    Initial,
    Input,
    ScenarioOption,
    Set,
    assignments,
    distributions,
    duration,
    handle_errors,
    listed,
    prepare_folder,
    print_json,
    progress_message,
    run_option,
)
from fsm_dyn.cli.model_commands import Json, Model, ready_graph
from fsm_dyn.core.errors import EnergyWarning, InputError
from fsm_dyn.core.files import whole_file, write_file
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.draw.svg import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fsm_dyn.analysis.study_results import Study
    from fsm_dyn.automaton.mode_graph import ModeGraph


# -- The option ``--worst`` of the command ``study`` ---------------------------------------------------------
#
# The option ``--worst`` of the command ``study``: a search for the worst violation of a requirement.


def print_worst_case(
    model: str,
    requirement: str,
    vary: Mapping[str, Any] | None,
    runs: int,
    seed: int,
    options: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """Search, print the worst cases, and write every violating run to ``out``."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.searches import worst_case

    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"searching {graph.name}", as_json) as progress:
            found = worst_case(
                graph, requirement, vary=vary, runs=runs, seed=seed, progress=progress.counted, **options
            )
    violations = found.violations if out is not None else ()
    files = [
        item.run.save(Path(out or "") / f"{graph.name}_{requirement}_{k:03d}.run.json")
        for k, item in enumerate(violations)
    ]  # fmt: skip
    if as_json:
        print_json(
            {
                "model": graph.name, "requirement": requirement, "seed": seed, "runs": found.runs,
                "undecided": found.undecided, "failed": found.failed, "violations": len(found.violations),
                "box": found.box, "values": found.values, "margin": found.margin, "unit": found.unit,
                "files": [str(path) for path in files],
            }
        )  # fmt: skip
        return
    typer.echo(str(found))
    if found.values:
        point = ", ".join(f"{name} = {value:.6g}" for name, value in found.values.items())
        typer.echo(f"smallest margin {found.margin:.6g} {found.unit}, at {point}")
    for item in found.violations[:1]:
        for transition in item.judgement.chain:
            typer.echo(f"  {transition}")
    for path in files:
        typer.echo(f"wrote {path}")


# -- The command ``study`` -----------------------------------------------------------------------------------
#
# The command ``study``: runs of a model over a grid of values, over a sample of its tolerances, or a search.

_GRID: Final = "grid"
_RUNS: Final = 256

Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="NAME=FIRST..LAST:COUNT",
        help="A range, let_off=0.5..3mm:6, or values one by one, variant=[none, felt]; a parameter, initial.NAME, "
        "input.NAME, amplitude.NAME, scenario or variant; in a sample or search a distribution of numbers, "
        "initial.y='1 m +- 5 cm'; repeat.",
    ),
]
Sample = Annotated[
    str,
    typer.Option("--sample", help="grid: every combination; random, lhs or sobol: a sample of the tolerances."),
]
Worst = Annotated[
    str | None, typer.Option("--worst", metavar="REQUIREMENT", help="Search for the run that violates it most.")
]
RunCount = Annotated[int | None, typer.Option("--runs", help=f"Runs of a sample or search; default: {_RUNS}.", min=1)]
Seed = Annotated[int | None, typer.Option("--seed", help="Of a sample or search: the same seed gives the same runs.")]
EndOfRuns = Annotated[
    float | None,
    run_option("until", help="End of each run, s; default: that of `run`.", parser=duration, metavar="TIME"),
]
Quantities = Annotated[
    list[str] | None, typer.Option("--quantity", help="An output, coordinate or speed to evaluate; repeat.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes; by default one per core.", min=1)]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Runs on a cluster of dask: tcp://HOST:PORT."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Results as they come: the same command again continues."),
]
StudyFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for a CSV file and the figures.")]


@handle_errors
def study_command(
    model: Model,
    vary: Vary = None,
    sample: Sample = _GRID,
    worst: Worst = None,
    runs: RunCount = None,
    seed: Seed = None,
    scenario: ScenarioOption = None,
    until: EndOfRuns = None,
    quantity: Quantities = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    ledger: LedgerFile = None,
    set_: Set = None,
    input_: Input = None,
    initial: Initial = None,
    out: StudyFolder = None,
    as_json: Json = False,
) -> None:
    """Run a model over a grid of values, or over a sample of its tolerances, on all cores."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.study import study

    where = {"--jobs": jobs, "--scheduler": scheduler}
    _check_together(
        sample, worst, vary, {**where, "--quantity": quantity, "--ledger": ledger}, {"--runs": runs, "--seed": seed}
    )
    if out is not None:
        prepare_folder("--out", out)
    every = {
        "scenario": scenario, "until": until, "inputs": assignments("--input", input_),
        "parameters": assignments("--set", set_), "initial": assignments("--initial", initial),
    }  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in every.items() if value is not None}
    n, seed = _RUNS if runs is None else runs, seed or 0
    if worst is not None:
        print_worst_case(model, worst, distributions(vary), n, seed, options, out, as_json)
        return
    varied = _ranges(vary or []) if sample == _GRID else distributions(vary)
    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"studying {graph.name}", as_json) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", EnergyWarning)  # the report has it
            found = study(
                graph, varied, sample=sample, n=n, seed=seed, outputs=quantity, jobs=jobs, client=scheduler,
                ledger=ledger, progress=progress.counted, **options,
            )  # fmt: skip
            files = [] if out is None else write_study(found, graph, out)
    if as_json:
        print_json(study_as_json(found, files))
    else:
        print_study(found, files)


def _check_together(
    sample: str,
    worst: str | None,
    vary: list[str] | None,
    not_of_search: Mapping[str, Any],
    not_of_grid: Mapping[str, Any],
) -> None:
    """Refuse mutually exclusive options, and options without effect, by their names."""
    if worst is not None and sample != _GRID:
        raise InputError("--worst and --sample are two studies", remedy="leave out one of them")
    if worst is None and sample == _GRID and not vary:
        raise InputError("a study needs --vary or --sample", remedy="--vary let_off=0.5..3mm:6, or --sample sobol")
    kind, idle = "--worst", not_of_search
    if worst is None:
        kind, idle = "a grid", not_of_grid if sample == _GRID else {}
    useless = [name for name, value in idle.items() if value not in (None, [])]
    if useless:
        raise InputError(f"options that have no effect on {kind}", found=", ".join(useless), remedy="leave them out")
    if not_of_search["--scheduler"] is not None and not_of_search["--jobs"] is not None:
        raise InputError("--jobs are processes here, --scheduler a cluster", remedy="leave out one of them")


def _ranges(vary: list[str]) -> dict[str, list[Any]]:
    """Return the values of each name of ``--vary``: of a range, or of a list in brackets."""
    from fsm_dyn.analysis.study import read_range

    found: dict[str, list[Any]] = {}
    for text in vary:
        name, _, rest = (part.strip() for part in text.partition("="))
        if name and rest.startswith("["):
            values = listed("--vary", rest)
            if not values:
                raise InputError("--vary has no values", found=text, allowed="NAME=[FIRST, SECOND]")
        else:
            name, values = read_range(text)
        if name in found:
            raise InputError("--vary gives one name twice", found=name)
        found[name] = values
    return found


# -- Outputs of the command ``study``: tables, data, figures -------------------------------------------------

_SEQUENCES: Final = 8  # of modes, listed
_WIDE: Final = 90  # characters
_ROUNDING: Final = 1e-12  # of the largest value of an output: less is printed as zero

Row = list[float | int | str]


def study_as_json(found: Study, files: Sequence[Path]) -> dict[str, Any]:
    """Return a study as data for JSON."""
    headings, lines = found.table()
    data: dict[str, Any] = {
        "model": found.model, "sample": found.sample, "compiled": found.compiled,
        "requirements": {name: found.counts(name) for name in _judged(found)},
        "sequences": [{"modes": modes, "verdicts": counts} for modes, counts in found.mode_sequences().items()],
        "nearest_failure": found.nearest_failure(), "warnings": found.warnings,
    }  # fmt: skip
    if found.distributions:
        data |= {
            "runs": len(found.outcomes), "distributions": found.distributions,
            "yield": {name: asdict(found.estimate(name)) for name in _judged(found)},
            "sensitivity": {name: found.sensitivity(name) for name in found.margins},
        }  # fmt: skip
    rows = [dict(zip(headings, line, strict=True)) for line in lines]
    return data | {"rows": rows, "files": [str(path) for path in files]}


def print_study(found: Study, files: Sequence[Path]) -> None:
    """Print a study: of a grid its rows, of a sample yields and sensitivities; then the sequences of modes."""
    if found.compiled:
        typer.echo(f"compiled {found.compiled} variant{'s' if found.compiled > 1 else ''}")
    if found.distributions:
        _print_yields(found)
    else:
        headings, lines = _readable(found)
        typer.echo(table(headings, [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in line] for line in lines]))
        if found.margins:
            from fsm_dyn.run.judgement import VERDICTS  # after the run-time half of the package

            counts = [(name, *(str(found.counts(name)[word]) for word in VERDICTS)) for name in _judged(found)]
            typer.echo("\n" + table(("requirement", *VERDICTS), counts))
    typer.echo("\n" + _sequences(found))
    nearest = found.nearest_failure() if found.margins else None
    if nearest is not None:
        point = ", ".join(
            f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in found.rows[nearest].values.items()
        )
        typer.echo(f"\nviolated nearest to the nominal values: run {nearest}, {point}")
    for text in found.warnings:
        typer.echo(f"\nwarning: {text}")
    for path in files:
        typer.echo(f"wrote {path}")


def _judged(found: Study) -> list[str]:
    """Return the requirements, and all together."""
    return [*found.verdicts] if found.margins else []


def _readable(found: Study) -> tuple[list[str], list[Row]]:
    """Return a study's table for printing: headings with units, rounding errors as zero, names elided."""
    import numpy as np

    from fsm_dyn.automaton.labels import LONGEST  # after the run-time half of the package
    from fsm_dyn.draw.graph_layout import elided

    headings, lines = found.table()
    owners = [*found.varied, "", "end", "", "", *(name for name in found.outputs for _ in range(3))]
    owners += [text for name in found.margins for text in ("", name)]
    owners += [""] if found.warnings else []  # the energy balance; the modes are listed apart
    largest = {name: np.nanmax(np.abs([*parts.values()]), initial=0.0) for name, parts in found.outputs.items()}
    units = {**found.units, "end": "s"}
    titles = [
        heading if units.get(name, "1") == "1" else f"{heading}, {units[name]}"
        for heading, name in zip(headings, owners, strict=False)
    ]
    return titles, [
        [
            elided(x, LONGEST) if isinstance(x, str)
            else 0.0 if isinstance(x, float) and abs(x) <= _ROUNDING * largest.get(name, 0.0)
            else x
            for x, name in zip(line, owners, strict=False)
        ]
        for line in lines
    ]  # fmt: skip


def _print_yields(found: Study) -> None:
    """Print distributions, yields with their intervals, and rank correlations."""
    for name, distribution in found.distributions.items():
        unit = found.units.get(name, "1")
        typer.echo(f"{name}: {distribution}" + ("" if unit == "1" else f" {unit}"))
    if not found.margins:
        return
    rows = [(name, *_estimate(found, name, None)) for name in _judged(found)]
    typer.echo("\n" + table(("requirement", *_ESTIMATE), rows))
    for word in (name for name, column in found.parameters.items() if column.dtype == object):
        column = found.parameters[word]
        rows = [
            (name, value, *_estimate(found, name, column == value))
            for name in _judged(found)
            for value in dict.fromkeys(column.tolist())
        ]
        typer.echo("\n" + table(("requirement", word, *_ESTIMATE), rows))
    strongest = [
        (name, parameter, f"{value:+.2f}")
        for name in found.margins
        for parameter, value in found.sensitivity(name).items()
    ]
    if strongest:
        typer.echo("\n" + table(("margin of", "parameter", "rank correlation"), strongest))


_ESTIMATE: Final = ("met", "violated", "undecided", "yield", "95 % interval")


def _estimate(found: Study, name: str, among: Any) -> tuple[str, ...]:
    item = found.estimate(name, among)
    counts = (str(count) for count in (item.met, item.violated, item.undecided))
    return (*counts, f"{item.value:.4g}", f"{item.lower:.4g} to {item.upper:.4g}")


def _sequences(found: Study) -> str:
    """Return the most frequent sequences of modes as a table."""
    from fsm_dyn.draw.graph_layout import sequence_labels  # after the run-time half of the package

    groups = list(found.mode_sequences().items())
    frequent = groups[:_SEQUENCES]
    lines = []
    for (_, verdicts), text in zip(frequent, sequence_labels([modes for modes, _ in frequent], _WIDE), strict=True):
        counted = (", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()),) if found.margins else ()
        lines.append((str(sum(verdicts.values())), *counted, text))
    others = groups[_SEQUENCES:]
    if others:
        count = sum(sum(verdicts.values()) for _, verdicts in others)
        lines.append((str(count), *[""][: bool(found.margins)], f"{len(others)} other sequences"))
    return table(("runs", *["verdicts"][: bool(found.margins)], "modes"), lines)


def write_study(found: Study, graph: ModeGraph, folder: Path) -> list[Path]:
    """Write the rows as CSV, and the figures; return the paths."""
    # Matplotlib, for the pictures only.
    from fsm_dyn import plot
    from fsm_dyn.analysis.study_results import shares_svg

    kind = "sample" if found.distributions else "study"
    files = [folder / f"{found.model}_{kind}.csv"]
    headings, lines = found.table()
    with whole_file(files[0]) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headings, *lines])
    if found.curves:
        files.append(plot.save(_curves(found), folder / f"{found.model}_study.png"))
    if found.distributions and found.margins:
        estimates = {name: found.estimate(name) for name in found.verdicts}
        intervals = {name: (item.value, item.lower, item.upper) for name, item in estimates.items()}
        sensitivities = {name: found.sensitivity(name) for name in found.margins}
        figure = plot.requirements(found.model, intervals, sensitivities, found.margins, found.units)
        files.append(plot.save(figure, folder / f"{found.model}_yield.png"))
    files.append(folder / f"{found.model}_shares.svg")
    write_file(files[-1], shares_svg(found, graph))
    numbers = {name: column for name, column in found.parameters.items() if column.dtype != object}
    if len(numbers) > 1:
        across, up, *_ = numbers.items()
        verdicts = found.verdicts["all"] if found.margins else None
        title, filled = f"{found.model}: sequences of modes", len(found.parameters) == 2
        figure = plot.sequence_map(title, across, up, found.sequences, verdicts, found.units, filled=filled)
        files.append(plot.save(figure, folder / f"{found.model}_map.png"))
    return files


def _curves(found: Study) -> Figure:
    """Return the figure of outputs over time, and of their extremes over the first varied parameter."""
    # Matplotlib, for the pictures only.
    import numpy as np

    from fsm_dyn import plot

    started = np.array([bool(modes) for modes in found.sequences])
    first, column = next(iter(found.parameters.items()))
    curves = {name: [*curve[started]] for name, curve in found.curves.items()}
    extremes = {
        name: [*zip(parts["minimum"][started], parts["maximum"][started], strict=True)]
        for name, parts in found.outputs.items()
    }
    title = f"{found.model}: {', '.join(found.varied)}"
    return plot.study(title, (first, column[started].tolist()), found.times, curves, found.units, extremes)


# -- The command ``fit``: parameters of a model from a measured motion ---------------------------------------


@handle_errors
def fit_command(
    model: Model,
    measured: Annotated[Path, typer.Argument(help="CSV: t, and coordinates, speeds or outputs; x [mm] has a unit.")],
    vary: Annotated[str, typer.Option("--vary", metavar="NAME,NAME", help="The parameters to find.")],
    scenario: ScenarioOption = None,
    set_: Set = None,
    input_: Input = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Find the parameters with which runs follow a measured motion best."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.searches import fit

    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"fitting {graph.name}", as_json):
            found = fit(
                graph, measured, vary=[name.strip() for name in vary.split(",") if name.strip()], scenario=scenario,
                parameters=assignments("--set", set_), inputs=assignments("--input", input_),
                initial=assignments("--initial", initial),
            )  # fmt: skip
    if as_json:
        print_json(
            {
                "model": graph.name, "values": found.values, "intervals": found.intervals,
                "undetermined": found.undetermined, "residuals": found.residuals, "runs": found.runs,
                "units": {name: found.units.get(name, "") for name in (*found.values, *found.residuals)},
            }
        )  # fmt: skip
        return
    typer.echo(str(found))
    rows = [(name, f"{value:.4g} {found.units.get(name, '')}") for name, value in found.residuals.items()]
    typer.echo("\n" + table(("column", "residual, root mean square"), rows))


# -- The command ``verify`` ----------------------------------------------------------------------------------


@handle_errors
def verify_command(
    model: Model,
    states: Annotated[int, typer.Option("--states", help="Number of random states of each mode.")] = 20,
    mode: Annotated[list[str] | None, typer.Option("--mode", help="Only this mode. Repeat it for more.")] = None,
    successors: Annotated[
        bool,
        typer.Option("--successors", help="Also modes to which guards lead, which a run derives when it meets them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare independent derivations of the equations of modes at random states."""
    # brings SymPy and the compiler along
    from fsm_dyn.analysis.verification import verify

    found = verify(model, states=states, modes=mode or None, successors=successors)
    if as_json:
        print_json(
            {
                "model": found.model,
                "modes": dict(found.modes),
                "passed": found.passed,
                "complete": found.complete,
                "comparisons": [
                    {"mode": c.mode, "name": c.name, "max_relative_difference": c.difference, "note": c.remark}
                    for c in found.comparisons
                ],
            }
        )
    else:
        typer.echo(str(found))
    if not found.passed:
        raise typer.Exit(1)
