"""A paddle on a serial line, emulated in a process of its own: its force ends, whichever process is left to end it.

In order: the tick process writes zero; where there is none any more, the guard writes the safe packet; behind both is
the watchdog of the firmware.  Who it was, the emulator tells: the safe packet is the only one with the number 0.
Milliseconds are measured in tests/benchmarks.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

import fsm_dyn
from fsm_dyn.live.device_map import add_couplers, device_map_for
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.devices.rigs import PATIENT, Rig, wait_for

PRESSED = -0.03  # m, where the hand wants to be: 2 cm behind the wall
HAND = {"stiffness": 60.0, "damping": 1.0}


@pytest.fixture(scope="module")
def wall():
    return fsm_dyn.compile(add_couplers(fsm_dyn.load("virtual_wall")))


class Paddle(Rig):
    """The wall coupled to an emulated paddle."""

    def press(self):
        """Have the hand press the wall until its force is felt."""
        self.session.wait_for_ticks(50)  # where it is when it is opened is its zero
        self.device.do("hand", target=PRESSED)
        wait_for(lambda: self.feels(0, 0.5), "a force")
        self.device.log()

    def ends(self):
        """Wait until no force is shown; return how it came to that."""
        wait_for(self.is_let_go, "no force")
        return self.last()


@pytest.fixture
def rig(wall):
    made = []

    def make(watchdog_timeout=2.0, stall_ticks=300, release_after=0.012, **options):
        settings = LiveSettings(
            device_map=device_map_for(wall, "", 1), realtime_privileges=False, watchdog_timeout=watchdog_timeout,
            stall_ticks=stall_ticks, release_after=release_after,
        )  # fmt: skip
        made.append(Paddle("hapkit", wall, settings, **{"hand": HAND, **options}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_tick_process_ends_the_force_of_a_device_that_fails(rig):
    """One failure after the other in one run, with its watchdog and without; unplugging ends the run."""
    it = rig()
    it.press()
    for watchdog in (True, False):
        it.device.do("watchdog", on=watchdog)
        for what in ("garbage",) if watchdog else ("stall", "garbage", "half"):
            it.device.do(what, on=True)
            wait_for(lambda: it.fault() == "the device gave no new sample", "the fault")
            last = it.ends()
            assert last["why"] == "host" or watchdog, (what, last)
            assert last["sequence"] > 0 or it.was_late(), "it was not the guard"
            it.device.do(what, on=False)
            it.clear()
    events = it.events()
    counts = [event["counts"] for event in events if event["event"] == "device"][-1]
    assert counts["frames not understood by the host"] >= 3 * 100, "told, for every tick until the fault at least one"

    it.device.do("unplug")
    assert it.ends()["why"] == "no power"
    assert it.session.wait(PATIENT), "a line that was hung up cannot be used again: the run ends"
    why = [event["detail"] for event in it.events() if event["event"] == "fault"][-1]
    assert "the device is unplugged" in why
    assert it.session.close()["fault"] == "the driver raised an exception"

    # plugged in again it is held by a new session; whose owner goes, so that the tick process opens the grip and ends
    it.device.do("plug")
    it.device.do("watchdog", on=False)
    it.device.do("hand", target=0.0)
    it.start()
    it.press()
    it.session._process.stdin.close()  # what the system does when the owner dies, however it dies
    assert it.session.wait(PATIENT)
    forces = [entry["force"][0] for entry in it.device.log()]
    assert forces[-1] == 0.0
    assert len(forces) > 10, "gently, over a fifth of a second: nothing presses"
    assert it.session.report()["watchdog_action"] == ""


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_the_guard_ends_the_force_of_a_host_that_fails(rig, number):
    """Without the device's watchdog."""
    it = rig(watchdog_timeout=1.0, watchdog=0.0)
    it.press()
    os.kill(it.session.tick_pid, number)
    last = it.ends()
    assert (last["why"], last["sequence"]) == ("host", 0), "the safe frame"
    assert it.session.wait(PATIENT)
    assert not it.device.log(), "nothing more was shown"
    named = "ended the tick process" if number == signal.SIGSTOP else "found the tick process dead"
    assert it.close()["watchdog_action"] == named


def test_what_is_missing_for_a_moment_releases_the_device_and_the_run_goes_on(rig):
    """Ticks, the guard, samples: no force, long before anything is ended, and all of it again once they are back."""
    it = rig(watchdog_timeout=60.0, stall_ticks=60_000, watchdog=0.0)
    it.press()
    pids = it.session.tick_pid, it.session.watchdog_pid
    missing = {
        "the loop": lambda on: os.kill(pids[0], signal.SIGSTOP if on else signal.SIGCONT),
        "the guard": lambda on: os.kill(pids[1], signal.SIGSTOP if on else signal.SIGCONT),
        "the device": lambda on: it.device.do("stall", on=on),
    }
    for who, happen in missing.items():
        it.device.log()
        happen(True)
        last = it.ends()
        assert last["why"] == "host", who
        if who != "the device":  # then it may be either, where the loop is late as well
            assert (last["sequence"] == 0) == (who == "the loop"), "for missing ticks it is the guard"
        if who != "the loop":  # whose interruption the guard reports, however short
            time.sleep(0.05)  # the guard may see first what the loop releases for: both have seen it now
        happen(False)
        wait_for(lambda: it.feels(0, 0.5), f"the force, after {who}")
    assert it.was_late(), str([(e["reason"], e["count"]) for e in it.events() if e["event"] == "released"])
    report = it.close()
    assert (report["fault"], report["watchdog_action"]) == ("", "")
    assert report["releases"] >= 1, "of a device that stalls the force may have faded before"
    assert report["interruptions"] >= 1


def test_the_watchdog_is_left_when_host_and_guard_are_no_more(rig):
    it = rig(release_after=1.0)
    it.press()
    os.kill(it.session.tick_pid, signal.SIGSTOP)
    os.kill(it.session.watchdog_pid, signal.SIGKILL)
    assert it.ends()["why"] == it.device.state()["let_go"] == "watchdog"
    os.kill(it.session.tick_pid, signal.SIGKILL)


def test_a_device_that_does_not_answer_is_no_riddle(wall, tmp_path, monkeypatch):
    """What a driver says when it cannot be opened is reported as the fault of the run, which ends in order."""
    (tmp_path / "silent.py").write_text(
        "from fsm_dyn.devices.scripted import Driver as Scripted\n"
        "from fsm_dyn.core.errors import InputError\n"
        "class Driver(Scripted):\n"
        "    def open(self):\n"
        "        raise InputError('nobody answers', remedy='knock')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    session = LiveSession.start(wall, "silent:Driver", {"axes": 2})
    try:
        assert session.wait(PATIENT)
        (detail,) = [event["detail"] for event in session.events() if event["event"] == "fault"]
        assert detail == "nobody answers\n  remedy: knock"
    finally:
        report = session.close()
    assert (report["fault"], report["watchdog_action"], report["ticks"]) == ("the driver raised an exception", "", 0)
    assert "log" not in report
