"""State, options and workspace of the runtime, as tuples of arrays.

The loop can stop anywhere between two steps and be entered again: all it knows is in :class:`RunState`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    FEW,
    GUARD_WIDTH,
    JET_NUMBERS,
    LOG_LENGTH,
    MAX_FIRED,
    RING_LENGTH,
    ROOT_ROOM,
    ArenaTop,
    Clock,
    ConditionColumn,
    Counters,
    Far,
    ImpactEnergy,
    Notes,
    PassageColumn,
    Phase,
    Rank,
    Reason,
    RecordColumn,
    RingColumn,
    Sizes,
    ToleranceTable,
)
from fsm_dyn.runtime.layouts import Buffers, Options, RunState, Tables, Work
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.array_structs import Bundle, Packed
from fsm_dyn.simulation.terms import pack_terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DRIFT_COUNT: Final = 2  # ``RunState.drift``: energy put in by projections (J), largest residual met


TABLES: Final = Bundle(Tables)
OPTIONS: Final = Bundle(Options)
STATE: Final = Bundle(RunState)
WORK: Final = Bundle(Work)
BUFFERS: Final = Bundle(Buffers)


def full_length(tables: Tables) -> int:
    """Return the longest output of a ``full`` kernel."""
    s = tables.sizes
    return int(s[Sizes.N_Q] + 2 * s[Sizes.N_U] + 1 + 2 * s[Sizes.MAX_GUARDS] + s[Sizes.N_ROWS])


def row_width(tables: Tables) -> int:
    """Return the number of columns of ``Buffers.rows``."""
    s = tables.sizes
    return int(1 + 3 * (s[Sizes.N_Q] + s[Sizes.N_U]) + tb.context_length(s) - s[Sizes.N_P])


def record_width(tables: Tables) -> int:
    """Return the number of columns of ``Buffers.transitions``."""
    s = tables.sizes
    return int(RecordColumn.GUARDS + MAX_FIRED * GUARD_WIDTH + s[Sizes.N_ROWS] + 2 * s[Sizes.N_U] + LOG_LENGTH)


def new_state(tables: Tables, t: float, x: Floats, c: Floats, mode: int) -> tuple[RunState, Packed]:
    """Return the state of a run that is about to start at time ``t`` (s) in ``mode``, and its bundle."""
    most = int(tables.sizes[Sizes.MAX_GUARDS])
    n = len(x)
    state, packed = STATE.allocate(
        n, n, len(c), Clock.COUNT, Counters.COUNT, 5 * most, most, most,
        2 * int(tables.sizes[Sizes.N_CONTACTS]), ConditionColumn.WIDTH * int(tables.sizes[Sizes.N_TRANSITIONS]),
        len(tables.mode_rhs), RING_LENGTH * RingColumn.WIDTH, DRIFT_COUNT,
        Rank.COUNT + 2 * int(tables.sizes[Sizes.N_ROWS]),
    )  # fmt: skip
    restart_state(state, packed, tables, t, x, c, mode)
    return state, packed


def restart_state(state: RunState, packed: Packed, tables: Tables, t: float, x: Floats, c: Floats, mode: int) -> None:
    """Make a state that of a run that is about to start; arguments as of :func:`new_state`."""
    packed.table[: -STATE.words] = 0
    state.x[:] = x
    state.c[:] = c
    clock, rank, counters = state.clock, state.rank, state.counters
    clock[Clock.TIME] = clock[Clock.BEGIN] = t
    clock[Clock.EVENT_TIME] = clock[Clock.WINDOW] = -np.inf
    clock[Clock.PIVOT_ALARM] = tables.tolerances[ToleranceTable.PIVOT]
    rank[Rank.LEFT_AT] = -np.inf
    rank[Rank.AHEAD] = rank[Rank.BEHIND] = rank[Rank.PASSES_AT] = np.inf
    counters[Counters.MODE] = mode
    counters[Counters.PHASE] = Phase.RESOLVING
    counters[Counters.REASON] = Reason.START


def resized_state(old: RunState, before: Tables, tables: Tables) -> tuple[RunState, Packed]:
    """Return the same state with room for the guards of tables that have grown."""
    state, packed = new_state(tables, 0.0, old.x, old.c, 0)
    n0, n1 = int(before.sizes[Sizes.MAX_GUARDS]), int(tables.sizes[Sizes.MAX_GUARDS])
    for name in ("x_dot", "clock", "counters", "limits", "conditions", "history", "drift", "rank"):
        getattr(state, name)[:] = getattr(old, name)
    for i in range(5):
        state.guards[i * n1 : i * n1 + n0] = old.guards[i * n0 : (i + 1) * n0]
    state.armed[:n0] = old.armed
    state.fired[:n0] = old.fired
    state.spent[: len(old.spent)] = old.spent
    return state, packed


def new_work(tables: Tables, stages: int, contacts: int = FEW) -> tuple[Work, Packed]:
    """Return workspace for an automaton and a method of so many stages, and its bundle.

    ``contacts``: how many may meet in a transition before more room is asked for.
    """
    s = tables.sizes
    n_u = int(s[Sizes.N_U])
    n = int(s[Sizes.N_Q]) + n_u
    floats, integers = library.arena_sizes(s, min(int(s[Sizes.N_CONTACTS]), contacts))
    full = full_length(tables)
    terms = pack_terms(tables)
    work, packed = WORK.allocate(
        (stages + 1) * n,
        n,
        n,
        n,
        full,
        full,
        ROOT_ROOM,
        floats,
        integers,
        ArenaTop.COUNT,
        1,
        int(s[Sizes.N_CONTACTS]),
        int(s[Sizes.N_ROWS]),
        ImpactEnergy.COUNT,
        Notes.COUNT,
        n_u,
        LOG_LENGTH,
        int(s[Sizes.N_CONTACTS]),
        tb.context_length(s),
        Far.COUNT if len(tables.shape_centres) else 0,
        1 + int(s[Sizes.MAX_GUARDS]) if len(tables.shape_centres) else 0,
        int(s[Sizes.MAX_GUARDS]) if len(tables.shape_centres) else 0,
        4 * 6 * int(s[Sizes.N_SHAPES]) if len(tables.shape_centres) else 0,
        *proof_room(tables),
    )
    work.addresses[0] = terms.address
    return work, packed._replace(arrays=(terms,))


def proof_room(tables: Tables) -> tuple[int, int, int]:
    """Return the lengths of the arrays of ``runtime/guard_proof.c``: numbers, integers, marks of operations."""
    moving, values, words, guards = (
        int(tables.sizes[i]) for i in (Sizes.MAX_MOVING, Sizes.MAX_VALUES, Sizes.PROOF_WORDS, Sizes.MAX_GUARDS)
    )
    rows = int(tables.sizes[Sizes.N_ROWS])
    return 12 * moving + 3 * guards + 2 * JET_NUMBERS * values + words + 1, 8 + 3 * guards + 2 * rows, values


def clear_work(work: Work, packed: Packed) -> None:
    """Make workspace as good as new, so that nothing of the run before is left in it."""
    packed.table[: -WORK.words] = 0
    work.addresses[0] = packed.arrays[0].address


def new_buffers(tables: Tables, rows: int, transitions: int, passages: int = 16) -> Buffers:
    """Return room for so many rows, transitions and passages through change points."""
    return Buffers(
        rows=np.empty((rows, row_width(tables))),
        modes=np.empty(rows, dtype=np.int64),
        transitions=np.empty((transitions, record_width(tables))),
        passages=np.empty((passages, PassageColumn.ROWS + int(tables.sizes[Sizes.N_ROWS]))),
    )
