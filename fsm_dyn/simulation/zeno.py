"""Trains of impacts that come to an end in finite time.

When the same cycle of contacts strikes three times over with durations that shrink by a steady ratio ``r < 1``,
and the gaps between have become smaller than the tolerance, the remaining strokes add up to a geometric series:
the train ends ``d r / (1 - r)`` after the last stroke, ``d`` being the last duration.
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import guard_count
from fsm_dyn.simulation.state import State
from fsm_dyn.simulation.tables import Tables

_LONGEST_CYCLE: Final = 4
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
    """Return how long the train of impacts under way will go on (s), and the length of its cycle.

    The length is negative where there is no such train or its apex is still above ``gap`` (m), the apex being
    estimated as that of a parabola with the last duration and the largest closing speed.
    """
    for cycle in range(1, _LONGEST_CYCLE + 1):
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
        speed = 0.0
        for i in range(cycle):
            speed = max(speed, state.history[_entry(state, i) + st.RING_SPEED])
        if speed > 0.0 and 0.25 * speed * (t0 - t1) < gap:
            return (t0 - t1) * ratio / (1.0 - ratio), cycle
    return -1.0, 0


@lean
def add_cycle_guards(tables: Tables, state: State, cycle: int) -> None:
    """Add the guards of all contacts that strike in the cycle to the fired ones, so that all close together."""
    mode = state.counters[st.MODE]
    most = tables.sizes[tb.MAX_GUARDS]
    first = tables.mode_guard_start[mode]
    for i in range(cycle):
        contact = state.history[_entry(state, i) + st.RING_CONTACT]
        for j in range(guard_count(tables, mode)):
            if tables.guard_event[first + j] != tb.CLOSES or tables.guard_contact[first + j] != contact:
                continue
            known = False
            for k in range(state.counters[st.FIRED]):
                known = known or state.fired[k] == first + j
            if not known:
                k = state.counters[st.FIRED]
                state.fired[k] = first + j
                state.guards[3 * most + k] = state.guards[j]
                state.guards[4 * most + k] = state.guards[most + j]
                state.counters[st.FIRED] = k + 1


@lean
def cycle_is_closed(tables: Tables, state: State, mode: int) -> bool:
    """Tell whether all contacts that strike in the cycle are closed in a mode.

    If not, those still open have strokes of their own to make, and time must not be advanced over them.
    """
    for i in range(state.counters[st.CYCLE]):
        contact = int(state.history[_entry(state, i) + st.RING_CONTACT])
        if contact >= 0 and tables.mode_states[mode, contact] == tb.FREE:
            return False
    return True
