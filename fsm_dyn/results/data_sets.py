"""Export of a run as text and as data sets."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.optional_libraries import optional_library
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transition, transition_fields
from fsm_dyn.simulation.outcomes import Outcome
from fsm_dyn.whole_files import whole_file

if TYPE_CHECKING:
    import pandas
    import xarray


def write_csv(rows: Samples, path: Path) -> Path:
    """Write time, mode and every column; a float is written with the digits that give it back exactly."""
    columns = dict(rows.columns())
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "mode", *columns])
        values = [column.tolist() for column in columns.values()]
        writer.writerows(zip(rows.t.tolist(), rows.modes, *values, strict=True))
    return path


def to_xarray(
    rows: Samples, transitions: Sequence[Transition], outcome: Outcome, warnings: Sequence[str]
) -> xarray.Dataset:
    """Return the run as a data set; see :meth:`Trajectory.to_xarray`."""
    module = optional_library("xarray")
    units = rows.model.units
    variables: dict[str, Any] = {}
    for name, column in rows.columns():
        unit = _unit(name, units)
        variables[name] = ("time", column, {"long_name": _described(name, rows), **({"units": unit} if unit else {})})
    for field, (values, unit, text) in transition_fields(transitions).items():
        about = {"long_name": text, **({"units": unit} if unit else {})}
        variables[f"transition_{field}"] = ("transition", values, about)
    dataset: xarray.Dataset = module.Dataset(
        variables,
        coords={
            "time": ("time", increasing(rows.t), {"units": "s", "long_name": "time"}),
            "mode": ("time", np.array(rows.modes, dtype=str), {"long_name": "mode"}),
        },
        attrs={"model": rows.model.name, "outcome": str(outcome), "warnings": "; ".join(warnings)},
    )
    return dataset


def increasing(times: FloatArray) -> FloatArray:
    """Return times, shape (n,), that increase strictly: of rows at one time the last keeps it.

    Each row before it gets the next smaller number, so that both sides of a transition are kept, in order, and a
    lookup at the time itself gives the later side, as :meth:`Trajectory.at` does.
    """
    found = times.copy()
    while len(ties := np.flatnonzero(found[:-1] >= found[1:])):
        found[ties] = np.nextafter(found[ties + 1], -np.inf)
    return found


def _described(name: str, rows: Samples) -> str:
    """Return what a column is; the unit of a multiplier is that of the force (N) or torque (N m) of its row."""
    layout, model = rows.model.layout, rows.model
    if name.startswith("lambda."):
        return f"multiplier of {name.removeprefix('lambda.')}, N or N m"
    if name.startswith("energy."):
        return f"{name.removeprefix('energy.')} energy"
    for word, names in (("coordinate", layout.q), ("generalized speed", layout.u), ("input", layout.w),
                        ("memory", layout.memory), ("output", model.outputs)):  # fmt: skip
        if name in names:
            meaning = model.meanings.get(name, "")
            return f"{word} {name} ({meaning})" if meaning else f"{word} {name}"
    return name


def _unit(name: str, units: Mapping[str, str]) -> str:
    return "J" if name.startswith("energy.") else units.get(name, "")


def to_pandas(rows: Samples) -> pandas.DataFrame:
    """Return the rows as a data frame; see :meth:`Trajectory.to_pandas`."""
    module = optional_library("pandas")
    frame: pandas.DataFrame = module.DataFrame(
        {"mode": rows.modes, **dict(rows.columns())}, index=module.Index(rows.t, name="time")
    )
    units = ((name, _unit(name, rows.model.units)) for name in frame.columns)
    frame.attrs["units"] = {name: unit for name, unit in units if unit}
    return frame


def write_netcdf(dataset: xarray.Dataset, path: Path) -> Path:
    """Write the run as NetCDF 4; see :meth:`Trajectory.to_netcdf`."""
    for library in ("h5netcdf", "h5py"):
        optional_library(library)
    with whole_file(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")
    return path
