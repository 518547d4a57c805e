"""What the loop gives to the device beyond what it is entitled to, and the damping that takes it back.

Along every axis of the device an account is kept of three things (docs/theory.md, "Passivity at run time"): the energy
given to the device, which is exact, since the force is held, where no delay is in it; the energy that the model was
given where it is coupled; and what coupler and device are known to have turned into heat.  Neither a motor in the model
nor an impact adds to the sum, only sampling, holding and limiting do.  Nothing here makes an array.
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.live.compiled_tick import (
    ADVANCING,
    CONTROL,
    DELAY,
    EXCESS,
    FORCE_SCALE,
    GRIP,
    GRIP_TARGET,
    LATEST,
    LEAK,
    LEAK_OPENING,
    PASSIVITY,
    PERIOD,
    SPEED,
    TAKEN_BACK,
    UNFINISHED,
    Tick,
)
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.state import State

MEMORY: Final = 0.1  # s, for which what was lost counts against what is gained later, and a gain against the loop


@lean
def watch_energy(tick: Tick, state: State) -> None:
    """Bring the accounts up to the tick that has just been made, and work out what is to be taken back."""
    held = tick.numbers[GRIP] > 0.0 and tick.counts[ADVANCING] != 0
    _device_side(tick)
    if tick.counts[UNFINISHED] == 0:
        _model_side(tick, state)
    excess = 0.0
    for i in range(tick.balance.shape[0]):
        if not held:
            tick.balance[i] = 0.0
        elif tick.balance[i] < 0.0:
            tick.balance[i] *= max(0.0, 1.0 - tick.numbers[PERIOD] / MEMORY)
        excess += max(0.0, tick.balance[i])
        # who gave too much lately is to calm down, not only to stay as he is: what the device takes is its own then
        tick.distrust[i] = max(0.0, tick.distrust[i] - tick.numbers[PERIOD])
        if tick.balance[i] > 0.0 and tick.counts[PASSIVITY] == CONTROL:
            tick.distrust[i] = MEMORY
    if held and tick.numbers[GRIP_TARGET] == 0.0:
        tick.numbers[LEAK_OPENING] = max(tick.numbers[LEAK_OPENING], excess - tick.numbers[EXCESS])
    else:
        tick.numbers[LEAK] = max(tick.numbers[LEAK], excess)
        tick.numbers[EXCESS] = excess
    _take_back(tick, state, held and tick.counts[PASSIVITY] == CONTROL)


@lean
def _device_side(tick: Tick) -> None:
    """Add what was given to the device since the tick before, less what its own damping is known to take."""
    period = tick.numbers[PERIOD]
    for i in range(tick.balance.shape[0]):
        way = tick.device[i] - tick.before[i]
        tick.before[i] = tick.device[i]
        # the least that b v^2 can come to over a way in a time
        heat = tick.device_damping[i] * way * way / period if tick.distrust[i] <= 0.0 else 0.0
        tick.balance[i] += _acting(tick, i) * way - heat
        tick.numbers[TAKEN_BACK] -= tick.back[i] * way


@lean
def _acting(tick: Tick, device: int) -> float:
    """Return the force that acted on an axis of the device between its last two samples, as late as it is known to."""
    first, whole = device * (LATEST + 2), int(tick.numbers[DELAY])
    for k in range(LATEST + 1, 0, -1):
        tick.shown[first + k] = tick.shown[first + k - 1]
    tick.shown[first] = tick.force[device]
    part = tick.numbers[DELAY] - whole
    return float((1.0 - part) * tick.shown[first + whole] + part * tick.shown[first + whole + 1])


@lean
def _model_side(tick: Tick, state: State) -> None:
    """Add what the model was given in a tick by the coupled axes, less what the dampers of the couplers took."""
    n_a = tick.source.shape[0]
    h = tick.numbers[PERIOD] * tick.numbers[SPEED]
    for a in range(n_a):
        force, place, rate, port = tick.ports[a], tick.now[tick.slot[a]], 0.0, tick.ports[2 * n_a + a]
        way = place - tick.coupled[n_a + a]
        energy = 0.5 * (tick.coupled[a] + force) * way
        if tick.row[a] < 0:
            # the damper feels the rates sampled, but opens at those of the places: both change evenly
            rate = tick.now[tick.slot[n_a + a]] - port
            rate_before, opens_before = tick.coupled[2 * n_a + a], way / h - tick.coupled[3 * n_a + a]
            opens = way / h - port
            mean = 2.0 * (rate_before * opens_before + rate * opens) + rate_before * opens + rate * opens_before
            energy -= tick.now[tick.slot[2 * n_a + a]] * state.c[tick.law[n_a + a]] * mean * h / 6.0
        tick.coupled[a], tick.coupled[n_a + a] = force, place
        tick.coupled[2 * n_a + a], tick.coupled[3 * n_a + a] = rate, port
        if tick.source[a] >= 0:
            tick.balance[tick.source[a]] += tick.numbers[FORCE_SCALE] * energy


@lean
def _take_back(tick: Tick, state: State, wanted: bool) -> None:
    """Work out the forces that are to take back what was given too much, against the motion of the device."""
    n_d = tick.balance.shape[0]
    for i in range(n_d):
        tick.back[i] = 0.0
        velocity = tick.device[n_d + i]
        if not wanted or tick.balance[i] <= 0.0 or velocity == 0.0:
            continue
        # within a tick at the present velocity, but with no more damping than twice what a rigid wall could ask for
        damping = tick.balance[i] / (tick.numbers[PERIOD] * velocity * velocity)
        tick.back[i] = -min(damping, _most_damping(tick, state, i)) * velocity


@lean
def _most_damping(tick: Tick, state: State, device: int) -> float:
    """Return ``K (T + 2 t_d) + 2 |B|`` of what an axis of the device feels; zero where it prescribes a coordinate."""
    n_a, found = tick.source.shape[0], 0.0
    late = tick.numbers[PERIOD] * (1.0 + 2.0 * tick.numbers[DELAY])
    for a in range(n_a):
        if tick.source[a] == device and tick.row[a] < 0:
            stiffness, damping = state.c[tick.law[a]], state.c[tick.law[n_a + a]]
            felt = tick.numbers[FORCE_SCALE] * tick.scale[a] * tick.scale[a]
            found += felt * (abs(stiffness) * late + 2.0 * abs(damping))
    return found
