"""The driver of OpenHaptics and a public binding, on the same emulated library."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import touch
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.driver_protocol import UNSTOPPED_FORCE_FRACTION
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.devices.makers.emulated_library import HERE, build, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the emulated library is an ELF file")
STIFFNESS, HAND, TARGET = 10.0, 10.0, (0.03, -0.02, 0.01)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return the emulated library; it has the functions that the binding looks up when it calls them."""
    return build("emulated_hd.c", tmp_path_factory.mktemp("hd") / "libHD.so")


@pytest.fixture
def opened(library):
    """Return a function that opens the device; its servo loop ends with the test."""
    drivers = []

    def open_(**options):
        drivers.append(touch.Driver({"library": str(library), **options}))
        drivers[-1].open()
        drivers[-1].calibrate()
        return drivers[-1]

    yield open_
    for driver in drivers:
        driver.close()


def test_the_binding_and_the_driver_come_to_the_same_rest(library, device, opened):
    """Where the hand and the spring balance; the damping leaves less than 0.2 mm of the motion after a second."""
    device(mass=0.05, hand={"stiffness": HAND, "damping": 1.0, "target": 0.0}).do("hand", target=list(TARGET))
    balance = [HAND * x / (HAND + STIFFNESS) for x in TARGET]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    script = [sys.executable, str(HERE / "spring_by_openhaptics.py"), str(STIFFNESS)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    by_binding = json.loads(done.stdout.splitlines()[-1])
    assert by_binding["buttons"] == 2
    assert by_binding["callbacks"] > 100
    driver = opened(release=0.5)
    first, end = driver.read(), time.monotonic() + 1.0
    while time.monotonic() < end:
        sample = driver.read()
        driver.write([-STIFFNESS * x for x in sample.position])
        time.sleep(0.001)
    assert sample.sequence > first.sequence + 100
    assert sample.buttons == 2
    assert by_binding["position"] == pytest.approx(balance, abs=2e-4)
    assert sample.position == pytest.approx(balance, abs=2e-4)


def test_the_servo_loop_removes_a_force_that_is_not_renewed(device, opened):
    it = device()
    driver = opened(release=0.05)
    assert driver.spec.force == 0.88, "the continuous force that the library reports, N"
    driver.write([0.5, -0.25, 0.0])
    until(lambda: it.state()["force"] == [0.5, -0.25, 0.0] or it.log())
    until(lambda: driver.diagnostics() == {"forces removed by the servo loop": 1})
    until(lambda: not any(it.state()["force"]))
    driver.write([0.5, 0.0, 0.0])
    until(lambda: driver.diagnostics() == {"forces removed by the servo loop": 2})
    driver.close()
    driver.close()
    assert not any(it.state()["force"])


def test_velocities_are_in_metres(device, opened):
    """A force of 0.2 N on 0.2 kg and 0.5 N s/m without a hand: 0.4 m/s at the end, and never more."""
    it = device(hand={"stiffness": 0.0, "damping": 0.0, "target": 0.0})
    driver = opened(release=1.0)
    driver.write([0.2, 0.0, 0.0])
    until(lambda: it.state()["velocity"][0] > 0.1)
    sample, true = driver.read(), it.state()
    assert 0.05 < sample.velocity[0] <= true["velocity"][0] + 1e-9
    assert 0.0 < sample.position[0] <= true["position"][0] + 1e-9


def test_what_is_not_ready_is_refused_before_any_force(library, device, tmp_path, monkeypatch):
    it = device(uncalibrated=True)
    driver = touch.Driver({"library": str(library)})
    with pytest.raises(InputError, match="not calibrated"):
        driver.open()
    driver.close()  # as the tick process does
    with pytest.raises(ConnectionError, match="communication error"):
        touch.Driver({"library": str(library), "device": "Left"}).open()
    assert it.log() == []
    monkeypatch.setattr("fsm_dyn.devices.driver_tools.find_library", lambda name: None)
    with pytest.raises(InputError, match="the library of OpenHaptics is not installed"):
        touch.Driver.complete({})
    (tmp_path / "empty.c").write_text("int hdInitDevice(void);\nint hdInitDevice(void) { return 0; }\n")
    with pytest.raises(InputError, match="has no function hdMakeCurrentDevice"):
        touch.Driver.complete({"library": str(build(str(tmp_path / "empty.c"), tmp_path / "few.so"))})


def test_warm_motors_are_counted_and_a_lost_device_is_an_error(device, opened):
    it = device(error=0x0200)
    driver = opened()
    until(lambda: driver.diagnostics().get("warm motors", 0) > 5)
    it.do("unplug")

    def lost():
        try:
            driver.read()
        except ConnectionError as error:
            return "communication error" in str(error)
        return False

    until(lost)


def test_a_run_is_limited_to_a_fifth_and_ends_without_force(library, device):
    it = device()
    settings = LiveSettings(
        realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=150, limits=Limits(velocity=20.0)
    )
    graph = fsm_dyn.compile("virtual_wall")
    options = {"library": str(library), "force": 0.8}
    with LiveSession.start(graph, "touch", options, settings=settings) as session:
        session.wait_for_ticks(50)
        place = it.state()["position"]
        place[1] -= 0.03
        it.do("hand", stiffness=300.0, damping=10.0, target=place)
        until(lambda: it.state()["force"][1] > 0.99 * UNSTOPPED_FORCE_FRACTION * 0.8)
        time.sleep(0.2)  # it would grow further
    forces = [change["force"][1] for change in it.log()]
    assert max(forces) == pytest.approx(UNSTOPPED_FORCE_FRACTION * 0.8, rel=1e-9)
    until(lambda: not any(it.state()["force"]))


def test_limits_and_temperatures_of_the_library(device, opened):
    """The queries have the numbers of the public binding; the workspace, which the library lacks, is left out."""
    spec = importlib.util.find_spec("pyOpenHaptics")  # to import it takes the maker's library
    text = (Path(spec.origin).parent / "hd_define.py").read_text(encoding="utf-8")
    numbers = {name: int(number, 16) for name, number in re.findall(r"^(HD_\w+) = (0x\w+)", text, re.M)}
    assert numbers["HD_NOMINAL_MAX_FORCE"] == touch.SHORT_FORCE
    assert numbers["HD_NOMINAL_MAX_CONTINUOUS_FORCE"] == touch.CONTINUOUS_FORCE
    assert numbers["HD_MOTOR_TEMPERATURE"] == touch.MOTOR_TEMPERATURE
    assert numbers["HD_USABLE_WORKSPACE_DIMENSIONS"] == touch.USABLE_WORKSPACE
    device()
    assert opened().maker_figures() == pytest.approx(
        {
            "largest force for a short time, N": 3.3,
            "largest continuous force, N": 0.88,
            **{f"temperature of motor {i}, 0 to 1": 0.1 * i for i in (1, 2, 3)},
        }
    )
