"""Overconstrained linkages in space move on, on their closed relations, whichever rows a chart keeps."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load

ROUTES = {
    "dopri5": {"rtol": 1e-10},
    "online": {"rtol": 1e-10, "strategy": "online"},
    "radau": {"rtol": 1e-9, "method": "radau"},
    "rk4": {"method": "rk4", "step": 5e-4},
}
BENNETT = """
fsm_dyn: 1
parameters: {{A: {A}, B: {B}, a: 0.3, b: a*sin(B)/sin(A), J: 0.02}}
frames:
  G: {{parent: N, rotate: {{x: -B}}}}
  T1: {{parent: L1, rotate: {{x: A}}}}
  T2: {{parent: L2, rotate: {{x: B}}}}
  T3: {{parent: L3, rotate: {{x: A}}}}
points:
  P1: {{from: O, at: a*L1.x}}
  P2: {{from: P1, at: b*L2.x}}
  P3: {{from: P2, at: a*L3.x}}
  Q: {{from: O, at: -b*N.x}}
joints:
  j1: {{revolute: {{child: L1, at: O, axis: N.z}}}}
  j2: {{revolute: {{parent: T1, child: L2, at: P1, axis: T1.z}}}}
  j3: {{revolute: {{parent: T2, child: L3, at: P2, axis: T2.z}}}}
  j4: {{revolute: {{parent: T3, child: G, at: [P3, Q], axis: T3.z}}}}
bodies:
  b1: {{frame: L1, center: P1, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  b2: {{frame: L2, center: P2, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
loads: [{{gravity: -{gravity}*N.z}}]
initial: {{j1: {j1}, j1_dot: {speed}, guess: {{j2: {j2}, j3: {j3}}}}}
"""


def run_of(text, until, **options):
    graph = fsm_dyn.compile(load(text=text))
    return graph, fsm_dyn.simulate(graph, until, **options)


def largest_residual(graph, run):
    return float(np.abs(graph.automaton.terms.evaluate(run.t, run.record.x, run.rows.context)["residual"]).max())


def bennett(seed):
    """A random linkage of Bennett with a start on its closure ``tan(j1/2) tan(j2/2) = const``."""
    random = np.random.default_rng(seed)
    A, B = random.uniform(0.4, 1.2), random.uniform(1.3, 2.0)
    ratio = math.sin(0.5 * (B + A)) / math.sin(0.5 * (B - A))
    j1 = random.uniform(0.5, 2.0)
    return {"A": A, "B": B, "j1": j1, "speed": random.uniform(2.0, 5.0)}, ratio


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bennett_keeps_its_closed_relation(seed, route):
    values, ratio = bennett(seed)
    j2 = 2 * math.atan(ratio / math.tan(0.5 * values["j1"]))
    text = BENNETT.format(**values, j2=j2, j3=-values["j1"], gravity=3.0)
    graph, run = run_of(text, 10.0, **ROUTES[route])
    assert run.outcome.name == "done"
    assert run.warnings == ()
    assert largest_residual(graph, run) < 1e-10
    assert run.energy.relative_residual < (1e-5 if route == "rk4" else 1e-7)
    # opposite angles are equal and opposite
    turned = np.angle(np.exp(1j * (run["j1"] + run["j3"])))
    assert np.abs(turned).max() < 1e-8
    product = np.sin(0.5 * run["j1"]) * np.sin(0.5 * run["j2"]) - ratio * np.cos(0.5 * run["j1"]) * np.cos(
        0.5 * run["j2"]
    )
    assert np.abs(product).max() < 1e-8


def test_bennett_by_several_routes_ends_alike():
    values, ratio = bennett(4)
    j2 = 2 * math.atan(ratio / math.tan(0.5 * values["j1"]))
    text = BENNETT.format(**values, j2=j2, j3=-values["j1"], gravity=3.0)
    ends = [run_of(text, 3.0, **options)[1].q[-1] for options in ROUTES.values()]
    np.testing.assert_allclose(ends, [ends[0]] * len(ends), atol=1e-6)


# the same linkage, cut at the second hinge and with the other numbers of its rows and speeds
CUT = """
fsm_dyn: 1
parameters: {{A: {A}, B: {B}, a: 0.3, b: a*sin(B)/sin(A), J: 0.02}}
frames:
  G: {{parent: N, rotate: {{x: -B}}}}
  L3: {{parent: T3, rotate: {{x: -A}}}}
  L2: {{parent: T2, rotate: {{x: -B}}}}
  T1: {{parent: L1, rotate: {{x: A}}}}
points:
  Q: {{from: O, at: -b*N.x}}
  P2: {{from: T3_origin, at: -a*L3.x}}
  P1: {{from: T2_origin, at: -b*L2.x}}
  K: {{from: L1_origin, at: a*L1.x}}
joints:
  j4: {{revolute: {{parent: G, child: T3, at: Q, axis: G.z}}}}
  j3: {{revolute: {{parent: L3, child: T2, at: P2, axis: L3.z}}}}
  j1: {{revolute: {{child: L1, at: O, axis: N.z}}}}
  j2: {{revolute: {{parent: T1, child: L2, at: [K, P1], axis: [T1.z, L2.z]}}}}
bodies:
  b2: {{frame: L2, center: T2_origin, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  b1: {{frame: L1, center: K, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
loads: [{{gravity: -{gravity}*N.z}}]
initial: {{j1: {j1}, j1_dot: {speed}, guess: {{j3: 1, j4: 2.7}}}}
"""
CASE = {"A": math.radians(40), "B": math.radians(75), "j1": 1.0, "speed": 3.0, "j2": 2.0, "j3": 1.0, "gravity": 9.81}


@pytest.mark.parametrize("route", [*ROUTES, "default", "bdf"])
@pytest.mark.parametrize("form", ["as written", "mirrored", "cut elsewhere", "cut and mirrored"])
def test_a_kept_row_that_vanishes_does_not_stop_the_linkage(form, route):
    """The first hinge passes -2.2989 rad, where the third row of the loop vanishes."""
    values = dict(CASE)
    if "mirrored" in form:
        values |= {"A": -values["A"], "B": -values["B"], "gravity": -9.81}
    _, run = run_of(
        (CUT if "cut" in form else BENNETT).format(**values),
        3.0,
        **(ROUTES | {"bdf": {"method": "bdf"}}).get(route, {}),
    )
    assert run.outcome.name == "done"
    assert run.warnings == ()
    assert run["j1"].min() < -2.3
    assert run["j1"][-1] == pytest.approx(1.2906977, abs=2e-7)


# two chains of three hinges each, in planes at an angle, between the ground and a plate that rises straight
SARRUS = """
fsm_dyn: 1
parameters: {{psi: {psi}, l: 0.4, m: 1, J: 0.01}}
frames:
  H: {{parent: N, rotate: {{y: psi}}}}
points:
  K: {{from: A1_origin, at: l*A1.x}}
  M: {{from: A2_origin, at: l*A2.x}}
  E: {{from: O, at: 0.2*H.x}}
  R: {{from: B1_origin, at: l*B1.x}}
  S: {{from: B2_origin, at: l*B2.x}}
  D: {{from: plate_origin, at: -0.2*plate.x}}
  F: {{from: D, at: 0.2*cos(psi)*plate.x - 0.2*sin(psi)*plate.z}}
  Z: {{from: O, at: 0.2*N.x}}
joints:
  a1: {{revolute: {{child: A1, at: Z, axis: N.z}}}}
  a2: {{revolute: {{parent: A1, child: A2, at: K, axis: A1.z}}}}
  a3: {{revolute: {{parent: A2, child: plate, at: M, axis: A2.z}}}}
  b1: {{revolute: {{parent: H, child: B1, at: E, axis: H.z}}}}
  b2: {{revolute: {{parent: B1, child: B2, at: R, axis: B1.z}}}}
  b3: {{revolute: {{parent: B2, child: top, at: [S, F], axis: B2.z}}}}
bodies:
  one: {{frame: A1, center: K, mass: m, inertia: {{xx: J, yy: J, zz: J}}}}
  two: {{frame: B1, center: R, mass: m, inertia: {{xx: J, yy: J, zz: J}}}}
  lid: {{frame: plate, center: plate_origin, mass: m, inertia: {{xx: J, yy: J, zz: J}}}}
loads: [{{gravity: -9.81*N.y}}]
initial: {{a1: 1.0, a1_dot: {speed}, guess: {{a2: 1.1, a3: -2.1, b1: 1.0, b2: 1.1, b3: 0}}}}
"""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("psi", [1.2, 2.0])
def test_sarrus_rises_straight(psi, route):
    text = SARRUS.format(psi=psi, speed=2.0).replace("child: top", "child: Ftop")
    text = text.replace("frames:\n", "frames:\n  Ftop: {parent: plate, rotate: {y: psi}}\n").replace(", b3: 0", "")
    graph, run = run_of(text, 0.6, **ROUTES[route])
    assert run.outcome.name == "done"
    assert largest_residual(graph, run) < 1e-10
    assert np.abs(run["a1"] + run["a2"] + run["a3"]).max() < 1e-8  # the plate stays level
    np.testing.assert_allclose(run["b1"], run["a1"], atol=1e-8)
    np.testing.assert_allclose(run["a2"], np.pi - 2 * run["a1"], atol=1e-8)  # it rises along N.y
    assert run.energy.relative_residual < 1e-6


@pytest.mark.parametrize("route", ["dopri5", "online"])
@pytest.mark.parametrize("seed", [1, 2])
def test_sarrus_swings_on_a_spring_for_long(seed, route):
    """Under gravity it folds flat within a second, which is a change point; the spring turns it round before that."""
    random = np.random.default_rng(seed)
    text = SARRUS.format(psi=random.uniform(1.0, 2.2), speed=random.uniform(0.5, 1.5))
    text = text.replace("child: top", "child: Ftop").replace(", b3: 0", "")
    text = text.replace("frames:\n", "frames:\n  Ftop: {parent: plate, rotate: {y: psi}}\n")
    text = text.replace("{gravity: -9.81*N.y}", "{torsion_spring: {coordinate: a1, stiffness: 5, free: 0.9}}")
    graph, run = run_of(text, 10.0, **ROUTES[route])
    assert run.outcome.name == "done"
    assert run.warnings == ()
    assert largest_residual(graph, run) < 1e-10
    np.testing.assert_allclose(run["b1"], run["a1"], atol=1e-8)
    np.testing.assert_allclose(run["a2"], np.pi - 2 * run["a1"], atol=1e-8)
    assert run.energy.relative_residual < 1e-7


# a joint of Cardan between two shafts in bearings: a spherical linkage with three rows too many
CARDAN = """
fsm_dyn: 1
parameters: {{bend: {bend}, J: 0.01}}
frames:
  S: {{parent: N, rotate: {{y: bend}}}}
points:
  C: {{from: O, at: 0*N.x}}
joints:
  shaft: {{revolute: {{child: fork, at: O, axis: N.z}}}}
  hook: {{universal: {{parent: fork, child: other, at: O, axis: [fork.x, other.y]}}}}
  bearing: {{revolute: {{parent: S, child: other, at: [O, other_origin], axis: [S.z, other.z]}}}}
bodies:
  drive: {{frame: fork, center: O, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  driven: {{frame: other, center: other_origin, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
initial: {{shaft: 0.3, shaft_dot: 4, guess: {{hook_1: 0, hook_2: {bend}}}}}
"""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("bend", [0.3, 0.9])
def test_a_joint_of_cardan_turns_by_its_law(bend, route):
    graph, run = run_of(CARDAN.format(bend=bend), 10.0, **ROUTES[route])
    assert run.outcome.name == "done"
    assert largest_residual(graph, run) < 1e-10
    # hook_2 and hook_1 from the angle of the shaft: the driven shaft keeps its direction (sin bend, 0, cos bend)
    c, s = np.cos(run["shaft"]), np.sin(run["shaft"])
    across, along = math.sin(bend) * c, -math.sin(bend) * s
    np.testing.assert_allclose(np.sin(run["hook_1"]) * np.cos(run["hook_2"]), -along, atol=1e-8)
    np.testing.assert_allclose(np.sin(run["hook_2"]), across, atol=1e-8)
    assert run.energy.relative_residual < (1e-5 if route == "rk4" else 1e-7)


# two joints of Cardan between parallel shafts, their forks in one plane
PARALLEL = """
fsm_dyn: 1
parameters: {{bend: {bend}, l: 0.5, J: 0.01}}
points:
  P: {{from: mid_origin, at: l*mid.z}}
  W: {{from: O, at: l*sin(bend)*N.x + l*cos(bend)*N.z}}
joints:
  shaft: {{revolute: {{child: fork, at: O, axis: N.z}}}}
  first: {{universal: {{parent: fork, child: mid, at: O, axis: [fork.x, mid.y]}}}}
  second: {{universal: {{parent: mid, child: out, at: P, axis: [mid.y, out.x]}}}}
  bearing: {{revolute: {{child: out, at: [W, out_origin], axis: [N.z, out.z]}}}}
bodies:
  one: {{frame: fork, center: O, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  two: {{frame: mid, center: P, mass: 1, inertia: {{xx: J, yy: J, zz: 2*J}}}}
  three: {{frame: out, center: out_origin, mass: 1, inertia: {{xx: J, yy: J, zz: 3*J}}}}
loads: [{{torque: 0.02*N.z, on: one}}]
outputs: {{lag: "dot(out.x, fork.y)", level: "dot(out.z, fork.z) - 1"}}
initial: {{shaft: 0.3, shaft_dot: 4, guess: {{first_1: {a}, first_2: {c}, second_1: -{c}, second_2: -{a}}}}}
"""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("bend", [0.3, 0.8])
def test_two_joints_of_cardan_turn_evenly(bend, route):
    a, c = math.atan2(math.sin(bend) * math.sin(0.3), math.cos(bend)), math.asin(math.sin(bend) * math.cos(0.3))
    graph, run = run_of(PARALLEL.format(bend=bend, a=a, c=c), 10.0, **ROUTES[route])
    assert run.outcome.name == "done"
    assert largest_residual(graph, run) < 1e-10
    assert np.abs(run["lag"]).max() < 1e-8
    assert np.abs(run["level"]).max() < 1e-8
    assert run.energy.relative_residual < (1e-5 if route == "rk4" else 1e-7)


def test_bennett_by_time_stepping_converges():
    values, ratio = bennett(4)
    j2 = 2 * math.atan(ratio / math.tan(0.5 * values["j1"]))
    text = BENNETT.format(**values, j2=j2, j3=-values["j1"], gravity=3.0)
    exact = run_of(text, 3.0, rtol=1e-10)[1].q[-1]
    bdf = run_of(text, 3.0, method="bdf", rtol=1e-9)[1].q[-1]
    np.testing.assert_allclose(bdf, exact, atol=1e-5)
    coarse, fine = (
        np.abs(run_of(text, 3.0, method="moreau_jean", step=step)[1].q[-1] - exact).max() for step in (1e-3, 2.5e-4)
    )
    assert fine < 1e-3
    assert fine < 0.4 * coarse


# two linkages of Bennett with one link and its two hinges in common, which are left out: Goldberg's of five hinges
GOLDBERG = """
fsm_dyn: 1
parameters: {{A: {A}, B: {B}, C: {C}, a: 0.3, b: a*sin(B)/sin(A), c: a*sin(C)/sin(A), J: 0.02}}
frames:
  G: {{parent: N, rotate: {{x: C}}}}
  T1: {{parent: L1, rotate: {{x: B}}}}
  T2: {{parent: L2, rotate: {{x: A}}}}
  T3: {{parent: L3, rotate: {{x: B - C}}}}
  T4: {{parent: L4, rotate: {{x: -A}}}}
points:
  P1: {{from: O, at: b*L1.x}}
  P2: {{from: P1, at: a*L2.x}}
  P3: {{from: P2, at: (b - c)*L3.x}}
  P4: {{from: P3, at: -a*L4.x}}
  Q: {{from: O, at: c*N.x}}
joints:
  j1: {{revolute: {{child: L1, at: O, axis: N.z}}}}
  j2: {{revolute: {{parent: T1, child: L2, at: P1, axis: T1.z}}}}
  j3: {{revolute: {{parent: T2, child: L3, at: P2, axis: T2.z}}}}
  j4: {{revolute: {{parent: T3, child: L4, at: P3, axis: T3.z}}}}
  j5: {{revolute: {{parent: T4, child: G, at: [P4, Q], axis: T4.z}}}}
bodies:
  b1: {{frame: L1, center: P1, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  b2: {{frame: L2, center: P2, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
  b3: {{frame: L3, center: P3, mass: 1, inertia: {{xx: J, yy: J, zz: J}}}}
loads: [{{gravity: -2*N.z}}]
initial: {{j2: {j2}, j2_dot: {speed}, guess: {{j1: {j1}, j3: {j3}, j4: {j4}}}}}
"""


@pytest.mark.parametrize("route", ["dopri5", "online"])
@pytest.mark.parametrize("seed", [1, 2])
def test_goldberg_keeps_the_relations_of_both_its_linkages(seed, route):
    """With the angle p of the hinge left out, j2 = -p, j3 = -f(p), j4 = g(p) and j1 = f - g."""
    random = np.random.default_rng(seed)
    A, B, C = random.uniform(0.4, 0.8), random.uniform(1.7, 2.0), random.uniform(1.2, 1.5)
    first, second = (math.sin(0.5 * (X + A)) / math.sin(0.5 * (X - A)) for X in (B, C))
    p = random.uniform(0.8, 2.0)
    f, g = (2 * math.atan(ratio / math.tan(0.5 * p)) for ratio in (first, second))
    text = GOLDBERG.format(A=A, B=B, C=C, j1=f - g, j2=-p, j3=-f, j4=g, speed=random.uniform(3.0, 5.0))
    graph, run = run_of(text, 10.0, **ROUTES[route])
    assert run.outcome.name == "done"
    assert run.warnings == ()
    assert largest_residual(graph, run) < 1e-10
    assert run.energy.relative_residual < 1e-7
    for ratio, angle in ((first, -run["j3"]), (second, run["j4"])):
        left = np.sin(-0.5 * run["j2"]) * np.sin(0.5 * angle) - ratio * np.cos(-0.5 * run["j2"]) * np.cos(0.5 * angle)
        assert np.abs(left).max() < 1e-8
    assert np.abs(np.angle(np.exp(1j * (run["j1"] + run["j3"] + run["j4"])))).max() < 1e-8
