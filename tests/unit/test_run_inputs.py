"""Scenarios: named schedules of the model, in a run, in variants, and what is refused."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.errors import InputError, ModelError

MODEL = {
    "fsm_dyn": 1,
    "name": "cart",
    "parameters": {"m": "2 kg", "F": "4 N"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"cart": {"center": "P", "mass": "m"}},
    "inputs": {"push": "N", "drag": "N"},
    "schedule": {"drag": "1 N"},
    "scenarios": {
        "kick": {"push": {"steps": [["0 s", "F"], ["0.5 s", "0 N"]]}},
        "long": {"push": {"linear": [["0 s", "0 N"], ["7 s", "F"]]}, "drag": "0 N"},
    },
    "loads": [{"force": "(push - drag)*N.x", "at": "P"}],
    "variants": {"weak": {"scenarios": {"kick": {"push": "2 N"}}}},
}


def changed(**entries):
    return {**MODEL, "scenarios": {**MODEL["scenarios"], **entries}}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(MODEL)


def test_a_drive_is_its_schedule(graph):
    """Speeds by the impulse: F 0.5 s less drag for a second, over m; the other input keeps its schedule."""
    run = fsm_dyn.simulate(graph, until=1.0, scenario="kick")
    assert run["x_dot"][-1] == pytest.approx((4 * 0.5 - 1.0) / 2)
    same = fsm_dyn.simulate(graph, until=1.0, inputs={"push": {"steps": [(0.0, 4.0), (0.5, 0.0)]}})
    np.testing.assert_array_equal(run.q, same.q)
    assert fsm_dyn.simulate(graph, until=1.0)["x_dot"][-1] == pytest.approx(-0.5)


def test_its_expressions_follow_the_parameters_and_inputs_go_before_it(graph):
    run = fsm_dyn.simulate(graph, until=1.0, scenario="kick", parameters={"F": 8.0})
    assert run["x_dot"][-1] == pytest.approx((8 * 0.5 - 1.0) / 2)
    run = fsm_dyn.simulate(graph, until=1.0, scenario="kick", inputs={"drag": 0.0})
    assert run["x_dot"][-1] == pytest.approx(1.0)


def test_a_run_lasts_as_long_as_its_drive(graph):
    assert fsm_dyn.simulate(graph, scenario="long").t[-1] == 7.0
    assert fsm_dyn.simulate(graph, scenario="kick").t[-1] == 5.0


def test_a_variant_may_change_one():
    from fsm_dyn.spec import load as load_mechanism

    weak = fsm_dyn.compile(load_mechanism(MODEL, variant="weak"))
    assert fsm_dyn.simulate(weak, until=1.0, scenario="kick")["x_dot"][-1] == pytest.approx(0.5)


def test_what_is_unknown_or_does_not_fit_is_refused(graph):
    with pytest.raises(InputError, match="no scenario 'kik'"):
        fsm_dyn.simulate(graph, scenario="kik")
    with pytest.raises(ModelError, match="no input 'pull'"):
        fsm_dyn.load(changed(odd={"pull": "1 N"}))
    with pytest.raises(ModelError, match="scenario 'odd'"):
        fsm_dyn.load(changed(odd={"push": "1 m"}))
    with pytest.raises(ModelError, match="times must increase"):
        fsm_dyn.load(changed(odd={"push": {"linear": [["1 s", "1 N"], ["0 s", "1 N"]]}}))
