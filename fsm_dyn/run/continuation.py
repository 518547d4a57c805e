"""Continued runs: the state saved before the end affects a run, its form in a file, the join of both parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.storage import run_version
from fsm_dyn.core.arrays import Integers
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.run.executable import Executable, FirstRow, KnownCharts, SavedState, check
from fsm_dyn.run.loop_state import LoopState, ModeProvider, RunArrays, order_of, provide_requested, renumbered
from fsm_dyn.run.record import RunRecord, joined
from fsm_dyn.run.run_setup import RunArguments, StoredOptions
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Clock, Counters, Phase, Reason, RecordColumn, Restored, Sizes, Status
from fsm_dyn.runtime.library import RunStructure

# -- Saving the state of a run before its end time affects it, and restoring it ------------------------------
#
# A run ends with a step shortened to end there. A continued run takes the same steps as an uninterrupted one, because
# the saved state is the one before the end first had an influence
# (``runtime/end_of_run.c``); rows and transitions recorded after that are made again.

NEARLY_SPENT: Final = 64  # steps left of those allowed, from which on the state is saved before every turn
CONTINUABLE: Final = (Status.DONE, Status.INTERRUPTED, Status.TOO_MANY_STEPS)


class Savable(Protocol):
    """State of a run in addition to the runtime's: a :class:`~fsm_dyn.run.executable.Executable`."""

    def charts_known(self) -> KnownCharts:
        """Charts requested by the run."""

    def online_modes(self) -> Integers:
        """Addresses of the modes embedded online by their numbers, 0 for others."""


class Saver:
    """Saves the state of a run for its continuation. ``digest``: digest (64 bits) of the model."""

    def __init__(self, source: Savable, digest: int) -> None:
        self.source = source
        self.digest = digest
        self.before_end = False  # whether the saved state is the one before the end had an influence
        self._saved: SavedState | None = None

    def save(
        self, loop: LoopState, run: RunStructure, solver: Mapping[str, Any] | None = None, *, before_end: bool = False
    ) -> None:
        """Save the current state; not once it has mattered where the run ends, nor before anything was recorded."""
        counters = loop.state.counters.tolist()
        fits = len(loop.state.armed) == loop.tables.sizes[Sizes.MAX_GUARDS]
        starting = counters[Counters.PHASE] == Phase.RESOLVING and counters[Counters.REASON] == Reason.START
        if self.before_end or not fits or starting or counters[Counters.ROWS] == 0:
            return
        self.before_end = before_end
        self._saved = SavedState(
            library.save(run, self.source.online_modes(), self.digest),
            counters[Counters.ROWS], counters[Counters.TRANSITIONS], counters[Counters.PASSED],
            self.source.charts_known(), loop.charted, solver,
        )  # fmt: skip

    def keep(self, saved: SavedState) -> None:
        """Take a state saved otherwise."""
        self._saved = saved

    def saved_of(self, outcome: int) -> SavedState | None:
        """Return the state to resume the run from, or None."""
        return self._saved if outcome in CONTINUABLE else None


def restore(
    loop: LoopState,
    handle: Callable[[], RunStructure],
    saved: SavedState,
    first: FirstRow,
    saver: Saver,
    modes: ModeProvider | None,
    renewed: bool = False,
) -> None:
    """Give a new loop a saved state, and the row recorded last.

    ``handle``: returns the present addresses of the memory of the run; ``saved``, ``first``, ``saver``: the saved
    words, and their model and settings; ``modes``: asked for modes of the saved state missing in the tables;
    ``renewed``: whether steps restart: no length is chosen, and the grid of fixed steps starts here. Raises InputError:
    the state is damaged, or does not belong to this model and these settings.
    """
    while True:
        result = library.restore(handle(), saver.source.online_modes(), saver.digest, saved.words)
        if result != Restored.LACKS_MODE or provide_requested(loop, Status.NEED_MODE, modes) is not None:
            break
    check(result)
    if renewed:
        clock = loop.state.clock
        clock[[Clock.STEP, Clock.ERROR, Clock.PUT_OFF]] = 0.0
        clock[Clock.BEGIN] = clock[Clock.TIME]
        loop.state.counters[Counters.GRID] = 0
    loop.charted = saved.charted
    loop.buffers.rows[0] = first.values
    loop.buffers.modes[0] = first.mode
    loop.state.counters[Counters.ROWS] = 1


# -- The saved state with its run, also in a file ---------------------------------------------------------------


class _StoredPlace(msgspec.Struct):
    states: tuple[int, ...]
    t: float
    x: list[float]
    c: list[float]


_Count = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class StoredContinuation(msgspec.Struct):
    """A :class:`Continuation` in a saved run."""

    settings: StoredOptions
    compiler: str
    state: bytes
    digest: str
    rows: _Count
    transitions: _Count
    change_points: _Count
    modes: list[tuple[tuple[int, ...], _Count]]
    changes: list[tuple[_Count, _Count]]
    charts: list[_StoredPlace]
    in_vain: list[tuple[tuple[int, ...], float]]
    charted: _Count
    solver: dict[str, Any] | None = None


@dataclass(frozen=True)
class Continuation:
    """State and options of a continued run."""

    settings: StoredOptions  # msgspec.Struct
    compiler: str  # version of the deriving program
    digest: str  # of the model, the parameters and the settings (:func:`run_digest`)
    state: SavedState  # ``rows`` and ``transitions`` of the run's record were there when it was saved
    # tuple of (states, int): by mode index of the record: contact states, and which of the charts with these
    modes: tuple[tuple[tuple[int, ...], int], ...]
    changes: Integers  # shape (n, 2): mode indices before and after each of these transitions

    def stored(self) -> StoredContinuation:
        """Return its form in a file."""
        state = self.state
        return StoredContinuation(
            settings=self.settings,
            compiler=self.compiler,
            state=state.words.astype("<u8").tobytes(),
            digest=self.digest,
            rows=state.rows,
            transitions=state.transitions,
            change_points=state.passages,
            modes=list(self.modes),
            changes=[(int(a), int(b)) for a, b in self.changes],
            charts=[_StoredPlace(states, t, x.tolist(), c.tolist()) for states, t, x, c in state.charts.places],
            in_vain=list(state.charts.in_vain),
            charted=state.charted,
            solver=None if state.solver is None else dict(state.solver),
        )


def continuation_of(
    data: StoredContinuation,
    codes: Sequence[Sequence[int]],
    modes: Sequence[tuple[int, ...]],
    lengths: tuple[int, int],
    rows: int,
    transitions: int,
) -> Continuation:
    """Return the content of a file.

    ``codes``: possible states per contact; ``modes``: contact states of the run by mode index; ``lengths``: of state
    and context; ``rows``, ``transitions``: how many the saved run has. Raises InputError: it is inconsistent or
    corrupt.
    """
    places = tuple((place.states, place.t, np.array(place.x), np.array(place.c)) for place in data.charts)
    changes = np.array(data.changes, np.int64).reshape(-1, 2)
    good = len(data.state) % 8 == 0 and 0 < data.rows <= rows and 0 <= data.transitions <= transitions
    good &= len(changes) == data.transitions and bool(((changes >= 0) & (changes < len(data.modes))).all())
    named = [states for states, _ in (*data.modes, *data.in_vain)] + [place.states for place in data.charts]
    good &= all(len(states) == len(codes) for states in named)
    good &= all(code in known for states in named for code, known in zip(states, codes, strict=False))
    good &= all(chart >= 0 for _, chart in data.modes) and [states for states, _ in data.modes] == list(modes)
    good &= all((len(x), len(c)) == lengths for _, _, x, c in places) and data.change_points >= 0
    if not good:
        raise InputError("what the run is continued from is damaged", remedy="run it again")
    words = np.frombuffer(data.state, "<u8").astype(np.uint64)
    charts = KnownCharts(places, tuple(data.in_vain))
    state = SavedState(
        words, data.rows, data.transitions, data.change_points, charts, data.charted, data.solver,
    )  # fmt: skip
    return Continuation(data.settings, data.compiler, data.digest, state, tuple(data.modes), changes)


def check_continuation(continuation: Continuation, digest: str, compiler: str) -> None:
    """Check the options of a continued run against its own.

    Raises InputError: it was run by another version, or its model, parameters or settings have been changed since.
    """
    if continuation.compiler != compiler:
        raise InputError(
            "the run cannot be continued: it was run by another version of fsm_dyn, whose equations may differ",
            found=f"version {continuation.compiler}",
            allowed=f"version {compiler}",
            remedy="run it again",
        )
    if continuation.digest != digest:
        raise InputError(
            "the run cannot be continued: its model, parameters or settings are not those with which it was run",
            remedy="run it again",
        )


# -- Continued runs: modes of the saved run, and the join of both parts of the record ------------------------

_CHANGES = slice(RecordColumn.SOURCE, RecordColumn.TARGET + 1)


@dataclass
class Before:
    """A continued run; ``whole``: whether the result is the whole of it."""

    record: RunRecord
    continuation: Continuation
    whole: bool
    numbers: list[int] = field(default_factory=list)  # of its modes in the machine, by mode index
    saved_by: str = ""  # the method of the run, where the continuation has another method or step

    @property
    def row(self) -> int:
        """The last kept row."""
        return self.continuation.state.rows - 1

    def ready(self, executable: Executable) -> tuple[SavedState, FirstRow]:
        """Make modes and charts of the kept rows in a machine; return the state and the last row."""
        record, continuation, row = self.record, self.continuation, self.row
        executable.restore_charts(continuation.state.charts)
        used = {*np.unique(record.mode[: row + 1]).tolist(), *np.unique(continuation.changes).tolist()}
        self.numbers = [
            executable.chart_of(states, chart) if index in used else -1
            for index, (states, chart) in enumerate(continuation.modes)
        ]
        parts = (record.t[row : row + 1], record.x[row], record.x_dot[row], record.x_mid[row], record.held[row])
        return continuation.state, FirstRow(
            np.concatenate(parts), self.numbers[record.mode[row]], bool(record.starts[row])
        )


@dataclass  # not frozen, as RunArguments
class Numbered:
    """A run with modes numbered independently of other runs.

    ``order``: by new number the number in the machine; ``continuation``: returns the state to continue from, if any;
    ``state``, ``kept``: where it was continued, and the run before, for a result with the whole of it.
    """

    raw: RunArrays
    order: tuple[int, ...]
    continuation: Callable[[], Continuation] | None
    state: SavedState | None = None
    kept: RunRecord | None = None

    def joined(self, record: RunRecord) -> RunRecord:
        """Return the record of this run after the one before."""
        if self.state is None or self.kept is None:
            return record
        return joined(self.kept, record, self.state.rows, self.state.transitions, self.state.passages)


def numbered(run: RunArguments, raw: RunArrays, states: Sequence[tuple[int, ...]], before: Before | None) -> Numbered:
    """Number the modes of a run, with those of the run before for a result with the whole of it.

    ``raw``: with the numbers of the machine; ``states``: contact states by these numbers.
    """
    fixed = 0 if run.options.evaluation in ("online", "multipliers") else len(run.graph.automaton.modes)
    if before is None or not before.whole:
        pairs = raw.records[:, _CHANGES]
        raw, order = renumbered(raw, fixed)
        continuation = None if raw.saved is None else partial(_continued, run, raw.saved, states, order, pairs)
        return Numbered(raw, order, continuation)
    old, state = before.record, before.continuation.state
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
    return Numbered(raw, order, partial(_continued, run, saved, states, order, changes), state, kept)


def _indices(order: Sequence[int]) -> Integers:
    """Return the new number of every mode by its number in the machine, -1 for missing ones."""
    index = np.full(max(order) + 1, -1)
    index[list(order)] = np.arange(len(order))
    return index


def _continued(
    run: RunArguments,
    saved: SavedState,
    states: Sequence[tuple[int, ...]],
    order: Sequence[int],
    changes: npt.NDArray[Any],
) -> Continuation:
    names = tuple((states[number], states[:number].count(states[number])) for number in order)
    indices = _indices(order)[changes[: saved.transitions].astype(np.int64)]
    return Continuation(run.options.stored(), run_version(), run.digest, saved, names, indices)
