"""The meaning of expressions as graph nodes and vectors: the algebra for the texts of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from fsm_dyn.core.errors import ExpressionError, did_you_mean
from fsm_dyn.derive.kinematics import AXES, ORIGIN, Points, Space, Vector
from fsm_dyn.derive.velocities import Motion
from fsm_dyn.language.expression_tree import AxisLetter, Name, Text
from fsm_dyn.language.node_algebra import ScalarAlgebra, scalar_of, too_early
from fsm_dyn.programs.graph import ExpressionGraph, Node

Value: TypeAlias = Node | Vector


class NodeAlgebra(ScalarAlgebra):
    """Folds an expression to a node or a :class:`Vector`.

    Parameters
    ----------
    graph : Graph
    names : mapping of str to Node
        Nodes of the names: coordinates, parameters, inputs, speeds ...
    space : Space, optional
        Needed for vectors.
    points : Points, optional
        Needed for ``pos``.
    motion : Motion, optional
        Needed for ``vel``, ``omega`` and ``rate``.
    frames_of_bodies : mapping of str to str
        The frame of each body, for ``omega(basket)``.
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
        super().__init__(graph, names)
        self._space = space
        self._points = points
        self._motion = motion
        self._frames_of_bodies = frames_of_bodies or {}

    def vector(self, text: Text) -> Vector:
        """Return an expression, required to be a vector, as one."""
        value: Value = self.value(text)
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

    def axis(self, frame: str, axis: AxisLetter, /) -> Value:
        """Return a unit vector."""
        space = self._need_space()
        return space.axis(self._frame(frame), AXES[axis])

    def unary(self, op: str, operand: Value, /) -> Value:
        """Apply ``- + not``."""
        if op == "-" and isinstance(operand, Vector):
            return self._need_space().negate(operand)
        value: Value = super().unary(op, operand)
        return value

    def binary(self, op: str, left: Value, right: Value, /) -> Value:
        """Apply ``+ - * / **``."""
        if isinstance(left, Node) and isinstance(right, Node):
            node: Node = super().binary(op, left, right)
            return node
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

    def vector_call(self, function: str, arguments: list[Any], /) -> Value:
        """Apply a function of vectors, points or frames."""
        match function, arguments:
            case "dot", [Vector() as a, Vector() as b]:
                return self._need_space().dot(a, b)
            case "cross", [Vector() as a, Vector() as b]:
                return self._need_space().cross(a, b)
            case "norm", [Vector() as a]:
                return self._need_space().distance(a)
            case (("rate" | "pos" | "vel" | "omega"), _):
                return self._reference(function, [_identifier(function, argument) for argument in arguments])
        kinds = ", ".join(_kind(argument) for argument in arguments)
        raise ExpressionError(f"{function} takes vectors", found=f"{function}({kinds})")

    def _reference(self, function: str, names: list[str]) -> Value:
        match function, names:
            case "pos", [point, *origin]:
                if self._points is None:
                    raise too_early("pos")
                return self._points.position(point, origin[0] if origin else ORIGIN, self._where)
            case "rate", [name]:
                return self._need_motion("rate").rate(scalar_of(self.name(name)))
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
            raise too_early(function)
        return self._motion


def _kind(value: object) -> str:
    return "vector" if isinstance(value, Vector) else "scalar"


def _identifier(function: str, node: object) -> str:
    if isinstance(node, Name):
        return node.id
    raise ExpressionError(f"{function} takes names", found=repr(node), remedy=f"write {function}(P) with P a name")
