"""Device maps and limits: the motion of a port by a device, and bounds on forces and samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fsm_dyn.errors import InputError
from fsm_dyn.live.port_coupling import CoupledPort

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
        Device newtons per newton of the model, on top of the factor ``scale`` that conserves power.
    offset : tuple of float
        Position of the device's zero on each axis of the port, m or rad; empty: such that the device is at the port
        whenever it engages.
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


def device_maps_from(data: dict[str, Any] | Sequence[dict[str, Any]]) -> DeviceMaps:
    """Return device maps from ``dataclasses.asdict`` of settings that have them, also by JSON.

    Parameters
    ----------
    data : dict[str, Any] or Sequence[dict[str, Any]]
        Of one map, or of several.
    """
    return DeviceMap.from_data(data) if isinstance(data, dict) else tuple(map(DeviceMap.from_data, data))


LAST_BUTTON: Final = 62  # buttons are bits of an int64


@dataclass(frozen=True)
class Limits:
    """Limits of a device: force and torque, velocities, workspace, ramp, buttons and rejected samples.

    Linear and rotational axes have separate limits, each in its unit.

    Attributes
    ----------
    force, torque : float
        Norms of the force and of the torque commanded, N and N m.
    slew, torque_slew : float
        Their rates of change, N/s and N m/s.
    velocity, angular_velocity : float
        Norms of the device's velocities beyond which a sample is rejected, m/s and rad/s: of the velocity in the
        sample, and of the mean velocity since the last accepted sample.
    velocities : tuple of float
        The same for each axis by itself, m/s or rad/s; empty: the norms alone.
    low, high : tuple of float
        The workspace, m or rad; empty: what the driver declares.
    ramp : float
        Time to engage and to disengage, s.
    dead_man_button : int
        Number of the button that must be pressed, -1 for none.
    clutch_button : int
        Number of the button that disengages while it is pressed, -1 for none.
    outliers : int
        Samples in succession that may be rejected, as if none had arrived; one more is a fault.
    speed, acceleration, angular_speed, angular_acceleration : float
        Of the motion commanded to a device that follows (kind ``admittance``), in place of force and slew: norms, m/s,
        m/s^2, rad/s, rad/s^2.
    hand_force, hand_torque : float
        Norms of the force and of the torque that such a device may measure, N and N m; a sample beyond is rejected.
    hand_force_rate, hand_torque_rate : float
        Their rates of change since the last accepted sample, N/s and N m/s, likewise.
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

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Limits:
        """Return limits from ``dataclasses.asdict`` of some, also after conversion to JSON and back."""
        given: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
        return cls(**given)

    def check(self, n_device: int) -> None:
        """Raise InputError for limits that are invalid or do not fit a device with ``n_device`` axes."""
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
