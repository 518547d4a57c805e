"""Event log of a live run: transitions with causes, visit counts and dwell times of modes."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick_columns import FIXED
from fsm_dyn.results.result_builder import transition_of
from fsm_dyn.results.transitions import Transition
from fsm_dyn.simulation.run_arrays import read_transitions
from fsm_dyn.viewer.row_evaluation import MODE, TIME, Floats

KEPT: Final = 300  # latest entries, sent to a page that joins
_TICK: Final = FIXED.index("tick")
MAX_NEW: Final = 40  # entries per call, latest first; earlier ones are only counted


class EventLog:
    """Log of a session; call :meth:`new_entries` before the session's ring buffers overflow.

    ``labels`` are the names of modes for display. A handover is logged but counts as no visit.
    """

    def __init__(self, session: LiveSession, labels: Labels) -> None:
        self._session = session
        self._labels = labels
        self._asked = 0
        self.entries: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.visits: Counter[str] = Counter()
        self.crossings: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}
        self._last: tuple[float, str] | None = None

    def new_entries(self, automaton: Automaton) -> list[dict[str, Any]]:
        """Return the entries of the transitions since the last call, oldest first."""
        records, following = self._session.records(self._asked)
        first, self._asked = following - len(records), following
        if not len(records):
            return []
        found = read_transitions(records[:, 1:], len(automaton.rows), len(automaton.terms.layout.u))
        news = []
        for i, record in enumerate(records):
            names, states = self._session.modes_at(record[0])
            source, target = (self._labels.of(states[int(end)]) for end in (found.source[i], found.target[i]))
            if found.source[i] == found.target[i] or source != target:  # else a handover
                self.visits[target] += 1
                self.crossings[source, target] += 1
            if i < len(records) - MAX_NEW:
                continue
            news.append(entry(first + i, transition_of(automaton, names, found, states, i, self._labels)))
        self.entries.extend(news)
        return news

    def add_dwell_times(self, rows: Floats) -> None:
        """Add the time of new rows (one per tick) to the dwell times of their modes; a reset keeps them."""
        for row in rows:
            name = self._labels.of(self._session.modes_at(row[_TICK])[1][int(row[MODE])])
            t = float(row[TIME])
            if self._last is not None and t > self._last[0]:
                self.seconds[name] = self.seconds.get(name, 0.0) + t - self._last[0]
            self._last = (t, name)

    def totals(self) -> dict[str, Any]:
        """Return visit counts of modes and edges, and the dwell time of every mode, s."""
        return {
            "visits": dict(self.visits),
            "crossings": [[a, b, count] for (a, b), count in self.crossings.items()],
            "seconds": dict(self.seconds),
            "transitions": self._asked,
        }


def entry(number: int, x: Transition) -> dict[str, Any]:
    """Return the log entry of a transition.

    Parameters
    ----------
    number : int
        Of the transition, from 0.
    x : Transition
        The transition.
    """
    return {
        "number": number,
        "t": x.time,
        "source": x.source_label or x.source,
        "target": x.target_label or x.target,
        "handover": x.is_handover,
        "cause": x.cause,
        "impulse": {name: [float(v) for v in np.atleast_1d(values)] for name, values in x.impulse.items()},
        "lost": x.energy_lost,
        "why": list(x.selection),
        "guards": [list(item) for item in x.fired],
    }
