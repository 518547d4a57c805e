"""Stops and conditions that become active in a change point, or too close to one for the speeds to be known."""

import numpy as np
import pytest

import fsm_dyn
from tests.reference.linkages import parallelogram_angle, parallelograms

METHODS = [{"rtol": 1e-8, "atol": 1e-10, "method": method} for method in ("dopri5", "radau", "bdf")]
METHODS.append({"method": "rk4", "step": 2e-3})


def stopped(n, at, restitution):
    """Upright parallelograms that fall until their first rocker strikes a stop at an angle (rad)."""
    model = parallelograms(n)
    model["contacts"] = {"stop": {"gap": f"l*(r0 - {at!r})", "restitution": restitution}}
    return fsm_dyn.compile(model)


@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize("at", [0.0, 1e-7, -1e-7, 1e-10])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("n", [1, 2])
def test_a_stop_in_a_change_point_is_named(n, restitution, at, settings):
    with pytest.raises(fsm_dyn.RunError, match="event in a change point") as error:
        fsm_dyn.simulate(stopped(n, at, restitution), 0.8, max_steps=3000, **settings)
    assert error.value.trajectory.transitions == ()
    times = np.array([0.0, error.value.trajectory.t[-1]])
    assert abs(parallelogram_angle(n, times)[-1]) < 2e-3


@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize("at", [0.01, -0.01])
@pytest.mark.parametrize("n", [1, 2])
def test_a_stop_near_a_change_point_throws_the_linkage_back(n, at, settings):
    """With half the speed, as one pendulum, through the change point again where the stop is behind it."""
    run = fsm_dyn.simulate(stopped(n, at, 0.5), 0.8, **settings)
    (strike,) = run.transitions
    # its rate at the stop from the energy of the pendulum
    inertia, moment = (n + 1) / 3 + n, (n + 1) / 2 + n
    rate = np.sqrt(1.0 + 2.0 * 9.81 * moment / inertia * (1.0 - np.sin(at)))
    exact = parallelogram_angle(n, [0.0, 0.8 - strike.time], r0=at, r0_dot=0.5 * rate)[-1]
    np.testing.assert_allclose(run.q[-1, : n + 1], exact, rtol=0, atol=2e-6)


def test_a_condition_in_a_change_point_is_named():
    model = parallelograms(1)
    model["memory"] = {"count": 0}
    model["transitions"] = [{"from": "*", "when": "r0 < 0", "set": {"count": "count + 1"}}]
    with pytest.raises(fsm_dyn.RunError, match="event in a change point"):
        fsm_dyn.simulate(fsm_dyn.compile(model), 0.8, rtol=1e-8, max_steps=3000)
