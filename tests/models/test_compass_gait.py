"""The compass gait on 3 degrees against what Goswami, Thuilot and Espiau (1998) published."""

import numpy as np
import pytest

import fsm_dyn


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("compass_gait")


def cycle_of(graph, **more):
    return fsm_dyn.limit_cycle(graph, "right_foot closes", advancing=["x"], symmetry={"qL": "qR", "qR": "qL"}, **more)


def test_its_cycle_is_the_published_one(graph):
    """Angles and rates just after the step: 0.3234, -0.2187 rad; 0.3772, 1.0918 rad/s, given to four digits.

    The rates were read off a run that had come near its cycle; 1e-3 covers the difference.
    """
    cycle = cycle_of(graph)
    np.testing.assert_allclose(cycle.q[2:], [0.3234, -0.2187], atol=1e-4)
    np.testing.assert_allclose(cycle.u[2:], [0.3772, 1.0918], atol=1e-3)
    assert np.abs(cycle.floquet_multipliers).max() < 1.0  # it is stable


def test_both_feet_stand_on_the_slope_when_they_change(graph):
    cycle = cycle_of(graph)
    assert cycle.q[2] + cycle.q[3] == pytest.approx(2 * np.deg2rad(3.0), abs=1e-9)


def test_the_cycle_does_not_depend_on_where_it_is_sought_from(graph):
    again = cycle_of(graph, initial={"qL_dot": 1.12, "qR_dot": 0.33})
    assert again.period == pytest.approx(cycle_of(graph).period, abs=1e-8)


def test_a_step_loses_what_the_slope_gives(graph):
    run = fsm_dyn.simulate(graph, until=8.0)
    late = [x.energy_after - x.energy_before for x in run.transitions if x.time > 6.0]
    cycle = cycle_of(graph)
    stride = 2 * np.sin(0.5 * (cycle.q[2] - cycle.q[3]))
    np.testing.assert_allclose(late, -20.0 * 9.81 * stride * np.sin(np.deg2rad(3.0)), rtol=1e-3)
