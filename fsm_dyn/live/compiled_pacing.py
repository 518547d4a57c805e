"""The whole loop in compiled code, for drivers whose reading and writing is compiled too: faster than 2 kHz.

In Python a tick costs some ten microseconds beside the one compiled call, and the interpreter may hold it up for longer
than a fast tick lasts.  Here a tick sleeps until its deadline, reads, advances, writes and counts without the
interpreter; it returns to Python where something has to be seen to, and goes on from there.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live import memory
from fsm_dyn.live.compiled_calls import call_with
from fsm_dyn.live.compiled_loop import go_through
from fsm_dyn.live.compiled_publishing import RING
from fsm_dyn.live.compiled_tick import TICK
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import entry, lean

Integers = NDArray[np.int64]

# ``Pace.numbers``
READ: Final = 0  # addresses of the driver's functions
WRITE: Final = 1
CLOCK: Final = 2  # of clock_gettime and clock_nanosleep
SLEEP: Final = 3
PERIOD: Final = 4  # ns; 0: as fast as it goes
BEGAN: Final = 5  # ns of the monotonic clock
DEADLINE: Final = 6
WOKE: Final = 7
BEFORE: Final = 8  # ns of the thread's time, when the tick began
DURATION: Final = 9  # ns of the tick before
SPENT: Final = 10
LATE: Final = 11  # ns that the tick ended after the next deadline, 0 if not
MAIL: Final = 12  # messages taken
WATCHED: Final = 13  # the tick from which on its end is looked for
PASSES: Final = 14  # 1: the next tick is not the last, whatever was asked
NUMBER_COUNT: Final = 15

# why the loop comes back to Python
ENDS: Final = 1  # somebody has to say whether the run is over
MAIL_CAME: Final = 2
PENDS: Final = 3  # a command has waited until the grip is open
WANTS: Final = 4  # the tick cannot go on without a mode, a chart or room
LOOK: Final = 5  # something happened in the tick, or it ended late
READ_FAILED: Final = 6
WRITE_FAILED: Final = 7
BREATHES: Final = 8  # not paced: whoever records may be behind

_STOPPING: Final = memory.STOPPING
_MAIL: Final = memory.MAIL
_ZEROED: Final = memory.ZEROED
_UNPACED: Final = 64  # ticks between breaths
_MONOTONIC: Final = 1
_THREAD: Final = 3
_ABSOLUTE: Final = 1
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True)
class CompiledIO:
    """Reading and writing of a device as functions in the calling convention of C.

    Attributes
    ----------
    read : int
        Address of ``int64_t read(void *data, double *sample)``, which fills in the positions, the velocities (m, m/s or
        rad, rad/s), the sequence number and the buttons of the latest sample, and returns at once: 0, or what failed.
    write : int
        Address of ``int64_t write(void *data, const double *force)`` (N or N m per axis).
    data : int
        Handed to both.
    kept : object
        What must stay alive meanwhile.
    """

    read: int
    write: int
    data: int
    kept: object = None


class Pace(NamedTuple):
    """What the loop works on beside the tick.

    ``numbers`` see the index constants; ``sample`` is what a driver fills in, shape (2 n_d + 2,); ``reading writing
    asking sleeping`` are arguments of calls; ``time`` is room for a time.
    """

    numbers: Integers
    sample: NDArray[np.float64]
    reading: Integers
    writing: Integers
    asking: Integers
    sleeping: Integers
    time: Integers


PACE: Final = Bundle(Pace)
_open_tick = TICK.opener()
_open_ring = RING.opener()
_open_pace = PACE.opener()


def clocks() -> tuple[int, int] | None:
    """Return the addresses of clock_gettime and clock_nanosleep, None where the system has no such sleep."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    try:
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _CLOCKS]
    except AttributeError:
        return None
    return (int(found[0] or 0), int(found[1] or 0)) if all(found) else None


_CLOCKS: Final = ("clock_gettime", "clock_nanosleep")


def new_pace(io: CompiledIO, tick: ct.Tick, period: int, watched: int) -> tuple[Pace, Any]:
    """Return what the loop works on, for a driver and a tick of ``period`` ns, and its bundle."""
    found = clocks()
    if found is None:
        raise OSError("this system cannot sleep until a deadline")
    pace, packed = PACE.allocate(NUMBER_COUNT, len(tick.device) + 2, 4, 4, 4, 4, 2)
    numbers = pace.numbers
    numbers[[READ, WRITE, CLOCK, SLEEP]] = io.read, io.write, *found
    numbers[[PERIOD, DURATION, SPENT, WATCHED]] = period, -1, -1, min(watched, 2**62)
    pace.reading[:2] = io.data, pace.sample.ctypes.data
    pace.writing[:2] = io.data, tick.force.ctypes.data
    pace.asking[:2] = _MONOTONIC, pace.time.ctypes.data
    pace.sleeping[:] = _MONOTONIC, _ABSOLUTE, pace.time.ctypes.data, 0
    return pace, packed


@lean
def _now(pace: Pace, clock: int) -> int:
    """Return a clock's time, ns."""
    pace.asking[0] = clock
    call_with(pace.numbers[CLOCK], pace.asking)
    return int(pace.time[0] * _SECOND + pace.time[1])


@lean
def _sleep_until(pace: Pace, deadline: int) -> int:
    """Sleep until a time of the monotonic clock (ns); return the time then."""
    now = _now(pace, _MONOTONIC)
    while now < deadline:
        pace.time[0], pace.time[1] = deadline // _SECOND, deadline % _SECOND
        call_with(pace.numbers[SLEEP], pace.sleeping)
        now = _now(pace, _MONOTONIC)
    return now


@lean
def _end_tick(pace: Pace) -> None:
    """Count the time that the tick took, and set the next deadline; time lost is lost."""
    n = pace.numbers
    n[SPENT] = _now(pace, _THREAD) - n[BEFORE]
    done = _now(pace, _MONOTONIC)
    n[DURATION] = done - n[WOKE]
    n[DEADLINE] += n[PERIOD]
    n[LATE] = 0
    if n[PERIOD] != 0 and done > n[DEADLINE]:
        n[LATE] = done - n[DEADLINE]
        n[DEADLINE] = done


@entry
def end_tick(pace_at: int) -> None:
    """End a tick that Python has finished."""
    _end_tick(_open_pace(pace_at))


@entry
def run_ticks(tick_at: int, pace_at: int) -> int:
    """Tick until something has to be seen to; return what (``ENDS`` and so on).  The arguments are addresses."""
    tick, pace = _open_tick(tick_at), _open_pace(pace_at)
    header, n, counts = _open_ring(tick.places[ct.RING]).header, pace.numbers, tick.counts
    n_d = tick.device.shape[0]  # positions and velocities
    while True:
        if (counts[ct.TICKS] >= n[WATCHED] or header[_STOPPING] != 0) and n[PASSES] == 0:
            return ENDS
        n[WOKE] = _sleep_until(pace, n[DEADLINE]) if n[PERIOD] != 0 else _now(pace, _MONOTONIC)
        if n[PERIOD] == 0:
            n[DEADLINE] = n[WOKE]
        n[BEFORE] = _now(pace, _THREAD)
        if header[_MAIL] != n[MAIL]:
            return MAIL_CAME
        if counts[ct.WAITING] != 0 and (tick.numbers[ct.GRIP] == 0.0 or counts[ct.PHASE] != ct.RUNNING):
            return PENDS
        n[PASSES] = 0
        if call_with(n[READ], pace.reading) != 0:
            return READ_FAILED
        for i in range(n_d):
            tick.device[i] = pace.sample[i]
        sequence, buttons = int(pace.sample[n_d]), int(pace.sample[n_d + 1])
        found = go_through(tick, sequence, buttons, n[WOKE] - n[BEGAN], n[WOKE] - n[DEADLINE], n[DURATION], n[SPENT])
        if found == ct.WANTS:
            return WANTS
        if header[_ZEROED] != counts[ct.ZEROED]:  # the guard has seen that no tick came: nothing old is shown
            for i in range(tick.force.shape[0]):
                tick.force[i] = 0.0
        if call_with(n[WRITE], pace.writing) != 0:
            return WRITE_FAILED
        _end_tick(pace)
        if found != 0 or n[LATE] != 0:
            return LOOK
        if n[PERIOD] == 0 and counts[ct.TICKS] % _UNPACED == 0:
            return BREATHES


def load() -> None:
    """Have compiled, or read from disk, what the loop calls."""
    words = (types.int64, types.int64)
    run_ticks.compile(words)  # type: ignore[attr-defined]
    end_tick.compile(words[:1])  # type: ignore[attr-defined]
