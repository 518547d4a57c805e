"""Rows that others stand in for, and that these no longer imply.

Where rows of a mode repeat each other, those left out of the elimination are kept by the others.  Inputs and time can
move surfaces apart that were at rest to each other when the mode began, two belts under one plank; then no motion keeps
all rows, and contacts have to give way (docs/theory.md, "Rows that contradict each other").
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import release
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed, slip_speed
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.state import Work
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import open_terms

CLEAR: Final = 10.0  # times the speed that counts as zero: beyond this the rows of a mode contradict each other
LATE: Final = 1000.0  # times that speed: the step went too far past the instant where they began to


@lean
def contradiction(
    work: Work, tables: Tables, t: float, x: NDArray[np.float64], c: NDArray[np.float64], mode: int
) -> float:
    """Return the largest speed along what a mode with the flag ``REPEATS`` holds, in units of the speed tolerance."""
    release(work, (0, 0))
    terms = open_terms(work.addresses[0])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    n_q = tables.sizes[tb.N_Q]
    u = x[n_q : n_q + tables.sizes[tb.N_U]]
    worst = 0.0
    for k in range(tables.sizes[tb.N_CONTACTS]):
        code, kind = tables.mode_states[mode, k], tables.contact_kind[k]
        if code == tb.FREE or kind == tb.LOCK:
            continue
        if kind == tb.GAP:
            worst = max(worst, abs(row_speed(terms, tables.contact_rows[k, 0], u)))
        if code == tb.HELD and tables.contact_rows[k, 1] >= 0:
            worst = max(worst, slip_speed(tables, terms, k, u))
    return float(worst / tables.tolerances[tol.SPEED])
