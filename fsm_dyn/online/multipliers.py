"""Multipliers of a mode embedded on line, and the forces left open where its rows repeat each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.online.context import (
    ACTIVE,
    AT_A,
    AT_ELASTIC,
    AT_FORCE,
    AT_G,
    AT_H,
    AT_HIDDEN_A,
    AT_HIDDEN_F,
    AT_HIDDEN_M,
    AT_M,
    AT_MULTIPLIERS,
    AT_OPEN,
    AT_P,
    AT_U_DOT,
    BUSY,
    LISTS,
    RANK,
    SLIDES,
    Online,
)
from fsm_dyn.online.slip import friction_ratio, tangent_count
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import start_of
from fsm_dyn.simulation.compiled import lean

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@lean
def find_multipliers(o: Online) -> None:
    """Write λ of every row, from the dependent rows: ``G_Dᵀ λ = (M u̇ - f)_D``."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_M, at_hidden_M = chart[AT_M], chart[AT_HIDDEN_M]
    at_hidden_f, at_hidden_A = chart[AT_HIDDEN_F], chart[AT_HIDDEN_A]
    at_P, at_H, at_force, at_g = chart[AT_P], chart[AT_H], chart[AT_FORCE], chart[AT_G]
    at_u_dot, at_multipliers = chart[AT_U_DOT], chart[AT_MULTIPLIERS]
    s = o.sizes
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
    for b in range(chart[BUSY]):
        _known_forces(o, chart[columns + U + b])
    if chart[ACTIVE] > rank:
        _find_open_forces(o, at, width)
        _take_smallest(o)
    for k in range(K):
        total = -w[at_hidden_f + k]
        for j in range(U):
            total += w[at_hidden_M + k * U + j] * w[at_u_dot + j]
        for r in range(R):
            if o.row_role[r] != tb.KINEMATIC:
                total -= w[at_hidden_A + r * K + k] * w[at_multipliers + r]
        w[at_multipliers + _hidden_row(o, k)] = total


@lean
def _solve_transposed(w: Floats, at: int, rank: int, width: int, right: int) -> None:
    """Solve with the transpose of the eliminated rows at ``at``, in place."""
    for k in range(rank):
        for m in range(k):
            w[right + k] -= w[at + m * width + k] * w[right + m]
        w[right + k] *= w[at + k * width + k]
    for back in range(rank):
        k = rank - 1 - back
        for i in range(k + 1, rank):
            w[right + k] -= w[at + i * width + k] * w[right + i]


@lean
def _find_open_forces(o: Online, at: int, width: int) -> None:
    """Write, for every row left out, the forces on all rows that together do nothing."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_g, at_open = chart[AT_A], chart[AT_G], chart[AT_OPEN]
    U, R, rank = o.sizes[tb.N_U], o.sizes[tb.N_ROWS], chart[RANK]
    columns = LISTS + 2 * R
    for d in range(chart[ACTIVE] - rank):
        row, contact = chart[LISTS + rank + d], chart[LISTS + R + rank + d]
        for k in range(rank):
            j = chart[columns + k]
            w[at_g + k] = w[at_A + row * U + j]
            for i in range(tangent_count(o, contact) if contact >= 0 else 0):
                tangent = o.contact_rows[contact, 1] + i
                w[at_g + k] -= friction_ratio(o, contact, i) * w[at_A + tangent * U + j]
        _solve_transposed(w, at, rank, width, at_g)
        vector = at_open + d * R
        for r in range(R):
            w[vector + r] = 0.0
        w[vector + row] = 1.0
        for k in range(rank):
            w[vector + chart[LISTS + k]] = -w[at_g + k]
        for k in range(chart[ACTIVE]):
            contact = chart[LISTS + R + k]
            for i in range(tangent_count(o, contact) if contact >= 0 else 0):
                tangent = o.contact_rows[contact, 1] + i
                w[vector + tangent] = -friction_ratio(o, contact, i) * w[vector + chart[LISTS + k]]


@lean
def _take_smallest(o: Online) -> None:
    """Make the open forces orthogonal and take their part out of the multipliers, which leaves the least norm."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_multipliers, at_open = chart[AT_MULTIPLIERS], chart[AT_OPEN]
    R = o.sizes[tb.N_ROWS]
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


@lean
def _known_forces(o: Online, k: int) -> None:
    """Enter the forces of one contact that follow from its state: friction while it slides, a compressed pad."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_elastic, at_multipliers = chart[AT_ELASTIC], chart[AT_MULTIPLIERS]
    code, kind = o.states[k], o.contact_kind[k]
    normal, tangent = o.contact_rows[k, 0], o.contact_rows[k, 1]
    load = 1.0
    if kind == tb.COMPLIANT:
        w[at_multipliers + normal] = w[at_elastic + k]
        load = w[at_elastic + k]
    elif kind == tb.GAP:
        load = w[at_multipliers + normal]
    for i in range(tangent_count(o, k) if code >= tb.SLIDING else 0):
        w[at_multipliers + tangent + i] = -friction_ratio(o, k, i) * load


@lean
def _hidden_row(o: Online, k: int) -> int:
    """Return the row number of the k-th row hidden in the choice of speeds."""
    for r in range(o.sizes[tb.N_ROWS]):
        if o.row_role[r] == tb.KINEMATIC:
            if k == 0:
                return r
            k -= 1
    return -1
