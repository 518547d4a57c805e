"""On-line embedding: any active set, worked out at run time from the compiled unconstrained terms.

What a mode's own kernels do in a fixed order of elimination is done here numerically (docs/theory.md, "On-line
embedding"): with the rows held, ``A u + b = 0``, split into dependent and independent speeds, ``u = T u_I + e`` and a
test basis ``S`` with ``SᵀG = 0`` give ``(SᵀMT) u̇_I = Sᵀ(f - M c)``, Gillespie (2003) eqs (43)-(46) and Figure 2.
Which rows and which dependent speeds is the *chart*, chosen by :mod:`fsm_dyn.online.chart` when a mode is
first evaluated in a run or its pivot sounds the alarm, never in between.  The work is bounded by the numbers of rows
and speeds, and nothing is allocated.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.online.context import (
    AT_A,
    AT_B,
    AT_ELASTIC,
    AT_F,
    AT_FORCE,
    AT_G,
    AT_GAMMA,
    AT_H,
    AT_M,
    AT_MASS,
    AT_MT,
    AT_P,
    AT_Q_DOT,
    AT_RIGHT,
    AT_U_DOT,
    AT_X,
    BUSY,
    LISTS,
    MOTION,
    PUSHES,
    RANK,
    ROWS,
    SLIDES,
    Online,
)
from fsm_dyn.online.slip import find_slip_directions, friction_ratio, tangent_count
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel_at

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REDUNDANT: Final = 1e-6  # a row of which more than this part is left is not implied by the others (any more)


@lean
def eliminate(w: Floats, at: int, rank: int, width: int, columns: int) -> None:
    """Eliminate ``rank`` rows of ``columns`` entries, ``width`` apart, in the order they stand.

    Factors stay below the diagonal, and on it the inverse pivots: a division costs as much as ten products.
    """
    for k in range(rank):
        inverse = 1.0 / w[at + k * width + k]
        w[at + k * width + k] = inverse
        for i in range(k + 1, rank):
            factor = w[at + i * width + k] * inverse
            w[at + i * width + k] = factor
            if factor != 0.0:
                for j in range(k + 1, columns):
                    w[at + i * width + j] -= factor * w[at + k * width + j]


@lean
def substitute_back(w: Floats, at: int, rank: int, width: int, first: int, columns: int) -> None:
    """Solve the eliminated rows for the columns from ``first`` on, in place."""
    for back in range(rank):
        k = rank - 1 - back
        inverse = w[at + k * width + k]
        for m in range(k + 1, rank):
            factor = w[at + k * width + m]
            if factor != 0.0:
                for j in range(first, columns):
                    w[at + k * width + j] -= factor * w[at + m * width + j]
        for j in range(first, columns):
            w[at + k * width + j] *= inverse


@lean
def _hold(o: Online, t: float, x: Floats, c: Floats) -> None:
    """Eliminate the rows held and recompute the dependent speeds."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_b, at_x, at_P = chart[AT_A], chart[AT_B], chart[AT_X], chart[AT_P]
    n_q, U, R = o.sizes[tb.N_Q], o.sizes[tb.N_U], o.sizes[tb.N_ROWS]
    for i in range(n_q + U):
        w[at_x + i] = x[i]
    rank = chart[RANK]
    if rank == 0:
        return
    call_kernel_at(o.programs[ROWS], t, shifted(w, at_x), c, w, at_A)
    columns = LISTS + 2 * R
    width = U + 2
    for k in range(rank):
        row = chart[LISTS + k]
        for j in range(U):
            w[at_P + k * width + j] = w[at_A + row * U + chart[columns + j]]
        w[at_P + k * width + U] = w[at_b + row]
    eliminate(w, at_P, rank, width, U + 1)
    substitute_back(w, at_P, rank, width, rank, U + 1)
    for k in range(rank):
        speed = -w[at_P + k * width + U]
        for j in range(rank, U):
            speed -= w[at_P + k * width + j] * w[at_x + n_q + chart[columns + j]]
        w[at_x + n_q + chart[columns + k]] = speed


@lean
def force_rows(o: Online, out: int) -> None:
    """Write Gᵀ, speeds in the order of the chart, to ``w[out:]``: sliding contacts push off their normals."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A = chart[AT_A]
    U, R = o.sizes[tb.N_U], o.sizes[tb.N_ROWS]
    columns = LISTS + 2 * R
    for k in range(chart[RANK]):
        row, contact = chart[LISTS + k], chart[LISTS + R + k]
        for j in range(U):
            w[out + k * U + j] = w[at_A + row * U + chart[columns + j]]
        for i in range(tangent_count(o, contact) if contact >= 0 else 0):
            tangent, ratio = o.contact_rows[contact, 1] + i, friction_ratio(o, contact, i)
            for j in range(U):
                w[out + k * U + j] -= ratio * w[at_A + tangent * U + chart[columns + j]]


@lean
def _applied(o: Online) -> None:
    """Forces of the mode: those of the loads, of compressed contacts, and friction whose size is known."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_f, at_elastic, at_force = chart[AT_A], chart[AT_F], chart[AT_ELASTIC], chart[AT_FORCE]
    s = o.sizes
    U = s[tb.N_U]
    for i in range(U):
        w[at_force + i] = w[at_f + i]
    if chart[PUSHES] == 0:
        return
    for b in range(chart[BUSY]):
        k = chart[LISTS + 2 * s[tb.N_ROWS] + U + b]
        code, kind = o.states[k], o.contact_kind[k]
        if kind == tb.GAP or kind == tb.LOCK:
            continue
        load = 1.0
        if kind == tb.COMPLIANT:
            load = w[at_elastic + k]
            row = o.contact_rows[k, 0]
            for i in range(U):
                w[at_force + i] += load * w[at_A + row * U + i]
        for part in range(tangent_count(o, k) if code >= tb.SLIDING else 0):
            row, friction = o.contact_rows[k, 1] + part, load * friction_ratio(o, k, part)
            for i in range(U):
                w[at_force + i] -= friction * w[at_A + row * U + i]


@lean
def _reduce(o: Online, test: int, test_width: int) -> None:
    """Write ``SᵀMT`` and ``Sᵀ(f - M c)``; S is in the columns behind the rank of the matrix at ``test``."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_M, at_P, at_MT, at_mass = chart[AT_M], chart[AT_P], chart[AT_MT], chart[AT_MASS]
    at_right, at_force, at_g = chart[AT_RIGHT], chart[AT_FORCE], chart[AT_G]
    U, R, rank = o.sizes[tb.N_U], o.sizes[tb.N_ROWS], chart[RANK]
    columns, width, free = LISTS + 2 * R, o.sizes[tb.N_U] + 2, o.sizes[tb.N_U] - chart[RANK]
    if rank == 0:
        for i in range(U * U):
            w[at_mass + i] = w[at_M + i]
        for i in range(U):
            w[at_right + i] = w[at_force + i]
        return
    for i in range(U):
        row = at_M + i * U
        total = w[at_force + i]
        for k in range(rank):
            total += w[row + chart[columns + k]] * w[at_P + k * width + U + 1]
        w[at_g + i] = total
        for j in range(free):
            total = w[row + chart[columns + rank + j]]
            for k in range(rank):
                total -= w[row + chart[columns + k]] * w[at_P + k * width + rank + j]
            w[at_MT + i * U + j] = total
    for i in range(free):
        speed = chart[columns + rank + i]
        for j in range(free):
            w[at_mass + i * U + j] = w[at_MT + speed * U + j]
        w[at_right + i] = w[at_g + speed]
        for k in range(rank):
            weight = w[test + k * test_width + rank + i]
            if weight != 0.0:
                other = chart[columns + k]
                for j in range(free):
                    w[at_mass + i * U + j] -= weight * w[at_MT + other * U + j]
                w[at_right + i] -= weight * w[at_g + other]


@lean
def _weigh(o: Online, n: int, general: bool) -> None:
    """Write scales of columns and norms of rows of the reduced equations over MT, which is no longer needed."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_M, at_MT, at_mass = chart[AT_M], chart[AT_MT], chart[AT_MASS]
    U, R, rank = o.sizes[tb.N_U], o.sizes[tb.N_ROWS], chart[RANK]
    for j in range(n):
        inertia = w[at_M + chart[LISTS + 2 * R + rank + j] * (U + 1)]
        w[at_MT + j] = 1.0 / np.sqrt(inertia) if general and inertia > 0.0 else 1.0
    for i in range(n):
        w[at_MT + U + i] = abs(w[at_mass + i * U + i])
        if general:
            total = 0.0
            for j in range(n):
                entry = w[at_mass + i * U + j] * w[at_MT + j]
                total += entry * entry
            w[at_MT + U + i] = np.sqrt(total)


@lean
def _solve(w: Floats, chart: Integers, n: int, U: int, general: bool, judge: bool) -> float:
    """Solve the reduced equations into ``right``; return the smallest pivot scaled (1 for one equation)."""
    at_MT, at_mass, at_right = chart[AT_MT], chart[AT_MASS], chart[AT_RIGHT]
    least = 1.0
    for k in range(n):
        if general and k + 1 < n:
            _exchange(w, chart, k, n, U)
        pivot = w[at_mass + k * U + k]
        if judge:
            least = min(least, abs(pivot) * w[at_MT + k] / max(w[at_MT + U + k], 1e-300))
        inverse = 1.0 / pivot
        w[at_mass + k * U + k] = inverse
        for i in range(k + 1, n):
            factor = w[at_mass + i * U + k] * inverse
            if factor != 0.0:
                for j in range(k + 1, n):
                    w[at_mass + i * U + j] -= factor * w[at_mass + k * U + j]
                w[at_right + i] -= factor * w[at_right + k]
    for back in range(n):
        k = n - 1 - back
        total = w[at_right + k]
        for j in range(k + 1, n):
            total -= w[at_mass + k * U + j] * w[at_right + j]
        w[at_right + k] = total * w[at_mass + k * U + k]
    return least


@lean
def _exchange(w: Floats, chart: Integers, k: int, n: int, U: int) -> None:
    """Bring the row with the largest entry in column ``k`` up: friction makes the equations unsymmetric."""
    at_MT, at_mass, at_right = chart[AT_MT], chart[AT_MASS], chart[AT_RIGHT]
    best = k
    for i in range(k + 1, n):
        if abs(w[at_mass + i * U + k]) > abs(w[at_mass + best * U + k]):
            best = i
    if best == k:
        return
    for j in range(n):
        swap(w, at_mass + k * U + j, at_mass + best * U + j)
    swap(w, at_right + k, at_right + best)
    swap(w, at_MT + U + k, at_MT + U + best)


@lean
def swap(array: Floats, i: int, j: int) -> None:
    """Exchange two entries."""
    kept = array[i]
    array[i] = array[j]
    array[j] = kept


@lean
def accelerate(o: Online, t: float, x: Floats, c: Floats, judge: bool) -> float:
    """Work out speeds and accelerations of a mode at ``AT_X AT_Q_DOT AT_U_DOT`` of the workspace.

    Returns
    -------
    float
        The smallest pivot of the reduced equations, scaled, where it is asked for by ``judge``; 1 otherwise.
    """
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_q_dot, at_gamma, at_x = chart[AT_A], chart[AT_Q_DOT], chart[AT_GAMMA], chart[AT_X]
    at_P, at_H, at_right, at_u_dot = chart[AT_P], chart[AT_H], chart[AT_RIGHT], chart[AT_U_DOT]
    U, R, rank = o.sizes[tb.N_U], o.sizes[tb.N_ROWS], chart[RANK]
    columns, width = LISTS + 2 * R, U + 2
    _hold(o, t, x, c)
    if rank == 0 and chart[PUSHES] == 1:
        call_kernel_at(o.programs[ROWS], t, shifted(w, at_x), c, w, at_A)
    call_kernel_at(o.programs[MOTION], t, shifted(w, at_x), c, w, at_q_dot)
    find_slip_directions(o, c)
    _applied(o)
    for k in range(rank):
        w[at_P + k * width + U + 1] = w[at_gamma + chart[LISTS + k]]
        for m in range(k):
            w[at_P + k * width + U + 1] -= w[at_P + k * width + m] * w[at_P + m * width + U + 1]
    substitute_back(w, at_P, rank, width, U + 1, U + 2)
    general = chart[SLIDES] == 1
    test, test_width = at_P, width
    if general:
        test, test_width = at_H, U
        force_rows(o, at_H)
        eliminate(w, at_H, rank, U, U)
        substitute_back(w, at_H, rank, U, rank, U)
    _reduce(o, test, test_width)
    judge = judge and U - rank > 1
    if judge:
        _weigh(o, U - rank, general)
    least = _solve(w, chart, U - rank, U, general, judge)
    for j in range(U - rank):
        w[at_u_dot + chart[columns + rank + j]] = w[at_right + j]
    for k in range(rank):
        total = -w[at_P + k * width + U + 1]
        for j in range(U - rank):
            total -= w[at_P + k * width + rank + j] * w[at_right + j]
        w[at_u_dot + chart[columns + k]] = total
    return least
