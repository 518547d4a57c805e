"""The commands of ``fsm-dyn``."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fsm_dyn.cli.console import Quiet, Verbose, handle_errors, set_progress, with_progress_options
from fsm_dyn.cli.device import device_command
from fsm_dyn.cli.export import export_command
from fsm_dyn.cli.live import live_command, view_command
from fsm_dyn.cli.model_commands import (
    check_command,
    check_equation_command,
    compile_command,
    equations_command,
    graph_command,
    models_command,
    new_command,
    schema_command,
)
from fsm_dyn.cli.passivity import passivity_command
from fsm_dyn.cli.run import demo_command, explain_command, loads_command, run_command
from fsm_dyn.cli.study import fit_command, study_command, verify_command

# Words that other tools have for a command.
_ELSEWHERE = {
    "simulate": "run", "plot": "run", "draw": "run", "play": "view", "show": "view", "gui": "view", "edit": "view",
    "build": "compile", "validate": "check", "lint": "check", "list": "models", "init": "new", "create": "new",
    "fmu": "export", "sweep": "study", "help": "--help", "version": "--version",
}  # fmt: skip


class _Commands(TyperGroup):
    """The commands; an unknown one is answered by the command that other tools call so."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in _ELSEWHERE:
            ctx.fail(f"Unknown command '{args[0]}'. Did you mean '{_ELSEWHERE[args[0]]}'?")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="fsm-dyn",
    cls=_Commands,
    help="Mechanisms whose contacts come and go: from YAML to a graph of modes that runs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # an unexpected exception is a bug: show its plain traceback
    rich_markup_mode=None,
)

# Command name to function, in the order in which a user meets them.
_COMMANDS: dict[str, Callable[..., None]] = {
    "new": new_command,
    "models": models_command,
    "schema": schema_command,
    "check": check_command,
    "verify": verify_command,
    "compile": compile_command,
    "graph": graph_command,
    "equations": equations_command,
    "check-equation": check_equation_command,
    "run": run_command,
    "study": study_command,
    "fit": fit_command,
    "explain": explain_command,
    "loads": loads_command,
    "export": export_command,
    "live": live_command,
    "view": view_command,
    "device": device_command,
    "passivity": passivity_command,
    "demo": demo_command,
}
# Shown in the list of commands instead of first sentences longer than a line of 80 columns.
_SHORT = {
    "new": "Write a commented starter file.",
    "check": "Compile a model; list contents, infeasible modes, tolerances.",
    "verify": "Compare independent derivations of a model's equations.",
    "graph": "Draw what a run visits, or with --all the mode graph.",
    "equations": "Write the equations of a mode: HTML, LaTeX, SymPy, NumPy, C.",
    "check-equation": "Check an equation worked by hand, term by term.",
    "run": "Simulate a model; list the phases or modes that it visits.",
    "study": "Run a model over a grid, or over a sample of its tolerances.",
    "fit": "Find the parameters that reproduce a measured motion.",
    "explain": "Explain the mode at a time: transitions, forces, guards.",
    "loads": "List peak forces and impulses in every connection.",
    "view": "Run a model live on a page, or play back a recorded run.",
    "device": "Couple a model to a device, real or emulated, with a page.",
    "demo": "Compile, run and draw the shopping cart.",
}
for _name, _command in _COMMANDS.items():
    app.command(_name, short_help=_SHORT.get(_name))(with_progress_options(_command))


def _show_version(requested: bool) -> None:
    if requested:
        # Reading the metadata of the installation takes longer than most answers; only --version needs it.
        from importlib.metadata import version

        typer.echo(f"fsm-dyn {version('fsm-dyn')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    handle_errors(set_progress)(quiet, verbose)


def main() -> None:
    """Run the command line; the console script ``fsm-dyn``."""
    try:
        app()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all has ended: Ctrl-C once more has nothing to interrupt
