"""Emulated service of an Inverse3, see :mod:`fsm_dyn.devices.inverse3`, with one device.

Options are those of :class:`~fsm_dyn.devices.emulators.emulated_device.EmulatedDevice` and ``port`` (to listen at; a
free one), ``device_id`` (``0E00``), ``velocity`` (whether states have velocities; true), ``service`` (``3.5``, or
``3.1``), ``calibrated``, ``gravity_compensation`` and ``torque_scaling`` (true).  A service takes the force under the
key of its version, ``vector`` or ``values``, and ignores any other without an error; one of 3.5 takes the profile of a
session.  It removes the force when its client leaves, and its watchdog makes a device idle without commands. Further
commands: ``leave`` closes the connection, ``ignore`` (``on``) makes it ignore forces, ``calibrated`` (``on``).
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import OptionReader
from fsm_dyn.devices.emulators.emulated_device import (
    CommandChannel,
    EmulatedDevice,
    EmulationProcess,
    check,
    given_options,
)
from fsm_dyn.devices.inverse3 import AXES, FORMATS, listed, parsed, vector, within
from fsm_dyn.live.pacing import ask_for_privileges

_SWITCHES: Final = ("velocity", "calibrated", "gravity_compensation", "torque_scaling")
_KNOWN: Final = frozenset({"port", "device_id", "service", *_SWITCHES})
_IDLE: Final = 0.001  # s between updates of the handles without a request


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start the service. Raises InputError: an option is unknown, or its value is invalid."""
    check("inverse3", options, _KNOWN)
    given = OptionReader("emulated inverse3", options, options)
    given.choice("service", "3.5", FORMATS)
    for name in _SWITCHES:
        if not isinstance(options.get(name, True), bool):
            raise given.invalid(name, "true, false")
    if int(options.get("axes", 3)) != 3:
        raise InputError("axes of an Inverse3", found=str(options["axes"]), allowed="3")
    return EmulationProcess(__name__, options)


class Client:
    """Connection of a client."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.protocol, self.gone = connected, ServerProtocol(), False

    def hear(self) -> list[Any]:
        """Return the received events: a handshake request, frames."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if data:
            self.protocol.receive_data(data)
        else:
            self.protocol.receive_eof()
            self.gone = True
        return self.protocol.events_received()

    def send(self, data: bytes) -> None:
        """Send bytes; a client that does not read loses them."""
        with contextlib.suppress(OSError):
            self.socket.send(data)

    def pass_on(self) -> None:
        """Send the pending output of the protocol."""
        for data in self.protocol.data_to_send():
            self.send(data)
            self.gone = self.gone or not data


class Service:
    """Service with one device: it sends states and applies forces."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.body = EmulatedDevice(options)
        self.device = str(options.get("device_id", "0E00"))
        self._with_velocity = bool(options.get("velocity", True))
        self._version = str(options.get("service", "3.5"))
        self._calibrated, self._ignoring = bool(options.get("calibrated", True)), False
        self._config = self._configuration(options)
        self.profile = ""
        self.listening = socket.create_server(("127.0.0.1", int(options.get("port", 0))))
        self.listening.setblocking(False)
        self.clients: list[Client] = []

    @property
    def driver_options(self) -> dict[str, Any]:
        """Options of the driver for this device."""
        return {"device_id": self.device, "port": self.listening.getsockname()[1], **self.body.known}

    def commands(self) -> dict[str, Any]:
        """Return the functions of the commands on the standard input."""
        more = {"leave": self._leave, "ignore": self.ignore, "calibrated": self.calibrate}
        return {**self.body.commands(), **more}

    def _configuration(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration of the device as on docs.haply.co, "WebSocket Protocol"."""
        found = {
            "type": "inverse3",
            "gravity_compensation": {"enabled": bool(options.get("gravity_compensation", True)), "scaling_factor": 1.0},
            "handedness": "right",
            "torque_scaling": {"enabled": bool(options.get("torque_scaling", True))},
        }
        filters = {"filters": {"force_gate": {"gain": 0.3}, "damping": {"scalar": 0.0}}}
        return {**found, **(filters if self._version == "3.5" else {})}

    def ignore(self, on: bool = True) -> None:
        """Ignore forces from now on, or accept them again."""
        self._ignoring = bool(on)
        self.body.release("ignored")

    def calibrate(self, on: bool = True) -> None:
        """Set whether the status reports the device as calibrated."""
        self._calibrated = bool(on)

    def _leave(self) -> None:
        for client in self.clients:
            client.protocol.send_close(1001)
            client.pass_on()
        self.body.release("no client")

    def turn(self, patience: float, beside: int) -> None:
        """Wait for input or the next update, and handle it."""
        heard = {} if self.body.frozen else {client.socket: client for client in self.clients}
        waited: list[Any] = [self.listening, beside, *heard]
        ready, _, _ = select.select(waited, [], [], patience)
        if self.listening in ready:
            self.clients.append(Client(self.listening.accept()[0]))
        for each in ready:
            if each in heard:
                self._see_to(heard[each])
        for client in [client for client in self.clients if client.gone]:
            self.clients.remove(client)
            client.socket.close()
            self.body.release("no client")
        self.body.advance()

    def _see_to(self, client: Client) -> None:
        """Answer the messages of a client, each with one state."""
        for event in client.hear():
            if isinstance(event, Request):
                client.protocol.send_response(client.protocol.accept(event))
                client.protocol.send_text(self._told(first=True))
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                client.pass_on()
                self._answer(client, full=self._obey(event.data))
        client.pass_on()

    def _obey(self, message: bytes | bytearray | memoryview) -> bool:
        """Carry out a message, as far as this version knows its keys; return whether a full state is requested."""
        try:
            said = parsed(bytes(message))
            device = listed(said).get(self.device)
        except ValueError:
            self.body.counts["no force"] += 1
            return False
        name = within(said, "session", "configure", "profile", "name")
        if self._version == "3.5" and isinstance(name, str):
            self.profile = name
        try:
            force = vector(within(device, "commands", "set_cursor_force", FORMATS[self._version]))
        except ValueError:
            self.body.counts["no force"] += 1
        else:
            if not self._ignoring:
                self.body.apply_force(force)
        return within(said, "session", "force_render_full_state") is not None

    def _answer(self, client: Client, full: bool) -> None:
        """Send a state, with the present corruption."""
        if self.body.stalled or self.body.frozen or client.protocol.state is not State.OPEN:
            return
        client.protocol.send_text(self._told(full=full))
        for packet in self.body.spoiling.packets(b"".join(client.protocol.data_to_send())):
            client.send(packet)

    def _told(self, first: bool = False, full: bool = False) -> bytes:
        """Return the message about the devices: none without power."""
        body = self.body
        state = {"cursor_position": dict(zip(AXES, body.position, strict=True))}
        if self._with_velocity:
            state["cursor_velocity"] = dict(zip(AXES, body.velocity, strict=True))
        state["current_cursor_force"] = dict(zip(AXES, body.force, strict=True))
        status = {"calibrated": self._calibrated, "in_use": True, "power_supply": body.plugged, "ready": True}
        device: dict[str, Any] = {"device_id": self.device, "state": state, "status": status}
        if first or full:
            device["config"] = self._config
        message: dict[str, Any] = {"inverse3": [device] if body.plugged else []}
        if first:
            message["session_id"] = len(self.clients)
        return json.dumps(message).encode()


def main() -> None:
    """Run the service until its standard input closes."""
    service = Service(given_options())
    commands = service.commands()
    lines = CommandChannel(commands)
    ask_for_privileges()  # a device is on time
    lines.ready(service.driver_options, [name for name in commands if name not in ("state", "log")])
    due = time.monotonic()
    while lines.serve():
        service.turn(max(0.0, due - time.monotonic()), lines.descriptor)
        due = max(due + _IDLE, time.monotonic()) if time.monotonic() >= due else due


if __name__ == "__main__":
    main()
