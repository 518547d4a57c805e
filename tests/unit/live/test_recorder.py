"""A disk filling up during a recording: reported at once, counted, and the written part stays readable."""

import errno
import json
import time
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.live import recording as recorder
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import Recorder, read_recording
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.runtime.abi import LiveHeader

COLUMNS = TickColumns((), ("x",), 1, (), (), ())
SETTINGS = LiveSettings(axes=1, substeps=1, modes=("free",), record=5, work_per_tick=30, felt=False)


class Disk:
    """A file on a disk with a number of bytes left, besides its head if it fits; the last write may be cut short."""

    def __init__(self, file, room, head):
        self.file, self.limit, self.head = file, room, head

    def write(self, data):
        if self.head:
            self.limit, self.head = self.limit + len(data), False
        room = self.limit - self.file.tell()
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data[:room])

    def __getattr__(self, name):
        return getattr(self.file, name)


def fill(monkeypatch, room, *, head=True):
    """Let every recording made from now on have so many bytes, beside its head or not."""
    made = recorder._File.__init__

    def limited(self, path):
        made(self, path)
        self._file = Disk(self._file, room, head)

    monkeypatch.setattr(recorder._File, "__init__", limited)


def until(condition):
    patience = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.005)


@pytest.mark.parametrize("cut", range(0, 400, 57))
@pytest.mark.parametrize("paced", [True, False])
def test_what_is_written_stays_readable_and_what_is_lost_is_counted(monkeypatch, tmp_path, paced, cut):
    path = tmp_path / "run.mcap"
    block = tick_data.SharedBlock.create(tick_data.BlockLayout(COLUMNS.width, 5))
    fill(monkeypatch, 3000 + cut)
    monkeypatch.setattr(recorder, "INTERVAL", 0.001)
    written_by = Recorder(path, block, COLUMNS, replace(SETTINGS, paced=paced), "{}")
    try:
        for number in range(1, 101):
            tick_data.put_row(block.rows, block.header, LiveHeader.ROWS, np.full(COLUMNS.width, float(number)))
            if number % 10 == 0:
                until(lambda number=number: block.header[LiveHeader.RECORDED] == number)
        until(lambda: written_by.failure)
        assert str(path) in written_by.failure
        assert "No space left" in written_by.failure
        assert block.header[LiveHeader.STOP_REQUESTED] == (not paced)
    finally:
        written_by.close()
        block.close(remove=True)
    found = read_recording(path)
    written = found.rows[:, 0].tolist()
    assert written == list(range(1, len(written) + 1))
    assert 0 < len(written) == 100 - written_by.lost
    assert not found.complete


def test_where_not_even_its_head_has_room_there_is_no_recording(monkeypatch, tmp_path):
    fill(monkeypatch, 100, head=False)
    block = tick_data.SharedBlock.create(tick_data.BlockLayout(COLUMNS.width, 5))
    with pytest.raises(InputError, match="No space left"):
        Recorder(tmp_path / "run.mcap", block, COLUMNS, SETTINGS, "{}")
    block.close(remove=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("paced", [True, False])
def test_a_run_says_that_its_recording_has_ended(monkeypatch, tmp_path, paced):
    """A paced run continues to its end, an unpaced one ends; both report the reason, and exit with 1."""
    path = tmp_path / "run.mcap"
    fill(monkeypatch, 200_000 if paced else 2_000_000)
    command = ["live", "latch", "--duration", "2" if paced else "1000", "--record", str(path), "--json"]
    done = CliRunner().invoke(app, command + ([] if paced else ["--no-pacing"]))
    assert done.exit_code == 1, done.output
    assert done.stderr.count("the recording has ended: cannot write") == 1
    assert "rows of the run are not recorded" in done.stderr
    report = json.loads(done.stdout)
    assert report["recording_failed"].endswith("No space left on device")
    assert report["ticks"] == 2000 if paced else 100 < report["ticks"] < 1_000_000
    assert len(read_recording(path).rows) == report["ticks"] - report["rows_lost"] > 100
    assert report["watchdog_action"] == report["fault"] == ""
