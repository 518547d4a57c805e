"""Ticks of a live run with and without a viewer, in pairs: the threads that show a run are not in the tick process.

Paced at 1 kHz; the times are those that the tick process takes itself, so a busy machine shows in both of a pair.
"""

import threading
from contextlib import contextmanager

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.viewers import Foxglove, LiveViewers, Rerun
from tests.shipped import mechanism as shipped
from tests.unit.live.conftest import MOTIONS
from tests.unit.live.test_live_viewers import Client, rerun_program

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

TICKS, PAIRS = 6_000, 5


@contextmanager
def foxglove(_):
    """A viewer that takes all messages, by the protocol of Foxglove."""
    viewer = Foxglove("pair")
    client = Client(viewer.address)
    threading.Thread(target=lambda: [client.read(0.5) for _ in range(20)], daemon=True).start()
    try:
        yield viewer
    finally:
        viewer.close()


@contextmanager
def rerun(folder):
    """Rerun's own program, which saves the stream."""
    pytest.importorskip("rerun")
    with rerun_program(folder / "stream.rrd") as address:
        viewer = Rerun("pair", address)
        try:
            yield viewer
        finally:
            viewer.close()


def ticks(graph, motion, viewer=None):
    """Run with a viewer, or without.

    Returns p50 and p99 of the ticks and of the latencies of their wake-ups (us), and how many rows were shown.
    """
    options = {"axes": 1 + max(item[0] for item in motion), "motion": motion}
    settings = LiveSettings(realtime_privileges=False, watchdog_timeout=20.0, stall_ticks=10**6, ticks=TICKS)
    rows = 0
    with LiveSession.start(graph, "scripted", options, settings=settings) as run:
        following = LiveViewers(run, [viewer]) if viewer else None
        assert run.wait(60.0)
        if following:
            rows = following.close()["rows"]
        report = run.report()
    return [1e6 * report[key][share] for key in ("execution_time", "wakeup_latency") for share in ("p50", "p99")], rows


@pytest.mark.parametrize("opened", [foxglove, rerun], ids=lambda opened: opened.__name__)
@pytest.mark.parametrize("name", ["latch_door", "piano_action"])
def test_ticks_with_a_viewer(name, opened, tmp_path):
    graph = coupled_graph(fsm_dyn.compile(add_couplers(shipped(name))))
    found = []
    for _ in range(PAIRS):
        alone, _ = ticks(graph, MOTIONS[name])
        with opened(tmp_path) as viewer:
            seen, rows = ticks(graph, MOTIONS[name], viewer)
        found.append([alone, seen])
        assert rows > 5  # 30 a second of a free machine
    times = np.array(found)
    for label, column in (("tick p50", 0), ("tick p99", 1), ("wake-up p50", 2), ("wake-up p99", 3)):
        alone, seen = np.median(times[:, :, column], axis=0)
        ratio = np.median(times[:, 1, column] / times[:, 0, column])
        print(f"\n{name} {label}: {alone:.1f} us alone, {seen:.1f} us with {opened.__name__}, "
              f"median ratio of {PAIRS} pairs {ratio:.2f}", end="")  # fmt: skip
    assert np.median(times[:, 1, 0] / times[:, 0, 0]) < 2.0
