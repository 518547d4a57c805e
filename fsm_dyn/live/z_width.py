"""Conditions of passivity of a sampled loop, and its Z-width (docs/theory.md, "Passivity")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.driver_protocol import DeviceDynamics

# -- Conditions of passivity of a sampled loop with zero-order hold ------------------------------------------
#
# Conditions of passivity of a sampled loop with zero-order hold, as formulae (docs/theory.md, "Passivity").
#
# Everything is along one axis of the device, or along several as matrices, in units of the device: N, m, s. ``b`` is
# the viscous damping of the device alone, ``T`` the period of the loop, ``K`` and ``B`` stiffness and damping felt,
# the rate of the position being its backward difference. The only assumption on the hand is passivity.

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_TURNS: Final = np.concatenate([-np.geomspace(1e-6, np.pi, 40), [0.0], np.geomspace(1e-6, np.pi, 40)])  # rad
_THIRDS: Final = 25
_ALIASES: Final = 200  # bands on either side: their weight falls with the second power
_GRID: Final = 160


def frequencies(period: float, count: int = _GRID) -> Floats:
    """Return frequencies (rad/s) from near zero to half the rate at which to look, shape (count,)."""
    nyquist = np.pi / period
    low = np.geomspace(1e-4, 1e-2, count // 4, endpoint=False)
    return np.concatenate([low, np.linspace(1e-2, 1.0, count - len(low))]) * nyquist


def wall_damping_required(stiffness: float, damping: float, period: float) -> float:
    """Return the damping of the device required by a sampled wall, ``K T / 2 + |B|`` (N s/m).

    Colgate & Brown, "Factors affecting the Z-width of a haptic display", ICRA 1994.
    """
    return 0.5 * stiffness * period + abs(damping)


def stable_stiffness(device: float, damping: float, period: float, delay: float) -> float:
    """Return the largest stiffness of a stable wall without a hand, ``(b + B) / (T / 2 + t_d)`` (N/m).

    Stability is less than passivity: a hand on the device may still make it buzz.  Gil, Avello, Rubio & Florez,
    "Stability analysis of a 1 DOF haptic interface using the Routh-Hurwitz criterion", IEEE TCST 2004; Hulin, Preusche
    & Hirzinger, "Stability boundary for haptic rendering", IROS 2006.  For small delays and dampings.
    """
    return (device + damping) / (0.5 * period + delay)


def friction_needed(stiffness: float, resolution: float) -> float:
    """Return the dry friction for passivity of a rounded position, ``K Δ / 2`` (N).

    Abbott & Okamura, "Effects of position quantization and sampling rate on virtual-wall passivity", IEEE Transactions
    on Robotics 21(5), 2005.
    """
    return 0.5 * stiffness * resolution


def damping_needed(response: ArrayLike, w: ArrayLike, period: float, delay: float = 0.0) -> Floats:
    """Return the least damping of the device for a passive loop, at each frequency (N s/m).

    Parameters
    ----------
    response : complex array, shape (k,) or (k, n, n)
        ``H(exp(j w T))``: from the sampled positions of the device (m) to the resisting forces (N).
    w : array, shape (k,)
        Frequencies, above 0 and up to pi / T, rad/s.
    period, delay : float
        Of the loop; additional, from sampling to exerting the force, s.

    Returns
    -------
    ndarray, shape (k,)
        The loop is passive with every passive hand if and only if the damping is above all of them.  Without a delay,
        or with one of whole periods, this is Colgate & Schenkel's condition (Journal of Robotic Systems 14(1), 1997),
        ``(T / 2) / (1 - cos w T) Re{(1 - exp(-j w T)) H}``.
    """
    w = np.asarray(w, dtype=np.float64)
    H = np.asarray(response, dtype=np.complex128)
    H = H.reshape(len(w), 1, 1) if H.ndim == 1 else H
    factor, folded, most, rest = _bands(w, period, delay)
    c = factor[:, None, None] * H
    real = c * folded[:, None, None]
    real = 0.5 * (real + real.conj().swapaxes(1, 2))
    spread = (most * rest * (period - rest))[:, None, None] * (c @ c.conj().swapaxes(1, 2))
    n = H.shape[1]
    if n == 1:
        r = real[:, 0, 0].real
        found: Floats = r + np.sqrt(r**2 + spread[:, 0, 0].real)
        return found
    # the largest b of b^2 v = 2 b real v + spread v
    companion = np.zeros((len(w), 2 * n, 2 * n), dtype=np.complex128)
    companion[:, :n, n:] = np.eye(n)
    companion[:, n:, :n], companion[:, n:, n:] = spread, 2.0 * real
    largest: Floats = np.linalg.eigvals(companion).real.max(axis=1)
    return largest


def coupler_damping_required(
    stiffness: float,
    damping: float,
    w: ArrayLike,
    period: float,
    delay: float = 0.0,
    rate: ArrayLike | None = None,
    *,
    aliased: bool = True,
) -> Floats:
    """Return the least damping of the device for a coupler passive with any model, at each frequency (N s/m).

    Parameters
    ----------
    rate : complex array, shape (k,), optional
        The reported velocity over the position, by default the backward difference.
    aliased : bool
        Whether all aliased bands count.  The coupler then shows ``H = (K + B (1 - 1/z) / T) sum s_m Y_m``, with
        ``s_m`` the shares of the bands in a position linear from sample to sample (they add up to one), and ``Y_m = Z
        / (Z_c + Z)`` at the band's frequency anywhere in a disc through 0 and 1 with the radius ``1 / (2 cos arg
        Z_c)``. All such ``H`` fill a disc; the damping is the largest of :func:`damping_needed` on its rim.  Without
        them it is Llewellyn's condition of absolute stability for the two-port between hand and model, ``2 Re h11 Re
        h22 >= |h12 h21| + Re(h12 h21)`` with ``Re h11, Re h22 >= 0`` (Adams & Hannaford, "Stable haptic interaction
        with virtual environments", IEEE Transactions on Robotics and Automation 15(3), 1999), solved for the damping,
        which enters ``Re h11`` alone: ``h11 = m s + b`` is the device, ``h12`` hold and delay, ``h22 = 1 / (B + K /
        s)`` the coupler, which is integrated with the model, and ``h21`` the interpolation of the device's positions
        from sample to sample.

    Returns
    -------
    ndarray, shape (k,)
    """
    w = np.asarray(w, dtype=np.float64)
    if not aliased:
        h12, h21, yields = _two_port(stiffness, damping, w, period, delay, rate)
        product = h12 * h21
        with np.errstate(divide="ignore"):
            found: Floats = (np.abs(product) + product.real) / (2.0 * yields)
        return found
    if damping <= 0.0:
        return np.full(len(w), np.inf)
    bands = w[:, None] + 2.0 * np.pi / period * np.arange(-_ALIASES, _ALIASES + 1)
    shares = np.sinc(bands * period / (2.0 * np.pi)) ** 2
    shares /= shares.sum(axis=1, keepdims=True)
    slope = stiffness / (damping * bands)
    velocity = (1.0 - np.exp(-1j * w * period)) / period if rate is None else np.asarray(rate)
    size = (stiffness + damping * velocity) / 2.0
    centre = size * (1.0 + 1j * (shares * slope).sum(axis=1))
    radius = np.abs(size) * (shares * np.sqrt(1.0 + slope**2)).sum(axis=1)
    return _most_on_rim(centre, radius, w, period, delay)


def _two_port(
    K: float, B: float, w: Floats, period: float, delay: float, rate: ArrayLike | None
) -> tuple[Complexes, Complexes, Floats]:
    """Return ``h12``, ``h21`` and ``Re h22``, each of shape (k,)."""
    back = 1.0 - np.exp(-1j * w * period)
    hold = back / (1j * w * period) * np.exp(-1j * w * delay)
    runs = np.sinc(w * period / (2.0 * np.pi)) ** 2
    leads = runs * (K + B * (back / period if rate is None else np.asarray(rate))) / (K + 1j * w * B)
    return hold, -leads, B * w**2 / (K**2 + (B * w) ** 2)


def _most_on_rim(centre: Complexes, radius: Floats, w: Floats, period: float, delay: float) -> Floats:
    """Return the largest damping needed by any response on a circle, at each frequency.

    The circle may be far larger than its relevant part: it is sampled more densely towards the worst point of a delay
    of whole periods, and then between the two neighbours of the best sample.
    """
    turn = -np.angle(_direction(w, period, delay))

    def needed(angle: Floats) -> Floats:
        return damping_needed(centre + radius * np.exp(1j * (turn + angle)), w, period, delay)

    found = np.array([needed(np.full(len(w), angle)) for angle in _TURNS])
    best = np.clip(found.argmax(axis=0), 1, len(_TURNS) - 2)
    low, high = _TURNS[best - 1], _TURNS[best + 1]
    for _ in range(_THIRDS):
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        rises = needed(first) < needed(second)
        low, high = np.where(rises, first, low), np.where(rises, high, second)
    most: Floats = np.maximum(found.max(axis=0), needed(0.5 * (low + high)))
    return most


def _direction(w: Floats, period: float, delay: float) -> Complexes:
    """Return ``c s``, shape (k,): a loop with a delay of whole periods needs ``2 Re(c s H)``."""
    c, folded, _, _ = _bands(w, period, delay)
    return c * folded


def _bands(w: Floats, period: float, delay: float) -> tuple[Complexes, Complexes, Floats, float]:
    """Return the effects of sampling, hold and delay: factor, folded bands, their most, part of a period."""
    whole = np.floor(delay / period + 1e-9)
    rest = max(delay - whole * period, 0.0)
    # total gain of the bands folded into this one, and the largest rotation by each
    most = 0.25 * period**2 / np.sin(0.5 * w * period) ** 2
    folded = most + period * rest / np.expm1(1j * w * period)
    c = -np.expm1(-1j * w * period) * np.exp(-1j * w * period * whole) / (2.0 * period)
    return c, folded, most, rest


# -- Z-width (Colgate & Brown 1994): the largest passive stiffness over the rate of the loop -----------------

RATES: Final = tuple(np.geomspace(250.0, 40e3, 14))  # Hz; as compared by Choi & Tan, IROS 2004
_COARSE: Final = 60  # number of frequencies


@dataclass(frozen=True)
class ZWidth:
    """Largest stiffnesses at some rates, at the device.

    Attributes
    ----------
    rate : ndarray, shape (k,)
        Hz.
    wall : ndarray, shape (k,)
        For a rigid model, N/m, with the given damping of the coupler or none.
    coupler : ndarray, shape (k,)
        For any model, N/m, with the best damping of the coupler for each rate.
    alone : ndarray, shape (k,)
        For a wall stable without a hand, N/m.
    quantised : float or None
        Limit by dry friction and resolution at any rate, N/m; None if one is unknown.
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
        np.array([stable_stiffness(b, damping, T, delay) for T in periods]),
        quantised,
    )


def _stiffest_wall(b: float, B: float, T: float, delay: float) -> float:
    """Return the stiffness (N/m) at which a rigid wall needs just the damping ``b`` of the device."""
    if not delay:
        return max(0.0, 2.0 * (b - abs(B)) / T)
    w = frequencies(T)
    rate = -np.expm1(-1j * w * T) / T
    low, high = 0.0, 2.0 * (b + abs(B)) / T
    for _ in range(50):
        middle = 0.5 * (low + high)
        if damping_needed(middle + B * rate, w, T, delay).max() < b:
            low = middle
        else:
            high = middle
    return low


def _least_needed(T: float, delay: float) -> float:
    """Return the damping needed by a coupler of 1 N/m with its best own damping, N s/m."""
    w = frequencies(T, _COARSE)

    def needed(ratio: float) -> float:
        return float(coupler_damping_required(1.0, T * np.exp(ratio), w, T, delay).max())

    found = minimize_scalar(needed, bounds=(np.log(0.02), np.log(5.0)), method="bounded", options={"xatol": 0.02})
    return float(found.fun)
