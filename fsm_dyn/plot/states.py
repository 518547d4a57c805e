"""States over time: one panel per unit, modes as coloured bands, transitions marked and listed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import overload

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError
from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.graphics.timeline import Floats, Strip, Timeline
from fsm_dyn.plot import style
from fsm_dyn.plot.legend import mode_legend
from fsm_dyn.plot.mode_bands import draw_bands, draw_marks, time_panel
from fsm_dyn.results.run_timeline import columns_by_unit, dense_rows, timeline_of
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import Transition

_LISTED = 8
_APART = 0.015  # of the run: transitions nearer than this stand for each other in the list
_RIGHT = 0.83  # of the width
_ROOM = 0.9  # inches for a name next to a panel
_GAP = 3.0  # points between the numbers of two marks
_PANEL, _STRIP, _LINE, _EDGE = 1.45, 0.2, 0.19, 0.62  # inches
_FOOT = 0.58
_WIDTH = 8.0
_LEFT = 0.11  # of the width
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
    trajectory : Trajectory
    columns : sequence of str, optional
        What to draw, as in ``trajectory[name]``; by default coordinates, speeds and inputs.
    ax : Axes, optional
        Where to draw columns of one unit, without heading and list of transitions; it is returned.

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
            left=_LEFT,
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
            _list_transitions(picture, trajectory, listed, below / height)
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
    return timeline_of(model, trajectory.record, rows, columns_by_unit(model, kinds))


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
    """Return the times, s, at which numbers of transitions are written; what would overlap is written as one text."""
    points = 72.0 * _WIDTH * (_RIGHT - _LEFT) / max(span, 1e-300)  # per second
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
    picture.text(_LEFT, y, timeline.name, fontsize=11, fontweight="bold", va="center")
    left = _WIDTH * _LEFT + style.text_width(timeline.name, 11.0, "bold") / 72.0 + 0.3
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
    picture: Figure, trajectory: Trajectory, listed: list[tuple[int, Transition]], top: float
) -> None:
    line = _LINE / picture.get_figheight()
    changes = [
        " → ".join(style.fitted(mode, _NAMED, cut=abridged) for mode in item.change.split(" → ")) for _, item in listed
    ]
    across = 0.13 + max(style.text_width(text, 8.0) for text in changes) / (72.0 * _WIDTH)
    if max(style.text_width(item.cause, 8.0) for _, item in listed) <= 72.0 * (0.98 - _LEFT - _CAUSES) * _WIDTH:
        across = max(_CAUSES, across)
    room = (0.98 - _LEFT - across) * _WIDTH
    for i, (number, item) in enumerate(listed):
        y = top - line * i
        picture.text(_LEFT, y, f"{number}", fontsize=8, va="center", ha="right", color=palette.INK, fontweight="bold")
        picture.text(_LEFT + 0.01, y, f"{item.time:.4f} s", fontsize=8, va="center")
        picture.text(_LEFT + 0.11, y, changes[i], fontsize=8, va="center")
        picture.text(_LEFT + across, y, style.fitted(item.cause, room), fontsize=8, va="center", color=palette.SOFT)
    more = len(trajectory.transitions) - len(listed)
    if more:
        picture.text(
            _LEFT + 0.01, top - line * len(listed), f"and {more} more", fontsize=8, va="center", color=palette.FAINT
        )
