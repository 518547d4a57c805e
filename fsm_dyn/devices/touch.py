"""3D Systems Touch and its relatives by the OpenHaptics library (libHD), three axes; never run on hardware.

The library is loaded at run time and comes with the device.  Its scheduler calls back at the servo rate, usually 1 kHz,
in a thread of the library: :class:`ServoLoop` reads position, velocity and buttons there, in mm and mm/s, and commands
the latest force.  Ticks exchange samples and forces with it without waiting.  x points to the right, y up, z to the
person.

During a run on Linux the library is in a separate process (:mod:`fsm_dyn.devices.library_process`), so that the force
ends when the tick process stands still.  A servo loop without a force from a tick for ``release`` removes the force, as
long as its process runs.  No watchdog of the device is documented: behind this process, stopped or killed, is the
session alone, and forces are limited to a fifth.

Options
-------
library : str
    The file; by default the library ``HD`` of the system's loader.
device : str
    Name of the device in the maker's setup program (``Default Device``).
release : float
    Time the servo loop keeps a force without renewal by a tick, s (0.02).
force : float
    Largest force, N; by default the nominal continuous one reported by the library.
workspace : list
    For each axis its range to either side of zero, or its least and greatest position, m (0.4).
mass, damping, friction, resolution, delay : float
    Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_uint, c_ushort, c_void_p
from dataclasses import replace
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import HANDLE, MakerLibrary, OptionReader, Signature, load_library
from fsm_dyn.devices.library_process import LIBRARY_LAG, LibraryDriver, RepeatedNumbers
from fsm_dyn.live.driver_protocol import NOTHING, DeviceSpec, Sample

DEVICE: Final = "Default Device"
REACH: Final = 0.4  # m
RELEASE: Final = 0.02  # s
PATIENCE: Final = 2.0  # s until the servo loop runs
ZERO: Final = (0.0, 0.0, 0.0)
_MILLI: Final = 1e-3

# HD/hdDefines.h of OpenHaptics 3.x, as the public binding pyOpenHaptics has them
BUTTONS: Final = 0x2000
POSITION: Final = 0x2050  # mm
VELOCITY: Final = 0x2051  # mm/s
USABLE_WORKSPACE: Final = 0x2551  # mm, the least x, y, z and the greatest
SHORT_FORCE: Final = 0x2603  # N, the largest at the nominal position while the motors are at room temperature
CONTINUOUS_FORCE: Final = 0x2604  # N
MOTOR_TEMPERATURE: Final = 0x2605  # 0 (cold) to 1 (as warm as may be), of each motor
FORCE: Final = 0x2700  # N
FORCE_OUTPUT: Final = 0x4000
INVALID_HANDLE: Final = 0xFFFFFFFF
MAX_PRIORITY: Final = (1 << 16) - 1
DONE: Final = 0  # results of a callback
CONTINUE: Final = 1
CALIBRATED: Final = 0x5000
ERRORS: Final = {
    0x0200: "warm motors", 0x0201: "force beyond its maximum", 0x0202: "force rises too fast",
    0x0203: "velocity beyond its maximum", 0x0204: "force error", 0x0300: "device fault",
    0x0301: "device in use", 0x0302: "communication error", 0x0304: "timer error",
}  # fmt: skip
_TRANSIENT: Final = frozenset({0x0200, 0x0201, 0x0202, 0x0203})  # reported, and the loop continues
_KNOWN: Final = frozenset({"library", "device", "release", "force", "workspace", *HANDLE})


class ErrorInfo(Structure):
    """``HDErrorInfo``, which ``hdGetError`` returns by value."""

    _fields_ = (("code", c_uint), ("internal", c_int), ("device", c_uint))


Callback: Final = CFUNCTYPE(c_uint, c_void_p)
_VECTOR: Final = Signature(None, (c_uint, POINTER(c_double)))
_OF_DEVICE: Final = Signature(None, (c_uint,))
LIBRARY: Final = MakerLibrary(
    "OpenHaptics",
    ("HD",),
    (),
    {
        "hdInitDevice": Signature(c_uint, (c_char_p,)),
        "hdMakeCurrentDevice": _OF_DEVICE,
        "hdDisableDevice": _OF_DEVICE,
        "hdGetError": Signature(ErrorInfo, ()),
        "hdEnable": _OF_DEVICE,
        "hdDisable": _OF_DEVICE,
        "hdCheckCalibration": Signature(c_uint, ()),
        "hdStartScheduler": Signature(None, ()),
        "hdStopScheduler": Signature(None, ()),
        "hdScheduleAsynchronous": Signature(c_uint, (Callback, c_void_p, c_ushort)),
        "hdUnschedule": _OF_DEVICE,
        "hdBeginFrame": _OF_DEVICE,
        "hdEndFrame": _OF_DEVICE,
        "hdGetDoublev": _VECTOR,
        "hdGetIntegerv": Signature(None, (c_uint, POINTER(c_int))),
        "hdSetDoublev": _VECTOR,
    },
)


def described(code: int) -> str:
    """Return an error of the library for a message. ``code``: returned by the library."""
    return ERRORS.get(code, f"error {code:#06x}")


class ServoLoop:
    """The callback of the scheduler: it keeps the latest sample, and exerts the latest force as long as it is renewed.

    ``library``, CDLL; ``device``: handle of the device in the library; ``release``: see the option of the driver, s.
    ``latest``, Sample: of the last callback that had new numbers. ``failure``: the error at the end of the loop; 0:
    none. ``counts``: counts of errors that did not end the loop, and of removed forces, by name. ``repeated``,
    RepeatedNumbers.
    """

    def __init__(self, library: Any, device: int, release: float) -> None:
        self._library, self._device, self._release = library, device, release
        self._position, self._velocity, self._force = ((c_double * 3)() for _ in range(3))
        self._buttons = c_int()
        self._commanded: tuple[float, Sequence[float]] = (0.0, ZERO)  # when, and the force: replaced as one
        self._released = True
        self.latest = Sample(0.0, 0, ZERO, ZERO)
        self.failure = 0
        self.counts: dict[str, int] = {}
        self.repeated = RepeatedNumbers()
        self.callback = Callback(self._run)  # kept as long as the library may call it

    def command(self, force: Sequence[float]) -> None:
        """Show a force (N) from the next callback on."""
        self._commanded = time.monotonic(), tuple(force)

    def _run(self, _: Any) -> int:
        library, now = self._library, time.monotonic()
        library.hdBeginFrame(self._device)
        library.hdGetDoublev(POSITION, self._position)
        library.hdGetDoublev(VELOCITY, self._velocity)
        library.hdGetIntegerv(BUTTONS, self._buttons)
        self._force[0], self._force[1], self._force[2] = self._current_force(now)
        library.hdSetDoublev(FORCE, self._force)
        library.hdEndFrame(self._device)
        error = library.hdGetError().code
        if error and not self._tolerated(error):
            return DONE
        x, y, z = self._position
        u, v, w = self._velocity
        position, velocity = (_MILLI * x, _MILLI * y, _MILLI * z), (_MILLI * u, _MILLI * v, _MILLI * w)
        if not self.repeated.has(now, position, velocity):
            self.latest = Sample(now, self.latest.sequence + 1, position, velocity, self._buttons.value)
        return CONTINUE

    def _current_force(self, now: float) -> Sequence[float]:
        """Return the latest force; zero if no tick has renewed it for too long."""
        commanded, force = self._commanded
        released = now - commanded > self._release
        if released and not self._released and any(force):
            self._count("forces removed by the servo loop")
        self._released = released
        return ZERO if released else force

    def _tolerated(self, error: int) -> bool:
        """Count an error from which the device recovers; keep any other as the failure."""
        if error not in _TRANSIENT:
            self.failure = error
            return False
        self._count(described(error))
        return True

    def _count(self, name: str) -> None:
        self.counts = {**self.counts, name: self.counts.get(name, 0) + 1}


class HdDevice:
    """The device, by the library in this process; see the module."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.spec = self.describe(options)
        self._library: Any = load_library(LIBRARY, str(options.get("library", "")))[0]
        self._name = str(options.get("device", DEVICE))
        self._release = float(options.get("release", RELEASE))
        self._device = INVALID_HANDLE
        self._scheduled: int | None = None
        self._loop: ServoLoop | None = None
        self._figures: dict[str, float] = {}

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Find the library; raise InputError if it is missing, for another processor, or too old."""
        return {**options, "library": load_library(LIBRARY, str(options.get("library", "")))[1]}

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options."""
        given = OptionReader("touch", options, _KNOWN)
        for name, meaning in (("library", "the path of a file"), ("device", "a name of the maker's setup program")):
            text = options.get(name, "")
            if not isinstance(text, str) or "\0" in text:
                raise given.invalid(name, meaning)
        given.number("release", RELEASE, above=True, most=1.0)
        low, high = given.workspace((REACH,) * 3)
        force = given.number("force", float("inf"), above=True)
        return DeviceSpec(
            "touch", 3, NOTHING, force=force, handle=given.handle(), low=low, high=high, velocity_lag=LIBRARY_LAG
        )

    def open(self) -> None:
        """Open the device, and start the servo loop with a force of zero.

        Raises InputError: it is not calibrated. Raises ConnectionError: it cannot be opened, or the servo loop does not
        run.
        """
        library = self._library
        self._device = library.hdInitDevice(self._name.encode())
        self._raise_error("cannot be opened")
        if self._device == INVALID_HANDLE:
            raise ConnectionError(f"the device '{self._name}' of OpenHaptics cannot be opened")
        library.hdMakeCurrentDevice(self._device)
        if library.hdCheckCalibration() != CALIBRATED:
            raise InputError(
                "the device of OpenHaptics is not calibrated", remedy="calibrate it by the maker's setup program"
            )
        largest = (c_double * 3)()
        library.hdGetDoublev(CONTINUOUS_FORCE, largest)
        self._raise_error("gives no largest force")
        if largest[0] > 0.0:
            self.spec = replace(self.spec, force=min(self.spec.force, largest[0]))
        self._figures = self._read_figures()
        self._start()

    def _start(self) -> None:
        """Schedule the callback, and wait for its first sample."""
        library = self._library
        loop = self._loop = ServoLoop(library, self._device, self._release)
        library.hdEnable(FORCE_OUTPUT)
        self._scheduled = library.hdScheduleAsynchronous(loop.callback, None, MAX_PRIORITY)
        library.hdStartScheduler()
        self._raise_error("does not start its servo loop")
        until = time.monotonic() + PATIENCE
        while loop.latest.sequence == 0:
            if loop.failure or time.monotonic() > until:
                raise ConnectionError(f"the servo loop of OpenHaptics does not run: {described(loop.failure)}")
            time.sleep(0.001)

    def calibrate(self) -> None:
        """Do nothing: the device has an absolute zero."""

    def read(self) -> Sample:
        """Return the sample of the last callback; raise ConnectionError if the servo loop has ended."""
        loop = self._running()
        if loop.failure:
            raise ConnectionError(f"the servo loop of OpenHaptics has ended: {described(loop.failure)}")
        return loop.latest

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Show a force from the next callback on."""
        self._running().command(force)
        return force

    def diagnostics(self) -> dict[str, int]:
        """Return the numbers of errors of the library, forces removed by the servo loop and repeated samples."""
        return {**self._loop.counts, **self._loop.repeated.counts()} if self._loop is not None else {}

    def maker_figures(self) -> dict[str, float]:
        """Return limits and temperatures as the library gave them when the device was opened; names have the unit."""
        return self._figures

    def _read_figures(self) -> dict[str, float]:
        """Query the library before its servo loop runs; unknown figures are left out."""
        found: dict[str, float] = {}
        for name, what, count, part in (
            ("largest force for a short time, N", SHORT_FORCE, 1, 0),
            ("largest continuous force, N", CONTINUOUS_FORCE, 1, 0),
            *((f"usable workspace, {axis} from, mm", USABLE_WORKSPACE, 6, i) for i, axis in enumerate("xyz")),
            *((f"usable workspace, {axis} to, mm", USABLE_WORKSPACE, 6, i + 3) for i, axis in enumerate("xyz")),
            *((f"temperature of motor {i + 1}, 0 to 1", MOTOR_TEMPERATURE, 6, i) for i in range(3)),
        ):
            values = (c_double * count)()
            self._library.hdGetDoublev(what, values)
            if not self._library.hdGetError().code:
                found[name] = values[part]
        return found

    def close(self) -> None:
        """Remove the force, end the servo loop and leave the device; may be called again."""
        if self._device == INVALID_HANDLE:
            return
        library = self._library
        if self._loop is not None and self._scheduled is not None:
            self._loop.command(ZERO)
            library.hdDisable(FORCE_OUTPUT)
            library.hdStopScheduler()
            library.hdUnschedule(self._scheduled)
        library.hdDisableDevice(self._device)
        self._device = INVALID_HANDLE

    def _running(self) -> ServoLoop:
        if self._loop is None:
            raise ConnectionError("the device of OpenHaptics is not open")
        return self._loop

    def _raise_error(self, what: str) -> None:
        """Raise ConnectionError with the library's reason, if it has one."""
        error = self._library.hdGetError().code
        if error:
            raise ConnectionError(f"the device '{self._name}' of OpenHaptics {what}: {described(error)}")


class Driver(LibraryDriver):
    """The device; see the module."""

    DIRECT = HdDevice
    SELECTED_BY: Final[tuple[str, ...]] = ("device",)
