"""Device maps: coupled ports, their motion by a device, limits, axes with their own zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.build import axes_of
from fsm_dyn.language.elements import CoupledPort
from fsm_dyn.language.loader import with_settings
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.kernels import compile_programs

# -- Coupled models: mechanisms with ports coupled to a device -----------------------------------------------


def coupled_ports(mechanism: Mechanism) -> tuple[CoupledPort, ...]:
    """Return the ports of a mechanism with their axes for coupling, whether it is coupled or not."""
    return mechanism.coupled_ports or axes_of(mechanism)


def is_coupled(mechanism: Mechanism, ports: tuple[CoupledPort, ...]) -> bool:
    """Whether a mechanism has the inputs and couplers of these ports."""
    return bool(ports) and all(name in mechanism.inputs for port in ports for name in port.inputs)


def add_couplers(mechanism: Mechanism, admittance: bool = False) -> Mechanism:
    """Return the mechanism with a virtual coupler on each of its ports.

    With ``admittance`` a port has no coupler: the force of the hand is an input, for devices measuring it and
    following the motion of the port.

    Raises
    ------
    ModelError
        The model has no port; the body of a rotation has no frame; a name is already used.
    """
    return with_settings(mechanism, port_coupling="admittance" if admittance else "impedance")


# -- Device maps and limits ----------------------------------------------------------------------------------
#
# Device maps and limits: the motion of a port by a device, and bounds on forces and samples.

SMALLEST: Final = 1e-6  # of a scale, and the reciprocal of the largest


@dataclass(frozen=True)
class DeviceMap:
    """Affine map from device to port: model position = offset + scale * device position.

    Attributes
    ----------
    port : str
        The port in use; empty: the first of the model.
    axes : tuple of int
        For each axis of the port the device's axis, -1 for none; empty: in order, as far as the device goes.
    scale : float or tuple of float
        Model metres per metre of the device along the straight axes (angles are taken as they are); or one number for
        each axis of the port, in units of the model per unit of the device, negative to reverse the direction.
    force_scale : float
        Device newtons per newton of the model, on top of the power-conserving factor ``scale``.
    offset : tuple of float
        Position of the device's zero on each axis of the port, m or rad; empty: chosen at each engagement to place the
        device at the port.
    """

    port: str = ""
    axes: tuple[int, ...] = ()
    scale: float | tuple[float, ...] = 1.0
    force_scale: float = 1.0
    offset: tuple[float, ...] = ()

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> DeviceMap:
        """Return a device map from ``dataclasses.asdict`` of one, also after conversion to JSON and back."""
        given = dict(data)
        for name in ("axes", "scale", "offset"):
            if isinstance(given.get(name), Sequence):
                given[name] = tuple(given[name])
        return cls(**given)

    def device_axes(self, port: CoupledPort, n_device: int) -> tuple[int, ...]:
        """Return the device axis behind each axis of the port.

        Raises
        ------
        InputError
            The axes do not fit.
        """
        axes = self.axes or tuple(i if i < n_device else -1 for i in range(len(port.axes)))
        if len(axes) != len(port.axes) or any(not -1 <= axis < n_device for axis in axes):
            raise InputError(
                f"the axes of the device do not fit port '{port.name}'",
                found=str(axes),
                allowed=f"{len(port.axes)} numbers from -1 to {n_device - 1}",
            )
        return axes

    def scales(self, port: CoupledPort) -> tuple[float, ...]:
        """Return the scale of each axis of the port.

        Raises
        ------
        InputError
            There are too many or too few, or one is zero.
        """
        if isinstance(self.scale, tuple):
            found = self.scale
        else:
            found = tuple(1.0 if axis.is_rotational else float(self.scale) for axis in port.axes)
        if len(found) != len(port.axes) or not all(SMALLEST <= abs(value) <= 1.0 / SMALLEST for value in found):
            raise InputError(
                f"scale of the device at port '{port.name}'",
                found=str(self.scale),
                allowed=f"a number, or {len(port.axes)} of them; none is zero, and sizes from {SMALLEST:g} to "
                f"{1.0 / SMALLEST:g}",
                remedy="give metres of the model per metre of the device: 1/3 where 30 mm of it are 10 mm of the model",
            )
        if not 0.0 <= self.force_scale <= 1.0 / SMALLEST:
            raise InputError(
                f"force_scale of the device at port '{port.name}'", found=str(self.force_scale),
                allowed=f"from 0 to {1.0 / SMALLEST:g}", remedy="1 keeps power the same on both sides",
            )  # fmt: skip
        return found

    def offsets(self, port: CoupledPort) -> tuple[float, ...]:
        """Return the validated offsets.

        Raises
        ------
        InputError
            There are too many or too few.
        """
        if self.offset and (len(self.offset) != len(port.axes) or not all(map(math.isfinite, self.offset))):
            raise InputError(
                f"offset of the device at port '{port.name}'",
                found=str(self.offset),
                allowed=f"{len(port.axes)} finite numbers, or none",
            )
        return self.offset


DeviceMaps = DeviceMap | tuple[DeviceMap, ...]  # of one device, or of each of several


LAST_BUTTON: Final = 62  # buttons are bits of an int64


@dataclass(frozen=True)
class Limits:
    """Limits of a device: force and torque, velocities, workspace, ramp, buttons and rejected samples.

    Linear and rotational axes have separate limits, each in its unit.

    Attributes
    ----------
    force, torque : float
        Norms of the commanded force and torque, N and N m.
    slew, torque_slew : float
        Their rates of change, N/s and N m/s.
    velocity, angular_velocity : float
        Largest norms of the device's velocities in accepted samples, m/s and rad/s: of the velocity in the sample, and
        of the mean velocity since the last accepted sample.
    velocities : tuple of float
        The same for each axis separately, m/s or rad/s; empty: the norms alone.
    low, high : tuple of float
        The workspace, m or rad; empty: as declared by the driver.
    ramp : float
        Time to engage and to disengage, s.
    dead_man_button : int
        Number of the button to hold pressed, -1 for none.
    clutch_button : int
        Number of the button to disengage while pressed, -1 for none.
    outliers : int
        Most successive rejected samples, ignored like missing ones; one more is a fault.
    speed, acceleration, angular_speed, angular_acceleration : float
        Of the motion commanded to an admittance device, instead of force and slew: norms, m/s, m/s^2, rad/s, rad/s^2.
    hand_force, hand_torque : float
        Largest norms of the force and torque measured by such a device, N and N m; a sample beyond is rejected.
    hand_force_rate, hand_torque_rate : float
        Their rates of change since the last accepted sample, N/s and N m/s, likewise.
    velocity_lag : float, optional
        By which the velocity in a sample may lag behind the device, s; None: as declared by the driver.
    """

    force: float = 8.0
    slew: float = 2000.0
    velocity: float = 3.0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    ramp: float = 0.2
    dead_man_button: int = -1
    clutch_button: int = -1
    torque: float = 0.5
    torque_slew: float = 125.0
    angular_velocity: float = 30.0
    velocities: tuple[float, ...] = ()
    outliers: int = 2
    speed: float = 0.5
    acceleration: float = 10.0
    angular_speed: float = 5.0
    angular_acceleration: float = 100.0
    hand_force: float = 100.0
    hand_force_rate: float = 5000.0
    hand_torque: float = 10.0
    hand_torque_rate: float = 500.0
    velocity_lag: float | None = None

    def check(self, n_device: int) -> None:
        """Raise InputError for limits invalid or unfit for a device with ``n_device`` axes."""
        for name in (
            "force", "slew", "velocity", "torque", "torque_slew", "angular_velocity", "speed", "acceleration",
            "angular_speed", "angular_acceleration", "hand_force", "hand_force_rate", "hand_torque", "hand_torque_rate",
        ):  # fmt: skip
            if not getattr(self, name) > 0.0:
                raise InputError(f"limits.{name} of a live run", found=str(getattr(self, name)), allowed="above 0")
        for name, least, most in (
            ("outliers", 0, 1000),
            ("dead_man_button", -1, LAST_BUTTON),
            ("clutch_button", -1, LAST_BUTTON),
        ):
            if not least <= getattr(self, name) <= most:
                found = str(getattr(self, name))[:20]
                raise InputError(f"limits.{name} of a live run", found=found, allowed=f"{least} to {most}")
        if not self.ramp >= 0.0:
            raise InputError("limits.ramp of a live run", found=str(self.ramp), allowed="from 0 s")
        for name in ("low", "high", "velocities"):
            given = getattr(self, name)
            if given and len(given) != n_device:
                raise InputError(
                    f"limits.{name} of a live run", found=str(given), allowed=f"one number for each of {n_device} axes"
                )


# -- Device maps for devices with a zero of their own: selection of port axes, and offsets -------------------

_STEP: Final = 1e-6  # of a coordinate, for a difference


def port_of(graph: ModeGraph, name: str) -> CoupledPort:
    """Return a port of a coupled graph by name; the first one for an empty name.

    Raises InputError: there is no such port.
    """
    ports = coupled_ports(graph.automaton.mechanism)
    for port in ports:
        if not name or port.name == name:
            return port
    names = [port.name for port in ports]
    raise InputError(f"no port '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))


def device_map_for(
    graph: ModeGraph,
    name: str,
    n_device: int,
    axes: tuple[int, ...] = (),
    scale: float | tuple[float, ...] = 1.0,
    *,
    zeroed: bool = True,
) -> DeviceMap:
    """Return the device map with the zero of a device, if it has one, at the port's initial position.

    The offset of such a device is kept when it engages again after a reset or a change of parameters; the ramp of the
    engagement bounds the resulting force. ``graph``: of a coupled model. ``name``: of the port; empty: the first.
    ``n_device``: number of the device's axes. ``axes``: as in :class:`~fsm_dyn.live.device_map.DeviceMap`; empty: those
    of :func:`aligned_axes`. ``scale``: as in :class:`~fsm_dyn.live.device_map.DeviceMap`. ``zeroed``: whether the
    device has a zero; otherwise its position counts from its engagement.
    """
    port = port_of(graph, name)
    axes = axes or aligned_axes(graph, port.name, n_device)
    if not zeroed:
        return DeviceMap(port.name, axes, scale)
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    (report,) = compile_programs([graph.automaton.report])
    found = report.outputs(0.0, start.x, start.context)["outputs"]
    home = tuple(float(found[k]) for k in _outputs(graph, port))
    return DeviceMap(port.name, axes, scale, offset=home)


def aligned_axes(graph: ModeGraph, name: str, n_device: int) -> tuple[int, ...]:
    """Return the device axis for each axis of a port, -1 for none; empty if the device has axes enough.

    A port with more axes than the device uses those best aligned with a gap at the initial state, by the cosine between
    the gradients of port position and gap with respect to the coordinates. ``graph``: of a coupled model. ``name``: of
    the port; empty: the first. ``n_device``: number of the device's axes.
    """
    port = port_of(graph, name)
    if len(port.axes) <= n_device:
        return ()
    at, gaps = _gradients(graph, port)
    lengths = np.linalg.norm(at, axis=1)[:, None] * np.linalg.norm(gaps, axis=1)[None, :]
    facing = np.abs(at @ gaps.T) / np.where(lengths > 0.0, lengths, np.inf)
    scores = facing.max(axis=1, initial=0.0)
    # equal scores: the first axes
    chosen = sorted(sorted(range(len(port.axes)), key=lambda i: (-round(float(scores[i]), 6), i))[:n_device])
    return tuple(chosen.index(i) if i in chosen else -1 for i in range(len(port.axes)))


def _outputs(graph: ModeGraph, port: CoupledPort) -> list[int]:
    """Return the numbers of the outputs with positions of a port's axes."""
    names = list(graph.automaton.mechanism.outputs)
    return [names.index(axis.outputs[1]) for axis in port.axes]


def _gradients(graph: ModeGraph, port: CoupledPort) -> tuple[Floats, Floats]:
    """Return the gradients of the port's axes, shape (n_a, n_q), and of all gaps, shape (n_c, n_q)."""
    automaton = graph.automaton
    start = initial_state(automaton, graph.values, graph.parameters)
    # outputs, not coordinates: the coordinate of a body-fixed axis is in no gap
    outputs = _outputs(graph, port)
    rows = [contact.normal_row for contact in automaton.contacts if contact.normal_row >= 0]
    report, terms = compile_programs([automaton.report, automaton.terms])

    def places(x: Floats) -> Floats:
        at = report.outputs(0.0, x, start.context)["outputs"][outputs]
        return np.concatenate([at, terms.outputs(0.0, x, start.context)["residual"][rows]])

    columns = []
    for j in range(len(automaton.terms.layout.q)):
        h = _STEP * (1.0 + abs(start.x[j]))
        ahead, behind = start.x.copy(), start.x.copy()
        ahead[j] += h
        behind[j] -= h
        columns.append((places(ahead) - places(behind)) / (2.0 * h))
    found = np.array(columns).T
    return found[: len(outputs)], found[len(outputs) :]
