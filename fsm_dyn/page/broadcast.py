"""Live broadcast: one run at a time, its messages to all pages, and the commands of pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import NOWHERE, FsmDynError, InputError, RunError
from fsm_dyn.language.impositions import MOST_AT_ONCE
from fsm_dyn.live.controller import SLOWEST, fault_text
from fsm_dyn.live.session import RunReport
from fsm_dyn.page.live_view import LiveOptions, LiveView, check_mode
from fsm_dyn.page.ports import PLAY, CouplingDevice, without_run

# -- Live broadcast: one run at a time, its messages to all pages, and the commands of pages -----------------

FRAME_RATE: Final = 60.0  # Hz, display frames
LISTENS: Final = 4  # polls of impacts per display frame
REPORTS: Final = 30  # display frames per timing report
LOOKS: Final = 0.1  # s between polls of a device
MAX_TEXT: Final = 1000  # characters of the representation of a defect

Listener = Callable[[bytes | Mapping[str, Any]], None]


class _Closing(Exception):
    """Cancels a start when the broadcast closes."""


class LiveBroadcast:
    """Current live run and its listeners.

    Listeners are called with display frames (bytes) and messages (mappings), always from the event loop's thread.
    """

    def __init__(self, options: LiveOptions) -> None:
        self.options = options
        self.view: LiveView | None = None
        self.error: dict[str, Any] | None = None
        self.summary: list[RunReport] = []  # reports of finished runs
        self._listeners: list[Listener] = []
        self._number = 0
        self._starting = asyncio.Lock()
        self._owned: set[asyncio.Task[None]] = set()
        self._closing = False
        self._stage: dict[str, Any] | None = None  # of a start under way
        self._graph: ModeGraph | None = None
        self._next = False
        self._ended = False
        self._rereading: asyncio.Task[None] | None = None  # referenced, or it would be collected
        self._since = 0.0  # s, when that start began
        self._counts: dict[str, Any] = {}  # diagnostic counters of the driver

    # -- pages ---------------------------------------------------------------------------------------------

    def join(self, listener: Listener) -> None:
        """Add a listener and send it the present payload, error and stage."""
        if self.view is not None:
            listener(self.view.payload())
            listener(self._timing(self.view))
            if self.view.phases is not None:
                listener({**self.view.phases.now(), "number": self.view.number})
        if self.error is not None:
            listener(self.error)
        if self._ended and self.view is not None:
            listener(self._end(self.view))
        if self._stage is not None:
            listener({**self._stage, "seconds": time.monotonic() - self._since})
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        with contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def _send(self, message: bytes | Mapping[str, Any]) -> None:
        for listener in list(self._listeners):
            listener(message)

    @property
    def graph(self) -> ModeGraph | None:
        """The model of the current run or of the next one, without couplers."""
        return self._graph

    # -- runs ----------------------------------------------------------------------------------------------

    async def start(self, graph: ModeGraph) -> None:
        """Run a model; the current run is ended first.

        The start is a task of the broadcast, not of the caller: it continues if the page that requested it closes.
        """
        await self._own(self._start(graph))

    async def _own(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for work of the broadcast, which continues if the caller is cancelled."""
        task = asyncio.create_task(work)
        self._owned.add(task)
        task.add_done_callback(self._owned.discard)
        await asyncio.shield(task)

    async def _end_unseen(self, view: LiveView) -> None:
        """End a run without displayable frames, unless another has begun."""
        async with self._starting:
            if self.view is view:
                await self._end_view()

    async def _start(self, graph: ModeGraph) -> None:
        async with self._starting:
            self._graph = graph
            self._number += 1
            self._since = time.monotonic()
            self._at_stage(graph.name, "preparing")
            try:
                await self._end_view()
                emit = partial(self._in_thread, asyncio.get_running_loop(), graph.name)
                self.view = await asyncio.to_thread(LiveView, graph, self._number, self.options, emit)
                payload = self.view.payload()
            except _Closing:
                return
            except Exception as error:
                await self._end_view()
                self.failed(package_error(error, "the run did not start"))
                return
            finally:
                self._stage = None
            self.error, self._ended, self._next, self._counts = None, False, False, {}
            self._send(payload)

    async def _end_view(self) -> None:
        """End the current run, if any."""
        view, self.view = self.view, None
        if view is not None:
            self.summary.append(await asyncio.to_thread(view.close))

    async def clear(self, name: str) -> None:
        """End the current run, before the compilation of another model."""
        async with self._starting:
            await self._end_view()
            self._graph, self.error, self._ended = None, None, False
            self._since = time.monotonic()
            self.compiling(name, "reading")

    def compiling(self, name: str, stage: str) -> None:
        """Report the stage of the compilation of the next model."""
        self._at_stage(name, stage)

    @contextlib.contextmanager
    def recompiling(self, name: str) -> Iterator[Callable[[str], None]]:
        """Report recompilation of the file while the run continues; gives the function that reports a stage."""
        self._send({"kind": "recompiling", "name": name, "stage": "reading"})
        try:
            yield lambda stage: self._send({"kind": "recompiling", "name": name, "stage": stage})
        finally:
            self._send({"kind": "recompiling", "name": name, "stage": ""})

    def _in_thread(self, loop: asyncio.AbstractEventLoop, name: str, stage: str) -> None:
        """Report the stage of a start from its thread; cancel the start if the broadcast closes."""
        if self._closing:
            raise _Closing
        loop.call_soon_threadsafe(self._at_stage, name, stage)

    def _at_stage(self, name: str, stage: str) -> None:
        self._stage = {"kind": "starting", "name": name, "stage": stage, "seconds": time.monotonic() - self._since}
        self._send(self._stage)

    def failed(self, error: FsmDynError) -> None:
        """Report an error of the model; the current run continues."""
        self.error, self._stage = error_payload(error), None
        self._send(self.error)

    async def close(self) -> None:
        """End the run, and a start under way."""
        self._closing = True
        async with self._starting:
            await self._end_view()

    async def play(self) -> None:
        """Send display frames and messages at display rate, until cancelled.

        A run without displayable frames is ended: no page would show it.
        """
        count = 0
        while True:
            await asyncio.sleep(1.0 / (LISTENS * FRAME_RATE))
            view, count = self.view, count + 1
            if view is None:
                continue
            try:
                if count % LISTENS == 0:
                    self._follow(view, report=count % (LISTENS * REPORTS) == 0)
                else:  # sounds do not wait for a display frame
                    self._sound(view)
            except Exception as error:
                self.failed(package_error(error, "the run cannot be shown, and has been ended"))
                await self._own(self._end_unseen(view))

    async def watch_device(self) -> None:
        """Send the state of the device, if any, until cancelled."""
        while self.options.device is not None:
            await asyncio.sleep(LOOKS)
            try:
                emulated = await asyncio.to_thread(self.options.device.now)
                view = self.view
                payload = (view is not None and view.device_now()) or without_run(emulated)
            except Exception as error:
                self.failed(package_error(error, "the state of the device is not shown any more"))
                return
            self._send(plain({"kind": "device", **payload, "counts": self._counts, "emulated": emulated}))

    def _follow(self, view: LiveView, report: bool) -> None:
        self._sound(view)
        readers = len(view.evaluator.readers)
        frame = view.frame()
        if len(view.evaluator.readers) > readers:
            self._send({"kind": "guards", "number": view.number, "guards": view.encoder.guards()})
        for event in view.session.events():
            self._event(view, event)
        news = view.event_log.new_entries(view.evaluator.automaton)
        if view.modes_added():
            self._send({"kind": "mode_graph", "number": view.number, "graph": view.encoder.mode_map()})
        if news:
            self._send({"kind": "transitions", "number": view.number, "news": news, "totals": view.event_log.totals()})
        changed, foreseen = view.foreseen()
        if changed:
            self._send({"kind": "foreseen", "number": view.number, "next": foreseen})
        begins = view.phases and view.phases.news()
        if begins:
            self._send({**begins, "number": view.number})
        if frame is not None:
            self._send(frame)
        if report:
            self._send(self._timing(view))
        if not view.session.alive and not self._ended:
            self._ended = True
            self._send(self._end(view))

    def _sound(self, view: LiveView) -> None:
        """Send the impacts since the last call."""
        impacts, instant = view.impact_sounds.new_impacts(), view.instant()
        if impacts and instant is not None:
            payload = {"impacts": impacts, "instant": instant, "sent": time.time()}
            self._send({"kind": "impacts", "number": view.number, **payload})

    def _event(self, view: LiveView, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "phase":
                if self._next and event["phase"] == "paused":
                    view.session.send("run", until="transition")
                self._next = False
            case "fault":
                view.fault = fault_text(event["reason"], event["detail"], view.is_emulated)
            case "device":
                self._counts = event["counts"]
            case "command_done" if event["command"]["do"] == "speed":
                view.speed = float(event["command"]["value"])
        if view.run_parameters.apply_event(event, view.evaluator.parameters, view.evaluator.layout.p):
            self._rereading = asyncio.create_task(self._reread(view))
        if event.get("event") in ("pending_reset", "command_done"):
            self._send({"kind": "setup", "number": view.number, **view.run_parameters.payload()})
        self._send({**event, "kind": "event", "number": view.number})  # of the run: a constraint has its own

    async def _reread(self, view: LiveView) -> None:
        """Replace the frame encoder after a reset with other parameters."""
        try:
            encoder = await asyncio.to_thread(view.new_encoder)
            if self.view is view:
                view.adopt(encoder)
                self._send(view.payload())
        except Exception as error:
            self.failed(package_error(error, "these parameters cannot be shown"))

    def _timing(self, view: LiveView) -> dict[str, Any]:
        report = view.session.report()
        payload: dict[str, Any] = plain(
            {"kind": "timing", "number": view.number, "period": view.options.period, **report,
             "totals": view.event_log.totals(), "speed": view.speed,
             "phase_graph": view.phases and view.phases.graph()}
        )  # fmt: skip
        return payload

    def _end(self, view: LiveView) -> dict[str, Any]:
        report = view.session.report()
        why = (
            report["watchdog_action"]
            or (report["fault"] and view.fault)
            or report["fault"]
            or (view.session.log() or "the run has ended").strip()[-600:]
        )
        return {"kind": "ended", "number": view.number, "why": why, "fault": bool(report["fault"])}

    # -- commands ------------------------------------------------------------------------------------------

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Execute a page command. Raises FsmDynError: the command cannot be executed."""
        view = self.view
        match command["do"]:
            case "restart" if self._graph is not None:
                await self.start(self._graph)
            case ("schedule" | "look_ahead") as option if self._graph is not None:
                value = command["on"] if option == "schedule" else AHEAD * command["on"]
                self.options = replace(self.options, **{option: value})
                await self.start(self._graph)
            case "emulate" if command["what"] == PLAY and view is not None:
                port = view.port_handles.port(view.port)
                await asyncio.to_thread(self._device().play, port, view.port_handles.press(view.port))
            case "press" if self.options.device is not None and view is not None:
                self._known(view, command["port"])
                port, places = view.port_handles.port(command["port"]), view.port_handles.press(command["port"])
                await asyncio.to_thread(self._device().press, port, places, command["down"], command["speed"])
            case "emulate" | "hand":
                await asyncio.to_thread(self._device().carry_out, command)
            case "point" | "port" if self.options.device is not None:
                raise InputError("a device is coupled to the mechanism, not the pointer")
            case _ if view is None:
                raise InputError("no active run", remedy="correct the model, or restart")
            case "initial" if self._graph is not None:
                await asyncio.to_thread(check_mode, view.graph, command["mode"])
                self.options = replace(self.options, mode=command["mode"])
                await self.start(self._graph)
            case "view_direction":
                view.encoder.picture.look(command["azimuth"], command["elevation"])
            case "set":
                view.run_parameters.set(command["name"], command["value"])
            case "input":
                view.run_parameters.drive(command["name"], command["value"])
            case "loads":
                found = await asyncio.to_thread(view.loads)
                if view is self.view:
                    self._send(found)
            case "point":
                self._known(view, command["port"])
                view.point(command["port"], command["at"], command["turn"], command["held"])
            case "press":
                self._known(view, command["port"])
                view.press(command["port"], command["down"], command["speed"])
            case "port":
                self._known(view, command["port"])
                view.use_port(command["port"], command["twist"])
            case "constrain":
                ends = [(command[side], command[f"{side}x"], command[f"{side}y"]) for side in "ab"]
                view.constrain(command["kind"], ends)
            case "release":
                view.session.send("release", **({"number": command["number"]} if command["number"] else {}))
            case "next":
                snapshot = view.session.snapshot()
                if snapshot is not None and snapshot["phase"] == "running":
                    self._next = True
                    view.session.send("pause")
                else:
                    view.session.send("run", until="transition")
            case what:
                view.session.send(what, **{key: value for key, value in command.items() if key != "do"})

    def _device(self) -> CouplingDevice:
        if self.options.device is None:
            raise InputError(
                "no device is coupled to the mechanism", remedy="fsm-dyn device MODEL --driver NAME --emulate"
            )
        return self.options.device

    def _known(self, view: LiveView, port: str) -> None:
        if not view.port_handles.knows(port):
            raise InputError("unknown port", found=port[:40])


def package_error(error: Exception, what: str) -> FsmDynError:
    """Return the error for a page; an error from outside the package is a defect, and its traceback is printed."""
    if isinstance(error, FsmDynError):
        return error
    traceback.print_exception(error)
    return RunError(f"{what}: {error!r}"[:MAX_TEXT])


def error_payload(error: FsmDynError) -> dict[str, Any]:
    """Return the payload of an error, with its location in the file if known."""
    if not isinstance(error, InputError):
        return {"kind": "error", "where": "", "message": str(error), "notes": []}
    notes = [("found", error.found), ("allowed", error.allowed), ("remedy", error.remedy)]
    return {
        "kind": "error",
        "where": "" if error.where == NOWHERE else str(error.where),
        "message": error.message,
        "notes": [[label, text] for label, text in notes if text],
    }


def plain(data: Any) -> Any:
    """Return data with None for nonfinite numbers."""
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


# -- Page commands: validation of every message from a page --------------------------------------------------

LONGEST: Final = 1024  # bytes of a message
AHEAD: Final = 0.1  # s: to be seen in a chart of some seconds
MESSAGE_RATE: Final = 240.0  # Hz, messages per page
BURST: Final = 480.0
FARTHEST: Final = 1e6  # m, bound of pointer positions
TURN: Final = 100.0  # rad
LARGEST: Final = 1e15  # of a parameter or an input, SI
LATEST: Final = 1e9  # s of a run's clock
MOST_ROWS: Final = 1e9
MOST_STEPS: Final = 1000
MOST_AXES: Final = 6
SLOWEST_PRESS: Final = 1e-3  # m/s or rad/s
FASTEST_PRESS: Final = 10.0
FAR_HAND: Final = 1.0  # m or rad from the device's zero
_NAME: Final = 200
_WHOLE: Final = 2**53  # beyond it, whole numbers are not exact

_FIELDS: Final = (
    "step", "speed", "schedule", "look_ahead", "set", "input", "initial", "port", "point", "view_direction", "seek",
    "seek_row", "transition_details", "emulate", "hand", "press", "charts", "constrain", "release",
)  # fmt: skip
_PLAIN: Final = ("run", "pause", "reset", "clear", "restart", "next", "live", "visits", "loads")


def read_command(text: str) -> dict[str, Any]:
    """Return a message as a command with validated fields.

    ``text``: JSON from a page. Raises InputError: the command is unknown, or a field is missing or out of bounds.
    """
    if len(text.encode()) > LONGEST:
        raise InputError("a message is too long", allowed=f"{LONGEST} bytes")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("a message is not JSON", found=str(error)[:40]) from error
    if not isinstance(data, dict):
        raise InputError("a message is not a mapping")
    return {"do": data.get("do"), **_fields(data.get("do"), data)}


def _fields(what: object, data: dict[str, Any]) -> dict[str, Any]:
    """Return the validated fields of a command."""
    if what in _PLAIN:
        return {}
    if what == "step":
        return {"ticks": int(_number(data, "ticks", 1.0, MOST_STEPS))}
    if what == "speed":
        return {"value": _number(data, "value", SLOWEST, 1.0)}
    if what in ("schedule", "look_ahead"):
        return {"on": _flag(data, "on")}
    if what == "port":
        return {"port": _name(data, "port"), "twist": _flag(data, "twist")}
    if what == "view_direction":
        return {key: _number(data, key, -TURN, TURN) for key in ("azimuth", "elevation")}
    if what in ("set", "input"):
        return {"name": _name(data, "name"), "value": _number(data, "value", -LARGEST, LARGEST)}
    if what == "initial":
        return {"mode": _name(data, "mode")}
    if what == "seek":
        return {"at": _number(data, "at", -FARTHEST, LATEST), "after": _flag(data, "after")}
    if what == "charts":
        return {key: _number(data, key, -FARTHEST, LATEST) for key in ("from", "to")}
    if what == "seek_row":
        return {"number": int(_number(data, "number", 0.0, MOST_ROWS))}
    if what == "transition_details":
        return {"first": int(_number(data, "first", 0.0, MOST_ROWS))}
    if what == "emulate":
        return {"what": _name(data, "what"), "on": _flag(data, "on")}
    if what == "hand":
        axis = int(_number(data, "axis", 0.0, MOST_AXES))
        return {"axis": axis, "value": _number(data, "value", -FAR_HAND, FAR_HAND)}
    if what == "press":
        return {
            "port": _name(data, "port"), "down": _flag(data, "down"),
            "speed": _number(data, "speed", SLOWEST_PRESS, FASTEST_PRESS),
        }  # fmt: skip
    if what == "release":
        return {"number": int(_number(data, "number", 0.0, MOST_AT_ONCE))}
    if what == "constrain":
        shapes = {side: int(_number(data, side, -1.0, MOST_ROWS)) for side in "ab"}
        places = {key: _number(data, key, -FARTHEST, FARTHEST) for key in ("ax", "ay", "bx", "by")}
        return {"kind": _name(data, "kind"), **shapes, **places}
    if what == "point":
        return {
            "port": _name(data, "port"),
            "at": (_number(data, "x", -FARTHEST, FARTHEST), _number(data, "y", -FARTHEST, FARTHEST)),
            "turn": _number(data, "turn", -FARTHEST, FARTHEST),
            "held": _flag(data, "held"),
        }
    raise InputError(
        "unknown command",
        found=_shown(what),
        allowed=", ".join((*_PLAIN, *_FIELDS)),
    )


def _number(data: dict[str, Any], key: str, low: float, high: float) -> float:
    value = data.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < _WHOLE else math.inf
    if not isinstance(value, float) or math.isnan(value):
        raise InputError(f"'{key}' is not a number", found=_shown(value))
    if not low <= value <= high:
        raise InputError(f"'{key}' is out of bounds", found=f"{value:g}", allowed=f"{low:g} to {high:g}")
    return value


def _flag(data: dict[str, Any], key: str) -> bool:
    value = data.get(key)
    if not isinstance(value, bool):
        raise InputError(f"'{key}' is neither true nor false", found=_shown(value))
    return value


def _name(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or len(value) > _NAME or not value.isprintable():
        raise InputError(f"'{key}' is not a name", found=_shown(value))
    return value


def _shown(value: Any) -> str:
    """Return a value as short text for a message; of containers the type."""
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)[:40]


class RateLimiter:
    """Token bucket for the messages of a page: refilled at ``RATE``, at most ``BURST``."""

    def __init__(self) -> None:
        self._left, self._at = BURST, time.monotonic()

    def take(self) -> bool:
        """Take one token; return False if none is left."""
        now = time.monotonic()
        self._left = min(BURST, self._left + MESSAGE_RATE * (now - self._at))
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
