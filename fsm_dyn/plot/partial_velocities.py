"""Partial velocities of one mode as arrows at the points of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.draw import palette
from fsm_dyn.plot import style

FloatArray = npt.NDArray[np.float64]

LONGEST_ARROW = 0.3  # of the mechanism's size
TINY = 1e-9  # of the longest partial velocity; shorter ones are not drawn


def partial_velocities(
    mode: ModeView,
    q: Sequence[float],
    *,
    constrained: bool = False,
    points: Iterable[str] = (),
    forces: Iterable[tuple[str, Sequence[float]]] = (),
) -> Figure:
    """Draw partial velocities at the points of a mechanism, seen along N.z, a colour for each speed.

    Parameters
    ----------
    mode : ModeView
        A mode of a graph.
    q : sequence of float, shape (n_q,)
        Configuration, SI units.
    constrained : bool
        Whether by the independent speeds, the others following the rows, instead of by all speeds.
    points : iterable of str, optional
        Points with arrows; by default all but the origin.
    forces : iterable of (point, vector)
        Forces to draw too, components in N (N), all to one scale.

    Returns
    -------
    Figure
        Arrows are to one scale, of which only the directions and ratios count, as speeds have different units.

    Raises
    ------
    InputError
        There is no such point.
    """
    positions, table = mode.point_positions(q), np.asarray(mode.partial_velocities(q))
    names = list(positions.names[0])
    chosen = list(points) or [name for name in names if name != "O"]
    for name in (*chosen, *(point for point, _ in forces)):
        if name not in names:
            raise InputError(f"no point '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
    speeds = list(mode.mass_matrix(q).names[0])
    if constrained:
        table = np.einsum("psx,si->pix", table, np.asarray(mode.orthogonal_complement(q)))
        speeds = list(mode.independent_speeds)
    places = np.asarray(positions)[:, :2]
    shown = places[[names.index(name) for name in chosen]]
    size = max(float(np.ptp(shown, axis=0).max(initial=0.0)), 1e-3)
    arrows = table[[names.index(name) for name in chosen], :, :2]
    longest = max(float(np.linalg.norm(arrows, axis=-1).max(initial=0.0)), 1e-12)
    with style.settings():
        figure = style.new_figure(5.5, 4.0)
        axes = figure.add_subplot()
        _draw_links(axes, mode.point_chains(), dict(zip(names, places, strict=True)), chosen)
        scale = LONGEST_ARROW * size / longest
        for k, speed in enumerate(speeds):
            colour = palette.BODIES[k % len(palette.BODIES)][1]
            for place, vector in zip(shown, arrows[:, k], strict=True):
                if np.linalg.norm(vector) > TINY * longest:
                    _arrow(axes, place, scale * vector, colour)
            axes.plot([], [], color=colour, lw=2, label=f"{'constrained, ' if constrained else ''}by {speed}")
        _draw_forces(axes, [(places[names.index(name)], np.asarray(vector)[:2]) for name, vector in forces], size)
        axes.set_aspect("equal")
        axes.margins(0.25)
        axes.set_xlabel("m")
        axes.set_ylabel("m")
        axes.set_title(f"{mode.name}: partial velocities {'after' if constrained else 'before'} the rows")
        axes.legend(loc="best", fontsize=8)
    return figure


def _draw_links(axes: Axes, chains: dict[str, str], places: dict[str, FloatArray], chosen: Sequence[str]) -> None:
    """Draw the points, their names, and lines from each to the one it is measured from."""
    for name in chosen:
        origin = chains.get(name, "O")
        if origin != "O" and origin in places:
            axes.plot(*zip(places[origin], places[name], strict=True), color=palette.STEEL, lw=3, zorder=1)
        axes.plot(*places[name], "o", color=palette.SPRING, ms=4, zorder=2)
        axes.annotate(name, tuple(places[name]), xytext=(4, -12), textcoords="offset points", fontsize=8)


def _draw_forces(axes: Axes, forces: Sequence[tuple[FloatArray, FloatArray]], size: float) -> None:
    largest = max((float(np.linalg.norm(vector)) for _, vector in forces), default=0.0)
    for place, vector in forces:
        if largest > 0.0:
            _arrow(axes, place, LONGEST_ARROW * size / largest * vector, palette.TEXT)
    if forces:
        axes.plot([], [], color=palette.TEXT, lw=2, label="force")


def _arrow(axes: Axes, place: FloatArray, vector: FloatArray, colour: str) -> None:
    head = {"arrowstyle": "-|>", "color": colour, "lw": 2}
    axes.annotate("", xy=tuple(place + vector), xytext=tuple(place), arrowprops=head, zorder=3)
    axes.plot(*(place + vector), alpha=0.0)  # an annotation does not widen the axes
