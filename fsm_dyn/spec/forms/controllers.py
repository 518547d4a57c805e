"""Forms of sampled controllers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.forms.fields import Expression, Key
from fsm_dyn.spec.forms.form import Form, section_of, validated
from fsm_dyn.spec.forms.geometry import unit_text
from fsm_dyn.spec.yaml_tree import LocatedMapping, LocatedStr, Scalar, Tree, describe

MOST_DELAY = 100


def _delay(tree: Tree) -> int:
    value = tree.value if isinstance(tree, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_DELAY:
        return value
    raise ModelError(
        "a delay is a whole number of samples",
        tree.where,
        found=describe(tree),
        allowed=f"0 to {MOST_DELAY}",
        remedy="a delay of parts of a period is a controller with a shorter period",
    )


Unit: TypeAlias = Annotated[str, PlainValidator(unit_text), WithJsonSchema({"type": ["string", "number", "null"]})]


class SampledInputForm(Form):
    """What a controller samples."""

    what: ClassVar[str] = "an input of a controller"

    value: Expression
    quantum: Expression | None = None


class ControllerMemoryForm(Form):
    """A number that a controller keeps from sample to sample."""

    what: ClassVar[str] = "a memory of a controller"

    unit: Unit = ""
    start: Expression | None = None
    update: Expression


class ControllerOutputForm(Form):
    """A number that a controller computes at its samples and that is constant between them."""

    what: ClassVar[str] = "an output of a controller"

    unit: Unit = ""
    start: Expression | None = None
    value: Expression
    quantum: Expression | None = None


def _input(tree: Tree) -> SampledInputForm:
    if not isinstance(tree, LocatedMapping):
        tree = LocatedMapping({LocatedStr("value", tree.where): tree}, tree.where)
    return validated(SampledInputForm, tree)


_VALUE: dict[str, Any] = {"type": ["string", "number"]}
_INPUT = {
    "anyOf": [
        _VALUE,
        {
            "type": "object",
            "properties": {"value": _VALUE, "quantum": _VALUE},
            "required": ["value"],
            "additionalProperties": False,
        },
    ]
}
SampledInput: TypeAlias = Annotated[SampledInputForm, PlainValidator(_input), WithJsonSchema(_INPUT)]
Delay: TypeAlias = Annotated[
    int, PlainValidator(_delay), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_DELAY})
]


class ControllerForm(Form):
    """A sampled controller."""

    what: ClassVar[str] = "a controller"

    period: Expression
    delay: Delay = 0
    inputs: Annotated[dict[Key, SampledInput], section_of("the inputs of a controller")] = Field(default_factory=dict)
    memory: Annotated[dict[Key, ControllerMemoryForm], section_of("the memory of a controller")] = Field(
        default_factory=dict
    )
    outputs: Annotated[dict[Key, ControllerOutputForm], section_of("the outputs of a controller")]
