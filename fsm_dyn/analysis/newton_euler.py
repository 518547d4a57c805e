"""Newton's and Euler's equations of every body, with all that acts on it as unknown forces and moments.

A third derivation, after Kane's and Lagrange's.  It knows where each body's centre is, how the body is turned, and the
loads as vectors.  Of body i with centre r, attitude R, mass m and inertia J,

    m r̈ = φ,   J_N ω̇ + ω × J_N ω = μ,   J_N = R J Rᵀ,   ω× = Ṙ Rᵀ,

with φ and μ the sum of all forces and moments on it, loads and reactions alike.  Joints do no work: over all bodies
the power of φ and μ in any motion that the joints permit is that of the loads and of what the contacts do,
``Σ φ·∂ṙ/∂u + μ·∂ω/∂u = Q + G λ``.  Nothing of partial velocities, M or f is used: positions and attitudes are
differentiated twice, and Q is the virtual power of the loads by derivatives of the positions of their points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.batch import Batch
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, functions, gradient, tangent
from fsm_dyn.spec.loads import ForceLoad, GravityLoad, LawLoad, LineLoad, Load, TorqueLoad
from fsm_dyn.spec.model import Mechanism

if TYPE_CHECKING:
    from fsm_dyn.symbolic.algebra import NodeAlgebra
    from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
    from fsm_dyn.symbolic.vectors import Vector

Array = npt.NDArray[np.float64]
NEWTONIAN = "N"


@dataclass(frozen=True)
class BodyEquations:
    """The bodies' equations at a state, wrenches eliminated: ``mass u̇ = force + G λ``.

    Attributes
    ----------
    mass : ndarray, shape (n_u, n_u)
    force : ndarray, shape (n_u,)
    inertia, partial, gyroscopic : ndarray, shapes (6 n_bodies, 6 n_bodies), (6 n_bodies, n_u), (6 n_bodies,)
        The wrenches on the bodies are ``inertia (partial u̇) + gyroscopic``: forces before moments, body by body, N.
    """

    mass: Array
    force: Array
    inertia: Array
    partial: Array
    gyroscopic: Array

    def wrenches(self, u_dot: Array) -> Array:
        """Return the force (N) and moment about its centre (N m) on each body, shape (n_bodies, 2, 3)."""
        found: Array = self.inertia @ (self.partial @ u_dot) + self.gyroscopic
        return found.reshape(-1, 2, 3)


class NewtonEuler:
    """The bodies and loads of a mechanism, prepared as nodes once and evaluated at each state."""

    def __init__(self, mechanism: Mechanism) -> None:
        # SymPy is imported for derivations only
        from fsm_dyn.symbolic.inertia import inertias
        from fsm_dyn.symbolic.mechanism_symbols import build_system
        from fsm_dyn.symbolic.speeds import solve_speeds

        self._system: MechanismSymbols = build_system(mechanism)
        system, graph = self._system, self._system.graph
        names = {name: graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}
        speeds = solve_speeds(system)
        kinematic = frozenset(speeds.kinematic)
        motion = system.motion(speeds.rates)  # for loads that name velocities
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

    def equations(self, values: Mapping[str, float], W: Array, q_dot: Array, onward: Array) -> BodyEquations:
        """Return the equations at a state.

        Parameters
        ----------
        values : mapping
            Coordinates, speeds, parameters and t by name; what is not given is 0.
        W : ndarray, shape (n_q, n_u)
        q_dot, onward : ndarray, shape (n_q,)
            Rates of the coordinates, and their second rates at u̇ = 0.
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
        """Return (forces, what they move): vectors with points, torques with frames, numbers with lengths."""
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

    def _virtual_power(self, values: Mapping[str, float], W: Array) -> Array:
        """Return Q (n_u,): forces times what a unit of each speed moves their points by."""
        forces = self._forces(values)
        slopes = self._moved(values)[len(forces) :].reshape(len(forces), self.n_q)
        found: Array = (slopes @ W).T @ forces
        return found


def _axial(matrix: Array) -> Array:
    """Return the vector ω of the skew part of a matrix."""
    return 0.5 * np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
