"""Simulators: a graph stays as it is, threads on one graph do not disturb each other, and memory is given back."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.simulator import simulator_of

THREADS = 8

# inputs by an expression, whose kernel has room of its own; modes that are derived, embedded on line or both
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
    before = dict(vars(graph))
    modes, nodes = list(graph.modes), set(graph.nx)
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


def test_a_graph_that_nobody_has_is_let_go_with_its_simulator():
    graph = fsm_dyn.compile("bouncing_ball")
    fsm_dyn.simulate(graph, 0.1)
    kept = weakref.ref(graph), weakref.ref(simulator_of(graph))
    assert simulator_of(graph) is kept[1]()
    del graph
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
