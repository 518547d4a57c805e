"""Mode bands and other parts of figures over time: transitions as lines, dense rows, headings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot.legend import mode_legend
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import Transition

Spans = dict[str, list[tuple[float, float]]]

_POINTS = 600  # over a run, where steps are longer
_LEFT, _LEFT_INCHES = 0.11, 0.88  # of the width of a wide picture; of a narrow one
_CLOSE = 0.002  # of the run: transitions closer than this are drawn as one


def mode_spans(trajectory: Trajectory) -> Spans:
    """Return the intervals of every mode visited as (start, length), s, in the order of first entry."""
    t, mode = trajectory.t, np.asarray(trajectory.record.mode)
    names = trajectory.model.labels
    change = np.flatnonzero(np.array([names[a] != names[b] for a, b in itertools.pairwise(mode)])) + 1
    edges = [0, *change.tolist(), len(t) - 1]
    spans: Spans = {}
    for begin, end in itertools.pairwise(edges):
        if t[end] > t[begin]:
            spans.setdefault(names[mode[begin]], []).append((float(t[begin]), float(t[end] - t[begin])))
    return spans


def draw_bands(axes: Axes, spans: Spans, colours: Mapping[str, str], alpha: float = 0.25) -> None:
    """Draw the modes behind a panel over time."""
    for name, pieces in spans.items():
        axes.broken_barh(
            pieces, (0.0, 1.0), transform=axes.get_xaxis_transform(), color=colours[name], alpha=alpha, lw=0, zorder=0
        )


def draw_marks(axes: Axes, transitions: Sequence[Transition], span: float) -> None:
    """Draw a thin line per transition; of those too close to distinguish, the first."""
    last = -np.inf
    for item in transitions:
        if item.time - last > _CLOSE * span:
            axes.axvline(item.time, color=palette.INK, lw=0.6, alpha=0.55, zorder=2)
            last = item.time


def lengths(spans: Spans) -> dict[str, float]:
    """Return the total dwell time of every mode, s."""
    return {name: sum(length for _, length in pieces) for name, pieces in spans.items()}


def dense_rows(trajectory: Trajectory) -> Samples:
    """Return the rows of a run with points of the dense output between them, for smooth lines."""
    t = trajectory.t
    pieces = np.minimum(np.ceil(np.diff(t) / max((t[-1] - t[0]) / _POINTS, 1e-300)).astype(int), _POINTS)
    long = np.flatnonzero(pieces > 1)
    if not len(long):
        return trajectory.rows
    extra = trajectory.sample(np.concatenate([np.linspace(t[i], t[i + 1], pieces[i] + 1)[1:-1] for i in long]))
    rows = trajectory.rows
    order = np.argsort(np.concatenate([rows.t, extra.t]), kind="stable")

    def merged(one: Any, other: Any) -> Any:
        return np.concatenate([one, other])[order]

    return Samples(
        rows.model,
        merged(rows.t, extra.t),
        merged(rows.x, extra.x),
        merged(rows.mode, extra.mode),
        merged(rows.context, extra.context),
    )


def time_panel(axes: Axes, trajectory: Trajectory, spans: Spans) -> None:
    """Format a panel over time: bands, marks, limits and a grid."""
    draw_bands(axes, spans, palette.mode_colours(trajectory.model.labels))
    draw_marks(axes, trajectory.transitions, trajectory.t[-1] - trajectory.t[0])
    axes.set_xlim(trajectory.t[0], trajectory.t[-1])
    axes.grid(axis="y", color="white", lw=0.8, zorder=1)
    axes.tick_params(length=3)


def head(picture: Figure, trajectory: Trajectory, text: str = "", spans: Spans | None = None) -> None:
    """Write the model's name and a text above a figure, and the legend of modes below."""
    height = picture.get_figheight()
    left = max(_LEFT, _LEFT_INCHES / picture.get_figwidth())
    title = picture.text(left, 1.0 - 0.22 / height, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
    if text:
        picture.draw_without_rendering()
        right = title.get_window_extent().x1 / (picture.dpi * picture.get_figwidth())
        picture.text(right + 0.02, 1.0 - 0.22 / height, text, fontsize=9, va="center", color=palette.SOFT)
    if spans:
        colours = palette.mode_colours(trajectory.model.labels)
        width = picture.get_figwidth()
        mode_legend(picture, lengths(spans), colours, left * width, width - 0.15, 1.0 - 0.5 / height)
