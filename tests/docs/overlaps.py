"""Texts of a figure that overlap, or that lie outside of it, by their bounding boxes."""

from __future__ import annotations

import itertools

from matplotlib.figure import Figure
from matplotlib.text import Text

SLACK = 1.0  # points: the boxes of two lines of text may touch, as ascenders and descenders seldom meet
OUTSIDE = 1.0  # points by which a text may reach beyond the figure


def _visible(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def overlaps(figure: Figure) -> list[str]:
    """Return a line for each pair of texts whose boxes overlap by more than a point, and each text cut off."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    scale = figure.dpi / 72.0
    found = []
    boxes = []
    for text in _drawn(figure, _visible(figure)):
        box = text.get_window_extent(renderer)
        if box.width > 0 and box.height > 0:
            boxes.append((text.get_text(), box))
    for (a, first), (b, second) in itertools.combinations(boxes, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        if wide > SLACK * scale and high > SLACK * scale:
            found.append(f"'{a}' overlaps '{b}'")
    slack = OUTSIDE * scale
    for words, box in boxes:
        if box.x0 < -slack or box.y0 < -slack or box.x1 > figure.bbox.x1 + slack or box.y1 > figure.bbox.y1 + slack:
            found.append(f"'{words}' is cut off")
    return found


def _drawn(figure: Figure, texts: list[Text]) -> list[Text]:
    """Leave out labels of ticks beyond the limits of their axis, which are not drawn."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low - room <= tick.get_loc() <= high + room:
                    beyond |= {tick.label1, tick.label2}
            if not axes.axison:
                beyond |= {label for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)}
                beyond |= {axis.label, axis.offsetText}
    return [text for text in texts if text not in beyond]
