"""Commands of ``fsm-dyn``: shared options, results to stdout, errors to stderr, exit codes."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ParamSpec, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fsm_dyn.core.errors import FsmDynError, InputError, ModelWarning
from fsm_dyn.run.run_options import declared

# -- Options shared by several commands ------------------------------------------------------------------------


# -- Options of the form NAME=VALUE --------------------------------------------------------------------------


def run_option(name: str, **given: Any) -> Any:
    """Return an option of a run as its declaration has it (:class:`fsm_dyn.run.run_options.RunOptions`).

    ``given``: further arguments of ``typer.Option``; they replace those of the declaration.
    """
    found = declared(name)
    return typer.Option(found.flag, **{"metavar": found.metavar, "help": found.text, **given})


def duration(text: str) -> float:
    """Return the value of an option that is a time, s: a number, or with a unit as in a model, ``20ms``."""
    try:
        found = float(text)
    except ValueError:
        from fsm_dyn.language.values import seconds  # with the expressions

        try:
            found = seconds(text, "the time")
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
    if not 0.0 <= found < math.inf:
        raise typer.BadParameter(f"{text} is not a time from 0 s")
    return found


Until = Annotated[float | None, run_option("until", parser=duration, metavar="TIME")]
Step = Annotated[float | None, run_option("step", parser=duration, metavar="TIME")]
Set = Annotated[list[str] | None, run_option("parameters")]
Input = Annotated[list[str] | None, run_option("inputs")]
ScenarioOption = Annotated[str | None, run_option("scenario")]
Initial = Annotated[list[str] | None, run_option("initial")]
Tolerance = Annotated[list[str] | None, run_option("tolerances")]
_SCALE = typer.Option(
    "--scale",
    metavar="RATIO",
    help="Metres of the model per metre of the device, the force comes back by the same ratio: 0.5 or 1/3; or one "
    "for each axis of the port, rad/m where kinds differ, e.g. 1/3,-2.",
)
Scale = Annotated[str, _SCALE]
Scales = Annotated[list[str] | None, _SCALE]


def ratios(text: str) -> float | tuple[float, ...]:
    """Return the value of ``--scale``: one ratio, or one for each axis.

    Raises InputError: a part of it is neither a number nor a fraction.
    """
    found = []
    for part in text.split(","):
        above, _, below = part.partition("/")
        try:
            found.append(float(above) / float(below or "1"))
        except (ValueError, ZeroDivisionError):
            raise InputError(
                "--scale takes ratios", found=text[:40], allowed="numbers or fractions, e.g. 0.5, 1/3 or 1/3,-2",
                remedy="--scale 1/3 makes 30 mm of the device 10 mm of the model, and 3 N there 1 N here",
            ) from None  # fmt: skip
    return found[0] if len(found) == 1 else tuple(found)


def assignments(option: str, texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return NAME=VALUE texts as a mapping; None without any.

    A value in brackets is a list: ``lip=[809 mm, 12 mm]``, ``push=[[0 s, 0 N], [1 s, 30 N]]``. Raises InputError if a
    text has no name or no value, or a name comes twice.
    """
    if not texts:
        return None
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InputError(f"{option} takes NAME=VALUE", found=text, remedy="quote values that contain spaces")
        if name in found:
            raise InputError(f"{option} gives '{name}' twice", found=text)
        found[name] = listed(option, value) if value.startswith("[") else value
    return found


def distributions(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the distributions of ``--vary`` by name: a range, ``VALUE +- DEVIATION``, a mapping, or a list of names.

    Raises InputError: a text is not a distribution, or a name is given twice.
    """
    if not texts:
        return None
    # The public half of the package: studies.
    from fsm_dyn.analysis.study import read_range
    from fsm_dyn.language.body_forms import SIGNS

    found: dict[str, Any] = {}
    for text in texts:
        name, _, rest = (part.strip() for part in text.partition("="))
        given: Any = rest
        if rest.startswith(("{", "[")):
            given = listed("--vary", rest)
        elif not name or not any(sign in rest for sign in SIGNS):
            name, values = read_range(text)
            given = values[0], values[-1]
        if name in found:
            raise InputError("--vary gives one name twice", found=name)
        found[name] = given
    return found


def listed(option: str, value: str) -> Any:
    """Return a list in brackets, or a mapping in braces, of texts, lists and mappings.

    Raises InputError: it is no such list.
    """
    # YAML's flow sequences read units without quotes; the import is needed for lists only.
    import yaml

    try:
        return _texts(yaml.load(value, Loader=yaml.BaseLoader))  # noqa: S506 - it makes texts and lists only
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"{option}: the brackets do not close, or are nested too deeply", found=value) from None


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _texts(item) for name, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


# -- Options of live runs: integration steps of a tick, timeouts, limits of the force ------------------------

Slew = Annotated[float, typer.Option("--max-slew", help="Largest rate of the force, N/s.")]
Ramp = Annotated[float, typer.Option("--ramp", help="Time to engage and to disengage, s.", min=0.0)]
ReleaseAfter = Annotated[
    float,
    typer.Option(
        "--release-after",
        help="Time without samples, ticks or heartbeats until the device is disengaged, s; it engages again with them. "
        "0: never.",
        min=0.0,
    ),
]
StallTimeout = Annotated[
    float, typer.Option("--stall-timeout", help="Time without samples until that is a fault, s.", min=0.0)
]
EmulatedStallTimeout = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout", help="Time without samples until that is a fault, s (0.1; 0.5 with --emulate).", min=0.0
    ),
]
WatchdogTimeout = Annotated[
    float,
    typer.Option("--watchdog-timeout", help="Heartbeat timeout of the watchdog process, s.", min=0.0),
]
OwnerTimeout = Annotated[
    float,
    typer.Option(
        "--owner-timeout",
        help="Time without a heartbeat of this program until the device is disengaged and the run paused, s. 0: never.",
        min=0.0,
    ),
]

LagLimit = Annotated[
    float,
    typer.Option(
        "--lag-limit",
        help="Time by which the model may fall behind the clock until that is a fault, s. 0: any.",
        min=0.0,
    ),
]
LookAhead = Annotated[
    float,
    typer.Option(
        "--look-ahead",
        help="Time by which a copy of the run is ahead, s, to foresee transitions; changes no result. 0: no copy.",
        min=0.0,
        max=1.0,
    ),
]
Substeps = Annotated[
    int | None,
    typer.Option("--substeps", help="Integration steps per tick; default: as the ports of the model need, or one."),
]

Period = Annotated[float, typer.Option("--period", help="Length of a tick, s.")]
Force = Annotated[float, typer.Option("--max-force", help="Largest force of the device, N.")]
Record = Annotated[Path | None, typer.Option("--record", help="Record the run to a new MCAP file.")]
Foxglove = Annotated[
    int | None,
    typer.Option(
        "--foxglove", metavar="PORT", help="Serve the run to Foxglove, on a port of this machine; 0: any free port.",
        min=0, max=65535,
    ),
]  # fmt: skip
RerunViewer = Annotated[
    str | None,
    typer.Option("--rerun", metavar="PORT", help="Show the run in the viewer Rerun, which listens on this port."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the viewer URL; do not open a browser.")]
PagePort = Annotated[int, typer.Option("--page-port", help="TCP port of the page; 0: any free port.", min=0, max=65535)]
Passivity = Annotated[
    str,
    typer.Option(
        "--passivity",
        metavar="off|observe|control",
        help="Passivity observer (`observe`) or observer and controller (`control`).",
    ),
]

SHORTEST_PERIOD, LONGEST_PERIOD = 1e-5, 0.1  # s, of a tick
RELEASE_AFTER = 0.012  # s
STALL_TIMEOUT = 0.1
WATCHDOG_TIMEOUT = 0.1
OWNER_TIMEOUT = 0.5
LAG_LIMIT = 0.1
RAMP = 0.2


LONGEST = 2**53  # ticks, which a double counts


def stall_ticks(timeout: float, period: float) -> int:
    """Return the number of ticks of a period (s) without a sample in a time (s)."""
    return max(1, ticks("--stall-timeout", timeout, period))


def ticks(option: str, time: float | None, period: float) -> int:
    """Return the number of ticks of a period (s) in a time (s), -1 for no time.

    Raises InputError: the period cannot be one, or the time comes to too many of them.
    """
    if not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
        raise InputError("--period", found=str(period), allowed=f"{SHORTEST_PERIOD:g} to {LONGEST_PERIOD:g} s")
    if time is None:
        return -1
    if not 0.0 <= time / period <= LONGEST:
        raise InputError(option, found=str(time), allowed=f"0 to {LONGEST * period:.3g} s")
    return round(time / period)


# -- Paths of results ----------------------------------------------------------------------------------------
#
# Paths of results are checked, and folders made, before anything is computed for them.


def prepare_folder(option: str, folder: Path) -> None:
    """Make a folder for output, unless there is one.

    Raises InputError: it is a file or below one, or may not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        taken = next((place for place in (folder, *folder.parents) if place.exists() and not place.is_dir()), None)
        raise InputError(
            f"{option}: there is no folder '{folder}' and it cannot be made",
            found=f"'{taken}' is a file" if taken else error.strerror or "",
            remedy="name a folder, new or with permission to write",
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: no permission to write to the folder '{folder}'", remedy="name another folder")


def prepare_file(option: str, file: Path) -> None:
    """Make the folder of a file for output, unless there is one; an existing file is replaced later.

    Raises InputError: the file is a folder, or its folder cannot be made or written to.
    """
    if file.is_dir():
        raise InputError(f"{option}: '{file}' is a folder", remedy=f"name a file in it: {file / 'NAME'}")
    prepare_folder(option, file.parent)
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{option}: no permission to write '{file}'", remedy="name another file")


# -- Commands, results, exit codes -----------------------------------------------------------------------------


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

    Raises InputError: both were asked for.
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
