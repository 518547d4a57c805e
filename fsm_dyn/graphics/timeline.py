"""Timeline of a run as data: bands of modes, transitions, columns by unit; its back ends only draw it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
