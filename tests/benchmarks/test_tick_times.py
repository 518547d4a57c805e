"""Processor time of every tick of every shipped model with a port, at 1 kHz, modes met for the first time included.

Ticks follow each other without a clock, through the same function as in the live loop.  A run is the same every time,
and what else this machine does adds to some ticks, never to the same ones: a tick's own time is the least it took in
three repetitions.  The tables in docs/how_to/device.md are written anew.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from fsm_dyn.devices.scripted import Driver
from fsm_dyn.live.controller import PHASES, RUNNING
from tests.benchmarks.ticks import PERIOD, REACH, RandomHand, compiled, port_axes, run_ticks

pytestmark = pytest.mark.benchmark
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "device.md"
SECONDS = float(os.environ.get("FSM_DYN_LIVE_SECONDS", "60"))
REPETITIONS = 3
WHAT = (50, 99, 99.9, 100)
MOST = {99: 300e-6, 99.9: 600e-6, 100: 1e-3}  # s


def strokes(graph, name):
    """A hand that goes back and forth, slowly and with a quick part on it, while the model's schedule runs."""
    axes, reach = port_axes(graph), 0.6 * REACH[name]
    motion = [[i, reach, 0.9 + 0.7 * i, 0.3 * i] for i in range(len(axes))]
    motion += [[i, reach / 3, 7.3, 0.0] for i in range(len(axes))]
    return Driver(
        {"axes": len(axes), "turns": [i for i, axis in enumerate(axes) if axis.is_rotational], "motion": motion}
    )


def measured(graph, make_hand, **how):
    """Times (s) that ticks took at least, and what they did, which is the same in all repetitions."""
    runs = [run_ticks(graph, make_hand(), round(SECONDS / PERIOD), **how) for _ in range(REPETITIONS)]
    for run in runs[1:]:
        assert np.array_equal(run.made, runs[0].made)
    return np.min([run.spent for run in runs], axis=0), runs[0]


HANDS = {
    "at random": lambda graph, name: (lambda: RandomHand(len(port_axes(graph)), REACH[name], SECONDS), {}),
    "strokes": lambda graph, name: (lambda: strokes(graph, name), {"schedule": True}),
}


@pytest.fixture(scope="module")
def rows():
    """Collect the rows of the table, and write it into the page once all are there."""
    found = {}
    yield found
    if set(found) == {(name, kind) for name in REACH for kind in HANDS}:
        write_table(found)


def test_ticks_of_the_virtual_wall_come_first(rows):
    """What others are compared with, in the same run."""
    for kind in HANDS:
        judge(rows, "virtual_wall", kind)


@pytest.mark.parametrize("kind", HANDS)
@pytest.mark.parametrize("name", [name for name in REACH if name != "virtual_wall"])
def test_no_tick_takes_longer_than_a_millisecond(rows, name, kind):
    judge(rows, name, kind)


def judge(rows, name, kind):
    graph = compiled(name)
    make_hand, how = HANDS[kind](graph, name)
    spent, run = measured(graph, make_hand, **how)
    times = dict(zip(WHAT, np.percentile(spent, WHAT), strict=True))
    rows[name, kind] = times, run
    wall = rows["virtual_wall", kind][0] if ("virtual_wall", kind) in rows else times
    ratio = times[99] / wall[99]
    print(f"\n{name}, {kind}: " + ", ".join(f"p{p:g} {1e6 * t:.0f} µs" for p, t in times.items()))
    print(
        f"  p99 {ratio:.1f} times that of virtual_wall; {run.made.sum()} transitions, {run.made.max()} in a tick; "
        f"{run.new.sum()} modes met for the first time; {np.count_nonzero(run.behind)} of {len(run.behind)} ticks "
        f"behind; at most {run.work.max()} of work in one; {len(spent)} ticks, ended {PHASES[run.phase]}"
    )
    assert run.phase == RUNNING, f"{name}, {kind}"
    for p, most in MOST.items():
        assert times[p] <= most, f"p{p:g} of {name}, {kind}"


def write_table(rows):
    """Put the table between its marks in the page."""
    lines = [
        "| model | hand | p50, µs | p99 | p99.9 | worst | p99 by `virtual_wall` | transitions | most in a tick | "
        "new modes | most work | ticks behind, % | ticks | ended |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for (name, kind), (times, run) in sorted(rows.items()):
        wall = rows["virtual_wall", kind][0]
        numbers = [f"{1e6 * times[p]:.0f}" for p in WHAT]
        numbers += [f"{times[99] / wall[99]:.1f}", str(run.made.sum()), str(run.made.max()), str(run.new.sum())]
        numbers += [str(run.work.max())]
        behind = 100 * np.count_nonzero(run.behind) / len(run.behind)
        lines.append(
            f"| `{name}` | {kind} | "
            + " | ".join([*numbers, f"{behind:.2g}", str(len(run.spent)), PHASES[run.phase]])
            + " |"
        )
    text = PAGE.read_text(encoding="utf-8")
    marks = r"(<!-- times of ticks -->\n).*?(<!-- end of times of ticks -->)"
    PAGE.write_text(re.sub(marks, lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text, flags=re.S), encoding="utf-8")
