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


def led(name, drive, until):
    """Displacement, its rate and the force of a led run, with the run."""
    graph = fsm_dyn.compile(f"{name}:motion")
    run = fsm_dyn.simulate(graph, until=until, scenario=drive)
    rows = run.sample(np.linspace(1e-6, until, 4001))
    q, u = graph.automaton.terms.layout.q[0], graph.automaton.terms.layout.u[0]
    return run, rows[q], rows[u], rows.multipliers["led"][:, 0], rows


def test_the_button_s_force_over_its_way_and_the_click():
    """Led slowly, the static curve, its falling branch too; the click is the drop from its peak to its trough.

    Besides the static force the damper bears 0.4 N s/m, at 1.3 mm/s at most; the mass adds micronewtons.
    """
    _, y, v, force, _ = led("push_button", "slowly", 4.0)
    w, h, k, k_cap, pre, travel = 4e-3, 1e-3, 3e4, 700.0, 0.1e-3, 1.6e-3

    def static(y):
        z = h - y
        return 2 * k * (np.hypot(w, h) - np.hypot(w, z)) * z / np.hypot(w, z) + k_cap * (y + pre)

    before = y < travel
    np.testing.assert_allclose((force - 0.4 * v)[before], static(y)[before], atol=2e-5)
    pressed = slice(0, 2000)
    peak = np.argmax(np.where(before, force, 0.0)[pressed])
    click = force[peak] - force[peak : np.argmin(before[pressed])].min()
    fine = static(np.linspace(0.0, travel, 100001))
    assert click == pytest.approx(fine.max() - fine[np.argmax(fine) :].min(), abs=1e-3)
    assert click == pytest.approx(0.683, abs=1e-3)  # N, of a peak of 1.109 N
    # in a tap the cap's mass and damper are felt as well, the click is still there
    _, y, _, quick, _ = led("push_button", "tap", 0.02)
    pressed = (np.arange(len(y)) < 2000) & (y < travel)
    peak = np.argmax(np.where(pressed, quick, 0.0))
    assert quick[peak] > force.max(initial=0.0, where=before) + 0.05
    assert quick[peak] - quick[pressed][peak:].min() > 0.6


def test_the_switch_s_moment_over_its_angle():
    """Led slowly: ``k (free - d) a l sin(q)/d``, zero and falling fastest in the middle, and the same backwards."""
    _, q, v, moment, _ = led("toggle_switch", "slowly", 2.0)
    a, arm, k, free = 20e-3, 12e-3, 800.0, 26e-3
    d = np.sqrt(a**2 + arm**2 - 2 * a * arm * np.cos(q))
    np.testing.assert_allclose(moment - 2e-5 * v, -k * (free - d) * a * arm * np.sin(q) / d, atol=5e-6)
    assert moment[0] * moment[-1] < 0.0  # over the centre it pulls
    assert np.abs(moment[0] - moment[-1]) / 25e-3 == pytest.approx(9.67, abs=0.02)  # N at the tip, from stop to stop


def test_the_latch_s_force_over_the_door_s_way_and_its_snap():
    """On the ramp of 45 degrees the bolt's spring is felt ``(1 + mu)/(1 - mu)`` times, beside the seal; behind it not.

    Bodies of 2 kg and 50 g led along 43 mm in 4 s add less than 0.05 N.
    """
    run, x, v, force, rows = led("latch_door", "gently", 4.0)
    ramp = np.array([mode == "touch_face2_slide" for mode in rows.modes])
    assert ramp.sum() > 200
    bolt = 3.0 + 600.0 * -rows["b"] + 2.0 * -rows["b_dot"]
    expected = 80.0 * x + 12.0 * v + bolt * 1.1 / 0.9
    np.testing.assert_allclose(force[ramp], expected[ramp], atol=0.05)
    snaps = next(i for i, cause in enumerate(x.cause for x in run.transitions) if "touch_4 opens" in cause)
    behind = np.array([mode == "out_closed" for mode in rows.modes]) & (rows.t > run.transitions[snaps].time)
    np.testing.assert_allclose(force[behind], (80.0 * x + 12.0 * v)[behind], atol=0.05)
    assert force[ramp].max() - (80.0 * x + 12.0 * v)[ramp][np.argmax(force[ramp])] > 8.0  # N, what snaps off
