"""Emulator processes: their start, and the commands to inject faults and move the hand."""

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

from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.devices.emulators.emulated_device import remove_folders

PATIENCE: Final = 20.0  # s until an emulator is ready: it loads NumPy and SciPy
ANSWER: Final = 5.0  # s for an answer
# threads of the libraries behind NumPy would delay an emulator of higher priority
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Emulation(Protocol):
    """A running emulated device.

    Attributes
    ----------
    options : mapping
        Options of the driver to find it.
    commands : tuple of str
        Supported commands, of: ``unplug``, ``plug``, ``garbage``, ``half``, ``stall``, ``freeze``, ``hand``, ``play``,
        ``watchdog``, ``jump``, ``measure``.
    """

    options: dict[str, Any]
    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the device; return after it was carried out.

        ``unplug`` and ``plug``; ``garbage`` and ``half`` (a packet) with ``on`` (true until it is false) or, once,
        ``bytes``; ``stall`` with ``on`` (no samples, forces are taken); ``freeze`` with ``on`` (reads nothing, sends
        nothing); ``hand`` with ``stiffness``, ``damping``, ``target`` (one number, or one per axis; stiffness 0: no
        hand) and optionally ``speed``, the largest towards the target (m/s); ``play`` with ``rate`` (notes a second),
        ``notes``, ``pressed`` and ``lifted`` (positions of the hand, m); ``watchdog`` with ``on``; ``jump`` with ``by``
        (m, error of the positions sent); ``measure``, which restarts the meter.

        Raises
        ------
        InputError
            There is no such command, or an argument is invalid.
        """

    def state(self) -> dict[str, Any]:
        """Return the state of the device: ``time`` (s, of ``time.monotonic``), ``position``, ``velocity``, ``force``.

        These are the true ones, one number per axis. With them come ``plugged``, ``stalled``, ``frozen``, ``let_go``
        (why no force is shown: ``""``, ``watchdog``, ``no power``), ``hand``, ``counts`` and the ``meter``: work of
        the forces shown since ``measure``, as in :class:`.handle.Meter`.
        """

    def log(self) -> list[dict[str, Any]]:
        """Return every change of the force shown since this was asked last: ``time``, ``force``, ``position``, ``why``.

        ``why`` is ``host`` or another cause, as in ``let_go``.
        """

    def close(self) -> None:
        """End it; may be called again."""


class EmulationProcess:
    """An :class:`Emulation` in a separate process.

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
            self._answers.put(None)  # for later calls
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
                pass  # it has ended, as the answer reports
            return self._answer(ANSWER)

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the device; see :meth:`Emulation.do`."""
        if command not in self.commands:
            raise InputError(f"the emulated device knows no '{command}'", allowed=", ".join(self.commands))
        self._ask(command, arguments)

    def state(self) -> dict[str, Any]:
        """Return the state of the device; see :meth:`Emulation.state`."""
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
        remove_folders(self._process.pid)

    def __enter__(self) -> EmulationProcess:
        """Return it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End it."""
        self.close()


def emulation(driver: str, options: Mapping[str, Any]) -> Emulation:
    """Start the emulator of a shipped driver.

    Parameters
    ----------
    options : Mapping[str, Any]
        Of the emulator.

    Returns
    -------
    Emulation

    Raises
    ------
    InputError
        The driver has no emulator.
    """
    name = f"{__package__}.{driver}"
    if not driver.isidentifier() or importlib.util.find_spec(name) is None:
        raise InputError(
            f"there is no emulator for the driver '{driver}'",
            remedy="leave out --emulate; 'fsm-dyn device --list-drivers' tells which drivers have one",
        )
    started: Emulation = importlib.import_module(name).start(options)
    return started
