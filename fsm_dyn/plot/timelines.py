"""States and modes over time, phase portraits, the graph of the visited modes or phases."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.run_diagrams import Strip, Timeline, VisitBox, VisitEdge, dwell
from fsm_dyn.draw.svg import SOFT, TEXT
from fsm_dyn.plot import style
from fsm_dyn.plot.style import mode_legend, text_width
from fsm_dyn.run.run_timeline import columns_by_unit, dense_rows, timeline_of, visits_timeline
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition, counted

# -- Timelines by Matplotlib: mode bands behind panels, transitions as lines, headings -----------------------

_LEFT, _LEFT_INCHES = 0.11, 0.88  # of the width of a wide picture; of a narrow one


def draw_bands(axes: Axes, timeline: Timeline, alpha: float = 0.25) -> None:
    """Draw the modes behind a panel over time."""
    for name, pieces in timeline.spans.items():
        axes.broken_barh(
            pieces, (0.0, 1.0), transform=axes.get_xaxis_transform(), color=timeline.colours[name], alpha=alpha, lw=0,
            zorder=0,
        )  # fmt: skip


def draw_marks(axes: Axes, timeline: Timeline) -> None:
    """Draw a thin line per transition."""
    for time in timeline.marks:
        axes.axvline(time, color=palette.INK, lw=0.6, alpha=0.55, zorder=2)


def time_panel(axes: Axes, timeline: Timeline) -> None:
    """Format a panel over time: bands, marks, limits and a grid."""
    draw_bands(axes, timeline)
    draw_marks(axes, timeline)
    axes.set_xlim(timeline.begin, timeline.end)
    axes.grid(axis="y", color="white", lw=0.8, zorder=1)
    axes.tick_params(length=3)


def head(picture: Figure, timeline: Timeline, text: str = "", *, legend: bool = True) -> None:
    """Write the model's name and a text above a figure, and the legend of modes below."""
    width, height = picture.get_figwidth(), picture.get_figheight()
    left = max(_LEFT, _LEFT_INCHES / width)
    title = picture.text(left, 1.0 - 0.22 / height, timeline.name, fontsize=11, fontweight="bold", va="center")
    if text:
        picture.draw_without_rendering()
        right = title.get_window_extent().x1 / (picture.dpi * width)
        picture.text(right + 0.02, 1.0 - 0.22 / height, text, fontsize=9, va="center", color=palette.SOFT)
    if legend and timeline.spans:
        mode_legend(picture, timeline.dwell_times, timeline.colours, left * width, width - 0.15, 1.0 - 0.5 / height)


# -- States over time ----------------------------------------------------------------------------------------
#
# States over time: one panel per unit, modes as coloured bands, transitions marked and listed.

_LISTED = 8
_APART = 0.015  # of the run: transitions nearer than this stand for each other in the list
_RIGHT = 0.83  # of the width
_ROOM = 0.9  # inches for a name next to a panel
_GAP = 3.0  # points between the numbers of two marks
_PANEL, _STRIP, _LINE, _EDGE = 1.45, 0.2, 0.19, 0.62  # inches
_FOOT = 0.58
_WIDTH = 8.0
_STATES_LEFT = 0.11  # of the width
_NAMED = 1.5  # inches for the name of a mode in the list
_ENTRY = 0.17  # inches for an entry of a legend
_CAUSES = 0.37  # of the width, from the left of the panels to the causes in the list, where these fit there


@overload
def states(trajectory: Trajectory, columns: Sequence[str] | None = None) -> Figure: ...


@overload
def states(trajectory: Trajectory, columns: Sequence[str] | None = None, *, ax: Axes) -> Axes: ...


def states(trajectory: Trajectory, columns: Sequence[str] | None = None, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw a run over time.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns to draw, as in ``trajectory[name]``; by default coordinates, speeds and inputs.
    ax : Axes, optional
        Axes for columns of one unit, without heading and list of transitions; returned.

    Returns
    -------
    Figure or Axes
        Belongs to no window; save it with :func:`fsm_dyn.plot.save` or its own ``savefig``.

    Raises
    ------
    InputError
        If a column does not exist, or with ``ax`` the columns have several units.
    """
    timeline = _timeline(trajectory, columns)
    if ax is not None:
        return _in_axes(ax, timeline, trajectory.model.meanings)
    listed, groups = _listed(trajectory), timeline.strips
    with style.settings():
        below = _LINE * (len(listed) + 1) + 0.1 if listed else 0.0
        heights = [max(_PANEL, _ENTRY * (len(strip.names) + 1)) for strip in groups]  # its legend fits next to a panel
        height = _EDGE + _STRIP + sum(heights) + _FOOT + below
        picture = style.new_figure(_WIDTH, height)
        grid = picture.add_gridspec(
            len(groups) + 1,
            1,
            height_ratios=[_STRIP, *heights],
            left=_STATES_LEFT,
            right=_RIGHT,
            top=1.0 - _EDGE / height,
            bottom=(_FOOT + below) / height,
            hspace=0.12,
        )
        top = picture.add_subplot(grid[0])
        panels = [picture.add_subplot(grid[i + 1], sharex=top) for i in range(len(groups))]
        for panel, strip in zip(panels, timeline.strips, strict=True):
            _draw_panel(panel, timeline.t, strip, trajectory.model.meanings)
            panel.yaxis.set_label_coords(-0.105, 0.5)  # aligned, and clear of the longest numbers
            panel.tick_params(labelbottom=False)
            draw_bands(panel, timeline)
            draw_marks(panel, timeline)
        _draw_modes(top, timeline, listed)
        _finish(picture, top, panels, timeline)
        if listed:
            _list_transitions(picture, trajectory, timeline, listed, below / height)
    return picture


def _in_axes(ax: Axes, timeline: Timeline, meanings: Mapping[str, str]) -> Axes:
    """Draw columns of one unit over the bands of the modes."""
    strips = timeline.strips
    if len(strips) != 1:
        raise InputError(
            "axes take columns of one unit",
            found=", ".join(f"{' '.join(strip.names)} in {strip.unit or '-'}" for strip in strips),
            remedy=f"columns={list(strips[0].names)!r}" if strips else "",
        )
    with style.settings():
        _draw_panel(ax, timeline.t, strips[0], meanings)
        time_panel(ax, timeline)
        ax.set_xlabel("time, s")
    return ax


def _timeline(trajectory: Trajectory, columns: Sequence[str] | None) -> Timeline:
    """Return the run with columns of one unit together, coordinates, speeds and inputs apart, in declared order."""
    model, layout = trajectory.model, trajectory.model.layout
    kinds = (layout.q, layout.u, layout.w) if columns is None else (tuple(columns),)
    for name in itertools.chain(*kinds):
        trajectory[name]  # an unknown name fails here, before anything is drawn
    rows = dense_rows(trajectory.rows, trajectory.sample)
    return visits_timeline(trajectory.reading, rows, columns_by_unit(model, kinds))


def _draw_panel(axes: Axes, t: Floats, strip: Strip, meanings: Mapping[str, str]) -> None:
    for i, (name, values) in enumerate(zip(strip.names, strip.values, strict=True)):
        colour = palette.LINES[i % len(palette.LINES)]
        dashes = ("-", "--", ":")[(i // len(palette.LINES)) % 3]
        axes.plot(t, values, dashes, color=colour, label=_named(name, meanings), zorder=3)
    axes.set_ylabel(strip.unit or "–")
    axes.margins(x=0.0, y=0.12)
    axes.grid(axis="y", color="white", lw=0.8, zorder=1)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=1.4, borderaxespad=0.0)
    axes.tick_params(length=3)


def _named(name: str, meanings: Mapping[str, str]) -> str:
    """Return a column's name, with its meaning if the model gives one, cut to the room next to a panel."""
    meaning = meanings.get(name)
    return style.fitted(f"{name}: {meaning}" if meaning else name, _ROOM, 8.5)


def _draw_modes(axes: Axes, timeline: Timeline, listed: list[tuple[int, Transition]]) -> None:
    draw_bands(axes, timeline, alpha=1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([])
    axes.tick_params(bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for _, item in listed:
        axes.axvline(item.time, color=palette.INK, lw=0.6, alpha=0.55)
    for time, text in _numbers(listed, timeline.end - timeline.begin):
        axes.annotate(
            text,
            (time, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7.5,
        )


def _numbers(listed: list[tuple[int, Transition]], span: float) -> list[tuple[float, str]]:
    """Return the times, s, of the numbers of transitions; overlapping numbers become one text."""
    points = 72.0 * _WIDTH * (_RIGHT - _STATES_LEFT) / max(span, 1e-300)  # per second
    groups: list[tuple[float, list[int]]] = [(item.time, [number]) for number, item in listed]
    k = 1
    while k < len(groups):
        (before, first), (time, second) = groups[k - 1], groups[k]
        apart = (time - before) * points - _GAP
        if apart >= 0.5 * (style.text_width(_joined(first), 7.5) + style.text_width(_joined(second), 7.5)):
            k += 1
            continue
        groups[k - 1 : k + 1] = [(before, first + second)]
        k = max(k - 1, 1)  # the longer text may reach the one before it
    return [(time, _joined(numbers)) for time, numbers in groups]


def _joined(numbers: list[int]) -> str:
    return ",".join(map(str, numbers)) if len(numbers) < 4 else f"{numbers[0]}…{numbers[-1]}"


def _finish(picture: Figure, top: Axes, panels: list[Axes], timeline: Timeline) -> None:
    panels[-1].tick_params(labelbottom=True)
    panels[-1].set_xlabel("time, s")
    top.set_xlim(timeline.begin, max(timeline.end, timeline.begin + 1e-9))  # one row: it ended at once
    y = 1.0 - 0.2 / picture.get_figheight()
    picture.text(_STATES_LEFT, y, timeline.name, fontsize=11, fontweight="bold", va="center")
    left = _WIDTH * _STATES_LEFT + style.text_width(timeline.name, 11.0, "bold") / 72.0 + 0.3
    mode_legend(picture, timeline.dwell_times, timeline.colours, left, _WIDTH - 0.1, y)


def _listed(trajectory: Trajectory) -> list[tuple[int, Transition]]:
    """Number the transitions listed under the panels: changes of mode first, then those distinct in time."""
    span = trajectory.t[-1] - trajectory.t[0]
    numbered = list(enumerate(trajectory.transitions, start=1))
    if len(numbered) <= _LISTED:
        return numbered
    chosen: list[tuple[int, Transition]] = []
    changes = [(number, item) for number, item in numbered if item.source != item.target and not item.is_handover]
    for candidates, alone in ((changes, len(changes) > _LISTED), (changes, False), (numbered, True)):
        for number, item in candidates:
            apart = all(abs(item.time - x.time) > _APART * span for _, x in chosen)
            if len(chosen) < _LISTED and (number, item) not in chosen and (apart or not alone):
                chosen.append((number, item))
    return sorted(chosen, key=lambda entry: entry[0])


def _list_transitions(
    picture: Figure, trajectory: Trajectory, timeline: Timeline, listed: list[tuple[int, Transition]], top: float
) -> None:
    line = _LINE / picture.get_figheight()
    times = np.array([item.time for _, item in listed])
    both = zip(timeline.names_at(times, after=False), timeline.names_at(times), strict=True)
    ways = [tuple(dict.fromkeys(way)) for way in both]
    named = style.fitted_apart([name for way in ways for name in way], _NAMED)
    changes = [" → ".join(named[name] for name in way) for way in ways]
    across = 0.13 + max(style.text_width(text, 8.0) for text in changes) / (72.0 * _WIDTH)
    if max(style.text_width(item.cause, 8.0) for _, item in listed) <= 72.0 * (0.98 - _STATES_LEFT - _CAUSES) * _WIDTH:
        across = max(_CAUSES, across)
    room = (0.98 - _STATES_LEFT - across) * _WIDTH
    for i, (number, item) in enumerate(listed):
        y = top - line * i
        picture.text(
            _STATES_LEFT, y, f"{number}", fontsize=8, va="center", ha="right", color=palette.INK, fontweight="bold"
        )
        picture.text(_STATES_LEFT + 0.01, y, f"{item.time:.4f} s", fontsize=8, va="center")
        picture.text(_STATES_LEFT + 0.11, y, changes[i], fontsize=8, va="center")
        picture.text(
            _STATES_LEFT + across, y, style.fitted(item.cause, room), fontsize=8, va="center", color=palette.SOFT
        )
    more = len(trajectory.transitions) - len(listed)
    if more:
        picture.text(
            _STATES_LEFT + 0.01,
            top - line * len(listed),
            f"and {more} more",
            fontsize=8,
            va="center",
            color=palette.FAINT,
        )


# -- Timeline of the modes of a run, with visit counts and dwell times ---------------------------------------

_MODE_HEIGHT = 0.32  # inches per mode
_MODE_NAMED = 1.6  # inches for the name of a mode next to axes of the caller


@overload
def modes(trajectory: Trajectory) -> Figure: ...


@overload
def modes(trajectory: Trajectory, *, ax: Axes) -> Axes: ...


def modes(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the active mode over time.

    Parameters
    ----------
    ax : Axes, optional
        Where to draw, without heading; it is returned.

    Returns
    -------
    Figure or Axes
        A line per mode with a duration, in the order of their entry; at its right the number of entries and the share
        of the time.  Handovers do not end a mode.
    """
    timeline = timeline_of(trajectory.model, trajectory.record)
    spans = timeline.spans
    with style.settings():
        if ax is not None:
            _draw_bars(ax, timeline, _MODE_NAMED)
            return ax
        height = 0.95 + _MODE_HEIGHT * max(len(spans), 1)
        longest = max((len(name) for name in spans), default=0)
        left = min(0.06 + 0.009 * longest, 0.4)
        picture = style.new_figure(8.0, height)
        axes = picture.add_axes((left, 0.5 / height, 0.98 - left - 0.14, _MODE_HEIGHT * max(len(spans), 1) / height))
        _draw_bars(axes, timeline, 7.5 * left - 0.1)  # drawn letters are up to a twentieth wider than measured
        head(picture, timeline, f"{counted(trajectory.transitions)}, {trajectory.outcome.name}", legend=False)
    return picture


def _draw_bars(axes: Axes, timeline: Timeline, room: float) -> None:
    """Draw a line per mode, whose names have ``room``, inches."""
    spans, dwell_times, whole = timeline.spans, timeline.dwell_times, timeline.end - timeline.begin
    for i, (name, pieces) in enumerate(spans.items()):
        axes.broken_barh(pieces, (i - 0.36, 0.72), color=timeline.colours[name], lw=0)
        for start, _ in pieces:
            axes.plot([start, start], [i - 0.36, i + 0.36], color=palette.INK, lw=0.5)
        share = dwell_times[name] / whole if whole > 0.0 else 0.0
        axes.annotate(
            f"{len(pieces)}×   {100.0 * share:.3g} %",
            (1.0, i),
            xycoords=axes.get_yaxis_transform(),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=palette.SOFT,
        )
    axes.set_yticks(range(len(spans)), style.fitted_apart([*spans], room, 9.0).values())
    axes.set_ylim(len(spans) - 0.5, -0.5)
    axes.set_xlim(timeline.begin, timeline.end)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time, s")


# -- A phase portrait: one quantity over another, in the colour of the mode ----------------------------------


@overload
def phase(trajectory: Trajectory, x: str | None = None, y: str | None = None) -> Figure: ...


@overload
def phase(trajectory: Trajectory, x: str | None = None, y: str | None = None, *, ax: Axes) -> Axes: ...


def phase(
    trajectory: Trajectory, x: str | None = None, y: str | None = None, *, ax: Axes | None = None
) -> Figure | Axes:
    """Draw one quantity over another, coloured by mode; a dotted line for a jump at a transition.

    Parameters
    ----------
    x, y : str, optional
        Columns as in ``trajectory[name]``; by default the first coordinate and the first speed.
    ax : Axes, optional
        Where to draw, without heading and legend; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        If a column does not exist, or the model has neither coordinate nor speed.
    """
    layout, units = trajectory.model.layout, trajectory.model.units
    if not layout.q or not layout.u:
        raise InputError(f"{trajectory.model.name} has no coordinate and speed to draw over each other")
    x, y = x or layout.q[0], y or layout.u[0]
    with style.settings():
        if ax is not None:
            _draw_phase(ax, trajectory, x, y, units)
            return ax
        picture = style.new_figure(6.4, 5.2)
        _draw_phase(picture.add_axes((0.13, 0.11, 0.83, 0.74)), trajectory, x, y, units)
        head(picture, visits_timeline(trajectory.reading), "● start   □ end")
    return picture


def _draw_phase(axes: Axes, trajectory: Trajectory, x: str, y: str, units: Mapping[str, str]) -> None:
    rows = dense_rows(trajectory.rows, trajectory.sample)
    across, up = rows[x], rows[y]
    jump = np.flatnonzero(np.diff(rows.t) == 0.0)
    timeline = visits_timeline(trajectory.reading)
    names, colours = np.array(timeline.names_at(rows.t, after=False)), timeline.colours
    ends = sorted({*jump.tolist(), *np.flatnonzero(names[1:] != names[:-1]).tolist(), len(rows) - 1})
    begin = 0
    for end in ends:
        part = slice(begin, end + 1)
        axes.plot(across[part], up[part], color=style.strong(colours[names[end]]), lw=1.4, zorder=3)
        begin = end + 1 if end in jump else end
    for i in jump:
        if across[i] != across[i + 1] or up[i] != up[i + 1]:
            axes.plot(across[i : i + 2], up[i : i + 2], ":", color=palette.SOFT, lw=0.9, zorder=2)
    axes.plot(across[0], up[0], "o", color=palette.INK, ms=5, zorder=4)
    axes.plot(across[-1], up[-1], "s", color=palette.INK, mfc="white", ms=5, zorder=4)
    axes.set_xlabel(style.labelled(x, units.get(x, "")))
    axes.set_ylabel(style.labelled(y, units.get(y, "")))
    axes.grid(color="#EEEEEE", lw=0.8)
    axes.margins(0.06)


# -- Graph of a run: the phases or modes that it visited, with its ways between them -------------------------

_PER_INCH: Final = 96.0  # px
_HEAD: Final = 0.3  # inches, above the graph
_NAME, _COUNT = 9.4, 7.8
_TEXTURES: Final = {"": None, "lines": "////", "dots": "...."}


def run_graph(trajectory: Trajectory, narrow: bool = False) -> Figure:
    """Draw the graph of a run: at most twelve boxes, of phases or modes, in the order of their first visits.

    Parameters
    ----------
    narrow : bool
        Whether the boxes are in a column.

    Returns
    -------
    matplotlib.figure.Figure
    """
    diagram = trajectory.visits.diagram(narrow)
    name = trajectory.model.name
    width = max(diagram.width / _PER_INCH, text_width(name, 11, "bold") / 72.0 + 0.3)
    height = diagram.height / _PER_INCH + _HEAD
    with style.settings():
        figure = style.new_figure(width, height)
        figure.text(0.1 / width, 1.0 - 0.17 / height, name, fontsize=11, fontweight="bold", va="center")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0 - _HEAD / height))
        axes.set_axis_off()
        axes.set_xlim(0.0, width * _PER_INCH)
        axes.set_ylim(diagram.height, 0.0)
        for edge in diagram.edges:
            for artist in _edge(edge):
                axes.add_artist(artist)
            if edge.count > 1:
                axes.text(*edge.pill, edge.words, fontsize=_COUNT, color=SOFT, ha="center", va="center", zorder=4)
        for box in diagram.boxes:
            axes.add_artist(_box(box))
            middle = box.left + 0.5 * box.width
            room = (box.width - 8.0) / _PER_INCH * 72.0
            size = min(_NAME, _NAME * room / max(1.05 * text_width(box.name, _NAME, "bold"), 1e-9))
            axes.text(middle, box.top + 0.35 * box.height, box.name, fontsize=size, fontweight="bold", color=TEXT,
                      ha="center", va="center", zorder=6)  # fmt: skip
            axes.text(middle, box.top + 0.74 * box.height, dwell(box), fontsize=_COUNT, color=TEXT, ha="center",
                      va="center", zorder=6)  # fmt: skip
    return figure


def _edge(edge: VisitEdge) -> list[FancyArrowPatch | Rectangle]:
    arrow = FancyArrowPatch(
        path=Path(edge.course), arrowstyle="-|>", mutation_scale=9.0, color=SOFT, lw=1.1, shrinkA=0, shrinkB=0, zorder=2
    )
    if edge.count < 2:
        return [arrow]
    (x, y), (width, height) = edge.pill, edge.pill_size
    pill = Rectangle((x - width / 2, y - height / 2), width, height, facecolor="white", lw=0, zorder=3)
    return [arrow, pill]


def _box(box: VisitBox) -> FancyBboxPatch:
    return FancyBboxPatch(
        (box.left, box.top), box.width, box.height, boxstyle="round,pad=0,rounding_size=7", facecolor=box.fill.colour,
        hatch=_TEXTURES[box.fill.texture], edgecolor="#00000055", lw=0, zorder=5, gid=f"visit:{box.name}",
    )  # fmt: skip
