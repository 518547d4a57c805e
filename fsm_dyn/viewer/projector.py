"""A film as a page is told of it: once all that does not change, then frames of the instants it asks for."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import numpy as np

from fsm_dyn.live.control import PAUSED
from fsm_dyn.viewer.film import Film
from fsm_dyn.viewer.instant import Floats
from fsm_dyn.viewer.story import entry

CHARTED: Final = 1500  # instants in the strip charts of the whole run
WORDS: Final = 60  # transitions told at once
DIGITS: Final = 6  # of charted values


class Projector:
    """Shows a film.

    Parameters
    ----------
    film : Film
    number : int
        Of the run, for the page to tell frames apart.
    """

    def __init__(self, film: Film, number: int = 1) -> None:
        self.film, self.number = film, number
        for states in film.states:
            film.sight.instants.number(states)
        self._told: dict[str, Any] | None = None

    def told(self) -> dict[str, Any]:
        """Return everything about the film but its frames."""
        if self._told is None:
            film = self.film
            charts = self._charts()  # modes in the charts are then known
            self._told = {
                "kind": "model",
                "number": self.number,
                **film.sight.told(),
                "port": "",
                "speed": 1.0,
                "schedule": None,
                "period": 0.0,
                "recording": "",
                "story": [],
                "totals": self._totals(),
                "film": {
                    "source": film.source,
                    "span": [float(film.clock[0]), float(film.clock[-1])],
                    "rows": len(film.t),
                    "bands": self._bands(),
                    "changes": self._changes(),
                    "charts": charts,
                },
            }
        return self._told

    def frame(self, number: int) -> Floats:
        """Return the instant with a number, see :meth:`.sight.Sight.frame`.

        Its one sample is the time of the clock, the mode and all quantities there.
        """
        film = self.film
        instant, clock = film.at(number), float(film.clock[number])
        made = int(np.searchsorted(film.when, clock, side="right"))
        head = (self.number, number, float(film.t[number]), PAUSED, 0, made)
        values = film.sight.values(instant.states, instant.x, instant.c)
        sample = np.concatenate([[clock, film.sight.instants.number(instant.states)], values])
        return film.sight.frame(head, instant.states, instant.x, instant.c, instant.row, [sample])

    def readers(self) -> int:
        """Return how many lists of guards there are by now."""
        return len(self.film.sight.instants.readers)

    def words(self, first: int, count: int = WORDS) -> list[dict[str, Any]]:
        """Return transitions from number ``first`` on, as the log tells them."""
        last = min(first + count, len(self.film.when))
        return [entry(k, self.film.tell(k)) for k in range(max(0, first), last)]

    def _modes(self) -> list[int]:
        """Return the number in the page's mode graph of every mode of the film."""
        return [self.film.sight.instants.number(states) for states in self.film.states]

    def _bands(self) -> list[list[float]]:
        """Return when each mode begins, and its number."""
        film, numbers = self.film, self._modes()
        begins = np.concatenate([[0], np.flatnonzero(np.diff(film.mode)) + 1])
        return [[float(film.clock[k]), numbers[film.mode[k]]] for k in begins]

    def _changes(self) -> list[list[float]]:
        """Return time, source and target of every transition."""
        numbers = self._modes()
        return [[float(t), numbers[a], numbers[b]] for t, (a, b) in zip(self.film.when, self.film.changes, strict=True)]

    def _totals(self) -> dict[str, Any]:
        film = self.film
        names = [film.sight.instants.automaton.name_of(states).name for states in film.states]
        pairs = Counter((names[a], names[b]) for a, b in film.changes.tolist())
        visits: Counter[str] = Counter()
        for (_, target), count in pairs.items():
            visits[target] += count
        spent = np.bincount(film.mode[1:], np.diff(film.clock), len(names)) if len(film.mode) > 1 else np.zeros(0)
        return {
            "visits": dict(visits),
            "crossings": [[a, b, count] for (a, b), count in pairs.items()],
            "seconds": {name: float(s) for name, s in zip(names, spent, strict=False) if s > 0.0},
            "transitions": len(film.when),
        }

    def _charts(self) -> dict[str, Any]:
        """Return all quantities at some instants, evenly over the clock and on both sides of jumps."""
        film = self.film
        chosen = self.chosen(CHARTED)
        modes, values = self._modes(), []
        for k in chosen:
            instant = film.at(int(k))
            values.append(film.sight.values(instant.states, instant.x, instant.c))
        table = np.array(values).T
        return {
            "times": film.clock[chosen].tolist(),
            "modes": [modes[film.mode[k]] for k in chosen],
            "values": [[rounded(value) for value in row] for row in table.tolist()],
        }

    def chosen(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the numbers of about so many instants: even over the clock, and those beside transitions."""
        film = self.film
        even = np.linspace(film.clock[0], film.clock[-1], max(2, count // 2))
        numbers = np.searchsorted(film.clock, even, side="right") - 1
        jumps = np.flatnonzero(np.diff(film.mode))
        jumps = jumps[:: max(1, -(-4 * len(jumps) // count))]
        found = np.concatenate([numbers, jumps, jumps + 1, [0, len(film.clock) - 1]])
        return np.unique(np.clip(found, 0, len(film.clock) - 1))


def rounded(value: float) -> float | None:
    """Return a number short enough for a page to load, None where it is none."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def plain_json(data: Any) -> str:
    """Return data as JSON that may stand in a page: nothing in it can end a script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
