"""Reading back what a live run has recorded, also where the end is missing.

A recording of ten minutes holds hundreds of megabytes in some ten thousand messages.  The file is mapped into memory
and walked through record by record (MCAP: an opcode, a length of eight bytes, the content); rows go from there into
one table.  The package ``mcap`` reads what is there once.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.live.rows import Columns

_MAGIC: Final = b"\x89MCAP0\r\n"
_CHANNEL, _MESSAGE, _CHUNK, _ATTACHMENT, _METADATA, _DATA_END = 0x04, 0x05, 0x06, 0x09, 0x0C, 0x0F
_MESSAGE_HEAD: Final = 22  # bytes: channel, sequence, two times


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
    rows, records : float64 arrays
        One row per tick, one record per transition (the number of its tick in front).
    events : list of mappings
    complete : bool
        Whether the file was closed in order.
    """

    settings: dict[str, Any]
    graph: str
    columns: Columns
    rows: NDArray[np.float64]
    records: NDArray[np.float64]
    events: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False


def read_recording(path: str | Path) -> Recorded:
    """Read a recording; one whose end is missing is read as far as it goes.

    Raises
    ------
    InputError
        The file is no recording of a live run.
    """
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
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
    rows, records = _table(data, parts["rows"], columns.width), _table(data, parts["transitions"], settings["record"])
    events = [json.loads(data[at : at + length]) for at, length in parts["events"]]
    return Recorded(settings, graph, columns, rows, records, events, complete)


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


def _table(data: mmap.mmap, parts: list[tuple[int, int]], width: int) -> NDArray[np.float64]:
    """Return the doubles of some messages as rows."""
    total = sum(length for _, length in parts)
    if total % (8 * width):
        raise ValueError(f"rows of {width} numbers in {total} bytes")
    table = np.empty((total // (8 * width), width))
    raw, place = table.reshape(-1).view(np.uint8), 0
    for at, length in parts:
        raw[place : place + length] = np.frombuffer(data, np.uint8, length, at)
        place += length
    return table


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
