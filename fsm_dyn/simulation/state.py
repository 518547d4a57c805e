"""State, options and workspace of the runtime, as tuples of arrays.

The loop can stop anywhere between two steps and be entered again: all it knows is in :class:`RunState`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.programs.enclosure_code import JET
from fsm_dyn.simulation import event_resolution
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.array_structs import Bundle, Packed
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import pack_terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# ``RunState.clock``
TIME: Final = 0
BEGIN: Final = 1  # where the grid of fixed steps begins
STEP: Final = 2  # length the next step should have; 0: not chosen yet
EVENT_TIME: Final = 4  # when the last transition happened
PIVOT_ALARM: Final = 5  # pivot below which another chart is wanted
JUMP: Final = 6  # length of the advance to the end of a Zeno train, once its contacts are closed
PIVOT: Final = 7  # smallest scaled pivot at the current state
WINDOW: Final = 8  # when the present window of transitions began
FORCE: Final = 10  # largest multiplier at the start of the mode; those of the modes before count half as much each time
PUT_OFF: Final = 11  # length to continue with of a step whose next trial was put off, 0: none was
CLOCK_COUNT: Final = 12

# ``RunState.counters``
MODE: Final = 0
PHASE: Final = 1
REASON: Final = 2  # why the pending resolution is called
FIRED: Final = 3  # number of guards in ``RunState.fired``
GRID: Final = 4  # number of the last grid point reached
SEGMENT: Final = 5  # segment of the input tables
ROWS: Final = 6  # rows recorded
TRANSITIONS: Final = 7  # transitions recorded
STEPS: Final = 8  # steps accepted
REJECTED: Final = 9  # steps rejected
RETAKES: Final = 10  # steps retaken to locate events
INSTANT: Final = 11  # transitions made in this instant
STARTED: Final = 13  # 1 once the first row stands
CYCLE: Final = 14  # impacts in a cycle of the Zeno sequence of impacts that is being ended
PASSED: Final = 17  # change points recorded
WORK_DONE: Final = 18  # since the caller set it to zero, see ``WORK_OF_TRANSITION``
COUNTER_COUNT: Final = 19

# ``RunState.rank``: what is known of the rank of the rows held; then the size of every row, and the weights with which
# rows take part in what is lost
SIZED: Final = 0  # 1 once the sizes are known
LEFT_AT: Final = 1  # time up to which no rank can be lost (s)
RATE: Final = 3  # how fast it changes at most (1/s)
AHEAD: Final = 4  # time from where the rows were looked at to the next change point (s), inf: none
BEHIND: Final = 5  # the same of the last one, negative
LANDS: Final = 7  # 1: stages of the present step are put on the rows
PASSES_AT: Final = 11  # when the present step passes a change point (s), inf: it does not
INDEPENDENT: Final = 12  # number of rows that are independent beside a change point
ACTIVE: Final = 14  # number of rows active
WORST: Final = 15  # largest error of a step near the change point that was accepted though above its tolerance
CHANGE: Final = 16  # how fast a row changes at most, as a part of its size (1/s)
MOTION: Final = 17  # how fast the coordinates changed when the rows were looked at (1/s)
RANK_COUNT: Final = 18

NEAR: Final = 0.2  # what is left of a row below which, if it is about to vanish, stages are put on the rows
TINY: Final = 1e-2  # what is left of a row that vanishes, however fast rows change
TURNED: Final = 2.0  # times its size by which a row changes at most up to a change point that is foreseen

DRIFT_COUNT: Final = 2  # ``RunState.drift``: energy put in by projections (J), largest residual met

# ``RunState.counters[WORK_DONE]``: an evaluation of the guards counts one
WORK_OF_TRANSITION: Final = 1
WORK_OF_MODE: Final = 20  # a mode reached for the first time

ROWS_PER_TURN: Final = 5  # a turn of the loop records at most this many rows

# ``RunState.counters[PHASE]``
STEPPING: Final = 0
RESOLVING: Final = 1

# status of a guard (``RunState.armed``)
WAITING: Final = 0
ARMED: Final = 1

CONDITION_WIDTH: Final = 5  # columns of ``RunState.conditions``

# ``RunState.history``: a ring of the last transitions
RING: Final = 16
RING_WIDTH: Final = 5

# ``Options.numbers``
UNTIL: Final = 0
FIXED_STEP: Final = 1
MAX_STEP: Final = 2
RTOL: Final = 3
NUMBER_COUNT: Final = 4

# ``Options.counts``
CHUNK: Final = 0  # steps after which the loop returns to report progress
MAX_STEPS: Final = 1
BEFORE_END: Final = 4  # 1: it returns before the first turn in which it may matter where the run ends
COUNT_COUNT: Final = 5

# columns of a transition record; then up to MAX_FIRED guards, the impulses, the speeds before and after, the
# candidates
RECORD_TIME: Final = 0
RECORD_SOURCE: Final = 1
RECORD_TARGET: Final = 2
RECORD_ROW: Final = 3  # row of the state after; the row before it holds the state before
RECORD_REASON: Final = 4
RECORD_FIRED: Final = 5
RECORD_CANDIDATES: Final = 6
RECORD_WRITTEN: Final = 7
RECORD_ENERGY_BEFORE: Final = 8
RECORD_ENERGY_AFTER: Final = 9
RECORD_BETA: Final = 10
RECORD_CONSISTENT: Final = 11
RECORD_CHOSEN_BY: Final = 12
RECORD_GUARDS: Final = 13
MAX_FIRED: Final = 8
GUARD_WIDTH: Final = 5  # event, contact, direction, value, slope

# columns of the record of a passage through a change point; then the weights of the rows
PASSAGE_TIME: Final = 0
PASSAGE_MODE: Final = 1
PASSAGE_RANK: Final = 2  # number of independent rows beside the change point
PASSAGE_LOST: Final = 3  # how many of them are lost in it
PASSAGE_ERROR: Final = 4  # estimated error of the step over it, in units of its tolerance
PASSAGE_ROWS: Final = 5

# ``Work.top``: what is in use of the arena, and the most there ever was
OVERFLOWN: Final = 4  # 1: more was asked for than there is
SOLVED: Final = 5  # combinations of contact states solved so far
TOP_COUNT: Final = 6

# what is known of the guards that are left out of steps
FAR_ACTIVE: Final = 0
FAR_DISTANCE: Final = 1
FAR_COUNT: Final = 2

ROOT_ROOM: Final = 471  # floats in which roots are isolated (``runtime/quintic_roots.c``)

FEW: Final = 6  # contacts that meet in a transition: room for so many is there from the start


class Options(NamedTuple):
    """What the caller asks of a run: see the index constants; ``atol`` per state, ``mask`` per mode (or one row)."""

    numbers: Floats
    counts: Integers
    atol: Floats
    mask: NDArray[np.int8]


class RunState(NamedTuple):
    """What the loop knows between two steps."""

    x: Floats
    x_dot: Floats
    c: Floats
    clock: Floats
    counters: Integers
    guards: Floats  # values, slopes, tolerances of all guards; then values and slopes of the fired ones
    armed: Integers
    fired: Integers
    limits: Integers  # per contact what it came to its limit by in this instant (0: not), then in which direction
    conditions: Floats  # per user-defined transition whether it is due, and what is known of its condition
    spent: Integers  # per mode the evaluations made for the steps taken in it
    history: Floats
    drift: Floats
    rank: Floats


class Work(NamedTuple):
    """Workspace of the loop: stages, states at mid-step and end, kernel outputs, root isolation, resolution."""

    k: Floats
    y: Floats
    x_end: Floats
    x_mid: Floats
    full_end: Floats
    full_mid: Floats
    roots: Floats
    floats: Floats  # with the two that follow: an arena, see there
    integers: Integers
    top: Integers
    addresses: Integers  # of the bundle of terms
    wanted: NDArray[np.int8]
    impulse: Floats
    energy: Floats
    notes: Integers
    u_before: Floats
    log: Floats  # candidates of the current decision
    implied: Integers  # 1: the gap of this open contact is kept by two others that are closed
    c_after: Floats  # context where a pending transition leads; the state is in ``x_mid``
    far: Floats  # what is known of the guards left out of steps, see ``FAR_ACTIVE``; empty where none may be
    near: Integers
    is_far: NDArray[np.int8]
    centres: Floats  # of round shapes, at four states
    proof: Floats  # with the two that follow: room of ``runtime/guard_proof.c``
    proof_numbers: Integers
    proof_needed: NDArray[np.int8]


class Buffers(NamedTuple):
    """Where rows and transitions are recorded.

    ``rows``: t, x, x_dot, state at the middle of the step that ends here, context from the inputs on.
    ``modes``: mode of each row.  ``transitions``, ``passages`` through change points: see the index constants.
    """

    rows: Floats
    modes: Integers
    transitions: Floats
    passages: Floats


TABLES: Final = Bundle(
    Tables,
    {
        "mode_states": 2,
        "contact_rows": 2,
        "contact_ends": 2,
        "transitions": 2,
        "transition_states": 2,
        "transition_leaves": 2,
    },
)
OPTIONS: Final = Bundle(Options, {"mask": 2})
STATE: Final = Bundle(RunState)
WORK: Final = Bundle(Work)
BUFFERS: Final = Bundle(Buffers, {"rows": 2, "transitions": 2, "passages": 2})


def full_length(tables: Tables) -> int:
    """Return the longest output of a ``full`` kernel."""
    s = tables.sizes
    return int(s[tb.N_Q] + 2 * s[tb.N_U] + 1 + 2 * s[tb.MAX_GUARDS] + s[tb.N_ROWS])


def row_width(tables: Tables) -> int:
    """Return the number of columns of ``Buffers.rows``."""
    s = tables.sizes
    return int(1 + 3 * (s[tb.N_Q] + s[tb.N_U]) + tb.context_length(s) - s[tb.N_P])


def record_width(tables: Tables) -> int:
    """Return the number of columns of ``Buffers.transitions``."""
    s = tables.sizes
    return int(RECORD_GUARDS + MAX_FIRED * GUARD_WIDTH + s[tb.N_ROWS] + 2 * s[tb.N_U] + event_resolution.LOG_LENGTH)


def new_state(tables: Tables, t: float, x: Floats, c: Floats, mode: int) -> tuple[RunState, Packed]:
    """Return the state of a run that is about to start at time ``t`` (s) in ``mode``, and its bundle."""
    most = int(tables.sizes[tb.MAX_GUARDS])
    n = len(x)
    state, packed = STATE.allocate(
        n, n, len(c), CLOCK_COUNT, COUNTER_COUNT, 5 * most, most, most,
        2 * int(tables.sizes[tb.N_CONTACTS]), CONDITION_WIDTH * int(tables.sizes[tb.N_TRANSITIONS]),
        len(tables.mode_rhs), RING * RING_WIDTH, DRIFT_COUNT,
        RANK_COUNT + 2 * int(tables.sizes[tb.N_ROWS]),
    )  # fmt: skip
    restart_state(state, packed, tables, t, x, c, mode)
    return state, packed


def restart_state(state: RunState, packed: Packed, tables: Tables, t: float, x: Floats, c: Floats, mode: int) -> None:
    """Make a state that of a run that is about to start; arguments as of :func:`new_state`."""
    packed.table[: -STATE.words] = 0
    state.x[:] = x
    state.c[:] = c
    clock, rank, counters = state.clock, state.rank, state.counters
    clock[TIME] = clock[BEGIN] = t
    clock[EVENT_TIME] = clock[WINDOW] = -np.inf
    clock[PIVOT_ALARM] = tables.tolerances[tol.PIVOT]
    rank[LEFT_AT] = -np.inf
    rank[AHEAD] = rank[BEHIND] = rank[PASSES_AT] = np.inf
    counters[MODE] = mode
    counters[PHASE] = RESOLVING
    counters[REASON] = event_resolution.START


def resized_state(old: RunState, before: Tables, tables: Tables) -> tuple[RunState, Packed]:
    """Return the same state with room for the guards of tables that have grown."""
    state, packed = new_state(tables, 0.0, old.x, old.c, 0)
    n0, n1 = int(before.sizes[tb.MAX_GUARDS]), int(tables.sizes[tb.MAX_GUARDS])
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
    n_u = int(s[tb.N_U])
    n = int(s[tb.N_Q]) + n_u
    floats, integers = event_resolution.workspace(s, min(int(s[tb.N_CONTACTS]), contacts))
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
        TOP_COUNT,
        1,
        int(s[tb.N_CONTACTS]),
        int(s[tb.N_ROWS]),
        event_resolution.ENERGY_COUNT,
        event_resolution.NOTE_COUNT,
        n_u,
        event_resolution.LOG_LENGTH,
        int(s[tb.N_CONTACTS]),
        tb.context_length(s),
        FAR_COUNT if len(tables.shape_centres) else 0,
        1 + int(s[tb.MAX_GUARDS]) if len(tables.shape_centres) else 0,
        int(s[tb.MAX_GUARDS]) if len(tables.shape_centres) else 0,
        4 * 6 * int(s[tb.N_SHAPES]) if len(tables.shape_centres) else 0,
        *proof_room(tables),
    )
    work.addresses[0] = terms.address
    return work, packed._replace(arrays=(terms,))


def proof_room(tables: Tables) -> tuple[int, int, int]:
    """Return the lengths of the arrays of ``runtime/guard_proof.c``: numbers, integers, marks of operations."""
    moving, values, words, guards = (
        int(tables.sizes[i]) for i in (tb.MAX_MOVING, tb.MAX_VALUES, tb.PROOF_WORDS, tb.MAX_GUARDS)
    )
    return 12 * moving + 3 * guards + 2 * JET * values + words + 1, 7 + 3 * guards, values


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
        passages=np.empty((passages, PASSAGE_ROWS + int(tables.sizes[tb.N_ROWS]))),
    )
