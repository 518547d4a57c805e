"""Strip of a run: the mechanism at its transitions, with the cause of each."""

from __future__ import annotations

import itertools
import math
import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError
from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.plot import style
from fsm_dyn.plot.force_arrows import with_force_arrows
from fsm_dyn.plot.scene_projection import draw_instant, filling, project, scene_of
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import Transition

_WIDTH = 8.0  # inches
_COLUMNS = 4
_GAP = 0.12  # inches between panels
_TALLEST, _LOWEST = 2.2, 0.6  # inches of a panel
_HEAD, _TITLE, _LINE = 0.45, 0.36, 0.135  # inches above all, above each panel, and of a line of its cause
_LINES, _LETTERS = 3, 28  # of a cause
_SIZE = 7.5  # points
_MARGIN = 0.06  # of the larger side


@dataclass(frozen=True)
class _Panel:
    """One panel: a time, s, the mode with whose colour and name it is drawn, and what stands below."""

    time: float
    mode: str
    text: str


def film_strip(trajectory: Trajectory, most: int = 12, *, forces: bool = True) -> Figure:
    """Draw the mechanism at the transitions of a run, a panel for each in the mode after it, with its cause below.

    Below an impact is the change of energy too.  The start of the run is the first panel.

    If there are more than ``most`` panels, transitions are left out: handovers first, then those with the least time
    until the next transition, of equals the later; the last transition is never left out.

    Parameters
    ----------
    trajectory : Trajectory
    most : int
        Largest number of panels, at least 2.
    forces : bool
        Whether contact forces are drawn as arrows, as by :func:`~fsm_dyn.plot.animation`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        The model has nothing to draw, or ``most`` is less than 2.
    """
    scene = scene_of(trajectory)
    if most < 2:
        raise InputError("a strip of transitions needs more panels", found=str(most), allowed="2 or more")
    chosen = select_transitions(trajectory.transitions, float(trajectory.t[-1]), most - 1)
    panels = [_Panel(float(trajectory.t[0]), trajectory.labels[0], "start")]
    panels += [_Panel(item.time, item.target_label or item.target, _text(item)) for item in chosen]
    view = project(trajectory, scene, np.array([panel.time for panel in panels]))
    view = with_force_arrows(trajectory, view) if forces else view
    low, high = view.limits()
    margin = _MARGIN * max(float((high - low).max()), 1e-9)
    low, high = low - margin, high + margin
    colours = palette.mode_colours(trajectory.model.labels)
    with style.settings():
        left_out = len(trajectory.transitions) - len(chosen)
        picture, stages = _canvas(trajectory.model.name, left_out, len(panels), high - low)
        low, high = filling(stages[0], low, high)
        for i, (panel, axes) in enumerate(zip(panels, stages, strict=True)):
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            draw_instant(axes, view, scene.shapes, i, np.zeros(2), colours[panel.mode], 1.0)
            _write(picture, axes, panel, colours[panel.mode])
    return picture


def select_transitions(transitions: tuple[Transition, ...], end: float, most: int) -> list[Transition]:
    """Return the transitions that fit ``most`` panels, in order of time; ``end`` is that of the run, s.

    See :func:`film_strip` for the rule.
    """
    times = [*(item.time for item in transitions), end]
    dwell = [after - before for before, after in itertools.pairwise(times)]

    def importance(number: int) -> tuple[bool, bool, float, int]:
        item = transitions[number]
        return number == len(transitions) - 1, not item.is_handover, dwell[number], -number

    kept = sorted(range(len(transitions)), key=importance, reverse=True)[:most]
    return [transitions[number] for number in sorted(kept)]


def _text(item: Transition) -> str:
    return f"{item.cause}; energy {-item.energy_lost:+.2g} J" if item.impulse else item.cause


def _canvas(name: str, left_out: int, count: int, size: FloatArray) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of panels for what is of this size, m."""
    rows = math.ceil(count / _COLUMNS)
    wide = (_WIDTH - (_COLUMNS + 1) * _GAP) / _COLUMNS
    tall = min(max(wide * float(size[1] / size[0]), _LOWEST), _TALLEST)
    pitch = _TITLE + tall + (_LINES + 1) * _LINE
    height = _HEAD + rows * pitch
    picture = style.new_figure(_WIDTH, height)
    stages = []
    for i in range(count):
        left, top = _GAP + (i % _COLUMNS) * (wide + _GAP), _HEAD + (i // _COLUMNS) * pitch + _TITLE
        axes = picture.add_axes((left / _WIDTH, 1.0 - (top + tall) / height, wide / _WIDTH, tall / height))
        axes.set_xticks([])
        axes.set_yticks([])
        stages.append(axes)
    y = 1.0 - 0.22 / height
    picture.text(_GAP / _WIDTH, y, style.fitted(name, 4.5, 11.0), fontsize=11, fontweight="bold", va="center")
    if left_out:
        words = f"{left_out} transitions left out"
        picture.text(1.0 - _GAP / _WIDTH, y, words, fontsize=8.5, va="center", ha="right", color=palette.SOFT)
    return picture, stages


def _write(picture: Figure, axes: Axes, panel: _Panel, colour: str) -> None:
    """Write time and mode above a panel and its text below, and draw its frame in the colour of the mode."""
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(colour)
        side.set_linewidth(1.6)
    place = axes.get_position()
    room, height = place.width * _WIDTH, picture.get_figheight()
    mode = style.fitted(panel.mode, room, _SIZE, abridged)
    picture.text(place.x0, place.y1 + 0.19 / height, f"{panel.time:.6g} s", fontsize=_SIZE, color=palette.SOFT)
    picture.text(place.x0, place.y1 + 0.06 / height, mode, fontsize=_SIZE)
    lines = textwrap.wrap(panel.text, _LETTERS, max_lines=_LINES, placeholder=" …")
    for i, line in enumerate(lines):
        y = place.y0 - (0.12 + i * _LINE) / height
        picture.text(place.x0, y, style.fitted(line, room, _SIZE), fontsize=_SIZE, va="center", color=palette.SOFT)
