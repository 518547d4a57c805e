"""Object code of units: kept by a digest, never used if altered, without influence on the unit."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from fsm_dyn.core.errors import RunError
from fsm_dyn.exports.fmi import compiler, shared_library
from fsm_dyn.programs.kernels import SUFFIX
from tests.runtime.building import COMPILER

SOURCES = {"one.c": b'#include "part.h"\nint one(void) { return PART; }\n', "part.h": b"#define PART 1\n",
           "two.c": b"int one(void);\nint two(void) { return 2 * one(); }\n"}  # fmt: skip

#: A compiler that lists the calls by which it compiles.
COUNTING = """#!/bin/sh
case "$*" in *" -c "*) echo "$*" >> "{calls}" ;; esac
exec {compiler} "$@"
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return a function that gives the number of compilations; the cache is empty at first."""
    listed, command = tmp_path / "calls", tmp_path / "counting"
    command.write_text(COUNTING.format(calls=listed, compiler=shutil.which(COMPILER)))
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path / "cache"))
    return lambda: len(listed.read_text().splitlines()) if listed.exists() else 0


def kept(tmp_path):
    return sorted((tmp_path / "cache" / "kernels").glob(f"*{SUFFIX}"))


def make(**changes):
    return shared_library(SOURCES | {f"{name}.c": text for name, text in changes.items()}, ["one.c", "two.c"])


def test_a_second_binary_takes_no_compilation_and_has_the_same_bytes(calls, tmp_path, monkeypatch):
    first = make()
    assert (calls(), len(kept(tmp_path))) == (2, 2)
    assert make() == first
    assert calls() == 2
    monkeypatch.setenv("FSM_DYN_CACHE", "/proc/nowhere")  # nothing can be kept
    assert make() == first
    assert calls() == 4


def test_what_differs_is_compiled(calls, monkeypatch):
    """A source, a header that one source includes, an option, the compiler itself."""
    make()
    make(two=b"int two(void) { return 3; }\n")
    assert calls() == 3
    shared_library(SOURCES | {"part.h": b"#define PART 5\n"}, ["one.c", "two.c"])
    assert calls() == 4
    monkeypatch.setenv("CFLAGS", "-O1")
    make()
    assert calls() == 6
    with Path(os.environ["CC"]).open("a") as command:
        command.write("# another version\n")
    make()
    assert calls() == 8


def test_altered_object_code_is_made_again(calls, tmp_path):
    """Each byte of one file in turn would take long: one in the header, the content, and the end that is cut off."""
    first = make()
    for change in (lambda data: b"X" + data[1:], lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
                   lambda data: data[:-1], lambda data: b""):  # fmt: skip
        before = calls()
        for path in kept(tmp_path):
            path.write_bytes(change(path.read_bytes()))
        assert make() == first
        assert calls() == before + 2


def test_object_code_that_others_may_write_is_not_used(calls, tmp_path):
    first = make()
    for path in kept(tmp_path):
        path.chmod(path.stat().st_mode | stat.S_IWOTH)
    assert make() == first
    assert calls() == 4


def test_a_source_that_does_not_compile(calls, tmp_path):
    with pytest.raises(RunError, match=r"could not compile the unit(.|\n)*two"):
        make(two=b"int two(void) { return }\n")
    assert len(kept(tmp_path)) == 1


def test_the_compiler_may_have_several_words(calls, monkeypatch):
    monkeypatch.setenv("CC", f"env LANG=C {COMPILER}")
    assert compiler()[:2] == ["env", "LANG=C"]
    assert make()[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")


def test_an_export_to_the_same_folder_leaves_equal_files(tmp_path):
    """So `make` compiles what has changed."""
    from fsm_dyn.exports.export import _write

    _write(tmp_path, {"a.h": b"1", "b.c": b"2"})
    for name in ("a.h", "b.c"):
        os.utime(tmp_path / name, (1, 1))
    _write(tmp_path, {"a.h": b"1", "b.c": b"3"})
    assert [(tmp_path / name).stat().st_mtime == 1 for name in ("a.h", "b.c")] == [True, False]
    assert (tmp_path / "b.c").read_bytes() == b"3"
