"""A block that lands flat to rounding: the slips of its two corners then differ by nothing that a law could use."""

import numpy as np
import pytest

import fsm_dyn

MASS = 100.0  # kg
START = {
    "mode": "in_air", "q": 0.1148981338359525, "y": 0.6614672102385949, "vx": 0.20660736520816228,
    "vy": -0.9815969126630921, "w": 0.4025280167227916,
}  # fmt: skip


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-9, 1e-11])
def test_impulses_are_of_the_size_of_the_momentum(rtol):
    """A null vector with a normal part of 1e-12 is rounding; taken for a force it asked for 1e13 N s."""
    graph = fsm_dyn.compile("rocking_block")
    run = fsm_dyn.simulate(graph, 2.0, initial=START, parameters={"b": 0.146038857131165}, rtol=rtol)
    momentum = MASS * np.abs(run.u).max()
    for transition in run.transitions:
        for impulse in transition.impulse.values():
            assert np.abs(impulse).max() <= 10.0 * momentum
