"""Shapes: defaults, which keys go together, and the sense in which a polygon goes round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import ExpressionError, InputError, ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.checks.outlines import curve_sense, polygon_sense
from fsm_dyn.spec.evaluate import ParameterValue, evaluate_parameters
from fsm_dyn.spec.forms.base import exactly_one
from fsm_dyn.spec.forms.geometry import BodyForm
from fsm_dyn.spec.forms.mechanism import MechanismForm
from fsm_dyn.spec.forms.shapes import CurveForm, GeometryForm, PolygonForm, RepeatForm, SegmentForm
from fsm_dyn.spec.model import Mechanism, Repeat, Shape
from fsm_dyn.spec.yaml_tree import where_of

KINDS = ("line", "segment", "circle", "arc", "polygon", "curve", "sphere", "plane", "disk", "box")
NEWTONIAN, ORIGIN = "N", "O"


def shapes_of(form: MechanismForm) -> dict[str, Shape]:
    """Return the shapes of a model.

    Raises
    ------
    ModelError
        A shape says two things or too little, or a polygon encloses nothing.
    """
    values: Mapping[str, ParameterValue] | None = None
    if form.shapes:
        try:
            values = evaluate_parameters(Mechanism("", parameters=form.parameters), {})
        except InputError:
            values = None  # reported with its location when parameters are checked
    return {name: _shape(name, entry, form.bodies, values) for name, entry in form.shapes.items()}


def _shape(
    name: str, form: GeometryForm, bodies: Mapping[str, BodyForm], values: Mapping[str, ParameterValue] | None
) -> Shape:
    kind = exactly_one(form, KINDS)
    where = where_of(name)
    repeat = _repeat(form.repeat)
    if form.line is not None:
        origin = _origin(name, form.line.frame, form.line.origin, bodies)
        side = _side(name, form)
        return Shape(
            name, "line", form.line.frame, origin, along=form.line.along, side=side, repeat=repeat, where=where
        )
    if form.segment is not None:
        return _segment(name, form, form.segment, bodies, repeat)
    if form.sphere is not None or form.plane is not None or form.disk is not None or form.box is not None:
        return _spatial(name, form, bodies)
    if form.curve is not None:
        return _curve(name, form, form.curve, bodies, repeat, values)
    inside = _inside(form, kind)
    if form.polygon is not None:
        origin = _origin(name, form.polygon.frame, form.polygon.origin, bodies)
        shape = Shape(
            name, "polygon", form.polygon.frame, origin, form.polygon.points, inside=inside, repeat=repeat, where=where
        )
        return _turned(shape, form.polygon, values)
    if form.arc is not None:
        origin = _origin(name, form.arc.frame, form.arc.center, bodies)
        return Shape(
            name, "arc", form.arc.frame, origin, radius=form.arc.radius, angles=form.arc.angles, inside=inside,
            repeat=repeat, where=where,
        )  # fmt: skip
    if form.circle is None:
        raise ModelError(f"shape {str(name)!r} has no content", where, allowed=", ".join(KINDS))
    origin = _origin(name, form.circle.frame, form.circle.center, bodies)
    return Shape(
        name, "circle", form.circle.frame, origin, radius=form.circle.radius, inside=inside, repeat=repeat, where=where
    )


def _segment(
    name: str, form: GeometryForm, segment: SegmentForm, bodies: Mapping[str, BodyForm], repeat: Repeat | None
) -> Shape:
    given = exactly_one(segment, ("points", "ends"))
    if segment.points is not None and len(segment.points) != 2:
        raise ModelError("a segment has two points", segment.key(given), found=f"{len(segment.points)}", allowed="2")
    if segment.ends is not None and segment.origin is not None:
        raise ModelError("'from' does not go with 'ends'", segment.key("from"), remedy="the ends are points already")
    if segment.ends is not None:
        origin = segment.ends[0]
    else:
        origin = _origin(name, segment.frame, segment.origin, bodies)
    return Shape(
        name, "segment", segment.frame, origin, segment.points or (), segment.ends, side=_side(name, form),
        repeat=repeat, where=where_of(name),
    )  # fmt: skip


def _spatial(name: str, form: GeometryForm, bodies: Mapping[str, BodyForm]) -> Shape:
    where = where_of(name)
    if form.repeat is not None:
        raise ModelError("shapes in space are not repeated", form.key("repeat"), remedy="write them one by one")
    if form.plane is not None:
        origin = _origin(name, form.plane.frame, form.plane.origin, bodies)
        return Shape(name, "plane", form.plane.frame, origin, side=_side(name, form), where=where)
    if form.disk is not None:
        if form.side is not None:
            raise ModelError("a disk is touched at its rim", form.key("side"), remedy="leave `side` out")
        disk = form.disk
        origin = _origin(name, disk.frame, disk.center, bodies)
        return Shape(name, "disk", disk.frame, origin, axis=disk.axis, radius=disk.radius, where=where)
    if form.box is not None:
        if form.side is not None:
            raise ModelError("a box is touched at its corners", form.key("side"), remedy="leave `side` out")
        origin = _origin(name, form.box.frame, form.box.center, bodies)
        return Shape(name, "box", form.box.frame, origin, size=form.box.size, where=where)
    if form.sphere is None:
        raise ModelError(f"shape {str(name)!r} has no content", where, allowed=", ".join(KINDS))
    sphere, inside = form.sphere, _inside(form, "sphere")
    origin = _origin(name, sphere.frame, sphere.center, bodies)
    return Shape(name, "sphere", sphere.frame, origin, radius=sphere.radius, inside=inside, where=where)


def _curve(
    name: str,
    form: GeometryForm,
    curve: CurveForm,
    bodies: Mapping[str, BodyForm],
    repeat: Repeat | None,
    values: Mapping[str, ParameterValue] | None,
) -> Shape:
    given = exactly_one(curve, ("r", "x", "points"))
    if (curve.x is None) != (curve.y is None):
        raise ModelError("a curve needs both 'x' and 'y'", curve.key("x" if curve.x is not None else "y"))
    if form.side is not None:
        raise ModelError("a curve is touched from outside", form.key("side"), remedy="leave `side` out")
    if curve.points is not None and len(curve.points) < 3:
        raise ModelError("a spline goes through at least three points", curve.key(given), found=f"{len(curve.points)}")
    formula = tuple(text for text in (curve.r, curve.x, curve.y) if text is not None)
    origin = _origin(name, curve.frame, curve.origin, bodies)
    shape = Shape(
        name, "curve", curve.frame, origin, curve.points or (), formula=formula, repeat=repeat, where=where_of(name)
    )
    return replace(shape, turn=_sense(shape, values))


def _sense(shape: Shape, values: Mapping[str, ParameterValue] | None) -> int:
    """Return +1 for a curve that goes round against the clock, else -1; it must close."""
    if values is None:
        return 1
    try:
        return curve_sense(shape, values)
    except ExpressionError:
        return 1  # reported when expressions are checked


def _side(name: str, form: GeometryForm) -> Text:
    if form.side is None:
        raise ModelError(
            f"shape {str(name)!r} does not say which side is free", where_of(name), remedy="add a vector: `side: N.y`"
        )
    return form.side


def _inside(form: GeometryForm, kind: str) -> bool:
    if form.side is None or form.side.text == "outside":
        return False
    if form.side.text == "inside":
        return True
    raise ModelError(
        f"the free side of a {kind} is one of two", form.side.where, found=form.side.text, allowed="outside, inside"
    )


def _repeat(form: RepeatForm | None) -> Repeat | None:
    return None if form is None else Repeat(form.count, form.about, form.angle)


def _origin(name: str, frame: str, given: str | None, bodies: Mapping[str, BodyForm]) -> str:
    """Return the point with which a shape moves: the one given, or the centre of the first body on its frame."""
    if given is not None:
        return given
    if frame == NEWTONIAN:
        return ORIGIN
    for body in bodies.values():
        if body.frame == frame:
            return body.center
    raise ModelError(
        f"nothing tells where shape {str(name)!r} is: no body has the frame {str(frame)!r}",
        where_of(name),
        remedy="name the point it is fixed to: `from: P` (`center: P` for circles)",
    )


def _turned(shape: Shape, form: PolygonForm, values: Mapping[str, ParameterValue] | None) -> Shape:
    """Return a polygon that knows in which sense it goes round, and which corners nothing outside can touch."""
    if len(form.points) < 3:
        raise ModelError(
            "a polygon has at least three points", form.key("points"), found=f"{len(form.points)}",
            remedy="two make a segment",
        )  # fmt: skip
    if values is None:
        return shape
    try:
        turn, concave = polygon_sense(shape, values)
    except ExpressionError:
        return shape  # reported when expressions are checked
    return replace(shape, turn=turn, concave=concave)
