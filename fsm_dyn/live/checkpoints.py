"""Checkpoints of a live run: copies of the stepper's state every few ticks, to rewind to."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import CHECKPOINTS_MOST, CheckpointCounts
from fsm_dyn.runtime.layouts import Checkpoints
from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


CHECKPOINTS: Final = Bundle(Checkpoints)


def new_marks(block: Integers, inputs: int, old: Checkpoints | None) -> Checkpoints:
    """Return empty checkpoints for a run with its state in ``block``; memory of the run before is reused."""
    if old is not None and old.states.shape[1] == len(block):
        return old._replace(counts=np.zeros(CheckpointCounts.COUNT, np.int64), block=block)
    marks = Checkpoints(
        np.zeros(CheckpointCounts.COUNT, np.int64),
        block,
        np.empty((CHECKPOINTS_MOST, len(block)), np.int64),
        np.empty((CHECKPOINTS_MOST, 1 + inputs)),
    )
    marks.states.fill(0)  # page faults here, not in a tick
    marks.inputs.fill(0.0)
    return marks


def last_before(marks: Checkpoints, t: float) -> int:
    """Return the row of the last checkpoint not after ``t`` (s), or of the first; later ones are dropped."""
    made, room = int(marks.counts[CheckpointCounts.SAVED]), len(marks.states)
    oldest = max(0, made - room)
    number = next((k for k in range(made - 1, oldest, -1) if marks.inputs[k % room, 0] <= t), oldest)
    marks.counts[CheckpointCounts.SAVED] = number + 1
    return number % room
