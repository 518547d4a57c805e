"""What may not matter in flush geometry: left and right, the order of corners and shapes, seams, a shift by a hair.

The runs start at random: bricks that slide, are dropped or thrown on a table, towers that are knocked.  Trajectories,
transition times and modes of a run are compared with those of its transformed twin, transformed back.
"""

import itertools

import numpy as np
import pytest

import fsm_dyn
from tests.physics.flush import Body, Tiles, brick, points, rectangle, scene

CLOSE = 1e-9  # m, rad
LAW = {"friction": "mu", "restitution": "e", "parameters": {"mu": 0.3, "e": 0.0}}


def build(model):
    return fsm_dyn.compile(model, cache=False)


def starts(count):
    """Random starts of one brick .25 by .1: sliding, dropped flat, thrown; with parameters."""
    for seed in range(count):
        random = np.random.default_rng([seed, 12])
        kind = seed % 3
        x, speed = random.uniform(-0.3, 0.1), random.uniform(-2, 2)
        start = [x, 0.05, 0.0, speed, 0.0, 0.0]
        if kind == 1:
            start[1] += random.uniform(0.01, 0.1)
        elif kind == 2:
            start[1:3], start[4:] = [0.25, random.uniform(-1, 1)], [random.normal(), random.normal(0, 3)]
        yield start, {"mu": float(random.choice([0.0, 0.1, 0.3, 1.0])), "e": float(random.choice([0.0, 0.4]))}


def go(graph, names, start, parameters, until=0.5):
    """Run a graph from positions and speeds of the bodies ``names``, (x, y, q) of all and then their rates."""
    keys = [f"{axis}_{name}" for name in names for axis in "xyq"]
    initial = dict(zip([*keys, *(f"{key}_dot" for key in keys)], map(float, start), strict=True))
    run = fsm_dyn.simulate(graph, until, initial=initial, parameters=parameters, rtol=1e-10, atol=1e-12)
    assert not run.outcome.failed, (run.outcome, start, parameters)
    return run


def assert_same(run, twin, back=1.0, close=CLOSE):
    """Hold the trajectories of two runs together, the positions and speeds of the second times ``back``."""
    times = np.linspace(0.0, run.t[-1], 101)
    np.testing.assert_allclose(twin.sample(times).q * back, run.sample(times).q, atol=close, rtol=0)
    np.testing.assert_allclose(twin.u[-1] * back, run.u[-1], atol=100 * close, rtol=0)


# -- left and right ------------------------------------------------------------------------------------------------

SIDES = {
    "1": "2",
    "2": "1",
    "3": "4",
    "4": "3",
}  # corners of a rectangle in the mirror; its faces 2 and 4 change places


def mirrored(mode, tiles):
    """The name of a mode in the mirror, as a set."""

    def part(word):
        if word.startswith("tile"):
            return f"tile{tiles + 1 - int(word[4:])}"
        if word.startswith("face"):
            return "face" + {"2": "4", "4": "2"}.get(word[4:], word[4:])
        return SIDES.get(word, word)

    return frozenset("_".join(map(part, state.split("_"))) for state in mode.split("+"))


CUTS = [(-1.0, -0.2), (-0.2, 0.15), (0.15, 0.9)]


@pytest.mark.parametrize("names", [("a",), pytest.param(("a", "b"), marks=pytest.mark.long)])
def test_runs_in_the_mirror_are_mirrored(names):
    def table(cuts):
        pairs = [("a", f"tile{i + 1}") for i in range(len(cuts))] + [("b", "a")] * (len(names) - 1)
        bodies = {name: brick(0.25, 0.1) for name in names}
        return build(scene(bodies, Tiles([(*cut, 0.0) for cut in cuts]).shapes, pairs=pairs, **LAW))

    graph, mirror = table(CUTS), table([(-b, -a) for a, b in reversed(CUTS)])
    back = np.array([-1.0, 1.0, -1.0] * len(names))
    for number, (start, parameters) in enumerate(starts(6)):
        if len(names) > 1:  # the second one lies on the first, which is knocked
            if number % 3:
                continue
            start = [start[0], 0.05, 0, start[0], 0.15, 0, start[3], 0, 0, 0, 0, 0]
        run = go(graph, names, start, parameters)
        twin = go(mirror, names, np.array(start) * np.tile(back, 2), parameters)
        assert [t.time for t in twin.transitions] == pytest.approx([t.time for t in run.transitions], rel=1e-12)
        assert [mirrored(t.target, 3) for t in twin.transitions] == [
            frozenset(t.target.split("+")) for t in run.transitions
        ]
        assert_same(run, twin, back)


# -- numbers and order ---------------------------------------------------------------------------------------------


def test_the_order_of_corners_and_of_shapes_does_not_matter():
    def table(shift, swap):
        outline = rectangle(0.25, 0.1)
        body = Body(outline[shift:] + outline[:shift])
        tiles = Tiles([(-1.0, 0.0, 0.0), (0.0, 0.9, 0.0)]).shapes
        for shape in tiles.values():
            corners = shape["polygon"]["points"]
            shape["polygon"]["points"] = corners[shift:] + corners[:shift]
        if swap:
            tiles = dict(reversed(tiles.items()))
        pairs = [(tile, "a") if swap else ("a", tile) for tile in tiles]
        return build(scene({"a": body}, tiles, pairs=pairs, **LAW))

    plain, others = table(0, False), [table(1, True), table(2, False), table(3, True)]
    for start, parameters in starts(3):
        run = go(plain, "a", start, parameters)
        for other in others:
            twin = go(other, "a", start, parameters)
            assert [t.time for t in twin.transitions] == pytest.approx([t.time for t in run.transitions], rel=1e-12)
            assert_same(run, twin)


# -- seams ---------------------------------------------------------------------------------------------------------


def tiled(k, kind):
    cuts = np.linspace(-1.0, 0.9, k + 1)
    return Tiles([(a, b, 0.0) for a, b in itertools.pairwise(cuts)], kind).shapes


TABLES = {
    "2 polygons": lambda: tiled(2, "polygon"),
    "5 polygons": lambda: tiled(5, "polygon"),
    "1 segment": lambda: tiled(1, "segment"),
    "5 segments": lambda: tiled(5, "segment"),
    "corners on an edge": lambda: {
        "tile1": {"polygon": {"points": points([(-1, -1), (0.9, -1), (0.9, 0), (0.2, 0), (-0.1, 0), (-1, 0)])}}
    },
    "copies": lambda: {
        "tile1": {
            "polygon": {"from": "Hub", "points": points([(0, -0.4), (0.95, -0.4), (0.95, 0.4), (0, 0.4)])},
            "repeat": {"count": 2, "about": "Hub"},
        }
    },
}


@pytest.fixture(scope="module")
def one_table():
    return build(scene({"a": brick(0.25, 0.1)}, tiled(1, "polygon"), **LAW))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_tiles_is_one_table(one_table, name):
    model = scene({"a": brick(0.25, 0.1)}, TABLES[name](), **LAW)
    model["points"]["Hub"] = {"from": "O", "at": "-0.05*N.x - 0.4*N.y"}
    graph = build(model)
    for start, parameters in starts(6):
        assert_same(go(one_table, "a", start, parameters), go(graph, "a", start, parameters))


# -- a hair --------------------------------------------------------------------------------------------------------


def test_a_shift_by_a_hair_shifts_the_run_by_a_hair():
    """On a table of tiles a shift along the table moves the run as a whole; a brick over its own like stays on it."""
    graph = build(scene({"a": brick(0.25, 0.1)}, tiled(4, "polygon"), **LAW))
    for start, parameters in starts(6):
        run = go(graph, "a", start, parameters)
        for shift in (1e-12, 1e-8):
            moved = np.array(start)
            moved[0] += shift
            twin = go(graph, "a", moved, parameters)
            np.testing.assert_allclose(twin.q[-1] - run.q[-1], [shift, 0, 0], atol=CLOSE / 10 + shift)


@pytest.mark.long
def test_a_tower_may_stand_a_hair_beside_itself():
    bodies = {f"b{i}": brick(0.2, 0.1) for i in range(3)}
    pairs = [("b0", "tile1"), ("b1", "b0"), ("b2", "b1")]
    graph = build(scene(bodies, Tiles([(-0.1, 0.1, 0.0)]).shapes, pairs=pairs, **LAW))
    for seed in range(2):
        random = np.random.default_rng([seed, 13])
        rates = np.zeros(9)
        rates[3 * random.integers(1, 3)] = random.uniform(-1, 1)
        parameters = {"mu": float(random.choice([0.1, 0.4])), "e": 0.0}
        runs = []
        for shift in (0.0, 1e-12, 1e-8):
            places = [v for i in range(3) for v in (shift * random.choice([-1, 1]), 0.05 + 0.1 * i, 0.0)]
            runs.append(go(graph, bodies, [*places, *rates], parameters, until=0.15))
        for twin, close in zip(runs[1:], (CLOSE, 1e-7), strict=True):
            assert_same(runs[0], twin, close=close)
