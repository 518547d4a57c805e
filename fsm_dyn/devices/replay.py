"""Playback of the device motion of a recording; the forces shown to it are discarded.

Options
-------
file : str
    A recording of a live run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.driver_protocol import WATCHDOG, DeviceSpec, Sample
from fsm_dyn.live.recording import Recording, read_recording
from fsm_dyn.live.tick import FIXED


def _recording(options: Mapping[str, Any]) -> Recording:
    if set(options) != {"file"}:
        raise InputError("the device 'replay'", found=", ".join(options) or "nothing", allowed="file: a recording")
    return read_recording(str(options["file"]))


class Driver:
    """The recorded device; after the recording it stays at its last position."""

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        recorded = _recording(options)
        self.spec = self._spec(recorded)
        places = recorded.columns.places
        self._positions = recorded.rows[:, places["position"]].tolist()
        self._velocities = recorded.rows[:, places["velocity"]].tolist()
        self._buttons = recorded.rows[:, FIXED.index("buttons")].astype(int).tolist()
        self._times = recorded.rows[:, FIXED.index("wall")].tolist()
        self._readings = 0

    @staticmethod
    def _spec(recorded: Recording) -> DeviceSpec:
        # nothing moves: there is nothing to stop
        parts = [DeviceSpec("replay", axes, WATCHDOG, felt=False) for axes in recorded.settings.parts]
        return DeviceSpec("replay", recorded.columns.device, WATCHDOG, felt=False, parts=tuple(parts))

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the recorded device."""
        recorded = _recording(options)
        if not len(recorded.rows):
            raise InputError(f"the recording '{options['file']}' holds no tick")
        return cls._spec(recorded)

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return None: there is no transport."""
        return None

    def open(self) -> None:
        """Nothing has to be opened."""

    def calibrate(self) -> None:
        """A recording is calibrated."""

    def close(self) -> None:
        """Nothing has to be closed."""

    def read(self) -> Sample:
        """Return the next recorded sample, at the end the last one at rest again and again."""
        i = min(self._readings, len(self._times) - 1)
        rests = self._readings >= len(self._times)
        self._readings += 1
        velocity = [0.0] * self.spec.axes if rests else self._velocities[i]
        return Sample(self._times[i], self._readings, self._positions[i], velocity, self._buttons[i])

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Take a force and show none."""
        return [0.0] * len(force)
