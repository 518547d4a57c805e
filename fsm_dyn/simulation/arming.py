"""Which guards are armed at the start of a mode, and which fire at once.

A guard is *armed* where it counts as positive: it fires when it falls through zero.  It *waits* where it counts
as negative: it must first rise.  At zero the sign of its slope decides, except that a gap or a force which the
resolution left at zero stays armed, so that it cannot sink unnoticed.  Triggering is on ``(t0, t1]``, once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import resolution
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import indices, release
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import row_speed
from fsm_dyn.simulation.evaluation import guard_count
from fsm_dyn.simulation.faces import still, within_face
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.state import State, Work
from fsm_dyn.simulation.tables import TURNING, Tables
from fsm_dyn.simulation.terms import Terms, open_terms

Floats = NDArray[np.float64]

_IN_TURN: Final = 4  # decisions in one instant after which guards that fire in turn count as seen
_DEEP: Final = 100.0  # times the tolerance of a gap that an open corner is inside a polygon at most


@lean
def _just_fired(tables: Tables, state: State, guard: int) -> bool:
    """Tell whether this guard, or the same one of the mode before, is among those that fired."""
    for k in range(state.counters[st.FIRED]):
        other = state.fired[k]
        if (
            tables.guard_event[other] == tables.guard_event[guard]
            and tables.guard_contact[other] == tables.guard_contact[guard]
            and tables.guard_direction[other] == tables.guard_direction[guard]
        ):
            return True
    return False


@lean
def _slip_left(tables: Tables, state: State, guard: int, slope: float) -> float:
    """Return how much slip against its direction (m/s) a slip may have where it begins or reverses.

    Where that has been decided in this instant already, a slip that counts as none is none; bringing the other speeds
    that count as none to rest exactly, as the mode's rows do, may since have changed it by as much as those.
    """
    left = 2.0 * slope * tables.tolerances[tol.COINCIDENCE]
    in_space = tables.contact_flags[tables.guard_contact[guard]] & tb.IN_SPACE != 0
    if in_space or state.counters[st.INSTANT] >= _IN_TURN:
        left = max(left, TURNING * tables.tolerances[tol.SPEED])
    return left


@lean
def _always_outside(tables: Tables, contact: int) -> bool:
    """Whether an open contact's guard is never below zero: a gate may open late, a face have an end to go round."""
    flags = tables.contact_flags[contact]
    return bool(flags & tb.GATED == 0 and (flags & tb.LIMITED == 0 or tables.contact_outline[contact] >= 0))


@lean
def _is_met(tables: Tables, state: State, terms: Terms, j: int, guard: int) -> bool:
    """Whether a corner is at a face of its outline; the terms are those of the state at hand."""
    outline = tables.contact_outline[tables.guard_contact[guard]]
    for k in range(outline, tables.sizes[tb.N_CONTACTS]):
        gap = terms.residual[tables.contact_rows[k, 0]] if tables.contact_outline[k] == outline else np.inf
        if abs(gap) <= 4.0 * tables.tolerances[tol.GAP] and within_face(tables, terms, k):
            return True
    return False


@lean
def _has_outline(tables: Tables, guard: int) -> bool:
    """Whether a guard is that of a corner and all faces of a convex polygon."""
    return bool(tables.contact_outline[tables.guard_contact[guard]] >= 0)


@lean
def _still(tables: Tables) -> float:
    """Return the speed that counts as zero (m/s)."""
    return float(tables.tolerances[tol.SPEED])


@lean
def _largest_force(tables: Tables, work: Work, n_g: int, n: int) -> float:
    """Return the largest multiplier in the output of the full kernel (N or N m)."""
    largest = 0.0
    at = n + tables.sizes[tb.N_U] + 1 + 2 * n_g
    for r in range(tables.sizes[tb.N_ROWS]):
        largest = max(largest, abs(work.full_end[at + r]))
    return largest


@lean
def _at_corners(tables: Tables, state: State, terms: Terms, j: int, guard: int) -> tuple[float, float]:
    """Slope of an outline's guard near zero, where several faces may be equally far, and the depth it may start from.

    The largest of these gaps goes on as the one that grows most; where that one is flush it need not be exactly zero,
    nor where it has yet to become the largest.

    Returns
    -------
    slope : float
        m/s; what counts as no rate is zero.
    depth : float
        How far below zero it may begin (m).
    """
    most, small = tables.sizes[tb.MAX_GUARDS], tables.tolerances[tol.GAP]
    value, own = state.guards[j], state.guards[most + j]
    slope = own
    outline = tables.contact_outline[tables.guard_contact[guard]]
    u = state.x[tables.sizes[tb.N_Q] :]
    for k in range(outline, tables.sizes[tb.N_CONTACTS]):
        row = tables.contact_rows[k, 0]
        near = tables.contact_outline[k] == outline and terms.residual[row] >= value - 2.0 * small
        if near and terms.aspect[k] >= -small:
            rate = row_speed(terms, row, u)
            slope = max(slope, 0.0 if abs(rate) <= still(tables, terms, k) else rate)
    return slope, 2.0 * small if slope == 0.0 or slope > 0.0 > own else 0.0


@lean
def arm(tables: Tables, state: State, work: Work) -> int:
    """Set status and tolerance of every guard of the mode just entered.

    Returns
    -------
    int
        How many guards are below zero already and fire at once; they are in ``state.fired``.
    """
    mode = state.counters[st.MODE]
    n_g = guard_count(tables, mode)
    first = tables.mode_guard_start[mode]
    most = tables.sizes[tb.MAX_GUARDS]
    graze = tables.tolerances[tol.GRAZE]
    # a mode may begin with no force at all, where others have just cancelled; their rounding is there all the same
    largest = max(_largest_force(tables, work, n_g, state.x.shape[0]), 0.5 * state.clock[st.FORCE])
    state.clock[st.FORCE] = largest
    force = tables.tolerances[tol.MULTIPLIER] * largest
    release(work, (0, 0))
    terms, fresh = open_terms(work.addresses[0]), False
    below, now = indices(work, n_g), 0
    for j in range(n_g):
        event = tables.guard_event[first + j]
        value = state.guards[j]
        slope, depth = state.guards[most + j], 0.0
        tolerance = graze
        yields = event == tb.OPENS and tables.contact_kind[tables.guard_contact[first + j]] == tb.COMPLIANT
        if (event == tb.OPENS or event == tb.SLIDES) and not yields:  # what yields opens by its depth, not its force
            tolerance = graze + force
            if event == tb.SLIDES and tables.contact_flags[tables.guard_contact[first + j]] & tb.IN_SPACE:
                tolerance *= tolerance + largest  # the guard is a difference of squares
        state.guards[2 * most + j] = tolerance
        status = st.ARMED
        if event == tb.CLOSES and abs(value) <= 20.0 * tables.tolerances[tol.GAP] and _has_outline(tables, first + j):
            if not fresh:
                call_kernel(tables.terms[0], state.clock[st.TIME], state.x, state.c, terms.whole)
                fresh = True
            slope, depth = _at_corners(tables, state, terms, j, first + j)
            state.guards[most + j], state.guards[2 * most + j] = slope, graze + depth
        if event == tb.CLOSES or event == tb.WRITTEN:
            zero = tolerance
            fired = _just_fired(tables, state, first + j)
            if fired:
                zero = tolerance + 2.0 * abs(slope) * tables.tolerances[tol.COINCIDENCE]
            plain = event == tb.CLOSES and _always_outside(tables, tables.guard_contact[first + j])
            if fired and _has_outline(tables, first + j) and not _is_met(tables, state, terms, j, first + j):
                plain = False  # it passes beside all faces
            if event == tb.CLOSES and work.implied[tables.guard_contact[first + j]] == 1:
                # two others keep this gap: it is zero up to what counts as flush
                state.guards[2 * most + j] = max(tolerance, 2.0 * tables.tolerances[tol.GAP])
            elif plain and (zero if fired else 0.0) >= value >= -tables.tolerances[tol.GAP]:
                # never out of sight: it fires, or where it is now counts as its zero
                seen = fired or state.counters[st.INSTANT] >= _IN_TURN
                if seen and work.notes[resolution.CHANGED] == 0:
                    # it was seen and changes nothing, as at the end of a face that is held: not again at once
                    depth = 2.0 * tables.tolerances[tol.GAP]
                elif slope < -tables.tolerances[tol.SPEED]:
                    below[now] = first + j
                    now += 1
                state.guards[2 * most + j] = graze + max(depth, -value)
            elif value < -zero or (value <= zero and slope < 0.0 and (fired or event == tb.WRITTEN)):
                status = st.WAITING
        elif event == tb.STICKS and slope > 0.0 and -_slip_left(tables, state, first + j, slope) < value < 0.0:
            status = st.WAITING  # the slip begins here, or reverses: the instant is known to its accuracy only
        elif event == tb.LEAVES and 0.0 > value >= -2.0 * tables.tolerances[tol.GAP] and slope >= -_still(tables):
            # at the end of its face, as exactly as that is known: it comes in from there, or stays
            status = st.WAITING if slope > _still(tables) else st.ARMED
            state.guards[2 * most + j] = graze - value
        elif value < -tolerance:
            below[now] = first + j
            now += 1
        state.armed[j] = status
    for k in range(now):
        state.fired[k] = below[k]
        state.guards[3 * most + k] = state.guards[state.fired[k] - first]
        state.guards[4 * most + k] = state.guards[most + state.fired[k] - first]
    state.counters[st.FIRED] = now
    return now


@lean
def arm_positive(tables: Tables, state: State) -> None:
    """Arm the guards that are above zero at the state at hand, and let the others wait."""
    most = tables.sizes[tb.MAX_GUARDS]
    for j in range(guard_count(tables, state.counters[st.MODE])):
        state.guards[2 * most + j] = tables.tolerances[tol.GRAZE]
        state.armed[j] = st.ARMED if state.guards[j] > 0.0 else st.WAITING


@lean
def rearm(tables: Tables, state: State) -> bool:
    """Arm the waiting guards that have risen above zero by the end of a step; return whether one is far below.

    That of a corner and all faces of a convex polygon is below zero only where the corner is inside: whatever was
    decided there, two bodies overlap.
    """
    values, below = start_of(state.guards), False
    zeros = shifted(values, 2 * tables.sizes[tb.MAX_GUARDS])
    for j in range(guard_count(tables, state.counters[st.MODE])):
        if values[j] > zeros[j]:
            state.armed[j] = st.ARMED
        else:
            below = True
    return below and _is_inside(tables, state)


@lean
def _is_inside(tables: Tables, state: State) -> bool:
    """Whether a corner that waits to come out of a convex polygon is far inside."""
    first = tables.mode_guard_start[state.counters[st.MODE]]
    for j in range(guard_count(tables, state.counters[st.MODE])):
        if state.guards[j] < -_DEEP * tables.tolerances[tol.GAP] and state.armed[j] == st.WAITING:
            contact = tables.guard_contact[first + j]
            closes = tables.guard_event[first + j] == tb.CLOSES and tables.contact_kind[contact] == tb.GAP
            if closes and _has_outline(tables, first + j) and _always_outside(tables, contact):
                return True
    return False
