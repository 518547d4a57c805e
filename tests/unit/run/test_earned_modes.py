"""Modes embedded online that earn kernels of their own: when, that it is the same in every run, and what stays."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.online import OnlineMode, usual_allowance

EVALUATIONS = 7  # of a trial step of dopri5: six stages and its end


def charts(run):
    """Whether the chart of each row is embedded online."""
    online = np.array([isinstance(chart, OnlineMode) for chart in run.model.charts])
    return online[run.record.mode]


def content(run):
    return [np.ascontiguousarray(array).tobytes() for array in (run.t, run.q, run.u, run.record.mode)]


@pytest.fixture(scope="module")
def reel():
    """A model whose runs spend most of their time in a mode that it does not list."""
    return fsm_dyn.compile("seat_belt_reel")


@pytest.mark.parametrize("method", [{}, {"method": "rk4", "step": 1e-3}, {"method": "radau"}])
def test_kernels_are_taken_over_in_mid_mode_at_the_step_that_the_count_says(reel, method):
    simulator = fsm_dyn.Simulator(reel)
    kernels = simulator.run(1.0, strategy="compiled", **method)
    runs = [simulator.run(1.0, derive_after=after, **method) for after in (np.inf, 800, 400)]
    steps = [int(charts(run).sum()) for run in runs]
    assert steps[0] > steps[1] > steps[2] > 0
    if not method:
        trials = 400 // EVALUATIONS + 1
        assert 0.5 * trials <= steps[2] <= trials + 2  # of which some are rejected or retaken
    for run in runs:
        assert [x.target for x in run.transitions] == [x.target for x in kernels.transitions]
        np.testing.assert_allclose(run.q[-1], kernels.q[-1], rtol=1e-7, atol=1e-9)
        assert all(isinstance(chart, ModePrograms | OnlineMode) for chart in run.model.charts)
        assert np.isfinite(run.rows.multiplier_table).all()
    assert len(set(runs[2].modes)) < len({*runs[2].record.mode.tolist()})  # two charts of one mode, under one name


def test_a_run_does_not_depend_on_what_earlier_runs_derived(reel):
    alone = content(fsm_dyn.Simulator(reel).run(1.0, derive_after=400))
    simulator = fsm_dyn.Simulator(reel)
    assert not simulator.extended_graph().modes.keys() - reel.modes.keys()
    simulator.run(1.0, strategy="compiled")
    simulator.run(0.5, derive_after=0)
    assert simulator.extended_graph().modes.keys() > reel.modes.keys()
    assert content(simulator.run(1.0, derive_after=400)) == alone
    # but modes that a graph was made with are its own: they run by kernels from the beginning
    extended = fsm_dyn.simulate(simulator.extended_graph(), 1.0)
    assert not charts(extended).any()
    assert content(extended) != alone


def test_modes_have_machine_code_once_a_run_comes_to_them():
    """Modes of the graph that no run meets are not compiled, and runs are as those of a simulator with all of them."""
    graph = fsm_dyn.compile("piano_action_simple")
    simulator, whole = fsm_dyn.Simulator(graph), fsm_dyn.Simulator(graph)
    whole.prepare()
    assert all(chart.rhs for chart in whole.take("auto").charts)
    whole.prepare()
    found = simulator.run(0.5)
    visited = {found.model.charts[number].states for number in found.record.mode.tolist()}
    charts = [chart for chart in simulator.take("auto").charts if isinstance(chart.programs, ModePrograms)]
    ready = {chart.programs.states for chart in charts if chart.rhs}
    assert len(charts) == len(graph.modes) > len(ready)
    assert ready == visited & {chart.programs.states for chart in charts}
    assert content(found) == content(whole.run(0.5))


def test_tables_of_kernels_taken_over_are_put_together_once(monkeypatch):
    """Of the third run on nothing is put together, whether a run between the two came to other charts."""
    built = []
    append, build = Executable._with_last, Executable._build
    monkeypatch.setattr(Executable, "_with_last", lambda self: built.append("appended") or append(self))
    monkeypatch.setattr(Executable, "_build", lambda self: built.append("built") or build(self))
    simulator = fsm_dyn.Simulator(fsm_dyn.compile("piano_action_simple"))
    runs = [content(simulator.run(0.5, derive_after=300))]
    assert built.count("appended") > 3
    runs += [content(simulator.run(0.5, derive_after=300))]
    built.clear()
    runs += [content(simulator.run(0.5, derive_after=300))]
    assert not built
    simulator.run(0.1, parameters={"g": "8 m/s^2"}, derive_after=300)
    runs += [content(simulator.run(0.5, derive_after=300))]
    assert runs[1] == runs[2] == runs[3]
    assert content(fsm_dyn.Simulator(simulator.graph).run(0.5, derive_after=300))[:3] == runs[0][:3] == runs[1][:3]


def test_a_run_interrupted_between_two_steps_takes_over_at_the_same_one(reel, monkeypatch):
    """How often the runtime returns to its caller follows the clock; where kernels are taken over does not."""
    alone = content(fsm_dyn.Simulator(reel).run(1.0, derive_after=400))
    monkeypatch.setattr("fsm_dyn.run.loop._FIRST_CHUNK", 7)
    monkeypatch.setattr("fsm_dyn.run.loop._CHUNK_SECONDS", 0.0)
    assert content(fsm_dyn.Simulator(reel).run(1.0, derive_after=400)) == alone


def test_all_modes_of_a_graph_that_lists_them_run_by_kernels():
    graph = fsm_dyn.compile("double_pendulum_with_stop")
    runs = [fsm_dyn.simulate(graph, 1.0, **how) for how in ({}, {"strategy": "compiled"}, {"derive_after": 0})]
    assert content(runs[0]) == content(runs[1]) == content(runs[2])


def test_modes_that_share_forces_stay_online():
    """A plate on six feet that stick: friction is shared, and its limits are the widest margin's."""
    model = {
        "fsm_dyn": 1, "name": "plate", "coordinates": {"x": "m", "y": "m"},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"plate": {"center": "C", "mass": "1 kg"}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)"},
        "contacts": {
            f"foot{i}": {"gap": "y", "slip": "vx", "friction": {"static": 0.5, "kinetic": 0.5}} for i in range(6)
        },
        "inputs": {"push": "N"}, "parameters": {"g": "9.81 m/s^2"},
        "loads": [{"gravity": "-g*N.y"}, {"force": "push*N.x", "at": "C"}],
        "modes": {"flying": {f"foot{i}": "open" for i in range(6)}},
        "initial": {"mode": "flying", "y": "0.01 m"},
    }  # fmt: skip
    graph = fsm_dyn.compile(model)
    simulator = fsm_dyn.Simulator(graph)
    run = simulator.run(0.5, derive_after=0, max_step=1e-3, inputs={"push": "9*t"})
    assert run.modes[-1] == "+".join(f"foot{i}_stick" for i in range(6))
    assert charts(run)[-1]
    assert run.modes[-1] not in simulator.extended_graph().modes


def test_the_usual_allowance_follows_from_the_model_alone(reel):
    found = {name: usual_allowance(fsm_dyn.compile(name).automaton) for name in ("bouncing_ball", "piano_action")}
    assert 1_000 < found["bouncing_ball"] < found["piano_action"] < 50_000
    assert usual_allowance(reel.automaton) == usual_allowance(fsm_dyn.compile("seat_belt_reel", cache=False).automaton)


@pytest.mark.parametrize(
    "given", [{"derive_after": -1.0}, {"derive_after": np.nan}, {"strategy": "online", "derive_after": 5}]
)
def test_allowances_that_cannot_be(reel, given):
    with pytest.raises(fsm_dyn.InputError, match="derive_after"):
        fsm_dyn.simulate(reel, 0.1, **given)
