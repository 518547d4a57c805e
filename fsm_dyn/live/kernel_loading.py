"""Loading kernels that a deriver sends, outside the ticks: by a thread of the tick process."""

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

# below the ticks; but whoever else wants the processor must not keep this thread from giving the interpreter back
_PRIORITY: Final = 10
Arrived = tuple[tuple[int, ...], OwnKernels]


class Receiver:
    """Reads machine code from a pipe and loads it; waiting, reading and loading leave the interpreter to the ticks.

    Parameters
    ----------
    pipe : int
        Descriptor that :mod:`fsm_dyn.live.derivation_process` writes to the other end of; closed by this.
    privileges : bool
        Whether to ask for real-time scheduling.

    Attributes
    ----------
    arrived : deque
        Contact states and kernels, to be taken by the ticks; None when the deriver has ended.
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
    """Read what was sent for one mode and load it; None at the end."""
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
