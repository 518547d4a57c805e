"""A live run in viewers: a thread of the session reads its rings some times a second and sends the latest row.

The tick process neither knows nor waits for it.  Rows between two looks are not shown; a recording has them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import secrets
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict
from urllib.parse import urlsplit

import msgspec
import numpy as np

from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.processes import give_way
from fsm_dyn.live.session import LiveSession
from fsm_dyn.run.loop_state import read_transitions
from fsm_dyn.run.record import transition_of
from fsm_dyn.run.samples import Samples, stacked
from fsm_dyn.run.scene_inference import with_symbols
from fsm_dyn.run.transitions import Transition
from fsm_dyn.run.viewer_files import EXTRA, RerunLog
from fsm_dyn.run.viewer_scene import Message, MovingScene, nanoseconds, row_messages, transition_messages

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

# -- The thread that shows a run -----------------------------------------------------------------------------

INTERVAL: Final = 1.0 / 30.0  # s between looks
ANSWER: Final = 2.0  # s, for a viewer to take a connection
TOGETHER: Final = 0.15  # s, of rows sent to Rerun together
RERUN_PORT: Final = 9876  # where the viewer Rerun listens


class Viewer(Protocol):
    """Viewer of a live run."""

    @property
    def dropped(self) -> int:
        """Messages that it did not take in time."""

    def show(self, row: Samples, moving: MovingScene | None, transitions: Sequence[Transition], *, first: bool) -> None:
        """Show one row, the drawing at it, and the transitions since the row before.

        ``moving``: none for a model without a drawing; ``first``: whether outlines are to be sent.
        """

    def close(self) -> None:
        """End the connection; may be called again."""


class ViewerReport(TypedDict):
    """Rows shown, messages that viewers did not take in time, transitions that were overwritten, why showing ended."""

    rows: int
    dropped: int
    transitions_lost: int
    failure: str


class LiveViewers:
    """Thread that shows a live run in viewers until closed. ``viewers``: closed by their owner."""

    def __init__(self, session: LiveSession, viewers: Sequence[Viewer]) -> None:
        self._session, self._viewers = session, viewers
        self._count = self._asked = self._lost = 0
        self._failure = ""
        self._moving: MovingScene | None = None
        self._shown: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="viewers", daemon=True)
        self._thread.start()

    def report(self) -> ViewerReport:
        """Return the counts of messages shown and lost."""
        return {
            "rows": self._count,
            "dropped": sum(viewer.dropped for viewer in self._viewers),
            "transitions_lost": self._lost,
            "failure": self._failure,
        }

    def close(self) -> ViewerReport:
        """Show the last row and end the thread; return the report.  May be called again."""
        self._stop.set()
        self._thread.join()
        return self.report()

    def _run(self) -> None:
        give_way()  # a tick may wait for this processor
        try:
            while not self._stop.wait(INTERVAL):
                self._look()
            self._look()
        except Exception as error:  # of a viewer's package, or of a model that cannot be drawn: the run continues
            self._failure = f"{type(error).__name__}: {error}"[:300]

    def _look(self) -> None:
        """Show the latest row, unless it was shown already."""
        transitions = self._transitions()
        # the row before has the rates of inputs
        rows, _ = self._session.samples(max(0, self._session.tick_count - 2))
        if not len(rows) or (float(rows.t[-1]) == self._shown and not transitions):
            return
        row = rows.only(np.array([len(rows) - 1]))
        first = self._shown is None
        self._shown = float(row.t[0])
        self._moving = self._drawn(row)
        for viewer in self._viewers:
            viewer.show(row, self._moving, transitions, first=first)
        self._count += 1

    def _drawn(self, row: Samples) -> MovingScene | None:
        model, before = row.model, self._moving
        if model.scene is None or model.automaton is None:
            return None
        if before is not None:
            return MovingScene(before.scene, row, before)
        return MovingScene(with_symbols(model.scene, model.automaton, model.values, row.t, row.x, row.context), row)

    def _transitions(self) -> list[Transition]:
        """Return the transitions since the last look."""
        automaton, before = self._session.graph.automaton, self._asked
        records, self._asked = self._session.records(before)
        self._lost += self._asked - before - len(records)
        found = read_transitions(records[:, 1:], len(automaton.rows), len(automaton.terms.layout.u))
        modes = [self._session.modes_at(record[0]) for record in records]
        return [transition_of(automaton, names, found, states, i) for i, (names, states) in enumerate(modes)]


# -- Server of the Foxglove WebSocket protocol, for this machine alone, with a secret in the address -----------
#
# Channels, their JSON schemas and messages are those of MCAP files.  A viewer gets, of each topic it subscribes to, the
# latest message, of transitions the latest ones, and those that follow; what it does not take in time is dropped, the
# oldest first, and counted.
# The protocol: https://github.com/foxglove/ws-protocol/blob/main/docs/spec.md; its successor ``foxglove.sdk.v1`` has
# the same messages.

LOOPBACK: Final = "127.0.0.1"
PROTOCOLS: Final = ("foxglove.sdk.v1", "foxglove.websocket.v1")
MOST_VIEWERS: Final = 4
KEPT: Final = {"/transitions": 128, "/log": 128}  # messages for viewers that come later; of other topics the latest
MOST_WAITING: Final = 512  # messages queued for a viewer
LONGEST: Final = 2**16  # bytes of a message from a viewer
_DATA, _TIME = 1, 2  # binary messages
_LINGER: Final = 1.0  # s, for viewers to take the last messages
_WARNING: Final = 1  # level of a status
_TRY_LATER: Final = 1013


class _Viewer:
    """Connection of a viewer: subscriptions by channel, and messages that wait for it."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        self.subscribed: dict[int, int] = {}  # number of the subscription by that of the channel
        self.waiting: deque[str | bytes] = deque()
        self.something, self.idle = asyncio.Event(), asyncio.Event()
        self.dropped = 0

    def queue(self, content: Mapping[str, Any]) -> None:
        """Queue a message of the protocol, which is never dropped."""
        self.waiting.append(json.dumps(content))
        self.something.set()

    def give(self, head: bytes, payload: bytes = b"") -> None:
        """Queue data; the oldest data are dropped if too many wait."""
        if len(self.waiting) >= MOST_WAITING:
            oldest = next((k for k, item in enumerate(self.waiting) if isinstance(item, bytes)), None)
            if oldest is not None:
                del self.waiting[oldest]
                self.dropped += 1
        self.waiting.append(head + payload)
        self.something.set()

    async def send(self) -> None:
        """Send waiting messages, until cancelled."""
        while True:
            await self.something.wait()
            self.something.clear()
            self.idle.clear()
            while self.waiting:
                await self.socket.send(self.waiting.popleft())
            self.idle.set()


class FoxgloveServer:
    """Server with its thread; viewers only read.

    ``name``: of the model, as viewers show it. ``port``: TCP port on the loopback interface; 0: any free one.
    ``address``: for the viewer; its path is a secret made at each start. Raises InputError: the port is in use, or the
    package ``websockets`` is not installed.
    """

    def __init__(self, name: str, port: int = 0) -> None:
        self._serve = optional_library("websockets.asyncio.server", "view").serve
        self._broken = optional_library("websockets.exceptions", "view").ConnectionClosed
        self._name, self._token = name, secrets.token_urlsafe(24)
        self._session = secrets.token_hex(8)
        self._channels: dict[str, dict[str, Any]] = {}
        self._latest: dict[int, deque[tuple[int, bytes]]] = {}  # times (ns) and contents by channel
        self._viewers: set[_Viewer] = set()
        self._gone = 0  # messages dropped for viewers that have left
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(self._listen(port))
        self._port = self._server.sockets[0].getsockname()[1]
        self.address = f"ws://{LOOPBACK}:{self._port}/{self._token}"
        self._loop.call_soon(give_way)
        self._thread = threading.Thread(target=self._loop.run_forever, name="foxglove server", daemon=True)
        self._thread.start()

    async def _listen(self, port: int) -> Any:
        try:
            return await self._serve(
                self._accept, LOOPBACK, port, subprotocols=PROTOCOLS, process_request=self._check,
                compression=None, max_size=LONGEST,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"port {port} cannot be used", found=str(error.strerror or error)) from error

    @property
    def dropped(self) -> int:
        """Messages that viewers did not take in time."""
        return self._gone + sum(viewer.dropped for viewer in list(self._viewers))

    def publish(self, messages: Iterable[Message]) -> None:
        """Send messages to the viewers, encoded here; may be called from any thread, and does not wait.

        ``messages``: in the order of their times, s.
        """
        encoded = [
            (nanoseconds(time), topic, schema, msgspec.json.encode(content))
            for time, topic, schema, content in messages
        ]
        if encoded:
            self._loop.call_soon_threadsafe(self._publish, encoded)

    def close(self) -> None:
        """Close connections and port; may be called again."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(_LINGER):
                await asyncio.gather(*(viewer.idle.wait() for viewer in self._viewers))
        self._server.close()
        await self._server.wait_closed()

    # -- in its thread -------------------------------------------------------------------------------------

    def _publish(self, messages: list[tuple[int, str, Mapping[str, Any], bytes]]) -> None:
        for at, topic, schema, data in messages:
            if topic not in self._channels:
                self._open(topic, schema)
            number = self._channels[topic]["id"]
            self._latest[number].append((at, data))
            for viewer in self._viewers:
                if number in viewer.subscribed:
                    viewer.give(_head(viewer.subscribed[number], at), data)
        clock = struct.pack("<BQ", _TIME, messages[-1][0])
        for viewer in self._viewers:
            viewer.give(clock)

    def _open(self, topic: str, schema: Mapping[str, Any]) -> None:
        """Make a channel known."""
        channel = {
            "id": len(self._channels) + 1, "topic": topic, "encoding": "json", "schemaName": schema["title"],
            "schema": json.dumps(schema), "schemaEncoding": "jsonschema",
        }  # fmt: skip
        self._channels[topic] = channel
        self._latest[len(self._channels)] = deque(maxlen=KEPT.get(topic, 1))
        for viewer in self._viewers:
            viewer.queue({"op": "advertise", "channels": [channel]})

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse foreign names of this machine and addresses without the secret."""
        hosts = {f"{name}:{self._port}" for name in (LOOPBACK, "localhost")}
        if request.headers.get("Host", "") not in hosts:
            return connection.respond(HTTPStatus.MISDIRECTED_REQUEST, "unknown host name\n")
        if not secrets.compare_digest(request.path.encode(), f"/{self._token}".encode()):
            return connection.respond(HTTPStatus.NOT_FOUND, "not found\n")
        return None

    async def _accept(self, socket: ServerConnection) -> None:
        if len(self._viewers) >= MOST_VIEWERS:
            await socket.close(_TRY_LATER, "too many viewers")
            return
        viewer = _Viewer(socket)
        viewer.queue(
            {"op": "serverInfo", "name": f"fsm_dyn {self._name}", "capabilities": ["time"], "sessionId": self._session,
             "metadata": {"model": self._name, "time": "s of the model"}}
        )  # fmt: skip
        viewer.queue({"op": "advertise", "channels": list(self._channels.values())})
        self._viewers.add(viewer)
        sending = asyncio.create_task(viewer.send())
        try:
            with contextlib.suppress(self._broken):
                async for message in socket:
                    self._take(viewer, message)
        finally:
            self._viewers.discard(viewer)
            self._gone += viewer.dropped
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # a connection that broke
                await sending

    def _take(self, viewer: _Viewer, text: str | bytes) -> None:
        """Carry out a request of a viewer; others than subscriptions are answered by a warning."""
        try:
            request = msgspec.json.decode(text, type=_Subscribe | _Unsubscribe)
        except msgspec.MsgspecError as error:
            reason = f"not a request that this server takes: {error}"
            viewer.queue({"op": "status", "level": _WARNING, "message": reason[:200]})
            return
        if isinstance(request, _Unsubscribe):
            gone = {*request.subscriptionIds}
            viewer.subscribed = {channel: own for channel, own in viewer.subscribed.items() if own not in gone}
            return
        known = {channel["id"] for channel in self._channels.values()}
        for item in request.subscriptions:
            if item.channelId not in known:
                viewer.queue({"op": "status", "level": _WARNING, "message": f"there is no channel {item.channelId}"})
                continue
            viewer.subscribed[item.channelId] = item.id
            for at, data in self._latest[item.channelId]:
                viewer.give(_head(item.id, at), data)


def _head(subscription: int, time: int) -> bytes:
    """Return the header of a message at a time, ns."""
    return struct.pack("<BIQ", _DATA, subscription, time)


# names as they are in the protocol
class _Subscription(msgspec.Struct):
    id: int = msgspec.field()
    channelId: int = msgspec.field()


class _Subscribe(msgspec.Struct, tag="subscribe", tag_field="op"):
    subscriptions: list[_Subscription]


class _Unsubscribe(msgspec.Struct, tag="unsubscribe", tag_field="op"):
    subscriptionIds: list[int]


class Foxglove:
    """Viewers such as Foxglove, connected to a server here. ``name``: of the model; ``port``: 0: any free one."""

    def __init__(self, name: str, port: int = 0) -> None:
        self._name, self._server = name, FoxgloveServer(name, port)
        self.address = self._server.address

    @property
    def dropped(self) -> int:
        """Messages that viewers did not take in time."""
        return self._server.dropped

    def show(self, row: Samples, moving: MovingScene | None, transitions: Sequence[Transition], *, first: bool) -> None:
        """Publish a row; see :meth:`Viewer.show`."""
        messages = [message for one in transitions for message in transition_messages(one, self._name)]
        messages += row_messages(row)
        if moving is not None:
            messages += moving.anew_messages() if first else []
            messages += moving.motion_messages()
        self._server.publish(messages)

    def close(self) -> None:
        """Close the server."""
        self._server.close()


# -- The viewer Rerun --------------------------------------------------------------------------------------


class Rerun:
    """The viewer Rerun, which listens on this machine and was started before.

    ``name``: of the model; ``address``: its port, or ``rerun+http://HOST:PORT/proxy``, of this machine. Raises
    InputError: the address is not one of this machine, or the package rerun-sdk is not installed.
    """

    dropped = 0  # its package waits for the viewer, in the thread of the viewers

    def __init__(self, name: str, address: str = str(RERUN_PORT)) -> None:
        self._name, self.address = name, rerun_address(address)
        self._library = optional_library("rerun", EXTRA)
        parts = urlsplit(self.address)
        try:
            socket.create_connection((parts.hostname, parts.port or RERUN_PORT), ANSWER).close()
        except OSError as error:
            raise InputError(
                f"no viewer listens at '{self.address}'", found=str(error.strerror or error),
                remedy=f"start it: rerun --bind 127.0.0.1 --port {parts.port or RERUN_PORT}",
            ) from error  # fmt: skip
        self._log: RerunLog | None = None
        self._rows: list[Samples] = []
        self._transitions: list[Transition] = []
        self._moving: MovingScene | None = None
        self._sent = 0.0

    def show(self, row: Samples, moving: MovingScene | None, transitions: Sequence[Transition], *, first: bool) -> None:
        """Log a row; see :meth:`Viewer.show`.  Each run is one recording."""
        if first or self._log is None:
            self.close()
            self._log = RerunLog(self._library, self._name, f" {time.time_ns()}")
            self._log.recording.connect_grpc(self.address)
            if moving is not None:
                self._log.outlines(moving)
        if self._rows and self._rows[0].model is not row.model:
            self._send(self._log)
        self._rows.append(row)
        self._transitions += transitions
        self._moving = moving
        if time.monotonic() - self._sent > TOGETHER:
            self._send(self._log)

    def _send(self, log: RerunLog) -> None:
        """Log the rows that wait, as one table: a column costs as much as a row of it."""
        if self._rows:
            rows = stacked(self._rows)
            log.rows(rows)
            if self._moving is not None:
                log.motion(MovingScene(self._moving.scene, rows, self._moving))
        log.transitions(self._transitions)
        self._rows, self._transitions, self._sent = [], [], time.monotonic()

    def close(self) -> None:
        """Send waiting messages, and end the connection."""
        if self._log is not None:
            self._send(self._log)
            self._log.recording.disconnect()
            self._log = None


def rerun_address(text: str) -> str:
    """Return the address of a viewer on this machine from its port or address.

    Raises InputError: it is neither, or of another machine.
    """
    if text.isdecimal() and 0 < int(text) < 2**16:
        return f"rerun+http://127.0.0.1:{int(text)}/proxy"
    parts = urlsplit(text)
    if parts.scheme != "rerun+http" or parts.path != "/proxy" or not _is_loopback(parts.hostname or ""):
        raise InputError(
            "not the address of a viewer on this machine", found=text[:80],
            allowed=f"a port, or rerun+http://127.0.0.1:{RERUN_PORT}/proxy",
        )  # fmt: skip
    return text


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def viewers_of(
    name: str, foxglove: int | None, rerun: str | None, opened: Callable[[str], None]
) -> Iterator[tuple[Foxglove | Rerun, ...]]:
    """Give the viewers that were asked for, closed at the end; see :class:`Foxglove` and :class:`Rerun`.

    ``opened`` is called with the address of the server.
    """
    with contextlib.ExitStack() as made:
        found: list[Foxglove | Rerun] = []
        if rerun is not None:
            found.append(Rerun(name, rerun))
            made.callback(found[-1].close)
        if foxglove is not None:
            found.append(Foxglove(name, foxglove))
            made.callback(found[-1].close)
            opened(found[-1].address)
        yield tuple(found)
