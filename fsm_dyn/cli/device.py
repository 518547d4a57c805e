"""The commands ``device`` and ``passivity``: a mechanism coupled to haptic devices, and its assessment."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli import console
from fsm_dyn.cli.console import (
    Initial,
    Scale,
    Scales,
    Set,
    assignments,
    handle_errors,
    print_json,
    print_status,
    progress_message,
    ratios,
)
from fsm_dyn.cli.live import (
    Following,
    announce_address,
    driver_options,
    hold_and_report,
    page_packages,
    print_reports,
)
from fsm_dyn.cli.model_commands import Json, Model, ready_graph
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import write_file
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import table

if TYPE_CHECKING:
    from fsm_dyn.live.driver_protocol import DeviceDynamics
    from fsm_dyn.live.passivity import Assessment


# -- Several devices of the command line ---------------------------------------------------------------------
#
# Several devices of the command line: each ``--driver`` with its port, axes, scale, options and emulator.


@dataclass(frozen=True)
class DeviceArguments:
    """One device as the command line describes it."""

    driver: str
    options: dict[str, Any]  # of the driver, or of its emulator
    port: str  # empty: the first of the model, and so on by the number of the device
    axes: tuple[int, ...]  # empty: chosen by the gaps of the model
    scale: float | tuple[float, ...]


def device_arguments(
    drivers: Sequence[str],
    options: dict[str, Any],
    ports: Sequence[str],
    axes: Sequence[tuple[int, ...]],
    scales: Sequence[float | tuple[float, ...]],
) -> list[DeviceArguments]:
    """Return the devices in the order of their drivers.

    With several of them, options are ``NUMBER.NAME``, from 1; ports, axes and scales belong to the devices in turn, and
    missing ones have their defaults. Raises InputError: an option does not name its device, or there are more ports,
    axes or scales than devices.
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

    Raises InputError: a device has no port, or its axes do not fit.
    """
    # the runtime comes with these
    from fsm_dyn.live.device_map import coupled_ports, device_map_for

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


# -- The command ``device``: a mechanism coupled to a haptic device, or to an emulated one -------------------

CHECK_FORCE = 1.0  # N, the most with which a device is checked
# s, of the watchdog process and without samples: no person is at the device, and the computer may be busy
EMULATED_TIMEOUT = 0.5

_AXES = typer.Option(
    "--axes",
    help="Device axis for each port axis (from 0; -1: none), e.g. -1,0; default: those along which contacts close.",
)
Axes = Annotated[str | None, _AXES]
DeviceModel = Annotated[str | None, typer.Argument(help="A shipped model's name or a model file.")]
Drivers = Annotated[
    list[str] | None,
    typer.Option(
        "--driver",
        help="hapkit and others, see --list-drivers, or your own: FILE.py, module:Class; twice for two devices, "
        "each at another port.",
    ),
]
ListDrivers = Annotated[
    bool, typer.Option("--list-drivers", help="List drivers, their requirements and the serial ports found.")
]
CheckedDriver = Annotated[
    str | None,
    typer.Option(
        "--check",
        metavar="DRIVER",
        help="Check a device without a model: zero force, direction of each axis, a soft spring, unplugging.",
    ),
]
CheckReport = Annotated[
    Path | None, typer.Option("--report", help="File to which --check writes its report, Markdown.")
]
Emulate = Annotated[bool, typer.Option("--emulate", help="Start the emulator of the driver instead of using hardware.")]
DeviceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the driver, or with --emulate of its emulator; repeat. Of two devices: 1.NAME, 2.NAME.",
    ),
]
Ports = Annotated[
    list[str] | None, typer.Option("--port", help="Port that is coupled to the device; default: the first.")
]
EmulatedWatchdogTimeout = Annotated[
    float | None,
    typer.Option(
        "--watchdog-timeout",
        help="Heartbeat timeout of the watchdog process, s (0.1; 0.5 with --emulate).",
    ),
]
RunDuration = Annotated[float | None, typer.Option("--duration", help="Duration, s, of a run without a page.", min=0.0)]


@handle_errors
def device_command(
    model: DeviceModel = None,
    driver: Drivers = None,
    list_: ListDrivers = False,
    check: CheckedDriver = None,
    check_report: CheckReport = None,
    emulate: Emulate = False,
    option: DeviceOptions = None,
    port: Ports = None,
    axes: Annotated[list[str] | None, _AXES] = None,
    scale: Scales = None,
    force: console.Force = 8.0,
    slew: console.Slew = 2000.0,
    ramp: console.Ramp = console.RAMP,
    period: console.Period = 1e-3,
    substeps: console.Substeps = None,
    watchdog_timeout: EmulatedWatchdogTimeout = None,
    release_after: console.ReleaseAfter = console.RELEASE_AFTER,
    stall_timeout: console.EmulatedStallTimeout = None,
    owner_timeout: console.OwnerTimeout = console.OWNER_TIMEOUT,
    lag_limit: console.LagLimit = console.LAG_LIMIT,
    look_ahead: console.LookAhead = 0.0,
    seconds: RunDuration = None,
    no_browser: console.NoBrowser = False,
    page_port: console.PagePort = 0,
    record: console.Record = None,
    foxglove: console.Foxglove = None,
    rerun: console.RerunViewer = None,
    passivity: console.Passivity = "off",
    set_: Set = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Couple a model to a device, with a page; with --emulate without hardware.

    On the page of ``fsm-dyn device virtual_wall --driver hapkit --emulate`` the device can be unplugged, its packets
    corrupted or truncated, and the stiffness of the wall raised to its limit.
    """
    if list_:
        _list(as_json)
        return
    if check is not None:
        _check(check, driver_options(option), emulate, min(force, CHECK_FORCE), check_report, as_json)
        return
    model, driver = _required(model, driver, record)
    usual = EMULATED_TIMEOUT if emulate else console.STALL_TIMEOUT
    waiting = {
        "release_after": release_after, "stall_timeout": usual if stall_timeout is None else stall_timeout,
        "owner_timeout": owner_timeout, "lag_limit": lag_limit,
    }  # fmt: skip
    devices = device_arguments(
        driver, driver_options(option), port or [], [numbers(text) for text in axes or []], [*map(ratios, scale or [])]
    )
    coupling = _CouplingOptions(
        {"force": force, "slew": slew, "ramp": ramp}, period, substeps, watchdog_timeout, waiting,
        Following(record, foxglove, rerun), passivity, assignments("--initial", initial) or {}, look_ahead,
    )  # fmt: skip
    parameters, ticks = assignments("--set", set_) or {}, console.ticks("--duration", seconds, period)
    if len(devices) == 1:
        page = None if seconds is not None else (page_port, no_browser)
        _hold_one(model, devices[0], emulate, coupling, parameters, ticks, page, as_json)
    elif seconds is None:
        raise InputError("the page shows one device", found=", ".join(driver), remedy="--duration runs without it")
    else:
        _hold_several(model, devices, emulate, coupling, parameters, ticks, as_json)


def _required(model: str | None, driver: list[str] | None, record: Path | None) -> tuple[str, list[str]]:
    """Return model and drivers; raise InputError without them, or if the recording exists."""
    if model is None or not driver:
        raise InputError(
            "a model and --driver are needed", remedy="fsm-dyn device virtual_wall --driver hapkit --emulate"
        )
    if record is not None and record.exists():
        raise InputError(f"cannot record to '{record}'", found="it exists", remedy="name a new file")
    return model, driver


def _hold_one(
    model: str,
    device: DeviceArguments,
    emulate: bool,
    coupling: _CouplingOptions,
    parameters: dict[str, Any],
    ticks: int,
    page: tuple[int, bool] | None,
    as_json: bool,
) -> None:
    """Couple one device; ``page``: its TCP port, and whether without a browser; None: ``ticks`` without a page."""
    with asked_to_end() as asked, emulated(device.driver, device.options, emulate) as (options, emulation):
        with asked.at_once():
            graph, held, changed, by = _coupled(model, device, options, emulation, coupling, parameters, as_json)
        if page is not None:
            _on_page(graph, model, by, coupling, parameters, *page, as_json)
        else:
            settings = coupling.settings(by, by.mapping, ticks)
            hold_and_report(
                asked, held, device.driver, options, settings, changed, coupling.following, as_json, emulate
            )


@dataclass(frozen=True)
class _CouplingOptions:
    """Options of the command line for the coupling of device and model."""

    limits: dict[str, Any]
    period: float
    substeps: int | None
    watchdog_timeout: float | None
    waiting: dict[str, float]
    following: Following
    passivity: str
    initial: dict[str, Any]
    look_ahead: float

    def settings(self, by: Any, maps: Any, ticks: int) -> Any:
        """Return the settings of a run without a page."""
        # the runtime comes with it
        from fsm_dyn.live.live_settings import LiveSettings

        return LiveSettings(
            period=self.period, substeps=self.substeps, device_map=maps, limits=by.limits, **by.timeouts(self.period),
            ticks=ticks, passivity=self.passivity, initial=self.initial, look_ahead=self.look_ahead,
        )  # fmt: skip


def _coupled(
    model: str,
    device: DeviceArguments,
    options: dict[str, Any],
    emulation: Any,
    coupling: _CouplingOptions,
    parameters: dict[str, Any],
    as_json: bool,
) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return the graph, the coupled graph, the parameters unlike those in its file, and the coupling device."""
    # the runtime comes with these
    from fsm_dyn.live.device_map import Limits, device_map_for
    from fsm_dyn.live.driver_protocol import driver_class
    from fsm_dyn.page.ports import CouplingDevice

    kind = driver_class(device.driver)
    options = dict(getattr(kind, "complete", dict)(options))  # a driver may determine missing options itself
    spec = kind.describe(options)
    with progress_message("compiling the model with its ports", as_json):
        graph = ready_graph(model, None, True)
        held, changed = _coupled_for(spec, graph, parameters)
    zeroed = spec.zeroed or emulation is not None  # an emulated device begins at its zero
    mapping = device_map_for(held, device.port, spec.axes, device.axes, device.scale, zeroed=zeroed)
    timeout = coupling.watchdog_timeout or (console.WATCHDOG_TIMEOUT if emulation is None else EMULATED_TIMEOUT)
    by = CouplingDevice(
        device.driver, options, mapping, Limits(**coupling.limits), timeout, emulation, **coupling.waiting
    )
    return graph, held, changed, by


def _coupled_for(spec: Any, graph: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the graph coupled for the kind of a device, and the parameters unlike the file's."""
    # the runtime comes with these
    from fsm_dyn.live.driver_protocol import ADMITTANCE
    from fsm_dyn.live.launch import coupled_graph
    from fsm_dyn.page.live_view import coupled_for_page

    if spec.kind == ADMITTANCE:
        return coupled_graph(graph, parameters, True), parameters
    return coupled_for_page(graph, parameters)


def _hold_several(
    model: str,
    devices: list[DeviceArguments],
    emulate: bool,
    coupling: _CouplingOptions,
    parameters: dict[str, Any],
    ticks: int,
    as_json: bool,
) -> None:
    """Couple a model to several devices, each at its port, and report once the run has ended."""
    # the runtime comes with these
    from fsm_dyn.devices import combined
    from fsm_dyn.live.device_map import Limits
    from fsm_dyn.page.ports import CouplingDevice

    with (
        asked_to_end() as asked,
        all_emulated(devices, lambda driver, given: emulated(driver, given, emulate)) as entries,
    ):
        with asked.at_once():
            options = combined.Driver.complete({"devices": entries})
            with progress_message("compiling the model with its ports", as_json):
                spec = combined.Driver.describe(options)
                held, changed = _coupled_for(spec, ready_graph(model, None, True), parameters)
            maps = maps_of(held, devices, spec, emulate=emulate)
            timeout = coupling.watchdog_timeout or (EMULATED_TIMEOUT if emulate else console.WATCHDOG_TIMEOUT)
            by = CouplingDevice(
                "combined", options, maps[0], Limits(**coupling.limits), timeout, None, **coupling.waiting
            )
        settings = coupling.settings(by, maps, ticks)
        hold_and_report(asked, held, "combined", options, settings, changed, coupling.following, as_json, emulate)


def _on_page(
    graph: Any,
    model: str,
    by: Any,
    coupling: _CouplingOptions,
    parameters: dict[str, Any],
    page_port: int,
    no_browser: bool,
    as_json: bool,
) -> None:
    """Serve the page of a model coupled to a device until Ctrl-C."""
    if by.spec.kind != "impedance":
        raise InputError("the page shows no device that follows", found=by.driver, remedy="--duration runs without it")
    with page_packages():
        from fsm_dyn.page.live_view import LiveOptions
        from fsm_dyn.page.server import serve

    options = LiveOptions(
        coupling.period, coupling.substeps, False, parameters, coupling.following.record, initial=coupling.initial,
        device=by, passivity=coupling.passivity, look_ahead=coupling.look_ahead,
    )  # fmt: skip
    with coupling.following.viewers(model) as follow:
        opened = announce_address(model, no_browser, as_json)
        reports = serve(graph, replace(options, follow=follow), page_port, None, opened)
    print_reports(model, reports, as_json)


@contextlib.contextmanager
def emulated(driver: str, given: dict[str, Any], requested: bool) -> Iterator[tuple[dict[str, Any], Any]]:
    """Start the emulator of a driver if requested, and end it; gives the options of the driver and the emulator."""
    if not requested:
        yield given, None
        return
    from fsm_dyn.devices.emulators.emulated_device import emulation

    started = emulation(driver, given)
    try:
        yield dict(started.options), started
    finally:
        started.close()


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of ``--axes``. Raises InputError: the text is not a list of integers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError("--axes takes numbers", found=text, allowed="e.g. 0,1 or -1,0") from None


def _check(driver: str, given: dict[str, Any], emulate: bool, force: float, file: Path | None, as_json: bool) -> None:
    """Check a device, print and write the report; exit with 1 if a step fails."""
    # the runtime comes with it
    from fsm_dyn.devices.device_check import check_device, report

    with emulated(driver, given, emulate) as (options, emulation):

        def unplug() -> None:
            if emulation is None:
                print_status("unplug the device now")
            else:
                emulation.do("unplug")

        spec, steps = check_device(driver, options, force, unplug)
    text = report(driver, spec, steps, force)
    if file is not None:
        write_file(file, report(driver, spec, steps, force, drawn=True))
    if as_json:
        print_json({"driver": driver, "max_force": force, "steps": [vars(step) for step in steps]})
    else:
        typer.echo(text)
    if not all(step.passed for step in steps):
        raise typer.Exit(1)


def _list(as_json: bool) -> None:
    """List drivers and serial ports."""
    from fsm_dyn.devices.driver_tools import ports, shipped_drivers

    drivers, there = shipped_drivers(), ports()
    if as_json:
        keys = {"about": "description", "missing": "missing_package", "emulated": "has_emulator"}
        listed = [{keys.get(key, key): value for key, value in vars(item).items()} for item in drivers]
        print_json({"drivers": listed, "serial_ports": there})
        return
    rows = [
        (
            item.name,
            "yes" if item.emulated else "",
            f"needs the package {item.missing}: pip install 'fsm-dyn[devices]'" if item.missing else item.about,
        )
        for item in drivers
    ]
    typer.echo(table(("driver", "--emulate", "description"), rows))
    typer.echo("\nserial ports: " + (", ".join(there) or "none"))
    print_status("a driver of your own: FILE.py or module:Class, see docs/how_to/device.md")


@handle_errors
def passivity_command(
    model: Model,
    driver: Annotated[
        str | None,
        typer.Option("--driver", help="Driver with the known properties of the device; default: none known."),
    ] = None,
    emulate: Annotated[bool, typer.Option("--emulate", help="Take the properties of the driver's emulator.")] = False,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the driver; repeat.")
    ] = None,
    mode: Annotated[list[str] | None, typer.Option("--mode", help="A mode to assess; repeat.")] = None,
    mass: Annotated[float | None, typer.Option("--mass", help="Mass of the device, kg.", min=0.0)] = None,
    damping: Annotated[float | None, typer.Option("--damping", help="Damping of the device, N s/m.", min=0.0)] = None,
    friction: Annotated[
        float | None, typer.Option("--friction", help="Dry friction of the device, N.", min=0.0)
    ] = None,
    resolution: Annotated[
        float | None, typer.Option("--resolution", help="Position resolution of the device, m.", min=0.0)
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", help="Delay from motion to force, s.", min=0.0)] = None,
    hand_stiffness: Annotated[
        float | None,
        typer.Option("--hand-stiffness", help="Stiffness of a hand that holds the device, N/m.", min=0.0),
    ] = None,
    hand_damping: Annotated[
        float | None, typer.Option("--hand-damping", help="Damping of the hand, N s/m.", min=0.0)
    ] = None,
    hand_mass: Annotated[float, typer.Option("--hand-mass", help="Mass of the hand, kg.", min=0.0)] = 0.0,
    port: Annotated[str, typer.Option("--port", help="Port that is coupled to the device; default: the first.")] = "",
    axes: Axes = None,
    scale: Scale = "1",
    period: Annotated[float, typer.Option("--period", help="Length of a tick, s.")] = 1e-3,
    substeps: console.Substeps = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw the Z-width to this file, .svg or .png.")
    ] = None,
    set_: Set = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Assess the passivity of a model and a device."""
    known = {"mass": mass, "damping": damping, "friction": friction, "resolution": resolution, "delay": delay}
    with (
        asked_to_end() as asked,
        emulated(driver or "", driver_options(option), emulate) as (options, _),
        asked.at_once(),
    ):
        analyse(
            model, driver=driver, options=options, known=known, modes=mode or (), port=port,
            axes=numbers(axes) if axes else None, scale=ratios(scale), period=period, substeps=substeps,
            parameters=assignments("--set", set_), at=assignments("--initial", initial), figure=figure,
            as_json=as_json, hand=(hand_stiffness, hand_damping, hand_mass),
        )  # fmt: skip


def analyse(
    model: str,
    *,
    driver: str | None = None,
    options: Mapping[str, Any] | None = None,
    known: Mapping[str, float | None] | None = None,
    modes: Sequence[str] = (),
    port: str = "",
    axes: tuple[int, ...] | None = None,
    scale: float | tuple[float, ...] = 1.0,
    period: float = 1e-3,
    substeps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    at: Mapping[str, Any] | None = None,
    figure: Path | None = None,
    as_json: bool = False,
    hand: tuple[float | None, float | None, float] = (None, None, 0.0),
) -> None:
    """Print the passivity assessment of a model and a device, and draw its Z-width.

    ``driver``, ``options``: the driver with the description of the device; without one the device has only the
    ``known`` properties. ``known``: properties that replace the driver's: ``mass``, ``damping``, ``friction``,
    ``resolution``, ``delay``; None: not given. ``at``: replacements for entries of the model's ``initial``; modes are
    linearised about this state. ``hand``: stiffness (N/m), damping (N s/m) and mass (kg) of the hand on the device;
    None: not given.
    """
    # The runtime comes with these.
    from fsm_dyn.live.device_map import DeviceMap, aligned_axes
    from fsm_dyn.live.driver_protocol import ADMITTANCE, DeviceDynamics, DeviceSpec, driver_class
    from fsm_dyn.live.launch import assessed_substeps, coupled_graph, damped_graph
    from fsm_dyn.live.live_settings import LiveSettings
    from fsm_dyn.live.passivity import Hand, assess

    settings = LiveSettings(period=period, substeps=substeps, initial=at or {})
    settings.check()
    handle, n_device, turns = DeviceDynamics(), None, None
    if driver:
        spec: DeviceSpec = driver_class(driver).describe(dict(options or {}))
        handle, n_device, turns = spec.handle, spec.axes, spec.rotational_axes
    elif axes:
        n_device = 1 + max(axes)
    given = {name: value for name, value in (known or {}).items() if value is not None}
    handle = replace(handle, **given)
    if driver and spec.kind == ADMITTANCE:
        _print_admittance(model, parameters, modes, port, scale, hand[:2], handle.delay, period, as_json)
        return
    with progress_message("compiling the model with its ports", as_json):
        graph = coupled_graph(ready_graph(model, None, True), parameters)
    if axes is None:
        axes = () if n_device is None else aligned_axes(graph, port, n_device)
    mapping = DeviceMap(port=port, axes=axes, scale=scale)
    with progress_message("computing its response", as_json):
        graph = damped_graph(graph, parameters or (), handle, mapping, period)
        found = assess(
            graph, handle, modes=modes, mapping=mapping, n_device=n_device, turns=turns, period=period,
            substeps=assessed_substeps(settings, graph, port), at=at,
            hand=None if hand[0] is hand[1] is None else Hand(hand[0] or 0.0, hand[1] or 0.0, hand[2]),
        )  # fmt: skip
        written = None if figure is None else draw(found, figure)
    if as_json:
        print_json({**found.as_dict(), "figure": written and str(written)})
        return
    typer.echo(as_text(found))
    if written:
        typer.echo(f"wrote {written}")


def _print_admittance(
    model: str,
    parameters: Mapping[str, Any] | None,
    modes: Sequence[str],
    port: str,
    scale: float | tuple[float, ...],
    hand: tuple[float | None, float | None],
    delay: float,
    period: float,
    as_json: bool,
) -> None:
    """Print for each axis and mode the inertia felt by the hand, and the least stable one."""
    # The runtime comes with these.
    from fsm_dyn.live.launch import coupled_graph
    from fsm_dyn.live.passivity import assess_admittance

    stiffness, damping = hand
    if stiffness is None or damping is None or isinstance(scale, tuple):
        raise InputError(
            "a device that follows is assessed with a hand, and one scale",
            remedy="--hand-stiffness 500 --hand-damping 10",
        )
    with progress_message("compiling the model with its ports", as_json):
        graph = coupled_graph(ready_graph(model, None, True), parameters, True)
    found = [
        condition
        for mode in modes or (graph.initial,)
        for condition in assess_admittance(
            graph, mode, stiffness=stiffness, damping=damping, delay=delay, port=port, scale=scale, period=period
        )
    ]
    if as_json:
        conditions = [{**vars(condition), "stable": condition.stable} for condition in found]
        print_json({"model": graph.name, "delay": delay + period, "conditions": conditions})
        return
    typer.echo(f"{graph.name}, followed {delay + period:g} s late; hand of {stiffness:g} N/m and {damping:g} N s/m\n")
    rows = [
        (c.mode, c.axis, "stable" if c.stable else "unstable", f"{c.required:.4g}", f"{c.inertia:.4g}") for c in found
    ]
    typer.echo(table(("mode", "axis", "verdict", "least inertia, kg", "inertia, kg"), rows))


def as_text(found: Assessment) -> str:
    """Return an assessment as text for a terminal."""
    lines = [
        f"{found.model}, port {found.port}, at {1.0 / found.period:.4g} Hz: {found.verdict}",
        f"device: {_known(found.handle)}",
    ]
    lines += [
        f"{axis}: rendered stiffness {K:.4g} N/m, damping {found.damping[axis]:.4g} N s/m"
        for axis, K in found.stiffness.items()
    ]
    return "\n".join(
        [*lines, "", table(("condition", "axis", "verdict", "required", "available", "basis"), found.rows())]
    )


def _known(handle: DeviceDynamics) -> str:
    units = {"mass": "kg", "damping": "N s/m", "friction": "N", "resolution": "m", "delay": "s"}
    values = {name: getattr(handle, name) for name in units}
    return ", ".join(
        f"{name} {'unknown' if value is None else f'{value:.4g} {units[name]}'}" for name, value in values.items()
    )


def draw(found: Assessment, path: Path) -> Path:
    """Write the Z-width of the device, with the stiffest axis of the coupler marked; return the path."""
    # Matplotlib, for the picture only.
    from fsm_dyn import plot
    from fsm_dyn.live.sampled_loop import z_width

    stiffest = max(found.stiffness, key=lambda axis: found.stiffness[axis], default=None)
    width = z_width(found.handle)
    picture = plot.z_width(
        f"{found.model}: Z-width of the device", width.rate,
        {
            "rigid model, coupler without damping": width.wall,
            "any passive model, coupler with optimal damping": width.coupler,
            "the first, stable without operator": width.alone,
        },
        width.quantised, None if stiffest is None else (1.0 / found.period, found.stiffness[stiffest]),
    )  # fmt: skip
    return plot.save(picture, path)
