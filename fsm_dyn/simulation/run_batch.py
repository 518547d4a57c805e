"""Runs of one automaton in one call of the runtime: each has its own start, all have the same inputs and options.

The runs have the bits of :func:`fsm_dyn.simulation.run_loop.run_automaton`.  What is recorded is stored in one table,
of one run behind that of another.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import RunError
from fsm_dyn.runtime.abi import FEW, ArenaTop, Clock, EndColumn, MethodCounts, Sizes, Status
from fsm_dyn.runtime.library import RunBatch, advance_batch, matrix, vector
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.loop_state import LoopState, Workspace, begin
from fsm_dyn.simulation.run_loop import set_options, tableau

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROWS: Final = 65536  # of the runs that are returned together
_TRANSITIONS: Final = 4096
_PASSAGES: Final = 512
_CHUNK: Final = 100_000  # steps after which a run returns, so that it can be interrupted


@dataclass(frozen=True)
class Starts:
    """Where runs begin: states (n, n_q + n_u), contexts (n, n_c), and contact states of their modes."""

    x: Floats
    c: Floats
    states: list[tuple[int, ...]]


@dataclass(frozen=True)
class SharedOptions:
    """Options of :func:`~fsm_dyn.simulation.run_loop.run_automaton` that runs of a batch share, by the same names."""

    until: float
    method: str
    rtol: float
    atol: Floats
    step: float
    max_step: float
    max_steps: int
    max_instant: int = 100


@dataclass(frozen=True)
class RecordedRuns:
    """What some runs recorded, of one behind that of another.

    Attributes
    ----------
    numbers : range
        Of these runs among those of the batch.
    first_row, first_transition : int64 array, shape (n + 1,)
        Where each run begins, and the end.
    rows, modes, records
        As of :class:`~fsm_dyn.runtime.layouts.Buffers`; modes have the numbers of the executable.
    statuses : int64 array, shape (n,)
        Codes of the outcomes.
    """

    numbers: range
    first_row: Integers
    first_transition: Integers
    rows: Floats
    modes: Integers
    records: Floats
    statuses: Integers


@dataclass(frozen=True)
class NeedsItself:
    """A run that needs further charts or switches over time, which are its own: it is to be made alone."""

    number: int


def run_batch(
    executable: Executable, starts: Starts, inputs: InputSignals, options: SharedOptions, workspace: Workspace
) -> Iterator[RecordedRuns | NeedsItself]:
    """Yield the runs in their order, as many together as there is room for.

    Parameters
    ----------
    executable : Executable
        With the tolerances of all runs; modes that runs reach are added to it.
    starts : Starts
    inputs : InputSignals
        Of all runs.
    options : SharedOptions
    workspace : Workspace
        Memory of earlier runs of this thread.
    """
    if inputs.until < options.until:  # they have further switches, in separate windows
        yield from map(NeedsItself, range(len(starts.states)))
        return
    batch = _Batch(executable, starts, inputs, options, workspace)
    while batch.next < len(starts.states):
        yield from batch.advance()


class _Batch:
    """The runs of a batch, those made and those to be made."""

    def __init__(
        self, executable: Executable, starts: Starts, inputs: InputSignals, options: SharedOptions, workspace: Workspace
    ) -> None:
        self.executable, self.starts, self.inputs, self.options = executable, starts, inputs, options
        self.workspace = workspace
        self.next = 0
        self.rows = ROWS
        self.contacts = FEW
        self.ends = np.zeros((len(starts.states), EndColumn.WIDTH), np.int64)
        self.numbers = np.array([executable.mode_index(states) for states in starts.states], np.int64)

    def advance(self) -> Iterator[RecordedRuns | NeedsItself]:
        """Make runs until something is wanted, yield those that have ended, and provide it."""
        loop, batch = self._packed()
        first, status = self.next, int(Status.PAUSED)
        while status == Status.PAUSED or (status == Status.DONE and self.next < len(self.starts.states)):
            alone = len(self.executable.online_modes()) > 0  # choices of charts are those of one run
            if alone:
                self.executable.reset_charts()
            end = self.next + 1 if alone else len(self.starts.states)
            status = int(advance_batch(batch, end))
            self.next = int(batch.next)
            if status == Status.BUFFER_FULL and self.next > first:
                yield self._recorded(loop, range(first, self.next))
                batch.rows = batch.transitions = batch.passages = batch.under_way = 0
                first, status = self.next, int(Status.PAUSED)
        if self.next > first:
            yield self._recorded(loop, range(first, self.next))
        self.workspace.give_back(loop)
        if status == Status.BUFFER_FULL and loop.work.top[ArenaTop.OVERFLOWN] != 0:
            self.contacts = int(loop.tables.sizes[Sizes.N_CONTACTS])
        elif status == Status.BUFFER_FULL:
            self.rows *= 2
        elif status != Status.DONE and not (status == Status.NEED_MODE and self._provides_mode(loop)):
            yield NeedsItself(self.next)
            self.next += 1

    def _provides_mode(self, loop: LoopState) -> bool:
        """Have a mode that a run has reached, for all runs; return whether there is one."""
        before = int(loop.tables.sizes[Sizes.N_MODES])
        try:
            time = float(loop.state.clock[Clock.TIME])
            self.executable.provide_mode(loop.work.wanted.copy(), time, loop.state.x.copy(), loop.state.c.copy())
        except RunError:  # the model lists its modes
            return False
        return int(self.executable.tables.sizes[Sizes.N_MODES]) > before

    def _packed(self) -> tuple[LoopState, RunBatch]:
        """Return memory for runs with the modes that there are now, and the batch from the next run on."""
        tables, given, number = self.executable.tables, self.options, self.next
        method, packed = tableau(given.method)
        x, c = self.starts.x[number], self.starts.c[number]
        mode = int(self.numbers[number])
        loop = begin(tables, 0.0, x, c, mode, self.inputs, int(method.counts[MethodCounts.STAGES]), self.workspace)
        if self.contacts != FEW:
            loop.work, loop.work_packed = st.new_work(tables, loop.stages, self.contacts)
        if len(loop.buffers.modes) < self.rows:
            share = self.rows // ROWS
            loop.buffers = st.new_buffers(tables, self.rows, _TRANSITIONS * share, _PASSAGES * share)
            loop.buffers_packed = st.BUFFERS.pack(loop.buffers)
        numbers = given.until, given.step, given.max_step, given.rtol
        counts = _CHUNK, given.max_steps, given.max_instant, 2**62, 0
        options = set_options(loop, numbers, counts, given.atol, None)
        run = loop.run(self.inputs.packed, packed, options[1])
        state, work = loop.state_packed.table, loop.work_packed.table
        self.kept = run, self.starts, state.copy(), work.copy(), self.inputs, options  # as long as they are in use
        batch = RunBatch(
            ctypes.pointer(run), vector(state), vector(self.kept[2]), vector(work), vector(self.kept[3]),
            matrix(self.starts.x), matrix(self.starts.c), vector(self.numbers), matrix(self.ends), number, 0, 0, 0, 0,
        )  # fmt: skip
        return loop, batch

    def _recorded(self, loop: LoopState, numbers: range) -> RecordedRuns:
        ends = self.ends[numbers.start : numbers.stop]
        zero = np.zeros(1, np.int64)
        rows = np.concatenate([zero, np.cumsum(ends[:, EndColumn.ROWS])])
        transitions = np.concatenate([zero, np.cumsum(ends[:, EndColumn.TRANSITIONS])])
        buffers = loop.buffers
        return RecordedRuns(
            numbers, rows, transitions, buffers.rows[: rows[-1]], buffers.modes[: rows[-1]],
            buffers.transitions[: transitions[-1]], ends[:, EndColumn.STATUS].copy(),
        )  # fmt: skip
