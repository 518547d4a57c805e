"""The command ``study``: runs of a model over a grid of parameter values."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, assignments, distributions, listed
from fsm_dyn.cli.console import handle_errors, print_json, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.cli.output_paths import prepare_folder
from fsm_dyn.cli.worst_case import print_worst_case
from fsm_dyn.errors import InputError
from fsm_dyn.interrupts import asked_to_end
from fsm_dyn.whole_files import whole_file, write_file

if TYPE_CHECKING:
    from fsm_dyn.analysis.study import Study
    from fsm_dyn.analysis.yields import ToleranceStudy
    from fsm_dyn.automaton.mode_graph import ModeGraph

_UNTIL = 1.0  # s
_SEQUENCES = 8  # of modes, listed
_WIDE = 90  # characters
_ROUNDING = 1e-12  # of the largest value of a quantity: less is printed as zero


@handle_errors
def study_command(
    model: Model,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="NAME=FIRST..LAST:COUNT",
            help="A range, let_off=0.5..3mm:6, or values one by one, variant=[none, felt]; a parameter, initial.NAME, "
            "input.NAME, amplitude.NAME, scenario or variant; with --sample or --worst a distribution of numbers, "
            "initial.y='1 m +- 5 cm'; repeat.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option("--sample", help="random, lhs or sobol: sample the model's tolerances, judge its requirements."),
    ] = None,
    worst: Annotated[
        str | None, typer.Option("--worst", metavar="REQUIREMENT", help="Search for the run that violates it most.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="Runs of a sample or search.", min=1)] = 256,
    seed: Annotated[int, typer.Option("--seed", help="Of a sample or search: the same seed gives the same runs.")] = 0,
    scenario: ScenarioOption = None,
    until: Annotated[
        float | None,
        typer.Option("--until", help="End of each run, s; default: 1 s, of a sample the model's end.", min=0.0),
    ] = None,
    quantity: Annotated[
        list[str] | None, typer.Option("--quantity", help="An output, coordinate or speed to evaluate; repeat.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Processes; by default one per core.", min=1)] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Runs on a cluster of dask: tcp://HOST:PORT."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="Results as they come: the same command again continues."),
    ] = None,
    set_: Set = None,
    input_: Input = None,
    initial: Initial = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for a CSV file and the figure.")] = None,
    as_json: Json = False,
) -> None:
    """Run a model over a grid of values, or over a sample of its tolerances, on all cores."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.study import study

    if scheduler is not None and jobs is not None:
        raise InputError("--jobs are processes here, --scheduler a cluster", remedy="leave out one of them")
    if out is not None:
        prepare_folder("--out", out)
    options: dict[str, Any] = {
        "scenario": scenario, "until": until, "inputs": assignments("--input", input_),
        "parameters": assignments("--set", set_), "initial": assignments("--initial", initial),
    }  # fmt: skip
    if worst is not None:
        if sample is not None:
            raise InputError("--worst and --sample are two studies", remedy="leave out one of them")
        if jobs is not None or quantity or ledger is not None or scheduler is not None:
            raise InputError(
                "--jobs, --scheduler, --quantity and --ledger have no effect on --worst", remedy="leave them out"
            )
        print_worst_case(model, worst, distributions(vary), runs, seed, options, out, as_json)
        return
    if sample is None and not vary:
        raise InputError("a study needs --vary or --sample", remedy="--vary let_off=0.5..3mm:6, or --sample sobol")
    if sample is not None:
        options |= {"vary": distributions(vary), "quantities": quantity}
        _sampled(model, sample, runs, seed, (jobs, scheduler), ledger, options, out, as_json)
        return
    ranges = _ranges(vary or [])
    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"studying {graph.name}", as_json) as progress:
            found = study(
                graph, ranges, until=_UNTIL if until is None else until, scenario=scenario,
                inputs=assignments("--input", input_),
                parameters=assignments("--set", set_), initial=assignments("--initial", initial),
                quantities=quantity, jobs=jobs, client=scheduler, ledger=ledger, progress=progress.counted,
            )  # fmt: skip
            files = [] if out is None else _write(found, out)
    headings, lines = found.table()
    if as_json:
        rows = [dict(zip(headings, line, strict=True)) for line in lines]
        print_json(
            {"model": found.model, "compiled": found.compiled, "rows": rows, "files": [str(path) for path in files]}
        )
        return
    if found.compiled:
        typer.echo(f"compiled {found.compiled} variant{'s' if found.compiled > 1 else ''}")
    headings, lines = _readable(found, headings, lines)
    typer.echo(table(headings, [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in line] for line in lines]))
    for path in files:
        typer.echo(f"wrote {path}")


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


def _readable(
    found: Study, headings: list[str], lines: list[list[float | int | str]]
) -> tuple[list[str], list[list[float | int | str]]]:
    """Return a study's table as it is printed: headings with units, zero where only rounding remains, names elided."""
    owners = [*found.varied, "", "end", "", "", *(name for name in found.quantities for _ in range(3))]
    peaks = {
        name: max((abs(part.get(name, 0.0)) for row in found.rows for part in (row.minimum, row.maximum)), default=0.0)
        for name in found.quantities
    }
    from fsm_dyn.automaton.label_forms import LONGEST  # after the run-time half of the package
    from fsm_dyn.graphics.diagram import elided

    units = {**found.units, "end": "s"}
    titles = [
        heading if units.get(name, "1") == "1" else f"{heading}, {units[name]}"
        for heading, name in zip(headings, owners, strict=True)
    ]
    return titles, [
        [
            elided(x, LONGEST) if isinstance(x, str)
            else 0.0 if isinstance(x, float) and abs(x) <= _ROUNDING * peaks.get(name, 0.0)
            else x
            for x, name in zip(line, owners, strict=True)
        ]
        for line in lines
    ]  # fmt: skip


def _sampled(
    model: str,
    sample: str,
    runs: int,
    seed: int,
    where: tuple[int | None, str | None],
    ledger: Path | None,
    options: dict[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """Sample the model's tolerances and print the yield of its requirements."""
    from fsm_dyn.analysis.yields import ALL, tolerance_study

    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        given = {name: value for name, value in options.items() if value is not None}
        with progress_message(f"studying {graph.name}", as_json) as progress:
            found = tolerance_study(
                graph,
                n=runs,
                seed=seed,
                sample=sample,
                jobs=where[0],
                client=where[1],
                ledger=ledger,
                progress=progress.counted,
                **given,
            )
    headings, lines = found.table()
    files = []
    if out is not None:
        files.append(out / f"{graph.name}_sample.csv")
        _write_csv(files[0], [headings, *lines])
        files += _sample_figures(found, graph, out)
    estimates = {name: found.estimate(name) for name in (*found.margins, ALL)}
    sensitivities = {name: found.sensitivity(name) for name in found.margins}
    if as_json:
        print_json(
            {
                "model": graph.name, "runs": runs, "sample": sample, "seed": seed,
                "distributions": found.distributions,
                "yield": {name: asdict(item) for name, item in estimates.items()},
                "sensitivity": sensitivities, "nearest_failure": found.nearest_failure(),
                "rows": [dict(zip(headings, line, strict=True)) for line in lines],
                "files": [str(path) for path in files],
            }
        )  # fmt: skip
        return
    rows = [
        (name, str(item.met), str(item.violated), str(item.undecided), f"{item.value:.4g}",
         f"{item.lower:.4g} to {item.upper:.4g}")
        for name, item in estimates.items()
    ]  # fmt: skip
    for name, distribution in found.distributions.items():
        unit = found.units.get(name, "1")
        typer.echo(f"{name}: {distribution}" + ("" if unit == "1" else f" {unit}"))
    typer.echo("\n" + table(("requirement", "met", "violated", "undecided", "yield", "95 % interval"), rows))
    strongest = [
        (name, parameter, f"{value:+.2f}")
        for name, items in sensitivities.items()
        for parameter, value in items.items()
    ]
    typer.echo("\n" + table(("margin of", "parameter", "rank correlation"), strongest))
    groups = list(found.mode_sequences().items())[:_SEQUENCES]
    counted = [
        (str(sum(verdicts.values())), ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()), _shortened(modes))
        for modes, verdicts in groups
    ]
    typer.echo("\n" + table(("runs", "verdicts", "modes"), counted))
    nearest = found.nearest_failure()
    if nearest is not None:
        point = ", ".join(f"{name} = {column[nearest]:.6g}" for name, column in found.parameters.items())
        typer.echo(f"\nviolated nearest to the nominal values: run {nearest}, {point}")
    for path in files:
        typer.echo(f"wrote {path}")


def _sample_figures(found: ToleranceStudy, graph: ModeGraph, folder: Path) -> list[Path]:
    """Write the figures of a sample; return the paths."""
    # Matplotlib, for the pictures only.
    from fsm_dyn import plot
    from fsm_dyn.analysis.study_diagrams import shares_svg

    estimates = {name: found.estimate(name) for name in found.verdicts}
    sensitivities = {name: found.sensitivity(name) for name in found.margins}
    intervals = {name: (item.value, item.lower, item.upper) for name, item in estimates.items()}
    figure = plot.requirements(graph.name, intervals, sensitivities, found.margins, found.units)
    files = [plot.save(figure, folder / f"{graph.name}_yield.png"), folder / f"{graph.name}_shares.svg"]
    write_file(files[1], shares_svg(found, graph))
    if len(found.parameters) > 1:
        (across, x), (up, y), *others = found.parameters.items()
        title = f"{graph.name}: sequences of modes"
        columns = (across, x), (up, y), found.sequences, found.verdicts["all"], found.units
        figure = plot.sequence_map(title, *columns, filled=not others)
        files.append(plot.save(figure, folder / f"{graph.name}_map.png"))
    return files


def _shortened(modes: tuple[str, ...]) -> str:
    """Return a sequence of modes as one line of moderate length."""
    text = " > ".join(modes)
    return text if len(text) <= _WIDE else f"{text[: _WIDE // 2]} ... {text[-_WIDE // 2 :]}"


def _write_csv(path: Path, lines: list[list[Any]]) -> None:
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)


def _write(found: Study, folder: Path) -> list[Path]:
    """Write the rows as CSV and the figure by the first parameter; return the paths."""
    # Matplotlib, for the picture only.
    from fsm_dyn import plot

    listing = folder / f"{found.model}_study.csv"
    headings, lines = found.table()
    _write_csv(listing, [headings, *lines])
    rows = [row for row in found.rows if row.curves]
    if not rows:
        return [listing]
    first = found.varied[0]
    curves = {name: [row.curves[name] for row in rows] for name in found.quantities}
    extremes = {name: [(row.minimum[name], row.maximum[name]) for row in rows] for name in found.quantities}
    title = f"{found.model}: {', '.join(found.varied)}"
    varied = first, [row.values[first] for row in rows]
    figure = plot.study(title, varied, found.times, curves, found.units, extremes)
    return [listing, plot.save(figure, folder / f"{found.model}_study.png")]
