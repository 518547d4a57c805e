"""The bouncing ball against its closed form: impacts at geometric intervals, a Zeno point, rest."""

import numpy as np
import pytest

import fsm_dyn
from mechanisms.bouncing_ball import impact_times, zeno_time

G, H = 9.81, 1.0


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("bouncing_ball")


@pytest.mark.parametrize("e", [0.0, 0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("method", [{"method": "dopri5"}, {"method": "rk4", "step": 1e-3}])
def test_impacts_and_zeno_time(graph, e, method):
    zeno = zeno_time(e, H)
    run = fsm_dyn.simulate(graph, until=zeno + 1.0, parameters={"e": e}, **method)
    times = np.array([x.time for x in run.transitions])
    bounces = times if e == 0.0 else times[:-1]  # the last transition ends the train
    assert len(bounces) >= (1 if e == 0.0 else 5)
    np.testing.assert_allclose(bounces, impact_times(e, H, len(bounces)), rtol=1e-9)
    assert run.transitions[-1].target == "resting"
    assert run.t[-1] == zeno + 1.0
    # the train of impacts ends at the Zeno point itself, not where a bounce falls below some height
    landing = run.t[np.flatnonzero(np.array(run.modes) == "resting")[0]]
    assert landing <= zeno * (1 + 1e-9)
    at_rest = run.sample(np.linspace(zeno * (1 + 1e-9), zeno + 1.0, 50))
    assert set(at_rest.modes) == {"resting"}
    np.testing.assert_allclose(at_rest.x, 0.0, atol=1e-12)


@pytest.mark.parametrize("e", [0.3, 0.8])
def test_never_below_the_floor(graph, e):
    run = fsm_dyn.simulate(graph, until=6.0, parameters={"e": e})
    samples = run.sample(np.linspace(0.0, 6.0, 20001))
    assert samples.q.min() >= -1e-12
    assert run.q.min() >= -1e-12


def test_impulses_and_energies(graph):
    run = fsm_dyn.simulate(graph, until=2.0)
    for k, x in enumerate(run.transitions):
        before = np.sqrt(2 * G * H) * 0.8**k
        assert x.cause == "ground impacts and rebounds"
        np.testing.assert_allclose(x.impulse["ground"], [0.1 * 1.8 * before], rtol=1e-9)
        np.testing.assert_allclose(x.energy_after, 0.64 * x.energy_before, rtol=1e-9)


def test_rest_carries_the_weight(graph):
    run = fsm_dyn.simulate(graph, until=6.0)
    np.testing.assert_allclose(run.multipliers["ground"][-1], [0.1 * G], rtol=1e-12)


def test_start_on_the_floor(graph):
    """Begun exactly on the guard's surface: at rest it rests, moving down it strikes, moving up it flies."""
    rest = fsm_dyn.simulate(graph, until=1.0, initial={"mode": "resting", "y": 0.0})
    assert rest.transitions == ()
    assert set(rest.modes) == {"resting"}
    lying = fsm_dyn.simulate(graph, until=1.0, initial={"y": 0.0})
    assert lying.modes[-1] == "resting"
    assert lying.q.min() >= -1e-12
    down = fsm_dyn.simulate(graph, until=0.1, initial={"y": 0.0, "v": -1.0})
    assert down.transitions[0].time == 0.0
    assert "start" in down.transitions[0].cause
    np.testing.assert_allclose(down.transitions[0].u_after, [0.8])
    assert down.q.min() >= -1e-12
    up = fsm_dyn.simulate(graph, until=0.1, initial={"y": 0.0, "v": 1.0})
    assert up.transitions == ()
