"""State of a run between calls of the runtime, and the answers to its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import RunError
from fsm_dyn.runtime.abi import ROWS_PER_TURN, ArenaTop, Clock, Counters, Notes, OptionNumbers, Phase, Sizes, Status
from fsm_dyn.runtime.layouts import Buffers, Options, RunState, Tables, Work
from fsm_dyn.runtime.library import RunStructure
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.array_structs import Packed
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.outcomes import OUTCOMES
from fsm_dyn.simulation.run_arrays import RunArrays

if TYPE_CHECKING:
    from fsm_dyn.simulation.saved_state import SavedState

Floats = NDArray[np.float64]

_FIRST_ROWS: Final = 512
_FIRST_TRANSITIONS: Final = 64
_WORST_PIVOT: Final = 1e-13
_MOST_IDLE: Final = 4
_MOST_IDLE_ROWS: Final = 4096
_MOST_PACKED: Final = 8


class ModeProvider(Protocol):
    """Gives modes and charts that were not derived in advance.

    Both return tables in which what was there keeps its number.
    """

    def provide_mode(self, states: NDArray[np.int8], t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states; raise RunError where it may not be."""

    def provide_chart(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append another chart of mode ``number`` that is good at the state given, if there is one."""

    def kernels_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append a chart, with kernels of its own, of mode ``number`` embedded online, if that can be had."""


@dataclass
class LoopState:
    """What one run holds between calls of the compiled loop."""

    workspace: Workspace
    tables: Tables
    tables_packed: Packed
    state: RunState
    state_packed: Packed
    work: Work
    work_packed: Packed
    buffers: Buffers
    buffers_packed: Packed
    stages: int
    charted: int = -1  # number of steps made when a chart was asked for last
    options: tuple[Options, Packed] | None = None  # of the run, for the next one to write its own into

    def run(self, inputs: Packed, method: Packed, options: Packed) -> RunStructure:
        """Return the addresses of all that the run works on, as they are now."""
        return RunStructure(
            self.tables_packed.address, inputs.address, method.address, options.address, self.state_packed.address,
            self.work_packed.address, self.buffers_packed.address,
        )  # fmt: skip


@dataclass
class Workspace:
    """Memory that the runs of one thread use one after the other.

    What a run has taken out no other run has, so that a run may begin while another one waits.
    """

    packed: list[tuple[Tables, Packed]] = field(default_factory=list)
    idle: list[LoopState] = field(default_factory=list)

    def pack(self, tables: Tables) -> Packed:
        """Return the structure of tables, remembering those of the tables used last."""
        for known, packed in self.packed:
            if known is tables:
                return packed
        packed = st.TABLES.pack(tables)
        self.packed.insert(0, (tables, packed))
        del self.packed[_MOST_PACKED:]
        return packed

    def take(self, tables: Tables, stages: int) -> LoopState | None:
        """Return the loop of an earlier run of the same automaton by a method of so many stages, if one is idle."""
        for k, loop in enumerate(self.idle):
            if loop.tables is tables and loop.stages == stages:
                return self.idle.pop(k)
        return None

    def give_back(self, loop: LoopState) -> None:
        """Keep what a finished run has used, and of what earlier ones have used the latest, up to a bound of rows.

        A run that derives modes ends with other tables: what the run before has used is then of no use any more.
        """
        self.idle.append(loop)
        del self.idle[:-_MOST_IDLE]
        while self.idle and sum(len(kept.buffers.modes) for kept in self.idle) > _MOST_IDLE_ROWS:
            del self.idle[0]


def begin(
    tables: Tables, t0: float, x: Floats, c: Floats, mode0: int, drive: InputSignals, stages: int, workspace: Workspace
) -> LoopState:
    """Return the loop of a run that is about to start with a method of so many stages."""
    loop = workspace.take(tables, stages)
    if loop is None:
        state, state_packed = st.new_state(tables, t0, x, c, mode0)
        work, work_packed = st.new_work(tables, stages)
        buffers = st.new_buffers(tables, _FIRST_ROWS, _FIRST_TRANSITIONS)
        loop = LoopState(
            workspace, tables, workspace.pack(tables), state, state_packed, work, work_packed, buffers,
            st.BUFFERS.pack(buffers), stages,
        )  # fmt: skip
    else:
        loop.charted = -1
        st.clear_work(loop.work, loop.work_packed)
        st.restart_state(loop.state, loop.state_packed, tables, t0, x, c, mode0)
    loop.state.counters[Counters.SEGMENT] = drive.segment_at(t0)
    return loop


def end_window(options: Options, signals: InputSignals, until: float) -> bool:
    """Let a run end where the switches over time that its inputs have do; return whether that is its own end (s).

    A step ends there in any case: the run continues as if it had known all switches.
    """
    options.numbers[OptionNumbers.UNTIL] = min(until, signals.until)
    return until <= signals.until


def enter_next_window(loop: LoopState, signals: InputSignals) -> InputSignals:
    """Return the inputs with the switches that follow, of which the run is about to enter the first."""
    following = signals.following()
    loop.state.counters[Counters.SEGMENT] = following.segment_before(signals.until)
    return following


def provide_requested(loop: LoopState, status: int, mode_source: ModeProvider | None) -> int | None:
    """Provide what the compiled loop requests; return how the run ends where that cannot be had."""
    if status == Status.BUFFER_FULL and loop.work.top[ArenaTop.OVERFLOWN] != 0:
        loop.work, loop.work_packed = st.new_work(loop.tables, loop.stages, int(loop.tables.sizes[Sizes.N_CONTACTS]))
    elif status == Status.BUFFER_FULL:
        _grow_buffers(loop)
    elif status == Status.NEED_MODE:
        if mode_source is None:
            return Status.MODE_NOT_LISTED
        t, x, c = float(loop.state.clock[Clock.TIME]), loop.state.x.copy(), loop.state.c.copy()
        before = int(loop.tables.sizes[Sizes.N_MODES])
        try:
            _take_tables(loop, mode_source.provide_mode(loop.work.wanted.copy(), t, x, c))
        except RunError:  # the model lists its modes
            return Status.MODE_NOT_LISTED
        if int(loop.tables.sizes[Sizes.N_MODES]) == before:
            return Status.MODE_NOT_LISTED
    elif status == Status.NEED_CHART and loop.state.counters[Counters.PHASE] == Phase.RESOLVING:
        _entry_chart(loop, mode_source)
    elif asks_for_kernels(loop, status):
        _own_kernels(loop, mode_source)
    elif status == Status.NEED_CHART and not _other_chart(loop, mode_source):
        return Status.SINGULAR
    return None


def _other_chart(loop: LoopState, mode_source: ModeProvider | None) -> bool:
    """Ask for another chart; where there is none, continue in the present one as long as its pivot allows."""
    state = loop.state
    steps = int(state.counters[Counters.STEPS])
    if mode_source is not None and loop.charted != steps:
        loop.charted = steps
        t, x, c = float(state.clock[Clock.TIME]), state.x.copy(), state.c.copy()
        before = int(loop.tables.sizes[Sizes.N_MODES])
        _take_tables(loop, mode_source.provide_chart(int(state.counters[Counters.MODE]), t, x, c))
        if int(loop.tables.sizes[Sizes.N_MODES]) > before:
            return True
    pivot = float(state.clock[Clock.PIVOT])
    state.clock[Clock.PIVOT_ALARM] = 0.1 * pivot
    return pivot > _WORST_PIVOT


def has_earned_kernels(loop: LoopState) -> bool:
    """Whether the current mode, embedded online, has taken as many evaluations as kernels would be worth."""
    mode = int(loop.state.counters[Counters.MODE])
    return bool(loop.state.spent[mode] > loop.tables.mode_allowance[mode])


def asks_for_kernels(loop: LoopState, status: int) -> bool:
    """Whether kernels of its own are asked for, for the current mode."""
    resolving = loop.state.counters[Counters.PHASE] == Phase.RESOLVING
    return status == Status.NEED_CHART and not resolving and has_earned_kernels(loop)


def _own_kernels(loop: LoopState, mode_source: ModeProvider | None) -> None:
    """Ask for kernels of the current mode; where there are none that are good here, its evaluations count from zero."""
    mode, before = int(loop.state.counters[Counters.MODE]), int(loop.tables.sizes[Sizes.N_MODES])
    if mode_source is not None:
        t, x, c = float(loop.state.clock[Clock.TIME]), loop.state.x.copy(), loop.state.c.copy()
        _take_tables(loop, mode_source.kernels_needed(mode, t, x, c))
    if int(loop.tables.sizes[Sizes.N_MODES]) == before:
        loop.state.spent[mode] = 0


def _entry_chart(loop: LoopState, mode_source: ModeProvider | None) -> None:
    """Ask for a chart that is good where the pending transition leads."""
    if mode_source is None:
        return
    t, x, c = float(loop.state.clock[Clock.TIME]), loop.work.x_mid.copy(), loop.work.c_after.copy()
    _take_tables(loop, mode_source.provide_chart(int(loop.work.notes[Notes.TARGET]), t, x, c))


def _take_tables(loop: LoopState, tables: Tables) -> None:
    """Go on with tables that have grown."""
    if tables is loop.tables:
        return
    before = loop.tables
    wanted = loop.work.wanted.copy()
    loop.state, loop.state_packed = st.resized_state(loop.state, before, tables)
    loop.work, loop.work_packed = st.new_work(tables, loop.stages)
    loop.work.wanted[:] = wanted
    loop.tables, loop.tables_packed = tables, loop.workspace.pack(tables)


def _grow_buffers(loop: LoopState) -> None:
    """Double the room for what is nearly full."""
    old = loop.buffers
    rows, records = int(loop.state.counters[Counters.ROWS]), int(loop.state.counters[Counters.TRANSITIONS])
    more_rows = len(old.modes) * (2 if rows + ROWS_PER_TURN > len(old.modes) else 1)
    more_records = len(old.transitions) * (2 if records >= len(old.transitions) else 1)
    passed = int(loop.state.counters[Counters.PASSED])
    more_passages = len(old.passages) * (2 if passed >= len(old.passages) else 1)
    new = st.new_buffers(loop.tables, more_rows, more_records, more_passages)
    new.rows[:rows] = old.rows[:rows]
    new.modes[:rows] = old.modes[:rows]
    new.transitions[:records] = old.transitions[:records]
    new.passages[:passed] = old.passages[:passed]
    loop.buffers, loop.buffers_packed = new, st.BUFFERS.pack(new)


def finish(loop: LoopState, status: int, saved: SavedState | None = None) -> RunArrays:
    """Cut what was recorded out of the buffers; ``saved``: from where the run can be continued."""
    state = loop.state
    counters = state.counters.tolist()
    drift_energy, drift_residual = state.drift.tolist()
    n = counters[Counters.ROWS]
    n_x = len(state.x)
    rows = loop.buffers.rows[:n].copy()
    raw = RunArrays(
        t=rows[:, 0].copy(),
        x=rows[:, 1 : 1 + n_x],
        x_dot=rows[:, 1 + n_x : 1 + 2 * n_x],
        x_mid=rows[:, 1 + 2 * n_x : 1 + 3 * n_x],
        mode=loop.buffers.modes[:n].copy(),
        held=rows[:, 1 + 3 * n_x :],
        records=loop.buffers.transitions[: counters[Counters.TRANSITIONS]].copy(),
        outcome=OUTCOMES[status],
        tables=loop.tables,
        requested_states=loop.work.wanted.copy(),
        steps=counters[Counters.STEPS],
        rejected=counters[Counters.REJECTED],
        retakes=counters[Counters.RETAKES],
        drift_energy=drift_energy,
        drift_residual=drift_residual,
        mode_end=counters[Counters.MODE],
        c_end=state.c.copy(),
        tried=int(loop.work.notes[Notes.CANDIDATES]),
        log=loop.work.log.copy(),
        rank=state.rank.copy(),
        passages=loop.buffers.passages[: counters[Counters.PASSED]].copy(),
        saved=saved,
    )
    loop.workspace.give_back(loop)
    return raw
