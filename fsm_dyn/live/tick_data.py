"""Data of a tick: numbers, counts and arrays that Python and the compiled functions share."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tick(NamedTuple):
    """Data of a tick; n_a axes of ports, n_d of the device, n_w inputs, n_s of them smooth.

    Attributes
    ----------
    numbers, counts, places
        See the index constants.
    now, next, targets : float64 arrays, shape (n_w,)
        Inputs at the beginning and end of the tick, and the values wanted of those that no device gives.
    smooth : int64 array, shape (n_s,)
        Inputs whose rates enter the equations: they run as cubics, with continuous rate and second rate.
    motion, motion_next : float64 arrays, shape (2 n_s,)
        Rates and second rates of the smooth inputs at the beginning and the end of the tick.
    target_rate : float64 array, shape (n_s,)
        Rate that goes with the value wanted.
    bandwidth : float64 array, shape (n_s,)
        Of the filter of each, rad per tick.
    device : float64 array, shape (2 n_d,)
        Position and velocity read from the device; where they could not be, those taken last.
    taken : float64 array, shape (2 n_d,)
        Position and velocity of the sample taken last.
    source : int64 array, shape (n_a,)
        The device axis behind each axis of all ports, -1 for none.
    slot : int64 array, shape (3 n_a,)
        The inputs that are position, rate and grip of each axis; of an axis that the device prescribes, position
        only, and its place among the smooth ones instead of the rate, with -1 for the grip.
    row : int64 array, shape (n_a,)
        The constraint by which a device prescribes the axis, -1 where it has a coupler, ``APPLIED`` where the force of
        the hand is an input, the first of ``slot``.
    scale, offset : float64 arrays, shape (n_a,)
        Model position = offset + scale * device position.
    ports : float64 array, shape (3 n_a,)
        Force on the model, position and rate of the port, for all axes.
    force, wanted : float64 arrays, shape (n_d,)
        What the device shows, and what it would show without limits.
    low, high, fastest : float64 arrays, shape (n_d,)
        The device's workspace, and its largest velocity along each axis.
    turns : int64 array, shape (n_d,)
        1 for an axis in rad.
    part : int64 array, shape (n_d,)
        Number of the device that an axis belongs to, from 0 and ascending: norms are of one device each.
    before, balance, back, distrust : float64 arrays, shape (n_d,)
        Position of the device in the tick before; what it was given too much, J; the force that takes it back; for how
        long its own damping does not count, s.
    shown : float64 array, shape (n_d (LATEST + 2),)
        Forces of the last ticks, the latest first, for each axis.
    device_damping : float64 array, shape (n_d,)
        Known of the device, N s/m or N m s/rad.
    coupled : float64 array, shape (4 n_a,)
        Of the tick before: forces on the model, places of the device in the model, rates in the couplers, of the ports.
    left : float64 array, shape (n_a,)
        Position of the port at the end of the last complete tick, of the tick before where a force is applied.
    changes : float64 array, shape (n_d,)
        Of a sample since the one taken last, while it is examined.
    lag : float64 array, shape (n_d,)
        Displacement by which a device that follows lags behind its port, because of the limits.
    glide : float64 array, shape (2 n_a,)
        Rate of the port beyond the device's when the device was engaged, and what is left of it now: the end of the
        coupler glides along with the port, and comes to the device's velocity with the ramp.
    law : int64 array, shape (2 n_a,)
        Stiffnesses and dampings of the couplers in the context, -1 where there is none.
    full : float64 array
        Output of a mode's kernel, for the multipliers.
    context : float64 array, shape (n_c,)
        In which the schedule is evaluated.
    """

    numbers: Floats
    counts: Integers
    places: Integers
    now: Floats
    next: Floats
    targets: Floats
    smooth: Integers
    motion: Floats
    motion_next: Floats
    target_rate: Floats
    bandwidth: Floats
    device: Floats
    taken: Floats
    source: Integers
    slot: Integers
    row: Integers
    scale: Floats
    offset: Floats
    ports: Floats
    force: Floats
    wanted: Floats
    low: Floats
    high: Floats
    fastest: Floats
    turns: Integers
    part: Integers
    before: Floats
    balance: Floats
    back: Floats
    distrust: Floats
    shown: Floats
    device_damping: Floats
    coupled: Floats
    left: Floats
    changes: Floats
    lag: Floats
    glide: Floats
    law: Integers
    full: Floats
    context: Floats


TICK: Final = Bundle(Tick)
