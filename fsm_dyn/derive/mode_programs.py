"""The programs of a mode, ``rhs`` for stages and ``full`` for ends of steps, and its matrices for reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import Factors, eliminate, solve_symmetric
from fsm_dyn.derive.embedding import (
    ActiveSet,
    EmbeddedMode,
    all_multipliers,
    applied_forces,
    column_scale,
    eliminate_active_rows,
    force_rows,
    force_samples,
    free_motion_basis,
    solve_general,
)
from fsm_dyn.derive.guards import Guard, contact_guards, transition_guards
from fsm_dyn.derive.tree_embedding import embed_cheapest, with_bearing_loads
from fsm_dyn.derive.unconstrained_system import ContactInfo, UnconstrainedSystem
from fsm_dyn.programs import functions
from fsm_dyn.programs.enclosure_code import EnclosureCode, enclosure_code
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Only, Program
from fsm_dyn.programs.traversal import substitute, tangent
from fsm_dyn.runtime.abi import GuardQuantity

# -- Accelerations and multipliers solved for together, the alternative to constraint embedding --------------
#
# The rows are ``A u̇ = -γ`` and the equations of motion ``M u̇ = f + Gᵀ λ`` of all speeds, dependent ones included
# (docs/theory.md, "Multipliers instead of embedding").


def by_multipliers(
    system: UnconstrainedSystem, active: ActiveSet, embedded: EmbeddedMode, samples: dict[str, Floats]
) -> EmbeddedMode:
    """Return a mode with ``λ`` from ``(A M⁻¹ Gᵀ) λ = -γ - A M⁻¹ f`` and ``u̇ = M⁻¹ (f + Gᵀ λ)``, in all speeds.

    Chart, dependent speeds and their pivots stay those of the embedding, which projects the state at the ends of steps.
    ``embedded``: the same mode embedded; ``samples``, shape (samples, ...): as of
    :func:`fsm_dyn.derive.embedding.embed`. Raises ModelError: a speed has no inertia, or redundant contacts slide: the
    motion then depends on their shares.
    """
    n_u, nodes = system.n_speeds, system.nodes
    massless = [system.layout.u[j] for j in range(n_u) if nodes["M"][j, j].is_zero]
    if massless or (embedded.redundant and active.sliding):
        reason = "these speeds have no inertia" if massless else "redundant contacts slide"
        found = ", ".join(massless) or ", ".join(system.rows[row].name for row in embedded.redundant)
        raise ModelError(
            f"accelerations and multipliers cannot be solved for together: {reason}", found=found,
            remedy="run with formulation='embedding'",
        )  # fmt: skip
    kept = [k for k, row in enumerate(active.rows) if row not in embedded.redundant]
    M = [[nodes["M"][i, j] for j in range(n_u)] for i in range(n_u)]
    A = [[nodes["A"][active.rows[k], j] for j in range(n_u)] for k in kept]
    G = [force_rows(system, active)[k] for k in kept]
    free = solve_symmetric(M, applied_forces(system, active))[0]
    yields = [solve_symmetric(M, row)[0] for row in G]
    zero = system.graph.zero
    K = [[_product(row, column, zero) for column in yields] for row in A]
    right = [-nodes["gamma"][active.rows[k]] - _product(row, free, zero) for k, row in zip(kept, A, strict=True)]
    if active.sliding:
        solved = solve_general(K, right, _numbers(system, active, kept, samples), [K[k][k] for k in range(len(K))])[0]
    else:
        solved = solve_symmetric(K, right)[0]
    accelerations = [a + _product(solved, [row[j] for row in yields], zero) for j, a in enumerate(free)]
    values = dict(zip(kept, solved, strict=True))
    factors = eliminate_active_rows(system, active, samples, embedded.chart).factors
    multipliers, left_open = all_multipliers(
        system, active, factors, [values.get(k, zero) for k in range(len(active.rows))], accelerations, samples
    )
    mode = replace(embedded, accelerations=accelerations, multipliers=multipliers, open_forces=left_open)
    return with_bearing_loads(system, active, mode)


def _numbers(system: UnconstrainedSystem, active: ActiveSet, kept: Sequence[int], samples: dict[str, Floats]) -> Floats:
    """Return ``A M⁻¹ Gᵀ`` at the samples, shape (n, m, m)."""
    n_u = system.n_speeds
    rows, M = [active.rows[k] for k in kept], samples["M"][:, :n_u, :n_u]
    forces = force_samples(system, active, samples, np.ones_like(column_scale(M)))[:, list(kept)]
    found: Floats = samples["A"][:, rows, :n_u] @ np.linalg.solve(M, np.swapaxes(forces, 1, 2))
    return found


def _product(a: Sequence[Node], b: Sequence[Node], zero: Node) -> Node:
    total = zero
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


# -- The two programs of a mode: ``rhs`` for the stages of a step, ``full`` for its ends ---------------------
#
# ``rhs`` gives the state's derivative. ``full`` adds the speeds with the dependent ones recomputed, the smallest
# scaled pivot, guard values, their slopes along the flow, and all multipliers (docs/theory.md, "Programs").


class Evaluates(Protocol):
    """Evaluates named outputs over many states at once: a straight-line program, or a substitute."""

    def evaluate(self, t: Any, x: Any, c: Any, only: Only | None = None) -> Mapping[str, Floats]:
        """Return the outputs with the leading axes of ``t`` (…,), ``x`` (…, n_x) and ``c`` (…, n_c).

        Of ``only`` some, the others may be left out.
        """
        ...  # pragma: no cover


class RunnableMode(Protocol):
    """Interface for running a mode and reading its runs: a mode's programs, or a mode embedded online."""

    @property
    def states(self) -> tuple[int, ...]:
        """Return the contact state codes."""

    @property
    def guards(self) -> Sequence[Guard]:
        """Return the guards of the mode."""

    @property
    def full(self) -> Evaluates:
        """Return the program of derivative, speeds, pivot, guards, slopes and multipliers."""

    @property
    def indeterminate(self) -> tuple[int, ...]:
        """Return the rows with multipliers exchangeable for others."""


@dataclass(frozen=True)
class ModePrograms:
    """One mode in one chart, as data."""

    states: tuple[int, ...]
    chart: tuple[tuple[int, int], ...]
    independent: tuple[int, ...]
    redundant: tuple[int, ...]
    indeterminate: tuple[int, ...]  # rows with exchangeable multipliers: the minimum-norm ones are reported
    guards: tuple[Guard, ...]
    rhs: Program
    full: Program

    @cached_property
    def enclosure(self) -> EnclosureCode | None:
        """The code for enclosures of the guards, None if there is none."""
        return enclosure_code(self.full, "guards")

    def shares_in_space(self, contacts: Sequence[ContactInfo]) -> bool:
        """Whether contacts that stick in space exchange forces.

        Their laws are cones, which no elimination frees of the shares; here they are asked of the least forces, while
        online embedding asks for any shares within all cones.
        """
        circles = {guard.subject for guard in self.guards if guard.quantity is GuardQuantity.FRICTION_CIRCLE}
        rows = [{contacts[k].normal_row, *contacts[k].tangent_rows} for k in circles]
        return any(own.intersection(self.indeterminate) for own in rows)

    def least_forces_slip(self, contacts: Sequence[ContactInfo], t: float, x: Floats, context: Floats) -> bool:
        """Whether contacts exchange forces in space, and the least forces at a state leave a cone."""
        if not self.shares_in_space(contacts):
            return False
        values = self.full.evaluate(t, x, context)["guards"]
        circles = [k for k, guard in enumerate(self.guards) if guard.quantity is GuardQuantity.FRICTION_CIRCLE]
        return bool(values[circles].min() < 0.0)


def derive_mode(
    system: UnconstrainedSystem,
    states: Sequence[int],
    leaving: Sequence[int],
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None = None,
    together: bool = False,
) -> ModePrograms:
    """Derive the programs of the mode with contact codes ``states``.

    ``leaving``, indices of the user-defined transitions out of this mode. ``samples``, the terms at sampled states
    (leading axis), the first the present one; see :func:`embed`. ``chart``, the elimination order to use, None to
    choose it. ``together``, whether accelerations and multipliers are solved for together instead of embedding.
    """
    with system.graph.scratch():
        return _derive_mode(system, states, leaving, samples, chart, together)


def chart_with(
    system: UnconstrainedSystem,
    states: Sequence[int],
    samples: dict[str, Floats],
    independent: Sequence[str],
    where: Location,
) -> tuple[tuple[int, int], ...]:
    """Return the elimination order of a mode with some speeds independent.

    ``states``: contact state codes. ``samples``, shape (samples, ...): the terms at states near the start, that first;
    see :func:`fsm_dyn.derive.embedding.embed`. ``independent``: names of speeds. ``where``: of the mode, for errors.
    Raises ModelError: one is no speed, or the rows cannot be solved for the other speeds at the start.
    """
    known = system.layout.u
    for name in independent:
        if name not in known:
            raise ModelError(f"{name!r} is no speed", where, found=name, allowed=", ".join(known),
                             remedy=did_you_mean(name, known))  # fmt: skip
    active = ActiveSet.of(system, states)
    with system.graph.scratch():
        most = eliminate_active_rows(system, active, samples, None).factors.pivots
        free = [known.index(name) for name in independent]
        found = eliminate_active_rows(system, active, samples, None, free=free).factors.pivots
    if len(found) < len(most):
        others = ", ".join(name for name in known if name not in independent)
        raise ModelError(
            f"the rows of the mode cannot be solved for {others or 'no speed'} at the start",
            where, found=f"independent: [{', '.join(independent)}]",
            remedy=f"name others, {len(known) - len(most)} at most, from which these follow",
        )  # fmt: skip
    return tuple((active.rows[row], column) for row, column in found)


def _derive_mode(
    system: UnconstrainedSystem,
    states: Sequence[int],
    leaving: Sequence[int],
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None,
    together: bool,
) -> ModePrograms:
    active = ActiveSet.of(system, states)
    embedded = embed_cheapest(system, active, samples, chart)
    if together:
        embedded = by_multipliers(system, active, embedded, samples)
    pairs, signs = contact_guards(system, states, embedded)
    pairs += transition_guards(system, leaving)
    u = [system.symbols[name] for name in system.layout.u]
    replace = {u[j]: node for j, node in enumerate(embedded.speeds) if node is not u[j]}
    q_dot = substitute(list(system.nodes["q_dot"]), replace)
    values = substitute([node for _, node in pairs], replace)
    slopes = tangent(values, flow(system, q_dot, embedded))
    x_dot = np.array([*q_dot, *embedded.accelerations], dtype=object)
    full = {
        "x_dot": x_dot,
        "u": np.array(embedded.speeds, dtype=object),
        "pivot": np.array([smallest(system, [*embedded.pivots, *substitute(signs, replace)])], dtype=object),
        "guards": np.array(values, dtype=object),
        "slopes": np.array(slopes, dtype=object),
        "multipliers": np.array(embedded.multipliers, dtype=object),
    }
    return ModePrograms(
        tuple(states),
        embedded.chart,
        embedded.independent,
        embedded.redundant,
        embedded.open_forces.rows,
        tuple(guard for guard, _ in pairs),
        Program.from_nodes(system.layout, {"x_dot": x_dot}),
        Program.from_nodes(system.layout, full),
    )


def flow(system: UnconstrainedSystem, q_dot: Sequence[Node], embedded: EmbeddedMode) -> dict[Node, Node]:
    """Seeds of the tangent sweep along the mode's motion: t, q, u and inputs at their rates."""
    symbols = system.symbols
    seeds = {symbols["t"]: system.graph.constant(1.0)}
    seeds |= {symbols[name]: rate for name, rate in zip(system.layout.q, q_dot, strict=True)}
    seeds |= {symbols[name]: rate for name, rate in zip(system.layout.u, embedded.accelerations, strict=True)}
    for name in system.layout.w:
        seeds[symbols[name]] = symbols[f"{name}.rate"]
        seeds[symbols[f"{name}.rate"]] = symbols[f"{name}.rate2"]
        seeds[symbols[f"{name}.rate2"]] = symbols[f"{name}.rate3"]
    return seeds


def smallest(system: UnconstrainedSystem, pivots: Sequence[Node]) -> Node:
    """The smallest scaled pivot, 1 without elimination."""
    result = system.graph.constant(1.0)
    for pivot in pivots:
        result = functions.minimum(result, pivot)
    return result


# -- Matrices of a mode for reading --------------------------------------------------------------------------
#
# M, forces, constraint rows and their bases of embedding, partial velocities. They are formed on demand; a run
# evaluates the mode's own programs (:mod:`fsm_dyn.derive.mode_programs`).

Nodes = npt.NDArray[np.object_]


def active_rows(system: UnconstrainedSystem, states: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of a mode's active rows, in the order of the matrices."""
    return ActiveSet.of(system, states).rows


def mode_matrices(
    system: UnconstrainedSystem, states: Sequence[int], chart: Sequence[tuple[int, int]], geometry: Program
) -> Program:
    """Return a program of a mode's matrices, for n_u declared speeds, p independent ones and m rows.

    Outputs, in the letters of docs/theory.md:

    - ``q_dot`` (n_q,): ``q̇ = W u + X``;
    - ``M`` (n_u, n_u), ``f`` (n_u,): ``M u̇ = f + G λ``; ``f`` with the contact forces known beforehand,
      ``contact_forces`` (n_u,);
    - ``A`` (m, n_u), ``b``, ``gamma`` (m,): ``A u + b = 0``, ``A u̇ + gamma = 0``; ``G`` (n_u, m);
    - ``T`` (n_u, p), ``e`` (n_u,): ``u = T u_I + e``; ``S`` (n_u, p): ``Sᵀ G = 0``, equal to T without sliding
      contacts; ``c`` (n_u,): ``u̇ = T u̇_I + c``;
    - ``N``, ``N_test`` (n_u, m): ``u = T u_I + e + N v`` for other values v of the rows, and ``N_testᵀ G = 1``;
    - ``point_velocities`` (n_points, n_u, 3), ``angular_velocities`` (n_frames, n_u, 3): partial velocities, components
      in N.

    ``system``: its graph receives further nodes: not the sealed one of an automaton; ``states``, ``chart``: contact
    state codes and elimination order of the mode; ``geometry``: positions of points and directions of frames
    (:attr:`Automaton.geometry`).
    """
    n_u, zero = system.n_speeds, system.graph.zero
    active = ActiveSet.of(system, states)
    A, H = [list(system.nodes["A"][r, :n_u]) for r in active.rows], force_rows(system, active)
    local = {row: k for k, row in enumerate(active.rows)}
    order = [(local[row], column) for row, column in chart]
    unused = np.zeros((1, len(A), n_u))  # the order is known: no samples for its choice
    factors, transposed = (eliminate(rows, unused, range(n_u), order) for rows in (A, H))
    independent = tuple(j for j in range(n_u) if j not in factors.columns)
    T = free_motion_basis(factors, n_u, independent, zero)
    rows = list(active.rows)
    b, gamma = system.nodes["b"][rows], system.nodes["gamma"][rows]
    contact = applied_forces(system, active, [zero] * n_u)
    velocities, spins = _partial_velocities(system, geometry)
    return Program.from_nodes(
        system.layout,
        {
            "q_dot": system.nodes["q_dot"],
            "M": system.nodes["M"][:n_u, :n_u],
            "f": _table(applied_forces(system, active), (n_u,)),
            "contact_forces": _table(contact, (n_u,)),
            "A": _table(A, (len(A), n_u)),
            "b": b,
            "gamma": gamma,
            "G": _table(H, (len(A), n_u)).T,
            "T": _table(T, (n_u, len(independent))),
            "e": _column(factors.solve([-node for node in b]), n_u, zero),
            "S": _table(
                free_motion_basis(transposed, n_u, independent, zero) if active.sliding else T, (n_u, len(independent))
            ),
            "c": _column(factors.solve([-node for node in gamma]), n_u, zero),
            "N": _inverse(factors, len(A), n_u, system.graph),
            "N_test": _inverse(transposed, len(A), n_u, system.graph),
            "point_velocities": velocities,
            "angular_velocities": spins,
        },
    )


def _inverse(factors: Factors, m: int, n: int, graph: ExpressionGraph) -> Nodes:
    """Return the inverse of the eliminated columns of m rows, shape (n, m), zero for the other columns."""
    units = [[graph.one if k == r else graph.zero for k in range(m)] for r in range(m)]
    return _table([_column(factors.solve(unit), n, graph.zero) for unit in units], (m, n)).T


def _partial_velocities(system: UnconstrainedSystem, geometry: Program) -> tuple[Nodes, Nodes]:
    """Return the derivatives of positions and directions along each column of W; ``ω× = Ṙ Rᵀ``."""
    _, outputs = geometry.nodes(system.graph)
    points, frames, n_u = outputs["points"], outputs["frames"], system.n_speeds
    q = [system.symbols[name] for name in system.layout.q]
    velocities: Nodes = np.empty((len(points), n_u, 3), dtype=object)
    spins: Nodes = np.empty((len(frames), n_u, 3), dtype=object)
    for s in range(n_u):
        along = dict(zip(q, system.nodes["W"][:, s], strict=True))
        velocities[:, s] = np.array(tangent(list(points.ravel()), along), dtype=object).reshape(points.shape)
        rates = np.array(tangent(list(frames.ravel()), along), dtype=object).reshape(frames.shape)
        for k, (R, dR) in enumerate(zip(frames, rates, strict=True)):
            spins[k, s] = [_dot(dR[2], R[1]), _dot(dR[0], R[2]), _dot(dR[1], R[0])]
    return velocities, spins


def _dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _table(entries: Sequence[Any], shape: tuple[int, ...]) -> Nodes:
    table: Nodes = np.empty(shape, dtype=object)
    table[...] = np.array(entries, dtype=object).reshape(shape)
    return table


def _column(values: dict[int, Node], size: int, zero: Node) -> Nodes:
    return _table([values.get(j, zero) for j in range(size)], (size,))
