"""The command ``fit``: parameters of a model from a measured motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, assignments
from fsm_dyn.cli.console import handle_errors, print_json, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.interrupts import asked_to_end


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
    from fsm_dyn.analysis.fit import fit

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
