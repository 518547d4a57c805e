"""Forms of the sections that bring in other texts: ``use`` and ``variants``."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.fields import FreeText, Reference, as_section, expression, key, name
from fsm_dyn.spec.forms.form import Form, exactly_one, validated
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, Tree, describe

MOST_VARIANTS = 30

_EXPRESSION: dict[str, Any] = {"type": ["string", "number"]}


class PlaceForm(Form):
    """Where a component is attached."""

    what: ClassVar[str] = "a place to attach to"

    frame: Reference = "N"
    point: Reference = "O"


def _given(tree: Tree) -> dict[str, tuple[Text, ...]]:
    """Return parameters as they are given to a component; one that is a list is a vector."""
    return {
        name(word): tuple(map(expression, value)) if isinstance(value, LocatedList) else (expression(value),)
        for word, value in as_section(tree, "with").items()
    }


def _place(tree: Tree) -> PlaceForm | str:
    return validated(PlaceForm, tree) if isinstance(tree, LocatedMapping) else name(tree)


def _model(tree: Tree) -> LocatedMapping:
    if isinstance(tree, LocatedMapping):
        return tree
    raise ModelError("a whole model is wanted", tree.where, found=describe(tree), allowed="a mapping, as in a file")


Given: TypeAlias = Annotated[
    dict[str, tuple[Text, ...]],
    PlainValidator(_given),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"anyOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION}]}}
    ),
]
Attach: TypeAlias = Annotated[
    PlaceForm | str,
    PlainValidator(_place),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "description": "a body"},
                {
                    "type": "object",
                    "properties": {"frame": {"type": "string"}, "point": {"type": "string"}},
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Inline: TypeAlias = Annotated[LocatedMapping, PlainValidator(_model), WithJsonSchema({"type": "object"})]


class UseForm(Form):
    """A component: another model, as a part of this one."""

    what: ClassVar[str] = "a component"

    file: FreeText | None = None
    model: Inline | None = None
    values: Given = Field(default_factory=dict, alias="with")
    attach: Attach = "N"

    def check(self) -> None:
        """Refuse a component without a model, or with two.

        Raises
        ------
        ModelError
            Where neither or both of ``file`` and ``model`` are written.
        """
        exactly_one(self, ("file", "model"))


def _variants(tree: Tree) -> dict[str, LocatedMapping]:
    found: dict[str, LocatedMapping] = {}
    section = as_section(tree, "variants")
    for word, value in section.items():
        overlay = as_section(value, f"variant {str(word)!r}")
        for inner in overlay:
            if inner in ("fsm_dyn", "variants"):
                raise ModelError(f"a variant cannot change {str(inner)!r}", inner.where)
        found[key(word)] = overlay
    if len(found) > MOST_VARIANTS:
        raise ModelError("too many variants", section.where, found=str(len(found)), allowed=str(MOST_VARIANTS))
    return found


VariantsField: TypeAlias = Annotated[
    dict[str, LocatedMapping],
    PlainValidator(_variants),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "object"}}),
]
