"""Random starts of bodies thrown at a step that stands in the open, judged by plain geometry.

The contacts are those of faces that end and of corners; whether two outlines overlap is worked out from the positions
alone, without any of the gaps that the run went by.  A convex outline is entered by as much as a corner of one lies
within all faces of the other (edges crossing without a corner inside would have to pass through such a state).
"""

import numpy as np
import pytest
import yaml

from tests.physics.campaign import ADAPTIVE, GAP, Checked, Start
from tests.physics.starts import angle, either, friction, numbers, restitution

STEP = np.array([[-0.3, -0.5], [0.3, -0.5], [0.3, 0.0], [0.1, 0.1], [-0.3, 0.0]])
BOX = np.array([[-0.1, -0.06], [0.1, -0.06], [0.1, 0.06], [-0.1, 0.06]])
RADIUS = 0.1
GROUND = -0.2
RUNS = 15

MODEL = """
fsm_dyn: 1
name: thrown
parameters: {m: 1 kg, g: 9.81 m/s^2, mu: 0.3, e: 0.4}
coordinates: {x: m, y: m, q: rad}
frames:
  B: {parent: N, rotate: {z: q}}
points:
  C: {from: O, at: x*N.x + y*N.y}
bodies:
  thrown: {frame: B, center: C, mass: m, inertia: {zz: 0.005 kg*m^2}}
speeds: {vx: rate(x), vy: rate(y), w: rate(q)}
shapes:
  step: {polygon: {frame: N, from: O, points: POINTS}}
  ground: {segment: {points: [[-3 m, -0.2 m], [3 m, -0.2 m]]}, side: N.y}
  outline: OUTLINE
contacts:
  hits: {between: [outline, step], friction: mu, restitution: e}
  grounded: {between: [outline, ground], friction: mu, restitution: e}
loads:
  - {gravity: -g*N.y}
initial: {x: 0 m, y: 1 m}
"""
OUTLINES = {
    "disk": {"circle": {"frame": "B", "center": "C", "radius": f"{RADIUS} m"}},
    "box": {"polygon": {"frame": "B", "points": [[f"{x} m", f"{y} m"] for x, y in BOX]}},
}


def within(points, corners):
    """How deep points lie within a convex polygon, against the clock; negative outside its faces."""
    ahead = np.roll(corners, -1, axis=-2)
    edge, arm = ahead - corners, points[..., None, :] - corners
    depth = (edge[..., 0] * arm[..., 1] - edge[..., 1] * arm[..., 0]) / np.linalg.norm(edge, axis=-1)
    return depth.min(axis=-1)


def depth_of_disk(q):
    """How deep the disk is in the step or the ground at its deepest."""
    center = q[:, :2]
    edge = np.roll(STEP, -1, axis=0) - STEP
    arm = center[:, None] - STEP
    along = np.clip((arm * edge).sum(axis=-1) / (edge**2).sum(axis=-1), 0.0, 1.0)
    distance = np.linalg.norm(arm - along[..., None] * edge, axis=-1).min(axis=-1)
    distance = np.where(within(center, STEP) > 0.0, -distance, distance)
    return RADIUS - np.minimum(distance, center[:, 1] - GROUND)


def depth_of_box(q):
    """How deep a corner of the box is in the step or the ground, or one of the step in the box."""
    turn = np.array([[np.cos(q[:, 2]), -np.sin(q[:, 2])], [np.sin(q[:, 2]), np.cos(q[:, 2])]])
    corners = np.einsum("ijt,kj->tki", turn, BOX) + q[:, None, :2]
    theirs = np.stack([within(np.broadcast_to(corner, (len(q), 2)), corners) for corner in STEP], axis=-1)
    ours = np.maximum(within(corners, STEP), GROUND - corners[..., 1])
    return np.maximum(ours.max(axis=-1), theirs.max(axis=-1))


DEPTH = {"disk": depth_of_disk, "box": depth_of_box}


def start(seed):
    rng = np.random.default_rng([seed, 77])
    initial = {"x": float(either(rng, 0.1, 0.3, -0.3, rng.uniform(-0.5, 0.5))), "y": float(rng.uniform(0.25, 0.6))}
    initial |= {"q": angle(rng)} | numbers(rng, vx=0.7, vy=1.0, w=10.0)
    parameters = {"mu": friction(rng), "e": restitution(rng)}
    return Start("thrown", seed, 1.2, initial, parameters, {}, ADAPTIVE)


@pytest.mark.parametrize("outline", OUTLINES)
def test_nothing_enters_a_step(outline):
    model = yaml.safe_load(MODEL)
    model["shapes"]["step"]["polygon"]["points"] = [[f"{x} m", f"{y} m"] for x, y in STEP]
    model["shapes"]["outline"] = OUTLINES[outline]
    checked = Checked(model)
    met = 0
    for seed in range(RUNS):
        run = checked.run(start(seed))
        assert not run.outcome.failed, start(seed)
        assert not [*checked.forces(run), *checked.energy(run)], start(seed)
        depth = DEPTH[outline](run.sample(np.linspace(0.0, run.t[-1], 4000)).q)
        assert depth.max() <= GAP, start(seed)
        met += depth.max() > -1e-6
    assert met > RUNS / 2  # that it would have been seen
