"""From the device to the model's inputs: grip, anchor, and the filter of what must move smoothly.

Nothing here makes an array.
"""

from __future__ import annotations

from fsm_dyn.live.compiled_tick import (
    ABSOLUTE,
    ANCHOR,
    FAULT,
    GRIP,
    GRIP_STEP,
    GRIP_TARGET,
    NONE,
    SCHEDULED,
    SEGMENT,
    SPEED,
    Tick,
)
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.inputs import DriveArrays, next_breakpoint, write_inputs
from fsm_dyn.simulation.state import State


@lean
def _new_grip(tick: Tick) -> float:
    """Move the grip by a step towards its target; return the target."""
    # at an anchor the inputs move to the port first: the grip begins to close with the tick after
    step = tick.numbers[GRIP_STEP] if tick.counts[ANCHOR] == 0 else 0.0
    grip, target = tick.numbers[GRIP], tick.numbers[GRIP_TARGET]
    if tick.counts[FAULT] != NONE:
        grip, target = 0.0, 0.0
    tick.numbers[GRIP] = min(grip + step, target) if grip < target else max(grip - step, target)
    return float(target)


@lean
def next_inputs(tick: Tick, h: float) -> None:
    """Write the inputs at the end of a tick of length ``h`` (s).

    The place of a coupler follows the device for as long as the grip is not open: while it opens, the spring goes slack
    with the way that the device goes, and the force only falls.  After a fault, or once the device was released, it
    stays: the grip is gone at the end of the tick, whatever the device says.
    """
    n_a, n_d = tick.source.shape[0], tick.force.shape[0]
    grips = tick.numbers[GRIP] > 0.0
    target = _new_grip(tick)
    follows = target > 0.0 or (grips and tick.counts[FAULT] == NONE)
    for a in range(n_a):
        source, at, rate, grip = tick.source[a], tick.slot[a], tick.slot[n_a + a], tick.slot[2 * n_a + a]
        place, velocity = tick.now[at], 0.0
        if source >= 0 and follows:
            if tick.counts[ANCHOR] != 0 and tick.counts[ABSOLUTE] == 0:
                begin = tick.now[at] if tick.row[a] >= 0 else tick.ports[n_a + a]
                tick.offset[a] = begin - tick.scale[a] * tick.device[source]
            place = tick.offset[a] + tick.scale[a] * tick.device[source]
            velocity = tick.scale[a] * tick.device[n_d + source] / tick.numbers[SPEED]
        tick.targets[at] = place
        if tick.row[a] >= 0:
            tick.target_rate[rate] = velocity
        else:
            tick.targets[rate] = velocity
            tick.targets[grip] = tick.numbers[GRIP] if source >= 0 else 0.0
    tick.counts[ANCHOR] = 0
    for i in range(tick.next.shape[0]):
        tick.next[i] = tick.targets[i]
    _smooth_inputs(tick, h)


@lean
def _smooth_inputs(tick: Tick, h: float) -> None:
    """Lead the smooth inputs to their targets.

    A filter of the third order whose third rate is constant over the tick, so that value, rate and second rate are
    continuous: ``w''' = g^3 (target - w) + 3 g^2 (target' - w') - 3 g w''`` with the right side at the end of the
    tick.  At a constant rate of the target nothing lags.  Stable for ``g h`` up to 3 and more
    (docs/theory.md, "Kinematic ports").
    """
    n = tick.smooth.shape[0]
    for k in range(n):
        i, g = tick.smooth[k], tick.bandwidth[k]
        value, rate, second = tick.now[i], tick.motion[k] * h, tick.motion[n + k] * h * h
        ahead = tick.targets[i] - value - rate - 0.5 * second
        faster = tick.target_rate[k] * h - rate - second
        third = (g * g * g * ahead + 3.0 * g * g * faster - 3.0 * g * second) / (1.0 + g * (3.0 + g * (1.5 + g / 6.0)))
        tick.next[i] = value + rate + 0.5 * second + third / 6.0
        tick.motion_next[k] = (rate + second + 0.5 * third) / h
        tick.motion_next[n + k] = (second + third) / (h * h)


@lean
def write_pieces(tick: Tick, drive: DriveArrays, begin: float, end: float) -> None:
    """Let the inputs run from where they are to where they are to be; as :func:`fsm_dyn.simulation.drive.sampled`."""
    h = end - begin
    drive.start[0] = begin
    drive.origin[0] = begin
    for i in range(tick.next.shape[0]):
        drive.pieces[0, i, 0] = tick.now[i]
        drive.pieces[0, i, 1] = (tick.next[i] - tick.now[i]) / h
        drive.pieces[0, i, 2] = 0.0
        drive.pieces[0, i, 3] = 0.0
    n = tick.smooth.shape[0]
    for k in range(n):
        i = tick.smooth[k]
        drive.pieces[0, i, 1] = tick.motion[k]
        drive.pieces[0, i, 2] = 0.5 * tick.motion[n + k]
        drive.pieces[0, i, 3] = (tick.motion_next[n + k] - tick.motion[n + k]) / (6.0 * h)


@lean
def follow_schedule(tick: Tick, schedule: DriveArrays, state: State, end: float) -> None:
    """Set the inputs that no device gives to their schedule at the end of the tick (s)."""
    if tick.counts[SCHEDULED] == 0:
        return
    n_w, at = tick.next.shape[0], schedule.counts[1]
    for i in range(at):
        tick.context[i] = state.c[i]
    while next_breakpoint(schedule, tick.counts[SEGMENT]) <= end:
        tick.counts[SEGMENT] = schedule.next_hard[tick.counts[SEGMENT]]
    write_inputs(schedule, end, tick.counts[SEGMENT], state.x, tick.context)
    for i in range(n_w):
        tick.targets[i] = tick.context[at + i]
    for k in range(tick.smooth.shape[0]):
        tick.target_rate[k] = tick.context[at + n_w + tick.smooth[k]]


@lean
def is_open(tick: Tick) -> bool:
    """Whether the grip is open, at the device and in the model's inputs."""
    n_a = tick.source.shape[0]
    opened = tick.numbers[GRIP] == 0.0
    for a in range(n_a):
        grip = tick.slot[2 * n_a + a]
        opened = opened and (grip < 0 or tick.now[grip] == 0.0)
    return bool(opened)


@lean
def take_over(tick: Tick) -> None:
    """Make the inputs at the end of the tick those at hand."""
    for i in range(tick.now.shape[0]):
        tick.now[i] = tick.next[i]
    for k in range(tick.motion.shape[0]):
        tick.motion[k] = tick.motion_next[k]
