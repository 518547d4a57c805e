"""The command ``verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from fsm_dyn.cli.console import handle_errors, print_json
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model


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
