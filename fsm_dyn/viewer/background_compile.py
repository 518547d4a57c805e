"""Background compilation of a model in a separate process, which fills the cache on disk for the server.

Derivation takes seconds of Python: in the server's process it would block all pages.  The process writes one line of
JSON per stage, and one for an error of the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fsm_dyn.errors import NOWHERE, FsmDynError, InputError, Location, ModelError, RunError

MAX_TEXT = 2000  # characters of a message
LONGEST_LINE = 2**20  # bytes: four such texts, escaped


async def compile_ahead(model: str, parameters: Mapping[str, Any], emit: Callable[[str], None]) -> None:
    """Compile a model in another process, which is killed on cancellation.

    Parameters
    ----------
    model : str
        As on the command line.
    parameters : mapping
        Values that replace the file's.
    emit : callable
        Called with the text of every stage.

    Raises
    ------
    FsmDynError
        The model has an error, or the process failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fsm_dyn.viewer.background_compile", model, json.dumps(dict(parameters)),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        async for line in process.stdout:
            data = json.loads(line)
            if "stage" in data:
                emit(data["stage"])
            else:
                raise error_from(data)
        if await process.wait() != 0:
            raise RunError(f"compiling '{model}' failed\n{(await complaints).decode(errors='replace')[-MAX_TEXT:]}")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await complaints


def error_data(error: FsmDynError) -> dict[str, Any]:
    """Return an error as data for JSON."""
    if not isinstance(error, InputError):
        return {"message": str(error)[:MAX_TEXT]}
    texts = {name: getattr(error, name)[:MAX_TEXT] for name in ("message", "found", "allowed", "remedy")}
    return {**texts, "where": list(error.where)}


def error_from(data: Mapping[str, Any]) -> FsmDynError:
    """Return the error from :func:`error_data`."""
    if "where" not in data:
        return RunError(data["message"])
    where = Location(*data["where"]) if data["where"] else NOWHERE
    return ModelError(data["message"], where, found=data["found"], allowed=data["allowed"], remedy=data["remedy"])


def main() -> None:
    """Compile a model, add its couplers, and compile all machine code of its live run."""

    def say(data: dict[str, Any]) -> None:
        sys.stdout.write(f"{json.dumps(data)}\n")
        sys.stdout.flush()

    model, parameters = sys.argv[1], json.loads(sys.argv[2])
    say({"stage": f"compiling {Path(model).name}"})
    try:
        _compile(model, parameters, lambda stage: say({"stage": stage}))
    except FsmDynError as error:
        say(error_data(error))


def _compile(model: str, parameters: Mapping[str, Any], emit: Callable[[str], None]) -> None:
    # deferred: these import SymPy, and the server imports this module
    from fsm_dyn import compilation
    from fsm_dyn.live.live_stepper import LiveStepper
    from fsm_dyn.viewer.live_view import coupled_for_page

    graph = compilation.compile(model)
    emit("deriving the model with its handles")
    coupled, _ = coupled_for_page(graph, parameters)
    emit("making machine code")
    LiveStepper(coupled)


if __name__ == "__main__":
    main()
