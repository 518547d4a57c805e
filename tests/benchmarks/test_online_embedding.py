"""On-line embedding beside the kernels derived for the same modes: cost of an evaluation and of an accepted step."""

from __future__ import annotations

import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.compiling import compile as compile_model
from fsm_dyn.compiling import initial_start
from fsm_dyn.online.machine import OnlineMachine
from fsm_dyn.simulation.compiled import whole
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.machine import Machine

pytestmark = pytest.mark.benchmark

EVALUATION = 12.0  # times the kernel of the mode
LEAST = 20e-9  # s; a kernel that does next to nothing (a block at rest: 2 ns) counts as one that does this little
STEP = 6.0  # times an accepted step with kernels
EVALUATIONS = 20_000
MODELS = ("bouncing_ball", "pendulum_with_stop", "double_pendulum_with_stop", "ball_in_corner", "rocking_block",
          "sliding_rod", "stick_slip_belt", "ratchet", "box_on_table", "felt_drop")  # fmt: skip


@whole
def _repeat(address, x, c, out, times):
    for i in range(times):
        call_kernel(address, 1e-6 * i, x, c, out)


def _seconds(machine, number, x, c):
    """Least time of one evaluation among a few batches."""
    out, best = np.zeros(len(x)), np.inf
    for _ in range(7):
        begin = time.perf_counter()
        _repeat(machine.charts[number].rhs, x, c, out, EVALUATIONS)
        best = min(best, time.perf_counter() - begin)
    assert np.isfinite(out).all()
    return best / EVALUATIONS


@pytest.mark.parametrize("model", MODELS)
def test_an_evaluation(model):
    graph = compile_model(model)
    begin = initial_start(graph.automaton, graph.values, graph.parameters)
    kernels = Machine(graph.automaton, (begin.x, begin.context))
    online = OnlineMachine(graph.automaton, (begin.x, begin.context))
    ratios = {}
    for mode in graph.automaton.modes:
        context = begin.context.copy()
        layout = graph.automaton.terms.layout
        context[layout.sigma_slice] = np.where(np.array(mode.states) == 2, 1.0, 0.0)
        if not mode.programs.full.evaluate(0.0, begin.x, context)["pivot"][0] > 1e-3:
            continue
        own = _seconds(kernels, kernels.number_of(mode.states), begin.x, context)
        embedded = _seconds(online, online.number_of(mode.states), begin.x, context)
        ratios[mode.name] = embedded / max(own, LEAST)
        print(f"{model} {mode.name}: {own * 1e9:.0f} ns, on line {embedded * 1e9:.0f} ns: {embedded / own:.1f}")
    assert max(ratios.values()) <= EVALUATION, ratios


@pytest.mark.parametrize("model", MODELS)
def test_an_accepted_step(model):
    graph = compile_model(model)
    until, best, steps = 2.0, {}, {}
    for _ in range(12):
        for strategy in ("graph", "online"):
            begin = time.perf_counter()
            run = fsm_dyn.simulate(graph, until=until, strategy=strategy, max_step=1e-3, on_failure="return")
            best[strategy] = min(best.get(strategy, np.inf), time.perf_counter() - begin)
            steps[strategy] = len(run.t)
    ratio = best["online"] / steps["online"] / (best["graph"] / steps["graph"])
    print(f"{model}: {best['graph'] / steps['graph'] * 1e9:.0f} ns a step, on line {ratio:.1f} times")
    assert ratio <= STEP
