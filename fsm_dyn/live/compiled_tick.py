"""The compiled parts of a tick: from the device to the model's inputs, from the coupler to the device, to the ring.

Between the first two stands :func:`fsm_dyn.simulation.stepper.advance`.  Nothing here makes an array.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import entry, lean
from fsm_dyn.simulation.evaluation import evaluate_here
from fsm_dyn.simulation.inputs import DRIVE, write_inputs
from fsm_dyn.simulation.kernels import call_kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# ``Tick.numbers``
GRIP: Final = 0  # how firmly the port is held, 0 to 1
GRIP_TARGET: Final = 1
GRIP_STEP: Final = 2  # change of the grip in a tick
SPEED: Final = 3  # model time over wall-clock time
FORCE_SCALE: Final = 4
FORCE_LIMIT: Final = 5  # norm of the force shown, N
SLEW_LIMIT: Final = 6  # change of the force in a tick, N
VELOCITY_LIMIT: Final = 7  # norm of the device's velocity, m/s
NUMBER_COUNT: Final = 8

# ``Tick.counts``
STEPS: Final = 0  # steps of the grid since it began
SUBSTEPS: Final = 1
KERNEL: Final = 2  # address of the kernel of the ports
ANCHOR: Final = 3  # 1: the device is to be put at the port
FAULT: Final = 4
ADVANCING: Final = 5  # 1: the model moves in this tick
UNFINISHED: Final = 6  # 1: the tick before did not reach its end
LIMITED: Final = 7  # ticks in which the force was limited
GIVEN: Final = 8  # 1: the inputs at the end of the tick stand in ``next`` already
COUNT_COUNT: Final = 9

# faults, ``Tick.counts[FAULT]``
NONE: Final = 0
NOT_A_NUMBER: Final = 1
TOO_FAST: Final = 2
OUT_OF_WORKSPACE: Final = 3
DRIVER_RAISED: Final = 4
STALLED: Final = 5
GUARD_LOST: Final = 6
OVERRUN: Final = 7


class Tick(NamedTuple):
    """What a tick works on.

    Attributes
    ----------
    numbers, counts
        See the index constants.
    now, next, targets : float64 arrays, shape (n_w,)
        Inputs at the beginning and end of the tick, and the values wanted of those that no device gives.
    device : float64 array, shape (2 n_d,)
        Position and velocity read from the device.
    source : int64 array, shape (n_a,)
        The device axis behind each axis of all ports, -1 for none.
    slot : int64 array, shape (3 n_a,)
        The inputs that are position, rate and grip of each axis.
    scale, offset : float64 arrays, shape (n_a,)
        Model position = offset + scale * device position.
    ports : float64 array, shape (3 n_a,)
        Force of the coupler on the model, position and rate of the port, for all axes.
    force, wanted : float64 arrays, shape (n_d,)
        What the device shows, and what it would show without limits.
    low, high : float64 arrays, shape (n_d,)
        The device's workspace.
    """

    numbers: Floats
    counts: Integers
    now: Floats
    next: Floats
    targets: Floats
    device: Floats
    source: Integers
    slot: Integers
    scale: Floats
    offset: Floats
    ports: Floats
    force: Floats
    wanted: Floats
    low: Floats
    high: Floats


TICK: Final = Bundle(Tick)


@lean
def _check_device(tick: Tick) -> None:
    """Find the faults that position and velocity of the device show."""
    n_d = tick.force.shape[0]
    square = 0.0
    for i in range(n_d):
        position, velocity = tick.device[i], tick.device[n_d + i]
        if not (np.isfinite(position) and np.isfinite(velocity)):
            tick.counts[FAULT] = NOT_A_NUMBER
            return
        square += velocity * velocity
        if position < tick.low[i] or position > tick.high[i]:
            tick.counts[FAULT] = OUT_OF_WORKSPACE
            return
    if square > tick.numbers[VELOCITY_LIMIT] * tick.numbers[VELOCITY_LIMIT]:
        tick.counts[FAULT] = TOO_FAST


@lean
def _next_inputs(tick: Tick) -> None:
    """Write the inputs at the end of the tick; a device that is to be let go stays where it was."""
    n_a, n_d = tick.source.shape[0], tick.force.shape[0]
    # at an anchor the inputs move to the port first: the grip begins to close with the tick after
    step = tick.numbers[GRIP_STEP] if tick.counts[ANCHOR] == 0 else 0.0
    grip, target = tick.numbers[GRIP], tick.numbers[GRIP_TARGET]
    if tick.counts[FAULT] != NONE:
        grip, target = 0.0, 0.0
    grip = min(grip + step, target) if grip < target else max(grip - step, target)
    tick.numbers[GRIP] = grip
    for i in range(tick.next.shape[0]):
        tick.next[i] = tick.targets[i]
    for a in range(n_a):
        source, at, rate = tick.source[a], tick.slot[a], tick.slot[n_a + a]
        tick.next[tick.slot[2 * n_a + a]] = grip if source >= 0 else 0.0
        if source < 0 or target == 0.0:
            tick.next[at] = tick.now[at]
            tick.next[rate] = 0.0
            continue
        if tick.counts[ANCHOR] != 0:
            tick.offset[a] = tick.ports[n_a + a] - tick.scale[a] * tick.device[source]
        tick.next[at] = tick.offset[a] + tick.scale[a] * tick.device[source]
        tick.next[rate] = tick.scale[a] * tick.device[n_d + source] / tick.numbers[SPEED]
    tick.counts[ANCHOR] = 0


_open_tables = st.TABLES.opener()
_open_drive = DRIVE.opener()
_open_options = st.OPTIONS.opener()
_open_state = st.STATE.opener()
_open_work = st.WORK.opener()
_open_tick = TICK.opener()


@entry
def begin_tick(tables_at: int, drive_at: int, options_at: int, state_at: int, work_at: int, tick_at: int) -> int:
    """Take in what the device gave and set the stepper its next goal.

    The arguments are the addresses of bundles.  Returns 1 if :func:`~fsm_dyn.simulation.stepper.advance` is to be
    called, 0 if the model rests in this tick, -1 if its state is not finite.
    """
    drive, options, state, tick = (
        _open_drive(drive_at),
        _open_options(options_at),
        _open_state(state_at),
        _open_tick(tick_at),
    )
    if tick.counts[ADVANCING] == 0:
        return 0
    if tick.counts[FAULT] == NONE:
        _check_device(tick)
    state.counters[st.ROWS] = 0
    state.counters[st.TRANSITIONS] = 0
    if tick.counts[UNFINISHED] != 0:
        return 1
    if tick.counts[GIVEN] == 0:
        _next_inputs(tick)
    begin = state.clock[st.TIME]
    tick.counts[STEPS] += tick.counts[SUBSTEPS]
    # as the grid of the stepper counts, so that both agree to the last bit
    end = state.clock[st.BEGIN] + tick.counts[STEPS] * options.numbers[st.FIXED_STEP]
    options.numbers[st.UNTIL] = end
    drive.start[0] = begin
    drive.origin[0] = begin
    for i in range(tick.next.shape[0]):
        drive.pieces[0, i, 0] = tick.now[i]
        drive.pieces[0, i, 1] = (tick.next[i] - tick.now[i]) / (end - begin)
    if state.counters[st.STARTED] == 0:
        return 1
    write_inputs(drive, begin, 0, state.x, state.c)
    if state.counters[st.PHASE] == st.STEPPING and not evaluate_here(
        _open_tables(tables_at), state, _open_work(work_at)
    ):
        return -1
    return 1


@entry
def end_tick(state_at: int, tick_at: int, shown: int) -> int:
    """Take over the inputs and work out the force that the device shows; returns the fault, 0 for none.

    The arguments are the addresses of bundles, and whether a force may be shown at all.
    """
    state, tick = _open_state(state_at), _open_tick(tick_at)
    n_a, n_d = tick.source.shape[0], tick.force.shape[0]
    if tick.counts[ADVANCING] != 0 and tick.counts[UNFINISHED] == 0:
        for i in range(tick.now.shape[0]):
            tick.now[i] = tick.next[i]
    call_kernel(tick.counts[KERNEL], state.clock[st.TIME], state.x, state.c, tick.ports)
    if shown == 0 or tick.counts[FAULT] != NONE:
        for i in range(n_d):
            tick.force[i] = 0.0
        return int(tick.counts[FAULT])
    square = 0.0
    for i in range(n_d):
        wanted = 0.0
        for a in range(n_a):
            if tick.source[a] == i:
                wanted -= tick.numbers[FORCE_SCALE] * tick.scale[a] * tick.ports[a]
        if not np.isfinite(wanted):
            tick.counts[FAULT] = NOT_A_NUMBER
        tick.wanted[i] = wanted
        square += wanted * wanted
    if tick.counts[FAULT] != NONE:
        for i in range(n_d):
            tick.force[i] = 0.0
        return int(tick.counts[FAULT])
    limited = _shorten(tick, square)
    if _follow(tick) or limited:
        tick.counts[LIMITED] += 1
    return NONE


@lean
def _shorten(tick: Tick, square: float) -> bool:
    """Bring the force wanted within the limit of its norm."""
    limit = tick.numbers[FORCE_LIMIT]
    if square <= limit * limit:
        return False
    n_d = tick.force.shape[0]
    factor = limit / np.sqrt(square)
    for i in range(n_d):
        tick.wanted[i] *= factor
    return True


@lean
def _follow(tick: Tick) -> bool:
    """Let the force go towards the one wanted, no faster than the slew limit."""
    n_d = tick.force.shape[0]
    square = 0.0
    for i in range(n_d):
        change = tick.wanted[i] - tick.force[i]
        square += change * change
    limit = tick.numbers[SLEW_LIMIT]
    factor = 1.0 if square <= limit * limit else limit / np.sqrt(square)
    for i in range(n_d):
        tick.force[i] += factor * (tick.wanted[i] - tick.force[i])
    return factor < 1.0
