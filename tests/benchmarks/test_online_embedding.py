"""On-line embedding beside the kernels derived for the same modes: cost of an evaluation and of an accepted step."""

from __future__ import annotations

import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.compiling import compile as compile_model
from fsm_dyn.compiling import initial_start
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.calling import call_rhs
from fsm_dyn.simulation.compiled import whole
from fsm_dyn.simulation.machine import Machine
from fsm_dyn.simulation.online_chart import choose_online_chart
from fsm_dyn.simulation.online_machine import OnlineMachine
from fsm_dyn.simulation.online_places import new_chart, workspace

pytestmark = pytest.mark.benchmark

EVALUATION = 12.0  # times the kernel of the mode
LEAST = 20e-9  # s; a kernel that does next to nothing (a block at rest: 2 ns) counts as one that does this little
STEP = 6.0  # times an accepted step with kernels
EVALUATIONS = 20_000
MODELS = ("bouncing_ball", "pendulum_with_stop", "double_pendulum_with_stop", "ball_in_corner", "rocking_block",
          "sliding_rod", "stick_slip_belt", "ratchet")  # fmt: skip

_open_tables = st.TABLES.opener()


@whole
def _repeat(tables_at, mode, x, c, chart, room, out, online, times):
    tables = _open_tables(tables_at)
    if online:
        choose_online_chart(tables, chart, room, mode, 0.0, x, c)
    for i in range(times):
        call_rhs(tables, chart, room, mode, 1e-6 * i, x, c, out, 0)


def _seconds(machine, number, x, c):
    """Least time of one evaluation among a few batches."""
    tables = machine.tables
    packed = st.TABLES.pack(tables)
    chart, room, out = new_chart(tables.sizes), np.zeros(workspace(tables.sizes)[0]), np.zeros(len(x))
    online = bool(tables.mode_rhs[number] == 0)
    best = np.inf
    for _ in range(7):
        begin = time.perf_counter()
        _repeat(packed.address, number, x, c, chart, room, out, online, EVALUATIONS)
        best = min(best, time.perf_counter() - begin)
    assert np.isfinite(out).all()
    return best / EVALUATIONS


@pytest.mark.parametrize("model", MODELS)
def test_an_evaluation(model):
    graph = compile_model(model)
    begin = initial_start(graph.automaton, graph.values, graph.parameters)
    kernels = Machine(graph.automaton, (begin.x, begin.context))
    online = OnlineMachine(graph.automaton, (begin.x, begin.context))
    for mode in graph.automaton.modes:
        context = begin.context.copy()
        layout = graph.automaton.terms.layout
        context[layout.sigma_slice] = np.where(np.array(mode.states) == 2, 1.0, 0.0)
        if not mode.programs.full.evaluate(0.0, begin.x, context)["pivot"][0] > 1e-3:
            continue
        own = _seconds(kernels, kernels.number_of(mode.states), begin.x, context)
        embedded = _seconds(online, online.number_of(mode.states), begin.x, context)
        print(f"{model} {mode.name}: {own * 1e9:.0f} ns, on line {embedded * 1e9:.0f} ns: {embedded / own:.1f}")
        assert embedded <= EVALUATION * max(own, LEAST)


@pytest.mark.parametrize("model", MODELS)
def test_an_accepted_step(model):
    graph = compile_model(model)
    until, best, steps = 2.0, {}, {}
    for strategy in ("graph", "online"):
        for _ in range(4):
            begin = time.perf_counter()
            run = fsm_dyn.simulate(graph, until=until, strategy=strategy, max_step=1e-3, on_failure="return")
            best[strategy] = min(best.get(strategy, np.inf), time.perf_counter() - begin)
            steps[strategy] = len(run.t)
    ratio = best["online"] / steps["online"] / (best["graph"] / steps["graph"])
    print(f"{model}: {best['graph'] / steps['graph'] * 1e9:.0f} ns a step, on line {ratio:.1f} times")
    assert ratio <= STEP
