"""More to throw at the resolution: shipped models under other laws, and mechanisms that wedge and stack."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import yaml

from tests.physics import starts
from tests.physics.campaign import Start, options
from tests.physics.starts import STARTS, either, friction, numbers, restitution

SHIPPED = Path(__file__).parents[2] / "yaml_models"

RADIUS = 0.1

GROOVE = """
fsm_dyn: 1
name: groove
parameters: {m: 0.5 kg, r: 0.1 m, g: 9.81 m/s^2, left: 45 deg, right: 45 deg, mu: 0.3, e: 0.5}
coordinates: {x: m, y: m, q: rad}
frames:
  L: {parent: N, rotate: {z: -left}}
  R: {parent: N, rotate: {z: right}}
  B: {parent: N, rotate: {z: q}}
points:
  C: {from: O, at: x*N.x + y*N.y}
  PL: {from: C, at: -r*L.y}
  PR: {from: C, at: -r*R.y}
bodies:
  disk: {frame: B, center: C, mass: m, inertia: {zz: 0.5*m*r**2}}
speeds: {vx: rate(x), vy: rate(y), w: rate(q)}
contacts:
  on_left: {gap: "dot(pos(C), L.y) - r", slip: "dot(vel(PL, B), L.x)", friction: mu, restitution: e}
  on_right: {gap: "dot(pos(C), R.y) - r", slip: "dot(vel(PR, B), R.x)", friction: mu, restitution: e}
loads:
  - {gravity: -g*N.y}
initial: {x: 0 m, y: 1 m}
"""

BOX_IN_CORNER = """
fsm_dyn: 1
name: box_in_corner
parameters: {m: 1 kg, a: 0.2 m, b: 0.3 m, g: 9.81 m/s^2, mu: 0.3, e: 0.4}
coordinates: {x: m, y: m, q: rad}
frames:
  B: {parent: N, rotate: {z: q}}
points:
  C: {from: O, at: x*N.x + y*N.y}
bodies:
  box: {frame: B, center: C, mass: m, inertia: {zz: m*(a**2 + b**2)/12}}
speeds: {vx: rate(x), vy: rate(y), w: rate(q)}
shapes:
  outline: {polygon: {frame: B, points: [[-a/2, -b/2], [a/2, -b/2], [a/2, b/2], [-a/2, b/2]]}}
  ground: {line: {along: N.x}, side: N.y}
  wall: {line: {along: N.y}, side: N.x}
contacts:
  on_ground: {between: [outline, ground], friction: mu, restitution: e}
  on_wall: {between: [outline, wall], friction: mu, restitution: e}
loads:
  - {gravity: -g*N.y}
initial: {x: 1 m, y: 1 m}
"""

STACK = """
fsm_dyn: 1
name: stack
parameters: {m1: 1 kg, m2: 1 kg, m3: 1 kg, g: 9.81 m/s^2, e: 0.5}
coordinates: {y1: m, y2: m, y3: m}
points:
  A: {from: O, at: y1*N.y}
  B: {from: O, at: y2*N.y}
  C: {from: O, at: y3*N.y}
bodies:
  lowest: {center: A, mass: m1}
  middle: {center: B, mass: m2}
  top: {center: C, mass: m3}
contacts:
  ground: {gap: y1, restitution: e}
  below: {gap: y2 - y1, restitution: e}
  above: {gap: y3 - y2, restitution: e}
loads:
  - {gravity: -g*N.y}
initial: {y1: 0.1 m, y2: 0.2 m, y3: 0.3 m}
"""


def shipped(name, law=None, impacts=None):
    """A shipped model, with another law of restitution in all its contacts, or of impacts."""
    tree = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"))
    if law:
        for contact in tree["contacts"].values():
            contact["restitution_law"] = law
    return tree | ({"impacts": impacts} if impacts else {})


def tall_box(rng):
    """A box that rather rocks than slides, a little askew."""
    given, until = starts.box_on_table(rng)
    b, q = float(rng.uniform(0.4, 1.2)), float(rng.uniform(-0.3, 0.3))
    y = 0.5 * (0.2 * abs(np.sin(q)) + b * abs(np.cos(q))) + either(rng, 0.0, rng.uniform(0.0, 0.1))
    given["initial"] |= {"q": q, "y": y}
    given["parameters"] |= {"b": b, "reach": 0.0}
    return given, until


def groove(rng):
    """A disk above two inclines, at times on one or both."""
    left, right = (float(either(rng, np.pi / 4, rng.uniform(0.2, 1.3))) for _ in range(2))
    gaps = [RADIUS + either(rng, 0.0, rng.uniform(0.0, 0.2)) for _ in range(2)]
    normals = [[np.sin(left), np.cos(left)], [-np.sin(right), np.cos(right)]]
    x, y = np.linalg.solve(normals, gaps)
    parameters = {"left": left, "right": right, "mu": friction(rng, 1.2), "e": restitution(rng)}
    initial = {"x": float(x), "y": float(y)} | numbers(rng, vx=1.0, vy=1.0, w=10.0)
    return {"initial": initial, "parameters": parameters}, 0.8


def box_in_corner(rng):
    """A box near, or on, floor and wall.  Friction is low enough that it cannot jam between them."""
    q, a, b = starts.angle(rng), 0.2, 0.3
    x = 0.5 * (a * abs(np.cos(q)) + b * abs(np.sin(q))) + either(rng, 0.0, rng.uniform(0.0, 0.2))
    y = 0.5 * (a * abs(np.sin(q)) + b * abs(np.cos(q))) + either(rng, 0.0, rng.uniform(0.0, 0.2))
    return {"initial": {"q": q, "x": x, "y": y} | numbers(rng, vx=1.0, vy=1.0, w=6.0),
            "parameters": {"mu": friction(rng, 0.4), "e": restitution(rng)}}, 0.8  # fmt: skip


def stack(rng):
    """Three bodies over each other, of masses that may differ much, at times touching."""
    high = np.cumsum([float(either(rng, 0.0, rng.uniform(0.0, 0.3))) for _ in range(3)])
    masses = {f"m{i}": float(either(rng, 1.0, 10.0 ** rng.uniform(-1.0, 1.0))) for i in (1, 2, 3)}
    initial = {f"y{i + 1}": float(value) for i, value in enumerate(high)}
    return {"initial": initial | numbers(rng, y1_dot=1.0, y2_dot=1.0, y3_dot=1.0),
            "parameters": masses | {"e": min(restitution(rng), 0.95)}}, 1.0  # fmt: skip


VARIANTS = {
    "box_on_table by Poisson": (shipped("box_on_table", law="poisson"), starts.box_on_table),
    "box_on_table in sequence": (shipped("box_on_table", impacts="sequential"), starts.box_on_table),
    "ball_in_corner by Poisson": (shipped("ball_in_corner", law="poisson"), starts.ball_in_corner),
    "ball_in_corner in sequence": (shipped("ball_in_corner", impacts="sequential"), starts.ball_in_corner),
    "tall box": (shipped("box_on_table"), tall_box),
    "groove": (yaml.safe_load(GROOVE), groove),
    "box in corner": (yaml.safe_load(BOX_IN_CORNER), box_in_corner),
    "stack": (yaml.safe_load(STACK), stack),
    "stack in sequence": (yaml.safe_load(STACK) | {"impacts": "sequential"}, stack),
}


def start(name, seed, strategy="compiled"):
    """The start with this number, of a model or of a variant, the same on every machine."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    make = STARTS[name] if name in STARTS else VARIANTS[name][1]
    given, until = make(rng)
    return Start(name, seed, until, options=options(name, rng) | {"strategy": strategy}, **given)
