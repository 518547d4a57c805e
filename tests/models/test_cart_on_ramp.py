"""The cart whose wheels lift: where it rears, how it climbs and flies, by Newton's and Euler's laws for the whole."""

import numpy as np
import pytest

import fsm_dyn

m, m_wheel, J_wheel, rho, h, behind, ahead, g = 8.0, 0.4, 1.5e-3, 0.08, 0.2, 0.22, 0.28, 9.81
MASS = m + 2 * m_wheel
SLOPE = np.arctan2(0.28, 1.2)


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("cart_on_ramp")


@pytest.fixture(scope="module")
def run(graph):
    return fsm_dyn.simulate(graph, until=2.5)


def test_the_torque_at_which_it_rears(graph):
    """About where the rear wheel stands: ``M g b = M a h + J a/rho``, the torque ``a (M rho + J/rho)``.

    The front wheel bears nothing then, and so nobody turns it.  The torque grows by 1 N m/s; just before it lifts, the
    front wheel slips and the law bends by what turns it, which is less than 1 %.
    """
    high = (m * (rho + h) + 2 * m_wheel * rho) / MASS
    before = (m * behind + m_wheel * (behind + ahead)) / MASS
    acceleration = g * before / (high + J_wheel / (MASS * rho))
    torque = acceleration * (MASS * rho + J_wheel / rho)
    slow = {"drive": {"linear": [(0.0, 4.0), (4.0, 8.0)]}}
    run = fsm_dyn.simulate(graph, until=4.0, inputs=slow, initial={"x": -60.0})
    lifts = next(x for x in run.transitions if "front opens" in x.cause)
    assert lifts.target == "rearing"
    assert 4.0 + lifts.time == pytest.approx(torque, rel=0.01)


def test_each_wheel_lifts_climbs_and_lands_by_itself(run):
    seen = [run.modes[0], *(x.target for x in run.transitions)]
    wanted = ["rolling", "rearing", "climbing", "rear_up_face_stick", "flying", "front_stick", "rolling"]
    rest = iter(seen)
    assert all(mode in rest for mode in wanted), seen  # in this order


def test_it_slows_down_as_a_rolling_body_does_uphill(run):
    """``a = -M g sin(slope)/(M + 2 J/rho²)`` along the ramp, with both wheels on it."""
    up = [x.time for x in run.transitions if x.target == "climbing"][-1]
    off = next(x.time for x in run.transitions if x.cause.startswith("front_up_face leaves"))
    begin = max(up, 1.0)  # the motor is off
    speed = run.sample([begin + 1e-6, off - 1e-6])["speed"] / np.cos(SLOPE)
    expected = -MASS * g * np.sin(SLOPE) / (MASS + 2 * J_wheel / rho**2)
    assert np.diff(speed)[0] / (off - begin - 2e-6) == pytest.approx(expected, rel=1e-8)


def test_it_flies_on_a_parabola(run):
    """The centre of mass of cart and wheels, whatever it turns."""
    off = next(x.time for x in run.transitions if x.target == "flying")
    lands = next(x.time for x in run.transitions if x.time > off)
    times = np.linspace(off + 1e-9, lands - 1e-9, 7)
    rows = run.sample(times)
    q = rows["q"]
    x = rows["x"] + m_wheel * ((ahead - behind) * np.cos(q) + 2 * h * np.sin(q)) / MASS
    y = rows["y"] + m_wheel * ((ahead - behind) * np.sin(q) - 2 * h * np.cos(q)) / MASS
    assert np.polyfit(times, y, 2)[0] == pytest.approx(-g / 2, rel=1e-7)
    assert abs(np.polyfit(times, x, 2)[0]) < 1e-6
