"""Vectors as sums of parts, each with three components in one frame, and their products.

A part stays in the frame in which it was given, where its components are simple (often constant); frames meet
only in products, and then the part that is cheaper to turn is turned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fsm_dyn.programs import ExpressionGraph, Node
from fsm_dyn.programs.functions import sqrt
from fsm_dyn.symbolic.frames import Frames, Triple, inner
from fsm_dyn.symbolic.trig_reduction import Reducer, cost

NO_DISTANCE: Final = 1e-100  # m²


@dataclass(frozen=True, slots=True)
class Vector:
    """A sum of parts: (frame, components in it), at most one per frame, none of them zero."""

    parts: tuple[tuple[str, Triple], ...] = ()

    def __iter__(self) -> Iterator[tuple[str, Triple]]:
        return iter(self.parts)

    @property
    def is_zero(self) -> bool:
        """Whether there is no part at all."""
        return not self.parts

    @property
    def nodes(self) -> list[Node]:
        """All components."""
        return [node for _, triple in self.parts for node in triple]


class Space:
    """Operations on vectors over one tree of frames."""

    def __init__(self, graph: ExpressionGraph, frames: Frames, reducer: Reducer) -> None:
        self.graph = graph
        self.frames = frames
        self.reducer = reducer

    def vector(self, frame: str, components: Triple) -> Vector:
        """Return the vector with these components in one frame."""
        return Vector() if is_null(components) else Vector(((frame, components),))

    def axis(self, frame: str, index: int) -> Vector:
        """Return a unit vector of a frame."""
        zero, one = self.graph.zero, self.graph.one
        return Vector(((frame, (_pick(one, zero, index, 0), _pick(one, zero, index, 1), _pick(one, zero, index, 2))),))

    def sum(self, vectors: Iterable[Vector]) -> Vector:
        """Return the sum, parts in the same frame joined."""
        totals: dict[str, Triple] = {}
        for vector in vectors:
            for frame, (x, y, z) in vector:
                known = totals.get(frame)
                totals[frame] = (x, y, z) if known is None else (known[0] + x, known[1] + y, known[2] + z)
        return Vector(tuple((frame, triple) for frame, triple in totals.items() if not is_null(triple)))

    def scale(self, factor: Node | float, vector: Vector) -> Vector:
        """Return ``factor * vector``."""
        if not isinstance(factor, Node):
            factor = self.graph.constant(factor)
        if factor.is_zero:
            return Vector()
        return Vector(tuple((frame, (factor * x, factor * y, factor * z)) for frame, (x, y, z) in vector))

    def divide(self, vector: Vector, divisor: Node) -> Vector:
        """Return ``vector / divisor``."""
        return Vector(tuple((frame, (x / divisor, y / divisor, z / divisor)) for frame, (x, y, z) in vector))

    def negate(self, vector: Vector) -> Vector:
        """Return ``-vector``."""
        return Vector(tuple((frame, (-x, -y, -z)) for frame, (x, y, z) in vector))

    def subtract(self, a: Vector, b: Vector) -> Vector:
        """Return ``a - b``."""
        return self.sum((a, self.negate(b)))

    def resolve(self, vector: Vector, frame: str) -> Triple:
        """Return the three components of the whole vector in one frame."""
        zero = self.graph.zero
        x, y, z = zero, zero, zero
        for source, triple in vector:
            dx, dy, dz = self.frames.resolve(triple, source, frame)
            x, y, z = x + dx, y + dy, z + dz
        return (x, y, z)

    def dot(self, a: Vector, b: Vector) -> Node:
        """Return the scalar product."""
        total = self.graph.zero
        for frame, triple in a:
            for other, components in b:
                total = total + self._dot_parts(frame, triple, other, components)
        return self.reducer.reduce(total)

    def _dot_parts(self, frame: str, a: Triple, other: str, b: Triple) -> Node:
        if frame == other:
            return inner(a, b)
        # The simpler one stays, the other is turned: what it becomes is met again in products with others.
        if _simplicity(a) <= _simplicity(b):
            return inner(a, self.frames.resolve(b, other, frame))
        return inner(self.frames.resolve(a, frame, other), b)

    def square(self, vector: Vector) -> Node:
        """Return the scalar product with itself, from its parts or from components in one frame: what costs less."""
        if len(vector.parts) < 2:
            return self.dot(vector, vector)
        candidates = [self.dot(vector, vector)]
        for frame, _ in vector:
            components = self.resolve(vector, frame)
            candidates.append(inner(components, components))
        return min(candidates, key=lambda node: cost([node]))

    def norm(self, vector: Vector) -> Node:
        """Return the length."""
        if vector.is_zero:
            return self.graph.zero
        return sqrt(self.square(vector))

    def distance(self, vector: Vector) -> Node:
        """Return the length of a vector that may vanish: its derivatives along a motion are then zero, not 0/0.

        What is added is lost in rounding wherever the vector is longer than 1e-42.
        """
        square = self.square(vector)
        return sqrt(square) if square.constant_value is not None else sqrt(square + NO_DISTANCE)

    def cross(self, a: Vector, b: Vector) -> Vector:
        """Return the vector product, the parts of `a` turned into the frames of `b` unless the reverse is simpler."""
        results = []
        for frame, left in a:
            for other, right in b:
                if frame == other or _simplicity(left) > _simplicity(right):
                    results.append(self.vector(other, cross(self.frames.resolve(left, frame, other), right)))
                else:
                    results.append(self.vector(frame, cross(left, self.frames.resolve(right, other, frame))))
        return self.sum(results)


def cross(a: Triple, b: Triple) -> Triple:
    """Return the vector product of components in one frame."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def is_null(components: Triple) -> bool:
    """Whether all three are the constant 0."""
    return components[0].is_zero and components[1].is_zero and components[2].is_zero


def _simplicity(components: Triple) -> tuple[int, int]:
    return (sum(not node.is_zero for node in components), cost(components))


def _pick(one: Node, zero: Node, index: int, wanted: int) -> Node:
    return one if index == wanted else zero
