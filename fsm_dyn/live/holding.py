"""Holding a mechanism by its ports: the virtual coupler as part of the model.

The coupler is a spring and damper between the device and the port (Colgate, Stanley and Brown 1995, "Issues in the
haptic display of tool use").  It is written into the model, as inputs, parameters, loads and outputs in the language of
the file: every mode is derived with it, the integrator sees its stiffness, and the very same mechanism runs off line
with the inputs a device gave.  Per axis of a port ``P`` with the device at ``w`` and the port at ``p``::

    force = P_1_grip (P_1_stiffness (w - p) + P_1_damping (w' - p'))

acts on the model; the device feels the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fsm_dyn.errors import InputError
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.model import Port
from fsm_dyn.spec.plain import plain_data
from fsm_dyn.spec.reader import compose

TWIST: Final = "twist"
STIFFNESS: Final = 200.0  # N/m, until told otherwise
DAMPING: Final = 2.0  # N s/m
TURNING: Final = 0.02  # of these for an axis of rotation, per rad

_NEXT: Final = {"x": ("y", "z"), "y": ("z", "x"), "z": ("x", "y")}


@dataclass(frozen=True)
class Axis:
    """One axis of a held port: a direction in which a device is coupled to the model.

    Attributes
    ----------
    name : str
        ``<port>_1``, ``_2``, ``_3`` or ``<port>_twist``; the input that is the device's position (m or rad).
    turns : bool
        Whether it is an axis of rotation: force then means torque (N m).
    """

    name: str
    turns: bool

    @property
    def rate(self) -> str:
        """The input that is the device's velocity."""
        return f"{self.name}_rate"

    @property
    def grip(self) -> str:
        """The input that scales the coupler, from 0 (let go) to 1 (held)."""
        return f"{self.name}_grip"

    @property
    def stiffness(self) -> str:
        """The parameter of the coupler's spring."""
        return f"{self.name}_stiffness"

    @property
    def damping(self) -> str:
        """The parameter of the coupler's damper."""
        return f"{self.name}_damping"

    @property
    def outputs(self) -> tuple[str, str, str]:
        """The outputs: force of the coupler on the model, position and rate of the port."""
        return f"{self.name}_force", f"{self.name}_at", f"{self.name}_at_rate"


@dataclass(frozen=True)
class HeldPort:
    """A port with its axes."""

    name: str
    axes: tuple[Axis, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs that holding adds for this port."""
        return tuple(name for axis in self.axes for name in (axis.name, axis.rate, axis.grip))


def held_ports(mechanism: Mechanism) -> tuple[HeldPort, ...]:
    """Return the ports of a mechanism as a device sees them."""
    return tuple(_held(mechanism, port) for port in mechanism.ports.values())


def _held(mechanism: Mechanism, port: Port) -> HeldPort:
    if port.coordinate is not None:
        turns = mechanism.coordinates[port.coordinate].unit in ("rad", "deg")
        return HeldPort(port.name, (Axis(f"{port.name}_1", turns),))
    axes = [Axis(f"{port.name}_{i + 1}", False) for i in range(len(port.axes))]
    if port.twist is not None:
        axes.append(Axis(f"{port.name}_{TWIST}", True))
    return HeldPort(port.name, tuple(axes))


def hold(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with a virtual coupler on each of its ports.

    Raises
    ------
    InputError
        There is no port; an axis is not fixed in N; the body of a twist has no frame; a name is taken already.
    """
    if not mechanism.ports:
        raise InputError(
            f"'{mechanism.name}' has no port to hold it by",
            mechanism.where,
            remedy="give it one: ports: {handle: {point: P, body: B, axes: [N.x, N.y]}} or {handle: {coordinate: q}}",
        )
    data: dict[str, Any] = plain_data(compose(mechanism.text, mechanism.name))
    data.setdefault("name", mechanism.name)
    data.pop("variants", None)  # the form that is held has been chosen
    writer = _Writer(mechanism, data)
    for port in mechanism.ports.values():
        writer.couple(port)
    return load_mechanism(data)


class _Writer:
    """Writes couplers into the sections of a model."""

    def __init__(self, mechanism: Mechanism, data: dict[str, Any]) -> None:
        self._mechanism = mechanism
        self._inputs = _named(data, "inputs")
        self._parameters: dict[str, Any] = data.setdefault("parameters", {})
        self._outputs: dict[str, Any] = data.setdefault("outputs", {})
        self._loads: list[Any] = data.setdefault("loads", [])

    def couple(self, port: Port) -> None:
        """Add the coupler of one port."""
        held = _held(self._mechanism, port)
        if port.coordinate is not None:
            at = port.coordinate
            force = self._axis(port, held.axes[0], at, f"rate({at})", f"{held.axes[0].name} - {at}")
            self._loads.append({"law": force, "coordinate": at})
            return
        parts = []
        for axis, text in zip(held.axes, port.axes, strict=False):
            direction = self._fixed(port, text.text)
            at, rate = f"dot(pos({port.point}), {direction})", f"dot(vel({port.point}), {direction})"
            parts.append(f"({self._axis(port, axis, at, rate, f'{axis.name} - {at}')})*{direction}")
        self._loads.append({"force": " + ".join(parts), "at": port.point})
        if port.twist is not None:
            self._twist(port, held)

    def _twist(self, port: Port, held: HeldPort) -> None:
        """Couple the turning of the port's body about an axis of N; the angle is that of one of the body's axes."""
        text = port.twist.text.strip() if port.twist is not None else ""
        body = self._mechanism.bodies[port.body or ""]
        if text not in ("N.x", "N.y", "N.z") or body.frame is None:
            raise InputError(
                f"the twist of port '{port.name}' cannot be held",
                port.where,
                found=f"{text} on body '{port.body}'",
                allowed="N.x, N.y or N.z, on a body with a frame",
            )
        first, second = _NEXT[text[-1]]
        arm, axis = f"{body.frame}.{first}", held.axes[-1]
        across, along = f"dot({arm}, N.{second})", f"dot({arm}, N.{first})"
        # the angle from the body to the device, between -pi and pi: nothing jumps where the body's own angle wraps
        lead = (
            f"atan2({along}*sin({axis.name}) - {across}*cos({axis.name}), "
            f"{along}*cos({axis.name}) + {across}*sin({axis.name}))"
        )
        rate = f"dot(omega({port.body}), {text})"
        torque = self._axis(port, axis, f"atan2({across}, {along})", rate, lead)
        self._loads.append({"torque": f"({torque})*{text}", "on": port.body})

    def _axis(self, port: Port, axis: Axis, at: str, rate: str, lead: str) -> str:
        """Declare what one axis needs and return the coupler's force along it."""
        units = self._mechanism.uses_units
        length, force = ("rad", "N*m") if axis.turns else ("m", "N")
        scale = TURNING if axis.turns else 1.0
        self._put(self._inputs, port, axis.name, length if units else "1")
        self._put(self._inputs, port, axis.rate, f"{length}/s" if units else "1")
        self._put(self._inputs, port, axis.grip, "1")
        for name, value, unit in (
            (axis.stiffness, STIFFNESS * scale, f"{force}/{length}"),
            (axis.damping, DAMPING * scale, f"{force}*s/{length}"),
        ):
            self._put(self._parameters, port, name, f"{value} {unit}" if units else value)
        text = f"{axis.grip}*({axis.stiffness}*({lead}) + {axis.damping}*({axis.rate} - {rate}))"
        for name, entry in zip(axis.outputs, (text, at, rate), strict=True):
            self._put(self._outputs, port, name, entry)
        return text

    def _fixed(self, port: Port, text: str) -> str:
        """Return the text of an axis, which may name nothing that moves."""
        frames = [word.split(".")[0] for word in text.replace("*", " ").replace("(", " ").split() if "." in word]
        if any(frame in self._mechanism.frames for frame in frames):
            raise InputError(
                f"an axis of port '{port.name}' turns with a body", port.where, found=text, allowed="axes fixed in N"
            )
        return f"({text})"

    def _put(self, section: dict[str, Any], port: Port, name: str, value: object) -> None:
        if name in section:
            raise InputError(
                f"holding port '{port.name}' needs the name '{name}', which is taken",
                port.where,
                remedy="rename the port, or what has this name",
            )
        section[name] = value


def _named(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a section that may be a list of names as a mapping."""
    section = data.get(key, {})
    named = dict(section) if isinstance(section, Mapping) else {str(name): None for name in section}
    data[key] = named
    return named
