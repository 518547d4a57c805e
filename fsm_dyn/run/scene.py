"""Scene of a mechanism: outlines fixed in bodies, and symbols between points fixed in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.mode_programs import Evaluates
from fsm_dyn.language import expressions
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Text, fold
from fsm_dyn.language.expressions import FloatAlgebra
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.language.shape_geometry import formula_at, periodic_spline, solid_corners
from fsm_dyn.language.shapes import (
    ArcShape,
    CircleOutline,
    CircleShape,
    CurveShape,
    DiskShape,
    DrawnOutline,
    Feature,
    LineShape,
    PlaneShape,
    PolygonShape,
    Repeat,
    RoundShape,
    SegmentShape,
    Shape,
    SolidShape,
    SphereShape,
)

# -- Scene of a mechanism ------------------------------------------------------------------------------------
#
# Scene of a mechanism: outlines fixed in bodies, and symbols of joints and loads between points fixed in bodies.

NEWTONIAN = "N"
ORIGIN = "O"  # of N


@dataclass(frozen=True)
class SceneShape:
    """An outline fixed in ``frame``, from the point ``origin``.

    ``points`` has shape (k, 2), m, in the x-y plane, or (k, 3); with ``facing`` it turns to the viewer, as the
    silhouette of a sphere; ``closed`` tells an area from a line, ``endless`` a line that continues beyond its
    points.  A single point is drawn as a dot, with ``text`` next to it where there is one.  With ``outward`` it is a
    face of a convex body, seen from the side from which its points go round against the clock; with ``plane`` the
    points are two unit vectors, shape (2, 3), and the plane through the origin is drawn as far as the mechanism is
    wide.

    ``role`` is ``view`` of an outline of the section ``view``, where ``body`` is that body's name, ``contact`` of a
    shape of contacts, where it is that shape's, and ``dot`` of the centre of a body without either.
    ``owner`` is the body it is fixed in, ``N``, or empty where it is fixed in none; one that is ``behind`` is
    drawn before bars and links.
    """

    body: str
    frame: str
    origin: str
    points: Floats
    closed: bool = False
    text: str = ""
    endless: bool = False
    facing: bool = False
    outward: bool = False
    plane: bool = False
    role: Literal["view", "contact", "dot"] = "contact"
    owner: str = ""
    behind: bool = False

    @property
    def bounded(self) -> bool:
        """Whether it ends: no line without ends, and no plane."""
        return not (self.endless or self.plane)


@dataclass(frozen=True)
class Anchor:
    """A point fixed in ``frame``: ``offset`` (3,), m, resolved in it, from the point ``origin``."""

    frame: str
    origin: str
    offset: Floats


SymbolKind: TypeAlias = Literal[
    "ground", "bar", "link", "spring", "damper", "spiral", "pivot", "support", "cord", "input"
]  # fmt: skip


@dataclass(frozen=True)
class Symbol:
    """A symbol of one kind between anchors.

    ``ground``: a line hatched on one side; ``bar``: a line as wide as a link; ``link``: the filled hull; ``spring``,
    ``damper`` and ``cord``: between two anchors; ``spiral``: about the first, from the direction of the second, fixed
    in one body, to that of the third, fixed in the other; ``pivot`` and ``support`` (a pivot on the ground): at one
    anchor; ``input``: where a force acts that inputs set, or the two ends of a body along its slide.

    Attributes
    ----------
    kind : str
    name : str
        Of the load, joint, contact or body.
    owner : str
        The body whose colour it has, ``N``, or empty for neither.
    anchors : tuple of int
        Numbers of anchors of the scene.
    side : float
        Of a ground: hatched to the left (1) or right (-1) of its course; of a spring or damper: how far it is shifted
        to the left, in units of the scene.
    """

    kind: SymbolKind
    name: str
    owner: str
    anchors: tuple[int, ...]
    side: float = 0.0


@dataclass(frozen=True)
class Scene:
    """The drawing of a mechanism and the program for its motion.

    Attributes
    ----------
    shapes : tuple of SceneShape
    points, frames : tuple of str
        Names in the order of the program's outputs.
    geometry : Evaluates
        Gives ``points`` (n_points, 3), m, and ``frames`` (n_frames, 3, 3), columns = the frame's unit vectors,
        both resolved in the Newtonian frame.
    bodies : tuple of str
        In declared order, the order of their colours.
    anchors : tuple of Anchor
    symbols : tuple of Symbol
        In drawing order.
    unit : float
        Of symbols, m: a hundredth of the larger side of the mechanism; 0 without a search for symbols.
    missing : tuple of str
        Loads without a symbol: "spring cable".
    """

    shapes: tuple[SceneShape, ...]
    points: tuple[str, ...]
    frames: tuple[str, ...]
    geometry: Evaluates
    bodies: tuple[str, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    unit: float = 0.0
    missing: tuple[str, ...] = ()


# -- Outlines of the shapes of a model, for drawings ---------------------------------------------------------

_STEP = math.radians(6.0)
_PRODUCTS: Mapping[str, Callable[..., Any]] = {"dot": np.dot, "cross": np.cross, "norm": np.linalg.norm}
_AROUND = np.arange(0.0, 2.0 * math.pi, _STEP / 2.0)
_FAR = 1e3  # m; to either side of a line without ends


@dataclass(frozen=True)
class PlacedFeature:
    """A planar feature with numbers: a point or circle, or a straight face."""

    # frame, origin: its frame and point
    frame: str
    origin: str
    offset: Floats  # shape (3,): from the origin to the centre, or to a point of the face, resolved in the frame, m
    radius: float = 0.0  # m; 0 of a point or corner
    along: Floats | None = None  # shape (3,): direction of a face, resolved in the frame
    hollow: bool = False  # whether the free side of a circle is the inner one


class Outlines:
    """Draws the shapes of a model.

    ``parameters``, shape (n_p,): in the order of the layout; ``values``: the same by name.
    """

    def __init__(self, automaton: Automaton, parameters: Floats, values: Mapping[str, ParameterValue]) -> None:
        self._shapes = automaton.mechanism.shapes
        self._values = values
        # points fixed in a frame are the same in any state
        layout = automaton.terms.layout
        x, c = np.zeros(layout.n_x), np.zeros(layout.n_c)
        x[list(automaton.quaternions)] = 1.0
        c[layout.p_slice] = parameters
        geometry = automaton.geometry.evaluate(0.0, x, c)
        self._places = dict(zip(automaton.point_names, geometry["points"], strict=True))
        self._turns = dict(zip(automaton.frame_names, geometry["frames"], strict=True))

    def planar(self) -> tuple[SceneShape, ...]:
        """Return the outlines of all copies of all planar shapes."""
        return tuple(outline for shape in self._shapes.values() if not shape.spatial for outline in self._copies(shape))

    def solids(self) -> tuple[SceneShape, ...]:
        """Return outlines of spheres with great circles, of disks with a diameter, faces of polyhedra, and planes."""
        return tuple(outline for shape in self._shapes.values() if shape.spatial for outline in self._solid(shape))

    def feature(self, feature: Feature) -> PlacedFeature | None:
        """Return a feature with numbers; None for curves and in space."""
        if feature.part == "point":
            return PlacedFeature(NEWTONIAN, feature.shape, np.zeros(3))
        shape = self._shapes[feature.shape]
        if shape.spatial or isinstance(shape, CurveShape):
            return None
        radius, hollow = 0.0, False
        if isinstance(shape, RoundShape) and feature.part == "round":
            points, radius, hollow = np.zeros((1, 2)), evaluate_expression(shape.radius, self._values), shape.inside
        elif isinstance(shape, CircleShape):
            points = np.zeros((1, 2))
        elif isinstance(shape, ArcShape):
            points = self._points(shape)[[-feature.index]]
        else:
            points = np.roll(self._points(shape), -feature.index, axis=0)[:2]
        points = np.pad(self._copied(shape, points)[feature.copy], ((0, 0), (0, 1)))
        along = points[1] - points[0] if feature.part == "face" else None
        return PlacedFeature(shape.frame, shape.origin, points[0], radius, along, hollow)

    def _solid(self, shape: Shape) -> list[SceneShape]:
        if isinstance(shape, SolidShape):
            corners = solid_corners(shape, self._values)
            return [
                SceneShape(shape.name, shape.frame, shape.origin, corners[list(face)], closed=True, outward=True)
                for face in shape.corners_of_faces
            ]
        if isinstance(shape, PlaneShape):
            return [SceneShape(shape.name, shape.frame, shape.origin, self._basis(shape.side, shape.frame), plane=True)]
        if not isinstance(shape, SphereShape | DiskShape):
            return []
        circle = float(np.sum(evaluate_expression(shape.radius, self._values))) * np.stack(
            [np.cos(_AROUND), np.sin(_AROUND)], axis=-1
        )
        if isinstance(shape, DiskShape):
            rim = circle @ self._basis(shape.axis, shape.frame)
            half = len(rim) // 2
            points = np.vstack([rim, rim[0], rim[half], rim[0]])
            return [SceneShape(shape.name, shape.frame, shape.origin, points, closed=True)]
        rings = [circle @ np.eye(3)[axes] for axes in ([0, 1], [1, 2])]
        turning = [SceneShape(shape.name, shape.frame, shape.origin, np.vstack([ring, ring[0]])) for ring in rings]
        return [SceneShape(shape.name, shape.frame, shape.origin, circle, closed=True, facing=True), *turning]

    def _basis(self, axis: Text, frame: str) -> Floats:
        """Return two unit vectors across an axis, resolved in a frame, shape (2, 3)."""
        own = self._turns.get(frame, np.eye(3))
        normal = own.T @ vector_of(axis, self._values, self._turns)
        first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
        second = np.cross(normal, first)
        return np.stack([first / np.linalg.norm(first), second / np.linalg.norm(second)])

    def _copies(self, shape: Shape) -> list[SceneShape]:
        points = self._points(shape)
        ring = isinstance(shape, CircleShape | PolygonShape | CurveShape)
        hollow = isinstance(shape, CircleShape | PolygonShape) and shape.inside
        closed, endless = ring and not hollow, isinstance(shape, LineShape)
        if hollow:
            points = np.vstack([points, points[:1]])
        return [
            SceneShape(shape.name, shape.frame, shape.origin, copy, closed, endless=endless)
            for copy in self._copied(shape, points)
            if np.isfinite(copy).all()
        ]

    def _copied(self, shape: Shape, points: Floats) -> list[Floats]:
        """Return points (k, 2) of the first copy of a shape, m, as they are in every copy."""
        if shape.repeat is None:
            return [points]
        if shape.repeat.step is not None:
            step = self._vector(shape.repeat.step, shape.frame)
            return [points + copy * step for copy in range(shape.repeat.count)]
        hub = self._between(shape.frame, shape.origin, shape.repeat.about or shape.origin)
        return [hub + (points - hub) @ turn.T for turn in self._turned(shape.repeat)]

    def _turned(self, repeat: Repeat) -> list[Floats]:
        angle = (
            2.0 * math.pi / repeat.count if repeat.angle is None else evaluate_expression(repeat.angle, self._values)
        )
        turns = angle * np.arange(repeat.count)
        return [np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in turns]

    def _points(self, shape: Shape) -> Floats:
        """Return the outline of the first copy in the shape's frame, from its point, shape (k, 2), m."""
        match shape:
            case LineShape():
                direction = self._vector(shape.along, shape.frame)
                return np.outer([-_FAR, _FAR], direction / np.linalg.norm(direction))
            case SegmentShape(ends=(start, end)):
                return np.array([[0.0, 0.0], self._between(shape.frame, start, end)])
            case RoundShape():
                return self._arc(shape)
            case CurveShape() if shape.formula:
                return np.array([formula_at(shape.formula, angle, self._values) for angle in _AROUND])
            case CurveShape() | SegmentShape() | PolygonShape():
                points = np.array(
                    [[evaluate_expression(text, self._values) for text in point] for point in shape.points]
                )
                return np.asarray(periodic_spline(points)(_AROUND)) if isinstance(shape, CurveShape) else points
        raise TypeError(f"no planar outline of {shape.name!r}")

    def _arc(self, shape: RoundShape) -> Floats:
        ends = shape.angles if isinstance(shape, ArcShape) else (Text("0"), Text("2*pi"))
        first, last = (evaluate_expression(text, self._values) for text in ends)
        angles = np.linspace(first, last, max(8, math.ceil((last - first) / _STEP)))
        if not isinstance(shape, ArcShape):
            angles = angles[:-1]
        return evaluate_expression(shape.radius, self._values) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def _between(self, frame: str, start: str, end: str) -> Floats:
        """Return the vector from one point to another, resolved in a frame."""
        apart = self._places[end] - self._places[start]
        turn = self._turns.get(frame, np.eye(3))
        return np.asarray((turn.T @ apart)[:2], dtype=np.float64)

    def _vector(self, text: Text, frame: str) -> Floats:
        vector = vector_of(text, self._values, self._turns)
        return np.asarray((self._turns.get(frame, np.eye(3)).T @ vector)[:2], dtype=np.float64)


def vector_of(text: Text, values: Mapping[str, ParameterValue], turns: Mapping[str, Floats]) -> Floats:
    """Return a vector written with axes of N and of frames, in N; ``turns`` have the frames' axes as columns.

    ``values``: parameters by name, SI; ``turns``: rotation matrices by frame, shape (3, 3), the axes as columns,
    resolved in N.
    """
    algebra = _Vectors(values, {NEWTONIAN: np.eye(3), **turns})
    return np.asarray(fold(expressions.parse(text), algebra), dtype=np.float64)


class _Vectors(FloatAlgebra):
    """Numbers, and vectors as arrays resolved in the Newtonian frame."""

    def __init__(self, values: Mapping[str, ParameterValue], turns: Mapping[str, Floats]) -> None:
        super().__init__(values)
        self._turns = turns

    def axis(self, frame: str, axis: Any, /) -> Any:
        return self._turns[frame][:, "xyz".index(axis)]

    def unary(self, op: str, operand: Any, /) -> Any:
        if isinstance(operand, np.ndarray):
            return -operand if op == "-" else operand
        return super().unary(op, operand)

    def binary(self, op: str, left: Any, right: Any, /) -> Any:
        if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
            return super().binary(op, left, right)
        return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](left, right)

    def call(self, function: str, arguments: list[Any], /) -> Any:
        if any(isinstance(argument, np.ndarray) for argument in arguments):
            return _PRODUCTS[function](*arguments)
        return super().call(function, arguments)


# -- Scene of a compiled mechanism ---------------------------------------------------------------------------

_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 61)


def scene_of(
    automaton: Automaton, parameters: Floats, values: Mapping[str, ParameterValue], *, solids: bool = True
) -> Scene:
    """Return the scene of a mechanism; arguments as of :func:`fsm_dyn.run.record.run_model`.

    ``solids``: with the outlines of spheres and disks.
    """
    outlines = Outlines(automaton, parameters, values)
    return Scene(
        shapes=shapes_of(automaton.mechanism, values, outlines.planar() + (outlines.solids() if solids else ())),
        points=automaton.point_names,
        frames=automaton.frame_names,
        geometry=automaton.geometry,
        bodies=tuple(automaton.mechanism.bodies),
    )


def shapes_of(
    mechanism: Mechanism, values: Mapping[str, ParameterValue], outlines: Sequence[SceneShape] = ()
) -> tuple[SceneShape, ...]:
    """Return the outlines a model asks for under ``view``, its shapes, and a dot at the centre of every other body.

    A body with a view is drawn by it alone. ``values``: the parameters, which the outlines may name; ``outlines``: the
    shapes of contacts.
    """
    viewed = {
        (mechanism.bodies[name].frame, mechanism.bodies[name].center)
        for name in mechanism.view
        if name in mechanism.bodies
    }
    shapes = [outline for outline in outlines if (outline.frame, outline.origin) not in viewed]
    drawn = {(outline.frame, outline.origin) for outline in shapes}
    for name, body in mechanism.bodies.items():
        forms = mechanism.view.get(name, ())
        dot = [] if (body.frame or NEWTONIAN, body.center) in drawn else [_dot(body)]
        shapes.extend([_shape(name, body.frame or NEWTONIAN, body.center, form, values) for form in forms] or dot)
    shapes.extend(_shape(NEWTONIAN, NEWTONIAN, ORIGIN, form, values) for form in mechanism.view.get(NEWTONIAN, ()))
    return tuple(shapes)


def _dot(body: Body) -> SceneShape:
    return SceneShape(body.name, NEWTONIAN, body.center, np.zeros((1, 2)), role="dot", owner=body.name)


def _shape(body: str, frame: str, center: str, form: DrawnOutline, values: Mapping[str, ParameterValue]) -> SceneShape:
    points = np.array(
        [[evaluate_expression(text, values) for text in point[:2]] for point in form.places] or [[0.0, 0.0]]
    )
    if isinstance(form, CircleOutline):
        points = points + evaluate_expression(form.radius, values) * np.stack(
            [np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=-1
        )
    return SceneShape(body, form.frame or frame, center, points, form.closed, form.label, role="view", owner=body)
