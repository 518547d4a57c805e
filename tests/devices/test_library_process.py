"""Libraries of makers in a separate process: whichever process is stopped or killed, another one ends the force."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import force_dimension, touch
from fsm_dyn.devices.library_process import RepeatedNumbers
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.devices.makers.emulated_library import build, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the emulated library is an ELF file")
SOURCES = {"force_dimension": "emulated_dhd.c", "touch": "emulated_hd.c"}
DRIVERS = {"force_dimension": force_dimension.Driver, "touch": touch.Driver}
PRESSED = {"force_dimension": 0.3, "touch": 0.1}  # N, at least: of the second a fifth is shown
HAND = {"stiffness": 300.0, "damping": 10.0}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    return {name: str(build(source, folder / f"{name}.so")) for name, source in SOURCES.items()}


def library_process(library):
    """The process that has a library, None without one."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if b"fsm_dyn.devices.library_process" in words and library.encode() in b" ".join(words):
            return int(folder.name)
    return None


class Pressed:
    """A session with the wall, pressed by the hand of an emulated device."""

    def __init__(self, name, library, device, watchdog_timeout=1.0, stall_ticks=150, **options):
        self.name, self.device, self.why = name, device, ""
        settings = LiveSettings(
            realtime_privileges=False, watchdog_timeout=watchdog_timeout, stall_ticks=stall_ticks,
            release_after=0.06, limits=Limits(velocity=20.0),
        )  # fmt: skip
        graph = fsm_dyn.compile("virtual_wall")
        self.session = LiveSession.start(graph, name, {"library": library, **options}, settings=settings)

    def press(self):
        self.session.wait_for_ticks(50)
        place = self.device.state()["position"]
        place[1] -= 0.03
        self.device.do("hand", **HAND, target=place)
        self.wait_for_force()

    def wait_for_force(self):
        until(self.feels)
        self.device.log()

    def feels(self):
        """Whether the wall pushes back; engages a device that a loaded machine held up again."""
        phase = self.session.snapshot()["phase"]
        if phase in ("fault", "paused"):
            self.session.send("clear" if phase == "fault" else "run")
        return self.device.state()["force"][1] > PRESSED[self.name]

    def ends(self):
        """Wait until there is no force; return by whom."""
        until(lambda: not any(self.device.state()["force"]))
        self.why = (self.device.log() or [{"why": self.why}])[-1]["why"]
        return self.why


@pytest.mark.parametrize("name", SOURCES)
def test_the_force_of_a_tick_process_that_stands_still_or_is_gone_ends(libraries, device, name):
    """By the watchdog process, without any watchdog of the device; what stood still for a moment goes on."""
    it = device(has_watchdog=False)
    options = {"watchdog": 0.0} if name == "force_dimension" else {}
    run = Pressed(name, libraries[name], it, watchdog_timeout=30.0, stall_ticks=30_000, **options)
    with run.session as session:
        run.press()
        os.kill(session.tick_pid, signal.SIGSTOP)
        assert run.ends() == "host"
        time.sleep(0.2)  # the watchdog process may be late as well
        os.kill(session.tick_pid, signal.SIGCONT)
        until(lambda: session.snapshot()["engagement"] == 1.0)
        run.press()  # anew: the device was engaged where it was
        os.kill(session.tick_pid, signal.SIGKILL)
        assert run.ends() == "host"
        told, report = session.events(), session.report()
    assert report["interruptions"] >= 1
    assert [event["count"] for event in told if event["event"] == "interrupted"]
    assert (report["fault"], report["watchdog_action"]) == ("", "found the tick process dead")
    until(lambda: library_process(libraries[name]) is None)


def test_behind_a_library_process_that_stands_still_is_the_watchdog_of_the_controller(libraries, device):
    it = device()
    run = Pressed("force_dimension", libraries["force_dimension"], it)
    with run.session:
        run.press()
        own = library_process(libraries["force_dimension"])
        os.kill(own, signal.SIGSTOP)
        assert run.ends() == "watchdog"
        until(lambda: library_process(libraries["force_dimension"]) is None)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_after_a_stopped_or_killed_library_process_another_one_removes_the_force(libraries, device, number):
    """Of a device without a watchdog; nothing is left of either."""
    it = device(has_watchdog=False)
    run = Pressed("touch", libraries["touch"], it)
    with run.session as session:
        run.press()
        os.kill(library_process(libraries["touch"]), number)
        assert run.ends() == "host"
        until(lambda: session.report()["fault"] == "the driver raised an exception")
    until(lambda: library_process(libraries["touch"]) is None)


@pytest.mark.parametrize("name", SOURCES)
def test_numbers_that_a_library_repeats_are_no_samples(libraries, device, name):
    """The library has lost its device without an error: the force ends, and the fault has a name.

    A position that stays contradicts a velocity that stays, if the device was moving when it was lost.
    """
    it = device()
    run = Pressed(name, libraries[name], it)
    with run.session as session:
        run.press()
        it.do("stall")
        assert run.ends() == "host"
        until(lambda: session.snapshot()["fault"])
        if session.snapshot()["fault"] == "the device gave no new sample":
            until(lambda: "samples repeated by the library" in str(session.events()))
        else:
            assert session.snapshot()["fault"] == "position and velocity of the device contradict each other"


@pytest.mark.parametrize("step", [10e-6, 55e-6])  # m, of a sensor
@pytest.mark.parametrize("speed", [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.3])  # m/s
def test_a_hand_that_hardly_moves_repeats_nothing(step, speed):
    """Positions in counts of a sensor, velocities as their differences over 20 ms; held by a hand or by a clamp."""
    for tremor in (0.0, 30e-6):
        repeated, window = RepeatedNumbers(), 80
        counts = [round((speed * 2.5e-4 * k + tremor * math.sin(0.0157 * k)) / step) for k in range(8000)]
        for k in range(window, len(counts)):
            velocity = step * (counts[k] - counts[k - window]) / (2.5e-4 * window)
            assert not repeated.has(2.5e-4 * k, (step * counts[k],), (velocity,))


def test_numbers_of_a_device_in_motion_that_stay_are_repeated():
    repeated = RepeatedNumbers()
    found = [repeated.has(1e-3 * k, (0.1, 0.2), (0.0, 1e-4)) for k in range(30)]
    assert found == [False] * 26 + [True] * 4
    assert repeated.counts() == {"samples repeated by the library": 4}
    assert not repeated.has(0.03, (0.1, 0.2), (0.0, 2e-4)), "new numbers"
    for rest in (0.0, 7e-15):
        assert not any(repeated.has(1e-3 * k, (0.1, 0.2), (0.0, rest)) for k in range(31, 1000)), "a device at rest"


def test_a_library_process_without_the_others_removes_the_force(libraries, device):
    """Of a device without a watchdog."""
    it = device(has_watchdog=False)
    run = Pressed("touch", libraries["touch"], it)
    with run.session as session:
        run.press()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            os.kill(session.watchdog_pid, number)
            os.kill(session.tick_pid, number)
            assert run.ends() == "host"
    until(lambda: library_process(libraries["touch"]) is None)


@pytest.mark.parametrize("name", SOURCES)
def test_errors_and_figures_come_across(libraries, device, name):
    it = device(uncalibrated=True)
    kind = DRIVERS[name]
    options = {"library": libraries[name]}
    driver = kind(options, kind.open_transport(options))
    with pytest.raises(InputError, match=r"calibrated|not ready"):
        driver.open()
    driver.close()
    it.close()
    it = device()
    driver = kind(options, kind.open_transport(options))
    driver.open()
    driver.calibrate()
    assert driver.maker_figures()
    assert driver.spec.zero_frame
    it.do("unplug")

    def lost():
        try:
            driver.write(driver.read().position)
        except ConnectionError as error:
            return "communication error" in str(error)
        return False

    until(lost)
    driver.close()
    driver.close()
    until(lambda: library_process(libraries[name]) is None)
