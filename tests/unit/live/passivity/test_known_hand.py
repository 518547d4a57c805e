"""A loop with a known hand: its boundary of stability against the live loop, and against closed forms."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import VelocityFilter
from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import DeviceDynamics, Sample
from fsm_dyn.live.passivity import HELD, Hand, assess, damping_needed_with_hand, growth_with_hand
from fsm_dyn.live.sampled_loop import linearise_sampled_loop, velocity_response
from fsm_dyn.live.stepper import LiveStepper

FREE = Limits(force=1e9, slew=1e15, velocity=1e9, ramp=0.0)
PERIOD = 1e-3
FINGER = Hand(300.0, 3.0, 0.01)
RESTING = {"y": 0.0}
BANDWIDTHS = [None, math.inf, 30.0]


def loop_of(graph, stiffness, damping, bandwidth, scale=1.0):
    graph = graph("bouncing_ball", hand_1_stiffness=stiffness, hand_1_damping=damping)
    mapping = DeviceMap(scale=scale)
    return graph, linearise_sampled_loop(graph, "resting", at=RESTING, velocity_bandwidth=bandwidth, mapping=mapping)


def swings(graph, device, hand, bandwidth, scale):
    """Return the growth factor of a swing of the device at a wall in 100 ticks of the live loop."""
    stepper = LiveStepper(graph, 1, mapping=DeviceMap(scale=scale), limits=FREE, initial={"mode": "resting", **RESTING})
    controller = RunController(stepper, lambda event: None)
    handle = EmulatedHandle(device.mass + hand.mass, device.damping, hand_stiffness=hand.stiffness)
    handle.hand_damping = hand.damping
    estimate = VelocityFilter(1, bandwidth) if bandwidth not in (None, math.inf) else None
    w = math.sqrt((scale**2 * graph.values["hand_1_stiffness"] + hand.stiffness) / handle.mass)
    before, found = 0.0, []
    for k in range(600):
        if k == 10:
            handle.velocity += 1e-6
        velocity = handle.velocity if bandwidth is None else (handle.position - before) / PERIOD
        if estimate is not None:
            velocity = estimate.take(PERIOD * k, [handle.position])[0]
        before = handle.position
        controller.tick(Sample(0.0, k + 1, [handle.position], [velocity]))
        handle.force = float(stepper.tick_data.force[0])
        handle.advance(PERIOD)
        found.append(math.hypot(handle.position, handle.velocity / w))
        if abs(handle.force) > 0.2:  # before it leaves the wall
            return math.inf
    assert stepper.mode == "resting"
    return max(found[500:]) / max(found[400:500])


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_the_growth_is_that_of_the_live_loop(held, bandwidth, scale):
    device = DeviceDynamics(mass=0.05, damping=0.2, velocity_bandwidth=bandwidth)
    compared = 0
    for stiffness in (2e3, 6e3, 12e3, 20e3, 40e3):
        graph, loop = loop_of(held, stiffness, 2.0, bandwidth, scale)
        growth = growth_with_hand(loop, 0, device, FINGER)
        if 0.97 < growth < 1.01:
            assert swings(graph, device, FINGER, bandwidth, scale) == pytest.approx(growth**100, rel=0.25)
            compared += 1
        elif growth > 1.01:
            assert swings(graph, device, FINGER, bandwidth, scale) > 1.5
    assert compared


def test_the_boundary_of_a_wall_without_damping_in_closed_form(held):
    """A mass alone and a sampled spring: stable to ``2 b / T`` for a light damping (Gil et al. 2004)."""
    b = 2.0
    device = DeviceDynamics(mass=1.0, damping=b, velocity_bandwidth=None)

    def margin(stiffness):
        return growth_with_hand(loop_of(held, stiffness, 0.0, None)[1], 0, device, Hand()) - 1.0

    assert brentq(margin, 1e3, 1e4) == pytest.approx(2.0 * b / PERIOD, rel=1e-2)


@pytest.mark.parametrize("delay", [0.0, 0.4e-3, 1.3e-3])
def test_a_delay_takes_from_the_boundary(held, delay):
    """``(b + B) / (T / 2 + t_d)`` for small dampings and slow swings (Hulin et al. 2006)."""
    device = DeviceDynamics(mass=2.0, damping=2.0, delay=delay, velocity_bandwidth=None)

    def margin(stiffness):
        return growth_with_hand(loop_of(held, stiffness, 0.0, None)[1], 0, device, Hand()) - 1.0

    assert brentq(margin, 200.0, 2e4) == pytest.approx(2.0 / (0.5 * PERIOD + delay), rel=2e-2)


def test_the_damping_needed_is_the_boundary(held):
    _, loop = loop_of(held, 6000.0, 1.0, math.inf)
    device = DeviceDynamics(mass=0.1, damping=0.0)
    needed = damping_needed_with_hand(loop, 0, device, Hand(stiffness=300.0))
    assert needed > 0.1
    for part, stable in ((0.99, False), (1.01, True)):
        held_by = DeviceDynamics(mass=0.1, damping=part * needed)
        assert (growth_with_hand(loop, 0, held_by, Hand(stiffness=300.0)) < 1.0) == stable
    with pytest.raises(InputError, match="needs mass and damping"):
        growth_with_hand(loop, 0, DeviceDynamics(damping=1.0), FINGER)
    with pytest.raises(InputError, match="of a hand"):
        Hand(-1.0)


def test_a_finger_holds_what_no_bound_on_all_hands_allows(held):
    graph = held("bouncing_ball", hand_1_stiffness=8e3, hand_1_damping=10.0)
    device = DeviceDynamics(mass=0.05, damping=0.2, velocity_bandwidth=None)
    found = assess(graph, device, modes=["resting"], at=RESTING, hand=Hand(300.0, 3.0, 0.02))
    by_name = {check.condition: check for check in found.checks}
    assert by_name["wall"].verdict == "fail"
    assert by_name[HELD].verdict == "pass"
    assert found.verdict == "fail"  # of passivity
    unknown = assess(graph, modes=["resting"], at=RESTING, hand=FINGER)
    assert {check.condition: check.verdict for check in unknown.checks}[HELD] == "unknown"


@pytest.mark.parametrize("bandwidth", [30.0, 200.0, math.inf])
def test_the_velocity_of_a_filter_is_that_of_its_samples(bandwidth):
    w, filtered, found = 2.0 * math.pi * 40.0, VelocityFilter(1, min(bandwidth, 1e6)), []
    times = PERIOD * np.arange(1000)
    for t in times:
        found.append(filtered.take(float(t), [math.sin(w * t)])[0])
    measured = 2.0 / 500 * (np.array(found[500:]) * np.exp(-1j * w * times[500:])).sum() * 1j
    z = np.exp(1j * np.array([w]) * PERIOD)
    assert velocity_response(z, PERIOD, bandwidth)[0] == pytest.approx(measured, rel=1e-6)
