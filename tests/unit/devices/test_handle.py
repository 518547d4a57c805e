"""The emulated handle against closed forms."""

from __future__ import annotations

import math

import pytest

from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle


def test_a_held_force_moves_it_as_the_closed_form_says() -> None:
    m, b, force, t = 0.2, 1.5, 0.7, 0.31
    handle = EmulatedHandle(m, b, force=force)
    for _ in range(31):
        handle.advance(0.01)
    decay = math.exp(-b * t / m)
    assert handle.velocity == pytest.approx(force / b * (1.0 - decay), rel=1e-12)  # rounding of 31 exact steps
    assert handle.position == pytest.approx(force / b * (t - m / b * (1.0 - decay)), rel=1e-12)


def test_a_hand_swings_at_its_damped_frequency() -> None:
    m, k, c = 0.2, 300.0, 2.0
    handle = EmulatedHandle(m, hand_stiffness=k, hand_damping=c, target=0.05)
    w = math.sqrt(k / m - (c / (2 * m)) ** 2)
    handle.advance(math.pi / w)  # half a turn: the overshoot of a step
    assert handle.position == pytest.approx(0.05 * (1.0 + math.exp(-c / (2 * m) * math.pi / w)), rel=1e-12)


def test_dry_friction_holds_a_small_force_and_brings_it_to_rest() -> None:
    handle = EmulatedHandle(0.1, friction=0.3, force=0.29)
    handle.advance(1.0)
    assert (handle.position, handle.velocity) == (0.0, 0.0)
    handle.force, handle.velocity = 0.0, 0.6
    handle.advance(1.0)
    assert handle.velocity == 0.0
    # m v^2 / (2 f); impulses of 0.1 ms each err by half a step's way
    assert handle.position == pytest.approx(0.1 * 0.6**2 / (2 * 0.3), abs=0.6 * 1e-4)


def test_the_sensor_tells_whole_steps() -> None:
    handle = EmulatedHandle(0.1, resolution=1e-3, position=0.00151)
    assert handle.measured == pytest.approx(0.002)
