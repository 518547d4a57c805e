"""The driver of Force Dimension's devices and a public binding, on the same emulated library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import force_dimension
from fsm_dyn.live.driver_protocol import NOTHING, WATCHDOG
from tests.devices.makers.emulated_library import HERE, build, stubs, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the emulated library is an ELF file")
PACKAGE = "forcedimension_core"
STIFFNESS, HAND, TARGET = 100.0, 60.0, (0.03, -0.02, 0.01)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return the emulated library, with every symbol that the binding touches."""
    folder = tmp_path_factory.mktemp("sdk")
    rest = stubs(PACKAGE, r"_libd[rh]d\.(d[rh]d[A-Za-z0-9_]+)", "emulated_dhd.c", folder / "stubs.c")
    return build("emulated_dhd.c", folder / "lib" / "release" / "lin-x86_64-gcc" / "libdrd.so.3.16.0", rest)


def opened(library, **options):
    driver = force_dimension.Driver({"library": str(library), **options})
    driver.open()
    driver.calibrate()
    return driver


def spring(driver, lasts=1.0):
    """Hold a device by a spring to its zero; return where it comes to rest."""
    end = time.monotonic() + lasts
    while time.monotonic() < end:
        sample = driver.read()
        driver.write([-STIFFNESS * x for x in sample.position])
        time.sleep(0.0005)
    return sample.position


def test_the_binding_and_the_driver_come_to_the_same_rest(library, device):
    """Where the hand and the spring balance: ``HAND target / (HAND + STIFFNESS)``, after ten time constants."""
    device(hand={"stiffness": HAND, "damping": 5.0, "target": 0.0}).do("hand", target=list(TARGET))
    balance = [HAND * x / (HAND + STIFFNESS) for x in TARGET]
    environment = {**os.environ, "FDSDK": str(library.parents[3])}
    script = [sys.executable, str(HERE / "spring_by_binding.py"), str(STIFFNESS)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    by_binding = json.loads(done.stdout)
    assert (by_binding["failed"], by_binding["watchdog"]) == (0, 160)
    driver = opened(library, watchdog=0.02)
    by_driver = spring(driver)
    driver.close()
    tolerance = 2e-4  # m, of 2 cm: what a late loop leaves of the motion
    assert by_binding["position"] == pytest.approx(balance, abs=tolerance)
    assert by_driver == pytest.approx(balance, abs=tolerance)


def test_samples_forces_and_the_end(library, device):
    it = device(hand={"stiffness": 0.0, "damping": 0.0, "target": 0.0})
    driver = opened(library, serial=7, watchdog=0.03)
    until(lambda: it.state()["watchdog"] == pytest.approx(0.03))
    first = driver.read()
    assert list(driver.write([1.0, -2.0, 0.5])) == [1.0, -2.0, 0.5]
    until(lambda: it.state()["let_go"] == "watchdog")  # nothing was sent for 30 ms
    assert it.log()[0]["force"] == [1.0, -2.0, 0.5]
    sample = driver.read()
    true = it.state()
    assert sample.sequence == first.sequence + 1
    assert sample.buttons == 2
    # the device coasts: it moves on between the two readings, and loses speed by its damping
    assert [v > 0 for v in sample.velocity] == [True, False, True]
    assert sample.position == pytest.approx(true["position"], abs=5e-3)
    assert driver.diagnostics() == {}
    driver.write([13.0, 0.0, 0.0])
    assert driver.diagnostics() == {"forces that a motor cannot show": 1}
    assert driver.maker_figures() == {"force limit of the library, N": 12.0}
    until(lambda: it.state()["force"][0] == 13.0)
    driver.close()
    until(lambda: it.state()["force"] == [0.0, 0.0, 0.0])
    assert it.log()[-1]["why"] == "host"
    driver.close()


def test_what_is_not_ready_is_refused_before_any_force(library, device):
    for options, complaint in (
        ({"uncalibrated": True}, "not ready"),
        ({"error": 3}, "not ready"),
        ({"has_watchdog": False}, "no watchdog"),
    ):
        it = device(**options)
        with pytest.raises(InputError, match=complaint):
            opened(library)
        assert it.state()["counts"]["forces"] == 0
        assert it.log() == []
        it.close()
    it = device(has_watchdog=False)
    driver = opened(library, watchdog=0.0)
    assert driver.spec.stop_mechanism == NOTHING
    driver.close()
    with pytest.raises(ConnectionError, match="no device of this number"):
        opened(library, serial=8)


def test_an_unplugged_device_is_an_error(library, device):
    it = device()
    driver = opened(library)
    assert driver.spec.stop_mechanism == WATCHDOG
    it.do("unplug")
    until(lambda: not it.state()["plugged"])
    for use in (driver.read, lambda: driver.write((1.0, 0.0, 0.0))):
        with pytest.raises(ConnectionError, match="communication error"):
            use()
    driver.close()


def test_a_library_that_does_not_fit_is_named(library, device, tmp_path, monkeypatch):
    complete = force_dimension.Driver.complete
    monkeypatch.delenv("FDSDK", raising=False)
    monkeypatch.setattr("fsm_dyn.devices.driver_tools.find_library", lambda name: None)
    with pytest.raises(InputError, match="not installed"):
        complete({})
    monkeypatch.setenv("FDSDK", str(library.parents[3]))
    assert complete({}) == {"library": str(library)}
    with pytest.raises(InputError, match="cannot be loaded"):
        complete({"library": str(tmp_path / "nothing.so")})
    data = bytearray(library.read_bytes())
    data[18:20] = b"\xb7\0"
    (tmp_path / "other.so").write_bytes(data)
    with pytest.raises(InputError, match="made for aarch64"):
        complete({"library": str(tmp_path / "other.so")})
    (tmp_path / "half.so").write_bytes(library.read_bytes()[:30])
    with pytest.raises(InputError, match="cannot be loaded"):
        complete({"library": str(tmp_path / "half.so")})
    (tmp_path / "empty.c").write_text("int dhdOpen(void);\nint dhdOpen(void) { return 0; }\n")
    few = build(str(tmp_path / "empty.c"), tmp_path / "few.so")
    with pytest.raises(InputError, match="has no function dhd"):
        complete({"library": str(few)})
    device(version=(3 << 16) + 5)
    with pytest.raises(InputError, match=r"version 3\.5\.0\.0"):
        complete({"library": str(library)})
