"""Which contacts take part in a step of time stepping (docs/theory.md, "Time stepping").

A negative gap alone does not tell: behind a face that ends it is negative without anything touching.  A contact of such
a face takes part only if it was on the free side of the face before, or passes on from a neighbour within the depth
that the steps leave.  That is remembered per contact, 1 for "on the free side, or in contact since".

Corners are chosen from as where events are located (:mod:`fsm_dyn.simulation.features`), but on predicted gaps: within
a step's travel of a convex corner two faces of one outline are alternatives, and the one whose gap is predicted largest
for the end of the step bears; both faces of a concave corner hold; of contacts on one line between two bodies the outer
two do.
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
from fsm_dyn.simulation.features import between, exchangeable
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int8]

ALIKE: Final = 0.05  # part by which the normals of contacts on one line may differ
FLUSH: Final = 1e-3  # part of depths by which a contact between two others may be off their line


@lean
def begin_sides(tables: Tables, terms: Terms, codes: Codes, free_side: Codes) -> None:
    """Mark the contacts that are in contact or on the free side of their face where a step begins."""
    for k in range(codes.shape[0]):
        row = tables.contact_rows[k, 0]
        limited = tables.contact_flags[k] & tb.LIMITED != 0
        if not limited or codes[k] != tb.FREE or terms.residual[row] >= -tables.tolerances[tol.GAP]:
            free_side[k] = 1


@lean
def keep_sides(tables: Tables, terms: Terms, h: float, u: Floats, codes: Codes, free_side: Codes) -> None:
    """Bring the marks up to the predicted configuration.

    A contact that is not before its face keeps its mark as long as its gap is no deeper than contacts are in this
    step: what a neighbour leaves, or what the contact itself moves in the step.  One that is before it keeps its mark.
    """
    for k in range(codes.shape[0]):
        if tables.contact_flags[k] & tb.LIMITED == 0:
            continue
        row = tables.contact_rows[k, 0]
        depth = _depth_beside(tables, terms, codes, k) + h * abs(row_speed(terms, row, u))
        shallow = terms.residual[row] >= -depth
        if shallow or not within_face(tables, terms, k):
            free_side[k] = 1 if shallow else 0


@lean
def _depth_beside(tables: Tables, terms: Terms, codes: Codes, k: int) -> float:
    """How deep the contacts are that may pass on to a contact: rigid ones, and compliant ones of its two shapes."""
    depth = 0.0
    for j in range(codes.shape[0]):
        kind = tables.contact_kind[j]
        beside = kind == tb.COMPLIANT and tables.contact_flags[j] // tb.GROUP == tables.contact_flags[k] // tb.GROUP
        if codes[j] != tb.FREE and (kind == tb.GAP or beside):
            depth = max(depth, -terms.residual[tables.contact_rows[j, 0]])
    return depth


@lean
def presses(tables: Tables, terms: Terms, k: int, free_side: Codes) -> bool:
    """Whether a compliant contact is compressed and pushes."""
    if tables.contact_kind[k] != tb.COMPLIANT or free_side[k] == 0:
        return False
    deep = terms.residual[tables.contact_rows[k, 0]] < 0.0 and terms.elastic[k] > 0.0
    return bool(deep and terms.closes_if[k] != 0.0 and within_face(tables, terms, k))


@lean
def _is_concave(tables: Tables, terms: Terms, free_side: Codes, k: int) -> bool:
    """Whether a corner is beyond the ends of face ``k`` and another one by no more than it is deep in the other."""
    small, row = tables.tolerances[tol.GAP], tables.contact_rows[k, 0]
    if tables.contact_flags[k] & tb.LIMITED == 0 or tables.contact_ends[k, 0] < 0 or terms.aspect[k] < -small:
        return False
    for j in range(free_side.shape[0]):
        if j == k or tables.contact_ends[j, 0] != tables.contact_ends[k, 0] or free_side[j] == 0:
            continue
        other = terms.residual[tables.contact_rows[j, 0]]
        if other < 0.0 and terms.reach[k] >= other - small and terms.reach[j] >= min(terms.residual[row], 0.0) - small:
            return True
    return False


@lean
def _share_an_end(tables: Tables, j: int, k: int) -> bool:
    """Whether two contacts are those of one corner with faces that meet in a convex corner."""
    if j == k or tables.contact_ends[j, 0] < 0 or tables.contact_ends[j, 0] != tables.contact_ends[k, 0]:
        return False
    first, last = tables.contact_ends[k, 1], tables.contact_ends[k, 2]
    found = False
    for end in tables.contact_ends[j, 1:]:
        found = found or (end >= 0 and (end == first or end == last))
    return found


@lean
def _is_inner(tables: Tables, terms: Terms, part: Integers, k: int) -> bool:
    """Whether a contact lies between two others that take part, on one line with them and as deep as they are there."""
    if tables.contact_ends[k, 0] < 0:
        return False
    gap = terms.residual[tables.contact_rows[k, 0]]
    for j in range(part.shape[0]):
        if j == k or part[j] == 0 or tables.contact_kind[j] != tb.GAP or not exchangeable(tables, j, k):
            continue
        for m in range(j + 1, part.shape[0]):
            if m == k or part[m] == 0 or tables.contact_kind[m] != tb.GAP or not exchangeable(tables, m, k):
                continue
            s = between(tables, terms, k, j, m, ALIKE)
            one, other = terms.residual[tables.contact_rows[j, 0]], terms.residual[tables.contact_rows[m, 0]]
            flush = tables.tolerances[tol.GAP] + FLUSH * (abs(one) + abs(other))
            if 0.0 < s < 1.0 and abs((1.0 - s) * one + s * other - gap) <= flush:
                return True
    return False


@lean
def _choose_corners(tables: Tables, terms: Terms, h: float, u: Floats, free_side: Codes, part: Integers) -> None:
    """Take out of ``part`` (n_contacts,) the contacts of corners and faces that others stand for.

    A face behind which a corner has come by way of another one is not to be met from there.
    """
    n = part.shape[0]
    for k in range(n):
        if part[k] == 0 or tables.contact_kind[k] != tb.GAP:
            continue
        row = tables.contact_rows[k, 0]
        end = terms.residual[row] + 0.5 * h * row_speed(terms, row, u)
        for j in range(n):
            if tables.contact_kind[j] != tb.GAP or not _share_an_end(tables, j, k):
                continue
            other = tables.contact_rows[j, 0]
            touches = terms.residual[other] <= tables.tolerances[tol.GAP] and terms.closes_if[j] != 0.0
            if part[j] == 0 and not (touches and within_face(tables, terms, j)):
                continue
            if terms.residual[other] + 0.5 * h * row_speed(terms, other, u) > end:
                part[k], free_side[k] = 0, 0
    for k in range(n):
        if part[k] == 1 and tables.contact_kind[k] == tb.GAP and _is_inner(tables, terms, part, k):
            part[k] = 0


@lean
def list_active(
    tables: Tables, terms: Terms, h: float, u: Floats, codes: Codes, free_side: Codes, part: Integers,
    which: Integers, normal: Integers, tangent: Integers,
) -> int:  # fmt: skip
    """List the rows of the contacts that take part in the step; their places per contact, -1 where none.

    One that is closed takes part up to the gap tolerance, so that rounding does not open it.  ``part`` (n_contacts,)
    is overwritten.
    """
    for k in range(part.shape[0]):
        kind, row = tables.contact_kind[k], tables.contact_rows[k, 0]
        takes_part = kind == tb.DRY_FRICTION
        if kind == tb.COMPLIANT:
            takes_part = presses(tables, terms, k, free_side)
        if kind == tb.GAP:
            near = tables.tolerances[tol.GAP] if codes[k] != tb.FREE else 0.0
            takes_part = terms.residual[row] <= near and free_side[k] != 0 and terms.closes_if[k] != 0.0
            takes_part = takes_part and (within_face(tables, terms, k) or _is_concave(tables, terms, free_side, k))
            takes_part = takes_part or tables.contact_flags[k] & tb.TWO_SIDED != 0
        part[k] = 1 if takes_part else 0
    _choose_corners(tables, terms, h, u, free_side, part)
    n = 0
    for k in range(normal.shape[0]):
        normal[k], tangent[k] = -1, -1
        if part[k] == 0:
            continue
        if tables.contact_kind[k] == tb.GAP:
            normal[k], which[n] = n, tables.contact_rows[k, 0]
            n += 1
        if tables.contact_rows[k, 1] >= 0:
            tangent[k], which[n] = n, tables.contact_rows[k, 1]
            n += 1
            if tables.contact_flags[k] & tb.IN_SPACE:
                which[n] = tables.contact_rows[k, 1] + 1
                n += 1
    return n


@lean
def deep_at_start(tables: Tables, terms: Terms, codes: Codes) -> bool:
    """Whether an open contact is deeper than the gap tolerance; behind a face that ends this is no violation."""
    for k in range(codes.shape[0]):
        plain = tables.contact_kind[k] == tb.GAP and tables.contact_flags[k] & (tb.LIMITED | tb.TWO_SIDED) == 0
        if not plain or codes[k] != tb.FREE or terms.closes_if[k] == 0.0:
            continue
        if terms.residual[tables.contact_rows[k, 0]] < -tables.tolerances[tol.GAP]:
            return True
    return False
