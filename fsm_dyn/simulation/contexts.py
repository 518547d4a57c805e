"""Where things stand in the context ``c`` of the kernels (:class:`~fsm_dyn.programs.layout.Layout`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import lean

Integers = NDArray[np.int64]


@lean
def sigma_at(sizes: Integers) -> int:
    """Return where the slip directions begin, given ``Tables.sizes``."""
    return int(sizes[tb.N_P] + 3 * sizes[tb.N_W])


@lean
def memory_at(sizes: Integers) -> int:
    """Return where the memory of written transitions begins, given ``Tables.sizes``."""
    return int(sizes[tb.N_P] + 3 * sizes[tb.N_W] + sizes[tb.N_CONTACTS])
