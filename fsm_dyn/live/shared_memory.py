"""Shared memory of the processes of a live run: ring buffers, a mailbox and counters.

Every ring has one writer, which fills a slot and then counts it; a reader copies a slot and then checks whether the
writer has overwritten it meanwhile.  No process waits for another.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import tempfile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.core.records import dataclass
from fsm_dyn.runtime.abi import BINS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HEADER: Final = 64  # words of the header, more than ``LiveHeader.COUNT``


ROW_SLOTS: Final = 4096
RECORD_SLOTS: Final = 512
EVENT_SLOTS: Final = 256
COMMAND_SLOTS: Final = 64
TEXT_BYTES: Final = 2048
PART_BYTES: Final = TEXT_BYTES - 2  # of a text in a slot, between head byte and final zero
MAX_EVENT_SLOTS: Final = 128  # slots: room for the states and names of thousands of contacts
_HEAD: Final = 128  # begins a slot with the first part of a text, plus the number of later parts
POINTER_SLOTS: Final = 8
POINTER_WIDTH: Final = 16  # time, position (6), velocity (6), buttons


def anonymous() -> int | None:
    """Return a descriptor of memory, or of a file, without a name; None on Windows."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fsm_dyn_live")
    if os.name == "posix":
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    return None


@dataclass(frozen=True)
class BlockLayout:
    """Model-dependent lengths: columns of a row, columns of a record of a transition."""

    row: int
    record: int

    @property
    def sections(self) -> dict[str, tuple[int, str, tuple[int, ...]]]:
        """Offset, type and shape of every section."""
        wanted = {
            "header": ("<i8", (HEADER,)),
            "rows": ("<f8", (ROW_SLOTS, self.row)),
            "records": ("<f8", (RECORD_SLOTS, self.record)),
            "events": ("u1", (EVENT_SLOTS, TEXT_BYTES)),
            "mail": ("u1", (COMMAND_SLOTS, TEXT_BYTES)),
            "pointer": ("<f8", (POINTER_SLOTS, POINTER_WIDTH)),
            "durations": ("<i8", (BINS,)),
            "processor": ("<i8", (BINS,)),
            "latenesses": ("<i8", (BINS,)),
        }
        sections, at = {}, 0
        for name, (kind, shape) in wanted.items():
            sections[name] = (at, kind, shape)
            at += -(-np.dtype(kind).itemsize * int(np.prod(shape)) // 64) * 64
        return sections

    @property
    def size(self) -> int:
        """Length of the block in bytes."""
        at, kind, shape = self.sections["latenesses"]
        return at + np.dtype(kind).itemsize * int(np.prod(shape))


class SharedBlock:
    """A block of shared memory: anonymous, so nothing is ever left behind; on Windows a file.

    Parameters
    ----------
    shape : BlockLayout
    descriptor : int
        Of the memory; closed with the block.
    path : str
        The file, if any.
    """

    def __init__(self, shape: BlockLayout, descriptor: int, path: str = "") -> None:
        self.shape, self.descriptor, self.path = shape, descriptor, path
        self._map: mmap.mmap | None = mmap.mmap(descriptor, shape.size)
        self._views: dict[str, NDArray[Any]] = {
            name: np.frombuffer(self._map, kind, int(np.prod(lengths)), at).reshape(lengths)
            for name, (at, kind, lengths) in shape.sections.items()
        }
        self.header: Integers = self._views["header"]
        self.rows: Floats = self._views["rows"]
        self.records: Floats = self._views["records"]
        self.events: NDArray[np.uint8] = self._views["events"]
        self.mail: NDArray[np.uint8] = self._views["mail"]
        self.pointer: Floats = self._views["pointer"]
        self.durations: Integers = self._views["durations"]
        self.processor: Integers = self._views["processor"]
        self.latenesses: Integers = self._views["latenesses"]

    @classmethod
    def create(cls, shape: BlockLayout) -> SharedBlock:
        """Make a block full of zeros."""
        descriptor, path = anonymous(), ""
        if descriptor is None:
            descriptor, path = tempfile.mkstemp(prefix="fsm_dyn_live_")
        os.ftruncate(descriptor, shape.size)
        return cls(shape, descriptor, path)

    @property
    def address(self) -> str:
        """Argument of :meth:`open` in another process: an inherited descriptor, or a path."""
        return self.path or str(self.descriptor)

    @classmethod
    def open(cls, shape: BlockLayout, address: str) -> SharedBlock:
        """Open a block made by another process."""
        if address.isdigit():
            return cls(shape, int(address))
        return cls(shape, os.open(address, os.O_RDWR), address)

    def close(self, *, remove: bool = False) -> None:
        """Close the block; the memory is freed with the last reference."""
        if self._map is None:
            return
        # existing views keep the memory mapped
        self._views.clear()
        self._map = None
        os.close(self.descriptor)
        if remove and self.path:
            with contextlib.suppress(OSError):  # some systems keep mapped files
                os.unlink(self.path)


def plain(array: NDArray[Any]) -> Any:
    """Return a view of an array with plain numbers as entries: reading NumPy's scalars takes as long as a step."""
    view: Any = array
    return memoryview(view)


def put_row(ring: NDArray[Any], header: Integers, counter: int, row: NDArray[Any]) -> None:
    """Append a row to a ring; the oldest one goes."""
    count = header[counter]
    ring[count % len(ring)] = row
    header[counter] = count + 1


def take_rows(ring: NDArray[Any], header: Integers, counter: int, since: int) -> tuple[NDArray[Any], int, int]:
    """Return copies of the rows from number ``since`` on, the next number, and the number of rows lost meanwhile."""
    count = int(header[counter])
    first = max(since, count - len(ring) + 1)
    rows = ring[np.arange(first, count) % len(ring)]
    # drop rows the writer may have begun to overwrite during the copy
    kept = max(first, int(header[counter]) - len(ring) + 1)
    return rows[min(kept - first, len(rows)) :], count, kept - since


def _with_words(value: Any) -> Any:
    """Return data with texts instead of numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _with_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_words(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def put_text(
    ring: NDArray[np.uint8], header: Integers, counter: int, value: dict[str, Any], most_slots: int = 1
) -> None:
    """Append a mapping, as JSON, to a ring of texts, in one or more slots.

    Raises
    ------
    ValueError
        It takes more than ``most_slots``.
    """
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except ValueError:  # JSON has no word for such numbers, and readers of a recording refuse it
        data = json.dumps(_with_words(value)).encode()
    parts = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
    if len(parts) > most_slots:
        raise ValueError(f"a message has at most {most_slots * PART_BYTES} bytes, this one has {len(data)}")
    for k, part in enumerate(parts):
        count = int(header[counter])
        slot = ring[count % len(ring)]
        slot[0] = len(parts) - 1 - k + (0 if k else _HEAD)
        slot[1 : 1 + len(part)] = np.frombuffer(part, np.uint8)
        slot[1 + len(part)] = 0
        header[counter] = count + 1


def take_texts(ring: NDArray[np.uint8], header: Integers, counter: int, since: int) -> tuple[list[dict[str, Any]], int]:
    """Return the complete mappings from slot ``since`` on, and the slot after the last of them.

    A mapping with an overwritten first part is left out.
    """
    rows, count, _ = take_rows(ring, header, counter, since)
    found: list[dict[str, Any]] = []
    parts: list[bytes] = []  # of an incomplete text
    for row in rows:
        begins, to_come = divmod(int(row[0]), _HEAD)
        if begins:
            parts = []
        elif not parts:
            continue  # the beginning is lost
        parts.append(bytes(row[1:]).split(b"\0", 1)[0])
        if not to_come:
            found.append(json.loads(b"".join(parts)))
            parts = []
    return found, count - len(parts)
