"""Mode graph as a Matplotlib figure, with the layout of :mod:`fsm_dyn.graphics.layered_layout`."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Outline

from fsm_dyn.graphics import palette
from fsm_dyn.graphics.diagram import LABELS, Box, Diagram, at_most, shortened
from fsm_dyn.graphics.edge_routing import EdgeCurve, Size
from fsm_dyn.graphics.layered_layout import Placement, place
from fsm_dyn.graphics.radial_layout import is_dense, place_radially, without_causes
from fsm_dyn.plot import style

_TITLE, _LINE, _LABEL = 10.5, 8.5, 8.0  # font sizes, points
_LEADING = 1.35
_PADDING = (14.0, 8.0)
_POINTS_PER_INCH = 72.0


def picture(diagram: Diagram) -> Figure:
    """Draw the diagram: boxes in the colours of the modes, one arrow per pair, initial modes with a thick border.

    A diagram of many arrows is drawn around where runs start, without the causes of arrows.

    Returns
    -------
    matplotlib.figure.Figure
    """
    dense = is_dense(diagram)
    if dense:
        diagram = without_causes(diagram)
    sizes = {box.key: _box_size(box) for box in diagram.boxes}
    labels = {(arrow.source, arrow.target): _label_size(at_most(arrow.labels, LABELS)) for arrow in diagram.arrows}
    placement = place_radially(diagram, sizes) if dense else place(diagram, sizes, labels)
    low, high = _bounds(placement, sizes, labels)
    width, height = (high - low) / _POINTS_PER_INCH
    colours = palette.mode_colours([box.key for box in diagram.boxes])
    with style.settings():
        canvas = style.new_figure(width, height)
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        for curve in placement.curves:
            _draw_curve(axes, curve)
        for box in diagram.boxes:
            _draw_box(axes, box, placement.centres[box.key], sizes[box.key], colours[box.key])
    return canvas


def _box_size(box: Box) -> Size:
    lines = [style.text_width(line, _LINE) for line in box.lines]
    width = max(style.text_width(box.title, _TITLE, "bold"), *lines, 30.0)
    height = _LEADING * (_TITLE + _LINE * len(box.lines))
    return width + 2 * _PADDING[0], height + 2 * _PADDING[1]


def _label_size(labels: tuple[str, ...]) -> Size:
    width = max((style.text_width(shortened(text), _LABEL) for text in labels), default=0.0)
    return width, _LEADING * _LABEL * len(labels)


def _bounds(
    placement: Placement, sizes: dict[str, Size], labels: dict[tuple[str, str], Size]
) -> tuple[np.ndarray, np.ndarray]:
    rectangles = [(*placement.centres[key], *size) for key, size in sizes.items()]
    rectangles += [(*curve.label, *labels[curve.arrow.source, curve.arrow.target]) for curve in placement.curves]
    corners = np.array(rectangles or [(0.0, 0.0, 10.0, 10.0)])
    points = [corners[:, :2] - corners[:, 2:] / 2, corners[:, :2] + corners[:, 2:] / 2]
    fractions = np.linspace(0.0, 1.0, 17)[:, None]
    for curve in placement.curves:
        c = curve.control
        rest = 1.0 - fractions
        points.append(
            rest**3 * c[0] + 3 * rest**2 * fractions * c[1] + 3 * rest * fractions**2 * c[2] + fractions**3 * c[3]
        )
    everything = np.concatenate(points)
    return everything.min(axis=0) - 14.0, everything.max(axis=0) + 14.0


def _draw_box(axes: Axes, box: Box, centre: tuple[float, float], size: Size, colour: str) -> None:
    (x, y), (width, height) = centre, size
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=6",
            facecolor="white" if box.dashed else colour,
            edgecolor=palette.INK,
            lw=2.0 if box.initial else 0.8,
            linestyle="dashed" if box.dashed else "solid",
            zorder=3,
        )
    )
    top = y + height / 2 - _PADDING[1] - _LEADING * _TITLE / 2
    axes.text(x, top, box.title, ha="center", va="center", fontsize=_TITLE, fontweight="bold", zorder=4)
    top -= _LEADING * (_TITLE + _LINE) / 2
    for i, line in enumerate(box.lines):
        axes.text(x, top - i * _LEADING * _LINE, line, ha="center", va="center", fontsize=_LINE, zorder=4)


def _draw_curve(axes: Axes, curve: EdgeCurve) -> None:
    path = Outline(curve.control, [Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4])
    axes.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>,head_length=5,head_width=2.4",
            color=palette.INK,
            lw=0.9,
            zorder=2,
            shrinkB=0,
            linestyle="dashed" if curve.arrow.dashed else "solid",
        )
    )
    text = "\n".join(shortened(label) for label in at_most(curve.arrow.labels, LABELS))
    background = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
    axes.text(
        *curve.label,
        text,
        ha="center",
        va="center",
        fontsize=_LABEL,
        linespacing=1.15,
        color=palette.SOFT,
        zorder=5,
        bbox=background if text else None,
    )
