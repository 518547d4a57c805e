"""A pointer on a page: it moves a port and shows no force.

The page sends some sixty samples a second through :meth:`fsm_dyn.live.session.LiveSession.send_pointer`; this driver
smooths them to a motion with a velocity in every tick.  Button 0 is pressed during a drag; without a sample for
``patience``, because the page is closed, it counts as released.  It is meant as the dead-man button of the limits.

A sample with a velocity along its first axis is a key press or its release: the pointer moves to the position along
half a cosine, with the given velocity half-way. It is valid for longer than a sample of a drag: otherwise a late page
would disengage between a press and its release, and the next press would begin with the coupler open.

Options
-------
axes : int
    Number of axes (2).
bandwidth : float
    Of the smoothing, Hz (12).
patience : float
    Time without a sample after which the pointer counts as released, s (0.3; for a press at least 3).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsm_dyn.devices.driver_tools import OptionReader, critically_damped_step
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.driver_protocol import WATCHDOG, DeviceSpec, Sample
from fsm_dyn.live.strokes import Stroke
from fsm_dyn.runtime.abi import LiveHeader

DRAGGING: Final = 1  # button 0
BANDWIDTH, PATIENCE, PERIOD = 12.0, 0.3, 1e-3  # Hz, s, s
PRESS_PATIENCE: Final = 3.0  # s, of a press at the least
_KNOWN: Final = frozenset({"axes", "bandwidth", "patience", "period"})


class Driver:
    """The pointer; see the module."""

    SELECTED_BY: Final[tuple[str, ...]] = ()

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        self.spec = self.describe(options)
        n = self.spec.axes
        self._bandwidth = float(options.get("bandwidth", BANDWIDTH))
        self._patience = float(options.get("patience", PATIENCE))
        self._period = float(options.get("period", PERIOD))
        self._position, self._velocity = [0.0] * n, [0.0] * n
        self._block: tick_data.SharedBlock | None = None
        self._readings, self._dragging = 0, False
        self._stroke: Stroke | None = None
        self._begun = 0  # its first reading

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the pointer by its options."""
        given = OptionReader("pointer", options, _KNOWN)
        axes = given.count("axes", 2, 1, 6)
        for name, usual in (("bandwidth", BANDWIDTH), ("period", PERIOD)):
            given.number(name, usual, above=True)
        given.number("patience", PATIENCE)
        return DeviceSpec("pointer", axes, WATCHDOG, felt=False)  # it has no force to let go of

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return None: samples come through the session's memory."""
        return None

    def attach(self, block: tick_data.SharedBlock) -> None:
        """Take the memory in which the session leaves the samples."""
        self._block = block

    def open(self) -> None:
        """Nothing has to be opened."""

    def calibrate(self) -> None:
        """Do nothing: a pointer needs no calibration."""

    def close(self) -> None:
        """Nothing has to be closed."""

    def read(self) -> Sample:
        """Return the smoothed motion; without samples at rest and released."""
        self._readings += 1
        n, now = self.spec.axes, time.monotonic()
        row = self._latest()
        if row is None:
            return Sample(now, self._readings, self._position, self._velocity)
        patience = max(self._patience, PRESS_PATIENCE) if row[7] > 0.0 else self._patience
        buttons = int(row[13]) if now - row[0] <= patience else 0
        if buttons & DRAGGING and not self._dragging:
            self._position, self._velocity, self._stroke = row[1 : 1 + n], [0.0] * n, None
        self._dragging = bool(buttons & DRAGGING)
        if row[7] > 0.0:
            self._press(row[1 : 1 + n], row[7])
        else:
            self._stroke = None
            critically_damped_step(self._position, self._velocity, row[1 : 1 + n], self._period, self._bandwidth)
        return Sample(now, self._readings, self._position, self._velocity, buttons)

    def _press(self, place: Sequence[float], speed: float) -> None:
        """Continue or begin the stroke to a place along the first axis."""
        if self._stroke is None or (self._stroke.end, self._stroke.speed) != (place[0], speed):
            self._stroke = Stroke(self._position[0], place[0], speed)
            self._begun = self._readings
        since = (self._readings - self._begun) * self._period
        at, rate = self._stroke.at(since)
        self._position, self._velocity = [at, *place[1:]], [rate, *(len(place) - 1) * [0.0]]

    def _latest(self) -> list[float] | None:
        if self._block is None or self._block.header[LiveHeader.POINTER] == 0:
            return None
        count = int(self._block.header[LiveHeader.POINTER])
        rows, _, _ = tick_data.take_rows(self._block.pointer, self._block.header, LiveHeader.POINTER, count - 1)
        return [float(value) for value in rows[-1]] if len(rows) else None

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Take a force and show none."""
        return [0.0] * len(force)
