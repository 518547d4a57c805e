"""The commands ``run``, ``explain`` and ``demo``, with their files and summaries."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fsm_dyn.cli.console import (
    Initial,
    Input,
    ScenarioOption,
    Set,
    Step,
    Tolerance,
    Until,
    assignments,
    duration,
    handle_errors,
    prepare_file,
    prepare_folder,
    print_json,
    print_status,
    progress_message,
    run_option,
)
from fsm_dyn.cli.model_commands import Json, mode_table, ready_graph
from fsm_dyn.core.errors import EnergyWarning, FsmDynError, InputError, RunError, StartWarning, did_you_mean
from fsm_dyn.core.files import INTERVAL, FileChanges
from fsm_dyn.core.interrupts import asked_to_end
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import table
from fsm_dyn.run.run_options import declared

if TYPE_CHECKING:
    from fsm_dyn.automaton.mode_graph import ModeGraph
    from fsm_dyn.run.judgement import Judgement
    from fsm_dyn.run.trajectory import Trajectory
    from fsm_dyn.run.transitions import Transition
    from fsm_dyn.run.words import Sentences


CONTINUATION: Final = ("method", "step", "rtol", "atol")  # of a saved run may be others

# -- Files that the command ``run`` writes of a run ----------------------------------------------------------

PLOTS = ("score", "modes", "states", "motion", "film_strip", "phase", "forces", "guards", "energy", "outcome", "graph")


@dataclass(frozen=True)
class RunOutputs:
    """Files to write of a run, in ``folder``; none if it is None.

    ``all_transitions``: the listing leaves out none.  ``full_names``: it has modes by name, not by label.
    """

    folder: Path | None
    csv: bool
    netcdf: bool
    figure: bool
    motion: bool
    save_run: bool = False
    mcap: bool = False
    gltf: bool = False
    usd: bool = False
    parquet: bool = False
    rerun: bool = False
    html: Path | None = None
    animation: Path | None = None
    animation_speed: float | None = None
    plots: tuple[str, ...] = ()
    all_transitions: bool = False
    full_names: bool = False

    def with_defaults(self) -> RunOutputs:
        """Return the outputs with defaults: the usual files if only a folder is given, the current folder for files."""
        if (
            self.csv
            or self.netcdf
            or self.figure
            or self.motion
            or self.save_run
            or self.mcap
            or self.gltf
            or self.usd
            or self.parquet
            or self.rerun
            or self.plots
        ):
            return replace(self, folder=self.folder or Path())
        if self.folder is None:
            return self
        return replace(self, csv=True, figure=True, motion=True, save_run=True)


def write_files(trajectory: Trajectory, outputs: RunOutputs) -> list[Path]:
    """Write the requested files of a run, named after its model, and return the paths."""
    if outputs.folder is None:
        return []
    stem = outputs.folder / trajectory.model.name
    files = []
    if outputs.csv:
        files.append(trajectory.to_csv(stem.with_suffix(".csv")))
    if outputs.save_run:
        files.append(trajectory.save(stem.with_suffix(".run.json")))
    if outputs.netcdf:
        files.append(trajectory.to_netcdf(stem.with_suffix(".nc")))
    if outputs.mcap:
        files.append(trajectory.to_mcap(stem.with_suffix(".mcap")))
    if outputs.gltf:
        files.append(trajectory.to_gltf(stem.with_suffix(".glb")))
    if outputs.usd:
        files.append(trajectory.to_usd(stem.with_suffix(".usdc")))
    if outputs.parquet:
        files.append(trajectory.to_parquet(stem.with_suffix(".parquet")))
    if outputs.rerun:
        files.append(trajectory.to_rerun(stem.with_suffix(".rrd")))
    if outputs.figure or outputs.motion:
        # Matplotlib, for pictures only.
        from fsm_dyn import plot

        if outputs.figure:
            if trajectory.model.contacts:
                files.append(plot.save(plot.score(trajectory), stem.with_name(f"{stem.name}_score.png")))
            files.append(plot.save(plot.states(trajectory), stem.with_suffix(".png")))
        if outputs.motion and trajectory.model.scene is not None:
            target = stem.with_name(f"{stem.name}_motion.png")
            files.append(plot.save(plot.motion(trajectory), target))
        if trajectory.outcome.failed and trajectory.model.scene is not None:
            files.append(plot.save(plot.outcome(trajectory), stem.with_name(f"{stem.name}_outcome.png")))
    return files


def draw_plots(trajectory: Trajectory, graph: Callable[[], ModeGraph], outputs: RunOutputs) -> list[Path]:
    """Draw plots by name and return their paths."""
    files: list[Path] = []
    if outputs.folder is None or not outputs.plots:
        return files
    # Matplotlib, for pictures only.
    from fsm_dyn import plot
    from fsm_dyn.run.simulator import simulator_of

    for name in outputs.plots:
        target = outputs.folder / f"{trajectory.model.name}_{name}.png"
        if name == "graph":
            extended = simulator_of(graph()).extended_graph(trajectory)  # with the modes first reached in the run
            files.append(plot.draw(extended.nx, target, trajectory=trajectory))
        else:
            files.append(plot.save(getattr(plot, name)(trajectory), target))
    return files


def write_animation(
    trajectory: Trajectory, outputs: RunOutputs, progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Write the requested animation of a run; ``progress`` as of :func:`fsm_dyn.plot.animation`."""
    if outputs.animation is None:
        return []
    # Matplotlib, for pictures only.
    from fsm_dyn import plot

    return [plot.animation(trajectory, outputs.animation, speed=outputs.animation_speed, progress=progress)]


def prepare_outputs(outputs: RunOutputs) -> None:
    """Make the folders of the requested files, and check that the files are writable, before anything is computed.

    Raises InputError: there is no such plot; a folder or file cannot be written, or an animation does not support the
    requested format or speed.
    """
    for name in outputs.plots:
        if name not in PLOTS:
            raise InputError(
                f"there is no plot '{name}'", found=name, allowed=", ".join(PLOTS), remedy=did_you_mean(name, PLOTS)
            )
    if outputs.folder is not None:
        prepare_folder("--out", outputs.folder)
    if outputs.html is not None:
        prepare_file("--html", outputs.html)
    if outputs.animation is not None:
        # Matplotlib, for pictures only.
        from fsm_dyn.plot.animation import require_speed, require_writable

        prepare_file("--animation", outputs.animation)
        require_writable(outputs.animation)
        require_speed(outputs.animation_speed)
    elif outputs.animation_speed is not None:
        raise InputError("--animation-speed needs --animation", remedy="add --animation FILE.gif")


# -- The summary of a run, as text and as data ---------------------------------------------------------------

SHOWN: Final = 30  # transitions
_MANY_PAIRS: Final = 8  # pairs of shapes; from this number on only touching ones are listed
_ROUNDING: Final = 1e-14  # of an energy: smaller differences are rounding
_WIDE: Final = 60  # characters of two modes' names; a line with longer ones names the target only


def describe(trajectory: Trajectory, most: int | None = SHOWN, full: bool = False) -> str:
    """Return a summary of a run as text: span, outcome, visits with their causes, energy balance.

    Of more than ``most`` visits the first ones and the last are listed; without a limit, or with modes by their names
    in full, all transitions are listed in their place.
    """
    everything = most is None or full
    lines = [
        f"{trajectory.model.name}: {trajectory.t[0]:g} s to {trajectory.t[-1]:g} s, {len(trajectory)} rows"
        + (_ends(trajectory, full) if everything else "")
        + f" ({trajectory.outcome.name})"
    ]
    if trajectory.transitions and everything:
        lines += ["", _transition_table(trajectory.transitions, most, full)]
    elif trajectory.model.contacts:
        lines += ["", _visit_table(trajectory, most), "", _left_out(trajectory)]
        if len(trajectory.visits) == 1 and trajectory.happenings:  # else their causes are among those of the visits
            lines += ["", _happening_table(trajectory, most)]
    lines += _pairs(trajectory, most)
    judged = trajectory.judge()
    if judged:
        lines += ["", requirement_table(judged.values(), trajectory.reading.sentences)]
    passed = trajectory.change_points
    lines += ["", *(str(item) for item in passed[:SHOWN])] if passed else []
    if len(passed) > SHOWN:
        lines.append(f"and {len(passed) - SHOWN} more change points")
    if not trajectory.outcome.failed:
        residual = trajectory.energy.relative_residual
        lines += ["", f"energy-balance residual: {residual:.1e} of the energy exchanged"]
    lines += [f"warning: {text}" for text in trajectory.warnings]
    return "\n".join(lines)


def _ends(trajectory: Trajectory, full: bool) -> str:
    """Return the modes in which a run started and ended."""
    modes = trajectory.modes if full else trajectory.labels
    return f", started {modes[0]}, ended {modes[-1]}"


def _visit_table(trajectory: Trajectory, most: int | None) -> str:
    """Return the visits of a run as a table, of more than ``most`` the first ones and the last."""
    from fsm_dyn.run.visits import HEADINGS

    visits = trajectory.visits
    rows = visits.cells()
    left_out = 0 if most is None else max(len(rows) - most, 0)
    if most is not None and left_out:
        rows = [*rows[: most - 1], ("...", f"{left_out} more: --all", "", ""), rows[-1]]
    return table((HEADINGS[0], "phase" if visits.are_phases else "mode", *HEADINGS[2:]), rows)


def _happening_table(trajectory: Trajectory, most: int | None) -> str:
    """Return the events as a table, of more than ``most`` the first ones."""
    rows = [(f"{item.time:.4f}", item.text) for item in trajectory.happenings[:most]]
    left_out = len(trajectory.happenings) - len(rows)
    return table(("time, s", "event"), [*rows, ("...", f"{left_out} more: --all")] if left_out else rows)


def _left_out(trajectory: Trajectory) -> str:
    """Return how many transitions the visits stand for, and how to list them."""
    from fsm_dyn.run.transitions import counted

    told = counted(trajectory.transitions)
    return f"{told}; --all lists them" if trajectory.transitions else told


def _pairs(trajectory: Trajectory, most: int | None) -> list[str]:
    """Return which pairs of shapes came to touch and when they first did, of a model with many."""
    count = len(trajectory.model.contact_entries)
    if count < _MANY_PAIRS:
        return []
    from fsm_dyn.run.encounters import touched_pairs

    touched = touched_pairs(trajectory.model, trajectory.transitions)
    lines = ["", f"{len(touched)} of {count} pairs of shapes came to touch{':' if touched else ''}"]
    if touched:
        rows = [(name, f"{times[0]:.6f}", f"{len(times)}") for name, times in touched.items()]
        lines.append(table(("pair", "first, s", "times"), rows[:most]))
        lines += [f"and {len(rows) - most} more: --all"] if most is not None and len(rows) > most else []
    return lines


def _transition_table(transitions: Sequence[Transition], most: int | None, full: bool) -> str:
    """Return transitions as a table, of more than ``most`` the first ones and the last."""
    left_out = 0 if most is None else max(len(transitions) - most, 0)
    shown = (*transitions[: most - 1], transitions[-1]) if most is not None and left_out else transitions
    headings = ["time, s", "from", "to", "cause"]
    ends = [
        (x.source, x.target)
        if full
        else (x.source_label or x.source, "(handover)" if x.is_handover else x.target_label or x.target)
        for x in shown
    ]
    rows = [[f"{x.time:.6f}", *modes, x.cause] for x, modes in zip(shown, ends, strict=True)]
    if max(sum(map(len, modes)) for modes in ends) > _WIDE:  # the source is the target of the line before
        headings.pop(1)
        rows = [[time, *others] for time, _, *others in rows]
    if any(x.impulse for x in shown):
        headings.insert(-1, "impact, J")
        for x, row in zip(shown, rows, strict=True):
            row.insert(-1, _impact(x) if x.impulse else "")
    if left_out:
        rows.insert(-1, ["...", *[""] * (len(headings) - 2), f"{left_out} more: --all"])
    return table(headings, rows)


def _impact(item: Transition) -> str:
    """Return the energy change of an impact, J; differences within rounding are zero."""
    rounding = _ROUNDING * max(abs(item.energy_before), abs(item.energy_after))
    return "0" if abs(item.energy_lost) <= rounding else f"{-item.energy_lost:+.2e}"


def requirement_table(judged: Iterable[Judgement], sentences: Sentences) -> str:
    """Return the requirements of a run as a table: verdicts, margins, decisive times, sentences of the last causes."""
    rows = [
        (
            item.name,
            item.verdict,
            "none" if math.isnan(item.margin) else f"{item.margin:.6g} {item.unit}".removesuffix(" 1"),
            "" if item.time is None else f"{item.time:.6f}",
            sentences.cause(len(item.chain) - 1) if item.chain else "",
        )
        for item in judged
    ]
    return table(("requirement", "verdict", "margin", "time, s", "after"), rows)


def summary(trajectory: Trajectory, files: list[Path]) -> dict[str, Any]:
    """Return a summary of a run as data. ``files``: that were written."""
    layout = trajectory.model.layout
    return {
        "model": trajectory.model.name,
        "outcome": trajectory.outcome.name,
        "start": trajectory.t[0],
        "end": trajectory.t[-1],
        "rows": len(trajectory),
        "modes": list(dict.fromkeys(trajectory.modes)),
        "visits": [
            {"name": x.name, "begin": x.begin, "end": x.end, "cause": x.cause, "merged": x.merged}
            for x in trajectory.visits
        ],
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
        "warnings": list(trajectory.warnings),
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


# -- Do something whenever a file is saved -------------------------------------------------------------------


def watch(path: Path, action: Callable[[], None]) -> None:
    """Call ``action`` now and after every change of the file, until Ctrl-C.

    Any error of ``action`` is shown and does not end the watch: the file is being written on, and the next
    version may be right.
    """
    file, due = FileChanges(path), path.exists()
    with contextlib.suppress(KeyboardInterrupt), asked_to_end() as asked, asked.at_once():
        while not asked:
            if due:
                print_status(f"--- {time.strftime('%H:%M:%S')} {path}")
                _attempt(action)
            time.sleep(INTERVAL)
            due = file.changed()
    print_status("stopped watching")


def _attempt(action: Callable[[], None]) -> None:
    try:
        action()
    except FsmDynError as error:
        print_status(f"error: {error}")
    except Exception:
        print_status(traceback.format_exc())


# -- The command ``run``, once or after every change of the file ---------------------------------------------


METHOD: Final = declared("method")
STRATEGY: Final = declared("strategy")
FORMULATION: Final = declared("formulation")


RunModelArgument = Annotated[
    str | None, typer.Argument(help="A shipped model's name, a model file, or a saved automaton (.json).")
]
ResumedFile = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        help="Continue a saved run (.run.json) to --until, with its own settings; "
        "--method, --step, --rtol and --atol change those of what follows.",
    ),
]
RestOnly = Annotated[bool, typer.Option("--rest", help="With --resume: without the rows of the saved run.")]
RunFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for files; without further options a CSV, the run and the figures."),
]
Plots = Annotated[
    list[str] | None, typer.Option("--plot", help=f"Draw one of: {', '.join(PLOTS)}. Repeat it for more.")
]
SaveRun = Annotated[bool, typer.Option("--save-run", help="Write the run as NAME.run.json, which `explain` reads.")]
HtmlReport = Annotated[Path | None, typer.Option("--html", help="Write a self-contained HTML report with playback.")]
AnimationFile = Annotated[
    Path | None, typer.Option("--animation", help="Write an animation: FILE.gif, or with ffmpeg FILE.mp4 or FILE.webm.")
]
AnimationSpeed = Annotated[
    float | None,
    typer.Option("--animation-speed", help="Seconds of the run per second of the animation: 0.1 is slow motion."),
]
Watching = Annotated[bool, typer.Option("--watch", help="Run again when the file is saved; Ctrl-C ends it.")]
AllTransitions = Annotated[bool, typer.Option("--all", help="List all transitions in place of the visits.")]
FullNames = Annotated[
    bool, typer.Option("--full", help="List modes by their names, with every contact that is not open.")
]


@handle_errors
def run_command(
    context: typer.Context,
    model: RunModelArgument = None,
    resume: ResumedFile = None,
    rest: RestOnly = False,
    until: Until = None,
    method: Annotated[str, run_option("method")] = METHOD.default,
    strategy: Annotated[str, run_option("strategy")] = STRATEGY.default,
    formulation: Annotated[str, run_option("formulation")] = FORMULATION.default,
    rtol: Annotated[float | None, run_option("rtol")] = None,
    atol: Annotated[float | None, run_option("atol")] = None,
    tolerance: Tolerance = None,
    step: Step = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    input_: Input = None,
    initial: Initial = None,
    out: RunFolder = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write every column as CSV.")] = False,
    netcdf: Annotated[bool, typer.Option("--netcdf", help="Write NetCDF (the extra 'analysis').")] = False,
    mcap: Annotated[bool, typer.Option("--mcap", help="Write MCAP for viewers (the extra 'live').")] = False,
    gltf: Annotated[bool, typer.Option("--gltf", help="Write the animation as glTF, .glb.")] = False,
    usd: Annotated[bool, typer.Option("--usd", help="Write the animation as USD, .usdc.")] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write every column as Parquet (the extra 'columns').")
    ] = False,
    rerun: Annotated[bool, typer.Option("--rerun", help="Write .rrd for Rerun (the extra 'rerun').")] = False,
    figure: Annotated[bool, typer.Option("--figure", help="Draw the score, and the states over time.")] = False,
    motion: Annotated[bool, typer.Option("--motion", help="Draw the mechanism at several times.")] = False,
    plot: Plots = None,
    save_run: SaveRun = False,
    html: HtmlReport = None,
    animation: AnimationFile = None,
    animation_speed: AnimationSpeed = None,
    watching: Watching = False,
    all_transitions: AllTransitions = False,
    full_names: FullNames = False,
    as_json: Json = False,
) -> None:
    """Simulate a model and list the phases or modes it visits, with their causes."""
    outputs = RunOutputs(
        folder=out, csv=csv, netcdf=netcdf, mcap=mcap, gltf=gltf, usd=usd, parquet=parquet, rerun=rerun, figure=figure,
        motion=motion, save_run=save_run, html=html,
        animation=animation, animation_speed=animation_speed, plots=tuple(plot or ()), all_transitions=all_transitions,
        full_names=full_names,
    ).with_defaults()  # fmt: skip
    prepare_outputs(outputs)
    options = {
        "until": until, "method": method, "strategy": strategy, "formulation": formulation,
        "rtol": rtol, "atol": atol, "step": step, "tolerances": assignments("--tolerance", tolerance),
        "scenario": scenario, "inputs": assignments("--input", input_),
        "initial": assignments("--initial", initial),
    }  # fmt: skip
    given = {key: value for key, value in options.items() if value is not None}
    parameters = assignments("--set", set_)
    if resume is not None:
        changed = _taken_for_continuation(given, context)
        _refuse_settings({"a model": model, "--set": set_, "--watch": watching or None}, given)
        _resume(resume, until, rest, changed, outputs, as_json)
    else:
        _run_once_or_watching(model, rest, watching, lambda named: _run(named, parameters, given, outputs, as_json))


def _run_once_or_watching(model: str | None, rest: bool, watching: bool, run: Callable[[str], None]) -> None:
    """Run a model once, or after every change of its file."""
    if model is None:
        raise InputError("there is no model to run", remedy="fsm-dyn run MODEL, or fsm-dyn run --resume FILE --until S")
    if rest:
        raise InputError("--rest needs --resume", remedy="add --resume FILE")
    if not watching:
        run(model)
        return
    # The file a name stands for, found without the rest of the package.
    from fsm_dyn.language import models
    from fsm_dyn.language.components import split_name

    watch(models.resolve(split_name(model)[0]), lambda: run(model))


def _was_given(context: typer.Context, parameter: str) -> bool:
    """Return whether an option is on the command line: its default is not that of a saved run."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_settings(others: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse, with --resume, options already fixed by the saved run."""
    fixed = others | {declared(name).flag: value for name, value in given.items() if name != "until"}
    usual = {found.flag: found.default for found in (METHOD, STRATEGY, FORMULATION)}
    for name, value in fixed.items():
        if value is not None and usual.get(name) != value:
            raise InputError(
                f"a run is continued with its own settings: {name} cannot be combined with --resume",
                allowed="--until, --rest, --method, --step, --rtol, --atol and options of output",
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


def _taken_for_continuation(given: dict[str, Any], context: typer.Context) -> dict[str, Any]:
    """Take the settings of integration that a continued run may change out of the options."""
    return {name: given.pop(name) for name in CONTINUATION if name in given and _was_given(context, name)}


def _resume(
    file: str, until: float | None, rest: bool, changed: Mapping[str, Any], outputs: RunOutputs, as_json: bool
) -> None:
    """Continue a saved run, with changed settings of integration."""
    if until is None:
        raise InputError("--resume needs the end of the run", remedy="add --until S")
    # The public interface brings the runtime along.
    import fsm_dyn
    from fsm_dyn.language.loader import load

    with progress_message(f"reading {file}", as_json):
        before = fsm_dyn.open_run(file)

    def resumed(progress: Callable[[float], None]) -> Trajectory:
        return before.resume(until, whole=not rest, progress=progress, **changed)

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
        for category in (EnergyWarning, StartWarning):
            warnings.simplefilter("ignore", category)  # the summary has it
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
            from fsm_dyn.page.report import write_report

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
        raise failure  # after the output of the rows recorded before it


# -- The command ``explain``: the reasons for the mode at a time of a run ------------------------------------

_SAME_INSTANT = 1e-6  # s; `run` prints times to 1e-6: one read off its table means the transition listed there


RunOrModel = Annotated[
    str, typer.Argument(help="A saved run (.run.json), or a model to run now: a name, a file, a saved automaton.")
]
UntilOfModel = Annotated[
    float | None, run_option("until", help="End of the run, s, of a model.", parser=duration, metavar="TIME")
]


def _of_model(
    until: float | None,
    scenario: str | None,
    parameters: list[str] | None,
    inputs: list[str] | None,
    initial: list[str] | None,
) -> dict[str, Any]:
    """Return the options of a run of a model that were given, by name."""
    found = {
        "until": until,
        "scenario": scenario,
        "parameters": assignments("--set", parameters),
        "inputs": assignments("--input", inputs),
        "initial": assignments("--initial", initial),
    }
    return {name: value for name, value in found.items() if value is not None}


@handle_errors
def explain_command(
    run: RunOrModel,
    at: Annotated[float | None, typer.Option("--at", help="Time, s; default: the end of the run.")] = None,
    until: UntilOfModel = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    input_: Input = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """Explain the mode at a given time: preceding transitions, contact forces, guards."""
    given = _of_model(until, scenario, set_, input_, initial)
    trajectory = _trajectory(run, at, given, as_json)
    found = trajectory.explain(_instant(trajectory, at))
    if as_json:
        ends = trajectory.describe_outcome() if found.time == trajectory.t[-1] else ()
        print_json({**found.as_data(), "outcome": trajectory.outcome.name, "outcome_details": list(ends)})
    else:
        typer.echo(str(found))
        if found.time == trajectory.t[-1]:
            typer.echo("\nthe run ends here: " + "\n  ".join(trajectory.describe_outcome()))


@handle_errors
def loads_command(
    run: RunOrModel,
    until: UntilOfModel = None,
    set_: Set = None,
    scenario: ScenarioOption = None,
    input_: Input = None,
    initial: Initial = None,
    as_json: Json = False,
) -> None:
    """List the largest force, torque and impulse in every connection, and the contact times of compliant contacts."""
    given = _of_model(until, scenario, set_, input_, initial)
    # NumPy takes a moment to import.
    from fsm_dyn.run.energy import periods_table
    from fsm_dyn.run.pin_loads import loads_table

    trajectory = _trajectory(run, None, given, as_json)
    peaks, pins, periods = trajectory.peak_loads(), trajectory.pins, trajectory.contact_periods
    shared = [name for name, pin in pins.items() if not pin.determined.all()]
    if as_json:
        print_json(
            {
                "loads": [asdict(item) for item in peaks],
                "contact_periods": [asdict(item) for item in periods],
                "without_place": pins.without_place,
                "indeterminate": shared,
            }
        )
        return
    typer.echo(loads_table(peaks))
    if periods:
        hardest = {period.name: period for period in sorted(periods, key=lambda period: period.peak)}
        typer.echo(f"\nhardest compressions of compliant contacts, of {len(periods)}:\n")
        typer.echo(periods_table(list(hardest.values())[::-1]))
    if shared:
        typer.echo(f"\nshared among redundant supports, not determined: {', '.join(shared)}")
    if pins.without_place:
        typer.echo(f"\nwritten in coordinates, so without a place: {', '.join(pins.without_place)}")


def _trajectory(run: str, at: float | None, given: dict[str, Any], quiet: bool) -> Trajectory:
    # The public interface brings SymPy along.
    import fsm_dyn
    from fsm_dyn.run.run_files import is_run

    if Path(run).suffix == ".json" and is_run(run):
        if given:
            raise InputError(
                "a saved run is explained with its own settings",
                found=f"--{next(iter(given))}",
                remedy="give a model instead",
            )
        with progress_message(f"reading {run}", quiet):
            return fsm_dyn.open_run(run)
    graph = ready_graph(run, quiet=quiet)
    with progress_message(f"running {graph.name}", quiet) as progress:
        try:
            trajectory = fsm_dyn.simulate(graph, progress=progress.reached, **given)
            if at is not None and at > trajectory.t[-1] and "until" not in given and not trajectory.outcome.failed:
                trajectory = fsm_dyn.simulate(graph, progress=progress.reached, **{**given, "until": at})
        except RunError as error:
            if not isinstance(error.trajectory, fsm_dyn.Trajectory):
                raise
            trajectory = error.trajectory  # explained up to the failure
    return trajectory


def _instant(trajectory: Trajectory, at: float | None) -> float:
    """Return the time to explain: a transition's if it differs by less than the digits printed."""
    if at is None:
        return float(trajectory.t[-1])
    near = [item.time for item in trajectory.transitions if abs(item.time - at) <= _SAME_INSTANT]
    return min(near, key=lambda time: abs(time - at)) if near else at


# -- The command ``demo``: the shopping cart from its file to its pictures -----------------------------------

_MODEL = "shopping_cart"


@handle_errors
def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("out"),
) -> None:
    """Compile and run the shopping cart: its caster sticks, breaks away and sticks again; draw all of it."""
    started = time.perf_counter()
    prepare_folder("--out", out)
    graph = ready_graph(_MODEL)
    typer.echo(f"{graph.name}: {graph.automaton.mechanism.summary}\n\n{mode_table(graph)}\n")
    # The public interface and Matplotlib take a moment to import.
    import fsm_dyn
    from fsm_dyn.plot import drawing

    with progress_message("running"):
        trajectory = fsm_dyn.simulate(graph)
    typer.echo(describe(trajectory))
    typer.echo("")
    with progress_message("drawing"):
        files = write_files(trajectory, RunOutputs(out, csv=True, netcdf=False, figure=True, motion=True))
        files.append(drawing.draw(graph.nx, out / f"{graph.name}_modes.png"))
    for path in files:
        typer.echo(f"wrote {path}")
    typer.echo(f"{time.perf_counter() - started:.1f} s")
