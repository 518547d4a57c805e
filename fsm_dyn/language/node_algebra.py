"""The meaning of scalar expressions as graph nodes: the algebra for inputs, sections and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fsm_dyn.core.errors import NOWHERE, ExpressionError, InputError, did_you_mean
from fsm_dyn.language import expression_tree, expressions
from fsm_dyn.language.expression_tree import REFERENCE_FUNCTIONS, AxisLetter, Number, Text, fold
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node

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

    Parameters
    ----------
    graph : ExpressionGraph
    names : mapping of str to Node
        Nodes of the names: coordinates, parameters, inputs, speeds ...
    """

    def __init__(self, graph: ExpressionGraph, names: Mapping[str, Node]) -> None:
        self.graph = graph
        self.names = names
        self._where = NOWHERE

    # -- entry points --------------------------------------------------------------------------------------

    def value(self, text: Text) -> Any:
        """Return the meaning of an expression.

        Raises
        ------
        ExpressionError
            With the location of the expression, for any error in it.
        """
        return self._fold(expressions.parse(text), text)

    def tree(self, tree: expression_tree.Node, text: Text) -> Node:
        """Return the node of a part of `text`, required to be a scalar."""
        return scalar_of(self._fold(tree, text))

    def scalar(self, text: Text) -> Node:
        """Return the node of an expression, required to be a scalar.

        Raises
        ------
        ExpressionError
            It is a vector.
        """
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
    """Return a value, required to be a scalar.

    Raises
    ------
    ExpressionError
        It is a vector.
    """
    if not isinstance(value, Node):
        raise ExpressionError("a vector stands where a scalar must", remedy="take a component, as in dot(..., N.x)")
    return value


def too_early(function: str) -> ExpressionError:
    """Return the error for a function without meaning in an expression."""
    return ExpressionError(
        f"{function}(...) has no meaning here",
        remedy="geometry may depend on coordinates, parameters, inputs and t only",
    )
