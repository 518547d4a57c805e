"""Sums over the links between points instead of over bodies.

A link is the vector from one point to the next.  The velocity of a body's centre is the sum of what the links on
the way to it add, so that with D_i the partial velocities that link i adds and m_ij the mass beyond both i and j,

    sum over bodies m V_r . V_s  =  sum over links i, j  m_ij D_ri . D_sj .

In a chain of n links this needs n² scalar products instead of n³ and more; summed from the outermost link inwards,
the sums for inner speeds contain those for outer ones, and the graph computes them once.
"""

from __future__ import annotations

from collections.abc import Sequence

from fsm_dyn.programs import Node
from fsm_dyn.symbolic.accelerations import Accelerations
from fsm_dyn.symbolic.inertia import Inertia
from fsm_dyn.symbolic.motion import Motion, column
from fsm_dyn.symbolic.points import ORIGIN, Points
from fsm_dyn.symbolic.vectors import Vector

MOST_PRODUCTS = 40_000


class Links:
    """The links that carry mass, outermost first."""

    def __init__(self, points: Points, motion: Motion, accelerations: Accelerations, bodies: Sequence[Inertia]) -> None:
        self._motion = motion
        self._accelerations = accelerations
        chains = {body.name: points.chain(body.center) for body in bodies}
        names = dict.fromkeys(point for chain in chains.values() for point in chain if point != ORIGIN)
        self._names = sorted(names, key=lambda name: -len(points.chain(name)))
        self._chains = {name: set(points.chain(name)) for name in names}
        self._beyond: dict[str, Node] = {}
        for name in self._names:
            total = motion.graph.zero
            for body in bodies:
                if body.center == name:
                    total = total + body.mass
            for child in self._names:
                if points.origin(child) == name:
                    total = total + self._beyond[child]
            self._beyond[name] = total
        self._links = [[column(motion.drift(name), r) for r in range(motion.n)] for name in self._names]
        self._products: dict[tuple[Vector, Vector], Node] = {}

    @property
    def is_worthwhile(self) -> bool:
        """Whether bodies share links at all, and not too many products are needed."""
        shared = sum(len(self._chains[name]) - 1 for name in self._names) > len(self._names)
        different = len({vector for link in self._links for vector in link})
        return shared and different**2 <= MOST_PRODUCTS

    def _mass(self, i: int, j: int) -> Node | None:
        """Return the mass beyond both links."""
        a, b = self._names[i], self._names[j]
        if a in self._chains[b]:
            return self._beyond[b]
        return self._beyond[a] if b in self._chains[a] else None

    def _dot(self, a: Vector, b: Vector) -> Node:
        known = self._products.get((a, b))
        if known is None:
            known = self._products[a, b] = self._products[b, a] = self._motion.space.dot(a, b)
        return known

    def mass_matrix(self) -> list[list[Node]]:
        """Return the translational part of M, upper triangle."""
        n, zero = self._motion.n, self._motion.graph.zero
        M = [[zero] * n for _ in range(n)]
        for r in range(n):
            for s in range(r, n):
                for j, right in enumerate(self._links):
                    if not right[s].is_zero:
                        M[r][s] = M[r][s] + self._row(j, r, right[s])
        return M

    def _row(self, j: int, r: int, vector: Vector) -> Node:
        total = self._motion.graph.zero
        for i, left in enumerate(self._links):
            mass = self._mass(i, j)
            if mass is not None and not left[r].is_zero:
                total = total + mass * self._dot(left[r], vector)
        return total

    def forces(self, gravity: Vector) -> list[Node]:
        """Return the weights less the velocity-dependent inertia forces of translation."""
        space = self._motion.space
        f = [self._motion.graph.zero] * self._motion.n
        for i, left in enumerate(self._links):
            pull = [space.scale(self._beyond[self._names[i]], gravity)]
            for j, name in enumerate(self._names):
                mass = self._mass(i, j)
                if mass is not None:
                    pull.append(space.negate(space.scale(mass, self._accelerations.edge(name))))
            total = space.sum(pull)
            for r, vector in enumerate(left):
                f[r] = f[r] + self._dot(vector, total)
        return f
