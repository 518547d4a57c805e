"""Codes and columns of an event resolution in the runtime (``runtime/event_resolution.c``)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime import library
from fsm_dyn.simulation.candidate_codes import LOG_SIZE, LOG_WIDTH

# why an instant is resolved
START: Final = 0
EVENT: Final = 1
INPUT_JUMP: Final = 2
ZENO: Final = 3
CONTRADICTION: Final = 4  # rows that were redundant agree no longer
SAMPLE: Final = 5  # a controller was sampled

# entries of ``energy``
ENERGY_BEFORE: Final = 0
ENERGY_COUNT: Final = 3

# entries of ``notes``
CHANGED: Final = 0  # 1: something changed (mode, speeds, slip direction, memory), so the transition is recorded
CANDIDATES: Final = 1  # combinations of contact states that were tried
INSTANT: Final = 3  # in: transitions made so far in this instant
TARGET: Final = 6  # mode found, for which a chart has to be chosen first
NOTE_COUNT: Final = 7

LOG_LENGTH: Final = LOG_SIZE * LOG_WIDTH  # room for the first candidates


def workspace(sizes: NDArray[np.int64], contacts: int) -> tuple[int, int]:
    """Return how many floats and integers of an arena suffice for a transition in which so many contacts meet.

    ``sizes`` are those of :class:`~fsm_dyn.simulation.tables.Tables`.
    """
    return library.arena_sizes(sizes, contacts)
