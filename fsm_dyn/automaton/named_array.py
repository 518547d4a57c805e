"""Arrays of numbers with a name for every index of every axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.errors import InputError, did_you_mean

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NamedArray:
    """Numbers whose indices have names: ``M["u1", "u2"]``; NumPy takes it for the array that it holds.

    Attributes
    ----------
    values : ndarray
        The numbers, SI units.
    names : tuple of tuple of str
        For each axis the names of its indices, in order; where a name occurs twice the first is meant.
    """

    values: Array
    names: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if self.values.shape != tuple(len(names) for names in self.names):
            raise ValueError(f"{self.values.shape} numbers, but names for {[len(names) for names in self.names]}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.values.shape

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy or dtype is not None else self.values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        """Return a number, or the array of the axes not named, which are the last ones.

        Raises
        ------
        InputError
            An axis has no such name, or there are more names than axes.
        """
        keys = (key,) if isinstance(key, str) else key
        if len(keys) > len(self.names):
            raise InputError("more names than axes", found=str(len(keys)), allowed=str(len(self.names)))
        place = []
        for axis, (name, names) in enumerate(zip(keys, self.names, strict=False)):
            if name not in names:
                raise InputError(
                    f"axis {axis} has no '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names)
                )
            place.append(names.index(name))
        part = self.values[tuple(place)]
        rest = self.names[len(keys) :]
        return NamedArray(part, rest) if rest else float(part)

    def __str__(self) -> str:
        # with 0.0 added a negative zero is printed as zero
        if len(self.names) == 1:
            return "\n".join(
                f"{name} {value + 0.0:.6g}" for name, value in zip(self.names[0], self.values, strict=True)
            )
        if len(self.names) > 2:
            return "\n".join(f"{name}:\n{self[name]}" for name in self.names[0])
        cells = [["", *self.names[1]]]
        cells += [
            [name, *(f"{value + 0.0:.6g}" for value in row)]
            for name, row in zip(self.names[0], self.values, strict=True)
        ]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        )

    __repr__ = __str__
