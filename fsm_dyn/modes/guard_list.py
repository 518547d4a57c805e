"""Guards of a mode listed without deriving it; online embedding evaluates them from the terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsm_dyn.modes.embedding import EmbeddedMode
from fsm_dyn.modes.guards import Guard, contact_guards, transition_guards
from fsm_dyn.modes.redundancy import IndeterminateForces
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem


def list_guards(system: UnconstrainedSystem, states: Sequence[int], leaving: Sequence[int]) -> tuple[Guard, ...]:
    """The guards of the mode with these contact states, in the order in which a derived mode has them.

    Where rows are redundant a derived mode guards what contacts can bear together; here each contact's own laws
    are listed, and shares are chosen that keep them as far from their limits as can be.

    Parameters
    ----------
    system : UnconstrainedSystem
        The unconstrained terms.
    states : Sequence[int]
        Contact states of the mode.
    leaving : indices of the user-defined transitions that leave this mode

    Returns
    -------
    tuple of Guard
    """
    speeds = [system.symbols[name] for name in system.layout.u]
    with system.graph.scratch():
        # any nodes will do: only what the guards are is wanted, not their expressions
        forces = [system.graph.symbol(f"force {row}") for row in range(len(system.rows))]
        unsolved = EmbeddedMode(
            speeds, [], forces, [], (), (), (), [], [], IndeterminateForces(), np.ones(len(system.contacts))
        )
        pairs = contact_guards(system, states, unsolved) + transition_guards(system, leaving)
        return tuple(guard for guard, _ in pairs)
