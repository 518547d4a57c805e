"""The command ``study``: runs of a model over a grid of values, over a sample of its tolerances, or a search."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, assignments, distributions, listed
from fsm_dyn.cli.console import handle_errors, print_json, progress_message
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.cli.output_paths import prepare_folder
from fsm_dyn.cli.worst_case import print_worst_case
from fsm_dyn.errors import EnergyWarning, InputError
from fsm_dyn.interrupts import asked_to_end

_GRID: Final = "grid"
_RUNS: Final = 256


@handle_errors
def study_command(
    model: Model,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="NAME=FIRST..LAST:COUNT",
            help="A range, let_off=0.5..3mm:6, or values one by one, variant=[none, felt]; a parameter, initial.NAME, "
            "input.NAME, amplitude.NAME, scenario or variant; in a sample or search a distribution of numbers, "
            "initial.y='1 m +- 5 cm'; repeat.",
        ),
    ] = None,
    sample: Annotated[
        str,
        typer.Option("--sample", help="grid: every combination; random, lhs or sobol: a sample of the tolerances."),
    ] = _GRID,
    worst: Annotated[
        str | None, typer.Option("--worst", metavar="REQUIREMENT", help="Search for the run that violates it most.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option("--runs", help=f"Runs of a sample or search; default: {_RUNS}.", min=1)
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of a sample or search: the same seed gives the same runs.")
    ] = None,
    scenario: ScenarioOption = None,
    until: Annotated[
        float | None,
        typer.Option("--until", help="End of each run, s; default: that of `run`.", min=0.0),
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
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for a CSV file and the figures.")] = None,
    as_json: Json = False,
) -> None:
    """Run a model over a grid of values, or over a sample of its tolerances, on all cores."""
    # The public half of the package: the runtime and the machine-code compiler.
    from fsm_dyn.analysis.study import study
    from fsm_dyn.cli.study_output import print_study, study_as_json, write_study

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
    """Refuse options that exclude each other, or that would have no effect, by their names."""
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
