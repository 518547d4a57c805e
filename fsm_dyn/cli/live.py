"""The commands ``live`` and ``view``: a mechanism coupled to a device, with a page or without."""

from __future__ import annotations

import contextlib
import json
import os
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli import console
from fsm_dyn.cli.console import (
    Initial,
    Scale,
    ScenarioOption,
    Set,
    assignments,
    handle_errors,
    prepare_file,
    print_json,
    print_status,
    progress_message,
    ratios,
)
from fsm_dyn.cli.model_commands import Json, Model, ready_graph
from fsm_dyn.core.errors import FsmDynError, InputError, RunError
from fsm_dyn.core.interrupts import Asked, asked_to_end
from fsm_dyn.draw.svg import table

if TYPE_CHECKING:
    from fsm_dyn.live.session import RunReport


# -- The command ``live``: a mechanism coupled to a device, without a page -----------------------------------

_SHOWN = 30

Driver = Annotated[str, typer.Option("--driver", help="scripted, replay, pointer, or your own: FILE.py, module:Class.")]
LiveDuration = Annotated[float | None, typer.Option("--duration", help="Duration, s; default: until Ctrl-C.", min=0.0)]
DriverOptions = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the driver; repeat.")
]
Port = Annotated[str, typer.Option("--port", help="Port that is coupled to the device; default: the first.")]
Derive = Annotated[
    bool | None,
    typer.Option("--derive/--no-derive", help="Derive modes that are reached in another process; default if paced."),
]


@handle_errors
def live_command(
    model: Model,
    driver: Driver = "scripted",
    seconds: LiveDuration = None,
    option: DriverOptions = None,
    port: Port = "",
    scale: Scale = "1",
    force: console.Force = 8.0,
    period: console.Period = 1e-3,
    substeps: console.Substeps = None,
    slew: console.Slew = 2000.0,
    ramp: console.Ramp = console.RAMP,
    release_after: console.ReleaseAfter = console.RELEASE_AFTER,
    stall_timeout: console.StallTimeout = console.STALL_TIMEOUT,
    watchdog_timeout: console.WatchdogTimeout = console.WATCHDOG_TIMEOUT,
    owner_timeout: console.OwnerTimeout = console.OWNER_TIMEOUT,
    lag_limit: console.LagLimit = console.LAG_LIMIT,
    look_ahead: console.LookAhead = 0.0,
    schedule: Annotated[bool, typer.Option("--schedule", help="Apply the schedules of the model's inputs.")] = False,
    no_pacing: Annotated[bool, typer.Option("--no-pacing", help="Do not pace ticks by the wall clock.")] = False,
    record: console.Record = None,
    foxglove: console.Foxglove = None,
    rerun: console.RerunViewer = None,
    passivity: console.Passivity = "off",
    derive: Derive = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Run a model coupled to a device; report its console."""
    with asked_to_end() as asked:
        with asked.at_once():
            # The runtime comes with these.
            from fsm_dyn.live.device_map import DeviceMap, Limits
            from fsm_dyn.live.live_settings import LiveSettings

            parameters = assignments("--set", set_) or {}
            with progress_message("compiling the model with its ports", as_json):
                graph, parameters = _coupled(ready_graph(model, None, True), parameters)
            options = driver_options(option)
            if driver == "scripted":
                _fill_scripted(options, graph, port, period)
            settings = LiveSettings(
                period=period,
                substeps=substeps,
                device_map=DeviceMap(port=port, scale=ratios(scale)),
                limits=Limits(force=force, slew=slew, ramp=ramp),
                schedule=schedule,
                paced=not no_pacing,
                ticks=console.ticks("--duration", seconds, period),
                passivity=passivity,
                release_after=release_after,
                stall_ticks=console.stall_ticks(stall_timeout, period),
                watchdog_timeout=watchdog_timeout,
                owner_timeout=owner_timeout,
                lag_limit=lag_limit,
                look_ahead=look_ahead,
                derive=derive,
            )
        hold_and_report(
            asked, graph, driver, options, settings, parameters, Following(record, foxglove, rerun), as_json
        )


def _fill_scripted(options: dict[str, Any], graph: Any, port: str, period: float) -> None:
    """Set the missing options of the scripted driver: the axes of the port, and the usual motion along them."""
    from fsm_dyn.devices import scripted
    from fsm_dyn.live.device_map import coupled_ports

    ports = {item.name: item for item in coupled_ports(graph.automaton.mechanism)}
    held_axes = ports.get(port, next(iter(ports.values()))).axes
    options.setdefault("axes", len(held_axes))
    axes = scripted.Driver.describe(options).axes
    options.setdefault("turns", [i for i, axis in enumerate(held_axes[:axes]) if axis.is_rotational])
    options.setdefault("motion", scripted.usual_motion(axes))
    options.setdefault("period", period)
    options.setdefault("stop", "watchdog")  # simulated operator: no device stop required


def _coupled(graph: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the graph with couplers of its ports, or of default ones if it declares none, and the parameters."""
    # the runtime comes with these
    from fsm_dyn.live.launch import coupled_graph
    from fsm_dyn.page.live_view import coupled_for_page

    if graph.automaton.mechanism.ports:
        return coupled_graph(graph, parameters), parameters
    return coupled_for_page(graph, parameters)


@dataclass(frozen=True)
class Following:
    """Outputs of a live run: its recording, ports of a server for Foxglove and of the viewer Rerun."""

    record: Path | None = None
    foxglove: int | None = None
    rerun: str | None = None

    @contextlib.contextmanager
    def viewers(self, name: str) -> Iterator[Callable[[Any], Any]]:
        """Give a function that shows a session in viewers, None without one; they are closed at the end.

        The address of the server is printed.
        """
        if self.foxglove is None and self.rerun is None:
            yield lambda session: None
            return
        # with a viewer alone
        from fsm_dyn.live.viewers import LiveViewers, viewers_of

        def opened(address: str) -> None:
            print_status(f"Foxglove: open a connection to {address}")

        with viewers_of(name, self.foxglove, self.rerun, opened) as found:
            yield lambda session: LiveViewers(session, found)


def hold_and_report(
    asked: Asked,
    graph: Any,
    driver: str,
    options: dict[str, Any],
    settings: Any,
    parameters: dict[str, Any],
    following: Following,
    as_json: bool,
    emulated: bool = False,
) -> None:
    """Run a coupled graph until it ends or is asked to, and print a report; ``emulated``: the device is a process.

    Raises RunError: it ended by a fault.
    """
    # the runtime comes with these
    from fsm_dyn.live.controller import fault_text
    from fsm_dyn.live.launch import prepare
    from fsm_dyn.live.session import LiveSession

    with asked.at_once(), progress_message("starting", as_json) as told:
        ready = prepare(
            graph, driver, options, settings=settings, parameters=parameters,
            progress=lambda stage: setattr(told, "text", stage),
        )  # fmt: skip
    transitions: list[dict[str, Any]] = []
    details: list[str] = []
    with following.viewers(graph.name) as follow:
        session = LiveSession(ready, following.record)
        shown = follow(session)
        try:
            while not asked and not session.wait(0.05):
                _take(session, transitions, details)  # before the ring buffer wraps around
        finally:
            _take(session, transitions, details)
            viewers = None if shown is None else shown.close()
            report = session.close()
    if as_json:
        recording = following.record and str(following.record)
        more = {"transitions": transitions, "recording": recording, "viewers": viewers}
        print_json({"model": graph.name, **report, **more})
    else:
        typer.echo(_told(graph.name, report, transitions) + _shown_in_viewers(viewers))
    if report["fault"] or report["watchdog_action"] or report["phase"] == "failed" or "log" in report:
        fault = fault_text(report["fault"], details[-1] if details else "", emulated) if report["fault"] else ""
        raise RunError(
            fault or report["watchdog_action"] or report.get("log") or _failure(report["failure"], ready.settings)
        )
    if report["recording_failed"]:
        raise RunError(f"{report['recording_failed']}\n{report['rows_lost']} rows of the run are not recorded")


def _failure(why: str, settings: Any) -> str:
    """Return why the model could not continue; the fixed steps of a live run may be too long."""
    step = settings.period / settings.substeps
    return f"the model could not go on {why}\nSteps are of {step:g} s: what is stiff needs shorter ones, see --substeps"


def driver_options(given: list[str] | None) -> dict[str, Any]:
    """Return the values of ``--option``."""
    return {name: _value(text) for name, text in (assignments("--option", given) or {}).items()}


def _value(text: Any) -> Any:
    """Return the value of an option parsed as JSON, numbers among it, else as text."""
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


def _shown_in_viewers(report: Mapping[str, Any] | None) -> str:
    """Return a line about the viewers of a run, empty without one."""
    if report is None:
        return ""
    lost = f"{report['dropped']} messages dropped, {report['transitions_lost']} transitions overwritten"
    ended = f"; ended by {report['failure']}" if report["failure"] else ""
    return f"\nviewers: {report['rows']} rows shown, {lost}{ended}"


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
    if report["releases"] or report["rejected"] or report["interruptions"]:
        lines.append(
            f"released {report['releases']} times, {report['rejected']} samples rejected; "
            f"{report['interruptions']} times without a tick for a while, and a force of zero meanwhile"
        )
    if report["lagging_ticks"]:
        lines.append(f"{report['lagging_ticks']} ticks took more work than a tick may, and went on in the next one")
        if report["real_time_ratio"] is not None:
            lines.append(f"model at {100.0 * report['real_time_ratio']:.3g} % of real time")
    if report["kernels_adopted"]:
        lines.append(
            f"{report['kernels_adopted']} modes met on the way were derived, and went on by kernels of their own"
        )
    lines += [f"warning: {text}" for text in report["warnings"]]
    if transitions:
        rows = [(f"{x['time']:.6f}", x["source"], x["target"]) for x in transitions[:_SHOWN]]
        lines += ["", table(("time, s", "from", "to"), rows)]
    if len(transitions) > _SHOWN:
        lines.append(f"and {len(transitions) - _SHOWN} more")
    return "\n".join(lines)


# -- The command ``view``: a mechanism on a page in the browser ----------------------------------------------

Viewed = Annotated[
    str | None,
    typer.Argument(
        help="A shipped model's name, a model file, a saved automaton (.json); or a recorded run: "
        "a recording (.mcap), a saved run (.run.json); default: a page of all shipped models."
    ),
]
Watch = Annotated[
    bool | None,
    typer.Option(
        "--watch/--no-watch",
        help="Restart when the model file is saved; default: if MODEL is the path of a model file.",
    ),
]
UseSchedule = Annotated[
    bool | None,
    typer.Option(
        "--schedule/--no-schedule",
        help="Apply the schedules of the model's inputs; default: if the model declares no port.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--html", help="Of a recorded run: write a self-contained HTML report instead of serving the page."),
]
Offline = Annotated[
    bool, typer.Option("--run", help="Run the model offline with its own inputs, and show its visits and causes.")
]
Until = Annotated[float | None, typer.Option("--until", help="End of the run of --run, s.")]
Before = Annotated[
    Path | None, typer.Option("--before", help="Of a recorded run: another one (.run.json), shown behind it.")
]

Edit = Annotated[bool, typer.Option("--edit", help="Edit the model file on the page, with completion and errors.")]


@handle_errors
def view_command(
    model: Viewed = None,
    page_port: console.PagePort = 0,
    no_browser: console.NoBrowser = False,
    watch: Watch = None,
    record: console.Record = None,
    foxglove: console.Foxglove = None,
    rerun: console.RerunViewer = None,
    schedule: UseSchedule = None,
    html: Report = None,
    edit: Edit = False,
    run: Offline = False,
    until: Until = None,
    before: Before = None,
    period: console.Period = 1e-3,
    substeps: console.Substeps = None,
    look_ahead: console.LookAhead = 0.0,
    set_: Set = None,
    scenario: ScenarioOption = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Run a model live on a page in the browser, or play back a recorded run. Ctrl-C ends it.

    The page is served to this machine alone, under an address with a secret in it.
    """
    with page_packages():
        from fsm_dyn.page.live_view import LiveOptions
        from fsm_dyn.page.server import WatchedFile, serve
    opened = announce_address(model or "shipped models", no_browser, as_json)
    live = (watch, record, foxglove, rerun, initial)
    usual = LiveOptions(period=period, substeps=substeps, schedule=schedule, look_ahead=look_ahead)
    if model is None:
        _refuse((*live, set_, scenario, html), "this option needs a model", remedy="fsm-dyn view MODEL ...")
        _offer_models(usual, page_port, opened, as_json)
        return
    scheduled = None if schedule is None else "--schedule"
    if is_recorded_run(model):
        _refuse((*live, set_, scenario, scheduled), "a recorded run takes no options of a live run", model, _OMIT)
        _play_back(model, html, page_port, opened, as_json, before)
        return
    _refuse([before], "--before needs a recorded run", found=model, remedy=_OFFLINE.format(model))
    if run:
        _refuse((*live, scheduled, html), "--run takes no options of a live run", model, _OMIT)
        _run_offline(model, assignments("--set", set_) or {}, scenario, until, page_port, opened, as_json)
        return
    _check_live(model, until, html, edit)
    _prepare_recording(record)
    by_itself = watch is None and _is_model_file(model)
    watched = _watched(model, scenario, WatchedFile) if watch or by_itself or edit else None
    live_options = replace(
        usual,
        schedule=True if schedule is None and scenario is not None else schedule,
        parameters=assignments("--set", set_) or {},
        record=record,
        initial=assignments("--initial", initial) or {},
        edits=edit,
    )
    with asked_to_end() as asked:
        with asked.at_once():
            graph = _graph_or_error(model, scenario, as_json, watched is not None and not by_itself)
        with Following(record, foxglove, rerun).viewers(model) as follow:
            reports = serve(graph, replace(live_options, follow=follow), page_port, watched, opened)
        print_reports(model, reports, as_json)


def _offer_models(options: Any, page_port: int, opened: Callable[[str], None], as_json: bool) -> None:
    """Serve a page of all shipped models, each to be started from there."""
    from fsm_dyn.page.server import serve_catalogue

    with asked_to_end():
        reports = serve_catalogue(lambda name: ready_graph(name, None, True), options, page_port, opened)
    print_reports("shipped models", reports, as_json)


_OMIT = "omit the other options"
_OFFLINE = "fsm-dyn view {} --run --until 1"


def _check_live(model: str, until: float | None, html: Path | None, edit: bool) -> None:
    """Raise InputError for options that a live run of a model does not have."""
    _refuse([until], "--until needs --run", found=model, remedy=_OFFLINE.format(model))
    _refuse([html], "--html needs a recorded run", found=model, remedy=f"fsm-dyn run {model} --html {html}")
    if edit and not _is_model_file(model):
        raise InputError("--edit needs a model file", found=model, remedy="fsm-dyn view FILE.yaml --edit")


def _prepare_recording(record: Path | None) -> None:
    """Make the folder of a recording; raise InputError if the file exists."""
    if record is not None:
        prepare_file("--record", record)
        if record.exists():
            raise InputError(f"cannot record to '{record}'", found="it exists", remedy="name a new file")


def _refuse(options: Sequence[Any], sentence: str, found: str = "", remedy: str = "") -> None:
    """Raise InputError with a sentence if an option has a value."""
    if any(option is not None and option is not False and option != [] for option in options):
        raise InputError(sentence, found=found, remedy=remedy)


def _graph_or_error(model: str, scenario: str | None, as_json: bool, shown: bool) -> Any:
    """Return the graph of a model; with ``shown`` the error of an invalid file, which the page shows until it is."""
    try:
        return _graph(model, scenario, as_json)
    except FsmDynError as error:
        if not shown:
            raise
        return error


def _run_offline(
    model: str,
    parameters: dict[str, Any],
    scenario: str | None,
    until: float | None,
    page_port: int,
    opened: Callable[[str], None],
    as_json: bool,
) -> None:
    """Serve an offline run of a model, which its page runs again with other parameters."""
    from fsm_dyn.page.playback import Reruns
    from fsm_dyn.page.server import serve_recorded_run

    with asked_to_end() as asked, asked.at_once():
        graph = _graph(model, scenario, as_json)
    serve_recorded_run(Reruns(graph, parameters, until), model, page_port, opened)
    if as_json:
        print_json({"model": model, "runs": []})


def _play_back(
    model: str,
    html: Path | None,
    page_port: int,
    opened: Callable[[str], None],
    as_json: bool,
    before: Path | None = None,
) -> None:
    """Serve a recorded run, or write it as a report; ``before`` is the run shown behind it."""
    from fsm_dyn.page.playback import open_recorded_run
    from fsm_dyn.page.report import write_report
    from fsm_dyn.page.server import serve_recorded_run

    path = Path(model)
    if not path.is_file():
        found = "a folder, pipe or device" if path.exists() else ""
        raise InputError(f"there is no run '{model}'", found=found)
    if before is not None and not (before.is_file() and is_recorded_run(str(before))):
        raise InputError("--before is no recorded run", found=str(before), remedy="fsm-dyn run MODEL --save")
    earlier = None if before is None else partial(open_recorded_run, before)
    if html is not None:
        prepare_file("--html", html)
        with progress_message(f"writing {html}", as_json):
            write_report(open_recorded_run(path), html, before=None if earlier is None else earlier())
        print_status(f"wrote {html}")
        return
    serve_recorded_run(lambda: open_recorded_run(path), path.name, page_port, opened, earlier)
    if as_json:
        print_json({"model": model, "runs": []})


@contextlib.contextmanager
def page_packages() -> Iterator[None]:
    """Turn a missing package of the page into a message with its remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn", "websockets"):
            raise
        raise InputError(
            "the page needs additional packages", found=str(error), remedy="pip install 'fsm-dyn[view]'"
        ) from error


def announce_address(model: str, no_browser: bool, as_json: bool) -> Callable[[str], None]:
    """Return a callback to print the address of a page and open it."""

    def opened(address: str) -> None:
        if as_json:
            print_json({"model": model, "address": address, "pid": os.getpid()})
        else:
            print_status(f"{model}: {address}\nCtrl-C ends it")
        if not no_browser:
            webbrowser.open(address)

    return opened


def print_reports(model: str, reports: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print the reports of the runs of a page."""
    if as_json:
        print_json({"model": model, "runs": reports})
    else:
        for report in reports:
            print_status(
                f"{report['ticks']} ticks, {report['transition_count']} transitions, {report['overruns']} overruns"
            )
            if report["recording_failed"]:
                print_status(f"{report['recording_failed']}; {report['rows_lost']} rows are not recorded")


def is_recorded_run(model: str) -> bool:
    """Whether a file contains a recorded run, not a model."""
    # reads the beginning of a file without importing the packages for runs
    from fsm_dyn.run.run_files import is_run

    return model.endswith(".mcap") or (model.endswith(".json") and is_run(model))


def _graph(model: str, scenario: str | None, quiet: bool) -> Any:
    """Return the compiled model, its inputs following a scenario if there is one."""
    graph = ready_graph(model, None, quiet)
    if scenario is None:
        return graph
    # the public interface is there by now
    import fsm_dyn
    from fsm_dyn.language.loader import with_scenario

    return fsm_dyn.compile(with_scenario(graph.automaton.mechanism, scenario))


def _is_model_file(model: str) -> bool:
    """Whether a model is named by the path of a model file."""
    from fsm_dyn.language.components import split_name

    return Path(split_name(model)[0]).suffix in (".yaml", ".yml")


def _watched(model: str, scenario: str | None, kind: Any) -> Any:
    """Return the file behind a model, and how it is compiled."""
    from fsm_dyn.language import models
    from fsm_dyn.language.components import split_name

    if model.endswith(".json"):
        raise InputError("--watch watches a model file", found=model, remedy="give the YAML it was compiled from")
    path = Path(models.resolve(split_name(model)[0]))

    def compiled() -> Any:
        return _graph(model, scenario, True)

    return kind(path, model, compiled)
