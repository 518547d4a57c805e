"""What the pages look at: one run at a time, started anew when the model or its way of running changes."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import NOWHERE, FsmDynError, InputError, RunError
from fsm_dyn.viewer.device_panel import PLAY, CouplingDevice, without_run
from fsm_dyn.viewer.live_view import LiveOptions, LiveView
from fsm_dyn.viewer.run_parameters import check_mode

RATE: Final = 60.0  # frames a second
LISTENS: Final = 4  # looks at contacts that close in a frame
REPORTS: Final = 30  # frames between reports of the deadlines
LOOKS: Final = 0.1  # s between looks at a device

Listener = Callable[[bytes | Mapping[str, Any]], None]


class _Closing(Exception):
    """Breaks off a start that nobody wants any more."""


class LiveBroadcast:
    """The run that is on, and who listens to it.

    Listeners are called with frames (bytes) and messages (mappings), always from the event loop's thread.

    Parameters
    ----------
    wishes : Wishes
    """

    def __init__(self, wishes: LiveOptions) -> None:
        self.wishes = wishes
        self.take: LiveView | None = None
        self.error: dict[str, Any] | None = None
        self.summary: list[dict[str, Any]] = []  # reports of the runs that have ended
        self._listeners: list[Listener] = []
        self._number = 0
        self._starting = asyncio.Lock()
        self._starts: set[asyncio.Task[None]] = set()
        self._closing = False
        self._stage: dict[str, Any] | None = None  # of a start under way
        self._graph: ModeGraph | None = None
        self._next = False
        self._ended = False
        self._rereading: asyncio.Task[None] | None = None  # kept, or it would be collected
        self._since = 0.0  # s, when that start began
        self._counts: dict[str, Any] = {}  # what the driver has told of the run

    # -- pages ---------------------------------------------------------------------------------------------

    def join(self, listener: Listener) -> None:
        """Tell a page everything that it has missed, and whatever happens from now on."""
        if self.take is not None:
            listener(self.take.told())
            listener(self._timing(self.take))
        if self.error is not None:
            listener(self.error)
        if self._ended and self.take is not None:
            listener(self._end(self.take))
        if self._stage is not None:
            listener({**self._stage, "seconds": time.monotonic() - self._since})
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Forget a page."""
        with contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def _tell(self, message: bytes | Mapping[str, Any]) -> None:
        for listener in list(self._listeners):
            listener(message)

    # -- runs ----------------------------------------------------------------------------------------------

    async def start(self, graph: ModeGraph) -> None:
        """Run a model; the one before it is ended first.

        A start belongs to the show from its first instant, not to whoever waits for it here: a page that goes away
        meanwhile leaves the run to the next one.
        """
        task = asyncio.create_task(self._start(graph))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)
        await asyncio.shield(task)

    async def _start(self, graph: ModeGraph) -> None:
        async with self._starting:
            self._graph = graph
            self._number += 1
            self._since = time.monotonic()
            self._at_stage(graph.name, "making ready")
            try:
                await self._end_take()
                tell = partial(self._in_thread, asyncio.get_running_loop(), graph.name)
                self.take = await asyncio.to_thread(LiveView, graph, self._number, self.wishes, tell)
                told = self.take.told()
            except _Closing:
                return
            except Exception as error:
                await self._end_take()
                self.failed(error if isinstance(error, FsmDynError) else RunError(f"the run did not start: {error!r}"))
                if not isinstance(error, FsmDynError):
                    traceback.print_exc()  # a fault of the program
                return
            finally:
                self._stage = None
            self.error, self._ended, self._next, self._counts = None, False, False, {}
            self._tell(told)

    async def _end_take(self) -> None:
        """End the run that is on, if there is one."""
        take, self.take = self.take, None
        if take is not None:
            self.summary.append(await asyncio.to_thread(take.close))

    @contextlib.contextmanager
    def changing(self, name: str) -> Iterator[Callable[[str], None]]:
        """Tell, while the run goes on, that the file is compiled anew; gives what tells the stages."""
        self._tell({"kind": "changing", "name": name, "stage": "reading"})
        try:
            yield lambda stage: self._tell({"kind": "changing", "name": name, "stage": stage})
        finally:
            self._tell({"kind": "changing", "name": name, "stage": ""})

    def _in_thread(self, loop: asyncio.AbstractEventLoop, name: str, stage: str) -> None:
        """Tell the stage of a start from its thread; break it off where nobody wants it any more."""
        if self._closing:
            raise _Closing
        loop.call_soon_threadsafe(self._at_stage, name, stage)

    def _at_stage(self, name: str, stage: str) -> None:
        self._stage = {"kind": "starting", "name": name, "stage": stage, "seconds": time.monotonic() - self._since}
        self._tell(self._stage)

    def failed(self, error: FsmDynError) -> None:
        """Tell that the model as it stands cannot be run; what runs goes on."""
        self.error = error_told(error)
        self._tell(self.error)

    async def close(self) -> None:
        """End the run, and what is being started."""
        self._closing = True
        async with self._starting:
            await self._end_take()

    async def play(self) -> None:
        """Tell the pages what happens, at display rate, until cancelled."""
        count = 0
        while True:
            await asyncio.sleep(1.0 / (LISTENS * RATE))
            take, count = self.take, count + 1
            if take is None:
                continue
            if count % LISTENS == 0:
                self._follow(take, report=count % (LISTENS * REPORTS) == 0)
            else:  # what is heard is not to wait for a picture
                self._sound(take)

    async def watch_device(self) -> None:
        """Tell the pages of the device, where there is one, until cancelled."""
        while self.wishes.device is not None:
            await asyncio.sleep(LOOKS)
            emulated = await asyncio.to_thread(self.wishes.device.now)
            take = self.take
            told = (take is not None and take.device_now()) or without_run(emulated)
            self._tell(plain({"kind": "device", **told, "counts": self._counts, "emulated": emulated}))

    def _follow(self, take: LiveView, report: bool) -> None:
        self._sound(take)
        readers = len(take.instants.readers)
        frame = take.frame()
        if len(take.instants.readers) > readers:
            self._tell({"kind": "guards", "number": take.number, "guards": take.sight.guards()})
        for event in take.session.events():
            self._event(take, event)
        news = take.story.more(take.instants.automaton)
        if take.grown():
            self._tell({"kind": "graph", "number": take.number, "graph": take.sight.mode_map()})
        if news:
            self._tell({"kind": "story", "number": take.number, "news": news, "totals": take.story.totals()})
        if frame is not None:
            self._tell(frame)
        if report:
            self._tell(self._timing(take))
        if not take.session.alive and not self._ended:
            self._ended = True
            self._tell(self._end(take))

    def _sound(self, take: LiveView) -> None:
        """Tell of contacts that have closed since this was done last, without their words."""
        blows, instant = take.blows.more(), take.instant()
        if blows and instant is not None:
            told = {"blows": blows, "instant": instant, "sent": time.time()}
            self._tell({"kind": "blows", "number": take.number, **told})

    def _event(self, take: LiveView, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "phase":
                if self._next and event["phase"] == "paused":
                    take.session.send("run", until="transition")
                self._next = False
            case "fault":
                take.fault = ": ".join(filter(None, (event["why"], event["detail"])))
            case "device":
                self._counts = event["counts"]
            case "done" if event["command"]["do"] == "speed":
                take.speed = float(event["command"]["value"])
        if take.setup.heard(event, take.instants.parameters, take.instants.layout.p):
            self._rereading = asyncio.create_task(self._reread(take))
        if event.get("event") in ("at reset", "done"):
            self._tell({"kind": "setup", "number": take.number, **take.setup.told()})
        self._tell({"kind": "event", "number": take.number, **event})

    async def _reread(self, take: LiveView) -> None:
        """Draw a run that has begun anew with other parameters as it is now."""
        sight = await asyncio.to_thread(take.reread)
        if self.take is take:
            take.adopt(sight)
            self._tell(take.told())

    def _timing(self, take: LiveView) -> dict[str, Any]:
        report = take.session.report()
        told: dict[str, Any] = plain(
            {"kind": "timing", "number": take.number, "period": take.wishes.period, **report,
             "totals": take.story.totals(), "speed": take.speed}
        )  # fmt: skip
        return told

    def _end(self, take: LiveView) -> dict[str, Any]:
        report = take.session.report()
        why = (
            report["guard"]
            or (report["fault"] and take.fault)
            or report["fault"]
            or (take.session.log() or "the run has ended").strip()[-600:]
        )
        return {"kind": "ended", "number": take.number, "why": why, "fault": bool(report["fault"])}

    # -- commands ------------------------------------------------------------------------------------------

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Do what a page asks for.

        Raises
        ------
        FsmDynError
            It cannot be done.
        """
        take = self.take
        match command["do"]:
            case "restart" if self._graph is not None:
                await self.start(self._graph)
            case "schedule" if self._graph is not None:
                self.wishes = replace(self.wishes, schedule=command["on"])
                await self.start(self._graph)
            case "emulate" if command["what"] == PLAY and take is not None:
                port = take.hands.port(take.port)
                await asyncio.to_thread(self._device().play, port, take.hands.press(take.port))
            case "press" if self.wishes.device is not None and take is not None:
                self._known(take, command["port"])
                port, places = take.hands.port(command["port"]), take.hands.press(command["port"])
                await asyncio.to_thread(self._device().press, port, places, command["down"], command["speed"])
            case "emulate" | "hand":
                await asyncio.to_thread(self._device().carry_out, command)
            case "point" | "port" if self.wishes.device is not None:
                raise InputError("a device holds the mechanism, not the pointer")
            case _ if take is None:
                raise InputError("nothing is running", remedy="correct the model, or start again")
            case "initial" if self._graph is not None:
                await asyncio.to_thread(check_mode, take.graph, command["mode"])
                self.wishes = replace(self.wishes, mode=command["mode"])
                await self.start(self._graph)
            case "look":
                take.sight.picture.look(command["azimuth"], command["elevation"])
            case "set":
                take.setup.set(command["name"], command["value"])
            case "drive":
                take.setup.drive(command["name"], command["value"])
            case "point":
                self._known(take, command["port"])
                take.point(command["port"], command["at"], command["turn"], command["held"])
            case "press":
                self._known(take, command["port"])
                take.press(command["port"], command["down"], command["speed"])
            case "port":
                self._known(take, command["port"])
                take.hold(command["port"], command["twist"])
            case "next":
                snapshot = take.session.snapshot()
                if snapshot is not None and snapshot["phase"] == "running":
                    self._next = True
                    take.session.send("pause")
                else:
                    take.session.send("run", until="transition")
            case what:
                take.session.send(what, **{key: value for key, value in command.items() if key != "do"})

    def _device(self) -> CouplingDevice:
        if self.wishes.device is None:
            raise InputError("no device holds the mechanism", remedy="fsm-dyn device MODEL --driver NAME --emulate")
        return self.wishes.device

    def _known(self, take: LiveView, port: str) -> None:
        if not take.hands.knows(port):
            raise InputError("no such port", found=port[:40])


def error_told(error: FsmDynError) -> dict[str, Any]:
    """Return an error for the page, with its place in the file where it has one."""
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
    """Return data with None for numbers that JSON cannot hold."""
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
