"""Mechanics of an emulated device along one axis: a mass with damping, dry friction and optionally a hand.

The force shown is constant between two instants, as at the output stage of a device, and the motion is the exact
solution of

    m x'' + b x' = force + k (target - x) - c x'

so that any energy gained in a loop is due to sampling and hold, not to the integration of the handle.  Dry friction is
an impulse per step, at most the one that stops the handle (Moreau), with short steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.linalg import expm

_SHORT: Final = 1e-4  # s, longest step with dry friction


@lru_cache(maxsize=64)
def _held_solution(mass: float, damping: float, stiffness: float, step: float) -> tuple[float, ...]:
    """Return the exact map over a step: (x, v) from (x, v, force), row by row."""
    matrix = np.array([[0.0, 1.0, 0.0], [-stiffness / mass, -damping / mass, 1.0 / mass], [0.0, 0.0, 0.0]])
    return tuple(float(value) for value in expm(matrix * step)[:2].ravel())


@dataclass
class EmulatedHandle:
    """A handle that moves along one axis.

    Attributes
    ----------
    mass, damping, friction : float
        Of the handle: kg, N s/m and N.
    resolution : float
        Of the sensor, m; 0: exact.
    hand_stiffness, hand_damping : float
        Of the hand that holds it, N/m and N s/m; zero: no hand.
    target : float
        Target of the hand, m.
    force : float
        Shown, N; constant until it is changed.
    position, velocity : float
        True ones, m and m/s.
    """

    mass: float
    damping: float = 0.0
    friction: float = 0.0
    resolution: float = 0.0
    hand_stiffness: float = 0.0
    hand_damping: float = 0.0
    target: float = 0.0
    force: float = 0.0
    position: float = field(default=0.0)
    velocity: float = field(default=0.0)

    @property
    def measured(self) -> float:
        """Position that the sensor measures, m."""
        if self.resolution <= 0.0:
            return self.position
        return self.resolution * math.floor(self.position / self.resolution + 0.5)

    def advance(self, duration: float) -> None:
        """Advance by a time (s) under the force shown; solutions for a few durations are cached."""
        if duration <= 0.0:
            return
        steps = max(1, math.ceil(duration / _SHORT - 1e-9)) if self.friction > 0.0 else 1
        step = duration / steps
        damping = self.damping + self.hand_damping
        xx, xv, xf, vx, vv, vf = _held_solution(self.mass, damping, self.hand_stiffness, step)
        stops = self.friction * step / self.mass
        for _ in range(steps):
            x, v = self.position - self.target, self.velocity
            self.position = self.target + xx * x + xv * v + xf * self.force
            v = vx * x + vv * v + vf * self.force
            if self.friction > 0.0:
                v = math.copysign(max(0.0, abs(v) - stops), v)
                if v == 0.0 and self.velocity == 0.0:
                    self.position = x + self.target  # it sticks
            self.velocity = v


@dataclass
class Meter:
    """Meter of the work done on the handles of a device by the forces shown, and of their speed.

    Attributes
    ----------
    work, most_work : float
        Done on handles and hand by the forces shown, J, and its largest value so far.
    peak_speed : float
        Norm of the velocities of all axes, m/s.
    peak_energy : float
        Largest kinetic energy of the handles, J.
    """

    work: float = 0.0
    most_work: float = 0.0
    peak_speed: float = 0.0
    peak_energy: float = 0.0

    def advance(self, handles: Sequence[EmulatedHandle], duration: float) -> None:
        """Advance the handles by a time (s) under the forces shown, and measure."""
        square = energy = 0.0
        for handle in handles:
            before = handle.position
            handle.advance(duration)
            self.work += handle.force * (handle.position - before)
            square += handle.velocity**2
            energy += 0.5 * handle.mass * handle.velocity**2
        self.most_work = max(self.most_work, self.work)
        self.peak_speed = max(self.peak_speed, math.sqrt(square))
        self.peak_energy = max(self.peak_energy, energy)
