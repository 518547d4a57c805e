"""Forms of parameters, coordinates, frames, constraints, shapes, views and loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final, Self

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import (
    as_items,
    as_section,
    expression,
    name,
    new_names,
    unit_text,
)
from fsm_dyn.language.form import key as new_key
from fsm_dyn.language.keyed import KeyedMapping, exactly_one, in_place_of, mapping, only_with
from fsm_dyn.language.keys import (
    FLAG,
    NAME,
    NAME_PATTERN,
    NEW_NAME,
    PAIR,
    TEXT,
    UNIT,
    VALUE,
    Kind,
    entries,
    expressions,
    key,
    leaf,
    list_of,
    or_list,
    others,
    part,
    reference,
    reference_to,
    section,
    whole,
)
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.model import Coordinate, Parameter, ParameterTolerance
from fsm_dyn.language.shapes import (
    CORDS,
    CircleOutline,
    CordOutline,
    DrawnOutline,
    LineOutline,
    PolygonOutline,
    Repeat,
    TextOutline,
)
from fsm_dyn.language.units import LENGTH
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- Parameters with a tolerance -----------------------------------------------------------------------------
#
# ``4 kg +- 0.1 kg``, ``{value:, tolerance:}``, ``{normal:, sigma:}``, ``{uniform:}``.

SIGNS = ("+-", "\N{PLUS-MINUS SIGN}")


def _pair(tree: Tree) -> tuple[Text, Text]:
    items = as_items(tree, "a range")
    if len(items) != 2:
        raise ModelError("two limits are wanted", tree.where, found=describe(tree), allowed="[-0.05 mm, 0.1 mm]")
    return expression(items[0]), expression(items[1])


_LIMITS: Final = leaf(_pair, list_of(VALUE, 2, 2), "two limits", example=["-0.5 mm", "1 mm"])


@mapping
class ToleranceForm(KeyedMapping):
    """A parameter with its tolerance."""

    what: ClassVar[str] = "a parameter with a tolerance"
    hints: ClassVar[Mapping[str, str]] = {
        "unit": "a value has its unit: {value: 4 kg, tolerance: [-1 kg, 1 kg]}",
        **dict.fromkeys(("min", "max"), "limits of deviations: {value: 4 kg, tolerance: [-1 kg, 1 kg]}"),
    }
    example: ClassVar[str] = "high: {value: 0.5 m, tolerance: [-0.5 mm, 1 mm]}"

    value: Text | None = expression_key("the value, with `tolerance`", None)
    tolerance: tuple[Text, Text] | None = key(_LIMITS, "limits of the deviation, uniform between them", None)
    normal: Text | None = expression_key("the value, with `sigma`", None)
    sigma: Text | None = expression_key("standard deviation of a normal distribution", None)
    uniform: tuple[Text, Text] | None = key(_LIMITS, "limits of the value, which is their middle", None)


def toleranced(tree: Tree) -> tuple[Text, ParameterTolerance | None]:
    """Return the nominal value of a scalar parameter, and its tolerance if it has one.

    Raises ModelError: the text or mapping of the tolerance is invalid; with its place.
    """
    if isinstance(tree, LocatedMapping):
        return _of_form(ToleranceForm.read(tree))
    text = expression(tree)
    sign = next((sign for sign in SIGNS if sign in text.text), None)
    if sign is None:
        return text, None
    value, _, deviation = text.text.partition(sign)
    if not value.strip() or not deviation.strip():
        raise ModelError("a tolerance is incomplete", text.where, found=text.text, allowed="such as 4 kg +- 0.1 kg")
    upper = Text(deviation.strip(), text.where)
    return Text(value.strip(), text.where), ParameterTolerance(Text(f"-({upper})", text.where), upper)


def without_tolerance(tree: Tree) -> Text:
    """Return an expression, and refuse a tolerance."""
    text = expression(tree)
    if any(sign in text.text for sign in SIGNS):
        raise ModelError(
            "an element of a vector has no tolerance",
            text.where,
            found=text.text,
            remedy="make it of scalar parameters: [a, b]",
        )
    return text


def _of_form(form: ToleranceForm) -> tuple[Text, ParameterTolerance]:
    keys = {"value", "tolerance", "normal", "sigma", "uniform"} & {*form.written_keys()}
    if form.value is not None and form.tolerance is not None and len(keys) == 2:
        return form.value, ParameterTolerance(*form.tolerance)
    if form.normal is not None and form.sigma is not None and len(keys) == 2:
        return form.normal, ParameterTolerance(sigma=form.sigma)
    if form.uniform is not None and len(keys) == 1:
        low, high = form.uniform
        half = f"(({high}) - ({low}))/2"
        limits = Text(f"-{half}", low.where), Text(half, low.where)
        return Text(f"(({low}) + ({high}))/2", low.where), ParameterTolerance(*limits)
    raise ModelError(
        "these keys make no tolerance",
        form.key(""),
        found=", ".join(form.written_keys()) or "no keys",
        allowed="{value, tolerance}, {normal, sigma} or {uniform}",
    )


# -- Sections of parameters and coordinates ------------------------------------------------------------------

MAX_ELEMENTS = 100


def _parameter(tree: Tree, at: LocatedStr) -> Parameter:
    """Return a parameter from its value, its elements, or its keys."""
    if not isinstance(tree, LocatedList):
        text, tolerance = toleranced(tree)
        return Parameter(new_key(at), (text,), False, at.where, tolerance)
    if not 1 <= len(tree) <= MAX_ELEMENTS:
        raise ModelError("a vector has 1 to 100 elements", tree.where, found=describe(tree))
    return Parameter(new_key(at), tuple(without_tolerance(item) for item in tree), True, at.where)


def _coordinate(tree: Tree, at: LocatedStr) -> Coordinate:
    """Return a coordinate from its unit, or from its keys."""
    if isinstance(tree, LocatedMapping):
        return Coordinate.read(tree, at)
    return Coordinate(name=at, unit=unit_text(tree), where=at.where)


def _listed_coordinates(tree: LocatedList) -> dict[str, Coordinate]:
    return {word: Coordinate(name=word, where=word.where) for word in new_names(tree, "coordinate")}


_PARAMETER: Final = Kind(
    _parameter, lambda: {"anyOf": [VALUE, list_of(VALUE, 1), reference_to(ToleranceForm)]},
    "value, vector, or [value with a tolerance](#parameters),", mappings=(ToleranceForm,),
)  # fmt: skip
PARAMETERS: Final = section(_PARAMETER, "parameters", "parameters: {m: 2 kg, l: 0.3 m}")
_UNIT_OR_COORDINATE: Final = Kind(
    _coordinate, lambda: {"anyOf": [UNIT.schema(), reference_to(Coordinate)]}, "unit, or keys,", mappings=(Coordinate,)
)
COORDINATES: Final = or_list(
    section(_UNIT_OR_COORDINATE, "coordinates", "coordinates: {x: m, q: rad}"), _listed_coordinates,
    {"type": "array", "items": NAME, "uniqueItems": True},
)  # fmt: skip


# -- Parts of a model: frames, bodies, constraints -----------------------------------------------------------


def _axes(tree: Tree) -> LocatedStr:
    if isinstance(tree, Scalar) and 1 <= len(tree.text) <= 3 and set(tree.text) <= set("xyz"):
        return LocatedStr(tree.text, tree.where)
    raise ModelError("a sequence of axes is wanted", tree.where, found=describe(tree), allowed="such as zxz, xyz, zx")


AXES: Final = leaf(
    _axes, {"type": "string", "pattern": "^[xyz]{1,3}$"}, "axes, such as `zxz`", holds="words", example="zxz"
)


def _rotation(tree: Tree) -> dict[str, Text]:
    return {name(word): expression(value) for word, value in as_section(tree, "rotate", "rotate: {z: q}").items()}


ROTATION: Final = leaf(
    _rotation, {"type": "object", "additionalProperties": VALUE}, "axis and angle", holds="values", example={"z": "q"}
)


@mapping
class FrameForm(KeyedMapping):
    """A frame: one rotation, a sequence of rotations, or Euler parameters."""

    what: ClassVar[str] = "a frame"
    example: ClassVar[str] = "B: {parent: N, rotate: {z: q}}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(parent="from relative_to"),
        **dict.fromkeys(("angle", "rotation", "axis"), "a rotation about an axis is `rotate: {z: q}`"),
        **dict.fromkeys(("quat", "quaternion"), "`euler_parameters: e` are four coordinates e0 to e3"),
        **dict.fromkeys(("euler", "rpy"), "angles about several axes are `body: zx, angles: [a, b]`"),
    }

    parent: str = reference("a frame", "frame that it turns against", "N")
    rotate: dict[str, Text] | None = key(ROTATION, "one rotation, about an axis of the parent", None)
    body: str | None = key(AXES, "rotations about axes of the frame itself, one after the other", None)
    space: str | None = key(AXES, "rotations about axes of the parent, one after the other", None)
    angles: tuple[Text, ...] | None = expressions(
        "of the rotations of `body` or `space`", None, example=["q", "30 deg"]
    )
    euler_parameters: str | None = key(NEW_NAME, "name of four Euler parameters", None, example="e")


@mapping
class ConstraintForm(KeyedMapping):
    """An always active row."""

    what: ClassVar[str] = "a constraint"
    example: ClassVar[str] = "wheel: {velocity: rate(x) - r*rate(q)}"

    velocity: Text | None = expression_key("expression of speeds that stays zero", None, example="rate(x) - r*rate(q)")
    position: Text | None = expression_key("expression of coordinates that stays zero", None, example="x - r*q")
    acceleration: Text | None = expression_key("rate of the speed `of`", None, example="2 m/s^2")
    of: Text | None = expression_key("speed whose rate is given", None, example="rate(x)")
    kinematic: bool = key(FLAG, "whether the row completes the definition of the speeds", False)


# -- The section ``view``: simple shapes to draw a body with, in its frame, from its centre ------------------

MAX_POINTS = 10_000


def _point(tree: Tree) -> tuple[Text, ...]:
    items = as_items(tree, "a point")
    if len(items) not in (2, 3):
        raise ModelError("a point has 2 or 3 coordinates", tree.where, found=describe(tree), allowed="[x, y]")
    return tuple(expression(item) for item in items)


def points_of(tree: Tree, least: int) -> tuple[tuple[Text, ...], ...]:
    """Return a list of at least so many points, each of 2 or 3 expressions. Raises ModelError: it is no such list."""
    items = as_items(tree, "the points")
    if not least <= len(items) <= MAX_POINTS:
        raise ModelError("too few or too many points", tree.where, found=describe(tree), allowed=f"at least {least}")
    return tuple(_point(item) for item in items)


def _polygon(tree: Tree) -> tuple[tuple[Text, ...], ...]:
    return points_of(tree, 3)


def _line(tree: Tree) -> tuple[tuple[Text, ...], ...]:
    return points_of(tree, 2)


_POINT: Final = list_of(VALUE, 2, 3)
PLACE: Final = leaf(_point, _POINT, "point, `[x, y]`", example=["0 m", "0.1 m"])
_POLYGON: Final = leaf(_polygon, list_of(_POINT, 3), "points", example=[[0, 0], ["1 m", 0], [0, "1 m"]])
_LINE: Final = leaf(_line, list_of(_POINT, 2), "points", example=[[0, 0], ["1 m", 0]])


@mapping
class DrawnCircleForm(KeyedMapping):
    """A circle to draw; its radius may stand alone."""

    what: ClassVar[str] = "a circle to draw"
    example: ClassVar[str] = "circle: {radius: 3 cm, center: [0, 1 cm]}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(center="at centre position", radius="r"), "diameter": "half of it is the 'radius'",
    }  # fmt: skip
    short: ClassVar[str] = "radius"

    radius: Text = expression_key("its radius", example="3 cm")
    center: tuple[Text, ...] | None = key(PLACE, "its centre", None, usual="that of the body")


@mapping
class DrawnTextForm(KeyedMapping):
    """A text to draw; it may stand alone."""

    what: ClassVar[str] = "a text to draw"
    example: ClassVar[str] = "text: {text: A, at: [0, 1 cm]}"
    short: ClassVar[str] = "text"

    text: str = key(TEXT, "what is written")
    at: tuple[Text, ...] | None = key(PLACE, "its place", None, usual="centre of the body")


@mapping
class DrawingForm(KeyedMapping):
    """Outlines to draw a body with, in its frame, from its centre; lengths in m or with units."""

    what: ClassVar[str] = "a shape"
    hints: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("rectangle", "box", "mesh", "file"), "points make a `polygon`"),
        **dict.fromkeys(("colour", "color"), "every body keeps one colour"),
    }
    example: ClassVar[str] = "box: {circle: {radius: 3 cm}}"

    polygon: tuple[tuple[Text, ...], ...] = key(_POLYGON, "a closed line", ())
    line: tuple[tuple[Text, ...], ...] = key(_LINE, "an open line", ())
    circle: DrawnCircleForm | None = part(DrawnCircleForm, "a circle")
    text: DrawnTextForm | None = part(DrawnTextForm, "a text")
    frame: str | None = reference("a frame", "of their x-y plane", None, usual="that of the body")

    @property
    def outlines(self) -> tuple[DrawnOutline, ...]:
        """Its outlines, in the order in which they were written."""
        found: dict[str, DrawnOutline] = {}
        if self.polygon:
            found["polygon"] = PolygonOutline(points=self.polygon, frame=self.frame)
        if self.line:
            found["line"] = LineOutline(points=self.line, frame=self.frame)
        if self.circle is not None:
            found["circle"] = CircleOutline(radius=self.circle.radius, at=self.circle.center, frame=self.frame)
        if self.text is not None:
            found["text"] = TextOutline(text=self.text.text, at=self.text.at, frame=self.frame)
        return tuple(found[word] for word in self.written_keys() if word in found)


def _drawings(tree: Tree, at: LocatedStr) -> tuple[DrawnOutline, ...]:
    items = tree if isinstance(tree, LocatedList) else [tree]
    return tuple(outline for item in items for outline in DrawingForm.read(item).outlines)


def _cord(tree: Tree, at: LocatedStr) -> CordOutline:
    """Return a belt or rope: a contact with the points that it joins."""
    ends = as_items(tree, "the points of a cord")
    if len(ends) < 2:
        raise ModelError("too few points", tree.where, found=describe(tree), allowed="the names of at least 2 points")
    return CordOutline(contact=name(at), points=tuple(name(end) for end in ends))


_CORD: Final = Kind(_cord, lambda: list_of(NAME, 2), "points")
_OUTLINES: Final = Kind(
    _drawings, lambda: {"anyOf": [reference_to(DrawingForm), {"type": "array", "items": reference_to(DrawingForm)}]},
    "outlines, or a list", mappings=(DrawingForm,),
)  # fmt: skip


@mapping
class ViewForm(KeyedMapping):
    """Drawings by body, and belts and ropes by contact."""

    what: ClassVar[str] = "view"
    example: ClassVar[str] = "view: {ball: {circle: {radius: 3 cm}}}"

    cords: tuple[CordOutline, ...] = key(
        entries(_CORD, CORDS, "cords: {belt: [P, Q]}"), "belts and ropes, by contact, wavy while it is open", ()
    )
    drawings: Mapping[str, tuple[DrawnOutline, ...]] = others(_OUTLINES, "body, or N", "its outlines")

    @property
    def by_body(self) -> Mapping[str, tuple[DrawnOutline, ...]]:
        """The outlines by body in the order in which they were written, cords under ``cords``."""
        found = {str(word): outlines for word, outlines in self.drawings.items()}
        words = {str(word): word for word in self.drawings}
        return {words.get(word, word): found.get(word, self.cords) for word in self.written_keys()}


VIEW: Final = replace(
    whole(ViewForm), read=lambda tree, at: ViewForm.read(tree, at).by_body, word="outlines by body",
    line="view: {ball: {circle: {radius: 3 cm}}}",
)  # fmt: skip


# -- Forms of the section ``shapes``: outlines for contacts --------------------------------------------------

_PAIR: Final = list_of(VALUE, 2, 2)


def _corners(tree: Tree) -> tuple[tuple[Text, ...], ...]:
    points = points_of(tree, 2)
    for item, point in zip(as_items(tree, "the points"), points, strict=True):
        if len(point) != 2:
            raise ModelError(
                "a point of a planar shape has two coordinates",
                item.where,
                found=describe(item),
                allowed="[x, y] in the shape's frame, from its point",
            )
    return points


def _size(tree: Tree) -> tuple[Text, Text, Text]:
    items = as_items(tree, "the size")
    if len(items) != 3:
        raise ModelError(
            "a box has three lengths", tree.where, found=describe(tree), allowed="[a, b, c] along x, y, z of its frame"
        )
    return expression(items[0]), expression(items[1]), expression(items[2])


def _angles(tree: Tree) -> tuple[Text, Text]:
    items = as_items(tree, "the angles")
    if len(items) != 2:
        raise ModelError("an arc runs between two angles", tree.where, found=describe(tree), allowed="[0 deg, 90 deg]")
    return expression(items[0]), expression(items[1])


def _corners_in_space(tree: Tree) -> tuple[tuple[Text, ...], ...]:
    points = points_of(tree, 4)
    for item, point in zip(as_items(tree, "the corners"), points, strict=True):
        if len(point) != 3:
            raise ModelError(
                "a corner of a polyhedron has three coordinates", item.where, found=describe(item),
                allowed="[x, y, z] in the shape's frame, from its point",
            )  # fmt: skip
    return points


def _faces(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """Return the corners of faces, numbered from 0."""
    found = []
    for item in as_items(tree, "the faces"):
        numbers = [corner.value if isinstance(corner, Scalar) else None for corner in as_items(item, "a face")]
        if len(numbers) < 3 or not all(isinstance(number, int) and number >= 1 for number in numbers):
            raise ModelError(
                "a face has three corners or more", item.where, found=describe(item),
                allowed="numbers of corners, the first is 1, such as [1, 2, 3]",
            )  # fmt: skip
        found.append(tuple(int(number) - 1 for number in numbers if number is not None))
    return tuple(found)


CORNERS: Final = leaf(_corners, list_of(_PAIR, 2), "points", example=[["0 m", "0 m"], ["1 m", "0 m"]])
_CORNERS_IN_SPACE: Final = leaf(
    _corners_in_space, list_of(list_of(VALUE, 3, 3), 4), "points in space",
    example=[["0 m", "0 m", "0 m"], ["1 m", "0 m", "0 m"], ["0 m", "1 m", "0 m"], ["0 m", "0 m", "1 m"]],
)  # fmt: skip
_FACES: Final = leaf(
    _faces, list_of(list_of({"type": "integer", "minimum": 1}, 3), 4), "lists of corners",
    example=[[1, 3, 2], [1, 2, 4], [2, 3, 4], [1, 4, 3]],
)  # fmt: skip
_SIZE: Final = leaf(_size, list_of(VALUE, 3, 3), "three lengths", example=["30 cm", "20 cm", "10 cm"])
_ANGLES: Final = leaf(_angles, _PAIR, "two angles", example=["0 deg", "90 deg"])
_PLACE_HINTS: Final = in_place_of(frame="body parent")
_CENTRE_HINTS: Final = {**_PLACE_HINTS, **in_place_of(center="centre from position at", radius="r"),
                        "diameter": "half of it is the 'radius'"}  # fmt: skip
_SIDE_OF: Final = "`side` is a key of the shape: {{{0}: {{...}}, side: N.y}}"


@mapping
class OutlineForm(KeyedMapping):
    """A rigid outline; ``placed_by`` is the field with its point."""

    placed_by: ClassVar[str] = "origin"
    hints: ClassVar[Mapping[str, str]] = _PLACE_HINTS

    frame: str = reference("a frame", "that it turns with", "N")


@mapping
class OutlineFromForm(OutlineForm):
    """An outline given from a point."""

    origin: str | None = reference(
        "a point", "that it moves with", None, name="from", usual="centre of the first body on its frame"
    )


@mapping
class CentredForm(OutlineForm):
    """An outline about a point."""

    placed_by: ClassVar[str] = "center"
    hints: ClassVar[Mapping[str, str]] = _CENTRE_HINTS

    center: str | None = reference("a point", "its centre", None, usual="centre of the first body on its frame")


@mapping
class RoundForm(CentredForm):
    """An outline with a radius."""

    radius: Text = expression_key("its radius", example="3 cm")


@mapping
class LineForm(OutlineFromForm):
    """A line without ends."""

    what: ClassVar[str] = "a line"
    example: ClassVar[str] = "line: {along: N.x}"
    hints: ClassVar[Mapping[str, str]] = {
        **_PLACE_HINTS, **in_place_of(along="direction"), "side": _SIDE_OF.format("line"),
    }  # fmt: skip

    along: Text = expression_key("vector along it", type="vector")


@mapping
class SegmentForm(OutlineFromForm):
    """A straight face with two ends."""

    what: ClassVar[str] = "a segment"
    example: ClassVar[str] = "segment: {points: [[0, 0], [1 m, 0]]}"
    hints: ClassVar[Mapping[str, str]] = {
        **_PLACE_HINTS, "side": _SIDE_OF.format("segment"), "to": "both ends are `points: [[...], [...]]`",
    }  # fmt: skip

    points: tuple[tuple[Text, ...], ...] | None = key(CORNERS, "its two ends, in the frame", None)
    ends: tuple[str, str] | None = key(PAIR, "its two ends, points of the model", None)


@mapping
class CircleForm(RoundForm):
    """A whole circle; of radius 0 a point."""

    what: ClassVar[str] = "a circle"
    example: ClassVar[str] = "circle: {frame: B, center: P, radius: 3 cm}"


@mapping
class ArcForm(RoundForm):
    """A part of a circle, against the clock from the first angle to the second."""

    what: ClassVar[str] = "an arc"
    example: ClassVar[str] = "arc: {frame: B, center: P, radius: 3 cm, angles: [0, 90 deg]}"

    angles: tuple[Text, Text] = key(_ANGLES, "from the x axis of the frame, first and last")


@mapping
class PolygonForm(OutlineFromForm):
    """A closed chain of faces."""

    what: ClassVar[str] = "a polygon"
    example: ClassVar[str] = "polygon: {frame: B, points: [[0, 0], [1 m, 0], [0, 1 m]]}"

    points: tuple[tuple[Text, ...], ...] = key(CORNERS, "its corners, in either sense", ())
    file: str = key(TEXT, "or a drawing, `.dxf`, `.svg` or `.step`, in the folder of the model", "", example="pawl.dxf")
    layer: str = key(TEXT, "layer of DXF, id or label of SVG", "", usual="all of the drawing", example="outline")
    plane: str = key(TEXT, "that cuts the solid of a STEP file, across an axis of the part", "", example="z = 2.5 mm")
    unit: str = key(UNIT, "of the drawing, if it has none itself", "", example="mm")
    tolerance: Text | None = expression_key(
        "largest distance of arcs and splines from their chords", None, unit=LENGTH,
        usual="a thousandth of its size", example="10 um",
    )  # fmt: skip

    def checked(self) -> Self:
        """Return the polygon if its corners are given in one way."""
        given = exactly_one(self, ("points", "file"))
        only_with(self, given, ("frame", "from", *(("layer", "plane", "unit", "tolerance") if given == "file" else ())))
        return self


@mapping
class CurveForm(OutlineFromForm):
    """A smooth closed outline."""

    what: ClassVar[str] = "a curve"
    example: ClassVar[str] = "curve: {frame: B, r: r + 2 cm*cos(2*phi)}"

    r: Text | None = expression_key("radius, a function of the angle `phi`", None, example="0.1 m + 2 cm*cos(2*phi)")
    x: Text | None = expression_key("function of `s`, from 0 to 2 pi", None, example="0.2 m*cos(s)")
    y: Text | None = expression_key("function of `s`", None, example="0.1 m*sin(s)")
    points: tuple[tuple[Text, ...], ...] | None = key(CORNERS, "points of a periodic spline, at least three", None)


@mapping
class SphereForm(RoundForm):
    """A sphere."""

    what: ClassVar[str] = "a sphere"
    example: ClassVar[str] = "sphere: {frame: B, center: P, radius: 3 cm}"


@mapping
class PlaneForm(OutlineFromForm):
    """A plane without ends."""

    what: ClassVar[str] = "a plane"
    example: ClassVar[str] = "plane: {frame: N, from: O}"


@mapping
class DiskForm(CentredForm):
    """A thin disk, touched at its rim."""

    what: ClassVar[str] = "a disk"
    example: ClassVar[str] = "disk: {frame: B, center: P, axis: B.z, radius: 3 cm}"

    axis: Text = expression_key("vector across it", type="vector", example="B.z")
    radius: Text = expression_key("of its rim", example="3 cm")


@mapping
class BoxForm(CentredForm):
    """A box, whose edges are along the axes of its frame."""

    what: ClassVar[str] = "a box"
    example: ClassVar[str] = "box: {frame: B, center: P, size: [30 cm, 20 cm, 10 cm]}"

    size: tuple[Text, Text, Text] = key(_SIZE, "along x, y and z of the frame")


@mapping
class PolyhedronForm(OutlineFromForm):
    """A convex polyhedron."""

    what: ClassVar[str] = "a polyhedron"
    example: ClassVar[str] = (
        "polyhedron: {frame: B, corners: [[0 m, 0 m, 0 m], [1 m, 0 m, 0 m], [0 m, 1 m, 0 m], [0 m, 0 m, 1 m]]}"
    )
    hints: ClassVar[Mapping[str, str]] = {**_PLACE_HINTS, **in_place_of(corners="points vertices")}

    corners: tuple[tuple[Text, ...], ...] = key(_CORNERS_IN_SPACE, "its corners, in the frame")
    faces: tuple[tuple[int, ...], ...] | None = key(
        _FACES, "corners of each face, the first is 1, in either sense", None, usual="the faces of the convex hull"
    )


_FEATURE: Final = re.compile(r"(face|corner|piece|edge) ?([1-9][0-9]*)|face|start|end")


def _features(tree: Tree) -> dict[LocatedStr, LocatedStr]:
    """Return the labels of named features by name: ``corner 2`` is ``2``, as in names of contacts."""
    found: dict[LocatedStr, LocatedStr] = {}
    for word, item in as_section(tree, "features", "features: {toe: corner 2}").items():
        text = _FEATURE.fullmatch(item.text) if isinstance(item, Scalar) and isinstance(item.value, str) else None
        if text is None:
            raise ModelError(
                "a face, a corner or an end is wanted", item.where, found=describe(item),
                allowed="face 2, corner 3, in space edge 4, of segments and arcs face, start, end, of curves with "
                "hollows piece 1",
            )  # fmt: skip
        numbered = f"{text[1]}{text[2]}" if text[1] in ("face", "edge") else text[2]
        label = text[0] if text[2] is None else numbered
        found[name(word)] = LocatedStr(label, item.where)
    return found


_FEATURES: Final = leaf(
    _features,
    {"type": "object", "patternProperties": {NAME_PATTERN: {"type": "string"}}, "additionalProperties": False},
    "features by name", holds="words", example={"toe": "corner 2"},
)  # fmt: skip


@mapping
class GeometryForm(KeyedMapping):
    """A shape: one outline, its free side, its copies."""

    what: ClassVar[str] = "a shape"
    example: ClassVar[str] = "ground: {line: {along: N.x}, side: N.y}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(plane="half_space", sphere="ball", disk="cylinder"),
        **dict.fromkeys(("rectangle", "mesh"), "points make a `polygon`; in space a `polyhedron`, or a `box`"),
        "point": "a point touches by `{point: P, on: shape}` under `contacts`",
    }

    line: LineForm | None = part(LineForm, "a line without ends")
    segment: SegmentForm | None = part(SegmentForm, "a straight face with two ends")
    circle: CircleForm | None = part(CircleForm, "a whole circle")
    arc: ArcForm | None = part(ArcForm, "a part of a circle")
    polygon: PolygonForm | None = part(PolygonForm, "a closed chain of faces")
    curve: CurveForm | None = part(CurveForm, "a smooth closed outline")
    sphere: SphereForm | None = part(SphereForm, "a sphere")
    plane: PlaneForm | None = part(PlaneForm, "a plane without ends")
    disk: DiskForm | None = part(DiskForm, "a thin disk")
    box: BoxForm | None = part(BoxForm, "a box")
    polyhedron: PolyhedronForm | None = part(PolyhedronForm, "a convex polyhedron")
    side: Text | None = expression_key(
        "free side: a vector, of round outlines and polygons `inside` or `outside`", None, type="vector", example="N.y"
    )
    repeat: Repeat | None = part(Repeat, "copies turned about a point, or along a vector")
    features: Mapping[LocatedStr, LocatedStr] = key(
        _FEATURES, "names of its faces, corners and ends", factory=dict, example={"toe": "corner 2"}
    )


# -- Forms of loads ------------------------------------------------------------------------------------------


@mapping
class LengthForm(KeyedMapping):
    """A length between two points, or a coordinate."""

    hints: ClassVar[Mapping[str, str]] = in_place_of(
        free="natural_length rest_length unstretched l0 length", damping="damping_coefficient c d b",
        stiffness="k spring_rate", between="points from to", coordinate="joint",
    )  # fmt: skip

    between: tuple[str, str] | None = key(PAIR, "along the line between two points", None)
    coordinate: Text | None = expression_key("on an expression of coordinates", None, example="q")


@mapping
class SpringForm(LengthForm):
    """A spring between two points or on a coordinate; ``damping`` acts on the rate of its length."""

    what: ClassVar[str] = "a spring"
    example: ClassVar[str] = "spring: {between: [O, P], stiffness: 200 N/m, free: 0.1 m}"

    stiffness: Text = expression_key("force per length, or per unit of the coordinate", example="200 N/m")
    free: Text | None = expression_key("length without force", None, usual="0", example="0.1 m")
    damping: Text | None = expression_key("force per speed", None, usual="0", example="3 N*s/m")


@mapping
class DamperForm(LengthForm):
    """A damper between two points or on a coordinate."""

    what: ClassVar[str] = "a damper"
    example: ClassVar[str] = "damper: {coordinate: x, damping: 3 N*s/m}"

    damping: Text = expression_key("force per speed", example="3 N*s/m")


@mapping
class TorsionSpringForm(KeyedMapping):
    """A spring on an angle."""

    what: ClassVar[str] = "a torsion spring"
    example: ClassVar[str] = "torsion_spring: {coordinate: q, stiffness: 0.2 N*m/rad}"

    coordinate: Text = expression_key("angle, an expression of coordinates", example="q")
    stiffness: Text = expression_key("torque per angle", example="0.2 N*m/rad")
    free: Text | None = expression_key("angle without torque", None, usual="0", example="10 deg")
    damping: Text | None = expression_key("torque per angular speed", None, usual="0", example="0.1 N*m*s")


@mapping
class ImpulseForm(LengthForm):
    """An impulse of a transition: ``linear`` at a point, ``angular`` on a body, or ``along`` a length or coordinate."""

    what: ClassVar[str] = "an impulse"
    example: ClassVar[str] = "{linear: 0.2 N*s*N.x, at: P}"
    first: ClassVar[tuple[str, ...]] = ("linear", "at", "angular", "on", "reaction", "along")

    linear: Text | None = expression_key("vector, N s", None, type="vector", example="0.2 N*s*N.x")
    at: str | None = reference("a point", "struck by `linear`", None)
    angular: Text | None = expression_key("vector, N m s", None, type="vector", example="0.1 N*m*s*N.z")
    on: str | None = reference("a body", "struck by `angular`", None)
    reaction: str | None = reference("a body", "that gets the opposite of `angular`", None)
    along: Text | None = expression_key("impulse on a length or coordinate; positive enlarges it", None,
                                        example="0.1 N*s")  # fmt: skip


@mapping
class LoadForm(LengthForm):
    """A load; the given key is its kind."""

    what: ClassVar[str] = "a load"
    example: ClassVar[str] = "{force: push*N.x, at: P}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(at="point", torque="moment couple", torsion_spring="rotational_spring", damper="dashpot"),
        "weight": "weights follow from the masses: {gravity: -9.81 m/s^2*N.y}",
        **dict.fromkeys(("stiffness", "damping", "free"), "it is a key of `spring: {coordinate: q, stiffness: 9 N/m}`"),
    }  # fmt: skip
    first: ClassVar[tuple[str, ...]] = (
        "name", "force", "at", "torque", "on", "reaction", "gravity", "gravity_gradient",
        "spring", "damper", "torsion_spring", "law",
    )  # fmt: skip

    name: str | None = key(NEW_NAME, "for its work in the energy balance", None, example="shove")
    force: Text | None = expression_key("vector, N, at the point `at`", None, type="vector", example="3 N*N.x")
    at: str | None = reference("a point", "of application of `force`; of the mass of `gravity_gradient`", None)
    torque: Text | None = expression_key("vector, N m, on the body `on`", None, type="vector", example="2 N*m*N.z")
    on: str | None = reference("a body", "acted on by `torque` or `gravity_gradient`, or alone by `gravity`", None)
    reaction: str | None = reference("a body", "that gets the opposite of `torque`", None)
    gravity: Text | None = expression_key(
        "vector, acceleration of all bodies or of `on`", None, type="vector", example="-9.81 m/s^2*N.y"
    )
    gravity_gradient: Text | None = expression_key(
        "of a distant mass at the point `at`: G times it, m^3/s^2; the torque on `on`", None, example="4e14 m^3/s^2"
    )
    spring: SpringForm | None = part(SpringForm, "between points or on a coordinate")
    damper: DamperForm | None = part(DamperForm, "between points or on a coordinate")
    torsion_spring: TorsionSpringForm | None = part(TorsionSpringForm, "on an angle")
    law: Text | None = expression_key(
        "force along `between` or on `coordinate`; positive enlarges it", None, example="-2 N*s/m*rate(x)"
    )
