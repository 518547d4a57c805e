"""Reading back what a live run has recorded, also where the end is missing.

A recording of ten minutes holds hundreds of megabytes in some thousand messages.  The file is mapped into memory and
walked through record by record (MCAP: an opcode, a length of eight bytes, the content); rows stay where they are until
somebody asks for them.  The package ``mcap`` reads what is there once.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.compiling import graph_of
from fsm_dyn.errors import InputError
from fsm_dyn.live.rows import Columns

_MAGIC: Final = b"\x89MCAP0\r\n"
_CHANNEL, _MESSAGE, _CHUNK, _ATTACHMENT, _METADATA, _DATA_END = 0x04, 0x05, 0x06, 0x09, 0x0C, 0x0F
_MESSAGE_HEAD: Final = 22  # bytes: channel, sequence, two times


class Rows:
    """The rows of a recording, in its file.

    Parameters
    ----------
    data : mmap
        The file; it stays mapped for as long as this lives.
    parts : list of (place, length) in bytes
        The messages that hold rows, in order.
    width : int
        Numbers in a row.

    Raises
    ------
    ValueError
        A message does not hold whole rows.
    """

    def __init__(self, data: mmap.mmap, parts: list[tuple[int, int]], width: int) -> None:
        size = 8 * width
        for _, length in parts:
            if length % size:
                raise ValueError(f"rows of {width} numbers in {length} bytes")
        self._width = width
        self._parts = [np.frombuffer(data, "<f8", length // 8, at).reshape(-1, width) for at, length in parts if length]
        self._firsts = np.cumsum([0, *(len(part) for part in self._parts)])

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def __getitem__(self, number: int) -> NDArray[np.float64]:
        """Return a row, shape (width,)."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        k = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return np.array(self._parts[k][number - self._firsts[k]], dtype=np.float64)

    def columns(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """Return some columns, shape (len(numbers), n), each contiguous; the file is gone through once."""
        out = np.empty((len(numbers), len(self)))
        for part, first in zip(self._parts, self._firsts.tolist(), strict=False):
            for own, number in zip(out, numbers, strict=True):
                own[first : first + len(part)] = part[:, number]
        return out

    def whole(self) -> NDArray[np.float64]:
        """Return all rows as one table, shape (n, width)."""
        table = np.empty((len(self), self._width))
        for part, first in zip(self._parts, self._firsts.tolist(), strict=False):
            table[first : first + len(part)] = part
        return table


@dataclass
class Recorded:
    """A recording as it was read back.

    Attributes
    ----------
    settings : mapping
        Of the session; ``settings["parameters"]`` and the others a stepper is made from.
    graph : str
        The saved automaton.
    columns : Columns
    table : Rows
        One row per tick, in the file.
    records : float64 array
        One per transition, the number of its tick in front.
    events : list of mappings
    complete : bool
        Whether the file was closed in order.
    """

    settings: dict[str, Any]
    graph: str
    columns: Columns
    table: Rows
    records: NDArray[np.float64]
    events: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """All rows in memory, shape (n, width); of a long recording hundreds of megabytes."""
        return self.table.whole()


def recorded_graph(recorded: Recorded) -> ModeGraph:
    """Return the graph that a recording carries."""
    return graph_of(storage.from_bytes(recorded.graph), recorded.settings["parameters"])


def read_recording(path: str | Path) -> Recorded:
    """Read a recording; one whose end is missing is read as far as it goes.

    Raises
    ------
    InputError
        The file is no recording of a live run.
    """
    try:
        with Path(path).open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if data[: len(_MAGIC)] != _MAGIC:
            raise InputError(f"'{path}' is no MCAP file", found=repr(data[:8]))
        return _read(str(path), data)
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise InputError(f"cannot read '{path}'", found=str(error)) from error
    except (KeyError, TypeError, struct.error) as error:
        raise InputError(f"the recording '{path}' does not hold together", found=repr(error)[:200]) from error


def _read(path: str, data: mmap.mmap) -> Recorded:
    settings: dict[str, Any] = {}
    described: dict[str, Any] = {}
    graph, complete = "", False
    names: dict[int, str] = {}
    parts: dict[str, list[tuple[int, int]]] = {"rows": [], "transitions": [], "events": []}
    mcap = mcap_names()

    def parsed(read: Callable[[Any], Any], at: int, length: int) -> Any:
        return read(mcap.Stream(io.BytesIO(data[at : at + length])))

    for kind, at, length in _records(data):
        if kind == _MESSAGE:
            name = names.get(int.from_bytes(data[at : at + 2], "little"), "")
            if name in parts:
                parts[name].append((at + _MESSAGE_HEAD, length - _MESSAGE_HEAD))
        elif kind == _CHANNEL:
            channel = parsed(mcap.Channel.read, at, length)
            names[channel.id] = channel.topic
        elif kind == _ATTACHMENT:
            graph = parsed(mcap.Attachment.read, at, length).data.decode()
        elif kind == _METADATA:
            found = parsed(mcap.Metadata.read, at, length)
            if found.name == "live":
                settings, described = (json.loads(found.metadata[key]) for key in ("settings", "columns"))
        elif kind == _CHUNK:
            raise InputError(f"'{path}' is not a recording of a live run", found="chunks")
        complete |= kind == _DATA_END
    if not settings or not graph:
        raise InputError(f"'{path}' is not a recording of a live run")
    columns = Columns(
        tuple(described["inputs"]), tuple(described["state"]), int(described["device"]), tuple(described["ports"]),
        tuple(described.get("discrete", ())), tuple(described.get("smooth", ())),
    )  # fmt: skip
    table = Rows(data, parts["rows"], columns.width)
    records = Rows(data, parts["transitions"], settings["record"]).whole()
    events = [json.loads(data[at : at + length]) for at, length in parts["events"]]
    return Recorded(settings, graph, columns, table, records, events, complete)


def _records(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, place and length of every record that is there as a whole."""
    at, end = len(_MAGIC), len(data)
    head = struct.Struct("<BQ")
    while at + head.size <= end:
        kind, length = head.unpack_from(data, at)
        at += head.size
        if at + length > end or not kind:
            return
        yield kind, at, length
        at += length


class Mcap:
    """The names of the package ``mcap`` that are needed here."""

    def __init__(self) -> None:
        from mcap.data_stream import ReadDataStream
        from mcap.records import Attachment, Channel, Metadata
        from mcap.writer import Writer

        self.Stream, self.Writer = ReadDataStream, Writer
        self.Attachment, self.Channel, self.Metadata = Attachment, Channel, Metadata


def mcap_names() -> Mcap:
    """Return what is needed of the package ``mcap``; raise InputError where it is not installed."""
    try:
        return Mcap()
    except ImportError as error:
        raise InputError(
            "recordings need the package mcap", found=str(error), remedy="pip install 'fsm-dyn[live]'"
        ) from error
