"""Timelines by Matplotlib: mode bands behind panels, transitions as lines, headings."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.timeline import Timeline
from fsm_dyn.plot.legend import mode_legend

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
