"""Forms of contacts, inputs, modes and transitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.body_forms import ImpulseForm
from fsm_dyn.language.contacts import SurfaceProperties
from fsm_dyn.language.elements import (
    ConstantSchedule,
    ExpressionSchedule,
    Input,
    LinearSchedule,
    Schedule,
    StepsSchedule,
)
from fsm_dyn.language.expression_tree import Text, is_unit
from fsm_dyn.language.form import (
    as_items,
    assignment,
    expression,
    name,
    new_names,
    unit_text,
)
from fsm_dyn.language.form import key as new_key
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, keys_of, mapping
from fsm_dyn.language.keys import (
    EXPRESSION,
    FLAG,
    NAME,
    NEW_NAME,
    ONE_OR_TWO,
    TEXT,
    UNIT,
    VALUE,
    Kind,
    key,
    leaf,
    list_of,
    listing,
    one_of,
    or_list,
    others,
    part,
    reference,
    reference_to,
    section,
    whole,
)
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.laws import LAWS
from fsm_dyn.language.laws import Law as ContactLaw
from fsm_dyn.language.model import DiscreteVariable, ModePattern
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- Forms of contacts ---------------------------------------------------------------------------------------


@mapping
class CoefficientsForm(KeyedMapping):
    """Both coefficients of friction."""

    what: ClassVar[str] = "friction"
    example: ClassVar[str] = "friction: {static: 0.5, kinetic: 0.4}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(static="mu_s", kinetic="dynamic sliding mu_k"),
        "mu": "one value serves for both: `friction: 0.5`",
    }

    static: Text = expression_key("of a contact that sticks", example=0.5)
    kinetic: Text = expression_key("of a contact that slides, at most the static one", example=0.4)


@dataclass(frozen=True, slots=True)
class Friction:
    """Coefficients of friction; ``infinite``: sticks whenever closed."""

    static: Text | None = None
    kinetic: Text | None = None
    infinite: bool = False


def _is_infinite(tree: Tree) -> bool:
    return isinstance(tree, Scalar) and (tree.text == "inf" or tree.value == float("inf"))


def _friction(tree: Tree) -> Friction:
    if isinstance(tree, LocatedMapping):
        for infinite in (value for value in tree.values() if _is_infinite(value)):
            raise ModelError(
                "one coefficient of two is infinite", infinite.where, found=describe(infinite),
                allowed="{static: ..., kinetic: ...} with numbers", remedy="`friction: inf` sticks whenever closed",
            )  # fmt: skip
        both = CoefficientsForm.read(tree)
        return Friction(both.static, both.kinetic)
    if _is_infinite(tree):
        return Friction(infinite=True)
    if isinstance(tree, LocatedList) or (isinstance(tree, Scalar) and isinstance(tree.value, bool)):
        raise ModelError(
            "a coefficient of friction is wanted", tree.where, found=describe(tree),
            allowed="a number, {static: ..., kinetic: ...}, inf",
            remedy="write `friction: {static: 0.5, kinetic: 0.4}`",
        )  # fmt: skip
    one = expression(tree)
    return Friction(one, one)


FRICTION: Final = leaf(
    _friction,
    {
        "anyOf": [
            {"const": "inf", "description": "sticks whenever closed"},
            {**VALUE, "description": "static and kinetic coefficient"},
            reference_to(CoefficientsForm),
        ]
    },
    "coefficient, `{static, kinetic}`, or `inf`", mappings=(CoefficientsForm,), example=0.5,
)  # fmt: skip


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


_GROUP: Final = {
    **list_of({"type": "string"}, 1), "description": "a group: its shapes with those of the others, not with each other"
}  # fmt: skip
SHAPE_GROUPS: Final = leaf(
    _shape_groups,
    {
        "anyOf": [
            {"const": "all", "description": "each of the shapes with each other"},
            list_of({"anyOf": [{"type": "string"}, _GROUP]}, 2),
        ]
    },
    "names of shapes", example=["ball", "ground"],
)  # fmt: skip


@mapping
class JointStopForm(KeyedMapping):
    """Limits of a coordinate."""

    what: ClassVar[str] = "a joint stop"
    example: ClassVar[str] = "joint_stop: {coordinate: q, lower: 0, upper: 90 deg}"

    coordinate: Text = expression_key("limited expression of coordinates", example="q")
    lower: Text | None = expression_key("its lower limit", None, example="0 deg")
    upper: Text | None = expression_key("its upper limit", None, example="90 deg")


#: Meaning and example of an option, by the field of the contact.
_OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "gap": ("an expression of coordinates", "x"),
    "slip": ("an expression of speeds", "rate(x)"),
    "across": ("in space the second speed, across the first", "rate(y)"),
    "static": ("largest force at rest", "3 N"),
    "kinetic": ("force while it slides", "2 N"),
}

#: Laws with an entry of their own, by its key.
ENTRIES: Mapping[str, tuple[ContactLaw, ...]] = {
    word: tuple(law for law in LAWS if law.entry is not None and law.entry.key == word)
    for word in dict.fromkeys(law.entry.key for law in LAWS if law.entry is not None)
}


def _law_key(laws: Sequence[ContactLaw]) -> Any:
    """Return the key that laws share; an option is required if all of them need it."""
    entries = [law.entry for law in laws if law.entry is not None]
    always = set.intersection(*({option.key for option in entry.needs} for entry in entries))
    options = {
        option.key: _OPTIONS[option.field] for entry in entries for option in entry.options if option.field in _OPTIONS
    }
    fields = {
        option: expression_key(doc, *(() if option in always else (None,)), example=example)
        for option, (doc, example) in options.items()
    }
    fields |= {
        option.key: reference("a contact", "with the normal force to which the bounds are in proportion", None)
        for entry in entries for option in entry.needs if option.field == "loaded_by"
    }  # fmt: skip
    word, summary = entries[0].key, entries[-1].summary
    shown = [option.key for option in (*entries[0].one_of[:1], *entries[0].needs)]
    line = f"{word}: {{{', '.join(f'{option}: {options[option][1]}' for option in shown)}}}"
    words = {"what": entries[0].what, "example": line, "__doc__": summary}
    return part(_keyed(f"{word.title().replace('_', '')}Form", KeyedMapping, words, fields), summary)


def _keyed(name: str, base: type[KeyedMapping], attributes: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """Return a class of mappings with further keys."""
    annotations = dict.fromkeys(fields, "Any")
    made = type(name, (base,), {**attributes, **fields, "__annotations__": annotations, "__module__": __name__})
    return mapping(made)


@mapping
class _ContactForm(SurfaceProperties):
    """A contact: between shapes, by its gap, a joint stop, or a law with its own entry."""

    what: ClassVar[str] = "a contact"
    example: ClassVar[str] = "stop: {gap: 0.3 m - x}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(gap="distance normal", slip="tangent slip_speed", friction="mu coefficient",
                      restitution="e cor bounce", tangential_restitution="et e_t spin",
                      between="bodies shapes geom1 geom2", compliant="compliance impact solref solimp"),
        "condim": "sliding needs `friction`; rolling resistance is a dry friction with its `load` (docs/language.md)",
        **dict.fromkeys(("stiffness", "damping", "dissipation"), "it is a key of `compliant: {stiffness: 2e4 N/m}`"),
        "side": "`side` is a key of the shape: {line: {along: N.x}, side: N.y}",
        "repeat": "a shape is repeated: `repeat` stands with it under `shapes`",
        "pitch": "the key is 'sound_frequency'",
    }  # fmt: skip
    first: ClassVar[tuple[str, ...]] = (
        "between", "point", "on", "gap", "slip", "friction", "restitution", "restitution_law", "tangential_restitution",
        "closes_if", "sound_frequency", "bilateral", "compliant", "joint_stop",
    )  # fmt: skip

    between: tuple[tuple[str, ...], ...] | None = key(
        SHAPE_GROUPS, "two shapes, more of them, groups of them, or `all`", None
    )
    point: str | None = reference("a point", "that touches the shape `on`", None)
    on: str | None = reference("a shape", "touched by `point`", None)
    gap: Text | None = expression_key("distance, positive while the contact is open", None, example="0.3 m - x")
    slip: tuple[Text, ...] | None = key(
        ONE_OR_TWO, "sliding speed; in space two, across each other", None, example="dot(vel(P), N.x)"
    )
    friction: Friction | None = key(FRICTION, "of the surfaces", None)
    bilateral: bool = key(FLAG, "a slot: it never opens, and its force may have either sign", False)
    joint_stop: JointStopForm | None = part(JointStopForm, "limits of a coordinate, a contact each")

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two shapes of a contact between two; None of others, and of a contact between groups."""
        match self.between:
            case ((first,), (second,)):
                return first, second
        return None

    def entry(self, key: str) -> KeyedMapping | None:
        """Return the written entry of a law; None if its key is missing."""
        form: KeyedMapping | None = getattr(self, key)
        return form


if TYPE_CHECKING:
    ContactForm: TypeAlias = _ContactForm
else:
    ContactForm = _keyed(
        "ContactForm", _ContactForm, {"__doc__": _ContactForm.__doc__},
        {word: _law_key(laws) for word, laws in ENTRIES.items()},
    )  # fmt: skip


# -- Forms of inputs, modes, discrete variables, transitions and ports ---------------------------------------

MAX_BREAKPOINTS = 10_000
MAX_MEMORY = 2**31 - 1

Event: TypeAlias = tuple[str, str]
_EVENTS = tuple(
    dict.fromkeys(["closes", "opens", "sticks", "slides", "leaves_face", *(w for law in LAWS for w in law.words)])
)


#: Remedies for words of other tools.
_EVENTS_OF_OTHERS: Final = {
    other: f"the word is '{word}'" for word, others in (
        ("closes", "touches touch hits collides impacts strikes begins"), ("opens", "separates releases ends lifts"),
        ("slides", "slips"), ("sticks", "stops rests"),
    ) for other in others.split()
}  # fmt: skip

_OR_BOOLEAN: Final = {"type": ["string", "number", "boolean"]}
_ASSIGNMENT: Final = leaf(assignment, _OR_BOOLEAN, "expression", expressions=True)
_TABLE: Final = {"type": "array", "items": list_of(_OR_BOOLEAN, 2, 2)}


def _points(tree: Tree, what: str) -> tuple[tuple[Text, Text], ...]:
    items = as_items(tree, what)
    if not 1 <= len(items) <= MAX_BREAKPOINTS:
        raise ModelError(f"{what} has 1 to {MAX_BREAKPOINTS} points", items.where, found=describe(items))
    points: list[tuple[Text, Text]] = []
    for item in items:
        if not isinstance(item, LocatedList) or len(item) != 2:
            raise ModelError("a pair is wanted", item.where, found=describe(item), allowed="[time, value]")
        points.append((expression(item[0]), assignment(item[1])))
    return tuple(points)


def _table(what: str) -> Kind:
    return leaf(lambda tree: _points(tree, what), _TABLE, "`[[time, value], ...]`",
                example=[["0 s", "0 N"], ["1 s", "30 N"]])  # fmt: skip


@mapping
class ScheduleForm(KeyedMapping):
    """Values of an input over time, by one key; a constant may stand alone."""

    what: ClassVar[str] = "a schedule"
    example: ClassVar[str] = "push: {steps: [[0 s, 0 N], [1 s, 30 N]]}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(
        linear="table points interpolate", constant="value", expression="formula"
    )

    linear: tuple[tuple[Text, Text], ...] | None = key(_table("linear"), "points to be joined by lines", None)
    steps: tuple[tuple[Text, Text], ...] | None = key(_table("steps"), "values, each until the next time", None)
    expression: Text | None = key(_ASSIGNMENT, "of `t` and parameters", None, example="5 N*sin(2*pi*t/1 s)")
    constant: Text | None = key(_ASSIGNMENT, "the same at all times", None, example="3 N")

    @property
    def schedule(self) -> Schedule:
        """The schedule of the given key. Raises ModelError: there is none, or several."""
        given = [word for word in self.written_keys() if word in SCHEDULE_KEYS]
        if len(given) != 1:
            found = f"a mapping with {', '.join(self.written_keys()) or 'no keys'}"
            raise ModelError("a schedule has one key", self.key(""), found=found, allowed=" or ".join(SCHEDULE_KEYS))
        where = self.key(given[0])
        if self.linear is not None:
            return LinearSchedule(points=self.linear, where=where)
        if self.steps is not None:
            return StepsSchedule(points=self.steps, where=where)
        if self.expression is not None:
            return ExpressionSchedule(value=self.expression, where=where)
        assert self.constant is not None
        return ConstantSchedule(value=self.constant, where=where)


SCHEDULE_KEYS: Final = (*keys_of(ScheduleForm),)


@mapping
class InputForm(ScheduleForm):
    """An input: its unit, alone or with a schedule."""

    what: ClassVar[str] = "an input"
    example: ClassVar[str] = "push: {unit: N, steps: [[0 s, 0 N], [1 s, 30 N]]}"
    first: ClassVar[tuple[str, ...]] = ("unit",)

    unit: str = key(UNIT, "of its values, or `boolean`", "")


def schedule(tree: Tree) -> Schedule:
    """Return the schedule of an input: a constant, an expression of ``t``, or a table.

    ``tree``: the entry. Raises ModelError: it is none of these, or a table of invalid times or values.
    """
    if isinstance(tree, LocatedList):
        raise ModelError("a table needs a way to join its points", tree.where, found=describe(tree),
                         allowed=" or ".join(SCHEDULE_KEYS),
                         remedy="write `{linear: [[0 s, 0 N], [1 s, 2 N]]}`")  # fmt: skip
    if not isinstance(tree, LocatedMapping):
        return ConstantSchedule(value=assignment(tree), where=tree.where)
    return ScheduleForm.read(tree).schedule


def _input(tree: Tree, word: LocatedStr) -> Input:
    """Return an input from its unit, its constant value, or its keys."""
    if isinstance(tree, LocatedMapping):
        form = InputForm.read(tree, word)
        scheduled = any(key in form.written_keys() for key in SCHEDULE_KEYS)
        return Input(word, form.unit, form.schedule if scheduled else None, word.where)
    if isinstance(tree, Scalar) and re.match(r"[-+.]?\d", tree.text) and not is_unit(tree.text):
        return Input(word, "", schedule(tree), word.where)
    return Input(word, unit_text(tree), None, word.where)


def _listed_inputs(tree: LocatedList) -> dict[str, Input]:
    return {word: Input(word, where=word.where) for word in new_names(tree, "input")}


def _pattern(tree: Tree, at: LocatedStr) -> ModePattern:
    if isinstance(tree, Scalar) and tree.value is not None:
        raise ModelError(
            f"mode {str(at)!r} is no mapping", at.where, found=describe(tree), allowed="{contact: state, ...}",
            remedy=did_you_mean(at, ["only_listed"]),
        )  # fmt: skip
    return ModePattern.read(tree, at)


@mapping
class Modes(KeyedMapping):
    """Patterns of contact states by name, and whether there are no others."""

    what: ClassVar[str] = "modes"
    example: ClassVar[str] = "modes: {locked: {bolt: stick}}"

    only_listed: bool = key(FLAG, "whether a mode without a pattern is an error", False)
    modes: Mapping[str, ModePattern] = others(
        replace(whole(ModePattern), read=_pattern), "mode", "its pattern", new_key
    )

    def checked(self) -> Self:
        """Return the modes if there are some where no others may be.

        Raises ModelError: ``only_listed`` stands alone.
        """
        if self.only_listed and not self.modes:
            raise ModelError("`only_listed` without a list of modes", self.key("only_listed"), remedy="list the modes")
        return self


def _memory(tree: Tree, at: LocatedStr) -> DiscreteVariable:
    initial = tree.value if isinstance(tree, Scalar) else None
    if not isinstance(initial, int):  # a bool is an int
        raise ModelError("an integer or a boolean is wanted", tree.where, found=describe(tree),
                         allowed="such as 0, 3, true, false")  # fmt: skip
    if abs(initial) > MAX_MEMORY:
        raise ModelError("the integer is too large", tree.where, found=describe(tree), allowed=str(MAX_MEMORY))
    return DiscreteVariable(new_key(at), int(initial), isinstance(initial, bool), at.where)


def _source(tree: Tree) -> LocatedStr:
    if isinstance(tree, Scalar) and tree.text == "*":
        return LocatedStr("*", tree.where)
    if isinstance(tree, LocatedList):
        raise ModelError(
            "a transition leaves one mode or pattern", tree.where, found=describe(tree),
            remedy='write a transition for each, or `from: "*"` for any mode',
        )  # fmt: skip
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
            remedy=_EVENTS_OF_OTHERS.get(word) or did_you_mean(word, _EVENTS),
        )
    return LocatedStr(parts[0], tree.where), word


SCHEDULE: Final = leaf(
    schedule, {"anyOf": [_OR_BOOLEAN, reference_to(ScheduleForm)]}, "value, or [schedule](#inputs-and-schedule)",
    mappings=(ScheduleForm,), example="3 N",
)  # fmt: skip
_LIST_OF_INPUTS: Final = {"type": "array", "items": NAME}
_UNIT_OR_INPUT: Final = Kind(
    _input, lambda: {"anyOf": [UNIT.schema(), reference_to(InputForm)]},
    "unit, `boolean`, or [keys](#inputs-and-schedule),", mappings=(InputForm,),
)  # fmt: skip
INPUTS: Final = or_list(section(_UNIT_OR_INPUT, "inputs", "inputs: {push: N}"), _listed_inputs, _LIST_OF_INPUTS)
MEMORY: Final = section(
    Kind(_memory, lambda: {"type": ["integer", "boolean"]}, "whole number or boolean,"), "memory", "memory: {count: 0}"
)

# -- Forms of transitions ------------------------------------------------------------------------------------

_SOURCE: Final = leaf(_source, {"type": "string"}, 'name of a mode, or `"*"`', example="*")
_EVENT: Final = leaf(_event, {"type": "string"}, "contact and event", holds="event", example="stop closes")


def _assignments(value: Kind, what: str) -> Kind:
    return section(value, what, name=name)


@mapping
class TransitionForm(KeyedMapping):
    """A user-defined transition."""

    what: ClassVar[str] = "a transition"
    example: ClassVar[str] = "{from: locked, to: free, on: bolt slides}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(
        when="if condition guard trigger", reset="then action assign", because="reason"
    )

    name: str | None = key(NEW_NAME, "for the log", None, example="tap")
    source: str = key(_SOURCE, "mode or pattern of modes that it leaves", name="from")
    target: str | None = reference("a mode", "mode or pattern of modes that it enters", None, name="to")
    when: Text | None = expression_key("condition, or expression that crosses zero", None, example="x > 1 m")
    crossing: Literal["rising", "falling", "both"] = key(
        one_of("rising", "falling", "both"), "direction of the expression `when`", "rising"
    )
    on: tuple[str, str] | None = key(_EVENT, "what happens to a contact", None)
    reset: dict[str, Text] | None = key(
        _assignments(EXPRESSION, "reset"), "new values of coordinates and speeds", None, example={"v": "-0.5*v"}
    )
    set: dict[str, Text] | None = key(
        _assignments(_ASSIGNMENT, "set"), "new values of memory", None, example={"count": "count + 1"}
    )
    impulse: tuple[ImpulseForm, ...] | None = key(listing(whole(ImpulseForm), "impulse"), "impulses, at once", None)
    stop: bool = key(FLAG, "whether it ends the run", False)
    because: str = key(TEXT, "reason reported by a run", "")
