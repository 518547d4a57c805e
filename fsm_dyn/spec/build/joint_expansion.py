"""What all kinds of joints have in common when they become frames, points, coordinates, speeds and rows.

A kind of joint (:mod:`fsm_dyn.spec.build.joint_kinds`) states how its child moves in a tree, which rows hold it between
frames that exist, and what its coordinates are in terms of frames and points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.build.joint_friction import check_friction
from fsm_dyn.spec.build.joint_play import backlash_contacts, play_of
from fsm_dyn.spec.constraint import Constraint, PositionConstraint, VelocityConstraint
from fsm_dyn.spec.forms.geometry import CoordinateRange
from fsm_dyn.spec.forms.joints import AxisForm, EndsForm, PlacedForm, RangedForm, RubbingForm
from fsm_dyn.spec.frame import BodyFrame, SimpleFrame
from fsm_dyn.spec.joint import Joint
from fsm_dyn.spec.model import Contact, Coordinate, Frame, Point
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

NEWTONIAN = "N"
EndsT = TypeVar("EndsT", bound=EndsForm)
PlacedT = TypeVar("PlacedT", bound=PlacedForm)
RangedT = TypeVar("RangedT", bound=RangedForm)
RubbingT = TypeVar("RubbingT", bound=RubbingForm)


@dataclass
class JointExpansion:
    """What joints have made so far, by section."""

    units: bool
    frames: dict[str, Frame]
    plane: bool = False
    joints: dict[str, Joint] = field(default_factory=dict)
    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)
    speeds: dict[str, Text] = field(default_factory=dict)
    rows: dict[str, Constraint] = field(default_factory=dict)
    contacts: dict[str, Contact] = field(default_factory=dict)
    relative: dict[str, tuple[str, str]] = field(default_factory=dict)  # value and rate, in absolute coordinates
    turns_add_up: bool = False  # angles in `relative` count whole turns


class JointExpander(ABC, Generic[EndsT]):
    """Expands one joint into `made`, from its entry `form` in the file.

    Attributes
    ----------
    joint : callable
        The class of the joint as data.
    constraint : type of Constraint
        The class of its rows: on positions or speeds.
    """

    joint: ClassVar[Callable[..., Joint]]
    constraint: ClassVar[type[PositionConstraint | VelocityConstraint]] = PositionConstraint

    def __init__(self, made: JointExpansion, name: str, form: EndsT) -> None:
        self.made, self.name, self.form = made, name, form
        self.where = where_of(name)

    # -- what a kind states ----------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, points: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Yield the rows that hold it between frames that exist: suffixes of names, and expressions.

        Parameters
        ----------
        points : tuple of str
            Its point of the parent and that of the child.
        """

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of its backlash and clearance.

        Parameters
        ----------
        points : tuple of str
            Those of :meth:`rows`.
        """
        return {}

    def add_friction(self, points: tuple[str, ...]) -> None:
        """Add the contact of its friction, loaded by its rows; nothing without friction.

        Parameters
        ----------
        points : tuple of str
            Those of :meth:`rows`.
        """

    def joint_class(self) -> Callable[..., Joint]:
        """Return the class of the joint as data, with the numbers of this one filled in."""
        return self.joint

    @property
    def points(self) -> tuple[str, ...]:
        """The points given in the file."""
        return ()

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """The frames that exist where it closes a loop, each with its key."""
        return ("parent", self.form.parent), ("child", self.form.child)

    # -- what is made of it ------------------------------------------------------------------------------------

    def close(self, points: tuple[str, ...]) -> None:
        """Add the rows between frames that exist, friction, and contacts of play.

        Parameters
        ----------
        points : tuple of str
            Its point of the parent and that of the child, not necessarily those of the file.

        Raises
        ------
        ModelError
            Nothing makes one of the frames.
        """
        made = self.made
        for key, frame in self.ends:
            if frame not in made.frames and frame != NEWTONIAN:
                raise self._missing(frame, key)
        self.add_friction(points)
        rows = {LocatedStr(f"{self.name}{suffix}", self.where): text for suffix, text in self.rows(points)}
        for row, text in rows.items():
            made.rows[row] = self.constraint(
                name=row, expression=Text(text, self.where), joint=self.name, where=self.where
            )
        self.record(points, rows=tuple(rows))
        made.contacts |= self.contacts_of_play(points)

    def record(self, at: tuple[str, ...], **made: Any) -> None:
        """Add the joint as data, with what was `made` of it."""
        form = self.form
        self.made.joints[self.name] = self.joint_class()(
            name=self.name, parent=form.parent, child=form.child, at=at, where=self.where, **made
        )

    def refuse(self, key: Literal["range", "backlash"], allowed: str) -> None:
        """Refuse the range or the backlash of a joint that has no coordinate to bound.

        Raises
        ------
        ModelError
        """

    def spin(self) -> str:
        """Return the angular velocity of the child in the parent, an expression."""
        parent = self.form.parent
        return f"omega({self.form.child})" + ("" if parent == NEWTONIAN else f" - omega({parent})")

    def _missing(self, frame: str, key: str) -> ModelError:
        known = [NEWTONIAN, *self.made.frames]
        return ModelError(
            f"joint {str(self.name)!r} closes a loop with {str(frame)!r}, which nothing makes",
            self.form.key(key),
            found=frame,
            allowed=", ".join(known),
            remedy=did_you_mean(frame, known)
            or f"write a frame {frame}, or a joint with `child: {frame}` and one point under `at`",
        )


class PlacedExpander(JointExpander[PlacedT]):
    """Expands a joint at a point, which makes its child in a tree, or at two points, which closes a loop."""

    def __init__(self, made: JointExpansion, name: str, form: PlacedT) -> None:
        super().__init__(made, name, form)
        self.coordinates: list[str] = []
        self.speeds: dict[str, Text] = {}
        self.bearing_rows: list[str] = []
        self.hidden: list[tuple[str, Text]] = []
        self.displacement: Text | None = None

    # -- what a kind states ----------------------------------------------------------------------------------

    @abstractmethod
    def motion(self) -> tuple[Frame, str]:
        """Return the child's frame, and the vector from the joint's point to the child's origin, empty for zero."""

    @property
    def stays_in_plane(self) -> bool:
        """Whether it turns about z and slides along x and y only."""
        return False

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return value and rate of its coordinates, as expressions of its frames and points.

        Parameters
        ----------
        at : str
            Its point of the parent.
        """
        return {}

    # -- what is made of it ------------------------------------------------------------------------------------

    @property
    def points(self) -> tuple[str, ...]:
        """One point in a tree, two that close a loop."""
        return self.form.at

    def make_child(self) -> None:
        """Add frame, point, coordinates and speeds.

        Raises
        ------
        ModelError
            The child exists.
        """
        form, made = self.form, self.made
        if form.child in made.frames or form.child == NEWTONIAN:
            raise ModelError(
                f"joint {str(self.name)!r} makes the frame {str(form.child)!r}, which already exists",
                where_of(form.child) if form.child != NEWTONIAN else form.key("child"),
                remedy="to close a loop give the points of both: `at: [P, Q]`; else name another frame",
            )
        frame, offset = self.motion()
        made.frames[form.child] = frame
        (at,) = form.at
        origin = LocatedStr(f"{form.child}_origin", where_of(form.child))
        made.points[origin] = Point(origin, at, Text(offset or "0*N.x", self.where), self.where)
        if getattr(form, "rates", True):
            made.speeds |= self.speeds
        names = (*self.coordinates, *frame.euler_names)
        self.record(
            (at,), origin=origin, coordinates=names, rows=tuple(self.bearing_rows), hidden=tuple(self.hidden),
            displacement=self.displacement,
        )  # fmt: skip
        made.contacts |= self.contacts_of_play((at, origin))

    def own_axis(self, axes: tuple[AxisForm, ...], key: str = "axis") -> AxisForm:
        """Return the one axis of a joint in a tree, which is the parent's.

        Raises
        ------
        ModelError
            There are two, or it is another frame's.
        """
        form = self.form
        if len(axes) != 1 or axes[0].frame != form.parent:
            raise ModelError(
                f"{form.what} in a tree has one axis, of its parent {str(form.parent)!r}",
                form.key(key),
                found=", ".join(map(str, axes)),
                allowed=", ".join(f"{form.parent}.{letter}" for letter in "xyz"),
                remedy="for another direction turn a frame into it: "
                f"`S: {{parent: {form.parent}, rotate: {{z: 30 deg}}}}`",
            )
        return axes[0]

    def coordinate(self, suffix: str, unit: str, stated: CoordinateRange | None = None) -> str:
        """Add a coordinate ``<joint><suffix>`` with its rate as a speed, and return its name."""
        name = LocatedStr(f"{self.name}{suffix}", self.where)
        self.made.coordinates[name] = Coordinate(name, unit if self.made.units else "", stated or (), self.where)
        self.coordinates.append(name)
        self.speeds[LocatedStr(f"{name}_dot", self.where)] = Text(f"rate({name})", self.where)
        return name

    def slide(self, axis: AxisForm, suffix: str, stated: CoordinateRange | None = None) -> str:
        """Add a coordinate along an axis, and return the vector of the slide."""
        return f"{'-' if axis.sign < 0 else ''}{self.coordinate(suffix, 'm', stated)}*{axis.frame}.{axis.letter}"

    def slides_across(self, axis: AxisForm) -> str:
        """Add two coordinates across an axis, and return the vector of the slides."""
        first, second = (AxisForm(self.form.parent, letter) for letter in axis.across)
        return f"{self.slide(first, '_x')} + {self.slide(second, '_y')}"

    def hide(self, displacement: str, **values: str) -> None:
        """Record the coordinates that friction or a clearance adds, and the vector by which they move the child.

        Parameters
        ----------
        displacement : str
            That vector.
        **values : str
            Each of them in terms of the others.
        """
        self.hidden = [(name, Text(value, self.where)) for name, value in values.items()]
        self.displacement = Text(displacement, self.where)

    def turned(self, *turns: tuple[AxisForm, str]) -> Frame:
        """Return the child's frame, turned about axes one after the other; without any, parallel to the parent."""
        rotations = tuple(
            (axis.letter, Text(f"-{angle}" if axis.sign < 0 else angle, self.where)) for axis, angle in turns
        )
        rotations = rotations or (("z", Text("0", self.where)),)
        made = SimpleFrame if len(rotations) == 1 else BodyFrame
        return made(name=self.form.child, parent=self.form.parent, rotations=rotations, where=self.where)

    def relative_turn(self, axis: AxisForm) -> tuple[str, str]:
        """Return value and rate of the angle of the child about an axis of the parent.

        In a plane all turns add up, whole ones included; in space the angle is one from -pi to pi.
        """
        child, parent, (a, b) = self.form.child, self.form.parent, axis.across
        sign = "-" if axis.sign < 0 else ""
        if self.made.turns_add_up:
            return (
                f"{sign}({self._turn_in_plane(child)} - ({self._turn_in_plane(parent)}))",
                f"{sign}{self.spin_of(axis)}",
            )
        value = f"{sign}atan2(dot({child}.{a}, {parent}.{b}), dot({child}.{a}, {parent}.{a}))"
        return value, f"{sign}{self.spin_of(axis)}"

    def spin_of(self, axis: AxisForm) -> str:
        """Return the angular speed of the child about an axis of the parent, an expression."""
        return f"dot({self.spin()}, {self.form.parent}.{axis.letter})"

    def _turn_in_plane(self, frame: str) -> str:
        """Return the angle of a frame about N.z, an expression; all frames turn about z."""
        known = self.made.frames.get(frame)
        if not isinstance(known, SimpleFrame):
            return "0"
        return f"{self._turn_in_plane(known.parent)} + ({known.rotations[0][1].text})"

    def relative_slide(self, axis: AxisForm, at: str) -> tuple[str, str]:
        """Return value and rate of the way of the child's origin along an axis from the point `at` of the parent."""
        origin, parent = f"{self.form.child}_origin", self.form.parent
        speed = f"vel({origin})" + ("" if parent == NEWTONIAN else f" - vel({at}, {parent})")
        return f"dot(pos({origin}, {at}), {axis})", f"dot({speed}, {axis})"

    def relative_slides(self, axis: AxisForm, at: str) -> dict[str, tuple[str, str]]:
        """Return value and rate of the two ways across an axis, by the names of their coordinates."""
        first, second = (AxisForm(self.form.parent, letter) for letter in axis.across)
        return {f"{self.name}_x": self.relative_slide(first, at), f"{self.name}_y": self.relative_slide(second, at)}

    def parallel(self) -> Iterator[tuple[str, str]]:
        """Yield rows: all axes of the child keep the directions of the parent's."""
        parent, child = self.form.parent, self.form.child
        for suffix, a, b in (("_turn_z", "x", "y"), ("_turn_x", "y", "z"), ("_turn_y", "z", "x")):
            yield suffix, f"dot({child}.{a}, {parent}.{b})"


class RangedExpander(PlacedExpander[RangedT]):
    """Expands a joint with one coordinate, for which the model may state a range and a backlash."""

    def joint_class(self) -> Callable[..., Joint]:
        """Return the class of the joint, with its backlash."""
        return partial(self.joint, backlash=play_of(self.form.backlash))

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of its backlash."""
        return {} if self.form.backlash is None else backlash_contacts(self.name, self.form.backlash, self.name)

    def refuse(self, key: Literal["range", "backlash"], allowed: str) -> None:
        """Refuse its range or its backlash, where it has no coordinate to bound.

        Raises
        ------
        ModelError
        """
        if getattr(self.form, key) is not None:
            raise ModelError(
                f"joint {str(self.name)!r} has a {key} but no coordinate that it bounds", self.form.key(key),
                allowed=allowed, remedy="state ranges under `coordinates`, or write a joint stop",
            )  # fmt: skip


class RubbingExpander(RangedExpander[RubbingT]):
    """Expands a joint that may have friction of its reaction; refuses keys of friction that contradict each other."""

    def __init__(self, made: JointExpansion, name: str, form: RubbingT) -> None:
        check_friction(name, form)
        super().__init__(made, name, form)


def together(points: tuple[str, ...], *directions: str) -> Iterator[tuple[str, str]]:
    """Yield rows: the child's point stays at the parent's, along each direction; without any, along all axes of N.

    Parameters
    ----------
    points : tuple of str
        The joint's point of the parent and that of the child.
    """
    first, second = points
    for direction in directions or ("N.x", "N.y", "N.z"):
        suffix = "across" if direction.startswith("cross") else direction[-1]
        yield f"_{suffix}", f"dot(pos({second}, {first}), {direction})"


def aligned(first: AxisForm, second: AxisForm) -> Iterator[tuple[str, str]]:
    """Yield rows: the second axis keeps the direction of the first."""
    for suffix, direction in zip(("_turn1", "_turn2"), across(first), strict=True):
        yield suffix, f"dot({second}, {direction})"


def across(axis: AxisForm) -> tuple[str, ...]:
    """Return the other two axes of a frame, as expressions."""
    return tuple(f"{axis.frame}.{letter}" for letter in axis.across)
