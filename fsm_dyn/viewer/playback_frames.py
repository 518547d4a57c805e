"""Display frames of a recorded run: constant payload, one frame per row, strip charts, event log."""

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

CHARTED: Final = 1500  # rows in the strip charts
MAX_DETAILS: Final = 60  # transitions in one message


class PlaybackFrames:
    """Encoder of the display frames of a recorded run.

    Parameters
    ----------
    run : RecordedRun
    number : int
        Number of the run, which the page compares with that of frames.
    """

    def __init__(self, run: RecordedRun, number: int = 1) -> None:
        self.run, self.number = run, number
        for states in run.states:
            run.encoder.evaluator.number(states)
        self._payload: dict[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """Return the constant payload of the run."""
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
        """Return the display frame of a row, see :meth:`.FrameEncoder.frame`.

        Its one sample contains clock, s, mode and all quantities.
        """
        run = self.run
        instant, clock = run.at(number), float(run.clock[number])
        made = int(np.searchsorted(run.when, clock, side="right"))
        head = (self.number, number, float(run.t[number]), PAUSED, 0, made)
        values = run.encoder.values(instant.states, instant.x, instant.c)
        sample = np.concatenate([[clock, run.encoder.evaluator.number(instant.states)], values])
        return run.encoder.frame(head, instant.states, instant.x, instant.c, instant.row, [sample])

    def readers(self) -> int:
        """Return the number of guard lists so far."""
        return len(self.run.encoder.evaluator.readers)

    def transition_details(self, first: int, count: int = MAX_DETAILS) -> list[dict[str, Any]]:
        """Return the log entries of at most ``count`` transitions from number ``first``."""
        last = min(first + count, len(self.run.when))
        return [entry(k, self.run.transition(k)) for k in range(max(0, first), last)]

    def _modes(self) -> Integers:
        """Return the number in the page's mode graph of every mode of the run."""
        return np.array([self.run.encoder.evaluator.number(states) for states in self.run.states], dtype=np.int64)

    def _bands(self) -> dict[str, str]:
        """Return the begin of each mode, s of the clock, and its number."""
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
        """Return all quantities at some rows, shape (quantities, len(chosen))."""
        run = self.run
        rows = (run.at(int(number)) for number in chosen)
        return np.array([run.encoder.values(one.states, one.x, one.c) for one in rows]).T

    def charts(self, chosen: Integers, values: Floats) -> dict[str, Any]:
        """Return the payload of the strip charts; ``values`` are those of :meth:`sampled`."""
        run = self.run
        return {
            "kind": "charts",
            "number": self.number,
            "times": packed(run.clock[chosen]),
            "modes": packed(self._modes()[run.mode[chosen]], "<i4"),
            "values": packed(values, "<f4"),
        }

    def chosen(self, count: int, low: float = -np.inf, high: float = np.inf) -> Integers:
        """Return the numbers of about ``count`` rows between two times of the clock, s.

        They are evenly spaced over the clock, on both sides of transitions, and one beyond either end.
        """
        run = self.run
        first, last = run.number(low), run.number(high, after=True)
        even = np.linspace(run.clock[first], run.clock[last], max(2, count // 2))
        numbers = np.searchsorted(run.clock, even, side="right") - 1
        jumps = first + np.flatnonzero(np.diff(run.mode[first : last + 1]))
        jumps = jumps[:: max(1, -(-4 * len(jumps) // count))]
        return np.unique(np.clip(np.concatenate([numbers, jumps, jumps + 1, [first, last]]), first, last))


def packed(values: Floats | Integers, kind: str = "<f8") -> str:
    """Return numbers as base 64 of their bytes (``base64_arrays.js`` decodes them)."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def plain_json(data: Any) -> str:
    """Return data as JSON for a ``<script>`` element: no character in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
