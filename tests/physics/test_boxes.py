"""Boxes in space: eight corners on planes and in hollow spheres, against closed forms."""

from math import sqrt

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.core.errors import ModelError
from fsm_dyn.exports.export import prepared
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.frames import FrameEncoder
from fsm_dyn.plot.scene_projection import project
from tests.exports.building import built, quick_units
from tests.exports.test_c99 import check_same
from tests.exports.test_html import bits, in_node

A, B, C, G, MU = 0.3, 0.2, 0.1, 9.81, 0.4


def brick(contact=None, **more):
    """A brick on level ground; it is turned by Euler parameters and slides with 1 m/s."""
    return {
        "fsm_dyn": 1,
        "name": "brick",
        "parameters": {"m": "2 kg", "a": f"{A} m", "b": f"{B} m", "c": f"{C} m", "g": f"{G} m/s^2", "mu": MU},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
        "bodies": {"brick": {"frame": "B", "center": "P", "mass": "m", "inertia": {
            "xx": "m*(b**2 + c**2)/12", "yy": "m*(a**2 + c**2)/12", "zz": "m*(a**2 + b**2)/12"}}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)", "w1": "dot(omega(B), B.x)",
                   "w2": "dot(omega(B), B.y)", "w3": "dot(omega(B), B.z)"},
        "shapes": {"block": {"box": {"frame": "B", "size": ["a", "b", "c"]}},
                   "ground": {"plane": {"from": "O"}, "side": "N.z"}},
        "contacts": {"rubs": contact or {"between": ["block", "ground"], "friction": "mu", "restitution": 0.2}},
        "inputs": {"lift": "N"},
        "loads": [{"gravity": "-g*N.z"}, {"force": "lift*N.x", "at": "P"}],
        "initial": {"z": "c/2", "vx": "1 m/s"},
        "transitions": [{"from": "*", "when": "t - 0.5 s", "stop": True}],
        "outputs": {"height": "z"},
        **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(brick())


@pytest.mark.parametrize(
    ("method", "options", "close"),
    [("dopri5", {}, 1e-9), ("rk4", {"step": 1e-3}, 1e-8), ("radau", {}, 1e-7), ("bdf", {}, 1e-6)],
)
def test_a_brick_slides_on_its_face_and_stops(graph, method, options, close):
    run = fsm_dyn.simulate(graph, 0.5, method=method, **options)
    stops = run.transitions[0]
    assert stops.time == pytest.approx(1.0 / (MU * G), rel=close)
    assert run.labels[0] == "rubs: face z- flat on ground, slide"
    assert run.labels[-1] == "rubs: face z- flat on ground, stick"
    assert run["x"][-1] == pytest.approx(0.5 / (MU * G), rel=10 * close)
    assert sum(run[f"lambda.rubs_{k}.normal"][-1] for k in range(1, 5)) == pytest.approx(2.0 * G, rel=1e-9)
    assert run.energy.relative_residual < 1e-9


@pytest.mark.parametrize("strategy", ["online", "auto"])
def test_strategies_agree(graph, strategy):
    run = fsm_dyn.simulate(graph, 0.5, strategy=strategy)
    assert run.transitions[0].time == pytest.approx(1.0 / (MU * G), rel=1e-9)


def test_time_stepping_slides_as_far():
    model = {key: entry for key, entry in brick().items() if key != "transitions"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5, method="moreau_jean", step=1e-3)
    assert run["x"][-1] == pytest.approx(0.5 / (MU * G), rel=5e-3)
    assert run["z"][-1] == pytest.approx(C / 2, abs=1e-5)


def test_a_brick_on_an_edge_falls_with_the_parallel_axis_inertia(graph):
    """Friction is high enough to stick; about the edge I = m (a² + c²)/3."""
    start = 0.3  # rad about y, from lying flat, edge at x = a/2 on the ground
    low = A / 2 * np.sin(start) + C / 2 * np.cos(start)
    run = fsm_dyn.simulate(
        graph, 0.02, initial={"z": low, "vx": 0.0, "e0": np.cos(start / 2), "e2": np.sin(start / 2)},
        parameters={"mu": 2.0},
    )  # fmt: skip
    assert run.labels[0] == "rubs: edge 2-3 on ground, stick"
    arm = A / 2 * np.cos(start) - C / 2 * np.sin(start)
    rate = 2.0 * G * arm / (2.0 * (A**2 + C**2) / 3.0)
    assert -run["w2"][-1] / 0.02 == pytest.approx(rate, rel=1e-2)
    assert run.energy.relative_residual < 1e-9


def test_a_tumbling_brick_comes_to_rest_on_a_face(graph):
    start = {"z": 0.3, "vx": 0.3, "e0": sqrt(0.9), "e1": 0.3, "e2": 0.1}
    model = {key: entry for key, entry in brick().items() if key != "transitions"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 2.0, initial=start)
    assert run.labels[-1] == "rubs: face z- flat on ground, stick"
    assert run["z"][-1] == pytest.approx(C / 2, abs=1e-8)
    assert any("corner" in label for label in run.labels)
    assert run.energy.relative_residual < 1e-9
    model["initial"] = {"z": "0.3 m", "vx": "1 m/s"}
    assert fsm_dyn.verify(fsm_dyn.load(model), states=3).passed


def test_a_compliant_brick_sinks_by_its_weight():
    springs = {"between": ["block", "ground"], "compliant": {"stiffness": "2000 N/m", "dissipation": "1 s/m"}}
    model = brick(springs, initial={"z": "c/2"})
    model["transitions"] = []
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 3.0)
    assert run["z"][-1] == pytest.approx(C / 2 - 2.0 * G / (4 * 2000), abs=1e-5)


def test_four_corners_rest_in_a_bowl():
    """In a hollow sphere of 0.5 m the lower four corners touch where the face's circle has its radius."""
    model = brick({"between": ["block", "bowl"]}, initial={"z": "sqrt((0.5 m)**2 - (a**2 + b**2)/4)*(-1) + c/2"})
    model["shapes"]["bowl"] = {"sphere": {"center": "O", "radius": "0.5 m"}, "side": "inside"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.2)
    assert run["z"][-1] == pytest.approx(C / 2 - sqrt(0.25 - (A**2 + B**2) / 4), abs=1e-9)
    assert [run.modes[-1].count(f"rubs_{k}_closed") for k in range(1, 9)] == [1] * 4 + [0] * 4


@pytest.mark.parametrize(
    "other", [{"disk": {"center": "O", "axis": "N.z", "radius": "1 m"}}, {"circle": {"center": "O", "radius": "1 m"}}]
)
def test_disks_and_planar_shapes_are_refused_by_name(other):
    model = brick({"between": ["block", "other"]})
    model["shapes"]["other"] = other
    with pytest.raises(ModelError, match="nothing of 'block' can touch 'other'") as raised:
        fsm_dyn.load(model)
    assert "boxes and polyhedra against planes, spheres, points and each other" in str(raised.value)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"frame": "B", "size": ["a", "b"]}, "a box has three lengths"),
        ({"frame": "B", "size": ["a", "b", "-c"]}, "a length of shape 'block' is not positive"),
        ({"frame": "B", "size": ["a", "b", "1 kg"]}, "a length of shape 'block'"),
    ],
)
def test_sizes_that_are_refused(form, words):
    model = brick()
    model["shapes"]["block"] = {"box": form}
    with pytest.raises(ModelError, match=words):
        fsm_dyn.load(model)


def test_c99_and_pages_have_the_same_bits(graph, tmp_path):
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "brick"))
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    found = in_node(prepared(graph))
    assert found["made"] == len(run.transitions)
    assert found["x"] == bits([*run.q[-1], *run.u[-1]])


def test_a_unit_stops_where_python_does(graph, tmp_path, monkeypatch):
    pytest.importorskip("fmpy")
    from tests.exports.importer import Importer, compare

    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path, "fmu3") / "brick.fmu"
    compare(Importer(path, tmp_path), path, fsm_dyn.Simulator(graph).run(strategy="compiled"), 1e-7)


def test_boxes_and_planes_are_drawn(graph):
    """Three faces of a box look at the viewer, where it is; the plane is as wide as it, below it."""
    run = fsm_dyn.simulate(graph, 0.3)
    faces = [shape for shape in run.model.scene.shapes if shape.body == "block"]
    assert np.ptp(np.concatenate([face.points for face in faces]), axis=0) == pytest.approx([A, B, C])
    view = project(run, run.model.scene, np.array([0.0, 0.3]))
    shown = [np.isfinite(outline[0]).all() for outline in view.shapes]
    assert sum(shown) == 3 + 1
    assert plot.motion(run).axes
    start, layout = initial_state(graph.automaton, graph.values, graph.parameters), graph.automaton.terms.layout
    columns = TickColumns(layout.w, layout.x, 0, ())
    encoder = FrameEncoder(graph, columns, start.x, start.context, coupled=False)
    (block,) = [one for one in encoder.solids if one.kind == "box"]
    assert np.ptp(block.payload()["corners"], axis=0) == pytest.approx([A, B, C])
    assert [len(face) for face in block.payload()["faces"]] == [4] * 6
    assert block.radius == pytest.approx(0.5 * sqrt(A**2 + B**2 + C**2))
