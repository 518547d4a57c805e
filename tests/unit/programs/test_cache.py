import os
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from fsm_dyn.programs import kernels as cache
from fsm_dyn.programs.functions import sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import ObjectCache, cache_directory, compile_programs
from fsm_dyn.programs.program import Program

KEY = "ab" * 32
posix = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are of POSIX")
root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")


@pytest.fixture
def objects(tmp_path):
    return ObjectCache(tmp_path / "deep" / "kernels")


@pytest.fixture
def program(layout):
    graph = ExpressionGraph()
    return Program.from_nodes(layout, {"a": sin(graph.symbol("q1")) * 3})


def value(kernels):
    return kernels[0](0.0, [1.0, 0, 0, 0], np.zeros(8))[0]


def file_of(objects):
    (path,) = objects.directory.glob("*" + cache.SUFFIX)
    return path


def test_every_change_of_the_sources_changes_their_digest(tmp_path, monkeypatch):
    package = tmp_path / "fsm_dyn"
    (package / "programs").mkdir(parents=True)
    (package / "symbolic" / "deep").mkdir(parents=True)
    monkeypatch.setattr(cache, "__file__", str(package / "programs" / "cache.py"))
    kane, alone = package / "symbolic" / "deep" / "kane.py", package / "alone.py"
    seen = set()
    for file, text in ((kane, "a"), (kane, "b"), (alone, "a"), (alone, "c"), (package / "symbolic" / "new.py", "")):
        file.write_text(text)
        cache.sources_of.cache_clear()
        seen.add(cache.sources_of("symbolic", *(["alone"] if alone.exists() else [])))
    (package / "programs" / "other.py").write_text("of no concern")
    cache.sources_of.cache_clear()
    assert cache.sources_of("symbolic", "alone") in seen
    cache.sources_of.cache_clear()
    assert len(seen) == 5


def test_store_and_load(objects):
    assert objects.load(KEY) is None
    assert objects.store(KEY, b"code")
    assert objects.load(KEY) == b"code"
    assert objects.load("cd" * 32) is None
    assert objects.store(KEY, b"")
    assert objects.load(KEY) == b""


def test_code_is_found_again(objects, program):
    assert not compile_programs([program], objects).from_cache
    again = compile_programs([program], objects)
    assert again.from_cache
    assert value(again) == pytest.approx(3 * np.sin(1.0), rel=1e-15)


DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "header only": lambda content: content[:160],
    "one byte of code": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "one byte of header": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "longer": lambda content: content + b"\0",
    "foreign": lambda content: b"\x7fELF" + os.urandom(5000),
    "other key": lambda content: content.replace(content[22:30], b"00000000", 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_made_again(objects, program, damage):
    compile_programs([program], objects)
    path = file_of(objects)
    content = path.read_bytes()
    path.write_bytes(DAMAGE[damage](content))
    again = compile_programs([program], objects)
    assert not again.from_cache
    assert value(again) == pytest.approx(3 * np.sin(1.0), rel=1e-15)
    assert path.read_bytes() == content  # repaired
    assert compile_programs([program], objects).from_cache


def test_checksummed_nonsense_is_made_again(objects, program, capfd):
    compile_programs([program], objects)
    objects.store(file_of(objects).stem, b"no object file at all")
    again = compile_programs([program], objects)
    assert not again.from_cache
    assert value(again) == pytest.approx(3 * np.sin(1.0), rel=1e-15)


@posix
def test_modes_of_what_is_written(objects):
    objects.store(KEY, b"code")
    assert stat.S_IMODE(objects.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(file_of(objects).stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_files_that_others_may_write_are_not_believed(objects, mode):
    objects.store(KEY, b"code")
    file_of(objects).chmod(mode)
    assert objects.load(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_directories_that_others_may_write_are_not_used(objects, mode):
    objects.store(KEY, b"code")
    objects.directory.chmod(mode)
    with pytest.warns(UserWarning, match="may be written by others.*FSM_DYN_CACHE"):
        assert objects.load(KEY) is None
    assert not objects.store(KEY, b"code")  # told once


@posix
def test_a_link_in_the_place_of_a_directory_is_not_followed(objects, tmp_path):
    """What it leads to may be this user's and hold what another user has put there."""
    objects.store(KEY, b"code")
    elsewhere = objects.directory.rename(tmp_path / "elsewhere")
    objects.directory.symlink_to(elsewhere)
    with pytest.warns(UserWarning, match="is no folder itself"):
        assert objects.load(KEY) is None


@root
@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_belongs_to_others_is_not_believed(objects, what):
    objects.store(KEY, b"code")
    os.chown(file_of(objects) if what == "file" else objects.directory, 12345, 12345)
    told = pytest.warns(UserWarning, match="belongs to another user") if what == "directory" else nullcontext()
    with told:
        assert objects.load(KEY) is None


def test_something_else_in_the_place_of_a_file(objects):
    objects.store(KEY, b"code")
    file_of(objects).unlink()
    place = objects.directory / (KEY + cache.SUFFIX)
    if hasattr(os, "mkfifo"):
        os.mkfifo(place)
        assert objects.load(KEY) is None  # and does not wait for another process to write
        place.unlink()
    place.mkdir()
    assert objects.load(KEY) is None
    assert not objects.store(KEY, b"code")
    assert not list(objects.directory.glob("*" + cache.TEMPORARY))


def test_without_a_usable_directory(tmp_path, program):
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "kernels", Path("/proc/none"), None):
        compiled = compile_programs([program], ObjectCache(directory))
        assert not compiled.from_cache
        assert value(compiled) == pytest.approx(3 * np.sin(1.0), rel=1e-15)
        assert ObjectCache(directory).clear() == 0


def test_the_oldest_go_first(tmp_path):
    objects = ObjectCache(tmp_path / "kernels", largest_size=3500)
    for i in range(5):
        key = f"{i:064x}"
        assert objects.store(key, bytes(900))
        os.utime(objects.directory / (key + cache.SUFFIX), (1000.0 + i, 1000.0 + i))
        if i == 2:
            assert objects.load(f"{0:064x}") == bytes(900)  # use makes young
    left = [i for i in range(5) if objects.load(f"{i:064x}") is not None]
    assert left == [0, 3, 4]
    assert objects.store(KEY, bytes(10_000))
    assert objects.load(KEY) is not None


def test_files_are_looked_at_when_a_share_of_the_largest_size_was_added(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(cache, "remove_abandoned", looks.append)
    objects = ObjectCache(tmp_path / "kernels", largest_size=64 * 1000)
    counts = []
    for i in range(6):
        assert objects.store(f"{i:064x}", bytes(400))
        counts.append(len(looks))
    assert counts == [1, 1, 1, 2, 2, 2]


def test_what_dead_processes_left_is_removed(tmp_path):
    objects = ObjectCache(tmp_path / "kernels", largest_size=0)
    objects.store(KEY, b"code")
    old, young = (objects.directory / f"{name}{cache.TEMPORARY}" for name in ("old", "young"))
    for path, age in ((old, 2 * cache.ABANDONED_AFTER), (young, 0)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    objects.store(KEY, b"code")
    assert (old.exists(), young.exists()) == (False, True)


def test_clear(objects, monkeypatch):
    objects.store(KEY, b"code")
    other = objects.directory / "notes.txt"
    other.write_text("not ours")
    assert objects.clear() == 1
    assert objects.load(KEY) is None
    assert other.exists()
    monkeypatch.setenv(cache.ENVIRONMENT, str(objects.directory.parent))
    ObjectCache.default().store(KEY, b"code")
    assert cache.clear() == 1


def test_the_place_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"
    monkeypatch.delenv(cache.ENVIRONMENT)
    assert cache_directory().name == "fsm_dyn"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "fsm_dyn"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_directory().parts[-3:] == ("Library", "Caches", "fsm_dyn")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache_directory() == tmp_path / "fsm_dyn"

    def homeless():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    assert cache_directory() == tmp_path / "fsm_dyn", "the platform's place is known without a home"
    monkeypatch.setenv("LOCALAPPDATA", "relative")
    assert cache_directory() is None
    assert ObjectCache.default().directory is None


COMPILE = """
import sys, time
from fsm_dyn.programs.functions import sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Layout
from fsm_dyn.programs.program import Program
start = float(sys.argv[1])
graph = ExpressionGraph()
names = tuple(f"q{i}" for i in range(6))
symbols = [graph.symbol(name) for name in names]
values = list(symbols)
for i in range(400):
    values.append(values[-1] * 0.5 + sin(values[-(i % 9) - 1]) * symbols[i % 6])
program = Program.from_nodes(Layout(q=names), {"a": values[-5:]})
time.sleep(max(0.0, start - time.time()))
for _ in range(3):
    kernel = compile_programs([program])[0]
    print(kernel(0.0, [0.1 * i for i in range(6)], []).tobytes().hex())
"""


def test_processes_that_compile_the_same_at_once(tmp_path):
    environment = os.environ | {cache.ENVIRONMENT: str(tmp_path / "new")}
    command = [sys.executable, "-c", COMPILE, str(time.time() + 1.5)]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len({value for output in outputs for value in output}) == 1
    assert [len(output) for output in outputs] == [3] * 4
    assert len(list((tmp_path / "new" / "kernels").iterdir())) == 1


CHURN = """
import sys, time
from pathlib import Path
from fsm_dyn.programs.kernels import ObjectCache
objects, letter, until = ObjectCache(Path(sys.argv[1])), sys.argv[2].encode(), time.time() + 1.0
while time.time() < until:
    for size in (10, 200_000, 3_000):
        objects.store("ab" * 32, letter * size)
        found = objects.load("ab" * 32)
        assert found is not None and len(set(found)) == 1 and len(found) in (10, 200_000, 3_000), len(found or b"")
"""


def test_processes_that_write_one_file_at_once(tmp_path):
    command = [sys.executable, "-c", CHURN, str(tmp_path / "kernels")]
    processes = [subprocess.Popen([*command, letter]) for letter in "xyz"]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
