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
from tests.benchmarks.hand import DRIVERS, Hand, put_rows, undisturbed
from tests.unit.live.stalling import STALLS, stalling_wall

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

MILLI = 1e3
SOON = 0.05  # s after the fault or the stop
LAG = 0.1  # s
REPEATS = int(os.environ.get("REPEATS", "3"))  # 1: all drivers in five minutes of a quiet machine
HELD = "a derivation"  # in the process of the session: neither force nor run is to end
STOPS = ("a stopped core, 50 ms", "a debugger")


def stopped(hand, seconds):
    os.kill(hand.tick_pid, signal.SIGSTOP)
    if seconds:
        time.sleep(seconds)
        os.kill(hand.tick_pid, signal.SIGCONT)


EVENTS = {
    **{
        name: (lambda hand, values=values: hand.session.send("input", values=values)) for name, values in STALLS.items()
    },
    HELD: lambda hand: fsm_dyn.compile("latch_door"),
    STOPS[0]: lambda hand: stopped(hand, 0.05),
    STOPS[1]: lambda hand: stopped(hand, 0.0),
}


def measured(graph, driver, happen, gone):
    """The time to zero (s), by whom, the energy (J) and the reason of a fault."""

    def once():
        with closing(Hand(graph, driver)) as hand:
            hand.press()
            after, why, meter = hand.measure(lambda: happen(hand), gone, 0.4)
            return after, why, meter["peak_energy"], hand.session.report()["fault"]

    return undisturbed(once)


def row_of(graph, driver, name, goes_on):
    """A row of the table, and whether a bound is exceeded."""
    stays = [measured(graph, driver, EVENTS[name], False) for _ in range(REPEATS)]
    energy = statistics.median(measured(graph, driver, EVENTS[name], True)[2] for _ in range(REPEATS))
    zeros = [item[0] for item in stays if item[0] is not None]
    ended = 2 * len(zeros) > len(stays)
    what = f"{MILLI * statistics.median(zeros):.0f}" if ended else "held" if name == HELD else "engaged again"
    late = ended and statistics.median(zeros) > SOON + (LAG if name in STALLS else 0.0)
    wrong = ended != (name in STALLS or name == STOPS[1]) or late or energy > 1.2 * goes_on + 1e-3
    line = (
        f"| {name} | {driver} | {what} | {stays[0][1]} | {stays[0][3]} | {MILLI * energy:.1f} | {MILLI * goes_on:.1f} |"
    )
    return line, wrong


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_stall(driver):
    graph = fsm_dyn.compile(stalling_wall())
    goes_on = statistics.median(measured(graph, driver, lambda hand: None, True)[2] for _ in range(REPEATS))
    rows = []
    for name in EVENTS:
        rows.append(row_of(graph, driver, name, goes_on))
        print(*rows[-1], f"n {REPEATS}, load {os.getloadavg()[0]:.0f}", flush=True)
    put_rows("stalls", driver, [line for line, _ in rows])
    assert not [line for line, wrong in rows if wrong]
