"""Projection of a scene: outlines of a mechanism at several times in the plane of the figure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrow, Polygon

from fsm_dyn.errors import InputError
from fsm_dyn.graphics import palette
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import ORIGIN, Scene, SceneShape
from fsm_dyn.results.scene_placement import Placed, place_scene
from fsm_dyn.results.trajectory import Trajectory

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


def scene_of(trajectory: Trajectory) -> Scene:
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
