"""The command ``live``: a mechanism coupled to a device, without a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli import timing
from fsm_dyn.cli.assignments import Scale, Set, assignments, ratios
from fsm_dyn.cli.console import handle_errors, print_json, print_status, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import Model, ready_graph
from fsm_dyn.errors import RunError
from fsm_dyn.interrupts import Asked, asked_to_end

if TYPE_CHECKING:
    from fsm_dyn.live.run_report import RunReport

_SHOWN = 30

Passivity = Annotated[
    str,
    typer.Option(
        "--passivity",
        metavar="off|observe|control",
        help="Passivity observer (`observe`) or observer and controller (`control`).",
    ),
]


@handle_errors
def live_command(
    model: Model,
    driver: Annotated[
        str, typer.Option("--driver", help="scripted, replay, pointer, or module:Class of your own.")
    ] = "scripted",
    seconds: Annotated[
        float | None, typer.Option("--duration", help="Duration, s; default: until Ctrl-C.", min=0.0)
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the driver; repeat.")
    ] = None,
    port: Annotated[str, typer.Option("--port", help="Port that is coupled to the device; default: the first.")] = "",
    scale: Scale = "1",
    force: Annotated[float, typer.Option("--max-force", help="Largest force of the device, N.")] = 8.0,
    period: Annotated[float, typer.Option("--period", help="Length of a tick, s.")] = 1e-3,
    substeps: timing.Substeps = None,
    slew: timing.Slew = 2000.0,
    ramp: timing.Ramp = timing.RAMP,
    release_after: timing.ReleaseAfter = timing.RELEASE_AFTER,
    stall_timeout: timing.StallTimeout = timing.STALL_TIMEOUT,
    watchdog_timeout: timing.WatchdogTimeout = timing.WATCHDOG_TIMEOUT,
    owner_timeout: timing.OwnerTimeout = timing.OWNER_TIMEOUT,
    lag_limit: timing.LagLimit = timing.LAG_LIMIT,
    schedule: Annotated[bool, typer.Option("--schedule", help="Apply the schedules of the model's inputs.")] = False,
    no_pacing: Annotated[bool, typer.Option("--no-pacing", help="Do not pace ticks by the wall clock.")] = False,
    record: Annotated[Path | None, typer.Option("--record", help="Record the run to a new MCAP file.")] = None,
    passivity: Passivity = "off",
    derive: Annotated[
        bool | None,
        typer.Option(
            "--derive/--no-derive", help="Derive modes that are reached in another process; default if paced."
        ),
    ] = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Run a model coupled to a device; report timing and transitions."""
    with asked_to_end() as asked:
        with asked.at_once():
            # The runtime comes with these.
            from fsm_dyn.devices.scripted import Driver, usual_motion
            from fsm_dyn.live.live_stepper import DeviceMap, Limits
            from fsm_dyn.live.port_coupling import coupled_ports
            from fsm_dyn.live.session import Settings

            parameters = assignments("--set", set_) or {}
            with progress_message("compiling the model with its ports", as_json):
                graph, parameters = _coupled(ready_graph(model, None, True), parameters)
            options = driver_options(option)
            if driver == "scripted":
                ports = {item.name: item for item in coupled_ports(graph.automaton.mechanism)}
                held_axes = ports.get(port, next(iter(ports.values()))).axes
                options.setdefault("axes", len(held_axes))
                axes = Driver.describe(options).axes
                options.setdefault("turns", [i for i, axis in enumerate(held_axes[:axes]) if axis.is_rotational])
                options.setdefault("motion", usual_motion(axes))
                options.setdefault("period", period)
                options.setdefault("stop", "watchdog")  # simulated operator: no device stop required
            settings = Settings(
                period=period,
                substeps=substeps,
                device_map=DeviceMap(port=port, scale=ratios(scale)),
                limits=Limits(force=force, slew=slew, ramp=ramp),
                schedule=schedule,
                paced=not no_pacing,
                ticks=timing.ticks("--duration", seconds, period),
                passivity=passivity,
                release_after=release_after,
                stall_ticks=timing.stall_ticks(stall_timeout, period),
                watchdog_timeout=watchdog_timeout,
                owner_timeout=owner_timeout,
                lag_limit=lag_limit,
                derive=derive,
            )
        hold_and_report(asked, graph, driver, options, settings, parameters, record, as_json)


def _coupled(graph: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the graph with couplers of its ports, or of default ones if it declares none, and the parameters."""
    # the runtime comes with these
    from fsm_dyn.live.session_launch import coupled_graph
    from fsm_dyn.viewer.live_view import coupled_for_page

    if graph.automaton.mechanism.ports:
        return coupled_graph(graph, parameters), parameters
    return coupled_for_page(graph, parameters)


def hold_and_report(
    asked: Asked,
    graph: Any,
    driver: str,
    options: dict[str, Any],
    settings: Any,
    parameters: dict[str, Any],
    record: Path | None,
    as_json: bool,
    emulated: bool = False,
) -> None:
    """Run a coupled graph until it ends or is asked to, and print a report; ``emulated``: the device is a process.

    Raises
    ------
    RunError
        It ended by a fault.
    """
    # the runtime comes with these
    from fsm_dyn.live.run_controller import fault_text
    from fsm_dyn.live.session import LiveSession
    from fsm_dyn.live.session_launch import prepare

    with asked.at_once(), progress_message("starting", as_json) as told:
        ready = prepare(
            graph, driver, options, settings=settings, parameters=parameters,
            progress=lambda stage: setattr(told, "text", stage),
        )  # fmt: skip
    session = LiveSession(ready, record)
    transitions: list[dict[str, Any]] = []
    details: list[str] = []
    try:
        while not asked and not session.wait(0.05):
            _take(session, transitions, details)  # before the ring buffer wraps around
    finally:
        _take(session, transitions, details)
        report = session.close()
    if as_json:
        print_json({"model": graph.name, **report, "transitions": transitions, "recording": record and str(record)})
    else:
        typer.echo(_told(graph.name, report, transitions))
    if report["fault"] or report["watchdog_action"] or report["phase"] == "failed" or "log" in report:
        fault = fault_text(report["fault"], details[-1] if details else "", emulated) if report["fault"] else ""
        raise RunError(
            fault or report["watchdog_action"] or report.get("log") or _failure(report["failure"], ready.settings)
        )
    if report["recording_failed"]:
        raise RunError(f"{report['recording_failed']}\n{report['rows_lost']} rows of the run are not recorded")


def _failure(why: str, settings: dict[str, Any]) -> str:
    """Return why the model could not continue; the fixed steps of a live run may be too long."""
    step = settings["period"] / settings["substeps"]
    return f"the model could not go on {why}\nSteps are of {step:g} s: what is stiff needs shorter ones, see --substeps"


def driver_options(given: list[str] | None) -> dict[str, Any]:
    """Return the values of ``--option``."""
    return {name: _value(text) for name, text in (assignments("--option", given) or {}).items()}


def _value(text: Any) -> Any:
    """Return an option as a number where it is one, or as the JSON it is, else as text."""
    if isinstance(text, list):
        return [_value(item) for item in text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _take(session: Any, transitions: list[dict[str, Any]], details: list[str]) -> None:
    """Collect transitions and details of faults; report at once the end of a recording and a slow device."""
    found, _ = session.transitions(len(transitions))
    transitions += found
    for event in session.events():
        if event.get("event") == "fault" and event["detail"]:
            details.append(event["detail"])
        elif event.get("event") == "slow device":
            print_status(event["reason"])
        elif event.get("event") == "recording":
            print_status(f"the recording has ended: {event['reason']}")


def _told(name: str, report: RunReport, transitions: list[dict[str, Any]]) -> str:
    lines = [
        f"{name}: {report['ticks']} ticks, {len(transitions)} transitions, {report['overruns']} overruns, "
        f"ended {report['phase']}" + (f" ({report['fault']})" if report["fault"] else "")
    ]
    columns = ("p50", "p99", "p99.9", "worst")
    rows = [
        (what.replace("_", " "), *(f"{report[what][c] * 1e6:.0f}" for c in columns))
        for what in ("cpu_time", "execution_time", "wakeup_latency")
    ]
    lines += ["", table(("of a tick, µs", *columns), rows), ""]
    lines += report["realtime_privileges"]
    if report["excess_energy"] is not None:
        given, back = (f"{report[name]:.3g} J" for name in ("excess_energy", "dissipated_energy"))
        opening = f"{report['release_excess_energy']:.3g} J"
        lines.append(
            f"sampling, hold and limits gave the device up to {given}, and {opening} while it was disengaged; "
            f"damping dissipated {back}"
        )
    if report["saturations"]:
        lines.append(f"force saturated on {report['saturations']} occasions: see --scale and --max-force")
    if report["releases"] or report["rejected"]:
        lines.append(f"released {report['releases']} times, {report['rejected']} samples rejected")
    if report["lagging_ticks"]:
        lines.append(f"{report['lagging_ticks']} ticks took more work than a tick may, and went on in the next one")
        if report["real_time_ratio"] is not None:
            lines.append(f"model at {100.0 * report['real_time_ratio']:.3g} % of real time")
    if report["kernels_adopted"]:
        lines.append(
            f"{report['kernels_adopted']} modes met on the way were derived, and went on by kernels of their own"
        )
    if transitions:
        rows = [(f"{x['time']:.6f}", x["source"], x["target"]) for x in transitions[:_SHOWN]]
        lines += ["", table(("time, s", "from", "to"), rows)]
    if len(transitions) > _SHOWN:
        lines.append(f"and {len(transitions) - _SHOWN} more")
    return "\n".join(lines)
