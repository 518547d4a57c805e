"""The implicit methods see every contact: guards are watched along their dense output."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import BDF, Radau

import fsm_dyn
from fsm_dyn.run import implicit_methods as dense_output
from tests.physics.campaign import Checked, Start
from tests.physics.starts import STARTS

STIFF = {"rtol": 1e-9, "atol": 1e-11}


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_a_long_step_does_not_pass_through_a_peg(method):
    """In free fall a step is as long as the run; it ends at the ground, and dips into a peg on the way."""
    graph = fsm_dyn.compile("twelve_contacts")
    exact = fsm_dyn.simulate(graph, 5.0, initial={"x": 0.07}, rtol=1e-11, atol=1e-13)
    run = fsm_dyn.simulate(graph, 5.0, initial={"x": 0.07}, method=method, **STIFF)
    assert [x.cause for x in run.transitions[:3]] == [x.cause for x in exact.transitions[:3]]
    np.testing.assert_allclose([x.time for x in run.transitions[:2]], [0.247309683, 0.322853663], atol=1e-8)


@pytest.mark.parametrize("method", ["radau", "bdf"])
@pytest.mark.parametrize("model", ["twelve_contacts", "box_on_table", "ball_in_corner", "sliding_rod"])
def test_no_gap_is_passed_through_from_random_starts(model, method):
    checked = Checked(model)
    for seed in range(15):
        rng = np.random.default_rng([seed, 19])
        given, until = STARTS[model](rng)
        start = Start(model, seed, until, options={"method": method, **STIFF}, **given)
        run = checked.run(start)
        assert run.outcome.name == "done", (str(start), run.describe_outcome())
        assert not list(checked.open_gaps(run)), str(start)


@pytest.mark.parametrize("kind", [Radau, BDF])
def test_dense_output_is_that_of_the_solver(kind):
    """Van der Pol: the polynomials agree with scipy's, and begin where the step before ended."""
    solver = kind(lambda t, y: [y[1], 20.0 * (1.0 - y[0] ** 2) * y[1] - y[0]], 0.0, [2.0, 0.0], 12.0, rtol=1e-5)
    method = dense_output.dense_method(2)
    orders = set()
    while solver.status == "running":
        before = solver.y.copy()
        solver.step()
        dense_output.follow(method, solver)
        orders.add(int(method.counts[3]))
        scale = 1e-12 * (1.0 + np.abs(before))
        for t in np.linspace(solver.t_old, solver.t, 7):
            theirs = solver.dense_output()(t)
            np.testing.assert_allclose(dense_output.state_at(method, 2, t), theirs, atol=1e-11, rtol=1e-11)
        assert np.array_equal(dense_output.state_at(method, 2, solver.t), solver.y)
        assert np.all(np.abs(dense_output.state_at(method, 2, solver.t_old) - before) <= 10 * scale)
    assert orders == ({3} if kind is Radau else orders & {1, 2, 3, 4, 5})
    assert len(orders) >= (1 if kind is Radau else 3)


GATE = {
    "fsm_dyn": 1,
    "name": "late_gate",
    "coordinates": {"x": "m"},
    "points": {"C": {"from": "O", "at": "x*N.x"}},
    "bodies": {"ball": {"center": "C", "mass": "1 kg"}},
    "speeds": {"v": "rate(x)"},
    "contacts": {"door": {"gap": "-x", "closes_if": "t > 1 s"}},
    "initial": {"x": "-0.5 m", "v": "1 m/s"},
}


@pytest.mark.parametrize("method", ["dopri5", "radau", "bdf"])
def test_a_contact_found_too_deep_in_mid_run_is_not_called_a_start(method):
    """A door that shuts while something stands in it: 0.5 m deep after 1 s."""
    run = fsm_dyn.simulate(fsm_dyn.compile(GATE), 2.0, method=method, on_failure="return", **STIFF)
    assert run.outcome.name == "penetration during the run"
    assert run.t[-1] >= 1.0
    assert any("deep" in line for line in run.describe_outcome())
