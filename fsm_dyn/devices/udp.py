"""Any device with a program that sends datagrams, in any language, on this computer or another."""

from __future__ import annotations

import ipaddress
import math
import select
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fsm_dyn.core.arrays import Integers
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import HANDLE, OptionReader, VelocityFilter, shared
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.driver_protocol import (
    ADMITTANCE,
    IMPEDANCE,
    NOTHING,
    SAFE_FRAME,
    VELOCITY_LAG,
    DeviceSpec,
    Sample,
    lag_of,
)
from fsm_dyn.live.pacing import CompiledIO
from fsm_dyn.run.structures import Bundle
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    MOST_DATAGRAMS,
    DropReason,
    Fault,
    ForceFlag,
    LiveHeader,
    LivePhase,
    SampleFlag,
    UdpNumbers,
)
from fsm_dyn.runtime.layouts import UdpLink

# -- Datagrams between a device program and the driver ``udp`` -----------------------------------------------
#
# Datagrams between a device program and the driver ``udp``; docs/how_to/protocols.md has them as tables.
#
# Both ways a header of 24 bytes is followed by doubles, all little-endian and without gaps:
#
#     magic (4 bytes), version (u8), axes (u8), flags (u16), sequence (u32), word (u32), time (f64, s)
#
# A sample is ``FSMS``, its word the buttons, then positions and, by a flag, velocities. A force is ``FSMF``, its word
# the sequence number of the answered sample, then the force along each axis.

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
    """A force along each axis, N or N m; ``echo`` is the sequence number of the answered sample."""

    sequence: int
    time: float
    echo: int
    force: tuple[float, ...]
    flags: int = ForceFlag.RUNNING


def is_newer(sequence: int, than: int) -> bool:
    """Return whether a sequence number (32 bits, wrapping around) comes after another one."""
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
    """Return the sample in a datagram.

    Raises BadDatagramError: the datagram is not a sample of a device with this number of axes.
    """
    flags, sequence, buttons, time, numbers = _unpacked(SAMPLE, data, axes)
    measured = bool(flags & SampleFlag.HAS_VELOCITY)
    if len(numbers) != axes * (2 if measured else 1):
        raise BadDatagramError("size")
    return SampleDatagram(sequence, time, buttons, numbers[:axes], numbers[axes:] if measured else None)


def unpack_force(data: bytes, axes: int) -> ForceDatagram:
    """Return the force in a datagram; raise BadDatagramError as :func:`unpack_sample` does."""
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


# -- Any device with a program that sends datagrams, in any language, on this computer or another ------------
#
# The program sends samples to the port of this driver, which sends a force in each tick, in the format of
# :mod:`fsm_dyn.devices.udp`. Only one peer is accepted: the declared one or, on this computer alone, the sender of the
# first valid sample. All datagrams but valid, new samples of the peer are dropped and counted.
#
# The socket is connected to the peer as soon as it is known, and is shared with the watchdog process, which can write
# to it after the end of this process. The program itself must remove the force if it has received none for 20 ms, as
# the client in ``fsm_dyn/devices/clients`` does.
#
# Options
# -------
# axes : int
#     Number of axes (3).
# turns : list of int
#     Rotational axes, in rad, rad/s and N m instead of m, m/s and N (none).
# host : str
#     The address to listen at (127.0.0.1).  Any but a loopback address requires a declared peer.
# port : int
#     To listen at (10317).
# peer : str
#     Address of the device program, with or without its port: ``192.0.2.7:4000``.
# watchdog : float
#     Time without a datagram after which the program removes the force, s (0.02); 0: it has no watchdog. If the
#     network could lose the datagram of the watchdog process too, the force is then capped as without a stop
#     mechanism.
# bandwidth : float
#     Of the velocity estimate if the program sends no velocity, Hz (30); see
#     :class:`~fsm_dyn.devices.driver_tools.VelocityFilter`.
# patience : float
#     Longest wait for the first sample, s (10).
# workspace : list
#     For each axis its range to either side of zero, or its least and greatest position (1 m, 100 rad).
# force, torque : float
#     Largest force and torque of the device, N and N m; of kind admittance its largest speeds, m/s and rad/s.
# kind : str
#     ``impedance``, or ``admittance`` for a program that measures the force of the hand and follows: its samples have
#     this force (N or N m) instead of velocities, and it gets velocities (m/s or rad/s) instead of forces.
# mass, damping, friction, resolution, delay : float
#     Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.

PORT: Final = 10317
WATCHDOG_TIME: Final = 0.02  # s
BANDWIDTH: Final = 30.0  # Hz
PATIENCE: Final = 10.0  # s
SILENCE: Final = 1.0  # s of silence; any sequence number is accepted after it, as the program was restarted
_WAITED: Final = 4096  # in the first tick: samples received during preparation of the model
_REACH: Final = (1.0, 100.0)  # m and rad to either side
_KNOWN: Final = frozenset(
    {
        "axes",
        "turns",
        "host",
        "port",
        "peer",
        "watchdog",
        "bandwidth",
        "patience",
        "force",
        "torque",
        "workspace",
        "kind",
        *HANDLE,
    }
)

Address = tuple[str, int]


def address_of(text: str) -> Address:
    """Return address and port (0: any) named by ``text``, an IPv6 address in brackets if with a port.

    Raises InputError: the text is no address.
    """
    host, separator, port = text.rpartition(":")
    if not separator or (":" in host and not host.endswith("]")):
        host, port = text, "0"
    try:
        found = ipaddress.ip_address(host.strip("[]")), int(port)
    except ValueError as error:
        raise InputError("an address", found=text, allowed="numbers, as in 192.0.2.7 or 192.0.2.7:4000") from error
    return str(found[0]), found[1]


class Driver:
    """The device behind a socket; see the module."""

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        self.spec = self.describe(options)
        self._socket = socket.socket(fileno=transport)
        self._socket.setblocking(False)
        self._strangers: socket.socket | None = None  # datagrams of other senders, once the other one is connected
        declared = str(options.get("peer", ""))
        self._allowed = address_of(declared) if declared else None
        self._peer: Any = None
        self._patience = float(options.get("patience", PATIENCE))
        self._bandwidth = float(options.get("bandwidth", BANDWIDTH))
        self._rates = VelocityFilter(self.spec.axes, self._bandwidth)
        self._latest = Sample(0.0, 0, (0.0,) * self.spec.axes, (0.0,) * self.spec.axes)
        self._heard = -SILENCE  # when the latest came, by the clock of this process
        self._sent = 0
        self._header: Any = None
        self._link: Any = None  # state of the compiled code, if it reads and writes
        self.dropped: Counter[str] = Counter()

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options."""
        given = OptionReader("driver udp", options, _KNOWN)
        axes, watchdog = given.count("axes", 3, 1, 6), given.number("watchdog", WATCHDOG_TIME)
        given.count("port", PORT, 0, 65535)
        bandwidth = given.number("bandwidth", BANDWIDTH, above=True)
        given.number("patience", PATIENCE)
        turns = given.turns(axes)
        low, high = given.workspace([_REACH[i in turns] for i in range(axes)])
        let_go = pack_force(ForceDatagram(0, 0.0, 0, (0.0,) * axes, ForceFlag.LET_GO))
        return DeviceSpec(
            "udp",
            axes,
            SAFE_FRAME if cls._is_local(options) or watchdog > 0.0 else NOTHING,
            watchdog,
            let_go,
            force=given.number("force", math.inf, above=True),
            torque=given.number("torque", math.inf, above=True),
            rotational_axes=turns,
            handle=given.handle(),
            velocity_lag=max(VELOCITY_LAG, lag_of(bandwidth)),
            zero_frame=let_go,
            low=low,
            high=high,
            kind=given.choice("kind", IMPEDANCE, (IMPEDANCE, ADMITTANCE)),
        )

    @staticmethod
    def _is_local(options: Mapping[str, Any]) -> bool:
        """Return whether host and peer are on this computer; raise InputError if a required peer is missing."""
        host, _ = address_of(str(options.get("host", "127.0.0.1")))
        if ipaddress.ip_address(host).is_loopback:
            return True
        if not options.get("peer"):
            raise InputError(
                "the driver udp listens to other computers, but to whom?",
                found=f"host {host}, no peer",
                remedy="declare the device's address: --option peer=192.0.2.7",
            )
        return False

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return a socket bound to the port."""
        host, _ = address_of(str(options.get("host", "127.0.0.1")))
        port = int(options.get("port", PORT))
        found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            found.bind((host, port))
        except OSError as error:
            found.close()
            raise InputError(
                f"the driver udp cannot listen at {host}, port {port}",
                found=str(error.strerror),
                remedy="another run may listen there: end it, or choose --option port=...",
            ) from error
        return shared(found)

    def attach(self, block: tick_data.SharedBlock) -> None:
        """Take the shared memory with the run state, which the flags of a force report."""
        self._header = block.header

    def open(self) -> None:
        """Wait for the first good sample.

        Raises
        ------
        TimeoutError
            None came.
        """
        until = time.monotonic() + self._patience
        while self._peer is None:
            if time.monotonic() > until:
                place = "{}, port {}".format(*self._socket.getsockname()[:2])
                dropped = ", ".join(f"{count} {why}" for why, count in self.dropped.items()) or "nothing"
                raise TimeoutError(
                    f"no sample of {self.spec.axes} axes came to {place} in {self._patience:g} s; dropped: {dropped}"
                )
            if self._header is not None and self._header[LiveHeader.STOP_REQUESTED]:
                return
            select.select([self._socket], [], [], 0.05)
            self.read()

    def calibrate(self) -> None:
        """The program has its own zero."""

    def compiled(self) -> Any:
        """Return the compiled reading and writing of the peer; None without a peer."""
        if self._peer is None or self._header is None or self.spec.kind == ADMITTANCE:
            return None
        # plain ticks have no use for it

        made = new_link(self._socket.fileno(), self._bandwidth, self._latest, self._heard, self._header)
        if made is None:
            return None
        self._link, io = made
        return io

    def read(self) -> Sample:
        """Return the latest sample of the peer.

        Raises
        ------
        ConnectionRefusedError
            The program is no more.
        """
        for _ in range(MOST_DATAGRAMS if self._sent else _WAITED):
            try:
                data, sender = self._socket.recvfrom(LONGEST + 1)
            except BlockingIOError:
                break
            except ConnectionRefusedError as error:
                raise self._is_gone() from error
            self._take(data, sender)
        if self._strangers is not None:
            self._count_strangers(self._strangers)
        return self._latest

    def _take(self, data: bytes, sender: Any) -> None:
        """Take a datagram: the latest sample, or one to drop and count."""
        if not self._may_send(sender):
            self.dropped["stranger"] += 1
            return
        try:
            sample = unpack_sample(data, self.spec.axes)
        except BadDatagramError as error:
            self.dropped[str(error)] += 1
            return
        if sample.velocity is None and self.spec.kind == ADMITTANCE:
            self.dropped["no force in it"] += 1
            return
        now = time.monotonic()
        anew = now - self._heard > SILENCE
        if anew:
            self._rates.forget()
        elif not (is_newer(sample.sequence, self._latest.sequence) and sample.time > self._latest.time):
            self.dropped["old"] += 1
            return
        self._heard = now
        self._latest = self._measured(sample)
        if self._peer is None:
            self._connect(sender)

    def _measured(self, sample: SampleDatagram) -> Sample:
        velocity = sample.velocity
        if velocity is None:
            velocity = self._rates.take(sample.time, sample.position)
        else:
            self._rates.forget()
        return Sample(sample.time, sample.sequence, sample.position, velocity, sample.buttons)

    def _may_send(self, sender: Any) -> bool:
        if self._peer is not None:
            return bool(sender[:2] == self._peer)
        if self._allowed is None:
            return True
        host, port = self._allowed
        return sender[0] == host and port in (0, sender[1])

    def _connect(self, sender: Any) -> None:
        """Bind the socket, here and in the watchdog process, to the peer; a second one counts datagrams of others."""
        self._peer = sender[:2]
        self._socket.connect(sender)
        if not hasattr(socket, "SO_REUSEPORT"):
            return
        strangers = socket.socket(self._socket.family, socket.SOCK_DGRAM)
        strangers.setblocking(False)
        try:
            for each in (self._socket, strangers):  # only now: two runs at one port would be a mistake
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            strangers.bind(self._socket.getsockname())
        except OSError:  # then the system drops them, and does not count
            strangers.close()
        else:
            self._strangers = strangers

    def _count_strangers(self, strangers: socket.socket) -> None:
        for _ in range(MOST_DATAGRAMS):
            try:
                strangers.recv(1)
            except BlockingIOError:
                return
            self.dropped["stranger"] += 1

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Send a force to the peer, if there is one.

        Raises
        ------
        ConnectionRefusedError
            The program is no more.
        """
        flags = ForceFlag.RUNNING
        if self._header is not None:
            running = self._header[LiveHeader.PHASE] == LivePhase.RUNNING
            flags = ForceFlag.RUNNING * running | ForceFlag.FAULT * (self._header[LiveHeader.FAULT] != Fault.NONE)
        self._send(force, int(flags))
        return force

    def _send(self, force: Sequence[float], flags: int) -> None:
        if self._peer is None:
            return
        self._sent, echo = self._sent + 1, self._latest.sequence
        if self._link is not None:
            self._sent, echo = self._link.counted()
        answer = ForceDatagram(self._sent, time.monotonic(), echo, tuple(force), flags)
        try:
            self._socket.send(pack_force(answer))
        except BlockingIOError:  # the network is busy: the next force follows, or the far watchdog acts
            self.dropped["not sent"] += 1
        except ConnectionRefusedError as error:
            raise self._is_gone() from error

    def _is_gone(self) -> ConnectionRefusedError:
        return ConnectionRefusedError("the device program at {}, port {}, is no more".format(*self._peer))

    def diagnostics(self) -> dict[str, int]:
        """Return the numbers of dropped datagrams by reason."""
        if self._strangers is not None:
            self._count_strangers(self._strangers)
        return dict(self.dropped + (self._link.lost() if self._link is not None else Counter()))

    def close(self) -> None:
        """Tell the peer to remove the force; may be called again."""
        if self._socket.fileno() < 0:
            return
        try:
            self._send((0.0,) * self.spec.axes, ForceFlag.LET_GO)
        finally:
            self._socket.close()
            if self._strangers is not None:
                self._strangers.close()


# -- Compiled reading and writing of the driver ``udp`` ------------------------------------------------------
#
# Compiled reading and writing of the driver ``udp`` (``runtime/pacing.c``), for loops faster than 2 kHz.
#
# It receives and sends the same datagrams on the socket of the driver, which is connected by then, so only those of
# the peer arrive. A header is read as two integers and a float, in the memory layout of a little-endian machine.


REASONS: Final = tuple(reason.name.lower().replace("_", " ") for reason in DropReason)
_MAGICS: Final = (SAMPLE, FORCE)
_ROOM: Final = LONGEST // 8 + 1  # words
_SECOND: Final = 1_000_000_000


class Link(UdpLink):
    """State and counters of the connection; ``dropped`` counts by ``REASONS``."""

    def counted(self) -> tuple[int, int]:
        """Count a force sent by Python; return its sequence number and that of the answered sample."""
        self.numbers[UdpNumbers.SENT] += 1
        return int(self.numbers[UdpNumbers.SENT]), int(self.numbers[UdpNumbers.SEQUENCE])

    def lost(self) -> Counter[str]:
        """Return the numbers of dropped datagrams, by reasons."""
        return Counter({why: int(count) for why, count in zip(REASONS, self.dropped, strict=True) if count})


LINK: Final = Bundle(Link)


def new_link(
    descriptor: int, bandwidth: float, latest: Sample, heard: float, header: Integers
) -> tuple[Link, CompiledIO] | None:
    """Return the state of a connected socket with its reading and writing; None where unsupported.

    ``bandwidth``: of the filter of the velocity, Hz; ``heard``: time of its arrival, s of the monotonic clock;
    ``header``, int64 array: the counters of the run.
    """
    axes = len(latest.position)
    if not library.has_pacing() or sys.byteorder != "little":
        return None
    words, numbers = np.zeros(_ROOM, np.int64), np.zeros(UdpNumbers.COUNT, np.int64)
    kinds = [int.from_bytes(magic + bytes([VERSION, axes]), "little") for magic in _MAGICS]
    numbers[: UdpNumbers.FORCE + 1] = descriptor, LONGEST + 1, *kinds
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
