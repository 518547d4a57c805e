"""Groups of contacts that do not act on each other are decided apart: each moves as it would alone.

Rows of dominoes far from each other in one model are compared with each row alone in a model; and Newton's law holds
for all bodies together at every impact, to which the impulses between two dominoes contribute nothing.
"""

import numpy as np
import pytest

import fsm_dyn
from tests.campaigns.flush import MASS, dominoes

UNTIL = 0.6  # s
APART = 64.0  # m, a power of two, so that places are off by the rounding of 64 m alone
PER_BODY = 3  # coordinates


def knocked(rates, n=2):
    """Return the run of one row for each rate (rad/s) at which its first domino is turned about its front edge."""
    model = dominoes(n, len(rates), APART)
    for row, rate in enumerate(rates):
        model["initial"] |= {f"w{row * n}": rate, f"vx{row * n}": -0.1 * rate, f"vy{row * n}": -0.02 * rate}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), UNTIL)
    assert run.outcome.name == "done"
    return run


@pytest.fixture(scope="module")
def alone():
    return {rate: knocked([rate]) for rate in (-2.5, -3.0)}


@pytest.mark.parametrize("rates", [(-2.5, -2.5), (-2.5, -3.0), (-3.0, -2.5)])
def test_rows_in_one_model_fall_as_each_alone(alone, rates):
    together = knocked(rates)
    places = together.q[-1].reshape(len(rates), -1)
    speeds = together.u[-1].reshape(len(rates), -1)
    for row, rate in enumerate(rates):
        expected = alone[rate].q[-1].copy()
        expected[0::PER_BODY] += row * APART
        assert np.abs(places[row] - expected).max() <= 1e-9
        assert np.abs(speeds[row] - alone[rate].u[-1]).max() <= 1e-8
    times = sorted(change.time for change in together.transitions)
    for rate in set(rates):
        for change in alone[rate].transitions:
            assert np.abs(np.array(times) - change.time).min() <= 1e-10


def test_momentum_of_all_bodies_changes_by_the_impulses_of_the_ground(alone):
    """Those between dominoes are equal and opposite; normals of the ground point up, its tangents along N.x or -N.x."""
    impacts = 0
    for run in alone.values():
        for change in run.transitions:
            gain = MASS * (change.u_after - change.u_before).reshape(-1, PER_BODY)[:, :2].sum(axis=0)
            ground = np.array([push for name, push in change.impulse.items() if "slab" in name and "_face3" in name])
            if not len(ground):
                continue
            impacts += 1
            assert gain[1] == pytest.approx(ground[:, 0].sum(), abs=1e-12)
            assert abs(gain[0]) == pytest.approx(abs(ground[:, 1].sum()), abs=1e-12)
    assert impacts >= 4


def test_energy_is_only_lost(alone):
    for run in alone.values():
        assert run.energy.relative_residual <= 1e-8
        assert all(change.energy_after <= change.energy_before + 1e-9 for change in run.transitions)
