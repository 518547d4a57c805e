"""Outputs of a tick (``runtime/tick_publishing.c``): rings in shared memory and histograms of times."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.layouts import Ring
from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


RING: Final = Bundle(Ring)
