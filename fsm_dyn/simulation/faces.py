"""Faces that end: where a contact is to be had, and how one passes on to the next (docs/theory.md)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

SAME_ROW: Final = 1e-7  # normals that differ by less than this part are those of flush faces
LEVEL: Final = 4.0  # times the gap tolerance: as deep as a guard may find a neighbour of a corner that is level with it


@lean
def within_face(tables: Tables, terms: Terms, k: int) -> bool:
    """Whether a contact is where its face is: within its ends, or at one and not on the way out.

    A corner is on no face that one of its neighbours lies behind.
    """
    if tables.contact_flags[k] & tb.LIMITED == 0:
        return True
    small = tables.tolerances[tol.GAP]
    if terms.aspect[k] < -LEVEL * small:
        return False
    if terms.reach[k] > small:
        return True
    return terms.reach[k] >= -small and terms.reach_rate[k] >= -tables.tolerances[tol.SPEED]


@lean
def still(tables: Tables, terms: Terms, k: int) -> float:
    """Return the rate of a gap that counts as zero (m/s): faces that are flush may be as oblique as that allows."""
    slip = abs(terms.reach_rate[k]) if tables.contact_ends[k, 1] >= 0 else 0.0
    return float(tables.tolerances[tol.SPEED] + SAME_ROW * slip)


@lean
def hand_over(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    closed: NDArray[np.int64],
) -> None:
    """Strike out of ``closed`` what no contact that leaves its round face can hand over to.

    Where a contact comes to the end of an arc or a curve, that end stands for an instant before both faces that meet
    in it.  It passes along one of them, and the other it does not strike: a contact of the same two shapes that begins
    at the end of its own face takes over without a blow or not at all.  Where the two faces are tangent the gap of the
    next falls with the square of the way left, and rounding may have it closed before the end is reached.  Corners on
    straight faces are seen to by :mod:`fsm_dyn.simulation.features`.
    """
    edge = np.sqrt(tables.tolerances[tol.GAP])
    for k in range(closed.shape[0]):
        new = closed[k] == 1 and before[k] == tb.FREE and tables.contact_flags[k] & tb.LIMITED != 0
        if not new or terms.reach[k] > tables.tolerances[tol.GAP]:
            continue
        if row_speed(terms, tables.contact_rows[k, 0], u) >= -tables.tolerances[tol.SPEED]:
            continue
        group, straight = tables.contact_flags[k] // tb.GROUP, tables.contact_ends[k, 0] >= 0
        for j in range(closed.shape[0]):
            if tables.contact_flags[j] // tb.GROUP != group or (straight and tables.contact_ends[j, 0] >= 0):
                continue
            held = before[j] != tb.FREE and tables.contact_flags[j] & tb.LIMITED != 0
            if event[j] == tb.LEAVES or (held and terms.reach[j] < edge and terms.reach_rate[j] < 0.0):
                closed[k] = 0
