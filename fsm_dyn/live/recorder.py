"""Recorder of live runs, in MCAP files; :mod:`fsm_dyn.live.recording_reader` reads them.

The recorder is a thread of the session; it reads the rings and appends to the file every 20 ms, unchunked and
flushed, so that a killed process loses no more than that.  Channels: ``rows`` and ``transitions`` hold little-endian
doubles, bit for bit those of the rings; ``events`` and ``state`` are JSON, the latter for other tools.

If the disk is full, the part already written stays readable and later rows are counted as lost.  A paced run continues:
the recorder does not influence the device.  A run that is not paced ends.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError
from fsm_dyn.live import shared_memory
from fsm_dyn.live.recording_reader import mcap_names
from fsm_dyn.live.recording_reader import read_recording as read_recording
from fsm_dyn.live.tick_columns import TickColumns
from fsm_dyn.runtime.abi import LiveHeader

INTERVAL: Final = 0.02  # s between looks at the rings
_BINARY: Final = "fsm_dyn_float64"


class Recorder:
    """Recorder thread: appends the content of the rings of a live run to a file.

    Parameters
    ----------
    path : path
        The file; must not exist.
    block : SharedBlock
    columns : TickColumns
    settings : mapping
        Written at the head of the file.
    graph : str
        The saved automaton, also written at the head.

    Raises
    ------
    InputError
        The file exists or cannot be written, or the package ``mcap`` is not installed.
    """

    def __init__(
        self,
        path: Path,
        block: shared_memory.SharedBlock,
        columns: TickColumns,
        settings: Mapping[str, Any],
        graph: str,
    ) -> None:
        mcap = mcap_names()
        try:
            self._file = _File(path)
        except OSError as error:
            raise InputError(f"cannot record to '{path}'", found=str(error), remedy="name a new file") from error
        self._path, self._paced = path, bool(settings["paced"])
        self._writer = mcap.Writer(self._file, use_chunking=False)  # type: ignore[arg-type]  # write, tell only
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
        """Note that writing has failed; a run that is not paced ends."""
        self.failure = f"cannot write '{self._path}': {error.strerror or error}"
        if not self._paced:
            self._block.header[LiveHeader.STOP_REQUESTED] = 1

    def _drain(self) -> None:
        block, header = self._block, self._block.header
        now = time.time_ns()
        for name, ring, counter in (
            ("rows", block.rows, LiveHeader.ROWS), ("transitions", block.records, LiveHeader.TRANSITIONS),
        ):  # fmt: skip
            rows, self._at[name], lost = shared_memory.take_rows(ring, header, counter, self._at[name])
            self.lost += lost
            if name == "rows":
                header[LiveHeader.RECORDED] = self._at[name]
            if len(rows):
                self._add(name, now, np.ascontiguousarray(rows, "<f8").tobytes())
            if name == "rows" and len(rows):
                self._add("state", now, _as_json(self._columns, rows[-1]))
        events, self._at["events"] = shared_memory.take_texts(
            block.events, header, LiveHeader.EVENTS, self._at["events"]
        )
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
    """File with atomic ``flush``: it has everything up to the call or, if that fails, up to the one before."""

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


def _as_json(columns: TickColumns, row: NDArray[np.float64]) -> bytes:
    values = {
        name: value if math.isfinite(value) else None for name, value in zip(columns.names, row.tolist(), strict=True)
    }
    return json.dumps(values).encode()
