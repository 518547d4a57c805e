"""Messages of Haply's board, as the public ``hAPI`` writes and reads them (gitlab.com/Haply/hAPI, HaplyHAPI 1.0.1).

The first byte is the kind, the second the number of the device.  Floats have 4 bytes, little-endian.  Nothing marks the
beginning of a message, and there is no checksum:

    reset       00 id
    parameters  01 id  motors dir dir  encoders dir dir  00  00  (offset resolution) (offset resolution)
    torques     02 id  torque torque
    answer      id  angle angle                                   to each message of torques

``motors`` and ``encoders`` have a bit for each port; what belongs to several ports comes in the order of the ports.
Angles and offsets are in degrees, the resolution is in counts per revolution, torques are in N m.
"""

from __future__ import annotations

import math
import struct
from typing import Final, NamedTuple

RESET: Final = 0
PARAMETERS: Final = 1
TORQUES: Final = 2
PORTS: Final = 0b11  # ports 1 and 2
MOST_ANGLE: Final = 720.0  # degrees; more is no answer of this device
_ANGLES: Final = struct.Struct("<B2f")
_TORQUES: Final = struct.Struct("<BB2f")
_PARAMETERS: Final = struct.Struct("<BB3B3BBB4f")


class Encoder(NamedTuple):
    """Encoder of a port: direction (1: counterclockwise), offset (degrees), counts per revolution."""

    direction: int
    offset: float
    resolution: float


def reset_message(device: int) -> bytes:
    """Return the message that resets the board."""
    return bytes((RESET, device))


def parameters_message(device: int, motors: tuple[int, int], encoders: tuple[Encoder, Encoder]) -> bytes:
    """Return the message that configures ports 1 and 2: directions of the motors, and the encoders."""
    first, second = encoders
    return _PARAMETERS.pack(
        PARAMETERS, device, PORTS, *motors, PORTS, first.direction, second.direction, 0, 0,
        first.offset, first.resolution, second.offset, second.resolution,
    )  # fmt: skip


def torques_message(device: int, first: float, second: float) -> bytes:
    """Return the message that shows torques (N m) by the motors of ports 1 and 2."""
    return _TORQUES.pack(TORQUES, device, first, second)


class AnswerReader:
    """Decoder of answers in a stream of bytes.

    Attributes
    ----------
    dropped : int
        Bytes that belong to no answer.
    """

    def __init__(self, device: int) -> None:
        self.dropped = 0
        self._device = device
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[float, float]]:
        """Return the angles (degrees) of the encoders of ports 1 and 2 of the answers that end in these bytes."""
        found = []
        rest, at = self._rest + data, 0
        while len(rest) - at >= _ANGLES.size:
            device, first, second = _ANGLES.unpack_from(rest, at)
            if device == self._device and all(math.isfinite(x) and abs(x) < MOST_ANGLE for x in (first, second)):
                found.append((first, second))
                at += _ANGLES.size
            else:
                self.dropped += 1
                at += 1
        self._rest = rest[at:]
        return found


def answer(device: int, first: float, second: float) -> bytes:
    """Return an answer, as the board sends it."""
    return _ANGLES.pack(device, first, second)
