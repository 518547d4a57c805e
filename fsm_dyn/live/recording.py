"""Recording a live run to MCAP and reading it back, also where the end is missing.

The recorder is a thread of the session; it reads the rings and appends to the file every 20 ms, unchunked and
flushed, so that whatever is killed costs no more than that.  Channels: ``rows`` and ``transitions`` hold little-endian
doubles as they stood in the rings (bit for bit), ``events`` and ``state`` are JSON, the latter for other tools.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.live import memory
from fsm_dyn.live.rows import Columns

INTERVAL: Final = 0.02  # s between looks at the rings
_BINARY: Final = "fsm_dyn_float64"


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


class Recorder:
    """Appends what a live run leaves in its rings to a file.

    Parameters
    ----------
    path : path
        The file; must not exist.
    block : Block
    columns : Columns
    settings : mapping
        Written at the head of the file.
    graph : str
        The saved automaton, likewise.

    Raises
    ------
    InputError
        The file exists or cannot be written, or the package ``mcap`` is not installed.
    """

    def __init__(
        self, path: Path, block: memory.Block, columns: Columns, settings: Mapping[str, Any], graph: str
    ) -> None:
        mcap = _mcap()
        try:
            self._file = path.open("xb")
        except OSError as error:
            raise InputError(f"cannot record to '{path}'", found=str(error), remedy="name a new file") from error
        self._writer = mcap.Writer(self._file, use_chunking=False)
        self._writer.start("fsm_dyn", library="fsm_dyn live")
        described = {
            "inputs": columns.inputs, "state": columns.state, "device": columns.device, "ports": columns.ports,
            "discrete": columns.discrete, "names": columns.names, "smooth": columns.smooth,
        }  # fmt: skip
        self._writer.add_attachment(0, 0, "graph.json", "application/json", graph.encode())
        self._writer.add_metadata("live", {"settings": json.dumps(settings), "columns": json.dumps(described)})
        schema = self._writer.register_schema("state", "jsonschema", b'{"type": "object"}')
        self._channels = {
            name: self._writer.register_channel(name, encoding, schema if name == "state" else 0)
            for name, encoding in (
                ("rows", _BINARY), ("transitions", _BINARY), ("events", "json"), ("state", "json"),
            )
        }  # fmt: skip
        self._file.flush()
        self._block, self._columns = block, columns
        self._at = {"rows": 0, "transitions": 0, "events": 0}
        self.lost = 0
        self.failure = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(INTERVAL):
                self._drain()
        except OSError as error:  # the disk is full: the run goes on
            self.failure = str(error)

    def _drain(self) -> None:
        block, header = self._block, self._block.header
        now = time.time_ns()
        for name, ring, counter in (
            ("rows", block.rows, memory.ROWS), ("transitions", block.records, memory.TRANSITIONS),
        ):  # fmt: skip
            rows, self._at[name], lost = memory.take_rows(ring, header, counter, self._at[name])
            self.lost += lost
            if name == "rows":
                header[memory.RECORDED] = self._at[name]
            if len(rows):
                self._add(name, now, np.ascontiguousarray(rows, "<f8").tobytes())
            if name == "rows" and len(rows):
                self._add("state", now, _as_json(self._columns, rows[-1]))
        events, self._at["events"] = memory.take_texts(block.events, header, memory.EVENTS, self._at["events"])
        for event in events:
            self._add("events", now, json.dumps(event).encode())
        self._file.flush()

    def _add(self, channel: str, now: int, data: bytes) -> None:
        self._writer.add_message(self._channels[channel], now, data, now)

    def close(self) -> None:
        """Write what is left and close the file in order."""
        self._stop.set()
        self._thread.join()
        if not self.failure:
            try:
                self._drain()
                self._writer.finish()  # type: ignore[no-untyped-call]
            except OSError as error:
                self.failure = str(error)
        self._file.close()


def _as_json(columns: Columns, row: NDArray[np.float64]) -> bytes:
    values = {
        name: value if math.isfinite(value) else None for name, value in zip(columns.names, row.tolist(), strict=True)
    }
    return json.dumps(values).encode()


def read_recording(path: str | Path) -> Recorded:
    """Read a recording; one whose end is missing is read as far as it goes.

    Raises
    ------
    InputError
        The file is no recording of a live run.
    """
    settings: dict[str, Any] = {}
    graph, complete = "", False
    described: dict[str, Any] = {}
    names: dict[int, str] = {}
    parts: dict[str, list[bytes]] = {"rows": [], "transitions": [], "events": []}
    for record in _records(Path(path)):
        kind = type(record).__name__
        if kind == "Attachment":
            graph = record.data.decode()
        elif kind == "Metadata" and record.name == "live":
            settings, described = (json.loads(record.metadata[key]) for key in ("settings", "columns"))
        elif kind == "Channel":
            names[record.id] = record.topic
        elif kind == "Message" and names.get(record.channel_id) in parts:
            parts[names[record.channel_id]].append(record.data)
        elif kind == "DataEnd":
            complete = True
    if not settings or not graph:
        raise InputError(f"'{path}' is not a recording of a live run")
    try:
        return _recorded(settings, graph, described, parts, complete)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the recording '{path}' does not hold together", found=repr(error)[:200]) from error


def _recorded(
    settings: dict[str, Any], graph: str, described: dict[str, Any], parts: dict[str, list[bytes]], complete: bool
) -> Recorded:
    columns = Columns(
        tuple(described["inputs"]), tuple(described["state"]), int(described["device"]), tuple(described["ports"]),
        tuple(described.get("discrete", ())), tuple(described.get("smooth", ())),
    )  # fmt: skip
    return Recorded(
        settings, graph, columns, _table(parts["rows"], columns.width),
        _table(parts["transitions"], settings["record"]), [json.loads(data) for data in parts["events"]], complete,
    )  # fmt: skip


def _records(path: Path) -> Iterable[Any]:
    mcap = _mcap()
    try:
        with path.open("rb") as stream:
            yield from mcap.StreamReader(stream).records
    except OSError as error:
        raise InputError(f"cannot read '{path}'", found=str(error)) from error
    except mcap.EndOfFile:
        return
    except mcap.McapError as error:
        raise InputError(f"'{path}' is no MCAP file", found=str(error)[:200]) from error


def _table(parts: list[bytes], width: int) -> NDArray[np.float64]:
    return np.frombuffer(b"".join(parts), "<f8").reshape(-1, width).copy()


class _Mcap:
    """The names of the package ``mcap`` that are needed here."""

    def __init__(self) -> None:
        from mcap.exceptions import EndOfFile, McapError
        from mcap.stream_reader import StreamReader
        from mcap.writer import Writer

        self.EndOfFile, self.McapError, self.StreamReader, self.Writer = EndOfFile, McapError, StreamReader, Writer


def _mcap() -> _Mcap:
    try:
        return _Mcap()
    except ImportError as error:
        raise InputError(
            "recordings need the package mcap", found=str(error), remedy="pip install 'fsm-dyn[live]'"
        ) from error
