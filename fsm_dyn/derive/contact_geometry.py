"""Contact kinematics of two features: gap, slip and boundary margin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeGuard

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.features import Curve, EdgeLine, Flat, Primitive, Rim, Round, Shapes, Z
from fsm_dyn.derive.kinematics import NEWTONIAN, Vector
from fsm_dyn.derive.symbols import MechanismSymbols
from fsm_dyn.derive.velocities import Motion
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.scales import own_scales
from fsm_dyn.language.shape_geometry import solid_thickness
from fsm_dyn.language.shapes import Feature, PolygonShape, SolidShape
from fsm_dyn.language.values import parameter_values
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import substitute

# -- Contact kinematics of two features; :mod:`fsm_dyn.derive.contact_geometry` derives them -----------------


@dataclass(frozen=True)
class ContactKinematics:
    """Two features seen together."""

    gap: Node  # m; the distance of the facing features, negative for an overlap
    slip: Node  # m/s; see :mod:`fsm_dyn.derive.contact_geometry`
    reach: Node | None  # m; positive in the range of validity of the gap, None if it is always valid
    following: CurveParameter | None = None
    across: Node | None = None  # m/s; in space, the second component of the slip
    # derivative of the reach by the slip displacement, +1 or -1, at the nearer end of the face. Of a corner on a face
    # with ends.
    margin_slope: Node | None = None
    # whether the nearer end is the start of the face for the derivative +1 (else it is its end)
    starts_ahead: bool = True
    # m; least of ``e . n`` over the edges ``e`` from the corner, with the normal n of the face; negative if a
    # neighbouring corner is behind the touched face. Of a circle the height of its far side, or the depth of its centre
    # in a convex polygon; None at a corner of the other shape.
    aspect: Node | None = None
    whole_circle: bool = False  # whether the feature is a circle touched from outside, and the contact has a reach
    # m/rad; derivative of the gap by the curve parameter if it does not vanish; zero at zero gap
    gap_slope: Node | None = None
    # of two edges, in own units of length: positive where their gap may be that of the two polyhedra
    valid: Node | None = None
    closing: Node | None = None  # m/s; of two polyhedra derived together, the rate of the gap


@dataclass(frozen=True)
class CurveParameter:
    """Equation of the contact point along a curve.

    ``measure`` is least there: ``slope`` is its derivative by the parameter, zero there, and ``bend`` the second.
    """

    parameter: Node  # symbol of the curve parameter (rad)
    measure: Node
    slope: Node
    bend: Node


# -- Contact kinematics on a piece of a curve with hollows (docs/theory.md, "Contact geometry"). -------------

LEAST_AHEAD: Final = (
    0.3  # cosine; below it a face is lateral to a piece of a curve: more than half of a piece's largest turn
)


class PieceGeometry:
    """Derives contact kinematics on a piece from those on its curve."""

    def __init__(self, system: MechanismSymbols) -> None:
        self._graph = system.graph
        self._space = system.space
        self._points = system.points

    def on_circle(self, meeting: ContactKinematics, other: Round, curve: Curve, xi: Node) -> ContactKinematics:
        """Return the kinematics of a circle on a piece of a curve (docs/theory.md, "Contact geometry").

        The piece, moved outwards by the radius, is projected from the centre along one direction: for either sense of
        curvature it has one point there, and beyond its ends it continues straight.
        """
        seen = curve.piece
        part = None if seen is None else seen.part(other.radius)
        if seen is None or part is None:
            return self._never(meeting, xi)
        space, graph = self._space, self._graph
        normal, direction = self._outward(curve, xi), curve.direction(xi)
        away = self._away_from(curve, other, xi)
        grown = graph.one + other.radius * self._turn_rate(curve, xi) / space.norm(direction)
        speed = grown * space.dot(direction, seen.along)
        aside, height = (
            space.dot(away, way) - other.radius * space.dot(normal, way) for way in (seen.along, seen.outward)
        )
        # along the search direction the gap depends on the parameter, unless it is zero
        gap_slope = height * self._turn_rate(curve, xi) * space.dot(direction, seen.outward) / space.norm(direction)
        at, beyond = self._clamped(xi, part)
        inside = self._on_part(xi, part, gap_slope, graph.zero)
        gap, slip, speed, aside, gap_slope = substitute([meeting.gap, meeting.slip, speed, aside, inside], {xi: at})
        slope = beyond * speed - aside
        following = CurveParameter(xi, 0.5 * slope * slope, slope, speed)
        reach = self._within_part(xi, part, seen.piece.speed, meeting.reach)
        return ContactKinematics(gap, slip, reach, following, gap_slope=gap_slope)

    def on_face(self, meeting: ContactKinematics, other: Flat, curve: Curve, xi: Node) -> ContactKinematics:
        """Return the kinematics of a face on a convex piece of a curve, at their common normal."""
        seen = curve.piece
        part = None if seen is None else seen.part(None)
        if seen is None or part is None:
            return self._never(meeting, xi)
        space = self._space
        at, beyond = self._clamped(xi, part)
        # the direction to the face, seen from the middle of the piece; its value behind the piece does not matter
        ahead = functions.maximum(-space.dot(other.normal, seen.outward), self._graph.constant(LEAST_AHEAD))
        aside = -space.dot(other.normal, seen.along)
        normal = self._outward(curve, xi)
        out, across = space.dot(normal, seen.outward), space.dot(normal, seen.along)
        turned = ahead * across - aside * out
        turning = self._turn_rate(curve, xi) * (ahead * out + aside * across)
        gap, slip, turned, turning = substitute([meeting.gap, meeting.slip, turned, turning], {xi: at})
        slope = turned + beyond
        rate = self._on_part(xi, part, turning, self._graph.one)
        following = CurveParameter(xi, 0.5 * slope * slope, slope, rate)
        reach = self._within_part(xi, part, seen.piece.speed, meeting.reach)
        return ContactKinematics(gap, slip, reach, following)

    def _never(self, meeting: ContactKinematics, xi: Node) -> ContactKinematics:
        """Return the kinematics of a piece out of reach: the circle is too large for the hollow."""
        one = self._graph.one
        return replace(meeting, reach=-one, following=CurveParameter(xi, 0.5 * xi * xi, xi, one))

    def _clamped(self, xi: Node, part: tuple[float, float]) -> tuple[Node, Node]:
        """Return the nearest parameter of a part of a curve, and the excess of the given one."""
        start, end = (self._graph.constant(bound) for bound in part)
        at = functions.maximum(functions.minimum(xi, end), start)
        return at, xi - at

    def _on_part(self, xi: Node, part: tuple[float, float], inside: Node, outside: Node) -> Node:
        """Return one of two values by whether a parameter lies on a part of a curve.

        The parameter itself is compared: enclosures of its excess are never exactly zero.
        """
        start, end = (self._graph.constant(bound) for bound in part)
        below_end = functions.where(functions.compare("<=", xi, end), inside, outside)
        return functions.where(functions.compare(">=", xi, start), below_end, outside)

    def _within_part(self, xi: Node, part: tuple[float, float], speed: float, reach: Node | None) -> Node:
        inside = functions.minimum(speed * (xi - part[0]), speed * (part[1] - xi))
        return inside if reach is None else functions.minimum(inside, reach)

    def _outward(self, curve: Curve, xi: Node) -> Vector:
        """Return the outward unit normal of a curve."""
        space, direction = self._space, curve.direction(xi)
        across = space.scale(float(curve.turn), space.cross(direction, space.axis(curve.frame, Z)))
        return space.divide(across, space.norm(direction))

    def _turn_rate(self, curve: Curve, xi: Node) -> Node:
        """Return the rate of turn of a curve's normal by its parameter, towards its tangent on convex parts."""
        space, direction = self._space, curve.direction(xi)
        z = space.axis(curve.frame, Z)
        turned = space.dot(space.cross(direction, curve.bend(xi)), z)
        return float(curve.turn) * turned / space.square(direction)

    def _away_from(self, curve: Curve, other: Round, xi: Node) -> Vector:
        """Return the vector from a curve at ``xi`` to the centre of a circle."""
        space = self._space
        between = space.sum((self._points.position(curve.origin, other.origin), curve.place(xi)))
        return space.subtract(other.offset, between)


# -- Derives the contact kinematics of two features: gap, slip and boundary margin ---------------------------
#
# With the centre C of the round feature (radius ρ, 0 for a point) and a flat face through P with normal n, or another
# round feature about D (docs/theory.md, "Contact geometry"):
#
# - round and flat: ``gap = (C - P) . n - ρ``;
# - a curve and a face: the least ``gap = (P(ξ) - P) . n`` over ξ; a curve and a round feature: the normal n(ξ)
#   of the curve takes the place of the face's, at the closest point.  The curve parameter ξ is an additional coordinate
#   (:class:`~fsm_dyn.derive.contact_geometry.CurveParameter`); the gap does not depend on it to first order;
# - two round features: ``gap = |C - D| - ρ - R``, n from D to C; inside a hollow circle ``gap = R - ρ - |C - D|``, n
#   from C to D.
#
# The slip is the velocity of the first material less that of the second at the contact point, along the tangent ``n ×
# z``. A face with ends has a *reach*: the distance of the contact point from the ends, negative beyond them. A corner
# between edges has an *aspect* on a face: the height of the lower neighbouring corner above it; a circle has the height
# of its far side, positive unless the whole circle is behind the face.

ROUNDED: Final = 1e-8  # tilt of a disk (rad); below it the disk has no lowest point
LIFT: Final = 1e-6  # height of the rim of a flat disk above its feet, in radii
FLAT: Final = 1e-4  # tilt of a disk (rad); below it the disk is flat
PARALLEL: Final = 1e-6  # sine of an angle (rad); edges that cross at a smaller one are parallel
ADMITTED: Final = 5e-10  # own units: how far beyond its ends, or its fans of normals, a pair of edges still closes
OVERLAP: Final = 1e-8  # own units; extension of a face at a concave end: ten times the tolerance of a gap


def feature_contacts(mechanism: Mechanism) -> list[FeatureContact]:
    """Return the contacts of features of shapes of a `mechanism`."""
    return [contact for contact in mechanism.contacts.values() if isinstance(contact, FeatureContact)]


class ContactGeometry:
    """Derives contact kinematics. ``motion``: with all speeds as symbols."""

    def __init__(self, system: MechanismSymbols, shapes: Shapes, motion: Motion) -> None:
        self.system = system
        self._shapes = shapes
        self._motion = motion
        self._space = system.space
        self._pieces = PieceGeometry(system)
        mechanism = system.mechanism
        self._length = own_scales(mechanism, parameter_values(mechanism)).length

    def all(self, contacts: Iterable[FeatureContact]) -> dict[str, ContactKinematics]:
        """Return the kinematics of contacts between shapes, by name."""
        return {contact.name: self.of(contact) for contact in contacts}

    def of(self, contact: FeatureContact) -> ContactKinematics:
        """Return the kinematics of the two features of a contact.

        Raises ModelError: the shapes do not lie in one plane.
        """
        first, second = (self._shapes.feature(feature) for feature in contact.features)
        self._check_plane(contact, first, second)
        if isinstance(first, Rim) and isinstance(second, Flat):
            return self._on_rim(first, second, 1)
        if isinstance(first, Flat) and isinstance(second, Rim):
            return self._on_rim(second, first, -1)
        if isinstance(first, EdgeLine) and isinstance(second, EdgeLine):
            return self._on_edges(first, second, contact)
        kinematics = self._of_planar(contact, first, second)
        if kinematics.reach is None:
            return kinematics
        one, other = contact.features
        for circle, feature, base in ((first, one, other), (second, other, one)):
            if _is_whole_circle(circle, feature):
                aspect = self._far_side(circle, base, kinematics.gap)
                return replace(kinematics, aspect=aspect, whole_circle=True)
        return kinematics

    def _of_planar(self, contact: FeatureContact, first: Primitive, second: Primitive) -> ContactKinematics:
        if isinstance(second, Curve) and isinstance(first, Flat | Round):
            return self._on_curve(contact, first, second, 1)
        if isinstance(first, Curve) and isinstance(second, Flat | Round):
            return self._on_curve(contact, second, first, -1)
        if isinstance(first, Round) and isinstance(second, EdgeLine):
            return self._on_edge(first, second, 1)
        if isinstance(first, EdgeLine) and isinstance(second, Round):
            return self._on_edge(second, first, -1)
        if isinstance(first, Round) and isinstance(second, Flat):
            return self._on_flat(first, second, 1)
        if isinstance(first, Flat) and isinstance(second, Round):
            return self._on_flat(second, first, -1)
        if isinstance(first, Round) and isinstance(second, Round):
            # the normal points away from the larger one, or into the hollow one
            if first.hollow or (first.radius is not second.radius and second.radius.is_zero):
                return self._on_round(contact, second, first, -1)
            return self._on_round(contact, first, second, 1)
        raise ModelError(f"the faces of contact '{contact.name}' touch only at corners", contact.where)

    def _check_plane(self, contact: FeatureContact, first: Primitive, second: Primitive) -> None:
        frames = [
            feature.frame for feature, given in zip((first, second), contact.features, strict=True)
            if given.part != "point" and not self.system.mechanism.shapes[given.shape].spatial
        ]  # fmt: skip
        if len(frames) < 2 or frames[0] == frames[1]:
            return
        cosine = self._space.dot(self._space.axis(frames[0], Z), self._space.axis(frames[1], Z))
        if not self.system.reducer.is_zero(cosine - 1.0):
            raise ModelError(
                f"the shapes of contact '{contact.name}' do not lie in one plane",
                contact.where,
                found=f"frames '{frames[0]}' and '{frames[1]}' do not share their z axis",
                remedy="planar shapes lie in the x-y planes of their frames",
            )

    # -- round on flat -------------------------------------------------------------------------------------

    def _on_flat(self, ball: Round, face: Flat, sign: int) -> ContactKinematics:
        space = self._space
        center = self._between(ball, face)
        gap = space.dot(center, face.normal) - ball.radius
        to_place = space.scale(-ball.radius, face.normal)
        place = space.sum((ball.offset, to_place))
        slip = self._slip(ball, face, place, face.tangent, sign)
        if face.across is not None:
            inside = [
                space.dot(space.sum((center, face.offset, space.negate(side.offset))), side.inward)
                for side in face.sides
            ]
            heights = [space.dot(edge, face.normal) for edge in ball.edges] if inside else []
            across = self._slip(ball, face, place, face.across, sign)
            closing = self._closing(ball, face, place, face.normal)
            return ContactKinematics(gap, slip, _least(inside), across=across, aspect=_least(heights), closing=closing)
        reach = [self._along(center, face)] if face.length is not None else []
        if ball.span is not None:
            reach.append(self._within(ball, space.scale(-ball.radius, face.normal)))
        meeting = ContactKinematics(gap, slip, _least(reach))
        if face.length is None or not ball.radius.is_zero:
            return meeting
        way = face.sense * sign  # of the foot, seen from the start of the face, as the slip grows
        near_start = functions.compare("<=", 2.0 * face.sense * space.dot(center, face.tangent), face.length)
        slope = functions.where(near_start, self._constant(way), self._constant(-way))
        return replace(meeting, margin_slope=slope, starts_ahead=way > 0, aspect=self._aspect(ball, face))

    def _constant(self, value: float) -> Node:
        return self.system.graph.constant(value)

    def _along(self, center: Vector, face: Flat) -> Node:
        """Return the distance of a place's foot from the ends of a face, positive inside; given from the face's start.

        A face is extended at a concave corner: a contact with both faces of the corner belongs to both.
        """
        s = face.sense * self._space.dot(center, face.tangent)
        length = face.length if face.length is not None else self.system.graph.zero
        before, behind = (OVERLAP * self._length if concave else 0.0 for concave in face.concave)
        return functions.minimum(s + before, length - s + behind)

    def _aspect(self, corner: Round, face: Flat) -> Node | None:
        """Return the height of the lower neighbour of a corner above the plane of a face (m)."""
        edges = []
        for edge in corner.beyond:
            if not isinstance(edge, Flat) or edge.length is None:
                return None
            along = edge.sense * edge.length * self._space.dot(edge.tangent, face.normal)
            # the edge goes from its start corner to its end corner
            edges.append(along if edge.offset is corner.offset else -along)
        return _least(edges)

    def _far_side(self, circle: Round, base: Feature, gap: Node) -> Node | None:
        """Return the aspect of a circle on a face with ends (m); None at a corner."""
        if base.part in ("corner", "vertex", "edge"):
            return None
        beyond = gap + 2.0 * circle.radius
        shape = self.system.mechanism.shapes[base.shape]
        if isinstance(shape, SolidShape):
            count = len(shape.corners_of_faces)
        elif isinstance(shape, PolygonShape) and not shape.inside and not shape.concave:
            count = shape.straight_faces
        else:
            return beyond
        faces = [self._shapes.feature(replace(base, index=index)) for index in range(count)]
        heights = [
            self._space.dot(self._between(circle, face), face.normal) for face in faces if isinstance(face, Flat)
        ]
        return functions.maximum(beyond, -_largest(heights))

    # -- round on round ------------------------------------------------------------------------------------

    def _on_round(self, contact: FeatureContact, ball: Round, base: Round, sign: int) -> ContactKinematics:
        space, graph = self._space, self.system.graph
        arm = self._between(ball, base)
        distance = space.distance(arm)
        if base.hollow:
            gap, out = base.radius - ball.radius - distance, -1.0
        else:
            gap, out = distance - ball.radius - base.radius, 1.0
        # coinciding centres have no direction; dividing by 1 there leaves no force instead of NaN
        divisor = functions.where(functions.compare(">", distance, 0.0), distance, graph.one)
        normal = space.divide(space.scale(out, arm), divisor)
        place = space.sum((ball.offset, space.scale(-ball.radius, normal)))
        if self._in_space(contact):
            # any two directions across the normal will do; a crooked one is along it hardly ever
            tangent = space.cross(
                normal, space.vector(NEWTONIAN, (graph.constant(2 / 7), graph.constant(3 / 7), graph.constant(6 / 7)))
            )
            length = space.norm(tangent)
            tangent = space.divide(tangent, functions.where(functions.compare(">", length, 0.0), length, graph.one))
            slip = self._slip(ball, base, place, tangent, sign)
            ways = [space.negate(edge) for edge in base.edges] + list(
                ball.edges
            )  # a hollow is touched by corners alone
            away = [space.dot(arm, way) / space.norm(way) for way in ways if not base.hollow]
            across = self._slip(ball, base, place, space.cross(normal, tangent), sign)
            return ContactKinematics(gap, slip, _least(away), across=across)
        tangent = space.cross(normal, space.axis(base.frame, Z))
        slip = self._slip(ball, base, place, tangent, sign)
        reach = [self._reach_round(base, arm), self._reach_round(ball, space.negate(arm))]
        return ContactKinematics(gap, slip, _least([node for node in reach if node is not None]))

    def _reach_round(self, feature: Round, arm: Vector) -> Node | None:
        """Return the distance of the contact point inside the ends of an arc, or beyond the faces of a corner.

        ``arm`` points to the other centre.
        """
        if feature.span is not None:
            return self._within(feature, arm)
        if not feature.beyond:
            return None
        space = self._space
        parts = []
        for face in feature.beyond:
            if isinstance(face, Round):
                # seen from the centre of the arc
                parts.append(-self._within(face, space.sum((arm, feature.offset, space.negate(face.offset)))))
                continue
            away = space.sum((arm, feature.offset, space.negate(face.offset)))
            s = face.sense * space.dot(away, face.tangent)
            length = face.length if face.length is not None else self.system.graph.zero
            if len(feature.beyond) == 1:  # an end: beyond either end of the face, or behind it
                beyond = -functions.minimum(s, length - s)
                parts.append(functions.maximum(beyond, -space.dot(away, face.normal)))
            else:
                parts.append(s - length if face is feature.beyond[0] else -s)
        return _least(parts)

    def _within(self, arc: Round, direction: Vector) -> Node:
        """Return the margin of a direction inside the span of an arc, times the direction's length."""
        if arc.span is None:
            raise ModelError("a circle has no span")
        space = self._space
        z = space.axis(arc.frame, Z)
        first = space.dot(space.cross(arc.span[0], direction), z)
        last = space.dot(space.cross(direction, arc.span[1]), z)
        return (functions.maximum if arc.wide else functions.minimum)(first, last)

    def _on_rim(self, rim: Rim, face: Flat, sign: int) -> ContactKinematics:
        """Return the kinematics of the rim of a disk on a plane, at its lowest point.

        A flat disk has no lowest point, and rests on its three feet: the rim is lifted for a tilt below :data:`FLAT`
        (docs/theory.md, "Contact geometry").
        """
        space, graph = self._space, self.system.graph
        along = space.dot(face.normal, rim.axis)
        down = space.subtract(space.scale(along, rim.axis), face.normal)
        # of the sine of the tilt; 1 - along**2 would leave of a small one its rounding
        square = self.system.reducer.reduce(space.square(space.cross(face.normal, rim.axis)))
        upright = functions.sqrt(functions.maximum(square, self._constant(ROUNDED**2)))
        lifted = graph.one / (graph.one + square / FLAT**2)
        center = space.sum((self.system.points.position(rim.origin, face.origin), space.negate(face.offset)))
        gap = space.dot(center, face.normal) - rim.radius * (upright - LIFT * lifted)
        arm = rim.radius * (graph.one / upright + (2.0 * LIFT / FLAT**2) * lifted * lifted)
        place = space.sum((rim.offset, space.scale(arm, down)))
        edge = Round(rim.frame, rim.origin, rim.offset, graph.zero)
        slip = self._slip(edge, face, place, face.tangent, sign)
        across = None if face.across is None else self._slip(edge, face, place, face.across, sign)
        return ContactKinematics(gap, slip, None, across=across)

    def _in_space(self, contact: FeatureContact) -> bool:
        shapes = self.system.mechanism.shapes
        return any(f.part != "point" and shapes[f.shape].spatial for f in contact.features)

    # -- edges of polyhedra --------------------------------------------------------------------------------

    def _on_edge(self, ball: Round, edge: EdgeLine, sign: int) -> ContactKinematics:
        """Return the kinematics of a sphere on an edge, at the point of the edge nearest to its centre."""
        space, graph = self._space, self.system.graph
        arm = self._between(ball, edge)
        along = space.dot(arm, edge.direction)
        aside = space.subtract(arm, space.scale(along, edge.direction))
        distance = space.norm(aside)
        divisor = functions.where(functions.compare(">", distance, 0.0), distance, graph.one)
        normal = space.divide(aside, divisor)
        place = space.sum((ball.offset, space.scale(-ball.radius, normal)))
        slip = self._slip(ball, edge, place, edge.direction, sign)
        across = self._slip(ball, edge, place, space.cross(normal, edge.direction), sign)
        reach = [along, edge.length - along, *(-space.dot(aside, inward) for inward in edge.inward)]
        return ContactKinematics(distance - ball.radius, slip, _least(reach), across=across)

    def _on_edges(self, first: EdgeLine, second: EdgeLine, contact: FeatureContact) -> ContactKinematics:
        """Return the kinematics of two edges that cross.

        Their common normal, outwards from the second polyhedron, separates both bodies if it is in the fans of normals
        of both edges, which the aspect measures (docs/theory.md, "Contact geometry").
        """
        space, graph = self._space, self.system.graph
        cross = space.cross(first.direction, second.direction)
        square = space.square(cross)
        sine = functions.sqrt(functions.maximum(square, self._constant(PARALLEL**2)))
        inwards = space.dot(cross, space.sum(second.inward))
        outward = functions.where(functions.compare("<=", inwards, 0.0), graph.one, -graph.one)
        normal = space.scale(outward / sine, cross)
        between = self._between(first, second)
        gap = space.dot(between, normal)
        # the points of both lines that are nearest to each other
        a, b = space.dot(between, first.direction), space.dot(between, second.direction)
        c = space.dot(first.direction, second.direction)
        near = (b * c - a) / (sine * sine)
        far = (b - a * c) / (sine * sine)
        place = space.sum((first.offset, space.scale(near, first.direction)))
        slip = self._slip(first, second, place, first.direction, 1)
        across = self._slip(first, second, place, space.cross(normal, first.direction), 1)
        reach = _least([near, first.length - near, far, second.length - far])
        shorter = functions.minimum(first.length, second.length)
        fans = [space.dot(normal, inward) for inward in first.inward]
        fans += [-space.dot(normal, inward) for inward in second.inward]
        fans.append((square - PARALLEL**2) / PARALLEL)  # no normal of parallel edges
        aspect = shorter * _of(_least(fans))
        thickness = self._thickness(contact)
        # no place of the first edge is nearer to the line of the second than this
        aside = functions.maximum(space.square(between) - b * b, self._constant((PARALLEL * thickness) ** 2))
        apart = functions.sqrt(aside) - sine * first.length - PARALLEL * thickness
        admitted = ADMITTED * self._length
        valid = _least([_of(reach) + admitted, aspect + admitted, gap + thickness, -apart])
        return ContactKinematics(
            gap,
            slip,
            reach,
            across=across,
            aspect=aspect,
            valid=_of(valid) / self._length,
            closing=self._closing(first, second, place, normal),
        )

    def _thickness(self, contact: FeatureContact) -> float:
        """Return half the least thickness of two polyhedra (m) with the parameters of the file."""
        values = parameter_values(self.system.mechanism)
        return 0.5 * min(
            solid_thickness(shape, values)
            for shape in (self.system.mechanism.shapes[feature.shape] for feature in contact.features)
            if isinstance(shape, SolidShape)
        )

    # -- curves --------------------------------------------------------------------------------------------

    def _on_curve(self, contact: FeatureContact, other: Flat | Round, curve: Curve, sign: int) -> ContactKinematics:
        """Return the kinematics on a curve, at the curve parameter of the contact."""
        space, graph = self._space, self.system.graph
        xi = graph.symbol(contact.parameter)
        place, direction, bend = curve.place(xi), curve.direction(xi), curve.bend(xi)
        between = space.sum((self.system.points.position(curve.origin, other.origin), place))
        away = space.subtract(between, other.offset)  # from the other to the place on the curve
        if isinstance(other, Flat):
            # the face is the base: its tangent is the same wherever the curve touches
            gap = space.dot(away, other.normal)
            slope, curvature = space.dot(direction, other.normal), space.dot(bend, other.normal)
            reach = self._along(away, other) if other.length is not None else None
            ball = Round(curve.frame, curve.origin, place, graph.zero)
            slip = self._slip(ball, other, place, other.tangent, -sign)
            if curve.piece is not None:
                return self._pieces.on_face(ContactKinematics(gap, slip, reach), other, curve, xi)
            return ContactKinematics(gap, slip, reach, CurveParameter(xi, gap, slope, curvature))
        z = space.axis(curve.frame, Z)
        speed = space.norm(direction)
        normal = space.divide(space.scale(float(curve.turn), space.cross(direction, z)), speed)
        gap = -space.dot(away, normal) - other.radius
        measure = 0.5 * space.square(away)
        slope = space.dot(away, direction)
        curvature = space.square(direction) + space.dot(away, bend)
        tangent = space.cross(normal, z)
        ball_place = space.sum((other.offset, space.scale(-other.radius, normal)))
        base = Round(curve.frame, curve.origin, place, graph.zero)
        slip = self._slip(other, base, ball_place, tangent, sign)
        reach = self._reach_round(other, space.negate(normal))
        if curve.piece is not None:
            return self._pieces.on_circle(ContactKinematics(gap, slip, reach), other, curve, xi)
        return ContactKinematics(gap, slip, reach, CurveParameter(xi, measure, slope, curvature))

    # -- velocities ----------------------------------------------------------------------------------------

    def _between(self, a: Flat | Round | EdgeLine, b: Flat | Round | EdgeLine) -> Vector:
        """Return the vector from the place of b to the place of a."""
        position = self.system.points.position(a.origin, b.origin)
        return self._space.sum((position, a.offset, self._space.negate(b.offset)))

    def _closing(self, a: Round | EdgeLine, b: Flat | EdgeLine, place: Vector, normal: Vector) -> Node | None:
        """Return the rate of a gap if it is not to be the derivative of the gap."""
        return None

    def _slip(self, a: Round | EdgeLine, b: Flat | Round | EdgeLine, place: Vector, tangent: Vector, sign: int) -> Node:
        """Return the speed of the material of a relative to b's along the tangent; ``place`` is from a's origin."""
        space = self._space
        other = space.sum((place, self.system.points.position(a.origin, b.origin)))
        parts = [
            self._motion.speed_of(a.origin),
            space.cross(self._motion.angular(a.frame), place),
            space.negate(self._motion.speed_of(b.origin)),
            space.negate(space.cross(self._motion.angular(b.frame), other)),
        ]
        return sign * space.dot(space.sum(parts), tangent)


def _is_whole_circle(primitive: Primitive, feature: Feature) -> TypeGuard[Round]:
    """Whether a round feature is a full circle touched from outside."""
    whole = isinstance(primitive, Round) and primitive.span is None and not primitive.hollow
    return whole and feature.part == "round"


def _largest(nodes: list[Node]) -> Node:
    result = nodes[0]
    for node in nodes[1:]:
        result = functions.maximum(result, node)
    return result


def _of(node: Node | None) -> Node:
    assert node is not None
    return node


def _least(nodes: list[Node]) -> Node | None:
    result: Node | None = None
    for node in nodes:
        result = node if result is None else functions.minimum(result, node)
    return result
