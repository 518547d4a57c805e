"""Models that stall x every emulated device: time to zero, and energy of a device whose hand is gone.

The table in docs/how_to/device.md is written.  What ends the force is a named fault, after 0.1 s of lag.
"""

import os
import signal
import statistics
import time
from contextlib import closing

import pytest

import fsm_dyn
from tests.benchmarks.hand import DRIVERS, LIBRARIES, Hand, put_table, undisturbed
from tests.unit.live.stalling import STALLS, stalling_wall

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

MILLI = 1e3
SOON = 0.05  # s after the fault or the stop
LAG = 0.1  # s
REPEATS = 3


def stopped(hand, seconds):
    os.kill(hand.tick_pid, signal.SIGSTOP)
    if seconds:
        time.sleep(seconds)
        os.kill(hand.tick_pid, signal.SIGCONT)


EVENTS = {
    **{
        name: (lambda hand, values=values: hand.session.send("input", values=values)) for name, values in STALLS.items()
    },
    "a stopped core, 50 ms": lambda hand: stopped(hand, 0.05),
    "a debugger": lambda hand: stopped(hand, 0.0),
    "the run continues": lambda hand: None,
}


def measured(graph, driver, happen, gone):
    """The time to zero (s), by whom, the energy (J) and the reason of a fault."""

    def once():
        with closing(Hand(graph, driver)) as hand:
            hand.press()
            after, why, meter = hand.measure(lambda: happen(hand), gone, 0.4)
            return after, why, meter["peak_energy"], hand.session.report()["fault"]

    return undisturbed(once)


def test_every_stall():
    graph = fsm_dyn.compile(stalling_wall())
    lines = [
        "| event | driver | time to zero, ms | ended by | fault | energy, mJ | the run continues, mJ |",
        "|---|---|--:|---|---|--:|--:|",
    ]
    bad = []
    for driver in DRIVERS:
        runs = [measured(graph, driver, EVENTS["the run continues"], True)[2] for _ in range(REPEATS)]
        goes_on = statistics.median(runs)
        for name, happen in EVENTS.items():
            if name == "the run continues" or (driver in LIBRARIES and name in ("a debugger", "a stopped core, 50 ms")):
                continue  # a library is stopped with its process: see the table of faults
            stays = [measured(graph, driver, happen, False) for _ in range(REPEATS)]
            after = statistics.median(item[0] if item[0] is not None else 9.9 for item in stays)
            energy = statistics.median(measured(graph, driver, happen, True)[2] for _ in range(REPEATS))
            lines.append(
                f"| {name} | {driver} | {MILLI * after:.0f} | {stays[0][1]} | {stays[0][3]} | {MILLI * energy:.1f} "
                f"| {MILLI * goes_on:.1f} |"
            )
            print(lines[-1], flush=True)
            late = after > SOON + (LAG if name in STALLS else 0.0)
            if late or energy > 1.2 * goes_on + 1e-3:
                bad.append(lines[-1])
    put_table("stalls", lines)
    assert not bad
