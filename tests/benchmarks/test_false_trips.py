"""How often a device is let go though nothing is wrong with it, on a machine whose processors are all busy.

``SECONDS`` of the environment is how long each case runs (30).  One device is held at a time, and every processor has
``BUSY`` processes that never wait (1).  ``ONLY`` names the drivers, all by default; the table in docs/how_to/device.md
is then written anew.
"""

import contextlib
import os
import subprocess
import sys
import time

import pytest

import fsm_dyn
from fsm_dyn.errors import RunError
from tests.benchmarks.hand import BEHIND, DRIVERS, HAND, Hand, put_table

SECONDS = float(os.environ.get("SECONDS", "30"))
BUSY = int(os.environ.get("BUSY", "1"))
ONLY = os.environ.get("ONLY", "").split() or list(DRIVERS)
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout((3.0 * SECONDS + 60.0) * len(ONLY) + 300.0)]

TURN = 0.25  # s, for which the wall is pressed, and for which it is left
COUNTED = ("releases", "rejected", "faded_ticks", "overruns")


@pytest.fixture
def busy():
    """Every processor has processes that never wait."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY * (os.cpu_count() or 1))]
    yield
    for other in others:
        other.kill()
        other.wait()


def held_for(wall, driver, seconds, privileges):
    """Hold for a while, pressing the wall and leaving it; return counts, and how often a person had to see to it."""
    found = dict.fromkeys(COUNTED, 0) | {"faults": 0, "ended": 0, "ticks": 0}
    left, why = seconds, set()
    while left > 0.0:
        hand, until = None, 0.0
        try:
            hand = Hand(wall, driver, realtime_privileges=privileges)
            until = time.monotonic() + left
            target = list(hand.place)
            far = target[hand.axis] - BEHIND.get(driver, 0.06)
            presses = True
            while time.monotonic() < until and hand.session.alive:
                target[hand.axis] = far if presses else hand.place[hand.axis]
                hand.device.do("hand", **HAND, target=target)
                time.sleep(TURN)
                presses = not presses
                if hand.session.snapshot()["phase"] == "fault":
                    found["faults"] += 1
                    why.add(hand.session.snapshot()["fault"])
                    hand.session.send("clear")
                    time.sleep(0.05)
                    hand.session.send("run")
        except RunError:  # it ended while it was started
            found["ended"] += 1
        finally:
            left = until - time.monotonic() if until else left
            if hand is not None:
                ended = hand.session is not None and not hand.session.alive
                report = None
                with contextlib.suppress(RunError):
                    report = hand.session.close() if hand.session is not None else None
                hand.close()
                if report is not None:
                    found["ended"] += ended
                    if ended:
                        why.add(report["watchdog_action"] or report["fault"])
                    for name in (*COUNTED, "ticks"):
                        found[name] += report[name]
                    granted = any("SCHED_FIFO: granted" in line for line in report["realtime_privileges"])
                    found["fifo"] = "granted" if granted else "not granted"
    return found, why


def test_false_trips(busy):
    wall = fsm_dyn.compile(fsm_dyn.load("virtual_wall"))
    lines = [
        "| driver | `SCHED_FIFO` | minutes | released | faults | ended | samples rejected | ticks with a faded force |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    tripped = 0
    for privileges in (True, False):
        for driver in ONLY:
            found, why = held_for(wall, driver, SECONDS, privileges)
            minutes = found["ticks"] * 1e-3 / 60.0
            rates = [found[name] / minutes for name in ("releases", "faults", "ended", "rejected", "faded_ticks")]
            fifo = "asked for, " + found["fifo"] if privileges else "not asked for"
            lines.append(f"| {driver} | {fifo} | {minutes:.1f} | " + " | ".join(f"{rate:.2g}" for rate in rates) + " |")
            print("\n" + lines[-1], found, sorted(why), f"load {os.getloadavg()}", flush=True)
            tripped += found["faults"] + found["ended"]
    if list(DRIVERS) == ONLY:
        put_table("false trips", lines)
    assert tripped == 0, "a busy machine may release a device, and never ends a run"
