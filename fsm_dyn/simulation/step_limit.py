"""How long a step of time stepping may be where compliant contacts press (docs/theory.md, "Time stepping")."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.active_contacts import presses
from fsm_dyn.simulation.arena import copied, indices, mark, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import Bilateral, contact_response
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.state import Work
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]

RADIANS: Final = (
    1.0  # of the fastest oscillation of compliant contacts that a step may last; 2 is the limit of stability
)
_RELATIVE: Final = 1e-6  # of the depth, or of the speed, by which forces are differenced


@lean
def longest_step(
    work: Work, tables: Tables, terms: Terms, bilateral: Bilateral, t: float, x: Floats, c: Floats, free_side: Codes
) -> float:
    """Return the longest step (s) that resolves what the compressed contacts do at a state; inf where none is.

    With ``S_ij = -dF_i / dp_j`` for the force F_i of contact i and a displacement along the response of the system to a
    unit force of contact j, and ``D`` likewise for speeds, the largest row sums bound the square of the frequency,
    ``w^2 <= max_i sum_j |S_ij|``, and the damping, ``d <= max_i sum_j |D_ij|``.  The step may last ``RADIANS`` of the
    faster of the two motions, ``h (d/2 + sqrt(d^2/4 + w^2)) <= RADIANS``.

    The terms hold the state given, before and after.
    """
    at = mark(work)
    count, n_q, n_u = free_side.shape[0], tables.sizes[tb.N_Q], tables.sizes[tb.N_U]
    rows, contact, n = indices(work, count), indices(work, count), 0
    for k in range(count):
        if presses(tables, terms, k, free_side):
            rows[n], contact[n] = tables.contact_rows[k, 0], k
            n += 1
    if n == 0:
        release(work, at)
        return float(np.inf)
    motions, _, K = contact_response(work, terms, bilateral, rows[:n], n_u)
    force, depth, stiff, damped = vector(work, n), vector(work, n), vector(work, n), vector(work, n)
    W, moved = matrix(work, n_q, n_u), copied(work, x)
    for i in range(n):
        force[i], depth[i] = terms.elastic[contact[i]], -terms.residual[rows[i]]
    for i in range(n_q):
        for j in range(n_u):
            W[i, j] = terms.W[i, j]
    for j in range(n):
        if K[j, j] <= 0.0:
            continue
        by = -_RELATIVE * depth[j] / K[j, j]  # deeper, so that the contact stays compressed
        for i in range(n_q):
            for m in range(n_u):
                moved[i] += by * W[i, m] * motions[j, m]
        call_kernel(tables.terms[0], t, moved, c, terms.whole)
        for i in range(n):
            stiff[i] += abs((terms.elastic[contact[i]] - force[i]) / by)
        for i in range(n_q):
            moved[i] = x[i]
        by = -_RELATIVE / K[j, j]
        for m in range(n_u):
            moved[n_q + m] += by * motions[j, m]
        call_kernel(tables.terms[0], t, moved, c, terms.whole)
        for i in range(n):
            damped[i] += abs((terms.elastic[contact[i]] - force[i]) / by)
        for m in range(n_u):
            moved[n_q + m] = x[n_q + m]
    square, damping = 0.0, 0.0
    for i in range(n):
        square, damping = max(square, stiff[i]), max(damping, damped[i])
    call_kernel(tables.terms[0], t, x, c, terms.whole)
    release(work, at)
    rate = 0.5 * damping + np.sqrt(0.25 * damping * damping + square)
    return float(RADIANS / rate) if rate > 0.0 else float(np.inf)
