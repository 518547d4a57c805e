"""Real-time scheduling, and the loop paced by the runtime."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np

from fsm_dyn.core.arrays import Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.run.structures import Bundle
from fsm_dyn.runtime.abi import PaceNumbers
from fsm_dyn.runtime.layouts import Pace, Tick

# -- Paced loop in the runtime (``runtime/pacing.c``), for drivers with compiled reading and writing ---------
#
# A tick in Python costs some 10 us besides the compiled call, and the interpreter may delay it by more than a short
# period. The compiled loop sleeps until the deadline, reads, advances, writes and counts without the interpreter; it
# returns to Python with a reason when something must be handled, and is then called again.


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

    ``io``: reads and writes the device; ``tick``, ct.Tick; ``watched``: number of the first tick with a check for the
    end of the run.
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


# -- Real-time scheduling ------------------------------------------------------------------------------------
#
# Real-time scheduling: privileges granted by the system, waiting for deadlines, percentiles of latency.

_PR_SET_TIMERSLACK: Final = 29
_MCL_CURRENT_AND_FUTURE: Final = 3
_MCL_ON_FAULT: Final = 4  # lock pages only when they are first touched
_PRIORITY: Final = 50
_SLICE: Final = 100_000  # ns
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # the number of sched_getattr is the next
_HIGH_PRIORITY: Final = 0x80


def clock_of(system: str) -> Callable[[], int]:
    """Return the monotonic clock (ns) for deadlines; on Windows ``time.monotonic_ns`` has steps of 16 ms."""
    return time.perf_counter_ns if system == "win32" else time.monotonic_ns


clock: Final = clock_of(sys.platform)
_SUB: Final = 16  # bins per octave: a percentile is known to 6 %


def ask_for_privileges() -> list[str]:
    """Request real-time privileges for low wake-up latency; return one text for each, granted or not."""
    gc.collect()
    gc.freeze()
    gc.disable()
    told = ["garbage collection: off"]
    told.append(_attempt("SCHED_FIFO", _fifo))
    if sys.platform == "linux" and not told[-1].endswith(": granted"):
        told.append(_attempt(f"time slices of {1e-6 * _SLICE:g} ms", _short_slices))
    told.append(_attempt("locked memory", _lock_memory))
    told.append(_attempt("timer slack 1 ns", _timer_slack))
    if sys.platform == "win32":
        told.append(_attempt("high priority", _windows_priority))
        told.append(_attempt("timer of 1 ms", _windows_timer))
    return told


def _attempt(name: str, action: object) -> str:
    try:
        action()  # type: ignore[operator]
    except (OSError, AttributeError, ValueError) as error:
        return f"{name}: not granted ({error})"
    return f"{name}: granted"


def _fifo() -> None:
    if not hasattr(os, "sched_setscheduler"):
        raise OSError("not on this system")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))


class _Scheduling(ctypes.Structure):
    """Argument ``sched_attr`` of the system calls of the same names, see sched_setattr(2)."""

    _fields_: ClassVar = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),  # of SCHED_OTHER: length of a time slice, ns
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    ]


def _short_slices() -> None:
    """Shorten the time slices: a thread that wakes takes the processor from one with longer slices (Linux 6.12).

    Needs no privilege. The kernel's answer is read back, as older kernels ignore the request.
    """
    setter = _SCHED_SETATTR.get(platform.machine())
    if setter is None:
        raise OSError("not on this system")
    size = ctypes.sizeof(_Scheduling)
    asked = _Scheduling(size, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, _SLICE, 0, 0)
    found, library = _Scheduling(), _library()
    refused = library.syscall(setter, 0, ctypes.byref(asked), 0) or library.syscall(
        setter + 1, 0, ctypes.byref(found), size, 0
    )
    if refused:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if found.runtime != _SLICE:
        raise OSError("not by this kernel")


def _library() -> ctypes.CDLL:
    if not sys.platform.startswith("linux"):
        raise OSError("not on this system")
    return ctypes.CDLL(None, use_errno=True)


def _lock_memory() -> None:
    if not any(_library().mlockall(_MCL_CURRENT_AND_FUTURE | more) == 0 for more in (_MCL_ON_FAULT, 0)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _timer_slack() -> None:
    if _library().prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _windows_priority() -> None:
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    if not kernel.SetPriorityClass(kernel.GetCurrentProcess(), _HIGH_PRIORITY):
        raise OSError("refused")


def _windows_timer() -> None:
    if ctypes.windll.winmm.timeBeginPeriod(1) != 0:  # type: ignore[attr-defined]
        raise OSError("refused")


def wait_until(deadline: int) -> int:
    """Sleep until ``deadline`` (ns of :data:`clock`); return the time of wake-up."""
    now = clock()
    while now < deadline:
        time.sleep((deadline - now) * 1e-9)
        now = clock()
    return now


def bin_upper_edge(number: int) -> int:
    """Return the upper end (ns) of a bin of :func:`fsm_dyn.live.tick_process.bin_of`."""
    if number < _SUB:
        return number
    octave = number // _SUB - 1
    return ((_SUB + number % _SUB + 1) << octave) - 1


def percentiles(counts: Integers) -> dict[str, float]:
    """Return p50, p99, p99.9 and the maximum of a histogram, s; all NaN if it is empty."""
    total = int(counts.sum())
    names = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "worst": 1.0}
    if total == 0:
        return dict.fromkeys(names, float("nan"))
    reached = np.cumsum(counts)
    return {
        name: bin_upper_edge(int(np.searchsorted(reached, max(1, np.ceil(part * total))))) * 1e-9
        for name, part in names.items()
    }
