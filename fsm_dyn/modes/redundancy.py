"""Indeterminate multipliers of a mode with redundant constraint rows, and the force limits that remain determinate.

Where contacts are redundant (a block on two corners that both stick) the multipliers are ``λ + N s`` for any
``s``: N spans the forces that move nothing.  What a single contact's share is cannot be known; whether *some* shares
satisfy all contact laws can.  The laws are inequalities ``c_i + d_i·s >= 0``, and eliminating ``s`` (Fourier and
Motzkin) leaves the limits on what is known: for the block, that both friction forces together stay below both bounds
together.  Where such a limit is reached, every law in it is at its own limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def indeterminate_forces(
    system: UnconstrainedSystem,
    factors: Factors,
    rows: Sequence[int],
    friction: Mapping[int, Sequence[tuple[int, Node]]],
    place: tuple[float, Array, Array],
) -> IndeterminateForces:
    """Find N from the elimination of Gᵀ, whose rows ``rows`` (numbers in the system) were dropped in part.

    ``friction`` gives, for the normal row of each sliding contact, its tangent rows and their forces in units of it.
    """
    if not factors.dropped:
        return IndeterminateForces()
    zero, one = system.graph.constant(0.0), system.graph.constant(1.0)
    vectors = []
    for dropped in factors.dropped:
        local = [zero] * len(rows)
        local[dropped] = one
        for row, pivot_row, factor in reversed(factors.steps):
            local[pivot_row] = local[pivot_row] - factor * local[row]
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
