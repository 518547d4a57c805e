"""Compliant contacts: which are compressed, and on which face where corners meet (docs/theory.md, "Contact geometry").

Inside a convex body a corner has a negative gap to every face.  The face by which it came in presses until its gap
opens; at the end of that face one other contact at the same place takes over, with the same compression.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.faces import within_face
from fsm_dyn.simulation.features import alike, between, corner_behind, same_normal
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

FLUSH: Final = 1e-3  # part of compressions by which a place between two may be off their line
ALIKE: Final = 0.05  # part by which normals, and compressions, may differ where one contact takes over from another


@lean
def press(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    wanted: NDArray[np.int8],
    force: NDArray[np.float64],
) -> None:
    """Tell which compliant contacts are compressed, and add their forces.

    Parameters
    ----------
    u : float64 array, shape (n_u,)
        Speeds.
    before, event : int64 arrays, shape (n_contacts,)
        The states before, and what happens to each contact.
    wanted : int8 array, shape (n_contacts,)
        In: the states before, as a written transition has changed them; out: ``HELD`` where compressed.
    force : float64 array, shape (n_u,)
        Generalized forces, to which those of the contacts are added.
    """
    slow, small = tables.tolerances[tol.SPEED], tables.tolerances[tol.GAP]
    for k in range(event.shape[0]):
        if tables.contact_kind[k] != tb.COMPLIANT:
            continue
        row = tables.contact_rows[k, 0]
        gap = terms.residual[row]
        deep = gap < -small
        pressed = (deep and terms.elastic[k] >= 0.0) or (abs(gap) <= small and row_speed(terms, row, u) < -slow)
        if event[k] == tb.OPENS or event[k] == tb.CLOSES or event[k] == tb.LEAVES:
            pressed = event[k] == tb.CLOSES and not _beside(tables, terms, u, before, event, k)
            pressed = pressed and not _is_inner(tables, terms, k)
        elif wanted[k] == tb.FREE and deep and tables.contact_flags[k] & tb.LIMITED:
            pressed = pressed and _takes_over(tables, terms, before, event, k)  # else it is behind the face
        if wanted[k] == tb.FREE and (terms.closes_if[k] == 0.0 or not within_face(tables, terms, k)):
            pressed = False
        wanted[k] = tb.HELD if pressed else tb.FREE
        if pressed:
            for i in range(force.shape[0]):
                force[i] += terms.elastic[k] * terms.A[row, i]


@lean
def _beside(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    k: int,
) -> bool:
    """Whether a corner passes face ``k`` no farther from its end than it is compressed on the next face.

    That one closes more slowly, and bears: the corner slides on from a flush neighbour.
    """
    small = tables.tolerances[tol.GAP]
    if tables.contact_outline[k] > -2:
        return False
    rate = row_speed(terms, tables.contact_rows[k, 0], u)
    for j in range(event.shape[0]):
        gap = terms.residual[tables.contact_rows[j, 0]] if tables.contact_rows[j, 0] >= 0 else 0.0
        if j == k or tables.contact_outline[j] != tables.contact_outline[k] or gap >= -small:
            continue
        if terms.reach[k] > small - gap or row_speed(terms, tables.contact_rows[j, 0], u) <= rate:
            continue
        for m in range(event.shape[0]):
            bears = tables.contact_kind[m] == tb.COMPLIANT and before[m] != tb.FREE and event[m] != tb.OPENS
            if bears and (m == j or same_normal(tables, terms, m, j, ALIKE)):
                return True
    return False


@lean
def _is_inner(tables: Tables, terms: Terms, k: int) -> bool:
    """Whether a contact lies between two others on one line: their compression is what the flush faces have."""
    if tables.contact_ends[k, 0] < 0:
        return False
    n, gap = tables.contact_ends.shape[0], terms.residual[tables.contact_rows[k, 0]]
    for j in range(n):
        if j == k or not alike(tables, terms, j, k) or not within_face(tables, terms, j):
            continue
        for m in range(j + 1, n):
            if m == k or not alike(tables, terms, m, k) or not within_face(tables, terms, m):
                continue
            s = between(tables, terms, k, j, m, ALIKE)
            one, other = terms.residual[tables.contact_rows[j, 0]], terms.residual[tables.contact_rows[m, 0]]
            flush = tables.tolerances[tol.GAP] + FLUSH * (abs(one) + abs(other))
            if s > ALIKE and s < 1.0 - ALIKE and abs((1.0 - s) * one + s * other - gap) <= flush:
                return True
    return False


@lean
def _takes_over(tables: Tables, terms: Terms, before: NDArray[np.int64], event: NDArray[np.int64], k: int) -> bool:
    """Whether a contact leaves its face in this instant where that of ``k`` begins, and ``k`` is the one to take over.

    Of several the one of the same corner does, else the first.
    """
    for j in range(event.shape[0]):
        if event[j] != tb.LEAVES or not _follows(tables, terms, j, k):
            continue
        best = k
        for m in range(event.shape[0]):
            other = m != k and tables.contact_kind[m] == tb.COMPLIANT and before[m] == tb.FREE
            if other and event[m] != tb.LEAVES and within_face(tables, terms, m) and _follows(tables, terms, j, m):
                same = tables.contact_ends[best, 0] == tables.contact_ends[j, 0]
                better = tables.contact_ends[m, 0] == tables.contact_ends[j, 0] and not same
                best = m if better or (m < best and not same) else best
        if best == k:
            return True
    return False


@lean
def _follows(tables: Tables, terms: Terms, j: int, k: int) -> bool:
    """Whether contact ``k`` begins where ``j`` leaves its face: with the same gap, at the same place."""
    small = tables.tolerances[tol.GAP]
    gap = terms.residual[tables.contact_rows[j, 0]]
    apart = gap - terms.residual[tables.contact_rows[k, 0]]
    straight = tables.contact_ends[j, 0] >= 0 and tables.contact_ends[k, 0] >= 0
    if tables.contact_kind[k] != tb.COMPLIANT or abs(apart) > small + (ALIKE * abs(gap) if straight else 0.0):
        return False
    if not straight:
        same = tables.contact_flags[j] // tb.GROUP == tables.contact_flags[k] // tb.GROUP
        return bool(same and terms.reach[k] <= small)
    one, first = tables.contact_ends[j, 0], tables.contact_ends[k, 0]
    other = corner_behind(tables, terms, j)
    second = corner_behind(tables, terms, k) if abs(terms.reach[k]) <= small + ALIKE * abs(gap) else first
    linked = one == first or one == second or other == first or other == second
    return bool(linked and same_normal(tables, terms, j, k, ALIKE))
