"""A loop standing still while a hand presses: forces on a device that leaves, and on one that engages again."""

import pytest

import fsm_dyn
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.launch import coupled_graph, watching_times
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.runtime.abi import TickNumbers
from tests.unit.live.stalling import PERIOD, Stalled, stalling_wall

RAMP = 200  # ticks
RELEASE = 0.012  # s
WATCHDOG = watching_times(LiveSettings(release=RELEASE, watchdog_timeout=0.1, period=PERIOD))
ZERO = (
    WATCHDOG["zero_after"] + WATCHDOG["period"]
)  # s at most without a tick until the watchdog process has sent a force of zero
MILLIJOULE = 1e-3
FASTEST = 0.1  # m/s, at which the end of a coupler approaches the device: 1/30 of the largest velocity
MASS, DAMPING = 0.05, 0.2  # kg, N s/m, of a light paddle
MAPS = {
    "anchored": DeviceMap(),
    "absolute": DeviceMap(offset=(0.0, 0.01)),
    "reversed": DeviceMap(scale=-1.0, offset=(0.0, 0.01)),
}


@pytest.fixture(scope="module")
def wall():
    given = {"handle_1_stiffness": 1000.0, "handle_2_stiffness": 1000.0}
    return coupled_graph(fsm_dyn.compile(stalling_wall()), given)


class Still(Stalled):
    """The wall pressed by a light paddle, and a loop able to stand still."""

    def __init__(self, graph, name):
        super().__init__(graph, mapping=MAPS[name])
        self.away = MAPS[name].scale
        for handle in self.handles:
            handle.mass, handle.damping = MASS, DAMPING

    def press(self):
        self.tick(250)
        self.handles[1].target = -0.06 * self.away
        self.tick(600)
        assert abs(self.handles[1].force) > 1.5, "it is pressed"
        self.meter = type(self.meter)()
        return self

    def stand_still(self, seconds):
        """No tick comes; the watchdog process ends the force."""
        self.meter.advance(self.handles, min(seconds, ZERO))
        if seconds > ZERO:
            for handle in self.handles:
                handle.force = 0.0
            self.meter.advance(self.handles, seconds - ZERO)
            self.stepper.tick_data.force[:] = 0.0  # like a tick after a packet of the watchdog process
        self.wall += int(1e9 * seconds)


def peak_energy(wall, name, seconds):
    pressed = Still(wall, name).press()
    pressed.let_go_of_device()
    pressed.stand_still(seconds)
    pressed.tick(2 * RAMP)
    assert pressed.stepper.tick_data.numbers[TickNumbers.ENGAGEMENT] == 1.0
    return pressed.meter.peak_energy


@pytest.mark.parametrize("name", MAPS)
def test_a_device_whose_hand_is_gone_gets_no_more_than_from_a_run_that_continues(wall, name):
    most = 1.2 * peak_energy(wall, name, 0.0) + MILLIJOULE
    for seconds in (0.003, ZERO, 0.008, 0.02, 0.05, 0.2, 1.0):
        assert peak_energy(wall, name, seconds) <= most, seconds


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("seconds", [0.008, 0.05])
def test_a_hand_that_stays_is_released_once_it_is_missed_for_long(wall, name, seconds):
    pressed = Still(wall, name).press()
    before = pressed.handles[1].force
    pressed.stand_still(seconds)
    forces = pressed.tick(3 * RAMP)
    released = [event for event in pressed.events if event["event"] == "released"]
    assert len(released) == (seconds > RELEASE)
    assert forces[0] <= (0.0 if released else abs(before) + 0.1)
    assert forces[-1] > 1.5, "it is pressed again"


@pytest.mark.parametrize("distance", [0.02, -0.02, 0.1])
def test_a_tool_left_behind_is_brought_along(wall, distance):
    """Engaged at a distance, a device with an absolute zero is not drawn to the port, and the tool arrives."""
    pressed = Still(wall, "absolute")
    for handle in pressed.handles:  # held firmly
        handle.hand_stiffness, handle.hand_damping = 1000.0, 30.0
    pressed.handles[0].position = pressed.handles[0].target = distance
    stepper = pressed.stepper
    forces = pressed.tick(RAMP) + pressed.tick(int(abs(distance) / FASTEST / PERIOD))
    assert stepper.tick_data.numbers[TickNumbers.ENGAGEMENT] == 1.0
    assert not stepper.tick_data.shift.any()
    # a mass moved at a constant speed by a spring and its damper is fastest at twice this speed
    assert pressed.meter.most_work <= 0.5 * stepper.values["m"] * (2.0 * FASTEST) ** 2
    assert max(forces) <= 2.0 * FASTEST * (stepper.values["m"] * 1000.0) ** 0.5
    pressed.tick(4 * RAMP)
    assert stepper.tick_data.ports[2] == pytest.approx(distance, abs=1e-3)
