"""The whole loop in the runtime (``runtime/pacing.c``), for drivers whose reading and writing is compiled too.

In Python a tick costs some ten microseconds beside the one compiled call, and the interpreter may hold it up for longer
than a fast tick lasts.  Here a tick sleeps until its deadline, reads, advances, writes and counts without the
interpreter; it returns to Python where something has to be seen to, and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.live import tick_data as ct
from fsm_dyn.simulation.array_structs import Bundle

Integers = NDArray[np.int64]

# ``Pace.numbers``
READ: Final = 0  # addresses of the driver's functions, and what is handed to both
WRITE: Final = 1
DATA: Final = 2
PERIOD: Final = 3  # ns; 0: as fast as it goes
BEGAN: Final = 4  # ns of the monotonic clock
DEADLINE: Final = 5
WOKE: Final = 6
BEFORE: Final = 7  # ns of the thread's time, when the tick began
DURATION: Final = 8  # ns of the tick before
SPENT: Final = 9
LATE: Final = 10  # ns that the tick ended after the next deadline, 0 if not
MAIL: Final = 11  # messages taken
WATCHED: Final = 12  # the tick from which on its end is looked for
PASSES: Final = 13  # 1: the next tick is not the last, whatever was asked
NUMBER_COUNT: Final = 14

# why the loop comes back to Python
ENDS: Final = 1  # somebody has to say whether the run is over
MAIL_CAME: Final = 2
PENDS: Final = 3  # a command has waited until the grip is open
WANTS: Final = 4  # the tick cannot go on without a mode, a chart or room
LOOK: Final = 5  # something happened in the tick, or it ended late
READ_FAILED: Final = 6
WRITE_FAILED: Final = 7
BREATHES: Final = 8  # not paced: whoever records may be behind


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

    ``numbers`` see the index constants; ``sample`` is what a driver fills in, shape (2 n_d + 2,).
    """

    numbers: Integers
    sample: NDArray[np.float64]


PACE: Final = Bundle(Pace)


def new_pace(io: CompiledIO, tick: ct.Tick, period: int, watched: int) -> tuple[Pace, Any]:
    """Return what the loop works on, for a driver and a tick of ``period`` ns, and its bundle."""
    pace, packed = PACE.allocate(NUMBER_COUNT, len(tick.device) + 2)
    pace.numbers[[READ, WRITE, DATA]] = io.read, io.write, io.data
    pace.numbers[[PERIOD, DURATION, SPENT, WATCHED]] = period, -1, -1, min(watched, 2**62)
    return pace, packed
