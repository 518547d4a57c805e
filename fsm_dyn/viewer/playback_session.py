"""Playback of a recorded run: serves the display frames that pages request."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.errors import InputError
from fsm_dyn.live.recording_reader import read_recording
from fsm_dyn.viewer.live_broadcast import Listener, error_payload, package_error
from fsm_dyn.viewer.playback_frames import CHARTED, PlaybackFrames
from fsm_dyn.viewer.recorded_run import RecordedRun, from_recording, from_trajectory

COARSE: Final = 200  # rows of the first, coarse strip charts
AT_ONCE: Final = 10  # rows evaluated between yields to the event loop


def open_recorded_run(path: Path) -> RecordedRun:
    """Open a recording of a live run (``.mcap``) or a saved run (``.run.json``).

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    RecordedRun

    Raises
    ------
    InputError
        The file is neither, is inconsistent, or has no rows.
    """
    if path.suffix == ".mcap":
        recorded = read_recording(path)
        if not len(recorded.table):
            raise InputError(f"no ticks in '{path}'", remedy="record a run that ticks")
        return from_recording(recorded, f"recording {path.name}")
    # deferred: recordings do not require it
    from fsm_dyn.simulation_api import open_run

    return from_trajectory(open_run(path), f"run {path.name}")


class PlaybackSession:
    """Recorded run and the pages that show it, all at the same row.

    Parameters
    ----------
    make : callable
        Returns the recorded run; may take seconds.
    name : str
        Shown until then.
    """

    def __init__(self, make: Callable[[], RecordedRun], name: str) -> None:
        self._make, self._name = make, name
        self._playback: PlaybackFrames | None = None
        self._error: dict[str, Any] | None = None
        self._listeners: list[Listener] = []
        self._since = time.monotonic()
        self._row = 0
        self._charting: asyncio.Task[None] | None = None
        self.summary: list[dict[str, Any]] = []

    def join(self, listener: Listener) -> None:
        """Add a page and send it the present row, the error or the stage."""
        self._listeners.append(listener)
        if self._error is not None:
            listener(self._error)
        elif self._playback is None:
            stage = f"reading {self._name} and compiling its model"
            listener(
                {"kind": "starting", "name": self._name, "stage": stage, "seconds": time.monotonic() - self._since}
            )
        else:
            listener(self._playback.payload())
            self._show(self._playback, [listener])

    def leave(self, listener: Listener) -> None:
        """Remove a page."""
        with contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    async def play(self) -> None:
        """Load the run and show its first row."""
        try:
            self._playback = await asyncio.to_thread(self._ready)
        except Exception as error:
            self._error = error_payload(package_error(error, "the run cannot be shown"))
            for listener in list(self._listeners):
                listener(self._error)
            return
        for listener in list(self._listeners):
            listener(self._playback.payload())
        self._show(self._playback, self._listeners)

    def _ready(self) -> PlaybackFrames:
        playback = PlaybackFrames(self._make())
        playback.payload()
        return playback

    async def close(self) -> None:
        """Cancel the evaluation of strip charts."""
        if self._charting is not None:
            self._charting.cancel()

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Execute a page command: show another row, send strip charts or details of transitions.

        Raises
        ------
        InputError
            The command is not available in playback, or no run is loaded yet.
        """
        playback = self._playback
        if playback is None:
            raise InputError("no run loaded")
        match command["do"]:
            case "seek":
                self._row = playback.run.number(command["at"], after=command["after"])
                self._show(playback, self._listeners)
            case "seek_row":
                self._row = max(0, min(command["number"], len(playback.run.t) - 1))
                self._show(playback, self._listeners)
            case "view_direction":
                playback.run.encoder.picture.look(command["azimuth"], command["elevation"])
                self._show(playback, self._listeners)
            case "charts":
                if self._charting is not None:
                    self._charting.cancel()  # superseded by the new request
                self._charting = asyncio.create_task(self._chart(playback, command["from"], command["to"]))
            case "transition_details":
                items = playback.transition_details(command["first"])
                for listener in list(self._listeners):
                    listener(
                        {
                            "kind": "transition_details",
                            "number": playback.number,
                            "first": command["first"],
                            "items": items,
                        }
                    )
            case what:
                raise InputError(
                    f"command '{what}' is not available in playback",
                    allowed="seek, seek_row, transition_details, charts, view_direction",
                )

    async def _chart(self, playback: PlaybackFrames, low: float, high: float) -> None:
        """Send the quantities between two times of the clock, s, first coarsely; yields to other commands."""
        try:
            for count in (COARSE, CHARTED):
                chosen = playback.chosen(count, low, high)
                parts = []
                for begin in range(0, len(chosen), AT_ONCE):
                    parts.append(playback.sampled(chosen[begin : begin + AT_ONCE]))
                    await asyncio.sleep(0.0)
                payload = {**playback.charts(chosen, np.concatenate(parts, axis=1)), "span": [low, high]}
                for listener in list(self._listeners):
                    listener(payload)
        except Exception as error:
            refusal = {**error_payload(package_error(error, "there are no charts of this")), "kind": "refused"}
            for listener in list(self._listeners):
                listener(refusal)

    def _show(self, playback: PlaybackFrames, listeners: Sequence[Listener]) -> None:
        known = playback.readers()
        data = playback.frame(self._row).astype("<f8").tobytes()
        for listener in list(listeners):
            if playback.readers() > known:
                listener({"kind": "guards", "number": playback.number, "guards": playback.run.encoder.guards()})
            listener(data)
