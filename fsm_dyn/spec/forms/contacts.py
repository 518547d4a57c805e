"""Forms of contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.base import Form, validated
from fsm_dyn.spec.forms.fields import Expression, Flag, Law, OneOrTwo, Pair, Reference, expression
from fsm_dyn.spec.tree import Scalar, Section, Tree


class _CoefficientsForm(Form):
    what: ClassVar[str] = "friction"

    static: Expression
    kinetic: Expression


@dataclass(frozen=True, slots=True)
class Friction:
    """Coefficients of friction; ``infinite``: sticks whenever closed."""

    static: Text | None = None
    kinetic: Text | None = None
    infinite: bool = False


def _friction(tree: Tree) -> Friction:
    if isinstance(tree, Section):
        form = validated(_CoefficientsForm, tree)
        return Friction(form.static, form.kinetic)
    if isinstance(tree, Scalar) and (tree.text == "inf" or tree.value == float("inf")):
        return Friction(infinite=True)
    both = expression(tree)
    return Friction(both, both)


FrictionField: TypeAlias = Annotated[
    Friction,
    PlainValidator(_friction),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "inf", "description": "sticks whenever closed"},
                {"type": ["string", "number"], "description": "static and kinetic coefficient"},
                {
                    "type": "object",
                    "properties": {
                        "static": {"type": ["string", "number"]},
                        "kinetic": {"type": ["string", "number"]},
                    },
                    "required": ["static", "kinetic"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class JointStopForm(Form):
    """Limits of a coordinate."""

    what: ClassVar[str] = "a joint stop"

    coordinate: Expression
    lower: Expression | None = None
    upper: Expression | None = None


class DryFrictionForm(Form):
    """Dry friction on a speed."""

    what: ClassVar[str] = "dry friction"

    speed: Expression
    static: Expression
    kinetic: Expression


class LockForm(Form):
    """A row that transitions engage and release."""

    what: ClassVar[str] = "a lock"

    position: Expression | None = None
    velocity: Expression | None = None


class ComplianceForm(Form):
    """The force of a contact that yields."""

    what: ClassVar[str] = "a compliance"

    stiffness: Expression
    exponent: Expression | None = None
    loss: Expression | None = None


class ContactForm(Form):
    """A contact: between shapes, by its gap, a joint stop, dry friction or a lock."""

    what: ClassVar[str] = "a contact"
    hints: ClassVar[Mapping[str, str]] = {"repeat": "a shape is repeated: `repeat` stands with it under `shapes`"}

    between: Pair | None = None
    point: Reference | None = None
    on: Reference | None = None
    gap: Expression | None = None
    slip: OneOrTwo | None = None
    friction: FrictionField | None = None
    restitution: Expression | None = None
    law: Law = "newton"
    closes_if: Expression | None = None
    pitch: Expression | None = None
    bilateral: Flag = False
    compliant: ComplianceForm | None = None
    joint_stop: JointStopForm | None = None
    dry_friction: DryFrictionForm | None = None
    lock: LockForm | None = None
