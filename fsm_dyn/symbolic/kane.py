"""Kane's equations: mass matrix, inertia forces and kinetic energy from partial velocities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.programs import Node, tangent
from fsm_dyn.spec.model import Body
from fsm_dyn.symbolic.frames import Matrix, Triple, apply, inner
from fsm_dyn.symbolic.motion import Columns, Motion, Parts, column
from fsm_dyn.symbolic.system import System
from fsm_dyn.symbolic.vectors import Vector, cross, is_null


@dataclass(frozen=True)
class Inertia:
    """A body's mass (kg) and its inertia about the centre (kg m²), resolved in its frame."""

    name: str
    center: str
    mass: Node
    frame: str | None = None
    tensor: Matrix | None = None


class Kane:
    """The bodies' share in the equations of motion.

    Parameters
    ----------
    system : System
    motion : Motion
        Partial velocities for the generalized speeds, kinematic ones at zero where values are asked for.
    flow : mapping of Node to Node
        Rates of coordinates, time and inputs: the direction of all time derivatives at u̇ = 0.
    """

    def __init__(self, system: System, motion: Motion, flow: Mapping[Node, Node]) -> None:
        self.system = system
        self.motion = motion
        self.flow = flow
        self.bodies = [_inertia(system, name, body) for name, body in system.mechanism.bodies.items()]

    def mass_matrix(self) -> list[list[Node]]:
        """Return ``M = sum m V^T V + Omega^T I Omega`` (Gillespie 2003, (34); Parsa, (35))."""
        n, zero = self.motion.n, self.system.graph.zero
        M = [[zero] * n for _ in range(n)]
        for body in self.bodies:
            if not body.mass.is_zero:
                partial = partials(self.motion.velocity(body.center), n)
                for r in range(n):
                    for s in range(r, n):
                        M[r][s] = M[r][s] + body.mass * self.system.space.dot(partial[r], partial[s])
            if body.frame is not None and body.tensor is not None:
                spins = self.motion.spin(body.frame)
                momenta = [apply(body.tensor, spin) for spin in spins[:n]]
                for r in range(n):
                    for s in range(r, n):
                        M[r][s] = M[r][s] + inner(spins[r], momenta[s])
        reduce = self.system.reducer.reduce
        for r in range(n):
            for s in range(r, n):
                M[r][s] = M[s][r] = reduce(M[r][s])
        return M

    def forces(self, gravity: Vector) -> list[Node]:
        """Return the bodies' part of f: weight less velocity-dependent inertia forces (13)-(15), (32)-(33)."""
        n, space = self.motion.n, self.system.space
        f = [self.system.graph.zero] * n
        for body in self.bodies:
            if not body.mass.is_zero:
                parts = self.motion.velocity(body.center)
                pull = space.subtract(gravity, self.acceleration(parts))
                for r, partial in enumerate(partials(parts, n)):
                    f[r] = f[r] + body.mass * space.dot(partial, pull)
            if body.frame is not None and body.tensor is not None:
                torque = self._inertia_torque(body.frame, body.tensor)
                for r, spin in enumerate(self.motion.spin(body.frame)[:n]):
                    f[r] = f[r] - inner(spin, torque)
        return f

    def acceleration(self, parts: Parts) -> Vector:
        """Return d/dt in N of a velocity at u̇ = 0: rates of its components and the turning of their frames."""
        space, reduce = self.system.space, self.system.reducer.reduce
        results = []
        for frame, components in self.motion.value(parts):
            x, y, z = tangent(components, self.flow)
            results.append(space.vector(frame, (reduce(x), reduce(y), reduce(z))))
            spin = self._spin(frame)
            results.append(space.vector(frame, cross(spin, components)))
        return space.sum(results)

    def _spin(self, frame: str) -> Triple:
        """Return the components of a frame's angular velocity in the frame itself."""
        return self.system.space.resolve(self.motion.angular(frame), frame)

    def _inertia_torque(self, frame: str, tensor: Matrix) -> Triple:
        """Return ``I alpha + omega × I omega`` at u̇ = 0, components in the frame."""
        spin = self._spin(frame)
        x, y, z = tangent(spin, self.flow)
        rate = apply(tensor, (x, y, z))
        gyro = cross(spin, apply(tensor, spin))
        reduce = self.system.reducer.reduce
        return (reduce(rate[0] + gyro[0]), reduce(rate[1] + gyro[1]), reduce(rate[2] + gyro[2]))

    def kinetic_energy(self) -> Node:
        """Return the kinetic energy (J)."""
        total = self.system.graph.zero
        for body in self.bodies:
            if not body.mass.is_zero:
                total = total + body.mass * self.system.space.square(self.motion.speed_of(body.center))
            if body.frame is not None and body.tensor is not None:
                spin = self._spin(body.frame)
                total = total + inner(spin, apply(body.tensor, spin))
        return 0.5 * total


def partials(parts: Parts, n: int) -> list[Vector]:
    """Return the n partial velocities as vectors."""
    return [column(parts, r) for r in range(n)]


def spin_partials(frame: str, columns: Columns, n: int) -> list[Vector]:
    """Return the n partial angular velocities of a frame as vectors."""
    return [Vector() if is_null(columns[r]) else Vector(((frame, columns[r]),)) for r in range(n)]


def _inertia(system: System, name: str, body: Body) -> Inertia:
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


def squares(values: Sequence[Node]) -> Node:
    """Return the sum of squares."""
    return sum((value * value for value in values[1:]), values[0] * values[0])
