"""Arrays and structures of the runtime as constant data in C."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"f": "double", "i8": "int64_t", "i1": "int8_t"}
_PER_LINE = 8
_LARGEST = 2**63 - 1


def number(value: float | int) -> str:
    """Return a number as C reads it back to the same bits."""
    if isinstance(value, int | np.integer):
        return "INT64_MAX" if int(value) == _LARGEST else str(int(value))
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


def text(value: str) -> str:
    """Return a string literal; what is not ASCII as the bytes of UTF-8, in octal."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in value.encode()
    )
    return f'"{plain}"'


def lines(items: Iterable[str], per_line: int = _PER_LINE) -> str:
    """Return the entries of an initialiser, some on each line."""
    entries = list(items)
    rows = [", ".join(entries[i : i + per_line]) for i in range(0, len(entries), per_line)]
    return ",\n".join(f"    {row}" for row in rows)


def texts(name: str, values: Iterable[str]) -> str:
    """Return the definition of an array of strings; NULL ends it."""
    return f"static const char *const {name}[] = {{\n{lines([*map(text, values), 'NULL'], 4)}\n}};\n"


class Data:
    """Definitions of arrays, and the views of them that structures hold.

    Parameters
    ----------
    prefix : str
        What the names of all arrays begin with.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.definitions: list[str] = []

    def array(self, name: str, values: NDArray[Any]) -> str:
        """Define an array and return its address as an expression; NULL where it is empty."""
        if values.size == 0:
            return "NULL"
        kind = _TYPES[_kind(values)]
        entries = lines(number(value) for value in values.ravel().tolist())
        self.definitions.append(f"static const {kind} {self._prefix}_{name}[] = {{\n{entries}\n}};\n")
        return f"({kind} *){self._prefix}_{name}"

    def view(self, name: str, values: NDArray[Any]) -> str:
        """Define an array and return the initialiser of a view of it."""
        return f"{{{', '.join([self.array(name, values), *map(str, values.shape)])}}}"

    def integer(self, value: int) -> str:
        """Return the initialiser of an integer."""
        return str(value)

    def absent(self, length: int) -> str:
        """Return the initialiser of a view whose array is made later."""
        return f"{{NULL, {length}}}"

    def kernels(self, name: str, functions: Iterable[str]) -> str:
        """Define an array of kernels, ``NULL`` among them where there is none; return the initialiser of a view."""
        entries = list(functions)
        if not entries:
            return "{NULL, 0}"
        self.definitions.append(f"static const fsm_kernel {self._prefix}_{name}[] = {{\n{lines(entries, 4)}\n}};\n")
        return f"{{(fsm_kernel *){self._prefix}_{name}, {len(entries)}}}"

    def structure(self, name: str, kind: str, values: Mapping[str, float | int]) -> str:
        """Define a structure of numbers; return the two initialisers of a pointer to it and of its length."""
        entries = ",\n".join(f"    .{field} = {number(value)}" for field, value in values.items())
        self.definitions.append(f"static const struct {kind} {self._prefix}_{name} = {{\n{entries}\n}};\n")
        return f"(struct {kind} *)&{self._prefix}_{name}"


def _kind(values: NDArray[Any]) -> str:
    return "f" if values.dtype == np.float64 else f"i{values.dtype.itemsize}"


def initialiser(fields: Mapping[str, str]) -> str:
    """Return a designated initialiser of a structure."""
    return "{\n" + ",\n".join(f"    .{field} = {value}" for field, value in fields.items()) + "\n}"
