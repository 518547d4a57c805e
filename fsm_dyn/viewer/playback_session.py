"""What the pages look at where a run is over: one film, and the instants that they ask for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.errors import FsmDynError, InputError
from fsm_dyn.live.recording_reader import read_recording
from fsm_dyn.viewer.live_broadcast import Listener, error_told
from fsm_dyn.viewer.playback_frames import CHARTED, PlaybackFrames
from fsm_dyn.viewer.recorded_run import RecordedRun, from_recording, from_trajectory

COARSE: Final = 200  # instants charted at first
AT_ONCE: Final = 10  # instants charted without a look at what else there is to do


def open_recorded_run(path: Path) -> RecordedRun:
    """Return what a file holds: a recording of a live run (``.mcap``), or a saved run (``.run.json``).

    Raises
    ------
    InputError
        It is neither, or does not hold together, or nothing ran.
    """
    if path.suffix == ".mcap":
        recorded = read_recording(path)
        if not len(recorded.table):
            raise InputError(f"nothing ran in '{path}'", remedy="record a run that ticks")
        return from_recording(recorded, f"recording {path.name}")
    # what runs are made with is not needed to see a recording
    from fsm_dyn.simulation_api import open_run

    return from_trajectory(open_run(path), f"run {path.name}")


class PlaybackSession:
    """A film and who watches it; pages that watch together see the same instant.

    Parameters
    ----------
    film : callable
        Makes the film, which may take a while.
    name : str
        Told while it is made.
    """

    def __init__(self, film: Callable[[], RecordedRun], name: str) -> None:
        self._make, self._name = film, name
        self._projector: PlaybackFrames | None = None
        self._error: dict[str, Any] | None = None
        self._listeners: list[Listener] = []
        self._since = time.monotonic()
        self._row = 0
        self._charting: asyncio.Task[None] | None = None
        self.summary: list[dict[str, Any]] = []

    def join(self, listener: Listener) -> None:
        """Show a page where the film stands."""
        self._listeners.append(listener)
        if self._error is not None:
            listener(self._error)
        elif self._projector is None:
            stage = f"reading {self._name} and compiling its model"
            listener(
                {"kind": "starting", "name": self._name, "stage": stage, "seconds": time.monotonic() - self._since}
            )
        else:
            listener(self._projector.told())
            self._show(self._projector, [listener])

    def leave(self, listener: Listener) -> None:
        """Forget a page."""
        with contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    async def play(self) -> None:
        """Make the film and show its beginning; a page that joins meanwhile is told so."""
        try:
            self._projector = await asyncio.to_thread(self._ready)
        except FsmDynError as error:
            self._error = error_told(error)
            for listener in list(self._listeners):
                listener(self._error)
            return
        for listener in list(self._listeners):
            listener(self._projector.told())
        self._show(self._projector, self._listeners)

    def _ready(self) -> PlaybackFrames:
        projector = PlaybackFrames(self._make())
        projector.told()
        return projector

    async def close(self) -> None:
        """Nothing runs but what is being charted."""
        if self._charting is not None:
            self._charting.cancel()

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Show another instant, or tell some transitions in words.

        Raises
        ------
        InputError
            A film cannot do that, or there is none yet.
        """
        projector = self._projector
        if projector is None:
            raise InputError("there is nothing to be seen yet")
        match command["do"]:
            case "seek":
                self._row = projector.film.number(command["at"], after=command["after"])
                self._show(projector, self._listeners)
            case "row":
                self._row = max(0, min(command["number"], len(projector.film.t) - 1))
                self._show(projector, self._listeners)
            case "look":
                projector.film.sight.picture.look(command["azimuth"], command["elevation"])
                self._show(projector, self._listeners)
            case "charts":
                if self._charting is not None:
                    self._charting.cancel()  # who asks anew has no use for the former answer
                self._charting = asyncio.create_task(self._chart(projector, command["from"], command["to"]))
            case "words":
                items = projector.words(command["first"])
                for listener in list(self._listeners):
                    listener({"kind": "words", "number": projector.number, "first": command["first"], "items": items})
            case what:
                raise InputError(f"this run is over: there is no '{what}'", allowed="seek, row, words, charts, look")

    async def _chart(self, projector: PlaybackFrames, low: float, high: float) -> None:
        """Tell the quantities between two times, coarsely at first; instants are shown meanwhile."""
        for count in (COARSE, CHARTED):
            chosen = projector.chosen(count, low, high)
            parts = []
            for begin in range(0, len(chosen), AT_ONCE):
                parts.append(projector.sampled(chosen[begin : begin + AT_ONCE]))
                await asyncio.sleep(0.0)
            told = {**projector.charts(chosen, np.concatenate(parts, axis=1)), "span": [low, high]}
            for listener in list(self._listeners):
                listener(told)

    def _show(self, projector: PlaybackFrames, listeners: Sequence[Listener]) -> None:
        known = projector.readers()
        data = projector.frame(self._row).astype("<f8").tobytes()
        for listener in list(listeners):
            if projector.readers() > known:
                listener({"kind": "guards", "number": projector.number, "guards": projector.film.sight.guards()})
            listener(data)
