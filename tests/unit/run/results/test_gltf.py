"""Animations as glTF: the file by its specification, and the motion of its nodes against the run."""

import json
import struct

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.language import loader
from fsm_dyn.run.viewer_files import extruded

SIZES = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


def opened(path):
    """Return the document of a .glb and its accessors as arrays, with the checks of the specification."""
    data = path.read_bytes()
    magic, version, size, length, kind = struct.unpack("<IIIII", data[:20])
    assert (magic, version, size, kind) == (0x46546C67, 2, len(data), 0x4E4F534A)
    document = json.loads(data[20 : 20 + length])
    count, kind = struct.unpack("<II", data[20 + length : 28 + length])
    assert kind == 0x004E4942
    assert length % 4 == count % 4 == 0
    buffer = data[28 + length :]
    assert 0 <= count - document["buffers"][0]["byteLength"] < 4
    arrays = []
    for accessor in document["accessors"]:
        view = document["bufferViews"][accessor["bufferView"]]
        kind = np.dtype({5126: "<f4", 5125: "<u4"}[accessor["componentType"]])
        assert view["byteOffset"] % kind.itemsize == 0
        width = SIZES[accessor["type"]]
        assert view["byteLength"] == accessor["count"] * width * kind.itemsize
        array = np.frombuffer(buffer, kind, accessor["count"] * width, view["byteOffset"]).reshape(-1, width)
        assert (array.min(axis=0).tolist(), array.max(axis=0).tolist()) == (accessor["min"], accessor["max"])
        arrays.append(array)
    return document, arrays


def turned(q, vectors):
    """Return vectors turned by quaternions x, y, z, w."""
    u, w = q[..., :3], q[..., 3:]
    return vectors + 2.0 * np.cross(u, np.cross(u, vectors) + w * vectors)


THROWN = """
fsm_dyn: 1
name: thrown
parameters: {w: 9 rad/s, v: 2 m/s}
coordinates: {x: m, z: m, q: rad}
frames:
  A: {parent: N, rotate: {x: 0.4 rad}}
  B: {parent: A, rotate: {z: q}}
points: {C: {from: O, at: x*N.x + z*N.z}}
bodies: {brick: {frame: B, center: C, mass: 1 kg, inertia: {xx: 1 kg*m^2, yy: 1 kg*m^2, zz: 1 kg*m^2}}}
shapes:
  hull: {box: {frame: B, size: [30 cm, 20 cm, 10 cm]}}
  knob: {sphere: {frame: B, center: C, radius: 4 cm}}
  ground: {plane: {from: O}, side: N.z}
contacts: {lands: {between: [hull, ground]}}
loads: [{gravity: -9.81 m/s^2*N.z}]
initial: {z: 5 m, x_dot: v, q_dot: w}
"""


def test_nodes_move_as_the_bodies(tmp_path):
    """A brick thrown with a spin about one of its axes: a parabola and a steady turn of more than half a turn."""
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load(text=THROWN)), 0.9)
    document, arrays = opened(run.to_gltf(tmp_path / "run.glb"))
    root, *nodes = document["nodes"]
    assert turned(np.array(root["rotation"]), np.array([0.0, 0.0, 1.0])) == pytest.approx([0.0, 1.0, 0.0])
    animation = document["animations"][0]
    moved = {}
    for channel in animation["channels"]:
        sampler = animation["samplers"][channel["sampler"]]
        t, values = arrays[sampler["input"]][:, 0].astype(float), arrays[sampler["output"]].astype(float)
        assert len(t) == len(values) == 55
        moved[document["nodes"][channel["target"]["node"]]["name"], channel["target"]["path"]] = values
    place, turn = moved["B at C", "translation"], moved["B at C", "rotation"]
    expected = np.column_stack([2.0 * t, 0.0 * t, 5.0 - 0.5 * 9.81 * t**2])
    np.testing.assert_allclose(place, expected, atol=2e-6)
    assert (np.einsum("ni,ni->n", turn[1:], turn[:-1]) > 0.0).all()
    c, s = np.cos(9.0 * t), np.sin(9.0 * t)
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(0.4), -np.sin(0.4)], [0.0, np.sin(0.4), np.cos(0.4)]])
    across = np.column_stack([c, s, 0.0 * t]) @ tilt.T
    np.testing.assert_allclose(turned(turn, np.array([1.0, 0.0, 0.0])), across, atol=2e-6)
    assert {name for name, _ in moved} == {"B at C"}
    meshes = {mesh["name"].split()[0] for mesh in document["meshes"]}
    assert meshes == {"hull", "knob", "ground"}
    assert {child for node in document["nodes"] for child in node.get("children", [])} == set(range(1, len(nodes) + 1))


def test_a_command_writes_it(tmp_path):
    result = CliRunner().invoke(app, ["run", "latch", "--until", "0.1", "--gltf", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    document, _ = opened(tmp_path / "latch.glb")
    assert "rotation" not in document["nodes"][0]
    assert {node["name"].partition(" at ")[0] for node in document["nodes"] if " at " in node["name"]} == {"N"}


def volume(corners, triangles):
    """Return the volume within triangles, by the divergence theorem."""
    a, b, c = (corners[triangles.reshape(-1, 3)[:, k]] for k in range(3))
    return float(np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0)


def test_plates_are_closed_bodies():
    """Random stars, not convex, in either sense: each edge twice, the volume that of area and thickness."""
    random = np.random.default_rng(3)
    for count in (3, 4, 7, 25):
        angles = np.sort(random.uniform(0.0, 2.0 * np.pi, count))
        rim = random.uniform(0.3, 1.0, count)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
        x, y = rim.T
        area = 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))
        for outline in (rim, rim[::-1]):
            if area <= 0.0:  # a gap of more than half a turn
                continue
            corners, found = extruded(np.column_stack([outline, np.zeros(count)]), 0.05)
            triangles = np.array(found)
            assert volume(corners, triangles) == pytest.approx(0.1 * area, rel=1e-9)
            edges = np.sort(np.concatenate([triangles.reshape(-1, 3)[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))]))
            assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}


def test_planar_bodies_are_plates(tmp_path):
    """The blocks of a planar model have faces, of one colour each, on both sides of the plane."""
    run = fsm_dyn.simulate(fsm_dyn.compile("latch"), 0.05)
    document, arrays = opened(run.to_gltf(tmp_path / "run.glb"))
    faces = [part for mesh in document["meshes"] for part in mesh["primitives"] if part["mode"] == 4]
    assert faces
    for part in faces:
        z = arrays[part["attributes"]["POSITION"]][:, 2]
        assert z.max() == pytest.approx(-z.min())
        assert z.max() > 0.0
