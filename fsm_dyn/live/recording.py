"""Recordings of live runs, in MCAP files: written and read."""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.automaton.storage import from_bytes
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, Location
from fsm_dyn.core.files import convert, decode, opened
from fsm_dyn.core.records import dataclass
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.device_map import coupled_ports
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.run.outcomes import CHOSEN, candidates_fit
from fsm_dyn.runtime.abi import GUARD_WIDTH, LOG_LENGTH, LOG_WIDTH, MAX_FIRED, Event, LiveHeader, RecordColumn

# -- Reader of recordings of live runs, also of truncated files ----------------------------------------------
#
# A recording of ten minutes has hundreds of megabytes in some thousand messages. The file is mapped into memory and
# parsed record by record (MCAP: an opcode, a length of eight bytes, the content); rows are copied only on access. The
# package ``mcap`` parses records without repetition.

_MAGIC: Final = b"\x89MCAP0\r\n"
_CHANNEL, _MESSAGE, _CHUNK, _ATTACHMENT, _METADATA, _DATA_END = 0x04, 0x05, 0x06, 0x09, 0x0C, 0x0F
_MESSAGE_HEAD: Final = 22  # bytes: channel, sequence, two times
_WHAT: Final = "a recording of a live run"

_MEASURED: Final = (RecordColumn.ENERGY_BEFORE, RecordColumn.ENERGY_AFTER, RecordColumn.BETA)


class _Command(msgspec.Struct):
    do: str


class _Set(msgspec.Struct):
    values: dict[str, float]


class _Scrub(msgspec.Struct):
    t: float


class _Speed(msgspec.Struct):
    value: float


class _CommandDone(msgspec.Struct):
    tick: int
    command: _Command


class _ModeAdded(msgspec.Struct):
    states: list[tuple[int, ...]]


class _KernelAdopted(msgspec.Struct):
    tick: int
    states: tuple[int, ...]
    evaluations: Annotated[int, Meta(ge=0, le=2**62)]


_EVENTS: Final[dict[str, type[msgspec.Struct]]] = {
    "command_done": _CommandDone,
    "mode_added": _ModeAdded,
    "kernel_adopted": _KernelAdopted,
}
_COMMANDS: Final[dict[str, type[msgspec.Struct]]] = {"set": _Set, "scrub": _Scrub, "speed": _Speed}


class MappedRows:
    """Rows of a recording, read from the mapped file on access.

    ``data``: the file; it stays mapped for the lifetime of this object. ``parts``, list of (place, length) in bytes:
    the messages with rows, in order. Raises ValueError: the length of a message is no multiple of a row.
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

    def __getitem__(self, number: int) -> Floats:
        """Return a row, shape (width,)."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        k = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return np.array(self._parts[k][number - self._firsts[k]], dtype=np.float64)

    def columns(self, numbers: Sequence[int]) -> Floats:
        """Return some columns, shape (len(numbers), n), each contiguous, in one pass over the file."""
        out = np.empty((len(numbers), len(self)))
        for part, first in zip(self._parts, self._firsts.tolist(), strict=False):
            for own, number in zip(out, numbers, strict=True):
                own[first : first + len(part)] = part[:, number]
        return out

    def whole(self) -> Floats:
        """Return all rows as one table, shape (n, width)."""
        table = np.empty((len(self), self._width))
        for part, first in zip(self._parts, self._firsts.tolist(), strict=False):
            table[first : first + len(part)] = part
        return table


@dataclass
class Recording:
    """Content of a recording."""

    settings: LiveSettings  # of the session, from which a stepper is made
    graph: str  # the saved automaton
    columns: TickColumns
    table: MappedRows  # one row per tick
    records: Floats  # float64 array: one per transition, the number of its tick in front
    events: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False  # whether the file was closed in order

    @cached_property
    def rows(self) -> Floats:
        """All rows in memory, shape (n, width); of a long recording hundreds of megabytes."""
        return self.table.whole()


def recorded_graph(recorded: Recording) -> ModeGraph:
    """Return the mode graph in a recording.

    Raises InputError: there is none, or rows, events or transitions do not fit it.
    """
    graph = graph_with_parameters(from_bytes(recorded.graph), recorded.settings.parameters)
    for what in _faults(recorded, graph):
        raise InputError("the recording does not fit its model", found=what)
    return graph


def _faults(recorded: Recording, graph: ModeGraph) -> Iterator[str]:
    """Yield the names of recorded parts inconsistent with the graph."""
    automaton, columns = graph.automaton, recorded.columns
    layout, contacts = automaton.terms.layout, automaton.contacts
    discrete = layout.c[layout.sigma_slice.start : layout.memory_slice.stop]
    if (columns.inputs, columns.state, columns.discrete) != (layout.w, layout.x, discrete):
        yield "the names of columns"
    if columns.ports != tuple(axis.name for port in coupled_ports(automaton.mechanism) for axis in port.axes):
        yield "the ports"
    if not {*columns.smooth} <= {*layout.w}:
        yield "the inputs that run as cubics"
    for event in recorded.events:
        kind = event.get("event")
        for states in (
            event["states"] if kind == "mode_added" else [event["states"]] if kind == "kernel_adopted" else ()
        ):
            known = len(states) == len(contacts)
            if not known or any(code not in c.codes for code, c in zip(states, contacts, strict=True)):
                yield f"contact states {states}"
    known_columns = recorded.table.columns([FIXED.index(name) for name in ("tick", "t", "mode", "advanced")])
    if not np.isfinite(known_columns).all() or (np.abs(known_columns) > 1e15).any():
        yield "ticks, times or modes of rows"
    if not _transitions_fit(recorded.records, graph.automaton):
        yield "transitions"


def _transitions_fit(records: Floats, automaton: Automaton) -> bool:
    """Whether all guards, contacts and candidates in the records of transitions exist."""
    guards, n_contacts = RecordColumn.GUARDS + MAX_FIRED * GUARD_WIDTH, len(automaton.contacts)
    width = guards + len(automaton.rows) + 2 * len(automaton.terms.layout.u)
    if records.shape[1] != 1 + width + LOG_LENGTH:
        return False
    numbers = np.delete(records[:, : 1 + RecordColumn.GUARDS], np.array(_MEASURED) + 1, axis=1)
    if not (np.abs(numbers) < 1e15).all():  # also for NaN
        return False
    records = records[:, 1:]
    fired = records[:, RecordColumn.GUARDS : guards].reshape(len(records), MAX_FIRED, GUARD_WIDTH)
    there = np.arange(MAX_FIRED) < records[:, RecordColumn.FIRED, None]
    event, subject = fired[:, :, 0][there], fired[:, :, 1][there]
    end = np.where(event == Event.TRANSITION, len(automaton.resets), n_contacts)
    good = np.isin(event, [*Event]).all() and ((subject >= 0) & (subject < end)).all()
    good &= (records[:, RecordColumn.WRITTEN] < len(automaton.resets)).all()
    good &= (records[:, RecordColumn.FIRED] <= MAX_FIRED).all()
    log = records[:, width:].reshape(len(records), LOG_LENGTH // LOG_WIDTH, LOG_WIDTH)
    log = log[np.arange(log.shape[1]) < records[:, RecordColumn.CANDIDATES, None]]
    good &= np.isin(records[:, RecordColumn.CHOSEN_BY].astype(np.int64), [*CHOSEN]).all()
    return bool(good) and candidates_fit(log, n_contacts)


def read_recording(path: str | Path) -> Recording:
    """Read a recording; a truncated one is read up to its last complete record.

    Raises InputError: the file is no recording of a live run.
    """
    where = Location(str(path))
    with opened(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InputError("the file is no MCAP file", where, allowed=_WHAT)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _read(data)
    except InputError as error:
        if not error.where.file:
            error.where = where
        raise
    except (ValueError, TypeError) as error:  # the framing of a record
        raise InputError("the recording is corrupt", where, found=repr(error)[:200]) from error


def _read(data: mmap.mmap) -> Recording:
    settings: LiveSettings | None = None
    columns: TickColumns | None = None
    graph, complete = "", False
    names: dict[int, str] = {}
    parts: dict[str, list[tuple[int, int]]] = {"rows": [], "transitions": [], "events": []}
    mcap = mcap_names()

    def parsed(read: Callable[[Any], Any], at: int, length: int) -> Any:
        try:
            return read(mcap.Stream(io.BytesIO(data[at : at + length])))
        except Exception as error:  # the package has its own, others in other versions
            raise ValueError(repr(error)) from error

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
                settings = LiveSettings.of_data(decode(found.metadata.get("settings", "null"), Any, _WHAT), _WHAT)
                columns = decode(found.metadata.get("columns", "null"), TickColumns, _WHAT)
        elif kind == _CHUNK:
            raise InputError(f"the file is not {_WHAT}", found="chunks")
        complete |= kind == _DATA_END
    if settings is None or columns is None or not graph:
        raise InputError(f"the file is not {_WHAT}")
    if columns.device != settings.axes:
        raise InputError("the recording is inconsistent", found="the number of axes")
    table = MappedRows(data, parts["rows"], columns.width)
    records = MappedRows(data, parts["transitions"], settings.record).whole()
    events = [_event(data[at : at + length]) for at, length in parts["events"]]
    return Recording(settings, graph, columns, table, records, events, complete)


def _event(text: bytes) -> dict[str, Any]:
    """Return an event; events needed to interpret the rows are validated."""
    event = decode(text, dict[str, Any], "an event of a live run")
    kind = _EVENTS.get(str(event.get("event")))
    if kind is not None:
        checked = convert(event, kind, "an event of a live run")
        if isinstance(checked, _CommandDone) and (asked := _COMMANDS.get(checked.command.do)) is not None:
            convert(event["command"], asked, "a command of a live run")
    return event


def _records(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, offset and length of every complete record."""
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
    """Classes of the package ``mcap`` for recorder and reader."""

    def __init__(self) -> None:
        from mcap.data_stream import ReadDataStream
        from mcap.records import Attachment, Channel, Metadata
        from mcap.writer import Writer

        self.Stream, self.Writer = ReadDataStream, Writer
        self.Attachment, self.Channel, self.Metadata = Attachment, Channel, Metadata


def mcap_names() -> Mcap:
    """Return the classes of the package ``mcap``; raise InputError if it is not installed."""
    try:
        return Mcap()
    except ImportError as error:
        raise InputError(
            "recordings need the package mcap", found=str(error), remedy="pip install 'fsm-dyn[live]'"
        ) from error


# -- Recorder of live runs, in MCAP files; :mod:`fsm_dyn.live.recording` reads them --------------------------
#
# The recorder is a thread of the session; it reads the rings and appends to the file every 20 ms, unchunked and
# flushed, so a killed process loses at most 20 ms. Channels: ``rows`` and ``transitions`` hold little-endian doubles,
# bit for bit those of the rings; ``events`` and ``state`` are JSON, the latter for other tools.
#
# If the disk is full, the part already written stays readable and later rows are counted as lost. A paced run
# continues: the recorder does not influence the device. An unpaced run ends.

INTERVAL: Final = 0.02  # s between looks at the rings
_BINARY: Final = "fsm_dyn_float64"


class Recorder:
    """Recorder thread: appends the content of the rings of a live run to a file.

    ``path``: the file; must not exist. ``settings``: written at the head of the file. ``graph``: the saved automaton,
    also written at the head. Raises InputError: the file exists or cannot be written, or the package ``mcap`` is not
    installed.
    """

    def __init__(
        self,
        path: Path,
        block: tick_data.SharedBlock,
        columns: TickColumns,
        settings: LiveSettings,
        graph: str,
    ) -> None:
        mcap = mcap_names()
        try:
            self._file = _File(path)
        except OSError as error:
            raise InputError(f"cannot record to '{path}'", found=str(error), remedy="name a new file") from error
        self._path, self._paced = path, settings.paced
        self._writer = mcap.Writer(self._file, use_chunking=False)  # type: ignore[arg-type]  # write, tell only
        self._writer.start("fsm_dyn", library="fsm_dyn live")
        described = {
            "inputs": columns.inputs, "state": columns.state, "device": columns.device, "ports": columns.ports,
            "discrete": columns.discrete, "names": columns.names, "smooth": columns.smooth,
        }  # fmt: skip
        self._writer.add_attachment(0, 0, "graph.json", "application/json", graph.encode())
        self._writer.add_metadata(
            "live", {"settings": json.dumps(settings.as_data()), "columns": json.dumps(described)}
        )
        schema = self._writer.register_schema("state", "jsonschema", b'{"type": "object"}')
        self._channels = {
            name: self._writer.register_channel(name, encoding, schema if name == "state" else 0)
            for name, encoding in (
                ("rows", _BINARY), ("transitions", _BINARY), ("events", "json"), ("state", "json"),
            )
        }  # fmt: skip
        try:
            self._file.flush()
        except OSError as error:
            self._file.close()
            path.unlink()
            raise InputError(f"cannot record to '{path}'", found=str(error), remedy="make room") from error
        self._block, self._columns = block, columns
        self._at = {"rows": 0, "transitions": 0, "events": 0}
        self.lost = self._written = 0  # rows
        self.failure = ""  # why writing has stopped
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            self._look()

    def _look(self) -> None:
        """Append new content of the rings, or count it as lost if writing has failed."""
        if not self.failure:
            try:
                self._drain()
            except OSError as error:
                self._fail(error)
        if self.failure:
            self.lost = int(self._block.header[LiveHeader.ROWS]) - self._written
            self._block.header[LiveHeader.RECORDED] = self._block.header[LiveHeader.ROWS]

    def _fail(self, error: OSError) -> None:
        """Record a failure of writing; an unpaced run ends."""
        self.failure = f"cannot write '{self._path}': {error.strerror or error}"
        if not self._paced:
            self._block.header[LiveHeader.STOP_REQUESTED] = 1

    def _drain(self) -> None:
        block, header = self._block, self._block.header
        now = time.time_ns()
        for name, ring, counter in (
            ("rows", block.rows, LiveHeader.ROWS), ("transitions", block.records, LiveHeader.TRANSITIONS),
        ):  # fmt: skip
            rows, self._at[name], lost = tick_data.take_rows(ring, header, counter, self._at[name])
            self.lost += lost
            if name == "rows":
                header[LiveHeader.RECORDED] = self._at[name]
            if len(rows):
                self._add(name, now, np.ascontiguousarray(rows, "<f8").tobytes())
            if name == "rows" and len(rows):
                self._add("state", now, _as_json(self._columns, rows[-1]))
        events, self._at["events"] = tick_data.take_texts(block.events, header, LiveHeader.EVENTS, self._at["events"])
        for event in events:
            self._add("events", now, json.dumps(event).encode())
        self._file.flush()
        self._written = self._at["rows"] - self.lost

    def _add(self, channel: str, now: int, data: bytes) -> None:
        self._writer.add_message(self._channels[channel], now, data, now)

    def close(self) -> None:
        """Write the remaining content and close the file."""
        self._stop.set()
        self._thread.join()
        self._look()
        if not self.failure:
            try:
                self._writer.finish()  # type: ignore[no-untyped-call]
                self._file.flush()
            except OSError as error:  # the index is missing, but no row
                self._fail(error)
        self._file.close()


class _File:
    """File with atomic ``flush``: it has everything up to the call or, if the call fails, up to the one before."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._size = 0
        self._new = bytearray()

    def write(self, data: bytes) -> int:
        """Append data to the buffer."""
        self._new += data
        return len(data)

    def tell(self) -> int:
        """Return the length of file and buffer."""
        return self._size + len(self._new)

    def flush(self) -> None:
        """Write the buffer; raises OSError."""
        rest = bytes(self._new)
        self._new.clear()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            self._size = self._file.tell()
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise

    def close(self) -> None:
        """Close the file; the buffer is discarded."""
        with contextlib.suppress(OSError):
            self._file.close()


def _as_json(columns: TickColumns, row: Floats) -> bytes:
    values = {
        name: value if math.isfinite(value) else None for name, value in zip(columns.names, row.tolist(), strict=True)
    }
    return json.dumps(values).encode()
