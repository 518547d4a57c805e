"""A service that answers as Haply's does, see :mod:`fsm_dyn.devices.inverse3`, with one device made of numbers.

Options are those of :class:`~fsm_dyn.devices.emulators.body.EmulatedBody` and ``port`` (to listen at; a free one),
``device_id`` (``0E00``), ``velocity`` (whether states have velocities; true).  Whatever it is sent names the force by
``vector`` or ``values``.  It lets go when its client leaves, and its watchdog is what makes a device idle that is sent
nothing.  A command beyond the others: ``leave`` closes the connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from fsm_dyn.devices.emulators.body import EmulatedBody, check
from fsm_dyn.devices.emulators.lines import Lines, given_options
from fsm_dyn.devices.emulators.starting import EmulationProcess
from fsm_dyn.devices.inverse3 import AXES, listed, parsed, vector
from fsm_dyn.errors import InputError
from fsm_dyn.live.realtime import ask_for_privileges

_KNOWN: Final = frozenset({"port", "device_id", "velocity"})
_IDLE: Final = 0.001  # s between looks at the handles where nobody asks


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start the service.

    Raises
    ------
    InputError
        There is no such option, or it cannot be so.
    """
    check("inverse3", options, _KNOWN)
    if int(options.get("axes", 3)) != 3:
        raise InputError("axes of an Inverse3", found=str(options["axes"]), allowed="3")
    return EmulationProcess(__name__, options)


class Client:
    """Somebody who is connected."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.protocol, self.gone = connected, ServerProtocol(), False

    def hear(self) -> list[Any]:
        """Return what came: a request to shake hands, frames."""
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
        """Send bytes, whatever they are; what a client does not read is lost."""
        with contextlib.suppress(OSError):
            self.socket.send(data)

    def pass_on(self) -> None:
        """Send what the protocol has to say."""
        for data in self.protocol.data_to_send():
            self.send(data)
            self.gone = self.gone or not data


class Service:
    """Tells of the device, and has forces shown on it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.body = EmulatedBody(options)
        self.device = str(options.get("device_id", "0E00"))
        self._with_velocity = bool(options.get("velocity", True))
        self.listening = socket.create_server(("127.0.0.1", int(options.get("port", 0))))
        self.listening.setblocking(False)
        self.clients: list[Client] = []

    @property
    def driver_options(self) -> dict[str, Any]:
        """What the driver has to be told."""
        return {"device_id": self.device, "port": self.listening.getsockname()[1], **self.body.known}

    def commands(self) -> dict[str, Any]:
        """Return what carries out what is asked on the standard input."""
        return {**self.body.commands(), "leave": self._leave}

    def _leave(self) -> None:
        for client in self.clients:
            client.protocol.send_close(1001)
            client.pass_on()
        self.body.release("no client")

    def turn(self, patience: float, beside: int) -> None:
        """Wait for whatever comes, and see to it."""
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
        """Answer what a client said: states to forces, one to one."""
        for event in client.hear():
            if isinstance(event, Request):
                client.protocol.send_response(client.protocol.accept(event))
                client.protocol.send_text(self._told(first=True))
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                client.pass_on()
                self._obey(event.data)
                self._answer(client)
        client.pass_on()

    def _obey(self, message: bytes | bytearray | memoryview) -> None:
        try:
            item = listed(parsed(bytes(message)))[self.device]
            shown = item["commands"]["set_cursor_force"]
            force = vector(shown.get("vector", shown.get("values")))
        except (ValueError, KeyError):
            self.body.counts["no force"] += 1
            return
        self.body.obey(force)

    def _answer(self, client: Client) -> None:
        """Send a state, or what is left of it on this line."""
        if self.body.stalled or self.body.frozen or client.protocol.state is not State.OPEN:
            return
        if self.body.spoiling.once:
            client.send(os.urandom(self.body.spoiling.once))
            self.body.spoiling.once = 0
        client.protocol.send_text(self._told())
        data = b"".join(client.protocol.data_to_send())
        if self.body.spoiling.how == "garbage":
            data = os.urandom(len(data))
        elif self.body.spoiling.how == "half":
            data = data[: len(data) // 2]
        client.send(data)

    def _told(self, first: bool = False) -> bytes:
        """Return what the service says of its devices: none, where there is no power."""
        body = self.body
        state = {"cursor_position": dict(zip(AXES, body.position, strict=True))}
        if self._with_velocity:
            state["cursor_velocity"] = dict(zip(AXES, body.velocity, strict=True))
        state["current_cursor_force"] = dict(zip(AXES, body.force, strict=True))
        device: dict[str, Any] = {"device_id": self.device, "state": state}
        if first:
            device["config"] = {"type": "inverse3", "handedness": "right"}
        message: dict[str, Any] = {"inverse3": [device] if body.plugged else []}
        if first:
            message["session_id"] = len(self.clients)
        return json.dumps(message).encode()


def main() -> None:
    """Run the service until its standard input closes."""
    service = Service(given_options())
    commands = service.commands()
    lines = Lines(commands)
    ask_for_privileges()  # a device is punctual
    lines.ready(service.driver_options, [name for name in commands if name not in ("state", "log")])
    due = time.monotonic()
    while lines.serve():
        service.turn(max(0.0, due - time.monotonic()), lines.descriptor)
        due = max(due + _IDLE, time.monotonic()) if time.monotonic() >= due else due


if __name__ == "__main__":
    main()
