"""Emulators as whoever starts them sees them: processes that are told what happens to the device."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, Final, Protocol

from fsm_dyn.errors import InputError, RunError

PATIENCE: Final = 20.0  # s until an emulator is ready: it loads NumPy and SciPy
ANSWER: Final = 5.0  # s for an answer
# threads of the libraries behind NumPy would hold up an emulator that goes before them
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Emulation(Protocol):
    """An emulated device under way.

    Attributes
    ----------
    options : mapping
        What the driver has to be told to meet it.
    commands : tuple of str
        What can happen to it: ``unplug``, ``plug``, ``garbage``, ``half``, ``stall``, ``freeze``, ``hand``,
        ``play``, ``watchdog``, ``jump``, ``measure``, as far as the device can have it.
    """

    options: dict[str, Any]
    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Let something happen to the device; returns once it has.

        ``unplug`` and ``plug``; ``garbage`` and ``half`` (a frame) with ``on`` (true until it is false) or, once,
        ``bytes``; ``stall`` with ``on`` (no samples, forces are taken); ``freeze`` with ``on`` (reads nothing, tells
        nothing); ``hand`` with ``stiffness``, ``damping``, ``target`` (one number, or one per axis; stiffness 0:
        nobody holds it) and perhaps ``speed``, the largest on the way there (m/s); ``play`` with ``rate`` (notes a
        second), ``notes``, ``pressed`` and ``lifted`` (the hand's places, m); ``watchdog`` with ``on``; ``jump`` with
        ``by`` (m, by which positions told are wrong);
        ``measure``, which begins the meter anew.

        Raises
        ------
        InputError
            There is no such command, or an argument cannot be.
        """

    def state(self) -> dict[str, Any]:
        """Return the device as it is: ``time`` (s, of ``time.monotonic``), ``position``, ``velocity``, ``force``.

        These are the true ones, one number per axis.  Beside them ``plugged``, ``stalled``, ``frozen``, ``let_go``
        (why no force is shown: ``""``, ``watchdog``, ``no power``), ``hand``, ``counts`` and the ``meter``: what forces
        shown gave the handle since ``measure``, as :class:`.handle.Meter` has it.
        """

    def log(self) -> list[dict[str, Any]]:
        """Return every change of the force shown since this was asked last: ``time``, ``force``, ``position``, ``why``.

        ``why`` is ``host`` or what else changed it, as ``let_go``.
        """

    def close(self) -> None:
        """End it; may be called again."""


class EmulationProcess:
    """An :class:`Emulation` in a process of its own.

    Parameters
    ----------
    module : str
        Of the program, dotted.
    options : mapping
        Of the emulator.

    Raises
    ------
    RunError
        It did not start.
    """

    def __init__(self, module: str, options: Mapping[str, Any]) -> None:
        self._module = module
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the emulator)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, "--options", json.dumps(dict(options))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._noise, text=True, start_new_session=True,
            env={**os.environ, **_ALONE},
        )  # fmt: skip
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="emulator", daemon=True)
        self._listener.start()
        try:
            ready = self._answer(PATIENCE)
        except BaseException:
            self.close()
            raise
        self.options: dict[str, Any] = ready["options"]
        self.commands: tuple[str, ...] = tuple(ready["commands"])

    @property
    def pid(self) -> int:
        """Process number."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _answer(self, patience: float) -> dict[str, Any]:
        try:
            found = self._answers.get(timeout=patience)
        except queue.Empty:
            raise RunError(f"the emulator {self._module} does not answer") from None
        if found is None:
            self._answers.put(None)  # for whoever asks again
            self._noise.seek(0)
            raise RunError(f"the emulator {self._module} has ended\n{self._noise.read().decode(errors='replace')}")
        if "refused" in found:
            raise InputError(f"emulated device: {found['refused']}")
        return found

    def _ask(self, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError):
                pass  # it has ended: the answer says so
            return self._answer(ANSWER)

    def do(self, command: str, **arguments: Any) -> None:
        """Let something happen to the device; see :meth:`Emulation.do`."""
        if command not in self.commands:
            raise InputError(f"the emulated device knows no '{command}'", allowed=", ".join(self.commands))
        self._ask(command, arguments)

    def state(self) -> dict[str, Any]:
        """Return the device as it is; see :meth:`Emulation.state`."""
        return self._ask("state", {})

    def log(self) -> list[dict[str, Any]]:
        """Return the changes of the force shown; see :meth:`Emulation.log`."""
        found: list[dict[str, Any]] = self._ask("log", {})["log"]
        return found

    def close(self) -> None:
        """End the process; may be called again."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()  # until the end of its output
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._noise.close()

    def __enter__(self) -> EmulationProcess:
        """Return it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End it."""
        self.close()


def emulation(driver: str, options: Mapping[str, Any]) -> Emulation:
    """Start the emulator that belongs to a shipped driver.

    Raises
    ------
    InputError
        There is none.
    """
    name = f"{__package__}.{driver}"
    if not driver.isidentifier() or importlib.util.find_spec(name) is None:
        raise InputError(
            f"there is no emulator for the driver '{driver}'",
            remedy="leave out --emulate; 'fsm-dyn device --list-drivers' tells which drivers have one",
        )
    started: Emulation = importlib.import_module(name).start(options)
    return started
