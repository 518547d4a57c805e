"""Scenarios: named schedules of the model, in a run, in variants, and what is refused."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.language.loader import with_scenario
from fsm_dyn.run.input_signals import resolve_inputs

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


@pytest.mark.parametrize("at_bound", [False, True])
def test_inputs_are_made_again_for_what_they_depend_on_and_nothing_else(monkeypatch, at_bound):
    """A model that jumps at an instant has this instant among its inputs, and that may depend on any parameter."""
    load = {"force": "where(t < (0.1 s)*m/(2 kg), 1 N, 0 N)*N.x", "at": "P"}
    model = {**MODEL, "loads": [*MODEL["loads"], load]} if at_bound else MODEL
    graph = fsm_dyn.compile(model)
    simulator, made = fsm_dyn.Simulator(graph), []

    def counted(automaton, parameters, *others):
        made.append((parameters["m"], parameters["F"]))
        return resolve_inputs(automaton, parameters, *others)

    monkeypatch.setattr("fsm_dyn.run.run_setup.resolve_inputs", counted)
    points = [(2.0, 4.0), (3.0, 4.0), (3.0, 5.0), (2.0, 5.0), (2.0, 4.0)]
    runs = [simulator.run(1.0, scenario="kick", parameters={"m": m, "F": force}) for m, force in points]
    assert made == (points[:4] if at_bound else [points[0], points[2]])
    for run, (m, force) in zip(runs, points, strict=True):
        alone = fsm_dyn.Simulator(graph).run(1.0, scenario="kick", parameters={"m": m, "F": force})
        assert run.record.x.tobytes() == alone.record.x.tobytes()


def test_a_run_lasts_as_long_as_its_drive(graph):
    assert fsm_dyn.simulate(graph, scenario="long").t[-1] == 7.0
    assert fsm_dyn.simulate(graph, scenario="kick").t[-1] == 5.0


def test_a_variant_may_change_one():
    from fsm_dyn.language.loader import load as load_mechanism

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


# -- one rule: a number is in SI units, a text may carry a unit ------------------------------------------------------

RIGHT = [4.0, "4", "4 N", "4000 mN", "m*2 m/s^2", "(2 + 2)*1 N"]
WRONG = ["4 m", "4 N*m", "4 kg", "4 N + 4 m"]


def start(graph, **arguments):
    """Return the input and the coordinate in the first row of a run."""
    run = fsm_dyn.simulate(graph, until=0.01, **arguments)
    return run["push"][0], run["x"][0]


@pytest.mark.parametrize("value", RIGHT)
def test_a_number_is_in_si_units_and_a_text_may_carry_one(graph, value):
    assert start(graph, inputs={"push": value})[0] == pytest.approx(4.0)
    assert start(graph, inputs={"push": {"constant": value}})[0] == pytest.approx(4.0)
    assert start(graph, inputs={"push": [(0.0, value), ("1 s", value)]})[0] == pytest.approx(4.0)
    assert start(graph, inputs={"push": {"steps": [["-100 ms", 0.0], ["0", value]]}})[0] == pytest.approx(4.0)
    if value != "m*2 m/s^2":  # of a parameter, which only inputs and initial values may be
        assert start(graph, parameters={"F": value}, inputs={"push": "F"})[0] == pytest.approx(4.0)
        length = value.replace("N", "m") if isinstance(value, str) else value
        assert start(graph, initial={"x": length})[1] == pytest.approx(4.0)


@pytest.mark.parametrize("value", WRONG)
def test_a_text_of_another_unit_is_refused_everywhere(graph, value):
    for arguments in (
        {"inputs": {"push": value}},
        {"inputs": {"push": {"expression": value}}},
        {"inputs": {"push": [(0.0, value)]}},
        {"inputs": {"push": {"linear": [["0 s", value], ["1 s", 0.0]]}}},
        {"parameters": {"F": value}},
        {"initial": {"x": value.replace("4 m", "4 N")}},
    ):
        with pytest.raises(InputError, match=r"wrong unit|units do not match"):
            start(graph, **arguments)


def test_times_of_a_table_are_times(graph):
    with pytest.raises(InputError, match="a time of input 'push' has the wrong unit"):
        start(graph, inputs={"push": [["0 m", "1 N"]]})
    with pytest.raises(InputError, match="a row of its table is a time and a value"):
        start(graph, inputs={"push": [1.0, 2.0]})
    run = fsm_dyn.simulate(graph, until=0.02, inputs={"push": "4 N*sin(2*t)"})  # numbers without a unit fit any
    assert run["push"][-1] == pytest.approx(4.0 * np.sin(0.04))


# -- a scenario as the schedules of a model, for live runs ------------------------------------------------------------


def written(schedule):
    """Return a schedule as text, without the places of its values in a file."""
    if schedule is None:
        return None
    return schedule.kind, [str(time) for time in schedule.times], [str(value) for value in schedule.values]


@pytest.mark.parametrize("name", ["geneva_drive", "gripper", "latch_door", "seat_belt_reel", "toggle_switch"])
def test_a_model_with_a_scenario_schedules_what_the_scenario_does(name):
    mechanism = fsm_dyn.load(name)
    for scenario, schedules in mechanism.scenarios.items():
        inputs = with_scenario(mechanism, scenario).inputs
        for each, declared in mechanism.inputs.items():
            assert written(inputs[each].schedule) == written(schedules.get(each, declared.schedule))
            assert inputs[each].unit == declared.unit


def test_it_runs_as_the_scenario_does(graph):
    own = fsm_dyn.compile(with_scenario(graph.automaton.mechanism, "kick"))
    run, same = fsm_dyn.simulate(own, until=1.0), fsm_dyn.simulate(graph, until=1.0, scenario="kick")
    # the mechanism's own units follow from the values in its file: steps differ, within the tolerance of the method
    assert run["x_dot"][-1] == pytest.approx(same["x_dot"][-1], rel=1e-8)
    assert run["x"][-1] == pytest.approx(same["x"][-1], rel=1e-8)
    with pytest.raises(InputError, match="has no scenario 'kik'"):
        with_scenario(graph.automaton.mechanism, "kik")
