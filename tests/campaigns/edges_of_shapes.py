"""Random starts of shapes where their geometry degenerates: thin disks, hollow curves, cords, concentric circles.

Judged by separate geometry, without the gaps of the package, by energy, and for the cord by another integration.
"""

from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

import fsm_dyn
from fsm_dyn.language.loader import load
from tests.physics.edge_models import COIN, CORD, RING
from tests.physics.hollow_curves import judged, models

BEGIN = 1_000_000  # seeds that the tests do not use
HOLLOW = tuple(name for name, *_ in models())
NAMES = ("coin", "cord", "ring", *HOLLOW)
UNTIL = 0.3  # s
DEEPEST = 1e-7  # m, between rows too
GAINED = 1e-6  # of energy, unexplained at the default tolerances, as a share of what is exchanged


@cache
def compiled(name):
    """The graph of a model, its starts and its distance, once a process."""
    if name in HOLLOW:
        _, text, starts, distance = next(item for item in models() if item[0] == name)
        return fsm_dyn.compile(load(text=text)), starts, distance
    text, starts, distance = {
        "coin": (COIN, coins, rim_height), "cord": (CORD, cords, None), "ring": (RING, pins, play),
    }[name]  # fmt: skip
    return fsm_dyn.compile(load(text=text)), starts, distance


def coins(random, count):
    """A coin that falls askew, spinning; some nearly flat, some lying flat and sliding."""
    for k in range(count):
        tilt = (
            (random.uniform(0.02, 1.4), random.uniform(0.0, 1e-3), 0.0)[k % 3]
            if count > 1
            else random.choice([random.uniform(0.02, 1.4), random.uniform(0.0, 1e-3), 0.0])
        )
        height = 0.012 * np.sin(tilt) + random.choice([0.0, random.uniform(0.0, 0.02)])
        yield {
            "z": float(height), "p0": float(np.cos(tilt / 2)), "p1": float(np.sin(tilt / 2)),
            "vx": float(random.normal(0.0, 0.3)), "w3": float(random.normal(0.0, 20.0)),
        }  # fmt: skip


def cords(random, count):
    """At the anchor, or at the length of the cord, or between; the speed at random."""
    for _ in range(count):
        place = random.choice([0.0, 10.0, random.uniform(0.0, 10.0)])
        yield {"y": float(-place), "x_dot": float(random.normal(0.0, 5.0)), "y_dot": float(random.normal(0.0, 5.0))}


def pins(random, count):
    """In the middle of the hole, or anywhere in it; the speed at random."""
    for _ in range(count):
        r, angle = random.choice([0.0, random.uniform(0.0, 1e-3)]), random.uniform(0.0, 2 * np.pi)
        yield {
            "x": float(r * np.cos(angle)), "y": float(r * np.sin(angle)),
            "x_dot": float(random.normal(0.0, 0.2)), "y_dot": float(random.normal(0.0, 0.2)),
        }  # fmt: skip


def rim_height(q):
    """Height of the lowest point of a rim of 12 mm at ``q`` (n, 7): place, Euler parameters (m)."""
    p = q[:, 3:] / np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    rise = 1.0 - 2.0 * (p[:, 1] ** 2 + p[:, 2] ** 2)
    return q[:, 2] - 0.012 * np.sqrt(np.maximum(1.0 - rise**2, 0.0))


def play(q):
    """Distance of a pin from its hole, 1 mm wider in radius (m)."""
    return 1e-3 - np.linalg.norm(q, axis=1)


def swing(start):
    """The place of the jumper at the end, by another integration."""

    def rates(_, s):
        length = np.hypot(s[0], s[1])
        pull = 100.0 / 70.0 * max(length - 10.0, 0.0) / max(length, 1e-9)
        return [s[2], s[3], -pull * s[0], -9.81 - pull * s[1]]

    begin = [0.0, start["y"], start["x_dot"], start["y_dot"]]
    return solve_ivp(rates, (0.0, UNTIL), begin, rtol=1e-11, atol=1e-11, max_step=0.01).y[:2, -1]


def case(seed):
    """One start of one of the models."""
    name = NAMES[seed % len(NAMES)]
    random = np.random.default_rng([BEGIN, seed])
    graph, starts, distance = compiled(name)
    (start,) = starts(random, 1)
    until = 1.0 if name in HOLLOW else UNTIL
    run = fsm_dyn.simulate(graph, until, initial=start, on_failure="return", max_steps=500_000)
    reason = ""
    if name in HOLLOW:
        reason = judged(run, distance)
    elif run.outcome.failed:
        reason = f"{run.outcome.name} at {run.t[-1]:.9g}"
    elif distance is None:
        error = float(np.abs(run.q[-1] - swing(start)).max())
        reason = "" if error < 1e-7 else f"{error:.2e} m beside another integration"
    else:
        least = min(distance(run.q).min(), distance(run.sample(np.linspace(0.0, run.t[-1], 400)).q).min())
        reason = "" if least > -DEEPEST else f"{-least:.2e} m deep"
    energy = run.energy
    if not reason and not run.outcome.failed and energy.relative_residual > GAINED:
        reason = f"energy is off by {energy.relative_residual:.1e}"
    more = {} if not reason else {"start": f"{name}: {start}"}
    return {"model": name, "ok": not reason, "reason": reason or run.outcome.name, **more}
