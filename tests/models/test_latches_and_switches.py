"""Latch, switch and button: they hold, snap and click where their springs' closed forms say."""

import numpy as np
import pytest

import fsm_dyn


def test_the_door_is_caught_held_and_let_go():
    run = fsm_dyn.simulate(fsm_dyn.compile("latch_door"), until=2.5)
    assert run.outcome.name == "done"
    caught = run.sample(np.linspace(1.3, 1.59, 5))
    # nobody pushes: the back of the bolt lies at the striker, 30 + 3 + 8 mm from the start
    np.testing.assert_allclose(caught["x"], 41e-3, atol=1e-9)
    # what it bears is the seal's force
    np.testing.assert_allclose(caught.multipliers["touch_face4"][:, 0], 80 * 41e-3, rtol=1e-9)
    assert run.at(2.4).q[0] < 30e-3
    causes = [x.cause for x in run.transitions]
    rides = next(i for i, cause in enumerate(causes) if "touch_face2 closes" in cause)
    snaps = next(i for i, cause in enumerate(causes) if "touch_face4 closes" in cause)
    lets_go = next(i for i, cause in enumerate(causes) if "touch_face4 leaves" in cause)
    assert rides < snaps < lets_go
    assert run.transitions[lets_go].time > 1.6  # the handle


def test_the_switch_leaves_its_stop_where_the_moments_balance():
    """At the stop the spring's moment is k (free - d) a l sin(q)/d with d the distance of its ends; gravity helps."""
    run = fsm_dyn.simulate(fsm_dyn.compile("toggle_switch"), until=2.0)
    q, a, arm, k, free, reach = np.deg2rad(25), 20e-3, 12e-3, 800.0, 26e-3, 25e-3
    d = np.sqrt(a**2 + arm**2 - 2 * a * arm * np.cos(q))
    force = k * (free - d) * a * arm * np.sin(q) / d / reach
    away = run.transitions[0]
    assert away.cause.startswith("stops_upper opens")
    assert 16.0 * away.time == pytest.approx(force, rel=1e-9)  # the ramp is 16 N/s
    # over the centre without help: it arrives although the force has hardly grown
    arrived = next(x.time for x in run.transitions if x.target == "right")
    assert arrived - away.time < 0.05
    assert run.at(1.0).q[0] == pytest.approx(-q)
    assert run.at(2.0).q[0] == pytest.approx(q)


def test_the_click_is_the_dome_s_drop_of_force():
    """Pressed slowly the cap jumps at the peak of the static curve."""
    graph = fsm_dyn.compile("push_button")
    w, h, k, k_cap, pre, travel, plate = 4e-3, 1e-3, 3e4, 700.0, 0.1e-3, 1.6e-3, 2e4
    y = np.linspace(0.0, 1.75e-3, 200001)
    z, free = h - y, np.hypot(w, h)
    length = np.hypot(w, z)
    static = 2 * k * (free - length) * z / length + k_cap * (y + pre) + plate * np.maximum(y - travel, 0.0)
    peak = int(np.argmax(static[y < h]))
    trough = peak + int(np.argmin(static[peak:]))
    assert static[peak] - static[trough] > 0.4  # N: the click
    slow = {"linear": [(0.0, 0.0), (10.0, 2.0), (20.0, 0.0)]}
    run = fsm_dyn.simulate(graph, until=20.0, inputs={"finger": slow}, rtol=1e-7, atol=1e-9)
    down = next(x.time for x in run.transitions if x.cause.startswith("plate closes"))
    up = next(x.time for x in run.transitions if x.cause.startswith("plate opens"))
    # the ramp is 0.2 N/s; the jump takes a moment longer than none, in which the force grows by about 1 %
    assert 0.2 * down == pytest.approx(static[peak], rel=0.02)
    # on the way back the plate is left where the curve passes it, still at rest
    assert 2.0 - 0.2 * (up - 10.0) == pytest.approx(np.interp(travel, y, static), rel=2e-3)
