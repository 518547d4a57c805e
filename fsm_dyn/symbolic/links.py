"""Sums over the links between points instead of over bodies.

A link is the vector from one point to the next.  A body's centre moves with the sum of what the links on the way to
it add.  With D_ri the partial velocity that link i adds for speed r, m_i the mass beyond link i, and the first
moments K_ri = sum of m_j D_rj over all links j beyond i,

    sum over bodies m V_r . V_s  =  sum over links  m_i D_ri . D_si + D_ri . K_si + K_ri . D_si .

In a chain of n links this needs n² scalar products instead of n³ and more.  The sums run from the outermost link
inwards: those for inner speeds then contain those for outer ones, and the graph computes them once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsm_dyn.programs import Node
from fsm_dyn.symbolic.bias_accelerations import Accelerations
from fsm_dyn.symbolic.frames import Triple
from fsm_dyn.symbolic.inertia import Inertia
from fsm_dyn.symbolic.partial_velocities import Motion, column
from fsm_dyn.symbolic.points import ORIGIN, Points
from fsm_dyn.symbolic.vectors import Vector

MOST_PRODUCTS = 40_000  # scalar products that are still tried

Part = tuple[str, Triple]


class Links:
    """The links that carry mass.

    Parameters
    ----------
    points, motion, accelerations
        The geometry and how it moves.
    bodies : sequence of Inertia
        Those with mass.
    """

    def __init__(self, points: Points, motion: Motion, accelerations: Accelerations, bodies: Sequence[Inertia]) -> None:
        self._motion = motion
        self._space = motion.space
        n = motion.n
        chains = [points.chain(body.center) for body in bodies]
        names = dict.fromkeys(point for chain in chains for point in chain)
        # outermost first; every point comes before the one it is given from
        self._names = sorted(names, key=lambda name: -len(points.chain(name)))
        self._children: dict[str, list[str]] = {name: [] for name in self._names}
        for name in self._names:
            if name != ORIGIN:
                self._children[points.origin(name)].append(name)
        self._shared = any(len(chain) > 2 for chain in chains)
        self._mass = self._masses(bodies)
        links = [name for name in self._names if name != ORIGIN]
        self._partials = {name: [column(motion.drift(name), r) for r in range(n)] for name in links}
        self._partials[ORIGIN] = [Vector()] * n
        self._edges = {name: accelerations.edge(name) for name in links}
        self._edges[ORIGIN] = Vector()
        self._moments = [self._beyond({name: self._partials[name][r] for name in self._names}) for r in range(n)]
        self._order = {frame: -i for i, frame in enumerate(self._space.frames.names)}
        self._products: dict[tuple[Part, Part], Node] = {}

    @property
    def is_worthwhile(self) -> bool:
        """Whether bodies share links at all, and not too many products are needed."""
        inner = {part for vectors in self._partials.values() for vector in vectors for part in vector}
        outer = {part for moments in self._moments for vector in moments.values() for part in vector}
        return self._shared and len(inner) * len(outer) <= MOST_PRODUCTS

    def _masses(self, bodies: Sequence[Inertia]) -> dict[str, Node]:
        masses: dict[str, Node] = {}
        for name in self._names:
            total = self._motion.graph.zero
            for body in bodies:
                if body.center == name:
                    total = total + body.mass
            for child in self._children[name]:
                total = total + masses[child]
            masses[name] = total
        return masses

    def _beyond(self, vectors: Mapping[str, Vector]) -> dict[str, Vector]:
        """Return for each link the sum of mass times vector over all links beyond it."""
        sums: dict[str, Vector] = {}
        for name in self._names:
            parts = []
            for child in self._children[name]:
                parts += [sums[child], self._space.scale(self._mass[child], vectors[child])]
            sums[name] = self._space.sum(parts)
        return sums

    # -- products ------------------------------------------------------------------------------------------

    def _dot(self, a: Part, b: Part) -> Node:
        known = self._products.get((a, b))
        if known is None:
            known = self._space.dot(Vector((a,)), Vector((b,)))
            self._products[a, b] = self._products[b, a] = known
        return known

    def _sum_of_products(self, left: Mapping[str, Vector], right: Mapping[str, Vector]) -> Node:
        """Return the sum of ``left . right`` over all links, gathered by the frames of the right parts."""
        by_frame: dict[str, Node] = {}
        for name in self._names:
            for b in right[name]:
                for a in left[name]:
                    by_frame[b[0]] = by_frame.get(b[0], self._motion.graph.zero) + self._dot(a, b)
        total = self._motion.graph.zero
        for frame in sorted(by_frame, key=lambda frame: self._order[frame]):
            total = total + by_frame[frame]
        return total

    def _column(self, r: int) -> dict[str, Vector]:
        return {name: partials[r] for name, partials in self._partials.items()}

    def _own(self, a: Mapping[str, Vector], b: Mapping[str, Vector]) -> Node:
        """Return the sum of ``m a . b`` over all links."""
        total = self._motion.graph.zero
        for name in self._names:
            for left in a[name]:
                for right in b[name]:
                    total = total + self._mass[name] * self._dot(left, right)
        return total

    # -- results -------------------------------------------------------------------------------------------

    def mass_matrix(self) -> list[list[Node]]:
        """Return the translational part of M, upper triangle."""
        n, zero = self._motion.n, self._motion.graph.zero
        M = [[zero] * n for _ in range(n)]
        columns = [self._column(r) for r in range(n)]
        for r in range(n):
            for s in range(r, n):
                inward = self._sum_of_products(columns[r], self._moments[s])
                outward = self._sum_of_products(columns[s], self._moments[r])
                M[r][s] = self._own(columns[r], columns[s]) + inward + outward
        return M

    def forces(self, gravity: Vector) -> list[Node]:
        """Return the weights less the velocity-dependent inertia forces of translation."""
        beyond = self._beyond(self._edges)
        f = []
        for r in range(self._motion.n):
            column = self._column(r)
            weight = self._space.dot(gravity, self._moments[r][ORIGIN])
            inertia = self._own(column, self._edges)
            inertia = inertia + self._sum_of_products(self._edges, self._moments[r])
            inertia = inertia + self._sum_of_products(beyond, column)
            f.append(weight - inertia)
        return f
