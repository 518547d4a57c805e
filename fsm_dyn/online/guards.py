"""Guards of a mode embedded on line: values from the terms and multipliers, slopes where the terms give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.modes.guards import SET_BACK
from fsm_dyn.online.context import (
    ACTIVE,
    AT_ASPECT,
    AT_B,
    AT_FIRM,
    AT_GAMMA,
    AT_MULTIPLIERS,
    AT_OPEN,
    AT_REACH,
    AT_REACH_RATE,
    AT_RESIDUAL,
    AT_STATIC,
    AT_U_DOT,
    AT_WHEN,
    AT_X,
    CONDITION,
    FIRMNESS,
    FRICTION_CIRCLE,
    FRICTION_LIMIT,
    GAP,
    LARGEST_GAP,
    MEETING,
    NORMAL_FORCE,
    RANK,
    REACH,
    SLIP,
    Online,
)
from fsm_dyn.online.slip import ahead, product_with_row
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.arena import mark, matrix, release, vector
from fsm_dyn.simulation.bundles import start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.feasibility import widest_margin

Floats = NDArray[np.float64]


@lean
def guard_values(o: Online, c: Floats, out: Floats, at: int) -> None:
    """Write the values of all guards from ``out[at]`` on; forces and the state are in the workspace.

    Where rows repeat each other the circle of friction in space is asked of the forces of smallest norm, and the
    other laws of forces shared out by :func:`_share_open_forces`.
    """
    chart, count = start_of(o.chart), o.guard_quantity.shape[0]
    for g in range(count):
        out[at + g] = _guard_value(o, c, g)
    if chart[ACTIVE] > chart[RANK]:
        _share_open_forces(o, c)
        for g in range(count):
            if _is_law(o, g):
                out[at + g] = _guard_value(o, c, g)


@lean
def _guard_value(o: Online, c: Floats, guard: int) -> float:
    """Return the value of one guard."""
    chart, w = start_of(o.chart), start_of(o.room)
    what, k, sign = o.guard_quantity[guard], o.guard_subject[guard], o.guard_sign[guard]
    if what == CONDITION:
        return sign * w[chart[AT_WHEN] + k]
    if what == REACH:
        return w[chart[AT_REACH] + k]
    if what == FIRMNESS:
        return w[chart[AT_FIRM] + k]
    normal, tangent = o.contact_rows[k, 0], o.contact_rows[k, 1]
    if what == GAP:
        return sign * w[chart[AT_RESIDUAL] + normal]
    if what == LARGEST_GAP:
        return _gap_to_face(o, _farthest(o, k))
    if what == MEETING:
        return max(w[chart[AT_RESIDUAL] + normal], -w[chart[AT_FIRM] + k])
    if what == NORMAL_FORCE:
        return sign * w[chart[AT_MULTIPLIERS] + normal]
    if what == SLIP:
        return ahead(o, c, k, chart[AT_X] + o.sizes[tb.N_Q], chart[AT_B])
    bound = w[chart[AT_STATIC] + k]
    if normal >= 0:
        load = w[chart[AT_MULTIPLIERS] + normal]
        bound *= abs(load) if o.contact_flags[k] & tb.TWO_SIDED else load
    if what == FRICTION_CIRCLE:
        first, second = w[chart[AT_MULTIPLIERS] + tangent], w[chart[AT_MULTIPLIERS] + tangent + 1]
        return bound * bound - first * first - second * second
    return bound + sign * w[chart[AT_MULTIPLIERS] + tangent]


@lean
def _farthest(o: Online, k: int) -> int:
    """Return which face of the outline of contact ``k`` its corner is farthest from."""
    best, largest = k, _gap_to_face(o, k)
    for j in range(k + 1, o.contact_outline.shape[0]):
        if o.contact_outline[j] == o.contact_outline[k]:
            gap = _gap_to_face(o, j)
            if gap > largest:
                best, largest = j, gap
    return best


@lean
def _gap_to_face(o: Online, k: int) -> float:
    """Return the gap to one of several faces, a little less where a neighbour of the corner lies behind it."""
    chart, w = start_of(o.chart), start_of(o.room)
    return w[chart[AT_RESIDUAL] + o.contact_rows[k, 0]] + SET_BACK * min(w[chart[AT_ASPECT] + k], 0.0)


@lean
def has_exact_slope(o: Online, guard: int) -> bool:
    """Whether the terms give a guard's slope."""
    what = o.guard_quantity[guard]
    return what == GAP or what == LARGEST_GAP or what == REACH or what == SLIP


@lean
def exact_slope(o: Online, c: Floats, guard: int) -> float:
    """Return the slope of a guard that the terms give themselves."""
    chart, w = start_of(o.chart), start_of(o.room)
    what, k = o.guard_quantity[guard], o.guard_subject[guard]
    if what == REACH:
        return w[chart[AT_REACH_RATE] + k]
    if what == GAP or what == LARGEST_GAP:
        face = _farthest(o, k) if what == LARGEST_GAP else k
        speed = product_with_row(o, o.contact_rows[face, 0], chart[AT_X] + o.sizes[tb.N_Q], chart[AT_B])
        return o.guard_sign[guard] * speed
    return ahead(o, c, k, chart[AT_U_DOT], chart[AT_GAMMA])


@lean
def _share_open_forces(o: Online, c: Floats) -> None:
    """Choose the forces left open so that the laws of the contacts are kept with the widest margin.

    The margin reaches zero where no shares are left that keep every law, and the laws at their limits are then those
    that contacts can only keep together (docs/theory.md, "On-line embedding").
    """
    chart, w = start_of(o.chart), start_of(o.room)
    at_multipliers, at_open = chart[AT_MULTIPLIERS], chart[AT_OPEN]
    R, count = o.sizes[tb.N_ROWS], chart[ACTIVE] - chart[RANK]
    laws, scale = 0, 0.0
    for guard in range(o.guard_quantity.shape[0]):
        laws += 1 if _is_law(o, guard) else 0
    for r in range(R):
        scale = max(scale, abs(w[at_multipliers + r]))
    if laws == 0 or scale == 0.0:
        return
    before = mark(o)
    along, slack, law = matrix(o, laws, count), vector(o, laws), 0
    for guard in range(o.guard_quantity.shape[0]):
        if not _is_law(o, guard):
            continue
        slack[law] = _guard_value(o, c, guard)
        for d in range(count):
            along[law, d] = _along(o, guard, at_open + d * R)
        law += 1
    _, shares = widest_margin(o, along, slack, scale)
    for d in range(count):
        for r in range(R):
            w[at_multipliers + r] += shares[d] * w[at_open + d * R + r]
    release(o, before)


@lean
def _is_law(o: Online, guard: int) -> bool:
    """Whether a guard is a law that forces keep."""
    return o.guard_quantity[guard] == NORMAL_FORCE or o.guard_quantity[guard] == FRICTION_LIMIT


@lean
def _along(o: Online, guard: int, forces: int) -> float:
    """Return how a law changes with the forces at ``forces`` in the workspace."""
    w, k = start_of(o.room), o.guard_subject[guard]
    normal, tangent = o.contact_rows[k, 0], o.contact_rows[k, 1]
    if o.guard_quantity[guard] == NORMAL_FORCE:
        return o.guard_sign[guard] * w[forces + normal]
    change = o.guard_sign[guard] * w[forces + tangent]
    if normal >= 0 and o.contact_kind[k] == tb.GAP and o.contact_flags[k] & tb.TWO_SIDED == 0:
        change += w[o.chart[AT_STATIC] + k] * w[forces + normal]
    return change
