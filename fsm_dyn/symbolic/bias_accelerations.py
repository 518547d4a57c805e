"""Accelerations at u̇ = 0: what is left of them when the speeds do not change."""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.programs import Node, tangent
from fsm_dyn.symbolic.frames import NEWTONIAN, Triple, Turn, apply, transpose
from fsm_dyn.symbolic.partial_velocities import Motion, Parts, plus_along
from fsm_dyn.symbolic.points import ORIGIN
from fsm_dyn.symbolic.trig_reduction import Reducer, cost
from fsm_dyn.symbolic.vectors import Space, Vector, cross, is_null


class Accelerations:
    """Velocity-dependent accelerations of frames and points.

    Parameters
    ----------
    motion : Motion
        With kinematic speeds at zero.
    flow : mapping of Node to Node
        Rates of coordinates, time and inputs.
    """

    def __init__(self, motion: Motion, flow: Mapping[Node, Node]) -> None:
        self.motion = motion
        self.flow = flow
        zero = motion.graph.zero
        self._spins: dict[str, Triple] = {}
        self._angular: dict[str, Triple] = {NEWTONIAN: (zero, zero, zero)}
        self._edges: dict[str, Vector] = {}
        self._points: dict[str, Vector] = {ORIGIN: Vector()}
        self._resolved: dict[tuple[str, str], Triple] = {}

    @property
    def _space(self) -> Space:
        return self.motion.space

    @property
    def _reducer(self) -> Reducer:
        return self.motion.space.reducer

    def spin(self, frame: str) -> Triple:
        """Return the components of a frame's angular velocity in the frame itself."""
        known = self._spins.get(frame)
        if known is None:
            known = self._spins[frame] = self._space.resolve(self.motion.angular(frame), frame)
        return known

    def angular(self, frame: str) -> Triple:
        """Return the components of a frame's angular acceleration in the frame itself.

        By the rates of the components of its angular velocity, or from the parent's by the turns between: what
        takes fewer operations.
        """
        known = self._angular.get(frame)
        if known is None:
            direct = self._reduced(self._rates(self.spin(frame)))
            stepwise = None if is_null(direct) else self._stepwise(frame)
            cheaper = stepwise is not None and cost(stepwise) < cost(direct)
            known = self._angular[frame] = stepwise if stepwise is not None and cheaper else direct
        return known

    def _stepwise(self, frame: str) -> Triple | None:
        """Return the angular acceleration found from the parent's; None where a turn is not by an angle."""
        parent = self._space.frames.parents[frame]
        spin, rate = self.spin(parent), self.angular(parent)
        for turn in self._space.frames.turns(frame):
            if turn.angle is None:
                return None
            spin, rate = self._turned(turn, turn.angle, spin, rate)
        return rate

    def _turned(self, turn: Turn, angle: Node, spin: Triple, rate: Triple) -> tuple[Triple, Triple]:
        """Return angular velocity and acceleration after one more turn, components after the turn."""
        back = transpose(self._space.frames.elementary(turn))
        speed = self.motion.rate(angle)
        (change,) = tangent([speed], self.flow)
        spin = self._reduced(plus_along(apply(back, spin), turn.axis, speed))
        zero = self.motion.graph.zero
        x, y, z = apply(back, rate)
        dx, dy, dz = cross(spin, plus_along((zero, zero, zero), turn.axis, speed))
        return spin, self._reduced(plus_along((x + dx, y + dy, z + dz), turn.axis, change))

    def edge(self, point: str) -> Vector:
        """Return the acceleration of a point less that of the one it is given from."""
        known = self._edges.get(point)
        if known is None:
            known = self._edges[point] = self.of(self.motion.drift(point))
        return known

    def point(self, point: str) -> Vector:
        """Return the acceleration of a point in N."""
        known = self._points.get(point)
        if known is None:
            before = self.point(self.motion.points.origin(point))
            known = self._points[point] = self._space.sum((before, self.edge(point)))
        return known

    def resolved(self, point: str, frame: str) -> Triple:
        """Return the acceleration of a point in N, components in one frame, found along the chain."""
        known = self._resolved.get((point, frame))
        if known is None:
            zero = self.motion.graph.zero
            known = (zero, zero, zero)
            if point != ORIGIN:
                origin = self.motion.points.origin(point)
                home = self.motion.home(origin)
                before = self._space.frames.resolve(self.resolved(origin, home), home, frame)
                added = self._space.resolve(self.edge(point), frame)
                known = self._reduced((before[0] + added[0], before[1] + added[1], before[2] + added[2]))
            self._resolved[point, frame] = known
        return known

    def of(self, parts: Parts) -> Vector:
        """Return d/dt in N of a velocity: rates of its components and the turning of their frames."""
        results = []
        for frame, components in self.motion.value(parts):
            results.append(self._space.vector(frame, self._reduced(self._rates(components))))
            results.append(self._space.vector(frame, cross(self.spin(frame), components)))
        return self._space.sum(results)

    def _rates(self, components: Triple) -> Triple:
        x, y, z = tangent(components, self.flow)
        return (x, y, z)

    def _reduced(self, components: Triple) -> Triple:
        reduce = self._reducer.reduce
        return (reduce(components[0]), reduce(components[1]), reduce(components[2]))
