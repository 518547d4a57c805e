"""Mode graph as SVG: boxes in the colours of the modes, arrows with their causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import (
    Arrow,
    Box,
    Diagram,
    EdgeCurve,
    Placement,
    Size,
    abridged,
    at_most,
    place,
    shortened,
)
from fsm_dyn.draw.svg import element, escaped, picture, text, width_of

MOST = 12  # boxes; of larger graphs those nearest to the initial modes
MOST_LABELLED = 30  # arrows; of more, only tooltips have the labels
_LINES = 5  # of text in a box, the others are counted
_LABELS = 2  # of text at an arrow
_TITLE, _LINE, _LABEL = 12.0, 10.0, 9.5  # sizes of letters, points
_LEADING = 1.3
_PADDING = (12.0, 7.0)
_LONGEST = 38  # letters of a line
_MARGIN = 14.0
_HEAD = 7.0  # of an arrow


def mode_graph(diagram: Diagram, most: int = MOST) -> str:
    """Return the picture of a mode graph.

    Parameters
    ----------
    diagram : Diagram
    most : int
        Number of modes to draw: those with the fewest transitions from the initial modes.

    Returns
    -------
    str
        An ``<svg>`` element without scripts; names are text and nothing else.
    """
    shown = _nearest(diagram, most)
    sizes = {box.key: _box_size(box) for box in shown.boxes}
    labelled = len(shown.arrows) <= MOST_LABELLED
    labels = {(a.source, a.target): _label_size(a) if labelled else (0.0, 0.0) for a in shown.arrows}
    placement = place(shown, sizes, labels)
    low, high = _bounds(placement, sizes, labels)
    colours = palette.mode_colours([box.key for box in diagram.boxes])
    curves = placement.curves
    parts = [_arrow(curve, low, high) for curve in curves]
    for box in shown.boxes:
        x, y = placement.centres[box.key]
        parts.append(_box(box, x - low[0], high[1] - y, sizes[box.key], colours[box.key]))
    if labelled:
        parts += [
            _label(curve, labels[curve.arrow.source, curve.arrow.target], low, high) for curve in placement.curves
        ]
    width, height = (high - low).tolist()
    return picture(width, height, parts, f"Mode graph of {diagram.name}")


def left_out(diagram: Diagram, most: int = MOST) -> int:
    """Return how many modes :func:`mode_graph` does not draw."""
    return max(0, len(diagram.boxes) - most)


def _nearest(diagram: Diagram, most: int) -> Diagram:
    """Return the part of a diagram that is drawn."""
    following: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    for arrow in diagram.arrows:
        following[arrow.source].append(arrow.target)
    starts = [box.key for box in diagram.boxes if box.initial] or [box.key for box in diagram.boxes[:1]]
    reached = dict.fromkeys(starts)
    queue = list(reached)
    while queue:
        new = [key for key in following[queue.pop(0)] if key not in reached]
        reached.update(dict.fromkeys(new))
        queue += dict.fromkeys(new)
    kept = set([*reached, *(key for key in following if key not in reached)][:most])
    return replace(
        diagram,
        boxes=tuple(_bounded(box) for box in diagram.boxes if box.key in kept),
        arrows=tuple(arrow for arrow in diagram.arrows if arrow.source in kept and arrow.target in kept),
    )


def _bounded(box: Box) -> Box:
    lines = at_most([shortened(line, _LONGEST) for line in box.lines], _LINES)
    return replace(box, title=abridged(box.title, _LONGEST), lines=lines)


def _box_size(box: Box) -> Size:
    width = max(width_of(box.title, _TITLE, bold=True), *(width_of(line, _LINE) for line in box.lines), 30.0)
    return width + 2 * _PADDING[0], _LEADING * (_TITLE + _LINE * len(box.lines)) + 2 * _PADDING[1]


def _label_lines(arrow: Arrow) -> Sequence[str]:
    return at_most([shortened(words, _LONGEST) for words in arrow.labels], _LABELS)


def _label_size(arrow: Arrow) -> Size:
    lines = _label_lines(arrow)
    return max((width_of(words, _LABEL) for words in lines), default=0.0), _LEADING * _LABEL * len(lines)


def _bounds(
    placement: Placement, sizes: dict[str, Size], labels: dict[tuple[str, str], Size]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rectangles = [(*placement.centres[key], *size) for key, size in sizes.items()]
    rectangles += [(*curve.label, *labels[curve.arrow.source, curve.arrow.target]) for curve in placement.curves]
    corners = np.array(rectangles or [(0.0, 0.0, 10.0, 10.0)])
    points = [corners[:, :2] - corners[:, 2:] / 2, corners[:, :2] + corners[:, 2:] / 2]
    part = np.linspace(0.0, 1.0, 17)[:, None]
    for curve in placement.curves:
        a, b, c, d = curve.control
        points.append((1 - part) ** 3 * a + 3 * (1 - part) ** 2 * part * b + 3 * (1 - part) * part**2 * c + part**3 * d)
    everything = np.concatenate(points)
    return everything.min(axis=0) - _MARGIN, everything.max(axis=0) + _MARGIN


def _box(box: Box, x: float, y: float, size: Size, colour: str) -> str:
    width, height = size
    top = y - height / 2 + _PADDING[1] + _LEADING * _TITLE / 2
    parts = [
        element("title", escaped(box.title + (" (runs start here)" if box.initial else ""))),
        element(
            "rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=6,
            fill="#FFFFFF" if box.dashed else colour, stroke=palette.INK, stroke_width=2.2 if box.initial else 0.9,
            **({"stroke_dasharray": "4 3"} if box.dashed else {}),
        ),
        text(box.title, x, top, _TITLE, font_weight="bold"),
    ]  # fmt: skip
    first = top + _LEADING * (_TITLE + _LINE) / 2
    parts += [text(line, x, first + i * _LEADING * _LINE, _LINE) for i, line in enumerate(box.lines)]
    return element("g", parts)


def _arrow(curve: EdgeCurve, low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    a, b, c, d = np.stack([curve.control[:, 0] - low[0], high[1] - curve.control[:, 1]], axis=1)
    way = d - c
    way = way / max(float(np.hypot(*way)), 1e-9)
    across = np.array([-way[1], way[0]])
    neck = d - _HEAD * way
    line = f"M{a[0]:.1f} {a[1]:.1f}C{b[0]:.1f} {b[1]:.1f} {c[0]:.1f} {c[1]:.1f} {neck[0]:.1f} {neck[1]:.1f}"
    left, right = neck + 0.42 * _HEAD * across, neck - 0.42 * _HEAD * across
    head = f"M{d[0]:.1f} {d[1]:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}Z"
    colour = palette.LINES[1] if curve.arrow.marked else palette.SOFT
    dashes = {"stroke_dasharray": "5 3"} if curve.arrow.dashed else {}
    return element(
        "g",
        [
            element("path", d=line, fill="none", stroke=colour, stroke_width=1.1 + 4.0 * curve.arrow.weight, **dashes),
            element("path", d=head, fill=colour),
        ],
    )


def _label(curve: EdgeCurve, size: Size, low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    lines = _label_lines(curve.arrow)
    if not lines:
        return ""
    x, y = curve.label[0] - low[0], high[1] - curve.label[1]
    width, height = size
    paper = element(
        "rect", x=x - width / 2 - 1, y=y - height / 2, width=width + 2, height=height, fill="#FFFFFF", fill_opacity=0.8
    )
    first = y - _LEADING * _LABEL * (len(lines) - 1) / 2
    words = [text(line, x, first + i * _LEADING * _LABEL, _LABEL, fill=palette.SOFT) for i, line in enumerate(lines)]
    return element("g", [paper, *words])
