"""Names, scopes, kinds and dimensions: the algebra for checks of expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from fsm_dyn.core.errors import ExpressionError, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import EulerFrame
from fsm_dyn.language.expression_tree import (
    FUNCTIONS,
    RESERVED_NAMES,
    AxisLetter,
    Call,
    ComposedText,
    Name,
    Number,
    Text,
    excerpt,
    fold,
    parse_unit,
    walk,
)
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.units import (
    DIMENSIONLESS,
    TABLE,
    Dimension,
    dimension,
    dimension_text,
    divide,
    multiply,
    power,
    quantity_text,
)
from fsm_dyn.language.yaml import where_of

# -- One namespace per model: declarations, each name once ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declaration:
    """Meaning of a name (``"a parameter"``) and place of its declaration."""

    role: str
    where: Location


def declarations(mechanism: Mechanism) -> dict[str, Declaration]:
    """Return every name of the model.

    Raises ModelError if a name is declared twice, or a derived one (``e0``, ``q_dot``) is reserved.
    """
    found: dict[str, Declaration] = {}
    for name, role, where in _all(mechanism):
        if name in RESERVED_NAMES and not (role == "a contact" and name in FUNCTIONS):
            raise ModelError(f"the name {str(name)!r} of {role} is reserved", where, remedy="choose another name")
        if name in found:
            first = found[name]
            raise ModelError(
                f"{role} is called {str(name)!r}, which is already {first.role}",
                where,
                found=f"first at {first.where}",
                allowed="each name once per model",
                remedy="rename one of them",
            )
        found[str(name)] = Declaration(role, where)
    return found


def _all(mechanism: Mechanism) -> Iterator[tuple[str, str, Location]]:
    sections: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("a parameter", mechanism.parameters),
        ("a coordinate", mechanism.coordinates),
        ("a frame", mechanism.frames),
        ("a point", mechanism.points),
        ("a body", mechanism.bodies),
        ("a speed", mechanism.speeds),
        ("a constraint", mechanism.constraints),
        ("a shape", mechanism.shapes),
        ("a contact", mechanism.contacts),
        ("an input", mechanism.inputs),
        ("a memory", mechanism.memory),
        ("a controller", mechanism.controllers),
        ("a mode", mechanism.modes),
        ("a port", mechanism.ports),
        ("an output", mechanism.outputs),
        ("a requirement", mechanism.requirements),
    )
    for role, section in sections:
        for name in section:
            yield name, role, where_of(name)
        if role == "an output":  # a joint with a single coordinate or row shares its name
            taken = {*mechanism.coordinates, *mechanism.constraints}
            yield from (
                (joint.name, "a joint", joint.where) for joint in mechanism.joints.values() if joint.name not in taken
            )
        if role == "a controller":
            for controller in mechanism.controllers.values():
                parts = (
                    ("an input", controller.inputs),
                    ("a memory", controller.memory),
                    ("an output", controller.outputs),
                )
                for part, items in parts:
                    yield from ((item.name, f"{part} of a controller", where_of(item.name)) for item in items)
        if role == "a coordinate":
            for frame in mechanism.frames.values():
                if isinstance(frame, EulerFrame):
                    yield from ((name, "an Euler parameter", where_of(frame.euler)) for name in frame.euler_names)


def unknown(
    name: str, wanted: str, allowed: Mapping[str, object] | list[str], known: Mapping[str, Declaration]
) -> ModelError:
    """Return the error for a reference to a missing name or to one of another kind."""
    choices = [str(choice) for choice in allowed]
    other = known.get(name)
    message = f"{str(name)!r} is {other.role}, not {wanted}" if other else f"there is no {_bare(wanted)} {str(name)!r}"
    return ModelError(
        message,
        where_of(name),
        found=name,
        allowed=_listed(choices) or f"the model has no {_bare(wanted)}",
        remedy=_meant(name, wanted, other) or did_you_mean(name, choices),
    )


def _meant(name: str, wanted: str, other: Declaration | None) -> str:
    """Return the remedy for a word of other tools, or a body in place of its point or frame; empty for others."""
    if wanted == "a mode" and (remedy := word_of_modes(name)):
        return remedy
    if other is None:
        return _FIXED.get(wanted, "") if name.lower() in _WORLD or name in ("N", "O") else ""
    part = {"a point": "centre", "a frame": "frame"}.get(wanted)
    return f"name the {part} of the body" if part and other.role == "a body" else ""


def word_of_modes(name: str) -> str:
    """Return the remedy for a word that stands for all modes; empty for others."""
    return 'write "*" for any mode' if name.lower() in _ANY else ""


#: Words of other tools for fixed vectors, and their names here.
_BINDS = "a unit belongs to the number before it: 1/2 m is 1/(2 m), half a metre 0.5 m"
_ANY = frozenset({"any", "all", "each", "every"})
_WORLD = frozenset({"ground", "world", "inertial", "fixed", "base", "earth", "origin"})
_FIXED = {"a frame": "the fixed frame is N", "a point": "the fixed origin is O"}


def _word_meant(name: str, scope: Scope) -> str:
    """Return the remedy for an unknown name that is a word of other tools, or a unit; empty for others."""
    if name == "time":
        return "the time is t"
    if name.lower() in ("inf", "infinity", "nan"):
        return "values are finite: omit what has no bound"
    if rate := _rate_meant(name, scope):
        return rate
    if any(known.lower() == name.lower() for known in (*scope.scalars, *scope.vectors, *scope.known)):
        return ""
    if name in TABLE:
        return f"a unit stands directly after its number: 1 {name}"
    power = name[-1:] if name[:-1] in TABLE and name[-1:] in "234" else ""
    return f"write the power of a unit with ^: {name[:-1]}^{power}" if power else ""


def _bound(left: Dimension, right: Dimension) -> str:
    """Return the remedy for 1/2 m in place of half a metre, which is wrong by the square of a unit."""
    return _BINDS if all(exponent % 2.0 == 0.0 for exponent in divide(left, right)) else ""


def _rate_meant(name: str, scope: Scope) -> str:
    for q in sorted(scope.known):
        words = (f"{q}_dot", f"{q}dot", f"d{q}", f"d{q}dt", f"{q}_d", f"{q}p", f"v_{q}", f"omega_{q}")
        if scope.known[q].role == "a coordinate" and name in words and f"{q}_dot" not in scope.scalars:
            return f"the rate of {q} is rate({q})"
    return ""


def _bare(wanted: str) -> str:
    return wanted.split(" ", 1)[1] if wanted.startswith(("a ", "an ")) else wanted


def _listed(choices: list[str], limit: int = 20) -> str:
    return ", ".join(choices[:limit]) + (", ..." if len(choices) > limit else "")


# -- The algebra of kinds and dimensions: scalar, vector or condition, and its unit --------------------------

Kind: TypeAlias = Literal["scalar", "vector", "condition"]

_LENGTH = dimension(m=1)
_SPEED = dimension(m=1, s=-1)
_RATE = dimension(s=-1)

_ANGLE_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "asin", "acos", "atan", "floor"}
)


@dataclass(frozen=True, slots=True)
class DimensionedValue:
    """Kind, dimension and constant value of a sub-expression.

    ``dimension`` is None if dimensions are not checked. ``zero`` marks a written 0, valid in any dimension. ``value``
    is the number if it depends on parameters alone (exponents need it).
    """

    kind: Kind
    dimension: Dimension | None
    zero: bool = False
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Visible names of an expression, with their kinds.

    ``scalars`` and ``vectors`` (vector parameters) hold the visible names; ``functions`` the functions beyond plain
    arithmetic; ``known`` all declarations of the model, for messages.
    """

    label: str
    scalars: Mapping[str, DimensionedValue]
    vectors: Mapping[str, tuple[DimensionedValue, ...]]
    coordinates: frozenset[str] = frozenset()
    frames: frozenset[str] = frozenset()
    points: frozenset[str] = frozenset()
    rotating: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    known: Mapping[str, Declaration] = field(default_factory=dict)
    units: bool = False


class QuantityAlgebra:
    """Folds an expression to a `DimensionedValue`, and refuses operations without meaning."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def number(self, node: Number, /) -> DimensionedValue:
        """Return the quantity of a number; bare numbers are dimensionless in a model with units."""
        known = node.dimension if node.dimension is not None else DIMENSIONLESS
        if node.text in ("true", "false"):
            return DimensionedValue("condition", None)
        bare_zero = node.dimension is None and node.value == 0.0
        return DimensionedValue("scalar", self._if_units(known), bare_zero, node.value)

    def name(self, name: str, /) -> DimensionedValue:
        """Return the quantity of a visible name."""
        scope = self.scope
        if name in scope.scalars:
            return scope.scalars[name]
        if name in scope.vectors:
            raise ExpressionError(f"{name!r} is a vector parameter", remedy=f"write {name}[0], {name}[1], ...")
        if name in scope.known and scope.known[name].role == "a parameter":
            raise ExpressionError(
                f"parameter {name!r} is not yet defined here",
                found=name,
                remedy="a parameter may use those above it, not itself: move it down",
            )
        if name in scope.known:
            raise ExpressionError(
                f"{name!r} is {scope.known[name].role} and may not stand in {scope.label}",
                found=name,
                allowed=_listed([*scope.scalars, *scope.vectors]) or "numbers",
                remedy=f"a direction is an axis of a frame: N.{name}"
                if name in ("x", "y", "z") and "vector" in scope.label
                else _HOW_TO_USE.get(scope.known[name].role, ""),
            )
        if name in ("N", "O", "t"):
            use = {"N": "write its axes N.x, N.y, N.z", "O": "write pos(P, O) or vel(P)"}
            raise ExpressionError(f"{name!r} may not stand in {scope.label}", found=name, remedy=use.get(name, ""))
        choices = [*scope.scalars, *scope.vectors]
        raise ExpressionError(
            f"unknown name {name!r} in {scope.label}", found=name,
            allowed="" if scope.known else "numbers with units, such as 0.5 s",
            remedy=_word_meant(name, scope)
            or did_you_mean(name, [*choices, "pi"])
            or did_you_mean(name, scope.known)
            or ("a direction is N.x, N.y, or an axis of another frame" if name in _DIRECTIONS else "")
            or (f"declare it: `parameters: {{{name}: 1}}`" if scope.known else ""),
        )  # fmt: skip

    def axis(self, frame: str, axis: AxisLetter, /) -> DimensionedValue:
        """Return the quantity of a unit vector."""
        if not self.scope.frames:
            raise ExpressionError(f"the vector {frame}.{axis} may not stand in {self.scope.label}")
        self._among(frame, self.scope.frames, "a frame")
        return DimensionedValue("vector", self._if_units(DIMENSIONLESS))

    def index(self, name: str, index: int, /) -> DimensionedValue:
        """Return the quantity of an element of a vector parameter."""
        elements = self.scope.vectors.get(name)
        if elements is None:
            if name in self.scope.scalars:
                raise ExpressionError(f"{name!r} is a scalar", remedy=f"write {name} without brackets")
            self.name(name)
            raise ExpressionError(f"{name!r} is not a vector parameter")
        if index >= len(elements):
            raise ExpressionError(
                f"{name!r} has no element {index}", allowed=f"{name}[0] to {name}[{len(elements) - 1}]"
            )
        return elements[index]

    def unary(self, op: str, operand: DimensionedValue, /) -> DimensionedValue:
        """Return the quantity of a sign or a negation."""
        if op == "not":
            self._want(operand, "condition", "not")
            return operand
        if operand.kind == "condition":
            raise ExpressionError("a condition has no sign", remedy="write where(condition, 1, 0)")
        value = operand.value if op == "+" or operand.value is None else -operand.value
        return DimensionedValue(operand.kind, operand.dimension, operand.zero, value)

    def binary(self, op: str, left: DimensionedValue, right: DimensionedValue, /) -> DimensionedValue:
        """Return the quantity of a sum, product, quotient or power."""
        if "condition" in (left.kind, right.kind):
            raise ExpressionError(f"a condition in {op!r}", remedy="write where(condition, a, b)")
        value = _value(op, left, right)
        if op in ("+", "-"):
            if left.kind != right.kind:
                raise ExpressionError(
                    f"a {left.kind} {_WORDS[op]} a {right.kind}", remedy="multiply the scalar by an axis"
                )
            return DimensionedValue(left.kind, self._same(left, right, _WORDS[op]), left.zero and right.zero, value)
        if op == "**":
            return DimensionedValue("scalar", self._power(left, right), left.zero, value)
        if op == "/" and right.kind == "vector":
            raise ExpressionError("division by a vector", remedy="divide by norm(v)")
        if op == "/" and right.zero:
            raise ExpressionError("division by zero")
        if left.kind == right.kind == "vector":
            raise ExpressionError("a vector times a vector", remedy="write dot(v, w) or cross(v, w)")
        combine = multiply if op == "*" else divide
        combined = (
            None if left.dimension is None or right.dimension is None else combine(left.dimension, right.dimension)
        )
        kind: Kind = "vector" if "vector" in (left.kind, right.kind) else "scalar"
        return DimensionedValue(kind, combined, left.zero or (op == "*" and right.zero), value)

    def compare(self, op: str, left: DimensionedValue, right: DimensionedValue, /) -> DimensionedValue:
        """Return a condition."""
        self._want(left, "scalar", op)
        self._want(right, "scalar", op)
        self._same(left, right, f"{op}")
        return DimensionedValue("condition", None)

    def boolean(self, op: str, operands: list[DimensionedValue], /) -> DimensionedValue:
        """Return a condition."""
        for operand in operands:
            self._want(operand, "condition", op)
        return DimensionedValue("condition", None)

    def call(self, function: str, arguments: list[Any], /) -> DimensionedValue:
        """Return the quantity of a function's value."""
        if function in _REFERENCES:
            return self._reference(function, [name.id for name in arguments if isinstance(name, Name)])
        if function in ("dot", "cross", "norm"):
            return self._vector_function(function, arguments)
        if function == "where":
            condition, yes, no = arguments
            self._want(condition, "condition", "where(condition, a, b)")
            self._want(yes, "scalar", "where")
            self._want(no, "scalar", "where")
            return DimensionedValue("scalar", self._same(yes, no, "or"))
        for argument in arguments:
            self._want(argument, "scalar", function)
        return self._scalar_function(function, arguments)

    def _scalar_function(self, function: str, arguments: list[DimensionedValue]) -> DimensionedValue:
        first = arguments[0]
        if function in ("min", "max", "mod", "atan2"):
            same = self._same(first, arguments[1], function)
            return DimensionedValue("scalar", self._if_units(DIMENSIONLESS) if function == "atan2" else same)
        if function == "sqrt":
            value = None if first.value is None or first.value < 0 else first.value**0.5
            return DimensionedValue(
                "scalar", None if first.dimension is None else power(first.dimension, 0.5), first.zero, value
            )
        if function == "abs":
            return DimensionedValue(
                "scalar", first.dimension, first.zero, None if first.value is None else abs(first.value)
            )
        if function in _ANGLE_FUNCTIONS and first.dimension not in (None, DIMENSIONLESS):
            raise ExpressionError(
                f"{function} of a quantity in {_unit(first)}",
                allowed="an angle or a number without unit",
                remedy=f"divide by a period or a length: {function}(2*pi*t/(2 s))",
            )
        return DimensionedValue("scalar", self._if_units(DIMENSIONLESS))

    def _vector_function(self, function: str, arguments: list[DimensionedValue]) -> DimensionedValue:
        for argument in arguments:
            self._want(argument, "vector", function)
        if function == "norm":
            return DimensionedValue("scalar", arguments[0].dimension)
        left, right = arguments
        kind: Kind = "scalar" if function == "dot" else "vector"
        if left.dimension is None or right.dimension is None:
            return DimensionedValue(kind, None)
        return DimensionedValue(kind, multiply(left.dimension, right.dimension))

    def _reference(self, function: str, names: list[str]) -> DimensionedValue:
        scope = self.scope
        if function not in scope.functions:
            raise ExpressionError(f"{function}(...) may not stand in {scope.label}", remedy=_WHY_NOT.get(function, ""))
        if function == "rate":
            self._among(names[0], scope.coordinates, "a coordinate")
            of = scope.scalars[names[0]].dimension
            return DimensionedValue("scalar", None if of is None else divide(of, dimension(s=1)))
        if function == "omega":
            self._among(names[0], scope.rotating, "a frame or body")
            return DimensionedValue("vector", self._if_units(_RATE))
        self._among(names[0], scope.points, "a point")
        if function == "vel" and len(names) == 2:
            self._among(names[1], scope.rotating, "a frame or body")
        elif len(names) == 2:
            self._among(names[1], scope.points, "a point")
        return DimensionedValue("vector", self._if_units(_LENGTH if function == "pos" else _SPEED))

    def _among(self, name: str, allowed: frozenset[str], wanted: str) -> None:
        if name in allowed:
            return
        declared = self.scope.known.get(name)
        raise ExpressionError(
            f"{name!r} is {declared.role}, not {wanted}" if declared else f"there is no {wanted[2:]} {name!r}",
            found=name,
            allowed=", ".join(sorted(allowed)),
            remedy=f"a component of its position is dot(pos({name}), N.y)"
            if declared and (declared.role, wanted) == ("a point", "a frame")
            else did_you_mean(name, allowed),
        )

    def _if_units(self, value: Dimension) -> Dimension | None:
        return value if self.scope.units else None

    def _want(self, quantity: DimensionedValue, kind: Kind, where: str) -> None:
        if quantity.kind != kind:
            raise ExpressionError(
                f"{where} wants a {kind}, found a {quantity.kind}",
                remedy="an axis is N.x; a vector is x*N.x + y*N.y"
                if (kind, quantity.kind) == ("vector", "scalar") else _KIND_REMEDIES.get((kind, quantity.kind), ""),
            )  # fmt: skip

    def _same(self, left: DimensionedValue, right: DimensionedValue, word: str) -> Dimension | None:
        if left.dimension is None or right.dimension is None:
            return None
        if left.dimension != right.dimension and not left.zero and not right.zero:
            bare = DIMENSIONLESS in (left.dimension, right.dimension)
            unit = dimension_text(right.dimension if left.dimension == DIMENSIONLESS else left.dimension)
            raise ExpressionError(
                f"units do not match: {_unit(left)} {word} {_unit(right)}",
                remedy=f"give the number the unit {unit}; an angle has none"
                if bare
                else _bound(left.dimension, right.dimension),
            )
        return right.dimension if left.zero else left.dimension

    def _power(self, base: DimensionedValue, exponent: DimensionedValue) -> Dimension | None:
        self._want(base, "scalar", "**")
        self._want(exponent, "scalar", "**")
        if base.dimension is None or exponent.dimension is None:
            return None
        if exponent.dimension != DIMENSIONLESS:
            raise ExpressionError(f"an exponent in {_unit(exponent)}", allowed="numbers without unit")
        if base.dimension == DIMENSIONLESS:
            return DIMENSIONLESS
        if exponent.value is None:
            raise ExpressionError(
                f"{_unit(base)} to a power that varies", allowed="exponents of numbers and parameters"
            )
        return power(base.dimension, exponent.value)


_REFERENCES = frozenset({"rate", "pos", "vel", "omega"})
_WORDS = {"+": "plus", "-": "minus"}
_WHY_NOT = {
    "rate": "only what depends on speeds may use rate, vel and omega",
    "vel": "only what depends on speeds may use rate, vel and omega",
    "omega": "only what depends on speeds may use rate, vel and omega",
    "pos": "positions may stand only in what depends on the configuration",
}
_DIRECTIONS = frozenset(
    {"up", "down", "left", "right", "above", "below", "upward", "downward", "horizontal", "vertical"}
)
_HOW_TO_USE = {
    "a point": "write pos(P) or vel(P)",
    "a frame": "write its axes B.x, B.y, B.z",
    "a body": "write pos(its centre), omega(body)",
}


def _unit(quantity: DimensionedValue) -> str:
    if quantity.dimension is None or quantity.dimension == DIMENSIONLESS:
        return "a number without unit"
    return dimension_text(quantity.dimension)


def _value(op: str, left: DimensionedValue, right: DimensionedValue) -> float | None:
    if left.value is None or right.value is None:
        return None
    return FloatAlgebra({}).binary(op, left.value, right.value)


# -- Check of one expression: folding, kind and dimension, errors with their location ------------------------


def expression_type(
    text: Text,
    scope: Scope,
    what: str,
    wanted: Iterable[Dimension] | None = None,
    kind: Kind = "scalar",
    *,
    unit_key: bool = False,
) -> DimensionedValue:
    """Return the kind and dimension of an expression.

    ``scope``: its visible names. ``what``: its role, for messages: ``"the mass of 'ball'"``. ``wanted``: allowed
    dimensions; None for any. ``kind``, {'scalar', 'vector', 'condition'}. ``unit_key``: whether a key ``unit`` may
    declare its unit, and is missing. Raises ModelError with the place of the expression.
    """
    choices = None if wanted is None else list(wanted)
    try:
        quantity = fold(parse(text), QuantityAlgebra(scope))
    except ExpressionError as error:
        _check_parts(text, scope, what)
        raise ExpressionError(
            f"{what}: {error.message}",
            text.where,
            found=excerpt(text.text),
            allowed=error.allowed,
            remedy=_misread(text, scope, choices, kind) or error.remedy
            if error.remedy in ("", _BINDS)
            else error.remedy,
        ) from None
    if quantity.kind != kind:
        _check_parts(text, scope, what)
        raise ModelError(
            f"{what} must be a {kind}, found a {quantity.kind}",
            text.where,
            found=excerpt(text.text),
            remedy=_KIND_REMEDIES.get((kind, quantity.kind), ""),
        )
    if choices is None or quantity.zero or quantity.dimension is None or quantity.dimension in choices:
        return quantity
    unfit = _wrong_unit(text, what, quantity.dimension, choices, scope.known)
    unfit.remedy = _misread(text, scope, choices, kind) or unfit.remedy
    if unit_key and choices == [DIMENSIONLESS]:
        unfit.remedy = f"declare it: `unit: {dimension_text(quantity.dimension)}`"
    raise unfit


def _check_parts(text: Text, scope: Scope, what: str) -> None:
    """Refuse the first part of a composed expression that is no scalar by itself."""
    for part in text.parts if isinstance(text, ComposedText) else ():
        expression_type(part, scope, what)


_KIND_REMEDIES: Mapping[tuple[str, str], str] = {
    ("vector", "scalar"): "multiply by an axis: 2*N.x; the zero vector is 0*N.x",
    ("scalar", "vector"): "take a component: dot(v, N.x), or the length: norm(v)",
    ("vector", "condition"): "a vector is x*N.x + y*N.y",
    ("condition", "vector"): "compare numbers: dot(v, N.x) > 0",
    ("condition", "scalar"): "write a comparison: x > 0",
    ("scalar", "condition"): "in place of `a > b` write the difference `a - b`, or where(condition, 1, 0)",
}


def unit_dimension(unit: str, what: str) -> Dimension:
    """Return the dimension of an SI unit, none for no unit; raise ModelError for any other unit."""
    if not unit:
        return DIMENSIONLESS
    factor, dimension = parse_unit(unit, where_of(unit))
    if factor != 1.0:
        raise ModelError(
            f"{what} must be in an SI unit",
            where_of(unit),
            found=unit,
            allowed=dimension_text(dimension) if dimension != DIMENSIONLESS else "rad",
            remedy="values elsewhere may be in any unit: they are converted",
        )
    return dimension


def _wrong_unit(
    text: Text, what: str, found: Dimension, wanted: list[Dimension], known: Mapping[str, Declaration]
) -> ModelError:
    units = " or ".join(dict.fromkeys(dimension_text(d) if d != DIMENSIONLESS else "no unit" for d in wanted))
    angle = misplaced_angle(text.text, found, wanted)
    unit = angle or ("has no unit" if found == DIMENSIONLESS else f"is in {dimension_text(found)}")
    remedy = ""
    if found == DIMENSIONLESS and not angle:
        declared = known.get(text.text)
        if _is_number(text):
            remedy = f"write the unit: {excerpt(text.text)} {dimension_text(wanted[0])}"
        elif declared is not None and declared.where.line:
            place = f"{declared.role} of line {declared.where.line}"
            remedy = f"{text.text} is {place}: give it the unit {dimension_text(wanted[0])} there"
        elif bare := [name for name in _bare_names(text) if name in known and known[name].role == "an input"]:
            declared = known[bare[0]]
            remedy = f"{bare[0]} is {declared.role} of line {declared.where.line}: give it a unit there"
        else:
            remedy = "once a model uses units, every quantity needs its own; coordinates in a list have none"
    return ModelError(f"{what} {unit}", text.where, found=excerpt(text.text), allowed=units, remedy=remedy)


def misplaced_angle(text: str, found: Dimension, wanted: Iterable[Dimension]) -> str:
    """Return ``"is an angle where a length is expected"`` for an angle, nothing for another text."""
    nodes = walk(parse(text))
    angle = any(isinstance(node, Number) and node.dimension == DIMENSIONLESS for node in nodes)
    if found != DIMENSIONLESS or not angle or any(isinstance(node, Call) for node in nodes):
        return ""
    return f"is an angle where {' or '.join(dict.fromkeys(map(quantity_text, wanted)))} is expected"


def _bare_names(text: Text) -> list[str]:
    return [node.id for node in walk(parse(text)) if isinstance(node, Name)]


def _is_number(text: Text) -> bool:
    return isinstance(parse(text), Number)


def _misread(text: Text, scope: Scope, wanted: list[Dimension] | None, kind: Kind) -> str:
    """Return a hint if the text fits once a unit in it is read as the name of the model that it also is."""
    read, hint = text.text, ""
    try:
        for number in [node for node in walk(parse(text)) if isinstance(node, Number) and node.dimension is not None]:
            words = re.finditer(r"\s*[*/]\s*\(?\s*([A-Za-z]\w*)", number.text)
            word = next((word for word in words if word[1] in scope.known), None)
            if word is None:
                continue
            bracketed = f"({number.text[: word.start()]})" + number.text[word.start() :].replace("^", "**")
            read = read.replace(number.text, bracketed)
            role = scope.known[word[1]].role
            hint = hint or f"{word[1]!r} in {number.text!r} is read as a unit; for {role} put brackets: {bracketed}"
        found = fold(parse(read), QuantityAlgebra(scope)) if hint else None
    except ExpressionError:
        return ""
    fits = found is not None and found.kind == kind and (wanted is None or found.zero or found.dimension in wanted)
    return hint if fits else ""


# -- Use of units by a model ---------------------------------------------------------------------------------


def uses_units(mechanism: Mechanism) -> bool:
    """Return whether any unit other than an angle's is written anywhere.

    Angles (``rad``, ``deg``) are dimensionless: they convert, but alone they do not switch checking on. Raises
    ExpressionError at the first text with an invalid expression or unit.
    """
    units = [c.unit for c in mechanism.coordinates.values()]
    units += [item.unit for item in mechanism.inputs.values() if not item.is_boolean]
    units += [item.unit for controller in mechanism.controllers.values() for item in controller.quantities]
    found = False
    for unit in filter(None, units):
        found |= parse_unit(unit, where_of(unit))[1] != DIMENSIONLESS
    for text in texts_of(mechanism):
        for node in walk(parse(text)):
            if isinstance(node, Number) and node.dimension not in (None, DIMENSIONLESS):
                found = True
    return found


def texts_of(value: object) -> Iterator[Text]:
    """Yield every expression in a mechanism or a part of it, in the order of the sections."""
    return (text for text in words_of(value) if isinstance(text, Text))


def words_of(value: object) -> Iterator[Text | str]:
    """Yield every expression, name and plain text in a mechanism, a part of it, or data given by a user, in order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Text | str):
            yield item
        elif isinstance(item, Mapping):
            waiting += list(item.values())[::-1]
        elif isinstance(item, tuple | list) and not isinstance(item, Location):
            waiting += reversed(item)
        else:
            kind: Any = type(item)
            waiting += [getattr(item, name) for name in _names_of_fields(kind)]


@cache
def _names_of_fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a class of data, the last first; of another class, none."""
    return tuple(field.name for field in reversed(fields(kind))) if is_dataclass(kind) else ()


# -- Scopes of names, one for each level of dependence -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of a model, from the narrowest to the widest.

    ``constant``: parameters.  ``schedule``: and ``t``.  ``configuration``: and inputs, coordinates, axes, ``pos``.
    ``definition``: and ``rate``, ``vel``, ``omega``.  ``state``: and speeds.  ``logic``: and memory, of controllers
    too, and boolean inputs.  ``axes``: parameters and axes (gravity).  ``angle``: as ``configuration``, without axes
    and ``pos``: frames never depend on points. ``gap``: as ``configuration``, with memory set by transitions.
    """

    constant: Scope
    axes: Scope
    schedule: Scope
    angle: Scope
    configuration: Scope
    gap: Scope
    definition: Scope
    state: Scope
    logic: Scope


def constant_scope(known: Mapping[str, Declaration], units: bool) -> Scope:
    """Return the scope without visible names, for the first parameter."""
    return Scope("a constant expression", {}, {}, known=known, units=units)


def scopes_of(
    mechanism: Mechanism,
    constant: Scope,
    coordinates: Mapping[str, Dimension],
    inputs: Mapping[str, Dimension],
) -> Scopes:
    """Return all scopes except for the speeds; `with_speeds` adds theirs with known dimensions."""
    units = constant.units
    frames = frozenset({"N", *mechanism.frames})
    rotating = frames | {name for name, body in mechanism.bodies.items() if body.frame is not None}
    schedule = _extend(constant, "a schedule", {"t": dimension(s=1)})
    axes = replace(constant, label="a constant vector", frames=frames)
    numbers = {name: unit for name, unit in inputs.items() if not mechanism.inputs[name].is_boolean}
    angle = _extend(schedule, "an angle", {**numbers, **coordinates})
    configuration = replace(
        angle,
        label="an expression of the configuration",
        coordinates=frozenset(coordinates),
        frames=frames,
        points=frozenset({"O", *mechanism.points}),
        rotating=rotating,
        functions=frozenset({"pos"}),
    )
    definition = replace(
        configuration,
        label="the definition of a speed",
        functions=frozenset({"pos", "rate", "vel", "omega"}),
        units=units,
    )
    return Scopes(constant, axes, schedule, angle, configuration, configuration, definition, definition, definition)


def with_speeds(scopes: Scopes, mechanism: Mechanism, speeds: Mapping[str, Dimension]) -> Scopes:
    """Return the scopes with the speeds, and then the memory, added to the scopes that may use them."""
    state = _extend(scopes.definition, "an expression of the motion", speeds)
    logic = _with_conditions(
        _with_memory(state, "an expression of the state", mechanism),
        [name for name, item in mechanism.inputs.items() if item.is_boolean],
    )
    gap = _with_memory(scopes.configuration, "a gap", mechanism)
    return replace(scopes, gap=gap, state=state, logic=logic)


def _with_memory(scope: Scope, label: str, mechanism: Mechanism) -> Scope:
    """Return a scope with visible memory: integers as scalars, booleans as conditions."""
    extended = _extend(scope, label, dict.fromkeys(mechanism.memory, DIMENSIONLESS))
    return _with_conditions(extended, [name for name, item in mechanism.memory.items() if item.is_boolean])


def _with_conditions(scope: Scope, names: Iterable[str]) -> Scope:
    """Return a scope in which these names are conditions."""
    conditions = {str(name): DimensionedValue("condition", None) for name in names}
    return replace(scope, scalars=MappingProxyType({**scope.scalars, **conditions}))


def with_scalar(scope: Scope, name: str) -> Scope:
    """Return a scope with one more visible number without a unit, under any name."""
    return _extend(scope, f"a formula of {name}", {name: DIMENSIONLESS})


def with_names(scope: Scope, names: Mapping[str, Dimension]) -> Scope:
    """Return a scope with these numbers visible too."""
    return _extend(scope, scope.label, names)


def _extend(scope: Scope, label: str, names: Mapping[str, Dimension]) -> Scope:
    added = {str(name): DimensionedValue("scalar", d if scope.units else None) for name, d in names.items()}
    return replace(scope, label=label, scalars=MappingProxyType({**scope.scalars, **added}))
