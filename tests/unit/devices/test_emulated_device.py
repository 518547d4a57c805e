"""What emulated devices of several axes have in common, without their processes."""

from __future__ import annotations

import math

import pytest

from fsm_dyn.devices.emulators import emulated_device
from fsm_dyn.devices.emulators.emulated_device import STEP, EmulatedDevice, EmulatedHandle


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(emulated_device.time, "monotonic", lambda: now[0])

    def go(duration, made):
        for _ in range(round(duration / STEP)):
            now[0] += STEP
            made.advance()

    return go


def test_it_moves_by_the_clock_under_the_force_it_shows(clock):
    """As one handle does that is moved by as many steps."""
    made = EmulatedDevice({"axes": 2, "hand": {"stiffness": 0.0}, "watchdog": 0.0})
    made.apply_force([0.5, 0.0])
    clock(0.1, made)
    alone = EmulatedHandle(0.2, 0.5, force=0.5)
    for _ in range(401):  # and one before it is there
        alone.advance(STEP)
    assert made.position[0] == pytest.approx(alone.position, rel=0.02)  # the clock's rounding may cost a step
    assert made.position[1] == 0.0


def test_its_watchdog_acts_once_when_nothing_comes(clock):
    made = EmulatedDevice({"axes": 1})
    made.apply_force([1.0])
    clock(0.019, made)
    assert made.force == [1.0]
    clock(0.002, made)
    assert (made.force, made.let_go) == ([0.0], "watchdog")
    made.apply_force([1.0])
    assert (made.force, made.let_go) == ([1.0], "")
    do = made.commands()
    do["watchdog"](on=False)
    clock(0.5, made)
    assert made.force == [1.0]
    assert [entry["why"] for entry in do["log"]()["log"]] == ["host", "watchdog", "host"]
    assert do["log"]()["log"] == []


@pytest.mark.parametrize("gap", [0.005, 0.04, 3.0])
def test_a_process_that_stood_still_moves_nothing_and_counts_for_no_watchdog(clock, monkeypatch, gap):
    """A board would have heard the zero force in between, or its watchdog would have acted."""
    made = EmulatedDevice({"axes": 1, "hand": {"stiffness": 0.0}})
    made.apply_force([2.4])
    clock(0.01, made)
    before = made.velocity[0]
    begin = emulated_device.time.monotonic()
    monkeypatch.setattr(emulated_device.time, "monotonic", lambda: begin + gap)
    made.apply_force([0.0])
    assert made.velocity[0] == pytest.approx(before + 2.4 / 0.2 * STEP, rel=0.05)
    assert made.let_go == ""
    assert made.commands()["state"]()["stood"] == pytest.approx(gap - STEP)


def test_without_power_it_shows_and_says_nothing(clock):
    made = EmulatedDevice({"axes": 1})
    do = made.commands()
    made.apply_force([1.0])
    do["unplug"]()
    assert (made.force, made.let_go, made.speaks) == ([0.0], "no power", False)
    made.apply_force([2.0])
    assert made.force == [0.0]
    do["plug"]()
    assert made.speaks
    for what in ("stall", "freeze"):
        do[what](on=True)
        assert not made.speaks
        do[what](on=False)
        assert made.speaks


def test_a_hand_keeps_what_it_is_not_told(clock):
    made = EmulatedDevice({"axes": 2, "hand": {"stiffness": 200.0}})
    do = made.commands()
    do["hand"](target=[0.01, 0.02])
    assert do["state"]()["hand"] == {"stiffness": 200.0, "damping": 2.0, "target": [0.01, 0.02]}
    do["hand"](damping=5.0, target=0.03)
    assert do["state"]()["hand"] == {"stiffness": 200.0, "damping": 5.0, "target": [0.03, 0.03]}
    clock(5.0, made)
    assert made.position == pytest.approx((0.03, 0.03), abs=1e-6)
    do["hand"](stiffness=0.0)
    assert do["state"]()["hand"]["damping"] == 0.0
    for wrong in ({"stiffness": -1.0}, {"target": [0.0]}, {"target": math.nan}, {"damping": math.inf}):
        with pytest.raises(ValueError, match=r"."):
            do["hand"](**wrong)


def test_what_is_spoilt_is_reported():
    made = EmulatedDevice({"axes": 1})
    do = made.commands()
    for what, told in (("garbage", "garbled"), ("half", "halved")):
        do[what](on=True)
        assert do["state"]()[told] is True
        do[what](on=False)
        assert do["state"]()[told] is False
    do["garbage"](bytes=7)
    assert made.spoiling.once == 7
