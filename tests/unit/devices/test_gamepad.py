"""The driver ``gamepad`` on a pipe: sticks as places and as rates, buttons, and what comes when it is unplugged."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import shutil
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import gamepad
from fsm_dyn.devices import gamepad as evdev
from fsm_dyn.devices.gamepad import ABSOLUTE, EV_ABS, EV_KEY, EV_SYN, EVENT, SYN_DROPPED, deflection

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


class Shaken(Pad):
    """A driver on a socket, where what it writes can be read."""

    def __init__(self, monkeypatch, **options):
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.now, self.other = 10.0, ends[1]
        self.pipe = ends[1].fileno()
        self.other.setblocking(False)
        monkeypatch.setattr(gamepad.time, "monotonic", lambda: self.now)
        self.driver = gamepad.Driver({"reach": 1.0, **options}, ends[0].detach())
        self.driver.open()

    def written(self):
        """The events since last time, type, code and value of each."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found += [event[2:] for event in EVENT.iter_unpack(self.other.recv(4096))]
        return found

    def write(self, *force, after=0.01):
        self.now += after
        return list(self.driver.write(force))


XY = {0: (0, -9, 9), 1: (0, -9, 9)}
GAIN, PLAY, STOP = (0x15, 0x60, 0xFFFF), (0x15, 3, 1), (0x15, 3, 0)


@pytest.fixture
def shaken(monkeypatch):
    made = []

    def make(effects, **options):
        kernel = Kernel(monkeypatch, XY)
        kernel.effects = effects
        made.append(Shaken(monkeypatch, **options))
        return kernel, made[-1]

    yield make
    for each in made:
        each.driver.close()
        each.other.close()


@pytest.mark.parametrize(
    ("force", "level", "direction"),
    [
        ((2.0, 0.0), 0.5, 0xC000),
        ((-1.0, 0.0), 0.25, 0x4000),
        ((0.0, 3.0), 0.75, 0x8000),  # axis -y: up
        ((0.0, -40.0), 1.0, 0x0000),
        ((1.0, -1.0), 2**0.5 / 4, 0xE000),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_constant_force_has_level_and_direction(shaken, force, level, direction, reverse):
    kernel, it = shaken({0x52}, feedback="constant", force=4.0, reverse=reverse)
    assert len(kernel.uploaded) == 1, "the effect is there, and shows nothing"
    assert it.written() == []
    shown = it.write(*force)
    found = kernel.uploaded[-1]
    assert (found["type"], found["id"], found["length"]) == (0x52, 3, 50)
    assert found["direction"] == direction ^ (0x8000 if reverse else 0)
    assert found["level"] == round(0x7FFF * level)
    assert it.written() == [GAIN, PLAY]
    size = math.hypot(*force)
    assert shown == pytest.approx([min(1.0, 4.0 / size) * x for x in force])


def test_an_effect_is_played_again_as_long_as_it_lasts_and_zero_does_not_wait(shaken):
    kernel, it = shaken({0x52}, feedback="constant", force=4.0)
    it.write(1.0, 0.0)
    it.written()
    count = len(kernel.uploaded)
    played = [bool(it.written()) for _ in range(100) if it.write(1.0, 0.0, after=0.001)]
    times = [k for k, on in enumerate(played) if on]
    assert 4 <= len(times) <= 5, "20 ms between them, and it lasts 50"
    assert len(kernel.uploaded) == count, "without another upload"
    assert it.write(2.0, 0.0) == pytest.approx([2.0, 0.0])
    assert it.write(3.0, 0.0, after=0.001) == pytest.approx([2.0, 0.0]), "too early for another change"
    it.written()
    assert it.write(0.0, 0.0, after=0.001) == [0.0, 0.0]
    assert kernel.uploaded[-1]["level"] == 0
    assert it.written() == [GAIN, STOP]
    for k in range(1000):
        it.write(math.sin(k), 0.0, after=0.001)
    assert len(kernel.uploaded) - count <= 1000 // 4 + 2
    it.driver.close()
    assert it.written()[-1] == STOP
    assert kernel.erased == [3]


def test_rumble_shakes_and_pushes_nobody(shaken):
    kernel, it = shaken({0x50}, feedback="rumble", force=4.0)
    assert it.write(0.0, -2.0) == [0.0, 0.0]
    assert (kernel.uploaded[-1]["type"], kernel.uploaded[-1]["level"]) == (0x50, 0x8000)
    kernel.gone = True
    it.write(0.0, -4.0)
    assert it.driver.diagnostics() == {"force not shown": 1}


@pytest.mark.parametrize(("effects", "kind"), [({0x50}, "constant"), ({0x52}, "rumble"), (set(), "rumble")])
def test_an_effect_that_the_device_has_not(shaken, effects, kind):
    with pytest.raises(InputError, match=f"shows no force by {kind}"):
        shaken(effects, feedback=kind)


def test_the_guard_ends_whatever_is_shown_and_else_it_ends_by_itself():
    spec = gamepad.Driver.describe({"feedback": "constant", "force": 3.0})
    assert (spec.felt, spec.force, spec.stop_mechanism, spec.watchdog) == (True, 3.0, "safe_frame", evdev.LENGTH)
    assert [event[2:] for event in EVENT.iter_unpack(spec.safe_packet)] == [(0x15, 0x60, 0)]
    assert spec.zero_frame == spec.safe_packet
    assert not gamepad.Driver.describe({"feedback": "rumble"}).felt
    assert evdev.LENGTH > 2 * evdev.REFRESH


class Kernel:
    """What evdev answers to ioctls: axes with their ranges, which keys there are and which are pressed."""

    def __init__(self, monkeypatch, axes, keys=()):
        self.axes, self.keys, self.pressed = dict(axes), set(keys), set()
        self.effects, self.uploaded, self.erased, self.gone = set(), [], [], False
        monkeypatch.setattr(fcntl, "ioctl", self.answer)

    def answer(self, descriptor, request, data):
        size, number = request >> 16 & 0x3FFF, request & 0xFF
        if request >> 30 == 1:
            return self.take(number, data)
        assert (request >> 30, request >> 8 & 0xFF, size) == (2, ord("E"), len(data))
        if number == 0x20 + 0x15:  # EVIOCGBIT(EV_FF)
            data[:] = sum(1 << code for code in self.effects).to_bytes(size, "little")
            return 0
        if number in (0x18, 0x21):  # EVIOCGKEY, EVIOCGBIT(EV_KEY)
            found = sum(1 << code for code in (self.pressed if number == 0x18 else self.keys))
            return found.to_bytes(size, "little")
        if number - 0x40 not in self.axes:
            raise OSError(22, "Invalid argument")
        return ABSOLUTE.pack(*self.axes[number - 0x40], 0, 0, 0)

    def take(self, number, data):
        """EVIOCSFF, which tells the number of a new effect, and EVIOCRMFF."""
        if self.gone:
            raise OSError(19, "No such device")
        if number == 0x81:
            self.erased.append(data)
            return 0
        assert number == 0x80
        kind, number, direction, *_, length, _, level = struct.unpack_from("@HhHHHHHxxH", data)
        if number == -1:
            struct.pack_into("@h", data, 2, 3)
        self.uploaded.append({"type": kind, "id": number, "direction": direction, "length": length, "level": level})
        return 0


def test_after_events_were_lost_axes_and_keys_are_asked_again(pad, monkeypatch):
    """At once, and after the rest of the packet, whose events may be those of a packet that was lost in part."""
    kernel = Kernel(monkeypatch, {0: (128, 0, 256), 1: (128, 0, 256)}, {0x130, 0x131, 0x132})
    kernel.pressed = {0x131}
    it = pad(ranges=None, reach=1.0, dead_zone=0.0)
    sample = it.read(1000)
    assert sample.position == pytest.approx([0.0, 0.0])
    assert sample.buttons == 0b10, "pressed before"
    it.tell((EV_KEY, 0x132, 1), (EV_SYN, 0, 0))
    assert it.read().buttons == 0b110
    kernel.axes[0] = kernel.axes[1] = (192, 0, 256)
    kernel.pressed = {0x130}
    it.tell((EV_SYN, SYN_DROPPED, 0), (EV_KEY, 0x131, 1), (EV_ABS, 0, 0))
    sample = it.read(1000)
    assert sample.position == pytest.approx([0.5, -0.5])
    assert sample.buttons == 0b1, "nothing sticks that was let go, and the rest of the packet does not count"
    kernel.axes[0] = kernel.axes[1] = (64, 0, 256)
    kernel.pressed = {0x131}
    it.tell((EV_SYN, 0, 0))
    sample = it.read(1000)
    assert sample.position == pytest.approx([-0.5, 0.5])
    assert sample.buttons == 0b10
    it.tell((EV_KEY, 0x130, 1), (EV_SYN, 0, 0))
    assert it.read().buttons == 0b11, "events count again"
    assert it.driver.diagnostics() == {"events lost": 1}


PAD = {0x220: (0, -1), 0x221: (0, 1), 0x222: (-1, 0), 0x223: (1, 0)}  # BTN_DPAD_UP and following, as a hat


@pytest.mark.parametrize("code", sorted(PAD))
def test_a_pad_is_buttons_and_a_hat_whichever_the_device_tells(pad, monkeypatch, code):
    x, y = PAD[code]
    bit = 1 << 16 + code - 0x220
    kernel = Kernel(monkeypatch, {}, PAD)
    it = pad(ranges=None, axes=["hat0x", "hat0y"], reach=1.0)
    for told, wanted in ((1, (x, y)), (0, (0, 0))):
        it.tell((EV_KEY, code, told), (EV_SYN, 0, 0))
        sample = it.read(1000)
        assert sample.position == pytest.approx(wanted)
        assert sample.buttons == bit * told
    kernel.pressed = {code}
    it.tell((EV_SYN, SYN_DROPPED, 0), (EV_SYN, 0, 0))
    assert it.read(1000).position == pytest.approx((x, y))

    kernel = Kernel(monkeypatch, {0: (0, -9, 9), 0x10: (0, -1, 1), 0x11: (0, -1, 1)})
    it = pad(ranges=None, axes=["x", "hat0x", "hat0y"], reach=1.0)
    for told in (1, 0):
        it.tell((EV_ABS, 0x10, told * x), (EV_ABS, 0x11, told * y), (EV_SYN, 0, 0))
        sample = it.read(1000)
        assert sample.position == pytest.approx([0, told * x, told * y])
        assert sample.buttons == bit * told
    kernel.axes |= {0x10: (x, -1, 1), 0x11: (y, -1, 1)}
    it = pad(ranges=None, axes=["x"])
    assert it.read().buttons == bit, "a hat that moves no axis presses too, from the beginning"


def test_opposite_buttons_of_a_pad_cancel(pad, monkeypatch):
    Kernel(monkeypatch, {}, PAD)
    it = pad(ranges=None, axes=["hat0x"], reach=1.0)
    it.tell((EV_KEY, 0x222, 1), (EV_KEY, 0x223, 1), (EV_SYN, 0, 0))
    assert it.read(1000).position == pytest.approx([0.0])
    it.tell((EV_KEY, 0x222, 0), (EV_SYN, 0, 0))
    assert it.read(1000).position == pytest.approx([1.0])


def test_a_hat_that_is_not_there(pad, monkeypatch):
    Kernel(monkeypatch, {0: (0, -9, 9)}, {0x130})
    with pytest.raises(InputError, match="no axis 'hat0x'"):
        pad(ranges=None, axes=["x", "hat0x"])


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_layouts_and_requests_are_those_of_the_kernels_header(tmp_path):
    """Sizes, offsets, codes and ioctls of linux/input.h, as the C compiler makes them on this machine."""
    wanted = {
        "sizeof(struct input_event)": EVENT.size,
        "offsetof(struct input_event, type)": struct.calcsize("@ll"),
        "offsetof(struct input_event, code)": struct.calcsize("@llH"),
        "offsetof(struct input_event, value)": struct.calcsize("@llHHi") - 4,
        "sizeof(struct input_absinfo)": ABSOLUTE.size,
        "offsetof(struct input_absinfo, minimum)": 4,
        "offsetof(struct input_absinfo, maximum)": 8,
        "EVIOCGABS(ABS_RY)": gamepad.absolute_request(gamepad.CODES["ry"]),
        "EVIOCGKEY(KEY_CNT / 8)": evdev.request(evdev.READ, gamepad.KEYS_PRESSED, gamepad.KEY_BYTES),
        "EVIOCGBIT(EV_KEY, KEY_CNT / 8)": evdev.bits_request(EV_KEY, gamepad.KEY_BYTES),
        "EVIOCGBIT(EV_FF, FF_CNT / 8)": evdev.bits_request(evdev.EV_FF, evdev.FF_BYTES),
        "EVIOCSFF": evdev.request(evdev.WRITE, 0x80, evdev.EFFECT_SIZE),
        "EVIOCRMFF": evdev.request(evdev.WRITE, 0x81, 4),
        "sizeof(struct ff_effect)": evdev.EFFECT_SIZE,
        "offsetof(struct ff_effect, u)": evdev.HEAD.size,
        "sizeof(((struct ff_effect *)0)->u)": evdev.UNION,
        "sizeof(struct ff_constant_effect)": evdev.CONSTANT.size,
        "sizeof(struct ff_rumble_effect)": evdev.RUMBLE.size,
        "EV_FF": evdev.EV_FF, "FF_GAIN": evdev.FF_GAIN,
        "FF_RUMBLE": evdev.EFFECTS["rumble"], "FF_CONSTANT": evdev.EFFECTS["constant"],
        "EV_SYN": EV_SYN, "EV_KEY": EV_KEY, "EV_ABS": EV_ABS, "EV_MAX": gamepad.EV_MOST,
        "SYN_REPORT": gamepad.SYN_REPORT, "SYN_DROPPED": SYN_DROPPED,
        "BTN_TRIGGER": gamepad.BUTTONS.start, "BTN_SOUTH": gamepad.BUTTONS.start + 0x10,
        "BTN_DPAD_UP": gamepad.DPAD[0], "BTN_DPAD_DOWN": gamepad.DPAD[1],
        "BTN_DPAD_LEFT": gamepad.DPAD[2], "BTN_DPAD_RIGHT": gamepad.DPAD[3],
        **{f"ABS_{name.upper()}": code for name, code in gamepad.CODES.items()},
    }  # fmt: skip
    assert compiled(tmp_path, wanted) == wanted


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_effects_are_read_by_c_as_they_were_meant(tmp_path):
    """Every member, by its name."""
    fields = {
        "constant": {"type": 0x52, "id": 7, "direction": 0x4000, "replay.length": 50, "u.constant.level": 0x4000},
        "rumble": {"type": 0x50, "id": 7, "direction": 0x4000, "replay.length": 50, "u.rumble.strong_magnitude": 0x8000,
                   "u.rumble.weak_magnitude": 0x4000},
    }  # fmt: skip
    zero = ("trigger.button", "trigger.interval", "replay.delay")
    for kind, wanted in fields.items():
        data = ", ".join(map(str, evdev.effect(kind, 7, 0.5, 0x4000)))
        before = f"const unsigned char data[] = {{{data}}}; struct ff_effect e; memcpy(&e, data, sizeof e);"
        wanted = {f"e.{name}": value for name, value in {**wanted, **dict.fromkeys(zero, 0)}.items()}
        assert compiled(tmp_path, [*wanted, "sizeof data == sizeof e"], before) == {
            **wanted,
            "sizeof data == sizeof e": 1,
        }


def compiled(folder, expressions, before=""):
    """What C expressions over linux/input.h come to."""
    lines = before + "".join(f'printf("%lld\\n", (long long)({each}));\n' for each in expressions)
    headers = "".join(f"#include <{name}.h>\n" for name in ("linux/input", "stddef", "stdio", "string"))
    source = headers + "int main(void) {" + lines + "}"
    (folder / "layout.c").write_text(source)
    subprocess.run(["cc", "-o", folder / "layout", folder / "layout.c"], check=True)
    told = subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, told.split()), strict=True))


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
        ({"feedback": "spring"}, "none, rumble, constant"),
        ({"feedback": "constant", "axes": ["rx"]}, "x, y or both"),
        ({"feedback": "rumble", "force": 0}, "force"),
        ({"reverse": 1}, "reverse"),
        ({"ranges": {"x": [1, 0]}}, "least, greatest"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        gamepad.Driver.describe(options)
