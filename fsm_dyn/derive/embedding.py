"""Constraint embedding of one active set: independent speeds, reduced equations, multipliers, redundancy."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import RANK, Factors, eliminate, independent_rows, solve_symmetric
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem
from fsm_dyn.language.scales import Units
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import substitute

# -- Limits of forces that contacts share ----------------------------------------------------------------------


NOTHING = 1e-9  # an entry of N below this is zero
SIGN = 1e-6  # relative to the largest entry next to it, or 1: an entry of N so far beyond zero has changed its sign
MOST_LIMITS = 4096  # six contacts on one line take 111; a mode with more is refused, not truncated


@dataclass(frozen=True)
class Limit:
    """One law on the multipliers, ``value >= 0``, with its (event, contact, direction).

    ``open_part`` (k nodes) and ``numbers`` (k,): derivatives by the indeterminate multipliers.
    """

    value: Node
    open_part: tuple[Node, ...]
    numbers: tuple[float, ...]
    members: frozenset[tuple[int, int, float]]


class TooManyLimitsError(ModelError):
    """Contacts of a mode share their forces in more ways than are listed: only online embedding evaluates it."""


def determinate_limits(limits: Sequence[Limit], count: int) -> tuple[list[Limit], list[Node]]:
    """Eliminate the ``count`` indeterminate multipliers from the laws.

    A law composed of more than j + 1 others after j eliminations follows from simpler ones (Chernikov), and so does one
    with both directions of a contact's friction. ``limits``: the laws, each with ``count`` derivatives. Returns the
    remaining laws; for every coefficient whose sign they depend on, 1 while it has the sign of its number, else 0: two
    laws limit each other only with opposite signs, so with another sign the mode has other limits. Raises
    TooManyLimitsError: the redundant contacts have more than ``MOST_LIMITS`` limits.
    """
    current, signs = list(limits), list[Node]()
    for j in range(count):
        signs += _kept_signs(current, j)
        above = [limit for limit in current if limit.numbers[j] > NOTHING]
        below = [limit for limit in current if limit.numbers[j] < -NOTHING]
        current = [limit for limit in current if abs(limit.numbers[j]) <= NOTHING]
        for up in above:
            for down in below:
                members = up.members | down.members
                subjects = {(event, subject) for event, subject, _ in members}
                if len(members) <= j + 2 and len(subjects) == len(members):
                    current.append(_combined(up, down, j, members))
            if len(current) > MOST_LIMITS:
                contacts = {contact for limit in limits for _, contact, _ in limit.members}
                raise TooManyLimitsError(
                    "the contacts of a mode share their forces in more ways than can be listed",
                    found=f"more than that of {len(contacts)} contacts, {count} of their forces not determined",
                    allowed=f"{MOST_LIMITS} limits",
                    remedy="simulate(..., strategy='online') needs no list; or omit redundant contacts",
                )
    return current, signs


def _kept_signs(limits: Sequence[Limit], j: int) -> list[Node]:
    """For each law, 1 where its coefficient of multiplier ``j`` has the sign of its number, else 0.

    Infinite friction has no limit, and takes no part in the elimination.
    """
    finite = [limit for limit in limits if math.isfinite(limit.numbers[j])]
    allowed = SIGN * max([1.0, *(abs(limit.numbers[j]) for limit in finite)])
    signs = []
    for limit in finite:
        node, number = limit.open_part[j], limit.numbers[j]
        if node.constant_value is None:
            beyond = functions.absolute(node) if abs(number) <= NOTHING else -node if number > 0.0 else node
            signs.append(functions.where(functions.compare("<=", beyond, allowed), 1.0, 0.0))
    return signs


def _combined(up: Limit, down: Limit, j: int, members: frozenset[tuple[int, int, float]]) -> Limit:
    a, b = -down.open_part[j], up.open_part[j]
    x, y = -down.numbers[j], up.numbers[j]
    return Limit(
        a * up.value + b * down.value,
        tuple(a * p + b * q for p, q in zip(up.open_part, down.open_part, strict=True)),
        tuple(x * p + y * q for p, q in zip(up.numbers, down.numbers, strict=True)),
        members,
    )


# -- Embedding of one active set -------------------------------------------------------------------------------


Nodes: TypeAlias = Sequence[Node]

# -- Indeterminate multipliers of a mode with redundant constraint rows --------------------------------------
#
# With redundant contacts (a block on two sticking corners) the multipliers are ``λ + N s`` for any ``s``: N spans the
# forces without effect on the motion. The share of a single contact is indeterminate; the existence of *some* shares
# within all contact laws is not. The laws are inequalities ``c_i + d_i·s >= 0``, and the elimination of ``s`` (Fourier
# and Motzkin) leaves the determinate limits: for the block, the sum of both friction forces stays below the sum of both
# bounds. At such a limit every law in it is at its own limit. If the contacts slide in different directions (a brick
# turning on a table) the motion depends on their shares. They are then those of equal springs, of least norm
# (docs/theory.md, "Shares that the motion depends on").

CHANGES_MOTION = 1e-4  # relative to the forces of rows: a larger resultant of redundant ones changes the motion
MARGIN = 3.0  # times that, up to which a mode derived without an effect continues: its measure sums over speeds
CLOSING_STEPS = 20
CLOSED = 1e-10


@dataclass(frozen=True)
class IndeterminateForces:
    """N: a list of nodes per indeterminate multiplier, one per row, and its values with closed contacts of the mode."""

    vectors: tuple[tuple[Node, ...], ...] = ()
    numbers: Floats | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows whose multipliers are not determined."""
        if self.numbers is None:
            return ()
        return tuple(int(row) for row in np.flatnonzero(np.abs(self.numbers).max(axis=0) > NOTHING))


@dataclass(frozen=True)
class LeastNormShares:
    """Forces of the redundant rows of a mode whose shares of the load affect the motion.

    With these rows ``A_D = R A_K``, and R without constraint rows, ``R'``, equal springs carry ``λ_D = R' λ_K``.  In
    terms of the pushes ``ν = λ_K + Rᵀ λ_D`` on the rows kept this is ``λ_D = C ν``, ``(1 + R' Rᵀ) C = R'``.

    ``parts``: R, by redundant row (position among the active rows) and row kept; ``shares``: C likewise. ``numbers``: R
    and C at the samples of the mode, shapes (n_samples, m, m).
    """

    parts: Mapping[int, Mapping[int, Node]]
    shares: Mapping[int, Mapping[int, Node]]
    numbers: tuple[Floats, Floats]

    def force_rows(self, rows: Sequence[Sequence[Node]], samples: Floats) -> tuple[list[list[Node]], Floats]:
        """Return Gᵀ (m, n_u) of the pushes, and its samples, from those of the forces."""
        changed = [list(row) for row in rows]
        for dropped, parts in self.parts.items():
            friction = list(rows[dropped])
            for kept, part in parts.items():
                friction = [a - part * b for a, b in zip(friction, rows[kept], strict=True)]
            for kept, share in self.shares[dropped].items():
                changed[kept] = [a + share * b for a, b in zip(changed[kept], friction, strict=True)]
        combined, shares = self.numbers
        numbers = np.einsum("sdj,sdk->skj", samples - combined @ samples, shares)
        return changed, samples + numbers

    def forces(self, pushes: Sequence[Node]) -> list[Node]:
        """Return the forces of all rows held, from the pushes on those kept and zeros for the redundant ones."""
        result = list(pushes)
        for dropped, shares in self.shares.items():
            for kept, share in shares.items():
                result[dropped] = result[dropped] + share * pushes[kept]
        for dropped, parts in self.parts.items():
            for kept, part in parts.items():
                result[kept] = result[kept] - part * result[dropped]
        return result


def least_norm_shares(
    system: UnconstrainedSystem,
    factors: Factors,
    rows: Sequence[int],
    sliding: Sequence[tuple[int, int]],
    samples: tuple[Floats, Floats, Floats],
) -> LeastNormShares:
    """Find redundant rows whose friction affects the motion, and their shares of the forces of the rows kept.

    ``rows``, the active rows, as numbers in the system. ``sliding``, normal row and contact of each sliding contact
    with a normal force. ``samples``, shapes (n_samples, m, n_u), (n_samples, m, n_u), (n_samples, n_contacts): a, Gᵀ
    (scaled speeds) and coefficients of kinetic friction; the first sample is the present state.
    """
    A, H, kinetic = samples
    kept, count, zero = [row for row, _ in factors.pivots], len(rows), system.graph.zero
    combined = np.zeros((len(A), count, count))
    for k, sample in enumerate(A):
        for dropped in factors.dropped:
            combined[k, dropped, kept] = np.linalg.lstsq(sample[kept].T, sample[dropped], rcond=None)[0]
    turning = [
        rows.index(row)
        for row, contact in sliding
        if len(system.contacts[contact].tangent_rows) > 1 and kinetic[:, contact].any()
    ]
    shared = _rows_that_share(combined[0], H[0], factors.dropped, turning)
    contacts = {row for contact in system.contacts for row in (contact.normal_row, *contact.tangent_rows)}
    parts, springs = {}, {}
    for d in shared:
        vector = _null_vector(factors, d, count, zero)
        parts[d] = {k: -vector[k] for k in kept if not vector[k].is_zero}
        # contacts are equal springs, constraint rows are rigid relative to them
        springs[d] = {k: part for k, part in parts[d].items() if rows[d] not in contacts or rows[k] in contacts}
    return LeastNormShares(parts, _solved_shares(parts, springs, zero), _sampled_shares(combined, springs))


def _rows_that_share(combined: Floats, H: Floats, dropped: Sequence[int], turning: Sequence[int]) -> list[int]:
    """Return the redundant rows whose shares affect the motion, and those sharing forces with them.

    ``combined`` (m, m): the redundant rows in terms of the rows kept; ``turning``: rows of contacts with a slip
    direction that varies with the motion.
    """
    null = np.eye(len(combined)) - combined
    supports = np.abs(null) > NOTHING
    effect = np.abs(null @ H).max(axis=1, initial=0.0) > CHANGES_MOTION * np.abs(H).max(initial=0.0)
    shared = {d for d in dropped if effect[d] or supports[d, list(turning)].any()}
    for _ in dropped:
        union = supports[list(shared)].any(axis=0)
        shared |= {d for d in dropped if (supports[d] & union).any()}
    return sorted(shared)


def _solved_shares(
    parts: Mapping[int, Mapping[int, Node]], springs: Mapping[int, Mapping[int, Node]], zero: Node
) -> dict[int, dict[int, Node]]:
    """Solve ``(1 + R' Rᵀ) C = R'`` for C."""
    order, one = list(springs), zero.graph.one
    matrix = [
        [
            sum((springs[d][k] * parts[e][k] for k in springs[d] if k in parts[e]), one if d == e else zero)
            for e in order
        ]
        for d in order
    ]
    shares: dict[int, dict[int, Node]] = {d: {} for d in order}
    for k in sorted({k for d in order for k in springs[d]}):
        column, _ = solve_symmetric(matrix, [springs[d].get(k, zero) for d in order])
        for d, share in zip(order, column, strict=True):
            shares[d][k] = share
    return shares


def _sampled_shares(combined: Floats, springs: Mapping[int, Mapping[int, Node]]) -> tuple[Floats, Floats]:
    """Return samples of R and C, zero for rows without shares."""
    R, C, order = np.zeros_like(combined), np.zeros_like(combined), list(springs)
    R[:, order] = combined[:, order]
    yielding = R.copy()
    for d in order:
        yielding[:, d, [k for k in range(R.shape[1]) if k not in springs[d]]] = 0.0
    C[:, order] = np.linalg.solve(np.eye(R.shape[1]) + yielding @ R.transpose(0, 2, 1), yielding)[:, order]
    return R, C


def _null_vector(factors: Factors, dropped: int, count: int, zero: Node) -> list[Node]:
    """Return the vanishing combination (count nodes) of the eliminated rows, with factor one for the row dropped."""
    local = [zero] * count
    local[dropped] = zero.graph.constant(1.0)
    for row, pivot_row, factor in reversed(factors.steps):
        local[pivot_row] = local[pivot_row] - factor * local[row]
    return local


def indeterminate_forces(
    system: UnconstrainedSystem,
    factors: Factors,
    rows: Sequence[int],
    friction: Mapping[int, Sequence[tuple[int, Node]]],
    place: tuple[float, Floats, Floats],
    shared: Collection[int] = (),
) -> IndeterminateForces:
    """Find N from the elimination of Gᵀ, whose rows ``rows`` (numbers in the system) were dropped in part.

    ``friction`` gives, for the normal row of each sliding contact, its tangent rows and their forces in units of it.
    ``shared``: dropped rows (positions in ``rows``) whose forces are determined (:class:`LeastNormShares`).
    """
    open_rows = [row for row in factors.dropped if row not in shared]
    if not open_rows:
        return IndeterminateForces()
    zero = system.graph.constant(0.0)
    vectors = []
    for dropped in open_rows:
        local = _null_vector(factors, dropped, len(rows), zero)
        vector = [zero] * len(system.rows)
        for row, node in zip(rows, local, strict=True):
            vector[row] = node
        for row, parts in friction.items():
            for tangent, part in parts:
                vector[tangent] = part * vector[row]
        vectors.append(tuple(vector))
    return IndeterminateForces(tuple(vectors), _evaluate(system, np.array(vectors, dtype=object), place))


def _evaluate(system: UnconstrainedSystem, nodes: npt.NDArray[Any], place: tuple[float, Floats, Floats]) -> Floats:
    t, x, c = place
    values: Floats = Program.from_nodes(system.layout, {"value": nodes}).evaluate(t, x, c)["value"]
    return values


def minimum_norm(multipliers: Sequence[Node], forces: IndeterminateForces, zero: Node) -> list[Node]:
    """The multipliers of least norm among all with the same effect."""
    result = list(multipliers)
    if not forces.vectors:
        return result

    parts = [{k: entry for k, entry in enumerate(vector) if not entry.is_zero} for vector in forces.vectors]  # few

    def product(a: Mapping[int, Node], b: Sequence[Node]) -> Node:
        total = zero
        for k, entry in a.items():
            total = total + entry * b[k]
        return total

    gram = [[product(a, b) for b in forces.vectors] for a in parts]
    shares, _ = solve_symmetric(gram, [product(a, multipliers) for a in parts])
    for share, part in zip(shares, parts, strict=True):
        for k, entry in part.items():
            result[k] = result[k] - share * entry
    return result


def closed_place(
    configuration: Program,
    rows: Sequence[int],
    t: float,
    x: Floats,
    c: Floats,
    units: Units,
    quaternions: Sequence[int],
) -> Floats:
    """Return the state with the configuration brought onto ``rows``; unchanged without convergence.

    Indeterminate forces are a property of configurations with touching contacts of the mode.
    """
    place = x.copy()
    closed = configuration.part({"residual": rows, "jacobian": rows})
    sizes = units.rows[list(rows)] * units.scales.length
    for _ in range(CLOSING_STEPS):
        values = closed.evaluate(t, place, c)
        residual = values["residual"] / sizes
        jacobian = values["jacobian"] / sizes[:, None] * units.q
        if not np.isfinite(residual).all() or not np.isfinite(jacobian).all():
            return x
        if np.abs(residual).max(initial=0.0) < CLOSED:
            return place
        place[: len(units.q)] -= units.q * np.linalg.lstsq(jacobian, residual, rcond=1e-9)[0]
        for first in quaternions:
            place[first : first + 4] /= np.linalg.norm(place[first : first + 4])
    return x


# -- Constraint embedding of one active set ------------------------------------------------------------------
#
# Independent speeds, reduced equations, multipliers.
#
# With the active rows ``A u + b = 0`` split into dependent and independent columns, ``u = T u_I + e`` and a test
# basis ``S`` with ``Sᵀ G = 0`` give ``(Sᵀ M T) u̇_I = Sᵀ (f - M c)``: Gillespie (2003) eqs (3)-(5) and (44)-(46). The
# multipliers follow from the dependent rows, ``G_Dᵀ``-transposed solve of ``(M u̇ - f)_D``.

ROUNDING = 1e-13  # an entry this much smaller than its row is at configurations nearby counts as zero
NO_INERTIA = 1e-12  # a part of the scaled mass matrix this small is zero
REDUNDANT = 1e-6  # relative remainder; a row above it is not redundant (any more)


@dataclass(frozen=True)
class ActiveSet:
    """The active set of a mode.

    ``rows`` are the active rows (``A u + b = 0``); ``sliding`` maps the normal row of a sliding contact to its contact
    index; ``slipping`` lists sliding contacts with a friction force known beforehand, ``under`` slots sliding on the
    other face, ``pressed`` compressed compliant contacts.
    """

    rows: tuple[int, ...]
    sliding: tuple[tuple[int, int], ...] = ()
    slipping: tuple[int, ...] = ()
    under: tuple[int, ...] = ()
    pressed: tuple[int, ...] = ()

    def friction(self, system: UnconstrainedSystem, contact: int) -> list[tuple[int, Node]]:
        """Tangent rows and their friction forces in units of the normal multiplier: reversed on a slot's other face."""
        ratio = system.nodes["kinetic"][contact]
        sign = 1.0 if contact in self.under else -1.0
        return [(row, sign * (ratio * part)) for row, part in system.slip_directions(contact)]

    @classmethod
    def of(cls, system: UnconstrainedSystem, states: Sequence[int]) -> ActiveSet:
        """The active set of a vector of contact state codes; constraints are always active."""
        rows = [i for i, row in enumerate(system.rows) if row.role in ("velocity", "position")]
        sliding, slipping, under, pressed = [], [], [], []
        for index, code in enumerate(states):
            if not code:
                continue
            contact = system.contacts[index]
            if contact.contact_law.compliant:
                pressed.append(index)
                rows += contact.tangent_rows if code == 1 else ()
                slipping += [index] if code == 2 else []
            elif code == 1:
                rows += [r for r in (contact.normal_row, *contact.tangent_rows) if r >= 0]
            elif code == 2 and contact.contact_law.friction_only:
                slipping.append(index)
            elif code >= 2:
                rows.append(contact.normal_row)
                sliding.append((contact.normal_row, index))
                under += [index] if code == 3 else []
        return cls(tuple(rows), tuple(sliding), tuple(slipping), tuple(under), tuple(pressed))


@dataclass(frozen=True)
class EmbeddedMode:
    """An active set embedded.

    ``speeds`` (n_u,): all speeds in terms of the independent ones; ``accelerations`` (n_u,); ``multipliers`` (n_rows,),
    zero for rows not active; ``pivots``: the scaled pivots of the chart; ``chart``: (row, column) pairs; ``redundant``:
    rows linearly dependent on others.
    """

    speeds: list[Node]
    accelerations: list[Node]
    multipliers: list[Node]
    pivots: list[Node]
    chart: tuple[tuple[int, int], ...]
    independent: tuple[int, ...]
    redundant: tuple[int, ...]
    reduced_mass: list[list[Node]]
    reduced_force: list[Node]
    open_forces: IndeterminateForces
    static: Floats  # (n_contacts,), at touching contacts of the mode


def embed(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None = None,
    held: EliminatedRows | None = None,
) -> EmbeddedMode:
    """Embed ``active`` in the unconstrained system.

    ``samples``: the terms evaluated at sampled states with a leading sample axis; the first sample is the present
    state. ``chart``, pairs (row, dependent column): elimination order to reproduce; chosen from the samples if None.
    ``held``: the result of :func:`eliminate_active_rows`, if already known.
    """
    n_u, n_rows = system.n_speeds, len(system.rows)
    zero = system.graph.constant(0.0)
    M = [[system.nodes["M"][i, j] for j in range(n_u)] for i in range(n_u)]
    f = applied_forces(system, active)
    scale = column_scale(samples["M"][:, :n_u, :n_u])
    H, partner = force_rows(system, active), force_samples(system, active, samples, scale)
    held = held or eliminate_active_rows(system, active, samples, chart, partner if active.sliding else None)
    factors, numbers, dependent = held.factors, held.numbers, held.factors.columns
    independent = tuple(j for j in range(n_u) if j not in dependent)
    T = free_motion_basis(factors, n_u, independent, zero)
    e = factors.solve([-system.nodes["b"][r] for r in active.rows])
    c = factors.solve([-system.nodes["gamma"][r] for r in active.rows])
    u = [system.symbols[name] for name in system.layout.u]
    speeds = _all_rates([u[i] for i in independent], T, e, independent, dependent)

    # both A_D and G_D are divided by, so both influence the chart and its pivots
    transposed, S, pivots, shares, guide = factors, T, held.pivots, None, None
    if active.sliding:
        known = numbers, partner, samples["kinetic"]
        shares = least_norm_shares(system, factors, active.rows, active.sliding, known)
        if _unlike_friction(system, active, samples):
            size = float(np.abs(partner[0]).max(initial=0.0))
            pivots = pivots + _still_without_effect(M, factors, H, shares.parts, size)
        H, partner = shares.force_rows(H, partner)
        transposed = eliminate(H, partner, factors.columns, factors.pivots)
        S = free_motion_basis(transposed, n_u, independent, zero)
        pivots += _scaled_pivots(system, H, M, transposed)
        guide = _reduced_numbers(numbers, partner, samples["M"], scale, factors, independent)
    drift = [_sum([M[i][j] * c[j] for j in dependent], zero) for i in range(n_u)]
    reduced_mass, reduced_force = _reduced_equations(M, [f[i] - drift[i] for i in range(n_u)], T, S, zero)
    solution, mass_pivots = _solve_reduced(reduced_mass, reduced_force, guide, [M[i][i] for i in independent])

    accelerations = _all_rates(solution, T, c, independent, dependent)
    values = _row_multipliers(system, active, transposed, accelerations, zero)
    multipliers, left_open = all_multipliers(system, active, transposed, values, accelerations, samples, shares)

    replace = {u[j]: speeds[j] for j in dependent}
    flat = substitute([*accelerations, *multipliers, *reduced_force], replace)
    pivots = substitute(pivots + mass_pivots, replace)
    return EmbeddedMode(
        speeds=speeds,
        accelerations=flat[:n_u],
        multipliers=flat[n_u : n_u + n_rows],
        pivots=pivots,
        chart=tuple((active.rows[row], column) for row, column in factors.pivots),
        independent=independent,
        redundant=tuple(active.rows[row] for row in factors.dropped),
        reduced_mass=reduced_mass,
        reduced_force=flat[n_u + n_rows :],
        open_forces=left_open,
        static=samples["static"][0],
    )


def _reduced_equations(
    M: Sequence[Nodes], force: Nodes, T: Sequence[Nodes], S: Sequence[Nodes], zero: Node
) -> tuple[list[list[Node]], list[Node]]:
    """Return mass matrix and force along the free motion: ``S^T M T`` and ``S^T`` times the force."""
    n_u, n_free = len(M), len(T[0]) if T else 0
    tied = [[j for j in range(n_u) if not M[i][j].is_zero] for i in range(n_u)]
    moved = [[i for i in range(n_u) if not S[i][a].is_zero] for a in range(n_free)]
    MT = [[_sum([M[i][j] * T[j][k] for j in tied[i]], zero) for k in range(n_free)] for i in range(n_u)]
    mass = [[_sum([S[i][a] * MT[i][k] for i in moved[a]], zero) for k in range(n_free)] for a in range(n_free)]
    return mass, [_sum([S[i][a] * force[i] for i in range(n_u)], zero) for a in range(n_free)]


def _solve_reduced(
    mass: list[list[Node]], force: list[Node], guide: Floats | None, diagonal: Nodes
) -> tuple[list[Node], list[Node]]:
    """Return the rates of the independent speeds and the pivots; with sliding the mass matrix is not symmetric.

    ``guide``: its values at samples, by which pivots are chosen then; ``diagonal``: that of the unreduced one.
    """
    if guide is not None:
        return solve_general(mass, force, guide, [_weight(node) for node in diagonal])
    solution, pivots = solve_symmetric(mass, force)
    return solution, _mass_pivots(mass, pivots)


def _all_rates(
    solution: Nodes, T: Sequence[Nodes], c: Mapping[int, Node], independent: Sequence[int], dependent: Sequence[int]
) -> list[Node]:
    """Return all speeds, or their rates, from the independent ones and the rest of the dependent ones."""
    found = {i: solution[k] for k, i in enumerate(independent)}
    for j in dependent:
        found[j] = _sum([T[j][k] * solution[k] for k in range(len(independent))], c[j])
    return [found[j] for j in range(len(found))]


@dataclass(frozen=True)
class EliminatedRows:
    """The rows a mode holds, eliminated: numbers (n_samples, m, n_u) scaled, and the scaled pivots of the chart."""

    factors: Factors
    numbers: Floats
    pivots: list[Node]


def eliminate_active_rows(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None,
    partner: Floats | None = None,
    free: Sequence[int] = (),
) -> EliminatedRows:
    """Eliminate the active rows, in the order of ``chart`` or in one chosen from the samples; see :func:`embed`.

    The speeds ``free`` are not solved for.
    """
    n_u = system.n_speeds
    A = [[system.nodes["A"][r, j] for j in range(n_u)] for r in active.rows]
    M = [[system.nodes["M"][i, j] for j in range(n_u)] for i in range(n_u)]
    scale = column_scale(samples["M"][:, :n_u, :n_u])
    numbers = samples["A"][:, list(active.rows), :n_u] * scale[:, None, :]
    size = (samples["A_size"][:, list(active.rows), :n_u] * scale[:, None, :]).max(axis=2, initial=0.0)
    numbers[np.abs(numbers) < ROUNDING * size[:, :, None]] = 0.0  # the cosine of a right angle
    local = {row: k for k, row in enumerate(active.rows)}
    order = None if chart is None else [(local[row], column) for row, column in chart]
    closed = len(samples["A"]) == 1  # a state on its rows; off them no row is redundant
    kept = independent_rows(numbers[0], size[0], REDUNDANT) if closed and order is None else None
    columns = [j for j in range(n_u) if j not in free]
    factors = eliminate(A, numbers, columns, order, partner, kept)
    pivots = _scaled_pivots(system, A, M, factors, size[0] if closed else None) + _still_redundant(M, factors, size[0])
    return EliminatedRows(factors, numbers, pivots)


def _place(samples: dict[str, Floats]) -> tuple[float, Floats, Floats]:
    return float(samples["place_t"][0]), samples["place_x"], samples["place_c"]


def _sum(terms: Sequence[Node], last: Node) -> Node:
    total = None
    for term in terms:
        if not term.is_zero:
            total = term if total is None else total + term
    if total is None:
        return last
    return total if last.is_zero else total + last


def column_scale(M: Floats) -> Floats:
    """``diag(M)^-1/2`` per sample, 1 for a massless speed: rows scaled by it do not depend on units."""
    diagonal = np.abs(np.diagonal(M, axis1=1, axis2=2))
    return np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)


def free_motion_basis(factors: Factors, n_u: int, independent: Sequence[int], zero: Node) -> list[list[Node]]:
    """T (n_u, p): the identity on independent speeds, ``-A_D⁻¹ A_I`` on dependent ones."""
    one = zero.graph.constant(1.0)
    T = [[one if j == i else zero for i in independent] for j in range(n_u)]
    for k, i in enumerate(independent):
        column = factors.substitute_back([-row[i] for row in factors.rows])
        for j, value in column.items():
            T[j][k] = value
    return T


def applied_forces(system: UnconstrainedSystem, active: ActiveSet, start: Sequence[Node] | None = None) -> list[Node]:
    """Generalized active forces of the mode: f, or ``start``, plus compliant forces and friction known beforehand."""
    n_u = system.n_speeds
    f = list(start or system.nodes["f"][:n_u])
    for index in active.pressed:
        row, force = system.contacts[index].normal_row, system.nodes["elastic"][index]
        f = [f[i] + force * system.nodes["A"][row, i] for i in range(n_u)]
    for index in active.slipping:
        bound = system.friction_bound("kinetic", index)
        for row, part in system.slip_directions(index):
            f = [f[i] - part * bound * system.nodes["A"][row, i] for i in range(n_u)]
    return f


def force_rows(system: UnconstrainedSystem, active: ActiveSet) -> list[list[Node]]:
    """Gᵀ (m, n_u): the rows held, with ``A_n - μ σ A_t`` for the normal row of a sliding contact."""
    slides, A, H = dict(active.sliding), system.nodes["A"][:, : system.n_speeds], []
    for r in active.rows:
        row = list(A[r])
        for tangent, part in active.friction(system, slides[r]) if r in slides else ():
            row = [a + part * b for a, b in zip(row, A[tangent], strict=True)]
        H.append(row)
    return H


def force_samples(system: UnconstrainedSystem, active: ActiveSet, samples: dict[str, Floats], scale: Floats) -> Floats:
    """Samples of Gᵀ in scaled speeds."""
    n_u, numbers = scale.shape[1], samples["A"][:, list(active.rows), : scale.shape[1]].copy()
    for row, contact in active.sliding:
        for i, tangent in enumerate(system.contacts[contact].tangent_rows):
            friction = samples["kinetic"][:, contact] * samples["way"][:, contact, i]
            friction = friction if contact in active.under else -friction
            numbers[:, active.rows.index(row)] += friction[:, None] * samples["A"][:, tangent, :n_u]
    return numbers * scale[:, None, :]


def _reduced_numbers(
    A: Floats, H: Floats, M: Floats, scale: Floats, factors: Factors, independent: Sequence[int]
) -> Floats:
    """Samples of ``SᵀMT`` in scaled speeds, from those of A, Gᵀ and M; least squares if a chart is singular."""
    rows, dependent = [row for row, _ in factors.pivots], list(factors.columns)
    n_u, size = A.shape[2], len(independent)
    numbers = np.empty((len(A), size, size))
    for k in range(len(A)):
        bases = []
        for matrix in (H[k], A[k]):
            basis = np.zeros((n_u, size))
            basis[list(independent), range(size)] = 1.0
            if dependent:
                block = matrix[rows]
                basis[dependent] = -np.linalg.lstsq(block[:, dependent], block[:, list(independent)], rcond=None)[0]
            bases.append(basis)
        numbers[k] = bases[0].T @ (M[k, :n_u, :n_u] * np.outer(scale[k], scale[k])) @ bases[1]
    return numbers


def solve_general(
    mass: list[list[Node]], force: list[Node], guide: Floats, weights: Sequence[Node]
) -> tuple[list[Node], list[Node]]:
    """Solve with a mass matrix made unsymmetric by friction; returns x and the scaled pivots.

    Neither its diagonal nor its pivots need be positive, without consequence for the motion (docs/theory.md,
    "Embedding").
    """
    size = len(mass)
    factors = eliminate(mass, guide, range(size))
    if len(factors.pivots) < size:  # singular at the samples: the pivots of any order will show it
        factors = eliminate(mass, guide, range(size), [(k, k) for k in range(size)])
    solution = factors.solve(force)
    pivots = []
    for row, column in factors.pivots:
        pivot = factors.rows[row][column]
        if pivot is not mass[row][column] or size > 1:
            squares = [entry * entry / weights[k] for k, entry in enumerate(mass[row]) if not entry.is_zero]
            norm = _sum(squares, weights[0].graph.constant(0.0)) * weights[column]
            pivots.append(functions.absolute(pivot) / functions.sqrt(norm))
    return [solution[k] for k in range(size)], pivots


def _unbalanced(system: UnconstrainedSystem, i: int, accelerations: Sequence[Node], force: Node) -> Node:
    M, zero = system.nodes["M"], system.graph.zero
    return _sum([M[i, j] * accelerations[j] for j in range(system.n_speeds)], zero) - force


def _row_multipliers(
    system: UnconstrainedSystem, active: ActiveSet, transposed: Factors, accelerations: Sequence[Node], zero: Node
) -> list[Node]:
    """λ of the rows held, from the dependent rows of the equations of motion."""
    f = applied_forces(system, active)
    right = [_unbalanced(system, j, accelerations, f[j]) for j in transposed.columns]
    return transposed.solve_transposed(right, zero)


def all_multipliers(
    system: UnconstrainedSystem,
    active: ActiveSet,
    transposed: Factors,
    values: Sequence[Node],
    accelerations: Sequence[Node],
    samples: dict[str, Floats],
    shares: LeastNormShares | None = None,
) -> tuple[list[Node], IndeterminateForces]:
    """λ for every row, sign of ``M u̇ = f + Σ Aᵀ λ``, from those of active rows, and the mode's indeterminate forces.

    Friction of sliding contacts and kinematic rows are included.
    """
    n_u, zero = system.n_speeds, system.graph.zero
    values = shares.forces(values) if shares else values
    f, A = system.nodes["f"], system.nodes["A"]
    multipliers = [zero] * len(system.rows)
    for row, value in zip(active.rows, values, strict=True):
        multipliers[row] = value
    for row, contact in active.sliding:
        for tangent, part in active.friction(system, contact):
            multipliers[tangent] = part * multipliers[row]
    for contact in active.slipping:
        for row, part in system.slip_directions(contact):
            multipliers[row] = -(part * system.friction_bound("kinetic", contact))
    for contact in active.pressed:
        multipliers[system.contacts[contact].normal_row] = system.nodes["elastic"][contact]
    kinematic = [r for r, row in enumerate(system.rows) if row.role == "kinematic"]
    for k, row in enumerate(kinematic):
        i = n_u + k
        others = [A[r, i] * multipliers[r] for r in range(len(system.rows)) if r != row]
        multipliers[row] = _unbalanced(system, i, accelerations, f[i]) - _sum(others, zero)
    friction = {row: active.friction(system, contact) for row, contact in active.sliding}
    shared = shares.parts if shares else ()
    left_open = indeterminate_forces(system, transposed, active.rows, friction, _place(samples), shared)
    return minimum_norm(multipliers, left_open, zero), left_open


def _scaled_pivots(
    system: UnconstrainedSystem,
    A: list[list[Node]],
    M: list[list[Node]],
    factors: Factors,
    size: Floats | None = None,
) -> list[Node]:
    """|pivot| of each row over the row's norm, columns weighted by ``diag(M)^-1/2``: 1 is best, 0 singular.

    A redundant row may vanish while all together keep their rank, invisible in its own norm: norms then count as no
    smaller than ``size`` (m,), the norm of the rows nearby.
    """
    pivots = []
    for row, column in factors.pivots:
        squares = [entry * entry / _weight(M[j][j]) for j, entry in enumerate(A[row]) if not entry.is_zero]
        pivot = factors.rows[row][column]
        total = _sum(squares, system.graph.constant(0.0))
        if size is not None and factors.dropped:
            total = functions.maximum(total, system.graph.constant(float(size[row]) ** 2))
        norm = total * _weight(M[column][column])
        pivots.append(functions.absolute(pivot) / functions.sqrt(norm))
    return pivots


def _still_redundant(M: list[list[Node]], factors: Factors, size: Floats) -> list[Node]:
    """For each row dropped, 1 without a remainder, else 0: elsewhere it may be independent."""
    signs = []
    for row in factors.dropped:
        zero = M[0][0].graph.constant(0.0)
        left = [j for j, entry in enumerate(factors.rows[row]) if j not in factors.columns and not entry.is_zero]
        rest = _sum([factors.rows[row][j] * factors.rows[row][j] / _weight(M[j][j]) for j in left], zero)
        if not rest.is_zero:
            signs.append(functions.where(functions.compare("<=", rest, (REDUNDANT * float(size[row])) ** 2), 1.0, 0.0))
    return signs


def _unlike_friction(system: UnconstrainedSystem, active: ActiveSet, samples: dict[str, Floats]) -> bool:
    """Whether coefficients or slip of two sliding contacts differ, at samples or for other values of parameters."""
    first, *others = [contact for _, contact in active.sliding]
    rows = [list(system.contacts[contact].tangent_rows) for contact in (first, *others)]
    slips = [np.concatenate([samples["A"][:, r], samples["b"][:, r, None]], axis=2) for r in rows]
    return any(
        system.nodes["kinetic"][contact] is not system.nodes["kinetic"][first]
        or slip.shape != slips[0].shape
        or not np.allclose(slip, slips[0], rtol=0.0, atol=CHANGES_MOTION * np.abs(slips[0]).max(initial=0.0))
        for contact, slip in zip(others, slips[1:], strict=True)
    )


def _still_without_effect(
    M: list[list[Node]], factors: Factors, H: Sequence[Nodes], shared: Collection[int], size: float
) -> list[Node]:
    """For each redundant row whose shares do not affect the motion, 1 as long as they do not, else 0.

    Friction of other parameters, or slip in other directions, makes them affect it.
    """
    signs, zero = [], M[0][0].graph.constant(0.0)
    for dropped in factors.dropped:
        if dropped in shared:
            continue
        vector = _null_vector(factors, dropped, len(H), zero)
        held = [k for k, part in enumerate(vector) if not part.is_zero]
        effects = [_sum([vector[k] * H[k][j] for k in held if not H[k][j].is_zero], zero) for j in range(len(M))]
        rest = _sum([part * part / _weight(M[j][j]) for j, part in enumerate(effects) if not part.is_zero], zero)
        if not rest.is_zero:
            least = (MARGIN * CHANGES_MOTION * size) ** 2
            signs.append(functions.where(functions.compare("<=", rest, least), 1.0, 0.0))
    return signs


def _weight(node: Node) -> Node:
    """The weight of a column, 1 for a massless speed."""
    if node.constant_value is not None:
        return node.graph.constant(node.constant_value or 1.0)
    return functions.where(functions.compare(">", node, 0.0), node, 1.0)


def _mass_pivots(mass: list[list[Node]], pivots: Sequence[Node]) -> list[Node]:
    return [
        functions.absolute(pivot) / functions.absolute(mass[k][k])
        for k, pivot in enumerate(pivots)
        if pivot is not mass[k][k]
    ]


def massless_speeds(system: UnconstrainedSystem, states: Sequence[int], samples: Mapping[str, Floats]) -> str:
    """Return the speeds without resistance in a combination of states, or an empty text.

    Bodies without mass are valid if the active rows leave no motion of theirs alone; otherwise ``SᵀMT`` is singular in
    every sampled state.
    """
    n_u, rows = system.n_speeds, list(ActiveSet.of(system, states).rows)
    M, A = samples["M"][:, :n_u, :n_u], samples["A"][:, rows, :n_u]
    direction = np.zeros(n_u)
    for mass, matrix, scale in zip(M, A, column_scale(M), strict=True):
        _, sizes, right = np.linalg.svd(matrix * scale)
        free = right[int(np.sum(sizes > RANK * sizes.max(initial=0.0))) :]
        if not len(free):
            return ""
        values, vectors = np.linalg.eigh(free @ (mass * np.outer(scale, scale)) @ free.T)
        if not values[0] < NO_INERTIA:
            return ""
        direction = np.abs(scale * (vectors[:, 0] @ free))
    names = [name for name, part in zip(system.layout.u, direction, strict=True) if part > 1e-6 * direction.max()]
    return f"mass matrix singular along {' and '.join(names)}"
