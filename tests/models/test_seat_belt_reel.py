"""The inertial reel: it pays out for who leans forward, and locks where the pawl's inertia beats its spring."""

import numpy as np
import pytest

import fsm_dyn

THRESHOLD = 6e-4 / 8e-7  # rad/s², of the reel


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("seat_belt_reel")


@pytest.fixture(scope="module")
def run(graph):
    return fsm_dyn.simulate(graph, until=2.4)


def test_it_pays_out_for_a_passenger_who_leans_forward(run):
    before = run.sample(np.linspace(0.0, 1.99, 50))
    assert before["x"].max() > 0.25
    assert np.abs(before["b"]).max() < 1e-9  # the pawl rests
    # all that while the belt pulls with little more than the retractor's torque over the reel's radius
    assert before.multipliers["taut"][:, 0].max() == pytest.approx(0.12 / 0.02, rel=0.2)


def test_it_locks_within_a_tooth_or_two_in_a_crash(run):
    locks = next(x for x in run.transitions if x.cause.startswith("tooth_"))
    paid = 0.02 * (run["q"][-1] - run.sample([2.0])["q"][0])
    assert 2.0 < locks.time < 2.05
    assert 0.02 * (run.sample([locks.time])["q"][0] - run.sample([2.0])["q"][0]) < 2 * 0.02 * np.deg2rad(30)
    assert paid < 0.04
    held = run.sample(np.linspace(2.06, 2.2, 15))
    assert np.ptp(held["q"]) < 1e-9  # the reel stands, the belt stretches
    np.testing.assert_allclose(held["b"], np.deg2rad(30), atol=1e-9)  # swung out to its stop
    assert run.multipliers["taut"][:, 0].max() > 2e3


def test_the_pawl_lets_go_once_the_belt_is_slack(run):
    locks = next(x.time for x in run.transitions if x.cause.startswith("tooth_"))
    opens = next(x.time for x in run.transitions if x.time > locks and "tooth" in x.cause and "opens" in x.cause)
    back = next(x.time for x in run.transitions if x.time > opens and x.cause.startswith("pawl_stop_lower closes"))
    assert opens < back < opens + 0.05


def test_the_threshold_is_the_pawl_s_spring_over_its_inertia(graph):
    """With a deceleration that grows slowly, the pawl leaves its stop where the reel reaches that acceleration.

    The belt's stretch follows within microseconds; ``m x'' = m a - T`` with ``T = retract/r + J x''/r² + ...``.
    """
    growing = {"lean": 0.0, "deceleration": {"linear": [(0.0, 0.0), (0.5, 40.0)]}}
    run = fsm_dyn.simulate(graph, until=0.5, inputs=growing)
    swings = next(x.time for x in run.transitions if x.cause.startswith("pawl_stop_lower opens"))
    dt = 1e-4
    rates = run.sample([swings - dt, swings])["q_dot"]
    assert np.diff(rates)[0] / dt == pytest.approx(THRESHOLD, rel=1e-3)
    q_dot = rates[1]
    J = 4e-5 + 5e-3 * 0.025**2 + 8e-7
    pull = 40.0 * 80.0 * swings - 80.0 * 0.02 * q_dot - (0.12 + 1e-3 * q_dot) / 0.02
    assert pull / (40.0 + J / 0.02**2) / 0.02 == pytest.approx(THRESHOLD, rel=5e-3)


def test_a_stiffer_spring_lets_a_harder_start_pass(graph):
    """3 m/s² of braking does not lock it; with a twentieth of the spring it does."""
    braking = {"lean": 0.0, "deceleration": {"linear": [(0.0, 0.0), (0.2, 3.0), (0.5, 3.0)]}}

    def locked(spring):
        run = fsm_dyn.simulate(graph, until=0.5, inputs=braking, parameters={"pawl_spring": spring})
        return any(x.cause.startswith("tooth_") for x in run.transitions)

    assert not locked(6e-4)
    assert locked(3e-5)
