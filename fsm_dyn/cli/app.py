"""The commands of ``fsm-dyn``."""

from __future__ import annotations

import signal
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fsm_dyn.cli.console import Quiet, Verbose, handle_errors, set_progress, with_progress_options

# Command to its module and its line in the list of commands, in the order in which a user meets them. The function of
# `name` in the module is `name_command`.
COMMANDS = {
    "new": ("model_commands", "Write a commented starter file."),
    "models": ("model_commands", "List the mechanisms that come with the package."),
    "schema": ("model_commands", "Print the JSON Schema of the model language, for editors."),
    "check": ("model_commands", "Compile a model; list contents, infeasible modes, tolerances."),
    "verify": ("study", "Compare independent derivations of a model's equations."),
    "compile": ("model_commands", "Derive all modes and list their sizes."),
    "graph": ("model_commands", "Draw what a run visits, or with --all the mode graph."),
    "equations": ("model_commands", "Write the equations of a mode: HTML, LaTeX, SymPy, NumPy, C."),
    "check-equation": ("model_commands", "Check an equation worked by hand, term by term."),
    "run": ("run", "Simulate a model; list the phases or modes that it visits."),
    "study": ("study", "Run a model over a grid, or over a sample of its tolerances."),
    "fit": ("study", "Find the parameters that reproduce a measured motion."),
    "explain": ("run", "Explain the mode at a time: transitions, forces, guards."),
    "loads": ("run", "List peak forces and impulses in every connection."),
    "export": ("export", "Write a model as sources that run without Python."),
    "live": ("live", "Run a model coupled to a device; report its timing."),
    "view": ("live", "Run a model live on a page, or play back a recorded run."),
    "device": ("device", "Couple a model to a device, real or emulated, with a page."),
    "passivity": ("passivity", "Assess the passivity of a model and a device."),
    "demo": ("run", "Compile, run and draw the shopping cart."),
}

# Words that other tools have for a command.
_ELSEWHERE = {
    "simulate": "run", "plot": "run", "draw": "run", "play": "view", "show": "view", "gui": "view", "edit": "view",
    "build": "compile", "validate": "check", "lint": "check", "list": "models", "init": "new", "create": "new",
    "fmu": "export", "sweep": "study", "help": "--help", "version": "--version",
}  # fmt: skip


def command_of(name: str) -> TyperCommand:
    """Import the module of a command of ``COMMANDS`` and return the command with its options."""
    module, line = COMMANDS[name]
    function = getattr(import_module(f"fsm_dyn.cli.{module}"), f"{name.replace('-', '_')}_command")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, short_help=line)(with_progress_options(function))
    return cast(TyperCommand, get_command(alone))


class _Commands(TyperGroup):
    """The commands, imported one by one when they are called: the list of all answers at once."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update({name: TyperCommand(name, short_help=line) for name, (_, line) in COMMANDS.items()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command called; to one unknown, the error offers the word that it has here."""
        if args and args[0] in _ELSEWHERE:
            ctx.fail(f"Unknown command '{args[0]}'. Did you mean '{_ELSEWHERE[args[0]]}'?")
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = command_of(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="fsm-dyn",
    cls=_Commands,
    help="Mechanisms whose contacts come and go: from YAML to a graph of modes that runs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # an unexpected exception is a bug: show its plain traceback
    rich_markup_mode=None,
)


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
