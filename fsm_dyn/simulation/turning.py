"""Slip directions in space, kept as an angle in the tangent plane (docs/theory.md, "Friction in space")."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.arena import Workspace, release
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.contexts import sigma_at
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import open_terms

CLEAR: Final = 1e-7  # m/s: below this a slip at its end or beginning has no direction to go by
SAME: Final = 1e-9  # rad


@lean
def angle_of(first: float, second: float, kept: float) -> float:
    """Return the angle of a vector in (0, 2π]; the one kept where it is as good as that."""
    angle = np.arctan2(second, first)
    if angle <= 0.0:
        angle += 2.0 * np.pi
    return kept if kept > 0.0 and abs(angle - kept) <= SAME else float(angle)


@lean
def turn_slips(
    work: Workspace, tables: Tables, t: float, x: NDArray[np.float64], c: NDArray[np.float64], mode: int
) -> bool:
    """Let the slip directions kept in ``c`` follow the slips in a mode with the flag ``TURNS``; whether any turned."""
    sizes = tables.sizes
    n_contacts = sizes[tb.N_CONTACTS]
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    at, turned = sigma_at(sizes), False
    u = x[sizes[tb.N_Q] : sizes[tb.N_Q] + sizes[tb.N_U]]
    for k in range(n_contacts):
        if tables.contact_flags[k] & tb.IN_SPACE == 0 or tables.mode_states[mode, k] != tb.SLIDING:
            continue
        row = tables.contact_rows[k, 1]
        first, second = row_speed(terms, row, u), row_speed(terms, row + 1, u)
        if np.hypot(first, second) > CLEAR:
            angle = angle_of(first, second, c[at + k])
            turned = turned or angle != c[at + k]
            c[at + k] = angle
    return turned
