"""A mechanism drawn as engineers draw it, at one instant of a run; partial velocities of a mode at its points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrow, Polygon
from matplotlib.path import Path as MatplotlibPath
from matplotlib.transforms import Bbox

from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.draw import svg
from fsm_dyn.draw.svg import FAINT, FORCE, GROUND, INK
from fsm_dyn.plot import style
from fsm_dyn.plot.scene_projection import View
from fsm_dyn.plot.style import text_width
from fsm_dyn.run.scene import NEWTONIAN, SceneShape, Symbol

# -- Symbols as polylines (after ISO 3952) ---------------------------------------------------------------------


# Lengths in units of a scene.
RING: Final = 1.1  # radius of a pivot
DOT: Final = 0.3  # in its middle
TEETH: Final = 6
ZIGZAG: Final = 3.0  # width of a spring
DASHPOT: Final = 2.4
HATCH: Final = 1.5  # distance and depth of the hatch lines of a ground
_LEAD: Final = 0.14  # of a spring: straight at either end
_TURNS: Final = 2.0  # of a spiral
_WIDTH_BY_LENGTH: Final = 0.5  # of a short spring


def _directions(start: Floats, end: Floats) -> tuple[float, Floats, Floats]:
    """Return the distance of two points, the unit vector along and the one to the left."""
    along = end - start
    length = float(np.hypot(*along))
    unit = along / length if length > 0.0 else np.array([1.0, 0.0])
    return length, unit, np.array([-unit[1], unit[0]])


def zigzag(start: Floats, end: Floats, unit: float, side: float = 0.0) -> Floats:
    """Return a spring between two points, shifted to the left by ``side`` units, shape (k, 2).

    ``start``, ``end``, shape (2,); ``unit``: of the scene, in the units of the points.
    """
    length, along, left = _directions(start, end)
    width = min(ZIGZAG * unit, _WIDTH_BY_LENGTH * length) / 2.0
    middles = _LEAD + (1.0 - 2.0 * _LEAD) * (np.arange(2 * TEETH) + 0.5) / (2 * TEETH)
    s = length * np.concatenate([[0.0, _LEAD], middles, [1.0 - _LEAD, 1.0]])
    w = np.concatenate([[0.0, 0.0], np.where(np.arange(2 * TEETH) % 2, width, -width), [0.0, 0.0]])
    return np.asarray(start + np.outer(s, along) + np.outer(w + side * unit, left))


def dashpot(start: Floats, end: Floats, unit: float, side: float = 0.0) -> list[Floats]:
    """Return a damper between two points as polylines: rod, cup, piston, rod; parameters as of :func:`zigzag`."""
    length, along, left = _directions(start, end)
    width = min(DASHPOT * unit, _WIDTH_BY_LENGTH * length) / 2.0
    begin = start + side * unit * left

    def at(s: float, w: float) -> Floats:
        return np.asarray(begin + s * length * along + w * width * left)

    cup = [at(0.66, 1.0), at(0.34, 1.0), at(0.34, -1.0), at(0.66, -1.0)]
    lines = [[at(0.0, 0.0), at(0.34, 0.0)], cup, [at(0.54, 0.75), at(0.54, -0.75)], [at(0.54, 0.0), at(1.0, 0.0)]]
    return [np.array(line) for line in lines]


def spiral(centre: Floats, inner: Floats, outer: Floats, unit: float) -> Floats:
    """Return a spiral spring about a point, from the direction of one point to that of another, shape (k, 2)."""
    first = float(np.arctan2(*(inner - centre)[::-1]))
    turn = float(np.arctan2(*(outer - centre)[::-1])) - first
    turn = (turn + np.pi) % (2.0 * np.pi) - np.pi
    angles = first + np.linspace(0.0, turn + 2.0 * np.pi * _TURNS, 72)
    radii = unit * np.linspace(1.3, 3.3, len(angles))
    return np.asarray(centre + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def cord(start: Floats, end: Floats, unit: float, *, taut: bool) -> Floats:
    """Return a belt between two points: straight if it is taut, else wavy, shape (k, 2)."""
    if taut:
        return np.array([start, end])
    length, along, left = _directions(start, end)
    s = np.linspace(0.0, 1.0, 65)
    wave = 1.2 * unit * np.sin(2.0 * np.pi * max(round(length / (8.0 * unit)), 2) * s) * np.sin(np.pi * s)
    return np.asarray(start + np.outer(s * length, along) + np.outer(wave, left))


def hatching(course: Floats, side: float, unit: float) -> Floats:
    """Return the hatch lines on one side of a line (k, 2): to its left if ``side`` is 1, shape (n, 2, 2)."""
    strokes = []
    for start, end in itertools.pairwise(course):
        length, along, left = _directions(start, end)
        count = max(round(length / (HATCH * unit)), 1) if length > 0.0 else 0
        feet = start + np.outer((np.arange(count) + 0.5) * length / max(count, 1), along)
        strokes.append(np.stack([feet, feet + HATCH * unit * (side * left - 0.75 * along)], axis=1))
    return np.concatenate(strokes) if strokes else np.zeros((0, 2, 2))


def support(centre: Floats, unit: float) -> tuple[Floats, Floats]:
    """Return the triangle below a pivot on the ground, shape (3, 2), and the line that it stands on, shape (2, 2)."""
    low, half = centre[1] - 2.6 * unit, 2.0 * unit
    triangle = np.array([centre, [centre[0] - half, low], [centre[0] + half, low]])
    return triangle, np.array([[centre[0] - 1.4 * half, low], [centre[0] + 1.4 * half, low]])


def shoe(centre: Floats, unit: float) -> Floats:
    """Return the shoe of dry friction above a pivot, an arc, shape (k, 2)."""
    angles = np.radians(np.linspace(35.0, 145.0, 24))
    return np.asarray(centre + 2.0 * unit * np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def hull(points: Floats) -> Floats:
    """Return the corners of the convex hull of points (n, 2), against the clock, shape (k, 2)."""
    ordered = sorted(map(tuple, points.tolist()))

    def half(items: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for p in items:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0.0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return np.array([*half(ordered), *half(ordered[::-1])]).reshape(-1, 2)


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


# -- A mechanism at one instant --------------------------------------------------------------------------------


# Line widths, points: 1 px of a page is 0.72 points of a figure of 100 points to the inch.
_OUTLINE, _LINE, _GROUND, _SPRING, _BAR, _LIT = 0.9, 1.9, 1.3, 0.85, 4.0, 1.6
_NAME: Final = 8.0  # points
_ABOVE: Final = 1e4  # of names
_CELL: Final = 2.0  # px
_LAYERS: Final = ("plane", "ground", "bar", "body", "spring", "support", "pivot", "arrow", "touch")  # back to front


def draw_scene(
    axes: Axes,
    view: View,
    instant: int,
    *,
    offset: Floats | None = None,
    share: float = 1.0,
    lines: float = 1.0,
    forces: bool = True,
    touching: bool = True,
) -> None:
    """Draw the mechanism of a view at one of its instants.

    The view is made once for all pictures of a run, with all drawn instants::

        view = with_force_arrows(run, project(run, trajectory_scene(run), times))
        set_box(axes, *view.box(i))          # or any lower left and upper right corner, m
        draw_scene(axes, view, i, lines=0.7)

    Limits and scale of the axes are left as they are.  Symbols are as large as the scene says, whatever the limits.

    Parameters
    ----------
    axes : Axes
        With equal scales, m.
    view : View
        Of :func:`~fsm_dyn.plot.scene_projection.project`.
    instant : int
        Number of the instant.
    offset : ndarray, shape (2,), optional
        Shift of the drawing, m.
    share : float
        Opacity, 0 to 1.
    lines : float
        Factor of the widths of all lines.
    forces, touching : bool
        Whether contact forces are drawn as arrows, and contacts that are not open as dots, if the view has them.
    """
    _InstantDrawing(axes, view, instant, np.zeros(2) if offset is None else offset, share, lines).draw(forces, touching)


def set_box(axes: Axes, low: Floats, high: Floats) -> None:
    """Give axes equal scales and the limits of a box, from its lower left to its upper right corner (2,), m."""
    axes.set_aspect("equal")
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])


def name_bodies(
    axes: Axes, view: View, instant: int, names: Mapping[str, str] | None = None, drawn: Sequence[int] = ()
) -> None:
    """Write the names of bodies next to them, in the colours of their edges, clear of outlines and of each other.

    The limits of the axes are those of the finished picture. A body without room for a name has none. ``axes``: with
    the mechanism of :func:`draw_scene`. ``names``: displayed names of bodies; by default their own. ``drawn``: instants
    drawn in the same axes.
    """
    pixels, colours = axes.transData, svg.body_colours(view.scene.bodies)
    per_point = axes.figure.dpi / 72.0
    frame = axes.get_window_extent()
    edges = {body: pixels.transform(points) for body, points in _edges(view, instant).items() if len(points)}
    others = [other for other in drawn if other != instant]
    elsewhere = [points for other in others for points in _edges(view, other).values()]
    symbols = [_symbol_courses(view, other) for other in (instant, *others)]
    courses = [pixels.transform(points) for points in (*symbols, *elsewhere) if len(points)]
    ink = _Ink(np.concatenate([np.zeros((0, 2)), *edges.values(), *courses]), frame)
    solid = [
        (body if shown == instant else "", MatplotlibPath(pixels.transform(outline)))
        for shown in (*others, instant)
        for body, outline in _closed_outlines(view, shown)
    ]
    taken: list[Floats] = []
    for body in view.scene.bodies:
        name = (names or {}).get(body, body).replace("_", " ")
        if body not in edges or not name:
            continue
        half = 0.5 * per_point * np.array([text_width(name, _NAME, "bold") + 3.0, 1.5 * _NAME])
        found = _free_box(body, edges[body], half, ink, taken, frame, solid)
        if found is None:
            continue
        centre, near = found
        taken.append(np.array([centre - half, centre + half]))
        place = pixels.inverted().transform(np.array([centre, np.clip(near, centre - half, centre + half), near]))
        axes.text(
            place[0, 0], place[0, 1], name, fontsize=_NAME, fontweight="bold", color=colours[body][1], ha="center",
            va="center", zorder=_ABOVE, gid=f"name:{body}",
        )  # fmt: skip
        if np.linalg.norm(near - np.clip(near, centre - half, centre + half)) > 6.0 * per_point:
            axes.plot(*place[1:].T, color=colours[body][1], lw=0.6, zorder=_ABOVE - 1.0)


def _edges(view: View, instant: int) -> dict[str, Floats]:
    """Return points along all outlines of each body, a unit apart, m, shape (n, 2)."""
    found: dict[str, list[Floats]] = {}
    for shape, outline in zip(view.scene.shapes, view.shapes, strict=True):
        if shape.bounded and np.isfinite(outline[instant]).all():
            course = outline[instant]
            found.setdefault(shape.owner, []).append(np.vstack([course, course[:1]]) if shape.closed else course)
    for symbol in view.scene.symbols:
        found.setdefault(symbol.owner, []).append(view.anchors[instant, list(symbol.anchors)])
    return {body: np.concatenate([_dense(course, view.unit) for course in courses]) for body, courses in found.items()}


def _symbol_courses(view: View, instant: int) -> Floats:
    """Return points along the symbols of no body: pivots, supports, springs; m, shape (n, 2)."""
    unit, turn = view.unit, np.linspace(0.0, 2.0 * np.pi, 16)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    found = [np.zeros((0, 2))]
    for symbol in view.scene.symbols:
        points = view.anchors[instant, list(symbol.anchors)]
        if symbol.kind in ("pivot", "support"):
            found += [points[0] + RING * unit * circle]
            lines = support(points[0], unit) if symbol.kind == "support" else ()
            found += [_dense(np.asarray(line), 0.5 * unit) for line in lines]
        elif symbol.kind == "spiral":
            found += [spiral(points[0], points[1], points[2], unit)]
        elif symbol.kind in ("spring", "damper"):
            found += [_dense(points + symbol.side * unit * _left(points), unit)]
    return np.concatenate(found)


def _left(points: Floats) -> Floats:
    along = points[1] - points[0]
    return np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-300)


def _dense(course: Floats, step: float) -> Floats:
    """Return points along a polyline (k, 2), at most a step and 200 points of each piece apart."""
    pieces = [course]
    for start, end in itertools.pairwise(course):
        count = int(min(float(np.linalg.norm(end - start)) / step, 200.0))
        pieces.append(start + np.linspace(0.0, 1.0, count + 2)[:, None] * (end - start))
    return np.concatenate(pieces)


def _closed_outlines(view: View, instant: int) -> Iterator[tuple[str, Floats]]:
    for shape, outline in zip(view.scene.shapes, view.shapes, strict=True):
        if shape.closed and shape.bounded and np.isfinite(outline[instant]).all():
            yield shape.owner, outline[instant]


class _Ink:
    """Counts points in boxes of axes. ``points``, shape (n, 2): px; ``frame``: of the axes, px."""

    def __init__(self, points: Floats, frame: Bbox) -> None:
        self._origin = np.floor(frame.p0) - 2.0 * _CELL
        size = np.ceil((frame.p1 - self._origin) / _CELL).astype(np.int64) + 3
        cells = np.floor((points - self._origin) / _CELL).astype(np.int64)
        cells = cells[((cells >= 0) & (cells < size)).all(axis=1)]
        counts = np.zeros(size + 1)
        np.add.at(counts, (cells[:, 0] + 1, cells[:, 1] + 1), 1.0)
        self._sums = counts.cumsum(axis=0).cumsum(axis=1)

    def meets(self, centres: Floats, half: Floats) -> Booleans:
        """Return whether there are points in boxes about these middles (n, 2), shape (n,); to the size of a cell."""
        most = np.array(self._sums.shape) - 1
        low, high = (
            np.clip(np.floor((centres + sign * half - self._origin) / _CELL).astype(np.int64) + more, 0, most)
            for sign, more in ((-1.0, 0), (1.0, 1))
        )
        sums = self._sums
        inside = sums[high[:, 0], high[:, 1]] - sums[low[:, 0], high[:, 1]] - sums[high[:, 0], low[:, 1]]
        return np.asarray(inside + sums[low[:, 0], low[:, 1]] > 0.5)


def _free_box(
    body: str,
    own: Floats,
    half: Floats,
    ink: _Ink,
    taken: Sequence[Floats],
    frame: Bbox,
    solid: Sequence[tuple[str, MatplotlibPath]],
) -> tuple[Floats, Floats] | None:
    """Return the middle of a box of this half size clear of outlines, and the point of the body nearest to it, px.

    Candidates surround points of the body at growing distances. Of the outlines ``solid``, in drawing order, the
    uppermost one at each corner of the box is the body's own, if there is any.
    """
    feet = own[:: max(len(own) // 48, 1)]
    angles = np.arange(16) * (np.pi / 8.0)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    for distance in (4.0, 12.0, 24.0, 40.0, 70.0):
        centres = (feet[:, None] + around * (half * np.abs(around) + distance)).reshape(-1, 2)
        near = np.repeat(feet, len(around), axis=0)
        fits = (centres - half > frame.p0).all(axis=1) & (centres + half < frame.p1).all(axis=1)
        fits &= ~ink.meets(centres, half + 1.0)
        for low, high in taken:
            fits &= ((centres + half < low) | (centres - half > high)).any(axis=1)
        for number in np.flatnonzero(fits):
            corners = centres[number] + half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [0, 0]])
            upper = [body] * len(corners)
            for owner, path in solid:
                upper = [owner if inside else u for u, inside in zip(upper, path.contains_points(corners), strict=True)]
            if {*upper} == {body}:
                return centres[number], near[number]
    return None


class _InstantDrawing:
    def __init__(self, axes: Axes, view: View, instant: int, offset: Floats, share: float, lines: float) -> None:
        self._axes, self._view, self._i = axes, view, instant
        self._offset, self._share, self._lines = offset, share, lines
        self._unit = view.unit
        self._colours = svg.body_colours(view.scene.bodies)
        self._anchors = view.anchors[instant] + offset

    def draw(self, forces: bool, touching: bool) -> None:
        scene = self._view.scene
        for number, (shape, outline) in enumerate(zip(scene.shapes, self._view.shapes, strict=True)):
            points = outline[self._i] + self._offset
            if np.isfinite(points).all():  # else a face looking away
                self._shape(shape, points, number / max(len(scene.shapes), 1))
        for symbol in scene.symbols:
            points = self._anchors[list(symbol.anchors)]
            if np.isfinite(points).all():
                getattr(self, f"_{symbol.kind}")(symbol, points)
        if len(self._view.pushes):
            self._arrows(self._view.pushes[self._i], svg.INPUT)
        if forces:
            self._arrows(self._view.arrows[self._i], FORCE)
        if touching:
            self._touching()

    # -- Artists -----------------------------------------------------------------------------------------------

    def _order(self, layer: str, within: float = 0.0) -> float:
        return 2.0 + self._i * len(_LAYERS) + _LAYERS.index(layer) + 0.9 * within

    def _edge(self, owner: str) -> tuple[str, str]:
        if owner == NEWTONIAN:
            return svg.STEEL_FILL, svg.STEEL
        return self._colours.get(owner, (svg.STEEL_FILL, svg.STEEL))

    def _plot(self, points: Floats, layer: str, colour: str, width: float, label: str = "", **more: Any) -> None:
        self._axes.plot(
            *points.T, color=colour, lw=width * self._lines, alpha=self._share, gid=label or None,
            **{"zorder": self._order(layer), "solid_joinstyle": "round", "solid_capstyle": "round", **more},
        )  # fmt: skip

    def _fill(self, points: Floats, layer: str, fill: str, edge: str, width: float, **more: Any) -> None:
        self._axes.add_artist(
            Polygon(
                points, facecolor=fill, edgecolor=edge, lw=width * self._lines, alpha=self._share, joinstyle="round",
                **{"zorder": self._order(layer), **more},
            )
        )  # fmt: skip

    def _disk(self, centre: Floats, radius: float, layer: str, fill: str, edge: str, width: float) -> None:
        self._axes.add_artist(
            Circle(
                (centre[0], centre[1]), radius, facecolor=fill, edgecolor=edge, lw=width * self._lines,
                alpha=self._share, zorder=self._order(layer, 0.5 if fill == INK else 0.0),
            )
        )  # fmt: skip

    # -- Outlines ------------------------------------------------------------------------------------------------

    def _shape(self, shape: SceneShape, points: Floats, depth: float) -> None:
        fill, edge = self._edge(shape.owner)
        label = f"body:{shape.owner}"
        if shape.plane:
            self._fill(points, "plane", GROUND, FAINT, 0.5)
        elif shape.closed:
            layer = "ground" if shape.owner == NEWTONIAN or shape.behind else "body"
            self._fill(points, layer, fill, edge, _OUTLINE, gid=label, zorder=self._order(layer, depth))
        elif len(points) > 1:
            self._plot(points, "body", edge, _LINE, label, zorder=self._order("body", depth))
        elif shape.text:
            self._axes.annotate(
                shape.text, (points[0, 0], points[0, 1]), (5, 5), textcoords="offset points", fontsize=8,
                alpha=self._share, annotation_clip=True,
            )  # fmt: skip
        else:
            self._disk(points[0], 0.9 * self._unit, "body", fill, edge, _OUTLINE)

    # -- Symbols -------------------------------------------------------------------------------------------------

    def _ground(self, symbol: Symbol, points: Floats) -> None:
        self._plot(points, "ground", svg.STEEL, _GROUND, f"ground:{symbol.name}", solid_capstyle="butt")
        if self._view.planar:
            self._strokes(hatching(points, symbol.side, self._unit), "ground")

    def _strokes(self, strokes: Floats, layer: str) -> None:
        self._axes.add_collection(
            LineCollection(
                list(strokes), colors=FAINT, linewidths=0.6 * self._lines, alpha=self._share,
                zorder=self._order(layer) - 0.1,
            ),
            autolim=False,
        )  # fmt: skip

    def _bar(self, symbol: Symbol, points: Floats) -> None:
        fill, edge = self._edge(symbol.owner)
        self._plot(points, "bar", edge, _BAR, f"link:{symbol.owner}")
        self._plot(points, "bar", fill, 0.5 * _BAR, zorder=self._order("bar", 0.1))

    def _link(self, symbol: Symbol, points: Floats) -> None:
        fill, edge = self._edge(symbol.owner)
        self._fill(hull(points), "bar", fill, edge, 1.6 * _OUTLINE, gid=f"link:{symbol.owner}")

    def _spring(self, symbol: Symbol, points: Floats) -> None:
        line = zigzag(points[0], points[1], self._unit, symbol.side)
        self._plot(line, "spring", svg.SPRING, _SPRING, f"spring:{symbol.name}", solid_joinstyle="miter")

    def _damper(self, symbol: Symbol, points: Floats) -> None:
        for line in dashpot(points[0], points[1], self._unit, symbol.side):
            self._plot(line, "spring", svg.SPRING, _SPRING, f"damper:{symbol.name}")

    def _spiral(self, symbol: Symbol, points: Floats) -> None:
        line = spiral(points[0], points[1], points[2], self._unit)
        self._plot(line, "spring", svg.SPRING, _SPRING, f"spring:{symbol.name}")

    def _cord(self, symbol: Symbol, points: Floats) -> None:
        open_now = self._view.open_contacts[self._i] if self._view.open_contacts else frozenset()
        line = cord(points[0], points[1], self._unit, taut=symbol.name not in open_now)
        self._plot(line, "spring", svg.SPRING, 1.6 * _SPRING, f"cord:{symbol.name}")

    def _support(self, symbol: Symbol, points: Floats) -> None:
        triangle, base = support(points[0], self._unit)
        self._fill(triangle, "support", "#FFFFFF", svg.STEEL, _OUTLINE)
        self._plot(base, "support", svg.STEEL, _OUTLINE)
        self._strokes(hatching(base, -1.0, 0.7 * self._unit), "support")
        self._pivot(symbol, points)

    def _pivot(self, symbol: Symbol, points: Floats) -> None:
        self._disk(points[0], RING * self._unit, "pivot", "#FFFFFF", INK, _OUTLINE)
        self._disk(points[0], DOT * self._unit, "pivot", INK, INK, 0.0)

    # -- Contacts ------------------------------------------------------------------------------------------------

    def _input(self, symbol: Symbol, points: Floats) -> None:
        """Draw nothing: the forces of inputs are arrows of the view."""

    def _arrows(self, arrows: Floats, colour: str) -> None:
        vectors = arrows[:, 1] - arrows[:, 0]
        longest = float(np.nanmax(np.linalg.norm(vectors, axis=-1), initial=0.0))
        for (tail, _), vector in zip(arrows, vectors, strict=True):
            if not np.isfinite(vector).all():
                continue
            point = min(0.2 * longest, 0.6 * float(np.linalg.norm(vector)))
            self._axes.add_patch(
                FancyArrow(
                    *(tail + self._offset), *vector, length_includes_head=True, head_length=point,
                    head_width=0.75 * point, width=min(0.03 * longest, 0.3 * point), color=colour, alpha=self._share,
                    lw=0, zorder=self._order("arrow"),
                )
            )  # fmt: skip

    def _touching(self) -> None:
        for face in self._view.lit[self._i] if len(self._view.lit) else ():
            if np.isfinite(face).all():
                self._plot(face + self._offset, "pivot", FORCE, _LIT, "lit")
        for place in self._view.touching[self._i]:
            if np.isfinite(place).all():
                self._disk(place + self._offset, 0.75 * self._unit, "touch", FORCE, "#FFFFFF", 0.7)
        if len(self._view.brakes):
            for place, sticks in zip(self._view.brakes[self._i], self._view.sticking[self._i], strict=True):
                colour = FORCE if sticks else FAINT
                self._plot(shoe(place + self._offset, self._unit), "pivot", colour, 2.2, "brake")


# -- Partial velocities of one mode as arrows at the points of a mechanism -----------------------------------

LONGEST_ARROW = 0.3  # of the mechanism's size
TINY = 1e-9  # of the longest partial velocity; shorter ones are not drawn


def partial_velocities(
    mode: ModeView,
    q: Sequence[float],
    *,
    constrained: bool = False,
    points: Iterable[str] = (),
    forces: Iterable[tuple[str, Sequence[float]]] = (),
) -> Figure:
    """Draw partial velocities at the points of a mechanism, seen along N.z, a colour for each speed.

    Parameters
    ----------
    mode : ModeView
        A mode of a graph.
    q : sequence of float, shape (n_q,)
        Configuration, SI units.
    constrained : bool
        Whether by the independent speeds, the others following the rows, instead of by all speeds.
    points : iterable of str, optional
        Points with arrows; by default all but the origin.
    forces : iterable of (point, vector)
        Forces to draw too, components in N (N), all to one scale.

    Returns
    -------
    Figure
        Arrows are to one scale, of which only the directions and ratios count, as speeds have different units.

    Raises
    ------
    InputError
        There is no such point.
    """
    positions, table = mode.point_positions(q), np.asarray(mode.partial_velocities(q))
    names = list(positions.names[0])
    chosen = list(points) or [name for name in names if name != "O"]
    for name in (*chosen, *(point for point, _ in forces)):
        if name not in names:
            raise InputError(f"no point '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
    speeds = list(mode.mass_matrix(q).names[0])
    if constrained:
        table = np.einsum("psx,si->pix", table, np.asarray(mode.orthogonal_complement(q)))
        speeds = list(mode.independent_speeds)
    places = np.asarray(positions)[:, :2]
    shown = places[[names.index(name) for name in chosen]]
    size = max(float(np.ptp(shown, axis=0).max(initial=0.0)), 1e-3)
    arrows = table[[names.index(name) for name in chosen], :, :2]
    longest = max(float(np.linalg.norm(arrows, axis=-1).max(initial=0.0)), 1e-12)
    with style.settings():
        figure = style.new_figure(5.5, 4.0)
        axes = figure.add_subplot()
        _draw_links(axes, mode.point_chains(), dict(zip(names, places, strict=True)), chosen)
        scale = LONGEST_ARROW * size / longest
        for k, speed in enumerate(speeds):
            colour = svg.BODIES[k % len(svg.BODIES)][1]
            for place, vector in zip(shown, arrows[:, k], strict=True):
                if np.linalg.norm(vector) > TINY * longest:
                    _arrow(axes, place, scale * vector, colour)
            axes.plot([], [], color=colour, lw=2, label=f"{'constrained, ' if constrained else ''}by {speed}")
        _draw_forces(axes, [(places[names.index(name)], np.asarray(vector)[:2]) for name, vector in forces], size)
        axes.set_aspect("equal")
        axes.margins(0.25)
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        axes.set_title(f"{mode.name}: partial velocities {'after' if constrained else 'before'} the rows")
        axes.legend(loc="best", fontsize=8)
    return figure


def _draw_links(axes: Axes, chains: dict[str, str], places: dict[str, Floats], chosen: Sequence[str]) -> None:
    """Draw the points, their names, and lines from each to the one it is measured from."""
    for name in chosen:
        origin = chains.get(name, "O")
        if origin != "O" and origin in places:
            axes.plot(*zip(places[origin], places[name], strict=True), color=svg.STEEL, lw=3, zorder=1)
        axes.plot(*places[name], "o", color=svg.SPRING, ms=4, zorder=2)
        axes.annotate(name, tuple(places[name]), xytext=(4, -12), textcoords="offset points", fontsize=8)


def _draw_forces(axes: Axes, forces: Sequence[tuple[Floats, Floats]], size: float) -> None:
    largest = max((float(np.linalg.norm(vector)) for _, vector in forces), default=0.0)
    for place, vector in forces:
        if largest > 0.0:
            _arrow(axes, place, LONGEST_ARROW * size / largest * vector, svg.TEXT)
    if forces:
        axes.plot([], [], color=svg.TEXT, lw=2, label="force")


def _arrow(axes: Axes, place: Floats, vector: Floats, colour: str) -> None:
    head = {"arrowstyle": "-|>", "color": colour, "lw": 2}
    axes.annotate("", xy=tuple(place + vector), xytext=tuple(place), arrowprops=head, zorder=3)
    axes.plot(*(place + vector), alpha=0.0)  # an annotation does not widen the axes
