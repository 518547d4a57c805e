"""The meaning of expressions: numbers in SI units of parameters and their tolerances; nodes of a graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fsm_dyn.core.errors import NOWHERE, ExpressionError, InputError, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import expression_tree, expressions
from fsm_dyn.language.expression_tree import REFERENCE_FUNCTIONS, AxisLetter, Number, Text, excerpt, fold, free_names
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node

# -- Scalar expressions as graph nodes -------------------------------------------------------------------------


_FUNCTIONS: Mapping[str, Callable[..., Node]] = {
    **{name: getattr(functions, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh")},
    **{name: getattr(functions, name) for name in ("cosh", "tanh", "sqrt", "exp", "log", "sign", "floor", "mod")},
    "abs": functions.absolute,
    "min": functions.minimum,
    "max": functions.maximum,
    "where": functions.where,
}
_BINARY: Mapping[str, Callable[[Node, Node], Node]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}


class ScalarAlgebra:
    """Folds an expression of scalars to a node; :class:`fsm_dyn.derive.symbols.NodeAlgebra` adds vectors.

    ``names``: nodes of the names: coordinates, parameters, inputs, speeds ...
    """

    def __init__(self, graph: ExpressionGraph, names: Mapping[str, Node]) -> None:
        self.graph = graph
        self.names = names
        self._where = NOWHERE

    # -- entry points --------------------------------------------------------------------------------------

    def value(self, text: Text) -> Any:
        """Return the meaning of an expression.

        Raises ExpressionError with the location of the expression, for any error in it.
        """
        return self._fold(expressions.parse(text), text)

    def tree(self, tree: expression_tree.Node, text: Text) -> Node:
        """Return the node of a part of `text`, required to be a scalar."""
        return scalar_of(self._fold(tree, text))

    def scalar(self, text: Text) -> Node:
        """Return the node of an expression, required to be a scalar. Raises ExpressionError: it is a vector."""
        value = self.value(text)
        if not isinstance(value, Node):
            raise ExpressionError(
                f"'{text.text}' is a vector where a scalar must stand",
                text.where,
                remedy="take a component, as in dot(..., N.x)",
            )
        return value

    def _fold(self, tree: expression_tree.Node, text: Text) -> Any:
        outer, self._where = self._where, text.where
        try:
            return fold(tree, self)
        except InputError as error:
            if error.where != NOWHERE:
                raise
            raise ExpressionError(
                f"{error.message} in '{text.text}'",
                text.where,
                found=error.found,
                allowed=error.allowed,
                remedy=error.remedy,
            ) from None
        finally:
            self._where = outer

    # -- the algebra ---------------------------------------------------------------------------------------

    def number(self, node: Number, /) -> Any:
        """Return a constant."""
        return self.graph.constant(node.value)

    def name(self, name: str, /) -> Any:
        """Return the node of a name."""
        node = self.names.get(name)
        if node is None:
            known = [known for known in self.names if "(" not in known]
            raise ExpressionError(f"'{name}' has no value here", found=name, remedy=did_you_mean(name, known))
        return node

    def index(self, name: str, index: int, /) -> Any:
        """Return an element of a vector parameter."""
        return self.name(f"{name}[{index}]")

    def axis(self, frame: str, axis: AxisLetter, /) -> Any:
        """Refuse a unit vector."""
        raise ExpressionError("vectors have no meaning here", allowed="scalars")

    def unary(self, op: str, operand: Any, /) -> Any:
        """Apply ``- + not``."""
        if op == "not":
            return functions.logical_not(scalar_of(operand))
        return operand if op == "+" else -operand

    def binary(self, op: str, left: Any, right: Any, /) -> Any:
        """Apply ``+ - * / **``."""
        return _BINARY[op](left, right)

    def compare(self, op: str, left: Any, right: Any, /) -> Any:
        """Compare two scalars: 1 if it holds, else 0."""
        return functions.compare(op, scalar_of(left), scalar_of(right))

    def boolean(self, op: str, operands: list[Any], /) -> Any:
        """Combine conditions."""
        combine = functions.logical_and if op == "and" else functions.logical_or
        result = scalar_of(operands[0])
        for operand in operands[1:]:
            result = combine(result, scalar_of(operand))
        return result

    def call(self, function: str, arguments: list[Any], /) -> Any:
        """Apply a function of the language."""
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*[scalar_of(argument) for argument in arguments])
        return self.vector_call(function, arguments)

    def vector_call(self, function: str, arguments: list[Any], /) -> Any:
        """Refuse a function of vectors, points or frames."""
        if function in REFERENCE_FUNCTIONS:
            raise too_early(function)
        raise ExpressionError("vectors have no meaning here", allowed="scalars")


def scalar_of(value: Any) -> Node:
    """Return a value, required to be a scalar. Raises ExpressionError: it is a vector."""
    if not isinstance(value, Node):
        raise ExpressionError("a vector stands where a scalar must", remedy="take a component, as in dot(..., N.x)")
    return value


def too_early(function: str) -> ExpressionError:
    """Return the error for a function without meaning in an expression."""
    return ExpressionError(
        f"{function}(...) has no meaning here",
        remedy="geometry may depend on coordinates, parameters, inputs and t only",
    )


# -- Expressions of parameters as numbers ----------------------------------------------------------------------


# -- Expressions of parameters to numbers in SI units --------------------------------------------------------

ParameterValue = float | tuple[float, ...]


def evaluate_expression(text: Text | str, parameters: Mapping[str, float | Sequence[float]]) -> float:
    """Return the value of an expression in SI units.

    ``text``: an expression of the names in `parameters`. ``parameters``: SI value of each name; a vector parameter has
    a sequence. Raises ExpressionError if it is no such expression, or its value is not finite.
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
    """Return the names in an expression. Raises ExpressionError: it is no expression; without a place."""
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

    ``values``: all parameters, SI. Raises ModelError: a lower limit is positive, an upper one or a standard deviation
    is negative.
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
