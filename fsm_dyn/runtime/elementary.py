"""The elementary functions of the runtime, called from Python: the same bits as in kernels, on every platform.

Each takes and returns floats; special values are those of C99: nothing is raised, ``log(0)`` is minus infinity.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Final

from fsm_dyn.runtime.library import address

OF_ONE: Final = ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh")
OF_TWO: Final = ("atan2", "pow")


def _function(name: str, arity: int) -> Callable[..., float]:
    types = (arity + 1) * (ctypes.c_double,)
    return ctypes.CFUNCTYPE(*types)(address(f"fsm_{name}"))


FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    **{name: _function(name, 1) for name in OF_ONE},
    **{name: _function(name, 2) for name in OF_TWO},
}
