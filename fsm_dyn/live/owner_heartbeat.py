"""Owner heartbeat: a thread of the owner's process that increases a counter in shared memory.

If the runtime can sleep (``runtime/pacing.c``), the thread never takes the interpreter lock: a derivation, or a
notebook cell that keeps the interpreter busy, does not stop the heartbeat.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import LiveHeader

Integers = NDArray[np.int64]

INTERVAL: Final = 0.02  # s
_BEATS: Final = LiveHeader.OWNER_BEATS


class SignOfLife:
    """Heartbeat thread: increases a counter in the header of shared memory until it is stopped.

    Parameters
    ----------
    header : int64 array
        Header of the block that tick process and owner share.
    """

    def __init__(self, header: Integers) -> None:
        self._header = header
        self._ends = np.zeros(1, np.int64)
        self._stopped = threading.Event()
        target: Any = self._beat
        arguments: tuple[Any, ...] = ()
        if library.has_pacing():
            beats = header.ctypes.data + header.itemsize * _BEATS
            target, arguments = library.function("fsm_beat_on"), (beats, self._ends.ctypes.data, int(INTERVAL * 1e9))
        self._thread = threading.Thread(target=target, args=arguments, name="owner heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._header[_BEATS] += 1

    def stop(self) -> None:
        """Stop the thread; may be called again."""
        self._ends[0] = 1
        self._stopped.set()
        self._thread.join()
