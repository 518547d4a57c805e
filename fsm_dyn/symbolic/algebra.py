"""The meaning of expressions as graph nodes and vectors: the algebra over which the texts of a model are folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fsm_dyn import expressions
from fsm_dyn.errors import NOWHERE, ExpressionError, InputError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.programs import ExpressionGraph, Node, functions
from fsm_dyn.symbolic.frames import AXES
from fsm_dyn.symbolic.partial_velocities import Motion
from fsm_dyn.symbolic.points import ORIGIN, Points
from fsm_dyn.symbolic.vectors import Space, Vector

Value: TypeAlias = Node | Vector

_FUNCTIONS: Mapping[str, Callable[..., Node]] = {
    **{name: getattr(functions, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh")},
    **{name: getattr(functions, name) for name in ("cosh", "tanh", "sqrt", "exp", "log", "sign", "floor", "mod")},
    "abs": functions.absolute,
    "min": functions.minimum,
    "max": functions.maximum,
    "where": functions.where,
}


class NodeAlgebra:
    """Folds an expression to a node or a :class:`Vector`.

    Parameters
    ----------
    graph : Graph
    names : mapping of str to Node
        What the names mean: coordinates, parameters, inputs, speeds ...
    space : Space, optional
        Needed for vectors.
    points : Points, optional
        Needed for ``pos``.
    motion : Motion, optional
        Needed for ``vel``, ``omega`` and ``rate``.
    frames_of_bodies : mapping of str to str
        The frame of each body, so that ``omega(basket)`` is understood.
    """

    def __init__(
        self,
        graph: ExpressionGraph,
        names: Mapping[str, Node],
        space: Space | None = None,
        points: Points | None = None,
        motion: Motion | None = None,
        frames_of_bodies: Mapping[str, str] | None = None,
    ) -> None:
        self.graph = graph
        self.names = names
        self._space = space
        self._points = points
        self._motion = motion
        self._frames_of_bodies = frames_of_bodies or {}
        self._where = NOWHERE

    # -- entry points --------------------------------------------------------------------------------------

    def value(self, text: Text) -> Value:
        """Return the meaning of an expression.

        Raises
        ------
        ExpressionError
            With the location of the expression, for any error in it.
        """
        return self._fold(expressions.parse(text), text)

    def tree(self, tree: expressions.Node, text: Text) -> Node:
        """Return the meaning of a part of `text` that must be a scalar."""
        return _scalar(self._fold(tree, text))

    def _fold(self, tree: expressions.Node, text: Text) -> Value:
        outer, self._where = self._where, text.where
        try:
            return expressions.fold(tree, self)
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

    def scalar(self, text: Text) -> Node:
        """Return the meaning of an expression that must be a scalar."""
        value = self.value(text)
        if isinstance(value, Vector):
            raise ExpressionError(
                f"'{text.text}' is a vector where a scalar must stand",
                text.where,
                remedy="take a component, as in dot(..., N.x)",
            )
        return value

    def vector(self, text: Text) -> Vector:
        """Return the meaning of an expression that must be a vector."""
        value = self.value(text)
        if isinstance(value, Node):
            if value.is_zero:
                return Vector()
            raise ExpressionError(
                f"'{text.text}' is a scalar where a vector must stand",
                text.where,
                remedy="multiply it by a unit vector, as in ...*N.x",
            )
        return value

    # -- the algebra ---------------------------------------------------------------------------------------

    def number(self, node: expressions.Number, /) -> Value:
        """Return a constant."""
        return self.graph.constant(node.value)

    def name(self, name: str, /) -> Value:
        """Return what a name stands for."""
        node = self.names.get(name)
        if node is None:
            known = [known for known in self.names if "(" not in known]
            raise ExpressionError(f"'{name}' has no value here", found=name, remedy=did_you_mean(name, known))
        return node

    def index(self, name: str, index: int, /) -> Value:
        """Return an element of a vector parameter."""
        return self.name(f"{name}[{index}]")

    def axis(self, frame: str, axis: expressions.nodes.AxisLetter, /) -> Value:
        """Return a unit vector."""
        space = self._need_space()
        return space.axis(self._frame(frame), AXES[axis])

    def unary(self, op: str, operand: Value, /) -> Value:
        """Apply ``- + not``."""
        if op == "not":
            return functions.logical_not(_scalar(operand))
        if op == "+":
            return operand
        return self._need_space().negate(operand) if isinstance(operand, Vector) else -operand

    def binary(self, op: str, left: Value, right: Value, /) -> Value:
        """Apply ``+ - * / **``."""
        if isinstance(left, Node) and isinstance(right, Node):
            return _SCALAR[op](left, right)
        space = self._need_space()
        match op, left, right:
            case "+", Vector(), Vector():
                return space.sum((left, right))
            case "-", Vector(), Vector():
                return space.subtract(left, right)
            case "*", Vector(), Node():
                return space.scale(right, left)
            case "*", Node(), Vector():
                return space.scale(left, right)
            case "/", Vector(), Node():
                return space.divide(left, right)
        kinds = f"{_kind(left)} {op} {_kind(right)}"
        raise ExpressionError(
            "this operation has no meaning for vectors",
            found=kinds,
            allowed="vector + vector, vector - vector, scalar*vector, vector/scalar",
            remedy="use dot(a, b) or cross(a, b)" if op == "*" else "",
        )

    def compare(self, op: str, left: Value, right: Value, /) -> Value:
        """Compare two scalars: 1 where it holds, else 0."""
        return functions.compare(op, _scalar(left), _scalar(right))

    def boolean(self, op: str, operands: list[Value], /) -> Value:
        """Combine conditions."""
        combine = functions.logical_and if op == "and" else functions.logical_or
        result = _scalar(operands[0])
        for operand in operands[1:]:
            result = combine(result, _scalar(operand))
        return result

    def call(self, function: str, arguments: list[Any], /) -> Value:
        """Apply a function of the language."""
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*[_scalar(argument) for argument in arguments])
        match function, arguments:
            case "dot", [Vector() as a, Vector() as b]:
                return self._need_space().dot(a, b)
            case "cross", [Vector() as a, Vector() as b]:
                return self._need_space().cross(a, b)
            case "norm", [Vector() as a]:
                return self._need_space().norm(a)
            case (("rate" | "pos" | "vel" | "omega"), _):
                return self._reference(function, [_identifier(function, argument) for argument in arguments])
        kinds = ", ".join(_kind(argument) for argument in arguments)
        raise ExpressionError(f"{function} takes vectors", found=f"{function}({kinds})")

    def _reference(self, function: str, names: list[str]) -> Value:
        match function, names:
            case "pos", [point, *origin]:
                if self._points is None:
                    raise _too_early("pos")
                return self._points.position(point, origin[0] if origin else ORIGIN, self._where)
            case "rate", [name]:
                return self._need_motion("rate").rate(_scalar(self.name(name)))
            case "omega", [frame]:
                return self._need_motion("omega").angular(self._frame(frame))
            case "vel", [point]:
                return self._need_motion("vel").speed_of(point, self._where)
            case "vel", [point, frame]:
                return self._need_motion("vel").coincident_speed(point, self._frame(frame), self._where)
        raise ExpressionError(f"{function} has the wrong number of arguments", found=f"{function}({', '.join(names)})")

    def _frame(self, name: str) -> str:
        space = self._need_space()
        frame = self._frames_of_bodies.get(name, name)
        if frame not in space.frames.names:
            known = [*space.frames.names, *self._frames_of_bodies]
            raise ExpressionError(
                f"there is no frame '{name}'", allowed=", ".join(known), remedy=did_you_mean(name, known)
            )
        return frame

    def _need_space(self) -> Space:
        if self._space is None:
            raise ExpressionError("vectors have no meaning here", allowed="scalars")
        return self._space

    def _need_motion(self, function: str) -> Motion:
        if self._motion is None:
            raise _too_early(function)
        return self._motion


def _scalar(value: Value) -> Node:
    if isinstance(value, Vector):
        raise ExpressionError("a vector stands where a scalar must", remedy="take a component, as in dot(..., N.x)")
    return value


def _kind(value: object) -> str:
    return "vector" if isinstance(value, Vector) else "scalar"


def _identifier(function: str, node: object) -> str:
    if isinstance(node, expressions.Name):
        return node.id
    raise ExpressionError(f"{function} takes names", found=repr(node), remedy=f"write {function}(P) with P a name")


def _too_early(function: str) -> ExpressionError:
    return ExpressionError(
        f"{function}(...) has no meaning here",
        remedy="geometry may depend on coordinates, parameters, inputs and t only",
    )


_SCALAR: Mapping[str, Callable[[Node, Node], Node]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}
