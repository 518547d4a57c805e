"""Contact kinematics on a piece of a curve with hollows (docs/theory.md, "Contact geometry")."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fsm_dyn.programs import Node, functions, substitute
from fsm_dyn.symbolic.contact_kinematics import ContactKinematics, CurveParameter
from fsm_dyn.symbolic.curves import Curve
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
from fsm_dyn.symbolic.shapes import Flat, Round, Z
from fsm_dyn.symbolic.vectors import Vector

LEAST_AHEAD: Final = (
    0.3  # cosine, below which a face is lateral to a piece of a curve: more than half of what one may turn
)


class PieceGeometry:
    """Derives contact kinematics on a piece from those on its curve.

    Parameters
    ----------
    system : MechanismSymbols
    """

    def __init__(self, system: MechanismSymbols) -> None:
        self._graph = system.graph
        self._space = system.space
        self._points = system.points

    def on_circle(self, meeting: ContactKinematics, other: Round, curve: Curve, xi: Node) -> ContactKinematics:
        """Return the kinematics of a circle on a piece of a curve (docs/theory.md, "Contact geometry").

        The piece, moved outwards by the radius, is seen from the centre along one direction: whichever way it bends,
        one point of it is there, and beyond its ends it continues straight.
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
        # along the way on which the place is sought the gap itself changes with it, unless it is zero
        gap_slope = height * self._turn_rate(curve, xi) * space.dot(direction, seen.outward) / space.norm(direction)
        at, beyond = self._clamped(xi, part)
        inside = functions.where(functions.compare("==", beyond, 0.0), gap_slope, graph.zero)
        gap, slip, speed, aside, gap_slope = substitute([meeting.gap, meeting.slip, speed, aside, inside], {xi: at})
        slope = beyond * speed - aside
        following = CurveParameter(xi, 0.5 * slope * slope, slope, speed)
        reach = self._within_part(xi, part, seen.piece.speed, meeting.reach)
        return ContactKinematics(gap, slip, reach, following, gap_slope=gap_slope)

    def on_face(self, meeting: ContactKinematics, other: Flat, curve: Curve, xi: Node) -> ContactKinematics:
        """Return the kinematics of a face on a piece of a curve that bends outwards, where both have one normal."""
        seen = curve.piece
        part = None if seen is None else seen.part(None)
        if seen is None or part is None:
            return self._never(meeting, xi)
        space = self._space
        at, beyond = self._clamped(xi, part)
        # the direction to the face, seen from the middle of the piece; what it is behind there does not matter
        ahead = functions.maximum(-space.dot(other.normal, seen.outward), self._graph.constant(LEAST_AHEAD))
        aside = -space.dot(other.normal, seen.along)
        normal = self._outward(curve, xi)
        out, across = space.dot(normal, seen.outward), space.dot(normal, seen.along)
        turned = ahead * across - aside * out
        turning = self._turn_rate(curve, xi) * (ahead * out + aside * across)
        gap, slip, turned, turning = substitute([meeting.gap, meeting.slip, turned, turning], {xi: at})
        slope = turned + beyond
        rate = functions.where(functions.compare("==", beyond, 0.0), turning, self._graph.one)
        following = CurveParameter(xi, 0.5 * slope * slope, slope, rate)
        reach = self._within_part(xi, part, seen.piece.speed, meeting.reach)
        return ContactKinematics(gap, slip, reach, following)

    def _never(self, meeting: ContactKinematics, xi: Node) -> ContactKinematics:
        """Return the kinematics of a piece that is never touched: a circle is too large for the hollow."""
        one = self._graph.one
        return replace(meeting, reach=-one, following=CurveParameter(xi, 0.5 * xi * xi, xi, one))

    def _clamped(self, xi: Node, part: tuple[float, float]) -> tuple[Node, Node]:
        """Return the nearest parameter of a part of a curve, and by how much the other one is beyond it."""
        start, end = (self._graph.constant(bound) for bound in part)
        at = functions.maximum(functions.minimum(xi, end), start)
        return at, xi - at

    def _within_part(self, xi: Node, part: tuple[float, float], speed: float, reach: Node | None) -> Node:
        inside = functions.minimum(speed * (xi - part[0]), speed * (part[1] - xi))
        return inside if reach is None else functions.minimum(inside, reach)

    def _outward(self, curve: Curve, xi: Node) -> Vector:
        """Return the outward unit normal of a curve."""
        space, direction = self._space, curve.direction(xi)
        across = space.scale(float(curve.turn), space.cross(direction, space.axis(curve.frame, Z)))
        return space.divide(across, space.norm(direction))

    def _turn_rate(self, curve: Curve, xi: Node) -> Node:
        """Return by how much the normal of a curve turns with its parameter, towards its tangent where it bulges."""
        space, direction = self._space, curve.direction(xi)
        z = space.axis(curve.frame, Z)
        turned = space.dot(space.cross(direction, curve.bend(xi)), z)
        return float(curve.turn) * turned / space.square(direction)

    def _away_from(self, curve: Curve, other: Round, xi: Node) -> Vector:
        """Return the vector from a curve at ``xi`` to the centre of a circle."""
        space = self._space
        between = space.sum((self._points.position(curve.origin, other.origin), curve.place(xi)))
        return space.subtract(other.offset, between)
