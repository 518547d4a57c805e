"""Vectors, the tree of frames, the tree of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fsm_dyn.core.errors import NOWHERE, Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.reduction import UNIT, Reducer, TooLargeError, cost, is_small, scaled
from fsm_dyn.language.elements import Frame, RotatedFrame
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Point
from fsm_dyn.programs.functions import cos, sin, sqrt
from fsm_dyn.programs.graph import ExpressionGraph, Node

# -- The tree of frames: rotations between them --------------------------------------------------------------
#
# A frame is reached from N by a sequence of elementary turns. The way from one frame to another goes through their
# closest common ancestor; neighbouring turns about the same axis are merged by adding their angles: a turn forth and
# back by the same angle cancels exactly, and a turn by q3, then q4, costs one ``cos(q3 + q4)``.

Triple = tuple[Node, Node, Node]
Matrix = tuple[Triple, Triple, Triple]

NEWTONIAN = "N"
AXES = {"x": 0, "y": 1, "z": 2}
QUARTER = 0.5 * math.pi
ROUNDING = 1e-12  # a constant angle this close to a right angle is one
STEPWISE = 2  # up to this many turns a vector is turned one by one; beyond, by the product of the matrices


@dataclass(frozen=True, eq=False)
class Turn:
    """One elementary rotation: about `axis` by `angle`, or by four Euler parameters."""

    axis: int
    angle: Node | None
    euler: tuple[Node, Node, Node, Node] | None = None


class Frames:
    """The frames of a mechanism.

    ``graph``, ``reducer``: builders of nodes and of sums of angles. ``frames``: frames of the model file; the Newtonian
    frame ``N`` is implicit. ``evaluate``: turns the text of an angle into a node.
    """

    def __init__(
        self, graph: ExpressionGraph, reducer: Reducer, frames: Mapping[str, Frame], evaluate: Callable[[Text], Node]
    ) -> None:
        self.graph = graph
        self._reducer = reducer
        self._own: dict[str, tuple[Turn, ...]] = {NEWTONIAN: ()}
        self._from_n: dict[str, tuple[Turn, ...]] = {NEWTONIAN: ()}
        self._matrices: dict[tuple[str, str], Matrix] = {}
        self._elementary: dict[tuple[int, Node], Matrix] = {}
        self._outward: dict[str, tuple[Turn | Matrix, ...]] = {}
        self._ways: dict[tuple[str, str], tuple[Matrix, ...]] = {}
        self.parents: dict[str, str] = {}
        for name in _parents_first(frames):
            frame = frames[name]
            self.parents[name] = frame.parent
            self._own[name] = tuple(self._turns(frame, evaluate))
            self._from_n[name] = self._from_n[frame.parent] + self._own[name]

    @property
    def names(self) -> tuple[str, ...]:
        """All frames, parents before children, N first."""
        return tuple(self._own)

    def turns(self, name: str) -> tuple[Turn, ...]:
        """Return the elementary turns from the parent to the frame, in body-fixed order."""
        return self._own[name]

    def _turns(self, frame: Frame, evaluate: Callable[[Text], Node]) -> Sequence[Turn]:
        if isinstance(frame, RotatedFrame):
            return frame.about_body_axes([Turn(AXES[axis], evaluate(angle)) for axis, angle in frame.rotations])
        e0, e1, e2, e3 = (self.graph.symbol(name) for name in frame.euler_names)
        return [Turn(0, None, (e0, e1, e2, e3))]

    # -- rotation matrices ---------------------------------------------------------------------------------

    def rotation(self, a: str, b: str) -> Matrix:
        """Return R with ``(components in a) = R (components in b)``; its columns are b's unit vectors in a."""
        matrix = self._matrices.get((a, b))
        if matrix is None:
            matrix = self._product(a, b)
            self._matrices[a, b] = matrix
            self._matrices[b, a] = transpose(matrix)
        return matrix

    def resolve(self, vector: Triple, source: str, target: str) -> Triple:
        """Return the components in `target` of a vector with components `vector` in `source`."""
        if source == target:
            return vector
        way = self._way(target, source)
        if len(way) > STEPWISE:
            return apply(self.rotation(target, source), vector)
        for matrix in reversed(way):
            vector = apply(matrix, vector)
        return vector

    def elementary(self, turn: Turn) -> Matrix:
        """Return the matrix of one turn, from the turned frame's components to the unturned one's."""
        if turn.euler is not None:
            return euler_matrix(*turn.euler)
        angle = turn.angle
        if angle is None:
            return self._identity()
        return self._simple(turn.axis, self._canonical(angle))

    def _product(self, a: str, b: str) -> Matrix:
        way = self._way(a, b)
        if not way:
            return self._identity()
        matrix = way[0]
        for factor in way[1:]:
            matrix = multiply(matrix, factor)
        return matrix

    def _way(self, a: str, b: str) -> tuple[Matrix, ...]:
        """Return the elementary matrices whose product is ``rotation(a, b)``, same axes merged."""
        known = self._ways.get((a, b))
        if known is not None:
            return known
        merged = list(self._outwards(b)) if a == NEWTONIAN else self._across(a, b)
        way = tuple(self.elementary(turn) if isinstance(turn, Turn) else turn for turn in merged)
        self._ways[a, b] = way
        return way

    def _across(self, a: str, b: str) -> list[Turn | Matrix]:
        """Return the turns from `a` to `b` through their closest common ancestor."""
        up, down = self._from_n[a], self._from_n[b]
        common = 0
        while common < min(len(up), len(down)) and up[common] is down[common]:
            common += 1
        merged: list[Turn | Matrix] = []
        for turn in reversed(up[common:]):
            if turn.euler is not None:
                merged.append(transpose(euler_matrix(*turn.euler)))
            elif turn.angle is not None:
                self._append(merged, turn.axis, -turn.angle)
        self._extend(merged, down[common:])
        return merged

    def _outwards(self, name: str) -> tuple[Turn | Matrix, ...]:
        """Return the turns from N to a frame; in long chains each frame's are made from its parent's."""
        known = self._outward.get(name)
        if known is None:
            merged = list(self._outwards(self.parents[name])) if name != NEWTONIAN else []
            self._extend(merged, self._own[name])
            known = self._outward[name] = tuple(merged)
        return known

    def _extend(self, way: list[Turn | Matrix], turns: Sequence[Turn]) -> None:
        for turn in turns:
            if turn.euler is not None:
                way.append(euler_matrix(*turn.euler))
            elif turn.angle is not None:
                self._append(way, turn.axis, turn.angle)

    def _append(self, way: list[Turn | Matrix], axis: int, angle: Node) -> None:
        last = way[-1] if way else None
        if isinstance(last, Turn) and last.axis == axis and last.angle is not None:
            way.pop()
            angle = last.angle + angle
        angle = self._canonical(angle)
        if not angle.is_zero:
            way.append(Turn(axis, angle))

    def _canonical(self, angle: Node) -> Node:
        """Return the angle as one canonical sum: equal angles are the same node."""
        if angle.constant_value is not None or not is_small(angle):
            return angle
        try:
            return self._reducer.node(self._reducer.polynomial(angle))
        except TooLargeError:
            return angle

    def _simple(self, axis: int, angle: Node) -> Matrix:
        key = (axis, angle)
        matrix = self._elementary.get(key)
        if matrix is None:
            c, s = self.cosine_and_sine(angle)
            zero, one = self.graph.zero, self.graph.one
            rows = ((one, zero, zero), (zero, c, -s), (zero, s, c))
            i, j, k = (-axis) % 3, (1 - axis) % 3, (2 - axis) % 3
            turned = [(row[i], row[j], row[k]) for row in (rows[i], rows[j], rows[k])]
            matrix = self._elementary[key] = (turned[0], turned[1], turned[2])
        return matrix

    def cosine_and_sine(self, angle: Node) -> tuple[Node, Node]:
        """Return cosine and sine; right angles in a sum are taken out and signs are moved in front."""
        constant = 0.0
        if is_small(angle):
            try:
                polynomial = dict(self._reducer.polynomial(angle))
            except TooLargeError:
                return cos(angle), sin(angle)
            constant = polynomial.pop(UNIT, 0.0)
            quarters = round(constant / QUARTER)
            if abs(constant - quarters * QUARTER) > ROUNDING:
                quarters = 0
                polynomial[UNIT] = constant
            leading = min(polynomial, default=UNIT, key=lambda monomial: (monomial == UNIT, monomial))
            sign = 1 if polynomial.get(leading, 1.0) > 0 else -1
            rest = self._reducer.node(scaled(polynomial, float(sign)))
            c, s = cos(rest), sign * sin(rest)
            return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]
        return cos(angle), sin(angle)

    def _identity(self) -> Matrix:
        zero, one = self.graph.zero, self.graph.one
        return ((one, zero, zero), (zero, one, zero), (zero, zero, one))


def euler_matrix(e0: Node, e1: Node, e2: Node, e3: Node) -> Matrix:
    """Return the matrix from the turned frame's components to the unturned one's, for unit Euler parameters."""
    xx, yy, zz = 2.0 * (e1 * e1), 2.0 * (e2 * e2), 2.0 * (e3 * e3)
    xy, yz, zx = e1 * e2, e2 * e3, e3 * e1
    wx, wy, wz = e0 * e1, e0 * e2, e0 * e3
    return (
        (1.0 - (yy + zz), 2.0 * (xy - wz), 2.0 * (zx + wy)),
        (2.0 * (xy + wz), 1.0 - (zz + xx), 2.0 * (yz - wx)),
        (2.0 * (zx - wy), 2.0 * (yz + wx), 1.0 - (xx + yy)),
    )


def transpose(m: Matrix) -> Matrix:
    """Return the transposed matrix."""
    a, b, c = m
    return ((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))


def inner(a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Return the sum of the products of three components."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def apply(m: Matrix, v: Triple) -> Triple:
    """Return ``m v``."""
    return (inner(m[0], v), inner(m[1], v), inner(m[2], v))


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Return ``a b``."""
    columns = transpose(b)
    rows = [(inner(row, columns[0]), inner(row, columns[1]), inner(row, columns[2])) for row in a]
    return (rows[0], rows[1], rows[2])


def _parents_first(frames: Mapping[str, Frame]) -> list[str]:
    """Return the names, parents before children.

    Raises ModelError: a parent is missing, or frames depend on each other in a cycle.
    """
    order: list[str] = []
    placed = {NEWTONIAN}
    waiting = dict(frames)
    while waiting:
        ready = [name for name, frame in waiting.items() if frame.parent in placed]
        if not ready:
            raise _unplaced(waiting, frames)
        for name in ready:
            del waiting[name]
        order += ready
        placed.update(ready)
    return order


def _unplaced(waiting: Mapping[str, Frame], frames: Mapping[str, Frame]) -> ModelError:
    for name, frame in waiting.items():
        if frame.parent not in frames:
            return ModelError(
                f"frame '{name}' has an unknown parent",
                frame.where,
                found=f"'{frame.parent}'",
                allowed=", ".join([NEWTONIAN, *frames]),
                remedy=did_you_mean(frame.parent, [NEWTONIAN, *frames]),
            )
    name, frame = next(iter(waiting.items()))
    return ModelError(
        f"the frames {', '.join(waiting)} hang on each other in a circle",
        frame.where,
        found=f"'{name}' has the parent '{frame.parent}'",
        remedy=f"let one of them have the parent {NEWTONIAN}",
    )


# -- Vectors as sums of parts, each with three components in one frame, and their products -------------------
#
# A part stays in its original frame, with simple (often constant) components; frames meet only in products, by a
# rotation of the cheaper part.

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

    def turned(self, components: Triple, source: str, target: str) -> Triple:
        """Return the components in `target` of a vector with components in `source`."""
        return self.frames.resolve(components, source, target)

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
            dx, dy, dz = self.turned(triple, source, frame)
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
        # The simpler one stays, the other is turned: products with others share the result.
        if _simplicity(a) <= _simplicity(b):
            return inner(a, self.turned(b, other, frame))
        return inner(self.turned(a, frame, other), b)

    def square(self, vector: Vector) -> Node:
        """Return the scalar product with itself, from its parts or from components in one frame: the cheaper one."""
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
        """Return the length of a possibly vanishing vector: its derivatives along a motion are then zero, not 0/0.

        The added term is lost in rounding for vectors longer than 1e-42.
        """
        square = self.square(vector)
        return sqrt(square) if square.constant_value is not None else sqrt(square + NO_DISTANCE)

    def cross(self, a: Vector, b: Vector) -> Vector:
        """Return the vector product, the parts of `a` turned into the frames of `b` unless the reverse is simpler."""
        results = []
        for frame, left in a:
            for other, right in b:
                if frame == other or _simplicity(left) > _simplicity(right):
                    results.append(self.vector(other, cross(self.turned(left, frame, other), right)))
                else:
                    results.append(self.vector(frame, cross(left, self.turned(right, other, frame))))
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


# -- The tree of points: positions as vectors between neighbours ---------------------------------------------

ORIGIN = "O"


class Points:
    """The points of a mechanism.

    ``points``: as the model file says; ``O`` is known without being listed. ``evaluate``: turns a point's ``at`` into a
    vector.
    """

    def __init__(self, space: Space, points: Mapping[str, Point], evaluate: Callable[[Point], Vector]) -> None:
        self.space = space
        self._points = points
        self._offsets = {name: evaluate(point) for name, point in points.items()}
        self._chains: dict[str, tuple[str, ...]] = {ORIGIN: (ORIGIN,)}

    @property
    def names(self) -> tuple[str, ...]:
        """All points, O first."""
        return (ORIGIN, *self._points)

    def offset(self, name: str) -> Vector:
        """Return the vector to a point from the one it is given from."""
        return self._offsets[name]

    def origin(self, name: str) -> str:
        """Return the reference point of a point."""
        return self._points[name].origin

    def chain(self, name: str, where: Location = NOWHERE) -> tuple[str, ...]:
        """Return the points from O to `name`, both included.

        Raises ModelError: there is no such point, or points are given from each other in a cycle.
        """
        chain = self._chains.get(name)
        if chain is None:
            path: list[str] = []
            current = name
            while current not in self._chains:
                self._check(current, path, where)
                path.append(current)
                current = self._points[current].origin
            chain = self._chains[current] + tuple(reversed(path))
            self._chains[name] = chain
        return chain

    def _check(self, name: str, path: list[str], where: Location) -> None:
        if name not in self._points:
            place = self._points[path[-1]].where if path else where
            raise ModelError(f"there is no point '{name}'", place, remedy=did_you_mean(name, self.names))
        if name in path:
            circle = ", ".join(path[path.index(name) :])
            raise ModelError(f"the points {circle} are given from each other in a circle", self._points[name].where)

    def position(self, name: str, origin: str = ORIGIN, where: Location = NOWHERE) -> Vector:
        """Return the vector from `origin` to `name`, by the way through their closest common ancestor."""
        to, back = list(self.chain(name, where)), list(self.chain(origin, where))
        while to and back and to[0] == back[0]:
            del to[0], back[0]
        ahead = [self._offsets[point] for point in to]
        behind = [self.space.negate(self._offsets[point]) for point in reversed(back)]
        return self.space.sum([*ahead, *behind])

    def anchor(self, frame: str) -> str | None:
        """Return a point fixed in a frame without bodies, or None if the file has none.

        It is found from the first point given with the frame's axes: its reference point if the whole vector is
        resolved in the frame, else the point itself.
        """
        if frame == NEWTONIAN:
            return ORIGIN
        for name, offset in self._offsets.items():
            frames = [part for part, _ in offset]
            if frame in frames:
                return self._points[name].origin if len(frames) == 1 else name
        return None
