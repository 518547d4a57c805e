"""Device panel of the page: payload of the coupling device, commands for an emulated one."""

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

PLAY: Final = "play"  # emulator command
REACH: Final = 0.04  # m or rad to either side, range of the operator's slider
SWITCHES: Final = ("garbage", "half", "stall", "freeze")  # emulator commands that are on or off
_ENGAGEMENT: Final = FIXED.index("engagement")


class Emulated(Protocol):
    """Emulator as the page uses it; see :class:`fsm_dyn.devices.emulators.emulator_process.Emulation`."""

    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the emulator."""

    def state(self) -> dict[str, Any]:
        """Return the state of the emulated device."""


@dataclass(frozen=True)
class CouplingDevice:
    """Device that is coupled to the mechanism of a page.

    Attributes
    ----------
    driver, options
        As for :meth:`fsm_dyn.live.session.LiveSession.start`.
    mapping : DeviceMap
    limits : Limits
    watchdog_timeout, release_after, owner_timeout, lag_limit : float
        See :class:`fsm_dyn.live.session.Settings`, s.
    stall_timeout : float
        Time without samples until a fault, s.
    emulation : Emulated, optional
        Emulator in the place of hardware.
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
    lag_limit: float = 0.1

    def timeouts(self, period: float) -> dict[str, Any]:
        """Return the timeouts of a run as settings; ``period`` of its ticks in s."""
        return {
            "watchdog_timeout": self.watchdog_timeout, "release_after": self.release_after,
            "owner_timeout": self.owner_timeout, "lag_limit": self.lag_limit and max(self.lag_limit, 2.0 * period),
            "stall_ticks": max(1, round(self.stall_timeout / period)),
        }  # fmt: skip

    @property
    def spec(self) -> DeviceSpec:
        """Specification of the device, before it is opened."""
        found: DeviceSpec = driver_class(self.driver).describe(self.options)
        return found

    def payload(self, port: CoupledPort, key: bool = False) -> dict[str, Any]:
        """Return the constant payload: name, axes, force shutdown chain, emulator commands.

        ``key``: the model defines how the port is pressed.
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
        """Execute a page command on the emulated device.

        Raises
        ------
        InputError
            The device is not emulated, or has no such axis or command.
        """
        if self.emulation is None:
            raise InputError("this device is not emulated", remedy="use its plug and handle")
        if command["do"] == "hand":
            target = list(self.emulation.state()["hand"]["target"])
            if not 0 <= command["axis"] < len(target):
                raise InputError("unknown axis of the operator", found=str(command["axis"]))
            target[command["axis"]] = command["value"]
            self.emulation.do("hand", target=target)
        elif command["what"] in SWITCHES or command["what"] == "watchdog":
            self.emulation.do(command["what"], on=command["on"])
        else:
            self.emulation.do(command["what"])

    def press(self, port: CoupledPort, places: tuple[float, float], down: bool, speed: float) -> None:
        """Press or release a key of the model with the emulated operator.

        Parameters
        ----------
        port : CoupledPort
        places : tuple of float
            Positions of the released and the pressed key along the port's first axis, from its start, m or rad.
        down : bool
        speed : float
            Peak velocity of the key, m/s or rad/s.
        """
        scale = self.mapping.scales(port)[0]
        self._play("hand", target=places[down] / scale, speed=speed / abs(scale))

    def play(self, port: CoupledPort, places: tuple[float, float]) -> None:
        """Play the notes of the page with the emulated operator; ``places`` as for :meth:`press`."""
        lifted, pressed = (place / self.mapping.scales(port)[0] for place in places)
        self._play("hand")
        self._play("play", rate=REPETITION, notes=NOTES, pressed=pressed, lifted=lifted)

    def _play(self, command: str, **arguments: float) -> None:
        """Send a command to an emulator that can play, with the impedance of a finger."""
        if self.emulation is None or PLAY not in self.emulation.commands:
            raise InputError("this device has no emulated operator that plays", remedy="press its handle")
        if command == "hand":
            arguments = {"stiffness": FINGER_STIFFNESS, "damping": FINGER_DAMPING, **arguments}
        self.emulation.do(command, **arguments)

    def now(self) -> dict[str, Any]:
        """Return the state of an emulated device, empty for another or a terminated one; blocks."""
        if self.emulation is None:
            return {}
        try:
            return self.emulation.state()
        except FsmDynError:
            return {}


def stops(spec: DeviceSpec, watchdog_timeout: float, release_after: float) -> list[str]:
    """Return the force shutdown chain as text, in order."""
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
    """Return position, velocity and force without a run: those of the emulator, else None."""
    return {**{name: emulated.get(name) for name in ("position", "velocity", "force")}, "engagement": 0.0}


def of_row(row: Floats, columns: TickColumns) -> dict[str, Any]:
    """Return position, velocity and force of the device in a row."""
    found: dict[str, Any] = {
        name: [value if math.isfinite(value) else None for value in np.asarray(row[columns.places[name]]).tolist()]
        for name in ("position", "velocity", "force")
    }
    return {**found, "engagement": float(row[_ENGAGEMENT])}
