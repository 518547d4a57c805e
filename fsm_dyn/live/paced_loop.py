"""Paced loop in the runtime (``runtime/pacing.c``), for drivers with compiled reading and writing.

A tick in Python costs some 10 us besides the compiled call, and the interpreter may delay it by more than a short
period.  The compiled loop sleeps until the deadline, reads, advances, writes and counts without the interpreter; it
returns to Python with a reason when something must be handled, and is then called again.
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
READ: Final = 0  # addresses of the driver's functions and of their data
WRITE: Final = 1
DATA: Final = 2
PERIOD: Final = 3  # ns; 0: not paced
START: Final = 4  # ns of the monotonic clock
DEADLINE: Final = 5
EXECUTION_TIME: Final = 8  # ns of the tick before
CPU_TIME: Final = 9
OVERRUN: Final = 10  # ns that the tick ended after the next deadline, 0 if not
COMMANDS_READ: Final = 11  # messages taken
END_CHECK_FROM: Final = 12  # the tick from which on the end of the run is checked
MUST_RUN: Final = 13  # 1: the next tick runs in any case
NUMBER_COUNT: Final = 14

# why the loop returns to Python
CHECK_END: Final = 1  # Python has to decide whether the run is over
COMMANDS_ARRIVED: Final = 2
COMMAND_PENDING: Final = 3  # a command waits and the device is disengaged
SUPPLY_NEEDED: Final = 4  # the tick needs a mode, a chart or room in a buffer
ATTENTION_NEEDED: Final = 5  # an event in the tick, or an overrun
READ_FAILED: Final = 6
WRITE_FAILED: Final = 7
RECORDER_CHECK: Final = 8  # not paced: the recorder may be behind


@dataclass(frozen=True)
class CompiledIO:
    """Compiled input and output of a device: functions with the calling convention of C.

    Attributes
    ----------
    read : int
        Address of ``int64_t read(void *data, double *sample)``, which fills in the positions, the velocities (m, m/s or
        rad, rad/s), the sequence number, the buttons and the time (s, by the device's clock) of the latest sample, and
        never waits: returns 0 or an error.
    write : int
        Address of ``int64_t write(void *data, const double *force)`` (N or N m per axis).
    data : int
        Address passed to both functions.
    kept : object
        Owner of the memory behind the addresses.
    """

    read: int
    write: int
    data: int
    kept: object = None


class Pace(NamedTuple):
    """Data of the loop besides those of the tick.

    ``numbers``: see the index constants; ``sample``: written by the driver, shape (2 n_d + 3,).
    """

    numbers: Integers
    sample: NDArray[np.float64]


PACE: Final = Bundle(Pace)


def new_pace(io: CompiledIO, tick: ct.Tick, period: int, watched: int) -> tuple[Pace, Any]:
    """Return the data of the loop, for a driver and a tick of ``period`` ns, and their bundle.

    Parameters
    ----------
    io : CompiledIO
        Reads and writes the device.
    tick : ct.Tick
        What a tick does.
    period : int
        Of a tick, ns.
    watched : int
        Number of the tick from which the end of the run is looked for.
    """
    pace, packed = PACE.allocate(NUMBER_COUNT, len(tick.device) + 3)
    pace.numbers[[READ, WRITE, DATA]] = io.read, io.write, io.data
    pace.numbers[[PERIOD, EXECUTION_TIME, CPU_TIME, END_CHECK_FROM]] = period, -1, -1, min(watched, 2**62)
    return pace, packed
