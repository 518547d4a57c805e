"""Cache of derived modes, bounded, shared by the runs of a simulator."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from fsm_dyn.automaton.hybrid_automaton import DerivedMode
from fsm_dyn.modes.programs import ModePrograms

INSTRUCTION_BYTES: Final = 200  # of a program in memory: 177 to 205 in three models


def program_memory(programs: ModePrograms) -> int:
    """Return about how much memory the programs of a mode take, bytes."""
    return INSTRUCTION_BYTES * (len(programs.rhs.instructions) + len(programs.full.instructions))


class DerivedModes:
    """Modes by their contact states, of which those that were used longest ago are dropped.

    A mode that was dropped is derived again where a run needs it.  It has the same programs then, as modes are derived
    for the model's own start: what is kept decides how long a run takes, and nothing else.

    Parameters
    ----------
    most : float
        Bytes, see :func:`program_memory`; the mode used last stays, however large it is.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.memory = 0
        self._most = most
        self._modes: OrderedDict[tuple[int, ...], DerivedMode] = OrderedDict()  # the one used last comes last

    def __len__(self) -> int:
        return len(self._modes)

    def __iter__(self) -> Iterator[DerivedMode]:
        return iter(self._modes.values())

    def get(self, states: tuple[int, ...], derive: Callable[[], DerivedMode]) -> DerivedMode:
        """Return the mode with these contact states, derived if need be."""
        found = self._modes.get(states)
        if found is None:
            found = self._modes[states] = derive()
            self.memory += program_memory(found.programs)
            while self.memory > self._most and len(self._modes) > 1:
                self.memory -= program_memory(self._modes.popitem(last=False)[1].programs)
        else:
            self._modes.move_to_end(states)
        return found
