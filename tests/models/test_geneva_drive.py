"""The Geneva drive against its closed form: the wheel follows the pin, and stands between two turns."""

import numpy as np
import pytest

import fsm_dyn

HALF, TURN = np.pi / 4, 2 * np.pi  # of a crank that turns once a second
PLAY = 0.05 / 14.6  # the pin's play over the least distance of the pin from the wheel's axis


@pytest.fixture(scope="module")
def run():
    return fsm_dyn.simulate(fsm_dyn.compile("geneva_drive"), until=2.0)


def test_the_wheel_follows_the_pin(run):
    """``tan s = sin(half) sin c/(1 - sin(half) cos c)`` while the pin is in a slot, within its play."""
    times = np.linspace(0.39, 0.61, 45)
    rows = run.sample(times)
    c = rows["c"] - TURN
    ideal = np.arctan2(np.sin(HALF) * np.sin(c), 1 - np.sin(HALF) * np.cos(c)) + np.pi / 2
    assert np.abs(rows["s"] - ideal).max() < 1.1 * PLAY


def test_the_ratio_in_the_middle(run):
    """Pushed, the wheel turns ``sin(half)/(1 - sin(half))`` times as fast as the crank when the pin is nearest.

    The pin lies at the slot's side, ``pin + play`` from its middle, which turns the wheel by the play.
    """
    middle = run.sample([0.5])
    assert middle["ratio"][0] == pytest.approx(np.sin(HALF) / (1 - np.sin(HALF)), rel=2e-3)


def test_a_quarter_a_turn_and_rest_between(run):
    after = run.sample([0.0, 0.99, 1.99])["s"]
    np.testing.assert_allclose(np.diff(after), np.pi / 2, atol=2e-3)
    held = run.sample(np.linspace(0.8, 1.3, 20))
    assert np.ptp(held["s"]) < 2e-3


def test_what_the_handle_gives_is_lost_or_kept(run):
    """The torque at the handle rises as the wheel is pushed on, and turns round as it is braked."""
    torque = run.sample(np.linspace(0.39, 0.5, 30)).multipliers["drive"][:, 0]
    braked = run.sample(np.linspace(0.53, 0.62, 30)).multipliers["drive"][:, 0]
    assert torque.max() > 0.01
    assert braked.min() < -0.01
    assert run.energy.relative_residual < 1e-8


def test_pushed_against_it_the_disk_holds_the_wheel():
    """A wheel that turns by itself is stopped by the horns after no more than their play."""
    graph = fsm_dyn.compile("geneva_drive")
    run = fsm_dyn.simulate(graph, until=0.3, initial={"s_dot": 0.5})
    assert any(x.cause.startswith(("holds_left", "holds_right")) for x in run.transitions)
    loose = 0.05 / 22.0  # over the horns' lever about the wheel's axis, at the angle at which the disk meets them
    assert np.abs(run["s"] - run["s"][0]).max() < 2 * loose
