"""The paddle's driver against its emulator across a pseudo-terminal, and against ends of a line that are none."""

import os
import time
import tty

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import driver_tools as serial_line
from fsm_dyn.devices import hapkit
from fsm_dyn.devices import hapkit as hf
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.devices.hapkit import Driver
from fsm_dyn.live.driver_protocol import SAFE_FRAME, DeviceDynamics
from fsm_dyn.live.watchdog import make_safe

PATIENT = 20.0  # s that a machine under load may take for what should take a moment
SENSOR = 20e-6  # m


@pytest.fixture(scope="module")
def paddle():
    with emulation("hapkit", {"hand": {"stiffness": 100.0, "damping": 8.0}}) as started:
        yield started


@pytest.fixture
def opened(paddle):
    """A driver that is open and calibrated; whatever happened to the device is over again afterwards."""
    line = Driver.open_transport(paddle.options)
    driver = Driver(paddle.options, line)
    driver.open()
    driver.calibrate()
    driver.line = line
    yield driver
    for what in ("stall", "freeze", "garbage", "half"):
        paddle.do(what, on=False)
    paddle.do("watchdog", on=True)
    paddle.do("plug")
    os.close(line)


def wait_for(condition, what):
    until = time.monotonic() + PATIENT
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.002)


def fresh(driver):
    """Wait for samples that are new."""
    before = driver.read().sequence
    wait_for(lambda: driver.read().sequence > before + 2, "a sample")
    return driver.read()


def pushed(driver, paddle, force):
    """Show a force until the device says that it does."""

    def shown():
        driver.read()
        driver.write([force])
        return paddle.state()["force"] == [force]

    wait_for(shown, f"a force of {force} N")


def test_what_is_known_before_it_is_opened():
    spec = Driver.describe({"path": "x", "mass": 0.05, "force": 3.0})
    assert (spec.axes, spec.stop_mechanism, spec.force, spec.watchdog) == (1, SAFE_FRAME, 3.0, 0.02)
    assert spec.handle == DeviceDynamics(mass=0.05, velocity_bandwidth=200.0), "what is not told is unknown, not zero"
    with pytest.raises(InputError, match="no option 'masse'"):
        Driver.describe({"masse": 1.0})
    with pytest.raises(InputError, match="mass of the hapkit"):
        Driver.describe({"mass": "heavy"})


def test_where_it_is_and_what_it_shows(paddle, opened):
    """At rest under a force a hand of 100 N/m yields by force over stiffness: 1 N is 10 mm."""
    assert abs(fresh(opened).position[0]) < 2 * SENSOR
    assert opened.write([9.0]) == (5.0,), "never more than the device says it can show"
    wait_for(lambda: pushed(opened, paddle, 1.0) or abs(fresh(opened).velocity[0]) < 1e-3, "rest")
    wait_for(lambda: pushed(opened, paddle, 1.0) or abs(opened.read().position[0] - 0.01) < 2 * SENSOR, "10 mm")
    assert opened.diagnostics()["frames not understood by the device"] == 0


def test_garbage_and_halves_cost_samples_and_nothing_else(paddle, opened):
    pushed(opened, paddle, 0.0)
    paddle.do("garbage", bytes=300)
    paddle.do("half")
    assert abs(fresh(opened).position[0]) < 0.011
    lost = opened.diagnostics()["frames not understood by the host"]
    assert lost >= 1
    for what in ("garbage", "half"):
        paddle.do(what, on=True)
        time.sleep(0.02)  # what was on its way before
        seen = opened.read().sequence
        wait_for(lambda: opened.read() and opened.diagnostics()["frames not understood by the host"] > lost + 20, what)  # noqa: B023
        assert opened.read().sequence - seen <= 1, "noise with a checksum that fits is rare"
        paddle.do(what, on=False)
        fresh(opened)
        lost = opened.diagnostics()["frames not understood by the host"]


@pytest.mark.parametrize("watchdog", [True, False])
def test_half_a_frame_before_the_safe_packet_is_dropped(paddle, opened, watchdog):
    """What the guard does after the tick process was killed in the middle of a frame."""
    paddle.do("watchdog", on=watchdog)
    pushed(opened, paddle, 2.0)
    paddle.log()
    frame = hf.encode_packet(hf.ForceBody(7, 3_000_000))
    os.write(opened.line, frame[:-5])
    make_safe({opened.line: opened.spec.safe_packet})
    wait_for(lambda: paddle.state()["force"] == [0.0], "no force")
    (last,) = paddle.log()
    assert (last["why"], last["sequence"]) == ("host", 0) or watchdog, "the safe frame, unless this machine was late"


def test_nobody_writes_any_more(paddle, opened):
    """The watchdog ends the force; without it the force stays until a safe packet comes."""
    pushed(opened, paddle, 2.0)
    paddle.log()
    wait_for(lambda: paddle.state()["force"] == [0.0], "the watchdog")
    assert paddle.log()[-1]["why"] == paddle.state()["let_go"] == "watchdog"
    wait_for(lambda: opened.read() and opened.diagnostics()["let go by its watchdog"] == 1, "word of the watchdog")
    assert opened.write([2.0]) == (0.0,), "first a force of zero, and then gently"
    paddle.do("watchdog", on=False)
    pushed(opened, paddle, 2.0)
    time.sleep(0.1)
    assert paddle.state()["force"] == [2.0]
    make_safe({opened.line: opened.spec.safe_packet})
    wait_for(lambda: paddle.state()["force"] == [0.0], "no force")


def test_unplugged_and_plugged_in_again(paddle, opened):
    pushed(opened, paddle, 1.0)
    paddle.do("unplug")
    assert paddle.state()["force"] == [0.0], "the board had its power from there"
    with pytest.raises(serial_line.DeviceDisconnected, match="unplugged"):
        opened.read()
    with pytest.raises(serial_line.DeviceDisconnected, match="unplugged"):
        opened.write([1.0])
    opened.close()
    with pytest.raises(InputError, match="plug the device in"):
        Driver.open_transport(paddle.options)
    paddle.do("plug")
    line = Driver.open_transport(paddle.options)
    again = Driver(paddle.options, line)
    again.open()
    again.calibrate()
    assert abs(fresh(again).position[0]) < 2e-3, "zero is where it was found; the hand swings back meanwhile"
    os.close(line)


def test_a_board_with_power_of_its_own_is_ended_by_its_watchdog():
    with emulation("hapkit", {"power": "own"}) as paddle:
        line = Driver.open_transport(paddle.options)
        driver = Driver(paddle.options, line)
        driver.open()
        driver.calibrate()
        pushed(driver, paddle, 1.0)
        paddle.log()
        paddle.do("unplug")
        wait_for(lambda: paddle.state()["force"] == [0.0], "no force")
        assert paddle.log()[-1]["why"] == "watchdog"
        os.close(line)


def test_a_device_that_takes_nothing_is_a_fault_and_not_waited_for(paddle, opened):
    pushed(opened, paddle, 0.0)
    paddle.do("freeze", on=True)
    before = time.monotonic()

    def fill():
        for _ in range(200_000):
            opened.write([0.5])

    with pytest.raises(serial_line.DeviceNotReading, match="takes no more bytes"):
        fill()
    assert time.monotonic() - before < PATIENT
    opened.close()  # throws away what has not gone out: the force of zero comes first
    paddle.do("freeze", on=False)
    wait_for(lambda: paddle.state()["counts"]["echo"] == 0, "the safe frame")


def test_two_hosts_do_not_share_it(paddle, opened):
    with pytest.raises(InputError, match="end the program that has it open"):
        Driver.open_transport(paddle.options)


# -- ends of a line that are none ------------------------------------------------------------------------------


@pytest.fixture
def line():
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    os.set_blocking(theirs, False)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_nobody_answers(line, monkeypatch):
    monkeypatch.setattr(hapkit, "PATIENCE", 0.2)
    os.write(line[0], b"Hello from another sketch\r\n\0")
    with pytest.raises(InputError, match="no hapkit answers") as told:
        Driver({}, line[1]).open()
    assert "1 pieces" in told.value.found


def test_another_version_of_the_protocol(line):
    os.write(line[0], hf.encode_packet(hf.IdentityBody(9, 80_000, 20_000, 5_000_000, 20_000)))
    with pytest.raises(InputError, match="speaks another protocol"):
        Driver({}, line[1]).open()


def test_samples_that_take_no_notice_of_forces(line):
    """As when only the device's side of the line is alive: nothing that is written has an effect, which has a name."""
    os.write(line[0], hf.encode_packet(hf.IdentityBody(1, 80_000, 20_000, 5_000_000, 20_000)))
    driver = Driver({}, line[1])
    driver.open()

    def go():
        for k in range(1, 300):
            os.write(line[0], hf.encode_packet(hf.SampleBody(k, 1000 * k, 0, 0, 0, 0, 0, 0)))
            driver.read()
            driver.write([0.5])
            os.read(line[0], 4096)

    with pytest.raises(TimeoutError, match="takes no forces: 251 are unanswered"):
        go()


def test_a_port_that_is_none(tmp_path):
    with pytest.raises(InputError, match="cannot open the serial port") as told:
        Driver.open_transport({"path": str(tmp_path / "ttyACM7")})
    assert "--emulate" in told.value.remedy
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is it a serial port"):
        Driver.open_transport({"path": str(tmp_path / "file")})


def test_options_of_the_emulator():
    with pytest.raises(InputError, match="no option 'masse'"):
        emulation("hapkit", {"masse": 0.1})
    with pytest.raises(InputError, match="mass of the emulated hapkit"):
        emulation("hapkit", {"mass": 0.0})
    with pytest.raises(InputError, match="no emulator for the driver 'scripted'"):
        emulation("scripted", {})
