"""The state that a train of impacts leads to, decided for all its contacts together (docs/theory.md, "Trains").

Over the time ``h`` that a train still takes, its strokes add up: ``M (u_end - u) = f h + AᵀΛ`` with
``0 ≤ Λ_n ⊥ v_n ≥ 0`` and Coulomb's law between the sums, which is a step of Moreau's time stepping.  It tells which
contacts the train leaves closed, and which of them stick; the impulses of the strokes alone would not, as every stroke
of one contact may throw another off that the load has pressed back by the end.

The forces' part belongs to the flow that follows.  What is left for the instant itself, ``M (u⁺ - u) = AᵀΛ`` with the
rows of the contacts left closed brought to rest, takes impulses of either sign; with the forces' part none pulls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import meeting as mt
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Arena, indices, vector
from fsm_dyn.simulation.combination import solve_choices
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import (
    contact_response,
    factor_bilateral,
    free_response,
    rounding_of,
    row_speed,
    solve_bilateral,
)
from fsm_dyn.simulation.contact_law import scale_of
from fsm_dyn.simulation.decision import decide
from fsm_dyn.simulation.impacts import LAWS_KEPT, PLASTIC, apply_impulses, bilateral_rows, gather
from fsm_dyn.simulation.meeting import aim, scaled
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms


@lean
def end_train(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    wanted: NDArray[np.int8],
    closed: NDArray[np.int64],
    remaining: float,
    impulse: NDArray[np.float64],
    log: NDArray[np.float64],
) -> int:
    """Bring the contacts marked in ``closed`` to the end of their train; changes ``u``, adds to ``impulse``.

    Parameters
    ----------
    terms : Terms
        Evaluated at the last stroke.
    u : float64 array, shape (n_u,)
        Speeds before the stroke; on return those with which the flow after it begins.
    remaining : float
        How long the train goes on (s).

    Returns
    -------
    int
        ``GOING``, or a failure: then the train does not end with these contacts closed, and ``u`` is as it was.
    """
    n_u = u.shape[0]
    held = bilateral_rows(arena, tables, wanted)
    bilateral = factor_bilateral(arena, terms, held, n_u)
    momentum, force = vector(arena, n_u), vector(arena, n_u)
    speed_target, motion_target = vector(arena, held.shape[0]), vector(arena, held.shape[0])
    base_u, base_motion = vector(arena, n_u), vector(arena, n_u)
    base_reaction, reaction = vector(arena, held.shape[0]), vector(arena, held.shape[0])
    twice = 0.0
    for i in range(n_u):
        for j in range(n_u):
            momentum[i] += terms.M[i, j] * u[j]
        twice += momentum[i] * u[i]
    _load(tables, terms, wanted, force)
    for k in range(held.shape[0]):
        speed_target[k], motion_target[k] = -terms.b[held[k]], -terms.gamma[held[k]]
    if not solve_bilateral(bilateral, momentum, speed_target, base_u, base_reaction, rounding_of(terms, u, False)):
        return outcomes.SINGULAR
    if not solve_bilateral(bilateral, force, motion_target, base_motion, reaction, rounding_of(terms, u, True)):
        return outcomes.SINGULAR
    m, which, who = gather(arena, tables, terms, u, closed, PLASTIC)
    n = which.shape[0]
    motions, reactions, K = contact_response(arena, terms, bilateral, which, n_u)
    free, scale = free_response(arena, terms, which, n_u), np.sqrt(max(twice, 0.0))
    now, then = vector(arena, n), vector(arena, n)
    for r in range(n):
        now[r] = then[r] = row_speed(terms, which[r], base_u)
        then[r] += remaining * terms.gamma[which[r]]
        for i in range(n_u):
            then[r] += remaining * terms.A[which[r], i] * base_motion[i]
    best, forces, answers = indices(arena, who.shape[0]), vector(arena, n), vector(arena, n)
    problem = scaled(arena, m, K, then, free, scale)
    status, _ = decide(arena, problem, LAWS_KEPT, best, forces, answers, who, log, 0)
    if status != outcomes.GOING and status != outcomes.SEVERAL:
        return status
    aim(problem, m, now)
    remainder, _ = solve_choices(arena, problem, best, forces, answers)
    if remainder > LAWS_KEPT * scale_of(problem, forces):
        return outcomes.INCONSISTENT
    for at in range(who.shape[0]):
        sinks = answers[m.normal[at]] / problem.unit[m.normal[at]] < -tables.tolerances[tol.SPEED]
        if best[at] == mt.OPEN and sinks:
            return outcomes.INCONSISTENT  # it strikes, though the forces would have turned it back by the end
    for r in range(n):
        forces[r] *= problem.unit[r]
    apply_impulses(which, held, base_u, base_reaction, motions, reactions, forces, u, impulse)
    return outcomes.GOING


@lean
def _load(tables: Tables, terms: Terms, wanted: NDArray[np.int8], force: NDArray[np.float64]) -> None:
    """Fill in the generalized forces, those of compressed compliant contacts included."""
    for i in range(force.shape[0]):
        force[i] = terms.f[i]
    for k in range(tables.sizes[tb.N_CONTACTS]):
        if tables.contact_kind[k] == tb.COMPLIANT and wanted[k] != tb.FREE:
            for i in range(force.shape[0]):
                force[i] += terms.elastic[k] * terms.A[tables.contact_rows[k, 0], i]
