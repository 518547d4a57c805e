"""Absolute coordinates: every child of a joint moves freely, and the joint holds it by rows.

In a plane a child has ``<child>_x``, ``<child>_y`` and ``<child>_turn``; in space its place and Euler parameters
``<child>_e0`` ..., with the turns ``<child>_wx _wy _wz`` along its own axes as speeds (the M.A.K.E. thesis,
(5.46)-(5.57)).  What expressions say of a joint's own coordinate is put in terms of its frames and points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.tokens import tokenise
from fsm_dyn.expressions.unit_literals import read_quantity
from fsm_dyn.spec.frame import EulerFrame, SimpleFrame
from fsm_dyn.spec.joint import Joint
from fsm_dyn.spec.model import Coordinate, Frame, Mechanism, Point
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

NEWTONIAN = "N"
T = TypeVar("T")
_POSITION = re.compile(r"\bpos\((\w+), (\w+)\)")
_MOST_LINKS = 20  # joints behind each other whose coordinates a point depends on
_AXES = re.compile(r"(\w+)\.[xyz]\b")


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
            SimpleFrame(name=child, parent=NEWTONIAN, rotations=(("z", Text(turn, where)),), where=where),
            origin,
            coordinates,
            speeds,
        )
    speeds |= {word(f"w{c}"): Text(f"dot(omega({child}), {child}.{c})", where) for c in "xyz"}
    frame = EulerFrame(name=child, parent=NEWTONIAN, euler=word("e"), where=where)
    return FreeBody(frame, origin, coordinates, speeds)


def own_point(joints: Mapping[str, Joint], frame: str, point: str) -> str:
    """Return the point of a child where it is hinged, if `point` is the parent's there; else the point itself."""
    for joint in joints.values():
        if joint.child == frame and joint.hinged and joint.origin and joint.at[0] == point:
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


def without_positions(known: Mapping[str, tuple[str, str]], points: Mapping[str, Point]) -> dict[str, tuple[str, str]]:
    """Return the coordinates of joints as expressions that points may have, in which no ``pos(P, Q)`` stands.

    Parameters
    ----------
    known : mapping of str to (value, rate)
        As expressions of frames and points.
    points : mapping of str to Point
        Those written by hand and those that joints have made.
    """

    def place(name: str) -> str:
        if name not in points:
            return "0*N.x"
        return f"{place(points[name].origin)} + ({points[name].at.text})"

    def put(match: re.Match[str]) -> str:
        return f"(({place(match[1])}) - ({place(match[2])}))"

    return {name: (_POSITION.sub(put, value), rate) for name, (value, rate) in known.items()}


def substituted(value: T, known: Mapping[str, tuple[str, str]]) -> T:
    """Return data with the coordinates of joints, and their rates, replaced in every expression."""
    if not known:
        return value
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    pattern = re.compile(rf"\brate\(\s*({names})\s*\)|(?<![.\w])({names})_dot\b|(?<![.\w])({names})\b")

    def put(match: re.Match[str]) -> str:
        rate, dot, plain = match.groups()
        return f"({known[rate or dot][1]})" if rate or dot else f"({known[plain][0]})"

    def changed(text: Text) -> Text:
        found, done = "", 0
        for begin, end in _quantities(text):
            found += pattern.sub(put, text.text[done:begin]) + text.text[begin:end]
            done = end
        return Text(found + pattern.sub(put, text.text[done:]), text.where)

    return _mapped(value, changed)


def _quantities(text: Text) -> Iterator[tuple[int, int]]:
    """Yield where numbers with their units begin and end: a joint may be called like a unit."""
    tokens, k = tokenise(text.text, text.where), 0
    while k < len(tokens):
        begin = k
        k = read_quantity(tokens, k, text.where)[2] if tokens[k].kind == "number" else k + 1
        if tokens[begin].kind == "number":
            yield tokens[begin].start, tokens[k - 1].end


def resolved(known: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the coordinates of joints as expressions in which no other joint's coordinate stands."""
    found = dict(known)
    for _ in range(_MOST_LINKS):
        before = found
        found = {
            name: (substituted(Text(value, NOWHERE), before).text, substituted(Text(rate, NOWHERE), before).text)
            for name, (value, rate) in before.items()
        }
        if found == before:
            break
    return found


def substituted_points(
    points: Mapping[str, Point], known: Mapping[str, tuple[str, str]], made: Mapping[str, Point]
) -> dict[str, Point]:
    """Return points with the coordinates of joints replaced in where they are; arguments as above."""
    plain = without_positions(known, {**points, **made})
    found = dict(points)
    for _ in range(_MOST_LINKS):
        before, found = found, substituted(found, plain)
        if found == before:
            break
    return found


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
