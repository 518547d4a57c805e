"""The disk on a ramp: the instants at which slip ends and begins, in closed form."""

import numpy as np
import pytest

import fsm_dyn
from mechanisms.rolling_disk import push_that_breaks_rolling, rolling_acceleration, slip_ends

M, R, G, MU, E, PHI = 2.0, 0.1, 9.81, 0.35, 0.2, np.deg2rad(12.0)
DOWN, PRESS = G * np.sin(PHI), G * np.cos(PHI)


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("rolling_disk")


@pytest.fixture(scope="module")
def run(graph):
    return fsm_dyn.simulate(graph, until=4.0, rtol=1e-10, atol=1e-12)


def test_slip_of_an_initial_spin_ends(run):
    """Slip speed -4 m/s decays at 3 μ g cos φ - g sin φ (uniform disk: friction acts on spin twice over)."""
    x = run.transitions[0]
    assert (x.source, x.target) == ("sliding", "rolling")
    assert x.time == pytest.approx(slip_ends(4.0, MU, PHI), abs=1e-9)


def test_slip_begins_under_a_growing_push(run):
    """Rolling takes a third of push - m g sin φ as friction; the limit is μ m g cos φ."""
    x = run.transitions[1]
    assert (x.source, x.target) == ("rolling", "sliding")
    assert x.time == pytest.approx(1.2 + 0.4 * push_that_breaks_rolling(M, MU, PHI) / 40.0, abs=1e-9)


def test_slip_ends_after_the_push(run):
    """From the onset on the slip acceleration is (push - m g sin φ)/m - 3 μ g cos φ; its integral returns to 0."""
    begin, end = run.transitions[1].time, run.transitions[2].time
    assert (run.transitions[2].source, run.transitions[2].target) == ("sliding", "rolling")

    def push_integral(t):  # of the piecewise linear push from 1.2 s
        rise = np.clip(t - 1.2, 0.0, 0.4)
        fall = np.clip(t - 1.6, 0.0, 0.2)
        return 50.0 * rise**2 + 40.0 * fall - 100.0 * fall**2

    gained = (push_integral(end) - push_integral(begin)) / M - (DOWN + 3 * MU * PRESS) * (end - begin)
    assert gained == pytest.approx(0.0, abs=1e-8)


def test_lifts_when_the_pull_exceeds_the_weight_and_lands(run):
    lifting = next(x for x in run.transitions if x.target == "flying")
    assert lifting.time == pytest.approx(2.2, abs=1e-12)
    rise = (30.0 / M - PRESS) * 0.4
    height = 0.5 * (30.0 / M - PRESS) * 0.4**2
    fall = (rise + np.sqrt(rise**2 + 2 * PRESS * height)) / PRESS
    landing = next(x for x in run.transitions if x.impulse)
    assert landing.time == pytest.approx(2.6 + fall, abs=1e-9)
    normal, tangent = landing.impulse["ramp"]
    down = np.sqrt(rise**2 + 2 * PRESS * height)
    assert normal == pytest.approx(M * (1 + E) * down, rel=1e-9)
    assert abs(tangent) <= MU * normal * (1 + 1e-12)


def test_normal_force_is_in_evidence(run):
    rolling = np.array(run.modes) == "rolling"
    normal = run.multipliers["ramp"][rolling & (run.t < 2.0), 0]
    np.testing.assert_allclose(normal, M * PRESS, rtol=1e-10)
    flying = np.array(run.modes) == "flying"
    np.testing.assert_array_equal(run.multipliers["ramp"][flying], 0.0)


def test_energy_balance_closes(run):
    assert run.energy.relative_residual <= 1e-8


def test_stick_limit(graph):
    """A uniform disk rolls while tan φ ≤ 3 μ and slides from rest beyond (Gillespie 2003, Example 1)."""
    quiet = {"push": 0.0, "lift": 0.0}
    start = {"mode": "rolling", "u1": 0.0, "u2": 0.0}
    limit = np.tan(PHI) / 3.0
    holds = fsm_dyn.simulate(graph, until=0.5, inputs=quiet, initial=start, parameters={"mu": 1.001 * limit})
    slips = fsm_dyn.simulate(graph, until=0.5, inputs=quiet, initial=start, parameters={"mu": 0.999 * limit})
    assert set(holds.modes) == {"rolling"}
    assert slips.modes[-1] == "sliding"
    np.testing.assert_allclose(holds.u[-1, 0], rolling_acceleration(PHI) * 0.5, rtol=1e-8)
