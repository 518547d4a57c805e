"""Forms of parameters, coordinates, frames, points, bodies, constraints, shapes, views and loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import (
    Expression,
    Expressions,
    Flag,
    Form,
    FreeText,
    NewName,
    Pair,
    Reference,
    as_items,
    as_section,
    expression,
    free_text,
    key,
    name,
    section_of,
    validated,
)
from fsm_dyn.language.model import Coordinate, Parameter, ParameterTolerance
from fsm_dyn.language.shapes import (
    CORDS,
    CircleOutline,
    CordOutline,
    DrawnOutline,
    DrawnPoint,
    LineOutline,
    PolygonOutline,
    TextOutline,
)
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


class ToleranceForm(Form):
    """A parameter with its tolerance."""

    what: ClassVar[str] = "a parameter with a tolerance"

    value: Expression | None = None
    tolerance: Annotated[tuple[Text, Text] | None, PlainValidator(_pair)] = None
    normal: Expression | None = None
    sigma: Expression | None = None
    uniform: Annotated[tuple[Text, Text] | None, PlainValidator(_pair)] = None


def toleranced(tree: Tree) -> tuple[Text, ParameterTolerance | None]:
    """Return the nominal value of a scalar parameter, and its tolerance if it has one.

    Raises
    ------
    ModelError
        The text or mapping of the tolerance is invalid; with its place.
    """
    if isinstance(tree, LocatedMapping):
        return _of_form(validated(ToleranceForm, tree))
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
    keys = set(form.given())
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
        form.where,
        found=", ".join(form.given()) or "no keys",
        allowed="{value, tolerance}, {normal, sigma} or {uniform}",
    )


# -- Forms of parameters, coordinates, frames, points, bodies and constraints --------------------------------

MAX_ELEMENTS = 100


def unit_text(tree: Tree) -> str:
    """Return the text of a unit, empty for none; whether it is a unit is checked with the dimensions."""
    if isinstance(tree, Scalar) and (tree.value is None or isinstance(tree.value, str) or tree.value == 1):
        return LocatedStr(tree.text, tree.where)
    raise ModelError("a unit is wanted", tree.where, found=describe(tree), allowed="m, rad, N, N*m, ... or 1")


def _parameters(tree: Tree) -> dict[str, Parameter]:
    from_section: dict[str, Parameter] = {}
    for word, value in as_section(tree, "parameters").items():
        name = key(word)
        if isinstance(value, LocatedList):
            if not 1 <= len(value) <= MAX_ELEMENTS:
                raise ModelError("a vector has 1 to 100 elements", value.where, found=describe(value))
            texts = tuple(without_tolerance(item) for item in value)
            from_section[name] = Parameter(name, texts, True, name.where)
        else:
            text, tolerance = toleranced(value)
            from_section[name] = Parameter(name, (text,), False, name.where, tolerance)
    return from_section


def _coordinates(tree: Tree) -> dict[str, Coordinate]:
    if isinstance(tree, LocatedList):
        words = [key(_word(item)) for item in tree]
        for at, word in enumerate(words):
            if word in words[:at]:
                raise ModelError(f"coordinate {str(word)!r} is defined twice", word.where)
        return {word: Coordinate(word, where=word.where) for word in words}
    return {key(word): _coordinate(word, entry) for word, entry in as_section(tree, "coordinates").items()}


def _coordinate(name: LocatedStr, tree: Tree) -> Coordinate:
    """Return a coordinate from its unit, or from its unit, meaning and range."""
    if not isinstance(tree, LocatedMapping):
        return Coordinate(name, unit_text(tree), where=name.where)
    form = validated(CoordinateForm, tree)
    return Coordinate(name, form.unit, form.range or (), name.where, form.meaning)


def coordinate_range(tree: Tree) -> tuple[Text | None, Text | None]:
    """Return the bounds ``[lower, upper]`` of a coordinate; None for ``-inf`` and ``inf``."""
    if not isinstance(tree, LocatedList) or len(tree) != 2:
        raise ModelError(
            "a range has a lower and an upper bound", tree.where, found=describe(tree),
            allowed="such as [0 mm, 60 mm], or [0, inf] where one side is open",
        )  # fmt: skip
    lower, upper = (expression(item) for item in tree)
    return None if lower.text == "-inf" else lower, None if upper.text == "inf" else upper


def _word(tree: Tree) -> LocatedStr:
    if isinstance(tree, Scalar) and isinstance(tree.value, str):
        return LocatedStr(tree.text, tree.where)
    raise ModelError("a name is wanted", tree.where, found=describe(tree))


_EXPRESSION: dict[str, Any] = {"type": ["string", "number"]}
_RANGE: dict[str, Any] = {"type": "array", "items": _EXPRESSION, "minItems": 2, "maxItems": 2}
_TOLERANCED: list[dict[str, Any]] = [
    {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
    for keys in (
        {"value": _EXPRESSION, "tolerance": _RANGE},
        {"normal": _EXPRESSION, "sigma": _EXPRESSION},
        {"uniform": _RANGE},
    )
]
_UNIT: dict[str, Any] = {"type": ["string", "null", "integer"], "description": "unit"}

Parameters: TypeAlias = Annotated[
    Mapping[str, Parameter],
    PlainValidator(_parameters),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION, "minItems": 1}, *_TOLERANCED]
            },
        }
    ),
]
CoordinateRange: TypeAlias = Annotated[
    tuple[Text | None, Text | None],
    PlainValidator(coordinate_range),
    WithJsonSchema(
        {"type": "array", "items": _EXPRESSION, "minItems": 2, "maxItems": 2, "description": "lower and upper bound"}
    ),
]
_RANGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "unit": _UNIT,
        "meaning": {"type": "string"},
        "range": {"type": "array", "items": _EXPRESSION, "minItems": 2, "maxItems": 2},
    },
    "additionalProperties": False,
}
Coordinates: TypeAlias = Annotated[
    Mapping[str, Coordinate],
    PlainValidator(_coordinates),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": {"anyOf": [_UNIT, _RANGED]}},
                {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            ]
        }
    ),
]


def _axes(tree: Tree) -> LocatedStr:
    if isinstance(tree, Scalar) and 1 <= len(tree.text) <= 3 and set(tree.text) <= set("xyz"):
        return LocatedStr(tree.text, tree.where)
    raise ModelError("a sequence of axes is wanted", tree.where, found=describe(tree), allowed="such as zxz, xyz, zx")


Axes: TypeAlias = Annotated[str, PlainValidator(_axes), WithJsonSchema({"type": "string", "pattern": "^[xyz]{1,3}$"})]


class CoordinateForm(Form):
    """A coordinate with its unit, a word for its meaning, and the bounds of its range."""

    what: ClassVar[str] = "a coordinate"

    unit: Annotated[str, PlainValidator(unit_text)] = ""
    meaning: FreeText = ""
    range: CoordinateRange | None = None


class FrameForm(Form):
    """A frame: one rotation, a sequence of rotations, or Euler parameters."""

    what: ClassVar[str] = "a frame"

    parent: Reference = "N"
    rotate: Annotated[dict[Reference, Expression], section_of("rotate")] | None = None
    body: Axes | None = None
    space: Axes | None = None
    angles: Expressions | None = None
    euler_parameters: NewName | None = None


class PointForm(Form):
    """A point."""

    what: ClassVar[str] = "a point"

    origin: Reference = Field(alias="from")
    at: Expression


class InertiaForm(Form):
    """An inertia tensor in the body's frame."""

    what: ClassVar[str] = "an inertia"

    xx: Expression | None = None
    yy: Expression | None = None
    zz: Expression | None = None
    xy: Expression | None = None
    yz: Expression | None = None
    xz: Expression | None = None
    about: Reference | None = None

    def entries(self) -> dict[str, Text]:
        """Return the written entries, in the order xx yy zz xy yz xz."""
        found = {name: getattr(self, name) for name in ("xx", "yy", "zz", "xy", "yz", "xz")}
        return {name: value for name, value in found.items() if value is not None}


class BodyForm(Form):
    """A rigid body or a particle."""

    what: ClassVar[str] = "a body"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'"}

    frame: Reference | None = None
    center: Reference
    mass: Expression
    inertia: InertiaForm | None = None


class ConstraintForm(Form):
    """An always active row."""

    what: ClassVar[str] = "a constraint"

    velocity: Expression | None = None
    position: Expression | None = None
    acceleration: Expression | None = None
    of: Expression | None = None
    kinematic: Flag = False


# -- The section ``view``: simple shapes to draw a body with, in its frame, from its centre ------------------

FRAME = "frame"
MAX_POINTS = 10_000


def _point(tree: Tree) -> tuple[Text, ...]:
    items = as_items(tree, "a point")
    if len(items) not in (2, 3):
        raise ModelError("a point has 2 or 3 coordinates", tree.where, found=describe(tree), allowed="[x, y]")
    return tuple(expression(item) for item in items)


def points_of(tree: Tree, least: int) -> tuple[tuple[Text, ...], ...]:
    """Return a list of at least so many points, each of 2 or 3 expressions.

    Parameters
    ----------
    tree : Tree
        The list.

    Raises
    ------
    ModelError
        It is no such list.
    """
    items = as_items(tree, "the points")
    if not least <= len(items) <= MAX_POINTS:
        raise ModelError("too few or too many points", tree.where, found=describe(tree), allowed=f"at least {least}")
    return tuple(_point(item) for item in items)


def _parts(tree: Tree, kind: str, allowed: tuple[str, ...]) -> LocatedMapping:
    section = as_section(tree, kind)
    for word in section:
        if word not in allowed:
            raise _unknown(kind, word, allowed)
    if allowed[0] not in section:
        raise ModelError(f"{kind} lacks {allowed[0]!r}", section.where, allowed=", ".join(allowed))
    return section


def _unknown(what: str, word: LocatedStr, allowed: tuple[str, ...]) -> ModelError:
    return ModelError(
        f"{what} has no key {str(word)!r}",
        word.where,
        found=word,
        allowed=", ".join(allowed),
        remedy=did_you_mean(word, allowed),
    )


def _polygon(tree: Tree) -> DrawnOutline:
    return PolygonOutline(points=points_of(tree, 3))


def _line(tree: Tree) -> DrawnOutline:
    return LineOutline(points=points_of(tree, 2))


def _circle(tree: Tree) -> DrawnOutline:
    radius, at = _placed(tree, "circle", ("radius", "center"))
    return CircleOutline(radius=expression(radius), at=at)


def _text(tree: Tree) -> DrawnOutline:
    text, at = _placed(tree, "text", ("text", "at"))
    return TextOutline(text=free_text(text), at=at)


def _placed(tree: Tree, kind: str, keys: tuple[str, str]) -> tuple[Tree, DrawnPoint | None]:
    """Return the value and the point of an outline, written as the value alone or with both keys."""
    if isinstance(tree, Scalar):
        return tree, None
    section = _parts(tree, kind, keys)
    at = section.get(LocatedStr(keys[1]))
    return section[LocatedStr(keys[0])], None if at is None else _point(at)


SHAPES: Final[Mapping[str, Callable[[Tree], DrawnOutline]]] = {
    "polygon": _polygon,
    "line": _line,
    "circle": _circle,
    "text": _text,
}


def _shapes(tree: Tree) -> tuple[DrawnOutline, ...]:
    shapes: list[DrawnOutline] = []
    for item in tree if isinstance(tree, LocatedList) else [tree]:
        section = as_section(item, "a shape")
        given = section.get(LocatedStr(FRAME))
        frame = None if given is None else name(given)
        for word, value in section.items():
            if word not in (*SHAPES, FRAME):
                raise _unknown("a shape", word, (*SHAPES, FRAME))
            if word != FRAME:
                shapes.append(replace(SHAPES[word](value), frame=frame))
    return tuple(shapes)


def _view(tree: Tree) -> dict[str, tuple[DrawnOutline, ...]]:
    section = as_section(tree, "view")
    return {name(word): _cords(value) if word == CORDS else _shapes(value) for word, value in section.items()}


def _cords(tree: Tree) -> tuple[DrawnOutline, ...]:
    """Return the belts of a view: contacts with the points that each joins."""
    cords = []
    for contact, points in as_section(tree, CORDS).items():
        ends = as_items(points, "the points of a cord")
        if len(ends) < 2:
            raise ModelError(
                "too few points", points.where, found=describe(points), allowed="the names of at least 2 points"
            )
        cords.append(CordOutline(contact=name(contact), points=tuple(name(end) for end in ends)))
    return tuple(cords)


_POINT: dict[str, Any] = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2, "maxItems": 3}
_SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "polygon": {"type": "array", "items": _POINT, "minItems": 3},
        "line": {"type": "array", "items": _POINT, "minItems": 2},
        "circle": {"type": ["string", "number", "object"]},
        "text": {"type": ["string", "object"]},
        FRAME: {"type": "string"},
    },
    "additionalProperties": False,
}

ViewField: TypeAlias = Annotated[
    Mapping[str, tuple[DrawnOutline, ...]],
    PlainValidator(_view),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                CORDS: {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}, "minItems": 2},
                }
            },
            "additionalProperties": {"anyOf": [_SHAPE, {"type": "array", "items": _SHAPE}]},
        },
    ),
]


# -- Forms of the section ``shapes``: outlines for contacts --------------------------------------------------

MOST_COPIES = 1000

_PAIR: dict[str, Any] = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2, "maxItems": 2}


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


def _count(tree: Tree) -> int:
    value = tree.value if isinstance(tree, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_COPIES:
        return value
    raise ModelError("a number of copies is wanted", tree.where, found=describe(tree), allowed=f"1 to {MOST_COPIES}")


Corners: TypeAlias = Annotated[
    tuple[tuple[Text, ...], ...],
    PlainValidator(_corners),
    WithJsonSchema({"type": "array", "items": _PAIR, "minItems": 2}),
]
Size: TypeAlias = Annotated[
    tuple[Text, Text, Text],
    PlainValidator(_size),
    WithJsonSchema({**_PAIR, "minItems": 3, "maxItems": 3}),
]
Angles: TypeAlias = Annotated[tuple[Text, Text], PlainValidator(_angles), WithJsonSchema(_PAIR)]
Count: TypeAlias = Annotated[
    int, PlainValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_COPIES})
]


class LineForm(Form):
    """A line without ends."""

    what: ClassVar[str] = "a line"

    frame: Reference = "N"
    origin: Reference | None = Field(default=None, alias="from")
    along: Expression


class SegmentForm(Form):
    """A straight face with two ends."""

    what: ClassVar[str] = "a segment"
    hints: ClassVar[Mapping[str, str]] = {"side": "`side` stands beside `segment`: {segment: {...}, side: N.y}"}

    frame: Reference = "N"
    origin: Reference | None = Field(default=None, alias="from")
    points: Corners | None = None
    ends: Pair | None = None


class CircleForm(Form):
    """A whole circle."""

    what: ClassVar[str] = "a circle"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'", "from": "the key is 'center'"}

    frame: Reference = "N"
    center: Reference | None = None
    radius: Expression


class ArcForm(Form):
    """A part of a circle, against the clock from the first angle to the second."""

    what: ClassVar[str] = "an arc"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'", "from": "the key is 'center'"}

    frame: Reference = "N"
    center: Reference | None = None
    radius: Expression
    angles: Angles


class PolygonForm(Form):
    """A closed chain of faces."""

    what: ClassVar[str] = "a polygon"

    frame: Reference = "N"
    origin: Reference | None = Field(default=None, alias="from")
    points: Corners


class CurveForm(Form):
    """A smooth closed outline."""

    what: ClassVar[str] = "a curve"

    frame: Reference = "N"
    origin: Reference | None = Field(default=None, alias="from")
    r: Expression | None = None
    x: Expression | None = None
    y: Expression | None = None
    points: Corners | None = None


class SphereForm(Form):
    """A sphere."""

    what: ClassVar[str] = "a sphere"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'", "from": "the key is 'center'"}

    frame: Reference = "N"
    center: Reference | None = None
    radius: Expression


class PlaneForm(Form):
    """A plane without ends."""

    what: ClassVar[str] = "a plane"

    frame: Reference = "N"
    origin: Reference | None = Field(default=None, alias="from")


class DiskForm(Form):
    """A thin disk, touched at its rim."""

    what: ClassVar[str] = "a disk"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'", "from": "the key is 'center'"}

    frame: Reference = "N"
    center: Reference | None = None
    axis: Expression
    radius: Expression


class BoxForm(Form):
    """A box, whose edges are along the axes of its frame."""

    what: ClassVar[str] = "a box"
    hints: ClassVar[Mapping[str, str]] = {"centre": "the key is 'center'", "from": "the key is 'center'"}

    frame: Reference = "N"
    center: Reference | None = None
    size: Size


class RepeatForm(Form):
    """Copies turned about a point."""

    what: ClassVar[str] = "a repetition"

    count: Count
    about: Reference
    angle: Expression | None = None


class GeometryForm(Form):
    """A shape: one outline, its free side, its copies."""

    what: ClassVar[str] = "a shape"
    line: LineForm | None = None
    segment: SegmentForm | None = None
    circle: CircleForm | None = None
    arc: ArcForm | None = None
    polygon: PolygonForm | None = None
    curve: CurveForm | None = None
    sphere: SphereForm | None = None
    plane: PlaneForm | None = None
    disk: DiskForm | None = None
    box: BoxForm | None = None
    side: Expression | None = None
    repeat: RepeatForm | None = None


# -- Forms of loads ------------------------------------------------------------------------------------------


class SpringForm(Form):
    """A spring between two points or on a coordinate; ``damping`` acts on the rate of its length."""

    what: ClassVar[str] = "a spring"

    between: Pair | None = None
    coordinate: Expression | None = None
    stiffness: Expression
    free: Expression | None = None
    damping: Expression | None = None


class DamperForm(Form):
    """A damper between two points or on a coordinate."""

    what: ClassVar[str] = "a damper"

    between: Pair | None = None
    coordinate: Expression | None = None
    damping: Expression


class TorsionSpringForm(Form):
    """A spring on an angle."""

    what: ClassVar[str] = "a torsion spring"

    coordinate: Expression
    stiffness: Expression
    free: Expression | None = None
    damping: Expression | None = None


class ImpulseForm(Form):
    """An impulse of a transition: ``linear`` at a point, ``angular`` on a body, or ``along`` a length or coordinate."""

    what: ClassVar[str] = "an impulse"

    linear: Expression | None = None
    at: Reference | None = None
    angular: Expression | None = None
    on: Reference | None = None
    reaction: Reference | None = None
    along: Expression | None = None
    between: Pair | None = None
    coordinate: Expression | None = None


class LoadForm(Form):
    """A load; the given key is its kind."""

    what: ClassVar[str] = "a load"

    name: NewName | None = None
    force: Expression | None = None
    at: Reference | None = None
    torque: Expression | None = None
    on: Reference | None = None
    reaction: Reference | None = None
    gravity: Expression | None = None
    spring: SpringForm | None = None
    damper: DamperForm | None = None
    torsion_spring: TorsionSpringForm | None = None
    law: Expression | None = None
    between: Pair | None = None
    coordinate: Expression | None = None
