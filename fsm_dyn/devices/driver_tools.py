"""Options of drivers and emulators, validated; velocities of devices that measure none."""

from __future__ import annotations

import importlib
import importlib.util
import math
import pkgutil
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import fsm_dyn.devices
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.devices import emulators
from fsm_dyn.live.driver_protocol import DeviceDynamics


@dataclass(frozen=True)
class DriverInfo:
    """A shipped driver.

    Attributes
    ----------
    name : str
    about : str
        First line of its docstring.
    missing : str
        Required package that is not installed; empty if there is none.
    emulated : bool
        Whether it has an emulator.
    """

    name: str
    about: str
    missing: str
    emulated: bool


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

    Parameters
    ----------
    whose : str
        For messages: ``driver udp``.
    options : mapping
    known : collection of str
        Names of the existing options.

    Raises
    ------
    InputError
        An option is unknown. The methods raise it for invalid values.
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
    """Return whether something is two numbers, the second the larger one.

    Parameters
    ----------
    found : Any
        The value of an option.

    Returns
    -------
    bool
    """
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
    f)`` and lets the steps of a sensor of resolution ``r`` through as ``2 pi f r`` instead of ``r / h``.

    Parameters
    ----------
    axes : int
    bandwidth : float
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
    step: never unstable, and without overshoot.

    Parameters
    ----------
    position : list[float]
        Of each axis, m or rad; changed in place.
    velocity : list[float]
        Of each axis, m/s or rad/s; changed in place.
    target : Sequence[float]
        Positions approached, m or rad.
    step : float
        Length of the step, s.
    bandwidth : float
        Of the filter, Hz.
    """
    w = 2.0 * math.pi * bandwidth
    for i, place in enumerate(target):
        pull = w * w * (place - position[i])
        velocity[i] = (velocity[i] + step * pull) / (1.0 + 2.0 * step * w + step * step * w * w)
        position[i] += step * velocity[i]
