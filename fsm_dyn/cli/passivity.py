"""The command ``passivity``: assessment of a coupled model and a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli import options as timing
from fsm_dyn.cli.console import handle_errors, print_json, progress_message
from fsm_dyn.cli.device import Axes, emulated, numbers
from fsm_dyn.cli.live import driver_options
from fsm_dyn.cli.model_commands import Json, Model, ready_graph
from fsm_dyn.cli.options import Initial, Scale, Set, assignments, ratios
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.draw.svg import table

if TYPE_CHECKING:
    from fsm_dyn.live.driver_protocol import DeviceDynamics
    from fsm_dyn.live.passivity import Assessment


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
    substeps: timing.Substeps = None,
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

    Parameters
    ----------
    driver, options
        The driver with the description of the device; without one the device has only the ``known`` properties.
    known : mapping
        Properties that replace the driver's: ``mass``, ``damping``, ``friction``, ``resolution``, ``delay``; None: not
        given.
    at : mapping
        Replacements for entries of the model's ``initial``; modes are linearised about this state.
    hand : tuple
        Stiffness (N/m), damping (N s/m) and mass (kg) of the hand on the device; None: not given.
    """
    # The runtime comes with these.
    from fsm_dyn.live.device_map import DeviceMap, aligned_axes
    from fsm_dyn.live.driver_protocol import ADMITTANCE, DeviceDynamics, DeviceSpec, driver_class
    from fsm_dyn.live.launch import coupled_graph, substeps_of
    from fsm_dyn.live.live_settings import LiveSettings
    from fsm_dyn.live.passivity import Hand, assess
    from fsm_dyn.live.usual_damping import damped_graph

    settings = LiveSettings(period=period, substeps=substeps)
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
            substeps=substeps_of(settings, graph), at=at,
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
    from fsm_dyn.live.z_width import z_width

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
