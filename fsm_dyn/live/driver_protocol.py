"""What a driver is: the protocol that the tick process speaks with every device.

A driver is one file with one class ``Driver`` (see docs/how_to/device.md).  The tick process calls ``open``,
``calibrate``, then in every tick ``read`` and ``write``, and ``close`` at the end, after a force of zero.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from fsm_dyn.errors import InputError

WATCHDOG: Final = "watchdog"  # the device lets go by itself when no force comes
SAFE_FRAME: Final = "safe_frame"  # the guard process writes this to the device
NOTHING: Final = "none"  # nothing would stop it: the force is capped
UNSTOPPED_FORCE_FRACTION: Final = 0.2  # of the force limit, for devices that nothing stops


class Sample(NamedTuple):
    """What a device tells of itself.

    Attributes
    ----------
    time : float
        When it was so, s, by any steady clock.
    sequence : int
        Changes with every new sample.
    position, velocity : sequence of float
        Per axis, m and m/s (rad and rad/s).
    buttons : int
        One bit each.
    """

    time: float
    sequence: int
    position: Sequence[float]
    velocity: Sequence[float]
    buttons: int = 0


@dataclass(frozen=True)
class DeviceDynamics:
    """What is known of a device as a hand feels it with no force shown; ``None`` is unknown, never zero.

    Attributes
    ----------
    mass : float, optional
        Apparent mass along a straight axis, kg.
    damping : float, optional
        Viscous damping of the device alone, without a hand, N s/m.
    friction : float, optional
        Coulomb friction, N.
    resolution : float, optional
        Of the position, m.
    delay : float
        From the force's being written to its being shown, plus from the motion to its sample, s.
    """

    mass: float | None = None
    damping: float | None = None
    friction: float | None = None
    resolution: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class DeviceSpec:
    """What is known of a device before it is opened.

    Attributes
    ----------
    name : str
    axes : int
        Number of axes of position and force, 1 to 6.
    stop_mechanism : str
        What lets go of the force first when the tick process is no more: ``watchdog``, ``safe_packet`` or ``none``.
    watchdog : float
        After how long the device's own watchdog acts, s; 0 where it has none.  A device may have one behind a
        ``safe_packet``.
    safe_packet : bytes
        What the guard process writes to the device's transport once the tick process is no more.
    zero_frame : bytes
        What the guard writes while ticks fail to come: a force of zero after which the run can go on.
    force, torque : float
        The largest force and torque the device can show, N and N m.
    blocking_read : bool
        Whether ``read`` may wait for the device: it is then called in a thread of its own.
    rotational_axes : tuple of int
        The axes that turn, in rad, rad/s and N m; the others are in m, m/s and N.
    handle : Handle
        What is known of the device as a hand feels it.
    zeroed : bool
        Whether ``calibrate`` makes the place where the device is its zero.
    low, high : tuple of float
        The workspace, m or rad per axis; empty where the device tells of none.
    felt : bool
        Whether it shows forces at all.
    """

    name: str
    axes: int
    stop_mechanism: str = NOTHING
    watchdog: float = 0.0
    safe_packet: bytes = b""
    force: float = float("inf")
    blocking_read: bool = False
    torque: float = float("inf")
    rotational_axes: tuple[int, ...] = ()
    handle: DeviceDynamics = DeviceDynamics()
    zeroed: bool = False
    zero_frame: bytes = b""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    felt: bool = True


class Device(Protocol):
    """The protocol; made as ``Driver(options, transport)``."""

    spec: DeviceSpec

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return what is known without opening the device; raise InputError for options that cannot be."""

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return a descriptor that driver and guard process inherit (a serial line, a socket), if there is one."""

    def open(self) -> None:
        """Make ready to read and write."""

    def calibrate(self) -> None:
        """Find the zero of the axes; called once, after ``open``."""

    def read(self) -> Sample:
        """Return the latest sample; at once, unless ``spec.waits``."""

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Show a force (N or N m per axis) and return the one that is really shown."""

    def close(self) -> None:
        """Let go of the device."""

    # A driver may also have a class method ``complete(options)``, which finds out what the options leave open (which of
    # several devices) and is asked before all others; ``told(self)``, which returns counts by name (frames that were
    # lost): they are told as an event ``device`` when they change; and ``attach(self, block)``, which is given the
    # memory of the run.  One for loops faster than 2 kHz has ``compiled(self)``, which returns a
    # :class:`~fsm_dyn.live.paced_loop.CompiledIO`, or None where its options rule that out.


def driver_class(name: str) -> Any:
    """Return the class of a driver: the name of a shipped one, or ``module:Class``.

    Raises
    ------
    InputError
        There is no such driver, or a package that it needs is not there.
    """
    module, _, attribute = name.partition(":") if ":" in name else (f"fsm_dyn.devices.{name}", ":", "Driver")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        missing = getattr(error, "name", None) or ""
        if isinstance(error, ModuleNotFoundError) and not f"{module}.".startswith(f"{missing}."):
            raise InputError(
                f"the driver '{name}' needs a package more", found=str(error), remedy="pip install 'fsm-dyn[devices]'"
            ) from error
        raise InputError(
            f"there is no driver '{name}'",
            found=str(error),
            allowed="those that 'fsm-dyn device --list-drivers' tells, or module:Class",
        ) from error


class BlockingReader:
    """Reads a device that waits in a thread of its own, and keeps its latest sample."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._latest = device.read()
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._latest = self._device.read()
        except Exception as error:  # whatever a driver raises is told in the tick
            self._failure = error

    def read(self) -> Sample:
        """Return the latest sample; raise what the driver raised."""
        if self._failure is not None:
            raise self._failure
        return self._latest

    def stop(self) -> None:
        """End the thread once its present read returns."""
        self._stop.set()
