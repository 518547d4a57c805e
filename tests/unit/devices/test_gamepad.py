"""The driver ``gamepad`` on a pipe: sticks as places and as rates, buttons, and what comes when it is unplugged."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fsm_dyn.devices import gamepad
from fsm_dyn.devices.gamepad import ABSOLUTE, EV_ABS, EV_KEY, EV_SYN, EVENT, SYN_DROPPED, deflection
from fsm_dyn.errors import InputError

H = 1e-3
RANGES = {"x": [-100, 100], "y": [0, 255]}


class Pad:
    """A driver on a pipe, by a clock of its own."""

    def __init__(self, monkeypatch, **options):
        end, self.pipe = os.pipe2(os.O_NONBLOCK)
        self.now = 0.0
        monkeypatch.setattr(gamepad.time, "monotonic", lambda: self.now)
        self.driver = gamepad.Driver({"ranges": RANGES, **options}, end)
        self.driver.open()

    def tell(self, *events):
        os.write(self.pipe, b"".join(EVENT.pack(0, 0, *event) for event in events))

    def read(self, count=1):
        for _ in range(count):
            self.now += H
            sample = self.driver.read()
        return sample._replace(position=list(sample.position), velocity=list(sample.velocity))  # it goes on moving


@pytest.fixture
def pad(monkeypatch):
    made = []

    def make(**options):
        made.append(Pad(monkeypatch, **options))
        return made[-1]

    yield make
    for each in made:
        each.driver.close()
        if each.pipe >= 0:
            os.close(each.pipe)


def test_the_request_is_that_of_the_headers():
    """As a C compiler makes EVIOCGABS(ABS_X) and EVIOCGABS(ABS_RY) of linux/input.h, on machines of 64 bits."""
    assert gamepad.absolute_request(0) == 0x80184540
    assert gamepad.absolute_request(4) == 0x80184544
    assert EVENT.size == 24


@given(some.integers(-300, 300), some.floats(0.0, 0.9))
def test_deflections(value, dead):
    part = deflection(value, -100, 100, dead)
    assert part == -deflection(-value, -100, 100, dead)
    assert -1.0 <= part <= 1.0
    inside = abs(value) / 100 <= dead
    assert (part == 0.0) == (inside or value == 0)
    if abs(value) >= 100:
        assert abs(part) == pytest.approx(1.0)


def test_a_stick_as_a_place(pad):
    """The step response of a critically damped filter: `1 - (1 + w t) exp(-w t)`."""
    it = pad(reach=0.2, bandwidth=5.0, dead_zone=0.0)
    it.tell((EV_ABS, 0, 50), (EV_SYN, 0, 0))
    found = np.array([it.read().position[0] for _ in range(200)])
    t, w = H * np.arange(1, 201), 2.0 * math.pi * 5.0
    exact = 0.1 * (1.0 - (1.0 + w * t) * np.exp(-w * t))
    assert np.abs(found - exact).max() <= 0.1 * w * H  # of the first order in the step
    assert it.read(600).position[0] == pytest.approx(0.1, rel=1e-6)
    it.tell((EV_ABS, 1, 0))  # pushed away: the least value, and up
    assert it.read(1000).position == pytest.approx([0.1, 0.2])
    assert it.read().velocity == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_stick_as_a_rate(pad):
    """The velocity of a filter of the first order, and the place is where that leads."""
    it = pad(mode="rate", speed=0.3, bandwidth=4.0, dead_zone=0.0)
    it.tell((EV_ABS, 0, 100))
    w = 2.0 * math.pi * 4.0
    sample = it.read(100)
    assert sample.velocity[0] == pytest.approx(0.3 * (1.0 - math.exp(-w * 0.1)), rel=1e-9)
    assert sample.position[0] == pytest.approx(0.3 * (0.1 - (1.0 - math.exp(-w * 0.1)) / w), rel=2e-2)
    it.tell((EV_ABS, 0, 0))
    rest = it.read(500).position[0]
    assert rest > sample.position[0]
    assert it.read(500).position[0] == pytest.approx(rest, rel=1e-5)  # exp(-4 pi) of the way is left


def test_buttons_of_gamepads_and_joysticks(pad):
    it = pad()
    it.tell((EV_KEY, 0x130, 1), (EV_KEY, 0x122, 1), (EV_KEY, 0x100, 1))
    assert it.read().buttons == 0b101
    it.tell((EV_KEY, 0x130, 0))
    assert it.read().buttons == 0b100


@pytest.mark.parametrize("mode", gamepad.MODES)
def test_unplugged_it_comes_to_rest_and_tells_nothing_new(pad, mode):
    it = pad(mode=mode)
    it.tell((EV_ABS, 0, 100), (EV_KEY, 0x130, 1))
    assert it.read(300).buttons == 1
    os.close(it.pipe)
    it.pipe = -1
    sample = it.read()
    assert sample.buttons == 0
    assert it.read(5).sequence == sample.sequence + 5, "it is on its way"
    rest = it.read(1000)
    moved = rest.velocity if mode == "rate" else rest.position
    assert abs(moved[0]) < 1e-3 * 0.2
    assert it.read(10).sequence == rest.sequence


@given(some.lists(some.binary(max_size=200), max_size=5))
def test_no_bytes_at_all_lead_beyond_its_reach(junk):
    with pytest.MonkeyPatch.context() as patch:
        it = Pad(patch, reach=0.1)
        for data in junk:
            if data:
                os.write(it.pipe, data)
            sample = it.read(20)
            assert all(abs(x) <= 0.1 + 1e-12 for x in sample.position)
        it.driver.close()
        os.close(it.pipe)


def test_half_an_event_waits_for_its_other_half(pad):
    it = pad()
    whole = EVENT.pack(0, 0, EV_KEY, 0x131, 1)
    os.write(it.pipe, whole[:10])
    assert it.read().buttons == 0
    os.write(it.pipe, whole[10:])
    assert it.read().buttons == 0b10


def test_ranges_as_the_kernel_tells_them(pad, monkeypatch):
    """Asked at the beginning, and again where its buffer was full."""
    import fcntl

    value = [128]

    def told(descriptor, request, data):
        return ABSOLUTE.pack(value[0], 0, 256, 0, 0, 0)

    monkeypatch.setattr(fcntl, "ioctl", told)
    it = pad(ranges=None, reach=1.0, dead_zone=0.0)
    assert it.read(1000).position == pytest.approx([0.0, 0.0])
    value[0] = 192
    it.tell((EV_SYN, SYN_DROPPED, 0))
    assert it.read(1000).position == pytest.approx([0.5, -0.5])
    assert it.driver.told() == {"events lost": 1}


def test_an_axis_that_is_not_there(pad):
    with pytest.raises(InputError, match="no axis 'rz'"):
        pad(axes=["x", "rz"])


LISTING = """I: Bus=0011 Vendor=0001 Product=0001 Version=ab41
N: Name="AT Translated Set 2 keyboard"
H: Handlers=sysrq kbd event0 leds

I: Bus=0003 Vendor=045e Product=028e Version=0110
N: Name="Microsoft X-Box 360 pad"
H: Handlers=event5 js0
"""


def test_which_gamepads_there_are(tmp_path, monkeypatch):
    (tmp_path / "devices").write_text(LISTING)
    there = gamepad.gamepads(str(tmp_path / "devices"))
    assert there == {"/dev/input/event5": "Microsoft X-Box 360 pad"}
    assert gamepad.gamepads(str(tmp_path / "none")) == {}
    monkeypatch.setattr(gamepad, "gamepads", lambda: there)
    assert gamepad.Driver.complete({"reach": 0.3}) == {"reach": 0.3, "device": "/dev/input/event5"}
    assert gamepad.Driver.complete({"device": "x"}) == {"device": "x"}
    with pytest.raises(InputError, match=r"(?s)no gamepad '/dev/input/event77'.*event5"):
        gamepad.Driver.open_transport({"device": "/dev/input/event77"})
    monkeypatch.setattr(gamepad, "gamepads", lambda: {**there, "/dev/input/event6": "Another"})
    with pytest.raises(InputError, match=r"(?s)which gamepad\?.*X-Box.*event6 \(Another\)"):
        gamepad.Driver.complete({})
    monkeypatch.setattr(gamepad, "gamepads", dict)
    with pytest.raises(InputError, match="none is plugged in"):
        gamepad.Driver.complete({})


def test_where_it_may_not_be_read_and_where_it_cannot(monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(gamepad.os, "open", refuse)
    with pytest.raises(InputError, match=r"(?s)Permission denied.*usermod -aG input"):
        gamepad.Driver.open_transport({"device": "/dev/input/event5"})
    monkeypatch.setattr(gamepad.sys, "platform", "darwin")
    with pytest.raises(InputError, match="Linux"):
        gamepad.Driver.open_transport({"device": "/dev/input/event5"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stick": 1}, "no option 'stick'"),
        ({"axes": ["x", "w"]}, "hat0x"),
        ({"axes": []}, "1 to 6"),
        ({"turns": [2]}, "0 to 1"),
        ({"reach": 0}, "(?s)reach.*above 0"),
        ({"ranges": [1, 2]}, "least, greatest"),
        ({"mode": "force"}, "position, rate"),
        ({"dead_zone": 1.0}, "dead_zone"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"ranges": {"x": [1, 0]}}, "least, greatest"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        gamepad.Driver.describe(options)
