"""Continued runs: modes of the saved run, and the join of both parts of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.storage import run_version
from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.arrays import IntArray
from fsm_dyn.results.continuation import Continuation, RunSettings, run_digest
from fsm_dyn.results.record import RunRecord, joined
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.run_inputs import InputValue
from fsm_dyn.runtime.abi import RecordColumn
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulation.run_arrays import RunArrays, order_of, renumbered
from fsm_dyn.simulation.saved_state import FirstRow, SavedState
from fsm_dyn.spec.values import ParameterValue

_CHANGES = slice(RecordColumn.SOURCE, RecordColumn.TARGET + 1)


@dataclass  # not frozen: to fill one that is takes six times as long
class Run:
    """Inputs of a run apart from its initial state; ``final``: the reason that it cannot be continued, if any."""

    graph: ModeGraph
    numbers: Mapping[str, ParameterValue]
    vector: Array
    settings: RunSettings
    inputs: Mapping[str, InputValue]
    final: str = ""

    @property
    def model(self) -> int:
        """Digest of the model alone, of 64 bits."""
        return int(self.graph.automaton.mechanism.digest[:16], 16)

    @cached_property
    def digest(self) -> str:
        """Digest of all that it depends on."""
        return run_digest(self.graph.automaton.mechanism.digest, self.vector, self.settings, run_version())


@dataclass
class Before:
    """A run that is continued; ``whole``: whether the result is the whole of it."""

    run: Trajectory
    continuation: Continuation
    whole: bool
    numbers: list[int] = field(default_factory=list)  # of its modes in the machine, by mode index

    @property
    def row(self) -> int:
        """The last row that is kept."""
        return self.continuation.state.rows - 1

    def ready(self, executable: Executable) -> tuple[SavedState, FirstRow]:
        """Have modes and charts of the rows that are kept in a machine; return the state and the last row."""
        record, continuation, row = self.run.record, self.continuation, self.row
        executable.restore_charts(continuation.state.charts)
        used = {*np.unique(record.mode[: row + 1]).tolist(), *np.unique(continuation.changes).tolist()}
        self.numbers = [
            executable.chart_of(states, chart) if index in used else -1
            for index, (states, chart) in enumerate(continuation.modes)
        ]
        parts = (record.t[row : row + 1], record.x[row], record.x_dot[row], record.x_mid[row], record.held[row])
        return continuation.state, FirstRow(np.concatenate(parts), self.numbers[record.mode[row]])


@dataclass  # not frozen, as Run
class Numbered:
    """A run whose modes are numbered by what happened in it alone.

    ``order``: by new number the number in the machine; ``continuation``: gives what it can be continued from, if it can
    be; ``state``, ``kept``: where it was continued, and what went before, if it is to be the whole.
    """

    raw: RunArrays
    order: tuple[int, ...]
    continuation: Callable[[], Continuation] | None
    state: SavedState | None = None
    kept: RunRecord | None = None

    def joined(self, record: RunRecord) -> RunRecord:
        """Return the record of this run behind what went before."""
        if self.state is None or self.kept is None:
            return record
        return joined(self.kept, record, self.state.rows, self.state.transitions, self.state.passages)


def numbered(run: Run, raw: RunArrays, states: Sequence[tuple[int, ...]], before: Before | None) -> Numbered:
    """Number the modes of a run, with those of what went before where the result is the whole.

    Parameters
    ----------
    run : Run
    raw : RunArrays
        With the numbers of the machine.
    states : sequence
        Contact states by these numbers.
    before : Before, optional

    Returns
    -------
    Numbered
    """
    fixed = 0 if run.settings.strategy == "online" else len(run.graph.automaton.modes)
    if before is None or not before.whole:
        pairs = raw.records[:, _CHANGES]
        raw, order = renumbered(raw, fixed)
        continuation = None if raw.saved is None else partial(_continuation, run, raw.saved, states, order, pairs)
        return Numbered(raw, order, continuation)
    old, state = before.run.record, before.continuation.state
    number = np.array(before.numbers, np.int64)
    earlier = number[old.mode[: state.rows]]
    changes = np.concatenate([number[before.continuation.changes], raw.records[:, _CHANGES].astype(np.int64)])
    order = tuple(range(len(states)))
    if len(states) > fixed:
        order = order_of(np.concatenate([earlier, raw.mode[1:]]), changes, raw.mode_end, fixed)
    raw, order = renumbered(raw, fixed, order)
    mode = np.concatenate([_indices(order)[earlier], old.mode[state.rows :]])
    kept = replace(old, mode=mode, read_transitions=lambda: old.transitions)
    if raw.saved is None:
        return Numbered(raw, order, None, state, kept)
    saved = replace(
        raw.saved, rows=state.rows + raw.saved.rows - 1, transitions=state.transitions + raw.saved.transitions,
        passages=state.passages + raw.saved.passages,
    )  # fmt: skip
    return Numbered(raw, order, partial(_continuation, run, saved, states, order, changes), state, kept)


def _indices(order: Sequence[int]) -> IntArray:
    """Return the new number of every mode by its number in the machine, -1 for those that are not among them."""
    index = np.full(max(order) + 1, -1)
    index[list(order)] = np.arange(len(order))
    return index


def _continuation(
    run: Run, saved: SavedState, states: Sequence[tuple[int, ...]], order: Sequence[int], changes: npt.NDArray[Any]
) -> Continuation:
    names = tuple((states[number], states[:number].count(states[number])) for number in order)
    indices = _indices(order)[changes[: saved.transitions].astype(np.int64)]
    return Continuation(run.settings, run_version(), run.digest, saved, names, indices)
