"""Samples and searches over initial values, inputs and amplitudes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis.study_variables import varied_quantities
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.evaluate import Deviation
from fsm_dyn.language.loader import load

TEXT = """
fsm_dyn: 1
name: cart
parameters: {m: 2 kg +- 0.1 kg, k: 3 N/m}
coordinates: {x: m}
points: {C: {from: O, at: x*N.x}}
bodies: {cart: {center: C, mass: m}}
inputs: {F: N}
schedule: {F: {linear: [[0 s, 2 N], [1 s, 2 N]]}}
loads: [{force: F*N.x, at: C}]
initial: {x: 0 m, x_dot: 0 m/s}
requirements: {near: final(x) < 1 m}
"""
UNTIL = 1.0  # s; x = x0 + v0 t + F/(2 m) t^2


@pytest.fixture(scope="module")
def cart():
    return fsm_dyn.compile(load("cart", text=TEXT))


def end(columns):
    """Return x at the end of each run."""
    force = 2.0 * columns.get("amplitude.F", 1.0) if "input.F" not in columns else columns["input.F"]
    return columns.get("initial.x", 0.0) + columns.get("initial.x_dot", 0.0) + force / (2.0 * columns["m"])


@pytest.mark.parametrize(
    "vary",
    [
        {"initial.x": "0.4 m +- 20 cm", "initial.x_dot": {"normal": "0 m/s", "sigma": "5 cm/s"}},
        {"amplitude.F": {"normal": 1, "sigma": 0.2}},
        {"input.F": {"uniform": ["1 N", "5 N"]}},
        {"input.F": (1.0, 5.0), "initial.x": {"value": 0.1, "tolerance": [-0.1, "5 cm"]}},
    ],
)
def test_margins_are_those_of_the_closed_form(cart, vary):
    found = fsm_dyn.tolerance_study(cart, n=16, seed=1, sample="lhs", vary=vary, until=UNTIL, jobs=1)
    assert [*found.parameters] == ["m", *vary]
    assert np.ptp(list(found.parameters.values()), axis=1).all()
    np.testing.assert_allclose(found.margins["near"], 1.0 - end(found.parameters), rtol=0.0, atol=1e-9)
    assert found.units.get("initial.x", "m") == "m"


def test_what_is_given_replaces_the_tolerance_of_the_file(cart):
    found = varied_quantities(cart, {"m": {"normal": "1 kg", "sigma": "10 g"}}, {})
    assert [(item.nominal, item.deviation) for item in found.values()] == [(1.0, Deviation(sigma=0.01))]
    assert [*varied_quantities(cart, None, {})] == ["m"]
    assert not varied_quantities(cart, None, {}, tolerances=False)


def test_the_worst_case_of_initial_value_and_amplitude(cart):
    box = {"initial.x": ("0 m", "20 cm"), "amplitude.F": "1 +- 0.5"}
    worst = fsm_dyn.worst_case(cart, "near", vary=box, runs=200, seed=1, until=UNTIL)
    assert worst.box == {"initial.x": (0.0, 0.2), "amplitude.F": (0.5, 1.5)}
    assert worst.margin == pytest.approx(1.0 - 0.2 - 1.5 * 2.0 / 4.0, abs=1e-6)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"initial.z": (0, 1)}, "cannot vary 'initial.z'"),
        ({"x": (0, 1)}, "varied as 'initial.x'"),
        ({"initial.x": "1 m"}, "no distribution of 'initial.x'"),
        ({"initial.x": {"normal": "1 m"}}, "no distribution of 'initial.x'"),
        ({"initial.x": {"gamma": 1, "sigma": 2}}, "no distribution of 'initial.x'"),
        ({"initial.x": {"normal": "1 m", "sigma": "-1 m"}}, "standard deviation of 'initial.x' is not positive"),
        ({"initial.x": "1 m +- 2 s"}, "'initial.x' has the wrong unit"),
        ({"initial.x": (1.0, 0.0)}, "the range of 'initial.x' is empty"),
        ({"amplitude.F": "1 N +- 2 N"}, "a factor on its schedule"),
        ({"initial.mode": (0, 1)}, "'initial.mode' from a list of names"),
        ({"m": (-1.0, 1.0)}, "mass of 'cart' is negative"),
    ],
)
def test_impossible_distributions(cart, vary, message):
    with pytest.raises(InputError, match=message):
        fsm_dyn.tolerance_study(cart, n=4, seed=1, vary=vary, until=UNTIL, jobs=1)


def test_on_the_command_line(tmp_path):
    model = tmp_path / "cart.yaml"
    model.write_text(TEXT)
    common = ["study", str(model), "--until", "1", "--json", "--vary", "initial.x=0..20cm"]
    vary = ["--vary", "amplitude.F={normal: 1, sigma: 0.1}", "--vary", "initial.x_dot=0 m/s +- 0.1 m/s"]
    result = CliRunner().invoke(app, [*common, *vary, "--sample", "lhs", "--runs", "8", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    for row in rows:
        columns = {name: row[name] for name in ("m", "initial.x", "initial.x_dot", "amplitude.F")}
        assert row["near margin"] == pytest.approx(1.0 - end(columns), abs=1e-9)
    result = CliRunner().invoke(app, [*common, "--worst", "near", "--runs", "8"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["box"] == {"initial.x": [0.0, 0.2]}


def test_some_requirements_and_quantities(cart):
    settings = {"n": 8, "seed": 1, "until": UNTIL, "jobs": 1, "vary": {"initial.x": (0.1, 0.3)}}
    found = fsm_dyn.tolerance_study(cart, requirements=[], outputs=["x", "x_dot"], **settings)
    assert not found.margins
    assert found.distributions["m"] == "uniform from 1.9 to 2.1"
    np.testing.assert_array_equal(found.outputs["x"]["minimum"], found.parameters["initial.x"])
    np.testing.assert_allclose(found.outputs["x"]["final"], end(found.parameters), rtol=0.0, atol=1e-9)
    headings, rows = found.table()
    assert headings[-7:] == ["x_min", "x_max", "x_final", "x_dot_min", "x_dot_max", "x_dot_final", "modes"]
    assert rows[3][headings.index("x_final")] == found.outputs["x"]["final"][3]
    data = found.to_dataset()
    np.testing.assert_array_equal(data["x_final"], found.outputs["x"]["final"])
    assert data["x_dot_maximum"].attrs["units"] == "m/s"
    with pytest.raises(InputError, match="no requirement 'nea'"):
        fsm_dyn.tolerance_study(cart, requirements=["nea"], **settings)
    with pytest.raises(InputError, match="'y' is no quantity"):
        fsm_dyn.tolerance_study(cart, outputs=["y"], **settings)


def test_the_remedy_for_memory_and_inputs_as_quantities_works():
    text = """
fsm_dyn: 1
name: ball
coordinates: {y: m}
memory: {n: 0}
inputs: {push: N}
points: {P: {from: O, at: y*N.y}}
bodies: {ball: {center: P, mass: 1 kg}}
contacts: {ground: {gap: y, restitution: 0.5}}
loads: [{force: (push - 9 N)*N.y, at: P}]
transitions: [{from: "*", on: ground closes, set: {n: n + 1}}]
initial: {y: 0.5 m}
"""
    settings = {"vary": {"initial.y": [0.5, 2.0]}, "until": 0.5, "jobs": 1}
    for name, finals in (("n", [1.0, 0.0]), ("push", [0.0, 0.0])):
        with pytest.raises(InputError, match=f"'{name}' is no quantity") as refused:
            fsm_dyn.study(fsm_dyn.compile(load(text=text)), outputs=[name], **settings)
        listed = f"outputs: {{{name}_output: {name}}}"
        assert listed in str(refused.value)
        found = fsm_dyn.study(fsm_dyn.compile(load(text=f"{text}{listed}\n")), **settings)
        assert [row.final[f"{name}_output"] for row in found.rows] == finals
