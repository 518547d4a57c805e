"""The drivers: the hand as an oscillator, the pointer's smoothing, refused options."""

import math
import time

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import pointer, scripted
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.driver_protocol import BlockingReader, DeviceSpec, Sample, driver_class
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.runtime.abi import LiveHeader


def test_the_hand_swings_as_a_damped_oscillator_does():
    """Let go at a force's end, it decays by the closed form; semi-implicit Euler is good to the first order."""
    mass, stiffness, damping, h = 0.5, 200.0, 4.0, 1e-5
    hand = scripted.Driver({"mass": mass, "stiffness": stiffness, "damping": damping, "period": h})
    hand.write([1.0])
    for _ in range(300_000):
        hand.read()
    rest = 1.0 / stiffness
    assert hand.read().position[0] == pytest.approx(rest, rel=1e-4)  # exp(-12) is left
    hand.write([0.0])
    decay, frequency = damping / (2 * mass), math.sqrt(stiffness / mass - (damping / (2 * mass)) ** 2)
    for k in range(1, 30_001):
        sample = hand.read()
        if k % 5000 == 0:
            t = k * h
            exact = (
                rest * math.exp(-decay * t) * (math.cos(frequency * t) + decay / frequency * math.sin(frequency * t))
            )
            # h times the frequency, a few times over
            assert sample.position[0] == pytest.approx(exact, abs=1e-3 * rest)


def test_the_hand_is_the_same_every_time():
    options = {"axes": 2, "motion": scripted.usual_motion(2)}
    first, second = scripted.Driver(options), scripted.Driver(options)
    for k in range(500):
        force = [math.sin(0.01 * k), 0.3]
        first.write(force)
        second.write(force)
        assert first.read() == second.read()


@pytest.fixture
def block():
    made = tick_data.SharedBlock.create(tick_data.BlockLayout(3, 5))
    yield made
    made.close(remove=True)


def point(block, x, buttons, age=0.0, velocity=0.0):
    row = np.zeros(tick_data.POINTER_WIDTH)
    row[0], row[1], row[7], row[13] = time.monotonic() - age, x, velocity, buttons
    tick_data.put_row(block.pointer, block.header, LiveHeader.POINTER, row)


def test_the_pointer_follows_without_overshoot(block):
    driver = pointer.Driver({"axes": 1, "patience": 1e9})
    driver.attach(block)
    point(block, 0.0, 1)
    driver.read()
    point(block, 0.1, 1)
    positions = [driver.read().position[0] for _ in range(300)]
    velocities = np.diff([0.0, *positions]) / 1e-3
    assert max(positions) <= 0.1 + 1e-12
    assert positions[-1] == pytest.approx(0.1, abs=1e-6)
    # critically damped: the steepest slope is w / e times the step
    assert velocities.max() <= 1.05 * 0.1 * 2 * math.pi * 12.0 / math.e


def test_a_drag_begins_where_the_pointer_is(block):
    driver = pointer.Driver({"axes": 1, "patience": 1e9})
    driver.attach(block)
    point(block, 0.0, 0)
    driver.read()
    point(block, 0.7, 1)
    sample = driver.read()
    assert sample.position[0] == pytest.approx(0.7)
    assert sample.velocity[0] == 0.0
    assert sample.buttons == 1


def test_a_pointer_that_is_gone_counts_as_released(block):
    driver = pointer.Driver({"axes": 1})
    driver.attach(block)
    assert driver.read().buttons == 0
    point(block, 0.0, 1)
    assert driver.read().buttons == 1
    point(block, 0.0, 1, age=0.5)
    assert driver.read().buttons == 0


def test_a_key_is_held_longer_than_a_drag(block):
    """A page late by 0.5 s would otherwise be disengaged, and the press after it softer."""
    driver = pointer.Driver({"axes": 1})
    driver.attach(block)
    point(block, -0.01, 1, age=0.5, velocity=0.6)
    assert driver.read().buttons == 1
    point(block, -0.01, 1, age=1.1 * pointer.PRESS_PATIENCE, velocity=0.6)
    assert driver.read().buttons == 0


def test_a_page_drags_the_wall(held):
    """Through the session: pressed, moved, released; the port follows and is released."""
    settings = LiveSettings(
        realtime_privileges=False, watchdog_timeout=20.0, limits=Limits(dead_man_button=0, ramp=0.02)
    )
    # patient: otherwise a briefly delayed page would count as gone, and engage again at its position then
    page = {"axes": 2, "patience": 60.0}
    with LiveSession.start(held("virtual_wall"), "pointer", page, settings=settings) as session:
        session.wait_for_ticks(20)
        x = session.snapshot()["state"]["x"]
        until = time.monotonic() + 60.0
        session.send_pointer((0.3, 0.2), (0.0, 0.0), 1)
        while session.snapshot()["engagement"] < 1.0:
            session.send_pointer((0.3, 0.2), (0.0, 0.0), 1)
            time.sleep(0.01)
            assert time.monotonic() < until
        while session.snapshot()["state"]["x"] < x + 0.04:
            session.send_pointer((0.35, 0.2), (0.0, 0.0), 1)
            time.sleep(0.01)
            assert time.monotonic() < until
        session.send_pointer((0.35, 0.2), (0.0, 0.0), 0)
        while session.snapshot()["engagement"] > 0.0:
            time.sleep(0.01)
            assert time.monotonic() < until
        assert session.snapshot()["phase"] == "running"


class Slow:
    """A device waiting for its samples, and failing at the fifth."""

    spec = DeviceSpec("slow", 1, blocking_read=True)

    def __init__(self):
        self.readings = 0

    def read(self):
        time.sleep(0.01)
        self.readings += 1
        if self.readings == 5:
            raise OSError("unplugged")
        return Sample(0.0, self.readings, [0.1 * self.readings], [0.0])


def test_a_device_that_waits_is_read_beside_the_tick():
    waiting = BlockingReader(Slow())
    begin, seen = time.monotonic(), set()

    def read_on():
        while time.monotonic() - begin < 60.0:
            seen.add(waiting.read().sequence)

    with pytest.raises(OSError, match="unplugged"):
        read_on()
    assert seen <= {1, 2, 3, 4}
    assert len(seen) >= 1
    waiting.stop()


@pytest.mark.parametrize(
    ("driver", "options", "words"),
    [
        ("scripted", {"axis": 2}, "axes"),
        ("scripted", {"fault": "smoke"}, "hang"),
        ("scripted", {"axes": 9}, "1 to 6"),
        ("scripted", {"axes": 2, "turns": [2]}, "0 to 1"),
        ("pointer", {"axes": 0}, "1 to 6"),
        ("replay", {}, "recording"),
    ],
)
def test_options_that_cannot_be_are_refused(driver, options, words):
    with pytest.raises(InputError, match=words):
        driver_class(driver).describe(options)


def test_a_driver_is_found_by_its_file(tmp_path):
    file = tmp_path / "udp.py"  # of the name of a shipped one
    file.write_text("class Driver:\n    pass\n", encoding="utf-8")
    found = driver_class(str(file))
    assert found is driver_class(str(file)) is not driver_class("udp")


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, InputError, "No such file"),
        ("class Handle: pass", InputError, "no attribute 'Driver'"),
        ("import a_library_of_a_maker", InputError, "needs an additional package"),
        ("raise ValueError(1)", ValueError, "1"),
    ],
)
def test_a_file_that_is_no_driver_is_refused_each_time(content, error, words, tmp_path):
    file = tmp_path / "handle.py"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(error, match=words):
            driver_class(str(file))
