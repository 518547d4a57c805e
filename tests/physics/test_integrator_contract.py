"""What every integrator must do: its order, events, dense output, breakpoints of inputs, stiff systems.

One list of methods, one test for each property, after the shared tests that integrators have in Drake.  The systems are
linear or in free fall, so that every expected value is a closed form.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.run_options import all_methods

ORDER = {"euler": 1, "heun": 2, "rk4": 4, "moreau_jean": 2}  # of methods with fixed steps, between impacts
ADAPTIVE = [name for name in all_methods() if name not in ORDER]
IMPLICIT = ("radau", "bdf")
FALL = np.sqrt(0.2)  # s, from 1 m with g = 10 m/s^2

OSCILLATOR = {
    "fsm_dyn": 1, "name": "oscillator", "coordinates": {"x": "m"}, "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "1 kg"}}, "parameters": {"k": "1 N/m"}, "inputs": {"push": "N"},
    "loads": [{"force": "(push - k*x)*N.x", "at": "P"}], "initial": {"x": "1 m"},
}  # fmt: skip
BALL = {
    "fsm_dyn": 1, "name": "ball", "coordinates": {"y": "m"}, "points": {"P": {"from": "O", "at": "y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": "1 kg"}}, "loads": [{"gravity": "-10 m/s^2*N.y"}],
    "contacts": {"ground": {"gap": "y", "restitution": 0.5}}, "initial": {"y": "1 m"},
}  # fmt: skip
RELAXED = {
    "fsm_dyn": 1, "name": "relaxed", "coordinates": {"x": "m"}, "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "1 g"}}, "parameters": {"k": "10 N/m", "d": "100 N*s/m"},
    "loads": [{"force": "-(k*x + d*x_dot)*N.x", "at": "P"}], "initial": {"x": "1 m"},
}  # fmt: skip


@pytest.fixture(scope="module")
def graphs():
    return {model["name"]: fsm_dyn.compile(fsm_dyn.load(model)) for model in (OSCILLATOR, BALL, RELAXED)}


def swing(graph, method, accuracy, until=4.0, **options):
    """Run the oscillator with a step, s, or a relative tolerance."""
    size = {"step": accuracy} if method in ORDER else {"rtol": accuracy, "atol": accuracy}
    return fsm_dyn.simulate(graph, until, method=method, **size, **options)


def error_at_end(run):
    return abs(run.q[-1, 0] - np.cos(run.t[-1])) + abs(run.u[-1, 0] + np.sin(run.t[-1]))


@pytest.mark.parametrize("method", ORDER)
def test_halved_steps_give_the_error_of_the_order(graphs, method):
    coarse, fine = (error_at_end(swing(graphs["oscillator"], method, 4.0 / n)) for n in (128, 256))
    assert np.log2(coarse / fine) == pytest.approx(ORDER[method], abs=0.25)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_the_error_follows_the_tolerance(graphs, method):
    errors = [error_at_end(swing(graphs["oscillator"], method, rtol)) for rtol in (1e-5, 1e-7, 1e-9)]
    for rtol, error in zip((1e-5, 1e-7, 1e-9), errors, strict=True):
        assert error < 100 * rtol  # over four seconds; bdf comes to 40
    assert errors[0] > 10 * errors[2]


@pytest.mark.parametrize("method", all_methods())
def test_between_rows_the_error_is_that_of_the_rows(graphs, method):
    run = swing(graphs["oscillator"], method, 4.0 / 256 if method in ORDER else 1e-7)
    times = np.linspace(0.0, 4.0, 1001)
    between = np.abs(run.sample(times).q[:, 0] - np.cos(times)).max()
    rows = np.abs(run.q[:, 0] - np.cos(run.t)).max()
    assert between <= 3.0 * rows + 1e-7


@pytest.mark.parametrize("method", all_methods())
def test_an_impact_is_where_and_as_fast_as_it_must(graphs, method):
    run = swing(graphs["ball"], method, 1e-3 if method in ORDER else 1e-9, until=1.0)
    impact = run.transitions[0]
    # located to the order of the method; Moreau and Jean's steps locate nothing
    error = {"euler": 2e-3, "moreau_jean": 2e-3}.get(method, 1e-7)
    assert impact.time == pytest.approx(FALL, abs=error)
    assert impact.u_before[0] == pytest.approx(-10 * FALL, abs=20 * error)
    assert impact.u_after[0] == pytest.approx(5 * FALL, abs=20 * error)
    assert run.q.min() > -max(error * 5.0, 1e-9) * (10.0 if method == "moreau_jean" else 1.0)


@pytest.mark.parametrize("method", all_methods())
def test_steps_end_where_an_input_jumps(graphs, method):
    """From rest at 0 under a force of 1 N from t = 1/3 s on: x = 1 - cos(t - 1/3)."""
    jump = 1 / 3
    run = swing(
        graphs["oscillator"], method, 1e-3 if method in ORDER else 1e-9, until=2.0,
        inputs={"push": {"steps": [[0.0, 0.0], [jump, 1.0]]}}, initial={"x": 0.0},
    )  # fmt: skip
    if method != "moreau_jean":  # whose steps all have one length
        assert jump in run.t
    before = run.t < jump - 1e-3
    np.testing.assert_array_equal(run.q[before], 0.0)
    error = {"euler": 2e-3, "moreau_jean": 2e-3}.get(method, 1e-6)
    assert run.q[-1, 0] == pytest.approx(1.0 - np.cos(2.0 - jump), abs=error)


@pytest.mark.parametrize("method", all_methods())
def test_a_stiff_system_is_right_or_its_end_is_named(graphs, method):
    """Rates of 0.1 and 1e5 1/s: no method may return a wrong state as a run that is done."""
    run = swing(
        graphs["relaxed"], method, 1e-3 if method in ORDER else 1e-6, until=0.5, max_steps=400_000, on_failure="return"
    )
    if run.outcome.name == "done":
        assert run.q[-1, 0] == pytest.approx(np.exp(-0.05), abs=1e-3)
    else:
        assert run.outcome.failed
    if method in IMPLICIT:
        assert run.outcome.name == "done"
        assert len(run.t) < 400
