"""What a model asks of its runs: requirements with their grammar, phases and words (docs/language.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

from fsm_dyn.core.errors import NOWHERE, ExpressionError, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text, Token, tokenise
from fsm_dyn.language.form import as_items, as_section, expression, free_text
from fsm_dyn.language.form import name as reference
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, mapping
from fsm_dyn.language.keys import Schema, key, leaf, list_of, one_of, reference_to
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.laws import LAWS
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree

#: Words of other languages for the claims of this one, and within them.
_BEGUN = {
    "max": "peak", "maximum": "peak", "min": "trough", "minimum": "trough", "end": "final", "last": "final",
    "globally": "always", "G": "always", "finally": "eventually", "F": "eventually",
}  # fmt: skip
_JOINTS = {
    "or": "a list means any of them: `when: [a, b]`; separate requirements are separate entries",
    "until": "write `always ... while CONTACT is STATE`, or `eventually ... before 3 s`",
    "if": "write `always ... while CONTACT is STATE`", "when": "write `always ... while CONTACT is STATE`",
    "after": "write `always ... while CONTACT is STATE`", "for": "write `eventually ... before 3 s`",
    "within": "`within` belongs to `never CONTACT EVENT twice within TIME`; else write `before`",
}  # fmt: skip


def _begun_by_others(word: str, text: str) -> str:
    """Return the remedy for a claim that begins with another word."""
    if word in _BEGUN:
        return f"write {_BEGUN[word]}"
    return f"write `always {text}`" if any(op in text for op in "<>") or " is " in text else did_you_mean(word, _CLAIMS)


EXTREMES = ("peak", "trough", "final")
_CLAIMS = ("never", "always", "eventually", "count", *EXTREMES)
PARTS = ("normal", "friction")
IMPULSE = "impulse"  # at transitions
LOADS = ("force", "force_x", "force_y", "force_z", "torque", "torque_x", "torque_y", "torque_z")
WEAR = ("sliding", "work", "depth")  # of connections with wear, over the run so far
PIN_PARTS = (*LOADS, IMPULSE, *WEAR)
_EVENTS = frozenset(word for law in LAWS for word in law.words)
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FORMS = (
    "never CONTACT EVENT [twice within TIME], never CONDITION, always CONDITION [while STATE and ...], "
    "eventually CONDITION or CONTACT EVENT [before TIME], peak|trough|final(QUANTITY) < VALUE, "
    "count(CONTACT EVENT) <= NUMBER; a state is MODE, CONTACT is STATE or phase == PHASE, an event also PHASE begins"
)
_CONDITIONS = "QUANTITY < VALUE, CONTACT is [not] STATE, MODE; several joined by `and`; or otherwise"
PHASE_EVENTS = ("begins", "ends")


@dataclass(frozen=True, slots=True)
class MeasuredQuantity:
    """A coordinate, speed, input, memory or output, or a force (``part`` of PARTS) of a contact; or its magnitude.

    The name of one of the PIN_PARTS of a connection is that of its column, ``pin.knee.force``.
    """

    name: str
    part: str = ""
    magnitude: bool = False

    @property
    def connection(self) -> str:
        """The connection of which it is a force or torque, if it is one."""
        return self.name.split(".")[1] if self.name.startswith("pin.") else ""

    @property
    def is_impulse(self) -> bool:
        """Whether it is the impulse of a connection, which has a value at transitions alone."""
        return bool(self.connection) and self.name.endswith(f".{IMPULSE}")

    @property
    def is_wear(self) -> bool:
        """Whether it adds up over the run: sliding, work or depth of a connection that wears."""
        return bool(self.connection) and self.name.rsplit(".", 1)[1] in WEAR

    def __str__(self) -> str:
        text = f"{self.name}.{self.part}" if self.part else self.name
        return f"abs({text})" if self.magnitude else text


@dataclass(frozen=True, slots=True)
class QuantityComparison:
    """A quantity compared (``< <= > >=``) with a constant expression."""

    quantity: MeasuredQuantity
    op: str
    bound: Text


@dataclass(frozen=True, slots=True)
class StateCondition:
    """The mode pattern ``name`` applies; with ``state``, the contact or entry ``name`` is in this state; or not."""

    name: str
    state: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class PhaseCondition:
    """The phase ``name`` applies, or not; the name as in formulas, with ``_`` for blanks and hyphens."""

    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class ContactEvent:
    """An event of a contact, or of any feature pair of an entry of ``contacts``, by its word in model files."""

    contact: str
    word: str


@dataclass(frozen=True, slots=True)
class PhaseEvent:
    """A visit of the phase ``name`` begins or ends (``word`` of PHASE_EVENTS)."""

    name: str
    word: str


State: TypeAlias = StateCondition | PhaseCondition
Condition: TypeAlias = QuantityComparison | StateCondition | PhaseCondition
Event: TypeAlias = ContactEvent | PhaseEvent


@dataclass(frozen=True, slots=True)
class Always:
    """``always CONDITION [while STATE and ...]``; ``never CONDITION`` is the negated condition."""

    condition: Condition
    during: tuple[State, ...] = ()


@dataclass(frozen=True, slots=True)
class NeverTwice:
    """``never CONTACT EVENT twice within TIME``."""

    event: Event
    within: Text


@dataclass(frozen=True, slots=True)
class Eventually:
    """``eventually CONDITION or CONTACT EVENT [before TIME]``."""

    condition: Condition | Event
    before: Text | None = None


@dataclass(frozen=True, slots=True)
class Extreme:
    """``peak``, ``trough`` or ``final`` value of a quantity over the run, compared with a constant expression."""

    function: str
    comparison: QuantityComparison


@dataclass(frozen=True, slots=True)
class Count:
    """``count(CONTACT EVENT) <= NUMBER``; ``never CONTACT EVENT`` is a count of at most 0."""

    event: Event
    op: str
    bound: Text


def conditions_of(claim: Claim) -> Iterator[Condition | Event]:
    """Yield the conditions and events of a claim."""
    match claim:
        case Always(condition=condition, during=during):
            yield from (condition, *during)
        case Eventually(condition=found):
            yield found
        case NeverTwice(event=event) | Count(event=event):
            yield event


Claim: TypeAlias = Always | NeverTwice | Eventually | Extreme | Count


@dataclass(frozen=True, slots=True)
class Requirement:
    """A named requirement: its text (``summary``), its formula as written, and the formula as data."""

    name: str
    formula: str
    claim: Claim
    summary: str = ""
    where: Location = NOWHERE


def formula_of(claim: Claim) -> str:
    """Return a claim as a formula, which reads as the same claim."""
    match claim:
        case Always(condition=condition, during=during):
            states = " and ".join(map(_written, during))
            return f"always {_written(condition)}" + (f" while {states}" if states else "")
        case NeverTwice(event=event, within=within):
            return f"never {_written(event)} twice within {within.text}"
        case Eventually(condition=found, before=before):
            return f"eventually {_written(found)}" + ("" if before is None else f" before {before.text}")
        case Count(event=event, op=op, bound=bound):
            return f"count({_written(event)}) {op} {bound.text}"
        case Extreme(function=function, comparison=found):
            return f"{function}({found.quantity}) {found.op} {found.bound.text}"


def _written(found: Condition | Event) -> str:
    match found:
        case QuantityComparison(quantity=quantity, op=op, bound=bound):
            return f"{quantity} {op} {bound.text}"
        case StateCondition(name=name, state="", negated=negated):
            return f"mode != {name}" if negated else name
        case StateCondition(name=name, state=state, negated=negated):
            return f"{name} is {'not ' if negated else ''}{state}"
        case PhaseCondition(name=name, negated=negated):
            return f"phase {'!=' if negated else '=='} {name}"
        case ContactEvent(contact=name, word=word) | PhaseEvent(name=name, word=word):
            return f"{name} {word}"


def read_formula(text: Text) -> Claim:
    """Return a formula as data. Raises ExpressionError with the place of the formula, if it is none of the grammar."""
    return _FormulaReader(text).claim()


def read_condition(text: Text) -> tuple[QuantityComparison | StateCondition, ...]:
    """Return conditions joined by ``and`` as data; ``otherwise``, which is always true, is none.

    Raises ExpressionError with the place of the text, if it is none of the grammar.
    """
    return _FormulaReader(text, "a condition", _CONDITIONS).conjunction()


class _FormulaReader:
    """Recursive descent over the tokens of a formula."""

    def __init__(self, text: Text, what: str = "a requirement", forms: str = _FORMS) -> None:
        self.text, self.what, self.forms = text, what, forms
        self.tokens: Sequence[Token] = tokenise(text.text, text.where)
        self.at = 0

    def claim(self) -> Claim:
        word = self.next()
        match word:
            case "never":
                claim = self._never()
            case "always":
                condition = self._condition()
                claim = Always(condition, self._states() if self.accept("while") else ())
            case "eventually":
                event = self._is_event()
                found = self._event() if event else self._condition()
                claim = Eventually(found, self._bound() if self.accept("before") else None)
            case "count":
                self.expect("(")
                event_counted = self._event()
                self.expect(")")
                claim = Count(event_counted, self._operator(), self._bound())
            case _ if word in EXTREMES:
                self.expect("(")
                quantity = self._quantity()
                self.expect(")")
                claim = Extreme(word, QuantityComparison(quantity, self._operator(), self._bound()))
            case _:
                self._refuse(
                    f"a requirement does not begin with {word!r}", remedy=_begun_by_others(word, self.text.text)
                )
        if self.at < len(self.tokens):
            self._refuse(f"{self.peek()!r} is not expected here")
        return claim

    def conjunction(self) -> tuple[QuantityComparison | StateCondition, ...]:
        """Read conditions joined by ``and``."""
        if [token.text for token in self.tokens] == ["otherwise"]:
            return ()
        found: list[QuantityComparison | StateCondition] = []
        while not found or self.accept("and"):
            condition = self._condition()
            if isinstance(condition, PhaseCondition):
                self._refuse("the condition of a phase names no phase")
            found.append(condition)
        if self.at < len(self.tokens):
            self._refuse(f"{self.peek()!r} is not expected here")
        return tuple(found)

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def next(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def accept(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self._refuse(f"{word!r} is missing" + (f" before {self.peek()!r}" if self.peek() else " at the end"))

    def _never(self) -> Claim:
        if self._is_event():
            event = self._event()
            if not self.accept("twice"):
                return Count(event, "<=", Text("0", self.text.where))
            self.expect("within")
            return NeverTwice(event, self._bound())
        condition = self._condition()
        if isinstance(condition, QuantityComparison):
            return Always(QuantityComparison(condition.quantity, _NEGATED[condition.op], condition.bound))
        return Always(replace(condition, negated=not condition.negated))

    def _is_event(self) -> bool:
        """Whether two names follow each other, the second one an event."""
        following = self.tokens[self.at : self.at + 2]
        return [token.kind for token in following] == ["name"] * 2 and following[1].text not in ("before", "is")

    def _event(self) -> Event:
        contact, word = self._name("a contact"), self._name("an event")
        if word in PHASE_EVENTS:
            return PhaseEvent(contact, word)
        if f"{word} {self.peek()}" in _EVENTS:
            word = f"{word} {self.next()}"
        return ContactEvent(contact, word)

    def _condition(self) -> Condition:
        following = self.peek(1)
        named = self.peek() in ("mode", "phase") and following in ("==", "!=")
        if following in ("", "is", "while", "before", "and") or named:
            return self._state()
        return QuantityComparison(self._quantity(), self._operator(), self._bound())

    def _states(self) -> tuple[State, ...]:
        states = [self._state()]
        while self.accept("and"):
            states.append(self._state())
        return tuple(states)

    def _state(self) -> State:
        name = self._name("a mode or a contact")
        if name in ("mode", "phase") and self.peek() in ("==", "!="):
            negated = self.next() == "!="
            other = self._name(f"a {name}")
            return StateCondition(other, "", negated) if name == "mode" else PhaseCondition(other, negated)
        if self.accept("is"):
            negated = self.accept("not")
            return StateCondition(name, self._name("a contact state"), negated)
        return StateCondition(name)

    def _quantity(self) -> MeasuredQuantity:
        if self.peek() == "abs" and self.peek(1) == "(":
            self.at += 2
            inner = self._quantity()
            self.expect(")")
            return MeasuredQuantity(inner.name, inner.part, True)
        name = self._name("a quantity")
        if not self.accept("."):
            return MeasuredQuantity(name)
        if name == "pin":
            return self._of_pin()
        part = self._name("a force of the contact")
        if part not in PARTS:
            self._refuse(f"a contact has no force {part!r}", ", ".join(PARTS), f"a state is `{name} is {part}`")
        return MeasuredQuantity(name, part)

    def _of_pin(self) -> MeasuredQuantity:
        name = self._name("a connection")
        self.expect(".")
        part = self._name("a force or torque")
        if part not in PIN_PARTS:
            self._refuse(f"a connection has no {part!r}", allowed=", ".join(PIN_PARTS))
        return MeasuredQuantity(f"pin.{name}.{part}")

    def _operator(self) -> str:
        op = self.next()
        if op not in _NEGATED:
            self._refuse(
                f"{op!r} does not compare" if op else "a comparison is missing", allowed="< <= > >=",
                remedy="a list of conditions is true where one of them is" if op in ("or", "|") else "",
            )  # fmt: skip
        return op

    def _bound(self) -> Text:
        """Read a constant expression: all tokens up to a word of the grammar."""
        first = self.at
        while self.at < len(self.tokens) and self.peek() not in ("while", "before", "and"):
            self.at += 1
        if self.at == first:
            self._refuse("a value is missing")
        other = next((token.text for token in self.tokens[first : self.at] if token.text in _JOINTS), "")
        if other:
            self._refuse(f"{other!r} is not expected here", remedy=_JOINTS[other])
        return Text(self.text.text[self.tokens[first].start : self.tokens[self.at - 1].end], self.text.where)

    def _name(self, what: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind != "name":
            self._refuse(f"{what} is missing" + (f" before {self.peek()!r}" if self.peek() else " at the end"))
        return self.next()

    def _refuse(self, message: str, allowed: str = "", remedy: str = "") -> NoReturn:
        raise ExpressionError(
            f"not {self.what}: {message}", self.text.where, found=self.text.text, allowed=allowed or self.forms,
            remedy=remedy,
        ) from None  # fmt: skip


# -- Phases of a run, and words for the parts of a model -------------------------------------------------------


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
