"""Units for FMI 3.0, held against FMPy: its validation, its simulation, and calls in a wrong order."""

import ctypes
import zipfile

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.fmi import unit_exponents

fmpy = pytest.importorskip("fmpy")
from fmpy.fmi3 import FMU3Slave  # noqa: E402
from fmpy.validation import validate_fmu  # noqa: E402

from tests.exports.building import LONG, quick_units  # noqa: E402

QUICK = ["bouncing_ball", "latch", "shopping_cart", "piano_action_simple"]
ALL = [pytest.param(name, marks=() if name in QUICK else LONG) for name in fsm_dyn.language.models.names()]


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    with pytest.MonkeyPatch.context() as patch:
        quick_units(patch)
        yield


def made(name, folder):
    graph = fsm_dyn.compile(name)
    return graph, fsm_dyn.export(graph, folder, "fmu3") / f"{name}.fmu"


@pytest.fixture(scope="module")
def latch(tmp_path_factory):
    return made("latch", tmp_path_factory.mktemp("latch"))


@pytest.mark.parametrize("name", ALL)
def test_valid_and_the_same_events(name, tmp_path):
    """In one communication step with early returns no step is shortened: event times are those of the run (1e-12 s)."""
    graph, path = made(name, tmp_path)
    assert validate_fmu(str(path)) == []
    run = fsm_dyn.Simulator(graph).run(strategy="compiled", on_failure="return")
    end = float(run.t[-1])
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="CoSimulation", use_event_mode=True, early_return_allowed=True, stop_time=end,
        output_interval=end,
    )  # fmt: skip
    at = np.array([b for a, b in zip(rows["time"], rows["time"][1:], strict=False) if a == b])
    for x in run.transitions:
        if 0.0 < x.time < end and "Zeno" not in str(x):  # the end of a Zeno sequence is not located, but computed
            assert np.abs(at - x.time).min() <= 1e-12, str(x)
    for time in at:  # also where an input has a corner, or a guard fired and nothing changed
        assert np.abs(run.t - time).min() <= 1e-12
    kinds = fmpy.read_model_description(str(path)).modelVariables
    outputs = [v.name for v in kinds if v.causality == "output" and v.type == "Float64"]
    for name_ in outputs:
        assert rows[name_][-1] == pytest.approx(run[name_.strip("'")][-1], rel=1e-9, abs=1e-9)


def slave(path, folder, events=False):
    description = fmpy.read_model_description(str(path))
    unzipped = fmpy.extract(str(path), unzipdir=str(folder))
    it = FMU3Slave(
        guid=description.guid, unzipDirectory=unzipped,
        modelIdentifier=description.coSimulation.modelIdentifier, instanceName="one",
    )  # fmt: skip
    it.instantiate(eventModeUsed=events, earlyReturnAllowed=events)
    return it, {v.name: v.valueReference for v in description.modelVariables}


def started(it):
    it.enterInitializationMode()
    it.exitInitializationMode()
    return it


def run_on(it, until, at=0.0, step=0.05):
    while at < until - 1e-12:
        it.doStep(at, step)
        at += step
    return at


@pytest.mark.parametrize("name", ["latch", "newtons_cradle"])
def test_one_call_of_event_mode_is_enough(name, tmp_path):
    """A second one at the same instant changes no state, derivative or contact; both models have several contacts."""
    _, path = made(name, tmp_path)
    it, known = slave(path, tmp_path / "unit", events=True)
    numbers = [known[x] for x in known if f"der({x})" in known or x.startswith("der(")]
    contacts = [known[x] for x in known if x.startswith("contact.")]
    started(it)
    at, events = 0.0, 0
    while at < 2.5:
        assert it.updateDiscreteStates()[0] is False
        found = it.getFloat64(numbers), it.getInt64(contacts)
        assert it.updateDiscreteStates() == (False, False, False, False, False, 0.0)
        assert (it.getFloat64(numbers), it.getInt64(contacts)) == found
        it.enterStepMode()
        event, _, _, at = it.doStep(at, 2.5 - at)
        events += event
        it.enterEventMode()
    assert events > 3
    it.terminate()
    it.freeInstance()


def test_a_saved_state_continues_to_the_same_bits(latch, tmp_path):
    _, path = latch
    it, known = slave(path, tmp_path / "a")
    states = [known[name] for name in ("x", "b", "vx", "vb")]
    started(it)
    at = run_on(it, 1.0)
    kept = it.getFMUState()
    stored = it.serializeFMUState(kept)
    run_on(it, 2.5, at)
    wanted = it.getFloat64(states)
    it.setFMUState(kept)
    run_on(it, 2.5, at)
    assert it.getFloat64(states) == wanted
    other, _ = slave(path, tmp_path / "b")
    started(other)
    for at_byte in (0, 8, len(stored) // 2, len(stored) - 1):
        damaged = bytearray(stored)
        damaged[at_byte] ^= 1
        with pytest.raises(fmpy.fmi1.FMICallException):
            other.deserializeFMUState(bytes(damaged))
    other.setFMUState(other.deserializeFMUState(stored))
    run_on(other, 2.5, at)
    assert other.getFloat64(states) == wanted
    it.freeFMUState(kept)
    for each in (it, other):
        each.terminate()
        each.freeInstance()


def test_two_instances_and_reset(latch, tmp_path):
    _, path = latch
    one, known = slave(path, tmp_path / "a")
    two, _ = slave(path, tmp_path / "b")
    x = [known["x"], known["vx"]]
    started(one), started(two)
    at = 0.0
    for _ in range(40):  # in turn
        one.doStep(at, 0.05)
        two.doStep(at, 0.05)
        at += 0.05
    wanted = one.getFloat64(x)
    assert two.getFloat64(x) == wanted
    one.reset()
    started(one)
    run_on(one, 2.0)
    assert one.getFloat64(x) == wanted


def test_inputs_and_parameters(latch, tmp_path):
    """A force that is set moves the door; a parameter is read back."""
    graph, path = latch
    it, known = slave(path, tmp_path)
    it.setFloat64([known["k_door"]], [75.0])
    assert it.getFloat64([known["k_door"]]) == [75.0]
    started(it)
    name = graph.automaton.terms.layout.w[0]
    it.setFloat64([known[name]], [0.0])
    before = it.getFloat64([known["x"]])
    run_on(it, 0.2)
    it.setFloat64([known[name]], [3.0])
    assert it.getFloat64([known[name]]) == [3.0]
    run_on(it, 0.4, 0.2)
    assert it.getFloat64([known["x"]]) != before


@pytest.mark.parametrize(("point", "size"), [(0.0, np.inf), (np.inf, 0.1), (0.0, np.nan), (np.nan, 0.1), (0.0, -0.1)])
def test_a_step_that_has_no_end_is_refused(latch, tmp_path, point, size):
    """An error, after which the unit runs on; without the check an infinite step is accepted."""
    _, path = latch
    it, known = slave(path, tmp_path)
    started(it)
    with pytest.raises(fmpy.fmi1.FMICallException):
        it.doStep(point, size)
    run_on(it, 0.2)
    assert np.isfinite(it.getFloat64([known["x"]])).all()


def test_values_that_are_no_numbers_and_results_without_a_place_are_refused(latch, tmp_path):
    _, path = latch
    it, known = slave(path, tmp_path)
    started(it)
    for value in (np.nan, np.inf):
        with pytest.raises(fmpy.fmi1.FMICallException):
            it.setFloat64([known["k_door"]], [value])
    nowhere = (None, None, None, None)
    assert it.dll.fmi3DoStep(it.component, ctypes.c_double(0.0), ctypes.c_double(0.1), False, *nowhere) == 3
    run_on(it, 0.2)
    assert np.isfinite(it.getFloat64([known["x"]])).all()


def test_a_wrong_token_makes_no_instance(latch, tmp_path):
    _, path = latch
    it = FMU3Slave(
        guid="{wrong}", unzipDirectory=fmpy.extract(str(path), unzipdir=str(tmp_path)), modelIdentifier="latch",
        instanceName="one",
    )  # fmt: skip
    with pytest.raises(Exception, match=r"(?i)instantiate"):
        it.instantiate()


def test_the_same_unit_is_the_same_bytes(latch, tmp_path):
    _, path = latch
    _, again = made("latch", tmp_path)
    with zipfile.ZipFile(path) as first, zipfile.ZipFile(again) as second:
        assert first.namelist() == second.namelist()
        for name in first.namelist():
            if not name.startswith("binaries/"):  # what a compiler writes is its own
                assert first.read(name) == second.read(name)


def test_units_of_variables():
    assert unit_exponents("kg*m^2/(s*A)") == (2.0, 1.0, -1.0, -1.0, 0.0, 0.0, 0.0)
    assert unit_exponents("N*s/m") == (0.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0)
    assert unit_exponents("rad") == unit_exponents("1") == 7 * (0.0,)


def test_without_a_compiler_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match=r"(?s)no C compiler.*gcc"):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path, "fmu3")
    assert not list(tmp_path.iterdir())
