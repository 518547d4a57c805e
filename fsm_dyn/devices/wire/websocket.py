"""WebSocket client (RFC 6455) on a non-blocking socket whose frames another process can write too.

Received bytes go through the protocol of the package ``websockets``, which does no input or output itself.  Messages to
be sent are framed here, independent of the receiving side, so that the force can be removed after invalid input too.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import time
from typing import Final

from websockets.client import ClientProtocol
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

_CHUNK: Final = 65536
_LONGEST: Final = 2**18  # bytes of a message
_FAREWELL: Final = 0.1  # s that the last frames may take
_SILENT: Final = logging.getLogger(f"{__name__}.protocol")  # what goes wrong is raised, not logged
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def text_frame(text: str) -> bytes:
    """Return a message as a client sends it, masked."""
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=True)


def close_frame() -> bytes:
    """Return the frame with which a client leaves, masked."""
    return Frame(Opcode.CLOSE, Close(CloseCode.GOING_AWAY, "").serialize()).serialize(mask=True)


class WebSocketLine:
    """The client's end of a WebSocket.

    Parameters
    ----------
    connected : socket
        To the server; nothing was said yet.
    who : str
        The server's name, for messages.
    """

    def __init__(self, connected: socket.socket, who: str) -> None:
        self._socket, self._who = connected, who
        connected.setblocking(False)
        host, port = connected.getpeername()[:2]
        address = parse_uri(f"ws://[{host}]:{port}/" if ":" in host else f"ws://{host}:{port}/")
        self._protocol = ClientProtocol(address, max_size=_LONGEST, logger=_SILENT)
        self._frames: list[Frame] = []  # that came and were not looked at
        self._shaken = False
        self._unsent = b""
        self._message = b""  # what came of one in several frames

    def open(self, patience: float) -> None:
        """Shake hands.

        Raises
        ------
        TimeoutError, ConnectionError
            The server does not answer in time (s), or not as one of WebSockets does.
        """
        self._protocol.send_request(self._protocol.connect())
        self._send(b"".join(self._protocol.data_to_send()))
        until = time.monotonic() + patience
        while not self._shaken:
            if time.monotonic() > until:
                raise TimeoutError(f"{self._who} did not answer within {patience:g} s")
            self.wait(0.05)
            self._take()

    def wait(self, patience: float) -> None:
        """Wait until something comes, so long (s) at the most."""
        select.select([self._socket], [], [], patience)

    def receive(self) -> list[bytes]:
        """Return the messages that have come.

        Raises
        ------
        ConnectionError
            The server has closed, or what came is no WebSocket frame.
        """
        self._take()
        found = []
        frames, self._frames = self._frames, []
        for frame in frames:
            if frame.opcode is Opcode.CLOSE:
                raise ConnectionAbortedError(f"{self._who} has closed the connection: {Close.parse(frame.data)}")
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._message += bytes(frame.data)
                if frame.fin:
                    found.append(self._message)
                    self._message = b""
        return found

    def _take(self) -> None:
        """Take what came, and answer pings."""
        protocol = self._protocol
        while True:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except ConnectionError as error:
                raise type(error)(f"the connection to {self._who} broke: {error.strerror}") from error
            if not data:
                raise ConnectionAbortedError(f"{self._who} has closed the connection")
            protocol.receive_data(data)
            if protocol.handshake_exc is not None:
                raise ConnectionError(f"{self._who} speaks no WebSocket: {protocol.handshake_exc}")
            if protocol.parser_exc is not None:
                raise ConnectionError(f"{self._who} speaks no WebSocket any more: {protocol.parser_exc}")
        for event in protocol.events_received():
            if isinstance(event, Response):
                self._shaken = True
            elif isinstance(event, Frame):
                self._frames.append(event)
        answers = b"".join(protocol.data_to_send())
        if answers and not any(frame.opcode is Opcode.CLOSE for frame in self._frames):  # a last word is still to come
            self._send(answers)

    def say(self, text: str) -> bool:
        """Send a message; return whether it went, which it does not where the server has long not read."""
        return self._send(text_frame(text))

    def _send(self, data: bytes) -> bool:
        """Send whole frames or none; the rest of one that was begun goes first."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            self._unsent = data[self._socket.send(data) :]
        except BlockingIOError:
            return False
        except ConnectionError as error:
            raise type(error)(f"the connection to {self._who} broke: {error.strerror}") from error
        return True

    def close(self) -> None:
        """Leave, after what was begun."""
        until = time.monotonic() + _FAREWELL
        with contextlib.suppress(OSError):
            while not self._send(close_frame()) and time.monotonic() < until:
                select.select([], [self._socket], [], 0.01)
        self._socket.close()
