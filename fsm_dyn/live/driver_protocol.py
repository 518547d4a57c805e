"""Driver protocol: the interface between the tick process and the driver of a device.

A driver is one file with one class ``Driver`` (see docs/how_to/device.md).  The tick process calls ``open``,
``calibrate``, then in every tick ``read`` and ``write``, and ``close`` at the end, after a force of zero.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass

WATCHDOG: Final = "watchdog"  # the device removes the force when no packet arrives
SAFE_FRAME: Final = "safe_frame"  # the watchdog process writes the safe packet to the device
IMPEDANCE, ADMITTANCE = "impedance", "admittance"  # kinds of devices
NOTHING: Final = "none"  # nothing removes the force: its limit is reduced
UNSTOPPED_FORCE_FRACTION: Final = 0.2  # of the force limit, for devices without a stop mechanism


def lag_of(bandwidth: float) -> float:
    """Return the lag (s) of a filter of first order with this bandwidth (Hz)."""
    return 1.0 / (2.0 * math.pi * bandwidth)


VELOCITY_LAG: Final = lag_of(30.0)  # s, of a device that does not say


class Sample(NamedTuple):
    """One sample of a device.

    Attributes
    ----------
    time : float
        Time of the measurement, s, of any monotonic clock.
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
    """Apparent dynamics of a device with no force commanded; ``None`` is unknown, never zero.

    Attributes
    ----------
    mass : float, optional
        Apparent mass along a straight axis, kg.
    damping : float, optional
        Viscous damping of the device alone, without the operator's hand, N s/m.
    friction : float, optional
        Coulomb friction, N.
    resolution : float, optional
        Of the position, m.
    delay : float
        Time from command to force, plus time from motion to sample, s.
    velocity_bandwidth : float, optional
        Of the filter of first order through which the velocity in a sample is the difference quotient of positions, Hz;
        infinite: no filter.  None: the device measures velocities.
    """

    mass: float | None = None
    damping: float | None = None
    friction: float | None = None
    resolution: float | None = None
    delay: float = 0.0
    velocity_bandwidth: float | None = float("inf")


@dataclass(frozen=True)
class DeviceSpec:
    """Properties of a device, known before it is opened.

    Attributes
    ----------
    name : str
    axes : int
        Number of axes of position and force, 1 to 6.
    stop_mechanism : str
        First mechanism to remove the force after the end of the tick process: ``WATCHDOG``, ``SAFE_FRAME`` or
        ``NOTHING``.
    watchdog : float
        Timeout of the device watchdog, s; 0 if there is none.  A device may have one besides a ``safe_packet``.
    safe_packet : bytes
        Bytes written by the watchdog process to the device's transport after the end of the tick process.
    zero_frame : bytes
        Bytes written by the watchdog process while ticks are missing: zero force; the run can continue afterwards.
    force, torque : float
        Largest force and torque of the device, N and N m.
    blocking_read : bool
        Whether ``read`` may wait for the device: it then gets its own thread.
    rotational_axes : tuple of int
        The rotational axes, in rad, rad/s and N m; the others are in m, m/s and N.
    handle : DeviceDynamics
    zeroed : bool
        Whether ``calibrate`` sets the zero at the present position.
    low, high : tuple of float
        The workspace, m or rad per axis; empty if unknown.
    felt : bool
        Whether the device can exert forces.
    kind : str
        ``IMPEDANCE``: the device measures motions and exerts forces.  ``ADMITTANCE``: it measures the force of the
        hand and follows. Then ``Sample.velocity`` is the measured force (N or N m), ``write`` gets velocities (m/s or
        rad/s; zero: stand still), and ``force`` and ``torque`` are the largest speeds.
    parts : tuple of DeviceSpec
        The combined devices, with consecutive axes; empty for a single device.
    velocity_lag : float
        By which the velocity in a sample may lag behind the device, s: by a filter, or half the window of a difference.
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
    kind: str = IMPEDANCE
    parts: tuple[DeviceSpec, ...] = ()
    velocity_lag: float = VELOCITY_LAG


Transport = int | None | Sequence[int | None]  # of a device; a sequence for combined devices


def descriptors(transport: Transport) -> list[int]:
    """Return the open descriptors of a transport."""
    each = [transport] if isinstance(transport, int | None) else transport
    return [descriptor for descriptor in each if descriptor is not None]


class Device(Protocol):
    """Driver protocol; an instance is made as ``Driver(options, transport)``."""

    spec: DeviceSpec

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the properties without opening the device.

        Parameters
        ----------
        options : mapping
            Options of the driver by name, as given by the user.

        Raises
        ------
        InputError
            An option is unknown or its value is invalid.
        """

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> Transport:
        """Return the descriptor inherited by driver and watchdog process (serial line, socket), or None.

        A driver with ``spec.parts`` returns one for each part.

        Parameters
        ----------
        options : mapping
            Options of the driver by name, as given by the user.
        """

    def open(self) -> None:
        """Open the device for ``read`` and ``write``."""

    def calibrate(self) -> None:
        """Find the zero of the axes; called once, after ``open``."""

    def read(self) -> Sample:
        """Return the latest sample; without waiting, unless ``spec.blocking_read``."""

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force and return the force exerted by the device.

        Parameters
        ----------
        force : sequence of float, shape (axes,)
            N, or N m about a rotational axis, in the device's own axes; of an admittance device velocities, m/s or
            rad/s.

        Returns
        -------
        sequence of float, shape (axes,)
            The exerted force after the device's own limits, in the same units and axes.
        """

    def close(self) -> None:
        """Close the device."""

    # Optional: the class method ``complete(options)``, called first, fills in missing options (which of several
    # devices); ``diagnostics(self)`` returns counts by name (lost packets), an event ``device`` when they change;
    # ``attach(self, block)`` receives the shared memory of the run; ``foresee(self, time_to_event)``, called before
    # ``open``, a function for event-based haptics: at any time it returns the time (s of the clock, from the model time
    # of the last tick) until the next transition, foreseen by the copy that runs ahead (``LiveSettings.look_ahead``),
    # or None; ``compiled(self)``, for loops faster than 2 kHz,
    # returns a :class:`~fsm_dyn.live.pacing.CompiledIO`, or None if excluded by the options; ``maker_figures(self)``
    # returns limits and temperatures by name and unit as reported by the opened device, for ``fsm-dyn device
    # --check``; the attribute ``SELECTED_BY`` names the options to select one of several devices, empty if there can
    # be only one.


#: Remedies for names of devices, by the driver that serves them.
_SERVED_BY: Final = {
    device: f"its driver is '{driver}'"
    for driver, devices in {
        "touch": "phantom omni touchx geomagic", "force_dimension": "falcon omega delta sigma", "inverse3": "haply",
        "pointer": "mouse", "gamepad": "joystick xbox",
    }.items()
    for device in devices.split()
}  # fmt: skip


def driver_class(name: str) -> Any:
    """Return the class of a driver.

    Parameters
    ----------
    name : str
        The name of a shipped one, ``FILE.py`` with a class ``Driver``, or ``module:Class``.

    Raises
    ------
    InputError
        There is no such driver, or a required package is not installed.
    """
    module, attribute = name, "Driver"
    is_file = Path(name).suffix == ".py"
    if not is_file:
        module, _, attribute = name.partition(":") if ":" in name else (f"fsm_dyn.devices.{name}", ":", "Driver")
    try:
        return getattr(_module_of(Path(name)) if is_file else importlib.import_module(module), attribute)
    except (ImportError, AttributeError, FileNotFoundError) as error:
        missing = getattr(error, "name", None) or ""
        if isinstance(error, ModuleNotFoundError) and not f"{module}.".startswith(f"{missing}."):
            raise InputError(
                f"the driver '{name}' needs an additional package",
                found=str(error),
                remedy="pip install 'fsm-dyn[devices]'",
            ) from error
        raise InputError(
            f"there is no driver '{name}'",
            found=name if isinstance(error, ModuleNotFoundError) else str(error),
            allowed="a shipped driver, FILE.py with a class Driver, or module:Class",
            remedy=_SERVED_BY.get(name.lower(), "'fsm-dyn device --list-drivers' lists the shipped ones"),
        ) from error


def _module_of(path: Path) -> ModuleType:
    """Return the module of a file, imported once under its path, which no module on the search path has."""
    name = str(path.resolve())
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # before it is carried out: data classes look for their module there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


class BlockingReader:
    """Thread to read a device with a blocking ``read``; it keeps the latest sample."""

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
        except Exception as error:  # raised again by read(), in the tick
            self._failure = error

    def read(self) -> Sample:
        """Return the latest sample; reraise an exception of the driver."""
        if self._failure is not None:
            raise self._failure
        return self._latest

    def stop(self) -> None:
        """End the thread once its present read returns."""
        self._stop.set()
