"""Forces in connections over time, with impulses as stems, and as seen by the bearing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import MaxNLocator

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.timeline import Timeline
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.plot import style
from fsm_dyn.plot.timelines import head, time_panel
from fsm_dyn.run.pin_peaks import words_of
from fsm_dyn.run.pins import Pin
from fsm_dyn.run.run_timeline import dense_rows, visits_timeline
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition

_PANEL: Final = 1.9  # inches
_MOST: Final = 4
_SMALL: Final = 1e-9  # part of the largest load below which one is left out
_AXES: Final = "xyz"
_RINGS: Final = 3  # of a polar diagram, at most


@overload
def loads(trajectory: Trajectory, connections: Sequence[str] | None = None, *, frame: str | None = None) -> Figure: ...


@overload
def loads(
    trajectory: Trajectory, connections: Sequence[str] | None = None, *, frame: str | None = None, ax: Axes
) -> Axes: ...


def loads(
    trajectory: Trajectory,
    connections: Sequence[str] | None = None,
    *,
    frame: str | None = None,
    ax: Axes | None = None,
) -> Figure | Axes:
    """Draw the force in each connection over time, and the directions from which its bearing is loaded.

    Impulses of rigid impacts are stems on an axis of their own; limits of the model are dashed.  The polar diagram has
    the force of the parent on the child along two axes of a frame: those across the axis of a joint that turns, else
    those with the largest components.  Colours are those of the visits.

    Parameters
    ----------
    trajectory : Trajectory
    connections : sequence of str, optional
        By default the four with the largest forces.
    frame : str, optional
        Frame of the polar diagrams; by default that of each child.
    ax : Axes, optional
        Where to draw the force of one connection over time, without heading; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        There is no such connection or frame, no connection carries a load, or with ``ax`` there is not one connection.
    """
    rows = dense_rows(trajectory.rows, trajectory.sample)
    chosen = list(connections) if connections is not None else _largest(rows)
    pins = [rows.pins[name] for name in chosen]
    if not pins:
        raise InputError(f"in this run of {trajectory.model.name} no connection carries a load")
    impacts = [item for item in trajectory.transitions if item.impulse]
    timeline = visits_timeline(trajectory.reading)
    titles = [f"{pin.info.name}: {words_of(trajectory.reading, pin.info)}" for pin in pins]
    if ax is not None:
        if len(pins) != 1:
            raise InputError("axes take one connection", found=", ".join(chosen))
        with style.settings():
            _draw_times(ax, timeline, rows, pins[0], impacts, titles[0])
            ax.set_xlabel("time, s")
        return ax
    visits = trajectory.visits
    shades = np.array([style.strong(visits.fills[visits.at(time).name].colour) for time in rows.t.tolist()])
    with style.settings():
        height = _PANEL * len(pins) + 1.3
        picture = style.new_figure(8.5, height)
        grid = picture.add_gridspec(
            len(pins), 2, width_ratios=[3.1, 1.0], left=0.1, right=0.97, top=1.0 - 0.95 / height,
            bottom=0.5 / height, wspace=0.32, hspace=0.42,
        )  # fmt: skip
        for i, pin in enumerate(pins):
            axes = picture.add_subplot(grid[i, 0])
            _draw_times(axes, timeline, rows, pin, impacts, titles[i])
            rose = picture.add_subplot(grid[i, 1], projection="polar")
            assert isinstance(rose, PolarAxes)
            _draw_rose(rose, pin, frame or pin.info.frames[1], shades)
        axes.set_xlabel("time, s")
        head(picture, timeline)
    return picture


def _largest(rows: Samples) -> list[str]:
    sizes = {name: float(pin.magnitude.max(initial=0.0)) for name, pin in rows.pins.items()}
    bears = [name for name, size in sizes.items() if size > _SMALL * max(sizes.values())]
    return sorted(bears, key=lambda name: -sizes[name])[:_MOST]


def _draw_times(
    axes: Axes, timeline: Timeline, rows: Samples, pin: Pin, impacts: Sequence[Transition], title: str
) -> None:
    """Draw the magnitude of the force, the limits, and the impulses as stems on a second axis."""
    info = pin.info
    time_panel(axes, timeline)
    axes.plot(rows.t, pin.magnitude, color=palette.LINES[0], zorder=3)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("force, N")
    axes.set_title(title, fontsize=9, loc="left")
    _draw_limit(axes, rows, info.name, "force")
    sizes = np.array([np.linalg.norm(item.pin_impulse[info.name][:3]) for item in impacts])
    if not sizes.any():
        return
    other = axes.twinx()
    other.vlines([item.time for item in impacts], 0.0, sizes, color=palette.LINES[1], lw=1.4, zorder=4)
    other.plot([item.time for item in impacts], sizes, "o", color=palette.LINES[1], ms=3, zorder=4)
    other.set_ylim(0.0, 1.15 * sizes.max())
    other.set_ylabel("impulse, N·s", color=palette.LINES[1])
    other.tick_params(length=3, colors=palette.LINES[1])
    _draw_limit(other, rows, info.name, "impulse")


def _draw_limit(axes: Axes, rows: Samples, name: str, quantity: str) -> None:
    automaton = rows.model.automaton
    entry = None if automaton is None else automaton.mechanism.pins.get(name)
    bound = None if entry is None else entry.bounds.get(quantity)
    if bound is not None:
        limit = float(evaluate_expression(bound, rows.model.values))
        axes.axhline(limit, ls="--", color=palette.SOFT, lw=0.9, zorder=2)
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * limit))


def _draw_rose(axes: PolarAxes, pin: Pin, frame: str, shades: FloatArray) -> None:
    """Draw size and direction of the force in a frame."""
    force = pin.wrench(frame=frame)[:, :3]
    a, b = _plane(pin, frame, force)
    size = np.hypot(force[:, a], force[:, b])
    if not size.any():  # it sees impacts alone
        axes.set_visible(False)
        return
    axes.scatter(np.arctan2(force[:, b], force[:, a]), size, s=3, c=shades, lw=0, zorder=3)
    axes.set_ylim(0.0, 1.05 * float(size.max()))
    axes.set_xticks([0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi])
    axes.set_xticklabels([f"{frame}.{_AXES[a]}", f"{frame}.{_AXES[b]}", "", ""], fontsize=7)
    axes.yaxis.set_major_locator(MaxNLocator(_RINGS, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", labelsize=6)
    axes.tick_params(pad=0)


def _plane(pin: Pin, frame: str, force: FloatArray) -> tuple[int, int]:
    """Return the two axes across a joint that turns about a third one, else those of the largest components."""
    turns = pin.twists[0, :, 3:]
    across = np.abs(force).max(axis=0)
    if len(turns) == 1 and pin.info.kind == "pin":
        axis = pin.in_frame(turns, frame)[0]
        if np.abs(axis).max() > 1.0 - _SMALL:
            across[int(np.abs(axis).argmax())] = -1.0
    first, second = sorted(np.argsort(-across, kind="stable")[:2].tolist())
    return first, second
