"""Packets between host and paddle; ``firmware/hapkit/hapkit_protocol.h`` is the same in C.

A packet is ``00  COBS(kind, body, crc)  00``: consistent overhead byte stuffing (Cheshire and Baker 1999) leaves no
zero inside, so that a reader synchronizes at the next zero.  The CRC is CRC-16/CCITT-FALSE (polynomial 0x1021, from
0xFFFF) of kind and body; numbers are little-endian.  A packet begins with a zero as well as ending with one, so that
half a packet before it does not damage it.
"""

from __future__ import annotations

import binascii
import struct
from typing import Final, NamedTuple

VERSION: Final = 1
LONGEST: Final = 32  # bytes between two zeros; more is no packet
HELLO: Final = 0x01
FORCE: Final = 0x02
ZERO: Final = 0x03
IDENTITY: Final = 0x81
SAMPLE: Final = 0x82

BODIES: Final = {
    HELLO: struct.Struct("<B"),
    FORCE: struct.Struct("<Hi"),
    ZERO: struct.Struct("<"),
    IDENTITY: struct.Struct("<BIIII"),
    SAMPLE: struct.Struct("<HIiiHiBB"),
}
LET_GO: Final = 1  # bits of ``SampleBody.state``: no force until one of zero has come
LIMITED: Final = 2  # the force last asked for was more than the device can show
_CRC: Final = struct.Struct("<H")


class HelloBody(NamedTuple):
    """Host: who are you?  ``version`` is the host's."""

    version: int = VERSION


class ForceBody(NamedTuple):
    """Host: show this force, µN at the handle."""

    sequence: int
    force: int


class ZeroBody(NamedTuple):
    """Host: where you are is zero."""


class IdentityBody(NamedTuple):
    """Device: version of its protocol, radius of the handle (µm), way per count at the handle (nm), force (µN).

    ``watchdog`` is after how long without a force it lets go by itself, µs; 0: never.
    """

    version: int
    radius: int
    resolution: int
    force: int
    watchdog: int


class SampleBody(NamedTuple):
    """Device: ``time`` (µs, of its own clock), ``counts`` of the sensor since zero, ``velocity`` (µm/s).

    ``echo`` is the sequence number of the last force it took, ``force`` the one it shows, µN, ``state`` bits, and
    ``dropped`` how many frames it could not read; counts of 8, 16 and 32 bits begin anew at zero.
    """

    sequence: int
    time: int
    counts: int
    velocity: int
    echo: int
    force: int
    state: int
    dropped: int


Body = HelloBody | ForceBody | ZeroBody | IdentityBody | SampleBody
KINDS: Final[dict[type[Body], int]] = {
    HelloBody: HELLO, ForceBody: FORCE, ZeroBody: ZERO, IdentityBody: IDENTITY, SampleBody: SAMPLE,
}  # fmt: skip
_TYPES: Final[dict[int, type[Body]]] = {kind: body for body, kind in KINDS.items()}


def crc16(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE; 0x29B1 of ``b"123456789"``."""
    return binascii.crc_hqx(data, 0xFFFF)


def cobs_encode(data: bytes) -> bytes:
    """Return data without a zero in it; at most 253 bytes."""
    return b"".join(bytes((len(run) + 1,)) + run for run in data.split(b"\0"))


def cobs_decode(data: bytes) -> bytes | None:
    """Return what was stuffed, or None where that cannot have been."""
    runs, at = [], 0
    while at < len(data):
        length = data[at]
        if at + length > len(data):
            return None
        runs.append(data[at + 1 : at + length])
        at += length
    return b"\0".join(runs)


def encode_packet(body: Body) -> bytes:
    """Return the packet of a body, as bytes."""
    kind = KINDS[type(body)]
    data = bytes((kind,)) + BODIES[kind].pack(*body)
    return b"\0" + cobs_encode(data + _CRC.pack(crc16(data))) + b"\0"


def decode_packet(data: bytes) -> Body | None:
    """Return the body of the bytes between two zeros, None where they are no packet."""
    plain = cobs_decode(data)
    if plain is None or len(plain) < 3 or _CRC.unpack(plain[-2:])[0] != crc16(plain[:-2]):
        return None
    kind = plain[0]
    if kind not in BODIES or BODIES[kind].size != len(plain) - 3:
        return None
    return _TYPES[kind](*BODIES[kind].unpack(plain[1:-2]))


class PacketReader:
    """Decoder of packets in a stream of bytes, which counts invalid pieces.

    Attributes
    ----------
    dropped : int
        Pieces between zeros that were no packets: garbage, halves, damaged ones.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._rest = b""
        self._long = False  # the bytes before the next zero are too long for a packet

    def feed(self, data: bytes) -> list[Body]:
        """Return the packets that end in these bytes."""
        found: list[Body] = []
        *pieces, rest = (self._rest + data).split(b"\0")
        for piece in pieces:
            body = None if self._long or len(piece) > LONGEST else decode_packet(piece)
            if body is not None:
                found.append(body)
            elif piece or self._long:
                self.dropped += 1
            self._long = False
        self._long = self._long or len(rest) > LONGEST
        self._rest = b"" if self._long else rest
        return found


SAFE_FRAME: Final = encode_packet(ForceBody(0, 0))
"""No force, whatever came before: the zero in front ends it."""
