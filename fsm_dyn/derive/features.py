"""Features of shapes as vectors: places, normals, ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import NEWTONIAN, Triple, Vector
from fsm_dyn.derive.symbols import MechanismSymbols, NodeAlgebra
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.expression_tree import Text, free_names
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.model import PARAMETER, POLAR
from fsm_dyn.language.shape_geometry import TURN, periodic_spline, touched_part
from fsm_dyn.language.shapes import (
    FEET,
    VERTICES,
    ArcShape,
    BoxShape,
    CurvePiece,
    CurveShape,
    DiskShape,
    Feature,
    LineShape,
    PlaneShape,
    PolygonShape,
    PolyhedronShape,
    Repeat,
    RoundShape,
    SegmentShape,
    Shape,
    SolidShape,
)
from fsm_dyn.language.values import parameter_values
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import evaluate, support, tangent

# -- Curves: places and derivatives along a smooth closed outline, as nodes of its parameter -----------------

Pair = tuple[Node, Node]


@dataclass(frozen=True)
class PieceSeen:
    """A piece of a curve with its directions of projection."""

    piece: CurvePiece
    # outward, along: the unit normal in its middle, and the unit vector at right angles in the sense of the parameter
    outward: Vector
    along: Vector
    # the part within reach of a circle of a given radius, or of a face (None): bounds of the parameter (rad), or None
    part: Callable[[Node | None], tuple[float, float] | None]


@dataclass(frozen=True)
class Curve:
    """A smooth closed outline, touched from outside."""

    # frame, origin: its frame and its point
    frame: str
    origin: str
    # place, direction, bend: the vector from the origin to a place of the curve and its first and second derivative by
    # the parameter, over a whole turn (m, m/rad, m/rad²)
    place: Callable[[Node], Vector]
    direction: Callable[[Node], Vector]
    bend: Callable[[Node], Vector]
    turn: int  # +1 if the parameter increases anticlockwise, else -1
    piece: PieceSeen | None = None  # the piece, of a curve with hollows


def components(shape: CurveShape, xi: Node, scalar: Callable[[Text, dict[str, Node]], Node]) -> Pair:
    """Return x and y of a curve at the parameter ``xi``, in its frame.

    ``scalar``: node of an expression of parameters and the added names. Raises ModelError: the points of a spline
    depend on parameters.
    """
    if shape.points:
        return _spline(shape, xi)
    if len(shape.formula) == 1:
        r = scalar(shape.formula[0], {POLAR: xi})
        return r * functions.cos(xi), r * functions.sin(xi)
    x, y = (scalar(text, {PARAMETER: xi}) for text in shape.formula)
    return x, y


def derivative(pair: Sequence[Node], xi: Node) -> Pair:
    """Return the derivatives of x and y by the parameter."""
    x, y = tangent(list(pair), {xi: xi.graph.one})
    return x, y


def _spline(shape: CurveShape, xi: Node) -> Pair:
    """Return x and y of a spline: one cubic, its coefficients chosen by the piece of the parameter."""
    for point in shape.points:
        for text in point:
            if free_names(parse(text)) - {"pi"}:
                raise ModelError(
                    f"the spline '{shape.name}' goes through a point that depends on a parameter",
                    text.where,
                    found=f"'{text.text}'",
                    allowed="numbers",
                    remedy="give the curve by a formula, `r` or `x` and `y`",
                )
    curve = periodic_spline([(evaluate_expression(x, {}), evaluate_expression(y, {})) for x, y in shape.points])
    along = functions.mod(xi, TURN)
    knots = curve.x.tolist()
    chosen = [[_chosen(along, knots, curve.c[k, :, axis].tolist()) for k in range(4)] for axis in range(2)]
    step = along - _chosen(along, knots, knots[:-1])
    values = [((a * step + b) * step + c) * step + d for a, b, c, d in chosen]
    return values[0], values[1]


def _chosen(along: Node, knots: Sequence[float], values: Sequence[float]) -> Node:
    """Return the value of the piece that contains ``along``, by halving."""
    if len(values) == 1:
        return along.graph.constant(float(values[0]))
    half = len(values) // 2
    low, high = _chosen(along, knots[: half + 1], values[:half]), _chosen(along, knots[half:], values[half:])
    if low is high:
        return low
    return functions.where(functions.compare("<", along, float(knots[half])), low, high)


# -- Features of shapes as vectors: places, normals, ends ----------------------------------------------------
#
# A planar shape is rigid: it moves with its point and turns with its frame. Features are one of three primitives:
# *round* (a circle or arc; a point or corner has no radius), *flat* (a straight face) and *curve*
# (:mod:`fsm_dyn.derive.features`), for few kinds of contact (:mod:`fsm_dyn.derive.contact_geometry`). Shapes lie in
# planes of the x and y axes of their frames.

X, Y, Z = 0, 1, 2
FOOT = 0.99  # distance of the three points of support of a disk from its centre, in radii


@dataclass(frozen=True)
class Flat:
    """A straight face."""

    # frame, origin: its frame and its point
    frame: str
    origin: str
    offset: Vector  # from the origin to the start of the face (m)
    # tangent, normal: unit vectors; the tangent is the normal turned by a right angle with the clock
    tangent: Vector
    normal: Vector
    # m; None for a face without ends, or of a polyhedron. It runs from the start along ``sense`` times the tangent.
    length: Node | None = None
    sense: int = 1
    across: Vector | None = None  # of a plane in space, the second unit tangent: normal times the first
    # tuple of two bool: whether it starts, and whether it ends, in a corner out of reach from the free side: there it
    # is extended, without a neighbour to take over contacts
    concave: tuple[bool, bool] = (False, False)
    sides: tuple[Side, ...] = ()


@dataclass(frozen=True)
class Side:
    """A side of a face of a polyhedron: a corner on it, from the origin (m), and the unit vector into the face."""

    offset: Vector
    inward: Vector


@dataclass(frozen=True)
class EdgeLine:
    """An edge of a polyhedron: ``offset`` of its start from the origin (m), its unit direction, its length (m).

    ``inward``: the unit vectors across it into its two faces.
    """

    frame: str
    origin: str
    offset: Vector
    direction: Vector
    length: Node
    inward: tuple[Vector, Vector]


@dataclass(frozen=True)
class Round:
    """A circle or an arc, or, without a radius, a point."""

    frame: str
    origin: str
    offset: Vector  # from the origin to the centre (m)
    radius: Node  # m, 0 for a point
    hollow: bool = False  # whether the free side is the inner one
    # tuple of two Vector: unit vectors from the centre to the ends of an arc, against the clock
    span: tuple[Vector, Vector] | None = None
    wide: bool = False  # whether the arc spans more than half a turn
    # the faces (or, for the end of an arc, the arc) on both sides of a corner: contact with the corner begins at their
    # ends
    beyond: tuple[Flat | Round, ...] = ()
    edges: tuple[Vector, ...] = ()  # from a corner of a polyhedron to the other ends of its edges (m)


@dataclass(frozen=True)
class Rim:
    """The rim of a thin disk in space: its centre from the origin (m), its unit axis, its radius (m)."""

    frame: str
    origin: str
    offset: Vector
    axis: Vector
    radius: Node


Primitive: TypeAlias = Flat | Round | Curve | Rim | EdgeLine


class Shapes:
    """Turns features into primitives. ``algebra``: for expressions of parameters and axes."""

    def __init__(self, system: MechanismSymbols, algebra: NodeAlgebra) -> None:
        self.system = system
        self._space = system.space
        self._algebra = algebra
        self._known: dict[Feature, Primitive] = {}
        self._numbers: dict[str, float] | None = None

    def feature(self, feature: Feature) -> Primitive:
        """Return a feature as a primitive.

        Raises ModelError: a direction is not fixed in the shape's frame, or does not distinguish the sides.
        """
        known = self._known.get(feature)
        if known is None:
            known = self._known[feature] = self._primitive(feature)
        return known

    def _primitive(self, feature: Feature) -> Primitive:
        zero = self.system.graph.zero
        if feature.part == "point":
            return Round(NEWTONIAN, feature.shape, Vector(), zero)
        shape = self.system.mechanism.shapes[feature.shape]
        match shape, feature.part:
            case PlaneShape(), _:
                normal = self._facing(shape, "free side", shape.side)
                tangent, across = self._tangents(shape, normal)
                return Flat(shape.frame, shape.origin, Vector(), tangent, normal, across=across)
            case DiskShape(), "vertex":
                return Round(shape.frame, shape.origin, self._foot(shape, feature.index), zero)
            case DiskShape(), _:
                radius = self._algebra.scalar(shape.radius)
                return Rim(shape.frame, shape.origin, Vector(), self._facing(shape, "axis", shape.axis), radius)
            case SolidShape(), "face":
                return self._solid_face(shape, feature.index)
            case SolidShape(), "edge":
                return self._edge(shape, feature.index)
            case SolidShape(), _:
                place = self._vertex(shape, feature.index)
                edges = tuple(
                    self._space.vector(shape.frame, self._difference(self._vertex(shape, end), place))
                    for end in shape.edges_at(feature.index)
                )
                return Round(shape.frame, shape.origin, self._space.vector(shape.frame, place), zero, edges=edges)
            case CurveShape(), _:
                return self._curve(shape, feature)
            case LineShape(), _:
                return self._line(shape, feature.copy)
            case SegmentShape(), "face":
                return self._segment(shape, feature.copy)
            case SegmentShape(), _:
                face = self._segment(shape, feature.copy)
                along = self._space.scale(self._length(face), face.tangent)
                offset = face.offset if feature.index == 0 else self._space.sum((face.offset, along))
                return Round(shape.frame, shape.origin, offset, zero, beyond=(face,))
            case PolygonShape(), "face":
                return self._face(shape, feature.index, feature.copy)
            case PolygonShape(), _:
                return self._corner(shape, feature.index, feature.copy)
            case ArcShape(), "corner":
                arc, span = self._arc(shape, feature.copy)
                arm = self._space.scale(arc.radius, span[feature.index])
                offset = self._space.sum((arc.offset, arm))
                return Round(shape.frame, shape.origin, offset, zero, beyond=(arc,))
            case ArcShape(), _:
                return self._arc(shape, feature.copy)[0]
            case RoundShape(), _:
                return self._circle(shape, feature.copy)
        raise TypeError(f"no primitive of {feature}")

    # -- kinds ---------------------------------------------------------------------------------------------

    def _line(self, shape: LineShape, copy: int) -> Flat:
        tangent, normal = self._sides(shape, self._direction(shape, shape.along))
        turned = (self._turned(shape, copy, tangent), self._turned(shape, copy, normal))
        return Flat(shape.frame, shape.origin, self._moved(shape, copy, Vector()), *turned)

    def _segment(self, shape: SegmentShape, copy: int) -> Flat:
        if shape.ends is not None:
            start = Vector()
            chord = self.system.points.position(shape.ends[1], shape.ends[0], shape.where)
            components = self._fixed(shape, chord, "end")
        else:
            first, last = (self._components(point) for point in shape.points)
            start = self._space.vector(shape.frame, first)
            components = self._difference(last, first)
        length, direction = self._unit(components)
        tangent, normal = self._sides(shape, direction)
        # the tangent points from the start to the end, so it is the normal turned one way or the other
        sense = 1 if tangent == self._space.vector(shape.frame, direction) else -1
        tangent, normal = self._turned(shape, copy, tangent), self._turned(shape, copy, normal)
        return Flat(shape.frame, shape.origin, self._moved(shape, copy, start), tangent, normal, length, sense)

    def _face(self, shape: PolygonShape, index: int, copy: int) -> Flat:
        first = self._components(shape.points[index])
        last = self._components(shape.points[(index + 1) % len(shape.points)])
        length, (x, y, z) = self._unit(self._difference(last, first))
        out = shape.turn * (-1 if shape.inside else 1)  # against the clock the free side is on the right
        normal = self._space.vector(shape.frame, (out * y, -(out * x), z))
        tangent = self._space.vector(shape.frame, (-(out * x), -(out * y), z))
        start = self._moved(shape, copy, self._space.vector(shape.frame, first))
        normal, tangent = self._turned(shape, copy, normal), self._turned(shape, copy, tangent)
        concave = (index in shape.concave, (index + 1) % len(shape.points) in shape.concave)
        return Flat(shape.frame, shape.origin, start, tangent, normal, length, -out, concave=concave)

    def _corner(self, shape: PolygonShape, index: int, copy: int) -> Round:
        count = len(shape.points)
        beyond = (self._face(shape, (index - 1) % count, copy), self._face(shape, index, copy))
        return Round(shape.frame, shape.origin, beyond[1].offset, self.system.graph.zero, beyond=beyond)

    def _circle(self, shape: RoundShape, copy: int) -> Round:
        center = self._moved(shape, copy, Vector())
        return Round(shape.frame, shape.origin, center, self._algebra.scalar(shape.radius), shape.inside)

    def _arc(self, shape: ArcShape, copy: int) -> tuple[Round, tuple[Vector, Vector]]:
        """Return an arc, and the unit vectors from its centre to its ends."""
        zero = self.system.graph.zero
        whole = self._circle(shape, copy)
        ends = []
        for text in shape.angles:
            c, s = self.system.frames.cosine_and_sine(self._algebra.scalar(text))
            ends.append(self._turned(shape, copy, self._space.vector(shape.frame, (c, s, zero))))
        first, last = (self._value(self._algebra.scalar(text)) for text in shape.angles)
        span = (ends[0], ends[1])
        return replace(whole, span=span, wide=last - first > math.pi), span

    def _vertex(self, shape: SolidShape, index: int) -> Triple:
        """Return the place of a corner of a polyhedron in its frame, from its point."""
        if isinstance(shape, PolyhedronShape):
            x, y, z = (self._algebra.scalar(text) for text in shape.points[index])
            return (x, y, z)
        assert isinstance(shape, BoxShape)
        halves = [self._algebra.scalar(text) / 2.0 for text in shape.size]
        x, y, z = (sign * half for sign, half in zip(VERTICES[index], halves, strict=True))
        return (x, y, z)

    def _solid_face(self, shape: SolidShape, index: int) -> Flat:
        corners = [self._vertex(shape, corner) for corner in shape.corners_of_faces[index]]
        along = [
            self._space.vector(shape.frame, self._unit(self._difference(after, corner))[1])
            for corner, after in zip(corners, (*corners[1:], corners[0]), strict=True)
        ]
        normal = self._outward(shape, index)
        sides = tuple(
            Side(self._space.vector(shape.frame, corner), self._space.cross(normal, direction))
            for corner, direction in zip(corners, along, strict=True)
        )
        across = self._space.cross(normal, along[0])
        return Flat(shape.frame, shape.origin, sides[0].offset, along[0], normal, across=across, sides=sides)

    def _outward(self, shape: SolidShape, index: int) -> Vector:
        """Return the outward unit normal of a face of a polyhedron."""
        first, second, third = (self._vertex(shape, corner) for corner in shape.corners_of_faces[index][:3])
        along, on = (
            self._space.vector(shape.frame, self._unit(self._difference(b, a))[1])
            for a, b in ((first, second), (second, third))
        )
        components = self._space.resolve(self._space.cross(along, on), shape.frame)
        return self._space.vector(shape.frame, self._unit(components)[1])

    def _edge(self, shape: SolidShape, index: int) -> EdgeLine:
        edge = shape.edges[index]
        start, end = self._vertex(shape, edge.start), self._vertex(shape, edge.end)
        length, components = self._unit(self._difference(end, start))
        direction = self._space.vector(shape.frame, components)
        inward = (
            self._space.cross(self._outward(shape, edge.left), direction),
            self._space.cross(direction, self._outward(shape, edge.right)),
        )
        offset = self._space.vector(shape.frame, start)
        return EdgeLine(shape.frame, shape.origin, offset, direction, length, inward)

    def _foot(self, shape: DiskShape, index: int) -> Vector:
        """Return one of the points of support of a disk, from its centre."""
        first, second = self._tangents(shape, self._facing(shape, "axis", shape.axis))
        radius, angle = FOOT * self._algebra.scalar(shape.radius), 2.0 * math.pi * index / FEET
        return self._space.sum(
            (self._space.scale(math.cos(angle) * radius, first), self._space.scale(math.sin(angle) * radius, second))
        )

    def _facing(self, shape: Shape, word: str, text: Text) -> Vector:
        """Return a unit vector in space, fixed in the shape's frame."""
        x, y, z = self._fixed(shape, self._algebra.vector(text), word, text, flat=False)
        square = self.system.reducer.reduce(x * x + y * y + z * z)
        if square.is_one:
            return self._space.vector(shape.frame, (x, y, z))
        length = functions.sqrt(square)
        return self._space.vector(shape.frame, (x / length, y / length, z / length))

    def _tangents(self, shape: Shape, normal: Vector) -> tuple[Vector, Vector]:
        """Return two unit vectors across a plane's normal, the first near the axis of the frame most across it."""
        space, graph = self._space, self.system.graph
        parts = space.resolve(normal, shape.frame)
        sizes = [abs(self._value(part)) for part in parts]
        axis = space.axis(shape.frame, sizes.index(min(sizes)))
        share = space.dot(axis, normal)
        tangent = space.subtract(axis, space.scale(share, normal))
        square = self.system.reducer.reduce(graph.one - share * share)
        tangent = tangent if square.is_one else space.divide(tangent, functions.sqrt(square))
        return tangent, space.cross(normal, tangent)

    def _curve(self, shape: CurveShape, feature: Feature) -> Curve:
        zero, copy = self.system.graph.zero, feature.copy

        def scalar(text: Text, names: dict[str, Node]) -> Node:
            return self.system.algebra(None, names).scalar(text)

        def vector(pair: tuple[Node, Node]) -> Vector:
            return self._space.vector(shape.frame, (*pair, zero))

        def place(xi: Node) -> Vector:
            return self._moved(shape, copy, vector(components(shape, xi, scalar)))

        def direction(xi: Node) -> Vector:
            return self._turned(shape, copy, vector(derivative(components(shape, xi, scalar), xi)))

        def bend(xi: Node) -> Vector:
            return self._turned(shape, copy, vector(derivative(derivative(components(shape, xi, scalar), xi), xi)))

        piece = self._piece_seen(shape, feature) if shape.pieces else None
        return Curve(shape.frame, shape.origin, place, direction, bend, shape.turn, piece)

    def _piece_seen(self, shape: CurveShape, feature: Feature) -> PieceSeen:
        """Return a piece of a curve with its directions of projection."""
        piece, graph = shape.pieces[feature.index], self.system.graph
        c, s = math.cos(piece.facing), math.sin(piece.facing)
        outward, along = (
            self._turned(
                shape, feature.copy, self._space.vector(shape.frame, (graph.constant(x), graph.constant(y), graph.zero))
            )
            for x, y in ((c, s), (-shape.turn * s, shape.turn * c))
        )

        def part(radius: Node | None) -> tuple[float, float] | None:
            values = parameter_values(self.system.mechanism)
            return touched_part(shape, piece, None if radius is None else self._value(radius), values)

        return PieceSeen(piece, outward, along, part)

    # -- directions and copies -----------------------------------------------------------------------------

    def _direction(self, shape: Shape, text: Text) -> Triple:
        return self._unit(self._fixed(shape, self._algebra.vector(text), "direction", text))[1]

    def _fixed(self, shape: Shape, vector: Vector, word: str, text: Text | None = None, flat: bool = True) -> Triple:
        """Return the components of a vector in the shape's frame; they must be constant (and in its plane)."""
        reduce = self.system.reducer.reduce
        x, y, z = (reduce(node) for node in self._space.resolve(vector, shape.frame))
        moving = support((x, y, z)) & {*self.system.coordinates, *self.system.inputs, self.system.names["t"]}
        where = shape.where if text is None else text.where
        if moving:
            raise ModelError(
                f"the {word} of shape '{shape.name}' is not fixed in frame '{shape.frame}'",
                where,
                found=f"it changes with {', '.join(sorted(node.name for node in moving))}",
                remedy="name the frame it is fixed in: `frame: ...`",
            )
        if not flat:
            return (x, y, z)
        if not z.is_zero and abs(self._value(z)) > 1e-12:
            raise ModelError(
                f"the {word} of shape '{shape.name}' leaves the plane of x and y of frame '{shape.frame}'", where
            )
        return (x, y, self.system.graph.zero)

    def _sides(self, shape: LineShape | SegmentShape, direction: Triple) -> tuple[Vector, Vector]:
        """Return tangent and normal of a face along ``direction``, with its free side in the direction of ``side``."""
        x, y, z = direction
        a, b, _ = self._fixed(shape, self._algebra.vector(shape.side), "free side", shape.side)
        across = self._value(b * x - a * y)
        if abs(across) < 1e-9:
            raise ModelError(
                f"the side of shape '{shape.name}' lies along it",
                shape.side.where,
                found=f"'{shape.side.text}'",
                remedy="give a vector across the face, to its free side",
            )
        if across < 0.0:
            x, y = -x, -y
        return self._space.vector(shape.frame, (x, y, z)), self._space.vector(shape.frame, (-y, x, z))

    def _moved(self, shape: Shape, copy: int, offset: Vector) -> Vector:
        """Return the vector from the origin to a place of one copy, from the same place of the first."""
        if copy == 0 or shape.repeat is None:
            return offset
        if shape.repeat.about is None:
            return self._space.sum((offset, self._step(shape, copy, shape.repeat)))
        hub = self.system.points.position(shape.repeat.about, shape.origin, shape.where)
        hub = self._space.vector(shape.frame, self._fixed(shape, hub, "centre of repetition"))
        return self._space.sum((hub, self._turned(shape, copy, self._space.subtract(offset, hub))))

    def _step(self, shape: Shape, copy: int, repeat: Repeat) -> Vector:
        """Return the way from the first copy to another one along a vector fixed in the shape's frame."""
        assert repeat.step is not None
        x, y, _ = self._fixed(shape, self._algebra.vector(repeat.step), "step of repetition", repeat.step)
        return self._space.vector(shape.frame, (copy * x, copy * y, self.system.graph.zero))

    def _turned(self, shape: Shape, copy: int, vector: Vector) -> Vector:
        """Return a vector fixed in the first copy, turned to another one."""
        if copy == 0 or shape.repeat is None or shape.repeat.about is None:
            return vector
        x, y, z = self._space.resolve(vector, shape.frame)
        if shape.repeat.angle is None:
            angle = self.system.graph.constant(2.0 * math.pi * copy / shape.repeat.count)
        else:
            angle = copy * self._algebra.scalar(shape.repeat.angle)
        c, s = self.system.frames.cosine_and_sine(angle)
        return self._space.vector(shape.frame, (c * x - s * y, s * x + c * y, z))

    # -- components ----------------------------------------------------------------------------------------

    def _components(self, point: tuple[Text, ...]) -> Triple:
        x, y = (self._algebra.scalar(text) for text in point[:2])
        return (x, y, self.system.graph.zero)

    def _difference(self, a: Triple, b: Triple) -> Triple:
        reduce = self.system.reducer.reduce
        return (reduce(a[0] - b[0]), reduce(a[1] - b[1]), reduce(a[2] - b[2]))

    def _unit(self, components: Triple) -> tuple[Node, Triple]:
        """Return length and direction; along an axis without a root, with the sign by the parameters of the file."""
        zero, one = self.system.graph.zero, self.system.graph.one
        along = [axis for axis, part in enumerate(components) if not part.is_zero] or [X]
        if len(along) == 1:
            part = components[along[0]]
            sign = -1 if self._value(part) < 0.0 else 1
            x, y, z = (sign * one if axis == along[0] else zero for axis in (X, Y, Z))
            return sign * part, (x, y, z)
        x, y, z = components
        square = self.system.reducer.reduce(x * x + y * y + z * z)
        length = one if square.is_one else functions.sqrt(square)
        return length, (x / length, y / length, z / length)

    def _length(self, face: Flat) -> Node:
        length = face.length if face.length is not None else self.system.graph.zero
        return face.sense * length

    def _value(self, node: Node) -> float:
        """Return the value of an expression of parameters by the file's own values."""
        if self._numbers is None:
            self._numbers = {}
            for name, value in parameter_values(self.system.mechanism).items():
                if isinstance(value, tuple):
                    self._numbers |= {f"{name}[{i}]": v for i, v in enumerate(value)}
                else:
                    self._numbers[name] = value
        return float(evaluate([node], dict(self._numbers))[0])
