"""From the model to the device: what the ports report, and the force within its limits.

Nothing here makes an array.
"""

from __future__ import annotations

import numpy as np

from fsm_dyn.live.compiled_tick import (
    FADED,
    FAULT,
    FORCE_LIMIT,
    FORCE_SCALE,
    FORCE_WANTED,
    GRIP,
    KERNEL,
    LIMITED,
    LOOK,
    MAY_JUMP,
    NONE,
    NOT_A_NUMBER,
    OCCASION,
    PERIOD,
    RELEASE_TICKS,
    RELEASED,
    SATURATED,
    SATURATIONS,
    SLEW_LIMIT,
    TORQUE_LIMIT,
    TORQUE_SLEW_LIMIT,
    TORQUE_WANTED,
    UNCHANGED,
    Tick,
)
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import guard_count
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.state import State
from fsm_dyn.simulation.tables import Tables


@lean
def report_ports(tables: Tables, state: State, tick: Tick) -> None:
    """Evaluate force, position and rate of all axes; the force of a prescribed one is the multiplier of its row."""
    call_kernel(tick.counts[KERNEL], state.clock[st.TIME], state.x, state.c, tick.ports)
    prescribed = False
    for a in range(tick.row.shape[0]):
        prescribed = prescribed or tick.row[a] >= 0
    if not prescribed:
        return
    mode = state.counters[st.MODE]
    call_kernel(tables.mode_full[mode], state.clock[st.TIME], state.x, state.c, tick.full)
    n = tables.sizes[tb.N_Q] + tables.sizes[tb.N_U]
    at = n + tables.sizes[tb.N_U] + 1 + 2 * guard_count(tables, mode)
    for a in range(tick.row.shape[0]):
        if tick.row[a] >= 0:
            tick.ports[a] = tick.numbers[GRIP] * tick.full[at + tick.row[a]]


@lean
def show(tick: Tick, shown: bool) -> None:
    """Work out the force that the device shows, zero where none may be."""
    shown = shown and tick.counts[RELEASED] == 0
    if shown and tick.counts[FAULT] == NONE:
        _want(tick)
        _fade(tick)
    if not shown or tick.counts[FAULT] != NONE:
        for i in range(tick.force.shape[0]):
            tick.force[i] = 0.0
        return
    force, torque = _shorten(tick, 0, tick.numbers[FORCE_LIMIT]), _shorten(tick, 1, tick.numbers[TORQUE_LIMIT])
    _note_saturation(tick, force, torque)
    limited = force > 0.0 or torque > 0.0
    limited = _follow(tick, 0, tick.numbers[SLEW_LIMIT]) or limited
    limited = _follow(tick, 1, tick.numbers[TORQUE_SLEW_LIMIT]) or limited
    if limited:
        tick.counts[LIMITED] += 1


@lean
def _want(tick: Tick) -> None:
    """Carry the forces of the ports over to the device, the same power on both sides but for the force scale.

    What takes energy back that the device was given too much comes on top.
    """
    for i in range(tick.force.shape[0]):
        wanted = 0.0
        for a in range(tick.source.shape[0]):
            if tick.source[a] == i:
                wanted -= tick.numbers[FORCE_SCALE] * tick.scale[a] * tick.ports[a]
        if tick.back[i] != 0.0:
            wanted += tick.back[i]
        if not np.isfinite(wanted):
            tick.counts[FAULT] = NOT_A_NUMBER
        tick.wanted[i] = wanted


@lean
def _fade(tick: Tick) -> None:
    """Let the force fade while no sample comes: it would push on, whatever becomes of the device.

    All of it for a sixth of the time after which the device is released, nothing after half of it.
    """
    most, missing = tick.counts[RELEASE_TICKS], tick.counts[UNCHANGED]
    if 6 * missing <= most:
        return
    part = max(0.0, 1.5 - 3.0 * missing / most) if most > 0 else 1.0
    tick.counts[FADED] += most > 0
    for i in range(tick.wanted.shape[0]):
        tick.wanted[i] *= part


@lean
def _shorten(tick: Tick, turns: int, limit: float) -> float:
    """Bring what is wanted along one kind of axes within the limit of its norm; return the norm if it was beyond."""
    square = 0.0
    for i in range(tick.wanted.shape[0]):
        if tick.turns[i] == turns:
            square += tick.wanted[i] * tick.wanted[i]
    if square <= limit * limit:
        return 0.0
    norm = float(np.sqrt(square))
    for i in range(tick.wanted.shape[0]):
        if tick.turns[i] == turns:
            tick.wanted[i] *= limit / norm
    return norm


@lean
def _note_saturation(tick: Tick, force: float, torque: float) -> None:
    """Count the occasions on which the model asks for more than the device may show; norms, 0 within the limits.

    An occasion ends when nothing was beyond the limits for a while; who feels nothing has none.
    """
    counts = tick.counts
    if (force > 0.0 or torque > 0.0) and counts[MAY_JUMP] == 0:
        if counts[SATURATED] == 0:
            counts[SATURATIONS] += 1
            counts[LOOK] = 1
            tick.numbers[FORCE_WANTED], tick.numbers[TORQUE_WANTED] = force, torque
        counts[SATURATED] = max(1, int(OCCASION / tick.numbers[PERIOD]))
    elif counts[SATURATED] > 0:
        counts[SATURATED] -= 1


@lean
def _follow(tick: Tick, turns: int, limit: float) -> bool:
    """Let what is shown along one kind of axes go towards what is wanted, no faster than the slew limit."""
    square = 0.0
    for i in range(tick.wanted.shape[0]):
        if tick.turns[i] == turns:
            change = tick.wanted[i] - tick.force[i]
            square += change * change
    factor = 1.0 if square <= limit * limit else limit / np.sqrt(square)
    for i in range(tick.wanted.shape[0]):
        if tick.turns[i] == turns:
            tick.force[i] += factor * (tick.wanted[i] - tick.force[i])
    return factor < 1.0
