"""Row evaluation: state and context of a tick row, and the compiled programs at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import DerivedMode
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.run.contact_forces import Kinematics
from fsm_dyn.run.online import ModeEvaluator, OnlineMode
from fsm_dyn.run.reported_forces import reported_forces

Floats = NDArray[np.float64]

TIME: Final = FIXED.index("t")
MODE: Final = FIXED.index("mode")


@dataclass(frozen=True)
class ModeReader:
    """Evaluator of one mode; ``number`` is its index in the order of first use."""

    number: int
    mode: OnlineMode
    reading: ModeEvaluator


class RowEvaluator(Kinematics):
    """Evaluator of the programs of a coupled graph at rows of a live run; microseconds per evaluation.

    All modes are embedded online: derivation and compilation would block the pages for a fraction of a second.

    Parameters
    ----------
    graph : ModeGraph
        Coupled, with the parameters of the run.
    columns : TickColumns
        Of the run's rows.
    """

    def __init__(self, graph: ModeGraph, columns: TickColumns) -> None:
        super().__init__(graph.automaton)
        self.parameters: Floats = graph.parameters.copy()  # parameters set during the run are written here
        self._places = columns.places
        self._smooth = np.array([columns.inputs.index(name) for name in columns.smooth], dtype=np.int64)
        start = initial_state(graph.automaton, graph.values, graph.parameters)
        self._executable = PooledExecutable(graph.automaton, (start.x, start.context))
        self.readers: list[ModeReader] = []
        self._readers: dict[tuple[int, ...], ModeReader] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._labels: dict[str, int] = {}
        for known in self.automaton.modes:
            self._add(known.states)

    def state(self, row: Floats, before: Floats | None = None) -> tuple[Floats, Floats]:
        """Return state and context of a row; ``before`` is the previous row, for input rates."""
        layout, places = self.layout, self._places
        c = np.zeros(layout.n_c)
        c[layout.p_slice] = self.parameters
        c[layout.w_slice] = row[places["inputs"]]
        c[layout.sigma_slice.start : layout.memory_slice.stop] = row[places["discrete"]]
        if before is not None and row[TIME] > before[TIME]:
            # inputs are linear from tick to tick
            rate = (row[places["inputs"]] - before[places["inputs"]]) / (row[TIME] - before[TIME])
            c[layout.w_rate_slice] = rate
        if len(self._smooth):  # except cubic ones
            motion = row[places["motion"]]
            c[layout.w_rate_slice.start + self._smooth] = motion[: len(self._smooth)]
            c[layout.w_rate2_slice.start + self._smooth] = motion[len(self._smooth) :]
        return row[places["state"]], c

    def full(self, states: Sequence[int], x: Floats, c: Floats) -> tuple[ModeReader, dict[str, Floats]]:
        """Return guards and multipliers of a mode at a state, in a chart well conditioned there.

        Indeterminate multipliers are those of minimum norm that satisfy the contact laws.
        """
        key = tuple(int(code) for code in states)
        reader = self._readers.get(key)
        if reader is None:
            mode = self._executable.mode_of(key)
            reader = self._readers[key] = ModeReader(len(self.readers), mode, ModeEvaluator(mode.full))
            self.readers.append(reader)
        out = reader.reading(0.0, x, c)
        if reader.reading.redundant:
            values = self.terms.outputs(0.0, x, c)
            forces, _ = reported_forces(
                self.layout, self.automaton.contacts, key,
                lambda which, only: {
                    name: (values[name] if rows is None else values[name][list(rows)])[None]
                    for name, rows in only.items()
                },
                x[None], c[None], out["multipliers"][None],
            )  # fmt: skip
            out = {**out, "multipliers": forces[0]}
        return reader, out

    def number(self, states: Sequence[int]) -> int:
        """Return the number of a mode in the page's mode graph; an unknown mode is added to the automaton.

        Modes different by handovers alone share a number.
        """
        key = tuple(int(code) for code in states)
        if key not in self._numbers:
            name = self.automaton.name_of(key)
            # states and guards, which the graph shows, do not require a derived mode
            mode = DerivedMode(name.name, name.pattern, cast(ModePrograms, self._executable.mode_of(key)))
            self.automaton = self.automaton.with_mode(mode)
            self._add(key)
        return self._numbers[key]

    def _add(self, states: tuple[int, ...]) -> None:
        self._numbers[states] = self._labels.setdefault(self.automaton.labels.of(states), len(self._labels))
