"""Guards of a run over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.graphics import palette
from fsm_dyn.graphics.timeline import Timeline
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head, time_panel
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.run_timeline import dense_rows, timeline_of
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.trajectory import Trajectory

_PANEL = 0.95  # inches
_MOST = 12


@overload
def guards(trajectory: Trajectory, names: Sequence[str] | None = None) -> Figure: ...


@overload
def guards(trajectory: Trajectory, names: Sequence[str], *, ax: Axes) -> Axes: ...


def guards(trajectory: Trajectory, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the guards of the modes over time: gaps, normal forces, margins of friction limits, slip velocities.

    A guard fires where its line reaches zero; it has no line while its mode is inactive.

    Parameters
    ----------
    trajectory : Trajectory
    names : sequence of str, optional
        Guards by their text, as in transitions ("gap of floor"); by default those of the run that come nearest to
        zero, at most twelve.
    ax : Axes, optional
        Where to draw one guard, without heading and legend; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        A guard does not occur in the run, or with ``ax`` there is not one guard.
    """
    rows = dense_rows(trajectory.rows, trajectory.sample)
    found = _distances(rows)
    for name in names or ():
        if name not in found:
            raise InputError(
                f"no guard '{name}' in this run", found=name, allowed=", ".join(found),
                remedy=did_you_mean(name, found),
            )  # fmt: skip
    chosen = list(names) if names else _nearest_to_zero(found)
    timeline = timeline_of(trajectory.model, trajectory.record)
    if ax is not None:
        if len(chosen) != 1:
            raise InputError("axes take one guard", found=", ".join(chosen) or "none")
        with style.settings():
            _draw(ax, timeline, rows, found, chosen[0])
            ax.set_xlabel("time, s")
        return ax
    with style.settings():
        height = 1.2 + _PANEL * max(len(chosen), 1)
        picture = style.new_figure(8.0, height)
        grid = picture.add_gridspec(
            max(len(chosen), 1), 1, left=0.11, right=0.97, top=1.0 - 0.75 / height, bottom=0.45 / height, hspace=0.35
        )
        for i, name in enumerate(chosen):
            axes = picture.add_subplot(grid[i])
            _draw(axes, timeline, rows, found, name)
            axes.tick_params(labelbottom=i == len(chosen) - 1)
        if chosen:
            axes.set_xlabel("time, s")
        head(picture, timeline)
    return picture


def _draw(axes: Axes, timeline: Timeline, rows: Samples, found: dict[str, FloatArray], name: str) -> None:
    time_panel(axes, timeline)
    axes.plot(rows.t, found[name], color=palette.LINES[0], zorder=3)
    axes.axhline(0.0, color=palette.INK, lw=0.7, zorder=2)
    axes.annotate(
        name, (0.006, 0.9), xycoords="axes fraction", fontsize=8.5, va="top", zorder=4,
        bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1.5},
    )  # fmt: skip


def _distances(rows: Samples) -> dict[str, FloatArray]:
    """Return every guard's value over the rows, nan where its mode is inactive or the row only ends a step."""
    found: dict[str, FloatArray] = {}
    for index in np.unique(rows.mode):
        chosen = np.flatnonzero(rows.mode == index)
        out = rows.model.full[index].evaluate(rows.t[chosen], rows.x[chosen], rows.context[chosen])
        values = np.broadcast_to(out["guards"], (len(chosen), out["guards"].shape[-1]))
        for guard, column in zip(rows.model.charts[index].guards, values.T, strict=True):
            line = found.setdefault(guard.text, np.full(len(rows), np.nan))
            # two guards of one text are the two sides of a friction limit: the nearer one counts
            line[chosen] = np.fmin(line[chosen], column)
    return found


def _nearest_to_zero(found: dict[str, FloatArray]) -> list[str]:
    """Return the guards that come nearest to zero, compared to how far away they get, in the order found."""
    share = {name: np.nanmin(np.abs(line)) / max(np.nanmax(np.abs(line)), 1e-300) for name, line in found.items()}
    kept = sorted(share, key=lambda name: float(share[name]))[:_MOST]
    return [name for name in found if name in kept]
