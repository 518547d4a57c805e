"""Simulators: a graph stays as it is, threads on one graph do not disturb each other, and memory is given back."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.kernels import Kernels
from fsm_dyn.run import run_setup as executable_pool
from fsm_dyn.run.executable import DerivedModes, program_memory
from fsm_dyn.run.simulator import simulator_of

THREADS = 8

# inputs by an expression, whose kernel has room of its own; modes that are derived, embedded online or both
RUNS = {
    "box_on_table": [
        {"strategy": "compiled", "initial": {"mode": "in_air", "y": 0.17, "q": 0.05}},
        {"strategy": "online", "method": "rk4", "step": 1e-3},
        {"strategy": "auto", "inputs": {"push": "3*sin(20*t)"}},
        {"inputs": {"push": "3*sin(21*t)"}, "initial": {"mode": "in_air", "y": 0.18, "q": -0.1}},
        {"method": "moreau_jean", "step": 1e-3},
        {"method": "radau", "inputs": {"nudge": "cos(9*t)"}},
        {"strategy": "compiled", "parameters": {"mu": 0.31}},
        {"strategy": "online", "inputs": {"push": "3*sin(20*t)"}, "initial": {"mode": "in_air", "y": 0.17, "w": 1.5}},
    ],
    "twelve_contacts": [
        {"initial": {"x": 0.01 * k, "y": 0.06, "vx": 0.3, "w": 5.0 - 0.1 * k}, **how}
        for k, how in enumerate(3 * [{"strategy": "compiled"}, {"derive_after": 200}] + [{}, {"strategy": "online"}])
    ],
}


def content(run):
    """All numbers of a run, to the last bit, with the names of its modes and its transitions."""
    arrays = (run.t, run.q, run.u, run.rows.multiplier_table)
    numbers = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return (*numbers, tuple(run.modes), [(x.time, x.source, x.target, str(x.cause)) for x in run.transitions])


@pytest.mark.parametrize("name", list(RUNS))
def test_threads_on_one_graph_make_the_runs_that_each_would_make_alone(name):
    def run(graph, settings):
        return content(fsm_dyn.simulate(graph, 0.4, on_failure="return", **settings))

    alone = [run(fsm_dyn.compile(name), settings) for settings in RUNS[name]]
    graph = fsm_dyn.compile(name)
    together = threading.Barrier(THREADS)

    def in_thread(number):
        """All runs, each thread beginning with another, so that everything is met in another order."""
        order = [(number + k) % len(RUNS[name]) for k in range(len(RUNS[name]))]
        together.wait()
        return {k: run(graph, RUNS[name][k]) for k in order}

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(in_thread, range(THREADS)):
            assert [found[k] for k in range(len(alone))] == alone
    assert len({repr(numbers) for numbers in alone}) == len(alone)


def test_a_graph_is_not_changed_by_its_runs():
    graph = fsm_dyn.compile("twelve_contacts")
    modes, nodes = list(graph.modes), set(graph.nx)
    before = dict(vars(graph))
    fsm_dyn.simulate(graph, 0.4, initial={"x": 0.0, "y": 0.06, "vx": 0.3, "w": 5.0}, on_failure="return")
    assert vars(graph) == before
    assert (list(graph.modes), set(graph.nx)) == (modes, nodes)
    with pytest.raises(FrozenInstanceError):
        graph.initial = "rolling"
    with pytest.raises(ValueError, match="read-only"):
        graph.parameters[0] = 1.0
    with pytest.raises(TypeError):
        graph.values["mu"] = 0.0


def test_a_simulator_refuses_a_second_thread_and_goes_on_after_a_failure():
    simulator = fsm_dyn.Simulator(fsm_dyn.compile("bouncing_ball"))
    refused = []

    def elsewhere(_time):
        with ThreadPoolExecutor(1) as pool, pytest.raises(fsm_dyn.RunError, match="another thread"):
            pool.submit(simulator.run, 0.1).result()
        refused.append(content(simulator.run(0.1)))  # in the same thread a run may be made within a run
        raise KeyError

    with pytest.raises(KeyError):
        simulator.run(60.0, method="rk4", step=1e-3, progress=elsewhere)
    assert refused == [content(simulator.run(0.1))]


def test_a_graph_that_nobody_has_is_released_with_its_simulator():
    graph = fsm_dyn.compile("bouncing_ball")
    fsm_dyn.simulate(graph, 0.1)
    kept = weakref.ref(graph), weakref.ref(simulator_of(graph))
    assert simulator_of(graph) is kept[1]()
    del graph
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


def codes_in_memory():
    """How often kernels are held; LLVM keeps each code but once."""
    gc.collect()
    return sum(isinstance(thing, Kernels) for thing in gc.get_objects())


@pytest.mark.parametrize("strategy", [{"strategy": "compiled"}, {"derive_after": 5}, {"strategy": "online"}])
def test_a_run_made_again_holds_no_further_code(strategy):
    """Kernels of charts that were forgotten were held for as long as the simulator: some for every run."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile("box_on_table"))
    begin = {"mode": "in_air", "y": 0.17, "q": 0.05}

    def held(runs):
        for _ in range(runs):
            simulator.run(0.4, initial=begin, **strategy)
        return codes_in_memory()

    assert held(2) == held(4)


@pytest.mark.parametrize("most", [1, 3_000])
@pytest.mark.parametrize("strategy", [{"strategy": "compiled"}, {"derive_after": 20}, {"strategy": "online"}])
def test_modes_are_kept_up_to_a_bound_and_runs_do_not_show_it(monkeypatch, strategy, most):
    graph = fsm_dyn.compile("box_on_table")
    begins = [{"mode": "in_air", "y": 0.17, "q": q} for q in (0.05, -0.1, 0.6, 0.05, 2.0, -0.1)]

    def runs(simulator):
        for begin in begins:
            yield content(simulator.run(0.4, initial=begin, on_failure="return", **strategy))

    unbounded = fsm_dyn.Simulator(graph)
    expected = list(runs(unbounded))
    assert unbounded.memory > most, "nothing would have to be dropped"
    monkeypatch.setattr(executable_pool, "MOST_KEPT", most)
    bounded = fsm_dyn.Simulator(graph)
    for found, right in zip(runs(bounded), expected, strict=True):
        assert found == right
        assert len(bounded._modes) <= 1 or bounded._modes.memory <= most
        assert bounded.memory - bounded._modes.memory <= most


def test_the_mode_used_longest_ago_is_dropped():
    graph = fsm_dyn.compile("box_on_table")
    first, second, third = graph.automaton.modes[:3]
    made = []

    def get(modes, mode):
        assert modes.get(mode.states, lambda: made.append(mode) or mode) is mode

    modes = DerivedModes(sum(program_memory(mode.programs) for mode in (first, second, third)) - 1)
    for mode in (first, second, first, third, first, third):
        get(modes, mode)
    assert made == [first, second, third]
    assert list(modes) == [first, third]
    get(modes, second)
    assert made[3:] == [second]
    assert modes.memory == sum(program_memory(mode.programs) for mode in modes)


def test_the_buffers_of_earlier_runs_that_are_kept_have_a_bound():
    """Of all of them together: every method has its buffers, and every table of modes that runs derived."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile("bouncing_ball"))
    for method in ("rk4", "heun", "euler"):
        simulator.run(1.0, method=method, step=4e-4)
        rows = [len(loop.buffers.modes) for loop in simulator.workspace.idle]
        assert rows
        assert sum(rows) <= 8192


@pytest.mark.parametrize("what", ["inputs", "parameters", "initial"])
@pytest.mark.parametrize("value", ["rest", [1.0]])
def test_values_without_names_are_refused(what, value):
    with pytest.raises(InputError, match=f"'{what}' has a wrong type"):
        fsm_dyn.simulate(fsm_dyn.compile("latch"), 1.0, **{what: value})


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_a_length_of_steps_is_refused_where_the_method_chooses_its_own(method):
    with pytest.raises(InputError, match=rf"(?s)'{method}' chooses.*0\.001.*euler, heun, rk4, moreau_jean.*max_step"):
        fsm_dyn.simulate(fsm_dyn.compile("latch"), 0.01, method=method, step=1e-3)


def test_the_default_method_with_a_length_of_steps_is_rk4():
    graph = fsm_dyn.compile("latch")
    default, fixed, adaptive = (
        fsm_dyn.simulate(graph, 0.1, **how).rows.x for how in ({"step": 1e-3}, {"step": 1e-3, "method": "rk4"}, {})
    )
    assert np.array_equal(default, fixed)
    assert not np.array_equal(default[-1], adaptive[-1])
