"""Kernel loading in a thread of the tick process, for modes from the derivation process."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import IO, Final

from fsm_dyn.live.mode_pool import OwnKernels
from fsm_dyn.programs.kernels import link

# below the ticks, above normal processes: a preempted thread that holds the interpreter lock would delay a tick
_PRIORITY: Final = 10
Arrived = tuple[tuple[int, ...], OwnKernels]


class Receiver:
    """Thread that reads machine code from a pipe and loads it, without the interpreter lock.

    Parameters
    ----------
    pipe : int
        Descriptor of the pipe from :mod:`fsm_dyn.live.derivation_process`; closed by this thread.
    privileges : bool
        Whether to ask for real-time scheduling.

    Attributes
    ----------
    arrived : deque
        Contact states and kernels for the ticks; None after the end of the derivation process.
    wake : callable
        Called after each arrival.
    """

    def __init__(self, pipe: int, privileges: bool) -> None:
        self.arrived: deque[Arrived | None] = deque()
        self.wake: Callable[[], None] = lambda: None
        self._privileges = privileges
        self._file = os.fdopen(pipe, "rb")
        threading.Thread(target=self._run, name="receiver", daemon=True).start()

    def _run(self) -> None:
        with self._file as file:
            if self._privileges:  # of this thread alone
                with contextlib.suppress(OSError, AttributeError):
                    os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(_PRIORITY))
            while (found := received(file)) is not None:
                self.arrived.append(found)
                self.wake()
        self.arrived.append(None)
        self.wake()


def received(file: IO[bytes]) -> Arrived | None:
    """Read and load the kernels of one mode; None at the end of the pipe.

    Parameters
    ----------
    file : IO[bytes]
        The pipe from the deriver.

    Returns
    -------
    Arrived or None
    """
    line = file.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    addresses: list[int] = []
    libraries = []
    for size, names in head["parts"]:
        code = file.read(size)
        library = link(code, names) if len(code) == size else None
        if library is None:
            return None
        libraries.append(library)
        addresses += [int(library[name]) for name in names]
    rhs, full = addresses
    return tuple(head["states"]), OwnKernels(rhs, full, libraries)
