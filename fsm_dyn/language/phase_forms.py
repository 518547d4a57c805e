"""Forms of the sections ``names`` and ``phases``: words for the parts of a model, and the phases of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language.form import Expression, Form, as_items, as_section, expression, free_text, one_of, validated
from fsm_dyn.language.form import name as reference
from fsm_dyn.language.phases import (
    COLOURS,
    LONGEST_NAME,
    LONGEST_PHASE,
    LONGEST_TEXT,
    Conjunction,
    PartName,
    RunPhase,
    formula_name,
)
from fsm_dyn.language.requirement import QuantityComparison, StateCondition, read_condition
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree

# -- Leaves: short texts, conditions, lists of names ---------------------------------------------------------


def _short(tree: Tree, longest: int, what: str) -> str:
    """Return a text of one line."""
    words = free_text(tree)
    if not words.strip() or len(words) > longest or not words.isprintable():
        raise ModelError(
            f"{what} is one line", tree.where, found=f"{len(words)} characters: {words[:60]!r}",
            allowed=f"1 to {longest} characters", remedy="shorten it",
        )  # fmt: skip
    return words


def _conditions(tree: Tree) -> tuple[Conjunction, ...]:
    """Return the conjunctions of which one has to be true."""
    items = tree if isinstance(tree, LocatedList) else [tree]
    if not items:
        raise ModelError("the list is empty", tree.where, allowed="at least one condition")
    return tuple(_located(read_condition(text), text.where) for text in map(expression, items))


def _located(conjunction: Conjunction, where: Location) -> Conjunction:
    """Return conditions whose names have their place, for the messages of later checks."""

    def named(condition: QuantityComparison | StateCondition) -> QuantityComparison | StateCondition:
        if isinstance(condition, StateCondition):
            return replace(condition, name=LocatedStr(condition.name, where))
        quantity = replace(condition.quantity, name=LocatedStr(condition.quantity.name, where))
        return replace(condition, quantity=quantity)

    return tuple(map(named, conjunction))


def _names(tree: Tree) -> tuple[str, ...]:
    items = as_items(tree, "the phases before") if isinstance(tree, LocatedList) else [tree]
    return tuple(LocatedStr(free_text(item), item.where) for item in items)


def _references(tree: Tree) -> tuple[str, ...]:
    items = as_items(tree, "the bodies of a close-up") if isinstance(tree, LocatedList) else [tree]
    return tuple(reference(item) for item in items)


_CONDITION: Final[dict[str, Any]] = {"type": "string", "description": "QUANTITY < VALUE, CONTACT is STATE, MODE; and"}
_NAME: Final[dict[str, Any]] = {"type": "string", "maxLength": LONGEST_NAME}


def _one_or_more(schema: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]})


Conditions: TypeAlias = Annotated[tuple[Conjunction, ...], PlainValidator(_conditions), _one_or_more(_CONDITION)]
PhaseNames: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_names), _one_or_more({"type": "string"})]
BodyNames: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_references), _one_or_more({"type": "string"})]
ShortName: TypeAlias = Annotated[
    str, PlainValidator(lambda tree: _short(tree, LONGEST_NAME, "a name")), WithJsonSchema(_NAME)
]
ShortText: TypeAlias = Annotated[
    str,
    PlainValidator(lambda tree: _short(tree, LONGEST_TEXT, "the text of a phase")),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_TEXT}),
]
Colour: TypeAlias = Annotated[str, PlainValidator(one_of(*COLOURS)), WithJsonSchema({"enum": list(COLOURS)})]


# -- The section ``names`` -----------------------------------------------------------------------------------


class PartNameForm(Form):
    """Words for a contact, with the subject and the object of sentences about it."""

    what: ClassVar[str] = "the words for a part"

    text: ShortName = Field("", alias="is")
    subject: ShortName = ""
    object: ShortName = ""


def _part_names(tree: Tree) -> dict[str, PartName]:
    found: dict[str, PartName] = {}
    for word, entry in as_section(tree, "names").items():
        part = reference(word)
        if isinstance(entry, LocatedMapping):
            form = validated(PartNameForm, entry)
            found[part] = PartName(form.text, form.subject, form.object, word.where)
        else:
            found[part] = PartName(_short(entry, LONGEST_NAME, "a name"), where=word.where)
    return found


NamesField: TypeAlias = Annotated[
    Mapping[str, PartName],
    PlainValidator(_part_names),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    _NAME,
                    {
                        "type": "object",
                        "properties": {"is": _NAME, "subject": _NAME, "object": _NAME},
                        "additionalProperties": False,
                    },
                ]
            },
        }
    ),
]


# -- The section ``phases`` ----------------------------------------------------------------------------------


class PhaseForm(Form):
    """A phase of runs."""

    what: ClassVar[str] = "a phase"

    when: Conditions
    after: PhaseNames = ()
    until: Conditions = ()
    shortest: Expression | None = None
    colour: Colour = ""
    text: ShortText = ""
    focus: BodyNames = ()


def _phases(tree: Tree) -> dict[str, RunPhase]:
    found: dict[str, RunPhase] = {}
    for word, entry in as_section(tree, "phases").items():
        name = _phase_name(word)
        form = validated(PhaseForm, entry)
        if any(not conjunction for conjunction in form.until):
            raise ModelError("`until: otherwise` ends a phase at once", form.key("until"), remedy="omit `until`")
        twin = next((other for other in found if formula_name(other) == formula_name(name)), None)
        if twin is not None:
            raise ModelError(
                f"phases {twin!r} and {name!r} have one name in formulas", word.where, found=formula_name(name),
                remedy="rename one of them",
            )  # fmt: skip
        found[name] = RunPhase(
            name, form.when, form.after, form.until, form.shortest, form.colour, form.text, form.focus, word.where
        )
    for phase in found.values():
        for other in phase.after:
            if other not in found:
                raise ModelError(
                    f"phase {str(phase.name)!r} begins after {str(other)!r}, which does not exist",
                    _place(other, phase), found=str(other),
                    allowed=", ".join(found),
                )  # fmt: skip
    return found


def _place(word: str, phase: RunPhase) -> Any:
    return word.where if isinstance(word, LocatedStr) else phase.where


def _phase_name(word: LocatedStr) -> LocatedStr:
    plain = formula_name(word)
    if len(word) > LONGEST_PHASE or not (plain.isascii() and plain.isidentifier()):
        raise ModelError(
            f"{str(word)[:60]!r} is not the name of a phase", word.where, found=f"{len(word)} characters",
            allowed=f"letters, digits, blanks, - and _, beginning with a letter, at most {LONGEST_PHASE} characters",
        )  # fmt: skip
    return word


_CONDITIONS: Final[dict[str, Any]] = {
    "anyOf": [_CONDITION, {"type": "array", "items": _CONDITION, "minItems": 1}],
}

PhasesField: TypeAlias = Annotated[
    Mapping[str, RunPhase],
    PlainValidator(_phases),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "when": _CONDITIONS,
                    "after": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "until": _CONDITIONS,
                    "shortest": {"type": ["string", "number"], "description": "a time, an expression"},
                    "colour": {"enum": list(COLOURS)},
                    "text": {"type": "string", "maxLength": LONGEST_TEXT},
                    "focus": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                },
                "required": ["when"],
                "additionalProperties": False,
            },
        }
    ),
]
