"""Kane's equations: mass matrix, inertia forces and kinetic energy from partial velocities.

The sums over bodies, ``M = sum m V^T V + Omega^T I Omega`` and the like, can be ordered in several ways that take
very different numbers of operations; which is best depends on the mechanism and on the analyst's choice of speeds.
So the ways below are tried and the cheapest is kept:

- each body by itself, its partial velocities kept in parts, as they come;
- each body by itself, its partial velocities resolved in one frame (long spatial chains);
- by links (:mod:`fsm_dyn.symbolic.links`), the masses beyond each link taken together (long planar chains).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.programs import ExpressionGraph, Node
from fsm_dyn.symbolic.bias_accelerations import Accelerations
from fsm_dyn.symbolic.frames import apply, inner
from fsm_dyn.symbolic.inertia import Inertia, inertias
from fsm_dyn.symbolic.links import Links
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
from fsm_dyn.symbolic.partial_velocities import Columns, Motion, Parts, column
from fsm_dyn.symbolic.trig_reduction import cost
from fsm_dyn.symbolic.vectors import Vector, cross, is_null

MOST_PRODUCTS = 40_000  # scalar products of parts that are still tried


@dataclass
class InertiaShare:
    """A part of the mass matrix (upper triangle) and of the forces."""

    M: list[list[Node]]
    f: list[Node]

    @property
    def nodes(self) -> list[Node]:
        """All entries."""
        return [*self.f, *(node for row in self.M for node in row)]

    def add(self, other: InertiaShare) -> None:
        """Add another part in place."""
        self.M = [
            [a + b for a, b in zip(mine, yours, strict=True)] for mine, yours in zip(self.M, other.M, strict=True)
        ]
        self.f = [a + b for a, b in zip(self.f, other.f, strict=True)]


def empty_share(graph: ExpressionGraph, n: int) -> InertiaShare:
    """Return a part with nothing in it."""
    return InertiaShare([[graph.zero] * n for _ in range(n)], [graph.zero] * n)


class Kane:
    """The bodies' share in the equations of motion.

    Parameters
    ----------
    system : MechanismSymbols
    motion : Motion
        Partial velocities for the generalized speeds; kinematic ones are at zero where values are asked for.
    flow : mapping of Node to Node
        Rates of coordinates, time and inputs: the direction of all time derivatives at u̇ = 0.
    """

    def __init__(self, system: MechanismSymbols, motion: Motion, flow: Mapping[Node, Node]) -> None:
        self.system = system
        self.motion = motion
        self.accelerations = Accelerations(motion, flow)
        self.bodies = inertias(system)

    def equations(self, gravity: Vector) -> InertiaShare:
        """Return mass matrix and forces of inertia and weight (Gillespie 2003, (13)-(15), (32)-(34); Parsa, (35)).

        Parameters
        ----------
        gravity : Vector
            Acceleration of free fall (m/s²).
        """
        heavy = [body for body in self.bodies if not body.mass.is_zero]
        best = min(self.ways(heavy, gravity), key=lambda share: cost(share.nodes))
        best.add(self._sum(self._rotation(body) for body in reversed(self.bodies)))
        for r in range(self.motion.n):
            for s in range(r):
                best.M[r][s] = best.M[s][r]
        return best

    # -- translation: three ways ---------------------------------------------------------------------------

    def ways(self, heavy: Sequence[Inertia], gravity: Vector) -> Iterator[InertiaShare]:
        """Yield the same sums, ``m V_r . V_s`` and ``m V_r . (g - a)``, in ways that can be afforded; at least one."""
        parts = [len(self.motion.velocity(body.center)) for body in heavy]
        few = sum(count**2 for count in parts) * self.motion.n**2 <= MOST_PRODUCTS
        if few:
            yield self._sum(self._in_parts(body, gravity) for body in reversed(heavy))
        if not few or max(parts, default=0) > 1:
            yield self._sum(self._in_frame(body, gravity) for body in reversed(heavy))
        links = Links(self.system.points, self.motion, self.accelerations, heavy)
        if links.is_worthwhile:
            yield InertiaShare(links.mass_matrix(), links.forces(gravity))

    def _sum(self, shares: Iterable[InertiaShare]) -> InertiaShare:
        """Add up, outer bodies first: what chains have in common is then met again."""
        total = empty_share(self.system.graph, self.motion.n)
        for share in shares:
            total.add(share)
        return total

    def _in_parts(self, body: Inertia, gravity: Vector) -> InertiaShare:
        parts = self.motion.velocity(body.center)
        pull = self.system.space.subtract(gravity, self.accelerations.point(body.center))
        return self._products(body.mass, partials(parts, self.motion.n), pull)

    def _in_frame(self, body: Inertia, gravity: Vector) -> InertiaShare:
        frame = body.frame or self.motion.home(body.center)
        columns = self.motion.resolved(body.center, frame)
        partial = [self.system.space.vector(frame, column) for column in columns[: self.motion.n]]
        fall = self.system.space.resolve(gravity, frame)
        x, y, z = self.accelerations.resolved(body.center, frame)
        pull = self.system.space.vector(frame, (fall[0] - x, fall[1] - y, fall[2] - z))
        return self._products(body.mass, partial, pull)

    def _products(self, mass: Node, partial: Sequence[Vector], pull: Vector) -> InertiaShare:
        n, dot = self.motion.n, self.system.space.dot
        share = empty_share(self.system.graph, n)
        for r in range(n):
            share.f[r] = mass * dot(partial[r], pull)
            for s in range(r, n):
                share.M[r][s] = mass * dot(partial[r], partial[s])
        return share

    # -- rotation ------------------------------------------------------------------------------------------

    def _rotation(self, body: Inertia) -> InertiaShare:
        """Return ``Omega_r . I Omega_s`` and ``-Omega_r . (I alpha + omega × I omega)``."""
        n = self.motion.n
        share = empty_share(self.system.graph, n)
        if body.frame is None or body.tensor is None:
            return share
        spins = self.motion.spin(body.frame)[:n]
        momenta = [apply(body.tensor, spin) for spin in spins]
        spin = self.accelerations.spin(body.frame)
        rate = apply(body.tensor, self.accelerations.angular(body.frame))
        gyro = cross(spin, apply(body.tensor, spin))
        reduce = self.system.reducer.reduce
        torque = [reduce(a + b) for a, b in zip(rate, gyro, strict=True)]
        for r in range(n):
            share.f[r] = -inner(spins[r], torque)
            for s in range(r, n):
                share.M[r][s] = inner(spins[r], momenta[s])
        return share

    def kinetic_energy(self) -> Node:
        """Return the kinetic energy (J)."""
        total = self.system.graph.zero
        for body in self.bodies:
            if not body.mass.is_zero:
                total = total + body.mass * self.system.space.square(self.motion.speed_of(body.center))
            if body.frame is not None and body.tensor is not None:
                spin = self.accelerations.spin(body.frame)
                total = total + inner(spin, apply(body.tensor, spin))
        return 0.5 * total


def partials(parts: Parts, n: int) -> list[Vector]:
    """Return the n partial velocities as vectors."""
    return [column(parts, r) for r in range(n)]


def spin_partials(frame: str, columns: Columns, n: int) -> list[Vector]:
    """Return the n partial angular velocities of a frame as vectors."""
    return [Vector() if is_null(columns[r]) else Vector(((frame, columns[r]),)) for r in range(n)]
