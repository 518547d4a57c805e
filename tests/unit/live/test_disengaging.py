"""Disengaging never pushes: work on the device afterwards, for every way of disengaging and every operator."""

import itertools

import pytest

from fsm_dyn.runtime.abi import TickNumbers
from tests.unit.live.disengaging import WAYS, Pressed

MILLIJOULE = 1e-3
STIFFNESS = (200.0, 1000.0, 5000.0)  # N/m


@pytest.fixture(scope="module", params=["hapkit", "udp", "touch"])
def pressed(request, held):
    return Pressed(held("virtual_wall"), request.param)


def lets_go(pressed, stiffness, way, gone):
    pressed.begin(stiffness)
    return pressed.let_go(way, gone)


@pytest.mark.parametrize("stiffness", STIFFNESS)
def test_letting_go_never_pushes(pressed, stiffness):
    """A hand that has gone gets no more than in a continued run; one that stays no work."""
    goes_on = lets_go(pressed, stiffness, "", True).peak_energy
    for way in WAYS:
        flies = lets_go(pressed, stiffness, way, True).peak_energy
        assert flies <= 1.2 * goes_on + MILLIJOULE, (way, flies, goes_on)
        done = lets_go(pressed, stiffness, way, False).most_work
        assert done <= MILLIJOULE, (way, done)


def test_what_the_loop_gave_is_told_apart_from_the_opening(pressed):
    """By an account of its own: force shown times way, less force of the coupler times the way of its end."""
    if pressed.most < 1.0:
        pytest.skip("it never shows the force of the coupler")
    for stiffness in STIFFNESS:
        pressed.begin(stiffness, "observe")
        numbers = pressed.stepper.tick_data.numbers
        before = float(numbers[TickNumbers.EXCESS_ENERGY])
        pressed.let_go("pause", True)
        assert numbers[TickNumbers.EXCESS_ENERGY] == before
        assert 0.0 <= numbers[TickNumbers.RELEASE_EXCESS_ENERGY] < 0.1 * MILLIJOULE


def test_a_force_beyond_its_limit_falls_from_the_first_tick_on(pressed):
    """Not only once the ramp brings it below the limit, near its end."""
    pressed.begin(1000.0)
    tick = pressed.stepper.tick_data
    shown = [tick.force[-1]]
    pressed.controller.command({"do": "pause"})
    while tick.numbers[TickNumbers.ENGAGEMENT] > 0.0:
        pressed.tick()
        shown.append(tick.force[-1])
        assert abs(shown[-1]) <= pressed.most * tick.numbers[TickNumbers.ENGAGEMENT] * (1.0 + 1e-12)
    assert len(shown) > 100
    assert max(b - a for a, b in itertools.pairwise(shown)) <= 0.02 * pressed.most
