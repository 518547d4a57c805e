"""Haply's pantograph (2diy) on a serial port, two axes; never run on hardware."""

from __future__ import annotations

import contextlib
import math
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import driver_tools as sl
from fsm_dyn.devices.driver_tools import HANDLE, OptionReader, VelocityFilter
from fsm_dyn.live.driver_protocol import SAFE_FRAME, DeviceSpec, Sample, lag_of

# -- Kinematics of a pantograph of five bars -----------------------------------------------------------------
#
# Kinematics of a pantograph of five bars: two motors on a base, two links each, joined at the handle.
#
# The first motor is the origin, the second is at ``(base, 0)``; angles are measured from the x axis. With ``A`` and
# ``B`` the elbows, the handle ``P`` is ``outer`` away from both, on the far side from the motors. Differentiating
# ``|P - A|`` and ``|P - B|``, which are constant, gives the Jacobian: with ``u = P - A`` and ``v = P - B``
#
#     u . dP = u . dA,    v . dP = v . dB.

Pair = tuple[float, float]


class FiveBar(NamedTuple):
    """Lengths, m: of the links at the motors, of those at the handle, and from motor to motor."""

    inner: float
    outer: float
    base: float


class Pose(NamedTuple):
    """Handle and Jacobian."""

    position: Pair  # (x, y): m
    jacobian: tuple[Pair, Pair]  # ((dx/da, dx/db), (dy/da, dy/db)): m/rad, with a and b the angles of the motors


def pose_of(bars: FiveBar, a: float, b: float) -> Pose | None:
    """Return the pose at angles of the motors (rad); None if the links do not meet or are in line."""
    ax, ay = bars.inner * math.cos(a), bars.inner * math.sin(a)
    bx, by = bars.base + bars.inner * math.cos(b), bars.inner * math.sin(b)
    dx, dy = 0.5 * (bx - ax), 0.5 * (by - ay)
    half = math.hypot(dx, dy)
    square = bars.outer**2 - half**2
    if half == 0.0 or square <= 0.0:
        return None
    along = math.sqrt(square) / half
    x, y = ax + dx - along * dy, ay + dy + along * dx
    ux, uy, vx, vy = x - ax, y - ay, x - bx, y - by
    determinant = ux * vy - uy * vx
    by_a = (-ux * ay + uy * ax) / determinant
    by_b = (-vx * by + vy * (bx - bars.base)) / determinant
    return Pose((x, y), ((by_a * vy, -by_b * uy), (-by_a * vx, by_b * ux)))


def angles_of(bars: FiveBar, x: float, y: float) -> Pair | None:
    """Return the angles of the motors (rad) at which the handle is there, elbows outwards; None out of reach."""
    found = []
    for side, from_motor in ((1.0, x), (-1.0, x - bars.base)):
        reach = math.hypot(from_motor, y)
        if not abs(bars.inner - bars.outer) < reach < bars.inner + bars.outer:
            return None
        cosine = (bars.inner**2 + reach**2 - bars.outer**2) / (2.0 * bars.inner * reach)
        found.append(math.atan2(y, from_motor) + side * math.acos(cosine))
    return found[0], found[1]


def torques_of(pose: Pose, force: Pair) -> Pair:
    """Return the torques of the motors (N m) for a force (N) at the handle: the transpose of the Jacobian."""
    (xa, xb), (ya, yb) = pose.jacobian
    return xa * force[0] + ya * force[1], xb * force[0] + yb * force[1]


def force_of(pose: Pose, torques: Pair) -> Pair:
    """Return the force (N) at the handle by torques of the motors (N m)."""
    (xa, xb), (ya, yb) = pose.jacobian
    determinant = xa * yb - xb * ya
    return (yb * torques[0] - ya * torques[1]) / determinant, (xa * torques[1] - xb * torques[0]) / determinant


# -- Messages of Haply's board -------------------------------------------------------------------------------
#
# Messages of Haply's board, as the public ``hAPI`` writes and reads them (gitlab.com/Haply/hAPI, HaplyHAPI 1.0.1).
#
# The first byte is the kind, the second the number of the device. Floats have 4 bytes, little-endian. Nothing marks
# the beginning of a message, and there is no checksum:
#
#     reset       00 id
#     parameters  01 id  motors dir dir  encoders dir dir  00  00  (offset resolution) (offset resolution)
#     torques     02 id  torque torque
#     answer      id  angle angle                                   to each message of torques
#
# ``motors`` and ``encoders`` have a bit for each port; entries for several ports are in the order of the ports. Angles
# and offsets are in degrees, the resolution is in counts per revolution, torques are in N m.

RESET: Final = 0
PARAMETERS: Final = 1
TORQUES: Final = 2
PORTS: Final = 0b11  # ports 1 and 2
MOST_ANGLE: Final = 720.0  # degrees; largest angle in an answer
_ANGLES: Final = struct.Struct("<B2f")
_TORQUES: Final = struct.Struct("<BB2f")
_PARAMETERS: Final = struct.Struct("<BB3B3BBB4f")


class Encoder(NamedTuple):
    """Encoder of a port: direction (1: counterclockwise), offset (degrees), counts per revolution."""

    direction: int
    offset: float
    resolution: float


def reset_message(device: int) -> bytes:
    """Return the message to reset the board."""
    return bytes((RESET, device))


def parameters_message(device: int, motors: tuple[int, int], encoders: tuple[Encoder, Encoder]) -> bytes:
    """Return the message to configure ports 1 and 2: directions of the motors, and the encoders."""
    first, second = encoders
    return _PARAMETERS.pack(
        PARAMETERS, device, PORTS, *motors, PORTS, first.direction, second.direction, 0, 0,
        first.offset, first.resolution, second.offset, second.resolution,
    )  # fmt: skip


def torques_message(device: int, first: float, second: float) -> bytes:
    """Return the message to command torques (N m) of the motors of ports 1 and 2."""
    return _TORQUES.pack(TORQUES, device, first, second)


class AnswerReader:
    """Decoder of answers in a stream of bytes. ``dropped``: bytes outside answers."""

    def __init__(self, device: int) -> None:
        self.dropped = 0
        self._device = device
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[float, float]]:
        """Return the angles (degrees) of the encoders of ports 1 and 2 in the answers completed by these bytes."""
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


# -- Haply's pantograph (2diy) on a serial port, two axes; never run on hardware -----------------------------
#
# The messages are those of Haply's public ``hAPI`` (:mod:`~fsm_dyn.devices.pantograph`): the board answers every
# message of torques with the angles of its two encoders. Position and torques follow from the kinematics of the five
# bars; x and y are those of the hAPI, y away from the motors, from the option ``origin`` on. Velocities are
# estimated.
#
# The board reports no identity, and no watchdog is documented for it: the watchdog process sends torques of zero. The
# offsets of the encoders apply to the position of the handle at the start of a run: hold it against the stops, as the
# maker shows.
#
# Options
# -------
# path : str
#     The serial port; without it the only one there is.
# baud : int
#     Of the line (115200); irrelevant for native USB ports.
# hardware : int
#     2 (metal plate, motors on one axle) or 3 (plastic, the default).
# board : int
#     Number of the device on the board (5).
# origin : list
#     Zero of the positions, from the axle of the first motor, m (in the middle between the motors, 0.11 away).
# torque : float
#     Largest torque of a motor, N m (0.2); larger forces are reduced, with their direction kept.
# force : float
#     Largest force, N; by default the limits of the run are the only ones.
# bandwidth : float
#     Of the velocity estimate, Hz (30).
# workspace : list
#     For each axis its range to either side of zero, or its least and greatest position, m (0.12).
# mass, damping, friction, resolution, delay : float
#     Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.

BAUD: Final = 115_200
BOARD: Final = 5
TORQUE: Final = 0.2  # N m
BANDWIDTH: Final = 30.0  # Hz
REACH: Final = 0.12  # m
AWAY: Final = 0.11  # m, of the origin from the axles
SPEED: Final = 3.0  # m/s, faster than any hand
UNCERTAIN: Final = 1e-3  # s, of the time of an answer
PATIENCE: Final = 4.0  # s for its first answer: some boards restart when their port is opened
AGAIN: Final = 0.05  # s between questions
_KNOWN: Final = frozenset(
    {"path", "baud", "hardware", "board", "origin", "torque", "force", "bandwidth", "workspace", *HANDLE}
)


class Hardware(NamedTuple):
    """A version of the device: its bars, directions of the motors and the encoders, by port."""

    bars: FiveBar
    motors: tuple[int, int]
    encoders: tuple[Encoder, Encoder]


# ports 1 and 2 have the second and the first motor
VERSIONS: Final = {
    2: Hardware(FiveBar(0.07, 0.09, 0.0), (0, 1), (Encoder(0, -61.0, 10752.0), Encoder(1, 241.0, 10752.0))),
    3: Hardware(FiveBar(0.07, 0.09, 0.038), (1, 1), (Encoder(1, 12.0, 4880.0), Encoder(1, 168.0, 4880.0))),
}


class Driver:
    """The pantograph; see the module."""

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        if transport is None:
            raise InputError("the pantograph needs its line", remedy="open_transport returns it")
        self.spec = self.describe(options)
        self._line, self._board = transport, int(options.get("board", BOARD))
        self._hardware = VERSIONS[int(options.get("hardware", 3))]
        self._origin = origin_of(options)
        self._most = float(options.get("torque", TORQUE))
        self._reader = AnswerReader(self._board)
        self._velocity = VelocityFilter(2, float(options.get("bandwidth", BANDWIDTH)))
        self._pose: Pose | None = None
        self._read_before: tuple[float, tuple[float, float]] | None = None  # taken or not
        self._latest = Sample(0.0, 0, (0.0, 0.0), (0.0, 0.0))
        self._counts: Counter[str] = Counter()

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the pantograph by its options."""
        given = OptionReader("pantograph", options, _KNOWN)
        given.count("baud", BAUD, 1, 10_000_000)
        board = given.count("board", BOARD, 0, 255)
        if given.count("hardware", 3, 2, 3) not in VERSIONS or not isinstance(options.get("path", ""), str):
            raise given.invalid("path", "a serial port")
        if not isinstance(options.get("origin", []), list | tuple) or not _is_place(options.get("origin", [0.0, 0.1])):
            raise given.invalid("origin", "two numbers, m")
        given.number("torque", TORQUE, above=True, most=10.0)
        bandwidth = given.number("bandwidth", BANDWIDTH, above=True, most=1e4)
        low, high = given.workspace((REACH, REACH))
        none = torques_message(board, 0.0, 0.0)
        return DeviceSpec(
            "pantograph", 2, SAFE_FRAME, safe_packet=none, zero_frame=none,
            force=given.number("force", float("inf"), above=True), handle=given.handle(bandwidth), low=low, high=high,
            velocity_lag=lag_of(bandwidth),
        )  # fmt: skip

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Open the serial port; raise InputError if there is none, there are several, or it cannot be opened."""
        return sl.open_line(sl.port_for("pantograph", str(options.get("path", ""))), int(options.get("baud", BAUD)))

    def open(self) -> None:
        """Reset and configure the board, and send torques of zero until it answers.

        Raises
        ------
        InputError
            It does not answer.
        """
        hardware = self._hardware
        sl.write_line(self._line, reset_message(self._board))
        sl.write_line(self._line, parameters_message(self._board, hardware.motors, hardware.encoders))
        until = time.monotonic() + PATIENCE
        while self._latest.sequence == 0:
            if time.monotonic() > until:
                raise InputError(
                    "no pantograph answers on the serial port",
                    found=", ".join(f"{count} {name}" for name, count in self.diagnostics().items() if count),
                    remedy="is it Haply's board, and 'board' its number? hold the handle within its reach",
                )
            sl.write_line(self._line, self.spec.zero_frame)
            time.sleep(AGAIN)
            self.read()

    def calibrate(self) -> None:
        """Do nothing: the encoders begin at their offsets when the board is reset."""

    def read(self) -> Sample:
        """Return the latest sample; raise DeviceDisconnected if the device is unplugged."""
        data = b""
        while found := sl.read_line(self._line):
            data += found
        answers = self._reader.feed(data)
        if answers:
            self._take(*answers[-1])
        return self._latest

    def _take(self, second: float, first: float) -> None:
        """Take the angles of ports 1 and 2, degrees."""
        pose = pose_of(self._hardware.bars, math.radians(first), math.radians(second))
        if pose is None:
            self._counts["angles of no pose"] += 1
            return
        now = time.monotonic()
        before, self._read_before = self._read_before, (now, pose.position)
        if before is not None and not _follows(before, (now, pose.position)):
            self._counts["poses that do not follow the one before"] += 1
            return
        self._pose = pose
        position = pose.position[0] - self._origin[0], pose.position[1] - self._origin[1]
        self._latest = Sample(now, self._latest.sequence + 1, position, self._velocity.take(now, position))

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force at the latest position, and return the force after the limit of torque.

        Raises
        ------
        DeviceNotReading, DeviceDisconnected
        """
        if self._pose is None:
            sl.write_line(self._line, self.spec.zero_frame)
            return (0.0, 0.0)
        first, second = torques_of(self._pose, (force[0], force[1]))
        largest = max(abs(first), abs(second))
        part = 1.0 if largest <= self._most else self._most / largest
        if part < 1.0:
            self._counts["forces reduced to the largest torque"] += 1
        sl.write_line(self._line, torques_message(self._board, part * second, part * first))
        return part * force[0], part * force[1]

    def diagnostics(self) -> dict[str, int]:
        """Return counts of invalid bytes and poses, and of forces beyond the motors."""
        return {**self._counts, "bytes of no answer": self._reader.dropped}

    def close(self) -> None:
        """Set the torques to zero; unsent messages stay, as half of one would spoil the next."""
        with contextlib.suppress(sl.DeviceDisconnected):
            sl.write_line(self._line, self.spec.safe_packet)


def _follows(before: tuple[float, tuple[float, float]], now: tuple[float, tuple[float, float]]) -> bool:
    """Whether a device can have moved from one place (m) at a time (s) to another.

    The answers have no checksum: invalid bytes often decode to some pose, but hardly ever to two consistent ones in
    succession.
    """
    return math.dist(before[1], now[1]) <= SPEED * (now[0] - before[0] + UNCERTAIN)


def origin_of(options: Mapping[str, Any]) -> tuple[float, float]:
    """Return the zero of the positions, from the axle of the first motor, m. ``options``: of the driver."""
    bars = VERSIONS[int(options.get("hardware", 3))].bars
    x, y = options.get("origin", (0.5 * bars.base, AWAY))
    return float(x), float(y)


def _is_place(found: Sequence[Any]) -> bool:
    return len(found) == 2 and all(isinstance(x, int | float) and abs(x) < 1.0 for x in found)
