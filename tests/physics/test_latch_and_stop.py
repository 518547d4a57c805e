"""Latch and pendulum: every transition explained, none twice, none missed on a guard's surface."""

import numpy as np
import pytest

import fsm_dyn


@pytest.fixture(scope="module")
def latch():
    return fsm_dyn.simulate(fsm_dyn.compile("latch"), until=4.0)


@pytest.fixture(scope="module")
def pendulum():
    return fsm_dyn.compile("pendulum_with_stop")


def test_latch_rides_catches_and_lets_go(latch):
    path = [mode.split("+")[0] for mode in latch.modes]
    order = [name for i, name in enumerate(path) if i == 0 or name != path[i - 1]]
    assert order == ["free", "riding", "latched", "free"]
    assert all(x.cause for x in latch.transitions)


def test_the_catch_is_a_plastic_impact(latch):
    catch = next(x for x in latch.transitions if x.target.startswith("latched"))
    assert catch.u_before[0] > 0.01
    assert catch.u_after[0] == pytest.approx(0.0, abs=1e-12)
    assert catch.impulse["catch"][0] == pytest.approx(-1.5 * catch.u_before[0], rel=0.2)
    assert catch.energy_after < catch.energy_before
    held = np.array([mode.startswith("latched") for mode in latch.modes])
    np.testing.assert_allclose(latch.u[held, 0][1:], 0.0, atol=1e-12)


def test_bolt_stays_on_its_seat(latch):
    assert latch.q[:, 1].min() >= -1e-9


def test_pendulum_strikes_and_comes_to_lean(pendulum):
    run = fsm_dyn.simulate(pendulum, until=10.0, rtol=1e-10, atol=1e-12)
    assert run.transitions[-1].target == "leaning"
    assert run.modes[-1] == "leaning"
    assert run.q.min() >= np.deg2rad(10.0) - 1e-12
    first = run.transitions[0]
    # from 70° to 10°: l ω² / 2 = g (cos 10° - cos 70°); rebound with e = 0.6
    speed = np.sqrt(2 * 9.81 / 0.4 * (np.cos(np.deg2rad(10)) - np.cos(np.deg2rad(70))))
    np.testing.assert_allclose(first.u_before, [-speed], rtol=1e-8)
    np.testing.assert_allclose(first.u_after, [0.6 * speed], rtol=1e-8)
    torque = 0.5 * 9.81 * 0.4 * np.sin(np.deg2rad(10))
    np.testing.assert_allclose(run.multipliers["block"][-1], [torque], rtol=1e-9)


@pytest.mark.parametrize(("speed", "first_mode"), [(0.0, "leaning"), (-1.0, "swinging"), (1.0, "swinging")])
def test_start_exactly_on_the_stop(pendulum, speed, first_mode):
    """On the surface of the guard it neither fires twice nor falls through."""
    start = {"mode": "swinging", "theta": np.deg2rad(10.0), "omega_b": speed}
    run = fsm_dyn.simulate(pendulum, until=0.3, initial=start)
    assert run.q.min() >= np.deg2rad(10.0) - 1e-12
    assert run.modes[-1] == first_mode
    at_start = [x for x in run.transitions if x.time < 1e-9]
    assert len(at_start) == (0 if speed > 0 else 1)
    if speed < 0:
        np.testing.assert_allclose(run.transitions[0].u_after, [0.6])
