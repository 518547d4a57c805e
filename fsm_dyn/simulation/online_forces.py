"""What a ``full`` kernel gives beyond the derivative, worked out on line: multipliers, guards, slopes, pivot.

Slopes of gaps, slip speeds and ends of faces are known exactly from the terms.  Forces and written conditions would
need derivatives of the terms; they are differenced centrally along the flow, which is right to about nine digits:
an event is located by its value, and the slope only steers the search (docs/theory.md, "On-line embedding").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import inner, lean
from fsm_dyn.simulation.feasibility import widest_margin
from fsm_dyn.simulation.kernels import call_kernel_at
from fsm_dyn.simulation.online import PROBE, REDUNDANT, accelerate, force_rows, friction_ratio
from fsm_dyn.simulation.online_places import (
    ACTIVE,
    AT_A,
    AT_B,
    AT_ELASTIC,
    AT_FORCE,
    AT_G,
    AT_GAMMA,
    AT_GUARDS,
    AT_H,
    AT_HIDDEN_A,
    AT_HIDDEN_F,
    AT_HIDDEN_M,
    AT_INPUTS,
    AT_M,
    AT_MULTIPLIERS,
    AT_OPEN,
    AT_P,
    AT_PROBE,
    AT_Q,
    AT_Q_DOT,
    AT_REACH,
    AT_REACH_RATE,
    AT_RESIDUAL,
    AT_STATIC,
    AT_U_DOT,
    AT_WHEN,
    AT_X,
    LISTS,
    RANK,
    SLIDES,
)
from fsm_dyn.simulation.tables import Tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@lean
def _multipliers(tables: Tables, chart: Integers, w: Floats, c: Floats, mode: int) -> None:
    """Write λ of every row, from the dependent rows: ``G_Dᵀ λ = (M u̇ - f)_D``."""
    at_M, at_hidden_M, at_hidden_f, at_hidden_A = (
        chart[AT_M],
        chart[AT_HIDDEN_M],
        chart[AT_HIDDEN_F],
        chart[AT_HIDDEN_A],
    )
    at_P, at_H, at_force, at_g = chart[AT_P], chart[AT_H], chart[AT_FORCE], chart[AT_G]
    at_u_dot, at_multipliers = chart[AT_U_DOT], chart[AT_MULTIPLIERS]
    s = tables.sizes
    U, R, K, rank = s[tb.N_U], s[tb.N_ROWS], s[tb.N_K], chart[RANK]
    columns = LISTS + 2 * R
    at, width = at_P, U + 2
    if chart[SLIDES] == 1:
        at, width = at_H, U
    for r in range(R):
        w[at_multipliers + r] = 0.0
    for k in range(rank):
        i = chart[columns + k]
        w[at_g + k] = -w[at_force + i]
        for j in range(U):
            w[at_g + k] += w[at_M + i * U + j] * w[at_u_dot + j]
    _solve_transposed(w, at, rank, width, at_g)
    for k in range(rank):
        w[at_multipliers + chart[LISTS + k]] = w[at_g + k]
    for k in range(s[tb.N_CONTACTS]):
        _known_forces(tables, w, chart, c, mode, k)
    if chart[ACTIVE] > rank:
        _find_open_forces(tables, chart, w, c, mode, at, width)
        _take_smallest(tables, chart, w)
    for k in range(K):
        total = -w[at_hidden_f + k]
        for j in range(U):
            total += w[at_hidden_M + k * U + j] * w[at_u_dot + j]
        for r in range(R):
            if tables.row_role[r] != tb.KINEMATIC:
                total -= w[at_hidden_A + r * K + k] * w[at_multipliers + r]
        w[at_multipliers + _hidden_row(tables, k)] = total


@lean
def _solve_transposed(w: Floats, at: int, rank: int, width: int, right: int) -> None:
    """Solve with the transpose of the eliminated rows at ``at``, in place."""
    for k in range(rank):
        for m in range(k):
            w[right + k] -= w[at + m * width + k] * w[right + m]
        w[right + k] /= w[at + k * width + k]
    for back in range(rank):
        k = rank - 1 - back
        for i in range(k + 1, rank):
            w[right + k] -= w[at + i * width + k] * w[right + i]


@lean
def _find_open_forces(tables: Tables, chart: Integers, w: Floats, c: Floats, mode: int, at: int, width: int) -> None:
    """Write, for every row left out, the forces on all rows that together do nothing."""
    at_A, at_g, at_open = chart[AT_A], chart[AT_G], chart[AT_OPEN]
    U, R, rank = tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS], chart[RANK]
    columns = LISTS + 2 * R
    for d in range(chart[ACTIVE] - rank):
        row, contact = chart[LISTS + rank + d], chart[LISTS + R + rank + d]
        for k in range(rank):
            j = chart[columns + k]
            w[at_g + k] = w[at_A + row * U + j]
            if contact >= 0:
                tangent = tables.contact_rows[contact, 1]
                w[at_g + k] -= friction_ratio(tables, w, chart, c, mode, contact) * w[at_A + tangent * U + j]
        _solve_transposed(w, at, rank, width, at_g)
        vector = at_open + d * R
        for r in range(R):
            w[vector + r] = 0.0
        w[vector + row] = 1.0
        for k in range(rank):
            w[vector + chart[LISTS + k]] = -w[at_g + k]
        for k in range(chart[ACTIVE]):
            contact = chart[LISTS + R + k]
            if contact >= 0:
                ratio = friction_ratio(tables, w, chart, c, mode, contact)
                w[vector + tables.contact_rows[contact, 1]] = -ratio * w[vector + chart[LISTS + k]]


@lean
def _take_smallest(tables: Tables, chart: Integers, w: Floats) -> None:
    """Make the open forces orthogonal and take their part out of the multipliers, which leaves the least norm."""
    at_multipliers, at_open = chart[AT_MULTIPLIERS], chart[AT_OPEN]
    R = tables.sizes[tb.N_ROWS]
    for d in range(chart[ACTIVE] - chart[RANK]):
        vector = at_open + d * R
        for other in range(d):
            _project_out(w, vector, at_open + other * R, R)
        _project_out(w, at_multipliers, vector, R)


@lean
def _project_out(w: Floats, at: int, along: int, n: int) -> None:
    product, square = 0.0, 0.0
    for r in range(n):
        product += w[at + r] * w[along + r]
        square += w[along + r] * w[along + r]
    for r in range(n):
        w[at + r] -= product / square * w[along + r]


@inner
def _share(tables: Tables, chart: Integers, w: Floats, c: Floats, mode: int) -> None:
    """Choose the forces left open so that the laws of the contacts are kept with the widest margin.

    The margin reaches zero where no shares are left that keep every law, and the laws at their limits are then those
    that contacts can only keep together (docs/theory.md, "Redundant contacts").
    """
    at_static, at_multipliers, at_open = chart[AT_STATIC], chart[AT_MULTIPLIERS], chart[AT_OPEN]
    first, last = tables.mode_guard_start[mode], tables.mode_guard_start[mode + 1]
    R, count = tables.sizes[tb.N_ROWS], chart[ACTIVE] - chart[RANK]
    along, slack, laws, scale = np.zeros((last - first, count)), np.zeros(last - first), 0, 0.0
    for guard in range(first, last):
        event, k = tables.guard_event[guard], tables.guard_contact[guard]
        if event != tb.OPENS and event != tb.SLIDES:
            continue
        slack[laws] = _guard(tables, w, chart, c, mode, guard)
        normal, tangent = tables.contact_rows[k, 0], tables.contact_rows[k, 1]
        two_sided = tables.contact_flags[k] & tb.TWO_SIDED != 0
        for d in range(count):
            vector = at_open + d * R
            if event == tb.OPENS:
                side = -1.0 if tables.mode_states[mode, k] == tb.SLIDING_UNDER else 1.0
                along[laws, d] = side * w[vector + normal]
            else:
                along[laws, d] = tables.guard_direction[guard] * w[vector + tangent]
                if normal >= 0 and not two_sided and tables.contact_kind[k] == tb.GAP:
                    along[laws, d] += w[at_static + k] * w[vector + normal]
        laws += 1
    for r in range(R):
        scale = max(scale, abs(w[at_multipliers + r]))
    if laws == 0 or scale == 0.0:
        return
    _, shares = widest_margin(along[:laws], slack[:laws], scale)
    for d in range(count):
        for r in range(R):
            w[at_multipliers + r] += shares[d] * w[at_open + d * R + r]


@lean
def _known_forces(tables: Tables, w: Floats, chart: Integers, c: Floats, mode: int, k: int) -> None:
    """Enter the forces of one contact that follow from its state: friction while it slides, a compressed pad."""
    at_elastic, at_multipliers = chart[AT_ELASTIC], chart[AT_MULTIPLIERS]
    code, kind = tables.mode_states[mode, k], tables.contact_kind[k]
    normal, tangent = tables.contact_rows[k, 0], tables.contact_rows[k, 1]
    if code == tb.FREE:
        return
    load = 1.0
    if kind == tb.COMPLIANT:
        w[at_multipliers + normal] = w[at_elastic + k]
        load = w[at_elastic + k]
    elif kind == tb.GAP:
        load = w[at_multipliers + normal]
    if code >= tb.SLIDING and tangent >= 0:
        w[at_multipliers + tangent] = -friction_ratio(tables, w, chart, c, mode, k) * load


@lean
def _hidden_row(tables: Tables, k: int) -> int:
    """Return the row number of the k-th row hidden in the choice of speeds."""
    for r in range(tables.sizes[tb.N_ROWS]):
        if tables.row_role[r] == tb.KINEMATIC:
            if k == 0:
                return r
            k -= 1
    return -1


@lean
def _weighted_norm(w: Floats, chart: Integers, row: int, U: int) -> float:
    """Return the square of a row's norm, speeds in units of the root of their inertia."""
    at_M = chart[AT_M]
    total = 0.0
    for j in range(U):
        inertia = w[at_M + j * (U + 1)]
        total += w[row + j] * w[row + j] / (inertia if inertia > 0.0 else 1.0)
    return total


@lean
def row_pivots(tables: Tables, chart: Integers, w: Floats, c: Floats, mode: int, least: float) -> float:
    """Return the smallest scaled pivot of the rows, ``least`` at most; 0 where a row left out holds something now."""
    at_A, at_M, at_P, at_H = chart[AT_A], chart[AT_M], chart[AT_P], chart[AT_H]
    at_Q = chart[AT_Q]
    U, R, rank = tables.sizes[tb.N_U], tables.sizes[tb.N_ROWS], chart[RANK]
    columns, width = LISTS + 2 * R, U + 2
    if chart[SLIDES] == 1:
        force_rows(tables, chart, w, c, mode, at_Q)
    for k in range(rank):
        inertia = w[at_M + chart[columns + k] * (U + 1)]
        size = np.sqrt(inertia) if inertia > 0.0 else 1.0
        norm = np.sqrt(_weighted_norm(w, chart, at_A + chart[LISTS + k] * U, U)) * size
        least = min(least, abs(w[at_P + k * width + k]) / max(norm, 1e-300))
        if chart[SLIDES] == 1:
            total = 0.0
            for j in range(U):
                mass = w[at_M + chart[columns + j] * (U + 1)]
                total += w[at_Q + k * U + j] * w[at_Q + k * U + j] / (mass if mass > 0.0 else 1.0)
            least = min(least, abs(w[at_H + k * U + k]) / max(np.sqrt(total) * size, 1e-300))
    for k in range(rank, chart[ACTIVE]):
        row = at_A + chart[LISTS + k] * U
        rest = 0.0
        for j in range(rank, U):
            left = w[row + chart[columns + j]]
            for m in range(rank):
                left -= w[row + chart[columns + m]] * w[at_P + m * width + j]
            inertia = w[at_M + chart[columns + j] * (U + 1)]
            rest += left * left / (inertia if inertia > 0.0 else 1.0)
        if rest > REDUNDANT * REDUNDANT * _weighted_norm(w, chart, row, U):
            return 0.0
    return least


@lean
def _row_value(tables: Tables, w: Floats, chart: Integers, row: int, vector: int, constant: int) -> float:
    at_A = chart[AT_A]
    U = tables.sizes[tb.N_U]
    total = w[constant + row]
    for j in range(U):
        total += w[at_A + row * U + j] * w[vector + j]
    return total


@lean
def _guard(tables: Tables, w: Floats, chart: Integers, c: Floats, mode: int, guard: int) -> float:
    """Return the value of one guard; forces and the state with dependent speeds are in the workspace."""
    at_b, at_static, at_residual, at_when = chart[AT_B], chart[AT_STATIC], chart[AT_RESIDUAL], chart[AT_WHEN]
    at_reach, at_x, at_multipliers = chart[AT_REACH], chart[AT_X], chart[AT_MULTIPLIERS]
    s = tables.sizes
    event, k = tables.guard_event[guard], tables.guard_contact[guard]
    if event == tb.WRITTEN:
        return tables.guard_sign[guard] * w[at_when + k]
    if event == tb.LEAVES:
        return w[at_reach + k]
    normal, tangent = tables.contact_rows[k, 0], tables.contact_rows[k, 1]
    if event == tb.CLOSES:
        return w[at_residual + normal]
    if event == tb.STICKS:
        sigma = c[s[tb.N_P] + 3 * s[tb.N_W] + k]
        return sigma * _row_value(tables, w, chart, tangent, at_x + s[tb.N_Q], at_b)
    if event == tb.OPENS:
        force = w[at_multipliers + normal]
        return -force if tables.mode_states[mode, k] == tb.SLIDING_UNDER else force
    bound = w[at_static + k]
    if normal >= 0:
        load = w[at_multipliers + normal]
        bound *= abs(load) if tables.contact_flags[k] & tb.TWO_SIDED else load
    return bound + tables.guard_direction[guard] * w[at_multipliers + tangent]


@lean
def _exact_slope(tables: Tables, w: Floats, chart: Integers, c: Floats, guard: int) -> float:
    """Return the slope of a guard that the terms give themselves."""
    at_b, at_gamma, at_reach_rate, at_x = chart[AT_B], chart[AT_GAMMA], chart[AT_REACH_RATE], chart[AT_X]
    at_u_dot = chart[AT_U_DOT]
    s = tables.sizes
    event, k = tables.guard_event[guard], tables.guard_contact[guard]
    if event == tb.LEAVES:
        return w[at_reach_rate + k]
    if event == tb.CLOSES:
        return _row_value(tables, w, chart, tables.contact_rows[k, 0], at_x + s[tb.N_Q], at_b)
    sigma = c[s[tb.N_P] + 3 * s[tb.N_W] + k]
    return sigma * _row_value(tables, w, chart, tables.contact_rows[k, 1], at_u_dot, at_gamma)


@lean
def _is_exact(event: int) -> bool:
    return event == tb.CLOSES or event == tb.LEAVES or event == tb.STICKS


@lean
def _work_out(
    tables: Tables, chart: Integers, w: Floats, mode: int, t: float, x: Floats, c: Floats, from_x: int
) -> float:
    """Accelerations, forces and all that guards look at; returns the smallest pivot of the reduced equations."""
    at_A, at_static, at_x = chart[AT_A], chart[AT_STATIC], chart[AT_X]
    least = accelerate(tables, chart, w, mode, t, x, c, from_x, True)
    if chart[RANK] == 0 and tables.sizes[tb.N_ROWS] > 0:
        call_kernel_at(tables.online[0], t, w[at_x:], c, w, at_A)
    if tables.online[2] != 0:
        call_kernel_at(tables.online[2], t, w[at_x:], c, w, at_static)
    _multipliers(tables, chart, w, c, mode)
    return least


@lean
def _shift_inputs(tables: Tables, w: Floats, chart: Integers, c: Floats, time: float) -> None:
    """Set the inputs to what they are ``time`` (s) from now at their rates; those of now are kept aside."""
    at_inputs = chart[AT_INPUTS]
    s = tables.sizes
    n_p, n_w = s[tb.N_P], s[tb.N_W]
    for i in range(2 * n_w):
        c[n_p + i] = w[at_inputs + i] + time * (w[at_inputs + n_w + i] if i < n_w else c[n_p + n_w + i])


@lean
def _probe_time(out: Floats, w: Floats, from_x: int, n: int) -> float:
    """Return over what time (s) to difference, from how fast the state changes."""
    fastest = 0.0
    for i in range(n):
        fastest = max(fastest, abs(out[i]) / (1.0 + abs(w[from_x + i])))
    return PROBE / (1.0 + fastest)


@lean
def online_full(
    tables: Tables, chart: Integers, w: Floats, mode: int, t: float, x: Floats, c: Floats, out: Floats
) -> None:
    """Write what the ``full`` kernel of a mode would: see :class:`~fsm_dyn.simulation.tables.Tables`."""
    at_q_dot, at_x, at_u_dot, at_multipliers = chart[AT_Q_DOT], chart[AT_X], chart[AT_U_DOT], chart[AT_MULTIPLIERS]
    at_probe, at_inputs, at_guards = chart[AT_PROBE], chart[AT_INPUTS], chart[AT_GUARDS]
    s = tables.sizes
    n_q, U, R = s[tb.N_Q], s[tb.N_U], s[tb.N_ROWS]
    n = n_q + U
    first, n_g = tables.mode_guard_start[mode], tables.mode_guard_start[mode + 1] - tables.mode_guard_start[mode]
    least = _work_out(tables, chart, w, mode, t, x, c, 0)
    for i in range(n_q):
        out[i] = w[at_q_dot + i]
    for i in range(U):
        out[n_q + i] = w[at_u_dot + i]
        out[n + i] = w[at_x + n_q + i]
    out[n + U] = row_pivots(tables, chart, w, c, mode, least)
    values = n + U + 1
    slopes = values + n_g
    for r in range(R):
        out[slopes + n_g + r] = w[at_multipliers + r]
    redundant = chart[ACTIVE] > chart[RANK]
    if redundant:
        _share(tables, chart, w, c, mode)
    differs = False
    for g in range(n_g):
        out[values + g] = _guard(tables, w, chart, c, mode, first + g)
        if _is_exact(tables.guard_event[first + g]):
            out[slopes + g] = _exact_slope(tables, w, chart, c, first + g)
        else:
            differs = True
    if not differs:
        return
    time = _probe_time(out, w, at_x, n)
    for i in range(n):
        w[at_probe + i] = w[at_x + i]
    n_p, inputs = s[tb.N_P], 2 * s[tb.N_W]
    for i in range(inputs):
        w[at_inputs + i] = c[n_p + i]
    for side in range(2):
        along = time if side == 0 else -time
        for i in range(n):
            w[at_probe + i] += (along if side == 0 else 2.0 * along) * out[i]
        _shift_inputs(tables, w, chart, c, along)
        _work_out(tables, chart, w, mode, t + along, w, c, at_probe)
        if redundant:
            _share(tables, chart, w, c, mode)
        for g in range(n_g):
            w[at_guards + side * n_g + g] = _guard(tables, w, chart, c, mode, first + g)
    for i in range(inputs):
        c[n_p + i] = w[at_inputs + i]
    for g in range(n_g):
        if not _is_exact(tables.guard_event[first + g]):
            out[slopes + g] = (w[at_guards + g] - w[at_guards + n_g + g]) / (2.0 * time)
