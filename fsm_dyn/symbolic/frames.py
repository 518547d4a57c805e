"""The tree of frames: how each is turned against the others.

A frame is reached from N by a sequence of elementary turns.  The way from one frame to another goes through
their closest common ancestor; neighbouring turns about the same axis are merged by adding their angles, so that
turning forth and back by the same angle cancels exactly and a turn by q3, then q4, costs one ``cos(q3 + q4)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.programs import ExpressionGraph, Node
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.spec.frame import Frame, RotatedFrame
from fsm_dyn.symbolic.trig_reduction import UNIT, Reducer, TooLargeError, is_small, scaled

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

    Parameters
    ----------
    graph, reducer
        Where nodes are built and angles are added.
    frames : mapping of str to Frame
        As the model file says; the Newtonian frame ``N`` is known without being listed.
    evaluate : callable
        Turns the text of an angle into a node.
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
        """Return the angle as one canonical sum, so that equal angles are the same node."""
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
    """Return the names so that parents come before children.

    Raises
    ------
    ModelError
        A parent is missing, or frames depend on each other in a cycle.
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
