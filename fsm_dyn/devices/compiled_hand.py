"""Reading and writing of the scripted hand in compiled code: an example of what a driver for fast loops offers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fsm_dyn.live.compiled_pacing import CompiledIO
from fsm_dyn.simulation.bundles import Bundle, pointer_at
from fsm_dyn.simulation.compiled import address, routine

# ``Hand.numbers``
MASS: Final = 0
STIFFNESS: Final = 1
DAMPING: Final = 2
PERIOD: Final = 3
GENTLE: Final = 4
READINGS: Final = 5
NUMBER_COUNT: Final = 6


class Hand(NamedTuple):
    """The hand: ``numbers`` see the constants; ``motion`` holds axis, amplitude, rad/s and phase of each swing.

    ``position velocity force`` are per axis.
    """

    numbers: NDArray[np.float64]
    motion: NDArray[np.float64]
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    force: NDArray[np.float64]


HAND: Final = Bundle(Hand, {"motion": 2})
_open = HAND.opener()


@routine
def read(hand_at: int, sample_at: int) -> int:
    """Move the hand by one period and tell where it is."""
    hand, sample = _open(hand_at), pointer_at(sample_at)
    numbers, n = hand.numbers, hand.position.shape[0]
    t = numbers[READINGS] * numbers[PERIOD]
    gentle = min(t / numbers[GENTLE], 1.0)
    numbers[READINGS] += 1.0
    for i in range(n):
        target, rate = 0.0, 0.0
        for k in range(hand.motion.shape[0]):
            if hand.motion[k, 0] == i:
                amplitude, frequency, phase = hand.motion[k, 1], hand.motion[k, 2], hand.motion[k, 3]
                target += gentle * amplitude * math.sin(frequency * t + phase)
                rate += gentle * amplitude * frequency * math.cos(frequency * t + phase)
        pull = numbers[STIFFNESS] * (target - hand.position[i]) + numbers[DAMPING] * (rate - hand.velocity[i])
        hand.velocity[i] += numbers[PERIOD] * (pull + hand.force[i]) / numbers[MASS]
        hand.position[i] += numbers[PERIOD] * hand.velocity[i]
        sample[i], sample[n + i] = hand.position[i], hand.velocity[i]
    sample[2 * n], sample[2 * n + 1] = numbers[READINGS], 0.0
    return 0


@routine
def write(hand_at: int, force_at: int) -> int:
    """Let the force act on the hand until the next reading."""
    hand, force = _open(hand_at), pointer_at(force_at)
    for i in range(hand.force.shape[0]):
        hand.force[i] = force[i]
    return 0


def compiled_hand(numbers: Sequence[float], motion: Sequence[tuple[float, ...]], axes: int) -> tuple[Hand, CompiledIO]:
    """Return a hand at rest and how it is read and written."""
    swings = np.array(motion, dtype=np.float64).reshape(-1, 4)
    hand = Hand(np.array([*numbers, 0.0]), swings, np.zeros(axes), np.zeros(axes), np.zeros(axes))
    packed = HAND.pack(hand)
    words = (types.int64, types.int64)
    return hand, CompiledIO(address(read, *words), address(write, *words), packed.address, (hand, packed))
