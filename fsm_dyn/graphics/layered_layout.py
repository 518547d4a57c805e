"""Layered layout of boxes, arrows and labels from left to right, used without Graphviz.

The usual four steps (Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures",
IEEE Trans. SMC 11(2), 1981): layers by distance from the initial modes, order within layers by barycentres,
coordinates, curves.  Lengths are in points, y upwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsm_dyn.graphics.diagram import Diagram
from fsm_dyn.graphics.edge_routing import LOOP, STACK, EdgeCurve, Router, Size

_GAP = 56.0  # between layers, in addition to the labels
_SWEEPS = 8


@dataclass(frozen=True)
class Placement:
    """Centres of the boxes by key, and the curves."""

    centres: Mapping[str, tuple[float, float]]
    curves: tuple[EdgeCurve, ...]


def place(diagram: Diagram, sizes: Mapping[str, Size], labels: Mapping[tuple[str, str], Size]) -> Placement:
    """Lay a diagram out.

    Parameters
    ----------
    diagram : Diagram
    sizes : mapping
        Width and height of every box by key.
    labels : mapping
        Width and height of every arrow's label by (source, target), zero where it has none.

    Returns
    -------
    Placement
    """
    layers = _ordered(_layers(diagram), diagram)
    centres = _centres(layers, sizes, labels)
    layer_of = {key: i for i, layer in enumerate(layers) for key in layer}
    return Placement(centres, Router(diagram, sizes, labels, centres, layer_of).curves())


def _layers(diagram: Diagram) -> list[list[str]]:
    """Group the boxes by their distance from the initial ones; what is not reached starts again on the left."""
    following: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    for arrow in diagram.arrows:
        following[arrow.source].append(arrow.target)
    depth: dict[str, int] = {}
    starts = [box.key for box in diagram.boxes if box.initial] or [box.key for box in diagram.boxes[:1]]
    for start in [*starts, *following]:
        if start in depth:
            continue
        depth[start] = 0
        front = [start]
        while front:
            ahead = [key for at in front for key in following[at] if key not in depth]
            for key in ahead:
                depth.setdefault(key, 1 + min(depth[at] for at in front if key in following[at]))
            front = list(dict.fromkeys(ahead))
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for key in following:
        layers[depth[key]].append(key)
    return layers


def _ordered(layers: list[list[str]], diagram: Diagram) -> list[list[str]]:
    """Order each layer by the mean position of its neighbours, in alternating sweeps."""
    neighbours: dict[str, set[str]] = {key: set() for layer in layers for key in layer}
    for arrow in diagram.arrows:
        neighbours[arrow.source].add(arrow.target)
        neighbours[arrow.target].add(arrow.source)
    for sweep in range(_SWEEPS):
        place_of = {key: i - 0.5 * len(layer) for layer in layers for i, key in enumerate(layer)}
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            own = set(layer)

            def mean(key: str, own: set[str] = own, place_of: dict[str, float] = place_of) -> float:
                others = [place_of[other] for other in neighbours[key] if other not in own]
                return float(np.mean(others)) if others else place_of[key]

            layer.sort(key=mean)
            place_of.update({key: i - 0.5 * len(layer) for i, key in enumerate(layer)})
    return layers


def _centres(
    layers: list[list[str]], sizes: Mapping[str, Size], labels: Mapping[tuple[str, str], Size]
) -> dict[str, tuple[float, float]]:
    layer_of = {key: i for i, layer in enumerate(layers) for key in layer}
    gaps = np.full(len(layers), _GAP)
    for (source, target), (width, _) in labels.items():
        a, b = sorted((layer_of[source], layer_of[target]))
        if b == a + 1:
            gaps[a] = max(gaps[a], 1.2 * width + _GAP)
        elif a == b and source != target:
            gaps[a] = max(gaps[a], 2.0 * width)
    centres = {}
    left = 0.0
    for i, layer in enumerate(layers):
        width = max(sizes[key][0] for key in layer)
        extra = [_room(key, labels) for key in layer]
        heights = [sizes[key][1] for key in layer]
        total = sum(heights) + sum(extra) + STACK * (len(layer) - 1)
        y = 0.5 * total
        for key, height, above in zip(layer, heights, extra, strict=True):
            y -= above
            centres[key] = (left + 0.5 * width, y - 0.5 * height)
            y -= height + STACK
        left += width + gaps[i]
    return centres


def _room(key: str, labels: Mapping[tuple[str, str], Size]) -> float:
    """Return the space above a box for its loop, or for labels of its arrows."""
    loop = labels.get((key, key))
    labelled = max((height for ends, (_, height) in labels.items() if key in ends), default=0.0)
    return max(loop[1] + LOOP if loop else 0.0, labelled)
