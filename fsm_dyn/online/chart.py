"""Which rows of an active set are independent, and which speeds they make dependent.

Asked when a mode is first evaluated in a run and when its pivot sounds the alarm.  Rows are scaled by
``diag(M)^-1/2`` and normalised, so that the answer does not depend on units.  Rank and rows by pivoted
orthogonalisation (QR); dependent speeds by a pivoted QR of the columns, of rows held and rows of forces at once,
because both are divided by; their order by complete pivoting (docs/theory.md, "On-line embedding").
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.online.context import (
    ACTIVE,
    AT_A,
    AT_H,
    AT_M,
    AT_Q,
    AT_Q_DOT,
    AT_X,
    BUSY,
    CHOICES,
    CHOSEN,
    LEVEL,
    LISTS,
    MOTION,
    PUSHES,
    RANK,
    ROWS,
    SLIDES,
    Online,
)
from fsm_dyn.online.embedding import force_rows, swap
from fsm_dyn.online.slip import find_slip_directions, tangent_count
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.kernels import call_kernel_at

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEPENDENT: Final = 1e-9  # what is left of a unit row that is a combination of others
VANISHED: Final = 1e-13  # a row this much smaller than the largest holds nothing
CLEARLY: Final = 1.0 + 1e-6  # how much larger a later candidate must be: ties go by order, whatever the rounding


@lean
def _swap(chart: Integers, i: int, j: int) -> None:
    kept = chart[i]
    chart[i] = chart[j]
    chart[j] = kept


@lean
def list_rows(o: Online) -> None:
    """List the rows that a mode holds, constraints first, and mark the normals of sliding contacts."""
    chart = start_of(o.chart)
    R = o.sizes[tb.N_ROWS]
    count = 0
    chart[SLIDES], chart[PUSHES], chart[BUSY] = 0, 0, 0
    for r in range(R):
        if o.row_role[r] == tb.ALWAYS or o.row_role[r] == tb.ALWAYS_POSITION:
            chart[LISTS + count], chart[LISTS + R + count] = r, -1
            count += 1
    for k in range(o.sizes[tb.N_CONTACTS]):
        code, kind = o.states[k], o.contact_kind[k]
        if code == tb.FREE:
            continue
        normal, tangent = o.contact_rows[k, 0], o.contact_rows[k, 1]
        chart[LISTS + 2 * R + o.sizes[tb.N_U] + chart[BUSY]] = k
        chart[BUSY] += 1
        if kind == tb.DRY_FRICTION or kind == tb.COMPLIANT:
            chart[PUSHES] = 1
        if normal >= 0 and kind != tb.COMPLIANT:
            slides = code >= tb.SLIDING and tangent >= 0
            chart[LISTS + count], chart[LISTS + R + count] = normal, k if slides else -1
            if slides:
                chart[SLIDES] = 1
            count += 1
        for i in range(tangent_count(o, k) if code == tb.HELD else 0):
            chart[LISTS + count], chart[LISTS + R + count] = tangent + i, -1
            count += 1
    chart[ACTIVE] = count
    chart[RANK] = count
    for j in range(o.sizes[tb.N_U]):
        chart[LISTS + 2 * R + j] = j


@lean
def _normalise(w: Floats, at: int, count: int, U: int) -> None:
    """Scale rows to unit length; rows that vanish beside the others become zero."""
    largest = 0.0
    for k in range(count):
        largest = max(largest, _square(w, at + k * U, U, 1))
    for k in range(count):
        norm = _square(w, at + k * U, U, 1)
        factor = 1.0 / np.sqrt(norm) if norm > VANISHED * VANISHED * largest else 0.0
        for j in range(U):
            w[at + k * U + j] *= factor


@lean
def _square(w: Floats, at: int, count: int, stride: int) -> float:
    total = 0.0
    for j in range(count):
        total += w[at + j * stride] * w[at + j * stride]
    return total


@lean
def _remove(w: Floats, at: int, pivot: int, count: int, stride: int) -> None:
    """Take out of the vector at ``at`` its part along the unit vector at ``pivot``."""
    product = 0.0
    for j in range(count):
        product += w[at + j * stride] * w[pivot + j * stride]
    for j in range(count):
        w[at + j * stride] -= product * w[pivot + j * stride]


@lean
def _choose_rows(chart: Integers, w: Floats, Q: int, U: int, R: int) -> None:
    """Bring independent rows to the front and count them."""
    count = chart[ACTIVE]
    for k in range(count):
        best, size = k, 0.0
        for i in range(k, count):
            norm = _square(w, Q + i * U, U, 1)
            if norm > size * CLEARLY:
                best, size = i, norm
        if not size > DEPENDENT * DEPENDENT:
            chart[RANK] = k
            return
        _swap(chart, LISTS + k, LISTS + best)
        _swap(chart, LISTS + R + k, LISTS + R + best)
        factor = 1.0 / np.sqrt(size)
        for j in range(U):
            swap(w, Q + k * U + j, Q + best * U + j)
            w[Q + k * U + j] *= factor
        for i in range(k + 1, count):
            _remove(w, Q + i * U, Q + k * U, U, 1)
    chart[RANK] = count


@lean
def _choose_columns(chart: Integers, w: Floats, A: int, H: int, U: int, columns: int) -> None:
    """Bring the dependent speeds to the front: columns that stay independent of each other in both matrices."""
    rank = chart[RANK]
    for k in range(rank):
        best, size = k, 0.0
        for both in range(2):  # where nothing serves both, the rows held decide
            for j in range(k, U):
                norm = _square(w, A + j, rank, U)
                if both == 0:
                    norm = min(norm, _square(w, H + j, rank, U))
                if norm > size * CLEARLY:
                    best, size = j, norm
            if size > DEPENDENT * DEPENDENT:
                break
        _swap(chart, columns + k, columns + best)
        for matrix in (A, H):
            for i in range(rank):
                swap(w, matrix + i * U + k, matrix + i * U + best)
            norm = np.sqrt(_square(w, matrix + k, rank, U))
            if norm > 0.0:
                for i in range(rank):
                    w[matrix + i * U + k] /= norm
                for j in range(k + 1, U):
                    _remove(w, matrix + j, matrix + k, rank, U)


@lean
def _order(chart: Integers, w: Floats, A: int, H: int, U: int, R: int) -> None:
    """Order rows and dependent speeds for elimination without further pivoting, by complete pivoting on both."""
    rank = chart[RANK]
    columns = LISTS + 2 * R
    for k in range(rank):
        row, column, size = k, k, 0.0
        for i in range(k, rank):
            for j in range(k, rank):
                entry = min(abs(w[A + i * U + j]), abs(w[H + i * U + j]))
                if entry > size * CLEARLY:
                    row, column, size = i, j, entry
        _swap(chart, LISTS + k, LISTS + row)
        _swap(chart, LISTS + R + k, LISTS + R + row)
        _swap(chart, columns + k, columns + column)
        for matrix in (A, H):
            for j in range(rank):
                swap(w, matrix + k * U + j, matrix + row * U + j)
            for i in range(rank):
                swap(w, matrix + i * U + k, matrix + i * U + column)
            pivot = w[matrix + k * U + k]
            if pivot == 0.0:
                continue
            for i in range(k + 1, rank):
                factor = w[matrix + i * U + k] / pivot
                for j in range(k, rank):
                    w[matrix + i * U + j] -= factor * w[matrix + k * U + j]


@lean
def _scaled_rows(o: Online, count: int, A: int, H: int) -> None:
    """Write the first rows listed, and the rows of their forces, scaled and normalised."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_M = chart[AT_A], chart[AT_M]
    U, R = o.sizes[tb.N_U], o.sizes[tb.N_ROWS]
    columns = LISTS + 2 * R
    rank = chart[RANK]
    chart[RANK] = count
    force_rows(o, H)
    chart[RANK] = rank
    for k in range(count):
        row = at_A + chart[LISTS + k] * U
        for j in range(U):
            inertia = w[at_M + chart[columns + j] * (U + 1)]
            scale = 1.0 / np.sqrt(inertia) if inertia > 0.0 else 1.0
            w[A + k * U + j] = w[row + chart[columns + j]] * scale
            w[H + k * U + j] *= scale
    _normalise(w, A, count, U)
    _normalise(w, H, count, U)


@lean
def choose_chart(o: Online, t: float, x: Floats, c: Floats) -> None:
    """Choose the chart of a mode at a state; it holds until the mode is left or its pivot sounds the alarm."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_A, at_q_dot, at_x, at_H = chart[AT_A], chart[AT_Q_DOT], chart[AT_X], chart[AT_H]
    at_Q = chart[AT_Q]
    n_q, U, R = o.sizes[tb.N_Q], o.sizes[tb.N_U], o.sizes[tb.N_ROWS]
    chart[CHOSEN] = 1
    chart[CHOICES] += 1
    o.alarm[LEVEL] = 0.0
    list_rows(o)
    if chart[ACTIVE] == 0:
        return
    for i in range(n_q + U):
        w[at_x + i] = x[i]
    call_kernel_at(o.programs[ROWS], t, shifted(w, at_x), c, w, at_A)
    call_kernel_at(o.programs[MOTION], t, shifted(w, at_x), c, w, at_q_dot)
    find_slip_directions(o, c)
    _scaled_rows(o, chart[ACTIVE], at_Q, at_H)
    _choose_rows(chart, w, at_Q, U, R)
    _scaled_rows(o, chart[RANK], at_Q, at_H)
    _choose_columns(chart, w, at_Q, at_H, U, LISTS + 2 * R)
    _scaled_rows(o, chart[RANK], at_Q, at_H)
    _order(chart, w, at_Q, at_H, U, R)
    _sort_rest(chart, LISTS + 2 * R, chart[RANK], U)


@lean
def _sort_rest(chart: Integers, columns: int, first: int, last: int) -> None:
    """Put the independent speeds in the order of the model."""
    for i in range(first + 1, last):
        for j in range(i, first, -1):
            if chart[columns + j - 1] <= chart[columns + j]:
                break
            _swap(chart, columns + j - 1, columns + j)
