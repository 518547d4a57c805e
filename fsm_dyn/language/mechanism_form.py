"""The form of a whole file, with components, variants, tolerances and requirements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.language.body_forms import (
    BodyForm,
    ConstraintForm,
    Coordinates,
    FrameForm,
    GeometryForm,
    LoadForm,
    Parameters,
    PointForm,
    ViewField,
)
from fsm_dyn.language.contact_forms import (
    ContactForm,
    ControllerForm,
    InitialField,
    Inputs,
    MemoryField,
    Modes,
    ModesField,
    PortForm,
    ScheduleField,
    TransitionForm,
)
from fsm_dyn.language.elements import Input
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import (
    ContactKey,
    Expression,
    Form,
    FreeText,
    Impacts,
    JointCoordinates,
    Key,
    OnInconsistent,
    OnNonunique,
    PortCoupling,
    Reference,
    as_section,
    exactly_one,
    expression,
    items_of,
    key,
    name,
    section_of,
    validated,
)
from fsm_dyn.language.joint_forms import JointForm
from fsm_dyn.language.model import NUMERICS, Coordinate, DiscreteVariable, Initial, Parameter
from fsm_dyn.language.phase_forms import NamesField, PhasesField
from fsm_dyn.language.phases import PartName, RunPhase
from fsm_dyn.language.requirement import Requirement, read_formula
from fsm_dyn.language.shapes import DrawnOutline
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- Forms of the sections with other texts: ``use`` and ``variants`` ----------------------------------------

MOST_VARIANTS = 30

_EXPRESSION: dict[str, Any] = {"type": ["string", "number"]}


class PlaceForm(Form):
    """Place of attachment of a component."""

    what: ClassVar[str] = "a place to attach to"

    frame: Reference = "N"
    point: Reference = "O"


def _given(tree: Tree) -> dict[str, tuple[Text, ...]]:
    """Return the given parameters of a component; a list is a vector."""
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
            Neither or both of ``file`` and ``model`` are written.
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


# -- The form of the section ``numerics``: tolerances by name ------------------------------------------------

_VALUE: dict[str, Any] = {"type": ["string", "number"], "description": "a positive expression of parameters"}


def numerics(tree: Tree) -> dict[str, Text]:
    """Return the tolerances of a file by name.

    Parameters
    ----------
    tree : Tree
        The section.
    """
    section = as_section(tree, "numerics")
    for word in section:
        if word not in NUMERICS:
            raise _unknown(word)
    return {str(word): expression(value) for word, value in section.items()}


def _unknown(name: LocatedStr) -> ModelError:
    return ModelError(
        f"there is no tolerance {str(name)!r}",
        name.where,
        found=name,
        allowed=", ".join(NUMERICS),
        remedy=did_you_mean(str(name), NUMERICS),
    )


NumericsField: TypeAlias = Annotated[
    dict[str, Text],
    PlainValidator(numerics),
    WithJsonSchema({"type": "object", "properties": dict.fromkeys(NUMERICS, _VALUE), "additionalProperties": False}),
]


# -- Form of the requirements: a formula, or ``{formula:, text:}`` -------------------------------------------


class RequirementForm(Form):
    """A requirement with a text for people to read."""

    what: ClassVar[str] = "a requirement"

    formula: Expression
    text: FreeText = ""


def _requirements(tree: Tree) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for word, entry in as_section(tree, "requirements").items():
        summary = ""
        if isinstance(entry, LocatedMapping):
            form = validated(RequirementForm, entry)
            formula, summary = form.formula, form.text
        else:
            formula = expression(entry)
        name = key(word)
        written = " ".join(formula.text.split())
        found[name] = Requirement(name, written, read_formula(formula), summary, formula.where)
    return found


_FORMULA = {
    "type": "string",
    "description": "never ..., always ..., eventually ..., peak(...) < ..., count(...) <= ...",
}

RequirementsField: TypeAlias = Annotated[
    Mapping[str, Requirement],
    PlainValidator(_requirements),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    _FORMULA,
                    {
                        "type": "object",
                        "properties": {"formula": _FORMULA, "text": {"type": "string"}},
                        "required": ["formula"],
                        "additionalProperties": False,
                    },
                ]
            },
        }
    ),
]


# -- The form of a whole file, and the way from a composed tree to it ----------------------------------------

FORMAT = 1


def _format(tree: Tree) -> Literal[1]:
    if isinstance(tree, Scalar) and tree.value == FORMAT and not isinstance(tree.value, bool):
        return 1
    raise ModelError(
        "this format of model files is not known here",
        tree.where,
        found=describe(tree),
        allowed=str(FORMAT),
        remedy="a newer file needs a newer fsm_dyn",
    )


def _title(tree: Tree) -> str:
    if isinstance(tree, Scalar) and isinstance(tree.value, str) and len(tree.text) <= 64:
        words = tree.text.replace("-", "_")
        if words.isascii() and words.isidentifier() and words[0] != "_":
            return tree.text
    raise ModelError(
        "the name of a model is one word",
        tree.where,
        found=describe(tree),
        allowed="letters, digits, _ and -, beginning with a letter; the summary may say more",
    )


Format: TypeAlias = Annotated[Literal[1], PlainValidator(_format), WithJsonSchema({"const": FORMAT})]
Title: TypeAlias = Annotated[
    str, PlainValidator(_title), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$"})
]


Scenario: TypeAlias = Annotated[dict[Reference, ScheduleField], section_of("a scenario")]


class MechanismForm(Form):
    """A mechanism for fsm_dyn, format 1."""

    what: ClassVar[str] = "a model"
    hints: ClassVar[Mapping[str, str]] = {
        "drives": "the key is 'scenarios'",
        "drawing": "the key is 'view'",
        "forces": "forces and torques are items of 'loads'",
        "springs": "springs are items of 'loads'",
        "dampers": "dampers are items of 'loads'",
        "gravity": "gravity is an item of 'loads'",
        "only_listed": "`only_listed: true` stands inside `modes`",
        "mode": "the initial mode stands inside `initial`, the list of modes in `modes`",
    }

    fsm_dyn: Format
    name: Title | None = None
    summary: FreeText = ""
    source: FreeText = ""
    parameters: Parameters = Field(default_factory=dict)
    coordinates: Coordinates = Field(default_factory=dict)
    frames: Annotated[dict[Key, FrameForm], section_of("frames")] = Field(default_factory=dict)
    points: Annotated[dict[Key, PointForm], section_of("points")] = Field(default_factory=dict)
    bodies: Annotated[dict[Key, BodyForm], section_of("bodies")]
    joints: Annotated[dict[Key, JointForm], section_of("joints")] = Field(default_factory=dict)
    joint_coordinates: JointCoordinates = "relative"
    speeds: Annotated[dict[Key, Expression], section_of("speeds")] = Field(default_factory=dict)
    constraints: Annotated[dict[Key, ConstraintForm], section_of("constraints")] = Field(default_factory=dict)
    shapes: Annotated[dict[Key, GeometryForm], section_of("shapes")] = Field(default_factory=dict)
    contacts: Annotated[dict[ContactKey, ContactForm], section_of("contacts")] = Field(default_factory=dict)
    inputs: Inputs = Field(default_factory=dict)
    schedule: Annotated[dict[Reference, ScheduleField], section_of("schedule")] = Field(default_factory=dict)
    scenarios: Annotated[dict[Key, Scenario], section_of("scenarios")] = Field(default_factory=dict)
    loads: Annotated[list[LoadForm], items_of("loads")] = Field(default_factory=list)
    modes: ModesField = Modes({})
    memory: MemoryField = Field(default_factory=dict)
    controllers: Annotated[dict[Key, ControllerForm], section_of("controllers")] = Field(default_factory=dict)
    transitions: Annotated[list[TransitionForm], items_of("transitions")] = Field(default_factory=list)
    impacts: Impacts = "simultaneous"
    on_inconsistent: OnInconsistent = "stop"
    on_nonunique: OnNonunique = "stop"
    numerics: NumericsField = Field(default_factory=dict)
    ports: Annotated[dict[Key, PortForm], section_of("ports")] = Field(default_factory=dict)
    port_coupling: PortCoupling = "none"
    initial: InitialField = Initial()
    outputs: Annotated[dict[Key, Expression], section_of("outputs")] = Field(default_factory=dict)
    requirements: RequirementsField = Field(default_factory=dict)
    names: NamesField = Field(default_factory=dict)
    phases: PhasesField = Field(default_factory=dict)
    view: ViewField = Field(default_factory=dict)
    use: Annotated[dict[Key, UseForm], section_of("use")] = Field(default_factory=dict)
    variants: VariantsField = Field(default_factory=dict)


# Names used only in annotations, resolved by pydantic at the creation of the classes.
_RESOLVED = (Coordinate, Input, DiscreteVariable, Parameter, DrawnOutline, PartName, RunPhase, Requirement, Text)


def form_of(tree: Tree) -> MechanismForm:
    """Validate the form of a composed file.

    Parameters
    ----------
    tree : Tree
        The file.

    Returns
    -------
    MechanismForm

    Raises
    ------
    ModelError
        With the exact place of the first invalid key or value.
    """
    return validated(MechanismForm, tree)
