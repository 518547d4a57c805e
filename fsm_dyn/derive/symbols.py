"""Symbols, frames, points and bodies of a mechanism as nodes: the ground of every derivation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import ExpressionError, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import AXES, ORIGIN, Frames, Matrix, Points, Space, Vector
from fsm_dyn.derive.reduction import Reducer
from fsm_dyn.derive.velocities import Motion, Rates
from fsm_dyn.language.dimensions import words_of
from fsm_dyn.language.elements import Joint
from fsm_dyn.language.evaluate import ScalarAlgebra, scalar_of, too_early
from fsm_dyn.language.expression_tree import AxisLetter, Name, Text
from fsm_dyn.language.memory import layout_of, parameters_of_contacts
from fsm_dyn.language.model import Body, Mechanism, Point
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import TIME, Layout
from fsm_dyn.programs.traversal import evaluate, substitute, support, tangent

# -- The meaning of expressions as graph nodes and vectors -----------------------------------------------------


Value: TypeAlias = Node | Vector


class NodeAlgebra(ScalarAlgebra):
    """Folds an expression to a node or a :class:`Vector`.

    ``names``: nodes of the names: coordinates, parameters, inputs, speeds ..; ``space``: needed for vectors;
    ``points``: needed for ``pos``; ``motion``: needed for ``vel``, ``omega`` and ``rate``; ``frames_of_bodies``: the
    frame of each body, for ``omega(basket)``; ``aliases``: points that stand for others of the expression.
    """

    def __init__(
        self,
        graph: ExpressionGraph,
        names: Mapping[str, Node],
        space: Space | None = None,
        points: Points | None = None,
        motion: Motion | None = None,
        frames_of_bodies: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(graph, names)
        self._space = space
        self._points = points
        self._motion = motion
        self._frames_of_bodies = frames_of_bodies or {}
        self._aliases = aliases or {}

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
                to, back = (self._aliases.get(name, name) for name in (point, *(origin or [ORIGIN])))
                return self._points.position(to, back, self._where)
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


# -- Symbols, frames, points and bodies ------------------------------------------------------------------------


# -- Owners of points ----------------------------------------------------------------------------------------
#
# The body of a point is found by rigid motion if a joint moves its child by coordinates unknown to other points.
#
# A joint with friction of its reaction, or with a clearance, moves its child across its axis or along its thread too
# (docs/theory.md, "Friction of joints"). Points given from the child's origin follow. Another one, such as ``{from: O,
# at: slide*N.x}``, belongs to the child too if it moves like a point of it in the joint's motion without these
# coordinates; so does the centre of a body, or the place of a shape, on the joint's own axis.


NEWTONIAN: Final = "N"
_PLACES: Final = 3  # configurations for the comparison of motions
_SEED: Final = 20030818
_EQUAL: Final = 1e-9  # of lengths about 1
_NAMES: Final = re.compile(r"[A-Za-z]\w*")


def with_carried_points(
    mechanism: Mechanism, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra
) -> Mechanism:
    """Return a mechanism whose points move with the children of their joints.

    ``euler``: symbols of each set of Euler parameters; ``algebra``: its geometry as written, in a separate graph.
    Raises ModelError: a used point moves neither with a joint's child nor without it.
    """
    geometry = _Geometry(points, space, euler, algebra)
    changed = mechanism
    for joint in mechanism.joints.values():
        if joint.displacement is not None:
            changed = _carried_by(joint, joint.displacement, changed, geometry)
    return changed


def check_freed_bodies(
    mechanism: Mechanism, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra
) -> None:
    """Check that in absolute coordinates the centre of every body moves with a child of a joint, or without it.

    Arguments are as of :func:`with_carried_points`. Raises ModelError: a centre moves with a child but not as a point
    of it: the forces of joints would not be those of the body.
    """
    geometry = _Geometry(points, space, euler, algebra)
    for joint in mechanism.joints.values():
        if joint.is_freed:
            for body in mechanism.bodies.values():
                if body.center in points.names and not geometry.follows_or_rests(joint, body.center):
                    raise ModelError(
                        f"the centre {str(body.center)!r} of {str(body.name)!r} moves with {str(joint.child)!r}, but "
                        "not as a point of it, so that the forces of joints would not be those of the body",
                        body.where,
                        found=f"a point that is not given from {joint.origin}, in absolute coordinates",
                        remedy=f"give it from {joint.origin} along the axes of {joint.child}",
                    )


@dataclass(frozen=True)
class _Motions:
    """Motions of the child of a joint and of all points with the joint alone, at some configurations.

    ``across``: whether a point moves with the coordinates kept at zero; ``along``, ``rigid``: rates of points, as
    written and as points of the child, shape (places, 3).
    """

    across: Mapping[str, bool]
    along: Mapping[str, Floats]
    rigid: Mapping[str, Floats]

    def is_of_child(self, point: str) -> bool:
        """Whether a point moves with the child."""
        return _equal(self.along[point], self.rigid[point])

    def rests(self, point: str) -> bool:
        """Whether a point is at rest."""
        return _equal(self.along[point], np.zeros_like(self.along[point]))


class _Geometry:
    """Positions and turns as numbers at some configurations."""

    def __init__(self, points: Points, space: Space, euler: Sequence[Sequence[Node]], algebra: NodeAlgebra) -> None:
        self.points, self.space, self.algebra = points, space, algebra
        self._euler = euler

    def motions(self, joint: Joint) -> _Motions:
        """Return the motions of a joint."""
        hidden = {self.algebra.graph.symbol(name): self.algebra.scalar(value) for name, value in joint.hidden}
        own = [self.algebra.graph.symbol(name) for name in joint.coordinates]
        moving = {q: q.graph.one for q in own if q not in hidden}
        names = self.points.names
        places = {name: list(self.space.resolve(self.points.position(name), NEWTONIAN)) for name in names}
        turn = [node for row in self.space.frames.rotation(NEWTONIAN, joint.child) for node in row]
        at = [node for triple in places.values() for node in triple]
        across = [tangent(at, {q: q.graph.one}) for q in hidden]
        at, turn = substitute(at, hidden), substitute(turn, hidden)
        found = self._numbers(
            [*at, *tangent(at, moving), *turn, *tangent(turn, moving), *(n for c in across for n in c)]
        )
        count = 3 * len(names)
        P, rates = (found[:, k * count : (k + 1) * count].reshape(-1, len(names), 3) for k in (0, 1))
        R, R_rate = (found[:, 2 * count + 9 * k : 2 * count + 9 * (k + 1)].reshape(-1, 3, 3) for k in (0, 1))
        beside = found[:, 2 * count + 18 :].reshape(len(found), len(hidden), len(names), 3)
        origin = names.index(joint.origin)
        spin = R_rate @ R.transpose(0, 2, 1)
        rigid = rates[:, origin, None] + np.einsum("nij,npj->npi", spin, P - P[:, origin, None])
        return _Motions(
            {name: _equal(beside[:, :, i], beside[:, :, origin]) for i, name in enumerate(names)},
            {name: rates[:, i] for i, name in enumerate(names)},
            {name: rigid[:, i] for i, name in enumerate(names)},
        )

    def follows_or_rests(self, joint: Joint, point: str) -> bool:
        """Whether a point moves as one of the child (in the joint's absolute coordinates), or not at all.

        In space the turns of a child are compared by whether there are any: Euler parameters are not independent.
        """
        graph = self.algebra.graph
        at, origin = (list(self.space.resolve(self.points.position(name), NEWTONIAN)) for name in (point, joint.origin))
        moves = [tangent(at, {graph.symbol(q): graph.one}) for q in joint.coordinates]
        if all(node.is_zero for rates in moves for node in rates):
            return True
        plane = f"{joint.child}_turn"
        wanted: list[list[Node]] = []
        for q in joint.coordinates:
            with_origin = tangent(
                origin, {graph.symbol(q): graph.one}
            )  # which turns about a centre, if that has the place
            if q == plane:
                turning = [origin[1] - at[1], at[0] - origin[0], graph.zero]
                with_origin = [a + b for a, b in zip(with_origin, turning, strict=True)]
            wanted.append(with_origin)
        compared = [k for k, q in enumerate(joint.coordinates) if q == plane or q[-1] in "xyz"]
        found = self._numbers([n for k in compared for n in (*moves[k], *wanted[k])]).reshape(-1, len(compared), 2, 3)
        return _equal(found[:, :, 0], found[:, :, 1])

    def _numbers(self, nodes: Sequence[Node]) -> Floats:
        random = np.random.default_rng(_SEED)
        symbols = sorted(support(nodes) | {e for group in self._euler for e in group}, key=lambda node: node.name)
        values = {symbol.name: random.uniform(0.3, 1.3, _PLACES) for symbol in symbols}
        for group in self._euler:
            norm = np.sqrt(sum(values[e.name] ** 2 for e in group))
            values |= {e.name: values[e.name] / norm for e in group}
        with np.errstate(all="ignore"):
            return np.stack([np.broadcast_to(v, (_PLACES,)) for v in evaluate(list(nodes), values)], axis=-1)


def _carried_by(joint: Joint, displacement: Text, mechanism: Mechanism, geometry: _Geometry) -> Mechanism:
    """Return a mechanism whose points on the child of one joint move with it."""
    family = {joint.child}
    for name, frame in mechanism.frames.items():
        family |= {name} if frame.parent in family else set()
    motions, known = geometry.motions(joint), set(geometry.points.names)
    origins = {other.origin for other in mechanism.joints.values() if other.parent in family}
    points, following = dict(mechanism.points), set()
    in_order = sorted(known & points.keys(), key=lambda name: len(geometry.points.chain(name)))
    for name in in_order:
        if motions.across[name] or points[name].origin in following:
            following.add(name)
        elif motions.is_of_child(name) and (not motions.rests(name) or name in origins):
            points[name] = _moved(points[name], displacement)
            following.add(name)
        elif not motions.rests(name) and not motions.is_of_child(name) and name in _names_used(mechanism):
            raise _refused(joint, points[name])
    places: dict[str, Point] = {}

    def of_child(frame: str | None, point: str) -> str:
        """Return the child's point at the place of a point on the joint's axis."""
        if frame not in family or point in following or not motions.is_of_child(point):
            return point
        name = f"{point}_of_{joint.child}"
        places[name] = _moved(Point(name=name, origin=point, at=Text("0*N.x"), where=joint.where), displacement)
        return name

    bodies = {
        name: replace(
            body,
            center=of_child(body.frame, body.center),
            tensor=body.tensor and body.tensor.taken_about(partial(of_child, body.frame)),
        )
        for name, body in mechanism.bodies.items()
        if body.center in known
    }
    shapes = {
        name: replace(shape, origin=of_child(shape.frame, shape.origin))
        for name, shape in mechanism.shapes.items()
        if shape.origin in known
    }
    return replace(
        mechanism, points={**points, **places}, bodies={**mechanism.bodies, **bodies},
        shapes={**mechanism.shapes, **shapes},
    )  # fmt: skip


def _moved(point: Point, displacement: Text) -> Point:
    return replace(point, at=Text(f"({point.at.text}) + {displacement.text}", point.at.where))


def _equal(a: Floats, b: Floats) -> bool:
    """Whether rates agree at all configurations with known values."""
    known = np.isfinite(a) & np.isfinite(b)
    return bool((np.abs(a - b)[known] <= _EQUAL * (1.0 + np.abs(b[known]))).all())


def _names_used(mechanism: Mechanism) -> set[str]:
    """Return all names in bodies, loads, contacts, constraints, shapes and joints."""
    used = (mechanism.bodies, mechanism.loads, mechanism.contacts, mechanism.constraints, mechanism.shapes)
    return {name for text in words_of((*used, mechanism.joints)) for name in _NAMES.findall(str(text))}


def _refused(joint: Joint, point: Point) -> ModelError:
    return ModelError(
        f"the point {str(point.name)!r} moves with the joint {str(joint.name)!r}, but not as a point of its child "
        f"{str(joint.child)!r}: what acts there would not load the joint",
        point.where,
        found=point.at.text,
        remedy=f"give it from {joint.origin} along the axes of {joint.child}, or from a point that stays where it is",
    )


# -- Contents of a mechanism ---------------------------------------------------------------------------------
#
# Symbols, frames and points as nodes: the base of the derivation.


@dataclass(frozen=True)
class MechanismSymbols:
    """Symbols and geometry of a mechanism."""

    mechanism: Mechanism
    layout: Layout
    graph: ExpressionGraph
    reducer: Reducer
    space: Space
    points: Points
    # symbols of the coordinates, Euler parameters last; without the parameters of contacts on curves
    coordinates: tuple[Node, ...]
    euler: tuple[tuple[Node, ...], ...]  # the symbols of each set of Euler parameters
    inputs: tuple[Node, ...]
    names: Mapping[str, Node]  # all names of geometric expressions

    @property
    def frames(self) -> Frames:
        """The tree of frames."""
        return self.space.frames

    @property
    def body_frames(self) -> dict[str, str]:
        """The frame of each body with one."""
        return {name: body.frame for name, body in self.mechanism.bodies.items() if body.frame is not None}

    @property
    def carried(self) -> dict[str, str]:
        """For each frame of bodies, the centre of its first one."""
        result: dict[str, str] = {}
        for body in self.mechanism.bodies.values():
            if body.frame is not None:
                result.setdefault(body.frame, body.center)
        return result

    @property
    def speeds(self) -> tuple[Node, ...]:
        """Symbols of the declared generalized speeds."""
        return tuple(self.graph.symbol(name) for name in self.layout.u)

    def motion(self, rates: Rates) -> Motion:
        """Return velocities for the given rates."""
        return Motion(self.space, self.points, rates, self.carried)

    def algebra(
        self, motion: Motion | None, names: Mapping[str, Node], aliases: Mapping[str, str] | None = None
    ) -> NodeAlgebra:
        """Return the algebra for expressions with `names` and the names of the geometry."""
        known = {**self.names, **names}
        return NodeAlgebra(self.graph, known, self.space, self.points, motion, self.body_frames, aliases)


def build_system(mechanism: Mechanism) -> MechanismSymbols:
    """Return symbols and geometry of a mechanism.

    Raises ModelError: a frame or point is missing, depends on itself in a cycle, or depends on quantities not allowed
    in geometry.
    """
    if any(joint.displacement is not None for joint in mechanism.joints.values()):
        written = _symbols_of(mechanism)
        algebra = written.algebra(None, {})
        mechanism = with_carried_points(mechanism, written.points, written.space, written.euler, algebra)
    if any(joint.is_freed for joint in mechanism.joints.values()):
        written = _symbols_of(mechanism)
        check_freed_bodies(mechanism, written.points, written.space, written.euler, written.algebra(None, {}))
    return _symbols_of(mechanism)


def _symbols_of(mechanism: Mechanism) -> MechanismSymbols:
    """Return symbols and geometry of a mechanism as written."""
    layout = layout_of(mechanism)
    graph = ExpressionGraph()
    euler = tuple(
        tuple(graph.symbol(name) for name in frame.euler_names)
        for frame in mechanism.frames.values()
        if frame.euler_names
    )
    names = {name: graph.symbol(name) for name in (TIME, *layout.q, *layout.p, *layout.w)}
    reducer = Reducer(graph, euler)
    frames = Frames(graph, reducer, mechanism.frames, NodeAlgebra(graph, names).scalar)
    space = Space(graph, frames, reducer)
    algebra = NodeAlgebra(graph, names, space)

    def offset(point: Point) -> Vector:
        return algebra.vector(point.at)

    points = Points(space, mechanism.points, offset)
    for name, point in mechanism.points.items():
        points.chain(name, point.where)
    return MechanismSymbols(
        mechanism=mechanism,
        layout=layout,
        graph=graph,
        reducer=reducer,
        space=space,
        points=points,
        coordinates=tuple(names[q] for q in layout.q if q not in parameters_of_contacts(mechanism)),
        euler=euler,
        inputs=tuple(names[w] for w in layout.w),
        names=names,
    )


def require_independent(node: Node, forbidden: frozenset[Node], what: str, text: Text) -> None:
    """Raise if `node` depends on any of the symbols. Raises ModelError: naming them."""
    met = sorted(symbol.name for symbol in support([node]) & forbidden)
    if met:
        raise ModelError(
            f"{what} may not depend on {', '.join(met)}",
            text.where,
            found=f"'{text.text}'",
            allowed="coordinates, parameters, inputs and t",
        )


# -- Masses and inertias of the bodies -----------------------------------------------------------------------


@dataclass(frozen=True)
class Inertia:
    """A body's mass (kg) and its inertia about the centre (kg m²), resolved in its frame.

    A particle has no frame; ``tensor`` is None if all entries are zero.
    """

    name: str
    center: str
    mass: Node
    frame: str | None = None
    tensor: Matrix | None = None


def inertias(system: MechanismSymbols) -> list[Inertia]:
    """Return the inertias of all bodies in file order."""
    return [_inertia(system, name, body) for name, body in system.mechanism.bodies.items()]


def _inertia(system: MechanismSymbols, name: str, body: Body) -> Inertia:
    """Return a body's inertia, moved from ``about`` to the centre by the parallel axes."""
    algebra = system.algebra(None, {})
    mass = algebra.scalar(body.mass)
    if body.frame is None or not body.inertia:
        return Inertia(name, body.center, mass, body.frame)
    zero = system.graph.zero
    entry = {key: algebra.scalar(text) for key, text in body.inertia.items()}
    xx, yy, zz, xy, yz, xz = (entry.get(key, zero) for key in ("xx", "yy", "zz", "xy", "yz", "xz"))
    if body.about is not None and body.about != body.center:
        arm = system.space.resolve(system.points.position(body.center, body.about, body.where), body.frame)
        x, y, z = (system.reducer.reduce(node) for node in arm)
        xx, yy, zz = xx - mass * (y * y + z * z), yy - mass * (z * z + x * x), zz - mass * (x * x + y * y)
        xy, yz, xz = xy + mass * (x * y), yz + mass * (y * z), xz + mass * (x * z)
    tensor = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    if all(node.is_zero for row in tensor for node in row):
        return Inertia(name, body.center, mass, body.frame)
    return Inertia(name, body.center, mass, body.frame, tensor)
