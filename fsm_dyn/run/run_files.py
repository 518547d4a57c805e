"""Saved runs, and exports of runs as text and as data sets."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args, get_type_hints

import msgspec
import numpy as np

from fsm_dyn.core.arrays import Floats, InputFunction
from fsm_dyn.core.errors import InputError, Location, optional_library
from fsm_dyn.core.files import decode, encode, opened, read_file, stored_type, whole_file
from fsm_dyn.language.requirement import WEAR
from fsm_dyn.run.continuation import StoredContinuation
from fsm_dyn.run.energy import PinWear
from fsm_dyn.run.extremes import locate
from fsm_dyn.run.outcomes import OUTCOMES, Outcome
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.transitions import ChangePoint, Transition, transition_fields

if TYPE_CHECKING:
    import pandas
    import xarray


# -- Saved runs: JSON with the model's text and the recorded rows --------------------------------------------
#
# No pickle: an untrusted file is checked, its model is read like any model file, and nothing in it is executed.
# Between the rows inputs are cubics through their recorded values and rates, exact if they are constant or linear.

FORMAT: Final = "fsm_dyn run 1"
ColumnsWithUnits: TypeAlias = Mapping[str, tuple[Floats, str]]
LARGEST_FILE = 2**30
_REMEDY = "write one with `fsm-dyn run --out`"

Number = float | None  # null is not a number
Table = list[list[Number]]


if TYPE_CHECKING:
    StoredTransition: TypeAlias = Any
else:
    StoredTransition = stored_type(
        Transition, {float: Number, Floats: list[Number]}, without=("find_pin_impulse",), strict=False
    )  # fmt: skip


def _transition(stored: StoredTransition) -> Transition:
    """Return a transition of a file with arrays and numbers."""
    types = get_type_hints(Transition)
    return Transition(**{name: _restored(types[name], getattr(stored, name)) for name in stored.__struct_fields__})


def _restored(hint: Any, value: Any) -> Any:
    """Return a value of a file as one of a type: null as the number nan, lists as arrays."""
    parts = get_args(hint)
    if hint is float:
        return _number(value)
    if hint == Floats:
        return _array(value)
    if isinstance(value, Mapping):
        return {name: _restored(parts[1], item) for name, item in value.items()}
    if isinstance(value, tuple):
        each = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
        return tuple(map(_restored, each, value))
    return value


class StoredRun(msgspec.Struct, dict=True):
    """The content of a file of a run; ``modes``: contact states by mode index.

    ``continuation``: the state to continue from, or the reason for its absence.
    """

    format: Literal["fsm_dyn run 1"]
    text: str
    outcome: int
    parameters: list[float]
    n_inputs: int
    modes: tuple[tuple[int, ...], ...]
    transitions: list[StoredTransition]
    t: list[float]
    x: Table
    x_dot: Table
    x_mid: Table
    mode: list[int]
    held: Table
    tried: tuple[str, ...]
    change_points: tuple[ChangePoint, ...]
    warnings: tuple[str, ...]
    time_stepping: bool
    continuation: StoredContinuation | str

    @cached_property
    def recorded(self) -> RunRecord:
        """The record, not yet checked; raises ValueError or OverflowError if its rows are no table."""
        numbers: dict[str, Any] = {name: _array(getattr(self, name)) for name in ("t", "x", "x_dot", "x_mid", "held")}
        transitions = tuple(map(_transition, self.transitions))
        return RunRecord(
            **numbers, mode=np.array(self.mode, dtype=np.int64), read_transitions=lambda: transitions,
            inputs=_between_rows(numbers["t"], numbers["held"], self.n_inputs), outcome=OUTCOMES[self.outcome],
            tried=self.tried, change_points=self.change_points, warnings=self.warnings,
            time_stepping=self.time_stepping,
        )  # fmt: skip

    def record(self, model: RunModel) -> RunRecord:
        """Return the rows, checked against the model. Raises InputError: they do not fit it."""
        layout, record = model.layout, self.recorded
        n, n_held = len(record.t), layout.n_c - len(layout.p)
        good = len(self.parameters) == len(layout.p) and n > 0 and bool((np.diff(record.t) >= 0.0).all())
        good &= self.n_inputs == len(layout.w)
        good &= record.x.shape == record.x_dot.shape == record.x_mid.shape == (n, layout.n_x)
        good &= record.held.shape == (n, n_held) and record.mode.shape == (n,)
        good &= bool(((record.mode >= 0) & (record.mode < len(self.modes))).all())
        owners, modes = {*layout.contacts, *(row.owner for row in model.rows)}, {*model.modes}
        for item in record.transitions:
            good &= item.u_before.shape == item.u_after.shape == (len(layout.u),)
            good &= {*item.impulse} <= owners and {item.source, item.target} <= modes
        if not good:
            raise InputError("the saved run does not fit its model", remedy="run the model again")
        return record


def run_bytes(model: RunModel, record: RunRecord, continuation: StoredContinuation | str) -> bytes:
    """Return the content of the file of a run, with the state to continue from or the reason for its absence.

    Raises InputError: the run has no model text to go with it.
    """
    if not model.text:
        raise InputError("this run has no model text to be saved with")
    arrays = {name: getattr(record, name) for name in ("t", "x", "x_dot", "mode", "held")}
    data = {
        "format": FORMAT,
        "text": model.text,
        "outcome": record.outcome.code,
        "tried": record.tried,
        "parameters": model.parameters,
        "n_inputs": len(model.layout.w),
        "modes": [chart.states for chart in model.charts],
        "transitions": record.transitions,
        "change_points": record.change_points,
        "warnings": record.warnings,
        "time_stepping": record.time_stepping,
        "continuation": continuation,
        # the middle of a missing step was never filled
        "x_mid": np.where(record.starts[:, None], record.x, record.x_mid),
    }
    return encode(data | arrays)


def read_run(path: str) -> StoredRun:
    """Read a run. Raises InputError: the file is not a saved run of this version, or is inconsistent or corrupt."""
    return parse_run(read_file(path, LARGEST_FILE, "a run"), Location(path))


def parse_run(text: bytes, where: Location) -> StoredRun:
    """Return the run of a file's content; see :func:`read_run`."""
    stored: StoredRun = decode(text, StoredRun, "a saved run", where=where, remedy=_REMEDY)
    try:
        good = stored.outcome in OUTCOMES and stored.n_inputs >= 0 and stored.recorded is not None
    except (ValueError, OverflowError):  # rows of different lengths
        good = False
    if not good:
        raise InputError("the saved run is inconsistent or corrupt", where, remedy=_REMEDY)
    return stored


def is_run(path: str) -> bool:
    """Return whether a file begins as a saved run does; False if it cannot be read."""
    try:
        with opened(path) as file:
            return FORMAT.encode() in file.read(4 * len(FORMAT))
    except InputError:
        return False


def _between_rows(t: Floats, held: Floats, n_w: int) -> InputFunction:
    """Return the inputs with their rates at any time of the run, shape (n, 3 n_w), from those at its rows."""

    def inputs(times: Floats) -> Floats:
        first = locate(t, times)[0]
        last = np.minimum(first + 1, len(t) - 1)
        h = (t[last] - t[first])[:, None]
        s = np.divide(times[:, None] - t[first, None], h, out=np.zeros((len(times), 1)), where=h > 0.0)
        a, b = held[first], held[last]
        value, rate = slice(0, n_w), slice(n_w, 2 * n_w)
        rise = b[:, value] - a[:, value]
        bow = (h * a[:, rate] - rise) * (1.0 - s) + (rise - h * b[:, rate]) * s
        straight: Floats = a[:, : 3 * n_w] + s * (b - a)[:, : 3 * n_w]
        straight[:, value] += s * (1.0 - s) * bow
        return straight

    return inputs


def _number(value: Number) -> float:
    return float("nan") if value is None else value


def _array(values: list[float] | list[Number] | Table) -> Floats:
    return np.array(values, dtype=np.float64)  # None is not a number


# -- Export of a run as text and as data sets ----------------------------------------------------------------


def write_csv(rows: Samples, path: Path, more: ColumnsWithUnits) -> Path:
    """Write time, mode and every column; a float is written with the digits to read it back exactly.

    ``more``: also these.  Headings are names with their units, ``x [m]``.
    """
    columns = dict(_columns(rows, more))
    known = _units(rows, more)
    units = {name: _unit(name, known) for name in columns} if known else {}
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        headings = (f"{name} [{units[name]}]" if units.get(name) else name for name in columns)
        writer.writerow(["t [s]" if known else "t", "mode", *headings])
        values = [column.tolist() for column in columns.values()]
        writer.writerows(zip(rows.t.tolist(), rows.modes, *values, strict=True))
    return path


def _columns(rows: Samples, more: ColumnsWithUnits) -> Iterator[tuple[str, Floats]]:
    yield from rows.columns()
    for name, (values, _) in more.items():
        yield name, values


def pin_columns(rows: Samples, wear: Mapping[str, PinWear]) -> ColumnsWithUnits:
    """Return the columns of the connections of a run, and of their wear."""
    units = rows.pins.units()
    return {**{name: (values, units[name]) for name, values in rows.pins.columns()}, **_wear_columns(wear)}


def _wear_columns(wear: Mapping[str, PinWear]) -> ColumnsWithUnits:
    return {
        f"pin.{name}.{part}": (getattr(found, part), "J" if part == "work" else "m")
        for name, found in wear.items()
        for part in WEAR
    }


def _pin_variables(rows: Samples) -> dict[str, Any]:
    """Return force, torque and place of the connections along time, pin and axis."""
    pins = rows.pins
    found = {}
    act = "of the parent on the child, components in N"
    parts = (("force", "force", "N", f"force {act}"), ("torque", "torque", "N*m", f"torque {act}"),
             ("place", "at", "m", "position of the connection in N"))  # fmt: skip
    for name, part, unit, text in parts:
        values = (
            np.stack([getattr(pin, part) for pin in pins.values()], axis=1) if pins else np.zeros((len(rows), 0, 3))
        )
        about = {"long_name": text, "units": unit}
        found[f"pin_{name}"] = (("time", "pin_name", "pin_axis"), values, about)
    return found


def to_xarray(
    rows: Samples,
    transitions: Sequence[Transition],
    outcome: Outcome,
    warnings: Sequence[str],
    wear: Mapping[str, PinWear] | None,
) -> xarray.Dataset:
    """Return the run as a data set; see :meth:`Trajectory.to_xarray`.  ``wear``: with connections and their wear."""
    module, pins = optional_library("xarray"), wear is not None
    units = _units(rows, {})
    variables: dict[str, Any] = {}
    for name, column in rows.columns():
        unit = _unit(name, units)
        variables[name] = ("time", column, {"long_name": _described(name, rows), **({"units": unit} if unit else {})})
    for field, (values, unit, text) in transition_fields(transitions).items():
        about = {"long_name": text, **({"units": unit} if unit else {})}
        variables[f"transition_{field}"] = ("transition", values, about)
    for name, (values, unit) in _wear_columns(wear or {}).items():
        variables[name] = ("time", values, {"long_name": name, "units": unit})
    named = {"pin_name": list(rows.pins), "pin_axis": list("xyz")} if pins else {}
    dataset: xarray.Dataset = module.Dataset(
        {**variables, **(_pin_variables(rows) if pins else {})},
        coords={
            **named,
            "time": ("time", increasing(rows.t), {"units": "s", "long_name": "time"}),
            "mode": ("time", np.array(rows.modes, dtype=str), {"long_name": "mode"}),
        },
        attrs={"model": rows.model.name, "outcome": str(outcome), "warnings": "; ".join(warnings)},
    )
    return dataset


def increasing(times: Floats) -> Floats:
    """Return times, shape (n,), increasing strictly: of rows at one time the last keeps it.

    Each row before it gets the next smaller number, which keeps both sides of a transition, in order, and a
    lookup at the time itself gives the later side, as :meth:`Trajectory.at` does.
    """
    found = times.copy()
    while len(ties := np.flatnonzero(found[:-1] >= found[1:])):
        found[ties] = np.nextafter(found[ties + 1], -np.inf)
    return found


def _described(name: str, rows: Samples) -> str:
    """Return the kind of a column."""
    layout, model = rows.model.layout, rows.model
    if name.startswith("lambda."):
        return f"multiplier of {name.removeprefix('lambda.')}"
    if name.startswith("energy."):
        return f"{name.removeprefix('energy.')} energy"
    for word, names in (("coordinate", layout.q), ("generalized speed", layout.u), ("input", layout.w),
                        ("memory", layout.memory), ("output", model.outputs)):  # fmt: skip
        if name in names:
            meaning = model.meanings.get(name, "")
            return f"{word} {name} ({meaning})" if meaning else f"{word} {name}"
    return name


def _units(rows: Samples, more: ColumnsWithUnits) -> dict[str, str]:
    """Return the units of columns by name, of forces along rows too."""
    model = rows.model
    forces = {
        f"lambda.{label}": unit for label, unit in zip(model.row_labels(), model.force_units, strict=True) if unit
    }
    return {**model.units, **forces, **{name: unit for name, (_, unit) in more.items()}}


def _unit(name: str, units: Mapping[str, str]) -> str:
    return "J" if name.startswith("energy.") else units.get(name, "")


def to_pandas(rows: Samples, more: ColumnsWithUnits) -> pandas.DataFrame:
    """Return the rows as a data frame; see :meth:`Trajectory.to_pandas`."""
    module = optional_library("pandas")
    frame: pandas.DataFrame = module.DataFrame(
        {"mode": rows.modes, **dict(_columns(rows, more))}, index=module.Index(rows.t, name="time")
    )
    known = _units(rows, more)
    units = ((name, _unit(name, known)) for name in frame.columns)
    frame.attrs["units"] = {name: unit for name, unit in units if unit}
    return frame


def write_parquet(rows: Samples, path: Path, more: ColumnsWithUnits) -> Path:
    """Write the rows as Parquet with units in the metadata of the columns; see :meth:`Trajectory.to_parquet`."""
    module, parquet = optional_library("pyarrow", "columns"), optional_library("pyarrow.parquet", "columns")
    known = _units(rows, more)
    columns = {"time": rows.t, "mode": list(rows.modes), **dict(_columns(rows, more))}
    units = {"time": "s", **{name: _unit(name, known) for name in columns if name not in ("time", "mode")}}
    arrays = {name: module.array(values) for name, values in columns.items()}
    fields = [
        module.field(name, values.type, metadata={"unit": units[name]} if units.get(name) else None)
        for name, values in arrays.items()
    ]
    schema = module.schema(fields, metadata={"model": rows.model.name})
    with whole_file(path) as temporary:
        parquet.write_table(module.table(list(arrays.values()), schema=schema), temporary)
    return path


def write_netcdf(dataset: xarray.Dataset, path: Path) -> Path:
    """Write the run as NetCDF 4; see :meth:`Trajectory.to_netcdf`."""
    for library in ("h5netcdf", "h5py"):
        optional_library(library)
    with whole_file(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")
    return path
