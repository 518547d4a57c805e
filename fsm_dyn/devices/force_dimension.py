"""Force Dimension's devices (omega, delta, sigma) by the maker's library, three axes; never run on hardware.

The library, ``libdhd`` or ``libdrd`` of the Force Dimension SDK, is loaded at run time and comes with the device.  It
works in m, m/s and N; x points to the person, y to the person's right, z up.  Position, velocity, buttons and force
are exchanged by calls that block until the device answers.

During a run on Linux the library is in a separate process (:mod:`fsm_dyn.devices.library_process`), so that the force
ends when the tick process stands still.  Behind it is the watchdog of the controller: it is set (``dhdSetWatchdog``, in
steps of 125 µs) and read back before the force is enabled; a device without one is refused, unless ``watchdog`` is 0:
then the force is limited to a fifth.

Options
-------
library : str
    The file; by default the one below ``FDSDK``, else the one found by the system's loader.
serial : int
    Serial number of the device; by default the first one.
watchdog : float
    Timeout of the controller's watchdog, s (0.02; up to 0.031875; 0: none).
force : float
    Largest force of the device, N; by default the limits of the run are the only ones.
workspace : list
    For each axis its range to either side of zero, or its least and greatest position, m (0.25).
mass, damping, friction, resolution, delay : float
    Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_byte, c_char_p, c_double, c_int, c_ubyte, c_uint
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import HANDLE, MakerLibrary, OptionReader, Signature, load_library
from fsm_dyn.devices.library_process import LIBRARY_LAG, LibraryDriver, RepeatedNumbers
from fsm_dyn.live.driver_protocol import NOTHING, WATCHDOG, DeviceSpec, Sample

REACH: Final = 0.25  # m
WATCHDOG_STEP: Final = 125e-6  # s
WATCHDOG_MOST: Final = 255 * WATCHDOG_STEP
WATCHDOG_TIME: Final = 0.02  # s
OLDEST: Final = (3, 8)  # first version with the watchdog
TIMEGUARD: Final = 1  # result: the device was not asked, the previous answer is returned
SATURATED: Final = 2  # result: a motor cannot exert the force
POWERED, UNCALIBRATED, FAILED = 0, 3, 9  # indices of the status: power, RESET mode, error
STATUS_LENGTH: Final = 32  # room: there are 16 or 17, by version
_KNOWN: Final = frozenset({"library", "serial", "watchdog", "force", "workspace", *HANDLE})
_VECTOR: Final = Signature(c_int, (POINTER(c_double), POINTER(c_double), POINTER(c_double), c_byte))
LIBRARY: Final = MakerLibrary(
    "Force Dimension",
    ("drd", "dhd"),
    ("$FDSDK/lib/release/*/libdrd.so*", "$FDSDK/lib/release/*/libdrd.*dylib"),
    {
        "dhdGetSDKVersion": Signature(None, (POINTER(c_int),) * 4),
        "dhdErrorGetLastStr": Signature(c_char_p, ()),
        "dhdOpen": Signature(c_int, ()),
        "dhdOpenSerial": Signature(c_int, (c_int,)),
        "dhdGetStatus": Signature(c_int, (POINTER(c_int), c_byte)),
        "dhdEnableExpertMode": Signature(c_int, ()),
        "dhdSetWatchdog": Signature(c_int, (c_ubyte, c_byte)),
        "dhdGetWatchdog": Signature(c_int, (POINTER(c_ubyte), c_byte)),
        "dhdEnableForce": Signature(c_int, (c_ubyte, c_byte)),
        "dhdGetPosition": _VECTOR,
        "dhdGetLinearVelocity": _VECTOR,
        "dhdGetMaxForce": Signature(c_double, (c_byte,)),
        "dhdGetButtonMask": Signature(c_uint, (c_byte,)),
        "dhdSetForce": Signature(c_int, (c_double, c_double, c_double, c_byte)),
        "dhdClose": Signature(c_int, (c_byte,)),
    },
)


class DhdDevice:
    """The device, by the library in this process; see the module."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.spec = self.describe(options)
        self._library: Any = load_library(LIBRARY, str(options.get("library", "")))[0]
        self._serial = options.get("serial")
        self._device = -1  # its number in the library once it is open
        self._numbers = tuple(c_double() for _ in range(3))
        self._references = tuple(map(byref, self._numbers))
        self._latest = Sample(0.0, 0, (0.0,) * 3, (0.0,) * 3)
        self._counts: Counter[str] = Counter()
        self._repeated = RepeatedNumbers()

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Find the library; raise InputError if it is missing, for another processor, or too old."""
        library, path = load_library(LIBRARY, str(options.get("library", "")))
        version = tuple(c_int() for _ in range(4))
        library.dhdGetSDKVersion(*map(byref, version))
        found = tuple(number.value for number in version)
        if found < OLDEST:
            raise InputError(
                "the library of Force Dimension is too old",
                found=f"{path}: version {'.'.join(map(str, found))}",
                allowed=f"{'.'.join(map(str, OLDEST))} and later",
            )
        return {**options, "library": path}

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options."""
        given = OptionReader("force_dimension", options, _KNOWN)
        if not isinstance(options.get("library", ""), str):
            raise given.invalid("library", "the path of a file")
        given.count("serial", 0, 0, 65535)
        watchdog = given.number("watchdog", WATCHDOG_TIME, most=WATCHDOG_MOST)
        if 0.0 < watchdog < WATCHDOG_STEP:
            raise given.invalid("watchdog", f"0, or {WATCHDOG_STEP:g} to {WATCHDOG_MOST:g} s")
        low, high = given.workspace((REACH,) * 3)
        return DeviceSpec(
            "force_dimension", 3, WATCHDOG if watchdog else NOTHING, watchdog,
            force=given.number("force", float("inf"), above=True), handle=given.handle(), low=low, high=high,
            velocity_lag=LIBRARY_LAG,
        )  # fmt: skip

    def open(self) -> None:
        """Open the device, set its watchdog, and enable a force of zero.

        Raises InputError: it is not ready, not calibrated, or has no watchdog. Raises ConnectionError: it cannot be
        opened, or does not answer.
        """
        library = self._library
        found = library.dhdOpen() if self._serial is None else library.dhdOpenSerial(int(self._serial))
        self._device = self._checked(found, "cannot be opened")
        self._check_status()
        self._set_watchdog()
        self._checked(library.dhdEnableForce(1, self._device), "does not enable its force")
        self._checked(library.dhdSetForce(0.0, 0.0, 0.0, self._device), "takes no force")
        self.read()

    def _check_status(self) -> None:
        """Refuse a device without power, with an error, or not calibrated."""
        status = (c_int * STATUS_LENGTH)()
        self._checked(self._library.dhdGetStatus(status, self._device), "gives no status")
        if not status[POWERED] or status[FAILED] or status[UNCALIBRATED]:
            raise InputError(
                "the Force Dimension device is not ready",
                found=f"power {status[POWERED]}, error {status[FAILED]}, in RESET mode {status[UNCALIBRATED]}",
                remedy="switch it on and calibrate it, as its manual says",
            )

    def _set_watchdog(self) -> None:
        """Set the watchdog of the controller, and compare it with the timeout then reported."""
        library, steps = self._library, round(self.spec.watchdog / WATCHDOG_STEP)
        library.dhdEnableExpertMode()
        set_ = library.dhdSetWatchdog(steps, self._device)
        if not steps:
            return
        found = c_ubyte()
        if set_ < 0 or library.dhdGetWatchdog(byref(found), self._device) < 0 or found.value != steps:
            raise InputError(
                "the Force Dimension device has no watchdog",
                found=self._reason(),
                remedy="--option watchdog=0: nothing then removes the force of a process that fails, "
                "and it is limited to a fifth",
            )

    def calibrate(self) -> None:
        """Do nothing: the device has an absolute zero."""

    def read(self) -> Sample:
        """Return the latest sample with new numbers; raise ConnectionError if the device does not answer."""
        library, device = self._library, self._device
        result = self._checked(library.dhdGetPosition(*self._references, device), "gives no position")
        if result == TIMEGUARD:
            return self._latest
        now, position = time.monotonic(), self._vector()
        self._checked(library.dhdGetLinearVelocity(*self._references, device), "gives no velocity")
        velocity, buttons = self._vector(), library.dhdGetButtonMask(device)
        if not self._repeated.has(now, position, velocity):
            self._latest = Sample(now, self._latest.sequence + 1, position, velocity, buttons)
        return self._latest

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force; raise ConnectionError if the device does not answer."""
        if self._checked(self._library.dhdSetForce(*force, self._device), "takes no force") == SATURATED:
            self._counts["forces that a motor cannot show"] += 1
        return force

    def diagnostics(self) -> dict[str, int]:
        """Return the numbers of forces beyond the ability of the motors, and of repeated samples."""
        return {**self._counts, **self._repeated.counts()}

    def maker_figures(self) -> dict[str, float]:
        """Return the limit of force enforced by the library, N; empty without one."""
        limit = float(self._library.dhdGetMaxForce(self._device))
        return {"force limit of the library, N": limit} if limit >= 0.0 else {}

    def close(self) -> None:
        """Remove the force and leave the device; may be called again."""
        if self._device >= 0:
            self._library.dhdSetForce(0.0, 0.0, 0.0, self._device)
            self._library.dhdEnableForce(0, self._device)
            self._library.dhdClose(self._device)
            self._device = -1

    def _vector(self) -> tuple[float, float, float]:
        x, y, z = self._numbers
        return x.value, y.value, z.value

    def _reason(self) -> str:
        return (self._library.dhdErrorGetLastStr() or b"").decode(errors="replace")

    def _checked(self, result: int, what: str) -> int:
        """Return the result of a call, or raise ConnectionError with the library's reason."""
        if result < 0:
            raise ConnectionError(f"the Force Dimension device {what}: {self._reason()}")
        return result


class Driver(LibraryDriver):
    """The device; see the module."""

    DIRECT = DhdDevice
    SELECTED_BY: Final[tuple[str, ...]] = ("serial",)
