"""Units for FMI 2.0, held against FMPy and our own run; and calls in any order, for both versions."""

import re
import shutil
import subprocess
import zipfile

import numpy as np
import pytest

import fsm_dyn.language.models
from tests.exports.building import FLAGS, LONG, SANITIZE, quick_units
from tests.runtime.building import COMPILER, sanitizers_work

fmpy = pytest.importorskip("fmpy")
from fmpy.fmi2 import FMU2Slave  # noqa: E402
from fmpy.validation import validate_fmu  # noqa: E402

from tests.exports.importer import QUIET, Importer, compare  # noqa: E402

QUICK = ["bouncing_ball", "latch", "shopping_cart", "piano_action_simple"]
ALL = [pytest.param(name, marks=() if name in QUICK else LONG) for name in fsm_dyn.language.models.names()]


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    with pytest.MonkeyPatch.context() as patch:
        quick_units(patch, "-Wall", "-Wextra", "-Wconversion", "-Werror")
        yield


def made(name, folder, target="fmu2"):
    graph = fsm_dyn.compile(name)
    return graph, fsm_dyn.export(graph, folder, target) / f"{name}.fmu"


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    return made("shopping_cart", tmp_path_factory.mktemp("cart"))


@pytest.mark.parametrize("name", ALL)
def test_valid_and_the_same_transitions(name, tmp_path):
    """One communication step is our run: its transitions, as they are logged to 15 digits, and its end to 1e-9."""
    graph, path = made(name, tmp_path)
    assert validate_fmu(str(path)) == []
    run = fsm_dyn.Simulator(graph).run(strategy="compiled", on_failure="return")
    end, logged = float(run.t[-1]), []
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="CoSimulation", stop_time=end, output_interval=end, debug_logging=True,
        logger=lambda *call: logged.append(call[-1].decode()),
    )  # fmt: skip
    found = [re.match(r"(\S+) s: (.*) -> ([^,]*)", line).groups() for line in logged if " -> " in line]
    if name == "latch":
        assert any("inputs or parameters jump" in line for line in logged)
        assert any(re.search(r"seat (opens|closes) \(-?[0-9.e-]+\)", line) for line in logged)
    assert [(a, b) for _, a, b in found] == [(str(x.source), str(x.target)) for x in run.transitions]
    times = [float(time) for time, _, _ in found]
    np.testing.assert_allclose(times, [x.time for x in run.transitions], rtol=1e-14, atol=1e-12)
    assert rows["time"][-1] == pytest.approx(end)
    kinds = fmpy.read_model_description(str(path)).modelVariables
    for output in (v.name for v in kinds if v.causality == "output" and v.type == "Real"):
        assert rows[output][-1] == pytest.approx(run[output.strip("'")][-1], rel=1e-9, abs=1e-9)


def test_model_exchange(cart, tmp_path):
    graph, path = cart
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    compare(Importer(path, tmp_path), path, run, 1e-7)
    rows = fmpy.simulate_fmu(str(path), fmi_type="ModelExchange", relative_tolerance=1e-8, output=["mode"])
    assert rows["mode"][-1] == list(graph.modes).index(run.transitions[-1].target) + 1


@pytest.fixture
def slave(cart, tmp_path):
    _, path = cart
    description = fmpy.read_model_description(str(path))
    it = FMU2Slave(
        guid=description.guid, unzipDirectory=fmpy.extract(str(path), unzipdir=str(tmp_path)),
        modelIdentifier=description.coSimulation.modelIdentifier, instanceName="one",
    )  # fmt: skip
    it.instantiate(callbacks=QUIET)
    yield it, {v.name: v.valueReference for v in description.modelVariables}
    it.freeInstance()


def started(it):
    it.setupExperiment(startTime=0.0)
    it.enterInitializationMode()
    it.exitInitializationMode()


def test_inputs_with_derivatives_run_linearly(cart, slave):
    """Against a run with the same broken line; both follow it to 1e-9."""
    graph, _ = cart
    it, known = slave
    layout = graph.automaton.terms.layout
    inputs = {name: {"linear": [[0.0, 0.0], [1.0, 0.0]]} for name in layout.w}
    inputs["push"] = {"linear": [[0.0, 0.0], [1.0, 4.0], [2.0, 4.0]]}
    run = fsm_dyn.simulate(graph, 2.0, inputs=inputs)
    references = [known[name] for name in layout.w]
    it.setReal(references, [0.0] * len(references))
    started(it)
    for k in range(20):
        if k < 10:
            it.setRealInputDerivatives([known["push"]], [1], [4.0])
        it.doStep(currentCommunicationPoint=0.1 * k, communicationStepSize=0.1)
    assert it.getReal([known["push"]]) == pytest.approx([4.0], abs=1e-12)
    states = it.getReal([known[name] for name in (*layout.q, *layout.u)])
    assert states == pytest.approx([*run.q[-1], *run.u[-1]], abs=1e-7)
    assert abs(run.u[-1]).max() > 0.1, "it was pushed"


def test_a_saved_state_continues_to_the_same_bits(slave):
    it, known = slave
    states = [known[name] for name in known if f"der({name})" in known]
    started(it)
    it.doStep(0.0, 0.5)
    kept = it.getFMUstate()
    stored = it.serializeFMUstate(kept)
    it.doStep(0.5, 0.5)
    wanted = it.getReal(states)
    it.setFMUstate(it.deSerializeFMUstate(stored))
    it.doStep(0.5, 0.5)
    assert it.getReal(states) == wanted
    it.terminate()
    it.reset()
    started(it)
    it.doStep(0.0, 0.5)
    it.doStep(0.5, 0.5)
    assert it.getReal(states) == wanted


def test_a_parameter_that_is_set_is_that_of_a_run(cart, slave):
    """Set before the first step: the bits of a run with the parameter; set later: the run continues otherwise."""
    graph, _ = cart
    it, known = slave
    states = [known[name] for name in known if f"der({name})" in known]
    run = fsm_dyn.Simulator(graph).run(3.0, strategy="compiled", parameters={"tau_slip": 0.3})
    it.setReal([known["tau_slip"]], [0.3])
    started(it)
    it.doStep(0.0, 3.0)
    assert it.getReal(states) == pytest.approx([*run.q[-1], *run.u[-1]], rel=1e-12, abs=1e-12)
    kept = it.getFMUstate()
    it.doStep(3.0, 0.5)
    as_before = it.getReal(states)
    it.setFMUstate(kept)
    it.setReal([known["tau_slip"]], [0.1])
    it.doStep(3.0, 0.5)
    assert it.getReal(states) != as_before


def test_parameters_that_the_start_depends_on_are_constants(cart, slave):
    it, known = slave
    _, path = cart
    kinds = {v.name: (v.causality, v.variability) for v in fmpy.read_model_description(str(path)).modelVariables}
    assert kinds["tau_slip"] == ("parameter", "tunable")
    assert kinds["L1"] == ("local", "constant")
    started(it)
    it.setReal([known["tau_slip"]], [0.125])
    assert it.getReal([known["tau_slip"]]) == [0.125]
    with pytest.raises(fmpy.fmi1.FMICallException):  # above the breakaway torque
        it.setReal([known["tau_slip"]], [0.5])
    before = it.getReal([known["L1"]])
    with pytest.raises(fmpy.fmi1.FMICallException):
        it.setReal([known["L1"]], [2.0])
    assert it.getReal([known["L1"]]) == before


def test_derivatives_are_there_before_the_run_begins(slave):
    it, known = slave
    it.setupExperiment(startTime=0.0)
    it.enterInitializationMode()
    rates = [known[name] for name in known if name.startswith("der(")]
    early = it.getReal(rates)
    it.exitInitializationMode()
    assert np.abs(early).max() > 0.0
    assert early == pytest.approx(it.getReal(rates), abs=1e-12)


@pytest.mark.parametrize(
    ("version", "count", "flags"),
    [
        ("3", 200, []),
        pytest.param("3", 10_000, [], marks=LONG),
        pytest.param("2", 10_000, SANITIZE, marks=LONG),
        pytest.param("3", 10_000, SANITIZE, marks=LONG),
    ],
)
def test_calls_in_any_order(tmp_path, version, count, flags):
    """On two instances of either kind: each call returns a status, no other memory is touched, and all start again."""
    if flags and (reason := sanitizers_work()):
        pytest.skip(reason)
    _, path = made("latch", tmp_path, f"fmu{version}")
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path / "unit")
    folder = tmp_path / "unit" / "sources"
    shutil.copy(__file__.replace("test_fmi2.py", "fuzz_calls.c"), folder)
    optimised = "-O1" if count > 200 else "-O0"  # few are compiled for longer than they run
    command = [COMPILER, *FLAGS, optimised, f"-DVERSION={version}", *flags, "latch.c", "fsm_tangents.c", "fsm_unit.c"]
    subprocess.run([*command, "fuzz_calls.c", "-o", "fuzz", "-lm"], cwd=folder, check=True)
    done = subprocess.run([folder / "fuzz", str(count)], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{count} sequences")
