"""Coupled models: virtual couplers on the ports of a mechanism, as parts of the model.

The coupler is a spring and damper between the device and the port (Colgate, Stanley and Brown 1995, "Issues in the
haptic display of tool use").  It is written into the model, as inputs, parameters, loads and outputs in the language of
the file: every mode is derived with it, the integrator sees its stiffness, and the same model runs offline with the
recorded inputs of a device.  Per axis of a port ``P`` with the device at ``w`` and the port at ``p``::

    force = P_1_engagement (P_1_stiffness (w - p) + P_1_damping (w' - p'))

acts on the model; the device gets the opposite.  Along a body-fixed axis there is no such ``p``: the displacement along
it is an additional coordinate, whose rate is the velocity of the port along the axis.

A kinematic port has no coupler: a constraint makes its coordinate follow the input ``P_1_device``, and the device gets
the multiplier (docs/theory.md, "Kinematic ports").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fsm_dyn.errors import InputError
from fsm_dyn.expressions import Text
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.model import Port
from fsm_dyn.spec.python_mapping import plain_data
from fsm_dyn.spec.reader import compose

ROTATION: Final = "rotation"
STIFFNESS: Final = 200.0  # N/m, default
DAMPING: Final = 2.0  # N s/m
TURNING: Final = 0.02  # share of these for a rotational axis, per rad

# what follows the name of an axis in the names that coupling adds
_SUFFIXES: Final = {
    "device": "_device", "rate": "_device_rate", "engagement": "_engagement", "position": "_position",
    "velocity": "_velocity", "constraint": "_constraint", "initial": "_initial", "displacement": "_displacement",
    "applied": "_applied_force",
}  # fmt: skip
# the same in mechanisms coupled by versions before 0.2, which recordings hold
_OLDER_SUFFIXES: Final = {
    "device": "", "rate": "_rate", "engagement": "_grip", "position": "_at", "velocity": "_at_rate",
    "constraint": "_drive", "initial": "_begin", "displacement": "_way", "applied": "_applied_force",
}  # fmt: skip
_OLDER_ROTATION: Final = "twist"

_DIRECTION: Final = re.compile(r"([A-Za-z_]\w*)\s*\.\s*([xyz])")
_NEXT: Final = {"x": ("y", "z"), "y": ("z", "x"), "z": ("x", "y")}


@dataclass(frozen=True)
class PortAxis:
    """One axis of a coupled port: a direction in which a device is coupled to the model.

    Attributes
    ----------
    name : str
        ``<port>_1``, ``_2``, ``_3`` or ``<port>_rotation``.
    is_rotational : bool
        Whether it is an axis of rotation: force then means torque (N m).
    prescribed_coordinate : str
        The coordinate that the device prescribes, empty for an axis with a coupler.
    bandwidth : Text, optional
        Of the filter between the device and a prescribed coordinate, Hz.
    older : bool
        Whether the mechanism was coupled by a version before 0.2, with other names.
    is_applied_force : bool
        Whether the force of the hand is an input of the model, whose motion the device follows.
    """

    name: str
    is_rotational: bool
    prescribed_coordinate: str = ""
    bandwidth: Text | None = None
    older: bool = False
    is_applied_force: bool = False

    def _named(self, role: str) -> str:
        return self.name + (_OLDER_SUFFIXES if self.older else _SUFFIXES)[role]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that the coupling adds for this axis."""
        if self.is_applied_force:
            return (self.applied_force,)
        return (self.device,) if self.prescribed_coordinate else (self.device, self.rate, self.engagement)

    @property
    def device(self) -> str:
        """The input that is the device's position, m or rad."""
        return self._named("device")

    @property
    def applied_force(self) -> str:
        """The input that is the force of the hand on the model, N or N m."""
        return self._named("applied")

    @property
    def rate(self) -> str:
        """The input that is the device's velocity, m/s or rad/s."""
        return self._named("rate")

    @property
    def engagement(self) -> str:
        """The input that scales the coupler, from 0 (disengaged) to 1 (engaged)."""
        return self._named("engagement")

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
        return f"{self.name}_force", self._named("position"), self._named("velocity")

    @property
    def constraint(self) -> str:
        """The constraint by which the device prescribes the coordinate; its multiplier is the force on the model."""
        return self._named("constraint")

    @property
    def initial(self) -> str:
        """The parameter that is the initial value of a prescribed coordinate, subtracted from it."""
        return self._named("initial")

    @property
    def displacement(self) -> str:
        """The coordinate that is the displacement along a body-fixed axis."""
        return self._named("displacement")

    @property
    def displacement_row(self) -> str:
        """The kinematic constraint that defines the rate of the displacement."""
        return f"{self.displacement}_row"


@dataclass(frozen=True)
class CoupledPort:
    """Port with its coupled axes."""

    name: str
    axes: tuple[PortAxis, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs that the coupling adds for this port."""
        return tuple(name for axis in self.axes for name in axis.inputs)


def coupled_ports(mechanism: Mechanism) -> tuple[CoupledPort, ...]:
    """Return the ports of a mechanism with their axes for coupling."""
    return tuple(_coupled_port(mechanism, port) for port in mechanism.ports.values())


def _coupled_port(mechanism: Mechanism, port: Port) -> CoupledPort:
    older = f"{port.name}_1" in mechanism.inputs
    applied = f"{port.name}_1_applied_force" in mechanism.inputs
    if port.coordinate is not None:
        turns = mechanism.coordinates[port.coordinate].unit in ("rad", "deg")
        prescribes = port.coordinate if port.kinematic is not None and not applied else ""
        bandwidth = port.kinematic if prescribes else None
        return CoupledPort(port.name, (PortAxis(f"{port.name}_1", turns, prescribes, bandwidth, older, applied),))
    axes = [
        PortAxis(f"{port.name}_{i + 1}", False, older=older, is_applied_force=applied) for i in range(len(port.axes))
    ]
    if port.rotation is not None:
        name = f"{port.name}_{_OLDER_ROTATION if older else ROTATION}"
        axes.append(PortAxis(name, True, older=older, is_applied_force=applied))
    return CoupledPort(port.name, tuple(axes))


def add_couplers(mechanism: Mechanism, admittance: bool = False) -> Mechanism:
    """Return the mechanism with a virtual coupler on each of its ports.

    With ``admittance`` a port has no coupler: the force of the hand is an input, for devices that measure it and follow
    the motion of the port.

    Raises
    ------
    InputError
        There is no port; the body of a rotation has no frame; a name is taken already.
    """
    if not mechanism.ports:
        raise InputError(
            f"'{mechanism.name}' has no port to hold it by",
            mechanism.where,
            remedy="give it one: ports: {handle: {point: P, body: B, axes: [N.x, N.y]}} or {handle: {coordinate: q}}",
        )
    data: dict[str, Any] = plain_data(compose(mechanism.text, mechanism.name))
    data.setdefault("name", mechanism.name)
    data.pop("variants", None)  # the variant has been chosen
    writer = _Writer(mechanism, data, admittance)
    for port in mechanism.ports.values():
        writer.couple(port)
    return load_mechanism(data)


class _Writer:
    """Writes couplers into the sections of a model."""

    def __init__(self, mechanism: Mechanism, data: dict[str, Any], admittance: bool) -> None:
        self._mechanism, self._admittance = mechanism, admittance
        self._inputs = _named(data, "inputs")
        self._coordinates = _named(data, "coordinates")
        self._parameters: dict[str, Any] = data.setdefault("parameters", {})
        self._outputs: dict[str, Any] = data.setdefault("outputs", {})
        self._constraints: dict[str, Any] = data.setdefault("constraints", {})
        self._loads: list[Any] = data.setdefault("loads", [])
        self._initial: dict[str, Any] = data.setdefault("initial", {})
        self._own_speeds = bool(data.get("speeds"))

    def couple(self, port: Port) -> None:
        """Add the coupler of one port."""
        coupled = _coupled_port(self._mechanism, port)
        if port.coordinate is not None:
            self._coordinate(port, coupled.axes[0], port.coordinate)
            return
        parts = []
        for axis, text in zip(coupled.axes, port.axes, strict=False):
            rate = f"dot(vel({port.point}), {text.text})"
            at = self._displacement(port, axis, rate) if self._moves(text) else f"dot(pos({port.point}), {text.text})"
            parts.append(f"({self._axis(port, axis, at, rate, f'{axis.device} - {at}')})*({text.text})")
        self._loads.append({"force": " + ".join(parts), "at": port.point})
        if port.rotation is not None:
            self._rotation(port, coupled.axes[-1], port.rotation)

    def _coordinate(self, port: Port, axis: PortAxis, at: str) -> None:
        if self._admittance or not axis.prescribed_coordinate:
            force = self._axis(port, axis, at, f"rate({at})", f"{axis.device} - {at}")
            self._loads.append({"law": force, "coordinate": at})
            return
        initial = self._mechanism.initial.values
        zero = ("0 rad" if axis.is_rotational else "0 m") if self._mechanism.uses_units else 0
        self._put(self._parameters, port, axis.initial, initial[at].text if at in initial else zero)
        unit = "rad" if axis.is_rotational else "m"
        self._put(self._inputs, port, axis.device, unit if self._mechanism.uses_units else "1")
        self._put(self._constraints, port, axis.constraint, {"position": f"{at} - {axis.initial} - {axis.device}"})
        for name in self._rates(at):  # the device engages at rest
            self._initial.pop(name, None)
        for name, entry in zip(axis.outputs[1:], (at, f"rate({at})"), strict=True):
            self._put(self._outputs, port, name, entry)

    def _rates(self, coordinate: str) -> list[str]:
        """Return the speeds that equal the rate of a coordinate."""
        speeds = self._mechanism.speeds.items()
        return [f"{coordinate}_dot", *(name for name, text in speeds if text.text == f"rate({coordinate})")]

    def _moves(self, text: Text) -> bool:
        """Whether a direction is body-fixed."""
        return any(name in self._mechanism.frames for name, _ in _DIRECTION.findall(text.text))

    def _displacement(self, port: Port, axis: PortAxis, rate: str) -> str:
        """Add the displacement along an axis as a coordinate, so that the coupler conserves power."""
        units = self._mechanism.uses_units
        self._put(self._coordinates, port, axis.displacement, ("rad" if axis.is_rotational else "m") if units else "1")
        row: dict[str, Any] = {"velocity": f"rate({axis.displacement}) - {rate}"}
        if self._own_speeds:  # else every coordinate has a speed, this one too
            row["kinematic"] = True
        self._put(self._constraints, port, axis.displacement_row, row)
        return axis.displacement

    def _rotation(self, port: Port, axis: PortAxis, text: Text) -> None:
        """Couple the rotation of the port's body: about an axis of N by its angle, else by an added coordinate."""
        body = self._mechanism.bodies[port.body or ""]
        rate = f"dot(omega({port.body}), {text.text})"
        if body.frame is None:
            raise InputError(
                f"the rotation of port '{port.name}' cannot be held", port.where, found=f"'{port.body}' has no frame"
            )
        if text.text.strip() not in ("N.x", "N.y", "N.z"):
            at = self._displacement(port, axis, rate)
            torque = self._axis(port, axis, at, rate, f"{axis.device} - {at}")
            self._loads.append({"torque": f"({torque})*({text.text})", "on": port.body})
            return
        first, second = _NEXT[text.text.strip()[-1]]
        arm = f"{body.frame}.{first}"
        across, along = f"dot({arm}, N.{second})", f"dot({arm}, N.{first})"
        # the angle from the body to the device, between -pi and pi: no jump where the body's own angle wraps
        lead = (
            f"atan2({along}*sin({axis.device}) - {across}*cos({axis.device}), "
            f"{along}*cos({axis.device}) + {across}*sin({axis.device}))"
        )
        torque = self._axis(port, axis, f"atan2({across}, {along})", rate, lead)
        self._loads.append({"torque": f"({torque})*{text.text}", "on": port.body})

    def _axis(self, port: Port, axis: PortAxis, at: str, rate: str, lead: str) -> str:
        """Declare inputs, parameters and outputs of one axis; return the coupler's force along it."""
        if self._admittance:
            return self._applied(port, axis, at, rate)
        units = self._mechanism.uses_units
        length, force = ("rad", "N*m") if axis.is_rotational else ("m", "N")
        scale = TURNING if axis.is_rotational else 1.0
        self._put(self._inputs, port, axis.device, length if units else "1")
        self._put(self._inputs, port, axis.rate, f"{length}/s" if units else "1")
        self._put(self._inputs, port, axis.engagement, "1")
        own = (None, None) if axis.is_rotational and port.coordinate is None else (port.stiffness, port.damping)
        for name, given, value, unit in (
            (axis.stiffness, own[0], STIFFNESS * scale, f"{force}/{length}"),
            (axis.damping, own[1], DAMPING * scale, f"{force}*s/{length}"),
        ):
            usual = f"{value} {unit}" if units else value
            self._put(self._parameters, port, name, usual if given is None else given.text)
        text = f"{axis.engagement}*({axis.stiffness}*({lead}) + {axis.damping}*({axis.rate} - {rate}))"
        for name, entry in zip(axis.outputs, (text, at, rate), strict=True):
            self._put(self._outputs, port, name, entry)
        return text

    def _applied(self, port: Port, axis: PortAxis, at: str, rate: str) -> str:
        """Declare the input that is the hand's force along an axis, and the outputs; return its name."""
        unit = "N*m" if axis.is_rotational else "N"
        self._put(self._inputs, port, axis.applied_force, unit if self._mechanism.uses_units else "1")
        for name, entry in zip(axis.outputs, (axis.applied_force, at, rate), strict=True):
            self._put(self._outputs, port, name, entry)
        return axis.applied_force

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
    named = dict(section) if isinstance(section, Mapping) else {str(name): "1" for name in section}
    data[key] = named
    return named
