"""Kane's equations of one mode, for people: as SymPy, LaTeX, NumPy and C."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.compact_forms import compact_program, shortened
from fsm_dyn.derive.derivation import derive, flow_of
from fsm_dyn.derive.kane import Kane, Loads, partials, spin_partials
from fsm_dyn.derive.kinematics import Triple, Vector, apply, cross, inner
from fsm_dyn.derive.printing import MINUS, PLUS, TIMES, Equations, latex, mathml, read_equations, read_nodes
from fsm_dyn.derive.reduction import condense
from fsm_dyn.derive.speeds import definition_matrices, solve_speeds
from fsm_dyn.derive.symbols import Inertia, MechanismSymbols, build_system
from fsm_dyn.language.elements import VelocityConstraint
from fsm_dyn.language.memory import with_speeds
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import TIME, Counts, Program
from fsm_dyn.programs.sources import to_c, to_c_once, to_numpy
from fsm_dyn.programs.traversal import gradient, substitute, tangent

# -- The matrices that Kane's method keeps in memory, and Lagrange's equations ---------------------------------


# -- Partial velocities --------------------------------------------------------------------------------------
#
# Partial velocities, generalized active and inertia forces of a mechanism, as in the tables of Gillespie (2003).
#
# The derivation proper (:mod:`fsm_dyn.derive.derivation`) adds all forces up as it goes; here they stay apart.


@dataclass(frozen=True)
class KaneTables:
    """Contribution of each speed to velocities and forces; n_u declared speeds."""

    # mapping of str to n_u vectors: partial velocities (13)-(15) of the centres of bodies and of the points of action
    # of forces
    velocities: Mapping[str, tuple[Vector, ...]]
    # mapping of str to n_u vectors: partial angular velocities of the frames of bodies
    angular_velocities: Mapping[str, tuple[Vector, ...]]
    # ``F`` (n_u,): generalized active forces (32) of the loads; ``F_star_0`` (n_u,): generalized inertia forces (33) at
    # u̇ = 0
    forces: Program


def kane_tables(mechanism: Mechanism) -> KaneTables:
    """Derive the tables of a mechanism; arguments and errors as of :func:`fsm_dyn.derive.derivation.derive`."""
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
    ``C`` (n_u, n_u), ``h`` (n_u,). ``mechanism``: a loaded model.
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
    """Lagrange's equations ``M q̈ + h = Q + Aᵀ λ``, ``A q̇ + b = 0`` of a mechanism with rows, to print."""

    # T, V: kinetic energy, and the potential energy of the loads that have one; rates are symbols ``q1_dot``
    T: sympy.Expr
    V: sympy.Expr
    # M, h, Q, A, b: shapes (n, n), (n, 1), (n, 1), (m, n), (m, 1): mass matrix, velocity terms ``Ṁ q̇ - ∂T/∂q``,
    # generalized forces of all loads, rows and their parts without rates
    M: sympy.ImmutableMatrix
    h: sympy.ImmutableMatrix
    Q: sympy.ImmutableMatrix
    A: sympy.ImmutableMatrix
    b: sympy.ImmutableMatrix
    rows: tuple[str, ...]  # names of the rows, kinematic ones first
    coordinates: tuple[str, ...]
    counts: Counts  # operations of M, h, Q, A and of the rates of the rows without accelerations, together

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

    ``mechanism``: its speeds take no part, except in texts of loads and rows, in which they are their definitions;
    ``rows``: names of the active rows of a mode, as :attr:`KaneEquations.rows` has them. Raises InputError: the
    mechanism has Euler parameters, whose rates are not independent.
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


# -- Equations for people --------------------------------------------------------------------------------------


# -- Kane's equations of one mode, for people: as SymPy, LaTeX, NumPy and C ----------------------------------
#
# The letters are those of docs/theory.md; (n) are equations of Gillespie (2003).

SEED = 20030818

# Available quantities by name, with their meaning; p independent speeds, m active rows, d dependent speeds.
OUTPUTS = {
    "q_dot": "rates of the coordinates, q̇ = W u + X (2)",
    "M": "mass matrix of all speeds",
    "f": "generalized forces without u̇, known contact forces included: M u̇ = f + G λ",
    "F": "generalized active forces (32), known contact forces included",
    "F_star": "generalized inertia forces (33)",
    "F_star_0": "generalized inertia forces (33) at u̇ = 0",
    "A": "active constraint rows, A u + b = 0",
    "b": "what the rows have without speeds",
    "gamma": "what the rows' rates have without accelerations, A u̇ + γ = 0",
    "G": "directions of the multipliers; Aᵀ where nothing slides",
    "T": "natural orthogonal complement, u = T u_I + e",
    "e": "speeds at u_I = 0",
    "S": "test basis, Sᵀ G = 0; T where nothing slides",
    "D": "dependent speeds by independent ones, u_D = D u_I + E (3)",
    "E": "dependent speeds at u_I = 0",
    "F_tilde": "constrained generalized active forces (44)",
    "F_star_tilde": "constrained generalized inertia forces (45); minus F_tilde in motion (46)",
    "F_star_tilde_0": "constrained generalized inertia forces (45) at u̇_I = 0",
    "M_tilde": "mass matrix of the independent speeds, Sᵀ M T",
    "u_dot": "accelerations of all speeds",
    "multipliers": "forces of all rows, λ",
    "guards": "guards of the mode, positive inside",
    "partial_velocities": "partial velocities of points, by point, speed and axis of N",
    "partial_angular_velocities": "partial angular velocities of frames, by frame, speed and axis of N",
}


@dataclass(frozen=True)
class VectorForm:
    """A vector as a sum over frames of components along their axes x, y, z."""

    parts: Mapping[str, tuple[sympy.Expr, sympy.Expr, sympy.Expr]]

    def __str__(self) -> str:
        terms = [_term(value, f"{frame}.{axis}") for value, frame, axis in self._terms()]
        return " + ".join(terms).replace("+ -", "- ") or "0"

    def latex(self) -> str:
        r"""Return the vector with unit vectors such as ``\mathbf{b}_x``."""
        terms = [
            _term_latex(value, rf"\mathbf{{{frame[0].lower()}{frame[1:]}}}_{axis}")
            for value, frame, axis in self._terms()
        ]
        return " + ".join(terms).replace("+ -", "- ") or "0"

    def mathml(self) -> str:
        """Return the vector as MathML."""
        terms = []
        for value, frame, axis in self._terms():
            negative = value.could_extract_minus_sign() and not value.is_Add
            unit = f"<msub><mi style='font-weight: bold'>{frame[0].lower()}{frame[1:]}</mi><mi>{axis}</mi></msub>"
            terms.append(
                (MINUS if negative else PLUS) + f"<mrow>{_factor_mathml(-value if negative else value)}{unit}</mrow>"
            )
        return "".join(terms).removeprefix(PLUS) or "<mn>0</mn>"

    def components(self, frame: str) -> tuple[sympy.Expr, ...]:
        """Return the components of the part given in `frame`, zeros if there is none."""
        return self.parts.get(frame, (sympy.S.Zero,) * 3)

    def _terms(self) -> list[tuple[sympy.Expr, str, str]]:
        return [
            (value, frame, axis)
            for frame, triple in self.parts.items()
            for value, axis in zip(triple, "xyz", strict=True)
            if value != 0
        ]


VectorTable = dict[str, dict[str, VectorForm]]  # by point or frame, and by speed


@dataclass(frozen=True)
class SplitCounts:
    """Operation counts of one evaluation, as Table 3 of Gillespie (2003) has them."""

    kinematics: Counts
    dynamics: Counts
    together: Counts


@dataclass(frozen=True)
class AuxiliarySpeed:
    """A speed that is zero in a mode, introduced for the force that keeps it so."""

    row: str  # the active row whose value it is
    # velocities, angular_velocities: its partial velocities of points and partial angular velocities of frames, zero
    # ones included
    velocities: Mapping[str, VectorForm]
    angular_velocities: Mapping[str, VectorForm]
    force: sympy.Expr  # the force of the row (N or N m), with symbols ``u1_dot`` of accelerations: the multiplier

    def __str__(self) -> str:
        lines = [f"auxiliary speed of {self.row}"]
        lines += [f"  v({point}) = {vector}" for point, vector in self.velocities.items()]
        lines += [f"  ω({frame}) = {vector}" for frame, vector in self.angular_velocities.items()]
        return "\n".join([*lines, f"  force = {self.force}"])


class KaneEquations:
    """Kane's equations of one mode, formed on demand.

    ``equations["M"]`` is a SymPy matrix written out, with the model's own names as symbols; :meth:`read` keeps
    intermediate symbols.  :data:`OUTPUTS` lists the names.

    Parameters
    ----------
    mechanism : Mechanism
    mode : str
        Its name.
    matrices : Program
        :func:`fsm_dyn.derive.mode_programs.mode_matrices`.
    full : Program
        The mode's full program: accelerations, multipliers and guards.
    independent : tuple of int
        Indices of the independent speeds.
    rows : tuple of str
        Names of the active rows.
    row_names : tuple of str
        Names of all rows, active or not, in the order of the multipliers.
    guards : tuple of str
        Texts of the guards.
    parameters : ndarray, shape (n_p,), optional
        Values in SI units, for numbers such as :meth:`coupling`; 1 by default.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        mode: str,
        matrices: Program,
        full: Program,
        independent: tuple[int, ...],
        rows: tuple[str, ...],
        row_names: tuple[str, ...],
        guards: tuple[str, ...],
        parameters: Floats | None = None,
    ) -> None:
        self._parameters = parameters
        self.mechanism, self.mode = mechanism, mode
        self.rows, self.row_names, self.guards = rows, row_names, guards
        self.coordinates, self.speeds = matrices.layout.q, matrices.layout.u
        self.independent = tuple(self.speeds[i] for i in independent)
        self.dependent = tuple(name for name in self.speeds if name not in self.independent)
        self.matrices, self._full, self._places = matrices, full, list(independent)
        self._compact: dict[tuple[tuple[str, ...], bool], Program] = {}

    def __repr__(self) -> str:
        return f"<Kane's equations of {self.mechanism.name}, mode '{self.mode}': {', '.join(self.independent)}>"

    # -- programs ------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> KaneTables:
        """Partial velocities and forces of the loads and of inertia, as expression nodes."""
        return kane_tables(self.mechanism)

    @cached_property
    def program(self) -> Program:
        """All of :data:`OUTPUTS` as one straight-line program."""
        graph, _, known = self.matrices.graph()
        _, forces = self.tables.forces.nodes(graph)
        _, full = self._full.nodes(graph)
        n_q, zero = len(self.coordinates), graph.zero
        others = [self.speeds.index(name) for name in self.dependent]
        S, M, T = known["S"], known["M"], known["T"]
        active = [a + b for a, b in zip(forces["F"], known["contact_forces"], strict=True)]
        drift = [a - b for a, b in zip(forces["F_star_0"], _product(M, known["c"], zero), strict=True)]
        u_dot = full["x_dot"][n_q:]
        rates = [u_dot[i] for i in self._places]
        F_tilde, F_star_tilde_0 = _product(S.T, active, zero), _product(S.T, drift, zero)
        M_tilde = _array([_product(S.T, _product(M, column, zero), zero) for column in T.T], T.T.shape[:1] * 2).T
        outputs = {name: known[name] for name in ("q_dot", "M", "f", "A", "b", "gamma", "G", "T", "e", "S")}
        outputs |= {
            "F": _array(active, (len(active),)),
            "F_star": forces["F_star_0"] - _product(M, u_dot, zero),
            "F_star_0": forces["F_star_0"],
            "D": T[others],
            "E": known["e"][others],
            "F_tilde": F_tilde,
            "F_star_tilde": F_star_tilde_0 - _product(M_tilde, rates, zero),
            "F_star_tilde_0": F_star_tilde_0,
            "M_tilde": M_tilde,
            "u_dot": u_dot,
            "multipliers": full["multipliers"],
            "guards": full["guards"],
            "partial_velocities": known["point_velocities"],
            "partial_angular_velocities": known["angular_velocities"],
        }
        return Program.from_nodes(self.matrices.layout, {name: outputs[name] for name in OUTPUTS})

    def part(self, *names: str) -> Program:
        """Return the program of some outputs alone.

        Raises
        ------
        InputError
            There is no such output.
        """
        known = {**OUTPUTS, **BOOKKEEPING}
        for name in names:
            if name not in known:
                raise InputError(
                    f"no output '{name}' of a mode", allowed=", ".join(known), remedy=did_you_mean(name, known)
                )
        return self._with_bookkeeping(self.program, names)

    @cached_property
    def _bookkeeping(self) -> Program:
        return bookkeeping(self.mechanism)

    def _with_bookkeeping(self, program: Program, names: Sequence[str]) -> Program:
        """Return the part of a program with these names, matrices of the speeds joined to it."""
        extra = [name for name in names if name in BOOKKEEPING]
        if not extra:
            return program.part(dict.fromkeys(names))
        graph, _, known = program.part(dict.fromkeys(name for name in names if name not in extra)).graph()
        known |= self._bookkeeping.part(dict.fromkeys(extra)).nodes(graph)[1]
        return Program.from_nodes(program.layout, {name: known[name] for name in names})

    @cached_property
    def formulas(self) -> Program:
        """The outputs with symbols ``u1_dot`` ... of accelerations: F* without the accelerations' own formulas."""
        graph, _, known = self.program.graph()
        layout = self.program.layout
        zero = graph.zero
        rates = {name: graph.symbol(f"{name}_dot") for name in self.speeds}
        whole = _product(known["M"], list(rates.values()), zero)
        tilde = _product(known["M_tilde"], [rates[name] for name in self.independent], zero)
        known |= {"F_star": known["F_star_0"] - whole, "F_star_tilde": known["F_star_tilde_0"] - tilde}
        symbols = replace(layout, memory=(*layout.memory, *(rate.name for rate in rates.values())))
        return Program.from_nodes(symbols, known)

    def _read_program(self, names: Sequence[str], motion: bool, in_terms_of: str) -> Program:
        self.part(*names)  # the names are checked there
        if in_terms_of not in ("all", "independent"):
            raise InputError(f"no choice of speeds '{in_terms_of}'", allowed="all, independent")
        program = self._with_bookkeeping(self.program if motion else self.formulas, names)
        if in_terms_of == "all" or not self.dependent:
            return program
        graph, _, outputs = program.graph()
        _, known = self.matrices.nodes(graph)
        flat = [node for array in outputs.values() for node in array.ravel()]
        speeds, rates = self.followers(graph, known)
        values = iter(substitute(substitute(flat, rates), speeds))
        return Program.from_nodes(
            program.layout,
            {name: _array([next(values) for _ in range(array.size)], array.shape) for name, array in outputs.items()},
        )

    def followers(self, graph: ExpressionGraph, known: Mapping[str, Any]) -> tuple[dict[Node, Node], dict[Node, Node]]:
        """Return the dependent speeds by the independent ones, ``D u_I + E``, and their rates likewise."""
        speeds, rates = {}, {}
        for j, name in enumerate(self.speeds):
            if name in self.independent:
                continue
            speed, rate = known["e"][j], known["c"][j]
            for a, other in enumerate(self.independent):
                speed = speed + known["T"][j, a] * graph.symbol(other)
                rate = rate + known["T"][j, a] * graph.symbol(f"{other}_dot")
            speeds[graph.symbol(name)], rates[graph.symbol(f"{name}_dot")] = speed, rate
        return speeds, rates

    def compact_program(self, *names: str, once: bool = False) -> Program:
        """Return outputs in compact form as a program; see :meth:`compact`."""
        wanted = names or ("q_dot", "u_dot")
        self.part(*wanted)  # the names are checked there
        if (wanted, once) not in self._compact:
            today = self._on_rows(wanted) if "u_dot" in wanted else self._with_bookkeeping(self.formulas, wanted)
            self._compact[wanted, once] = compact_program(today, self.matrices, self._places, once=once)
        return self._compact[wanted, once]

    def _on_rows(self, names: Sequence[str]) -> Program:
        """Return outputs with rates as in runs: q̇ with the dependent speeds of the rows."""
        graph, _, known = self.part(*names).graph()
        _, full = self._full.nodes(graph)
        n_q = len(self.coordinates)
        on_rows = {"q_dot": full["x_dot"][:n_q], "u_dot": full["x_dot"][n_q:]}
        return Program.from_nodes(self.matrices.layout, {name: on_rows.get(name, known[name]) for name in names})

    @cached_property
    def counts(self) -> SplitCounts:
        """Operation counts of ``q̇`` alone, of ``u̇`` alone and of both together."""
        full = self._full.part({"x_dot": None})
        dynamics = self.part("u_dot").counts()
        return SplitCounts(self.part("q_dot").counts(), dynamics, full.counts())

    # -- formulas ------------------------------------------------------------------------------------------

    def read(
        self, *names: str, expand_symbols: bool = False, motion: bool = False, in_terms_of: str = "all"
    ) -> Equations:
        """Return outputs with intermediate symbols ``Z1``, ``Z2`` ... for repeated expressions, or without.

        Parameters
        ----------
        *names : str
            Of :data:`OUTPUTS`.
        expand_symbols : bool
            Whether to expand intermediate symbols.
        motion : bool
            Whether ``F_star`` and ``F_star_tilde`` have the accelerations of the motion, instead of symbols ``u1_dot``.
        in_terms_of : {"all", "independent"}
            Whether the dependent speeds and their rates are replaced by the independent ones.
        """
        program = self._read_program(names, motion, in_terms_of)
        return read_equations(program, expand_symbols=expand_symbols)

    def __getitem__(self, name: str) -> Any:
        """Return one output as a SymPy matrix, written out; accelerations in it are symbols ``u1_dot`` ..."""
        return self.read(name, expand_symbols=True).results[name]

    def compact(self, *names: str, once: bool = False) -> Equations:
        """Return outputs with fewer operations, never more; programs of runs are not changed.

        Parameters
        ----------
        *names : str
            Of :data:`OUTPUTS`; by default ``q_dot`` and ``u_dot``, as a run evaluates them.
        once : bool
            Whether to choose forms for fewest operations per evaluation, what parameters alone give being computed once
            per run.

        Returns
        -------
        Equations
            Its ``once`` holds the intermediate symbols that parameters alone give.

        Notes
        -----
        See :mod:`fsm_dyn.derive.compact_forms`.
        """
        return read_equations(self.compact_program(*names, once=once), once=True)

    @property
    def accelerations(self) -> sympy.ImmutableMatrix:
        """Symbols ``u1_dot`` ... of the accelerations of all speeds, as a column."""
        return _dots(self.speeds)

    @cached_property
    def generalized_active_forces(self) -> sympy.ImmutableMatrix:
        """F of each speed (32)."""
        return self["F"]

    @cached_property
    def generalized_inertia_forces(self) -> sympy.ImmutableMatrix:
        """F* of each speed (33), with the symbols of :attr:`accelerations`."""
        return self["F_star_0"] - self["M"] * self.accelerations

    @cached_property
    def constrained_active_forces(self) -> sympy.ImmutableMatrix:
        """F of each independent speed after recombination (44)."""
        return self["F_tilde"]

    @cached_property
    def constrained_inertia_forces(self) -> sympy.ImmutableMatrix:
        """F* of each independent speed after recombination (45), in the accelerations of the independent speeds."""
        return self["F_star_tilde_0"] - self["M_tilde"] * _dots(self.independent)

    def partial_velocities(self, *, constrained: bool = False) -> VectorTable:
        """Return the partial velocities of points of action of forces and of centres of bodies, point by point.

        Parameters
        ----------
        constrained : bool
            By the independent speeds, the dependent ones following them, instead of by all speeds.
        """
        return self._table(self.tables.velocities, constrained)

    def partial_angular_velocities(self, *, constrained: bool = False) -> VectorTable:
        """Return the partial angular velocities of the bodies' frames; see :meth:`partial_velocities`."""
        return self._table(self.tables.angular_velocities, constrained)

    def read_velocities(self, longest: int) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], VectorTable, VectorTable]:
        """Return intermediate symbols, and with them the partial velocities and the partial angular velocities.

        Parameters
        ----------
        longest : int
            Number of operations, shared ones once; up to it all is written out without symbols.
        """
        tables = self.tables.velocities, self.tables.angular_velocities
        definitions, written = read_nodes([node for table in tables for node in _entries(table)], longest)
        velocities, spins = (self._table(table, False, written) for table in tables)
        return definitions, velocities, spins

    def _table(
        self,
        vectors: Mapping[str, Sequence[Vector]],
        constrained: bool,
        written: Mapping[Node, sympy.Expr] | None = None,
    ) -> VectorTable:
        T = self["T"] if constrained else sympy.eye(len(self.speeds))
        names = self.independent if constrained else self.speeds
        known = written or read_nodes(_entries(vectors))[1]
        return {
            name: {speed: _combined(columns, list(T[:, k]), known) for k, speed in enumerate(names)}
            for name, columns in vectors.items()
        }

    def lagrange(self) -> LagrangeEquations:
        """Return Lagrange's equations with the active rows of the mode, without friction; to print and compare."""
        return lagrange(self.mechanism, self.rows)

    def auxiliary_speed(self, row: str) -> AuxiliarySpeed:
        """Return the auxiliary speed of an active row, with its partial velocities and the force that they bring out.

        The value of the row, zero in the mode, is one more speed; the force of the row is minus
        the sum of active and inertia forces of this speed (Kane and Levinson 1985, 4.9 and 6.1).

        Parameters
        ----------
        row : str
            One of :attr:`rows`.

        Raises
        ------
        InputError
            There is no such active row, or others make it redundant.
        """
        if row not in self.rows:
            raise InputError(
                f"no active row '{row}'", allowed=", ".join(self.rows) or "none", remedy=did_you_mean(row, self.rows)
            )
        k = self.rows.index(row)
        graph, _, known = self.formulas.graph()
        matrices = self.matrices.nodes(graph)[1]
        column, test = matrices["N"][:, k], matrices["N_test"][:, k]
        if all(node.is_zero for node in column):
            raise InputError(f"the row '{row}' is redundant: its force is not determined", found=", ".join(self.rows))
        sums = [a + b for a, b in zip(known["F"], known["F_star"], strict=True)]
        force = -_product(np.array([test], dtype=object), sums, graph.zero)[0]
        written = read_nodes([force, *column])[1]
        vectors = [
            {point: _combined(columns, [written[node] for node in column], read_nodes(_entries(table))[1])
             for point, columns in table.items()}
            for table in (self.tables.velocities, self.tables.angular_velocities)
        ]  # fmt: skip
        return AuxiliarySpeed(row, vectors[0], vectors[1], written[force])

    def coupling(self, states: int = 2000) -> Floats:
        """Return how strongly the equations of the independent speeds are coupled, shape (p, p).

        Parameters
        ----------
        states : int
            Number of seeded configurations, angles all around and other coordinates up to 1 in SI units.

        Returns
        -------
        ndarray
            ``max |M̃ij| / sqrt(M̃ii M̃jj)`` over the states, zero on the diagonal: 0 for uncoupled equations.
        """
        layout, generator = self.matrices.layout, np.random.default_rng(SEED)
        units = self.mechanism.coordinates
        x, c = np.zeros((states, layout.n_x)), np.ones((states, layout.n_c))
        for k, name in enumerate(layout.q):
            turns = name in units and units[name].unit in ("rad", "deg")
            x[:, k] = generator.uniform(-1.0, 1.0, states) * (np.pi if turns else 1.0)
        if self._parameters is not None:
            c[:, layout.p_slice] = self._parameters
        M = self.part("M_tilde").evaluate(0.0, x, c)["M_tilde"]
        with np.errstate(all="ignore"):
            size = np.sqrt(np.abs(np.einsum("kii->ki", M)))
            shares = np.abs(M) / (size[:, :, None] * size[:, None, :])
        found: Floats = np.where(np.isfinite(shares), shares, 0.0).max(axis=0, initial=0.0)
        np.fill_diagonal(found, 0.0)
        return found

    def latex(self, *names: str) -> str:
        """Return outputs as LaTeX, one aligned equation a line, intermediate symbols first."""
        return self.read(*names).latex()

    # -- source code ---------------------------------------------------------------------------------------

    def c_source(self, *names: str, function: str = "evaluate", compact: bool = False, once: bool = False) -> str:
        """Return C99 source of outputs; see :func:`fsm_dyn.programs.sources.to_c`.

        Parameters
        ----------
        *names : str
            Of :data:`OUTPUTS`.
        function : str
            Name of the function.
        compact : bool
            Whether in compact form; see :meth:`compact`.
        once : bool
            Whether as two functions: ``<function>_once(p, k)``, called when parameters are set, and ``<function>(t, x,
            w, k, out)``, called at every step; `w` is the context behind the parameters.
        """
        program = self.compact_program(*names, once=once) if compact else self.part(*names)
        return to_c_once(program, function) if once else to_c(program, function)

    def numpy_source(self, *names: str, function: str = "evaluate", compact: bool = False) -> str:
        """Return Python source of outputs; see :func:`fsm_dyn.programs.sources.to_numpy` and :meth:`compact`."""
        return to_numpy(self.compact_program(*names) if compact else self.part(*names), function)


def _dots(speeds: Sequence[str]) -> sympy.ImmutableMatrix:
    return sympy.ImmutableMatrix(len(speeds), 1, [sympy.Symbol(f"{name}_dot") for name in speeds])


def _entries(vectors: Mapping[str, Sequence[Vector]]) -> list[Node]:
    return [node for columns in vectors.values() for vector in columns for _, triple in vector for node in triple]


def _combined(
    columns: Sequence[Vector], weights: Sequence[sympy.Expr], written: Mapping[Node, sympy.Expr]
) -> VectorForm:
    total: dict[str, list[sympy.Expr]] = {}
    for vector, weight in zip(columns, weights, strict=True):
        for frame, triple in vector if weight != 0 else ():
            known = total.setdefault(frame, [sympy.S.Zero] * 3)
            total[frame] = [a + weight * written[b] for a, b in zip(known, triple, strict=True)]
    return VectorForm({frame: (x, y, z) for frame, (x, y, z) in total.items() if any((x, y, z))})


def _product(matrix: npt.NDArray[Any], vector: Sequence[Node] | npt.NDArray[Any], zero: Node) -> npt.NDArray[Any]:
    """Return a matrix times a vector of nodes, products with zero left out."""
    found = []
    for row in matrix:
        total = zero
        for a, b in zip(row, vector, strict=True):
            total = total + a * b
        found.append(total)
    return _array(found, (len(found),))


def _array(entries: Sequence[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    flat = [node for entry in entries for node in (entry if isinstance(entry, np.ndarray) else [entry])]
    array = np.empty(math.prod(shape), dtype=object)
    array[:] = flat
    return array.reshape(shape)


def _term(value: sympy.Expr, unit: str) -> str:
    if value in (1, -1):
        return unit if value == 1 else f"-{unit}"
    return f"({value})*{unit}" if value.is_Add else f"{value}*{unit}"


def _factor_mathml(value: sympy.Expr) -> str:
    """Return a factor with the sign of multiplication behind it; nothing for 1."""
    if value == 1:
        return ""
    return (f"<mo>(</mo>{mathml(value)}<mo>)</mo>" if value.is_Add else mathml(value)) + TIMES


def _term_latex(value: sympy.Expr, unit: str) -> str:
    if value in (1, -1):
        return unit if value == 1 else f"-{unit}"
    return rf"({latex(value)})\,{unit}" if value.is_Add else rf"{latex(value)}\,{unit}"
