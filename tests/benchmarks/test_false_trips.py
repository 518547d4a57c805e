"""How often a device is released though nothing is wrong with it, on a machine whose processors are all busy.

``SECONDS`` of the environment is how long each case runs (30).  One device is held at a time, and every processor has
``BUSY`` processes that never wait (1).  ``ONLY`` names the drivers, all by default; the table in docs/how_to/device.md
is then written anew.

On every processor a witness of the highest priority wakes each millisecond and does nothing else.  Where a witness was
late by ``OUTAGE``, its processor stood still for all: releases in such moments are counted apart.
"""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

import fsm_dyn
from fsm_dyn.core.errors import RunError
from fsm_dyn.runtime.abi import LiveHeader
from tests.benchmarks.hand import BEHIND, DRIVERS, HAND, Hand, put_table

SECONDS = float(os.environ.get("SECONDS", "30"))
BUSY = int(os.environ.get("BUSY", "1"))
ONLY = os.environ.get("ONLY", "").split() or list(DRIVERS)
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout((3.0 * SECONDS + 60.0) * len(ONLY) + 300.0)]

TURN = 0.25  # s, for which the wall is pressed, and for which it is left
COUNTED = ("releases", "rejected", "faded_ticks", "overruns")
LOOK = 0.005  # s between looks at the count of releases
OUTAGE = 0.005  # s: samples and ticks that are missing for 12 ms release the device
AROUND = 0.15  # s before a release is seen in which its cause may lie: the looks wait for a processor as well


@pytest.fixture
def busy():
    """Every processor has processes that never wait."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY * (os.cpu_count() or 1))]
    yield
    for other in others:
        other.kill()
        other.wait()


def witness(processor, outages):
    """Put the intervals (begin, end; s of ``time.monotonic``) in which a processor stood still into a queue."""
    os.sched_setaffinity(0, {processor})
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    last = time.monotonic()
    while os.getppid() != 1:
        time.sleep(0.001)
        now = time.monotonic()
        if now - last > OUTAGE:
            outages.put((last, now))
        last = now


@pytest.fixture
def outages():
    """Intervals of processors that stood still."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    witnesses = [context.Process(target=witness, args=(n, queue), daemon=True) for n in os.sched_getaffinity(0)]
    for each in witnesses:
        each.start()
    yield queue
    for each in witnesses:
        each.kill()
        each.join()


def coincidences(moments, intervals):
    """How many moments follow the beginning of an interval, or its end within ``AROUND``."""
    return sum(any(begin <= at <= end + AROUND for begin, end in intervals) for at in moments)


def drained(queue):
    """All that a queue has."""
    found = []
    while not queue.empty():
        found.append(queue.get())
    return found


def held_for(wall, driver, seconds, privileges):
    """Hold for a while, pressing the wall and leaving it.

    Returns counts, why the operator had to act, and the instants of releases, faults and ends.
    """
    found = dict.fromkeys(COUNTED, 0) | {"faults": 0, "ended": 0, "ticks": 0}
    left, why, moments = seconds, set(), []
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
                moments += released_meanwhile(hand.session, TURN)
                presses = not presses
                if hand.session.snapshot()["phase"] == "fault":
                    found["faults"] += 1
                    moments.append(time.monotonic())
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
                        moments.append(time.monotonic())
                        why.add(report["watchdog_action"] or report["fault"])
                    for name in (*COUNTED, "ticks"):
                        found[name] += report[name]
                    granted = any("SCHED_FIFO: granted" in line for line in report["realtime_privileges"])
                    found["fifo"] = "granted" if granted else "not granted"
    return found, why, moments


def released_meanwhile(session, duration):
    """The instants within a duration (s) at which the count of releases was seen to have grown."""
    header, until = session._block.header, time.monotonic() + duration
    count, moments = header[LiveHeader.RELEASES], []
    while time.monotonic() < until:
        time.sleep(LOOK)
        now = header[LiveHeader.RELEASES]
        moments += [time.monotonic()] * int(now - count)
        count = now
    return moments


def test_false_trips(busy, outages):
    wall = fsm_dyn.compile(fsm_dyn.load("virtual_wall"))
    lines = [
        "| driver | `SCHED_FIFO` | minutes | released | faults | ended | with the machine at a stand | its stands "
        "| longest, ms | samples rejected | ticks with a faded force |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    tripped = 0
    for privileges in (True, False):
        for driver in ONLY:
            drained(outages)
            found, why, moments = held_for(wall, driver, SECONDS, privileges)
            stands = drained(outages)
            minutes = found["ticks"] * 1e-3 / 60.0
            excused = coincidences(moments, stands)
            longest = 1e3 * max((end - begin for begin, end in stands), default=0.0)
            counts = [found["releases"], found["faults"], found["ended"], f"{excused} of {len(moments)}", len(stands)]
            cells = [*map(str, counts), f"{longest:.0f}", str(found["rejected"]), str(found["faded_ticks"])]
            fifo = "asked for, " + found["fifo"] if privileges else "not asked for"
            lines.append(f"| {driver} | {fifo} | {minutes:.1f} | " + " | ".join(cells) + " |")
            print("\n" + lines[-1], found, sorted(why), f"load {os.getloadavg()}", flush=True)
            tripped += found["faults"] + found["ended"]
    if list(DRIVERS) == ONLY:
        put_table("false trips", lines)
    assert tripped == 0, "a busy machine may release a device, and never ends a run"
