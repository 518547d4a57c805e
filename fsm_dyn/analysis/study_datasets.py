"""Data sets of studies: a variable for each column, along the runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.arrays import IntArray
from fsm_dyn.results.optional_libraries import optional_library

if TYPE_CHECKING:
    import xarray

Column = Sequence[Any] | npt.NDArray[Any]


def run_dataset(
    model: str,
    parameters: Mapping[str, Column],
    columns: Mapping[str, Column],
    units: Mapping[str, str],
    axes: Mapping[str, Array] | None = None,
) -> xarray.Dataset:
    """Return columns along ``run`` as a data set.

    Parameters
    ----------
    model : str
    parameters, columns : mapping of str to array, shape (n,) or (n, m)
        Coordinates and variables, SI; with two axes, the second is the one of ``axes`` with m elements.
    units : mapping of str to str
        Of any of them.
    axes : mapping of str to ndarray, optional
        Coordinates of second axes.

    Raises
    ------
    InputError
        If xarray is not installed (the extra ``analysis``).
    """
    found = {name: axis for name, axis in (axes or {}).items() if len(axis)}

    def variable(name: str, column: Column) -> tuple[tuple[str, ...], Array, dict[str, str]]:
        values = np.asarray(column)
        if values.dtype == object:  # numbers and texts
            values = values.astype(str)
        second = [axis for axis, places in found.items() if values.ndim > 1 and len(places) == values.shape[1]]
        return ("run", *second), values, {"units": units[name]} if units.get(name) else {}

    dataset: xarray.Dataset = optional_library("xarray").Dataset(
        {name: variable(name, column) for name, column in columns.items()},
        coords={
            **{name: variable(name, column) for name, column in parameters.items()},
            **{name: (name, axis, {"units": "s"} if name == "time" else {}) for name, axis in found.items()},
        },
        attrs={"model": model},
    )
    return dataset


def with_sequences(dataset: xarray.Dataset, sequences: Sequence[tuple[str, ...]], counts: IntArray) -> xarray.Dataset:
    """Return a data set with a table of mode sequences: as text, by a digest, the same in any study, and their runs."""
    texts = [" > ".join(modes) for modes in sequences]
    digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    table = {"modes": texts, "digest": digests, "runs": counts}
    return dataset.assign({name: ("sequence_number", column) for name, column in table.items()})
