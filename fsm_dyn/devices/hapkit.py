"""A paddle of one axis on a serial port, with the firmware that ships with it."""

from __future__ import annotations

import binascii
import contextlib
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import driver_tools as sl
from fsm_dyn.devices.driver_tools import OptionReader
from fsm_dyn.live.driver_protocol import SAFE_FRAME, DeviceDynamics, DeviceSpec, Sample, lag_of

# -- Packets between host and paddle; ``firmware/hapkit/hapkit_protocol.h`` is the same in C -----------------
#
# A packet is ``00 COBS(kind, body, crc) 00``: consistent overhead byte stuffing (Cheshire and Baker 1999) leaves no
# zero inside, so a reader synchronizes at the next zero. The CRC is CRC-16/CCITT-FALSE (polynomial 0x1021, from
# 0xFFFF) of kind and body; numbers are little-endian. A packet has a zero at both ends, so half a packet before it
# does not damage it.

VERSION: Final = 1
LONGEST: Final = 32  # most bytes of a packet between two zeros
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
    """Host: the present position is zero."""


class IdentityBody(NamedTuple):
    """Device: version of its protocol, radius of the handle (µm), way per count at the handle (nm), force (µN).

    ``watchdog`` is the time without a force after which the device removes it, µs; 0: never.
    """

    version: int
    radius: int
    resolution: int
    force: int
    watchdog: int


class SampleBody(NamedTuple):
    """Device: ``time`` (µs, of its own clock), ``counts`` of the sensor since zero, ``velocity`` (µm/s).

    ``echo`` is the sequence number of the last force it took, ``force`` the one it shows, µN, ``state`` bits, and
    ``dropped`` the number of unreadable packets; counts of 8, 16 and 32 bits wrap around to zero.
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
    """Return the data before stuffing, or None for invalid bytes."""
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
    """Return the body of the bytes between two zeros, None if they are no packet."""
    plain = cobs_decode(data)
    if plain is None or len(plain) < 3 or _CRC.unpack(plain[-2:])[0] != crc16(plain[:-2]):
        return None
    kind = plain[0]
    if kind not in BODIES or BODIES[kind].size != len(plain) - 3:
        return None
    return _TYPES[kind](*BODIES[kind].unpack(plain[1:-2]))


class PacketReader:
    """Decoder of packets in a stream of bytes, which counts invalid pieces.

    ``dropped``: invalid pieces between zeros: garbage, halves, damaged packets.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._rest = b""
        self._long = False  # the bytes before the next zero are too long for a packet

    def feed(self, data: bytes) -> list[Body]:
        """Return the packets completed by these bytes."""
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


SAFE_PACKET: Final = encode_packet(ForceBody(0, 0))
"""No force, whatever came before: the zero in front ends it."""


# -- A paddle of one axis on a serial port, with the firmware that ships with it -----------------------------
#
# Options
# -------
# path : str
#     The serial port; without it the only one there is.
# baud : int
#     Of the line (1000000); irrelevant for native USB ports.
# force : float
#     Largest force commanded, N; the device reports its own limit.
# mass, damping, friction : float
#     Of the handle, kg, N s/m and N, if known (docs/how_to/hapkit.md describes the measurement).
# workspace : float
#     Range of the handle to either side of its zero, m (0.15: the whole arc of a paddle of 80 mm).
# delay : float
#     See :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`; 0 s.
# resolution : float
#     Of its position, m, until the device is opened and reports the actual one.

WATCHDOG: Final = 0.02  # s, of the firmware
PATIENCE: Final = 4.0  # s for its first answer: some boards restart when their port is opened
AGAIN: Final = 0.1  # s between questions
UNANSWERED: Final = 250  # most unanswered forces: its own watchdog has acted by then
MOST: Final = 1 << 16  # bytes taken in at once
BEGINNING: Final = 20  # first ticks, without counting losses on the line
QUIET: Final = 5  # forces without a sample, after which the samples are missing: the tick detects the stall
GENTLE: Final = 50  # ticks of the ramp of the force after the device's watchdog removed it
REACH: Final = 0.15  # m
BAUD: Final = 1_000_000
_NUMBERS: Final = ("force", "mass", "damping", "friction", "delay", "resolution", "workspace")
_KNOWN: Final = frozenset({"path", "baud", *_NUMBERS})
_MICRO: Final = 1e6
_LAST: Final = (1 << 16) - 1  # sequence number; the safe packet has 0

SMOOTHING: Final = 200.0  # Hz, of the velocity in the firmware


class Driver:
    """The paddle; see the module."""

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        if transport is None:
            raise InputError("the hapkit needs its line", remedy="open_transport returns it")
        self.spec = self.describe(options)
        self._line = transport
        self._reader = PacketReader()
        self._identity: IdentityBody | None = None
        self._latest = Sample(0.0, 0, (0.0,), (0.0,))
        self._told = SampleBody(0, 0, 0, 0, 0, 0, LET_GO, 0)
        self._sequence = self._readings = self._echo = 0
        self._quiet = 0  # forces written since the last sample
        self._most = 0  # µN
        self._share = 0.0  # of the force asked for: less than 1 while it comes back
        self._dropped = self._lost = self._let_go = 0
        self._begun = 0  # forces written, as far as they are counted

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the paddle by its options."""
        given = OptionReader("hapkit", {name: value for name, value in options.items() if value is not None}, _KNOWN)
        given.count("baud", BAUD, 1, 10_000_000)
        numbers = {name: given.number(name, 0.0, most=1e6) for name in _NUMBERS if options.get(name) is not None}
        force, reach = numbers.pop("force", float("inf")), numbers.pop("workspace", REACH)
        handle = DeviceDynamics(**numbers, velocity_bandwidth=SMOOTHING)
        return DeviceSpec(
            "hapkit", 1, SAFE_FRAME, WATCHDOG, SAFE_PACKET, force, handle=handle, zeroed=True,
            zero_frame=SAFE_PACKET, low=(-reach,), high=(reach,), velocity_lag=lag_of(SMOOTHING),
        )  # fmt: skip

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Open the serial port.

        Raises
        ------
        InputError
            There is none, there are several, or it cannot be opened.
        """
        path = sl.port_for("hapkit", str(options.get("path", "")))
        return sl.open_line(path, int(options.get("baud", BAUD)))

    def open(self) -> None:
        """Request the identity of the device until it answers.

        Raises
        ------
        InputError
            It does not answer, or speaks another version of the protocol.
        """
        until = time.monotonic() + PATIENCE
        while self._identity is None:
            if time.monotonic() > until:
                raise InputError(
                    "no hapkit answers on the serial port",
                    found=f"{self._reader.dropped} pieces that are none of its frames" if self._reader.dropped else "",
                    remedy="load fsm_dyn/devices/firmware/hapkit onto it; is the baud rate the sketch's?",
                )
            sl.write_line(self._line, encode_packet(HelloBody()))
            self._hear_until(min(until, time.monotonic() + AGAIN))
        if self._identity.version != VERSION:
            raise InputError(
                "the hapkit speaks another protocol",
                found=f"version {self._identity.version}",
                allowed=f"version {VERSION}",
                remedy="load the sketch that comes with this version of fsm_dyn",
            )
        self._most = min(self._identity.force, round(_MICRO * min(self.spec.force, 1e3)))
        self.spec = replace(self.spec, force=self._most / _MICRO)

    def _hear_until(self, until: float) -> None:
        while self._identity is None and time.monotonic() < until:
            time.sleep(0.001)
            self._hear()

    def calibrate(self) -> None:
        """Make the present position the zero, and begin from a force of zero."""
        sl.write_line(self._line, encode_packet(ZeroBody()) + SAFE_PACKET)
        until = time.monotonic() + PATIENCE
        while self._told.state & LET_GO or self._readings == 0:
            if time.monotonic() > until:
                raise InputError("the hapkit tells no position", remedy="begin it anew: pull it out and plug it in")
            time.sleep(0.001)
            self._hear()
        self._share = 1.0

    def read(self) -> Sample:
        """Return the latest sample, at once.

        Raises
        ------
        DeviceDisconnected
            The device is unplugged.
        """
        self._hear()
        return self._latest

    def _hear(self) -> None:
        """Take the bytes received; of several samples the last."""
        data, more = b"", True
        while more and len(data) < MOST:
            found = sl.read_line(self._line)
            data, more = data + found, bool(found)
        for body in self._reader.feed(data):
            if isinstance(body, IdentityBody):
                self._identity = body
            elif isinstance(body, SampleBody) and self._identity is not None:
                self._take(body, 1e-9 * self._identity.resolution)

    def _take(self, body: SampleBody, resolution: float) -> None:
        if body.state & LET_GO and not self._told.state & LET_GO:
            self._let_go += 1
        self._told = body
        self._echo = body.echo or self._echo  # 0 is the guard's
        self._quiet = 0
        self._readings += 1
        self._latest = Sample(
            body.time / _MICRO, self._readings, (resolution * body.counts,), (body.velocity / _MICRO,)
        )

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Show a force.

        After its own watchdog has removed the force, the device is sent a force of zero until it accepts forces again;
        then the force is ramped up over ``GENTLE`` ticks.

        Raises
        ------
        DeviceNotReading, DeviceDisconnected
        TimeoutError
            The device sends samples but has accepted none of the last ``UNANSWERED`` forces.
        """
        if self._begun < BEGINNING:  # no damage: the line was not read, no force sent for a while
            self._begun += 1
            self._dropped, self._lost, self._let_go = self._reader.dropped, self._told.dropped, 0
        if self._told.state & LET_GO:
            self._share = 0.0
        elif self._share < 1.0:
            self._share = min(1.0, self._share + 1.0 / GENTLE)
        wanted = round(_MICRO * self._share * force[0])
        shown = max(-self._most, min(self._most, wanted))
        unanswered = (self._sequence - self._echo) % _LAST
        self._quiet += 1
        if UNANSWERED < unanswered < _LAST // 2 and self._quiet < QUIET:
            raise TimeoutError(f"the hapkit takes no forces: {unanswered} are unanswered")
        self._sequence = self._sequence % _LAST + 1
        sl.write_line(self._line, encode_packet(ForceBody(self._sequence, shown)))
        return (shown / _MICRO,)

    def diagnostics(self) -> dict[str, float]:
        """Return counts of lost packets, and of forces removed by the watchdog of the device."""
        return {
            "frames not understood by the host": self._reader.dropped - self._dropped,
            "frames not understood by the device": (self._told.dropped - self._lost) % 256,
            "let go by its watchdog": self._let_go,
        }

    def close(self) -> None:
        """Set the force to zero; unsent packets are discarded."""
        with contextlib.suppress(sl.DeviceDisconnected):
            sl.discard_unsent(self._line)
            sl.write_line(self._line, SAFE_PACKET)
