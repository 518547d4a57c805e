"""Devices with fewer samples than ticks: reported once, and coupled without a fading force."""

import pytest

import fsm_dyn
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.runtime.abi import TickCounts, TickNumbers
from tests.unit.live.stalling import Stalled, stalling_wall

STALE = 100  # ticks


@pytest.fixture(scope="module")
def wall():
    return coupled_graph(fsm_dyn.compile(stalling_wall()), {"handle_1_stiffness": 200.0, "handle_2_stiffness": 200.0})


class Slow(Stalled):
    """A device with a sample every few ticks, some of them late."""

    every, late = 1, ()

    def tick(self, count=1, late=0.0):
        found = []
        for _ in range(count):
            k = self.controller.ticks
            fresh = k % self.every == (1 if k // self.every in self.late else 0)
            self.sequence -= not fresh
            found += super().tick(1, late)
        return found


@pytest.mark.parametrize(("every", "slow"), [(1, False), (2, True), (3, True), (5, True), (10, True)])
def test_the_force_does_not_fade_between_samples(wall, every, slow):
    pressed = Slow(wall)
    pressed.every, pressed.late = every, range(400, 10_000, 7)
    pressed.press()
    counts = pressed.stepper.tick_data.counts
    faded = int(counts[TickCounts.FADED_TICKS])
    assert faded <= 30 * every  # until its interval is known
    pressed.tick(2000)
    assert counts[TickCounts.FADED_TICKS] == faded
    assert counts[TickCounts.RELEASES] == 0
    interval = pressed.stepper.tick_data.numbers[TickNumbers.SAMPLE_INTERVAL]
    assert interval == pytest.approx(every * 1e-3, rel=0.1)
    told = [event for event in pressed.events if event["event"] == "slow device"]
    assert len(told) == slow
    assert all(f"every {1e3 * interval:.0f}" in event["reason"] for event in told)


@pytest.mark.parametrize("every", [1, 3, 10])
def test_a_slow_device_that_falls_silent_is_released_within_six_of_its_intervals(wall, every):
    pressed = Slow(wall)
    pressed.every = every
    pressed.press()
    while pressed.stepper.tick_data.counts[TickCounts.STALE_TICKS]:
        pressed.tick()
    pressed.every = 10**9
    forces = pressed.tick(STALE)
    zero = next(k for k, force in enumerate(forces) if force == 0.0)
    assert zero <= max(12, 6.5 * every)
    assert not any(forces[zero:])
