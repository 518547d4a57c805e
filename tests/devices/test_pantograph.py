"""The driver of Haply's pantograph and the maker's public library, on the same emulated board."""

from __future__ import annotations

import functools
import math
import os
import random
import struct
import time

import pytest
from HaplyHAPI import Board, Device, Pantograph

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import pantograph
from fsm_dyn.devices import pantograph as haply_board
from fsm_dyn.devices.driver_tools import DeviceDisconnected
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.devices.pantograph import angles_of
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.devices.makers.emulated_library import until

STEP = 2e-4  # m, that one count of an encoder moves the handle at most


@pytest.fixture
def device():
    """Return a function that starts an emulated pantograph; a firm hand holds it at its target."""
    started = []

    def start(**options):
        started.append(
            emulation("pantograph", {"hand": {"stiffness": 500.0, "damping": 20.0, "target": 0.0}, **options})
        )
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def opened():
    """Return a function that opens a driver on an emulated device."""
    lines = []

    def open_(options):
        lines.append(pantograph.Driver.open_transport(options))
        driver = pantograph.Driver(options, lines[-1])
        driver.open()
        driver.calibrate()
        return driver

    yield open_
    for line in lines:
        os.close(line)


def follow(driver, force, lasts=0.6):
    """Show a force for a time; return the last sample."""
    end = time.monotonic() + lasts
    while time.monotonic() < end:
        driver.write(force)
        time.sleep(0.001)
        sample = driver.read()
    return sample


class RecordedLine:
    """What the maker's library sends, in place of its serial line."""

    def __init__(self):
        self.sent = b""

    def transmit(self, kind, device, data, floats):
        self.sent += bytes((kind, device)) + bytes(data) + struct.pack(f"<{len(floats)}f", *floats)


def configured(link, version):
    """Return the maker's library's device, configured as its README says for a version."""
    made = Device(pantograph.BOARD, link)
    # lists of the class, which every device of the process shares
    made._Device__actuatorPositions = bytearray(4)
    made._Device__encoderPositions = bytearray(4)
    made.set_mechanism(Pantograph(version))
    ccw, cw = 1, 0
    second, offsets, counts = (ccw, (168, 12), 4880) if version == 3 else (cw, (241, -61), 10752)
    made.add_actuator(1, ccw, 2)
    made.add_actuator(2, second, 1)
    made.add_encoder(1, ccw, offsets[0], counts, 2)
    made.add_encoder(2, second, offsets[1], counts, 1)
    made.device_set_parameters()
    return made


@pytest.mark.parametrize("version", sorted(pantograph.VERSIONS))
def test_messages_are_those_of_the_makers_library(version):
    """Byte by byte: its parameters for each version, and its torques for a force at a pose."""
    line, hardware = RecordedLine(), pantograph.VERSIONS[version]
    made = configured(line, version)
    assert line.sent == haply_board.parameters_message(pantograph.BOARD, hardware.motors, hardware.encoders)
    line.sent = b""
    made.get_device_position([110.0, 65.0])
    first, second = made.set_device_torques([0.5, -0.25])
    made.device_write_torques()
    assert line.sent == haply_board.torques_message(pantograph.BOARD, second, first)


def test_the_makers_library_and_the_driver_find_the_same_device(device, opened):
    """Where the hand holds it, and where a force of 1 N pushes it from there: 2 mm by the hand's 500 N/m."""
    it = device()
    origin = pantograph.origin_of({})
    board = Board("test", it.options["path"], 115200)
    theirs = configured(board, 3)
    found = []
    for force in ([0.0, 0.0], [1.0, -0.5]):
        theirs.get_device_position([110.0, 65.0])
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            theirs.set_device_torques(force)
            theirs.device_write_torques()
            theirs.device_read_data()
            position = theirs.get_device_position(theirs.get_device_angles())
        found.append([x - zero for x, zero in zip(position, origin, strict=True)])
    board._Board__port.close()
    driver = opened(it.options)
    ours = [follow(driver, force).position for force in ([0.0, 0.0], [1.0, -0.5])]
    for by_driver, by_library, true in zip(ours, found, ([0.0, 0.0], [2e-3, -1e-3]), strict=True):
        assert by_driver == pytest.approx(true, abs=STEP)
        assert by_library == pytest.approx(true, abs=STEP)
    assert driver.diagnostics() == {"bytes of no answer": 0}
    driver.close()
    until(lambda: not any(it.state()["force"]))


def test_a_force_beyond_the_motors_keeps_its_direction(device, opened):
    it = device()
    driver = opened({**it.options, "torque": 0.05})
    shown = driver.write([6.0, 3.0])
    assert 0.0 < shown[0] < 6.0
    assert shown[1] == pytest.approx(0.5 * shown[0])
    until(lambda: it.state()["force"][0] > 0.0)
    assert it.state()["force"] == pytest.approx(shown, rel=1e-2)  # at the pose of the encoders, not the true one
    assert driver.diagnostics()["forces reduced to the largest torque"] == 1


def test_noise_is_counted_and_answers_are_found_again(device, opened):
    it = device()
    driver = opened(it.options)
    it.do("garbage", bytes=31)
    follow(driver, [0.0, 0.0], 0.1)
    it.do("half", on=True)
    follow(driver, [0.0, 0.0], 0.1)
    it.do("half", on=False)
    dropped = driver.diagnostics()["bytes of no answer"]
    assert dropped > 31
    sample = follow(driver, [0.0, 0.0], 0.3)
    assert sample.position == pytest.approx([0.0, 0.0], abs=STEP)


def test_what_does_not_answer_is_named(device, opened, monkeypatch):
    monkeypatch.setattr(pantograph, "PATIENCE", 0.3)
    it = device()
    with pytest.raises(InputError, match="no pantograph answers"):
        opened({**it.options, "board": 6})
    it.do("unplug")
    with pytest.raises(InputError, match="cannot open the serial port"):
        opened(it.options)
    monkeypatch.setattr("fsm_dyn.devices.driver_tools.ports", list)
    with pytest.raises(InputError, match="no serial port"):
        pantograph.Driver.open_transport({})


def test_an_unplugged_device_is_an_error(device, opened):
    it = device()
    driver = opened(it.options)
    it.do("unplug")
    with pytest.raises(DeviceDisconnected):
        follow(driver, [1.0, 0.0])


def test_the_watchdog_process_removes_the_force_of_a_tick_process_that_is_killed(device):
    it = device()
    settings = LiveSettings(
        realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=150, limits=Limits(velocity=20.0)
    )
    with LiveSession.start(fsm_dyn.compile("virtual_wall"), "pantograph", it.options, settings=settings) as session:
        session.wait_for_ticks(50)
        x, y = it.state()["position"]
        it.do("hand", stiffness=300.0, damping=10.0, target=[x, y - 0.03])
        until(lambda: it.state()["force"][1] > 0.3)
        os.kill(session.tick_pid, 9)
        until(lambda: not any(it.state()["force"]))
        assert it.log()[-1]["why"] == "host"


def test_wrong_angles_do_not_change_what_the_motors_do(device, opened):
    """Encoders that are off by radians: the driver's positions jump or stop, and the board takes the torques."""
    it = device()
    driver = opened(it.options)
    follow(driver, [0.5, 0.0])
    before = driver.read()
    it.do("jump", by=0.2)
    after = follow(driver, [0.0, 0.0])
    assert it.state()["force"] == [0.0, 0.0]
    new = after.sequence > before.sequence
    assert not new or max(abs(a - b) for a, b in zip(after.position, before.position, strict=True)) > 0.02


def test_of_bytes_that_are_no_answer_hardly_any_is_taken_for_a_pose(monkeypatch):
    """Angles at random, as an answer without a checksum has them; then the handle again, which is taken at once."""
    now = [0.0]
    monkeypatch.setattr(pantograph.time, "monotonic", lambda: now[0])
    numbers = random.Random(1)
    driver = pantograph.Driver({"path": "none"}, 0)
    bars = pantograph.VERSIONS[3].bars
    inverse = functools.partial(angles_of, bars)

    def read(first, second):
        now[0] += 1e-3
        driver._take(math.degrees(second), math.degrees(first))
        return driver._latest.sequence

    taken, count = read(*inverse(0.019, 0.11)), 20_000
    for _ in range(count):
        taken = read(numbers.uniform(0.0, math.pi), numbers.uniform(0.0, math.pi))
    assert taken < 0.01 * count
    read(*inverse(0.019, 0.11))
    for k in range(100):  # at 2 m/s along x
        before = driver._latest.sequence
        assert read(*inverse(0.019 + 2e-3 * (k % 20), 0.11)) == before + (k % 20 > 0 or k == 0)
