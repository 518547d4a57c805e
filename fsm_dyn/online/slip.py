"""Slip of the contacts of a mode embedded on line, and the friction forces against it.

In the plane the slip direction is a sign of the discrete state.  In space it follows the slip, and is the one kept in
the discrete state where there is hardly any (docs/theory.md, "Friction in space"); either way its components stand in
the workspace at ``AT_WAY`` while a state is worked on.
"""

from __future__ import annotations

import numpy as np

from fsm_dyn.modes.system import FOLLOWS
from fsm_dyn.online.context import AT_A, AT_B, AT_KINETIC, AT_WAY, AT_X, BUSY, LISTS, Floats, Online
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.contexts import sigma_at


@lean
def product_with_row(o: Online, row: int, vector: int, constant: int) -> float:
    """Return a row times the vector of speeds or accelerations at ``vector``, plus its entry of ``constant``."""
    w, U = start_of(o.room), o.sizes[tb.N_U]
    at = o.chart[AT_A] + row * U
    total = w[constant + row]
    for j in range(U):
        total += w[at + j] * w[vector + j]
    return total


@lean
def tangent_count(o: Online, k: int) -> int:
    """Return how many rows a contact slips along: none, one, or in space two."""
    if o.contact_rows[k, 1] < 0:
        return 0
    return 2 if o.contact_flags[k] & tb.IN_SPACE else 1


@lean
def ahead(o: Online, c: Floats, k: int, vector: int, constant: int) -> float:
    """Return the slip of a contact along the direction kept in the discrete state; or its rate, of accelerations."""
    s, row = o.sizes, o.contact_rows[k, 1]
    sigma = c[sigma_at(s) + k]
    first = product_with_row(o, row, vector, constant)
    if tangent_count(o, k) == 1:
        return sigma * first
    return float(np.cos(sigma) * first + np.sin(sigma) * product_with_row(o, row + 1, vector, constant))


@lean
def find_slip_directions(o: Online, c: Floats) -> None:
    """Write the slip directions of all sliding contacts, at the state ``AT_X`` whose rows are in the workspace."""
    chart, w, s = start_of(o.chart), start_of(o.room), o.sizes
    for b in range(chart[BUSY]):
        k = chart[LISTS + 2 * s[tb.N_ROWS] + s[tb.N_U] + b]
        count = tangent_count(o, k)
        if o.states[k] < tb.SLIDING or count == 0:
            continue
        at, sigma = chart[AT_WAY] + 2 * k, c[sigma_at(s) + k]
        w[at] = sigma
        if count == 2:
            speeds, row = chart[AT_X] + s[tb.N_Q], o.contact_rows[k, 1]
            first = product_with_row(o, row, speeds, chart[AT_B])
            second = product_with_row(o, row + 1, speeds, chart[AT_B])
            w[at], w[at + 1] = np.cos(sigma), np.sin(sigma)
            if w[at] * first + w[at + 1] * second > FOLLOWS:
                speed = np.sqrt(first * first + second * second)
                w[at], w[at + 1] = first / speed, second / speed


@lean
def friction_ratio(o: Online, k: int, i: int) -> float:
    """Return the friction of a sliding contact per unit of normal force, along tangent row ``i`` of it; signed."""
    chart, w = start_of(o.chart), start_of(o.room)
    ratio = w[chart[AT_KINETIC] + k] * w[chart[AT_WAY] + 2 * k + i]
    return -ratio if o.states[k] == tb.SLIDING_UNDER else ratio
