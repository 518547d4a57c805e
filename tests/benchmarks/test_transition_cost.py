"""What a transition with an impact costs, in ordinary steps of the same run, both from one process.

Runs of the same span with shorter and shorter steps have the same transitions, so their times lie on a line over the
number of steps: its slope is the cost of a step, what it begins with is that of the transitions and of the call.
"""

import time

import numpy as np
import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark
REPEATS = 15
STEPS = (2000, 2500, 3000, 3500)
RUNS = [("bouncing_ball", 6.0), ("rimless_wheel", 100.0), ("double_pendulum_with_stop", 20.0)]


def seconds(graph, **options):
    """Least processor time of a run among some, s."""
    best = np.inf
    for _ in range(REPEATS):
        begin = time.process_time()
        fsm_dyn.simulate(graph, **options)
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.parametrize(("model", "until"), RUNS)
def test_a_transition_costs_at_most_twenty_steps(model, until):
    """Location, resolution and record together."""
    graph = fsm_dyn.compile(model)
    counts, times, transitions = [], [], []
    for n in STEPS:
        options = {"until": until, "method": "rk4", "step": until / n}
        run = fsm_dyn.simulate(graph, **options)
        transitions.append(len(run.transitions))
        counts.append(len(run) - 2 * len(run.transitions))
        times.append(seconds(graph, **options))
    assert sum(bool(x.impulse) for x in run.transitions) >= 20
    step, begin = np.polyfit(counts, times, 1)
    call = seconds(graph, until=1e-6, method="rk4", step=1e-6)
    cost = (begin - call) / np.mean(transitions)
    print(f"{model}: a step {1e6 * step:.2f} us, a transition {1e6 * cost:.2f} us, {cost / step:.1f} steps")
    assert cost <= 20 * step
