"""The generated part of an export to C99: kernels, constant tables, tunable parameters, modes embedded online."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import assembled_states, fixed_codes
from fsm_dyn.core.arrays import Codes
from fsm_dyn.core.errors import InputError
from fsm_dyn.derive.guards import Guard, list_guards
from fsm_dyn.derive.unconstrained_system import FOLLOWS, of_one_corner
from fsm_dyn.exports.exported_machine import WORDS_OF, ExportedMachine, identifiers, mode_identifiers
from fsm_dyn.language import expressions
from fsm_dyn.language.elements import BOOLEAN, TableSchedule
from fsm_dyn.language.evaluate import ScalarAlgebra
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.values import parameter_values
from fsm_dyn.live.stepper import structural_parameters
from fsm_dyn.page.frames import guard_texts
from fsm_dyn.programs.enclosure_code import enclosure_code
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.kernels import ObjectCache, sources_of
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.sources import HELPERS, c_function, share_angles
from fsm_dyn.programs.traversal import tangent
from fsm_dyn.run import online as oc
from fsm_dyn.run import structures as st
from fsm_dyn.run.input_signals import InputSignals, schedule_parameters
from fsm_dyn.run.integrators import METHODS
from fsm_dyn.run.online import online_enclosure, online_programs
from fsm_dyn.run.phases import PhaseRules
from fsm_dyn.run.structures import guard_enclosures
from fsm_dyn.run.tolerances import Numerics
from fsm_dyn.run.words import Words
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import (
    LOG_LENGTH,
    RING_LENGTH,
    ROOT_ROOM,
    ArenaTop,
    Clock,
    ConditionColumn,
    ContactState,
    Counters,
    GuardQuantity,
    ImpactEnergy,
    InputCounts,
    InputMotion,
    MethodCounts,
    ModeFlag,
    Notes,
    OnlineLimits,
    OnlinePlace,
    PassageColumn,
    Rank,
    RingColumn,
    Sizes,
    StartUse,
    ToleranceTable,
    TransitionColumn,
    fields_of,
)
from fsm_dyn.runtime.layouts import Online, Tables

# -- Modes embedded online by an exported machine: their memory and their parts, contact by contact ----------

#: Number of modes that a machine can embed online: default, maximum (``FSM_SPARE_MOST``), and in a page.
USUAL_SPARE: Final = 16
MOST_SPARE: Final = 64
PAGE_SPARE: Final = 128

#: The own arrays of every mode, in the order of ``enum fsm_spare_array``.
_ARRAYS: Final = ("chart", "held_begin", "held_behind", "held_rest", "held_columns", "below_begin", "below_rows",
                  "tied_begin", "tied_columns", "moved_begin", "moved_columns", "reduced_begin", "reduced_behind",
                  "reduced_columns", "place", "extent", "room", "floats", "integers")  # fmt: skip
#: Those of numbers; the others are of integers.
_NUMBERS: Final = ("room", "floats")


class SpareParts(NamedTuple):
    """Parts of modes embedded online: ``struct fsm_spare_parts`` of ``c99/fsm_spare_modes.h``."""

    state_begin: list[int]
    flags: list[int]
    flags_of_all: int
    guard_begin: list[int]
    # list of (event, subject, direction, unit, quantity, sign, first open, number open, enclosure)
    guards: list[tuple[int, int, float, float, int, float, int, int, int]]
    corners: list[int]
    lengths: list[int]
    places: list[int]


def spare_parts(automaton: Automaton, tables: Tables, numerics: Numerics) -> SpareParts:
    """Return the parts of the modes of an automaton, contact by contact."""
    states = [len(contact.states) for contact in automaton.contacts]
    listed = [guards for contact in guards_by_state(automaton) for guards in contact]
    corners: list[int] = []
    rows = []
    enclosure = online_enclosure(automaton.system)
    for guard in (guard for guards in listed for guard in guards):
        open_ones = _open_contacts(automaton, guard)
        unit = float(numerics.guards([guard])[0])
        value = -1 if enclosure is None else int(enclosure.outputs([guard])[0])
        rows.append((int(guard.event), guard.subject, float(guard.direction), unit, int(guard.quantity),
                     float(guard.sign), len(corners), len(open_ones), value))  # fmt: skip
        corners += open_ones
    room = oc.room_lengths(tables.sizes, int(tables.sizes[Sizes.MAX_GUARDS]))
    chart = np.zeros(OnlinePlace.PLACES, np.int64)
    chart[1:] = np.cumsum(room)[:-1]
    return SpareParts(
        np.cumsum([0, *states]).tolist(),
        [_flag(automaton, k, code) for k, count in enumerate(states) for code in range(count)],
        _flags_of_all(automaton),
        np.cumsum([0, *map(len, listed)]).tolist(),
        rows,
        corners,
        list(_lengths(tables).values()),
        chart.tolist(),
    )


def spare_words(tables: Tables, count: int, real: Callable[[int], int] = int) -> int:
    """Return the number of eight-byte words of a machine for ``count`` further modes, on 64 bits.

    ``real``, function.
    """
    s = tables.sizes
    contacts, most, transitions = (
        int(s[Sizes.N_CONTACTS]),
        int(s[Sizes.MAX_GUARDS]),
        int(s[Sizes.N_TRANSITIONS]),
    )
    modes, guards = int(s[Sizes.N_MODES]) + count, len(tables.guard_event) + count * most
    structure = 2 * len(Online._fields) + 1  # one of the arrays is a table
    by_mode = -(-modes * contacts // 8) + 6 * modes + 1 + -(-modes * transitions // 8)
    own = -(-contacts // 8) + 2 * most + real(most) + real(OnlineLimits.COUNT) + ArenaTop.COUNT
    own += sum(real(n) if name in _NUMBERS else n for name, n in _lengths(tables).items())
    return 2 * modes + count * structure + by_mode + 4 * guards + 2 * real(guards) + count * own + count


def _lengths(tables: Tables) -> dict[str, int]:
    """Return the lengths of the own arrays of every mode."""
    most = int(tables.sizes[Sizes.MAX_GUARDS])
    lengths = oc.array_lengths(tables, most)
    lengths["room"] = sum(oc.room_lengths(tables.sizes, most))
    return {name: lengths[name] for name in _ARRAYS}


def _open_contacts(automaton: Automaton, guard: Guard) -> list[int]:
    """Return the contacts open in all modes with a guard: for a corner, those with the faces of its polygon."""
    return list(of_one_corner(automaton.contacts, guard.subject)) if guard.quantity is GuardQuantity.LARGEST_GAP else []


def _flags_of_all(automaton: Automaton) -> int:
    """Return the bits of every mode."""
    return ModeFlag.PROJECTS | ModeFlag.RANKS if any(row.role == "position" for row in automaton.rows) else 0


def embeds_online(automaton: Automaton) -> bool:
    """Whether any combination of contact states can become a mode of an exported machine.

    The model may neither list its modes nor bind its transitions to some of them.
    """
    mechanism = automaton.mechanism
    return not mechanism.only_listed and all(item.source == "*" for item in mechanism.transitions)


def guards_by_state(automaton: Automaton) -> list[list[list[Guard]]]:
    """Return the guards of each contact in each of its states; guards of all transitions are the last entry."""
    system, contacts = automaton.system, automaton.contacts

    def own(k: int, code: int) -> list[Guard]:
        states = [code if i == k else 0 for i in range(len(contacts))]
        return [guard for guard in list_guards(system, states, ()) if guard.subject == k]

    found = [[own(k, code) for code in range(len(contact.states))] for k, contact in enumerate(contacts)]
    free = [0] * len(contacts)
    n = len(list_guards(system, free, ()))
    return [*found, [list(list_guards(system, free, range(len(automaton.user_transitions)))[n:])]]


def with_spare_modes(machine: ExportedMachine, count: int) -> ExportedMachine:
    """Return the run with room for a number of modes embedded online."""
    if count == 0:
        return machine
    sizes = machine.tables.sizes.copy()
    sizes[Sizes.MAX_GUARDS] = most = most_guards(machine.automaton, machine.tables)
    shared = online_enclosure(machine.automaton.system)
    codes = [enclosure_code(full, "guards") for _, full in machine.programs]
    counts = np.diff(machine.tables.mode_guard_start).tolist()
    entries = guard_enclosures(codes, counts, None if shared is None else shared.code, most)._asdict()
    del entries["places"]
    for place, size in entries.pop("sizes").items():
        sizes[place] = size
    return replace(machine, tables=machine.tables._replace(sizes=sizes, **entries), spare=count)


def most_guards(automaton: Automaton, tables: Tables) -> int:
    """Return the largest number of guards of a mode."""
    listed = sum(max(map(len, states)) for states in guards_by_state(automaton))
    return max(listed, int(tables.sizes[Sizes.MAX_GUARDS]))


def page_modes(automaton: Automaton, words: Words) -> dict[str, Any]:
    """Return how a page calls further modes and their guards: by contact and state, last those of all transitions."""

    def entry(guard: Guard) -> dict[str, Any]:
        return {"open": _open_contacts(automaton, guard), **guard_texts(automaton, [guard], words)[0]}

    return {
        "guards": [[[entry(guard) for guard in state] for state in states] for states in guards_by_state(automaton)],
        "states": [list(contact.states) for contact in automaton.contacts],
    }


def _flag(automaton: Automaton, index: int, code: int) -> int:
    """Return the bits added by a contact's state to those of its mode."""
    contact = automaton.contacts[index]
    held = code and not contact.contact_law.compliant
    flags = (
        ModeFlag.PROJECTS if held and contact.normal_row >= 0 and automaton.rows[contact.normal_row].positional else 0
    )
    flags |= ModeFlag.TURNS if contact.in_space and code == ContactState.SLIDING else 0
    return flags | (ModeFlag.WATCHES_GATES if contact.gated and not code else 0)


# -- Kernels, constant tables, tunable parameters ------------------------------------------------------------

# -- Arrays and structures of the runtime as constant data in C ----------------------------------------------

_TYPES = {"f": "double", "i8": "int64_t", "i1": "int8_t"}
_PER_LINE = 8
_LARGEST = 2**63 - 1


def number(value: float | int) -> str:
    """Return a number as C reads it back to the same bits."""
    if isinstance(value, int | np.integer):
        return "INT64_MAX" if int(value) == _LARGEST else str(int(value))
    if math.isnan(value):
        return "FSM_NAN"
    if math.isinf(value):
        return "FSM_INFINITY" if value > 0 else "-FSM_INFINITY"
    return repr(float(value))


def text(value: str) -> str:
    """Return a string literal; characters beyond ASCII as their UTF-8 bytes, in octal."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in value.encode()
    )
    return f'"{plain}"'


def lines(items: Iterable[str], per_line: int = _PER_LINE) -> str:
    """Return the entries of an initialiser, some on each line."""
    entries = list(items)
    rows = [", ".join(entries[i : i + per_line]) for i in range(0, len(entries), per_line)]
    return ",\n".join(f"    {row}" for row in rows)


def texts(name: str, values: Iterable[str]) -> str:
    """Return the definition of an array of strings; NULL ends it."""
    return f"static const char *const {name}[] = {{\n{lines([*map(text, values), 'NULL'], 4)}\n}};\n"


class Data:
    """Definitions of arrays, and their views in structures. ``prefix``: beginning of the names of all arrays."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.definitions: list[str] = []

    def array(self, name: str, values: NDArray[Any]) -> str:
        """Define an array and return its address as an expression; NULL if it is empty."""
        if values.size == 0:
            return "NULL"
        kind = _TYPES[_kind(values)]
        entries = lines(number(value) for value in values.ravel().tolist())
        self.definitions.append(f"static const {kind} {self._prefix}_{name}[] = {{\n{entries}\n}};\n")
        return f"({kind} *){self._prefix}_{name}"

    def view(self, name: str, values: NDArray[Any]) -> str:
        """Define an array and return the initialiser of a view of it."""
        return f"{{{', '.join([self.array(name, values), *map(str, values.shape)])}}}"

    def integer(self, value: int) -> str:
        """Return the initialiser of an integer."""
        return str(value)

    def function(self, kernel: str | None) -> str:
        """Return the initialiser of the address of a kernel; None: NULL."""
        return kernel or "NULL"

    def absent(self, length: int) -> str:
        """Return the initialiser of a view; its array is made later."""
        return f"{{NULL, {length}}}"

    def kernels(self, name: str, functions: Iterable[str]) -> str:
        """Define an array of kernels, ``NULL`` for a missing one; return the initialiser of a view."""
        entries = list(functions)
        if not entries:
            return "{NULL, 0}"
        self.definitions.append(f"static const fsm_kernel {self._prefix}_{name}[] = {{\n{lines(entries, 4)}\n}};\n")
        return f"{{(fsm_kernel *){self._prefix}_{name}, {len(entries)}}}"

    def structure(self, name: str, kind: str, values: Mapping[str, float | int]) -> str:
        """Define a structure of numbers; return the two initialisers of a pointer to it and of its length."""
        entries = ",\n".join(f"    .{field} = {number(value)}" for field, value in values.items())
        self.definitions.append(f"static const struct {kind} {self._prefix}_{name} = {{\n{entries}\n}};\n")
        return f"(struct {kind} *)&{self._prefix}_{name}"


def _kind(values: NDArray[Any]) -> str:
    return "f" if values.dtype == np.float64 else f"i{values.dtype.itemsize}"


def initialiser(fields: Mapping[str, str]) -> str:
    """Return a designated initialiser of a structure."""
    return "{\n" + ",\n".join(f"    .{field} = {value}" for field, value in fields.items()) + "\n}"


# -- Parameters tunable while an exported model runs ---------------------------------------------------------

_BELOW: Final = -1e-9  # values just beyond the usual limits, 0 and 1
_ABOVE: Final = 1.0 + 1e-9
_SMALLEST: Final = float(np.finfo(np.float64).tiny)


def parameter_limits(machine: ExportedMachine) -> dict[str, NDArray[Any]]:
    """Return of each parameter whether it is ``tunable``, and its ``lowest`` and ``highest`` values, SI, included.

    The limits are those of the model file: a coefficient of restitution is from 0 to 1, one of friction not negative.
    Parameters that are not tunable have infinite limits.
    """
    names, mechanism = machine.automaton.terms.layout.p, machine.automaton.mechanism
    tunable = tunable_parameters(machine)
    scalars = [name for name in tunable if name in mechanism.parameters]

    def possible(name: str, value: float) -> bool:
        try:
            parameter_values(mechanism, {name: value})
        except InputError:
            return False
        return True

    lowest, highest = np.full(len(names), -math.inf), np.full(len(names), math.inf)
    for name in scalars:
        at = names.index(name)
        if not possible(name, _BELOW):
            zero = possible(name, 0.0)
            if zero or possible(name, _SMALLEST):
                lowest[at] = 0.0 if zero else _SMALLEST
        if possible(name, 1.0) and not possible(name, _ABOVE):
            highest[at] = 1.0
    return {
        "tunable": np.array([name in tunable for name in names], np.int8), "lowest": lowest, "highest": highest,
    }  # fmt: skip


def tunable_parameters(machine: ExportedMachine) -> list[str]:
    """Return the parameters used by forces alone and by no other parameter; vectors element by element.

    A change of the others would change gaps, constraints or inertia, and so require a new assembly of the start, or
    values computed at the export.
    """
    structural = structural_parameters(machine.automaton) | tabled_parameters(machine)
    if not has_settable_start(machine.automaton):
        structural |= _of_start(machine)
    texts = {name: parameter.values for name, parameter in machine.automaton.mechanism.parameters.items()}
    read = {
        name: {free for text in values for free in free_names(expressions.parse(text))} & set(texts)
        for name, values in texts.items()
    }
    computed = {name for name in texts if read[name]}.union(*read.values())
    return [
        name
        for name in machine.automaton.terms.layout.p
        if name not in structural and name.partition("[")[0] in texts.keys() - computed
    ]


def tabled_parameters(machine: ExportedMachine) -> frozenset[str]:
    """Return the parameters in schedules that are tables, which an export has as numbers."""
    schedules = [item.schedule for item in machine.automaton.mechanism.inputs.values()]
    return schedule_parameters(machine.automaton, [item for item in schedules if isinstance(item, TableSchedule)])


def _of_start(machine: ExportedMachine) -> frozenset[str]:
    """Return the parameters in the expressions of the start."""
    initial = machine.automaton.mechanism.initial
    texts = [*initial.values.values(), *initial.guess.values()]
    return frozenset(str(name) for text in texts for name in free_names(expressions.parse(text)))


def start_parameters(machine: ExportedMachine) -> frozenset[str]:
    """Return the parameters that the start depends on and that can be set until the run begins."""
    if not has_settable_start(machine.automaton) or machine.options.initial:
        return frozenset()
    return _of_start(machine) & frozenset(name.partition("[")[0] for name in tunable_parameters(machine))


def start_reads(machine: ExportedMachine) -> Codes:
    """Return of each parameter whether the start reads it, and whether nothing else does."""
    automaton, known = machine.automaton, start_parameters(machine)
    layout, found = automaton.terms.layout, []
    programs = [
        automaton.terms, automaton.report, *automaton.resets, automaton.sample, *(item.program for item in
        machine.inputs.sources), *(program for both in machine.programs for program in both),
    ]  # fmt: skip
    read = {name for program in programs if program is not None for name in program_arguments(program)}
    for name in layout.p:
        uses = StartUse.FREE
        if name.partition("[")[0] in known:
            uses = StartUse.SHARED if name in read else StartUse.ALONE
        found.append(uses)
    return np.array(found, np.int8)


def program_arguments(program: Program) -> set[str]:
    """Return the names of the parameters that a program reads."""
    read = {index for _, operands in program.instructions for index in operands}
    read |= {index for output in program.results for index in output.indices}
    first = 1 + program.layout.n_x
    return {name for k, name in enumerate(program.layout.p) if first + k in read}


def start_values(machine: ExportedMachine) -> tuple[Program, Codes]:
    """Return the program of the coordinates and speeds that the model states at the start, and which these are."""
    layout, stated = machine.automaton.terms.layout, machine.automaton.mechanism.initial.values
    graph = ExpressionGraph()
    symbols: dict[str, Node] = {name: graph.symbol(name) for name in layout.p} | {"pi": graph.constant(np.pi)}
    algebra = ScalarAlgebra(graph, symbols)
    names = [*layout.q, *layout.u]
    nodes = [algebra.scalar(stated[name]) if name in stated else graph.constant(0.0) for name in names]
    program = Program.from_nodes(layout, {"start": np.array(nodes, dtype=object)})
    return program, np.array([name in stated for name in names], np.int8)


# -- The generated part of an export to C99 ------------------------------------------------------------------
#
# The generated part of an export to C99: one automaton as kernels and constant tables, and a header with its names.

#: Bytes of stack for the runtime: 7.5 kB at most in the schedules of the shipped models, without optimisation.
STACK_OF_RUNTIME: Final = 8192

# as in c99/fsm_machine.h and fsm_machine.c
_HEAD, _ROWS, _TRANSITIONS, _PASSAGES, _PHASE_COUNTS = 4096, 64, 16, 8, 3


def header(machine: ExportedMachine) -> str:
    """Return the header of a model: enumerations of its names, and the model itself."""
    prefix, guard = machine.prefix, f"{machine.prefix.upper()}_H"
    parts = [f"/* {machine.automaton.mechanism.name}: names and numbers of the exported model. */\n"]
    parts += [f"#ifndef {guard}\n#define {guard}\n", '#include "fsm_machine.h"\n']
    parameters, inputs = len(machine.names["parameter"]), len(machine.names["input"])
    context = machine.c.tolist()
    values = {"state": machine.x.tolist(), "parameter": context[:parameters],
              "input": context[parameters : parameters + inputs]}  # fmt: skip
    for kind, names in machine.names.items():
        own = mode_identifiers(names) if kind == "mode" else identifiers(f"{kind}s", names)
        notes = [_note(machine, kind, name, values.get(kind, [])[k : k + 1]) for k, name in enumerate(names)]
        entries = [f"    {prefix}_{kind}_{own[k]} = {k},{note}" for k, note in enumerate(notes)]
        if kind == "mode":
            entries.append(f"    {prefix}_mode_other = -1, // its contact states: fsm_machine_mode_contact")
        entries.append(f"    {prefix}_{kind}_count = {len(own)}")
        parts.append(f"enum {prefix}_{kind} {{\n" + "\n".join(entries) + "\n};\n")
    parts.append(f"#define {prefix.upper()}_BYTES {memory_words(machine) * 8} // of a machine, at most\n")
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif')
    parts.append(f"extern const struct fsm_model {prefix}_model;")
    parts.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(parts)


def _note(machine: ExportedMachine, kind: str, name: str, value: Sequence[float]) -> str:
    """Return a comment with the unit of a name and its value at the start; of a contact its codes; empty for modes."""
    if kind == "mode":
        return ""
    if kind == "contact":
        states = next(contact.states for contact in machine.automaton.contacts if contact.name == name)
        return f" // {', '.join(f'{code} {state}' for code, state in enumerate(states) if state)}"
    whole = name.partition("[")[0]
    known = machine.units
    unit = known.get(name, known.get(whole, ""))
    if kind == "input" and machine.automaton.mechanism.inputs[name].is_boolean:
        unit = BOOLEAN
    told = [*([unit] if unit else []), *(f"{number!r} at the start" for number in value)]
    return f" // {'; '.join(told)}" if told else ""


def tangent_program(program: Program, names: tuple[str, ...]) -> Program:
    """Return the program of the directional derivatives of some outputs; their direction follows the state."""
    layout = program.layout
    moving = (*layout.x, *layout.w)
    seeded = replace(layout, u=(*layout.u, *(f"{name}.seed" for name in moving)))
    graph, symbols, nodes = program.graph()
    seeds = {symbols[name]: graph.symbol(f"{name}.seed") for name in moving}
    outputs: list[Node] = [node for name in names for node in nodes[name].ravel()]
    found: np.ndarray[Any, Any] = np.empty(len(outputs), dtype=object)
    found[:] = tangent(outputs, seeds)
    return Program.from_nodes(seeded, {"tangent": found})


_NAMELESS: Final = "fsm_nameless_kernel"


class KernelTexts:
    """Programs of a model in C, kept on disk between its exports by the digests of the programs.

    ``digest``: of the mechanism. ``kind``: of the functions; each kind is one file.
    """

    def __init__(self, digest: str, kind: str = "kernels") -> None:
        self._key = sha256(f"{kind} in C {sources_of('programs', 'exports')} {digest}".encode()).hexdigest()
        kept = ObjectCache.default().load(self._key)
        self._before: dict[str, str] = {} if kept is None else msgspec.msgpack.decode(kept, type=dict[str, str])
        self._used: dict[str, str] = {}

    def function(self, program: Program, name: str, tangent_of: tuple[str, ...] | None = None) -> str:
        """Return a program, or the tangent of some of its outputs, as a static function."""
        key = program.digest if tangent_of is None else " ".join((program.digest, *tangent_of))
        text = self._before.get(key) or self._used.get(key)
        if text is None:
            made = program if tangent_of is None else tangent_program(program, tangent_of)
            # the same operations as machine code, so the same bits
            text = "static " + c_function(share_angles(made), _NAMELESS, own_functions=True)
        self._used[key] = text
        return text.replace(_NAMELESS, name, 1)

    def keep(self) -> None:
        """Keep the functions used, if there are new ones."""
        if not self._used.keys() <= self._before.keys():
            ObjectCache.default().store(self._key, msgspec.msgpack.encode(self._used))


def source(machine: ExportedMachine) -> str:
    """Return kernels and tables of a model as one translation unit."""
    prefix, data = machine.prefix, Data(machine.prefix)
    functions, known = list[str](), KernelTexts(machine.automaton.mechanism.digest)

    def kernel(name: str, program: Program) -> str:
        functions.append(known.function(program, f"{prefix}_kernel_{name}"))
        return f"{prefix}_kernel_{name}"

    tables = table_fields(machine, data, kernel)
    resets = [
        "NULL" if program is None else kernel(f"reset_{i}", program)
        for i, program in enumerate(machine.automaton.resets)
    ]
    data.kernels("resets", resets)
    report = kernel("report", machine.automaton.report)
    schedule, method = schedule_fields(machine.inputs, data, kernel), method_fields(machine.options.method, data)
    for kind, names in machine.names.items():
        data.definitions.append(texts(f"{prefix}_{kind}_names", names))
    outputs = machine.automaton.report.slices.get("outputs", slice(0, 0))
    model = {
        "name": text(machine.automaton.mechanism.name),
        "tables": f"&{prefix}_tables", "resets": f"{prefix}_resets" if resets else "NULL",
        "schedule": f"&{prefix}_schedule", "segment": str(machine.inputs.segment_at(0.0)),
        "method": f"&{prefix}_method", "report": report, "n_report": str(report_room(machine)),
        "first_output": str(outputs.start), "n_outputs": str(len(machine.names["output"])),
        "x": data.array("x", machine.x), "c": data.array("c", machine.c), "mode": str(machine.mode),
        "atol": data.array("atol", np.asarray(machine.options.atol)), "rtol": number(machine.options.rtol or 0.0),
        **embedded_fields(machine, data),
        "step": number(machine.options.step or 0.0), "until": number(machine.options.until or 0.0),
        "input_moves": data.array("input_moves", input_moves(machine.automaton)),
        **{f"{kind}_names": f"{prefix}_{kind}_names" for kind in machine.names},
    }  # fmt: skip
    if machine.spare:
        model["spare"] = f"&{prefix}_spare"
        spare = initialiser(spare_fields(machine, data, kernel))
        data.definitions.append(f"static const struct fsm_spare_parts {prefix}_spare = {spare};\n")
    if machine.phases is not None:
        model["phases"] = f"&{prefix}_phases"
        phases = initialiser(phase_fields(machine.phases, data, kernel))
        data.definitions.append(f"static const struct fsm_phases {prefix}_phases = {phases};\n")
    if machine.pins is not None:
        model["pins"], model["n_pins"] = kernel("pins", machine.pins), str(len(machine.forces.units))
    model["reads_time"] = str(int(reads_time(machine)))
    model |= start_fields(machine, data, kernel)
    model |= {name: data.array(name, values) for name, values in parameter_limits(machine).items()}
    parts = [f'/* {machine.automaton.mechanism.name}: kernels and tables, generated. */\n\n#include "{prefix}.h"\n']
    known.keep()
    parts += ['#include "fsm_kernels.h"\n', *functions, *data.definitions]
    for kind, name, fields in (
        ("fsm_tables", "tables", tables), ("fsm_input_tables", "schedule", schedule), ("fsm_method", "method", method),
    ):  # fmt: skip
        parts.append(f"static const struct {kind} {prefix}_{name} = {initialiser(fields)};\n")
    parts.append(f"const struct fsm_model {prefix}_model = {initialiser(model)};\n")
    return "\n".join(parts)


def start_fields(machine: ExportedMachine, data: Data, kernel: Callable[[str, Program], str]) -> dict[str, str]:
    """Return the fields of a start that can be set, and of parameters that enter it."""
    fields: dict[str, str] = {}
    if has_settable_start(machine.automaton):
        fields |= {name: data.array(name, values) for name, values in start_states(machine.automaton).items()}
    if start_parameters(machine):
        program, stated = start_values(machine)
        fields |= {
            "start_values": kernel("start_values", program), "start_stated": data.array("start_stated", stated),
            "start_reads": data.array("start_reads", start_reads(machine)),
        }  # fmt: skip
    return fields


def embedded_fields(machine: ExportedMachine, data: Any) -> dict[str, str]:
    """Return the fields of the names of modes embedded online, which are defined; none without such modes."""
    if not machine.embedded:
        return {}
    data.definitions.append(texts(f"{machine.prefix}_embedded_names", list(machine.embedded)))
    states = data.array("embedded_states", np.array(list(machine.embedded.values()), np.int8))
    names = f"{machine.prefix}_embedded_names"
    return {"n_embedded": str(len(machine.embedded)), "embedded_names": names, "embedded_states": states}


def report_room(machine: ExportedMachine) -> int:
    """Return the numbers that the outputs need: the report; of connections their arguments, outputs and the mode's."""
    if machine.pins is None:
        return machine.automaton.report.size
    return machine.automaton.report.size + machine.pins.layout.n_x + machine.pins.size + st.full_length(machine.tables)


def phase_fields(phases: PhaseRules, data: Any, kernel: Any) -> dict[str, Any]:
    """Define the arrays of phases; return the initialisers of ``struct fsm_phases``."""
    return {
        "count": data.integer(len(phases.names)), "n_compared": data.integer(len(phases.strict)),
        "margins": data.function(phases.program and kernel("phase_margins", phases.program)),
        "reads_forces": data.integer(int(phases.reads_forces)),
        **{name: data.array(f"phase_{name}", values) for name, values in phases.arrays.items()},
    }  # fmt: skip


def spare_fields(machine: ExportedMachine, data: Data, kernel: Callable[[str, Program], str]) -> dict[str, str]:
    """Define the parts of spare modes; return the initialisers of ``struct fsm_spare_parts``."""
    parts = spare_parts(machine.automaton, machine.tables, machine.numerics)
    programs = [kernel(f"online_{i}", program) for i, program in enumerate(online_programs(machine.automaton.terms))]
    data.kernels("spare_programs", programs)
    name = f"{machine.prefix}_spare_guards"
    rows = ",\n".join(f"    {{{', '.join(map(number, guard))}}}" for guard in parts.guards)
    data.definitions.append(f"static const struct fsm_spare_guard {name}[] = {{\n{rows}\n}};\n")
    arrays = ("state_begin", "flags", "guard_begin", "corners", "lengths", "places")
    return {
        "most": str(machine.spare), "programs": f"{machine.prefix}_spare_programs",
        "flags_of_all": number(parts.flags_of_all), "guards": name, "follows": number(FOLLOWS),
        **{key: data.array(f"spare_{key}", np.array(getattr(parts, key), np.int64)) for key in arrays},
    }  # fmt: skip


def reads_time(machine: ExportedMachine) -> bool:
    """Whether the equations of a model read the time, or it has controllers, which sample at times."""
    automaton = machine.automaton
    programs = [
        automaton.terms,
        automaton.report,
        *filter(None, (*automaton.resets, machine.pins)),
        *(p for both in machine.programs for p in both),
    ]
    read = {index for program in programs for _, operands in program.instructions for index in operands}
    read |= {index for program in programs for output in program.results for index in output.indices}
    return 0 in read or automaton.sample is not None


def has_settable_start(automaton: Automaton) -> bool:
    """Whether machines can begin at other coordinates and speeds: curves and kinks are solved for in Python alone."""
    return not (automaton.curve_parameters or automaton.mechanism.kinks or automaton.mechanism.initial.settle)


def start_states(automaton: Automaton) -> dict[str, Codes]:
    """Return of each contact its state while a start is assembled, and whether the model states it."""
    fixed = fixed_codes(automaton, automaton.mechanism.initial.mode)
    assembled = np.array(assembled_states(automaton, fixed), np.int8)
    stated = np.array([k in fixed for k in range(len(assembled))], np.int8)
    none = np.zeros(int(not len(assembled)), np.int8)  # C has no arrays without entries
    return {"start_states": np.append(assembled, none), "start_fixed": np.append(stated, none)}


def input_moves(automaton: Automaton) -> Codes:
    """Return how each input changes: whether it drives a constraint on coordinates, or is boolean."""
    inputs = automaton.mechanism.inputs
    return np.array(
        [
            InputMotion.SWITCHES if inputs[name].is_boolean else InputMotion.RUNS * (name in automaton.moving_inputs)
            for name in automaton.terms.layout.w
        ],
        np.int8,
    )


def table_fields(machine: ExportedMachine, data: Any, kernel: Any) -> dict[str, Any]:
    """Define the tables; return the initialisers of ``struct fsm_tables``."""
    tables = machine.tables
    fields: dict[str, Any] = {}
    for name in Tables._fields:
        values: NDArray[Any] = getattr(tables, name)
        if name in ("sizes", "tolerances"):
            numbers = dict(zip(fields_of(Sizes if name == "sizes" else ToleranceTable), values.tolist(), strict=True))
            fields[name] = data.structure(name, f"fsm_{name}", numbers)
            fields[f"{name}_count"] = data.integer(len(values))
        elif name == "terms":
            fields[name] = data.kernels(name, [kernel("terms", machine.automaton.terms)])
        elif name == "sample":
            sample = machine.automaton.sample
            fields[name] = data.absent(1) if sample is None else data.kernels(name, [kernel("sample", sample)])
        elif name in ("mode_rhs", "mode_full"):
            which = name == "mode_full"
            stem = name.removeprefix("mode_")
            fields[name] = data.kernels(
                name, [kernel(f"{stem}_{i}", both[which]) for i, both in enumerate(machine.programs)]
            )
        elif name in (
            "mode_online",
            "online_routine",
            "mode_core",
            "guard_kernels",
            "shape_centres",
        ):  # an exported machine evaluates all guards
            fields[name] = data.absent(0)
        elif name == "transitions":  # fsm_machine.c fills in the addresses of resets
            plain = values.copy()
            plain[:, 1] = 0
            fields[name] = data.view(name, plain)
        else:
            fields[name] = data.view(name, values)
    return fields


def schedule_fields(inputs: InputSignals, data: Any, kernel: Any) -> dict[str, Any]:
    """Define the inputs over time; return the initialisers of ``struct fsm_input_tables``."""
    arrays = inputs.arrays
    names = [kernel(f"input_{i}", item.program) for i, item in enumerate(inputs.sources)]
    counts = dict(zip(fields_of(InputCounts), arrays.counts.tolist(), strict=True))
    fields = {name: data.view(f"input_{name}", getattr(arrays, name)) for name in ("start", "origin", "pieces")}
    return {
        "counts": data.structure("input_counts", "fsm_input_counts", counts), "counts_count": data.integer(len(counts)),
        **fields, "next_hard": data.view("input_next_hard", arrays.next_hard),
        "decides": data.view("input_decides", arrays.decides), "kernels": data.kernels("input_kernels", names),
        "kernel_start": data.view("input_kernel_start", arrays.kernel_start),
        "kernel_inputs": data.view("input_kernel_inputs", arrays.kernel_inputs),
        "enclosure_code": data.view("input_enclosure_code", arrays.enclosure_code),
        "enclosure_numbers": data.view("input_enclosure_numbers", arrays.enclosure_numbers),
        "kernel_enclosure": data.view("input_kernel_enclosure", arrays.kernel_enclosure),
        "kernel_values": data.view("input_kernel_values", arrays.kernel_values),
        "jets": data.absent(len(arrays.jets)), "out": data.absent(len(arrays.out)),
    }  # fmt: skip


def method_fields(name: str, data: Any) -> dict[str, Any]:
    """Define a tableau; return the initialisers of ``struct fsm_method``."""
    arrays = METHODS[name].arrays()
    counts = dict(zip(fields_of(MethodCounts), arrays.counts.tolist(), strict=True))
    return {
        "a": data.view("method_a", arrays.a), "nodes": data.view("method_nodes", arrays.nodes),
        "weights": data.view("method_weights", arrays.weights),
        "counts": data.structure("method_counts", "fsm_method_counts", counts),
        "counts_count": data.integer(len(counts)),
        "dense": data.view("method_dense", arrays.dense),
    }  # fmt: skip


def values_of_largest_kernel(text: str) -> int:
    """Return the largest number of values in a kernel of the text returned by :func:`source`."""
    return max(kernel.count("    const double ") for kernel in text.split("\nstatic void "))


def memory_words(machine: ExportedMachine) -> int:
    """Return the number of eight-byte words of a machine, equal to fsm_machine_bytes on 64-bit platforms."""
    sizes, real = machine.tables.sizes, WORDS_OF[machine.real]
    s = dict(zip(fields_of(Sizes), sizes.tolist(), strict=True))
    n, contacts, rows, most = s["n_q"] + s["n_u"], s["n_contacts"], s["n_rows"], s["max_guards"]
    stages = int(METHODS[machine.options.method].arrays().counts[MethodCounts.STAGES])
    context = st.context_length(sizes)
    before = 1 if machine.real == "double" else 2  # the context has an address before it
    floats, integers = library.arena_sizes(sizes, contacts)
    full = st.full_length(machine.tables)
    vectors = [
        n, n, before + context, Clock.COUNT, 5 * most, RING_LENGTH * RingColumn.WIDTH, st.DRIFT_COUNT,
        Rank.COUNT + 2 * rows, s["n_transitions"] * ConditionColumn.WIDTH,  # state
        s["n_terms"], (stages + 1) * n, n, n, n, full, full, ROOT_ROOM, floats, rows,
        ImpactEnergy.COUNT, s["n_u"], LOG_LENGTH, context,  # work
        _ROWS * st.row_width(machine.tables), _TRANSITIONS * st.record_width(machine.tables),
        _PASSAGES * (PassageColumn.ROWS + rows),
        1, 1, 4 * s["n_w"], 4 * s["n_w"], s["n_w"], len(machine.inputs.arrays.jets), report_room(machine), n + contacts,
        2 * n, n,
    ]  # fmt: skip
    words = sum(map(real, vectors))
    words += Counters.COUNT + 2 * most + 2 * contacts + s["n_modes"]
    floats, integers_of_proof, marks = st.proof_room(machine.tables)
    words += real(floats) + integers_of_proof + -(-marks // 8)
    words += integers + ArenaTop.COUNT + 1 + -(-contacts // 8) + Notes.COUNT + contacts
    words += _ROWS + 3 + s["n_transitions"] * TransitionColumn.WIDTH + -(-n // 8)
    if machine.phases is not None:
        codes, compared = -(-2 * len(machine.phases.names) // 8), len(machine.phases.strict)
        row, guards = 1 + 3 * n + context - s["n_p"], n + s["n_u"] + 1 + 2 * most + rows
        words += sum(map(real, (row, n + s["n_u"] + rows, before + context, guards, compared)))
        words += _PHASE_COUNTS + 2 * codes + 2 * -(-compared // 8)
    spare = spare_words(machine.tables, machine.spare, real) if machine.spare else 0
    return int(_HEAD // 8 + words + spare)


# -- The header of exported kernels: operations without an operator in C -------------------------------------

KERNELS_HEADER: Final = f"""\
/* Operations of the kernels; elementary functions are the runtime's own. */

#ifndef FSM_KERNELS_H
#define FSM_KERNELS_H

#include "runtime/elementary.h"

{HELPERS}
#endif
"""
