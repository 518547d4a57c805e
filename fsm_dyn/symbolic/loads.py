"""Generalized active forces of the loads, their potentials and powers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, functions, support
from fsm_dyn.spec.loads import (
    DamperLoad,
    ForceLoad,
    GravityLoad,
    LawLoad,
    LineLoad,
    Load,
    PointPair,
    SpringLoad,
    TorqueLoad,
)
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.frames import NEWTONIAN
from fsm_dyn.symbolic.kane import Kane, partials, spin_partials
from fsm_dyn.symbolic.mechanism_symbols import TIME, MechanismSymbols, require_independent
from fsm_dyn.symbolic.partial_velocities import Motion
from fsm_dyn.symbolic.vectors import Vector


@dataclass
class LoadSums:
    """What all loads together contribute; filled load by load."""

    f: list[Node]
    gravity: Vector = field(default_factory=Vector)
    potential: list[Node] = field(default_factory=list)
    powers: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Stretch:
    """A length or coordinate on which a spring, damper or law acts.

    Attributes
    ----------
    value, rate : Node
        The length or coordinate (m or rad) and its rate.
    partials : list of Node, length n
        How much each speed adds to the rate: a force x along the line has the generalized forces x partials.
    """

    value: Node
    rate: Node
    partials: list[Node]


class Loads:
    """Translates loads one by one.

    Parameters
    ----------
    kane : Kane
        Bodies and partial velocities.
    algebra : NodeAlgebra
        For values that may depend on everything: coordinates, speeds, inputs, memory.
    """

    def __init__(self, kane: Kane, algebra: NodeAlgebra) -> None:
        self.system: MechanismSymbols = kane.system
        self.motion: Motion = kane.motion
        self._bodies = kane.bodies
        self._algebra = algebra
        system = self.system
        memory = [system.graph.symbol(name) for name in system.layout.memory]
        time = system.graph.symbol(TIME)
        self._varying = frozenset((*system.coordinates, *system.inputs, *system.speeds, *memory, time))

    def gather(self, loads: Sequence[Load]) -> LoadSums:
        """Return the generalized forces, potentials and powers of loads; of impulses, the generalized impulses."""
        gathered = LoadSums([self.system.graph.zero] * self.motion.n)
        for load in loads:
            match load:
                case ForceLoad():
                    self._force(load, gathered)
                case TorqueLoad():
                    self._torque(load, gathered)
                case GravityLoad():
                    self._gravity(load, gathered)
                case LawLoad():
                    self._law(load, gathered)
                case SpringLoad():
                    self._spring(load, gathered)
                case DamperLoad():
                    damping = self._algebra.scalar(load.damping)
                    self._damper(load, damping, self._stretch(load), gathered)
        return gathered

    # -- vectors -------------------------------------------------------------------------------------------

    def _force(self, load: ForceLoad, gathered: LoadSums) -> None:
        force = self._algebra.vector(load.value)
        velocity = self.motion.velocity(load.at, load.where)
        self._apply(gathered, [self.system.space.dot(p, force) for p in partials(velocity, self.motion.n)])
        gathered.powers[load.name] = self.system.space.dot(force, self.motion.value(velocity))

    def _torque(self, load: TorqueLoad, gathered: LoadSums) -> None:
        torque = self._algebra.vector(load.value)
        space, n = self.system.space, self.motion.n
        power = self.system.graph.zero
        for name, sign in ((load.on, 1.0), (load.reaction, -1.0)):
            if name is None or name == NEWTONIAN:
                continue
            frame = self._frame(load, name)
            columns = self.motion.spin(frame)
            self._apply(gathered, [sign * space.dot(p, torque) for p in spin_partials(frame, columns, n)])
            power = power + sign * space.dot(torque, self.motion.angular(frame))
        gathered.powers[load.name] = power

    def _frame(self, load: TorqueLoad, name: str) -> str:
        frame = self.system.body_frames.get(name, name)
        if frame not in self.system.frames.names:
            known = [*self.system.body_frames, *self.system.frames.names]
            particle = name in self.system.mechanism.bodies
            raise ModelError(
                f"the torque '{load.name}' acts on {'a particle' if particle else 'nothing known'}",
                load.where,
                found=f"'{name}'",
                allowed=", ".join(known),
                remedy="give the body a frame" if particle else did_you_mean(name, known),
            )
        return frame

    def _gravity(self, load: GravityLoad, gathered: LoadSums) -> None:
        field_ = self._algebra.vector(load.value)
        space = self.system.space
        bodies = [body for body in self._bodies if load.on in (None, body.name)]
        if load.on is None:  # in common: enters with the accelerations of the centers
            gathered.gravity = space.sum((gathered.gravity, field_))
        for body in bodies if load.on is not None else ():
            moved = partials(self.motion.velocity(body.center, load.where), self.motion.n)
            self._apply(gathered, [body.mass * space.dot(p, field_) for p in moved])
        in_n = space.resolve(field_, NEWTONIAN)
        if support(in_n).isdisjoint(self._varying):
            for body in bodies:
                if not body.mass.is_zero:
                    height = space.dot(field_, self.motion.position(body.center))
                    gathered.potential.append(-(body.mass * height))
            return
        power = self.system.graph.zero
        for body in bodies:
            power = power + body.mass * space.dot(field_, self.motion.speed_of(body.center))
        gathered.powers[load.name] = power

    # -- springs, dampers, laws ----------------------------------------------------------------------------

    def _spring(self, load: SpringLoad, gathered: LoadSums) -> None:
        stiffness, free, damping = (self._number(text) for text in (load.stiffness, load.free, load.damping))
        if not isinstance(load.along, Text) and free.is_zero and damping.is_zero:
            self._rubber(load, load.along, stiffness, gathered)
            return
        stretch = self._stretch(load)
        extension = stretch.value - free
        if not stiffness.is_zero:
            self._along(gathered, stretch, -(stiffness * extension))
            if support([stiffness, free]).isdisjoint(self._varying):
                gathered.potential.append(0.5 * (stiffness * (extension * extension)))
            else:
                gathered.powers[load.name] = -(stiffness * extension * stretch.rate)
        self._damper(load, damping, stretch, gathered)

    def _damper(self, load: LineLoad, damping: Node, stretch: Stretch, gathered: LoadSums) -> None:
        if not damping.is_zero:
            resistance = damping * stretch.rate
            self._along(gathered, stretch, -resistance)
            known = gathered.powers.get(load.name, self.system.graph.zero)
            gathered.powers[load.name] = known - resistance * stretch.rate

    def _rubber(self, load: SpringLoad, points: PointPair, stiffness: Node, gathered: LoadSums) -> None:
        """Treat a spring without free length: its force is linear in the vector, no length is needed."""
        arm, moving = self._between(points, load.where)
        space = self.system.space
        self._apply(gathered, [-(stiffness * space.dot(p, arm)) for p in moving])
        if support([stiffness]).isdisjoint(self._varying):
            gathered.potential.append(0.5 * (stiffness * space.square(arm)))
        else:
            power = -(stiffness * space.dot(arm, self._relative_velocity(points)))
            gathered.powers[load.name] = power

    def _law(self, load: LawLoad, gathered: LoadSums) -> None:
        force = self._algebra.scalar(load.value)
        stretch = self._stretch(load)
        self._along(gathered, stretch, force)
        gathered.powers[load.name] = force * stretch.rate

    def _stretch(self, load: LineLoad) -> Stretch:
        n, graph = self.motion.n, self.system.graph
        if isinstance(load.along, Text):
            value = self._algebra.scalar(load.along)
            require_independent(value, frozenset(self.system.speeds), f"the coordinate of '{load.name}'", load.along)
            columns = [column[0] for column in self.motion.columns([value])]
            return Stretch(value, self.motion.total(columns), columns[:n])
        arm, moving = self._between(load.along, load.where)
        space = self.system.space
        length = space.norm(arm)
        if length.is_zero:
            raise ModelError(f"'{load.name}' acts between two points that coincide", load.where)
        # At zero length the line has no direction: dividing by 1 there leaves no force instead of NaN.
        divisor = functions.where(functions.compare(">", length, 0.0), length, graph.one)
        along = [space.dot(p, arm) / divisor for p in moving]
        rate = space.dot(arm, self._relative_velocity(load.along)) / divisor
        return Stretch(length, rate, along)

    def _between(self, points: PointPair, where: Location) -> tuple[Vector, list[Vector]]:
        """Return the vector from the second point to the first and its n partial rates."""
        space, n = self.system.space, self.motion.n
        arm = self.system.points.position(*points, where)
        there, here = (partials(self.motion.velocity(point, where), n) for point in points)
        return arm, [space.subtract(a, b) for a, b in zip(there, here, strict=True)]

    def _relative_velocity(self, points: PointPair) -> Vector:
        first, second = points
        return self.system.space.subtract(self.motion.speed_of(first), self.motion.speed_of(second))

    def _along(self, gathered: LoadSums, stretch: Stretch, force: Node) -> None:
        self._apply(gathered, [force * partial for partial in stretch.partials])

    def _apply(self, gathered: LoadSums, forces: Sequence[Node]) -> None:
        for r, force in enumerate(forces):
            gathered.f[r] = gathered.f[r] + force

    def _number(self, text: Text | None) -> Node:
        return self.system.graph.zero if text is None else self._algebra.scalar(text)
