"""Convex polyhedra in space on each other, against brute force and closed forms."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.core.errors import ModelError, RunError
from fsm_dyn.language.shape_geometry import solid_corners
from tests.exports.building import built
from tests.exports.test_c99 import check_same
from tests.physics.polyhedra import (
    MASS,
    SIZE,
    TABLE,
    G,
    on_free_base,
    polyhedron,
    random_corners,
    rotation,
    separation,
    two,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*nothing uses")  # of sizes of other shapes

INERTIA = MASS * (np.sum(np.square(SIZE)) - np.square(SIZE)) / 12.0
CORNERS = np.array([(x, y, z) for z in (-1, 1) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


@pytest.fixture(scope="module")
def smooth():
    return fsm_dyn.compile(two())


@pytest.fixture(scope="module")
def rough():
    return fsm_dyn.compile(two(friction=0.4))


# -- Geometry ------------------------------------------------------------------------------------------------


def check_separation(graph, random, count):
    """Compare separation and distance of random placements, and what contacts may close, with brute force."""
    shapes = graph.automaton.mechanism.shapes
    upper, lower = (solid_corners(shapes[name], graph.values) for name in ("block", "table"))
    turns = random.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    places = random.uniform(-1.0, 1.0, (count, 3)) * [0.45, 0.4, 0.3]
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    names = list(graph.automaton.terms.layout.x)
    x = np.tile(start.x, (count, 1))
    x[:, [names.index(name) for name in ("x", "y", "z", "e0", "e1", "e2", "e3")]] = np.hstack([places, turns])
    terms = graph.automaton.terms.evaluate(0.0, x, np.tile(start.context, (count, 1)))
    gaps = terms["residual"][:, [contact.normal_row for contact in graph.automaton.contacts]]
    facets = terms["aspect"] >= 0.0
    within = facets & (terms["reach"] >= 0.0) & (gaps >= 0.0)
    crossing = np.array([contact.crossing for contact in graph.automaton.contacts])
    guards = np.maximum(gaps, -terms["firm"])[:, crossing]  # in own units of length, whose sign counts
    compared = 0
    for k in range(count):
        apart, distance = separation(upper @ rotation(turns[k]).T + places[k], lower)
        assert gaps[k][facets[k]].max() == pytest.approx(apart, abs=1e-9)
        if apart <= 0.0:
            continue
        assert guards[k].min() > 0.0  # no edges seem to meet while the bodies are apart
        if within[k].any():
            compared += 1
            assert gaps[k][within[k]].min() == pytest.approx(distance, abs=1e-9)
        else:
            assert distance > apart  # nearest at a corner or an edge, from where no contact begins
    return compared


def test_boxes_are_as_far_apart_as_by_brute_force(smooth):
    assert check_separation(smooth, np.random.default_rng(46), 300) > 80


@pytest.mark.long
def test_ten_thousand_placements_of_boxes_and_polyhedra(smooth):
    random = np.random.default_rng(47)
    assert check_separation(smooth, random, 5000) > 1500
    for sizes in ((4, 5), (5, 6), (6, 4), (7, 5), (4, 4)):
        upper, lower = (polyhedron(random_corners(random, size)) for size in sizes)
        upper["polyhedron"]["frame"] = "B"
        assert check_separation(fsm_dyn.compile(two(upper=upper, lower=lower)), random, 1000) > 100


def test_the_faces_of_a_hull():
    cube = fsm_dyn.load(two(lower=polyhedron(0.2 * CORNERS))).shapes["table"]
    assert sorted(map(len, cube.corners_of_faces)) == [4] * 6
    assert len(cube.edges) == 12
    places = 0.2 * CORNERS
    for face in cube.corners_of_faces:  # anticlockwise seen from outside
        first, second, third = places[list(face[:3])]
        assert np.cross(second - first, third - first) @ first > 0.0


# -- Impacts -------------------------------------------------------------------------------------------------


def struck(run, arm, normal, bounce):
    """Return speeds after a frictionless impact at an arm from the centre, by Newton and Euler, and compare."""
    (first,) = run.transitions[:1]
    at = int(np.searchsorted(run.t, first.time))
    before, after = run.u[at], run.u[at + 1]
    turn = rotation([run[f"e{i}"][at] for i in range(4)])
    lever = turn.T @ np.cross(arm(turn), normal)  # in the body's axes, as w1 to w3
    inverse = 1.0 / MASS + lever @ (lever / INERTIA)
    speed = normal @ before[:3] + lever @ before[3:]
    impulse = -(1.0 + bounce) * speed / inverse
    assert impulse > 0.0
    assert after[:3] - before[:3] == pytest.approx(impulse * normal / MASS, abs=1e-9)
    assert after[3:] - before[3:] == pytest.approx(impulse * lever / INERTIA, abs=1e-9)
    assert run.energy.relative_residual < 1e-9


def test_a_corner_strikes_a_face(smooth):
    run = fsm_dyn.simulate(smooth, 0.45, initial={"z": 0.8, "e0": 0.9, "e1": 0.35, "e2": 0.2, "vx": 0.1, "w3": 1.0})
    assert len(run.transitions) >= 1

    def arm(turn):
        return min((turn @ (corner * SIZE) / 2.0 for corner in CORNERS), key=lambda place: place[2])

    struck(run, arm, np.array([0.0, 0.0, 1.0]), 0.2)


def test_an_edge_strikes_an_edge(smooth):
    """A long block, turned about the vertical and tilted, falls across a narrow table; no corner is near."""
    sizes = {"a": 1.0, "b": 0.06, "c": 0.06, "q": 0.08, "p": 1.0}
    start = {"z": 0.6, "e0": np.cos(0.7), "e3": np.sin(0.7)}
    roll = 0.3  # about its own long axis, after the turn
    e = np.array([np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0])
    s, v = np.cos(0.7), np.array([0.0, 0.0, np.sin(0.7)])
    start |= dict(zip(("e0", "e1", "e2", "e3"),
                      (s * e[0] - v @ e[1:], *(s * e[1:] + e[0] * v + np.cross(v, e[1:]))), strict=True))  # fmt: skip
    run = fsm_dyn.simulate(smooth, 0.5, initial={**start, "w2": 0.3}, parameters=sizes)
    first = run.transitions[0]
    assert "edge" in str(first)
    at = int(np.searchsorted(run.t, first.time))
    momentum = MASS * (run.u[at + 1][:3] - run.u[at][:3])
    turn = rotation([run[f"e{i}"][at] for i in range(4)])
    normal = np.cross(turn[:, 0], [1.0, 0.0, 0.0])
    normal *= np.sign(normal[2]) / np.linalg.norm(normal)
    assert momentum / np.linalg.norm(momentum) == pytest.approx(normal, abs=1e-9)
    assert run.energy.relative_residual < 1e-9


def test_energy_is_never_gained_by_a_tumbling_box(rough):
    run = fsm_dyn.simulate(rough, 1.0, initial={"z": 0.4, "e0": 0.9, "e1": 0.3, "e2": 0.1, "e3": 0.05, "vx": 0.3})
    assert len(run.transitions) > 3
    assert run.energy.relative_residual < 1e-9
    energy = run["energy.kinetic"] + run["energy.potential"]
    assert np.diff(energy).max() < 1e-9 * energy[0]


# -- At rest, sliding, tipping -------------------------------------------------------------------------------


def test_a_box_slides_on_a_box_as_on_a_plane(rough):
    lower = {"plane": {"from": "Q"}, "side": "N.z"}
    points = {**two()["points"], "Q": {"from": "O", "at": "r/2*N.z"}}
    plane = fsm_dyn.compile(two(friction=0.4, lower=lower, points=points))
    start = {"z": (SIZE[2] + TABLE[2]) / 2, "vx": 1.0, "w3": 2.0}
    wide = {"p": 4.0, "q": 4.0}
    one, other = (fsm_dyn.simulate(graph, 0.4, initial=start, parameters=wide) for graph in (rough, plane))
    assert one.labels[0] == "rubs: face z- flat on face z+ of table, slide"
    assert [t.time for t in one.transitions] == pytest.approx([t.time for t in other.transitions], abs=1e-9)
    for name in ("x", "y", "z", "e0", "e3"):
        assert one[name][-1] == pytest.approx(other[name][-1], abs=1e-9)


@pytest.mark.parametrize("over", [0.0, 0.12, 0.22])
def test_a_box_rests_within_the_edge(rough, over):
    """Aligned, hanging over, and with its corners on those of the table; the forces are its weight."""
    sizes = {"p": SIZE[0], "q": SIZE[1]} if over == 0.0 else {}
    run = fsm_dyn.simulate(rough, 0.1, initial={"z": 0.15, "x": over}, parameters=sizes)
    assert run.labels[-1] == "rubs: face z- flat on face z+ of table, stick"
    forces = [run[f"lambda.{name}.normal"][-1] for name in run.model.automaton.terms.layout.contacts]
    assert np.nansum(forces) == pytest.approx(MASS * G, rel=1e-9)
    assert np.nanmin(forces) >= -1e-9
    assert run["z"][-1] == pytest.approx(0.15, abs=1e-9)


def test_a_box_tips_over_the_edge(rough):
    """The centre beyond the edge by d: about the edge, (I + m (c²/4 + d²)) w' = m g d at first."""
    d = 0.05
    run = fsm_dyn.simulate(rough, 1e-3, initial={"z": 0.15, "x": TABLE[0] / 2 + d}, parameters={"mu": 5.0})
    rate = MASS * G * d / (INERTIA[1] + MASS * (SIZE[2] ** 2 / 4 + d**2))
    assert run["w2"][-1] / run.t[-1] == pytest.approx(rate, rel=1e-4)
    assert run.labels[-1] == "rubs: face z- on edge 6-7 of table, stick"


def test_a_box_leaves_over_the_edge(rough):
    start = {"z": 0.15, "vx": 2.0, "w3": 1.0}
    run = fsm_dyn.simulate(rough, 0.6, initial=start, parameters={"mu": 0.1})
    assert run.labels[-1] == "all_free"
    assert run["z"][-1] < 0.0
    assert run.energy.relative_residual < 1e-9


@pytest.mark.long
def test_the_order_of_corners_does_not_matter(smooth):
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    upper = polyhedron((CORNERS * SIZE / 2)[order])
    upper["polyhedron"]["frame"] = "B"
    start = {"z": 0.4, "e0": 0.9, "e1": 0.3, "e2": 0.1, "vx": 0.3}
    one, other = (fsm_dyn.simulate(graph, 0.5, initial=start) for graph in (smooth, fsm_dyn.compile(two(upper=upper))))
    assert [t.time for t in one.transitions] == pytest.approx([t.time for t in other.transitions], abs=1e-8)
    assert one.q[-1] == pytest.approx(other.q[-1], abs=1e-7)


def test_mirrored(smooth):
    """At the plane y = 0; a box is its own image."""
    start = {"z": 0.4, "y": 0.02, "e0": 0.9, "e1": 0.3, "e2": 0.1, "e3": 0.05, "vx": 0.3, "vy": 0.1, "w2": 0.4}
    sign = {"y": -1, "e1": -1, "e3": -1, "vy": -1, "w1": -1, "w3": -1}
    image = {name: value * sign.get(name, 1) for name, value in start.items()}
    one, other = (fsm_dyn.simulate(smooth, 0.5, initial=initial) for initial in (start, image))
    assert len(one.transitions) == len(other.transitions) > 0
    for name in ("x", "y", "z", "w1", "w2"):
        assert other[name][-1] == pytest.approx(sign.get(name, 1) * one[name][-1], abs=1e-7)


def test_time_stepping_stops_as_far(rough):
    start = {"z": 0.15, "vx": 0.8}
    run = fsm_dyn.simulate(rough, 0.3, initial=start, method="moreau_jean", step=1e-3, parameters={"p": 4.0, "q": 4.0})
    assert run["x"][-1] == pytest.approx(0.8**2 / (2 * 0.4 * G), rel=5e-3)
    assert run["z"][-1] == pytest.approx(0.15, abs=1e-5)


# -- Refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [{}, {"method": "moreau_jean", "step": 1e-3}])
@pytest.mark.parametrize(
    "sizes", [{}, {"a": 1.0, "b": 0.05, "c": 0.05, "p": 0.1, "q": 1.0, "r": 0.1}], ids=["corners", "edges alone"]
)
def test_a_start_inside_is_no_start(smooth, sizes, method):
    with pytest.raises(RunError, match="penetration"):
        fsm_dyn.simulate(smooth, 0.1, initial={"z": 0.02}, parameters=sizes, **method)


@pytest.mark.parametrize(
    ("corners", "more", "words"),
    [
        (0.1 * CORNERS[:4], {}, "encloses nothing"),
        (np.vstack([0.1 * CORNERS, [[0.0, 0.0, 0.0]]]), {}, "corner 9 .* is inside its convex hull"),
        (np.vstack([0.1 * CORNERS, [[0.0, 0.0, 0.1]]]), {}, "corner 9 .* is inside its convex hull"),
        (0.1 * CORNERS, {"faces": [[1, 2, 3], [1, 2, 5], [1, 4, 5], [2, 3, 6]]}, "not those of its convex hull"),
        (0.1 * CORNERS, {"faces": [[1, 2]]}, "a face has three corners or more"),
    ],
)
def test_what_is_no_convex_polyhedron(corners, more, words):
    with pytest.raises(ModelError, match=words):
        fsm_dyn.load(two(lower=polyhedron(corners, **more)))


def test_compliance_between_polyhedra_is_refused_by_name():
    model = two()
    model["contacts"]["rubs"] = {"between": ["block", "table"], "compliant": {"stiffness": "1e4 N/m"}}
    with pytest.raises(ModelError, match="whose edges touch, is compliant"):
        fsm_dyn.load(model)


def test_a_ball_rolls_off_a_box():
    """A ball falls past the middle of an edge: the impulse is along the line from the edge to its centre."""
    ball = {"sphere": {"frame": "B", "center": "P", "radius": "0.1 m"}}
    graph = fsm_dyn.compile(two(upper=ball))
    aside = 0.06
    run = fsm_dyn.simulate(graph, 0.5, initial={"z": 0.5, "x": TABLE[0] / 2 + aside})
    first = run.transitions[0]
    height = np.sqrt(0.1**2 - aside**2)
    assert first.time == pytest.approx(np.sqrt(2 * (0.5 - TABLE[2] / 2 - height) / G), rel=1e-9)
    at = int(np.searchsorted(run.t, first.time))
    change = run.u[at + 1][:3] - run.u[at][:3]
    assert change / np.linalg.norm(change) == pytest.approx([aside / 0.1, 0.0, height / 0.1], abs=1e-9)


@pytest.mark.long
def test_c99_has_the_same_bits(tmp_path):
    """A plank that strikes another one with its edges, and rebounds."""
    model = two(initial={"z": "0.3 m", "e0": np.cos(0.7), "e3": np.sin(0.7), "w1": "0.2 rad/s"}, restitution=0.6)
    model["parameters"] |= {"a": "1 m", "b": "0.06 m", "c": "0.06 m", "q": "0.08 m"}
    model["transitions"] = [{"from": "*", "when": "t - 0.25 s", "stop": True}]
    graph = fsm_dyn.compile(model)
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "two_polyhedra"))


@pytest.mark.long
def test_a_stack_of_two_free_boxes():
    """Both turned against each other; it rests and carries its weight."""
    model = two(friction=0.4)
    on_free_base(model)
    model["shapes"]["ground"] = {"plane": {"from": "O"}, "side": "N.z"}
    model["contacts"]["stands"] = {"between": ["table", "ground"], "friction": "mu"}
    model["initial"] = {
        "z2": f"{TABLE[2] / 2} m",
        "z": f"{TABLE[2] + SIZE[2] / 2} m",
        "e0": np.cos(0.4),
        "e3": np.sin(0.4),
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.2)
    assert run.labels[-1].startswith("rubs flat, stick; stands flat, stick")
    assert run["z"][-1] == pytest.approx(TABLE[2] + SIZE[2] / 2, abs=1e-9)
    names = run.model.automaton.terms.layout.contacts
    force = {entry: np.nansum([run[f"lambda.{name}.normal"][-1] for name in names if name.startswith(entry)])
             for entry in ("rubs", "stands")}  # fmt: skip
    assert force["rubs"] == pytest.approx(MASS * G, rel=1e-9)
    assert force["stands"] == pytest.approx(4.0 * MASS * G, rel=1e-9)
    assert run.energy.relative_residual < 1e-12


@pytest.mark.long
def test_a_tetrahedron_falls_and_rattles_in_steps_of_a_size():
    """At the limit of friction of a corner at rest the slip begins in any direction: no steps of nanoseconds."""
    shape = polyhedron([(0.15, 0.1, -0.05), (-0.15, 0.1, -0.05), (0.0, -0.15, -0.05), (0.0, 0.0, 0.12)], frame="B")
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(two(friction=0.4, upper=shape)))
    for seed in range(6):
        random = np.random.default_rng(seed)
        e = random.normal(size=4)
        start = {"z": 0.4} | dict(zip(("e0", "e1", "e2", "e3"), e / np.linalg.norm(e), strict=True))
        start |= {"vx": 0.3 * random.normal(), "vy": 0.3 * random.normal(), "w3": random.normal()}
        run = simulator.run(0.8, initial={name: float(value) for name, value in start.items()})
        assert run.energy.relative_residual < 1e-6
        assert np.histogram(run.t, np.arange(0.0, 0.8, 1e-5))[0].max() < 80
