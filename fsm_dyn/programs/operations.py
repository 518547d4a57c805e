"""Table of operations of programs: arity, meaning in Python and in NumPy, kind for counting.

Comparisons and logic yield the numbers 0.0 and 1.0; any number other than zero counts as true.  Everything else of the
package (folding of constants, NumPy evaluation, checking of stored programs) reads this table, so an operation has the
same meaning everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fsm_dyn.runtime.library import ELEMENTARY


class Operation(NamedTuple):
    """One operation.

    Attributes
    ----------
    arity : int
        Number of operands.
    kind : str
        Class for counting: ``multiply``, ``add``, ``divide``, ``trig``, ``other`` or ``free``.
    scalar : callable
        Value for Python floats; may raise if the value does not exist.
    array : callable
        Value for NumPy arrays, element by element; NaN propagates as in IEEE arithmetic.
    """

    arity: int
    kind: str
    scalar: Callable[..., float]
    array: Callable[..., Any]


def _sign(x: float) -> float:
    return float((x > 0.0) - (x < 0.0))


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a NumPy predicate into a function with values 0.0 and 1.0."""
    return lambda *operands: function(*operands).astype(np.float64)


def half_integer(exponent: float) -> int | None:
    """Return n if ``exponent == n + 1/2`` with 0 <= n <= 4: such powers are products with one square root."""
    whole = exponent - 0.5
    return int(whole) if whole in (0.0, 1.0, 2.0, 3.0, 4.0) else None


def _power(base: Any, exponent: Any) -> Any:
    whole = half_integer(float(exponent)) if np.ndim(exponent) == 0 else None
    if whole is None:
        return np.power(base, exponent)
    result = np.sqrt(base)
    for _ in range(whole):
        result = result * base
    return result


OPERATIONS: dict[str, Operation] = {
    "neg": Operation(1, "free", lambda a: -a, np.negative),
    "add": Operation(2, "add", lambda a, b: a + b, np.add),
    "sub": Operation(2, "add", lambda a, b: a - b, np.subtract),
    "mul": Operation(2, "multiply", lambda a, b: a * b, np.multiply),
    "div": Operation(2, "divide", lambda a, b: a / b, np.divide),
    "pow": Operation(2, "other", ELEMENTARY["pow"], _power),
    "sqrt": Operation(1, "other", math.sqrt, np.sqrt),
    "exp": Operation(1, "other", ELEMENTARY["exp"], np.exp),
    "log": Operation(1, "other", ELEMENTARY["log"], np.log),
    "sin": Operation(1, "trig", ELEMENTARY["sin"], np.sin),
    "cos": Operation(1, "trig", ELEMENTARY["cos"], np.cos),
    "tan": Operation(1, "trig", ELEMENTARY["tan"], np.tan),
    "asin": Operation(1, "trig", ELEMENTARY["asin"], np.arcsin),
    "acos": Operation(1, "trig", ELEMENTARY["acos"], np.arccos),
    "atan": Operation(1, "trig", ELEMENTARY["atan"], np.arctan),
    "atan2": Operation(2, "trig", ELEMENTARY["atan2"], np.arctan2),
    "sinh": Operation(1, "other", ELEMENTARY["sinh"], np.sinh),
    "cosh": Operation(1, "other", ELEMENTARY["cosh"], np.cosh),
    "tanh": Operation(1, "other", ELEMENTARY["tanh"], np.tanh),
    "abs": Operation(1, "other", abs, np.abs),
    "sign": Operation(1, "other", _sign, np.sign),
    "floor": Operation(1, "other", lambda a: float(math.floor(a)), np.floor),
    "mod": Operation(2, "other", lambda a, b: a % b, np.mod),
    "min": Operation(2, "other", min, np.minimum),
    "max": Operation(2, "other", max, np.maximum),
    "lt": Operation(2, "other", lambda a, b: float(a < b), _truth(np.less)),
    "le": Operation(2, "other", lambda a, b: float(a <= b), _truth(np.less_equal)),
    "eq": Operation(2, "other", lambda a, b: float(a == b), _truth(np.equal)),
    "ne": Operation(2, "other", lambda a, b: float(a != b), _truth(np.not_equal)),
    "and": Operation(2, "other", lambda a, b: float(a != 0.0 and b != 0.0), _truth(np.logical_and)),
    "or": Operation(2, "other", lambda a, b: float(a != 0.0 or b != 0.0), _truth(np.logical_or)),
    "not": Operation(1, "other", lambda a: float(a == 0.0), _truth(np.logical_not)),
    "where": Operation(3, "other", lambda c, a, b: a if c != 0.0 else b, lambda c, a, b: np.where(c != 0.0, a, b)),
}

TRUTH_VALUED = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})


def fold(op: str, operands: tuple[float, ...]) -> float | None:
    """Return the value of an operation on constants, or None without a finite value.

    Parameters
    ----------
    op : str
        A key of :data:`OPERATIONS`.
    operands : tuple of float
        Finite values, their number the arity.
    """
    try:
        value = OPERATIONS[op].scalar(*operands)
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None
