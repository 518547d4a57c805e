"""Arrays and structures of the runtime as bytes in the memory of WebAssembly: pointers of four bytes, little-endian.

The same calls as :class:`fsm_dyn.exports.c_data.Data`, with bytes in place of text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Field(NamedTuple):
    """A field of a structure: its alignment and its bytes."""

    alignment: int
    content: bytes


def pointer(address: int) -> Field:
    """Return a field that is an address; 0 is NULL."""
    return Field(4, struct.pack("<I", address))


def real(value: float) -> Field:
    """Return a field that is a double."""
    return Field(8, struct.pack("<d", value))


class Image:
    """Constant data from an address on, eight bytes aligned.

    Parameters
    ----------
    begin : int
        Address of the first byte.
    """

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self.content = bytearray()

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self._begin + len(self.content)

    def put(self, content: bytes) -> int:
        """Append bytes and return their address."""
        at = self.end
        self.content += content + bytes(-len(content) % 8)
        return at

    def array(self, name: str, values: NDArray[Any]) -> Field:
        """Append an array and return its address; NULL where it is empty."""
        del name
        plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        return pointer(self.put(plain.tobytes()) if values.size else 0)

    def integer(self, value: int) -> Field:
        """Return a field that is an integer."""
        return Field(8, struct.pack("<q", value))

    def view_at(self, address: int, *lengths: int) -> Field:
        """Return a view of the array at an address."""
        return Field(8, struct.pack(f"<I4x{len(lengths)}q", address, *lengths))

    def absent(self, length: int) -> Field:
        """Return a view whose array is made later."""
        return self.view_at(0, length)

    def view(self, name: str, values: NDArray[Any]) -> Field:
        """Append an array and return a view of it."""
        return self.view_at(struct.unpack("<I", self.array(name, values).content)[0], *values.shape)

    def kernels(self, name: str, numbers: Iterable[int]) -> Field:
        """Append an array of kernels, 0 where there is none, and return a view of it."""
        entries = np.array(list(numbers), np.uint32)
        return self.view(name, entries)

    def structure(self, name: str, kind: str, values: Mapping[str, float | int]) -> Field:
        """Append a structure of numbers and return its address."""
        del name, kind
        fields = (real(value) if isinstance(value, float) else self.integer(value) for value in values.values())
        return pointer(self.put(laid_out(fields)))


def laid_out(fields: Iterable[Field]) -> bytes:
    """Return the fields of a structure behind one another, each aligned as C aligns it."""
    content = bytearray()
    for field in fields:
        content += bytes(-len(content) % field.alignment) + field.content
    return bytes(content)
