"""The tree of an expression: words, tokens, numbers with units, nodes, and the fold over an algebra."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from fsm_dyn.core.errors import NOWHERE, ExpressionError, Location, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.units import (
    CONTINUING,
    DIMENSIONLESS,
    MISREAD,
    TABLE,
    Dimension,
    UnknownUnitError,
    divide,
    multiply,
    power,
    unit,
)

# -- The words of the expression language --------------------------------------------------------------------
#
# Functions with their numbers of arguments, and reserved names.

#: Name in a model.
NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

#: A name longer than this is refused: names reach generated code, file names and column titles.
MAX_NAME_LENGTH = 64

_ONE_ARGUMENT: tuple[str, ...] = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
_ONE_ARGUMENT += ("sqrt", "exp", "log", "abs", "sign", "floor")

#: Scalar functions, with the least and the largest number of arguments (None: any).
SCALAR_FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        "where": (3, 3),
        "atan2": (2, 2),
        "mod": (2, 2),
        "min": (2, None),
        "max": (2, None),
        "rate": (1, 1),
    }
    | dict.fromkeys(_ONE_ARGUMENT, (1, 1))
)

#: Functions of vectors; ``dot`` and ``norm`` give scalars.
VECTOR_FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"dot": (2, 2), "cross": (2, 2), "norm": (1, 1), "pos": (1, 2), "vel": (1, 2), "omega": (1, 1)}
)

#: Functions with a switch between cases, like comparisons and ``where``.
CASE_FUNCTIONS = frozenset({"abs", "sign", "min", "max", "mod", "floor"})

FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType({**SCALAR_FUNCTIONS, **VECTOR_FUNCTIONS})

#: Functions with names as arguments, handed to the algebra unevaluated.
REFERENCE_FUNCTIONS = frozenset({"rate", "pos", "vel", "omega"})

#: Operators written as words.
WORD_OPERATORS = frozenset({"and", "or", "not"})

#: Words for numbers.
CONSTANT_WORDS = frozenset({"pi", "true", "false"})

#: Reserved names, not available to a model.
RESERVED_NAMES = frozenset({"N", "O", "t", "inf"}) | CONSTANT_WORDS | WORD_OPERATORS | frozenset(FUNCTIONS)


def is_name(text: str) -> bool:
    """Return whether `text` has the form of a name (reserved or not)."""
    return len(text) <= MAX_NAME_LENGTH and NAME_PATTERN.fullmatch(text) is not None


# -- A piece of text from a model, with its place ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """An expression as written, with its place; numbers are kept as text too (``"20 kg"``, ``"0.4"``)."""

    text: str
    where: Location = NOWHERE

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class MadeText(Text):
    """An expression that was not written, but made of many parts of a model: it may be longer."""


@dataclass(frozen=True, slots=True)
class ComposedText(Text):
    """A scalar made of a few that were written: an error in one of these is reported at its own place."""

    parts: tuple[Text, ...] = ()


# -- The tree an expression is read into ---------------------------------------------------------------------
#
# The one way to walk it is to fold it over an algebra.
#
# An *algebra* defines numbers, names and operations: floats (`FloatAlgebra`), kinds and dimensions
# (`fsm_dyn.language`), graph nodes or sympy (`fsm_dyn.derive`). The tree itself has no meaning.

AxisLetter: TypeAlias = Literal["x", "y", "z"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in SI units; ``dimension`` is None for a number without a unit."""

    value: float
    dimension: Dimension | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the model, or ``t``."""

    id: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A unit vector of a frame: ``B.x``."""

    frame: str
    axis: AxisLetter


@dataclass(frozen=True, slots=True)
class Index:
    """An element of a vector parameter: ``lip[0]``."""

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language; ``min`` and ``max`` always have two arguments (more are nested)."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``-a``, ``+a``, ``not a``."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """``a + b``, ``-``, ``*``, ``/``, ``**``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison; chains ``a < b < c`` are read as ``a < b and b < c``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Boolean:
    """``a and b and ...`` or ``a or b or ...``."""

    op: str
    operands: tuple[Node, ...]


Node: TypeAlias = Number | Name | Axis | Index | Call | Unary | Binary | Compare | Boolean

V = TypeVar("V")


class Algebra(Protocol[V]):
    """The operations of folding; every method gets already folded operands.

    `call` gets plain `Name` nodes, not values, for the functions in ``REFERENCE_FUNCTIONS``
    (``rate``, ``pos``, ``vel``, ``omega``): their arguments are names of things.
    """

    def number(self, node: Number, /) -> V:
        """Return the meaning of a number."""
        ...

    def name(self, name: str, /) -> V:
        """Return the meaning of a name."""
        ...

    def axis(self, frame: str, axis: AxisLetter, /) -> V:
        """Return the meaning of a frame's unit vector."""
        ...

    def index(self, name: str, index: int, /) -> V:
        """Return the meaning of an element of a vector parameter."""
        ...

    def call(self, function: str, arguments: list[Any], /) -> V:
        """Apply a function."""
        ...

    def unary(self, op: str, operand: V, /) -> V:
        """Apply ``-``, ``+`` or ``not``."""
        ...

    def binary(self, op: str, left: V, right: V, /) -> V:
        """Apply ``+ - * / **``."""
        ...

    def compare(self, op: str, left: V, right: V, /) -> V:
        """Compare two values."""
        ...

    def boolean(self, op: str, operands: list[V], /) -> V:
        """Combine conditions by ``and`` or ``or``."""
        ...


def fold(node: Node, algebra: Algebra[V]) -> V:
    """Evaluate `node` in `algebra`, operands first, from left to right.

    ``node``: a result of `parse`; its depth is bounded there, so recursion is safe. ``algebra``: the meaning of the
    operations.
    """
    match node:
        case Number():
            return algebra.number(node)
        case Name(id=name):
            return algebra.name(name)
        case Axis(frame=frame, axis=axis):
            return algebra.axis(frame, axis)
        case Index(name=name, index=index):
            return algebra.index(name, index)
        case Unary(op=op, operand=operand):
            return algebra.unary(op, fold(operand, algebra))
        case Binary(op=op, left=left, right=right):
            return algebra.binary(op, fold(left, algebra), fold(right, algebra))
        case Compare(op=op, left=left, right=right):
            return algebra.compare(op, fold(left, algebra), fold(right, algebra))
        case Boolean(op=op, operands=operands):
            return algebra.boolean(op, [fold(operand, algebra) for operand in operands])
        case Call(function=function, arguments=arguments):
            if function in REFERENCE_FUNCTIONS:
                return algebra.call(function, list(arguments))
            return algebra.call(function, [fold(argument, algebra) for argument in arguments])


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct operands of `node`, those of reference functions included."""
    match node:
        case Call(arguments=arguments):
            return arguments
        case Boolean(operands=operands):
            return operands
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
    return ()


def walk(node: Node) -> list[Node]:
    """Return `node` and everything below it, parents first."""
    found: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        found.append(current)
        pending.extend(reversed(children(current)))
    return found


def free_names(node: Node) -> frozenset[str]:
    """Return every name `node` refers to: variables, frames of axes, points, vector parameters, ``t``."""
    names: set[str] = set()
    for part in walk(node):
        match part:
            case Name(id=name) | Index(name=name) | Axis(frame=name):
                names.add(name)
    return frozenset(names)


# -- Characters to tokens ------------------------------------------------------------------------------------
#
# The first gate of a text, before Python's own parser.

MAX_LENGTH = 4000
MAX_MADE_LENGTH = 200_000  # of an expression made from those of a model
MAX_BRACKETS = 60

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z\u00b5\u03bc\u00b0\u03a9][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|<=|>=|==|!=|[-+*/^<>(),.\[\]])"
)

_REMEDIES = {
    "?": "write where(condition, a, b)",
    "=": "there is no assignment: a row is zero by itself, a condition has > or <, memory is compared by ==",
    "\N{DEGREE SIGN}": "write deg",
    "_": "names start with a letter: [A-Za-z][A-Za-z0-9_]*",
    "{": "brackets of expressions are ( )",
    "}": "brackets of expressions are ( )",
    "'": "expressions hold no texts; the rate of a coordinate is rate(q)",
    '"': "expressions hold no texts",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "%": "write mod(a, b)",
    ";": "one expression only",
    ":": "quote expressions; there are no slices or lambdas",
    "\N{MINUS SIGN}": "the sign is -",
    "\N{MIDDLE DOT}": "write *",
    "\N{MULTIPLICATION SIGN}": "write *",
    "\N{DIVISION SIGN}": "write /",
    "\N{SUPERSCRIPT TWO}": "write **2; in units ^2",
    "\N{SUPERSCRIPT THREE}": "write **3; in units ^3",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``start`` and ``end`` are character positions in the text."""

    kind: Literal["number", "name", "op"]
    text: str
    start: int
    end: int


def tokenise(text: str, where: Location, longest: int = MAX_LENGTH) -> list[Token]:
    """Split an expression into tokens.

    Raises ExpressionError if the text is empty, too long, holds a character without meaning or unbalanced brackets.
    """
    if len(text) > longest:
        raise ExpressionError(
            "expression too long",
            where,
            found=f"{len(text)} characters",
            allowed=f"{longest} characters",
            remedy="name parts of it: parameters, points",
        )
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, position, where)
        position = match.end()
        match match.lastgroup:
            case "number" | "name" | "op" as kind:
                tokens.append(Token(kind, match.group(), match.start(), match.end()))
    if not tokens:
        raise ExpressionError("empty expression", where, allowed="a number, a name, an expression of them")
    _check_brackets(tokens, text, where)
    return tokens


def _choice_in(text: str) -> str:
    """Return the remedy for a choice in the form of another language; empty if there is none."""
    return "write where(condition, a, b)" if re.search(r"\bif\b.*\belse\b|\?.*:", text) else ""


def _number_meant(text: str, position: int) -> str:
    """Return the remedy for a percentage, or for a number in groups of digits; empty for others."""
    before, character, after = text[:position].rstrip(), text[position], text[position + 1 :]
    if not before[-1:].isdigit():
        return ""
    if character == "%" and not after.strip():
        return "write the fraction: 0.4 for 40 %"
    return "write a number without groups: 4000" if character in "'_" and after[:1].isdigit() else ""


def _stray(text: str, position: int, where: Location) -> ExpressionError:
    character = text[position]
    return ExpressionError(
        f"character {character!r} has no meaning in an expression",
        where,
        found=excerpt(text),
        remedy=_choice_in(text)
        or _number_meant(text, position)
        or _REMEDIES.get(character, "allowed are numbers with units, names, + - * / **, comparisons, ( ) and ,"),
    )


def _check_brackets(tokens: list[Token], text: str, where: Location) -> None:
    pairs = {")": "(", "]": "["}
    stack: list[str] = []
    for token in tokens:
        if token.text in ("(", "["):
            stack.append(token.text)
            if len(stack) > MAX_BRACKETS:
                raise ExpressionError("brackets nested too deeply", where, allowed=f"{MAX_BRACKETS} levels")
        elif token.text in pairs and (not stack or stack.pop() != pairs[token.text]):
            raise unbalanced(text, where)
    if stack:
        raise unbalanced(text, where)


def unbalanced(text: str, where: Location) -> ExpressionError:
    """Return the error for unbalanced brackets: nearly always an unquoted comma."""
    return ExpressionError(
        "brackets do not match",
        where,
        found=excerpt(text),
        remedy="inside { } and [ ], quote expressions that contain commas",
    )


def excerpt(text: str, limit: int = 60) -> str:
    """Return `text` on one line, shortened, for a message."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


# -- Numbers with their units: token patterns beyond Python's grammar ----------------------------------------
#
# A unit belongs to the number directly before it and binds tighter than any operator: ``2 N*sin(t)`` is ``(2
# N)*sin(t)``. It continues over ``*`` and ``/`` as long as known units follow, so ``0.4 N*m`` is a moment even in a
# model with a mass ``m``; ``(0.4 N)*m`` is a force times the mass.

MAX_UNIT_POWER = 12.0
MAX_NUMBER = 1e100  # products of two masses or lengths still are numbers

_Measure = tuple[float, Dimension]


def read_quantity(tokens: list[Token], start: int, where: Location) -> tuple[float, Dimension | None, int]:
    """Read the number at ``tokens[start]`` with its unit, if any.

    Returns ``value``: in SI units; ``dimension``: none for a bare number; ``end``: index of the first token after it.
    """
    value = _finite(float(tokens[start].text), tokens[start].text, where)
    after = start + 1
    reader = _Reader(tokens, where, anything=False)
    named = after < len(tokens) and tokens[after].kind == "name" and tokens[after].text not in WORD_OPERATORS
    if not named and not reader.is_inverse(after):
        return value, None, after
    if _text(tokens, after + 1) in ("(", ".", "["):
        glued = "".join(_text(tokens, at) for at in range(after, after + 3))
        unit = tokens[after].text in TABLE and _text(tokens, after + 1) == "." and _text(tokens, after + 2) not in "xyz"
        raise ExpressionError(
            f"a number is followed by {tokens[after].text!r}",
            where,
            found=f"{tokens[start].text} {glued}",
            remedy="units are joined by * and /: 9.81 m/s^2" if unit else f"write {tokens[start].text}*{glued}",
        )
    (factor, dimension), end = reader.product(after)
    return _finite(value * factor, tokens[start].text, where), dimension, end


@functools.lru_cache(maxsize=256)
def _whole_unit(text: str) -> _Measure:
    if text.strip() == "1":
        return 1.0, DIMENSIONLESS
    tokens = tokenise(text, Location())
    measure, end = _Reader(tokens, Location(), anything=True).product(0)
    if end != len(tokens):
        raise ExpressionError("not a unit")
    return measure


def parse_unit(text: str, where: Location) -> _Measure:
    """Return (factor to SI, dimension) of a unit text such as ``"N*m"``; ``"1"`` is dimensionless.

    Raises ExpressionError if it is not a product of powers of known units.
    """
    try:
        return _whole_unit(text)
    except ExpressionError as error:
        raise ExpressionError(
            f"{excerpt(text)!r} is not a unit",
            where,
            found=error.message,
            allowed="units such as m, rad, N, N*m, kg*m^2, 1",
            remedy=error.remedy,
        ) from error


def is_unit(text: str) -> bool:
    """Whether a text is a unit, such as ``"1/s"``."""
    try:
        _whole_unit(text)
    except ExpressionError:
        return False
    return True


def _unit_meant(text: str) -> str:
    """Return the remedy for a misread unit, a plural, a word of a choice; empty for others."""
    if text in ("if", "then", "else", "elseif"):
        return "write where(condition, a, b)"
    if text == "\N{DEGREE SIGN}":
        return "write deg"
    singular = text.rstrip("s")
    return MISREAD.get(text) or (f"did you mean '{singular}'?" if len(singular) > 1 and singular in TABLE else "")


class _Reader:
    """Recursive descent over products of powers of units; ``anything``: rare units may continue, too."""

    def __init__(self, tokens: list[Token], where: Location, *, anything: bool) -> None:
        self.tokens = tokens
        self.where = where
        self.anything = anything

    def product(self, start: int) -> tuple[_Measure, int]:
        (factor, dimension), at = self._power(*self._first(start))
        while (op := _text(self.tokens, at)) in ("*", "/"):
            following = self._following(at + 1, op)
            if following is None:
                break
            (f, d), at = self._power(*following)
            factor, dimension = (
                (factor * f, multiply(dimension, d)) if op == "*" else (factor / f, divide(dimension, d))
            )
        return (factor, dimension), at

    def is_inverse(self, at: int) -> bool:
        """Whether an inverse begins at a token, such as 1/s."""
        return (_text(self.tokens, at), _text(self.tokens, at + 1)) == ("1", "/") and (
            self._following(at + 2, "/") is not None
        )

    def _first(self, at: int) -> tuple[_Measure, int]:
        if self.is_inverse(at):
            return (1.0, DIMENSIONLESS), at + 1
        text = _text(self.tokens, at)
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            raise ExpressionError(f"{excerpt(text)!r} is no unit", self.where)
        return self._unit(text), at + 1

    def _unit(self, text: str) -> _Measure:
        try:
            return unit(text)
        except UnknownUnitError:
            raise ExpressionError(
                f"unknown unit {excerpt(text)!r}",
                self.where,
                found=text,
                allowed="SI units and those pint knows, combined by * / ^",
                remedy=_unit_meant(text) or did_you_mean(text, TABLE) or "put an operator between a number and a name",
            ) from None

    def _following(self, at: int, op: str) -> tuple[_Measure, int] | None:
        """Return the unit or bracketed product of units at `at`, or None if there is none."""
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if token.kind == "name" and _text(self.tokens, at + 1) not in ("(", ".", "["):
            if self.anything or token.text in CONTINUING[op]:
                return self._unit(token.text), at + 1
        elif token.text == "(" and (inner := self._following(at + 1, op)) is not None:
            # `/(m*K)` belongs to the unit only if the whole bracket is made of units.
            try:
                measure, end = self.product(at + 1)
            except ExpressionError:
                return None
            if inner and _text(self.tokens, end) == ")":
                return measure, end + 1
        return None

    def _power(self, measure: _Measure, at: int) -> tuple[_Measure, int]:
        if _text(self.tokens, at) not in ("^", "**"):
            return measure, at
        exponent, end = self._exponent(at + 1)
        if abs(exponent) > MAX_UNIT_POWER:
            raise ExpressionError("power of a unit too large", self.where, allowed=f"up to {MAX_UNIT_POWER:g}")
        return (measure[0] ** exponent, power(measure[1], exponent)), end

    def _exponent(self, at: int) -> tuple[float, int]:
        bracket = _text(self.tokens, at) == "("
        at += bracket
        sign = {"-": -1.0, "+": 1.0}.get(_text(self.tokens, at))
        at += sign is not None
        value = (sign or 1.0) * self._plain_number(at)
        at += 1
        if bracket:
            if _text(self.tokens, at) == "/":
                divisor = self._plain_number(at + 1)
                value = value / divisor if divisor else math.inf
                at += 2
            if _text(self.tokens, at) != ")":
                raise self._bad_exponent()
            at += 1
        return value, at

    def _plain_number(self, at: int) -> float:
        if at >= len(self.tokens) or self.tokens[at].kind != "number":
            raise self._bad_exponent()
        return float(self.tokens[at].text)

    def _bad_exponent(self) -> ExpressionError:
        return ExpressionError(
            "the power of a unit must be a number",
            self.where,
            allowed="m^2, m^-1, m^2.5, m^(1/2)",
            remedy="to raise a quantity to an expression, write (2 m)**n",
        )


def _text(tokens: list[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""


def _finite(value: float, text: str, where: Location) -> float:
    if not abs(value) <= MAX_NUMBER:
        raise ExpressionError("number too large", where, found=text, allowed=f"up to {MAX_NUMBER:g} in SI units")
    return value
