"""Files that the command ``run`` writes of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fsm_dyn.cli.output_paths import prepare_file, prepare_folder
from fsm_dyn.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from fsm_dyn.automaton.mode_graph import ModeGraph
    from fsm_dyn.results import Trajectory

PLOTS = ("modes", "states", "motion", "film_strip", "phase", "forces", "guards", "energy", "outcome", "graph")


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
    html: Path | None = None
    animation: Path | None = None
    animation_speed: float | None = None
    plots: tuple[str, ...] = ()
    all_transitions: bool = False
    full_names: bool = False

    def with_defaults(self) -> RunOutputs:
        """Return the outputs with the usual files where a folder alone is given, and the present folder for files."""
        if self.csv or self.netcdf or self.figure or self.motion or self.save_run or self.plots:
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
    if outputs.figure or outputs.motion:
        # Matplotlib, for pictures only.
        from fsm_dyn import plot

        if outputs.figure:
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
    from fsm_dyn.simulator import simulator_of

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
    """Make the folders of the requested files, and check that those can be written, before anything is computed.

    Raises
    ------
    InputError
        There is no such plot; a folder or file cannot be written, or an animation not in the format or at the speed
        asked for.
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
