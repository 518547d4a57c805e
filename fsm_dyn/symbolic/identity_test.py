"""Test of identities: values of expressions at arbitrary configurations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs import Node, evaluate, support
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols

SEED = 20030818  # any fixed number: what a model means does not change from run to run


def sample(system: MechanismSymbols, nodes: Sequence[Node], count: int = 1) -> npt.NDArray[np.float64]:
    """Return the values of `nodes` at `count` arbitrary states, shape (count, len(nodes)).

    All symbols get arbitrary values between 0.3 and 1.3; Euler parameters are scaled to unit norm.

    Parameters
    ----------
    system : MechanismSymbols
        Gives the symbols.
    nodes : Sequence[Node]
        Expressions of them.
    count : int, optional
        Number of states.
    """
    random = np.random.default_rng(SEED)
    symbols = sorted(support(nodes) | {e for group in system.euler for e in group}, key=lambda node: node.name)
    values = {symbol.name: random.uniform(0.3, 1.3, count) for symbol in symbols}
    for group in system.euler:
        norm = np.sqrt(sum(values[e.name] ** 2 for e in group))
        for e in group:
            values[e.name] = values[e.name] / norm
    return np.stack([np.broadcast_to(value, (count,)) for value in evaluate(nodes, values)], axis=-1)
