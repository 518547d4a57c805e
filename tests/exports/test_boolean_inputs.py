"""A boolean input is a trigger in the same instant, with the same bits after it, in every target."""

import ctypes

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu

import fsm_dyn
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html import _drives
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickCounts
from tests.exports.building import Machine, quick_units
from tests.exports.importer import co_simulation, instance
from tests.exports.test_html import bits, in_node

STEPS = [(0.1, True), (0.25, False), (0.4003, True)]
END = 0.6
MODEL = f"""
fsm_dyn: 1
name: pressed
parameters: {{m: 0.1 kg, k: 20 N/m, F: 3 N}}
coordinates: {{x: m}}
points: {{P: {{from: O, at: x*N.x}}}}
bodies: {{ball: {{center: P, mass: m}}}}
contacts: {{stop: {{gap: x, restitution: 0.4}}}}
inputs: {{press: boolean, push: N}}
memory: {{count: 0}}
schedule:
  press: {{steps: [[0 s, false], {", ".join(f"[{t} s, {str(v).lower()}]" for t, v in STEPS)}, [{END} s, true]]}}
loads:
  - {{force: "where(press, -F, 0.5 N)*N.x + push*N.x", at: P}}
  - {{spring: {{coordinate: x, stiffness: k, free: 0.1 m}}}}
transitions:
  - {{name: counted, from: "*", when: press, set: {{count: count + 1}}}}
  - {{name: far, from: "*", when: press and x > 0.1 m, set: {{count: count + 10}}}}
  - {{name: let_go, from: "*", when: not press and count > 0, set: {{count: count + 100}}}}
outputs: {{count_now: 1 N*count}}
initial: {{x: 0.2 m}}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("boolean") / "pressed.yaml"
    path.write_text(MODEL)
    return fsm_dyn.compile(path)


@pytest.fixture(scope="module")
def wanted(graph):
    """The last state of a run: each change of the input is a trigger in its instant."""
    run = fsm_dyn.simulate(graph, until=END, strategy="compiled")
    triggers = [(t.time, t.cause) for t in run.transitions if "press" in t.cause]
    assert triggers == [
        (0.1, "press"), (0.1, "press and x > 0.1 m"), (0.25, "not press and count > 0"), (0.4003, "press"),
        (0.4003, "press and x > 0.1 m"),
    ]  # fmt: skip
    assert run.outputs["count_now"][-1] == 122.0
    return run.rows.x[-1]


@pytest.mark.parametrize("given", ["true", True, 1, np.True_, "t > -1 s", {"steps": [[0, True]]}, [[0.0, 1.0]]])
def test_true_is_written_in_many_ways(graph, given):
    run = fsm_dyn.simulate(graph, until=0.2, inputs={"press": given})
    assert run.transitions[0].cause == "press"
    np.testing.assert_array_equal(run.rows.x[-1], fsm_dyn.simulate(graph, until=0.2, inputs={"press": 1}).rows.x[-1])


@pytest.mark.parametrize("given", [0.5, "0.5", "3 N", {"linear": [[0, 0], [1, 1]]}, lambda t: 1.0, {"steps": [[0, 2]]}])
def test_what_is_no_truth_is_refused(graph, given):
    with pytest.raises(fsm_dyn.InputError, match="'press'"):
        fsm_dyn.simulate(graph, until=0.2, inputs={"press": given})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{steps: [[0 s, false],", "{linear: [[0 s, false],", "joined by lines, but the input is boolean"),
        ("[0.1 s, true]", "[0.1 s, 2]", "must be a condition"),
        ("count + 1}", "count + press}", "condition"),
        ("at: x*N.x", "at: 'where(press, x, 2*x)*N.x'", "press"),
        ("gap: x,", "gap: 'where(press, x, 2*x)',", "press"),
    ],
)
def test_files_that_are_refused(before, after, message, tmp_path):
    assert before in MODEL
    path = tmp_path / "wrong.yaml"
    path.write_text(MODEL.replace(before, after))
    with pytest.raises(fsm_dyn.InputError, match=message):
        fsm_dyn.load(path)


def test_steps_are_those_of_conditions_of_the_time(graph, wanted):
    text = "(t >= 0.1 s and t < 0.25 s) or t >= 0.4003 s"
    run = fsm_dyn.simulate(graph, until=END, strategy="compiled", inputs={"press": text})
    np.testing.assert_allclose(run.rows.x[-1], wanted, rtol=1e-12)
    online = fsm_dyn.simulate(graph, until=END, strategy="online")
    np.testing.assert_allclose(online.rows.x[-1], wanted, rtol=1e-12)


def test_in_c(graph, wanted, tmp_path):
    """By the schedule, and by calls of a program."""
    folder = fsm_dyn.export(graph, tmp_path / "exported")
    machine = Machine(folder, "pressed")
    it = machine.create()
    machine.advance(it, END)
    assert bits(machine.state(it, 2)) == bits(wanted)
    for call in (machine.lib.fsm_machine_set_input, machine.lib.fsm_machine_hold_input):
        call.restype = ctypes.c_bool
        it = machine.create()
        for time, value in (*STEPS, (END, True)):
            machine.advance(it, time)
            assert not call(ctypes.c_void_p(it), ctypes.c_int64(0), ctypes.c_double(0.5))
            assert call(ctypes.c_void_p(it), ctypes.c_int64(0), ctypes.c_double(value))
        assert bits(machine.state(it, 2)) == bits(wanted)


# A run in which a page leads all inputs to values, of which a boolean one takes its own at once.
LEAD = """
const { about, runtime, model } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { Machine } = module_machine, bytes = (text) => Buffer.from(text, "base64");
const machine = new Machine(about, bytes(runtime), bytes(model));
for (const [time, value] of STEPS) {
  machine.advance(time);
  machine.lead([value, 0]);
}
console.log(JSON.stringify({ x: Buffer.from(Float64Array.from(machine.x).buffer).toString("hex") }));
"""


def test_in_a_page(graph, wanted):
    """By the schedule, and as its panel sets inputs."""
    run = prepared(graph)
    assert [item["boolean"] for item in _drives(run)] == [True, False]
    assert in_node(run)["x"] == bits(fsm_dyn.simulate(graph, strategy="compiled").rows.x[-1])
    steps = [[time, int(value)] for time, value in (*STEPS, (END, True))]
    assert in_node(run, script=LEAD.replace("STEPS", str(steps)))["x"] == bits(wanted)


@pytest.mark.parametrize(("scheduled", "last"), [(False, 0.4), (True, 0.401)])
def test_in_a_live_run(tmp_path, scheduled, last):
    """It changes with the begin of a tick, by commands or the schedule; a run offline has the same bits."""
    path = tmp_path / "pressed.yaml"
    path.write_text(MODEL.replace("initial:", "ports: {hand: {point: P, body: ball, axes: [N.x]}}\ninitial:"))
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(path)))
    names = graph.automaton.terms.layout.w
    stepper = LiveStepper(graph, 1, 1e-3, schedule=scheduled)
    tick, found, rows = stepper.tick_data, [], [[0.0, *stepper.tick_data.now]]
    tick.counts[TickCounts.ADVANCING] = 1
    for k in range(600):
        if not scheduled:
            tick.targets[names.index("press")] = 100 <= k < 250 or k >= 400
        stepper.tick(shown=False)
        found += [record[0] for record in stepper.records()]
        rows.append([stepper.t, *tick.now])
    np.testing.assert_allclose(found[:2] + found[3:6], [0.1, 0.1, 0.25, last, last], rtol=1e-12)
    inputs = {name: {"sampled": np.array(rows)[:, [0, 1 + k]]} for k, name in enumerate(names)}
    run = fsm_dyn.simulate(graph, until=stepper.t, method="rk4", step=1e-3 / stepper.substeps, inputs=inputs)
    assert [t.time for t in run.transitions] == found
    assert bits(run.rows.x[-1]) == bits(stepper.loop.state.x)


@pytest.mark.parametrize("version", [2, 3])
def test_in_a_unit(graph, wanted, version, tmp_path, monkeypatch):
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path / "pressed.fmu", f"fmu{version}")
    assert not validate_fmu(str(path))
    it, known = co_simulation(path, tmp_path / "unit")
    press = known["press"]
    assert (press.type, press.variability, press.causality, press.start) == ("Boolean", "discrete", "input", "false")
    at, x = [press.valueReference], [known[name].valueReference for name in ("x", "x_dot")]
    it.enterInitializationMode()
    it.exitInitializationMode()
    with pytest.raises(FMICallException):
        it.setReal(at, [1.0])
    it.setBoolean(at, [False])
    now = 0.0
    for time, value in (*STEPS, (END, True)):
        it.doStep(currentCommunicationPoint=now, communicationStepSize=time - now)
        it.setBoolean(at, [value])
        assert bool(it.getBoolean(at)[0]) is value
        now = time
    assert bits(it.getReal(x)) == bits(wanted)
    it.terminate()
    it.freeInstance()
    exchange(path, tmp_path / "exchanged")
    integrated_by_fmpy(path, graph)


def exchange(path, folder):
    """In model exchange it is set in event mode, where it is a trigger; while time passes another value is refused."""
    it, references, _ = instance(path, folder)
    press, count = [references["press"]], [references["count_now"]]
    it.enterInitializationMode()
    it.exitInitializationMode()
    it.updateDiscreteStates()
    it.enterContinuousTimeMode()
    it.setBoolean(press, [False])  # FMPy sets all inputs wherever it looks for events
    with pytest.raises(FMICallException):
        it.setBoolean(press, [True])
    it.enterEventMode()
    assert it.getFloat64(count) == [0.0]
    it.setBoolean(press, [True])
    it.updateDiscreteStates()
    assert it.getFloat64(count) == [11.0]
    it.terminate()
    it.freeInstance()


def integrated_by_fmpy(path, graph):
    """FMPy's CVode sets the inputs wherever it looks for events, and finds the motion of the run."""
    table = np.array([(0.0, True), (END, True)], dtype=[("time", float), ("press", bool)])
    found = fmpy.simulate_fmu(str(path), fmi_type="ModelExchange", stop_time=END, input=table, output=["x", "x_dot"],
                              relative_tolerance=1e-9)  # fmt: skip
    wanted = fsm_dyn.simulate(graph, until=END, inputs={"press": 1}).rows.x[-1]
    np.testing.assert_allclose([found["x"][-1], found["x_dot"][-1]], wanted, rtol=0.0, atol=1e-5)


def test_as_reals_for_importers_of_reals_alone(graph, tmp_path, monkeypatch):
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path / "pressed.fmu", "fmu2", outputs="reals")
    press = next(v for v in fmpy.read_model_description(str(path)).modelVariables if v.name == "press")
    assert (press.type, press.variability) == ("Real", "discrete")
