"""The virtual wall coupled to an emulated device, and what tests of its failures ask and do."""

from __future__ import annotations

import time

from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.session import LiveSession

PATIENT = 30.0  # s that a machine under load may take for what should take a moment


def wait_for(condition, what):
    until = time.monotonic() + PATIENT
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.005)


class Rig:
    """A live run with an emulated device; those derived from it say how the hand presses the wall."""

    def __init__(self, driver, graph, settings, **options):
        self.driver, self.graph, self.settings = driver, graph, settings
        self.device = emulation(driver, options)
        try:
            self.start()
        except BaseException:
            self.device.close()
            raise

    def start(self):
        self.session = LiveSession.start(self.graph, self.driver, self.device.options, settings=self.settings)
        self._told = []

    def press(self):
        raise NotImplementedError

    def feels(self, axis, force):
        """Whether the wall pushes back with more than a force; engages a device that a loaded machine held up again."""
        phase = self.session.snapshot()["phase"]
        if phase in ("fault", "paused"):
            self.session.send("clear" if phase == "fault" else "run")
        return self.device.state()["force"][axis] > force

    def events(self):
        """All events of the session until now."""
        self._told += self.session.events()
        return self._told

    def was_late(self):
        """Whether the loop itself may have been held up, so that the watchdog process removed the force before it.

        Events come at a limited rate, with the last reason: it may, where there are fewer of them than releases.
        """
        released = [e for e in self.events() if e["event"] == "released"]
        merged = bool(released) and len(released) < released[-1]["count"]
        interrupted = any(e["event"] == "interrupted" for e in self.events())
        return merged or interrupted or any(e["reason"].startswith("the loop") for e in released)

    def fault(self):
        return self.session.snapshot()["fault"]

    def is_let_go(self):
        return not any(self.device.state()["force"])

    def last(self):
        """The last change of the force since asked."""
        found = self.device.log()
        assert found, "nothing changed"
        return found[-1]

    def clear(self):
        """The fault has stayed until now, also for another process that asks for a run; clear it, and press again."""
        self.session.send("run")
        tick = self.session.snapshot()["tick"]
        self.session.wait_for_ticks(tick + 50)
        assert self.session.snapshot()["phase"] == "fault", "it stays until a person clears it"
        assert self.is_let_go()
        self.session.send("clear")
        wait_for(lambda: self.session.snapshot()["phase"] == "paused", "the pause")
        self.session.send("run")
        self.press()

    def close(self):
        report = self.session.close()
        self.device.close()
        return report
