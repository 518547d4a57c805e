"""Gravity that acts on one body alone, uniform or as a field, against the same load written as a force."""

import numpy as np
import pytest

import fsm_dyn

MODEL = """\
fsm_dyn: 1
name: two
summary: "A pendulum that carries another one."
parameters: {{m1: 2 kg, m2: 0.5 kg, l: 0.4 m, G: 9.81 m/s^2, J: 0.03 kg*m^2}}
coordinates: {{a: rad, b: rad}}
frames: {{A: {{parent: N, rotate: {{z: a}}}}, B: {{parent: A, rotate: {{z: b}}}}}}
points: {{P: {{from: O, at: -l*A.y}}, Q: {{from: P, at: -l*B.y}}}}
bodies:
  first: {{frame: A, center: P, mass: m1, inertia: {{zz: J}}}}
  second: {{center: Q, mass: m2}}
loads: [{loads}]
initial: {{a: 0.4 rad, b: 0.9 rad}}
"""
FIELD = "-G*(1 + dot(pos(Q), N.y)/2 m)*N.y + 3 m/s^2*sin(t/1 s)*N.x"


def run(tmp_path, loads):
    path = tmp_path / "two.yaml"
    path.write_text(MODEL.format(loads=loads), encoding="utf-8")
    return fsm_dyn.simulate(fsm_dyn.compile(path), 2.0, rtol=1e-10, atol=1e-12), path


@pytest.mark.parametrize(
    ("gravity", "force"),
    [
        ("{gravity: -G*N.y, on: second}", "{force: -m2*G*N.y, at: Q}"),
        ("{gravity: -G*N.y, on: first}", "{force: -m1*G*N.y, at: P}"),
        (f"{{gravity: '{FIELD}', on: second}}", f"{{force: 'm2*({FIELD})', at: Q}}"),
        ("{gravity: -G*N.y, on: first}, {gravity: -G*N.y, on: second}", "{gravity: -G*N.y}"),
    ],
)
def test_it_is_the_weight_of_that_body(tmp_path, gravity, force):
    one, path = run(tmp_path, gravity)
    other, _ = run(tmp_path, force)
    # the same motion by other programs: both within the tolerance of a step, which a double pendulum magnifies
    np.testing.assert_allclose(one.q[-1], other.q[-1], atol=1e-7)
    assert abs(one.q[-1] - one.q[0]).max() > 0.1
    assert fsm_dyn.verify(path, states=5).passed


def test_the_energy_of_a_uniform_field_is_kept(tmp_path):
    one, _ = run(tmp_path, "{gravity: -G*N.y, on: second}")
    assert np.ptp(one.energy.total) < 1e-8


def test_an_unknown_body_is_named(tmp_path):
    with pytest.raises(fsm_dyn.ModelError, match="there is no body 'secnd'"):
        run(tmp_path, "{gravity: -G*N.y, on: secnd}")
