"""The gripper holds by friction what Coulomb's law says it can, and no more."""

import numpy as np
import pytest

import fsm_dyn


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("gripper")


def test_it_lifts_holds_and_drops_the_block(graph):
    run = fsm_dyn.simulate(graph, until=3.0)
    held = run.sample(np.linspace(1.6, 1.9, 7))
    # the hand stands 80 mm higher, less what the block's weight bends its spring by
    sag = 0.3 * 9.81 / 2e3
    np.testing.assert_allclose(held["y"], 0.03 + 0.08 - sag, atol=2e-5)
    assert run.at(3.0).q[2] == pytest.approx(0.03, abs=1e-9)
    causes = " ".join(x.cause for x in run.transitions)
    assert "stand_start" in causes
    drop = next(x for x in run.transitions if x.target == "dropped")
    assert "input jump" in drop.cause


@pytest.mark.parametrize(("share", "holds"), [(1.05, True), (0.9, False)])
def test_the_least_grip_that_holds(graph, share, holds):
    """Two pads hold m g while 2 mu N >= m g; N is the drive less the finger's own spring.

    The margins cover the lift's acceleration, which the spring and damper of the hand keep below 4 % of g here.
    """
    m, g, mu, k, reach, half, thick = 0.3, 9.81, 0.5, 60.0, 0.04, 0.02, 0.008
    grip = share * m * g / (2 * mu)
    drive = grip + k * (reach - half - thick)
    slow = {"height": {"linear": [(0.0, 0.0), (1.0, 0.0), (5.0, 0.04)]}}
    run = fsm_dyn.simulate(graph, until=5.0, inputs={"left_drive": drive, "right_drive": drive, **slow})
    assert (run["y"][-1] > 0.06) == holds
