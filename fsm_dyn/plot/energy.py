"""Energy balance of a run as a figure (see docs/theory.md)."""

from __future__ import annotations

from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head, time_panel
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.run_timeline import timeline_of
from fsm_dyn.results.trajectory import Trajectory

_NAMED = 1.1  # inches for a name in the legend
_NOTHING = 1e-9  # of the energy exchanged: smaller entries are omitted


@overload
def energy(trajectory: Trajectory) -> Figure: ...


@overload
def energy(trajectory: Trajectory, *, ax: Axes) -> Axes: ...


def energy(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the energies of a run, the work and heat exchanged, and the residual of the energy balance.

    Parameters
    ----------
    trajectory : Trajectory
        The run.
    ax : Axes, optional
        Where to draw kinetic, potential and total energy alone, without heading; it is returned.

    Returns
    -------
    Figure or Axes
        Three panels over time: energies; cumulative energy in (positive) and out (negative), by load, contact and
        transitions; the residual.
    """
    balance = trajectory.energy
    timeline = timeline_of(trajectory.model, trajectory.record)
    stored = [("kinetic", balance.kinetic), ("potential", balance.potential), ("total", balance.total)]
    if ax is not None:
        with style.settings():
            _lines(ax, trajectory.t, stored, outside=False)
            time_panel(ax, timeline)
            ax.set_xlabel("time, s")
            ax.set_ylabel("energy, J")
        return ax
    passed: list[tuple[str, FloatArray]] = []
    passed += [(name, values) for name, values in balance.work.items()]
    passed += [(f"{name} (drive)", values) for name, values in balance.constraints.items()]
    passed += [(f"{name} (heat)", -values) for name, values in balance.friction.items()]
    passed += [("moving points (drive)", balance.drive), ("transitions", balance.transitions)]
    passed = [(name, values) for name, values in passed if np.abs(values).max() > _NOTHING * balance.exchanged]
    with style.settings():
        picture = style.new_figure(8.0, 6.0)
        grid = picture.add_gridspec(
            3, 1, height_ratios=[1, 1, 0.5], left=0.13, right=0.79, top=0.885, bottom=0.09, hspace=0.3
        )
        panels = [picture.add_subplot(grid[i]) for i in range(3)]
        _lines(panels[0], trajectory.t, stored)
        _lines(panels[1], trajectory.t, passed)
        panels[2].plot(trajectory.t, balance.residual, color=palette.INK, lw=1.0, zorder=3)
        for panel, label in zip(panels, ("energy, J", "in and out, J", "residual, J"), strict=True):
            time_panel(panel, timeline)
            panel.set_ylabel(label)
            panel.yaxis.set_label_coords(-0.14, 0.5)
            panel.tick_params(labelbottom=panel is panels[2])
        panels[2].set_xlabel("time, s")
        head(picture, timeline, f"energy-balance residual: {balance.relative_residual:.1e} of the energy exchanged")
    return picture


def _lines(axes: Axes, t: FloatArray, lines: list[tuple[str, FloatArray]], outside: bool = True) -> None:
    for i, (name, values) in enumerate(lines):
        dashes = ("-", "--", ":")[(i // len(palette.LINES)) % 3]
        axes.plot(
            t,
            values,
            dashes,
            color=palette.LINES[i % len(palette.LINES)],
            label=style.fitted(name, _NAMED, 8.5),
            zorder=3,
        )
    if lines and outside:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=1.4, borderaxespad=0.0)
    elif lines:
        axes.legend(handlelength=1.4)
    axes.margins(y=0.1)
