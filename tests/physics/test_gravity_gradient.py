"""The torque of a distant mass on a body: closed forms of libration, and the two masses of a dumbbell."""

import numpy as np
import pytest
from scipy.special import ellipk

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

SATELLITE = """
fsm_dyn: 1
name: satellite
parameters: {mu: 4e14 m^3/s^2, R: 7e6 m, w0: sqrt(mu/R**3), Ia: 20 kg*m^2, It: 100 kg*m^2}
coordinates: {phi: rad, theta: rad}
frames:
  A: {parent: N, rotate: {z: phi}}
  B: {parent: A, rotate: {z: theta}}
points: {C: {from: O, at: R*A.x}}
bodies: {dumbbell: {frame: B, center: C, mass: 50 kg, inertia: {xx: Ia, yy: It, zz: It}}}
constraints: {orbit: {velocity: rate(phi) - w0}}
loads:
  - {gravity_gradient: mu, at: O, on: dumbbell}
"""


@pytest.fixture(scope="module")
def satellite():
    return fsm_dyn.compile(load(text=SATELLITE))


@pytest.mark.parametrize("start", [0.01, 1.0, 1.5])
def test_a_dumbbell_librates_as_in_closed_form(satellite, start):
    """theta'' = -w^2/2 sin(2 theta), w^2 = 3 w0^2 (It - Ia)/It: a quarter of the period is K(sin(start))/w."""
    w = np.sqrt(4e14 / 7e6**3) * np.sqrt(3 * (100 - 20) / 100)
    quarter = float(ellipk(np.sin(start) ** 2)) / w
    run = fsm_dyn.simulate(satellite, quarter, initial={"theta": start}, rtol=1e-11, atol=1e-13)
    assert abs(run["theta"][-1]) <= 1e-7 * start
    assert run["theta_dot"][-1] == pytest.approx(-w * np.sin(start), rel=1e-8)


PARTS = """
fsm_dyn: 1
name: parts
parameters: {mu: 4e14 m^3/s^2, R: 7e6 m, l: 700 m}
joints: {socket: {ball: {child: B, at: C, angles: xyz}}}
points:
  C: {from: O, at: 2/3*R*N.x - 1/3*R*N.y + 2/3*R*N.z}
  P1: {from: C, at: 3*l*B.x + l*B.y}
  P2: {from: C, at: -3*l*B.x - l*B.y}
  P3: {from: C, at: 2*l*B.z - l*B.x}
  P4: {from: C, at: -2*l*B.z + l*B.x}
bodies:
  frame: {frame: B, center: C, mass: 1 kg, inertia: {xx: 1e7 kg*m^2, yy: 1e7 kg*m^2, zz: 1e7 kg*m^2}}
"""
MASSES = "".join(f"  m{i}: {{center: P{i}, mass: 10 kg}}\n" for i in (1, 2, 3, 4)) + "loads:\n" + "".join(
    f"  - {{force: '-10 kg*mu*pos(P{i})/dot(pos(P{i}), pos(P{i}))**1.5', at: P{i}}}\n" for i in (1, 2, 3, 4)
)  # fmt: skip
ONE = (
    PARTS.replace(
        "{xx: 1e7 kg*m^2, yy: 1e7 kg*m^2, zz: 1e7 kg*m^2}",
        "{xx: 1e7 kg*m^2 + 20 kg*(l**2 + 4*l**2), yy: 1e7 kg*m^2 + 20 kg*(9*l**2 + 5*l**2), "
        "zz: 1e7 kg*m^2 + 20 kg*(10*l**2 + l**2), xy: -60 kg*l**2, xz: 40 kg*l**2}",
    )
    + "loads:\n  - {gravity_gradient: mu, at: O, on: frame}\n"
)


def test_the_torque_is_that_of_the_attractions_of_its_parts():
    """Four masses in space, each drawn by Newton's law, turn a body as the torque does, except for terms in l/R."""
    several, one = (fsm_dyn.compile(load(text=text)) for text in (PARTS + MASSES, ONE))
    random = np.random.default_rng(1)
    for _ in range(5):
        q, u = random.uniform(-1.2, 1.2, 3), random.uniform(-1e-3, 1e-3, 3)
        found, wanted = (
            graph.modes[name].derivatives(0.0, q, u)[1] for graph in (one, several) for name in graph.modes
        )
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("gravity_gradient: mu,", "gravity_gradient: R,", "the mass of load 'gravity_gradient_dumbbell' is in m"),
        (", at: O, on", ", on", "a gravity_gradient lacks the key 'at'"),
        ("zz: It}", "zz: It, about: O}", "needs the inertia about the mass centre"),
        ("on: dumbbell", "on: dumbell", "did you mean 'dumbbell'"),
    ],
)
def test_errors_name_the_missing_value_and_its_line(old, new, told):
    with pytest.raises(ModelError, match=told):
        load(text=SATELLITE.replace(old, new))
