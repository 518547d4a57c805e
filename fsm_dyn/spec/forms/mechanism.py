"""The form of a whole file, and the way from a composed tree to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.composition import UseForm, VariantsField
from fsm_dyn.spec.forms.contacts import ContactForm
from fsm_dyn.spec.forms.controllers import ControllerForm
from fsm_dyn.spec.forms.fields import (
    Expression,
    FreeText,
    Impacts,
    JointCoordinates,
    Key,
    OnInconsistent,
    OnNonunique,
    PortCoupling,
    Reference,
)
from fsm_dyn.spec.forms.form import Form, items_of, section_of, validated
from fsm_dyn.spec.forms.geometry import (
    BodyForm,
    ConstraintForm,
    Coordinates,
    FrameForm,
    Parameters,
    PointForm,
)
from fsm_dyn.spec.forms.hybrid import (
    InitialField,
    Inputs,
    MemoryField,
    Modes,
    ModesField,
    PortForm,
    ScheduleField,
    TransitionForm,
)
from fsm_dyn.spec.forms.joints import JointForm
from fsm_dyn.spec.forms.loads import LoadForm
from fsm_dyn.spec.forms.numerics import NumericsField
from fsm_dyn.spec.forms.requirements import RequirementsField
from fsm_dyn.spec.forms.shapes import GeometryForm
from fsm_dyn.spec.forms.view import DrawnOutline, ViewField
from fsm_dyn.spec.model import Coordinate, DiscreteVariable, Initial, Input, Parameter, Requirement
from fsm_dyn.spec.yaml_tree import Scalar, Tree, describe

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
    contacts: Annotated[dict[Key, ContactForm], section_of("contacts")] = Field(default_factory=dict)
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
    view: ViewField = Field(default_factory=dict)
    use: Annotated[dict[Key, UseForm], section_of("use")] = Field(default_factory=dict)
    variants: VariantsField = Field(default_factory=dict)


# Names used only in annotations that pydantic resolves when the classes are made.
_RESOLVED = (Coordinate, Input, DiscreteVariable, Parameter, DrawnOutline, Requirement, Text)


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
        With the exact place of the first key or value that does not fit.
    """
    return validated(MechanismForm, tree)
