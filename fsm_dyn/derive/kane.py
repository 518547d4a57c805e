"""Kane's equations of a mechanism: mass matrix, inertia forces, kinetic energy, generalized active forces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from fsm_dyn.core.errors import Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import NEWTONIAN, ORIGIN, Points, Triple, Vector, apply, cross, inner, is_null
from fsm_dyn.derive.reduction import cost
from fsm_dyn.derive.symbols import Inertia, MechanismSymbols, NodeAlgebra, inertias, require_independent
from fsm_dyn.derive.velocities import Accelerations, Columns, Motion, Parts, column
from fsm_dyn.language.elements import (
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
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import TIME
from fsm_dyn.programs.traversal import support

# -- Sums over the links between points instead of over bodies -----------------------------------------------
#
# A link is the vector from one point to the next. The velocity of a body's centre is the sum of the contributions of
# the links on the way to it. With D_ri the contribution of link i to the partial velocity for speed r, m_i the mass
# beyond link i, and the first moments K_ri = sum of m_j D_rj over all links j beyond i,
#
#     sum over bodies m V_r . V_s  =  sum over links  m_i D_ri . D_si + D_ri . K_si + K_ri . D_si .
#
# In a chain of n links this needs n² scalar products instead of n³ and more. The sums run from the outermost link
# inwards: those for inner speeds then contain those for outer ones, and the graph computes them once.

MOST_PRODUCTS = 40_000  # largest number of scalar products tried

Part = tuple[str, Triple]


class Links:
    """The links with mass.

    ``points``, ``motion``, ``accelerations``: the geometry and its motion; ``bodies``: those with mass.
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


# -- Kane's equations: mass matrix, inertia forces and kinetic energy from partial velocities ----------------
#
# The sums over bodies, ``M = sum m V^T V + Omega^T I Omega`` and the like, can be ordered in several ways with very
# different numbers of operations; the best one depends on the mechanism and on the chosen speeds. So the ways below are
# tried and the cheapest is kept:
#
# - each body separately, its partial velocities kept in parts, as they come;
# - each body separately, its partial velocities resolved in one frame (long spatial chains);
# - by links, the masses beyond each link taken together (long planar chains).


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
    """Return an empty part."""
    return InertiaShare([[graph.zero] * n for _ in range(n)], [graph.zero] * n)


class Kane:
    """The bodies' share in the equations of motion.

    ``motion``: partial velocities for the generalized speeds; kinematic ones are zero in evaluations. ``flow``: rates
    of coordinates, time and inputs: the direction of all time derivatives at u̇ = 0.
    """

    def __init__(self, system: MechanismSymbols, motion: Motion, flow: Mapping[Node, Node]) -> None:
        self.system = system
        self.motion = motion
        self.accelerations = Accelerations(motion, flow)
        self.bodies = inertias(system)

    def equations(self, gravity: Vector) -> InertiaShare:
        """Return mass matrix and forces of inertia and weight (Gillespie 2003, (13)-(15), (32)-(34); Parsa, (35)).

        ``gravity``: acceleration of free fall (m/s²).
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
        """Yield the same sums, ``m V_r . V_s`` and ``m V_r . (g - a)``, in affordable ways; at least one."""
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
        """Add up, outer bodies first: chains then share their common sums."""
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


# -- Generalized active forces of the loads, their potentials and powers -------------------------------------


@dataclass
class LoadSums:
    """Contributions of all loads together; filled load by load."""

    f: list[Node]
    gravity: Vector = field(default_factory=Vector)
    potential: list[Node] = field(default_factory=list)
    powers: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Stretch:
    """A length or coordinate of a spring, damper or law."""

    # value, rate: the length or coordinate (m or rad) and its rate
    value: Node
    rate: Node
    # length n: contribution of each speed to the rate: a force x along the line has the generalized forces x partials
    partials: list[Node]


class Loads:
    """Translates loads one by one.

    ``kane``: bodies and partial velocities; ``algebra``: for values of all quantities: coordinates, speeds, inputs,
    memory.
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
