"""Passivity of a held model with a device: what ``device --analyse`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fsm_dyn.cli.console import print_json, progress_message, table
from fsm_dyn.cli.model_commands import ready_graph

if TYPE_CHECKING:
    from fsm_dyn.live.driver_protocol import DeviceDynamics
    from fsm_dyn.passivity.assessment import Assessment


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
) -> None:
    """Print what the conditions of passivity say of a model with a device, and draw its Z-width.

    Parameters
    ----------
    driver, options
        The driver that tells what is known of the device; nothing is known without one.
    known : mapping
        What is known better: ``mass``, ``damping``, ``friction``, ``resolution``, ``delay``; None: not given.
    at : mapping
        What replaces entries of the model's ``initial``, about which its modes are looked at.
    """
    # The runtime comes with these.
    from fsm_dyn.live.axis_alignment import aligned_axes
    from fsm_dyn.live.driver_protocol import DeviceDynamics, driver_class
    from fsm_dyn.live.live_stepper import DeviceMap
    from fsm_dyn.live.session_launch import coupled_graph, substeps_of
    from fsm_dyn.live.settings import Settings
    from fsm_dyn.passivity.assessment import assess

    settings = Settings(period=period, substeps=substeps)
    settings.check()
    handle, n_device, turns = DeviceDynamics(), None, None
    if driver:
        spec = driver_class(driver).describe(dict(options or {}))
        handle, n_device, turns = spec.handle, spec.axes, spec.turns
    elif axes:
        n_device = 1 + max(axes)
    given = {name: value for name, value in (known or {}).items() if value is not None}
    handle = replace(handle, **given)
    with progress_message("compiling the model with its ports", as_json):
        graph = coupled_graph(ready_graph(model, None, True), parameters)
    if axes is None:
        axes = () if n_device is None else aligned_axes(graph, port, n_device)
    mapping = DeviceMap(port=port, axes=axes, scale=scale)
    with progress_message("looking at its response", as_json):
        found = assess(
            graph, handle, modes=modes, mapping=mapping, n_device=n_device, turns=turns, period=period,
            substeps=substeps_of(settings, graph), at=at,
        )  # fmt: skip
        written = None if figure is None else draw(found, figure)
    if as_json:
        print_json({**found.as_dict(), "figure": written and str(written)})
        return
    typer.echo(told(found))
    if written:
        typer.echo(f"wrote {written}")


def told(found: Assessment) -> str:
    """Return an assessment as text for a terminal."""
    lines = [
        f"{found.model}, port {found.port}, at {1.0 / found.period:.4g} Hz: {found.verdict}",
        f"device: {_known(found.handle)}",
    ]
    lines += [f"{axis}: felt as {K:.4g} N/m and {found.damping[axis]:.4g} N s/m" for axis, K in found.stiffness.items()]
    return "\n".join([*lines, "", table(("condition", "axis", "verdict", "needs", "has", "of"), found.rows())])


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
    from fsm_dyn.passivity.z_width import z_width

    stiffest = max(found.stiffness, key=lambda axis: found.stiffness[axis], default=None)
    width = z_width(found.handle)
    picture = plot.z_width(
        f"{found.model}: what the device bears", width.rate,
        {
            "rigid model, coupler without damping": width.wall,
            "any passive model, coupler damped at its best": width.coupler,
            "the first, stable while nobody holds it": width.alone,
        },
        width.quantised, None if stiffest is None else (1.0 / found.period, found.stiffness[stiffest]),
    )  # fmt: skip
    return plot.save(picture, path)
