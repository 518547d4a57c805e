"""Variables of studies besides parameters: rows equal those of single runs, and errors name a remedy."""

import subprocess
import sys

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.study_runs import study_settings
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.loader import load
from fsm_dyn.run.input_signals import input_in_effect, scaled_input
from fsm_dyn.run.run_options import RunOptions

UNTIL = 1.3


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("bouncing_ball")


@pytest.fixture(scope="module")
def button():
    return fsm_dyn.compile("push_button")


def assert_rows(found, runs):
    """Assert equality of the rows of a study with these runs, bit for bit."""
    assert len(found.rows) == len(runs)
    for row, run in zip(found.rows, runs, strict=True):
        assert (row.outcome, row.mode, row.transitions) == (run.outcome.name, run.modes[-1], len(run.transitions))
        for name in found.outputs:
            assert (row.final[name], row.maximum[name]) == (run[name][-1], run.extremes(name).maximum)


@pytest.mark.parametrize("jobs", [1, 2])
def test_initial_values_vary(ball, jobs):
    found = fsm_dyn.study(ball, {"initial.y": ["50 cm", 1.0, "2*0.75 m"], "e": [0.5, 0.8]}, until=UNTIL, jobs=jobs)
    assert [row.values for row in found.rows] == [{"initial.y": y, "e": e} for y in (0.5, 1.0, 1.5) for e in (0.5, 0.8)]
    assert found.units["initial.y"] == "m"
    runs = [
        fsm_dyn.simulate(ball, UNTIL, initial={"y": y}, parameters={"e": e})
        for y in (0.5, 1.0, 1.5)
        for e in (0.5, 0.8)
    ]
    assert_rows(found, runs)
    assert len({row.final["y"] for row in found.rows}) > 1


def test_inputs_vary(button):
    values = ["1 N", 4.0, "3 N*sin(2 rad/s*t)", [(0.0, 0.0), (1.0, 3.0)]]
    found = fsm_dyn.study(button, {"input.finger": values}, until=UNTIL, jobs=1)
    assert_rows(found, [fsm_dyn.simulate(button, UNTIL, inputs={"finger": value}) for value in values])
    assert [row.values["input.finger"] for row in found.rows[:3]] == [1.0, 4.0, "3 N*sin(2 rad/s*t)"]
    assert len({row.transitions for row in found.rows}) > 1


def test_amplitudes_vary(button):
    found = fsm_dyn.study(button, {"amplitude.finger": [0.25, "1", 1.5]}, until=2.4, jobs=1)
    rows = np.array([[0.0, 0.0], [1.0, 4.0], [1.2, 4.0], [2.2, 0.0], [2.4, 0.0]])  # as in the model's file
    runs = [fsm_dyn.simulate(button, 2.4, inputs={"finger": rows * [1.0, a]}) for a in (0.25, 1.0, 1.5)]
    assert_rows(found, runs)
    assert len({row.transitions for row in found.rows}) > 1
    assert [row.values["amplitude.finger"] for row in found.rows] == [0.25, 1.0, 1.5]


def test_an_amplitude_is_a_factor_on_the_input_in_effect(button):
    found = fsm_dyn.study(
        button, {"scenario": ["slowly", "tap"], "amplitude.finger": [0.5]}, until=0.5, jobs=1, outputs=["y"]
    )
    runs = []
    for scenario in ("slowly", "tap"):
        schedule = input_in_effect(button.automaton, "finger", {}, scenario)
        runs.append(fsm_dyn.simulate(button, 0.5, inputs={"finger": scaled_input(schedule, 0.5)}))
    assert_rows(found, runs)
    assert found.rows[0].final != found.rows[1].final
    given = fsm_dyn.study(button, {"amplitude.finger": [0.5]}, until=0.5, inputs={"finger": 6.0}, jobs=1)
    assert_rows(given, [fsm_dyn.simulate(button, 0.5, inputs={"finger": 3.0})])


@pytest.mark.parametrize(
    "value",
    [
        2.0,
        "2 N*sin(3 rad/s*t)",
        [(0.0, "1 N"), ("1 s", 3.0)],
        {"steps": [(0.0, 1.0), (0.5, 2.0)]},
        {"expression": "1 N + 1 N/s*t"},
        {"constant": 3},
        {"sampled": [(0.0, 0.0), (0.5, 1.0), (1.0, 0.0)]},
        {"sampled": [(0.0, 0.0, 1.0, 0.0), (0.5, 0.5, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0)]},
        lambda t: 3.0 * t,
    ],
)
def test_a_scaled_input_is_twice_the_input(button, value):
    simulator = fsm_dyn.Simulator(button)
    times = np.linspace(0.05, 0.95, 19)
    drives = [
        simulator.setup(RunOptions(1.0, inputs={"finger": each})).drive(times, button.start.context)
        for each in (value, scaled_input(value, 2.0))
    ]
    assert abs(drives[0]).max() > 0.5
    np.testing.assert_allclose(drives[1], 2.0 * drives[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("jobs", [1, 2])
def test_variants_vary_in_the_order_asked_for(button, jobs):
    vary = {"amplitude.finger": [0.5, 1.0], "variant": ["none", "motion"]}
    with pytest.raises(InputError, match=r"cannot vary 'amplitude.finger'"):  # the variant has no such input
        fsm_dyn.study(button, vary, until=0.5, jobs=jobs)
    vary = {"m": ["0.5 g", "0.8 g"], "variant": [None, "motion"]}
    found = fsm_dyn.study(button, vary, until=0.5, jobs=jobs, outputs=["y"])
    other = fsm_dyn.compile("push_button:motion")
    assert [row.values["variant"] for row in found.rows] == ["none", "motion"] * 2
    assert found.compiled == 1  # the model as it is was compiled before
    runs = [fsm_dyn.simulate(graph, 0.5, parameters={"m": value}) for value in vary["m"] for graph in (button, other)]
    assert_rows(found, runs)
    assert found.rows[0].final != found.rows[1].final


VARIANTS = """
fsm_dyn: 1
name: drop
parameters: {h: 1 m +- 5 cm, m: 1 kg}
coordinates: {y: m}
points: {C: {from: O, at: y*N.y}}
bodies: {ball: {center: C, mass: m}}
inputs: {lift: N}
contacts: {ground: {gap: y, restitution: 0.5}}
modes: {flying: {ground: open}, resting: {ground: closed}}
loads: [{gravity: -9.81 m/s^2*N.y}, {force: lift*N.y, at: C}]
initial: {y: h}
scenarios: {alone: {lift: 0 N}, helped: {lift: 2 N}}
requirements: {early: eventually ground closes before 0.5 s}
variants:
  high: {parameters: {h: 2 m +- 10 cm, k: 1 m +- 1 mm}, outputs: {above: y - k}}
"""


@pytest.fixture(scope="module")
def drop():
    return fsm_dyn.compile(load("drop", text=VARIANTS))


@pytest.mark.parametrize("sample", ["random", "lhs", "sobol"])
def test_a_sample_of_variants_and_scenarios(drop, sample):
    """Each run is the run of its variant with its own tolerances; shares are those of a fair choice."""
    vary = {"variant": ["none", "high"], "scenario": ["alone", "helped"], "m": {"uniform": [0.9, 1.1]}}
    found = fsm_dyn.study(drop, vary, sample=sample, n=64, seed=3, until=0.8, outputs=["y"], jobs=1)
    graphs = {"none": drop, "high": fsm_dyn.compile(load("drop", text=VARIANTS, variant="high"))}
    assert found.compiled == 1
    for row in found.rows[:16]:
        values = {name: value for name, value in row.values.items() if isinstance(value, float) and value == value}
        assert ("k" in values) == (row.values["variant"] == "high")
        run = fsm_dyn.simulate(
            graphs[row.values["variant"]], 0.8, scenario=row.values["scenario"], parameters=values
        )  # fmt: skip
        assert (row.modes, row.final["y"]) == (run.record.mode_sequence(run.model.modes), run["y"][-1])
        assert row.margins["early"] == run.judge()["early"].margin
    low = found.parameters["variant"] == "none"
    assert abs(low.sum() - 32) <= (0 if sample != "random" else 16)
    assert (np.abs(found.parameters["h"] - np.where(low, 1.0, 2.0)) <= np.where(low, 0.05, 0.1)).all()
    assert found.distributions["h"] == "uniform from 0.95 to 1.05 (none); uniform from 1.9 to 2.1 (high)"
    assert found.distributions["variant"] == "none, high, each as likely"
    both = [found.estimate("early", found.parameters["variant"] == name) for name in ("none", "high")]
    assert both[0].met + both[1].met == found.estimate("early").met
    assert (both[1].met, both[1].value) == (0, 0.0)  # 2 m need 0.64 s
    assert found.sensitivity("early")["h"] < -0.7
    pairs = set(zip(found.parameters["variant"].tolist(), found.parameters["scenario"].tolist(), strict=True))
    assert len(pairs) == 4
    again = fsm_dyn.study(drop, vary, sample=sample, n=64, seed=3, until=0.8, outputs=["y"], jobs=2)
    assert again.table() == found.table() or repr(again.table()) == repr(found.table())


def test_a_sample_of_modes_and_what_it_refuses(drop):
    found = fsm_dyn.study(drop, {"initial.mode": ["flying"]}, sample="lhs", n=8, until=0.1, jobs=1)
    assert {modes[0] for modes in found.sequences} == {"flying"}
    for vary, message in (
        ({"variant": "high"}, "list of names"), ({"variant": []}, "list of names"),
        ({"scenario": [1.0]}, "list of names"),
        ({"variant": ["hihg"]}, "did you mean 'high'"), ({"scenario": ["helpd"]}, "did you mean 'helped'"),
        ({"variant": ["none", "high"], "k": (0.9, 1.1)}, "cannot vary 'k'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            fsm_dyn.study(drop, vary, sample="lhs", n=8, until=0.1, jobs=1)
    with pytest.raises(InputError, match="no number that a search could vary"):
        fsm_dyn.worst_case(drop, "early", vary={"variant": (0, 1)}, runs=4)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"y": [1.0]}, r"cannot vary 'y'[\s\S]*allowed: [\s\S]*initial.NAME[\s\S]*varied as 'initial.y'"),
        ({"initial.z": [1.0]}, r"cannot vary 'initial.z'[\s\S]*did you mean 'initial.y'"),
        ({"initial.y": ["3 kg"]}, "wrong unit"),
        ({"initial.y": [float("nan")]}, "finite number"),
        ({"input.push": [1.0]}, "cannot vary 'input.push'"),
        ({"variant": ["felt"]}, r"no variant 'felt'[\s\S]*none"),
        ({"scenario": ["slow"]}, "cannot vary 'scenario'"),
        ({}, "a value of everything"),
        ({"initial.y": []}, "a value of everything"),
    ],
)
def test_what_cannot_be_varied_is_refused_before_the_first_run(ball, vary, message):
    told = []
    with pytest.raises(InputError, match=message):
        fsm_dyn.study(ball, vary, until=1.0, jobs=1, progress=lambda *counts: told.append(counts))
    assert told == []


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"finger": [1.0]}, "'input.finger'[\\s\\S]*'amplitude.finger'"),
        ({"amplitude.finger": ["2 N"]}, "factor on its schedule[\\s\\S]*input.finger"),
        ({"amplitude.finger": [float("inf")]}, "factor on its schedule"),
        ({"input.finger": ["2 kg"]}, "wrong unit"),
        ({"scenario": ["tapp"]}, "did you mean 'tap'"),
        ({"variant": ["motoin"]}, "did you mean 'motion'"),
    ],
)
def test_what_an_input_cannot_be_is_refused(button, vary, message):
    with pytest.raises(InputError, match=message):
        fsm_dyn.study(button, vary, until=0.5, jobs=1)


@pytest.mark.parametrize("sample", ["grid", "lhs"])
@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ({"initial": {"nope": 1.0}}, "'nope' is no coordinate or speed"),
        ({"initial": {"x": "3 kg"}}, "the initial value of 'x' has the wrong unit"),
        ({"initial": {"mode": "nope"}}, "no mode 'nope'"),
        ({"scenario": "nope"}, "no scenario 'nope'"),
        ({"inputs": {"nope": 1.0}}, "no input 'nope'"),
    ],
)
def test_what_no_run_could_have_is_refused_before_the_first_run(sample, shared, message):
    """It gave a table of failed runs."""
    settings = {} if sample == "grid" else {"n": 8}
    with pytest.raises(InputError, match=message):
        fsm_dyn.study(
            fsm_dyn.compile("latch_door"), {"k_bolt": [600.0, 700.0]}, sample=sample, until=0.1, **settings, **shared
        )


def test_a_scenario_is_varied_or_given(button):
    with pytest.raises(InputError, match="varied and given"):
        fsm_dyn.study(button, {"scenario": ["tap"]}, until=0.5, scenario="slowly", jobs=1)


KILLED = """
import os, signal, sys
import fsm_dyn
vary = {"initial.y": ["0 mm", "-0.01 mm", "-0.02 mm"], "variant": ["none", "motion"]}
def at(done, of):
    if done == 4:
        os.kill(os.getpid(), signal.SIGKILL)
button = fsm_dyn.compile("push_button")
fsm_dyn.study(button, vary, until=0.3, jobs=1, outputs=["y"], ledger=sys.argv[1], progress=at)
"""


def test_a_killed_study_of_variants_continues(button, tmp_path):
    path = tmp_path / "study.sqlite"
    vary = {"initial.y": ["0 mm", "-0.01 mm", "-0.02 mm"], "variant": ["none", "motion"]}
    assert subprocess.run([sys.executable, "-c", KILLED, path], timeout=120).returncode < 0
    options = {"until": 0.3, "jobs": 1, "outputs": ["y"]}
    found = fsm_dyn.study(button, vary, ledger=path, **options)
    whole = fsm_dyn.study(button, vary, **options)
    assert repr(found.table()) == repr(whole.table())  # nan of failed starts
    with pytest.raises(InputError, match="ledger of another study"):
        fsm_dyn.study(button, vary | {"variant": ["motion", "none"]}, ledger=path, **options)


def test_a_function_that_is_varied_has_no_ledger():
    with pytest.raises(InputError, match="options that can be stored"):
        study_settings("model", [{"input.push": lambda t: t}], {})
