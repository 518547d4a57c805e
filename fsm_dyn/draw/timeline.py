"""Timeline of a run as data, and as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import abridged, shortened
from fsm_dyn.draw.svg import element, escaped, picture, text, width_of

# -- Timeline of a run as data -------------------------------------------------------------------------------
#
# Timeline of a run as data: bands of modes, transitions, columns by unit; its back ends only draw it.

Floats = NDArray[np.float64]
_CLOSE = 0.002  # of the run: transitions closer than this are drawn as one


@dataclass(frozen=True)
class Strip:
    """Columns of one unit: their names, and their values, shape (len(names), n)."""

    unit: str
    names: tuple[str, ...]
    values: Floats


@dataclass(frozen=True)
class Timeline:
    """A run over time.

    Attributes
    ----------
    name : str
        Of the model.
    bands : tuple of (float, float, str)
        Begin and end of each interval in one mode, s, and its label, in order; some have no length.
    colours : mapping of str to str
        The colour of each label, ``#RRGGBB``.
    transitions : tuple of float
        Their times, s, rising.
    t : ndarray, shape (n,)
        Times of the values of `strips`, s, rising.
    strips : tuple of Strip
    """

    name: str
    bands: tuple[tuple[float, float, str], ...]
    colours: Mapping[str, str]
    transitions: tuple[float, ...]
    t: Floats
    strips: tuple[Strip, ...] = ()

    @property
    def begin(self) -> float:
        """The time of the first row, s."""
        return self.bands[0][0]

    @property
    def end(self) -> float:
        """The time of the last row, s."""
        return self.bands[-1][1]

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
    """Name the modes, those that lasted longest first."""
    spent = dict.fromkeys([mode for _, _, mode in timeline.bands], 0.0) | timeline.dwell_times
    names = sorted(spent, key=lambda mode: -spent[mode])
    parts, x = [], _LEFT
    for i, mode in enumerate(names):
        words = abridged(mode, _LONGEST + 6)
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
    for i, (name, column) in enumerate(zip(strip.names, values, strict=False)):
        colour = palette.LINES[i % len(palette.LINES)]
        d = _path(x, bottom - (column - low + room) * scale)
        parts.append(element("path", d=d, fill="none", stroke=colour, stroke_width=1.4, stroke_linejoin="round"))
        y = top + 8.0 + 14.0 * i
        parts.append(element("path", d=f"M{_WIDTH - _RIGHT + 8:.0f} {y:.1f}h14", stroke=colour, stroke_width=2))
        parts.append(text(shortened(name, _LONGEST), _WIDTH - _RIGHT + 27.0, y, _SMALL, "start"))
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
