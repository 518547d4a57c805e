"""Friction of joints in proportion to their reactions: screws, journal bearings, guides against closed forms."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from fsm_dyn import language as spec
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.check_values import self_locking_screws
from fsm_dyn.runtime.abi import Status

G = 9.81
SCREW = """
fsm_dyn: 1
parameters: {{m: 5 kg, J: 1e-3 kg*m^2, r: 8 mm, lead: {lead} m, mu: 0.2, T: {torque} N*m}}
joints:
  screw: {{helical: {{child: nut, at: O, axis: {axis}N.z, lead: lead, radius: r, friction: mu}}}}
bodies:
  load: {{frame: nut, center: nut_origin, mass: m, inertia: {{zz: J}}}}
loads:
  - {{gravity: -9.81 m/s^2*N.z}}
  - {{torque: T*{axis}N.z, on: load}}
initial: {{screw_dot: {speed} rad/s}}
"""
WHEEL = """
fsm_dyn: 1
parameters: {{m: 5 kg, J: {J} kg*m^2, r: {r} m, l: {l} m}}
joints:
  shaft: {{revolute: {{child: wheel, at: O, axis: N.z, radius: r, friction: {{static: 0.3, kinetic: {kinetic}}}}}}}
points: {{C: {{from: wheel_origin, at: l*wheel.x}}}}
bodies:
  rim: {{frame: wheel, center: C, mass: m, inertia: {{zz: J}}}}
loads:
  - {{gravity: -9.81 m/s^2*N.y}}
initial: {{shaft: {angle} rad, shaft_dot: {speed} rad/s}}
"""
ARM = """
fsm_dyn: 1
parameters: {m: 1 kg, l: 0.3 m, mu: 0.4}
joints:
  a: {revolute: {child: A, at: O, axis: N.z, radius: 30 mm, friction: mu}}
  b: {revolute: {parent: A, child: B, at: P, axis: A.z, radius: 30 mm, friction: mu}}
  c: {prismatic: {parent: B, child: C, at: Q, axis: B.x, friction: {static: 0.3, kinetic: 0.2}}}
points: {P: {from: A_origin, at: l*A.x}, Q: {from: B_origin, at: 0.1 m*B.y}}
bodies:
  one: {frame: A, center: P, mass: m, inertia: {zz: 0.01 kg*m^2}}
  two: {frame: B, center: Q, mass: m, inertia: {zz: 0.01 kg*m^2}}
  three: {frame: C, center: C_origin, mass: m, inertia: {zz: 0.01 kg*m^2}}
loads:
  - {gravity: -9.81 m/s^2*N.y}
"""
RELATIVE = ARM + "initial: {a_dot: 3 rad/s, b_dot: -5 rad/s, c_dot: 1 m/s}\n"
ROUTES = [{}, {"strategy": "online"}, {"method": "radau"}]


def graph_of(text, **values):
    return fsm_dyn.compile(loader.load(text=text.format(**values) if values else text))


def wheel(J=0.02, r=0.01, l=0.0, kinetic=0.2, angle=0.0, speed=0.0):  # noqa: E741
    return graph_of(WHEEL, J=J, r=r, l=l, kinetic=kinetic, angle=angle, speed=speed)


# -- screws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["", "-"])
@pytest.mark.parametrize(("lead", "torque", "speed"), [(4e-3, 0.3, 5.0), (4e-3, 0.0, -5.0), (4e-2, 0.3, 5.0)])
def test_a_screw_raises_and_lowers_by_the_angles_of_lead_and_friction(axis, lead, torque, speed):
    m, J, r, h = 5.0, 1e-3, 8e-3, lead / (2 * math.pi)
    run = fsm_dyn.simulate(graph_of(SCREW, axis=axis, lead=lead, torque=torque, speed=speed), 0.002)
    # along -N.z the load hangs on the screw's other flank: it pulls the way that lowers
    weight = -G if axis else G
    loaded = math.copysign(1.0, speed) * math.copysign(1.0, weight)
    arm = r * math.tan(math.atan(h / r) + loaded * math.atan(0.2))
    acceleration = (torque - m * weight * arm) / (J + m * h * arm)
    assert run["screw_dot"][-1] == pytest.approx(speed + 0.002 * acceleration, rel=1e-13)  # constant: rounding
    np.testing.assert_allclose(run["screw_slide"], h * run["screw"], rtol=0, atol=1e-15)


def test_a_self_locking_screw_holds_its_load_until_the_driving_torque_is_large_enough():
    r, h = 8e-3, 4e-3 / (2 * math.pi)
    up = 5 * G * r * math.tan(math.atan(h / r) + math.atan(0.2))
    down = 5 * G * r * math.tan(math.atan(h / r) - math.atan(0.2))
    for torque, moves in ((up, True), (down, True), (0.0, False)):
        for factor in (1 - 1e-6, 1 + 1e-6):
            graph = graph_of(SCREW, axis="", lead=4e-3, torque=torque * factor, speed=0)
            run = fsm_dyn.simulate(graph, 0.01)
            assert (run["screw_dot"][-1] != 0.0) == (moves and factor > 1), (torque, factor)


def test_check_names_the_screws_that_lock_themselves():
    def named(lead):
        mechanism = loader.load(text=SCREW.format(axis="", lead=lead, torque=0, speed=0))
        return self_locking_screws(mechanism, spec.evaluate.evaluate_parameters(mechanism, {}))

    limit = 0.2 * 2 * math.pi * 8e-3  # tan(lead angle) = mu
    assert named(4e-3) == ["screw: tan(lead angle) = 0.07958 <= 0.2, its static friction"]
    assert named(-0.999 * limit)
    assert not named(1.001 * limit)


def test_a_screw_without_friction_is_one_coordinate():
    text = SCREW.replace(", radius: r, friction: mu", "")
    run = fsm_dyn.simulate(graph_of(text, axis="", lead=4e-2, torque=0.5, speed=0), 1.0)
    h = 4e-2 / (2 * math.pi)
    assert run["screw_dot"][-1] == pytest.approx((0.5 - 5 * G * h) / (1e-3 + 5 * h * h), rel=1e-12)


# -- journal bearings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ROUTES)
def test_a_wheel_spins_down_under_its_own_weight(options):
    run = fsm_dyn.simulate(wheel(speed=20.0), 5.0, **options)
    slowing = 0.2 * 0.01 * 5 * G / 0.02
    (stopped,) = run.transitions
    assert stopped.time == pytest.approx(20 / slowing, rel=1e-12)
    assert run["shaft"][-1] == pytest.approx(20**2 / (2 * slowing), rel=1e-12)


def test_time_stepping_spins_it_down_alike():
    run = fsm_dyn.simulate(wheel(speed=20.0), 5.0, method="moreau_jean", step=5e-3)
    slowing = 0.2 * 0.01 * 5 * G / 0.02
    assert run["shaft"][-1] == pytest.approx(20**2 / (2 * slowing), rel=1e-6)  # the step of the stop: (h/t)²


def test_a_rocker_sticks_where_its_weight_passes_within_the_friction_circle():
    circle = 0.3 * 0.05
    for lever, sticks in ((0.999 * circle, True), (1.001 * circle, False)):
        graph = wheel(r=0.05, l=0.1, angle=math.acos(lever / 0.1))
        assert (fsm_dyn.simulate(graph, 0.01)["shaft_dot"][-1] == 0.0) == sticks


@pytest.mark.parametrize("options", ROUTES)
def test_a_pendulum_swings_as_by_the_quadratic_equation_of_its_reaction(options):
    """|N| enters its own equation through the acceleration; with one bearing that is a quadratic."""
    m, J, r, l, k = 5.0, 0.02, 0.05, 0.1, 0.2 * 0.05  # noqa: E741

    def rate(_, x):
        q, w = x
        # N = m (a - g) = A + B alpha; with the torque -k|N| of turning forwards J' alpha = -m g l cos(q) - k |N|
        A = m * np.array([-l * w * w * math.cos(q), G - l * w * w * math.sin(q)])
        B = m * l * np.array([-math.sin(q), math.cos(q)])
        inertia, load = J + m * l * l, -m * G * l * math.cos(q)
        a, b = A + B * load / inertia, -B * k / inertia
        size = (a @ b + math.sqrt((a @ b) ** 2 + (1 - b @ b) * (a @ a))) / (1 - b @ b)
        return [w, (load - k * size) / inertia]

    run = fsm_dyn.simulate(wheel(r=r, l=l, angle=-1.5, speed=9.0), 0.12, **options)
    wanted = solve_ivp(rate, (0, 0.12), [-1.5, 9.0], rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    assert run["shaft_dot"].min() > 0
    np.testing.assert_allclose([run["shaft"][-1], run["shaft_dot"][-1]], wanted, rtol=3e-8)  # the run's rtol, 1e-9


def test_a_bearing_that_jams_ends_the_run_by_name():
    """Its friction raises the load by more than itself: no load agrees with its reaction."""
    run = fsm_dyn.simulate(wheel(J=0.002, r=0.5, l=0.1, kinetic=0.3, speed=4.0), 0.1, on_failure="return")
    assert run.outcome.code == Status.INCONSISTENT


# -- guides -----------------------------------------------------------------------------------------------------------


def test_a_guide_rubs_by_the_resultant_of_both_forces_across_it():
    text = """
fsm_dyn: 1
parameters: {{m: 2 kg, F: {force} N}}
joints:
  guide: {{prismatic: {{child: block, at: O, axis: N.x, friction: {{static: 0.4, kinetic: 0.3}}}}}}
bodies:
  box: {{frame: block, center: block_origin, mass: m, inertia: {{xx: 1 kg*m^2, yy: 1 kg*m^2, zz: 1 kg*m^2}}}}
loads:
  - {{force: 3 N*N.y - 4 N*N.z + F*N.x, at: block_origin}}
"""
    assert fsm_dyn.simulate(graph_of(text, force=1.999), 1.0)["guide_dot"][-1] == 0.0
    assert fsm_dyn.simulate(graph_of(text, force=2.001), 1.0)["guide_dot"][-1] == pytest.approx(0.2505, rel=1e-12)
    run = fsm_dyn.simulate(graph_of(text, force=-6.0), 1.0)
    assert run["guide_dot"][-1] == pytest.approx((-6.0 + 1.5) / 2, rel=1e-12)


# -- several joints ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm():
    return graph_of(RELATIVE)


def test_independent_derivations_agree_in_every_mode():
    report = fsm_dyn.verify(
        loader.load(text=RELATIVE.replace("30 mm, friction: mu", "", 1).replace(", radius: }", "}"))
    )
    assert report.passed, report


def test_embedded_online_and_in_time_steps_it_moves_alike(arm):
    runs = [fsm_dyn.simulate(arm, 0.3, **options) for options in ({}, {"strategy": "online"})]
    np.testing.assert_allclose(runs[0].rows.x[-1], runs[1].rows.x[-1], rtol=0, atol=1e-9)
    # first order: ten times the step has ten times the error
    errors = [
        np.abs(fsm_dyn.simulate(arm, 0.3, method="moreau_jean", step=h).rows.x[-1] - runs[0].rows.x[-1]).max()
        for h in (1e-3, 1e-4)
    ]
    assert errors[1] < 0.2 * errors[0] < 1e-3


def test_in_absolute_coordinates_it_moves_alike(arm):
    text = ARM.replace("joints:", "joint_coordinates: absolute\njoints:", 1) + (
        "initial: {A_turn_dot: 3 rad/s, B_turn_dot: -2 rad/s, C_x: 0.3 m, C_x_dot: 1.2 m/s}\n"
    )
    free, run = fsm_dyn.simulate(graph_of(text), 0.3), fsm_dyn.simulate(arm, 0.3)
    # errors of integration of either, 1e-9 a step
    np.testing.assert_allclose(free["A_turn"][-1], run["a"][-1], rtol=0, atol=1e-7)
    np.testing.assert_allclose(free["B_turn"][-1], run["a"][-1] + run["b"][-1], rtol=0, atol=1e-7)


def test_friction_on_a_body_is_the_coefficient_times_the_reaction(arm):
    run = fsm_dyn.simulate(arm, 0.05)
    reaction = np.linalg.norm(fsm_dyn.wrench(arm, run, "b").force, axis=1)
    torque = run.pins["b"].drive  # nothing else acts on its angle
    np.testing.assert_allclose(torque, 0.4 * 0.03 * reaction, rtol=1e-9)  # turning backwards


TROLLEY = """
fsm_dyn: 1
joints:
  boom: {revolute: {child: A, at: O, axis: N.z, radius: 0.2 m, friction: 0.8}}
  guide: {prismatic: {parent: A, child: B, at: P, axis: A.x, friction: {static: 0.6, kinetic: 0.5}}}
points:
  P: {from: A_origin, at: 0.3 m*A.x}
bodies:
  arm: {frame: A, center: P, mass: 1 kg, inertia: {zz: 0.01 kg*m^2}}
  load: {frame: B, center: B_origin, mass: 1 kg, inertia: {zz: 0.01 kg*m^2}}
inputs: {wind: N}
loads:
  - gravity: -9.81 m/s^2*N.y
  - spring: {between: [P, B_origin], stiffness: 30 N/m, free: 0 m}
  - force: wind*N.x
    at: B_origin
schedule:
  wind: {linear: [[0.2 s, 0 N], [0.5 s, 8 N], [0.8 s, 8 N], [1.5 s, -5 N]]}
initial: {boom: -30 deg, boom_dot: -1 rad/s, guide: 0.02 m, guide_dot: 0.3 m/s}
"""


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}])
def test_a_bearing_holds_by_the_load_that_it_has_when_another_slides(options):
    """With both at rest the boom would exceed its limit; with the trolley sliding its load is larger, and it holds.

    By the equations of motion of the trolley along the boom and of the boom under the force across it.
    """
    run = fsm_dyn.simulate(graph_of(TROLLEY), 0.6, **options)
    assert [str(x.target) for x in run.transitions] == ["guide_friction_slide", "guide_friction_slide"]
    angle, place = run["boom"][-1], run["guide"][-1]
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    pull, weight = np.array([8.0, 0.0]), np.array([0.0, -G])
    normal = -(pull + weight) @ across
    acceleration = (pull + weight) @ along - 30.0 * place + 0.5 * abs(normal)  # friction against a slip inwards
    before = run.sample([0.6 - 1e-5])
    found = (run["guide_dot"][-1] - before["guide_dot"][0]) / 1e-5
    assert found == pytest.approx(acceleration, abs=1e-3)
    reaction = acceleration * along - pull - 2.0 * weight
    needed = (pull @ across + weight @ across) * (0.3 + place) + weight @ across * 0.3
    assert 0.8 < abs(needed) / (0.2 * 0.8 * np.linalg.norm(reaction)) < 1.0
    assert abs(run["boom_dot"][-1]) < 1e-12


def test_a_hinge_with_friction_closes_a_loop():
    text = """
fsm_dyn: 1
parameters: {m: 1 kg, r: 20 mm, mu: 0.3}
joints:
  a: {revolute: {child: A, at: O, axis: N.z, radius: r, friction: mu}}
  b: {revolute: {parent: A, child: B, at: P, axis: A.z}}
  c: {revolute: {child: C, at: W, axis: N.z}}
  d: {revolute: {parent: B, child: C, at: [Q, R], axis: B.z, radius: r, friction: mu}}
points:
  P: {from: A_origin, at: 0.2 m*A.x}
  Q: {from: B_origin, at: 0.5 m*B.x}
  W: {from: O, at: 0.5 m*N.x}
  R: {from: C_origin, at: 0.4 m*C.x}
bodies:
  one: {frame: A, center: P, mass: m, inertia: {zz: 0.01 kg*m^2}}
  two: {frame: B, center: Q, mass: m, inertia: {zz: 0.01 kg*m^2}}
  three: {frame: C, center: R, mass: m, inertia: {zz: 0.01 kg*m^2}}
initial: {a: 60 deg, a_dot: 8 rad/s, guess: {b: -20 deg, c: 80 deg}}
"""
    graph = graph_of(text)
    run = fsm_dyn.simulate(graph, 0.2)
    assert run.energy.relative_residual < 1e-7
    assert run.energy.kinetic[-1] < 0.99 * run.energy.kinetic[0]
    assert graph.nx.number_of_nodes() == 4


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joint", "message"),
    [
        ("revolute: {child: B, at: O, axis: N.z, friction: 0.2}", "has a friction but no radius"),
        ("revolute: {child: B, at: O, axis: N.z, radius: 0.2}", "has a radius but no friction"),
        ("prismatic: {child: B, at: O, axis: N.x, friction: inf}", "has infinite friction"),
        (
            "revolute: {child: B, at: O, axis: N.z, friction: 0.2, radius: 1 mm, clearance: 20 um}",
            "has a friction and a clearance",
        ),
        ("prismatic: {child: B, at: O, axis: N.x, friction: -0.1}", "static friction of 'j_friction' is negative"),
        ("helical: {child: B, at: O, axis: N.z, lead: 1, radius: -1, friction: 0.2}", "radius of the thread"),
        ("helical: {child: B, at: [O, O], axis: N.z, lead: 1}", "closes a loop"),
    ],
)
def test_joints_that_are_refused_with_their_place(joint, message):
    text = f"fsm_dyn: 1\njoints:\n  j: {{{joint}}}\nbodies:\n  b: {{frame: B, center: B_origin, mass: 1}}\n"
    with pytest.raises(ModelError, match=message) as refused:
        loader.load(text=text)
    assert refused.value.where.line == 3


def test_units_of_a_radius_and_a_rest_that_is_searched_for_are_refused():
    with pytest.raises(ModelError, match="static friction of 'shaft_friction'"):
        loader.load(text=WHEEL.format(J=1, r=1, l=1, kinetic=0.3, angle=0, speed=0).replace("r: 1 m", "r: 1 kg"))
    text = WHEEL.format(J=1, r=0.1, l=1, kinetic=0.3, angle=0, speed=0).replace(
        "initial: {", "initial: {settle: true, "
    )
    with pytest.raises(ModelError, match="depends on a reaction"):
        fsm_dyn.simulate(graph_of(text), 1.0)


def test_a_hinge_in_a_loop_in_space_is_refused():
    text = """
fsm_dyn: 1
joints:
  a: {revolute: {child: A, at: O, axis: N.x}}
  b: {revolute: {child: B, at: O, axis: N.y}}
  c: {revolute: {parent: A, child: B, at: [O, O], axis: A.z, radius: 1, friction: 0.1}}
bodies:
  one: {frame: A, center: A_origin, mass: 1, inertia: {xx: 1}}
  two: {frame: B, center: B_origin, mass: 1, inertia: {yy: 1}}
"""
    with pytest.raises(ModelError, match="joint 'c' cannot have friction where it closes a loop in space") as refused:
        loader.load(text=text)
    assert refused.value.where.line == 6
    assert "let it make its child" in str(refused.value)


def test_a_component_keeps_its_friction_under_its_prefix():
    jack = {
        "fsm_dyn": 1,
        "parameters": {"mu": 0.2},
        "joints": {
            "screw": {
                "helical": {
                    "child": "nut", "at": "O", "axis": "N.z", "lead": "4 mm", "radius": "8 mm", "friction": "mu",
                }
            }
        },
        "bodies": {
            "load": {"frame": "nut", "center": "nut_origin", "mass": "5 kg", "inertia": {"zz": "1e-3 kg*m^2"}}
        },
    }  # fmt: skip
    lift = {"fsm_dyn": 1, "bodies": {}, "use": {"jack": {"model": jack}}, "loads": [{"gravity": "-9.81 m/s^2*N.z"}]}
    graph = fsm_dyn.compile(lift)
    assert list(graph.automaton.mechanism.contacts) == ["jack_screw_friction"]
    run = fsm_dyn.simulate(graph, 1.0, initial={"jack_screw_dot": -1.0})
    assert [x.target for x in run.transitions] == ["jack_screw_friction_stick"]
