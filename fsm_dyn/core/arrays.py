"""Types of arrays and input functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]  # of contact states

InputFunction = Callable[[Floats], Floats]
"""``inputs(t)`` → inputs, their rates and second rates side by side, shape ``(n, 3 n_w)``, at times ``t`` of shape
``(n,)``, s; the limit from the right where an input jumps."""
