"""A phase portrait: one quantity over another, in the colour of the mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError
from fsm_dyn.graphics import palette
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head
from fsm_dyn.results.run_timeline import dense_rows, timeline_of
from fsm_dyn.results.trajectory import Trajectory


@overload
def phase(trajectory: Trajectory, x: str | None = None, y: str | None = None) -> Figure: ...


@overload
def phase(trajectory: Trajectory, x: str | None = None, y: str | None = None, *, ax: Axes) -> Axes: ...


def phase(
    trajectory: Trajectory, x: str | None = None, y: str | None = None, *, ax: Axes | None = None
) -> Figure | Axes:
    """Draw one quantity over another, coloured by mode; where a transition jumps, a dotted line.

    Parameters
    ----------
    trajectory : Trajectory
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
            _draw(ax, trajectory, x, y, units)
            return ax
        picture = style.new_figure(6.4, 5.2)
        _draw(picture.add_axes((0.13, 0.11, 0.83, 0.74)), trajectory, x, y, units)
        head(picture, timeline_of(trajectory.model, trajectory.record), "● start   □ end")
    return picture


def _draw(axes: Axes, trajectory: Trajectory, x: str, y: str, units: Mapping[str, str]) -> None:
    rows = dense_rows(trajectory.rows, trajectory.sample)
    across, up = rows[x], rows[y]
    jump = np.flatnonzero(np.diff(rows.t) == 0.0)
    names = np.array(rows.labels)
    colours = palette.mode_colours(trajectory.model.labels)
    ends = [*jump.tolist(), len(rows) - 1]
    begin = 0
    for end in ends:
        part = slice(begin, end + 1)
        axes.plot(across[part], up[part], color=style.strong(colours[names[end]]), lw=1.4, zorder=3)
        begin = end + 1
    for i in jump:
        if across[i] != across[i + 1] or up[i] != up[i + 1]:
            axes.plot(across[i : i + 2], up[i : i + 2], ":", color=palette.SOFT, lw=0.9, zorder=2)
    axes.plot(across[0], up[0], "o", color=palette.INK, ms=5, zorder=4)
    axes.plot(across[-1], up[-1], "s", color=palette.INK, mfc="white", ms=5, zorder=4)
    axes.set_xlabel(style.labelled(x, units.get(x, "")))
    axes.set_ylabel(style.labelled(y, units.get(y, "")))
    axes.grid(color="#EEEEEE", lw=0.8)
    axes.margins(0.06)
