"""Absolute coordinates count whole turns in a plane, refuse what needs them in space, and have screws."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

HEAD = "fsm_dyn: 1\n"
STOPPED = """
joints: {j: {revolute: {child: A, at: O, axis: AXIS}}}
bodies: {b1: {frame: A, center: A_origin, mass: 1 kg, inertia: {xx: 2 kg*m^2, yy: 2 kg*m^2, zz: 2 kg*m^2}}}
"""
STOP = "contacts: {s: {joint_stop: {coordinate: j, upper: 270 deg}, restitution: 0.5}}\n"
ROUTES = [
    {},
    {"strategy": "online"},
    {"method": "radau"},
    {"method": "moreau_jean", "step": 1e-4},
    {"method": "bdf"},
    {"method": "rk4", "step": 1e-3},
]


def run_of(text, until, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(load(text=HEAD + text)), until, **options)


@pytest.mark.parametrize("options", ROUTES)
@pytest.mark.parametrize(("axis", "speed"), [("N.z", 3.0), ("-N.z", -3.0)])
def test_a_stop_at_three_quarters_of_a_turn_acts(axis, speed, options):
    text = STOPPED.replace("AXIS", axis) + STOP
    start = f"joint_coordinates: absolute\ninitial: {{A_turn_dot: {speed} rad/s}}\n"
    run = run_of(text + start, 2.0, **options)
    (struck,) = run.transitions
    assert struck.time == pytest.approx(np.deg2rad(270) / 3.0, abs=2e-4 if "step" in options else 1e-9)
    assert run["A_turn_dot"][-1] == pytest.approx(-0.5 * speed)
    other = run_of(text + "initial: {j_dot: 3 rad/s}\n", 2.0, **options)
    assert other.transitions[0].time == pytest.approx(struck.time, abs=1e-9)


def test_a_spring_is_wound_by_whole_turns_through_frames_written_by_hand():
    text = """
frames: {G: {parent: A, rotate: {z: 30 deg}}}
joints:
  j: {revolute: {child: A, at: O, axis: N.z}}
  k: {revolute: {parent: G, child: B, at: A_origin, axis: -G.z}}
bodies:
  one: {frame: A, center: A_origin, mass: 1 kg, inertia: {zz: 2 kg*m^2}}
  two: {frame: B, center: B_origin, mass: 1 kg, inertia: {zz: 1 kg*m^2}}
loads: [{torsion_spring: {coordinate: k, stiffness: 0.05 N*m}}]
"""
    own = run_of(text + "initial: {j_dot: 1 rad/s, k_dot: 9 rad/s}\n", 6.0, rtol=1e-10)
    start = "initial: {A_turn_dot: 1 rad/s, B_turn: 30 deg, B_turn_dot: -8 rad/s}\n"
    free = run_of(f"{text}joint_coordinates: absolute\noutputs: {{k_own: k}}\n{start}", 6.0, rtol=1e-10)
    assert own["k"].max() > 4 * np.pi
    assert free["k_own"][-1] == pytest.approx(own["k"][-1], abs=1e-7)


@pytest.mark.parametrize(
    "part",
    [
        STOP,
        "loads: [{torsion_spring: {coordinate: j, stiffness: 1 N*m}}]\n",
        "loads: [{torque: 1 N*m*sin(j/2)*N.x, on: b1}]\n",
        'transitions: [{from: "*", when: j > 6.5 rad, stop: true}]\n',
    ],
)
def test_what_counts_turns_in_space_is_refused_by_name(part):
    with pytest.raises(ModelError, match="the angle 'j' is known up to whole turns") as said:
        load(text=HEAD + STOPPED.replace("AXIS", "N.x") + part + "joint_coordinates: absolute\n")
    assert "`joint_coordinates: relative` counts the turns" in str(said.value)
    load(text=HEAD + STOPPED.replace("AXIS", "N.x") + part)


def test_what_does_not_count_turns_in_space_is_accepted():
    part = "loads: [{torque: 1 N*m*sin(j + 0.3)*N.x, on: b1}]\njoint_coordinates: absolute\ninitial: {A_wx: 3 rad/s}\n"
    free = run_of(STOPPED.replace("AXIS", "N.x") + part, 4.0, rtol=1e-10)
    part = "loads: [{torque: 1 N*m*sin(j + 0.3)*N.x, on: b1}]\ninitial: {j_dot: 3 rad/s}\n"
    own = run_of(STOPPED.replace("AXIS", "N.x") + part, 4.0, rtol=1e-10)
    assert free["A_wx"][-1] == pytest.approx(own["j_dot"][-1], abs=1e-7)


SCREW = """
parameters: {m: 5 kg, J: 1e-3 kg*m^2, lead: 40 mm}
joints: {s: {helical: {child: nut, at: O, axis: SIGNN.y, lead: lead}}}
bodies: {b: {frame: nut, center: nut_origin, mass: m, inertia: {xx: J, yy: J, zz: J}}}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""
PITCH = 0.04 / (2 * np.pi)


@pytest.mark.parametrize("options", ROUTES[:3])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_screw_in_absolute_coordinates_comes_down_many_turns(sign, options):
    run = run_of(SCREW.replace("SIGN", sign) + "joint_coordinates: absolute\n", 1.0, **options)
    fall = 5 * 9.81 * PITCH**2 / (1e-3 + 5 * PITCH**2)
    assert run["nut_y"][-1] == pytest.approx(-0.5 * fall, rel=1e-7)
    assert abs(run["nut_wy"][-1]) == pytest.approx(fall / PITCH, rel=1e-9)
    assert abs(run["nut_y"][-1]) > 2 * 0.04
    assert np.abs(run["nut_y_dot"] - PITCH * run["nut_wy"]).max() < 1e-12


@pytest.mark.parametrize("friction", ["", ", radius: 8 mm, friction: 0.1"])
def test_the_wrench_of_a_screw(friction):
    """What the screw gives its nut: Newton along the axis."""
    text = SCREW.replace("SIGN", "").replace("lead: lead", f"lead: lead{friction}")
    graph = fsm_dyn.compile(load(text=HEAD + text))
    run = fsm_dyn.simulate(graph, 0.2)
    found = fsm_dyn.wrench(graph, run, "s", on="b")
    force, torque = found.force, found.torque
    a = run.record.x_dot[:, -1]
    onward = a if friction else PITCH * a
    np.testing.assert_allclose(force[:, 1], 5 * (9.81 + onward), rtol=1e-8)
    turned = onward / PITCH
    np.testing.assert_allclose(torque[:, 1], 1e-3 * turned, rtol=1e-8)


def test_a_screw_with_friction_is_refused_in_absolute_coordinates():
    text = SCREW.replace("SIGN", "").replace("lead: lead", "lead: lead, radius: 8 mm, friction: 0.1")
    with pytest.raises(ModelError, match="joint 's' cannot have friction"):
        load(text=HEAD + text + "joint_coordinates: absolute\n")


GUIDE = """
parameters: {m: 2 kg, mu: 0.2}
joints: {rail: {prismatic: {child: block, at: O, axis: N.x, friction: mu}}}
points: {P: {AT}}
bodies: {slider: {frame: block, center: P, mass: m}}
loads: [{gravity: -9.81 m/s^2*N.y}]
joint_coordinates: absolute
initial: {block_x_dot: 3 m/s}
"""


@pytest.mark.parametrize("at", ["from: block_origin, at: 0*N.x", "from: block_origin, at: 0.1 m*block.x"])
def test_a_guide_in_absolute_coordinates_brakes_its_block(at):
    run = run_of(GUIDE.replace("AT", at), 1.0)
    assert run["block_x_dot"][-1] == pytest.approx(3.0 - 0.2 * 9.81, rel=1e-9)


@pytest.mark.parametrize("at", ["from: O, at: rail*N.x", "from: O, at: rail*block.x", "from: O, at: 2*rail*N.x"])
def test_a_body_that_would_not_load_its_joint_is_refused_by_name(at):
    with pytest.raises(ModelError, match="the centre 'P' of 'slider' moves with 'block', but not as a point of it"):
        run_of(GUIDE.replace("AT", at), 1.0)


WOUND = """
frames: {G: {parent: N, rotate: {z: 30 deg}}}
joints: {j: {revolute: {parent: G, child: A, at: O, axis: SIGNG.z}}}
points: {C: {from: A_origin, at: 0.3 m*A.x}}
bodies: {one: {frame: A, center: C, mass: 2 kg, inertia: {zz: 0.5 kg*m^2}}}
loads: [{torsion_spring: {coordinate: j, stiffness: 0.5 N*m}}]
initial: {j_dot: 9 rad/s}
"""


@pytest.mark.parametrize("sign", ["", "-"])
def test_wrenches_in_a_plane_count_the_turns_that_wind_a_spring(sign):
    """The hinge accelerates the mass centre, on a circle, as the wound spring turns the body."""
    graph = fsm_dyn.compile(load(text=HEAD + WOUND.replace("SIGN", sign)))
    run = fsm_dyn.simulate(graph, 4.0, rtol=1e-10)
    way = -1.0 if sign else 1.0
    turn, spin = np.pi / 6 + way * run["j"], run["j_dot"]
    onward = way * -0.5 * run["j"] / (0.5 + 2.0 * 0.3**2)
    assert np.abs(run["j"]).max() > 3 * np.pi
    force = (
        2.0
        * 0.3
        * np.stack(
            [-onward * np.sin(turn) - spin**2 * np.cos(turn), onward * np.cos(turn) - spin**2 * np.sin(turn)], axis=1
        )
    )
    np.testing.assert_allclose(fsm_dyn.wrench(graph, run, "j").force[:, :2], force, atol=1e-9)


@pytest.mark.parametrize(("until", "load_text"), [(1.5, "0.05 N*m*j"), (0.9, "0.05 N*m*j"), (1.5, "0.05 N*m*sin(j)")])
def test_wrenches_in_space_with_loads_that_count_turns(until, load_text):
    text = (
        STOPPED.replace("AXIS", "N.x") + f"loads: [{{torque: -{load_text}*N.x, on: b1}}]\ninitial: {{j_dot: 3 rad/s}}\n"
    )
    graph = fsm_dyn.compile(load(text=HEAD + text))
    run = fsm_dyn.simulate(graph, until)
    assert np.abs(fsm_dyn.wrench(graph, run, "j").torque[:, 0]).max() < 1e-9
