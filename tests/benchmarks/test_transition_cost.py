"""What a transition with an impact costs, in ordinary steps of the same run, both from one process.

The same run is ended just before and just behind each of its first transitions.  What the end behind one takes more is
the cost of the transition; what the end before the next takes more is that of the steps between.  (Times over numbers
of steps do not lie on a line: the proof that no event is missed in a step costs more in longer ones.)
"""

import time

import numpy as np
import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark
REPEATS = 200
STEPS = 3000  # of the whole span
EVENTS = 8  # the first ones, some steps apart
RUNS = [("bouncing_ball", 6.0), ("rimless_wheel", 100.0), ("double_pendulum_with_stop", 20.0)]


def seconds(graph, runs):
    """Least processor time of each run among some rounds of all, s; shape (n,)."""
    best = np.full(len(runs), np.inf)
    for _ in range(REPEATS):
        for k, options in enumerate(runs):
            begin = time.process_time()
            fsm_dyn.simulate(graph, **options)
            best[k] = min(best[k], time.process_time() - begin)
    return best


@pytest.mark.parametrize(("model", "until"), RUNS)
def test_a_transition_costs_at_most_twenty_steps(model, until):
    """Location, resolution and record together."""
    graph = fsm_dyn.compile(model)
    options = {"method": "rk4", "step": until / STEPS}
    events = [change.time for change in fsm_dyn.simulate(graph, until=until, **options).transitions if change.impulse]
    apart = [t for before, t in zip([0.0, *events], events, strict=False) if t - before > 5 * options["step"]][:EVENTS]
    assert len(apart) == EVENTS
    close = 0.1 * options["step"]
    ends = np.add.outer(apart, [-close, close]).ravel()
    runs = [fsm_dyn.simulate(graph, until=end, **options) for end in ends]
    transitions = np.array([len(run.transitions) for run in runs])
    steps = np.array([len(run) for run in runs]) - 2 * transitions
    times = seconds(graph, [{"until": end, **options} for end in ends])
    across, between = np.diff(times)[::2].sum(), np.diff(times)[1::2].sum()
    step = between / np.diff(steps)[1::2].sum()
    cost = across / np.diff(transitions)[::2].sum()
    print(f"{model}: a step {1e6 * step:.2f} us, a transition {1e6 * cost:.2f} us, {cost / step:.1f} steps")
    assert 0.0 < cost <= 20 * step
