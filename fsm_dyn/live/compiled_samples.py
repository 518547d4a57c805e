"""What a device says is examined before anything follows from it.

A sample is rejected where a number in it is none, its position lies outside the workspace or its velocity beyond the
limit, or where the position is farther from that of the sample taken last than the velocity limit allows in the time
between them, whatever velocity comes with it; a device that shows no force may jump.  A rejected sample counts as none:
the one taken last stands, and ``STALL_TICKS`` go on.  More than ``OUTLIERS`` in succession are a fault, which the last
of them names.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fsm_dyn.live.compiled_tick import (
    FAULT,
    FAULTY,
    JUMPED,
    LOOK,
    MAY_JUMP,
    NONE,
    NOT_A_NUMBER,
    OUT_OF_WORKSPACE,
    OUTLIERS,
    PERIOD,
    PHASE,
    REJECTED,
    REJECTED_EVER,
    RUNNING,
    SEEN,
    SEQUENCE,
    STALL_TICKS,
    STALLED,
    TAKEN,
    TAKEN_TICK,
    TAKEN_WALL,
    TICKS,
    TOO_FAST,
    TURNING_LIMIT,
    UNCHANGED,
    VELOCITY_LIMIT,
    WALL,
    Tick,
)
from fsm_dyn.simulation.compiled import lean

_NANOSECOND: Final = 1e-9


@lean
def fail(tick: Tick, fault: int) -> None:
    """Let go, until a person clears the fault."""
    tick.counts[FAULT] = fault
    tick.counts[PHASE] = FAULTY
    tick.counts[LOOK] = 1


@lean
def take_sample(tick: Tick) -> None:
    """Take the sample that was read, or leave the one before where it is none that can be taken."""
    counts = tick.counts
    fresh = counts[SEQUENCE] != counts[SEEN]
    counts[SEEN] = counts[SEQUENCE]
    wrong = _examine(tick) if fresh else NONE
    if fresh and wrong == NONE:
        counts[UNCHANGED] = counts[REJECTED] = 0
        counts[TAKEN], counts[TAKEN_WALL], counts[TAKEN_TICK] = 1, counts[WALL], counts[TICKS]
        for i in range(tick.device.shape[0]):
            tick.taken[i] = tick.device[i]
        return
    for i in range(tick.device.shape[0]):
        tick.device[i] = tick.taken[i]
    counts[UNCHANGED] += 1
    if wrong != NONE:
        counts[REJECTED] += 1
        counts[REJECTED_EVER] += 1
        counts[LOOK] = 1
    if counts[PHASE] != RUNNING:
        return
    if counts[REJECTED] > counts[OUTLIERS] and wrong != NONE:
        fail(tick, wrong)
    elif counts[UNCHANGED] > counts[STALL_TICKS]:
        fail(tick, STALLED)


@lean
def _examine(tick: Tick) -> int:
    """Return the fault that a sample shows, ``NONE`` where it can be taken."""
    n_d = tick.force.shape[0]
    for i in range(n_d):
        if not (np.isfinite(tick.device[i]) and np.isfinite(tick.device[n_d + i])):
            return NOT_A_NUMBER
    for i in range(n_d):
        if tick.device[i] < tick.low[i] or tick.device[i] > tick.high[i]:
            return OUT_OF_WORKSPACE
    if _too_fast(tick, False, 1.0):
        return TOO_FAST
    if tick.counts[TAKEN] != 0 and tick.counts[MAY_JUMP] == 0 and _too_fast(tick, True, _time_since(tick)):
        return JUMPED
    return NONE


@lean
def _time_since(tick: Tick) -> float:
    """Return the time since a sample was taken last, by the clock or by the ticks where that is more, s."""
    by_clock = _NANOSECOND * (tick.counts[WALL] - tick.counts[TAKEN_WALL])
    return float(max(by_clock, (tick.counts[TICKS] - tick.counts[TAKEN_TICK]) * tick.numbers[PERIOD]))


@lean
def _too_fast(tick: Tick, jump: bool, time: float) -> bool:
    """Whether a sample's velocity or, for a ``jump``, its way in a time (s) is beyond the limits."""
    n_d = tick.force.shape[0]
    straight, turning = 0.0, 0.0
    for i in range(n_d):
        way = tick.device[i] - tick.taken[i] if jump else tick.device[n_d + i]
        if abs(way) > time * tick.fastest[i]:
            return True
        if tick.turns[i] != 0:
            turning += way * way
        else:
            straight += way * way
    limit, limit_turning = time * tick.numbers[VELOCITY_LIMIT], time * tick.numbers[TURNING_LIMIT]
    return bool(straight > limit * limit or turning > limit_turning * limit_turning)
