"""Expression nodes evaluated at one state after the other, by the names of what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs import Node, evaluate, support

Array = npt.NDArray[np.float64]


class Batch:
    """Nodes with the names of what they depend on."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes, self.names = list(nodes), [symbol.name for symbol in support(nodes)]

    def __call__(self, values: Mapping[str, float]) -> Array:
        """Return their values; what is not given is 0."""
        known = {name: values.get(name, 0.0) for name in self.names}
        return np.array([float(value) for value in evaluate(self.nodes, known)])
