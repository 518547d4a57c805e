"""Several devices of the command line: each ``--driver`` with its port, axes, scale, options and emulator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fsm_dyn.errors import InputError


@dataclass(frozen=True)
class DeviceArguments:
    """One device as the command line describes it.

    Attributes
    ----------
    driver : str
    options : dict
        Of the driver, or of its emulator.
    port : str
        Empty: the first of the model, and so on by the number of the device.
    axes : tuple of int
        Empty: chosen by the gaps of the model.
    scale : float or tuple of float
    """

    driver: str
    options: dict[str, Any]
    port: str
    axes: tuple[int, ...]
    scale: float | tuple[float, ...]


def device_arguments(
    drivers: Sequence[str],
    options: dict[str, Any],
    ports: Sequence[str],
    axes: Sequence[tuple[int, ...]],
    scales: Sequence[float | tuple[float, ...]],
) -> list[DeviceArguments]:
    """Return the devices in the order of their drivers.

    With several of them, options are ``NUMBER.NAME``, from 1; of ports, axes and scales, the first is of the first
    device and so on, and those that are missing have their defaults.

    Raises
    ------
    InputError
        An option does not name its device, or there is more of something than devices.
    """
    count = len(drivers)
    for name, values in (("--port", ports), ("--axes", axes), ("--scale", scales)):
        if len(values) > count:
            raise InputError(f"{name} is given {len(values)} times", allowed=f"once for each of {count} devices")
    each = [options] if count == 1 else _options_of_each(options, count)
    return [
        DeviceArguments(
            driver,
            each[k],
            ports[k] if k < len(ports) else "",
            axes[k] if k < len(axes) else (),
            scales[k] if k < len(scales) else 1.0,
        )
        for k, driver in enumerate(drivers)
    ]


def _options_of_each(options: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the options of each device, without its number."""
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, value in options.items():
        number, _, own = name.partition(".")
        if not (number.isdecimal() and own and 1 <= int(number) <= count):
            raise InputError(
                "--option of several devices", found=name, allowed=f"NUMBER.NAME=VALUE, the number from 1 to {count}"
            )
        found[int(number) - 1][own] = value
    return found


@contextlib.contextmanager
def all_emulated(
    devices: Sequence[DeviceArguments], emulated: Callable[[str, dict[str, Any]], Any]
) -> Iterator[list[dict[str, Any]]]:
    """Start the emulators, if requested; gives the entries of the option ``devices`` of the driver ``combined``."""
    with contextlib.ExitStack() as started:
        yield [
            {"driver": device.driver, "options": started.enter_context(emulated(device.driver, device.options))[0]}
            for device in devices
        ]


def maps_of(graph: Any, devices: Sequence[DeviceArguments], spec: Any, *, emulate: bool) -> tuple[Any, ...]:
    """Return the device map of each device at its port of a coupled graph; ``spec`` is that of the combined device.

    Raises
    ------
    InputError
        There is no port for a device, or its axes do not fit.
    """
    # the runtime comes with these
    from fsm_dyn.live.axis_alignment import device_map_for
    from fsm_dyn.live.port_coupling import coupled_ports

    ports = [port.name for port in coupled_ports(graph.automaton.mechanism)]
    maps = []
    for k, (device, part) in enumerate(zip(devices, spec.parts, strict=True)):
        if not device.port and k >= len(ports):
            raise InputError(f"there is no port for device {k + 1}", found=", ".join(ports), allowed="a port for each")
        maps.append(
            device_map_for(
                graph, device.port or ports[k], part.axes, device.axes, device.scale, zeroed=spec.zeroed or emulate
            )
        )
    return tuple(maps)
