"""Output of all commands: results to stdout, progress and errors to stderr, exit codes."""

from __future__ import annotations

import functools
import inspect
import json
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ParamSpec

import typer

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
