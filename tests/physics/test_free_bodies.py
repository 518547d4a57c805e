"""Bodies on free joints: momentum and energy, and the same motion from absolute coordinates."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

PAIR = """
fsm_dyn: 1
name: free_pair
joints:
  one: {free: {child: A, at: O}}
  two: {free: {child: B, at: O, angles: xyz}}
points:
  A1: {from: A_origin, at: 0.1 m*A.x - 0.05 m*A.y}
  AS: {from: A_origin, at: 0.3 m*A.y + 0.1 m*A.z}
  BS: {from: B_origin, at: -0.2 m*B.z}
bodies:
  first: {frame: A, center: A1, mass: 2 kg, inertia: {xx: 0.1 kg*m^2, yy: 0.2 kg*m^2, zz: 0.25 kg*m^2}}
  second: {frame: B, center: B_origin, mass: 3 kg, inertia: {xx: 0.3 kg*m^2, yy: 0.2 kg*m^2, zz: 0.15 kg*m^2}}
loads:
  - {spring: {between: [AS, BS], stiffness: 40 N/m, free: 0.5 m}}
initial:
  one_x: 0.2 m
  two_y: 0.9 m
  one_x_dot: 1 m/s
  two_z_dot: -0.4 m/s
  one_wx: 2 rad/s
  one_wz: -1 rad/s
  two_2_dot: 1.5 rad/s
outputs:
  px: "2 kg*dot(vel(A1), N.x) + 3 kg*dot(vel(B_origin), N.x)"
  py: "2 kg*dot(vel(A1), N.y) + 3 kg*dot(vel(B_origin), N.y)"
  pz: "2 kg*dot(vel(A1), N.z) + 3 kg*dot(vel(B_origin), N.z)"
  x: "dot(pos(A1), N.x)"
  z: "dot(pos(BS), N.z)"
  lz: "2 kg*dot(cross(pos(A1), vel(A1)), N.z) + 3 kg*dot(cross(pos(B_origin), vel(B_origin)), N.z) \\
    + 0.1 kg*m^2*dot(omega(A), A.x)*dot(A.x, N.z) + 0.2 kg*m^2*dot(omega(A), A.y)*dot(A.y, N.z) \\
    + 0.25 kg*m^2*dot(omega(A), A.z)*dot(A.z, N.z) + 0.3 kg*m^2*dot(omega(B), B.x)*dot(B.x, N.z) \\
    + 0.2 kg*m^2*dot(omega(B), B.y)*dot(B.y, N.z) + 0.15 kg*m^2*dot(omega(B), B.z)*dot(B.z, N.z)"
"""


def simulated(text, until=1.5):
    return fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), until, rtol=1e-11, atol=1e-13)


def test_a_pair_of_free_bodies_keeps_momentum_and_energy():
    run = simulated(PAIR)
    energy = run["energy.kinetic"] + run["energy.potential"]
    assert np.ptp(run["energy.kinetic"]) > 0.1  # the spring works
    for column in (run["px"], run["py"], run["pz"], run["lz"], energy):
        np.testing.assert_allclose(column, column[0], rtol=0, atol=1e-8 * max(1.0, abs(column[0])))


def test_a_free_joint_has_the_motion_of_absolute_coordinates():
    """Of a free joint no row remains; the angles of the second body turn into Euler parameters."""
    mechanism = load(text=PAIR.replace("joints:", "joint_coordinates: absolute\njoints:").split("initial:")[0])
    assert not mechanism.constraints
    values = {
        "A_x": 0.2, "B_y": 0.9, "A_x_dot": 1.0, "B_z_dot": -0.4, "A_wx": 2.0, "A_wz": -1.0, "B_wy": 1.5,
    }  # fmt: skip
    run = simulated(PAIR)
    text = PAIR.replace("joints:", "joint_coordinates: absolute\njoints:")
    start, rest = text.index("initial:"), text.index("outputs:")
    free = fsm_dyn.simulate(
        fsm_dyn.compile(load(text=text[:start] + text[rest:])), 1.5, initial=values, rtol=1e-11, atol=1e-13
    )
    for name in ("x", "z", "lz"):
        assert free[name][-1] == pytest.approx(run[name][-1], abs=1e-7)


def test_a_free_joint_closes_no_loop():
    with pytest.raises(ModelError, match="a free joint prevents no motion, so it closes no loop"):
        load(text=PAIR.replace("points:", "  three: {free: {parent: A, child: B, at: [AS, BS]}}\npoints:"))
