"""Ticks faster than Python: the whole loop in compiled code, for drivers with compiled reading and writing."""

import os
import signal
import time

import numpy as np
import pytest

from fsm_dyn.devices.scripted import Driver
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick_process import wants_compiled
from fsm_dyn.runtime import library

PERIOD = 1e-4
MOTION = [[0, 0.05, 9.0, 0.0], [1, 0.05, 6.0, 3.0]]
HAND = {"axes": 2, "motion": MOTION, "stop": "watchdog", "period": PERIOD}

pytestmark = pytest.mark.skipif(not library.has_pacing(), reason="this system cannot sleep until a deadline")


@pytest.fixture
def start(held):
    sessions = []

    def begin(record=None, options=None, driver="scripted", **changes):
        usual = {
            "paced": False,
            "realtime_privileges": False,
            "watchdog_timeout": 20.0,
            "stall_ticks": 10**6,
            "period": PERIOD,
        }
        settings = LiveSettings(**{**usual, **changes})
        session = LiveSession.start(
            held("virtual_wall"), driver, {**HAND, **(options or {})}, settings=settings, record=record
        )
        sessions.append(session)
        return session

    yield begin
    for session in sessions:
        session.close()


def wait_for(condition, what):
    until = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.002)


def test_the_compiled_hand_is_the_hand():
    """The same motion under the same forces, but for the order of products."""
    plain, compiled = Driver(HAND), Driver(HAND)
    packed, sample, force = compiled.compiled().kept[1], np.zeros(7), np.zeros(2)
    hand = packed.arrays
    for k in range(2000):
        told = plain.read()
        assert library.function("fsm_hand_read")(packed.address, sample.ctypes.data) == 0
        assert sample[:4] == pytest.approx([*told.position, *told.velocity], rel=1e-9, abs=1e-14)
        assert sample[4] == told.sequence
        assert sample[6] == pytest.approx(told.time, rel=1e-12)
        force[:] = np.sin(0.01 * k), -0.5
        plain.write(force)
        library.function("fsm_hand_write")(packed.address, force.ctypes.data)
    assert hand.position == pytest.approx(told.position, rel=1e-9)


def test_ten_kilohertz_replayed_bit_for_bit(start, tmp_path):
    path = tmp_path / "run.mcap"
    session = start(record=path, ticks=6000)
    assert session.wait(60.0), session.log()
    report = session.close()
    assert (report["ticks"], report["fault"], report["phase"]) == (6000, "", "paused"), report
    recorded = read_recording(path)
    assert recorded.complete
    assert len(recorded.rows) == 6000
    assert recorded.rows[-1, 12] == 0.0, "the grip is open at the end"
    assert len(recorded.records) >= 4
    again, _ = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)


def test_commands_reach_the_compiled_loop(start):
    session = start(limits=Limits(ramp=0.02), paced=True)
    session.wait_for_ticks(500)
    session.send("pause")
    wait_for(lambda: session.snapshot()["phase"] == "paused", "the pause")
    snapshot = session.snapshot()
    assert snapshot["engagement"] == 0.0
    session.send("step", ticks=5)
    wait_for(lambda: session.snapshot()["t"] > snapshot["t"] + 4.5 * PERIOD, "the steps")
    session.send("set", values={"k": 1e4})
    session.send("reset")
    wait_for(lambda: session.snapshot()["t"] == 0.0, "the reset")
    session.send("input", values={"push": -5.0})  # for any direction of the hand's swing from its engagement: down
    session.send("run", until="transition")
    wait_for(lambda: session.snapshot()["transitions"] > snapshot["transitions"], "a transition")
    wait_for(lambda: session.snapshot()["phase"] == "paused", "the pause after it")
    done = [event["command"]["do"] for event in session.events() if event["event"] == "command_done"]
    assert done[:6] == ["pause", "step", "set", "reset", "input", "run"]
    assert session.close()["phase"] == "paused"


def test_a_killed_fast_run_is_found(start):
    session = start(paced=True, watchdog_timeout=1.0)
    session.wait_for_ticks(500)
    os.kill(session.tick_pid, signal.SIGKILL)
    assert session.wait(60.0)
    assert session.close()["watchdog_action"] == "found the tick process dead"


BROKEN = """
import ctypes
from fsm_dyn.devices import scripted
from fsm_dyn.live.pacing import CompiledIO

class Driver(scripted.Driver):
    def compiled(self):
        io, kind = super().compiled(), ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        inner, readings = kind(io.read), []
        def read(data, sample):
            readings.append(0)
            return inner(data, sample) if len(readings) < 300 else 7
        outer = kind(read)
        return CompiledIO(ctypes.cast(outer, ctypes.c_void_p).value, io.write, io.data, (io, inner, outer))
"""


def test_a_read_that_fails_is_a_fault(start, tmp_path, monkeypatch):
    (tmp_path / "broken_hand.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    session = start(driver="broken_hand:Driver")
    assert session.wait(60.0), session.log()
    report = session.close()
    assert report["ticks"] == 299
    assert (report["phase"], report["fault"]) == ("fault", "the driver raised an exception")


def test_where_it_is_used(monkeypatch):
    assert wants_compiled(LiveSettings(period=1e-4), Driver)
    assert not wants_compiled(LiveSettings(period=1e-3), Driver), "Python does it, and can be looked into"
    assert not wants_compiled(LiveSettings(period=1e-4), object)
    assert Driver({**HAND, "fault": "nan"}).compiled() is None
    monkeypatch.setattr(library, "has_pacing", lambda: False)
    assert not wants_compiled(LiveSettings(period=1e-4), Driver), "the system cannot sleep until a deadline"
