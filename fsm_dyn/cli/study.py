"""The command ``study``: runs of a model over a grid of parameter values."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, assignments
from fsm_dyn.cli.console import handle_errors, print_json, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.cli.output_paths import prepare_folder
from fsm_dyn.errors import InputError
from fsm_dyn.interrupts import asked_to_end

if TYPE_CHECKING:
    from fsm_dyn.analysis.study import Study

_UNTIL = 1.0  # s


@handle_errors
def study_command(
    model: Model,
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary", metavar="NAME=FIRST..LAST:COUNT", help="A parameter's range, let_off=0.5..3mm:6; repeat."
        ),
    ],
    scenario: ScenarioOption = None,
    until: Annotated[float, typer.Option("--until", help="End of each run, s.", min=0.0)] = _UNTIL,
    quantity: Annotated[
        list[str] | None, typer.Option("--quantity", help="An output, coordinate or speed to evaluate; repeat.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Processes; by default one per core.", min=1)] = None,
    set_: Set = None,
    input_: Input = None,
    initial: Initial = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for a CSV file and the figure.")] = None,
    as_json: Json = False,
) -> None:
    """Run a model over a grid of parameter values, on all cores, and compare."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.study import read_range, study

    if out is not None:
        prepare_folder("--out", out)
    ranges: dict[str, list[str]] = {}
    for text in vary:
        name, values = read_range(text)
        if name in ranges:
            raise InputError("--vary names one parameter twice", found=name)
        ranges[name] = values
    with asked_to_end() as asked, asked.at_once():
        graph = ready_graph(model, None, as_json)
        with progress_message(f"studying {graph.name}", as_json) as progress:
            found = study(
                graph, dict(ranges), until=until, scenario=scenario, inputs=assignments("--input", input_),
                parameters=assignments("--set", set_), initial=assignments("--initial", initial),
                quantities=quantity, jobs=jobs, progress=progress.counted,
            )  # fmt: skip
            files = [] if out is None else _write(found, out)
    headings, lines = found.table()
    if as_json:
        rows = [dict(zip(headings, line, strict=True)) for line in lines]
        print_json({"model": found.model, "rows": rows, "files": [str(path) for path in files]})
        return
    texts = [[f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in line] for line in lines]
    typer.echo(table(headings, texts))
    for path in files:
        typer.echo(f"wrote {path}")


def _write(found: Study, folder: Path) -> list[Path]:
    """Write the rows as CSV and the figure by the first parameter; return the paths."""
    # Matplotlib, for the picture only.
    from fsm_dyn import plot

    listing = folder / f"{found.model}_study.csv"
    headings, lines = found.table()
    with listing.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headings, *lines])
    rows = [row for row in found.rows if row.curves]
    if not rows:
        return [listing]
    first = found.varied[0]
    curves = {name: [row.curves[name] for row in rows] for name in found.quantities}
    title = f"{found.model}: {', '.join(found.varied)}"
    figure = plot.study(title, (first, [row.values[first] for row in rows]), found.times, curves, found.units)
    return [listing, plot.save(figure, folder / f"{found.model}_study.png")]
