"""Runs, one or several: made by one call of the runtime; recorded rows with their model, for all readers."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.requirement import ContactEvent
from fsm_dyn.run import structures as st
from fsm_dyn.run.encounters import event_times
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.extremes import locate
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.loop import end_of, set_options, tableau
from fsm_dyn.run.loop_state import LoopState, Rows, Workspace, begin
from fsm_dyn.run.outcomes import COMPLETE
from fsm_dyn.run.pins import PinImpulses, of_connection
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.samples import RecordedSamples, Samples
from fsm_dyn.runtime.abi import FEW, ArenaTop, Clock, EndColumn, MethodCounts, Status
from fsm_dyn.runtime.library import RunBatch, advance_batch, matrix, vector

# -- Recorded runs -------------------------------------------------------------------------------------------


class Runs(RecordedSamples, ABC):
    """Recorded runs, 1 to n: their rows, and how they ended, for readers that judge all of them at once."""

    @property
    @abstractmethod
    def complete(self) -> Booleans:
        """Flags of the runs that reached their end, shape (runs,)."""

    @abstractmethod
    def number(self, text: Text) -> Floats:
        """Return an expression of parameters in each run, shape (runs,), SI."""

    @abstractmethod
    def event_times(self, event: ContactEvent) -> Sequence[Floats]:
        """Return the times of an event of a contact in each run, s."""

    @property
    def time_stepping(self) -> bool:
        """Whether the runs were made by time stepping."""
        return False

    def pin_impulses(self, connection: str) -> Sequence[tuple[Floats, Floats]]:
        """Return times (s) and sizes (N s) of the impulses in a connection in each run."""
        raise NotImplementedError("impulses are found run by run")


class Run(Runs):
    """One run."""

    def __init__(self, model: RunModel, record: RunRecord) -> None:
        super().__init__(model, record, record.inputs)
        self.record = record

    @property
    def complete(self) -> Booleans:
        """Whether it reached its end, shape (1,)."""
        return np.array([self.record.outcome.code in COMPLETE])

    @property
    def time_stepping(self) -> bool:
        """Whether it was made by time stepping."""
        return self.record.time_stepping

    def number(self, text: Text) -> Floats:
        """Return an expression of parameters, shape (1,), SI."""
        return np.array([evaluate_expression(text, self.model.values)])

    def event_times(self, event: ContactEvent) -> Sequence[Floats]:
        """Return the times of an event of a contact, s, as of the only run."""
        contacts = self.model.contact_entries.get(event.contact, (event.contact,))
        return [event_times(self.model, self.record.transitions, contacts, event.word)]

    def pin_impulses(self, connection: str) -> Sequence[tuple[Floats, Floats]]:
        """Return times (s) and sizes (N s) of the impulses in a connection, as of the only run."""
        found, hits = PinImpulses(self.all), [item for item in self.record.transitions if item.impulse]
        sizes = [float(np.linalg.norm(of_connection(found(item), connection)[:3])) for item in hits]
        return [(np.array([item.time for item in hits]), np.array(sizes))]

    def sample(self, times: npt.ArrayLike) -> Samples:
        """Return states at ``times`` (n,), at a transition the later side.

        Raises InputError if a time lies outside the run.
        """
        wanted, t = np.atleast_1d(np.asarray(times, dtype=np.float64)), self.record.t
        outside = wanted[~((wanted >= t[0]) & (wanted <= t[-1]))]
        if wanted.ndim != 1 or len(outside):
            raise InputError(
                "the run was asked for a time that it does not cover",
                found=", ".join(f"{value:g} s" for value in outside.ravel()[:3]) or f"shape {wanted.shape}",
                allowed=f"{t[0]:g} s to {t[-1]:g} s, one axis",
            )
        return self.between(wanted, locate(t, wanted)[0])


# -- Several runs in one call of the runtime -----------------------------------------------------------------
#
# Each has its own start, all have the same inputs and options.  They have the bits of
# :func:`fsm_dyn.run.loop.run_automaton`, and are recorded in one table, one run behind another.


ROWS: Final = 65536  # of the runs returned together
_TRANSITIONS: Final = 4096
_PASSAGES: Final = 512
_CHUNK: Final = 100_000  # steps after which a run returns, for interruptions


@dataclass(frozen=True)
class Starts:
    """Starts of runs: states (n, n_q + n_u), contexts (n, n_c), and contact states of their modes."""

    x: Floats
    c: Floats
    states: list[tuple[int, ...]]


@dataclass(kw_only=True)
class RecordedRuns(Rows):
    """Rows of some runs of a batch; modes have the numbers of the executable."""

    numbers: range  # of these runs among those of the batch
    # int64 array, shape (n + 1,): first transition of each run, and the number of transitions
    first_transition: Integers
    records: Floats  # float64 array: as of :class:`~fsm_dyn.runtime.layouts.Buffers`
    statuses: Integers  # int64 array, shape (n,): codes of the outcomes
    passed: bool  # whether any of them passed a change point


@dataclass(frozen=True)
class NeedsItself:
    """A run with further charts or switches over time of its own, to be made alone."""

    number: int


def run_batch(
    executable: Executable, starts: Starts, inputs: InputSignals, options: RunOptions, workspace: Workspace
) -> Iterator[RecordedRuns | NeedsItself]:
    """Yield the runs in their order, as many together as there is room for.

    ``executable``: with the tolerances of all runs; modes reached by runs are added to it. ``options``: resolved, with
    ``until``. ``workspace``: memory of earlier runs of this thread.
    """
    if inputs.until < end_of(options):  # they have further switches, in separate windows
        yield from map(NeedsItself, range(len(starts.states)))
        return
    batch = _Batch(executable, starts, inputs, options, workspace)
    while batch.next < len(starts.states):
        yield from batch.advance()


class _Batch:
    """The runs of a batch, those made and those to be made."""

    def __init__(
        self, executable: Executable, starts: Starts, inputs: InputSignals, options: RunOptions, workspace: Workspace
    ) -> None:
        self.executable, self.starts, self.inputs, self.options = executable, starts, inputs, options
        self.workspace = workspace
        self.next = 0
        self.rows = ROWS
        self.contacts = FEW
        self.ends = np.zeros((len(starts.states), EndColumn.WIDTH), np.int64)
        self.numbers = np.array([executable.mode_index(states) for states in starts.states], np.int64)

    def advance(self) -> Iterator[RecordedRuns | NeedsItself]:
        """Advance until the runtime requests a mode or memory; yield ended runs, and provide it."""
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
                yield self._recorded(loop, range(first, self.next), batch.passages > 0)
                batch.rows = batch.transitions = batch.passages = batch.under_way = 0
                first, status = self.next, int(Status.PAUSED)
        if self.next > first:
            yield self._recorded(loop, range(first, self.next), batch.passages > 0)
        self.workspace.give_back(loop)
        if status == Status.BUFFER_FULL and loop.work.top[ArenaTop.OVERFLOWN] != 0:
            self.contacts = st.more_contacts(loop.tables, self.contacts)
        elif status == Status.BUFFER_FULL:
            self.rows *= 2
        elif status != Status.DONE and not (status == Status.NEED_MODE and self._provides_mode(loop)):
            yield NeedsItself(self.next)
            self.next += 1

    def _provides_mode(self, loop: LoopState) -> bool:
        """Provide a mode reached by a run, for all runs; return whether there is one."""
        before = self.executable.modes_ready()
        try:
            time = float(loop.state.clock[Clock.TIME])
            self.executable.provide_mode(loop.work.wanted.copy(), time, loop.state.x.copy(), loop.state.c.copy())
        except RunError:  # the model lists its modes
            return False
        return self.executable.modes_ready() > before

    def _packed(self) -> tuple[LoopState, RunBatch]:
        """Return memory for runs with the present modes, and the batch from the next run on."""
        tables, given, number = self.executable.tables, self.options, self.next
        method, packed = tableau(given.method)
        x, c = self.starts.x[number], self.starts.c[number]
        mode = int(self.numbers[number])
        loop = begin(tables, 0.0, x, c, mode, self.inputs, int(method.counts[MethodCounts.STAGES]), self.workspace)
        if loop.contacts < self.contacts:
            loop.work, loop.work_packed = st.new_work(tables, loop.stages, self.contacts)
            loop.contacts = self.contacts
        if len(loop.buffers.modes) < self.rows:
            share = self.rows // ROWS
            loop.buffers = st.new_buffers(tables, self.rows, _TRANSITIONS * share, _PASSAGES * share)
            loop.buffers_packed = st.BUFFERS.pack(loop.buffers)
        options = set_options(loop, given, _CHUNK)
        run = loop.run(self.inputs.packed, packed, options[1])
        state, work = loop.state_packed.table, loop.work_packed.table
        self.kept = run, self.starts, state.copy(), work.copy(), self.inputs, options  # as long as they are in use
        batch = RunBatch(
            ctypes.pointer(run), vector(state), vector(self.kept[2]), vector(work), vector(self.kept[3]),
            matrix(self.starts.x), matrix(self.starts.c), vector(self.numbers), matrix(self.ends), number, 0, 0, 0, 0,
        )  # fmt: skip
        return loop, batch

    def _recorded(self, loop: LoopState, numbers: range, passed: bool) -> RecordedRuns:
        ends = self.ends[numbers.start : numbers.stop]
        zero = np.zeros(1, np.int64)
        rows = np.concatenate([zero, np.cumsum(ends[:, EndColumn.ROWS])])
        transitions = np.concatenate([zero, np.cumsum(ends[:, EndColumn.TRANSITIONS])])
        buffers = loop.buffers
        return RecordedRuns.of_table(
            buffers.rows[: rows[-1]], buffers.modes[: rows[-1]], len(loop.state.x), begin=rows, numbers=numbers,
            first_transition=transitions, records=buffers.transitions[: transitions[-1]],
            statuses=ends[:, EndColumn.STATUS].copy(), passed=passed,
        )  # fmt: skip
