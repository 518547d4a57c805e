"""Z-width (Colgate & Brown 1994): the largest passive stiffness over the rate of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from fsm_dyn.errors import InputError
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.passivity import conditions

Floats = NDArray[np.float64]

RATES: Final = tuple(np.geomspace(250.0, 40e3, 14))  # Hz; those that Choi & Tan compared, IROS 2004
_COARSE: Final = 60  # frequencies to look at


@dataclass(frozen=True)
class ZWidth:
    """Largest stiffnesses at some rates, as the device feels them.

    Attributes
    ----------
    rate : ndarray, shape (k,)
        Hz.
    wall : ndarray, shape (k,)
        Of a rigid model, N/m, with the coupler's damping given or none.
    coupler : ndarray, shape (k,)
        Whatever the model, N/m, with the coupler's damping at its best for each rate.
    alone : ndarray, shape (k,)
        Of a wall that is stable without a hand, N/m.
    quantised : float or None
        Limit by dry friction and resolution at any rate, N/m; None where one is unknown.
    """

    rate: Floats
    wall: Floats
    coupler: Floats
    alone: Floats
    quantised: float | None


def z_width(handle: DeviceDynamics, rates: Sequence[float] = RATES, damping: float = 0.0) -> ZWidth:
    """Return the largest passive stiffness of a device at each rate.

    Parameters
    ----------
    handle : DeviceDynamics
        Its damping must be known.
    rates : sequence of float
        Hz.
    damping : float
        Of the wall, by the backward difference of the position, N s/m.

    Raises
    ------
    InputError
        The damping of the device is not known.
    """
    if handle.damping is None:
        raise InputError("the Z-width needs the damping of the device", found="unknown", remedy="give --damping")
    b, delay = handle.damping, handle.delay
    periods = 1.0 / np.array(rates, dtype=np.float64)
    wall = [_stiffest_wall(b, damping, T, delay) for T in periods]
    coupler = [b / _least_needed(T, delay) for T in periods]
    quantised = None
    if handle.resolution is not None and handle.friction is not None:
        quantised = 2.0 * handle.friction / handle.resolution if handle.resolution > 0.0 else np.inf
    return ZWidth(
        1.0 / periods,
        np.array(wall),
        np.array(coupler),
        np.array([conditions.stable_stiffness(b, damping, T, delay) for T in periods]),
        quantised,
    )


def _stiffest_wall(b: float, B: float, T: float, delay: float) -> float:
    """Return the stiffness (N/m) at which a rigid wall needs just the damping ``b`` of the device."""
    if not delay:
        return max(0.0, 2.0 * (b - abs(B)) / T)
    w = conditions.frequencies(T)
    rate = -np.expm1(-1j * w * T) / T
    low, high = 0.0, 2.0 * (b + abs(B)) / T
    for _ in range(50):
        middle = 0.5 * (low + high)
        if conditions.damping_needed(middle + B * rate, w, T, delay).max() < b:
            low = middle
        else:
            high = middle
    return low


def _least_needed(T: float, delay: float) -> float:
    """Return the damping that a coupler of 1 N/m needs with its own damping at its best, N s/m."""
    w = conditions.frequencies(T, _COARSE)

    def needed(ratio: float) -> float:
        return float(conditions.coupler_damping_required(1.0, T * np.exp(ratio), w, T, delay).max())

    found = minimize_scalar(needed, bounds=(np.log(0.02), np.log(5.0)), method="bounded", options={"xatol": 0.02})
    return float(found.fun)
