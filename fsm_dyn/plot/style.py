"""Style of all figures, saving, and the legend of mode colours."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, ScalarFormatter

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import whole_file
from fsm_dyn.draw.graph_layout import abridged, distinct_labels, shortened
from fsm_dyn.draw.svg import FAINT, FONT, INK

# -- Style of all figures, and saving ------------------------------------------------------------------------

FORMATS = ("png", "svg", "pdf")
_PREFIXED = frozenset({"m", "s", "m/s", "N", "J", "W"})
_PREFIXES = ((1e3, "m"), (1e6, "µ"), (1e9, "n"))
_SMALL = 0.1  # below, values are written with a prefix

# Any: Matplotlib types the keys as a long list of literals.
_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a user's text is a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.direction": "out",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsm_dyn",  # the same picture gives the same file
}


@contextmanager
def settings() -> Iterator[None]:
    """Apply the style inside the block; the user's settings are restored."""
    with matplotlib.rc_context(_SETTINGS):
        yield


class NotebookFigure(Figure):
    """A figure shown by a notebook as the last line of a cell, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with settings():
            self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of the given size in inches, without a window."""
    figure = NotebookFigure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path, kind: str | None = None) -> Path:
    """Write a figure in the format ``kind``, by default that of the path's suffix, and return the path.

    Raises
    ------
    InputError
        If the format is not one of :data:`FORMATS`.
    """
    target = Path(path)
    kind = kind or target.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(
            f"a figure cannot be written as '{target.name}'",
            found=kind or "no suffix",
            allowed=", ".join(f".{name}" for name in FORMATS),
        )
    # Without a date the same run writes the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with settings(), whole_file(target) as temporary:
        figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)
    return target


@lru_cache(maxsize=4096)  # lists and graphs say the same again and again
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a line of text at a font size, both in points."""
    if not text.strip():
        return 0.0
    font = FontProperties(family=FONT, size=size, weight=weight)
    path = TextPath((0, 0), text.replace("$", "S"), prop=font)
    drawn = path.vertices[path.codes != TextPath.CLOSEPOLY, 0]
    return float(np.ptp(drawn))  # of the control points: a curve is within them


def fitted(text: str, room: float, size: float = 8.0, cut: Callable[[str, int], str] = shortened) -> str:
    """Return a text cut to a width, inches, at a font size, points."""
    fits, length = 1, len(text)  # what fits, and what may
    while fits < length:
        middle = (fits + length + 1) // 2
        if text_width(cut(text, middle), size) <= 72.0 * room:
            fits = middle
        else:
            length = middle - 1
    return cut(text, fits)


def fitted_apart(names: Sequence[str], room: float, size: float = 8.0) -> dict[str, str]:
    """Return names cut to a width, inches, at a font size, points, and still different from each other."""
    widest = min((len(fitted(name, room, size, abridged)) for name in names), default=1)
    longest = max(widest, max(map(len, names), default=1))
    while longest > widest:
        labels = distinct_labels(names, longest)
        if max(text_width(label, size) for label in labels.values()) <= 72.0 * room:
            return labels
        longest -= 1
    return distinct_labels(names, max(longest, 1))


def labelled(name: str, unit: str) -> str:
    """Return the label of an axis."""
    return f"{name}, {unit}" if unit else name


def prefixed(unit: str, largest: float) -> tuple[float, str]:
    """Return the factor and the unit with which values up to ``largest`` (of that unit) are numbers near one.

    Only units that take a prefix of SI as they are written (``m``, ``s``, ``m/s``, ``N``, ``J``, ``W``) change.
    """
    if unit in _PREFIXED and np.isfinite(largest) and 0.0 < largest < _SMALL:
        factor, prefix = next((pair for pair in _PREFIXES if largest * pair[0] >= _SMALL), _PREFIXES[-1])
        return factor, prefix + unit
    return 1.0, unit


def plain_ticks(axis: Axis, largest: float) -> None:
    """Label an axis of values up to ``largest`` in whole numbers: no factor or offset is written at its end."""
    if 1e-4 <= largest < 1e6:
        formatter = ScalarFormatter(useOffset=False)
        formatter.set_scientific(False)
        axis.set_major_formatter(formatter)
    else:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}".replace("-", "\N{MINUS SIGN}")))


def strong(colour: str) -> str:
    """Return the colour of an area, darkened for lines."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{int(0.78 * part):02X}" for part in (red, green, blue))


def chip(colour: str) -> dict[str, Any]:
    """Return the box behind a text in the colour of a mode."""
    return {"facecolor": colour, "edgecolor": "none", "pad": 1.6}


# -- Legend of mode colours, in one line of a figure ---------------------------------------------------------

_LONGEST = (60, 44, 32)  # characters of a name: as many as leave room for all modes, else the last
_SIZE = 8.5  # points
_HANDLE, _GAP = 1.8, 1.2  # the coloured patch with its distance, and the distance of entries, in letters' heights
_POINTS_PER_INCH = 72.0


def mode_legend(
    picture: Figure, weights: Mapping[str, float], colours: Mapping[str, str], left: float, right: float, y: float
) -> None:
    """Write the modes in one line, those of greatest weight if there is no room for all.

    ``weights``: modes in the order of display, with their shares of the figure; ``left``, ``right``: begin and greatest
    end of the line, inches; ``y``: its height in the picture, as a fraction.
    """
    for longest in _LONGEST:
        shown = _fitting(weights, longest, right - left)
        if len(shown) == len(weights):
            break
    labels = distinct_labels([name for name in weights if name in shown], longest)
    handles = [Patch(facecolor=colours[name], label=label) for name, label in labels.items()]
    if len(shown) < len(weights):
        handles.append(Patch(facecolor="none", label=_more(len(weights) - len(shown))))
    picture.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(left / picture.get_figwidth(), y),
        ncols=max(len(handles), 1),
        fontsize=_SIZE,
        handlelength=1.2,
        handletextpad=_HANDLE - 1.2,
        handleheight=0.9,
        columnspacing=_GAP,
        borderaxespad=0.0,
        borderpad=0.0,
    )


def _fitting(weights: Mapping[str, float], longest: int, room: float) -> set[str]:
    """Return the modes that fit (inches) with names of a length, by weight, with room for the count of the others."""
    fitting: set[str] = set()
    taken = 0.0
    for name in sorted(weights, key=lambda name: -weights[name]):
        taken += _width(abridged(name, longest))
        others = len(weights) - len(fitting) - 1
        if taken + (_width(_more(others)) if others else 0.0) > room and fitting:
            break
        fitting.add(name)
    return fitting


def _width(text: str) -> float:
    """Return the width of an entry in inches."""
    return (text_width(text, _SIZE) + (_HANDLE + _GAP) * _SIZE) / _POINTS_PER_INCH


def _more(count: int) -> str:
    return f"and {count} more"
