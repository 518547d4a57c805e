"""Forms of contacts, inputs, modes, transitions, ports and sampled controllers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema, create_model

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.language.body_forms import ImpulseForm, unit_text
from fsm_dyn.language.contact_law import Entry
from fsm_dyn.language.contact_law import Law as ContactLaw
from fsm_dyn.language.elements import (
    ConstantSchedule,
    ExpressionSchedule,
    Input,
    LinearSchedule,
    Schedule,
    StepsSchedule,
)
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import (
    Assignment,
    Crossing,
    Expression,
    Expressions,
    Flag,
    Form,
    FreeText,
    Key,
    Law,
    NewName,
    OneOrTwo,
    Reference,
    as_items,
    as_section,
    expression,
    flag,
    items_of,
    key,
    name,
    section_of,
    validated,
)
from fsm_dyn.language.laws import LAWS
from fsm_dyn.language.model import DiscreteVariable, Initial, ModePattern
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe, where_of

# -- Forms of contacts ---------------------------------------------------------------------------------------


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
    """The force of a compliant contact."""

    what: ClassVar[str] = "a compliance"
    hints: ClassVar[Mapping[str, str]] = {"damping": "the key is 'dissipation'", "loss": "the key is 'dissipation'"}

    stiffness: Expression
    exponent: Expression | None = None
    dissipation: Expression | None = None


def _entry_form(entries: Sequence[Entry]) -> type[Form]:
    """Return the form of a key shared by these entries: an option is required if all of them need it."""
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
    hints: ClassVar[Mapping[str, str]] = {
        "repeat": "a shape is repeated: `repeat` stands with it under `shapes`",
        "pitch": "the key is 'sound_frequency'",
    }

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
        """The two shapes of a contact between two; None of others, and of a contact between groups."""
        match self.between:
            case ((first,), (second,)):
                return first, second
        return None

    def entry(self, key: str) -> Form | None:
        """Return the written entry of a law; None if its key is missing."""
        form: Form | None = getattr(self, key)
        return form


if TYPE_CHECKING:
    ContactForm: TypeAlias = _ContactForm
else:
    ContactForm = create_model(
        "ContactForm", __base__=_ContactForm, __doc__=_ContactForm.__doc__,
        **{key: (_entry_form([law.entry for law in laws]) | None, None) for key, laws in ENTRIES.items()},
    )  # fmt: skip


# -- Forms of inputs, modes, discrete variables, transitions and ports ---------------------------------------

MAX_BREAKPOINTS = 10_000
MAX_MEMORY = 2**31 - 1

Event: TypeAlias = tuple[str, str]
_EVENTS = tuple(
    dict.fromkeys(["closes", "opens", "sticks", "slides", "leaves_face", *(w for law in LAWS for w in law.words)])
)


def _points(tree: Tree, what: str) -> tuple[tuple[Text, Text], ...]:
    items = as_items(tree, what)
    if not 1 <= len(items) <= MAX_BREAKPOINTS:
        raise ModelError(f"{what} has 1 to {MAX_BREAKPOINTS} points", items.where, found=describe(items))
    points: list[tuple[Text, Text]] = []
    for item in items:
        if not isinstance(item, LocatedList) or len(item) != 2:
            raise ModelError("a pair is wanted", item.where, found=describe(item), allowed="[time, value]")
        points.append((expression(item[0]), expression(item[1])))
    return tuple(points)


SCHEDULE_KEYS = ("linear", "steps", "expression", "constant")


def schedule(tree: Tree) -> Schedule:
    """Return the schedule of an input: a constant, an expression of ``t``, or a table.

    Parameters
    ----------
    tree : Tree
        The entry.

    Raises
    ------
    ModelError
        It is none of these, or a table of invalid times or values.
    """
    if not isinstance(tree, LocatedMapping):
        return ConstantSchedule(value=expression(tree), where=tree.where)
    for word in tree:
        if word not in SCHEDULE_KEYS:
            raise ModelError(
                f"a schedule has no key {str(word)!r}",
                word.where,
                found=word,
                allowed=", ".join(SCHEDULE_KEYS),
                remedy=did_you_mean(word, SCHEDULE_KEYS),
            )
    if len(tree) != 1:
        raise ModelError("a schedule has one key", tree.where, found=describe(tree), allowed=" or ".join(SCHEDULE_KEYS))
    ((word, value),) = tree.items()
    match str(word):
        case "linear":
            return LinearSchedule(points=_points(value, "linear"), where=word.where)
        case "steps":
            return StepsSchedule(points=_points(value, "steps"), where=word.where)
        case "expression":
            return ExpressionSchedule(value=expression(value), where=word.where)
    return ConstantSchedule(value=expression(value), where=word.where)


def _input(word: LocatedStr, tree: Tree) -> Input:
    if isinstance(tree, LocatedMapping):
        entries = LocatedMapping({k: v for k, v in tree.items() if k != "unit"}, tree.where)
        unit = unit_text(tree[LocatedStr("unit")]) if "unit" in tree else ""
        return Input(word, unit, schedule(entries) if entries else None, word.where)
    if isinstance(tree, Scalar) and re.match(r"[-+.]?\d", tree.text) and tree.text != "1":
        return Input(word, "", schedule(tree), word.where)
    return Input(word, unit_text(tree), None, word.where)


def _inputs(tree: Tree) -> dict[str, Input]:
    if isinstance(tree, LocatedList):
        words = [key(name(item)) for item in tree]
        for at, word in enumerate(words):
            if word in words[:at]:
                raise ModelError(f"input {str(word)!r} is defined twice", word.where)
        return {word: Input(word, where=word.where) for word in words}
    return {key(word): _input(word, value) for word, value in as_section(tree, "inputs").items()}


@dataclass(frozen=True, slots=True)
class Modes:
    """The section ``modes``."""

    modes: Mapping[str, ModePattern]
    only_listed: bool = False


def _modes(tree: Tree) -> Modes:
    found: dict[str, ModePattern] = {}
    only_listed = False
    for word, value in as_section(tree, "modes").items():
        if word == "only_listed":
            only_listed = flag(value)
            continue
        if isinstance(value, Scalar) and value.value is not None:
            raise ModelError(
                f"mode {str(word)!r} is no mapping",
                word.where,
                found=describe(value),
                allowed="{contact: state, ...}",
                remedy=did_you_mean(word, ["only_listed"]),
            )
        states: dict[str, str] = {name(contact): name(state) for contact, state in as_section(value, "a mode").items()}
        found[key(word)] = ModePattern(word, states, word.where)
    if only_listed and not found:
        word = next(word for word in as_section(tree, "modes") if word == "only_listed")
        raise ModelError("`only_listed` without a list of modes", word.where, remedy="list the modes")
    return Modes(found, only_listed)


def _memory(tree: Tree) -> dict[str, DiscreteVariable]:
    found: dict[str, DiscreteVariable] = {}
    for word, value in as_section(tree, "memory").items():
        initial = value.value if isinstance(value, Scalar) else None
        if not isinstance(initial, int):  # a bool is an int
            raise ModelError("an integer or a boolean is wanted", value.where, found=describe(value))
        if abs(initial) > MAX_MEMORY:
            raise ModelError("the integer is too large", value.where, found=describe(value), allowed=str(MAX_MEMORY))
        found[key(word)] = DiscreteVariable(word, int(initial), isinstance(initial, bool), word.where)
    return found


def _initial(tree: Tree) -> Initial:
    section = as_section(tree, "initial")
    values: dict[str, Text] = {}
    guess: dict[str, Text] = {}
    mode: str | None = None
    settles = False
    for word, value in section.items():
        if word == "mode":
            mode = name(value)
        elif word == "settle":
            settles = flag(value)
        elif isinstance(value, Scalar) and isinstance(value.value, bool):
            raise ModelError(
                f"{str(word)!r} under initial is neither true nor false",
                word.where,
                found=word,
                allowed="settle: true, or a number",
                remedy=did_you_mean(word, ["settle"]),
            )
        elif word == "guess":
            guess = {name(other): expression(item) for other, item in as_section(value, "guess").items()}
        elif isinstance(value, LocatedMapping):
            raise ModelError(
                f"initial has no key {str(word)!r} with a mapping",
                word.where,
                found=describe(value),
                allowed="guess",
                remedy=did_you_mean(word, ["guess"]) or "give one value",
            )
        else:
            values[name(word)] = expression(value)
    for given in (word for word in guess if word in values):
        raise ModelError(
            f"{str(given)!r} is given and guessed", where_of(given), remedy="keep one: what is given is held"
        )
    return Initial(mode, values, settles, guess, section.where)


def _source(tree: Tree) -> LocatedStr:
    if isinstance(tree, Scalar) and tree.text == "*":
        return LocatedStr("*", tree.where)
    return name(tree)


def _event(tree: Tree) -> Event:
    parts = tree.text.split() if isinstance(tree, Scalar) and isinstance(tree.value, str) else []
    word = " ".join(parts[1:])
    if len(parts) < 2:
        raise ModelError(
            "a contact and what happens to it are wanted",
            tree.where,
            found=describe(tree),
            allowed=f"<contact> {' | '.join(_EVENTS)}",
        )
    if word not in _EVENTS:
        raise ModelError(
            f"{word!r} is nothing that happens to a contact",
            tree.where,
            found=word,
            allowed=", ".join(_EVENTS),
            remedy=did_you_mean(word, _EVENTS),
        )
    return LocatedStr(parts[0], tree.where), word


_VALUE: dict[str, Any] = {"type": ["string", "number"]}
_TABLE: dict[str, Any] = {"type": "array", "items": {"type": "array", "items": _VALUE, "minItems": 2, "maxItems": 2}}


def _schedules(more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the four kinds of schedule, each with further keys."""
    kinds = {"linear": _TABLE, "steps": _TABLE, "expression": _VALUE, "constant": _VALUE}
    return [
        {"type": "object", "properties": {word: form, **more}, "required": [word], "additionalProperties": False}
        for word, form in kinds.items()
    ]


ScheduleField: TypeAlias = Annotated[
    Schedule, PlainValidator(schedule), WithJsonSchema({"anyOf": [_VALUE, *_schedules({})]})
]
Inputs: TypeAlias = Annotated[
    Mapping[str, Input],
    PlainValidator(_inputs),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [{"type": ["string", "number", "null"]}, *_schedules({"unit": {"type": "string"}})]
                    },
                },
            ]
        }
    ),
]
ModesField: TypeAlias = Annotated[
    Modes,
    PlainValidator(_modes),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"only_listed": {"type": "boolean"}},
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    ),
]
MemoryField: TypeAlias = Annotated[
    Mapping[str, DiscreteVariable],
    PlainValidator(_memory),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["integer", "boolean"]}}),
]
InitialField: TypeAlias = Annotated[
    Initial,
    PlainValidator(_initial),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "mode": {"type": "string"},
                "settle": {"type": "boolean"},
                "guess": {"type": "object", "additionalProperties": _VALUE},
            },
            "additionalProperties": _VALUE,
        },
    ),
]


class TransitionForm(Form):
    """A user-defined transition."""

    what: ClassVar[str] = "a transition"

    name: NewName | None = None
    source: Annotated[str, PlainValidator(_source), WithJsonSchema({"type": "string"})] = Field(alias="from")
    target: Reference | None = Field(default=None, alias="to")
    when: Expression | None = None
    crossing: Crossing = "rising"
    on: Annotated[Event, PlainValidator(_event), WithJsonSchema({"type": "string"})] | None = None
    reset: Annotated[dict[Reference, Expression], section_of("reset")] | None = None
    set: Annotated[dict[Reference, Assignment], section_of("set")] | None = None
    impulse: Annotated[list[ImpulseForm], items_of("impulse")] | None = None
    stop: Flag = False
    because: FreeText = ""


class PortForm(Form):
    """A coupling point for a device."""

    what: ClassVar[str] = "a port"
    hints: ClassVar[Mapping[str, str]] = {"twist": "the key is 'rotation'"}

    point: Reference | None = None
    body: Reference | None = None
    axes: Expressions | None = None
    rotation: Expression | None = None
    coordinate: Reference | None = None
    kinematic: Expression | None = None
    stiffness: Expression | None = None
    damping: Expression | None = None
    press: Expressions | None = None
    step: Expression | None = None


# -- Forms of sampled controllers ----------------------------------------------------------------------------

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
    """An input sampled by a controller."""

    what: ClassVar[str] = "an input of a controller"

    value: Expression
    quantum: Expression | None = None


class ControllerMemoryForm(Form):
    """A number kept by a controller from sample to sample."""

    what: ClassVar[str] = "a memory of a controller"

    unit: Unit = ""
    start: Expression | None = None
    update: Expression


class ControllerOutputForm(Form):
    """A number computed by a controller at its samples, constant between them."""

    what: ClassVar[str] = "an output of a controller"

    unit: Unit = ""
    start: Expression | None = None
    value: Expression
    quantum: Expression | None = None


def _sampled_input(tree: Tree) -> SampledInputForm:
    if not isinstance(tree, LocatedMapping):
        tree = LocatedMapping({LocatedStr("value", tree.where): tree}, tree.where)
    return validated(SampledInputForm, tree)


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
SampledInput: TypeAlias = Annotated[SampledInputForm, PlainValidator(_sampled_input), WithJsonSchema(_INPUT)]
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
