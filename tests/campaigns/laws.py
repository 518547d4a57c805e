"""The laws from random starts: of all models with contacts, and of bricks that lie flush.

Energy is never gained, nothing enters anything else, no contact pulls, friction stays within its cone.
"""

import zlib
from functools import cache

import numpy as np

from tests.campaigns import flush
from tests.physics.campaign import ADAPTIVE, Checked, Start, impacts
from tests.physics.more_starts import MORE_STARTS, ramps
from tests.physics.starts import STARTS, either, friction, restitution
from tests.physics.variants import VARIANTS, start

BEGIN = 1_000_000  # seeds that the tests do not use
LOOKS = 2000  # instants of a run at which overlaps are looked for
SPAN = 1.0  # s
DEEPEST = 2.1e-9  # m: the guard of a flush end is watched from two tolerances of a gap (1e-9 m) below zero on
FLUSH = {
    **{f"tower_{n}": (flush.tower, n) for n in range(2, 7)},
    **{f"tiles_{n}": (flush.tiles, n) for n in (2, 3, 5)},
    **{f"dominoes_{n}": (flush.dominoes, n) for n in (2, 3, 5)},
}


@cache
def checked(name):
    """A compiled model with its checks, once a process."""
    if name in FLUSH:
        make, n = FLUSH[name]
        return Checked(make(n))
    return Checked(name if name in STARTS else VARIANTS[name][0])


def result(run, complaints, more):
    """What a ledger keeps of a run."""
    kept = {"ok": not complaints, "reason": complaints[0] if complaints else run.outcome.name}
    return kept | {"transitions": len(run.transitions)} | ({"start": more} if complaints else {})


def contact_models(seed, contacts=12):
    """A random start of one of the models with contacts; of those of up to so many, its modes are possible ones."""
    names = [*STARTS, *VARIANTS]
    name = names[seed % len(names)]
    one = start(name, BEGIN + seed // len(names), "auto")
    model = checked(name)
    run = model.run(one)
    complaints = model.complaints(run, one)
    if len(model.contacts) <= contacts:
        complaints += model.excluded_modes(run, one)
    if run.outcome.failed and not model.cannot_go_on(run):
        complaints.append(f"ends with '{run.outcome.name}' at {run.t[-1]:.12g} s")
    return {"model": name, **result(run, complaints, str(one))}


# models of up to twelve contacts of which the geometry excludes combinations
EXCLUDING = (
    "box_on_table", "cart_on_ramp", "gripper", "magnetic_latch", "piano_action_simple", "push_button", "toggle_switch",
    "twelve_contacts",
)  # fmt: skip


def magnetic_latch(rng):
    """The controller's goal at random, on both sides of the magnet."""
    return {"inputs": {"goal": ramps(rng, 0.12, 1.0)}}, 1.0


@cache
def excluding(name):
    """One of these models with its checks, once a process."""
    return Checked(name)


def excluded_modes(seed):
    """A random start of one of the models with impossible combinations: its modes are possible ones."""
    name = EXCLUDING[seed % len(EXCLUDING)]
    rng = np.random.default_rng([BEGIN + seed // len(EXCLUDING), zlib.crc32(name.encode())])
    given, until = {**STARTS, **MORE_STARTS, "magnetic_latch": magnetic_latch}[name](rng)
    one = Start(name, seed, until, options=ADAPTIVE | {"strategy": "auto"}, **given)
    model = excluding(name)
    run = model.run(one)
    return {"model": name, **result(run, model.excluded_modes(run, one), str(one))}


def flush_geometry(seed):
    """Bricks that lie flush, pushed or knocked."""
    return flush_case(list(FLUSH)[seed % len(FLUSH)], seed)


def flush_case(name, seed):
    """One start of one of these models."""
    make, n = FLUSH[name]
    one, mapping, model = flush_start(name, seed), make(n), checked(name)
    run = model.run(one)
    complaints = [*model.forces(run), *model.energy(run), *impacts(model, run)]
    depth = flush.deepest(mapping, run.sample(np.linspace(0.0, run.t[-1], LOOKS)).q)
    if depth > DEEPEST:
        complaints.append(f"two bricks overlap by {depth:.3g} m")
    if run.outcome.failed and not model.has_several_motions(run):
        complaints.append(f"ends with '{run.outcome.name}' at {run.t[-1]:.12g} s")
    return {"model": name, "overlap": depth, **result(run, complaints, str(one))}


def flush_start(name, seed):
    """At rest and pushed by a ramp, at rest and pushed at once, or knocked; friction and restitution at random."""
    rng = np.random.default_rng([BEGIN + seed, len(name)])
    count = sum(name.startswith("C") for name in FLUSH[name][0](FLUSH[name][1])["points"])
    kind = rng.integers(3)
    push = float(rng.uniform(-10.0, 10.0))
    inputs = {"push": {"linear": [[0.0, 0.0], [SPAN, push]]} if kind == 0 else push if kind == 1 else 0.0}
    struck = int(rng.integers(count))
    speed = float(either(rng, 0.3, -0.3, rng.normal(0.0, 1.0)))
    initial = {f"vx{struck}": speed} if kind == 2 else {}
    parameters = {"mu": friction(rng), "e": float(either(rng, 0.0, 0.0, 0.5 * restitution(rng)))}
    return Start(name, seed, SPAN, initial, parameters, inputs, ADAPTIVE | {"strategy": "auto"})
