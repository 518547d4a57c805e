"""Phases of a live run, followed from tick to tick, and their graph so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.draw.run_diagrams import Stay, visit_diagram
from fsm_dyn.draw.svg import PhaseFill, phase_fills
from fsm_dyn.language.model import Mechanism
from fsm_dyn.page.scene_drawing import TIME, Floats, RowEvaluator
from fsm_dyn.page.story import graph_payload
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.phase_rules import PhaseFollower, phase_rules
from fsm_dyn.run.phase_visits import NO_PHASE
from fsm_dyn.run.visits import UNNAMED

KEPT: Final = 4000  # latest visits in the graph


def fills_of(mechanism: Mechanism) -> Mapping[str, PhaseFill]:
    """Return the fills of the phases of a model, and of none, as those of its runs."""
    return phase_fills({**{phase.name: phase.colour for phase in mechanism.phases.values()}, UNNAMED: "grey"})


def phases_payload(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return name, text and fill of no phase and of the phases of a model, in this order; empty without any."""
    fills = fills_of(mechanism)
    texts = {UNNAMED: "", **{phase.name: phase.text for phase in mechanism.phases.values()}}
    found = [
        {"name": name, "text": text, "fill": [fills[name].colour, fills[name].texture]} for name, text in texts.items()
    ]
    return found if mechanism.phases else []


class LivePhases:
    """Follows the phases of a live run by its rows, one per tick: a change is seen at the end of its tick.

    Parameters
    ----------
    evaluator : RowEvaluator
        Of a model with phases.
    """

    def __init__(self, evaluator: RowEvaluator) -> None:
        rules = phase_rules(evaluator.automaton)
        assert rules is not None
        self._evaluator, self._rules, self._follower = evaluator, rules, PhaseFollower(rules)
        self._kernel = None if rules.program is None else compile_programs([rules.program])[0]
        self._fills = fills_of(evaluator.automaton.mechanism)
        self._stays: deque[Stay] = deque(maxlen=KEPT)
        self._since = self._last = -np.inf
        self._sent: int | None = None

    def follow(self, rows: Floats, before: Floats | None, states_of: Callable[[Floats], Sequence[int]]) -> None:
        """Judge new rows; ``before`` is the row before them, ``states_of`` returns the contact states at a row."""
        for row in rows:
            time = float(row[TIME])
            if time <= self._last:
                if time == self._last:
                    continue
                self._follower.restart()  # a reset
                self._stays.clear()
                self._since = time
            self._judge(row, before, states_of(row), time)
            before, self._last = row, time

    def _judge(self, row: Floats, before: Floats | None, states: Sequence[int], time: float) -> None:
        was = self._follower.phase
        now = self._follower.judge(states, self._margins(row, before, states))
        if self._stays:
            self._stays[-1] = Stay(self._stays[-1].name, time - self._since)
        if not self._stays or now != was:
            self._since = time
            self._stays.append(Stay(self._name(now), 0.0))

    def _margins(self, row: Floats, before: Floats | None, states: Sequence[int]) -> Floats:
        if self._kernel is None:
            return np.zeros(0)
        with np.errstate(all="ignore"):
            x, c = self._evaluator.state(row, before)
            if self._rules.reads_forces:
                _, full = self._evaluator.full(states, x, c)
                x = np.concatenate([x, full["x_dot"][self._evaluator.layout.u_slice], full["multipliers"]])
            found: Floats = self._kernel.outputs(float(row[TIME]), x, c)["margins"]
        return found

    def _name(self, phase: int) -> str:
        return UNNAMED if phase == NO_PHASE else self._rules.names[phase]

    def news(self) -> dict[str, Any] | None:
        """Return the message of another phase than at the last call; None if it is the same."""
        if self._sent == self._follower.phase or not self._stays:
            return None
        self._sent = self._follower.phase
        return self.now()

    def now(self) -> dict[str, Any]:
        """Return the message of the present phase, by its number in :func:`phases_payload`."""
        return {"kind": "phase_begins", "phase": self._follower.phase + 1}

    def graph(self) -> dict[str, Any] | None:
        """Return the graph of the visits so far, in a column; None before the first."""
        return graph_payload(visit_diagram(list(self._stays), self._fills, narrow=True)) if self._stays else None
