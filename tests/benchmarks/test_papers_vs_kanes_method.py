"""The mechanisms of the papers against SymPy's KanesMethod with ``lambdify(cse=True)``: as accurate, and sooner."""

import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.programs.kernels import compile_programs
from tests.benchmarks.kanes_method import KaneModel
from tests.benchmarks.repeating import repeat

pytestmark = pytest.mark.benchmark
MODELS = [
    "planar_three_body", "spatial_two_body", "seven_body_mechanism", "spatial_robot", "four_bar", "slider_crank",
    "cam_flat_follower", "cam_roller_follower", "bevel_gears", "chaplygin_sleigh", "rolling_coin", "rattleback",
]  # fmt: skip
FASTER = 20.0
CALLS = 300


@pytest.mark.parametrize("name", MODELS)
def test_a_step_against_kanes_method(name):
    graph = fsm_dyn.compile(name)
    automaton, layout = graph.automaton, graph.automaton.terms.layout
    mechanism = automaton.mechanism
    begin = time.process_time()
    theirs = KaneModel(mechanism, layout)
    derived = time.process_time() - begin

    start = initial_state(automaton, graph.values, graph.parameters)
    free = tuple(0 for _ in automaton.contacts)
    mode = automaton.derive(free, 0.0, start.x, start.context)
    x, c, n_q = start.x, start.context, len(layout.q)
    given = [*graph.parameters, *c[layout.w_slice]]
    kernel = compile_programs([mode.programs.rhs])[0]
    out = np.empty(layout.n_x)
    repeat(kernel.address, x, c, out, 1)
    wanted = theirs.accelerations(0.0, x[:n_q], x[n_q:], given)[: len(layout.u)]
    np.testing.assert_allclose(out[n_q:], wanted, rtol=0, atol=1e-8 * max(1.0, np.abs(wanted).max()))

    ratios = []
    for _ in range(5):
        begin = time.process_time()
        repeat(kernel.address, x, c, out, 100 * CALLS)
        middle = time.process_time()
        for _ in range(CALLS):
            theirs.accelerations(0.0, x[:n_q], x[n_q:], given)
        ratios.append(100 * (time.process_time() - middle) / (middle - begin))
    found = float(np.median(ratios))
    print(f"\n{name}: {found:.0f} times as fast; KanesMethod derived in {derived:.1f} s")
    assert found >= FASTER
