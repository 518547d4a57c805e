"""Runs as Parquet and for Rerun, opened by the readers of those formats; glTF by pygltflib."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.run_timeline import place_scene


@pytest.fixture(scope="module", params=["latch_door", "rolling_coin"])
def run(request):
    return fsm_dyn.simulate(fsm_dyn.compile(request.param), until=0.4)


@pytest.mark.parametrize(("kind", "extra"), [("parquet", "columns"), ("rerun", "rerun"), ("usd", "usd")])
def test_a_missing_library_is_named_with_its_extra(run, tmp_path, monkeypatch, kind, extra):
    monkeypatch.setattr("importlib.import_module", _refuse)
    with pytest.raises(InputError, match=f"which is not installed(.|\n)*fsm-dyn\\[{extra}\\]"):
        getattr(run, f"to_{kind}")(tmp_path / "run.usda")


def _refuse(name):
    raise ModuleNotFoundError(name)


@pytest.mark.long
def test_parquet_has_the_columns_with_their_units(run, tmp_path):
    import pyarrow.parquet as parquet

    table = parquet.read_table(run.to_parquet(tmp_path / "run.parquet", pins=True))
    assert table.column_names[:2] == ["time", "mode"]
    assert table["mode"].to_pylist() == list(run.modes)
    assert np.array_equal(table["time"].to_numpy(), run.t)
    frame = run.to_pandas(pins=True)
    for name in frame.columns[1:]:
        assert np.array_equal(table[name].to_numpy(), frame[name].to_numpy(), equal_nan=True), name
        unit = frame.attrs["units"].get(name, "").encode()
        assert (table.schema.field(name).metadata or {}).get(b"unit", b"") == unit
    assert table.schema.metadata[b"model"] == run.model.name.encode()


def entities(path):
    """Return of every entity of a recording its components by time, from Rerun's own reader."""
    from rerun.chunk import RrdReader

    found = {}
    for chunk in RrdReader(str(path)).stream():
        batch = chunk.to_record_batch()
        for name in batch.schema.names:
            found.setdefault(str(chunk.entity_path), {}).setdefault(name, []).extend(batch.column(name).to_pylist())
    return found


@pytest.mark.long
def test_rerun_reads_the_run(run, tmp_path):
    found = entities(run.to_rerun(tmp_path / "run.rrd"))
    for name in run.model.layout.q:
        scalars = found[f"/run/{name}"]
        assert [values[0] for values in scalars["Scalars:scalars"]] == run[name].tolist()
        seconds = [value.total_seconds() for value in scalars["time"]]
        np.testing.assert_allclose(seconds, run.t, atol=1e-6)  # timedelta has microseconds
    assert len(found.get("/transitions", {"time": []})["time"]) == len(run.transitions)
    moving = run.model.scene.shapes[0]
    entity = f"/scene/{moving.frame}\\ at\\ {moving.origin}"
    places = np.array([values[0] for values in found[entity]["Transform3D:translation"]])
    times = np.linspace(run.t[0], run.t[-1], len(places))
    expected = place_scene(run.model.scene, run.sample(times)).point(moving.origin)
    np.testing.assert_allclose(places, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))
    assert any(name.startswith(entity + "/") for name in found)


@pytest.mark.long
def test_a_library_of_gltf_opens_the_animation(run, tmp_path):
    import pygltflib

    document = pygltflib.GLTF2().load(str(run.to_gltf(tmp_path / "run.glb")))
    names = {mesh.name.split()[0] for mesh in document.meshes}
    assert names >= {shape.body for shape in run.model.scene.shapes if shape.body}
    moved = {document.nodes[channel.target.node].name for channel in document.animations[0].channels}
    assert moved < {node.name for node in document.nodes}
    for sampler in document.animations[0].samplers:
        assert document.accessors[sampler.input].count == document.accessors[sampler.output].count
    assert len(document.binary_blob()) == document.buffers[0].byteLength


def test_other_names_of_usd_files_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="ends otherwise"):
        run.to_usd(tmp_path / "run.glb")


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_the_library_of_usd_places_outlines_as_the_run(run, tmp_path, suffix):
    """Points of outlines in the world at all keys, by the transforms that the library composes."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(run.to_usd(tmp_path / f"run{suffix}")))
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    space = any(shape.points.shape[1] == 3 for shape in run.model.scene.shapes)
    assert UsdGeom.GetStageUpAxis(stage) == ("Z" if space else "Y")
    codes = np.linspace(stage.GetStartTimeCode(), stage.GetEndTimeCode(), 31)  # the keys of so short a run
    times = np.minimum(codes / stage.GetTimeCodesPerSecond(), run.t[-1])
    np.testing.assert_allclose(times[-1], run.t[-1], rtol=1e-12)
    placed = place_scene(run.model.scene, run.sample(times))
    drawn = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.PointBased)]
    found = 0
    for k, shape in enumerate(run.model.scene.shapes):
        curves = [UsdGeom.BasisCurves(prim) for prim in drawn if prim.GetName().startswith(f"{shape.body}_{k}_")]
        own = np.array(curves[0].GetPointsAttr().Get()) if curves and curves[0].GetPrim().IsA("BasisCurves") else None
        if own is None or shape.endless or shape.plane:
            continue
        found += 1
        given = np.hstack([shape.points, np.zeros((len(shape.points), 3 - shape.points.shape[1]))])
        for i, code in enumerate(codes):
            form = np.array(curves[0].ComputeLocalToWorldTransform(float(code)))  # of rows
            turn = placed.rotations[i, run.model.scene.frames.index(shape.frame)] if shape.frame != "N" else np.eye(3)
            expected = placed.point(shape.origin)[i] + given @ turn.T
            np.testing.assert_allclose(own @ form[:3, :3] + form[3, :3], expected, atol=1e-6 * np.ptp(given))
        extent = np.array(curves[0].GetExtentAttr().Get())
        assert (own >= extent[0]).all()
        assert (own <= extent[1]).all()
    assert found
    for prim in drawn:
        if prim.IsA("Mesh"):
            mesh = UsdGeom.Mesh(prim)
            assert UsdGeom.Mesh.ValidateTopology(
                mesh.GetFaceVertexIndicesAttr().Get(), mesh.GetFaceVertexCountsAttr().Get(),
                len(mesh.GetPointsAttr().Get()),
            )[0]  # fmt: skip


@pytest.mark.long
def test_commands_write_them(tmp_path):
    done = CliRunner().invoke(
        app, ["run", "latch", "--until", "0.1", "--parquet", "--rerun", "--usd", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latch.parquet", "latch.rrd", "latch.usdc"]
