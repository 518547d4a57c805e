"""Forms of the sections ``names`` and ``phases``: words for the parts of a model, and the phases of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import as_items, as_section, expression, free_text
from fsm_dyn.language.form import name as reference
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, mapping
from fsm_dyn.language.keys import Schema, key, leaf, list_of, one_of, reference_to
from fsm_dyn.language.keys import expression as expression_key
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

_NAMES_LINE: Final = "names: {stop: cart on stop}"
_PHASES_LINE: Final = "phases: {rest: {when: stop is closed}, motion: {when: otherwise}}"

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


_CONDITION: Final = {"type": "string", "description": "QUANTITY < VALUE, CONTACT is STATE, MODE; and"}
_NAME: Final = {"type": "string", "maxLength": LONGEST_NAME}


def _one_or_more(schema: Schema) -> Schema:
    return {"anyOf": [schema, list_of(schema, 1)]}


CONDITIONS: Final = leaf(_conditions, _one_or_more(_CONDITION), "condition, or several", example="stop is closed")
PHASE_NAMES: Final = leaf(_names, _one_or_more({"type": "string"}), "names of phases", holds="words", example="rest")
BODY_NAMES: Final = leaf(_references, _one_or_more({"type": "string"}), "names of bodies", example="box")
SHORT_NAME: Final = leaf(
    lambda tree: _short(tree, LONGEST_NAME, "a name"), _NAME, "short text", holds="words", example="cart on stop"
)
SHORT_TEXT: Final = leaf(
    lambda tree: _short(tree, LONGEST_TEXT, "the text of a phase"), {"type": "string", "maxLength": LONGEST_TEXT},
    "text of one line", holds="words", example="The cart rests on its stop.",
)  # fmt: skip


# -- The section ``names`` -----------------------------------------------------------------------------------


@mapping
class PartNameForm(KeyedMapping):
    """Words for a contact, with the subject and the object of sentences about it."""

    what: ClassVar[str] = "the words for a part"
    example: ClassVar[str] = "stop: {is: cart on stop, subject: cart, object: stop}"

    text: str = key(SHORT_NAME, "the part, in labels", "", name="is")
    subject: str = key(SHORT_NAME, "what touches, in sentences", "", example="cart")
    object: str = key(SHORT_NAME, "what is touched", "", example="stop")


def _part_names(tree: Tree) -> dict[str, PartName]:
    found: dict[str, PartName] = {}
    for word, entry in as_section(tree, "names", _NAMES_LINE).items():
        part = reference(word)
        if isinstance(entry, LocatedMapping):
            form = PartNameForm.read(entry, word)
            found[part] = PartName(form.text, form.subject, form.object, word.where)
        else:
            found[part] = PartName(_short(entry, LONGEST_NAME, "a name"), where=word.where)
    return found


NAMES: Final = leaf(
    _part_names,
    {"type": "object", "additionalProperties": {"anyOf": [_NAME, reference_to(PartNameForm)]}},
    "words by part", holds="words", mappings=(PartNameForm,), line=_NAMES_LINE,
)  # fmt: skip


# -- The section ``phases`` ----------------------------------------------------------------------------------


@mapping
class PhaseForm(KeyedMapping):
    """A phase of runs."""

    what: ClassVar[str] = "a phase"
    example: ClassVar[str] = "rest: {when: stop is closed, colour: grey}"
    hints: ClassVar[Mapping[str, str]] = in_place_of(when="if condition while", colour="color")

    when: tuple[Conjunction, ...] = key(CONDITIONS, "conditions for the phase")
    after: tuple[str, ...] = key(PHASE_NAMES, "it begins only directly after this phase, or one of a list", ())
    until: tuple[Conjunction, ...] = key(
        CONDITIONS, "once begun, the phase applies until this is true, if no earlier phase does", (), example="x > 1 m"
    )
    shortest: Text | None = expression_key(
        "a visit of less time is merged into the one before",
        None,
        usual="the larger of 2 ms and a thousandth of the time up to the last change of mode",
        example="20 ms",
    )
    colour: str = key(one_of(*COLOURS), "of its spans in the score", "")
    text: str = key(SHORT_TEXT, "next to its name in the score, at most 32 characters", "")
    focus: tuple[str, ...] = key(BODY_NAMES, "bodies in the close-ups of the score", ())


def _phases(tree: Tree) -> dict[str, RunPhase]:
    found: dict[str, RunPhase] = {}
    for word, entry in as_section(tree, "phases", _PHASES_LINE).items():
        name = _phase_name(word)
        form = PhaseForm.read(entry, word)
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


PHASES: Final = leaf(
    _phases,
    {"type": "object", "additionalProperties": reference_to(PhaseForm)},
    "[a phase](#phases) by name", mappings=(PhaseForm,), line=_PHASES_LINE,
)  # fmt: skip
