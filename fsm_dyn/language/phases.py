"""Phases of a run and words for the parts of a model (docs/language.md, "names", "phases"), as data and forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.form import as_items, as_section, expression, free_text
from fsm_dyn.language.form import name as reference
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, mapping
from fsm_dyn.language.keys import Schema, key, leaf, list_of, one_of, reference_to
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.requirement import QuantityComparison, StateCondition, read_condition
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree

LONGEST_PHASE: Final = 16  # characters
LONGEST_NAME: Final = 24
LONGEST_TEXT: Final = 32
COLOURS: Final = ("grey", "blue", "orange", "yellow", "red", "green", "cyan", "purple")
_NOT_IN_FORMULAS: Final = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class PartName:
    """Words for a contact, one of its feature pairs, a shape or a body.

    ``text`` names it; ``subject`` and ``object`` are those of the sentences that state what a contact did, empty where
    they follow from its bodies.
    """

    text: str
    subject: str = ""
    object: str = ""
    where: Location = NOWHERE


Conjunction: TypeAlias = tuple[QuantityComparison | StateCondition, ...]


@dataclass(frozen=True, slots=True)
class RunPhase:
    """A phase of a run: one of them applies at each time, the first in the order of the model whose condition is true.

    ``when`` and ``until`` are true where all conditions of one of their conjunctions are; an empty conjunction always
    is, an empty ``until`` never.  A phase with ``after`` begins only directly after one of these phases.  Visits that
    last less than ``shortest`` are a part of the visit before; None: by the length of the run.
    """

    name: str
    when: tuple[Conjunction, ...]
    after: tuple[str, ...] = ()
    until: tuple[Conjunction, ...] = ()
    shortest: Text | None = None
    colour: str = ""
    text: str = ""
    focus: tuple[str, ...] = ()
    where: Location = NOWHERE

    @property
    def in_formulas(self) -> str:
        """Its name in requirements."""
        return formula_name(self.name)


def formula_name(name: str) -> str:
    """Return the name of a phase in formulas: with ``_`` for blanks and hyphens."""
    return _NOT_IN_FORMULAS.sub("_", name)


def phase_named(phases: Iterable[RunPhase], word: str) -> int | None:
    """Return the number of the phase that formulas call ``word``; None if there is none."""
    return next((number for number, phase in enumerate(phases) if phase.in_formulas == word), None)


def unreachable(phases: Mapping[str, RunPhase]) -> dict[str, str]:
    """Return the phases that no run can reach, by name, with the reason as text."""
    found: dict[str, str] = {}
    always = ""
    open_phases: list[RunPhase] = []
    for phase in phases.values():
        if always:
            found[phase.name] = f"{always!r} before it applies at all times"
        else:
            open_phases.append(phase)
        if not phase.after and () in phase.when:
            always = phase.name
    reached: set[str] = set()
    while True:
        new = {p.name for p in open_phases if not p.after or reached & set(p.after)} - reached
        if not new:
            break
        reached |= new
    for phase in open_phases:
        if phase.name not in reached:
            found[phase.name] = f"none of the phases that it begins after can begin ({', '.join(phase.after)})"
        elif _contradicts(phase.when):
            found[phase.name] = "its condition requires one contact in two states"
    return found


def _contradicts(when: tuple[Conjunction, ...]) -> bool:
    """Whether each conjunction requires a contact in two states, or in one and not in it."""

    def impossible(conjunction: Conjunction) -> bool:
        states = [item for item in conjunction if isinstance(item, StateCondition)]
        wanted = {(item.name, item.state) for item in states if not item.negated}
        others = {(item.name, item.state) for item in states if item.negated}
        closed_and_open = any((name, "open") in wanted and state not in ("", "open") for name, state in wanted)
        return bool(wanted & others) or closed_and_open

    return all(impossible(conjunction) for conjunction in when)


# -- Forms of the sections ``names`` and ``phases`` ----------------------------------------------------------

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
