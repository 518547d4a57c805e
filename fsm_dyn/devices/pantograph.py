"""Haply's pantograph (2diy) on a serial port, two axes; never run on hardware.

The messages are those of Haply's public ``hAPI`` (:mod:`~fsm_dyn.devices.wire.haply_board`): the board answers every
message of torques with the angles of its two encoders.  Position and torques follow from the kinematics of the five
bars; x and y are those of the hAPI, y away from the motors, from the option ``origin`` on.  Velocities are estimated.

The board reports no identity, and no watchdog of it is documented: the watchdog process sends torques of zero.  The
offsets of the encoders apply where the handle is when a run starts: hold it against the stops, as the maker shows.

Options
-------
path : str
    The serial port; without it the only one there is.
baud : int
    Of the line (115200); ports that are USB all the way do not mind.
hardware : int
    2 (metal plate, motors on one axle) or 3 (plastic, the default).
board : int
    Number of the device on the board (5).
origin : list
    Zero of the positions, from the axle of the first motor, m (in the middle between the motors, 0.11 away).
torque : float
    Largest torque of a motor, N m (0.2); a force that needs more is reduced, its direction kept.
force : float
    Largest force, N; by default the limits of the run are the only ones.
bandwidth : float
    Of the velocity estimate, Hz (30).
workspace : list
    For each axis how far it goes to either side of zero, or its least and greatest position, m (0.12).
mass, damping, friction, resolution, delay : float
    Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fsm_dyn.devices import serial_line as sl
from fsm_dyn.devices.driver_options import HANDLE, OptionReader
from fsm_dyn.devices.velocity_estimation import VelocityFilter
from fsm_dyn.devices.wire import haply_board as hb
from fsm_dyn.devices.wire.five_bar import FiveBar, Pose, pose_of, torques_of
from fsm_dyn.errors import InputError
from fsm_dyn.live.driver_protocol import SAFE_FRAME, DeviceSpec, Sample

BAUD: Final = 115_200
BOARD: Final = 5
TORQUE: Final = 0.2  # N m
BANDWIDTH: Final = 30.0  # Hz
REACH: Final = 0.12  # m
AWAY: Final = 0.11  # m, of the origin from the axles
SPEED: Final = 3.0  # m/s, beyond that of any hand
UNCERTAIN: Final = 1e-3  # s, of the time of an answer
PATIENCE: Final = 4.0  # s until it answers: some boards restart when their port is opened
AGAIN: Final = 0.05  # s between questions
_KNOWN: Final = frozenset(
    {"path", "baud", "hardware", "board", "origin", "torque", "force", "bandwidth", "workspace", *HANDLE}
)


class Hardware(NamedTuple):
    """A version of the device: its bars, directions of the motors and the encoders, by port."""

    bars: FiveBar
    motors: tuple[int, int]
    encoders: tuple[hb.Encoder, hb.Encoder]


# ports 1 and 2 have the second and the first motor
VERSIONS: Final = {
    2: Hardware(FiveBar(0.07, 0.09, 0.0), (0, 1), (hb.Encoder(0, -61.0, 10752.0), hb.Encoder(1, 241.0, 10752.0))),
    3: Hardware(FiveBar(0.07, 0.09, 0.038), (1, 1), (hb.Encoder(1, 12.0, 4880.0), hb.Encoder(1, 168.0, 4880.0))),
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
        self._reader = hb.AnswerReader(self._board)
        self._velocity = VelocityFilter(2, float(options.get("bandwidth", BANDWIDTH)))
        self._pose: Pose | None = None
        self._read_before: tuple[float, tuple[float, float]] | None = None  # taken or not
        self._latest = Sample(0.0, 0, (0.0, 0.0), (0.0, 0.0))
        self._counts: Counter[str] = Counter()

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return what the options say of the pantograph."""
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
        none = hb.torques_message(board, 0.0, 0.0)
        return DeviceSpec(
            "pantograph", 2, SAFE_FRAME, safe_packet=none, zero_frame=none,
            force=given.number("force", float("inf"), above=True), handle=given.handle(bandwidth), low=low, high=high,
        )  # fmt: skip

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Open the serial port; raise InputError where there is none, there are several, or it cannot be opened."""
        return sl.open_line(sl.port_for("pantograph", str(options.get("path", ""))), int(options.get("baud", BAUD)))

    def open(self) -> None:
        """Reset and configure the board, and send torques of zero until it answers.

        Raises
        ------
        InputError
            It does not answer.
        """
        hardware = self._hardware
        sl.write_line(self._line, hb.reset_message(self._board))
        sl.write_line(self._line, hb.parameters_message(self._board, hardware.motors, hardware.encoders))
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
        """Return the latest sample; raise DeviceDisconnected where the device is unplugged."""
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
        """Show a force at the latest position, and return what the largest torque leaves of it.

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
        sl.write_line(self._line, hb.torques_message(self._board, part * second, part * first))
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

    The answers have no checksum: of bytes that are none, many make some pose, but hardly two in succession that agree.
    """
    return math.dist(before[1], now[1]) <= SPEED * (now[0] - before[0] + UNCERTAIN)


def origin_of(options: Mapping[str, Any]) -> tuple[float, float]:
    """Return the zero of the positions, from the axle of the first motor, m.

    Parameters
    ----------
    options : Mapping[str, Any]
        Of the driver.
    """
    bars = VERSIONS[int(options.get("hardware", 3))].bars
    x, y = options.get("origin", (0.5 * bars.base, AWAY))
    return float(x), float(y)


def _is_place(found: Sequence[Any]) -> bool:
    return len(found) == 2 and all(isinstance(x, int | float) and abs(x) < 1.0 for x in found)
