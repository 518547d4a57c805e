"""How soon the force on a device across a wire is zero, whatever fails: by the emulator's own clock and log.

From the instant at which it happens to the last change of the force, which is to zero; the device's own watchdog is off
unless it is what is to act.  Figures are those of this machine, and of what else it does meanwhile.
"""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession

pytestmark = pytest.mark.benchmark
ALLOWED = 20e-3  # s
ATTEMPTS = 5
STALL_TICKS = 10  # of a millisecond
GUARD = 0.012  # s that the tick process may stand still
WATCHDOG = 0.015  # s, of the emulated device


class Rig:
    """A live run of the virtual wall, whose plate the emulated device presses."""

    def __init__(self, driver):
        axes = {"axes": 2} if driver == "udp" else {}
        self.device = emulation(driver, {"watchdog": WATCHDOG, **axes})
        settings = LiveSettings(
            stall_ticks=STALL_TICKS, watchdog_timeout=GUARD, limits=Limits(ramp=0.02, velocity=20.0), overrun="slow"
        )
        self.session = LiveSession.start(
            fsm_dyn.compile("virtual_wall"), driver, self.device.options, settings=settings
        )
        self.session.wait_for_ticks(300)  # a real-time process gives way at its start

    def press(self):
        place = self.device.state()["position"]
        place[1] -= 0.03
        self.device.do("hand", stiffness=300.0, damping=10.0, target=place)
        self.until(lambda: self.device.state()["force"][1] > 0.3)
        time.sleep(0.05)
        self.device.log()

    @staticmethod
    def until(condition):
        end = time.monotonic() + 20.0
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    def measure(self, happen):
        """Let something happen; return after how long (s) the force was zero for good, and what made it so."""
        begin = time.monotonic()
        happen()
        self.until(lambda: not any(self.device.state()["force"]))
        time.sleep(0.05)
        log = self.device.log()
        assert not any(log[-1]["force"])
        first = next(k for k in range(len(log) - 1, -1, -1) if any(log[k]["force"])) + 1 if len(log) > 1 else 0
        return log[first]["time"] - begin, log[first]["why"]

    def clear(self):
        self.until(lambda: self.session.snapshot()["phase"] == "fault")
        self.session.send("clear")
        self.until(lambda: self.session.snapshot()["phase"] == "paused")
        self.session.send("run")
        self.until(lambda: self.session.snapshot()["engagement"] == 1.0)

    def close(self):
        self.session.close()
        self.device.close()


def judge(name, delays, whys):
    median, worst = np.median(delays), max(delays)
    print(f"\n{name}: median {median * 1e3:.1f} ms, worst {worst * 1e3:.1f} ms, by {', '.join(sorted(whys))}")
    assert median <= ALLOWED


@pytest.mark.parametrize("driver", ["udp", "inverse3"])
def test_what_the_run_outlives(driver):
    """No power, no samples, spoilt ones (where the line bears them), nothing read: five times each."""
    rig = Rig(driver)
    try:
        cases = [("unplug", "plug", False), ("stall", None, False), ("freeze", None, True)]
        cases += [("garbage", None, False), ("half", None, False)] if driver == "udp" else []
        for what, undo, watchdog in cases:
            rig.device.do("watchdog", on=watchdog)
            delays, whys = [], set()
            for _ in range(ATTEMPTS):
                rig.press()
                delay, why = rig.measure(partial(rig.device.do, what))
                delays.append(delay)
                whys.add(why)
                rig.device.do(undo) if undo else rig.device.do(what, on=False)
                rig.clear()
            judge(f"{driver}, {what}" + (", its watchdog" if watchdog else ""), delays, whys)
    finally:
        rig.close()


@pytest.mark.parametrize(
    ("driver", "what"),
    [
        ("udp", signal.SIGKILL),
        ("udp", signal.SIGSTOP),
        ("inverse3", signal.SIGKILL),
        ("inverse3", signal.SIGSTOP),
        ("inverse3", "garbage"),
        ("inverse3", "half"),
        ("inverse3", "leave"),
    ],
)
def test_what_ends_the_run(driver, what):
    """A tick process that is killed or stopped, a connection that fails: three runs each, without the watchdog."""
    delays, whys = [], set()
    for _ in range(3):
        rig = Rig(driver)
        try:
            rig.device.do("watchdog", on=False)
            rig.press()
            kill = partial(os.kill, rig.session.tick_pid, what)
            delay, why = rig.measure(partial(rig.device.do, what) if isinstance(what, str) else kill)
            delays.append(delay)
            whys.add(why)
        finally:
            rig.close()
    judge(f"{driver}, {what if isinstance(what, str) else what.name}", delays, whys)
