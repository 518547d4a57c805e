"""Layout of a graph of many arrows: where runs start in the middle, all other boxes on an ellipse around it.

Layers would send most arrows of such a graph around boxes; here each is an arc between two boxes.  Its cause is not
written.  Lengths are in points, y upwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fsm_dyn.graphics.diagram import Diagram
from fsm_dyn.graphics.edge_routing import EdgeCurve, FloatArray, Size, bezier
from fsm_dyn.graphics.layered_layout import Placement

MANY = 30  # arrows that layers still show legibly
_ASPECT = 1.5  # width of the ellipse over its height
_CLEAR = 22.0  # between boxes
_GROWTH = 1.08  # of the ellipse until no boxes overlap
_BEND = 0.09  # of an arc, by its length; to the right, so that arrows of both directions are apart
_AROUND = 0.3  # bend of an arc that would pass behind the box in the middle


def is_dense(diagram: Diagram) -> bool:
    """Whether a diagram has too many arrows for layers."""
    between = sum(arrow.source != arrow.target for arrow in diagram.arrows)
    return between > MANY and between > 2 * len(diagram.boxes)


def without_causes(diagram: Diagram) -> Diagram:
    """Return a diagram without loops and with no more text at its arrows than the counts of runs."""
    arrows = (replace(arrow, labels=_count(arrow.labels)) for arrow in diagram.arrows if arrow.source != arrow.target)
    return replace(diagram, arrows=tuple(arrows))


def _count(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the number of times that a run took an arrow, where it is written."""
    return tuple(text for text in labels if text.startswith("taken "))


def place_radially(diagram: Diagram, sizes: Mapping[str, Size]) -> Placement:
    """Lay a diagram out around its initial box.

    Parameters
    ----------
    diagram : Diagram
    sizes : mapping
        Width and height of every box by key.
    """
    keys = [box.key for box in diagram.boxes]
    middle = next((box.key for box in diagram.boxes if box.initial), keys[0])
    around = [key for key in keys if key != middle]
    boxes = np.array([sizes[middle], *(sizes[key] for key in around)])
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(around)) / max(len(around), 1)
    radius = 60.0
    while True:
        ring = radius * np.stack([_ASPECT * np.cos(angles), np.sin(angles)], axis=1)
        centres = np.concatenate([np.zeros((1, 2)), ring])
        apart = np.abs(centres[:, None] - centres[None]) >= 0.5 * (boxes[:, None] + boxes[None]) + _CLEAR
        if apart.any(axis=2)[~np.eye(len(centres), dtype=bool)].all():
            break
        radius *= _GROWTH
    place = dict(zip([middle, *around], centres, strict=True))
    curves = tuple(
        EdgeCurve(arrow, control, (float(label[0]), float(label[1])))
        for arrow in diagram.arrows
        for control in [_arc(place, sizes, arrow.source, arrow.target, middle)]
        for label in [bezier(control, 0.5)]
    )
    return Placement({key: (float(x), float(y)) for key, (x, y) in place.items()}, curves)


def _arc(
    place: Mapping[str, FloatArray], sizes: Mapping[str, Size], source: str, target: str, middle: str
) -> FloatArray:
    """Return the control points of an arc between the borders of two boxes, shape (4, 2)."""
    a, b = place[source], place[target]
    way = b - a
    right = np.array([way[1], -way[0]])
    length = float(np.hypot(*way))
    bend = _BEND
    if middle not in (source, target):  # how far the straight line passes from the middle, over the box's half diagonal
        passing = abs(float(a[0] * way[1] - a[1] * way[0])) / length
        bend = _AROUND if passing < 0.6 * float(np.hypot(*sizes[middle])) else _BEND
    inner = [a + way / 3 + bend * right, b - way / 3 + bend * right]
    return np.array([_border(a, sizes[source], inner[0]), *inner, _border(b, sizes[target], inner[1])])


def _border(centre: FloatArray, size: Size, towards: FloatArray) -> FloatArray:
    """Return where the way from a box's centre leaves the box."""
    way = towards - centre
    share = np.min(0.5 * np.array(size) / np.maximum(np.abs(way), 1e-9))
    return np.asarray(centre + share * way)
