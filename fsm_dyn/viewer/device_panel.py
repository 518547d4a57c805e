"""A device instead of the pointer: what the page tells of it, and what it lets happen to one that is emulated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from fsm_dyn.errors import FsmDynError, InputError
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, UNSTOPPED_FORCE_FRACTION, DeviceSpec, driver_class
from fsm_dyn.live.port_coupling import CoupledPort
from fsm_dyn.live.strokes import FINGER_DAMPING, FINGER_STIFFNESS, NOTES, REPETITION
from fsm_dyn.live.tick_columns import FIXED, TickColumns
from fsm_dyn.viewer.row_evaluation import Floats

PLAY: Final = "play"  # of the commands of an emulator
REACH: Final = 0.04  # m or rad to either side, for the slider of a hand
SWITCHES: Final = ("garbage", "half", "stall", "freeze")  # of the commands of an emulator: on or off
_GRIP: Final = FIXED.index("grip")


class Emulated(Protocol):
    """What the page does with an emulator; see :class:`fsm_dyn.devices.emulators.emulator_process.Emulation`."""

    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Let something happen to the device."""

    def state(self) -> dict[str, Any]:
        """Return the device as it is."""


@dataclass(frozen=True)
class CouplingDevice:
    """The device that holds the mechanism of a page.

    Attributes
    ----------
    driver, options
        As for :meth:`fsm_dyn.live.session.LiveSession.start`.
    mapping : DeviceMap
    limits : Limits
    watchdog_timeout, release_after, owner_timeout : float
        See :class:`fsm_dyn.live.session.Settings`, s.
    stall_timeout : float
        How long samples may be missing until that is a fault, s.
    emulation : Emulated, optional
        What the driver talks to, where that is no hardware.
    """

    driver: str
    options: Mapping[str, Any]
    mapping: DeviceMap = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    watchdog_timeout: float = 0.1
    emulation: Emulated | None = None
    release_after: float = 0.012
    stall_timeout: float = 0.1
    owner_timeout: float = 0.5

    def patience(self, period: float) -> dict[str, Any]:
        """Return the settings of a run with ticks of this length (s) that say how long what may be missing."""
        return {
            "watchdog_timeout": self.watchdog_timeout, "release_after": self.release_after,
            "owner_timeout": self.owner_timeout, "stall_ticks": max(1, round(self.stall_timeout / period)),
        }  # fmt: skip

    @property
    def spec(self) -> DeviceSpec:
        """What is known of the device before it is opened."""
        found: DeviceSpec = driver_class(self.driver).describe(self.options)
        return found

    def payload(self, port: CoupledPort, key: bool = False) -> dict[str, Any]:
        """Return for the page what does not change: name, axes, what stops the force, what can happen to it.

        ``key``: the model says how the port is pressed.
        """
        spec, emulation = self.spec, self.emulation
        axes = self.mapping.device_axes(port, spec.axes)
        return {
            "name": spec.name,
            "axes": [{"number": i, "turns": i in spec.rotational_axes} for i in range(spec.axes) if i in axes],
            "stops": stops(spec, self.watchdog_timeout, self.release_after),
            "force": min(self.limits.force, spec.force),
            "couplers": [
                axis.stiffness
                for axis, source in zip(port.axes, axes, strict=True)
                if source >= 0 and not axis.prescribed_coordinate
            ],
            "commands": list(emulation.commands) if emulation is not None else None,
            "reach": REACH,
            "press": key and emulation is not None and PLAY in emulation.commands and axes[0] == 0,
        }

    def carry_out(self, command: Mapping[str, Any]) -> None:
        """Let something happen to an emulated device.

        Raises
        ------
        InputError
            It is none, or this cannot happen to it.
        """
        if self.emulation is None:
            raise InputError("this device is not emulated", remedy="pull the plug")
        if command["do"] == "hand":
            target = list(self.emulation.state()["hand"]["target"])
            if not 0 <= command["axis"] < len(target):
                raise InputError("no such axis of the hand", found=str(command["axis"]))
            target[command["axis"]] = command["value"]
            self.emulation.do("hand", target=target)
        elif command["what"] in SWITCHES or command["what"] == "watchdog":
            self.emulation.do(command["what"], on=command["on"])
        else:
            self.emulation.do(command["what"])

    def press(self, port: CoupledPort, places: tuple[float, float], down: bool, speed: float) -> None:
        """Let the hand of an emulated device press a key of the model or let it up.

        Parameters
        ----------
        port : HeldPort
        places : tuple of float
            Where the key is let up and pressed, along the port's first axis from where the model begins, m or rad.
        down : bool
        speed : float
            Largest one on the way there, of the key, m/s or rad/s.
        """
        scale = self.mapping.scales(port)[0]
        self._play("hand", target=places[down] / scale, speed=speed / abs(scale))

    def play(self, port: CoupledPort, places: tuple[float, float]) -> None:
        """Let the hand of an emulated device play the notes of the page; ``places`` as for :meth:`press`."""
        lifted, pressed = (place / self.mapping.scales(port)[0] for place in places)
        self._play("hand")
        self._play("play", rate=REPETITION, notes=NOTES, pressed=pressed, lifted=lifted)

    def _play(self, command: str, **arguments: float) -> None:
        """Tell an emulator that can play what to do; a player's finger holds the device then."""
        if self.emulation is None or PLAY not in self.emulation.commands:
            raise InputError("this device has no emulated hand that plays", remedy="press its handle yourself")
        if command == "hand":
            arguments = {"stiffness": FINGER_STIFFNESS, "damping": FINGER_DAMPING, **arguments}
        self.emulation.do(command, **arguments)

    def now(self) -> dict[str, Any]:
        """Return what an emulated device says of itself, nothing for another or one that has ended; waits for it."""
        if self.emulation is None:
            return {}
        try:
            return self.emulation.state()
        except FsmDynError:
            return {}


def stops(spec: DeviceSpec, watchdog_timeout: float, release_after: float) -> list[str]:
    """Return what makes the force end, in order, and what does not."""
    found = [f"tick process: zero force on fault, {1e3 * release_after:g} ms without samples or watchdog process"]
    if spec.zero_frame:
        found.append(f"watchdog process: zero force after {1e3 * release_after:g} ms without heartbeat")
    if spec.stop_mechanism == SAFE_FRAME:
        found.append(f"watchdog process: safe packet after {1e3 * watchdog_timeout:g} ms without heartbeat")
    elif spec.stop_mechanism == NOTHING:
        found.append(f"no further stop: force limited to {100 * UNSTOPPED_FORCE_FRACTION:g} %")
    if spec.watchdog > 0.0 and spec.stop_mechanism != NOTHING:
        found.append(f"device watchdog: {1e3 * spec.watchdog:g} ms without a force packet")
    elif spec.stop_mechanism == SAFE_FRAME:
        found.append("no device watchdog: no stop if tick and watchdog process both end")
    return found


def without_run(emulated: Mapping[str, Any]) -> dict[str, Any]:
    """Return position, velocity and force where no run holds the device: its own word for them, if it is emulated."""
    return {**{name: emulated.get(name) for name in ("position", "velocity", "force")}, "grip": 0.0}


def of_row(row: Floats, columns: TickColumns) -> dict[str, Any]:
    """Return position, velocity and force of the device in a row."""
    found: dict[str, Any] = {
        name: [value if math.isfinite(value) else None for value in np.asarray(row[columns.places[name]]).tolist()]
        for name in ("position", "velocity", "force")
    }
    return {**found, "grip": float(row[_GRIP])}
