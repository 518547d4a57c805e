"""The scripted hand as the runtime reads and writes it (``runtime/scripted_hand.c``): a driver for fast loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fsm_dyn.live.paced_loop import CompiledIO
from fsm_dyn.runtime import library
from fsm_dyn.runtime.layouts import ScriptedHand
from fsm_dyn.simulation.array_structs import Bundle

HAND: Final = Bundle(ScriptedHand)


def compiled_hand(
    numbers: Sequence[float], motion: Sequence[tuple[float, ...]], axes: int
) -> tuple[ScriptedHand, CompiledIO]:
    """Return a hand at rest and how it is read and written.

    Parameters
    ----------
    numbers : Sequence[float]
        Those of :class:`ScriptedHand` but the time.
    motion : Sequence[tuple[float, ...]]
        Four numbers for each sinusoid.
    axes : int
        Number of axes.
    """
    swings = np.array(motion, dtype=np.float64).reshape(-1, 4)
    hand = ScriptedHand(np.array([*numbers, 0.0]), swings, np.zeros(axes), np.zeros(axes), np.zeros(axes))
    packed = HAND.pack(hand)
    read, write = library.address("fsm_hand_read"), library.address("fsm_hand_write")
    return hand, CompiledIO(read, write, packed.address, (hand, packed))
