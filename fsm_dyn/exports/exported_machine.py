"""Exported machine: an automaton with modes, start, schedule and forces among its outputs; C identifiers of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final, Literal

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.interfaces import listed_outputs
from fsm_dyn.language.scales import force_units
from fsm_dyn.language.values import units
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.pin_programs import PinPrograms
from fsm_dyn.programs.program import Program
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.phases import PhaseRules
from fsm_dyn.run.pins import pin_programs
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.tolerances import Numerics
from fsm_dyn.runtime.layouts import Tables

# -- Forces among the outputs ----------------------------------------------------------------------------------

Outputs = Literal["listed", "all", "reals"]
#: Outputs of an export: those of the model; with all states and forces; with modes and contact states as reals too.
OUTPUTS: Final[tuple[Outputs, ...]] = ("listed", "all", "reals")
_COMPONENTS: Final = tuple(f"{part}_{axis}" for part in ("force", "torque") for axis in "xyz")


@dataclass(frozen=True)
class ForceOutputs:
    """Outputs after those of the model."""

    # unit by name, in their order; empty for a number, or in a model without units
    units: Mapping[str, str] = field(default_factory=dict)
    # gives ``outputs`` (n,) from the state with rates of speeds and multipliers; None without any
    program: Program | None = None


def force_outputs(automaton: Automaton, outputs: Outputs = "listed") -> ForceOutputs:
    """Return the forces among the outputs.

    In addition to the listed ones these are, unless they vanish in every motion, ``pin_<connection>_force_x`` to
    ``_torque_z`` in N, and ``contact_<contact>_normal``, ``_friction``, ``_friction2``, zero while the contact is open.
    ``outputs``: one of :data:`OUTPUTS`.
    """
    mechanism = automaton.mechanism
    listed = listed_outputs(mechanism.pins)
    if not listed and outputs == "listed":
        return ForceOutputs()
    programs = pin_programs(mechanism, [(row.name, row.role) for row in automaton.rows])
    known = units(mechanism)
    _, symbols, nodes = programs.program.graph()
    columns = programs.quantities([column for _, column in listed], nodes)
    found = {name: (known.get(name, ""), node) for (name, _), node in zip(listed, columns, strict=True)}
    if outputs != "listed":
        multipliers = [symbols[f"lambda[{k}]"] for k in range(len(automaton.rows))]
        for name, unit, node in (*_wrenches(mechanism.uses_units, programs, nodes), *_contacts(automaton, multipliers)):
            found.setdefault(name, (unit, node))
    forces = [node for _, node in found.values()]
    program = Program.from_nodes(programs.program.layout, {"outputs": forces}) if forces else None
    return ForceOutputs({name: unit for name, (unit, _) in found.items()}, program)


def _wrenches(uses_units: bool, programs: PinPrograms, nodes: Mapping[str, Any]) -> Iterator[tuple[str, str, Node]]:
    """Yield name, unit and node of the components of all wrenches that do not vanish."""
    for pin in programs.pins:
        for component in _COMPONENTS:
            (node,) = programs.quantities([f"pin.{pin.name}.{component}"], nodes)
            if not node.is_zero:
                unit = "N" if component.startswith("force") else "N*m"
                yield f"pin_{pin.name}_{component}", unit if uses_units else "", node


def _contacts(automaton: Automaton, multipliers: Sequence[Node]) -> Iterator[tuple[str, str, Node]]:
    """Yield name, unit and node of the forces along the rows of all contacts."""
    of_rows = force_units(automaton.mechanism, [(row.name, row.role) for row in automaton.rows])
    for contact in automaton.contacts:
        rows = {"normal": contact.normal_row} if contact.normal_row >= 0 else {}
        rows |= dict(zip(("friction", "friction2"), contact.tangent_rows, strict=False))
        for part, row in rows.items():
            yield f"contact_{contact.name}_{part}", of_rows[row], multipliers[row]


# -- C identifiers of the names in a model -------------------------------------------------------------------
#
# A letter, digit or underscore of ASCII stands for itself; every other character becomes ``_u<code point in hex>_``,
# and so does a digit at the beginning of the model's name. Every other name follows a prefix (``latch_contact_``), so
# no name is a keyword or begins with a digit.

COUNT: Final = "count"  # the last enumerator of every kind
OTHER: Final = "other"  # the enumerator of modes without a number
# files of exports and targets of their Makefiles; a model adds NAME.c, NAME.h and the program NAME
_TAKEN: Final = frozenset({"main", "board", "start", "runtime", "run", "stack", "size", "clean", "program", "library"})


def identifier(name: str) -> str:
    """Return a name in the characters allowed in identifiers of C."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"_u{ord(found[0]):x}_", name)


def prefix_of(model: str) -> str:
    """Return the prefix of all identifiers and files of a model.

    Raises InputError: it is the name of a file of the export or of a target of its Makefile.
    """
    prefix = identifier(model)
    if prefix.lower() in _TAKEN or prefix.lower().startswith("fsm_"):
        raise InputError(
            "a model of this name cannot be exported: the export has files of that name",
            found=model,
            allowed=f"none of {', '.join(sorted(_TAKEN))}, and none that begins with 'fsm_'",
            remedy="rename the model",
        )
    return f"_u{ord(prefix[0]):x}_{prefix[1:]}" if prefix[0].isdigit() else prefix


def identifiers(kind: str, names: Sequence[str]) -> list[str]:
    """Return the identifiers of names of one kind.

    Raises InputError: two names have the same identifier, or a name has the identifier of their number (``COUNT``).
    """
    known: dict[str, str] = {COUNT: "the number of all"}
    for name in names:
        other = known.setdefault(identifier(name), name)
        if other != name:
            raise InputError(
                f"two {kind} have the same identifier in C",
                found=f"'{other}' and '{name}': {identifier(name)}",
                remedy="rename one of them",
            )
    return list(known)[1:]


def mode_identifiers(names: Sequence[str]) -> list[str]:
    """Return the identifiers of modes: other characters become an underscore, and later ones of a kind get a number."""
    taken = {COUNT, OTHER}
    result = []
    for name in names:
        text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "none"
        numbered = (text, *(f"{text}_{number}" for number in range(2, len(names) + 4)))
        result.append(next(each for each in numbered if each not in taken))
        taken.add(result[-1])
    return result


# -- Exported run: an automaton with its modes, start and schedule -------------------------------------------

#: Types of the numbers in C.
Real = Literal["double", "float"]
REALS: Final[tuple[Real, ...]] = ("double", "float")
#: Words of eight bytes for a given number of values of each type.
WORDS_OF: Final[Mapping[Real, Callable[[int], int]]] = {"double": int, "float": lambda count: -(-count // 2)}


@dataclass(frozen=True)
class ExportedMachine:
    """An automaton ready for export, with the model's own start and schedule."""

    automaton: Automaton
    tables: Tables  # the exported modes; the addresses of kernels are left out
    programs: Sequence[tuple[Program, Program]]  # sequence of (rhs, full): of the modes, in the order of the tables
    mode_names: Sequence[str]
    # x, c: float64 arrays: state and context at the start
    x: Floats
    c: Floats
    mode: int  # number of the mode at the start
    inputs: InputSignals  # the model's own schedule
    # resolved: an explicit method, ``until`` (s) the end of the model's own schedule, ``atol`` for each state
    options: RunOptions
    numerics: Numerics
    spare: int = 0  # number of further modes that a machine can embed online
    real: Real = "double"  # "double" or "float": type of the numbers in C
    forces: ForceOutputs = field(default_factory=ForceOutputs)
    phases: PhaseRules | None = None
    outputs: Outputs = "listed"  # "listed", "all" or "reals": see :data:`fsm_dyn.exports.exported_machine.OUTPUTS`
    icon: bytes = b""  # PNG of the mechanism at its start; empty without a drawing
    # contact states, by name, of modes reached that are embedded online, not exported
    embedded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Prefix of all identifiers of the model."""
        return prefix_of(self.automaton.mechanism.name)

    @property
    def pins(self) -> Program | None:
        """Program of the forces among the outputs, of the state with rates of speeds and multipliers."""
        return self.forces.program

    @cached_property
    def units(self) -> dict[str, str]:
        """Units by name."""
        return {**units(self.automaton.mechanism), **self.forces.units}

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of the model by kind, in the order of their numbers."""
        layout = self.automaton.terms.layout
        return {
            "mode": list(self.mode_names),
            "contact": [contact.name for contact in self.automaton.contacts],
            "state": [*layout.q, *layout.u],
            "input": list(layout.w),
            "parameter": list(layout.p),
            "output": [*self.automaton.mechanism.outputs, *self.forces.units],
            **({} if self.phases is None else {"phase": self.phases.names}),
        }
