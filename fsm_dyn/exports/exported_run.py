"""Exported run: an automaton with its modes, start and schedule; C identifiers of its names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.force_outputs import ForceOutputs, Outputs
from fsm_dyn.language.values import units
from fsm_dyn.programs.program import Program
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.tolerances import Numerics
from fsm_dyn.runtime.layouts import Tables

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

    Raises
    ------
    InputError
        It is the name of a file of the export or of a target of its Makefile.
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

    Raises
    ------
    InputError
        Two names have the same identifier, or a name has the identifier of their number (``COUNT``).
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
class ExportedRun:
    """An automaton ready for export, with the model's own start and schedule.

    Attributes
    ----------
    automaton : Automaton
    tables : Tables
        The exported modes; the addresses of kernels are left out.
    programs : sequence of (rhs, full)
        Of the modes, in the order of the tables.
    mode_names : sequence of str
    x, c : float64 arrays
        State and context at the start.
    mode : int
        Number of the mode at the start.
    inputs : InputSignals
        The model's own schedule.
    options : RunOptions
        Resolved: an explicit method, ``until`` (s) the end of the model's own schedule, ``atol`` for each state.
    numerics : Numerics
    spare : int
        Number of further modes that a machine can embed online.
    real : "double" or "float"
        Type of the numbers in C.
    forces : ForceOutputs
        Outputs after those of the model.
    outputs : "listed", "all" or "reals"
        See :data:`fsm_dyn.exports.force_outputs.OUTPUTS`.
    icon : bytes
        PNG of the mechanism at its start; empty without a drawing.
    """

    automaton: Automaton
    tables: Tables
    programs: Sequence[tuple[Program, Program]]
    mode_names: Sequence[str]
    x: NDArray[np.float64]
    c: NDArray[np.float64]
    mode: int
    inputs: InputSignals
    options: RunOptions
    numerics: Numerics
    spare: int = 0
    real: Real = "double"
    forces: ForceOutputs = field(default_factory=ForceOutputs)
    outputs: Outputs = "listed"
    icon: bytes = b""

    @property
    def prefix(self) -> str:
        """Prefix of all identifiers of the model."""
        return prefix_of(self.automaton.mechanism.name)

    @property
    def pins(self) -> Program | None:
        """Program of the forces among the outputs, of the state with rates of speeds and multipliers."""
        return self.forces.program

    @property
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
        }
