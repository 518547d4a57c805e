"""Measured motions: a CSV file with a time column and columns of the model."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from fsm_dyn.errors import InputError, Location, ModelError, did_you_mean
from fsm_dyn.expressions.unit_literals import parse_unit
from fsm_dyn.modes.elimination import Array
from fsm_dyn.schemata import read_file
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.values import units

TIME: Final = ("t", "time")
LARGEST_FILE = 2**28  # bytes
_HEADING: Final = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\[([^\]]*)\])?\s*")


@dataclass(frozen=True)
class MeasuredMotion:
    """What was measured: ``t`` (n,), s, increasing; ``columns`` by name, (n,) each, SI, nan where a cell is empty."""

    t: Array
    columns: Mapping[str, Array]


def read_measured(path: str | Path, mechanism: Mechanism) -> MeasuredMotion:
    """Read a CSV file whose first line names its columns.

    The time is called ``t`` or ``time``, the others are coordinates, speeds or outputs of the model; a column ``mode``
    is ignored.  A unit may follow in brackets, ``x [mm]``; without one values are in SI units.

    Parameters
    ----------
    path : str or Path
        A table of comma-separated values.
    mechanism : Mechanism
        Gives the names of columns that are known, and their units.

    Returns
    -------
    MeasuredMotion

    Raises
    ------
    InputError
        The file cannot be read, or a heading or cell does not fit, with file and line.
    """
    file = Path(path)
    data = read_file(file, LARGEST_FILE, "a measured motion")
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        lines = [(reader.line_num, line) for line in reader if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the measured motion cannot be read: {error}", Location(str(file))) from None
    if len(lines) < 2:
        raise InputError("the measured motion has no rows", Location(str(file)), remedy="a line of headings, then rows")
    first, *rows = lines
    top = Location(str(file), first[0], 1)
    headings = [_heading(text, mechanism, top) for text in first[1]]
    names = [name for name, _ in headings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or names.count("t") != 1 or not set(names) - {"t", "mode"}:
        raise InputError(
            "a measured motion has a time, and columns of the model once each", top,
            found=", ".join(first[1]), allowed="such as t, x [mm]",
        )  # fmt: skip
    table = np.array([_numbers(line, names, Location(str(file), at, 1)) for at, line in rows])
    columns = {name: table[:, k] * factor for k, (name, factor) in enumerate(headings) if name != "mode"}
    t = columns.pop("t")
    late = np.flatnonzero(~(np.diff(t, prepend=-np.inf) > 0.0) | ~(t >= 0.0))
    if len(late):
        raise InputError(
            "the times of a measured motion increase, from 0 on", Location(str(file), rows[late[0]][0], 1),
            found=f"{t[late[0]]:g} s",
        )  # fmt: skip
    return MeasuredMotion(t, columns)


def _heading(text: str, mechanism: Mechanism, where: Location) -> tuple[str, float]:
    """Return the name of a column and the factor to SI units."""
    found = _HEADING.fullmatch(text)
    known = [*mechanism.coordinate_names, *mechanism.speeds, *mechanism.outputs]
    name = "t" if found and found[1] in TIME else found[1] if found else text
    if name not in (*known, "t", "mode"):
        raise InputError(
            f"{name!r} is no coordinate, speed or output of the model", where, found=text,
            allowed=", ".join(("t", *known)), remedy=did_you_mean(name, known),
        )  # fmt: skip
    if found is None or found[2] is None:
        return name, 1.0
    own = {"t": "s", **units(mechanism)}.get(name, "")
    try:
        factor, dimension = parse_unit(found[2], where)
    except ModelError as error:
        raise InputError(error.message, where, found=text, remedy=error.remedy) from None
    if own and parse_unit(own, where)[1] != dimension:
        raise InputError(f"the unit of {name!r} does not fit", where, found=found[2], allowed=own)
    return name, factor


def _numbers(line: list[str], names: list[str], where: Location) -> list[float]:
    if len(line) != len(names):
        raise InputError("a row has another number of cells", where, found=str(len(line)), allowed=str(len(names)))
    values = []
    for name, cell in zip(names, line, strict=True):
        try:
            value = float(cell) if name != "mode" and cell.strip() else np.nan
        except ValueError:
            value = np.inf
        if np.isinf(value):
            raise InputError(f"a cell of {name!r} is no number", where, found=cell[:40])
        values.append(value)
    return values
