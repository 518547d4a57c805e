"""A chain with backlash at every hinge, its end pushed in turns: what a second and a transition cost as it grows."""

import time

import numpy as np
import pytest

import fsm_dyn
from mechanisms.chain import chain_with_backlash
from tests.benchmarks.test_runtime_growth import measured

pytestmark = pytest.mark.benchmark
JOINTS = (1, 5, 15, 30)
UNTIL = 0.5  # s
GAP = 1e-9  # the default tolerance of gaps, m or rad


def test_a_chain_with_backlash():
    costs = []
    for n in JOINTS:
        graph = fsm_dyn.compile(chain_with_backlash(n))
        run = fsm_dyn.simulate(graph, until=UNTIL, strategy="online")
        begin = time.process_time()
        fsm_dyn.simulate(graph, until=UNTIL, strategy="online")
        second = (time.process_time() - begin) / UNTIL
        beyond = np.abs([run[f"q{i}"] for i in range(1, n + 1)]).max() - np.radians(1)
        assert beyond <= GAP
        assert run.energy.relative_residual < 1e-8  # the relative error of a step
        step, transition, _ = measured(graph, UNTIL)
        costs.append(transition)
        print(
            f"\n{n} joints: {len(run.transitions)} transitions, {second:.3f} s for a simulated second, "
            f"a step {step * 1e6:.1f} us, a transition {transition * 1e6:.1f} us; energy off by "
            f"{run.energy.relative_residual:.1e}, {max(beyond, 0.0):.1e} rad beyond a stop"
        )
    growth = np.polyfit(np.log(JOINTS), np.log(costs), 1)[0]
    longer = np.polyfit(np.log(JOINTS[1:]), np.log(costs[1:]), 1)[0]
    print(f"a transition grows as n^{growth:.2f}, from {JOINTS[1]} joints on as n^{longer:.2f}")
    assert growth <= 1.5
    assert longer <= 2.2  # the mass matrix is full: 1.8 was measured
