"""An owner who is frozen is a dead man: the grip opens, the model rests, and the recording holds all of it."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import replay
from fsm_dyn.live.session import LiveSession, SignOfLife
from fsm_dyn.live.tick_process import columns_of, ring_of
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import LiveHeader, TickCounts, TickNumbers

MILLISECOND = 1_000_000  # ns
GRIP, ADVANCED = 12, 9  # columns of a row

OWNER = """
import json, sys, time, fsm_dyn
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.session import LiveSession, LiveSettings
from fsm_dyn.live.stepper import Limits
hand = {"axes": 2, "motion": [[1, 0.05, 6.0, 3.0]], "stop": "watchdog", "period": 2e-4}
settings = LiveSettings(period=2e-4, realtime_privileges=False, watchdog_timeout=20.0, stall_ticks=10**6,
    release_after=0.0, owner_timeout=0.3, limits=Limits(ramp=0.05))
graph = fsm_dyn.compile(add_couplers(fsm_dyn.load("virtual_wall")))
with LiveSession.start(graph, "scripted", hand, settings=settings, record=sys.argv[1]) as session:
    session.wait_for_ticks(1000)
    print("ticks", flush=True)
    sys.stdin.readline()
    until = time.monotonic() + 60.0
    while session.snapshot()["engagement"] < 1.0 or not any(e["event"] == "owner" for e in session._told):
        assert time.monotonic() < until
        time.sleep(0.01)
    report = session.close()
print(json.dumps(report["rows_lost"]))
"""


def test_without_a_heartbeat_the_grip_opens_and_the_model_rests(bench):
    run = bench("latch", limits=Limits(ramp=0.05))
    stepper, controller = run.stepper, run.controller
    block = tick_data.SharedBlock.create(
        tick_data.BlockLayout(columns_of(stepper).width, 1 + stepper.loop.buffers.transitions.shape[1])
    )
    stepper.publish_to(ring_of(block))
    counts, header = stepper.tick_data.counts, block.header
    counts[TickCounts.OWNER_TIMEOUT] = 100 * MILLISECOND
    wall, grips = 0, []

    def tick(count, alive):
        nonlocal wall
        for _ in range(count):
            wall += 1
            header[LiveHeader.OWNER_BEATS] += alive
            sample = run.hand.read()
            controller.take(sample)
            controller.run_tick(sample.sequence, 0, wall * MILLISECOND)
            grips.append(float(stepper.tick_data.numbers[TickNumbers.ENGAGEMENT]))

    try:
        tick(200, alive=True)
        assert grips[-1] == 1.0
        tick(100, alive=False)
        assert grips[-1] == 1.0, "not before it is time"
        tick(50, alive=False)
        assert grips[-2:] == [pytest.approx(0.02), 0.0], "gently"
        tick(1, alive=False)
        rested, rows = stepper.t, int(header[LiveHeader.ROWS])
        tick(500, alive=False)
        assert (stepper.t, header[LiveHeader.ROWS]) == (rested, rows), "nothing is written over that nobody has taken"
        tick(60, alive=True)
        assert grips[-1] == 1.0
        assert [e["silent"] for e in run.events if e["event"] == "owner"] == [True, False]
    finally:
        block.close(remove=True)


@pytest.mark.skipif(not library.has_pacing(), reason="this system cannot sleep until a deadline")
def test_an_owner_that_is_stopped_records_all_of_it(tmp_path):
    """For longer than the rings hold; the run is then replayed bit for bit."""
    path = tmp_path / "run.mcap"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout.readline() == "ticks\n"
        owner.send_signal(signal.SIGSTOP)
        time.sleep(2.0)  # ten thousand ticks; the rings hold four thousand
        owner.send_signal(signal.SIGCONT)
        told, _ = owner.communicate("\n", timeout=120)
    finally:
        owner.kill()
        owner.wait()
    assert json.loads(told) == 0, "rows lost"
    recorded = read_recording(path)
    assert [e["silent"] for e in recorded.events if e["event"] == "owner"] == [True, False]
    moved = recorded.rows[recorded.rows[:, ADVANCED] != 0.0]
    assert (moved[:, GRIP] == 1.0).any()
    gap = int(np.argmax(np.diff(moved[:, 0])))  # ticks in which the model rested
    assert np.diff(moved[:, 0])[gap] > tick_data.ROW_SLOTS
    assert moved[gap, GRIP] == 0.0
    assert moved[-1, GRIP] == 0.0
    assert moved[gap:, GRIP].max() == 1.0, "held again"
    assert len(recorded.records) >= 4
    again, _ = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)


def test_a_busy_owner_is_alive(held, tmp_path, monkeypatch):
    """A derivation, and a search that never releases the interpreter."""
    hand = {"axes": 2, "motion": [[1, 0.03, 1.0, 3.0]], "stop": "watchdog"}
    settings = LiveSettings(realtime_privileges=False, watchdog_timeout=20.0, stall_ticks=10**6, owner_timeout=0.4)
    with LiveSession.start(held("virtual_wall"), "scripted", hand, settings=settings) as session:
        session.wait_for_ticks(50)
        begin = session.snapshot()["wall"]
        monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
        fsm_dyn.compile(fsm_dyn.load("latch"))
        derived = session.snapshot()["wall"]
        letters = 20
        while session.snapshot()["wall"] < derived + 1.0:  # twice as long with every letter
            assert re.match("(a+)+$", letters * "a" + "b") is None
            letters += 1
        assert derived > begin
        assert [e for e in session.events() if e["event"] == "owner"] == []


def test_the_heartbeat_ends_when_it_is_reported(monkeypatch):
    """With the system's sleep and without."""
    for sleeps in (library.has_pacing(), False):
        monkeypatch.setattr(library, "has_pacing", lambda sleeps=sleeps: sleeps)
        header = np.zeros(tick_data.HEADER, np.int64)
        life = SignOfLife(header)
        until = time.monotonic() + 30.0
        while header[LiveHeader.OWNER_BEATS] < 2:
            assert time.monotonic() < until
            time.sleep(0.005)
        life.stop()
        count = header[LiveHeader.OWNER_BEATS]
        time.sleep(0.05)
        assert header[LiveHeader.OWNER_BEATS] == count
        life.stop()
