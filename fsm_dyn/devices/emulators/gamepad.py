"""Emulated gamepad: a pipe with the events of the kernel, whole ``struct input_event``, for changes only.

The operator's actions are commands: ``hand`` with ``target``, the deflection of each axis, in m, as a part of
``reach``, and ``press`` with ``button`` (from 0) and ``on``.  It exerts no force. A pipe answers no ioctl, so the
driver gets the ranges as an option.

Options: ``axes`` (``["x", "-y"]``), ``rate`` (250 Hz, the sampling rate of the sticks), ``reach`` (0.1 m).
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsm_dyn.devices.driver_tools import OptionReader
from fsm_dyn.devices.emulators.emulated_device import (
    CommandChannel,
    EmulationProcess,
    PacketCorruption,
    given_options,
    new_folder,
)
from fsm_dyn.devices.gamepad import BUTTONS, CODES, EV_ABS, EV_KEY, EV_SYN, EVENT, named_axes

FULL: Final = 32767
_FIRST: Final = BUTTONS.start + 0x10  # BTN_SOUTH
_KNOWN: Final = frozenset({"axes", "rate", "reach"})


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start the gamepad. Raises InputError: an option is unknown, or its value is invalid."""
    given = OptionReader("emulated gamepad", options, _KNOWN)
    given.number("rate", 250.0, above=True, most=1e4)
    given.number("reach", 0.1, above=True)
    named_axes(options)
    return EmulationProcess(__name__, options)


class EmulatedGamepad:
    """Sticks and buttons, and the pipe for their events."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._axes = list(named_axes(options))
        self._names = [name.removeprefix("-") for name in self._axes]
        self._signs = [-1.0 if name.startswith("-") else 1.0 for name in self._axes]
        self._reach = float(options.get("reach", 0.1))
        self.period = 1.0 / float(options.get("rate", 250.0))
        self.folder = str(new_folder())
        self._path = os.path.join(self.folder, "event")
        os.mkfifo(self._path, 0o600)
        self._pipe = -1
        self.spoiling = PacketCorruption()
        self.stalled, self.frozen = False, False
        self.counts: Counter[str] = Counter()
        self._values, self._told = [0] * len(self._axes), [0] * len(self._axes)
        self._events: list[tuple[int, int, int]] = []
        self.plug()

    @property
    def driver_options(self) -> dict[str, Any]:
        """Options of the driver for this device."""
        ranges = {name: [-FULL, FULL] for name in self._names}
        return {"device": self._path, "axes": self._axes, "ranges": ranges, "reach": self._reach}

    def commands(self) -> dict[str, Any]:
        """Return the functions of the commands on the standard input."""
        return {
            "unplug": self.unplug, "plug": self.plug, **self.spoiling.commands(), "stall": self._stall,
            "freeze": self._freeze, "hand": self._hand, "press": self._press, "state": self._state, "log": self._log,
        }  # fmt: skip

    def unplug(self) -> None:
        """Close the pipe."""
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1

    def plug(self) -> None:
        """Open the pipe for reading and writing, so it stays open without a reader."""
        if self._pipe < 0:
            self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
            self._told = [0] * len(self._axes)

    def _stall(self, on: bool = True) -> None:
        self.stalled = bool(on)

    def _freeze(self, on: bool = True) -> None:
        self.frozen = bool(on)

    def _hand(
        self,
        stiffness: float | None = None,
        damping: float | None = None,
        target: float | Sequence[float] | None = None,
    ) -> None:
        """Move the sticks; without a target they return to their middle."""
        given = [target or 0.0] * len(self._axes) if isinstance(target, int | float | None) else list(target)
        parts = [max(-1.0, min(1.0, float(x) / self._reach)) for x in given]
        self._values = [round(FULL * sign * part) for sign, part in zip(self._signs, parts, strict=True)]

    def _press(self, button: int = 0, on: bool = True) -> None:
        if not 0 <= int(button) < 16:
            raise ValueError("buttons are 0 to 15")
        self._events.append((EV_KEY, _FIRST + int(button), int(bool(on))))

    def _state(self) -> dict[str, Any]:
        place = [self._reach * sign * value / FULL for sign, value in zip(self._signs, self._values, strict=True)]
        rest = [0.0] * len(place)
        return {
            "time": time.monotonic(), "position": place, "velocity": rest, "force": rest, "plugged": self._pipe >= 0,
            "stalled": self.stalled, "frozen": self.frozen, **self.spoiling.state(), "let_go": "",
            "counts": dict(self.counts), "hand": {"stiffness": 0.0, "damping": 0.0, "target": place},
        }  # fmt: skip

    def _log(self) -> dict[str, Any]:
        return {"log": []}  # there is no force

    def write_events(self) -> None:
        """Write the events of all changes and the final synchronisation event."""
        if self._pipe < 0 or self.stalled or self.frozen:
            return
        for i, value in enumerate(self._values):
            if value != self._told[i]:
                self._events.append((EV_ABS, CODES[self._names[i]], value))
        self._told = list(self._values)
        data = os.urandom(self.spoiling.once) if self.spoiling.once else b""
        self.spoiling.once = 0
        if self._events:
            now = time.time()
            whole = [(*event,) for event in self._events] + [(EV_SYN, 0, 0)]
            data += b"".join(EVENT.pack(int(now), int(now % 1.0 * 1e6), *event) for event in whole)
        self._events = []
        if self.spoiling.how == "garbage":
            data = os.urandom(4 * EVENT.size)
        elif self.spoiling.how == "half":
            data = EVENT.pack(0, 0, EV_ABS, CODES[self._names[0]], FULL)[: EVENT.size // 2]
        self.counts["bytes"] += len(data)
        with contextlib.suppress(BlockingIOError):  # without a reader the events are lost
            os.write(self._pipe, data)

    def close(self) -> None:
        """Remove the pipe."""
        self.unplug()
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> None:
    """Run the gamepad until its standard input closes."""
    gamepad = EmulatedGamepad(given_options())
    commands = gamepad.commands()
    lines = CommandChannel(commands)
    lines.ready(gamepad.driver_options, [name for name in commands if name not in ("state", "log")])
    try:
        while lines.serve():
            select.select([lines.descriptor], [], [], gamepad.period)
            gamepad.write_events()
    finally:
        gamepad.close()


if __name__ == "__main__":
    main()
