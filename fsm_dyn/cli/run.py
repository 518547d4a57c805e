"""The command ``run``, once or after every change of the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsm_dyn.cli.assignments import Initial, Input, ScenarioOption, Set, Tolerance, assignments
from fsm_dyn.cli.console import handle_errors, print_json, progress_message, table
from fsm_dyn.cli.file_commands import Json
from fsm_dyn.cli.file_watch import watch
from fsm_dyn.cli.model_commands import ready_graph
from fsm_dyn.cli.run_files import PLOTS, RunOutputs, draw_plots, prepare_outputs, write_animation, write_files
from fsm_dyn.errors import InputError, RunError, did_you_mean

if TYPE_CHECKING:
    from fsm_dyn.automaton.mode_graph import ModeGraph
    from fsm_dyn.results import Trajectory
    from fsm_dyn.results.judgement import Judgement
    from fsm_dyn.results.transitions import Transition

_SHOWN = 30
_MANY_PAIRS = 8  # of shapes, from which on those that came to touch are listed
_ROUNDING = 1e-14  # of an energy: a difference of two that is smaller is none
_WIDE = 60  # characters of two modes' names beyond which a line names one of them


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
    step: Annotated[float | None, typer.Option("--step", help="Fixed step, s.")] = None,
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
        bool, typer.Option("--all", help=f"List all transitions, not the first {_SHOWN - 1} and the last.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate a model and list its transitions with their causes."""
    plots = tuple(plot or ())
    for name in plots:
        if name not in PLOTS:
            raise InputError(
                f"there is no plot '{name}'", found=name, allowed=", ".join(PLOTS), remedy=did_you_mean(name, PLOTS)
            )
    chosen = bool(csv or netcdf or figure or motion or save_run or plots)
    everything = out is not None and not chosen
    outputs = RunOutputs(
        folder=out or (Path() if chosen else None),
        csv=csv or everything,
        netcdf=netcdf,
        figure=figure or everything,
        motion=motion or everything,
        save_run=save_run or everything,
        html=html,
        animation=animation,
        animation_speed=animation_speed,
        plots=plots,
        all_transitions=all_transitions,
    )
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
        fixed = {"a model": model, "--set": set_, "--watch": watching or None}
        fixed |= {f"--{name.removesuffix('s')}": value for name, value in given.items() if name != "until"}
        usual = {"--method": "dopri5", "--strategy": "auto"}
        for name, value in fixed.items():
            if value is not None and usual.get(name) != value:
                raise InputError(
                    f"a run is continued with its own settings: {name} cannot be combined with --resume",
                    allowed="--until, --rest and options of output",
                    remedy="start a new run of the model",
                )
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
    with progress_message(f"running {name}", as_json) as progress:
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
        print_json(_summary(trajectory, files))
    else:
        typer.echo(describe(trajectory, None if outputs.all_transitions else _SHOWN))
        for path in files:
            typer.echo(f"wrote {path}")
    if trajectory.interrupted:
        raise KeyboardInterrupt  # Ctrl-C ends a watch too, whenever it comes
    if failure is not None:
        raise failure  # after what was recorded up to it


def describe(trajectory: Trajectory, most: int | None = _SHOWN) -> str:
    """Return a summary of a run as text: span, outcome, transitions with their causes, energy balance.

    Of more than ``most`` transitions the first ones and the last are listed.
    """
    lines = [
        f"{trajectory.model.name}: {trajectory.t[0]:g} s to {trajectory.t[-1]:g} s, {len(trajectory)} rows, "
        f"started {trajectory.labels[0]}, ended {trajectory.labels[-1]} ({trajectory.outcome.name})"
    ]
    transitions = trajectory.transitions
    left_out = 0 if most is None else max(len(transitions) - most, 0)
    shown = (*transitions[: most - 1], transitions[-1]) if most is not None and left_out else transitions
    if shown:
        headings = ["time, s", "from", "to", "cause"]
        ends = [
            (x.source_label or x.source, "(handover)" if x.is_handover else x.target_label or x.target) for x in shown
        ]
        rows = [[f"{x.time:.6f}", *modes, x.cause] for x, modes in zip(shown, ends, strict=True)]
        if max(sum(map(len, modes)) for modes in ends) > _WIDE:  # it is where the line before ended
            headings.pop(1)
            rows = [[time, *others] for time, _, *others in rows]
        if any(x.impulse for x in shown):
            headings.insert(-1, "impact, J")
            for x, row in zip(shown, rows, strict=True):
                row.insert(-1, _impact(x) if x.impulse else "")
        if left_out:
            rows.insert(-1, ["...", *[""] * (len(headings) - 2), f"{left_out} more: --all"])
        lines += ["", table(headings, rows)]
    lines += _pairs(trajectory, most)
    judged = trajectory.judge()
    if judged:
        lines += ["", requirement_table(judged.values())]
    passed = trajectory.change_points
    lines += ["", *(str(item) for item in passed[:_SHOWN])] if passed else []
    if len(passed) > _SHOWN:
        lines.append(f"and {len(passed) - _SHOWN} more change points")
    if not trajectory.outcome.failed:
        residual = trajectory.energy.relative_residual
        lines += ["", f"energy-balance residual: {residual:.1e} of the energy exchanged"]
    return "\n".join(lines)


def _pairs(trajectory: Trajectory, most: int | None) -> list[str]:
    """Return which pairs of shapes came to touch and when they first did, of a model with many."""
    count = len(trajectory.model.contact_entries)
    if count < _MANY_PAIRS:
        return []
    from fsm_dyn.results.encounters import touched_pairs

    touched = touched_pairs(trajectory.model, trajectory.transitions)
    lines = ["", f"{len(touched)} of {count} pairs of shapes came to touch{':' if touched else ''}"]
    if touched:
        rows = [(name, f"{times[0]:.6f}", f"{len(times)}") for name, times in touched.items()]
        lines.append(table(("pair", "first, s", "times"), rows[:most]))
        lines += [f"and {len(rows) - most} more: --all"] if most is not None and len(rows) > most else []
    return lines


def _impact(item: Transition) -> str:
    """Return the energy that an impact took, J; what is rounding of the energies is zero."""
    rounding = _ROUNDING * max(abs(item.energy_before), abs(item.energy_after))
    return "0" if abs(item.energy_lost) <= rounding else f"{-item.energy_lost:+.2e}"


def requirement_table(judged: Iterable[Judgement]) -> str:
    """Return the requirements of a run as a table: verdicts, margins and the times that decide."""
    rows = [
        (
            item.name,
            item.verdict,
            "none" if math.isnan(item.margin) else f"{item.margin:.6g} {item.unit}".removesuffix(" 1"),
            "" if item.time is None else f"{item.time:.6f}",
            item.chain[-1].cause if item.chain else "",
        )
        for item in judged
    ]
    return table(("requirement", "verdict", "margin", "time, s", "after"), rows)


def _summary(trajectory: Trajectory, files: list[Path]) -> dict[str, Any]:
    layout = trajectory.model.layout
    return {
        "model": trajectory.model.name,
        "outcome": trajectory.outcome.name,
        "start": trajectory.t[0],
        "end": trajectory.t[-1],
        "rows": len(trajectory),
        "modes": list(dict.fromkeys(trajectory.modes)),
        "transitions": [
            {
                "time": x.time,
                "source": x.source,
                "target": x.target,
                "handover": x.is_handover,
                "cause": x.cause,
                "impulse": x.impulse,
                "energy_before": x.energy_before,
                "energy_after": x.energy_after,
                "consistent_count": x.consistent_count,
            }
            for x in trajectory.transitions
        ],
        "change_points": [asdict(x) for x in trajectory.change_points],
        "requirements": {name: _judgement_data(item) for name, item in trajectory.judge().items()},
        "final": {
            "mode": trajectory.modes[-1],
            "q": dict(zip(layout.q, trajectory.q[-1], strict=True)),
            "u": dict(zip(layout.u, trajectory.u[-1], strict=True)),
        },
        "files": [str(path) for path in files],
    }


def _judgement_data(item: Judgement) -> dict[str, Any]:
    return {
        "formula": item.formula,
        "verdict": item.verdict,
        "margin": item.margin,
        "unit": item.unit,
        "time": item.time,
        "chain": [transition.cause for transition in item.chain],
    }
