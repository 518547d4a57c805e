"""Enclosures of the guards of modes that are embedded online: one program for all of them.

What the state alone determines is the same in every mode.  Forces are not: the runtime solves for them, from enclosures
of the terms that are the same in every mode (``runtime/force_enclosure.c``).
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

#: What a guard on forces measures; they are solved for from the terms of the unconstrained system, in this order.
_FORCES = (GuardQuantity.NORMAL_FORCE, GuardQuantity.FRICTION_LIMIT, GuardQuantity.FRICTION_CIRCLE,
           GuardQuantity.HOLDING_LIMIT)  # fmt: skip
_TERMS = ("A", "M", "f", "gamma", "elastic", "kinetic", "static")


@dataclass(frozen=True)
class OnlineEnclosure:
    """The code that encloses guards of any mode, and the value for each quantity, subject and sign."""

    code: EnclosureCode
    values: dict[tuple[GuardQuantity, int, float], int]

    def outputs(self, guards: Sequence[Guard]) -> NDArray[np.int64]:
        """Return the values of a mode's guards: numbers below -1 are codes of quantities of forces."""
        return np.array([self._output(guard) for guard in guards], np.int64)

    def _output(self, guard: Guard) -> int:
        if guard.quantity in _FORCES:
            return -2 - 2 * int(guard.quantity) - int(guard.sign > 0.0) if self.code.unknowns else -1
        return self.values.get((guard.quantity, guard.subject, guard.sign), -1)

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
        guards = {"guards": list(found.values())}
        code = enclosure_code(Program.from_nodes(system.layout, guards | _terms(system)))
        if code is None:
            code = enclosure_code(Program.from_nodes(system.layout, guards), "guards")
        elif len(system.rows):
            n, rows = len(system.layout.u), len(system.rows)
            words = np.concatenate([code.words, code.outputs[len(found) :]])
            code = code._replace(words=words, unknowns=n + min(n, rows))
    return None if code is None else OnlineEnclosure(code, dict(zip(found, code.outputs.tolist(), strict=False)))


def _terms(system: UnconstrainedSystem) -> dict[str, NDArray[np.object_]]:
    """Return the entries of the terms from which forces are solved for."""
    n, zero = len(system.layout.u), system.graph.constant(0.0)
    nodes = {name: np.asarray(system.nodes[name], dtype=object) for name in _TERMS if name in system.nodes}
    none = np.full(len(system.contacts), zero, dtype=object)
    A, M, f = nodes["A"][:, :n], nodes["M"][:n, :n], nodes["f"][:n]
    return {"A": A, "M": M, "f": f} | {name: nodes.get(name, none) for name in _TERMS[3:]}
