"""Expressions of parameters to numbers in SI units, and parameters' tolerances as numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from fsm_dyn.core.errors import NOWHERE, ExpressionError, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text, excerpt, fold, free_names
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.model import Mechanism

# -- Expressions of parameters to numbers in SI units --------------------------------------------------------

ParameterValue = float | tuple[float, ...]


def evaluate_expression(text: Text | str, parameters: Mapping[str, float | Sequence[float]]) -> float:
    """Return the value of an expression in SI units.

    Parameters
    ----------
    text : Text or str
        An expression of the names in `parameters`.
    parameters : mapping
        SI value of each name; a vector parameter has a sequence.

    Raises
    ------
    ExpressionError
        If it is no such expression, or its value is not finite.
    """
    known = _constant(str(text))
    if known is not None:
        return known
    node = parse(text)
    where = text.where if isinstance(text, Text) else NOWHERE
    try:
        value = fold(node, FloatAlgebra(parameters))
    except ExpressionError as error:
        raise _with_place(error, where, str(text)) from None
    if not math.isfinite(value):
        raise _with_place(
            ExpressionError("the value is not a finite number", remedy="look for a division by zero or an overflow"),
            where,
            str(text),
        )
    return value


@functools.lru_cache(maxsize=16384)
def _constant(text: str) -> float | None:
    """Return the value of an expression without names; None for others, and for one without a value."""
    try:
        node = parse(text)
        value = math.nan if free_names(node) else fold(node, FloatAlgebra({}))
    except ExpressionError:
        return None
    return value if math.isfinite(value) else None


@functools.lru_cache(maxsize=16384)
def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression.

    Raises
    ------
    ExpressionError
        It is no expression; without a place.
    """
    return free_names(parse(text))


def _with_place(error: ExpressionError, where: Location, text: str) -> ExpressionError:
    return ExpressionError(error.message, where, found=excerpt(text), allowed=error.allowed, remedy=error.remedy)


def evaluate_parameters(mechanism: Mechanism, given: Mapping[str, tuple[float, ...]]) -> dict[str, ParameterValue]:
    """Return the parameters in file order, those in `given` replaced, dependent ones following them."""
    values: dict[str, ParameterValue] = {}
    for name, parameter in mechanism.parameters.items():
        if name in given:
            numbers = given[name]
        else:
            try:
                numbers = tuple(evaluate_expression(text, values) for text in parameter.values)
            except ExpressionError as error:
                raise ExpressionError(
                    f"parameter {name!r}: {error.message}",
                    error.where,
                    found=error.found,
                    allowed=error.allowed,
                    remedy=error.remedy,
                ) from None
        values[str(name)] = numbers if parameter.is_vector else numbers[0]
    return values


# -- Tolerances of parameters as numbers ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deviation:
    """Deviation of a parameter from its value, SI: uniform from ``lower`` to ``upper``, or normal (``sigma`` > 0)."""

    lower: float = 0.0
    upper: float = 0.0
    sigma: float = 0.0


def deviations(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> dict[str, Deviation]:
    """Return the deviations of all parameters with a tolerance, by name.

    Parameters
    ----------
    mechanism : Mechanism
        The model.
    values : mapping
        All parameters, SI.

    Raises
    ------
    ModelError
        A lower limit is positive, an upper one or a standard deviation is negative.
    """
    found: dict[str, Deviation] = {}
    for name, parameter in mechanism.parameters.items():
        tolerance = parameter.tolerance
        if tolerance is None:
            continue
        what = f"parameter {str(name)!r}"
        found[str(name)] = Deviation(
            _signed(tolerance.lower, values, -1.0, f"the lower limit of {what}"),
            _signed(tolerance.upper, values, 1.0, f"the upper limit of {what}"),
            _signed(tolerance.sigma, values, 1.0, f"the standard deviation of {what}"),
        )
    return found


def _signed(text: Text | None, values: Mapping[str, float | Sequence[float]], sign: float, what: str) -> float:
    value = 0.0 if text is None else evaluate_expression(text, values)
    if text is not None and value * sign < 0.0:
        raise ModelError(
            f"{what} has the wrong sign",
            text.where,
            found=text.text,
            allowed="zero or positive" if sign > 0.0 else "zero or negative",
        )
    return value
