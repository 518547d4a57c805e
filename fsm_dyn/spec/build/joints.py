"""Joints become what they stand for: frames, points, coordinates, speeds, and rows where they close a loop.

In a tree a joint makes the child's frame, the point ``<child>_origin`` and coordinates with their rates.  Between two
frames that exist it gives rows: one for each motion it prevents.  Rows on positions are written along the axes of N
or of the parent; rows on directions ask that unit vectors of both frames stay at right angles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.build.absolute_coordinates import free, in_plane, own_point, relative, substituted
from fsm_dyn.spec.build.joint_friction import (
    bearing,
    check_friction,
    has_friction,
    pitch,
    refused_friction,
    thread,
    thread_of,
)
from fsm_dyn.spec.build.joint_play import contacts_of_play
from fsm_dyn.spec.forms.base import exactly_one
from fsm_dyn.spec.forms.geometry import CoordinateRange
from fsm_dyn.spec.forms.joints import (
    AxisForm,
    BallForm,
    CylindricalForm,
    EndsForm,
    GearForm,
    HelicalForm,
    JointForm,
    MovableForm,
    PinSliderForm,
    PlanarForm,
    PrismaticForm,
    RangedForm,
    RevoluteForm,
    RollingForm,
    UniversalForm,
    WeldForm,
    both_axes,
)
from fsm_dyn.spec.joint import Joint, JointKind
from fsm_dyn.spec.model import Constraint, Contact, Coordinate, Frame, Point
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

NEWTONIAN = "N"
KINDS: tuple[JointKind, ...] = (
    "revolute", "prismatic", "helical", "cylindrical", "universal", "ball", "planar", "weld", "pin_slider", "gear",
    "rolling",
)  # fmt: skip


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


def joints_of(
    forms: Mapping[str, JointForm], frames: Mapping[str, Frame], units: bool, absolute: bool = False
) -> JointExpansion:
    """Return what the joints stand for.

    Parameters
    ----------
    forms : Mapping[str, JointForm]
        Entries by name.
    frames : dict of str to Frame
        Those written by hand.
    units : bool
        Whether the model writes units: coordinates of joints then have theirs.
    absolute : bool
        Whether children move freely and every joint gives rows (:mod:`fsm_dyn.spec.build.absolute_coordinates`).

    Raises
    ------
    ModelError
        A joint closes a loop with a frame that nothing makes, makes one that exists, or has the wrong keys.
    """
    made = JointExpansion(units, dict(frames))
    parts = [(name, _form(form)) for name, form in forms.items()]
    for name, (_, form) in parts:
        check_friction(name, form)
    movable = {name: form for name, (_, form) in parts if isinstance(form, MovableForm | WeldForm)}
    made.plane = in_plane(movable, frames)
    for name, (kind, form) in parts:  # all frames first: a loop may be closed by a joint written before them
        if _in_tree(form):
            _Tree(made, name, kind, form).make()
    tree = dict(made.joints)
    if absolute:
        _let_go(made, {name: form for name, (_, form) in parts if _in_tree(form)}, frames)
    for name, (kind, form) in parts:
        if not _in_tree(form):
            for key in ("range", "backlash"):
                _refuse(key, name, form, "at: P, which makes a coordinate")
            points = _points(form)
            if absolute and len(points) == 2:
                points = (own_point(tree, form.parent, points[0]), own_point(tree, form.child, points[1]))
            _Loop(made, name, kind, form, points).make()
    made.joints = {name: made.joints[name] for name in forms}
    made.frames = {name: frame for name, frame in made.frames.items() if name not in frames}
    return made


def _let_go(made: JointExpansion, forms: Mapping[str, EndsForm], frames: Mapping[str, Frame]) -> None:
    """Put absolute coordinates in the place of those that the joints of a tree have made, and add the joints' rows."""
    plane = in_plane(forms, frames)
    made.coordinates, made.speeds, made.rows, made.contacts = {}, {}, {}, {}
    tree = dict(made.joints)
    for name, form in forms.items():
        _refuse("range", name, form, "joint_coordinates: relative")
        joint, child = made.joints[name], free(form.child, plane, made.units)
        made.frames[form.child] = child.frame
        made.points[joint.origin] = child.origin
        made.coordinates |= child.coordinates
        made.speeds |= child.speeds
        made.relative |= relative(name, form, joint.at[0])
        loop = _Loop(made, name, joint.kind, form, (own_point(tree, form.parent, joint.at[0]), joint.origin))
        loop.make()
        names = (*child.coordinates, *child.frame.euler_names)
        made.joints[name] = replace(joint, coordinates=names, rows=made.joints[name].rows)
    made.contacts = substituted(made.contacts, made.relative)


def _refuse(key: Literal["range", "backlash"], name: str, form: EndsForm, allowed: str) -> None:
    """Refuse the range or the backlash of a joint that has no coordinate to bound."""
    if isinstance(form, RangedForm) and getattr(form, key) is not None:
        raise ModelError(
            f"joint {str(name)!r} has a {key} but no coordinate that it bounds", form.key(key), allowed=allowed,
            remedy="state ranges under `coordinates`, or write a joint stop",
        )  # fmt: skip


def _form(form: JointForm) -> tuple[JointKind, EndsForm]:
    written = exactly_one(form, KINDS)
    kind = next(known for known in KINDS if known == written)
    found: EndsForm = getattr(form, kind)
    return kind, found


def _in_tree(form: EndsForm) -> bool:
    return isinstance(form, MovableForm | WeldForm) and len(form.at) == 1


class _Tree:
    """Makes the child of one joint."""

    def __init__(self, made: JointExpansion, name: str, kind: JointKind, form: EndsForm) -> None:
        self.made, self.name, self.kind, self.form = made, name, kind, form
        self.where = where_of(name)
        self.coordinates: list[str] = []
        self.speeds: dict[str, Text] = {}
        self.rows: list[str] = []

    def make(self) -> None:
        """Add frame, point, coordinates and speeds."""
        form, made = self.form, self.made
        if form.child in made.frames or form.child == NEWTONIAN:
            raise ModelError(
                f"joint {str(self.name)!r} makes the frame {str(form.child)!r}, which already exists",
                where_of(form.child) if form.child != NEWTONIAN else form.key("child"),
                remedy="to close a loop give the points of both: `at: [P, Q]`; else name another frame",
            )
        frame, offset = self._motion()
        made.frames[form.child] = frame
        at = _points(form)[0]
        origin = LocatedStr(f"{form.child}_origin", where_of(form.child))
        made.points[origin] = Point(origin, at, Text(offset or "0*N.x", self.where), self.where)
        if getattr(form, "rates", True):
            made.speeds |= self.speeds
        euler = frame.euler_names
        names = (*self.coordinates, *euler)
        made.joints[self.name] = _joint(
            self.name, self.kind, form, (at,), origin=origin, coordinates=names, rows=tuple(self.rows)
        )
        made.contacts |= contacts_of_play(self.name, form, (at, origin), made.frames)

    def _motion(self) -> tuple[Frame, str]:
        """Return the child's frame, and the way from the joint's point to the child's origin."""
        form = self.form
        match form:
            case RevoluteForm():
                axis = _own(form, form.axis)
                turned = self._turned((axis, self._coordinate("", "rad", form.range)))
                if form.clearance is not None:
                    return turned, self._slides_across(axis)
                return turned, self._bearing(form, axis)
            case PrismaticForm():
                axis = _own(form, (form.axis,))
                return self._turned(), self._slide(axis, "", form.range) + self._bearing(form, axis)
            case HelicalForm():
                return self._screw(form)
            case CylindricalForm():
                axis = _own(form, form.axis)
                slide = self._slide(axis, "_slide")
                return self._turned((axis, self._coordinate("_turn", "rad"))), slide
            case UniversalForm():
                return self._universal(form), ""
            case BallForm():
                return self._ball(form), ""
            case PlanarForm():
                axis = _own(form, form.axis)
                slide = self._slides_across(axis)
                return self._turned((axis, self._coordinate("_turn", "rad"))), slide
            case PinSliderForm():
                slide = self._slide(_own(form, (form.axis,)), "_slide")
                return self._turned((_own(form, form.pin, "pin"), self._coordinate("_turn", "rad"))), slide
        return self._turned(), ""

    def _coordinate(self, suffix: str, unit: str, stated: CoordinateRange | None = None) -> str:
        name = LocatedStr(f"{self.name}{suffix}", self.where)
        self.made.coordinates[name] = Coordinate(name, unit if self.made.units else "", stated or (), self.where)
        self.coordinates.append(name)
        self.speeds[LocatedStr(f"{name}_dot", self.where)] = Text(f"rate({name})", self.where)
        return name

    def _slide(self, axis: AxisForm, suffix: str, stated: CoordinateRange | None = None) -> str:
        return f"{'-' if axis.sign < 0 else ''}{self._coordinate(suffix, 'm', stated)}*{axis.frame}.{axis.letter}"

    def _slides_across(self, axis: AxisForm) -> str:
        first, second = (AxisForm(self.form.parent, letter) for letter in axis.across)
        return f"{self._slide(first, '_x')} + {self._slide(second, '_y')}"

    def _turned(self, *turns: tuple[AxisForm, str]) -> Frame:
        """Return the child's frame, turned about axes one after the other; without any, parallel to the parent."""
        rotations = tuple(
            (axis.letter, Text(f"-{angle}" if axis.sign < 0 else angle, self.where)) for axis, angle in turns
        )
        rotations = rotations or (("z", Text("0", self.where)),)
        kind: Literal["simple", "body"] = "simple" if len(rotations) == 1 else "body"
        return Frame(self.form.child, self.form.parent, kind, rotations, where=self.where)

    def _bearing(self, form: RevoluteForm | PrismaticForm, axis: AxisForm) -> str:
        """Coordinates across the axis, which rows keep at zero: their forces load the friction of the joint."""
        if not has_friction(form):
            return ""
        offset = ""
        for letter in axis.across:
            offset += f" + {self._slide(AxisForm(form.parent, letter), f'_{letter}')}"
            row = LocatedStr(f"{self.name}_bearing_{letter}", self.where)
            self.made.rows[row] = Constraint(
                row, "position", Text(f"{self.name}_{letter}", self.where), joint=self.name, where=self.where
            )
            self.rows.append(row)
        contact = bearing(self.name, form, f"rate({self.name})", tuple(self.rows))
        self.made.contacts[contact.name] = contact
        return offset.removeprefix(" + ") if isinstance(form, RevoluteForm) else offset

    def _screw(self, form: HelicalForm) -> tuple[Frame, str]:
        """A turn and the slide that it entails; with friction a second coordinate, which the thread ties to it."""
        axis, turn = _own(form, (form.axis,)), self._coordinate("", "rad")
        frame = self._turned((axis, turn))
        if not has_friction(form):
            return frame, f"{'-' if axis.sign < 0 else ''}{pitch(form)}*{turn}*{axis.frame}.{axis.letter}"
        offset = self._slide(axis, "_slide")
        contact = thread(self.name, form, turn, self.coordinates[-1])
        self.made.contacts[contact.name] = contact
        return frame, offset

    def _universal(self, form: UniversalForm) -> Frame:
        first, second = both_axes(form, form.axis)
        if first.frame != form.parent or second.frame != form.child or first.letter == second.letter:
            raise ModelError(
                f"the axes of the universal joint {str(self.name)!r} do not fit",
                form.key("axis"),
                found=f"[{first}, {second}]",
                allowed=f"the first of {form.parent}, the second of {form.child}, with different letters",
            )
        return self._turned((first, self._coordinate("_1", "rad")), (second, self._coordinate("_2", "rad")))

    def _ball(self, form: BallForm) -> Frame:
        if form.angles is not None:
            if len(form.angles) != 3:
                raise ModelError("a ball joint turns about three axes", form.key("angles"), found=form.angles)
            names = [self._coordinate(f"_{k + 1}", "rad") for k in range(3)]
            return self._turned(*((AxisForm(form.parent, c), n) for c, n in zip(form.angles, names, strict=True)))
        spin = f"omega({form.child})" + ("" if form.parent == NEWTONIAN else f" - omega({form.parent})")
        for letter in "xyz":
            speed = LocatedStr(f"{self.name}_w{letter}", self.where)
            self.speeds[speed] = Text(f"dot({spin}, {form.child}.{letter})", self.where)
        return Frame(
            form.child,
            form.parent,
            "euler_parameters",
            euler=LocatedStr(f"{self.name}_e", self.where),
            where=self.where,
        )


class _Loop:
    """Writes the rows of one joint between frames that exist."""

    def __init__(
        self, made: JointExpansion, name: str, kind: JointKind, form: EndsForm, points: tuple[str, ...]
    ) -> None:
        self.made, self.name, self.kind, self.form = made, name, kind, form
        self.points = points
        self.where = where_of(name)

    def make(self) -> None:
        """Add the rows."""
        form, made = self.form, self.made
        if isinstance(form, HelicalForm):
            raise ModelError(
                f"the helical joint {str(self.name)!r} closes a loop", form.key("at"),
                remedy="a helical joint makes its child: give one point, `at: P`; "
                "else write a cylindrical joint and a constraint",
            )  # fmt: skip
        ends = [("parent", form.parent), ("child", form.child)]
        ends += [("carrier", form.carrier)] if isinstance(form, GearForm) else []
        for key, frame in ends:
            if frame not in made.frames and frame != NEWTONIAN:
                raise _missing(self.name, frame, form.key(key), made)
        level: Literal["velocity", "position"] = "velocity" if isinstance(form, GearForm | RollingForm) else "position"
        if has_friction(form):
            self._rub()
        rows = {LocatedStr(f"{self.name}{suffix}", self.where): Text(text, self.where) for suffix, text in self._rows()}
        for row, text in rows.items():
            made.rows[row] = Constraint(row, level, text, joint=self.name, where=self.where)
        made.joints[self.name] = _joint(self.name, self.kind, form, self.points, rows=tuple(rows))
        made.contacts |= contacts_of_play(self.name, form, self.points, made.frames)

    def _rub(self) -> None:
        """Add the friction of a bearing or guide, loaded by the rows across its axis.

        Raises
        ------
        ModelError
            It is a hinge in space, whose rows are not along and across its axis.
        """
        form = self.form
        if isinstance(form, RevoluteForm) and self.made.plane:
            rate, across = relative(self.name, form, self.points[0])[self.name][1], "xy"
        elif isinstance(form, PrismaticForm):
            parent = "" if form.parent == NEWTONIAN else f" - vel({self.points[0]}, {form.parent})"
            rate, across = f"dot(vel({self.points[1]}){parent}, {form.axis})", "".join(form.axis.across)
        else:
            raise refused_friction(self.name, form)
        contact = bearing(self.name, form, rate, tuple(f"{self.name}_{letter}" for letter in across))
        self.made.contacts[contact.name] = contact

    def _rows(self) -> Iterator[tuple[str, str]]:
        form = self.form
        match form:
            case RevoluteForm():
                first, second = both_axes(form, form.axis)
                free = form.clearance is not None
                yield from self._together(*[f"{first.frame}.{first.letter}"] if free else [f"N.{c}" for c in "xyz"])
                yield from self._aligned(first, second)
            case PrismaticForm():
                yield from self._together(*_across(form.axis))
                yield from self._parallel()
            case CylindricalForm():
                first, second = both_axes(form, form.axis)
                yield from self._together(*_across(first))
                yield from self._aligned(first, second)
            case UniversalForm():
                first, second = both_axes(form, form.axis)
                yield from self._together(*(f"N.{c}" for c in "xyz"))
                yield "_turn", f"dot({first}, {second})"
            case BallForm():
                yield from self._together(*(f"N.{c}" for c in "xyz"))
            case PlanarForm():
                first, second = both_axes(form, form.axis)
                yield from self._together(f"{first.frame}.{first.letter}")
                yield from self._aligned(first, second)
            case PinSliderForm():
                pin, other = both_axes(form, form.pin)
                slot = f"{form.axis.frame}.{form.axis.letter}"
                axis = f"{pin.frame}.{pin.letter}"
                yield from self._together(f"cross({axis}, {slot})", axis)
                yield from self._aligned(pin, other)
            case WeldForm():
                yield from self._together(*(f"N.{c}" for c in "xyz"))
                yield from self._parallel()
            case GearForm():
                if form.backlash is not None:
                    return  # contacts in place of the row
                first, second = both_axes(form, form.axis)
                yield "", f"{self._spin(form.child, second)} - ({form.ratio.text})*{self._spin(form.parent, first)}"
            case RollingForm():
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

    def _spin(self, frame: str, axis: AxisForm) -> str:
        form = self.form
        carrier = form.carrier if isinstance(form, GearForm) else NEWTONIAN
        spins = [f"{sign}omega({name})" for sign, name in (("", frame), ("-", carrier)) if name != NEWTONIAN]
        return f"dot({''.join(spins) or '0*N.x'}, {axis})"

    def _together(self, *directions: str) -> Iterator[tuple[str, str]]:
        """The child's point stays at the parent's, along each direction."""
        first, second = self.points
        for direction in directions:
            suffix = "across" if direction.startswith("cross") else direction[-1]
            yield f"_{suffix}", f"dot(pos({second}, {first}), {direction})"

    def _aligned(self, first: AxisForm, second: AxisForm) -> Iterator[tuple[str, str]]:
        """The second axis keeps the direction of the first."""
        for suffix, direction in zip(("_turn1", "_turn2"), _across(first), strict=True):
            yield suffix, f"dot({second}, {direction})"

    def _parallel(self) -> Iterator[tuple[str, str]]:
        """All axes of the child keep the directions of the parent's."""
        parent, child = self.form.parent, self.form.child
        for suffix, a, b in (("_turn_z", "x", "y"), ("_turn_x", "y", "z"), ("_turn_y", "z", "x")):
            yield suffix, f"dot({child}.{a}, {parent}.{b})"


def _joint(name: str, kind: JointKind, form: EndsForm, at: tuple[str, ...], **made: Any) -> Joint:
    """Return the joint that `form` describes, with what was `made` of it."""
    backlash, clearance = (getattr(form, key, None) for key in ("backlash", "clearance"))
    return Joint(
        name, "planar" if clearance is not None else kind, form.parent, form.child, at, **made,
        backlash=backlash and backlash.value, clearance=clearance and clearance.value, thread=thread_of(form),
        where=where_of(name),
    )  # fmt: skip


def _points(form: EndsForm) -> tuple[str, ...]:
    if isinstance(form, RollingForm):
        return (form.at,)
    return form.at if isinstance(form, MovableForm | WeldForm) else ()


def _own(form: EndsForm, axes: tuple[AxisForm, ...], key: str = "axis") -> AxisForm:
    """Return the one axis of a joint in a tree, which is the parent's.

    Raises
    ------
    ModelError
        There are two, or it is another frame's.
    """
    if len(axes) != 1 or axes[0].frame != form.parent:
        raise ModelError(
            f"{form.what} in a tree has one axis, of its parent {str(form.parent)!r}",
            form.key(key),
            found=", ".join(map(str, axes)),
            allowed=", ".join(f"{form.parent}.{letter}" for letter in "xyz"),
            remedy=f"for another direction turn a frame into it: `S: {{parent: {form.parent}, rotate: {{z: 30 deg}}}}`",
        )
    return axes[0]


def _across(axis: AxisForm) -> tuple[str, ...]:
    return tuple(f"{axis.frame}.{letter}" for letter in axis.across)


def _missing(name: str, frame: str, where: Location, made: JointExpansion) -> ModelError:
    known = [NEWTONIAN, *made.frames]
    return ModelError(
        f"joint {str(name)!r} closes a loop with {str(frame)!r}, which nothing makes",
        where,
        found=frame,
        allowed=", ".join(known),
        remedy=did_you_mean(frame, known)
        or f"write a frame {frame}, or a joint with `child: {frame}` and one point under `at`",
    )
