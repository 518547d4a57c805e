"""Forms of the section ``shapes``: outlines that contacts are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.fields import Expression, Pair, Reference, as_items, expression
from fsm_dyn.spec.forms.form import Form
from fsm_dyn.spec.forms.view import points_of
from fsm_dyn.spec.yaml_tree import Scalar, Tree, describe

MOST_COPIES = 1000

_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2, "maxItems": 2}


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
    WithJsonSchema({"type": "array", "items": _NUMBERS, "minItems": 2}),
]
Size: TypeAlias = Annotated[
    tuple[Text, Text, Text],
    PlainValidator(_size),
    WithJsonSchema({**_NUMBERS, "minItems": 3, "maxItems": 3}),
]
Angles: TypeAlias = Annotated[tuple[Text, Text], PlainValidator(_angles), WithJsonSchema(_NUMBERS)]
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
