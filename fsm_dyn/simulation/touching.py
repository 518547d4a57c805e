"""Which contacts touch at an instant (docs/theory.md, "Resolution", position)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.faces import hand_over, still, within_face
from fsm_dyn.simulation.features import choose_features
from fsm_dyn.simulation.fired import DEEPEST
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms


@lean
def _find_closed(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    wanted: NDArray[np.int8],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    written: int,
    near: float,
    closed: NDArray[np.int64],
) -> bool:
    """Mark the contacts that touch, to within ``near``; False if one is deeper than the gap tolerance.

    In the course of a run what is near but has not fired is left to strike by itself: closing it would move it.  A
    corner on a face that has no speed towards it is flush, and touches.
    """
    small = tables.tolerances[tol.GAP]
    for k in range(wanted.shape[0]):
        closed[k] = 0
        if tables.contact_kind[k] != tb.GAP:
            continue
        let_go = written >= 0 and tables.transition_states[written, k] == tb.FREE
        gap = terms.residual[tables.contact_rows[k, 0]]
        if tables.contact_flags[k] & tb.TWO_SIDED:
            closed[k] = 1
        elif before[k] != tb.FREE:
            closed[k] = 0 if let_go or event[k] == tb.LEAVES else 1
        elif terms.closes_if[k] != 0.0 and not let_go and within_face(tables, terms, k):
            if gap < (-DEEPEST * small if event[k] == tb.CLOSES else -small):
                if tables.contact_flags[k] & tb.LIMITED:
                    continue  # behind the face: that is no violation
                return False
            flush = tables.contact_ends[k, 0] >= 0 and gap <= small
            if flush and abs(row_speed(terms, tables.contact_rows[k, 0], u)) <= still(tables, terms, k):
                closed[k] = 1
            if event[k] == tb.CLOSES or gap <= near:
                closed[k] = 1
    return True


@lean
def find_active(
    tables: Tables,
    terms: Terms,
    u: NDArray[np.float64],
    wanted: NDArray[np.int8],
    before: NDArray[np.int64],
    event: NDArray[np.int64],
    written: int,
    near: float,
    closed: NDArray[np.int64],
    implied: NDArray[np.int64],
) -> bool:
    """Mark the contacts that are active at the speeds ``u`` (n_u,) in ``closed`` (n_contacts,).

    False if one is deeper than the gap tolerance.
    """
    if not _find_closed(tables, terms, u, wanted, before, event, written, near, closed):
        return False
    choose_features(tables, terms, u, before, event, closed, implied)
    hand_over(tables, terms, u, before, event, closed)
    return True
