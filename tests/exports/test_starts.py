"""Machines that begin elsewhere: the states that Python assembles, and the motions from there."""

import ctypes

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu

import fsm_dyn
from fsm_dyn.runtime.abi import Status
from tests.exports.building import Machine, exported, quick_units
from tests.exports.importer import co_simulation

#: Values given at the start of shipped models; other coordinates and speeds follow.
STARTS = {
    "bouncing_ball": [{"y": 0.7, "v": -1.2}, {"y": 0.0, "v": 0.0}],
    "four_bar": [{"crank_pin": 1.3, "crank_pin_dot": 2.0}],
    "box_on_table": [{"x": 0.1, "q": 0.0}],
    "stick_slip_belt": [{"x": 0.02}],
    "spatial_two_body": [{"w1": 1.0}],
    "double_pendulum_with_stop": [{"hip": 0.4, "w1": 3.0, "knee": 0.2}],
}


@pytest.fixture(scope="module", params=STARTS)
def model(request, tmp_path_factory):
    graph, folder = exported(request.param, tmp_path_factory.mktemp(request.param))
    return request.param, graph, Machine(folder, request.param)


def begun(machine, layout, values):
    """Return a machine at given values, with those of the model's own start as guesses of the others."""
    it = machine.create()
    x = machine.state(it, len(layout.x))
    for name, value in values.items():
        x[layout.x.index(name)] = value
    return it, x, machine.start(it, x, [name in values for name in layout.x])


def test_the_start_and_the_motion_are_those_of_python(model):
    name, graph, machine = model
    layout = graph.automaton.terms.layout
    for values in STARTS[name]:
        own = {name: text.text for name, text in graph.automaton.mechanism.initial.values.items()}
        run = fsm_dyn.simulate(graph, initial={**own, **values}, until=0.05, strategy="compiled")
        it, _, good = begun(machine, layout, {**{n: float(run[n][0]) for n in own}, **values})
        assert good, values
        np.testing.assert_allclose(machine.state(it, len(layout.x)), run.rows.x[0], rtol=1e-11, atol=1e-11)
        assert machine.advance(it, 0.05) == run.outcome.code
        np.testing.assert_allclose(machine.state(it, len(layout.x)), run.rows.x[-1], rtol=1e-7, atol=1e-8)


def test_contradictions_are_refused_and_change_nothing(model):
    name, graph, machine = model
    layout = graph.automaton.terms.layout
    it = machine.create()
    own = machine.state(it, len(layout.x))
    assert not machine.start(it, [float("nan"), *own[1:]], [1] * len(own))
    if name == "four_bar":  # no four-bar has three such angles
        assert not machine.start(it, [0.1, 0.2, 0.3, *own[3:]], [1, 1, 1, 0, 0, 0])
    assert machine.state(it, len(layout.x)) == own
    assert machine.start(it, own, [0] * len(own))
    np.testing.assert_allclose(machine.state(it, len(layout.x)), own, rtol=1e-12, atol=1e-12)
    machine.advance(it, 1e-3)
    assert not machine.start(it, own, [0] * len(own)), "it has begun to run"


@pytest.mark.parametrize("version", [2, 3])
def test_units_begin_where_an_importer_says(version, tmp_path, monkeypatch):
    """By FMPy, and by an importer with fixed steps; the speed of the other bars follows from that of the crank."""
    quick_units(monkeypatch)
    for name, values in (
        ("bouncing_ball", {"y": 0.7, "v": -1.2}),
        ("four_bar", {"crank_pin": 1.3, "crank_pin_dot": 2.0}),
    ):
        graph = fsm_dyn.compile(name)
        path = fsm_dyn.export(graph, tmp_path / f"{name}.fmu", f"fmu{version}", outputs="all")
        assert not validate_fmu(str(path))
        run = fsm_dyn.simulate(graph, initial=values, until=0.5)
        layout, last = graph.automaton.terms.layout, run.rows.x[-1]
        found = fmpy.simulate_fmu(
            str(path), fmi_type="CoSimulation", stop_time=0.5, start_values=values, output=list(layout.x),
            output_interval=0.01,
        )  # fmt: skip
        np.testing.assert_allclose([found[x][0] for x in layout.x], run.rows.x[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose([found[x][-1] for x in layout.x], last, rtol=1e-6, atol=1e-7)
        stepped(path, tmp_path / f"{name}_unit", values, last, layout.x)


def stepped(path, folder, values, last, names):
    """Compare a unit run by steps of fixed length, without event mode; it refuses another start then."""
    it, variables = co_simulation(path, folder)
    assert {variables[x].initial for x in names} == {"exact" if "y" in names else "approx"}
    references = [variables[x].valueReference for x in names]
    given = [variables[x].valueReference for x in values]
    put, get = it.setReal, it.getReal
    put(given, list(values.values()))
    it.enterInitializationMode()
    np.testing.assert_allclose(get(given), list(values.values()), rtol=1e-12)
    it.exitInitializationMode()
    for k in range(50):
        it.doStep(0.01 * k, 0.01)
    np.testing.assert_allclose(get(references), last, rtol=1e-6, atol=1e-7)
    with pytest.raises(FMICallException):
        put(given[:1], [1.0])
    it.freeInstance()


#: A ball on a rod that turns: `far` and `quick` are of the start alone, `slow` of a load too, `push` of a table.
THROWN = """
fsm_dyn: 1
name: thrown
parameters: {far: 1 m, quick: 0.5 m/s, slow: 2 m/s, push: 3 N, m: 1 kg}
coordinates: {x: m, y: m, q: rad}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {ball: {center: P, mass: m}}
constraints: {rod: {position: y - x*tan(q)}, turns: {velocity: rate(q) - 0.1 rad/s}}
contacts: {end: {gap: 3 m - x, restitution: 0.5}}
inputs: {force: N}
schedule: {force: {steps: [[0 s, push], [0.2 s, 0 N]]}}
loads: [{gravity: -9.81 m/s^2*N.y}, {force: "(force - 0.5 N*s/m*slow)*N.x", at: P}]
initial: {x: 2*far, q: 0.2 rad, x_dot: quick + slow/4}
"""


def test_parameters_of_the_start_are_solved_for_again(tmp_path, monkeypatch):
    """In C and by FMPy, until the run begins: the rod's end and speeds follow; the motion is that of Python."""
    (tmp_path / "thrown.yaml").write_text(THROWN)
    graph = fsm_dyn.compile(tmp_path / "thrown.yaml")
    names, layout = graph.automaton.terms.layout.p, graph.automaton.terms.layout
    machine = Machine(fsm_dyn.export(graph, tmp_path / "exported"), "thrown")
    put = machine.lib.fsm_machine_set_parameter
    put.restype = ctypes.c_bool
    it = machine.create()

    def set_parameter(name, value):
        return put(ctypes.c_void_p(it), ctypes.c_int64(names.index(name)), ctypes.c_double(value))

    given = {"far": 0.8, "slow": 1.2, "quick": 0.9}
    assert all(set_parameter(name, value) for name, value in given.items())
    run = fsm_dyn.simulate(graph, parameters=given, until=0.5, strategy="compiled")
    np.testing.assert_allclose(machine.state(it, layout.n_x), run.rows.x[0], rtol=1e-11, atol=1e-12)
    assert machine.advance(it, 0.5) == Status.DONE
    np.testing.assert_allclose(machine.state(it, layout.n_x), run.rows.x[-1], rtol=1e-9)
    assert not set_parameter("far", 0.7), "the run has begun"
    assert set_parameter("slow", 1.0), "a load reads it, too"
    assert not set_parameter("push", 1.0), "the schedule is a table of numbers"
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path / "thrown.fmu", "fmu3", outputs="all")
    assert not validate_fmu(str(path))
    known = {v.name: v for v in fmpy.read_model_description(str(path)).modelVariables}
    wanted = {"far": "fixed", "quick": "fixed", "slow": "tunable", "push": "constant"}
    assert {name: known[name].variability for name in wanted} == wanted
    found = fmpy.simulate_fmu(
        str(path),
        fmi_type="CoSimulation",
        stop_time=0.5,
        start_values=given,
        output=list(layout.x),
        output_interval=0.5,
    )
    np.testing.assert_allclose([found[x][-1] for x in layout.x], run.rows.x[-1], rtol=1e-7)
