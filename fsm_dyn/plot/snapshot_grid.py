"""Grid of snapshots of a motion, each with its axes, for mechanisms too large for one row."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style
from fsm_dyn.plot.legend import mode_legend
from fsm_dyn.plot.scene_projection import View, draw_instant, project, representative_times
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import Scene
from fsm_dyn.results.trajectory import Trajectory

_WIDTH, _HIGHEST = 8.0, 6.2  # inches, of all panels together
_HEAD, _GAP = 0.45, 0.28  # inches above all panels, and above each for its time
_MARGIN = 0.06  # of the panel's larger side


def frames(trajectory: Trajectory, scene: Scene, count: int) -> Figure:
    """Draw ``count`` snapshots of a run in panels of common size.

    Parameters
    ----------
    trajectory : Trajectory
        The run.
    scene : Scene
        What is drawn.
    count : int
        Number of snapshots, evenly over the run.

    Returns
    -------
    matplotlib.figure.Figure
    """
    view = project(trajectory, scene, representative_times(trajectory, scene, count))
    boxes = np.array([view.box(i) for i in range(count)])
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    margin = _MARGIN * float((high - low).max())
    low, high = low - margin, high + margin
    columns = _columns(count, high - low)
    rows = math.ceil(count / columns)
    width, height = _frame(columns, rows, high - low)
    colours = palette.mode_colours(trajectory.model.labels)
    with style.settings():
        tall = rows * (height + _GAP) + _HEAD
        picture = style.new_figure(_WIDTH, tall)
        step = _WIDTH / columns
        for i in range(count):
            left = (i % columns) * step + 0.5 * (step - width)
            bottom = tall - _HEAD - (i // columns + 1) * (height + _GAP)
            axes = picture.add_axes((left / _WIDTH, bottom / tall, width / _WIDTH, height / tall))
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            axes.set_axis_off()
            for path in view.paths.values():
                axes.plot(*path.T, color=palette.FAINT, lw=0.6, zorder=1)
            draw_instant(axes, view, scene.shapes, i, np.zeros(2), colours[view.modes[i]], 1.0)
            axes.set_title(f"{view.times[i]:.3g} s", fontsize=8.5, pad=3.0)
        y = 1.0 - 0.25 / tall
        picture.text(0.15 / _WIDTH, y, trajectory.model.name, fontsize=11, fontweight="bold", va="center")
        begin = 0.4 + style.text_width(trajectory.model.name, 11.0, "bold") / 72.0
        mode_legend(picture, _weights(view, colours), colours, begin, _WIDTH - 0.1, y)
    return picture


def _weights(view: View, colours: dict[str, str]) -> dict[str, float]:
    return {name: float(view.modes.count(name)) for name in colours if name in view.modes}


def _columns(count: int, size: FloatArray) -> int:
    """Return the number of panels per row for the largest panels; of equals, the fewest."""
    return max(range(1, count + 1), key=lambda n: (_frame(n, math.ceil(count / n), size)[0], -n))


def _frame(columns: int, rows: int, size: FloatArray) -> tuple[float, float]:
    """Return width and height of a panel, inches, for a box of this size, m."""
    scale = min((_WIDTH / columns - 0.15) / size[0], (_HIGHEST / rows - _GAP) / size[1])
    return float(scale * size[0]), float(scale * size[1])
