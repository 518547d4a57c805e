"""Discs and faces that meet curves with hollows: random starts, judged by the distance to the curve itself.

``python -m tests.physics.hollow_curves COUNT [SEED]`` runs so many starts of each model.
"""

import sys

import numpy as np
from scipy.spatial import ConvexHull, cKDTree

import fsm_dyn

XI = np.linspace(0.0, 2 * np.pi, 4001)
OUTLINES = {
    "peanut": ("0.1 m + 0.05 m*cos(2*phi)", lambda a: 0.1 + 0.05 * np.cos(2 * a)),
    "clover": ("0.1 m + 0.03 m*cos(3*phi)", lambda a: 0.1 + 0.03 * np.cos(3 * a)),
    "bean": ("0.1 m - 0.06 m*sin(phi) + 0.02 m*cos(2*phi)", lambda a: 0.1 - 0.06 * np.sin(a) + 0.02 * np.cos(2 * a)),
}
DISC = """
fsm_dyn: 1
name: disc_on_{name}
parameters: {{d: 0.05 N*s/m}}
coordinates: {{x: m, y: m}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{center: P, mass: 0.1 kg}}}}
shapes:
  disc: {{circle: {{center: P, radius: {radius} m}}}}
  outline: {{curve: {{from: O, r: "{formula}"}}}}
contacts: {{touch: {{between: [disc, outline], restitution: 0.3}}}}
loads:
  - {{gravity: -9.81 m/s^2*N.y}}
  - {{damper: {{coordinate: x, damping: d}}}}
  - {{damper: {{coordinate: y, damping: d}}}}
"""
CAM = """
fsm_dyn: 1
name: {name}_on_floor
parameters: {{m: 0.1 kg}}
coordinates: {{x: m, y: m, q: rad}}
frames: {{B: {{parent: N, rotate: {{z: q}}}}}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{cam: {{frame: B, center: P, mass: m, inertia: {{zz: m*(8 cm)**2}}}}}}
shapes:
  outline: {{curve: {{frame: B, from: P, r: "{formula}"}}}}
  ground: {{line: {{along: N.x}}, side: N.y}}
contacts: {{touch: {{between: [outline, ground], friction: 0.3, restitution: 0.2}}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
"""


def outline(name):
    """The points (n, 2) of an outline in its own frame (m)."""
    r = OUTLINES[name][1](XI)
    return np.stack([r * np.cos(XI), r * np.sin(XI)], axis=1)


def distance_to_disc(name, radius, q):
    """The least distance of discs at ``q`` (n, 2) from the outline (m): of chords, which are within 1e-7 m of it."""
    places = outline(name)[:-1]
    nearest = cKDTree(places).query(q)[1]
    found = []
    for step in (-1, 1):  # the chords that meet in the nearest of their ends
        first, along = places[nearest], places[(nearest + step) % len(places)] - places[nearest]
        share = np.clip(((q - first) * along).sum(axis=1) / (along**2).sum(axis=1), 0.0, 1.0)
        found.append(np.linalg.norm(q - first - share[:, None] * along, axis=1))
    return np.minimum(*found) - radius


def height_of_cam(name, q):
    """The least height of outlines at ``q`` (n, 3) above the floor (m)."""
    places = outline(name)
    x, y = places[ConvexHull(places[:-1]).vertices].T
    return q[:, 1] + (np.sin(q[:, 2:3]) * x + np.cos(q[:, 2:3]) * y).min(axis=1)


def disc_starts(random, count):
    """Starts above the outline, from the side and from below."""
    for _ in range(count):
        angle, speed = random.uniform(0.1, np.pi - 0.1), random.normal(0.0, 1.0, 2)
        yield {"x": 0.3 * np.cos(angle), "y": 0.3 * np.sin(angle), "x_dot": speed[0], "y_dot": speed[1]}


def cam_starts(random, count):
    """Starts above the floor, turned and turning."""
    for _ in range(count):
        yield {
            "y": random.uniform(0.2, 0.4), "q": random.uniform(-4, 4),
            "x_dot": random.normal(), "q_dot": random.normal(0.0, 8.0),
        }  # fmt: skip


def judged(run, distance):
    """What is wrong with a run, by the distance at its rows and between them; nothing if it is sound."""
    if run.outcome.failed:
        return f"{run.outcome.name} at {run.t[-1]:.6f}"
    found = distance(run.q)
    between = distance(run.sample(np.linspace(0.0, run.t[-1], 200)).q)
    least = min(found.min(), between.min())
    return "" if least > -2e-6 else f"{least:.2e} m deep"


def models():
    """Name, compiled model, starts and distance of every model."""
    for name, (formula, _) in OUTLINES.items():
        for radius in (0.05, 0.004):
            text = DISC.format(name=name, formula=formula, radius=radius)
            yield f"{name} {radius}", text, disc_starts, lambda q, n=name, r=radius: distance_to_disc(n, r, q[:, :2])
        yield (
            f"{name} on floor",
            CAM.format(name=name, formula=formula),
            cam_starts,
            lambda q, n=name: height_of_cam(n, q),
        )


def campaign(count, seed, folder, titles=None):
    """The starts of all models, or some by their titles, that went wrong: name, start, what."""
    bad = []
    for title, text, starts, distance in models():
        if titles is not None and title not in titles:
            continue
        path = folder / "model.yaml"
        path.write_text(text)
        graph = fsm_dyn.compile(path)
        for start in starts(np.random.default_rng(seed), count):
            run = fsm_dyn.simulate(
                graph, until=0.8, initial=start, on_failure="return", max_steps=20000, max_step=0.004
            )
            if fault := judged(run, distance):
                bad.append((title, start, fault))
    return bad


if __name__ == "__main__":
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for entry in (found := campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, Path(folder))):
            print(*entry)  # noqa: T201
        print(len(found), "bad")  # noqa: T201
