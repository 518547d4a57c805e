"""A gamepad or joystick read through Linux evdev: it moves a port, with rumble or constant force."""

from __future__ import annotations

import contextlib
import math
import os
import re
import struct
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import OptionReader, critically_damped_step, is_pair
from fsm_dyn.live.driver_protocol import SAFE_FRAME, WATCHDOG, DeviceSpec, Sample

# -- Interface of Linux's ``/dev/input/event*``: events, requests, and force-feedback effects ----------------
#
# Sizes, offsets and numbers are those of ``linux/input.h``, with which the tests compare them. Effects are used as in
# the kernel's "Force feedback for Linux" (Documentation/input/ff.rst).

EVENT: Final = struct.Struct("@llHHi")  # struct input_event: seconds, microseconds, type, code, value
READ, WRITE = 2, 1  # _IOC_READ, _IOC_WRITE
EV_FF: Final = 0x15
FF_GAIN: Final = 0x60
FF_BYTES: Final = 0x80 // 8  # FF_CNT bits
EFFECTS: Final = {"rumble": 0x50, "constant": 0x52}  # FF_RUMBLE, FF_CONSTANT
# struct ff_effect: type, id, direction, trigger (button, interval), replay (length, delay), then a union as long as
# struct ff_periodic_effect: waveform to phase, envelope, length and address of data
HEAD: Final = struct.Struct("@HhHHHHH0P")
UNION: Final = struct.calcsize("@HHhhH4HIP")
EFFECT_SIZE: Final = HEAD.size + UNION
CONSTANT: Final = struct.Struct("@h4H")  # level, envelope
RUMBLE: Final = struct.Struct("@HH")  # magnitudes of the heavy and of the light motor
LENGTH: Final = 0.05  # s, duration of an effect not played again
REFRESH: Final = 0.02  # s between plays of the same effect
INTERVAL: Final = 0.004  # s between changes; removing a force does not wait
_MOST: Final = {"rumble": 0xFFFF, "constant": 0x7FFF}
_STEPS: Final = 256  # of a level and of a turn: smaller changes are ignored
NO_GAIN: Final = EVENT.pack(0, 0, EV_FF, FF_GAIN, 0)  # removes every force
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
    """One effect of a device; it expires unless played again.

    ``descriptor``: of the device file, open for reading and writing; ``kind``: ``rumble`` or ``constant``; ``full``:
    the force at the largest level, N.
    """

    def __init__(self, descriptor: int, kind: str, full: float) -> None:
        self._descriptor, self._kind, self._full = descriptor, kind, full
        self._number, self._level, self._sent = -1, (0, 0), -math.inf
        self.shown = (0.0, 0.0)  # right and down, N
        self.failures = 0

    def open(self) -> None:
        """Make the effect; nothing is shown yet. Raises InputError: the device has no such effect."""
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
        """Exert a force (N) now (s, by any steady clock), or continue it; a failure is counted."""
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
    """Carry out an ioctl, which may change the given bytes; return them."""
    import fcntl  # not on every system

    fcntl.ioctl(descriptor, number, given)
    return b"" if isinstance(given, int) else bytes(given)


# -- A gamepad or joystick read through Linux evdev ----------------------------------------------------------
#
# A gamepad or joystick read through Linux evdev: it moves a port, with rumble or constant force.
#
# In mode ``position`` a stick's deflection is a position, at most ``reach``, smoothed by a critically damped filter,
# which also gives the velocity. In mode ``rate`` the deflection is a velocity, at most ``speed``, which is integrated.
# When the gamepad is unplugged, its sticks return to the middle and its buttons are released; then there are no new
# samples.
#
# Options
# -------
# device : str
#     Such as ``/dev/input/event5``; by default the only gamepad present.
# axes : list of str
#     Control for each axis: ``x``, ``y``, ``z``, ``rx``, ``ry``, ``rz``, ``throttle``, ``rudder``, ``hat0x``,
#     ``hat0y``, with ``-`` in front to turn it (``x``, ``-y``: a stick pushed away from oneself moves up).
# turns : list of int
#     Rotational axes: reach and speed are in rad and rad/s (none).
# mode : str
#     ``position`` or ``rate`` (position).
# reach, speed : float
#     At full deflection, m (0.1) and m/s (0.2).
# dead_zone : float
#     Part of the deflection treated as the middle (0.1).
# bandwidth : float
#     Of the filter, Hz (12).
# ranges : mapping
#     Least and greatest value of each axis, as ``{"x": [-32768, 32767]}``, if the device does not report them.
# feedback : str
#     ``none``, ``rumble`` (vibration in proportion to the force) or ``constant`` (the motors of a joystick or a wheel
#     exert the force on its axes ``x`` and ``y``) (none).
# force : float
#     Force at the largest level, N, or N m for a rotation axis (5).
# reverse : bool
#     Whether the device reads a direction as the origin of a force, not as its destination (false).
#
# Buttons 0 to 15 are those of a gamepad (``BTN_SOUTH`` is 0) or joystick (``BTN_TRIGGER`` is 0), in the order of their
# codes; 16 to 19 are the D-pad's up, down, left and right. A D-pad reported as four buttons (``BTN_DPAD_UP`` and
# following) moves ``hat0x`` and ``hat0y`` too; one reported as a hat presses the buttons.
#
# After an overflow of the kernel's buffer (``SYN_DROPPED``), axes and buttons are queried again: at once, and after
# the rest of the packet, which is ignored.

# from linux/input.h and linux/input-event-codes.h
ABSOLUTE: Final = struct.Struct("@6i")  # struct input_absinfo: value, minimum, maximum, fuzz, flat, resolution
EV_SYN, EV_KEY, EV_ABS, EV_MOST = 0, 1, 3, 0x1F
SYN_REPORT, SYN_DROPPED = 0, 3
KEY_BYTES: Final = 0x300 // 8  # KEY_CNT bits
KEYS_PRESSED: Final = 0x18  # EVIOCGKEY
BUTTONS: Final = range(0x120, 0x140)
DPAD: Final = range(0x220, 0x224)  # up, down, left, right
HAT_X, HAT_Y = 0x10, 0x11
HAT_RANGE: Final = (-1, 1)
CODES: Final = {
    "x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5, "throttle": 6, "rudder": 7, "hat0x": 0x10, "hat0y": 0x11,
}  # fmt: skip
MODES: Final = ("position", "rate")
FEEDBACK: Final = ("none", "rumble", "constant")
FORCE: Final = 5.0  # N
REACH, SPEED, DEAD_ZONE, BANDWIDTH = 0.1, 0.2, 0.1, 12.0  # m, m/s, part of the way, Hz
_EVENTS_PER_TICK: Final = 64  # events taken in a tick
_LONGEST: Final = 0.01  # s, the longest step of the filter
_REST: Final = 1e-3  # of reach or speed, below which an unplugged stick counts as at rest
_BEYOND: Final = 1.1  # of the reach: unreachable for a stick in mode ``position``
_KNOWN: Final = frozenset(
    {"device", "axes", "turns", "mode", "reach", "speed", "dead_zone", "bandwidth", "ranges"}
    | {"feedback", "force", "reverse"}
)


def absolute_request(code: int) -> int:
    """Return the number of the ioctl ``EVIOCGABS(code)``."""
    return request(READ, 0x40 + code, ABSOLUTE.size)


def button_of(code: int) -> int:
    """Return the bit of a button by its code, 0 for none."""
    if code in BUTTONS:
        return 1 << (code & 0xF)
    return 1 << 16 + code - DPAD.start if code in DPAD else 0


def gamepads(listing: str = "/proc/bus/input/devices") -> dict[str, str]:
    """Return the names of the gamepads there are by their device files."""
    try:
        blocks = Path(listing).read_text(encoding="utf-8", errors="replace").split("\n\n")
    except OSError:
        return {}
    found: dict[str, str] = {}
    for block in blocks:
        name, handlers = re.search(r'^N: Name="(.*)"', block, re.M), re.search(r"^H: Handlers=(.*)", block, re.M)
        names = handlers[1].split() if handlers else []
        if any(re.fullmatch(r"js\d+", each) for each in names):
            found |= {f"/dev/input/{each}": name[1] if name else "" for each in names if each.startswith("event")}
    return found


def deflection(value: int, least: int, greatest: int, dead_zone: float) -> float:
    """Return a value as -1 to 1 from the middle of its range, without the dead zone."""
    middle, half = 0.5 * (least + greatest), 0.5 * (greatest - least)
    part = max(-1.0, min(1.0, (value - middle) / half))
    beyond = max(0.0, abs(part) - dead_zone) / (1.0 - dead_zone)
    return beyond if part > 0.0 else -beyond


class Driver:
    """The gamepad; see the module."""

    SELECTED_BY: Final[tuple[str, ...]] = ("device",)

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        self.spec = self.describe(options)
        self._transport = -1 if transport is None else transport
        named = named_axes(options)
        self._signs = [-1.0 if name.startswith("-") else 1.0 for name in named]
        self._codes = [CODES[name.removeprefix("-")] for name in named]
        self._given = {CODES[name]: (int(a), int(b)) for name, (a, b) in dict(options.get("ranges") or {}).items()}
        self._rate = options.get("mode", "position") == "rate"
        self._largest = float(options.get("speed", SPEED) if self._rate else options.get("reach", REACH))
        self._dead_zone = float(options.get("dead_zone", DEAD_ZONE))
        self._bandwidth = float(options.get("bandwidth", BANDWIDTH))
        self._position, self._velocity = [0.0] * self.spec.axes, [0.0] * self.spec.axes
        self._ranges: dict[int, tuple[int, int]] = {}
        self._deflected = dict.fromkeys(self._codes, 0.0)
        self._buttons, self._rest, self._readings = 0, b"", 0
        self._gone = self._lost = False
        self._before = time.monotonic()
        self.strange: Counter[str] = Counter()
        kind, self._feedback = str(options.get("feedback", FEEDBACK[0])), None
        if kind != FEEDBACK[0]:
            self._feedback = ForceFeedback(self._transport, kind, float(options.get("force", FORCE)))
        self._pushes = [self._codes.index(code) if code in self._codes else -1 for code in (CODES["x"], CODES["y"])]
        self._toward = -1.0 if options.get("reverse", False) else 1.0
        self._directed = kind == "constant"

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with the device, if there is only one.

        Raises
        ------
        InputError
            There is none, or more than one to choose from.
        """
        if options.get("device"):
            return dict(options)
        there = gamepads()
        if len(there) != 1:
            raise InputError(
                "which gamepad?" if there else "no gamepad",
                found=", ".join(f"{path} ({name})" for path, name in there.items()) or "none is plugged in",
                remedy="--option device=/dev/input/event...; without one: --emulate",
            )
        return {**options, "device": next(iter(there))}

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the gamepad by its options."""
        given, named = OptionReader("driver gamepad", options, _KNOWN), named_axes(options)
        if not 1 <= len(named) <= 6 or not all(name.removeprefix("-") in CODES for name in named):
            raise given.invalid("axes", f"1 to 6 of {', '.join(CODES)}")
        given.choice("mode", MODES[0], MODES)
        for name, usual in (("reach", REACH), ("speed", SPEED), ("bandwidth", BANDWIDTH)):
            given.number(name, usual, above=True)
        given.number("dead_zone", DEAD_ZONE, most=0.9)
        ranges = options.get("ranges") or {}
        if not isinstance(ranges, Mapping) or not all(name in CODES and is_pair(ends) for name, ends in ranges.items()):
            raise given.invalid("ranges", "[least, greatest] for names of axes")
        turns, low, high = given.turns(len(named)), tuple[float, ...](), tuple[float, ...]()
        if options.get("mode", MODES[0]) == "position":
            low, high = given.workspace([_BEYOND * float(options.get("reach", REACH))] * len(named))
        kind, full = given.choice("feedback", FEEDBACK[0], FEEDBACK), given.number("force", FORCE, above=True)
        if not isinstance(options.get("reverse", False), bool):
            raise given.invalid("reverse", "true, false")
        if kind == FEEDBACK[0]:
            return DeviceSpec("gamepad", len(named), WATCHDOG, rotational_axes=turns, low=low, high=high, felt=False)
        felt = kind == "constant"
        if felt and not {"x", "y"} & {name.removeprefix("-") for name in named}:
            raise given.invalid("axes", "x, y or both: these are what a constant force pushes")
        most = full if felt else math.inf
        return DeviceSpec(
            "gamepad",
            len(named),
            SAFE_FRAME,
            watchdog=LENGTH,
            safe_packet=NO_GAIN,
            zero_frame=NO_GAIN,
            force=most,
            torque=most,
            rotational_axes=turns,
            low=low,
            high=high,
            felt=felt,
        )

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return the descriptor of the device file."""
        if not sys.platform.startswith("linux"):
            raise InputError("the driver gamepad", found=sys.platform, allowed="Linux", remedy="use udp or the page")
        path = str(options.get("device", ""))
        try:
            shows = options.get("feedback", FEEDBACK[0]) != FEEDBACK[0]
            return os.open(path, (os.O_RDWR if shows else os.O_RDONLY) | os.O_NONBLOCK)
        except PermissionError as error:
            raise InputError(
                f"the gamepad '{path}' may not be read",
                found=str(error.strerror),
                remedy="join the group input: sudo usermod -aG input $USER, then log in anew",
            ) from error
        except OSError as error:
            raise InputError(
                f"no gamepad '{path}'",
                found=f"{error.strerror}; there are {', '.join(gamepads()) or 'none'}",
                remedy="--option device=/dev/input/event...",
            ) from error

    def open(self) -> None:
        """Query the ranges and values of the axes and the state of the buttons.

        Raises
        ------
        InputError
            The device does not report a range, and the option ``ranges`` does not give it.
        """
        keys = self._asked(bits_request(EV_KEY, KEY_BYTES), KEY_BYTES)
        pad = keys is not None and has(keys, DPAD.start)
        for code in {*self._codes, HAT_X, HAT_Y}:
            told, hat = self._axis(code), code in (HAT_X, HAT_Y)
            if code in self._given or told is not None:
                self._ranges[code] = self._given.get(code, told[1:] if told else HAT_RANGE)
            elif hat and (pad or code not in self._codes):
                self._ranges[code] = HAT_RANGE
            else:
                name = next(name for name, number in CODES.items() if number == code)
                raise InputError(f"the gamepad has no axis '{name}'", remedy="choose others by --option axes=...")
        self._ask()
        if self._feedback is not None:
            self._feedback.open()

    def _ask(self) -> None:
        """Take the states of axes and buttons from the kernel, if it answers."""
        pressed = self._asked(request(READ, KEYS_PRESSED, KEY_BYTES), KEY_BYTES)
        if pressed is not None:
            self._buttons = 0
            for code in (*BUTTONS, *DPAD):
                if has(pressed, code):
                    self._press(code, True)
            self._follow_pad()
        for code in self._ranges:
            told = self._axis(code)
            if told is not None:
                self._deflect(code, told[0])

    def _axis(self, code: int) -> tuple[int, int, int] | None:
        """Return value, minimum and maximum of an axis from the kernel; None without an answer."""
        told = self._asked(absolute_request(code), ABSOLUTE.size)
        if told is None:
            return None
        value, least, greatest, *_ = ABSOLUTE.unpack(told)
        return (value, least, greatest) if least < greatest else None

    def _asked(self, number: int, size: int) -> bytes | None:
        """Return the answer of the kernel to an ioctl, or None."""
        import fcntl  # not on every system

        try:
            return fcntl.ioctl(self._transport, number, bytes(size))
        except OSError:
            return None

    def calibrate(self) -> None:
        """The middle of its range is a stick's zero."""

    def read(self) -> Sample:
        """Return position and velocity; a new sample each time, while the gamepad is present or comes to rest."""
        self._listen()
        now = time.monotonic()
        step, self._before = min(now - self._before, _LONGEST), now
        wanted = [s * self._largest * self._deflected[c] for s, c in zip(self._signs, self._codes, strict=True)]
        if self._rate:
            part = -math.expm1(-2.0 * math.pi * self._bandwidth * step)
            for i, rate in enumerate(wanted):
                self._velocity[i] += part * (rate - self._velocity[i])
                self._position[i] += step * self._velocity[i]
        else:
            critically_damped_step(self._position, self._velocity, wanted, step, self._bandwidth)
        moved = self._velocity if self._rate else self._position
        if not (self._gone and all(abs(x) < _REST * self._largest for x in moved)):
            self._readings += 1
        return Sample(now, self._readings, self._position, self._velocity, self._buttons)

    def _listen(self) -> None:
        """Take the events received; release all buttons if the gamepad is unplugged."""
        try:
            data = os.read(self._transport, _EVENTS_PER_TICK * EVENT.size)
        except BlockingIOError:
            return
        except OSError:  # ENODEV: unplugged
            data = b""
        self._gone = not data
        if not data:
            self._lost = False
            self._deflected, self._buttons, self._rest = dict.fromkeys(self._codes, 0.0), 0, b""
            return
        data = self._rest + data
        whole = len(data) - len(data) % EVENT.size
        self._rest = data[whole:]
        for _, _, kind, code, value in EVENT.iter_unpack(data[:whole]):
            self._take(kind, code, value)

    def _take(self, kind: int, code: int, value: int) -> None:
        """Take an event; invalid ones are counted."""
        if kind == EV_SYN:
            self._synchronize(code)
        elif kind > EV_MOST:
            self.strange["no event"] += 1
        elif self._lost:
            return
        elif kind == EV_ABS and code in self._ranges:
            self._deflect(code, value)
        elif kind == EV_KEY and button_of(code):
            self._press(code, bool(value))
            if code in DPAD:
                self._follow_pad()

    def _synchronize(self, code: int) -> None:
        """Query the state after an overflow of the kernel's buffer, and again after the rest of the packet."""
        dropped = code == SYN_DROPPED
        if dropped:
            self.strange["events lost"] += 1
        if dropped or (self._lost and code == SYN_REPORT):
            self._lost = dropped
            self._ask()

    def _press(self, code: int, on: bool) -> None:
        bit = button_of(code)
        self._buttons = self._buttons | bit if on else self._buttons & ~bit

    def _deflect(self, code: int, value: int) -> None:
        """Take the position of an axis; a hat presses the D-pad's buttons."""
        part = deflection(value, *self._ranges[code], self._dead_zone)
        if code in self._deflected:
            self._deflected[code] = part
        if code in (HAT_X, HAT_Y):
            low = DPAD.start + 2 * (code == HAT_X)
            self._press(low, part < 0.0)
            self._press(low + 1, part > 0.0)

    def _follow_pad(self) -> None:
        """Move the hat as the D-pad's buttons are."""
        up, down, left, right = (bool(self._buttons & button_of(code)) for code in DPAD)
        for code, part in ((HAT_X, right - left), (HAT_Y, down - up)):
            if code in self._deflected:
                self._deflected[code] = float(part)

    def diagnostics(self) -> dict[str, int]:
        """Return counts of lost and invalid events, and of failed forces."""
        failures = self._feedback.failures if self._feedback is not None else 0
        return {**self.strange, **({"force not shown": failures} if failures else {})}

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Show a force as far as the device can; return the force it exerts."""
        shown = [0.0] * len(force)
        if self._feedback is None:
            return shown
        if not self._directed:
            self._feedback.show(time.monotonic(), 0.0, math.hypot(*force))
            return shown
        signs = [self._toward * self._signs[i] if i >= 0 else 0.0 for i in self._pushes]
        right, down = (sign * force[i] if i >= 0 else 0.0 for sign, i in zip(signs, self._pushes, strict=True))
        self._feedback.show(time.monotonic(), right, down)
        for i, sign, part in zip(self._pushes, signs, self._feedback.shown, strict=True):
            if i >= 0:
                shown[i] = sign * part
        return shown

    def close(self) -> None:
        """Remove the force and close the device file; may be called again."""
        if self._transport >= 0:
            if self._feedback is not None:
                self._feedback.close()
            os.close(self._transport)
            self._transport = -1


def named_axes(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stick behind each axis; raise InputError if the option is not a list."""
    given = options.get("axes", ("x", "-y"))
    if not isinstance(given, str | list | tuple):
        raise InputError("axes of the gamepad", found=str(given), allowed='names of sticks, as in "x,-y"')
    return tuple(given.split(",")) if isinstance(given, str) else tuple(str(name) for name in given)
