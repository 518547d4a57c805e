"""The next mode: the combination of contact states that agrees with forces and accelerations.

Which answers are admitted, and which is preferred where several agree (docs/theory.md, "Resolution"):

- the state whose guard fired is left, unless nothing else agrees;
- a contact that stuck keeps sticking while it can, one whose slip has come to rest sticks if it can (so with
  static above kinetic friction both may agree, and this decides);
- otherwise the combination that changes least.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import meeting as mt
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Arena, copied, index_table, indices, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.compression import press
from fsm_dyn.simulation.constrained import (
    contact_response,
    factor_bilateral,
    free_response,
    rounding_of,
    row_speed,
    solve_bilateral,
)
from fsm_dyn.simulation.decision import decide
from fsm_dyn.simulation.impacts import bilateral_rows
from fsm_dyn.simulation.meeting import Meeting, empty_meeting, scaled
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms
from fsm_dyn.simulation.turning import angle_of

CHANGE: Final = 1.0  # cost of a state that differs
NO_ACCELERATION: Final = 1e-3  # m/s^2; against less than this no acceleration is judged: all of it may be rounding
SMALL_CHANGE: Final = 0.25  # cost of the less preferred of two states that both carry on

# how the answer was found (``notes[CHOSEN_BY]``)
NOTHING_TO_CHOOSE: Final = 0
ONLY_ONE: Final = 1
LEAST_CHANGE: Final = 2
FIRED_KEPT: Final = 3  # nothing else agreed than a state whose guard had fired
POLICY: Final = 4  # several motions agreed, and the model says that what changes least goes on
ARRESTED: Final = 5  # nothing agreed, and the model says that an impact without collision follows


@lean
def settle_states(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    state: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    direction: NDArray[np.float64],
    slack: NDArray[np.float64],
    closed: NDArray[np.int64],
    wanted: NDArray[np.int8],
    sigma: NDArray[np.float64],
    log: NDArray[np.float64],
) -> tuple[int, int, int, int]:
    """Find the contact states after the instant; fills ``wanted`` and ``sigma``.

    ``slack``: see :func:`~fsm_dyn.simulation.fired.read_slack`; it counts for contacts in the event it belongs to.

    Returns
    -------
    status : int
        ``GOING``, ``INCONSISTENT``, ``SEVERAL``, ``NON_UNIQUE`` or ``SINGULAR``.
    tried, consistent, chosen_by : int
        How many combinations were tried and agreed, and how the one taken was found.
    """
    n_u, n_contacts = tables.sizes[tb.N_U], closed.shape[0]
    u = state[tables.sizes[tb.N_Q] :]
    slow = tables.tolerances[tol.SPEED]
    for k in range(n_contacts):
        parts = row_speed(terms, tables.contact_rows[k, 0], u) > slow if closed[k] == 1 else False
        if parts and tables.contact_flags[k] & tb.TWO_SIDED == 0:
            closed[k] = 0  # it parts, whatever the accelerations
    force = copied(arena, terms.f[:n_u])
    press(tables, terms, u, before, event, wanted, force)
    m, which, who = _gather(arena, tables, terms, u, before, event, closed, wanted, sigma, slow)
    n, count = which.shape[0], who.shape[0]

    held = bilateral_rows(arena, tables, wanted)
    bilateral = factor_bilateral(arena, terms, held, n_u)
    target, base_motion, reaction = (vector(arena, held.shape[0]), vector(arena, n_u), vector(arena, held.shape[0]))
    for i in range(held.shape[0]):
        target[i] = -terms.gamma[held[i]]
    rounding = rounding_of(terms, u[:n_u], True)
    if not solve_bilateral(bilateral, force, target, base_motion, reaction, rounding):
        return outcomes.SINGULAR, 0, 0, NOTHING_TO_CHOOSE
    _, _, K = contact_response(arena, terms, bilateral, which, n_u)
    base, twice = vector(arena, n), 0.0
    for r in range(n):
        base[r] = terms.gamma[which[r]]
        for i in range(n_u):
            base[r] += terms.A[which[r], i] * base_motion[i]
    for i in range(n_u):
        for j in range(n_u):
            twice += base_motion[i] * terms.M[i, j] * base_motion[j]

    tolerance = tables.tolerances[tol.ACCELERATION]
    best, forces, answers = indices(arena, count), vector(arena, n), vector(arena, n)
    heaviest = 0.0
    for i in range(n_u):
        heaviest = max(heaviest, terms.M[i, i])
    free, scale = free_response(arena, terms, which, n_u), np.sqrt(max(twice, heaviest * NO_ACCELERATION**2))
    wide = index_table(arena, count, mt.CHOICES)
    for at in range(count):
        k = who[at]
        for choice in range(mt.CHOICES):
            wide[at, choice] = m.allowed[at, choice]
        if event[k] == tb.OPENS or event[k] == tb.SLIDES:
            m.slack[at, 0], m.slack[at, 1] = slack[k, 0], slack[k, 1]
        if m.normal[at] >= 0 and m.two_sided[at] == 0 and _vanishes(tables, wanted, K, free, m.normal[at]):
            for choice in range(mt.HOLD, mt.CHOICES):
                m.allowed[at, choice] = wide[at, choice] = 0
        kept = sigma[k] if m.spatial[at] == 0 else 0.0  # in space slip may go on in any direction
        _leave(before[k], event[k], direction[k], kept, m.two_sided[at] == 1, m.allowed[at])
    problem = scaled(arena, m, K, base, free, scale)
    status, verdict = decide(arena, problem, tolerance, best, forces, answers, who, log, 0)
    tried, chosen_by = verdict.tried, NOTHING_TO_CHOOSE
    if count > 0:
        chosen_by = ONLY_ONE if verdict.consistent == 1 else LEAST_CHANGE
    if status == outcomes.INCONSISTENT and _widen(m, who, event, before, wide):
        for only_together in (True, False):
            if only_together or status == outcomes.INCONSISTENT:
                if not only_together:
                    for at in range(count):
                        m.banned[at] = -1
                status, verdict = decide(arena, problem, tolerance, best, forces, answers, who, log, tried)
                tried += verdict.tried
                chosen_by = LEAST_CHANGE if only_together else FIRED_KEPT
    if status == outcomes.SEVERAL and tables.sizes[tb.ON_SEVERAL] == 1:
        status, chosen_by = outcomes.GOING, POLICY
    if status != outcomes.GOING:
        return status, tried, verdict.consistent, chosen_by
    old_sigma = copied(arena, sigma)
    for k in range(n_contacts):
        if tables.contact_kind[k] == tb.GAP:
            wanted[k] = tb.FREE
        sigma[k] = 0.0
    for at in range(count):
        choice = best[at]
        wanted[who[at]] = min(choice, tb.SLIDING) if choice < mt.UNDER_FORWARD else tb.SLIDING_UNDER
        sigma[who[at]] = mt.direction_of(choice)
        if m.spatial[at] == 1 and sigma[who[at]] != 0.0:
            goes_on = before[who[at]] == tb.SLIDING
            sigma[who[at]] = angle_of(m.way[at, 0], m.way[at, 1], old_sigma[who[at]] if goes_on else 0.0)
    return outcomes.GOING, tried, verdict.consistent, chosen_by


@lean
def _vanishes(
    tables: Tables, wanted: NDArray[np.int8], K: NDArray[np.float64], free: NDArray[np.float64], row: int
) -> bool:
    """Whether the constraints leave nothing of a contact's normal row, as at a dead point: it transmits no force.

    An engaged lock that holds the same row is no such constraint: what rests on it stays closed.
    """
    for k in range(wanted.shape[0]):
        if tables.contact_kind[k] == tb.LOCK and wanted[k] != tb.FREE:
            return False
    return bool(K[row, row] <= mt.HIDDEN * free[row])


@lean
def _gather(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
    wanted: NDArray[np.int8],
    sigma: NDArray[np.float64],
    slow: float,
) -> tuple[Meeting, NDArray[np.int64], NDArray[np.int64]]:
    """The meeting of all contacts that have something to choose, their rows and their numbers."""
    n_contacts = closed.shape[0]
    who, count = indices(arena, n_contacts), 0
    for k in range(n_contacts):
        rubs = tables.contact_kind[k] == tb.COMPLIANT and wanted[k] != tb.FREE and tables.contact_rows[k, 1] >= 0
        if closed[k] == 1 or rubs or tables.contact_kind[k] == tb.DRY_FRICTION:
            who[count] = k
            count += 1
    m, which, n = empty_meeting(arena, count), indices(arena, 3 * count), 0
    gives_way = False
    for k in range(n_contacts):
        gives_way = gives_way or event[k] == tb.SLIDES
    for at in range(count):
        k = who[at]
        kind, flags = tables.contact_kind[k], tables.contact_flags[k]
        if kind == tb.GAP:
            m.normal[at], which[n] = n, tables.contact_rows[k, 0]
            n += 1
        m.two_sided[at] = 1 if flags & tb.TWO_SIDED else 0
        m.infinite[at] = 1 if flags & tb.STICKS_ALWAYS else 0
        slip = 0.0
        if tables.contact_rows[k, 1] >= 0:
            m.tangent[at], which[n] = n, tables.contact_rows[k, 1]
            n += 1
            slip = row_speed(terms, tables.contact_rows[k, 1], u)
            if flags & tb.IN_SPACE:
                m.spatial[at], which[n] = 1, tables.contact_rows[k, 1] + 1
                across = row_speed(terms, which[n], u)
                n += 1
                m.way[at, 0], m.way[at, 1] = slip, across
                slip = np.hypot(slip, across)
            load = terms.elastic[k] if kind == tb.COMPLIANT else 1.0
            m.static[at], m.kinetic[at] = load * terms.static[k], load * terms.kinetic[k]
        flush = kind == tb.GAP and tables.contact_ends[k, 0] >= 0 and before[k] == tb.FREE  # as if it had been held
        _admit(m, at, tb.HELD if flush else before[k], event[k], slip, sigma[k], slow)
        if gives_way and m.spatial[at] == 1 and before[k] == tb.SLIDING and event[k] != tb.STICKS:
            m.cost[at, mt.FORWARD] = 0.0  # at its limit and not slipping yet: it lets go with the others
    return m, which[:n], who[:count]


@lean
def _admit(m: Meeting, at: int, before: int, event: int, slip: float, sigma: float, slow: float) -> None:
    """List the choices a contact has by its velocities, and what each would cost."""
    came = before
    if event == tb.CLOSES:
        came = tb.HELD
    if m.normal[at] >= 0 and m.two_sided[at] == 0:
        m.allowed[at, mt.OPEN] = 1
        m.cost[at, mt.OPEN] = 0.0 if came == tb.FREE else CHANGE
    if m.tangent[at] < 0 or m.infinite[at] == 1:
        m.allowed[at, mt.HOLD] = 1
        m.cost[at, mt.HOLD] = 0.0 if came == tb.HELD else SMALL_CHANGE
        return
    if m.spatial[at] == 1:
        turns = event == tb.STICKS or event == tb.SLIDES
        m.slipping[at] = 1 if slip > (tb.TURNING * slow if turns else slow) else 0
        m.allowed[at, mt.HOLD], m.allowed[at, mt.FORWARD] = 1 - m.slipping[at], 1
        m.cost[at, mt.HOLD] = 0.0 if came == tb.HELD else SMALL_CHANGE
        m.cost[at, mt.FORWARD] = 2.0 * SMALL_CHANGE if came == tb.SLIDING else CHANGE
        if m.slipping[at] == 1:
            m.way[at, 0], m.way[at, 1], m.cost[at, mt.FORWARD] = m.way[at, 0] / slip, m.way[at, 1] / slip, 0.0
        return
    under = m.two_sided[at] == 1
    still = abs(slip) <= slow or event == tb.STICKS or event == tb.SLIDES
    if not still:
        m.slipping[at] = 1
        m.allowed[at, mt.FORWARD if slip > 0.0 else mt.BACKWARD] = 1
        if under:
            m.allowed[at, mt.UNDER_FORWARD if slip > 0.0 else mt.UNDER_BACKWARD] = 1
            m.cost[at, mt.UNDER_FORWARD] = m.cost[at, mt.UNDER_BACKWARD] = 0.0 if came == tb.SLIDING_UNDER else CHANGE
            m.cost[at, mt.FORWARD] = m.cost[at, mt.BACKWARD] = CHANGE if came == tb.SLIDING_UNDER else 0.0
        return
    m.allowed[at, mt.HOLD] = 1
    m.cost[at, mt.HOLD] = 0.0 if came == tb.HELD else SMALL_CHANGE
    for choice in (mt.FORWARD, mt.BACKWARD, mt.UNDER_FORWARD, mt.UNDER_BACKWARD):
        if choice <= mt.BACKWARD or under:
            m.allowed[at, choice] = 1
            same = came >= tb.SLIDING and (sigma > 0.0) == (mt.direction_of(choice) > 0.0)
            m.cost[at, choice] = 2.0 * SMALL_CHANGE if same else CHANGE


@lean
def _leave(
    before: int, event: int, direction: float, sigma: float, two_sided: bool, allowed: NDArray[np.int64]
) -> None:
    """Strike out the state whose guard fired; at a release or a friction limit it would still look consistent."""
    if event == tb.OPENS and two_sided:  # pressed on the other face now
        over = before == tb.SLIDING
        for choice in range(mt.FORWARD, mt.CHOICES):
            if (choice >= mt.UNDER_FORWARD) != over:
                allowed[choice] = 0
    elif event == tb.OPENS:
        for choice in range(mt.HOLD, mt.CHOICES):
            allowed[choice] = 0
    elif event == tb.SLIDES:
        allowed[mt.HOLD] = 0
        for choice in range(mt.FORWARD, mt.CHOICES):
            if mt.direction_of(choice) * direction < 0.0:
                allowed[choice] = 0
    elif event == tb.STICKS and sigma != 0.0:
        for choice in range(mt.FORWARD, mt.CHOICES):
            if mt.direction_of(choice) * sigma > 0.0:
                allowed[choice] = 0


@lean
def _widen(
    m: Meeting, who: NDArray[np.int64], event: NDArray[np.int64], before: NDArray[np.int64], wide: NDArray[np.int64]
) -> bool:
    """Allow the states that fired again, but not all of them together; returns whether that allows anything more."""
    more = False
    for at in range(who.shape[0]):
        for choice in range(mt.CHOICES):
            more = more or m.allowed[at, choice] != wide[at, choice]
            m.allowed[at, choice] = wide[at, choice]
        if event[who[at]] == tb.SLIDES or (event[who[at]] == tb.OPENS and before[who[at]] == tb.HELD):
            m.banned[at] = mt.HOLD
    return more
