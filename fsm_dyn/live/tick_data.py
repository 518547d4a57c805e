"""Data of a tick: numbers, counts and arrays that Python and the compiled functions share."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.layouts import Tick
from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


TICK: Final = Bundle(Tick)
