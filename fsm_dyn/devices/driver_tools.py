"""Common parts of drivers: options of drivers and emulators, velocities, connections to devices."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import importlib
import importlib.util
import logging
import math
import os
import pkgutil
import select
import socket
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from ctypes.util import find_library
from typing import Any, Final, Literal, NamedTuple

from websockets.client import ClientProtocol
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

import fsm_dyn.devices
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import opened
from fsm_dyn.core.records import dataclass
from fsm_dyn.devices import emulators
from fsm_dyn.live.driver_protocol import DeviceDynamics

# -- Connections: serial lines, WebSockets, libraries of makers, inherited sockets -----------------------------


# -- Wire formats and connections of devices across a network, without the drivers ---------------------------


def shared(found: socket.socket) -> int:
    """Return the descriptor of a socket for the tick process and the watchdog process to inherit.

    ``found``: an open socket. Raises InputError on Windows a child process cannot inherit a socket, so the watchdog
    process could not remove the force.
    """
    if os.name == "nt":
        found.close()
        raise InputError("a device across a network", found="Windows", allowed="Linux, macOS")
    return found.detach()


# -- Non-blocking serial line, opened raw with system calls --------------------------------------------------
#
# Tick process and watchdog process inherit its descriptor, which libraries cannot take over (docs/decisions/0043).

if sys.platform != "win32":
    import fcntl
    import termios
    import tty

PATTERNS: Final = (
    "/dev/serial/by-id/*", "/dev/ttyACM*", "/dev/ttyUSB*", "/dev/cu.usbmodem*", "/dev/cu.usbserial*",
)  # fmt: skip
CHUNK: Final = 4096  # bytes read at once
_NUMBER: Final = bytes(4)  # room for a C int
_GONE: Final = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)


class DeviceDisconnected(OSError):
    """The device at the other end is gone: unplugged, or its emulator ended."""


class DeviceNotReading(OSError):
    """The device does not accept data."""


def ports() -> list[str]:
    """Return the serial ports of USB devices, each once, by their most descriptive name."""
    found: dict[str, str] = {}
    for pattern in PATTERNS:
        for path in sorted(glob.glob(pattern)):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def port_for(device: str, path: str) -> str:
    """Return the given path, else the only serial port; raise InputError if there is none or more than one."""
    there = [path] if path else ports()
    if len(there) != 1:
        raise InputError(
            f"which serial port is the {device}'s?" if there else "there is no serial port",
            found=", ".join(there),
            remedy="--option path=..." if there else f"plug the {device} in, or try it with --emulate",
        )
    return there[0]


def open_line(path: str, baud: int) -> int:
    """Return the descriptor of a serial port, raw and non-blocking.

    Raises InputError: there is no such port, access is denied, another process has it open, or it has no such rate.
    """
    if sys.platform == "win32":
        raise InputError("serial lines are opened on Linux and macOS only", remedy="run it there, or --emulate")
    try:
        line = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot(path, error) from error
    try:
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released with the last copy of the descriptor
        rate = getattr(termios, f"B{baud}", None)
        if rate is None:
            raise InputError(f"the serial port '{path}' has no rate of {baud} baud", remedy="--option baud=115200")
        tty.setraw(line)  # VMIN is 1: nothing to read is EAGAIN, not the end
        attributes = termios.tcgetattr(line)
        attributes[2] = attributes[2] & ~termios.HUPCL | termios.CLOCAL | termios.CREAD  # not reset when it is closed
        attributes[4] = attributes[5] = rate
        termios.tcsetattr(line, termios.TCSANOW, attributes)
        termios.tcflush(line, termios.TCIOFLUSH)
    except (OSError, termios.error) as error:
        os.close(line)
        raise _cannot(path, error) from error
    except BaseException:
        os.close(line)
        raise
    return line


def _cannot(path: str, error: Exception) -> InputError:
    number = error.errno if isinstance(error, OSError) else None
    there = ", ".join(ports())
    remedy = {
        errno.ENOENT: f"plug the device in; serial ports here: {there or 'none'}; or try it with --emulate",
        errno.EACCES: "join the group that owns it (often: sudo usermod -aG dialout $USER, and log in again)",
        errno.EAGAIN: "end the program that has it open, a serial monitor perhaps",
        errno.EBUSY: "end the program that has it open, a serial monitor perhaps",
    }.get(number or 0, f"is it a serial port? serial ports here: {there or 'none'}")
    return InputError(f"cannot open the serial port '{path}'", found=str(error), remedy=remedy)


def read_line(line: int) -> bytes:
    """Return the bytes received, at once; raises DeviceDisconnected at the end of the line.

    On Linux even a non-blocking read of an empty line waits for a kernel thread without real-time priority, which is
    late on a busy machine.  Therefore the number of bytes is queried first.
    """
    try:
        if not waiting(line):
            return b""
        found = os.read(line, CHUNK)
    except BlockingIOError:
        return b""
    except OSError as error:
        raise _lost(error) from error
    if not found:  # a raw line has an end only when it was hung up
        raise DeviceDisconnected("the device is unplugged: its line was hung up")
    return found


def waiting(line: int) -> int:
    """Return how many bytes can be read at once."""
    return int.from_bytes(fcntl.ioctl(line, termios.FIONREAD, _NUMBER), sys.byteorder)


def write_line(line: int, data: bytes) -> None:
    """Send all bytes at once.

    Raises DeviceNotReading: the line did not accept all bytes. Half a packet may be sent; the leading zero of the next
    one ends it. Raises DeviceDisconnected.
    """
    try:
        sent = os.write(line, data)
    except BlockingIOError as error:
        raise DeviceNotReading("the device takes no more bytes: the line's buffer is full") from error
    except OSError as error:
        raise _lost(error) from error
    if sent < len(data):
        raise DeviceNotReading("the device takes no more bytes: the line's buffer is full")


def discard_unsent(line: int) -> None:
    """Discard unsent bytes, so that the next packet goes out first."""
    try:
        termios.tcflush(line, termios.TCOFLUSH)
    except termios.error as error:
        raise _lost(OSError(*error.args)) from error


def _lost(error: OSError) -> OSError:
    if error.errno in _GONE:
        return DeviceDisconnected(f"the device is unplugged ({error.strerror})")
    return error


# -- WebSocket client (RFC 6455) on a non-blocking socket, also written by another process -------------------
#
# Received bytes go through the protocol of the package ``websockets``, which does no input or output itself. Outgoing
# messages are framed here, independent of the receiving side, so that the force can be removed after invalid input
# too.

_CHUNK: Final = 65536
_LONGEST: Final = 2**18  # bytes of a message
_FAREWELL: Final = 0.1  # s for the last frames
_SILENT: Final = logging.getLogger(f"{__name__}.protocol")  # errors are raised, not logged
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def text_frame(text: str) -> bytes:
    """Return a message as a client sends it, masked."""
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=True)


def close_frame() -> bytes:
    """Return the frame with which a client leaves, masked."""
    return Frame(Opcode.CLOSE, Close(CloseCode.GOING_AWAY, "").serialize()).serialize(mask=True)


class WebSocketLine:
    """The client's end of a WebSocket.

    ``connected``: to the server; nothing was said yet. ``who``: the server's name, for messages.
    """

    def __init__(self, connected: socket.socket, who: str) -> None:
        self._socket, self._who = connected, who
        connected.setblocking(False)
        host, port = connected.getpeername()[:2]
        address = parse_uri(f"ws://[{host}]:{port}/" if ":" in host else f"ws://{host}:{port}/")
        self._protocol = ClientProtocol(address, max_size=_LONGEST, logger=_SILENT)
        self._frames: list[Frame] = []  # received, not yet read
        self._shaken = False
        self._unsent = b""
        self._message = b""  # received part of a message in several frames

    def open(self, patience: float) -> None:
        """Shake hands.

        Raises TimeoutError, ConnectionError: the server does not answer in time (s), or not as one of WebSockets does.
        """
        self._protocol.send_request(self._protocol.connect())
        self._send(b"".join(self._protocol.data_to_send()))
        until = time.monotonic() + patience
        while not self._shaken:
            if time.monotonic() > until:
                raise TimeoutError(f"{self._who} did not answer within {patience:g} s")
            self.wait(0.05)
            self._take()

    def wait(self, patience: float) -> None:
        """Wait until something comes, so long (s) at the most."""
        select.select([self._socket], [], [], patience)

    def receive(self) -> list[bytes]:
        """Return the received messages.

        Raises ConnectionError: the server has closed, or sent invalid WebSocket data.
        """
        self._take()
        found = []
        frames, self._frames = self._frames, []
        for frame in frames:
            if frame.opcode is Opcode.CLOSE:
                raise ConnectionAbortedError(f"{self._who} has closed the connection: {Close.parse(frame.data)}")
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._message += bytes(frame.data)
                if frame.fin:
                    found.append(self._message)
                    self._message = b""
        return found

    def _take(self) -> None:
        """Read the received frames, and answer pings."""
        protocol = self._protocol
        while True:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except ConnectionError as error:
                raise type(error)(f"the connection to {self._who} broke: {error.strerror}") from error
            if not data:
                raise ConnectionAbortedError(f"{self._who} has closed the connection")
            protocol.receive_data(data)
            if protocol.handshake_exc is not None:
                raise ConnectionError(f"{self._who} speaks no WebSocket: {protocol.handshake_exc}")
            if protocol.parser_exc is not None:
                raise ConnectionError(f"{self._who} speaks no WebSocket any more: {protocol.parser_exc}")
        for event in protocol.events_received():
            if isinstance(event, Response):
                self._shaken = True
            elif isinstance(event, Frame):
                self._frames.append(event)
        answers = b"".join(protocol.data_to_send())
        if answers and not any(frame.opcode is Opcode.CLOSE for frame in self._frames):  # a last word is still to come
            self._send(answers)

    def say(self, text: str) -> bool:
        """Send a message; return whether it was sent, False if the buffer is full because the server does not read."""
        return self._send(text_frame(text))

    def _send(self, data: bytes) -> bool:
        """Send whole frames or none; the rest of an unfinished frame goes first."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            self._unsent = data[self._socket.send(data) :]
        except BlockingIOError:
            return False
        except ConnectionError as error:
            raise type(error)(f"the connection to {self._who} broke: {error.strerror}") from error
        return True

    def close(self) -> None:
        """Close the connection, after an unfinished frame."""
        until = time.monotonic() + _FAREWELL
        with contextlib.suppress(OSError):
            while not self._send(close_frame()) and time.monotonic() < until:
                select.select([], [self._socket], [], 0.01)
        self._socket.close()


# -- Loading of a library ------------------------------------------------------------------------------------
#
# Loading of a device maker's library: it is never shipped with this package, but found on this computer.


class Signature(NamedTuple):
    """Result and arguments of a function of C, as types of ctypes."""

    result: Any
    arguments: tuple[Any, ...]


class MakerLibrary(NamedTuple):
    """Requirements of a driver on a library."""

    product: str  # for messages
    names: tuple[str, ...]  # names for the search by the system's loader
    patterns: tuple[str, ...]  # of paths, tried first; ``$NAME`` is a variable of the environment
    functions: Mapping[str, Signature]


_MACHINES: Final = {0x03: "x86", 0x28: "arm", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv"}
_HEADER: Final = 20  # bytes of an ELF header up to its machine


def candidates(wanted: MakerLibrary, path: str) -> list[str]:
    """Return the files or names to try, in order; a given path is the only one."""
    if path:
        return [path]
    files = [
        found for pattern in wanted.patterns for found in sorted(glob.glob(os.path.expandvars(pattern)), reverse=True)
    ]
    return [*files, *(found for name in wanted.names if (found := find_library(name)))]


def load_library(wanted: MakerLibrary, path: str = "") -> tuple[ctypes.CDLL, str]:
    """Return the library with the signatures of its functions, and its path or name.

    Raises InputError: the library is missing, cannot be loaded here, or lacks a function.
    """
    found = candidates(wanted, path)
    if not found:
        raise InputError(
            f"the library of {wanted.product} is not installed",
            allowed=f"{', '.join(wanted.names)}, or a file that the option 'library' names",
            remedy="install the maker's software; it may not ship with this package",
        )
    try:
        library = ctypes.CDLL(found[0])
    except OSError as error:
        raise InputError(
            f"the library of {wanted.product} cannot be loaded",
            found=f"{found[0]}: {machine_of(found[0])}{error}",
            remedy="install the one for this processor, with the libraries that it needs itself",
        ) from error
    declare(library, wanted, found[0])
    return library, found[0]


def declare(library: Any, wanted: MakerLibrary, path: str) -> None:
    """Set the signatures of the functions; raise InputError if one is missing."""
    for name, signature in wanted.functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise InputError(
                f"the library of {wanted.product} is too old, or another one",
                found=f"{path} has no function {name}",
                remedy="install a newer version of the maker's software",
            ) from None
        function.restype, function.argtypes = signature.result, list(signature.arguments)


def machine_of(path: str) -> str:
    """Return, for a message, the processor of an ELF file; empty for other files."""
    try:
        with opened(path) as file:
            header = file.read(_HEADER)
    except InputError:
        return ""
    if len(header) < _HEADER or header[:4] != b"\x7fELF":
        return ""
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    number = int.from_bytes(header[18:20], order)
    return f"made for {_MACHINES.get(number, f'machine {number}')}; "


# -- Options and velocities ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DriverInfo:
    """A shipped driver."""

    name: str
    about: str  # first line of its docstring
    missing: str  # required package that is not installed; empty if there is none
    emulated: bool  # whether it has an emulator


def shipped_drivers() -> list[DriverInfo]:
    """Return the shipped drivers, by name."""
    emulated = {module.name for module in pkgutil.iter_modules(emulators.__path__)}
    found = []
    for module in pkgutil.iter_modules(fsm_dyn.devices.__path__):
        if module.ispkg:
            continue
        missing, about = "", ""
        try:
            loaded = importlib.import_module(f"{fsm_dyn.devices.__name__}.{module.name}")
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
        else:
            if not hasattr(loaded, "Driver"):
                continue
            about = (loaded.__doc__ or "").partition("\n")[0].rstrip(".")
        found.append(DriverInfo(module.name, about, missing, module.name in emulated))
    return found


# -- Validation of driver and emulator options ---------------------------------------------------------------
#
# Validation of driver and emulator options: errors name the option and the allowed values.

LARGEST: Final = 1e100  # of a given number
HANDLE: Final = ("mass", "damping", "friction", "resolution", "delay")  # of any device, see Handle


class OptionReader:
    """The options of a driver or an emulator.

    ``whose``: for messages: ``driver udp``; ``known``: names of the existing options. Raises InputError: an option is
    unknown. The methods raise it for invalid values.
    """

    def __init__(self, whose: str, options: Mapping[str, Any], known: Collection[str]) -> None:
        self._whose, self._options = whose, options
        for name in options:
            if name not in known:
                raise InputError(f"the {whose} has no option '{name}'", allowed=", ".join(sorted(known)))

    def invalid(self, name: str, allowed: str) -> InputError:
        """Return the complaint about an option."""
        return InputError(f"{name} of the {self._whose}", found=str(self._options.get(name)), allowed=allowed)

    def number(
        self, name: str, usual: float, *, least: float = 0.0, most: float = math.inf, above: bool = False
    ) -> float:
        """Return a number from ``least`` (or above it) to ``most``, in SI units."""
        if name not in self._options:
            return usual
        found = self._options[name]
        if not (_is_number(found) and (least < found or (found == least and not above)) and found <= most):
            to = f" to {most:g}" if most < math.inf else ""
            raise self.invalid(name, f"a number {'above' if above else 'from'} {least:g}{to}, in SI units")
        return float(found)

    def count(self, name: str, usual: int, least: int, most: int) -> int:
        """Return a whole number."""
        found = self._options.get(name, usual)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.invalid(name, f"{least} to {most}")
        return found

    def choice(self, name: str, usual: str, allowed: Collection[str]) -> str:
        """Return one of a few words."""
        found = str(self._options.get(name, usual))
        if found not in allowed:
            raise self.invalid(name, ", ".join(allowed))
        return found

    def motion(self, axes: int) -> list[list[float]]:
        """Return the option ``motion``: axis, amplitude, frequency and phase of each sine."""
        found = self._options.get("motion", ())
        if not isinstance(found, list | tuple) or not all(
            isinstance(sine, list | tuple) and len(sine) == 4 and all(map(_is_number, sine)) and sine[0] in range(axes)
            for sine in found
        ):
            raise self.invalid("motion", f"a list of [axis from 0 to {axes - 1}, amplitude, frequency, phase]")
        return [[float(number) for number in sine] for sine in found]

    def turns(self, axes: int) -> tuple[int, ...]:
        """Return the option ``turns``: the rotational axes."""
        found = self._options.get("turns", ())
        if not isinstance(found, list | tuple) or not all(isinstance(x, int) and 0 <= x < axes for x in found):
            raise self.invalid("turns", f"a list of numbers from 0 to {axes - 1}")
        return tuple(found)

    def workspace(self, usual: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the least and the greatest position of each axis, by default ``usual`` to either side of zero.

        The option ``workspace`` is a list with, for each axis, a number (to either side) or two (least and greatest).
        """
        found = self._options.get("workspace", list(usual))
        pairs = [[-item, item] if isinstance(item, int | float) else item for item in _listed(found)]
        if len(pairs) != len(usual) or not all(map(is_pair, pairs)):
            raise self.invalid("workspace", f"for each of {len(usual)} axes a number above 0, or [least, greatest]")
        return tuple(float(low) for low, _ in pairs), tuple(float(high) for _, high in pairs)

    def handle(self, velocity_bandwidth: float | None = None) -> DeviceDynamics:
        """Return the apparent dynamics of the device, as far as the options give them.

        ``velocity_bandwidth``: see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.
        """
        known = {name: self.number(name, 0.0) for name in HANDLE if name in self._options}
        return DeviceDynamics(**known, velocity_bandwidth=velocity_bandwidth)


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= LARGEST


def is_pair(found: Any) -> bool:
    """Return whether something is two numbers, the second the larger one. ``found``: the value of an option."""
    return isinstance(found, list | tuple) and len(found) == 2 and all(map(_is_number, found)) and found[0] < found[1]


def _listed(found: Any) -> list[Any]:
    """Return an option (one item or a list of them) as a list."""
    return list(found) if isinstance(found, list | tuple) else [found]


# -- Velocity estimation for devices -------------------------------------------------------------------------
#
# Velocity estimation for devices without velocity sensor: from positions, or by a critically damped filter.


class VelocityFilter:
    """The difference quotient through a filter of first order.

    With `f` the bandwidth and `h` the time since the sample before,

        v <- v + (1 - exp(-2 pi f h)) (dx / h - v)

    which is the exact answer of ``v' = 2 pi f (dx/dt - v)`` to a quotient held over the step; it lags by ``1 / (2 pi
    f)`` and lets the steps of a sensor of resolution ``r`` through as ``2 pi f r`` instead of ``r / h``. ``bandwidth``:
    Hz.
    """

    def __init__(self, axes: int, bandwidth: float) -> None:
        self._rate = 2.0 * math.pi * bandwidth
        self._axes = axes
        self.forget()

    def forget(self) -> None:
        """Begin again, at rest."""
        self._before: tuple[float, Sequence[float]] | None = None
        self._velocity = [0.0] * self._axes

    def take(self, time: float, position: Sequence[float]) -> tuple[float, ...]:
        """Take a position (m or rad) of a later time (s) and return the velocity; of no later one, it is not taken."""
        if self._before is not None:
            since, where = self._before
            step = time - since
            if step <= 0.0:
                return tuple(self._velocity)
            part = -math.expm1(-self._rate * step)
            for i, (x, before) in enumerate(zip(position, where, strict=True)):
                self._velocity[i] += part * ((x - before) / step - self._velocity[i])
        self._before = time, tuple(position)
        return tuple(self._velocity)


def critically_damped_step(
    position: list[float], velocity: list[float], target: Sequence[float], step: float, bandwidth: float
) -> None:
    """Move positions and velocities by a step (s) towards targets, as a critically damped filter does.

    ``x'' = w^2 (target - x) - 2 w x'`` with ``w = 2 pi bandwidth`` (Hz), solved for the velocity at the end of the
    step: never unstable, and without overshoot. ``position``: of each axis, m or rad; changed in place. ``velocity``:
    of each axis, m/s or rad/s; changed in place. ``target``: positions approached, m or rad. ``step``: length of the
    step, s. ``bandwidth``: of the filter, Hz.
    """
    w = 2.0 * math.pi * bandwidth
    for i, place in enumerate(target):
        pull = w * w * (place - position[i])
        velocity[i] = (velocity[i] + step * pull) / (1.0 + 2.0 * step * w + step * step * w * w)
        position[i] += step * velocity[i]
