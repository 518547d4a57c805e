"""Enclosures of the guards of modes that are embedded online: one program for all of them.

What the state alone determines is the same in every mode.  Forces are not: no program gives them online, and they are
watched by the interpolants of their values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.laws import GuardQuantity
from fsm_dyn.modes.guards import Guard, guards_of_state
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Program
from fsm_dyn.programs.enclosure_code import EnclosureCode, enclosure_code


@dataclass(frozen=True)
class OnlineEnclosure:
    """The code that encloses guards of any mode, and the value for each quantity, subject and sign."""

    code: EnclosureCode
    values: dict[tuple[GuardQuantity, int, float], int]

    def outputs(self, guards: Sequence[Guard]) -> NDArray[np.int64]:
        """Return the values of a mode's guards, -1 of those on forces."""
        keys = [(guard.quantity, guard.subject, guard.sign) for guard in guards]
        return np.array([self.values.get(key, -1) for key in keys], np.int64)

    def of(self, guards: Sequence[Guard]) -> EnclosureCode:
        """Return the code with the outputs of a mode."""
        return self.code._replace(outputs=self.outputs(guards))


def online_enclosure(system: UnconstrainedSystem) -> OnlineEnclosure | None:
    """Return the enclosure of the guards of modes embedded online; None where there are none, or too many operations.

    Parameters
    ----------
    system : UnconstrainedSystem
        The unconstrained terms.
    """
    with system.graph.scratch():
        found = guards_of_state(system)
        code = enclosure_code(Program.from_nodes(system.layout, {"guards": list(found.values())}), "guards")
    return None if code is None else OnlineEnclosure(code, dict(zip(found, code.outputs.tolist(), strict=True)))
