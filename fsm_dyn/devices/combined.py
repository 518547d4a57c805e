"""Several devices as one: their axes one after the other, each at another port.

A sample combines all devices: it is new once every device has sent a new one, so one silent device removes the force
from all. The watchdog process has the transport of each and writes its safe packet to it; limits of force and velocity
hold for each device separately.  Button ``n`` of device ``k``, from 0, has the number ``16 k + n``.

Options
-------
devices : list of {driver, options}
    Two to three shipped drivers by name, ``FILE.py`` or ``module:Class``, with their options.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.driver_protocol import (
    NOTHING,
    WATCHDOG,
    BlockingReader,
    Device,
    DeviceDynamics,
    DeviceSpec,
    Sample,
    driver_class,
)
from fsm_dyn.live.pacing import CompiledIO

MOST: Final = 3
BUTTONS: Final = 16  # of a device
_UNKNOWN: Final = 1e3  # m or rad, of an undeclared workspace


class Driver:
    """The devices; see the module."""

    def __init__(self, options: Mapping[str, Any], transport: Sequence[int | None] | None = None) -> None:
        entries = _entries(options)
        transports = transport or [None] * len(entries)
        self._devices: list[Device] = [
            kind(given, line) for (kind, given), line in zip(entries, transports, strict=True)
        ]
        self.spec = combined_spec([device.spec for device in self._devices])
        self._reads: list[Callable[[], Sample]] = [device.read for device in self._devices]
        self._writes: list[Callable[[Sequence[float]], Sequence[float]]] = [device.write for device in self._devices]
        self._readers: list[BlockingReader] = []
        self._latest = [Sample(0.0, 0, (0.0,) * n, (0.0,) * n) for n in (part.axes for part in self.spec.parts)]
        self._used = [sample.sequence for sample in self._latest]  # of the combined sample before
        self._sequence = 0

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options, completed with those determined by the drivers.

        Raises
        ------
        InputError
            Two drivers would use one device.
        """
        given = [dict(entry) for entry in _listed(options)]
        for entry, (kind, chosen) in zip(given, _entries(options), strict=True):
            entry["options"] = dict(getattr(kind, "complete", dict)(chosen))
        completed = {"devices": given}
        _refuse_shared(_entries(completed))
        return completed

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the devices by their options."""
        entries = _entries(options)
        _refuse_shared(entries)
        return combined_spec([kind.describe(given) for kind, given in entries])

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> tuple[int | None, ...]:
        """Return the transport of each device; if one cannot be opened, none is left open."""
        with contextlib.ExitStack() as opened:
            found = []
            for kind, given in _entries(options):
                found.append(kind.open_transport(given))
                if found[-1] is not None:
                    opened.callback(os.close, found[-1])
            opened.pop_all()
        return tuple(found)

    def attach(self, block: Any) -> None:
        """Pass the shared memory to drivers with a method ``attach``."""
        for device in self._devices:
            if hasattr(device, "attach"):
                device.attach(block)

    def foresee(self, time_to_event: Callable[[], float | None]) -> None:
        """Let drivers with a method ``foresee`` ask for the time to the next transition."""
        for device in self._devices:
            if hasattr(device, "foresee"):
                device.foresee(time_to_event)

    def open(self) -> None:
        """Open the devices, one after the other."""
        for device in self._devices:
            device.open()

    def calibrate(self) -> None:
        """Calibrate the devices; those with a blocking ``read`` get a thread each."""
        for k, device in enumerate(self._devices):
            device.calibrate()
            if device.spec.blocking_read:
                self._readers.append(BlockingReader(device))
                self._reads[k] = self._readers[-1].read
            elif hasattr(device, "compiled") and (io := device.compiled()) is not None:
                fast = _CompiledDevice(io, device.spec.axes)
                self._reads[k], self._writes[k] = fast.read, fast.write
        self.spec = combined_spec([device.spec for device in self._devices])

    def read(self) -> Sample:
        """Return the latest sample of each device, as a new one once all of them are."""
        found = [read() for read in self._reads]
        if all(sample.sequence != used for sample, used in zip(found, self._used, strict=True)):
            self._used = [sample.sequence for sample in found]
            self._latest = found
            self._sequence += 1
        position = [value for sample in self._latest for value in sample.position]
        velocity = [value for sample in self._latest for value in sample.velocity]
        # buttons count at once: a button to disengage does not wait for the other device
        buttons = sum((sample.buttons & (2**BUTTONS - 1)) << BUTTONS * k for k, sample in enumerate(found))
        return Sample(self._latest[0].time, self._sequence, position, velocity, buttons)

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command the force of each device; if one fails, the others get zero force, and its exception is raised."""
        sent: list[float] = []
        failure: Exception | None = None
        first = 0
        for part, write in zip(self.spec.parts, self._writes, strict=True):
            last = first + part.axes
            wanted = [0.0] * part.axes if failure else list(force[first:last])
            try:
                sent += write(wanted) or wanted
            except Exception as error:  # a driver may raise anything
                if failure is None and first:
                    self._disengage(first)
                failure = failure or error
            first = last
        if failure is not None:
            raise failure
        return sent

    def _disengage(self, until: int) -> None:
        """Command zero force to the devices with axes before axis ``until``."""
        first = 0
        for part, write in zip(self.spec.parts, self._writes, strict=True):
            if first < until:
                with contextlib.suppress(Exception):  # the first failure is reported
                    write([0.0] * part.axes)
            first += part.axes

    def diagnostics(self) -> dict[str, Any]:
        """Return the counts of all devices, with the number of the device in front, from 1."""
        return {
            f"{k} {name}": count
            for k, device in enumerate(self._devices, 1)
            if hasattr(device, "diagnostics")
            for name, count in device.diagnostics().items()
        }

    def close(self) -> None:
        """Close all devices, then raise the first exception."""
        for reader in self._readers:
            reader.stop()
        with contextlib.ExitStack() as closing:
            for device in self._devices:
                closing.callback(device.close)


class _CompiledDevice:
    """A device by its compiled reading and writing, which takes a tenth of the time; ``axes`` is their number."""

    def __init__(self, io: CompiledIO, axes: int) -> None:
        self._io, self._axes = io, axes
        function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))
        self._read, self._write = function(io.read), function(io.write)
        self._sample, self._force = (ctypes.c_double * (2 * axes + 3))(), (ctypes.c_double * axes)()

    def read(self) -> Sample:
        """Return the latest sample; raise OSError if reading fails."""
        if self._read(self._io.data, self._sample):
            raise OSError("the device is gone: reading failed")
        *numbers, sequence, buttons, time = self._sample
        return Sample(time, int(sequence), numbers[: self._axes], numbers[self._axes :], int(buttons))

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force; raise OSError if writing fails."""
        self._force[:] = list(force)
        if self._write(self._io.data, self._force):
            raise OSError("the device is gone: writing failed")
        return force


def combined_spec(parts: Sequence[DeviceSpec]) -> DeviceSpec:
    """Return the properties of several devices as one.

    Force and torque are those of the weakest, damping the least one, if all are known, the delay the longest; without a
    stop mechanism of one device there is none. ``parts``: in the order in which their axes are put behind each other.
    Raises InputError: their kinds differ.
    """
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        raise InputError("combined devices are of one kind", found=", ".join(sorted(kinds)))
    dampings = [part.handle.damping for part in parts if part.handle.damping is not None]
    first = [sum(part.axes for part in parts[:k]) for k in range(len(parts))]
    return DeviceSpec(
        "combined",
        sum(part.axes for part in parts),
        NOTHING if any(part.stop_mechanism == NOTHING for part in parts) else WATCHDOG,
        max(part.watchdog for part in parts),
        force=min(part.force for part in parts),
        torque=min(part.torque for part in parts),
        rotational_axes=tuple(
            at + axis for at, part in zip(first, parts, strict=True) for axis in part.rotational_axes
        ),
        handle=DeviceDynamics(
            damping=min(dampings) if len(dampings) == len(parts) else None,
            delay=max(part.handle.delay for part in parts),
        ),
        zeroed=all(part.zeroed for part in parts),
        low=tuple(value for part in parts for value in part.low or (-_UNKNOWN,) * part.axes),
        high=tuple(value for part in parts for value in part.high or (_UNKNOWN,) * part.axes),
        felt=any(part.felt for part in parts),
        velocity_lag=max(part.velocity_lag for part in parts),
        kind=kinds.pop(),
        parts=tuple(parts),
    )


def _listed(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of the option ``devices``."""
    found = options.get("devices")
    if (
        set(options) != {"devices"}
        or not isinstance(found, list | tuple)
        or not 2 <= len(found) <= MOST
        or not all(
            isinstance(entry, Mapping) and "driver" in entry and set(entry) <= {"driver", "options"} for entry in found
        )
    ):
        raise InputError(
            "the options of combined devices", found=str(dict(options))[:200],
            allowed=f"devices: 2 to {MOST} of {{driver: NAME, options: {{...}}}}",
        )  # fmt: skip
    return list(found)


def _entries(options: Mapping[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Return class and options of each driver."""
    found = [(driver_class(str(entry["driver"])), dict(entry.get("options") or {})) for entry in _listed(options)]
    if any(kind is Driver for kind, _ in found):
        raise InputError("combined devices cannot be combined again", remedy="list all of them in one place")
    return found


def _refuse_shared(entries: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
    """Raise InputError if two drivers would use one device; serial ports and sockets refuse it themselves."""
    for k, (kind, given) in enumerate(entries):
        selectors = getattr(kind, "SELECTED_BY", None)
        for other, (another, settings) in enumerate(entries[:k]):
            if another is not kind or selectors is None:
                continue
            if all(None in (pair := (settings.get(name), given.get(name))) or pair[0] == pair[1] for name in selectors):
                raise InputError(
                    f"devices {other + 1} and {k + 1} would be the same one",
                    found=f"driver {kind.__module__.rpartition('.')[2]}",
                    remedy=f"give each its own {' or '.join(selectors)}" if selectors else "there is only one of it",
                )
