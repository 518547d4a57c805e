"""Which contacts take part in a step of time stepping (docs/theory.md, "Time stepping").

A negative gap alone does not tell: behind a face that ends it is negative without anything touching.  A contact of such
a face takes part only if it was on the free side of the face before, or passes on from a neighbour within the depth
that the steps leave.  That is remembered per contact, 1 for "on the free side, or in contact since".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.faces import within_face
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int8]


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
def list_active(
    tables: Tables, terms: Terms, codes: Codes, free_side: Codes, which: Integers, normal: Integers, tangent: Integers
) -> int:
    """List the rows of the contacts that take part in the step; their places per contact, -1 where none.

    One that is closed takes part up to the gap tolerance, so that rounding does not open it.
    """
    n = 0
    for k in range(normal.shape[0]):
        normal[k], tangent[k] = -1, -1
        kind, row = tables.contact_kind[k], tables.contact_rows[k, 0]
        takes_part = kind == tb.DRY_FRICTION
        if kind == tb.COMPLIANT:
            takes_part = presses(tables, terms, k, free_side)
        if kind == tb.GAP:
            near = tables.tolerances[tol.GAP] if codes[k] != tb.FREE else 0.0
            takes_part = terms.residual[row] <= near and free_side[k] != 0 and terms.closes_if[k] != 0.0
            takes_part = takes_part and within_face(tables, terms, k)
            takes_part = takes_part or tables.contact_flags[k] & tb.TWO_SIDED != 0
        if not takes_part or kind == tb.LOCK:
            continue
        if kind == tb.GAP:
            normal[k], which[n] = n, row
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
