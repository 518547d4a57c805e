"""Serve the page until Ctrl-C: address, event loop, file watch."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import FsmDynError, InputError
from fsm_dyn.file_changes import INTERVAL, FileChanges
from fsm_dyn.interrupts import asked_to_end
from fsm_dyn.live.run_report import RunReport
from fsm_dyn.viewer.background_compile import compile_ahead
from fsm_dyn.viewer.catalogue import Catalogue
from fsm_dyn.viewer.commands import LONGEST
from fsm_dyn.viewer.live_broadcast import LiveBroadcast, package_error
from fsm_dyn.viewer.live_view import LiveOptions
from fsm_dyn.viewer.playback_session import PlaybackSession
from fsm_dyn.viewer.recorded_run import RecordedRun
from fsm_dyn.viewer.server import make_app, new_token

LOOPBACK: Final = "127.0.0.1"
HEADERS: Final = 10.0  # s, timeout for the headers of a request


@dataclass(frozen=True)
class WatchedFile:
    """File that is recompiled when saved, and its model as on the command line."""

    path: Path
    model: str
    compile: Callable[[], ModeGraph]


def serve(
    graph: ModeGraph | FsmDynError,
    options: LiveOptions,
    port: int = 0,
    watched: WatchedFile | None = None,
    opened: Callable[[str], None] = lambda address: None,
) -> list[RunReport]:
    """Serve the page of a model until Ctrl-C; return the reports of the runs.

    Parameters
    ----------
    graph : ModeGraph, or the error that its model has
    options : LiveOptions
    port : int
        0: any free one.
    watched : WatchedFile, optional
    opened : callable
        Called with the address once the page can be opened.

    Returns
    -------
    list of RunReport
        One for each run that was begun.

    Raises
    ------
    InputError
        The port is in use.
    """
    source = LiveBroadcast(options)
    tasks: list[Callable[[], Coroutine[Any, Any, None]]] = [lambda: _begin(source, graph)]
    if options.device is not None:
        tasks.append(source.watch_device)
    if watched is not None:
        tasks.insert(0, lambda: _watch(watched, source))
    _serve_until_asked(source, port, tasks, opened)
    return source.summary


def serve_recorded_run(
    make: Callable[[], RecordedRun], name: str, port: int = 0, opened: Callable[[str], None] = lambda address: None
) -> None:
    """Serve the page of a recorded run until Ctrl-C; raises InputError if the port is in use.

    Parameters
    ----------
    make : callable
        Returns the recorded run.
    name : str
        Shown until then.
    port, opened
        As for :func:`serve`.
    """
    _serve_until_asked(PlaybackSession(make, name), port, [], opened)


def serve_catalogue(
    compiled: Callable[[str], ModeGraph],
    options: LiveOptions,
    port: int = 0,
    opened: Callable[[str], None] = lambda address: None,
) -> list[RunReport]:
    """Serve a page of all shipped models, of which one at a time runs, until Ctrl-C; return the reports of the runs.

    Parameters
    ----------
    compiled : callable
        Returns the graph of a shipped model by its name.
    options, port, opened
        As for :func:`serve`.
    """
    source = LiveBroadcast(options)
    _serve_until_asked(source, port, [], opened, Catalogue(source, compiled))
    return source.summary


def _serve_until_asked(
    source: LiveBroadcast | PlaybackSession,
    port: int,
    tasks: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    opened: Callable[[str], None],
    catalogue: Catalogue | None = None,
) -> None:
    listening = listen(port)
    number, token = listening.getsockname()[1], new_token()
    server = Server(configured(source, token, number, catalogue))
    page = "" if catalogue is None else "models.html"
    closing = [source] if catalogue is None else [catalogue, source]

    def end(before: int) -> None:
        """Stop the server, at a second request without waiting for its pages.  The run ends cleanly in both cases."""
        server.should_exit, server.force_exit = True, before > 0

    with asked_to_end(end):
        asyncio.run(
            _serve(server, listening, [source.play, *tasks], closing, lambda: opened(address(number, token) + page))
        )


class Connection(H11Protocol):
    """HTTP connection that is closed without a request within ``HEADERS`` seconds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout."""
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self) -> None:
        """Restart the timeout."""
        super().on_response_complete()
        self._await_request()

    def _await_request(self) -> None:
        cycle = self.cycle
        self.loop.call_later(HEADERS, lambda: self._close_unless(cycle))

    def _close_unless(self, before: object) -> None:
        """Close if no request has followed and no other protocol (WebSocket) has taken over."""
        if self.cycle is before and self.transport.get_protocol() is self:
            self.transport.close()


class Server(uvicorn.Server):
    """Server that installs no signal handlers, as the run has to end cleanly after it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def configured(
    source: LiveBroadcast | PlaybackSession, token: str, port: int, catalogue: Catalogue | None = None
) -> uvicorn.Config:
    """Return the server's configuration: errors logged only, small messages, short graceful shutdown."""
    return uvicorn.Config(
        make_app(source, token, port, catalogue), log_level="error", lifespan="off", ws_max_size=LONGEST,
        ws_max_queue=64, timeout_graceful_shutdown=1, server_header=False, http=Connection,
    )  # fmt: skip


def address(port: int, token: str) -> str:
    """Return the address of the page."""
    return f"http://{LOOPBACK}:{port}/{token}/"


def listen(port: int) -> socket.socket:
    """Return a socket bound to a port of the loopback interface; raises InputError if it is in use."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()  # connections before the server is ready wait
    except OSError as error:
        listening.close()
        raise InputError(f"cannot serve on port {port}", found=str(error), remedy="name another --port") from error
    return listening


async def _serve(
    server: uvicorn.Server,
    listening: socket.socket,
    works: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    closing: Sequence[LiveBroadcast | PlaybackSession | Catalogue],
    opened: Callable[[], None],
) -> None:
    tasks = [asyncio.create_task(work()) for work in works]
    opened()
    try:
        await server.serve(sockets=[listening])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for part in closing:
            await part.close()
        listening.close()


async def _begin(source: LiveBroadcast, graph: ModeGraph | FsmDynError) -> None:
    if isinstance(graph, FsmDynError):
        source.failed(graph)
    else:
        await source.start(graph)


async def _watch(watched: WatchedFile, source: LiveBroadcast) -> None:
    """Recompile a file after it has changed and is stable; on an error the run continues.

    A file that is saved during compilation is compiled again from the start.
    """
    file = FileChanges(watched.path)
    compiling: asyncio.Task[None] | None = None
    try:
        while True:
            await asyncio.sleep(INTERVAL)
            if file.changed():
                if compiling is not None:
                    compiling.cancel()
                compiling = asyncio.create_task(_anew(watched, source))
    finally:
        if compiling is not None:
            compiling.cancel()
            await asyncio.gather(compiling, return_exceptions=True)


async def _anew(watched: WatchedFile, source: LiveBroadcast) -> None:
    """Compile a file in a separate process, then start its run from the cache."""
    try:
        with source.recompiling(watched.path.name) as emit:
            await compile_ahead(watched.model, source.options.parameters or {}, emit)
            graph = await asyncio.to_thread(watched.compile)
    except Exception as error:
        source.failed(package_error(error, f"'{watched.path.name}' was not compiled"))
    else:
        await source.start(graph)
