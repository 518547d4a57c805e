"""Random ramps of the inputs of mechanisms whose contacts open under them: no run may end in a contradiction.

A run that ends is judged by its neighbours: the same ramp with every value moved by 1e-9 of the largest.  Where one of
them goes on the end is *false*: no physics tells the two apart.  Where all of them end, the end has to be one of those
that say what happened; the others are *unnamed*.
"""

import zlib
from functools import cache

import numpy as np

import fsm_dyn
from fsm_dyn.runtime.abi import Status

MOVED = 1e-9  # of the largest value of a ramp
NEIGHBOURS = (1.0, -1.0, 3.0)
MOST_STEPS = 200_000
# ends that say what happened, and with what
NAMED = {Status.INCONSISTENT, Status.NON_UNIQUE_STATE, Status.NON_UNIQUE, Status.MODE_NOT_LISTED}
# model: input, largest value of either sign (N), longest time between two corners of a ramp (s), length of the run (s)
RAMPS = {
    "toggle_switch": ("finger", (-12.0, 12.0), 0.5, 2.0),
    "push_button": ("finger", (0.0, 6.0), 0.8, 2.0),
    "piano_action_simple": ("finger", (0.0, 15.0), 0.4, 0.8),
}


@cache
def graph_of(model):
    """The compiled model, once a process."""
    return fsm_dyn.compile(model)


def ramp(model, seed):
    """The corners of a ramp, rows of (s, N): round numbers half the time, two to six corners."""
    _, (low, high), longest, _ = RAMPS[model]
    rng = np.random.default_rng([seed, zlib.crc32(model.encode())])
    rounded = rng.integers(2) == 0
    rows = [[0.0, 0.0]]
    for _ in range(rng.integers(1, 6)):
        wait, value = rng.uniform(0.02, 1.0) * longest, rng.uniform(low, high) * (rng.integers(4) > 0)
        if rounded:
            wait, value = max(round(wait, 1), 0.1), float(round(value))
        rows.append([round(rows[-1][0] + wait, 12), float(value)])
    return rows


def run(model, rows):
    """The run under a ramp."""
    name, _, _, until = RAMPS[model]
    return fsm_dyn.simulate(
        graph_of(model), until, inputs={name: {"linear": rows}}, on_failure="return", max_steps=MOST_STEPS
    )


def case(model, seed):
    """One ramp: what came of it."""
    rows = ramp(model, seed)
    found = run(model, rows)
    what = {"ok": True, "reason": found.outcome.name, "transitions": len(found.transitions)}
    if not found.outcome.failed:
        return what
    largest = max(abs(value) for _, value in rows) or 1.0
    others = []
    for sign in NEIGHBOURS:
        moved = [[t, value + sign * MOVED * largest if k else value] for k, (t, value) in enumerate(rows)]
        others.append(run(model, moved).outcome.failed)
    kind = "false end" if not all(others) else "named end" if found.outcome.code in NAMED else "unnamed end"
    return what | {
        "ok": kind == "named end", "reason": f"{kind}: {found.outcome.name}", "end": float(found.t[-1]), "ramp": rows,
    }  # fmt: skip


def toggle_switch(seed):
    """A lever over its dead point, pushed by ramps."""
    return case("toggle_switch", seed)


def push_button(seed):
    """A dome that snaps through, pushed by ramps."""
    return case("push_button", seed)


def piano_action_simple(seed):
    """A key, pressed by ramps."""
    return case("piano_action_simple", seed)
