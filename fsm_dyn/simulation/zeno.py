"""Trains of impacts that come to an end in finite time.

When the same cycle of contacts strikes three times over with durations that shrink by a steady ratio ``r < 1``,
and the gaps between have become smaller than the tolerance, the remaining strokes add up to a geometric series:
the train ends ``d r / (1 - r)`` after the last stroke, ``d`` being the last duration.

Strokes of several contacts need not fall into a cycle, and trains may consist of trains.  When the last few have kept
within the tolerance all together, what is left of them takes about as long again.
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import guard_count
from fsm_dyn.simulation.state import State
from fsm_dyn.simulation.tables import Tables

LONGEST_CYCLE: Final = 4
_TOGETHER: Final = 8  # strokes that are looked at where there is no cycle
_STEADINESS: Final = 0.2  # how far two ratios in a row may differ, as a fraction of 1 - r


@lean
def _entry(state: State, back: int) -> int:
    return ((state.counters[st.HISTORY] - 1 - back) % st.RING) * st.RING_WIDTH


@lean
def remember_event(tables: Tables, state: State) -> bool:
    """Enter the event in the history; return whether a gap closes in it."""
    state.counters[st.HISTORY] += 1
    at = _entry(state, 0)
    most = tables.sizes[tb.MAX_GUARDS]
    sign = 1e9 * state.counters[st.MODE]
    speed = 0.0
    closes = False
    for k in range(state.counters[st.FIRED]):
        guard = state.fired[k]
        mark = tables.guard_event[guard] + 8.0 * tables.guard_contact[guard]
        sign += mark * mark
        if tables.guard_event[guard] == tb.CLOSES and tables.contact_kind[tables.guard_contact[guard]] == tb.GAP:
            closes = True
            speed = max(speed, -state.guards[4 * most + k])
    state.history[at + st.RING_TIME] = state.clock[st.TIME]
    state.history[at + st.RING_SIGN] = sign
    state.history[at + st.RING_SPEED] = speed
    state.history[at + st.RING_CONTACT] = tables.guard_contact[state.fired[0]] if closes else -1
    return closes


@lean
def train_length(state: State, gap: float) -> tuple[float, int]:
    """Return how long the train of impacts under way will go on (s), and how many strokes back its contacts are met.

    The length is negative where there is no such train or its apex is still above ``gap`` (m), the apex being
    estimated as that of a parabola with the last duration and the largest closing speed.  The number of strokes is
    that of the cycle, or more than any cycle has where there is none and the length is but a guess.
    """
    for cycle in range(1, LONGEST_CYCLE + 1):
        if state.counters[st.HISTORY] < 3 * cycle + 1:
            break
        same = True
        for i in range(2 * cycle + 1):
            one = state.history[_entry(state, i) + st.RING_SIGN]
            same = same and one == state.history[_entry(state, i + cycle) + st.RING_SIGN]
        if not same:
            continue
        t0 = state.history[_entry(state, 0) + st.RING_TIME]
        t1 = state.history[_entry(state, cycle) + st.RING_TIME]
        t2 = state.history[_entry(state, 2 * cycle) + st.RING_TIME]
        t3 = state.history[_entry(state, 3 * cycle) + st.RING_TIME]
        if not (t0 > t1 > t2 > t3):
            continue
        ratio = (t0 - t1) / (t1 - t2)
        before = (t1 - t2) / (t2 - t3)
        if ratio >= 1.0 or before >= 1.0 or abs(ratio - before) > _STEADINESS * (1.0 - max(ratio, before)):
            continue
        speed = _largest_speed(state, cycle)
        if speed > 0.0 and 0.25 * speed * (t0 - t1) < gap:
            return (t0 - t1) * ratio / (1.0 - ratio), cycle
    if state.counters[st.HISTORY] >= _TOGETHER:
        duration = state.history[_entry(state, 0) + st.RING_TIME]
        duration -= state.history[_entry(state, _TOGETHER - 1) + st.RING_TIME]
        if 0.25 * _largest_speed(state, _TOGETHER) * duration < gap:
            return duration, _TOGETHER
    return -1.0, 0


@lean
def _largest_speed(state: State, count: int) -> float:
    """Return the largest closing speed of the last events (m/s)."""
    speed = 0.0
    for i in range(count):
        speed = max(speed, state.history[_entry(state, i) + st.RING_SPEED])
    return speed


@lean
def add_cycle_guards(tables: Tables, state: State, cycle: int) -> None:
    """Add the guards of contacts that strike in the cycle and are near to the fired ones: they close together."""
    mode = state.counters[st.MODE]
    most = tables.sizes[tb.MAX_GUARDS]
    first = tables.mode_guard_start[mode]
    for i in range(cycle):
        contact = state.history[_entry(state, i) + st.RING_CONTACT]
        for j in range(guard_count(tables, mode)):
            if tables.guard_event[first + j] != tb.CLOSES or tables.guard_contact[first + j] != contact:
                continue
            known = state.guards[j] > tables.tolerances[tol.GAP]
            for k in range(state.counters[st.FIRED]):
                known = known or state.fired[k] == first + j
            if not known:
                k = state.counters[st.FIRED]
                state.fired[k] = first + j
                state.guards[3 * most + k] = state.guards[j]
                state.guards[4 * most + k] = state.guards[most + j]
                state.counters[st.FIRED] = k + 1


@lean
def _is_closed(tables: Tables, mode: int, contact: int) -> bool:
    """Tell whether a contact, or another of its corner with the same outline, is closed in a mode."""
    outline = tables.contact_outline[contact]
    for k in range(tables.sizes[tb.N_CONTACTS]):
        same = k == contact or (outline >= 0 and tables.contact_outline[k] == outline)
        if same and tables.mode_states[mode, k] != tb.FREE:
            return True
    return False


@lean
def cycle_is_closed(tables: Tables, state: State, mode: int) -> bool:
    """Tell whether all contacts that strike in the cycle are closed in a mode.

    If not, those still open have strokes of their own to make, and time must not be advanced over them.
    """
    for i in range(state.counters[st.CYCLE]):
        contact = int(state.history[_entry(state, i) + st.RING_CONTACT])
        if contact >= 0 and not _is_closed(tables, mode, contact):
            return False
    return True
