"""Reading and writing of the driver ``udp`` in compiled code, for loops faster than 2 kHz; see :mod:`.datagrams`.

It takes and sends the datagrams that the driver would, on its socket, which is connected by then: others' do not come
here.  A header is looked at as two whole numbers and a float, as it stands in the memory of a little-endian machine.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections import Counter
from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fsm_dyn.devices.wire import datagrams
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live import memory
from fsm_dyn.live.compiled_calls import call_with
from fsm_dyn.live.compiled_pacing import CompiledIO, clocks
from fsm_dyn.live.device import Sample
from fsm_dyn.simulation.bundles import Bundle, pointer_at
from fsm_dyn.simulation.compiled import address, lean, routine

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# ``Link.numbers``
RECEIVE: Final = 0  # addresses of recv, send and clock_gettime
SEND: Final = 1
CLOCK: Final = 2
SAMPLE: Final = 3  # magic, version and number of axes, as the first 48 bits
FORCE: Final = 4
SEQUENCE: Final = 5  # of the latest sample
BUTTONS: Final = 6
SENT: Final = 7
HEARD: Final = 8  # ns of the monotonic clock, when the latest sample came
BEFORE: Final = 9  # 1: a position is known from which a velocity can be estimated
NUMBER_COUNT: Final = 10

REASONS: Final = ("size", "magic", "version", "axes", "number", "old", "not sent")
_SIZE, _MAGIC, _VERSION, _AXES, _NUMBER, _OLD, _NOT_SENT = range(len(REASONS))

_MOST: Final = 64  # datagrams taken in a tick
_HEADER: Final = datagrams.HEADER.size
_HAS_VELOCITY, _RUNNING, _FAULT = datagrams.HAS_VELOCITY, datagrams.RUNNING, datagrams.FAULT
_PHASE, _FAULTS = memory.PHASE, memory.FAULT
_MAGICS: Final = (datagrams.SAMPLE, datagrams.FORCE)
_ROOM: Final = datagrams.LONGEST // 8 + 1  # words
_FIRST_WORD: Final = (1 << 48) - 1
_LOW: Final = (1 << 32) - 1
_SILENCE: Final = 1_000_000_000  # ns, as in the driver
_DONT_WAIT: Final = 0x40  # MSG_DONTWAIT and MSG_NOSIGNAL of Linux
_NO_SIGNAL: Final = 0x4000
_MONOTONIC: Final = 1
_SECOND: Final = 1_000_000_000


class Link(NamedTuple):
    """What is kept of the conversation.

    ``numbers`` see the constants; ``dropped`` counts by ``REASONS``; ``words`` and ``floats`` are one memory, the
    datagram; ``receiving sending asking`` are arguments of calls, ``clock`` is room for a time; ``position velocity
    before`` are per axis; ``times`` the device's time of the latest sample, and the rate of the velocity's filter
    (rad/s); ``header`` the counters of the run.
    """

    numbers: Integers
    dropped: Integers
    words: Integers
    floats: Floats
    receiving: Integers
    sending: Integers
    asking: Integers
    clock: Integers
    position: Floats
    velocity: Floats
    times: Floats
    header: Integers

    def counted(self) -> tuple[int, int]:
        """Count a force that is sent otherwise; return its sequence number and that of the sample that it answers."""
        self.numbers[SENT] += 1
        return int(self.numbers[SENT]), int(self.numbers[SEQUENCE])

    def lost(self) -> Counter[str]:
        """Return what was dropped, by reasons."""
        return Counter({why: int(count) for why, count in zip(REASONS, self.dropped, strict=True) if count})


LINK: Final = Bundle(Link)
_open = LINK.opener()


@lean
def _now(link: Link) -> int:
    """Return the monotonic clock's time, ns."""
    call_with(link.numbers[CLOCK], link.asking)
    return int(link.clock[0] * _SECOND + link.clock[1])


@lean
def _refused(link: Link, length: int) -> int:
    """Return why what came is no sample, -1 if it is one."""
    n, first = link.position.shape[0], link.words[0]
    wrong = (first ^ link.numbers[SAMPLE]) & _FIRST_WORD
    if length < _HEADER:
        return _SIZE
    if wrong & _LOW != 0:
        return _MAGIC
    if wrong & (0xFF << 32) != 0:
        return _VERSION
    if wrong != 0:
        return _AXES
    count = 2 * n if (first >> 48) & _HAS_VELOCITY != 0 else n
    if (length - _HEADER) % 8 != 0:
        return _SIZE
    for i in range((length - _HEADER) // 8 + 1):  # the time first
        if not math.isfinite(link.floats[2 + i]):
            return _NUMBER
    return -1 if length == _HEADER + 8 * count else _SIZE


@lean
def _take(link: Link, length: int) -> None:
    """Take a datagram for what it is worth."""
    numbers, n = link.numbers, link.position.shape[0]
    reason = _refused(link, length)
    sequence, time, now = link.words[1] & _LOW, link.floats[2], _now(link)
    anew = now - numbers[HEARD] > _SILENCE
    if reason < 0 and not anew:
        ahead = (sequence - numbers[SEQUENCE]) & _LOW
        if ahead == 0 or ahead >= 1 << 31 or time <= link.times[0]:
            reason = _OLD
    if reason >= 0:
        link.dropped[reason] += 1
        return
    measured = (link.words[0] >> 48) & _HAS_VELOCITY != 0
    step = time - link.times[0]
    part = -math.expm1(-link.times[1] * step)
    known = numbers[BEFORE] != 0 and not anew
    for i in range(n):
        x = link.floats[3 + i]
        if measured:
            link.velocity[i] = link.floats[3 + n + i]
        elif known:
            link.velocity[i] += part * ((x - link.position[i]) / step - link.velocity[i])
        else:
            link.velocity[i] = 0.0
        link.position[i] = x
    numbers[BEFORE] = 0 if measured else 1
    numbers[SEQUENCE], numbers[BUTTONS], numbers[HEARD] = sequence, (link.words[1] >> 32) & _LOW, now
    link.times[0] = time


@routine
def read(link_at: int, sample_at: int) -> int:
    """Take what has come, and tell the latest sample."""
    link, sample = _open(link_at), pointer_at(sample_at)
    for _ in range(_MOST):
        length = call_with(link.numbers[RECEIVE], link.receiving)
        if length < 0:  # nothing; or a peer that is no more, which a stall will tell
            break
        _take(link, length)
    n = link.position.shape[0]
    for i in range(n):
        sample[i], sample[n + i] = link.position[i], link.velocity[i]
    sample[2 * n], sample[2 * n + 1] = link.numbers[SEQUENCE], link.numbers[BUTTONS]
    return 0


@routine
def write(link_at: int, force_at: int) -> int:
    """Send a force."""
    link, force = _open(link_at), pointer_at(force_at)
    numbers, n = link.numbers, link.position.shape[0]
    flags = _RUNNING if link.header[_PHASE] == ct.RUNNING else 0
    if link.header[_FAULTS] != ct.NONE:
        flags |= _FAULT
    numbers[SENT] = (numbers[SENT] + 1) & _LOW
    now = _now(link)
    link.words[0] = numbers[FORCE] | flags << 48
    link.words[1] = numbers[SENT] | numbers[SEQUENCE] << 32
    link.floats[2] = now * 1e-9
    for i in range(n):
        link.floats[3 + i] = force[i]
    if call_with(numbers[SEND], link.sending) < 0:
        link.dropped[_NOT_SENT] += 1
    return 0


def new_link(
    descriptor: int, bandwidth: float, latest: Sample, heard: float, header: Integers
) -> tuple[Link, CompiledIO] | None:
    """Return a conversation on a connected socket, and how it is read and written; None where it cannot be.

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
    found, axes = clocks(), len(latest.position)
    if found is None or sys.byteorder != "little":
        return None
    library, words = ctypes.CDLL(None), np.zeros(_ROOM, np.int64)
    numbers, clock = np.zeros(NUMBER_COUNT, np.int64), np.zeros(2, np.int64)
    functions = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in ("recv", "send")]
    kinds = [int.from_bytes(magic + bytes([datagrams.VERSION, axes]), "little") for magic in _MAGICS]
    numbers[: FORCE + 1] = *functions, found[0], *kinds
    numbers[[SEQUENCE, BUTTONS, HEARD]] = latest.sequence, latest.buttons, int(heard * _SECOND)
    room = words.ctypes.data
    link = Link(
        numbers,
        np.zeros(len(REASONS), np.int64),
        words,
        words.view(np.float64),
        np.array([descriptor, room, datagrams.LONGEST + 1, _DONT_WAIT]),
        np.array([descriptor, room, _HEADER + 8 * axes, _DONT_WAIT | _NO_SIGNAL]),
        np.array([_MONOTONIC, clock.ctypes.data, 0, 0]),
        clock,
        np.array(latest.position, np.float64),
        np.array(latest.velocity, np.float64),
        np.array([latest.time, 2.0 * math.pi * bandwidth]),
        header,
    )
    packed, pair = LINK.pack(link), (types.int64, types.int64)
    return link, CompiledIO(address(read, *pair), address(write, *pair), packed.address, (link, packed))
