"""The rules of the runtime: layers, sizes of files, no hidden state."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import fsm_dyn.runtime

FOLDER = Path(fsm_dyn.runtime.__file__).parent
LONGEST_FILE, LONGEST_FUNCTION = 800, 90

#: A header includes headers of lower layers only, or of the same layer further up this list.
LAYERS = [
    ["types.h", "atomic.h"], ["elementary.h", "elementary_tables.h", "enclosure.h"], ["intervals.h"],
    ["arena.h", "codes.h"], ["tables.h"], ["run.h"], ["algebra.h"], ["contacts.h"],
    ["stepping.h"], ["time_stepping.h", "online_mode.h", "online.h", "saved_state.h", "tick.h", "live.h"], ["pacing.h"],
]  # fmt: skip


def code(path):
    """Return a source without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def included(path):
    return re.findall(r'^#include "([\w.]+)"', path.read_text(), re.M)


def test_headers_include_downwards_only():
    order = [name for layer in LAYERS for name in layer]
    assert sorted(order) == sorted(path.name for path in FOLDER.glob("*.h"))
    for name in order:
        assert all(order.index(other) < order.index(name) for other in included(FOLDER / name)), name


def test_the_whole_has_every_file_and_files_include_headers_only():
    whole = included(FOLDER / "fsm_runtime.c")
    assert sorted(whole) == sorted(path.name for path in FOLDER.glob("*.c") if path.name != "fsm_runtime.c")
    for name in whole:
        assert all(other.endswith(".h") for other in included(FOLDER / name)), name


#: Constants that have a unit: what a clock counts in.
WITH_UNIT = {"SECONDS", "NANOJOULES", "FSM_NANOSECOND", "FSM_UDP_NANOSECOND"}


def test_thresholds_are_tolerances_or_have_a_name_and_no_unit():
    """No bare small number in the code; a named one is relative, and says to what."""
    number = re.compile(r"(?<![\w.])\d+(?:\.\d*)?e[-+]?\d+")
    for path in sorted(FOLDER.glob("*.[ch]")):
        joined = path.read_text().replace("\\\n", "")
        bare = re.sub(r"^#define[^\n]*", "", re.sub(r"/\*.*?\*/|//[^\n]*", "", joined, flags=re.S), flags=re.M)
        assert not number.findall(bare), path.name
        for line in re.findall(r"^#define[^\n]*", joined, re.M):
            name = line.split()[1]
            if not number.search(line.split("//")[0]) or name in WITH_UNIT:
                continue
            assert "//" in line, f"{path.name}: {name} does not say what it is a part of"
            assert not re.search(r"\b(m/s|m/s²|m|N|kg|J)\b", line.split("//")[1]), f"{path.name}: {name} has a unit"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.[ch]")), ids=lambda path: path.name)
def test_sizes(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST_FILE
    start = 0
    for number, line in enumerate(lines):
        start = number if line == "{" else start
        assert line != "}" or number - start <= LONGEST_FUNCTION, lines[start - 1]


# -- no state, no memory of its own ----------------------------------------------------------------------


MATHEMATICS = {
    name + kind
    for kind in ("", "f", "l")
    for name in (
        *(
            "sin",
            "cos",
            "tan",
            "sincos",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "exp2",
            "exp10",
        ),
        *("expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "cbrt", "fma"),
    )
}


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm tells what an object file holds")
def test_no_mutable_data_and_no_allocation(tmp_path):
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    made = tmp_path / "runtime.o"
    command = [compiler, "-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-c", str(FOLDER / "fsm_runtime.c")]
    subprocess.run([*command, "-o", str(made)], check=True)
    listed = subprocess.run(["nm", str(made)], check=True, capture_output=True, text=True).stdout
    symbols = re.findall(r"(\w) ([\w.]+)$", listed, re.M)
    assert {name for kind, name in symbols if kind == "T"} >= {"fsm_advance", "fsm_live_tick"}
    assert [name for kind, name in symbols if kind in "dDbBC"] == []
    undefined = {name for kind, name in symbols if kind == "U"}
    assert undefined & MATHEMATICS == set(), "these differ from platform to platform: call those of elementary.h"
    assert not undefined & {"malloc", "calloc", "realloc", "free", "alloca", "strdup"}
