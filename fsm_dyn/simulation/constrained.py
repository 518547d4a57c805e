"""Responses of the mechanism with its bilateral rows held: the linear algebra of an instant.

With bilateral rows B held, ``[M -Bᵀ; B 0] [a; Λ] = [force; target]`` answers both questions of an instant: the
accelerations under forces, and the speeds after impulses.  The system is scaled by ``diag(M)^-1/2`` and the rows'
norms, so that rank does not depend on units; redundant rows that agree with the others do no harm.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.arena import Arena, indices, matrix, vector
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.linear import factor, solve
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

RANK: Final = 1e-12
AGREEMENT: Final = 1e-7
ROUNDING: Final = 1e3 * 2.220446049250313e-16


class Bilateral(NamedTuple):
    """The factored system: ``held`` are the bilateral rows, ``scratch`` room for solving; see the module."""

    held: NDArray[np.int64]
    matrix: NDArray[np.float64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    scale: NDArray[np.float64]
    row_scale: NDArray[np.float64]
    scratch: NDArray[np.float64]
    rank: NDArray[np.int64]


_BILATERAL: Final = Bundle(Bilateral, {"matrix": 2}, lasting=False)
_WORDS: Final = _BILATERAL.words
_make = _BILATERAL.maker()


@lean
def factor_bilateral(arena: Arena, terms: Terms, held: NDArray[np.int64], n_u: int) -> Bilateral:
    """Factor the system for the declared speeds (kinematic rows are met by the choice of speeds)."""
    m = held.shape[0]
    size = n_u + m
    scale, row_scale = vector(arena, n_u), vector(arena, m)
    for i in range(n_u):
        scale[i] = 1.0
        if terms.M[i, i] > 0.0:
            scale[i] = 1.0 / np.sqrt(terms.M[i, i])
    for k in range(m):
        row_scale[k] = 1.0
        norm = 0.0
        for i in range(n_u):
            norm += (terms.A[held[k], i] * scale[i]) ** 2
        if norm > 0.0:
            row_scale[k] = 1.0 / np.sqrt(norm)
    system = matrix(arena, size, size)
    for i in range(n_u):
        for j in range(n_u):
            system[i, j] = terms.M[i, j] * scale[i] * scale[j]
        for k in range(m):
            entry = terms.A[held[k], i] * scale[i] * row_scale[k]
            system[i, n_u + k] = -entry
            system[n_u + k, i] = entry
    rows, columns = indices(arena, size), indices(arena, size)
    rank = indices(arena, 1)
    rank[0] = factor(system, rows, columns, RANK)
    made = Bilateral(held, system, rows, columns, scale, row_scale, vector(arena, 3 * size), rank)
    return _make(indices(arena, _WORDS), made)


@lean
def least_pivot(bilateral: Bilateral) -> float:
    """Return the last pivot of the scaled system, as a part of the first; 0 where it has not full rank."""
    n = bilateral.rows.shape[0]
    if bilateral.rank[0] < n:
        return 0.0
    last = bilateral.matrix[bilateral.rows[n - 1], bilateral.columns[n - 1]]
    return float(abs(last / bilateral.matrix[bilateral.rows[0], bilateral.columns[0]]))


@lean
def solve_bilateral(
    bilateral: Bilateral,
    force: NDArray[np.float64],
    target: NDArray[np.float64],
    motion: NDArray[np.float64],
    reaction: NDArray[np.float64],
    rounding: float,
) -> bool:
    """Solve for the motion (n_u,) and the reactions (m,); False if the rows contradict each other.

    They do where redundant rows are missed by more than :data:`AGREEMENT` of the largest right-hand side, and by more
    than ``rounding``, the error of the right-hand sides themselves (:func:`rounding_of`).
    """
    n_u, m = force.shape[0], target.shape[0]
    n = n_u + m
    right, scratch = bilateral.scratch[:n], bilateral.scratch[n : 2 * n]
    solution = bilateral.scratch[2 * n :]
    size = 1e-300
    for i in range(n_u):
        right[i] = force[i] * bilateral.scale[i]
        size = max(size, abs(right[i]))
    for k in range(m):
        right[n_u + k] = target[k] * bilateral.row_scale[k]
        size = max(size, abs(right[n_u + k]))
    remainder = solve(bilateral.matrix, bilateral.rows, bilateral.columns, bilateral.rank[0], right, scratch, solution)
    for i in range(n_u):
        motion[i] = solution[i] * bilateral.scale[i]
    for k in range(m):
        reaction[k] = solution[n_u + k] * bilateral.row_scale[k]
    return remainder <= max(AGREEMENT * size, rounding)


@lean
def rounding_of(terms: Terms, u: NDArray[np.float64], accelerations: bool) -> float:
    """Return what rounding may leave of scaled rows ``A u + b``, or of ``A u_dot + gamma``, where terms cancel."""
    square, fastest = 0.0, 0.0
    for i in range(u.shape[0]):
        if terms.M[i, i] > 0.0:
            square += terms.M[i, i] * u[i] * u[i]
        fastest = max(fastest, abs(u[i]))
    return float(ROUNDING * np.sqrt(square) * (fastest if accelerations else 1.0))


@lean
def row_speed(terms: Terms, row: int, u: NDArray[np.float64]) -> float:
    """Return ``A u + b`` of one row."""
    speed = terms.b[row]
    for i in range(u.shape[0]):
        speed += terms.A[row, i] * u[i]
    return float(speed)


@lean
def slip_speed(tables: Tables, terms: Terms, k: int, u: NDArray[np.float64]) -> float:
    """Return how fast a contact with friction slips, without a sign."""
    row = tables.contact_rows[k, 1]
    speed = row_speed(terms, row, u)
    if tables.contact_flags[k] & tb.IN_SPACE:
        return float(np.hypot(speed, row_speed(terms, row + 1, u)))
    return float(abs(speed))


@lean
def contact_response(
    arena: Arena, terms: Terms, bilateral: Bilateral, which: NDArray[np.int64], n_u: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Unit responses of contact rows.

    Returns
    -------
    motions : shape (n, n_u)
        Motion answering a unit force along each of the ``n`` rows ``which``.
    reactions : shape (n, m)
        Reactions of the bilateral rows to it.
    K : shape (n, n)
        What each row feels of it.
    """
    n, m = which.shape[0], bilateral.held.shape[0]
    motions, reactions, K = matrix(arena, n, n_u), matrix(arena, n, m), matrix(arena, n, n)
    none = vector(arena, m)
    for r in range(n):
        solve_bilateral(bilateral, terms.A[which[r], :n_u], none, motions[r], reactions[r], 0.0)
        for s in range(n):
            for i in range(n_u):
                K[s, r] += terms.A[which[s], i] * motions[r, i]
    return motions, reactions, K


@lean
def free_response(arena: Arena, terms: Terms, which: NDArray[np.int64], n_u: int) -> NDArray[np.float64]:
    """How much each row would yield to a unit force if nothing else held: the measure of what is rounding, (n,)."""
    free = vector(arena, which.shape[0])
    for r in range(which.shape[0]):
        for i in range(n_u):
            if terms.M[i, i] > 0.0:
                free[r] += terms.A[which[r], i] ** 2 / terms.M[i, i]
    return free
