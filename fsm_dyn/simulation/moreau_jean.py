"""Moreau-Jean time stepping: fixed steps in which contacts may strike, stick, slide and part at any moment.

Nothing is located: a step of length ``h`` goes from ``(q, u)`` over the middle ``q_m = q + h/2 q̇`` to
``u⁺ = u_free + M⁻¹AᵀΛ`` and ``q⁺ = q_m + h/2 q̇(q_m, u⁺)``, with all terms at the middle and the free speeds by the
θ-method.  Contacts whose gap is closed at the middle take part in the one-step problem: Newton's restitution
``0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0`` and Coulomb's law for the impulses of the step, by projected Gauss-Seidel sweeps.  Rows
that hold both ways are eliminated exactly.  First order, whatever happens within a step; the work in a step is bounded.

Moreau (1988), *Unilateral contact and dry friction in finite freedom dynamics*; Jean (1999), *The non-smooth contact
dynamics method*, Comput. Methods Appl. Mech. Eng. 177.  See docs/theory.md, "Time stepping".
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.active_contacts import begin_sides, deep_at_start, keep_sides, list_active, presses
from fsm_dyn.simulation.arena import copied, indices, release, vector
from fsm_dyn.simulation.compiled import entry, lean
from fsm_dyn.simulation.constrained import (
    Bilateral,
    contact_response,
    factor_bilateral,
    rounding_of,
    row_speed,
    solve_bilateral,
)
from fsm_dyn.simulation.contexts import sigma_at
from fsm_dyn.simulation.evaluation import normalise_quaternions
from fsm_dyn.simulation.impacts import bilateral_rows
from fsm_dyn.simulation.inputs import DRIVE, DriveArrays, next_breakpoint, write_inputs
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.linear import put
from fsm_dyn.simulation.rebound import gains_energy, kept_part
from fsm_dyn.simulation.state import Work
from fsm_dyn.simulation.step_limit import longest_step
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms, open_terms
from fsm_dyn.simulation.turning import angle_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int8]

THETA: Final = 0.5
SWEEPS: Final = 2000  # of the projected Gauss-Seidel method, at most
SETTLED: Final = 1e-12  # change of a speed in a sweep, as a fraction of the fastest: the sweeps end
HELD_BACK: Final = 0.1  # part of a loop's opening that a step closes again
CORRECTIONS: Final = 2  # passes of the theta-method
SLOW: Final = 2.0  # times the change of speed in a step without contacts, below which there is no rebound

# what is reported of a run
UNSOLVED: Final = 0  # steps whose sweeps did not settle
FIRST_UNSOLVED: Final = 1  # when the first of them began (s)
WORST_UNSOLVED: Final = 2  # largest change of a speed in a last sweep, as a fraction of the fastest
LONGEST: Final = 3  # longest step that the compliant contacts allow where a step was too long (s)
REPORT_COUNT: Final = 4

REBOUND: Final = 2  # entry of ``energies``


@lean
def _free_speeds(
    work: Work, tables: Tables, terms: Terms, bilateral: Bilateral, t: float, h: float, x: Floats, u: Floats,
    c: Floats, free: Floats, reaction: Floats, free_side: Codes,
) -> bool:  # fmt: skip
    """Speeds after the step if no contact held: ``M (u_free - u) = h f`` at ``(1 - θ) u + θ u_free``, loops held."""
    n_q, n_u = tables.sizes[tb.N_Q], u.shape[0]
    held = bilateral.held
    momentum, target = vector(work, n_u), vector(work, held.shape[0])
    put(free, u)
    for _ in range(CORRECTIONS):
        for i in range(n_u):
            x[n_q + i] = (1.0 - THETA) * u[i] + THETA * free[i]
        call_kernel(tables.terms[0], t, x, c, terms.whole)
        for i in range(n_u):
            momentum[i] = h * terms.f[i]
            for j in range(n_u):
                momentum[i] += terms.M[i, j] * u[j]
        for k in range(free_side.shape[0]):
            if presses(tables, terms, k, free_side):
                for i in range(n_u):
                    momentum[i] += h * terms.elastic[k] * terms.A[tables.contact_rows[k, 0], i]
        for k in range(held.shape[0]):
            target[k] = -terms.b[held[k]]
            if tables.row_positional[held[k]] == 1:
                target[k] -= HELD_BACK * terms.residual[held[k]] / h
        if not solve_bilateral(bilateral, momentum, target, free, reaction, rounding_of(terms, u, False)):
            return False
    return True


@lean
def _bound(tables: Tables, terms: Terms, k: int, h: float, normal: Integers, impulse: Floats, before: int) -> float:
    """The largest friction impulse of a contact, static where it stuck before; negative: there is none."""
    if tables.contact_flags[k] & tb.STICKS_ALWAYS:
        return -1.0
    ratio = terms.static[k] if before == tb.HELD else terms.kinetic[k]
    if tables.contact_kind[k] == tb.DRY_FRICTION:
        return float(ratio * h)
    if tables.contact_kind[k] == tb.COMPLIANT:
        return float(ratio * h * terms.elastic[k])
    return float(ratio * abs(impulse[normal[k]]))


@lean
def _sweep(
    tables: Tables, terms: Terms, K: Floats, speed: Floats, target: Floats, normal: Integers, tangent: Integers,
    impulse: Floats, h: float, codes: Codes,
) -> float:  # fmt: skip
    """One sweep over all contacts; returns the largest change of a speed.  ``speed`` follows the impulses."""
    largest = 0.0
    for k in range(normal.shape[0]):
        for part in range(2):
            r = normal[k] if part == 0 else tangent[k]
            if r < 0 or K[r, r] <= 0.0:
                continue
            if part == 1 and tables.contact_flags[k] & tb.IN_SPACE:
                bound = _bound(tables, terms, k, h, normal, impulse, codes[k])
                if bound < 0.0 and impulse[normal[k]] == 0.0:
                    bound = 0.0
                largest = max(largest, _sweep_plane(K, speed, impulse, r, bound))
                continue
            after = impulse[r] - (speed[r] - target[r]) / K[r, r]
            if part == 0:
                if tables.contact_flags[k] & tb.TWO_SIDED == 0:
                    after = max(0.0, after)
            else:
                bound = _bound(tables, terms, k, h, normal, impulse, codes[k])
                if bound >= 0.0:
                    after = min(bound, max(-bound, after))
                elif impulse[normal[k]] == 0.0:
                    after = 0.0
            change = after - impulse[r]
            impulse[r] = after
            largest = max(largest, abs(change) * K[r, r])
            if change != 0.0:
                for s in range(speed.shape[0]):
                    speed[s] += K[s, r] * change
    return largest


@lean
def _sweep_plane(K: Floats, speed: Floats, impulse: Floats, r: int, bound: float) -> float:
    """As :func:`_sweep` for friction in space, of the tangent rows ``r`` and ``r + 1``: impulses within a circle."""
    stiff = max(K[r, r], K[r + 1, r + 1]) + abs(K[r, r + 1])
    first, second = impulse[r] - speed[r] / stiff, impulse[r + 1] - speed[r + 1] / stiff
    size = np.hypot(first, second)
    if 0.0 <= bound < size:
        first, second = first * bound / size, second * bound / size
    first, second = first - impulse[r], second - impulse[r + 1]
    impulse[r] += first
    impulse[r + 1] += second
    for s in range(speed.shape[0]):
        speed[s] += K[s, r] * first + K[s, r + 1] * second
    return float(stiff * max(abs(first), abs(second)))


@lean
def _solve(
    tables: Tables, terms: Terms, K: Floats, speed: Floats, target: Floats, normal: Integers, tangent: Integers,
    impulse: Floats, h: float, codes: Codes, fastest: float,
) -> float:  # fmt: skip
    """Sweep until nothing changes; returns the change of a speed in the last sweep."""
    change = 0.0
    for _ in range(SWEEPS if speed.shape[0] > 0 else 0):
        change = _sweep(tables, terms, K, speed, target, normal, tangent, impulse, h, codes)
        if change <= SETTLED * fastest:
            break
    return change


@lean
def _contact_impulses(
    work: Work, tables: Tables, terms: Terms, K: Floats, speed: Floats, target: Floats, normal: Integers,
    tangent: Integers, impulse: Floats, h: float, codes: Codes, fastest: float,
) -> tuple[float, float]:  # fmt: skip
    """Solve the one-step problem, and keep of its rebound what does not raise the energy, as impacts do.

    ``speed`` (n,): in, without contacts; out, after.  Returns the last change of a speed and the part of the rebound
    that is kept.
    """
    before = copied(work, speed)
    change = _solve(tables, terms, K, speed, target, normal, tangent, impulse, h, codes, fastest)
    rebounds, none = False, vector(work, speed.shape[0])
    for r in range(speed.shape[0]):
        rebounds = rebounds or target[r] > 0.0
    if not rebounds or not gains_energy(impulse, speed, before, 0.0, none):
        return change, 1.0
    plastic, plastic_speed = vector(work, speed.shape[0]), copied(work, before)
    again = _solve(tables, terms, K, plastic_speed, none, normal, tangent, plastic, h, codes, fastest)
    beta = kept_part(plastic, plastic_speed, impulse, speed, before, 0.0, none)
    for r in range(speed.shape[0]):
        impulse[r] = plastic[r] + beta * (impulse[r] - plastic[r])
        speed[r] = plastic_speed[r] + beta * (speed[r] - plastic_speed[r])
    return max(change, again), beta


@lean
def _codes_after(
    tables: Tables, terms: Terms, h: float, speed: Floats, normal: Integers, tangent: Integers, impulse: Floats,
    codes: Codes, free_side: Codes, sigma: Floats, fastest: float,
) -> None:  # fmt: skip
    """Tell the contact states of the step from its impulses: none, within the cone, or at its edge."""
    small = 1e-9 * fastest
    for k in range(codes.shape[0]):
        before = codes[k]
        if tables.contact_kind[k] == tb.LOCK:
            continue
        codes[k], sigma[k] = tb.FREE, 0.0
        loaded = tables.contact_flags[k] & tb.TWO_SIDED != 0
        loaded = loaded or tables.contact_kind[k] == tb.DRY_FRICTION or (normal[k] >= 0 and impulse[normal[k]] > 0.0)
        if tables.contact_kind[k] == tb.COMPLIANT:
            loaded = presses(tables, terms, k, free_side)
        if not loaded or (normal[k] >= 0 and speed[normal[k]] > small):
            continue
        codes[k] = tb.HELD
        r = tangent[k]
        if r >= 0:
            bound = _bound(tables, terms, k, h, normal, impulse, before)
            if tables.contact_flags[k] & tb.IN_SPACE:
                if bound >= 0.0 and np.hypot(speed[r], speed[r + 1]) > small:
                    codes[k] = tb.SLIDING
                    sigma[k] = angle_of(speed[r], speed[r + 1], 0.0)
            elif bound >= 0.0 and abs(speed[r]) > small:
                codes[k] = tb.SLIDING
                sigma[k] = 1.0 if speed[r] > 0.0 else -1.0


@lean
def _report_solve(report: Floats, t: float, change: float) -> None:
    """Count a step whose sweeps did not settle: its impulses are those of the last sweep."""
    if change > SETTLED:
        if report[UNSOLVED] == 0.0:
            report[FIRST_UNSOLVED] = t
        report[UNSOLVED] += 1.0
        report[WORST_UNSOLVED] = max(report[WORST_UNSOLVED], change)


@lean
def step_once(
    work: Work, tables: Tables, drive: DriveArrays, t: float, h: float, segment: int, x: Floats, c: Floats,
    codes: Codes, free_side: Codes, free: Floats, middle: Floats, impulses: Floats, energies: Floats, report: Floats,
) -> int:  # fmt: skip
    """Take one step in place.

    Parameters
    ----------
    x : (n_x,), c : (n_c,), codes : (n_contacts,)
        In and out: state, context with slip directions, contact states.
    free_side : (n_contacts,)
        In and out: see :mod:`fsm_dyn.simulation.active_contacts`.
    free, middle, impulses : (n_u,), (n_x,), (n_rows,)
        Out: speeds without contacts, state at the middle, impulses of all rows (N s).
    energies : (3,)
        Out: kinetic plus potential energy after the step without and with the impulses of contacts (J), and the part
        of the rebound that was kept.
    report : (REPORT_COUNT,)
        In and out: see ``UNSOLVED`` ... ``LONGEST``.

    Returns
    -------
    int
        ``GOING``, ``SINGULAR`` or ``STEP_TOO_LONG``.
    """
    n_q, n_u, n_rows = tables.sizes[tb.N_Q], tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS]
    count = codes.shape[0]
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    u = copied(work, x[n_q:])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    begin_sides(tables, terms, codes, free_side)
    for i in range(n_q):
        middle[i] = x[i] + 0.5 * h * terms.q_dot[i]
    put(middle[n_q:], u)
    normalise_quaternions(tables, middle)
    at = t + 0.5 * h
    write_inputs(drive, at, segment, middle, c)
    call_kernel(tables.terms[0], at, middle, c, terms.whole)
    keep_sides(tables, terms, h, u, codes, free_side)
    held = bilateral_rows(work, tables, codes)
    bilateral = factor_bilateral(work, terms, held, n_u)
    report[LONGEST] = longest_step(work, tables, terms, bilateral, at, middle, c, free_side)
    if h > report[LONGEST]:
        return outcomes.STEP_TOO_LONG
    reaction = vector(work, held.shape[0])
    if not _free_speeds(work, tables, terms, bilateral, at, h, middle, u, c, free, reaction, free_side):
        return outcomes.SINGULAR
    which, normal, tangent = indices(work, n_rows), indices(work, count), indices(work, count)
    n = list_active(tables, terms, h, u, codes, free_side, indices(work, count), which, normal, tangent)
    motions, reactions, K = contact_response(work, terms, bilateral, which[:n], n_u)
    speed, target, impulse, fastest = vector(work, n), vector(work, n), vector(work, n), 1e-300
    for r in range(n):
        speed[r] = row_speed(terms, which[r], free)
        fastest = max(fastest, abs(speed[r]), abs(row_speed(terms, which[r], u)))
    for k in range(count):
        if normal[k] >= 0:
            before = row_speed(terms, which[normal[k]], u)
            # what the forces of a step or two bring about is no impact: a contact that lasts does not rebound from it
            at_rest = SLOW * abs(row_speed(terms, which[normal[k]], free) - before)
            if before < -at_rest and tables.contact_flags[k] & tb.TWO_SIDED == 0:
                target[normal[k]] = -terms.restitution[k] * before
    change, energies[REBOUND] = _contact_impulses(
        work, tables, terms, K, speed, target, normal, tangent, impulse, h, codes, fastest
    )
    _report_solve(report, t, change / fastest)
    first = sigma_at(tables.sizes)
    sigma = c[first : first + count]
    _codes_after(tables, terms, h, speed, normal, tangent, impulse, codes, free_side, sigma, fastest)
    for r in range(n_rows):
        impulses[r] = 0.0
    for k in range(held.shape[0]):
        impulses[held[k]] = reaction[k]
    for i in range(n_q):
        x[i] = middle[i]
    for i in range(n_u):
        x[n_q + i] = free[i]
    for r in range(n):
        impulses[which[r]] += impulse[r]
        for i in range(n_u):
            x[n_q + i] += motions[r, i] * impulse[r]
        for k in range(held.shape[0]):
            impulses[held[k]] += reactions[r, k] * impulse[r]
    call_kernel(tables.terms[0], at, x, c, terms.whole)
    for i in range(n_q):
        x[i] += 0.5 * h * terms.q_dot[i]
    normalise_quaternions(tables, x)
    write_inputs(drive, t + h, segment, x, c)
    call_kernel(tables.terms[0], t + h, x, c, terms.whole)
    energies[1] = terms.energies[0] + terms.energies[1]
    for i in range(n_u):
        u[i], x[n_q + i] = x[n_q + i], free[i]
    call_kernel(tables.terms[0], t + h, x, c, terms.whole)
    energies[0] = terms.energies[0] + terms.energies[1]
    for i in range(n_u):
        x[n_q + i] = u[i]
    return outcomes.GOING


_open_tables = st.TABLES.opener()
_open_drive = DRIVE.opener()
_open_work = st.WORK.opener()


@entry
def march(
    tables_at: int, drive_at: int, work_at: int, segment: int, times: Floats, x: Floats, c: Floats, codes: Codes,
    free_side: Codes, free: Floats, middle: Floats, impulses: Floats, energies: Floats, report: Floats,
) -> tuple[int, int, int]:  # fmt: skip
    """Step through all ``times``; row i + 1 of every array is written from row i, but ``free_side`` and ``report``.

    Returns
    -------
    status, row, segment
        How it ended, and the last row written with its segment of the inputs.
    """
    tables = _open_tables(tables_at)
    drive = _open_drive(drive_at)
    work = _open_work(work_at)
    for i in range(times.shape[0] - 1):
        t, h = times[i], times[i + 1] - times[i]
        while next_breakpoint(drive, segment) <= t + 1e-9 * h:
            segment = drive.next_hard[segment]
        for j in range(x.shape[1]):
            x[i + 1, j] = x[i, j]
        for j in range(c.shape[1]):
            c[i + 1, j] = c[i, j]
        for j in range(codes.shape[1]):
            codes[i + 1, j] = codes[i, j]
        status = step_once(
            work, tables, drive, t, h, segment, x[i + 1], c[i + 1], codes[i + 1], free_side, free[i + 1],
            middle[i + 1], impulses[i + 1], energies[i + 1], report,
        )  # fmt: skip
        if status != outcomes.GOING:
            return status, i, segment
        finite = True
        for j in range(x.shape[1]):
            finite = finite and np.isfinite(x[i + 1, j])
        if not finite:
            return outcomes.NON_FINITE, i, segment
    return outcomes.DONE, times.shape[0] - 1, segment


@entry
def may_start(tables_at: int, work_at: int, t: float, x: Floats, c: Floats, codes: Codes) -> bool:
    """Whether no open contact is deeper than its tolerance where a run begins."""
    tables, work = _open_tables(tables_at), _open_work(work_at)
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    return not deep_at_start(tables, terms, codes)
