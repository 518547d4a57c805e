"""Velocities linear in chosen speeds, and accelerations at u̇ = 0."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import (
    NEWTONIAN,
    ORIGIN,
    Points,
    Space,
    Triple,
    Turn,
    Vector,
    apply,
    cross,
    is_null,
    transpose,
)
from fsm_dyn.derive.reduction import Reducer, cost
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.traversal import support, tangent

# -- Velocities linear in chosen speeds ----------------------------------------------------------------------
#
# Angular velocities of frames and velocities of points, column by column. The same code runs twice: with the rates of
# the coordinates as speeds, to evaluate the definitions of the generalized speeds, and with the generalized speeds
# themselves, to get partial velocities.

Columns = tuple[Triple, ...]
Parts = dict[str, Columns]


@dataclass(frozen=True)
class Rates:
    """Rates as linear functions of speeds: ``rate_j = sum_r columns[j][r] speeds[r] + rest[j]``."""

    speeds: tuple[Node, ...]  # symbols, n of them; the last ones may be kinematic (held at zero)
    columns: Mapping[Node, tuple[Node, ...]]  # for each coordinate (a symbol) the n coefficients of its rate
    # for each coordinate, and for time and inputs, the part of the rate independent of speeds
    rest: Mapping[Node, Node]
    # mapping of str to (columns, rest): for each set of Euler parameters (by its first symbol) the angular velocity of
    # its frame against the parent, components in the frame: three rows of n coefficients, and three remainders
    spins: Mapping[Node, tuple[tuple[tuple[Node, ...], ...], tuple[Node, ...]]]

    @property
    def directions(self) -> list[dict[Node, Node]]:
        """Seeds for tangent sweeps, one per speed and one for the rest."""
        n = len(self.speeds)
        seeds: list[dict[Node, Node]] = [
            {q: row[r] for q, row in self.columns.items() if not row[r].is_zero} for r in range(n)
        ]
        seeds.append({q: node for q, node in self.rest.items() if not node.is_zero})
        return seeds


class Motion:
    """Velocities of a mechanism's frames and points.

    A velocity is kept as n + 1 columns: n partial velocities (Gillespie 2003, (13)-(15)) and the remainder. ``space``,
    ``points``: the geometry; ``rates``: rates of the coordinates; ``carried``: for frames of bodies, a point fixed in
    them (the body's centre).
    """

    def __init__(self, space: Space, points: Points, rates: Rates, carried: Mapping[str, str]) -> None:
        self.space = space
        self.points = points
        self.rates = rates
        self.n = len(rates.speeds)
        self.values = rates.speeds
        self._carried = carried
        self._directions = rates.directions
        self._spin: dict[str, Columns] = {NEWTONIAN: self._still()}
        self._velocities: dict[str, Parts] = {ORIGIN: {}}
        self._drifts: dict[str, Parts] = {}
        self._resolved: dict[tuple[str, str], Columns] = {}
        self._seeded = frozenset(symbol for seeds in self._directions for symbol in seeds)

    @property
    def graph(self) -> ExpressionGraph:
        """The graph of all nodes."""
        return self.space.graph

    @property
    def speeds(self) -> tuple[Node, ...]:
        """Symbols of the speeds, kinematic ones included: one per column."""
        return self.rates.speeds

    def position(self, point: str) -> Vector:
        """Return the vector from O to a point."""
        return self.points.position(point)

    def at(self, values: Sequence[Node]) -> Motion:
        """Return the same motion with other values of the speeds than their symbols."""
        other = copy.copy(self)  # results for columns are shared
        other.values = tuple(values)
        return other

    def _still(self) -> Columns:
        zero = self.graph.zero
        return ((zero, zero, zero),) * (self.n + 1)

    # -- scalars -------------------------------------------------------------------------------------------

    def columns(self, nodes: Sequence[Node]) -> list[list[Node]]:
        """Return the n + 1 columns of the rates of `nodes` (functions of coordinates, time and inputs)."""
        if support(nodes).isdisjoint(self._seeded):
            return [[self.graph.zero] * len(nodes) for _ in range(self.n + 1)]
        return [tangent(nodes, seeds) for seeds in self._directions]

    def rate(self, node: Node) -> Node:
        """Return d/dt of a function of coordinates, time and inputs."""
        return self.total([column[0] for column in self.columns([node])])

    def total(self, columns: Sequence[Node]) -> Node:
        """Return ``sum columns[r] speeds[r] + columns[n]``."""
        result = self.graph.zero
        for speed, coefficient in zip(self.values, columns, strict=False):
            result = result + coefficient * speed
        return self.space.reducer.reduce(result) + columns[-1]

    # -- frames --------------------------------------------------------------------------------------------

    def spin(self, frame: str) -> Columns:
        """Return the columns of the angular velocity of `frame` in N, components in `frame`."""
        known = self._spin.get(frame)
        if known is None:
            columns = self.spin(self.space.frames.parents[frame])
            for turn in self.space.frames.turns(frame):
                columns = self._turned(turn, columns)
            known = self._spin[frame] = columns
        return known

    def _turned(self, turn: Turn, columns: Columns) -> Columns:
        """Return the angular velocity after one more turn, components after the turn."""
        matrix = transpose(self.space.frames.elementary(turn))
        if all(is_null(column) for column in columns):
            turned = list(columns)
        else:
            turned = [column if is_null(column) else apply(matrix, column) for column in columns]
        if turn.euler is not None:
            rows, rest = self.rates.spins[turn.euler[0]]
            added = [(rows[0][r], rows[1][r], rows[2][r]) for r in range(self.n)] + [(rest[0], rest[1], rest[2])]
            turned = [_plus(column, extra) for column, extra in zip(turned, added, strict=True)]
        elif turn.angle is not None:
            for r, (rate,) in enumerate(self.columns([turn.angle])):
                turned[r] = plus_along(turned[r], turn.axis, rate)
        return tuple(self._reduced(column) for column in turned)

    def angular(self, frame: str) -> Vector:
        """Return the angular velocity of a frame in N."""
        return self.value({frame: self.spin(frame)})

    # -- points --------------------------------------------------------------------------------------------

    def velocity(self, point: str, where: Location = NOWHERE) -> Parts:
        """Return the columns of the velocity of `point` in N, by parts per frame.

        The velocity of a point is that of its reference point plus the rate of its own vector: the components' rates
        and the turning of their frames.
        """
        known = self._velocities.get(point)
        if known is None:
            for name in self.points.chain(point, where)[1:]:
                if name not in self._velocities:
                    before = self._velocities[self.points.origin(name)]
                    self._velocities[name] = join(before, self.drift(name))
            known = self._velocities[point]
        return known

    def drift(self, point: str) -> Parts:
        """Return the columns of the velocity of `point` less that of its reference point."""
        known = self._drifts.get(point)
        if known is None:
            known = {}
            for frame, components in self.points.offset(point):
                rates = [(c[0], c[1], c[2]) for c in self.columns(components)]
                known = join(known, self._simplest(frame, tuple(rates)))
                known = join(known, self._carry(frame, components))
            self._drifts[point] = known
        return known

    def resolved(self, point: str, frame: str) -> Columns:
        """Return the columns of the velocity of `point` in N, components in one frame, found along the chain."""
        known = self._resolved.get((point, frame))
        if known is None:
            known = self._still()
            if point != ORIGIN:
                origin = self.points.origin(point)
                home = self.home(origin)
                known = self._turn_into(frame, home, self.resolved(origin, home))
                for part, columns in self.drift(point).items():
                    added = self._turn_into(frame, part, columns)
                    known = tuple(_plus(a, b) for a, b in zip(known, added, strict=True))
            known = self._resolved[point, frame] = tuple(self._reduced(column) for column in known)
        return known

    def home(self, point: str) -> str:
        """Return the natural frame for a point's velocity: the frame of the vector to it."""
        if point == ORIGIN:
            return NEWTONIAN
        frames = [frame for frame, _ in self.points.offset(point)]
        return frames[-1] if frames else self.home(self.points.origin(point))

    def _turn_into(self, frame: str, source: str, columns: Columns) -> Columns:
        resolve = self.space.frames.resolve
        return tuple(column if is_null(column) else resolve(column, source, frame) for column in columns)

    def _carry(self, frame: str, components: Triple) -> Parts:
        """Return the columns of omega × (components in `frame`)."""
        columns = tuple(column if is_null(column) else cross(column, components) for column in self.spin(frame))
        return {} if all(is_null(column) for column in columns) else {frame: columns}

    def _simplest(self, frame: str, columns: Columns) -> Parts:
        """Return the columns resolved in the frame with the simplest components."""
        columns = tuple(self._reduced(column) for column in columns)
        if all(is_null(column) for column in columns):
            return {}
        best, least = (frame, columns), self._price(columns)
        used = {node for column in columns for node in column if node.operands}
        if used and least:
            for other in self.space.frames.names:
                if other != frame and self._shares(frame, other, columns):
                    turned = tuple(
                        column if is_null(column) else self._reduced(self.space.frames.resolve(column, frame, other))
                        for column in columns
                    )
                    price = self._price(turned)
                    if price < least:
                        best, least = (other, turned), price
        return {best[0]: best[1]}

    def _price(self, columns: Columns) -> int:
        return cost(node for column in columns for node in column)

    def _shares(self, frame: str, other: str, columns: Columns) -> bool:
        """Whether turning into `other` could cancel terms: its rotation and the columns have common angles."""
        present = support(node for column in columns for node in column)
        rotation = self.space.frames.rotation(frame, other)
        return not present.isdisjoint(support(node for row in rotation for node in row))

    def _reduced(self, column: Triple) -> Triple:
        reduce = self.space.reducer.reduce
        return (reduce(column[0]), reduce(column[1]), reduce(column[2]))

    def speed_of(self, point: str, where: Location = NOWHERE) -> Vector:
        """Return the velocity of a point in N."""
        return self.value(self.velocity(point, where))

    # -- points of a body at the place of another point ----------------------------------------------------

    def coincident(self, point: str, frame: str, where: Location = NOWHERE) -> Parts:
        """Return the columns of the velocity in N of the point fixed in `frame` at the present place of `point`.

        Raises ModelError: no point is known to be fixed in the frame.
        """
        if frame == NEWTONIAN:
            return {}
        anchor = self._carried.get(frame) or self.points.anchor(frame)
        if anchor is None:
            if all(is_null(column) for column in self.spin(frame)):
                return {}
            raise ModelError(
                f"frame '{frame}' has neither a body nor a point, so nothing moves with it",
                where,
                remedy=f"give a point with its axes, as 'P: {{from: O, at: 0.1*{frame}.x}}'",
            )
        to, back = list(self.points.chain(point, where)), list(self.points.chain(anchor, where))
        common = ORIGIN
        while to and back and to[0] == back[0]:
            common = to[0]
            del to[0], back[0]
        # points reached by vectors fixed in the frame are fixed in it as well
        fixed = anchor
        if all(self._is_fixed(name, frame) for name in back):
            fixed = common
            while to and self._is_fixed(to[0], frame):
                fixed = to.pop(0)
        arm = self.points.position(point, fixed, where)
        parts = self.velocity(fixed, where)
        for other, components in arm:
            if other == frame:
                parts = join(parts, self._carry(frame, components))
            else:
                parts = join(parts, self._carry_across(frame, other, components))
        return parts

    def _is_fixed(self, point: str, frame: str) -> bool:
        offset = self.points.offset(point)
        return all(part == frame and support(triple).isdisjoint(self._seeded) for part, triple in offset)

    def _carry_across(self, frame: str, other: str, components: Triple) -> Parts:
        """Return the columns of omega(frame) × (components in another frame)."""
        spins = self.spin(frame)
        here = self.space.frames.resolve(components, other, frame)
        there = tuple(self._reduced(self.space.frames.resolve(column, frame, other)) for column in spins)
        options: list[Parts] = [
            {frame: tuple(self._reduced(cross(column, here)) for column in spins)},
            {other: tuple(self._reduced(cross(column, components)) for column in there)},
        ]
        return min(options, key=lambda parts: self._price(next(iter(parts.values()))))

    def coincident_speed(self, point: str, frame: str, where: Location = NOWHERE) -> Vector:
        """Return :meth:`coincident` as one vector."""
        return self.value(self.coincident(point, frame, where))

    def value(self, parts: Parts) -> Vector:
        """Return a velocity as one vector: its columns times the speeds."""
        vectors = []
        for frame, columns in parts.items():
            x, y, z = (self.total([column[i] for column in columns]) for i in range(3))
            vectors.append(self.space.vector(frame, (x, y, z)))
        return self.space.sum(vectors)


def column(parts: Parts, r: int) -> Vector:
    """Return one column of a velocity as a vector."""
    return Vector(tuple((frame, columns[r]) for frame, columns in parts.items() if not is_null(columns[r])))


def join(a: Parts, b: Parts) -> Parts:
    """Return the sum of two velocities."""
    result = dict(a)
    for frame, columns in b.items():
        if frame in result:
            columns = tuple(_plus(left, right) for left, right in zip(result[frame], columns, strict=True))
        result[frame] = columns
    return {frame: columns for frame, columns in result.items() if not all(is_null(c) for c in columns)}


def _plus(a: Triple, b: Triple) -> Triple:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def plus_along(a: Triple, axis: int, amount: Node) -> Triple:
    """Return a vector's components with a term added along one axis."""
    components: list[Node] = list(a)
    components[axis] = components[axis] + amount
    x, y, z = components
    return (x, y, z)


# -- Bias accelerations: accelerations at u̇ = 0 -------------------------------------------------------------


class Accelerations:
    """Velocity-dependent accelerations of frames and points.

    ``motion``: with kinematic speeds at zero; ``flow``: rates of coordinates, time and inputs.
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

        By the rates of the components of its angular velocity, or from the parent's by the turns between: the way with
        fewer operations.
        """
        known = self._angular.get(frame)
        if known is None:
            direct = self._reduced(self._rates(self.spin(frame)))
            stepwise = None if is_null(direct) else self._stepwise(frame)
            cheaper = stepwise is not None and cost(stepwise) < cost(direct)
            known = self._angular[frame] = stepwise if stepwise is not None and cheaper else direct
        return known

    def _stepwise(self, frame: str) -> Triple | None:
        """Return the angular acceleration found from the parent's; None if a turn is not by an angle."""
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
        """Return the acceleration of a point less that of its reference point."""
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
