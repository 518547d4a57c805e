"""Impacts: velocities that jump because a contact closes or a row is imposed (docs/theory.md, "Impacts").

``M (u⁺ - u⁻) = AᵀΛ`` over bilateral rows and closed contacts with ``0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0`` and Coulomb's
law for the tangential impulse (Newton), or with the normal impulse of compression returned e-fold (Poisson).  Either,
together with friction, can raise the energy; the remedy keeps only the part β of the rebound beyond the plastic
solution at which it does not (:mod:`fsm_dyn.simulation.rebound`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import meeting as mt
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Arena, indices, mark, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import (
    Bilateral,
    contact_response,
    factor_bilateral,
    free_response,
    rounding_of,
    row_speed,
    slip_speed,
    solve_bilateral,
)
from fsm_dyn.simulation.decision import decide
from fsm_dyn.simulation.meeting import Meeting, aim, empty_meeting, scaled
from fsm_dyn.simulation.rebound import gains_energy, kept_part
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

LAWS_KEPT: Final = 1e-9
BETA: Final = 2  # entry of ``energy``, see resolution
MOST_SWEEPS: Final = 2000  # of sequential impacts, each over all closed contacts

# how contacts rebound in an impact
NO_REBOUND: Final = 0
BY_SPEEDS: Final = 1  # Newton
BY_IMPULSES: Final = 2  # Poisson, some of them

# what an impact is to do
REBOUND: Final = 0
PLASTIC: Final = 1
ARREST: Final = 2  # no collision: slip that the accelerations cannot carry on is brought to rest or reversed


@lean
def bilateral_rows(arena: Arena, tables: Tables, wanted: NDArray[np.int8]) -> NDArray[np.int64]:
    """The rows that hold both ways: constraints and engaged locks."""
    rows = indices(arena, tables.sizes[tb.N_ROWS])
    count = 0
    for r in range(rows.shape[0]):
        if tables.row_role[r] == tb.ALWAYS or tables.row_role[r] == tb.ALWAYS_POSITION:
            rows[count] = r
            count += 1
    for k in range(wanted.shape[0]):
        if tables.contact_kind[k] == tb.LOCK and wanted[k] == tb.HELD:
            rows[count] = tables.contact_rows[k, 0]
            count += 1
    return rows[:count]


@lean
def strike(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    state: NDArray[np.float64],
    wanted: NDArray[np.int8],
    closed: NDArray[np.int64],
    plastic: bool,
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    log: NDArray[np.float64],
) -> int:
    """Change the speeds in ``state`` if the rows that hold now demand it; add the impulses.  Returns a status."""
    u = state[tables.sizes[tb.N_Q] :]
    slow = tables.tolerances[tol.SPEED]
    held = bilateral_rows(arena, tables, wanted)
    broken = False
    for r in held:
        broken = broken or abs(row_speed(terms, r, u)) > slow
    if not broken and not any_strikes(tables, terms, closed, u, slow):
        return outcomes.GOING
    bilateral = factor_bilateral(arena, terms, held, u.shape[0])
    purpose = PLASTIC if plastic else REBOUND
    if tables.sizes[tb.SEQUENTIAL] == 0:
        return collide(arena, tables, terms, bilateral, u, closed, purpose, impulse, energy, log)
    return _one_by_one(arena, tables, terms, bilateral, u, closed, purpose, impulse, energy, log, broken)


@lean
def _strikes(tables: Tables, terms: Terms, k: int, u: NDArray[np.float64], slow: float) -> bool:
    """Whether a closed contact's rows are broken by the speeds."""
    speed = row_speed(terms, tables.contact_rows[k, 0], u)
    flags = tables.contact_flags[k]
    if speed < -slow or (flags & tb.TWO_SIDED and speed > slow):
        return True
    caught = flags & tb.STICKS_ALWAYS and tables.contact_rows[k, 1] >= 0 and speed <= slow
    return bool(caught) and slip_speed(tables, terms, k, u) > slow


@lean
def any_strikes(tables: Tables, terms: Terms, closed: NDArray[np.int64], u: NDArray[np.float64], slow: float) -> bool:
    """Whether the rows of any closed contact are broken by the speeds."""
    found = False
    for k in range(closed.shape[0]):
        found = found or (closed[k] == 1 and _strikes(tables, terms, k, u, slow))
    return found


@lean
def _one_by_one(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    bilateral: Bilateral,
    u: NDArray[np.float64],
    closed: NDArray[np.int64],
    purpose: int,
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    log: NDArray[np.float64],
    broken: bool,
) -> int:
    """Impacts of one contact after the other, in the model's order, until none is left that strikes."""
    alone = indices(arena, closed.shape[0])
    if broken:
        top = mark(arena)
        status = collide(arena, tables, terms, bilateral, u, alone, purpose, impulse, energy, log)
        release(arena, top)
        if status != outcomes.GOING:
            return status
    slow = tables.tolerances[tol.SPEED]
    for _ in range(MOST_SWEEPS):
        if not any_strikes(tables, terms, closed, u, slow):
            # what the last sweeps left within the tolerance comes to rest
            return collide(arena, tables, terms, bilateral, u, closed, PLASTIC, impulse, energy, log)
        for k in range(closed.shape[0]):
            if closed[k] == 1 and _strikes(tables, terms, k, u, slow):
                alone[k] = 1
                top = mark(arena)
                status = collide(arena, tables, terms, bilateral, u, alone, purpose, impulse, energy, log)
                release(arena, top)
                alone[k] = 0
                if status != outcomes.GOING:
                    return status
    return outcomes.ENDLESS_IMPACTS


@lean
def collide(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    bilateral: Bilateral,
    u: NDArray[np.float64],
    closed: NDArray[np.int64],
    purpose: int,
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    log: NDArray[np.float64],
) -> int:
    """One impact of the contacts marked in ``closed`` and all bilateral rows; changes ``u``, adds to ``impulse``."""
    n_u, held = u.shape[0], bilateral.held
    momentum, base_u = vector(arena, n_u), vector(arena, n_u)
    target_b, base_reaction = vector(arena, held.shape[0]), vector(arena, held.shape[0])
    twice = 0.0
    for i in range(n_u):
        for j in range(n_u):
            momentum[i] += terms.M[i, j] * u[j]
        twice += momentum[i] * u[i]
    for k in range(held.shape[0]):
        target_b[k] = -terms.b[held[k]]
    if not solve_bilateral(bilateral, momentum, target_b, base_u, base_reaction, rounding_of(terms, u, False)):
        return outcomes.SINGULAR
    m, which, who = gather(arena, tables, terms, u, closed, purpose)
    n = which.shape[0]
    motions, reactions, K = contact_response(arena, terms, bilateral, which, n_u)
    free = free_response(arena, terms, which, n_u)
    base, speed = vector(arena, n), vector(arena, n)
    for r in range(n):
        base[r] = row_speed(terms, which[r], base_u)
        speed[r] = row_speed(terms, which[r], u)
    base_work, work = 0.0, vector(arena, n)
    for k in range(held.shape[0]):  # held rows answer 0, so only their speed before counts
        before = row_speed(terms, held[k], u)
        base_work += base_reaction[k] * before
        for r in range(n):
            work[r] += reactions[r, k] * before
    law = _set_targets(tables, terms, m, who, speed, purpose)
    problem, forces = scaled(arena, m, K, base, free, np.sqrt(max(twice, 0.0))), vector(arena, n)
    status = _find_impulses(
        arena, tables, terms, m, problem, who, law, base, speed, base_work, work, forces, energy, log
    )
    if status != outcomes.GOING:
        return status
    apply_impulses(which, held, base_u, base_reaction, motions, reactions, forces, u, impulse)
    return outcomes.GOING


@lean
def apply_impulses(
    which: NDArray[np.int64],
    held: NDArray[np.int64],
    base_u: NDArray[np.float64],
    base_reaction: NDArray[np.float64],
    motions: NDArray[np.float64],
    reactions: NDArray[np.float64],
    forces: NDArray[np.float64],
    u: NDArray[np.float64],
    impulse: NDArray[np.float64],
) -> None:
    """Set the speeds to those after impulses ``forces`` along the rows ``which``; add these and the reactions."""
    n = which.shape[0]
    for i in range(u.shape[0]):
        u[i] = base_u[i]
        for r in range(n):
            u[i] += motions[r, i] * forces[r]
    for r in range(n):
        impulse[which[r]] += forces[r]
    for k in range(held.shape[0]):
        impulse[held[k]] += base_reaction[k]
        for r in range(n):
            impulse[held[k]] += reactions[r, k] * forces[r]


@lean
def _find_impulses(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    m: Meeting,
    problem: Meeting,
    who: NDArray[np.int64],
    law: int,
    base: NDArray[np.float64],
    speed: NDArray[np.float64],
    base_work: float,
    work: NDArray[np.float64],
    forces: NDArray[np.float64],
    energy: NDArray[np.float64],
    log: NDArray[np.float64],
) -> int:
    """Find the contact impulses ``forces`` (n,) of one impact; returns a status.

    ``m`` and ``problem`` are the meeting and its scaled form, ``base`` and ``speed`` (n,) the rows' speeds after
    without contact impulses and before, ``base_work`` and ``work`` as in :func:`~.rebound.kept_part`.
    """
    n, count = forces.shape[0], who.shape[0]
    best, answers = indices(arena, count), vector(arena, n)
    wedged = False
    if law != BY_IMPULSES:
        status, _ = decide(arena, problem, LAWS_KEPT, best, forces, answers, who, log, 0)
        kept = status == outcomes.GOING or status == outcomes.SEVERAL
        if kept and (law == NO_REBOUND or not gains_energy(forces, answers, speed, base_work, work)):
            return outcomes.GOING
        wedged = status == outcomes.INCONSISTENT and law == BY_SPEEDS
        if not kept and not wedged:
            return status
    # without rebound: the first phase by impulses, and what the energy of the other law is held against
    plastic, plastic_answers = vector(arena, n), vector(arena, n)
    for r in range(n):
        problem.target[r] = 0.0
    status, _ = decide(arena, problem, LAWS_KEPT, best, plastic, plastic_answers, who, log, 0)
    if status != outcomes.GOING and status != outcomes.SEVERAL:
        return status
    if law == BY_IMPULSES or wedged:
        if wedged:  # no rebound at these speeds obeys the cones: the impulses are returned instead
            for r in range(n):
                m.target[r] = 0.0
        _expand(tables, terms, m, who, plastic, wedged)
        aim(problem, m, plastic_answers)
        status, _ = decide(arena, problem, LAWS_KEPT, best, forces, answers, who, log, 0)
        if status != outcomes.GOING and status != outcomes.SEVERAL:
            return status
        for r in range(n):
            forces[r] += plastic[r]
    beta = kept_part(plastic, plastic_answers, forces, answers, speed, base_work, work)
    energy[BETA] = min(energy[BETA], beta)
    for r in range(n):
        forces[r] = plastic[r] + beta * (forces[r] - plastic[r])
    return outcomes.GOING


@lean
def gather(
    arena: Arena, tables: Tables, terms: Terms, u: NDArray[np.float64], closed: NDArray[np.int64], purpose: int
) -> tuple[Meeting, NDArray[np.int64], NDArray[np.int64]]:
    """The meeting of the closed contacts, their rows and their numbers; of several answers arrest is taken."""
    slow = tables.tolerances[tol.SPEED]
    count = 0
    for k in range(closed.shape[0]):
        count += closed[k]
    m = empty_meeting(arena, count)
    which, who = indices(arena, 3 * count), indices(arena, count)
    n, at = 0, 0
    for k in range(closed.shape[0]):
        if closed[k] == 0:
            continue
        who[at] = k
        flags = tables.contact_flags[k]
        m.normal[at], which[n] = n, tables.contact_rows[k, 0]
        n += 1
        m.two_sided[at] = 1 if flags & tb.TWO_SIDED else 0
        m.allowed[at, mt.OPEN] = 1 - m.two_sided[at]
        m.allowed[at, mt.HOLD] = 1
        m.cost[at, mt.OPEN] = 2.0
        if tables.contact_rows[k, 1] >= 0:
            m.tangent[at], which[n] = n, tables.contact_rows[k, 1]
            n += 1
            if flags & tb.IN_SPACE:
                m.spatial[at], which[n] = 1, tables.contact_rows[k, 1] + 1
                n += 1
            m.static[at] = m.kinetic[at] = terms.kinetic[k]
            slip = row_speed(terms, tables.contact_rows[k, 1], u)
            if flags & tb.STICKS_ALWAYS:
                m.infinite[at] = 1
                # without a normal impulse it would also be free to slip: it is caught
                m.allowed[at, mt.OPEN] = 1 if row_speed(terms, tables.contact_rows[k, 0], u) > slow else 0
                m.allowed[at, mt.OPEN] |= 1 if count > 1 else 0
                # where catching it would take a pull, the friction alone catches it, and throws it off
                m.allowed[at, mt.PARTED_HOLD], m.cost[at, mt.PARTED_HOLD] = 1, 3.0
            elif m.spatial[at] == 1:
                m.allowed[at, mt.FORWARD], m.cost[at, mt.FORWARD] = 1, 1.0
                if purpose == ARREST and slip_speed(tables, terms, k, u) > slow:
                    m.allowed[at, mt.OPEN] = m.allowed[at, mt.FORWARD] = 0
            else:
                last = mt.UNDER_BACKWARD if m.two_sided[at] == 1 else mt.BACKWARD
                for choice in range(mt.FORWARD, last + 1):
                    if choice <= mt.BACKWARD or choice >= mt.UNDER_FORWARD:
                        m.allowed[at, choice], m.cost[at, choice] = 1, 1.0
                if purpose == ARREST and abs(slip) > slow:
                    along = mt.FORWARD if slip > 0.0 else mt.BACKWARD
                    m.allowed[at, mt.OPEN] = m.allowed[at, along] = 0
        at += 1
    return m, which[:n], who


@lean
def _set_targets(
    tables: Tables, terms: Terms, m: Meeting, who: NDArray[np.int64], speed: NDArray[np.float64], purpose: int
) -> int:
    """Ask each striking contact for its speed of rebound; returns by which law they rebound."""
    law = NO_REBOUND
    slow = tables.tolerances[tol.SPEED]
    for at in range(who.shape[0]):
        a, e = m.normal[at], terms.restitution[who[at]]
        if purpose == REBOUND and speed[a] < -slow and e > 0.0 and m.two_sided[at] == 0:
            if tables.contact_flags[who[at]] & tb.POISSON:
                law = BY_IMPULSES
            else:
                law = max(law, BY_SPEEDS)
                m.target[a] = -e * speed[a]
    return law


@lean
def _expand(
    tables: Tables, terms: Terms, m: Meeting, who: NDArray[np.int64], compression: NDArray[np.float64], every: bool
) -> None:
    """Poisson's second phase: what was compressed gives back e times the impulse, and friction goes on meanwhile."""
    for at in range(who.shape[0]):
        if tables.contact_flags[who[at]] & tb.POISSON == 0 and not every:
            continue
        a = m.normal[at]
        m.floor[a] = terms.restitution[who[at]] * compression[a]
        if m.tangent[at] >= 0 and m.infinite[at] == 0 and m.floor[a] > 0.0:
            m.allowed[at, mt.OPEN] = 0
            for choice in range(mt.PARTED_HOLD, mt.PARTED_BACKWARD + 1 - m.spatial[at]):
                m.allowed[at, choice] = 1
                m.cost[at, choice] = 1.0 if choice == mt.PARTED_HOLD else 2.0
        elif m.infinite[at] == 1 and m.floor[a] > 0.0:
            m.allowed[at, mt.OPEN] = 0
            m.allowed[at, mt.PARTED_HOLD] = 1
