"""Motion of a run in one figure: snapshots with their visits; its outcome; a thumbnail."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.core.arrays import Floats
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene
from fsm_dyn.plot.scene_projection import (
    PATH_POINTS,
    View,
    project,
    representative_times,
    trajectory_scene,
    visit_colours,
)
from fsm_dyn.plot.style import mode_legend
from fsm_dyn.run.run_timeline import place_scene
from fsm_dyn.run.scene import Scene
from fsm_dyn.run.trajectory import Trajectory

# -- Motion of a run in one figure: snapshots of the mechanism -----------------------------------------------

_INSTANTS = 9
_LONGEST, _HIGHEST = 8.0, 5.5  # inches
_SMALLEST = 0.9  # inches: smaller snapshots are set in rows
_ROW = 4  # most snapshots always in one row


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
        The scene to draw; by default the model's.
    instants : int
        Number of snapshots, including begin and end of the run.
    ax : Axes, optional
        Axes to draw in, without heading and names of visits, and never in several rows; returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        If the model has nothing to draw.
    """
    scene = scene or trajectory_scene(trajectory)
    view = project(trajectory, scene, np.linspace(trajectory.t[0], trajectory.t[-1], instants))
    colours = visit_colours(trajectory)
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
            draw_scene(axes, view, i, offset=offsets[i], share=share)
        _label_times(axes, view, boxes, offsets, axis, colours)
        _finish(axes, trajectory, colours, set(view.visits) if ax is None else None)
    return _with_missing(_picture(axes), scene) if ax is None else ax


def _with_missing(picture: Figure, scene: Scene) -> Figure:
    """Write the list of undrawn parts below a picture."""
    if scene.missing:
        words = f"not drawn: {', '.join(scene.missing)}"
        picture.text(0.01, 0.01, words, fontsize=7.5, color=palette.SOFT)
    return picture


def snapshot(trajectory: Trajectory, time: float) -> Figure:
    """Draw the mechanism at one time of a run, s, with the paths of its bodies."""
    scene = trajectory_scene(trajectory)
    view = project(trajectory, scene, np.array([time]))
    colours = visit_colours(trajectory)
    low, high = view.box(0)
    with style.settings():
        axes = _canvas(low, high)
        for path in view.paths.values():
            axes.plot(*path.T, color=palette.FAINT, lw=0.8, zorder=1)
        draw_scene(axes, view, 0)
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        _finish(axes, trajectory, colours, set(view.visits))
    return _picture(axes)


def strip_axis(centres: Floats, size: Floats, extent: Floats) -> int | None:
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


def _scale(size: Floats) -> float:
    """Return inches per metre for a drawing of this size (m)."""
    return float(min(_LONGEST / size[0], _HIGHEST / size[1]))


def _box(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return middle and size, m, of the view around a box: never a line, and with a margin."""
    size = np.maximum(high - low, 1e-9)
    size = np.maximum(size, 0.12 * size.max())
    return 0.5 * (low + high), size + 0.12 * size.max()


def _around(axes: Axes, low: Floats, high: Floats) -> Axes:
    """Give axes equal scales, around a box."""
    middle, size = _box(low, high)
    axes.set_aspect("equal")
    axes.set_xlim(middle[0] - size[0] / 2, middle[0] + size[0] / 2)
    axes.set_ylim(middle[1] - size[1] / 2, middle[1] + size[1] / 2)
    return axes


def _canvas(low: Floats, high: Floats) -> Axes:
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


def _label_times(
    axes: Axes, view: View, boxes: Floats, offsets: Floats, axis: int | None, colours: dict[str, str]
) -> None:
    """Write the times, in colours of visits, on the axis of snapshots side by side, or next to superposed ones."""
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
        _label_instants(axes, names, boxes, [colours[mode] for mode in view.visits])
        return
    labels = axes.get_xticklabels() if axis == 0 else axes.get_yticklabels()
    for label, mode in zip(labels, view.visits, strict=True):
        label.set_bbox(style.chip(colours[mode]))


def _label_instants(axes: Axes, names: list[str], boxes: Floats, colours: list[str]) -> None:
    """Write the time next to every snapshot, across the direction of travel, if there is room."""
    span = max(axes.get_xlim()[1] - axes.get_xlim()[0], axes.get_ylim()[1] - axes.get_ylim()[0])
    middles = boxes.mean(axis=1)
    travel = np.gradient(middles, axis=0)
    taken: list[Floats] = []
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
            zorder=1000,
            bbox=style.chip(colours[i]),
        )


def _finish(axes: Axes, trajectory: Trajectory, colours: dict[str, str], met: set[str] | None) -> None:
    """Draw a grid, and a heading with the names of these visits, for the only axes of a picture."""
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


# -- Grid of snapshots of a motion, each with its axes, for mechanisms too large for one row -----------------

_GRID_WIDTH, _GRID_HIGHEST = 8.0, 6.2  # inches, of all panels together
_HEAD, _GAP = 0.45, 0.28  # inches above all panels, and above each for its time
_PANEL_MARGIN = 0.06  # of the panel's larger side


def frames(trajectory: Trajectory, scene: Scene, count: int) -> Figure:
    """Draw ``count`` snapshots of a run in panels of common size.

    ``count``: number of snapshots, evenly over the run.
    """
    view = project(trajectory, scene, representative_times(trajectory, scene, count))
    boxes = np.array([view.box(i) for i in range(count)])
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    margin = _PANEL_MARGIN * float((high - low).max())
    low, high = low - margin, high + margin
    columns = _columns(count, high - low)
    rows = math.ceil(count / columns)
    width, height = _frame(columns, rows, high - low)
    colours = visit_colours(trajectory)
    with style.settings():
        tall = rows * (height + _GAP) + _HEAD
        picture = style.new_figure(_GRID_WIDTH, tall)
        step = _GRID_WIDTH / columns
        for i in range(count):
            left = (i % columns) * step + 0.5 * (step - width)
            bottom = tall - _HEAD - (i // columns + 1) * (height + _GAP)
            axes = picture.add_axes((left / _GRID_WIDTH, bottom / tall, width / _GRID_WIDTH, height / tall))
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            axes.set_axis_off()
            draw_scene(axes, view, i)
            axes.set_title(f"{view.times[i]:.3g} s", fontsize=8.5, pad=3.0, bbox=style.chip(colours[view.visits[i]]))
        y = 1.0 - 0.25 / tall
        picture.text(0.15 / _GRID_WIDTH, y, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
        begin = 0.4 + style.text_width(trajectory.model.name, 11.0, "bold") / 72.0
        mode_legend(picture, _weights(view, colours), colours, begin, _GRID_WIDTH - 0.1, y)
    return _with_missing(picture, scene)


def _weights(view: View, colours: dict[str, str]) -> dict[str, float]:
    return {name: float(view.visits.count(name)) for name in colours if name in view.visits}


def _columns(count: int, size: Floats) -> int:
    """Return the number of panels per row for the largest panels; of equals, the fewest."""
    return max(range(1, count + 1), key=lambda n: (_frame(n, math.ceil(count / n), size)[0], -n))


def _frame(columns: int, rows: int, size: Floats) -> tuple[float, float]:
    """Return width and height of a panel, inches, for a box of this size, m."""
    scale = min((_GRID_WIDTH / columns - 0.15) / size[0], (_GRID_HIGHEST / rows - _GAP) / size[1])
    return float(scale * size[0]), float(scale * size[1])


# -- Thumbnail of a run --------------------------------------------------------------------------------------
#
# Thumbnail of a run: snapshots of the mechanism, each with its time and visit.

WIDTH, HEIGHT = 3.6, 2.4  # inches
_OVERLAID = 7
_APART = (2, 3, 4, 6)
_SMALLER = 0.55  # than the largest they could be, if there are more of them
_MARGIN = 0.05  # of the larger side
_BAND = 0.27  # inches above a snapshot, for its time and visit
_SIZE = 5.5  # points
_SIDES = 0.16  # inches, of a cell without text
_LEAST = 4.2  # points, of a name that is too wide else
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
    scene = trajectory_scene(trajectory)
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
    colours = visit_colours(trajectory)
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
                    fontsize=_fitting(text, WIDTH / columns - _SIDES), ha="center", va="top", color=palette.INK,
                    bbox=style.chip(colours[view.visits[k]]) if number and columns * rows > 1 else None,
                )  # fmt: skip
            axes.set_axis_off()
            axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
            axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
            for i in range(count) if columns * rows == 1 else (k,):
                share = 1.0 if columns * rows > 1 else 0.3 + 0.7 * i / (count - 1)
                draw_scene(axes, view, i, share=share, lines=_THIN)
            for path in view.paths.values() if columns * rows == 1 else ():
                axes.plot(*path.T, color=palette.FAINT, lw=1.0, zorder=1)
            for words in axes.texts:
                words.set_visible(False)  # texts of the model are too small to be read here
    return picture


def _distinct_times(trajectory: Trajectory, scene: Scene, count: int) -> Floats:
    """Return the times, s, of snapshots side by side: the first, and those most different from the ones before.

    Two snapshots differ by the displacement between them, relative to the largest of the run; by one more if their
    visits differ in name, and by the share of time that the run spends in those of the name of the later one.
    """
    bounded = [shape for shape in scene.shapes if shape.bounded]
    if len(trajectory.visits) == 1 or not (bounded or scene.anchors):
        return representative_times(trajectory, scene, count)
    middles = [0.5 * (visit.begin + visit.end) for visit in trajectory.visits]
    times = np.union1d(representative_times(trajectory, scene, PATH_POINTS), middles)
    samples = trajectory.sample(times)
    placed = place_scene(scene, samples)
    outlines = np.concatenate([*[placed.outline(shape) for shape in bounded], placed.anchors()], axis=1)
    names = np.array([trajectory.visits.at(time).name for time in times.tolist()])
    duration = np.gradient(times)
    share = {name: float(duration[names == name].sum() / duration.sum()) for name in names.tolist()}
    shares = np.array([share[name] for name in names.tolist()])
    largest = max(float(np.linalg.norm(np.ptp(outlines, axis=0), axis=-1).max()), 1e-300)
    chosen, apart = [0], np.full(len(times), np.inf)
    while len(chosen) < count:
        moved = np.linalg.norm(outlines - outlines[chosen[-1]], axis=-1).max(axis=1) / largest
        apart = np.minimum(apart, moved + (1.0 + shares) * (names != names[chosen[-1]]))
        chosen.append(int(apart.argmax()))
    return times[sorted(chosen)]


def _headings(view: View, overlaid: bool, width: float) -> Iterator[tuple[str, str]]:
    """Yield the time and the visit of each snapshot, or of all superposed ones, no wider than a cell (inches)."""
    room = width - _SIDES
    if overlaid:
        visits = ", ".join(dict.fromkeys(view.visits))
        yield f"{view.times[0]:.3g} to {view.times[-1]:.3g} s", style.fitted(visits, room, _LEAST)
        return
    labels = style.fitted_apart(view.visits, room, _LEAST)
    for time, name in zip(view.times, view.visits, strict=True):
        yield f"{time:.3g} s", labels[name]


def _fitting(text: str, room: float) -> float:
    """Return the size, points, at which a text is as wide as its room (inches), or smaller."""
    return min(_SIZE, _SIZE * 72.0 * room / max(style.text_width(text, _SIZE), 1e-9))


def _boxes(view: View) -> Floats:
    return np.array([view.box(i) for i in range(len(view.times))])


def _cell(size: Floats, columns: int, rows: int) -> Floats:
    """Return the size, m, of the smallest cell around a box, for a grid filling the picture."""
    shape = np.array([WIDTH / columns, HEIGHT / rows - _BAND])
    return np.asarray(shape * max(*(size / shape), 1e-9))


def _arranged(size: Floats) -> tuple[int, int]:
    """Return the number of snapshots side by side and of columns: as many as are large enough."""

    def scale(count: int, columns: int) -> float:
        return WIDTH / columns / float(_cell(size, columns, math.ceil(count / columns))[0])

    best = {count: max((scale(count, n), -n) for n in range(1, count + 1)) for count in _APART}
    largest = max(best.values())[0]
    count = max(count for count, (found, _) in best.items() if found >= _SMALLER * largest)
    return count, -best[count][1]


# -- Outcome of a run: final snapshot with the outcome report below ------------------------------------------

_WIDTH = 100  # characters of a line
_MOST_LINES = 24
_LINE = 0.165  # inches


def outcome(trajectory: Trajectory) -> Figure:
    """Draw the final snapshot of a run with the text of :meth:`~fsm_dyn.Trajectory.describe_outcome`.

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
        The model has nothing to draw.
    """
    lines: list[str] = []
    for words in trajectory.describe_outcome():
        lines += textwrap.wrap(words, _WIDTH, subsequent_indent="    ")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 2], "...", lines[-1]]
    picture = snapshot(trajectory, float(trajectory.t[-1]))
    room = _LINE * (len(lines) + 1)
    width, height = max(picture.get_figwidth(), 8.0), picture.get_figheight()
    places = [axes.get_position() for axes in picture.axes]
    with style.settings():
        for axes, place in zip(picture.axes, places, strict=True):
            axes.set_position((
                place.x0 * picture.get_figwidth() / width, (place.y0 * height + room) / (height + room),
                place.width * picture.get_figwidth() / width, place.height * height / (height + room),
            ))  # fmt: skip
        for text in picture.texts:
            text.set_y(1.0 - 0.25 / (height + room))
        picture.legends.clear()
        picture.set_size_inches(width, height + room)
        below = (room - 0.5 * _LINE) / (height + room)
        picture.text(0.3 / width, below, "\n".join(lines), fontsize=8, va="top", color=palette.INK, family="monospace")
    return picture
