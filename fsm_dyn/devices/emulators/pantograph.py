"""Emulated pantograph across a pseudo-terminal: Haply's board, and a handle moving in the plane.

Options are those of :class:`~fsm_dyn.devices.emulators.emulated_device.EmulatedDevice`, with two axes and without
``resolution`` and ``rate``, and ``hardware`` and ``board`` of the driver.  The board answers each message of torques.
No watchdog is documented for it: by default it has none. Encoders have the resolution configured by the driver.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import struct
import tty
from collections.abc import Mapping
from typing import Any, Final

from fsm_dyn.devices import pantograph as hb
from fsm_dyn.devices.emulators.emulated_device import (
    STEP,
    CommandChannel,
    EmulatedDevice,
    EmulationProcess,
    check,
    given_options,
    new_folder,
)
from fsm_dyn.devices.pantograph import BOARD, VERSIONS, angles_of, force_of, origin_of, pose_of
from fsm_dyn.live.pacing import ask_for_privileges

_KNOWN: Final = frozenset({"hardware", "board"})
_CHUNK: Final = 4096


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start the program; raise InputError for unknown or invalid options."""
    check("pantograph", options, _KNOWN)
    return EmulationProcess(__name__, options)


class HaplyBoard:
    """The board's half of the messages: their decoding, and its configuration.

    ``resolutions``: counts per revolution of the encoders of ports 1 and 2; empty until configured. ``unknown``: bytes
    outside messages.
    """

    def __init__(self, device: int) -> None:
        self.resolutions: tuple[float, ...] = ()
        self.unknown = 0
        self._device = device
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[float, float]]:
        """Return the torques (N m) of ports 1 and 2 in the messages completed by these bytes."""
        found = []
        self._rest += data
        while len(self._rest) >= 2:
            kind, device = self._rest[:2]
            if kind > hb.TORQUES or device != self._device:
                self.unknown += kind != hb.RESET  # a driver may reset any device
                self._rest = self._rest[2 if kind == hb.RESET else 1 :]
                continue
            length = self._length(kind)
            if length is None or len(self._rest) < length:
                break
            message, self._rest = self._rest[:length], self._rest[length:]
            if kind == hb.PARAMETERS:
                self.resolutions = struct.unpack("<4f", message[-16:])[1::2]
            elif kind == hb.TORQUES:
                found.append(struct.unpack("<2f", message[2:]))
            else:
                self.resolutions = ()
        return found

    def _length(self, kind: int) -> int | None:
        """Return the length of the message at the beginning of the bytes; None if not known yet."""
        if kind != hb.PARAMETERS:
            return 2 if kind == hb.RESET else 10
        at, encoders = 2, 0
        for what in range(4):  # motors, encoders, sensors, outputs: a count or a mask, and a byte for each
            if at >= len(self._rest):
                return None
            number = self._rest[at].bit_count() if what < 2 else self._rest[at]
            encoders = number if what == 1 else encoders
            at += 1 + number
        return at + 8 * encoders


class EmulatedPantograph:
    """The emulated device: board, handle and line."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.body = EmulatedDevice({"watchdog": 0.0, **options, "axes": 2})
        self._id = int(options.get("board", BOARD))
        self._options = {name: options[name] for name in _KNOWN if name in options}
        self._bars = VERSIONS[int(options.get("hardware", 3))].bars
        self._origin = origin_of(options)
        self._folder = new_folder()
        self._path = self._folder / "port"
        self.line = self._other = -1
        self.plug()

    @property
    def driver_options(self) -> dict[str, Any]:
        """Options of the driver for this device."""
        known = {name: value for name, value in self.body.known.items() if name in ("mass", "damping", "friction")}
        return {"path": str(self._path), **self._options, **known}

    def plug(self) -> None:
        """Connect the line; the board begins unconfigured."""
        if self.line >= 0:
            return
        self.body.plugged = True
        self.board = HaplyBoard(self._id)
        self.line, self._other = os.openpty()  # kept open: the line stays when a driver closes its end
        tty.setraw(self._other)
        os.set_blocking(self.line, False)
        link = self._path.with_name("next")
        link.symlink_to(os.ttyname(self._other))
        link.replace(self._path)

    def unplug(self) -> None:
        """Disconnect the line, and with it the power."""
        if self.line < 0:
            return
        self.body.plugged = False
        self.body.release("no power")
        self._path.unlink()
        for end in (self.line, self._other):
            os.close(end)
        self.line = self._other = -1

    def listen(self) -> None:
        """Show the torques received, and answer each with the angles."""
        try:
            data = os.read(self.line, _CHUNK) if self.line >= 0 else b""
        except (BlockingIOError, OSError):
            return
        for second, first in self.board.feed(data):
            x, y = (handle.position for handle in self.body.handles)
            angles = angles_of(self._bars, self._origin[0] + x, self._origin[1] + y)
            pose = angles and pose_of(self._bars, *angles)
            if angles is None or pose is None or not self.board.resolutions:
                self.body.counts["no pose"] += 1
                continue
            self.body.apply_force(force_of(pose, (first, second)))
            if self.body.speaks:
                error = self.body.spoiling.shift / self._bars.inner
                self._answer(angles[1] + error, angles[0] + error)

    def _answer(self, *radians: float) -> None:
        """Send angles as counted by the encoders, with the present corruption."""
        steps = [360.0 / number for number in self.board.resolutions]
        data = hb.answer(self._id, *(s * round(math.degrees(a) / s) for a, s in zip(radians, steps, strict=True)))
        for packet in self.body.spoiling.packets(data):
            self._send(packet)

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.line, data)

    def close(self) -> None:
        """Remove the files of the line."""
        shutil.rmtree(self._folder, ignore_errors=True)


def main() -> None:
    """Run the program until its standard input closes."""
    device = EmulatedPantograph(given_options())
    body = device.body
    commands = {**body.commands(), "plug": device.plug, "unplug": device.unplug}
    lines = CommandChannel(commands)
    ask_for_privileges()  # a device is on time
    lines.ready(device.driver_options, [name for name in commands if name not in ("state", "log")])
    try:
        while lines.serve():
            heard = [lines.descriptor, *([device.line] if device.line >= 0 and not body.frozen else [])]
            select.select(heard, [], [], STEP)
            if not body.frozen:
                device.listen()
            body.advance()
    finally:
        device.close()


if __name__ == "__main__":
    main()
