"""Static equilibria with contacts against closed forms; a run that begins at one stays there."""

import numpy as np
import pytest

import fsm_dyn

BLOCK = {
    "fsm_dyn": 1,
    "name": "block",
    "parameters": {"m": 2, "a": 0.4, "b": 0.2, "g": 9.81, "mu": 0.4, "slope": 0.2},
    "coordinates": ["x", "y", "q"],
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {
        "C": {"from": "O", "at": "x*N.x + y*N.y"},
        "L": {"from": "C", "at": "-a/2*B.x - b/2*B.y"},
        "R": {"from": "C", "at": "a/2*B.x - b/2*B.y"},
    },
    "bodies": {"block": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "m*(a**2 + b**2)/12"}}},
    "contacts": {
        "left": {"gap": "dot(pos(L), N.y)", "slip": "dot(vel(L), N.x)", "friction": "mu"},
        "right": {"gap": "dot(pos(R), N.y)", "slip": "dot(vel(R), N.x)", "friction": "mu"},
    },
    "loads": [{"gravity": "g*sin(slope)*N.x - g*cos(slope)*N.y"}],
    "initial": {"y": 0.5, "q": 0.3, "settle": True},
}
BOWL = {
    "fsm_dyn": 1,
    "name": "bowl",
    "parameters": {"m": 1, "R": 1.0, "g": 9.81, "side": 0.3, "k": 0},
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"marble": {"center": "P", "mass": "m"}},
    "contacts": {"shell": {"gap": "R - norm(pos(P))"}},
    "loads": [{"gravity": "side*N.x - g*N.y"}, {"spring": {"coordinate": "y", "stiffness": "k"}}],
    "initial": {"x": 0.1, "y": 0.2},
}


@pytest.fixture(scope="module")
def block():
    return fsm_dyn.compile(BLOCK)


@pytest.fixture(scope="module")
def bowl():
    return fsm_dyn.compile(BOWL)


def test_ball_and_pendulum():
    ball = fsm_dyn.static_equilibrium(fsm_dyn.compile("bouncing_ball"))
    assert (ball.mode, ball.states) == ("resting", {"ground": "closed"})
    np.testing.assert_allclose(ball.q, 0.0, atol=1e-12)
    np.testing.assert_allclose(ball.forces["ground"], [0.981], rtol=1e-12)
    pendulum = fsm_dyn.compile("pendulum_with_stop")
    leaning = fsm_dyn.static_equilibrium(pendulum)
    np.testing.assert_allclose(leaning.q, np.deg2rad(10.0), rtol=1e-12)
    np.testing.assert_allclose(leaning.forces["block"], 0.5 * 9.81 * 0.4 * np.sin(np.deg2rad(10.0)), rtol=1e-12)


def test_it_does_not_stay_on_a_ridge():
    """Upright to rounding, a pendulum leaves; it hangs after a turn or leans on its stop."""
    found = fsm_dyn.static_equilibrium(fsm_dyn.compile("pendulum_with_stop"), initial={"theta": np.pi})
    assert min(abs(found.q[0] - 2 * np.pi), abs(found.q[0] - np.deg2rad(10.0))) <= 1e-9


def test_curved_contact(bowl):
    found = fsm_dyn.static_equilibrium(bowl)
    np.testing.assert_allclose(found.q, np.array([0.3, -9.81]) / np.hypot(0.3, 9.81), rtol=1e-10)
    np.testing.assert_allclose(found.forces["shell"], np.hypot(0.3, 9.81), rtol=1e-10)
    assert not found.indeterminate


def test_without_contacts(bowl):
    """A soft spring holds it above the shell, where the side force is none."""
    found = fsm_dyn.static_equilibrium(bowl, parameters={"k": 20.0, "side": 0.0})
    assert found.mode == "all_free"
    np.testing.assert_allclose(found.q[1], -9.81 / 20.0, rtol=1e-10)


def test_hyperstatic_block(block):
    """On two rough corners: weights and total friction are determined, its sharing is one that both cones bear."""
    found = fsm_dyn.static_equilibrium(block)
    assert found.states == {"left": "stick", "right": "stick"}
    assert found.indeterminate
    np.testing.assert_allclose(found.q[1:], [0.1, 0.0], atol=1e-10)
    weight, side = 2 * 9.81 * np.cos(0.2), 2 * 9.81 * np.sin(0.2)
    share = 0.5 * side * 0.2 / 0.4
    np.testing.assert_allclose(found.forces["left"][0], weight / 2 - share, rtol=1e-9)
    np.testing.assert_allclose(found.forces["right"][0], weight / 2 + share, rtol=1e-9)
    np.testing.assert_allclose(found.forces["left"][1] + found.forces["right"][1], -side, rtol=1e-9)
    for name in ("left", "right"):
        assert abs(found.forces[name][1]) <= 0.4 * found.forces[name][0] * (1 + 1e-9)


@pytest.mark.parametrize(("mu", "holds"), [(1.001, True), (0.999, False)])
def test_friction_holds_to_its_limit(block, mu, holds):
    parameters = {"mu": mu * np.tan(0.2)}
    if holds:
        assert fsm_dyn.static_equilibrium(block, parameters=parameters).states["left"] == "stick"
    else:
        with pytest.raises(fsm_dyn.ModelError, match="'x_dot' still moves"):
            fsm_dyn.static_equilibrium(block, parameters=parameters)


@pytest.mark.parametrize("model", [BLOCK, {**BOWL, "initial": {"x": 0.1, "y": 0.2, "settle": True}}])
def test_a_run_that_begins_settled_stays(model):
    graph = fsm_dyn.compile(model)
    run = fsm_dyn.simulate(graph, until=2.0)
    assert run.transitions == ()
    np.testing.assert_allclose(run.q, np.tile(run.q[0], (len(run.t), 1)), atol=1e-9)
    np.testing.assert_allclose(run.u, 0.0, atol=1e-9)


def test_settle_per_run_and_a_kick_from_rest():
    graph = fsm_dyn.compile("pendulum_with_stop")
    run = fsm_dyn.simulate(graph, until=0.1, initial={"mode": "leaning", "settle": True})
    assert set(run.modes) == {"leaning"}
    kicked = fsm_dyn.compile({**BOWL, "name": "kicked", "initial": {"x": 0.1, "y": 0.2, "x_dot": 0.1, "settle": True}})
    run = fsm_dyn.simulate(kicked, until=0.1)
    np.testing.assert_allclose(run.q[0], np.array([0.3, -9.81]) / np.hypot(0.3, 9.81), rtol=1e-9)
    assert run.u[0][0] == pytest.approx(0.1)
    with pytest.raises(fsm_dyn.ModelError, match="comes to rest in 'leaning'"):
        fsm_dyn.static_equilibrium(graph, initial={"mode": "swinging"})


def test_friction_of_a_moving_belt():
    """The belt drags the block to where the spring bears the kinetic friction."""
    graph = fsm_dyn.compile("stick_slip_belt")
    found = fsm_dyn.static_equilibrium(graph)
    np.testing.assert_allclose(found.q, [0.4 * 10 / 40], rtol=1e-9)
    assert found.states == {"belt": "slide"}
