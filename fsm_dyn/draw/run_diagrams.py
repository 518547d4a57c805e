"""Diagrams of a run as data and as SVG: its timeline, the graph of its phases or modes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import distinct_labels
from fsm_dyn.draw.svg import SOFT, TEXT, PhaseFill, element, escaped, picture, text, width_of

# -- Timeline of a run ---------------------------------------------------------------------------------------

# -- Timeline of a run as data -------------------------------------------------------------------------------
#
# Timeline of a run as data: bands of modes, transitions, columns by unit; its back ends only draw it.

_CLOSE = 0.002  # of the run: transitions closer than this are drawn as one


@dataclass(frozen=True)
class Strip:
    """Columns of one unit: their names, and their values, shape (len(names), n)."""

    unit: str
    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True)
class Timeline:
    """A run over time."""

    name: str  # of the model
    # begin and end of each interval in one mode, s, and its label, in order; some have no length
    bands: tuple[tuple[float, float, str], ...]
    colours: Mapping[str, str]  # the colour of each label, ``#RRGGBB``
    transitions: tuple[float, ...]  # their times, s, rising
    t: Floats  # shape (n,): times of the values of `strips`, s, rising
    strips: tuple[Strip, ...] = ()

    @property
    def begin(self) -> float:
        """The time of the first row, s."""
        return self.bands[0][0]

    @property
    def end(self) -> float:
        """The time of the last row, s."""
        return self.bands[-1][1]

    def names_at(self, t: Floats, *, after: bool = True) -> list[str]:
        """Return the labels at times (s); at the end of a band that of the next one, or its own.

        ``t``, shape (n,); ``after``: which.
        """
        lasting = [band for band in self.bands if band[1] > band[0]] or [self.bands[-1]]
        ends = np.array([band[1] for band in lasting])
        places = np.searchsorted(ends, t, side="right" if after else "left")
        return [lasting[int(place)][2] for place in np.minimum(places, len(lasting) - 1)]

    @cached_property
    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """By label in the order of first entry: begin and length of its bands that have a length, s."""
        spans: dict[str, list[tuple[float, float]]] = {}
        for begin, end, mode in self.bands:
            if end > begin:
                spans.setdefault(mode, []).append((begin, end - begin))
        return spans

    @property
    def dwell_times(self) -> dict[str, float]:
        """The time spent under each label, s, in the order of first entry."""
        return {mode: sum(length for _, length in pieces) for mode, pieces in self.spans.items()}

    @property
    def marks(self) -> list[float]:
        """The times of transitions to draw, s: of those too close to distinguish, the first."""
        marks: list[float] = []
        for time in self.transitions:
            if not marks or time - marks[-1] > _CLOSE * (self.end - self.begin):
                marks.append(time)
        return marks


# -- Timeline of a run as SVG: modes as coloured bands, below them columns, one strip per unit ---------------

Placing = Callable[[Floats | float], Floats]  # times, s, to points

_WIDTH, _LEFT, _RIGHT = 760.0, 62.0, 132.0  # points
_BAND, _STRIP, _GAP, _FOOT, _TOP = 20.0, 84.0, 8.0, 34.0, 30.0
_SMALL = 10.0  # size of letters
_MOST_LINES, _MOST_NAMED, _LONGEST = 5, 6, 18
_TICKS = 7
_STEPS = (1.0, 2.0, 5.0, 10.0)


def timeline_svg(timeline: Timeline) -> str:
    """Return a timeline as an ``<svg>`` element without scripts, of some ten kilobytes however long the run is."""
    low, high = timeline.begin, float(max(timeline.end, np.nextafter(timeline.begin, np.inf)))
    wide = _WIDTH - _LEFT - _RIGHT

    def place(time: Floats | float) -> Floats:
        return np.asarray(_LEFT + wide * (np.asarray(time) - low) / (high - low))

    colours, strips = timeline.colours, timeline.strips
    stretches = _seen(timeline.bands, place)
    bottom = _TOP + _BAND + (_STRIP + _GAP) * len(strips)
    parts = [_legend(timeline)]
    parts += [_rectangle(a, b, _TOP, _BAND, colours[mode], mode) for a, b, mode in stretches]
    for i, strip in enumerate(strips):
        top = _TOP + _BAND + _GAP + (_STRIP + _GAP) * i
        parts += [_rectangle(a, b, top, _STRIP, colours[mode], "", 0.22) for a, b, mode in stretches]
        parts += _drawn(strip, place(timeline.t), top)
    parts += _axis(low, high, bottom, place)
    return picture(_WIDTH, bottom + _FOOT, parts, f"{timeline.name} over time")


def _seen(bands: Sequence[tuple[float, float, str]], place: Placing) -> list[tuple[float, float, str]]:
    """Return mode bands in points; bands narrower than a point are merged into the first."""
    seen: list[tuple[float, float, str]] = []
    drawn = -np.inf
    ends = place(np.array([band[:2] for band in bands])).tolist()
    for (a, b), (_, _, mode) in zip(ends, bands, strict=True):
        if b <= drawn:
            continue
        if seen and seen[-1][2] == mode and a <= seen[-1][1]:
            seen[-1] = (seen[-1][0], max(b, a + 0.7), mode)
        else:
            seen.append((a, max(b, a + 0.7), mode))
        drawn = max(a, drawn) + 0.7
    return seen


def _rectangle(a: float, b: float, top: float, height: float, colour: str, name: str, share: float = 1.0) -> str:
    title = element("title", escaped(name)) if name else ""
    opacity = {} if share == 1.0 else {"fill_opacity": share}
    return element("rect", title, x=a, y=top, width=b - a, height=height, fill=colour, **opacity)


def _legend(timeline: Timeline) -> str:
    """Name the modes, the longest first."""
    spent = dict.fromkeys([mode for _, _, mode in timeline.bands], 0.0) | timeline.dwell_times
    names = sorted(spent, key=lambda mode: -spent[mode])
    labels = distinct_labels(names[:_MOST_NAMED], _LONGEST + 6)
    parts, x = [], _LEFT
    for i, mode in enumerate(names):
        words = labels.get(mode, "")
        width = 26.0 + width_of(words, _SMALL)
        if i == _MOST_NAMED or x + width > _WIDTH - 60.0:
            parts.append(text(f"and {len(names) - i} more", x, 16.0, _SMALL, "start", fill=palette.SOFT))
            break
        parts.append(element("rect", x=x, y=11.0, width=10, height=10, rx=2, fill=timeline.colours[mode]))
        parts.append(text(words, x + 14.0, 16.0, _SMALL, "start"))
        x += width
    return element("g", parts)


def _drawn(strip: Strip, x: Floats, top: float) -> list[str]:
    """Return the curves of a strip with their scale and their names."""
    values, bottom = strip.values[:_MOST_LINES], top + _STRIP
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-9):
        low, high = low - 1.0, high + 1.0
    room = 0.08 * (high - low)
    scale = (_STRIP - 1.0) / (high - low + 2 * room)
    parts = []
    for value in _ticks(low, high, 3):
        y = bottom - (value - low + room) * scale
        parts.append(element("path", d=f"M{_LEFT:.0f} {y:.1f}H{_WIDTH - _RIGHT:.0f}", stroke="#FFFFFF", stroke_width=1))
        parts.append(text(f"{value:.4g}", _LEFT - 5.0, y, _SMALL, "end", fill=palette.SOFT))
    parts.append(text(strip.unit or "–", 6.0, top + 7.0, _SMALL, "start"))
    labels = distinct_labels(strip.names[:_MOST_LINES], _LONGEST)
    for i, (name, column) in enumerate(zip(strip.names, values, strict=False)):
        colour = palette.LINES[i % len(palette.LINES)]
        d = _path(x, bottom - (column - low + room) * scale)
        parts.append(element("path", d=d, fill="none", stroke=colour, stroke_width=1.4, stroke_linejoin="round"))
        y = top + 8.0 + 14.0 * i
        parts.append(element("path", d=f"M{_WIDTH - _RIGHT + 8:.0f} {y:.1f}h14", stroke=colour, stroke_width=2))
        parts.append(text(labels[name], _WIDTH - _RIGHT + 27.0, y, _SMALL, "start"))
    more = len(strip.names) - _MOST_LINES
    if more > 0:
        y = top + 8.0 + 14.0 * _MOST_LINES
        parts.append(text(f"and {more} more", _WIDTH - _RIGHT + 27.0, y, _SMALL, "start", fill=palette.SOFT))
    return parts


def _path(x: Floats, y: Floats) -> str:
    """Return a curve as a path; of many points the maximum and minimum per step of the picture."""
    steps = int(_WIDTH - _LEFT - _RIGHT)
    if len(x) > 2 * steps:
        which = np.minimum((steps * (x - x[0]) / max(x[-1] - x[0], 1e-300)).astype(int), steps - 1)
        order = np.lexsort((y, which))  # by steps, in each from the highest to the lowest
        ends = np.flatnonzero(np.diff(which[order], prepend=-1, append=steps))
        chosen = np.unique(np.concatenate([order[ends[:-1]], order[ends[1:] - 1]]))
        x, y = x[chosen], y[chosen]
    words, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if np.isfinite(b):
            words.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(words)


def _axis(low: float, high: float, bottom: float, place: Placing) -> list[str]:
    parts = []
    for value in _ticks(low, high, _TICKS):
        x = float(place(value))
        parts.append(element("path", d=f"M{x:.1f} {bottom:.1f}v4", stroke=palette.FAINT, stroke_width=1))
        parts.append(text(f"{value:.6g}", x, bottom + 12.0, _SMALL, fill=palette.SOFT))
    return [*parts, text("time, s", (_LEFT + _WIDTH - _RIGHT) / 2, bottom + 26.0, _SMALL)]


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most ``count`` round numbers in an interval."""
    least = (high - low) / most
    power = 10.0 ** np.floor(np.log10(least))
    step = next(s * power for s in _STEPS if s * power >= least * 0.999)
    first = int(np.ceil(low / step - 1e-9))
    return [float(f"{k * step:.12g}") for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]


# -- Graph of a run: a box for each visited phase or mode, in the order of their first visits --------

MOST: Final = 12  # boxes
OTHERS: Final = "others"
_ROW: Final = (132.0, 46.0)  # px
_COLUMN: Final = (150.0, 34.0)
_BETWEEN: Final = 30.0
_LEVEL: Final = 22.0  # between two edges above or below the boxes
_MARGIN: Final = 10.0
_SPREAD: Final = 0.6  # of a side, over which the ends of edges are spread
_PILL: Final = 16.0
_CLEAR: Final = 4.0  # of a pill between two boxes
_HEAD: Final = 7.0
_NAME, _COUNT = 12.5, 10.5
_GREY: Final = PhaseFill("#C2D0B7")


@dataclass(frozen=True)
class Stay:
    """A visit as the graph needs it: name, length (s), cause."""

    name: str
    duration: float
    cause: str = ""


@dataclass(frozen=True)
class VisitBox:
    """A box: its corner and size in px, number of visits, and time spent in it, s."""

    name: str
    left: float
    top: float
    width: float
    height: float
    visits: int
    spent: float
    fill: PhaseFill


@dataclass(frozen=True)
class VisitEdge:
    """An edge: how often it was taken, its course as points, and the middle of its pill; px."""

    source: str
    target: str
    count: int
    causes: tuple[str, ...]
    course: tuple[tuple[float, float], ...]
    pill: tuple[float, float]

    @property
    def pill_size(self) -> tuple[float, float]:
        """Width and height of the pill with the count; nothing where it was taken once."""
        return (_pill_width(self.count), _PILL) if self.count > 1 else (0.0, 0.0)

    @property
    def words(self) -> str:
        """The count as text."""
        return _times(self.count)


def _times(count: int) -> str:
    return f"{count}×"


def _pill_width(count: int) -> float:
    return width_of(_times(count), _COUNT) + 8.0


@dataclass(frozen=True)
class VisitDiagram:
    """Boxes and edges with their places."""

    boxes: tuple[VisitBox, ...]
    edges: tuple[VisitEdge, ...]
    width: float
    height: float


def visit_diagram(stays: Sequence[Stay], fills: Mapping[str, PhaseFill], narrow: bool = False) -> VisitDiagram:
    """Return the boxes and edges of the visits of a run.

    ``stays``: in order of time; ``fills``: by name; ``narrow``: whether the boxes are in a column. Result: with at most
    :data:`MOST` boxes: of more names those that take least time are one box, whose visits follow each other without an
    edge.
    """
    spent: dict[str, float] = {}
    for stay in stays:
        spent[stay.name] = spent.get(stay.name, 0.0) + stay.duration
    kept = set(spent)
    others = ""
    if len(spent) > MOST:
        kept = set(sorted(spent, key=lambda name: -spent[name])[: MOST - 1])
        others = f"{len(spent) - len(kept)} {OTHERS}"
    sequence: list[Stay] = []
    for stay in stays:
        name = stay.name if stay.name in kept else others
        if sequence and sequence[-1].name == name:
            sequence[-1] = Stay(name, sequence[-1].duration + stay.duration, sequence[-1].cause)
        else:
            sequence.append(Stay(name, stay.duration, stay.cause))
    return _placed(sequence, fills, narrow)


def _placed(stays: Sequence[Stay], fills: Mapping[str, PhaseFill], narrow: bool) -> VisitDiagram:
    names = list(dict.fromkeys(stay.name for stay in stays))
    counts = Counter((one.name, other.name) for one, other in pairwise(stays))
    causes: dict[tuple[str, str], list[str]] = {}
    for one, other in pairwise(stays):
        own = causes.setdefault((one.name, other.name), [])
        if other.cause and other.cause not in own:
            own.append(other.cause)
    place = {name: number for number, name in enumerate(names)}
    straight = [pair for pair in counts if place[pair[1]] == place[pair[0]] + 1]
    sides: dict[int, list[tuple[str, str]]] = {1: [], -1: []}
    for pair in sorted(counts, key=lambda pair: (abs(place[pair[1]] - place[pair[0]]), place[pair[0]])):
        if pair not in straight:
            sides[1 if place[pair[1]] > place[pair[0]] else -1].append(pair)
    width, height = _COLUMN if narrow else _ROW
    pills = [_PILL if narrow else _pill_width(counts[pair]) for pair in straight if counts[pair] > 1]
    between = max(_BETWEEN, *(size + _CLEAR for size in pills), 0.0)
    pitch = (height if narrow else width) + between
    before = _MARGIN + _LEVEL * len(sides[1]) + (_PILL if sides[1] else 0.0)
    spent, visits = dict.fromkeys(names, 0.0), Counter(stay.name for stay in stays)
    for stay in stays:
        spent[stay.name] += stay.duration
    boxes = tuple(
        VisitBox(
            name,
            before if narrow else _MARGIN + pitch * place[name],
            _MARGIN + pitch * place[name] if narrow else before,
            width,
            height,
            visits[name],
            spent[name],
            fills.get(name, _GREY),
        )
        for name in names
    )
    ends = _ends(sides, place)
    along, across = (height, width) if narrow else (width, height)
    edges = []
    for pair, count in counts.items():
        first, last = _MARGIN + pitch * place[pair[0]], _MARGIN + pitch * place[pair[1]]
        if pair in straight:
            middle = before + 0.5 * across
            course = [(first + along, middle), (last, middle)]
            pill = (first + along + 0.5 * between, middle - 12.0)
        else:
            side = 1 if pair in sides[1] else -1
            level = (sides[side].index(pair) + 1) * _LEVEL
            edge = before if side > 0 else before + across
            outer = edge - side * level
            start = first + along * (0.5 + _SPREAD * (ends[pair, "out"] - 0.5))
            stop = last + along * (0.5 + _SPREAD * (ends[pair, "in"] - 0.5))
            course = [(start, edge), (start, outer), (stop, outer), (stop, edge)]
            pill = (0.5 * (start + stop), outer)
        turned = tuple((y, x) if narrow else (x, y) for x, y in course)
        edges.append(VisitEdge(*pair, count, tuple(causes[pair]), turned, (pill[1], pill[0]) if narrow else pill))
    length = 2.0 * _MARGIN + pitch * len(names) - between
    thick = before + across + _LEVEL * len(sides[-1]) + (_PILL if sides[-1] else 0.0) + _MARGIN
    size = (thick, length) if narrow else (length, thick)
    return VisitDiagram(boxes, tuple(edges), *size)


def _ends(
    sides: Mapping[int, Sequence[tuple[str, str]]], place: Mapping[str, int]
) -> dict[tuple[tuple[str, str], str], float]:
    """Return where each end of an edge is on the side of its box, 0 to 1: nested edges do not cross there."""
    found: dict[tuple[tuple[str, str], str], float] = {}
    for pairs in sides.values():
        at: dict[str, list[tuple[tuple[bool, int], tuple[str, str], str]]] = {}
        for pair in pairs:
            far = place[pair[1]] - place[pair[0]]
            at.setdefault(pair[0], []).append((_order(far), pair, "out"))
            at.setdefault(pair[1], []).append((_order(-far), pair, "in"))
        for own in at.values():
            for number, (_, pair, end) in enumerate(sorted(own)):
                found[pair, end] = (number + 1) / (len(own) + 1)
    return found


def _order(far: int) -> tuple[bool, int]:
    """Return a key by which ends are sorted: those from before, the nearest first, then those from behind."""
    return far > 0, -abs(far) if far > 0 else abs(far)


def visit_graph_svg(diagram: VisitDiagram, title: str) -> str:
    """Return the graph of a run as an ``<svg>`` element."""
    lines = element("rect", width=2, height=7, fill="#0003")
    dots = element("circle", cx=3, cy=3, r=1.1, fill="#0004")
    parts = [element("defs", [_pattern("lines", lines, 7, "rotate(45)"), _pattern("dots", dots, 6, "")])]
    for edge in diagram.edges:
        parts += _edge(edge)
    for box in diagram.boxes:
        parts.append(_box(box))
    return picture(diagram.width, diagram.height, parts, title)


def _pattern(name: str, content: str, size: int, turn: str) -> str:
    turned = {"patternTransform": turn} if turn else {}
    return element(
        "pattern", content, id=f"visit-{name}", width=size, height=size, patternUnits="userSpaceOnUse", **turned
    )


def _edge(edge: VisitEdge) -> Iterator[str]:
    (x0, y0), (x1, y1) = edge.course[-2:]
    long = max(abs(x1 - x0) + abs(y1 - y0), 1e-9)
    ux, uy = (x1 - x0) / long, (y1 - y0) / long
    neck = (x1 - _HEAD * ux, y1 - _HEAD * uy)
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (*edge.course[:-1], neck))
    head = (
        f"M{x1:.1f} {y1:.1f}L{neck[0] - 3 * uy:.1f} {neck[1] + 3 * ux:.1f}"
        f"L{neck[0] + 3 * uy:.1f} {neck[1] - 3 * ux:.1f}Z"
    )
    told = "; ".join(edge.causes)
    yield element(
        "g",
        [
            element("title", escaped(f"{edge.source} → {edge.target}" + (f": {told}" if told else ""))),
            element("path", d=line, fill="none", stroke=SOFT, stroke_width=1.4, stroke_linejoin="round"),
            element("path", d=head, fill=SOFT),
        ],
    )
    if edge.count > 1:
        (x, y), (width, height) = edge.pill, edge.pill_size
        yield element("rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=8, fill="#FFFFFF")
        yield text(edge.words, x, y, _COUNT, fill=SOFT)


def _box(box: VisitBox) -> str:
    place: dict[str, Any] = {"x": box.left, "y": box.top, "width": box.width, "height": box.height, "rx": 7}
    texture = [element("rect", **place, fill=f"url(#visit-{box.fill.texture})")] if box.fill.texture else []
    size = min(_NAME, _NAME * (box.width - 8.0) / max(width_of(box.name, _NAME, bold=True), 1e-9))
    middle = box.left + 0.5 * box.width
    return element(
        "g",
        [
            element("title", escaped(box.name)),
            element("rect", **place, fill=box.fill.colour),
            *texture,
            text(box.name, middle, box.top + 0.33 * box.height, size, font_weight="bold", fill=TEXT),
            text(dwell(box), middle, box.top + 0.74 * box.height, _COUNT, fill=TEXT),
        ],
        class_="visit",
    )


def dwell(box: VisitBox) -> str:
    """Return number of visits and time spent in a box as text."""
    seconds = box.spent
    for least, factor, unit in ((0.9995, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs")):
        if seconds >= least:
            value = seconds * factor
            return f"{box.visits}× · {f'{value:.2f}' if unit == 's' else f'{value:.3g}'} {unit}"
    return f"{box.visits}×"
