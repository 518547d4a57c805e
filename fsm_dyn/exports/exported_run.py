"""What is exported: an automaton with its modes, its start and its schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.exports.c_names import prefix_of
from fsm_dyn.programs.program import Program
from fsm_dyn.runtime.layouts import Tables
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.numerics import Numerics

#: Types of the numbers in C.
Real = Literal["double", "float"]
REALS: Final[tuple[Real, ...]] = ("double", "float")
#: Words of eight bytes that so many numbers take.
WORDS_OF: Final[Mapping[Real, Callable[[int], int]]] = {"double": int, "float": lambda count: -(-count // 2)}


@dataclass(frozen=True)
class ExportedRun:
    """What is exported: an automaton, ready to run from the model's own start.

    Attributes
    ----------
    automaton : Automaton
    tables : Tables
        The modes exported, with addresses for kernels, which are left out.
    programs : sequence of (rhs, full)
        Of the modes, in the order of the tables.
    mode_names : sequence of str
    x, c : float64 arrays
        State and context at the start.
    mode : int
        Number of the mode at the start.
    inputs : InputSignals
        The model's own schedule.
    method : str
        An explicit method.
    rtol, step, until : float
        ``step`` (s) of a method with fixed steps, ``until`` (s) the end of the model's own schedule.
    numerics : Numerics
    atol : float64 array
        One for each state.
    spare : int
        How many modes beyond these a machine can embed online.
    real : "double" or "float"
        Type of the numbers in C.
    """

    automaton: Automaton
    tables: Tables
    programs: Sequence[tuple[Program, Program]]
    mode_names: Sequence[str]
    x: NDArray[np.float64]
    c: NDArray[np.float64]
    mode: int
    inputs: InputSignals
    method: str
    rtol: float
    atol: NDArray[np.float64]
    step: float
    until: float
    numerics: Numerics
    spare: int = 0
    real: Real = "double"

    @property
    def prefix(self) -> str:
        """What all identifiers of the model begin with."""
        return prefix_of(self.automaton.mechanism.name)

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
            "output": list(self.automaton.mechanism.outputs),
        }
