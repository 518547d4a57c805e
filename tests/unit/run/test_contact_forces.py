"""Contact forces act where statics says, with its magnitude and direction."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load
from fsm_dyn.plot.scene_projection import LONGEST, contact_forces, project, with_force_arrows

G = 9.81

INCLINE = """
fsm_dyn: 1
name: incline
coordinates: {x: m, y: m}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {block: {center: P, mass: 3 kg}}
shapes: {ramp: {line: {along: cos(20 deg)*N.x + sin(20 deg)*N.y}, side: N.y}}
contacts: {rest: {point: P, on: ramp, friction: 0.5}}
loads: [{gravity: "-9.81 m/s^2*N.y"}]
initial: {x: 0.2 m*cos(20 deg), y: 0.2 m*sin(20 deg)}
"""

# A lever on a rail carries the round end of another's face; each turns about a pin.
LEVERS = """
fsm_dyn: 1
name: levers
coordinates: {a: rad, b: rad}
frames: {A: {parent: N, rotate: {z: a}}, B: {parent: N, rotate: {z: b}}}
points:
  Ac: {from: O, at: 0.3 m*A.x}
  At: {from: O, at: 0.4 m*A.x}
  As: {from: O, at: 0.6 m*A.x}
  Bo: {from: O, at: 1 m*N.x + 0.02 m*N.y}
  Bc: {from: Bo, at: -0.4 m*B.x}
bodies:
  lower: {frame: A, center: Ac, mass: 2 kg}
  upper: {frame: B, center: Bc, mass: 1 kg}
shapes:
  roll: {circle: {frame: A, center: At, radius: 0.02 m}}
  face: {line: {frame: B, from: Bo, along: B.x}, side: -B.y}
  rail: {line: {along: N.x}, side: N.y}
contacts:
  carry: {between: [roll, face]}
  rest: {point: As, on: rail}
loads: [{gravity: "-9.81 m/s^2*N.y"}]
"""

# A lever about the origin whose centre is at 0.3 m, and which touches something at (0.4 m, -0.02 m).
SUPPORTED = """
fsm_dyn: 1
name: supported
coordinates: {{a: rad}}
frames: {{A: {{parent: N, rotate: {{z: a}}}}}}
points:
  Ac: {{from: O, at: 0.3 m*A.x}}
  At: {{from: O, at: 0.4 m*A.x}}
  Low: {{from: O, at: 0.4 m*N.x - 0.02 m*N.y}}
  Lower: {{from: O, at: 0.4 m*N.x - 0.05 m*N.y}}
  Higher: {{from: O, at: 0.4 m*N.x + 0.05 m*N.y}}
bodies: {{lever: {{frame: A, center: Ac, mass: 2 kg}}}}
shapes:
  moving: {moving}
  fixed: {fixed}
contacts: {{rest: {{between: [{order}]}}}}
loads: [{{gravity: "-9.81 m/s^2*N.y"}}]
"""
ROLL = "{circle: {frame: A, center: At, radius: 0.02 m}}"
WEDGE = "{polygon: {frame: A, from: At, points: [[0 m, -0.02 m], [0.01 m, 0 m], [-0.01 m, 0 m]]}}"
RAIL = "{line: {from: Low, along: N.x}, side: N.y}"
PEG = "{circle: {center: Lower, radius: 0.03 m}}"
HOLLOW = "{circle: {center: Higher, radius: 0.07 m}, side: inside}"
SKID = "{segment: {frame: A, from: At, points: [[-0.1 m, -0.02 m], [0.1 m, -0.02 m]]}, side: -A.y}"


def at_end(model, **options):
    """Contact points and forces at the end of a run, of those contacts that carry one."""
    run = fsm_dyn.simulate(fsm_dyn.compile(model), **options)
    view = project(run, run.model.scene, run.t[-1:])
    places, forces = (found[0] for found in contact_forces(run, view))
    carrying = forces.any(axis=1)
    return places[carrying], forces[carrying]


@pytest.mark.parametrize(
    ("model", "options", "places", "forces"),
    [
        ("bouncing_ball", {"until": 4.5}, [[0.0, 0.0]], [[0.0, 0.1 * G]]),
        ("latch", {"until": 0.01}, [[0.05, 0.0]], [[0.0, 400.0 * 0.01]]),  # preload of the bolt's spring
        (INCLINE, {"until": 0.1}, [0.2 * np.array([np.cos(np.pi / 9), np.sin(np.pi / 9)])], [[0.0, 3.0 * G]]),
        # about the pins: 1 kg * 0.4 m = F * 0.6 m, and 2 kg * 0.3 m + F * 0.4 m = R * 0.6 m
        (LEVERS, {"until": 0.1}, [[0.4, 0.02], [0.6, 0.0]], [[0.0, -2.0 * G / 3.0], [0.0, 13.0 * G / 9.0]]),
    ],
    ids=["bouncing_ball", "latch", "incline", "levers"],
)
def test_forces_at_rest_balance_the_weights(model, options, places, forces):
    found = at_end(load("statics", text=model) if "\n" in model else model, **options)
    np.testing.assert_allclose(found[0], places, atol=1e-6)
    np.testing.assert_allclose(found[1], forces, atol=1e-6)


@pytest.mark.parametrize("order", ["moving, fixed", "fixed, moving"])
@pytest.mark.parametrize(
    ("moving", "fixed"), [(ROLL, RAIL), (ROLL, PEG), (ROLL, HOLLOW), (WEDGE, RAIL), (WEDGE, PEG), (SKID, PEG)]
)
def test_a_lever_is_supported_where_it_touches(moving, fixed, order):
    model = load("supported", text=SUPPORTED.format(moving=moving, fixed=fixed, order=order))
    places, forces = at_end(model, until=0.05)
    np.testing.assert_allclose(places, [[0.4, -0.02]], atol=1e-6)
    np.testing.assert_allclose(forces, [[0.0, 2.0 * G * 0.3 / 0.4]], atol=1e-6)


def test_arrows_are_proportional_to_the_forces_up_to_the_longest():
    run = fsm_dyn.simulate(fsm_dyn.compile("rolling_disk"), until=4.0)
    plain = project(run, run.model.scene, np.linspace(0.0, 4.0, 81))
    view = with_force_arrows(run, plain)
    places, forces = contact_forces(run, plain)
    low, high = plain.limits()
    longest = LONGEST * (high - low).max()
    drawn = np.isfinite(view.arrows).all(axis=(2, 3))
    np.testing.assert_array_equal(drawn, forces.any(axis=2))
    np.testing.assert_array_equal(view.arrows[drawn][:, 0], places[drawn])
    vectors, sizes = np.diff(view.arrows[drawn], axis=1)[:, 0], np.linalg.norm(forces[drawn], axis=1)
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(vectors / lengths[:, None], forces[drawn] / sizes[:, None], atol=1e-12)
    scale = (lengths / sizes).max()
    np.testing.assert_allclose(lengths, np.minimum(scale * sizes, longest), rtol=1e-12)
    assert 0.9 <= (scale * sizes <= longest * (1.0 + 1e-12)).mean() < 1.0
    inner, outer = view.limits()
    assert (view.arrows[drawn] >= inner).all()
    assert (view.arrows[drawn] <= outer).all()


def test_the_force_of_a_pawl_acts_on_its_tip_and_turns_the_wheel():
    """The gap of the ratchet's flank is one of coordinates: it has a slope of ``tall / pitch``, in m/rad."""
    run = fsm_dyn.simulate(fsm_dyn.compile("ratchet"), until=0.2)
    (place,), (force,) = at_end("ratchet", until=0.2)
    values, state = run.model.values, run.sample([0.2])
    tip = values["r"] + state["b"][0]
    np.testing.assert_allclose(place, [0.0, tip], atol=1e-9)
    assert force[1] > 0.1
    assert tip * force[0] == pytest.approx(-force[1] * values["tall"] / values["pitch"], rel=1e-6)
