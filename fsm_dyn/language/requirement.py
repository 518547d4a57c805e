"""Requirements of a model as data, and the grammar of their formulas (docs/language.md, "requirements").

A formula is split into tokens by the tokeniser of expressions; its bounds are constant expressions and stay text until
a run has values for the parameters.  Nothing of it is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from fsm_dyn.core.errors import NOWHERE, ExpressionError, Location, did_you_mean
from fsm_dyn.language.expression_tree import Text, Token, tokenise
from fsm_dyn.language.laws import LAWS

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


def read_formula(text: Text) -> Claim:
    """Return a formula as data.

    Parameters
    ----------
    text : Text
        The formula.

    Raises
    ------
    ExpressionError
        With the place of the formula, if it is none of the grammar.
    """
    return _FormulaReader(text).claim()


def read_condition(text: Text) -> tuple[QuantityComparison | StateCondition, ...]:
    """Return conditions joined by ``and`` as data; ``otherwise``, which is always true, is none.

    Parameters
    ----------
    text : Text
        The conditions.

    Raises
    ------
    ExpressionError
        With the place of the text, if it is none of the grammar.
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
