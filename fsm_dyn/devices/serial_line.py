"""Non-blocking serial line, opened raw with system calls.

Tick process and watchdog process inherit its descriptor, which libraries cannot take over (docs/decisions/0043).
"""

from __future__ import annotations

import errno
import glob
import os
import sys
from typing import Final

from fsm_dyn.errors import InputError

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
    """The device does not take what is sent to it."""


def ports() -> list[str]:
    """Return the serial ports of USB devices, each once, by their most descriptive name."""
    found: dict[str, str] = {}
    for pattern in PATTERNS:
        for path in sorted(glob.glob(pattern)):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def port_for(device: str, path: str) -> str:
    """Return the path that is given, or the only serial port there is; raise InputError if it is not the only one."""
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

    Raises
    ------
    InputError
        There is no such port, access is denied, another process has it open, or it has no such rate.
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

    On Linux even a non-blocking read of an empty line waits for the thread of the kernel that forwards bytes, which has
    no real-time priority and is late on a busy machine.  Therefore the number of bytes is queried first.
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
    """Send all of it at once.

    Raises
    ------
    DeviceNotReading
        The line did not take all of it.  Half a packet may be sent; the zero that begins the next one ends it.
    DeviceDisconnected
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
