"""State, options and workspace of the runtime, as named tuples of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.guards import Guard, GuardCatalogue, ListedGuards
from fsm_dyn.derive.mode_programs import ModePrograms, RunnableMode
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.laws import Law
from fsm_dyn.language.shapes import CircleShape, Feature, LineShape, PlaneShape, SphereShape
from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.programs.kernels import Kernels, compile_programs
from fsm_dyn.programs.program import Output, Program
from fsm_dyn.programs.sources import share_angles
from fsm_dyn.programs.traversal import tangent
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
    ContactFlag,
    Counters,
    Event,
    Far,
    GuardQuantity,
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

# -- Tables of a compiled automaton, as arrays for the runtime -----------------------------------------------
#
# All arrays are C-contiguous. Mode, guard and row numbers are stable: modes derived during a run are appended to the
# mode and guard arrays.


def law_flags(law: Law) -> int:
    """Return the bits of the properties of a law."""
    flags = (
        (ContactFlag.RIGID if law.rigid else 0)
        | (ContactFlag.COMPLIANT if law.compliant else 0)
        | (ContactFlag.SWITCHED if law.switched else 0)
    )
    flags |= (ContactFlag.NO_GAP if law.rigid and not law.has_gap else 0) | (
        ContactFlag.FORCE_LIMIT if law.force_limit else 0
    )
    return flags | (ContactFlag.FRICTION_ONLY if law.friction_only else 0) | (ContactFlag.LOADED if law.loaded else 0)


def context_length(sizes: Integers | Sequence[int]) -> int:
    """Return the length of a kernel's context ``c``, from ``Tables.sizes``."""
    return int(sizes[Sizes.N_P] + 4 * sizes[Sizes.N_W] + sizes[Sizes.N_CONTACTS] + sizes[Sizes.N_MEMORY])


def nonzero_columns(entries: Booleans) -> tuple[Integers, Integers]:
    """Return the starts of each row's columns, and the columns, of the entries of a matrix not identically zero."""
    begin = np.concatenate([[0], np.cumsum(entries.sum(axis=1))]).astype(np.int64)
    return begin, np.nonzero(entries)[1].astype(np.int64)


class GuardNumbers:
    """Numbers of guards, found once for each: modes embedded online have the same guards as each other.

    ``row``: returns the numbers of a guard.
    """

    def __init__(self, row: Callable[[Guard], tuple[float, ...]]) -> None:
        self._row = row
        self._lock = Lock()  # runs are read in other threads
        self.clear()

    def clear(self) -> None:
        """Forget all guards."""
        self.forget()
        self._catalogue: tuple[GuardCatalogue, Floats] | None = None

    def forget(self) -> None:
        """Forget all guards but those of a catalogue."""
        self._places: dict[int, int] = {}  # by the identity of the guard
        self._guards: list[Guard] = []  # kept, as an identity lasts as long as its object
        self._table: Floats | None = None

    def _of_all(self, catalogue: GuardCatalogue) -> Floats:
        """Return the numbers of all guards of a catalogue."""
        if self._catalogue is None or self._catalogue[0] is not catalogue:
            rows = np.array([self._row(guard) for guard in catalogue.guards], np.float64)
            self._catalogue = catalogue, rows if len(rows) else np.zeros((0, 0))
        return self._catalogue[1]

    def of(self, guards: Sequence[Guard]) -> Floats:
        """Return the numbers of guards, shape (n, numbers of one)."""
        if isinstance(guards, ListedGuards):
            return self._of_all(guards.catalogue)[guards.numbers]
        with self._lock:
            places = [self._places.get(id(guard), -1) for guard in guards]
            new = [at for at, place in enumerate(places) if place < 0]
            for at in new:
                places[at] = self._places.setdefault(id(guards[at]), len(self._guards))
                if places[at] == len(self._guards):
                    self._guards.append(guards[at])
            if new:
                known = 0 if self._table is None else len(self._table)
                rows = np.array([self._row(guard) for guard in self._guards[known:]], np.float64)
                self._table = rows if self._table is None else np.concatenate([self._table, rows])
            return np.zeros((0, 0)) if self._table is None else self._table[places]


class GrowingTables:
    """Tables to which modes are appended, at a cost that does not grow with their number.

    Arrays have room behind them; tables handed out before show what they did. ``tables``: of the modes there are.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._rooms: dict[str, NDArray[Any]] = {}

    def append(self, entries: Mapping[str, NDArray[Any]], **others: NDArray[Any]) -> Tables:
        """Return the tables with entries behind those of some arrays, and other arrays in the place of some."""
        grown = {}
        for name, rows in entries.items():
            present = getattr(self.tables, name)
            end = len(present) + len(rows)
            room = self._rooms.get(name)
            if room is None or len(room) < end:
                room = self._rooms[name] = np.empty((2 * end, *present.shape[1:]), present.dtype)
                room[: len(present)] = present
            room[len(present) : end] = rows
            grown[name] = room[:end]
        self.tables = self.tables._replace(**grown, **others)
        return self.tables


# -- Tables of the enclosures of guards, for proofs of the runtime on missed events --------------------------

_ABSENT = -1


class GuardEnclosures(NamedTuple):
    """Entries of :class:`fsm_dyn.runtime.layouts.Tables`, and their sizes."""

    enclosure_code: Integers
    enclosure_numbers: Floats
    mode_enclosure: Integers
    guard_enclosure: Integers
    enclosure_room: Integers
    sizes: dict[int, int]
    places: dict[int, tuple[int, int]]  # by the identity of the words of a code: its beginning, that of its room


def guard_enclosures(
    codes: Sequence[EnclosureCode | None], counts: Sequence[int], shared: EnclosureCode | None = None, most: int = 0
) -> GuardEnclosures:
    """Return the tables of modes.

    ``codes``: of the guards of each mode, None without guards.  Modes of the same words share their code. ``counts``:
    number of each mode's guards. ``shared``: of modes to be added: it is the first part of the code, and its room the
    first part of the room. ``most``: largest number of guards of these modes.
    """
    present = [code for code in (shared, *codes) if code is not None]
    distinct = {id(code.words): code for code in present}
    begin, room = {}, {}
    words: list[Integers] = [np.zeros(0, np.int64)]
    numbers: list[Floats] = [np.zeros(0)]
    at = constants = kept = values = 0
    for key, code in distinct.items():
        guards = max([most, *(count for item, count in zip(codes, counts, strict=True) if _is(item, code))])
        begin[key], room[key] = at, kept
        words += [np.array([constants], np.int64), code.words]
        numbers.append(code.numbers)
        values = max(values, code.values + solved_values(code.unknowns, guards))
        at += 1 + len(code.words)
        constants += len(code.numbers)
        kept += kept_words(code, guards)
    outputs = [
        np.full(count, _ABSENT, np.int64) if code is None else code.outputs
        for code, count in zip(codes, counts, strict=True)
    ]
    return GuardEnclosures(
        np.concatenate(words),
        np.concatenate(numbers),
        np.array([_ABSENT if code is None else begin[id(code.words)] for code in codes], np.int64),
        np.concatenate([np.zeros(0, np.int64), *outputs]),
        np.array([0 if code is None else room[id(code.words)] for code in codes], np.int64),
        {
            Sizes.MAX_MOVING: max((code.moving for code in present), default=0),
            Sizes.MAX_VALUES: values,
            Sizes.PROOF_WORDS: kept,
        },
        {key: (begin[key], room[key]) for key in distinct},
    )


def kept_words(code: EnclosureCode, guards: int) -> int:
    """Return how many numbers are kept from step to step for a code with so many guards (guard_proof.c)."""
    kept = 2 + code.fixed + 3 * code.moving + guards * (code.moving + 2)
    return kept + (2 + 2 * code.moving + 2 * code.terms if code.terms else 0)


def further_enclosure(
    tables: Tables, code: EnclosureCode, guards: int
) -> tuple[dict[str, NDArray[Any]], dict[int, int]]:
    """Return the entries of a code behind those of tables, and the sizes that it changes."""
    sizes = tables.sizes
    entries = {
        "enclosure_code": np.concatenate([[len(tables.enclosure_numbers)], code.words]),
        "enclosure_numbers": code.numbers,
    }
    return entries, {
        Sizes.MAX_MOVING: max(int(sizes[Sizes.MAX_MOVING]), code.moving),
        Sizes.MAX_VALUES: max(int(sizes[Sizes.MAX_VALUES]), code.values + solved_values(code.unknowns, guards)),
        Sizes.PROOF_WORDS: int(sizes[Sizes.PROOF_WORDS]) + kept_words(code, guards),
    }


def solved_values(unknowns: int, guards: int) -> int:
    """Return how many jets the solution of so many equations for the guards on forces takes (force_enclosure.c)."""
    return guards + 4 * unknowns + 2 * unknowns**2 if unknowns else 0


def _is(code: EnclosureCode | None, other: EnclosureCode) -> bool:
    return code is not None and code.words is other.words


# -- Guards left out of steps while their shapes are far apart -----------------------------------------------
#
# The gap of two round shapes, and the gap of a round shape and a fixed line or plane, changes by no more than the
# centres of the round shapes move; ``runtime/guards.c`` rests on this. A mode's program ``full`` is divided into
# a core without these guards and one program for each of them.

FEWEST = 60  # contacts below which evaluating all of their guards costs less than leaving some out
_NEWTONIAN = "N"


class FarParts(NamedTuple):
    """Addresses of a mode's core and of its guards' kernels, 0 for guards in the core; the owner of their memory."""

    core: int
    guards: tuple[int, ...]
    code: Kernels


@dataclass(frozen=True)
class FarGuards:
    """Parts of an automaton to be left out of steps."""

    contacts: frozenset[int]  # contacts whose gaps change by no more than the centres move
    # positions and velocities (m, m/s), three each, of the centres of their round shapes, one after the other
    centres: Program

    @cached_property
    def kernel(self) -> Kernels:
        """Machine code of the centres."""
        return compile_programs([self.centres])

    @property
    def shapes(self) -> int:
        """The number of round shapes."""
        return self.centres.size // 6

    def compiled(self, programs: RunnableMode) -> FarParts | None:
        """Return the kernels of a mode's parts; None where it has too few guards to leave out."""
        places = self.places(programs.guards)
        if len(places) < FEWEST or not isinstance(programs, ModePrograms):
            return None
        kernels = compile_programs(divided(programs, places))
        addresses = dict(zip(places, (kernel.address for kernel in kernels[1:]), strict=True))
        each = tuple(addresses.get(number, 0) for number in range(len(programs.guards)))
        return FarParts(kernels[0].address, each, kernels)

    def places(self, guards: Sequence[Guard]) -> list[int]:
        """Return which guards of a mode may be left out."""
        return [
            number
            for number, guard in enumerate(guards)
            if guard.event is Event.CLOSES
            and guard.quantity is GuardQuantity.GAP
            and guard.sign > 0.0
            and guard.subject in self.contacts
        ]


def far_guards(automaton: Automaton) -> FarGuards | None:
    """Return the parts of an automaton to be left out of steps; None if this would save nothing."""
    fixed = _fixed_points(automaton)
    contacts: set[int] = set()
    origins: dict[str, None] = {}
    for number, contact in enumerate(automaton.mechanism.contacts.values()):
        if not isinstance(contact, FeatureContact):
            continue
        round_ones = _round_origins(automaton, contact.features, fixed)
        if round_ones:
            contacts.add(number)
            origins |= dict.fromkeys(round_ones)
    if len(contacts) < FEWEST:
        return None
    centres = _centres(automaton, tuple(origins))
    moving = {"t", *automaton.terms.layout.q, *automaton.terms.layout.u, *automaton.terms.layout.p}
    return FarGuards(frozenset(contacts), centres) if centres.used_arguments() <= moving else None


def far_tables(
    far: FarGuards | None, cores: Sequence[int], kernels: Sequence[tuple[int, ...]], counts: Sequence[int]
) -> dict[str, Any]:
    """Return the entries of the tables on guards left out.

    ``cores``: address of each mode's core, 0: none; ``kernels``: addresses of each mode's guards' kernels, none without
    a core; ``counts``: number of each mode's guards.
    """
    if far is None:
        return dict.fromkeys(("mode_core", "guard_kernels", "shape_centres"), np.zeros(0, np.int64))
    each = [known or (0,) * count for known, count in zip(kernels, counts, strict=True)]
    return {
        "mode_core": np.array(cores, np.int64),
        "guard_kernels": np.array([address for addresses in each for address in addresses], np.int64),
        "shape_centres": far.kernel.addresses,
    }


def _fixed_points(automaton: Automaton) -> set[str]:
    """Return the fixed points."""
    names, layout = automaton.point_names, automaton.terms.layout
    free = [_part_of(automaton.geometry, "points", [k]).used_arguments() <= {*layout.p} for k in range(len(names))]
    return {name for name, is_free in zip(names, free, strict=True) if is_free} | {"O"}


def _round_origins(automaton: Automaton, features: Iterable[Feature], fixed: set[str]) -> list[str]:
    """Return the centres of the round shapes of a contact; none if its gap may change faster than they move."""
    found = []
    for feature in features:
        shape = automaton.mechanism.shapes.get(feature.shape)
        match shape:
            case CircleShape() | SphereShape() if feature.part == "round" and shape.repeat is None:
                found.append(shape.origin)
            case LineShape() | PlaneShape() if shape.repeat is None:
                if shape.frame != _NEWTONIAN or shape.origin not in fixed:
                    return []
            case _:
                return []
    return found


def _centres(automaton: Automaton, origins: Sequence[str]) -> Program:
    layout = automaton.terms.layout
    graph, symbols, terms = automaton.terms.part({"q_dot": None}).graph()
    rows = [automaton.point_names.index(name) for name in origins]
    points = automaton.geometry.part({"points": rows}).nodes(graph)[1]["points"]
    seeds = {symbols["t"]: graph.one} | dict(zip((symbols[name] for name in layout.q), terms["q_dot"], strict=True))
    velocities = np.array(tangent(list(points.ravel()), seeds), dtype=object).reshape(points.shape)
    return Program.from_nodes(layout, {"centres": np.hstack([points, velocities])})


def divided(programs: ModePrograms, numbers: Sequence[int]) -> list[Program]:
    """Return the core of a mode's program ``full``, with zeros for some guards, and the programs of these.

    All make the operations of ``full``, with the same bits.
    """
    full = share_angles(programs.full)
    left_out = set(numbers)
    zero = full.first_instruction
    constants = (*full.constants, 0.0)
    shifted = [(op, tuple(index + (index >= zero) for index in operands)) for op, operands in full.instructions]
    results = []
    for output in full.results:
        guards = output.name in ("guards", "slopes")
        indices = tuple(
            zero if guards and place in left_out else index + (index >= zero)
            for place, index in enumerate(output.indices)
        )
        results.append(Output(output.name, output.shape, indices))
    whole = Program(full.layout, constants, tuple(shifted), tuple(results))
    core = whole.part(dict.fromkeys(whole.outputs))
    return [core, *(_guard_program(full, place) for place in numbers)]


def _guard_program(full: Program, place: int) -> Program:
    """Return the program of one guard's value and slope."""
    by_name = {output.name: output.indices for output in full.results}
    return _cone(full, {"guards": (by_name["guards"][place],), "slopes": (by_name["slopes"][place],)})


def _part_of(program: Program, name: str, rows: Sequence[int]) -> Program:
    """Return the program of some rows of an output."""
    output = next(output for output in program.results if output.name == name)
    table = np.array(output.indices, dtype=np.int64).reshape(output.shape)[list(rows)]
    return _cone(program, {name: tuple(int(index) for index in table.ravel())})


def _cone(program: Program, wanted: dict[str, tuple[int, ...]]) -> Program:
    """Return the program of a few values; unlike ``part`` in a time independent of the length of the program."""
    first = program.first_instruction
    needed: set[int] = set()
    ahead = [index for indices in wanted.values() for index in indices]
    while ahead:
        index = ahead.pop()
        if index >= first and index not in needed:
            needed.add(index)
            ahead += program.instructions[index - first][1]
    order = sorted(needed)
    n = len(program.layout.arguments)
    used = {i for index in order for i in program.instructions[index - first][1]}
    used |= {index for indices in wanted.values() for index in indices}
    constants = sorted(index for index in used if n <= index < first)
    number = {index: n + k for k, index in enumerate(constants)}
    number |= {index: n + len(constants) + k for k, index in enumerate(order)}
    instructions = tuple(
        (op, tuple(number.get(i, i) for i in operands))
        for op, operands in (program.instructions[index - first] for index in order)
    )
    results = tuple(
        Output(name, (len(indices),), tuple(number.get(i, i) for i in indices)) for name, indices in wanted.items()
    )
    return Program(program.layout, tuple(program.constants[i - n] for i in constants), instructions, results)


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
    table: Integers
    arrays: tuple[Any, ...]


# words before the structure, dtype and place of every array, the structure with addresses from the block's beginning on
_Plan = tuple[int, list[tuple[np.dtype[Any], slice]], Integers]


def _entry_type(annotation: Any) -> np.dtype[Any]:
    """Return T of ``NDArray[T]``, which numpy writes out as ``ndarray[shape, dtype[T]]`` or (from 2.5 on) does not."""
    last = get_args(annotation)[-1]
    return np.dtype((get_args(last) or (last,))[0])


class Bundle:
    """How a named tuple class becomes a structure.

    ``cls``: named tuple class whose fields are all annotated ``NDArray[dtype]``. ``dimensions``: number of dimensions
    of the fields with more than one; by default those of the structure in C. ``words``: length of the structure, as
    text of eight bytes.
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
    :class:`fsm_dyn.derive.contact_geometry.ContactKinematics`; ``firm`` (n_contacts,); ``when`` (n_transitions,): the
    scalars whose zero crossings are conditions.  ``row_begin`` ... ``mass_columns``: those of the
    tables.
    """

    whole: Floats
    q_dot: Floats
    W: Floats
    M: Floats
    f: Floats
    A: Floats
    b: Floats
    gamma: Floats
    residual: Floats
    static: Floats
    kinetic: Floats
    restitution: Floats
    tangential_restitution: Floats
    closes_if: Floats
    elastic: Floats
    energies: Floats
    reach: Floats
    reach_rate: Floats
    margin_slope: Floats
    aspect: Floats
    firm: Floats
    when: Floats
    row_begin: Integers
    row_columns: Integers
    mass_begin: Integers
    mass_columns: Integers


TERM_NAMES = (
    "q_dot", "W", "M", "f", "A", "b", "gamma", "residual", "static", "kinetic", "restitution",
    "tangential_restitution", "closes_if", "elastic", "energies", "reach", "reach_rate", "margin_slope", "aspect",
    "firm", "when",
)  # fmt: skip


TERMS: Final = Bundle(TermArrays, {"W": 2, "M": 2, "A": 2})


def pack_terms(tables: Tables) -> Packed:
    """Return room for the terms; the kernel writes the entries of :data:`TERM_NAMES` in this order, row by row."""
    sizes = tables.sizes
    n_q, n, rows, contacts = (int(sizes[i]) for i in (Sizes.N_Q, Sizes.N_U, Sizes.N_ROWS, Sizes.N_CONTACTS))
    n += int(sizes[Sizes.N_K])
    shapes = [(n_q,), (n_q, n), (n, n), (n,), (rows, n), *3 * [(rows,)], *6 * [(contacts,)], (2,), *5 * [(contacts,)]]
    shapes.append((int(sizes[Sizes.N_TRANSITIONS]),))
    whole, at = np.zeros(int(sizes[Sizes.N_TERMS])), 0
    views: list[NDArray[Any]] = []
    for shape in shapes:
        length = math.prod(shape)
        views.append(whole[at : at + length].reshape(shape))
        at += length
    return TERMS.pack(TermArrays(whole, *views, *nonzero_of(tables)))


def nonzero_of(tables: Tables) -> tuple[Integers, ...]:
    """Return which entries can differ from zero: the last fields of :class:`TermArrays`."""
    return tables.row_begin, tables.row_columns, tables.mass_begin, tables.mass_columns


# -- State, options and workspace of the runtime, as tuples of arrays ----------------------------------------
#
# The loop can stop anywhere between two steps and be entered again: all it knows is in :class:`RunState`.


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
    return int(1 + 3 * (s[Sizes.N_Q] + s[Sizes.N_U]) + context_length(s) - s[Sizes.N_P])


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
        context_length(s),
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
    return 17 * moving + 3 * guards + 2 * JET_NUMBERS * values + words + 2, 15 + 4 * guards + 2 * rows, values


_ARENA: Final = tuple(Work._fields.index(name) for name in ("floats", "top"))  # from here on, and behind it


def clear_work(work: Work, packed: Packed) -> None:
    """Zero the workspace without the arena, which hands out zeros: most of a large one is never written."""
    words = packed.table[-WORK.words :]
    begin, end = (int(words[2 * i] - words[0]) // words.itemsize for i in _ARENA)
    packed.table[:begin] = 0
    packed.table[end : -WORK.words] = 0
    work.addresses[0] = packed.arrays[0].address


def new_buffers(tables: Tables, rows: int, transitions: int, passages: int = 16) -> Buffers:
    """Return room for so many rows, transitions and passages through change points."""
    return Buffers(
        rows=np.empty((rows, row_width(tables))),
        modes=np.empty(rows, dtype=np.int64),
        transitions=np.empty((transitions, record_width(tables))),
        passages=np.empty((passages, PassageColumn.ROWS + int(tables.sizes[Sizes.N_ROWS]))),
    )
