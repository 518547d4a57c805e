"""Velocity estimation for devices that measure none: from positions, or by a critically damped filter."""

from __future__ import annotations

import math
from collections.abc import Sequence


class VelocityFilter:
    """The difference quotient through a filter of first order.

    With `f` the bandwidth and `h` the time since the sample before,

        v <- v + (1 - exp(-2 pi f h)) (dx / h - v)

    which is the exact answer of ``v' = 2 pi f (dx/dt - v)`` to a quotient held over the step; it lags by ``1 / (2 pi
    f)`` and lets the steps of a sensor of resolution ``r`` through as ``2 pi f r`` instead of ``r / h``.

    Parameters
    ----------
    axes : int
    bandwidth : float
        Hz.
    """

    def __init__(self, axes: int, bandwidth: float) -> None:
        self._rate = 2.0 * math.pi * bandwidth
        self._axes = axes
        self.forget()

    def forget(self) -> None:
        """Begin again, at rest."""
        self._before: tuple[float, Sequence[float]] | None = None
        self._velocity = [0.0] * self._axes

    def take(self, time: float, position: Sequence[float]) -> tuple[float, ...]:
        """Take a position (m or rad) of a later time (s) and return the velocity; of no later one, it is not taken."""
        if self._before is not None:
            since, where = self._before
            step = time - since
            if step <= 0.0:
                return tuple(self._velocity)
            part = -math.expm1(-self._rate * step)
            for i, (x, before) in enumerate(zip(position, where, strict=True)):
                self._velocity[i] += part * ((x - before) / step - self._velocity[i])
        self._before = time, tuple(position)
        return tuple(self._velocity)


def critically_damped_step(
    position: list[float], velocity: list[float], target: Sequence[float], step: float, bandwidth: float
) -> None:
    """Move positions and velocities by a step (s) towards targets, as a critically damped filter does.

    ``x'' = w^2 (target - x) - 2 w x'`` with ``w = 2 pi bandwidth`` (Hz), solved for the velocity at the end of the
    step: never unstable, and without overshoot.

    Parameters
    ----------
    position : list[float]
        Of each axis, m or rad; changed in place.
    velocity : list[float]
        Of each axis, m/s or rad/s; changed in place.
    target : Sequence[float]
        Positions approached, m or rad.
    step : float
        Length of the step, s.
    bandwidth : float
        Of the filter, Hz.
    """
    w = 2.0 * math.pi * bandwidth
    for i, place in enumerate(target):
        pull = w * w * (place - position[i])
        velocity[i] = (velocity[i] + step * pull) / (1.0 + 2.0 * step * w + step * step * w * w)
        position[i] += step * velocity[i]
