"""Datagrams between a device program and the driver ``udp``; docs/how_to/protocols.md has them as tables.

Both ways a header of 24 bytes is followed by doubles, all little-endian and without gaps:

    magic (4 bytes), version (u8), axes (u8), flags (u16), sequence (u32), word (u32), time (f64, s)

A sample is ``FSMS``, its word the buttons, then positions and, where the flag says so, velocities.  A force is
``FSMF``, its word the sequence number of the sample that it answers, then the force along each axis.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from fsm_dyn.runtime.abi import ForceFlag, SampleFlag

VERSION: Final = 1
SAMPLE: Final = b"FSMS"
FORCE: Final = b"FSMF"
HEADER: Final = struct.Struct("<4sBBHIId")
LONGEST: Final = HEADER.size + 8 * 2 * 6  # of six axes with velocities
_WRAP: Final = 1 << 32


class BadDatagramError(ValueError):
    """Reason why a datagram is invalid: ``size``, ``magic``, ``version``, ``axes`` or ``number``."""


class SampleDatagram(NamedTuple):
    """A sample: position and velocity (None: not measured) of each axis in m and m/s, or rad and rad/s."""

    sequence: int
    time: float
    buttons: int
    position: tuple[float, ...]
    velocity: tuple[float, ...] | None = None


class ForceDatagram(NamedTuple):
    """A force along each axis, N or N m; ``echo`` is the sequence number of the sample that it answers."""

    sequence: int
    time: float
    echo: int
    force: tuple[float, ...]
    flags: int = ForceFlag.RUNNING


def is_newer(sequence: int, than: int) -> bool:
    """Return whether a sequence number, of 32 bits that begin again, comes after another one."""
    return 0 < (sequence - than) % _WRAP < _WRAP // 2


def pack_sample(sample: SampleDatagram) -> bytes:
    """Return a sample as a datagram."""
    numbers = (*sample.position, *(sample.velocity or ()))
    flags = SampleFlag.HAS_VELOCITY if sample.velocity is not None else 0
    return _packed(SAMPLE, len(sample.position), flags, sample.sequence, sample.buttons, sample.time, numbers)


def pack_force(force: ForceDatagram) -> bytes:
    """Return a force as a datagram."""
    return _packed(FORCE, len(force.force), force.flags, force.sequence, force.echo, force.time, force.force)


def _packed(
    magic: bytes, axes: int, flags: int, sequence: int, word: int, time: float, numbers: Sequence[float]
) -> bytes:
    head = HEADER.pack(magic, VERSION, axes, flags, sequence % _WRAP, word % _WRAP, time)
    return head + struct.pack(f"<{len(numbers)}d", *numbers)


def unpack_sample(data: bytes, axes: int) -> SampleDatagram:
    """Return the sample that a datagram holds.

    Raises
    ------
    BadDatagramError
        It is none of a device with so many axes.
    """
    flags, sequence, buttons, time, numbers = _unpacked(SAMPLE, data, axes)
    measured = bool(flags & SampleFlag.HAS_VELOCITY)
    if len(numbers) != axes * (2 if measured else 1):
        raise BadDatagramError("size")
    return SampleDatagram(sequence, time, buttons, numbers[:axes], numbers[axes:] if measured else None)


def unpack_force(data: bytes, axes: int) -> ForceDatagram:
    """Return the force that a datagram holds; raise BadDatagramError as :func:`unpack_sample` does."""
    flags, sequence, echo, time, numbers = _unpacked(FORCE, data, axes)
    if len(numbers) != axes:
        raise BadDatagramError("size")
    return ForceDatagram(sequence, time, echo, numbers, flags)


def _unpacked(magic: bytes, data: bytes, axes: int) -> tuple[int, int, int, float, tuple[float, ...]]:
    """Return flags, sequence number, word, time and numbers of a datagram of this kind."""
    if len(data) < HEADER.size:
        raise BadDatagramError("size")
    found, version, count, flags, sequence, word, time = HEADER.unpack_from(data)
    for what, good in (("magic", found == magic), ("version", version == VERSION), ("axes", count == axes)):
        if not good:
            raise BadDatagramError(what)
    if (len(data) - HEADER.size) % 8:
        raise BadDatagramError("size")
    numbers = struct.unpack_from(f"<{(len(data) - HEADER.size) // 8}d", data, HEADER.size)
    if not (math.isfinite(time) and all(map(math.isfinite, numbers))):
        raise BadDatagramError("number")
    return flags, sequence, word, time, numbers
