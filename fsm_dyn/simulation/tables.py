"""Tables of a compiled automaton, as the arrays that the runtime reads.

All arrays are C-contiguous.  Mode, guard and row numbers are stable: modes derived during a
run are appended to the mode and guard arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.laws import Law
from fsm_dyn.runtime.abi import ContactFlag, Sizes


def law_flags(law: Law) -> int:
    """Return the bits of the properties that a law declares."""
    flags = (
        (ContactFlag.RIGID if law.rigid else 0)
        | (ContactFlag.COMPLIANT if law.compliant else 0)
        | (ContactFlag.SWITCHED if law.switched else 0)
    )
    flags |= (ContactFlag.NO_GAP if law.rigid and not law.has_gap else 0) | (
        ContactFlag.FORCE_LIMIT if law.force_limit else 0
    )
    return flags | (ContactFlag.FRICTION_ONLY if law.friction_only else 0) | (ContactFlag.LOADED if law.loaded else 0)


def context_length(sizes: NDArray[np.int64] | Sequence[int]) -> int:
    """Return the length of a kernel's context ``c``, from ``Tables.sizes``."""
    return int(sizes[Sizes.N_P] + 4 * sizes[Sizes.N_W] + sizes[Sizes.N_CONTACTS] + sizes[Sizes.N_MEMORY])


def nonzero_columns(entries: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each row's columns begin, and the columns, of a matrix's entries that can differ from zero."""
    begin = np.concatenate([[0], np.cumsum(entries.sum(axis=1))]).astype(np.int64)
    return begin, np.nonzero(entries)[1].astype(np.int64)
