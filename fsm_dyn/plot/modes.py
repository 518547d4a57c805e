"""Timeline of the modes of a run, with visit counts and dwell times."""

from __future__ import annotations

from typing import overload

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.graphics.timeline import Timeline
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head
from fsm_dyn.results.run_timeline import timeline_of
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import counted

_LINE = 0.32  # inches per mode
_NAMED = 1.6  # inches for the name of a mode next to axes of the caller


@overload
def modes(trajectory: Trajectory) -> Figure: ...


@overload
def modes(trajectory: Trajectory, *, ax: Axes) -> Axes: ...


def modes(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the active mode over time.

    Parameters
    ----------
    trajectory : Trajectory
    ax : Axes, optional
        Where to draw, without heading; it is returned.

    Returns
    -------
    Figure or Axes
        A line per mode that lasted, in the order met; at its right how often it was entered and its share of the
        time.  Handovers do not end a mode.
    """
    timeline = timeline_of(trajectory.model, trajectory.record)
    spans = timeline.spans
    with style.settings():
        if ax is not None:
            _draw(ax, timeline, _NAMED)
            return ax
        height = 0.95 + _LINE * max(len(spans), 1)
        longest = max((len(name) for name in spans), default=0)
        left = min(0.06 + 0.009 * longest, 0.4)
        picture = style.new_figure(8.0, height)
        axes = picture.add_axes((left, 0.5 / height, 0.98 - left - 0.14, _LINE * max(len(spans), 1) / height))
        _draw(axes, timeline, 7.5 * left - 0.1)  # drawn letters are up to a twentieth wider than measured
        head(picture, timeline, f"{counted(trajectory.transitions)}, {trajectory.outcome.name}", legend=False)
    return picture


def _draw(axes: Axes, timeline: Timeline, room: float) -> None:
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
    axes.set_yticks(range(len(spans)), [style.fitted(name, room, 9.0, abridged) for name in spans])
    axes.set_ylim(len(spans) - 0.5, -0.5)
    axes.set_xlim(timeline.begin, timeline.end)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("time, s")
