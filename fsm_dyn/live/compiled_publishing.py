"""The compiled end of a tick: its row into the ring of shared memory, its times into the histograms."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.live import memory
from fsm_dyn.live.compiled_tick import ADVANCING, FAULT, GRIP, LIMITED, TICK, UNFINISHED
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import entry, lean

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_HEADER_ROWS: Final = memory.ROWS
_HEADER_PHASE: Final = memory.PHASE
_HEADER_FAULT: Final = memory.FAULT
_HEADER_LIMITED: Final = memory.LIMITED
_LAST_BIN: Final = memory.BINS - 1


class Ring(NamedTuple):
    """The parts of the shared block that every tick writes to."""

    header: Integers
    rows: Floats
    durations: Integers
    latenesses: Integers
    processor: Integers


RING: Final = Bundle(Ring, {"rows": 2})


class Finished(NamedTuple):
    """What is said of a tick beside what the stepper knows: see the index constants (int64)."""

    numbers: Integers


FINISHED: Final = Bundle(Finished)

# ``Finished.numbers``
NUMBER: Final = 0
WALL: Final = 1  # ns since the loop began
DURATION: Final = 2  # ns
LATENESS: Final = 3  # ns
PROCESSOR: Final = 4  # ns of the thread's processor time that the tick before took
STATUS: Final = 5
PHASE: Final = 6
TRANSITIONS: Final = 7
BUTTONS: Final = 8
FINISHED_COUNT: Final = 9


@lean
def bin_of(value: int) -> int:
    """Return the bin of a time (ns): sixteen to an octave, single below sixteen."""
    octave = 0
    while value >= 32:
        value >>= 1
        octave += 1
    if value < 16:
        return max(value, 0)
    return min(16 * (octave + 1) + (value & 15), _LAST_BIN)


_open_state = st.STATE.opener()
_open_tick = TICK.opener()
_open_ring = RING.opener()
_open_finished = FINISHED.opener()


@entry
def publish(state_at: int, tick_at: int, ring_at: int, finished_at: int) -> int:
    """Write the row of a tick (:mod:`fsm_dyn.live.rows`) into the ring, then count it; returns its number."""
    state, tick = _open_state(state_at), _open_tick(tick_at)
    ring, numbers = _open_ring(ring_at), _open_finished(finished_at).numbers
    header, counts = ring.header, tick.counts
    count = header[_HEADER_ROWS]
    slot = count % ring.rows.shape[0]
    row = ring.rows
    row[slot, 0] = numbers[NUMBER]
    row[slot, 1] = state.clock[st.TIME]
    row[slot, 2] = numbers[WALL] * 1e-9
    row[slot, 3] = numbers[DURATION] * 1e-9
    row[slot, 4] = numbers[LATENESS] * 1e-9
    row[slot, 5] = state.counters[st.MODE]
    row[slot, 6] = numbers[STATUS]
    row[slot, 7] = numbers[PHASE]
    row[slot, 8] = counts[FAULT]
    row[slot, 9] = counts[ADVANCING]
    row[slot, 10] = counts[UNFINISHED]
    row[slot, 11] = numbers[TRANSITIONS]
    row[slot, 12] = tick.numbers[GRIP]
    row[slot, 13] = numbers[BUTTONS]
    at = 14
    for i in range(tick.next.shape[0]):
        row[slot, at + i] = tick.next[i]
    at += tick.next.shape[0]
    for i in range(state.x.shape[0]):
        row[slot, at + i] = state.x[i]
    at += state.x.shape[0]
    for i in range(tick.device.shape[0]):
        row[slot, at + i] = tick.device[i]
    at += tick.device.shape[0]
    for i in range(tick.force.shape[0]):
        row[slot, at + i] = tick.force[i]
    at += tick.force.shape[0]
    for i in range(tick.ports.shape[0]):
        row[slot, at + i] = tick.ports[i]
    at += tick.ports.shape[0]
    last = row.shape[1] - at  # slip directions and memory end the context
    for i in range(last):
        row[slot, at + i] = state.c[state.c.shape[0] - last + i]
    ring.durations[bin_of(numbers[DURATION])] += 1
    ring.latenesses[bin_of(numbers[LATENESS])] += 1
    if numbers[PROCESSOR] > 0:
        ring.processor[bin_of(numbers[PROCESSOR])] += 1
    header[_HEADER_PHASE] = numbers[PHASE]
    header[_HEADER_FAULT] = counts[FAULT]
    header[_HEADER_LIMITED] = counts[LIMITED]
    header[_HEADER_ROWS] = count + 1
    return int(count)
