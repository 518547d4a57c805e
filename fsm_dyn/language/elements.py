"""Frames, joints, loads, constraints, inputs and ports as data, one class each."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar, Final, Literal, TypeAlias, TypeVar

from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import KeyedMapping

# -- Frames, one class each: rotations relative to their parents ---------------------------------------------

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame(ABC):
    """A frame with a rotation relative to its parent."""

    kind: ClassVar[str]  # the key of the language, ``simple`` for one rotation

    name: str
    parent: str
    where: Location = NOWHERE

    @property
    def angles(self) -> tuple[Text, ...]:
        """The expressions of its angles (rad)."""
        return ()

    @property
    def euler_names(self) -> tuple[str, ...]:
        """Its four declared coordinates, scalar first; none without Euler parameters."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedFrame(Frame):
    """A sequence of rotations: pairs of the letter of an axis and an angle (rad), in the order written."""

    rotations: tuple[tuple[str, Text], ...]

    @property
    def angles(self) -> tuple[Text, ...]:
        """The angles of its rotations."""
        return tuple(angle for _, angle in self.rotations)

    def about_body_axes(self, turns: Sequence[T]) -> Sequence[T]:
        """Return one entry for each rotation, in the order of the equivalent turns about body-fixed axes."""
        return turns


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleFrame(RotatedFrame):
    """One rotation."""

    kind: ClassVar[str] = "simple"

    @property
    def axis(self) -> str:
        """The letter of its axis."""
        return self.rotations[0][0]

    @property
    def angle(self) -> Text:
        """Its angle (rad)."""
        return self.rotations[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFrame(RotatedFrame):
    """A sequence of rotations about body-fixed axes."""

    kind: ClassVar[str] = "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFrame(RotatedFrame):
    """A sequence of rotations about the axes of the parent."""

    kind: ClassVar[str] = "space"

    def about_body_axes(self, turns: Sequence[T]) -> Sequence[T]:
        """Return the entries in the opposite order."""
        return turns[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerFrame(Frame):
    """A frame with Euler parameters: coordinates named by the stem ``euler`` and a number, ``e0 e1 e2 e3``."""

    kind: ClassVar[str] = "euler_parameters"

    euler: str

    @property
    def euler_names(self) -> tuple[str, ...]:
        """Stem and number, from 0 to 3."""
        return tuple(f"{self.euler}{i}" for i in range(4))


# -- Joints, one class each: the statements of the file, and the expanded parts ------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint(ABC):
    """A joint between two frames, and the names of its expanded parts.

    ``at`` holds the joint's point of the parent (in a tree), the joined points of parent and child (closing a loop),
    the place of contact (:class:`RollingJoint`), or nothing (:class:`GearJoint`). A joint of the tree has created the
    frame ``child``, its point ``origin`` and ``coordinates``; a loop-closing joint ``rows``, the names of constraints.
    In absolute coordinates, or with friction of its reaction, a joint of the tree has created all of them.
    """

    kind: ClassVar[str]  # the key of the language
    hinged: ClassVar[bool] = False  # whether the child's origin is fixed to the parent's point

    name: str
    parent: str
    child: str
    at: tuple[str, ...] = ()
    origin: str = ""
    coordinates: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    # its coordinates added by friction or a clearance, each with its value in terms of the others
    hidden: tuple[tuple[str, Text], ...] = ()
    displacement: Text | None = None  # their displacement of the child, a vector
    mappings: tuple[KeyedMapping, ...] = field(default=(), compare=False, repr=False)  # what is written: all its keys
    where: Location = NOWHERE

    @property
    def is_freed(self) -> bool:
        """Whether its child has absolute coordinates."""
        return f"{self.child}_x" in self.coordinates and bool(self.origin) and self.name != self.child

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """Its play and the radius of its thread, if present, each with a word for messages."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedJoint(Joint):
    """A joint whose one motion may have a ``backlash``: the whole play, an angle or a length.

    The contacts of a play are among those of the mechanism.
    """

    backlash: Text | None = None

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """The backlash, if there is one."""
        return () if self.backlash is None else (("backlash", self.backlash),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevoluteJoint(RangedJoint):
    """A hinge about an axis."""

    kind: ClassVar[str] = "revolute"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseRevoluteJoint(RangedJoint):
    """A hinge with a ``clearance``, the whole play in the hole (m): it is planar."""

    kind: ClassVar[str] = "planar"

    clearance: Text

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """Backlash and clearance."""
        return (*RangedJoint.positive_numbers.__get__(self), ("clearance", self.clearance))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrismaticJoint(RangedJoint):
    """A guide along an axis."""

    kind: ClassVar[str] = "prismatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class HelicalJoint(RangedJoint):
    """A screw; ``thread``: lead (m), radius (m) and static friction of one with friction."""

    kind: ClassVar[str] = "helical"

    thread: tuple[Text, Text, Text] | None = None

    @property
    def positive_numbers(self) -> tuple[tuple[str, Text], ...]:
        """The backlash and the radius of the thread."""
        radius = () if self.thread is None else (("radius of the thread", self.thread[1]),)
        return (*RangedJoint.positive_numbers.__get__(self), *radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class CylindricalJoint(Joint):
    """A guide along an axis and a hinge about it."""

    kind: ClassVar[str] = "cylindrical"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniversalJoint(Joint):
    """Two hinges at right angles."""

    kind: ClassVar[str] = "universal"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BallJoint(Joint):
    """A ball in its socket."""

    kind: ClassVar[str] = "ball"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeJoint(Joint):
    """No connection: coordinates of a body that moves freely."""

    kind: ClassVar[str] = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarJoint(Joint):
    """A body sliding and turning on a plane."""

    kind: ClassVar[str] = "planar"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeldJoint(Joint):
    """No motion at all."""

    kind: ClassVar[str] = "weld"
    hinged: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSliderJoint(Joint):
    """A pin of the child in a slot of the parent."""

    kind: ClassVar[str] = "pin_slider"


@dataclass(frozen=True, slots=True, kw_only=True)
class GearJoint(RangedJoint):
    """Two bodies with a constant ratio of turns relative to a carrier."""

    kind: ClassVar[str] = "gear"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingJoint(Joint):
    """No slip at a point."""

    kind: ClassVar[str] = "rolling"


# -- Loads, one class each: places of action, vectors and numbers --------------------------------------------

PointPair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(ABC):
    """A force or torque on a mechanism besides its contacts and constraints.

    The impulses of a transition are loads of the classes :class:`ForceLoad`, :class:`TorqueLoad` and
    :class:`LawLoad` whose ``value`` is the time integral.
    """

    kind: ClassVar[str]  # the key of the language

    name: str
    # what is written, the entry and the mapping in it: all its keys
    mappings: tuple[KeyedMapping, ...] = field(default=(), compare=False, repr=False)
    where: Location = NOWHERE

    @property
    def points(self) -> tuple[str, ...]:
        """Its points of action."""
        return ()

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Words for its place of action, parts of its default name."""
        return self.points

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Its stiffness, damping and free length, if present, each with a word for messages."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceLoad(Load):
    """A force, the vector ``value`` (N), at the point ``at``."""

    kind: ClassVar[str] = "force"

    value: Text
    at: str

    @property
    def points(self) -> tuple[str, ...]:
        """Its point of application."""
        return (self.at,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueLoad(Load):
    """A torque, the vector ``value`` (N m), on the body ``on``; the opposite acts on the body ``reaction``."""

    kind: ClassVar[str] = "torque"

    value: Text
    on: str
    reaction: str | None = None

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Its bodies."""
        return (self.on,) if self.reaction is None else (self.on, self.reaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityGradientLoad(TorqueLoad):
    """The torque of the gravity of a distant mass at the point ``of``, whose ``strength`` is G times it (m³/s²).

    ``value`` is ``3 strength/R⁵ r x (I r)``, with ``r`` from the mass to the body's centre (Hughes 1986, 8.1).
    """

    kind: ClassVar[str] = "gravity_gradient"

    strength: Text
    of: str

    @property
    def points(self) -> tuple[str, ...]:
        """The point of the distant mass."""
        return (self.of,)


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityLoad(Load):
    """The acceleration ``value`` (vector, m/s²) of every body; or of the body ``on`` alone, then possibly variable."""

    kind: ClassVar[str] = "gravity"

    value: Text
    on: str | None = None

    @property
    def acts_on(self) -> tuple[str, ...]:
        """The one body, if it is one."""
        return () if self.on is None else (self.on,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLoad(Load):
    """A force along the line between two points, or a generalized force on a coordinate.

    ``along`` holds the points, or the expression of coordinates; a positive force makes the distance or coordinate
    larger.
    """

    along: PointPair | Text

    @property
    def between(self) -> PointPair | None:
        """The two points; None on a coordinate."""
        return None if isinstance(self.along, Text) else self.along

    @property
    def coordinate(self) -> Text | None:
        """The expression of coordinates; None between points."""
        return self.along if isinstance(self.along, Text) else None

    @property
    def points(self) -> tuple[str, ...]:
        """Its two end points."""
        return self.between or ()

    @property
    def acts_on(self) -> tuple[str, ...]:
        """Its points, or the names in its coordinate."""
        if isinstance(self.along, Text):
            return ("_".join(re.findall("[A-Za-z0-9]+", self.along.text))[:20],)
        return self.along


@dataclass(frozen=True, slots=True, kw_only=True)
class SpringLoad(LineLoad):
    """A linear spring of ``stiffness`` and length ``free`` without force, with a damper parallel to it."""

    kind: ClassVar[str] = "spring"

    stiffness: Text
    free: Text | None = None
    damping: Text | None = None

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Its given numbers, up to three."""
        words = (("stiffness", self.stiffness), ("free length", self.free), ("damping", self.damping))
        return tuple((word, text) for word, text in words if text is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorsionSpringLoad(SpringLoad):
    """A spring on an angle."""

    kind: ClassVar[str] = "torsion_spring"


@dataclass(frozen=True, slots=True, kw_only=True)
class DamperLoad(LineLoad):
    """A linear damper."""

    kind: ClassVar[str] = "damper"

    damping: Text

    @property
    def coefficients(self) -> tuple[tuple[str, Text], ...]:
        """Its damping."""
        return (("damping", self.damping),)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawLoad(LineLoad):
    """A force given by the scalar ``value`` (N, or the generalized force of the coordinate)."""

    kind: ClassVar[str] = "law"

    value: Text


# -- Constraints, one class each -----------------------------------------------------------------------------
#
# Rows on positions, speeds or accelerations, always active.


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(ABC):
    """An always active row: ``expression`` is zero.

    ``joint``: the joint of this row, left out if no motion could violate it.
    """

    kind: ClassVar[Literal["velocity", "position"]]  # level of the row

    name: str
    expression: Text
    joint: str = ""
    where: Location = NOWHERE

    @property
    def kinematic(self) -> bool:
        """Whether it completes the definition of the speeds."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionConstraint(Constraint):
    """A row on coordinates."""

    kind: ClassVar[Literal["velocity", "position"]] = "position"


@dataclass(frozen=True, slots=True, kw_only=True)
class VelocityConstraint(Constraint):
    """A row on speeds; a ``kinematic`` one completes their definition."""

    kind: ClassVar[Literal["velocity", "position"]] = "velocity"

    kinematic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccelerationConstraint(VelocityConstraint):
    """The rate of the speed ``expression`` is ``acceleration``; the build of the model replaces it by other rows."""

    acceleration: Text


# -- Inputs and their schedules ------------------------------------------------------------------------------

BOOLEAN: Final = "boolean"  # in place of the unit of an input


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(ABC):
    """Values of an input over time, the default of a run."""

    kind: ClassVar[str]  # the key of the language

    where: Location = NOWHERE

    @property
    def times(self) -> tuple[Text, ...]:
        """The times of its table (s); none without a table."""
        return ()

    @property
    def values(self) -> tuple[Text, ...]:
        """The expressions of its values, in the input's unit."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchedule(Schedule):
    """A table; ``points`` are times (s) and values."""

    points: tuple[tuple[Text, Text], ...]

    @property
    def times(self) -> tuple[Text, ...]:
        """The times of its table (s)."""
        return tuple(time for time, _ in self.points)

    @property
    def values(self) -> tuple[Text, ...]:
        """The values of its table."""
        return tuple(value for _, value in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSchedule(TableSchedule):
    """Values with linear interpolation of the input."""

    kind: ClassVar[str] = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSchedule(TableSchedule):
    """Values of a piecewise constant input, each until the next time."""

    kind: ClassVar[str] = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionSchedule(Schedule):
    """An expression ``value`` of ``t`` and parameters."""

    kind: ClassVar[str] = "expression"

    value: Text

    @property
    def values(self) -> tuple[Text, ...]:
        """Its expression."""
        return (self.value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantSchedule(ExpressionSchedule):
    """One value at all times."""

    kind: ClassVar[str] = "constant"


@dataclass(frozen=True, slots=True)
class Input:
    """A quantity given from outside, with its unit text and its schedule (default: constant 0, false)."""

    name: str
    unit: str = ""
    schedule: Schedule | None = None
    where: Location = NOWHERE

    @property
    def is_boolean(self) -> bool:
        """Whether it is true or false, 1 or 0 as an argument of kernels, and changes in steps alone."""
        return self.unit == BOOLEAN


# -- Ports coupled to a device: their axes, and the names of the parts of each coupler -----------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAxis:
    """One axis of a coupled port: a direction of coupling between a device and the model."""

    # port, name: of the port, and of the axis: ``<port>_1``, ``_2``, ``_3`` or ``<port>_rotation``
    port: str
    name: str
    is_rotational: bool  # whether it is an axis of rotation: force then means torque (N m)
    prescribed_coordinate: str = ""  # the coordinate prescribed by the device, empty for an axis with a coupler
    bandwidth: Text | None = None  # of the filter between the device and a prescribed coordinate, Hz
    # whether the force of the hand is an input of the model, with the device following its motion
    is_applied_force: bool = False
    # device, rate, engagement, applied_force: the inputs: the device's position (m or rad) and velocity, the scale of
    # the coupler from 0 (disengaged) to 1 (engaged), the force of the hand (N or N m)
    device: str
    rate: str
    engagement: str
    applied_force: str
    # stiffness, damping, initial: the parameters: of the coupler, and the initial value of a prescribed coordinate,
    # subtracted from it
    stiffness: str
    damping: str
    initial: str
    # force, position, velocity: the outputs: force of the coupler on the model, position and rate of the port
    force: str
    position: str
    velocity: str
    constraint: str  # the constraint that prescribes the coordinate; its multiplier is the force on the model
    # displacement, displacement_row: the coordinate of the displacement along a body-fixed axis, and the constraint for
    # its rate
    displacement: str
    displacement_row: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of the coupling for this axis."""
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
        """All inputs of the coupling for this port."""
        return tuple(name for axis in self.axes for name in axis.inputs)
