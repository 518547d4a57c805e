"""Edge routing of a layered layout: curves and positions of labels.  Lengths are in points, y upwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.graphics.diagram import Arrow, Diagram

STACK = 34.0  # between boxes of a layer
LOOP = 30.0  # how far a loop rises
_CLEAR = 5.0  # between a curve and its label

FloatArray = NDArray[np.float64]
Size = tuple[float, float]


@dataclass(frozen=True)
class EdgeCurve:
    """One arrow: four control points of a cubic, shape (4, 2), and the centre of its label."""

    arrow: Arrow
    control: FloatArray
    label: tuple[float, float]


class Router:
    """Draws the curves, then sets the labels where they cover least."""

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

    def _route(self, arrow: Arrow) -> tuple[FloatArray, FloatArray]:
        """Return the control points of one arrow and the direction in which its label lies from it."""
        a, b = self._span(arrow)
        if arrow.source == arrow.target:
            return self._loop(arrow), np.array([0.0, 1.0])
        if a == b:
            return self._within_layer(arrow)
        if abs(a - b) == 1:
            return self._between_layers(arrow)
        return self._around(arrow, forward=b > a)

    def _loop(self, arrow: Arrow) -> FloatArray:
        (x, y), (width, height) = self.centres[arrow.source], self.sizes[arrow.source]
        top, half = y + 0.5 * height, min(0.22 * width, 18.0)
        return np.array([[x + half, top], [x + 1.8 * half, top + LOOP], [x - 1.8 * half, top + LOOP], [x - half, top]])

    def _end(self, arrow: Arrow, end: str, side: float) -> FloatArray:
        key = arrow.source if end == "source" else arrow.target
        return np.array([self.centres[key][0] + side * 0.5 * self.sizes[key][0], self.ports[arrow, end]])

    def _between_layers(self, arrow: Arrow) -> tuple[FloatArray, FloatArray]:
        sign = self.side[arrow]
        start, end = self._end(arrow, "source", sign), self._end(arrow, "target", -sign)
        bend = sign * 12.0 if (arrow.target, arrow.source) in self.labels else 0.0
        reach = np.array([0.35 * (end[0] - start[0]), bend])
        return np.array([start, start + reach, end + reach * (-1.0, 1.0), end]), np.array([0.0, sign])

    def _within_layer(self, arrow: Arrow) -> tuple[FloatArray, FloatArray]:
        """Bulge to one side, each further arc outside those before it."""
        sign = self.side[arrow]
        start, end = self._end(arrow, "source", sign), self._end(arrow, "target", sign)
        lane = (self.layer_of[arrow.source], sign)
        nested = self.arcs.get(lane, 0)
        self.arcs[lane] = nested + 1
        reach = 24.0 + 0.15 * abs(start[1] - end[1]) + nested * (self.labels[arrow.source, arrow.target][0] + 24.0)
        outside = sign * (max(sign * start[0], sign * end[0]) + reach)
        return np.array([start, [outside, start[1]], [outside, end[1]], end]), np.array([sign, 0.0])

    def _around(self, arrow: Arrow, forward: bool) -> tuple[FloatArray, FloatArray]:
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
        self, arrow: Arrow, control: FloatArray, side: FloatArray, taken: list[tuple[float, ...]], others: FloatArray
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


def bezier(control: FloatArray, fraction: float) -> FloatArray:
    """Return the point of a cubic at ``fraction`` between 0 and 1, shape (2,).

    Parameters
    ----------
    control : ndarray, shape (4, 2)
        Control points, pt.
    """
    rest = 1.0 - fraction
    weights = np.array([rest**3, 3 * rest**2 * fraction, 3 * rest * fraction**2, fraction**3])
    return np.asarray(weights @ control)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Return the common area of two rectangles given as centre and size."""
    width = min(a[0] + a[2] / 2, b[0] + b[2] / 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2)
    height = min(a[1] + a[3] / 2, b[1] + b[3] / 2) - max(a[1] - a[3] / 2, b[1] - b[3] / 2)
    return max(width, 0.0) * max(height, 0.0)
