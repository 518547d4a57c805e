"""Outlines of a mechanism at several times in the plane of a figure, with forces, as a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrow, Polygon

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.plot.style import mode_legend
from fsm_dyn.run.contact_forces import WIDTH, Forces, Kinematics
from fsm_dyn.run.record import scene_of
from fsm_dyn.run.run_timeline import Placed, place_scene
from fsm_dyn.run.scene import ORIGIN, Scene, SceneShape
from fsm_dyn.run.trajectory import Trajectory

# -- Projection of a scene -----------------------------------------------------------------------------------
#
# Projection of a scene: outlines of a mechanism at several times in the plane of the figure.

PATH_POINTS = 600
_AROUND_PATCH = 1.4  # half width of the square of a plane, of that of the mechanism
_EVEN = 0.15  # share of snapshots spaced evenly in time, the others by displacement

# Projection of spatial mechanisms: x to the lower left, y to the right, z up.
_AXONOMETRIC = np.array([[-0.35, 0.94, 0.0], [-0.33, -0.12, 0.94]])
PLANAR = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class View:
    """Outlines (instant by shape), links (instant, link, 2, 2) and paths, m, projected by ``flat``; labels of modes.

    ``arrows`` (instant, arrow, 2, 2), m, are tails and heads, NaN where there is none.
    """

    shapes: list[list[FloatArray]]
    bounded: list[bool]
    links: FloatArray
    modes: tuple[str, ...]
    times: FloatArray
    paths: dict[str, FloatArray]
    flat: FloatArray
    arrows: FloatArray

    def box(self, instant: int) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of one instant."""
        shapes = [part for part, bounded in zip(self.shapes[instant], self.bounded, strict=True) if bounded]
        parts = [*shapes, *self.links[instant], *self.arrows[instant]]
        everything = np.concatenate([part for part in parts if len(part) and np.isfinite(part).all()])
        return everything.min(axis=0), everything.max(axis=0)

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner, m, of all instants."""
        boxes = np.array([self.box(i) for i in range(len(self.times))])
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)


def trajectory_scene(trajectory: Trajectory) -> Scene:
    """Return what is drawn of a run.

    Raises
    ------
    InputError
        The model has nothing to draw.
    """
    scene = trajectory.model.scene
    if scene is None:
        raise InputError(f"{trajectory.model.name} has nothing to draw")
    return scene


def project(trajectory: Trajectory, scene: Scene, times: FloatArray) -> View:
    """Project the scene of a run at these times, s, on the plane of the figure."""
    start, end = float(trajectory.t[0]), float(trajectory.t[-1])
    samples = trajectory.sample(times)
    placed = place_scene(scene, samples)
    along = place_scene(scene, trajectory.sample(np.linspace(start, end, PATH_POINTS)))
    flat = _projection(along)
    middle, reach = _extent(placed)
    outlines = [
        _patch(placed, shape, middle, reach) @ flat.T if shape.plane else _flat_outline(placed, shape, flat)
        for shape in scene.shapes
    ]
    return View(
        shapes=[[outline[i] for outline in outlines] for i in range(len(times))],
        bounded=[not shape.endless for shape in scene.shapes],
        links=_links(placed) @ flat.T,
        modes=samples.labels,
        times=samples.t,
        paths={shape.body: along.point(shape.origin) @ flat.T for shape in scene.shapes if shape.origin != ORIGIN},
        flat=flat,
        arrows=np.zeros((len(times), 0, 2, 2)),
    )


def _flat_outline(placed: Placed, shape: SceneShape, flat: FloatArray) -> FloatArray:
    """Return a shape's outline in the plane of the figure, shape (n, k, 2), m."""
    if shape.facing:
        return np.asarray((placed.point(shape.origin) @ flat.T)[:, None, :] + shape.points)
    outline = np.asarray(placed.outline(shape) @ flat.T)
    if shape.outward:
        ahead = np.roll(outline, -1, axis=1)
        area = (outline[..., 0] * ahead[..., 1] - outline[..., 1] * ahead[..., 0]).sum(axis=1)
        outline[area <= 0.0] = np.nan
    return outline


def _extent(placed: Placed) -> tuple[FloatArray, float]:
    """Return the middle of all that is bounded at each instant, shape (n, 3), m, and its largest half width, m."""
    parts = [placed.outline(shape) for shape in placed.scene.shapes if not (shape.endless or shape.plane)]
    parts += [np.stack([placed.point(end) for end in pair], axis=1) for pair in placed.scene.links]
    if not parts:
        return np.zeros((len(placed.positions), 3)), 1.0
    everything = np.concatenate(parts, axis=1)
    low, high = everything.min(axis=1), everything.max(axis=1)
    return 0.5 * (low + high), 0.5 * float((high - low).max())


def _patch(placed: Placed, shape: SceneShape, middle: FloatArray, reach: float) -> FloatArray:
    """Return the square of a plane below (or next to) the mechanism, shape (n, 4, 3), m."""
    origin = placed.point(shape.origin)[:, None, :]
    across = placed.outline(shape) - origin
    foot = origin + np.einsum("nk,nik->ni", middle - origin[:, 0], across)[:, None, :] @ across
    sides = _AROUND_PATCH * reach * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.asarray(foot + sides @ across)


def _projection(placed: Placed) -> FloatArray:
    return PLANAR if placed.is_planar() else _AXONOMETRIC


def _links(placed: Placed) -> FloatArray:
    ends = [np.stack([placed.point(a), placed.point(b)], axis=1) for a, b in placed.scene.links]
    if not ends:
        return np.zeros((len(placed.positions), 0, 2, 3))
    return np.stack(ends, axis=1)


def filling(axes: Axes, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners (2,), m, of the box around another with which axes of equal scale are filled."""
    place = axes.get_window_extent()
    size = np.array([place.width, place.height])
    half = 0.5 * size * float(((high - low) / size).max())
    middle = 0.5 * (low + high)
    return middle - half, middle + half


def representative_times(trajectory: Trajectory, scene: Scene, count: int) -> FloatArray:
    """Return ``count`` times of a run, s, with its ends, spaced by displacement."""
    times = np.linspace(trajectory.t[0], trajectory.t[-1], PATH_POINTS)
    placed = place_scene(scene, trajectory.sample(times))
    bounded = [placed.outline(shape) for shape in scene.shapes if not (shape.endless or shape.plane)]
    if not bounded:
        return np.linspace(times[0], times[-1], count)
    moved = np.linalg.norm(np.diff(np.concatenate(bounded, axis=1), axis=0), axis=-1).max(axis=1)
    even = np.full(len(moved), 1.0 / len(moved))
    weights = (1.0 - _EVEN) * moved / max(float(moved.sum()), 1e-300) + _EVEN * even
    passed = np.concatenate([[0.0], np.cumsum(weights)])
    return np.asarray(np.interp(np.linspace(0.0, passed[-1], count), passed, times))


def draw_instant(
    axes: Axes, view: View, shapes: tuple[SceneShape, ...], i: int, offset: FloatArray, colour: str, share: float
) -> None:
    """Draw instant ``i`` of a view, shifted by ``offset`` (2,), with opacity ``share``, 0 to 1."""
    order = 2.0 + i
    ground = [outline + offset for shape, outline in zip(shapes, view.shapes[i], strict=True) if shape.plane]
    for points in ground:
        axes.add_patch(Polygon(points, facecolor=palette.GROUND, edgecolor=palette.FAINT, lw=0.5, zorder=0.5))
    for shape, outline in zip(shapes, view.shapes[i], strict=True):
        points = outline + offset
        if shape.plane or not np.isfinite(points).all():
            continue  # a face that looks away
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
    vectors = view.arrows[:, :, 1] - view.arrows[:, :, 0]
    longest = float(np.nanmax(np.linalg.norm(vectors, axis=-1), initial=0.0))
    for (tail, _), vector in zip(view.arrows[i], vectors[i], strict=True):
        if np.isfinite(vector).all():
            point = min(0.2 * longest, 0.6 * float(np.linalg.norm(vector)))
            axes.add_patch(
                FancyArrow(
                    *(tail + offset), *vector, length_includes_head=True, head_length=point, head_width=0.75 * point,
                    width=min(0.03 * longest, 0.3 * point), color=palette.FORCE, alpha=share, lw=0, zorder=order + 0.5,
                )
            )  # fmt: skip


# -- Contact forces as arrows, with one scale for all instants of a drawing ----------------------------------

LONGEST: Final = 0.18  # of the larger side of the drawing
FULL: Final = 90.0  # percent of the instants with contact forces
_SHORTEST: Final = 0.03  # of the longest: shorter arrows are left out


def with_force_arrows(trajectory: Trajectory, view: View) -> View:
    """Return a view of a run with the contact forces as arrows.

    Their length is proportional to the force, up to :data:`LONGEST` of the larger side of the drawing.  In
    :data:`FULL` percent of the instants with contact forces, at least, none is longer; greater forces are shortened.
    """
    places, forces = contact_forces(trajectory, view)
    norms = np.linalg.norm(forces, axis=-1)
    largest = norms.max(axis=1, initial=0.0)
    if not largest.any():
        return view
    low, high = view.limits()
    share = np.minimum(norms / np.percentile(largest[largest > 0.0], FULL, method="higher"), 1.0)
    share[share < _SHORTEST] = np.nan
    along = forces * (LONGEST * (high - low).max() * share / np.where(norms > 0.0, norms, 1.0))[..., None]
    return replace(view, arrows=np.stack([places, places + along], axis=2))


def contact_forces(trajectory: Trajectory, view: View) -> tuple[FloatArray, FloatArray]:
    """Return contact points, m, and the forces there on the first body, N, in the plane of a view, each (n, k, 2).

    Of the k contacts whose force acts at a known point.  The force is zero where a contact is open, and where it is not
    finite.
    """
    model, rows = trajectory.model, trajectory.rows
    if model.automaton is None or not model.contacts:
        return np.zeros((len(view.times), 0, 2)), np.zeros((len(view.times), 0, 2))
    kinematics = Kinematics(model.automaton)
    scene = scene_of(model.automaton, model.parameters, model.values, solids=False)
    forces = Forces(kinematics, scene, view.flat, rows.x[0], rows.context[0])
    samples = trajectory.sample(view.times)
    drawn = [
        forces.drawn(x, c, model.charts[mode].states, multipliers)
        for x, c, mode, multipliers in zip(
            samples.x, samples.context, samples.mode, samples.multiplier_table, strict=True
        )
    ]
    acting = [location.kind == "force" for location in forces.locations]
    table = np.reshape(drawn, (len(drawn), len(acting), WIDTH))[:, acting]
    table[~np.isfinite(table).all(axis=2)] = 0.0
    return table[..., 1:3], table[..., 3:5] + table[..., 5:7]


# -- Grid of snapshots of a motion, each with its axes, for mechanisms too large for one row -----------------

_WIDTH, _HIGHEST = 8.0, 6.2  # inches, of all panels together
_HEAD, _GAP = 0.45, 0.28  # inches above all panels, and above each for its time
_MARGIN = 0.06  # of the panel's larger side


def frames(trajectory: Trajectory, scene: Scene, count: int) -> Figure:
    """Draw ``count`` snapshots of a run in panels of common size.

    Parameters
    ----------
    trajectory : Trajectory
        The run.
    scene : Scene
        What is drawn.
    count : int
        Number of snapshots, evenly over the run.

    Returns
    -------
    matplotlib.figure.Figure
    """
    view = project(trajectory, scene, representative_times(trajectory, scene, count))
    boxes = np.array([view.box(i) for i in range(count)])
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    margin = _MARGIN * float((high - low).max())
    low, high = low - margin, high + margin
    columns = _columns(count, high - low)
    rows = math.ceil(count / columns)
    width, height = _frame(columns, rows, high - low)
    colours = palette.mode_colours(trajectory.model.labels)
    with style.settings():
        tall = rows * (height + _GAP) + _HEAD
        picture = style.new_figure(_WIDTH, tall)
        step = _WIDTH / columns
        for i in range(count):
            left = (i % columns) * step + 0.5 * (step - width)
            bottom = tall - _HEAD - (i // columns + 1) * (height + _GAP)
            axes = picture.add_axes((left / _WIDTH, bottom / tall, width / _WIDTH, height / tall))
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            axes.set_axis_off()
            for path in view.paths.values():
                axes.plot(*path.T, color=palette.FAINT, lw=0.6, zorder=1)
            draw_instant(axes, view, scene.shapes, i, np.zeros(2), colours[view.modes[i]], 1.0)
            axes.set_title(f"{view.times[i]:.3g} s", fontsize=8.5, pad=3.0)
        y = 1.0 - 0.25 / tall
        picture.text(0.15 / _WIDTH, y, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
        begin = 0.4 + style.text_width(trajectory.model.name, 11.0, "bold") / 72.0
        mode_legend(picture, _weights(view, colours), colours, begin, _WIDTH - 0.1, y)
    return picture


def _weights(view: View, colours: dict[str, str]) -> dict[str, float]:
    return {name: float(view.modes.count(name)) for name in colours if name in view.modes}


def _columns(count: int, size: FloatArray) -> int:
    """Return the number of panels per row for the largest panels; of equals, the fewest."""
    return max(range(1, count + 1), key=lambda n: (_frame(n, math.ceil(count / n), size)[0], -n))


def _frame(columns: int, rows: int, size: FloatArray) -> tuple[float, float]:
    """Return width and height of a panel, inches, for a box of this size, m."""
    scale = min((_WIDTH / columns - 0.15) / size[0], (_HIGHEST / rows - _GAP) / size[1])
    return float(scale * size[0]), float(scale * size[1])
