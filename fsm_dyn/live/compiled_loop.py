"""The one compiled call of a tick: what is to happen in it, the step, the force, the row for whoever looks."""

from __future__ import annotations

from typing import Final

from numba import types

from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live.compiled_calls import caller
from fsm_dyn.live.compiled_forces import report_ports, show
from fsm_dyn.live.compiled_inputs import follow_schedule, is_open, next_inputs, take_over, write_pieces
from fsm_dyn.live.compiled_marks import MARKS, mark
from fsm_dyn.live.compiled_passivity import watch_energy
from fsm_dyn.live.compiled_publishing import RING, beat, look_at_owner, publish, put_records, was_zeroed
from fsm_dyn.live.compiled_samples import fail, take_sample
from fsm_dyn.live.compiled_tick import TICK, Tick
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.compiled import entry, lean
from fsm_dyn.simulation.evaluation import evaluate_here
from fsm_dyn.simulation.inputs import DRIVE, write_inputs

ADVANCE_ARGUMENTS: Final = 7 * (types.int64,)


#: ``call_advance(address, places)``: call the stepper, whose machine code is at ``address``, with the first addresses.
call_advance = caller(len(ADVANCE_ARGUMENTS))

_open_tables = st.TABLES.opener()
_open_drive = DRIVE.opener()
_open_options = st.OPTIONS.opener()
_open_state = st.STATE.opener()
_open_work = st.WORK.opener()
_open_buffers = st.BUFFERS.opener()
_open_tick = TICK.opener()
_open_ring = RING.opener()
_open_marks = MARKS.opener()


@lean
def _begin(tick: Tick) -> int:
    """Set the stepper its next goal; return 1 if it is to be called, -1 if the state is not finite."""
    drive, state = _open_drive(tick.places[ct.DRIVE]), _open_state(tick.places[ct.STATE])
    options = _open_options(tick.places[ct.OPTIONS])
    state.counters[st.ROWS] = 0
    state.counters[st.TRANSITIONS] = 0
    state.counters[st.PASSED] = 0
    if tick.counts[ct.UNFINISHED] != 0:
        return 1
    begin = state.clock[st.TIME]
    tick.counts[ct.STEPS] += tick.counts[ct.SUBSTEPS]
    # as the grid of the stepper counts, so that both agree to the last bit
    end = state.clock[st.BEGIN] + tick.counts[ct.STEPS] * options.numbers[st.FIXED_STEP]
    options.numbers[st.UNTIL] = end
    if tick.counts[ct.GIVEN] == 0:
        follow_schedule(tick, _open_drive(tick.places[ct.SCHEDULE]), state, end)
        next_inputs(tick, end - begin)
    write_pieces(tick, drive, begin, end)
    if state.counters[st.STARTED] == 0:
        return 1
    write_inputs(drive, begin, 0, state.x, state.c)
    if state.counters[st.PHASE] == st.STEPPING and not evaluate_here(
        _open_tables(tick.places[ct.TABLES]), state, _open_work(tick.places[ct.WORK])
    ):
        return -1
    return 1


@lean
def _move(tick: Tick, shown: bool) -> int:
    """Advance the model by one tick and work out the force; return a status of the outcomes."""
    status = outcomes.DONE
    if tick.counts[ct.ADVANCING] != 0:
        status = outcomes.NON_FINITE
        if _begin(tick) > 0:
            status = call_advance(tick.places[ct.ADVANCE], tick.places)
            tick.counts[ct.UNFINISHED] = status != outcomes.DONE
        if tick.counts[ct.UNFINISHED] == 0:
            take_over(tick)
    report_ports(_open_tables(tick.places[ct.TABLES]), _open_state(tick.places[ct.STATE]), tick)
    if tick.counts[ct.PASSIVITY] != ct.OFF:
        watch_energy(tick, _open_state(tick.places[ct.STATE]))
    show(tick, shown)
    tick.counts[ct.STATUS] = status
    mark(_open_marks(tick.places[ct.MARKS]), tick, _open_state(tick.places[ct.STATE]).clock[st.TIME])
    return status


@entry
def move(tick_at: int, shown: bool) -> int:
    """Advance the model by one tick; ``tick_at`` is the address of a :class:`Tick`.  Returns a status."""
    return _move(_open_tick(tick_at), shown)


@lean
def _decide(tick: Tick, reason: int) -> None:
    """See from phase, buttons and owner whether the model moves and the port is held; ``reason``: to release it."""
    counts = tick.counts
    released = reason != 0 and counts[ct.PHASE] == ct.RUNNING
    if released:
        release(tick, reason)
    held = counts[ct.PHASE] == ct.RUNNING and counts[ct.WAITING] == 0 and not released
    held = held and counts[ct.TAKEN] != 0 and counts[ct.OWNER_SILENT] == 0
    buttons = counts[ct.BUTTONS]
    if (counts[ct.DEAD_MAN] != 0 and buttons & counts[ct.DEAD_MAN] == 0) or buttons & counts[ct.CLUTCH] != 0:
        held = False
    if held and counts[ct.HELD] == 0:
        # whoever takes hold while the grip still opens waits until it is open
        held = is_open(tick)
        counts[ct.ANCHOR] = held
        if held:
            counts[ct.RELEASED] = 0
    counts[ct.HELD] = held
    tick.numbers[ct.GRIP_TARGET] = 1.0 if held else 0.0
    counts[ct.ADVANCING] = counts[ct.PHASE] == ct.RUNNING and (counts[ct.OWNER_SILENT] == 0 or not is_open(tick))
    if counts[ct.PHASE] == ct.PAUSED and counts[ct.STEPS_LEFT] > 0:
        counts[ct.STEPS_LEFT] -= 1
        counts[ct.ADVANCING] = 1


@lean
def release(tick: Tick, reason: int) -> None:
    """Show no force and have the grip open within the tick; it closes anew at its rate."""
    counts = tick.counts
    if tick.numbers[ct.GRIP] > 0.0:
        counts[ct.RELEASES] += 1
        counts[ct.RELEASE_REASON] = reason
        counts[ct.LOOK] = 1
    counts[ct.HELD], counts[ct.RELEASED] = 0, 1
    tick.numbers[ct.GRIP] = 0.0
    for i in range(tick.force.shape[0]):
        tick.force[i] = 0.0


@lean
def _reason_to_release(tick: Tick, since: int, silence: int, zeroed: bool) -> int:
    """Return why the device is to be released, 0 where it is not: what a held force follows from is missing."""
    longest = tick.counts[ct.RELEASE_TIME]
    if longest == 0:
        return 0
    if since > longest or zeroed:
        return ct.HELD_UP
    if silence > longest:
        return ct.GUARD_SILENT
    return ct.NO_SAMPLE if tick.counts[ct.UNCHANGED] > tick.counts[ct.RELEASE_TICKS] else 0


@lean
def _count(tick: Tick) -> None:
    """Count the transitions made since the stepper was called last."""
    made = _open_state(tick.places[ct.STATE]).counters[st.TRANSITIONS]
    tick.counts[ct.MADE] += made
    tick.counts[ct.TRANSITIONS] += made


@lean
def _conclude(tick: Tick) -> None:
    """Take in what became of the tick."""
    counts = tick.counts
    status = counts[ct.STATUS]
    if counts[ct.FAULT] != ct.NONE and counts[ct.PHASE] != ct.FAULTY:
        fail(tick, counts[ct.FAULT])
    if counts[ct.ADVANCING] == 0:
        return
    _count(tick)
    if counts[ct.UNFINISHED] != 0:
        counts[ct.BEHIND] += 1
        counts[ct.LOOK] = 1
    if counts[ct.MADE] > 0 and counts[ct.UNTIL_TRANSITION] != 0:
        counts[ct.LOOK] = 1
    if status > outcomes.DONE:
        counts[ct.PHASE] = ct.STOPPED if status == outcomes.STOPPED else ct.FAILED
    if status > outcomes.DONE or _wants(status):
        counts[ct.LOOK] = 1


@lean
def _wants(status: int) -> bool:
    return bool(outcomes.PAUSED < status <= outcomes.LAST_INTERNAL)


@entry
def live_tick(tick_at: int, sequence: int, buttons: int, wall: int, lateness: int, duration: int, spent: int) -> int:
    """Carry out one tick of a live run.

    Parameters
    ----------
    tick_at : int
        Address of a :class:`Tick`; the device's position and velocity stand in it.
    sequence, buttons : int
        Of the sample.
    wall, lateness : int
        When the tick began and how late that was, ns.
    duration, spent : int
        Time by the clock and of the processor that the tick before took, ns; below 0 where there was none.

    Returns
    -------
    int
        ``NOTHING``, ``LOOK_AT``, or ``WANTS``: then :func:`finish_tick` is to follow.
    """
    return go_through(_open_tick(tick_at), sequence, buttons, wall, lateness, duration, spent)


@lean
def go_through(tick: Tick, sequence: int, buttons: int, wall: int, lateness: int, duration: int, spent: int) -> int:
    """Carry out one tick, see :func:`live_tick`."""
    counts = tick.counts
    counts[ct.LOOK] = counts[ct.MADE] = 0
    _open_state(tick.places[ct.STATE]).counters[st.WORK_DONE] = 0
    counts[ct.SEQUENCE] = sequence
    counts[ct.BUTTONS] = buttons
    since = wall - counts[ct.WALL]
    counts[ct.WALL], counts[ct.LATENESS] = wall, lateness
    counts[ct.DURATION], counts[ct.PROCESSOR] = duration, spent
    counts[ct.TICKS] += 1
    silence, zeroed = 0, False
    if tick.places[ct.RING] != 0:
        ring = _open_ring(tick.places[ct.RING])
        silence, zeroed = beat(ring, counts, since), was_zeroed(ring, counts)
        look_at_owner(ring, counts, since)
        if silence > counts[ct.GUARD_PATIENCE]:
            fail(tick, ct.GUARD_LOST)
    take_sample(tick)
    _decide(tick, _reason_to_release(tick, since, silence, zeroed))
    status = _move(tick, counts[ct.PHASE] == ct.RUNNING)
    if counts[ct.ADVANCING] != 0 and _wants(status):
        return ct.WANTS
    return _end(tick)


@entry
def release_device(tick_at: int, reason: int) -> None:
    """Show no force and have the grip open within the tick to come; it closes anew at its rate."""
    release(_open_tick(tick_at), reason)


@entry
def finish_tick(tick_at: int, again: bool) -> int:
    """End a tick that wanted something: ``again`` says that it was given, and the stepper is to go on in this tick."""
    tick = _open_tick(tick_at)
    if again:
        state = _open_state(tick.places[ct.STATE])
        _count(tick)
        if tick.places[ct.RING] != 0:
            buffers = _open_buffers(tick.places[ct.BUFFERS])
            put_records(
                _open_ring(tick.places[ct.RING]), buffers, tick.counts[ct.TICKS], state.counters[st.TRANSITIONS]
            )
        status = _move(tick, tick.counts[ct.PHASE] == ct.RUNNING)
        if _wants(status):
            return ct.WANTS
    return _end(tick)


@lean
def _end(tick: Tick) -> int:
    """Take in what became of the tick, and let others know."""
    _conclude(tick)
    ring_at, counts = tick.places[ct.RING], tick.counts
    # an owner who is silent records nothing: rows of a model at rest are not to be written over those not taken yet
    if ring_at != 0 and (counts[ct.OWNER_SILENT] == 0 or counts[ct.ADVANCING] != 0):
        publish(_open_state(tick.places[ct.STATE]), tick, _open_ring(ring_at), _open_buffers(tick.places[ct.BUFFERS]))
    return int(tick.counts[ct.LOOK])
