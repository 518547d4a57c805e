"""Drift projection: bring the configuration back onto its rows (docs/theory.md, "Drift").

``Δq = -W M⁻¹Aᵀ (A M⁻¹Aᵀ)⁺ φ`` over configuration rows and closed gaps: the smallest correction in the metric of
the mass matrix, so that it does least work.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Workspace, indices, mark, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import factor_bilateral, least_pivot, solve_bilateral
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.rank import independent_rows
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms, open_terms

NEWTON_STEPS: Final = 2
INDEPENDENT: Final = 1e-4  # the least pivot, a square of what is left of a row, above which no row is implied
FAR: Final = 1e-5  # a residual beyond this after the Newton steps is no drift but a failure


@lean
def project(
    work: Workspace,
    tables: Tables,
    t: float,
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    mode: int,
    drift: NDArray[np.float64],
) -> int:
    """Bring the configuration back onto the rows of its mode when their residual exceeds the tolerance.

    Called after each accepted step in modes with the flag ``PROJECTS``, before guards are evaluated.

    Parameters
    ----------
    work, tables, t, x, c, mode
        As for :func:`~fsm_dyn.simulation.resolution.resolve`; ``x`` in and out.
    drift : float64 array, shape (2,)
        In and out: energy put in by projections so far (J), and the largest residual met (m).

    Returns
    -------
    int
        0: untouched; 1: moved (the derivative at hand is no longer valid); ``PROJECTION_FAILED``; ``CONTRADICTORY``
        where only redundant rows are missed.
    """
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    rows = _configuration_rows(work, tables, mode)
    worst = _largest(terms, rows)
    if worst <= tables.tolerances[tol.PROJECTION]:
        return 0
    drift[1] = max(drift[1], worst)
    before = terms.energies[0] + terms.energies[1]
    for _ in range(NEWTON_STEPS):
        top = mark(work)
        _newton_step(work, tables, terms, rows, x)
        release(work, top)
        call_kernel(tables.terms[0], t, x, c, terms.whole)
        if _largest(terms, rows) <= tables.tolerances[tol.PROJECTION]:
            break
    if not _largest(terms, rows) <= FAR:
        met = _largest(terms, independent_rows(work, terms, rows, tables.sizes[tb.N_U])) <= FAR
        return outcomes.CONTRADICTORY if met else outcomes.PROJECTION_FAILED
    drift[0] += terms.energies[0] + terms.energies[1] - before
    return 1


@lean
def gate_opened_late(
    work: Workspace, tables: Tables, t: float, x: NDArray[np.float64], c: NDArray[np.float64], mode: int
) -> bool:
    """Whether a contact may close by its ``closes_if`` while its gap is already below zero: a named failure.

    Asked after steps that end without an event, in modes with the flag ``WATCHES_GATES``.
    """
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    for k in range(tables.sizes[tb.N_CONTACTS]):
        row = tables.contact_rows[k, 0]
        flags = tables.contact_flags[k]
        gated = flags & tb.GATED and not flags & tb.LIMITED and tables.mode_states[mode, k] == tb.FREE
        if tables.contact_kind[k] == tb.COMPLIANT and terms.elastic[k] <= 0.0:
            continue  # its surface still follows what left it
        if gated and terms.closes_if[k] != 0.0 and terms.residual[row] < -tables.tolerances[tol.GAP]:
            return True
    return False


@lean
def _configuration_rows(work: Workspace, tables: Tables, mode: int) -> NDArray[np.int64]:
    """Constraints on coordinates and the normal rows of what is closed or engaged; what yields has a depth."""
    rows = indices(work, tables.sizes[tb.N_ROWS])
    count = 0
    for r in range(rows.shape[0]):
        if tables.row_role[r] == tb.ALWAYS_POSITION:
            rows[count] = r
            count += 1
    for k in range(tables.sizes[tb.N_CONTACTS]):
        r = tables.contact_rows[k, 0]
        held = tables.mode_states[mode, k] != tb.FREE and tables.contact_kind[k] != tb.COMPLIANT
        if r >= 0 and held and tables.row_positional[r] == 1:
            rows[count] = r
            count += 1
    return rows[:count]


@lean
def _largest(terms: Terms, rows: NDArray[np.int64]) -> float:
    largest = 0.0
    for r in rows:
        largest = max(largest, abs(terms.residual[r]))
    return largest


@lean
def _newton_step(
    work: Workspace, tables: Tables, terms: Terms, rows: NDArray[np.int64], x: NDArray[np.float64]
) -> None:
    """Move the configuration onto those rows that are independent, as far as one step of Newton's method leads."""
    n_q, n_u = tables.sizes[tb.N_Q], tables.sizes[tb.N_U]
    bilateral = factor_bilateral(work, terms, rows, n_u)
    if least_pivot(bilateral) < INDEPENDENT:
        rows = independent_rows(work, terms, rows, n_u)
        bilateral = factor_bilateral(work, terms, rows, n_u)
    m = rows.shape[0]
    target, move, reaction = vector(work, m), vector(work, n_u), vector(work, m)
    for k in range(m):
        target[k] = -terms.residual[rows[k]]
    solve_bilateral(bilateral, vector(work, n_u), target, move, reaction, 0.0)
    for i in range(n_q):
        for j in range(n_u):
            x[i] += terms.W[i, j] * move[j]
