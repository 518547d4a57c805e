"""Named tuples of arrays as the structures that the runtime reads (``runtime/tables.h``, ``run.h``, ``tick.h``).

A structure of the runtime holds, for every array, its address and its lengths: those of the fields of the named tuple,
in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.layouts import DIMENSIONS

T = TypeVar("T", bound=tuple[Any, ...])


class Packed(NamedTuple):
    """A structure on the Python side: its address, its words, and the arrays, which must stay alive."""

    address: int
    table: NDArray[np.int64]
    arrays: tuple[Any, ...]


# words before the structure, dtype and place of every array, the structure with addresses from the block's beginning on
_Plan = tuple[int, list[tuple[np.dtype[Any], slice]], NDArray[np.int64]]


def _entry_type(annotation: Any) -> np.dtype[Any]:
    """Return T of ``NDArray[T]``, which numpy writes out as ``ndarray[shape, dtype[T]]`` or (from 2.5 on) does not."""
    last = get_args(annotation)[-1]
    return np.dtype((get_args(last) or (last,))[0])


class Bundle:
    """How a named tuple class becomes a structure.

    Parameters
    ----------
    cls : type
        Named tuple class whose fields are all annotated ``NDArray[dtype]``.
    dimensions : mapping, optional
        Number of dimensions of the fields that have more than one; by default those of the structure in C.

    Attributes
    ----------
    words : int
        Length of the structure, as text of eight bytes.
    """

    def __init__(self, cls: type[T], dimensions: dict[str, int] | None = None) -> None:
        if dimensions is None:
            dimensions = DIMENSIONS.get(cls, {})
        self.cls = cls
        self.name = cls.__name__
        self._plans: dict[tuple[int, ...], _Plan] = {}
        hints = get_type_hints(cls)
        self.fields: dict[str, tuple[np.dtype[Any], int]] = {}
        for field in cls._fields:  # type: ignore[attr-defined]
            self.fields[field] = (_entry_type(hints[field]), dimensions.get(field, 1))

        self.words = sum(1 + ndim for _, ndim in self.fields.values())

    def pack(self, arrays: T) -> Packed:
        """Return the structure of a named tuple; raises TypeError if an array is not as declared."""
        words: list[int] = []
        for (field, (dtype, ndim)), array in zip(self.fields.items(), arrays, strict=True):
            if array.dtype != dtype or array.ndim != ndim or not array.flags.c_contiguous:
                raise TypeError(f"{self.name}.{field} must be a C-contiguous {dtype} array of {ndim} dimensions")
            words += (array.ctypes.data, *array.shape)
        table = np.array(words, dtype=np.int64)
        return Packed(table.ctypes.data, table, arrays)

    def allocate(self, *lengths: int) -> tuple[Any, Packed]:
        """Return a named tuple of zeroed one-dimensional arrays of these lengths, in one block, and its structure.

        Much faster than :meth:`pack`, because a single address has to be looked up.  The last ``words`` of the block,
        ``Packed.table``, are the structure.
        """
        at, places, table = self._plan(lengths)
        block = np.zeros(at + len(table), dtype=np.int64)
        base: int = block.ctypes.data
        views = {dtype: block.view(dtype) for dtype, _ in places}
        block[at:] = table
        block[at::2] += base
        return self.cls(*[views[dtype][place] for dtype, place in places]), Packed(base + 8 * at, block, ())

    def _plan(self, lengths: tuple[int, ...]) -> _Plan:
        """Where a block of :meth:`allocate` holds its arrays: worked out once for every choice of lengths."""
        if lengths not in self._plans:
            places: list[tuple[np.dtype[Any], slice]] = []
            table: list[int] = []
            at = 0
            for n, (dtype, _) in zip(lengths, self.fields.values(), strict=True):
                first = at * 8 // dtype.itemsize
                places.append((dtype, slice(first, first + n)))
                table += (8 * at, n)
                at += 1 + (n * dtype.itemsize - 1) // 8
            self._plans[lengths] = (at, places, np.array(table, dtype=np.int64))
        return self._plans[lengths]
