"""The command ``view``: a mechanism on a page in the browser."""

from __future__ import annotations

import contextlib
import os
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fsm_dyn.cli import timing
from fsm_dyn.cli.assignments import Initial, ScenarioOption, Set, assignments
from fsm_dyn.cli.console import handle_errors, print_json, print_status, progress_message
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.cli.output_paths import prepare_file
from fsm_dyn.errors import FsmDynError, InputError
from fsm_dyn.interrupts import asked_to_end

PagePort = Annotated[int, typer.Option("--page-port", help="TCP port of the page; 0: any free port.", min=0, max=65535)]


@handle_errors
def view_command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A shipped model's name, a model file, a saved automaton (.json); or a recorded run: "
            "a recording (.mcap), a saved run (.run.json); default: a page of all shipped models."
        ),
    ] = None,
    page_port: PagePort = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the viewer URL; do not open a browser.")
    ] = False,
    watch: Annotated[
        bool | None,
        typer.Option(
            "--watch/--no-watch",
            help="Restart when the model file is saved; default: if MODEL is the path of a model file.",
        ),
    ] = None,
    record: Annotated[Path | None, typer.Option("--record", help="Record the run to a new MCAP file.")] = None,
    schedule: Annotated[
        bool | None,
        typer.Option(
            "--schedule/--no-schedule",
            help="Apply the schedules of the model's inputs; default: if the model declares no port.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", help="Of a recorded run: write a self-contained HTML report instead of serving the page."
        ),
    ] = None,
    period: Annotated[float, typer.Option("--period", help="Length of a tick, s.")] = 1e-3,
    substeps: timing.Substeps = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Run a model live on a page in the browser, or play back a recorded run. Ctrl-C ends it.

    The page is served to this machine alone, under an address with a secret in it.
    """
    with page_packages():
        from fsm_dyn.viewer.live_view import LiveOptions
        from fsm_dyn.viewer.serve import WatchedFile, serve, serve_catalogue

    opened = announce_address(model or "shipped models", no_browser, as_json)
    if model is None:
        if watch or record is not None or set_ or html is not None or scenario is not None or initial:
            raise InputError("this option needs a model", remedy="fsm-dyn view MODEL ...")
        chosen = LiveOptions(period=period, substeps=substeps, schedule=schedule)
        with asked_to_end():
            reports = serve_catalogue(lambda name: ready_graph(name, None, True), chosen, page_port, opened)
        print_reports("shipped models", reports, as_json)
        return
    if is_recorded_run(model):
        if watch or record is not None or set_ or schedule is not None or scenario is not None or initial:
            raise InputError(
                "a recorded run takes no options of a live run", found=model, remedy="omit the other options"
            )
        _play_back(model, html, page_port, opened, as_json)
        return
    if record is not None:
        prepare_file("--record", record)
    if html is not None:
        raise InputError("--html needs a recorded run", found=model, remedy=f"fsm-dyn run {model} --html {html}")
    parameters = assignments("--set", set_) or {}
    by_itself = watch is None and _is_model_file(model)
    watched = _watched(model, scenario, WatchedFile) if watch or by_itself else None
    if record is not None and record.exists():
        raise InputError(f"cannot record to '{record}'", found="it exists", remedy="name a new file")
    live_options = LiveOptions(
        period=period,
        substeps=substeps,
        schedule=True if schedule is None and scenario is not None else schedule,
        parameters=parameters,
        record=record,
        initial=assignments("--initial", initial) or {},
    )
    with asked_to_end() as asked:
        with asked.at_once():
            try:
                graph: Any = _graph(model, scenario, as_json)
            except FsmDynError as error:
                if watched is None or by_itself:
                    raise
                graph = error  # shown on the page until the file is valid
        print_reports(model, serve(graph, live_options, page_port, watched, opened), as_json)


def _play_back(model: str, html: Path | None, page_port: int, opened: Callable[[str], None], as_json: bool) -> None:
    """Serve a recorded run, or write it as a report."""
    from fsm_dyn.viewer.playback_session import open_recorded_run
    from fsm_dyn.viewer.report import write_report
    from fsm_dyn.viewer.serve import serve_recorded_run

    path = Path(model)
    if not path.is_file():
        found = "a folder, pipe or device" if path.exists() else ""
        raise InputError(f"there is no run '{model}'", found=found)
    if html is not None:
        prepare_file("--html", html)
        with progress_message(f"writing {html}", as_json):
            write_report(open_recorded_run(path), html)
        print_status(f"wrote {html}")
        return
    serve_recorded_run(lambda: open_recorded_run(path), path.name, page_port, opened)
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
    """Return a callback that prints the address of a page, and opens it."""

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
    # the begin of a file is read without the packages that runs need
    from fsm_dyn.results.run_file import is_run

    return model.endswith(".mcap") or (model.endswith(".json") and is_run(model))


def _graph(model: str, scenario: str | None, quiet: bool) -> Any:
    """Return the compiled model, its inputs following a scenario if there is one."""
    graph = ready_graph(model, None, quiet)
    if scenario is None:
        return graph
    # the public interface is there by now
    import fsm_dyn
    from fsm_dyn.spec.loader import with_scenario

    return fsm_dyn.compile(with_scenario(graph.automaton.mechanism, scenario))


def _is_model_file(model: str) -> bool:
    """Whether a model is named by the path of a model file."""
    from fsm_dyn.spec.variants import split_name

    return Path(split_name(model)[0]).suffix in (".yaml", ".yml")


def _watched(model: str, scenario: str | None, kind: Any) -> Any:
    """Return the file behind a model, and how it is compiled."""
    from fsm_dyn import models
    from fsm_dyn.spec.variants import split_name

    if model.endswith(".json"):
        raise InputError("--watch watches a model file", found=model, remedy="give the YAML it was compiled from")
    path = Path(models.resolve(split_name(model)[0]))

    def compiled() -> Any:
        return _graph(model, scenario, True)

    return kind(path, model, compiled)
