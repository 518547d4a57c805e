"""Shapes: defaults, which keys go together, and the sense in which a polygon goes round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import ExpressionError, InputError, ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.checks.outlines import curve_sense, polygon_sense
from fsm_dyn.spec.curve_pieces import curve_pieces
from fsm_dyn.spec.evaluate import ParameterValue, evaluate_parameters
from fsm_dyn.spec.forms.form import exactly_one
from fsm_dyn.spec.forms.geometry import BodyForm
from fsm_dyn.spec.forms.mechanism import MechanismForm
from fsm_dyn.spec.forms.shapes import CurveForm, GeometryForm, PolygonForm, RepeatForm, SegmentForm
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.shape import (
    ArcShape,
    BoxShape,
    CircleShape,
    CurveShape,
    DiskShape,
    LineShape,
    PlaneShape,
    PolygonShape,
    Repeat,
    SegmentShape,
    Shape,
    SphereShape,
)
from fsm_dyn.spec.yaml_tree import where_of

KINDS = ("line", "segment", "circle", "arc", "polygon", "curve", "sphere", "plane", "disk", "box")
NEWTONIAN, ORIGIN = "N", "O"


def shapes_of(form: MechanismForm) -> dict[str, Shape]:
    """Return the shapes of a model.

    Parameters
    ----------
    form : MechanismForm
        The whole model.

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
    exactly_one(form, KINDS)
    where, repeat = where_of(name), None if form.repeat is None else _repeat(form.repeat)
    if form.line is not None:
        frame, origin = form.line.frame, _origin(name, form.line.frame, form.line.origin, bodies)
        side = _side(name, form)
        return LineShape(
            name=name, frame=frame, origin=origin, along=form.line.along, side=side, repeat=repeat, where=where
        )
    if form.segment is not None:
        return _segment(name, form, form.segment, bodies, repeat)
    if form.curve is not None:
        return _curve(name, form, form.curve, bodies, repeat, values)
    if form.polygon is not None:
        inside, polygon = _inside(form, "polygon"), form.polygon
        origin = _origin(name, polygon.frame, polygon.origin, bodies)
        shape = PolygonShape(
            name=name, frame=polygon.frame, origin=origin, points=polygon.points, inside=inside, repeat=repeat,
            where=where,
        )  # fmt: skip
        return _turned(shape, polygon, values)
    if form.arc is not None:
        inside, arc = _inside(form, "arc"), form.arc
        origin = _origin(name, arc.frame, arc.center, bodies)
        return ArcShape(
            name=name, frame=arc.frame, origin=origin, radius=arc.radius, angles=arc.angles, inside=inside,
            repeat=repeat, where=where,
        )  # fmt: skip
    if form.circle is not None:
        inside, circle = _inside(form, "circle"), form.circle
        origin = _origin(name, circle.frame, circle.center, bodies)
        return CircleShape(
            name=name, frame=circle.frame, origin=origin, radius=circle.radius, inside=inside, repeat=repeat,
            where=where,
        )  # fmt: skip
    return _spatial(name, form, bodies)


def _segment(
    name: str, form: GeometryForm, segment: SegmentForm, bodies: Mapping[str, BodyForm], repeat: Repeat | None
) -> SegmentShape:
    given = exactly_one(segment, ("points", "ends"))
    if segment.points is not None and len(segment.points) != 2:
        raise ModelError("a segment has two points", segment.key(given), found=f"{len(segment.points)}", allowed="2")
    if segment.ends is not None and segment.origin is not None:
        raise ModelError("'from' does not go with 'ends'", segment.key("from"), remedy="the ends are points already")
    if segment.ends is not None:
        origin = segment.ends[0]
    else:
        origin = _origin(name, segment.frame, segment.origin, bodies)
    return SegmentShape(
        name=name, frame=segment.frame, origin=origin, points=segment.points or (), ends=segment.ends,
        side=_side(name, form), repeat=repeat, where=where_of(name),
    )  # fmt: skip


def _spatial(name: str, form: GeometryForm, bodies: Mapping[str, BodyForm]) -> Shape:
    where = where_of(name)
    if form.repeat is not None:
        raise ModelError("shapes in space are not repeated", form.key("repeat"), remedy="write them one by one")
    if form.plane is not None:
        origin = _origin(name, form.plane.frame, form.plane.origin, bodies)
        return PlaneShape(name=name, frame=form.plane.frame, origin=origin, side=_side(name, form), where=where)
    if form.disk is not None:
        if form.side is not None:
            raise ModelError("a disk is touched at its rim", form.key("side"), remedy="leave `side` out")
        disk = form.disk
        origin = _origin(name, disk.frame, disk.center, bodies)
        return DiskShape(name=name, frame=disk.frame, origin=origin, axis=disk.axis, radius=disk.radius, where=where)
    if form.box is not None:
        if form.side is not None:
            raise ModelError("a box is touched at its corners", form.key("side"), remedy="leave `side` out")
        origin = _origin(name, form.box.frame, form.box.center, bodies)
        return BoxShape(name=name, frame=form.box.frame, origin=origin, size=form.box.size, where=where)
    if form.sphere is None:
        raise ModelError(f"shape {str(name)!r} has no content", where, allowed=", ".join(KINDS))
    sphere, inside = form.sphere, _inside(form, "sphere")
    origin = _origin(name, sphere.frame, sphere.center, bodies)
    return SphereShape(name=name, frame=sphere.frame, origin=origin, radius=sphere.radius, inside=inside, where=where)


def _curve(
    name: str,
    form: GeometryForm,
    curve: CurveForm,
    bodies: Mapping[str, BodyForm],
    repeat: Repeat | None,
    values: Mapping[str, ParameterValue] | None,
) -> CurveShape:
    given = exactly_one(curve, ("r", "x", "points"))
    if (curve.x is None) != (curve.y is None):
        raise ModelError("a curve needs both 'x' and 'y'", curve.key("x" if curve.x is not None else "y"))
    if form.side is not None:
        raise ModelError("a curve is touched from outside", form.key("side"), remedy="leave `side` out")
    if curve.points is not None and len(curve.points) < 3:
        raise ModelError("a spline goes through at least three points", curve.key(given), found=f"{len(curve.points)}")
    formula = tuple(text for text in (curve.r, curve.x, curve.y) if text is not None)
    origin = _origin(name, curve.frame, curve.origin, bodies)
    shape = CurveShape(
        name=name, frame=curve.frame, origin=origin, points=curve.points or (), formula=formula, repeat=repeat,
        where=where_of(name),
    )  # fmt: skip
    return _run_round(shape, values)


def _run_round(shape: CurveShape, values: Mapping[str, ParameterValue] | None) -> CurveShape:
    """Return a curve that knows in which sense it goes round, and its pieces; it must close."""
    if values is None:
        return shape
    try:
        turned = replace(shape, turn=curve_sense(shape, values))
        return replace(turned, pieces=curve_pieces(turned, values))
    except ExpressionError:
        return shape  # reported when expressions are checked


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


def _repeat(form: RepeatForm) -> Repeat:
    return Repeat(form.count, form.about, form.angle)


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


def _turned(shape: PolygonShape, form: PolygonForm, values: Mapping[str, ParameterValue] | None) -> PolygonShape:
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
