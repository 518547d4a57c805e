"""Runs written to files read back exactly; a missing library is named with its remedy."""

import csv
import dataclasses
import sys

import pytest
from numpy.testing import assert_array_equal

from fsm_dyn.core.errors import InputError
from fsm_dyn.run.trajectory import Trajectory


def test_csv_reads_back_exactly(block, tmp_path):
    path = block.to_csv(tmp_path / "run.csv")
    with path.open(newline="", encoding="utf-8") as file:
        headings = next(csv.reader(file))
        names = [heading.partition(" [")[0] for heading in headings]
        rows = list(csv.DictReader(file, names))
    assert headings[:4] == ["t [s]", "mode", "x [m]", "v [m/s]"]
    assert "energy.kinetic [J]" in headings
    for name in ("x", "v", "push", "lambda.floor.tangent", "double", "energy.kinetic"):
        assert_array_equal([float(row[name]) for row in rows], block[name])
    assert [row["mode"] for row in rows] == list(block.modes)


def test_xarray_has_units_modes_and_transitions(block):
    data = block.to_xarray()
    assert data["x"].attrs["units"] == "m"
    assert data["mode"].values.tolist() == list(block.modes)
    assert data["transition_cause"].values.tolist() == [x.cause for x in block.transitions]
    assert_array_equal(data["lambda.floor.normal"], block.multipliers["floor"][:, 0])


def test_everything_has_a_description_and_lookups_at_transitions_give_the_row_after(block):
    data, changes = block.to_xarray(), block.transitions.to_xarray()
    assert [name for name in data.variables if not data[name].attrs.get("long_name")] == []
    assert [name for name in changes.variables if not changes[name].attrs.get("long_name")] == []
    assert data["transition_time"].attrs["units"] == changes["time"].attrs["units"] == "s"
    after = data.sel(time=changes.time, method="nearest")
    assert after["mode"].values.tolist() == changes["target"].values.tolist()


def test_transitions_are_a_data_frame(block):
    frame = block.transitions.to_pandas()
    assert frame["cause"].tolist() == [item.cause for item in block.transitions]
    assert frame["time"].tolist() == [item.time for item in block.transitions]
    assert frame.attrs["units"] == {"time": "s", "energy_before": "J", "energy_after": "J"}


def test_netcdf_reads_back(block, tmp_path):
    xarray = pytest.importorskip("xarray")
    path = block.to_netcdf(tmp_path / "run.nc")
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        assert_array_equal(data["v"], block["v"])
        assert data.attrs["model"] == "block"


def test_a_run_without_transitions_can_be_written(block, tmp_path):

    quiet = Trajectory(block.model, dataclasses.replace(block.record, read_transitions=tuple))
    assert quiet.to_xarray().sizes["transition"] == 0
    quiet.to_netcdf(tmp_path / "quiet.nc")


def test_without_the_library_the_extra_is_named(block, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InputError, match=r"fsm-dyn\[analysis\]"):
        block.to_xarray()
