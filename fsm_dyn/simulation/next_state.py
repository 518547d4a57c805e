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

from fsm_dyn.simulation import contact_law as law
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import inner
from fsm_dyn.simulation.constrained import contact_response, factor_bilateral, row_speed, solve_bilateral
from fsm_dyn.simulation.impacts import bilateral_rows
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

CHANGE: Final = 1.0  # cost of a state that differs
SMALL_CHANGE: Final = 0.25  # cost of the less preferred of two states that both carry on


@inner
def settle_states(
    tables: Tables,
    terms: Terms,
    state: NDArray[np.float64],
    before: NDArray[np.int8],
    event: NDArray[np.int64],
    direction: NDArray[np.float64],
    closed: NDArray[np.int8],
    wanted: NDArray[np.int8],
    sigma: NDArray[np.float64],
) -> tuple[int, int]:
    """Find the contact states after the instant; fills ``wanted`` and ``sigma``.

    Returns
    -------
    status, tried : int
        ``GOING``, ``INCONSISTENT`` or ``SINGULAR``; and how many combinations were tried.
    """
    n_u, n_contacts = tables.sizes[tb.N_U], closed.shape[0]
    u = state[tables.sizes[tb.N_Q] :]
    slow = tables.tolerances[tol.SPEED]
    count = 0
    for k in range(n_contacts):
        if closed[k] == 1 and row_speed(terms, tables.contact_rows[k, 0], u) > slow:
            closed[k] = 0  # it parts, whatever the accelerations
        if closed[k] == 1 or tables.contact_kind[k] == tb.DRY_FRICTION:
            count += 1
    who, which = np.empty(count, np.int64), np.empty(2 * count, np.int64)
    normal, tangent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    static, kinetic = np.zeros(count), np.zeros(count)
    slipping, allowed = np.zeros(count, np.int8), np.zeros((count, law.CHOICES), np.int8)
    cost = np.zeros((count, law.CHOICES))
    n, at = 0, 0
    for k in range(n_contacts):
        dry = tables.contact_kind[k] == tb.DRY_FRICTION
        if closed[k] == 0 and not dry:
            continue
        who[at] = k
        if not dry:
            normal[at] = n
            which[n] = tables.contact_rows[k, 0]
            n += 1
        slip = 0.0
        if tables.contact_rows[k, 1] >= 0:
            tangent[at] = n
            which[n] = tables.contact_rows[k, 1]
            n += 1
            slip = row_speed(terms, tables.contact_rows[k, 1], u)
            static[at], kinetic[at] = terms.static[k], terms.kinetic[k]
        if tables.contact_flags[k] & tb.STICKS_ALWAYS:
            static[at] = law.WORST
        _admit(tables, k, dry, before[k], event[k], slip, sigma[k], slow, at, allowed, slipping, cost)
        at += 1
    which = which[:n]

    held = bilateral_rows(tables, wanted)
    bilateral = factor_bilateral(terms, held, n_u)
    target, base_motion, reaction = np.zeros(held.shape[0]), np.zeros(n_u), np.zeros(held.shape[0])
    for i in range(held.shape[0]):
        target[i] = -terms.gamma[held[i]]
    if not solve_bilateral(bilateral, terms.f[:n_u], target, base_motion, reaction):
        return outcomes.SINGULAR, 0
    _, _, K = contact_response(terms, bilateral, which, n_u)
    base = np.zeros(n)
    for r in range(n):
        base[r] = terms.gamma[which[r]]
        for i in range(n_u):
            base[r] += terms.A[which[r], i] * base_motion[i]

    tolerance = tables.tolerances[tol.ACCELERATION]
    best, forces, answers = np.zeros(count, np.int64), np.zeros(n), np.zeros(n)
    strict = allowed.copy()
    for k in range(count):
        _leave(before[who[k]], event[who[k]], direction[who[k]], sigma[who[k]], strict[k])
    consistent, tried, _ = law.enumerate_choices(
        normal, tangent, K, base, np.zeros(n), static, kinetic, slipping, strict, cost, tolerance, best, forces, answers
    )
    if consistent == 0:
        consistent, more, _ = law.enumerate_choices(
            normal, tangent, K, base, np.zeros(n), static, kinetic, slipping, allowed, cost, tolerance, best, forces,
            answers,
        )  # fmt: skip
        tried += more
    if consistent == 0:
        return outcomes.INCONSISTENT, tried
    for k in range(n_contacts):
        if tables.contact_kind[k] == tb.GAP:
            wanted[k] = tb.FREE
        sigma[k] = 0.0
    for k in range(count):
        choice = best[k]
        wanted[who[k]] = min(choice, tb.SLIDING)
        if choice >= law.FORWARD:
            sigma[who[k]] = 1.0 if choice == law.FORWARD else -1.0
    return outcomes.GOING, tried


@inner
def _admit(
    tables: Tables,
    k: int,
    dry: bool,
    before: int,
    event: int,
    slip: float,
    sigma: float,
    slow: float,
    at: int,
    allowed: NDArray[np.int8],
    slipping: NDArray[np.int8],
    cost: NDArray[np.float64],
) -> None:
    """List the choices a contact has by its velocities, and what each would cost."""
    came = before
    if event == tb.CLOSES:
        came = tb.HELD
    if not dry:
        allowed[at, law.OPEN] = 1
        cost[at, law.OPEN] = 0.0 if came == tb.FREE else CHANGE
    frictional = tables.contact_rows[k, 1] >= 0
    if not frictional or tables.contact_flags[k] & tb.STICKS_ALWAYS:
        allowed[at, law.HOLD] = 1
        cost[at, law.HOLD] = 0.0 if came == tb.HELD else SMALL_CHANGE
        return
    still = abs(slip) <= slow or event == tb.STICKS or event == tb.SLIDES
    if not still:
        choice = law.FORWARD if slip > 0.0 else law.BACKWARD
        allowed[at, choice] = 1
        slipping[at] = 1
        return
    allowed[at, law.HOLD] = 1
    cost[at, law.HOLD] = 0.0 if came == tb.HELD else SMALL_CHANGE
    for choice in (law.FORWARD, law.BACKWARD):
        allowed[at, choice] = 1
        same = came == tb.SLIDING and (sigma > 0.0) == (choice == law.FORWARD)
        cost[at, choice] = 2.0 * SMALL_CHANGE if same else CHANGE


@inner
def _leave(before: int, event: int, direction: float, sigma: float, allowed: NDArray[np.int8]) -> None:
    """Strike out the state whose guard fired; at a release or a friction limit it would still look consistent."""
    if event == tb.OPENS:
        for choice in range(law.HOLD, law.CHOICES):
            allowed[choice] = 0
    elif event == tb.SLIDES:
        allowed[law.HOLD] = 0
        allowed[law.BACKWARD if direction > 0.0 else law.FORWARD] = 0
    elif event == tb.STICKS and sigma != 0.0:
        allowed[law.FORWARD if sigma > 0.0 else law.BACKWARD] = 0
