"""Flush edges, seams and corners that meet: the numbers of a closed form for every way in which they can lie."""

import itertools
from math import cbrt, sqrt

import numpy as np
import pytest

import fsm_dyn
from tests.campaigns.flush import dominoes
from tests.physics.flush import Body, G, Tiles, brick, losses, overlap, placed, points, polygon, rectangle, scene

GROUND = {"line": {"along": "N.x"}, "side": "N.y"}
RAMP = {"inputs": ["push"], "schedule": {"push": {"linear": [[0, 0], [3, 30]]}}}  # 10 N/s
KINDS = ("polygon", "segment")
GAP = 1e-9  # what counts as flush (m)


def build(model):
    return fsm_dyn.compile(model, cache=False)


def slowed(v, mu, distance):
    """Time and speed at the end of a slide with friction."""
    end = sqrt(v**2 - 2 * mu * G * distance)
    return (v - end) / (mu * G), end


# -- a block pushed over the edge of its own width -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_flush_with_its_table_slides_at_the_limit_of_friction_and_tips_over_the_edge(kind):
    m, a, mu = 2.0, 0.2, 0.3
    push = {"loads": [{"force": "push*N.x", "at": "C_box"}]}
    model = scene({"box": brick(a, a, mass=m)}, Tiles([(-a / 2, a / 2, 0.0)], kind).shapes, friction=mu, **RAMP, **push)
    run = fsm_dyn.simulate(build(model), until=1.1)
    onset = mu * m * G / 10
    # 10 N/s (t - onset) = m x'', and the pressure is in the edge where x + mu a/2 = a/2
    tips = onset + cbrt(6 * m * (1 - mu) * a / 2 / 10)
    assert (onset, tips) == (pytest.approx(0.5886), pytest.approx(1.026552, abs=5e-7))
    assert [t.time for t in run.transitions[:2]] == pytest.approx([onset, tips], abs=1e-9)
    assert run.sample([tips]).q[0, 0] == pytest.approx(0.07, abs=1e-9)
    assert np.abs(losses(run)).max() <= 1e-12


@pytest.fixture(scope="module")
def stack():
    a = 0.2
    bodies = {"low": brick(a, a, mass=2.0), "top": brick(a, a, y=1.5 * a, mass=2.0)}
    model = scene(bodies, {"ground": GROUND}, friction=0.5, pairs=[("low", "ground"), ("top", "low")], **RAMP)
    model["loads"].append({"force": "push*N.x", "at": "C_top"})
    model["contacts"]["low_ground"]["friction"] = 0.3
    return build(model)


def test_the_upper_of_two_equal_blocks_slides_and_tips_over_the_edge_of_the_lower(stack):
    run = fsm_dyn.simulate(stack, until=1.4)
    onset = 0.5 * 2.0 * G / 10
    tips = onset + cbrt(6 * 2.0 * 0.05 / 10)
    assert (onset, tips) == (pytest.approx(0.981), pytest.approx(1.372487, abs=5e-7))
    assert [t.time for t in run.transitions[:2]] == pytest.approx([onset, tips], abs=1e-9)
    assert run.sample([tips]).q[0, 3] == pytest.approx(0.05, abs=1e-9)
    assert np.abs(losses(run)).max() <= 1e-12


@pytest.mark.parametrize("shift", [-1e-8, -1e-12, 1e-12, 1e-8])
def test_a_shift_of_the_upper_block_does_not_move_its_onset(stack, shift):
    run = fsm_dyn.simulate(stack, until=1.1, initial={"x_top": shift})
    still = fsm_dyn.simulate(stack, until=1.1)
    assert run.transitions[0].time == pytest.approx(0.981, abs=1e-9)
    assert run.sample([0.5]).u[0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(run.q[-1] - still.q[-1], [0, 0, 0, shift, 0, 0], atol=1e-11 + 0.01 * abs(shift))


def test_five_bricks_at_rest_stick_until_the_top_one_slides():
    n, a, b, mu = 5, 0.2, 0.1, 0.4
    names = [f"b{i}" for i in range(n)]
    bodies = {name: brick(a, b, y=(i + 0.5) * b) for i, name in enumerate(names)}
    pairs = [("b0", "ground"), *zip(names[1:], names, strict=False)]
    model = scene(bodies, {"ground": GROUND}, friction=mu, pairs=pairs, **RAMP)
    model["loads"].append({"force": "push*N.x", "at": "C_b4"})
    run = fsm_dyn.simulate(build(model), until=0.45)
    onset = mu * G / 10
    assert "slide" not in run.transitions[0].source
    assert run.transitions[0].time == pytest.approx(onset, abs=1e-9)
    assert len(run.transitions) == 1
    assert run.q[-1][[0, 3, 6, 9]] == pytest.approx(0.0, abs=1e-12)
    assert run.q[-1][12] == pytest.approx(10 / 6 * (0.45 - onset) ** 3, abs=1e-10)


# -- seams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_crosses_a_seam_without_a_blow(kind):
    a, mu = 0.2, 0.1
    tiles = Tiles([(-2, 0, 0.0), (0, 2, 0.0)], kind).shapes
    run = fsm_dyn.simulate(build(scene({"box": brick(a, a, -0.5, speed=(2, 0, 0), mass=2.0)}, tiles)), until=1.5)
    over, behind = slowed(2.0, mu, 0.4)[0], slowed(2.0, mu, 0.6)[0]
    assert (over, behind) == (pytest.approx(0.210909, abs=5e-7), pytest.approx(0.326076, abs=5e-7))
    times = [t.time for t in run.transitions]
    assert times[0] == pytest.approx(over, abs=1e-9)
    assert times[-1] == pytest.approx(behind, abs=1e-9)
    assert np.abs(losses(run)).max() <= 1e-12
    assert run.q[-1] == pytest.approx([1.396375, a / 2, 0.0], abs=1e-9)
    assert run.u[-1] == pytest.approx([2.0 - mu * G * 1.5, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("derive_after", [None, 0])
def test_a_brick_crosses_the_seam_of_two_free_bricks_that_stay(derive_after):
    """Its modes share limits in more ways than can be listed: none is derived, even where it is asked for."""
    low = {f"low{i}": brick(0.5, 0.1, x, mass=5.0) for i, x in ((1, -0.25), (2, 0.25))}
    model = scene({**low, "top": brick(0.25, 0.1, -0.3, 0.15, speed=(2, 0, 0))}, {"ground": GROUND}, friction=0.1)
    del model["contacts"]["top_ground"], model["contacts"]["low1_top"], model["contacts"]["low2_top"]
    for name in low:
        model["contacts"][f"{name}_ground"]["friction"] = 0.5
        model["contacts"][f"top_{name}"] = {"between": ["top", name], "friction": 0.1}
    run = fsm_dyn.simulate(build(model), until=0.25, derive_after=derive_after)
    assert np.abs(losses(run)).max() <= 1e-12
    assert run.q[-1][:6] == pytest.approx([-0.25, 0.05, 0, 0.25, 0.05, 0], abs=1e-10)
    assert run.q[-1][6:] == pytest.approx([-0.3 + 0.5 - 0.05 * G * 0.0625, 0.15, 0], abs=1e-9)
    assert run.u[-1][6] == pytest.approx(1.75475, abs=1e-9)


@pytest.fixture(scope="module", params=KINDS)
def steps(request):
    """A brick that slides towards a seam at 0, behind which the table is higher by the parameter ``h``."""
    tiles = Tiles([(-2, 0, 0.0), (0, 2, "h")], request.param).shapes
    model = scene({"box": brick(0.25, 0.1, -0.3, speed=(2, 0, 0), mass=2.0)}, tiles, parameters={"h": 0.0})
    return build(model)


@pytest.mark.parametrize("height", [-5e-10, 0.0, 5e-10])
def test_a_step_within_the_tolerance_is_flush(steps, height):
    run = fsm_dyn.simulate(steps, until=1.2, parameters={"h": height})
    assert np.abs(losses(run)).max() <= 1e-12
    end = 2.0 / (0.1 * G)
    assert run.q[-1] == pytest.approx([-0.3 + 2.0 * 1.2 - 0.05 * G * 1.2**2, 0.05, 0.0], abs=1e-8)
    assert end > 1.2


def checked_steps(run, height):
    """Hold a run to the laws: done, energy never grows, and by separating axes nothing is deeper than a gap may be."""
    assert not run.outcome.failed, run.outcome
    assert losses(run).min() >= -1e-12
    q = run.sample(np.linspace(0.0, run.t[-1], 4001)).q
    box = placed(rectangle(0.25, 0.1), q)
    tiles = [[(-2, -1), (0, -1), (0, 0), (-2, 0)], [(0, -1), (2, -1), (2, height), (0, height)]]
    assert max(overlap(box, np.array([tile], float)).max() for tile in tiles) <= 2.1 * GAP


@pytest.mark.parametrize("shift", [0.0, 1e-12, -1e-12, 1e-10, -1e-10])
@pytest.mark.parametrize("height", [1.1e-9, 1.5e-9, 2e-9, 3e-9, 3.9e-9, 5e-9, 1e-8, 1e-6])
def test_a_step_up_turns_a_brick_about_its_corner(steps, height, shift):
    """About the corner of the step, which stands ``height`` over the brick's own, wherever the brick begins."""
    run = fsm_dyn.simulate(steps, until=1.2, parameters={"h": height}, initial={"x_box": -0.3 + shift})
    time, v = slowed(2.0, 0.1, 0.175 - shift)
    a, b = 0.25, 0.1
    lever = b / 2 - height
    about = (a**2 + b**2) / 12 + (a / 2) ** 2 + lever**2
    w = v * lever / (about + 0.1 * a / 2 * height)  # the brick's own corner bears it, and rubs so far below the step's
    assert (time, v, w) == pytest.approx((0.0894629, 1.912237, 3.956352), abs=1e-6 + 80 * height)
    first = run.transitions[0]
    assert first.time == pytest.approx(time, abs=1e-9)
    near = 1e-9 + (80 * height if height <= 4 * GAP else 0.0)  # below, both corners may be one within the tolerance
    assert first.u_after == pytest.approx([w * lever, w * a / 2, -w], abs=near)
    lost = v**2 - about * w**2
    assert lost == pytest.approx(3.278376, abs=1e-6 + 80 * height)
    assert losses(run)[0] == pytest.approx(lost, abs=near)
    checked_steps(run, height)
    assert len(run.transitions) <= 4
    falls = next(t.time for t, lost in zip(run.transitions[1:], losses(run)[1:], strict=True) if lost > 0.1)
    assert falls == pytest.approx(0.2535, abs=5e-4)
    assert run.q[-1] == pytest.approx([-0.136, 0.05, 0.0], abs=1e-3)
    assert run.u[-1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("height", [-2e-9, -1e-8, -1e-6])
def test_a_brick_tips_over_a_step_down(steps, height):
    run = fsm_dyn.simulate(steps, until=0.4, parameters={"h": height})
    tips = slowed(2.0, 0.1, 0.295)[0]  # where x = -mu b/2
    assert tips == pytest.approx(0.1532606, abs=5e-8)
    over, lone = run.transitions[:2]
    assert over.time == pytest.approx(slowed(2.0, 0.1, 0.175)[0], abs=1e-9)
    np.testing.assert_allclose(over.u_after, over.u_before, atol=1e-12)
    assert lone.time == pytest.approx(tips, abs=1e-8)
    assert "+" not in lone.target
    checked_steps(run, height)
    assert run.q[-1][0] == pytest.approx(0.42152, abs=2e-6)
    if height == -1e-6:
        assert run.q[-1][0] == pytest.approx(0.4215207, abs=5e-8)


@pytest.mark.parametrize("push", [3.0, -3.0])
def test_a_block_at_rest_with_its_corner_on_a_seam_slides_either_way(push):
    model = scene({"box": brick(0.25, 0.1, -0.125)}, Tiles([(-2, 0, 0.0), (0, 2, 0.0)]).shapes)
    model["loads"].append({"force": f"{push}*N.x", "at": "C_box"})
    run = fsm_dyn.simulate(build(model), until=0.5)
    way = np.sign(push) * (3.0 - 0.1 * G)
    assert all(abs(lost) <= 1e-12 for lost in losses(run))
    assert run.q[-1] == pytest.approx([-0.125 + way / 8, 0.05, 0.0], abs=1e-9)
    assert run.u[-1] == pytest.approx([way / 2, 0.0, 0.0], abs=1e-9)


def two_materials(one, other, *, kind="polygon", cuts=(-2, 0, 2), x=-0.3, speed=2.0):
    """Return a brick on tiles that end at ``cuts``, with the friction ``one`` left of 0 and ``other`` right of it."""
    tiles = Tiles([(a, b, 0.0) for a, b in itertools.pairwise(cuts)], kind).shapes
    model = scene({"box": brick(0.25, 0.1, x, speed=(speed, 0, 0), mass=2.0)}, tiles, inputs=["push"])
    for contact, left in zip(model["contacts"].values(), cuts, strict=False):
        contact["friction"] = one if left < 0 else other
    model["contacts"] = {
        name: {key: value for key, value in law.items() if value is not None} for name, law in model["contacts"].items()
    }
    model["loads"].append({"force": "push*N.x", "at": "C_box"})
    return build(model)


def drag(one, other):
    """Friction of a brick with a corner on either material, per mass: statics of the outer two contacts."""
    a, b = 0.25, 0.1
    return G * (one + other) / 2 / (1 - (other - one) * b / (2 * a))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(-2, 0, 2), (-2, -0.15, -0.07, 0, 0.06, 2)])
@pytest.mark.parametrize(("one", "other"), [(0.1, 0.3), (0.3, 0.1), (None, 0.2)])
def test_a_brick_slides_from_one_material_to_another_as_its_outer_corners_rub(kind, cuts, one, other):
    """However the table is cut into tiles: the load is with the outer contacts, and no share is left open."""
    run = fsm_dyn.simulate(two_materials(one, other, kind=kind, cuts=cuts), until=0.5, inputs={"push": 0.0})
    one = one or 0.0
    t, x, v = 0.0, -0.3, 2.0
    for a, distance in ((one * G, 0.175), (drag(one, other), 0.25), (other * G, np.inf)):
        time = min((v - sqrt(max(v**2 - 2 * a * distance, 0.0))) / a if a else distance / v, 0.5 - t)
        t, x, v = t + time, x + v * time - a * time**2 / 2, v - a * time
    assert np.abs(losses(run)).max() <= 1e-12
    assert run.q[-1] == pytest.approx([x, 0.05, 0.0], abs=1e-8)
    assert run.u[-1] == pytest.approx([v, 0.0, 0.0], abs=1e-8)


@pytest.mark.parametrize(("one", "other"), [(0.1, 0.3), (0.3, 0.1), ("inf", 0.3)])
def test_a_brick_on_two_materials_sticks_up_to_the_friction_of_its_outer_corners(one, other):
    graph = two_materials(one, other, x=-0.05, speed=0.0)
    run = fsm_dyn.simulate(graph, until=0.5, inputs={"push": {"linear": [[0, 0], [3, 30]]}})
    if one == "inf":
        assert not run.transitions
    else:
        assert run.transitions[0].time == pytest.approx(2.0 * drag(one, other) / 10, abs=1e-9)


# -- edges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mu", "speed"), [(0.1, 1.0), (0.0, 0.2)])
def test_a_brick_tips_where_the_pressure_leaves_the_table(kind, mu, speed):
    model = scene({"box": brick(0.25, 0.1, -0.1, speed=(speed, 0, 0))}, Tiles([(-2, 0, 0.0)], kind).shapes, friction=mu)
    run = fsm_dyn.simulate(build(model), until=0.6)
    distance = 0.1 - mu * 0.05
    time = slowed(speed, mu, distance)[0] if mu else distance / speed
    assert time == pytest.approx(0.0998947 if mu else 0.5, abs=5e-8)
    lone = next(t for t in run.transitions if "+" not in t.target)
    assert lone.time == pytest.approx(time, abs=1e-9)
    assert np.abs(losses(run)).max() <= 1e-12
    assert run.u[-1][2] < 0.0


# -- falling flat --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, np.pi])
@pytest.mark.parametrize("cuts", [(-0.25, 0), (-1, -0.25, 0, 1)])
def test_a_brick_dropped_flat_stays_on_what_is_as_wide_as_itself(angle, cuts):
    """Of the tiles beside it each could be passed along its side; the one below it leaves no choice."""
    tiles = Tiles([(a, b, 0.0) for a, b in itertools.pairwise(cuts)]).shapes
    graph = build(scene({"box": Body(rectangle(0.25, 0.1), (-0.125, 0.1, angle))}, tiles, friction=0.0))
    for shift in (0.0, 1e-12, 1e-10):
        run = fsm_dyn.simulate(graph, until=0.3, initial={"x_box": -0.125 + shift})
        (blow,) = run.transitions
        assert blow.time == pytest.approx(sqrt(0.1 / G), abs=1e-11)
        assert losses(run) == pytest.approx([0.05 * G], abs=1e-9)
        assert run.q[-1] == pytest.approx([-0.125 + shift, 0.05, angle], abs=1e-12)
        assert run.u[-1] == pytest.approx(0.0, abs=1e-15)
        assert len(run.modes[-1].split("+")) == 2


@pytest.mark.parametrize("friction", [0.8, "inf"])
@pytest.mark.parametrize("speed", [1.0, -1.0, 2.5])
def test_a_brick_rocks_back_flat_onto_a_tile_of_its_own_width(friction, speed):
    """Its corner comes down on that of the tile, exactly: as on a segment, and as on a table that is wider."""
    runs = []
    for width, kind in ((0.2, "polygon"), (0.2, "segment"), (1.0, "polygon")):
        tiles = Tiles([(-width / 2, width / 2, 0.0)], kind).shapes
        body = Body(rectangle(0.2, 0.1), (0, 0.05, 0), (0, 0, speed))
        runs.append(fsm_dyn.simulate(build(scene({"box": body}, tiles, friction=friction)), until=0.4))
    for run in runs:
        assert run.q[-1] == pytest.approx(runs[-1].q[-1], abs=1e-8)
        assert losses(run).min() >= -1e-12
        assert losses(run).sum() == pytest.approx(losses(runs[-1]).sum(), abs=1e-9)
    assert runs[0].u[-1] == pytest.approx(0.0, abs=1e-12)
    lifted = np.linspace(0.0, runs[0].transitions[-1].time, 200)
    assert runs[0].sample(lifted).q[:, 1].max() > 0.05004


def test_a_rattling_brick_stays_on_a_polygon_as_on_a_segment():
    """Its corners strike in turn, ever sooner: one may be found a little deeper than the other that strikes."""
    law = {"friction": 0.3, "restitution": 0.5}
    body = Body(rectangle(0.2, 0.1), (0, 0.05, 0))
    block, line = (build(scene({"box": body}, Tiles([(-1.0, 1.0, 0.0)], kind).shapes, **law)) for kind in KINDS)
    random = np.random.default_rng(5)
    for _ in range(12):
        start = {"x_box_dot": float(random.normal()), "q_box_dot": float(random.normal(0, 2))}
        run, twin = (fsm_dyn.simulate(graph, until=0.3, initial=start) for graph in (block, line))
        samples = run.sample(np.linspace(0.0, 0.3, 2001)).q
        assert placed(rectangle(0.2, 0.1), samples)[..., 1].min() >= -2.1 * GAP, start
        assert len(run.transitions) > 10
        assert run.q[-1] == pytest.approx(twin.q[-1], abs=1e-6), start


# -- corner on corner ----------------------------------------------------------------------------------------------


def test_a_diamond_strikes_a_corner_with_its_own():
    rhombus = [(0, -0.1), (0.1, 0), (0, 0.1), (-0.1, 0)]
    fixed = polygon([(0, 0), (-0.1, -0.1), (0, -0.2), (0.1, -0.1)])
    body = Body(rhombus, (0, 0.3, 0), (0, -1, 0), mass=2.0)
    run = fsm_dyn.simulate(build(scene({"gem": body}, {"tip": fixed}, friction=0, restitution=0.5, gravity=None)), 0.5)
    (blow,) = run.transitions
    assert blow.time == pytest.approx(0.2, abs=1e-12)
    assert run.u[-1] == pytest.approx([0.0, 0.5, 0.0], abs=1e-12)
    assert losses(run) == pytest.approx([0.75], abs=1e-12)


@pytest.mark.parametrize(("before", "after"), [((1, -2), (0, -2)), ((2, -1), (2, 0))])
def test_a_box_that_cannot_turn_passes_a_corner_along_the_gentler_face(before, after):
    start = (-0.1 - 0.1 * before[0], 0.1 - 0.1 * before[1], 0)
    body = Body(rectangle(0.2, 0.2), start, (*before, 0))
    model = scene({"box": body}, Tiles([(0, 2, 0.0)]).shapes, friction=0, gravity=None)
    run = fsm_dyn.simulate(build({**model, "constraints": {"upright": {"position": "q_box"}}}), until=0.3)
    blow = run.transitions[0]
    assert blow.time == pytest.approx(0.1, abs=1e-12)
    assert blow.u_after == pytest.approx([*after, 0], abs=1e-12)
    assert run.u[-1] == pytest.approx([*after, 0], abs=1e-12)


FLOOR_AND_WALL = {
    "two polygons": {
        "base": polygon([(-2, -1), (0, -1), (0, 0), (-2, 0)]),
        "wall": polygon([(0, -1), (1, -1), (1, 1), (0, 1)]),
    },
    "floor below": {
        "base": polygon([(-2, -1), (1, -1), (1, 0), (-2, 0)]),
        "wall": polygon([(0, 0), (1, 0), (1, 1), (0, 1)]),
    },
    "one L": {"l": polygon([(-2, -1), (1, -1), (1, 1), (0, 1), (0, 0), (-2, 0)])},
    "chain": {"l": {"segment": {"points": points([(-2, 0), (0, 0)])}, "side": "N.y"},
              "w": {"segment": {"points": points([(0, 1), (0, 0)])}, "side": "-N.x"}},
}  # fmt: skip


@pytest.mark.parametrize("name", FLOOR_AND_WALL)
def test_a_brick_stops_in_the_corner_of_floor_and_wall(name):
    body = brick(0.25, 0.1, -0.5, speed=(1, 0, 0), mass=2.0)
    run = fsm_dyn.simulate(build(scene({"box": body}, FLOOR_AND_WALL[name])), until=1.0)
    time, v = slowed(1.0, 0.1, 0.375)
    assert (time, v) == pytest.approx((0.4953593, 0.5140525), abs=5e-8)
    (blow,) = run.transitions
    assert blow.time == pytest.approx(time, abs=1e-9)
    assert blow.u_before == pytest.approx([v, 0, 0], abs=1e-9)
    assert losses(run) == pytest.approx([v**2], abs=1e-9)
    assert run.q[-1] == pytest.approx([-0.125, 0.05, 0.0], abs=1e-9)
    assert run.u[-1] == pytest.approx(0.0, abs=1e-12)


# -- time stepping -------------------------------------------------------------------------------------------------

SLIDES = {
    "seam, polygon": scene({"box": brick(0.2, 0.2, -0.5, speed=(2, 0, 0))}, Tiles([(-2, 0, 0.0), (0, 2, 0.0)]).shapes),
    "seam, segment": scene(
        {"box": brick(0.2, 0.2, -0.5, speed=(2, 0, 0))}, Tiles([(-2, 0, 0.0), (0, 2, 0.0)], "segment").shapes
    ),
    "concave": scene({"box": brick(0.25, 0.1, -0.5, speed=(1, 0, 0), mass=2.0)}, FLOOR_AND_WALL["one L"]),
}


def converges(graph, until, bound, **given):
    """Hold runs by time stepping to an error of ``bound`` times the step against the one that locates its events."""
    exact = fsm_dyn.simulate(graph, until=until, **given)
    for step in (1.94e-3, 2.425e-4):
        run = fsm_dyn.simulate(graph, until=until, method="moreau_jean", step=step, **given)
        assert np.abs(run.q[-1] - exact.q[-1]).max() <= bound * step


@pytest.mark.parametrize("name", SLIDES)
def test_time_stepping_chooses_corners_by_their_predicted_gaps(name):
    converges(build(SLIDES[name]), 0.7, 1.0)


def test_time_stepping_converges_where_corners_lie_flush(stack):
    converges(stack, 1.4, 10.0)
    converges(two_materials(0.1, 0.3), 0.5, 1.0, inputs={"push": 0.0})


# -- slopes of shared forces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", "online"])
def test_two_dominoes_without_friction_slide_over_the_edge(strategy):
    """They share their weights through a contact that cannot rub; how far its laws admit others bends where one tips.

    Differences across the bend gave a slope to a guard that is zero all along, and steps shrank without end.
    """
    speed, edge = 1.5706212677314964, 0.2
    start = {"initial": {"vx0": speed}, "parameters": {"mu": 0.0}, "rtol": 1e-10, "atol": 1e-12}
    run = fsm_dyn.simulate(build(dominoes(2)), until=0.11, strategy=strategy, max_steps=500, **start)
    meet = 0.06 / speed
    tips = meet + (edge - 0.15) / (speed / 2)
    times = [t.time for t in run.transitions]
    assert min(abs(t - meet) for t in times) <= 1e-9
    assert min(abs(t - tips) for t in times) <= 1e-8
    assert run.sample([tips]).q[0, 3] == pytest.approx(edge, abs=1e-9)


@pytest.mark.parametrize("push", [2.0, 2.9653170516275473])
def test_a_pushed_domino_tips_before_its_two_contacts_meet_at_the_edge(push):
    """Their forces have poles where they meet; a step up to there, without a look at what is before, saw no release.

    The push through the domino behind holds it upright: ``m g (x - edge) = push / 2 · tall / 2``.
    """
    start = {"inputs": {"push": push}, "parameters": {"mu": 0.0}, "rtol": 1e-10, "atol": 1e-12}
    run = fsm_dyn.simulate(build(dominoes(2)), until=1.0, **start)
    meet = sqrt(2 * 0.06 / push)
    v, a = push * meet / 2, push / 2  # of both, after a plastic impact
    way = 0.05 + a * 0.1 / G
    tips = meet + (sqrt(v**2 + 2 * a * way) - v) / a
    fell = np.flatnonzero(np.abs(run.q[:, 5]) > 1e-9)[0]
    assert run.t[fell - 1] <= tips + 1e-3
    assert run.sample([tips]).q[0, 5] == pytest.approx(0.0, abs=1e-9)
    assert run.sample([tips + 5e-3]).q[0, 5] < -1e-6
    assert run.energy.relative_residual <= 1e-8


# -- guards --------------------------------------------------------------------------------------------------------


def closing(graph, mode, q):
    """The values of all guards of gaps in a mode of one body at ``q``."""
    return [value for text, value, _ in graph.modes[mode].guards(0.0, q, np.zeros(3)) if text.startswith("gap of")]


def out_of(corners, outline):
    """How far outside the faces of a convex polygon points are: the largest of their distances."""
    edge = np.roll(outline, -1, axis=0) - outline
    normal = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    return np.einsum("ei,cei->ce", normal, corners[:, None] - outline).max(axis=1)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (5, 3)])
def test_two_convex_polygons_have_one_closing_guard_for_each_corner(n, m):
    def regular(count, radius):
        angle = 2 * np.pi * np.arange(count) / count
        return [(radius * float(np.cos(w)), radius * float(np.sin(w))) for w in angle]

    one, other = regular(n, 0.1), regular(m, 0.2)
    graph = build(scene({"one": Body(one, (0, 1, 0.2))}, {"other": polygon(other)}))
    set_back = 1e-7 * 0.4  # of a face that a neighbour of the corner lies behind, by at most the longest edge
    random = np.random.default_rng(n)
    for _ in range(5):
        q = random.uniform(-3, 3, 3)
        moved, fixed = placed(one, q)[0], np.array(other)
        guards = closing(graph, "all_free", q)
        assert len(guards) == n + m
        expected = np.concatenate([out_of(moved, fixed), out_of(fixed, moved)])
        np.testing.assert_allclose(sorted(guards), np.sort(expected), atol=set_back, rtol=0)


def test_corners_that_touch_have_no_closing_guard():
    graph = build(scene({"box": brick(0.2, 0.1, 0.3)}, Tiles([(-1, 1, 0.0)]).shapes))
    simulator = fsm_dyn.Simulator(graph)
    lying = simulator.run(0.01, strategy="compiled")
    flying = simulator.run(0.01, strategy="compiled", initial={"y_box": 1.0})
    graph = simulator.extended_graph()
    assert len(closing(graph, flying.modes[-1], flying.q[-1])) == 8
    assert len(closing(graph, lying.modes[-1], lying.q[-1])) == 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("one", "other", "way"), [(0.1, 0.3, 1), (0.3, 0.1, 1), (0.1, 0.3, -1)])
def test_time_stepping_slides_from_one_material_to_another(kind, one, other, way):
    """To the order of the step, wherever in a step a corner comes to the seam: the next tile supports it at once."""
    left, right = (one, other) if way > 0 else (other, one)
    graph = two_materials(left, right, kind=kind, x=-0.3 * way, speed=2.0 * way)
    exact = fsm_dyn.simulate(graph, 0.4, inputs={"push": 0.0}, rtol=1e-10)
    for step in (1e-3, 7e-4, 3e-4, 1.3e-4, 1e-4):
        run = fsm_dyn.simulate(graph, 0.4, inputs={"push": 0.0}, method="moreau_jean", step=step)
        assert run.q[-1] == pytest.approx(exact.q[-1], abs=step)
        assert run.u[-1] == pytest.approx(exact.u[-1], abs=2.0 * step)
        assert np.abs(run.q[:, 1:] - [0.05, 0.0]).max() <= step**2
        assert not run.warnings
