"""Devices across a wire, emulated in processes of their own: the force comes to zero in the order declared.

Milliseconds are for tests/benchmarks: here it is who let go, and that the fault is named and stays.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

import fsm_dyn
from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.devices.udp import SampleDatagram
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from tests.devices.rigs import PATIENT, Rig, wait_for

STALLED = "the device gave no new sample"


class Held(Rig):
    """The wall coupled to an emulated device of several axes."""

    def press(self):
        """Have the hand press the plate until it feels it."""
        self.session.wait_for_ticks(50)
        x = self.device.state()["position"]
        x[1] -= 0.03
        self.device.do("hand", stiffness=300.0, damping=10.0, target=x)
        wait_for(lambda: self.feels(1, 0.3), "a force")
        self.device.log()


@pytest.fixture
def rig():
    made = []

    def make(driver, **options):
        settings = LiveSettings(
            realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=150, limits=Limits(ramp=0.02, velocity=20.0)
        )
        made.append(Held(driver, fsm_dyn.compile("virtual_wall"), settings, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_device_program_that_fails_is_released(rig):
    """One after the other in one run, strangers sending meanwhile; all but the first without the device's watchdog."""
    it = rig("udp", axes=2)
    device = it.device
    it.press()
    position = it.session.snapshot()["position"]
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for k in range(50):
        data = datagrams.pack_sample(SampleDatagram(10**9 + k, time.monotonic(), 0, (9.0, 9.0), (0.0, 0.0)))
        stranger.sendto(data, ("127.0.0.1", device.options["port"]))
    stranger.close()

    device.do("freeze")  # reads nothing, tells nothing
    wait_for(lambda: it.fault() == STALLED, "the fault")
    wait_for(it.is_let_go, "zero force")
    assert it.last()["why"] == "watchdog"
    device.do("freeze", on=False)
    it.clear()

    device.do("watchdog", on=False)
    for what in ("garbage", "half", "stall", "unplug"):
        device.do(what)
        wait_for(lambda: it.fault() == STALLED, "the fault")
        wait_for(it.is_let_go, "zero force")
        assert it.last()["why"] == ("no power" if what == "unplug" else "host"), what
        device.do("plug") if what == "unplug" else device.do(what, on=False)
        it.clear()
    rows, _ = it.session.rows()
    assert abs(rows[:, it.session.columns.places["position"]] - position).max() < 0.5, "strangers move nothing"

    device.do("freeze")
    wait_for(lambda: it.fault() == STALLED, "the fault")
    assert not it.is_let_go(), "nothing could reach it"
    device.log()
    device.do("freeze", on=False)
    wait_for(it.is_let_go, "zero force")
    (only,) = device.log()  # of all that waited for it, the last was obeyed
    assert (only["why"], only["force"]) == ("host", [0.0, 0.0])

    let_go = device.state()["counts"]["let go"]  # by the guard, should the loop have been held up
    assert it.session.close()["fault"] == STALLED
    told = [e["counts"] for e in it.session.events() if e["event"] == "device"][-1]
    assert told["stranger"] == 50
    assert min(told["size"], told["magic"]) > 0
    wait_for(lambda: device.state()["counts"]["let go"] > let_go, "the last word")


@pytest.mark.parametrize(
    ("driver", "options", "how"), [("udp", {"axes": 2}, signal.SIGKILL), ("inverse3", {}, signal.SIGSTOP)]
)
def test_the_guard_has_the_last_word(rig, driver, options, how):
    """Without the device's watchdog, a tick process that is killed or stopped."""
    it = rig(driver, watchdog=0.0, **options)
    it.press()
    os.kill(it.session.tick_pid, how)
    wait_for(it.is_let_go, "zero force")
    (last,) = [x for x in it.device.log() if not any(x["force"])]
    assert last["why"] == "host", "it was told to, and nothing after that"
    assert it.session.wait(PATIENT)
    assert it.session.close()["watchdog_action"] in ("ended the tick process", "found the tick process dead")
    assert it.is_let_go()


def test_a_service_whose_device_fails_is_released(rig):
    """Nothing read, states that fail to come, no power; then the service speaks nonsense, which ends the run."""
    it = rig("inverse3")
    device = it.device
    it.press()
    device.do("freeze")
    wait_for(lambda: it.fault() == STALLED, "the fault")
    wait_for(it.is_let_go, "zero force")
    assert it.last()["why"] == "watchdog"
    device.do("freeze", on=False)
    it.clear()
    device.do("watchdog", on=False)
    for what in ("stall", "unplug"):
        device.do(what)
        wait_for(lambda: it.fault() == STALLED, "the fault")
        wait_for(it.is_let_go, "zero force")
        assert it.last()["why"] == ("no power" if what == "unplug" else "host"), what
        device.do("plug") if what == "unplug" else device.do(what, on=False)
        it.clear()
    device.do("garbage")
    wait_for(it.is_let_go, "zero force")
    assert it.last()["why"] in ("host", "no client"), "a force of zero, and then the end"
    report = it.session.close()
    told = it.session.events()
    assert report["fault"] in ("the driver raised an exception", STALLED)  # noise may begin as a long frame does
    assert report["phase"] == "fault"
    assert [e["counts"] for e in told if e["event"] == "device"][-1]["without the device"] > 0


OWNER = """
import os, signal, fsm_dyn
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.session import LiveSession, LiveSettings
from tests.devices.rigs import PATIENT, Rig, wait_for
session = LiveSession.start(fsm_dyn.compile("virtual_wall"), "udp", {options!r},
    settings=LiveSettings(realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=10**6, limits=Limits(ramp=0.02,
    velocity=20.0)))
print(session.watchdog_pid, session.tick_pid, flush=True)
input()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_when_the_owner_is_killed_the_device_is_released():
    """The guard asks the tick process to end: the grip opens at its rate, and the last word is to let go."""
    device = emulation("udp", {"axes": 2, "watchdog": 0.0})
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(options=device.options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        device.do("hand", stiffness=300.0, damping=10.0, target=[0.0, 0.0])
        wait_for(lambda: device.state()["counts"]["forces"] > 50, "forces")
        device.do("hand", stiffness=300.0, damping=10.0, target=[0.0, -0.03])
        wait_for(lambda: device.state()["force"][1] > 0.3, "a force")
        device.log()
        owner.communicate("\n", timeout=PATIENT)
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "the end of both processes")
        wait_for(lambda: device.state()["counts"]["let go"] >= 1, "the last word")
        found = device.log()
        assert (found[-1]["force"], found[-1]["why"]) == ([0.0, 0.0], "host")
        assert len(found) > 5, "it opened in steps"
    finally:
        owner.kill()
        owner.wait()
        device.close()


def test_a_gamepad_moves_the_port_and_returns_when_it_is_unplugged(rig):
    it = rig("gamepad")
    it.session.wait_for_ticks(50)
    it.device.do("hand", target=[0.0, 0.06])
    it.device.do("press", button=3)
    wait_for(lambda: it.session.snapshot()["position"][1] > 0.05, "the motion")  # 0.6 less the dead zone of 0.1
    assert it.session.snapshot()["buttons"] == 0b1000
    assert it.session.snapshot()["fault"] == ""
    it.device.do("unplug")
    wait_for(lambda: it.fault() == STALLED, "the fault")
    assert abs(it.session.snapshot()["position"][1]) < 1e-3
    assert it.session.snapshot()["buttons"] == 0
    rows, _ = it.session.rows()
    moved = rows[:, it.session.columns.places["position"]][:, 1]
    assert 0.05 < moved.max() < 0.0556
    it.device.do("plug")
    ticks = it.session.snapshot()["tick"]
    it.session.wait_for_ticks(ticks + 30)
    assert it.fault() == STALLED, "it stays"
    it.session.send("clear")
    wait_for(lambda: it.session.snapshot()["phase"] == "paused", "the pause")
    wait_for(lambda: it.session.snapshot()["position"][1] > 0.05, "the stick, which is where it was")
