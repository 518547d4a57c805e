"""The score of a run: the mechanism, a close-up for each visit, its phases, and the roll of its contacts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.ticker import MaxNLocator

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import FAINT, FORCE, GROUND, INK, SOFT, TEXT, PhaseFill
from fsm_dyn.plot import mechanism as drawing
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene, name_bodies, set_box
from fsm_dyn.plot.scene_projection import View, project, trajectory_scene, with_force_arrows
from fsm_dyn.plot.style import fitted, text_width
from fsm_dyn.run.contact_forces import Forces, Kinematics
from fsm_dyn.run.run_timeline import Lane, Score
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, scene_of
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.visits import START, Visit, clock, span

# Inches, from the top of the figure downwards.
WIDTH: Final = 15.5
_LEFT, _RIGHT = 1.9, 0.25
_HEAD, _GAP, _CAUSE, _BAND, _LANE, _FAN, _BAR, _TICKS, _KEY = 0.42, 0.14, 0.36, 0.42, 0.23, 0.34, 0.17, 0.2, 0.3
_OVERVIEW: Final = (1.5, 3.0)  # least and greatest height of the overview
_WIDEST: Final = 8.2  # of it
_LARGEST: Final = 1.9  # of a close-up
_DOTS: Final = 100.0  # per inch: px of the specification
_BETWEEN: Final = 0.015  # of a column, at each of its sides
_NEAREST: Final = 14.0 / _DOTS  # inches between two marks
_HALF: Final = ((0.6, 0.20), (1.7, 0.27), (np.inf, 0.10))  # of the larger side, by height over width
_SAMPLES: Final = 60  # instants for the box of the drawing
_POSES: Final = 12  # of a travelling mechanism
_TRAVELS: Final = 0.5  # it is smaller than this part of its way
_LEAST_POSE: Final = 0.06  # of the way: poses of smaller mechanisms are enlarged
_APART: Final = 2.0  # a mechanism so many times as large as at the start has come apart
_AROUND: Final = 0.75  # half the side of a close-up of bodies, by their extent
_MARGIN: Final = 0.05
_UNITS: Final = 75.0  # of symbols, across a close-up at least
_ARROW: Final = 0.7  # of half the side of a close-up: the longest force
_LEAST_ARROW: Final = 0.2  # of its length, of a force near the edge of a close-up
_HINTING: Final = 1.05  # letters on a screen are as much wider than their outlines
_OPEN, _CLOSED, _SLIDES = "#C9CED4", "#3B4650", "#C7D3DF"
_TEXTURES: Final = {"": None, "lines": "////", "dots": "...."}
_SHADE: Final = "#00000055"  # of textures


def score(trajectory: Trajectory) -> Figure:
    """Draw a run as a score.

    From the top: the mechanism next to the list of visits; a close-up at the begin of each visit, with its cause; the
    visits as columns of equal width; the contacts, as bars while they touch; and time to scale.

    Parameters
    ----------
    trajectory : Trajectory

    Returns
    -------
    matplotlib.figure.Figure
    """
    with style.settings():
        return _Drawing(trajectory).figure


@dataclass(frozen=True)
class _Slot:
    """A part of the figure, inches from its left and its top."""

    left: float
    top: float
    width: float
    height: float


class _Drawing:
    """The parts of a score, each drawn into its slot."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.run = trajectory
        self.reading = trajectory.reading
        count = min(len(trajectory.visits), 9)
        self.column = (WIDTH - _LEFT - _RIGHT) / max(count, 1)
        self.score = Score(trajectory.reading, min(_NEAREST / self.column, 0.5))
        self.column = (WIDTH - _LEFT - _RIGHT) / len(self.score.columns)
        self.pictures = None if trajectory.model.scene is None else _Pictures(trajectory, self.score)
        self.figure = self._drawn()

    # -- Layout ------------------------------------------------------------------------------------------------

    def _drawn(self) -> Figure:
        overview = self._overview_size()
        close = min(0.97 * self.column, _LARGEST) if self.pictures is not None else 0.0
        lanes = _LANE * len(self.score.lanes) + 0.15
        rows = max(overview[1], 0.1 + 0.2 * len(self.score.columns))
        tops = np.cumsum([0.0, _HEAD, rows, _GAP, close, _CAUSE + 0.1, _BAND, 0.05, lanes, _FAN, _BAR, _TICKS, _KEY])
        self.height = float(tops[-1])
        self.figure = style.new_figure(WIDTH, self.height)
        self._heading()
        if self.pictures is not None:
            self.pictures.overview(self._axes(_Slot(_LEFT, tops[1], *overview)))
            self._close_ups(float(tops[3]), close)
        self._list(_LEFT + overview[0] + 0.45, float(tops[1]))
        self._band(float(tops[4]))
        self._roll(float(tops[7]), lanes)
        self._time(float(tops[8]))
        self._legend(float(tops[11]))
        return self.figure

    def _overview_size(self) -> tuple[float, float]:
        if self.pictures is None:
            return 0.0, 0.1
        size = self.pictures.high - self.pictures.low
        tall = float(np.clip(5.2 * size[1] / size[0], *_OVERVIEW))
        wide = tall * size[0] / size[1]
        return (wide, tall) if wide <= _WIDEST else (_WIDEST, _WIDEST * size[1] / size[0])

    def _axes(self, slot: _Slot) -> Axes:
        axes = self.figure.add_axes(
            (
                slot.left / WIDTH,
                1.0 - (slot.top + slot.height) / self.height,
                slot.width / WIDTH,
                slot.height / self.height,
            )
        )
        axes.set_axis_off()
        return axes

    def _inches(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return axes in inches, upwards."""
        axes = self._axes(_Slot(left, top, width, height))
        axes.set_xlim(0.0, width)
        axes.set_ylim(0.0, height)
        return axes

    def _text(self, left: float, top: float, words: str, **more: Any) -> None:
        self.figure.text(left / WIDTH, 1.0 - top / self.height, words, **{"va": "center", "color": INK, **more})

    # -- Head --------------------------------------------------------------------------------------------------

    def _heading(self) -> None:
        name = self.run.model.name
        self._text(0.12, 0.2, name, fontsize=12, fontweight="bold")
        note = f". {self.score.note[:1].upper()}{self.score.note[1:]}" if self.score.note else ""
        begin = 0.4 + text_width(name, 12, "bold") / 72.0
        self._text(begin, 0.2, self.reading.headline + note, fontsize=8.5, color=SOFT)

    def _list(self, left: float, top: float) -> None:
        """Write the visits one below the other: time, name, text."""
        times = [f"{clock(visit.begin)} s" for visit in self.score.columns]
        first = max(text_width(words, 7.6) for words in times) / 72.0
        second = max(text_width(visit.name, 8.2, "bold") for visit in self.score.columns) / 72.0
        for number, (visit, time) in enumerate(zip(self.score.columns, times, strict=True)):
            y = top + 0.1 + 0.2 * number
            self._fill(_Slot(left, y - 0.07, 0.16, 0.14), self.run.visits.fills[visit.name])
            self._text(left + 0.26, y, time, fontsize=7.6, color=SOFT)
            self._text(left + 0.5 + first, y, visit.name, fontsize=8.2, fontweight="bold")
            room = WIDTH - left - 0.8 - first - 1.05 * second
            self._text(left + 0.7 + first + 1.05 * second, y, fitted(visit.text, room, 7.8), fontsize=7.8, color=SOFT)

    def _fill(self, slot: _Slot, fill: PhaseFill) -> None:
        self.figure.add_artist(
            Rectangle(
                (slot.left / WIDTH, 1.0 - (slot.top + slot.height) / self.height), slot.width / WIDTH,
                slot.height / self.height, transform=self.figure.transFigure, **_filled(fill),
            )
        )  # fmt: skip

    # -- Columns -----------------------------------------------------------------------------------------------

    def _left_of(self, number: int) -> float:
        return _LEFT + number * self.column

    def _close_ups(self, top: float, side: float) -> None:
        assert self.pictures is not None
        for number, visit in enumerate(self.score.columns):
            axes = self._axes(_Slot(self._left_of(number) + 0.5 * (self.column - side), top, side, side))
            self.pictures.close_up(axes, number)
            axes.add_artist(
                Rectangle(
                    (0, 0), 1, 1, transform=axes.transAxes, fill=False, lw=2.0 * 72.0 / _DOTS * 2.0,
                    edgecolor=self.run.visits.fills[visit.name].colour, zorder=1e6, clip_on=True, gid=f"frame:{number}",
                )
            )  # fmt: skip

    def _band(self, top: float) -> None:
        """Draw the phases as a band, their causes above it."""
        width = WIDTH - _LEFT - _RIGHT
        axes = self._inches(_LEFT, top, width, _CAUSE + 0.1 + _BAND)
        for number, visit in enumerate(self.score.columns):
            left, right = self._edges(number)
            axes.add_artist(
                Rectangle((left, 0.0), right - left, _BAND, gid=f"column:{number}", **_filled(self._fill_of(visit)))
            )
            middle, room = 0.5 * (left + right), right - left - 0.08
            size, lines = _lines(visit.name, room, (8.8, 8.0, 7.0), "bold")
            for k, line in enumerate(lines):
                y = 0.27 if len(lines) == 1 else 0.34 - 0.115 * k
                axes.text(middle, y, line, fontsize=size, fontweight="bold", ha="center", va="center", color=TEXT)
            if len(lines) == 1 or room > 0.6:
                axes.text(
                    middle, 0.075, span(visit.duration), fontsize=7 if len(lines) == 1 else 6.2, ha="center",
                    va="center", color=TEXT,
                )  # fmt: skip
            size, lines = _lines(visit.cause, room, (7.0, 6.4), "normal", 2)
            for k, line in enumerate(reversed(lines)):
                axes.text(left + 0.02, _BAND + 0.09 + 0.14 * k, line, fontsize=size, va="center", color=SOFT)

    def _fill_of(self, visit: Visit) -> PhaseFill:
        return self.run.visits.fills[visit.name]

    def _edges(self, number: int) -> tuple[float, float]:
        """Return the ends of a column, inches from the first."""
        return (number + _BETWEEN) * self.column, (number + 1 - _BETWEEN) * self.column

    def _roll(self, top: float, height: float) -> None:
        """Draw the lanes of the contacts."""
        axes = self._inches(_LEFT, top, WIDTH - _LEFT - _RIGHT, height)
        for number, visit in enumerate(self.score.columns):
            left, right = self._edges(number)
            axes.add_artist(
                Rectangle((left, 0.0), right - left, height, facecolor=self._fill_of(visit).colour, alpha=0.16, lw=0)
            )
        for k, lane in enumerate(self.score.lanes):
            y = height - 0.05 - _LANE * (k + 0.5)
            self._text(
                _LEFT - 0.06, top + height - y, fitted(lane.name, _LEFT - 0.3, 7.6), fontsize=7.6, ha="right",
            )  # fmt: skip
            for number in range(len(self.score.columns)):
                self._lane(axes, lane, number, y)

    def _lane(self, axes: Axes, lane: Lane, number: int, y: float) -> None:
        visit = self.score.columns[number]
        left, right = self._edges(number)
        scale = (right - left) / max(visit.duration, 1e-300)
        axes.plot([left, right], [y, y], color=_OPEN, lw=0.8, zorder=1)
        for segment in lane.segments[number]:
            x = left + scale * (segment.times - visit.begin)
            heights = 0.8 * _LANE * segment.heights
            if x[-1] - x[0] < 0.02:  # a visible line
                middle = min(max(0.5 * (x[0] + x[-1]), left + 0.01), right - 0.01)
                x, heights = np.array([middle - 0.01, middle + 0.01]), np.full(2, heights.max())
            outline = np.concatenate(
                [np.column_stack([x, y + 0.5 * heights]), np.column_stack([x, y - 0.5 * heights])[::-1]]
            )
            axes.add_artist(
                Polygon(
                    outline, facecolor=_SLIDES if segment.is_sliding else _CLOSED, edgecolor=_CLOSED, lw=0.7,
                    hatch="//////" if segment.is_sliding else None, zorder=3,
                )
            )  # fmt: skip
        for mark in lane.marks[number]:
            x_mark = min(max(left + scale * (mark.time - visit.begin), left + 0.03), right - 0.03)
            axes.plot(
                x_mark, y + 0.3 * _LANE, marker="v", ms=4.4, color=FORCE, mec="white", mew=0.5, zorder=6, clip_on=False,
            )  # fmt: skip
            words = f"{mark.count}"
            if mark.count > 1 and x_mark + 0.05 + text_width(words, 5.8) / 72.0 < right:
                axes.text(
                    x_mark + 0.045, y + 0.3 * _LANE, words, fontsize=5.8, color=FORCE, va="center", zorder=7,
                    fontweight="bold",
                )  # fmt: skip

    # -- Time to scale -----------------------------------------------------------------------------------------

    def _time(self, top: float) -> None:
        width = WIDTH - _LEFT - _RIGHT
        axes = self._inches(_LEFT, top, width, _FAN + _BAR)
        for k, visit in enumerate(self.run.visits):
            begin, end = (width * self.score.on_bar(time) for time in (visit.begin, visit.end))
            axes.add_artist(Rectangle((begin, 0.0), end - begin, _BAR, gid=f"bar:{k}", **_filled(self._fill_of(visit))))
        for number, visit in enumerate(self.score.columns):
            left, right = self._edges(number)
            begin, end = (width * self.score.on_bar(time) for time in (visit.begin, visit.end))
            corners = [[left, _FAN + _BAR], [right, _FAN + _BAR], [end, _BAR], [begin, _BAR]]
            axes.add_artist(Polygon(corners, facecolor=self._fill_of(visit).colour, alpha=0.25, lw=0))
            axes.plot([left, begin], [_FAN + _BAR, _BAR], color="#B8BFC7", lw=0.5)
        self._text(_LEFT - 0.06, top + _FAN + 0.5 * _BAR, "time to scale, s", fontsize=7.2, color=SOFT, ha="right")
        ticks = self._inches(_LEFT, top + _FAN + _BAR, width, _TICKS)
        last = width - (0.2 + text_width(f"… {self.score.end:g}", 7) / 72.0 if self.score.is_cut else 0.0)
        for time in MaxNLocator(9).tick_values(self.score.begin, self.score.shown_end):
            x = width * (time - self.score.begin) / max(self.score.shown_end - self.score.begin, 1e-300)
            if -1e-9 <= x <= last + 1e-9:
                ticks.plot([x, x], [_TICKS - 0.05, _TICKS], color=SOFT, lw=0.6)
                words = f"{time:g}"
                half = 0.5 * text_width(words, 7) / 72.0
                ticks.text(min(x, WIDTH - _LEFT - 0.02 - half), 0.07, words, fontsize=7, ha="center", va="center",
                           color=SOFT)  # fmt: skip
        if self.score.is_cut:
            ticks.text(width, 0.07, f"… {self.score.end:g}", fontsize=7, ha="right", va="center", color=SOFT)

    def _legend(self, top: float) -> None:
        axes = self._inches(_LEFT, top, WIDTH - _LEFT - _RIGHT, _KEY)
        y, x = 0.12, 0.0
        lanes = self.score.lanes
        segments = [segment for lane in lanes for own in lane.segments for segment in own]
        sliding = any(segment.is_sliding for segment in segments)
        closed = "closed, sticks" if sliding else "closed"
        keys: list[tuple[str, str]] = [("line", "open")] if lanes else []
        keys += [("bar", f"{closed}; height: root of the force")] if segments else []
        keys += [("hatch", "slides")] if sliding else []
        marks = [mark for lane in lanes for own in lane.marks for mark in own]
        keys += [("mark", "impact; a number: merged impacts")] if marks else []
        for kind, words in keys:
            match kind:
                case "line":
                    axes.plot([x, x + 0.3], [y, y], color=_OPEN, lw=0.8)
                case "mark":
                    axes.plot(x + 0.15, y, marker="v", ms=5, color=FORCE)
                case _:
                    hatch = kind == "hatch"
                    axes.add_artist(
                        Rectangle(
                            (x, y - 0.055), 0.3, 0.11, facecolor=_SLIDES if hatch else _CLOSED, edgecolor=_CLOSED,
                            lw=0.7, hatch="//////" if hatch else None,
                        )
                    )  # fmt: skip
            axes.text(x + 0.38, y, words, fontsize=7, va="center", color=SOFT)
            x += 0.38 + text_width(words, 7) / 72.0 + 0.3
        if self.score.always:
            room = WIDTH - _LEFT - _RIGHT - x
            words = fitted(f"touches all the time: {', '.join(self.score.always)}", room, 7)
            axes.text(x, y, words, fontsize=7, va="center", color=SOFT)


def _filled(fill: PhaseFill) -> dict[str, Any]:
    return {"facecolor": fill.colour, "hatch": _TEXTURES[fill.texture], "edgecolor": _SHADE, "lw": 0.0}


def _lines(
    words: str, room: float, sizes: Sequence[float], weight: str = "normal", most: int = 2
) -> tuple[float, list[str]]:
    """Return a text in one line at the largest fitting size (inches), else in several lines, the last one cut."""
    room /= _HINTING
    for size in sizes:
        if text_width(words, size, weight) <= 72.0 * room:
            return size, [words] if words else []
    size = sizes[-1]
    letters = max(int(len(words) * 72.0 * room / max(text_width(words, size, weight), 1e-9)), 4)
    lines = textwrap.wrap(words, letters, max_lines=most, placeholder="…")
    return size, [fitted(line, room, size * (1.08 if weight == "bold" else 1.0)) for line in lines]


# -- Pictures of the mechanism -------------------------------------------------------------------------------


class _Pictures:
    """The overview of a mechanism and its close-ups."""

    def __init__(self, trajectory: Trajectory, score: Score) -> None:
        self.run, self.score = trajectory, score
        self.columns = score.columns
        begin, end = self.columns[0].begin, min(self.columns[-1].end, score.shown_end)
        close = [min(visit.begin + 0.02 * visit.duration, visit.end) for visit in self.columns]
        scene, ends = trajectory_scene(trajectory, score.shown_end), trajectory.t[[0, -1]]
        self.view = with_force_arrows(trajectory, project(trajectory, scene, np.clip([close[0], *close], *ends)))
        self.way = project(trajectory, scene, np.clip(np.linspace(begin, end, _SAMPLES), *ends))
        self._boxes = np.array([view.box(i, self._bodies) for view in (self.view, self.way) for i in _instants(view)])
        whole = np.array([view.box(i) for view in (self.view, self.way) for i in _instants(view)])
        sizes = (self._boxes[:, 1] - self._boxes[:, 0]).max(axis=1)
        path = float((self._boxes[:, 1].max(axis=0) - self._boxes[:, 0].min(axis=0)).max())
        self.travels = bool(sizes.max() < _TRAVELS * path) and not self._is_held
        self._enlarged = 1.0
        if self.travels and sizes.max() > 0.0:  # particles have no size
            self._enlarged = max(float(np.floor(_LEAST_POSE * path / sizes.max())), 1.0)
        together = np.ones(len(whole), np.bool_)
        if not self.travels:  # of bodies that part for good, the time before
            extents = (whole[:, 1] - whole[:, 0]).max(axis=1)
            together = extents <= max(_APART * float(extents[0]), float(extents[: len(self.view.times)].min()))
        low, high = whole[together, 0].min(axis=0), whole[together, 1].max(axis=0)
        size = np.maximum(high - low, 0.12 * (high - low).max() + 1e-9)
        margin = _MARGIN * size.max()
        middle_point = 0.5 * (low + high)
        self.low, self.high = middle_point - 0.5 * size - margin, middle_point + 0.5 * size + margin
        self._last: Floats = middle_point

    @property
    def _is_held(self) -> bool:
        """Whether symbols connect the mechanism to the ground."""
        scene = self.view.scene
        fixed = {k for k, anchor in enumerate(scene.anchors) if (anchor.frame, anchor.origin) == (NEWTONIAN, ORIGIN)}
        return any(
            symbol.kind == "support" or (symbol.kind in ("spring", "damper") and fixed & {*symbol.anchors})
            for symbol in scene.symbols
        )

    @property
    def _bodies(self) -> tuple[str, ...]:
        return self.view.scene.bodies

    # -- Overview ----------------------------------------------------------------------------------------------

    def overview(self, axes: Axes) -> None:
        """Draw the whole mechanism with the names of its bodies; several poses if it travels."""
        set_box(axes, self.low, self.high)
        if not self.travels:
            draw_scene(axes, self.view, 0, forces=False, touching=False)
            name_bodies(axes, self.view, 0, self._called)
            return
        for shape, outline in zip(self.way.scene.shapes, self.way.shapes, strict=True):
            if shape.plane:  # below all poses
                area = drawing.hull(outline.reshape(-1, 2))
                axes.add_patch(Polygon(area, facecolor=GROUND, edgecolor=FAINT, lw=0.5, zorder=0.1))
        self._way(axes)
        chosen = self._poses()
        way = self._enlarged_poses()
        for number in chosen:
            draw_scene(axes, way, number, forces=False, touching=False, lines=0.7)
        name_bodies(axes, way, chosen[-1], self._called, chosen)
        if self._enlarged > 1.0:
            axes.text(
                0.0, 0.0, f"poses {self._enlarged:.0f} times as large", transform=axes.transAxes, fontsize=7,
                color=SOFT, va="top",
            )  # fmt: skip

    def _enlarged_poses(self) -> View:
        """Return the way with its poses large enough to be seen, each about its middle, without planes."""
        way, factor = self.way, self._enlarged
        middles = self._boxes[len(self.view.times) :].mean(axis=1)[:, None]
        shapes = [
            outline if shape.plane or shape.owner == NEWTONIAN else middles + factor * (outline - middles)
            for shape, outline in zip(way.scene.shapes, way.shapes, strict=True)
        ]
        for number, shape in enumerate(way.scene.shapes):
            if shape.plane:
                shapes[number] = np.full_like(shapes[number], np.nan)
        fixed = np.array([anchor.origin == ORIGIN for anchor in way.scene.anchors], dtype=np.bool_)
        anchors = np.where(fixed[:, None], way.anchors, middles + factor * (way.anchors - middles))
        pushes = middles[..., None, :] + factor * (way.pushes - middles[..., None, :])
        scene = replace(way.scene, unit=factor * way.scene.unit)
        return replace(way, scene=scene, shapes=shapes, anchors=anchors, pushes=pushes)

    def _poses(self) -> list[int]:
        """Return instants, in order of time, at which the mechanism does not cover itself."""
        boxes = self._boxes[len(self.view.times) :]
        centres, sizes = boxes.mean(axis=1), self._enlarged * (boxes[:, 1] - boxes[:, 0])
        chosen: list[int] = []
        for number in range(len(boxes)):
            apart = [(np.abs(centres[number] - centres[k]) >= 0.5 * (sizes[number] + sizes[k])).any() for k in chosen]
            if all(apart):
                chosen.append(number)
        step = -(-len(chosen) // _POSES)
        return chosen[::step] or [0]

    def _way(self, axes: Axes) -> None:
        """Draw the way of the first body in the colours of the phases."""
        body, times = self._bodies[:1], self.way.times
        path = np.array([np.mean(self.way.box(i, body), axis=0) for i in _instants(self.way)])
        for visit in self.columns:
            rows = (times >= visit.begin) & (times <= visit.end)
            if rows.sum() > 1:
                axes.plot(
                    *path[rows].T, color=self.run.visits.fills[visit.name].colour, lw=4.0, zorder=0.5,
                    solid_capstyle="butt",
                )  # fmt: skip

    @property
    def _called(self) -> dict[str, str]:
        """Names of the bodies."""
        words = self.run.reading.words
        return {body: words.word(body) for body in self._bodies}

    # -- Close-ups ---------------------------------------------------------------------------------------------

    def close_up(self, axes: Axes, number: int) -> None:
        """Draw the surroundings of the cause of a visit."""
        axes.set_facecolor("#FCFCFD")
        low, high = self.close_box(number)
        set_box(axes, low, high)
        draw_scene(axes, self._for_close_up(1 + number, (low, high)), 1 + number, lines=0.9)
        for artist in (*axes.patches, *axes.lines, *axes.collections, *axes.texts):
            artist.set_clip_on(True)

    def _for_close_up(self, instant: int, box: tuple[Floats, Floats]) -> View:
        """Return the view for a close-up: arrows of its instant and symbols in its size."""
        half = 0.5 * float((box[1] - box[0])[0])
        arrows = self.view.arrows.copy()
        vectors = arrows[instant, :, 1] - arrows[instant, :, 0]
        longest = float(np.nanmax(np.linalg.norm(vectors, axis=-1), initial=0.0))
        shorter = min(_ARROW * half / max(longest, 1e-300), _room(arrows[instant, :, 0], vectors, box))
        if shorter < 1.0:
            arrows[instant, :, 1] = arrows[instant, :, 0] + vectors * max(shorter, _LEAST_ARROW)
        unit = min(self.view.unit, 2.0 * half / _UNITS)
        return replace(self.view, arrows=arrows, scene=replace(self.view.scene, unit=unit))

    def close_box(self, number: int) -> tuple[Floats, Floats]:
        """Return the corners of the close-up of a visit, m."""
        visit = self.columns[number]
        size = self.high - self.low
        half = next(share for ratio, share in _HALF if size[1] / size[0] < ratio) * float(size.max())
        focus = self._focus_of(visit)
        if focus or self.travels:
            low, high = self.view.box(1 + number, focus) if focus else self._boxes[1 + number]
            return _square(0.5 * (low + high), _AROUND * float((high - low).max()) or half)  # a particle has no size
        centre, reach = self._place(number)
        half = max(half, reach)
        if 2.0 * half >= size.max() or (visit.cause == START and self._is_missed(number, centre, half)):
            return _square(0.5 * (self.low + self.high), 0.5 * float(size.max()))
        inner = 0.9 * half  # the place of the cause is at least a twentieth of the side from the edge
        wanted = np.where(
            size > 2.0 * half, np.clip(centre, self.low + half, np.maximum(self.high - half, self.low + half)),
            0.5 * (self.low + self.high),
        )  # fmt: skip
        return _square(np.clip(wanted, centre - inner, centre + inner), half)

    def _is_missed(self, number: int, centre: Floats, half: float) -> bool:
        """Return whether the body that begins the next visit is not in a square, or else no body is."""
        later = self.columns[min(number + 1, len(self.columns) - 1)].contact
        body = self.run.reading.words.sentence(later).body if later >= 0 else ""
        bodies = (body,) if body in self._bodies else self._bodies
        middles = [np.mean(self.view.box(1 + number, (each,)), axis=0) for each in bodies]
        return all(np.abs(middle - centre).max() > half for middle in middles)

    def _focus_of(self, visit: Visit) -> tuple[str, ...]:
        return next((phase.focus for phase in self.run.model.phases if phase.name == visit.name), ())

    def _place(self, number: int) -> tuple[Floats, float]:
        """Return the place of the cause of a visit, in the plane of the figure, m, shape (2,), and its extent, m.

        At the start it is that of the next visit; of a contact without a known place it is its body.
        """
        visit = self.columns[number]
        later = number + 1 if visit.cause == START and number + 1 < len(self.columns) else number
        contact, reach = self.columns[later].contact, 0.0
        place = self._contact_place(contact, self.columns[later].begin)
        if place is None and contact >= 0:
            body = self.run.reading.words.sentence(contact).body
            if body in self._bodies:
                low, high = self.view.box(1 + number, (body,))
                place, reach = 0.5 * (low + high), 0.55 * float((high - low).max())
        if place is None and visit.cause == START:
            low, high = self._boxes[1 + number]
            place, reach = 0.5 * (low + high), 0.55 * float((high - low).max())
        if place is None:
            sizes = np.linalg.norm(self.view.arrows[1 + number, :, 1] - self.view.arrows[1 + number, :, 0], axis=-1)
            if len(sizes) and np.isfinite(sizes).any():
                place = self.view.arrows[1 + number, int(np.nanargmax(sizes)), 0]
        if place is not None and np.isfinite(place).all():
            self._last = np.asarray(place)
        return self._last, reach

    def _contact_place(self, contact: int, time: float) -> Floats | None:
        """Return the place of a contact, in the plane of the figure, m, shape (2,); None if it is not known."""
        forces = self._forces
        if forces is None or contact < 0:
            return None
        location = next((x for x in forces.locations if x.contact == contact and x.kind == "force"), None)
        if location is None:
            return None
        sample = self.run.sample([time])
        at = self._kinematics.configuration(sample.x[0], sample.context[0])
        return forces.place(location, self.run.model.contacts[contact], at)[0] if at.finite else None

    @cached_property
    def _kinematics(self) -> Kinematics:
        assert self.run.model.automaton is not None
        return Kinematics(self.run.model.automaton)

    @cached_property
    def _forces(self) -> Forces | None:
        model, rows = self.run.model, self.run.rows
        if model.automaton is None or not model.contacts:
            return None
        scene = scene_of(model.automaton, model.parameters, model.values, solids=False)
        return Forces(self._kinematics, scene, self.view.flat, rows.x[0], rows.context[0])


def _room(feet: Floats, vectors: Floats, box: tuple[Floats, Floats]) -> float:
    """Return the share of arrows (feet and vectors, each (k, 2), m) up to which those from a box stay in it."""
    low, high = box
    inside = ((feet > low) & (feet < high)).all(axis=1)
    edges = np.where(vectors > 0.0, high - feet, feet - low)[inside]
    ways = np.abs(vectors[inside])
    shares = np.divide(edges, ways, out=np.full_like(edges, np.inf), where=ways > 0.0)
    return float((1.0 - _MARGIN) * shares.min(initial=np.inf))


def _square(centre: Floats, half: float) -> tuple[Floats, Floats]:
    return centre - half, centre + half


def _instants(view: View) -> range:
    return range(len(view.times))
