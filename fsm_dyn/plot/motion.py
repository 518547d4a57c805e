"""Motion of a run in one figure: snapshots of the mechanism, coloured by mode."""

from __future__ import annotations

from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style
from fsm_dyn.plot.legend import mode_legend
from fsm_dyn.plot.scene_projection import PATH_POINTS, View, draw_instant, project, scene_of
from fsm_dyn.plot.snapshot_grid import frames
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import Scene
from fsm_dyn.results.trajectory import Trajectory

_INSTANTS = 9
_LONGEST, _HIGHEST = 8.0, 5.5  # inches
_SMALLEST = 0.9  # inches: smaller snapshots are set in rows
_ROW = 4  # snapshots that always fit one row


@overload
def motion(trajectory: Trajectory, scene: Scene | None = None, instants: int = _INSTANTS) -> Figure: ...


@overload
def motion(trajectory: Trajectory, scene: Scene | None = None, instants: int = _INSTANTS, *, ax: Axes) -> Axes: ...


def motion(
    trajectory: Trajectory, scene: Scene | None = None, instants: int = _INSTANTS, *, ax: Axes | None = None
) -> Figure | Axes:
    """Draw snapshots of the mechanism at several times of a run.

    If the mechanism travels, the snapshots are superposed along the paths of the bodies.  If it stays in place, or
    moves along a narrow strip, they are side by side, in several rows if one would make them too small.

    Parameters
    ----------
    trajectory : Trajectory
    scene : Scene, optional
        What to draw; by default the model's.
    instants : int
        Number of snapshots, including begin and end of the run.
    ax : Axes, optional
        Where to draw, without heading and names of modes, and never in several rows; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        If the model has nothing to draw.
    """
    scene = scene or scene_of(trajectory)
    view = project(trajectory, scene, np.linspace(trajectory.t[0], trajectory.t[-1], instants))
    colours = palette.mode_colours(trajectory.model.labels)
    boxes = np.array([view.box(i) for i in range(instants)])
    sizes = (boxes[:, 1] - boxes[:, 0]).max(axis=0)
    extent = boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)
    axis = strip_axis(boxes.mean(axis=1), sizes, extent)
    offsets = np.zeros((instants, 2))
    if axis is not None:
        pitch = 1.25 * max(extent[axis], 0.12 * extent.max(), 1e-12)
        offsets[:, axis] = pitch * np.arange(instants) * (1.0 if axis == 0 else -1.0)
        if ax is None and min(_scale(extent + np.ptp(offsets, axis=0)) * extent) < _SMALLEST and instants > _ROW:
            return frames(trajectory, scene, instants)
    with style.settings():
        drift = np.linspace(offsets[0], offsets[-1], PATH_POINTS)
        paths = [path + drift for path in view.paths.values()]
        everything = np.concatenate([boxes[:, 0] + offsets, boxes[:, 1] + offsets, *paths])
        low, high = everything.min(axis=0), everything.max(axis=0)
        axes = _canvas(low, high) if ax is None else _around(ax, low, high)
        for path in paths:
            axes.plot(*path.T, color=palette.FAINT, lw=0.8, zorder=1)
        for i in range(instants):
            share = 1.0 if axis is not None else 0.3 + 0.7 * i / max(instants - 1, 1)
            draw_instant(axes, view, scene.shapes, i, offsets[i], colours[view.modes[i]], share)
        _label_times(axes, view, boxes, offsets, axis)
        _finish(axes, trajectory, colours, set(view.modes) if ax is None else None)
    return _picture(axes) if ax is None else ax


def snapshot(trajectory: Trajectory, time: float) -> Figure:
    """Draw the mechanism at one time of a run, s, with the paths of its bodies."""
    scene = scene_of(trajectory)
    view = project(trajectory, scene, np.array([time]))
    colours = palette.mode_colours(trajectory.model.labels)
    low, high = view.box(0)
    with style.settings():
        axes = _canvas(low, high)
        for path in view.paths.values():
            axes.plot(*path.T, color=palette.FAINT, lw=0.8, zorder=1)
        draw_instant(axes, view, scene.shapes, 0, np.zeros(2), colours[view.modes[0]], 1.0)
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        _finish(axes, trajectory, colours, set(view.modes))
    return _picture(axes)


def strip_axis(centres: FloatArray, size: FloatArray, extent: FloatArray) -> int | None:
    """Choose the axis along which the snapshots are set side by side, or None to superpose them.

    They are side by side if most would cover another, or if the motion is back and forth in a strip hardly wider than
    the mechanism.
    """
    distance = np.linalg.norm(centres[:, None] - centres, axis=-1) + np.diag(np.full(len(centres), np.inf))
    if np.median(distance.min(axis=1)) < 0.35 * size.max():
        return 1 if extent[1] < 0.5 * extent[0] else 0
    narrow = int(np.argmin(extent))
    path = np.abs(np.diff(centres[:, 1 - narrow])).sum()
    back_and_forth = path > 1.3 * np.ptp(centres[:, 1 - narrow])
    return narrow if back_and_forth and extent[narrow] < 1.5 * size[narrow] else None


def _scale(size: FloatArray) -> float:
    """Return inches per metre for what is of this size (m)."""
    return float(min(_LONGEST / size[0], _HIGHEST / size[1]))


def _box(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return middle and size, m, of what is shown around a box: never a line, and with a margin."""
    size = np.maximum(high - low, 1e-9)
    size = np.maximum(size, 0.12 * size.max())
    return 0.5 * (low + high), size + 0.12 * size.max()


def _around(axes: Axes, low: FloatArray, high: FloatArray) -> Axes:
    """Give axes equal scales, around a box."""
    middle, size = _box(low, high)
    axes.set_aspect("equal")
    axes.set_xlim(middle[0] - size[0] / 2, middle[0] + size[0] / 2)
    axes.set_ylim(middle[1] - size[1] / 2, middle[1] + size[1] / 2)
    return axes


def _canvas(low: FloatArray, high: FloatArray) -> Axes:
    """Make axes of equal scale around a box, the longer side of their picture bounded."""
    _, size = _box(low, high)
    inner = _scale(size) * size
    width, height = max(inner[0] + 1.0, 4.5), inner[1] + 1.1
    picture = style.new_figure(width, height)
    return _around(picture.add_axes((0.7 / width, 0.5 / height, (width - 0.9) / width, inner[1] / height)), low, high)


def _picture(axes: Axes) -> Figure:
    picture = axes.get_figure(root=True)
    assert isinstance(picture, Figure)
    return picture


def _label_times(axes: Axes, view: View, boxes: FloatArray, offsets: FloatArray, axis: int | None) -> None:
    """Write the times on the axis of snapshots set side by side, or next to superposed ones."""
    names = [f"{time:.3g} s" for time in view.times]
    # evenly spaced: the axis is time, though bodies may be off their mark
    centres = boxes.mean(axis=(0, 1)) + offsets
    if axis == 0:
        axes.set_xticks(centres[:, 0], names)
        axes.set_ylabel("m")
    elif axis == 1:
        axes.set_yticks(centres[:, 1], names)
        axes.set_xlabel("m")
    else:
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        _label_instants(axes, names, boxes)


def _label_instants(axes: Axes, names: list[str], boxes: FloatArray) -> None:
    """Write the time next to every snapshot, across the direction of travel, if there is room."""
    span = max(axes.get_xlim()[1] - axes.get_xlim()[0], axes.get_ylim()[1] - axes.get_ylim()[0])
    middles = boxes.mean(axis=1)
    travel = np.gradient(middles, axis=0)
    taken: list[FloatArray] = []
    for i in [0, len(names) - 1, *range(1, len(names) - 1)]:
        upwards = abs(travel[i, 1]) > abs(travel[i, 0])
        place = np.array([boxes[i, 0, 0], middles[i, 1]]) if upwards else np.array([middles[i, 0], boxes[i, 1, 1]])
        if any(np.linalg.norm(place - other) < 0.07 * span for other in taken):
            continue
        taken.append(place)
        shift, horizontal, vertical = ((-4, 0), "right", "center") if upwards else ((0, 3), "center", "bottom")
        axes.annotate(
            names[i],
            tuple(place),
            shift,
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=8,
            zorder=50,
        )


def _finish(axes: Axes, trajectory: Trajectory, colours: dict[str, str], met: set[str] | None) -> None:
    """Draw a grid, and a heading with the names of these modes, of axes that have a picture to themselves."""
    axes.tick_params(length=3)
    axes.set_axisbelow(True)
    axes.grid(color="#EEEEEE", lw=0.7)
    if met is None:
        return
    picture = _picture(axes)
    left = axes.get_position().x0
    y = 1.0 - 0.25 / picture.get_figheight()
    picture.text(left, y, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
    width = picture.get_figwidth()
    begin = left * width + style.text_width(trajectory.model.name, 11.0, "bold") / 72.0 + 0.25
    mode_legend(picture, {name: 1.0 for name in colours if name in met}, colours, begin, width - 0.1, y)
