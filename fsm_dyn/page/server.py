"""HTTP and WebSocket server of the page, for this machine alone, with a secret in the address."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import NOWHERE, FsmDynError, InputError, Location, ModelError, RunError
from fsm_dyn.core.files import INTERVAL, FileChanges
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import models
from fsm_dyn.language.loader import heading
from fsm_dyn.live.session import RunReport
from fsm_dyn.page.broadcast import (
    LONGEST,
    Listener,
    LiveBroadcast,
    RateLimiter,
    error_payload,
    package_error,
    plain,
    read_command,
)
from fsm_dyn.page.editor import Editor, editor_routes
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.playback import PlaybackSession, RecordedRun, Reruns


class ViewSwitch:
    """Source of pages: the live run, and on request a finished run of its model with the same parameters.

    The finished run has the model's own inputs and end. The live one is paused meanwhile.
    """

    def __init__(self, live: LiveBroadcast) -> None:
        self._live = live
        self._finished: PlaybackSession | None = None
        self._listeners: list[Listener] = []
        self._playing: asyncio.Task[None] | None = None

    @property
    def _shown(self) -> LiveBroadcast | PlaybackSession:
        return self._finished or self._live

    def join(self, listener: Listener) -> None:
        """Add a page."""
        self._listeners.append(listener)
        self._shown.join(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a page."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._shown.leave(listener)

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Execute a page command: ``visits`` and ``live`` exchange the runs, all others go to the shown one.

        Raises FsmDynError: the command cannot be executed.
        """
        match command["do"]:
            case "visits" if self._finished is None:
                self._finish()
            case "live" if self._finished is not None:
                await self._end_finished()
            case "visits" | "live":
                return
            case _:
                await self._shown.carry_out(command)

    def _finish(self) -> None:
        graph, view = self._live.graph, self._live.view
        if graph is None or view is None:
            raise InputError("no active run", remedy="correct the model, or restart")
        view.session.send("pause")
        known = set(graph.automaton.mechanism.parameters)
        own = {name: value for name, value in view.run_parameters.overrides.items() if name in known}
        finished = PlaybackSession(Reruns(graph, own), graph.name, live=True)
        for listener in self._listeners:
            self._live.leave(listener)
            finished.join(listener)
        self._finished = finished
        self._playing = asyncio.create_task(finished.play())

    async def _end_finished(self) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            await finished.close()
        for listener in self._listeners:
            if finished is not None:
                finished.leave(listener)
            self._live.join(listener)

    async def close(self) -> None:
        """End the finished run; the live one is closed by its owner."""
        await self._end_finished()


# -- Background compilation of a model in a separate process -------------------------------------------------
#
# Background compilation of a model in a separate process, which fills the cache on disk for the server.
#
# Derivation takes seconds of Python: in the server's process it would block all pages. The process writes one line of
# JSON per stage, and one for an error of the model.

MAX_TEXT = 2000  # characters of a message
LONGEST_LINE = 2**20  # bytes: four such texts, escaped


async def compile_ahead(model: str, parameters: Mapping[str, Any], emit: Callable[[str], None]) -> None:
    """Compile a model in another process, which is killed on cancellation.

    ``model``: as on the command line; ``parameters``: values that replace the file's; ``emit``: called with the text of
    every stage. Raises FsmDynError: the model has an error, or the process failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fsm_dyn.page.server", model, json.dumps(dict(parameters)),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        async for line in process.stdout:
            data = json.loads(line)
            if "stage" in data:
                emit(data["stage"])
            else:
                raise error_from(data)
        if await process.wait() != 0:
            raise RunError(f"compiling '{model}' failed\n{(await complaints).decode(errors='replace')[-MAX_TEXT:]}")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await complaints


def error_data(error: FsmDynError) -> dict[str, Any]:
    """Return an error as data for JSON."""
    if not isinstance(error, InputError):
        return {"message": str(error)[:MAX_TEXT]}
    texts = {name: getattr(error, name)[:MAX_TEXT] for name in ("message", "found", "allowed", "remedy")}
    return {**texts, "where": list(error.where)}


def error_from(data: Mapping[str, Any]) -> FsmDynError:
    """Return the error from :func:`error_data`."""
    if "where" not in data:
        return RunError(data["message"])
    where = Location(*data["where"]) if data["where"] else NOWHERE
    return ModelError(data["message"], where, found=data["found"], allowed=data["allowed"], remedy=data["remedy"])


def main() -> None:
    """Compile a model, add its couplers, and compile all machine code of its live run."""

    def say(data: dict[str, Any]) -> None:
        sys.stdout.write(f"{json.dumps(data)}\n")
        sys.stdout.flush()

    model, parameters = sys.argv[1], json.loads(sys.argv[2])
    say({"stage": f"compiling {Path(model).name}"})
    try:
        _compile(model, parameters, lambda stage: say({"stage": stage}))
    except FsmDynError as error:
        say(error_data(error))


def _compile(model: str, parameters: Mapping[str, Any], emit: Callable[[str], None]) -> None:
    # deferred: these import SymPy, and the server imports this module
    from fsm_dyn.automaton import compilation
    from fsm_dyn.live.stepper import LiveStepper
    from fsm_dyn.page.live_view import coupled_for_page

    graph = compilation.compile(model)
    emit("deriving the model with its handles")
    coupled, _ = coupled_for_page(graph, parameters)
    emit("making machine code")
    LiveStepper(coupled)


# -- The shipped models as a page lists them, and the start of one of them -----------------------------------


class Catalogue:
    """Shipped models, one of which runs in a broadcast.

    ``compiled``: returns the graph of a shipped model by its name; called in a thread when the cache has its parts.
    """

    def __init__(self, source: LiveBroadcast, compiled: Callable[[str], ModeGraph]) -> None:
        self._source, self._compiled = source, compiled
        self._options = source.options
        self._names = frozenset(models.names())
        self._starting: asyncio.Task[None] | None = None

    def entries(self) -> list[dict[str, Any]]:
        """Return name, theme and summary of every model, by theme, and whether there is a picture."""
        return [
            {
                "name": name, "theme": theme, "summary": heading(models.find(name))[0],
                "picture": models.picture(name) is not None,
            }
            for theme, own in models.by_theme().items() for name in own
        ]  # fmt: skip

    def picture(self, name: str) -> Path | None:
        """Return the picture of a model; None without one."""
        return models.picture(name) if name in self._names else None

    async def start(self, name: str) -> bool:
        """End the current run and begin to start a model; False if there is no such model."""
        if name not in self._names:
            return False
        await self.close()
        self._source.options = self._options  # without what a page chose for the model before
        await self._source.clear(name)
        self._starting = asyncio.create_task(self._start(name))
        return True

    async def close(self) -> None:
        """Cancel a start under way."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)

    async def _start(self, name: str) -> None:
        try:
            await compile_ahead(name, {}, partial(self._source.compiling, name))
            graph = await asyncio.to_thread(self._compiled, name)
        except Exception as error:
            self._source.failed(package_error(error, f"'{name}' was not compiled"))
        else:
            await self._source.start(graph)


# -- HTTP and WebSocket server of the page, for this machine alone, with a secret in the address -------------
#
# A client with the address can command a mechanism, and with it a device in a person's hand. Hence the server listens
# on the loopback interface; the first part of every path is a secret per start; the host names are fixed (a foreign
# name that resolves to this machine is refused); a WebSocket requires the page's own origin; and the content security
# policy of pages allows no other source.

STATIC: Final = Path(__file__).parent / "static"
MOST_PAGES: Final = 4
MOST_WAITING: Final = 2000  # most messages queued for a page before it is disconnected
POLICY_VIOLATION, TOO_BIG, TRY_LATER = 1008, 1009, 1013

_TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip

Source: TypeAlias = LiveBroadcast | PlaybackSession | ViewSwitch
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def new_token() -> str:
    """Return a secret for the address of a page."""
    return secrets.token_urlsafe(24)


def make_app(
    source: Source, token: str, port: int, catalogue: Catalogue | None = None, editor: Editor | None = None
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return the application.

    ``token``: first part of every path; ``port``: TCP port of the server; ``catalogue``: models that pages may start.
    """
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    files = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.suffix in _TYPES}
    pages: set[WebSocket] = set()

    def check(secret: str) -> None:
        if not secrets.compare_digest(secret.encode(), token.encode()):
            raise HTTPException(404)

    async def file(request: Request) -> Response:
        check(request.path_params["token"])
        path = files.get(request.path_params.get("name") or "index.html")
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, media_type=_TYPES[path.suffix])

    async def live(socket: WebSocket) -> None:
        origin, host = socket.headers.get("origin", ""), socket.headers.get("host", "")
        if origin != f"http://{host}" or not secrets.compare_digest(
            socket.path_params["token"].encode(), token.encode()
        ):
            await socket.close(POLICY_VIOLATION)  # not accepted: the response is 403
            return
        await socket.accept()
        if len(pages) >= MOST_PAGES:
            await socket.close(TRY_LATER, "too many pages")
            return
        pages.add(socket)
        try:
            await Page(source, socket).run()
        finally:
            pages.discard(socket)

    routes = [
        Route("/{token}/", file, methods=["GET"]),
        *_catalogue_routes(catalogue, check),
        *editor_routes(editor, check),
        Route("/{token}/{name:path}", file, methods=["GET"]),
        WebSocketRoute("/{token}/live", live),
    ]
    return HostCheck(Starlette(routes=routes), hosts)


def _catalogue_routes(catalogue: Catalogue | None, check: Callable[[str], None]) -> list[Route]:
    """Return the routes of the models open to pages; ``check`` raises for a wrong token."""

    def offered(request: Request) -> Catalogue:
        check(request.path_params["token"])
        if catalogue is None:
            raise HTTPException(404)
        return catalogue

    async def listed(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(offered(request).entries))

    async def picture(request: Request) -> Response:
        path = offered(request).picture(request.path_params["model"])
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, media_type="image/png")

    async def start(request: Request) -> Response:
        models = offered(request)
        if request.headers.get("origin") != f"http://{request.headers['host']}":
            raise HTTPException(403)
        if not await models.start(request.path_params["model"]):
            raise HTTPException(404)
        return Response(status_code=204)

    return [
        Route("/{token}/catalogue", listed, methods=["GET"]),
        Route("/{token}/pictures/{model}", picture, methods=["GET"]),
        Route("/{token}/start/{model}", start, methods=["POST"]),
    ]


class HostCheck:
    """Middleware that refuses foreign host names and sets the security headers."""

    def __init__(self, app: Starlette, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts
        sockets = " ".join(f"ws://{host}" for host in sorted(hosts))
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._headers = [
            (name.encode(), value.encode())
            for name, value in (
                ("content-security-policy", policy),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
                ("cache-control", "no-store"),
            )
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or refuse a request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if headers.get(b"host", b"").decode("latin-1") not in self._hosts:
            await self._refuse(scope, receive, send)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, with_headers)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await Response("unknown host name", 421)(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})


class Page:
    """Connection of one page, which gets all messages and of the display frames the latest."""

    def __init__(self, source: Source, socket: WebSocket) -> None:
        self._source, self._socket = source, socket
        self._messages: deque[str] = deque()
        self._frame: bytes | None = None
        self._something = asyncio.Event()
        self._allowance = RateLimiter()
        self._behind = False

    async def run(self) -> None:
        """Send and receive until either end closes."""
        self._source.join(self._queue)
        sending = asyncio.create_task(self._send())
        receiving = asyncio.create_task(self._receive())
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._source.leave(self._queue)
            for task in (sending, receiving):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                    await task

    def _queue(self, message: bytes | Mapping[str, Any]) -> None:
        if isinstance(message, bytes):
            self._frame = message
        else:
            self._messages.append(json.dumps(plain(message), ensure_ascii=False))
            self._behind |= len(self._messages) > MOST_WAITING
        self._something.set()

    async def _send(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            if self._behind:
                await self._socket.close(TRY_LATER, "too slow")
                return
            while self._messages:
                await self._socket.send_text(self._messages.popleft())
            if self._frame is not None:
                frame, self._frame = self._frame, None
                await self._socket.send_bytes(frame)

    async def _receive(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None or len(text) > LONGEST:
                await self._socket.close(TOO_BIG if text else POLICY_VIOLATION, "not a message for this server")
                return
            if not self._allowance.take():
                await self._socket.close(POLICY_VIOLATION, "too many messages")
                return
            try:
                await self._source.carry_out(read_command(text))
            except Exception as error:
                self._queue({**error_payload(package_error(error, "not carried out")), "kind": "refused"})


# -- Serve the page until Ctrl-C: address, event loop, file watch --------------------------------------------

LOOPBACK: Final = "127.0.0.1"
HEADERS: Final = 10.0  # s, timeout for the headers of a request


@dataclass(frozen=True)
class WatchedFile:
    """File recompiled when saved, and its model as on the command line."""

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

    ``graph``, or the error that its model has; ``port``: 0: any free one; ``opened``: called with the address once the
    page can be opened. Result: one for each run that was begun. Raises InputError: the port is in use.
    """
    source = LiveBroadcast(options)
    tasks: list[Callable[[], Coroutine[Any, Any, None]]] = [lambda: _begin(source, graph)]
    if options.device is not None:
        tasks.append(source.watch_device)
    if watched is not None:
        tasks.insert(0, lambda: _watch(watched, source))
    editor = Editor(watched.path) if watched is not None and options.edits else None
    _serve_until_asked(source, port, tasks, opened, editor=editor)
    return source.summary


def serve_recorded_run(
    make: Callable[[], RecordedRun] | Reruns,
    name: str,
    port: int = 0,
    opened: Callable[[str], None] = lambda address: None,
    before: Callable[[], RecordedRun] | None = None,
) -> None:
    """Serve the page of a recorded run until Ctrl-C; raises InputError if the port is in use.

    ``make``: returns the recorded run; ``name``: shown until then; ``port``, ``opened``: as for :func:`serve`;
    ``before``: returns an earlier run, shown behind it.
    """
    _serve_until_asked(PlaybackSession(make, name, before), port, [], opened)


def serve_catalogue(
    compiled: Callable[[str], ModeGraph],
    options: LiveOptions,
    port: int = 0,
    opened: Callable[[str], None] = lambda address: None,
) -> list[RunReport]:
    """Serve a page of all shipped models, of which one at a time runs, until Ctrl-C; return the reports of the runs.

    ``compiled``: returns the graph of a shipped model by its name; ``options``, ``port``, ``opened``: as for
    :func:`serve`.
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
    editor: Editor | None = None,
) -> None:
    listening = listen(port)
    number, token = listening.getsockname()[1], new_token()
    shown = ViewSwitch(source) if isinstance(source, LiveBroadcast) else source
    server = Server(configured(shown, token, number, catalogue, editor))
    page = "" if catalogue is None else "models.html"
    closing = [shown, source] if catalogue is None else [catalogue, shown, source]

    def end(before: int) -> None:
        """Stop the server, at a second request without waiting for its pages.  The run ends cleanly in both cases."""
        server.should_exit, server.force_exit = True, before > 0

    with asked_to_end(end):
        asyncio.run(
            _serve(server, listening, [source.play, *tasks], closing, lambda: opened(address(number, token) + page))
        )


class Connection(H11Protocol):
    """HTTP connection, closed without a request within ``HEADERS`` seconds."""

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
    """Server without signal handlers, as the run has to end cleanly after it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def configured(
    source: Source, token: str, port: int, catalogue: Catalogue | None = None, editor: Editor | None = None
) -> uvicorn.Config:
    """Return the server's configuration: errors logged only, small messages, short graceful shutdown."""
    return uvicorn.Config(
        make_app(source, token, port, catalogue, editor), log_level="error", lifespan="off", ws_max_size=LONGEST,
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
        raise InputError(f"cannot serve on port {port}", found=str(error), remedy="name another --page-port") from error
    return listening


async def _serve(
    server: uvicorn.Server,
    listening: socket.socket,
    works: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    closing: Sequence[Source | Catalogue],
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

    A file saved during compilation is compiled again from the start.
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


if __name__ == "__main__":
    main()
