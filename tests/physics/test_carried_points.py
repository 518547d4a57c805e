"""Friction of joints acts however the points of their children are written, or the model is refused by name."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

HEAD = "fsm_dyn: 1\nparameters: {m: 2 kg, mu: 0.2, r: 20 mm, l: 0.3 m, J: 0.02 kg*m^2}\n"
GRAVITY = "loads: [{gravity: -9.81 m/s^2*N.y}]\n"
ROUTES = [{}, {"strategy": "online"}, {"method": "radau"}, {"method": "moreau_jean", "step": 1e-4}]
MORE_ROUTES = [*ROUTES, {"method": "bdf"}, {"method": "rk4", "step": 1e-3}]
GUIDE = """
joints: {rail: {prismatic: {child: block, at: O, axis: N.x, friction: mu}}}
initial: {rail_dot: 3 m/s}
"""
GUIDED = {
    "from its origin": ("P: {from: block_origin, at: 0*N.x}", "frame: block, center: block_origin"),
    "from O by the coordinate": ("P: {from: O, at: rail*N.x}", "frame: block, center: P"),
    "along the child's axis": ("P: {from: O, at: rail*block.x}", "frame: block, center: P"),
    "a particle": ("P: {from: O, at: rail*N.x}", "center: P"),
    "by way of another point": ("R: {from: O, at: 1 m*N.y}, P: {from: R, at: rail*N.x - 1 m*N.y}", "center: P"),
}
HINGE = """
joints: {j: {revolute: {child: arm, at: O, axis: N.z, radius: r, friction: mu}}}
initial: {j: 1 rad, j_dot: 9 rad/s}
"""
HINGED = {
    "from its origin": ("P: {from: arm_origin, at: l*arm.x}", "P"),
    "from the hinge": ("P: {from: O, at: l*arm.x}", "P"),
    "by sine and cosine": ("P: {from: O, at: l*cos(j)*N.x + l*sin(j)*N.y}", "P"),
    "mirrored twice": (
        "R: {from: O, at: -l*arm.x}, P: {from: R, at: 2*l*cos(j)*N.x + 2*l*arm.y*0 + 2*l*sin(j)*N.y}",
        "P",
    ),
    "in two steps": ("R: {from: O, at: 0.1 m*arm.y}, P: {from: R, at: l*arm.x - 0.1 m*arm.y}", "P"),
}
SCREW = """
parameters: {m: 5 kg, J: 1e-3 kg*m^2, r: 8 mm, lead: 40 mm, mu: 0.1}
joints: {s: {helical: {child: nut, at: O, axis: SIGNN.y, lead: lead, radius: r, friction: mu}}}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""
NUT = "bodies: {b: {frame: nut, center: CENTER, mass: m, inertia: {yy: J}}}\n"
SCREWED = {
    "from its origin": ("P: {from: nut_origin, at: 0*N.x}", "nut_origin"),
    "from O by the slide": ("P: {from: O, at: SIGNs_slide*N.y}", "P"),
    "from O by the turn": ("P: {from: O, at: SIGNlead/(2*pi)*s*N.y}", "P"),
}
TWO_ARMS = """
joints:
  a: {revolute: {child: A, at: O, axis: N.z, radius: r, friction: mu}}
  b: {revolute: {parent: A, child: B, at: K, axis: A.z, radius: r, friction: mu}}
initial: {a: 0.3 rad, a_dot: 5 rad/s, b_dot: -8 rad/s}
"""
TWO = {
    "from origins": (
        "K: {from: A_origin, at: l*A.x}, P: {from: A_origin, at: l/2*A.x}, Q: {from: B_origin, at: l/2*B.x}"
    ),
    "from O": ("K: {from: O, at: l*A.x}, P: {from: O, at: l/2*A.x}, Q: {from: K, at: l/2*B.x}"),
    "each from O": (
        "K: {from: O, at: l*cos(a)*N.x + l*sin(a)*N.y}, P: {from: O, at: l/2*A.x}, "
        "Q: {from: O, at: l*A.x + l/2*cos(a + b)*N.x + l/2*sin(a + b)*N.y}"
    ),
}


def run_of(text, until=0.5, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), until, **options)


@pytest.mark.parametrize("options", MORE_ROUTES)
@pytest.mark.parametrize("way", GUIDED)
def test_a_guide_brakes_its_block(way, options):
    points, body = GUIDED[way]
    run = run_of(f"{HEAD}{GUIDE}{GRAVITY}points: {{{points}}}\nbodies: {{b: {{{body}, mass: m}}}}\n", 1.0, **options)
    assert run["rail_dot"][-1] == pytest.approx(3.0 - 0.2 * 9.81, rel=1e-9)
    assert run.multipliers["rail_bearing_y"][-1] == pytest.approx(19.62, rel=1e-9)


@pytest.mark.parametrize("options", ROUTES)
def test_a_pin_brakes_its_arm_in_five_ways(options):
    ends = []
    for points, center in HINGED.values():
        body = f"bodies: {{b: {{frame: arm, center: {center}, mass: m, inertia: {{zz: J}}}}}}\n"
        run = run_of(f"{HEAD}{HINGE}{GRAVITY}points: {{{points}}}\n{body}", **options)
        ends.append([run["j"][-1], run["j_dot"][-1], run.multipliers["j_friction"][-1, 0]])
    assert abs(ends[0][2]) > 0.05
    np.testing.assert_allclose(ends, [ends[0]] * len(ends), rtol=1e-9)


@pytest.mark.parametrize("options", ROUTES)
@pytest.mark.parametrize("center", ["O", "arm_origin", "Z"])
def test_a_wheel_whose_centre_is_the_pin_is_braked_too(center, options):
    """As in the example of the language: the body's centre is the point at which its hinge is."""
    points = "points: {Z: {from: O, at: 0*arm.x}}\n"
    body = f"bodies: {{b: {{frame: arm, center: {center}, mass: m, inertia: {{zz: J}}}}}}\n"
    run = run_of(f"{HEAD}{HINGE}{GRAVITY}{points}{body}", **options)
    assert run["j_dot"][-1] == pytest.approx(9.0 - 0.5 * 0.2 * 0.02 * 19.62 / 0.02, rel=1e-9)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("options", ROUTES[:3])
def test_a_screw_comes_down_against_its_friction_in_three_ways(sign, options):
    ends = []
    for points, center in SCREWED.values():
        text = f"{SCREW}points: {{{points}}}\n" + NUT.replace("CENTER", center)
        run = run_of("fsm_dyn: 1\n" + text.replace("SIGN", sign), 0.2, **options)
        ends.append([run["s"][-1], run["s_dot"][-1]])
    pitch = 0.04 / (2 * np.pi)
    arm = 8e-3 * np.tan(np.arctan(pitch / 8e-3) - np.arctan(0.1))
    speed = 0.2 * 5 * 9.81 * arm / (1e-3 + 5 * pitch * arm)
    np.testing.assert_allclose(np.abs(ends)[:, 1], speed, rtol=1e-9)


def test_a_self_locking_jack_holds_however_its_load_is_written():
    for points, center in SCREWED.values():
        text = f"{SCREW}points: {{{points}}}\n" + NUT.replace("CENTER", center)
        run = run_of("fsm_dyn: 1\n" + text.replace("SIGN", "").replace("lead: 40 mm", "lead: 4 mm"))
        assert run["s_dot"][-1] == 0.0


@pytest.mark.parametrize("options", ROUTES[:3])
def test_two_arms_hang_on_their_bearings(options):
    ends = []
    for points in TWO.values():
        bodies = (
            "bodies: {one: {frame: A, center: P, mass: m, inertia: {zz: J}}, "
            "two: {frame: B, center: Q, mass: m, inertia: {zz: J}}}\n"
        )
        run = run_of(f"{HEAD}{TWO_ARMS}{GRAVITY}points: {{{points}}}\n{bodies}", **options)
        ends.append([*run.q[-1][[0, 3]], *(run.multipliers[name][-1, 0] for name in ("a_friction", "b_friction"))])
    np.testing.assert_allclose(ends, [ends[0]] * len(ends), rtol=1e-9)


@pytest.mark.parametrize("at", ["0.5*rail*N.x", "rail**2/(1 m)*N.x", "rail*N.x + rail*N.y"])
def test_a_body_that_moves_otherwise_than_the_child_is_refused_by_name(at):
    points = f"points: {{P: {{from: O, at: {at}}}}}\n"
    text = f"{HEAD}{GUIDE}{GRAVITY}{points}bodies: {{b: {{frame: block, center: P, mass: m}}}}\n"
    with pytest.raises(
        ModelError, match="'P' moves with the joint 'rail', but not as a point of its child 'block'"
    ) as said:
        fsm_dyn.compile(load(text=text))
    assert "give it from block_origin" in str(said.value)


def test_what_does_not_move_with_the_joint_stays_where_it_is():
    """A body next to a guide, oriented by the frame of its block, is none of its load."""
    text = f"""{HEAD}{GUIDE}{GRAVITY}
coordinates: {{y: m}}
points: {{P: {{from: block_origin, at: 0*N.x}}, Z: {{from: O, at: y*N.y}}}}
bodies: {{b: {{frame: block, center: P, mass: m}}, other: {{frame: block, center: Z, mass: 7*m}}}}
"""
    run = run_of(text, 0.5)
    assert run["y_dot"][-1] == pytest.approx(-9.81 * 0.5)
    assert run.multipliers["rail_bearing_y"][-1] == pytest.approx(19.62)
