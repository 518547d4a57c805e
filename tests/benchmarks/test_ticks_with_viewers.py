"""Ticks of a live run with and without viewers, in pairs: the thread that shows a run is not in the tick process.

Paced at 1 kHz; the times are those that the tick process takes itself, so a busy machine shows in both of a pair.
"""

import threading
from contextlib import ExitStack

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.viewers import Foxglove, LiveViewers
from tests.shipped import mechanism as shipped
from tests.unit.live.conftest import MOTIONS
from tests.unit.live.test_live_viewers import Client

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

TICKS, PAIRS = 6_000, 5


def ticks(graph, motion, *, seen):
    """Run with a viewer that takes all messages, or without.

    Returns p50 and p99 of the ticks and of the latencies of their wake-ups (us), and how many rows were shown.
    """
    options = {"axes": 1 + max(item[0] for item in motion), "motion": motion}
    settings = LiveSettings(realtime_privileges=False, watchdog_timeout=20.0, stall_ticks=10**6, ticks=TICKS)
    rows = 0
    with LiveSession.start(graph, "scripted", options, settings=settings) as run, ExitStack() as open_ones:
        if seen:
            shown = Foxglove("pair")
            open_ones.callback(shown.close)
            client = Client(shown.address)
            threading.Thread(target=lambda: [client.read(0.5) for _ in range(20)], daemon=True).start()
            following = LiveViewers(run, [shown])
        assert run.wait(60.0)
        if seen:
            rows = following.close()["rows"]
        report = run.report()
    return [1e6 * report[key][share] for key in ("execution_time", "wakeup_latency") for share in ("p50", "p99")], rows


@pytest.mark.parametrize("name", ["latch_door", "piano_action"])
def test_ticks_with_a_viewer(name):
    graph = coupled_graph(fsm_dyn.compile(add_couplers(shipped(name))))
    found = []
    for _ in range(PAIRS):
        alone, _ = ticks(graph, MOTIONS[name], seen=False)
        seen, rows = ticks(graph, MOTIONS[name], seen=True)
        found.append([alone, seen])
        assert rows > 5  # 30 a second of a free machine
    times = np.array(found)
    for label, column in (("tick p50", 0), ("tick p99", 1), ("wake-up p50", 2), ("wake-up p99", 3)):
        alone, seen = np.median(times[:, :, column], axis=0)
        ratio = np.median(times[:, 1, column] / times[:, 0, column])
        print(f"\n{name} {label}: {alone:.1f} us alone, {seen:.1f} us with Foxglove, "
              f"median ratio of {PAIRS} pairs {ratio:.2f}", end="")  # fmt: skip
    assert np.median(times[:, 1, 0] / times[:, 0, 0]) < 2.0
