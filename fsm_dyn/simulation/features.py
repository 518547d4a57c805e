"""Which pairs of corner and face are active where bodies meet in their corners (docs/theory.md, "Contact geometry").

Two convex corners that coincide keep apart as long as *one* direction of both normal cones separates them, so of the
up to four pairs of corner and face that meet there one has to hold, not all: the one whose gap closes least.  Pairs
of different corners must hold all together.  Of contacts that keep the same gap one is enough, and of those on one
line between two bodies the outer two are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import Arena, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import factor_bilateral, rounding_of, row_speed, solve_bilateral
from fsm_dyn.simulation.faces import LEVEL, SAME_ROW, still, within_face
from fsm_dyn.simulation.impacts import bilateral_rows
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

EQUAL: Final = 1e-9  # accelerations that differ by less than this part are the same


@lean
def at_end(tables: Tables, terms: Terms, k: int) -> bool:
    """Whether a contact is a corner at an end of a face, with no gap, that the body of the corner does not cover."""
    small = tables.tolerances[tol.GAP]
    if terms.margin_slope[k] == 0.0 or terms.closes_if[k] == 0.0 or terms.aspect[k] < -LEVEL * small:
        return False
    return bool(abs(terms.reach[k]) <= small and abs(terms.residual[tables.contact_rows[k, 0]]) <= small)


@lean
def corner_behind(tables: Tables, terms: Terms, k: int) -> int:
    """Return the number of the corner in which a face ends where the contact ``k`` is nearer to."""
    return int(tables.contact_ends[k, 1 if terms.margin_slope[k] > 0.0 else 2])


@lean
def same_corners(tables: Tables, terms: Terms, j: int, k: int) -> bool:
    """Whether two contacts at ends of their faces stand for one pair of corners that meet."""
    one, other = tables.contact_ends[j, 0], corner_behind(tables, terms, j)
    first, second = tables.contact_ends[k, 0], corner_behind(tables, terms, k)
    return bool((one == first and other == second) or (one == second and other == first))


@lean
def separate_corners(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
) -> None:
    """Strike out of ``closed`` (n_contacts,) the pairs of two coinciding corners that close faster than another.

    The gap of two corners is the largest of their pairs', so its rate is the largest rate, also of those on their
    way out; only pairs of that rate can strike or be closed.  A contact that lasts ends where its face does, not
    within the tolerance of it.
    """
    n = closed.shape[0]
    for k in range(n):
        if closed[k] == 0 or not at_end(tables, terms, k):
            continue
        if before[k] != tb.FREE and event[k] != tb.LEAVES and terms.reach[k] > tables.tolerances[tol.PROJECTION]:
            continue
        rate = row_speed(terms, tables.contact_rows[k, 0], u)
        for j in range(n):
            rival = j != k and at_end(tables, terms, j) and same_corners(tables, terms, j, k)
            if rival and row_speed(terms, tables.contact_rows[j, 0], u) > rate + still(tables, terms, k):
                closed[k] = 0


@lean
def between(tables: Tables, terms: Terms, i: int, j: int, k: int, close: float) -> float:
    """Return where contact ``i`` lies between ``j`` (0) and ``k`` (1) on one line, NaN where it is farther off.

    Rows of one line between two bodies are ``A_i = (1 - s) A_j + s A_k``, in the metric of the mass matrix' diagonal.
    """
    n_u = tables.sizes[tb.N_U]
    a, b, c = tables.contact_rows[i, 0], tables.contact_rows[j, 0], tables.contact_rows[k, 0]
    along, apart, size = 0.0, 0.0, 0.0
    for v in range(n_u):
        weight = 1.0 / terms.M[v, v] if terms.M[v, v] > 0.0 else 1.0
        step = terms.A[c, v] - terms.A[b, v]
        along += weight * step * (terms.A[a, v] - terms.A[b, v])
        apart += weight * step * step
        size += weight * terms.A[a, v] * terms.A[a, v]
    s = along / apart if apart > close * close * size else 0.0
    off = 0.0
    for v in range(n_u):
        weight = 1.0 / terms.M[v, v] if terms.M[v, v] > 0.0 else 1.0
        off += weight * (terms.A[a, v] - (1.0 - s) * terms.A[b, v] - s * terms.A[c, v]) ** 2
    drive = terms.b[a] - (1.0 - s) * terms.b[b] - s * terms.b[c]
    if off > close * close * size or abs(drive) > tables.tolerances[tol.SPEED]:
        return np.nan
    return s


@lean
def exchangeable(tables: Tables, j: int, k: int) -> bool:
    """Whether of two contacts of corners and faces one may keep the gap of the other; their friction may differ."""
    friction = tb.FRICTION | tb.STICKS_ALWAYS
    same = (tables.contact_flags[j] % tb.GROUP) | friction == (tables.contact_flags[k] % tb.GROUP) | friction
    return bool(same and tables.contact_ends[j, 0] >= 0 and tables.contact_ends[k, 0] >= 0)


@lean
def alike(tables: Tables, terms: Terms, j: int, k: int) -> bool:
    """Whether two contacts of corners and faces obey the same laws as well."""
    flags = tables.contact_flags[j] % tb.GROUP == tables.contact_flags[k] % tb.GROUP
    same = terms.static[j] == terms.static[k] and terms.kinetic[j] == terms.kinetic[k]
    return bool(flags and same and terms.restitution[j] == terms.restitution[k] and exchangeable(tables, j, k))


@lean
def same_normal(tables: Tables, terms: Terms, j: int, k: int, close: float) -> bool:
    """Whether the normal rows of two contacts differ by no more than the part ``close``."""
    return between(tables, terms, j, k, k, close) == 0.0


@lean
def same_place(tables: Tables, terms: Terms, j: int, k: int) -> bool:
    """Whether two contacts keep the same gap at the same place: of one corner, or of corners that coincide."""
    if not exchangeable(tables, j, k):
        return False
    one, first = tables.contact_ends[j, 0], tables.contact_ends[k, 0]
    other = corner_behind(tables, terms, j) if at_end(tables, terms, j) else one
    second = corner_behind(tables, terms, k) if at_end(tables, terms, k) else first
    if one != first and one != second and other != first and other != second:
        return False
    return same_normal(tables, terms, j, k, SAME_ROW)


@lean
def _rank(
    tables: Tables, terms: Terms, before: NDArray[np.int64], event: NDArray[np.int64], k: int, goes_on: bool
) -> int:
    """How well a contact suits to stand for others at its place: it stays, is needed, was closed, or its corner was.

    ``goes_on``: a slip takes the corners apart, so that it does not matter what is needed; the corner that was closed
    is the outer one next.
    """
    rank = 4
    for j in range(before.shape[0] if not goes_on else 0):
        meets = at_end(tables, terms, k) and at_end(tables, terms, j) and same_corners(tables, terms, j, k)
        if meets and not same_place(tables, terms, j, k):
            rank = 0  # another face could keep the two corners apart: the place may be left to what has no choice
    leaving = terms.margin_slope[k] != 0.0 and terms.reach[k] <= tables.tolerances[tol.GAP]
    if not (leaving and terms.reach_rate[k] < -tables.tolerances[tol.SPEED]):
        rank += 8
    if before[k] != tb.FREE and event[k] != tb.LEAVES:
        return rank + 2
    for j in range(before.shape[0]):
        if before[j] != tb.FREE and tables.contact_ends[j, 0] == tables.contact_ends[k, 0]:
            return rank + 1
    return rank


@lean
def one_of_each_place(
    tables: Tables,
    terms: Terms,
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
    implied: NDArray[np.int64],
) -> None:
    """Strike out of ``closed`` what others keep: contacts at the same place, and those between two on one line.

    ``implied`` (n_contacts,) is set to 1 for the latter: their gaps need not be watched while the others are closed.
    """
    n = closed.shape[0]
    for k in range(n):
        implied[k] = 0
        for j in range(k):
            if closed[j] == 1 and closed[k] == 1 and same_place(tables, terms, j, k):
                apart = terms.residual[tables.contact_rows[j, 0]] - terms.residual[tables.contact_rows[k, 0]]
                level = abs(apart) <= tables.tolerances[tol.PROJECTION]  # else the step itself decides
                goes_on = level and abs(terms.reach_rate[k]) > tables.tolerances[tol.SPEED]
                rank = _rank(tables, terms, before, event, j, goes_on)
                better = _rank(tables, terms, before, event, k, goes_on) > rank
                closed[j if better else k] = 0
    for i in range(n):
        if closed[i] == 0:
            continue
        for j in range(n):
            if j == i or closed[j] == 0 or not exchangeable(tables, i, j):
                continue
            for k in range(j + 1, n):
                if k == i or closed[k] == 0 or not exchangeable(tables, i, k):
                    continue
                s = between(tables, terms, i, j, k, SAME_ROW)
                if s > 0.0 and s < 1.0:
                    implied[i] = 1
        if implied[i] == 1:
            closed[i] = 0
            if tables.contact_outline[i] >= 0:
                implied[tables.contact_outline[i]] = 1


@lean
def choose_features(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
    implied: NDArray[np.int64],
) -> None:
    """Leave in ``closed`` (n_contacts,) the contacts of corners and faces active at the speeds ``u`` (n_u,)."""
    corners = 0
    for k in range(closed.shape[0]):
        implied[k] = 0
        corners += closed[k] == 1 and tables.contact_ends[k, 0] >= 0
    if corners < 1:
        return
    separate_corners(tables, terms, u, before, event, closed)
    one_of_each_place(tables, terms, before, event, closed, implied)


@lean
def _accelerations(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    wanted: NDArray[np.int8],
    closed: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Second rates (n_contacts,) of the gaps of closed contacts (m/s^2) if none of them gave a force."""
    n_u = tables.sizes[tb.N_U]
    held = bilateral_rows(arena, tables, wanted)
    target, reaction, motion = vector(arena, held.shape[0]), vector(arena, held.shape[0]), vector(arena, n_u)
    for i in range(held.shape[0]):
        target[i] = -terms.gamma[held[i]]
    bilateral = factor_bilateral(arena, terms, held, n_u)
    solve_bilateral(bilateral, terms.f[:n_u], target, motion, reaction, rounding_of(terms, u[:n_u], True))
    rates = vector(arena, closed.shape[0])
    for k in range(closed.shape[0]):
        if closed[k] == 1:
            row = tables.contact_rows[k, 0]
            rates[k] = terms.gamma[row]
            for i in range(n_u):
                rates[k] += terms.A[row, i] * motion[i]
    return rates


@lean
def _has_rival(tables: Tables, terms: Terms, u: NDArray[np.float64], k: int, j: int) -> bool:
    """Whether two contacts are pairs of the same coinciding corners, at rest there, with different normals."""
    if j == k or not at_end(tables, terms, j) or not same_corners(tables, terms, j, k):
        return False
    if abs(row_speed(terms, tables.contact_rows[j, 0], u)) > still(tables, terms, j):
        return False
    return not same_place(tables, terms, j, k)


@lean
def _stays(tables: Tables, terms: Terms, before: NDArray[np.int64], event: NDArray[np.int64], k: int) -> bool:
    """Whether a contact was closed and is not at the end of its face on the way out."""
    return bool(before[k] != tb.FREE and event[k] != tb.LEAVES and within_face(tables, terms, k))


@lean
def rest_on_one(
    arena: Arena,
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    wanted: NDArray[np.int8],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
) -> None:
    """Leave in ``closed`` (n_contacts,) one pair of two corners that coincide and are at rest there.

    One that another contact keeps, or that was closed before, makes the others needless; else it is the one
    whose gap the forces close least.
    """
    n = closed.shape[0]
    rates = vector(arena, 0)
    for k in range(n):
        if closed[k] == 0 or not at_end(tables, terms, k):
            continue
        if abs(row_speed(terms, tables.contact_rows[k, 0], u)) > still(tables, terms, k):
            continue
        for j in range(n):
            if closed[k] == 0 or not _has_rival(tables, terms, u, k, j):
                continue
            for m in range(n):
                if closed[m] == 1 and m != k and m != j and same_place(tables, terms, m, j):
                    apart = not (at_end(tables, terms, m) and same_corners(tables, terms, m, k))
                    closed[k] = 0 if apart else closed[k]
            if closed[k] == 0 or closed[j] == 0:
                continue
            stays, other_stays = _stays(tables, terms, before, event, k), _stays(tables, terms, before, event, j)
            if stays != other_stays:
                closed[j if stays else k] = 0
                continue
            if rates.shape[0] == 0:
                rates = _accelerations(arena, tables, terms, u, wanted, closed)
            if abs(rates[k] - rates[j]) > EQUAL * max(abs(rates[k]), abs(rates[j])):
                closed[j if rates[k] > rates[j] else k] = 0


@lean
def follow_slip(
    tables: Tables,
    terms: Terms,
    before: NDArray[np.int64],
    wanted: NDArray[np.int8],
    sigma: NDArray[np.float64],
) -> None:
    """Where a slip begins out of the end of a face, pass the contact on to another at the same place that stays.

    Changes the states ``wanted`` (n_contacts,) and the slip directions ``sigma`` (n_contacts,) found.
    """
    n = wanted.shape[0]
    for k in range(n):
        begins = wanted[k] == tb.SLIDING and terms.margin_slope[k] != 0.0 and at_end(tables, terms, k)
        slow = abs(terms.reach_rate[k]) <= tables.tolerances[tol.SPEED]
        if not (begins and slow and terms.margin_slope[k] * sigma[k] < 0.0):
            continue
        for j in range(n):
            if wanted[j] != tb.FREE or j == k or not within_face(tables, terms, j):
                continue
            if abs(terms.residual[tables.contact_rows[j, 0]]) > tables.tolerances[tol.GAP]:
                continue
            if not alike(tables, terms, j, k) or not same_place(tables, terms, j, k):
                continue  # under other friction it need not slide
            turned = sigma[k] * _turned(tables, terms, j, k)
            if terms.margin_slope[j] * turned > 0.0 or terms.reach[j] > tables.tolerances[tol.GAP]:
                wanted[j], sigma[j] = wanted[k], turned
                wanted[k], sigma[k] = tb.FREE, 0.0
                break


@lean
def _turned(tables: Tables, terms: Terms, j: int, k: int) -> float:
    """Return +1 where two contacts at one place count their slip the same way, else -1."""
    total = 0.0
    for v in range(tables.sizes[tb.N_U]):
        total += terms.A[tables.contact_rows[j, 1], v] * terms.A[tables.contact_rows[k, 1], v]
    return 1.0 if total >= 0.0 else -1.0


@lean
def has_corners(tables: Tables, closed: NDArray[np.int64]) -> bool:
    """Whether a corner on a straight face that ends is among the contacts that touch."""
    found = False
    for k in range(closed.shape[0]):
        found = found or (closed[k] == 1 and tables.contact_ends[k, 1] >= 0)
    return found


@lean
def forget_leaving(tables: Tables, terms: Terms, event: NDArray[np.int64]) -> None:
    """Void the ends of faces that contacts reached in the same instant as an impact, which turns them back."""
    for k in range(event.shape[0]):
        if event[k] == tb.LEAVES and within_face(tables, terms, k):
            event[k] = 0
