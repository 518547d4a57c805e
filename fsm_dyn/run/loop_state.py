"""State of a run between calls of the runtime, the answers to its requests, its results as arrays."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final, Protocol, Self

import numpy as np

from fsm_dyn.core.arrays import Booleans, Codes, Floats, Integers
from fsm_dyn.core.errors import RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.run import structures as st
from fsm_dyn.run.executable import SavedState
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.outcomes import OUTCOMES, Outcome
from fsm_dyn.run.structures import Packed
from fsm_dyn.runtime.abi import (
    FEW,
    GUARD_WIDTH,
    MAX_FIRED,
    ROWS_PER_TURN,
    ArenaTop,
    Clock,
    Counters,
    Notes,
    OptionNumbers,
    Phase,
    RecordColumn,
    Sizes,
    Status,
    Undecided,
)
from fsm_dyn.runtime.layouts import Buffers, Options, RunState, Tables, Work
from fsm_dyn.runtime.library import RunStructure

_UNDECIDED: Final = len(Undecided)
_ONE_RUN = np.zeros(0, np.int64)  # in the place of the first rows


@dataclass  # not frozen: a frozen one takes six times as long to fill
class Rows:
    """Rows of 1 to n runs, one behind another: one row per accepted step, two at a transition (before and after)."""

    # shape (n,): times, s, never decreasing within a run; equal neighbours are the two sides of a transition or of an
    # input's jump
    t: Floats
    # x, x_dot: shape (n, n_q + n_u): states and their rates, SI
    x: Floats
    x_dot: Floats
    # shape (n, n_q + n_u): state in the middle of the step before this row; not read for the first row of an interval
    x_mid: Floats
    mode: Integers  # shape (n,): mode index; the last row of a step has the mode of the step
    # shape (n, 4 n_w + n_contacts + n_memory): the context without the parameters: inputs, two rates, slip directions,
    # memory, third rates; from the right at a first row of an interval, else from the left
    held: Floats
    # shape (runs + 1,): first row of each run, and the number of rows; by default of one run
    begin: Integers = field(default_factory=lambda: _ONE_RUN, kw_only=True)

    def __post_init__(self) -> None:
        if self.begin is _ONE_RUN:
            self.begin = np.array([0, len(self.t)])

    @classmethod
    def of_table(cls, table: Floats, mode: Integers, n_x: int, **others: Any) -> Self:
        """Return rows of the runtime's table: time, state, rates, state in the middle of the step, context.

        ``table``, shape (n, 1 + 3 n_x + n_held): the time is copied, the others are views; ``mode``, shape (n,);
        ``n_x``: number of coordinates and speeds; ``others``: further fields.
        """
        x, x_dot, x_mid = (table[:, 1 + k * n_x : 1 + (k + 1) * n_x] for k in range(3))
        return cls(table[:, 0].copy(), x, x_dot, x_mid, mode, table[:, 1 + 3 * n_x :], **others)

    @cached_property
    def starts(self) -> Booleans:
        """First rows of intervals: the first of a run, and the later of two rows at one time; shape (n,)."""
        begins = np.ones(len(self.t), dtype=np.bool_)
        begins[1:] = self.t[1:] == self.t[:-1]
        if len(self.begin) > 2:
            begins[self.begin[:-1]] = True
        return begins

    def runs_of(self, rows: Integers) -> Integers:
        """Return the number of the run of each row; both of shape (m,)."""
        return np.searchsorted(self.begin, rows, side="right") - 1


# -- Results of a run as plain arrays ------------------------------------------------------------------------


@dataclass(frozen=True)
class TransitionArrays:
    """The transitions of a run, one entry (or row) each.

    ``row`` is the row of the state after; the row before it holds the state before.  ``reason`` is one of
    :class:`fsm_dyn.runtime.abi.Reason`.  Of the guards fired together, ``fired`` in number, ``event contact
    direction value slope`` have shape (n, MAX_FIRED); for a user transition ``contact`` is its index.  ``impulse``
    has shape (n, n_rows), ``u_before u_after`` (n, n_u), energies are in J.  ``candidates consistent chosen_by log``
    tell of the decision: see :mod:`fsm_dyn.run.outcomes`.
    """

    time: Floats
    source: Integers
    target: Integers
    row: Integers
    reason: Integers
    fired: Integers
    candidates: Integers
    written: Integers
    energy_before: Floats
    energy_after: Floats
    beta: Floats
    event: Integers
    contact: Integers
    direction: Floats
    value: Floats
    slope: Floats
    impulse: Floats
    u_before: Floats
    u_after: Floats
    consistent: Integers
    chosen_by: Integers
    log: Floats

    def __len__(self) -> int:
        return len(self.time)


@dataclass  # not frozen: a frozen one takes six times as long to fill
class RunArrays(Rows):
    """A run as arrays, which nothing changes: its rows, with the mode numbers of the executable, and its end."""

    records: Floats = field(repr=False)  # the transitions as the loop wrote them; read them as `transitions`
    outcome: Outcome
    tables: Tables  # of the end, with the modes added on the way
    requested_states: Codes  # the last, (n_contacts,)
    steps: int  # accepted
    rejected: int
    retakes: int  # to locate events
    drift_energy: float  # put in by projections, J
    drift_residual: float  # the largest
    mode_end: int
    c_end: Floats = field(repr=False)  # context at the end
    tried: int = 0  # combinations, in the last decision
    log: Floats = field(default_factory=lambda: np.zeros(0), repr=False)  # of its candidates
    rank: Floats = field(default_factory=lambda: np.zeros(0), repr=False)  # last estimate for the active rows
    passages: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)  # through change points, a row each
    # steps halved as a guard was not decided; event and subject of the last such guard
    undecided: Integers = field(default_factory=lambda: np.zeros(_UNDECIDED, dtype=np.int64), repr=False)
    time_stepping: bool = False  # steps then end with the speeds without impulses if contact states change
    saved: SavedState | None = field(default=None, repr=False)  # to continue from, if requested and possible

    @cached_property
    def transitions(self) -> TransitionArrays:
        """The transitions, taken out of their records when first asked for."""
        return read_transitions(self.records, int(self.tables.sizes[Sizes.N_ROWS]), int(self.tables.sizes[Sizes.N_U]))


def read_transitions(records: Floats, n_rows: int, n_u: int) -> TransitionArrays:
    """Take records of transitions apart."""
    whole = records[:, : RecordColumn.GUARDS]
    at = RecordColumn.GUARDS + MAX_FIRED * GUARD_WIDTH
    guards = records[:, RecordColumn.GUARDS : at].reshape(len(records), MAX_FIRED, GUARD_WIDTH)
    present = np.arange(MAX_FIRED) < whole[:, RecordColumn.FIRED, None]

    def integers(column: int) -> Integers:
        return whole[:, column].astype(np.int64)

    def guard(column: int) -> Any:
        return np.where(present, guards[:, :, column], -1.0 if column < 2 else np.nan)

    return TransitionArrays(
        time=whole[:, RecordColumn.TIME].copy(),
        source=integers(RecordColumn.SOURCE),
        target=integers(RecordColumn.TARGET),
        row=integers(RecordColumn.ROW),
        reason=integers(RecordColumn.REASON),
        fired=integers(RecordColumn.FIRED),
        candidates=integers(RecordColumn.CANDIDATES),
        written=integers(RecordColumn.WRITTEN),
        energy_before=whole[:, RecordColumn.ENERGY_BEFORE].copy(),
        energy_after=whole[:, RecordColumn.ENERGY_AFTER].copy(),
        beta=whole[:, RecordColumn.BETA].copy(),
        event=guard(0).astype(np.int64),
        contact=guard(1).astype(np.int64),
        direction=guard(2),
        value=guard(3),
        slope=guard(4),
        impulse=records[:, at : at + n_rows].copy(),
        u_before=records[:, at + n_rows : at + n_rows + n_u].copy(),
        u_after=records[:, at + n_rows + n_u : at + n_rows + 2 * n_u].copy(),
        consistent=integers(RecordColumn.CONSISTENT),
        chosen_by=integers(RecordColumn.CHOSEN_BY),
        log=records[:, at + n_rows + 2 * n_u :].copy(),
    )


def order_of(mode: Integers, changes: Integers, mode_end: int, fixed: int) -> tuple[int, ...]:
    """Return the modes of a run in the order of their appearance, after the first ``fixed`` ones.

    ``mode``, int64 array, shape (n,): mode of each row; ``changes``, int64 array, shape (m, 2): modes before and after
    each transition; ``mode_end``: mode at the end.
    """
    turns = mode[1:][mode[1:] != mode[:-1]]  # charts change between transitions as well
    met = [mode[:1], changes.ravel(), turns, np.array([mode_end])]
    return tuple(dict.fromkeys([*range(fixed), *np.concatenate(met).tolist()]))


def renumbered(raw: RunArrays, fixed: int, order: tuple[int, ...] | None = None) -> tuple[RunArrays, tuple[int, ...]]:
    """Number the modes of a run independently of other runs.

    An executable numbers modes in the order in which its runs reached them, earlier runs too. ``fixed``: how many modes
    were there before any run; they keep their numbers. ``order``: the modes by new number, if the run is a part of a
    longer one (:func:`order_of`). Returns the run; the further modes it reached have the next numbers in their order of
    appearance.
    """
    count = int(raw.tables.sizes[Sizes.N_MODES])
    if order is None and count <= fixed:
        return raw, tuple(range(count))
    columns = [RecordColumn.SOURCE, RecordColumn.TARGET]
    changes = raw.records[:, columns].astype(np.int64)
    if order is None:
        order = order_of(raw.mode, changes, raw.mode_end, fixed)
    if order == tuple(range(len(order))):
        return raw, order
    new = np.full(max(order) + 1, -1)
    new[list(order)] = np.arange(len(order))
    records = raw.records.copy()
    records[:, columns] = new[changes]
    tables = raw.tables._replace(mode_states=raw.tables.mode_states[list(order)])
    changed = replace(raw, mode=new[raw.mode], records=records, mode_end=int(new[raw.mode_end]), tables=tables)
    return changed, order


# -- State of a run between calls of the runtime, and the answers to its requests ----------------------------

_FIRST_ROWS: Final = 512
_FIRST_TRANSITIONS: Final = 64
_MORE: Final = 4  # times the room where there is too little
_WORST_PIVOT: Final = 1e-13
_MOST_IDLE: Final = 4
_MOST_IDLE_ROWS: Final = 8192
_MOST_PACKED: Final = 8


class ModeProvider(Protocol):
    """Provides modes and charts not derived in advance.

    Both return tables with all present numbers kept.
    """

    def provide_mode(self, states: Codes, t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states; raise RunError where it may not be."""

    def provide_chart(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append another chart of mode ``number`` for the given state, if there is one."""

    def kernels_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append a chart, with kernels of its own, of mode ``number`` embedded online, if there is one."""


@dataclass
class LoopState:
    """Data of one run between calls of the compiled loop."""

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
    contacts: int = FEW  # with memory to meet in a transition
    options: tuple[Options, Packed] | None = None  # of the run, for the next one to write its own into

    def run(self, inputs: Packed, method: Packed, options: Packed) -> RunStructure:
        """Return the present addresses of the memory of the run."""
        return RunStructure(
            self.tables_packed.address, inputs.address, method.address, options.address, self.state_packed.address,
            self.work_packed.address, self.buffers_packed.address,
        )  # fmt: skip


@dataclass
class Workspace:
    """Memory of the runs of one thread, used one after the other.

    A run has its memory alone, as one may begin while another waits.
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
        """Keep the memory of a finished run, and the latest of earlier ones, up to a bound of rows.

        A run with derived modes ends with other tables: the memory of the run before is then useless.
        """
        self.idle.append(loop)
        del self.idle[:-_MOST_IDLE]
        while self.idle and sum(len(kept.buffers.modes) for kept in self.idle) > _MOST_IDLE_ROWS:
            del self.idle[0]


def begin(
    tables: Tables, t0: float, x: Floats, c: Floats, mode0: int, drive: InputSignals, stages: int, workspace: Workspace
) -> LoopState:
    """Return the loop of a new run with a method of this number of stages."""
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
    """Let a run end with the known switches over time of its inputs; return whether this is its own end (s).

    A step ends there in any case: the run continues as if it had known all switches.
    """
    options.numbers[OptionNumbers.UNTIL] = min(until, signals.until)
    return until <= signals.until


def enter_next_window(loop: LoopState, signals: InputSignals) -> InputSignals:
    """Return the inputs with the following switches, the first of which the run is to enter."""
    following = signals.following()
    loop.state.counters[Counters.SEGMENT] = following.segment_before(signals.until)
    return following


def provide_requested(loop: LoopState, status: int, mode_source: ModeProvider | None) -> int | None:
    """Provide a request of the compiled loop; return the outcome of the run if this is impossible."""
    if status == Status.BUFFER_FULL and loop.work.top[ArenaTop.OVERFLOWN] != 0:
        loop.contacts = st.more_contacts(loop.tables, loop.contacts)
        _renew_work(loop, loop.tables)
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
        if int(loop.tables.sizes[Sizes.N_MODES]) == before and not _is_listed(loop.tables, loop.work.wanted):
            return Status.MODE_NOT_LISTED
    elif status == Status.NEED_CHART and loop.state.counters[Counters.PHASE] == Phase.RESOLVING:
        _entry_chart(loop, mode_source)
    elif asks_for_kernels(loop, status):
        _own_kernels(loop, mode_source)
    elif status == Status.NEED_CHART and not _other_chart(loop, mode_source):
        return Status.SINGULAR
    return None


def _is_listed(tables: Tables, states: Codes) -> bool:
    """Whether the tables have a mode with these contact states: one that rested was there before."""
    return bool((tables.mode_states == states).all(axis=1).any())


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
    """Ask for kernels of the current mode; without valid ones here, its evaluations count from zero."""
    mode, before = int(loop.state.counters[Counters.MODE]), int(loop.tables.sizes[Sizes.N_MODES])
    if mode_source is not None:
        t, x, c = float(loop.state.clock[Clock.TIME]), loop.state.x.copy(), loop.state.c.copy()
        _take_tables(loop, mode_source.kernels_needed(mode, t, x, c))
    if int(loop.tables.sizes[Sizes.N_MODES]) == before:
        loop.state.spent[mode] = 0


def _entry_chart(loop: LoopState, mode_source: ModeProvider | None) -> None:
    """Ask for a chart for the state after the pending transition."""
    if mode_source is None:
        return
    t, x, c = float(loop.state.clock[Clock.TIME]), loop.work.x_mid.copy(), loop.work.c_after.copy()
    _take_tables(loop, mode_source.provide_chart(int(loop.work.notes[Notes.TARGET]), t, x, c))


def _take_tables(loop: LoopState, tables: Tables) -> None:
    """Continue with larger tables."""
    if tables is loop.tables:
        return
    before = loop.tables
    loop.tables, loop.tables_packed = tables, loop.workspace.pack(tables)
    if _differ_in_modes_alone(before, tables):
        if len(tables.mode_rhs) > len(loop.state.spent):
            loop.state, loop.state_packed = st.resized_state(loop.state, before, tables)
        return
    wanted = loop.work.wanted.copy()
    loop.state, loop.state_packed = st.resized_state(loop.state, before, tables)
    _renew_work(loop, tables)
    loop.work.wanted[:] = wanted


def _renew_work(loop: LoopState, tables: Tables) -> None:
    undecided = loop.work.proof_numbers[:_UNDECIDED].copy()
    loop.work, loop.work_packed = st.new_work(tables, loop.stages, loop.contacts)
    loop.work.proof_numbers[:_UNDECIDED] = undecided


def _differ_in_modes_alone(before: Tables, after: Tables) -> bool:
    """Whether tables need the memory of a run that those before needed, except for each mode."""
    sizes = after.sizes.copy()
    sizes[Sizes.N_MODES] = before.sizes[Sizes.N_MODES]
    return bool((sizes == before.sizes).all()) and len(before.shape_centres) == len(after.shape_centres)


def _grow_buffers(loop: LoopState) -> None:
    """Give nearly full arrays more room: what is not written yet takes no memory."""
    old = loop.buffers
    rows, records = int(loop.state.counters[Counters.ROWS]), int(loop.state.counters[Counters.TRANSITIONS])
    more_rows = len(old.modes) * (_MORE if rows + ROWS_PER_TURN > len(old.modes) else 1)
    more_records = len(old.transitions) * (_MORE if records >= len(old.transitions) else 1)
    passed = int(loop.state.counters[Counters.PASSED])
    more_passages = len(old.passages) * (_MORE if passed >= len(old.passages) else 1)
    new = st.new_buffers(loop.tables, more_rows, more_records, more_passages)
    new.rows[:rows] = old.rows[:rows]
    new.modes[:rows] = old.modes[:rows]
    new.transitions[:records] = old.transitions[:records]
    new.passages[:passed] = old.passages[:passed]
    loop.buffers, loop.buffers_packed = new, st.BUFFERS.pack(new)


def finish(loop: LoopState, status: int, saved: SavedState | None = None) -> RunArrays:
    """Cut the recording out of the buffers; ``saved``: state to continue the run from."""
    state = loop.state
    counters = state.counters.tolist()
    drift_energy, drift_residual = state.drift.tolist()
    n = counters[Counters.ROWS]
    raw = RunArrays.of_table(
        loop.buffers.rows[:n].copy(),
        loop.buffers.modes[:n].copy(),
        len(state.x),
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
        undecided=loop.work.proof_numbers[:_UNDECIDED].copy(),
        log=loop.work.log.copy(),
        rank=state.rank.copy(),
        passages=loop.buffers.passages[: counters[Counters.PASSED]].copy(),
        saved=saved,
    )
    loop.workspace.give_back(loop)
    return raw
