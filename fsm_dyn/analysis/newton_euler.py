"""Newton's and Euler's equations, momenta and Lagrange's equations of the bodies, for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import ForceLoad, GravityLoad, LawLoad, LineLoad, Load, TorqueLoad
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Initial, Mechanism
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import evaluate, gradient, substitute, support, tangent

if TYPE_CHECKING:
    from fsm_dyn.derive.kinematics import Vector
    from fsm_dyn.derive.symbols import MechanismSymbols, NodeAlgebra
    from fsm_dyn.derive.terms import Terms


# -- Expression nodes evaluated at one state after the other, by the names of their arguments ----------------


class Batch:
    """Nodes with the names of their arguments."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes, self.names = list(nodes), [symbol.name for symbol in support(nodes)]

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """Return their values; missing arguments are 0."""
        known = {name: values.get(name, 0.0) for name in self.names}
        return np.array([float(value) for value in evaluate(self.nodes, known)])


# -- Newton's and Euler's equations of every body ------------------------------------------------------------
#
# A third derivation, after Kane's and Lagrange's, with unknown forces and moments on every body. It uses the centre and
# the attitude of each body, and the loads as vectors. Of body i with centre r, attitude R, mass m and inertia J,
#
#     m r̈ = φ,   J_N ω̇ + ω × J_N ω = μ,   J_N = R J Rᵀ,   ω× = Ṙ Rᵀ,
#
# with φ and μ the sum of all forces and moments on it, loads and reactions alike. Joints do no work: over all bodies
# the power of φ and μ in any motion permitted by the joints is the power of the loads and contact forces, ``Σ φ·∂ṙ/∂u +
# μ·∂ω/∂u = Q + G λ``. Nothing of partial velocities, M or f is used: positions and attitudes are differentiated twice,
# and Q is the virtual power of the loads by derivatives of the positions of their points.

NEWTONIAN = "N"


@dataclass(frozen=True)
class BodyEquations:
    """The bodies' equations at a state, wrenches eliminated: ``mass u̇ = force + G λ``."""

    mass: Floats  # shape (n_u, n_u)
    force: Floats  # shape (n_u,)
    # inertia, partial, gyroscopic: shapes (6 n_bodies, 6 n_bodies), (6 n_bodies, n_u), (6 n_bodies,): the wrenches on
    # the bodies are ``inertia (partial u̇) + gyroscopic``: forces before moments, body by body, N
    inertia: Floats
    partial: Floats
    gyroscopic: Floats

    def wrenches(self, u_dot: Floats) -> Floats:
        """Return the force (N) and moment about its centre (N m) on each body, shape (n_bodies, 2, 3)."""
        found: Floats = self.inertia @ (self.partial @ u_dot) + self.gyroscopic
        return found.reshape(-1, 2, 3)


class NewtonEuler:
    """The bodies and loads of a mechanism, prepared as nodes once and evaluated at each state."""

    def __init__(self, mechanism: Mechanism) -> None:
        # SymPy is imported for derivations only
        from fsm_dyn.derive.speeds import solve_speeds
        from fsm_dyn.derive.symbols import build_system, inertias

        self._system: MechanismSymbols = build_system(mechanism)
        system, graph = self._system, self._system.graph
        names = {name: graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}
        speeds = solve_speeds(system)
        kinematic = frozenset(speeds.kinematic)
        motion = system.motion(speeds.rates)  # for loads with velocities
        held = motion.at([graph.zero if symbol in kinematic else symbol for symbol in motion.speeds])
        self._algebra: NodeAlgebra = system.algebra(held, names)
        bodies = inertias(system)
        self.count = len(bodies)
        zero = ((graph.zero,) * 3,) * 3
        places = [node for body in bodies for node in self._place(body.center, body.frame or NEWTONIAN)]
        constants = [node for body in bodies for node in (body.mass, *(x for row in body.tensor or zero for x in row))]
        self.n_q = len(system.layout.q)
        q = [graph.symbol(name) for name in system.layout.q]
        self._rates = [f"{name}.first" for name in system.layout.q]
        along = {symbol: graph.symbol(rate) for symbol, rate in zip(q, self._rates, strict=True)}
        along[graph.symbol("t")] = graph.one
        first = tangent(places, along)
        slopes = [node for row in gradient(places, q) for node in row]
        self._bodies = Batch([*constants, *places, *first, *tangent(first, along), *slopes])
        self._loads = [pair for load in mechanism.loads for pair in self._parts(load)]
        moved = [node for _, place in self._loads for node in place]
        self._forces = Batch([node for force, _ in self._loads for node in force])
        self._moved = Batch([*moved, *(node for row in gradient(moved, q) for node in row)])

    def equations(self, values: Mapping[str, float], W: Floats, q_dot: Floats, onward: Floats) -> BodyEquations:
        """Return the equations at a state.

        ``values``: coordinates, speeds, parameters and t by name; 0 by default. ``W``, shape (n_q, n_u). ``q_dot``,
        ``onward``, shape (n_q,): rates of the coordinates, and their second rates at u̇ = 0.
        """
        known = {**values, **dict(zip(self._rates, q_dot, strict=True))}
        found, n = self._bodies(known), self.count
        constants, rest = found[: 10 * n].reshape(n, 10), found[10 * n :]
        place, first, second = (rest[12 * n * k : 12 * n * (k + 1)].reshape(n, 12) for k in range(3))
        slopes = rest[36 * n :].reshape(n, 12, self.n_q)
        second = second + slopes @ onward
        by_speed = slopes @ W
        inertia = np.zeros((6 * n, 6 * n))
        partial, drift, gyroscopic = np.zeros((6 * n, W.shape[1])), np.zeros(6 * n), np.zeros(6 * n)
        for i in range(n):
            at, R = 6 * i, place[i, 3:].reshape(3, 3)
            tensor = R @ constants[i, 1:].reshape(3, 3) @ R.T
            inertia[at : at + 3, at : at + 3] = constants[i, 0] * np.eye(3)
            inertia[at + 3 : at + 6, at + 3 : at + 6] = tensor
            partial[at : at + 3] = by_speed[i, :3]
            for s in range(W.shape[1]):
                partial[at + 3 : at + 6, s] = _axial(by_speed[i, 3:, s].reshape(3, 3) @ R.T)
            spin = _axial(first[i, 3:].reshape(3, 3) @ R.T)
            drift[at : at + 3] = second[i, :3]
            drift[at + 3 : at + 6] = _axial(second[i, 3:].reshape(3, 3) @ R.T)
            gyroscopic[at + 3 : at + 6] = np.cross(spin, tensor @ spin)
        gyroscopic += inertia @ drift
        return BodyEquations(
            partial.T @ inertia @ partial, self._virtual_power(known, W) - partial.T @ gyroscopic,
            inertia, partial, gyroscopic,
        )  # fmt: skip

    # -- bodies and loads as nodes -------------------------------------------------------------------------

    def _place(self, point: str, frame: str) -> list[Node]:
        """Return the position of a point in N and a frame's directions, 3 + 9."""
        rotation = self._system.frames.rotation(NEWTONIAN, frame)
        return [*self._in_n(self._system.points.position(point)), *(node for row in rotation for node in row)]

    def _in_n(self, vector: Vector) -> tuple[Node, Node, Node]:
        return self._system.space.resolve(vector, NEWTONIAN)

    def _parts(self, load: Load) -> list[tuple[list[Node], list[Node]]]:
        """Return (forces, places of action): vectors with points, torques with frames, numbers with lengths."""
        points = self._system.points
        match load:
            case ForceLoad():
                force = self._in_n(self._algebra.vector(load.value))
                return [(list(force), list(self._in_n(points.position(load.at))))]
            case TorqueLoad():
                return self._torques(load)
            case GravityLoad():
                pull = self._in_n(self._algebra.vector(load.value))
                return [
                    (
                        [self._algebra.scalar(body.mass) * g for g in pull],
                        list(self._in_n(points.position(body.center))),
                    )
                    for body in self._system.mechanism.bodies.values()
                    if load.on in (None, body.name)
                ]
            case LineLoad():
                return [self._along(load)]
        raise TypeError(f"no forces of the load {load.name!r}")

    def _torques(self, load: TorqueLoad) -> list[tuple[list[Node], list[Node]]]:
        """A torque τ does on a frame the work of forces ``½ τ × R_k`` at the ends of its unit vectors R_k."""
        torque = self._in_n(self._algebra.vector(load.value))
        parts = []
        for name, sign in ((load.on, 0.5), (load.reaction, -0.5)):
            if name is None or name == NEWTONIAN:
                continue
            rotation = self._system.frames.rotation(NEWTONIAN, self._system.body_frames.get(name, name))
            for k in range(3):
                a, b = torque, [rotation[i][k] for i in range(3)]
                pull = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
                parts.append(([sign * node for node in pull], list(b)))
        return parts

    def _along(self, load: LineLoad) -> tuple[list[Node], list[Node]]:
        """A spring, damper or law: a number times the rate of a length or coordinate."""
        graph, algebra = self._system.graph, self._algebra
        if isinstance(load.along, Text):
            value = algebra.scalar(load.along)
        else:
            x, y, z = self._in_n(self._system.points.position(*load.along))
            square = x * x + y * y + z * z
            # without a length there is no direction: no force then, instead of NaN
            value = functions.sqrt(functions.where(functions.compare(">", square, 0.0), square, graph.one))
        if isinstance(load, LawLoad):
            return [algebra.scalar(load.value)], [value]
        numbers = {word: algebra.scalar(text) for word, text in load.coefficients}
        stiffness, free, damping = (numbers.get(word, graph.zero) for word in ("stiffness", "free length", "damping"))
        rate = tangent([value], self._flow)[0]
        return [-(stiffness * (value - free)) - damping * rate], [value]

    @property
    def _flow(self) -> dict[Node, Node]:
        graph = self._system.graph
        flow = {graph.symbol(name): graph.symbol(f"{name}.first") for name in self._system.layout.q}
        flow[graph.symbol("t")] = graph.one
        return flow

    def _virtual_power(self, values: Mapping[str, float], W: Floats) -> Floats:
        """Return Q (n_u,): forces times the velocities of their points for a unit of each speed."""
        forces = self._forces(values)
        slopes = self._moved(values)[len(forces) :].reshape(len(forces), self.n_q)
        found: Floats = (slopes @ W).T @ forces
        return found


def _axial(matrix: Floats) -> Floats:
    """Return the vector ω of the skew part of a matrix."""
    return 0.5 * np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])


# -- Momenta of a mechanism along its motions as one rigid body ----------------------------------------------
#
# A pendulum can turn as a whole about its hinge, a flying box has all motions of a rigid body. Along such a motion, ``V
# u = rigid velocity`` with ``A u = 0``, joints and rows do no work, so the rate of the momentum is the loads'
# generalized force alone (docs/theory.md). The momenta are computed from places and attitudes of the bodies,
# independent of Kane's equations.

RIGID = 1e-10  # largest error of a rigid velocity by the speeds, relative


class Momenta:
    """Momentum and moment of momentum about O of all bodies, prepared as nodes.

    ``terms``: of a mechanism without prescribed motion; ``flow``: rates of the coordinates.
    """

    def __init__(self, terms: Terms, flow: Mapping[Node, Node]) -> None:
        self._terms = terms
        self._flow = dict(flow)
        self.count = 0
        graph = terms.graph
        places, partials, momentum = [], [], [graph.zero] * 6
        for center, frame, mass, tensor in self._bodies():
            r, R = list(terms.points[center]), [list(row) for row in terms.frames[frame]]
            v, spin = self._moved(r, R, self._flow)
            turned = [_dot(R[i], [_dot(tensor[j], [_dot([R[k][m] for k in range(3)], spin) for m in range(3)])
                                  for j in range(3)]) for i in range(3)]  # fmt: skip
            arm = _cross(r, v)
            for i in range(3):
                momentum[i] = momentum[i] + mass * v[i]
                momentum[3 + i] = momentum[3 + i] + mass * arm[i] + turned[i]
            places += r
            partials.append([self._moved(r, R, self._column(s)) for s in range(terms.n_u)])
            self.count += 1
        self._accelerations = [graph.symbol(f"{name}.acceleration") for name in terms.layout.u]
        seeds = {**self._flow, **dict(zip(terms.u, self._accelerations, strict=True))}
        velocities = [node for body in partials for v, spin in body for node in (*v, *spin)]
        self._nodes = [*places, *velocities, *tangent(momentum, seeds)]
        self._names = [symbol.name for symbol in support(self._nodes)]

    def _bodies(self) -> list[tuple[str, str, Node, Sequence[Sequence[Node]]]]:
        # SymPy is imported for derivations only
        from fsm_dyn.derive.symbols import build_system, inertias

        system, graph = build_system(self._terms.mechanism), self._terms.graph
        here = {system.graph.symbol("t"): graph.symbol("t")}
        found: list[tuple[str, str, Node, Sequence[Sequence[Node]]]] = []
        for body in inertias(system):
            tensor = body.tensor or ((system.graph.zero,) * 3,) * 3
            mass, *entries = substitute([body.mass, *(node for row in tensor for node in row)], here)
            found.append((body.center, body.frame or "N", mass, [entries[:3], entries[3:6], entries[6:]]))
        return found

    def _column(self, s: int) -> dict[Node, Node]:
        names, W = self._terms.layout.q, self._terms.W
        return {self._terms.graph.symbol(name): row[s] for name, row in zip(names, W, strict=True)}

    def _moved(
        self, r: list[Node], R: list[list[Node]], rates: Mapping[Node, Node]
    ) -> tuple[list[Node], tuple[Node, ...]]:
        """Return velocity and angular velocity, ``ω× = Ṙ Rᵀ``, for rates of the coordinates."""
        moved = tangent([*r, *(node for row in R for node in row)], rates)
        dR = [moved[3:6], moved[6:9], moved[9:12]]
        return moved[:3], (_dot(dR[2], R[1]), _dot(dR[0], R[2]), _dot(dR[1], R[0]))

    def compare(
        self, values: Mapping[str, float], u_dot: Floats, A: Floats, loads: Floats
    ) -> tuple[Floats, Floats] | None:
        """Return rates of momenta and the loads' forces along all rigid ways there are at a state; None without any.

        ``values``, coordinates, speeds and parameters by name; ``u_dot``, shape (n_u,); ``A``, shape (m, n_u), the
        active rows; ``loads``, shape (n_u,), the generalized forces of the loads.
        """
        known = {**values, **dict(zip([node.name for node in self._accelerations], u_dot, strict=True))}
        numbers = np.array([float(x) for x in evaluate(self._nodes, {n: known.get(n, 0.0) for n in self._names})])
        n, n_u = self.count, len(u_dot)
        places, rates = numbers[: 3 * n].reshape(n, 3), numbers[-6:]
        V = numbers[3 * n : -6].reshape(n, n_u, 6).transpose(0, 2, 1).reshape(6 * n, n_u)
        turning = np.array([body.frame is not None for body in self._terms.mechanism.bodies.values()])
        keep = np.repeat(turning[:, None], 6, axis=1)
        keep[:, :3] = True  # a particle has no attitude
        whole, left, right = np.vstack([V[keep.ravel()], A]), [], []
        for k in range(6):
            e = np.eye(3)[k % 3]
            v = np.tile(e, (n, 1)) if k < 3 else np.cross(e, places)
            field = np.hstack([v, np.tile(e * (k >= 3), (n, 1))])[keep]
            wanted = np.concatenate([field, np.zeros(len(A))])
            way = np.linalg.lstsq(whole, wanted, rcond=1e-12)[0]
            if np.abs(whole @ way - wanted).max(initial=0.0) <= RIGID * max(1.0, float(np.abs(places).max())):
                left.append(rates[k])
                right.append(float(way @ loads))
                # all may be in balance: compared relative to the forces of this model, as the way is rounded
                size = max(float(np.linalg.norm(way) * np.linalg.norm(loads)), float(np.abs(rates).max()))
                left.append(size)
                right.append(size)
        return (np.array(left), np.array(right)) if left else None


def _dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


# -- Lagrange's equations of the bodies of a mechanism -------------------------------------------------------
#
# From the kinetic energy in coordinates and their rates alone.


def lagrange_terms(bare: Terms) -> list[Node]:
    """Return ``∂²T/∂q̇²`` and ``d/dt ∂T/∂q̇ - ∂T/∂q`` at q̈ = 0."""
    graph = bare.graph
    q = [graph.symbol(name) for name in bare.layout.q]
    rates = [graph.symbol(rate_name(name)) for name in bare.layout.q]
    (T,) = substitute([bare.kinetic_energy], _spins(bare))
    momenta = [tangent([T], {rate: graph.one})[0] for rate in rates]
    columns = [tangent(momenta, {rate: graph.one}) for rate in rates]
    drift = tangent(momenta, {**dict(zip(q, rates, strict=True)), graph.symbol("t"): graph.one})
    pulls = [tangent([T], {symbol: graph.one})[0] for symbol in q]
    matrix = [columns[j][i] for i in range(len(q)) for j in range(len(q))]
    return [*matrix, *(a - b for a, b in zip(drift, pulls, strict=True))]


def rate_name(name: str) -> str:
    """Return the name of the rate of a coordinate in these terms."""
    return f"{name}_rate"


def _spins(bare: Terms) -> dict[Node, Node]:
    """Return the speeds of the bare mechanism in rates of coordinates: ``2 E ė`` for Euler parameters."""
    graph = bare.graph
    values: dict[Node, Node] = {}
    for frame in bare.mechanism.frames.values():
        if frame.euler_names:
            e0, e1, e2, e3 = (graph.symbol(name) for name in frame.euler_names)
            d0, d1, d2, d3 = (graph.symbol(rate_name(name)) for name in frame.euler_names)
            spin = (
                2.0 * (e0 * d1 - e1 * d0 + e3 * d2 - e2 * d3),
                2.0 * (e0 * d2 - e2 * d0 + e1 * d3 - e3 * d1),
                2.0 * (e0 * d3 - e3 * d0 + e2 * d1 - e1 * d2),
            )
            values |= {graph.symbol(_spin(frame.name, axis)): node for axis, node in zip("xyz", spin, strict=True)}
    plain = [name for name in bare.layout.q if graph.symbol(f"{name}_dot").name in bare.layout.u]
    return values | {graph.symbol(f"{name}_dot"): graph.symbol(rate_name(name)) for name in plain}


def _spin(frame: str, axis: str) -> str:
    return f"{frame}_spin_{axis}"


def bodies_alone(mechanism: Mechanism) -> Mechanism:
    """The bodies alone, with the rates of the coordinates as speeds, and spins of frames with Euler parameters."""
    turned = [frame for frame in mechanism.frames.values() if frame.euler_names]
    euler = {name for frame in turned for name in frame.euler_names}
    speeds = {f"{name}_dot": Text(f"rate({name})") for name in mechanism.coordinates if name not in euler}
    for frame in turned:
        less = "" if frame.parent == "N" else f" - omega({frame.parent})"
        for axis in "xyz":
            text = f"dot(omega({frame.name}){less}, {frame.name}.{axis})"
            speeds[_spin(frame.name, axis)] = Text(text)
    return replace(
        mechanism,
        speeds=speeds,
        joints={}, constraints={}, shapes={}, contacts={}, loads=(), modes={}, only_listed=False, memory={},
        controllers={},
        transitions=(), ports={}, initial=Initial(), outputs={}, view={},
    )  # fmt: skip
