"""Timeline of the modes of a run, with visit counts and dwell times."""

from __future__ import annotations

from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head, mode_spans
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import counted

_LINE = 0.32  # inches per mode


def modes(trajectory: Trajectory) -> Figure:
    """Draw the active mode over time.

    Parameters
    ----------
    trajectory : Trajectory

    Returns
    -------
    Figure
        A line per mode that lasted, in the order met; at its right how often it was entered and its share of the
        time.  Handovers do not end a mode.
    """
    spans = mode_spans(trajectory)
    colours = palette.mode_colours(trajectory.model.labels)
    whole = trajectory.t[-1] - trajectory.t[0]
    with style.settings():
        height = 0.95 + _LINE * max(len(spans), 1)
        longest = max((len(name) for name in spans), default=0)
        left = min(0.06 + 0.009 * longest, 0.4)
        picture = style.new_figure(8.0, height)
        axes = picture.add_axes((left, 0.5 / height, 0.98 - left - 0.14, _LINE * max(len(spans), 1) / height))
        for i, (name, pieces) in enumerate(spans.items()):
            axes.broken_barh(pieces, (i - 0.36, 0.72), color=colours[name], lw=0)
            for start, _ in pieces:
                axes.plot([start, start], [i - 0.36, i + 0.36], color=palette.INK, lw=0.5)
            share = sum(length for _, length in pieces) / whole if whole > 0.0 else 0.0
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
        axes.set_yticks(range(len(spans)), [style.fitted(name, 8.0 * left - 0.15, 9.0, abridged) for name in spans])
        axes.set_ylim(len(spans) - 0.5, -0.5)
        axes.set_xlim(trajectory.t[0], trajectory.t[-1])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("time, s")
        head(picture, trajectory, f"{counted(trajectory.transitions)}, {trajectory.outcome.name}")
    return picture
