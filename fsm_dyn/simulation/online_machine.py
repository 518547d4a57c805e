"""The running form of an automaton whose modes, all or those not derived, are embedded on line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.artefact import Automaton, Mode
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.listing import list_guards
from fsm_dyn.simulation.machine import Array, Chart, Machine, OnlineMode
from fsm_dyn.simulation.online_programs import evaluate_online, online_programs
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.tolerances import Tolerances

Place: TypeAlias = tuple[float, Array, Array]

OPEN = 1e-9  # share of a row in forces that do nothing, above which its multiplier is not determined


@dataclass(frozen=True)
class _OnlineFull:
    """Stands in for the full program of a mode."""

    machine: OnlineMachine
    states: tuple[int, ...]

    def evaluate(self, t: Any, x: Any, c: Any) -> dict[str, Array]:
        number = self.machine.online_number(self.states)
        return evaluate_online(self.machine.tables, number, t, np.asarray(x), np.asarray(c))


class OnlineMachine(Machine):
    """A machine that derives nothing while it runs.

    Parameters
    ----------
    automaton, home, tolerances
        As for :class:`~fsm_dyn.simulation.machine.Machine`.
    derived : sequence of Mode
        Modes that run by their own kernels; all others are embedded on line.
    """

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Array, Array] | None = None,
        tolerances: Tolerances | None = None,
        derived: Sequence[Mode] = (),
    ) -> None:
        self._derived = tuple(derived)
        self._sets = [mode.states for mode in derived]
        super().__init__(automaton, home, tolerances)

    def _compile(self, modes: Sequence[Mode], extra: Sequence[Any] = ()) -> list[Chart]:
        return super()._compile(self._derived, online_programs(self.automaton.terms))

    def number_of(self, states: tuple[int, ...]) -> int:
        """Number of the mode with these contact states."""
        if states not in self._sets:
            self.mode_needed(np.array(states, np.int8), 0.0, *self.home)
        index = self._sets.index(states)
        return next(number for number, chart in enumerate(self.charts) if chart.mode == index)

    def online_number(self, states: tuple[int, ...]) -> int:
        """Number under which the mode with these contact states is embedded on line."""
        for number, chart in enumerate(self.charts):
            if chart.full == 0 and chart.programs.states == states:
                return number
        self._append_online(states, self._sets.index(states) if states in self._sets else -1, (0.0, *self.home))
        return len(self.charts) - 1

    def mode_needed(self, states: npt.NDArray[np.int8], t: float, x: Array, c: Array) -> Tables:
        """Append the mode with these contact states; raise RunError where the model does not list it."""
        codes = self.check_listed(states, t)
        self._append_online(codes, -1, (t, x, c))
        return self.tables

    def chart_needed(self, number: int, t: float, x: Array, c: Array) -> Tables:
        """Append an on-line chart of a mode whose own kernels degenerate at a state."""
        self._append_online(self.charts[number].programs.states, self.charts[number].mode, (t, x, c))
        return self.tables

    def _append_online(self, states: tuple[int, ...], group: int, place: Place) -> None:
        """Append a mode without kernels: a chart of active set number ``group``, or of a new one (-1)."""
        automaton = self.automaton
        guards = list_guards(automaton.system, states, automaton.leaving(automaton.name_of(states)))
        if group < 0:
            group = len(self._sets)
            self._sets.append(states)
        self.charts.append(
            Chart(
                group, OnlineMode(states, guards, _OnlineFull(self, states), self._indeterminate(states, place)), 0, 0
            )
        )
        self.tables = self._build()

    def _indeterminate(self, states: tuple[int, ...], place: Place) -> tuple[int, ...]:
        """Rows of the mode whose forces others can take over where it is met."""
        automaton = self.automaton
        active = ActiveSet.of(automaton.system, states)
        terms = automaton.terms.evaluate(*place)
        n = len(automaton.terms.layout.u)
        inertia = np.diagonal(terms["M"])[:n]
        rows = terms["A"][list(active.rows), :n] / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
        if len(rows) == 0:
            return ()
        sizes = np.linalg.norm(rows, axis=1, keepdims=True)
        left, values, _ = np.linalg.svd(rows / np.where(sizes > 0.0, sizes, 1.0))
        idle = left[:, int(np.sum(values > OPEN)) :]
        return tuple(
            row for row, share in zip(active.rows, np.abs(idle).max(axis=1, initial=0.0), strict=True) if share > OPEN
        )
