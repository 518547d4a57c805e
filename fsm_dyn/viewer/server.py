"""HTTP and WebSocket server of the page, for this machine alone, with a secret in the address.

A client with the address can command a mechanism, and with it a device in a person's hand.  Hence the server listens on
the loopback interface; the first part of every path is a secret per start; the host names are fixed (a foreign name
that resolves to this machine is refused); a WebSocket requires the page's own origin; and the content security policy
of pages allows no other source.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from fsm_dyn.viewer.catalogue import Catalogue
from fsm_dyn.viewer.commands import LONGEST, RateLimiter, read_command
from fsm_dyn.viewer.live_broadcast import LiveBroadcast, error_payload, package_error, plain
from fsm_dyn.viewer.playback_session import PlaybackSession

STATIC: Final = Path(__file__).parent / "static"
MOST_PAGES: Final = 4
MOST_WAITING: Final = 2000  # most messages queued for a page before it is disconnected
POLICY_VIOLATION, TOO_BIG, TRY_LATER = 1008, 1009, 1013

_TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def new_token() -> str:
    """Return a secret for the address of a page."""
    return secrets.token_urlsafe(24)


def make_app(
    source: LiveBroadcast | PlaybackSession, token: str, port: int, catalogue: Catalogue | None = None
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return the application.

    Parameters
    ----------
    source : LiveBroadcast or PlaybackSession
    token : str
        First part of every path.
    port : int
        TCP port of the server.
    catalogue : Catalogue, optional
        Models that pages may start.
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

    async def listed(request: Request) -> Response:
        check(request.path_params["token"])
        return JSONResponse(await asyncio.to_thread(offered().entries))

    async def picture(request: Request) -> Response:
        check(request.path_params["token"])
        path = offered().picture(request.path_params["model"])
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, media_type="image/png")

    async def start(request: Request) -> Response:
        check(request.path_params["token"])
        if request.headers.get("origin") != f"http://{request.headers['host']}":
            raise HTTPException(403)
        if not await offered().start(request.path_params["model"]):
            raise HTTPException(404)
        return Response(status_code=204)

    def offered() -> Catalogue:
        if catalogue is None:
            raise HTTPException(404)
        return catalogue

    routes = [
        Route("/{token}/", file, methods=["GET"]),
        Route("/{token}/catalogue", listed, methods=["GET"]),
        Route("/{token}/pictures/{model}", picture, methods=["GET"]),
        Route("/{token}/start/{model}", start, methods=["POST"]),
        Route("/{token}/{name:path}", file, methods=["GET"]),
        WebSocketRoute("/{token}/live", live),
    ]
    return HostCheck(Starlette(routes=routes), hosts)


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

    def __init__(self, source: LiveBroadcast | PlaybackSession, socket: WebSocket) -> None:
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
