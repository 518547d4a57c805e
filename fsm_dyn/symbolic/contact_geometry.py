"""Derives the contact kinematics of two features: gap, slip and boundary margin.

With the centre C of the round feature (radius ρ, 0 for a point) and a flat face through P with normal n, or another
round feature about D (docs/theory.md, "Contact geometry"):

- round and flat: ``gap = (C - P) . n - ρ``;
- a curve and a face: ``gap = (P(ξ) - P) . n`` where it is least over ξ; a curve and a round feature: the normal n(ξ) of
  the curve takes the place of the face's, at the closest place.  The parameter ξ is an additional coordinate that
  follows (:class:`~fsm_dyn.symbolic.contact_kinematics.CurveParameter`); the gap does not depend on it to first order;
- two round features: ``gap = |C - D| - ρ - R``, n from D to C; inside a hollow circle ``gap = R - ρ - |C - D|``, n from
  C to D.

The slip is the velocity of the first material less that of the second at the place of contact, along the tangent
``n × z``.  A face that ends has a *reach*: how far inside its ends the place of contact is, negative beyond them.  A
corner between edges has an *aspect* on a face: how high above it the lower of the two neighbouring corners stands; a
circle that of its far side, so that it is positive unless all of the circle is behind the face.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeGuard

from fsm_dyn.errors import ModelError
from fsm_dyn.programs import Node, functions
from fsm_dyn.spec.contact import FeatureContact
from fsm_dyn.spec.scales import own_scales
from fsm_dyn.spec.shape import Feature, PolygonShape
from fsm_dyn.spec.values import parameter_values
from fsm_dyn.symbolic.contact_kinematics import ContactKinematics, CurveParameter
from fsm_dyn.symbolic.curves import Curve
from fsm_dyn.symbolic.frames import NEWTONIAN
from fsm_dyn.symbolic.hollow_curves import PieceGeometry
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
from fsm_dyn.symbolic.partial_velocities import Motion
from fsm_dyn.symbolic.shapes import Flat, Primitive, Rim, Round, Shapes, Z
from fsm_dyn.symbolic.vectors import Vector

ROUNDED: Final = 1e-8  # tilt of a disk (rad) below which it has no lowest point
LIFT: Final = 1e-6  # part of the radius of a disk, by which the rim is above the feet of a disk that lies flat
FLAT: Final = 1e-4  # tilt of a disk (rad) below which it lies flat
OVERLAP: Final = 1e-8  # own units; extension of a face at a concave end: ten times the tolerance of a gap


class ContactGeometry:
    """Derives contact kinematics.

    Parameters
    ----------
    system : MechanismSymbols
    shapes : Shapes
    motion : Motion
        With all speeds as symbols.
    """

    def __init__(self, system: MechanismSymbols, shapes: Shapes, motion: Motion) -> None:
        self.system = system
        self._shapes = shapes
        self._motion = motion
        self._space = system.space
        self._pieces = PieceGeometry(system)
        mechanism = system.mechanism
        self._length = own_scales(mechanism, parameter_values(mechanism)).length

    def all(self) -> dict[str, ContactKinematics]:
        """Return the kinematics of all contacts between shapes, by name."""
        contacts = self.system.mechanism.contacts.values()
        return {contact.name: self.of(contact) for contact in contacts if isinstance(contact, FeatureContact)}

    def of(self, contact: FeatureContact) -> ContactKinematics:
        """Return the kinematics of the two features of a contact.

        Raises
        ------
        ModelError
            The shapes do not lie in one plane.
        """
        first, second = (self._shapes.feature(feature) for feature in contact.features)
        self._check_plane(contact, first, second)
        if isinstance(first, Rim) and isinstance(second, Flat):
            return self._on_rim(first, second, 1)
        if isinstance(first, Flat) and isinstance(second, Rim):
            return self._on_rim(second, first, -1)
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
            return ContactKinematics(gap, slip, None, across=self._slip(ball, face, place, face.across, sign))
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
        """Return how far inside the ends of a face the foot of a place is, given from the start of the face.

        A face that ends in a concave corner is extended there: what touches both faces of the corner belongs to both.
        """
        s = face.sense * self._space.dot(center, face.tangent)
        length = face.length if face.length is not None else self.system.graph.zero
        before, behind = (OVERLAP * self._length if concave else 0.0 for concave in face.concave)
        return functions.minimum(s + before, length - s + behind)

    def _aspect(self, corner: Round, face: Flat) -> Node | None:
        """Return how high above the plane of a face the lower of the two neighbours of a corner stands (m)."""
        edges = []
        for edge in corner.beyond:
            if not isinstance(edge, Flat) or edge.length is None:
                return None
            along = edge.sense * edge.length * self._space.dot(edge.tangent, face.normal)
            # the edge leaves the corner that it starts from, and comes to the one where it ends
            edges.append(along if edge.offset is corner.offset else -along)
        return _least(edges)

    def _far_side(self, circle: Round, base: Feature, gap: Node) -> Node | None:
        """Return the aspect of a circle on a face that ends (m); None at a corner."""
        if base.part == "corner":
            return None
        beyond = gap + 2.0 * circle.radius
        shape = self.system.mechanism.shapes[base.shape]
        if not isinstance(shape, PolygonShape) or shape.inside or shape.concave:
            return beyond
        faces = [self._shapes.feature(replace(base, index=index)) for index in range(shape.straight_faces)]
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
            return ContactKinematics(
                gap, slip, None, across=self._slip(ball, base, place, space.cross(normal, tangent), sign)
            )
        tangent = space.cross(normal, space.axis(base.frame, Z))
        slip = self._slip(ball, base, place, tangent, sign)
        reach = [self._reach_round(base, arm), self._reach_round(ball, space.negate(arm))]
        return ContactKinematics(gap, slip, _least([node for node in reach if node is not None]))

    def _reach_round(self, feature: Round, arm: Vector) -> Node | None:
        """Return how far the place of contact is within an arc or beyond the faces of a corner.

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
        """Return how far inside the span of an arc a direction points, times the direction's length."""
        if arc.span is None:
            raise ModelError("a circle has no span")
        space = self._space
        z = space.axis(arc.frame, Z)
        first = space.dot(space.cross(arc.span[0], direction), z)
        last = space.dot(space.cross(direction, arc.span[1]), z)
        return (functions.maximum if arc.wide else functions.minimum)(first, last)

    def _on_rim(self, rim: Rim, face: Flat, sign: int) -> ContactKinematics:
        """Return the kinematics of the rim of a disk on a plane, at its lowest point.

        A flat disk has no lowest point, and rests on its three feet: the rim is lifted where the tilt is below
        :data:`FLAT` (docs/theory.md, "Contact geometry").
        """
        space, graph = self._space, self.system.graph
        along = space.dot(face.normal, rim.axis)
        down = space.subtract(space.scale(along, rim.axis), face.normal)
        square = self.system.reducer.reduce(1.0 - along * along)  # of the sine of the tilt
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

    def _between(self, a: Flat | Round, b: Flat | Round) -> Vector:
        """Return the vector from the place of b to the place of a."""
        position = self.system.points.position(a.origin, b.origin)
        return self._space.sum((position, a.offset, self._space.negate(b.offset)))

    def _slip(self, a: Round, b: Flat | Round, place: Vector, tangent: Vector, sign: int) -> Node:
        """Return the speed of the material of a against that of b along the tangent; ``place`` is from a's origin."""
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


def _least(nodes: list[Node]) -> Node | None:
    result: Node | None = None
    for node in nodes:
        result = node if result is None else functions.minimum(result, node)
    return result
