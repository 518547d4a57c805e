"""The compiled end of a tick: its row into the ring of shared memory, its times into the histograms."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live import memory
from fsm_dyn.live.compiled_tick import Tick
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.state import Buffers, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BEATS: Final = memory.BEATS
_GUARD_BEATS: Final = memory.GUARD_BEATS
_ROWS: Final = memory.ROWS
_TRANSITIONS: Final = memory.TRANSITIONS
_PHASE: Final = memory.PHASE
_FAULT: Final = memory.FAULT
_LIMITED: Final = memory.LIMITED
_LEAK: Final = memory.LEAK
_TAKEN_BACK: Final = memory.TAKEN_BACK
_WATCHED: Final = memory.WATCHED
_LEAK_OPENING: Final = memory.LEAK_OPENING
_OWNER_BEATS: Final = memory.OWNER_BEATS
_ZEROED: Final = memory.ZEROED
_REJECTED: Final = memory.REJECTED
_RELEASES: Final = memory.RELEASES
_SATURATIONS: Final = memory.SATURATIONS
_FADED: Final = memory.FADED
_BEHIND: Final = memory.BEHIND
_LAST_BIN: Final = memory.BINS - 1


class Ring(NamedTuple):
    """The parts of the shared block that every tick writes to."""

    header: Integers
    rows: Floats
    records: Floats
    durations: Integers
    latenesses: Integers
    processor: Integers


RING: Final = Bundle(Ring, {"rows": 2, "records": 2})


@lean
def bin_of(value: int) -> int:
    """Return the bin of a time (ns): sixteen to an octave, single below sixteen."""
    octave = 0
    while value >= 32:
        value >>= 1
        octave += 1
    if value < 16:
        return max(value, 0)
    return int(min(16 * (octave + 1) + (value & 15), _LAST_BIN))


@lean
def beat(ring: Ring, counts: Integers, since: int) -> int:
    """Give a sign of life, ``since`` ns after the one before; return for how long the guard has given none, ns."""
    ring.header[_BEATS] += 1
    beats, patience = ring.header[_GUARD_BEATS], counts[ct.GUARD_PATIENCE]
    # whoever was held up himself has seen nothing meanwhile
    if beats != counts[ct.GUARD_BEATS] or 2 * since > patience:
        counts[ct.GUARD_BEATS] = beats
        counts[ct.GUARD_SEEN] = counts[ct.WALL]
    return int(counts[ct.WALL] - counts[ct.GUARD_SEEN]) if patience != 0 else 0


@lean
def look_at_owner(ring: Ring, counts: Integers, since: int) -> None:
    """See whether the owner still gives signs of life, ``since`` ns after having looked before."""
    beats, patience = ring.header[_OWNER_BEATS], counts[ct.OWNER_PATIENCE]
    if beats != counts[ct.OWNER_BEATS] or 2 * since > patience:
        counts[ct.OWNER_BEATS] = beats
        counts[ct.OWNER_SEEN] = counts[ct.WALL]
    silent = patience != 0 and counts[ct.WALL] - counts[ct.OWNER_SEEN] > patience
    if silent != counts[ct.OWNER_SILENT]:
        counts[ct.OWNER_SILENT] = silent
        counts[ct.LOOK] = 1


@lean
def was_zeroed(ring: Ring, counts: Integers) -> bool:
    """Whether the guard has shown a force of zero since this was asked last."""
    zeroed = ring.header[_ZEROED] != counts[ct.ZEROED]
    counts[ct.ZEROED] = ring.header[_ZEROED]
    return bool(zeroed)


@lean
def _append(row: Floats, slot: int, at: int, values: Floats) -> int:
    for i in range(values.shape[0]):
        row[slot, at + i] = values[i]
    return int(at + values.shape[0])


@lean
def publish(state: State, tick: Tick, ring: Ring, buffers: Buffers) -> None:
    """Write the row of a tick (:mod:`fsm_dyn.live.rows`) and its transitions into their rings, then count them."""
    header, counts = ring.header, tick.counts
    count = header[_ROWS]
    slot = count % ring.rows.shape[0]
    row = ring.rows
    row[slot, 0] = counts[ct.TICKS]
    row[slot, 1] = state.clock[st.TIME]
    row[slot, 2] = counts[ct.WALL] * 1e-9
    row[slot, 3] = max(counts[ct.DURATION], 0) * 1e-9
    row[slot, 4] = counts[ct.LATENESS] * 1e-9
    row[slot, 5] = state.counters[st.MODE]
    row[slot, 6] = counts[ct.STATUS]
    row[slot, 7] = counts[ct.PHASE]
    row[slot, 8] = counts[ct.FAULT]
    row[slot, 9] = counts[ct.ADVANCING]
    row[slot, 10] = counts[ct.UNFINISHED]
    row[slot, 11] = counts[ct.TRANSITIONS]
    row[slot, 12] = tick.numbers[ct.GRIP]
    row[slot, 13] = counts[ct.BUTTONS]
    at = _append(row, slot, 14, tick.next)
    at = _append(row, slot, at, state.x)
    at = _append(row, slot, at, tick.device)
    at = _append(row, slot, at, tick.force)
    at = _append(row, slot, at, tick.ports)
    last = row.shape[1] - at - tick.motion_next.shape[0]  # slip directions and memory: before the third rates
    from_c = state.c.shape[0] - tick.next.shape[0] - last
    for i in range(last):
        row[slot, at + i] = state.c[from_c + i]
    _append(row, slot, at + last, tick.motion_next)
    if counts[ct.ADVANCING] != 0:
        put_records(ring, buffers, counts[ct.TICKS], state.counters[st.TRANSITIONS])
    ring.latenesses[bin_of(counts[ct.LATENESS])] += 1
    if counts[ct.DURATION] >= 0:
        ring.durations[bin_of(counts[ct.DURATION])] += 1
        ring.processor[bin_of(counts[ct.PROCESSOR])] += 1
    header[_PHASE] = counts[ct.PHASE]
    header[_FAULT] = counts[ct.FAULT]
    header[_LIMITED] = counts[ct.LIMITED]
    header[_REJECTED] = counts[ct.REJECTED_EVER]
    header[_RELEASES] = counts[ct.RELEASES]
    header[_SATURATIONS] = counts[ct.SATURATIONS]
    header[_FADED] = counts[ct.FADED]
    header[_BEHIND] = counts[ct.BEHIND]
    if counts[ct.PASSIVITY] != ct.OFF:
        header[_WATCHED] = counts[ct.PASSIVITY]
        header[_LEAK] = int(1e9 * tick.numbers[ct.LEAK])
        header[_LEAK_OPENING] = int(1e9 * tick.numbers[ct.LEAK_OPENING])
        header[_TAKEN_BACK] = int(1e9 * tick.numbers[ct.TAKEN_BACK])
    header[_ROWS] = count + 1


@lean
def put_records(ring: Ring, buffers: Buffers, number: int, made: int) -> None:
    """Append the records of the transitions of a tick, with its number in front, to their ring."""
    for k in range(made):
        count = ring.header[_TRANSITIONS]
        slot = count % ring.records.shape[0]
        ring.records[slot, 0] = number
        for i in range(buffers.transitions.shape[1]):
            ring.records[slot, 1 + i] = buffers.transitions[k, i]
        ring.header[_TRANSITIONS] = count + 1
