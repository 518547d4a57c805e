"""Absolute coordinates: every child of a joint moves freely, and the joint holds it by rows.

In a plane a child has ``<child>_x``, ``<child>_y`` and ``<child>_turn``; in space its place and Euler parameters
``<child>_e0`` ..., with the turns ``<child>_wx _wy _wz`` along its own axes as speeds (the M.A.K.E. thesis,
(5.46)-(5.57)).  What expressions say of a joint's own coordinate is put in terms of its frames and points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from fsm_dyn.errors import Location
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.joints import (
    AxisForm,
    CylindricalForm,
    EndsForm,
    PinSliderForm,
    PlanarForm,
    PrismaticForm,
    RevoluteForm,
    WeldForm,
)
from fsm_dyn.spec.joint import Joint
from fsm_dyn.spec.model import Coordinate, Frame, Mechanism, Point
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

NEWTONIAN = "N"
T = TypeVar("T")
HINGED = ("revolute", "universal", "ball", "weld")  # the child's origin stays at the parent's point
_AXES = re.compile(r"(\w+)\.[xyz]\b")


def in_plane(forms: Mapping[str, EndsForm], frames: Mapping[str, Frame]) -> bool:
    """Whether all frames turn about z, and joints slide along x and y only."""
    flat = all(frame.kind == "simple" and frame.rotations[0][0] == "z" for frame in frames.values())
    return flat and all(_flat(form) for form in forms.values())


def _flat(form: EndsForm) -> bool:
    match form:
        case RevoluteForm() | PlanarForm():
            return form.axis[0].letter == "z"
        case PrismaticForm():
            return form.axis.letter != "z"
        case PinSliderForm():
            return form.axis.letter != "z" and form.pin[0].letter == "z"
    return isinstance(form, WeldForm)


@dataclass(frozen=True)
class FreeBody:
    """A child that moves freely: its frame, its origin, coordinates and speeds."""

    frame: Frame
    origin: Point
    coordinates: Mapping[str, Coordinate]
    speeds: Mapping[str, Text]


def free(child: str, plane: bool, units: bool) -> FreeBody:
    """Return what a child of a joint has in absolute coordinates."""
    where = where_of(child)

    def word(suffix: str) -> LocatedStr:
        return LocatedStr(f"{child}_{suffix}", where)

    along = "xy" if plane else "xyz"
    metre = "m" if units else ""
    coordinates: dict[str, Coordinate] = {word(c): Coordinate(word(c), metre, where=where) for c in along}
    speeds: dict[str, Text] = {word(f"{c}_dot"): Text(f"rate({word(c)})", where) for c in along}
    at = Text(" + ".join(f"{word(c)}*N.{c}" for c in along), where)
    origin = Point(word("origin"), "O", at, where)
    if plane:
        turn = word("turn")
        coordinates[turn] = Coordinate(turn, "rad" if units else "", where=where)
        speeds[word("turn_dot")] = Text(f"rate({turn})", where)
        return FreeBody(
            Frame(child, NEWTONIAN, "simple", (("z", Text(turn, where)),), where=where), origin, coordinates, speeds
        )
    speeds |= {word(f"w{c}"): Text(f"dot(omega({child}), {child}.{c})", where) for c in "xyz"}
    frame = Frame(child, NEWTONIAN, "euler_parameters", euler=word("e"), where=where)
    return FreeBody(frame, origin, coordinates, speeds)


def relative(name: str, form: EndsForm, at: str) -> dict[str, tuple[str, str]]:
    """Return value and rate of a joint's own coordinates, as expressions of its frames and points."""
    match form:
        case RevoluteForm():
            return {
                name: _turn(form, form.axis[0]),
                **(_slides(name, form, form.axis[0], at) if form.clearance else {}),
            }
        case PrismaticForm():
            return {name: _slide(form, form.axis, at)}
        case CylindricalForm():
            return {f"{name}_slide": _slide(form, form.axis[0], at), f"{name}_turn": _turn(form, form.axis[0])}
        case PlanarForm():
            return {**_slides(name, form, form.axis[0], at), f"{name}_turn": _turn(form, form.axis[0])}
        case PinSliderForm():
            return {f"{name}_slide": _slide(form, form.axis, at), f"{name}_turn": _turn(form, form.pin[0])}
    return {}


def _turn(form: EndsForm, axis: AxisForm) -> tuple[str, str]:
    a, b = axis.across
    sign = "-" if axis.sign < 0 else ""
    value = f"{sign}atan2(dot({form.child}.{a}, {form.parent}.{b}), dot({form.child}.{a}, {form.parent}.{a}))"
    spin = f"omega({form.child})" + ("" if form.parent == NEWTONIAN else f" - omega({form.parent})")
    return value, f"{sign}dot({spin}, {form.parent}.{axis.letter})"


def _slide(form: EndsForm, axis: AxisForm, at: str) -> tuple[str, str]:
    origin = f"{form.child}_origin"
    speed = f"vel({origin})" + ("" if form.parent == NEWTONIAN else f" - vel({at}, {form.parent})")
    return f"dot(pos({origin}, {at}), {axis})", f"dot({speed}, {axis})"


def _slides(name: str, form: EndsForm, axis: AxisForm, at: str) -> dict[str, tuple[str, str]]:
    first, second = (AxisForm(form.parent, letter) for letter in axis.across)
    return {f"{name}_x": _slide(form, first, at), f"{name}_y": _slide(form, second, at)}


def own_point(joints: Mapping[str, Joint], frame: str, point: str) -> str:
    """Return the point of a child where it is hinged, if `point` is the parent's there; else the point itself."""
    for joint in joints.values():
        if joint.child == frame and joint.kind in HINGED and joint.origin and joint.at[0] == point:
            return joint.origin
    return point


def reattached(mechanism: Mechanism, joints: Mapping[str, Joint]) -> Mechanism:
    """Return a model in which what is given from a hinge along the child's axes hangs on the child, not on the parent.

    In relative coordinates that makes no difference; with every child free it says whose point it is.
    """
    points, bodies = dict(mechanism.points), dict(mechanism.bodies)
    for joint in joints.values():
        family = {joint.child}
        for name, frame in mechanism.frames.items():
            family |= {name} if frame.parent in family else set()
        for name, point in points.items():
            axes = set(_AXES.findall(point.at.text))
            if axes and axes <= family:
                points[name] = replace(point, origin=own_point(joints, joint.child, point.origin))
        for name, body in bodies.items():
            if body.frame in family:
                about = None if body.about is None else own_point(joints, joint.child, body.about)
                bodies[name] = replace(body, center=own_point(joints, joint.child, body.center), about=about)
    return replace(mechanism, points=points, bodies=bodies)


def substituted(value: T, known: Mapping[str, tuple[str, str]]) -> T:
    """Return data with the coordinates of joints, and their rates, replaced in every expression."""
    if not known:
        return value
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    pattern = re.compile(rf"\brate\(\s*({names})\s*\)|(?<![.\w])({names})_dot\b|(?<![.\w])({names})\b")

    def put(match: re.Match[str]) -> str:
        rate, dot, plain = match.groups()
        return f"({known[rate or dot][1]})" if rate or dot else f"({known[plain][0]})"

    return _mapped(value, lambda text: Text(pattern.sub(put, text.text), text.where))


def _mapped(value: T, change: Callable[[Text], Text]) -> T:
    result: Any = value
    if isinstance(value, Text):
        result = change(value)
    elif isinstance(value, Mapping):
        result = {key: _mapped(item, change) for key, item in value.items()}
    elif isinstance(value, tuple) and not isinstance(value, Location):
        result = tuple(_mapped(item, change) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{f.name: _mapped(getattr(value, f.name), change) for f in fields(value)})
    return result  # type: ignore[no-any-return]
