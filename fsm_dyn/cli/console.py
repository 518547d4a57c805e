"""The commands of ``fsm-dyn``, and their common parts: results to stdout, errors to stderr, exit codes."""

from __future__ import annotations

import functools
import inspect
import json
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, ParamSpec, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fsm_dyn.core.errors import FsmDynError, InputError, ModelWarning

P = ParamSpec("P")
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; results and errors remain.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show each stage and the time it took.")]

FAILED, BAD_INPUT = 1, 2
_PATIENCE = 1.0  # s before progress is shown
_progress = {"quiet": False, "verbose": False}  # of this process, set by the options before the command


def handle_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the package's errors into a message on stderr and an exit code; let every other exception through."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _shown_by(warnings.showwarning)
                command(*args, **kwargs)
        except InputError as error:
            print_status(f"error: {error}")
            raise typer.Exit(BAD_INPUT) from None
        except FsmDynError as error:  # a library built from other sources among them
            print_status(f"failed: {error}")
            raise typer.Exit(FAILED) from None
        except BrokenPipeError:  # the reader of the output has terminated
            raise
        except OSError as error:  # a full disk, a folder without permission to write
            print_status(f"failed: {error.filename}: {error.strerror}" if error.filename else f"failed: {error}")
            raise typer.Exit(FAILED) from None

    return wrapped


def _shown_by(usual: Callable[..., None]) -> Callable[..., None]:
    """Return a function that shows warnings of models in one line, with locations in files, and others as usual."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, ModelWarning):
            print_status(f"warning: {message}")
        else:
            usual(message, category, *where, **more)

    return show


def print_status(text: str) -> None:
    """Print a line to stderr, separate from the results."""
    typer.echo(text, err=True)


def set_progress(quiet: bool, verbose: bool) -> None:
    """Choose whether progress is not shown at all, or each stage with the time it took.

    Raises
    ------
    InputError
        Both were asked for.
    """
    if quiet and verbose:
        raise InputError("--quiet and --verbose exclude each other")
    _progress.update(quiet=quiet, verbose=verbose)


def with_progress_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options ``--quiet`` and ``--verbose``, in addition to those before the command."""

    @handle_errors
    @functools.wraps(command)
    def wrapped(*args: Any, quiet: bool = False, verbose: bool = False, **kwargs: Any) -> None:
        set_progress(quiet or _progress["quiet"], verbose or _progress["verbose"])
        command(*args, **kwargs)

    signature = inspect.signature(command, eval_str=True)  # the modules keep annotations as text
    both = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", Quiet), ("verbose", Verbose))
    ]
    wrapped.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *both])  # type: ignore[attr-defined]
    return wrapped


def print_json(data: Any) -> None:
    """Print data as JSON; infinite numbers and NaN become null."""
    typer.echo(json.dumps(_plain(data), indent=2, ensure_ascii=False))


class Progress:
    """Status of a task longer than a second."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.detail = ""
        self.finished = threading.Event()

    def reached(self, time_: float) -> None:
        """Set the time reached by a run, s."""
        self.detail = f", at t = {time_:.3g} s"

    def counted(self, done: int, of: int, what: str = "runs") -> None:
        """Set the number of finished runs or other items."""
        self.detail = f", {done} of {of} {what}"

    def report(self) -> None:
        """Show a spinner on a terminal, else one line."""
        started = time.monotonic()
        if self.finished.wait(_PATIENCE):
            return
        if not sys.stderr.isatty():
            print_status(f"{self.text} ...")
            return
        # Imported here: only long tasks pay for it.
        from rich.console import Console

        with Console(stderr=True).status(self.text) as status:
            while not self.finished.wait(0.25):
                status.update(f"{self.text}{self.detail}  ({time.monotonic() - started:.0f} s)")


@contextmanager
def progress_message(text: str, quiet: bool = False) -> Iterator[Progress]:
    """Report a task once it takes longer than a second, or as :func:`set_progress` has it."""
    progress = Progress(text)
    if quiet or _progress["quiet"]:
        yield progress
        return
    if _progress["verbose"]:
        began = time.monotonic()
        print_status(f"{text} ...")
        yield progress
        print_status(f"{text}: {time.monotonic() - began:.2f} s")
        return
    reporter = threading.Thread(target=progress.report, daemon=True)
    reporter.start()
    try:
        yield progress
    finally:
        progress.finished.set()
        reporter.join()


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if hasattr(data, "tolist"):
        return _plain(data.tolist())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


# -- The table of commands; each is imported when it is called -----------------------------------------------

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
    "export": ("model_commands", "Write a model as sources that run without Python."),
    "live": ("live", "Run a model coupled to a device; report its timing."),
    "view": ("live", "Run a model live on a page, or play back a recorded run."),
    "device": ("device", "Couple a model to a device, real or emulated, with a page."),
    "passivity": ("device", "Assess the passivity of a model and a device."),
    "demo": ("run", "Compile, run and draw the shopping cart."),
}

# Words of other tools for a command.
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
        """Return the command called; to one unknown, the error offers the word for it here."""
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
