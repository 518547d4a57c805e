"""The shipped run of the shopping cart: it sticks, breaks away and sticks again, and its energies add up."""

import numpy as np
import pytest

import fsm_dyn


@pytest.fixture(scope="module")
def run():
    return fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), until=6.0, rtol=1e-10, atol=1e-12)


def test_sticks_breaks_away_and_sticks_again(run):
    changes = [(x.source, x.target) for x in run.transitions if x.source != x.target]
    sticks, breaks = ("rolling", "sticking"), ("sticking", "rolling")
    assert changes[:3] == [sticks, breaks, sticks]


def test_torque_stays_within_the_bound_while_sticking(run):
    sticking = np.array(run.modes) == "sticking"
    assert np.abs(run.multipliers["caster_axis"][sticking]).max() <= 0.40 * (1 + 1e-9)
    np.testing.assert_allclose(np.abs(run.multipliers["caster_axis"][~sticking]), 0.25, rtol=1e-12)


def test_break_away_happens_at_the_bound(run):
    k = next(i for i, x in enumerate(run.transitions) if x.source == "sticking")
    row = np.flatnonzero(run.t == run.transitions[k].time)[0]
    assert abs(run.multipliers["caster_axis"][row, 0]) == pytest.approx(0.40, rel=1e-9)


def test_constraints_hold(run):
    """The front wheel never skids sideways, and the axis does not turn while it sticks."""
    q4 = run.q[:, 3]
    u1, u2, u3 = run.u.T
    np.testing.assert_allclose(-np.sin(q4) * u1 + 0.70 * np.cos(q4) * u2 - 0.12 * u3, 0.0, atol=1e-12)
    sticking = np.array(run.modes) == "sticking"
    np.testing.assert_allclose((u3 - u2)[sticking], 0.0, atol=1e-12)


def test_energy_balance_closes(run):
    """Work in, friction loss and what is left agree to 1e-8 of the work done."""
    assert run.energy.relative_residual <= 1e-8
