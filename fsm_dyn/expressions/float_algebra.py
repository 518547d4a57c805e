"""The algebra of plain numbers: parameters, initial values, tables."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fsm_dyn.errors import ExpressionError, did_you_mean
from fsm_dyn.expressions.nodes import AxisLetter, Number
from fsm_dyn.runtime.elementary import FUNCTIONS

_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _log(a: float) -> float:
    return FUNCTIONS["log"](a) if a > 0.0 else math.nan


def _power(a: float, b: float) -> float:
    return math.nan if a == 0.0 and b < 0.0 else FUNCTIONS["pow"](a, b)


_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    **{name: function for name, function in FUNCTIONS.items() if name != "pow"},
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

    Parameters
    ----------
    values : Mapping
        Value of each name in SI units; a vector parameter has a sequence.
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
        return _real(_BINARY[op], left, right)

    def compare(self, op: str, left: float, right: float, /) -> float:
        """Return 1.0 where the comparison holds, else 0.0."""
        return float(_COMPARE[op](left, right))

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
