"""Legend of mode colours, in one line of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fsm_dyn.graphics.diagram import abridged
from fsm_dyn.plot import style

_LONGEST = (60, 44, 32)  # characters of a name: as many as leave room for all modes, else the last
_BEFORE = 6  # characters that are kept before the first difference of names
_SIZE = 8.5  # points
_HANDLE, _GAP = 1.8, 1.2  # the coloured patch with its distance, and the distance of entries, in letters' heights
_POINTS_PER_INCH = 72.0


def mode_legend(
    picture: Figure, weights: Mapping[str, float], colours: Mapping[str, str], left: float, right: float, y: float
) -> None:
    """Write the modes in one line, those of greatest weight if there is no room for all.

    Parameters
    ----------
    weights : mapping of str to float
        Modes in the order of display, with their shares of the figure.
    colours : Mapping[str, str]
        Colours by mode.
    left, right : float
        Begin and greatest end of the line, inches.
    y : float
        Its height in the picture, as a fraction.
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


def distinct_labels(names: Sequence[str], longest: int) -> dict[str, str]:
    """Return names cut to a length; those that would read the same begin where they differ.

    Parameters
    ----------
    names : sequence of str
    longest : int
        Characters of a label.

    Returns
    -------
    dict of str to str
        Labels by name.
    """
    labels = {name: abridged(name, longest) for name in names}
    for label in {label for label in labels.values() if list(labels.values()).count(label) > 1}:
        same = [name for name, own in labels.items() if own == label]
        differs = next(k for k, letters in enumerate(zip_longest(*same)) if len({*letters}) > 1)
        begin = max(differs - _BEFORE, 0)
        cut = {name: abridged(f"…{name[begin:]}", longest) for name in same}
        labels |= cut if len({*cut.values()}) == len(same) else {name: name for name in same}
    return labels


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
    return (style.text_width(text, _SIZE) + (_HANDLE + _GAP) * _SIZE) / _POINTS_PER_INCH


def _more(count: int) -> str:
    return f"and {count} more"
