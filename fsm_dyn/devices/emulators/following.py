"""Mechanics of an emulated device that follows, along one axis: stiff, geared, with position loop and force sensor.

Its gears keep the hand from moving it.  The velocity commanded is integrated to a position, which the loop follows as

    x'' = w^2 (command - x) - 2 d w x'

and the sensor measures the force of a hand ``k (place - x) - c x'`` whose place moves to its target.  The velocity
commanded is constant between two instants, and the motion is the exact solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.linalg import expm

from fsm_dyn.devices.emulators.handle import EmulatedHandle

HAND_SPEED: Final = 1.0  # m/s, with which a hand moves to another place: its force is measured, and does not jump
BANDWIDTH: Final = 40.0  # Hz, of the position loop
DAMPING_RATIO: Final = 1.0


@lru_cache(maxsize=16)
def _exact_step(rate: float, ratio: float, step: float) -> tuple[float, ...]:
    """Return the exact map over a step: (command, x, v) from (command, x, v, commanded velocity), row by row."""
    matrix = np.zeros((4, 4))
    matrix[0, 3] = matrix[1, 2] = 1.0
    matrix[2, :3] = rate * rate, -rate * rate, -2.0 * ratio * rate
    return tuple(float(value) for value in expm(matrix * step)[:3].ravel())


@dataclass
class FollowingHandle(EmulatedHandle):
    """A handle that follows the integral of ``force``, which is the velocity commanded, m/s.

    Attributes
    ----------
    bandwidth : float
        Of the position loop, Hz.
    damping_ratio : float
    command : float
        Position commanded, m.
    place : float
        Where the hand is on its way to ``target``, m.
    """

    bandwidth: float = BANDWIDTH
    damping_ratio: float = DAMPING_RATIO
    command: float = 0.0
    place: float = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.target

    @property
    def delay(self) -> float:
        """By how much the position follows the command late, s, for motions slower than the loop."""
        return self.damping_ratio / (math.pi * self.bandwidth)

    @property
    def hand_force(self) -> float:
        """Force of the hand that the sensor measures, N."""
        return self.hand_stiffness * (self.place - self.position) - self.hand_damping * self.velocity

    def advance(self, duration: float) -> None:
        """Advance by a time (s) at the velocity commanded."""
        if duration <= 0.0:
            return
        way = HAND_SPEED * duration
        self.place += min(max(self.target - self.place, -way), way)
        state = self.command, self.position, self.velocity, self.force
        step = _exact_step(2.0 * math.pi * self.bandwidth, self.damping_ratio, duration)
        self.command, self.position, self.velocity = (
            sum(factor * value for factor, value in zip(step[4 * i : 4 * i + 4], state, strict=True)) for i in range(3)
        )
