"""Forms of parameters, coordinates, frames, points, bodies and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.fields import (
    Expression,
    Expressions,
    Flag,
    FreeText,
    NewName,
    Reference,
    as_section,
    expression,
    key,
)
from fsm_dyn.spec.forms.form import Form, section_of, validated
from fsm_dyn.spec.forms.parameter_tolerances import toleranced, without_tolerance
from fsm_dyn.spec.model import Coordinate, Parameter
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

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
    """A coordinate with its unit, a word for what it is, and the bounds that it stays within."""

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
        """Return the entries that were written, in the order xx yy zz xy yz xz."""
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
    """A row that is always active."""

    what: ClassVar[str] = "a constraint"

    velocity: Expression | None = None
    position: Expression | None = None
    acceleration: Expression | None = None
    of: Expression | None = None
    kinematic: Flag = False
