"""Emulated device program with the datagrams of :mod:`fsm_dyn.devices.udp`.

Options are those of :class:`~fsm_dyn.devices.emulators.emulated_device.EmulatedDevice` and ``port`` (for the driver to
listen at; a free one), ``velocity`` (whether samples have velocities; true).
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.emulators.emulated_device import (
    LOOKS,
    CommandChannel,
    EmulatedDevice,
    EmulationProcess,
    check,
    given_options,
)
from fsm_dyn.devices.udp import BadDatagramError, SampleDatagram
from fsm_dyn.live.driver_protocol import ADMITTANCE
from fsm_dyn.live.pacing import ask_for_privileges
from fsm_dyn.runtime.abi import ForceFlag

_KNOWN: Final = frozenset({"port", "velocity"})


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start the program. Raises InputError: an option is unknown, or its value is invalid."""
    check("udp", options, _KNOWN)
    return EmulationProcess(__name__, options)


class DeviceProgram:
    """Device program: sends samples, applies forces, and removes them by its watchdog."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.body = EmulatedDevice(options)
        self._axes = len(self.body.handles)
        self._with_velocity = bool(options.get("velocity", True))
        self.port = int(options.get("port", 0)) or _free_port()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(("127.0.0.1", self.port))
        self._sequence = 0
        self._answered: int | None = None  # sequence number of the last force obeyed

    @property
    def driver_options(self) -> dict[str, Any]:
        """Options of the driver for this device."""
        kind = {"kind": ADMITTANCE} if self.body.follows else {}
        return {"axes": self._axes, "port": self.port, **self.body.known, **kind}

    def listen(self) -> None:
        """Apply the latest force received; without power it is lost."""
        latest = None
        while True:
            try:
                data = self.socket.recv(1024)
            except BlockingIOError:
                break
            except ConnectionRefusedError:  # no receiver at the moment
                continue
            if not self.body.plugged:
                continue
            try:
                found = datagrams.unpack_force(data, self._axes)
            except BadDatagramError as error:
                self.body.counts[str(error)] += 1
                continue
            if found.flags & ForceFlag.LET_GO:
                latest, self._answered = found, None
            elif self._answered is None or self.body.let_go or datagrams.is_newer(found.sequence, self._answered):
                latest, self._answered = found, found.sequence
            else:
                self.body.counts["old"] += 1
        if latest is not None:
            self.body.counts["let go"] += bool(latest.flags & ForceFlag.LET_GO)
            self.body.apply_force(latest.force)

    def speak(self) -> None:
        """Send a sample, with the present corruption."""
        if not self.body.speaks:
            return
        body = self.body
        self._sequence += 1
        velocity = body.second if self._with_velocity else None
        data = datagrams.pack_sample(SampleDatagram(self._sequence, time.monotonic(), 0, body.position, velocity))
        for packet in self.body.spoiling.packets(data):
            self._send(packet)

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionRefusedError, BlockingIOError):
            self.socket.send(data)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def main() -> None:
    """Run the program until its standard input closes."""
    program = DeviceProgram(given_options())
    body = program.body
    commands = body.commands()
    lines = CommandChannel(commands)
    ask_for_privileges()  # a device is on time
    lines.ready(program.driver_options, [name for name in commands if name not in ("state", "log")])
    due = time.monotonic()
    while lines.serve():
        heard = [lines.descriptor, *([] if body.frozen else [program.socket])]
        select.select(heard, [], [], min(LOOKS, max(0.0, due - time.monotonic())))
        if not body.frozen:
            program.listen()
        body.advance()
        if time.monotonic() >= due:
            due = max(due + body.period, time.monotonic() - body.period)
            program.speak()


if __name__ == "__main__":
    main()
