"""Contacts that could brace each other by forces that no load asks for: at kinks, and between opposed faces."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import RunError

WHEEL = """
fsm_dyn: 1
name: kink
parameters: {{R: 0.1 m, v0: 1.5 m/s, al: 0.001, T: 0 N*m, x0: -0.5 m, k: 0.5}}
coordinates: {{x: m, y: m, q: rad}}
frames: {{B: {{parent: N, rotate: {{z: q}}}}}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{disc: {{frame: B, center: P, mass: 1 kg, inertia: {{zz: k*1 kg*R**2}}}}}}
shapes:
  rim: {{circle: {{frame: B, center: P, radius: R}}}}
  s1: {{segment: {{points: [[{s}*-2 m, 0 m], [0 m, 0 m]]}}, side: N.y}}
  s2: {{segment: {{points: [[0 m, 0 m], [{s}*2 m*cos(al), 2 m*sin(al)]]}}, side: N.y}}
contacts:
  {first}: {{between: [rim, {one}], friction: {mu}}}
  {last}: {{between: [rim, {other}], friction: {mu}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}, {{torque: -{s}*T*N.z, on: disc}}]
initial: {{x: {s}*x0, y: R, x_dot: {s}*v0, q_dot: -{s}*v0/R}}
"""
METHODS = {
    "dopri5": {},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "rk4": {"method": "rk4", "step": 1e-3},
    "online": {"strategy": "online"},
}


def wheel(mu="inf", s=1, turned=False):
    names = ("a", "b", "s1", "s2") if not turned else ("b", "a", "s2", "s1")
    first, last, one, other = names
    return WHEEL.format(mu=mu, s=s, first=first, last=last, one=one, other=other)


def compiled(text, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return fsm_dyn.compile(path)


def spin_after(run):
    """The turning speed just after the first impact."""
    impact = next(x for x in run.transitions if x.impulse)
    return run.u[np.flatnonzero(run.t == impact.time)[-1], 2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("s", "turned"), [(1, False), (-1, False), (1, True)], ids=["plain", "mirrored", "renumbered"])
def test_a_wheel_rolls_over_a_kink(method, s, turned, tmp_path):
    """Moment of momentum about the new place of contact: w+ = w (cos al + k)/(1 + k), k = J/mR²."""
    graph = compiled(wheel(s=s, turned=turned), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.5, **METHODS[method])
    assert spin_after(run) == pytest.approx(-s * 15.0 * (np.cos(1e-3) + 0.5) / 1.5, rel=1e-12)


@pytest.mark.parametrize("mu", ["inf", "1e6"])
@pytest.mark.parametrize("al", [1e-5, 1e-3, 0.1, 1.0, 1.5])
@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_kinks_of_every_angle(mu, al, k, tmp_path):
    """The same with friction so large that it never slips, up to a wall that the wheel climbs."""
    graph = compiled(wheel(mu), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.36, parameters={"al": al, "k": k})
    assert spin_after(run) == pytest.approx(-15.0 * (np.cos(al) + k) / (1 + k), rel=1e-9)


def test_a_kink_by_time_stepping(tmp_path):
    graph = compiled(wheel(), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.4, method="moreau_jean", step=1e-4)
    located = fsm_dyn.simulate(graph, until=0.4)
    np.testing.assert_allclose(run.u[-1], located.u[-1], atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("s", [1, -1])
def test_a_wheel_sets_out_from_the_joint_of_level_tiles(method, s, tmp_path):
    graph = compiled(wheel(s=s), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.5, parameters={"al": 0.0, "x0": 0.0, "v0": 0.0, "T": 1.0}, **METHODS[method])
    assert run.u[-1, 2] == pytest.approx(-s * 0.5 / 0.015, rel=1e-6)


PISTON = """
fsm_dyn: 1
name: piston
parameters: {{mu: 0.2, G: 1e4 N/s, W: 0 N}}
coordinates: {{x: m, y: m}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{block: {{center: P, mass: 1 kg}}}}
contacts:
  {first}: {{gap: {a}, slip: rate(x), friction: mu}}
  {last}: {{gap: {b}, slip: rate(x), friction: mu}}
loads: [{{force: {s}*G*t*N.x - W*N.y, at: P}}]
on_nonunique: {policy}
"""


def piston(policy, s=1, turned=False):
    first, last, a, b = ("lower", "upper", "y", "-y") if turned else ("upper", "lower", "-y", "y")
    return PISTON.format(policy=policy, s=s, first=first, last=last, a=a, b=b)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("s", "turned"), [(1, False), (-1, False), (1, True)], ids=["plain", "mirrored", "renumbered"])
def test_opposed_faces_invent_no_forces(method, s, turned, tmp_path):
    """Sticking by forces that press the faces apart, and moving: `on_nonunique` decides, and with it x = G t³/6m."""
    with pytest.raises(RunError, match=r"non-unique contact state[\s\S]*on_nonunique: prefer_previous"):
        fsm_dyn.simulate(compiled(piston("stop", s, turned), tmp_path), until=1.0, **METHODS[method])
    run = fsm_dyn.simulate(compiled(piston("prefer_previous", s, turned), tmp_path), until=1.0, **METHODS[method])
    assert run.q[-1, 0] == pytest.approx(s * 1e4 / 6, rel=1e-9)
    assert np.abs(run.multipliers["upper"]).max() <= 1e-9


@pytest.mark.parametrize("turned", [False, True])
def test_opposed_faces_with_a_weight_hold_what_its_friction_does(turned, tmp_path):
    """A weight of 10 N holds 2 N by friction, to 0.2 ms; then the run is non-unique, or it slides."""
    graph = compiled(piston("stop", turned=turned), tmp_path)
    run = fsm_dyn.simulate(graph, until=1.0, parameters={"W": 10.0}, on_failure="return")
    assert run.outcome.name == "non-unique contact state"
    assert run.t[-1] == pytest.approx(2e-4, rel=1e-9)
    graph = compiled(piston("prefer_previous", turned=turned), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.1, parameters={"W": 10.0})
    assert run.u[-1, 0] == pytest.approx(1e4 * 0.1**2 / 2 - 2.0 * 0.1 + 2.0 * 1e-4, rel=1e-6)
