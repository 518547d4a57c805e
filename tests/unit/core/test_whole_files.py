"""Files of results: whole, or as they were; what fails names the file and leaves no other file."""

import errno
import os
import re
import stat
import threading
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.core.files import whole_file, write_file


def test_a_new_file_replaces_the_old_one(tmp_path):
    path = tmp_path / "x.csv"
    before = os.umask(0o027)
    try:
        write_file(path, "a\r\nµ\n")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"a\r\n\xc2\xb5\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_file(str(path), b"b")
    assert path.read_bytes() == b"b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert os.listdir(tmp_path) == ["x.csv"]


def broken_off(path, what):
    with whole_file(path) as temporary:
        assert temporary.suffix == path.suffix
        assert temporary.parent == path.parent
        temporary.write_bytes(b"half")
        raise what


@pytest.mark.parametrize("what", [ZeroDivisionError, KeyboardInterrupt, MemoryError])
def test_what_fails_leaves_the_file_as_it_was(tmp_path, what):
    path = tmp_path / "x.png"
    for before in ([], ["x.png"]):
        assert os.listdir(tmp_path) == before
        with pytest.raises(what):
            broken_off(path, what)
        assert os.listdir(tmp_path) == before
        path.write_bytes(b"old")
    assert path.read_bytes() == b"old"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link.csv", tmp_path / "folder" / "x.csv"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_written_to(tmp_path):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_file(path, b"content")
    reader.join(10)
    assert found == [b"content"]
    assert os.listdir(tmp_path) == ["pipe"]


def test_errors_name_the_file(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere" / "x.csv", tmp_path / ("x" * 300)):
        with pytest.raises(OSError, match=re.escape(str(path))) as caught:
            write_file(path, b"")
        assert caught.value.filename == str(path)
    with pytest.raises(OSError, match=r"x\.nc' cannot be written: no room"), whole_file(tmp_path / "x.nc"):
        raise OSError("no room")
    assert os.listdir(tmp_path) == []


WRITERS = {
    "a.run.json": lambda run, path: run.save(path),
    "a.csv": lambda run, path: run.to_csv(path),
    "a.nc": lambda run, path: run.to_netcdf(path),
    "a.png": lambda run, path: plot.save(plot.states(run), path),
    "a.svg": lambda run, path: plot.save(plot.states(run), path),
    "a.gif": lambda run, path: plot.animation(run, path, rate=5.0),
    "a.json": lambda run, path: fsm_dyn.compile("bouncing_ball").save(path),
    "a.graphml": lambda run, path: plot.draw(fsm_dyn.compile("bouncing_ball").nx, path),
    "a.dot": lambda run, path: plot.draw(fsm_dyn.compile("bouncing_ball").nx, path),
    "a.yaml": lambda run, path: fsm_dyn.Model.from_yaml(MODEL).to_yaml(path),
}
MODEL = Path(__file__).parents[3] / "yaml_models" / "bouncing_ball.yaml"


@pytest.fixture(scope="module")
def run():
    return fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.3)


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_replaces_the_old_file_at_the_end(run, tmp_path, monkeypatch, name):
    """The disk is full at the last moment: that of the exchange."""
    if name == "a.nc":
        pytest.importorskip("h5netcdf")
    path = tmp_path / name
    WRITERS[name](run, path)
    first = path.read_bytes()
    assert first
    path.write_bytes(b"old")

    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("fsm_dyn.core.files.os.replace", full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            WRITERS[name](run, path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]
    WRITERS[name](run, path)
    assert len(path.read_bytes()) == len(first)
