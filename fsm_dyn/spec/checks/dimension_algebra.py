"""The algebra of kinds and dimensions: scalar, vector or condition, and in which unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fsm_dyn.errors import ExpressionError, did_you_mean
from fsm_dyn.expressions import DIMENSIONLESS, Dimension, FloatAlgebra, Name, Number, dimension_text
from fsm_dyn.expressions.nodes import AxisLetter
from fsm_dyn.expressions.units import dimension, divide, multiply, power
from fsm_dyn.spec.checks.names import Declaration

Kind: TypeAlias = Literal["scalar", "vector", "condition"]

_LENGTH = dimension(m=1)
_SPEED = dimension(m=1, s=-1)
_RATE = dimension(s=-1)

_ANGLE_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "asin", "acos", "atan", "floor"}
)


@dataclass(frozen=True, slots=True)
class DimensionedValue:
    """What is known of a sub-expression.

    ``dimension`` is None where dimensions are not checked.  ``zero`` marks a written 0, which fits any
    dimension.  ``value`` is the number where it depends on parameters alone (exponents need it).
    """

    kind: Kind
    dimension: Dimension | None
    zero: bool = False
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be named in an expression, and what it is.

    ``scalars`` and ``vectors`` (vector parameters) hold what is visible; ``functions`` what may be called
    beyond plain arithmetic; ``known`` everything the model declares, for messages.
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
    """Folds an expression to a `DimensionedValue`, refusing what makes no sense."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def number(self, node: Number, /) -> DimensionedValue:
        """Return the quantity of a number; bare numbers are dimensionless where units are used."""
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
                remedy="it may use those above it; move it down",
            )
        if name in scope.known:
            raise ExpressionError(
                f"{name!r} is {scope.known[name].role} and may not stand in {scope.label}",
                found=name,
                remedy=_HOW_TO_USE.get(scope.known[name].role, ""),
            )
        if name in ("N", "O", "t"):
            raise ExpressionError(f"{name!r} may not stand in {scope.label}", found=name)
        choices = [*scope.scalars, *scope.vectors]
        raise ExpressionError(
            f"unknown name {name!r} in {scope.label}", found=name, remedy=did_you_mean(name, [*choices, *scope.known])
        )

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
                f"{function} of a quantity in {_unit(first)}", allowed="an angle or a number without unit"
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
            remedy=did_you_mean(name, allowed),
        )

    def _if_units(self, value: Dimension) -> Dimension | None:
        return value if self.scope.units else None

    def _want(self, quantity: DimensionedValue, kind: Kind, where: str) -> None:
        if quantity.kind != kind:
            raise ExpressionError(f"{where} wants a {kind}, found a {quantity.kind}")

    def _same(self, left: DimensionedValue, right: DimensionedValue, word: str) -> Dimension | None:
        if left.dimension is None or right.dimension is None:
            return None
        if left.dimension != right.dimension and not left.zero and not right.zero:
            bare = DIMENSIONLESS in (left.dimension, right.dimension)
            unit = dimension_text(right.dimension if left.dimension == DIMENSIONLESS else left.dimension)
            raise ExpressionError(
                f"units do not match: {_unit(left)} {word} {_unit(right)}",
                remedy=f"give the number the unit {unit}; an angle has none" if bare else "",
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
