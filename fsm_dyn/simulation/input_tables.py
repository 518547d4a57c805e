"""Tables of input signals: polynomial pieces and kernels that the runtime evaluates."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.layouts import InputTables
from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


DRIVE: Final = Bundle(InputTables)
