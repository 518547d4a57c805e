"""Compiled reading and writing of the driver ``udp`` (``runtime/udp.c``), for loops faster than 2 kHz.

It receives and sends the same datagrams on the socket of the driver, which is connected by then, so that only those of
the peer arrive.  A header is read as two integers and a float, in the memory layout of a little-endian machine.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.devices.wire import datagrams
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.paced_loop import CompiledIO
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import DropReason, UdpNumbers
from fsm_dyn.runtime.layouts import UdpLink
from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


REASONS: Final = tuple(reason.name.lower().replace("_", " ") for reason in DropReason)
_MAGICS: Final = (datagrams.SAMPLE, datagrams.FORCE)
_ROOM: Final = datagrams.LONGEST // 8 + 1  # words
_SECOND: Final = 1_000_000_000


class Link(UdpLink):
    """State of the connection, with what it counts; ``dropped`` counts by ``REASONS``."""

    def counted(self) -> tuple[int, int]:
        """Count a force that is sent otherwise; return its sequence number and that of the sample that it answers."""
        self.numbers[UdpNumbers.SENT] += 1
        return int(self.numbers[UdpNumbers.SENT]), int(self.numbers[UdpNumbers.SEQUENCE])

    def lost(self) -> Counter[str]:
        """Return what was dropped, by reasons."""
        return Counter({why: int(count) for why, count in zip(REASONS, self.dropped, strict=True) if count})


LINK: Final = Bundle(Link)


def new_link(
    descriptor: int, bandwidth: float, latest: Sample, heard: float, header: Integers
) -> tuple[Link, CompiledIO] | None:
    """Return the state of a connected socket with its reading and writing; None where unsupported.

    Parameters
    ----------
    descriptor : int
    bandwidth : float
        Of the filter of the velocity, Hz.
    latest : Sample
    heard : float
        When it came, s of the monotonic clock.
    header : int64 array
        The counters of the run.
    """
    axes = len(latest.position)
    if not library.has_pacing() or sys.byteorder != "little":
        return None
    words, numbers = np.zeros(_ROOM, np.int64), np.zeros(UdpNumbers.COUNT, np.int64)
    kinds = [int.from_bytes(magic + bytes([datagrams.VERSION, axes]), "little") for magic in _MAGICS]
    numbers[: UdpNumbers.FORCE + 1] = descriptor, datagrams.LONGEST + 1, *kinds
    numbers[[UdpNumbers.SEQUENCE, UdpNumbers.BUTTONS, UdpNumbers.HEARD]] = (
        latest.sequence,
        latest.buttons,
        int(heard * _SECOND),
    )
    link = Link(
        numbers,
        np.zeros(len(REASONS), np.int64),
        words,
        words.view(np.float64),
        np.array(latest.position, np.float64),
        np.array(latest.velocity, np.float64),
        np.array([latest.time, 2.0 * math.pi * bandwidth]),
        header,
    )
    packed = LINK.pack(link)
    read, write = library.address("fsm_udp_read"), library.address("fsm_udp_write")
    return link, CompiledIO(read, write, packed.address, (link, packed))
