"""Text to a tree through an allow-list over ``ast`` of Python; nothing of a user's text is ever executed."""

from __future__ import annotations

import ast
import functools
import itertools
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fsm_dyn.core.errors import NOWHERE, ExpressionError, Location, did_you_mean
from fsm_dyn.language.expression_tree import (
    FUNCTIONS,
    MAX_LENGTH,
    MAX_MADE_LENGTH,
    REFERENCE_FUNCTIONS,
    WORD_OPERATORS,
    Axis,
    AxisLetter,
    Binary,
    Boolean,
    Call,
    Compare,
    ComposedText,
    Index,
    MadeText,
    Name,
    Node,
    Number,
    Text,
    Token,
    Unary,
    excerpt,
    fold,
    free_names,
    read_quantity,
    tokenise,
)
from fsm_dyn.runtime.library import ELEMENTARY

# -- The algebra of plain numbers: parameters, initial values, tables ----------------------------------------

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _log(a: float) -> float:
    return ELEMENTARY["log"](a) if a > 0.0 else math.nan


def _power(a: float, b: float) -> float:
    return math.nan if a == 0.0 and b < 0.0 else ELEMENTARY["pow"](a, b)


_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    **{name: function for name, function in ELEMENTARY.items() if name != "pow"},
    "log": _log,
    "sqrt": math.sqrt,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "min": min,
    "max": max,
    "floor": lambda a: float(math.floor(a)),
    "mod": lambda a, b: a - b * math.floor(a / b),
    "where": lambda condition, a, b: a if condition else b,
}


class FloatAlgebra:
    """Folds an expression to a float; operations without a real result give nan, overflow gives inf.

    ``values``: value of each name in SI units; a vector parameter has a sequence.
    """

    def __init__(self, values: Mapping[str, float | Sequence[float]]) -> None:
        self.values = values

    def number(self, node: Number, /) -> float:
        """Return the meaning of a number."""
        return node.value

    def name(self, name: str, /) -> float:
        """Return the meaning of a name."""
        value = self._look_up(name)
        if isinstance(value, Sequence):
            raise ExpressionError(f"{name!r} is a vector", remedy=f"write {name}[0]")
        return float(value)

    def index(self, name: str, index: int, /) -> float:
        """Return the meaning of an element of a vector parameter."""
        value = self._look_up(name)
        if not isinstance(value, Sequence):
            raise ExpressionError(f"{name!r} is not a vector", remedy=f"write {name}")
        if index >= len(value):
            raise ExpressionError(f"{name!r} has no element {index}", allowed=f"0 to {len(value) - 1}")
        return float(value[index])

    def axis(self, frame: str, axis: AxisLetter, /) -> float:
        """Refuse: a vector is no number."""
        raise ExpressionError(f"the vector {frame}.{axis} stands where only numbers may")

    def call(self, function: str, arguments: list[Any], /) -> float:
        """Apply a function."""
        if function not in _FUNCTIONS:
            raise ExpressionError(f"{function}(...) stands where only numbers may")
        return _real(_FUNCTIONS[function], *arguments)

    def unary(self, op: str, operand: float, /) -> float:
        """Apply ``-``, ``+`` or ``not``."""
        if op == "not":
            return float(not operand)
        return -operand if op == "-" else operand

    def binary(self, op: str, left: float, right: float, /) -> float:
        """Apply ``+ - * / **``."""
        if op == "/":
            return _real(operator.truediv, left, right)
        if op == "**":
            return _real(_power, left, right)
        return _real(_ARITHMETIC[op], left, right)

    def compare(self, op: str, left: float, right: float, /) -> float:
        """Return 1.0 if the comparison holds, else 0.0."""
        return float(_COMPARISONS[op](left, right))

    def boolean(self, op: str, operands: list[float], /) -> float:
        """Combine conditions by ``and`` or ``or``."""
        return float(all(operands) if op == "and" else any(operands))

    def _look_up(self, name: str) -> float | Sequence[float]:
        if name not in self.values:
            raise ExpressionError(
                f"unknown name {name!r}",
                found=name,
                allowed=", ".join(self.values) or "numbers only",
                remedy=did_you_mean(name, self.values),
            )
        return self.values[name]


def _real(function: Callable[..., float], *arguments: float) -> float:
    try:
        return float(function(*arguments))
    except OverflowError:
        return math.inf
    except (ZeroDivisionError, ValueError):
        return math.nan


# -- Text to tree through an allow-list over Python's ``ast`` ------------------------------------------------
#
# Nothing of a user's text is ever executed.

TABLE_FUNCTION = "interpolate"  # written out when it is read
MOST_PLACES = 60
MAX_DEPTH = 200
MAX_EXPONENT = 64.0
MAX_INDEX = 999

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_UNARY: Mapping[type[ast.unaryop], str] = {ast.UAdd: "+", ast.USub: "-", ast.Not: "not"}
_AXES: Mapping[str, AxisLetter] = {"x": "x", "y": "y", "z": "z"}
_DECIMAL_COMMA = re.compile(r"\b\d+,\d+\b")
_DECIMAL_POINT = "decimals have a point: 0.15 kg"
#: Remedies for functions of other tools.
_OF_OTHERS: Mapping[str, str] = {
    "ln": "the natural logarithm is log(x)", "if": "write where(condition, a, b)", "pow": "write a**b",
    "hypot": "write sqrt(a**2 + b**2)", "length": "write norm(v)", "mag": "write norm(v)", "sgn": "write sign(x)",
    "position": "write pos(P)", "velocity": "write vel(P)", "arctan2": "write atan2(y, x)",
    **dict.fromkeys(("diff", "der", "ddt", "deriv", "dt"), "write rate(q) of a coordinate"),
    **{f"{name}d": f"write {name}(30 deg)" for name in ("sin", "cos", "tan")},
    **dict.fromkeys(("asind", "acosd", "atand", "atan2d"), "angles are in rad: divide by 1 deg for degrees"),
    **dict.fromkeys(("deg2rad", "radians"), "write the unit: 20 deg"),
    **dict.fromkeys(("rad2deg", "degrees"), "divide by 1 deg"),
    **dict.fromkeys(("rand", "randn", "random"), "a study draws values of `m: 4 kg +- 0.1 kg`"),
    **dict.fromkeys(("STEP", "step", "heaviside", "IF"), "write where(t < 1 s, a, b)"),
    "pre": "write the name alone: its value before the transition", "edge": "`when: y` acts where y crosses zero",
    "pi": "write pi", "ceil": "write -floor(-x)", "round": "write floor(x + 0.5)", "sqr": "write a**2",
}  # fmt: skip
_SYMBOLS: Mapping[str, str] = {"v": "write vel(P)", "p": "write pos(P)", "r": "write pos(P)", "w": "write omega(B)"}
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "true": 1.0, "false": 0.0}


def parse(text: Text | str, where: Location = NOWHERE) -> Node:
    """Read an expression of the language.

    ``text``: the expression; a `Text` brings its own place. ``where``: the place in errors if `text` is a plain text.
    Returns a frozen tree; numbers are in SI units.  ``pi``, ``true`` and ``false`` are numbers in it. Raises
    ExpressionError if it is not an expression of the language, or too long, too deep, or has too large an exponent.
    """
    if isinstance(text, Text):
        where = text.where
    try:
        return _parse(str(text), MAX_MADE_LENGTH if isinstance(text, MadeText) else MAX_LENGTH)
    except ExpressionError as error:
        for part in text.parts if isinstance(text, ComposedText) else ():
            parse(part)
        raise ExpressionError(
            error.message, where, found=error.found, allowed=error.allowed, remedy=error.remedy
        ) from None


@functools.lru_cache(maxsize=4096)
def _parse(text: str, longest: int) -> Node:
    source, numbers = _to_python(text, tokenise(text, NOWHERE, longest))
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        raise ExpressionError(
            "not an expression",
            found=excerpt(text),
            allowed="numbers with units, names, + - * / **, comparisons, and or not, functions",
            remedy=_remedy_of(text),
        ) from None
    return _Converter(source, numbers).convert(tree.body, 0)


def _remedy_of(text: str) -> str:
    """Return the remedy for a text that Python cannot parse, by the habit of another language in it."""
    if re.search(r"\bif\b.*\belse\b", text):
        return "write where(condition, a, b)"
    if _DECIMAL_COMMA.search(text):
        return _DECIMAL_POINT
    words = re.search(r"([A-Za-z]\w*|\)) +([A-Za-z]\w*)", text)
    if words and words[2] not in WORD_OPERATORS and words[1] not in WORD_OPERATORS:
        return f"put an operator or a comma between {words[1]!r} and {words[2]!r}; a unit stands after a number alone"
    return "an operator or an operand is missing, or a word stands where none may"


def _to_python(text: str, tokens: list[Token]) -> tuple[str, dict[str, Number]]:
    """Return Python source with a placeholder ``_0`` for every number, and the values of the numbers.

    Names cannot begin with ``_``, so placeholders cannot be forged; Python's keywords, ordinary names here, become
    ``_k_name``.
    """
    numbers: dict[str, Number] = {}
    pieces: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "number":
            value, dimension, end = read_quantity(tokens, at, NOWHERE)
            placeholder = f"_{len(numbers)}"
            numbers[placeholder] = Number(value, dimension, text[token.start : tokens[end - 1].end])
            pieces.append(placeholder)
            at = end
            continue
        pieces.append(_python_word(token, text))
        at += 1
    return " ".join(pieces), numbers


def _python_word(token: Token, text: str) -> str:
    if token.text == "^":
        apart = re.search(r"\d ([A-Za-z]+) ([A-Za-z]+)\^", text)
        remedy = f"units are joined by * : {apart[1]}*{apart[2]}^..." if apart else "write ** for powers"
        raise ExpressionError("'^' stands only in units", found=excerpt(text), remedy=remedy)
    if not token.text.isascii():
        raise ExpressionError(f"name {token.text!r} is not allowed", allowed="[A-Za-z][A-Za-z0-9_]*")
    if token.kind == "name" and keyword.iskeyword(token.text) and token.text not in WORD_OPERATORS:
        return "_k_" + token.text
    return token.text


class _Converter:
    """The allow-list: syntax without a branch here is refused."""

    def __init__(self, source: str, numbers: Mapping[str, Number]) -> None:
        self.source = source
        self.numbers = numbers

    def convert(self, node: ast.expr, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise ExpressionError(
                "expression nested too deeply", allowed=f"{MAX_DEPTH} levels", remedy="name parts of it"
            )
        depth += 1
        match node:
            case ast.Name():
                return self._name(node)
            case ast.UnaryOp():
                if type(node.op) in _UNARY:
                    return Unary(_UNARY[type(node.op)], self.convert(node.operand, depth))
            case ast.BinOp():
                if type(node.op) in _BINARY:
                    return self._binary(node, depth)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.BoolOp():
                op = "and" if isinstance(node.op, ast.And) else "or"
                return Boolean(op, tuple(self.convert(value, depth) for value in node.values))
            case ast.Call():
                return self._call(node, depth)
            case ast.Attribute():
                return self._axis(node)
            case ast.Subscript():
                return self._index(node)
            case ast.IfExp():
                raise self._refusal(node, "'if' and 'else' are no operators", "write where(condition, a, b)")
            case ast.Tuple() | ast.List():
                decimal = _DECIMAL_COMMA.search(self._written(node).replace(", ", ","))
                remedy = _DECIMAL_POINT if decimal else "a comma may stand only between a function's arguments"
                raise self._refusal(node, "a list has no meaning here", remedy)
        raise self._refusal(node, "this has no meaning in an expression", "")

    def _name(self, node: ast.Name) -> Node:
        if node.id in self.numbers:
            return self.numbers[node.id]
        name = node.id.removeprefix("_k_")
        if name in _CONSTANTS:
            return Number(_CONSTANTS[name], None, name)
        if name in FUNCTIONS:
            raise self._refusal(node, f"function {name!r} without arguments", f"write {name}(...)")
        return Name(name)

    def _binary(self, node: ast.BinOp, depth: int) -> Node:
        binary = Binary(_BINARY[type(node.op)], self.convert(node.left, depth), self.convert(node.right, depth))
        if binary.op == "**" and _is_constant(binary.right):
            exponent = fold(binary.right, FloatAlgebra({}))
            if not abs(exponent) <= MAX_EXPONENT:
                raise ExpressionError(
                    "exponent too large",
                    found=self._written(node.right),
                    allowed=f"constant exponents from {-MAX_EXPONENT:g} to {MAX_EXPONENT:g}",
                )
        return binary

    def _compare(self, node: ast.Compare, depth: int) -> Node:
        operands = [self.convert(part, depth) for part in (node.left, *node.comparators)]
        parts: list[Node] = []
        for op, left, right in zip(node.ops, operands[:-1], operands[1:], strict=True):
            if type(op) not in _COMPARE:
                raise self._refusal(node, "this comparison is not allowed", "allowed are < <= > >= == !=")
            parts.append(Compare(_COMPARE[type(op)], left, right))
        return parts[0] if len(parts) == 1 else Boolean("and", tuple(parts))

    def _call(self, node: ast.Call, depth: int) -> Node:
        if not isinstance(node.func, ast.Name):
            plain = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            remedy = f"write {plain}(...)" if plain in FUNCTIONS else ""
            raise self._refusal(node.func, "only the functions of the language can be called", remedy)
        name = node.func.id.removeprefix("_k_")
        if name == TABLE_FUNCTION:
            return self._table(node, depth)
        if name not in FUNCTIONS:
            number = self.numbers.get(name)
            if number is not None:
                raise self._refusal(node, f"{number.text!r} is followed by a bracket", "write * between them")
            raise ExpressionError(
                f"unknown function {name!r}",
                found=self._written(node),
                allowed=" ".join(sorted([*FUNCTIONS, TABLE_FUNCTION])),
                remedy=_OF_OTHERS.get(name)
                or did_you_mean(name, FUNCTIONS)
                or (_SYMBOLS.get(name) if [type(one) for one in node.args] == [ast.Name] else None)
                or "to multiply, write * before the bracket",
            )
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._refusal(node, "arguments are plain expressions", "")
        arguments = tuple(self.convert(argument, depth) for argument in node.args)
        self._check_arguments(node, name, arguments)
        call = Call(name, arguments[:2] if name in ("min", "max") else arguments)
        for extra in arguments[2:] if name in ("min", "max") else ():
            call = Call(name, (call, extra))
        return call

    def _table(self, node: ast.Call, depth: int) -> Node:
        """Return linear interpolation in a table, written out: the first value, and the rise within each interval."""
        x, *points = (self.convert(argument, depth) for argument in node.args)
        places, values = points[::2], points[1::2]
        if len(places) != len(values) or not 2 <= len(places) <= MOST_PLACES:
            raise self._refusal(
                node, f"{TABLE_FUNCTION} takes a quantity, then 2 to {MOST_PLACES} places with a value each",
                f"write {TABLE_FUNCTION}(x, x0, y0, x1, y1, ...)",
            )  # fmt: skip
        if not all(map(_is_constant, places)):
            raise self._refusal(node, f"the places of {TABLE_FUNCTION} are numbers", "the values may be parameters")
        numbers = [fold(place, FloatAlgebra({})) for place in places]
        if any(not b > a for a, b in itertools.pairwise(numbers)):
            raise self._refusal(node, f"the places of {TABLE_FUNCTION} increase", "order the points by their places")
        terms = [values[0]]
        for (a, b), (low, high) in zip(itertools.pairwise(places), itertools.pairwise(values), strict=True):
            width = Binary("-", b, a)
            within = Call("min", (Call("max", (Binary("-", x, a), Number(0.0, text="0"))), width))
            terms.append(Binary("/", Binary("*", Binary("-", high, low), within), width))
        while len(terms) > 1:  # a balanced sum, which is not deep
            pairs = [terms[k : k + 2] for k in range(0, len(terms), 2)]
            terms = [Binary("+", *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]

    def _check_arguments(self, node: ast.Call, name: str, arguments: tuple[Node, ...]) -> None:
        least, most = FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most) or len(arguments) > MAX_DEPTH:
            wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise ExpressionError(
                f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}",
                found=f"{len(arguments)} in {self._written(node)}",
            )
        if name in REFERENCE_FUNCTIONS and not all(isinstance(argument, Name) for argument in arguments):
            wanted = {"rate": "a coordinate", "omega": "a frame or body"}.get(name, "points (and a frame or body)")
            raise self._refusal(node, f"the arguments of {name} are names of {wanted}", "")

    def _axis(self, node: ast.Attribute) -> Node:
        if isinstance(node.value, ast.Name) and node.value.id not in self.numbers:
            frame = node.value.id.removeprefix("_k_")
            if node.attr in _AXES:
                return Axis(frame, _AXES[node.attr])
            if node.attr.lower() in _AXES:
                raise self._refusal(node, "an axis has a small letter", f"write {frame}.{node.attr.lower()}")
        remedy = "write B.x, B.y or B.z; a component of a vector is dot(v, B.x)"
        raise self._refusal(node, "a dot stands only between a frame and its axis", remedy)

    def _index(self, node: ast.Subscript) -> Node:
        if isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Name):
            number = self.numbers.get(node.slice.id)
            named = node.value.id not in self.numbers
            if named and number is not None and number.text.isdigit() and number.value <= MAX_INDEX:
                return Index(node.value.id.removeprefix("_k_"), int(number.value))
        called = isinstance(node.value, ast.Call)
        remedy = "a component of a vector is dot(v, N.x)" if called else "write name[0], name[1], ..."
        raise self._refusal(node, "square brackets pick an element of a vector parameter", remedy)

    def _written(self, node: ast.AST) -> str:
        """Return the user's text of `node`, placeholders replaced."""
        piece = ast.get_source_segment(self.source, node) or self.source
        piece = re.sub(r"_\d+", lambda m: self.numbers[m.group()].text if m.group() in self.numbers else "?", piece)
        return excerpt(re.sub(r" ?([(),.\[\]]) ?", r"\1", piece.replace("_k_", "")).replace(",", ", "))

    def _refusal(self, node: ast.AST, message: str, remedy: str) -> ExpressionError:
        return ExpressionError(message, found=self._written(node), remedy=remedy)


def _is_constant(node: Node) -> bool:
    return not free_names(node)
