"""Impacts: velocities that jump because a contact closes or a row is imposed (docs/theory.md, "Impacts").

``M (u⁺ - u⁻) = AᵀΛ`` over bilateral rows and closed contacts with ``0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0`` and Coulomb's
law for the tangential impulse.  Newton's restitution together with friction can raise the energy; the remedy
keeps only the part β of the rebound beyond the plastic solution at which it does not.  Both solutions obey the
laws, and so does what lies between.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import contact_law as law
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import inner
from fsm_dyn.simulation.constrained import contact_response, factor_bilateral, row_speed, solve_bilateral
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

LAWS_KEPT: Final = 1e-9
BETA: Final = 2  # entry of ``energy``, see resolution


@inner
def bilateral_rows(tables: Tables, wanted: NDArray[np.int8]) -> NDArray[np.int64]:
    """The rows that hold both ways: constraints and engaged locks."""
    rows = np.empty(tables.sizes[tb.N_ROWS], np.int64)
    count = 0
    for r in range(rows.shape[0]):
        if tables.row_role[r] == tb.ALWAYS or tables.row_role[r] == tb.ALWAYS_POSITION:
            rows[count] = r
            count += 1
    for k in range(wanted.shape[0]):
        if tables.contact_kind[k] == tb.LOCK and wanted[k] == tb.HELD:
            rows[count] = tables.contact_rows[k, 0]
            count += 1
    return rows[:count].copy()


@inner
def strike(
    tables: Tables,
    terms: Terms,
    state: NDArray[np.float64],
    wanted: NDArray[np.int8],
    closed: NDArray[np.int8],
    plastic: bool,
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
) -> int:
    """Change the speeds in ``state`` if the rows that hold now demand it; add the impulses.  Returns a status."""
    n_q, n_u = tables.sizes[tb.N_Q], tables.sizes[tb.N_U]
    u = state[n_q:]
    slow = tables.tolerances[tol.SPEED]
    held = bilateral_rows(tables, wanted)
    needed = False
    for r in held:
        needed = needed or abs(row_speed(terms, r, u)) > slow
    for k in range(closed.shape[0]):
        if closed[k] == 1:
            needed = needed or row_speed(terms, tables.contact_rows[k, 0], u) < -slow
    if not needed:
        return outcomes.GOING

    bilateral = factor_bilateral(terms, held, n_u)
    count = 0
    for k in range(closed.shape[0]):
        count += closed[k]
    which = np.empty(2 * count, np.int64)
    normal, tangent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    friction, allowed = np.zeros(count), np.zeros((count, law.CHOICES), np.int8)
    restitution = np.zeros(count)
    n, at = 0, 0
    for k in range(closed.shape[0]):
        if closed[k] == 0:
            continue
        normal[at] = n
        which[n] = tables.contact_rows[k, 0]
        restitution[at] = 0.0 if plastic else terms.restitution[k]
        n += 1
        allowed[at, law.OPEN] = 1
        allowed[at, law.HOLD] = 1
        if tables.contact_flags[k] & tb.FRICTION:
            tangent[at] = n
            which[n] = tables.contact_rows[k, 1]
            n += 1
            if tables.contact_flags[k] & tb.STICKS_ALWAYS:
                friction[at] = law.WORST
            else:
                friction[at] = terms.kinetic[k]
                allowed[at, law.FORWARD] = 1
                allowed[at, law.BACKWARD] = 1
        at += 1
    which = which[:n]

    momentum, base_u = np.zeros(n_u), np.zeros(n_u)
    target_b, base_reaction = np.zeros(held.shape[0]), np.zeros(held.shape[0])
    for i in range(n_u):
        for j in range(n_u):
            momentum[i] += terms.M[i, j] * u[j]
    for k in range(held.shape[0]):
        target_b[k] = -terms.b[held[k]]
    if not solve_bilateral(bilateral, momentum, target_b, base_u, base_reaction):
        return outcomes.SINGULAR
    motions, reactions, K = contact_response(terms, bilateral, which, n_u)
    base, target, speed = np.zeros(n), np.zeros(n), np.zeros(n)
    for r in range(n):
        base[r] = row_speed(terms, which[r], base_u)
        speed[r] = row_speed(terms, which[r], u)
    bounces = False
    for k in range(count):
        if speed[normal[k]] < -slow and restitution[k] > 0.0:
            target[normal[k]] = -restitution[k] * speed[normal[k]]
            bounces = True

    best, forces, answers = np.zeros(count, np.int64), np.zeros(n), np.zeros(n)
    cost, slipping = np.zeros((count, law.CHOICES)), np.zeros(count, np.int8)
    consistent, _, _ = law.enumerate_choices(
        normal, tangent, K, base, target, friction, friction, slipping, allowed, cost, LAWS_KEPT, best, forces, answers
    )
    if consistent == 0:
        return outcomes.INCONSISTENT
    if bounces and n > 0:
        energy[BETA] = min(
            energy[BETA],
            _keep_energy(
                normal, tangent, K, base, speed, friction, slipping, allowed, cost, best, forces, answers,
                held, base_reaction, reactions, terms, u,
            ),
        )  # fmt: skip
    for i in range(n_u):
        u[i] = base_u[i]
        for r in range(n):
            u[i] += motions[r, i] * forces[r]
    for r in range(n):
        impulse[which[r]] += forces[r]
    for k in range(held.shape[0]):
        impulse[held[k]] += base_reaction[k]
        for r in range(n):
            impulse[held[k]] += reactions[r, k] * forces[r]
    return outcomes.GOING


@inner
def _keep_energy(
    normal: NDArray[np.int64],
    tangent: NDArray[np.int64],
    K: NDArray[np.float64],
    base: NDArray[np.float64],
    speed: NDArray[np.float64],
    friction: NDArray[np.float64],
    slipping: NDArray[np.int8],
    allowed: NDArray[np.int8],
    cost: NDArray[np.float64],
    best: NDArray[np.int64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    held: NDArray[np.int64],
    base_reaction: NDArray[np.float64],
    reactions: NDArray[np.float64],
    terms: Terms,
    u: NDArray[np.float64],
) -> float:
    """Blend ``forces`` towards the plastic solution until no energy is gained; returns the part β kept.

    The energy gained, seen from the moving constraints, is ``½ Σ Λ (v⁺ + v⁻)`` over all rows.
    """
    n = K.shape[0]
    plastic_best, plastic, plastic_answers = best.copy(), np.zeros(n), np.zeros(n)
    consistent, _, _ = law.enumerate_choices(
        normal, tangent, K, base, np.zeros(n), friction, friction, slipping, allowed, cost, LAWS_KEPT,
        plastic_best, plastic, plastic_answers,
    )  # fmt: skip
    if consistent == 0:
        return 1.0
    constant, linear, square, size = 0.0, 0.0, 0.0, 0.0
    for r in range(n):  # gain(β) = Σ (P + βD)(V + βE), P and V of the plastic solution
        step, rise = forces[r] - plastic[r], answers[r] - plastic_answers[r]
        total = plastic_answers[r] + speed[r]
        constant += plastic[r] * total
        linear += step * total + plastic[r] * rise
        square += step * rise
        size += abs(forces[r] * (abs(answers[r]) + abs(speed[r])))
    for k in range(held.shape[0]):  # held rows answer 0, so only their speed before counts
        before = row_speed(terms, held[k], u)
        constant += base_reaction[k] * before
        for r in range(n):
            constant += reactions[r, k] * plastic[r] * before
            linear += reactions[r, k] * (forces[r] - plastic[r]) * before
    if constant + linear + square <= 1e-14 * size:
        return 1.0
    beta = 0.0  # constant <= 0 and a gain at β = 1: one root lies between
    root = linear * linear - 4.0 * square * constant
    if root >= 0.0 and square > 0.0:
        beta = (-linear + np.sqrt(root)) / (2.0 * square)
    elif linear != 0.0:
        beta = -constant / linear
    beta = min(1.0, max(0.0, beta))
    for r in range(n):
        forces[r] = plastic[r] + beta * (forces[r] - plastic[r])
        answers[r] = plastic_answers[r] + beta * (answers[r] - plastic_answers[r])
    return beta
