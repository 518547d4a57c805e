"""Change points: instants at which constraint rows lose rank and gain it again (docs/theory.md, "Change points").

On the branch that velocity continues, everything but the multipliers is smooth through such a point; what is not is the
arithmetic, whose rounding is divided by what is left of the rows.  So the stages of a step near one are put on the
rows, and its nodes are kept clear of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Workspace, indices, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.eigenvalues import eigenvalues
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.rank import (
    REDUNDANT,
    SMALL,
    column_scales,
    fill_scaled,
    orthogonalise,
    row_norm,
    rows_held,
)
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms, open_terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AHEAD_OFTEN: Final = 0.25  # part of the time in which rows could vanish after which they are looked at again
UNSEEN_STEPS: Final = 64  # steps after which they are looked at in any case
FASTER: Final = 2.0  # times as fast as when they were looked at, they are looked at again
TOGETHER: Final = 1.3  # change points whose times are within this ratio are kept clear of as one
REAL: Final = 0.3  # an eigenvalue with a smaller imaginary part, relative, is a time
CLOSEST: Final = 1e-5  # what is left of the rows at the ends of steps over a change point, at least
ROUNDING: Final = 2.0  # rounding of a step, over that of a number and the square of what is left a step away
_EPS: Final = 2.220446049250313e-16
VANISHED: Final = 1e-12  # part of a row left that is still looked at where none was implied by the others before
PROBES: Final = 4  # configurations beside the start at which the sizes of rows are seen


@lean
def known_sizes(work: Workspace, tables: Tables, t: float, x: Floats, c: Floats, terms: Terms, sizes: Floats) -> None:
    """Raise ``sizes`` (n_rows,) to the norms of the rows at ``x`` and at a few configurations beside it."""
    n_q, n_u = tables.sizes[tb.N_Q], tables.sizes[tb.N_U]
    probe, scale = vector(work, x.shape[0]), vector(work, n_u)
    for k in range(PROBES + 1):
        for i in range(x.shape[0]):
            probe[i] = x[i]
        for i in range(n_q):  # the same ones every time; the golden ratio spreads them evenly
            part = (k * (i + 1) * 0.6180339887498949) % 1.0
            probe[i] += (0.6 * part - 0.3) * min(k, 1)
        for k4 in range(tables.quaternions.shape[0]):
            first = tables.quaternions[k4]
            norm = 0.0
            for i in range(first, first + 4):
                norm += probe[i] * probe[i]
            for i in range(first, first + 4):
                probe[i] /= np.sqrt(norm)
        call_kernel(tables.terms[0], t, probe, c, terms.whole)
        column_scales(terms, scale)
        for r in range(sizes.shape[0]):
            norm = row_norm(terms, r, scale)
            if np.isfinite(norm):
                sizes[r] = max(sizes[r], norm)


@lean
def assess(
    work: Workspace, tables: Tables, t: float, x: Floats, x_dot: Floats, c: Floats, mode: int, rank: Floats
) -> None:
    """Find how much is left of the rows held in ``mode`` and when rank is lost if they go on changing so.

    Parameters
    ----------
    rank : float64 array
        ``State.rank``; in: the sizes of rows; out: ``SIGMA RATE AHEAD BEHIND LOST LEFT_AT`` and the weights of rows.
    """
    release(work, (0, 0))
    n_u, n_rows = tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS]
    sizes, weights = rank[st.RANK_COUNT : st.RANK_COUNT + n_rows], rank[st.RANK_COUNT + n_rows :]
    terms = open_terms(work.addresses[0])
    if rank[st.SIZED] == 0.0:
        rank[st.SIZED] = 1.0
        known_sizes(work, tables, t, x, c, terms, sizes)
        release(work, (0, 0))
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    rows = rows_held(work, tables, mode, False)
    m = rows.shape[0]
    rank[st.AHEAD], rank[st.BEHIND], rank[st.LOST], rank[st.SIGMA], rank[st.RATE] = np.inf, np.inf, 0.0, 1.0, 0.0
    rank[st.LEFT_AT], rank[st.MOTION] = np.inf, motion(x, x_dot, tables.sizes[tb.N_Q])
    if m == 0:
        return
    scale = vector(work, n_u)
    column_scales(terms, scale)
    for r in rows:
        sizes[r] = max(sizes[r], row_norm(terms, r, scale))
    before, Q = matrix(work, m, n_u), matrix(work, m, n_u)
    fill_scaled(terms, rows, scale, sizes, before)
    for k in range(m):
        for i in range(n_u):
            Q[k, i] = before[k, i]
    order, L = indices(work, m), matrix(work, m, m)
    were_independent = rank[st.ACTIVE] == m and rank[st.INDEPENDENT] == m
    taken = orthogonalise(Q, order, L, VANISHED if were_independent else REDUNDANT)
    if taken == 0:
        return
    rank[st.INDEPENDENT], rank[st.ACTIVE] = taken, m
    rank[st.SPEED_NORM] = scaled_speed(tables, x, terms)
    first = taken - 1
    while first > 0 and L[first - 1, first - 1] < SMALL * L[0, 0]:
        first -= 1
    extent = _probe_time(x, x_dot)
    after = rows_along(work, tables, terms, t, x, x_dot, c, rows, scale, sizes, extent, extent)
    _times(work, before, after, Q, order, L, first, taken, extent, rank)
    for k in range(n_rows):
        weights[k] = 0.0
    combination = vector(work, first + 1)
    for k in range(first, taken):
        if L[k, k] <= 3.0 * rank[st.SIGMA]:
            combination_of(L, first, k, combination)
            for j in range(first):
                weights[rows[order[j]]] = max(weights[rows[order[j]]], abs(combination[j]))
            weights[rows[order[k]]] = 1.0
    rank[st.CHANGE] = _fastest(before, after, extent)
    soonest = _soonest(rank[st.SIGMA], rank[st.RATE], rank[st.CHANGE])
    rank[st.LEFT_AT] = t + AHEAD_OFTEN * min(soonest, min(abs(rank[st.AHEAD]), abs(rank[st.BEHIND])))


@lean
def _soonest(sigma: float, rate: float, change: float) -> float:
    """Return the time (s) in which rank could be lost, ``rate tau + (change tau)^2 / 2 = sigma``."""
    return float(2.0 * sigma / max(rate + np.sqrt(rate * rate + 2.0 * sigma * change * change), 1e-300))


@lean
def _fastest(before: Floats, after: Floats, extent: float) -> float:
    """Return how fast a row changes at most (1/s)."""
    fastest = 0.0
    for k in range(before.shape[0]):
        square = 0.0
        for i in range(before.shape[1]):
            square += (after[k, i] - before[k, i]) ** 2
        fastest = max(fastest, square)
    return float(np.sqrt(fastest) / extent)


@lean
def motion(x: Floats, x_dot: Floats, n_q: int) -> float:
    """Return how fast the coordinates change at most, over their size where that is above 1 (1/s)."""
    fastest = 0.0
    for i in range(n_q):
        fastest = max(fastest, abs(x_dot[i]) / (1.0 + abs(x[i])))
    return float(fastest)


@lean
def _probe_time(x: Floats, x_dot: Floats) -> float:
    """Return over what time (s) rows are differenced, from how fast the state changes."""
    fastest = motion(x, x_dot, x.shape[0])
    return 1e-6 / max(fastest, 1e-300) if fastest > 0.0 else 1e-6


@lean
def rows_along(
    work: Workspace,
    tables: Tables,
    terms: Terms,
    t: float,
    x: Floats,
    x_dot: Floats,
    c: Floats,
    rows: Integers,
    scale: Floats,
    sizes: Floats,
    extent: float,
    later: float,
) -> Floats:
    """Return the scaled rows, (m, n_u), at ``x + extent x_dot`` and the time ``t + later``."""
    ahead, after = vector(work, x.shape[0]), matrix(work, rows.shape[0], scale.shape[0])
    for i in range(x.shape[0]):
        ahead[i] = x[i] + extent * x_dot[i]
    call_kernel(tables.terms[0], t + later, ahead, c, terms.whole)
    fill_scaled(terms, rows, scale, sizes, after)
    return after


@lean
def combination_of(L: Floats, first: int, k: int, out: Floats) -> None:
    """Write what of the first rows taken is to be subtracted from row ``k`` so that nothing is left along them."""
    for back in range(first):
        j = first - 1 - back
        value = L[k, j]
        for i in range(j + 1, first):
            value -= out[i] * L[i, j]
        out[j] = value / L[j, j]


@lean
def _times(
    work: Workspace,
    before: Floats,
    after: Floats,
    Q: Floats,
    order: Integers,
    L: Floats,
    first: int,
    taken: int,
    extent: float,
    rank: Floats,
) -> None:
    """Write the times at which the remainders of the last rows taken become dependent, and how fast they change.

    The remainders are ``L22 Q2`` and change by ``G Q2`` a second: rank is lost where ``det(L22 + tau G) = 0``.
    """
    count, n = taken - first, Q.shape[1]
    S, change, combination = matrix(work, count, count), vector(work, n), vector(work, first + 1)
    sigma, rate = np.inf, 0.0
    for k in range(count):
        row = order[first + k]
        combination_of(L, first, first + k, combination)
        for i in range(n):
            change[i] = (after[row, i] - before[row, i]) / extent
        for j in range(first):
            other = order[j]
            for i in range(n):
                change[i] -= combination[j] * (after[other, i] - before[other, i]) / extent
        square = 0.0
        for i in range(n):
            square += change[i] * change[i]
        for j in range(first):
            along = 0.0
            for i in range(n):
                along += change[i] * Q[order[j], i]
            square -= along * along
        rate = max(rate, np.sqrt(max(square, 0.0)))
        sigma = min(sigma, L[first + k, first + k])
        for j in range(count):
            for i in range(n):
                S[k, j] -= change[i] * Q[order[first + j], i]
    rank[st.SIGMA], rank[st.RATE] = sigma, rate
    for k in range(count):  # -L22^-1 G: its eigenvalues are the inverse times
        for j in range(count):
            for i in range(k):
                S[k, j] -= L[first + k, first + i] * S[i, j]
            S[k, j] /= L[first + k, first + k]
    real, imaginary = vector(work, count), vector(work, count)
    if not eigenvalues(S, real, imaginary):
        return
    _nearest(real, imaginary, rank)


@lean
def _nearest(real: Floats, imaginary: Floats, rank: Floats) -> None:
    """Write the nearest times ahead and behind, from their inverses; times close to each other count as one."""
    soonest, latest = 0.0, 0.0
    for k in range(real.shape[0]):
        if abs(imaginary[k]) <= REAL * abs(real[k]):
            soonest, latest = max(soonest, real[k]), min(latest, real[k])
    if latest < 0.0:
        rank[st.BEHIND] = 1.0 / latest
    if soonest <= 0.0:
        return
    last, count = soonest, 0
    for k in range(real.shape[0]):
        if abs(imaginary[k]) <= REAL * abs(real[k]) and real[k] * TOGETHER >= soonest:
            last = min(last, real[k])
            count += 1
    rank[st.AHEAD] = 0.5 / soonest + 0.5 / last
    rank[st.LOST] = count


@lean
def scaled_speed(tables: Tables, x: Floats, terms: Terms) -> float:
    """Return the norm of the speeds in the scale of :func:`land`, from terms just evaluated."""
    n_q, square = tables.sizes[tb.N_Q], 0.0
    for i in range(tables.sizes[tb.N_U]):
        if terms.M[i, i] > 0.0:
            square += terms.M[i, i] * x[n_q + i] ** 2
    return float(np.sqrt(square))


@lean
def speed_norm(rank: Floats) -> float:
    """Return the norm of the scaled speeds where the rows were looked at last."""
    return float(rank[st.SPEED_NORM])


@lean
def is_weak(rank: Floats, left: float) -> bool:
    """Whether no more than ``left`` is left of a row that is about to vanish, or has just done so.

    A row of which little is left all the time is not: the time in which it would vanish is long beside that in which
    rows change.
    """
    distance = min(rank[st.AHEAD], abs(rank[st.BEHIND]))
    vanishes = distance * rank[st.CHANGE] < st.TURNED or rank[st.SIGMA] < st.TINY
    return bool(distance * rank[st.RATE] < left and vanishes)


@lean
def is_near(rank: Floats, h: float, left: float) -> bool:
    """Whether a change point is so near that the stages of a step of length ``h`` are put on the rows.

    Where little is left of a row, a stage that is off the rows by its own error has that error divided by what is left;
    that is made up for by the step being short, except near the change point.

    Parameters
    ----------
    left : float
        What is left of a row below which it is divided by too little whatever the step, see :func:`least_left`.
    """
    distance = min(rank[st.AHEAD], abs(rank[st.BEHIND]))
    steps = distance < st.NEAR_STEPS * h or (distance < st.FAR_STEPS * h and is_weak(rank, st.NEAR))
    return bool(steps or is_weak(rank, left))


@lean
def least_left(tables: Tables, rtol: float) -> float:
    """Return what must be left of a row so that the residual of its projection, over the square of it, does not show.

    Parameters
    ----------
    rtol : float
        Relative tolerance of the run.
    """
    return float(min(st.NEAR, np.sqrt(10.0 * tables.tolerances[tol.PROJECTION] / rtol)))


@lean
def clear_length(ahead: float, h: float, fraction: float) -> float:
    """Return the length of a step, ``h`` at most, whose nodes keep clear of a change point ``ahead`` (s) from here.

    The step that passes it has it at ``fraction`` of its length, between nodes; the one before ends in time.
    """
    if ahead >= 1.5 * h or ahead < 0.1 * h:
        return h
    if ahead <= fraction * h:
        return ahead / fraction
    return max(ahead - 0.5 * h, 0.02 * h)


@lean
def passing_fraction(stages: int, guards: bool) -> float:
    """Return where in a step a change point is farthest from the method's nodes, and from its middle if watched."""
    if stages == 6:  # Dormand and Prince: nodes at 0.3 and 0.8
        return 0.65 if guards else 0.55
    return 0.75 if stages == 4 else 0.4


@lean
def look_ahead(
    work: Workspace, tables: Tables, t: float, x: Floats, x_dot: Floats, c: Floats, mode: int, rank: Floats
) -> bool:
    """Look at the rank of the rows again if it may be lost soon, see :func:`assess`; return whether that was done.

    While stages are put on the rows they are looked at before every step: its nodes are to keep clear.
    """
    rank[st.UNSEEN] += 1.0
    faster = motion(x, x_dot, tables.sizes[tb.N_Q]) > FASTER * rank[st.MOTION]  # what is at rest may start moving
    if t >= rank[st.LEFT_AT] or faster or rank[st.LANDS] != 0.0 or rank[st.UNSEEN] > UNSEEN_STEPS:
        rank[st.UNSEEN] = 0.0
        assess(work, tables, t, x, x_dot, c, mode, rank)
        return True
    return False


@lean
def least_passage(turn: float, rtol: float) -> float:
    """Return by how much longer than its error asks for a step over a change point should be, 1 or more.

    Rounding enters accelerations divided by the cube of what is left of the rows, so that of a step whose nodes keep
    clear by a quarter of its length grows as its inverse square; its own error grows as its sixth power.  Where both
    are equal, no other length has less.

    Parameters
    ----------
    turn : float
        How much of the rows is left a step from the change point.
    rtol : float
        Relative tolerance of the run.
    """
    rounding = ROUNDING * _EPS / (rtol * max(turn * turn, 1e-30))
    return float(max(1.0, min(rounding, 1e6)) ** 0.125)


@lean
def allowance(rank: Floats, h: float, rtol: float) -> float:
    """Return what rounding may do to the estimated error of a step of length ``h``, 1 where it does nothing.

    As in :func:`least_passage`, for the end of the step that is nearest to a change point.
    """
    distance = min(min(abs(rank[st.AHEAD]), abs(rank[st.BEHIND])), abs(rank[st.AHEAD] - h))
    left = distance * rank[st.RATE]
    if left < CLOSEST:
        return 1.0
    return float(max(1.0, 0.1 * ROUNDING * _EPS * h * rank[st.RATE] / (rtol * left**3)))


@lean
def is_rounding(error: float, h: float, tried_error: float, tried: float) -> bool:
    """Whether a shorter step (``h``) than one rejected before (``tried``) has an error that does not shrink as its own.

    That of a method falls with the fifth power at least; rounding near a change point does not.
    """
    return bool(0.0 < h < tried and error > tried_error * (h / tried) ** 2.5)


@lean
def note_passage(rank: Floats, t: float, t_end: float, error: float) -> None:
    """Remember whether the step from ``t`` to ``t_end`` passes the change point ahead, and how long it is to the next.

    Parameters
    ----------
    error : float
        Estimated error of the step in units of its tolerance.
    """
    rank[st.PASSES_AT] = np.inf
    if t + rank[st.AHEAD] < t_end:
        rank[st.PASSES_AT] = t + rank[st.AHEAD]
        rank[st.TRIED_STEP], rank[st.TRIED_ERROR] = 0.0, max(error, rank[st.WORST])
        rank[st.WORST] = 0.0
    rank[st.AHEAD] -= t_end - t
    rank[st.BEHIND] -= t_end - t
