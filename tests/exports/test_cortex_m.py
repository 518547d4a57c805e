"""Exports to Cortex-M, run under QEMU, against the same program on this platform and against runs of Python."""

import hashlib
import re
import shutil
import struct
import subprocess
from fractions import Fraction

import pytest

import fsm_dyn
from tests.exports.building import FLAGS, machine_object
from tests.runtime.building import BUILT, COMPILER

MODELS = ["virtual_wall", "latch", "shopping_cart", "piano_action_simple"]
QUICK = {("latch", "m7", "double"), ("shopping_cart", "m4", "float")}
CASES = [
    pytest.param(name, core, real, marks=() if (name, core, real) in QUICK else pytest.mark.long)
    for name in MODELS
    for core in ("m7", "m4")
    for real in ("double", "float")
]
HOST_BOARD = """
#include "board.h"
uint32_t board_counter(void) { return 0; }
uint32_t board_stack(void) { return 0; }
"""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program}; `.ci/get_compiler arm` gets it")


def run_on_board(folder, name, core):
    """Build and run an export; the object of the runtime, the same for all models, is compiled once."""
    sources = sorted([*folder.glob("fsm_machine.*"), *(folder / "runtime").glob("*.[ch]"), folder / "Makefile"])
    digest = hashlib.sha256(repr([path.read_text().replace(name, "") for path in sources]).encode()).hexdigest()
    kept, own = BUILT / f"machine_{core}_{digest[:16]}.o", folder / core / "fsm_machine.o"
    own.parent.mkdir()
    if kept.exists():
        shutil.copy(kept, own)
    subprocess.run(["make", "-s", f"CORE={core}"], cwd=folder, check=True)
    if not kept.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        shutil.copy(own, kept)
    command = ["make", "-s", f"CORE={core}", "run"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300).stdout


def run_here(folder, name):
    (folder / "host_board.c").write_text(HOST_BOARD)
    sources = ["main.c", "host_board.c", f"{name}.c", str(machine_object(folder))]
    subprocess.run([COMPILER, *FLAGS, "-O1", *sources, "-o", "host", "-lm"], cwd=folder, check=True)
    return subprocess.run(["./host"], cwd=folder, capture_output=True, text=True, check=True).stdout


def motion(text):
    """Return what is printed of the motion, each number with its bits."""
    return [line for line in text.splitlines() if not line.startswith(("instructions", "stack"))]


def transitions(text):
    """Return the transitions that are printed as texts and as times."""
    found = [line.split(" ", 2) for line in motion(text) if " -> " in line]
    return [text for _, _, text in found], [float(time) for time, _, _ in found]


@pytest.mark.parametrize(("name", "core", "real"), CASES)
def test_the_same_motion_as_here(name, core, real, tmp_path):
    need("arm-none-eabi-gcc", "qemu-system-arm", "make")
    graph = fsm_dyn.compile(name)
    folder = fsm_dyn.export(graph, tmp_path / "out", target="cortex-m", real=real)
    printed, here = run_on_board(folder, name, core), run_here(folder, name)
    if core == "m7" or real == "float":  # doubles computed in software may differ in a last bit
        assert motion(printed) == motion(here)
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    if real == "double" or name in ("virtual_wall", "shopping_cart"):
        texts, times = transitions(printed)
        assert texts == [f"{x.source} -> {x.target}" for x in run.transitions]
        # ticks shorten the steps of the integrator, so times agree as far as its tolerances carry
        assert times == pytest.approx([x.time for x in run.transitions], abs=1e-4)

    counts = {which: [int(x) for x in rest] for which, *rest in re.findall(
        r"instructions (without|with) a transition: ticks (\d+) median (\d+) worst (\d+)", printed
    )}  # fmt: skip
    assert counts["without"][0] + counts["with"][0] == pytest.approx(run.t[-1] / 1e-3, abs=1)
    assert all(100 < median <= worst for _, median, worst in counts.values())
    assert counts["with"][1] > counts["without"][1], "a transition takes further work"


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("CC=not-there-gcc", "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"),
        ("CORE=m9", "CORE=m9 is not known; allowed: m4, m7"),
    ],
)
def test_what_is_missing_is_named(variable, words, tmp_path):
    need("make")
    folder = fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "out", target="cortex-m")
    done = subprocess.run(["make", variable], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert words in done.stderr


SUMS = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    static const double larger[] = {-0x1p37, 0x1p52, -0x1p37};
    static const double smaller[] = {0x1.262b0be0edd32p4, -0x1.e5aaa2db9d8c6p19, 0x1p5};
    for (int i = 0; i < 3; i++) {
        volatile double a = larger[i], b = smaller[i];
        double sum = a + b;
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        printf("%08lx%08lx\\n", (unsigned long)(bits >> 32), (unsigned long)(bits & 0xffffffffu));
    }
    return 0;
}
"""


@pytest.mark.parametrize("core", ["m7", pytest.param("m4", marks=pytest.mark.long)])
def test_sums_in_software_have_another_last_bit(core, tmp_path):
    """The cause of other bits on a Cortex-M4F; exact sums are from rational numbers."""
    need("arm-none-eabi-gcc", "qemu-system-arm", "make")
    folder = fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "out", target="cortex-m")
    (folder / "main.c").write_text(SUMS)
    found = run_on_board(folder, "latch", core).split()
    pairs = [("-0x1p37", "0x1.262b0be0edd32p4"), ("0x1p52", "-0x1.e5aaa2db9d8c6p19"), ("-0x1p37", "0x1p5")]
    right = [float(sum(Fraction(float.fromhex(x)) for x in pair)) for pair in pairs]
    exact = [struct.unpack("<Q", struct.pack("<d", value))[0] for value in right]
    off = [abs(int(bits, 16) - wanted) for bits, wanted in zip(found, exact, strict=True)]
    assert off == ([0, 0, 0] if core == "m7" else [1, 1, 0])
