"""Saved automata: JSON with the model's text and its programs as lists of operations.

Never pickle, never machine code: an untrusted file is checked like a model file and cannot run code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.core.errors import NOWHERE, InputError, Location
from fsm_dyn.core.files import convert, decode, encode, stored_type, write_file
from fsm_dyn.derive.guards import Guard
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.contacts import BearingContact, FeatureContact, SurfaceContact
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.memory import layout_of
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.kernels import sources_of
from fsm_dyn.programs.program import Program, StoredProgram
from fsm_dyn.runtime.abi import Event, GuardQuantity
from fsm_dyn.runtime.library import SOURCES

DERIVING: Final = ("programs", "language", "derive", "automaton")
FORMAT: Final = "fsm_dyn automaton 1"
LARGEST_FILE = 64 * 2**20
_REMEDY = "compile the model again"

Numbers = tuple[int, ...]


def equations_version() -> str:
    """Return the version of the equations of any model: a digest of the sources of all parts of the derivation."""
    return sources_of(*DERIVING)


def run_version() -> str:
    """Return the version of runs with given model, parameters and settings: of equations and runtime."""
    return f"{equations_version()[:16]}-{SOURCES[:16]}"


# The fields of an automaton in a file; one of a mode has its name and pattern next to its programs.
if TYPE_CHECKING:
    _StoredMode: TypeAlias = Any
    _Stored: TypeAlias = Any
else:
    _StoredMode = stored_type(ModePrograms, {Program: StoredProgram}, name=str, pattern=str)
    _NAMES = ("load_names", "point_names", "frame_names")
    _Stored = stored_type(
        Automaton, {Program: StoredProgram, DerivedMode: _StoredMode}, ("mechanism", *_NAMES),
        format=Literal["fsm_dyn automaton 1"], digest=str, text=str,
        names=tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    )  # fmt: skip


def to_data(automaton: Automaton) -> dict[str, Any]:
    """Return the automaton as plain data for JSON."""
    data = {name: getattr(automaton, name) for name in _Stored.__struct_fields__ if hasattr(automaton, name)}
    programs = {name: data[name].to_data() for name in ("terms", "report", "geometry")}
    data |= programs | {
        "format": FORMAT,
        "digest": automaton.mechanism.digest,
        "text": automaton.mechanism.text,
        "names": (automaton.load_names, automaton.point_names, automaton.frame_names),
        "resets": [None if program is None else program.to_data() for program in automaton.resets],
        "modes": [_mode_to_data(mode) for mode in automaton.modes],
        "sample": None if automaton.sample is None else automaton.sample.to_data(),
    }
    plain: dict[str, Any] = msgspec.to_builtins(data)
    return plain


def _mode_to_data(mode: DerivedMode) -> dict[str, Any]:
    programs = mode.programs
    data = {name: getattr(programs, name) for name in _StoredMode.__struct_fields__ if hasattr(programs, name)}
    named = {"name": mode.name, "pattern": mode.pattern}
    return data | named | {"rhs": programs.rhs.to_data(), "full": programs.full.to_data()}


def to_bytes(automaton: Automaton) -> bytes:
    """Return the automaton as the content of a file."""
    return encode(to_data(automaton))


def save(automaton: Automaton, path: str | Path) -> None:
    """Write the automaton to a file."""
    write_file(path, to_bytes(automaton))


def from_bytes(data: bytes | str, mechanism: Mechanism | None = None, where: Location = NOWHERE) -> Automaton:
    """Return the automaton from the bytes of :func:`to_bytes`: untrusted input.

    ``mechanism``: the mechanism, if already read; else it is read from the text in the data. ``where``: name of the
    data in messages. Raises InputError: the data do not hold together.
    """
    return _automaton(decode(data, _Stored, "a saved automaton", where=where, remedy=_REMEDY), mechanism, where)


def from_data(data: object, mechanism: Mechanism | None = None) -> Automaton:
    """Return the automaton from data of :func:`to_data`; see :func:`from_bytes`."""
    return _automaton(convert(data, _Stored, "a saved automaton"), mechanism, NOWHERE)


def _automaton(stored: _Stored, mechanism: Mechanism | None, where: Location) -> Automaton:
    if mechanism is None:
        mechanism = load_mechanism(f"<{FORMAT}>", text=stored.text)
    terms, report, geometry = map(Program.from_stored, (stored.terms, stored.report, stored.geometry))
    loads, points, frames = stored.names
    automaton = Automaton(
        mechanism, stored.rows, stored.contacts, stored.user_transitions, stored.quaternions, stored.n_kinematic,
        terms, report, geometry, loads, points, frames,
        tuple(None if item is None else Program.from_stored(item) for item in stored.resets),
        tuple(map(_mode, stored.modes)), stored.infeasible, stored.fully_enumerated, stored.pattern,
        None if stored.sample is None else Program.from_stored(stored.sample),
    )  # fmt: skip
    for what in ("the digest of the model",) if stored.digest != mechanism.digest else _faults(automaton):
        raise InputError("the saved automaton is inconsistent or corrupt", where, found=what, remedy=_REMEDY)
    return automaton


def _mode(stored: _StoredMode) -> DerivedMode:
    programs = ModePrograms(
        stored.states, stored.chart, stored.independent, stored.redundant, stored.indeterminate, stored.guards,
        Program.from_stored(stored.rhs), Program.from_stored(stored.full),
    )  # fmt: skip
    return DerivedMode(stored.name, stored.pattern, programs)


def _within(numbers: tuple[int, ...], low: int, end: int) -> bool:
    return all(low <= number < end for number in numbers)


def _faults(automaton: Automaton) -> Iterator[str]:
    """Yield inconsistencies: a kernel of the wrong size would write beyond its array."""
    mechanism, layout, pattern = automaton.mechanism, automaton.terms.layout, automaton.pattern
    n, n_rows, n_contacts = len(layout.u) + automaton.n_kinematic, len(automaton.rows), len(automaton.contacts)
    n_q, n_x = len(layout.q), layout.n_x
    if layout != layout_of(mechanism):
        yield "the arguments are not those of the model"
        return
    if any(
        item.layout != layout
        for item in (automaton.report, automaton.geometry, automaton.sample, *automaton.resets)
        if item
    ):
        yield "a program has other arguments"
    if pattern is not None and not (pattern.holds_together and pattern.n == n and len(pattern.rows) == n_rows):
        yield "the pattern of the tree"
    for name, wanted in _output_shapes(automaton).items():
        if list(getattr(automaton, name).outputs.items()) != list(wanted.items()):
            yield f"the outputs of {name}"
    if not {*mechanism.points} <= {*automaton.point_names} or not {*mechanism.frames} <= {*automaton.frame_names}:
        yield "the names of points or frames"
    if not _within(automaton.quaternions, 0, n_q - 3):
        yield "the places of Euler parameters"
    if [row.role for row in automaton.rows].count("kinematic") != automaton.n_kinematic:
        yield "the number of kinematic rows"
    if not _within(tuple(row.contact for row in automaton.rows), -1, n_contacts):
        yield "the contacts of rows"
    for k, (name, contact) in enumerate(zip(mechanism.contacts, automaton.contacts, strict=False)):
        if not _contact_fits(mechanism, automaton, k, contact, name):
            yield f"the contact '{name}'"
    if n_contacts != len(mechanism.contacts):
        yield "the number of contacts"
    if not len(automaton.resets) == len(mechanism.transitions) == len(automaton.user_transitions):
        yield "the number of transitions"
    if [when.index for when in automaton.user_transitions] != list(range(len(automaton.user_transitions))):
        yield "the numbers of transitions"
    for reset in automaton.resets:
        if reset is not None and reset.outputs != {"after": (n_x + len(layout.memory),)}:
            yield "the outputs of a reset"
    outputs = automaton.sample.outputs if automaton.sample is not None else None
    if outputs != ({"after": (len(layout.memory),)} if mechanism.controllers else None):
        yield "the outputs of a sample"
    seen: set[tuple[int, ...]] = set()
    for mode in automaton.modes:
        if mode.states in seen or not _mode_fits(automaton, mode, n_rows, n):
            yield f"the mode '{mode.name[:80]}'"
        seen.add(mode.states)


def _output_shapes(automaton: Automaton) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the shapes of the outputs of the programs that all modes share, by program."""
    mechanism, layout, pattern = automaton.mechanism, automaton.terms.layout, automaton.pattern
    n, n_rows, n_contacts = len(layout.u) + automaton.n_kinematic, len(automaton.rows), len(automaton.contacts)
    n_q = len(layout.q)
    points, frames, curves = len(automaton.point_names), len(automaton.frame_names), len(automaton.curve_parameters)
    return {
        "terms": {
            "q_dot": (n_q,), "W": (n_q, n), "M": (n, n), "f": (n,), "A": (n_rows, n), "b": (n_rows,),
            "gamma": (n_rows,), "residual": (n_rows,), "static": (n_contacts,), "kinetic": (n_contacts,),
            "restitution": (n_contacts,), "tangential_restitution": (n_contacts,), "closes_if": (n_contacts,),
            "elastic": (n_contacts,), "energies": (2,),
            "reach": (n_contacts,), "reach_rate": (n_contacts,), "margin_slope": (n_contacts,),
            "aspect": (n_contacts,), "firm": (n_contacts,), "when": (len(mechanism.transitions),),
            **({} if pattern is None else {"tree": (pattern.size,)}),
        },
        "report": {
            "kinetic_energy": (), "potential_energy": (), "load_powers": (len(automaton.load_names),),
            "outputs": (len(mechanism.outputs),), "restoring": (n_contacts,), "stored": (n_contacts,),
        },
        "geometry": {
            "points": (points, 3), "frames": (frames, 3, 3), "measure": (curves,), "slope": (curves,),
            "bend": (curves,),
        },
    }  # fmt: skip


def _contact_fits(mechanism: Mechanism, automaton: Automaton, k: int, contact: ContactInfo, name: str) -> bool:
    """Whether a contact matches the model, and its rows, corners and outline exist."""
    spec, rows = mechanism.contacts[name], automaton.rows
    surfaces = spec if isinstance(spec, SurfaceContact) else None
    loads = spec.loaded_by if isinstance(spec, BearingContact) else ()
    poisson = surfaces is not None and surfaces.restitution_law == "poisson"
    known = (spec.kind, spec.states, spec.infinite_friction, spec.bilateral, poisson)
    if spec.kind != contact.kind or spec.bilateral != contact.bilateral:
        return False
    good = contact.name == name and (contact.normal_row >= 0) == (not contact.contact_law.friction_only)
    good &= known == (contact.kind, contact.states, contact.sticks_always, contact.bilateral, contact.poisson)
    good &= (contact.tangent_row >= 0) == spec.has_friction
    across = isinstance(spec, FeatureContact) or getattr(spec, "across", None) is not None
    good &= across or not contact.in_space
    own = (*(row for row in (contact.normal_row,) if row != -1), *contact.tangent_rows)
    good &= contact.tangent_row >= -1 and all(0 <= row < len(rows) and rows[row].contact == k for row in own)
    if loads or contact.load_rows:
        carrying = {r.name: n for n, r in enumerate(rows) if r.role not in ("tangent", "tangent2", "friction")}
        good &= contact.load_rows == tuple(carrying[row] for row in loads if row in carrying)
    good &= _within(contact.ends, -1, 3 * len(automaton.contacts))
    return good and -1 <= contact.outline < len(automaton.contacts)


def _guard_fits(automaton: Automaton, mode: DerivedMode, guard: Guard) -> bool:
    """Whether a guard belongs to a transition, or to the law of its contact in this mode."""
    if guard.direction not in (-1.0, 0.0, 1.0) or guard.sign not in (-1.0, 1.0) or guard.subject < 0:
        return False
    if guard.event is Event.TRANSITION:
        return guard.subject < len(automaton.resets) and guard.quantity is GuardQuantity.CONDITION
    if guard.subject >= len(automaton.contacts):
        return False
    contact = automaton.contacts[guard.subject]
    declared = contact.contact_law.guards_of(contact, mode.states[guard.subject])
    return any((item.event, item.quantity) == (guard.event, guard.quantity) for item in declared)


def _mode_fits(automaton: Automaton, mode: DerivedMode, n_rows: int, n: int) -> bool:
    """Whether states, chart, guards and programs of a mode are those of its automaton."""
    programs, layout, contacts = mode.programs, automaton.terms.layout, automaton.contacts
    count, n_x = len(mode.guards), layout.n_x
    full = {"x_dot": (n_x,), "u": (len(layout.u),), "pivot": (1,), "guards": (count,), "slopes": (count,),
            "multipliers": (n_rows,)}  # fmt: skip
    good = programs.rhs.layout == layout == programs.full.layout and programs.rhs.outputs == {"x_dot": (n_x,)}
    good &= list(programs.full.outputs.items()) == list(full.items()) and len(mode.states) == len(contacts)
    good &= all(code in c.codes for code, c in zip(mode.states, contacts, strict=False))
    good &= all(0 <= row < n_rows and 0 <= column < n for row, column in programs.chart)
    good &= _within(programs.independent, 0, n) and _within((*programs.redundant, *programs.indeterminate), 0, n_rows)
    if not good or not all(_guard_fits(automaton, mode, guard) for guard in mode.guards):
        return False
    name = automaton.name_of(mode.states)
    return (mode.name, mode.pattern) == (name.name, name.pattern)
