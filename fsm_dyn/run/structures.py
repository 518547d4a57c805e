"""State, options and workspace of the runtime, as named tuples of arrays."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.run import tables as tb
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
from fsm_dyn.runtime.layouts import DIMENSIONS, Buffers, Options, RunState, Tables, Work

# -- Named tuples of arrays as the structures ----------------------------------------------------------------
#
# Named tuples of arrays as the structures of the runtime (``runtime/tables.h``, ``run.h``, ``tick.h``).
#
# A structure of the runtime holds, for every array, its address and its lengths: those of the fields of the named
# tuple, in their order.

T = TypeVar("T", bound=tuple[Any, ...])


class Packed(NamedTuple):
    """A structure on the Python side: its address, its words, and the arrays, which must stay alive."""

    address: int
    table: NDArray[np.int64]
    arrays: tuple[Any, ...]


# words before the structure, dtype and place of every array, the structure with addresses from the block's beginning on
_Plan = tuple[int, list[tuple[np.dtype[Any], slice]], NDArray[np.int64]]


def _entry_type(annotation: Any) -> np.dtype[Any]:
    """Return T of ``NDArray[T]``, which numpy writes out as ``ndarray[shape, dtype[T]]`` or (from 2.5 on) does not."""
    last = get_args(annotation)[-1]
    return np.dtype((get_args(last) or (last,))[0])


class Bundle:
    """How a named tuple class becomes a structure.

    Parameters
    ----------
    cls : type
        Named tuple class whose fields are all annotated ``NDArray[dtype]``.
    dimensions : mapping, optional
        Number of dimensions of the fields with more than one; by default those of the structure in C.

    Attributes
    ----------
    words : int
        Length of the structure, as text of eight bytes.
    """

    def __init__(self, cls: type[T], dimensions: dict[str, int] | None = None) -> None:
        if dimensions is None:
            dimensions = DIMENSIONS.get(cls, {})
        self.cls = cls
        self.name = cls.__name__
        self._plans: dict[tuple[int, ...], _Plan] = {}
        hints = get_type_hints(cls)
        self.fields: dict[str, tuple[np.dtype[Any], int]] = {}
        for field in cls._fields:  # type: ignore[attr-defined]
            self.fields[field] = (_entry_type(hints[field]), dimensions.get(field, 1))

        self.words = sum(1 + ndim for _, ndim in self.fields.values())

    def pack(self, arrays: T) -> Packed:
        """Return the structure of a named tuple; raises TypeError if an array is not as declared."""
        words: list[int] = []
        for (field, (dtype, ndim)), array in zip(self.fields.items(), arrays, strict=True):
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{self.name}.{field} must be a C-contiguous {dtype} array of {ndim} dimensions")
            words += (array.ctypes.data, *array.shape)
        table = np.array(words, dtype=np.int64)
        return Packed(table.ctypes.data, table, arrays)

    def allocate(self, *lengths: int) -> tuple[Any, Packed]:
        """Return a named tuple of zeroed one-dimensional arrays of these lengths, in one block, and its structure.

        Much faster than :meth:`pack`, because a single address has to be looked up.  The last ``words`` of the block,
        ``Packed.table``, are the structure.
        """
        at, places, table = self._plan(lengths)
        block = np.zeros(at + len(table), dtype=np.int64)
        base: int = block.ctypes.data
        views = {dtype: block.view(dtype) for dtype, _ in places}
        block[at:] = table
        block[at::2] += base
        return self.cls(*[views[dtype][place] for dtype, place in places]), Packed(base + 8 * at, block, ())

    def _plan(self, lengths: tuple[int, ...]) -> _Plan:
        """Positions of arrays in a block of :meth:`allocate`: computed once for every choice of lengths."""
        if lengths not in self._plans:
            places: list[tuple[np.dtype[Any], slice]] = []
            table: list[int] = []
            at = 0
            for n, (dtype, _) in zip(lengths, self.fields.values(), strict=True):
                first = at * 8 // dtype.itemsize
                places.append((dtype, slice(first, first + n)))
                table += (8 * at, n)
                at += 1 + (n * dtype.itemsize - 1) // 8
            self._plans[lengths] = (at, places, np.array(table, dtype=np.int64))
        return self._plans[lengths]


# -- Named parts of the output of the terms kernel -----------------------------------------------------------


class TermArrays(NamedTuple):
    """Kane's unconstrained terms at one state, as views of the kernel's output ``whole``; n = n_u + n_k.

    ``q_dot`` (n_q,), ``W`` (n_q, n), ``M`` (n, n), ``f`` (n,), ``A`` (n_rows, n), ``b gamma residual`` (n_rows,),
    ``static kinetic restitution tangential_restitution closes_if elastic`` (n_contacts,), the last being the
    force of compliant contacts (N);
    ``energies``: kinetic and potential (J); ``reach reach_rate`` (n_contacts,): how far inside the ends of a face a
    contact is, of contacts with the flag ``LIMITED``; ``margin_slope aspect`` (n_contacts,): of corners on faces, see
    :class:`fsm_dyn.derive.contact_geometry.ContactKinematics`.  ``row_begin`` ... ``mass_columns``: those of the
    tables.
    """

    whole: NDArray[np.float64]
    q_dot: NDArray[np.float64]
    W: NDArray[np.float64]
    M: NDArray[np.float64]
    f: NDArray[np.float64]
    A: NDArray[np.float64]
    b: NDArray[np.float64]
    gamma: NDArray[np.float64]
    residual: NDArray[np.float64]
    static: NDArray[np.float64]
    kinetic: NDArray[np.float64]
    restitution: NDArray[np.float64]
    tangential_restitution: NDArray[np.float64]
    closes_if: NDArray[np.float64]
    elastic: NDArray[np.float64]
    energies: NDArray[np.float64]
    reach: NDArray[np.float64]
    reach_rate: NDArray[np.float64]
    margin_slope: NDArray[np.float64]
    aspect: NDArray[np.float64]
    row_begin: NDArray[np.int64]
    row_columns: NDArray[np.int64]
    mass_begin: NDArray[np.int64]
    mass_columns: NDArray[np.int64]


TERM_NAMES = (
    "q_dot", "W", "M", "f", "A", "b", "gamma", "residual", "static", "kinetic", "restitution",
    "tangential_restitution", "closes_if", "elastic", "energies", "reach", "reach_rate", "margin_slope", "aspect",
)  # fmt: skip


TERMS: Final = Bundle(TermArrays, {"W": 2, "M": 2, "A": 2})


def pack_terms(tables: Tables) -> Packed:
    """Return room for the terms; the kernel writes the entries of :data:`TERM_NAMES` in this order, row by row."""
    sizes = tables.sizes
    n_q, n, rows, contacts = (int(sizes[i]) for i in (Sizes.N_Q, Sizes.N_U, Sizes.N_ROWS, Sizes.N_CONTACTS))
    n += int(sizes[Sizes.N_K])
    shapes = [(n_q,), (n_q, n), (n, n), (n,), (rows, n), *3 * [(rows,)], *6 * [(contacts,)], (2,), *4 * [(contacts,)]]
    whole, at = np.zeros(int(sizes[Sizes.N_TERMS])), 0
    views: list[NDArray[Any]] = []
    for shape in shapes:
        length = math.prod(shape)
        views.append(whole[at : at + length].reshape(shape))
        at += length
    return TERMS.pack(TermArrays(whole, *views, *nonzero_of(tables)))


def nonzero_of(tables: Tables) -> tuple[NDArray[np.int64], ...]:
    """Return which entries can differ from zero: the last fields of :class:`TermArrays`."""
    return tables.row_begin, tables.row_columns, tables.mass_begin, tables.mass_columns


# -- State, options and workspace of the runtime, as tuples of arrays ----------------------------------------
#
# The loop can stop anywhere between two steps and be entered again: all it knows is in :class:`RunState`.

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
    """Return the state of a new run at time ``t`` (s) in ``mode``, and its bundle."""
    most = int(tables.sizes[Sizes.MAX_GUARDS])
    n = len(x)
    state, packed = STATE.allocate(
        n, n, len(c), Clock.COUNT, Counters.COUNT, 5 * most, most, most,
        2 * int(tables.sizes[Sizes.N_CONTACTS]), ConditionColumn.WIDTH * int(tables.sizes[Sizes.N_TRANSITIONS]),
        _room_for(len(tables.mode_rhs)), RING_LENGTH * RingColumn.WIDTH, DRIFT_COUNT,
        Rank.COUNT + 2 * int(tables.sizes[Sizes.N_ROWS]),
    )  # fmt: skip
    restart_state(state, packed, tables, t, x, c, mode)
    return state, packed


def _room_for(modes: int) -> int:
    """Return for how many modes a state has room: it grows seldom."""
    return max(16, 1 << (modes - 1).bit_length())


def restart_state(state: RunState, packed: Packed, tables: Tables, t: float, x: Floats, c: Floats, mode: int) -> None:
    """Make a state the one of a new run; arguments as of :func:`new_state`."""
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
    """Return the same state with room for the guards of larger tables."""
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


def more_contacts(tables: Tables, contacts: int) -> int:
    """Return the next larger number of contacts with room to meet: the room grows with the square of it."""
    return min(2 * contacts, int(tables.sizes[Sizes.N_CONTACTS]))


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
    proved, *numbers_and_marks = proof_room(tables)
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
        proved + 4 * JET_NUMBERS * int(s[Sizes.MAX_GUARDS]),  # and the guards in both halves of a step
        *numbers_and_marks,
    )
    work.addresses[0] = terms.address
    return work, packed._replace(arrays=(terms,))


def proof_room(tables: Tables) -> tuple[int, int, int]:
    """Return the lengths of the arrays of ``runtime/guard_proof.c``: numbers, integers, marks of operations."""
    moving, values, words, guards = (
        int(tables.sizes[i]) for i in (Sizes.MAX_MOVING, Sizes.MAX_VALUES, Sizes.PROOF_WORDS, Sizes.MAX_GUARDS)
    )
    rows = int(tables.sizes[Sizes.N_ROWS])
    return 17 * moving + 3 * guards + 2 * JET_NUMBERS * values + words + 2, 10 + 4 * guards + 2 * rows, values


def clear_work(work: Work, packed: Packed) -> None:
    """Zero the workspace."""
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
