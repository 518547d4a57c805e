"""Friction in proportion to the normal force of a contact: rolling, turning on the spot, and cords over capstans."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader

G = 9.81
BALL = """
fsm_dyn: 1
parameters: {{m: 0.16 kg, r: 28 mm, J: 2*m*r**2/5, c: {c} mm, mu: 0.3, g: 9.81 m/s^2, slope: {slope} rad, v: {v} m/s}}
coordinates: {{x: m, y: m, q: rad}}
frames: {{B: {{parent: N, rotate: {{z: q}}}}}}
points: {{C: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{frame: B, center: C, mass: m, inertia: {{zz: J}}}}}}
shapes:
  cloth: {{line: {{along: N.x}}, side: N.y}}
  rim: {{circle: {{frame: B, center: C, radius: r}}}}
contacts:
  resists: {{dry_friction: {{speed: rate(q), static: c, kinetic: c, load: rolls}}}}
  rolls: {{between: [rim, cloth], friction: mu, restitution: 0.5}}
loads: [{{gravity: g*(sin(slope)*N.x - cos(slope)*N.y)}}]
initial: {{y: r + {height} m, x_dot: v, q_dot: {spin} rad/s}}
"""
SPIN = """
fsm_dyn: 1
parameters: {m: 0.2 kg, r: 30 mm, J: 2*m*r**2/5, c: 0.4 mm, w: 40 rad/s}
frames: {B: {parent: N, euler_parameters: e}}
coordinates: {x: m, y: m, z: m}
points: {C: {from: O, at: x*N.x + y*N.y + z*N.z}}
bodies: {ball: {frame: B, center: C, mass: m, inertia: {xx: J, yy: J, zz: J}}}
speeds:
  vx: rate(x)
  vy: rate(y)
  vz: rate(z)
  w1: "dot(omega(B), B.x)"
  w2: "dot(omega(B), B.y)"
  w3: "dot(omega(B), B.z)"
shapes:
  ground: {plane: {from: O}, side: N.z}
  ball_face: {sphere: {frame: B, center: C, radius: r}}
contacts:
  stands: {between: [ball_face, ground], friction: 0.3}
  turns: {dry_friction: {speed: "dot(omega(B), N.z)", static: c, kinetic: c, load: stands}}
loads: [{gravity: -9.81 m/s^2*N.z}]
initial: {z: r, w3: w}
"""


def ball(c=0.5, slope=0.0, v=0.0, height=0.0, spin=0.0):
    return fsm_dyn.compile(loader.load(text=BALL.format(c=c, slope=slope, v=v, height=height, spin=spin)))


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "moreau_jean", "step": 1e-3}])
def test_a_rolling_ball_is_slowed_by_the_arm_of_its_normal_force(options):
    """About the line of contact (m r² + J) ω' = -c m g."""
    run = fsm_dyn.simulate(ball(v=1.0, spin=-1.0 / 0.028), 10.0, **options)
    slowing = G * 0.5e-3 / 0.028 / 1.4
    assert run.q[-1][0] == pytest.approx(0.5 / slowing, rel=1e-8)
    assert run.transitions[-1].time == pytest.approx(1.0 / slowing, abs=1e-3 if options.get("step") else 1e-9)
    assert run.transitions[-1].cause.startswith("resists sticks")
    assert run.energy.relative_residual < 1e-9


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}])
def test_a_ball_on_a_slope_rolls_off_beyond_the_angle_of_its_resistance(options):
    limit = math.atan(0.5 / 28.0)
    still = fsm_dyn.simulate(ball(slope=0.999 * limit), 1.0, **options)
    assert np.abs(still.q[-1][2]) < 1e-12
    rolls = fsm_dyn.simulate(ball(slope=1.2 * limit), 1.0, **options)
    down = G * (math.sin(1.2 * limit) - math.cos(1.2 * limit) * 0.5 / 28.0) / 1.4
    assert rolls.q[-1][0] == pytest.approx(0.5 * down, rel=1e-9)


@pytest.mark.parametrize("spin", [0.0, -20.0])
def test_there_is_no_resistance_in_flight(spin):
    """A ball that falls keeps its spin until it lands, and comes to rest: bounces have no impulse of resistance."""
    run = fsm_dyn.simulate(ball(height=0.2, spin=spin), 8.0)
    flight = run.t < math.sqrt(0.4 / G) * (1.0 - 1e-9)
    assert np.ptp(run.u[flight][:, 2]) == 0.0
    assert not run.outcome.failed
    assert np.abs(run.u[-1]).max() < 1e-9


def test_a_ball_that_turns_on_the_spot_stops_by_drilling():
    """J ω' = -c m g about the normal, with any friction along the plane."""
    graph = fsm_dyn.compile(loader.load(text=SPIN))
    run = fsm_dyn.simulate(graph, 5.0)
    inertia = 0.4 * 0.2 * 0.03**2
    ends = inertia * 40.0 / (0.4e-3 * 0.2 * G)
    assert run.transitions[-1].time == pytest.approx(ends, rel=1e-9)
    assert np.abs(run.q[-1][:2]).max() < 1e-12


ROLLS = """
fsm_dyn: 1
parameters: {{m: 0.2 kg, r: 30 mm, J: 2*m*r**2/5, c: 0.4 mm, slope: {slope} rad, v: {v} m/s, al: {al} rad}}
frames: {{B: {{parent: N, euler_parameters: e}}}}
coordinates: {{x: m, y: m, z: m}}
points: {{C: {{from: O, at: x*N.x + y*N.y + z*N.z}}}}
bodies: {{ball: {{frame: B, center: C, mass: m, inertia: {{xx: J, yy: J, zz: J}}}}}}
speeds:
  vx: rate(x)
  vy: rate(y)
  vz: rate(z)
  w1: "dot(omega(B), N.x)"
  w2: "dot(omega(B), N.y)"
  w3: "dot(omega(B), N.z)"
shapes:
  ground: {{plane: {{from: O}}, side: N.z}}
  face: {{sphere: {{frame: B, center: C, radius: r}}}}
contacts:
  stands: {{between: [face, ground], friction: 0.3}}
  resists: {{dry_friction: {{speed: "{first}", across: "{second}", static: c, kinetic: c, load: stands}}}}
loads: [{{gravity: "9.81 m/s^2*(sin(slope)*N.x - cos(slope)*N.z)"}}]
initial: {{z: r, vx: v*cos(al), vy: v*sin(al), w1: -v*sin(al)/r, w2: v*cos(al)/r}}
"""
WAYS = {
    "axes": ("dot(omega(B), N.x)", "dot(omega(B), N.y)"),
    "turned": ("dot(omega(B), 0.6*N.x + 0.8*N.y)", "dot(omega(B), 0.8*N.x - 0.6*N.y)"),
}
TILT = math.atan(0.4 / 30.0)  # to which the ball stays
METHODS = [{}, {"strategy": "online"}, {"method": "moreau_jean", "step": 1e-3}]


def rolling(slope=0.0, v=0.0, al=0.0, ways="axes"):
    first, second = WAYS[ways]
    return fsm_dyn.compile(loader.load(text=ROLLS.format(slope=slope, v=v, al=al, first=first, second=second)))


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize(("al", "ways"), [(0.0, "axes"), (0.7, "axes"), (2.5, "turned")])
def test_a_ball_rolls_out_alike_in_every_direction(options, al, ways):
    """About the place of contact (7/5) m r² ω' = -c m g, against the motion: v' = -(5/7) c g/r."""
    slowing = 5.0 / 7.0 * 0.4e-3 * G / 0.03
    run = fsm_dyn.simulate(rolling(v=1.0, al=al, ways=ways), 12.0, **options)
    way = 0.5 / slowing
    np.testing.assert_allclose(run.q[-1][:2], [way * math.cos(al), way * math.sin(al)], atol=1e-7)
    assert run.transitions[-1].cause.startswith("resists sticks")
    assert run.transitions[-1].time == pytest.approx(1.0 / slowing, abs=1e-3 if options.get("step") else 1e-8)
    assert run.energy.relative_residual < 1e-9


@pytest.mark.parametrize("options", METHODS)
def test_a_ball_stays_up_to_the_tilt_of_its_resistance_and_rolls_beyond(options):
    still = fsm_dyn.simulate(rolling(slope=0.999 * TILT), 1.0, **options)
    assert np.abs(still.q[-1][:2]).max() < 1e-12
    down = 5.0 / 7.0 * G * (math.sin(1.2 * TILT) - math.cos(1.2 * TILT) * 0.4 / 30.0)
    rolls = fsm_dyn.simulate(rolling(slope=1.2 * TILT), 1.0, **options)
    assert rolls.q[-1][0] == pytest.approx(0.5 * down, rel=1e-9 if not options.get("step") else 5e-3)


@pytest.mark.parametrize("options", METHODS[:2])
def test_a_path_across_a_slope_bends_as_its_equations_of_motion(options, tmp_path):
    """v' = (5/7) g (sin b e - (c/r) cos b v/|v|), of a formulation by velocities alone."""
    slope, v, al = 2.0 * TILT, 0.5, 2.0

    def rates(_, state):
        speed = state[2:]
        pull = np.array([math.sin(slope), 0.0]) - math.cos(slope) * 0.4 / 30.0 * speed / np.hypot(*speed)
        return [*speed, *(5.0 / 7.0 * G * pull)]

    start = [0.0, 0.0, v * math.cos(al), v * math.sin(al)]
    truth = solve_ivp(rates, (0.0, 3.0), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    graph = rolling(slope=slope, v=v, al=al, ways="turned")
    run = fsm_dyn.simulate(graph, 3.0, **options)
    np.testing.assert_allclose([*run.q[-1][:2], *run.u[-1][:2]], truth, atol=1e-7)
    graph.save(tmp_path / "ball.json")
    again = fsm_dyn.simulate(fsm_dyn.open_graph(tmp_path / "ball.json"), 3.0, **options)
    np.testing.assert_array_equal(again.q[-1], run.q[-1])


def test_a_second_speed_without_a_load_is_refused():
    text = ROLLS.format(slope=0, v=0, al=0, first="vx", second="vy").replace(", load: stands", "")
    with pytest.raises(ModelError, match="'resists' has 'across' without 'load'"):
        loader.load(text=text)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("load: cloth", "'cloth' is a shape, not a contact"),
        ("load: rols", "did you mean 'rolls'"),
        ("load: resists", "has no normal force"),
    ],
)
def test_a_load_that_is_no_normal_force_is_refused(wrong, words):
    text = BALL.format(c=1, slope=0, v=0, height=0, spin=0).replace("load: rolls", wrong)
    with pytest.raises(ModelError, match=words):
        loader.load(text=text)


def test_coefficients_of_a_load_have_the_unit_of_an_arm():
    text = BALL.format(c=1, slope=0, v=0, height=0, spin=0).replace("c: 1 mm", "c: 1 N*m")
    with pytest.raises(ModelError, match=r"is in N\*m"):
        loader.load(text=text)


# -- A cord over a capstan ---------------------------------------------------------------------------------
#
# With the mean N and half the difference F of both tensions, T2/T1 = e^(mu phi) is |F| = tanh(mu phi/2) N: the gap of
# the contact is the slack of the cord, and its slip the difference of the rates of both ends.

CAPSTAN = """
fsm_dyn: 1
parameters: {{m1: {m1} kg, m2: {m2} kg, mu: 0.2, phi: {turns}*2*pi + pi, g: 9.81 m/s^2, l: 2 m, r: 0.1 m, w: {w} rad/s}}
coordinates: {{a: m, b: m}}
points: {{A: {{from: O, at: -a*N.y}}, B: {{from: O, at: -b*N.y}}}}
bodies: {{one: {{center: A, mass: m1}}, two: {{center: B, mass: m2}}}}
contacts:
  cord:
    gap: l - a - b
    slip: rate(b) - rate(a) - 2*r*w
    friction: tanh(mu*phi/2)
loads: [{{gravity: -g*N.y}}]
initial: {{a: 1 m, b: 1 m}}
"""


@pytest.mark.parametrize(("turns", "factor"), [(0, 0.999), (0, 1.001), (1, 0.999), (1, 1.001)])
def test_a_cord_over_a_capstan_slips_at_the_ratio_of_euler_and_eytelwein(turns, factor):
    ratio = math.exp(0.2 * (2 * math.pi * turns + math.pi))
    m2 = factor * ratio
    graph = fsm_dyn.compile(loader.load(text=CAPSTAN.format(m1=1.0, m2=m2, turns=turns, w=0.0)))
    run = fsm_dyn.simulate(graph, 0.1)
    if factor < 1.0:
        assert np.abs(run.u[-1]).max() < 1e-12
    else:  # m2 (g - a) = e^(mu phi) m1 (g + a)
        down = G * (m2 - ratio) / (m2 + ratio)
        assert run.q[-1][1] - 1.0 == pytest.approx(0.5 * down * 0.01, rel=1e-7)
    assert run.energy.relative_residual < 1e-9


def test_a_capstan_that_turns_hauls():
    """The drum slips under the cord: it lifts the heavier mass as long as it is below the ratio."""
    ratio = math.exp(0.2 * 3 * math.pi)
    graph = fsm_dyn.compile(loader.load(text=CAPSTAN.format(m1=1.0, m2=0.9 * ratio, turns=1, w=-100.0)))
    run = fsm_dyn.simulate(graph, 0.1)
    up = G * (0.9 * ratio - ratio) / (0.9 * ratio + ratio)
    assert run.q[-1][1] - 1.0 == pytest.approx(0.5 * up * 0.01, rel=1e-7)


# -- Tangential restitution --------------------------------------------------------------------------------

SUPERBALL = """
fsm_dyn: 1
parameters: {{m: 0.05 kg, r: 25 mm, J: 2*m*r**2/5, e: {e}, et: {et}, share: 1/(1 + m*r**2/J), v: 1.3 m/s, w: 12 rad/s}}
coordinates: {{x: m, y: m, q: rad}}
frames: {{B: {{parent: N, rotate: {{z: q}}}}}}
points: {{C: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{frame: B, center: C, mass: m, inertia: {{zz: J}}}}}}
contacts: {{ground: {{gap: y - r, restitution: e}}}}
transitions:
  - from: "*"
    on: ground closes
    because: grip of the surface
    reset:
      x_dot: x_dot - (1 + et)*share*(x_dot + r*q_dot)
      q_dot: q_dot - (1 + et)*share*m*r/J*(x_dot + r*q_dot)
loads: [{{gravity: -9.81 m/s^2*N.y}}]
initial: {{y: 0.3 m, x_dot: v, q_dot: w}}
"""


@pytest.mark.parametrize(("e", "et"), [(1.0, 1.0), (0.9, 0.5), (0.8, 0.0)])
def test_a_superball_keeps_its_share_of_the_slip(e, et):
    """The slip at the contact turns round, -et times; momentum about the point of contact stays (Garwin 1969)."""
    graph = fsm_dyn.compile(loader.load(text=SUPERBALL.format(e=e, et=et)))
    run = fsm_dyn.simulate(graph, 1.5)
    m, r = 0.05, 0.025
    J = 0.4 * m * r**2
    bounces = [item for item in run.transitions if item.impulse]
    assert len(bounces) >= 2
    times = [0.0, *(item.time + 1e-6 for item in bounces)]
    flights = [run.u[np.searchsorted(run.t, time)] for time in times]
    for before, after in itertools.pairwise(flights):
        assert after[0] + r * after[2] == pytest.approx(-et * (before[0] + r * before[2]), abs=1e-12)
        assert m * r * after[0] - J * after[2] == pytest.approx(m * r * before[0] - J * before[2], rel=1e-12)


def test_resistance_next_to_redundant_contacts():
    """A wheel slows next to a crate that stands on two corners of four: forces of each are those of it alone."""
    text = """
fsm_dyn: 1
name: wheel_and_crate
coordinates: {x: m, y: m, q: rad, u: m, v: m, s: rad}
frames: {A: {rotate: {z: q}}, B: {rotate: {z: s}}}
points: {CA: {from: O, at: x*N.x + y*N.y}, CB: {from: O, at: u*N.x + v*N.y}}
bodies:
  crate: {frame: A, center: CA, mass: 4 kg, inertia: {zz: 0.1 kg*m^2}}
  wheel: {frame: B, center: CB, mass: 1 kg, inertia: {zz: 0.005 kg*m^2}}
shapes:
  box: {polygon: {frame: A, points: [[-0.3 m, -0.1 m], [0.3 m, -0.1 m], [0.3 m, 0.1 m], [-0.3 m, 0.1 m]]}}
  disc: {circle: {frame: B, center: CB, radius: 0.1 m}}
  ground: {line: {along: N.x}, side: N.y}
contacts:
  stands: {between: [box, ground], friction: 0.3}
  passes: {between: [box, disc], friction: 0.3}
  rolls: {between: [disc, ground], friction: 0.5}
  resists: {dry_friction: {speed: rate(s), static: 1 mm, kinetic: 1 mm, load: rolls}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: 0.1 m, u: 2 m, v: 0.1 m, u_dot: 1 m/s, s_dot: -10 rad/s}
"""
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load("wheel_and_crate", text=text)), until=0.5)
    slowing = 9.81 * 1e-3 * 0.1 / (0.1**2 + 0.005)
    np.testing.assert_allclose(run["u_dot"][-1], 1.0 - 0.5 * slowing, rtol=1e-9)
    corners = [run.multipliers[f"stands_{k}"][-1] for k in (1, 2)]
    np.testing.assert_allclose(corners, [[0.5 * 4.0 * 9.81, 0.0]] * 2, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.multipliers["resists"][-1], [9.81e-3], rtol=1e-9)
    np.testing.assert_allclose(run.pins["rolls"].force[-1], [-slowing, 9.81, 0.0], rtol=1e-9, atol=1e-9)
