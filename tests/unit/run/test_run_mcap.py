"""Runs as MCAP: an independent reader opens them; frames, loads and rows are those of the run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mcap.reader import make_reader
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.run.run_timeline import place_scene
from fsm_dyn.run.viewer_scene import frame_name, quaternions

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
# of the published schemas, what viewers ask for
NEEDED = {
    "/tf": {"timestamp", "parent_frame_id", "child_frame_id", "translation", "rotation"},
    "/scene": {"timestamp", "frame_id", "id", "lifetime", "frame_locked", "metadata", "lines", "spheres", "texts"},
    "/loads": {"timestamp", "frame_id", "id", "lifetime", "frame_locked", "metadata", "arrows"},
}


def fits(value, schema, where=""):
    """Check a value against the part of JSON Schema that is used: types, properties, items."""
    allowed = schema.get("type", "object")
    kinds = tuple(
        kind for name in (allowed if isinstance(allowed, list) else [allowed])
        for kind in ((int, float) if name == "number" else (TYPES[name],))
    )  # fmt: skip
    assert isinstance(value, kinds), (where, value, allowed)
    if isinstance(value, dict):
        for name, one in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                fits(one, inner, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for one in value:
            fits(one, schema["items"], f"{where}[]")


def read(path):
    """Messages by topic: time (s) and content, checked against their schemas."""
    found = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            content = json.loads(message.data)
            fits(content, json.loads(schema.data), channel.topic)
            found.setdefault(channel.topic, []).append((message.log_time * 1e-9, content))
    return found


@pytest.fixture(scope="module", params=["latch_door", "rolling_coin"])
def run(request, tmp_path_factory):
    trajectory = fsm_dyn.simulate(fsm_dyn.compile(request.param), until=0.6)
    path = trajectory.to_mcap(tmp_path_factory.mktemp("mcap") / "run.mcap")
    return trajectory, read(path)


def vector(data, names="xyz"):
    return np.array([data[name] for name in names])


def test_rows_and_transitions_are_those_of_the_run(run):
    trajectory, found = run
    columns = dict(trajectory.rows.columns())
    for topic, prefix in (("/state", ""), ("/forces", "lambda."), ("/energy", "energy.")):
        messages = [content for _, content in found.get(topic, [])]
        names = {name for name in messages[0] if name not in ("t", "mode")}
        assert names == {n.removeprefix(prefix) for n in columns if n.startswith(prefix) and (prefix or "." not in n)}
        for name in names:
            read_back = np.array([np.nan if row[name] is None else row[name] for row in messages])
            assert np.array_equal(read_back, columns[prefix + name], equal_nan=True), name
        assert [row["mode"] for row in messages] == list(trajectory.modes)
    told = found.get("/transitions", [])
    assert [item["cause"] for _, item in told] == [one.cause for one in trajectory.transitions]
    assert len(found.get("/log", [])) == len(told)


def test_frames_put_outlines_where_the_scene_has_them(run):
    trajectory, found = run
    scene = trajectory.model.scene
    times = [t for t, _ in found["/tf"]]
    samples = trajectory.sample(np.linspace(trajectory.t[0], trajectory.t[-1], len(times)))
    placed = place_scene(scene, samples)
    for topic, fields in NEEDED.items():
        for _, content in found.get(topic, [])[:1]:
            assert all(fields <= set(one) for one in content.get("entities", content.get("transforms")))
    for shape in scene.shapes:
        points = np.hstack([shape.points, np.zeros((len(shape.points), 3 - shape.points.shape[1]))])
        outlines = placed.outline(shape)
        for k in (0, len(times) // 2, len(times) - 1):
            name = frame_name(shape.frame, shape.origin)
            (moved,) = [one for one in found["/tf"][k][1]["transforms"] if one["child_frame_id"] == name]
            turn = Rotation.from_quat(vector(moved["rotation"], "xyzw"))
            assert turn.apply(points) + vector(moved["translation"]) == pytest.approx(outlines[k], abs=1e-12)


def test_arrows_are_the_loads_of_the_connections(run):
    trajectory, found = run
    messages = found["/loads"]
    samples = trajectory.sample(np.linspace(trajectory.t[0], trajectory.t[-1], len(messages)))
    scales, shown = [], 0
    for k in range(0, len(messages), 50):
        for entity in messages[k][1]["entities"]:
            pin = samples.pins[entity["id"]]
            for arrow in entity["arrows"]:
                turn = Rotation.from_quat(vector(arrow["pose"]["orientation"], "xyzw"))
                length = arrow["shaft_length"] + arrow["head_length"]
                force = turn.apply([length, 0.0, 0.0])
                scales.append(length / np.linalg.norm(pin.force[k]))
                assert force == pytest.approx(scales[-1] * pin.force[k], rel=1e-9, abs=1e-9 * length)
                assert vector(arrow["pose"]["position"]) == pytest.approx(pin.at[k], abs=1e-12)
                shown += 1
    assert shown > 3
    assert np.ptp(scales) <= 1e-9 * scales[0], "one scale for all"


def test_quaternions_of_all_rotations():
    turns = Rotation.random(500, rng=np.random.default_rng(7))
    halves = Rotation.from_rotvec(np.pi * np.vstack([np.eye(3), -np.eye(3), [[0.6, 0.8, 0.0]]]))
    for each in (turns, halves):
        found = quaternions(each.as_matrix())
        assert Rotation.from_quat(found).as_matrix() == pytest.approx(each.as_matrix(), abs=1e-14)
        assert (found[:, 3] >= 0.0).all()


def test_the_command_writes_it(tmp_path):
    CliRunner().invoke(app, ["run", "bouncing_ball", "--until", "0.5", "--mcap", "--out", str(tmp_path)])
    assert "/state" in read(tmp_path / "bouncing_ball.mcap")
