"""Tolerances of parameters: notation, refused cases, and no influence on a run."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.language.evaluate import Deviation, deviations
from fsm_dyn.language.loader import load
from fsm_dyn.language.values import parameter_values

TEXT = """
fsm_dyn: 1
name: drop
parameters:
  half: 0.05 kg
  m: {}
coordinates: {{y: m}}
points:
  C: {{from: O, at: y*N.y}}
bodies:
  ball: {{center: C, mass: m}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
"""


def model(mass):
    return load("drop", text=TEXT.format(mass))


@pytest.mark.parametrize(
    ("written", "value", "deviation"),
    [
        ("4 kg +- 0.1 kg", 4.0, Deviation(-0.1, 0.1)),
        ("4 kg ± 100 g", 4.0, Deviation(-0.1, 0.1)),
        ("4 kg +- 2*half", 4.0, Deviation(-0.1, 0.1)),
        ("{value: 4 kg, tolerance: [-0.2 kg, half]}", 4.0, Deviation(-0.2, 0.05)),
        ("{normal: 4 kg, sigma: 0.1 kg}", 4.0, Deviation(sigma=0.1)),
        ("{uniform: [3 kg, 4 kg]}", 3.5, Deviation(-0.5, 0.5)),
    ],
)
def test_value_and_deviation_are_read(written, value, deviation):
    mechanism = model(written)
    values = parameter_values(mechanism)
    assert values["m"] == value
    assert deviations(mechanism, values) == {"m": deviation}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("4 kg +- 0.1 m", "the tolerance of parameter 'm'"),
        ("4 kg +- -0.1 kg", "has the wrong sign"),
        ("4 kg +-", "a tolerance is incomplete"),
        ("4 kg +- 0.1 kg +- 0.2 kg", "not an expression|no meaning|wrong sign"),
        ("{normal: 4 kg, sigma: -1 kg}", "the standard deviation of parameter 'm' has the wrong sign"),
        ("{normal: 4 kg}", "make no tolerance"),
        ("{value: 4 kg, sigma: 1 kg}", "make no tolerance"),
        ("{value: 4 kg, tolerance: [0.1 kg, 0.2 kg]}", "the lower limit of parameter 'm' has the wrong sign"),
        ("{value: 4 kg, tolerance: [0.1 kg]}", "two limits are wanted"),
        ("{weibull: 4 kg}", "no key 'weibull'"),
        ("{uniform: [4 kg, 3 kg]}", "has the wrong sign"),
        ("[4 kg +- 1 kg, 2 kg]", "an element of a vector has no tolerance"),
    ],
)
def test_what_is_no_tolerance_is_refused_with_its_place(written, message):
    with pytest.raises(ModelError, match=message) as error:
        model(written)
    assert str(error.value).startswith("drop:6:"), str(error.value)


def test_an_override_has_no_tolerance():
    with pytest.raises(InputError, match="takes one value"):
        parameter_values(model("4 kg"), {"m": "4 kg +- 0.1 kg"})


def test_the_tolerance_of_a_component_remains_when_its_value_is_given(tmp_path):
    """Its deviation may be an expression of its parameters, under their new names."""
    (tmp_path / "part.yaml").write_text(TEXT.format("4 kg +- half"))
    whole = """
fsm_dyn: 1
name: whole
coordinates: {{x: m}}
points: {{P: {{from: O, at: x*N.x}}}}
bodies: {{base: {{center: P, mass: 1 kg}}}}
use: {{left: {{file: part.yaml, with: {{m: {}}}}}}}
"""
    (tmp_path / "whole.yaml").write_text(whole.format("5 kg"))
    mechanism = load(tmp_path / "whole.yaml")
    values = parameter_values(mechanism)
    assert values["left_m"] == 5.0
    assert deviations(mechanism, values) == {"left_m": Deviation(-0.05, 0.05)}
    (tmp_path / "whole.yaml").write_text(whole.format("5 kg +- 1 kg"))
    with pytest.raises(ModelError, match="given to a component has no tolerance"):
        load(tmp_path / "whole.yaml")


def test_a_run_uses_the_value_and_digests_of_before_remain():
    bare, wide = model("4 kg"), model("4 kg +- 0.1 kg")
    assert bare.digest != wide.digest
    runs = [fsm_dyn.simulate(fsm_dyn.compile(mechanism), until=0.5) for mechanism in (bare, wide)]
    assert runs[0].rows.x.tobytes() == runs[1].rows.x.tobytes()


def test_a_saved_automaton_keeps_tolerances(tmp_path):
    fsm_dyn.compile(model("4 kg ± 0.1 kg")).save(tmp_path / "drop.json")
    mechanism = fsm_dyn.open_graph(tmp_path / "drop.json").automaton.mechanism
    assert deviations(mechanism, parameter_values(mechanism)) == {"m": Deviation(-0.1, 0.1)}
