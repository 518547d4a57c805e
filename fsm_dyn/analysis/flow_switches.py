"""Choices of the state within a mode, ``where(x > a, ...)`` in a load: instants of the switches in a run.

The flow jumps there, or has a kink, without an event of the automaton. A neighbouring motion switches at another time,
so its variation jumps as at a transition with the identity as reset (docs/theory.md, "Sensitivities").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.linearisation import jacobian, time_derivative
from fsm_dyn.core.arrays import IntArray
from fsm_dyn.core.errors import RunError
from fsm_dyn.derive.elimination import Array
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.language.expression_tree import CASE_FUNCTIONS
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import reachable, support
from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.loop_state import RunArrays

PARTS: Final = 8  # of a step; choices are evaluated at their ends
BISECTIONS: Final = 60
OFFSET: Final = 1e-9  # margin of the evaluation of the flow next to a switch, relative to its terms
SAME: Final = 1e-7  # largest relative difference of two equal flows or delays
GRAZING: Final = 1e-9  # relative to the terms of a margin; with a slower rate no neighbour meets it
_COUNTING: Final = ("floor", "mod")


class _Choices(NamedTuple):
    """The choices of a mode: a program of ``margins``, their derivatives and the flow; flags of counting ones."""

    program: Program
    counting: Array


@dataclass(frozen=True)
class FlowSwitch:
    """An instant of a switch of the flow within a step: the row at the begin of the step, and the elapsed fraction.

    ``jump`` (n_x,): the flow before less that after; ``delay`` (n_z,): of the switches of neighbours.
    """

    row: int
    fraction: float
    jump: Array
    delay: Array


@lru_cache(maxsize=256)
def _choices(programs: ModePrograms, constants: tuple[str, ...]) -> _Choices | None:
    """Return the choices of the state in the flow of a mode, None if there are none."""
    layout = programs.full.layout
    graph, symbols, nodes = programs.full.graph()
    ops = CASE_FUNCTIONS | {"lt", "le"}
    moving, margins, counting = {symbols[name] for name in layout.x}, [], []
    for node in reachable(list(nodes["x_dot"])):
        if node.op in ops and not moving.isdisjoint(support([node])):
            margin = _margin(node)
            if margin not in margins:
                margins.append(margin)
                counting.append(float(node.op in _COUNTING))
    if not margins:
        return None
    outputs = {
        "margins": margins,
        "by_state": jacobian(margins, [symbols[name] for name in layout.x]),
        "by_constants": jacobian(margins, [symbols[name] for name in constants]),
        "by_time": time_derivative(margins, layout, symbols, graph),
        "x_dot": nodes["x_dot"],
    }
    return _Choices(Program.from_nodes(layout, outputs), np.array(counting))


def _margin(node: Node) -> Node:
    """Return the margin of a choice: zero, or whole, at a switch."""
    first, last = node.operands[0], node.operands[-1]
    if node.op in ("abs", "sign", "floor"):
        return first
    return first / last if node.op == "mod" else first - last


def flow_switches(setting: AnalysisSetup, raw: RunArrays, first: int, last: int) -> list[FlowSwitch]:
    """Return the switches of the flow between two rows of a run without a change of mode, in order.

    Parameters
    ----------
    setting : AnalysisSetup
    raw : RunArrays
        The run.
    first, last : int
        Numbers of the rows.

    Returns
    -------
    list of FlowSwitch

    Raises
    ------
    RunError
        Neighbouring motions do not switch like the run: it grazes a switch, stays in it, or meets two together.
    """
    found: list[FlowSwitch] = []
    steps = np.arange(first, last)
    for number in np.unique(raw.mode[first + 1 : last + 1]):
        programs = setting.executable.charts[int(number)].programs
        choices = _choices(programs, setting.constants) if isinstance(programs, ModePrograms) else None
        if choices is not None:
            rows = steps[(raw.mode[steps + 1] == number) & (raw.t[steps + 1] > raw.t[steps])]
            found += _Switching(setting, raw, choices).switches(rows)
    return sorted(found, key=lambda item: (item.row, item.fraction))


@dataclass(frozen=True)
class _Switching:
    setting: AnalysisSetup
    raw: RunArrays
    choices: _Choices

    def at(self, rows: IntArray, fractions: Array) -> dict[str, Array]:
        """Return the choices and their sides at fractions of the steps beginning at ``rows``, both (m,)."""
        times, x, context = self._states(rows, fractions)
        values = self.choices.program.evaluate(times, x, context)
        return values | {"marks": self._marks(values["margins"])}

    def _states(self, rows: IntArray, fractions: Array) -> tuple[Array, Array, Array]:
        """Return times, states and contexts at fractions of steps."""
        raw, setting = self.raw, self.setting
        h = raw.t[rows + 1] - raw.t[rows]
        times = raw.t[rows] + fractions * h
        ends = raw.x[rows], raw.x_dot[rows], raw.x_mid[rows + 1], raw.x[rows + 1], raw.x_dot[rows + 1]
        context = setting.context(raw.held[rows])
        if setting.drive.names:
            n_p = len(setting.vector)
            context[:, n_p : n_p + 3 * len(setting.drive.names)] = setting.drive(times, context[0])
        return times, quartic(fractions, h, *ends), context

    def _marks(self, margins: Array) -> Array:
        """Return the sides of choices at their switches."""
        return np.where(self.choices.counting > 0.0, np.floor(margins), margins > 0.0)

    def _next_to(self, row: int, fraction: float, k: int, here: dict[str, Array], sign: float) -> dict[str, Array]:
        """Return the choices on one side of the switch ``k``, a little along its gradient."""
        raw, gradient = self.raw, here["by_state"][k]
        step = np.array([row])
        times, x, context = (part[0] for part in self._states(step, np.array([fraction])))
        terms = np.abs(gradient * x).sum() + np.abs(gradient * here["x_dot"]).sum() * (raw.t[-1] - raw.t[0])
        margin = here["margins"][k]
        zero = np.round(margin) if self.choices.counting[k] else 0.0
        x = x + gradient * (zero + sign * OFFSET * terms - margin) / (gradient @ gradient)
        values = self.choices.program.evaluate(times, x, context)
        return values | {"marks": self._marks(values["margins"])}

    def switches(self, rows: IntArray) -> list[FlowSwitch]:
        """Return the switches in steps beginning at ``rows``."""
        fractions = np.linspace(0.0, 1.0, PARTS + 1)
        marks = self.at(np.repeat(rows, PARTS + 1), np.tile(fractions, len(rows)))["marks"]
        marks = marks.reshape(len(rows), PARTS + 1, -1)
        steps, parts = np.nonzero((marks[:, 1:] != marks[:, :-1]).any(axis=2))
        return [
            self._switch(int(rows[step]), fractions[part], fractions[part + 1])
            for step, part in zip(steps, parts, strict=True)
        ]

    def _switch(self, row: int, low: float, high: float) -> FlowSwitch:
        """Return the first switch between two fractions of a step."""
        step = np.array([row])

        def here(fraction: float) -> dict[str, Array]:
            return {name: value[0] for name, value in self.at(step, np.array([fraction])).items()}

        before, after = here(low), here(high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            there = here(middle)
            if (there["marks"] != before["marks"]).any():
                high, after = middle, there
            else:
                low, before = middle, there
        changed = np.flatnonzero(before["marks"] != after["marks"])
        k = int(changed[0])
        if not before["by_state"][k].any():
            return FlowSwitch(row, high, np.zeros(len(before["x_dot"])), np.zeros(self.setting.variations))
        sign = 1.0 if after["marks"][k] > before["marks"][k] else -1.0
        before, after = (self._next_to(row, high, k, before, side) for side in (-sign, sign))
        jump = before["x_dot"] - after["x_dot"]
        size = np.abs(before["x_dot"]) + np.abs(after["x_dot"])
        if not (np.abs(jump) > SAME * (size + SAME)).any():  # a kink
            return FlowSwitch(row, high, np.zeros(len(jump)), np.zeros(self.setting.variations))
        delays = [self._delay(int(k), before, after, row, high) for k in changed]
        for other in delays[1:]:
            if (np.abs(other - delays[0]) > SAME * (np.abs(other) + np.abs(delays[0])).max()).any():
                raise RunError(
                    self._refusal(row, high, "neighbouring motions meet one of two switches before the other")
                )
        return FlowSwitch(row, high, jump, delays[0])

    def _delay(self, k: int, before: dict[str, Array], after: dict[str, Array], row: int, fraction: float) -> Array:
        gradient, own = before["by_state"][k], before["by_time"][k]
        rates = [float(gradient @ side["x_dot"] + own) for side in (before, after)]
        terms = np.abs(gradient * before["x_dot"]).sum() + abs(own)
        if not abs(rates[0]) > GRAZING * terms or not abs(rates[1]) > GRAZING * terms or rates[0] * rates[1] < 0.0:
            raise RunError(self._refusal(row, fraction, "the motion grazes the switch or stays in it"))
        delay: Array = -np.append(gradient, before["by_constants"][k]) / rates[0]
        return delay

    def _refusal(self, row: int, fraction: float, why: str) -> str:
        raw = self.raw
        time = raw.t[row] + fraction * (raw.t[row + 1] - raw.t[row])
        return (
            f"the motion cannot be differentiated at t = {time:.9g} s, where a choice of the model between forces"
            f" switches: {why}\n  remedy: write the choice as a contact, a `dry_friction`, or a transition that sets"
            " memory"
        )
