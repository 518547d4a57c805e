"""Data of a tick: numbers, counts and arrays that Python and the compiled functions share."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.array_structs import Bundle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# ``Tick.numbers``
ENGAGEMENT: Final = 0  # engagement, 0 to 1
ENGAGEMENT_TARGET: Final = 1
ENGAGEMENT_STEP: Final = 2  # change of the engagement in a tick
SPEED: Final = 3  # model time over wall-clock time
FORCE_SCALE: Final = 4
FORCE_LIMIT: Final = 5  # norm of the force of each device, N
SLEW_LIMIT: Final = 6  # its change in a tick, N
VELOCITY_LIMIT: Final = 7  # norm of the velocity of each device, m/s
TORQUE_LIMIT: Final = 8  # as the three above, of the axes that turn: N m, N m, rad/s
TORQUE_SLEW_LIMIT: Final = 9
ANGULAR_VELOCITY_LIMIT: Final = 10
PERIOD: Final = 11  # of the tick, s of the wall clock
EXCESS_ENERGY: Final = 12  # the most that the device was given too much by any tick while it was held, J
DISSIPATED: Final = 13  # by damping, J
DELAY: Final = 14  # of the device, ticks, up to ``LATEST``
RELEASE_EXCESS_ENERGY: Final = 15  # the same beyond that, while the grip opened, J
FORCE_REQUESTED: Final = 17  # norm of the force wanted when the last occasion of saturation began, N
TORQUE_REQUESTED: Final = 18  # likewise, N m
SAMPLE_TIME: Final = 19  # of the sample that was read, by the device's clock, s
HAND_FORCE_LIMIT: Final = 21  # norm of the force that each device measures, N
HAND_FORCE_RATE: Final = 22  # N/s
HAND_TORQUE_LIMIT: Final = 23  # as the two above, of rotational axes: N m, N m/s
HAND_TORQUE_RATE: Final = 24
SAMPLE_INTERVAL: Final = 25  # median time between samples that were taken, s, at least a period
PROGRESS: Final = 28  # s of the wall clock that the model's advance is worth
NUMBER_COUNT: Final = 29

# ``Tick.counts``
STEPS: Final = 0  # steps of the grid since it began
SUBSTEPS: Final = 1
KERNEL: Final = 2  # address of the kernel of the ports
ANCHOR: Final = 3  # 1: the device is to be put at the port
FAULT: Final = 4
ADVANCING: Final = 5  # 1: the model moves in this tick
INCOMPLETE: Final = 6  # 1: the tick before did not reach its end
SATURATED_TICKS: Final = 7  # ticks in which the force was limited
INPUTS_SET: Final = 8  # 1: the inputs at the end of the tick stand in ``next`` already
STATUS: Final = 9  # how the tick ended, a status of the outcomes
ABSOLUTE_OFFSET: Final = 10  # 1: the device's zero lies where the mapping says, not where hold was taken
SCHEDULED: Final = 11  # 1: inputs that no device gives follow the model's schedule
SEGMENT: Final = 12  # of the schedule
PHASE: Final = 13
TICKS: Final = 14
TRANSITIONS: Final = 15  # since the run began
SEQUENCE: Final = 16  # of the sample that was read
LAST_SEQUENCE: Final = 17  # of the sample that was examined last
STALE_TICKS: Final = 18  # ticks without a new sample that could be taken
STALL_TICKS: Final = 19
BUTTONS: Final = 20
DEAD_MAN: Final = 21  # mask of the button that must be pressed, 0 for none
CLUTCH: Final = 22
ENGAGED: Final = 23
PENDING_COMMANDS: Final = 24  # commands that wait until the grip is open
STEPS_LEFT: Final = 25  # ticks to advance while paused
UNTIL_TRANSITION: Final = 26  # 1: Python wants to know of transitions
ATTENTION: Final = 27  # 1: an event that Python has to handle
WALL: Final = 28  # ns since the loop began
EXECUTION_TIME: Final = 30  # ns of the tick before
CPU_TIME: Final = 31  # ns of the thread's time, likewise
WATCHDOG_BEATS: Final = 32  # heartbeats of the watchdog process at the last check
WATCHDOG_TIMEOUT: Final = 34  # ns, 0: nobody guards
NEW_TRANSITIONS: Final = 35  # transitions in this tick
PASSIVITY: Final = 36  # whether the energy at the port is watched
OUTLIERS: Final = 37  # samples in succession that may be rejected
REJECTED: Final = 38  # samples rejected in succession
REJECTED_TOTAL: Final = 39
SAMPLE_ACCEPTED: Final = 40  # 1: a sample has been taken
RELEASED: Final = 43  # 1: no force until the grip closes again
RELEASES: Final = 44  # how often the device was released
RELEASE_REASON: Final = 45  # of the last one
RELEASE_TIME: Final = (
    46  # ns without a tick, or a heartbeat of the watchdog process, until the device is released; 0: never
)
RELEASE_TICKS: Final = 47  # ticks without a new sample likewise
OWNER_BEATS: Final = 48  # heartbeats of the owner at the last check
OWNER_TIMEOUT: Final = 50  # ns, 0: nobody has to give one
OWNER_SILENT: Final = 51
ZERO_FORCE_PACKETS: Final = 52  # how often the guard had shown a force of zero when last looked at
MAY_JUMP: Final = 53  # 1: positions may jump, as nobody feels what follows
FADED_TICKS: Final = 54  # ticks in which the force had faded because no sample came
SATURATIONS: Final = 56  # occasions since the run began
LAGGING_TICKS: Final = 57  # ticks that ended before their model time was reached
BEHIND: Final = 58  # ticks by which the model is behind the clock
PERIODS: Final = 59  # periods by which the model moves in this tick: 1 unless it catches up
ADMITTANCE: Final = 60  # 1: the device measures forces and follows velocities
PACED: Final = 61  # 1: ticks keep to the wall clock, and so do ramps and timeouts
LAG_LIMIT: Final = 62  # ns by which the model may be behind the clock, 0: any
SLOW_DEVICE: Final = 64  # 1: it samples more slowly than the loop ticks
COUNT_COUNT: Final = 66
APPLIED: Final = -2  # ``Tick.row``: the force of the hand is an input

# what a live tick returns
OK: Final = 0
ATTENTION_NEEDED: Final = 1  # an event that Python has to handle
SUPPLY_NEEDED: Final = 2  # the tick cannot go on without a mode, a chart or room; it is to be finished

# ``Tick.places``: addresses of structures
TABLES: Final = 0  # this and the next six are the handle of the run
INPUTS: Final = 1
METHOD: Final = 2
OPTIONS: Final = 3
STATE: Final = 4
WORK: Final = 5
BUFFERS: Final = 6
SCHEDULE: Final = 7
RING: Final = 8  # 0: nobody looks
CHECKPOINTS: Final = 9
PLACE_COUNT: Final = 10

# watching the energy at the port, ``Tick.counts[PASSIVITY]``
OFF: Final = 0
OBSERVE: Final = 1
CONTROL: Final = 2

OCCASION: Final = 1.0  # s without saturation, after which another one is another occasion

LATEST: Final = 8  # ticks that a force may take to be shown, as far as that is accounted for
CAUGHT_UP_MOST: Final = 16  # periods that a tick adds to its own, at most, where the model is behind the clock

# faults, ``Tick.counts[FAULT]``
NONE: Final = 0
NON_FINITE: Final = 1
VELOCITY_EXCEEDED: Final = 2
OUT_OF_WORKSPACE: Final = 3
DRIVER_EXCEPTION: Final = 4
STALLED: Final = 5
WATCHDOG_LOST: Final = 6
OVERRUN: Final = 7
JUMPED: Final = 8
LAGGED: Final = 9
HAND_FORCE_EXCEEDED: Final = 10
HAND_FORCE_JUMPED: Final = 11
OUTRUN: Final = 12

# why a device was released, ``Tick.counts[RELEASE_REASON]``
NO_SAMPLE: Final = 1
TICK_DELAYED: Final = 2  # no tick for too long
WATCHDOG_SILENT: Final = 3
LOOP_ABSENT: Final = 4  # something took long, or the loop came back from it

# phases, ``Tick.counts[PHASE]``
RUNNING: Final = 0
PAUSED: Final = 1
FAULTY: Final = 2  # until it is cleared
FAILED: Final = 3  # the model cannot go on: reset
STOPPED: Final = 4  # a transition marked stop: reset


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
