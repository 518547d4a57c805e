"""Model exchange by FMI 3.0, held against our own run by an importer of the tests, and FMPy's with its tolerance."""

import numpy as np
import pytest

import fsm_dyn

fmpy = pytest.importorskip("fmpy")
from fmpy.fmi1 import FMICallException  # noqa: E402

from tests.exports.importer import Importer, instance, pointer  # noqa: E402


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a function that gives graph and unit of a model, made once."""
    kept = {}

    def make(name):
        if name not in kept:
            graph = fsm_dyn.compile(name)
            folder = tmp_path_factory.mktemp(name)
            kept[name] = graph, fsm_dyn.export(graph, folder, "fmu3") / f"{name}.fmu"
        return kept[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFLAGS", "-O0")
        yield make


@pytest.mark.parametrize("name", ["bouncing_ball", "latch", "shopping_cart"])
def test_the_same_modes_and_event_times(made, tmp_path, name):
    """Event times to 1e-7 s; the end of a Zeno sequence, whose contacts close at once here, is at most 2e-4 s early."""
    graph, path = made(name)
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    end = float(run.t[-1])
    events = Importer(path, tmp_path).run(end).events
    own = [x for x in run.transitions if 0.0 < x.time < end]
    names = [item.name for item in fmpy.read_model_description(str(path)).typeDefinitions[0].items]
    assert [(names[a], names[b]) for _, a, b in events] == [(str(x.source), str(x.target)) for x in own]
    for (time, _, _), x in zip(events, own, strict=True):
        early = x.time - time
        assert -1e-7 <= early <= (2e-4 if "Zeno" in str(x) else 1e-7), str(x)


def test_the_ball_comes_to_rest_and_never_sinks(made, tmp_path):
    """Not below -1e-9 m at any step of the importer, though it bounces 47 times; then it rests."""
    graph, path = made("bouncing_ball")
    importer = Importer(path, tmp_path).run(5.0)
    height = list(graph.automaton.terms.layout.q).index("y")
    assert min(x[height] for x in importer.states) >= -1e-9
    assert importer.states[-1] == pytest.approx(0.0, abs=1e-9)


def test_fmpy_integrates_a_unit(made):
    """CVode at 1e-9: the mode and the state at the end; the last place of the ball is exact, as it rests."""
    _, path = made("bouncing_ball")
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="ModelExchange", relative_tolerance=1e-9, stop_time=5.0, output=["y", "mode"]
    )
    assert rows["mode"][-1] == 2
    assert rows["y"].min() >= -1e-9
    assert rows["y"][-1] == pytest.approx(0.0, abs=1e-9)


def test_a_saved_state_is_read_back(made, tmp_path):
    _, path = made("latch")
    it, known, description = instance(path, tmp_path)
    n = description.numberOfContinuousStates
    it.enterInitializationMode()
    it.exitInitializationMode()
    it.updateDiscreteStates()
    it.enterContinuousTimeMode()
    x, rates, again = np.empty(n), np.empty(n), np.empty(n)
    it.getContinuousStates(pointer(x), n)
    it.setTime(0.01)
    it.getContinuousStateDerivatives(pointer(rates), n)
    kept = it.getFMUState()
    it.setTime(0.05)
    moved = x + 0.01
    it.setContinuousStates(pointer(moved), n)
    it.getContinuousStateDerivatives(pointer(again), n)
    assert (again != rates).any()
    it.setFMUState(kept)
    it.getContinuousStateDerivatives(pointer(again), n)
    assert (again == rates).all()
    for value in (np.nan, np.inf):  # refused, and nothing has changed
        with pytest.raises(FMICallException):
            it.setTime(value)
        with pytest.raises(FMICallException):
            it.setContinuousStates(pointer(np.full(n, value)), n)
    with pytest.raises(FMICallException):
        it.getContinuousStateDerivatives(pointer(again), n - 1)
    it.getContinuousStateDerivatives(pointer(again), n)
    assert (again == rates).all()
    assert it.getFloat64([known["time"]]) == [0.01]
    it.terminate()
    it.freeInstance()
