"""Rows of dominoes that topple: what a transition costs as the row gets longer, and the laws that hold for any length.

Each is compared with one half as long in the same process, so that the machine's speed cancels.
"""

import time

import numpy as np
import pytest

import fsm_dyn
from tests.campaigns.flush import dominoes

pytestmark = pytest.mark.benchmark

UNTIL = 1.5  # s
TURNING = -2.5  # rad/s, about the front edge of the foot of the first domino
GRAVITY = 9.81


def toppling(n):
    """Return the graph of a row of n dominoes, the first of which tips over its front edge."""
    model = dominoes(n)
    model["initial"] |= {"w0": TURNING, "vx0": -0.1 * TURNING, "vy0": -0.02 * TURNING}
    return fsm_dyn.compile(model)


def run_of(n):
    """Return the run of a row, and its processor time (s); modes and machine code are those of a second run."""
    graph = toppling(n)
    fsm_dyn.simulate(graph, 0.01)
    begin = time.process_time()
    run = fsm_dyn.simulate(graph, UNTIL)
    return run, time.process_time() - begin


def conserves(run, n):
    """Whether the energy balance closes, nothing gains energy, and no impact gains any."""
    assert run.outcome.name == "done"
    assert run.energy.relative_residual <= 1e-8
    struck = [change for change in run.transitions if "Zeno time" not in change.cause]  # its record spans several
    assert all(change.energy_after <= change.energy_before + 1e-9 for change in struck)
    height = run.q[:, 1::3].sum(axis=1)
    assert (height[0] - height[-1]) * GRAVITY > 0.0
    assert (run.q[-1, 2::3] < -1.0).all(), f"all {n} have fallen"


def test_growth_of_a_transition():
    found = []
    for n in (5, 10):
        run, seconds = run_of(n)
        conserves(run, n)
        found.append(seconds / len(run.transitions))
        print(f"\n{n} dominoes: {seconds:.2f} s, {len(run.transitions)} transitions, {1e3 * found[-1]:.2f} ms each")
    exponent = np.log2(found[1] / found[0])
    print(f"a transition grows as n^{exponent:.2f}")
    assert exponent <= 1.3


def test_growth_of_a_compilation(tmp_path, monkeypatch):
    """Nothing is found in a cache; modules are loaded by a row of two."""
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    found = []
    for n in (2, 10, 20):
        begin = time.process_time()
        toppling(n)
        found.append(time.process_time() - begin)
        print(f"\n{n} dominoes are compiled in {found[-1]:.1f} s")
    exponent = np.log2(found[2] / found[1])
    print(f"a compilation grows as n^{exponent:.2f}")
    assert exponent <= 1.3


FALLEN = -0.5  # rad


def passes(run, n):
    """When each domino has turned by half a radian, s; shape (n,)."""
    return np.array([run.t[np.argmax(run.q[:, 2 + 3 * i] < FALLEN)] for i in range(n)])


def test_time_stepping_falls_with_the_events():
    """Ten dominoes by steps of 1 ms fall as located events let them, to a few steps of the row's length."""
    graph = toppling(10)
    begin = time.process_time()
    steps = fsm_dyn.simulate(graph, UNTIL, method="moreau_jean", step=1e-3)
    print(f"\n10 dominoes in {len(steps.t)} rows of time stepping: {time.process_time() - begin:.2f} s")
    assert steps.outcome.name == "done"
    apart = np.abs(passes(steps, 10) - passes(fsm_dyn.simulate(graph, UNTIL), 10))
    print(f"they pass half a radian within {1e3 * apart.max():.1f} ms")
    assert apart.max() <= 8e-3
