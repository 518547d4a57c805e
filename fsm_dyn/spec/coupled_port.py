"""Ports coupled to a device: their axes, and the names of what couples each of them."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.expressions.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAxis:
    """One axis of a coupled port: a direction in which a device is coupled to the model.

    Attributes
    ----------
    port, name : str
        Of the port, and of the axis: ``<port>_1``, ``_2``, ``_3`` or ``<port>_rotation``.
    is_rotational : bool
        Whether it is an axis of rotation: force then means torque (N m).
    prescribed_coordinate : str
        The coordinate that the device prescribes, empty for an axis with a coupler.
    bandwidth : Text, optional
        Of the filter between the device and a prescribed coordinate, Hz.
    is_applied_force : bool
        Whether the force of the hand is an input of the model, whose motion the device follows.
    device, rate, engagement, applied_force : str
        The inputs: the device's position (m or rad) and velocity, the scale of the coupler from 0 (disengaged) to 1
        (engaged), the force of the hand (N or N m).
    stiffness, damping, initial : str
        The parameters: of the coupler, and the initial value of a prescribed coordinate, subtracted from it.
    force, position, velocity : str
        The outputs: force of the coupler on the model, position and rate of the port.
    constraint : str
        The constraint by which the device prescribes the coordinate; its multiplier is the force on the model.
    displacement, displacement_row : str
        The coordinate that is the displacement along a body-fixed axis, and the constraint that defines its rate.
    """

    port: str
    name: str
    is_rotational: bool
    prescribed_coordinate: str = ""
    bandwidth: Text | None = None
    is_applied_force: bool = False
    device: str
    rate: str
    engagement: str
    applied_force: str
    stiffness: str
    damping: str
    initial: str
    force: str
    position: str
    velocity: str
    constraint: str
    displacement: str
    displacement_row: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that the coupling adds for this axis."""
        if self.is_applied_force:
            return (self.applied_force,)
        return (self.device,) if self.prescribed_coordinate else (self.device, self.rate, self.engagement)

    @property
    def outputs(self) -> tuple[str, str, str]:
        """The outputs: force of the coupler on the model, position and rate of the port."""
        return self.force, self.position, self.velocity


@dataclass(frozen=True, slots=True)
class CoupledPort:
    """Port with its coupled axes."""

    name: str
    axes: tuple[PortAxis, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs that the coupling adds for this port."""
        return tuple(name for axis in self.axes for name in axis.inputs)
