"""Random runs of bricks among flush tiles, judged by the laws and by plain geometry.

Bricks slide, fall and spin on rows of tiles, into walls of tiles, into an L and a U, over corners that lie on an edge;
towers are knocked.  Their starts lie on seams and edges more often than not.  No two convex outlines overlap, by their
separating axes; no transition gains energy; every run ends as asked.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fsm_dyn
from tests.campaigns.flush import TALL, THIN, TILE, deepest, dominoes
from tests.physics.campaign import ADAPTIVE, Checked, Start
from tests.physics.flush import Body, Tiles, brick, losses, overlap, placed, polygon, rectangle, scene

DEEPEST = 2.1e-9  # m: twice the tolerance of a gap
RUNS = 4
LAW = {"friction": "mu", "restitution": "e", "parameters": {"mu": 0.3, "e": 0.0}}
A, B = 0.25, 0.1


def box(x0, y0, x1, y1):
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


ROW = {f"tile{i + 1}": box(x0, -1, x1, 0) for i, (x0, x1) in enumerate([(-1, -0.25), (-0.25, 0), (0, 0.25), (0.25, 1)])}
WALL = {
    "tile1": box(-1, -1, -0.25, 0),
    "tile2": box(-0.25, -1, 0, 0),
    **{f"wall{i}": box(0, y0, 0.5, y1) for i, (y0, y1) in enumerate([(-0.5, 0.05), (0.05, 0.1), (0.1, 1)])},
}
# the shapes of a table, and the convex parts that they cover
TABLES = {
    "row": (ROW, ROW),
    "wall": (WALL, WALL),
    "l": ({"l": [(-1, -1), (0.5, -1), (0.5, 1), (0, 1), (0, 0), (-1, 0)]},
          {"low": box(-1, -1, 0.5, 0), "high": box(0, -1, 0.5, 1)}),
    "u": ({"u": [(-0.6, -1), (0.5, -1), (0.5, 0.5), (0, 0.5), (0, 0), (-0.5, 0), (-0.5, 0.5), (-0.6, 0.5)]},
          {"low": box(-0.6, -1, 0.5, 0), "right": box(0, -1, 0.5, 0.5), "left": box(-0.6, -1, -0.5, 0.5)}),
    "corners on an edge": ({"l": [(-1, -1), (1, -1), (1, 0), (0.25, 0), (0, 0), (-0.25, 0), (-1, 0)]},
                           {"low": box(-1, -1, 1, 0)}),
}  # fmt: skip


def judge(checked, start, bodies, pairs):
    """Hold one run to the laws; ``bodies`` are the outlines of those that move, ``pairs`` what may not overlap."""
    run = checked.run(start)
    assert not run.outcome.failed, (run.outcome, start)
    assert losses(run).min(initial=0.0) >= -1e-12, start
    assert not [*checked.forces(run), *checked.energy(run)], start
    times = np.unique([*np.linspace(0.0, run.t[-1], 1000), *run.t])
    q = run.sample(times).q
    there = [placed(outline, q[:, 3 * i : 3 * i + 3]) for i, outline in enumerate(bodies)]
    for one, other in pairs:
        second = there[other] if isinstance(other, int) else np.array([other], float)
        assert overlap(there[one], second).max() <= DEEPEST, start
    return run


def thrown(seed, walled):
    """A start of one brick: it slides, is dropped flat or upright, or spins."""
    random = np.random.default_rng([seed, 21])
    x = float(random.choice([-0.3, -A / 2, -0.25, random.uniform(-0.4, -0.13)]))
    initial = {"x_s": x, "y_s": B / 2}
    kind = seed % 4
    if kind < 2:
        initial["x_s_dot"] = float(random.choice([2.0, -1.0, 0.3, random.normal()]))
    if kind == 1:
        initial |= {"y_s": B / 2 + float(random.choice([0.1, 0.05])), "y_s_dot": float(random.choice([0, -1]))}
    if kind == 2:
        initial |= {
            "y_s": 0.35,
            "x_s": -B / 2 if walled else -A / 2,
            "q_s": float(random.choice([np.pi / 2, -np.pi / 2])),
        }
    if kind == 3:
        initial |= {"y_s": 0.35, "x_s": -0.3, "q_s": random.uniform(-3, 3), "q_s_dot": random.normal(0, 4)}
    parameters = {"mu": float(random.choice([0.0, 0.1, 0.3, 1.0])), "e": float(random.choice([0.0, 0.5, 1.0]))}
    return Start("thrown", seed, 0.6, initial, parameters)


@pytest.mark.parametrize("name", TABLES)
def test_a_brick_among_flush_tiles(name):
    shapes, parts = TABLES[name]
    model = scene({"s": brick(A, B)}, {key: polygon(corners) for key, corners in shapes.items()}, **LAW)
    checked = Checked(model)
    met = 0
    for seed in range(RUNS):
        run = judge(
            checked, thrown(seed, name in ("l", "u", "wall")), [rectangle(A, B)], [(0, part) for part in parts.values()]
        )
        met += len(run.transitions) > 0
    assert met >= RUNS / 2


@pytest.mark.parametrize("cuts", [(-1.0, 0.0, 1.0), pytest.param((-0.1, 0.1), marks=pytest.mark.long)])
def test_a_tower_that_is_knocked(cuts):
    a, count = 0.2, 3
    names = [f"b{i}" for i in range(count)]
    tiles = Tiles([(x0, x1, 0.0) for x0, x1 in itertools.pairwise(cuts)]).shapes
    bodies = {name: Body(rectangle(a, B), (0, (i + 0.5) * B, 0)) for i, name in enumerate(names)}
    pairs = [(names[0], tile) for tile in tiles] + list(zip(names[1:], names, strict=False))
    checked = Checked(scene(bodies, tiles, pairs=pairs, **LAW))
    apart = [(0, box(x0, -1, x1, 0)) for x0, x1 in itertools.pairwise(cuts)] + [(1, 0), (2, 1)]
    for seed in range(2):
        random = np.random.default_rng([seed, 22])
        initial = {f"x_{random.choice(names)}_dot": float(random.choice([0.5, 1.0, -2.0, random.normal()]))}
        if seed % 2:
            initial[f"q_{random.choice(names)}_dot"] = float(random.normal(0, 2))
        parameters = {"mu": float(random.choice([0.1, 0.3, 0.8])), "e": float(random.choice([0.0, 0.5]))}
        judge(checked, Start("tower", seed, 0.3, initial, parameters), [rectangle(a, B)] * count, apart)


@pytest.fixture(scope="module")
def tall():
    return Checked(dominoes(1))


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("push", [-10.0, -3.0 / 0.54, 10.0])
def test_a_tall_brick_turns_as_it_slides_off_an_edge(tall, mu, push):
    """Its corner comes down on the edge's in the instant in which it passes it: decided once."""
    given = {"push": {"linear": [[0.0, 0.0], [1.0, push]]}}
    start = Start("dominoes_1", 0, 1.0, {}, {"mu": mu, "e": 0.0}, given, ADAPTIVE | {"strategy": "auto"})
    run = judge(tall, start, [rectangle(THIN, TALL)], [(0, box(0.0, -TILE / 2, TILE / 2, 0.0))])
    last = run.transitions[-1]
    assert run.q[-1, 1] < 0.0, "it has fallen off"
    late = run.t > last.time
    assert run.u[late, 2] == pytest.approx(run.u[-1, 2], rel=1e-9), "nothing turns it in the air"
    fallen = run.u[late, 1] + 9.81 * run.t[late]
    assert fallen == pytest.approx(fallen[0], abs=1e-8)


OFF = 0.01  # m, along which two faces still lie on each other


def slide_off(speed, turn, tilt, mirror=1.0):
    """Return the start of two equal bricks that P presses on each other, and that slide apart along the flush faces.

    Seen from the middle of the face one brick is the other turned by half a turn, so that both ends bear the same force
    until they meet, but for the angle ``tilt`` (rad) between the bricks.  ``mirror``: -1 for the picture of it.
    """
    along = np.array([-mirror * np.sin(turn), np.cos(turn)])
    across = np.array([mirror * np.cos(turn), np.sin(turn)])
    place = -0.5 * THIN * across - 0.5 * (TALL - OFF) * along
    initial = {"q_a": mirror * (turn + tilt), "q_b": mirror * turn}
    for name, side in (("a", 1.0), ("b", -1.0)):
        initial |= dict(zip((f"x_{name}", f"y_{name}"), (side * place).tolist(), strict=True))
        initial |= dict(zip((f"x_{name}_dot", f"y_{name}_dot"), (-0.5 * side * speed * along).tolist(), strict=True))
    return Start("sliding off", 0, 1.5 * OFF / speed, initial, {"P": mirror}, {}, ADAPTIVE)


@pytest.fixture(scope="module")
def sliding_off():
    loads = [{"force": "P*F_a.x", "at": "C_a"}, {"force": "-P*F_b.x", "at": "C_b"}]
    bodies = {name: Body(rectangle(THIN, TALL)) for name in "ab"}
    return Checked(scene(bodies, {}, friction=0.0, gravity=None, loads=loads, parameters={"P": 1.0}))


@pytest.mark.parametrize("mirror", [1.0, -1.0])
@pytest.mark.parametrize("turn", [0.3, 1.1, -2.4])
@pytest.mark.parametrize("tilt", [3e-16, 4e-15, -5e-14, -6e-13])
def test_no_contact_pulls_where_the_two_of_a_face_meet(sliding_off, tilt, turn, mirror):
    """Just before the ends of the faces meet a rounding of an angle is a thousandth of the force."""
    for speed in np.linspace(0.4, 2.0, 9):
        one = slide_off(float(speed), turn, tilt, mirror)
        run = sliding_off.run(one)
        assert run.outcome.name == "done"
        assert not list(sliding_off.forces(run)), one
        # both ends bear the same force until they are so near that the tilt decides
        meet = [change.time for change in run.transitions]
        assert np.abs(np.array(meet) - OFF / speed).max() < 0.03 * OFF / speed
        half = run.sample([0.5 * OFF / speed]).multiplier_table[0]
        ends = half[sliding_off.normal][half[sliding_off.normal] != 0.0]
        assert len(ends) == 2
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-5)  # the tilt makes 1e-6


def test_a_pull_at_the_ends_of_faces_is_seen(sliding_off):
    """Up to a hundredth of the way from where they meet, a ten-thousandth of the pressure is no rounding."""
    run = sliding_off.run(slide_off(1.0, 0.3, 4e-15))
    layout = run.model.layout
    for fraction in (0.0, 0.5, 0.9, 0.99):
        samples = run.sample([fraction * OFF])
        assert not sliding_off.judge(samples)
        pulled = samples.context.copy()
        pulled[:, layout.p.index("P")] = -1e-4
        assert "pulls" in sliding_off.judge(replace(samples, context=pulled))[0]


@pytest.mark.parametrize(
    ("seed", "start", "mu"),
    [(801, {"vx2": -1.4595189119074026}, 1.0), (1428, {"vx0": 0.7633839506231985}, 1.0)],
)
def test_a_wedged_domino_slips_free_at_its_limit(seed, start, mu):
    """A sticking corner reaches its limit where another motion exists as well, and that one alone exists past it.

    Other contacts slide and make the response to friction negative: with a coefficient 1e-6 above the one at which the
    corner comes to its limit it may stick, begin to slip, or slip free; with one 1e-6 below only slip free (by
    enumeration with NumPy alone).  The run continues with that motion; coefficient and difference quotient err by some
    1e-6.
    """
    model = Checked(dominoes(3))
    run = model.run(Start("dominoes_3", seed, 1.0, start, {"mu": mu, "e": 0.0}, {"push": 0.0}, ADAPTIVE))
    assert run.outcome.name == "done"
    found = [change for change in run.transitions if "just past it" in change.selection[0]]
    assert found
    for change in found:
        before = run.sample([change.time - 1e-6]).mode[0]
        closed = model.pressing(run, before)
        stuck = [i for i, c in enumerate(model.contacts) if run.model.charts[before].states[i] == 1]
        at = [closed.index((model.contacts[i].normal_row, model.contacts[i].tangent_row)) for i in stuck]
        assert len(at) == 1
        coefficients = np.full(len(closed), mu)
        coefficients[at] = mu * (1.0 + 1e-6)
        assert len(model.motions(run, coefficients, change.time, closed)) == 3
        coefficients[at] = mu * (1.0 - 1e-6)
        (only,) = model.motions(run, coefficients, change.time, closed)
        taken = np.diff(run.sample([change.time, change.time + 1e-7]).u, axis=0)[0] / 1e-7
        np.testing.assert_allclose(taken, only, atol=1e-5 * np.abs(only).max())


@pytest.mark.parametrize("settings", [ADAPTIVE, {"method": "radau", **ADAPTIVE}, {"method": "bdf", **ADAPTIVE}])
def test_a_short_flight_is_seen_while_a_corner_passes_from_face_to_face(settings):
    """A domino is struck off the end of its slab: the slab's corner rebounds by micrometres from its lower face.

    A step that is known by its ends and its middle alone shows nothing of that where it ends beyond the domino; a
    quarter of such starts (dopri5), or nearly all (radau, bdf), sank in by a millimetre.
    """
    mapping = dominoes(1)
    graph = fsm_dyn.compile(mapping)
    for speed in np.linspace(-2.5, -0.8, 20):
        run = fsm_dyn.simulate(graph, 0.2, initial={"vx0": speed}, parameters={"mu": 0.3, "e": 0.5}, **settings)
        assert not run.outcome.failed
        times = np.unique([*np.linspace(0.0, run.t[-1], 400), *run.t])
        assert deepest(mapping, run.sample(times).q) <= DEEPEST, speed
