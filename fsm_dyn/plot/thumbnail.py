"""Thumbnail of a run: snapshots of the mechanism, coloured by mode, each with its time and mode."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.plot import style
from fsm_dyn.plot.motion import strip_axis
from fsm_dyn.plot.scene_projection import PATH_POINTS, View, draw_instant, project, representative_times, scene_of
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import Scene
from fsm_dyn.results.scene_placement import place_scene
from fsm_dyn.results.trajectory import Trajectory

WIDTH, HEIGHT = 3.6, 2.4  # inches
_OVERLAID = 7
_APART = (2, 3, 4, 6)
_SMALLER = 0.55  # than the largest they could be, if there are more of them
_MARGIN = 0.05  # of the larger side
_BAND = 0.27  # inches above a snapshot, for its time and mode
_SIZE = 5.5  # points
_THIN = 0.6  # of the lines of a large picture


def thumbnail(trajectory: Trajectory) -> Figure:
    """Draw a run as a thumbnail: snapshots superposed if the mechanism travels, else side by side.

    Parameters
    ----------
    trajectory : Trajectory
        The run.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the model has nothing to draw.
    """
    scene = scene_of(trajectory)
    view = project(trajectory, scene, representative_times(trajectory, scene, _OVERLAID))
    boxes = _boxes(view)
    sizes = (boxes[:, 1] - boxes[:, 0]).max(axis=0)
    extent = boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)
    columns = rows = 1
    if strip_axis(boxes.mean(axis=1), sizes, extent) is not None:
        count, columns = _arranged(extent)
        rows = math.ceil(count / columns)
        view = project(trajectory, scene, _distinct_times(trajectory, scene, count))
        boxes = _boxes(view)
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    middle, half = 0.5 * (low + high), (0.5 + _MARGIN) * _cell(high - low, columns, rows)
    lines = list(_headings(view, columns * rows == 1, WIDTH / columns))
    colours = palette.mode_colours(trajectory.model.labels)
    count = len(view.times)
    with style.settings():
        picture = style.new_figure(WIDTH, HEIGHT)
        for k in range(columns * rows):
            if k and k >= count:
                break
            left, top = (k % columns) / columns, 1.0 - (k // columns) / rows
            axes = picture.add_axes((left, top - 1.0 / rows, 1.0 / columns, 1.0 / rows - _BAND / HEIGHT))
            for number, text in enumerate(lines[k]):
                picture.text(
                    left + 0.5 / columns, top - (0.04 + 0.11 * number) / HEIGHT, text,
                    fontsize=_SIZE, ha="center", va="top", color=palette.INK if number == 0 else palette.SOFT,
                )  # fmt: skip
            axes.set_axis_off()
            axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
            axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
            for i in range(count) if columns * rows == 1 else (k,):
                share = 1.0 if columns * rows > 1 else 0.3 + 0.7 * i / (count - 1)
                draw_instant(axes, view, scene.shapes, i, np.zeros(2), colours[view.modes[i]], share)
            for path in view.paths.values() if columns * rows == 1 else ():
                axes.plot(*path.T, color=palette.FAINT, lw=1.0, zorder=1)
            _make_thin(axes)
    return picture


def _distinct_times(trajectory: Trajectory, scene: Scene, count: int) -> FloatArray:
    """Return the times, s, of snapshots side by side: the first, and those that differ most from the ones before.

    Two snapshots differ by the displacement between them, relative to the largest of the run; by one more if their
    modes differ, and by the share of time that the run spends in the mode of the later one.
    """
    bounded = [shape for shape in scene.shapes if not (shape.endless or shape.plane)]
    if len(set(trajectory.labels)) == 1 or not bounded:
        return representative_times(trajectory, scene, count)
    ends = np.array([trajectory.t[0], *(one.time for one in trajectory.transitions), trajectory.t[-1]])
    middles = 0.5 * (ends[1:] + ends[:-1])[np.diff(ends) > 0.0]  # of every stay in a mode
    times = np.union1d(representative_times(trajectory, scene, PATH_POINTS), middles)
    samples = trajectory.sample(times)
    placed = place_scene(scene, samples)
    outlines = np.concatenate([placed.outline(shape) for shape in bounded], axis=1)
    modes = np.array(samples.labels)
    duration = np.gradient(times)
    share = {mode: float(duration[modes == mode].sum() / duration.sum()) for mode in set(samples.labels)}
    shares = np.array([share[mode] for mode in samples.labels])
    largest = max(float(np.linalg.norm(np.ptp(outlines, axis=0), axis=-1).max()), 1e-300)
    chosen, apart = [0], np.full(len(times), np.inf)
    while len(chosen) < count:
        moved = np.linalg.norm(outlines - outlines[chosen[-1]], axis=-1).max(axis=1) / largest
        apart = np.minimum(apart, moved + (1.0 + shares) * (modes != modes[chosen[-1]]))
        chosen.append(int(apart.argmax()))
    return times[sorted(chosen)]


def _headings(view: View, overlaid: bool, width: float) -> Iterator[tuple[str, str]]:
    """Yield the time and the mode of each snapshot, or of all that are superposed, no wider than a cell (inches)."""
    room = width - 0.16
    if overlaid:
        modes = ", ".join(dict.fromkeys(view.modes))
        yield f"{view.times[0]:.3g} to {view.times[-1]:.3g} s", style.fitted(modes, room, _SIZE)
        return
    for time, mode in zip(view.times, view.modes, strict=True):
        entry = mode.partition(": ")[0]  # of features in contact: they are longer than most cells
        fits = style.text_width(mode, _SIZE) <= 72.0 * room
        yield f"{time:.3g} s", mode if fits else style.fitted(entry, room, _SIZE, abridged)


def _make_thin(axes: Axes) -> None:
    for line in axes.lines:
        line.set_linewidth(_THIN * line.get_linewidth())
        line.set_markersize(_THIN * line.get_markersize())
    for words in axes.texts:
        words.set_visible(False)  # texts of the model are too small to be read here


def _boxes(view: View) -> FloatArray:
    return np.array([view.box(i) for i in range(len(view.times))])


def _cell(size: FloatArray, columns: int, rows: int) -> FloatArray:
    """Return the size, m, of the smallest cell that contains a box, for a grid that fills the picture."""
    shape = np.array([WIDTH / columns, HEIGHT / rows - _BAND])
    return np.asarray(shape * max(*(size / shape), 1e-9))


def _arranged(size: FloatArray) -> tuple[int, int]:
    """Return the number of snapshots side by side and of columns: as many as are large enough."""

    def scale(count: int, columns: int) -> float:
        return WIDTH / columns / float(_cell(size, columns, math.ceil(count / columns))[0])

    best = {count: max((scale(count, n), -n) for n in range(1, count + 1)) for count in _APART}
    largest = max(best.values())[0]
    count = max(count for count, (found, _) in best.items() if found >= _SMALLER * largest)
    return count, -best[count][1]
