"""A film as a page is told of it: once all that does not change, then frames of the instants it asks for."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any, Final

import numpy as np

from fsm_dyn.live.run_controller import PAUSED
from fsm_dyn.viewer.event_log import entry
from fsm_dyn.viewer.recorded_run import Integers, RecordedRun
from fsm_dyn.viewer.row_evaluation import Floats

CHARTED: Final = 1500  # instants in the strip charts
MAX_DETAILS: Final = 60  # transitions told at once


class PlaybackFrames:
    """Shows a film.

    Parameters
    ----------
    film : Film
    number : int
        Of the run, for the page to tell frames apart.
    """

    def __init__(self, run: RecordedRun, number: int = 1) -> None:
        self.run, self.number = run, number
        for states in run.states:
            run.encoder.evaluator.number(states)
        self._payload: dict[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """Return everything about the film but its frames."""
        if self._payload is None:
            run = self.run
            self._payload = {
                "kind": "model",
                "number": self.number,
                **run.encoder.payload(),
                "port": "",
                "speed": 1.0,
                "schedule": None,
                "period": 0.0,
                "recording": "",
                "transitions": [],
                "totals": self._totals(),
                "playback": {
                    "source": run.source,
                    "span": [float(run.clock[0]), float(run.clock[-1])],
                    "rows": len(run.t),
                    "when": packed(run.when),
                    "bands": self._bands(),
                },
            }
        return self._payload

    def frame(self, number: int) -> Floats:
        """Return the instant with a number, see :meth:`.sight.Sight.frame`.

        Its one sample is the time of the clock, the mode and all quantities there.
        """
        run = self.run
        instant, clock = run.at(number), float(run.clock[number])
        made = int(np.searchsorted(run.when, clock, side="right"))
        head = (self.number, number, float(run.t[number]), PAUSED, 0, made)
        values = run.encoder.values(instant.states, instant.x, instant.c)
        sample = np.concatenate([[clock, run.encoder.evaluator.number(instant.states)], values])
        return run.encoder.frame(head, instant.states, instant.x, instant.c, instant.row, [sample])

    def readers(self) -> int:
        """Return how many lists of guards there are by now."""
        return len(self.run.encoder.evaluator.readers)

    def transition_details(self, first: int, count: int = MAX_DETAILS) -> list[dict[str, Any]]:
        """Return transitions from number ``first`` on, as the log tells them."""
        last = min(first + count, len(self.run.when))
        return [entry(k, self.run.transition(k)) for k in range(max(0, first), last)]

    def _modes(self) -> Integers:
        """Return the number in the page's mode graph of every mode of the film."""
        return np.array([self.run.encoder.evaluator.number(states) for states in self.run.states], dtype=np.int64)

    def _bands(self) -> dict[str, str]:
        """Return when each mode begins, and its number."""
        run = self.run
        modes = self._modes()[run.mode]
        begins = np.concatenate([[0], np.flatnonzero(np.diff(modes)) + 1])
        return {"begins": packed(run.clock[begins]), "modes": packed(modes[begins], "<i4")}

    def _totals(self) -> dict[str, Any]:
        run = self.run
        names = [run.encoder.evaluator.automaton.labels.of(states) for states in run.states]
        pairs = Counter((names[a], names[b]) for a, b in run.changes.tolist() if a == b or names[a] != names[b])
        visits: Counter[str] = Counter()
        for (_, target), count in pairs.items():
            visits[target] += count
        spent = np.bincount(run.mode[1:], np.diff(run.clock), len(names)) if len(run.mode) > 1 else np.zeros(0)
        seconds: Counter[str] = Counter()
        for name, s in zip(names, spent.tolist(), strict=False):
            if s > 0.0:
                seconds[name] += s
        return {
            "visits": dict(visits),
            "crossings": [[a, b, count] for (a, b), count in pairs.items()],
            "seconds": dict(seconds),
            "transitions": len(run.when),
        }

    def sampled(self, chosen: Integers) -> Floats:
        """Return all quantities at some instants, shape (quantities, len(chosen))."""
        run = self.run
        rows = (run.at(int(number)) for number in chosen)
        return np.array([run.encoder.values(one.states, one.x, one.c) for one in rows]).T

    def charts(self, chosen: Integers, values: Floats) -> dict[str, Any]:
        """Return what is charted, for the page; ``values`` are those of :meth:`sampled`."""
        run = self.run
        return {
            "kind": "charts",
            "number": self.number,
            "times": packed(run.clock[chosen]),
            "modes": packed(self._modes()[run.mode[chosen]], "<i4"),
            "values": packed(values, "<f4"),
        }

    def chosen(self, count: int, low: float = -np.inf, high: float = np.inf) -> Integers:
        """Return the numbers of about so many instants between two times of the clock (s).

        They are even over the clock, on both sides of transitions, and one beyond either end.
        """
        run = self.run
        first, last = run.number(low), run.number(high, after=True)
        even = np.linspace(run.clock[first], run.clock[last], max(2, count // 2))
        numbers = np.searchsorted(run.clock, even, side="right") - 1
        jumps = first + np.flatnonzero(np.diff(run.mode[first : last + 1]))
        jumps = jumps[:: max(1, -(-4 * len(jumps) // count))]
        return np.unique(np.clip(np.concatenate([numbers, jumps, jumps + 1, [first, last]]), first, last))


def packed(values: Floats | Integers, kind: str = "<f8") -> str:
    """Return numbers as a page unpacks them: their bytes, in base 64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def plain_json(data: Any) -> str:
    """Return data as JSON that may stand in a page: nothing in it can end a script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
