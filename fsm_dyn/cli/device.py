"""The command ``device``: a mechanism held by a haptic device, or by one made of numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fsm_dyn.cli import timing
from fsm_dyn.cli.assignments import Initial, Scale, Set, assignments, ratios
from fsm_dyn.cli.console import handle_errors, print_json, print_status, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.live import Passivity, driver_options, hold_and_report
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.cli.passivity import analyse
from fsm_dyn.cli.view import announce_address, page_packages, print_reports
from fsm_dyn.errors import InputError
from fsm_dyn.interrupts import asked_to_end

EMULATED_TIMEOUT = 0.5  # s until the guard ends a run; nobody's hand is in it, and this computer may be busy


@handle_errors
def device_command(
    model: Annotated[str | None, typer.Argument(help="A shipped model's name or a model file.")] = None,
    driver: Annotated[
        str | None, typer.Option("--driver", help="hapkit and others, see --list, or module:Class of your own.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Tell which drivers there are, what they need, which serial ports.")
    ] = False,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Without hardware: start the emulator that belongs to the driver.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="NAME=VALUE", help="An option of the driver, or of its emulator where that is used."
        ),
    ] = None,
    port: Annotated[str, typer.Option("--port", help="The port that the device holds; the first by default.")] = "",
    axes: Annotated[
        str | None,
        typer.Option(
            "--axes",
            help="For each axis of the port the number of the device's, from 0, -1 for none, e.g. -1,0; by default "
            "those that meet contacts.",
        ),
    ] = None,
    scale: Scale = "1",
    force: Annotated[float, typer.Option("--force", help="Largest force the device may show, N.")] = 8.0,
    slew: timing.Slew = 2000.0,
    ramp: timing.Ramp = timing.RAMP,
    period: Annotated[float, typer.Option("--period", help="Length of a tick, s.")] = 1e-3,
    substeps: timing.Substeps = None,
    watchdog_timeout: Annotated[
        float | None,
        typer.Option(
            "--guard-timeout",
            help="How long ticks may stand still until the guard ends the run, s (0.1; 0.5 with --emulate).",
        ),
    ] = None,
    release_after: timing.ReleaseAfter = timing.RELEASE_AFTER,
    stall_timeout: timing.StallTimeout = timing.STALL_TIMEOUT,
    owner_timeout: timing.OwnerTimeout = timing.OWNER_TIMEOUT,
    seconds: Annotated[float | None, typer.Option("--for", help="How long, s; then without a page.", min=0.0)] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only tell the page's address.")] = False,
    serve_on: Annotated[
        int, typer.Option("--serve-on", help="Where to serve the page; 0: any free port.", min=0, max=65535)
    ] = 0,
    record: Annotated[Path | None, typer.Option("--record", help="Record the run to a new MCAP file.")] = None,
    passivity: Passivity = "off",
    analyse_: Annotated[
        bool, typer.Option("--analyse", help="Instead of a run: are model and device passive together?")
    ] = False,
    mode: Annotated[list[str] | None, typer.Option("--mode", help="--analyse: a mode to look at; repeat.")] = None,
    mass: Annotated[float | None, typer.Option("--mass", help="--analyse: of the device, kg.", min=0.0)] = None,
    damping: Annotated[
        float | None, typer.Option("--damping", help="--analyse: of the device alone, N s/m.", min=0.0)
    ] = None,
    friction: Annotated[
        float | None, typer.Option("--friction", help="--analyse: dry friction of the device, N.", min=0.0)
    ] = None,
    resolution: Annotated[
        float | None, typer.Option("--resolution", help="--analyse: of the device's position, m.", min=0.0)
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", help="--analyse: from motion to force, s.", min=0.0)] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="--analyse: draw the Z-width to this file, .svg or .png.")
    ] = None,
    set_: Set = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Hold a model by a device and watch it on a page; with --emulate without hardware.

    What begins as ``fsm-dyn device virtual_wall --driver hapkit --emulate`` has a page on which the device can be
    unplugged, garbled and stalled, and the stiffness of the wall felt to its limit.
    """
    if list_:
        _list(as_json)
        return
    if analyse_ and model is not None:
        known = {
            "mass": mass, "damping": damping, "friction": friction, "resolution": resolution, "delay": delay,
        }  # fmt: skip
        with (
            asked_to_end() as asked,
            _emulated(driver or "", driver_options(option), emulate) as (options, _),
            asked.at_once(),
        ):
            analyse(
                model, driver=driver, options=options, known=known, modes=mode or (), port=port,
                axes=_numbers(axes) or None, scale=ratios(scale), period=period, substeps=substeps,
                parameters=assignments("--set", set_), at=assignments("--initial", initial), figure=figure,
                as_json=as_json,
            )  # fmt: skip
        return
    if model is None or driver is None:
        raise InputError(
            "a model and --driver are needed", remedy="fsm-dyn device virtual_wall --driver hapkit --emulate"
        )
    if record is not None and record.exists():
        raise InputError(f"cannot record to '{record}'", found="it exists", remedy="name a new file")
    ticks = timing.ticks("--for", seconds, period)
    limits = {"force": force, "slew": slew, "ramp": ramp}
    waiting = {"release_after": release_after, "stall_timeout": stall_timeout, "owner_timeout": owner_timeout}
    way = _CouplingOptions(
        port, _numbers(axes), ratios(scale), limits, period, substeps, watchdog_timeout, waiting, record, passivity
    )
    parameters = assignments("--set", set_) or {}
    with asked_to_end() as asked, _emulated(driver, driver_options(option), emulate) as (options, emulation):
        with asked.at_once():
            graph, held, changed, by = _held(model, driver, options, emulation, way, parameters, as_json)
        if seconds is None:
            _on_page(graph, model, by, way, parameters, serve_on, no_browser, as_json)
        else:
            # the runtime comes with it
            from fsm_dyn.live.settings import Settings

            settings = Settings(
                period=period, substeps=substeps, device_map=by.mapping, limits=by.limits, **by.timeouts(period),
                ticks=ticks, passivity=passivity,
            )  # fmt: skip
            hold_and_report(asked, held, driver, options, settings, changed, record, as_json)


@dataclass(frozen=True)
class _CouplingOptions:
    """How the device is to hold the model, as the command line says."""

    port: str
    axes: tuple[int, ...]
    scale: float | tuple[float, ...]
    limits: dict[str, Any]
    period: float
    substeps: int | None
    watchdog_timeout: float | None
    waiting: dict[str, float]
    record: Path | None
    passivity: str


def _held(
    model: str,
    driver: str,
    options: dict[str, Any],
    emulation: Any,
    way: _CouplingOptions,
    parameters: dict[str, Any],
    as_json: bool,
) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return the graph, the held one, the parameters that differ from its file, and what holds it."""
    # the runtime comes with these
    from fsm_dyn.live.axis_alignment import device_map_for
    from fsm_dyn.live.device_map import Limits
    from fsm_dyn.live.driver_protocol import driver_class
    from fsm_dyn.viewer.device_panel import CouplingDevice
    from fsm_dyn.viewer.live_view import coupled_for_page

    kind = driver_class(driver)
    options = dict(getattr(kind, "complete", dict)(options))  # a driver may find out what was left open
    spec = kind.describe(options)
    with progress_message("compiling the model with its ports", as_json):
        graph = ready_graph(model, None, True)
        held, changed = coupled_for_page(graph, parameters)
    zeroed = spec.zeroed or emulation is not None  # an emulated device begins at its zero
    mapping = device_map_for(held, way.port, spec.axes, way.axes, way.scale, zeroed=zeroed)
    timeout = way.watchdog_timeout or (timing.WATCHDOG_TIMEOUT if emulation is None else EMULATED_TIMEOUT)
    by = CouplingDevice(driver, options, mapping, Limits(**way.limits), timeout, emulation, **way.waiting)
    return graph, held, changed, by


def _on_page(
    graph: Any,
    model: str,
    by: Any,
    way: _CouplingOptions,
    parameters: dict[str, Any],
    serve_on: int,
    no_browser: bool,
    as_json: bool,
) -> None:
    """Serve the page of a model that a device holds until Ctrl-C."""
    with page_packages():
        from fsm_dyn.viewer.live_view import LiveOptions
        from fsm_dyn.viewer.serve import serve

    wanted = LiveOptions(way.period, way.substeps, False, parameters, way.record, device=by, passivity=way.passivity)
    reports = serve(graph, wanted, serve_on, None, announce_address(model, no_browser, as_json))
    print_reports(model, reports, as_json)


@contextlib.contextmanager
def _emulated(driver: str, given: dict[str, Any], wanted: bool) -> Iterator[tuple[dict[str, Any], Any]]:
    """Start the emulator of a driver, where one is wanted, and end it; gives the driver's options, and the emulator."""
    if not wanted:
        yield given, None
        return
    from fsm_dyn.devices.emulators.emulator_process import emulation

    started = emulation(driver, given)
    try:
        yield dict(started.options), started
    finally:
        started.close()


def _numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError("--axes takes numbers", found=text, allowed="e.g. 0,1 or -1,0") from None


def _list(as_json: bool) -> None:
    """Tell which drivers there are, and which serial ports."""
    from fsm_dyn.devices.driver_registry import shipped_drivers
    from fsm_dyn.devices.serial_line import ports

    drivers, there = shipped_drivers(), ports()
    if as_json:
        print_json({"drivers": [vars(item) for item in drivers], "serial_ports": there})
        return
    rows = [
        (
            item.name,
            "yes" if item.emulated else "",
            f"needs the package {item.missing}: pip install 'fsm-dyn[devices]'" if item.missing else item.about,
        )
        for item in drivers
    ]
    typer.echo(table(("driver", "--emulate", "what it is"), rows))
    typer.echo("\nserial ports: " + (", ".join(there) or "none"))
    print_status("a driver of your own: module:Class, see docs/how_to/device.md")
