"""The kinds of joints, one class each: motion of the child in a tree, and rows on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import elements as data
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.elements import EulerFrame, Frame, PositionConstraint, SimpleFrame, VelocityConstraint
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.joint_expansion import (
    NEWTONIAN,
    JointExpander,
    JointExpansion,
    PlacedExpander,
    RubbingExpander,
    across,
    aligned,
    backlash_contacts,
    bearing,
    clearance_contacts,
    gear_travel,
    pitch,
    play_of,
    refused_friction,
    thread,
    thread_of,
    together,
)
from fsm_dyn.language.joint_forms import (
    AxisForm,
    BallForm,
    CylindricalForm,
    GearForm,
    HelicalForm,
    JointForm,
    PinSliderForm,
    PlanarForm,
    PrismaticForm,
    RevoluteForm,
    RollingForm,
    UniversalForm,
    WeldForm,
    both_axes,
)
from fsm_dyn.language.keyed import exactly_one, with_mappings
from fsm_dyn.language.rewriting import free, own_point, resolved, substituted
from fsm_dyn.language.yaml import LocatedStr

# -- The kinds of joints -------------------------------------------------------------------------------------
#
# One class each: the motion of the child in a tree, and its rows in a loop.

Rows = Iterator[tuple[str, str]]


def _bearing_offset(expander: RubbingExpander[Any], axis: AxisForm) -> str:
    """Add coordinates across the axis, kept at zero by rows whose forces load the friction of the joint."""
    form, name, where = expander.form, expander.name, expander.where
    if form.friction is None:
        return ""
    slides = [expander.slide(AxisForm(form.parent, letter), f"_{letter}") for letter in axis.across]
    for letter in axis.across:
        row = LocatedStr(f"{name}_bearing_{letter}", where)
        text = Text(f"{name}_{letter}", where)
        expander.made.rows[row] = PositionConstraint(name=row, expression=text, joint=name, where=where)
        expander.bearing_rows.append(row)
    contact = bearing(name, form, f"rate({name})", tuple(expander.bearing_rows))
    expander.made.contacts[contact.name] = contact
    offset = " + ".join(slides)
    expander.hide(offset, **{f"{name}_{letter}": "0" for letter in axis.across})
    return offset


class RevoluteExpander(RubbingExpander[RevoluteForm]):
    """A hinge; with a clearance it slides across its axis."""

    joint = data.RevoluteJoint

    def joint_class(self) -> Callable[..., data.Joint]:
        """Return the class of the joint, with its play."""
        if self.form.clearance is None:
            return super().joint_class()
        backlash, clearance = play_of(self.form.backlash), self.form.clearance.value
        return partial(data.LooseRevoluteJoint, backlash=backlash, clearance=clearance)

    @property
    def stays_in_plane(self) -> bool:
        """Whether its axis is z."""
        return self.form.axis[0].letter == "z"

    def motion(self) -> tuple[Frame, str]:
        """Turn the child about the axis."""
        axis = self.own_axis(self.form.axis)
        turned = self.turned((axis, self.coordinate("", "rad", self.form.range)))
        if self.form.clearance is None:
            return turned, _bearing_offset(self, axis)
        offset = self.slides_across(axis)
        self.hide(offset, **{f"{self.name}_x": "0", f"{self.name}_y": "0"})
        return turned, offset

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points together, with a clearance along the axis only, and the axes aligned."""
        first, second = both_axes(self.form, self.form.axis)
        yield from together(points, *[f"{first.frame}.{first.letter}"] if self.form.clearance is not None else [])
        yield from aligned(first, second)

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the angle, and with a clearance the ways across the axis."""
        axis = self.form.axis[0]
        slides = {} if self.form.clearance is None else self.relative_slides(axis, at)
        return {self.name: self.relative_turn(axis), **slides}

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of backlash and clearance."""
        found = super().contacts_of_play(points)
        if self.form.clearance is not None:
            found |= clearance_contacts(self.name, self.form, self.form.clearance, points)
        return found

    def add_friction(self, points: tuple[str, ...]) -> None:
        """Add the friction of a bearing, loaded by the rows along x and y.

        Raises ModelError: it is a hinge in space, whose rows are not along and across its axis.
        """
        if self.form.friction is None:
            return
        if not self.made.plane:
            raise refused_friction(self.name, self.form)
        rate = self.relative(points[0])[self.name][1]
        contact = bearing(self.name, self.form, rate, (f"{self.name}_x", f"{self.name}_y"))
        self.made.contacts[contact.name] = contact


class PrismaticExpander(RubbingExpander[PrismaticForm]):
    """A guide."""

    joint = data.PrismaticJoint

    @property
    def stays_in_plane(self) -> bool:
        """Whether its axis is x or y."""
        return self.form.axis.letter != "z"

    def motion(self) -> tuple[Frame, str]:
        """Slide the child along the axis."""
        axis = self.own_axis((self.form.axis,))
        slide, offset = self.slide(axis, "", self.form.range), _bearing_offset(self, axis)
        return self.turned(), f"{slide} + {offset}" if offset else slide

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points on a line along the axis, and all axes parallel."""
        yield from together(points, *across(self.form.axis))
        yield from self.parallel()

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the way along the axis."""
        return {self.name: self.relative_slide(self.form.axis, at)}

    def add_friction(self, points: tuple[str, ...]) -> None:
        """Add the friction of a guide, loaded by the rows across its axis."""
        if self.form.friction is None:
            return
        axis, parent = self.form.axis, self.form.parent
        less = "" if parent == NEWTONIAN else f" - vel({points[0]}, {parent})"
        rows = tuple(f"{self.name}_{letter}" for letter in axis.across)
        contact = bearing(self.name, self.form, f"dot(vel({points[1]}){less}, {axis})", rows)
        self.made.contacts[contact.name] = contact


class HelicalExpander(RubbingExpander[HelicalForm]):
    """A screw: a turn and the coupled slide."""

    joint = data.HelicalJoint

    def joint_class(self) -> Callable[..., data.Joint]:
        """Return the class of the joint, with backlash and thread."""
        return partial(super().joint_class(), thread=thread_of(self.form))

    def motion(self) -> tuple[Frame, str]:
        """Turn and slide the child; with friction the slide is a coordinate, tied to the turn by the thread."""
        form, axis = self.form, self.own_axis((self.form.axis,))
        turn = self.coordinate("", "rad")
        frame = self.turned((axis, turn))
        if form.friction is None:
            return frame, f"{'-' if axis.sign < 0 else ''}{pitch(form)}*{turn}*{axis.frame}.{axis.letter}"
        offset = self.slide(axis, "_slide")
        slide, advance = self.coordinates[-1], f"{pitch(form)}*{turn}"
        self.hide(
            f"({offset}) - {'-' if axis.sign < 0 else ''}({advance})*{axis.frame}.{axis.letter}", **{slide: advance}
        )
        contact = thread(self.name, form, turn, self.coordinates[-1])
        self.made.contacts[contact.name] = contact
        return frame, offset

    def close(self, points: tuple[str, ...]) -> None:
        """Add the rows of a child in absolute coordinates; without friction the thread is a row on speeds.

        Raises ModelError: it closes a loop of the file.
        """
        if len(self.form.at) > 1:
            raise ModelError(
                f"the helical joint {str(self.name)!r} closes a loop", self.form.key("at"),
                remedy="a helical joint makes its child: give one point, `at: P`; "
                "else write a cylindrical joint and a constraint",
            )  # fmt: skip
        super().close(points)
        if self.form.friction is None:
            axis, made = self.form.axis, self.made
            row = LocatedStr(f"{self.name}_thread", self.where)
            slide, turn = self.relative_slide(axis, points[0])[1], self.relative_turn(axis)[1]
            text = Text(f"{slide} - {pitch(self.form)}*{turn}", self.where)
            made.rows[row] = VelocityConstraint(name=row, expression=text, joint=self.name, where=self.where)
            joint = made.joints[self.name]
            made.joints[self.name] = replace(joint, rows=(*joint.rows, row))

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points on a line along the axis, and the axes aligned."""
        yield from together(points, *across(self.form.axis))
        yield from aligned(self.form.axis, AxisForm(self.form.child, self.form.axis.letter))

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the angle, and with friction the way along the axis."""
        slide = {} if self.form.friction is None else {f"{self.name}_slide": self.relative_slide(self.form.axis, at)}
        return {self.name: self.relative_turn(self.form.axis), **slide}

    def add_friction(self, points: tuple[str, ...]) -> None:
        """Refuse friction of the thread. Raises ModelError: the gap of its flanks counts whole turns."""
        if self.form.friction is not None:
            raise refused_friction(self.name, self.form)


class CylindricalExpander(PlacedExpander[CylindricalForm]):
    """A guide along an axis and a hinge about it."""

    joint = data.CylindricalJoint

    def motion(self) -> tuple[Frame, str]:
        """Slide along the axis, and turn about it."""
        axis = self.own_axis(self.form.axis)
        slide = self.slide(axis, "_slide")
        return self.turned((axis, self.coordinate("_turn", "rad"))), slide

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points on a line along the axis, and the axes aligned."""
        first, second = both_axes(self.form, self.form.axis)
        yield from together(points, *across(first))
        yield from aligned(first, second)

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the way along the axis and the angle."""
        axis = self.form.axis[0]
        return {f"{self.name}_slide": self.relative_slide(axis, at), f"{self.name}_turn": self.relative_turn(axis)}


class UniversalExpander(PlacedExpander[UniversalForm]):
    """Two hinges at right angles."""

    joint = data.UniversalJoint

    def motion(self) -> tuple[Frame, str]:
        """Turn about an axis of the parent, then about one of the child.

        Raises ModelError: the axes are not one of each, of different letters.
        """
        form = self.form
        first, second = both_axes(form, form.axis)
        if first.frame != form.parent or second.frame != form.child or first.letter == second.letter:
            raise ModelError(
                f"the axes of the universal joint {str(self.name)!r} do not fit",
                form.key("axis"),
                found=f"[{first}, {second}]",
                allowed=f"the first of {form.parent}, the second of {form.child}, with different letters",
            )
        return self.turned((first, self.coordinate("_1", "rad")), (second, self.coordinate("_2", "rad"))), ""

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points together and the axes at right angles."""
        first, second = both_axes(self.form, self.form.axis)
        yield from together(points)
        yield "_turn", f"dot({first}, {second})"

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the two angles: each axis is seen from the other frame."""
        first, second = both_axes(self.form, self.form.axis)
        (third,) = {"x", "y", "z"} - {first.letter, second.letter}
        order = "" if first.across == (second.letter, third) else "-"
        found = {}
        for suffix, axis, seen, frame in (("_1", first, second, first.frame), ("_2", second, first, second.frame)):
            towards = f"{seen.frame}.{seen.letter}"
            value = f"atan2({order}dot({towards}, {frame}.{third}), dot({towards}, {frame}.{seen.letter}))"
            found[self.name + suffix] = f"-{value}" if axis.sign < 0 else value, f"dot({self.spin()}, {axis})"
        return found


class BallExpander(PlacedExpander[BallForm]):
    """A ball in its socket, turned by Euler parameters or by three angles."""

    joint: ClassVar[type[data.Joint]] = data.BallJoint

    def motion(self) -> tuple[Frame, str]:
        """Turn the child about its point. Raises ModelError: there are angles, but not three."""
        form = self.form
        if form.angles is not None:
            if len(form.angles) != 3:
                raise ModelError("a ball joint turns about three axes", form.key("angles"), found=form.angles)
            names = [self.coordinate(f"_{k + 1}", "rad") for k in range(3)]
            turns = ((AxisForm(form.parent, c), n) for c, n in zip(form.angles, names, strict=True))
            return self.turned(*turns), ""
        for letter in "xyz":
            speed = LocatedStr(f"{self.name}_w{letter}", self.where)
            self.speeds[speed] = Text(f"dot({self.spin()}, {form.child}.{letter})", self.where)
        euler = LocatedStr(f"{self.name}_e", self.where)
        return EulerFrame(name=form.child, parent=form.parent, euler=euler, where=self.where), ""

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points together."""
        yield from together(points)


class FreeExpander(BallExpander):
    """A body that moves freely: it slides along the parent's axes, and turns as on a ball joint."""

    joint = data.FreeJoint

    def motion(self) -> tuple[Frame, str]:
        """Slide along all axes, and turn about the origin."""
        slides = [self.slide(axis, f"_{axis.letter}") for axis in self._axes()]
        return super().motion()[0], " + ".join(slides)

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Prevent nothing, and refuse to close a loop. Raises ModelError: the joint is between two existing frames."""
        if len(self.points) == 2:
            raise ModelError(
                f"{self.form.what} prevents no motion, so it closes no loop", self.form.key("at"),
                found=", ".join(self.points), allowed="at: P, and a new frame under `child`",
            )  # fmt: skip
        yield from ()

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the ways along the axes."""
        return {f"{self.name}_{axis.letter}": self.relative_slide(axis, at) for axis in self._axes()}

    def _axes(self) -> list[AxisForm]:
        return [AxisForm(self.form.parent, letter) for letter in "xyz"]


class PlanarExpander(PlacedExpander[PlanarForm]):
    """A body sliding and turning on a plane."""

    joint = data.PlanarJoint

    @property
    def stays_in_plane(self) -> bool:
        """Whether its axis is z."""
        return self.form.axis[0].letter == "z"

    def motion(self) -> tuple[Frame, str]:
        """Slide across the axis, and turn about it."""
        axis = self.own_axis(self.form.axis)
        slides = self.slides_across(axis)
        return self.turned((axis, self.coordinate("_turn", "rad"))), slides

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points in one plane, and the axes aligned."""
        first, second = both_axes(self.form, self.form.axis)
        yield from together(points, f"{first.frame}.{first.letter}")
        yield from aligned(first, second)

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the ways across the axis and the angle."""
        axis = self.form.axis[0]
        return {**self.relative_slides(axis, at), f"{self.name}_turn": self.relative_turn(axis)}


class WeldExpander(PlacedExpander[WeldForm]):
    """No motion at all."""

    joint = data.WeldJoint

    @property
    def stays_in_plane(self) -> bool:
        """Always."""
        return True

    def motion(self) -> tuple[Frame, str]:
        """Keep the child parallel to the parent."""
        return self.turned(), ""

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep both points together and all axes parallel."""
        yield from together(points)
        yield from self.parallel()


class PinSliderExpander(PlacedExpander[PinSliderForm]):
    """A pin of the child in a slot of the parent."""

    joint = data.PinSliderJoint

    @property
    def stays_in_plane(self) -> bool:
        """Whether the slot is across z and the pin along it."""
        return self.form.axis.letter != "z" and self.form.pin[0].letter == "z"

    def motion(self) -> tuple[Frame, str]:
        """Slide along the slot, and turn about the pin."""
        slide = self.slide(self.own_axis((self.form.axis,)), "_slide")
        return self.turned((self.own_axis(self.form.pin, "pin"), self.coordinate("_turn", "rad"))), slide

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep the pin in the slot and in its plane, and the pins aligned."""
        pin, other = both_axes(self.form, self.form.pin)
        slot, axis = f"{self.form.axis.frame}.{self.form.axis.letter}", f"{pin.frame}.{pin.letter}"
        yield from together(points, f"cross({axis}, {slot})", axis)
        yield from aligned(pin, other)

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return the way along the slot and the angle."""
        slide, turn = self.relative_slide(self.form.axis, at), self.relative_turn(self.form.pin[0])
        return {f"{self.name}_slide": slide, f"{self.name}_turn": turn}


class GearExpander(JointExpander[GearForm]):
    """Two bodies with a constant ratio of turns relative to a carrier."""

    joint = data.GearJoint
    constraint = VelocityConstraint

    def joint_class(self) -> Callable[..., data.Joint]:
        """Return the class of the joint, with its backlash."""
        return partial(self.joint, backlash=play_of(self.form.backlash))

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """Parent, child and carrier."""
        return (*super().ends, ("carrier", self.form.carrier))

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Keep the ratio; with a backlash contacts replace the row."""
        form = self.form
        if form.backlash is None:
            first, second = both_axes(form, form.axis)
            yield "", f"{self._spin(form.child, second)} - ({form.ratio.text})*{self._spin(form.parent, first)}"

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of its backlash."""
        if self.form.backlash is None:
            return {}
        return backlash_contacts(self.name, self.form.backlash, gear_travel(self.name, self.form, self.made.frames))

    def _spin(self, frame: str, axis: AxisForm) -> str:
        frames = (("", frame), ("-", self.form.carrier))
        spins = [f"{sign}omega({name})" for sign, name in frames if name != NEWTONIAN]
        return f"dot({''.join(spins) or '0*N.x'}, {axis})"


class RollingExpander(JointExpander[RollingForm]):
    """No slip at a point."""

    joint = data.RollingJoint
    constraint = VelocityConstraint

    @property
    def points(self) -> tuple[str, ...]:
        """The place of contact."""
        return (self.form.at,)

    def rows(self, points: tuple[str, ...]) -> Rows:
        """Give both bodies one velocity at the place of contact.

        Raises ModelError: there are more than three directions.
        """
        form = self.form
        along = [text.text for text in form.along or ()] or [f"{form.parent}.{c}" for c in "xyz"]
        if len(along) > 3:
            raise ModelError(
                f"{str(self.name)!r} rolls along at most three directions", form.key("along"),
                found=f"{len(along)} directions",
            )  # fmt: skip
        suffixes = [""] if len(along) == 1 else [f"_{c}" for c in "xyz"][: len(along)]
        slip = f"vel({form.at}, {form.child})"
        slip += "" if form.parent == NEWTONIAN else f" - vel({form.at}, {form.parent})"
        yield from ((suffix, f"dot({slip}, {v})") for suffix, v in zip(suffixes, along, strict=True))


#: The kinds by their keys of the language.
JOINTS: Final[Mapping[str, type[JointExpander[Any]]]] = {
    "revolute": RevoluteExpander,
    "prismatic": PrismaticExpander,
    "helical": HelicalExpander,
    "cylindrical": CylindricalExpander,
    "universal": UniversalExpander,
    "ball": BallExpander,
    "free": FreeExpander,
    "planar": PlanarExpander,
    "weld": WeldExpander,
    "pin_slider": PinSliderExpander,
    "gear": GearExpander,
    "rolling": RollingExpander,
}


# -- Expansion of joints -------------------------------------------------------------------------------------
#
# In a tree a joint creates the child's frame, the point ``<child>_origin`` and coordinates with their rates. Between
# two existing frames, closing a loop, it creates rows: one for each prevented motion. Rows on positions are written
# along the axes of N or of the parent; rows on directions keep unit vectors of both frames at right angles.


def joints_of(
    forms: Mapping[str, JointForm],
    frames: Mapping[str, Frame],
    units: bool,
    absolute: bool = False,
    moving: Collection[str] = (),
) -> JointExpansion:
    """Return the expanded joints.

    ``forms``: entries by name; ``frames``: frames of the file; ``units``: whether the model has units: coordinates of
    joints then have them too; ``absolute``: whether children move freely and every joint gives rows
    (:mod:`fsm_dyn.language.rewriting`); ``moving``: names in angles of frames that are not constant, besides
    coordinates of joints. Raises ModelError: a joint closes a loop with an undeclared frame, creates an existing one,
    or has the wrong keys.
    """
    made = JointExpansion(units, dict(frames))
    keys = {name: exactly_one(form, tuple(JOINTS)) for name, form in forms.items()}
    joints = [JOINTS[keys[name]](made, name, getattr(form, keys[name])) for name, form in forms.items()]
    placed = [joint for joint in joints if isinstance(joint, PlacedExpander)]
    in_tree = [joint for joint in placed if len(joint.points) == 1]
    closing = [joint for joint in joints if joint not in in_tree]
    made.plane = _in_plane(placed, frames)
    for joint in in_tree:  # all frames first: a loop may be closed by a joint written before them
        joint.make_child()
    made.tree, made.moving = dict(made.frames), frozenset({*moving, *made.coordinates})
    tree = dict(made.joints)
    if absolute:
        _let_go(made, in_tree, _in_plane(in_tree, frames))
    for other in closing:
        for key in ("range", "backlash"):
            other.refuse(key, "at: P, which makes a coordinate")
        points = other.points
        if absolute and len(points) == 2:
            points = (own_point(tree, other.form.parent, points[0]), own_point(tree, other.form.child, points[1]))
        other.close(points)
    made.joints = {name: replace(made.joints[name], mappings=with_mappings(form)) for name, form in forms.items()}
    made.frames = {name: frame for name, frame in made.frames.items() if name not in frames}
    return made


def _in_plane(joints: Iterable[PlacedExpander[Any]], frames: Mapping[str, Frame]) -> bool:
    """Whether all frames turn about z, and joints slide along x and y only."""
    flat = all(isinstance(frame, SimpleFrame) and frame.axis == "z" for frame in frames.values())
    return flat and all(joint.stays_in_plane for joint in joints)


def _let_go(made: JointExpansion, joints: Iterable[PlacedExpander[Any]], plane: bool) -> None:
    """Replace the coordinates of the joints of a tree by absolute ones, and add the joints' rows."""
    made.coordinates, made.speeds, made.rows, made.contacts = {}, {}, {}, {}
    tree = dict(made.joints)
    made.turns_add_up = plane
    freed = []
    for joint in joints:
        joint.refuse("range", "joint_coordinates: relative")
        before, child = made.joints[joint.name], free(joint.form.child, plane, made.units)
        freed.append((joint, before, child))
        made.frames[joint.form.child] = child.frame
        made.points[before.origin] = child.origin
        made.coordinates |= child.coordinates
        made.speeds |= child.speeds
    for joint, before, child in freed:
        at = own_point(tree, joint.form.parent, before.at[0])
        made.relative |= joint.relative(at)
        joint.close((at, before.origin))
        names = (*child.coordinates, *child.frame.euler_names)
        rows = made.joints[joint.name].rows
        made.joints[joint.name] = replace(before, coordinates=names, rows=rows, hidden=(), displacement=None)
    made.relative = resolved(made.relative)
    made.contacts = substituted(made.contacts, made.relative)
