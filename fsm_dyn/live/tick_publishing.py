"""Outputs of a tick (``runtime/tick_publishing.c``): rings in shared memory and histograms of times."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Ring(NamedTuple):
    """The parts of the shared block that every tick writes to."""

    header: Integers
    rows: Floats
    records: Floats
    durations: Integers
    latenesses: Integers
    processor: Integers


RING: Final = Bundle(Ring, {"rows": 2, "records": 2})
