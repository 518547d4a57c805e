"""The matrices that Kane's method keeps in memory, and Lagrange's equations of the same mechanism.

Letters as in docs/theory.md: ``u = Y q̇ + Z`` (Gillespie 2003, (1)), ``q̇ = W u + X`` (2), ``M u̇ + C u = F`` without
prescribed motion (K. Parsa, (34)-(37)).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy

from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.derivation import derive, flow_of
from fsm_dyn.derive.fractions import shortened
from fsm_dyn.derive.kane import Kane, Loads, partials, spin_partials
from fsm_dyn.derive.kinematics import Triple, Vector, apply, cross, inner
from fsm_dyn.derive.printing import read_equations
from fsm_dyn.derive.reduction import condense
from fsm_dyn.derive.speeds import definition_matrices, solve_speeds
from fsm_dyn.derive.symbols import Inertia, MechanismSymbols, build_system
from fsm_dyn.language.elements import VelocityConstraint
from fsm_dyn.language.memory import with_speeds
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.layout import TIME
from fsm_dyn.programs.program import Counts, Program
from fsm_dyn.programs.traversal import gradient, tangent

# -- Partial velocities --------------------------------------------------------------------------------------
#
# Partial velocities, generalized active and inertia forces of a mechanism, as in the tables of Gillespie (2003).
#
# The derivation proper (:mod:`fsm_dyn.derive.derivation`) adds all forces up as it goes; here they stay apart.


@dataclass(frozen=True)
class KaneTables:
    """Contribution of each speed to velocities and forces; n_u declared speeds.

    Attributes
    ----------
    velocities : mapping of str to n_u vectors
        Partial velocities (13)-(15) of the centres of bodies and of the points of action of forces.
    angular_velocities : mapping of str to n_u vectors
        Partial angular velocities of the frames of bodies.
    forces : Program
        ``F`` (n_u,): generalized active forces (32) of the loads; ``F_star_0`` (n_u,): generalized inertia forces
        (33) at u̇ = 0.
    """

    velocities: Mapping[str, tuple[Vector, ...]]
    angular_velocities: Mapping[str, tuple[Vector, ...]]
    forces: Program


def kane_tables(mechanism: Mechanism) -> KaneTables:
    """Derive the tables of a mechanism; arguments and errors as of :func:`fsm_dyn.derive.derivation.derive`.

    Returns
    -------
    KaneTables
    """
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    motion = system.motion(speeds.rates)
    zero, kinematic = system.graph.zero, frozenset(speeds.kinematic)
    held = motion.at([zero if symbol in kinematic else symbol for symbol in motion.speeds])
    n_u = len(system.layout.u)
    kane = Kane(system, held, flow_of(system, speeds))
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}
    loads = Loads(kane, system.algebra(held, names)).gather(mechanism.loads)
    active = loads.f[:n_u]
    for body in kane.bodies:
        moved = partials(held.velocity(body.center), n_u)
        active = [a + body.mass * system.space.dot(v, loads.gravity) for a, v in zip(active, moved, strict=True)]
    inertia = kane.equations(Vector()).f[:n_u]
    best = condense([*active, *inertia], system.reducer)
    return KaneTables(
        velocities={point: tuple(partials(motion.velocity(point), n_u)) for point in _points(system)},
        angular_velocities={
            frame: tuple(spin_partials(frame, motion.spin(frame), n_u))
            for frame in dict.fromkeys(system.body_frames.values())
        },
        forces=Program.from_nodes(
            system.layout, {"F": [best[node] for node in active], "F_star_0": [best[node] for node in inertia]}
        ),
    )


def _points(system: MechanismSymbols) -> list[str]:
    """Return the points of action of forces, then the centres of bodies, each once."""
    mechanism = system.mechanism
    acted = [point for load in mechanism.loads for point in load.points]
    centers = [body.center for body in mechanism.bodies.values()]
    return [point for point in dict.fromkeys((*acted, *centers)) if point != "O"]


# -- Matrices of the speeds ----------------------------------------------------------------------------------

# Available matrices by name, with their meaning.
BOOKKEEPING = {
    "Y": "rows of the speeds, u = Y q̇ + Z (1); the kinematic rows last",
    "Z": "what the speeds have without rates of coordinates (1)",
    "W": "columns of the declared speeds, q̇ = W u + X (2)",
    "X": "rates of the coordinates without speeds (2)",
    "C": "velocity terms of the declared speeds, Σ m Vᵀ V̇ + Ωᵀ (I Ω̇ + ω × I Ω)",
    "h": "C u; minus F_star_0 without prescribed motion",
}


def bookkeeping(mechanism: Mechanism) -> Program:
    """Return the matrices of :data:`BOOKKEEPING`.

    For n_u declared speeds, m_k kinematic rows and n_q coordinates ``Y`` is (n_u + m_k, n_q) and ``Z`` (n_u + m_k,), of
    Euler parameters with the three components of the spin instead of four rates; ``W`` is (n_q, n_u), ``X`` (n_q,),
    ``C`` (n_u, n_u), ``h`` (n_u,).

    Parameters
    ----------
    mechanism : Mechanism
        A loaded model.
    """
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    Y, Z = definition_matrices(system)
    zero, n_u = system.graph.zero, len(system.layout.u)
    rates = speeds.rates
    W = [list(rates.columns[q][:n_u]) for q in system.coordinates]
    X = [rates.rest.get(q, zero) for q in system.coordinates]
    motion = system.motion(rates)
    held = motion.at([zero if symbol in speeds.kinematic else symbol for symbol in motion.speeds])
    C = _velocity_terms(Kane(system, held, flow_of(system, speeds)), flow_of(system, speeds), n_u)
    u = [system.graph.symbol(name) for name in system.layout.u]
    h = [_total((a * b for a, b in zip(row, u, strict=True)), zero) for row in C]
    flat = shortened([node for row in [*W, *C] for node in row])
    found = iter(flat)
    W, C = ([[next(found) for _ in row] for row in table] for table in (W, C))
    outputs = {"Y": Y, "Z": Z, "W": W, "X": X, "C": C, "h": shortened(h)}
    return Program.from_nodes(system.layout, outputs)


def _velocity_terms(kane: Kane, flow: Mapping[Node, Node], n: int) -> list[list[Node]]:
    """Return C, of each body in the axes of its frame."""
    zero = kane.system.graph.zero
    C = [[zero] * n for _ in range(n)]
    for body in kane.bodies:
        for r, s, share in [*_translation(kane, body, flow, n), *_rotation(kane, body, flow, n)]:
            C[r][s] = C[r][s] + share
    return C


def _rate(spin: Triple, vector: Triple, flow: Mapping[Node, Node]) -> Triple:
    """Return the rate in N of a vector given in axes that turn."""
    a, b = tangent(list(vector), flow), cross(spin, vector)
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _translation(kane: Kane, body: Inertia, flow: Mapping[Node, Node], n: int) -> Iterable[tuple[int, int, Node]]:
    if body.mass.is_zero:
        return
    frame = body.frame or kane.motion.home(body.center)
    columns, spin = kane.motion.resolved(body.center, frame)[:n], kane.accelerations.spin(frame)
    rates = [_rate(spin, column, flow) for column in columns]
    yield from ((r, s, body.mass * inner(columns[r], rates[s])) for r in range(n) for s in range(n))


def _rotation(kane: Kane, body: Inertia, flow: Mapping[Node, Node], n: int) -> Iterable[tuple[int, int, Node]]:
    if body.frame is None or body.tensor is None:
        return
    columns, spin = kane.motion.spin(body.frame)[:n], kane.accelerations.spin(body.frame)
    for s in range(n):
        rate = apply(body.tensor, _rate(spin, columns[s], flow))
        gyro = cross(spin, apply(body.tensor, columns[s]))
        torque = [a + b for a, b in zip(rate, gyro, strict=True)]
        yield from ((r, s, inner(columns[r], torque)) for r in range(n))


def _total(nodes: Iterable[Node], zero: Node) -> Node:
    total = zero
    for node in nodes:
        total = total + node
    return total


# -- Lagrange's equations ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LagrangeEquations:
    """Lagrange's equations ``M q̈ + h = Q + Aᵀ λ``, ``A q̇ + b = 0`` of a mechanism with rows, to print.

    Attributes
    ----------
    T, V : sympy.Expr
        Kinetic energy, and the potential energy of the loads that have one; rates are symbols ``q1_dot`` ...
    M, h, Q, A, b : Matrix
        Shapes (n, n), (n, 1), (n, 1), (m, n), (m, 1): mass matrix, velocity terms ``Ṁ q̇ - ∂T/∂q``, generalized
        forces of all loads, rows and their parts without rates.
    rows : tuple of str
        Names of the rows, kinematic ones first.
    coordinates : tuple of str
    counts : Counts
        Operations of M, h, Q, A and of the rates of the rows without accelerations, together.
    """

    T: sympy.Expr
    V: sympy.Expr
    M: sympy.ImmutableMatrix
    h: sympy.ImmutableMatrix
    Q: sympy.ImmutableMatrix
    A: sympy.ImmutableMatrix
    b: sympy.ImmutableMatrix
    rows: tuple[str, ...]
    coordinates: tuple[str, ...]
    counts: Counts

    def __str__(self) -> str:
        lines = [f"T = {self.T}", f"V = {self.V}"]
        for i, name in enumerate(self.coordinates):
            left = " + ".join(
                f"({self.M[i, j]})*{other}_ddot" for j, other in enumerate(self.coordinates) if self.M[i, j] != 0
            )
            forces = [f"({self.A[k, i]})*lambda_{row}" for k, row in enumerate(self.rows) if self.A[k, i] != 0]
            right = [str(self.Q[i]), *forces] if self.Q[i] != 0 or not forces else forces
            lines.append(f"{name}: {left or 0} + ({self.h[i]}) = {' + '.join(right)}")
        rates = sympy.Matrix([sympy.Symbol(f"{name}_dot") for name in self.coordinates])
        lines += [f"{row}: {value} = 0" for row, value in zip(self.rows, self.A * rates + self.b, strict=True)]
        return "\n".join(lines)


def lagrange(mechanism: Mechanism, rows: Sequence[str] = ()) -> LagrangeEquations:
    """Derive Lagrange's equations from the kinetic energy alone, for comparison with Kane's.

    Parameters
    ----------
    mechanism : Mechanism
        Its speeds take no part, except in texts of loads and rows, in which they are their definitions.
    rows : sequence of str
        Names of the active rows of a mode, as :attr:`KaneEquations.rows` has them.

    Raises
    ------
    InputError
        The mechanism has Euler parameters, whose rates are not independent.
    """
    program, names = _lagrange_program(mechanism, rows)
    found = read_equations(program, expand_symbols=True).results
    return LagrangeEquations(
        T=found["T"], V=found["V"], M=found["M"], h=found["h"], Q=found["Q"], A=found["A"], b=found["b"],
        rows=names,
        coordinates=tuple(mechanism.coordinate_names),
        counts=program.part(dict.fromkeys(("M", "h", "Q", "A", "gamma"))).counts(),
    )  # fmt: skip


def _lagrange_program(mechanism: Mechanism, rows: Sequence[str]) -> tuple[Program, tuple[str, ...]]:
    """Return T, V, M, h, Q, A and b, and the names of the rows."""
    if any(frame.euler_names for frame in mechanism.frames.values()):
        raise InputError("Lagrange's equations need independent rates", found="Euler parameters")
    rates = {f"{name}_dot": f"rate({name})" for name in mechanism.coordinate_names}
    free = {
        name: replace(item, kinematic=False) if isinstance(item, VelocityConstraint) else item
        for name, item in mechanism.constraints.items()
    }
    kinematic = tuple(name for name, item in mechanism.constraints.items() if item.kinematic)
    other = with_speeds(replace(mechanism, constraints=free, phases={}), rates)
    terms = derive(other)
    graph = terms.graph
    q = [graph.symbol(name) for name in mechanism.coordinate_names]
    momenta = gradient([terms.kinetic_energy], terms.u)[0]
    drift = tangent(momenta, {**dict(zip(q, terms.u, strict=True)), graph.symbol(TIME): graph.one})
    slopes = gradient([terms.kinetic_energy], q)[0]
    M = [shortened(row) for row in gradient(momenta, terms.u)]
    h = shortened([a - b for a, b in zip(drift, slopes, strict=True)])
    names = {row.name if row.contact < 0 else f"{row.name}.{row.role}": row for row in terms.rows}
    active = [names[name] for name in (*kinematic, *rows)]
    loads = list(kane_tables(other).forces.nodes(graph)[1]["F"])
    outputs = {
        "T": terms.kinetic_energy, "V": terms.potential_energy, "M": M, "h": h, "Q": loads,
        "A": [list(row.A) for row in active], "b": [row.b for row in active],
        "gamma": [row.gamma for row in active],
    }  # fmt: skip
    return Program.from_nodes(terms.layout, outputs), (*kinematic, *rows)
