"""What the guards that fired say of their contacts, and how accurately.

Where a contact is released its normal force has fallen to zero, and where it begins to slide the margin of its
friction has; the accelerations do not jump there.  The law of the state after such an event, ``a_n > 0`` or
``σ a_t > 0``, therefore holds by its rate and not by its value, which is zero up to what the location of the event
resolves:

- the value of the guard there, which for guards that are resolved together is as much as they still have to fall (one
  that is far below zero, where a mode begins, was not located);
- the rate of the force times the resolution of time;
- the tolerance of the guard, below which a force is the rounding of the forces that cancel in it.

A fraction of the accelerations at hand would be no measure, as all forces may cancel (docs/theory.md, "Resolution").
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.faces import within_face
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

DEEPEST: Final = 4.0  # times the gap tolerance: how deep a gap may be where its guard has fired


@lean
def read_slack(
    tables: Tables,
    mode: int,
    guards: NDArray[np.float64],
    fired: NDArray[np.int64],
    n_fired: int,
    resolution: float,
    slack: NDArray[np.float64],
) -> None:
    """Fill in how far from zero the forces may be whose guards fired.

    Parameters
    ----------
    guards : float64 array, shape (5 n_most,)
        ``State.guards``: values, slopes and tolerances of the guards of ``mode``, then values and slopes of those that
        fired.
    fired : int64 array, ``n_fired`` : int
        Numbers of the guards that fired.
    resolution : float
        How finely the event was located (s).
    slack : float64 array, shape (n_contacts, 2)
        Out: of the normal force and of the margin of friction (N or N m, friction in space squared), zero where no
        guard on it fired.
    """
    most, first = guards.shape[0] // 5, tables.mode_guard_start[mode]
    for i in range(n_fired):
        event, k = tables.guard_event[fired[i]], tables.guard_contact[fired[i]]
        if event != tb.OPENS and event != tb.SLIDES:
            continue
        at = 0 if event == tb.OPENS else 1
        slope = abs(guards[4 * most + i])
        known = min(abs(guards[3 * most + i]), slope * tables.tolerances[tol.COINCIDENCE]) + slope * resolution
        slack[k, at] = max(slack[k, at], known + guards[2 * most + fired[i] - first])


@lean
def recall_limits(limits: NDArray[np.int64], event: NDArray[np.int64], direction: NDArray[np.float64]) -> None:
    """Add what came to its limit earlier in this instant, in other modes: none of the states in a cycle is a way on."""
    for k in range(event.shape[0]):
        if event[k] == 0 and limits[k] != 0:
            event[k] = limits[k]
            direction[k] = limits[event.shape[0] + k]


@lean
def mark_closing(tables: Tables, terms: Terms, contact: int, event: NDArray[np.int64]) -> None:
    """Mark the contact whose gap fell to zero, or those of its outline that are met, if their faces are there."""
    outline, largest = tables.contact_outline[contact], -DEEPEST * tables.tolerances[tol.GAP]
    for part in range(2):
        for k in range(contact, event.shape[0]):
            if k != contact and (outline < 0 or tables.contact_outline[k] != outline):
                continue
            if terms.closes_if[k] == 0.0 or not within_face(tables, terms, k):
                continue
            gap = terms.residual[tables.contact_rows[k, 0]]
            if outline < 0:
                event[k] = tb.CLOSES
            elif part == 0:
                largest = max(largest, gap)
            elif gap >= largest - tables.tolerances[tol.GAP]:
                event[k] = tb.CLOSES


@lean
def any_event(event: NDArray[np.int64]) -> bool:
    """Whether anything happens to any contact."""
    happens = False
    for k in range(event.shape[0]):
        happens = happens or event[k] != 0
    return happens
