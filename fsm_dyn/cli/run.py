"""The command ``run``, once or after every change of the file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, Tolerance, assignments
from fsm_dyn.cli.console import handle_errors, print_json, progress_message
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.file_watch import watch
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.cli.run_files import PLOTS, RunOutputs, draw_plots, prepare_outputs, write_animation, write_files
from fsm_dyn.cli.run_summary import SHOWN, describe, summary
from fsm_dyn.errors import EnergyWarning, InputError, RunError

if TYPE_CHECKING:
    from fsm_dyn.automaton.mode_graph import ModeGraph
    from fsm_dyn.results import Trajectory


@handle_errors
def run_command(
    model: Annotated[
        str | None, typer.Argument(help="A shipped model's name, a model file, or a saved automaton (.json).")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="FILE", help="Continue a saved run (.run.json) to --until, with its own settings."
        ),
    ] = None,
    rest: Annotated[bool, typer.Option("--rest", help="With --resume: without the rows of the saved run.")] = False,
    until: Annotated[float | None, typer.Option("--until", help="End of the run, s.", min=0.0)] = None,
    method: Annotated[
        str, typer.Option("--method", help="dopri5, radau or bdf; with --step: rk4, heun, euler or moreau_jean.")
    ] = "dopri5",
    strategy: Annotated[
        str, typer.Option("--strategy", help="How modes are evaluated: auto, compiled or online.")
    ] = "auto",
    rtol: Annotated[float | None, typer.Option("--rtol", help="Relative tolerance of the integration.")] = None,
    atol: Annotated[float | None, typer.Option("--atol", help="Absolute tolerance of the integration.")] = None,
    tolerance: Tolerance = None,
    step: Annotated[
        float | None, typer.Option("--step", help="Fixed step, s; the method is then rk4, if no other is given.")
    ] = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    input_: Input = None,
    initial: Initial = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for files; without further options a CSV, the run and the figures."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write every column as CSV.")] = False,
    netcdf: Annotated[bool, typer.Option("--netcdf", help="Write NetCDF (the extra 'analysis').")] = False,
    figure: Annotated[bool, typer.Option("--figure", help="Draw the states over time, with modes as bands.")] = False,
    motion: Annotated[bool, typer.Option("--motion", help="Draw the mechanism at several times.")] = False,
    plot: Annotated[
        list[str] | None, typer.Option("--plot", help=f"Draw one of: {', '.join(PLOTS)}. Repeat it for more.")
    ] = None,
    save_run: Annotated[
        bool, typer.Option("--save-run", help="Write the run as NAME.run.json, which `explain` reads.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a self-contained HTML report with playback."),
    ] = None,
    animation: Annotated[
        Path | None,
        typer.Option("--animation", help="Write an animation: FILE.gif, or with ffmpeg FILE.mp4 or FILE.webm."),
    ] = None,
    animation_speed: Annotated[
        float | None,
        typer.Option("--animation-speed", help="Seconds of the run per second of the animation: 0.1 is slow motion."),
    ] = None,
    watching: Annotated[
        bool, typer.Option("--watch", help="Run again when the file is saved; Ctrl-C ends it.")
    ] = False,
    all_transitions: Annotated[
        bool, typer.Option("--all", help=f"List all transitions, not the first {SHOWN - 1} and the last.")
    ] = False,
    full_names: Annotated[
        bool, typer.Option("--full", help="List modes by their names, with every contact that is not open.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate a model and list its transitions with their causes."""
    outputs = RunOutputs(
        folder=out, csv=csv, netcdf=netcdf, figure=figure, motion=motion, save_run=save_run, html=html,
        animation=animation, animation_speed=animation_speed, plots=tuple(plot or ()), all_transitions=all_transitions,
        full_names=full_names,
    ).with_defaults()  # fmt: skip
    prepare_outputs(outputs)
    options: dict[str, Any] = {
        "until": until,
        "method": method,
        "strategy": strategy,
        "rtol": rtol,
        "atol": atol,
        "tolerances": assignments("--tolerance", tolerance),
        "step": step,
        "scenario": scenario,
        "inputs": assignments("--input", input_),
        "initial": assignments("--initial", initial),
    }
    given = {key: value for key, value in options.items() if value is not None}
    parameters = assignments("--set", set_)

    if resume is not None:
        _refuse_settings({"a model": model, "--set": set_, "--watch": watching or None}, given)
        _resume(resume, until, rest, outputs, as_json)
        return
    if model is None:
        raise InputError("there is no model to run", remedy="fsm-dyn run MODEL, or fsm-dyn run --resume FILE --until S")
    if rest:
        raise InputError("--rest needs --resume", remedy="add --resume FILE")
    named = model

    def once() -> None:
        _run(named, parameters, given, outputs, as_json)

    if watching:
        # The file a name stands for, found without the rest of the package.
        from fsm_dyn import models
        from fsm_dyn.spec.variants import split_name

        watch(models.resolve(split_name(named)[0]), once)
    else:
        once()


def _refuse_settings(others: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse, with --resume, options that a saved run has already."""
    fixed = others | {f"--{name.removesuffix('s')}": value for name, value in given.items() if name != "until"}
    usual = {"--method": "dopri5", "--strategy": "auto"}
    for name, value in fixed.items():
        if value is not None and usual.get(name) != value:
            raise InputError(
                f"a run is continued with its own settings: {name} cannot be combined with --resume",
                allowed="--until, --rest and options of output",
                remedy="start a new run of the model",
            )


def _run(
    model: str, parameters: dict[str, Any] | None, options: dict[str, Any], outputs: RunOutputs, as_json: bool
) -> None:
    graph = ready_graph(model, parameters, as_json)
    # The public interface brings the runtime along.
    import fsm_dyn

    def simulated(progress: Callable[[float], None]) -> Trajectory:
        return fsm_dyn.simulate(graph, progress=progress, **options)

    _carry_out(graph.name, simulated, lambda: graph, outputs, as_json)


def _resume(file: str, until: float | None, rest: bool, outputs: RunOutputs, as_json: bool) -> None:
    """Continue a saved run."""
    if until is None:
        raise InputError("--resume needs the end of the run", remedy="add --until S")
    # The public interface brings the runtime along.
    import fsm_dyn
    from fsm_dyn.spec import load

    with progress_message(f"reading {file}", as_json):
        before = fsm_dyn.open_run(file)

    def resumed(progress: Callable[[float], None]) -> Trajectory:
        return before.resume(until, whole=not rest, progress=progress)

    def graph() -> ModeGraph:
        return fsm_dyn.compile(load(f"<{file}>", text=before.model.text))

    _carry_out(before.model.name, resumed, graph, outputs, as_json)


def _carry_out(
    name: str,
    run: Callable[[Callable[[float], None]], Trajectory],
    graph: Callable[[], ModeGraph],
    outputs: RunOutputs,
    as_json: bool,
) -> None:
    """Run, write the requested files and print a summary."""
    import fsm_dyn

    failure: RunError | None = None
    with progress_message(f"running {name}", as_json) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", EnergyWarning)  # the summary has it
        try:
            trajectory = run(progress.reached)
        except RunError as error:
            if not isinstance(error.trajectory, fsm_dyn.Trajectory):
                raise
            failure, trajectory = error, error.trajectory
    with progress_message("writing", as_json):
        files = write_files(trajectory, outputs)
        files += draw_plots(trajectory, graph, outputs)
        if outputs.html is not None:
            # the report evaluates rows online, with the live part of the package
            from fsm_dyn.viewer.report import write_report

            files.append(write_report(trajectory, outputs.html, graph()))
    with progress_message("drawing the animation", as_json or outputs.animation is None) as drawing:
        files += write_animation(trajectory, outputs, lambda done, of: drawing.counted(done, of, "frames"))
    if as_json:
        print_json(summary(trajectory, files))
    else:
        typer.echo(describe(trajectory, None if outputs.all_transitions else SHOWN, outputs.full_names))
        for path in files:
            typer.echo(f"wrote {path}")
    if trajectory.interrupted:
        raise KeyboardInterrupt  # Ctrl-C ends a watch too, whenever it comes
    if failure is not None:
        raise failure  # after what was recorded up to it
