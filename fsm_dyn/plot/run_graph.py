"""Graph of a run as a figure: the phases or modes that it visited, with its ways between them."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from fsm_dyn.draw.palette import TEXT
from fsm_dyn.draw.svg import SOFT
from fsm_dyn.draw.visit_graph import VisitBox, VisitEdge, dwell
from fsm_dyn.plot import style
from fsm_dyn.plot.style import text_width
from fsm_dyn.run.trajectory import Trajectory

_PER_INCH: Final = 96.0  # px
_HEAD: Final = 0.3  # inches, above the graph
_NAME, _COUNT = 9.4, 7.8
_TEXTURES: Final = {"": None, "lines": "////", "dots": "...."}


def run_graph(trajectory: Trajectory, narrow: bool = False) -> Figure:
    """Draw the graph of a run: at most twelve boxes, of what it visited, in the order of their first visits.

    Parameters
    ----------
    trajectory : Trajectory
    narrow : bool
        Whether the boxes are in a column.

    Returns
    -------
    matplotlib.figure.Figure
    """
    diagram = trajectory.visits.diagram(narrow)
    name = trajectory.model.name
    width = max(diagram.width / _PER_INCH, text_width(name, 11, "bold") / 72.0 + 0.3)
    height = diagram.height / _PER_INCH + _HEAD
    with style.settings():
        figure = style.new_figure(width, height)
        figure.text(0.1 / width, 1.0 - 0.17 / height, name, fontsize=11, fontweight="bold", va="center")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0 - _HEAD / height))
        axes.set_axis_off()
        axes.set_xlim(0.0, width * _PER_INCH)
        axes.set_ylim(diagram.height, 0.0)
        for edge in diagram.edges:
            for artist in _edge(edge):
                axes.add_artist(artist)
            if edge.count > 1:
                axes.text(*edge.pill, edge.words, fontsize=_COUNT, color=SOFT, ha="center", va="center", zorder=4)
        for box in diagram.boxes:
            axes.add_artist(_box(box))
            middle = box.left + 0.5 * box.width
            room = (box.width - 8.0) / _PER_INCH * 72.0
            size = min(_NAME, _NAME * room / max(1.05 * text_width(box.name, _NAME, "bold"), 1e-9))
            axes.text(middle, box.top + 0.35 * box.height, box.name, fontsize=size, fontweight="bold", color=TEXT,
                      ha="center", va="center", zorder=6)  # fmt: skip
            axes.text(middle, box.top + 0.74 * box.height, dwell(box), fontsize=_COUNT, color=TEXT, ha="center",
                      va="center", zorder=6)  # fmt: skip
    return figure


def _edge(edge: VisitEdge) -> list[FancyArrowPatch | Rectangle]:
    arrow = FancyArrowPatch(
        path=Path(edge.course), arrowstyle="-|>", mutation_scale=9.0, color=SOFT, lw=1.1, shrinkA=0, shrinkB=0, zorder=2
    )
    if edge.count < 2:
        return [arrow]
    (x, y), (width, height) = edge.pill, edge.pill_size
    pill = Rectangle((x - width / 2, y - height / 2), width, height, facecolor="white", lw=0, zorder=3)
    return [arrow, pill]


def _box(box: VisitBox) -> FancyBboxPatch:
    return FancyBboxPatch(
        (box.left, box.top), box.width, box.height, boxstyle="round,pad=0,rounding_size=7", facecolor=box.fill.colour,
        hatch=_TEXTURES[box.fill.texture], edgecolor="#00000055", lw=0, zorder=5, gid=f"visit:{box.name}",
    )  # fmt: skip
