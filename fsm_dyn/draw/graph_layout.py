"""Diagram of a mode graph as boxes and arrows, its layouts, and its picture as SVG.  Lengths are in points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.svg import element, escaped, picture, text, width_of

# -- Diagram of a mode graph: boxes with lines of text, arrows with labels -----------------------------------

_LONGEST_LABEL = 38
_BEFORE: Final = 6  # characters before the first difference of names
LABELS = 6  # lines of text at an arrow


@dataclass(frozen=True)
class Box:
    """A mode: its name, its contact states as lines of text, whether runs start in it.

    ``dashed``: it is possible, and neither derived nor visited.
    """

    key: str
    title: str
    lines: tuple[str, ...] = ()
    initial: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Arrow:
    """All transitions from one mode to another; a label per transition, in order of priority.

    ``dashed``: they are declared or derived, and no run made one of them.  ``weight``: the share of runs that made
    one, by which the line is the thicker.  ``marked``: it is drawn in another colour.
    """

    source: str
    target: str
    labels: tuple[str, ...] = ()
    dashed: bool = False
    weight: float = 0.0
    marked: bool = False


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows of a mode graph, in the graph's order."""

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def at_most(labels: Sequence[str], most: int) -> tuple[str, ...]:
    """Return labels, the last of too many replaced by their number."""
    if len(labels) <= most:
        return tuple(labels)
    return (*labels[: most - 1], f"and {len(labels) - most + 1} more")


def shortened(text: str, length: int = _LONGEST_LABEL) -> str:
    """Return the text on one line, cut with an ellipsis if it is too long for a label."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def elided(text: str, length: int) -> str:
    """Return the text, if too long without its middle: long names differ mostly at their ends."""
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def sequence_labels(sequences: Sequence[tuple[str, ...]], length: int) -> list[str]:
    """Return sequences of modes as lines.

    If one is too long, all are without the modes with which all begin, except for the last of these, with long names
    elided, and cut where they are too long still.
    """
    labels = [" > ".join(modes) for modes in sequences]
    if all(len(label) <= length for label in labels):
        return labels
    parted = (k for k, modes in enumerate(zip(*sequences, strict=False)) if len({*modes}) > 1)
    same = max(next(parted, min(map(len, sequences))) - 1, 0)
    found = []
    for modes in sequences:
        names = ["…"] * (same > 0) + [elided(mode, length // 3) for mode in modes[same:]]
        shown = next((k for k in range(len(names), 1, -1) if len(" > ".join(names[:k])) <= length - 4), 1)
        found.append(" > ".join(names[:shown] + ["…"] * (shown < len(names))))
    return found


def abridged(label: str, length: int) -> str:
    """Return a mode's label, if too long cut before its last comma (a contact's state follows), or in the middle."""
    flat = " ".join(label.split())
    if len(flat) <= length or ", " not in flat or length < 3:
        return elided(flat, length)
    last = min(len(flat) - flat.rindex(", "), (length - 1) // 2)
    return f"{flat[: length - 1 - last]}…{flat[len(flat) - last :]}"


def distinct_labels(names: Sequence[str], longest: int) -> dict[str, str]:
    """Return names cut to a length; those that would read the same begin at their difference, or end with a number.

    ``longest``: characters of a label. Returns labels by name.
    """
    labels = {name: abridged(name, longest) for name in names}
    for label in dict.fromkeys(labels.values()):
        same = [name for name, own in labels.items() if own == label]
        if len(same) > 1:
            taken = {own for name, own in labels.items() if name not in same}
            labels |= _apart(same, longest, taken)
    return labels


def _apart(names: Sequence[str], longest: int, taken: Set[str]) -> dict[str, str]:
    """Return labels of names with one reading, none of them among those taken."""
    first, last = min(names), max(names)  # in order: a common beginning of both is one of all
    same = next((k for k, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    word = first[:same].rfind(" ") + 1
    for begin in (word, same - _BEFORE) if same - word <= 2 * _BEFORE else (same - _BEFORE,):
        cut = {name: abridged(f"…{name[max(begin, 0) :]}", longest) for name in names}
        if len({*cut.values()}) == len(names) and taken.isdisjoint(cut.values()):
            return cut
    numbered, number = {}, 0
    for name in names:
        while name not in numbered:
            number += 1
            mark = f" ·{number}"
            if (label := f"{abridged(name, max(longest - len(mark), 1))}{mark}") not in taken:
                numbered[name] = label
    return numbered


# -- Edge routing of a layered layout ------------------------------------------------------------------------
#
# Edge routing of a layered layout: curves and positions of labels. Lengths are in points, y upwards.

STACK = 34.0  # between boxes of a layer
LOOP = 30.0  # how far a loop rises
_CLEAR = 5.0  # between a curve and its label

Size = tuple[float, float]


@dataclass(frozen=True)
class EdgeCurve:
    """One arrow: four control points of a cubic, shape (4, 2), and the centre of its label."""

    arrow: Arrow
    control: Floats
    label: tuple[float, float]


class Router:
    """Draws the curves, then sets the labels at places that cover least."""

    def __init__(
        self,
        diagram: Diagram,
        sizes: Mapping[str, Size],
        labels: Mapping[tuple[str, str], Size],
        centres: Mapping[str, tuple[float, float]],
        layer_of: Mapping[str, int],
    ) -> None:
        self.sizes, self.labels, self.centres, self.layer_of = sizes, labels, centres, layer_of
        self.arrows = diagram.arrows
        self.side = {arrow: self._side(arrow) for arrow in self.arrows}
        self.ports = self._ports()
        self.lanes = {1.0: 0.0, -1.0: 0.0}
        self.arcs: dict[tuple[int, float], int] = {}

    def curves(self) -> tuple[EdgeCurve, ...]:
        """Return all curves with the positions of their labels."""
        routes = {arrow: self._route(arrow) for arrow in self.arrows}
        fractions = np.linspace(0.02, 0.98, 33)
        traces = {arrow: np.array([bezier(control, f) for f in fractions]) for arrow, (control, _) in routes.items()}
        taken: list[tuple[float, ...]] = [(*self.centres[key], *self.sizes[key]) for key in self.centres]
        found = []
        for arrow, (control, side) in routes.items():
            others = np.concatenate([np.zeros((0, 2)), *(trace for other, trace in traces.items() if other != arrow)])
            found.append(EdgeCurve(arrow, control, self._label(arrow, control, side, taken, others)))
        return tuple(found)

    def _side(self, arrow: Arrow) -> float:
        """Return the side on which an arrow leaves its source: 1 right, -1 left, 0 above or below."""
        a, b = self.layer_of[arrow.source], self.layer_of[arrow.target]
        if arrow.source == arrow.target or abs(a - b) > 1:
            return 0.0
        if a != b:
            return float(b - a)
        # Within a layer the arcs bulge to the side that fewer arrows use.
        busy = [self.layer_of[x.source] + self.layer_of[x.target] - 2 * a for x in self.arrows if a in self._span(x)]
        return 1.0 if sum(busy) <= 0 else -1.0

    def _span(self, arrow: Arrow) -> tuple[int, int]:
        return self.layer_of[arrow.source], self.layer_of[arrow.target]

    def _ports(self) -> dict[tuple[Arrow, str], float]:
        """Spread the ends of arrows along the sides of boxes, ordered by their other ends."""
        ends: dict[tuple[str, float], list[tuple[float, float, Arrow, str]]] = {}
        for arrow in self.arrows:
            side = self.side[arrow]
            if side == 0.0:
                continue
            same = self.layer_of[arrow.source] == self.layer_of[arrow.target]
            (_, y0), (_, y1) = self.centres[arrow.source], self.centres[arrow.target]
            ends.setdefault((arrow.source, side), []).append((y1, side, arrow, "source"))
            ends.setdefault((arrow.target, side if same else -side), []).append((y0, side, arrow, "target"))
        ports = {}
        for (key, _), found in ends.items():
            found.sort(key=lambda end: (-end[0], -end[1]))
            spacing = min(self.sizes[key][1] * 0.72 / len(found), 16.0)
            for i, (_, _, arrow, end) in enumerate(found):
                ports[arrow, end] = self.centres[key][1] + spacing * (0.5 * (len(found) - 1) - i)
        return ports

    def _route(self, arrow: Arrow) -> tuple[Floats, Floats]:
        """Return the control points of one arrow and the direction in which its label lies from it."""
        a, b = self._span(arrow)
        if arrow.source == arrow.target:
            return self._loop(arrow), np.array([0.0, 1.0])
        if a == b:
            return self._within_layer(arrow)
        if abs(a - b) == 1:
            return self._between_layers(arrow)
        return self._around(arrow, forward=b > a)

    def _loop(self, arrow: Arrow) -> Floats:
        (x, y), (width, height) = self.centres[arrow.source], self.sizes[arrow.source]
        top, half = y + 0.5 * height, min(0.22 * width, 18.0)
        return np.array([[x + half, top], [x + 1.8 * half, top + LOOP], [x - 1.8 * half, top + LOOP], [x - half, top]])

    def _end(self, arrow: Arrow, end: str, side: float) -> Floats:
        key = arrow.source if end == "source" else arrow.target
        return np.array([self.centres[key][0] + side * 0.5 * self.sizes[key][0], self.ports[arrow, end]])

    def _between_layers(self, arrow: Arrow) -> tuple[Floats, Floats]:
        sign = self.side[arrow]
        start, end = self._end(arrow, "source", sign), self._end(arrow, "target", -sign)
        bend = sign * 12.0 if (arrow.target, arrow.source) in self.labels else 0.0
        reach = np.array([0.35 * (end[0] - start[0]), bend])
        return np.array([start, start + reach, end + reach * (-1.0, 1.0), end]), np.array([0.0, sign])

    def _within_layer(self, arrow: Arrow) -> tuple[Floats, Floats]:
        """Bulge to one side, each further arc outside those before it."""
        sign = self.side[arrow]
        start, end = self._end(arrow, "source", sign), self._end(arrow, "target", sign)
        lane = (self.layer_of[arrow.source], sign)
        nested = self.arcs.get(lane, 0)
        self.arcs[lane] = nested + 1
        reach = 24.0 + 0.15 * abs(start[1] - end[1]) + nested * (self.labels[arrow.source, arrow.target][0] + 24.0)
        outside = sign * (max(sign * start[0], sign * end[0]) + reach)
        return np.array([start, [outside, start[1]], [outside, end[1]], end]), np.array([sign, 0.0])

    def _around(self, arrow: Arrow, forward: bool) -> tuple[Floats, Floats]:
        """Pass over (forward) or under everything between two layers that are not neighbours."""
        sign = 1.0 if forward else -1.0
        (x0, y0), (x1, y1) = self.centres[arrow.source], self.centres[arrow.target]
        start = np.array([x0, y0 + sign * 0.5 * self.sizes[arrow.source][1]])
        end = np.array([x1, y1 + sign * 0.5 * self.sizes[arrow.target][1]])
        low, high = sorted(self._span(arrow))
        passed = [key for key, layer in self.layer_of.items() if low < layer < high]
        edge = max(sign * self.centres[key][1] + 0.5 * self.sizes[key][1] + STACK for key in passed)
        edge = max(edge, sign * start[1], sign * end[1]) + self.lanes[sign]
        self.lanes[sign] += 18.0 + self.labels[arrow.source, arrow.target][1]
        # A cubic reaches three quarters of the way to its inner control points.
        rise = (4.0 * (edge + 14.0) - sign * (start[1] + end[1]) * 0.5) / 3.0
        inner = 0.25 * (end[0] - start[0])
        control = np.array([start, [start[0] + inner, sign * rise], [end[0] - inner, sign * rise], end])
        return control, np.array([0.0, sign])

    def _label(
        self, arrow: Arrow, control: Floats, side: Floats, taken: list[tuple[float, ...]], others: Floats
    ) -> tuple[float, float]:
        """Choose the position along the curve at which the label covers least."""
        width, height = self.labels[arrow.source, arrow.target]
        if not width:
            x, y = bezier(control, 0.5)
            return float(x), float(y)
        shift = side * (0.5 * np.array([width, height]) + _CLEAR)
        best, least = (0.0, 0.0), np.inf
        for fraction in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74):
            for factor in (1.0, -1.0, 0.0, 2.0):
                x, y = bezier(control, fraction) + factor * shift
                inside = np.abs(others - (x, y)) < (0.5 * width + 1.0, 0.5 * height + 1.0)
                cost = sum(_overlap((x, y, width, height), other) for other in taken)
                cost += 0.08 * width * height * np.count_nonzero(inside.all(axis=1))
                cost += 0.05 * width * height * (abs(fraction - 0.5) + 0.3 * abs(factor - 1.0))
                if cost < least:
                    best, least = (float(x), float(y)), cost
        taken.append((*best, width + 4.0, height + 2.0))
        return best


def bezier(control: Floats, fraction: float) -> Floats:
    """Return the point of a cubic at ``fraction`` between 0 and 1, shape (2,).

    ``control``, shape (4, 2): control points, pt.
    """
    rest = 1.0 - fraction
    weights = np.array([rest**3, 3 * rest**2 * fraction, 3 * rest * fraction**2, fraction**3])
    return np.asarray(weights @ control)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Return the common area of two rectangles given as centre and size."""
    width = min(a[0] + a[2] / 2, b[0] + b[2] / 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2)
    height = min(a[1] + a[3] / 2, b[1] + b[3] / 2) - max(a[1] - a[3] / 2, b[1] - b[3] / 2)
    return max(width, 0.0) * max(height, 0.0)


# -- Layered layout of boxes, arrows and labels from left to right, used without Graphviz --------------------
#
# The usual four steps (Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures",
# IEEE Trans. SMC 11(2), 1981): layers by distance from the initial modes, order within layers by barycentres,
# coordinates, curves. Lengths are in points, y upwards.

_GAP = 56.0  # between layers, in addition to the labels
_SWEEPS = 8


@dataclass(frozen=True)
class Placement:
    """Centres of the boxes by key, and the curves."""

    centres: Mapping[str, tuple[float, float]]
    curves: tuple[EdgeCurve, ...]


def place(diagram: Diagram, sizes: Mapping[str, Size], labels: Mapping[tuple[str, str], Size]) -> Placement:
    """Lay a diagram out.

    ``sizes``: width and height of every box by key; ``labels``: width and height of every arrow's label by (source,
    target), zero without a label.
    """
    layers = _ordered(_layers(diagram), diagram)
    centres = _centres(layers, sizes, labels)
    layer_of = {key: i for i, layer in enumerate(layers) for key in layer}
    return Placement(centres, Router(diagram, sizes, labels, centres, layer_of).curves())


def _layers(diagram: Diagram) -> list[list[str]]:
    """Group the boxes by their distance from the initial ones; unreachable boxes start again on the left."""
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


# -- Layout of a graph of many arrows ------------------------------------------------------------------------
#
# Layout of a graph of many arrows: the initial modes in the middle, all other boxes on an ellipse around them.
#
# Layers would send most arrows of such a graph around boxes; here each is an arc between two boxes. Its cause is not
# written. Lengths are in points, y upwards.

MANY = 30  # arrows that layers still show legibly
_ASPECT = 1.5  # width of the ellipse over its height
_BETWEEN_BOXES = 22.0  # between boxes
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
    """Return the labels of the times a run took an arrow."""
    return tuple(text for text in labels if text.startswith("taken "))


def place_radially(diagram: Diagram, sizes: Mapping[str, Size]) -> Placement:
    """Lay a diagram out around its initial box. ``sizes``: width and height of every box by key."""
    keys = [box.key for box in diagram.boxes]
    middle = next((box.key for box in diagram.boxes if box.initial), keys[0])
    around = [key for key in keys if key != middle]
    boxes = np.array([sizes[middle], *(sizes[key] for key in around)])
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(around)) / max(len(around), 1)
    radius = 60.0
    while True:
        ring = radius * np.stack([_ASPECT * np.cos(angles), np.sin(angles)], axis=1)
        centres = np.concatenate([np.zeros((1, 2)), ring])
        apart = np.abs(centres[:, None] - centres[None]) >= 0.5 * (boxes[:, None] + boxes[None]) + _BETWEEN_BOXES
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


def _arc(place: Mapping[str, Floats], sizes: Mapping[str, Size], source: str, target: str, middle: str) -> Floats:
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


def _border(centre: Floats, size: Size, towards: Floats) -> Floats:
    """Return the point at which the way from a box's centre leaves the box."""
    way = towards - centre
    share = np.min(0.5 * np.array(size) / np.maximum(np.abs(way), 1e-9))
    return np.asarray(centre + share * way)


# -- Mode graph as SVG: boxes in the colours of the modes, arrows with their causes --------------------------

MOST = 12  # boxes; of larger graphs those nearest to the initial modes
MOST_LABELLED = 30  # arrows; of more, only tooltips have the labels
_LINES = 5  # of text in a box, the others are counted
_LABELS = 2  # of text at an arrow
_TITLE, _LINE, _LABEL = 12.0, 10.0, 9.5  # sizes of letters, points
_LEADING = 1.3
_PADDING = (12.0, 7.0)
_MARGIN = 14.0
_HEAD = 7.0  # of an arrow


def mode_graph(diagram: Diagram, most: int = MOST) -> str:
    """Return the picture of a mode graph.

    ``most``: number of modes to draw: those with the fewest transitions from the initial modes. Returns an ``<svg>``
    element without scripts; names are text and nothing else.
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
    """Return the drawn part of a diagram."""
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
        boxes=_bounded([box for box in diagram.boxes if box.key in kept]),
        arrows=tuple(arrow for arrow in diagram.arrows if arrow.source in kept and arrow.target in kept),
    )


def _bounded(boxes: Sequence[Box]) -> tuple[Box, ...]:
    titles = distinct_labels([box.title for box in boxes], _LONGEST_LABEL)
    return tuple(
        replace(
            box,
            title=titles[box.title],
            lines=at_most([shortened(line, _LONGEST_LABEL) for line in box.lines], _LINES),
        )
        for box in boxes
    )


def _box_size(box: Box) -> Size:
    width = max(width_of(box.title, _TITLE, bold=True), *(width_of(line, _LINE) for line in box.lines), 30.0)
    return width + 2 * _PADDING[0], _LEADING * (_TITLE + _LINE * len(box.lines)) + 2 * _PADDING[1]


def _label_lines(arrow: Arrow) -> Sequence[str]:
    return at_most([shortened(words, _LONGEST_LABEL) for words in arrow.labels], _LABELS)


def _label_size(arrow: Arrow) -> Size:
    lines = _label_lines(arrow)
    return max((width_of(words, _LABEL) for words in lines), default=0.0), _LEADING * _LABEL * len(lines)


def _bounds(placement: Placement, sizes: dict[str, Size], labels: dict[tuple[str, str], Size]) -> tuple[Floats, Floats]:
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


def _arrow(curve: EdgeCurve, low: Floats, high: Floats) -> str:
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


def _label(curve: EdgeCurve, size: Size, low: Floats, high: Floats) -> str:
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
