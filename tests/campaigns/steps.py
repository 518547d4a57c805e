"""A brick that slides against a step of half a nanometre to a micrometre: what is as high as the tolerances are.

The table is two polygons, or two segments, and the scene may be mirrored.  Energy is never gained, nothing enters
anything else, by separating axes, and the run ends as asked.
"""

from functools import cache

import numpy as np

import fsm_dyn
from tests.physics.flush import Tiles, brick, losses, overlap, placed, rectangle, scene

BEGIN = 2_000_000  # seeds that nothing else uses
SPAN = 0.8  # s
LONG, TALL = 0.25, 0.1  # m
DEEPEST = 3e-9  # m: three times the tolerance of a gap
MOST = 40  # transitions of a run without bounces in which no energy is lost: a brick that rocks loses some in each
SCENES = [(kind, way) for kind in ("polygon", "segment") for way in (1, -1)]


@cache
def steps(kind, way):
    """The scene, compiled; ``way`` is the sign of the speed towards the step."""
    pieces = [(-2, 0, 0.0), (0, 2, "h")] if way > 0 else [(-2, 0, "h"), (0, 2, 0.0)]
    box = brick(LONG, TALL, -0.3 * way, speed=(2 * way, 0, 0), mass=2.0)
    given = {"parameters": {"h": 0.0, "mu": 0.1, "e": 0.0}, "friction": "mu", "restitution": "e"}
    return fsm_dyn.compile(scene({"box": box}, Tiles(pieces, kind).shapes, **given))


def start(seed):
    """Height of the step, friction, restitution and speed."""
    rng = np.random.default_rng(BEGIN + seed)
    friction = float(rng.choice([0.0, rng.uniform(0.0, 0.25), rng.uniform(0.0, 0.9)]))
    restitution = float(rng.choice([0.0, 0.0, rng.uniform(0.0, 0.6)]))
    parameters = {"h": float(10 ** rng.uniform(-9.2, -6.0)), "mu": friction, "e": restitution}
    return parameters, float(rng.uniform(0.8, 4.0))


def complaints(run, way, height, bounces):
    """What is wrong with a run."""
    table = [[(-2, -1), (0, -1), (0, 0), (-2, 0)], [(0, -1), (2, -1), (2, height), (0, height)]]
    if way < 0:
        table = [[(-x, y) for x, y in reversed(piece)] for piece in table]
    box = placed(rectangle(LONG, TALL), run.sample(np.linspace(0.0, run.t[-1], 801)).q)
    depth = max(overlap(box, np.array([piece], float)).max() for piece in table)
    if depth > DEEPEST:
        yield f"the brick overlaps the table by {depth:.3g} m"
    lost = losses(run)
    if lost.min(initial=0.0) < -1e-12:
        yield "an impact gains energy"
    if run.outcome.failed:
        yield f"ends with '{run.outcome.name}' at {run.t[-1]:.12g} s"
    if not bounces and np.count_nonzero(lost <= 0.0) > MOST:
        yield f"{len(run.transitions)} transitions"


def case(seed):
    """A random start."""
    kind, way = SCENES[seed % len(SCENES)]
    parameters, speed = start(seed)
    given = {"parameters": parameters, "initial": {"x_box_dot": way * speed}}
    run = fsm_dyn.simulate(steps(kind, way), until=SPAN, on_failure="return", **given)
    found = list(complaints(run, way, parameters["h"], parameters["e"] > 0.0))
    kept = {"model": f"{kind}{' mirrored' if way < 0 else ''}", "ok": not found, "transitions": len(run.transitions)}
    return kept | {"reason": found[0] if found else run.outcome.name} | ({"start": str(given)} if found else {})
