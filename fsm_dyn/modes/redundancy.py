"""Indeterminate multipliers of a mode with redundant constraint rows, and the force limits that remain determinate.

Where contacts are redundant (a block on two corners that both stick) the multipliers are ``λ + N s`` for any
``s``: N spans the forces that move nothing.  What a single contact's share is cannot be known; whether *some* shares
satisfy all contact laws can.  The laws are inequalities ``c_i + d_i·s >= 0``, and eliminating ``s`` (Fourier and
Motzkin) leaves the limits on what is known: for the block, that both friction forces together stay below both bounds
together.  Where such a limit is reached, every law in it is at its own limit.

Where the contacts slide apart from each other (a brick that turns on a table) the motion depends on their shares.
These are then those of equal springs, of least norm (docs/theory.md, "Shares that the motion depends on").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.errors import ModelError
from fsm_dyn.modes.elimination import Factors, solve_symmetric
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Node, Program
from fsm_dyn.spec.scales import Units

Array = npt.NDArray[np.float64]

NOTHING = 1e-9  # an entry of N below this is zero
CHANGES_MOTION = 1e-4  # part of the forces of rows, above which what redundant ones add up to changes the motion
MOST_LIMITS = 4096  # six contacts on one line take 111; a mode that would take more is refused, not cut
CLOSING_STEPS = 20
CLOSED = 1e-10


@dataclass(frozen=True)
class Limit:
    """One law on the multipliers, ``value >= 0``: which (event, contact, direction) it stands for.

    ``open_part`` (k nodes) and ``numbers`` (k,) tell how the value changes with the indeterminate multipliers.
    """

    value: Node
    open_part: tuple[Node, ...]
    numbers: tuple[float, ...]
    members: frozenset[tuple[int, int, float]]


@dataclass(frozen=True)
class IndeterminateForces:
    """N: a list of nodes per indeterminate multiplier, one per row, and its values with closed contacts of the mode."""

    vectors: tuple[tuple[Node, ...], ...] = ()
    numbers: Array | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows whose multipliers are not determined."""
        if self.numbers is None:
            return ()
        return tuple(int(row) for row in np.flatnonzero(np.abs(self.numbers).max(axis=0) > NOTHING))


@dataclass(frozen=True)
class LeastNormShares:
    """What the redundant rows of a mode bear on whose shares of the load the motion depends.

    With these rows ``A_D = R A_K``, and R without constraint rows, ``R'``, equal springs bear ``λ_D = R' λ_K``.  In
    terms of the pushes ``ν = λ_K + Rᵀ λ_D`` on the rows kept this is ``λ_D = C ν``, ``(1 + R' Rᵀ) C = R'``.

    ``parts``: R, by redundant row (a place in the rows held) and row kept; ``shares``: C likewise.  ``numbers``: R and
    C where the mode was sampled, shapes (n_samples, m, m).
    """

    parts: Mapping[int, Mapping[int, Node]]
    shares: Mapping[int, Mapping[int, Node]]
    numbers: tuple[Array, Array]

    def force_rows(self, rows: Sequence[Sequence[Node]], samples: Array) -> tuple[list[list[Node]], Array]:
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
    samples: tuple[Array, Array, Array],
) -> LeastNormShares:
    """Find which redundant rows change the motion by their friction, and what they bear of the forces of the rows kept.

    Parameters
    ----------
    rows : the rows held, as numbers in the system
    sliding : normal row and contact of each contact that slides under a normal force
    samples : ndarrays, shapes (n_samples, m, n_u), (n_samples, m, n_u), (n_samples, n_contacts)
        A, Gᵀ (scaled speeds) and coefficients of kinetic friction; the first sample is the present state.
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
        # constraint rows do not yield beside contacts, which are equal springs
        springs[d] = {k: part for k, part in parts[d].items() if rows[d] not in contacts or rows[k] in contacts}
    return LeastNormShares(parts, _solved_shares(parts, springs, zero), _sampled_shares(combined, springs))


def _rows_that_share(combined: Array, H: Array, dropped: Sequence[int], turning: Sequence[int]) -> list[int]:
    """Return the redundant rows on whose shares the motion depends, and those that share forces with them.

    ``combined`` (m, m): the redundant rows in terms of the rows kept; ``turning``: rows of contacts that slide in a
    direction which changes with the motion.
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


def _sampled_shares(combined: Array, springs: Mapping[int, Mapping[int, Node]]) -> tuple[Array, Array]:
    """Return samples of R and C, zero for rows that do not share."""
    R, C, order = np.zeros_like(combined), np.zeros_like(combined), list(springs)
    R[:, order] = combined[:, order]
    yielding = R.copy()
    for d in order:
        yielding[:, d, [k for k in range(R.shape[1]) if k not in springs[d]]] = 0.0
    C[:, order] = np.linalg.solve(np.eye(R.shape[1]) + yielding @ R.transpose(0, 2, 1), yielding)[:, order]
    return R, C


def _null_vector(factors: Factors, dropped: int, count: int, zero: Node) -> list[Node]:
    """Return the combination (count nodes) of the rows eliminated that vanishes, one for the row dropped."""
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
    place: tuple[float, Array, Array],
    shared: Collection[int] = (),
) -> IndeterminateForces:
    """Find N from the elimination of Gᵀ, whose rows ``rows`` (numbers in the system) were dropped in part.

    ``friction`` gives, for the normal row of each sliding contact, its tangent rows and their forces in units of it.
    ``shared``: dropped rows (places in ``rows``) whose forces are determined (:class:`LeastNormShares`).
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


def _evaluate(system: UnconstrainedSystem, nodes: npt.NDArray[Any], place: tuple[float, Array, Array]) -> Array:
    t, x, c = place
    values: Array = Program.from_nodes(system.layout, {"value": nodes}).evaluate(t, x, c)["value"]
    return values


def minimum_norm(multipliers: Sequence[Node], forces: IndeterminateForces, zero: Node) -> list[Node]:
    """The multipliers of least norm among all that have the same effect."""
    result = list(multipliers)
    if not forces.vectors:
        return result

    def product(a: Sequence[Node], b: Sequence[Node]) -> Node:
        total = zero
        for x, y in zip(a, b, strict=True):
            total = total + x * y
        return total

    gram = [[product(a, b) for b in forces.vectors] for a in forces.vectors]
    shares, _ = solve_symmetric(gram, [product(a, multipliers) for a in forces.vectors])
    for share, vector in zip(shares, forces.vectors, strict=True):
        result = [value - share * entry for value, entry in zip(result, vector, strict=True)]
    return result


def determinate_limits(limits: Sequence[Limit], count: int) -> list[Limit]:
    """Eliminate the ``count`` indeterminate multipliers from the laws.

    A law that needs more than j + 1 of the others after j eliminations follows from simpler ones (Chernikov), and so
    does one in which both directions of a contact's friction meet.

    Raises
    ------
    ModelError
        So many contacts are redundant that there would be more than ``MOST_LIMITS``.
    """
    current = list(limits)
    for j in range(count):
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
            raise ModelError(
                "the contacts of a mode share their forces in more ways than can be listed",
                found=f"{len(current)} limits of {len(contacts)} contacts, {count} of their forces not determined",
                allowed=f"{MOST_LIMITS} limits",
                remedy="simulate(..., strategy='online') needs no list; or omit redundant contacts",
            )
    return current


def _combined(up: Limit, down: Limit, j: int, members: frozenset[tuple[int, int, float]]) -> Limit:
    a, b = -down.open_part[j], up.open_part[j]
    x, y = -down.numbers[j], up.numbers[j]
    return Limit(
        a * up.value + b * down.value,
        tuple(a * p + b * q for p, q in zip(up.open_part, down.open_part, strict=True)),
        tuple(x * p + y * q for p, q in zip(up.numbers, down.numbers, strict=True)),
        members,
    )


def closed_place(
    configuration: Program, rows: Sequence[int], t: float, x: Array, c: Array, units: Units, quaternions: Sequence[int]
) -> Array:
    """Return the state with the configuration brought onto ``rows``, or as it is where that does not succeed.

    Which forces are left open is a question about configurations in which the mode's contacts touch.
    """
    place = x.copy()
    for _ in range(CLOSING_STEPS):
        values = configuration.evaluate(t, place, c)
        sizes = units.rows[list(rows)] * units.scales.length
        residual = values["residual"][list(rows)] / sizes
        jacobian = values["jacobian"][list(rows)] / sizes[:, None] * units.q
        if not np.isfinite(residual).all() or not np.isfinite(jacobian).all():
            return x
        if np.abs(residual).max(initial=0.0) < CLOSED:
            return place
        place[: len(units.q)] -= units.q * np.linalg.lstsq(jacobian, residual, rcond=1e-9)[0]
        for first in quaternions:
            place[first : first + 4] /= np.linalg.norm(place[first : first + 4])
    return x
