"""Joints as frames, points, coordinates, rows, friction and play: common steps of all kinds."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import field, fields, is_dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.build_contacts import compliance_of, two_limits
from fsm_dyn.language.contact_forms import Friction
from fsm_dyn.language.contacts import BearingContact, Contact, GapContact
from fsm_dyn.language.dimensions import texts_of
from fsm_dyn.language.elements import (
    BodyFrame,
    Constraint,
    Frame,
    Joint,
    PositionConstraint,
    RotatedFrame,
    SimpleFrame,
    VelocityConstraint,
)
from fsm_dyn.language.expression_tree import Binary, Call, ComposedText, Name, Number, Text, Unary, is_name
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.joint_forms import (
    AxisForm,
    BacklashForm,
    ClearanceForm,
    EndsForm,
    GearForm,
    HelicalForm,
    PlacedForm,
    PlayForm,
    PrismaticForm,
    RangedForm,
    RevoluteForm,
    RubbingForm,
    TurningForm,
    both_axes,
    with_axes_of_ends,
)
from fsm_dyn.language.model import Coordinate, Mechanism, Point
from fsm_dyn.language.yaml import LocatedStr, where_of

# -- Friction of joints in proportion to their reactions -----------------------------------------------------
#
# Journal bearings, guides and threads, as contacts.
#
# A bearing or guide keeps its rows across the axis, and a contact with the law ``bearing`` bounds its friction by the
# resultant of their forces. The flanks of a thread transmit one normal force, of either sign: a slot with friction
# along the thread at its mean radius (docs/theory.md, "Friction of joints").


def check_friction(name: str, form: RubbingForm) -> None:
    """Refuse infinite friction, and of friction and radius one without the other. Raises ModelError."""
    if form.friction is not None and getattr(form, "clearance", None) is not None:
        raise ModelError(
            f"joint {str(name)!r} has a friction and a clearance", form.key("friction"),
            remedy="give it to the contacts of the pin: `clearance: {value: 20 um, friction: 0.1, radius: 4 mm}`",
        )  # fmt: skip
    if form.friction is not None and form.friction.infinite:
        raise ModelError(
            f"joint {str(name)!r} has infinite friction", form.key("friction"), found="inf",
            allowed="a coefficient, or {static: ..., kinetic: ...}", remedy="a joint that never moves is a `weld`",
        )  # fmt: skip
    if isinstance(form, TurningForm) and (form.friction is None) != (form.radius is None):
        given, missing = ("friction", "radius") if form.radius is None else ("radius", "friction")
        raise ModelError(
            f"joint {str(name)!r} has a {given} but no {missing}", form.key(given),
            remedy="friction of a turning joint acts at a radius: add `radius: 10 mm`"
            if given == "friction" else "add `friction: {static: ..., kinetic: ...}`, or remove `radius`",
        )  # fmt: skip


def refused_friction(name: str, form: RubbingForm) -> ModelError:
    """Return the error for the friction of a joint without rows across its axis."""
    return ModelError(
        f"joint {str(name)!r} cannot have friction where it closes a loop in space, or in absolute coordinates",
        form.key("friction"),
        remedy="let it make its child: `at: P`, without `joint_coordinates: absolute`",
    )


def friction_name(name: str) -> LocatedStr:
    """Return the name of the friction contact of a joint."""
    return LocatedStr(f"{name}_friction", where_of(name))


def pitch(form: HelicalForm) -> str:
    """Return the advance of a screw per radian, an expression."""
    return f"({form.lead.text})/(2*pi)"


def thread_of(form: HelicalForm) -> tuple[Text, Text, Text] | None:
    """Return lead, radius and static friction of a screw; None without friction."""
    if form.friction is None or form.radius is None:
        return None
    assert form.friction.static is not None
    return form.lead, form.radius, form.friction.static


def thread(name: str, form: HelicalForm, turn: str, slide: str) -> Contact:
    """Return the contact of the flanks of a thread, given the coordinates of the screw."""
    assert form.friction is not None
    assert form.radius is not None
    where, radius = form.key("friction"), f"({form.radius.text})"
    flank = f"sqrt({radius}**2 + ({pitch(form)})**2)"
    return GapContact(
        name=friction_name(name),
        gap=Text(f"{radius}*({slide} - {pitch(form)}*{turn})/{flank}", where),
        slip=Text(f"({radius}**2*rate({turn}) + {pitch(form)}*rate({slide}))/{flank}", where),
        static=form.friction.static,
        kinetic=form.friction.kinetic,
        bilateral=True,
        where=where_of(name),
    )


def bearing(name: str, form: RevoluteForm | PrismaticForm, rate: str, rows: tuple[str, ...]) -> Contact:
    """Return the contact of a journal bearing or guide on the speed `rate`, loaded by the forces of constraint rows."""
    assert form.friction is not None
    where = form.key("friction")
    arms = (form.radius,) if isinstance(form, RevoluteForm) and form.radius is not None else ()
    arm = "".join(f"*({radius.text})" for radius in arms)
    static, kinetic = (
        None if text is None else ComposedText(f"({text.text}){arm}", text.where, (text, *arms))
        for text in (form.friction.static, form.friction.kinetic)
    )
    return BearingContact(
        name=friction_name(name),
        slip=Text(rate, where),
        static=static,
        kinetic=kinetic,
        loaded_by=rows,
        where=where_of(name),
    )


# -- Backlash and clearance of joints as contacts ------------------------------------------------------------
#
# Two stops of one motion, or a pin within its hole.

NEWTONIAN = "N"


def play_of(form: PlayForm | None) -> Text | None:
    """Return the whole play, an angle or a length; None without a play."""
    return None if form is None else form.value


def backlash_contacts(name: str, form: BacklashForm, travel: str) -> dict[str, Contact]:
    """Return the contacts ``<name>_lower`` and ``<name>_upper``, half the backlash from zero `travel`.

    ``name``: of the joint; ``travel``: the motion with play, an expression (rad or m). Raises ModelError: it is
    compliant and has a restitution.
    """
    half, q = f"({form.value.text})/2", travel if is_name(travel) else f"({travel})"
    lower = replace(_contact(name, form, f"{q} + {half}"), limit="lower")
    upper = replace(_contact(name, form, f"{half} - {q}"), limit="upper")
    found = two_limits(name, [lower, upper])
    compliance = compliance_of(f"the backlash of {str(name)!r}", form, form.compliance)
    if compliance is not None:
        found = [replace(contact, compliance=compliance) for contact in found]
    return {contact.name: contact for contact in found}


def clearance_contacts(
    name: str, joint: RevoluteForm, form: ClearanceForm, points: tuple[str, ...]
) -> dict[str, Contact]:
    """Return the contact ``<name>_clearance`` of a pin of the child with a hole of the parent.

    With the radial clearance c and the distance r between their centres the gap is (c² - r²)/2c: at r = c it is zero
    and its gradient has the length 1, and it is smooth at coincident centres, unlike c - r. ``name``: of the joint;
    ``points``: the joint's points of parent and child. Raises ModelError: it has friction without the radius of the
    pin, or the radius alone.
    """
    if (form.friction is None) != (form.radius is None):
        known, lacking = ("radius", "friction") if form.friction is None else ("friction", "radius")
        raise ModelError(
            f"the clearance of {str(name)!r} has the key {known!r} but not {lacking!r}", form.key(known),
            remedy="friction acts at the radius of the pin: give both or none",
        )  # fmt: skip
    hole, pin = points
    axis, width, away = joint.axis[0], f"({form.value.text})", f"pos({pin}, {hole})"
    square = " + ".join(f"dot({away}, {axis.frame}.{letter})**2" for letter in axis.across)
    contact = _contact(LocatedStr(f"{name}_clearance", where_of(name)), form, f"{width}/4 - ({square})/{width}")
    if form.friction is not None and form.radius is not None:
        friction: Friction = form.friction
        fixed = joint.parent == NEWTONIAN
        sliding = f"vel({pin}, {joint.child})" + ("" if fixed else f" - vel({pin}, {joint.parent})")
        spin = f"omega({joint.child})" + ("" if fixed else f" - omega({joint.parent})")
        along = f"2*dot({sliding}, cross({axis}, {away}))/{width}"
        slip = f"{along} + ({form.radius.text})*dot({spin}, {axis})"
        contact = replace(
            contact, slip=Text(slip, form.value.where), static=friction.static, kinetic=friction.kinetic,
            infinite_friction=friction.infinite,
        )  # fmt: skip
    return {contact.name: contact}


def gear_travel(name: str, form: GearForm, frames: Mapping[str, Frame]) -> str:
    """Return the angle of a gear pair's child in excess of the ratio, an expression (rad).

    ``frames``: frames of the model, for the rotations of its parts relative to the carrier. Raises ModelError: the
    frames between do not all turn about its axis alone.
    """
    first, second = both_axes(form, form.axis)
    child, parent = _turn(name, form, "child", second, frames), _turn(name, form, "parent", first, frames)
    return f"{child} - ({form.ratio.text})*{parent}"


def _turn(name: str, form: GearForm, key: str, axis: AxisForm, frames: Mapping[str, Frame]) -> str:
    """Return the angle of parent or child against the carrier about an axis.

    Raises ModelError: the frames between do not all turn about this axis alone.
    """
    own, carrier = _ancestry(getattr(form, key), frames), _ancestry(form.carrier, frames)
    turns = [("", frame) for frame in own if frame not in carrier]
    turns += [("-", frame) for frame in carrier if frame not in own]
    known = {*own, *carrier}
    steps = [(sign, frames[frame]) for sign, frame in turns if frame in frames]
    simple = [(sign, frame) for sign, frame in steps if isinstance(frame, SimpleFrame) and frame.axis == axis.letter]
    if axis.frame not in known or len(simple) != len(steps):
        raise ModelError(
            f"the backlash of gear {str(name)!r} needs the angle of its {key} against the carrier",
            form.key("backlash"),
            allowed=f"frames between {getattr(form, key)} and {form.carrier} that turn about {axis.letter}",
            remedy="write the contacts of the flanks by their `gap`",
        )
    terms = [f"{sign}({frame.angle.text})" for sign, frame in simple]
    return f"({'-' if axis.sign < 0 else ''}({' + '.join(terms) or '0'}))"


def _ancestry(frame: str, frames: Mapping[str, Frame]) -> list[str]:
    """Return a frame and those it turns against, up to N."""
    found = [frame]
    while found[-1] in frames and frames[found[-1]].parent not in found:
        found.append(frames[found[-1]].parent)
    return found


def _contact(name: str, form: PlayForm, gap: str) -> GapContact:
    where = where_of(name)
    return GapContact(
        name=name, gap=ComposedText(gap, form.value.where, (form.value,)), restitution=form.restitution,
        restitution_law=form.restitution_law, sound_frequency=form.sound_frequency, where=where,
    )  # fmt: skip


# -- Common steps of all kinds of joints ---------------------------------------------------------------------
#
# Common steps of the expansion into frames, points, coordinates, speeds and rows. A kind of joint
# (:mod:`fsm_dyn.language.joint_kinds`) states the motion of its child in a tree, its rows between existing frames, and
# its coordinates in terms of frames and points.

EndsT = TypeVar("EndsT", bound=EndsForm)
PlacedT = TypeVar("PlacedT", bound=PlacedForm)
RangedT = TypeVar("RangedT", bound=RangedForm)
RubbingT = TypeVar("RubbingT", bound=RubbingForm)


@dataclass
class JointExpansion:
    """Entries created by joints so far, by section."""

    units: bool
    frames: dict[str, Frame]
    plane: bool = False
    tree: dict[str, Frame] = field(default_factory=dict)  # frames of relative coordinates
    moving: frozenset[str] = frozenset()  # names in their angles that change: coordinates, inputs and time
    joints: dict[str, Joint] = field(default_factory=dict)
    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)
    speeds: dict[str, Text] = field(default_factory=dict)
    rows: dict[str, Constraint] = field(default_factory=dict)
    contacts: dict[str, Contact] = field(default_factory=dict)
    relative: dict[str, tuple[str, str]] = field(default_factory=dict)  # value and rate, in absolute coordinates
    turns_add_up: bool = False  # angles in `relative` count whole turns


class JointExpander(ABC, Generic[EndsT]):
    """Expands one joint into `made`, from its entry `form` in the file."""

    joint: ClassVar[Callable[..., Joint]]  # the class of the joint as data
    # the class of its rows: on positions or speeds
    constraint: ClassVar[type[PositionConstraint | VelocityConstraint]] = PositionConstraint

    def __init__(self, made: JointExpansion, name: str, form: EndsT) -> None:
        self.made, self.name, self.form = made, name, form
        self.where = where_of(name)

    # -- statements of a kind ----------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, points: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Yield its rows between existing frames: suffixes of names, and expressions.

        ``points``: its points of parent and child.
        """

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of its backlash and clearance. ``points``: those of :meth:`rows`."""
        return {}

    def add_friction(self, points: tuple[str, ...]) -> None:
        """Add the contact of its friction, loaded by its rows, if it has friction.

        ``points``: those of :meth:`rows`.
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
        """The existing frames of a loop-closing joint, each with its key."""
        return ("parent", self.form.parent), ("child", self.form.child)

    # -- expansion ------------------------------------------------------------------------------------

    def close(self, points: tuple[str, ...]) -> None:
        """Add the rows between existing frames, friction, and contacts of play.

        ``points``: its points of parent and child, not necessarily those of the file. Raises ModelError: one of the
        frames is not declared, or an axis is not fixed in them.
        """
        made = self.made
        for key, frame in self.ends:
            if frame not in made.frames and frame != NEWTONIAN:
                raise self._missing(frame, key)
        self.form = with_axes_of_ends(self.form, partial(is_axis_fixed, frames=made.tree, moving=made.moving))
        self.add_friction(points)
        rows = {LocatedStr(f"{self.name}{suffix}", self.where): text for suffix, text in self.rows(points)}
        for row, text in rows.items():
            made.rows[row] = self.constraint(
                name=row, expression=Text(text, self.where), joint=self.name, where=self.where
            )
        self.record(points, rows=tuple(rows))
        made.contacts |= self.contacts_of_play(points)

    def record(self, at: tuple[str, ...], **made: Any) -> None:
        """Add the joint as data, with its created parts `made`."""
        form = self.form
        self.made.joints[self.name] = self.joint_class()(
            name=self.name, parent=form.parent, child=form.child, at=at, where=self.where, **made
        )

    def refuse(self, key: Literal["range", "backlash"], allowed: str) -> None:
        """Refuse the range or the backlash of a joint without a coordinate to bound. Raises ModelError."""

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
    """Expands a joint at one point, with a new child in a tree, or at two points, closing a loop."""

    def __init__(self, made: JointExpansion, name: str, form: PlacedT) -> None:
        super().__init__(made, name, form)
        self.coordinates: list[str] = []
        self.speeds: dict[str, Text] = {}
        self.bearing_rows: list[str] = []
        self.hidden: list[tuple[str, Text]] = []
        self.displacement: Text | None = None

    # -- statements of a kind ----------------------------------------------------------------------------------

    @abstractmethod
    def motion(self) -> tuple[Frame, str]:
        """Return the child's frame, and the vector from the joint's point to the child's origin, empty for zero."""

    @property
    def stays_in_plane(self) -> bool:
        """Whether it turns about z and slides along x and y only."""
        return False

    def relative(self, at: str) -> dict[str, tuple[str, str]]:
        """Return value and rate of its coordinates, as expressions of its frames and points.

        ``at``: its point of the parent.
        """
        return {}

    # -- expansion ------------------------------------------------------------------------------------

    @property
    def points(self) -> tuple[str, ...]:
        """One point in a tree, two for a loop."""
        return self.form.at

    def make_child(self) -> None:
        """Add frame, point, coordinates and speeds. Raises ModelError: the child exists."""
        form, made = self.form, self.made
        if form.child in made.frames or form.child == NEWTONIAN:
            raise ModelError(
                f"joint {str(self.name)!r} makes the frame {str(form.child)!r}, which already exists",
                where_of(form.child) if form.child != NEWTONIAN else form.key("child"),
                remedy="to close a loop give the points of both: `at: [P, Q]`; else name another frame",
            )
        frame, offset = self.motion()
        self._check_ranges()
        made.frames[form.child] = frame
        (at,) = form.at
        origin = LocatedStr(f"{form.child}_origin", where_of(form.child))
        made.points[origin] = Point(name=origin, origin=at, at=Text(offset or "0*N.x", self.where), where=self.where)
        if getattr(form, "rates", True):
            made.speeds |= self.speeds
        names = (*self.coordinates, *frame.euler_names)
        self.record(
            (at,), origin=origin, coordinates=names, rows=tuple(self.bearing_rows), hidden=tuple(self.hidden),
            displacement=self.displacement,
        )  # fmt: skip
        made.contacts |= self.contacts_of_play((at, origin))

    def refuse(self, key: Literal["range", "backlash"], allowed: str) -> None:
        """Refuse its range or its backlash if it has no coordinate to bound. Raises ModelError."""
        if getattr(self.form, key, None) is not None:
            raise ModelError(
                f"joint {str(self.name)!r} has a {key} but no coordinate that it bounds", self.form.key(key),
                allowed=allowed, remedy="state ranges under `coordinates`, or write a joint stop",
            )  # fmt: skip

    def own_axis(self, axes: tuple[AxisForm, ...], key: str = "axis") -> AxisForm:
        """Return the one axis of a joint in a tree, of the parent.

        Raises ModelError: there are two, or it is another frame's.
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

    @property
    def ranges(self) -> Mapping[str, tuple[Text | None, ...]]:
        """Ranges stated for several coordinates, by their names without the joint's."""
        stated = getattr(self.form, "range", None)
        return stated if isinstance(stated, Mapping) else {}

    def _check_ranges(self) -> None:
        known = [name.removeprefix(f"{self.name}_") for name in self.coordinates]
        for word in self.ranges:
            if word not in known:
                raise ModelError(
                    f"joint {str(self.name)!r} has no coordinate {str(word)!r} with a range", where_of(word),
                    found=word, allowed=", ".join(known) or "none: Euler parameters have no ranges",
                    remedy=did_you_mean(word, known),
                )  # fmt: skip

    def coordinate(self, suffix: str, unit: str, stated: tuple[Text | None, ...] | None = None) -> str:
        """Add a coordinate ``<joint><suffix>`` with its rate as a speed, and return its name."""
        name = LocatedStr(f"{self.name}{suffix}", self.where)
        stated = stated or self.ranges.get(suffix.removeprefix("_"), ())
        self.made.coordinates[name] = Coordinate(
            name=name, unit=unit if self.made.units else "", range=stated, where=self.where
        )
        self.coordinates.append(name)
        self.speeds[LocatedStr(f"{name}_dot", self.where)] = Text(f"rate({name})", self.where)
        return name

    def slide(self, axis: AxisForm, suffix: str, stated: tuple[Text | None, ...] | None = None) -> str:
        """Add a coordinate along an axis, and return the vector of the slide."""
        return f"{'-' if axis.sign < 0 else ''}{self.coordinate(suffix, 'm', stated)}*{axis.frame}.{axis.letter}"

    def slides_across(self, axis: AxisForm) -> str:
        """Add two coordinates across an axis, and return the vector of the slides."""
        first, second = (AxisForm(self.form.parent, letter) for letter in axis.across)
        return f"{self.slide(first, '_x')} + {self.slide(second, '_y')}"

    def hide(self, displacement: str, **values: str) -> None:
        """Record the coordinates added by friction or a clearance, and their displacement of the child.

        ``displacement``: displacement of the child, a vector; ``**values``: each added coordinate in terms of the
        others.
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
    """Expands a joint with one coordinate, possibly with a range and a backlash."""

    def joint_class(self) -> Callable[..., Joint]:
        """Return the class of the joint, with its backlash."""
        return partial(self.joint, backlash=play_of(self.form.backlash))

    def contacts_of_play(self, points: tuple[str, ...]) -> dict[str, Contact]:
        """Return the contacts of its backlash."""
        return {} if self.form.backlash is None else backlash_contacts(self.name, self.form.backlash, self.name)


class RubbingExpander(RangedExpander[RubbingT]):
    """Expands a joint with optional friction of its reaction; refuses contradictory keys of friction."""

    def __init__(self, made: JointExpansion, name: str, form: RubbingT) -> None:
        check_friction(name, form)
        super().__init__(made, name, form)


def together(points: tuple[str, ...], *directions: str) -> Iterator[tuple[str, str]]:
    """Yield rows: the child's point stays at the parent's, along each direction; without any, along all axes of N.

    ``points``: the joint's points of parent and child.
    """
    first, second = points
    for direction in directions or ("N.x", "N.y", "N.z"):
        suffix = "across" if direction.startswith("cross") else direction[-1]
        yield f"_{suffix}", f"dot(pos({second}, {first}), {direction})"


def aligned(first: AxisForm, second: AxisForm) -> Iterator[tuple[str, str]]:
    """Yield rows: the second axis keeps the direction of the first."""
    for suffix, direction in zip(("_turn1", "_turn2"), across(first), strict=True):
        yield suffix, f"dot({second}, {direction})"


def is_axis_fixed(axis: AxisForm, end: str, frames: Mapping[str, Frame], moving: Set[str]) -> bool:
    """Whether an axis keeps its direction in a frame: frames between turn by constant angles, or about this axis.

    ``frames``: all frames of the model; ``moving``: names in angles that are not constant.
    """
    lines = [[axis.frame], [end]]
    for line in lines:
        while line[-1] in frames:
            line.append(frames[line[-1]].parent)
    between = [name for here, there in (lines, lines[::-1]) for name in here if name not in there]
    steps = [frames[name] for name in between if name in frames]
    return all(isinstance(step, SimpleFrame) and step.axis == axis.letter for step in steps) or all(
        isinstance(step, RotatedFrame)
        and not any(moving & set(re.findall(r"[A-Za-z_]\w*", angle.text)) for _, angle in step.rotations)
        for step in steps
    )


def across(axis: AxisForm) -> tuple[str, ...]:
    """Return the other two axes of a frame, as expressions."""
    return tuple(f"{axis.frame}.{letter}" for letter in axis.across)


# -- Whole turns of joints in space --------------------------------------------------------------------------
#
# Absolute coordinates do not count whole turns of joints in space: uses of them are refused by name.

_PERIODIC: Final = ("sin", "cos", "tan")


def refuse_whole_turns(mechanism: Mechanism, known: Mapping[str, tuple[str, str]]) -> None:
    """Refuse uses of the number of turns of a joint in space: absolute coordinates do not count it.

    Raises ModelError: a contact, load, constraint or condition does.
    """
    angles = {name for name, (value, _) in known.items() if "atan2(" in value}
    parts = (mechanism.contacts, mechanism.loads, mechanism.constraints, mechanism.transitions, mechanism.memory)
    for name, text in whole_turns_in(parts, angles):
        raise ModelError(
            f"the angle {name!r} is known up to whole turns in absolute coordinates in space",
            text.where,
            found=text.text,
            allowed=f"sin({name}), cos({name}), rate({name})",
            remedy="`joint_coordinates: relative` counts the turns",
        )


def whole_turns_in(parts: Any, angles: Set[str]) -> Iterator[tuple[str, Text]]:
    """Yield angles, each with an expression in parts of a model dependent on its whole turns."""
    for text in texts_of(parts) if angles else ():
        yield from ((name, text) for name in sorted(angles & _counted(parse(text))))


def _counted(tree: Any) -> set[str]:
    """Return the names in an expression with a value dependent on their whole turns."""
    if isinstance(tree, Name):
        return {tree.id}
    if isinstance(tree, Call) and tree.function in ("rate", *_PERIODIC):
        summed = tree.function == "rate" or _is_sum(tree.arguments[0])
        return set() if summed else _counted(tree.arguments)
    if isinstance(tree, tuple | list):
        return {name for item in tree for name in _counted(item)}
    if is_dataclass(tree):
        return {name for field in fields(tree) for name in _counted(getattr(tree, field.name))}
    return set()


def _is_sum(tree: Any) -> bool:
    """Whether an angle is a sum of names and numbers: a whole turn of each is then a whole turn of the sum."""
    if isinstance(tree, Binary):
        return tree.op in ("+", "-") and _is_sum(tree.left) and _is_sum(tree.right)
    if isinstance(tree, Unary):
        return _is_sum(tree.operand)
    return isinstance(tree, Name | Number)
