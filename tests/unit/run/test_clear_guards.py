"""Guards far above zero are not looked at: what that rests on, and whole runs against a library that looks at all."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.building import BUILT, FOLDER, compile_library
from tests.runtime.internals import internals

ROOM = 471


def test_a_guard_that_counts_as_clear_has_an_interpolant_that_is_surely_positive():
    """Values and slopes at random, many of them near the limit; its lowest turn is worked out as may_cross does."""
    runtime, rng, work = internals(), np.random.default_rng(3), np.zeros(ROOM)
    clear = 0
    for _ in range(20_000):
        h, spread, steep = rng.uniform(1e-6, 2.0), rng.exponential(), rng.exponential()
        least = (spread + steep) * rng.uniform(4.0, 18.0)
        here, middle, end = least + rng.permutation([0.0, spread, rng.uniform(0.0, spread)])
        slopes = rng.permutation([steep, *rng.uniform(-steep, steep, 2)]) * rng.choice([-1.0, 1.0], 3) / h
        if not runtime.is_clear(here, slopes[0], middle, slopes[1], end, slopes[2], h):
            continue
        clear += 1
        _, sixth = runtime.quintic(here, slopes[0], middle, slopes[1], end, slopes[2], h, work)
        assert runtime.surely_positive(work, 0.0, sixth)
        assert work[:6].min() > 0.0
        for a, b, slope_a, slope_b in ((here, middle, *slopes[:2]), (middle, end, *slopes[1:])):
            steepest = max(abs(b - a) / (0.5 * h), abs(slope_a), abs(slope_b))
            assert a + b - steepest * 0.5 * h > 0.0
    assert 5_000 < clear < 15_000


def test_a_guard_far_above_zero_is_clear_and_one_near_it_is_not():
    clear = internals().is_clear
    assert clear(1.0, -1.0, 0.995, -1.0, 0.99, -1.0, 0.01)
    assert not clear(0.1, -1.0, 0.095, -1.0, 0.09, -1.0, 0.01)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -1.0])
def test_a_guard_without_a_positive_value_is_looked_at(value):
    runtime = internals()
    for place in range(6):
        numbers = [100.0, 0.0, 100.0, 0.0, 100.0, 0.0]
        numbers[place] = value
        harmless = place % 2 == 1 and np.isfinite(value)
        assert runtime.is_clear(*numbers, 0.1) == harmless


CHILD = """
import hashlib, importlib.util, json, sys, types
library, scenes = sys.argv[1], json.loads(sys.argv[2])
if library:
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: (
        types.SimpleNamespace(origin=library) if name == "fsm_dyn.runtime._fsm_runtime" else find(name, *rest))
import fsm_dyn
from tests.unit.run.loose_bodies import scene
found = []
for kind, seed, count, options in scenes:
    graph = fsm_dyn.compile(scene(kind, seed, count))
    run = fsm_dyn.simulate(graph, on_failure="return", **options)
    whole = [run.rows.x.tobytes(), run.multipliers and b"".join(m.tobytes() for m in run.multipliers.values()) or b""]
    text = "".join(map(str, run.transitions)) + run.outcome.name
    found.append([hashlib.sha256(b"".join(whole) + text.encode()).hexdigest(), len(run.t), len(run.transitions)])
print(json.dumps(found))
"""


def runs_of(library, scenes):
    """Return digest, rows and transitions of runs in a process with another library, the usual one for none."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, library, json.dumps(scenes)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def library_of_every_guard():
    """Return the path of a library to which no guard is clear and none far, compiled once for these sources."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.[ch]")))).hexdigest()
    library = BUILT / f"runtime_every_guard_{digest[:16]}.so"
    if not library.exists():
        compile_library(
            [FOLDER / "fsm_runtime.c"], library, "-O1", "-DFSM_CLEAR=FSM_INFINITY", "-DFSM_RESERVE=FSM_INFINITY"
        )
    return str(library)


def test_random_scenes_move_bit_for_bit_as_where_every_guard_is_looked_at():
    """Discs, boxes, mixtures with segments, balls and bricks in space, each pair of which may touch."""
    fixed, adaptive = {"until": 0.6, "method": "rk4", "step": 2e-3}, {"until": 0.6}
    ways = [{**adaptive, "strategy": "online"}, {**fixed, "strategy": "auto"}]
    scenes = [
        [kind, seed, 3, ways[seed % 2]]
        for seed, kind in enumerate(("discs", "boxes", "mixed", "balls", "soft", "bricks"))
    ]
    usual, every = runs_of("", scenes), runs_of(library_of_every_guard(), scenes)
    assert usual == every
    assert all(rows > 50 for _, rows, _ in usual)
    assert sum(transitions for _, _, transitions in usual) > 30
