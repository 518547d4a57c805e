"""Outcome of a run: final snapshot with the outcome report below."""

from __future__ import annotations

import textwrap

from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style
from fsm_dyn.plot.motion import snapshot
from fsm_dyn.results.trajectory import Trajectory

_WIDTH = 100  # characters of a line
_MOST_LINES = 24
_LINE = 0.165  # inches


def outcome(trajectory: Trajectory) -> Figure:
    """Draw the final snapshot of a run with the text of :meth:`~fsm_dyn.Trajectory.describe_outcome`.

    Parameters
    ----------
    trajectory : Trajectory
        The run.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        The model has nothing to draw.
    """
    lines: list[str] = []
    for words in trajectory.describe_outcome():
        lines += textwrap.wrap(words, _WIDTH, subsequent_indent="    ")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 2], "...", lines[-1]]
    picture = snapshot(trajectory, float(trajectory.t[-1]))
    room = _LINE * (len(lines) + 1)
    width, height = max(picture.get_figwidth(), 8.0), picture.get_figheight()
    places = [axes.get_position() for axes in picture.axes]
    with style.settings():
        for axes, place in zip(picture.axes, places, strict=True):
            axes.set_position((
                place.x0 * picture.get_figwidth() / width, (place.y0 * height + room) / (height + room),
                place.width * picture.get_figwidth() / width, place.height * height / (height + room),
            ))  # fmt: skip
        for text in picture.texts:
            text.set_y(1.0 - 0.25 / (height + room))
        picture.legends.clear()
        picture.set_size_inches(width, height + room)
        below = (room - 0.5 * _LINE) / (height + room)
        picture.text(0.3 / width, below, "\n".join(lines), fontsize=8, va="top", color=palette.INK, family="monospace")
    return picture
