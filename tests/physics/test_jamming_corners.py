"""Impacts without collision of bodies that slide on several corners: only what jams is stopped, and may turn over."""

import numpy as np
import pytest

import fsm_dyn

BRICK = """
fsm_dyn: 1
name: rough_patch
parameters: {{m: 2 kg, a: 0.4 m, c: 0.2 m}}
coordinates: {{x: m, z: m, q: rad, X: m}}
frames: {{F: {{parent: N, rotate: {{z: q}}}}}}
points:
  S: {{from: O, at: x*N.x + z*N.y}}
  T: {{from: O, at: X*N.x}}
bodies:
  box: {{frame: F, center: S, mass: m, inertia: {{zz: m*(a**2+c**2)/12}}}}
  slider: {{center: T, mass: 1 kg}}
shapes:
  brick: {{polygon: {{frame: F, points: [{points}]}}}}
  table: {{line: {{along: N.x}}, side: N.y}}
inputs: {{rough: ''}}
schedule: {{rough: {{steps: [[0 s, 0.2], [0.1 s, 3]]}}}}
contacts:
  touch: {{between: [brick, table], friction: rough}}
  aside: {{dry_friction: {{speed: rate(X), static: 1 N, kinetic: 1 N}}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
initial: {{z: c/2, x_dot: {s}*2 m/s, X_dot: 5 m/s}}
on_inconsistent: impact
"""
POINTS = ["[-a/2, -c/2]", "[a/2, -c/2]", "[a/2, c/2]", "[-a/2, c/2]"]


def arrest(v):
    """Impulse of the leading corner that stops its slip, with the corner behind opening: normal, tangent (N s)."""
    m, a, c = 2.0, 0.4, 0.2
    J = m * (a**2 + c**2) / 12
    arm = np.array([a / 2, -c / 2])
    rows = np.array([[0.0, 1.0, arm[0]], [1.0, 0.0, -arm[1]]])
    K = rows @ np.diag([1 / m, 1 / m, 1 / J]) @ rows.T
    return np.linalg.solve(K, -rows @ [v, 0.0, 0.0])


def test_the_impulse_for_two_metres_a_second():
    normal, tangent = arrest(2.0)
    assert (normal, tangent) == pytest.approx((1.2, -3.4), abs=1e-12)


METHODS = {
    "dopri5": {},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "rk4": {"method": "rk4", "step": 1e-3},
    "online": {"strategy": "online"},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("s", "first"), [(1, 0), (-1, 0), (1, 2)], ids=["plain", "mirrored", "renumbered"])
def test_a_brick_on_a_rough_patch(method, s, first, tmp_path):
    """The leading corner is caught, the one behind opens; what slides elsewhere continues."""
    points = POINTS[first:] + POINTS[:first]
    path = tmp_path / "model.yaml"
    path.write_text(BRICK.format(points=", ".join(points), s=s))
    run = fsm_dyn.simulate(fsm_dyn.compile(path), until=0.2, **METHODS[method])
    jam = next(x for x in run.transitions if x.impulse)
    lead = f"touch_{points.index('[a/2, -c/2]' if s > 0 else '[-a/2, -c/2]') + 1}"
    normal, tangent = arrest(2.0 - 0.2 * 9.81 * 0.1)
    assert jam.time == pytest.approx(0.1, abs=1e-12)
    assert np.abs(jam.impulse[lead]) == pytest.approx(np.abs([normal, tangent]), rel=1e-9)
    assert set(jam.impulse) == {lead}
    assert abs(tangent) / normal == pytest.approx(2.83, abs=0.01)
    after = np.flatnonzero(run.t == jam.time)[-1]
    assert run.u[after, 3] == pytest.approx(5.0 - 0.1, abs=1e-9)
