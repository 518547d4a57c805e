"""A run as text, as data sets and as a short table for notebooks."""

from __future__ import annotations

import csv
import html
import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from fsm_dyn.errors import InputError
from fsm_dyn.recording.samples import Samples
from fsm_dyn.recording.transitions import Transition
from fsm_dyn.simulation.outcomes import Outcome

if TYPE_CHECKING:
    import xarray

_SHOWN_TRANSITIONS = 20


def write_csv(rows: Samples, path: Path) -> Path:
    """Write time, mode and every column; a float is written with the digits that give it back exactly."""
    columns = dict(rows.columns())
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "mode", *columns])
        values = [column.tolist() for column in columns.values()]
        writer.writerows(zip(rows.t.tolist(), rows.modes, *values, strict=True))
    return path


def to_xarray(rows: Samples, transitions: Sequence[Transition], outcome: Outcome) -> xarray.Dataset:
    """Return the run as a data set; see :meth:`Trajectory.to_xarray`."""
    module = _optional("xarray")
    units = rows.model.units
    variables: dict[str, Any] = {}
    for name, column in rows.columns():
        attributes = {"units": units[name]} if units.get(name) else {}
        # A dot in a variable's name would need quoting in most tools that read NetCDF.
        variables[name.replace(".", "_")] = ("time", column, attributes)
    for field in ("time", "source", "target", "cause", "energy_before", "energy_after"):
        values = np.array([getattr(item, field) for item in transitions])
        if not len(values):
            values = np.zeros(0) if field in ("time", "energy_before", "energy_after") else np.zeros(0, dtype="U1")
        variables[f"transition_{field}"] = ("transition", values)
    dataset: xarray.Dataset = module.Dataset(
        variables,
        coords={
            "time": ("time", rows.t, {"units": "s"}),
            "mode": ("time", np.array(rows.modes, dtype=str)),
        },
        attrs={"model": rows.model.name, "outcome": str(outcome)},
    )
    return dataset


def write_netcdf(rows: Samples, transitions: Sequence[Transition], outcome: Outcome, path: Path) -> Path:
    """Write the run as NetCDF 4; see :meth:`Trajectory.to_netcdf`."""
    for library in ("h5netcdf", "h5py"):
        _optional(library)
    to_xarray(rows, transitions, outcome).to_netcdf(path, engine="h5netcdf")
    return path


def summary_html(rows: Samples, transitions: Sequence[Transition], outcome: Outcome) -> str:
    """Return a short table of the run; every text that came from the user is escaped."""
    escape = html.escape
    lines = "".join(
        f"<tr><td>{item.time:.6f}</td><td>{escape(item.source)}</td><td>{escape(item.target)}</td>"
        f"<td>{escape(item.cause)}</td></tr>"
        for item in transitions[:_SHOWN_TRANSITIONS]
    )
    more = len(transitions) - _SHOWN_TRANSITIONS
    if more > 0:
        lines += f"<tr><td colspan='4'>and {more} more</td></tr>"
    return (
        f"<p><b>{escape(rows.model.name)}</b>: {rows.t[0]:g} s to {rows.t[-1]:g} s, {len(rows)} rows, "
        f"{len(transitions)} transitions; {escape(outcome.name)}</p>"
        f"<table><thead><tr><th>time, s</th><th>from</th><th>to</th><th>cause</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def _optional(name: str) -> ModuleType:
    """Import a library of the extra ``analysis`` or say how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"this needs {name}, which is not installed",
            remedy='install the extra: pip install "fsm-dyn[analysis]"',
        ) from error
