"""Stability of a coupled model with a device and a hand that are known: the exact map of the loop over a tick.

Device and hand are a mass on a spring and a damper, ``m x'' = F - b x' - k x``, solved exactly under a force that is
constant over a tick, or changes within it where a delay is no whole number of ticks.  The model is that of
:class:`~fsm_dyn.passivity.sampled_response.SampledLoop`; the velocity is as the device reports it.  No assumption is
made about frequencies, and aliasing is part of it: the loop is stable if and only if the map is (docs/theory.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from fsm_dyn.errors import InputError
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.passivity.sampled_response import INPUT_LENGTH, SampledLoop

Floats = NDArray[np.float64]

_MOST: Final = 1e4  # N s/m, of a device
_HALVINGS: Final = 40
_ROUNDING: Final = 1e-9  # beyond one, of a growth


@dataclass(frozen=True)
class Hand:
    """A hand that holds the device.

    Attributes
    ----------
    stiffness, damping, mass : float
        N/m, N s/m, kg.
    """

    stiffness: float = 0.0
    damping: float = 0.0
    mass: float = 0.0

    def __post_init__(self) -> None:
        if not all(0.0 <= value < math.inf for value in (self.stiffness, self.damping, self.mass)):
            found = f"{self.stiffness:g} N/m, {self.damping:g} N s/m, {self.mass:g} kg"
            raise InputError("stiffness, damping and mass of a hand", found=found, allowed="from 0")


def growth_with_hand(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> float:
    """Return the largest factor by which a motion grows in a tick where a hand holds the device along one axis.

    Parameters
    ----------
    loop : SampledLoop
    axis : int
        Of the loop, with a coupler.
    device : DeviceDynamics
        Its mass and damping must be known.
    hand : Hand

    Raises
    ------
    InputError
        Mass or damping of the device is not known.
    """
    if device.mass is None or device.damping is None:
        raise InputError("a loop with a hand needs mass and damping of the device", remedy="give --mass and --damping")
    step = _tick(loop, axis, device, hand)
    size = step(np.zeros(0)).size
    columns = [step(unit) for unit in np.eye(size)]
    return float(np.abs(np.linalg.eigvals(np.array(columns).T)).max())


def damping_needed_with_hand(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> float:
    """Return the least damping of the device (N s/m) above which the loop is stable; infinite for none.

    A device may be unstable with much damping too: this is the end of the interval from which stability begins.
    """

    def stable(damping: float) -> bool:
        return growth_with_hand(loop, axis, replace(device, damping=damping), hand) < 1.0 + _ROUNDING

    if stable(0.0):
        return 0.0
    tried = [value for value in np.geomspace(1e-3, _MOST, _HALVINGS) if stable(float(value))]
    if not tried:
        return math.inf
    low, high = 0.0, float(tried[0])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stable(middle) else (middle, high)
    return high


def _tick(loop: SampledLoop, axis: int, device: DeviceDynamics, hand: Hand) -> Callable[[Floats], Floats]:
    """Return the map of the whole state over a tick.

    The state: position and velocity of the device, position and velocity sampled in the tick before, the state of the
    model, the forces that were commanded in the last ticks, the latest first.
    """
    T, scale = loop.period, float(loop.scales[axis])
    late = device.delay / T
    whole = math.floor(late + 1e-9)
    part = max(late - whole, 0.0)
    n, forces = len(loop.step), whole + (part > 0.0)
    plant = [_plant(device, hand, duration) for duration in (part * T, (1.0 - part) * T)]
    at = INPUT_LENGTH * sum(1 if bandwidth else 2 for bandwidth in loop.filters[:axis])
    report = _velocity(device.velocity_bandwidth, T)

    def step(z: Floats) -> Floats:
        if z.size == 0:  # asks for the size
            return np.zeros(4 + n + forces)
        moving, before, s, sent = z[:2], z[2:4], z[4 : 4 + n], z[4 + n :]
        x, v = float(moving[0]), report(moving, before)
        begins, ends = np.zeros(loop.push.shape[1]), np.zeros(loop.push.shape[1])
        for k, (value, old) in enumerate(((x, before[0]), (v, before[1]))):
            first = at + k * INPUT_LENGTH
            begins[first : first + 2] = scale * old, scale * (value - old) / T
            ends[first] = scale * value
        s = loop.step @ s + loop.push @ begins
        force = -loop.force_scale * scale * float((loop.out @ s + loop.through @ ends)[axis])
        commanded = np.concatenate([[force], sent])
        if part > 0.0:
            moving = plant[0][:, :2] @ moving + plant[0][:, 2] * commanded[whole + 1]
        moving = plant[1][:, :2] @ moving + plant[1][:, 2] * commanded[whole]
        return np.concatenate([moving, [x, v], s, commanded[:forces]])

    return step


def _velocity(bandwidth: float | None, T: float) -> Callable[[Floats, Floats], float]:
    """Return what the device reports, from its motion and what it reported in the tick before."""
    if bandwidth is None:
        return lambda moving, before: float(moving[1])
    part = 1.0 if bandwidth == math.inf else -math.expm1(-2.0 * math.pi * bandwidth * T)
    return lambda moving, before: float(before[1] + part * ((moving[0] - before[0]) / T - before[1]))


def _plant(device: DeviceDynamics, hand: Hand, duration: float) -> Floats:
    """Return the map of device and hand over a time at a constant force: position and velocity, by those and by it."""
    mass = (device.mass or 0.0) + hand.mass
    matrix = np.zeros((3, 3))
    matrix[0, 1] = 1.0
    matrix[1] = -hand.stiffness / mass, -((device.damping or 0.0) + hand.damping) / mass, 1.0 / mass
    found: Floats = expm(matrix * duration)[:2]
    return found
