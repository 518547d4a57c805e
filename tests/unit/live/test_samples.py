"""Samples are examined: an impossible one counts as missing, and too many of them are a fault."""

import itertools
import math

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import VelocityFilter
from fsm_dyn.devices.emulators.emulated_device import Meter
from fsm_dyn.devices.gamepad import Driver as Gamepad
from fsm_dyn.devices.hapkit import Driver as Hapkit
from fsm_dyn.devices.inverse3 import Driver as Inverse3
from fsm_dyn.devices.udp import Driver as Udp
from fsm_dyn.live.controller import FAULT, RUNNING, RunController
from fsm_dyn.live.device_map import Limits, device_map_for
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.launch import effective_limits
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import Fault, ReleaseReason, TickCounts, TickNumbers
from tests.unit.live.disengaging import DEVICES, RELEASE, Pressed

OUTLIERS = Limits().outliers
STIFFNESS = 1000.0
BAD = {
    "the device's position jumped farther than its velocity limit allows": lambda here: {"position": [here + 0.2]},
    "a position, velocity or force was not a number": lambda here: {"position": [math.nan]},
    "the device left its workspace": lambda here: {"position": [1e300]},
    "the device moved faster than its limit": lambda here: {"velocity": [50.0]},
}


@pytest.fixture(scope="module")
def pressed(held):
    return Pressed(held("virtual_wall"), "hapkit")


@pytest.mark.parametrize("why", BAD)
def test_outliers_are_rejected_and_more_of_them_are_a_fault(pressed, why):
    pressed.begin(STIFFNESS)
    counts, tick = pressed.stepper.tick_data.counts, pressed.stepper.tick_data
    ever, force, here = counts[TickCounts.REJECTED_TOTAL], pressed.handles[0].force, pressed.handles[0].position
    place = tick.now[tick.slot[1]]
    for _ in range(3):  # alone, again and again
        pressed.tick(OUTLIERS, **BAD[why](here))
        assert pressed.handles[0].force == pytest.approx(force, abs=1e-4), "as if they had not come"
        pressed.tick(5)
    assert (pressed.controller.phase, counts[TickCounts.REJECTED_TOTAL] - ever) == (RUNNING, 3 * OUTLIERS)
    assert tick.now[tick.slot[1]] == pytest.approx(place, abs=1e-6)
    pressed.tick(OUTLIERS + 1, **BAD[why](here))
    assert pressed.controller.phase == FAULT
    assert pressed.handles[0].force == 0.0
    assert [e["reason"] for e in pressed.events if e["event"] == "fault"] == [why]
    assert np.isfinite(tick.now).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", ["position", "velocity"])
def test_outliers_of_every_size_push_no_device(held, device, what):
    """Neither those that are taken nor those that are rejected; one of them, or three that agree."""
    pressed = Pressed(held("virtual_wall"), device)
    pressed.begin(STIFFNESS)
    continued = pressed.let_go("", gone=True).peak_energy
    for size, count, gone in itertools.product((1e-3, 2e-3, 3e-3, 8e-3, 0.1, 2.9, 1e12), (1, 3), (True, False)):
        pressed.begin(STIFFNESS)
        pressed.meter = Meter()
        if gone:
            for handle in pressed.handles:
                handle.hand_stiffness = handle.hand_damping = 0.0
        begun = [getattr(handle, what) for handle in pressed.handles]
        for _ in range(count):
            value = begun if what == "position" else [getattr(handle, what) for handle in pressed.handles]
            value = [*value[:-1], value[-1] - size]  # into the wall
            pressed.tick(**{what: value})
        pressed.tick(0 if pressed.controller.phase == FAULT and not gone else 100)  # then the hand swings by itself
        most = (1.2 * continued if gone else 0.0) + 1e-3
        assert pressed.meter.peak_energy <= most, (size, count, gone)


#: samples of a faulty device (position, velocity), k ticks after the fault began at the last of those ``before``
LIES = {
    "numbers repeated": lambda k, now, before: before[-1],
    "each repeated ten times": lambda k, now, before: now if k % 10 == 0 else None,
    "position held": lambda k, now, before: (before[-1][0], now[1]),
    "position creeps by 0.1 m/s": lambda k, now, before: (now[0] - 1e-4 * k, now[1]),
    "position creeps by 0.2 m/s": lambda k, now, before: (now[0] - 2e-4 * k, now[1]),
    "position creeps by 0.9 m/s": lambda k, now, before: (now[0] - 9e-4 * k, now[1]),
    "position mirrored": lambda k, now, before: (2.0 * before[-1][0] - now[0], now[1]),
    "velocity stuck": lambda k, now, before: (now[0], before[-1][1] - 0.3),
    "velocity of -1 m/s": lambda k, now, before: (now[0], -1.0),
    "velocity zero": lambda k, now, before: (now[0], 0.0),
    "velocity offset": lambda k, now, before: (now[0], now[1] - 0.6),
    "velocity reversed": lambda k, now, before: (now[0], -now[1]),
    "one step of a millimetre": lambda k, now, before: (now[0] - 1e-3, now[1]),
    "steps of a millimetre": lambda k, now, before: (now[0] - 1e-3 * k, now[1]),
    "steps of 0.3 mm": lambda k, now, before: (now[0] - 3e-4 * k, now[1]),
    "saw of a millimetre": lambda k, now, before: (now[0] - 1e-3 * (k % 5), now[1]),
    "saw of half a millimetre": lambda k, now, before: (now[0] - 5e-4 * (k % 5), now[1]),
}


def energy_given(pressed, lie, commands=()):
    """Let the hand go in motion, when the device begins to be wrong and commands come; return its largest energy, J."""
    pressed.begin(STIFFNESS)
    pressed.handles[-1].target -= 2e-3
    pressed.tick(8)
    begun = [[(handle.position, handle.velocity)] for handle in pressed.handles]
    pressed.meter = Meter()
    for handle in pressed.handles:
        handle.hand_stiffness = handle.hand_damping = 0.0
    told = [first for (first,) in begun]
    for command in commands:
        pressed.controller.command(command)
    for k in range(1, 150):
        told[:-1] = [(handle.position, handle.velocity) for handle in pressed.handles[:-1]]
        told[-1] = lie(k, (pressed.handles[-1].position, pressed.handles[-1].velocity), begun[-1]) or told[-1]
        pressed.tick(position=[item[0] for item in told], velocity=[item[1] for item in told])
    return pressed.meter.peak_energy


@pytest.mark.parametrize("device", ["hapkit", "udp"])
def test_contradictions_that_no_single_sample_shows_push_no_device(held, device):
    """Their sum over the last samples, times the force, is energy without an account: the force is withheld."""
    pressed = Pressed(held("virtual_wall"), device)
    most = 1.2 * energy_given(pressed, lambda k, now, before: now) + 2e-3
    given = {name: energy_given(pressed, lie) for name, lie in LIES.items()}
    assert {name: energy for name, energy in given.items() if energy > most} == {}


UNEXPLAINED = 2e-3  # J, from which on there is no force: what a slow contradiction may give unseen


@pytest.mark.parametrize("device", ["hapkit", "udp"])
def test_contradictions_of_any_rate_give_at_most_what_may_stay_unexplained(held, device):
    """Creeping positions, and velocities that are offset or stuck, by 0.01 to 0.9 m/s."""
    pressed = Pressed(held("virtual_wall"), device)
    most = 1.2 * energy_given(pressed, lambda k, now, before: now) + UNEXPLAINED
    for v in (0.01, 0.03, 0.05, 0.06, 0.1, 0.15, 0.2, 0.5, 0.9):
        for name, lie in (
            ("creeps", lambda k, now, before, v=v: (now[0] - 1e-3 * v * k, now[1])),
            ("offset", lambda k, now, before, v=v: (now[0], now[1] - v)),
            ("stuck", lambda k, now, before, v=v: (now[0], -v)),
        ):
            assert energy_given(pressed, lie) <= most, (name, v)


#: commands in the tick in which a device begins to be wrong
MEANWHILE = {
    "pause and go on": ({"do": "pause"}, {"do": "run"}),
    "set and set back": ({"do": "set", "values": {"k": 1e3}}, {"do": "set", "values": {"k": 2e4}}),
    "go back": ({"do": "scrub", "t": 0.2},),
    "of two clients": 10 * ({"do": "set", "values": {"k": 1e4}}, {"do": "reset"}, {"do": "port", "force_scale": 0.9}),
}


@pytest.mark.parametrize("commands", MEANWHILE.values(), ids=MEANWHILE)
def test_contradictions_push_no_device_after_a_command(held, commands):
    pressed = Pressed(held("virtual_wall"), "udp")
    most = 1.2 * energy_given(pressed, lambda k, now, before: now) + 1e-3
    for lie in ("numbers repeated", "position held", "position creeps by 0.1 m/s", "saw of half a millimetre"):
        assert energy_given(pressed, LIES[lie], commands) <= most, lie


@pytest.mark.parametrize("resolution", [1e-5, 1e-4, 1e-3])  # m
def test_steps_of_a_sensor_are_no_contradiction(held, resolution):
    """A hand in motion at a hard wall keeps its force, with velocities of any filter, and may rest."""
    pressed = Pressed(held("virtual_wall"), "udp")
    for bandwidth in (30.0, 200.0):
        pressed.begin(STIFFNESS)
        numbers, estimate = pressed.stepper.tick_data.numbers, VelocityFilter(2, bandwidth)
        numbers[TickNumbers.VELOCITY_LAG] = 0.5 / math.pi / bandwidth
        numbers[TickNumbers.DOUBT] = numbers[TickNumbers.GRAIN] = 0.0
        for handle in pressed.handles:
            handle.hand_stiffness, handle.hand_damping, handle.resolution = 300.0, 10.0, resolution
        for k in range(600):
            pressed.handles[-1].target = -0.012 - 0.01 * math.sin(0.02 * k) if k < 400 else -0.02
            counted = tuple(handle.measured for handle in pressed.handles)
            pressed.tick(position=counted, velocity=estimate.take(1e-3 * k, counted))
            assert k < 50 or numbers[TickNumbers.DOUBT] == 0.0, k
        assert pressed.handles[-1].force > 1.0
        assert pressed.controller.phase == RUNNING


@pytest.mark.parametrize(
    ("position", "velocity", "rejected"),
    [
        (0.9e-3, 0.0, 0),  # m beyond the sample before, m/s: a step of a coarse sensor
        (2.9e-3, 2.0, 0),  # along with a velocity from an impact
        (2.9e-3, 0.0, 1),
        (2.9e-3, -2.9, 1),  # the other way
        (0.0, 0.9, 0),
        (0.0, 2.9, 1),
        (2.0e-3, 2.9, 0),
    ],
)
def test_position_and_velocity_of_a_sample_agree(pressed, position, velocity, rejected):
    """The velocities of two samples explain the displacement between them, and it the velocity."""
    pressed.begin(STIFFNESS)
    counts, here = pressed.stepper.tick_data.counts, float(pressed.stepper.tick_data.taken[0])
    ever = counts[TickCounts.REJECTED_TOTAL]
    pressed.tick(position=[here + position], velocity=[velocity])
    assert counts[TickCounts.REJECTED_TOTAL] - ever == rejected


@pytest.mark.parametrize("bandwidth", [30.0, 200.0])  # Hz, of pantograph and datagrams, and of hapkit
@pytest.mark.parametrize(("amplitude", "frequency"), [(0.05, 5.0), (0.03, 10.0), (0.02, 15.0)])  # m, Hz: up to 1.9 m/s
def test_a_velocity_that_lags_by_its_filter_is_no_contradiction(held, bandwidth, amplitude, frequency):
    graph = held("virtual_wall")
    stepper = LiveStepper(graph, 1, mapping=device_map_for(graph, "", 1))
    controller, estimate = RunController(stepper, lambda event: None), VelocityFilter(1, bandwidth)
    for k in range(400):
        place = amplitude * (1.0 - math.cos(2.0 * math.pi * frequency * 1e-3 * k))
        counted = (1e-4 * round(place / 1e-4),)
        controller.tick(Sample(1e-3 * k, k + 1, counted, estimate.take(1e-3 * k, counted)))
    assert stepper.tick_data.counts[TickCounts.REJECTED_TOTAL] == 0
    assert controller.phase == RUNNING


def test_a_stop_that_a_device_strikes_is_no_contradiction(pressed):
    """The velocity is reversed within a tick, at any instant of it."""
    for share in (0.0, 0.3, 1.0):
        pressed.begin(STIFFNESS)
        counts, here = pressed.stepper.tick_data.counts, float(pressed.stepper.tick_data.taken[0])
        ever = counts[TickCounts.REJECTED_TOTAL]
        for k in range(20):  # up to 2 m/s in as many ticks
            here += 0.05e-3 * (2 * k + 1)
            pressed.tick(position=[here], velocity=[0.1 * (k + 1)])
        pressed.tick(position=[here + 2e-3 * (2.0 * share - 1.0)], velocity=[-2.0])
        assert counts[TickCounts.REJECTED_TOTAL] == ever


def test_the_force_never_follows_a_jump(pressed):
    """Twenty centimetres with unchanged velocity: today's force or less, until it is none."""
    pressed.begin(STIFFNESS)
    before, forces = abs(pressed.handles[0].force), []
    for _ in range(10):
        pressed.tick(position=[pressed.handles[0].position - 0.2])
        forces.append(abs(pressed.handles[0].force))
    assert max(forces) <= before + 1e-4
    assert forces[OUTLIERS] == 0.0


def test_a_jump_is_measured_by_the_time_between_the_samples_taken(pressed):
    """After a gap of ten ticks the device may be ten times as far away, and no farther."""
    limit = pressed.stepper.limits.velocity
    for part, rejected in ((0.99, 0), (1.01, 1)):
        pressed.begin(STIFFNESS)
        pressed.controller.command({"do": "pause"})
        pressed.tick(250)
        counts = pressed.stepper.tick_data.counts
        ever, here, sequence = (
            counts[TickCounts.REJECTED_TOTAL],
            pressed.stepper.tick_data.taken[0],
            pressed.sequence,
        )
        pressed.tick(9, sequence=sequence)
        pressed.tick(
            1, position=[here + part * limit * 0.010], velocity=[min(part, 1.0) * limit], sequence=sequence + 10
        )
        assert counts[TickCounts.REJECTED_TOTAL] - ever == rejected


def test_by_the_clock_where_ticks_were_late(pressed):
    pressed.begin(STIFFNESS)
    counts, controller, sequence = pressed.stepper.tick_data.counts, pressed.controller, pressed.sequence + 1
    counts[TickCounts.RELEASE_TIME] = 0
    ever, here = counts[TickCounts.REJECTED_TOTAL], float(pressed.stepper.tick_data.taken[0])
    controller.take(Sample(0.0, sequence, (here + 0.02,), (2.0,)))
    controller.run_tick(sequence, 0b10, 10_000_000)  # ns: 10 ms after the tick before
    # and where the device, or an emulated one, moved for one of these ticks only
    controller.take(Sample(0.0, sequence + 1, (here + 0.022,), (2.0,)))
    controller.run_tick(sequence + 1, 0b10, 20_000_000)
    assert counts[TickCounts.REJECTED_TOTAL] == ever


@pytest.mark.parametrize(
    ("elapsed", "displacement", "rejected"),
    [
        (0.009, 0.99 * 0.009, 0),  # s; s times the velocity limit
        (0.009, 1.01 * 0.009, 1),
        (10.0, 0.99 * (0.001 + RELEASE), 0),
        (10.0, 1.01 * (0.001 + RELEASE), 1),  # a larger lag of the line releases the device
        (math.nan, 1.01 * 0.001, 1),
        (-1.0, 0.99 * 0.001, 0),
        (-1.0, 1.01 * 0.001, 1),
    ],
)
def test_by_the_clock_of_the_device_where_its_line_lagged(pressed, elapsed, displacement, rejected):
    """Samples a tick apart by the loop, but not by the device's clock."""
    pressed.begin(STIFFNESS)
    counts, controller, sequence = pressed.stepper.tick_data.counts, pressed.controller, pressed.sequence
    limit, here = pressed.stepper.limits.velocity, float(pressed.stepper.tick_data.taken[0])
    ever = counts[TickCounts.REJECTED_TOTAL]
    controller.tick(Sample(5.0, sequence + 1, (here,), (0.0,), 0b10))
    assert counts[TickCounts.REJECTED_TOTAL] == ever
    controller.tick(Sample(5.0 + elapsed, sequence + 2, (here + displacement * limit,), (0.99 * limit,), 0b10))
    assert counts[TickCounts.REJECTED_TOTAL] - ever == rejected


def paced(pressed, stamps, step=1_000_000, **changed):
    """Tick a run on the wall clock with samples of these device times (s)."""
    counts, controller = pressed.stepper.tick_data.counts, pressed.controller
    counts[TickCounts.PACED] = 1
    try:
        for stamp in stamps:
            pressed.sequence += 1
            wall = int(counts[TickCounts.WALL]) + step  # ns
            handles = pressed.handles
            sample = Sample(stamp, pressed.sequence, [h.position for h in handles], [h.velocity for h in handles], 2)
            controller.take(sample._replace(**changed))
            controller.run_tick(pressed.sequence, 2, wall)
    finally:
        counts[TickCounts.PACED] = 0
    return float(pressed.stepper.tick_data.force[-1])


def test_samples_as_old_as_a_release_are_none(pressed):
    """By the clock of the device; one that stands still, or is set back, is none."""
    pressed.begin(STIFFNESS)
    force = paced(pressed, [5.0 + 1e-3 * k for k in range(30)])
    assert force > 1.0
    assert paced(pressed, [5.03 + 1e-4 * k for k in range(11)]) == pytest.approx(force, abs=0.05), "10 ms old"
    assert paced(pressed, [5.032 + 1e-4 * k for k in range(8)]) == 0.0, "17 ms old"
    assert pressed.stepper.tick_data.counts[TickCounts.RELEASE_REASON] == ReleaseReason.NO_SAMPLE
    late = [9.0 + 1e-3 * k for k in range(30)]  # of a device simulated tick by tick, while the loop is held up
    for clock, step in (([7.0] * 30, 1_000_000), ([9.0 - 0.1 * k for k in range(30)], 1_000_000), (late, 3_000_000)):
        pressed.begin(STIFFNESS)
        assert paced(pressed, clock, step) > 1.0


def test_what_waited_in_a_line_while_the_loop_stood_still_is_no_fault(pressed):
    """The first sample after a stop is as old as the stop: the device has moved since then."""
    pressed.begin(STIFFNESS)
    counts, old = pressed.stepper.tick_data.counts, pressed.handles[-1].position
    assert paced(pressed, [5.0 + 1e-3 * k for k in range(30)]) > 1.0
    paced(pressed, [5.03], step=50_000_000, position=[old])
    assert (counts[TickCounts.RELEASE_REASON], counts[TickCounts.RELEASED]) == (ReleaseReason.TICK_DELAYED, 1)
    pressed.handles[-1].position -= 8e-3
    assert paced(pressed, [5.08 + 1e-3 * k for k in range(10)]) == 0.0
    for k in range(1, 300):
        force = paced(pressed, [5.09 + 1e-3 * k])
    assert pressed.controller.phase == RUNNING
    assert force > 1.0, "it is engaged again"


def test_a_clock_that_runs_too_fast_explains_no_jump(pressed):
    """Only as much as it lagged before."""
    pressed.begin(STIFFNESS)
    ever = pressed.stepper.tick_data.counts[TickCounts.REJECTED_TOTAL]
    paced(pressed, [5.0 + 1.0 * k for k in range(10)])
    here = pressed.handles[-1].position
    paced(pressed, [15.0], position=[here + 5e-3])
    assert pressed.stepper.tick_data.counts[TickCounts.REJECTED_TOTAL] == ever + 1


def test_nothing_is_held_before_a_sample_was_taken(pressed):
    """A device beginning 1e300 m away ends as a device outside its workspace."""
    counts = pressed.stepper.tick_data.counts
    pressed.begin(STIFFNESS)
    pressed.stepper.reset()
    counts[TickCounts.SAMPLE_ACCEPTED] = counts[TickCounts.REJECTED] = 0
    controller = RunController(pressed.stepper, pressed.events.append)
    for k in range(OUTLIERS + 1):
        assert (counts[TickCounts.ENGAGED], counts[TickCounts.FAULT]) == (0, Fault.NONE)
        controller.tick(Sample(0.0, k, (1e300,), (0.0,), 0b10))
    assert counts[TickCounts.FAULT] == Fault.OUT_OF_WORKSPACE


@pytest.mark.parametrize(
    ("driver", "options", "low", "high"),
    [
        (Hapkit, {}, (-0.15,), (0.15,)),
        (Hapkit, {"workspace": 0.1}, (-0.1,), (0.1,)),
        (Udp, {"axes": 2, "turns": [1]}, (-1.0, -100.0), (1.0, 100.0)),
        (Udp, {"axes": 2, "workspace": [0.2, [-0.1, 0.3]]}, (-0.2, -0.1), (0.2, 0.3)),
        (Inverse3, {"device_id": "0E00"}, (-0.5,) * 3, (0.5,) * 3),
        (Gamepad, {"axes": ["x"]}, (-0.11,), (0.11,)),
        (Gamepad, {"axes": ["x"], "mode": "rate"}, (), ()),
    ],
)
def test_a_driver_that_has_a_workspace_declares_it(driver, options, low, high):
    spec = driver.describe(options)
    assert spec.low == pytest.approx(low)
    assert spec.high == pytest.approx(high)
    limits = effective_limits(Limits(), spec)
    assert (limits.low, limits.high) == (spec.low, spec.high)
    if low:
        own = (-1e-3,) * len(low)
        assert effective_limits(Limits(low=own), spec).low == own, "what is told goes before"


@pytest.mark.parametrize("workspace", [[0.1], [0.1, "far"], [[0.1, -0.1], 0.1], [0.1, math.inf], "wide"])
def test_a_workspace_that_cannot_be_is_named(workspace):
    with pytest.raises(InputError, match="workspace of the driver udp"):
        Udp.describe({"axes": 2, "workspace": workspace})
