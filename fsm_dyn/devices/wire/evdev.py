"""Interface of Linux's ``/dev/input/event*``: events, requests, and force-feedback effects.

Sizes, offsets and numbers are those of ``linux/input.h``, with which the tests compare them.  Effects are used as in
the kernel's "Force feedback for Linux" (Documentation/input/ff.rst).
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
from typing import Final

from fsm_dyn.errors import InputError

EVENT: Final = struct.Struct("@llHHi")  # struct input_event: seconds, microseconds, type, code, value
READ, WRITE = 2, 1  # _IOC_READ, _IOC_WRITE
EV_FF: Final = 0x15
FF_GAIN: Final = 0x60
FF_BYTES: Final = 0x80 // 8  # FF_CNT bits
EFFECTS: Final = {"rumble": 0x50, "constant": 0x52}  # FF_RUMBLE, FF_CONSTANT
# struct ff_effect: type, id, direction, trigger (button, interval), replay (length, delay), then a union, that is as
# long as struct ff_periodic_effect: waveform to phase, envelope, length and address of data
HEAD: Final = struct.Struct("@HhHHHHH0P")
UNION: Final = struct.calcsize("@HHhhH4HIP")
EFFECT_SIZE: Final = HEAD.size + UNION
CONSTANT: Final = struct.Struct("@h4H")  # level, envelope
RUMBLE: Final = struct.Struct("@HH")  # magnitudes of the heavy and of the light motor
LENGTH: Final = 0.05  # s, after which an effect that is not played again has ended
REFRESH: Final = 0.02  # s between plays of the same effect
INTERVAL: Final = 0.004  # s between changes; what ends a force does not wait
_MOST: Final = {"rumble": 0xFFFF, "constant": 0x7FFF}
_STEPS: Final = 256  # of a level and of a turn: less is no change
NO_GAIN: Final = EVENT.pack(0, 0, EV_FF, FF_GAIN, 0)  # ends all that is shown, whatever it is
FULL_GAIN: Final = EVENT.pack(0, 0, EV_FF, FF_GAIN, 0xFFFF)


def request(direction: int, number: int, size: int) -> int:
    """Return the number of an ioctl of evdev, by the rule of asm-generic/ioctl.h."""
    return direction << 30 | size << 16 | ord("E") << 8 | number


def bits_request(kind: int, size: int) -> int:
    """Return the number of the ioctl ``EVIOCGBIT(kind, size)``: which codes of a kind the device has."""
    return request(READ, 0x20 + kind, size)


def has(bits: bytes, code: int) -> bool:
    """Return whether the bit of a code is set."""
    return bool(bits[code // 8] >> code % 8 & 1)


def direction_of(right: float, down: float) -> int:
    """Return a direction as ``ff_effect`` has it: 0 is down, 0x4000 left, 0x8000 up, 0xC000 right."""
    return round(math.atan2(-right, down) / (2.0 * math.pi) * 0x10000) & 0xFFFF


def effect(kind: str, number: int, part: float, direction: int = 0) -> bytearray:
    """Return an effect of ``LENGTH`` seconds, as large a part of the largest; number -1: a new one."""
    level = round(_MOST[kind] * part)
    shown = CONSTANT.pack(level, 0, 0, 0, 0) if kind == "constant" else RUMBLE.pack(level, level // 2)
    head = HEAD.pack(EFFECTS[kind], number, direction, 0, 0, round(1e3 * LENGTH), 0)
    return bytearray(head + shown.ljust(UNION, b"\0"))


class ForceFeedback:
    """One effect of a device, that ends by itself where it is not played again.

    Parameters
    ----------
    descriptor : int
        Of the device file, open for reading and writing.
    kind : str
        ``rumble`` or ``constant``.
    full : float
        The force at the largest level, N.
    """

    def __init__(self, descriptor: int, kind: str, full: float) -> None:
        self._descriptor, self._kind, self._full = descriptor, kind, full
        self._number, self._level, self._sent = -1, (0, 0), -math.inf
        self.shown = (0.0, 0.0)  # right and down, N
        self.failures = 0

    def open(self) -> None:
        """Make the effect; nothing is shown yet.

        Raises
        ------
        InputError
            The device has no such effect.
        """
        try:
            bits = _ioctl(self._descriptor, bits_request(EV_FF, FF_BYTES), bytearray(FF_BYTES))
            if not has(bits, EFFECTS[self._kind]):
                raise OSError("no such effect")
            self._upload(0.0, 0)
        except OSError as error:
            raise InputError(
                f"the gamepad shows no force by {self._kind}",
                found=error.strerror or str(error),
                remedy="choose another by --option feedback=..., one of none, rumble, constant",
            ) from error

    def _upload(self, part: float, direction: int) -> None:
        made = effect(self._kind, self._number, part, direction)
        _ioctl(self._descriptor, request(WRITE, 0x80, EFFECT_SIZE), made)
        self._number = HEAD.unpack_from(made)[1]

    def show(self, now: float, right: float, down: float) -> None:
        """Show a force (N), now (s, by any steady clock), or go on showing it; a failure is counted."""
        size = math.hypot(right, down)
        part, direction = min(1.0, size / self._full), direction_of(right, down) if self._kind == "constant" else 0
        level = (math.ceil(part * _STEPS), direction * _STEPS >> 16 if size else 0)
        same, since = level == self._level, now - self._sent
        if since < (REFRESH if same else INTERVAL) and not (level[0] == 0 and not same):
            return
        if level[0] == 0 and same:
            return
        try:
            if not same:
                self._upload(part, direction)
            play = EVENT.pack(0, 0, EV_FF, self._number, int(part > 0.0))
            os.write(self._descriptor, FULL_GAIN + play)
        except OSError:
            self.failures += 1
            return
        self._level, self._sent = level, now
        scale = min(1.0, self._full / size) if size else 0.0
        self.shown = (scale * right, scale * down)

    def close(self) -> None:
        """End the effect and have the device forget it; the device may be gone."""
        with contextlib.suppress(OSError):
            if self._number >= 0:
                os.write(self._descriptor, FULL_GAIN + EVENT.pack(0, 0, EV_FF, self._number, 0))
                _ioctl(self._descriptor, request(WRITE, 0x81, struct.calcsize("@i")), self._number)
        self._number, self.shown = -1, (0.0, 0.0)


def _ioctl(descriptor: int, number: int, given: bytearray | int) -> bytes:
    """Carry out an ioctl, which may change the bytes that it is given; return them."""
    import fcntl  # not on every system

    fcntl.ioctl(descriptor, number, given)
    return b"" if isinstance(given, int) else bytes(given)
