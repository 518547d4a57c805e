"""Paced loop in the runtime (``runtime/pacing.c``), for drivers with compiled reading and writing.

A tick in Python costs some 10 us besides the compiled call, and the interpreter may delay it by more than a short
period.  The compiled loop sleeps until the deadline, reads, advances, writes and counts without the interpreter; it
returns to Python with a reason when something must be handled, and is then called again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import PaceNumbers
from fsm_dyn.runtime.layouts import Pace, Tick
from fsm_dyn.simulation.array_structs import Bundle

Integers = NDArray[np.int64]


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


PACE: Final = Bundle(Pace)


def new_pace(io: CompiledIO, tick: Tick, period: int, watched: int) -> tuple[Pace, Any]:
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
    pace, packed = PACE.allocate(PaceNumbers.COUNT, len(tick.device) + 3)
    pace.numbers[[PaceNumbers.READ, PaceNumbers.WRITE, PaceNumbers.DATA]] = io.read, io.write, io.data
    pace.numbers[
        [
            PaceNumbers.PERIOD,
            PaceNumbers.EXECUTION_TIME,
            PaceNumbers.CPU_TIME,
            PaceNumbers.END_CHECK_FROM,
        ]
    ] = period, -1, -1, min(watched, 2**62)
    return pace, packed
