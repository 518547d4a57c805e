"""Constraints moved by inputs: kinematics exact, the work of the drive in the account, jumps refused."""

import numpy as np
import pytest

import fsm_dyn

# a cart on a rail whose position is prescribed, a pendulum hanging from it
DRIVEN = {
    "fsm_dyn": 1,
    "name": "driven_pendulum",
    "parameters": {"m": 0.3, "l": 0.4, "g": 9.81, "mc": 1.5},
    "coordinates": ["x", "th"],
    "frames": {"B": {"parent": "N", "rotate": {"z": "th"}}},
    "points": {"C": {"from": "O", "at": "x*N.x"}, "P": {"from": "C", "at": "-l*B.y"}},
    "bodies": {"cart": {"center": "C", "mass": "mc"}, "bob": {"center": "P", "mass": "m"}},
    "inputs": ["w"],
    "constraints": {"rail": {"position": "x - w"}},
    "loads": [{"gravity": "-g*N.y"}],
    "initial": {"th": 0.2},
}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(fsm_dyn.load(DRIVEN))


def test_prescribed_motion_is_met_and_its_force_is_newtons(graph):
    run = fsm_dyn.simulate(graph, 2.0, inputs={"w": "0.1*sin(3*t)"}, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.q[:, 0], 0.1 * np.sin(3 * run.t), atol=1e-9)
    np.testing.assert_allclose(run.u[:, 0], 0.3 * np.cos(3 * run.t), atol=1e-9)
    th, om = run.q[:, 1], run.u[:, 1]
    a = -0.9 * np.sin(3 * run.t)
    alpha = (-9.81 * np.sin(th) - a * np.cos(th)) / 0.4
    force = (1.5 + 0.3) * a + 0.3 * 0.4 * (alpha * np.cos(th) - om**2 * np.sin(th))
    np.testing.assert_allclose(run.multipliers["rail"][:, 0], force, atol=1e-8)
    assert run.energy.relative_residual <= 1e-8


def test_a_kink_is_an_impulse(graph):
    """Where the slope of the prescribed motion jumps, the cart's speed jumps and takes the bob along."""
    run = fsm_dyn.simulate(graph, 1.0, inputs={"w": [(0.0, 0.0), (0.5, 0.0), (1.0, 0.1)]})
    kink = next(x for x in run.transitions if x.time == 0.5)
    assert kink.u_after[0] == pytest.approx(0.2, abs=1e-12)
    assert kink.impulse["rail"][0] > 0.0


def test_a_jump_is_refused(graph):
    with pytest.raises(fsm_dyn.InputError, match="must be continuous"):
        fsm_dyn.simulate(graph, 1.0, inputs={"w": {"steps": [[0, 0], [0.5, 0.1]]}})
