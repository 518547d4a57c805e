"""Engaging a device with a moving port: the hand takes up its momentum over the ramp, and no more."""

import pytest

from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle, Meter
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickNumbers

PERIOD = 1e-3
TOOL = 0.2  # kg
MILLIJOULE = 1e-3


@pytest.fixture(scope="module")
def wall(held):
    given = {"handle_1_stiffness": 1000.0, "handle_2_stiffness": 1000.0, "m": TOOL}
    return coupled_graph(held("virtual_wall"), given)


class Hand:
    """A hand moving the tool along the wall."""

    def __init__(self, graph, mass, **options):
        self.stepper, self.events, self.sequence = LiveStepper(graph, 2, **options), [], 0
        self.controller = RunController(self.stepper, self.events.append)
        self.handles = [EmulatedHandle(mass, 0.5, hand_stiffness=300.0, hand_damping=10.0) for _ in range(2)]
        self.meter = Meter()

    def tick(self, count=1):
        for _ in range(count):
            self.sequence += 1
            sample = [[getattr(h, name) for h in self.handles] for name in ("position", "velocity")]
            self.controller.tick(Sample(0.0, self.sequence, *sample))
            for handle, force in zip(self.handles, self.stepper.tick_data.force, strict=True):
                handle.force = float(force)
            self.meter.advance(self.handles, PERIOD)

    def scrub_onto_motion(self, speed, gone):
        """Move the tool, rest, and rewind to when it moved; return its speed there (m/s) and the meter since."""
        self.tick(300)
        for k in range(200):
            self.handles[0].target = speed * PERIOD * k
            self.tick()
        moved, then = float(self.stepper.loop.state.x[3]), self.stepper.t
        self.tick(500)
        if gone:
            for handle in self.handles:
                handle.hand_stiffness = handle.hand_damping = 0.0
        self.meter = Meter()
        self.controller.command({"do": "scrub", "t": then})
        self.tick(800)
        assert self.stepper.tick_data.numbers[TickNumbers.ENGAGEMENT] == 1.0
        return moved, self.meter


@pytest.mark.parametrize("mass", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("speed", [0.1, 0.3, -0.6])
def test_a_free_device_gets_what_a_plastic_impact_would_give(wall, mass, speed):
    """By momentum alone: tool and device end with one velocity; a spring closed at once could give four times that."""
    moved, meter = Hand(wall, mass).scrub_onto_motion(speed, gone=True)
    assert abs(moved) > 0.7 * abs(speed)
    together = TOOL * moved / (TOOL + mass)
    swings = 1.2 if mass <= TOOL else 2.25  # a light tool swings on the coupler, which is damped by little
    assert meter.peak_energy <= swings * 0.5 * mass * together**2 + 0.1 * MILLIJOULE


@pytest.mark.parametrize("scale", [1.0, -2.0])
def test_a_hand_that_stays_is_hardly_pushed(wall, scale):
    moved, meter = Hand(wall, 0.2, mapping=DeviceMap(scale=scale)).scrub_onto_motion(0.3 / scale, gone=False)
    assert abs(moved) > 0.2
    assert meter.most_work <= (MILLIJOULE if scale == 1.0 else 0.5 * 0.5 * TOOL * moved**2)


def test_a_port_at_rest_is_engaged_where_it_is(wall):
    hand = Hand(wall, 0.2)
    hand.tick(300)
    assert not hand.stepper.tick_data.glide.any()
