"""Sizes of exports, and how fast the exported programs run; the table in docs/how_to/export.md is written again."""

import re
import subprocess
from pathlib import Path

import pytest

import fsm_dyn
from tests.exports.building import FLAGS
from tests.runtime.building import COMPILER

pytestmark = pytest.mark.benchmark
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "export.md"
MODELS = ["virtual_wall", "latch", "shopping_cart", "piano_action_simple", "piano_action"]
DOUBLES_ALONE = ["piano_action"]  # in floats it ends with a penetration after 0.8 s of its schedule in ticks
MEGABYTE = 1e6
TICKS = """
#include "@name@.h"
#include <stdio.h>
#include <time.h>
static int64_t memory[@NAME@_BYTES / sizeof(int64_t)];
int main(void)
{
    const struct fsm_model *model = &@name@_model;
    struct fsm_machine *machine = fsm_machine_create(model, memory, (int64_t)sizeof memory);
    double least = 1e9;
    long ticks = 0;
    enum fsm_status status = FSM_DONE;
    for (int round = 0; round < 5; round++) {
        fsm_machine_restart(machine);
        clock_t begin = clock();
        for (ticks = 0; (double)ticks < 1e3 * (double)model->until && status == FSM_DONE; ticks++) {
            status = fsm_machine_advance(machine, (fsm_real)(ticks + 1) * (fsm_real)1e-3);
        }
        double spent = (double)(clock() - begin) / CLOCKS_PER_SEC;
        least = spent < least ? spent : least;
    }
    printf("%d %ld %.9f %ld\\n", status != FSM_DONE, ticks, least, (long)sizeof memory);
    return 0;
}
"""


def program(graph, folder, real):
    """Return bytes of code and constants, bytes of the machine, and processor time of a tick (s)."""
    name = graph.name
    folder = fsm_dyn.export(graph, folder / real, real=real)
    (folder / "main.c").write_text(TICKS.replace("@name@", name).replace("@NAME@", name.upper()))
    optimized = [*FLAGS, "-O2", "-ffunction-sections", "-Wl,--gc-sections"]
    sources = ["main.c", f"{name}.c", "fsm_machine.c"]
    subprocess.run([COMPILER, *optimized, *sources, "-o", "program", "-lm"], cwd=folder, check=True)
    text = subprocess.run(["size", "program"], cwd=folder, capture_output=True, text=True, check=True).stdout
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
    assert int(done[0]) == 0, f"{name} of {real}s ends early"
    return int(text.split("\n")[1].split()[0]), int(done[3]), float(done[2]) / int(done[1])


@pytest.fixture(scope="module")
def rows():
    """Collect the rows of the table, and write it into the page once all are there."""
    found = {}
    yield found
    if list(found) == MODELS:
        lines = "".join(f"| `{name}` | {' | '.join(row)} |\n" for name, row in found.items())
        text = PAGE.read_text()
        changed, n = re.subn(
            r"(\| model \| C99, kB \|.*\n\|[-:|]*\|\n)(?:\|.*\n)*", lambda head: head.group(1) + lines, text
        )
        assert n == 1
        PAGE.write_text(changed)


@pytest.mark.parametrize("name", MODELS)
def test_sizes_and_speeds(name, rows, tmp_path):
    graph = fsm_dyn.compile(name)
    reals = ["double"] if name in DOUBLES_ALONE else ["double", "float"]
    programs = [program(graph, tmp_path, real) for real in reals]
    unit = (fsm_dyn.export(graph, tmp_path / "unit", target="fmu3") / f"{name}.fmu").stat().st_size
    page = fsm_dyn.export(graph, tmp_path / "page", target="html").stat().st_size
    row = [
        cell
        for code, machine, tick in programs
        for cell in (f"{code / 1e3:.0f}", f"{machine / 1e3:.0f}", f"{tick * 1e6:.1f}")
    ]
    row += ["–"] * (6 - len(row))
    rows[name] = [*row, f"{unit / MEGABYTE:.2f}", f"{page / MEGABYTE:.2f}"]
    print(name, rows[name])
    assert page < 1.5 * MEGABYTE
    assert programs[0][2] < 0.2e-3, "a tick of 1 ms takes a fifth of that at most"
    assert all(machine < 0.85 * programs[0][1] for _, machine, _ in programs[1:])
