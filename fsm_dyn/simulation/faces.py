"""Faces that end: where a contact is to be had, and how one passes on to the next (docs/theory.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms


@lean
def within_face(tables: Tables, terms: Terms, k: int) -> bool:
    """Whether a contact is where its face is: within its ends, or at one and not on the way out."""
    if tables.contact_flags[k] & tb.LIMITED == 0:
        return True
    small = tables.tolerances[tol.GAP]
    if terms.reach[k] > small:
        return True
    return terms.reach[k] >= -small and terms.reach_rate[k] >= -tables.tolerances[tol.SPEED]


@lean
def hand_over(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
) -> None:
    """Strike out of ``closed`` what no contact that leaves its face can hand over to.

    Where a corner slides off the end of a face, that end stands for an instant before both faces that meet in the
    corner.  It passes along one of them, and the other it does not strike: a contact of the same two shapes that
    begins at the end of its own face takes over without a blow or not at all.  Where the two faces are tangent the gap
    of the next falls with the square of the way left, and rounding may have it closed before the end is reached.
    """
    edge = np.sqrt(tables.tolerances[tol.GAP])
    for k in range(closed.shape[0]):
        new = closed[k] == 1 and before[k] == tb.FREE and tables.contact_flags[k] & tb.LIMITED != 0
        if not new or terms.reach[k] > tables.tolerances[tol.GAP]:
            continue
        if row_speed(terms, tables.contact_rows[k, 0], u) >= -tables.tolerances[tol.SPEED]:
            continue
        group = tables.contact_flags[k] // tb.GROUP
        for j in range(closed.shape[0]):
            if tables.contact_flags[j] // tb.GROUP != group:
                continue
            held = before[j] != tb.FREE and tables.contact_flags[j] & tb.LIMITED != 0
            if event[j] == tb.LEAVES or (held and terms.reach[j] < edge and terms.reach_rate[j] < 0.0):
                closed[k] = 0
