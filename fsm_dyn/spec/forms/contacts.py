"""Forms of contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import PlainValidator, WithJsonSchema, create_model

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.laws import LAWS, Entry
from fsm_dyn.laws import Law as ContactLaw
from fsm_dyn.spec.forms.fields import Expression, Flag, Law, OneOrTwo, Reference, as_items, expression, name
from fsm_dyn.spec.forms.form import Form, validated
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, Scalar, Tree, describe


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
    if isinstance(tree, LocatedMapping):
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


def _shape_groups(tree: Tree) -> tuple[tuple[str, ...], ...]:
    """Return two or more groups of shapes, a name alone being a group of one; none for all shapes."""
    if isinstance(tree, Scalar) and tree.text == "all":
        return ()
    groups = tuple(_shape_group(item) for item in as_items(tree, "a list of shapes"))
    if len(groups) < 2:
        raise ModelError(
            "two names are wanted",
            tree.where,
            found=describe(tree),
            allowed="[P, Q], a longer list, a list of groups [[P, Q], [R]], all",
        )
    return groups


def _shape_group(tree: Tree) -> tuple[str, ...]:
    if not isinstance(tree, LocatedList):
        return (name(tree),)
    if not tree:
        raise ModelError("a group of shapes is empty", tree.where, allowed="the names of its shapes")
    return tuple(name(item) for item in tree)


ShapeGroups: TypeAlias = Annotated[
    tuple[tuple[str, ...], ...],
    PlainValidator(_shape_groups),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "all", "description": "each of the shapes with each other"},
                {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"type": "string"},
                            {
                                "type": "array",
                                "items": {"type": "string"},
                                "minItems": 1,
                                "description": "a group: its shapes with those of the others, not with each other",
                            },
                        ]
                    },
                    "minItems": 2,
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


class ComplianceForm(Form):
    """The force of a contact that yields."""

    what: ClassVar[str] = "a compliance"

    stiffness: Expression
    exponent: Expression | None = None
    dissipation: Expression | None = None


def _entry_form(entries: Sequence[Entry]) -> type[Form]:
    """Return the form of the key that these entries share: an option is required where all of them need it."""
    always = set.intersection(*({option.key for option in entry.needs} for entry in entries))
    keys = dict.fromkeys(option.key for entry in entries for option in entry.options)
    fields: dict[str, Any] = {key: (Expression, ...) if key in always else (Expression | None, None) for key in keys}
    name = "".join(part.capitalize() for part in entries[0].key.split("_")) + "Form"
    made = create_model(name, __base__=Form, __doc__=entries[-1].summary, **fields)
    made.what = entries[0].what
    return made


ENTRIES: Mapping[str, tuple[ContactLaw, ...]] = {
    key: tuple(law for law in LAWS if law.entry is not None and law.entry.key == key)
    for key in dict.fromkeys(law.entry.key for law in LAWS if law.entry is not None)
}


class _ContactForm(Form):
    """A contact: between shapes, by its gap, a joint stop, or a law with its own entry."""

    what: ClassVar[str] = "a contact"
    hints: ClassVar[Mapping[str, str]] = {"repeat": "a shape is repeated: `repeat` stands with it under `shapes`"}

    between: ShapeGroups | None = None
    point: Reference | None = None
    on: Reference | None = None
    gap: Expression | None = None
    slip: OneOrTwo | None = None
    friction: FrictionField | None = None
    restitution: Expression | None = None
    restitution_law: Law = "newton"
    closes_if: Expression | None = None
    sound_frequency: Expression | None = None
    bilateral: Flag = False
    compliant: ComplianceForm | None = None
    joint_stop: JointStopForm | None = None

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two shapes of a contact that names two; None of another, and of one between groups."""
        match self.between:
            case ((first,), (second,)):
                return first, second
        return None

    def entry(self, key: str) -> Form | None:
        """Return the entry of a law that was written; None if its key is missing."""
        form: Form | None = getattr(self, key)
        return form


if TYPE_CHECKING:
    ContactForm: TypeAlias = _ContactForm
else:
    ContactForm = create_model(
        "ContactForm", __base__=_ContactForm, __doc__=_ContactForm.__doc__,
        **{key: (_entry_form([law.entry for law in laws]) | None, None) for key, laws in ENTRIES.items()},
    )  # fmt: skip
