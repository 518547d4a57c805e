"""The shapes of what passes through: arrays, programs, inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

InputFunction = Callable[[FloatArray], FloatArray]
"""``inputs(t)`` → inputs, their rates and second rates side by side, shape ``(n, 3 n_w)``, at times ``t`` of shape
``(n,)``, s; the limit from the right where an input jumps."""


class Evaluates(Protocol):
    """A straight-line program that evaluates over many states at once."""

    def evaluate(self, t: Any, x: Any, c: Any) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return every output with the leading axes of ``t`` (…,), ``x`` (…, n_x) and ``c`` (…, n_c)."""
        ...  # pragma: no cover
