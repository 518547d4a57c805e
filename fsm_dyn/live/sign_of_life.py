"""The owner's sign of life: a thread of his own that counts on in shared memory, until his process ends or is stopped.

Where the system has a sleep that compiled code can call, the thread never takes the interpreter's lock: a derivation,
or a cell of a notebook that keeps the interpreter busy, is no death.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from numba import types
from numpy.typing import NDArray

from fsm_dyn.live import memory
from fsm_dyn.live.compiled_calls import call_with
from fsm_dyn.live.compiled_pacing import clocks
from fsm_dyn.simulation.compiled import entry

Integers = NDArray[np.int64]

INTERVAL: Final = 0.02  # s
_BEATS: Final = memory.OWNER_BEATS
_WORDS: Final = types.Array(types.int64, 1, "C")


@entry
def _beat_on(header: Integers, ends: Integers, sleep: int, words: Integers) -> int:
    """Count until ``ends`` is set; ``sleep`` is the address of clock_nanosleep, ``words`` are its arguments."""
    while ends[0] == 0:
        header[_BEATS] += 1
        call_with(sleep, words)
    return 0


class SignOfLife:
    """Counts in a header of shared memory until it is stopped.

    Parameters
    ----------
    header : int64 array
        Of the block that tick process and owner share.
    """

    def __init__(self, header: Integers) -> None:
        self._header = header
        self._ends = np.zeros(1, np.int64)
        self._stopped = threading.Event()
        found = clocks()
        target: Any = self._beat
        arguments: tuple[Any, ...] = ()
        if found is not None:
            self._time = np.array([0, int(INTERVAL * 1e9)], np.int64)
            words = np.array([1, 0, self._time.ctypes.data, 0], np.int64)  # the monotonic clock, for so long
            _beat_on.compile((_WORDS, _WORDS, types.int64, _WORDS))  # type: ignore[attr-defined]
            target, arguments = _beat_on, (header, self._ends, found[1], words)
        self._thread = threading.Thread(target=target, args=arguments, name="sign of life", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._header[_BEATS] += 1

    def stop(self) -> None:
        """End it; may be called again."""
        self._ends[0] = 1
        self._stopped.set()
        self._thread.join()
