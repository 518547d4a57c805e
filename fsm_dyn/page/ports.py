"""Ports on the page: handles for the pointer, default ports, the panel of a device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Protocol

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import FsmDynError, InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import expressions
from fsm_dyn.language.elements import CoupledPort, PortAxis, SimpleFrame
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.expression_tree import Text, free_names
from fsm_dyn.language.interfaces import Port
from fsm_dyn.language.loader import with_settings
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.language.values import parameter_values
from fsm_dyn.live.device_map import DeviceMap, Limits, coupled_ports
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, UNSTOPPED_FORCE_FRACTION, DeviceSpec, driver_class
from fsm_dyn.live.live_settings import ZERO_AFTER
from fsm_dyn.live.strokes import FINGER_DAMPING, FINGER_STIFFNESS, NOTES, REPETITION
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.page.scene_drawing import Picture, RowEvaluator
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, vector_of

# -- Port handles: pointer positions to port axes, and port positions to drawn handles -----------------------

_ENGAGEMENT: Final = FIXED.index("engagement")
WIDTH: Final = 5  # numbers per handle in a display frame: position (2), device position (2), engagement


@dataclass(frozen=True)
class PortHandle:
    """Drawn handle of a port."""

    port: CoupledPort
    # origin, frame, offset: the handle is at ``offset`` (m, resolved in ``frame``) from the point ``origin``
    origin: str
    frame: str
    offset: Floats
    directions: tuple[Text, ...] = ()  # of the port's translational axes; empty for a coordinate
    coordinate: int = -1  # index of the coupled coordinate, -1: none
    twist: bool = False  # whether the last axis is rotational


class PortHandles:
    """Handles of a coupled graph. ``x``, ``c``: initial state and context."""

    def __init__(
        self, graph: ModeGraph, evaluator: RowEvaluator, picture: Picture, columns: TickColumns, x: Floats, c: Floats
    ) -> None:
        self._evaluator, self._picture, self._columns, self._values = evaluator, picture, columns, graph.values
        mechanism = graph.automaton.mechanism
        self._ports = mechanism.ports
        self.handles = tuple(
            self._coordinate(port, mechanism.ports[port.name], x, c)
            if mechanism.ports[port.name].coordinate is not None
            else _at_point(port, mechanism.ports[port.name])
            for port in coupled_ports(mechanism)
        )
        self._by_name = {handle.port.name: handle for handle in self.handles}

    def payload(self) -> list[dict[str, Any]]:
        """Return the payload of the ports."""
        return [
            {
                "name": handle.port.name, "axes": len(handle.port.axes), "twist": handle.twist,
                "press": list(self.press(handle.port.name)) if self._ports[handle.port.name].press else None,
            }
            for handle in self.handles
        ]  # fmt: skip

    def knows(self, name: str) -> bool:
        """Return whether a port of this name exists."""
        return name in self._by_name

    def port(self, name: str) -> CoupledPort:
        """Return a port by its name."""
        return self._by_name[name].port

    def press(self, name: str) -> tuple[float, float]:
        """Return the released and the pressed position along the first axis of a port, m or rad.

        Raises InputError: the model does not define ``press`` for the port.
        """
        places = self._ports[name].press
        if not places:
            raise InputError(
                f"port '{name}' is not a key", remedy=f"define one in the model: {name}: {{..., press: [0 mm, -12 mm]}}"
            )
        lifted, pressed = (float(evaluate_expression(text, self._values)) for text in places)
        return lifted, pressed

    def mapping(self, name: str, twist: bool) -> tuple[int, ...]:
        """Return the device axis for each axis of a port, -1 for an uncoupled rotation."""
        handle = self._by_name[name]
        axes = list(range(len(handle.port.axes)))
        if handle.twist and not twist:
            axes[-1] = -1
        return tuple(axes)

    def place(self, handle: PortHandle, points: Floats, frames: Floats) -> Floats:
        """Return the position of a handle in N, m, shape (3,)."""
        origin = self._picture.point(points, handle.origin)
        if handle.frame == NEWTONIAN:
            return origin + handle.offset
        turn = frames[self._picture.scene.frames.index(handle.frame)]
        return np.asarray(origin + turn @ handle.offset, dtype=np.float64)

    def drawn(self, row: Floats, x: Floats, c: Floats, points: Floats, frames: Floats) -> Floats:
        """Return position, device position (m, in the picture) and engagement of every handle, flat."""
        out = np.zeros(WIDTH * len(self.handles))
        inputs = dict(zip(self._columns.inputs, row[self._columns.places["inputs"]].tolist(), strict=True))
        for k, handle in enumerate(self.handles):
            place = self.place(handle, points, frames)
            axes = self._straight(handle)
            lead = np.array([inputs[axis.device] for axis in axes]) - self._at(row, axes)
            grip = max((inputs.get(axis.engagement, float(row[_ENGAGEMENT])) for axis in axes), default=0.0)
            there = place
            if grip > 0.0 and handle.coordinate >= 0:
                there = place + self._slope(handle, x, c) * lead[0]
            elif grip > 0.0:
                there = place + lead @ self._directions(handle, frames)
            out[WIDTH * k : WIDTH * k + 2] = self._picture.flat @ place
            out[WIDTH * k + 2 : WIDTH * k + 4] = self._picture.flat @ there
            out[WIDTH * k + 4] = grip
        return out

    def _straight(self, handle: PortHandle) -> list[PortAxis]:
        """Return the axes of a handle except a rotational last one."""
        return list(handle.port.axes[: len(handle.port.axes) - handle.twist])

    def _at(self, row: Floats, axes: list[PortAxis]) -> Floats:
        """Return the position of a port along some of its axes, in device coordinates."""
        ports, n = row[self._columns.places["ports"]], len(self._columns.ports)
        return np.array([ports[n + self._columns.ports.index(axis.name)] for axis in axes])

    def _directions(self, handle: PortHandle, frames: Floats) -> Floats:
        """Return the directions of a handle's translational axes in N, shape (k, 3)."""
        turns = dict(zip(self._picture.scene.frames, frames, strict=True))
        return np.array([vector_of(text, self._values, turns) for text in handle.directions])

    def sample(
        self, row: Floats, name: str, at: tuple[float, float], twist: float, x: Floats, c: Floats
    ) -> list[float]:
        """Return the device position for a pointer at a point of the picture, m.

        A point follows the pointer within the picture plane.  A coordinate moves until its handle is closest to the
        pointer.
        """
        handle = self._by_name[name]
        points, frames = self._evaluator.points(x, c)
        apart = np.asarray(at) - self._picture.flat @ self.place(handle, points, frames)
        axes = self._straight(handle)
        along = [self._slope(handle, x, c)] if handle.coordinate >= 0 else self._directions(handle, frames)
        shown = self._picture.flat @ np.array(along).T
        moved = np.linalg.lstsq(shown, apart, rcond=0.1)[0]  # ill-conditioned along the view direction
        position = [float(value) for value in self._at(row, axes) + moved]
        return [*position, twist] if handle.twist else position

    def _slope(self, handle: PortHandle, x: Floats, c: Floats) -> Floats:
        """Return the derivative of a handle's position by its coordinate, shape (3,)."""
        h = 1e-6 * (1.0 + abs(x[handle.coordinate]))
        ends = []
        for step in (-h, h):
            there = x.copy()
            there[handle.coordinate] += step
            ends.append(self.place(handle, *self._evaluator.points(there, c)))
        return np.asarray((ends[1] - ends[0]) / (2.0 * h), dtype=np.float64)

    def _coordinate(self, coupled: CoupledPort, port: Port, x: Floats, c: Floats) -> PortHandle:
        """Return the handle of a coordinate: the point or outline point with the largest motion."""
        number = self._evaluator.layout.q.index(port.coordinate or "")
        options = [(name, NEWTONIAN, np.zeros(3)) for name in self._evaluator.automaton.point_names]
        for shape in self._picture.scene.shapes:
            if shape.frame != NEWTONIAN and len(shape.points) > 1 and not shape.endless:
                far = shape.points[np.argmax(np.linalg.norm(shape.points, axis=1))]
                options.append((shape.origin, shape.frame, np.array([*far, 0.0])))
        best, most = PortHandle(coupled, ORIGIN, NEWTONIAN, np.zeros(3), coordinate=number), 0.0
        for origin, frame, offset in options:
            handle = PortHandle(coupled, origin, frame, offset, coordinate=number)
            moves = float(np.linalg.norm(self._slope(handle, x, c)))
            if moves > 1.001 * most:
                best, most = handle, moves
        return best


def _at_point(coupled: CoupledPort, port: Port) -> PortHandle:
    return PortHandle(coupled, port.point or ORIGIN, NEWTONIAN, np.zeros(3), port.axes, twist=port.rotation is not None)


# -- Default ports of a model without ports: one per moving body, to drag it with the pointer ----------------

SUFFIX: Final = "_port"  # of the names of default ports
MOST: Final = 6  # most default ports
FREQUENCY: Final = 2.0  # Hz, natural frequency of a body on its coupler
DAMPING: Final = 0.7  # damping ratio

_AXES: Final = ("N.x", "N.y", "N.z")


def with_default_ports(mechanism: Mechanism, axes: int = 2) -> Mechanism:
    """Return the mechanism with ports: unchanged if it has any, else with one for each of its first ``MOST`` bodies.

    The port of a body is its centre along the first ``axes`` axes of N, or its rotation angle if the centre is at rest.
    """
    if mechanism.ports:
        return mechanism
    ports: dict[str, Any] = {}
    for body in mechanism.bodies.values():
        port = _port(mechanism, body, axes)
        if port is not None and len(ports) < MOST:
            ports[f"{body.name}{SUFFIX}"] = port
    return with_settings(mechanism, ports=ports) if ports else mechanism


def _port(mechanism: Mechanism, body: Body, axes: int) -> dict[str, Any] | None:
    if body.center != "O":
        return {"point": body.center, "body": body.name, "axes": list(_AXES[:axes])}
    frame = mechanism.frames.get(body.frame or "")
    if isinstance(frame, SimpleFrame):
        angle = frame.angle.text.strip()
        if angle in mechanism.coordinates:
            return {"coordinate": angle}
    return None


def default_coupler_parameters(graph: ModeGraph) -> dict[str, float]:
    """Return stiffness and damping of the couplers of a graph with default ports, from the mass of their bodies."""
    mechanism = graph.automaton.mechanism
    values = parameter_values(mechanism)
    found: dict[str, float] = {}
    for port in coupled_ports(mechanism):
        body = mechanism.bodies.get(mechanism.ports[port.name].body or "")
        if body is None:
            continue
        mass = _number(body.mass, values)
        if mass is None:
            continue
        rate = 2.0 * math.pi * FREQUENCY
        for axis in port.axes:
            found[axis.stiffness] = mass * rate * rate
            found[axis.damping] = 2.0 * DAMPING * mass * rate
    return found


def _number(text: Text, values: Mapping[str, Any]) -> float | None:
    """Return a mass given by parameters alone, else None."""
    if not free_names(expressions.parse(text)) <= set(values):
        return None
    number = float(evaluate_expression(text, values))
    return number if number > 0.0 else None


# -- Device panel of the page: payload of the coupling device, commands for an emulated one ------------------

PLAY: Final = "play"  # emulator command
REACH: Final = 0.04  # m or rad to either side, range of the operator's slider
SWITCHES: Final = ("garbage", "half", "stall", "freeze")  # emulator commands with on and off


class Emulated(Protocol):
    """Emulator as the page uses it; see :class:`fsm_dyn.devices.emulators.emulated_device.Emulation`."""

    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the emulator."""

    def state(self) -> dict[str, Any]:
        """Return the state of the emulated device."""


@dataclass(frozen=True)
class CouplingDevice:
    """Device coupled to the mechanism of a page."""

    # driver, options: as for :meth:`fsm_dyn.live.session.LiveSession.start`
    driver: str
    options: Mapping[str, Any]
    mapping: DeviceMap = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    # watchdog_timeout, release_after, owner_timeout, lag_limit: see :class:`fsm_dyn.live.live_settings.LiveSettings`, s
    watchdog_timeout: float = 0.1
    emulation: Emulated | None = None  # emulator in the place of hardware
    release_after: float = 0.012
    stall_timeout: float = 0.1  # time without samples until a fault, s
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

        Raises InputError: the device is not emulated, or has no such axis or command.
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

        ``places``: positions of the released and the pressed key along the port's first axis, from its start, m or rad;
        ``speed``: peak velocity of the key, m/s or rad/s.
        """
        scale = self.mapping.scales(port)[0]
        self._play("hand", target=places[down] / scale, speed=speed / abs(scale))

    def play(self, port: CoupledPort, places: tuple[float, float]) -> None:
        """Play the notes of the page with the emulated operator; ``places`` as for :meth:`press`."""
        lifted, pressed = (place / self.mapping.scales(port)[0] for place in places)
        self._play("hand")
        self._play("play", rate=REPETITION, notes=NOTES, pressed=pressed, lifted=lifted)

    def _play(self, command: str, **arguments: float) -> None:
        """Send a command to an emulator able to play, with the impedance of a finger."""
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
        found.append(f"watchdog process: zero force after {1e3 * ZERO_AFTER * release_after:.2g} ms without heartbeat")
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
