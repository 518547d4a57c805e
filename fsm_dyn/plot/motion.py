"""The motion in one picture: the mechanism at several instants, coloured by its mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon

from fsm_dyn.errors import InputError
from fsm_dyn.plot import palette, style
from fsm_dyn.recording.arrays import FloatArray
from fsm_dyn.recording.placing import Placed, place
from fsm_dyn.recording.scene import Scene, Shape
from fsm_dyn.recording.trajectory import Trajectory

ORIGIN = "O"  # rests: its path is no path
_INSTANTS = 9
_LONGEST = 8.0  # inches
_PATH_POINTS = 600

# Directions of sight for mechanisms that leave the plane: x to the lower left, y to the right, z up.
_AXONOMETRIC = np.array([[-0.35, 0.94, 0.0], [-0.33, -0.12, 0.94]])
_PLANAR = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class _View:
    """Projected outlines (instant by shape), links (instant, link, 2, 2), names of modes, times and paths."""

    shapes: list[list[FloatArray]]
    bounded: list[bool]
    links: FloatArray
    modes: tuple[str, ...]
    times: FloatArray
    paths: dict[str, FloatArray]

    def box(self, instant: int) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of one instant."""
        shapes = [part for part, bounded in zip(self.shapes[instant], self.bounded, strict=True) if bounded]
        parts = [*shapes, self.links[instant].reshape(-1, 2)]
        everything = np.concatenate([part for part in parts if len(part)])
        return everything.min(axis=0), everything.max(axis=0)


def motion(trajectory: Trajectory, scene: Scene | None = None, instants: int = _INSTANTS) -> Figure:
    """Draw the mechanism at evenly spaced instants of a run.

    Where the mechanism travels, the instants lie over each other along the paths of the bodies.  Where it stays
    about where it is, or moves along a narrow strip, they stand side by side like the frames of a film.

    Parameters
    ----------
    trajectory : Trajectory
    scene : Scene, optional
        What to draw; by default the model's.
    instants : int
        How many instants to draw, the first and the last of the run included.

    Raises
    ------
    InputError
        If the model has nothing to draw.
    """
    scene = scene or trajectory.model.scene
    if scene is None:
        raise InputError(f"{trajectory.model.name} has nothing to draw")
    view = _project(trajectory, scene, np.linspace(trajectory.t[0], trajectory.t[-1], instants))
    colours = palette.mode_colours(trajectory.model.modes)
    boxes = np.array([view.box(i) for i in range(instants)])
    sizes = (boxes[:, 1] - boxes[:, 0]).max(axis=0)
    extent = boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)
    axis = _film_axis(boxes.mean(axis=1), sizes, extent)
    offsets = np.zeros((instants, 2))
    if axis is not None:
        pitch = 1.25 * max(extent[axis], 0.12 * extent.max(), 1e-12)
        offsets[:, axis] = pitch * np.arange(instants) * (1.0 if axis == 0 else -1.0)
    with style.settings():
        drift = np.linspace(offsets[0], offsets[-1], _PATH_POINTS)
        paths = [path + drift for path in view.paths.values()]
        everything = np.concatenate([boxes[:, 0] + offsets, boxes[:, 1] + offsets, *paths])
        picture, axes = _canvas(everything.min(axis=0), everything.max(axis=0))
        for path in paths:
            axes.plot(*path.T, color=palette.FAINT, lw=0.8, zorder=1)
        for i in range(instants):
            share = 1.0 if axis is not None else 0.3 + 0.7 * i / max(instants - 1, 1)
            _draw_instant(axes, view, scene.shapes, i, offsets[i], colours[view.modes[i]], share)
        _label_times(axes, view, boxes, offsets, axis)
        _finish(picture, axes, trajectory, colours, set(view.modes))
    return picture


def instant(trajectory: Trajectory, time: float) -> Figure:
    """Draw the mechanism at one instant of a run (s), with the way it came."""
    scene = trajectory.model.scene
    if scene is None:
        raise InputError(f"{trajectory.model.name} has nothing to draw")
    view = _project(trajectory, scene, np.array([time]))
    colours = palette.mode_colours(trajectory.model.modes)
    low, high = view.box(0)
    with style.settings():
        picture, axes = _canvas(low, high)
        for path in view.paths.values():
            axes.plot(*path.T, color=palette.FAINT, lw=0.8, zorder=1)
        _draw_instant(axes, view, scene.shapes, 0, np.zeros(2), colours[view.modes[0]], 1.0)
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        _finish(picture, axes, trajectory, colours, set(view.modes))
    return picture


def _project(trajectory: Trajectory, scene: Scene, times: FloatArray) -> _View:
    start, end = float(trajectory.t[0]), float(trajectory.t[-1])
    samples = trajectory.sample(times)
    placed = place(scene, samples)
    along = place(scene, trajectory.sample(np.linspace(start, end, _PATH_POINTS)))
    flat = _PLANAR if along.is_planar() else _AXONOMETRIC
    outlines = [placed.outline(shape) @ flat.T for shape in scene.shapes]
    return _View(
        shapes=[[outline[i] for outline in outlines] for i in range(len(times))],
        bounded=[not shape.endless for shape in scene.shapes],
        links=_links(placed) @ flat.T,
        modes=samples.modes,
        times=samples.t,
        paths={shape.body: along.point(shape.origin) @ flat.T for shape in scene.shapes if shape.origin != ORIGIN},
    )


def _links(placed: Placed) -> FloatArray:
    ends = [np.stack([placed.point(a), placed.point(b)], axis=1) for a, b in placed.scene.links]
    if not ends:
        return np.zeros((len(placed.positions), 0, 2, 3))
    return np.stack(ends, axis=1)


def _film_axis(centres: FloatArray, size: FloatArray, extent: FloatArray) -> int | None:
    """Choose the axis along which the instants are set apart, or None where they may lie over each other.

    They are set apart where most of them would cover another, and where the motion goes back and forth in a strip
    that is hardly wider than the mechanism.
    """
    distance = np.linalg.norm(centres[:, None] - centres, axis=-1) + np.diag(np.full(len(centres), np.inf))
    if np.median(distance.min(axis=1)) < 0.35 * size.max():
        return 1 if extent[1] < 0.5 * extent[0] else 0
    narrow = int(np.argmin(extent))
    path = np.abs(np.diff(centres[:, 1 - narrow])).sum()
    back_and_forth = path > 1.3 * np.ptp(centres[:, 1 - narrow])
    return narrow if back_and_forth and extent[narrow] < 1.5 * size[narrow] else None


def _canvas(low: FloatArray, high: FloatArray) -> tuple[Figure, Axes]:
    """Make axes of equal scale around a box, the longer side of the picture bounded."""
    size = np.maximum(high - low, 1e-9)
    size = np.maximum(size, 0.12 * size.max())
    margin = 0.06 * size.max()
    middle = 0.5 * (low + high)
    scale = min(_LONGEST / (size[0] + 2 * margin), 5.5 / (size[1] + 2 * margin))
    inner = scale * (size + 2 * margin)
    width, height = max(inner[0] + 1.0, 4.5), inner[1] + 1.1
    picture = style.new_figure(width, height)
    axes = picture.add_axes((0.7 / width, 0.5 / height, (width - 0.9) / width, inner[1] / height))
    axes.set_aspect("equal")
    axes.set_xlim(middle[0] - size[0] / 2 - margin, middle[0] + size[0] / 2 + margin)
    axes.set_ylim(middle[1] - size[1] / 2 - margin, middle[1] + size[1] / 2 + margin)
    return picture, axes


def _draw_instant(
    axes: Axes, view: _View, shapes: tuple[Shape, ...], i: int, offset: FloatArray, colour: str, share: float
) -> None:
    order = 2.0 + i
    for shape, outline in zip(shapes, view.shapes[i], strict=True):
        points = outline + offset
        if shape.closed:
            axes.add_patch(Polygon(points, facecolor=colour, alpha=0.8 * share, lw=0, zorder=order))
            axes.add_patch(Polygon(points, fill=False, edgecolor=palette.INK, alpha=share, lw=0.8, zorder=order))
        elif len(points) > 1:
            axes.plot(*points.T, color=palette.INK, alpha=share, lw=1.2, zorder=order + 0.2)
        else:
            axes.plot(*points.T, "o", color=colour, mec=palette.INK, mew=0.8, ms=5.5, alpha=share, zorder=order + 0.4)
            axes.annotate(shape.text, tuple(points[0]), (5, 5), textcoords="offset points", fontsize=8, alpha=share)
    for link in view.links[i]:
        axes.plot(*(link + offset).T, color=palette.INK, alpha=share, lw=0.9, zorder=order + 0.3)


def _label_times(axes: Axes, view: _View, boxes: FloatArray, offsets: FloatArray, axis: int | None) -> None:
    """Write the times on the axis of a film, or beside every instant of an overlaid motion."""
    names = [f"{time:.3g} s" for time in view.times]
    # Evenly spaced, though the bodies stand left and right of the mark: the axis of a film is time.
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
    """Write the time beside every instant, across the direction of travel, where there is room for it."""
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


def _finish(picture: Figure, axes: Axes, trajectory: Trajectory, colours: dict[str, str], met: set[str]) -> None:
    axes.tick_params(length=3)
    axes.set_axisbelow(True)
    axes.grid(color="#EEEEEE", lw=0.7)
    left = axes.get_position().x0
    y = 1.0 - 0.25 / picture.get_figheight()
    picture.text(left, y, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
    handles = [Patch(facecolor=colour, label=name) for name, colour in colours.items() if name in met]
    picture.legend(
        handles=handles,
        loc="center right",
        bbox_to_anchor=(1.0 - 0.2 / picture.get_figwidth(), y),
        ncols=min(len(handles), 4),
        handlelength=1.2,
        handleheight=0.9,
        columnspacing=1.2,
        borderaxespad=0.0,
    )
