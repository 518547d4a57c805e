"""Backlash and clearance: the same motion as by contacts written by hand, and by the shapes of pin and hole."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load
from mechanisms.chain import chain_with_backlash

HINGE = """
fsm_dyn: 1
parameters: {b: 2 deg, e: 0.6}
joints:
  a: {revolute: {child: A, at: O, axis: N.z}}
bodies: {arm: {frame: A, center: O, mass: 1 kg, inertia: {zz: 1e-3 kg*m^2}}}
inputs: {T: {expression: 0.01 N*m*sin(20 Hz*t)}}
loads: [{torque: T*N.z, on: arm}]
"""
SLIDE = """
fsm_dyn: 1
parameters: {b: 0.2 mm, e: 0.6}
joints:
  a: {prismatic: {child: A, at: O, axis: -N.x}}
bodies: {cart: {frame: A, center: A_origin, mass: 1 kg}}
inputs: {F: {expression: 0.4 N*sin(20 Hz*t)}}
loads: [{force: F*N.x, at: A_origin}]
"""
GEAR = """
fsm_dyn: 1
parameters: {b: 1 deg, e: 0.3, w: 3 rad/s}
joints:
  plate: {revolute: {child: P, at: O, axis: N.z}}
  first: {revolute: {parent: P, child: A, at: O, axis: -P.z}}
  second: {revolute: {parent: P, child: B, at: C, axis: P.z}}
  mesh: {gear: {parent: A, child: B, carrier: P, axis: [A.z, B.z], ratio: -0.4}}
points:
  C: {from: O, at: 70 mm*P.x}
bodies:
  frame: {frame: P, center: O, mass: 1 kg, inertia: {zz: 1e-2 kg*m^2}}
  pinion: {frame: A, center: O, mass: 0.2 kg, inertia: {zz: 2e-4 kg*m^2}}
  wheel: {frame: B, center: C, mass: 1 kg, inertia: {zz: 1e-3 kg*m^2}}
inputs: {T: {expression: 0.05 N*m*sin(30 Hz*t)}}
loads: [{torque: T*N.z, on: pinion, reaction: frame}]
initial: {plate_dot: w}
"""
STOP = "contacts: {a: {joint_stop: {coordinate: a, lower: -b/2, upper: b/2}, restitution: e}}\n"
FLANKS = """
contacts:
  mesh_lower: {gap: second - 0.4*first + b/2, restitution: e}
  mesh_upper: {gap: b/2 - (second - 0.4*first), restitution: e}
"""
BY_HAND = {
    "revolute": (HINGE.replace("axis: N.z", "axis: N.z, backlash: {value: b, restitution: e}"), HINGE + STOP),
    "prismatic": (SLIDE.replace("axis: -N.x", "axis: -N.x, backlash: {value: b, restitution: e}"), SLIDE + STOP),
    "compliant": (
        HINGE.replace("axis: N.z", "axis: N.z, backlash: {value: b, compliant: {stiffness: 5 N*m}}"),
        HINGE + STOP.replace("restitution: e", "compliant: {stiffness: 5 N*m}"),
    ),
    "gear": (
        GEAR.replace("ratio: -0.4", "ratio: -0.4, backlash: {value: b, restitution: e}"),
        "\n".join(line for line in GEAR.splitlines() if "mesh" not in line) + FLANKS,
    ),
}
PIN = """
fsm_dyn: 1
parameters: {c: 0.4 mm, r: 4 mm, l: 0.1 m}
joints:
  a: JOINT
points:
  C: {from: A_origin, at: -l*A.y}
bodies: {arm: {frame: A, center: C, mass: 1 kg, inertia: {zz: 1e-3 kg*m^2}}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {TURN: 30 deg, a_x: 0.05 mm, TURN_dot: 2 rad/s}
"""
CLEARANCE = "axis: N.z, clearance: {value: c, restitution: 0.4, friction: {static: 0.2, kinetic: 0.15}, radius: r}"
WORD = PIN.replace("JOINT", f"{{revolute: {{child: A, at: O, {CLEARANCE}}}}}").replace("TURN", "a")
SHAPES = (
    PIN.replace("JOINT", "{planar: {child: A, at: O, axis: N.z}}").replace("TURN", "a_turn")
    + """
shapes:
  hole: {circle: {center: O, radius: r + c/2}, side: inside}
  pin: {circle: {frame: A, center: A_origin, radius: r}}
contacts:
  a_clearance: {between: [pin, hole], restitution: 0.4, friction: {static: 0.2, kinetic: 0.15}}
"""
)


def run(text, until, **settings):
    return fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), until=until, **settings)


@pytest.mark.parametrize("joint", BY_HAND)
def test_backlash_is_the_contacts_written_by_hand_bit_for_bit(joint):
    word, by_hand = (run(text, 0.6) for text in BY_HAND[joint])
    assert len(word.transitions) > 4
    assert [(x.time, x.cause) for x in word.transitions] == [(x.time, x.cause) for x in by_hand.transitions]
    np.testing.assert_array_equal(word.q, by_hand.q)
    np.testing.assert_array_equal(word.u, by_hand.u)


def test_a_gear_pair_with_backlash_stays_within_it_and_uses_both_flanks():
    rattling = run(BY_HAND["gear"][0], 0.6)
    ahead = rattling["second"] - 0.4 * rattling["first"]
    bound = np.radians(0.5)
    assert np.abs(ahead).max() <= bound + 1e-9  # the tolerance of gaps
    assert ahead.max() > 0.999 * bound
    assert ahead.min() < -0.999 * bound


def test_a_clearance_is_a_pin_within_a_hole():
    """The gap by shapes is c - r, that of the word (c² - r²)/2c: the zeros are the same, the rounding is not.

    Both at 1e-11; the impacts amplify what is left, to below 1e-6 of the clearance of 0.4 mm.
    """
    word, shapes = (run(text, 0.5, rtol=1e-11, atol=1e-13) for text in (WORD, SHAPES))
    assert len(word.transitions) > 10
    assert [x.cause for x in word.transitions] == [x.cause for x in shapes.transitions]
    np.testing.assert_allclose(
        [x.time for x in word.transitions], [x.time for x in shapes.transitions], rtol=0, atol=1e-8
    )
    for mine, theirs in (("a_x", "a_x"), ("a_y", "a_y"), ("a", "a_turn")):
        assert word[mine][-1] == pytest.approx(shapes[theirs][-1], abs=4e-10 if mine != "a" else 1e-6)
    assert np.hypot(word["a_x"], word["a_y"]).max() <= 0.2e-3 + 1e-9


ABSOLUTE = {
    "backlash": (BY_HAND["revolute"][0], "", {"a": "A_turn"}),
    "gear": (
        BY_HAND["gear"][0],
        "initial: {P_turn_dot: w, A_turn_dot: w, B_turn_dot: w, guess: {B_x: 70 mm}}",
        {"plate": "P_turn", "second": "B_turn - P_turn"},
    ),
    "pin": (WORD, "initial: {A_turn: 30 deg, A_x: 0.05 mm, A_turn_dot: 2 rad/s}", {"a": "A_turn", "a_x": "A_x"}),
}


@pytest.mark.parametrize("joint", ABSOLUTE)
def test_absolute_coordinates_give_the_same_motion(joint):
    """Another derivation: children move freely, held by rows and contacts.  The error of both runs is below 1e-8."""
    text, start, same = ABSOLUTE[joint]
    outputs = "outputs: {" + ", ".join(f"own_{name}: {there}" for name, there in same.items()) + "}\n"
    free = run(
        f"{text.split('initial:')[0]}joint_coordinates: absolute\n{outputs}{start}\n", 0.3, rtol=1e-10, atol=1e-12
    )
    own = run(text, 0.3, rtol=1e-10, atol=1e-12)
    assert len(own.transitions) > 1
    assert [x.cause for x in free.transitions] == [x.cause for x in own.transitions]
    for name in same:
        assert free.outputs[f"own_{name}"][-1] == pytest.approx(own[name][-1], abs=1e-7)


def test_a_loop_closed_by_a_pin_with_clearance_keeps_energy_and_within_its_hole():
    """Without losses at the pin the energy is that of the start; the loop is open by the clearance at most."""
    text = """
fsm_dyn: 1
parameters: {c: 0.2 mm, l: 0.1 m, w: 10 rad/s}
joints:
  crank: {revolute: {child: A, at: O, axis: N.z}}
  rod: {revolute: {parent: A, child: B, at: E, axis: A.z}}
  slide: {prismatic: {child: S, at: O, axis: N.x}}
  pin: {revolute: {parent: S, child: B, at: [S_origin, F], axis: S.z, clearance: {value: c, restitution: 1}}}
points:
  E: {from: O, at: l*A.x}
  F: {from: E, at: 3*l*B.x}
bodies:
  wheel: {frame: A, center: O, mass: 1 kg, inertia: {zz: 1e-2 kg*m^2}}
  bar: {frame: B, center: F, mass: 0.2 kg, inertia: {zz: 1e-4 kg*m^2}}
  sled: {frame: S, center: S_origin, mass: 0.5 kg, inertia: {zz: 1e-4 kg*m^2}}
initial: {crank: 90 deg, rod: -109.47122063449069 deg, slide: sqrt(8)*l, crank_dot: w, rod_dot: -w, slide_dot: -w*l}
outputs: {off: "norm(pos(F, S_origin))"}
"""
    found = run(text, 0.4)
    assert found.outcome.name == "done"
    assert len(found.transitions) > 2
    assert 0.099e-3 < found.outputs["off"].max() <= 0.1e-3 + 1e-9
    kinetic = found.energy.kinetic
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-6)


def test_a_chain_with_backlash_does_not_penetrate_and_keeps_the_energy_balance():
    """As at length in tests/benchmarks/test_backlash_chain.py."""
    shaken = fsm_dyn.simulate(fsm_dyn.compile(chain_with_backlash(5)), until=0.2)
    assert len(shaken.transitions) > 50
    angles = np.array([shaken[f"q{i}"] for i in range(1, 6)])
    assert np.abs(angles).max() <= np.radians(1) + 1e-9  # the tolerance of gaps
    assert shaken.energy.relative_residual < 1e-8  # the relative error of a step
