"""Command channel of an emulator: one line of JSON per command, read without blocking."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = "fsm_dyn_emulator_{}_"  # with the number of the process
_CHUNK: Final = 65536


def given_options() -> dict[str, Any]:
    """Return the value of ``--options`` on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", default="{}", help="a mapping as JSON")
    found: dict[str, Any] = json.loads(parser.parse_args().options)
    return found


def new_folder() -> Path:
    """Make a temporary folder of this process."""
    return Path(tempfile.mkdtemp(prefix=_FOLDER.format(os.getpid())))


def remove_folders(process: int) -> None:
    """Remove the temporary folders of an emulator that has ended, however it ended."""
    for folder in Path(tempfile.gettempdir()).glob(_FOLDER.format(process) + "*"):
        shutil.rmtree(folder, ignore_errors=True)


class CommandChannel:
    """Commands from the standard input, answers to the standard output.

    Parameters
    ----------
    table : mapping
        Function of each command; called with the arguments by name, returns the answer or None.
    """

    def __init__(self, table: Mapping[str, Callable[..., Mapping[str, Any] | None]]) -> None:
        self._table = table
        self._rest = b""
        self.descriptor: Final = sys.stdin.fileno()  # to wait for together with other descriptors
        os.set_blocking(self.descriptor, False)

    def ready(self, options: Mapping[str, Any], commands: Iterable[str]) -> None:
        """Report that the device can be opened, with these options of its driver."""
        self._tell({"options": dict(options), "commands": list(commands)})

    def serve(self) -> bool:
        """Carry out the commands received; return whether there may be more."""
        try:
            found = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return True
        if not found:
            return False
        *lines, self._rest = (self._rest + found).split(b"\n")
        for line in lines:
            self._tell(self._carried_out(json.loads(line)))
        return True

    def _carried_out(self, command: dict[str, Any]) -> Mapping[str, Any]:
        name = command.pop("do", "")
        if name not in self._table:
            return {"refused": f"no command '{name}'; there are {', '.join(self._table)}"}
        try:
            return self._table[name](**command) or {}
        except (TypeError, ValueError) as error:
            return {"refused": f"{name}: {error}"}

    @staticmethod
    def _tell(message: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
