"""Shapes and contacts from their forms: valid combinations of keys, pairs of features in contact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from fsm_dyn.core.errors import ExpressionError, InputError, Location, ModelError, did_you_mean
from fsm_dyn.language.body_forms import CurveForm, GeometryForm, OutlineForm, PolygonForm, PolyhedronForm, SegmentForm
from fsm_dyn.language.check_values import curve_sense, polygon_sense
from fsm_dyn.language.contact_forms import ENTRIES, ContactForm, Friction, JointStopForm
from fsm_dyn.language.contacts import BearingContact, Compliance, Contact, FeatureContact, GapContact, LawContact
from fsm_dyn.language.evaluate import ParameterValue, evaluate_parameters
from fsm_dyn.language.expression_tree import ComposedText, Text, is_name
from fsm_dyn.language.impositions import GROUND, Imposition
from fsm_dyn.language.keyed import HasKeys, KeyedMapping, exactly_one, keys_of, only_with, with_mappings
from fsm_dyn.language.laws import Entry
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.language.shape_geometry import curve_pieces, polyhedron_faces
from fsm_dyn.language.shapes import (
    ArcShape,
    BoxShape,
    CircleShape,
    CurveShape,
    DiskShape,
    Feature,
    LineShape,
    PlaneShape,
    PolygonShape,
    PolyhedronShape,
    Repeat,
    RoundShape,
    SegmentShape,
    Shape,
    SolidShape,
    SphereShape,
)
from fsm_dyn.language.yaml import LocatedStr, where_of

# -- Shapes: defaults, valid combinations of keys, and the sense of polygons ---------------------------------

OUTLINES = tuple(  # the keys of a shape, one of which it has
    name
    for name, (_, key) in keys_of(GeometryForm).items()
    if any(issubclass(found, OutlineForm) for found in key.kind.mappings)
)
NEWTONIAN, ORIGIN = "N", "O"


def shapes_of(form: MechanismForm) -> dict[str, Shape]:
    """Return the shapes of a model.

    ``form``: the whole model. Raises ModelError: a shape is contradictory or incomplete, or a polygon has no interior.
    """
    values: Mapping[str, ParameterValue] | None = None
    if form.shapes:
        try:
            values = evaluate_parameters(Mechanism("", parameters=form.parameters), {})
        except InputError:
            values = None  # reported with its location when parameters are checked
    return {name: _named(_shape(name, entry, form.bodies, values), entry) for name, entry in form.shapes.items()}


def _named(shape: Shape, form: GeometryForm) -> Shape:
    """Return a shape with the names of its features."""
    single = shape.features_of_one()
    labels = {one.label: one for one in single}
    for word, label in form.features.items():
        what = f"feature {str(word)!r} of shape {str(shape.name)!r}"
        if len(single) == 1:
            raise ModelError(
                f"{what}: a {shape.kind} has one feature", word.where,
                remedy="name the shape, or under `names` its contact",
            )  # fmt: skip
        if label not in labels:
            raise ModelError(
                f"{what}: there is none such outside", label.where, found=form_of_label(label),
                allowed=", ".join(form_of_label(known) for known in labels),
                remedy="corners of hollows are out of reach and have no contacts" if label.isdecimal() else "",
            )  # fmt: skip
        if word in labels:
            raise ModelError(f"{what}: the name is that of another feature", word.where, found=word,
                             remedy=f"call it {word}_")  # fmt: skip
    if len(set(form.features.values())) < len(form.features):
        raise ModelError(f"a feature of shape {str(shape.name)!r} has two names", form.key("features"),
                         remedy="keep one of them")  # fmt: skip
    names = tuple((str(label), str(word)) for word, label in form.features.items())
    return replace(shape, feature_names=names, mappings=with_mappings(form))


def form_of_label(label: str) -> str:
    """Return the words of a feature under `features`, of its label in names of contacts."""
    if label.isdecimal():
        return f"corner {label}"
    return label.replace("face", "face ").replace("edge", "edge ").strip()


def _shape(
    name: str, form: GeometryForm, bodies: Mapping[str, Body], values: Mapping[str, ParameterValue] | None
) -> Shape:
    exactly_one(form, OUTLINES)
    where, repeat = where_of(name), form.repeat
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
    return _spatial(name, form, bodies, values)


def _segment(
    name: str, form: GeometryForm, segment: SegmentForm, bodies: Mapping[str, Body], repeat: Repeat | None
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


def _spatial(
    name: str, form: GeometryForm, bodies: Mapping[str, Body], values: Mapping[str, ParameterValue] | None
) -> Shape:
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
    if form.side is not None and (form.box is not None or form.polyhedron is not None):
        kind = "box" if form.box is not None else "polyhedron"
        raise ModelError(f"a {kind} is touched from outside", form.key("side"), remedy="leave `side` out")
    if form.polyhedron is not None:
        solid = form.polyhedron
        origin = _origin(name, solid.frame, solid.origin, bodies)
        shape = PolyhedronShape(name=name, frame=solid.frame, origin=origin, points=solid.corners, where=where)
        return _with_faces(shape, solid, values)
    if form.box is not None:
        origin = _origin(name, form.box.frame, form.box.center, bodies)
        return BoxShape(name=name, frame=form.box.frame, origin=origin, size=form.box.size, where=where)
    if form.sphere is None:
        raise ModelError(f"shape {str(name)!r} has no content", where, allowed=", ".join(OUTLINES))
    sphere, inside = form.sphere, _inside(form, "sphere")
    origin = _origin(name, sphere.frame, sphere.center, bodies)
    return SphereShape(name=name, frame=sphere.frame, origin=origin, radius=sphere.radius, inside=inside, where=where)


def _with_faces(
    shape: PolyhedronShape, form: PolyhedronForm, values: Mapping[str, ParameterValue] | None
) -> PolyhedronShape:
    """Return a polyhedron with the faces of its convex hull, numbered as they are written."""
    if values is None:
        return shape
    try:
        faces = polyhedron_faces(shape, values)
    except ExpressionError:
        return shape  # reported when expressions are checked
    if form.faces is not None:
        order = {frozenset(face): number for number, face in enumerate(form.faces)}
        if len(order) != len(form.faces) or set(order) != {frozenset(face) for face in faces}:
            raise ModelError(
                f"the faces of polyhedron {str(shape.name)!r} are not those of its convex hull", form.key("faces"),
                allowed=", ".join(f"[{', '.join(str(corner + 1) for corner in face)}]" for face in faces),
                remedy="leave `faces` out; a hollow body is made of several convex ones",
            )  # fmt: skip
        faces = tuple(sorted(faces, key=lambda face: order[frozenset(face)]))
    return replace(shape, faces=faces)


def _curve(
    name: str,
    form: GeometryForm,
    curve: CurveForm,
    bodies: Mapping[str, Body],
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
    """Return a curve with its sense and its pieces; it must close."""
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
        f"the free side of the {kind} is one of two", form.side.where, found=form.side.text, allowed="outside, inside"
    )


def _origin(name: str, frame: str, given: str | None, bodies: Mapping[str, Body]) -> str:
    """Return the origin of a shape: the given point, or the centre of the first body on its frame."""
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
    """Return a polygon with its sense and its corners out of reach from outside."""
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


# -- Contacts between shapes: one for each possible pair of features -----------------------------------------
#
# =================  ==============================================  ==================================
# shape              features                                        name
# =================  ==============================================  ==================================
# point              itself
# line               its face
# segment            its face, its two ends                          ``face start end``
# circle             itself; with a radius written as 0 a corner
# arc                its round face, its two ends                    ``face start end``
# polygon            its faces, its convex corners                   ``face1 face2 ...``, ``1 2 ...``
# curve              itself, or its pieces if it has hollows         ``1 2 ...``: as its parameter grows
# sphere, plane      itself
# disk               its rim, three points of support                ``1 2 3``
# box, polyhedron    its corners, faces and edges                    ``1 2 ...``, ``face1 ...``,
#                                                                    ``edge1 ...``
# =================  ==============================================  ==================================
#
# Copies of a repeated shape have their number in front. The name of a contact is the given one, followed by the names
# of its features if several pairs exist: ``wheel_floor``, ``box_floor_2``, ``wheel_step_face``.

MOST_PAIRS = 1000


def touching(
    name: str, first: list[Feature], second: list[Feature], shapes: Mapping[str, Shape]
) -> list[FeatureContact]:
    """Return the contacts between two lists of features, named after `name`, without further properties.

    Raises ModelError: no feature of the one can touch any of the other, or there are far too many pairs.
    """
    pairs = [(a, b) for a in first for b in second if can_touch(a, b, shapes)]
    if not pairs:
        raise ModelError(
            f"nothing of {first[0].shape!r} can touch {second[0].shape!r}",
            where_of(name),
            allowed="points against anything but points; round against round or flat; corners against faces; curves "
            "from outside, but not against curves; disks against planes; boxes and polyhedra against planes, spheres, "
            "points and each other; shapes in space not against planar ones",
        )
    if len(pairs) > MOST_PAIRS:
        raise ModelError(
            f"contact {str(name)!r} stands for {len(pairs)} pairs of features",
            where_of(name),
            allowed=f"at most {MOST_PAIRS}",
            remedy="use fewer copies or corners",
        )
    plain = len(pairs) == 1
    return [
        FeatureContact(
            name=LocatedStr("_".join([name] if plain else [name, *(f.label for f in pair if f.label)]), where_of(name)),
            features=pair,
            limited=_limited(pair, shapes),
            entry=name,
            where=where_of(name),
        )
        for pair in pairs
    ]


def can_touch(a: Feature, b: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Return whether contact is possible between the kinds of two features."""
    parts = {a.part, b.part}
    spatial = {shapes[f.shape].spatial for f in (a, b) if f.part != "point"}
    if len(spatial) == 2:
        return False
    solid = [f.part != "point" and isinstance(shapes[f.shape], SolidShape) for f in (a, b)]
    if "rim" in parts or ("vertex" in parts and not any(solid)):
        return "face" in parts and not any(solid)
    if any(solid):
        return _can_touch_solid(a, b, shapes, all(solid))
    if "curve" in parts:
        flat_in_hollow = "face" in parts and any(_in_hollow(f, shapes) for f in (a, b))
        return a.part != b.part and not flat_in_hollow and not any(_is_hollow(f, shapes) for f in (a, b))
    if parts in ({"face"}, {"point"}, {"corner"}, {"point", "corner"}):
        return False
    hollow = [f for f in (a, b) if _is_hollow(f, shapes)]
    return not hollow or (len(hollow) == 1 and "face" not in parts)


def _can_touch_solid(a: Feature, b: Feature, shapes: Mapping[str, Shape], both: bool) -> bool:
    """Whether contact is possible between two features, one of a polyhedron."""
    parts = {a.part, b.part}
    if "round" in parts:
        return "vertex" in parts or not any(_is_hollow(f, shapes) for f in (a, b))
    of_disk = "vertex" in parts and any(isinstance(shapes[f.shape], DiskShape) for f in (a, b) if f.part == "vertex")
    if of_disk or parts == {"face"}:
        return False
    return parts == {"vertex", "face"} or parts == {"point", "face"} or (both and parts == {"edge"})


def _is_hollow(feature: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Whether a round feature is touched from inside."""
    shape = None if feature.part == "point" else shapes[feature.shape]
    return feature.part == "round" and isinstance(shape, RoundShape) and shape.inside


def _in_hollow(feature: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Whether a feature is a hollow piece of a curve."""
    shape = None if feature.part == "point" else shapes[feature.shape]
    return isinstance(shape, CurveShape) and bool(shape.pieces) and not shape.pieces[feature.index].bulges


def _limited(pair: tuple[Feature, Feature], shapes: Mapping[str, Shape]) -> bool:
    """Whether the contact is possible only within a bounded face, or only beyond one."""
    for feature, other in (pair, pair[::-1]):
        if feature.part in ("face", "round") and shapes[feature.shape].bounded:
            return True
        if feature.part == "corner" and other.part in ("round", "curve"):
            return True
        if feature.part == "edge" or (
            feature.part == "vertex" and other.part == "round" and not _is_hollow(other, shapes)
        ):
            return True
        shape = None if feature.part == "point" else shapes[feature.shape]
        if isinstance(shape, CurveShape) and shape.pieces:
            return True
    return False


def feature_list(name: str, shapes: Mapping[str, Shape]) -> list[Feature]:
    """Return the features of the shape `name`. Raises ModelError: there is no such shape."""
    shape = shapes.get(name)
    if shape is None:
        raise ModelError(
            f"there is no shape {str(name)!r}",
            where_of(name),
            found=name,
            allowed=", ".join(shapes) or "declare it under `shapes`",
            remedy=did_you_mean(name, shapes) or "a point goes with `point: P, on: shape`",
        )
    return shape.features()


# -- Contacts ------------------------------------------------------------------------------------------------
#
# A joint stop becomes one gap contact per limit, an entry of shapes one contact per pair of features.

CONTACT_KINDS = ("gap", "between", "point", "joint_stop", *ENTRIES)
RESTITUTION = ("restitution", "restitution_law", "tangential_restitution")  # of rigid contacts


def contacts_of(name: str, form: ContactForm, shapes: Mapping[str, Shape]) -> list[Contact]:
    """Return the contacts of the entry `name`."""
    kind = exactly_one(form, CONTACT_KINDS)
    if kind in ENTRIES:
        only_with(form, kind, ())
        return [_by_entry(name, form, kind)]
    surfaces = _surfaces(name, form)
    _check_tangential(name, form)
    if form.joint_stop is not None:
        only_with(form, kind, _properties(form))
        return [replace(contact, **surfaces) for contact in _stops(name, form, form.joint_stop)]
    friction = form.friction or Friction()
    found = [_by_gap(name, form)] if kind == "gap" else _by_shapes(name, form, kind, shapes)
    return [
        replace(
            contact, static=friction.static, kinetic=friction.kinetic, infinite_friction=friction.infinite, **surfaces
        )
        for contact in found
    ]


def _surfaces(name: str, form: ContactForm) -> dict[str, Any]:
    """Return the properties of a pair of surfaces, without gap and friction."""
    return {
        "compliance": compliance_of(f"contact {str(name)!r}", form, form.compliance),
        "restitution": form.restitution,
        "restitution_law": form.restitution_law,
        "tangential_restitution": form.tangential_restitution,
        "closes_if": form.closes_if,
        "sound_frequency": form.sound_frequency,
    }


def _check_tangential(name: str, form: ContactForm) -> None:
    """Refuse a restitution of the slip without the friction that returns it, or next to one of impulses."""
    if form.tangential_restitution is None:
        return
    where, what = form.key("tangential_restitution"), f"contact {str(name)!r} has a tangential restitution"
    if form.friction is None:
        raise ModelError(
            f"{what} and no friction", where,
            remedy="friction returns the slip: add `friction: 0.5`, or remove `tangential_restitution`",
        )  # fmt: skip
    if form.restitution_law == "poisson":
        raise ModelError(
            f"{what} and Poisson's law", where, found="restitution_law: poisson",
            allowed="restitution_law: newton", remedy="remove `restitution_law`, or `tangential_restitution`",
        )  # fmt: skip


def compliance_of(what: str, form: HasKeys, compliance: Compliance | None) -> Compliance | None:
    """Return the compliance of `form`, if it has one. Raises ModelError: it has a restitution too."""
    for key in RESTITUTION if compliance is not None else ():
        if key in form.written_keys():
            raise ModelError(
                f"{what} is compliant and has the key {key!r}",
                form.key(key),
                remedy="remove it; energy is lost by `dissipation` under `compliant`",
            )
    return compliance


def _properties(form: ContactForm) -> tuple[str, ...]:
    always = ("compliant", "closes_if", "sound_frequency")
    return always if form.compliance is not None else (*RESTITUTION, *always)


def _by_entry(name: str, form: ContactForm, key: str) -> Contact:
    """Return the contact of the entry `key`, with the law whose required options are all given."""
    entry = form.entry(key)
    if entry is None:
        raise ModelError(f"contact {name!r} has no content", where_of(name), allowed=", ".join(CONTACT_KINDS))
    given = set(entry.written_keys())
    laws = [law for law in ENTRIES[key] if law.entry and {option.key for option in law.entry.needs} <= given]
    law = max(laws, key=lambda law: len(law.entry.needs) if law.entry else 0)
    assert law.entry is not None
    _check_complete(name, entry, key, law.entry)
    if law.entry.one_of:
        exactly_one(entry, tuple(option.key for option in law.entry.one_of))
    fields = {option.field: getattr(entry, option.key) for option in law.entry.options if option.key in given}
    if law.loaded:
        return BearingContact(name=name, where=where_of(name), **{**fields, "loaded_by": (fields["loaded_by"],)})
    return LawContact(name=name, law=law.name, where=where_of(name), **fields)


def _check_complete(name: str, form: KeyedMapping, key: str, entry: Entry) -> None:
    """Refuse an option of another law with the key, for which others are missing."""
    known = {option.key for option in entry.options}
    unused = next((word for word in form.written_keys() if word not in known), None)
    if unused is None:
        return
    others = [law.entry.needs for law in ENTRIES[key] if law.entry is not None]
    needs = min(([option.key for option in one] for one in others if unused in [option.key for option in one]), key=len)
    missing = [word for word in needs if word not in form.written_keys()]
    raise ModelError(
        f"contact {str(name)!r} has {unused!r} without {' and '.join(map(repr, missing))}", form.key(unused),
        remedy=f"add {' and '.join(f'`{word}`' for word in missing)}, or omit `{unused}`",
    )  # fmt: skip


def _by_gap(name: str, form: ContactForm) -> GapContact:
    extras = ("bilateral",) if form.bilateral else _properties(form)
    only_with(form, "gap", ("slip", "friction", *extras))
    if form.friction is not None and form.slip is None:
        raise ModelError(
            f"contact {name!r} has friction but no slip",
            form.key("friction"),
            remedy='add the sliding speed: `slip: "dot(vel(P), N.x)"`, or remove `friction`',
        )
    if form.slip is not None and form.friction is None:
        raise ModelError(
            f"contact {name!r} has a slip but no friction",
            form.key("slip"),
            remedy="add `friction: {static: ..., kinetic: ...}`, or remove `slip`",
        )
    slip, across = (*(form.slip or ()), None, None)[:2]
    if across is not None and form.bilateral:
        raise ModelError(
            f"contact {str(name)!r} is bilateral and slips in two directions",
            form.key("slip"),
            remedy="write two contacts that face each other instead of `bilateral`",
        )
    return GapContact(name=name, gap=form.gap, slip=slip, across=across, bilateral=form.bilateral, where=where_of(name))


def _by_shapes(name: str, form: ContactForm, kind: str, shapes: Mapping[str, Shape]) -> list[FeatureContact]:
    if form.pair is not None:
        only_with(form, kind, ("friction", *_properties(form)))
        if form.pair[0] == form.pair[1]:
            raise ModelError("a contact of a shape with itself", form.key(kind), found=form.pair[1])
        first, second = (feature_list(shape, shapes) for shape in form.pair)
    else:
        only_with(form, kind, ("on", "friction", *_properties(form)))
        if form.point is None or form.on is None:
            raise ModelError(f"contact {str(name)!r} lacks the shape that its point touches", form.key(kind),
                             remedy="add `on: shape`")  # fmt: skip
        first, second = [Feature(form.point, "point")], feature_list(form.on, shapes)
    found = touching(name, first, second, shapes)
    if form.compliance is not None and any(f.part == "edge" for contact in found for f in contact.features):
        raise ModelError(
            f"contact {str(name)!r} of a polyhedron, whose edges touch, is compliant", form.key("compliant"),
            allowed="compliant corners of boxes and polyhedra on planes; rigid contacts",
            remedy="use `restitution`, or corners or spheres on a `plane`",
        )  # fmt: skip
    return found


def _stops(name: str, form: ContactForm, stop: JointStopForm) -> list[GapContact]:
    where, q, found = where_of(name), _bracketed(stop.coordinate), []
    if stop.lower is not None:
        gap = ComposedText(f"{q} - {_bracketed(stop.lower)}", stop.lower.where, (stop.coordinate, stop.lower))
        found.append(GapContact(name=name, gap=gap, limit="lower", where=where))
    if stop.upper is not None:
        gap = ComposedText(f"{_bracketed(stop.upper)} - {q}", stop.upper.where, (stop.coordinate, stop.upper))
        found.append(GapContact(name=name, gap=gap, limit="upper", where=where))
    if not found:
        raise ModelError(f"joint stop {name!r} has no limit", form.key("joint_stop"), allowed="lower, upper or both")
    return two_limits(name, found) if len(found) == 2 else found


def two_limits(stop: str, contacts: list[GapContact]) -> list[GapContact]:
    """Return the contacts of both limits of a stop under names of their own."""
    return [replace(c, name=LocatedStr(f"{stop}_{c.limit}", c.where), stop=stop) for c in contacts]


def _bracketed(text: Text) -> str:
    return text.text if is_name(text.text) else f"({text})"


# -- Contacts between all of several shapes ------------------------------------------------------------------
#
# One entry for each pair of shapes without a rigid connection, if contact is possible.

_SOLIDS = ("box", "polyhedron", "sphere", "disk", "curve", "circle", "polygon")


def contact_entries(form: MechanismForm, shapes: Mapping[str, Shape]) -> dict[str, ContactForm]:
    """Return the entries of ``contacts``, those between all of several shapes written out.

    A pair is named after its shapes. A pair listed by another entry is left to it. Raises ModelError: no two of the
    shapes can touch, two entries name the same pair, or two solids would pass through each other, because contacts
    between their kinds are unknown.
    """
    listed = {frozenset(entry.pair) for entry in form.contacts.values() if entry.pair is not None}
    entries: dict[str, ContactForm] = {}
    for name, entry in form.contacts.items():
        if entry.between is None or entry.pair is not None:
            written = {name: entry}
        else:
            groups = entry.between or tuple((shape,) for shape in shapes)
            pairs = _pairs(form, groups, shapes, entry.key("between"))
            if not pairs:
                raise ModelError(f"no two shapes of contact {str(name)!r} can touch", entry.key("between"))
            written = {
                LocatedStr("_".join(pair), where_of(name)): replace(entry, between=tuple((shape,) for shape in pair))
                for pair in pairs
                if frozenset(pair) not in listed
            }
        twice = next((key for key in written if key in entries), None)
        if twice is not None:
            raise ModelError(f"contact {str(twice)!r} exists twice", where_of(twice), remedy="rename one of them")
        entries.update(written)
    return entries


def imposed_touching(form: MechanismForm, entry: Imposition, shapes: Mapping[str, Shape]) -> list[FeatureContact]:
    """Return the contacts of two shapes that touch while a constraint is imposed.

    Raises ModelError: they cannot touch, do not move relative to each other, or a contact of the model lists them.
    """
    pair = entry.contact or ("", "")
    first, second = (feature_list(word, shapes) for word in pair)
    listed = [name for name, other in contact_entries(form, shapes).items()
              if other.pair is not None and frozenset(other.pair) == frozenset(pair)]  # fmt: skip
    for reason, remedy in (
        (f"contact {listed[0]!r} lists them", "impose two other shapes, or remove the contact") if listed else ("", ""),
        ("they do not move relative to each other", "name shapes of two bodies")
        if len({(shapes[word].frame, _anchor(form, shapes[word])) for word in pair}) == 1 else ("", ""),
    ):  # fmt: skip
        if reason:
            raise ModelError(f"{entry.label}: {reason}", entry.key("contact"), found=", ".join(pair), remedy=remedy)
    friction = entry.friction or Friction()
    own = LocatedStr(f"{entry.name}_contact", entry.where)  # the entry's name is that of its input
    return [
        replace(
            contact, static=friction.static, kinetic=friction.kinetic, infinite_friction=friction.infinite,
            restitution=entry.restitution, closes_if=Text(f"{entry.name}_on", entry.where), imposed=str(entry.name),
        )
        for contact in touching(own, first, second, shapes)
    ]  # fmt: skip


def unlisted_pairs(mechanism: Mechanism) -> dict[tuple[str, str], int]:
    """Return the pairs of shapes of different bodies that can touch and that no contact lists.

    Result: by pair the number of its pairs of features.
    """
    listed = {
        frozenset(feature.shape for feature in contact.features)
        for contact in mechanism.contacts.values() if isinstance(contact, FeatureContact)
    }  # fmt: skip
    found = {}
    for a, b in combinations(mechanism.shapes, 2):
        if frozenset((a, b)) in listed or carrier(mechanism, a) == carrier(mechanism, b):
            continue
        pairs = product(feature_list(a, mechanism.shapes), feature_list(b, mechanism.shapes))
        if count := sum(can_touch(one, other, mechanism.shapes) for one, other in pairs):
            found[a, b] = count
    return found


def carrier(mechanism: Mechanism, shape: str) -> str:
    """Return the body that carries a shape, by its frame or its origin; the ground if none does."""
    found, bodies = mechanism.shapes[shape], mechanism.bodies.values()
    at_center = [body for body in bodies if body.center == found.origin and body.frame in (None, found.frame)]
    in_frame = [body for body in bodies if body.frame not in (None, NEWTONIAN) and body.frame == found.frame]
    return next((str(body.name) for body in (*at_center, *in_frame)), GROUND)


def with_pairs_written_out(form: MechanismForm) -> MechanismForm:
    """Return the form of a component with the contacts of its shapes, before those of other components join them."""
    if all(entry.between is None or entry.pair is not None for entry in form.contacts.values()):
        return form
    return replace(form, contacts=contact_entries(form, shapes_of(form)))


def _pairs(
    form: MechanismForm, groups: tuple[tuple[str, ...], ...], shapes: Mapping[str, Shape], where: Location
) -> list[tuple[str, str]]:
    """Return the pairs of shapes of different groups with relative motion and possible contact."""
    names = dict.fromkeys(name for group in groups for name in group)
    features = {name: feature_list(name, shapes) for name in names}
    places = {name: (shapes[name].frame, _anchor(form, shapes[name])) for name in names}
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for one, other in combinations(groups, 2):
        for a, b in product(one, other):
            if places[a] == places[b] or frozenset((a, b)) in pairs:
                continue
            if any(can_touch(first, second, shapes) for first in features[a] for second in features[b]):
                pairs[frozenset((a, b))] = a, b
            elif _is_solid(shapes[a]) and _is_solid(shapes[b]) and shapes[a].spatial == shapes[b].spatial:
                raise ModelError(
                    f"the {shapes[a].kind} {a!r} and the {shapes[b].kind} {b!r} would pass through each other",
                    where,
                    allowed="shapes of kinds between which there are contacts",
                    remedy="give groups of shapes, [[...], [...]], that keep the two apart, or list the pairs",
                )
    return list(pairs.values())


def _is_solid(shape: Shape) -> bool:
    """Whether a shape is the outer outline of a solid body."""
    if shape.kind == "circle" and all(feature.part == "corner" for feature in shape.features()):
        return False  # a point
    return shape.kind in _SOLIDS and not getattr(shape, "inside", False)


def _anchor(form: MechanismForm, shape: Shape) -> str:
    """Return the first point on the way to a shape's origin without motion in the shape's frame."""
    moving = {*form.coordinates, *form.inputs, *form.memory, "t", "N", *form.frames, *form.points} - {shape.frame}
    point = shape.origin
    while point in form.points:
        place = form.points[point]
        # names, and not the letters of axes after a dot
        if moving.intersection(re.findall(r"(?<![\w.])[A-Za-z_]\w*", place.at.text)):
            break
        point = place.origin
    return point
